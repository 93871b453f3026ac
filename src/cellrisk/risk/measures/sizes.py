"""How many records does a cell hold: the distribution f(n; beta) of cell sizes, given or estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, pdtrc

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import find_first
from cellrisk.risk.measures import size_fits
from cellrisk.risk.measures.mixtures import gamma_mixture, gamma_size_biased, poisson_size_biased
from cellrisk.risk.measures.pmf import count_log_pmf
from cellrisk.system.arrays import Floats, Integers

_TITLES = {"poisson": "Poisson", "negbin": "negative binomial"}
_SOURCES = {
    "given": "given",
    "mle": "by maximum likelihood",
    "moments": "by moments",
    "bayes": "by its posterior mean",
}
_LIMITS = {
    "rate zero": "rate zero, every cell has one record",
    "shape infinite": "shape infinite, sizes vary no more than Poisson ones",
    "shape zero": f"shape zero, the log-series distribution, taken at shape {size_fits.SMALLEST_SHAPE:g}",
}
UNLIKELY = 1e-24
SIZES_ONE_BY_ONE = 100_000
"""Sums over more sizes than this go over every so many of them, where that makes no difference."""
MOST_SIZES = 1 << 24
_NEARLY_ZERO = 1e-15
"""Stands for rate 0 where a weight would be infinite: g(rate) / (1 - e^-rate) is then within 1e-15 of its limit."""


@dataclass(frozen=True)
class SizeDistribution:
    """f(n; beta): the probability that a cell has n records. Only non-empty cells are seen, so f is usually truncated.

    N ~ Poisson(L), L ~ Gamma(shape, scale = mean / shape), given N >= 1 if truncated; an infinite shape is the Poisson
    law of that mean. Mean 0 is the limit in which every cell has one record. Shape 0 (kept at 1e-8, its mean in
    proportion) is the log-series distribution.

    >>> negative_binomial_sizes(1.0, 1.0).pmf([1, 2, 3]).round(12).tolist()
    [0.5, 0.25, 0.125]
    """

    family: str
    """poisson or negbin."""
    shape: float
    mean: float
    """The mean before truncation."""
    truncated: bool
    """Given that the cell is not empty?"""
    source: str
    """Where it comes from: given, mle, moments or bayes."""

    @property
    def parameters(self) -> dict[str, float]:
        """beta, by name."""
        return {"rate": self.mean} if self.family == "poisson" else {"shape": self.shape, "mean": self.mean}

    @property
    def boundary(self) -> str | None:
        """The limit at which the distribution lies; else None."""
        if self.mean == 0:
            return "rate zero"
        if self.family == "negbin" and math.isinf(self.shape):
            return "shape infinite"
        return "shape zero" if self.shape == size_fits.SMALLEST_SHAPE else None

    @property
    def not_empty(self) -> float:
        """1 - P(0) before truncation, to full relative accuracy."""
        exponent = self.mean if math.isinf(self.shape) else self.shape * math.log1p(self.mean / self.shape)
        return -math.expm1(-exponent)

    def tail(self, n: int) -> float:
        """Return P(N > n) before truncation."""
        if math.isinf(self.shape):
            return float(pdtrc(n, self.mean))
        return float(betainc(n + 1.0, self.shape, self.mean / (self.shape + self.mean)))

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """Rates and weights with sum w g(rate) = E g(L), over 1 - P(0) if truncated, N ~ Poisson(L).

        For g(L) = E h(N_1, ..., N_K), N_j ~ Poisson(L p_j), |h| <= 1, h = 0 where all counts are 0.

        >>> poisson_sizes(2.0, truncated=False).mixture
        (array([2.]), array([1.]))
        """
        if math.isinf(self.shape) or self.mean == 0:  # the Gamma law is a point
            rate = max(self.mean, _NEARLY_ZERO)
            return np.array([rate]), np.array([1 / -math.expm1(-rate) if self.truncated else 1.0])
        rates, weights = gamma_mixture(self.shape, self.mean)
        return rates, weights * self._factor

    @cached_property
    def size_biased_mixture(self) -> tuple[Floats, Floats]:
        """Rates t and weights h with sum h Poisson(m; t) = f(m + 1), m >= 0: one record is set aside."""
        if self._point:
            return np.zeros(1), np.ones(1)
        infinite = math.isinf(self.shape)
        rates, weights = poisson_size_biased(self.mean) if infinite else gamma_size_biased(self.shape, self.mean)
        return rates, weights * self._factor

    @property
    def _point(self) -> bool:
        """All mass on size 1: the limit of a zero-truncated distribution whose mean goes to 0."""
        return self.truncated and self.not_empty == 0

    @property
    def _factor(self) -> float:
        return 1 / self.not_empty if self.truncated else 1.0

    def pmf(self, n: ArrayLike) -> Floats:
        """f(n), n from 0; where truncated, P(n) / (1 - P(0)) for n >= 1 and 0 for n = 0.

        >>> poisson_sizes(2.0).pmf([0, 1, 2]).round(12).tolist()
        [0.0, 0.313035285499, 0.313035285499]
        """
        size = np.asarray(n)
        if self._point:
            return np.asarray(size == 1, dtype=np.float64)
        pmf = np.exp(count_log_pmf(size, self.shape, self.mean)) * self._factor
        return np.asarray(np.where(size == 0, 0.0, pmf)) if self.truncated else np.asarray(pmf)

    def last(self, tail: float = 1e-15) -> int:
        """The smallest n >= 1 with P(N > n) below ``tail``: where a sum over n may stop.

        >>> poisson_sizes(2.0, truncated=False).last(0.01)
        6
        """
        if self._point:
            return 1
        return find_first(lambda n: self.tail(n) * self._factor < tail)

    def likely(self, labels: int = 1000) -> tuple[Integers, Floats]:
        """The sizes n >= 1 that a sum over n needs, and what each weighs: f(n), but those below 1e-24 are left out.

        Where that would be more than 100,000 sizes of a Poisson law, of which the rate is then above 10^7, every h-th
        stands for h of them, h = 0.6 sqrt(rate/labels). What is summed is smooth, because a cell of n records has at
        least n/labels of one label: by Poisson's summation formula the error is about exp(-2 pi^2/0.36), below 1e-23.

        >>> sizes, pmf = poisson_sizes(1e6).likely()
        >>> int(sizes[0]), len(sizes), round(float(pmf.sum()), 12)
        (990276, 17677, 1.0)
        >>> sizes, pmf = poisson_sizes(1e12).likely(labels=7)
        >>> int(sizes[0]), len(sizes), round(float(pmf.sum()), 12)
        (999990996948, 73, 1.0)
        """
        least = max(1, int(self.mean))  # f has one peak, and its mean is likely
        first = find_first(lambda n: n >= least or float(self.pmf(n)) > UNLIKELY)
        last = self.last()
        step = 1
        if last - first >= SIZES_ONE_BY_ONE and math.isinf(self.shape):
            step = max(1, int(0.6 * math.sqrt(last / labels)))
        if (last - first) // step >= MOST_SIZES:
            what = "marginal risks add up over the sizes that a cell may have, and these are too many"
            fix = "fit Poisson sizes, or ask for the other measures"
            raise InvalidInput(what, got=f"sizes up to {last:,}", allowed=f"up to {MOST_SIZES:,} sizes", fix=fix)
        sizes = np.arange(first, last + 1, step)
        pmf = self.pmf(sizes) * step
        return sizes[pmf > UNLIKELY], pmf[pmf > UNLIKELY]

    def describe(self) -> str:
        """Return one line for people: the parameters, how they came about, and at which limit they lie."""
        values = ", ".join(f"{name} {value:.6g}" for name, value in self.parameters.items())
        how = _SOURCES[self.source] + (f" ({size_fits.PRIORS[self.family]})" if self.source == "bayes" else "")
        limit = f"; at the limit: {_LIMITS[self.boundary]}" if self.boundary else ""
        kind = "zero-truncated " if self.truncated else ""
        return f"Cell sizes, {how}: {kind}{_TITLES[self.family]}, {values}{limit}"

    def to_dict(self) -> dict[str, Any]:
        """Return the same for machines. JSON has no infinity: an infinite shape is None, and boundary says why."""
        return {
            "name": self.family,
            **{name: value if math.isfinite(value) else None for name, value in self.parameters.items()},
            "truncated": self.truncated,
            "fit": self.source,
            "boundary": self.boundary,
        }


def poisson_sizes(rate: float, truncated: bool = True, source: str = "given") -> SizeDistribution:
    """Return N ~ Poisson(rate), given N >= 1 if truncated.

    >>> print(poisson_sizes(2.43, truncated=False, source="mle").describe())
    Cell sizes, by maximum likelihood: Poisson, rate 2.43
    """
    return SizeDistribution("poisson", math.inf, rate, truncated, source)


def negative_binomial_sizes(
    shape: float, mean: float, truncated: bool = True, source: str = "given"
) -> SizeDistribution:
    """Return N ~ Poisson(L), L ~ Gamma(shape, scale = mean / shape), given N >= 1 if truncated."""
    return SizeDistribution("negbin", shape, mean, truncated, source)


def fit_sizes(
    profiles: Profiles, family: str = "poisson", method: str = "mle", truncated: bool = True
) -> SizeDistribution:
    """Fit a distribution to the sizes of the non-empty cells.

    Poisson: ``mle`` and ``moments`` coincide, as the mean is sufficient: rate = mean size, or, truncated, the rate with
    rate / (1 - e^-rate) = mean size. ``bayes``: the posterior mean under the prior density rate^(-1/2).
    Negative binomial: ``mle`` by its profile likelihood in the shape; ``moments`` from the mean and variance (n in the
    denominator) or, truncated, from the mean and E n^2 / E n = 1 + scale (shape + 1); ``bayes``: the posterior means of
    shape and mean, both log-uniform over a range. All are estimates; limits (`SizeDistribution.boundary`) are answers.
    The plain fits are those that the paper reports.

    >>> profiles = Profiles.from_cells([[1], [1], [2], [4]], n_levels=1)
    >>> fit_sizes(profiles, truncated=False).mean
    2.0
    >>> round(fit_sizes(profiles).parameters["rate"], 6)
    1.593624
    """
    if profiles.n_cells == 0:
        raise InvalidInput("cell sizes cannot be fitted to a table without records")
    histogram = size_fits.Histogram(*(values.astype(np.float64) for values in profiles.sizes))
    if family == "poisson":
        rate = size_fits.poisson_bayes if method == "bayes" else size_fits.poisson_mean
        return poisson_sizes(rate(histogram, truncated), truncated, method)
    fit = {
        "mle": size_fits.negative_binomial_mle,
        "moments": size_fits.negative_binomial_moments,
        "bayes": size_fits.negative_binomial_bayes,
    }[method]
    return negative_binomial_sizes(*fit(histogram, truncated), truncated, method)
