"""What can become of a cell when it is released: eight cases, of which two disclose a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cellrisk.system.arrays import Integers

Flags = NDArray[np.bool_]

SCENARIOS: dict[int, tuple[str, str]] = {
    1: ("one label", "that label alone"),
    2: ("one label", "another label alone"),
    3: ("one label", "several labels"),
    4: ("one label", "nothing"),
    5: ("several labels", "several labels"),
    6: ("several labels", "nothing"),
    7: ("several labels", "a label alone that is not in it"),
    8: ("several labels", "one of its labels alone"),
}
"""The scenarios of Liu and Zhao, section 3: what the cell holds, and what its release shows.

A cell whose records share one label may show that label alone (1: its people are exposed), another label alone (2),
several labels (3) or nothing (4). A cell with several labels may show several, the same or not (5), nothing (6), one
label that none of its records has (7), or one of its own labels alone (8: the people with that label are exposed, and
the others are taken to have it). The exact local risk is the probability of 1 or 8; in 2 and 7 the attacker is wrong.
"""
EXPOSING = (1, 8)


@dataclass(frozen=True)
class Scenario:
    """How often one scenario happens: the share of cells, each cell alike, with its standard error over releases.

    >>> [number for number in SCENARIOS if Scenario(number, 0.1, 0.0).exposes]
    [1, 8]
    """

    number: int
    share: float
    standard_error: float

    @property
    def original(self) -> str:
        """What the cell holds."""
        return SCENARIOS[self.number][0]

    @property
    def released(self) -> str:
        """What its release shows."""
        return SCENARIOS[self.number][1]

    @property
    def exposes(self) -> bool:
        """Whether the release shows a label alone that is there."""
        return self.number in EXPOSING


def count_scenarios(n_shown: Integers, right: Flags, homogeneous: Flags) -> Integers:
    """How many cells are in each scenario, in each release: (8, releases).

    ``n_shown`` is the number of labels that each released cell shows, ``right`` whether it shows one alone that is
    there: both (releases, cells); ``homogeneous``: which cells hold one label.

    >>> shown, right = np.array([[1, 1, 2, 0]]), np.array([[True, False, False, False]])
    >>> count_scenarios(shown, right, np.array([True, False, False, True])).ravel().tolist()
    [1, 0, 0, 1, 1, 0, 1, 0]
    """
    several, nothing, alone = n_shown > 1, n_shown == 0, n_shown == 1
    kinds = np.stack([right, alone & ~right, several, nothing])
    same, mixed = (np.count_nonzero(kinds & cells, axis=2) for cells in (homogeneous, ~homogeneous))
    return np.concatenate([same, mixed[[2, 3, 1, 0]]])
