"""When a released cell looks homogeneous, how often does it tell the truth?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures import Local
from cellrisk.risk.measures.exactly_one import exactly_one
from cellrisk.system.arrays import Floats


@dataclass(frozen=True)
class Confidence:
    """How far an attacker may trust a cell that shows one label alone, under one noise. Exact expectations.

    Precisions are ratios of expectations over releases; nan where looking homogeneous is too unlikely for a
    double-precision number. Pure guessing has a ``people_precision`` of 1/K.
    """

    looks: float
    """Expected number of cells with records that are released with exactly one label."""
    right: float
    """Expected number of those whose shown label is present: the exact local risk, summed over cells."""
    precision: float
    """right / looks."""
    people_looking: float
    """Expected number of people in cells that look homogeneous."""
    people_right: float
    """Expected number of those whose own label is the one shown: the tight local risk, summed over records."""
    people_precision: float
    """people_right / people_looking. Empty cells hold no people and do not change it."""
    looks_with_empty: float
    """looks, and the expected number of declared empty cells that look homogeneous too."""
    precision_with_empty: float
    """right / looks_with_empty: what shows in an empty cell is never right."""


def looks_homogeneous(profiles: Profiles, channel: CountChannel) -> Floats:
    """How many cells, and how many people in them, are released with exactly one label? Shape (2, noises).

    Expected cells, then expected records (the order of WEIGHTS): the sum over cells, weighted by 1 or by n, of
    sum_k s(n_k) prod_{j != k} q(n_j) over all K labels, absent ones too. Exact.

    >>> from cellrisk import Laplace
    >>> noise = Laplace(epsilon=1.0).channel
    >>> looks_homogeneous(Profiles.from_cells([[3, 0], [2, 2]], n_levels=2), noise).round(4).tolist()
    [[0.8788], [2.8347]]
    """
    if not profiles.blocks:
        raise InvalidInput("a table without records has no risk")
    totals = np.zeros((2, len(channel)))
    for block in profiles.blocks:
        looks = _show_one(block, profiles.n_levels, channel)
        totals[0] += block.cells @ looks
        totals[1] += block.records @ looks
    return totals


def find_confidence(profiles: Profiles, channel: CountChannel, empty: int = 0) -> list[Confidence]:
    """How often does a cell that looks homogeneous tell the truth? One answer a noise.

    precision = sum_cells exact / sum_cells P(looks homogeneous), and for people the same with tight, weighted by
    records. A declared empty cell looks homogeneous with probability K s(0) q(0)^(K-1) and is never right. Exact.

    As noise grows a cell with c of K labels is right c/K of the time and a person's value is shown 1/K of the time,
    which is guessing: the 2^-K of risk that is left there is chance, not knowledge.

    >>> from cellrisk import Laplace
    >>> from cellrisk.noise.channel import AdditiveChannel
    >>> noises = AdditiveChannel((Laplace(epsilon=0.0001).noise, Laplace(epsilon=2.0).noise))
    >>> cells = Profiles.from_cells([[3, 0, 0], [2, 2, 0]], n_levels=3)
    >>> [round(found.people_precision, 3) for found in find_confidence(cells, noises)]
    [0.333, 0.962]
    """
    if isinstance(empty, bool) or not isinstance(empty, (int, np.integer)) or empty < 0:
        raise InvalidInput("the number of empty cells must be a whole number from 0", got=repr(empty))
    cells, people = looks_homogeneous(profiles, channel)
    risks = Local().average(profiles, channel, ("exact", "tight"))
    right = risks["exact", "uniform"] * profiles.n_cells
    people_right = risks["tight", "records"] * profiles.n_records
    n_levels, q = profiles.n_levels, channel.q0
    none_there = n_levels * channel.p_positive(np.array([0]))[0] * q ** (n_levels - 1)
    with_empty = cells + int(empty) * none_there
    columns = zip(*(part.tolist() for part in (cells, right, people, people_right, with_empty)), strict=True)
    return [
        Confidence(
            looks=looks,
            right=is_right,
            precision=_ratio(is_right, looks),
            people_looking=looking,
            people_right=shown,
            people_precision=_ratio(shown, looking),
            looks_with_empty=all_looks,
            precision_with_empty=_ratio(is_right, all_looks),
        )
        for looks, is_right, looking, shown, all_looks in columns
    ]


def _show_one(block: Block, n_levels: int, channel: CountChannel) -> Floats:
    """P(a cell of each profile is released with exactly one label): (profiles, noises)."""
    n_present = block.counts.shape[1]
    n_absent = n_levels - n_present
    counts, shape = block.counts.T.reshape(-1), (n_present, len(block), len(channel))
    vanish, survive = channel.p_zero(counts).reshape(shape), channel.p_positive(counts).reshape(shape)
    q = channel.q0
    if n_absent:  # all absent labels together: none of them shows, or exactly one does
        one_absent = n_absent * channel.p_positive(np.array([0]))[0] * q ** (n_absent - 1)
        vanish = np.concatenate([vanish, np.broadcast_to(q**n_absent, vanish[:1].shape)])
        survive = np.concatenate([survive, np.broadcast_to(one_absent, survive[:1].shape)])
    return exactly_one(vanish, survive)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan
