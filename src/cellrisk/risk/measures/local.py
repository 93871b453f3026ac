"""Local risk: this very table, the randomness of the noise alone (Definition 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.risk.measures.measure import Measure, RisksByForm, published_risk
from cellrisk.risk.measures.survival import MANY_LABELS, Survival, exactly_one
from cellrisk.system.arrays import Floats

OFTEN = 4
"""Labels are taken together by their count where a count is that of so many labels, on average."""


@dataclass(frozen=True)
class Local(Measure):
    """How likely does the released cell give away its label? No assumption about where the counts came from.

    exact: sum over labels k present of s(n_k) prod_{j != k} q(n_j), with q(0) for each absent label.
    tight: each term times n_k/n (the paper's Eq. 7), the share of the cell's records whose label is shown.
    Averaged over records, tight is the expected share of people whose value an attacker reads off correctly.

    >>> from cellrisk import Laplace, Profiles
    >>> cell = Profiles.from_cells([[4, 2, 1]], n_levels=3)
    >>> noise = Survival((Laplace(epsilon=0.001).noise,))
    >>> [round(float(Local().average(cell, noise)[form, "uniform"][0]), 4) for form in ("published", "exact")]
    [0.2501, 0.3743]
    """

    name: ClassVar[str] = "local"
    joins: ClassVar[bool] = True

    def rows_at_once(self, block: Block, survival: Survival) -> int:
        width = block.counts.shape[1]
        few = super().rows_at_once(block, survival)
        return few if width <= MANY_LABELS else max(1, 4 * few // width)

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        return np.count_nonzero(block.counts, axis=1).astype(np.float64), np.ones(len(block))

    def risk(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> RisksByForm:
        width = block.counts.shape[1]
        risks: RisksByForm = {}
        if "published" in forms:
            homogeneous = np.full(len(block), 1.0 if width == 1 else 0.0)
            risks["published"] = published_risk(homogeneous, block.sizes, n_levels, survival)
        if "exact" in forms or "tight" in forms:
            distinct, where = np.unique(block.counts, return_inverse=True)
            row = where.reshape(block.counts.shape).T
            all_q, all_s = survival.vanish(distinct), survival.survive(distinct)
            all_s = np.where(distinct[:, None] > 0, all_s, 0.0)  # a label that is absent is not there to be shown
            if width > MANY_LABELS and len(distinct) * OFTEN <= width:  # labels of the same count taken together
                times = np.zeros((len(distinct), len(block), 1))
                np.add.at(times, (row, np.arange(len(block))), 1.0)
                q = all_q[:, None] ** times
                s = times * all_s[:, None] * all_q[:, None] ** np.maximum(times - 1.0, 0.0)
                counts = distinct[:, None]
            else:
                q, s, counts = all_q[row], all_s[row], block.counts.T  # (labels, profiles, noises)
            absent = survival.vanish_empty ** (n_levels - width)
            if "exact" in forms:
                risks["exact"] = exactly_one(q, s) * absent
            if "tight" in forms:
                risks["tight"] = exactly_one(q, s * (counts / block.sizes)[..., None]) * absent
        return risks
