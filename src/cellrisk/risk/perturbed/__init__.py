"""What a table gives away that is published with a perturbation, and no epsilon: every measure, and what to decide by.

Nothing here asks for a guarantee. A measure needs q(m) and s(m) alone, and the rest the rows P(m -> r).
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
from cellrisk.risk.ceilings import say_most
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief, NamedPeople, why_unknown
from cellrisk.risk.certainty.named_people import say_named
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import average_risks
from cellrisk.risk.people import People, count_people
from cellrisk.risk.perturbed.certainty import find_perturbed_certainty, why_unsure
from cellrisk.risk.perturbed.equal_risk import EqualRisk, find_equal_caused, find_equal_certainty
from cellrisk.risk.perturbed.figures import find_ceiling, say_ceiling, sum_caused
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors
from cellrisk.system.checks import require_kind
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, about_people, aligned, of_people, percent

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["EqualRisk", "PerturbedAssessment", "PerturbedFigures", "assess_perturbation", "find_ceiling", "sum_caused"]


@dataclass(frozen=True)
class PerturbedFigures:
    """What to decide by, of one sensitive attribute."""

    sensitive: str
    records: int
    caused: float
    """People read off correctly who would not be, had their record been left out, less those of whom it is the other
    way round: a perturbation can hide somebody because of his own record, so that it may be negative."""
    people: People
    certainty: tuple[NamedPeople, ...]
    unknown: str | None
    belief: Belief | None
    ceiling: float
    """The worst case of two equally likely values, at the worst counts of all others."""
    worst_counts: tuple[int, int]
    """The two counts that can be told apart so often."""
    confidence: Confidence
    raw_share: float
    equal: tuple[EqualRisk, ...] = ()

    @property
    def worst_case(self) -> str:
        """The ceiling in percent, never too low."""
        return f"{say_most(self.ceiling)}%"

    def sentence(self, name: str) -> str:
        """The figures for somebody who reads nothing else."""
        caused = abs(self.caused)
        own = of_people(caused, self.records)
        read = f"have their {self.sensitive} read off the table correctly"
        if self.caused >= 0:
            told = f"With {name}, {own} would {read} only because their own record is in it; "
        else:
            told = f"With {name}, {own} more would {read} were their own record left out; "
        parts = [
            f"{told}{about_people(self.people.mean)} ({percent(self.people.mean / self.records)}) would at all, and "
            f"the raw table exposes {percent(self.raw_share)}."
        ]
        if self.certainty:
            parts.append(say_named(self.sensitive, self.certainty[-1].people, self.certainty[-1].certainty))
        parts.append(say_ceiling(self.ceiling, self.worst_counts))
        return " ".join([*parts, *(each.sentence() for each in self.equal)])

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "sensitive": self.sensitive,
            "caused": {"people": self.caused, "share": self.caused / self.records},
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": {"even_two": self.ceiling, "worst_counts": list(self.worst_counts)},
            "people": vars(self.people),
            "raw_share": self.raw_share,
            "equal_risk": [each.to_dict() for each in self.equal],
        }
        if self.unknown is not None:
            found["certainty_unknown"] = self.unknown
        return found


@dataclass(frozen=True, repr=False)
class PerturbedAssessment(Result):
    """The answer of `assess_perturbation`."""

    picture = "draw_equal_risk"

    table: FrequencyTable
    perturbation: Perturbation
    risks: tuple[Risk, ...]
    figures: tuple[PerturbedFigures, ...]
    fitted: Mapping[str, Fitted]

    @property
    def headline(self) -> str:
        return "\n".join(each.sentence(self.perturbation.name) for each in self.figures)

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

    def _paragraphs(self) -> list[str]:
        parts = [f"{self.perturbation.describe()}. {NOT_TOLD}"]
        for each in self.figures:
            lines = [
                f"{each.sensitive}: with {100 * row.certainty:g}% certainty or more {row.people} named rightly, "
                f"of {round(row.named):,} named."
                for row in each.certainty
            ]
            if each.unknown is not None:
                lines.append(f"What an attacker could be sure of is not computed: {each.unknown}.")
            lines.append(f"People exposed: {each.people.describe()}.")
            rows = [
                [row.measure, row.weights or "-", row.form, f"{row.risk:.4f}"]
                for row in self.risks
                if row.sensitive == each.sensitive
            ]
            lines.append(aligned(["measure", "weights", "form", "risk"], rows, left=3))
            parts.append("\n".join(lines))
        return [*parts, CURATOR_NOTE]


NOT_TOLD = (
    "It has no epsilon, so there is no curve, no entry in a ledger and no bound by a guarantee. One publication is "
    "assessed: repeated ones can be averaged unless they repeat the same perturbation, and overlapping ones compared."
)


def assess_perturbation(
    table: FrequencyTable,
    perturbation: str | Perturbation,
    *,
    measures: str | Sequence[str] | None = None,
    forms: str | Sequence[str] | None = None,
    weights: str | Sequence[str] | None = None,
    priors: Priors = USUAL_PRIORS,
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF,
    compare: str | None = USUAL_MECHANISM,
    delta: float | None = None,
) -> PerturbedAssessment:
    """What can somebody learn from this table, if it is published with cell keys, rounding or suppression?

    Parameters
    ----------
    table
        Made by `tabulate`.
    perturbation
        A rule or a file, as `read_perturbation` reads it: ``"random-rounding:3"``, ``"cell-key"``,
        ``"suppress-below:10,round:5"``, or the path of a table P(m -> r).
    measures, forms, weights, priors, certainty, belief
        As in `assess`; the belief "table" is exact here, whatever the number of labels.
    compare
        The mechanism whose epsilons with no more risk are looked for; None for no comparison.
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
        unknown = unknown or why_unsure(attribute, made, believed)
        sure: tuple[NamedPeople, ...] = ()
        if believed is not None and unknown is None:
            sure = find_perturbed_certainty(attribute, made, attacker.certainties, believed)
        caused = sum_caused(profiles, made)
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
