"""What every measure is: a risk for each profile, averaged over cells or over records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.risk.measures.survival import MANY_LABELS, Survival
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.words import Form, Weights, list_words

FORMS: tuple[Form, ...] = list_words(Form)
WEIGHTS: tuple[Weights, ...] = list_words(Weights)

NUMBERS_AT_ONCE = 1 << 18
"""Working arrays of about this many numbers stay in the processor's cache."""

NEXT_TO_NOTHING = 1e-40
"""A risk that is certain to be below this is given as 0, where it would take long to compute."""

WIDER = 1.25
"""Cells of many labels are worked on together where one has up to so many times as many labels as another."""

RisksByForm = dict[str, Floats]
"""A risk for each form: (profiles, noises)."""


class Measure(ABC):
    """A question asked of a cell. Subclasses answer it for profiles; averages follow from that.

    ``published`` is the paper's closed form, a bound where cells are heterogeneous (and not even that with three or
    more labels present); ``exact`` is the probability that the released cell shows one label, and a label that is
    there; ``tight`` counts only the records whose own label is shown.
    """

    name: ClassVar[str]
    one_number: ClassVar[bool] = False
    """True where the measure describes the table as a whole, so that weights do not matter."""
    joins: ClassVar[bool] = False
    """True where `risk` takes a count of 0 for a label that the cell lacks, so that blocks may be joined."""
    cut: ClassVar[bool] = False
    """True where all labels but one must vanish, and computing how likely that is takes long: see `average`."""

    @abstractmethod
    def risk(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> RisksByForm:
        """The risk of one cell of each profile, for each noise and form."""

    @abstractmethod
    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        """How many labels the cell of each profile is expected to hold, and how likely it holds any."""

    def chance(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> RisksByForm:
        """Where `risk` goes as noise grows without bound, so that each of the K labels shows with probability 1/2.

        A label is then shown alone with probability 2^-K: exact = 2^-K E C, C the number of labels present, and
        tight = 2^-K P(C > 0), as the shares of the labels present sum to 1. published is its closed form. No sum runs
        over counts, whatever the size of a cell.
        """
        risks: RisksByForm = {}
        if "published" in forms:
            risks.update(self.risk(block, n_levels, survival, ("published",)))
        if tuple(forms) == ("published",):
            return risks
        labels, some = self.labels_present(block)
        for form, total in (("exact", labels), ("tight", some)):
            if form in forms:
                risks[form] = np.repeat(np.ldexp(total, -n_levels)[:, None], len(survival), axis=1)
        return risks

    def reduce(self, profiles: Profiles) -> Profiles:
        """Merge the profiles that this measure cannot tell apart."""
        return profiles

    def rows_at_once(self, block: Block, survival: Survival) -> int:
        """How many profiles to work on together."""
        return max(1, NUMBERS_AT_ONCE // len(survival))

    def pieces(self, profiles: Profiles, survival: Survival) -> Iterator[Block]:
        """All profiles in their order, as many together as are worked on together."""
        for block in join_blocks(profiles) if self.joins else profiles.blocks:
            step = self.rows_at_once(block, survival)
            for start in range(0, len(block), step):
                yield block[start : start + step]

    def average(
        self, profiles: Profiles, survival: Survival, forms: Sequence[str] = FORMS
    ) -> dict[tuple[str, str], Floats]:
        """The average over cells (``uniform``) and over records (``records``) for each form, one value a noise.

        Where all labels but one vanish, each with a probability of at most q(0), exact and tight are at most
        K q(0)^(K-1). Hundreds of labels under much noise leave less than 1e-40, for which 0 stands (but in `Local`,
        which is quick to compute).
        """
        if not profiles.blocks:
            raise InvalidInput("a table without records has no risk")
        merged = self.reduce(profiles)
        parts = [self._average(merged, few, forms) for few in survival.groups]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _average(self, profiles: Profiles, survival: Survival, forms: Sequence[str]) -> dict[tuple[str, str], Floats]:
        find = self.chance if survival.endless else self.risk
        totals: dict[tuple[str, str], Floats]
        totals = {(form, weights): np.zeros(len(survival)) for form in forms for weights in WEIGHTS}
        summed = [form for form in forms if form != "published"]
        some = np.flatnonzero(survival.at_most(profiles.n_levels) >= NEXT_TO_NOTHING)
        if summed and len(some) < len(survival) and self.cut and not survival.endless:
            if "published" in forms:
                totals.update(self._average(profiles, survival, ("published",)))
            if len(some):
                for key, risks in self._average(profiles, survival.some(some.tolist()), summed).items():
                    totals[key][some] = risks
            return totals
        for block in self.pieces(profiles, survival):
            for form, risk in find(block, profiles.n_levels, survival, forms).items():
                totals[form, "uniform"] += block.cells @ risk
                totals[form, "records"] += block.records @ risk
        for form in forms:
            totals[form, "uniform"] /= profiles.n_cells
            totals[form, "records"] /= profiles.n_records
        return totals


def join_blocks(profiles: Profiles) -> Iterator[Block]:
    """The same profiles in fewer blocks: cells of many labels beside others with nearly as many.

    Of three hundred cells with hundreds of labels hardly two have equally many, and to work on each alone takes longer
    than the numbers do.

    >>> cells = Profiles.from_cells(np.tri(30, 40, 10, dtype=int), n_levels=40)
    >>> len(cells.blocks), [block.counts.shape for block in join_blocks(cells)]  # 11 to 40 labels
    (30, [(1, 11), (1, 12), (1, 13), (1, 14), (1, 15), (1, 16), (5, 21), (6, 27), (8, 35), (5, 40)])
    """
    run: list[Block] = []
    rows = 0
    for block in profiles.blocks:
        width = block.counts.shape[1]
        if width <= MANY_LABELS:
            yield block
            continue
        if run and (width > WIDER * run[0].counts.shape[1] or width * (rows + len(block)) > NUMBERS_AT_ONCE):
            yield side_by_side(run)
            run, rows = [], 0
        run.append(block)
        rows += len(block)
    if run:
        yield side_by_side(run)


def side_by_side(blocks: Sequence[Block]) -> Block:
    """One block of all, the labels that a cell lacks standing as 0."""
    cells = np.concatenate([block.cells for block in blocks])
    counts = np.zeros((len(cells), max(block.counts.shape[1] for block in blocks)), np.int64)
    start = 0
    for block in blocks:
        counts[start : start + len(block), : block.counts.shape[1]] = block.counts
        start += len(block)
    return Block(counts, cells, np.concatenate([block.records for block in blocks]))


def published_risk(all_same: Floats, sizes: Integers, n_levels: int, survival: Survival) -> Floats:
    """The paper's two-term form, for any noise: (cells, noises).

    S s(n) q(0)^(K-1) + 1(n >= 2) (1 - S) q(0)^(K-2) [s(n-1) q(1) + q(n-1) s(1)], S the probability that all n
    records share a label (Theorems 1 and 3 as the supplement derives them).
    """
    distinct, row = np.unique(sizes, return_inverse=True)
    first, second = published_terms(distinct, n_levels, survival)
    share = all_same[:, None]
    return share * first[row] + (1.0 - share) * second[row]


def published_terms(sizes: Integers, n_levels: int, survival: Survival) -> tuple[Floats, Floats]:
    """The two brackets of the published form at each size: a homogeneous cell's, and a heterogeneous one's."""
    empty = survival.vanish_empty
    same = survival.survive(sizes) * empty ** (n_levels - 1)
    one = np.array([1])
    q_one, s_one = survival.vanish(one), survival.survive(one)
    others = np.maximum(sizes - 1, 0)
    mixed = survival.survive(others) * q_one + survival.vanish(others) * s_one
    mixed = mixed * empty ** (n_levels - 2) * (sizes >= 2)[:, None]
    return same, mixed
