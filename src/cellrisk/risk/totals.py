"""The total of many independent numbers, of which each takes few values: an interval that holds it, with a proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from cellrisk.system.arrays import Floats, Integers

OUTSIDE = 1e-7
"""Probability on each side of the window that the total is computed over."""
NEGLECTED = 1e-6
"""Cells that take another than their likeliest value with less probability than this, all together, are fixed at it.
A fifth as much again is set aside for both sides of the window, and a thousandth for rounding."""
MOST_ATOMS = 1024
MOST_FREQUENCIES = 1 << 19
"""Up to so many the distribution is computed as it is;"""
SMOOTH_FREQUENCIES = 1 << 14
"""else a normal law cuts them off there, which moves an end by about a thousandth of the deviation."""
MOST_WORK = 30_000_000
"""Cosines and sines that are computed before fewer frequencies are tried: about a second."""
VARIED = 128
"""Kinds of cells that are taken one by one, those that vary most in each of two ways."""
NUMBERS_AT_ONCE = 1 << 16
FEWEST_FREQUENCIES = 64
PROBED = 64
"""One in so many frequencies is tried first, to learn what all of them would take."""
NEGLIGIBLE = 1e-18
BAND = 7.5
"""A normal law of deviation s has no frequency beyond BAND / s: exp(-BAND^2 / 2) is below 1e-12."""
SHIFTS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""Deviations of the normal law by which an end is moved outwards: each gives a bound, and the best is taken."""


@dataclass(frozen=True, eq=False)
class Law:
    """Cells of several kinds: each takes one of a row's values with the probability beside it, and 0 with the rest."""

    values: Integers
    """(kinds, values)"""
    chance: Floats
    """(kinds, values)"""
    cells: Integers
    """(kinds,): how many cells are of that kind."""

    @property
    def mean(self) -> Floats:
        """(kinds,): the mean of one cell."""
        return np.asarray((self.chance * self.values).sum(axis=1))

    @property
    def variance(self) -> Floats:
        """(kinds,): the variance of one cell, as a sum of squares, so that it is never negative."""
        mean, rest = self.mean, np.maximum(1.0 - self.chance.sum(axis=1), 0.0)
        return np.asarray((self.chance * (self.values - mean[:, None]) ** 2).sum(axis=1) + rest * mean**2)

    def __getitem__(self, kinds: slice | Integers | NDArray[np.bool_]) -> Law:
        return Law(self.values[kinds], self.chance[kinds], self.cells[kinds])


def find_moments(laws: Sequence[Law]) -> tuple[float, float]:
    """The mean and the variance of the total of all cells, which are independent."""
    return sum(float(law.cells @ law.mean) for law in laws), sum(float(law.cells @ law.variance) for law in laws)


@dataclass(frozen=True)
class Interval:
    """Whole numbers; the total is below ``low`` with at most the probability asked for, and likewise above ``high``."""

    low: int
    high: int
    exact: bool
    """Whether no narrower one would do; otherwise each end is moved outwards by as much as was left uncertain."""


def find_interval(laws: Sequence[Law], tail: float) -> Interval:
    """Between which whole numbers does the total lie, but for a probability of ``tail`` on each side?

    A few cells much larger than the spread of all others are convolved value by value. The total R of the others is
    computed from its characteristic function, the product over cells of 1 + sum_k P_k (e^(i w n_k) - 1), over a window
    outside which Bennett's inequality leaves less than 1e-7. Where that takes too many frequencies, a normal law Z of
    small deviation s is added, which cuts them off: P(R <= x) P(Z <= c s) <= P(R + Z <= x + c s) for every c, so ends
    move outwards, by 6 s at most. What was neglected is added to both tails.

    >>> cell = Law(np.array([[10, 1]]), np.array([[0.5, 0.2]]), np.array([1]))
    >>> find_interval([cell], 0.025), find_interval([cell], 0.35)
    (Interval(low=0, high=10, exact=True), Interval(low=1, high=10, exact=True))
    """
    most = sum(int(law.cells @ law.values.max(axis=1)) for law in laws)
    fixed, rest = _take_certain(laws)
    atoms, rest = _take_large([_merge_values(law) for law in rest])
    bulk = _Bulk.of(rest)
    allowed = tail - 1.201 * NEGLECTED
    values = atoms.values + fixed

    def below(end: int) -> float:
        """At least P(total < end)."""
        return float(atoms.chance @ bulk.at_most(end - 1 - values))

    def above(end: int) -> float:
        """At least P(total > end)."""
        return float(atoms.chance @ bulk.at_least(end + 1 - values))

    low = _last(0, most, lambda end: below(end) <= allowed)
    high = most - _last(0, most - low, lambda short: above(most - short) <= allowed)
    return Interval(low, high, bulk.exact)


def _last(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """The last whole number at which a condition holds that holds at the first and does not return once lost."""
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if holds(middle) else (first, middle - 1)
    return first


def _take_certain(laws: Sequence[Law]) -> tuple[int, list[Law]]:
    """The total of the cells that are as good as certain, and the laws of the others."""
    likeliest, doubt = [], []
    for law in laws:
        place = np.argmax(law.chance, axis=1)[:, None]
        largest, value = (np.take_along_axis(part, place, axis=1)[:, 0] for part in (law.chance, law.values))
        shown = law.chance.sum(axis=1)
        none = np.maximum(1.0 - shown, 0.0)
        likeliest.append(np.where(largest > none, value, 0))
        doubt.append((shown + none - np.maximum(largest, none)) * law.cells)
    together = np.concatenate(doubt)
    order = np.argsort(together, kind="stable")
    certain = np.zeros(len(together), bool)
    certain[order] = np.cumsum(together[order]) <= NEGLECTED
    fixed, rest, start = 0, [], 0
    for law, value in zip(laws, likeliest, strict=True):
        sure = certain[start : start + len(value)]
        start += len(value)
        fixed += int(law.cells[sure] @ value[sure])
        rest.append(law[~sure])
    return fixed, [law for law in rest if len(law.cells)]


def _merge_values(law: Law) -> Law:
    """The same law with equal values of a row together: of a thousand labels of a cell few have a count of their own.

    >>> merged = _merge_values(Law(np.array([[5, 1, 1], [7, 3, 2]]), np.array([[0.2, 0.1, 0.3]] * 2), np.ones(2)))
    >>> merged.values.tolist(), merged.chance.round(6).tolist()
    ([[1, 5, 0], [2, 3, 7]], [[0.4, 0.2, 0.0], [0.3, 0.1, 0.2]])
    """
    order = np.argsort(law.values, axis=1)
    values, chance = (np.take_along_axis(part, order, axis=1) for part in (law.values, law.chance))
    place = np.cumsum(np.diff(values, axis=1, prepend=values[:, :1]) > 0, axis=1)
    rows, width = np.arange(len(values))[:, None], int(place.max()) + 1
    merged, together = np.zeros((len(values), width), np.int64), np.zeros((len(values), width))
    merged[rows, place] = values
    np.add.at(together, (rows, place), chance)
    return Law(merged, together, law.cells)


@dataclass(frozen=True, eq=False)
class _Atoms:
    """Every value of a total, with its probability."""

    values: Integers
    chance: Floats

    def add(self, values: Integers, chance: Floats) -> _Atoms:
        """The total with one more cell."""
        steps = np.append(values, 0)
        parts = np.append(chance, max(1.0 - float(chance.sum()), 0.0))
        found, where = np.unique(self.values[:, None] + steps, return_inverse=True)
        together = np.bincount(where.ravel(), (self.chance[:, None] * parts).ravel(), len(found))
        return _Atoms(found, np.asarray(together, np.float64))


def _take_large(laws: list[Law]) -> tuple[_Atoms, list[Law]]:
    """The total of the cells that are larger than the deviation of all smaller ones, value by value, and the others."""
    atoms = _Atoms(np.zeros(1, np.int64), np.ones(1))
    if not laws:
        return atoms, []
    left = [law.cells.copy() for law in laws]
    variances = [law.variance for law in laws]
    spread = sum(float(cells @ variance) for cells, variance in zip(left, variances, strict=True))
    largest = np.concatenate([law.values.max(axis=1) for law in laws])
    places = [(number, row) for number, law in enumerate(laws) for row in range(len(law.cells))]
    for place in np.argsort(-largest, kind="stable")[:MOST_ATOMS]:
        number, row = places[place]
        law = laws[number]
        while left[number][row]:
            without = max(spread - float(variances[number][row]), 0.0)
            if float(largest[place]) ** 2 <= without:
                break
            joined = atoms.add(law.values[row], law.chance[row])
            if len(joined.values) > MOST_ATOMS:
                break
            atoms, spread = joined, without
            left[number][row] -= 1
        if left[number][row]:
            break
    rest = [replace(law, cells=cells)[cells > 0] for law, cells in zip(laws, left, strict=True)]
    return atoms, [law for law in rest if len(law.cells)]


@dataclass(frozen=True, eq=False)
class _Bulk:
    """The distribution of a total on a grid of points ``start + step j``."""

    start: float
    step: float
    below: Floats
    """P(total <= point), but for what is outside the window."""
    above: Floats
    """P(total >= point)."""
    deviation: float
    """The deviation of the normal law in it; 0 where there is none."""

    @property
    def exact(self) -> bool:
        return self.deviation == 0

    @staticmethod
    def of(laws: list[Law]) -> _Bulk:
        if not laws:
            return _Bulk(0.0, 1.0, np.ones(1), np.ones(1), 0.0)
        mean, spread = find_moments(laws)
        most = sum(int(law.cells @ law.values.max(axis=1)) for law in laws)
        reach = find_reach(spread, float(max(law.values.max() for law in laws)), OUTSIDE)
        start, stop = max(0, math.floor(mean - reach)), min(most, math.ceil(mean + reach))
        length = fft.next_fast_len(stop - start + 1, real=True)
        half = length // 2
        fewest = max(FEWEST_FREQUENCIES, MOST_WORK // sum(law.values.size for law in laws))
        found = _Bulk._exactly(laws, start, length, MOST_WORK) if half < MOST_FREQUENCIES else None
        if found is None and half > SMOOTH_FREQUENCIES:
            found = _Bulk._smoothly(laws, start, stop, SMOOTH_FREQUENCIES, MOST_WORK)
        if found is None and half > fewest:
            found = _Bulk._smoothly(laws, start, stop, fewest, math.inf)
        return found or _Bulk._exactly(laws, start, length, math.inf)  # type: ignore[return-value]

    @staticmethod
    def _exactly(laws: list[Law], start: int, length: int, work: float) -> _Bulk | None:
        found = _transform(laws, 2.0 * np.pi / length, length // 2 + 1, work)
        if found is None:
            return None
        mass = np.roll(fft.irfft(np.conj(found), length), -(start % length))
        return _Bulk(float(start), 1.0, np.cumsum(mass), np.cumsum(mass[::-1])[::-1], 0.0)

    @staticmethod
    def _smoothly(laws: list[Law], start: int, stop: int, frequencies: int, work: float) -> _Bulk | None:
        part = BAND / (2.0 * np.pi * frequencies)
        """The normal law's deviation, as a part of the window."""
        window = (stop - start + 1) / (1.0 - 16.0 * part)
        deviation, first = part * window, start - 8.0 * part * window
        turn = 2.0 * np.pi / window
        found = _transform(laws, turn, frequencies, work, deviation)
        if found is None:
            return None
        number = np.arange(1, frequencies)
        points = fft.next_fast_len(4 * frequencies, real=True)
        waves = np.zeros(frequencies, complex)
        waves[1:] = found[1:] * np.exp(-1j * turn * first * number) / (2j * np.pi * number)
        wave = points * fft.irfft(np.conj(waves), points)
        below = np.arange(points) / points + (wave[0] - wave)
        return _Bulk(first, window / points, below, 1.0 - below, deviation)

    def at_most(self, ends: Integers) -> Floats:
        """At least P(total <= end)."""
        found = np.ones(len(ends))
        for shift, sure in self._shifts():
            place = np.ceil((ends + shift - self.start) / self.step).astype(np.int64)
            inside = np.take(self.below, place, mode="clip")
            found = np.minimum(found, np.where(place < 0, 0.0, inside / sure))
        return found

    def at_least(self, ends: Integers) -> Floats:
        """At least P(total >= end)."""
        found = np.ones(len(ends))
        for shift, sure in self._shifts():
            place = np.floor((ends - shift - self.start) / self.step).astype(np.int64)
            inside = np.take(self.above, place, mode="clip")
            found = np.minimum(found, np.where(place >= len(self.above), 0.0, inside / sure))
        return found

    def _shifts(self) -> list[tuple[float, float]]:
        """How far an end is moved outwards, and the probability that the normal law does not reach so far."""
        if self.exact:
            return [(0.0, 1.0)]
        return [(shift * self.deviation, float(special.ndtr(shift))) for shift in SHIFTS]


def find_reach(spread: float, largest: float, outside: float) -> float:
    """How far from its mean a total of independent numbers goes with probability ``outside`` on either side, at most.

    Bennett (1962): P(total - mean >= t) <= exp(-(v/m^2) h(t m/v)), h(u) = (1 + u) log(1 + u) - u, with v the variance
    and m the farthest that any of them is from its mean.
    """
    if spread <= 0:
        return 0.0
    wanted = -math.log(outside) * largest**2 / spread
    low, high = 0.0, 1.0
    while (1.0 + high) * math.log1p(high) - high < wanted:
        low, high = high, high * 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (1.0 + middle) * math.log1p(middle) - middle < wanted else (low, middle)
    return high * spread / largest


def _transform(laws: list[Law], turn: float, frequencies: int, work: float, deviation: float = 0.0) -> Floats | None:
    """The characteristic function of the total at 0, turn, 2 turn, ...; None where that takes more than ``work``.

    Factors are at most 1 in size, so a frequency at which the product has become negligible needs no further ones; the
    kinds of cells that vary most come first, and few frequencies are left after them. How many that will be is learned
    from some of the frequencies first.
    """
    ordered = _most_varied_first(laws)
    some = np.arange(0, frequencies, PROBED)
    if _multiply_out(ordered, turn, some, work / PROBED, deviation)[1] > work / PROBED:
        return None
    kept, spent, product = _multiply_out(ordered, turn, np.arange(frequencies), work, deviation)
    if spent > work:
        return None
    found = np.zeros(frequencies, complex)
    found[kept] = product
    return found


def _multiply_out(
    laws: list[Law], turn: float, kept: Integers, work: float, deviation: float
) -> tuple[Integers, float, Floats]:
    """The frequencies that matter, the cosines and sines that were needed, and the product of all factors there.

    It ends where more are needed than ``work``. A product that matters is above 1e-18 in size: nothing underflows.
    """
    spent = 0
    product = np.exp(-0.5 * (deviation * turn * kept) ** 2).astype(complex)
    for law in laws:
        step = max(1, NUMBERS_AT_ONCE // len(kept))
        for start in range(0, len(law.cells), step):
            few = law[start : start + step]
            spent += len(kept) * few.values.size
            if spent > work:
                return kept, spent, product
            factor = np.ones((len(few.cells), len(kept)), complex)
            for values, chance in zip(few.values.T, few.chance.T, strict=True):
                factor += chance[:, None] * (_waves(values, turn, kept) - 1.0)
            with np.errstate(under="ignore"):
                product *= _multiply(factor, few.cells)
            matters = product.real**2 + product.imag**2 > NEGLIGIBLE**2
            if not matters.all():
                kept, product = kept[matters], product[matters]
    return kept, spent, product


def _waves(values: Integers, turn: float, kept: Integers) -> Floats:
    """e^(i turn n f) for every value n and frequency f.

    With f = c a + b, it is e^(i turn n c a) e^(i turn n b): a product instead of an exponential.
    """
    step = math.isqrt(int(kept[-1])) + 1
    large, small = (np.exp(1j * np.outer(values, turn * part)) for part in (step * np.arange(step), np.arange(step)))
    return np.asarray(large[:, kept // step] * small[:, kept % step])


def _multiply(factors: Floats, times: Integers) -> Floats:
    """The product of all factors, each as many times as it says, by repeated squaring: (kinds, n) -> (n,)."""
    product = np.ones(factors.shape[1], complex)
    while len(times):
        product *= factors[times % 2 == 1].prod(axis=0)
        factors, times = factors[times > 1] ** 2, times[times > 1] // 2
    return product


def _most_varied_first(laws: list[Law]) -> list[Law]:
    """The same cells: first those that vary most, in size and in how uncertain they are, then the others."""
    spread = np.concatenate([law.cells * law.variance for law in laws])
    shown = np.concatenate([law.chance.sum(axis=1) for law in laws])
    uncertain = np.concatenate([law.cells for law in laws]) * shown * (1.0 - shown)
    places = np.concatenate([np.arange(len(law.cells)) for law in laws])
    number = np.repeat(np.arange(len(laws)), [len(law.cells) for law in laws])
    ranks = (np.argsort(-each, kind="stable")[:VARIED] for each in (uncertain, spread))
    first = list(dict.fromkeys(np.stack(list(ranks), axis=1).ravel().tolist()))
    alone = [laws[number[place]][places[place : place + 1]] for place in first]
    others = np.ones(len(spread), bool)
    others[first] = False
    return alone + [law[places[others & (number == which)]] for which, law in enumerate(laws)]
