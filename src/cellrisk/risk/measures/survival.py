"""q(m) and s(m), the only things a measure knows of noise, for several noises at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import EndlessNoise, Noise, find_first, survive_under, vanish_under
from cellrisk.system.arrays import Floats, Integers

NEGLIGIBLE = 1e-18
"""A vanishing probability below this is taken for 0 where sums over many counts are cut."""

ENDLESS = 1 << 62
"""The reach of noise without bound: past every count."""

NOISES_AT_ONCE = 64
MANY_LABELS = 16
IN_A_TABLE = 1 << 22
"""Tables of more counts than this are not made where few of them are asked for."""
MOST_COUNTS = 1 << 25
TABULATED = 4096
"""Counts below this are looked up in a table of all of them; larger ones are rare and computed one by one."""


@dataclass(frozen=True, eq=False)
class Survival:
    """The probabilities that a count vanishes, q, and survives, s = 1 - q, one column a noise."""

    noises: tuple[Noise, ...]
    threshold: float = 0.5
    _tables: dict[int, SurvivalTable] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.noises)

    @cached_property
    def groups(self) -> tuple[Survival, ...]:
        """The same noises in their order, few at a time, so that working arrays stay small; endless ones apart."""
        parts: list[tuple[Noise, ...]] = []
        for endless, run in groupby(self.noises, lambda noise: isinstance(noise, EndlessNoise)):
            noises = tuple(run)
            step = len(noises) if endless else NOISES_AT_ONCE
            parts += [noises[start : start + step] for start in range(0, len(noises), step)]
        return (self,) if len(parts) == 1 else tuple(type(self)(noises, self.threshold) for noises in parts)

    @property
    def endless(self) -> bool:
        """Whether every noise has grown without bound, so that q = s = 1/2 for every count."""
        return all(isinstance(noise, EndlessNoise) for noise in self.noises)

    def vanish(self, counts: Integers) -> Floats:
        """q at each count: (counts, noises)."""
        if counts.max() < TABULATED:
            return np.asarray(self._table(_power_of_two(int(counts.max()))).vanish[counts])
        return vanish_under(self.noises, counts, self.threshold)

    def survive(self, counts: Integers) -> Floats:
        """s at each count: (counts, noises)."""
        if counts.max() < TABULATED:
            return np.asarray(self._table(_power_of_two(int(counts.max()))).survive[counts])
        return self._show(counts)

    def _show(self, counts: Any) -> Floats:
        """How likely each count is shown so that an attacker acts on it: here, that it survives. (counts, noises)"""
        return survive_under(self.noises, counts, self.threshold)

    @cached_property
    def vanish_empty(self) -> Floats:
        """q(0) for each noise."""
        return np.asarray(self.vanish(np.array([0]))[0])

    def at_most(self, labels: int) -> Floats:
        """What the probability that one of so many labels survives and all others vanish never exceeds, for any counts.

        K q(0)^(K-1): no count vanishes more often than 0 does, unless q need not fall.

        >>> from cellrisk.noise.distributions import GeometricNoise
        >>> Survival((GeometricNoise(1.0),)).at_most(3).round(6).tolist()  # 3/(1 + e^-1)^2
        [1.60334]
        """
        falling = np.array([noise.last_vanishing is None for noise in self.noises])
        return np.asarray(labels * np.where(falling, self.vanish_empty, 1.0) ** (labels - 1))

    @cached_property
    def reach(self) -> int:
        """The last count whose vanishing probability matters under any of the noises."""
        widest = {type(noise): noise for noise in sorted(self.noises, key=lambda noise: noise.scale)}
        return max(_last_vanishing(noise, self.threshold) for noise in widest.values())

    @cached_property
    def reaches(self) -> Integers:
        """The same under each noise."""
        return np.array([_last_vanishing(noise, self.threshold) for noise in self.noises])

    def some(self, chosen: Iterable[int]) -> Survival:
        """The noises at these places."""
        return type(self)(tuple(self.noises[place] for place in chosen), self.threshold)

    def up_to(self, last: int) -> SurvivalTable:
        """q and s at every count from 0 to at least ``last``, cut at the reach."""
        return self._table(min(_power_of_two(last), self.reach))

    def at_any(self, last: int) -> SurvivalTable | FarTable:
        """The same, where only some of very many counts are asked for."""
        end = min(_power_of_two(last), self.reach)
        return self._table(end) if end <= IN_A_TABLE else FarTable(self, end)

    def _table(self, end: int) -> SurvivalTable:
        """q and s at every count from 0 to ``end``, computed once."""
        if end not in self._tables:
            require_computable(end)
            counts = np.arange(end + 1, dtype=np.float64)
            self._tables[end] = SurvivalTable(vanish_under(self.noises, counts, self.threshold), self._show(counts))
        return self._tables[end]


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """q and s at the counts 0, 1, ..., ``end``; a count past the end is as good as certain to survive."""

    vanish: Floats
    survive: Floats

    @property
    def end(self) -> int:
        return len(self.vanish) - 1

    def __getitem__(self, noises: slice) -> SurvivalTable:
        return SurvivalTable(self.vanish[:, noises], self.survive[:, noises])

    def survive_at(self, counts: Integers) -> Floats:
        """s at any counts of 0 or more: (..., noises)."""
        return np.asarray(self.survive[np.minimum(counts, self.end)])

    def vanish_at(self, counts: Integers) -> Floats:
        """q at any counts of 0 or more: (..., noises)."""
        return np.asarray(np.where((counts <= self.end)[..., None], self.vanish[np.minimum(counts, self.end)], 0.0))


@dataclass(frozen=True, eq=False)
class FarTable:
    """The same for counts so large that q and s are computed where they are asked for."""

    survival: Survival
    end: int

    def survive_at(self, counts: Integers) -> Floats:
        """s at any counts of 0 or more: (..., noises)."""
        return self.survival._show(np.minimum(counts, self.end).astype(np.float64))

    def vanish_at(self, counts: Integers) -> Floats:
        """q at any counts of 0 or more: (..., noises)."""
        q = vanish_under(self.survival.noises, counts.astype(np.float64), self.survival.threshold)
        return np.asarray(np.where((counts <= self.end)[..., None], q, 0.0))


def _power_of_two(count: int) -> int:
    """The smallest power of two above a count, so that a handful of tables serve all."""
    return 1 << count.bit_length()


def _last_vanishing(noise: Noise, threshold: float) -> int:
    if isinstance(noise, EndlessNoise):
        return ENDLESS
    if noise.last_vanishing is not None:  # q need not fall
        return noise.last_vanishing + 1  # the first that is certain to survive, as below
    return find_first(lambda count: float(noise.vanish(count, threshold)) < NEGLIGIBLE)


def require_computable(counts: int) -> None:
    """Refuses what would take minutes and gigabytes."""
    if counts > MOST_COUNTS:
        raise InvalidInput(
            "this risk of cells so large would take too long under noise so wide",
            got=f"{counts:,} likely counts of one label",
            allowed=f"up to {MOST_COUNTS:,}",
            fix="ask for other measures; local always has an answer",
        )


def exactly_one(vanish: Sequence[Floats] | Floats, survive: Sequence[Floats] | Floats) -> Floats:
    """sum_k survive_k prod_{j != k} vanish_j: the probability that one independent label survives and the rest vanish.

    One pass over the labels with one bit of state (has the survivor been chosen), so every term is positive and nothing
    cancels. Many labels are joined two by two instead, all pairs at once.

    >>> float(exactly_one([np.array(0.5), np.array(0.2)], [np.array(0.5), np.array(0.8)]))
    0.5
    """
    if len(vanish) > MANY_LABELS:
        return _exactly_one_of_many(np.asarray(vanish), np.asarray(survive))
    none, one = vanish[0], survive[0]
    for q, s in zip(vanish[1:], survive[1:], strict=True):
        one = one * q + none * s
        none = none * q
    return one


def each_alone(vanish: Sequence[Floats], survive: Sequence[Floats]) -> list[Floats]:
    """survive_k prod_{j != k} vanish_j for each k: the probability that this label survives and all others vanish.

    Products from both sides, so nothing is divided.

    >>> [float(alone) for alone in each_alone([np.array(0.5), np.array(0.25)], [np.array(0.5), np.array(0.75)])]
    [0.125, 0.375]
    """
    if len(vanish) > MANY_LABELS:
        return list(_each_alone_of_many(np.asarray(vanish), np.asarray(survive)))
    found = list(survive)
    before, after = np.ones_like(vanish[0]), np.ones_like(vanish[0])
    for place in range(len(found)):
        found[place] = found[place] * before
        found[-1 - place] = found[-1 - place] * after
        before, after = before * vanish[place], after * vanish[-1 - place]
    return found


def each_alone_in_rows(vanish: Floats, survive: Floats) -> Floats:
    """The same where a row is a cell and a column a label: (cells, labels).

    >>> each_alone_in_rows(np.array([[0.5, 0.25]]), np.array([[0.5, 0.75]])).tolist()
    [[0.125, 0.375]]
    """
    if vanish.shape[1] > MANY_LABELS:
        return _each_alone_of_many(vanish.T, survive.T).T
    return np.stack(each_alone(list(vanish.T), list(survive.T)), axis=1)


def _each_alone_of_many(vanish: Floats, survive: Floats) -> Floats:
    found = survive.copy()
    found[1:] *= np.cumprod(vanish[:-1], axis=0)
    found[:-1] *= np.cumprod(vanish[:0:-1], axis=0)[::-1]
    return found


def _exactly_one_of_many(none: Floats, one: Floats) -> Floats:
    while len(none) > 1:
        half = len(none) // 2
        first, second, rest = slice(0, half), slice(half, 2 * half), slice(2 * half, None)
        joined = one[first] * none[second] + none[first] * one[second]
        one = np.concatenate([joined, one[rest]])
        none = np.concatenate([none[first] * none[second], none[rest]])
    return np.asarray(one[0])
