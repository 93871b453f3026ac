"""A perturbation instead of a mechanism: read from a request, and assessed in a worker process."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import NAMED, Perturbation
from cellrisk.show.wording.attackers import share_at_most
from cellrisk.system.formatting import number_of, percent
from cellrisk.web import requests
from cellrisk.web.answers import DASH, Given, between, describe_certainty, find_breaches
from cellrisk.web.boxes import known_as
from cellrisk.web.commands import write_commands
from cellrisk.web.jobs import Report
from cellrisk.web.sources import Origin
from cellrisk.web.words import TITLES

RULE = re.compile(
    r"cell-key(:[0-9.]{1,12}/[0-9.]{1,12})?|random-rounding:[0-9]{1,12}"
    r"|(suppress-below|round):[0-9]{1,12}(,(suppress-below|round):[0-9]{1,12})?"
)
"""What a request may name: rules alone, since any other text would be the path of a file on this machine."""
MOST_BYTES = 8_000_000
"""A table for every count up to 750 with 256 keys has two million."""
NOT_KNOWN = "A perturbation has no epsilon: no guarantee holds whatever an attacker knows."


def read_choice(choice: requests.PerturbationChoice, uploaded: Origin | None) -> Perturbation:
    """Return the perturbation that a request names: a rule, or a table that was uploaded."""
    if (choice.rule is None) == (uploaded is None):
        raise InvalidInput("name a rule or a table P(m -> r), one of the two", code="one-perturbation")
    if uploaded is None:
        if choice.rule is None or not RULE.fullmatch(choice.rule):
            allowed = NAMED.removesuffix(", or a CSV file")
            raise InvalidInput("is not known", option="perturbation", allowed=allowed, code="unknown-rule")
        if choice.suppress_below is not None:
            raise InvalidInput("a rule says itself what is left out", fix="write it as suppress-below:10,round:5")
        return cr.read_perturbation(choice.rule)
    path = str(uploaded.find())
    if uploaded.bytes > MOST_BYTES:
        raise InvalidInput("the table P(m -> r) is too large", allowed=f"up to {MOST_BYTES // 10**6} MB")
    below = "" if choice.suppress_below is None else f",suppress-below:{choice.suppress_below}"
    with known_as(path, uploaded.name):
        made = cr.read_perturbation(path + below)
    return replace(made, name=made.name.replace(path, uploaded.name).replace(Path(path).name, uploaded.name))


def assess_given(report: Report, given: Given, asked: requests.Setting) -> dict[str, Any]:
    """What a perturbation reveals, and whether the limits and the policies are kept."""
    report("computing the risks", None)
    perturbation, records = given.perturbation, given.table.n_records
    if perturbation is None:
        raise InvalidInput("name a perturbation", code="no-perturbation")
    delta = given.delta(asked.mechanism, asked.delta) or None
    assessment = cr.assess_perturbation(given.table, perturbation, compare=asked.mechanism, delta=delta)
    result = assessment.to_dict()
    [decision] = result["decision"]
    limited, broken = bool(asked.limits) or bool(given.policies), list(find_breaches(given, asked))
    verdict = "No limit is set." if not limited else "Not within the limits." if broken else "Within the limits."
    caused, exposed = decision["caused"]["share"], decision["people"]["mean"] / records
    summary = f"{percent(caused)} of people revealed because of their own record, {percent(exposed)} revealed"
    return {
        "name": perturbation.name,
        "sentence": assessment.headline,
        "described": f"{perturbation.describe()}. {NOT_KNOWN}",
        "figures": _list_figures(decision, records),
        "rows": [
            [*(TITLES.get(row[name], DASH) for name in ("measure", "weights", "form")), percent(row["risk"])]
            for row in result["risks"]
        ],
        "summary": summary,
        "kind": "" if not limited else "bad" if broken else "good",
        "verdict": verdict,
        "broken": broken,
        "policy": given.policies.describe(),
        "commands": write_commands(report, given, asked),
        "result": result,
    }


def _list_figures(decision: dict[str, Any], records: int) -> list[list[str]]:
    """Rows of label, value, remark and kind."""
    caused, exposed, ceiling = decision["caused"], decision["people"], decision["ceiling"]
    sure = describe_certainty(decision, records)
    hidden = "their own record hides people" if caused["people"] < 0 else number_of(caused["people"], "person")
    worst = " and ".join(f"{count:,}" for count in ceiling["worst_counts"])
    at_worst = f"an attacker who knows every other record is right at most, at worst if {worst} others have two values"
    interval, share = between(exposed["low"], exposed["high"]), percent(exposed["mean"] / records)
    distance = percent(decision["equal_risk"][0]["distance"])
    return [
        ["Because of their own record", percent(caused["share"]), hidden, "first caused"],
        ["Inferred, 95% sure", *sure, "sure"],
        ["Revealed: own value", share, interval, "exposed"],
        ["Worst case for one record", share_at_most(ceiling["even_two"]), at_worst],
        ["Revealed by the table as it is", percent(decision["raw_share"]), "published as it is"],
        ["Distance from the true table", distance, "of the records"],
    ]
