"""Questions about a table, answered in worker processes: numbers from the library's results, and texts for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import cellrisk as cr
from cellrisk.decide.policies import DELTA_FROM_RECORDS, Policies
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import LARGEST_CLASSICAL, MECHANISMS
from cellrisk.risk.attackers.attacker import Attacker, find_setting_figures
from cellrisk.risk.explanation.risky_cells import CellRisks
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, usual_delta
from cellrisk.show.wording import attackers as wording
from cellrisk.show.wording.limits import name_metric
from cellrisk.system.formatting import claim, make_sentence, percent, show_spans
from cellrisk.web.fields import Setting
from cellrisk.web.jobs import Report
from cellrisk.web.tables import Recipe, tabulate_with_keys

POINTS, CERTAINTY_POINTS = 121, 41
DASH = "\N{EN DASH}"
NOISE = (
    "As epsilon falls, “revealed” tends to {}: noise itself then shows single values in groups, and some of them are "
    "right by chance. “Because of their own record” leaves that out."
)
NO_LIMIT = "No limit is set: this is what each epsilon costs, and nothing is recommended."


@dataclass(frozen=True)
class Given:
    """What a question is about: a table of one sensitive attribute, without keys, and what the server was told."""

    recipe: Recipe
    table: cr.FrequencyTable
    policies: Policies
    ledger: str | None = None
    releases: str = ""
    """The folder of releases that the ledger records."""

    @property
    def sensitive(self) -> str:
        return self.table.sensitive[0]

    @property
    def keyed(self) -> cr.FrequencyTable:
        """The same table, whose cells can be read."""
        return tabulate_with_keys(self.recipe, self.sensitive)

    def delta(self, name: str, delta: float | None) -> float:
        """The delta of a mechanism: none if it takes none, the usual one if none was given."""
        if MECHANISMS[name].pure:
            return 0.0
        return usual_delta(self.table.n_records) if delta is None else delta

    def deltas(self, name: str) -> list[float]:
        """The deltas that the page offers: the usual one first, then ten and a hundred times smaller."""
        if MECHANISMS[name].pure:
            return [0.0]
        return [float(f"{usual_delta(self.table.n_records) / factor:.1g}") for factor in (1, 10, 100)]

    def remarks(self, asked: Setting) -> list[str]:
        """What a delta that was offered from the number of records reveals."""
        offered = not MECHANISMS[asked.mechanism].pure and asked.delta in (None, *self.deltas(asked.mechanism))
        return [DELTA_FROM_RECORDS] if offered else []

    def mechanism(self, asked: Setting) -> cr.Mechanism:
        delta = self.delta(asked.mechanism, asked.delta)
        made = cr.mechanism(asked.mechanism, epsilon=asked.epsilon, delta=delta, neighbours=asked.neighbours)
        return made.with_unit(self.table.unit)


def slider(points: int, mechanism: str = "geometric") -> list[float]:
    """Return the epsilons of a slider, as far as the mechanism's guarantee goes: evenly spaced in the logarithm, and
    short enough to be printed as they are.

    >>> slider(6), slider(6, "gaussian")
    ([0.001, 0.01, 0.1, 1.0, 10.0, 100.0], [0.001, 0.01, 0.1])
    """
    spaced = {float(f"{epsilon:.3g}") for epsilon in np.geomspace(LEAST_EPSILON, LARGEST_EPSILON, points)}
    return sorted(epsilon for epsilon in spaced if mechanism != "gaussian" or epsilon <= LARGEST_CLASSICAL)


def make_line(values: Sequence[float], write: Any = percent) -> dict[str, Any]:
    """Return a line of a chart: its values, and each as it is shown."""
    return {"values": list(values), "texts": [write(value) for value in values]}


def find_positions(report: Report, given: Given, asked: Setting) -> dict[str, Any]:
    """Return every position of the slider: risks, the worst case, and the error of a count in a sentence.

    Attacks and intervals take longer: `trace_attacks` and `find_figures`.
    """
    epsilons, deltas = slider(POINTS, asked.mechanism), given.deltas(asked.mechanism)
    along: Any = {"epsilon": epsilons, "delta": deltas, "measures": [asked.measure, "ceiling"]}
    along |= {"neighbours": asked.neighbours, "progress": partial(report, "computing the risks")}
    rows = cr.curve(given.table, asked.mechanism, **along).to_dict()["risks"]
    return {
        "epsilons": epsilons,
        "epsilon_texts": [claim(epsilon) for epsilon in epsilons],
        "deltas": [None if MECHANISMS[asked.mechanism].pure else delta for delta in deltas],
        "delta_texts": [claim(delta) for delta in deltas],
        "by_delta": [_describe_delta(given, asked, [row for row in rows if row["delta"] == delta]) for delta in deltas],
    }


def _describe_delta(given: Given, asked: Setting, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The lines of one delta: for each weighting and form, the risk; and the figures to decide by."""
    found: dict[str, Any] = {}
    for weights in ("records", "uniform"):
        own = [row for row in rows if row["measure"] == asked.measure and row["weights"] in (weights, None)]
        forms = {form: [row for row in own if row["form"] == form] for form in ("tight", "exact", "published")}
        tight = forms["tight"][0]
        found[weights] = {form: make_line([row["risk"] for row in lines]) for form, lines in forms.items()}
        found[weights] |= {name: {"value": tight[name], "text": percent(tight[name])} for name in ("chance", "raw")}
        smallest = min(min(line["values"]) for line in found[weights].values() if "values" in line)
        found[weights]["note"] = NOISE.format(percent(tight["chance"])) if tight["chance"] > 1.05 * smallest else ""
    ceilings = [row for row in rows if row["measure"] == "ceiling"]
    found["ceiling"] = make_line([row["even_two"] for row in ceilings], wording.share_at_most)
    settings = (asked.model_copy(update={name: row[name] for name in ("epsilon", "delta")}) for row in ceilings)
    found["sentences"] = [wording.accuracy(given.mechanism(setting)) for setting in settings]
    return found


def trace_attacks(report: Report, given: Given, asked: Setting) -> dict[str, Any]:
    """What attacks reveal at each position of the slider: because of the own record, inferred, and of one person.

    It is computed at a third of the positions; lines are straight from point to point, along the logarithm.
    """
    at = slider(CERTAINTY_POINTS, asked.mechanism)

    def list_mechanisms() -> Iterator[cr.Mechanism]:
        for place, epsilon in enumerate(at):
            report("assessing the attacks", place / len(at))
            yield given.mechanism(asked.model_copy(update={"epsilon": epsilon}))

    attribute = given.table.attribute(given.sensitive)
    try:
        rows = find_setting_figures(attribute, Attacker(), list_mechanisms())[:-1]
    except CellriskError as refusal:
        return {"unknown": f"What attacks reveal is not computed: {refusal}."}
    if not rows:
        return {"unknown": "What attacks reveal is not computed: the groups have too many categories."}

    def trace(values: list[float]) -> dict[str, Any]:
        return make_line(np.interp(np.log(slider(POINTS, asked.mechanism)), np.log(at), values).tolist(), wording.share)

    return {
        "unknown": None,
        "own": trace([row.own / row.people for row in rows]),
        "sure": trace([(row.inferred or 0.0) / row.people for row in rows]),
        "most": trace([row.most or 0.0 for row in rows]),
    }


def find_figures(report: Report, given: Given, asked: Setting) -> dict[str, Any]:
    """The figures to decide by at one epsilon, with their intervals, as `assess` gives them."""
    from cellrisk.show.pictures import draw_icons, to_svg

    report("counting the people", None)
    assessment = cr.assess(given.table, given.mechanism(asked), measures="local", **asked.attacker)
    result = assessment.to_dict()
    name = given.table.revealed_name
    low, high = (result[name][given.sensitive][end] for end in ("low", "high"))
    tables = assessment.attackers[given.sensitive][-1:]
    advantage = next((row["most"] for row in result["attackers"] if row["attack"] == "any"), None)
    categories = given.table.attribute(given.sensitive).levels.labels
    now, icons = f"epsilon {claim(asked.epsilon)}", None
    notes = [wording.people_above(table) for table in tables]
    notes += [wording.learnt(table, given.sensitive, categories) for table in tables if table.prior is not None]
    if tables:
        picture = draw_icons(tables[0], given.sensitive, now)
        icons = {"svg": to_svg(picture), "words": wording.say_icons(tables[0], given.sensitive, now)}
    attacks = [wording.attack_rows(table, wording.shown_attacks(table), advantage) for table in tables]
    setting = f"At {assessment.mechanism.guarantee}"
    sentence = wording.strongest(tables[0], given.sensitive, setting) if tables else assessment.headline
    return {
        "epsilon": asked.epsilon,
        "sentence": sentence,
        "head": ["blind", now, "no noise", f"own record, {now}", "no noise", "one person"],
        "attacks": [row for rows in attacks for row in rows],
        "notes": notes,
        "icons": icons,
        "exposed": "" if low is None else f"95% of releases: {low:,} to {high:,} {name}",
        "result": result,
    }


def find_admissible(report: Report, given: Given, asked: Setting) -> dict[str, Any]:
    """The epsilons that keep the limits, and every policy in force."""
    report("looking for the epsilons that keep the limits", None)
    progress = partial(report, "looking for epsilon")
    choice = cr.choose(given.table, asked.mechanism, **asked.limits, **_choosing(given, asked), progress=progress)
    result = choice.to_dict()
    intervals, why = result["admissible"], make_sentence(result["why"])
    if result["epsilon"] is not None:
        kind, verdict = "good", f"Admissible: epsilon {show_spans(intervals)}"
    else:
        kind, verdict = ("", "Nothing is recommended.") if intervals else ("bad", "No epsilon is admissible.")
    return {
        "epsilon": result["epsilon"],
        "intervals": intervals,
        "kind": kind,
        "verdict": verdict,
        "lines": [choice.headline, why] if kind == "good" else [why],
        "policy": given.policies.describe(),
        "result": result,
    }


def _choosing(given: Given, asked: Setting) -> dict[str, Any]:
    """The arguments of `choose` that are not limits."""
    return {
        **asked.risk,
        **asked.attacker,
        "delta": given.delta(asked.mechanism, asked.delta),
        "neighbours": asked.neighbours,
        "policy": given.policies,
    }


def draw_map(report: Report, given: Given, asked: Setting) -> dict[str, Any]:
    """What is limited and usefulness along epsilon, and the choice between them."""
    limits = dict(asked.limits)
    limited = bool(limits) or bool(given.policies)
    report("simulating releases", 0.0)

    def write_point(point: dict[str, Any]) -> list[str]:
        tvd = DASH if point["tvd"] is None else f"{point['tvd']:.3f}"
        return [f"{point['epsilon']:.3g}", percent(point["value"]), tvd]

    how = {**_choosing(given, asked), **(limits if limited else {"max_risk": 1.0})}
    how["max_tvd"] = 1.0 if asked.max_tvd is None else asked.max_tvd  # a limit of 1 has releases simulated
    choice = cr.choose(given.keyed, asked.mechanism, **how, progress=partial(report, "simulating releases"))
    result, name = choice.to_dict(), name_metric(choice.shown)
    values = choice.shown_at(np.array([mark["epsilon"] for mark in result["alternatives"]])).tolist()
    marks = [{**mark, "value": value} for mark, value in zip(result["alternatives"], values, strict=True)]
    points: list[dict[str, Any]] = []
    if choice.trade_off is not None:
        values = choice.shown_at(choice.trade_off.epsilon).tolist()
        points = [{**p, "value": value} for p, value in zip(result["trade_off"]["points"], values, strict=True)]
    epsilon = result["epsilon"]
    recommended = "No epsilon is recommended." if epsilon is None else f"Epsilon {epsilon:.3g} keeps the limits."
    return {
        "points": [
            {**point, "texts": [f"epsilon {epsilon}", f"{name} {value}", f"distortion {tvd}"]}
            for point, (epsilon, value, tvd) in ((point, write_point(point)) for point in points)
        ],
        "marks": [mark for mark in marks if mark["tvd"] is not None],
        "rows": [[mark["role"], *write_point(mark)] for mark in marks],
        "name": name,
        "limit": choice.shown.maximum if limited and choice.shown in choice.kept_limits else None,
        "sentence": NO_LIMIT if not limited else choice.headline if asked.max_tvd is not None else recommended,
    }


def find_riskiest(report: Report, given: Given, asked: Setting) -> dict[str, Any]:
    """The riskiest groups, with their keys: raw data, for the curator."""
    report("reading the groups", None)
    cells = given.keyed.cells(given.sensitive)
    riskiest = [vars(cell) for cell in CellRisks(cells, given.mechanism(asked).channel, "tight").riskiest(asked.top)]
    keys, whole = given.recipe.choice.quasi_identifiers, "{:,}".format
    numbers: dict[str, tuple[str, Any]] = {
        "people": ("records", whole),
        "values": ("levels", whole),
        "risk": ("risk", percent),
        "expected revealed": ("people", lambda people: "under 0.1" if 0 < people < 0.05 else f"{people:.1f}"),
    }
    return {
        "about": f"At epsilon {claim(asked.epsilon)}.",
        "words": list(keys),
        "numbers": list(numbers),
        "rows": [
            [*(cell["key"][name] for name in keys), *(write(cell[name]) for name, write in numbers.values())]
            for cell in riskiest
        ],
    }
