"""The counts that noise is added to, as each measure defines them: the table's own, or counts drawn anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.risk.measures import MEASURES, NEED_PRIOR, NEED_SIZES, Dirichlet, SizeDistribution
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.words import require_word


@dataclass(frozen=True, eq=False)
class CountLaw:
    """Where the counts of a cell come from, under one measure.

    local: they are what they are. expected: n records draw labels anew in the cell's own proportions. shrinkage: n
    records draw labels in proportions that are drawn from the Dirichlet prior. marginal and marginal_shrinkage: the
    same with a number of records that is drawn from the distribution of cell sizes.

    >>> law = CountLaw("expected", None, None)
    >>> drawn = law.draw(np.array([[3.0, 1.0], [1.0, 0.0]]), 2, np.random.default_rng(0))
    >>> drawn.shape, drawn.sum(axis=0).tolist()  # (levels, releases, cells); sizes stay
    ((2, 2, 2), [[4.0, 1.0], [4.0, 1.0]])
    """

    measure: str
    prior: Dirichlet | None
    sizes: SizeDistribution | None

    def __post_init__(self) -> None:
        require_word("measure", self.measure, tuple(MEASURES))
        if (self.measure in NEED_PRIOR and self.prior is None) or (self.measure in NEED_SIZES and self.sizes is None):
            raise InvalidInput(f"the {self.measure} measure needs a prior")

    @property
    def fixed(self) -> bool:
        """Whether every release is of the same counts."""
        return self.measure == "local"

    def draw(self, truth: Floats, releases: int, generator: np.random.Generator) -> Floats:
        """Counts for some releases, (levels, releases, cells), from the table's own: (levels, cells).

        One release stands for all where counts are fixed.
        """
        if self.fixed:
            return truth[:, None, :]
        own = truth.sum(axis=0)
        if self.measure in NEED_SIZES:
            size = self._draw_sizes(generator, (releases, len(own)))
        else:
            size = np.broadcast_to(own.astype(np.int64), (releases, len(own)))
        if self.prior is not None and self.measure in NEED_PRIOR:
            return draw_from_prior(self.prior, size, generator)
        return _draw_labels(size, (truth / own).T, generator)

    @cached_property
    def _cumulative(self) -> Floats:
        """P(N <= n) for n from 0 to where the rest is below 1e-15."""
        if self.sizes is None:
            raise InvalidInput(f"the {self.measure} measure needs a distribution of cell sizes")
        cumulative = np.cumsum(self.sizes.pmf(np.arange(self.sizes.last() + 1)))
        return np.asarray(cumulative / cumulative[-1])

    def _draw_sizes(self, generator: np.random.Generator, shape: tuple[int, int]) -> Integers:
        return np.searchsorted(self._cumulative, generator.random(shape), side="right").astype(np.int64)


def draw_from_prior(prior: Dirichlet, size: Integers, generator: np.random.Generator) -> Floats:
    """Dirichlet-multinomial counts of cells of these sizes: (levels, releases, cells).

    Labels are settled one after the other: of the records still open, label k takes a binomial number, its probability
    drawn from a Beta(alpha_k, alpha of the labels after it). So no small alpha loses its digits in a sum. At
    concentration 0 one label takes all records; at infinity probabilities are the prior's mean.

    >>> none = Dirichlet((0.5, 0.5), 0.0, "mle")
    >>> draw_from_prior(none, np.array([[5, 5, 5]]), np.random.default_rng(1)).tolist()
    [[[5.0, 5.0, 0.0]], [[0.0, 0.0, 5.0]]]
    """
    mean = np.asarray(prior.mean)
    if math.isinf(prior.concentration):
        return _draw_labels(size, mean / mean.sum(), generator)
    if prior.concentration == 0:
        return _draw_labels(np.ones_like(size), mean / mean.sum(), generator) * size
    alpha = np.asarray(prior.alpha)
    counts = np.zeros((len(alpha), *size.shape))
    possible = np.flatnonzero(alpha > 0)
    left = size
    for place, level in enumerate(possible[:-1]):
        after = float(alpha[possible[place + 1 :]].sum())
        taken = generator.binomial(left, generator.beta(alpha[level], after, size.shape))
        counts[level] = taken
        left = left - taken
    counts[possible[-1]] = left
    return counts


def _draw_labels(size: Integers, shares: Floats, generator: np.random.Generator) -> Floats:
    """Multinomial counts: (levels, releases, cells); shares are (cells, levels), or (levels) for all cells alike."""
    drawn = generator.multinomial(size, shares)
    return np.ascontiguousarray(np.moveaxis(drawn, -1, 0), dtype=np.float64)
