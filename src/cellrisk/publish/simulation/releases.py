"""Releases that are only simulated: how counts are drawn, what noise makes of them, and what attacks read in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.simulation.attacks import Key, Outcomes, attack_cells
from cellrisk.risk.measures import MEASURES, NEED_PRIOR, NEED_SIZES, Dirichlet, SizeDistribution
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.progress import StepCounter
from cellrisk.system.words import require_word

GLIMPSED_CELLS = 20_000
"""The seed of a glimpse's sample of cells, which is the same whatever the noise."""
COUNTS_AT_ONCE = 1 << 16
"""Counts that are drawn together: part of the order that a seed stands for, so never to be changed."""
Post = Callable[[Floats], Floats]
"""What is done to releases before they are published: (releases, cells, levels) to the same."""


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


class Publisher(Protocol):
    """How releases are made from counts."""

    @property
    def size(self) -> int | None:
        """The counts that one release needs at once; None if cells can be published a few at a time."""

    def publish(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, Floats | None]:
        """Some releases of cells, (levels, releases, cells); and, if asked for and known, of each count what would be
        released with one record less and the same noise. ``counts`` has the same shape, or one release for all."""


class CellReader(Protocol):
    """An attacker who reads releases part by part."""

    def read(self, some: slice, counts: Floats, released: Floats, lessened: Floats) -> None:
        """Read some cells of some releases."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Releases with the noise of a mechanism, rounded and zero below its threshold; then ``post``, if there is one."""

    mechanism: Mechanism
    post: Post | None
    size: int | None

    def publish(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, Floats | None]:
        noisy = self.mechanism.noise.sample(generator, (len(counts), releases, counts.shape[2]))
        noisy += counts
        if self.post is None:
            lessened = round_counts(noisy - 1.0, self.mechanism.threshold) if lessen else None
            return round_counts(noisy, self.mechanism.threshold), lessened
        released = np.ascontiguousarray(np.moveaxis(round_counts(noisy, self.mechanism.threshold), 0, 2))
        return np.ascontiguousarray(np.moveaxis(apply_post(self.post, released), 2, 0)), None


@dataclass(frozen=True, eq=False)
class Releases:
    """Releases of one table, drawn and attacked part by part."""

    cells: Cells
    publisher: Publisher
    releases: int

    @cached_property
    def _pieces(self) -> list[slice]:
        """The cells that are drawn together: all of them, but for a table too large for that."""
        step = max(1, COUNTS_AT_ONCE // len(self.cells.levels)) if self.publisher.size is None else self.cells.n_cells
        return [slice(start, min(start + step, self.cells.n_cells)) for start in range(0, self.cells.n_cells, step)]

    @cached_property
    def _chunks(self) -> list[slice]:
        """The releases that are drawn together: at least one."""
        step = max(1, COUNTS_AT_ONCE // (self.publisher.size or self.cells.n_cells * len(self.cells.levels)))
        return [slice(start, min(start + step, self.releases)) for start in range(0, self.releases, step)]

    @property
    def steps(self) -> int:
        """How many steps `attack` reports."""
        return len(self._chunks) * len(self._pieces)

    def attack(
        self, law: CountLaw, generator: np.random.Generator, report: StepCounter, reader: CellReader | None = None
    ) -> Outcomes:
        """What the attackers find, one number a release: shares of the cells, and of the records.

        ``reader`` reads the same releases, if what they would be with one record less is known.
        """
        shares: dict[Key, Floats] = {}
        exposed = np.zeros(self.releases, np.int64)
        scenarios = np.zeros((8, self.releases), np.int64)
        for some in self._chunks:
            for rows in self._pieces:
                truth = self._truth if len(self._pieces) == 1 else self._counts(rows)
                counts = law.draw(truth, some.stop - some.start, generator)
                released, lessened = self.publisher.publish(
                    counts, some.stop - some.start, generator, reader is not None
                )
                if reader is not None and lessened is not None:
                    reader.read(some, counts, released, lessened)
                found = attack_cells(released, counts, truth.sum(axis=0), every_attack=law.fixed)
                for key, values in found.shares.items():
                    shares.setdefault(key, np.zeros(self.releases))[some] += values
                exposed[some] += found.exposed
                scenarios[:, some] += found.scenarios
                report.add(1)
        total = {"uniform": self.cells.n_cells, "records": int(self.cells.sizes.sum())}
        return Outcomes({key: values / total[key[2]] for key, values in shares.items()}, exposed, scenarios)

    @cached_property
    def _truth(self) -> Floats:
        return self._counts(slice(0, self.cells.n_cells))

    def _counts(self, rows: slice) -> Floats:
        """The table's counts in some cells: (levels, cells)."""
        counts = np.zeros((len(self.cells.levels), rows.stop - rows.start))
        some: Integers = np.arange(self.cells.offsets[rows.start], self.cells.offsets[rows.stop])
        counts[self.cells.level[some], self.cells.cell[some] - rows.start] = self.cells.count[some]
        return counts


def round_counts(noisy: Floats, threshold: float) -> Floats:
    """Noisy counts as they are published, in place: rounded, and zero below the threshold.

    >>> round_counts(np.array([-3.2, 0.4, 0.6, 2.3]), 0.5).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    vanished = noisy < threshold
    np.rint(noisy, out=noisy)
    noisy[vanished] = 0.0
    return noisy


def apply_post(post: Post, released: Floats) -> Floats:
    """Post-processed releases, refused where they are not non-negative numbers in the shape of the releases.

    >>> apply_post(np.sqrt, np.array([[[4.0, 0.0]]])).tolist()
    [[[2.0, 0.0]]]
    """
    shape = released.shape
    returned = post(released)
    try:
        published = np.asarray(returned)
    except ValueError:  # lists of unequal lengths
        raise InvalidInput("post must return an array", got=type(returned).__name__) from None
    if published.dtype.kind not in "biuf":
        raise InvalidInput("post must return numbers", got=f"an array of type {published.dtype}")
    if published.shape != shape:
        raise InvalidInput(
            "post must return an array of the shape it was given: releases, cells, levels",
            got=published.shape,
            allowed=f"{shape}",
        )
    wrong = np.count_nonzero(~(np.isfinite(published) & (published >= 0)))
    if wrong:
        raise InvalidInput(
            "post must return counts that are finite and not negative",
            got=f"{wrong:,} of {published.size:,} that are not",
            fix="set negative counts to zero in post",
        )
    return published.astype(np.float64)


def glimpse(cells: Cells, mechanism: Mechanism, number: int, seed: int) -> Iterator[dict[str, Any]]:
    """What would one release show of a few cells? Their keys, which are raw data, counts and numbers of scenarios.

    ``seed`` is that of the noise.

    >>> from cellrisk import Laplace
    >>> from cellrisk.counts.cells import Domain
    >>> codes, cell, level = np.array([[0], [1]]), np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> cells = Cells("job", ("cook", "smith"), (Domain("sex", ("f", "m")),), codes, cell, level, np.array([1, 2, 3]))
    >>> found = glimpse(cells, Laplace(epsilon=100.0), number=5, seed=0)
    >>> sorted((each["key"]["sex"], each["after"], each["scenario"]) for each in found)
    [('f', [1, 2], 5), ('m', [0, 3], 1)]
    """
    chosen = np.random.default_rng(GLIMPSED_CELLS).permutation(cells.n_cells)[:number]
    counts = np.zeros((len(cells.levels), 1, len(chosen)))
    for place, cell in enumerate(chosen.tolist()):
        held = slice(cells.offsets[cell], cells.offsets[cell + 1])
        counts[cells.level[held], 0, place] = cells.count[held]
    noise = mechanism.noise.sample(np.random.default_rng(seed), counts.shape)
    released = round_counts(counts + noise, mechanism.threshold)
    for place, cell in enumerate(chosen.tolist()):
        before, after = counts[:, :, place : place + 1], released[:, :, place : place + 1]
        found = attack_cells(after, before, before.sum(axis=0)[0], every_attack=False).scenarios
        yield {
            "key": cells.key(cell),
            "before": before[:, 0, 0].astype(np.int64).tolist(),
            "after": np.minimum(after[:, 0, 0], 2.0**53).astype(np.int64).tolist(),
            "scenario": int(np.argmax(found[:, 0])) + 1,
        }
