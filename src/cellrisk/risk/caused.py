"""Caused: people whose value is read off correctly only because their own record is in the table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import EndlessNoise, Noise, lose_under
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attacks import GUESSES
from cellrisk.risk.ceilings import advantage_cap
from cellrisk.risk.measures import Local, MarginalShrinkage, Measure, Shrinkage, Survival
from cellrisk.risk.people import TAIL, shown_alone, split_profiles
from cellrisk.risk.totals import Law, find_interval, find_moments
from cellrisk.system.arrays import Floats, Integers


class Pivots(Survival):
    """Noises as `Survival` has them, where a label counts as shown only if one record less would have made it vanish.

    ``survive`` is d(m) = q(m - 1) - q(m) = f(m - T): the probability that a count m is released as exactly T, the
    smallest value that is released (1 where the threshold is 1/2). f is the mass of the rounded noise, so that nothing
    cancels. Every tight risk computed from it, times the records, is the expected number of people who are read off
    correctly, and would not be had their record been left out. A perturbation has no f: its d may be negative.
    """

    def _show(self, counts: Any) -> Floats:
        return lose_under(self.noises, counts, self.threshold)


@dataclass(frozen=True)
class Caused:
    """How many people one release gives away who would have been safe, had their record been left out."""

    people: float
    """The expected number. Exact."""
    records: int
    exposed: float
    """People whose value is read off correctly, whatever the reason: caused are among them."""
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

    def __post_init__(self) -> None:
        if not (self.people >= 0 and self.records > 0):
            raise InvalidInput("a number of people must not be negative, and there must be some records")

    @property
    def share(self) -> float:
        """The number as a share of all people."""
        return self.people / self.records

    @property
    def spread(self) -> str:
        """How far the number varies from release to release; empty where that is not known."""
        return "" if self.low is None or self.high is None else f"95% interval {self.low:,} to {self.high:,}"

    def to_dict(self) -> dict[str, Any]:
        """What stands under ``caused`` in JSON."""
        return {
            "people": self.people,
            "share": self.share,
            "sd": self.deviation,
            "low": self.low,
            "high": self.high,
            "bound": self.bound,
            "cap": self.cap,
        }


def count_caused(profiles: Profiles, mechanism: Mechanism, exposed: float, attack: str = "homogeneity") -> Caused:
    """How many people does one release give away because of their own record?

    Under the same noise a person is pivotal if the cell shows his label alone, and as the smallest value T that is
    released: D counts the people behind a lone 1. With P_k = d(n_k) prod_{j != k} q(n_j), a cell has the mean
    sum n_k P_k and the variance sum n_k^2 P_k - mean^2; cells are independent, and the interval is that of
    `find_interval`. For an attack that guesses, D = sum_k n_k [P(names k | n) - P(names k | n - e_k)], never negative
    because one record more never takes the guess away from its own label.

    ``exposed`` is the expected number of people whose value the same attack gets right. Where neighbouring tables
    replace a record, the other table has it in another cell.

    >>> from cellrisk import Geometric
    >>> alone = count_caused(Profiles.from_cells([[1, 0]], n_levels=2), Geometric(1.0), exposed=0.534447)
    >>> round(alone.people, 6), round(alone.bound, 6)  # equal for people who are unique in their cell
    (0.337835, 0.337835)
    """
    if attack in GUESSES:
        return count_caused_on_average(profiles, mechanism, exposed, attack)
    laws = _find_laws(profiles, mechanism)
    interval = find_interval(laws, TAIL)
    return replace(_on_average(laws, profiles, mechanism, exposed), low=interval.low, high=interval.high)


def count_caused_on_average(
    profiles: Profiles, mechanism: Mechanism, exposed: float, attack: str = "homogeneity"
) -> Caused:
    """What `count_caused` tells, without the interval, which takes longest: for many epsilons."""
    if attack in GUESSES:
        mean = caused_by_guess(profiles, mechanism.noise, mechanism.threshold, attack)
        return Caused(mean, profiles.n_records, exposed, *_bounds(profiles, mechanism, exposed))
    return _on_average(_find_laws(profiles, mechanism), profiles, mechanism, exposed)


def _on_average(laws: Sequence[Law], profiles: Profiles, mechanism: Mechanism, exposed: float) -> Caused:
    mean, variance = find_moments(laws)
    return Caused(mean, profiles.n_records, exposed, *_bounds(profiles, mechanism, exposed), math.sqrt(variance))


def _find_laws(profiles: Profiles, mechanism: Mechanism) -> list[Law]:
    """The law of each profile: how many people of its cell are pivotal, and how likely."""
    pivots = Pivots((mechanism.noise,), mechanism.threshold)
    return [
        Law(block.counts, shown_alone(block, profiles.n_levels, pivots), block.cells)
        for block in split_profiles(profiles)
    ]


def caused_shares(
    profiles: Profiles, survival: Survival, measure: Measure | None = None, attack: str = "homogeneity"
) -> Floats:
    """The expected share of people given away because of their own record, under each noise. Exact.

    ``measure`` is `Local`, for the table in hand, unless `Shrinkage` or `MarginalShrinkage` is given, for a table that
    is being planned: D(n) = n sum_k (a_k/a.) E[d(N_k + 1) prod_{j != k} q(N_j)] with N ~ Dirichlet-multinomial(n - 1,
    a + e_k), which is the tight risk with d in place of s. A size that is random too is weighted by itself, because
    people are counted and not cells. An ``attack`` that guesses is looked at on the table in hand alone.

    >>> from cellrisk import Laplace
    >>> noises = Survival((Laplace(epsilon=1.0).noise, Laplace(epsilon=100.0).noise))
    >>> caused_shares(Profiles.from_cells([[1, 0], [3, 0], [2, 1]], n_levels=2), noises).round(4).tolist()
    [0.0831, 0.1429]
    """
    measure = measure or Local()
    if isinstance(measure, MarginalShrinkage):
        return _caused_at_random_sizes(measure, profiles.n_levels, survival)
    shares = np.zeros(len(survival))
    finite = [place for place, noise in enumerate(survival.noises) if not isinstance(noise, EndlessNoise)]
    if attack in GUESSES:
        for place in finite:
            shares[place] = caused_by_guess(profiles, survival.noises[place], survival.threshold, attack)
        return shares / profiles.n_records
    if finite:
        pivots = Pivots(tuple(survival.noises[place] for place in finite), survival.threshold)
        shares[finite] = measure.average(profiles, pivots, ("tight",))["tight", "records"]
    return shares


def _bounds(profiles: Profiles, mechanism: Mechanism, exposed: float) -> tuple[float, float]:
    """The bound by the guarantee, and the cap for any attack."""
    rest = math.exp(-mechanism.epsilon) * mechanism.delta * profiles.n_records
    bound = min(-math.expm1(-mechanism.epsilon) * exposed + rest, exposed)
    return bound, advantage_cap(mechanism) * profiles.n_records


def caused_by_guess(profiles: Profiles, noise: Noise, threshold: float, attack: str) -> float:
    """The expected number of people whom an attack that guesses gets right because of their own record."""
    if isinstance(noise, EndlessNoise):
        return 0.0
    guess = GUESSES[attack]()
    survival = Survival((noise,), threshold)
    total = 0.0
    for block in split_profiles(profiles):
        named = guess.name_each(block, profiles.n_levels, survival)
        for label, (less, column) in enumerate(_one_less(block)):
            without = guess.name_each(less, profiles.n_levels, survival)
            gained = named[:, label] - np.take_along_axis(without, column[:, None], axis=1)[:, 0]
            total += float((block.cells * block.counts[:, label]) @ np.maximum(gained, 0.0))
    return total


def _one_less(block: Block) -> Iterator[tuple[Block, Integers]]:
    """For each label present: the cells without one record of it, largest counts first, and where that label went."""
    for label in range(block.counts.shape[1]):
        counts = block.counts.copy()
        counts[:, label] -= 1
        order = np.argsort(-counts, axis=1, kind="stable")
        yield (
            Block(np.take_along_axis(counts, order, axis=1), block.cells, block.records),
            np.argmax(order == label, axis=1),
        )


def _caused_at_random_sizes(measure: MarginalShrinkage, n_levels: int, survival: Survival) -> Floats:
    sizes, chance = measure.sizes.likely(n_levels)
    some = sizes > 0
    weights = (sizes * chance)[some] / float(sizes @ chance)
    drawn = Profiles(n_levels, (Block(sizes[some, None], np.ones(int(some.sum()), np.int64), sizes[some]),))
    shares = np.zeros(len(survival))
    for place, noise in enumerate(survival.noises):
        if not isinstance(noise, EndlessNoise):
            pivots = Pivots((noise,), survival.threshold)
            risk = Shrinkage(measure.prior).risk(drawn.blocks[0], n_levels, pivots, ("tight",))["tight"]
            shares[place] = float(weights @ risk[:, 0])
    return shares
