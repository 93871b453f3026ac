"""Sets of tables in worker processes: a set file is read, and the set assessed or reported."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.decide.policies import Policies
from cellrisk.repeat.together import KEPT, judge, list_certainties
from cellrisk.repeat.together.sets import read_set_text
from cellrisk.show.wording.attackers import share_at_most
from cellrisk.system.formatting import claim, number_of, whole_people
from cellrisk.web.act import stem
from cellrisk.web.answers import DASH
from cellrisk.web.jobs import Report
from cellrisk.web.tables import known_as

FIGURES = {"right": "correct", "named": "named", "caused": "own record", "chance": "blind", "raw": "no noise"}
NOT_USED = ("source", "engine", "table", "memory_limit")
"""Arguments of a set file that the page leaves aside: the records are those of the file that is loaded."""


def assess_text(
    report: Report, path: str, text: str, name: str, policies: Policies, source: str
) -> cr.TogetherAssessment:
    """Assess the set that a set file describes, with the records of the file at ``path``."""
    report("counting the people", None)
    arguments = {key: value for key, value in read_set_text(text, name).items() if key not in NOT_USED}
    if arguments.get("count") == "none":
        arguments["count"] = False
    with known_as(path, source):
        certainty, progress = list_certainties(policies, ()) or None, partial(report, "counting the people")
        return cr.assess_together(path, **arguments, certainty=certainty, progress=progress)


def assess_set(report: Report, **asked: Any) -> dict[str, Any]:
    """What the tables of a set reveal together: the matrix, growth, warnings, and what is assumed."""
    assessment, policies = assess_text(report, **asked), asked["policies"]
    result = assessment.to_dict()
    tables, lead, cost = result["tables"], result["rules"][0], result["cost"]
    broken = [judged.breach for judged in judge(assessment, (), policies) if judged.state != KEPT]
    together = {tuple(found["tables"]): found for found in result["collections"]}
    growth = [(table, together.get(tuple(range(1, table["number"] + 1)))) for table in tables]
    return {
        "sentence": assessment.headline,
        "head": ["epsilon", *FIGURES.values(), "worst case", "correct without it", "own record without it"],
        "rows": [_describe_table(table) for table in tables],
        "all": {
            "title": f"All {len(tables)} together",
            "more": f"at delta {claim(cost['delta'])}" if cost["delta"] else "",
            "numbers": [claim(cost["epsilon"]), *_write_people(lead), _bound(result["ceiling"]), "", ""],
        },
        "growth": {name: list(_draw_bars(name, growth)) for name in ("caused", "right")},
        "warnings": [difference.headline for difference in assessment.differences],
        "cost": cost["sentence"] + (f" {result['ceiling']['sentence']}" if result["ceiling"] else ""),
        "statements": result["statements"],
        "policy": policies.describe() if policies else None,
        "kind": "bad" if broken else "good",
        "verdict": "The set is above a limit." if broken else "The set keeps every limit that is in force.",
        "broken": broken,
        "result": result,
    }


def _write_people(rule: dict[str, Any]) -> list[str]:
    return [whole_people(rule[name]) for name in FIGURES]


def _bound(ceiling: dict[str, Any] | None) -> str:
    return DASH if ceiling is None else share_at_most(ceiling["even_two"])


def _title(table: dict[str, Any]) -> str:
    return f"{table['number']}: {table['name'] or ', '.join(table['quasi_identifiers'])}"


def _describe_table(table: dict[str, Any]) -> dict[str, Any]:
    without, columns = table["set_without_it"], ", ".join(table["quasi_identifiers"])
    size = f"{number_of(table['records'], 'person')} in {number_of(table['cells'], 'group')}"
    last = [DASH, DASH] if without is None else [whole_people(without[name]) for name in ("right", "caused")]
    return {
        "title": _title(table),
        "more": f"{columns}; {size}" if table["name"] else size,
        "numbers": [claim(table["mechanism"]["epsilon"]), *_write_people(table), _bound(table["ceiling"]), *last],
    }


def _draw_bars(name: str, growth: list[tuple[dict[str, Any], dict[str, Any] | None]]) -> Any:
    """Yield the bars of each table: with all above it, if that was computed, and by itself."""
    largest = max([found[name] for pair in growth for found in pair if found is not None] or [0.0]) or 1.0
    for table, together in growth:
        bars = [] if together is None else [("with all above", together[name])]
        texts = [
            (value / largest, f"{whole_people(value)} {words}") for words, value in [*bars, ("by itself", table[name])]
        ]
        yield {"title": _title(table), "bars": texts}


def write_set_report(report: Report, folder: str, **asked: Any) -> dict[str, str]:
    """Write the report for a board on a set."""
    assessment = assess_text(report, **asked)
    report("writing the report", None)
    document = cr.report(assessment, policy=asked["policies"], source=asked["source"])
    path = document.save(Path(folder) / f"{stem(asked['source'])}-set-report.html")
    return {"path": str(path), "sentence": document.headline}
