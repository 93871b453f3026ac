"""When does an attack name a category? Its released value decides, and the released values of the other categories."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures.local import each_alone
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

SAME_SCORE = 1e-12
"""Scores that differ by no more than this part of them are ties: that is rounding."""
LITTLE = math.log(1e-13)
"""The logarithm of a part of a probability that is left out."""
STEPS = (1024, 4096, 16384)
"""Steps of the grids on which posterior means of several categories are added up: finer ones where the ends differ."""
CLOSE_PEOPLE, CLOSE_SHARE = 0.5, 1e-4
"""Ends that differ by so many people, or by this part of the people revealed, are close enough."""
SURELY_CLOSE = 1e-6
"""The same before any sum is looked at, in people."""
LEAST_ROOM = 1e-100
"""What is smaller is not divided by."""
FOLDED = 1e-9
"""What a transform folds from the end of its grid onto the beginning, at most."""
PAIRS_FOR_ONE = 16
"""A product of matrices has the results of all pairs of counts; it pays up to so many for each that is needed."""
Complexes = NDArray[np.complex128]


def possible_values(counts: Integers, channel: CountChannel) -> list[Integers]:
    """Return, for each category, every value that its counts may be released as, also with one record left out."""
    return [channel.support(np.union1d(column, np.maximum(column - 1, 0))) for column in counts.T]


@dataclass(frozen=True, eq=False)
class Scores:
    """A number for each released value of one category, by which attacks compare categories."""

    channel: CountChannel
    values: Integers
    """Every value that a count of this category may be released as, ascending; 0 is the first."""
    score: Floats

    @cached_property
    def _sorted(self) -> tuple[Integers, Floats, bool]:
        """The order of the scores, the scores in this order, and whether they rise with the value."""
        order = np.argsort(self.score, kind="stable")
        return order, self.score[order], bool((np.diff(self.score) >= 0).all())

    def up_to(self, counts: Integers, scores: Floats, *, equal: bool) -> Floats:
        """Return P(score <= t | count), or P(score < t | count), for each count and each t: (counts, scores)."""
        (order, ascending, rising), margin = self._sorted, scores * SAME_SCORE
        end = scores + margin if equal else scores - margin
        stop = np.searchsorted(ascending, end, side="right" if equal else "left")
        if rising:
            last = self.values[np.maximum(stop - 1, 0)]
            return np.where(stop > 0, self.channel.cdf(counts[:, None], last)[..., 0], 0.0)
        law = self.channel.pmf(counts[:, None], self.values[order])[..., 0]
        return np.asarray(np.pad(np.cumsum(law, axis=1), ((0, 0), (1, 0)))[:, stop])


class Attack(ABC):
    """An attack on the group of a person: it names a category, or none.

    Categories are released independently, so an attack is known by its acceptance

        A_k(r; n_-k) = P(the attack names k | k is released as r, the other categories have the counts n_-k),

    and the probability that it names k is sum_r P(r | n_k) A_k(r; n_-k). With the record of one person of category k
    left out, only the law of r changes, from P(r | n_k) to P(r | n_k - 1).
    """

    pointwise: ClassVar[bool] = True
    """Whether the acceptance of a value does not depend on the other values that are asked for."""

    @abstractmethod
    def accept(self, category: int, others: Integers, values: Integers) -> tuple[Floats, Floats]:
        """Return two ends of A_k, equal if it is exact: (groups, values).

        ``others`` has a row for each group with the counts of all categories; that of ``category`` does not matter.
        """

    def succeed(self, vectors: LabelledCounts, channel: CountChannel, *, absent: bool = False) -> Success:
        """Return how likely the attack names the category of each person, with and without that person's record.

        With ``absent``, also how likely it names a category that nobody in the group has.
        """
        success = Success(*np.zeros((2, 2, *vectors.counts.shape)))
        self._fill(vectors.counts, channel, (vectors.counts > 0) | absent, success)
        return success

    def _fill(self, counts: Integers, channel: CountChannel, wanted: NDArray[np.bool_], into: Success) -> None:
        """Compute the success against the wanted groups and categories."""
        for ends in (into.revealed, into.gain):
            ends[:, wanted] = 0.0
        for category in range(counts.shape[1]):
            have = np.flatnonzero(wanted[:, category])
            have = have[np.argsort(counts[have, category], kind="stable")]
            while len(have):  # counts that are near enough to each other share a range of released values
                ascending = counts[have, category]
                near = int(np.searchsorted(ascending, ascending[0] * 1.25 + 2.0 + 0.25 * channel.radius, side="right"))
                rows, have = have[:near], have[near:]
                own = counts[rows, category]
                values = channel.support(np.append(own, max(int(own[0]) - 1, 0)))
                step = len(rows) if self.pointwise else max(1, 4 * NUMBERS_AT_ONCE // len(values))
                for start in range(0, len(rows), step):
                    self._add(category, counts, rows[start : start + step], channel, values, into)

    def _add(
        self, category: int, counts: Integers, rows: Integers, channel: CountChannel, values: Integers, into: Success
    ) -> None:
        """Add sum_r P(r | n_k) A_k(r) of some groups, over the values a part at a time if the attack allows that."""
        own, row = np.unique(counts[rows, category], return_inverse=True)
        others = counts[rows]
        others[:, category] = 0
        distinct, group = np.unique(others, axis=0, return_inverse=True)
        group = group.reshape(-1)
        every_pair = len(own) * len(distinct) <= PAIRS_FOR_ONE * len(rows)
        at_once = 4 * NUMBERS_AT_ONCE // (max(len(own), len(distinct)) if every_pair else len(rows))
        step = max(1, at_once) if self.pointwise else len(values)
        for start in range(0, len(values), step):
            shown = values[start : start + step]
            named = channel.pmf(own[:, None], shown)[..., 0]
            gain = named - channel.pmf(np.maximum(own[:, None] - 1, 0), shown)[..., 0]
            low, high = self.accept(category, distinct, shown)

            def weigh(accepted: Floats, *laws: Floats) -> list[Floats]:
                """Return the sums of acceptances under each law, for each group."""
                if every_pair:
                    product = np.concatenate(laws) @ accepted.T
                    return [product[number * len(own) + row, group] for number in range(len(laws))]
                return [np.einsum("rv,rv->r", law[row], accepted[group]) for law in laws]

            if high is low:
                both, added = weigh(low, named, gain)
                into.revealed[:, rows, category] += both
                into.gain[:, rows, category] += added
                continue
            rises, falls = np.maximum(gain, 0.0), np.minimum(gain, 0.0)
            least, rising, falling = weigh(low, named, rises, falls)
            most, higher, lower = weigh(high, named, rises, falls)
            into.revealed[:, rows, category] += [least, most]
            into.gain[:, rows, category] += [rising + lower, higher + falling]


@dataclass(frozen=True, eq=False)
class Success:
    """How likely an attack names a category: two ends, equal if exact; 0 for categories that were not asked for."""

    revealed: Floats
    """S: (2, groups, categories)."""
    gain: Floats
    """S - S', what the person's own record adds: (2, groups, categories)."""

    @staticmethod
    def exact(counts: Integers, revealed: Floats, gain: Floats) -> Success:
        """Return the success against the categories that somebody in a group has, with both ends equal."""
        revealed, gain = np.where(counts > 0, [revealed, gain], 0.0)
        return Success(np.stack([revealed] * 2), np.stack([gain] * 2))


def homogeneity_success(vectors: LabelledCounts, channel: CountChannel) -> Success:
    """Return the success of naming the only category that is shown.

    S = s(n_k) prod_{j != k} q(n_j), and S - S' is the same with p_pivotal(n_k) in place of s(n_k).
    """
    counts = vectors.counts
    hidden = channel.p_zero(counts)[..., 0]
    revealed = each_alone(hidden, channel.p_positive(counts)[..., 0], axis=1)
    gain = each_alone(hidden, channel.p_pivotal(np.maximum(counts, 1))[..., 0], axis=1)
    return Success.exact(counts, revealed, gain)


@dataclass(frozen=True, eq=False)
class LargestScore(Attack):
    """Names the category with the largest score; ties are shared evenly.

    With s_j the score of category j, F_j its distribution and f_j its probabilities,

        A_k(r) = integral_0^1 prod_{j != k} (P(s_j < s_k(r)) + u P(s_j = s_k(r))) du:

    u is the place of k in a random order of those that are tied. The integrand is a polynomial of degree K - 1, which
    Gauss-Legendre points integrate exactly. With the posterior mean as the score this is the attack "best guess". With
    ``factors`` f_k, every other score must be at most f_k s_k(r):
    for two categories, the informed attacker.
    """

    scores: tuple[Scores, ...]
    factors: tuple[float, ...] | None = None
    """For each category what the score of another may be, as a part of its own; None for the largest score."""

    def accept(self, category: int, others: Integers, values: Integers) -> tuple[Floats, Floats]:
        own = self.scores[category]
        least = own.score[np.searchsorted(own.values, values)]
        least = least if self.factors is None else least * self.factors[category]
        laws = []  # P(s < t) and P(s <= t) for the distinct counts of a category, and the row of each group in these
        for j in (j for j in range(others.shape[1]) if j != category):
            distinct, row = np.unique(others[:, j], return_inverse=True)
            up_to = self.scores[j].up_to(distinct, least, equal=True)
            below = up_to if self.factors is not None else self.scores[j].up_to(distinct, least, equal=False)
            laws.append((below, up_to, row))
        accepted = np.zeros((len(others), len(values)))
        for point, weight in zip(*self._points(laws), strict=True):
            product = np.ones(accepted.shape)
            for below, up_to, row in laws:
                product *= (below + point * (up_to - below) if point < 1 else up_to)[row]
            accepted += weight * product
        return accepted, accepted

    def _points(self, laws: Sequence[tuple[Floats, Floats, Integers]]) -> tuple[Floats, Floats]:
        """Return the points u and their weights.

        With t_j the largest probability of a tie with category j, the coefficient of u^d is at most (sum t_j)^d/d!, and
        n points integrate what is below degree 2 n.
        """
        ties = 0.0 if self.factors is not None else sum(float((up_to - below).max()) for below, up_to, _ in laws)
        if ties == 0.0:
            return np.ones(1), np.ones(1)
        number = 1
        while number < (len(laws) + 2) // 2 and 2 * number * math.log(ties) - math.lgamma(2 * number + 1) > LITTLE:
            number += 1
        points, weights = np.polynomial.legendre.leggauss(number)
        return 0.5 * (points + 1.0), 0.5 * weights


@dataclass(frozen=True, eq=False)
class LargestShare(Attack):
    """Names a category whose share of the posterior means is large enough: sum_{j != k} w_j(r_j) <= f_k w_k(r).

    With f = (1 - tau)/tau, that is a posterior share of at least tau: the informed attacker. The sum of the other
    categories is put on a grid of step h: each w_j is rounded to the nearest step above its smallest value, and the
    laws are convolved by transforms. Rounding moves the sum by at most (K - 1) h/2, so the acceptance lies between its
    values at sums that much smaller and larger: two rigorous ends.

    The categories of a ``union`` are named as one value, whose posterior mean is the sum of theirs: the condition is
    sum_{j not in U} w_j(r_j) - f sum_{i in U, i != k} w_i(r_i) <= f w_k(r), with terms of both signs.
    """

    pointwise: ClassVar[bool] = False

    scores: tuple[Scores, ...]
    factors: tuple[float, ...]
    union: tuple[int, ...] = ()
    """Categories that count as one value; their factors are equal."""
    steps: int = STEPS[0]

    def succeed(self, vectors: LabelledCounts, channel: CountChannel, *, absent: bool = False) -> Success:
        success = Success(*np.zeros((2, 2, *vectors.counts.shape)))
        people = vectors.cells[:, None] * (np.maximum(vectors.sizes, 1)[:, None] if absent else vectors.counts)
        if self.union:
            people = np.where(np.isin(np.arange(vectors.n_levels), self.union), people, 0)
        success.revealed[1] = np.where(people > 0, self._reach(vectors.counts, channel), 0.0)
        success.gain[:] = np.array([-1.0, 1.0])[:, None, None] * success.revealed[1]
        for steps in STEPS:
            width = people * np.ptp(success.revealed, axis=0)
            close = CLOSE_SHARE * float((people * success.revealed[0]).sum())
            enough = max(CLOSE_PEOPLE, close) if steps > STEPS[0] else SURELY_CLOSE
            if width.sum() <= enough:
                break
            ascending = np.sort(width, axis=None)
            small = int(np.searchsorted(np.cumsum(ascending), 0.5 * enough, side="right"))
            wide = width > (ascending[small - 1] if small else 0.0)
            replace(self, steps=steps)._fill(vectors.counts, channel, wide, success)
        return success

    def _reach(self, counts: Integers, channel: CountChannel) -> Floats:
        """Return how likely a category alone is released with a mean large enough beside the least of the others."""
        reached = np.zeros(counts.shape)
        for k, scores in enumerate(self.scores):
            least = sum(float(self._term(j, self.factors[k]).min()) for j in range(counts.shape[1]) if j != k)
            distinct, row = np.unique(counts[:, k], return_inverse=True)
            least /= self.factors[k] * (1.0 + SAME_SCORE) if self.factors[k] else 1e-300
            reached[:, k] = 1.0 - scores.up_to(distinct, np.array([least]), equal=False)[row, 0]
        return reached

    def accept(self, category: int, others: Integers, values: Integers) -> tuple[Floats, Floats]:
        rest = [j for j in range(others.shape[1]) if j != category]
        factor = self.factors[category]
        terms = {j: self._term(j, factor) for j in rest}
        own = self.scores[category]
        room = own.score[np.searchsorted(own.values, values)] * factor * (1.0 + SAME_SCORE)
        room = room - sum(float(term.min()) for term in terms.values())
        low, high = np.zeros((2, len(others), len(values)))
        if room.max(initial=-1.0) < 0.0:
            return low, high
        rounded = 0.5 * len(rest)
        step = max(float(room.max()), LEAST_ROOM) / (self.steps - rounded - 1.0)
        near = np.floor(room / step + np.array([[-rounded], [rounded]])).astype(np.int64)
        decay = np.exp(math.log(FOLDED) / (2 * self.steps) * np.arange(self.steps + 1))
        transforms = [self._transforms(j, terms[j], others[:, j], step, decay) for j in rest]
        together = np.prod([usual for usual, *_ in transforms], axis=0)
        at_once = max(1, NUMBERS_AT_ONCE // (4 * self.steps))
        for start in range(0, len(others), at_once):
            few = slice(start, start + at_once)
            product = np.tile(together, (len(others[few]), 1))
            for _, ratio, row, usual_row in transforms:
                other = np.flatnonzero(row[few] != usual_row)
                product[other] *= ratio[row[few][other]]
            mass = fft.irfft(product, 2 * self.steps, axis=1)[:, : self.steps + 1] / decay
            total = np.pad(np.cumsum(mass, axis=1), ((0, 0), (1, 0)))
            for end, at, error in ((low, near[0], -FOLDED), (high, near[1], FOLDED)):
                end[few] = np.clip(total[:, np.maximum(at + 1, 0)] + np.where(at >= 0, error, 0.0), 0.0, 1.0)
        return low, high

    def _term(self, category: int, factor: float) -> Floats:
        """Return what each released value of another category adds to the sum that must stay small."""
        means = self.scores[category].score
        return -factor * means if category in self.union else means

    def _transforms(
        self, category: int, term: Floats, counts: Integers, step: float, decay: Floats
    ) -> tuple[Complexes, Complexes, Integers, int]:
        """Return the transforms of the laws of a category's rounded term.

        That of the count that most groups have; what those of the distinct counts are, divided by it; the row of each
        group in these; and the row of the usual count.
        """
        scores = self.scores[category]
        distinct, row = np.unique(counts, return_inverse=True)
        steps = np.rint((term - term.min()) / step)
        inside = np.flatnonzero(steps <= self.steps)
        laws = np.zeros((len(distinct), self.steps + 1))
        chances = scores.channel.pmf(distinct[:, None], scores.values[inside])[..., 0]
        column = steps[inside].astype(np.int64)
        for line, chance in zip(laws, chances, strict=True):
            line[:] = np.bincount(column, chance, self.steps + 1)
        transforms = fft.rfft(laws * decay, 2 * self.steps, axis=1)
        most = int(np.bincount(row).argmax())
        if np.abs(transforms[most]).min() < LEAST_ROOM:  # nothing can be divided by it
            return np.ones(self.steps + 1, np.complex128), transforms, row, -1
        return transforms[most], transforms / transforms[most], row, most


def informed_attack(means: tuple[Scores, ...], factors: tuple[float, ...]) -> LargestScore | LargestShare:
    """Return the attack that names a category k if the means of the others sum to at most f_k times its own."""
    return LargestScore(means, factors) if len(means) == 2 else LargestShare(means, factors)
