"""The total of many independent numbers, of which each takes few values: an interval that holds it, with a proof."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from cellrisk.noise.distributions import find_first
from cellrisk.system.arrays import Floats, Integers

OUTSIDE = 1e-7
"""Probability on each side of the window that the total is computed over."""
NEGLECTED = 1e-6
"""Cells that take another than their likeliest value with at most this probability, all together, are fixed at it.
A fifth as much again is set aside for both sides of the window, and a thousandth for rounding."""
MOST_ATOMS = 1024
"""Values of a total that is convolved value by value."""
MOST_FREQUENCIES = 1 << 19
"""Up to so many the distribution is computed as it is;"""
SMOOTH_FREQUENCIES = 1 << 14
"""else a normal law cuts them off there, which moves an end by about a thousandth of the deviation."""
MOST_WORK = 3e7
"""Cosines and sines that are computed before fewer frequencies are tried: about a second."""
FEWEST_FREQUENCIES = 64
"""So many are computed however much work that is."""
VARIED = 128
"""Kinds of cells that are taken one by one, those that vary most in each of two ways."""
NUMBERS_AT_ONCE = 1 << 16
"""Complex numbers in one array: a megabyte."""
PROBED = 64
"""One in so many frequencies is tried first, to learn what all of them would take."""
NEGLIGIBLE = float(np.finfo(np.float64).eps)
"""A factor as small as rounding."""
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
    def outcomes(self) -> tuple[Integers, Floats]:
        """(kinds, values + 1): every value that a cell takes, the last of which is 0, and their probabilities."""
        rest = np.maximum(1.0 - self.chance.sum(axis=1), 0.0)
        return np.column_stack([self.values, np.zeros_like(self.cells)]), np.column_stack([self.chance, rest])

    @property
    def variance(self) -> Floats:
        """(kinds,): the variance of one cell, as a sum of squares, so that it is never negative."""
        values, chance = self.outcomes
        return np.asarray((chance * (values - self.mean[:, None]) ** 2).sum(axis=1))

    def __getitem__(self, kinds: slice | list[int] | Integers | NDArray[np.bool_]) -> Law:
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

    low = find_first(lambda end: below(end) > allowed) - 1
    high = find_first(lambda beyond: above(beyond - 1) <= allowed) - 1
    return Interval(low, high, bulk.exact)


def _find_places(laws: Sequence[Law]) -> tuple[Integers, Integers]:
    """Of every kind of cells, which law it is in, and in which row."""
    lengths = [len(law.cells) for law in laws]
    return np.repeat(np.arange(len(laws)), lengths), np.concatenate([np.arange(length) for length in lengths])


def _take_certain(laws: Sequence[Law]) -> tuple[int, list[Law]]:
    """The total of the cells that are as good as certain, and the laws of the others."""
    found = [_find_likeliest(law) for law in laws]
    likeliest, doubt = np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])
    order = np.argsort(doubt, kind="stable")
    certain = np.zeros(len(doubt), bool)
    certain[order] = np.cumsum(doubt[order]) <= NEGLECTED
    number, _ = _find_places(laws)
    return int(likeliest[certain].sum()), [law[~certain[number == which]] for which, law in enumerate(laws)]


def _find_likeliest(law: Law) -> tuple[Integers, Floats]:
    """(kinds,): the likeliest total of all cells of a kind, and at least the probability that it is another."""
    values, chance = law.outcomes
    likeliest = values[np.arange(len(values)), chance.argmax(axis=1)]
    return law.cells * likeliest, law.cells * (chance.sum(axis=1) - chance.max(axis=1))


def _merge_values(law: Law) -> Law:
    """The same law with equal values of a row together: of a thousand labels of a cell few have a count of their own.

    >>> merged = _merge_values(Law(np.array([[5, 1, 1], [7, 3, 2]]), np.array([[0.2, 0.1, 0.3]] * 2), np.ones(2)))
    >>> merged.values.tolist(), merged.chance.round(6).tolist()
    ([[1, 5, 0], [2, 3, 7]], [[0.4, 0.2, 0.0], [0.3, 0.1, 0.2]])
    """
    order = np.argsort(law.values, axis=1)
    values, chance = (np.take_along_axis(part, order, axis=1) for part in (law.values, law.chance))
    place = np.cumsum(np.diff(values, axis=1, prepend=values[:, :1]) > 0, axis=1)
    rows, width = np.arange(len(values))[:, None], int(place.max(initial=0)) + 1
    merged, together = np.zeros((len(values), width), np.int64), np.zeros((len(values), width))
    merged[rows, place] = values
    np.add.at(together, (rows, place), chance)
    return Law(merged, together, law.cells)


@dataclass(frozen=True, eq=False)
class _Atoms:
    """Every value of a total, with its probability."""

    values: Integers
    chance: Floats

    def add(self, kind: Law) -> _Atoms:
        """The total with one more cell, of the only kind of a law."""
        steps, parts = kind.outcomes
        found, where = np.unique(self.values[:, None] + steps, return_inverse=True)
        together = np.bincount(where.ravel(), (self.chance[:, None] * parts).ravel())
        return _Atoms(found, together.astype(np.float64))


def _take_large(laws: list[Law]) -> tuple[_Atoms, list[Law]]:
    """The total of the cells that are larger than the deviation of all smaller ones, value by value, and the others."""
    atoms, spread = _Atoms(np.zeros(1, np.int64), np.ones(1)), find_moments(laws)[1]
    left = [replace(law, cells=law.cells.copy()) for law in laws]
    for number, row in _largest_first(laws):
        kind = laws[number][[row]]
        joined, without = atoms.add(kind), spread - float(kind.variance[0])
        if float(kind.values.max()) ** 2 <= without or len(joined.values) > MOST_ATOMS:
            break
        atoms, spread = joined, without
        left[number].cells[row] -= 1
    return atoms, [law[law.cells > 0] for law in left]


def _largest_first(laws: list[Law]) -> Iterator[tuple[int, int]]:
    """Every cell, those with the largest values first: which law it is in, and in which row."""
    number, row = _find_places(laws)
    largest = np.concatenate([law.values.max(axis=1) for law in laws])
    for place in np.argsort(-largest, kind="stable"):
        for _ in range(laws[number[place]].cells[row[place]]):
            yield int(number[place]), int(row[place])


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
        mean, spread = find_moments(laws)
        most = sum(int(law.cells @ law.values.max(axis=1)) for law in laws)
        reach = find_reach(spread, float(max(law.values.max(initial=0) for law in laws)), OUTSIDE)
        start, stop = int(max(0.0, mean - reach)), int(min(most, mean + reach))
        size = sum(law.values.size for law in laws)
        work = max(MOST_WORK, FEWEST_FREQUENCIES * size)
        return (
            _Bulk._exactly(laws, start, stop, work)
            or _Bulk._smoothly(laws, start, stop, SMOOTH_FREQUENCIES, work)
            or _Bulk._smoothly(laws, start, stop, int(work / size), work)  # type: ignore[return-value]
        )

    @staticmethod
    def _exactly(laws: list[Law], start: int, stop: int, work: float) -> _Bulk | None:
        length = fft.next_fast_len(stop - start + 1)
        frequencies = length // 2 + 1
        found = _transform(laws, 2.0 * np.pi / length, frequencies, work) if frequencies <= MOST_FREQUENCIES else None
        if found is None:
            return None
        mass = np.roll(fft.irfft(np.conj(found), length), -start)
        return _Bulk(float(start), 1.0, np.cumsum(mass), np.cumsum(mass[::-1])[::-1], 0.0)

    @staticmethod
    def _smoothly(laws: list[Law], start: int, stop: int, frequencies: int, work: float) -> _Bulk | None:
        part = BAND / (2.0 * np.pi * frequencies)
        """The normal law's deviation, as a part of the window."""
        window = (stop - start) / (1.0 - 16.0 * part)
        deviation, first = part * window, start - 8.0 * part * window
        turn = 2.0 * np.pi / window
        found = _transform(laws, turn, frequencies, work, deviation)
        if found is None:
            return None
        number = np.arange(1, frequencies)
        points = 4 * frequencies
        """So that they are about a fifth of the deviation apart."""
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
    and m the farthest that any of them is from its mean. With 1 + u = e^(1 + W), h(u) is 1 + W e^(1 + W): so W is
    Lambert's function at (h - 1)/e. Where h is so small that this is lost in rounding, u is sqrt(2 h), below which it
    never is.
    """
    if spread <= 0:
        return 0.0
    wanted = -math.log(outside) * largest**2 / spread
    u = math.expm1(1.0 + float(special.lambertw((wanted - 1.0) / math.e).real))
    least = math.sqrt(2.0 * wanted)
    return float(np.nanmax([u, least])) * spread / largest


def _transform(laws: list[Law], turn: float, frequencies: int, work: float, deviation: float = 0.0) -> Floats | None:
    """The characteristic function of the total at 0, turn, 2 turn, ...; None where that takes more than ``work``.

    Factors are at most 1 in size, so a frequency at which the product has become negligible needs no further ones; the
    kinds of cells that vary most come first, and few frequencies are left after them. How many that will be is learned
    from some of the frequencies first.
    """
    ordered = _most_varied_first(laws)
    some = np.arange(0, frequencies, PROBED)
    if _multiply_out(ordered, turn, some, work * len(some) / frequencies, deviation) is None:
        return None
    matter = _multiply_out(ordered, turn, np.arange(frequencies), work, deviation)
    if matter is None:
        return None
    kept, product = matter
    found = np.zeros(frequencies, complex)
    found[kept] = product
    return found


def _multiply_out(
    laws: list[Law], turn: float, kept: Integers, work: float, deviation: float
) -> tuple[Integers, Floats] | None:
    """The frequencies that matter and the product of all factors there; None where that takes more than ``work``.

    That is counted in cosines and sines. A product that matters is above rounding in size: nothing underflows.
    """
    product = np.exp(-0.5 * (deviation * turn * kept) ** 2).astype(complex)
    for law in laws:
        step = max(1, NUMBERS_AT_ONCE // len(kept))
        for start in range(0, len(law.cells), step):
            few = law[start : start + step]
            work -= len(kept) * few.values.size
            if work < 0:
                return None
            factor = np.ones((len(few.cells), len(kept)), complex)
            for label in range(few.values.shape[1]):
                factor += few.chance[:, label, None] * (_waves(few.values[:, label], turn, kept) - 1.0)
            with np.errstate(under="ignore"):
                product *= _multiply(factor, few.cells)
            matters = np.abs(product) > NEGLIGIBLE
            kept, product = kept[matters], product[matters]
    return kept, product


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
    number, row = _find_places(laws)
    spread = np.concatenate([law.cells * law.variance for law in laws])
    uncertain = np.concatenate([law.cells * law.chance.sum(axis=1) * law.outcomes[1][:, -1] for law in laws])
    ranks = (np.argsort(-each, kind="stable")[:VARIED] for each in (uncertain, spread))
    first = list(dict.fromkeys(np.stack(list(ranks), axis=1).ravel().tolist()))
    alone = [laws[number[place]][[row[place]]] for place in first]
    others = np.ones(len(spread), bool)
    others[first] = False
    return alone + [law[others[number == which]] for which, law in enumerate(laws)]
