"""Equal risk: the epsilons at which a mechanism gives away no more people than a perturbation, and how far both lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import AdditiveChannel, CountChannel
from cellrisk.noise.mechanisms import MECHANISMS
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import ConfidentInferences, CountPrior, find_certainty
from cellrisk.system.arrays import Floats
from cellrisk.system.choices import require_word
from cellrisk.system.formatting import round_down, round_up
from cellrisk.system.results import find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

LEAST_EPSILON, LARGEST_EPSILON, POINTS = 1e-3, 100.0, 401
CERTAINTY_POINTS = 33
ROUNDING = 1e-16
"""A smaller distance is given as 0."""
EQUAL = 1e-9
"""Figures within this relative distance, or so much of a person, are equal."""


@dataclass(frozen=True)
class EqualRisk:
    """The epsilons at which a mechanism gives away no more people, and how far each moves the table."""

    mechanism: str
    by: str
    """``caused``, or ``certainty``."""
    figure: float
    """The figure of the perturbation, in people."""
    ranges: tuple[tuple[float, float], ...]
    """The epsilons at which the mechanism gives away no more people, ascending; empty if it gives away more at all."""
    distance: float
    """How far the perturbation moves the table: half the expected differences of counts, as a share of the records."""
    mechanism_distance: float | None
    """How far the mechanism moves it at ``epsilon``."""
    scanned: tuple[tuple[float, float], ...]
    """Epsilons that were looked at, and the people given away there."""

    @property
    def epsilon(self) -> float | None:
        """The largest of these epsilons, which has the least noise; None if there is none."""
        return self.ranges[-1][1] if self.ranges else None

    def to_dict(self) -> dict[str, Any]:
        named = {name: value for name, value in vars(self).items() if name != "scanned"}
        sentence = find_words("perturbed_assessment").say_equal(self)
        return {**named, "epsilon": self.epsilon, "sentence": sentence}


def find_distance(profiles: Profiles, channel: CountChannel) -> float:
    """Return half the expected sum of |published - true| over groups that hold people, as a share of the records.

    The total variation distance of the two tables, but for the change of their total. Exact.
    """
    counts = np.unique(np.concatenate([[0], *(block.counts.ravel() for block in profiles.blocks)]))
    moved = np.empty(len(counts))
    for place, count in enumerate(counts.tolist()):
        values = channel.support(np.array([count]))
        moved[place] = channel.pmf(np.array([count]), values)[:, 0] @ np.abs(values - count)
    total = 0.0
    for block in profiles.blocks:
        present = moved[np.searchsorted(counts, block.counts)].sum(axis=1)
        total += float(block.cells @ (present + (profiles.n_levels - block.counts.shape[1]) * moved[0]))
    share = total / (2.0 * profiles.n_records)
    return share if share > ROUNDING else 0.0


def find_equal_caused(
    profiles: Profiles, perturbation: Perturbation, caused: float, compare: str, delta: float | None
) -> EqualRisk:
    make = _maker(compare, delta)
    epsilons = np.geomspace(LEAST_EPSILON, LARGEST_EPSILON, POINTS)

    def people(points: Any) -> Floats:
        noises = tuple(make(float(point)).noise for point in np.atleast_1d(points))
        return caused_shares(profiles, AdditiveChannel(noises)) * profiles.n_records

    return _equal(profiles, perturbation, compare, "caused", caused, epsilons, people, make)


def find_equal_certainty(
    attribute: Attribute,
    perturbation: Perturbation,
    sure: ConfidentInferences,
    belief: CountPrior,
    compare: str,
    delta: Any,
) -> EqualRisk:
    make = _maker(compare, delta)
    epsilons = np.geomspace(0.01, LARGEST_EPSILON, CERTAINTY_POINTS)

    def people(points: Any) -> Floats:
        found = []
        for point in np.atleast_1d(points):
            made = make(float(point))
            found.append(find_certainty(attribute, made.channel, (sure.certainty,), belief)[0].right_high)
        return np.array(found)

    return _equal(attribute.profiles, perturbation, compare, "certainty", sure.right, epsilons, people, make)


def _maker(compare: str, delta: float | None) -> Any:
    require_word("mechanism to compare with", compare, tuple(MECHANISMS))
    return lambda epsilon: MECHANISMS[compare](epsilon=epsilon, delta=0.0 if delta is None else delta)


def _equal(
    profiles: Profiles,
    perturbation: Perturbation,
    compare: str,
    by: str,
    figure: float,
    epsilons: Floats,
    people: Any,
    make: Any,
) -> EqualRisk:
    """The ranges between crossings, which are bisected; the end of a range gives away no more."""
    most = figure + EQUAL * max(abs(figure), 1.0)
    found = people(epsilons)
    kept = found <= most

    def find_end(inside: float, outside: float) -> float:
        while abs(outside - inside) > 1e-6 * inside:
            middle = math.sqrt(inside * outside)
            inside, outside = (middle, outside) if float(people(middle)[0]) <= most else (inside, middle)
        return inside

    ranges = []
    for first in np.flatnonzero(kept & ~np.r_[False, kept[:-1]]):
        last = first + int(np.argmin(np.r_[kept[first:], False])) - 1
        low, high = float(epsilons[first]), float(epsilons[last])
        if first:
            low = min(round_up(find_end(low, float(epsilons[first - 1]))), high)
        if last < len(epsilons) - 1:
            high = max(round_down(find_end(high, float(epsilons[last + 1]))), low)
        ranges.append((low, high))
    moved = find_distance(profiles, make(ranges[-1][1]).channel) if ranges else None
    scanned = tuple(zip(epsilons.tolist(), found.tolist(), strict=True))
    return EqualRisk(compare, by, figure, tuple(ranges), find_distance(profiles, perturbation.channel), moved, scanned)
