"""Marginal risk: a cell's own proportions, with a random number of records (Definition 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.risk.measures.measure import NUMBERS_AT_ONCE, Measure, RisksByForm, published_terms
from cellrisk.risk.measures.pmf import first_count, last_count, poisson_pmf
from cellrisk.risk.measures.sizes import SizeDistribution
from cellrisk.risk.measures.survival import MANY_LABELS, Survival, exactly_one
from cellrisk.risk.measures.transforms import NOTHING
from cellrisk.system.arrays import Floats, Integers

CHEBYSHEV = 16
NEGLIGIBLE = 1e-24
"""Labels less likely than this to be alone are left out."""


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

    sizes: SizeDistribution
    name: ClassVar[str] = "marginal"
    joins: ClassVar[bool] = True
    cut: ClassVar[bool] = True

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

    def risk(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> RisksByForm:
        n_present = block.counts.shape[1]
        absent = survival.vanish_empty ** (n_levels - n_present)
        risks: RisksByForm = {}
        if "published" in forms:
            risks["published"] = self._published(block, n_levels, survival)
        if "exact" in forms:
            risks["exact"] = _mixed(block, survival, *self.sizes.mixture(), record_aside=False) * absent
        if "tight" in forms:
            nodes = self.sizes.size_biased_mixture()
            risks["tight"] = _mixed(block, survival, *nodes, record_aside=True) * absent
        return risks

    def _published(self, block: Block, n_levels: int, survival: Survival) -> Floats:
        kept = _PUBLISHED.setdefault(survival, {})
        if (self.sizes, n_levels) not in kept:
            sizes, chance = self.sizes.likely(n_levels)
            same, mixed = published_terms(sizes, n_levels, survival)
            kept[self.sizes, n_levels] = sizes, chance @ mixed, (same - mixed) * chance[:, None]
        sizes, heterogeneous, difference = kept[self.sizes, n_levels]
        shares = block.counts / block.sizes[:, None]
        total = np.repeat(heterogeneous[None], len(block), axis=0)
        step = max(1, NUMBERS_AT_ONCE // block.counts.size)
        for start in range(0, len(sizes), step):
            few = slice(start, start + step)
            likely = (shares ** float(sizes[start])).max(axis=0) > NEGLIGIBLE  # p^n of the other labels is next to none
            if not likely.any():  # nor is it in larger cells
                break
            with np.errstate(divide="ignore"):  # a label that is absent
                all_same = np.exp(np.log(shares[:, likely, None]) * sizes[few]).sum(axis=1)
            total += all_same @ difference[few]
        return total


_PUBLISHED: WeakKeyDictionary[Survival, dict[tuple[SizeDistribution, int], tuple[Integers, Floats, Floats]]] = (
    WeakKeyDictionary()
)
"""The sizes, and what the published form sums over them for every cell: kept as long as the noises."""


def _mixed(block: Block, survival: Survival, rates: Floats, weights: Floats, record_aside: bool) -> Floats:
    """sum over nodes of the weight times the factorised risk: (cells, noises)."""
    if block.counts.shape[1] > MANY_LABELS:
        some = np.flatnonzero(_log_most(block, survival, float(rates.min())).max(axis=1) > math.log(NOTHING))
        if len(some) < len(block):
            found = np.zeros((len(block), len(survival)))
            if len(some):
                rows = Block(block.counts[some], block.cells[some], block.records[some])
                found[some] = _mixed(rows, survival, rates, weights, record_aside)
            return found
    shares, where = np.unique(block.counts / block.sizes[:, None], return_inverse=True)
    row = where.reshape(block.counts.shape)
    q, s = _poisson_means(shares[:, None] * rates, survival, 1 if record_aside else 0)
    if record_aside:
        s = s * shares[:, None, None]
    risk = exactly_one(q[row.T], s[row.T])
    return np.asarray(np.einsum("l,cle->ce", weights, risk))


def _log_most(block: Block, survival: Survival, rate: float) -> Floats:
    """log of what the risk is at most, over q(0)^(K-1) for K labels present, at this rate and above: (cells, noises).

    A count N with mean t is below t/2 with a probability of at most exp(-(1 - log 2) t/2), so E q(N) is at most that
    plus q(t/2), or q(0). All labels but one vanish: the one that is left out is the one least likely to.
    """
    means = block.counts * (rate / block.sizes)[:, None]
    vanish = survival.vanish(np.floor(0.5 * means).astype(np.int64).reshape(-1)).reshape(*means.shape, -1)
    below = np.exp(-0.5 * (1.0 - math.log(2.0)) * means)[..., None]
    with np.errstate(divide="ignore"):
        logs = np.log(np.minimum(vanish / survival.vanish_empty + below / survival.vanish_empty, 1.0))
    logs = np.maximum(logs, -1e6)
    return np.asarray(logs.sum(axis=1) - logs.min(axis=1) + math.log(means.shape[1]))


def _poisson_means(means: Floats, survival: Survival, aside: int) -> tuple[Floats, Floats]:
    """E q(N), and E s(N) 1(N > 0) or, with a record set aside, E s(N + 1), for N ~ Poisson(mean): (..., noises).

    Where means are very many, they are interpolated between few. Half a standard deviation of N, or two records, is
    where 16 Chebyshev points leave an error below 1e-15 of the value at the start: the n-th derivative in the mean is
    the n-th difference of q or s, averaged over N.
    """
    panels = 16 * max(1, math.ceil(float(means.max()) ** 0.5 / 4.0 - 0.5))  # a few such ranges serve all
    if means.size <= 2 * CHEBYSHEV * panels:
        return _summed_means(means, survival, aside)
    edges = _edges(panels)
    kept = _INTERPOLANTS.setdefault(survival, {})
    key = aside, panels
    if key not in kept:
        kept[key] = _interpolants(edges, survival, aside)
    low, half = edges[:-1], 0.5 * np.diff(edges)
    flat = means.reshape(-1)
    found = np.empty((2, means.size, len(survival)))
    step = NUMBERS_AT_ONCE // CHEBYSHEV
    for start in range(0, means.size, step):
        few = slice(start, start + step)
        panel = np.searchsorted(edges[1:-1], flat[few], side="right")
        x = (flat[few] - low[panel]) / half[panel] - 1.0
        for part in range(2):
            for noise in range(len(survival)):
                found[part, few, noise] = _clenshaw(kept[key][part, noise][panel].T, x)
    q, s = found.reshape(2, *means.shape, len(survival))
    return q, s if aside else s * means[..., None]


_INTERPOLANTS: WeakKeyDictionary[Survival, dict[tuple[int, int], Floats]] = WeakKeyDictionary()
"""Kept as long as the noises that they belong to."""


def _interpolants(edges: Floats, survival: Survival, aside: int) -> Floats:
    """Chebyshev coefficients of E q(N), and of E s(N + 1) or E s(N) 1(N > 0) / mean: (2, noises, panels, orders)."""
    angles = np.pi * (np.arange(CHEBYSHEV) + 0.5) / CHEBYSHEV
    points = edges[:-1, None] + 0.5 * np.diff(edges)[:, None] * (1.0 + np.cos(angles))
    q, s = _summed_means(points, survival, aside)
    if not aside:
        s = s / points[..., None]  # which does not vanish where the mean does
    to_coefficients = np.cos(np.outer(np.arange(CHEBYSHEV), angles)) * (2.0 / CHEBYSHEV)
    to_coefficients[0] *= 0.5
    return np.stack([np.einsum("kn,pne->epk", to_coefficients, values) for values in (q, s)])


def _clenshaw(coefficients: Floats, x: Floats) -> Floats:
    """sum_k c_k T_k(x), T the Chebyshev polynomials: (orders, points) and points; not below 0."""
    later, last = np.zeros_like(x), np.zeros_like(x)
    for row in coefficients[:0:-1]:
        later, last = row + 2.0 * x * later - last, later
    return np.asarray(np.maximum(coefficients[0] + x * later - last, 0.0))


def _edges(panels: int) -> Floats:
    """Of so many panels: from 0 on two records apart, and from 16 on half a standard deviation."""
    place = np.arange(panels + 1)
    return np.where(place < 8, 2.0 * place, ((place + 8) / 4.0) ** 2)


def _summed_means(means: Floats, survival: Survival, aside: int) -> tuple[Floats, Floats]:
    """The same, a sum over counts for each mean."""
    order = np.argsort(means, axis=None)
    mean = means.reshape(-1)[order]
    table = survival.at_any(int(last_count(mean[-1])) + 1)
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
