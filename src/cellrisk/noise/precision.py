"""How far a published count is from the true one: what somebody who uses the table has to know of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cellrisk.noise.distributions import find_first
from cellrisk.noise.mechanisms import Mechanism

SHARE = 0.95
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

    def of_sum(self, counts: int) -> float:
        """The standard deviation of a sum of so many counts, whose noises are independent."""
        return self.sd * math.sqrt(counts)


def find_precision(mechanism: Mechanism) -> Precision:
    """The error of counts under a mechanism.

    With S(j) = P(e >= j) of the rounded noise e, which is symmetric: Var e = 2 sum_j (2j - 1) S(j) over j from 1, and a
    zero is published as sum_j j P(e = j) over j from T, the smallest count that is shown: T S(T) + sum_j S(j), j > T.
    A true count of T - 1 is published as sum_j (T - 1 + j) P(e = j) over j from 1: (T - 1) S(1) + sum_j S(j).

    >>> import cellrisk as cr
    >>> found = find_precision(cr.Geometric(epsilon=1.0))
    >>> round(found.sd, 4), found.within, round(found.at_zero, 4)
    (1.357, 3, 0.4255)
    """
    noise = mechanism.noise

    def survive(least: np.ndarray) -> np.ndarray:  # P(e >= least), by symmetry a lower tail
        return np.asarray(noise.cdf(0.5 - least))

    beyond = find_first(lambda least: 2.0 * survive(np.array([float(least)]))[0] <= 1.0 - SHARE)
    points = np.unique(np.round(np.linspace(1.0, float(noise.tail_radius), min(noise.tail_radius, TERMS))))
    tails = survive(points)
    least = mechanism.threshold + 0.5
    with np.errstate(over="ignore"):  # noise beyond every number
        variance = 2.0 * _add_up((2.0 * points - 1.0) * tails, points)
        at_zero = (least - 1.0) * survive(np.array([least]))[0] + _add_up(survive(points + (least - 1.0)), points)
        at_hidden = (least - 1.0) * tails[0] + _add_up(tails, points)
    inside = 1.0 - 2.0 * float(survive(np.array([float(beyond)]))[0])
    return Precision(math.sqrt(variance), beyond - 1, inside, float(at_zero), int(least) - 1, float(at_hidden))


def probability_within(mechanism: Mechanism, distance: int) -> float:
    """Return P(|released - true| <= N), for the true count for which it is smallest.

    T is the smallest released value, e the rounded noise. With T = 1 the noise alone decides, P(|e| <= N). Otherwise
    the worst true count is N + 1, which is off by more than N if it is released as 0, e < T - N - 1, or if e > N.

    >>> import cellrisk as cr
    >>> [round(probability_within(cr.Geometric(1.0), distance), 4) for distance in (0, 1, 3)]
    [0.4621, 0.8021, 0.9732]
    """
    least = math.ceil(mechanism.threshold)
    hidden = -distance - 0.5 if least == 1 else least - distance - 1.5
    tails = mechanism.noise.cdf(np.array([hidden, -distance - 0.5]))
    return max(float(1.0 - tails.sum()), 0.0)


def find_error(mechanism: Mechanism) -> int:
    """Return the smallest N with P(|released - true| <= N) >= 95% for every true count.

    >>> import cellrisk as cr
    >>> find_error(cr.Geometric(1.0)), find_error(cr.Geometric(1.0, threshold=4.5))
    (3, 6)
    """
    enough = find_first(lambda number: probability_within(mechanism, number - 1) >= SHARE)
    return enough - 1


def _add_up(values: np.ndarray, points: np.ndarray) -> float:
    """A sum over all whole numbers from the first point to the last; between points that are not neighbours, values are
    taken to lie on a straight line."""
    gaps = np.diff(points)
    between = (values[:-1] + values[1:]) / 2.0 * (gaps - 1.0)
    return float(values.sum() + between.sum())
