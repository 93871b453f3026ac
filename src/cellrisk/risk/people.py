"""How many people a release reveals, and how many of them because of their own record: random numbers, as noise is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel, at_each
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attacks import GUESSES, people_risk
from cellrisk.risk.ceilings import total_variation
from cellrisk.risk.measures.local import each_alone
from cellrisk.risk.totals import CellOutcomes, find_interval, find_moments
from cellrisk.system.arrays import Floats

TAIL = 0.025
"""The share of releases that is below the interval at most, and above it at most."""


@dataclass(frozen=True)
class People:
    """The number of people exposed by one release: mean, standard deviation, and an interval that holds it."""

    mean: float
    deviation: float
    """Exact: cells are independent, so variances add up."""
    low: int
    high: int
    """The number lies from ``low`` to ``high`` in at least 95% of releases, and below or above in at most 2.5% each."""
    exact: bool = True
    """Whether no narrower interval holds it so often; otherwise it was computed on a coarser grid."""


@dataclass(frozen=True)
class Caused:
    """How many people one release reveals who would not be revealed, had their record been left out."""

    people: float
    """The expected number. Exact."""
    records: int
    exposed: float
    """People whose value is revealed, because of their own record or not."""
    bound: float
    """What the guarantee alone promises: caused is at most (1 - e^-epsilon) times the exposed, and with a delta
    e^-epsilon delta times the people more."""
    cap: float
    """What no attack of any kind exceeds: the people times the total variation distance that one record makes."""
    deviation: float | None = None
    """The standard deviation over releases; None for an attack that guesses, whose mean alone is known."""
    low: int | None = None
    high: int | None = None
    """The number lies from ``low`` to ``high`` in at least 95% of releases."""

    @property
    def share(self) -> float:
        """The number as a share of all people."""
        return self.people / self.records

    def to_dict(self) -> dict[str, Any]:
        """Return the entry ``caused`` of JSON."""
        interval = {"sd": self.deviation, "low": self.low, "high": self.high}
        return {"people": self.people, "share": self.share, **interval, "bound": self.bound, "cap": self.cap}


def count_people(profiles: Profiles, channel: CountChannel, attack: str = "homogeneity") -> People:
    """Return how many people's values one release reveals.

    A cell shows category k alone, and so exposes its n_k people, with probability P_k = s(n_k) prod_{j != k} q(n_j);
    for an attack that guesses, P_k is the probability that it names k. Mean and variance of a cell are sum n_k P_k and
    sum n_k^2 P_k - (sum n_k P_k)^2, and cells are independent. The interval is that of `find_interval`: the number is
    below it in at most 2.5% of releases, and above it in at most 2.5%.
    """
    outcomes = _find_outcomes(profiles, channel, attack)
    mean, variance = find_moments(outcomes)
    return People(mean, math.sqrt(variance), *find_interval(outcomes, TAIL))


def count_caused(
    profiles: Profiles, mechanism: Mechanism, exposed: float, attack: str = "homogeneity", *, interval: bool = True
) -> Caused:
    """Return how many people one release reveals because of their own record.

    Under the same noise a person is pivotal if the cell shows their category alone, and as the smallest value T that is
    released: D counts the people behind a lone 1. With P_k = p_pivotal(n_k) prod_{j != k} q(n_j), a cell has the mean
    sum n_k P_k and the variance sum n_k^2 P_k - mean^2; cells are independent, and the interval is that of
    `find_interval`. For an attack that guesses, D = sum_k n_k [P(names k | n) - P(names k | n - e_k)], never negative
    because one record more never takes the guess away from its own category.

    ``exposed`` is the expected number of people whose value the same attack gets right. Where neighbouring tables
    replace a record, the other table has it in another cell.

    Without ``interval``, which takes longest, only the mean and the deviation are computed.

    >>> from cellrisk import Geometric
    >>> alone = count_caused(Profiles.from_cells([[1, 0]], n_levels=2), Geometric(1.0), exposed=0.534447)
    >>> round(alone.people, 6), round(alone.bound, 6)  # equal for people who are unique in their cell
    (0.337835, 0.337835)
    """
    rest = math.exp(-mechanism.epsilon) * mechanism.delta * profiles.n_records
    bound = min(-math.expm1(-mechanism.epsilon) * exposed + rest, exposed)
    bounds = bound, total_variation(mechanism) * profiles.n_records
    if attack in GUESSES:
        people = profiles.n_records * float(caused_shares(profiles, mechanism.channel, attack)[0])
        return Caused(people, profiles.n_records, exposed, *bounds)
    outcomes = _find_outcomes(profiles, mechanism.channel, attack, own=True)
    mean, variance = find_moments(outcomes)
    ends = find_interval(outcomes, TAIL)[:2] if interval else (None, None)
    return Caused(mean, profiles.n_records, exposed, *bounds, math.sqrt(variance), *ends)


def caused_shares(profiles: Profiles, channel: CountChannel, attack: str = "homogeneity") -> Floats:
    """Return the expected share of people revealed because of their own record, under each setting. Exact."""
    return people_risk(attack).average(profiles, channel, ("own",))["own", "records"]


def _find_outcomes(profiles: Profiles, channel: CountChannel, attack: str, own: bool = False) -> list[CellOutcomes]:
    """Return how many people of each cell the attack reveals, and how likely, under the first setting.

    With ``own``, those whom homogeneity reveals because of their own record.
    """
    if not profiles.blocks:
        raise InvalidInput("a table without records has no risk", code="no-records")
    outcomes = []
    for block in people_risk(attack).pieces(profiles, channel):
        if attack in GUESSES:
            pmf = GUESSES[attack]().prob_named_as([block.counts], block.counts, profiles.n_levels, channel)[0]
        else:
            q = at_each(channel.p_zero, block.counts.T)[..., 0]
            s = at_each(channel.p_pivotal if own else channel.p_positive, block.counts.T)[..., 0]
            pmf = each_alone(q, s).T * channel.q0[0] ** (profiles.n_levels - block.counts.shape[1])
        whole = np.maximum(pmf.sum(axis=1, keepdims=True), 1.0)  # above 1 by rounding alone
        outcomes.append(CellOutcomes(block.counts, pmf / whole, block.cells))
    return outcomes
