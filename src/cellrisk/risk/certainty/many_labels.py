"""How likely the attacker names each label of a cell with three labels or more: between two ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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
MOST_WORK = 7e8
"""Nanoseconds, about. What they do not suffice for keeps a wider gap."""
EACH_STEP, EACH_VALUE = 35.0, 60.0
"""What each step of a term costs, or of a sum over all labels of a cell but one, and each value of that one."""
MOST_PAIRS = 100_000_000
"""With three labels, pairs of values of the two others: up to so many are gone through one by one."""
FOLDED = 1e-9
"""The part of all sums that a transform folds onto smaller ones, at most; rounding is below that too."""
DOUBT = 1e-9
"""How likely the errors of rounding, taken together, may be larger than a bound that is put on them."""
STEEPNESS = np.exp2(np.arange(-17.0, 7.0))
"""The steepness of the exponentials in Chernoff's bound."""
SQUARED = 6
"""An exponential that is twice as steep is a square; one in so many is computed anew, so that rounding stays small."""
GROUPS = 256
"""Values of one count are taken together in so many groups, where a bound is enough."""
NUMBERS_AT_ONCE = 1 << 17
"""Working arrays of about this many numbers stay in the processor's cache."""
NUMBERS_KEPT = 1 << 22
"""Transforms that many cells share are kept up to so many numbers."""


def name_many(
    vectors: LabelledCounts, channel: Channel, behind: Sequence[Floats], certainties: Sequence[float]
) -> tuple[Floats, Floats]:
    """P(share of label k is at least the certainty): at least and at most, each (vectors, labels, certainties).

    Label k is named where S = sum_{j != k} w_j(v_j) <= w_k(v_k) (1 - tau)/tau. Where no sum is small enough, or every
    one is, that is known; Chernoff's bound shows that most labels are next to never named. For the others each w_j is
    rounded to a multiple of h above its smallest value, the transforms of the rounded terms are multiplied, and the
    law of S is read where the errors of rounding, together, are at their largest and at their smallest. h is cut in
    eight until both ends meet, the widest gaps first, as far as the work allows. With three labels and few values every
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
    if not len(rows):
        return low, high
    if vectors.n_levels == 3 and len(rows) * (2 * channel.reach + 1) ** 2 <= MOST_PAIRS:
        known, chance = (never | always)[rows, labels], spread.name_of_three(rows, labels, odds)
        low[rows, labels] = high[rows, labels] = np.where(known, low[rows, labels], chance)
        return low, high
    work = MOST_WORK
    for steps in STEPS:
        cost = EACH_VALUE * len(odds) * channel.reach + EACH_STEP * steps * spread.first_seen(rows, labels)
        kept = int(np.searchsorted(np.cumsum(cost), work, side="right"))
        if not kept:
            break
        rows, labels, work = rows[:kept], labels[:kept], work - float(cost[:kept].sum())
        largest = np.where(never | always, 0.0, spread.most[..., None] * odds)[rows, labels].max(axis=1)
        width = np.minimum(largest, most[rows, labels]) - least[rows, labels]
        powers = np.ceil(np.log2(np.maximum(width, 1e-12) / steps))
        for power in np.unique(powers).tolist():
            few = rows[powers == power], labels[powers == power]
            ends = _Sums(spread, 2.0**power, steps + vectors.n_levels + 1).name(*few, odds)
            low[few] = np.maximum(low[few], np.where(never[few], 0.0, ends[0]))
            high[few] = np.maximum(np.minimum(high[few], ends[1]), low[few])
        rows, labels = widest(rows, labels)
    return low, high


@dataclass(frozen=True, eq=False)
class _Spread:
    """The values that each count of each label may be released as, and the people expected behind them."""

    channel: Channel
    counts: Integers
    """(vectors, labels)"""
    terms: Integers
    """(vectors, labels): the number of each count among the different counts of all labels, one label after another."""
    count: Integers
    """(terms,): the count that each term is."""
    start: Integers
    """(terms,): where in ``values`` those that the count may be released as begin."""
    stop: Integers
    """(terms,): the place after the last of them."""
    values: Integers
    """The values of all labels, one label after another."""
    behind: Floats
    """The people expected behind each of ``values``."""
    begins: Integers
    """(labels + 1,): where in ``values`` those of each label begin, and the end of all."""

    @staticmethod
    def of(counts: Integers, channel: Channel, behind: Sequence[Floats]) -> _Spread:
        terms = np.empty(counts.shape, np.int64)
        found: list[Integers] = []
        begins = np.cumsum([0, *map(len, behind)])
        values = [channel.values(column) for column in counts.T]
        for label, column in enumerate(counts.T):
            distinct, place = np.unique(column, return_inverse=True)
            terms[:, label] = sum(part.shape[1] for part in found) + place.reshape(-1)
            windows = np.maximum(distinct + np.array([[-channel.reach], [channel.reach]]), channel.zero)
            ends = begins[label] + np.searchsorted(values[label], windows)
            found.append(np.stack([distinct, ends[0], ends[1] + 1]))
        count, start, stop = np.concatenate(found, axis=1)
        together = np.concatenate(values), np.concatenate(behind)
        return _Spread(channel, counts, terms, count, start, stop, *together, begins)

    @property
    def least(self) -> Floats:
        """(vectors, labels): the people expected behind the first value that the count may be released as."""
        return np.asarray(self.behind[self.start][self.terms])

    @property
    def most(self) -> Floats:
        """The same behind the last."""
        return np.asarray(self.behind[self.stop - 1][self.terms])

    def values_of(self, terms: Integers) -> tuple[Integers, Integers, Floats, Floats]:
        """Of several terms, one after another: where each begins, and for each of its values whose it is, the people
        expected behind it and its probability."""
        lengths = self.stop[terms] - self.start[terms]
        begins = np.cumsum(lengths) - lengths
        whose = np.repeat(np.arange(len(terms)), lengths)
        place = np.arange(len(whose)) + (self.start[terms] - begins)[whose]
        return begins, whose, self.behind[place], self.channel.chance_of(self.count[terms][whose], self.values[place])

    def first_seen(self, rows: Integers, labels: Integers) -> Integers:
        """How many terms, and sums over all labels of a row but one, no row above has."""
        terms = self.terms[rows]
        found = np.bincount(np.unique(terms, return_index=True)[1] // terms.shape[1], minlength=len(rows))
        terms[np.arange(len(rows)), labels] = -1 - labels
        found[np.unique(terms, axis=0, return_index=True)[1]] += 1
        return found

    def reaches(self, label: int, least: Floats) -> Floats:
        """How likely so many people, or more, are expected behind the value of a label: (vectors,)."""
        mine = slice(self.begins[label], self.begins[label + 1])
        place = np.searchsorted(self.behind[mine], least)
        first = np.append(self.values[mine], 0)[place]
        chance = self.channel.at_most(self.counts[:, label] - first)  # noise is symmetric
        chance = np.where(first <= self.channel.zero, 1.0, chance)
        return np.asarray(np.where(place < mine.stop - mine.start, chance, 0.0))

    def bound_chances(self, least: Floats, odds: Floats) -> Floats:
        """At most how likely each label is named: (vectors, labels, odds); ``least`` is what the others sum up to.

        Its own w_k must reach that. And Chernoff: P(S <= o w_k) <= E exp(c o w_k) prod_j E exp(-c w_j), for every c.
        """
        moments = np.empty((1 + len(odds), len(self.count), len(STEEPNESS)))
        at_once = NUMBERS_AT_ONCE // GROUPS
        for first in range(0, len(self.count), at_once):
            few = np.arange(first, min(first + at_once, len(self.count)))
            moments[:, few] = self._log_moments(few, (-1.0, *odds.tolist()))
        together = sum(moments[0][column] for column in self.terms.T)
        found = np.empty((*self.counts.shape, len(odds)))
        for label, column in enumerate(self.terms.T):
            others = together - moments[0][column]
            for place, each in enumerate(odds.tolist()):
                logs = (moments[1 + place][column] + others).min(axis=1)
                reached = self.reaches(label, least[:, label] / each)
                found[:, label, place] = np.minimum(np.exp(np.minimum(logs, 0.0)), reached)
        return found

    def _log_moments(self, terms: Integers, factors: Sequence[float]) -> Floats:
        """At most log E exp(f c w) of each term, for each factor f and steepness c: (factors, terms, c)."""
        start, stop = self.start[terms], self.stop[terms]
        size = -(-(stop - start) // GROUPS)
        groups = -(-(stop - start) // size)
        firsts = np.cumsum(groups) - groups
        owner = np.repeat(np.arange(len(terms)), groups)
        low = start[owner] + (np.arange(len(owner)) - firsts[owner]) * size[owner]
        high = np.minimum(low + size[owner], stop[owner]) - 1
        chance = self.channel.chance_within(self.count[terms][owner], self.values[low], self.values[high])
        found = np.empty((len(factors), len(terms), len(STEEPNESS)))
        for place, factor in enumerate(factors):
            # Where the exponential is largest: in each group, and of all groups.
            places = (low, start) if factor < 0 else (high, stop - 1)
            largest, end = (self.behind[each] for each in places)
            below, each = factor * (largest - end[owner]), np.empty(len(owner))
            for number, steepness in enumerate(STEEPNESS.tolist()):
                with np.errstate(under="ignore"):
                    each = np.exp(steepness * below) if number % SQUARED == 0 else each * each
                    mean = np.add.reduceat(each * chance, firsts)
                found[place, :, number] = factor * steepness * end + np.log(mean)
        return found

    def name_of_three(self, rows: Integers, labels: Integers, odds: Floats) -> Floats:
        """How likely a label of each of the rows is named for each of the odds, where two others are left: exact.

        The sums of two others are computed once for all rows that have them.
        """
        others = self.terms[rows][np.arange(3) != labels[:, None]].reshape(-1, 2)
        pairs, which = np.unique(others, axis=0, return_inverse=True)
        order = np.argsort(which.reshape(-1), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
        found = np.empty((len(rows), len(odds)))
        for few, pair in zip(groups, pairs, strict=True):
            (one, one_chance), (other, other_chance) = (self.values_of(pair[place : place + 1])[2:] for place in (0, 1))
            sums = (one[:, None] + other).reshape(-1)
            rising = np.argsort(sums)
            total = np.concatenate([[0.0], np.cumsum((one_chance[:, None] * other_chance).reshape(-1)[rising])])
            begins, _, behind, chance = self.values_of(self.terms[rows[few], labels[few]])
            place = np.searchsorted(sums[rising], behind * odds[:, None], side="right")
            found[few] = np.minimum(np.add.reduceat(total[place] * chance, begins, axis=1), 1.0).T
        return found


@dataclass(frozen=True, eq=False)
class _Rounded:
    """Sums of rounded terms, several of them: their transforms, and what rounding may have done."""

    first: Floats
    """The smallest value of each sum, which is not rounded."""
    errors: Floats
    """(sums, 4): what was rounded away, the least and the largest, its mean and its variance."""
    transforms: Complexes
    """(sums, frequencies)"""

    @staticmethod
    def room(sums: int, frequencies: int) -> _Rounded:
        """Sums of no terms, for others to be put in their place."""
        return _Rounded(np.zeros(sums), np.zeros((sums, 4)), np.ones((sums, frequencies), np.complex128))

    def put(self, places: int | Integers, first: Floats, errors: Floats, transforms: Complexes) -> None:
        self.first[places], self.errors[places], self.transforms[places] = first, errors, transforms


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

    @cached_property
    def length(self) -> int:
        return int(fft.next_fast_len(2 * self.longest, real=True))

    @cached_property
    def _weights(self) -> Floats:
        return np.asarray(np.exp(math.log(FOLDED) / self.length * np.arange(self.longest)))

    @cached_property
    def _at_once(self) -> int:
        """Cells that are worked on together."""
        return max(1, NUMBERS_AT_ONCE // max(self.length, 2 * self.spread.channel.reach + 1))

    def name(self, rows: Integers, labels: Integers, odds: Floats) -> Floats:
        """At least and at most how likely a label of each of the rows is named, for each of the odds: (2, rows, odds).

        Many rows have the same other labels, whose sum is computed once; and sums share factors, whose transforms are
        kept as far as there is room.
        """
        own = self.spread.terms[rows, labels]
        sums, which = np.unique(self._factors(rows, labels), axis=0, return_inverse=True)
        order = np.argsort(which.reshape(-1), kind="stable")
        begins = np.searchsorted(which.reshape(-1)[order], np.arange(len(sums) + 1))
        most = max(1, NUMBERS_KEPT // self.length)
        ends = np.empty((2, len(rows), len(odds)))
        done = 0
        while done < len(sums):
            codes, first = np.unique(sums[done:], return_index=True)
            fits = len(sums) - done if len(codes) <= most else max(1, int(np.sort(first)[most]) // sums.shape[1])
            codes, places = np.unique(sums[done : done + fits], return_inverse=True)
            known, places = self._multiply_out(codes), places.reshape(fits, -1)
            for start in range(0, fits, self._at_once):
                few = places[start : start + self._at_once]
                total = self._add_up(known.transforms, few)
                first, errors = known.first[few].sum(axis=1), self._errors(known.errors[few].sum(axis=1))
                start += done
                here = order[begins[start] : begins[start + len(few)]]
                for part in range(0, len(here), self._at_once):
                    some = here[part : part + self._at_once]
                    mine = which.reshape(-1)[some] - start
                    ends[:, some] = self._read(own[some], mine, total, first, errors, odds)
            done += fits
        return ends

    def _add_up(self, transforms: Complexes, places: Integers) -> Floats:
        """How likely each sum has fewer steps than 0, 1, ...: (sums, steps); rows of factors ascend."""
        changed = np.cumsum(places[1:] != places[:-1], axis=1) > 0
        fresh = np.zeros(len(places), np.int64)
        product = np.ones((1, transforms.shape[1]), np.complex128)
        for column, new in zip(places.T, np.pad(changed, ((1, 0), (0, 0)), constant_values=True).T, strict=True):
            product = product[fresh[new]] * transforms[column[new]]  # once for all rows that begin alike
            fresh = np.cumsum(new) - 1
        mass = fft.irfft(product, self.length, axis=1)[:, : self.longest] / self._weights
        total = np.zeros((len(places), self.longest + 1))
        np.cumsum(mass, axis=1, out=total[:, 1:])
        return total

    def _read(
        self,
        own: Integers,
        which: Integers,
        total: Floats,
        first: Floats,
        errors: tuple[Floats, Floats],
        odds: Floats,
    ) -> Floats:
        """The ends of labels with these terms, given which of the sums the other labels have: (2, labels, odds)."""
        begins, whose, behind, chance = self.spread.values_of(own)
        ends = np.empty((2, len(own), len(odds)))
        row = which[whose] * total.shape[1]
        for end, (error, doubt) in enumerate(zip(*errors, strict=True)):
            least = (1.0 - (first + error) / self.h)[which][whose]
            for place, each in enumerate((odds / self.h).tolist()):
                at = np.minimum(np.maximum(behind * each + least, 0.0), self.longest).astype(np.int64)
                ends[end, :, place] = np.add.reduceat(total.reshape(-1)[row + at] * chance, begins) + doubt[which]
        return np.clip(ends, 0.0, 1.0, out=ends)

    def _errors(self, errors: Floats) -> tuple[Floats, Floats]:
        """The largest and the smallest that rounding did to sums, and what is to be added to a probability for each.

        Bernstein: independent errors, none farther than h from its mean, exceed the mean of their sum by t with a
        probability of at most exp(-t^2 / (2 (variance + h t/3))).
        """
        least, largest, mean, variance = errors.T
        part = -math.log(DOUBT) * self.h / 3.0
        reach = part + np.sqrt(part**2 - 2.0 * math.log(DOUBT) * variance)
        above, below = mean + reach < largest, mean - reach > least
        ends = np.stack([np.where(above, mean + reach, largest), np.where(below, mean - reach, least)])
        return ends, np.stack([np.where(above, -DOUBT, 0.0) - FOLDED, np.where(below, DOUBT, 0.0) + FOLDED])

    def _factors(self, rows: Integers, labels: Integers) -> Integers:
        """What the sum over all labels of a row but one consists of: (rows, factors), -1 for none.

        The number of a term for each label that is there, and one number for each stretch of labels that are not.
        """
        counts = self.spread.counts[rows]
        n_labels = counts.shape[1]
        others = np.arange(n_labels) != labels[:, None]
        edges = np.diff(np.pad((counts == 0) & others, ((0, 0), (1, 1))).astype(np.int8), axis=1)
        absent, start = np.nonzero(edges > 0)
        stop = np.nonzero(edges < 0)[1]
        present, label = np.nonzero((counts > 0) & others)
        row = np.concatenate([absent, present])
        code = np.concatenate(
            [len(self.spread.count) + start * (n_labels + 1) + stop, self.spread.terms[rows[present], label]]
        )
        order = np.argsort(row, kind="stable")
        number = np.bincount(row, minlength=len(rows))
        place = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
        found = np.full((len(rows), int(number.max())), -1)
        found[row[order], place] = code[order]
        return found

    def _multiply_out(self, codes: Integers) -> _Rounded:
        """What each number of a factor stands for."""
        n_terms, n_labels = len(self.spread.count), self.spread.counts.shape[1]
        found = _Rounded.room(len(codes), self.length // 2 + 1)
        terms, stretches = np.flatnonzero((codes >= 0) & (codes < n_terms)), np.flatnonzero(codes >= n_terms)
        self._round(codes[terms], found, terms)
        if len(stretches):
            nobody = _Rounded.room(n_labels, self.length // 2 + 1)
            self._round(self.spread.terms.min(axis=0), nobody, np.arange(n_labels))
            for place in stretches.tolist():
                start, stop = divmod(int(codes[place]) - n_terms, n_labels + 1)
                few = slice(start, stop)
                product = np.multiply.reduce(nobody.transforms[few], axis=0)
                found.put(place, nobody.first[few].sum(), nobody.errors[few].sum(axis=0), product)
        return found

    def _round(self, terms: Integers, into: _Rounded, places: Integers) -> None:
        """Puts each of the terms, alone, into a place."""
        for start in range(0, len(terms), self._at_once):
            few = slice(start, start + self._at_once)
            begins, whose, behind, chance = self.spread.values_of(terms[few])
            first = behind[begins]
            steps = np.rint((behind - first[whose]) / self.h)
            error = behind - first[whose] - steps * self.h
            mean = np.add.reduceat(error * chance, begins)
            variance = np.add.reduceat((error - mean[whose]) ** 2 * chance, begins)
            errors = [np.minimum.reduceat(error, begins), np.maximum.reduceat(error, begins), mean, variance]
            kept = steps < self.longest
            place = whose[kept] * self.longest + steps[kept].astype(np.int64)
            law = np.bincount(place, chance[kept], len(first) * self.longest).reshape(len(first), -1) * self._weights
            into.put(places[few], first, np.stack(errors, axis=1), fft.rfft(law, self.length, axis=1))
