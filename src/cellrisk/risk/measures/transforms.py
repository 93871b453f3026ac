"""Risk where sequences are long or labels are many: Fourier transforms, with a stated error.

With b_j(m) = q(m) P_j(m), a_k(m) = s(m) P_k(m) for m >= 1 and V_k the convolution of all b_j but b_k,

    exact = sum_k [V_k * a_k](n) / P(n),    tight: m a_k(m)/n in place of a_k.

In transforms V_k * a_k is prod_j B_j times A_k/B_k, so that one product serves every label, and the sum over labels is
taken before it is transformed back, at the totals n that are asked for and no others. Two bounds keep this short:

- length: by Chernoff's bound all labels together lie in a window, but for a probability below 1e-18; a transform of
  that length folds the rest onto it. It is as long as their total spreads, not as long as a cell is large.
- frequencies: |B_j(w)| <= D_j/(2 sin(w/2)), D_j the sum of |b_j(m) - b_j(m-1)|. Where the product of these bounds is
  below 1e-18, here and at every higher frequency, nothing is computed: of many labels about a hundred frequencies are
  left, which are summed one by one instead of by a fast transform.

The labels of a cell differ in their share alone, of which P_j(m) is a smooth function. Where very many have shares
close together, transforms are computed at few shares, and interpolated between those (`_Between`).

Every b_j is divided by its sum and by q(0), which come back at the end, so that nothing underflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cellrisk.risk.measures.label_counts import BESIDES, RUN, consecutive_pmf, count_log_pmf, likeliest, window
from cellrisk.risk.measures.survival import SurvivalTable, require_computable
from cellrisk.system.arrays import Floats, Integers

Complexes = NDArray[np.complex128]

MANY = 32
"""Cells of more labels than this are left to Fourier transforms, however short their sequences."""
TOLERANCE = 1e-12
"""The estimated error of a risk above which a size gets a common mean of its own, other than that of its neighbours."""
ROUNDING = 1e-15
"""The estimated error of a transform."""
FALL = 1e3
"""A common mean serves the sizes whose P(n) is at most this many times smaller than the largest."""
NOTHING = 1e-30
"""A risk certain to be below this share of q(0)^(K-1), its value in a cell without other labels, is taken for 0."""
NUMBERS_AT_ONCE = 1 << 20
NUMBERS_KEPT = 1 << 23
"""Probabilities of counts are computed once where they are no more than this."""
SMALLEST = 1e-18
"""A transform smaller than this is noise; this stands in its place."""
NEVER = 1e-200
"""A label less likely to vanish than this never does."""
BEYOND = 41.5
"""exp(-41.5) is about 1e-18."""
STEEPNESS = np.exp2(np.arange(-18.0, 5.0))
"""Of the exponentials in Chernoff's bound: a factor of two apart, the best of them is within 6% of the best of all."""
ANGLES = np.pi * np.exp2(np.arange(-80, 1) / 4.0)
"""Frequencies at which the product of transforms is bounded."""
PANEL = 2.5
"""Labels are interpolated among those whose mean counts are within so many standard deviations of each other,"""
LEAST_APART = 1e-9
"""and differ by more than this share of themselves, as there is no room for points between next to equal ones,"""
NODES = 28
"""by a polynomial through so many shares: an error below 1e-15 of the largest value."""


def risk_by_transform(
    shares: Floats, times: Integers, concentration: float, sizes: Integers, table: SurvivalTable
) -> tuple[Floats, Floats]:
    """Exact and tight risk of a cell of each size under one noise; ``times`` labels have each of the shares.

    The error is estimated, not proven: 1e-15 times the sum of the absolute values of all that is added up, over P(n),
    and sqrt(K/k) times as much where K labels are interpolated between k.
    A size for which that exceeds 1e-12 of the risk, or of q(0)^(K-1) where that is larger, is computed anew with the
    common mean at its own size or near it, where P(n) is large. Beside closed forms under geometric noise (extended
    precision; up to 1,000 labels, 20,000 records) no error above 4e-13, measured that way, was seen.
    """
    exact, tight = np.zeros(len(sizes)), np.zeros(len(sizes))
    empty = float(table.vanish[0, 0]) ** (int(times.sum()) - 1)
    left = np.argsort(-sizes, kind="stable")
    while len(left):
        largest = int(sizes[left[0]])
        among = sizes[left]
        peak = count_log_pmf(among, 1.0, concentration, among)
        mean = int(among[count_log_pmf(largest, 1.0, concentration, among) > peak - math.log(FALL)].min())
        log_total = count_log_pmf(among, 1.0, concentration, mean)
        cell = _Cells.of(_Between.of(shares, concentration, mean, largest, table), times[None].astype(np.float64))
        near = log_total > log_total.max() - math.log(FALL)
        some = cell.log_most[0] - log_total > math.log(NOTHING)
        left, log_total, near = left[some], log_total[some], near[some]
        if not near.any():
            continue
        few, rest = left[near], left[~near]
        found, error = cell.survivors_at(sizes[few], log_total[near])
        good = (error < TOLERANCE * np.maximum(found[0], 1.0)) | (sizes[few] == mean)
        done = few[good]
        exact[done], tight[done] = found[0, good] * empty, found[1, good] / sizes[done] * empty
        left = np.sort(np.concatenate([few[~good], rest]))
        left = left[np.argsort(-sizes[left], kind="stable")]
    return exact, tight


def multinomial_risk_by_transform(counts: Integers, sizes: Integers, table: SurvivalTable) -> tuple[Floats, Floats]:
    """Exact and tight expected risk of cells with these counts, over the labels present; absent ones may stand as 0.

    Labels with the same count are of one kind, in whichever cell they are, and cells whose transforms are of about the
    same length share them.
    """
    exact, tight = np.zeros(len(sizes)), np.zeros(len(sizes))
    means, where = np.unique(counts, return_inverse=True)
    where = where.reshape(counts.shape)
    times = np.zeros((len(sizes), len(means)))
    np.add.at(times, (np.arange(len(sizes))[:, None], where), 1.0)
    if means[0] == 0:
        means, times = means[1:], times[:, 1:]
    kinds = _Kinds.of(means.astype(np.float64), math.inf, 1, int(sizes.max()), table)
    cells = _Cells.of(kinds, times)
    log_total = count_log_pmf(sizes, 1.0, math.inf, sizes)
    empty = float(table.vanish[0, 0]) ** (times.sum(axis=1) - 1)
    some = np.flatnonzero(cells.log_most - log_total > math.log(NOTHING))
    lengths = cells.lengths(sizes, sizes)
    steps = np.ceil(2.0 * np.log2(np.maximum(lengths, 16)))
    for step in np.unique(steps[some]):
        few = some[steps[some] == step]
        length = fft.next_fast_len(math.ceil(2.0 ** (step / 2.0)))
        found, _ = cells[few].survivors(sizes[few], log_total[few], length)
        exact[few], tight[few] = found[0] * empty[few], found[1] / sizes[few] * empty[few]
    return exact, tight


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Labels that differ in their share, the mean of each being share * size, under one noise."""

    shares: Floats
    concentration: float
    size: int
    table: SurvivalTable
    first: Integers
    """Where the counts of each start."""
    last: Integers
    """Where the counts of each end."""
    masses: Floats
    """The sum of each b_j over q(0); 0 for one that never vanishes."""
    moments: Floats
    """log of the mean of exp(+-c m), m counted from the first on, at each steepness c under b_j over its sum."""
    jumps: Floats
    """D_j, under b_j over its sum."""
    kept: list[tuple[Integers, Floats]] = field(default_factory=list)
    """The probabilities of all counts, where they are not too many to be kept."""

    @staticmethod
    def of(shares: Floats, concentration: float, size: int, most: int, table: SurvivalTable) -> _Kinds:
        """``most`` is a count that no label exceeds."""
        first, last = window(shares, concentration, size)
        return _Kinds.within(shares, concentration, size, table, first, np.minimum(last, most))

    @staticmethod
    def within(
        shares: Floats, concentration: float, size: int, table: SurvivalTable, first: Integers, last: Integers
    ) -> _Kinds:
        """The same for counts from the first to the last of each."""
        n = len(shares)
        require_computable(int((last - first).max()))
        made = _Kinds(
            shares, concentration, size, table, first, last, np.zeros(n), np.zeros((n, 2 * len(STEEPNESS))), np.ones(n)
        )
        steepness = np.concatenate([STEEPNESS, -STEEPNESS])
        keep = int((last - first + 1).sum()) <= NUMBERS_KEPT
        for few, law in made._laws(np.arange(n)):
            if keep:
                made.kept.append((few, law))
            terms = made._vanishing(few, law)
            mass = terms.sum(axis=1)
            made.masses[few] = np.where(mass > NEVER, mass, 0.0)
            terms /= np.where(mass > NEVER, mass, 1.0)[:, None]
            made.jumps[few] = np.abs(np.diff(terms, axis=1, prepend=0.0, append=0.0)).sum(axis=1)
            logs = _log_moments(terms, steepness)
            useless = np.where(steepness > 0, 1e300, 0.0)  # where a bound cannot be computed
            made.moments[few] = np.where(np.isfinite(logs) & (mass > NEVER)[:, None], logs, useless)
        return made

    @property
    def rounding(self) -> float:
        """The estimated error of a sum over labels, beside the sum of the absolute values."""
        return ROUNDING

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which may vanish."""
        return np.asarray(self.masses > 0)

    def _laws(self, places: Integers, at_once: int = 0) -> Iterator[tuple[Integers, Floats]]:
        """P_j from its first count on, of few labels of like width at a time: (labels, counts), 0 past the last."""
        widths = self.last - self.first + 1
        if self.kept and len(places) == len(self.shares):
            for few, law in self.kept:
                step = max(1, NUMBERS_AT_ONCE // max(law.shape[1], at_once))
                yield from (
                    (few[start : start + step], law[start : start + step]) for start in range(0, len(few), step)
                )
            return
        places = places[np.argsort(widths[places], kind="stable")]
        start = 0
        while start < len(places):
            narrow = int(widths[places[start]])
            stop = int(np.searchsorted(widths[places], 1.5 * narrow + 64, side="right"))
            few = places[start : min(stop, start + max(1, NUMBERS_AT_ONCE // max(3 * narrow // 2 + 64, at_once)))]
            start += len(few)
            width = int(widths[few[-1]])
            law = consecutive_pmf(self.first[few], width, self.shares[few], self.concentration, self.size)
            law[np.arange(width) >= widths[few, None]] = 0.0
            yield few, law

    def _vanishing(self, few: Integers, law: Floats) -> Floats:
        """b_j over q(0), as far as any of them reaches."""
        end = self.table.end
        kept = min(law.shape[1], max(1, end - int(self.first[few].min()) + 1))
        counts = self.first[few, None] + np.arange(kept)
        vanish = self.table.vanish[np.minimum(counts, end), 0] / self.table.vanish[0, 0]
        return np.asarray(np.where(counts <= end, law[:, :kept] * vanish, 0.0))

    def transforms(
        self, places: Integers, length: int, frequencies: int
    ) -> Iterator[tuple[Integers, Complexes, Complexes, Complexes]]:
        """Of few labels at a time: B_j of b_j over its sum (1 where it never vanishes), A_j, and that of m a_j(m)."""
        widest = int((self.last - self.first)[places].max()) + 1
        waves = _Waves(widest, length, frequencies)
        for few, law in self._laws(places, frequencies):
            counts = self.first[few, None] + np.arange(law.shape[1])
            survive = law * (self.table.survive[np.minimum(counts, self.table.end), 0] * (counts > 0))
            vanish = self._vanishing(few, law) / np.where(self.alive[few], self.masses[few], 1.0)[:, None]
            b = self._divisible(few, waves.transform(vanish))
            yield few, b, waves.transform(survive), waves.transform(survive * counts)

    def _divisible(self, few: Integers, b: Complexes) -> Complexes:
        """B_j so that dividing by it undoes multiplying; 1 where the label never vanishes."""
        b[~self.alive[few]] = 1.0
        b[np.abs(b) < SMALLEST] = SMALLEST
        return b


@dataclass(frozen=True, eq=False)
class _LikeLabels:
    """Labels of like share, and the nodes, the shares between which they are interpolated."""

    labels: Integers
    nodes: Integers
    laws: Floats
    """What the values at the nodes are multiplied by and summed, to have those of the labels: (labels, nodes)."""
    vanishing: Floats
    """The same for b_j, whose sum may fall by powers of ten: an exponential that falls alike is taken out of it."""

    @staticmethod
    def of(labels: Integers, nodes: Integers, shares: Floats, points: Floats, masses: Floats) -> _LikeLabels:
        """The shares of the labels, those of the nodes, and how likely each of all nodes is to vanish."""
        laws = _lagrange(points, shares)
        low, high = np.maximum(masses[nodes[[0, -1]]], NEVER)
        slope = math.log(high / low) / max(points[-1] - points[0], 1e-300)
        return _LikeLabels(labels, nodes, laws, laws * np.exp(slope * (shares[:, None] - points)))


@dataclass(frozen=True, eq=False)
class _Between(_Kinds):
    """Labels so many that few of them, the nodes, give the others."""

    nodes: _Kinds = field(kw_only=True)
    panels: list[_LikeLabels] = field(kw_only=True)

    @staticmethod
    def of(shares: Floats, concentration: float, size: int, most: int, table: SurvivalTable) -> _Kinds:
        """A label is its own node where few others are near it."""
        first, last = window(shares, concentration, size)
        last = np.minimum(last, most)
        deviations = 2.0 * np.sqrt(shares * (size / (1.0 + size / concentration)))  # of a count, from 0 to its mean
        near = np.floor(deviations / PANEL)
        groups, points, ends = [], [], []
        for each in np.unique(near):
            labels = np.flatnonzero(near == each)
            labels = labels[np.argsort(shares[labels])]
            groups.append(labels)
            apart = shares[labels[-1]] - shares[labels[0]] > LEAST_APART * shares[labels[-1]]
            if apart and len(labels) > 2 * NODES:  # counts from the first of any to the last of any
                first[labels], last[labels] = first[labels].min(), last[labels].max()
                points.append(_points(shares[labels[0]], shares[labels[-1]]))
            else:
                points.append(shares[labels])
            ends.append(np.stack([first[labels], last[labels]])[:, : len(points[-1])])
        if sum(len(at) for at in points) == len(shares):
            return _Kinds.within(shares, concentration, size, table, first, last)
        nodes = _Kinds.within(np.concatenate(points), concentration, size, table, *np.concatenate(ends, axis=1))
        masses, jumps = np.empty((2, len(shares)))
        moments = np.empty((len(shares), nodes.moments.shape[1]))
        panels, start = [], 0
        for labels, at in zip(groups, points, strict=True):
            panel = _LikeLabels.of(labels, np.arange(start, start + len(at)), shares[labels], at, nodes.masses)
            start += len(at)
            panels.append(panel)
            mass = panel.vanishing @ nodes.masses[panel.nodes]
            masses[labels] = np.where(mass > NEVER, mass, 0.0)
            jumps[labels] = np.interp(shares[labels], at, nodes.jumps[panel.nodes])
            for column, values in enumerate(nodes.moments[panel.nodes].T):
                moments[labels, column] = np.interp(shares[labels], at, values)
        return _Between(
            shares, concentration, size, table, first, last, masses, moments, jumps, nodes=nodes, panels=panels
        )

    @property
    def rounding(self) -> float:
        """Larger, since labels between the same nodes have errors in common."""
        return ROUNDING * math.sqrt(len(self.shares) / len(self.nodes.shares))

    def transforms(
        self, places: Integers, length: int, frequencies: int
    ) -> Iterator[tuple[Integers, Complexes, Complexes, Complexes]]:
        """The same, of all labels, between the nodes; one by one where frequencies are too many to be kept."""
        if 3 * len(self.nodes.shares) * frequencies > NUMBERS_KEPT:
            yield from super().transforms(places, length, frequencies)
            return
        at_nodes = np.empty((3, len(self.nodes.shares), frequencies), np.complex128)
        for few, *found in self.nodes.transforms(np.arange(len(self.nodes.shares)), length, frequencies):
            at_nodes[:, few] = found
        at_nodes[0] *= self.nodes.masses[:, None]
        step = max(1, NUMBERS_AT_ONCE // frequencies)
        for panel in self.panels:
            for start in range(0, len(panel.labels), step):
                part = slice(start, start + step)
                few = panel.labels[part]
                b = _times(panel.vanishing[part], at_nodes[0, panel.nodes])
                b /= np.where(self.alive[few], self.masses[few], 1.0)[:, None]
                a, records = (_times(panel.laws[part], each) for each in at_nodes[1:, panel.nodes])
                yield few, self._divisible(few, b), a, records


def _points(low: float, high: float) -> Floats:
    """The points between which polynomials interpolate best, both ends among them, ascending."""
    points = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * np.arange(NODES) / (NODES - 1))
    points[0], points[-1] = low, high
    return np.asarray(points)


def _lagrange(points: Floats, at: Floats) -> Floats:
    """The weights of the values at the points in the value of the polynomial through them: (at, points).

    ``at`` may be the points themselves; else these are those of `_points`.

    >>> cubes = _lagrange(_points(1.0, 3.0), np.array([2.0, 2.5])) @ _points(1.0, 3.0) ** 3
    >>> cubes.round(12).tolist()
    [8.0, 15.625]
    """
    if np.array_equal(points, at):
        return np.eye(len(points))
    signs = np.where(np.arange(len(points)) % 2, -1.0, 1.0)
    signs[[0, -1]] *= 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = signs / (at[:, None] - points)
        weights /= weights.sum(axis=1, keepdims=True)
    hit = at[:, None] == points
    return np.where(hit.any(axis=1, keepdims=True), hit, weights)


def _log_moments(terms: Floats, steepness: Floats) -> Floats:
    """log of sum_m terms(m) exp(c m), for each row and steepness c; nan or infinite where it cannot be computed.

    With m = 64 r + s an exponential is a product of two: few are computed.
    """
    runs = -(-terms.shape[1] // RUN)
    padded = np.zeros((len(terms), runs * RUN))
    padded[:, : terms.shape[1]] = terms
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inner = padded.reshape(len(terms), runs, RUN) @ np.exp(np.outer(np.arange(RUN), steepness))
        return np.asarray(np.log((inner * np.exp(np.outer(RUN * np.arange(runs), steepness))).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells, each so many labels of each kind."""

    kinds: _Kinds
    times: Floats
    """How many labels of each kind: (cells, kinds)."""
    shown: Floats
    """How many of them may be the one that survives: all, or the one that never vanishes."""
    log_weight: Floats
    """log of the product of the masses of all labels that may vanish."""
    log_most: Floats
    """log of what sum_k [V_k * a_k](n) is at most, for any n; what the windows leave out is counted in."""

    @staticmethod
    def of(kinds: _Kinds, times: Floats) -> _Cells:
        certain = times[:, ~kinds.alive].sum(axis=1)[:, None]
        shown = np.where(certain == 0, times, np.where(certain == 1, times * ~kinds.alive, 0.0))
        log_weight = times @ np.log(np.where(kinds.alive, kinds.masses, 1.0))
        masses = kinds.masses + math.exp(-BESIDES)
        highest = likeliest(kinds.shares, kinds.concentration, kinds.size)
        log_most = times @ np.log(masses) + np.log(times @ (highest / masses))
        return _Cells(kinds, times, shown, log_weight, log_most)

    def __getitem__(self, rows: Integers) -> _Cells:
        return _Cells(self.kinds, self.times[rows], self.shown[rows], self.log_weight[rows], self.log_most[rows])

    @property
    def offsets(self) -> Integers:
        """The total from which the counts of all labels of a cell are reckoned."""
        return np.asarray(self.times @ self.kinds.first).astype(np.int64)

    def windows(self) -> tuple[Integers, Integers]:
        """Within which the total of V_k and a_k lies, from its offset on, whichever label it is that survives."""
        logs = (self.times * self.kinds.alive) @ self.kinds.moments
        up, down = logs[:, : len(STEEPNESS)], logs[:, len(STEEPNESS) :]
        whole = self.times @ (self.kinds.last - self.kinds.first)
        high = np.minimum(((up + BEYOND) / STEEPNESS).min(axis=1), whole)
        low = ((-down - BEYOND) / STEEPNESS).max(axis=1)
        widest = np.where(self.shown > 0, self.kinds.last - self.kinds.first, 0).max(axis=1)
        low, high = np.maximum(np.floor(low) - widest, 0.0), np.ceil(high) + widest
        return low.astype(np.int64), high.astype(np.int64)

    def lengths(self, smallest: Integers, largest: Integers) -> Integers:
        """Of transforms that fold nothing onto the totals from the smallest to the largest."""
        low, high = self.windows()
        return np.asarray(np.maximum(np.maximum(largest - self.offsets - low, high - (smallest - self.offsets)), 0) + 1)

    def frequencies(self, length: int) -> int:
        """How many frequencies of such a transform may matter, for any cell."""
        with np.errstate(divide="ignore"):
            logs = np.minimum(np.log(self.kinds.jumps)[:, None] - np.log(2.0 * np.sin(ANGLES / 2.0)), 0.0)
        logs[~self.kinds.alive] = 0.0
        least = np.array([logs[row > 0].min(axis=0, initial=0.0) for row in self.shown])
        small = (self.times @ logs - least < -BEYOND).all(axis=0)
        if not small.any():
            return length // 2 + 1
        return min(length // 2, math.ceil(float(ANGLES[np.argmax(small)]) * length / (2.0 * np.pi))) + 1

    def survivors_at(self, sizes: Integers, log_total: Floats) -> tuple[Floats, Floats]:
        """The same of one cell at several sizes."""
        length = fft.next_fast_len(int(self.lengths(sizes.min(), sizes.max())[0]))
        return self.survivors(sizes, log_total, length)

    def survivors(self, sizes: Integers, log_total: Floats, length: int) -> tuple[Floats, Floats]:
        """sum_k [V_k * a_k](n) / P(n) over q(0)^(K-1), the same with m a_k(m), and the first's error.

        At a size for each cell, or at each size for the one cell that there is.
        """
        kept = self.frequencies(length)
        product = np.zeros((len(self.times), kept), np.complex128)
        shown = np.zeros((2, len(self.times), kept), np.complex128)
        sizes_of = np.zeros((len(self.times), kept))
        used = np.flatnonzero(self.times.any(axis=0))
        for few, b, *surviving in self.kinds.transforms(used, length, kept):
            product += _times(self.times[:, few], _logs(b))
            b *= np.where(self.kinds.alive[few], self.kinds.masses[few], 1.0)[:, None]
            for place, a in enumerate(surviving):
                a /= b
                shown[place] += _times(self.shown[:, few], a)
            sizes_of += self.shown[:, few] @ np.abs(surviving[0])
        places = sizes - self.offsets
        low, high = self.windows()
        weight = np.exp(self.log_weight - log_total) * ((places >= low) & (places <= high))
        shown *= np.exp(product)
        sizes_of *= np.exp(product.real)
        twice = np.full(kept, 2.0)
        twice[0] = 1.0
        if 2 * (kept - 1) == length:
            twice[-1] = 1.0
        found = _back(shown * twice, places, length) * (weight / length)
        error = (sizes_of @ twice) * (weight / length)
        return np.maximum(found, 0.0), self.kinds.rounding * error


def _logs(values: Complexes) -> Complexes:
    """The same as numpy's logarithm, but for an error of 1e-16, in a sixth of the time.

    >>> bool(np.allclose(_logs(np.array([3.0 + 4.0j, -1e-18j])), np.log([3.0 + 4.0j, -1e-18j]), rtol=1e-15, atol=0))
    True
    """
    found = np.empty_like(values)
    found.real, found.imag = np.log(np.abs(values)), np.angle(values)
    return found


def _times(times: Floats, values: Complexes) -> Complexes:
    """The product of a real matrix and a complex one."""
    return np.asarray((times @ values.view(np.float64)).view(np.complex128))


class _Waves:
    """The first frequencies of a transform of some length: one by one where that is cheaper than a fast transform."""

    def __init__(self, widest: int, length: int, frequencies: int) -> None:
        self.length, self.frequencies = length, frequencies
        direct = frequencies * widest <= 2.0 * length * math.log2(length + 1)
        self.waves = _waves(np.arange(widest), frequencies, -length).view(np.float64) if direct else None

    def transform(self, terms: Floats) -> Complexes:
        """sum_m terms(m) exp(-2 pi i f m / length) of each row, at each frequency f."""
        if self.waves is not None:
            return np.asarray((terms @ self.waves[: terms.shape[1]]).view(np.complex128))
        if terms.shape[1] > self.length:  # a wave repeats itself after its length: what is a length apart adds up
            rounds = -(-terms.shape[1] // self.length)
            padded = np.pad(terms, ((0, 0), (0, rounds * self.length - terms.shape[1])))
            terms = padded.reshape(len(terms), rounds, self.length).sum(axis=1)
        return np.ascontiguousarray(fft.rfft(terms, self.length, axis=1)[:, : self.frequencies])


def _waves(places: Integers, frequencies: int, length: int) -> Complexes:
    """exp(2 pi i f x / length) at each place x and frequency f; a negative length turns the other way.

    With f = c a + b it is exp(2 pi i c a x / length) exp(2 pi i b x / length): a product instead of an exponential.
    """
    step = math.isqrt(frequencies) + 1
    coarse, fine = (np.outer(places, part) % abs(length) for part in (step * np.arange(step), np.arange(step)))
    large, small = (np.exp(turns * (2j * np.pi / length)) for turns in (coarse, fine))
    return np.asarray((large[:, :, None] * small[:, None, :]).reshape(len(places), -1)[:, :frequencies])


def _back(shown: Complexes, places: Integers, length: int) -> Floats:
    """The real part of the sum over frequencies, at a place for each cell, or at each for the one cell: (2, places)."""
    cells, kept = shown.shape[1:]
    if cells == 1 and len(places) * kept > 8 * length * math.log2(length + 1):
        padded = np.zeros((2, length), np.complex128)
        padded[:, :kept] = shown[:, 0]
        return np.asarray((fft.ifft(padded, axis=1).real * length)[:, places % length])
    found = np.empty((2, len(places)))
    step = max(1, NUMBERS_AT_ONCE // kept)
    for start in range(0, len(places), step):
        few = slice(start, start + step)
        waves = _waves(places[few], kept, length)
        rows = shown if cells == 1 else shown[:, few]
        found[:, few] = np.einsum("rcf,cf->rc", np.broadcast_to(rows, (2, *waves.shape)), waves).real
    return found
