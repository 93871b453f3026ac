"""Risk given a cell's total, its counts random: expected, shrinkage and marginal shrinkage (Definitions 7, 8 and 10).

Counts of n records in K categories that are Dirichlet-multinomial (multinomial at infinite concentration) are
independent negative binomial (Poisson) counts, given that their total is n. With P_k the law of the count of category
k, b_k(m) = q(m) P_k(m), and a_k(m) = s(m) P_k(m) for m >= 1,

    exact = [ sum_k a_k * prod_{j != k} b_j ](n) / P(n),    * and prod convolutions, P the law of the total.

tight has m a_k(m)/n in place of a_k. In Fourier transforms the convolutions are products at each frequency, so the sum
is that of the local risk. The errors are those of double precision, about 1e-15 of a probability: totals outside a
window have a probability below 1e-18, and a transform as long as the window folds nothing else onto n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel, at_each
from cellrisk.risk.measures.dirichlet import Dirichlet, all_same, labels_drawn
from cellrisk.risk.measures.local import join_categories
from cellrisk.risk.measures.measure import Measure, RisksByForm, join_blocks, published_risk
from cellrisk.risk.measures.pmf import count_log_pmf, poisson_log_pmf, window
from cellrisk.risk.measures.sizes import SizeDistribution
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

Complexes = NDArray[np.complex128]

MOST_COUNTS = 1 << 25
"""Counts of one category: more would take minutes and gigabytes."""
FALL = 1e3
"""Sizes whose P(n) is at most so many times smaller than the largest are computed together."""
LONGEST = 5
"""A transform for sizes up to n is at most so many times as long as n: the common mean of the counts is free."""
SMALLEST = 1e-20
"""Frequencies at which a transform is smaller, as a part of its largest value, are left out: that is rounding."""
ALIKE, FEW = 4.0, 16
"""Categories are transformed together if their means differ by at most this factor; of the largest, so many first."""
DIRECT = 16
"""A product of matrices is faster if it has so few products for each point of a transform, and as few frequencies."""
NEAR = 512
"""Sizes within so many records of each other are computed together, however narrow the noise."""


@dataclass(frozen=True)
class Expected(Measure):
    """What would the local risk be on average, had the cell's n records drawn their categories anew?

    The counts are multinomial(n, p) with p_k = n_k/n, the cell's own proportions: Poisson counts with means n_k, given
    their total.
    """

    name: ClassVar[str] = "expected"

    def pieces(self, profiles: Profiles, channel: CountChannel) -> Iterator[Block]:
        return join_blocks(profiles)

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        """Category k is drawn at least once with probability 1 - (1 - p_k)^n."""
        sizes = block.sizes[:, None]
        with np.errstate(divide="ignore"):
            labels = -np.expm1(sizes * np.log1p(-block.counts / sizes))
        return labels.sum(axis=1), np.ones(len(block))

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        risks: RisksByForm = {}
        if "published" in forms:
            with np.errstate(divide="ignore"):
                same = np.exp(block.sizes[:, None] * np.log(block.counts / block.sizes[:, None])).sum(axis=1)
            risks["published"] = published_risk(same, block.sizes, n_levels, channel)
        if any(form != "published" for form in forms):
            absent = n_levels - np.count_nonzero(block.counts, axis=1)
            exact = multinomial_risk(block.counts, block.sizes, channel) * channel.q0 ** absent[:, None]
            risks["exact"], risks["tight"] = exact
        return risks


@dataclass(frozen=True)
class Shrinkage(Measure):
    """What is the risk of a cell of n records whose proportions are drawn from a Dirichlet(alpha)?

    At alpha. = 0 every cell is homogeneous, at alpha. = infinity counts are multinomial with the pooled proportions.
    """

    prior: Dirichlet
    name: ClassVar[str] = "shrinkage"

    def reduce(self, profiles: Profiles) -> Profiles:
        return profiles.by_size()

    def pieces(self, profiles: Profiles, channel: CountChannel) -> Iterator[Block]:
        yield from profiles.blocks

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        return labels_drawn(self.prior, block.sizes), np.ones(len(block))

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        return self.of_sizes(block.sizes, n_levels, channel, forms)

    def of_sizes(self, sizes: Integers, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        """Return the risk of a cell of each size."""
        risks: RisksByForm = {}
        if "published" in forms:
            risks["published"] = published_risk(all_same(self.prior, sizes), sizes, n_levels, channel)
        if any(form != "published" for form in forms):
            risks["exact"], risks["tight"] = dirichlet_risk(self.prior, sizes, channel)
        return risks


@dataclass(frozen=True)
class MarginalShrinkage(Shrinkage):
    """The shrinkage risk of a cell whose size is also random: one number for the table."""

    sizes: SizeDistribution
    name: ClassVar[str] = "marginal_shrinkage"
    one_number: ClassVar[bool] = True

    def reduce(self, profiles: Profiles) -> Profiles:
        """Nothing of the cells matters any more: one row stands for all."""
        whole = Block(np.ones((1, 1), np.int64), np.array([profiles.n_cells]), np.array([profiles.n_records]))
        return Profiles(profiles.n_levels, (whole,))

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        sizes, pmf = self.sizes.likely
        not_empty = 1.0 if self.sizes.truncated else self.sizes.not_empty
        return np.full(len(block), pmf @ labels_drawn(self.prior, sizes)), np.full(len(block), not_empty)

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        sizes, pmf = self.sizes.likely
        of_sizes = self.of_sizes(sizes, n_levels, channel, forms)
        return {form: np.tile(pmf @ risks, (len(block), 1)) for form, risks in of_sizes.items()}


def multinomial_risk(counts: Integers, sizes: Integers, channel: CountChannel) -> Floats:
    """Return the exact and tight expected risk over the categories present: (2, cells, settings).

    Categories with the same count have the same law, in whichever cell they are; cells of like size are computed
    together.
    """
    risks = np.repeat(channel.p_positive(sizes)[None], 2, axis=0)
    several = np.count_nonzero(counts, axis=1) > 1
    risks[:, several] = 0.0
    radius = int(channel.zero_radius.max())
    if counts.shape[1] > 1:  # of two that are always shown, neither is shown alone
        several &= window(counts[:, 1].astype(np.float64))[0] <= radius
    group = np.where(several, np.ceil(2.0 * np.log2(sizes)), 0)
    for number in np.unique(group[group > 0]).tolist():
        rows = np.flatnonzero(group == number)
        first, last = window(sizes[rows].astype(np.float64))
        most, others = int(sizes[rows].max()), np.count_nonzero(counts[rows].any(axis=0)) - 1
        highest = np.minimum(last, most + others * min(radius, most))
        spread = np.maximum(sizes[rows] - first, highest - sizes[rows])
        length = fft.next_fast_len(int(spread.max()) + 1, real=True)
        for chosen in np.array_split(rows, 1 + len(rows) * length * (others + 1) // (16 * NUMBERS_AT_ONCE)):
            laws = CountLaws(counts[chosen, : others + 1].astype(np.float64), math.inf, 1, most)
            log_total = poisson_log_pmf(sizes[chosen], sizes[chosen])
            risks[:, chosen] = exactly_one_given_total(laws, sizes[chosen], log_total, length, channel)
    return risks


def dirichlet_risk(prior: Dirichlet, sizes: Integers, channel: CountChannel) -> Floats:
    """Return the exact and tight risk of a cell of each size, its proportions drawn anew: (2, sizes, settings).

    One transform serves all sizes whose P(n) is within a factor of 1,000, at a common mean of the counts that is free.
    """
    n_levels, concentration = len(prior.mean), prior.concentration
    if concentration == 0:
        return np.repeat((channel.p_positive(sizes) * channel.q0 ** (n_levels - 1))[None], 2, axis=0)
    shares = np.array(sorted((share for share in prior.mean if share > 0), reverse=True))
    risks = np.empty((2, len(sizes), len(channel)))
    radius = int(channel.zero_radius.max())
    left = np.argsort(-sizes, kind="stable")
    while len(left):
        largest = int(sizes[left[0]])
        mean, most = float(largest), largest + (len(shares) - 1) * min(radius, largest)
        while min(int(window(mean, concentration)[1]), most) > LONGEST * largest + 64:
            mean *= 0.8
        log_total = count_log_pmf(sizes[left], concentration, mean)
        near = 8 * sizes[left] >= max(8 * largest - 8 * max(most - largest, NEAR), largest)
        together = near & (log_total >= min(log_total[0], log_total[near].max() - math.log(FALL)))
        chosen = left[together]
        lowest, highest = (int(end) for end in window(mean, concentration))
        smallest = int(sizes[chosen].min())
        length = max(largest - lowest, min(highest, most) - smallest) + 1
        length = fft.next_fast_len(min(length, most - smallest + 1), real=True)
        least = max(1, smallest - (most - largest))
        laws = CountLaws(shares[None] * mean, concentration / mean, least, largest)
        risks[:, chosen] = exactly_one_given_total(laws, sizes[chosen], log_total[together], length, channel)
        left = left[~together]
    return risks * channel.q0 ** (n_levels - len(shares))


@dataclass(frozen=True, eq=False)
class CountLaws:
    """The laws of the counts of categories before the total is fixed."""

    means: Floats
    """(cells, categories), descending; 0 where a cell has fewer categories."""
    ratio: float
    """The shape of a negative binomial law for each unit of its mean; infinite for Poisson laws."""
    least: int
    """The category that is shown has at least so many records, if all others are not."""
    most: int
    """A count that none exceeds."""

    def law(self, means: Floats, least: int, most: int) -> tuple[Integers, Floats]:
        """Return the counts that matter between two bounds, and the probability of each: (means, counts)."""
        shapes = np.full(means.shape, math.inf) if math.isinf(self.ratio) else means * self.ratio
        first, last = window(means, shapes)
        first, last = np.maximum(first, least), np.minimum(last, most)
        width = max(1, int((last - first).max()) + 1)
        if width > MOST_COUNTS:
            what = "this risk of cells so large would take too long"
            got = f"{width:,} likely counts of one category"
            fix = "ask for other measures; local always has an answer"
            raise InvalidInput(what, got=got, allowed=f"up to {MOST_COUNTS:,}", fix=fix, code="cells-too-large")
        counts = first[:, None] + np.arange(width)
        mean, shape = means[:, None], shapes[:, None]
        ratio = mean / counts[:, 1:] if math.isinf(self.ratio) else (counts[:, :-1] + shape) / counts[:, 1:]
        if not math.isinf(self.ratio):  # P(m + 1)/P(m) = (m + shape) mean / ((m + 1)(shape + mean))
            ratio *= mean / (shape + mean)
        pmf = np.cumprod(np.hstack([np.exp(count_log_pmf(counts[:, :1], shape, mean)), ratio]), axis=1)
        return counts, np.where(counts <= last[:, None], pmf, 0.0)

    def transforms(
        self, means: Floats, length: int, frequencies: int, channel: CountChannel
    ) -> tuple[Complexes, Complexes]:
        """Return the transforms of P q, and of P s and m P s, for the law P of each mean: (means, frequencies, ...)."""
        counts, pmf = self.law(means, 0, min(self.most, int(channel.zero_radius.max())))
        zero = _transform(counts, pmf[..., None] * at_each(channel.p_zero, counts), length, frequencies)
        zero[means == 0] = 1.0
        counts, pmf = self.law(means, self.least, self.most)
        shown = pmf[..., None] * at_each(channel.p_positive, counts)
        one = [_transform(counts, terms, length, frequencies) for terms in (shown, counts[..., None] * shown)]
        return zero, np.stack(one)


def _transform(counts: Integers, terms: Floats, length: int, frequencies: int) -> Complexes:
    """Return sum_m terms(m) exp(-2 pi i f m / length) at the first frequencies f: (means, frequencies, settings).

    A row of counts is a run, m = first + j, so at few frequencies the sum is a product of matrices.
    """
    if frequencies * max(counts.shape[1], DIRECT**2) <= DIRECT * length:
        f, first = np.arange(frequencies), counts[:, :1]
        roots = np.exp(-2j * np.pi / length * (np.arange(counts.shape[1])[:, None] * f % length))
        sums = np.tensordot(terms, roots.real, (1, 0)) + 1j * np.tensordot(terms, roots.imag, (1, 0))
        turned = np.exp(-2j * np.pi / length * (first * f % length))
        return np.asarray(turned[..., None] * np.moveaxis(sums, 1, 2))
    folded = np.zeros((len(terms), length, terms.shape[2]))
    row = np.arange(len(terms))[:, None]
    for start in range(0, counts.shape[1], length):  # no place twice
        columns = slice(start, start + length)
        folded[row, counts[:, columns] % length] += terms[:, columns]
    return np.asarray(fft.rfft(folded, axis=1)[:, :frequencies])


def exactly_one_given_total(
    laws: CountLaws, sizes: Integers, log_total: Floats, length: int, channel: CountChannel
) -> Floats:
    """Return sum_k [a_k * prod_{j != k} b_j](n) / P(n), and the same with m a_k(m)/n: (2, sizes, settings).

    For a size a cell, or for all sizes of the one cell that there is.
    """
    cells, width = laws.means.shape
    frequencies = length // 2 + 1
    at_once = max(1, 16 * NUMBERS_AT_ONCE // (frequencies * cells * min(width, 8)))
    if at_once < len(channel):
        parts = np.array_split(np.arange(len(channel)), -(-len(channel) // at_once))
        risks = [exactly_one_given_total(laws, sizes, log_total, length, channel[part]) for part in parts]
        return np.concatenate(risks, axis=2)
    none: Any = np.ones((1, cells, frequencies, len(channel)), complex)
    one: Any = np.zeros((2, cells, frequencies, len(channel)), complex)
    largest, start = laws.means.max(axis=0), 0
    while start < width:  # the largest first: they vary most, so few frequencies matter after them
        step = max(1, 8 * NUMBERS_AT_ONCE // (none.shape[2] * cells * len(channel)))
        alike = int(np.count_nonzero(largest[start:] >= largest[start] / ALIKE))
        columns = laws.means[:, start : start + min(step, max(alike, FEW) if start else FEW)].T
        start += len(columns)
        means, row = np.unique(columns, return_inverse=True)
        zero, shown = laws.transforms(means, length, none.shape[2], channel)
        row = row.reshape(columns.shape)
        b, a = join_categories(zero[row][:, None], np.moveaxis(shown[:, row], 0, 1))
        none, one = none * b, one * b + none * a
        matters = [np.abs(part) > SMALLEST * np.abs(part[:, :, :1]) for part in (none, one)]
        last = max((int(np.flatnonzero(part.any(axis=(0, 1, 3)))[-1]) for part in matters if part.any()), default=0)
        none, one = none[:, :, : last + 1], one[:, :, : last + 1]
    total = fft.irfft(one, length, axis=2)
    risks = total[:, 0 if cells == 1 else np.arange(cells), sizes % length]
    risks[1] /= sizes[:, None]
    return np.asarray(np.maximum(risks * np.exp(-log_total)[:, None], 0.0))
