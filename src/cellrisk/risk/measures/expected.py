"""Expected risk: cells of the same size and proportions, over the multinomial draw of their counts (Definition 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.risk.measures.measure import NUMBERS_AT_ONCE, Measure, RisksByForm, published_risk, side_by_side
from cellrisk.risk.measures.pmf import first_count, last_count, poisson_pmf
from cellrisk.risk.measures.sequences import SHORT, join_fast
from cellrisk.risk.measures.survival import FarTable, Survival, SurvivalTable
from cellrisk.risk.measures.transforms import MANY, multinomial_risk_by_transform
from cellrisk.system.arrays import Floats, Integers

SMALL = SHORT - 1
"""Cells of up to so many records are worked on together: none of their sequences is so long that it is transformed."""
ROWS_AT_ONCE = 1 << 15
"""Profiles times noises: enough for profiles to share labels, few enough for their sequences to fit in memory."""


@dataclass(frozen=True)
class Expected(Measure):
    """What would the local risk be on average, had the cell's n records drawn their labels anew?

    The counts are multinomial(n, p) with p_k = n_k/n, the cell's own proportions. Independent Poisson counts with
    means n_k, given that their total is n, have just that distribution, so

        exact = [ sum_k a_k * prod_{j != k} b_j ](n) / Poisson(n; n),   * and prod convolutions of sequences,
        a_k(m) = s(m) Poisson(m; n_k) for m >= 1,   b_k(m) = q(m) Poisson(m; n_k).

    tight has m a_k(m)/n in place of a_k. A sequence runs over nine and a half standard deviations round its mean,
    and b stops where q is below 1e-18: a cell of a million records costs no more than that. Every term is positive,
    so risks of cells of up to 63 records are right to twelve digits however small they are; beyond, sequences are
    convolved by Fourier transform and the error is below 1e-14.
    """

    name: ClassVar[str] = "expected"
    cut: ClassVar[bool] = True

    def rows_at_once(self, block: Block, survival: Survival) -> int:
        return max(1, ROWS_AT_ONCE // len(survival))

    def pieces(self, profiles: Profiles, survival: Survival) -> Iterator[Block]:
        """Cells of many labels together, however many each has, so that those with labels in common share the work."""
        few = tuple(block for block in profiles.blocks if block.counts.shape[1] <= MANY)
        yield from super().pieces(Profiles(profiles.n_levels, few), survival)
        many = [block for block in profiles.blocks if block.counts.shape[1] > MANY]
        if many:
            yield from super().pieces(Profiles(profiles.n_levels, (side_by_side(many),)), survival)

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        """Label k is drawn at least once with probability 1 - (1 - p_k)^n."""
        labels = chance_of_some(block.counts / block.sizes[:, None], block.sizes[:, None]).sum(axis=1)
        return labels, np.ones(len(block))

    def risk(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> RisksByForm:
        risks: RisksByForm = {}
        if "published" in forms:
            proportions = block.counts / block.sizes[:, None]
            with np.errstate(divide="ignore"):  # a label that is absent
                all_same = np.exp(block.sizes[:, None] * np.log(proportions)).sum(axis=1)
            risks["published"] = published_risk(all_same, block.sizes, n_levels, survival)
        if "exact" in forms or "tight" in forms:
            n_present = block.counts.shape[1]
            absent = survival.vanish_empty ** (n_levels - n_present)
            exact, tight = multinomial_risk(block.counts, block.sizes, survival)
            risks.update({form: risk * absent for form, risk in (("exact", exact), ("tight", tight)) if form in forms})
        return risks


def chance_of_some(shares: ArrayLike, sizes: Integers) -> Floats:
    """1 - (1 - p)^n: how likely n records hold a label whose share is p; no digit is lost where that is small."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(sizes * np.log1p(-np.asarray(shares))))


def multinomial_risk(counts: Integers, sizes: Integers, survival: Survival) -> tuple[Floats, Floats]:
    """Exact and tight expected risk over the labels present: (cells, noises) each. Counts are largest first."""
    if counts.shape[1] == 1:
        risk = survival.survive(sizes)
        return risk, risk
    if counts.shape[1] > MANY:
        return _many_labels(counts, sizes, survival)
    table = survival.at_any(int(sizes.max()))
    exact = np.zeros((len(sizes), len(survival)))
    tight = np.zeros_like(exact)
    # Two labels that are certain to survive leave no risk.
    rows = np.flatnonzero(first_count(counts[:, 1]) <= table.end)
    for few in _of_like_size(rows, sizes):
        limit = int(sizes[few].max()) + 1
        large, small = (_Labels.of(part, limit, table) for part in split_labels(counts[few]))
        chance = poisson_pmf(sizes[few], sizes[few])[:, None]
        exact[few], records = _together(large, small, sizes[few])
        exact[few] /= chance
        tight[few] = records / (chance * sizes[few][:, None])
    return exact, tight


def _of_like_size(rows: Integers, sizes: Integers) -> Iterator[Integers]:
    """Cells whose sequences are of about one length, the square root of a size: all get the length of the longest."""
    step = np.ceil(np.log(np.maximum(sizes[rows] / SMALL, 1.0)) / np.log(4.0))
    yield from (rows[step == each] for each in np.unique(step))


def _many_labels(counts: Integers, sizes: Integers, survival: Survival) -> tuple[Floats, Floats]:
    """The same where cells have so many labels that their transforms are multiplied; absent labels may stand as 0."""
    exact = np.empty((len(sizes), len(survival)))
    tight = np.empty_like(exact)
    absent = (counts == 0).sum(axis=1)
    for noise in range(len(survival)):
        table = survival.some([noise]).up_to(int(sizes.max()))
        empty = survival.vanish_empty[noise] ** absent
        found = multinomial_risk_by_transform(counts, sizes, table)
        exact[:, noise], tight[:, noise] = (risk * empty for risk in found)
    return exact, tight


@dataclass(frozen=True, eq=False)
class _Labels:
    """Some of the labels of each cell. Cells that have these labels in common share the work."""

    row: Integers
    """Which row of the sequences belongs to a cell."""
    first: Integers
    """The total count at which a row's sequences start."""
    last: Integers
    """The total count past which they do not matter."""
    none: Floats
    """Probability that these labels total m and all vanish: (rows, m, noises)."""
    one: Floats
    """... and exactly one of them survives."""
    records: Floats
    """... times the count of the one that survives."""

    @property
    def sequences(self) -> list[Floats]:
        """None, one and records of each cell."""
        return [part[self.row] for part in (self.none, self.one, self.records)]

    @staticmethod
    def of(counts: Integers, limit: int, table: SurvivalTable | FarTable) -> _Labels:
        """Of labels with these counts, in cells of fewer records than the limit: each half of the labels, joined."""
        distinct, row = np.unique(counts, axis=0, return_inverse=True)
        if distinct.shape[1] == 1:
            sequences = _label(distinct[:, 0], limit, table)
        else:
            large, small = (_Labels.of(part, limit, table) for part in split_labels(distinct))
            sequences = join_fast(large.sequences, small.sequences, limit)
        first, last = first_count(distinct).sum(axis=1), last_count(distinct).sum(axis=1)
        return _Labels(row.reshape(-1), first, last, *sequences)


def split_labels(counts: Integers) -> list[Integers]:
    """The larger half of the labels, and the smaller."""
    return np.split(counts, [(counts.shape[1] + 1) // 2], axis=1)


def _label(means: Integers, limit: int, table: SurvivalTable | FarTable) -> list[Floats]:
    """b(m), a(m) and m a(m) of one label, from its first count that matters on: (cells, counts, noises)."""
    first = first_count(means)
    width = int((np.minimum(last_count(means), limit - 1) - first).max()) + 1
    counts = first[:, None] + np.arange(width)
    chance = poisson_pmf(counts, means[:, None])[..., None]
    kept = min(width, max(1, int(table.end - first.min()) + 1))
    q = table.vanish_at(counts[:, :kept]) * chance[:, :kept]
    s = table.survive_at(counts) * (chance * (counts > 0)[..., None])
    return [q, s, s * counts[..., None]]


def _together(large: _Labels, small: _Labels, sizes: Integers) -> tuple[Floats, Floats]:
    """Both halves at a total of n: one label of all survives, and the records it has."""
    one = np.empty((len(sizes), large.none.shape[2]))
    records = np.empty_like(one)
    widths = np.minimum(small.last - small.first + 1, small.one.shape[1])[small.row]
    order = np.argsort(widths, kind="stable")  # so that cells worked on together have sequences of like length
    start = 0
    while start < len(order):
        width = int(widths[order[start]])
        stop = start + max(1, NUMBERS_AT_ONCE // (width * one.shape[1]))
        few = order[start:stop]
        few = few[widths[few] <= 1.25 * width]
        width = int(widths[few[-1]])
        start += len(few)
        here, there = small.row[few], large.row[few]
        rest = sizes[few] - small.first[here] - large.first[there]
        none_there, one_there, records_there = (
            _from_end(part, there, rest, width) for part in (large.none, large.one, large.records)
        )
        none_here = small.none[here, :width]
        kept = none_here.shape[1]
        one[few] = _dot(small.one[here, :width], none_there) + _dot(none_here, one_there[:, :kept])
        records[few] = _dot(small.records[here, :width], none_there) + _dot(none_here, records_there[:, :kept])
    return one, records


def _dot(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.einsum("cme,cme->ce", x, y))


def _from_end(sequence: Floats, row: Integers, last: Integers, width: int) -> Floats:
    """Terms last, last - 1, ... of the rows of a sequence, 0 outside it: (cells, width, noises)."""
    place = last[:, None] - np.arange(width)
    inside = (place >= 0) & (place < sequence.shape[1])
    terms = sequence[row[:, None], np.where(inside, place, 0)]
    terms[~inside] = 0.0
    return np.asarray(terms)
