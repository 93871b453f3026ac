"""What is known of a cell's label proportions before its records are seen: a Dirichlet prior, given or estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cellrisk.counts.profiles import LevelCounts, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.risk.measures.pmf import count_log_pmf, falling_root, log_excess, sums_of_inverses
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

_SOURCES = {"given": "given", "mle": "by maximum likelihood", "moments": "by moments"}
_LARGEST_CONCENTRATION = 1e13
"""A concentration past this cannot be told from infinity in double precision."""


@dataclass(frozen=True)
class Dirichlet:
    """A prior on label proportions: p ~ Dirichlet(alpha), alpha_k = concentration * mean_k.

    Concentration 0 and infinity are its two limits, and both are answers: at 0 every cell holds one label alone, at
    infinity every cell draws from the same proportions, ``mean``. A level with mean 0 never occurs.
    """

    mean: tuple[float, ...]
    """Each level's expected share, levels in their order."""
    concentration: float
    """alpha. = the sum of alpha: how many records the prior is worth."""
    source: str
    """Where it comes from: given, mle or moments."""

    @staticmethod
    def given(alpha: Sequence[float], n_levels: int) -> Dirichlet:
        """Return the prior with these parameters, one for each level in order; numbers above 0."""
        values = [float(value) for value in alpha]
        if len(values) != n_levels:
            what = "must have one value for each level of the sensitive attribute"
            fix = "give them in the order of the levels, or use mle or moments"
            raise InvalidInput(what, option="alpha", got=f"{len(values)} values", allowed=f"{n_levels} values", fix=fix)
        total = math.fsum(values)
        return Dirichlet(tuple(value / total for value in values), total, "given")

    @property
    def alpha(self) -> tuple[float, ...]:
        """The parameters, levels in order: all 0 or infinite at the limits; 0 for a level that never occurs."""
        return tuple(share * self.concentration if share > 0 else 0.0 for share in self.mean)

    @property
    def boundary(self) -> str | None:
        """The limit at which the prior lies, "zero" or "infinite"; else None."""
        if self.concentration == 0:
            return "zero"
        return "infinite" if math.isinf(self.concentration) else None

    def describe(self) -> str:
        """One line for people: the parameters, or which limit it is and what that means."""
        start = f"Dirichlet prior, {_SOURCES[self.source]}: "
        if self.boundary == "zero":
            return start + "concentration 0 (the limit in which all records of a group have one category)"
        if self.boundary == "infinite":
            shares = _listed(self.mean)
            return start + f"infinite concentration (the limit in which every group has the same proportions, {shares})"
        return start + f"alpha = {_listed(self.alpha)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the same for machines. JSON has no infinity: there, alpha is None, and boundary says why."""
        infinite = math.isinf(self.concentration)
        return {
            "name": "dirichlet",
            "source": self.source,
            "alpha": None if infinite else list(self.alpha),
            "mean": list(self.mean),
            "concentration": None if infinite else self.concentration,
            "boundary": self.boundary,
        }


def all_same(prior: Dirichlet, sizes: ArrayLike) -> Floats:
    """Return the probability that all n records of a cell share a label, before any of them is seen.

    A(n) = sum_k G(a.) G(a_k + n) / (G(a. + n) G(a_k)), G = Gamma, a. the concentration (paper, shrinkage risk;
    supplement, Dirichlet-multinomial). Exact, relative error below 1e-12 for n up to 10^7. The limits are 1 for
    concentration 0 and sum_k mean_k^n for infinity.

    >>> all_same(Dirichlet.given([1.0, 1.0, 1.0], n_levels=3), [1, 2, 4]).round(12).tolist()
    [1.0, 0.5, 0.2]
    """
    share, times = np.unique(np.asarray([share for share in prior.mean if share > 0]), return_counts=True)
    rest = 1.0 - share  # at most one share is above 1/2: there 1 - share would lose the digits of a small rest
    if share[-1] > 0.5:
        rest[-1] = math.fsum(other for other in prior.mean if other != share[-1])
    return _sum_alone(prior.concentration, share, rest, times, np.asarray(sizes))


def labels_drawn(prior: Dirichlet, sizes: Integers) -> Floats:
    """Return how many labels a cell of each size is expected to hold: sum_k 1 - P(N_k = 0).

    P(N_k = 0) is the probability that all records have a label other than k, as if those were one label.

    >>> labels_drawn(Dirichlet.given([1.0, 1.0], n_levels=2), np.array([1, 2])).round(12).tolist()  # 1, 2 - 2/3
    [1.0, 1.333333333333]
    """
    share, times = np.unique(np.asarray(prior.mean), return_counts=True)
    if prior.boundary == "zero" or share[-1] == 1:
        return np.ones(len(sizes))
    return np.asarray(times.sum() - _sum_alone(prior.concentration, 1.0 - share, share, times, sizes))


def _sum_alone(concentration: float, share: Floats, rest: Floats, times: Integers, sizes: Integers) -> Floats:
    """Return the sum over labels of the probability that all records of a cell of each size have that label.

    Counts are independent negative binomial (or Poisson) counts given their total n: P(N_k = n) P(others = 0) / P(n),
    at a mean of n, which is free. ``times`` labels have each share, and ``rest`` is 1 - share.
    """
    sums = []
    for part in np.array_split(sizes.ravel(), 1 + sizes.size * len(share) // (4 * NUMBERS_AT_ONCE)):
        n = part[:, None].astype(np.float64)
        if concentration == 0:
            log_pmf = np.log(share) + 0.0 * n
        elif math.isinf(concentration):
            log_pmf = n * np.where(share > 0.5, np.log1p(-rest), np.log(share))
        else:
            log_pmf = count_log_pmf(n, concentration * share, n * share) - count_log_pmf(n, np.array(concentration), n)
            log_pmf -= rest * concentration * np.log1p(n / concentration)
        sums.append(np.exp(log_pmf) @ times)
    return np.asarray(np.concatenate(sums).reshape(sizes.shape))


def fit_dirichlet(profiles: Profiles, levels: LevelCounts, method: str = "mle") -> Dirichlet:
    """Return the estimated prior: how much label proportions differ from cell to cell.

    ``mle`` maximises the Dirichlet-multinomial likelihood of the cells given their sizes,

        log L = sum_i [ log G(a.) - log G(a. + n_i) + sum_k (log G(a_k + n_ik) - log G(a_k)) ],

    to rounding. ``moments`` equates R = sum_i sum_k (n_ik - n_i p_k)^2 with its expectation, p_k the level's share:
    a. = (V sum n_i^2 - R) / (R - V n), V = sum_k p_k (1 - p_k), a_k = a. p_k (in whole numbers, so exact).
    Both are estimates. Concentration 0 (cells of one label each) and infinity (no variation between cells beyond
    chance) are answers. A level without records gets mean 0, its maximum likelihood value.
    """
    if profiles.n_cells == 0:
        raise InvalidInput("alpha cannot be estimated from a table without records", fix="give alpha instead")
    if method == "moments":
        return Dirichlet(tuple(levels.shares.tolist()), _moments(profiles, levels), "moments")
    if profiles.n_heterogeneous == 0:
        return Dirichlet(tuple(levels.shares.tolist()), 0.0, "mle")
    seen = levels.totals > 0
    numbers = (*profiles.sizes, levels.count, levels.cells, levels.totals[seen])
    likelihood = _Likelihood((np.cumsum(seen) - 1)[levels.level], *(part.astype(np.float64) for part in numbers))
    gains = [(likelihood.gain_over_infinity(alpha), alpha) for alpha in likelihood.maxima()]
    gain, alpha = max(gains, key=lambda pair: pair[0], default=(-math.inf, np.zeros(0)))
    if gain <= 0:
        return Dirichlet(tuple(levels.shares.tolist()), math.inf, "mle")
    mean = np.zeros(profiles.n_levels)
    mean[seen] = alpha / alpha.sum()
    return Dirichlet(tuple(mean.tolist()), float(alpha.sum()), "mle")


def _moments(profiles: Profiles, levels: LevelCounts) -> float:
    """The concentration by moments; whole numbers throughout, scaled by n^2, so that the signs are certain."""
    size, cells = (_whole(values) for values in profiles.sizes)
    count, total = _whole(levels.count), _whole(levels.totals)
    n, squared_totals = total.sum(), total @ total
    squared_sizes = cells @ (size * size)
    squared_counts = _whole(levels.cells) @ (count * count)
    products = total @ _whole(levels.size_products)
    v = n * n - squared_totals
    r = n * n * squared_counts - 2 * n * products + squared_totals * squared_sizes
    if v * squared_sizes - r <= 0:
        return 0.0
    return (v * squared_sizes - r) / (r - v * n) if r - v * n > 0 else math.inf


def _whole(values: Integers | Floats) -> NDArray[np.object_]:
    """Python's whole numbers, which are as long as they need be."""
    return np.array([int(value) for value in values.tolist()], dtype=object)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The Dirichlet-multinomial likelihood as a function of alpha, through histograms, levels with records only.

    With S_k(a) = sum over cells of sum_{j < n_ik} 1/(a + j) and T the same for the sizes n_i, the gradient is
    S_k(a_k) - T(a.). For a fixed a. the problem is concave in alpha and S_k(a_k) is the same for all k; 1/S_k is
    concave and increasing in a_k and almost linear, so Newton's method is applied to 1/S_k (its matrix is diagonal
    plus rank one: T. Minka, "Estimating a Dirichlet distribution", 2000). What remains is one dimension: the sign
    changes of the profile's slope S - T in log a., scanned for and bracketed.
    """

    level: Integers
    size: Floats
    size_cells: Floats
    count: Floats
    cells: Floats
    totals: Floats

    def at_concentration(self, concentration: float, alpha: Floats, accuracy: float = 1e-8) -> tuple[Floats, float]:
        """The best alpha with this sum, from a first guess, and the slope of log L in the concentration there.

        The last step is below ``accuracy``; the error that remains is about its square. A slope that is no more than
        rounding is 0, so that its sign does not depend on the first guess.
        """
        alpha = alpha * (concentration / alpha.sum())
        for _ in range(100):
            sums = sums_of_inverses(alpha[self.level], self.count)
            slope, curvature = (np.bincount(self.level, self.cells * part, len(alpha)) for part in sums)
            inverse, gradient = 1 / slope, curvature / slope**2
            common = (concentration - alpha.sum() + (inverse / gradient).sum()) / (1 / gradient).sum()
            step = (common - inverse) / gradient
            alpha = np.maximum(alpha + step, 0.1 * alpha)
            if np.all(np.abs(step) <= accuracy * alpha):
                break
        total = float(alpha.sum())
        rise, _ = sums_of_inverses(np.full_like(self.size, total), self.size)
        fall = float((self.size_cells * rise).sum())
        slope_of_sum = 1 / common - fall
        return alpha, slope_of_sum if abs(slope_of_sum) > 1e-14 * fall else 0.0

    def maxima(self) -> list[Floats]:
        """Every alpha with a finite sum where the likelihood has a peak.

        There can be a peak beside the one at infinity: a cell that holds most records settles the pooled shares, and
        then has too little variation to show that the other cells vary.
        """
        state = [self.totals / self.totals.sum()]

        def slope(log_concentration: float, accuracy: float = 1e-8) -> float:
            state[0], value = self.at_concentration(math.exp(log_concentration), state[0], accuracy)
            return value * math.exp(log_concentration)

        grid = np.log([1e-15, *np.logspace(-4.0, 6.0, 11), _LARGEST_CONCENTRATION]).tolist()
        slopes = [slope(point, accuracy=1e-3) for point in grid]
        peaks = [left for left in range(len(grid) - 1) if slopes[left] > 0 >= slopes[left + 1]]
        roots = [falling_root(slope, grid[left], grid[left + 1]) for left in peaks]
        return [self.at_concentration(math.exp(root), state[0])[0] for root in roots if math.isfinite(root)]

    def gain_over_infinity(self, alpha: Floats) -> float:
        """log L at alpha minus log L at the infinite limit with pooled proportions; rounding counts as 0."""
        total = alpha.sum()
        pooled = self.totals / self.totals.sum()
        shift = self.totals * np.log(alpha / total / pooled)
        levels = self.cells * log_excess(alpha[self.level], self.count)
        sizes = self.size_cells * log_excess(np.full_like(self.size, total), self.size)
        gain = math.fsum(shift) + math.fsum(levels) - math.fsum(sizes)
        return gain if abs(gain) > 1e-12 * self.totals.sum() else 0.0


def _listed(values: Sequence[float], most: int = 6) -> str:
    shown = ", ".join(f"{value:.6g}" for value in values[:most])
    return f"({shown})" if len(values) <= most else f"({shown}, ... {len(values)} in all)"
