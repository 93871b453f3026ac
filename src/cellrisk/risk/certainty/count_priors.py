"""The attacker's prior: what is believed of the counts of a group before the release is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from cellrisk.counts.profiles import LevelCounts
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_number, read_numbers
from cellrisk.system.formatting import number_of

LEAST_SHAPE, LARGEST_SHAPE = 1e-9, 1e6
"""The shape of all categories together: below, no group holds two categories; above, counts are Poisson."""
LEAST_LOG_ODDS, LARGEST_LOG_ODDS = -30.0, 27.0
"""The logarithm of the odds of theta: to within 1e-12 of 0 and 1."""
FAR_COUNT = 1e5
"""Past this many, and this many times its shape a, G(a + n)/n! is (n + a/2)^(a - 1) to about 1e-9."""


@dataclass(frozen=True)
class CategoryPrior:
    """The prior of the count of one category: n has probability G(a + n)/(G(a) n!) (1 - t)^a t^n."""

    shape: float
    theta: float

    def log_pmf(self, counts: Any) -> Floats:
        """Return the log probability of each count, but for the constant a log(1 - t); the shape is above 0."""
        shape, counts = self.shape, np.asarray(counts, dtype=np.float64)
        rising = special.gammaln(shape + counts) - special.gammaln(counts + 1.0)
        if shape < 0.01 * FAR_COUNT:  # of large counts the difference would be lost in rounding
            with np.errstate(divide="ignore", invalid="ignore"):
                far = (shape - 1.0) * np.log(counts + 0.5 * shape)
            rising = np.where(counts > FAR_COUNT * max(1.0, shape), far, rising)
        return np.asarray(rising - special.gammaln(shape) + counts * math.log(self.theta))

    def log_concave(self, counts: Any) -> Floats:
        """Return a concave function that `log_pmf` follows from the count 1 on, but for a factor of at most n."""
        return self.log_pmf(counts) if self.shape > 1.0 else np.asarray(np.multiply(counts, math.log(self.theta)))

    def last_likely(self, far: float) -> float:
        """Return a count that is exceeded with a probability below e^-far."""
        mean, rest = self.shape * self.theta / (1.0 - self.theta), -math.log(self.theta)
        return mean + math.sqrt(2.0 * far * mean / (1.0 - self.theta)) + far / rest + 1.0


@dataclass(frozen=True)
class NegativeBinomial:
    """Counts of a group are independent; that of category k is n with probability G(a_k + n)/(G(a_k) n!) (1 - t)^a_k
    t^n.

    t is ``theta``; nobody is believed to have a category of shape 0. Groups then have sizes of the same law with the
    shape a., and the shares of the categories in a group follow a Dirichlet(a), whatever its size.
    """

    shapes: tuple[float, ...]
    theta: float
    fitted: bool = False

    def __post_init__(self) -> None:
        if not all(math.isfinite(shape) and shape >= 0 for shape in self.shapes) or not any(self.shapes):
            what = "the shapes of a belief must be numbers from 0, and one of them above 0"
            raise InvalidInput(what, allowed="for example 0.4,0.15/0.9")
        if not 0 < self.theta < 1:
            raise InvalidInput("theta of a belief must lie between 0 and 1, both excluded", got=self.theta)

    @property
    def name(self) -> str:
        return "negbin" if self.fitted else "given"

    @property
    def by_category(self) -> tuple[CategoryPrior, ...]:
        """The prior of the count of each category."""
        return tuple(CategoryPrior(shape, self.theta) for shape in self.shapes)

    def describe(self) -> str:
        """Return the prior in words."""
        if self.fitted:
            total = sum(self.shapes)
            return f"negative binomial counts fitted to the table (shapes {total:.4g} in all, theta {self.theta:.4g})"
        return f"negative binomial counts as given (theta {self.theta:.4g})"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "shapes": list(self.shapes), "theta": self.theta}


@dataclass(frozen=True)
class EmpiricalPrior:
    """The attacker knows how many groups have each vector of counts, and not which groups.

    Calibrated on this table by construction. An attacker with another prior may infer more people correctly: the number
    inferred with a certainty need not rise with what is known.
    """

    name = "table"

    def describe(self) -> str:
        """Return the prior in words."""
        return "the very counts of the table, without knowing which cell has which"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name}


CountPrior = NegativeBinomial | EmpiricalPrior


def read_belief(given: str | CountPrior, levels: LevelCounts, n_cells: int) -> CountPrior:
    """Return a prior as a user gives it: "negbin", "table", or shapes, one a category, and theta: "0.4,0.15/0.9".

    >>> read_belief("0.4,0.15/0.9", LevelCounts.from_cells([[2, 1]], ["a", "b"]), n_cells=1)
    NegativeBinomial(shapes=(0.4, 0.15), theta=0.9, fitted=False)
    """
    if isinstance(given, EmpiricalPrior) or (isinstance(given, str) and given == "table"):
        return EmpiricalPrior()
    if isinstance(given, str) and given == "negbin":
        return fit_negative_binomial(levels, n_cells)
    prior = given if isinstance(given, NegativeBinomial) else _parse(given)
    if len(prior.shapes) != len(levels.labels):
        got = f"{number_of(len(prior.shapes), 'shape')}, {number_of(len(levels.labels), 'label')}"
        raise InvalidInput("a belief needs one shape for each label", got=got)
    return prior


def check_belief(given: str) -> None:
    """Refuse what cannot be a prior of any table."""
    if given not in ("negbin", "table"):
        _parse(given)


def _parse(given: Any) -> NegativeBinomial:
    allowed = "negbin, table, or shapes and theta, such as 0.4,0.15/0.9"
    if not isinstance(given, str):
        raise InvalidInput("a belief is a word, or shapes and theta", got=type(given).__name__, allowed=allowed)
    shapes, slash, theta = given.partition("/")
    if not slash:
        raise InvalidInput("unknown belief", got=repr(given[:40]), allowed=allowed)
    name = "each number of a belief"
    return NegativeBinomial(tuple(read_numbers(shapes, ",", allowed, name)), read_number(theta, allowed, name))


def fit_negative_binomial(levels: LevelCounts, n_cells: int) -> NegativeBinomial:
    """Return the negative binomial prior of the largest likelihood, with shapes A p_k, p the overall shares.

    A and theta maximise prod_k NB(n_k; A p_k, theta) / (1 - (1 - theta)^A) over the groups that hold anybody: only
    those are seen. For a fixed A it is an exponential family in the total, so theta solves
    mean size = A t/(1 - t) / (1 - (1 - t)^A).
    """
    from scipy.optimize import brentq, minimize_scalar

    records = float(levels.totals.sum())

    def solve_odds(shape: float) -> float:
        """Return the log(theta/(1 - theta)) at which non-empty groups have the mean size."""

        def excess(log_odds: float) -> float:
            seen = -math.expm1(-shape * math.log1p(math.exp(log_odds)))
            return math.log(shape / seen) + log_odds - math.log(records / n_cells)

        if excess(LEAST_LOG_ODDS) >= 0:  # every group holds one person: sizes do not vary
            return LEAST_LOG_ODDS
        if excess(LARGEST_LOG_ODDS) <= 0:
            return LARGEST_LOG_ODDS
        return float(brentq(excess, LEAST_LOG_ODDS, LARGEST_LOG_ODDS, xtol=1e-13))

    def loss(log_shape: float) -> float:
        """Return minus the largest log likelihood of one A."""
        shape = math.exp(log_shape)
        log_odds = solve_odds(shape)
        log_theta, log_rest = -math.log1p(math.exp(-log_odds)), -math.log1p(math.exp(log_odds))
        shapes = shape * levels.shares[levels.level]
        rising = float(levels.cells @ (special.gammaln(shapes + levels.count) - special.gammaln(shapes)))
        log_seen = math.log(-math.expm1(shape * log_rest))
        return -(rising + records * log_theta + n_cells * (shape * log_rest - log_seen))

    grid = np.linspace(math.log(LEAST_SHAPE), math.log(LARGEST_SHAPE), 61)
    values = [loss(float(point)) for point in grid]
    best = int(np.argmin(values))
    ends = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
    refined = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-10})
    shape = math.exp(float(refined.x) if float(refined.fun) <= values[best] else float(grid[best]))
    theta = math.exp(-math.log1p(math.exp(-solve_odds(shape))))
    return NegativeBinomial(tuple((shape * levels.shares).tolist()), theta, fitted=True)
