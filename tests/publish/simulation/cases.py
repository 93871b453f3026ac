"""Mechanisms and small tables that simulations are made of."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

import cellrisk as cr
from cellrisk.publish.simulation import Simulation
from tests import near

MECHANISMS = {
    "laplace": cr.Laplace(epsilon=0.8),
    "laplace, replace": cr.Laplace(epsilon=1.5, neighbours="replace"),
    "laplace, threshold": cr.Laplace(epsilon=1.0, threshold=2.5),
    "gaussian": cr.Gaussian(epsilon=0.9, delta=0.05),
    "gaussian-pdp": cr.ProbabilisticGaussian(epsilon=1.5, delta=0.05),
    "gaussian-analytic": cr.AnalyticGaussian(epsilon=1.0, delta=0.05),
    "geometric": cr.Geometric(epsilon=0.9),
    "discrete-gaussian": cr.DiscreteGaussian(epsilon=1.0, delta=0.05),
}
TWO = [[3, 0], [2, 1], [0, 1], [5, 4], [0, 6], [1, 1], [12, 1]]
THREE = [[4, 2, 1], [0, 5, 0], [1, 1, 0], [1, 0, 0], [0, 0, 9], [2, 0, 2]]
HOMOGENEOUS = [[3, 0], [0, 2], [1, 0], [0, 4]]


def make(cells: Sequence[Sequence[int]], declared: bool = False) -> cr.FrequencyTable:
    """A table with one value of the quasi-identifier for each cell, ``declared`` or not, and the levels a, b, c."""
    labels = "abc"[: len(cells[0])]
    rows = [
        {"cell": f"{place:04}", "y": label, "n": count}
        for place, counts in enumerate(cells)
        for label, count in zip(labels, counts, strict=True)
    ]
    levels = {"y": list(labels)} | ({"cell": [f"{place:04}" for place in range(len(cells))]} if declared else {})
    return cr.tabulate(pd.DataFrame(rows), "cell", "y", levels=levels, count="n")


def same(first: Simulation, second: Simulation) -> bool:
    return near.same(first.estimates, second.estimates) and near.same(first.people, second.people)
