"""Equal risk: the epsilons at which a mechanism reveals no more people than a perturbation, and how far both lie."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.formatting import round_down, round_up
from cellrisk.system.results import find_words

EPSILONS = {"caused": np.geomspace(1e-3, 100.0, 401), "certainty": np.geomspace(0.01, 100.0, 33)}
"""The epsilons at which a mechanism is compared; what the informed attacker infers takes longer."""
ROUNDING = 1e-16
"""A smaller distance is given as 0."""
EQUAL = 1e-9
"""Figures within this relative distance, or so much of a person, are equal."""

CountPeople = Callable[[CountChannel], Floats]
"""The people revealed under each setting of a channel."""


@dataclass(frozen=True)
class EqualRisk:
    """The epsilons at which a mechanism reveals no more people, and how far each moves the table."""

    mechanism: str
    by: str
    """``caused``, or ``certainty``."""
    figure: float
    """The figure of the perturbation, in people."""
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


def tally_counts(profiles: Profiles) -> tuple[Integers, Integers]:
    """Return the distinct counts of all categories in groups that hold people, and how many there are of each."""
    blocks = profiles.blocks
    counts = np.concatenate([[0], *(block.counts.ravel() for block in blocks)])
    present = [np.repeat(block.cells, block.counts.shape[1]) for block in blocks]
    absent = profiles.n_levels * profiles.n_cells - sum(int(part.sum()) for part in present)
    distinct, place = np.unique(counts, return_inverse=True)
    numbers: Integers = np.bincount(place, np.concatenate([[absent], *present])).astype(np.int64)
    return distinct, numbers


def find_distance(profiles: Profiles, channel: CountChannel) -> float:
    """Return half the expected sum of |published - true| over groups that hold people, as a share of the records.

    The total variation distance of the two tables, but for the change of their total. Exact.
    """
    counts, numbers = tally_counts(profiles)
    moved = np.empty(len(counts))
    for place, count in enumerate(counts.tolist()):
        values = channel.support(np.array([count]))
        moved[place] = channel.pmf(np.array([count]), values)[:, 0] @ np.abs(values - count)
    share = float(numbers @ moved) / (2.0 * profiles.n_records)
    return share if share > ROUNDING else 0.0


def find_equal_risk(
    profiles: Profiles, channel: CountChannel, by: str, figure: float, mechanism: Mechanism, count: CountPeople
) -> EqualRisk:
    """Return the epsilons at which the mechanism reveals no more people than a figure of the channel.

    The ends of a range are bisected between two of the epsilons compared, and reveal no more.
    """
    most = figure + EQUAL * max(abs(figure), 1.0)
    epsilons = EPSILONS[by]
    people = count(mechanism.channel_at(epsilons))
    kept = people <= most

    def keeps(epsilon: float) -> bool:
        return float(count(mechanism.channel_at([epsilon]))[0]) <= most

    ranges = []
    for first in np.flatnonzero(kept & ~np.r_[False, kept[:-1]]):
        last = first + int(np.argmin(np.r_[kept[first:], False])) - 1
        low, high = float(epsilons[first]), float(epsilons[last])
        if first:
            low = min(round_up(find_edge(keeps, low, float(epsilons[first - 1]), 1e-6)), high)
        if last < len(epsilons) - 1:
            high = max(round_down(find_edge(keeps, high, float(epsilons[last + 1]), 1e-6)), low)
        ranges.append((low, high))
    moved = find_distance(profiles, mechanism.with_epsilon(ranges[-1][1]).channel) if ranges else None
    scanned = tuple(zip(epsilons.tolist(), people.tolist(), strict=True))
    return EqualRisk(mechanism.name, by, figure, tuple(ranges), find_distance(profiles, channel), moved, scanned)


def find_edge(keeps: Callable[[float], bool], inside: float, outside: float, tolerance: float) -> float:
    """Return a number that keeps a limit, within a relative tolerance of one that does not, by bisection."""
    while max(inside, outside) > (1.0 + tolerance) * min(inside, outside):
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if keeps(middle) else (inside, middle)
    return inside
