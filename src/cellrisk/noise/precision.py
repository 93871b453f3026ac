"""How far a published count is from the true one: what a reader of the table has to know of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cellrisk.noise.distributions import find_first
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.system.arrays import Floats, Integers

SHARE = 0.95
"""The probability with which an error is within its bound."""
MOST_STEPS = 2_000_000
"""Steps of noise that are summed one by one; wider noise drowns every count."""
TERMS = 200_000
"""Points at which a long sum is looked at; between them it is close to straight."""


@dataclass(frozen=True)
class Precision:
    """The error of published counts, from the noise alone: no record has a part in it."""

    sd: float
    """The standard deviation of a count, far above the threshold."""
    within: int
    """At least 95% of such counts are no further than this from the true ones."""
    share_within: float
    """The share that is, at least 0.95."""
    at_zero: float
    """What a true count of zero is published as on average; negative counts would cancel, but they become zero."""
    hidden: int
    """The largest count that is never published: every noisy count up to it becomes zero."""
    at_hidden: float
    """What a true count of that size is published as on average."""


def find_precision(mechanism: Mechanism) -> Precision:
    """Return the error of counts under a mechanism.

    With S(j) = P(e >= j) of the rounded noise e, which is symmetric: Var e = 2 sum_j (2j - 1) S(j) over j from 1, and a
    zero is published as sum_j j P(e = j) over j from T, the smallest count that is shown: T S(T) + sum_j S(j), j > T.
    A true count of T - 1 is published as sum_j (T - 1 + j) P(e = j) over j from 1: (T - 1) S(1) + sum_j S(j).
    """
    noise, hidden = mechanism.noise, math.ceil(mechanism.threshold) - 1
    points = np.unique(np.round(np.linspace(1.0, float(noise.tail_radius), min(noise.tail_radius, TERMS))))
    tails, tails_beyond = noise.cdf(0.5 - points), noise.cdf(0.5 - points - hidden)  # S at j, and at T - 1 + j
    gaps = np.diff(points) - 1.0

    def add_up(values: np.ndarray) -> float:
        """Return the sum over all whole numbers: between points, values lie on a straight line."""
        return float(values.sum() + (values[:-1] + values[1:]) @ gaps / 2.0)

    within = find_first(lambda least: 2.0 * float(noise.cdf(0.5 - least)) <= 1.0 - SHARE) - 1
    with np.errstate(over="ignore"):  # noise beyond every number
        return Precision(
            sd=math.sqrt(2.0 * add_up((2.0 * points - 1.0) * tails)),
            within=within,
            share_within=1.0 - 2.0 * float(noise.cdf(-0.5 - within)),
            at_zero=hidden * float(tails_beyond[0]) + add_up(tails_beyond),
            hidden=hidden,
            at_hidden=hidden * float(tails[0]) + add_up(tails),
        )


def find_count_errors(mechanism: Mechanism, counts: Integers) -> tuple[Floats, Floats]:
    """Return the mean error E|published - true| and the bias E published - true of true counts n of at least 1.

    With the rounded, symmetric noise e, the smallest released value T and A(j) = sum_i i P(e = i) over i from j: a
    count moves by e if e >= k = T - n, and by -n otherwise. Then sum_e e P(e) over e from k is A(max(k, 1 - k)), and
    that of |e| is A(k) if k > 0, else 2 A(1) - A(1 - k).
    """
    noise, counts = mechanism.noise, np.asarray(counts)
    first = math.ceil(mechanism.threshold) - counts
    steps = np.arange(1, min(noise.tail_radius, MOST_STEPS) + 2)
    tails = noise.cdf(0.5 - steps)  # S(j) = P(e >= j)
    beyond = np.concatenate([np.cumsum(tails[::-1])[::-1][1:], [0.0]])  # sum of S(i) over i > j
    parts = steps * tails + beyond  # A(j)
    signed = parts[np.minimum(np.maximum(first, 1 - first), len(parts)) - 1]
    hidden = noise.cdf(first - 0.5)
    shown = np.where(first > 0, signed, 2.0 * parts[0] - signed)
    return shown + counts * hidden, signed - counts * hidden


def probability_within(mechanism: Mechanism, distance: int) -> float:
    """Return P(|released - true| <= N), for the true count for which it is smallest.

    T is the smallest released value, e the rounded noise. With T = 1 the noise alone decides, P(|e| <= N). Otherwise
    the worst true count is N + 1, which is off by more than N if it is released as 0, e < T - N - 1, or if e > N.
    """
    least = math.ceil(mechanism.threshold)
    hidden = -distance - 0.5 if least == 1 else least - distance - 1.5
    return max(float(1.0 - mechanism.noise.cdf(np.array([hidden, -distance - 0.5])).sum()), 0.0)


def find_error(mechanism: Mechanism) -> int:
    """Return the smallest N with P(|released - true| <= N) >= 95% for every true count.

    >>> import cellrisk as cr
    >>> find_error(cr.Geometric(1.0)), find_error(cr.Geometric(1.0, threshold=4.5))
    (3, 6)
    """
    return find_first(lambda number: probability_within(mechanism, number - 1) >= SHARE) - 1


def find_change(perturbation: Perturbation) -> int:
    """Return the smallest N with P(|published - true| <= N) >= 95% for every true count that has a row.

    >>> from cellrisk.noise.perturbations import read_perturbation
    >>> find_change(read_perturbation("random-rounding:3")), find_change(read_perturbation("suppress-below:10"))
    (2, 9)
    """
    largest = 0
    for count, (values, probabilities) in enumerate(perturbation.rows):
        moves = np.abs(values - count)
        order = np.argsort(moves)
        kept = np.cumsum(probabilities[order]) >= SHARE - 1e-12
        largest = max(largest, int(moves[order][np.argmax(kept)]))
    return largest
