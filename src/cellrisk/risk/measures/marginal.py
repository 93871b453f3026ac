"""Marginal risk: a cell's own proportions, with a random number of records (Definition 9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures.local import exactly_one
from cellrisk.risk.measures.measure import Measure, RisksByForm, join_blocks, published_terms
from cellrisk.risk.measures.pmf import poisson_log_pmf, window
from cellrisk.risk.measures.sizes import SizeDistribution
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats

NEGLIGIBLE_SHARE = 1e-24
"""p^n below this is left out of the published form."""


@dataclass(frozen=True)
class Marginal(Measure):
    """What is the risk of a cell with these proportions when its size is drawn from f(n; beta)?

    Given a Poisson size with mean t the K counts are independent Poissons with means t p_k, so the risk factorises:

        exact = E_t [ sum_k E s(N_k) 1(N_k > 0) prod_{j != k} E q(N_j) ],   N_j ~ Poisson(t p_j),
        tight = E'_t [ sum_k p_k E s(N_k + 1) prod_{j != k} E q(N_j) ].

    E_t is over the law whose Poisson mixture is f (one point for Poisson sizes, a Gamma for negative binomial ones).
    E'_t is over the measure whose Poisson mixture at n' is f(n' + 1): a record of the category that is shown is set
    aside, and the others are n' = n - 1. published sums the paper's form over n, as Definition 9 says.
    """

    sizes: SizeDistribution
    name: ClassVar[str] = "marginal"

    def reduce(self, profiles: Profiles) -> Profiles:
        return profiles.by_proportions()

    def pieces(self, profiles: Profiles, channel: CountChannel) -> Iterator[Block]:
        nodes = len(self.sizes.size_biased_mixture[0])
        for block in join_blocks(profiles):
            step = max(1, 16 * NUMBERS_AT_ONCE // (nodes * len(channel) * block.counts.shape[1]))
            for start in range(0, len(block), step):
                yield block[start : start + step]

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        """Category k is there with probability E_t 1 - e^(-t p_k)."""
        rates, weights = self.sizes.mixture
        shares = block.counts / block.sizes[:, None]
        labels = np.einsum("ckl,l->c", -np.expm1(-shares[..., None] * rates), weights)
        return labels, np.full(len(block), 1.0 if self.sizes.truncated else self.sizes.not_empty)

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        absent = channel.q0 ** (n_levels - block.counts.shape[1])
        risks = {"published": self._published(block, n_levels, channel)} if "published" in forms else {}
        if "exact" in forms:
            risks["exact"] = _mixed(block, channel, *self.sizes.mixture, aside=0) * absent
        if "tight" in forms:
            risks["tight"] = _mixed(block, channel, *self.sizes.size_biased_mixture, aside=1) * absent
        return risks

    def _published(self, block: Block, n_levels: int, channel: CountChannel) -> Floats:
        sizes, pmf = self.sizes.likely
        same, mixed = published_terms(sizes, n_levels, channel)
        difference = (same - mixed) * pmf[:, None]
        with np.errstate(divide="ignore"):
            log_shares = np.log(block.counts / block.sizes[:, None])
        total = np.repeat((pmf @ mixed)[None], len(block), axis=0)
        step = max(1, NUMBERS_AT_ONCE // block.counts.size)
        for start in range(0, len(sizes), step):
            chosen = slice(start, start + step)
            likely = log_shares.max(axis=0) * float(sizes[start]) > np.log(NEGLIGIBLE_SHARE)
            if not likely.any():  # nor is it in larger cells
                break
            total += np.exp(log_shares[:, likely, None] * sizes[chosen]).sum(axis=1) @ difference[chosen]
        return total


def _mixed(block: Block, channel: CountChannel, rates: Floats, weights: Floats, aside: int) -> Floats:
    """Return the sum over nodes of the weight times the factorised risk: (cells, settings)."""
    shares, where = np.unique(block.counts / block.sizes[:, None], return_inverse=True)
    row = where.reshape(block.counts.shape).T
    q, s = poisson_means(shares[:, None] * rates, channel, aside)
    if aside:
        s = s * shares[:, None, None]
    risks = np.empty((len(block), len(channel)))
    step = max(1, 4 * NUMBERS_AT_ONCE // (len(rates) * len(channel) * len(row)))
    for start in range(0, len(block), step):
        chosen = slice(start, start + step)
        risks[chosen] = np.einsum("l,cle->ce", weights, exactly_one(q[row[:, chosen]], s[row[:, chosen]]))
    return risks


def poisson_means(means: Floats, channel: CountChannel, aside: int) -> tuple[Floats, Floats]:
    """Return E q(N), and E s(N) 1(N > 0) or, with a record set aside, E s(N + 1), N ~ Poisson(mean): (..., settings).

    >>> from cellrisk import Geometric
    >>> q, _ = poisson_means(np.array([2.0]), Geometric(1.0).channel, 0)
    >>> round(float(q[0, 0]), 12), round(float(np.exp(2 * (np.exp(-1) - 1)) / (1 + np.exp(-1))), 12)
    (0.206490100918, 0.206490100918)
    """
    order = np.argsort(means, axis=None)
    mean = means.reshape(-1)[order]
    radius = int(channel.zero_radius.max())
    last_of_all = int(window(mean[-1])[1])
    far = channel.p_positive(np.array([min(radius, last_of_all + 1)]))[0]
    q, s = np.empty((2, len(mean), len(channel)))
    start = 0
    while start < len(mean):  # means of like size need the same counts
        first, last = (int(end) for end in window(mean[start]))
        stop = int(np.searchsorted(mean, last, side="right"))
        last = min(int(window(float(last))[1]), max(first, radius))
        stop = min(stop, start + max(1, 8 * NUMBERS_AT_ONCE // (last - first + 1)))
        counts, rows, here = np.arange(first, last + 1), order[start:stop], mean[start:stop, None]
        pmf = np.cumprod(np.concatenate([np.exp(poisson_log_pmf(first, here)), here / counts[1:]], axis=1), axis=1)
        shown = channel.p_positive(counts + aside) * ((counts + aside) > 0)[:, None]
        q[rows] = pmf @ channel.p_zero(counts)
        s[rows] = pmf @ shown + special.pdtrc(last, here) * far
        start = stop
    return q.reshape(*means.shape, -1), s.reshape(*means.shape, -1)
