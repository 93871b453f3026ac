"""Shrinkage risk where sequences are long or labels are many: Fourier transforms, with a stated error.

With b_j(m) = q(m) P_j(m), a_k(m) = s(m) P_k(m) for m >= 1 and V_k the convolution of all b_j but b_k,

    exact = sum_k [V_k * a_k](n) / P(n),    tight: m a_k(m)/n in place of a_k.

The transform of V_k is that of all b_j together, divided by that of b_k: one product serves every label. It is as long
as V_k reaches, not as long as a cell is large; what lies beyond has, by Chernoff's bound, a probability below 1e-18.
Every b_j is divided by its sum and by q(0), which come back at the end, so that nothing underflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cellrisk.measures.label_counts import BESIDES, consecutive_pmf, count_log_pmf, likeliest, window
from cellrisk.measures.survival import SurvivalTable
from cellrisk.profiles import Floats, Integers

MANY = 32
"""Cells of more labels than this are left to Fourier transforms, however short their sequences."""
TOLERANCE = 1e-12
"""The estimated error of a risk above which a size gets a common mean of its own, other than that of a larger one."""
ROUNDING = 1e-15
FALL = 1e4
"""Sizes whose P(n) is this many times smaller than the largest are not tried with one common mean."""
NOTHING = 1e-30
"""A risk certain to be below this share of q(0)^(K-1), its value in a cell without other labels, is taken for 0."""
NUMBERS_AT_ONCE = 1 << 20
SMALLEST = 1e-18
"""A transform smaller than this is noise; this stands in its place."""
BEYOND = 41.5
"""exp(-41.5) is about 1e-18."""


def risk_by_transform(
    shares: Floats, times: Integers, concentration: float, sizes: Integers, table: SurvivalTable
) -> tuple[Floats, Floats]:
    """Exact and tight risk of a cell of each size under one noise; ``times`` labels have each of the shares.

    The error is estimated from above as 1e-15 sum_k |V_k| |a_k| / P(n), |.| the Euclidean norm. A size for which that
    exceeds 1e-12 is computed anew with the common mean at its own size or near it, where P(n) is large.
    """
    exact, tight = np.zeros(len(sizes)), np.zeros(len(sizes))
    empty = float(table.vanish[0, 0]) ** (int(times.sum()) - 1)
    left = np.argsort(-sizes, kind="stable")
    while len(left):
        largest = int(sizes[left[0]])
        log_total = count_log_pmf(sizes[left], 1.0, concentration, largest)
        labels = _Labels.of(shares, times, concentration, largest, table)
        near = log_total > log_total[0] - math.log(FALL)
        some = labels.log_most - log_total > math.log(NOTHING)
        left, log_total, near = left[some], log_total[some], near[some]
        if not near.any():
            continue
        few, rest = left[near], left[~near]
        found, error = labels.survivors(sizes[few], log_total[near])
        good = (error < TOLERANCE) | (sizes[few] == largest)
        done = few[good]
        exact[done], tight[done] = found[0, good] * empty, found[1, good] / sizes[done] * empty
        left = np.concatenate([few[~good], rest])
    return exact, tight


def log_sum(logs: Floats) -> float:
    """log of a sum, given the logarithms of its terms.

    >>> round(math.exp(log_sum(np.log([1.0, 2.0]))), 12)
    3.0
    """
    most = float(np.max(logs))
    return most if math.isinf(most) else most + math.log(float(np.exp(logs - most).sum()))


@dataclass(frozen=True, eq=False)
class _Labels:
    """All labels of a cell, their counts with one common mean, under one noise."""

    shares: Floats
    times: Integers
    concentration: float
    largest: int
    table: SurvivalTable
    first: Integers
    """Where each b_j starts,"""
    last: Integers
    """and where it ends."""
    masses: Floats
    """The sum of each b_j over q(0)."""
    log_weight: Floats
    """log of the product of the masses of all labels but one of a kind."""
    log_most: float
    """log of what sum_k [V_k * a_k](n) is at most, for any n; what the windows leave out is counted in."""
    length: int
    """Of the transforms: past it all labels but one cannot reach together."""

    @staticmethod
    def of(shares: Floats, times: Integers, concentration: float, largest: int, table: SurvivalTable) -> _Labels:
        first, last = window(shares, concentration, largest)
        last = np.minimum(last, min(largest, table.end))
        made = _Labels(shares, times, concentration, largest, table, first, last, np.zeros(0), np.zeros(0), 0.0, 0)
        masses = np.zeros(len(shares))
        steepness = np.exp2(np.arange(-6.0, 8.0)) / max(1, int((last - first).max()) + 1)
        growth = np.zeros(len(steepness))
        for few, terms in made._vanishing(np.flatnonzero(first <= last)):
            masses[few] = terms.sum(axis=1)
            counts = np.arange(terms.shape[1])
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(terms @ np.exp(np.outer(counts, steepness))) - np.log(masses[few])[:, None]
            growth += times[few] @ np.where(masses[few, None] > 0, logs, 0.0)
        with np.errstate(divide="ignore"):
            logs = np.log(masses)
        dead = masses == 0
        if dead.any():
            weight = np.full(len(shares), -math.inf)
            if int(times[dead].sum()) == 1:
                weight[dead] = float((times * np.where(dead, 0.0, logs)).sum())
        else:
            weight = float((times * logs).sum()) - logs
        whole = int((times * np.maximum(last - first, 0)).sum())
        length = min(whole, math.ceil(float(np.min((growth + BEYOND) / steepness)))) + 1
        most = np.log(masses + math.exp(-BESIDES))
        highest = np.log(times * likeliest(shares, concentration, largest))
        log_most = log_sum(np.asarray(times @ most - most + highest, np.float64))
        length = fft.next_fast_len(length)
        return _Labels(shares, times, concentration, largest, table, first, last, masses, weight, log_most, length)

    def _vanishing(self, places: Integers, at_once: int = 0) -> Iterator[tuple[Integers, Floats]]:
        """b_j over q(0), from its first count on, of few labels at a time: (labels, counts), 0 past the last."""
        start = 0
        while start < len(places):
            width = int((self.last[places[start:]] - self.first[places[start:]]).max()) + 1
            few = places[start : start + max(1, NUMBERS_AT_ONCE // max(width, at_once))]
            start += len(few)
            law = consecutive_pmf(self.first[few], width, self.shares[few], self.concentration, self.largest)
            counts = self.first[few, None] + np.arange(width)
            inside = counts <= self.last[few, None]
            vanish = self.table.vanish[np.where(inside, counts, 0), 0] / self.table.vanish[0, 0]
            yield few, np.where(inside, law * vanish, 0.0)

    def _spectra(self) -> Iterator[tuple[Integers, NDArray[np.complex128]]]:
        """The transforms of the b_j that can vanish, each over its sum, few labels at a time."""
        for few, terms in self._vanishing(np.flatnonzero(self.masses > 0), self.length):
            terms /= self.masses[few, None]
            spectrum = fft.rfft(terms[:, : self.length], self.length, axis=1)
            spectrum[np.abs(spectrum) < SMALLEST] = SMALLEST  # so that dividing by it undoes multiplying
            yield few, spectrum

    def survivors(self, sizes: Integers, log_total: Floats) -> tuple[Floats, Floats]:
        """sum_k [V_k * a_k](n) / P(n) over q(0)^(K-1), the same with m a_k(m), and the first's error, at each size."""
        product = np.ones(self.length // 2 + 1, np.complex128)
        for few, spectrum in self._spectra():
            product *= np.prod(spectrum ** self.times[few, None], axis=0)
        offset = int((self.times * self.first * (self.masses > 0)).sum())
        found, error = np.zeros((2, len(sizes))), np.zeros(len(sizes))
        dead = np.flatnonzero(self.masses == 0)
        if len(dead):  # it cannot vanish, so it is the one that survives
            pairs: Iterator[tuple[Integers, Floats]] = iter([(dead, fft.irfft(product, self.length)[None])])
        else:
            pairs = ((few, fft.irfft(product / spectrum, self.length, axis=1)) for few, spectrum in self._spectra())
        for few, others in pairs:
            start = offset - self.first[few] * (self.masses[few] > 0)
            weight = np.exp(self.log_weight[few, None] - log_total) * self.times[few, None]
            low = max(1, int(sizes.min() - start.max()) - self.length + 1)
            width = int(sizes.max() - start.min()) - low + 1
            step = max(1, NUMBERS_AT_ONCE // max(1, width))
            for begin in range(0, len(few) if width > 0 else 0, step):
                some = slice(begin, begin + step)
                for row, law in enumerate(self._surviving(few[some], low, width), begin):
                    found += _meet(others[row], law, low, sizes - start[row]) * weight[row]
                    error += math.sqrt(float(others[row] @ others[row]) * float(law @ law)) * weight[row]
        return np.maximum(found, 0.0), ROUNDING * error

    def _surviving(self, places: Integers, low: int, width: int) -> Floats:
        """a_k at the counts from ``low`` on: (labels, width)."""
        first = np.full(len(places), low)
        law = consecutive_pmf(first, width, self.shares[places], self.concentration, self.largest)
        return np.asarray(law * self.table.survive[np.minimum(low + np.arange(width), self.table.end), 0])


def _meet(others: Floats, law: Floats, low: int, totals: Integers) -> Floats:
    """[V * a] and [V * m a] at each total, V from 0 on, a from ``low`` on: (2, totals)."""
    found = np.zeros((2, len(totals)))
    at = totals - low  # how many terms of a lie below a total's own
    inside = np.flatnonzero(at >= 0)
    if not len(inside):
        return found
    others = others[: int(at.max()) + 1]
    terms = np.minimum(at[inside] + 1, len(others))
    length = fft.next_fast_len(len(others) + len(law) - 1)
    transform = int(terms.sum()) > 16 * length * math.log2(length)
    spectrum = fft.rfft(others, length) if transform else None
    for row, part in enumerate((law, law * np.arange(low, low + len(law)))):
        if spectrum is not None:
            whole = fft.irfft(spectrum * fft.rfft(part, length), length)
            found[row, inside] = whole[at[inside]]
            continue
        backwards = np.concatenate([part[::-1], np.zeros(len(others))])
        begins = len(part) - 1 - at[inside]
        if len(inside) * len(others) <= NUMBERS_AT_ONCE:
            windows = np.lib.stride_tricks.sliding_window_view(backwards, len(others))
            found[row, inside] = windows[begins] @ others
        else:
            pairs = zip(begins.tolist(), terms.tolist(), strict=True)
            found[row, inside] = [others[:few] @ backwards[begin : begin + few] for begin, few in pairs]
    return found
