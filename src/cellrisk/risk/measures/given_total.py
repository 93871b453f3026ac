"""Risk given a cell's total, its counts random: expected, shrinkage and marginal shrinkage (Definitions 7, 8 and 10).

Counts of n records in K categories that are Dirichlet-multinomial (multinomial at infinite concentration) are
independent negative binomial (Poisson) counts, given that their total is n. With P_k the law of the count of category
k, b_k(m) = q(m) P_k(m), and a_k(m) = s(m) P_k(m) for m >= 1,

    exact = [ sum_k a_k * prod_{j != k} b_j ](n) / P(n),    * and prod convolutions, P the law of the total.

tight has m a_k(m)/n in place of a_k. In Fourier transforms the sum is prod_j B_j times sum_k A_k/B_k at each frequency,
transformed back at n alone. The errors are those of double precision, about 1e-15 of a probability: totals outside a
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
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures.dirichlet import Dirichlet, all_same, labels_drawn
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
NOTHING = 1e-30
"""Below this no risk matters: all categories but one are released as zero, whatever their total."""
NEVER = 1e-200
"""A category that is less likely to be released as zero never is: this stands in the place of its probability."""
SMALLEST = 1e-18
"""A transform smaller than this is rounding: this stands in its place."""
RUN = 64
"""So many consecutive probabilities follow from one by their ratios: an error of at most 64 roundings."""
SMALL = 64
"""Cells of so many records are computed with others of their size alone, so no count exceeds it."""
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
        if "exact" in forms or "tight" in forms:
            absent = n_levels - np.count_nonzero(block.counts, axis=1)
            values = multinomial_risk(block.counts, block.sizes, channel) * channel.q0 ** absent[:, None]
            risks |= {form: risk for form, risk in zip(("exact", "tight"), values, strict=True) if form in forms}
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
        return risk_by_size(self.prior, block.sizes, channel, forms)


@dataclass(frozen=True)
class MarginalShrinkage(Measure):
    """The shrinkage risk of a cell whose size is also random: one number for the table."""

    prior: Dirichlet
    sizes: SizeDistribution
    name: ClassVar[str] = "marginal_shrinkage"
    one_number: ClassVar[bool] = True

    def reduce(self, profiles: Profiles) -> Profiles:
        """Nothing of the cells matters any more: one row stands for all."""
        whole = Block(np.ones((1, 1), np.int64), np.array([profiles.n_cells]), np.array([profiles.n_records]))
        return Profiles(profiles.n_levels, (whole,))

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        sizes, pmf = self.sizes.likely(len(self.prior.mean))
        not_empty = 1.0 if self.sizes.truncated else self.sizes.not_empty
        return np.full(len(block), pmf @ labels_drawn(self.prior, sizes)), np.full(len(block), not_empty)

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        sizes, pmf = self.sizes.likely(n_levels)
        risks = risk_by_size(self.prior, sizes, channel, forms)
        return {form: np.repeat((pmf @ risk)[None], len(block), axis=0) for form, risk in risks.items()}


def risk_by_size(prior: Dirichlet, sizes: Integers, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
    """Return the shrinkage risk of a cell of each size: (sizes, settings) for each form."""
    n_levels = len(prior.mean)
    risks: RisksByForm = {}
    if "published" in forms:
        risks["published"] = published_risk(all_same(prior, sizes), sizes, n_levels, channel)
    if "exact" in forms or "tight" in forms:
        shares, times = np.unique([share for share in prior.mean if share > 0], return_counts=True)
        if prior.concentration == 0:
            values = np.repeat((channel.p_positive(sizes) * channel.q0 ** (n_levels - 1))[None], 2, axis=0)
        else:
            absent = channel.q0 ** (n_levels - times.sum())
            values = dirichlet_risk(shares, times, prior.concentration, sizes, channel) * absent
        risks |= {form: risk for form, risk in zip(("exact", "tight"), values, strict=True) if form in forms}
    return risks


def multinomial_risk(counts: Integers, sizes: Integers, channel: CountChannel) -> Floats:
    """Return the exact and tight expected risk over the categories present: (2, cells, settings).

    Categories with the same count have the same law, in whichever cell they are, and cells whose transforms have about
    the same length share them.
    """
    risks = np.repeat(channel.p_positive(sizes)[None], 2, axis=0)
    if counts.shape[1] == 1:
        return risks
    radius = int(channel.zero_radius.max())
    several = counts[:, 1] > 0
    certain = window(counts[:, 1].astype(np.float64), math.inf)[0] > radius  # two that are always shown
    risks[:, several] = 0.0
    first, last = window(sizes.astype(np.float64), math.inf)
    above = np.where(sizes <= SMALL, (np.count_nonzero(counts, axis=1) - 1) * np.minimum(radius, sizes), last)
    lengths = np.maximum(sizes - first, np.minimum(last - sizes, above)) + 1
    group = np.where(sizes <= SMALL, sizes, SMALL + np.ceil(2.0 * np.log2(lengths)))  # small cells by their size
    group[certain | ~several] = 0
    for number in np.unique(group[group > 0]).tolist():
        rows = np.flatnonzero(group == number)
        length = fft.next_fast_len(int(lengths[rows].max()), real=True)
        at_once = max(1, 16 * NUMBERS_AT_ONCE // (length * counts.shape[1]))
        for chosen in np.split(rows, range(at_once, len(rows), at_once)):
            cell, column = np.nonzero(counts[chosen])
            means, kind = np.unique(counts[chosen][cell, column], return_inverse=True)
            times = np.zeros((len(chosen), len(means)))
            np.add.at(times, (cell, kind.reshape(-1)), 1.0)
            log_total = poisson_log_pmf(sizes[chosen], sizes[chosen])
            kinds = Kinds(means.astype(np.float64), math.inf, 1, int(sizes[chosen].max()))
            risks[:, chosen] = exactly_one_given_total(kinds, times, sizes[chosen], log_total, length, channel)
    return risks


def dirichlet_risk(
    shares: Floats, times: Integers, concentration: float, sizes: Integers, channel: CountChannel
) -> Floats:
    """Return the exact and tight risk of a cell of each size, over ``times`` categories of each share: (2, sizes, ...).

    One transform serves all sizes whose P(n) is within a factor of 1,000, at a common mean of the counts that is free.
    """
    risks = np.empty((2, len(sizes), len(channel)))
    labels, radius = int(times.sum()), int(channel.zero_radius.max())
    left = np.argsort(-sizes, kind="stable")
    while len(left):
        largest = int(sizes[left[0]])
        mean, most = float(largest), largest + (labels - 1) * min(radius, largest)
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
        kinds = Kinds(shares * mean, shares * concentration, max(1, smallest - (most - largest)), largest)
        risks[:, chosen] = exactly_one_given_total(
            kinds, times[None].astype(np.float64), sizes[chosen], log_total[together], length, channel
        )
        left = left[~together]
    return risks


@dataclass(frozen=True)
class Kinds:
    """Categories that differ in the law of their count before the total is fixed: its mean and its shape."""

    means: Floats
    shapes: Floats | float
    least: int
    """The category that is shown has at least so many records, if all others are not."""
    most: int
    """A count that none exceeds."""

    def law(self, kinds: Integers, least: int, most: int) -> tuple[Integers, Floats]:
        """Return the counts of some kinds that matter, between two bounds, and how likely each is: (kinds, counts)."""
        shapes = np.broadcast_to(self.shapes, self.means.shape)[kinds]
        first, last = window(self.means[kinds], shapes)
        first, last = np.maximum(first, least), np.minimum(last, min(most, self.most))
        width = max(1, int((last - first).max()) + 1)
        if width > MOST_COUNTS:
            raise InvalidInput(
                "this risk of cells so large would take too long",
                got=f"{width:,} likely counts of one category",
                allowed=f"up to {MOST_COUNTS:,}",
                fix="ask for other measures; local always has an answer",
                code="cells-too-large",
            )
        law = consecutive_pmf(first, width, shapes, self.means[kinds])
        law[np.arange(width) > (last - first)[:, None]] = 0.0
        return first[:, None] + np.arange(width), law


def exactly_one_given_total(
    kinds: Kinds, times: Floats, sizes: Integers, log_total: Floats, length: int, channel: CountChannel
) -> Floats:
    """Return sum_k [a_k * prod_{j != k} b_j](n) / P(n), and the same with m a_k(m)/n: (2, sizes, settings).

    ``times``: how many categories of each kind a cell has, (cells, kinds), for a size a cell, or for all sizes of the
    one cell that there is. B_k is divided by its sum, and multiplied by it at the end.
    """
    settings, cells, frequencies = len(channel), len(times), length // 2 + 1
    at_once = max(1, 8 * NUMBERS_AT_ONCE // (frequencies * max(times.shape)))
    if at_once < settings:
        parts = [np.arange(settings)[start : start + at_once] for start in range(0, settings, at_once)]
        return np.concatenate(
            [exactly_one_given_total(kinds, times, sizes, log_total, length, channel[part]) for part in parts], axis=2
        )
    step = max(1, 8 * NUMBERS_AT_ONCE // (settings * length))
    chunks = [np.arange(times.shape[1])[start : start + step] for start in range(0, times.shape[1], step)]

    def zero_terms(chosen: Integers) -> tuple[Integers, Floats, Floats]:
        counts, law = kinds.law(chosen, 0, int(channel.zero_radius.max()))
        terms = law[..., None] * _at(channel.p_zero, counts)
        return counts, terms, terms.sum(axis=1)

    masses = np.concatenate([zero_terms(chosen)[2] for chosen in chunks])
    log_masses = np.log(np.maximum(masses, NEVER))
    log_mass = times @ log_masses
    if (log_mass - np.array([log_masses[row > 0].min(axis=0) for row in times])).max() < math.log(NOTHING):
        return np.zeros((2, len(sizes), settings))
    log_product = np.zeros((cells, frequencies, settings), complex)
    ratio = np.zeros((2, cells, frequencies, settings), complex)
    for chosen in reversed(chunks):  # the largest means first, which leave the fewest frequencies
        counts, terms, mass = zero_terms(chosen)
        never = mass < NEVER
        zero = _transform(counts, terms, length, frequencies) / np.where(never, 1.0, mass)[:, None]
        zero = np.where(np.abs(zero) < SMALLEST, SMALLEST, np.where(never[:, None], 1.0, zero))
        counts, law = kinds.law(chosen, kinds.least, kinds.most)
        shown = law[..., None] * _at(channel.p_positive, counts) / np.maximum(mass, NEVER)[:, None]
        log_product += _times(times[:, chosen], np.log(zero))
        for form, terms in enumerate((shown, counts[..., None] * shown)):
            ratio[form] += _times(times[:, chosen], _transform(counts, terms, length, frequencies) / zero)
        matters = (log_product.real > 2.0 * math.log(SMALLEST)).any(axis=(0, 2))
        frequencies = int(np.flatnonzero(matters)[-1]) + 1
        log_product, ratio = log_product[:, :frequencies], ratio[:, :, :frequencies]
    back = _inverse(ratio * np.exp(log_product), sizes % length, length) * np.exp(log_mass - log_total[:, None])
    return np.asarray(np.maximum(back / np.stack([np.ones_like(sizes), sizes])[..., None], 0.0))


def _at(law: Any, counts: Integers) -> Floats:
    """Return a law of the channel at counts, each distinct one computed once where they are dense."""
    low, high = int(counts.min()), int(counts.max())
    if high - low >= counts.size:
        return np.asarray(law(counts))
    return np.asarray(law(np.arange(low, high + 1))[counts - low])


def _transform(counts: Integers, terms: Floats, length: int, frequencies: int) -> Complexes:
    """Return sum_m terms(m) exp(-2 pi i f m / length) at the first frequencies: (kinds, frequencies, settings)."""
    folded = np.zeros((len(terms), length, terms.shape[2]))
    row = np.arange(len(terms))[:, None]
    for start in range(0, counts.shape[1], length):
        columns = slice(start, start + length)
        folded[row, counts[:, columns] % length] += terms[:, columns]
    return np.asarray(fft.rfft(folded, axis=1)[:, :frequencies])


def _inverse(spectrum: Complexes, places: Integers, length: int) -> Floats:
    """Return the transform back at a place for each cell, or at each place for the one cell: (2, places, settings)."""
    if spectrum.shape[1] == 1:
        return np.asarray(fft.irfft(spectrum[:, 0], length, axis=1)[:, places])
    frequencies = np.arange(spectrum.shape[2])
    twice = np.where((frequencies == 0) | (2 * frequencies == length), 1.0, 2.0) / length
    roots = np.exp(2j * np.pi / length * np.arange(length))
    waves = roots[np.outer(places, frequencies) % length] * twice
    return np.asarray(np.einsum("rcfs,cf->rcs", spectrum, waves).real)


def _times(times: Floats, values: Complexes) -> Complexes:
    """Return the product of a real matrix (cells, kinds) and complex values (kinds, frequencies, settings)."""
    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    return np.asarray((times @ flat.view(np.float64)).view(np.complex128).reshape(len(times), *values.shape[1:]))


def consecutive_pmf(first: Integers, width: int, shapes: Floats, means: Floats) -> Floats:
    """Return the probabilities of consecutive counts, from the first on, for each shape and mean: (means, width).

    P(m + 1)/P(m) = mean (1 + m/shape) / ((m + 1)(1 + mean/shape)), by which one count in 64 gives the others.

    >>> fast = consecutive_pmf(np.array([3]), 97, np.array([0.6]), np.array([15.0]))[0]
    >>> bool(np.allclose(fast, np.exp(count_log_pmf(np.arange(3, 100), 0.6, 15.0)), rtol=1e-13, atol=0))
    True
    """
    runs = -(-width // RUN)
    counts = first[:, None, None] + np.arange(runs * RUN, dtype=np.float64).reshape(runs, RUN)
    shape, mean = shapes[:, None, None], means[:, None, None]
    ratios = np.empty_like(counts)
    ratios[..., 0] = np.exp(count_log_pmf(counts[..., 0], shape[..., 0], mean[..., 0]))
    if np.isinf(shapes).all():
        np.divide(mean, counts[..., 1:], out=ratios[..., 1:])
    else:
        np.divide((counts[..., :-1] + shape) * (mean / (shape + mean)), counts[..., 1:], out=ratios[..., 1:])
    return np.cumprod(ratios, axis=2, out=ratios).reshape(len(means), -1)[:, :width]
