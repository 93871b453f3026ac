"""Every release that a group may have, if they are few enough to go through: exact for any number of categories."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.channel import CountChannel
from cellrisk.system.arrays import Floats, Integers

MOST_OUTCOMES = 4_000_000
"""Released vectors that are gone through."""
MOST_CATEGORIES = 32


def are_few(vectors: LabelledCounts, channel: CountChannel) -> bool:
    """Whether all released vectors of all groups can be gone through."""
    if vectors.n_levels > MOST_CATEGORIES:
        return False
    return bool(np.prod(channel.n_values(vectors.counts), axis=1, dtype=np.float64).sum() <= MOST_OUTCOMES)


def list_releases(vectors: LabelledCounts, channel: CountChannel) -> Iterator[tuple[Integers, Floats]]:
    """Yield, for each vector of counts, its released vectors and the people expected in each: (releases, categories).

    The people are cells times pmf times the counts of the vector.
    """
    laws = {count: _law(channel, count) for count in np.unique(vectors.counts).tolist()}
    for vector, cells in zip(vectors.counts, vectors.cells.tolist(), strict=True):
        values = np.meshgrid(*(laws[count][0] for count in vector.tolist()), indexing="ij")
        pmf: Floats = np.ones(1)
        for count in vector.tolist():
            pmf = np.outer(pmf, laws[count][1]).ravel()
        yield np.stack([part.ravel() for part in values], axis=1), cells * pmf[:, None] * vector


def _law(channel: CountChannel, count: int) -> tuple[Integers, Floats]:
    values = channel.support(np.array([count]))
    pmf = channel.pmf(np.full(len(values), count), values)[:, 0]
    return values[pmf > 0], pmf[pmf > 0]
