"""Exact epsilons by enumeration, in 30 digits: outcomes with their probabilities in a table and in its neighbour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import mpmath as mp

mp.mp.dps = 30
Outcomes = list[tuple[mp.mpf, mp.mpf]]
"""The probability of each outcome in a table and in its neighbour."""


def geometric_outcomes(epsilon: float, tail: float = 1e-30) -> Outcomes:
    """Integers around 0: two-sided geometric noise on a count of 0, and on a count of 1. Tails below 1e-30 are cut."""
    ratio = mp.e ** -mp.mpf(epsilon)
    most = int(mp.log(tail) / mp.log(ratio)) + 2

    def probability(j: int) -> mp.mpf:
        return (1 - ratio) / (1 + ratio) * ratio ** abs(j)

    return [(probability(j), probability(j - 1)) for j in range(-most, most + 2)]


def discrete_gaussian_outcomes(sigma: float) -> Outcomes:
    most = int(13 * sigma) + 3
    weights = {j: mp.e ** (-(mp.mpf(j) ** 2) / (2 * mp.mpf(sigma) ** 2)) for j in range(-most - 1, most + 2)}
    total = mp.fsum(weights.values())
    return [(weights[j] / total, weights[j - 1] / total) for j in range(-most, most + 2)]


def randomised_response_outcomes(epsilon: float, delta: float = 0.0) -> Outcomes:
    """The worst (epsilon, delta)-DP there is: with probability delta it tells, else it is right with odds e^epsilon."""
    told, right = mp.mpf(delta), 1 / (1 + mp.e ** -mp.mpf(epsilon))
    kept = 1 - told
    return [
        (told, mp.mpf(0)),
        (mp.mpf(0), told),
        (kept * right, kept * (1 - right)),
        (kept * (1 - right), kept * right),
    ]


def compose_outcomes(releases: Sequence[Outcomes]) -> Outcomes:
    """The outcomes of all releases together. Outcomes with the same odds are one, which changes no epsilon or delta."""
    together = _merge([(0, mp.mpf(1), mp.mpf(1))])
    for release in releases:
        alone = _merge((_log_odds(p, q), p, q) for p, q in release)
        together = _merge(
            (before + after, one * p, other * q) for before, one, other in together for after, p, q in alone
        )
    return [(one, other) for _, one, other in together]


def _log_odds(one: mp.mpf, other: mp.mpf) -> int:
    """In units of 1e-20; certainty is far from every other odds, however many are added to it."""
    if not one or not other:
        return 10**30 if one else -(10**30)
    return int(mp.nint(mp.log(one / other) * 10**20))


def _merge(outcomes: Iterable[tuple[int, mp.mpf, mp.mpf]]) -> list[tuple[int, mp.mpf, mp.mpf]]:
    merged: dict[int, tuple[int, mp.mpf, mp.mpf]] = {}
    for odds, one, other in outcomes:
        place = (odds + 5 * 10**4) // 10**5
        first, p, q = merged.get(place, (odds, mp.mpf(0), mp.mpf(0)))
        merged[place] = first, p + one, q + other
    return list(merged.values())


def find_epsilon(delta_of: Callable[[mp.mpf], mp.mpf], delta: float, most: float) -> float:
    """Where a falling curve of delta along epsilon meets a delta."""
    low, high = mp.mpf(0), mp.mpf(most)
    if delta_of(low) <= delta:
        return 0.0
    for _ in range(55):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return float(high)


def exact_epsilon(releases: Sequence[Outcomes], delta: float, most: float = 1000.0) -> float:
    """The smallest epsilon at which the releases together are (epsilon, delta)-DP: delta = sum (p - e^epsilon q)+."""
    outcomes = compose_outcomes(releases)

    def delta_of(epsilon: mp.mpf) -> mp.mpf:
        scale = mp.e**epsilon
        return mp.fsum(p - scale * q for p, q in outcomes if p > scale * q)

    return find_epsilon(delta_of, delta, most)


def exact_epsilon_of_two_laplaces(epsilon: float, delta: float) -> float:
    """Two counts with Laplace noise of scale 1/epsilon, each changed by 1: one integral over the first one's loss."""
    e = mp.mpf(epsilon)

    def one(x: mp.mpf) -> mp.mpf:
        if x >= e:
            return mp.mpf(0)
        return 1 - mp.e ** ((x - e) / 2) if x >= -e else 1 - mp.e**x

    def both(x: mp.mpf) -> mp.mpf:
        ends = one(x - e) / 2 + mp.e ** (-e) / 2 * one(x + e)
        cuts = sorted({-e, e, *(cut for cut in (x - e, x + e) if -e < cut < e)})
        return ends + mp.quad(lambda loss: mp.e ** ((loss - e) / 2) / 4 * one(x - loss), cuts)

    return find_epsilon(both, delta, 2 * epsilon)
