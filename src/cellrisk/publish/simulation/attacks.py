"""Attackers who read simulated releases, some cells of some releases at a time; no formula of a risk is used.

`CellAttacks` reads each release for the local risk of three attacks and for the eight scenarios of Liu and Zhao. The
four attacks of `assess` are read by `cellrisk.risk.attackers.realised`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.noise.channel import CountChannel
from cellrisk.publish.simulation.drawing import Chunk
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attackers.realised import PosteriorMeans, RealisedAttacks
from cellrisk.risk.certainty import WIDEST, CountPrior, NegativeBinomial
from cellrisk.risk.certainty.posterior import posterior_means
from cellrisk.system.arrays import Floats, Integers

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

SCENARIOS: dict[int, tuple[str, str]] = {
    1: ("one category", "that category alone"),
    2: ("one category", "another category alone"),
    3: ("one category", "several categories"),
    4: ("one category", "nothing"),
    5: ("several categories", "several categories"),
    6: ("several categories", "nothing"),
    7: ("several categories", "a category alone that is not in it"),
    8: ("several categories", "one of its categories alone"),
}
"""The scenarios of Liu and Zhao, section 3: what the cell holds, and what its release shows.

The exact local risk is the probability of 1 or 8; in 2 and 7 the attacker is wrong. In 8 the people of that category
are revealed, and the others are taken to have it.
"""
EXPOSING = (1, 8)


class CellAttacks:
    """The homogeneity, plurality and proportional attacks: sums over cells, one number a release.

    >>> counts = np.array([[[3.0, 2.0]], [[1.0, 0.0]]])  # the cells (3, 1) and (2, 0)
    >>> released = np.array([[[4.0, 1.0]], [[0.0, 1.0]]])  # shown as (4, 0) and (1, 1)
    >>> attacks = CellAttacks(1)
    >>> attacks.read(Chunk(slice(0, 1), counts, released, None))
    >>> [float(attacks.sums[name, "tight", "records"][0]) for name in ("homogeneity", "plurality", "proportional")]
    [3.0, 4.0, 4.0]
    """

    def __init__(self, releases: int) -> None:
        self.sums: dict[tuple[str, str, str], Floats] = defaultdict(lambda: np.zeros(releases))
        """For each attack, form and weighting: cells or people named correctly."""
        self.scenarios: Integers = np.zeros((8, releases), np.int64)
        """(8, releases): cells in each scenario."""

    def read(self, chunk: Chunk) -> None:
        """Add what the attacks get right in a chunk."""
        counts, released, rows, sizes = chunk.counts, chunk.released, chunk.releases, chunk.counts.sum(axis=0)
        n_shown = (released > 0).sum(axis=0)
        correct = ((released > 0) * counts).sum(axis=0) * (n_shown == 1)
        right = correct > 0
        self.sums["homogeneity", "exact", "uniform"][rows] += np.count_nonzero(right, axis=1)
        self.sums["homogeneity", "exact", "records"][rows] += (right * sizes).sum(axis=1)
        total, tied = released.sum(axis=0), released == released.max(axis=0)
        named = {
            "homogeneity": correct,
            "plurality": (tied * counts).sum(axis=0) * (total > 0) / tied.sum(axis=0),
            "proportional": (released * counts).sum(axis=0) / np.where(total > 0, total, 1.0),
        }
        for attack, people in named.items():
            self.sums[attack, "tight", "uniform"][rows] += (people / sizes).sum(axis=1)
            self.sums[attack, "tight", "records"][rows] += people.sum(axis=1)
        kinds = np.stack([right, (n_shown == 1) & ~right, n_shown > 1, n_shown == 0])
        homogeneous = (counts > 0).sum(axis=0) == 1
        same, mixed = (np.count_nonzero(kinds & cells, axis=2) for cells in (homogeneous, ~homogeneous))
        self.scenarios[:, rows] += np.concatenate([same, mixed[[2, 3, 1, 0]]])


TOO_WIDE = "the prior looks at the table, or the counts or the noise are too large"


def begin_attacks(
    attribute: Attribute, attacker: Attacker, releases: int, channel: CountChannel | None, clamped: bool = True
) -> RealisedAttacks:
    """The four attacks of `assess`, to read releases; without a channel, the two that need none.

    ``clamped``: whether counts below the threshold were set to 0.
    """
    return RealisedAttacks(
        releases,
        attribute.levels.totals,
        attacker.certainties[-1],
        None if channel is None else means_behind(channel, attacker.believe(attribute), clamped),
        *attacker.find_named(attribute.levels.labels),
    )


def means_behind(channel: CountChannel, prior: CountPrior | None, clamped: bool = True) -> PosteriorMeans | None:
    """Return the posterior mean of a count behind each released value; None for a prior that looks at the table, or
    noise too wide to sum."""
    if not isinstance(prior, NegativeBinomial) or channel.radius > WIDEST:
        return None
    priors = prior.by_category
    known: dict[int, dict[int, float]] = defaultdict(dict)

    def means(category: int, shown: Integers) -> Floats:
        values, place = np.unique(shown, return_inverse=True)
        new = np.array([value for value in values.tolist() if value not in known[category]], np.int64)
        found = posterior_means(priors[category], channel, new, clamped=clamped)
        known[category].update(zip(new.tolist(), found.tolist(), strict=True))
        return np.array([known[category][value] for value in values.tolist()])[place.reshape(shown.shape)]

    return means
