"""How likely the attacker names each label of a cell with three labels or more: between two ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy import fft

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.risk.certainty.channel import Channel
from cellrisk.risk.certainty.two_labels import odds_against
from cellrisk.system.arrays import Floats, Integers

STEPS = (256, 1024, 4096, 16384, 65536)
"""Into how many steps the range of a sum is cut, finer and finer until its two ends meet."""
TOLERANCE = 1e-6
"""Ends have met where they differ by less than this share of all people."""
MOST_WORK = 50_000_000
"""Points of transforms, about: some seconds. What it does not suffice for keeps a wider gap."""
MOST_PAIRS = 100_000_000
"""With three labels, pairs of values of the two others: up to so many are gone through one by one."""
SHORT = 48
MOST_KEPT = 4096


def name_many(
    vectors: LabelledCounts, channel: Channel, behind: Sequence[Floats], certainties: Sequence[float]
) -> tuple[Floats, Floats]:
    """P(share of label k is at least the certainty): at least and at most, each (vectors, labels, certainties).

    Label k is named where S = sum_{j != k} w_j(v_j) <= w_k(v_k) (1 - tau)/tau. What each w_j lies above its smallest
    value is rounded up to a multiple of h, which gives a lower bound, and down, which gives an upper one; the rounded
    terms are convolved, sums too large for any w_k are dropped, and h is cut in four until both ends meet. A sum with
    an atom very near the bound keeps a gap. Where no sum is small enough, or every one is, nothing is convolved; and
    with three labels and few values every sum of the two others is gone through, which is exact.
    """
    shape = (len(vectors), vectors.n_levels, len(certainties))
    low, high = np.zeros(shape), np.zeros(shape)
    work = MOST_WORK
    odds = np.array([odds_against(certainty) for certainty in certainties])
    spread = _Spread.of(vectors.counts, channel, behind)
    people = vectors.cells * vectors.sizes
    allowed = TOLERANCE * float(people.sum()) / vectors.n_levels
    for label in range(vectors.n_levels):
        others = spread.least.sum(axis=1) - spread.least[:, label], spread.most.sum(axis=1) - spread.most[:, label]
        never = spread.most[:, label, None] * odds < others[0][:, None]
        always = spread.least[:, label, None] * odds >= others[1][:, None]
        low[:, label], high[:, label] = always, always
        rows = np.flatnonzero((~never & ~always).any(axis=1))
        # Most labels that are absent could be named after a release that never happens: that bound is enough for them.
        rare = spread.reaches(label, others[0][:, None] / odds)
        order = rows[np.argsort((people[:, None] * rare).max(axis=1)[rows])]
        unlikely = order[np.cumsum((people[:, None] * rare).max(axis=1)[order]) <= 0.5 * allowed]
        high[unlikely, label] = np.maximum(low[unlikely, label], np.where(never[unlikely], 0.0, rare[unlikely]))
        rows = np.setdiff1d(rows, unlikely)
        if vectors.n_levels == 3 and len(rows) * (2 * channel.reach + 1) ** 2 <= MOST_PAIRS:
            for row in rows.tolist():
                chance = spread.name_of_three(row, label, odds)
                low[row, label] = high[row, label] = np.where(never[row] | always[row], low[row, label], chance)
            continue
        for steps in STEPS:
            if not len(rows):
                break
            largest = np.where(never[rows] | always[rows], 0.0, spread.most[rows, label, None] * odds).max(axis=1)
            width = np.minimum(largest, others[1][rows]) - others[0][rows]
            powers = np.ceil(np.log2(np.maximum(width, 1e-12) / steps)).astype(np.int64)
            for power in np.unique(powers).tolist():
                few = rows[powers == power]
                sums = [_Sums(spread, 2.0**power, up, 2 * steps) for up in (True, False)]
                for row in few.tolist():
                    for ends, side in zip((low, high), sums, strict=True):
                        ends[row, label] = np.where(
                            never[row] | always[row], ends[row, label], side.name(row, label, odds)
                        )
            gap = (people[rows, None] * (high[rows, label] - low[rows, label])).max(axis=1)
            order = np.argsort(gap)
            rows = rows[order[np.cumsum(gap[order]) > allowed]][::-1]
            # The next step takes four times as long: the widest gaps come first, as far as the work allows.
            cost = np.cumsum(32 * steps * (1 + (vectors.counts[rows] > 0).sum(axis=1)))
            rows = rows[: int(np.searchsorted(cost, work, side="right"))]
            work -= int(cost[len(rows) - 1]) if len(rows) else 0
    return low, np.maximum(high, low)


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
        first, last = self.channel.window(count)
        start, stop = np.searchsorted(self.values[label], [first, last + 1])
        values = self.values[label][start:stop]
        return self.behind[label][start:stop], self.channel.chance(np.array([count]), values)[0]

    def reaches(self, label: int, least: Floats) -> Floats:
        """How likely so many people, or more, are expected behind the value of a label: (vectors, ...)."""
        place = np.searchsorted(self.behind[label], least)
        first = self.values[label][np.minimum(place, len(self.values[label]) - 1)]
        chance = self.channel.at_most(self.counts[:, label, None] - first)  # noise is symmetric
        chance = np.where(first <= self.channel.zero, 1.0, chance)
        return np.asarray(np.where(place < len(self.values[label]), chance, 0.0))

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


Law = tuple[float, Floats]
"""The smallest value, and the probabilities of it and of what lies 1, 2, ... times h above it."""


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of rounded terms, all in multiples of one h."""

    spread: _Spread
    h: float
    up: bool
    longest: int
    _one: dict[tuple[int, int], Law] = field(default_factory=dict)
    _absent: dict[tuple[int, ...], Law] = field(default_factory=dict)
    _present: dict[tuple[tuple[int, int], ...], Law] = field(default_factory=dict)
    _nodes: dict[tuple[int, int], Law] = field(default_factory=dict)

    def name(self, row: int, label: int, odds: Floats) -> Floats:
        """How likely the label is named, for each of the odds."""
        counts = self.spread.counts[row]
        present = [int(other) for other in np.flatnonzero(counts) if other != label]
        first, law = self._join(
            self._all_present(tuple((other, int(counts[other])) for other in present)),
            self._all_absent(tuple(sorted({*present, label}))),
        )
        behind, chance = self.spread.of_count(label, int(counts[label]))
        total = np.concatenate([[0.0], np.cumsum(law)])
        place = np.floor((behind * odds[:, None] - first) / self.h) + 1
        return np.asarray(np.minimum(total[np.clip(place, 0, len(law)).astype(np.int64)] @ chance, 1.0))

    def _law(self, label: int, count: int) -> Law:
        if (label, count) not in self._one:
            behind, chance = self.spread.of_count(label, count)
            first = float(behind[0])
            step = (np.ceil if self.up else np.floor)((behind - first) / self.h)
            kept = step < self.longest
            law = np.bincount(step[kept].astype(np.int64), chance[kept])
            self._one[label, count] = first, np.asarray(law, np.float64)
        return self._one[label, count]

    def _all_present(self, pairs: tuple[tuple[int, int], ...]) -> Law:
        if not pairs:
            return 0.0, np.ones(1)
        if pairs not in self._present:
            if len(self._present) > MOST_KEPT:
                self._present.clear()
            self._present[pairs] = self._join(self._all_present(pairs[:-1]), self._law(*pairs[-1]))
        return self._present[pairs]

    def _all_absent(self, others: tuple[int, ...]) -> Law:
        """The sum over all labels that are not among the others, each with a count of 0."""
        if others not in self._absent:
            if len(self._absent) > MOST_KEPT:
                self._absent.clear()
            law: Law = 0.0, np.ones(1)
            edges = (-1, *others, self.spread.counts.shape[1])
            for left, right in pairwise(edges):
                for node in _cover(left + 1, right):
                    law = self._join(law, self._node(*node))
            self._absent[others] = law
        return self._absent[others]

    def _node(self, start: int, stop: int) -> Law:
        """The sum over the labels from the first to before the last, each with a count of 0."""
        if stop - start == 1:
            return self._law(start, 0)
        if (start, stop) not in self._nodes:
            middle = (start + stop) // 2
            self._nodes[start, stop] = self._join(self._node(start, middle), self._node(middle, stop))
        return self._nodes[start, stop]

    def _join(self, one: Law, other: Law) -> Law:
        """The law of the sum of two."""
        shorter, longer = sorted((one[1], other[1]), key=len)
        if len(shorter) == 1:
            joined = longer * shorter[0]
        elif len(shorter) <= SHORT:
            joined = np.convolve(longer, shorter)
        else:
            length = fft.next_fast_len(len(shorter) + len(longer) - 1, real=True)
            joined = fft.irfft(fft.rfft(longer, length) * fft.rfft(shorter, length), length)
            joined = np.maximum(joined[: len(shorter) + len(longer) - 1], 0.0)
        return one[0] + other[0], joined[: self.longest]


def _cover(start: int, stop: int) -> list[tuple[int, int]]:
    """Stretches whose lengths are powers of two and divide their starts, and which make up one stretch."""
    found = []
    while start < stop:
        size = min(start & -start if start else 1 << 30, 1 << int(math.log2(stop - start)))
        found.append((start, start + size))
        start += size
    return found
