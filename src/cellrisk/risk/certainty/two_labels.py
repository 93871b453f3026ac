"""How likely the attacker names each label of a cell with two labels: exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.risk.attacks.lattice import split_near
from cellrisk.risk.certainty.channel import NUMBERS_AT_ONCE, Channel
from cellrisk.risk.certainty.named_people import TIE
from cellrisk.system.arrays import Floats, Integers

COUNTS_AT_ONCE = 128
MOST_NUMBERS = 1 << 23
SMALL_PRODUCT, SMALL_SUM = 1 << 18, 1 << 27
"""Products of matrices with fewer multiplications are done by one thread; sums that are short enough are made of such:
threads that wait for each other on a busy machine cost more than they save."""


def odds_against(certainty: float) -> float:
    """(1 - tau)/tau: what all other labels may have for one of label k, where k has the share tau."""
    return (1.0 - (certainty - TIE)) / (certainty - TIE)


def name_two(
    vectors: LabelledCounts, channel: Channel, behind: Sequence[Floats], certainties: Sequence[float]
) -> Floats:
    """P(share of label k is at least the certainty), for each vector, label and certainty: (vectors, 2, certainties).

    ``behind``: of each label, the people expected behind each of its values. Label k is named where
    w_j(v_j) <= w_k(v_k) (1 - tau)/tau, so with c(v) the last value v' of the other label that keeps w_j(v') below it,
    the probability is sum_v P(v | n_k) P(v_j <= c(v) | n_j).
    """
    found = np.zeros((len(vectors), 2, len(certainties)))
    values = [channel.values(vectors.counts[:, label]) for label in (0, 1)]
    for label in (0, 1):
        own, other = vectors.counts[:, label], vectors.counts[:, 1 - label]
        cuts = []
        for certainty in certainties:
            place = np.searchsorted(behind[1 - label], behind[label] * odds_against(certainty), side="right") - 1
            cuts.append(np.where(place >= 0, values[1 - label][np.maximum(place, 0)], channel.zero - 1))
        counts = np.unique(own)
        at_once = max(1, min(COUNTS_AT_ONCE, MOST_NUMBERS // (2 * channel.reach + 1)))
        for few in split_near(counts, channel.reach, at_once):
            rows = np.flatnonzero((own >= counts[few][0]) & (own <= counts[few][-1]))
            rest, place = np.unique(other[rows], return_inverse=True)
            first, last = channel.window(int(counts[few][0]))[0], channel.window(int(counts[few][-1]))[1]
            inside = slice(*np.searchsorted(values[label], [first, last + 1]))
            # Before a certain value, which differs by certainty, the label is never named.
            starts = [inside.start + int(np.searchsorted(cut[inside], channel.zero)) for cut in cuts]
            earliest = min(starts)
            chance = channel.chance(counts[few], values[label][earliest : inside.stop])
            row = np.searchsorted(counts[few], own[rows])
            for number, (cut, start) in enumerate(zip(cuts, starts, strict=True)):
                if start < inside.stop:
                    pairs = _pair(chance[:, start - earliest :], cut[start : inside.stop], rest, channel)
                    found[rows, label, number] = pairs[row, place]
    return found


def _pair(chance: Floats, cuts: Integers, rest: Integers, channel: Channel) -> Floats:
    """sum_v P(v | n) P(v' <= cut(v) | m) for each count n of a label and m of the other: (counts, rest)."""
    total = np.zeros((len(chance), len(rest)))
    step = max(1, NUMBERS_AT_ONCE // len(rest))
    if total.size * len(cuts) <= SMALL_SUM:
        step = max(1, min(step, SMALL_PRODUCT // max(total.size, 1)))
    for start in range(0, len(cuts), step):
        few = slice(start, start + step)
        total += chance[:, few] @ channel.at_most(cuts[few, None] - rest)
    return total
