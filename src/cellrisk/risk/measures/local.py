"""Local risk: this very table, the randomness of the noise alone (Definition 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.noise.channel import CountChannel, at_each
from cellrisk.risk.measures.exactly_one import each_alone, exactly_one
from cellrisk.risk.measures.measure import Measure, RisksByForm, published_risk
from cellrisk.system.arrays import Floats


@dataclass(frozen=True)
class Local(Measure):
    """How likely does the released cell reveal its category? No assumption about where the counts came from.

    exact: sum over categories k present of s(n_k) prod_{j != k} q(n_j), with q(0) for each absent category.
    tight: each term times n_k/n (the paper's Eq. 7), the share of the cell's records whose category is shown.
    Averaged over records, tight is the expected share of people whose value an attacker reads off correctly.

    >>> from cellrisk import Laplace, Profiles
    >>> cell = Profiles.from_cells([[4, 2, 1]], n_levels=3)
    >>> averages = Local().average(cell, Laplace(epsilon=0.001).channel)
    >>> [round(float(averages[form, "uniform"][0]), 4) for form in ("published", "exact")]
    [0.2501, 0.3743]
    """

    name: ClassVar[str] = "local"
    direct: ClassVar[bool] = True

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        return np.count_nonzero(block.counts, axis=1).astype(np.float64), np.ones(len(block))

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        present = block.counts.shape[1]
        risks: RisksByForm = {}
        if "published" in forms:
            homogeneous = np.full(len(block), 1.0 if present == 1 else 0.0)
            risks["published"] = published_risk(homogeneous, block.sizes, n_levels, channel)
        if "exact" in forms or "tight" in forms:
            q, s = read_counts(block, channel)
            absent = channel.q0 ** (n_levels - present)
            if "exact" in forms:
                risks["exact"] = exactly_one(q, s) * absent
            if "tight" in forms:
                risks["tight"] = exactly_one(q, s * (block.counts.T / block.sizes)[..., None]) * absent
        return risks


def read_counts(block: Block, channel: CountChannel) -> tuple[Floats, Floats]:
    """Return q and s of the counts of each profile: (categories, profiles, settings)."""
    return at_each(channel.p_zero, block.counts.T), at_each(channel.p_positive, block.counts.T)


def shown_alone(block: Block, n_levels: int, channel: CountChannel) -> Floats:
    """Return P(the release shows this category alone), by profile and category present, under the first setting."""
    q, s = read_counts(block, channel)
    return np.asarray(each_alone(q[..., 0], s[..., 0]).T * channel.q0[0] ** (n_levels - block.counts.shape[1]))
