"""How likely the attacker names each label of a cell with three labels or more: between two ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.risk.certainty.channel import Channel
from cellrisk.risk.certainty.two_labels import odds_against
from cellrisk.system.arrays import Floats, Integers

Complexes = NDArray[np.complex128]

STEPS = (1024, 8192, 65536)
"""Into how many steps the range of a sum is cut, finer and finer until its two ends meet."""
TOLERANCE = 1e-6
"""Ends have met where they differ by less than this share of all people."""
MOST_WORK = 4e9
"""Nanoseconds, about. What they do not suffice for keeps a wider gap."""
EACH, EACH_STEP, EACH_VALUE = 150_000.0, 60.0, 20.0
"""What a label of a cell costs, what each step of the sums of its others does, and each value of its own."""
MOST_PAIRS = 100_000_000
"""With three labels, pairs of values of the two others: up to so many are gone through one by one."""
FOLDED = 1e-9
"""The part of all sums that a transform folds onto smaller ones, at most; rounding is below that too."""
DOUBT = 1e-9
"""How likely the errors of rounding, taken together, may be larger than a bound that is put on them."""
STEEPNESS = np.exp2(np.arange(-17.0, 7.0))
"""The steepness of the exponentials in Chernoff's bound."""
GROUPS = 256
"""Values of one count are taken together in so many groups, where a bound is enough."""
NUMBERS_AT_ONCE = 1 << 21
NUMBERS_KEPT = 1 << 22


def name_many(
    vectors: LabelledCounts, channel: Channel, behind: Sequence[Floats], certainties: Sequence[float]
) -> tuple[Floats, Floats]:
    """P(share of label k is at least the certainty): at least and at most, each (vectors, labels, certainties).

    Label k is named where S = sum_{j != k} w_j(v_j) <= w_k(v_k) (1 - tau)/tau. Where no sum is small enough, or every
    one is, that is known; Chernoff's bound shows that most labels are next to never named. For the others each w_j is
    rounded to a multiple of h above its smallest value, the transforms of the rounded terms are multiplied, and the
    law of S is read where the errors of rounding, together, are at their largest and at their smallest. h is cut in
    four until both ends meet, the widest gaps first, as far as the work allows. With three labels and few values every
    sum of the two others is gone through, which is exact.
    """
    odds = np.array([odds_against(certainty) for certainty in certainties])
    spread = _Spread.of(vectors.counts, channel, behind)
    people = vectors.cells * vectors.sizes
    allowed = TOLERANCE * float(people.sum())
    least, most = (part.sum(axis=1)[:, None] - part for part in (spread.least, spread.most))
    never = spread.most[..., None] * odds < least[..., None]
    always = spread.least[..., None] * odds >= most[..., None]
    low = always.astype(np.float64)
    high = np.where(never | always, low, spread.bound_chances(least, odds))

    def widest(rows: Integers, labels: Integers) -> tuple[Integers, Integers]:
        """The rows whose gaps are not negligible, even together, the widest first."""
        gap = people[rows] * (high - low)[rows, labels].max(axis=1)
        order = np.argsort(gap, kind="stable")
        kept = order[np.cumsum(gap[order]) > 0.5 * allowed][::-1]
        return rows[kept], labels[kept]

    rows, labels = widest(*np.nonzero((high > low).any(axis=2)))
    if vectors.n_levels == 3 and len(rows) * (2 * channel.reach + 1) ** 2 <= MOST_PAIRS:
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            chance = spread.name_of_three(row, label, odds)
            known = never[row, label] | always[row, label]
            low[row, label] = high[row, label] = np.where(known, low[row, label], chance)
        return low, high
    work = MOST_WORK
    for steps in STEPS:
        each = EACH + EACH_STEP * steps + EACH_VALUE * len(odds) * channel.reach
        cost = np.cumsum(each + EACH_STEP * steps * _first_seen(vectors.counts[rows]))
        kept = int(np.searchsorted(cost, work, side="right"))
        if not kept:
            break
        rows, labels, work = rows[:kept], labels[:kept], work - float(cost[kept - 1])
        largest = np.where(never | always, 0.0, spread.most[..., None] * odds)[rows, labels].max(axis=1)
        width = np.minimum(largest, most[rows, labels]) - least[rows, labels]
        powers = np.ceil(np.log2(np.maximum(width, 1e-12) / steps)).astype(np.int64)
        order = np.lexsort((labels, rows, powers))
        begins = np.flatnonzero(np.diff(powers[order], prepend=powers.min() - 1) | np.diff(rows[order], prepend=-1))
        sums = _Sums(spread, 0.0, 1)
        for few in np.split(order, begins[1:]):
            row, h = int(rows[few[0]]), 2.0 ** float(powers[few[0]])
            if h != sums.h:
                sums = _Sums(spread, h, steps + vectors.n_levels + 1)
            at_once = max(1, NUMBERS_AT_ONCE // sums.length)
            for start in range(0, len(few), at_once):
                here = labels[few[start : start + at_once]]
                ends = sums.name(row, here.tolist(), odds)
                low[row, here] = np.maximum(low[row, here], np.where(never[row, here], 0.0, ends[0]))
                high[row, here] = np.maximum(np.minimum(high[row, here], ends[1]), low[row, here])
        rows, labels = widest(rows, labels)
    return low, high


@dataclass(frozen=True, eq=False)
class _Spread:
    """The values that each count may be released as, and the people expected behind them."""

    channel: Channel
    counts: Integers
    values: tuple[Integers, ...]
    behind: tuple[Floats, ...]
    least: Floats
    """(vectors, labels): the people expected behind the first value that the count may be released as."""
    most: Floats
    """The same behind the last."""
    _kept: dict[tuple[int, int], tuple[Floats, Floats]] = field(default_factory=dict)

    @staticmethod
    def of(counts: Integers, channel: Channel, behind: Sequence[Floats]) -> _Spread:
        least, most = np.empty(counts.shape), np.empty(counts.shape)
        values = tuple(channel.values(column) for column in counts.T)
        for label, column in enumerate(counts.T):
            distinct, place = np.unique(column, return_inverse=True)
            windows = np.array([channel.window(count) for count in distinct.tolist()]).reshape(-1, 2)
            first, last = np.searchsorted(values[label], windows[:, 0]), np.searchsorted(values[label], windows[:, 1])
            least[:, label], most[:, label] = behind[label][first][place], behind[label][last][place]
        return _Spread(channel, counts, values, tuple(behind), least, most)

    def of_count(self, label: int, count: int) -> tuple[Floats, Floats]:
        """The people expected behind each value of one count of a label, and the probability of that value."""
        if (label, count) in self._kept:
            return self._kept[label, count]
        first, last = self.channel.window(count)
        start, stop = np.searchsorted(self.values[label], [first, last + 1])
        values = self.values[label][start:stop]
        if len(self._kept) * (2 * self.channel.reach + 1) > NUMBERS_KEPT:
            self._kept.clear()
        found = self.behind[label][start:stop], self.channel.chance(np.array([count]), values)[0]
        self._kept[label, count] = found
        return found

    def reaches(self, label: int, least: Floats) -> Floats:
        """How likely so many people, or more, are expected behind the value of a label: (vectors,)."""
        place = np.searchsorted(self.behind[label], least)
        first = self.values[label][np.minimum(place, len(self.values[label]) - 1)]
        chance = self.channel.at_most(self.counts[:, label] - first)  # noise is symmetric
        chance = np.where(first <= self.channel.zero, 1.0, chance)
        return np.asarray(np.where(place < len(self.values[label]), chance, 0.0))

    def bound_chances(self, least: Floats, odds: Floats) -> Floats:
        """At most how likely each label is named: (vectors, labels, odds); ``least`` is what the others sum up to.

        Its own w_k must reach that. And Chernoff: P(S <= o w_k) <= E exp(c o w_k) prod_j E exp(-c w_j), for every c.
        """
        falling = np.empty((*self.counts.shape, len(STEEPNESS)))
        for label, column in enumerate(self.counts.T):
            falling[:, label] = self._log_moments(label, column, -STEEPNESS)
        together = falling.sum(axis=1)
        found = np.empty((*self.counts.shape, len(odds)))
        for label, column in enumerate(self.counts.T):
            others = together - falling[:, label]
            for place, each in enumerate(odds.tolist()):
                logs = (self._log_moments(label, column, each * STEEPNESS) + others).min(axis=1)
                reached = self.reaches(label, least[:, label] / each)
                found[:, label, place] = np.minimum(np.exp(np.minimum(logs, 0.0)), reached)
        return found

    def _log_moments(self, label: int, counts: Integers, steepness: Floats) -> Floats:
        """At most log E exp(c w) of each count, for each c: (counts, c)."""
        distinct, place = np.unique(counts, return_inverse=True)
        found = np.empty((len(distinct), len(steepness)))
        for row, count in enumerate(distinct.tolist()):
            behind, chance = self.of_count(label, count)
            starts = np.arange(0, len(behind), -(-len(behind) // GROUPS))
            ends = np.append(starts[1:], len(behind)) - 1
            behind = behind[starts if steepness[0] < 0 else ends]  # where the exponential is largest, in each group
            end = behind[0] if steepness[0] < 0 else behind[-1]
            with np.errstate(under="ignore"):
                each = np.exp(np.outer(steepness, behind - end)) @ np.add.reduceat(chance, starts)
            found[row] = end * steepness + np.log(each)
        return np.asarray(found[place.reshape(-1)])

    def name_of_three(self, row: int, label: int, odds: Floats) -> Floats:
        """How likely the label is named for each of the odds, where two others are left: exact."""
        counts = self.counts[row]
        (one, one_chance), (other, other_chance) = (
            self.of_count(each, int(counts[each])) for each in range(3) if each != label
        )
        sums = (one[:, None] + other).reshape(-1)
        order = np.argsort(sums)
        total = np.concatenate([[0.0], np.cumsum((one_chance[:, None] * other_chance).reshape(-1)[order])])
        behind, chance = self.of_count(label, int(counts[label]))
        place = np.searchsorted(sums[order], behind * odds[:, None], side="right")
        return np.asarray(np.minimum(total[place] @ chance, 1.0))


@dataclass(frozen=True, eq=False)
class _Rounded:
    """The law of a sum of rounded terms: its transform, and what rounding may have done."""

    first: float
    """The smallest value of the sum, which is not rounded."""
    errors: Floats
    """What was rounded away: the least and the largest, its mean and its variance."""
    transform: Complexes

    def __mul__(self, other: _Rounded) -> _Rounded:
        return _Rounded(self.first + other.first, self.errors + other.errors, self.transform * other.transform)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of terms, each rounded to the nearest multiple of one h above its smallest value.

    A term of i steps is weighed by r^i, so that what a transform folds from its end onto its beginning is next to
    nothing: at most r^length of all sums.
    """

    spread: _Spread
    h: float
    longest: int
    """Steps past which no sum matters."""
    _one: dict[tuple[int, int], _Rounded] = field(default_factory=dict)
    _nodes: dict[tuple[int, int], _Rounded] = field(default_factory=dict)

    @cached_property
    def length(self) -> int:
        return int(fft.next_fast_len(2 * self.longest, real=True))

    @cached_property
    def _weights(self) -> Floats:
        return np.asarray(np.exp(math.log(FOLDED) / self.length * np.arange(self.longest)))

    def name(self, row: int, labels: list[int], odds: Floats) -> tuple[Floats, Floats]:
        """At least and at most how likely each of the labels is named, for each of the odds: (labels, odds)."""
        counts = self.spread.counts[row]
        laws = [self._law(label, int(counts[label])) for label in labels]
        common = self._all_but(row, set(labels))
        transforms = np.array([law.transform for law in laws])
        # Products of all laws before one, and after it: nothing is divided.
        others = np.broadcast_to(common.transform, transforms.shape).copy()
        others[1:] *= np.cumprod(transforms[:-1], axis=0)
        others[:-1] *= np.cumprod(transforms[:0:-1], axis=0)[::-1]
        mass = fft.irfft(others, self.length, axis=1)[:, : self.longest] / self._weights
        total = np.zeros((len(labels), self.longest + 1))
        np.cumsum(mass, axis=1, out=total[:, 1:])
        first = common.first + sum(law.first for law in laws)
        errors = common.errors + sum(law.errors for law in laws)
        ends = np.empty((2, len(labels), len(odds)))
        for place, (label, law) in enumerate(zip(labels, laws, strict=True)):
            behind, chance = self.spread.of_count(label, int(counts[label]))
            steps = (behind * odds[:, None] - (first - law.first)) / self.h + 1.0
            for end, (error, doubt) in enumerate(self._errors(errors - law.errors)):
                at = np.minimum(np.maximum(steps - error / self.h, 0.0), self.longest).astype(np.int64)
                ends[end, place] = total[place][at] @ chance + doubt
        np.clip(ends, 0.0, 1.0, out=ends)
        return ends[0], ends[1]

    def _errors(self, errors: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
        """The largest and the smallest that rounding did to a sum, each with what is to be added to a probability.

        Bernstein: independent errors, none farther than h from its mean, exceed the mean of their sum by t with a
        probability of at most exp(-t^2 / (2 (variance + h t/3))).
        """
        least, largest, mean, variance = errors.tolist()
        part = -math.log(DOUBT) * self.h / 3.0
        reach = part + math.sqrt(part**2 - 2.0 * math.log(DOUBT) * variance)
        upper = (mean + reach, -DOUBT - FOLDED) if mean + reach < largest else (largest, -FOLDED)
        lower = (mean - reach, DOUBT + FOLDED) if mean - reach > least else (least, FOLDED)
        return upper, lower

    def _law(self, label: int, count: int) -> _Rounded:
        if (label, count) not in self._one:
            if len(self._one) * self.length > NUMBERS_KEPT:
                self._one.clear()
            behind, chance = self.spread.of_count(label, count)
            first = float(behind[0])
            step = np.rint((behind - first) / self.h)
            error = behind - first - step * self.h
            mean = float(error @ chance)
            errors = np.array([error.min(), error.max(), mean, float((error - mean) ** 2 @ chance)])
            kept = step < self.longest
            law = np.bincount(step[kept].astype(np.int64), chance[kept])
            self._one[label, count] = _Rounded(
                first, errors, np.asarray(fft.rfft(law * self._weights[: len(law)], self.length))
            )
        return self._one[label, count]

    def _all_but(self, row: int, labels: set[int]) -> _Rounded:
        """The sum over all labels of a cell but those."""
        counts = self.spread.counts[row]
        present = set(np.flatnonzero(counts).tolist())
        law = _Rounded(0.0, np.zeros(4), np.ones(self.length // 2 + 1, np.complex128))
        for label in sorted(present - labels):
            law = law * self._law(label, int(counts[label]))
        for left, right in pairwise((-1, *sorted(present | labels), len(counts))):
            for node in _cover(left + 1, right):
                law = law * self._node(*node)
        return law

    def _node(self, start: int, stop: int) -> _Rounded:
        """The sum over the labels from the first to before the last, each with a count of 0."""
        if stop - start == 1:
            return self._law(start, 0)
        if (start, stop) not in self._nodes:
            middle = (start + stop) // 2
            self._nodes[start, stop] = self._node(start, middle) * self._node(middle, stop)
        return self._nodes[start, stop]


def _first_seen(counts: Integers) -> Integers:
    """How many of each row's labels have a count that no row above has: those need a transform of their own."""
    found = np.zeros(len(counts), np.int64)
    for column in counts.T:
        found[np.unique(column, return_index=True)[1]] += 1
    return found


def _cover(start: int, stop: int) -> list[tuple[int, int]]:
    """Stretches whose lengths are powers of two and divide their starts, and which make up one stretch."""
    found = []
    while start < stop:
        size = min(start & -start if start else 1 << 30, 1 << int(math.log2(stop - start)))
        found.append((start, start + size))
        start += size
    return found
