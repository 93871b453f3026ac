"""The definition of usefulness, read slowly: dictionaries of records, one key after another."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

import cellrisk as cr
from cellrisk.decide.usefulness import Utility
from cellrisk.noise.mechanisms import Mechanism

MODES = ("domain", "observed")
DOMAINS = {"size": ["s", "m", "l"], "sex": ["f", "m"], "town": ["p", "q", "r", "t"], "job": ["a", "b", "c"]}
MECHANISMS = (
    cr.Laplace(epsilon=0.5),
    cr.Geometric(epsilon=1.0, threshold=2.5),
    cr.AnalyticGaussian(epsilon=1.0, delta=0.01, neighbours="replace"),
    cr.DiscreteGaussian(epsilon=2.0, delta=0.01, threshold=1.5),
)


def people(domains: dict[str, list[str]], records: int, seed: int = 5) -> pd.DataFrame:
    """Records of few cells; the last value of each column does not occur."""
    generator = np.random.default_rng(seed)
    columns = {}
    for name, values in domains.items():
        weight = np.arange(len(values) - 1, 0, -1.0) ** 2
        columns[name] = generator.choice(values[:-1], records, p=weight / weight.sum())
    return pd.DataFrame(columns)


def slow_utility(
    frame: pd.DataFrame,
    domains: dict[str, list[str]],
    mechanism: Mechanism,
    ways: tuple[int, ...],
    releases: int,
    seed: int,
    cells: str,
) -> tuple[list[tuple[str, ...]], np.ndarray, np.ndarray, list[int]]:
    """The definition read aloud: records in dictionaries, one key after another; the sensitive column is the last."""
    names = list(domains)
    records = [tuple(row) for row in frame[names].itertuples(index=False)]
    true = Counter(records)
    *values, levels = domains.values()
    occupied = sorted({record[:-1] for record in records}, key=lambda key: [*map(list.index, values, key)])
    combinations_of_values = product(*values) if cells == "domain" else occupied
    keys = [(*key, level) for key in combinations_of_values for level in levels]
    chosen = [columns for way in ways for columns in combinations(names, way)]
    tvd, error, sizes = np.zeros((len(chosen), releases)), np.zeros((len(chosen), releases)), [0] * len(chosen)
    generator = np.random.default_rng(seed)
    for release in range(releases):
        noise = mechanism.noise.sample(generator, (len(keys),))
        released = {}
        for key, draw in zip(keys, noise, strict=True):
            noisy = true[key] + float(draw)
            released[key] = 0 if noisy < mechanism.threshold else math.floor(noisy + 0.5)
        for row, columns in enumerate(chosen):
            places = [names.index(column) for column in columns]
            before, after = add_up(true, places), add_up(released, places)
            before_total, after_total = sum(before.values()), sum(after.values())
            tvd[row, release] = 1.0
            if after_total:
                either = before.keys() | after.keys()
                tvd[row, release] = (
                    sum(abs(before[each] / before_total - after[each] / after_total) for each in either) / 2
                )
            measured = list(product(*(domains[column] for column in columns)))
            if cells == "observed":
                measured = [each for each in measured if before[each]]
            error[row, release] = sum(abs(before[each] - after[each]) for each in measured) / len(measured)
            sizes[row] = len(measured)
    return chosen, tvd, error.mean(axis=1), sizes


def add_up(counts: dict[Any, int], places: list[int]) -> Counter[tuple[str, ...]]:
    sums: Counter[tuple[str, ...]] = Counter()
    for key, count in counts.items():
        sums[tuple(key[place] for place in places)] += count
    return sums


def agree(found: Utility, frame: pd.DataFrame, domains: dict[str, list[str]]) -> None:
    for place, mechanism in enumerate(found.mechanisms):
        chosen, tvd, error, sizes = slow_utility(
            frame, domains, mechanism, found.ways, found.releases, found.seed, found.cells
        )
        assert list(found.marginals) == chosen
        assert found.sizes.tolist() == sizes
        np.testing.assert_allclose(found.tvd[place], tvd, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.absolute_error[place], error, rtol=1e-12, atol=0)
        assert 0.001 < tvd.mean() < 0.999
