"""Attackers who read simulated releases, some cells of some releases at a time.

Nothing here uses a formula of the exact figures. `CellAttacks` reads a release with a person's record and the same
release, with the same noise, without it. `InformedAttacker` applies Bayes' rule to each release.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.publish.scenarios import count_scenarios
from cellrisk.publish.simulation.drawing import Chunk
from cellrisk.risk.certainty import WIDEST, CountPrior, NegativeBinomial
from cellrisk.risk.certainty.empirical import posterior_shares
from cellrisk.risk.certainty.posterior import posterior_means
from cellrisk.system.arrays import Floats, Integers

TIE = 1e-12
"""Shares that fall short of a certainty by no more than this have it."""
TOO_LARGE = "the counts, the noise or the number of different cells are too large"


class CellAttacks:
    """The homogeneity, plurality and proportional attacks: sums over cells, one number a release.

    >>> counts = np.array([[[3.0, 2.0]], [[1.0, 0.0]]])  # the cells (3, 1) and (2, 0)
    >>> released = np.array([[[4.0, 1.0]], [[0.0, 1.0]]])  # shown as (4, 0) and (1, 1)
    >>> attacks = CellAttacks(1)
    >>> attacks.read(Chunk(slice(0, 1), counts, released, np.maximum(released - 1, 0)))
    >>> [float(attacks.sums[name, "tight", "records"][0]) for name in ("homogeneity", "plurality", "proportional")]
    [3.0, 4.0, 4.0]
    >>> attacks.caused.tolist()  # (0, 1) would be shown without one of the two records of the second cell
    [0.0]
    """

    def __init__(self, releases: int) -> None:
        self.sums: dict[tuple[str, str, str], Floats] = defaultdict(lambda: np.zeros(releases))
        """For each attack, form and weighting: cells or people named correctly."""
        self.exposed: Integers = np.zeros(releases, np.int64)
        """People whose value the homogeneity attack outputs correctly."""
        self.scenarios: Integers = np.zeros((8, releases), np.int64)
        """(8, releases): cells in each scenario."""
        self.caused: Floats = np.zeros(releases)
        """People revealed by homogeneity with their record, less those revealed without it."""
        self.moved: Floats = np.zeros(releases)
        """The sum of all differences between true and released counts."""

    def read(self, chunk: Chunk) -> None:
        """Add what the attacks get right in a chunk."""
        counts, released, rows, sizes = chunk.counts, chunk.released, chunk.releases, chunk.counts.sum(axis=0)
        n_shown = (released > 0).sum(axis=0)
        correct = ((released > 0) * counts).sum(axis=0) * (n_shown == 1)
        right = correct > 0
        self.sums["homogeneity", "exact", "uniform"][rows] += np.count_nonzero(right, axis=1)
        self.sums["homogeneity", "exact", "records"][rows] += (right * sizes).sum(axis=1)
        named = {
            "homogeneity": correct,
            "plurality": _name_largest(released, counts),
            "proportional": _name_by_shares(released, counts),
        }
        for attack, people in named.items():
            self.sums[attack, "tight", "uniform"][rows] += (people / sizes).sum(axis=1)
            self.sums[attack, "tight", "records"][rows] += people.sum(axis=1)
        self.exposed[rows] += np.rint(correct.sum(axis=1)).astype(np.int64)
        self.scenarios[:, rows] += count_scenarios(n_shown, right, (counts > 0).sum(axis=0) == 1)
        self.moved[rows] += np.abs(released - counts).sum(axis=(0, 2))
        if chunk.lessened is not None:
            self.caused[rows] += delete_one(released, chunk.lessened, counts)


def delete_one(released: Floats, lessened: Floats, counts: Floats) -> Floats:
    """People revealed by homogeneity with their record, less those revealed without it, in each release.

    >>> counts = np.array([[[1.0, 2.0]], [[0.0, 3.0]]])  # the cells (1, 0) and (2, 3)
    >>> released = np.array([[[1.0, 4.0]], [[0.0, 0.0]]])  # shown as (1, 0) and (4, 0)
    >>> delete_one(released, np.maximum(released - 1.0, 0.0), counts).tolist()
    [1.0]
    """
    shown, less = released > 0, lessened > 0
    n_shown = shown.sum(axis=0)
    with_it, without = shown & (n_shown == 1), less & (n_shown - shown + less == 1)
    return np.asarray((counts * (with_it.astype(np.float64) - without)).sum(axis=(0, 2)))


def _name_largest(released: Floats, counts: Floats) -> Floats:
    """Records named by the largest released count; those of tied labels are averaged."""
    largest = released.max(axis=0)
    tied = released == largest
    return np.asarray((tied * counts).sum(axis=0) * (largest > 0) / tied.sum(axis=0))


def _name_by_shares(released: Floats, counts: Floats) -> Floats:
    """Records named on average by a guess in proportion to the released counts."""
    total = released.sum(axis=0)
    return np.asarray((released * counts).sum(axis=0) / np.where(total > 0, total, 1.0))


@dataclass(eq=False)
class InformedAttacker:
    """Knows the channel, holds a prior, and names what has at least a given certainty by Bayes' rule."""

    channel: CountChannel
    releases: int
    certainties: tuple[float, ...]
    belief: CountPrior | None
    vectors: LabelledCounts | None
    unknown: str | None = None
    """Why this attacker is left out."""
    right: Floats = field(init=False)
    """(certainties, releases): people whose own value is named."""
    named: Floats = field(init=False)
    """(certainties, releases): people for whom some value of their cell is named, theirs or not."""
    _means: dict[int, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    """For each label, the posterior means of the released values so far."""

    def __post_init__(self) -> None:
        self.right, self.named = np.zeros((2, len(self.certainties), self.releases))
        if self.unknown is None and self.channel.radius > WIDEST:
            self.unknown = TOO_LARGE

    def read(self, chunk: Chunk) -> None:
        """Add the people whom this attacker names in a chunk."""
        if self.unknown:
            return
        try:
            shares = self._posterior_shares(chunk.released.astype(np.int64))
        except InvalidInput:
            self.unknown = TOO_LARGE
            return
        sizes = chunk.counts.sum(axis=0)
        for place, certainty in enumerate(self.certainties):
            sure = shares >= certainty - TIE
            self.right[place, chunk.releases] += (sure * chunk.counts).sum(axis=(0, 2))
            self.named[place, chunk.releases] += (sure.any(axis=0) * sizes).sum(axis=1)

    def _posterior_shares(self, released: Integers) -> Floats:
        """How likely each label is a person's own: (levels, releases, cells)."""
        if isinstance(self.belief, NegativeBinomial):
            means = np.stack([self.posterior_means(label, shown) for label, shown in enumerate(released)])
            total = means.sum(axis=0)
            return np.asarray(means / np.where(total > 0, total, 1.0))
        if self.vectors is None:
            raise InvalidInput("the belief 'table' needs the counts of the table")
        seen, place = np.unique(released.reshape(len(released), -1), axis=1, return_inverse=True)
        shares = posterior_shares(self.vectors, self.channel, seen.T)
        return np.asarray(shares[place.reshape(-1)].T.reshape(released.shape))

    def posterior_means(self, label: int, shown: Integers) -> Floats:
        """Return the posterior mean of a label's count behind each released value."""
        values, place = np.unique(shown, return_inverse=True)
        known = self._means[label]
        new = np.array([value for value in values.tolist() if value not in known], np.int64)
        if len(new) and isinstance(self.belief, NegativeBinomial):
            means = posterior_means(self.belief.by_category[label], self.channel, new)
            known.update(zip(new.tolist(), means.tolist(), strict=True))
        return np.array([known[value] for value in values.tolist()])[place.reshape(shown.shape)]


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean and standard error over releases; exact if the values do not vary."""
    if values.min() == values.max():
        return float(values[0]), 0.0
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
