"""At equal risk: the epsilon at which a mechanism gives away as many people as a perturbation, and how far both lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import Belief, NamedPeople, find_certainty
from cellrisk.risk.measures import Survival
from cellrisk.system.arrays import Floats
from cellrisk.system.text import percent, round_down, whole_people
from cellrisk.system.words import require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

LEAST_EPSILON, LARGEST_EPSILON, POINTS = 1e-3, 100.0, 401
CERTAINTY_POINTS = 33


@dataclass(frozen=True)
class EqualRisk:
    """The epsilon at which a mechanism gives away as many people, and how far each moves the table."""

    mechanism: str
    by: str
    """``caused``, or ``certainty``."""
    figure: float
    """The figure of the perturbation, in people."""
    epsilon: float | None
    """The largest up to which every smaller one gives away no more; None where there is none, or no end."""
    why: str | None
    """Why there is none."""
    distance: float
    """How far the perturbation moves the table: half the expected differences of counts, as a share of the records."""
    mechanism_distance: float | None
    """How far the mechanism moves it at this epsilon."""
    scanned: tuple[tuple[float, float], ...] = ()
    """Epsilons that were looked at, and the people given away there."""

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.why is None):
            raise InvalidInput("an equal risk has an epsilon, or a reason why there is none")

    def sentence(self) -> str:
        """What an office gains or loses by moving to differential privacy."""
        what = "because of their own record" if self.by == "caused" else "to an attacker who is sure of them"
        if self.epsilon is None:
            return f"No epsilon of {self.mechanism} noise gives away as many people {what}: {self.why}."
        return (
            f"At equal risk, {whole_people(self.figure)} people given away {what} and no more, {self.mechanism} noise "
            f"has epsilon {self.epsilon:g} and lies {percent(self.mechanism_distance or 0.0)} of the records away from "
            f"the true table; the perturbation lies {percent(self.distance)} away."
        )

    def to_dict(self) -> dict[str, Any]:
        named = {name: value for name, value in vars(self).items() if name != "scanned"}
        return {**named, "sentence": self.sentence()}


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
        return caused_shares(profiles, Survival(noises)) * profiles.n_records

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
            found.append(find_certainty(attribute, made.noise, made.threshold, (sure.certainty,), belief)[0].right_high)
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
    """The first crossing from below: up to it, no point of the scan gives away more."""
    distance = find_distance(profiles, perturbation)

    found = people(epsilons)
    scanned = tuple(zip(epsilons.tolist(), found.tolist(), strict=True))

    def none(why: str) -> EqualRisk:
        return EqualRisk(compare, by, figure, None, why, distance, None, scanned)

    if figure <= 0.5:
        return none("the perturbation gives away nobody")
    above = np.flatnonzero(found > figure)
    if not len(above):
        return none("it gives away fewer at every epsilon")
    if above[0] == 0:
        return none(f"it gives away more already at epsilon {epsilons[0]:g}")
    low, high = float(epsilons[above[0] - 1]), float(epsilons[above[0]])
    while high - low > 1e-6 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if float(people(middle)[0]) > figure else (middle, high)
    epsilon = round_down(low)
    moved = find_mechanism_distance(profiles, make(epsilon))
    return EqualRisk(compare, by, figure, epsilon, None, distance, moved, scanned)
