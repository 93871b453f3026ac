"""Equal risk: the epsilons at which a mechanism gives away no more people than a perturbation, and how far both lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import Belief, NamedPeople, find_certainty
from cellrisk.system.arrays import Floats
from cellrisk.system.text import number_of, percent, round_down, round_up
from cellrisk.system.words import require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

LEAST_EPSILON, LARGEST_EPSILON, POINTS = 1e-3, 100.0, 401
CERTAINTY_POINTS = 33
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

    @property
    def comparison(self) -> str:
        """At which epsilons the mechanism gives away no more."""
        noise = f"{self.mechanism.capitalize()} noise gives away"
        if not self.ranges:
            return f"{noise} more people at every epsilon searched"
        ends = (f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in self.ranges)
        return f"{noise} no more people at epsilon {', '.join(ends)}"

    def sentence(self) -> str:
        """What an office gains or loses by moving to differential privacy."""
        what = "because of their own record" if self.by == "caused" else "to an attacker who is sure of them"
        searched = f"searched: {len(self.scanned)} epsilons from {self.scanned[0][0]:g} to {self.scanned[-1][0]:g}"
        compared = (
            f"The perturbation gives away {number_of(self.figure, 'person')} {what}, and lies {percent(self.distance)} "
            f"of the records away from the true table. {self.comparison} ({searched})"
        )
        if self.epsilon is None or self.mechanism_distance is None:
            return f"{compared}."
        return f"{compared}; at epsilon {self.epsilon:g} it lies {percent(self.mechanism_distance)} away."

    def to_dict(self) -> dict[str, Any]:
        named = {name: value for name, value in vars(self).items() if name != "scanned"}
        return {**named, "epsilon": self.epsilon, "sentence": self.sentence()}


def find_distance(profiles: Profiles, perturbation: Perturbation) -> float:
    """Half the expected sum of |published - true| over cells that hold people, all labels, as a share of the records.

    The total variation distance of the two tables, but for the change of their total. Exact.
    """
    return _distance(profiles, lambda count: _moved(*perturbation.row(count), count))


def find_mechanism_distance(profiles: Profiles, mechanism: Mechanism) -> float:
    """How far a mechanism moves the table, on the same cells."""
    from cellrisk.risk.certainty.channel import Channel

    channel = Channel(mechanism.noise, mechanism.threshold)

    def expect(count: int) -> float:
        first, last = channel.window(count)
        values = np.arange(min(first, channel.zero), last + 1)
        chances = channel.chance(np.array([count]), values)[0]
        return _moved(np.where(values == channel.zero, 0, values), chances, count)

    return _distance(profiles, expect)


def _moved(values: Any, chances: Floats, count: int) -> float:
    return float(chances @ np.abs(values - count))


def _distance(profiles: Profiles, expect: Any) -> float:
    known: dict[int, float] = {0: expect(0)}
    total = 0.0
    for block in profiles.blocks:
        for counts, cells in zip(block.counts.tolist(), block.cells.tolist(), strict=True):
            for count in counts:
                if count not in known:
                    known[count] = expect(count)
                total += cells * known[count]
            total += cells * (profiles.n_levels - len(counts)) * known[0]
    return total / (2.0 * profiles.n_records)


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
    attribute: Attribute, perturbation: Perturbation, sure: NamedPeople, belief: Belief, compare: str, delta: Any
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
    moved = find_mechanism_distance(profiles, make(ranges[-1][1])) if ranges else None
    scanned = tuple(zip(epsilons.tolist(), found.tolist(), strict=True))
    return EqualRisk(compare, by, figure, tuple(ranges), find_distance(profiles, perturbation), moved, scanned)
