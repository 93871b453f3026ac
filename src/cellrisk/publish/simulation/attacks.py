"""The attackers who read a release, and what they get right.

homogeneity: where a cell shows one label alone, everyone in the cell is taken to have it. plurality: everyone is taken
to have the label with the largest released count, ties split evenly, no guess where nothing shows. proportional: labels
are guessed in proportion to the released counts; the expected share r_k/r is taken, so nothing more is drawn.

Two forms: ``exact`` asks whether a label is shown alone and is there; ``tight`` is the share of the cell's records
whose label is named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellrisk.publish.scenarios import count_scenarios
from cellrisk.system.arrays import Floats, Integers

Key = tuple[str, str, str]
"""Attack, form and weights."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What the attackers got right in each release: sums over cells, so that those of parts of a table add up."""

    shares: dict[Key, Floats]
    """One number a release, for each attack, form and weighting."""
    exposed: Integers
    """People whose value the homogeneity attack reads off correctly."""
    scenarios: Integers
    """(8, releases): cells in each scenario."""


def attack_cells(released: Floats, counts: Floats, own_sizes: Floats, every_attack: bool) -> Outcomes:
    """What do the attackers get right in these cells?

    ``released`` is (levels, releases, cells), ``counts`` the counts behind it, in the same shape or with one release
    for all; ``own_sizes`` the records of the table's cells, by which cells are weighted, whatever their drawn size. A
    cell that was drawn empty has no risk. ``every_attack``: else the homogeneity attack alone.

    >>> counts = np.array([[[3.0, 2.0]], [[1.0, 0.0]]])  # the cells (3, 1) and (2, 0)
    >>> released = np.array([[[4.0, 1.0]], [[0.0, 1.0]]])  # shown as (4, 0) and (1, 1)
    >>> found = attack_cells(released, counts, np.array([4.0, 2.0]), every_attack=True)
    >>> [float(found.shares[attack, "tight", "records"][0]) for attack in ("homogeneity", "plurality", "proportional")]
    [3.0, 4.0, 4.0]
    """
    drawn_sizes = counts.sum(axis=0)
    sizes = np.maximum(drawn_sizes, 1.0)
    n_shown, named = _read_homogeneous(released, counts)
    right = named > 0
    shares = {
        ("homogeneity", "exact", "uniform"): np.count_nonzero(right, axis=1).astype(np.float64),
        ("homogeneity", "exact", "records"): (right * own_sizes).sum(axis=1),
    }
    attacks = {"homogeneity": named}
    if every_attack:
        attacks |= {"plurality": _read_largest(released, counts), "proportional": _read_shares(released, counts)}
    same_sizes = np.array_equal(drawn_sizes, np.broadcast_to(own_sizes, drawn_sizes.shape))
    for attack, correct in attacks.items():
        share = correct / sizes
        shares[attack, "tight", "uniform"] = share.sum(axis=1)
        shares[attack, "tight", "records"] = (correct if same_sizes else share * own_sizes).sum(axis=1)
    homogeneous = (counts > 0).sum(axis=0) == 1
    return Outcomes(shares, np.rint(named.sum(axis=1)).astype(np.int64), count_scenarios(n_shown, right, homogeneous))


def _read_homogeneous(released: Floats, counts: Floats) -> tuple[Integers, Floats]:
    """How many labels each cell shows, and the records of the label that is shown alone; 0 where none is."""
    n_shown: Integers = np.zeros(released.shape[1:], np.int64)
    named: Floats = np.zeros(released.shape[1:])
    for level, count in zip(released, counts, strict=True):
        shown = level > 0
        n_shown += shown
        named += shown * count
    named *= n_shown == 1
    return n_shown, named


def _read_largest(released: Floats, counts: Floats) -> Floats:
    """Records named by the largest released count; those of tied labels are averaged."""
    largest = released.max(axis=0)
    n_tied: Integers = np.zeros(released.shape[1:], np.int64)
    named: Floats = np.zeros(released.shape[1:])
    for level, count in zip(released, counts, strict=True):
        tied = level == largest
        n_tied += tied
        named += tied * count
    named *= largest > 0
    return np.asarray(named / n_tied)


def _read_shares(released: Floats, counts: Floats) -> Floats:
    """Records named on average by a guess in proportion to the released counts."""
    total = released.sum(axis=0)
    named = np.zeros(released.shape[1:])
    for level, count in zip(released, counts, strict=True):
        named += level * count
    return np.asarray(named / np.where(total > 0, total, 1.0))
