"""An independent opinion on every risk: enumeration straight from the definitions, in mpmath arithmetic.

Nothing here shares a formula with the package. A cell's released pattern is enumerated over all 2^K ways in which
labels vanish or survive; counts are enumerated over all compositions of n; q and s come from mpmath's own
distribution functions or from sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import mpmath as mp

Probability = Callable[[int], mp.mpf]


def laplace(scale: float, threshold: float = 0.5) -> Probability:
    def vanish(count: int) -> mp.mpf:
        x = (mp.mpf(threshold) - count) / mp.mpf(scale)
        return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2

    return vanish


def gaussian(scale: float, threshold: float = 0.5) -> Probability:
    return lambda count: mp.ncdf((mp.mpf(threshold) - count) / mp.mpf(scale))


def by_weights(weight: Callable[[int], mp.mpf], last: int, threshold: float = 0.5) -> Probability:
    """Integer noise with these weights on -last..last."""
    support = range(-last, last + 1)
    total = mp.fsum(weight(j) for j in support)
    return lambda count: mp.fsum(weight(j) for j in support if count + j < threshold) / total


def geometric(scale: float, threshold: float = 0.5) -> Probability:
    ratio = mp.exp(-1 / mp.mpf(scale))
    return by_weights(lambda j: ratio ** abs(j), int(60 * scale) + 60, threshold)


def discrete_gaussian(scale: float, threshold: float = 0.5) -> Probability:
    return by_weights(lambda j: mp.exp(-(mp.mpf(j) ** 2) / (2 * mp.mpf(scale) ** 2)), int(12 * scale) + 20, threshold)


@cache
def local(counts: tuple[int, ...], vanish: Probability, form: str) -> mp.mpf:
    """Enumerate which labels survive; counts has one entry a level, zeros included."""
    n, n_levels = sum(counts), len(counts)
    if form == "published":
        present = sum(count > 0 for count in counts)
        if present == 1:
            return _published_same(n, n_levels, vanish)
        return _published_mixed(n, n_levels, vanish)
    risk = mp.mpf(0)
    for survives in itertools.product((False, True), repeat=n_levels):
        if sum(survives) != 1:
            continue
        shown = survives.index(True)
        if counts[shown] == 0:
            continue
        chance = mp.mpf(1)
        for count, alive in zip(counts, survives, strict=True):
            chance *= 1 - vanish(count) if alive else vanish(count)
        risk += chance * (mp.mpf(counts[shown]) / n if form == "tight" else 1)
    return risk


def _published_same(n: int, n_levels: int, vanish: Probability) -> mp.mpf:
    return (1 - vanish(n)) * vanish(0) ** (n_levels - 1)


def _published_mixed(n: int, n_levels: int, vanish: Probability) -> mp.mpf:
    """The supplement's bound: n - 1 records of one label, 1 of another, the rest absent; either one survives."""
    if n < 2:
        return mp.mpf(0)
    one_survives = (1 - vanish(n - 1)) * vanish(1) + vanish(n - 1) * (1 - vanish(1))
    return one_survives * vanish(0) ** (n_levels - 2)


def compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, parts - 1):
            yield (first, *rest)


@cache
def multinomial(counts: tuple[int, ...], shares: tuple[mp.mpf, ...]) -> mp.mpf:
    chance = mp.factorial(sum(counts))
    for count, share in zip(counts, shares, strict=True):
        chance *= share**count / mp.factorial(count)
    return chance


@cache
def dirichlet_multinomial(counts: tuple[int, ...], alpha: tuple[float, ...]) -> mp.mpf:
    total, n = mp.fsum(alpha), sum(counts)
    chance = mp.factorial(n) * mp.gamma(total) / mp.gamma(total + n)
    for count, a in zip(counts, alpha, strict=True):
        chance *= mp.gamma(count + mp.mpf(a)) / (mp.gamma(mp.mpf(a)) * mp.factorial(count))
    return chance


def over_counts(
    n: int, n_levels: int, law: Callable[[tuple[int, ...]], mp.mpf], vanish: Probability, form: str
) -> mp.mpf:
    """Expectation of the local risk over counts that total n.

    The published form bounds every heterogeneous cell of the same size by one value, so its expectation is taken
    over "all records share a label" or not.
    """
    if form == "published":
        same = mp.fsum(law(counts) for counts in compositions(n, n_levels) if max(counts) == n)
        return same * _published_same(n, n_levels, vanish) + (1 - same) * _published_mixed(n, n_levels, vanish)
    return mp.fsum(law(counts) * local(counts, vanish, form) for counts in compositions(n, n_levels))


def expected(counts: Sequence[int], vanish: Probability, form: str) -> mp.mpf:
    n = sum(counts)
    shares = tuple(mp.mpf(count) / n for count in counts)
    return over_counts(n, len(counts), lambda drawn: multinomial(drawn, shares), vanish, form)


def shrinkage(n: int, alpha: Sequence[float], vanish: Probability, form: str) -> mp.mpf:
    return over_counts(n, len(alpha), lambda drawn: dirichlet_multinomial(drawn, tuple(alpha)), vanish, form)


def over_sizes(risk: Callable[[int], mp.mpf], size_law: Callable[[int], mp.mpf], last: int) -> mp.mpf:
    return mp.fsum(size_law(n) * risk(n) for n in range(1, last + 1))
