"""When a released cell looks homogeneous, how often does it tell the truth?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures.local import Local, join_categories, read_counts


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


def find_confidence(profiles: Profiles, channel: CountChannel, empty: int = 0) -> list[Confidence]:
    """Return how often a cell that looks homogeneous tells the truth, one answer a noise.

    precision = sum_cells exact / sum_cells P(exactly one of all K categories is shown), and for people the same with
    tight, weighted by records. A declared empty cell looks homogeneous with probability K s(0) q(0)^(K-1) and is never
    right. Exact.

    As noise grows a cell with c of K labels is right c/K of the time and a person's value is shown 1/K of the time,
    which is guessing: the 2^-K of risk that is left there is chance, not knowledge.

    >>> from cellrisk import Laplace
    >>> from cellrisk.noise.channel import AdditiveChannel
    >>> noises = AdditiveChannel((Laplace(epsilon=0.0001).noise, Laplace(epsilon=2.0).noise))
    >>> cells = Profiles.from_cells([[3, 0, 0], [2, 2, 0]], n_levels=3)
    >>> [round(found.people_precision, 3) for found in find_confidence(cells, noises)]
    [0.333, 0.962]
    """
    n_levels, nobody = profiles.n_levels, channel.p_positive(np.zeros(1))[0]
    local, cells, people = Local(), np.zeros(len(channel)), np.zeros(len(channel))
    for block in local.pieces(profiles, channel):
        none, one = join_categories(*read_counts(block, channel))
        absent = n_levels - block.counts.shape[1]
        looks = one * channel.q0**absent + none * absent * nobody * channel.q0 ** max(absent - 1, 0)
        cells, people = cells + block.cells @ looks, people + block.records @ looks
    risks = local.average(profiles, channel)
    right = risks["exact", "uniform"] * profiles.n_cells
    people_right = risks["tight", "records"] * profiles.n_records
    all_cells = cells + empty * n_levels * nobody * channel.q0 ** (n_levels - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = [
            np.where(whole > 0, part / whole, math.nan)
            for part, whole in ((right, cells), (people_right, people), (right, all_cells))
        ]
    columns = (cells, right, ratios[0], people, people_right, ratios[1], all_cells, ratios[2])
    return [Confidence(*row) for row in np.stack(columns, axis=1).tolist()]
