"""The risks of a table that is published with a perturbation: cell keys, rounding or suppression, without an epsilon.

Every risk is a function of counts and of a channel, and a perturbation has one. At equal risk are the epsilons at which
a mechanism reveals no more people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.counts.table import require_table
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.assessment import AttributeFigures, TableRisks
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attacks import choose_risks
from cellrisk.risk.ceilings import find_advantage, find_ceiling
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.risk.people import caused_shares
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.risk.sweep import LEAST_EPSILON
from cellrisk.system.checks import require_kind
from cellrisk.system.choices import MechanismName
from cellrisk.system.formatting import round_down, round_up
from cellrisk.system.results import find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

EPSILONS = np.geomspace(1e-3, 100.0, 401)
"""The epsilons at which a mechanism is compared."""
ROUNDING = 1e-16
"""A smaller distance is given as 0."""
EQUAL = 1e-9
"""Figures within this relative distance, or so much of a person, are equal."""


@dataclass(frozen=True)
class EqualRisk:
    """The epsilons at which homogeneity reveals no more people because of their own record, and how far counts move."""

    mechanism: str
    figure: float
    """The people whom the perturbation reveals so."""
    ranges: tuple[tuple[float, float], ...]
    """The epsilons at which the mechanism reveals no more people, ascending; empty if it reveals more at each."""
    distance: float
    """How far the perturbation moves the table: half the expected differences of counts, as a share of the records."""
    mechanism_distance: float | None
    """How far the mechanism moves it at ``epsilon``."""
    scanned: tuple[tuple[float, float], ...]
    """Epsilons that were compared, and the people revealed there."""

    @property
    def epsilon(self) -> float | None:
        """The largest of these epsilons, which has the least noise; None if there is none."""
        return self.ranges[-1][1] if self.ranges else None

    def to_dict(self) -> dict[str, Any]:
        named = {name: value for name, value in vars(self).items() if name != "scanned"}
        sentence = find_words("assessment").say_equal(self)
        return {**named, "epsilon": self.epsilon, "sentence": sentence}


def find_distance(profiles: Profiles, channel: CountChannel) -> float:
    """Return half the expected sum of |published - true| over groups that hold people, as a share of the records.

    The total variation distance of the two tables, but for the change of their total. Exact.
    """
    present = [(block.counts, np.repeat(block.cells, block.counts.shape[1])) for block in profiles.blocks]
    absent = profiles.n_levels * profiles.n_cells - sum(int(cells.sum()) for _, cells in present)
    counts, which = np.unique(np.concatenate([[0], *(part.ravel() for part, _ in present)]), return_inverse=True)
    numbers = np.bincount(which, np.concatenate([[absent], *(cells for _, cells in present)]))
    moved = np.empty(len(counts))
    for row, count in enumerate(counts.tolist()):
        values = channel.support(np.array([count]))
        moved[row] = channel.pmf(np.array([count]), values)[:, 0] @ np.abs(values - count)
    share = float(numbers @ moved) / (2.0 * profiles.n_records)
    return share if share > ROUNDING else 0.0


def find_equal_risk(profiles: Profiles, channel: CountChannel, mechanism: Mechanism) -> EqualRisk:
    """Return the epsilons at which the mechanism reveals no more people because of their own record than the channel.

    The ends of a range are bisected between two of the epsilons compared, and reveal no more.
    """

    def count(channel: CountChannel) -> Any:
        return profiles.n_records * caused_shares(profiles, channel)

    def bisect(inside: float, outside: float) -> float:
        """Return an epsilon that reveals no more, within a relative 1e-6 of one that does."""
        while max(inside, outside) > (1.0 + 1e-6) * min(inside, outside):
            middle = math.sqrt(inside * outside)
            keeps = float(count(mechanism.channel_at([middle]))[0]) <= most
            inside, outside = (middle, outside) if keeps else (inside, middle)
        return inside

    figure = float(count(channel)[0])
    most = figure + EQUAL * max(abs(figure), 1.0)
    people = count(mechanism.channel_at(EPSILONS))
    kept = people <= most
    ranges = []
    for first in np.flatnonzero(kept & ~np.r_[False, kept[:-1]]):
        last = first + int(np.argmin(np.r_[kept[first:], False])) - 1
        low, high = float(EPSILONS[first]), float(EPSILONS[last])
        if first:
            low = min(round_up(bisect(low, float(EPSILONS[first - 1]))), high)
        if last < len(EPSILONS) - 1:
            high = max(round_down(bisect(high, float(EPSILONS[last + 1]))), low)
        ranges.append((low, high))
    moved = find_distance(profiles, mechanism.with_epsilon(ranges[-1][1]).channel) if ranges else None
    scanned = tuple(zip(EPSILONS.tolist(), people.tolist(), strict=True))
    return EqualRisk(mechanism.name, figure, tuple(ranges), find_distance(profiles, channel), moved, scanned)


@dataclass(frozen=True, eq=False)
class PerturbedFigures(AttributeFigures):
    """The figures of one sensitive attribute."""

    method: Perturbation
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
        return find_ceiling(self.method)

    @cached_property
    def advantage(self) -> float:
        """What one record adds to any attack at most: the largest distance between the rows of a count and the next."""
        return find_advantage(self.method)

    @cached_property
    def equal(self) -> EqualRisk | None:
        """The comparison at equal risk; None if there is no mechanism to compare with."""
        if self.compare is None:
            return None
        return find_equal_risk(self.attribute.profiles, self.method.channel, self.compare)

    def to_dict(self) -> dict[str, Any]:
        return {
            "sensitive": self.sensitive,
            "caused": {"people": self.caused, "share": self.caused / self.records},
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": {"even_two": self.worst_case[0], "worst_counts": list(self.worst_case[1])},
            "people": vars(self.people),
            "raw_share": self.raw_share,
            "equal_risk": [] if self.equal is None else [self.equal.to_dict()],
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
        }


@dataclass(frozen=True, repr=False)
class PerturbedAssessment(TableRisks):
    """The answer of `assess_perturbation`."""

    wording = "assessment"
    picture = "draw_equal_risk"

    method: Perturbation
    compare: Mechanism | None = None
    """The mechanism whose epsilons of no more risk are searched."""

    @property
    def perturbation(self) -> Perturbation:
        return self.method

    @cached_property
    def figures(self) -> tuple[PerturbedFigures, ...]:
        """The figures of each sensitive attribute."""
        how = self.method, self.attacker, "homogeneity", self.compare
        return tuple(PerturbedFigures(attribute, *how) for attribute in self.table.attributes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "unit": self.table.unit.to_dict(),
            "perturbation": self.method.to_dict(),
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
    >>> most, others = found.figures[0].worst_case
    >>> round(most, 6), others
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
