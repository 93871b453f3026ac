"""The risks of a table that is published with a perturbation: cell keys, rounding or suppression, without an epsilon.

Every risk is a function of counts and of a channel, and a perturbation has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import require_table
from cellrisk.noise.mechanisms import USUAL_MECHANISM
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.assessment import Risk
from cellrisk.risk.attacks import Confidence, choose_risks, find_confidence
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import (
    USUAL_BELIEF,
    USUAL_CERTAINTY,
    ConfidentInferences,
    CountPrior,
    find_certainty,
    why_unknown,
)
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import average_risks
from cellrisk.risk.people import People, count_people
from cellrisk.risk.perturbed.ceiling import find_ceiling
from cellrisk.risk.perturbed.equal_risk import EqualRisk, find_equal_caused, find_equal_certainty
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors
from cellrisk.system.checks import require_kind
from cellrisk.system.results import Result

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["EqualRisk", "PerturbedAssessment", "PerturbedFigures", "assess_perturbation", "find_ceiling"]


@dataclass(frozen=True)
class PerturbedFigures:
    """The figures of one sensitive attribute."""

    sensitive: str
    records: int
    caused: float
    """People revealed because of their own record. A perturbation can also hide somebody because of their own record,
    so it may be negative."""
    people: People
    certainty: tuple[ConfidentInferences, ...]
    unknown: str | None
    belief: CountPrior | None
    ceiling: float
    """The worst case of two equally likely values, at the worst counts of all others."""
    worst_counts: tuple[int, int]
    """The two counts at which it is reached."""
    confidence: Confidence
    raw_share: float
    equal: tuple[EqualRisk, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "sensitive": self.sensitive,
            "caused": {"people": self.caused, "share": self.caused / self.records},
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": {"even_two": self.ceiling, "worst_counts": list(self.worst_counts)},
            "people": vars(self.people),
            "raw_share": self.raw_share,
            "equal_risk": [equal.to_dict() for equal in self.equal],
        }
        if self.unknown is not None:
            found["certainty_unknown"] = self.unknown
        return found


@dataclass(frozen=True, repr=False)
class PerturbedAssessment(Result):
    """The answer of `assess_perturbation`."""

    wording = "perturbed_assessment"
    picture = "draw_equal_risk"

    table: FrequencyTable
    perturbation: Perturbation
    risks: tuple[Risk, ...]
    figures: tuple[PerturbedFigures, ...]
    fitted: Mapping[str, Fitted]

    def largest_risk(self, of_rows: bool) -> tuple[float, str]:
        """The largest of the risks that were asked for, or else of the expected shares of people; and its name."""
        if of_rows:
            return max((row.risk, f"{row.measure} {row.form}") for row in self.risks)
        return max((each.people.mean / each.records, f"expected share for {each.sensitive}") for each in self.figures)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "perturbation": self.perturbation.to_dict(),
            "risks": [vars(row) for row in self.risks],
            "decision": [each.to_dict() for each in self.figures],
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [vars(row) for row in self.risks]


def assess_perturbation(
    table: FrequencyTable,
    perturbation: str | Perturbation,
    *,
    measures: str | Sequence[str] | None = None,
    forms: str | Sequence[str] | None = None,
    weights: str | Sequence[str] | None = None,
    priors: Priors = USUAL_PRIORS,
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    compare: str | None = USUAL_MECHANISM,
    delta: float | None = None,
) -> PerturbedAssessment:
    """Return what can be learnt from this table if it is published with cell keys, rounding or suppression.

    Parameters
    ----------
    table
        Made by `tabulate`.
    perturbation
        A rule or a file, as `read_perturbation` reads it: ``"random-rounding:3"``, ``"cell-key"``,
        ``"suppress-below:10,round:5"``, or the path of a table P(m -> r).
    measures, forms, weights, priors, certainty, belief
        As in `assess`.
    compare
        The mechanism whose epsilons of no more risk are searched; None for no comparison.
    delta
        Its delta, where it takes one.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = assess_perturbation(table, "random-rounding:3", measures="local", compare=None)
    >>> round(found.figures[0].ceiling, 6), found.figures[0].worst_counts
    (0.777778, (0, 2))
    """
    require_table(table)
    require_kind("priors", priors, Priors)
    made = read_perturbation(perturbation)
    asked = choose_risks("homogeneity", measures, forms, weights)
    attacker = Attacker.of(certainty, belief)
    channel = made.channel
    limit, counts = find_ceiling(made)
    risks, figures, fitted = [], [], {}
    for name in table.sensitive:
        attribute = table.attribute(name)
        profiles = attribute.profiles
        made.check_reach(max(int(block.counts.max()) for block in profiles.blocks))
        fitted[name] = priors.fit(attribute, asked.measures)
        chosen = asked.make(fitted[name].measure)
        for measure, form, weight, values in average_risks(profiles, chosen, channel, asked.forms, asked.weights):
            risks.append(Risk(name, "homogeneity", measure, form, weight, float(values[0])))
        unknown = why_unknown(attribute)
        believed = None if unknown else attacker.believe(attribute)
        sure: tuple[ConfidentInferences, ...] = ()
        if believed is not None:
            sure = find_certainty(attribute, made.channel, attacker.certainties, believed)
        caused = profiles.n_records * float(caused_shares(profiles, channel)[0])
        equal = [] if compare is None else [find_equal_caused(profiles, made, caused, compare, delta)]
        if compare is not None and sure and believed is not None:
            equal.append(find_equal_certainty(attribute, made, sure[-1], believed, compare, delta))
        figures.append(
            PerturbedFigures(
                sensitive=name,
                records=profiles.n_records,
                caused=caused,
                people=count_people(profiles, made.channel),
                certainty=sure,
                unknown=unknown,
                belief=believed,
                ceiling=limit,
                worst_counts=counts,
                confidence=find_confidence(profiles, channel)[0],
                raw_share=attribute.exposed_share,
                equal=tuple(equal),
            )
        )
    return PerturbedAssessment(table, made, tuple(risks), tuple(figures), fitted)
