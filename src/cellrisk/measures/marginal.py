"""Marginal risk: a cell's own proportions, with a random number of records (Definition 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from cellrisk.measures.measure import NUMBERS_AT_ONCE, Measure, Risks, published_terms
from cellrisk.measures.pmf import first_count, last_count, poisson_pmf
from cellrisk.measures.sizes import CellSizes
from cellrisk.measures.survival import Survival, exactly_one
from cellrisk.profiles import Block, Floats, Integers, Profiles


@dataclass(frozen=True)
class Marginal(Measure):
    """What is the risk of a cell with these proportions when its size is drawn from f(n; beta)?

    Given a Poisson size with mean t the K counts are independent Poissons with means t p_k, so the risk factorises:

        exact = E_t [ sum_k E s(N_k) 1(N_k > 0) prod_{j != k} E q(N_j) ],   N_j ~ Poisson(t p_j),
        tight = E'_t [ sum_k p_k E s(N_k + 1) prod_{j != k} E q(N_j) ].

    E_t is over the law whose Poisson mixture is f (one point for Poisson sizes, a Gamma for negative binomial ones).
    E'_t is over the measure whose Poisson mixture at n' is f(n' + 1): a record of the label that is shown is set
    aside, and the others are n' = n - 1. published sums the paper's form over n, as Definition 9 says.
    """

    sizes: CellSizes
    name: ClassVar[str] = "marginal"

    def reduce(self, profiles: Profiles) -> Profiles:
        return profiles.by_proportions()

    def rows_at_once(self, block: Block, survival: Survival) -> int:
        nodes: int = len(self.sizes.size_biased_mixture()[0])
        width = max(len(survival), int(block.counts.shape[1]))
        return max(1, 4 * NUMBERS_AT_ONCE // (nodes * width))

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        """Label k is there with probability E_t 1 - e^(-t p_k)."""
        rates, weights = self.sizes.mixture()
        shares = block.counts / block.sizes[:, None]
        labels = np.einsum("ckl,l->c", -np.expm1(-shares[..., None] * rates), weights)
        return labels, np.full(len(block), 1.0 if self.sizes.truncated else self.sizes.not_empty)

    def risk(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> Risks:
        n_present = block.counts.shape[1]
        absent = survival.vanish_empty ** (n_levels - n_present)
        risks: Risks = {}
        if "published" in forms:
            risks["published"] = self._published(block, n_levels, survival)
        if "exact" in forms:
            risks["exact"] = _mixed(block, survival, *self.sizes.mixture(), record_aside=False) * absent
        if "tight" in forms:
            nodes = self.sizes.size_biased_mixture()
            risks["tight"] = _mixed(block, survival, *nodes, record_aside=True) * absent
        return risks

    def _published(self, block: Block, n_levels: int, survival: Survival) -> Floats:
        sizes = np.arange(1, self.sizes.last() + 1)
        chance = self.sizes.pmf(sizes)
        same, mixed = published_terms(sizes, n_levels, survival)
        log_shares = np.log(block.counts / block.sizes[:, None])
        total = np.zeros((len(block), len(survival)))
        step = max(1, NUMBERS_AT_ONCE // block.counts.size)
        for start in range(0, len(sizes), step):
            few = slice(start, start + step)
            all_same = np.exp(log_shares[..., None] * sizes[few]).sum(axis=1)
            total += (all_same * chance[few]) @ same[few] + ((1.0 - all_same) * chance[few]) @ mixed[few]
        return total


def _mixed(block: Block, survival: Survival, rates: Floats, weights: Floats, record_aside: bool) -> Floats:
    """sum over nodes of the weight times the factorised risk: (cells, noises)."""
    shares, where = np.unique(block.counts / block.sizes[:, None], return_inverse=True)
    row = where.reshape(block.counts.shape)
    q, s = _poisson_means(shares[:, None] * rates, survival, 1 if record_aside else 0)
    if record_aside:
        s = s * shares[:, None, None]
    labels = range(block.counts.shape[1])
    risk = exactly_one([q[row[:, label]] for label in labels], [s[row[:, label]] for label in labels])
    return np.asarray(np.einsum("l,cle->ce", weights, risk))


def _poisson_means(means: Floats, survival: Survival, aside: int) -> tuple[Floats, Floats]:
    """E q(N), and E s(N) 1(N > 0) or, with a record set aside, E s(N + 1), for N ~ Poisson(mean): (..., noises)."""
    order = np.argsort(means, axis=None)
    mean = means.reshape(-1)[order]
    table = survival.up_to(int(last_count(mean[-1])) + 1)
    q = np.empty((len(mean), len(survival)))
    s = np.empty_like(q)
    start = 0
    while start < len(mean):  # means of like size need the same counts
        first = int(first_count(mean[start]))
        last = min(int(last_count(last_count(mean[start]))), max(first, table.end))
        most = start + max(1, 4 * NUMBERS_AT_ONCE // (last - first + 1))
        stop = min(most, int(np.searchsorted(mean, last_count(mean[start]), side="right")))
        counts = np.arange(first, last + 1)
        few, here = order[start:stop], mean[start:stop, None]
        chance = _poisson_rows(here, counts)
        survives = table.survive_at(counts + aside) * ((counts + aside) > 0)[:, None]
        q[few] = chance @ table.vanish_at(counts)
        s[few] = chance @ survives + special.pdtrc(last, here)  # counts past the table survive
        start = stop
    return q.reshape(*means.shape, -1), s.reshape(*means.shape, -1)


def _poisson_rows(means: Floats, counts: Integers) -> Floats:
    """Poisson probabilities of consecutive counts, a row for each mean of a column."""
    factors = np.concatenate([poisson_pmf(counts[0], means), means / counts[1:]], axis=1)
    return np.cumprod(factors, axis=1)
