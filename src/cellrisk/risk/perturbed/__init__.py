"""The risks of a table that is published with a perturbation: cell keys, rounding or suppression, without an epsilon.

Every risk is a function of counts and of a channel, and a perturbation has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from cellrisk.counts.table import require_table
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.assessment import AttributeFigures, TableRisks
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attacks import choose_risks
from cellrisk.risk.ceilings import find_advantage, find_ceiling
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior, certain_shares
from cellrisk.risk.people import caused_shares
from cellrisk.risk.perturbed.equal_risk import EqualRisk, find_equal_risk
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.risk.sweep import LEAST_EPSILON
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_kind
from cellrisk.system.choices import MechanismName

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["EqualRisk", "PerturbedAssessment", "PerturbedFigures", "assess_perturbation", "find_ceiling"]


@dataclass(frozen=True, eq=False)
class PerturbedFigures(AttributeFigures):
    """The figures of one sensitive attribute."""

    compare: Mechanism | None = None
    """The mechanism whose epsilons of no more risk are searched."""

    @cached_property
    def caused(self) -> float:
        """People revealed because of their own record. A perturbation can also hide a person because of their own
        record, so it may be negative."""
        return self.records * float(caused_shares(self.attribute.profiles, self.method.channel)[0])

    @cached_property
    def worst_case(self) -> tuple[float, tuple[int, int]]:
        """The worst case of two equally likely values, and the two counts of all others at which it is reached."""
        return find_ceiling(cast(Perturbation, self.method))

    @property
    def ceiling(self) -> float:
        return self.worst_case[0]

    @property
    def worst_counts(self) -> tuple[int, int]:
        return self.worst_case[1]

    @cached_property
    def advantage(self) -> float:
        """What one record adds to any attack at most: the largest distance between the rows of a count and the next."""
        return find_advantage(cast(Perturbation, self.method))

    @cached_property
    def equal(self) -> tuple[EqualRisk, ...]:
        """The comparisons at equal risk, by caused and by certainty; empty if there is no mechanism to compare with."""
        if self.compare is None:
            return ()
        attribute, sure, belief = self.attribute, self.attacker.certainties[-1], self.belief
        profiles, channel = attribute.profiles, self.method.channel

        def count_caused(other: CountChannel) -> Floats:
            return self.records * caused_shares(profiles, other)

        found = [find_equal_risk(profiles, channel, "caused", self.caused, self.compare, count_caused)]
        if belief is not None:

            def count_certain(other: CountChannel) -> Floats:
                return self.records * certain_shares(attribute, other, sure, belief)

            figure = self.certainty[-1].right
            found.append(find_equal_risk(profiles, channel, "certainty", figure, self.compare, count_certain))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        return {
            "sensitive": self.sensitive,
            "caused": {"people": self.caused, "share": self.caused / self.records},
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": {"even_two": self.ceiling, "worst_counts": list(self.worst_counts)},
            "people": vars(self.people),
            "raw_share": self.raw_share,
            "equal_risk": [equal.to_dict() for equal in self.equal],
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
        }


@dataclass(frozen=True, repr=False)
class PerturbedAssessment(TableRisks):
    """The answer of `assess_perturbation`."""

    wording = "assessment"
    picture = "draw_equal_risk"

    compare: Mechanism | None = None
    """The mechanism whose epsilons of no more risk are searched."""

    @property
    def perturbation(self) -> Perturbation:
        return cast(Perturbation, self.method)

    @cached_property
    def figures(self) -> tuple[PerturbedFigures, ...]:
        """The figures of each sensitive attribute."""
        how = self.method, self.attacker, "homogeneity", self.compare
        return tuple(PerturbedFigures(attribute, *how) for attribute in self.table.attributes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "unit": self.table.unit.to_dict(),
            "perturbation": self.perturbation.to_dict(),
            "risks": self._numbers(),
            "decision": [figures.to_dict() for figures in self.figures],
            **self._attackers(),
            "headline": self.headline,
        }


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
    compare: MechanismName | None = USUAL_MECHANISM,
    delta: float | None = None,
) -> PerturbedAssessment:
    """Return what an attacker learns from this table if it is published with cell keys, rounding or suppression.

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
        Its delta, if it takes one.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = assess_perturbation(table, "random-rounding:3", measures="local", compare=None)
    >>> round(found.figures[0].ceiling, 6), found.figures[0].worst_counts
    (0.777778, (0, 2))
    """
    require_table(table, single="the risks of a perturbation")
    require_kind("priors", priors, Priors)
    made = read_perturbation(perturbation)
    asked = choose_risks("homogeneity", measures, forms, weights)
    attacker = Attacker.of(certainty, belief)
    attacker.check(table.attributes)
    for attribute in table.attributes:
        made.check_reach(max(int(block.counts.max()) for block in attribute.profiles.blocks))
        priors.check(attribute, asked.measures)
    compared = None if compare is None else read_mechanism(compare, epsilon=LEAST_EPSILON, delta=delta)
    return PerturbedAssessment(table, made, asked, priors, attacker, compared)
