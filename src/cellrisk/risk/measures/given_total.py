"""Risk given a cell's total, its counts random: expected, shrinkage and marginal shrinkage (Definitions 7, 8 and 10).

Counts of n records in K categories that are Dirichlet-multinomial (multinomial at infinite concentration) are
independent negative binomial (Poisson) counts, given that their total is n. With P_k the law of the count of category
k, b_k(m) = q(m) P_k(m), and a_k(m) = s(m) P_k(m) for m >= 1,

    exact = [ sum_k a_k * prod_{j != k} b_j ](n) / P(n),    * and prod convolutions, P the law of the total.

tight has m a_k(m)/n in place of a_k. In Fourier transforms the sum is prod_j B_j times sum_k A_k/B_k at each frequency,
transformed back at n alone. The errors are those of double precision, about 1e-15 of a probability: by Chernoff's bound
totals outside a window have a probability below 1e-18, and a transform as long as the window folds nothing else onto n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures.dirichlet import Dirichlet, all_same, labels_drawn
from cellrisk.risk.measures.measure import Measure, RisksByForm, join_blocks, published_risk
from cellrisk.risk.measures.pmf import negative_binomial_log_pmf, poisson_log_pmf
from cellrisk.risk.measures.sizes import SizeDistribution
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

Complexes = NDArray[np.complex128]

OUTSIDE = 42.0
"""exp(-42), about 1e-18: the probability of counts and totals that are left out, on either side."""
MOST_COUNTS = 1 << 25
"""Counts of one category: more would take minutes and gigabytes."""
FALL = 1e3
"""Sizes whose P(n) is at most so many times smaller than the largest are computed together."""
LONGEST = 5
"""A transform for sizes up to n is at most so many times as long as n: the common mean of the counts is free."""
NEVER = 1e-200
"""A category that is less likely to be released as zero never is."""
SMALLEST = 1e-18
"""A transform smaller than this is rounding; this stands in its place."""
RUN = 64
"""So many consecutive probabilities follow from one by their ratios: an error of at most 64 roundings."""
NEAR = 512
"""Sizes within so many records of each other are computed together, however narrow the noise."""
FEW_FREQUENCIES = 2048
"""Transforms of more frequencies are looked through for those that matter."""
LOG_NOTHING = math.log(1e-30)
ANGLES = np.pi * np.exp2(np.arange(-80, 1) / 4.0)
"""Frequencies at which the product of all transforms is bounded."""


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
            found = multinomial_risk(block.counts, block.sizes, channel) * channel.q0 ** absent[:, None]
            risks |= {form: risk for form, risk in zip(("exact", "tight"), found, strict=True) if form in forms}
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
        some = 1.0 if self.sizes.truncated else self.sizes.not_empty
        return np.full(len(block), pmf @ labels_drawn(self.prior, sizes)), np.full(len(block), some)

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
            found = np.repeat((channel.p_positive(sizes) * channel.q0 ** (n_levels - 1))[None], 2, axis=0)
        else:
            absent = channel.q0 ** (n_levels - times.sum())
            found = dirichlet_risk(shares, times, prior.concentration, sizes, channel) * absent
        risks |= {form: risk for form, risk in zip(("exact", "tight"), found, strict=True) if form in forms}
    return risks


def multinomial_risk(counts: Integers, sizes: Integers, channel: CountChannel) -> Floats:
    """Return the exact and tight expected risk over the categories present: (2, cells, settings).

    Categories with the same count have the same law, in whichever cell they are, and cells whose transforms have about
    the same length share them.
    """
    found = np.repeat(channel.p_positive(sizes)[None], 2, axis=0)
    if counts.shape[1] == 1:
        return found
    found[:, counts[:, 1] > 0] = 0.0
    radius = int(channel.zero_radius.max())
    first, last = window(np.ones(len(sizes)), math.inf, sizes)
    lengths = np.maximum(sizes - first, last - sizes) + 1
    steps = np.ceil(2.0 * np.log2(np.maximum(lengths, 16)))
    second = np.maximum(counts[:, 1], 1)
    steps[window(np.ones(len(sizes)), math.inf, second)[0] > radius] = -1  # two that are certain to be shown
    steps[counts[:, 1] == 0] = -1
    for step in np.unique(steps[steps >= 0]).tolist():
        rows = np.flatnonzero(steps == step)
        length = fft.next_fast_len(math.ceil(2.0 ** (step / 2.0)), real=True)
        at_once = max(1, 16 * NUMBERS_AT_ONCE // (length * counts.shape[1]))
        for start in range(0, len(rows), at_once):
            few = rows[start : start + at_once]
            cell, place = np.nonzero(counts[few])
            means, where = np.unique(counts[few][cell, place], return_inverse=True)
            times = np.zeros((len(few), len(means)))
            np.add.at(times, (cell, where.reshape(-1)), 1.0)
            kinds = _Kinds.of(means.astype(np.float64), math.inf, 1.0, 0, int(sizes[few].max()))
            log_total = poisson_log_pmf(sizes[few], sizes[few])
            found[:, few] = _exactly_one_at(kinds, times, sizes[few], log_total, length, channel)
    return found


def dirichlet_risk(
    shares: Floats, times: Integers, concentration: float, sizes: Integers, channel: CountChannel
) -> Floats:
    """Return the exact and tight risk of a cell of each size, over ``times`` categories of each share: (2, sizes, ...).

    One transform serves all sizes whose P(n) is within a factor of 1,000, at a common mean of the counts that is free.
    """
    found = np.empty((2, len(sizes), len(channel)))
    labels, radius = int(times.sum()), int(channel.zero_radius.max())
    left = np.argsort(-sizes, kind="stable")
    while len(left):
        largest = int(sizes[left[0]])
        mean, most = float(largest), largest + (labels - 1) * min(radius, largest)
        one = np.ones(1)
        while min(int(window(one, concentration, mean)[1][0]), most) > LONGEST * largest + 64:
            mean *= 0.8
        log_total = count_log_pmf(sizes[left], 1.0, concentration, mean)
        near = sizes[left] >= largest - max(most - largest, NEAR)
        together = near & (log_total >= min(log_total[0], log_total[near].max() - math.log(FALL)))
        few = left[together]
        lowest, highest = (int(end[0]) for end in window(one, concentration, mean))
        smallest = int(sizes[few].min())
        length = max(largest - lowest, min(highest, most) - smallest) + 1
        length = min(length, most - smallest + 1)
        kinds = _Kinds.of(shares, concentration, mean, max(0, smallest - (most - largest)), largest)
        length = fft.next_fast_len(length, real=True)
        found[:, few] = _exactly_one_at(kinds, times[None], sizes[few], log_total[together], length, channel)
        left = left[~together]
    return found


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Categories that differ in their share, the mean of each being share * mean."""

    shares: Floats
    concentration: float
    mean: float
    first: Integers
    """The first count of each that matters."""
    last: Integers
    least: int
    """The one that is shown has at least so many records, if all others are not."""

    @staticmethod
    def of(shares: Floats, concentration: float, mean: float, least: int, most: int) -> _Kinds:
        """``most`` is a count that none exceeds."""
        first, last = window(shares, concentration, mean)
        last = np.minimum(last, most)
        if int((last - np.maximum(first, least)).max()) > MOST_COUNTS:
            raise InvalidInput(
                "this risk of cells so large would take too long",
                got=f"{int((last - first).max()):,} likely counts of one category",
                allowed=f"up to {MOST_COUNTS:,}",
                fix="ask for other measures; local always has an answer",
                code="cells-too-large",
            )
        return _Kinds(shares, concentration, mean, first, last, least)

    def split(self, settings: int) -> Iterator[Integers]:
        """Yield the places of kinds of like width, few at a time."""
        widths = self.last - np.maximum(self.first, self.least) + 1
        order = np.argsort(widths, kind="stable")
        start = 0
        while start < len(order):
            narrow = int(max(widths[order[start]], 1))
            stop = int(np.searchsorted(widths[order], 1.5 * narrow + 64, side="right"))
            few = order[start : min(stop, start + max(1, 4 * NUMBERS_AT_ONCE // (settings * (3 * narrow // 2 + 64))))]
            start += len(few)
            yield few

    def law(self, few: Integers, first: Integers, last: Integers) -> tuple[Integers, Floats]:
        """Return the counts of some kinds, from the first to the last of each, and how likely each count is."""
        width = max(1, int((last - first).max()) + 1)
        law = consecutive_pmf(first, width, self.shares[few], self.concentration, self.mean)
        law[np.arange(width) > (last - first)[:, None]] = 0.0
        return first[:, None] + np.arange(width), law

    def zero_terms(self, few: Integers, channel: CountChannel) -> tuple[Floats, Floats]:
        """Return b of some kinds, and its sum: (kinds, counts, settings)."""
        last = np.minimum(self.last[few], int(channel.zero_radius.max()))
        counts, law = self.law(few, self.first[few], last)
        terms = law[..., None] * _at(channel.p_zero, counts)
        return terms, terms.sum(axis=1)


def _exactly_one_at(
    kinds: _Kinds, times: Floats | Integers, sizes: Integers, log_total: Floats, length: int, channel: CountChannel
) -> Floats:
    """Return sum_k [a_k * prod_{j != k} b_j](n) / P(n), and the same with m a_k(m)/n: (2, sizes, settings).

    ``times``: how many categories of each kind a cell has, (cells, kinds), for a size a cell, or for all sizes of the
    one cell that there is.
    """
    found = np.empty((2, len(sizes), len(channel)))
    numbers = (length // 2 + 1) * max(len(kinds.shares), len(times))
    step = max(1, 8 * NUMBERS_AT_ONCE // numbers)
    for start in range(0, len(channel), step):
        few = slice(start, start + step)
        found[:, :, few] = _transform_back(kinds, times.astype(np.float64), sizes, log_total, length, channel[few])
    return found


def _transform_back(
    kinds: _Kinds, times: Floats, sizes: Integers, log_total: Floats, length: int, channel: CountChannel
) -> Floats:
    settings, cells = len(channel), len(times)
    kept = _count_frequencies(kinds, times, length, channel)
    if not kept:
        return np.zeros((2, len(sizes), settings))
    product = np.zeros((cells, kept * settings), np.complex128)
    alone = np.zeros((2, cells, kept * settings), np.complex128)
    certain = np.zeros_like(alone)
    masses, never = np.zeros((cells, settings)), np.zeros((cells, settings))
    for few in kinds.split(settings):
        zero, mass = kinds.zero_terms(few, channel)
        alive = mass > NEVER
        b = _transform(zero / np.where(alive, mass, 1.0)[:, None], length, kept)
        b = np.where(alive[:, None], np.where(np.abs(b) < SMALLEST, SMALLEST, b), 1.0)
        log_b = np.log(np.abs(b)) + 1j * np.angle(b)
        weight = times[:, few]
        product += _times(weight, log_b)
        masses += weight @ np.log(np.where(alive, mass, 1.0))
        never += weight @ (~alive).astype(np.float64)
        start = np.maximum(kinds.first[few], kinds.least)
        counts, law = kinds.law(few, start, kinds.last[few])
        shown = law[..., None] * _at(channel.p_positive, counts) * (counts > 0)[..., None]
        moved = _waves(start - kinds.first[few], kept, -length)[..., None]
        for place, terms in enumerate((shown, shown * counts[..., None])):
            a = _transform(terms, length, kept) * moved
            alone[place] += _times(weight, np.where(alive[:, None], a / (b * np.where(alive, mass, 1.0)[:, None]), 0.0))
            if not alive.all():
                certain[place] += _times(weight, np.where(alive[:, None], 0.0, a))
    number = np.repeat(never[:, None], kept, axis=1).reshape(cells, -1)
    alone = np.where(number == 0, alone, np.where(number == 1, certain, 0.0)) * np.exp(product)
    places = (sizes - (times @ kinds.first).astype(np.int64)) % length
    back = _inverse(alone.reshape(2, cells, kept, settings), places, length)
    scale = np.exp(masses - log_total[:, None])
    return np.maximum(back * scale / np.stack([np.ones_like(sizes), sizes])[:, :, None], 0.0)


def _count_frequencies(kinds: _Kinds, times: Floats, length: int, channel: CountChannel) -> int:
    """Return how many frequencies of a transform may matter for any cell; none if no risk does.

    |B_j(w)| <= D_j/(2 sin(w/2)), D_j the sum of |b_j(m) - b_j(m-1)|. Of many categories about a hundred are left, past
    which the product of these bounds is below 1e-18. No risk matters if all categories but one are released as zero
    with a probability below 1e-30, whatever their total.
    """
    every = length // 2 + 1
    if every <= FEW_FREQUENCIES and (len(times) > 1 or len(kinds.shares) < 2 * NUMBERS_AT_ONCE / length):
        return every
    logs, masses = np.empty((len(kinds.shares), len(ANGLES))), np.empty(len(kinds.shares))
    for few in kinds.split(len(channel)):
        zero, mass = kinds.zero_terms(few, channel)
        jumps = np.abs(np.diff(zero, axis=1, prepend=0.0, append=0.0)).sum(axis=1)
        bound = np.where(mass > NEVER, jumps / np.where(mass > NEVER, mass, 1.0), 1e300).max(axis=1)
        logs[few] = np.minimum(np.log(bound)[:, None] - np.log(2.0 * np.sin(ANGLES / 2.0)), 0.0)
        masses[few] = np.log(mass.max(axis=1) + math.exp(-OUTSIDE))
    alone = times @ masses - np.array([masses[row > 0].min() for row in times])
    if float(alone.max()) < LOG_NOTHING:
        return 0
    least = np.array([logs[row > 0].min(axis=0) for row in times])
    small = (times @ logs - least < -OUTSIDE).all(axis=0)
    if not small.any():
        return every
    return min(every, math.ceil(float(ANGLES[np.argmax(small)]) * length / (2.0 * np.pi)) + 1)


def _at(law: Any, counts: Integers) -> Floats:
    """Return a law of the channel at counts, each distinct one computed once where they are dense."""
    low, high = int(counts.min()), int(counts.max())
    if high - low >= counts.size:
        return np.asarray(law(counts))
    return np.asarray(law(np.arange(low, high + 1))[counts - low])


def _transform(terms: Floats, length: int, kept: int) -> Complexes:
    """Return sum_m terms(m) exp(-2 pi i f m / length) at the first frequencies: (kinds, frequencies, settings)."""
    width = terms.shape[1]
    if kept * width <= 2.0 * length * math.log2(length + 1) and kept < length // 2 + 1:
        waves = _waves(np.arange(width), kept, -length).view(np.float64)
        found = np.swapaxes(terms, 1, 2).reshape(-1, width) @ waves
        return np.swapaxes(found.view(np.complex128).reshape(len(terms), -1, kept), 1, 2)
    if width > length:  # what is a length apart adds up
        rounds = -(-width // length)
        terms = np.pad(terms, ((0, 0), (0, rounds * length - width), (0, 0)))
        terms = terms.reshape(len(terms), rounds, length, -1).sum(axis=1)
    return np.asarray(fft.rfft(terms, length, axis=1)[:, :kept])


def _inverse(spectrum: Complexes, places: Integers, length: int) -> Floats:
    """Return the transform back at a place for each cell, or at each place for the one cell: (2, places, settings)."""
    cells, kept, settings = spectrum.shape[1:]
    twice = np.full(kept, 2.0)
    twice[0] = 1.0
    if 2 * (kept - 1) == length:
        twice[-1] = 1.0
    if cells == 1 and len(places) > 64:
        padded = np.zeros((2, length // 2 + 1, settings), np.complex128)
        padded[:, :kept] = spectrum[:, 0]
        return np.asarray(fft.irfft(padded, length, axis=1)[:, places])
    spectrum = spectrum * (twice / length)[:, None]
    found = np.empty((2, len(places), settings))
    step = max(1, 2 * NUMBERS_AT_ONCE // (kept * settings))
    for start in range(0, len(places), step):
        few = slice(start, start + step)
        waves = _waves(places[few], kept, length)
        rows = np.broadcast_to(spectrum, (2, len(waves), kept, settings)) if cells == 1 else spectrum[:, few]
        found[:, few] = np.einsum("rcfs,cf->rcs", rows, waves).real
    return found


def _waves(places: Integers, kept: int, length: int) -> Complexes:
    """Return exp(2 pi i f x / length) at each place x and frequency f; a negative length turns the other way.

    With f = c a + b it is exp(2 pi i c a x / length) exp(2 pi i b x / length): a product instead of an exponential.
    """
    step = math.isqrt(kept) + 1
    coarse, fine = (np.outer(places, part) % abs(length) for part in (step * np.arange(step), np.arange(step)))
    large, small = (np.exp(turns * (2j * np.pi / length)) for turns in (coarse, fine))
    return np.asarray((large[:, :, None] * small[:, None, :]).reshape(len(places), -1)[:, :kept])


def _times(times: Floats, values: Complexes) -> Complexes:
    """Return the product of a real matrix (cells, kinds) and complex values (kinds, frequencies, settings), flat."""
    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    return np.asarray((times @ flat.view(np.float64)).view(np.complex128))


def count_log_pmf(counts: ArrayLike, share: ArrayLike, concentration: float, size: ArrayLike) -> Floats:
    """Return the log probability of a category's count before the total is fixed, its mean being share * size."""
    mean = np.multiply(share, size)
    if math.isinf(concentration):
        return poisson_log_pmf(counts, mean)
    return negative_binomial_log_pmf(counts, np.multiply(share, concentration), mean)


def consecutive_pmf(first: Integers, width: int, shares: Floats, concentration: float, size: float) -> Floats:
    """Return the probabilities of consecutive counts, from the first on, for each share: (shares, width).

    P(m + 1)/P(m) = mean (1 + m/shape) / ((m + 1)(1 + mean/shape)), by which one count in 64 gives the others.

    >>> fast = consecutive_pmf(np.array([3]), 97, np.array([0.3]), 2.0, 50.0)[0]
    >>> bool(np.allclose(fast, np.exp(count_log_pmf(np.arange(3, 100), 0.3, 2.0, 50.0)), rtol=1e-13, atol=0))
    True
    """
    runs = -(-width // RUN)
    counts = first[:, None, None] + np.arange(runs * RUN, dtype=np.float64).reshape(runs, RUN)
    shape, mean = (shares * concentration)[:, None, None], (shares * size)[:, None, None]
    ratios = np.empty_like(counts)
    ratios[..., 0] = np.exp(count_log_pmf(counts[..., 0], shares[:, None], concentration, size))
    if math.isinf(concentration):
        np.divide(mean, counts[..., 1:], out=ratios[..., 1:])
    else:
        np.divide((counts[..., :-1] + shape) * (mean / (shape + mean)), counts[..., 1:], out=ratios[..., 1:])
    return np.cumprod(ratios, axis=2, out=ratios).reshape(len(shares), -1)[:, :width]


def window(shares: Floats, concentration: float, size: ArrayLike) -> tuple[Integers, Integers]:
    """Return the first and the last count that matter, for each share: outside lies a probability of about 1e-18.

    By Chernoff's bound, P(N >= m) for m above the mean, and P(N <= m) below it, is at most exp(-D(m)), the likelihood
    of the mean m against that of the true one.

    >>> [bound.tolist() for bound in window(np.array([0.2, 0.8]), 1e9, 1000)]
    [[85, 555], [344, 1073]]
    """
    mean, shape = shares * np.asarray(size, dtype=np.float64), shares * concentration
    high = mean + 1.0
    while (short := _deviance(high, mean, shape) < OUTSIDE).any():
        high = np.where(short, 2.0 * high, high)
    low, start, inner = np.zeros_like(mean), mean.copy(), mean.copy()
    while ((high - inner) > 0.5).any():
        middle = 0.5 * (inner + high)
        beyond = _deviance(middle, mean, shape) >= OUTSIDE
        inner, high = np.where(beyond, inner, middle), np.where(beyond, middle, high)
    while ((start - low) > 0.5).any():
        middle = 0.5 * (low + start)
        beyond = _deviance(middle, mean, shape) >= OUTSIDE
        low, start = np.where(beyond, middle, low), np.where(beyond, start, middle)
    return np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)


def _deviance(m: Floats, mean: Floats, shape: Floats) -> Floats:
    """Return D(m) = m log(m/mean) - (shape + m) log((shape + m)/(shape + mean)), and its limit at infinite shape."""
    difference = m - mean
    with np.errstate(invalid="ignore"):
        others = np.where(np.isinf(shape), difference, (shape + m) * np.log1p(difference / (shape + mean)))
    return np.asarray(m * np.log(m / mean) - others)
