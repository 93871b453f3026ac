"""What attackers learn from groups of two categories, from every release written out: no code of the package."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtr

Array = np.ndarray[Any, Any]
TRUE = np.arange(400)
BEYOND = 3.0


@dataclass(frozen=True)
class Attackers:
    """The attackers on groups of two categories; the prior is negative binomial, its shapes and theta given."""

    counts: Array
    """(groups, 2)"""
    shapes: tuple[float, float]
    theta: float
    certainty: float
    kind: str = "geometric"
    """The noise: geometric, or Laplace or Gaussian noise that is rounded."""
    threshold: float = 0.5
    shown: int = 160
    """Released values that are written out."""

    def law(self, scale: float) -> Array:
        """P(released | true count): (true counts, released values); ``scale`` is epsilon, or the Gaussian deviation."""
        values = np.arange(self.shown)
        upper = values + 0.5 - TRUE[:, None]
        if self.kind == "geometric":
            whole, ratio = np.floor(upper), math.exp(-scale)
            above = 1 - ratio ** (np.maximum(whole, 0) + 1) / (1 + ratio)
            below = np.where(whole < 0, ratio ** -np.minimum(whole, 0) / (1 + ratio), above)
        elif self.kind == "laplace":
            tail = 0.5 * np.exp(-np.abs(upper) * scale)
            below = np.where(upper < 0, tail, 1 - tail)
        else:
            below = ndtr(upper / scale)
        law = np.diff(below, axis=1, prepend=0.0)
        hidden = values < self.threshold
        law[:, 0] = law[:, hidden].sum(axis=1)
        law[:, hidden & (values > 0)] = 0.0
        return law

    def accepted(self, law: Array) -> dict[str, tuple[Array, Array]]:
        """P(the attack names the first, the second category | both released values), for each attack."""
        one, other = np.meshgrid(np.arange(self.shown), np.arange(self.shown), indexing="ij")
        means = []
        for shape in self.shapes:
            prior = np.exp(gammaln(shape + TRUE) - gammaln(shape) - gammaln(TRUE + 1) + TRUE * math.log(self.theta))
            with np.errstate(invalid="ignore"):
                means.append(np.nan_to_num((TRUE * prior) @ law / (prior @ law)))
        first, second = means[0][one], means[1][other]
        people = self.counts.sum(axis=0)

        def best(a: Array, b: Array) -> Array:
            return np.where(np.abs(a - b) <= 1e-12 * (a + b), 0.5, a > b)

        def enough(a: Array, b: Array, odds: float) -> Array:
            return np.asarray(a * (1 + 1e-11) >= odds * b, dtype=float)

        sure = self.certainty / (1 - self.certainty)
        needed = [max(sure, BEYOND * people[k] / people[1 - k]) if people[1 - k] else math.inf for k in (0, 1)]
        anything = (one > 0) | (other > 0)
        return {
            "homogeneity": (1.0 * ((one > 0) & (other == 0)), 1.0 * ((other > 0) & (one == 0))),
            "plurality": (best(one, other) * anything, best(other, one) * anything),
            "best-guess": (best(first, second), best(second, first)),
            "informed": (enough(first, second, sure), enough(second, first, sure)),
            "learnt": (enough(first, second, needed[0]), enough(second, first, needed[1])),
        }

    def success(self, scale: float) -> dict[str, tuple[Array, Array]]:
        """With and without the own record, P(named) of each person: for each attack two arrays (groups, 2)."""
        law = self.law(scale)
        found = {}
        for name, accepted in self.accepted(law).items():
            having, lacking = np.zeros((2, *self.counts.shape))
            for group, counts in enumerate(self.counts.tolist()):
                for k in (0, 1):
                    if counts[k]:
                        fewer = [counts[j] - (j == k) for j in (0, 1)]
                        having[group, k] = law[counts[0]] @ accepted[k] @ law[counts[1]]
                        lacking[group, k] = law[fewer[0]] @ accepted[k] @ law[fewer[1]]
            found[name] = having, lacking
        return found

    def figures(self, scale: float) -> dict[str, float]:
        """What the limits are on."""
        found = self.success(scale)
        learnt, _ = found.pop("learnt")
        gains = [having - lacking for having, lacking in found.values()]
        return {
            "max_caused": max(self.largest_share(gain) for gain in gains),
            "max_certain": self.largest_share(learnt),
            "max_person": max(float(gain.max()) for gain in gains),
        }

    def largest_share(self, probability: Array) -> float:
        """The largest share of a category; categories of fewer than five people are taken together."""
        people = self.counts.sum(axis=0)
        numbers = (self.counts * probability).sum(axis=0)
        shares = [float(numbers[k] / people[k]) for k in (0, 1) if people[k] >= 5]
        small = people < 5
        return max([*shares, float(numbers[small].sum() / people[small].sum()) if people[small].sum() else 0.0])
