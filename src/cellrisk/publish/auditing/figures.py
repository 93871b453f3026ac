"""What a release discloses, in figures: its attackers' success, and the figures of other tools by their definitions.

d_tq is the original count of label t in the cell of key q, s_tq the released one as it is read (negative counts as
zero), d_q and s_q their sums over labels, N the records of the original. A released cell looks homogeneous where
exactly one s_tq is positive. Every figure is exact for these two tables; nothing is estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.errors import InvalidInput, argument
from cellrisk.publish.auditing.reading import ReleasedCounts
from cellrisk.publish.releasing.published_totals import match_column
from cellrisk.publish.simulation.attacks import SCENARIOS, CellAttacks
from cellrisk.publish.simulation.drawing import Chunk
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.results import LeavesKeys


@dataclass(frozen=True, eq=False)
class TableComparison(LeavesKeys):
    """Each key that either table has, and for each of its labels the original count d and the released count s.

    Attackers use the positive counts of a release; negative ones, which unbiased noise makes, are read as zero.

    >>> codes, cell, level = np.array([[0], [1]]), np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> original, released = np.array([3.0, 0.0, 1.0]), np.array([2.0, -1.0, 1.0])
    >>> both = TableComparison(("sex",), (("f", "m"),), ("a", "b"), codes, cell, level, original, released)
    >>> both.sizes.tolist(), both.shown_sizes.tolist(), both.n_shown.tolist()
    ([3.0, 1.0], [2.0, 1.0], [1, 1])
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    """The values of each quasi-identifier: those of the original, then those that the release alone has."""
    levels: tuple[str, ...]
    codes: Integers
    """(cells, quasi-identifiers): the place of each cell's values among the labels."""
    cell: Integers
    """The cell of each pair of a cell and a level; the pairs ascend."""
    level: Integers
    """The level of each pair."""
    original: Floats
    """The original count of each pair."""
    released: Floats
    """The released count of each pair."""

    def __post_init__(self) -> None:
        if not self.original.sum() > 0:
            raise InvalidInput("the original table has no records", code="no-records")

    @property
    def n_records(self) -> float:
        """Records of the original: N."""
        return float(self.original.sum())

    @cached_property
    def shown(self) -> Floats:
        """The counts as attackers use them."""
        return np.maximum(self.released, 0.0)

    @cached_property
    def sizes(self) -> Floats:
        """Records of the original in each cell; 0 where the release alone has the key."""
        return self.add_up(self.original)

    @cached_property
    def shown_sizes(self) -> Floats:
        """The sum of the counts shown in each cell; 0 where the release shows nothing."""
        return self.add_up(self.shown)

    @cached_property
    def n_shown(self) -> Integers:
        """How many labels each released cell shows."""
        return self.add_up(self.shown > 0).astype(np.int64)

    @cached_property
    def named(self) -> Floats:
        """Records of the original in each cell that have the one label which the release shows alone."""
        return np.asarray(self.add_up(self.original * (self.shown > 0)) * (self.n_shown == 1))

    @property
    def n_exposed(self) -> int:
        """People whose own value the release shows alone in their cell."""
        return round(float(self.named.sum()))

    def add_up(self, amounts: Any) -> Floats:
        """The sum over the labels of each cell."""
        return np.bincount(self.cell, amounts, minlength=len(self.codes)).astype(np.float64)

    def spread(self) -> Floats:
        """The original and the released counts of every cell that holds anybody: (2, labels, 1, cells)."""
        held = self.sizes > 0
        row, kept = np.cumsum(held) - 1, held[self.cell]
        counts = np.zeros((2, len(self.levels), 1, np.count_nonzero(held)))
        counts[:, self.level[kept], 0, row[self.cell[kept]]] = self.original[kept], self.released[kept]
        return counts

    def without_keys(self) -> dict[str, Any]:
        return {"labels": (), "codes": np.zeros((len(self.codes), 0), np.int64)}

    def key(self, cell: int) -> dict[str, str]:
        """The values of the quasi-identifiers in one cell."""
        if not self.labels:
            fix = "audit again"
            raise InvalidInput("the keys of this audit were left behind when it was pickled", fix=fix, code="no-keys")
        values = zip(self.names, self.labels, self.codes[cell], strict=True)
        return {name: labels[code] for name, labels, code in values}

    def as_it_is(self) -> TableComparison:
        """The original compared with itself, as if it were released without any change."""
        return replace(self, released=self.original)


def compare_tables(cells: Cells, released: ReleasedCounts, missing_level: bool) -> TableComparison:
    """Put a release beside the original; refuses what cannot be compared.

    ``missing_level``: whether the last level of the sensitive attribute stands for missing values.
    """
    n_levels, labels, places = len(cells.levels), [], []
    for column, domain in zip(released.columns[:-1], cells.domains, strict=True):
        values, codes = match_column(column, domain.labels, domain.missing)
        if len(codes) and (codes >= len(domain)).all():  # else it would look as if nothing were revealed
            what = f"no value of '{column.name}' in the released table is one of the original"
            fix = f"write them alike; if the original was binned, name the bins alike or give {argument('bins')}"
            got = f"{len(values) - len(domain):,} other values"
            raise InvalidInput(what, got=got, fix=fix, code="other-values")
        labels.append(values)
        places.append(codes)
    levels, shown = match_column(released.columns[-1], cells.levels, missing_level)
    unknown = int((shown >= n_levels).sum())
    if unknown:
        what = f"the released table has levels of '{cells.sensitive}' that the original has not"
        got, allowed = (
            f"{len(levels) - n_levels:,} of them, in {unknown:,} combinations",
            f"the {n_levels:,} levels of it",
        )
        fix = "declare every level when the original is tabulated, or write them alike"
        raise InvalidInput(what, got=got, allowed=allowed, fix=fix, code="other-levels")
    ours = cells.codes[cells.cell]
    theirs = np.stack(places, axis=1)
    codes = np.concatenate([ours, theirs])
    level = np.concatenate([cells.level, shown])
    first, cell = find_distinct(codes.T, [len(values) for values in labels])
    pairs, place = np.unique(cell * n_levels + level, return_inverse=True)
    return TableComparison(
        cells.names,
        tuple(labels),
        cells.levels,
        codes[first],
        pairs // n_levels,
        pairs % n_levels,
        np.bincount(place[: len(ours)], cells.count, minlength=len(pairs)).astype(np.float64),
        np.bincount(place[len(ours) :], released.count, minlength=len(pairs)).astype(np.float64),
    )


@dataclass(frozen=True)
class Figure:
    """What one figure says, and whose definition it is."""

    meaning: str
    source: str
    is_count: bool = False


LIU, SYNTHPOP, SDMETRICS, ARX = "Liu and Zhao", "synthpop", "SDMetrics", "ARX"
FIGURES: dict[str, Figure] = {
    "homogeneity_tight_records": Figure("people whose own value their group shows alone", LIU),
    "homogeneity_tight_uniform": Figure("the same, each group alike", LIU),
    "homogeneity_exact_records": Figure("people in groups that show one of their values alone", LIU),
    "homogeneity_exact_uniform": Figure("groups that show one of their values alone", LIU),
    "plurality": Figure("people whose value has the largest count in their group", LIU),
    "proportional": Figure("people named by a guess in proportion to the counts", LIU),
    "disco": Figure("DiSCO: disclosive in the release, and correct", SYNTHPOP),
    "dis": Figure("DiS: disclosive in the release, correct or not", SYNTHPOP),
    "repu": Figure("repU: unique in the original and in the release", SYNTHPOP),
    "tcap": Figure("TCAP: correct among the disclosive", SYNTHPOP),
    "cap": Figure("CategoricalCAP score; 1 is safest", SDMETRICS),
    "zero_cap": Figure("CategoricalZeroCAP score; 1 is safest", SDMETRICS),
    "k": Figure("k: the smallest group", "Sweeney"),
    "distinct_l": Figure("distinct l-diversity", "Machanavajjhala et al."),
    "entropy_l": Figure("entropy l-diversity", "Machanavajjhala et al."),
    "prosecutor": Figure("prosecutor risk: highest", ARX),
    "marketer": Figure("marketer risk: average", ARX),
    **{
        f"scenario_{number}": Figure(f"groups that hold {held} and show {shown}", LIU, is_count=True)
        for number, (held, shown) in SCENARIOS.items()
    },
}
"""Every figure, by name, with what it says; the functions below define them."""


def find_figures(both: TableComparison) -> dict[str, float]:
    """All figures of one release, by name, in the order of `FIGURES`."""
    found = {**attack_release(both), **follow_synthpop(both), **follow_sdmetrics(both), **anonymity_of(both)}
    return {name: float(found[name]) for name in FIGURES}


def attack_release(both: TableComparison) -> dict[str, float]:
    """What do three attackers get right in this release, and what became of each cell of the original?

    homogeneity: where a cell shows one label alone, everyone in it is taken to have it. ``tight`` is the share of
    people of whom that is true, ``exact`` asks of each cell whether the label is there at all (scenarios 1 and 8);
    people count alike (``records``) or cells do (``uniform``). plurality (hard thresholding): the label with the
    largest count, ties split evenly. proportional (soft thresholding): a label drawn in proportion to the counts, its
    expected share. Nobody guesses if nothing is shown. Liu and Zhao, section 3 with its eight scenarios and the
    discussion of thresholding, as realised in one release; a cell that it does not list shows nothing.
    """
    original, released = both.spread()
    attacks = CellAttacks(1)
    attacks.read(Chunk(slice(0, 1), original, np.maximum(released, 0.0), None))
    total, names = {"uniform": original.shape[2], "records": both.n_records}, iter(SCENARIOS)
    shares = {name: sums[0] / total[name[2]] for name, sums in attacks.sums.items()}
    return {
        **{
            f"homogeneity_{form}_{weights}": shares["homogeneity", form, weights]
            for form in ("tight", "exact")
            for weights in ("records", "uniform")
        },
        **{attack: shares[attack, "tight", "records"] for attack in ("plurality", "proportional")},
        **{f"scenario_{next(names)}": cells for cells in attacks.scenarios[:, 0].tolist()},
    }


def follow_synthpop(both: TableComparison) -> dict[str, float]:
    """The measures of synthpop's `disclosure` (Raab, Nowok and Dibben 2024, arXiv 2406.16826).

    DiSCO = sum of d_tq with s_tq/s_q = 1, over N. DiS = sum of d_q over the keys q where some s_tq/s_q = 1, over N.
    repU = number of keys with d_q = s_q = 1, over N. TCAP = DiSCO/DiS (Taub and Elliot 2019, with tau = 1): among
    original records whose key shows one label alone, the share who have it; undefined (NaN) where there are none. As
    shares; synthpop prints percentages.
    """
    n, disclosive = both.n_records, both.n_shown == 1
    correct, at_stake = both.named.sum(), both.sizes[disclosive].sum()
    return {
        "disco": correct / n,
        "dis": at_stake / n,
        "repu": np.count_nonzero((both.sizes == 1) & (both.shown_sizes == 1)) / n,
        "tcap": correct / at_stake if at_stake else math.nan,
    }


def follow_sdmetrics(both: TableComparison) -> dict[str, float]:
    """The scores of SDMetrics' CategoricalCAP and CategoricalZeroCAP, of which 1 is safest.

    CAP = 1 - mean of s_tq/s_q, with t and q those of each original record whose key the release shows; NaN where there
    is none. Zero-CAP takes 0 for the records whose key it does not show, so it is 1 - proportional.
    """
    matched = both.sizes[both.shown_sizes > 0].sum()
    score = (both.original * _shares(both)).sum()
    return {"cap": 1.0 - score / matched if matched else math.nan, "zero_cap": 1.0 - score / both.n_records}


def anonymity_of(both: TableComparison) -> dict[str, float]:
    """k-anonymity, l-diversity and re-identification risks of the released table by itself, over the cells it shows.

    k = min s_q (Sweeney 2002). Distinct l = the fewest labels in a cell; entropy l = exp of the smallest entropy
    -sum_t p ln p, p = s_tq/s_q: a real number, not cut to a whole one (Machanavajjhala et al. 2007). Prosecutor risk =
    max 1/s_q, marketer risk = cells / sum of s_q, the mean of 1/s_q over records (El Emam and Dankar 2008; ARX). Counts
    of less than one person, which noise can make, count as one person there, so that both are at most 1. NaN where
    nothing is shown.
    """
    shows = both.shown_sizes > 0
    if not shows.any():
        return dict.fromkeys(("k", "distinct_l", "entropy_l", "prosecutor", "marketer"), math.nan)
    share = _shares(both)
    entropy = -both.add_up(share * np.log(np.where(share > 0, share, 1.0)))
    sizes = both.shown_sizes[shows]
    at_least_one = np.maximum(sizes, 1.0)
    return {
        "k": sizes.min(),
        "distinct_l": both.n_shown[shows].min(),
        "entropy_l": math.exp(max(entropy[shows].min(), 0.0)),
        "prosecutor": 1.0 / at_least_one.min(),
        "marketer": len(sizes) / at_least_one.sum(),
    }


def _shares(both: TableComparison) -> Floats:
    """The released share of each label in its cell; 0 where nothing is shown."""
    total = both.shown_sizes[both.cell]
    return np.asarray(both.shown / np.where(total > 0, total, 1.0))
