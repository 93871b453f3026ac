"""A perturbation in the place of a mechanism: read from a request, assessed, and written down, in a worker process."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from cellrisk.counts.table import FrequencyTable
from cellrisk.decide.limits import RiskDefinition, read_limits
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import NAMED, Perturbation, read_perturbation
from cellrisk.risk.perturbed import NOT_TOLD, EqualRisk, assess_perturbation
from cellrisk.system.text import make_sentence
from cellrisk.web.boxes import hide_path, known_as, name_boxes
from cellrisk.web.jobs import TellProgress
from cellrisk.web.recipes import Recipe, find_delta, narrow
from cellrisk.web.work import Written, write_report

RULE = re.compile(
    r"cell-key(:[0-9.]{1,12}/[0-9.]{1,12})?|random-rounding:[0-9]{1,12}"
    r"|(suppress-below|round):[0-9]{1,12}(,(suppress-below|round):[0-9]{1,12})?"
)
"""What a request may name: rules alone, since any other text would be the path of a file on this machine."""
RULES = NAMED.removesuffix(", or a CSV file")
MOST_BYTES = 8_000_000
"""A table for every count up to 750 with 256 keys has two million."""
FIGURES = ("max_caused", "max_certain", "max_ceiling")
RISKS = ("max_risk", "max_people")


@dataclass(frozen=True)
class GivenPerturbation:
    """A perturbation as a request names it: a rule, or a file that was uploaded."""

    rule: str | None
    path: str | None = None
    name: str | None = None
    """What the user calls the file."""
    suppress_below: int | None = None

    def __post_init__(self) -> None:
        if (self.rule is None) == (self.path is None):
            raise InvalidInput("name a rule or a table P(m -> r), one of the two")
        if self.rule is not None and not RULE.fullmatch(self.rule):
            raise InvalidInput("the rule is not known", allowed=RULES, fix="write it into the box “Rule”")
        if self.rule is not None and self.suppress_below is not None:
            raise InvalidInput(
                "a rule says itself what is left out", fix="write it into the box “Rule”: suppress-below:10,round:5"
            )

    @property
    def written(self) -> str:
        """As the command line and Python take it, by the user's own name of the file."""
        return self.rule or self._with_threshold(self.name or "")

    def _with_threshold(self, file: str) -> str:
        return file if self.suppress_below is None else f"{file},suppress-below:{self.suppress_below}"

    def read(self) -> Perturbation:
        if self.path is None:
            return read_perturbation(str(self.rule))
        name = str(self.name)
        try:
            if Path(self.path).stat().st_size > MOST_BYTES:
                raise InvalidInput("the table P(m -> r) is too large", allowed=f"up to {MOST_BYTES // 10**6} MB")
            with known_as(self.path, name):
                made = read_perturbation(self._with_threshold(self.path))
        except OSError:
            raise InvalidInput("the table P(m -> r) is no longer there", fix="upload it again") from None
        return replace(made, name=hide_path(made.name, self.path, name))


@lru_cache(maxsize=4)
def read_given(given: GivenPerturbation) -> Perturbation:
    """The perturbation that is asked about again and again: an upload does not change."""
    return given.read()


def assess_given(
    report: TellProgress,
    table: FrequencyTable,
    given: GivenPerturbation,
    policy: Policies,
    commands: dict[str, str],
    **asked: Any,
) -> dict[str, Any]:
    """What a perturbation gives away, and whether the limits and the policies are kept, as `assess` tells it."""
    report("computing the risks", None)
    narrowed, made = narrow(table, asked["sensitive"]), read_given(given)
    delta = find_delta(asked["mechanism"], asked["delta"], table.n_records)
    found = assess_perturbation(narrowed, made, compare=asked["mechanism"], delta=delta or None)
    (figures,) = found.figures
    broken = [*_break_limits(narrowed, made, asked), *policy.breaches(narrowed, made)]
    return {
        "name": made.name,
        "described": f"{made.describe()}.",
        "sentence": found.headline,
        "not_told": NOT_TOLD,
        "decision": figures.to_dict(),
        "risks": [
            {"measure": row.measure, "form": row.form, "weights": row.weights, "risk": row.risk} for row in found.risks
        ],
        "equal": [_describe_equal(each) for each in figures.equal],
        "limited": bool(policy) or any(asked[name] is not None for name in (*FIGURES, *RISKS)),
        "broken": [name_boxes(make_sentence(words.rstrip("."))) for words in dict.fromkeys(broken)],
        "policy": policy.describe(),
        "commands": commands,
    }


def _break_limits(table: FrequencyTable, made: Perturbation, asked: dict[str, Any]) -> list[str]:
    """The limits of the page that are not kept."""
    risk = RiskDefinition(asked["measure"], asked["form"], asked["weights"])
    limits = read_limits(**{name: asked[name] for name in (*FIGURES, *RISKS)}, risk=risk)
    found = [limit.breach(table.attributes, made) for limit in limits]
    return [f"asked for was {words}" for words in found if words is not None]


def _describe_equal(equal: EqualRisk) -> dict[str, Any]:
    return {
        "by": equal.by,
        "mechanism": equal.mechanism,
        "figure": equal.figure,
        "epsilon": equal.epsilon,
        "ranges": [list(each) for each in equal.ranges],
        "distance": equal.distance,
        "mechanism_distance": equal.mechanism_distance,
        "sentence": equal.sentence(),
        "epsilons": [epsilon for epsilon, _ in equal.scanned],
        "people": [people for _, people in equal.scanned],
    }


def report_given(
    report: TellProgress, table: FrequencyTable, recipe: Recipe, folder: str, given: GivenPerturbation, **asked: Any
) -> Written:
    """The report for a board on a perturbation, as the command line writes it."""
    asked["delta"] = find_delta(asked["mechanism"], asked["delta"], table.n_records) or None
    return write_report(report, table, recipe, folder, perturbation=read_given(given), **asked)
