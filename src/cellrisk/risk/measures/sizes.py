"""How many records does a cell hold: the distribution f(n; beta) of cell sizes, given or estimated."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, pdtrc

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.risk.measures import size_fits
from cellrisk.risk.measures.mixtures import gamma_mixture, gamma_size_biased, poisson_size_biased
from cellrisk.risk.measures.pmf import negative_binomial_pmf
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.choices import SizesFamily, SizesFit, list_words, require_word

FAMILIES: tuple[SizesFamily, ...] = list_words(SizesFamily)
METHODS: tuple[SizesFit, ...] = list_words(SizesFit)
_SOURCES = {
    "given": "given",
    "mle": "by maximum likelihood",
    "moments": "by moments",
    "bayes": "by its posterior mean",
}
UNLIKELY = 1e-24
SIZES_ONE_BY_ONE = 100_000
"""Sums over more sizes than this go over every so many of them, where that makes no difference."""
MOST_SIZES = 1 << 24
_NEARLY_ZERO = 1e-15
"""Stands for rate 0 where a weight would be infinite: g(rate) / (1 - e^-rate) is then within 1e-15 of its limit."""


class SizeDistribution(ABC):
    """f(n; beta): the probability that a cell has n records. Only non-empty cells are seen, so f is usually truncated.

    N ~ Poisson(L), L ~ Gamma(shape, scale = mean / shape); an infinite shape is the Poisson law of that mean.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """The name as people write it."""
    prior: ClassVar[str]
    """What the Bayes fit assumes."""
    shape: float
    mean: float
    """The mean before truncation."""
    truncated: bool
    """Given that the cell is not empty?"""
    source: str
    """Where it comes from: given, mle, moments or bayes."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, float]:
        """beta, by name."""

    @property
    def boundary(self) -> str | None:
        """The limit at which the distribution lies; else None."""
        return "rate zero" if self.mean == 0 else None

    @property
    def not_empty(self) -> float:
        """1 - P(0) before truncation, to full relative accuracy."""
        exponent = self.mean if math.isinf(self.shape) else self.shape * math.log1p(self.mean / self.shape)
        return -math.expm1(-exponent)

    def untruncated(self, n: ArrayLike) -> Floats:
        """Return P(n) before truncation, n from 0."""
        return negative_binomial_pmf(n, self.shape, self.mean)

    def tail(self, n: int) -> float:
        """Return P(N > n) before truncation."""
        if math.isinf(self.shape):
            return float(pdtrc(n, self.mean))
        return float(betainc(n + 1.0, self.shape, self.mean / (self.shape + self.mean)))

    @cached_property
    def _mixture(self) -> tuple[Floats, Floats]:
        if math.isinf(self.shape) or self.mean == 0:  # the Gamma law is a point
            rate = max(self.mean, _NEARLY_ZERO)
            return np.array([rate]), np.array([1 / -math.expm1(-rate) if self.truncated else 1.0])
        return _scaled(gamma_mixture(self.shape, self.mean), self._factor)

    def mixture(self) -> tuple[Floats, Floats]:
        """Return rates and weights with sum w g(rate) = E g(L), over 1 - P(0) if truncated, N ~ Poisson(L).

        For g(L) = E h(N_1, ..., N_K), N_j ~ Poisson(L p_j), |h| <= 1, h = 0 where all counts are 0.

        >>> PoissonSizes(2.0, truncated=False, source="given").mixture()
        (array([2.]), array([1.]))
        """
        return self._mixture

    @cached_property
    def _size_biased(self) -> tuple[Floats, Floats]:
        if self._point:
            return np.zeros(1), np.ones(1)
        if math.isinf(self.shape) or self.mean == 0:
            return _scaled(poisson_size_biased(self.mean), self._factor)
        return _scaled(gamma_size_biased(self.shape, self.mean), self._factor)

    def size_biased_mixture(self) -> tuple[Floats, Floats]:
        """Return rates t and weights h with sum h Poisson(m; t) = f(m + 1), m >= 0: one record is set aside."""
        return self._size_biased

    @property
    def _point(self) -> bool:
        """All mass on size 1: the limit of a zero-truncated distribution whose mean goes to 0."""
        return self.truncated and self.not_empty == 0

    @property
    def _factor(self) -> float:
        return 1 / self.not_empty if self.truncated else 1.0

    def pmf(self, n: ArrayLike) -> Floats:
        """f(n), n from 0; where truncated, P(n) / (1 - P(0)) for n >= 1 and 0 for n = 0.

        >>> PoissonSizes(2.0, truncated=True, source="given").pmf([0, 1, 2]).round(12).tolist()
        [0.0, 0.313035285499, 0.313035285499]
        """
        size = np.asarray(n)
        if self._point:
            return np.asarray(size == 1, dtype=np.float64)
        pmf = self.untruncated(size) * self._factor
        return np.asarray(np.where(size == 0, 0.0, pmf)) if self.truncated else pmf

    def last(self, tail: float = 1e-15) -> int:
        """The smallest n >= 1 with P(N > n) below ``tail``: where a sum over n may stop.

        >>> PoissonSizes(2.0, truncated=False, source="given").last(0.01)
        6
        """
        if not 0 < tail < 1:
            raise InvalidInput("a tail must be a probability", got=tail, allowed="numbers between 0 and 1")
        if self._point:
            return 1
        low, high = 0, 1  # the tail at low is too large, at high it is not
        while not self.tail(high) * self._factor < tail:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.tail(middle) * self._factor < tail else (middle, high)
        return high

    def likely(self, labels: int = 1000) -> tuple[Integers, Floats]:
        """The sizes n >= 1 that a sum over n needs, and what each weighs: f(n), but those below 1e-24 are left out.

        Where that would be more than 100,000 sizes of a Poisson law, of which the rate is then above 10^7, every h-th
        stands for h of them, h = 0.6 sqrt(rate/labels). What is summed is smooth, because a cell of n records has at
        least n/labels of one label: by Poisson's summation formula the error is about exp(-2 pi^2/0.36), below 1e-23.

        >>> sizes, pmf = PoissonSizes(1e6, truncated=True, source="given").likely()
        >>> int(sizes[0]), len(sizes), round(float(pmf.sum()), 12)
        (990276, 17677, 1.0)
        >>> sizes, pmf = PoissonSizes(1e12, truncated=True, source="given").likely(labels=7)
        >>> int(sizes[0]), len(sizes), round(float(pmf.sum()), 12)
        (999990996948, 73, 1.0)
        """
        first, last = self._first_likely(), self.last()
        step = 1
        if last - first >= SIZES_ONE_BY_ONE and math.isinf(self.shape):
            step = max(1, int(0.6 * math.sqrt(last / labels)))
        if (last - first) // step >= MOST_SIZES:
            raise InvalidInput(
                "marginal risks add up over the sizes that a cell may have, and these are too many",
                got=f"sizes up to {last:,}",
                allowed=f"up to {MOST_SIZES:,} sizes",
                fix="fit Poisson sizes, or ask for the other measures",
            )
        sizes = np.arange(first, last + 1, step)
        pmf = self.pmf(sizes) * step
        return sizes[pmf > UNLIKELY], pmf[pmf > UNLIKELY]

    def _first_likely(self) -> int:
        """The first size n >= 1 that is not unlikely, by bisection: f has one peak, and its mean is likely."""
        low, high = 1, max(1, int(self.mean))
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if float(self.pmf(middle)) > UNLIKELY else (middle + 1, high)
        return low

    def describe(self) -> str:
        """One line for people: the parameters, how they came about, and at which limit they lie."""
        values = ", ".join(f"{name} {value:.6g}" for name, value in self.parameters.items())
        how = _SOURCES[self.source] + (f" ({self.prior})" if self.source == "bayes" else "")
        limit = f"; at the limit: {_LIMITS[self.boundary]}" if self.boundary else ""
        kind = "zero-truncated " if self.truncated else ""
        return f"Cell sizes, {how}: {kind}{self.title}, {values}{limit}"

    def to_dict(self) -> dict[str, Any]:
        """The same for machines. JSON has no infinity: an infinite shape is None, and boundary says why."""
        return {
            "name": self.name,
            **{name: value if math.isfinite(value) else None for name, value in self.parameters.items()},
            "truncated": self.truncated,
            "fit": self.source,
            "boundary": self.boundary,
        }


_LIMITS = {
    "rate zero": "rate zero, every cell has one record",
    "shape infinite": "shape infinite, sizes vary no more than Poisson ones",
    "shape zero": f"shape zero, the log-series distribution, taken at shape {size_fits.SMALLEST_SHAPE:g}",
}


@dataclass(frozen=True)
class PoissonSizes(SizeDistribution):
    """N ~ Poisson(rate), given N >= 1 if truncated. Rate 0 is the limit in which every cell has one record.

    >>> print(PoissonSizes(2.43, truncated=False, source="mle").describe())
    Cell sizes, by maximum likelihood: Poisson, rate 2.43
    """

    rate: float
    truncated: bool
    source: str
    name: ClassVar[str] = "poisson"
    title: ClassVar[str] = "Poisson"
    prior: ClassVar[str] = size_fits.POISSON_PRIOR

    def __post_init__(self) -> None:
        _check_source(self.source)
        _check_mean("the rate of Poisson cell sizes", self.rate, self.truncated)

    @property
    def shape(self) -> float:  # type: ignore[override]
        return math.inf

    @property
    def mean(self) -> float:  # type: ignore[override]
        return self.rate

    @property
    def parameters(self) -> dict[str, float]:
        return {"rate": self.rate}


@dataclass(frozen=True)
class NegativeBinomialSizes(SizeDistribution):
    """N ~ Poisson(L), L ~ Gamma(shape, scale = mean / shape), given N >= 1 if truncated.

    ``mean`` is that before truncation. Shape infinity is the Poisson distribution with that mean; shape 0 (kept at
    1e-8, its mean in proportion) is the log-series distribution.

    >>> sizes = NegativeBinomialSizes(1.0, 1.0, truncated=True, source="given")
    >>> sizes.pmf([1, 2, 3]).round(12).tolist()
    [0.5, 0.25, 0.125]
    """

    shape: float
    mean: float
    truncated: bool
    source: str
    name: ClassVar[str] = "negbin"
    title: ClassVar[str] = "negative binomial"
    prior: ClassVar[str] = size_fits.NEGATIVE_BINOMIAL_PRIOR

    def __post_init__(self) -> None:
        _check_source(self.source)
        _check_mean("the mean of negative binomial cell sizes", self.mean, self.truncated)
        if not self.shape >= size_fits.SMALLEST_SHAPE:
            raise InvalidInput(
                "the shape of negative binomial cell sizes is too small",
                got=self.shape,
                allowed=f"numbers from {size_fits.SMALLEST_SHAPE:g}, or infinity",
            )

    @property
    def parameters(self) -> dict[str, float]:
        return {"shape": self.shape, "mean": self.mean}

    @property
    def boundary(self) -> str | None:
        if self.mean > 0 and math.isinf(self.shape):
            return "shape infinite"
        return "shape zero" if self.mean > 0 and self.shape == size_fits.SMALLEST_SHAPE else super().boundary


def fit_sizes(
    profiles: Profiles, family: str = "poisson", method: str = "mle", truncated: bool = True
) -> SizeDistribution:
    """Fit a distribution to the sizes of the non-empty cells.

    Poisson: ``mle`` and ``moments`` coincide, as the mean is sufficient: rate = mean size, or, truncated, the rate with
    rate / (1 - e^-rate) = mean size. ``bayes``: the posterior mean under the prior density rate^(-1/2).
    Negative binomial: ``mle`` by its profile likelihood in the shape; ``moments`` from the mean and variance (n in the
    denominator) or, truncated, from the mean and E n^2 / E n = 1 + scale (shape + 1); ``bayes``: the posterior means of
    shape and mean, both log-uniform over a range. All are estimates; limits (`SizeDistribution.boundary`) are answers.
    Source: maths.md, section 5; the plain fits are those that the paper reports.

    >>> profiles = Profiles.from_cells([[1], [1], [2], [4]], n_levels=1)
    >>> fit_sizes(profiles, truncated=False)
    PoissonSizes(rate=2.0, truncated=False, source='mle')
    >>> round(fit_sizes(profiles).parameters["rate"], 6)
    1.593624
    """
    require_word("family of cell sizes", family, FAMILIES)
    require_word("way to fit cell sizes", method, METHODS)
    if profiles.n_cells == 0:
        raise InvalidInput("cell sizes cannot be fitted to a table without records")
    histogram = size_fits.Histogram(*(values.astype(np.float64) for values in profiles.sizes))
    if family == "poisson":
        rate = size_fits.poisson_bayes if method == "bayes" else size_fits.poisson_mean
        return PoissonSizes(rate(histogram, truncated), truncated, method)
    fit = {
        "mle": size_fits.negative_binomial_mle,
        "moments": size_fits.negative_binomial_moments,
        "bayes": size_fits.negative_binomial_bayes,
    }[method]
    shape, mean = fit(histogram, truncated)
    return NegativeBinomialSizes(shape, mean, truncated, method)


def _check_source(source: str) -> None:
    if source not in _SOURCES:
        raise UnknownName("unknown source of a size distribution", got=source, allowed=", ".join(_SOURCES))


def _check_mean(what: str, mean: float, truncated: bool) -> None:
    if not (math.isfinite(mean) and (mean > 0 or (truncated and mean == 0))):
        allowed = "numbers from 0" if truncated else "numbers above 0"
        raise InvalidInput(f"{what} must be finite and positive", got=mean, allowed=allowed)


def _scaled(nodes: tuple[Floats, Floats], factor: float) -> tuple[Floats, Floats]:
    rates, weights = nodes[0], nodes[1] * factor
    for values in (rates, weights):
        values.flags.writeable = False  # kept and handed out again
    return rates, weights
