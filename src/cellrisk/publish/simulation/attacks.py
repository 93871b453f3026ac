"""What attackers read in simulated releases: cell by cell, and second opinions on the figures to decide by.

Nothing here uses a formula of the exact figures. The delete-one attacker reads a release with a person's record and the
same release, with the same noise, without it. The Bayes attacker sums his belief times the probability of what is
released over every count, one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.scenarios import count_scenarios
from cellrisk.risk.certainty import Belief, NegativeBinomial
from cellrisk.system.arrays import Floats, Integers

Key = tuple[str, str, str]
"""Attack, form and weights."""
TIE = 1e-12
"""Shares that fall short of a certainty by no more than this have it."""
TERMS_AT_ONCE = 1 << 22
MOST_TERMS = 400_000_000
"""Terms that the Bayes attacker sums in all; past them he is left out."""
TAIL = 1e-20
"""Noise that goes farther with less probability than this is left out."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What the attackers got right in each release: sums over cells, so that those of parts of a table add up."""

    shares: dict[Key, Floats]
    """One number a release, for each attack, form and weighting."""
    exposed: Integers
    """People whose value the homogeneity attack reads off correctly."""
    scenarios: Integers
    """(8, releases): cells in each scenario."""


def attack_cells(released: Floats, counts: Floats, own_sizes: Floats, every_attack: bool) -> Outcomes:
    """What do the attackers get right in these cells?

    ``released`` is (levels, releases, cells), ``counts`` the counts behind it, in the same shape or with one release
    for all; ``own_sizes`` the records of the table's cells, by which cells are weighted, whatever their drawn size. A
    cell that was drawn empty has no risk. ``every_attack``: else the homogeneity attack alone.

    >>> counts = np.array([[[3.0, 2.0]], [[1.0, 0.0]]])  # the cells (3, 1) and (2, 0)
    >>> released = np.array([[[4.0, 1.0]], [[0.0, 1.0]]])  # shown as (4, 0) and (1, 1)
    >>> found = attack_cells(released, counts, np.array([4.0, 2.0]), every_attack=True)
    >>> [float(found.shares[attack, "tight", "records"][0]) for attack in ("homogeneity", "plurality", "proportional")]
    [3.0, 4.0, 4.0]
    """
    drawn_sizes = counts.sum(axis=0)
    sizes = np.maximum(drawn_sizes, 1.0)
    n_shown, named = _read_homogeneous(released, counts)
    right = named > 0
    shares = {
        ("homogeneity", "exact", "uniform"): np.count_nonzero(right, axis=1).astype(np.float64),
        ("homogeneity", "exact", "records"): (right * own_sizes).sum(axis=1),
    }
    attacks = {"homogeneity": named}
    if every_attack:
        attacks |= {"plurality": _read_largest(released, counts), "proportional": _read_shares(released, counts)}
    same_sizes = np.array_equal(drawn_sizes, np.broadcast_to(own_sizes, drawn_sizes.shape))
    for attack, correct in attacks.items():
        share = correct / sizes
        shares[attack, "tight", "uniform"] = share.sum(axis=1)
        shares[attack, "tight", "records"] = (correct if same_sizes else share * own_sizes).sum(axis=1)
    homogeneous = (counts > 0).sum(axis=0) == 1
    return Outcomes(shares, np.rint(named.sum(axis=1)).astype(np.int64), count_scenarios(n_shown, right, homogeneous))


def _read_homogeneous(released: Floats, counts: Floats) -> tuple[Integers, Floats]:
    """How many labels each cell shows, and the records of the label that is shown alone; 0 where none is."""
    shown = released > 0
    n_shown: Integers = shown.sum(axis=0)
    return n_shown, (shown * counts).sum(axis=0) * (n_shown == 1)


def _read_largest(released: Floats, counts: Floats) -> Floats:
    """Records named by the largest released count; those of tied labels are averaged."""
    largest = released.max(axis=0)
    tied = released == largest
    return np.asarray((tied * counts).sum(axis=0) * (largest > 0) / tied.sum(axis=0))


def _read_shares(released: Floats, counts: Floats) -> Floats:
    """Records named on average by a guess in proportion to the released counts."""
    total = released.sum(axis=0)
    return np.asarray((released * counts).sum(axis=0) / np.where(total > 0, total, 1.0))


@dataclass(frozen=True)
class FigureEstimate:
    """One simulated figure, in people: the mean over releases, and its standard error."""

    figure: str
    """"caused", "right" or "named"."""
    certainty: float | None
    mean: float
    standard_error: float

    @staticmethod
    def of(figure: str, certainty: float | None, numbers: Floats) -> FigureEstimate:
        """The estimate from the number of people in each release."""
        return FigureEstimate(figure, certainty, *mean_and_error(numbers))


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean and standard error; exact where the values do not vary."""
    if values.min() == values.max():
        return float(values[0]), 0.0
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


class TooManyTerms(Exception):
    """The Bayes attacker would not come to an end."""


@dataclass(eq=False)
class FigureAttackers:
    """Both attackers; they read releases part by part and count people in each release."""

    mechanism: Mechanism
    releases: int
    certainties: tuple[float, ...]
    belief: Belief | None
    vectors: LabelledCounts | None
    unknown: str | None = None
    """Why there is no Bayes attacker."""
    caused: Floats = field(init=False)
    right: Floats = field(init=False)
    named: Floats = field(init=False)
    _behind: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    """For each label, the released values, ascending, and the people expected behind them."""
    _terms: int = 0

    def __post_init__(self) -> None:
        self.caused = np.zeros(self.releases)
        self.right, self.named = (np.zeros((len(self.certainties), self.releases)) for _ in range(2))

    def read(self, some: slice, counts: Floats, released: Floats, lessened: Floats) -> None:
        """Reads some cells of some releases: (levels, releases, cells).

        ``lessened`` is what would be released of each count with one record less and the same noise.
        """
        self.caused[some] += delete_one(released, lessened, counts)
        if self.unknown is not None or self.belief is None:
            return
        try:
            shares = self._shares(released)
        except TooManyTerms:
            self.unknown = "the counts and the noise are too large to sum over every count"
            return
        sizes = counts.sum(axis=0)
        for place, certainty in enumerate(self.certainties):
            sure = shares >= certainty - TIE
            self.right[place, some] += (sure * counts).sum(axis=(0, 2))
            self.named[place, some] += (sure.any(axis=0) * sizes).sum(axis=1)

    def estimates(self) -> tuple[FigureEstimate, ...]:
        """What both found."""
        found = [FigureEstimate.of("caused", None, self.caused)]
        if self.unknown is None and self.belief is not None:
            for place, certainty in enumerate(self.certainties):
                found.append(FigureEstimate.of("right", certainty, self.right[place]))
                found.append(FigureEstimate.of("named", certainty, self.named[place]))
        return tuple(found)

    def _shares(self, released: Floats) -> Floats:
        """How likely the attacker takes each label to be a person's own: (levels, releases, cells)."""
        if isinstance(self.belief, NegativeBinomial):
            labels = enumerate(zip(self.belief.shapes, released, strict=True))
            weights = np.stack([self._expect(label, shape, shown) for label, (shape, shown) in labels])
        else:
            weights = self._weigh_by_table(released)
        total = weights.sum(axis=0)
        return np.asarray(weights / np.where(total > 0, total, 1.0))

    def _expect(self, label: int, shape: float, shown: Floats) -> Floats:
        """E[N | released value] at each released value, new ones summed over every count."""
        values, place = np.unique(shown, return_inverse=True)
        known, expected = self._behind.get(label, (np.zeros(0), np.zeros(0)))
        new = np.setdiff1d(values, known)
        if len(new):
            found = np.zeros(len(new)) if shape == 0 else self._sum(shape, new)
            known, expected = np.append(known, new), np.append(expected, found)
            order = np.argsort(known)
            known, expected = known[order], expected[order]
            self._behind[label] = known, expected
        return np.asarray(expected[np.searchsorted(known, values)][place.reshape(shown.shape)])

    def _sum(self, shape: float, values: Floats) -> Floats:
        theta = self.belief.theta if isinstance(self.belief, NegativeBinomial) else 0.0
        last = float(values.max()) + find_reach(self.mechanism.noise)
        self._terms += len(values) * int(last)
        if self._terms > MOST_TERMS:
            raise TooManyTerms
        n = np.arange(last + 1.0)
        prior = special.gammaln(shape + n) - special.gammaln(n + 1.0) + n * math.log(theta)
        found = np.empty(len(values))
        step = max(1, TERMS_AT_ONCE // len(n))
        for start in range(0, len(values), step):
            few = values[start : start + step]
            with np.errstate(divide="ignore"):
                logs = prior + np.log(chance_of(few, n, self.mechanism))
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            found[start : start + step] = weights @ n / weights.sum(axis=1)
        return found

    def _weigh_by_table(self, released: Floats) -> Floats:
        """People of each label expected in a cell, by all vectors of the table: (levels, releases, cells)."""
        if self.vectors is None:
            raise TooManyTerms
        flat = released.reshape(len(released), -1)
        seen, place = np.unique(flat, axis=1, return_inverse=True)
        self._terms += seen.shape[1] * len(self.vectors) * len(released)
        if self._terms > MOST_TERMS:
            raise TooManyTerms
        logs = np.log(self.vectors.cells)[None, :] + np.zeros((seen.shape[1], 1))
        for values, column in zip(seen, self.vectors.counts.T, strict=True):
            distinct, which = np.unique(values, return_inverse=True)
            counts, whose = np.unique(column, return_inverse=True)
            with np.errstate(divide="ignore"):
                table = np.log(chance_of(distinct, counts.astype(np.float64), self.mechanism))
            logs += table[np.ix_(which, whose)]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        expected = (weights @ self.vectors.counts) / weights.sum(axis=1, keepdims=True)
        return np.asarray(expected.T[:, place.reshape(-1)].reshape(released.shape))


def delete_one(released: Floats, lessened: Floats, counts: Floats) -> Floats:
    """People read off by homogeneity with their record, less those read off without it, in each release.

    >>> counts = np.array([[[1.0, 2.0]], [[0.0, 3.0]]])  # the cells (1, 0) and (2, 3)
    >>> released = np.array([[[1.0, 4.0]], [[0.0, 0.0]]])  # shown as (1, 0) and (4, 0)
    >>> delete_one(released, np.maximum(released - 1.0, 0.0), counts).tolist()
    [1.0]
    """
    shown, less = released > 0, lessened > 0
    n_shown = shown.sum(axis=0)
    with_it, without = shown & (n_shown == 1), less & (n_shown - shown + less == 1)
    return np.asarray((counts * (with_it.astype(np.float64) - without)).sum(axis=(0, 2)))


def chance_of(values: Floats, counts: Floats, mechanism: Mechanism) -> Floats:
    """P(a count is released as a value): (values, counts); the value 0 is everything below the threshold."""
    noise = mechanism.noise
    away = np.abs(values[:, None] - counts)
    middle = 1.0 - 2.0 * float(noise.cdf(-0.5))
    found = np.where(away == 0, middle, np.asarray(noise.cdf(0.5 - away)) - np.asarray(noise.cdf(-0.5 - away)))
    vanished = values == 0
    if vanished.any():
        # Half integers between whole numbers: what is below the threshold is at most the whole number before it.
        found[vanished] = np.asarray(noise.cdf(mechanism.threshold - counts))
    return np.asarray(np.maximum(found, 0.0))


def find_reach(noise: Noise) -> float:
    """A whole number that rounded noise passes with next to no probability."""
    reach = 1.0
    while float(noise.cdf(-reach)) > TAIL:
        reach *= 2.0
    return reach
