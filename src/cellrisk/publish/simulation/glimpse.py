"""A few cells before and after one simulated release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.publish.simulation.attacks import attack_cells
from cellrisk.publish.simulation.releases import round_counts

SAMPLE_SEED = 20_000
"""The sample of cells is the same whatever the noise."""


def glimpse(cells: Cells, mechanism: Mechanism, number: int, seed: int) -> Iterator[dict[str, Any]]:
    """What would one release show of a few cells? Their keys, which are raw data, counts and numbers of scenarios.

    ``seed`` is that of the noise.

    >>> from cellrisk import Laplace
    >>> from cellrisk.counts.cells import Domain
    >>> codes, cell, level = np.array([[0], [1]]), np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> cells = Cells("job", ("cook", "smith"), (Domain("sex", ("f", "m")),), codes, cell, level, np.array([1, 2, 3]))
    >>> found = glimpse(cells, Laplace(epsilon=100.0), number=5, seed=0)
    >>> sorted((each["key"]["sex"], each["after"], each["scenario"]) for each in found)
    [('f', [1, 2], 5), ('m', [0, 3], 1)]
    """
    chosen = np.random.default_rng(SAMPLE_SEED).permutation(cells.n_cells)[:number]
    counts = np.zeros((len(cells.levels), 1, len(chosen)))
    for place, cell in enumerate(chosen.tolist()):
        held = slice(cells.offsets[cell], cells.offsets[cell + 1])
        counts[cells.level[held], 0, place] = cells.count[held]
    noise = mechanism.noise.sample(np.random.default_rng(seed), counts.shape)
    released = round_counts(counts + noise, mechanism.threshold)
    for place, cell in enumerate(chosen.tolist()):
        before, after = counts[:, :, place : place + 1], released[:, :, place : place + 1]
        found = attack_cells(after, before, before.sum(axis=0)[0], every_attack=False).scenarios
        yield {
            "key": cells.key(cell),
            "before": before[:, 0, 0].astype(np.int64).tolist(),
            "after": np.minimum(after[:, 0, 0], 2.0**53).astype(np.int64).tolist(),
            "scenario": int(np.argmax(found[:, 0])) + 1,
        }
