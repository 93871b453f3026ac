"""What the attacker names who knows how many cells of the table have which counts, and not which cells they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.risk.certainty.beliefs import TableBelief
from cellrisk.risk.certainty.channel import Channel
from cellrisk.risk.certainty.named_people import TIE, NamedPeople, tell_exactly
from cellrisk.system.arrays import Floats, Integers

MOST_PAIRS = 20_000_000
"""Pairs of released values that are gone through one by one; more are simulated."""
DRAWS, FEWEST_DRAWS = 20_000, 2_000
MOST_WORK = 2_000_000_000
NUMBERS_AT_ONCE = 1 << 22
SEED = 95


def name_by_table(vectors: LabelledCounts, channel: Channel, certainties: Sequence[float]) -> tuple[NamedPeople, ...]:
    """How many people's value does the attacker name? Exact for two labels and few values; else simulated.

    The prior is the joint one: a cell has vector u with a probability in proportion to the cells c_u that have it, and
    a person of label k lies there in proportion to c_u u_k. So P(k | r) is num_k(r) / sum_j num_j(r), num_k(r) = sum_u
    c_u u_k prod_j P(r_j | u_j).
    """
    values = [channel.values(column) for column in vectors.counts.T]
    if vectors.n_levels == 2 and len(values[0]) * len(values[1]) <= MOST_PAIRS:
        return _name_exactly(vectors, channel, values, certainties)
    return _simulate(vectors, channel, certainties)


def _name_exactly(
    vectors: LabelledCounts, channel: Channel, values: Sequence[Integers], certainties: Sequence[float]
) -> tuple[NamedPeople, ...]:
    """Two labels: num_k at every pair of released values, by two products of matrices."""
    chances = []
    for column, shown in zip(vectors.counts.T, values, strict=True):
        distinct, place = np.unique(column, return_inverse=True)
        chances.append(channel.chance(distinct, shown)[place])
    right, named = [0.0] * len(certainties), [0.0] * len(certainties)
    step = max(1, NUMBERS_AT_ONCE // len(values[1]))
    for start in range(0, len(values[0]), step):
        part = chances[0][:, start : start + step]
        numbers = [(part * (vectors.cells * own)[:, None]).T @ chances[1] for own in vectors.counts.T]
        total = numbers[0] + numbers[1]
        for number in numbers:
            for row, certainty in enumerate(certainties):
                sure = number >= (certainty - TIE) * total
                right[row] += float(number[sure].sum())
                named[row] += float(total[sure].sum())
    return tell_exactly(certainties, TableBelief.name, right, named)


def _simulate(vectors: LabelledCounts, channel: Channel, certainties: Sequence[float]) -> tuple[NamedPeople, ...]:
    """Any number of labels: people and releases are drawn, and each cell's share is computed from all vectors."""
    draws = min(DRAWS, MOST_WORK // (len(vectors) * vectors.n_levels))
    if draws < FEWEST_DRAWS:
        raise InvalidInput(
            "the table has too many different cells for the belief 'table'",
            got=f"{len(vectors):,} vectors of {vectors.n_levels} labels",
            fix="use the belief negbin",
        )
    generator = np.random.default_rng(SEED)
    weight = vectors.cells * vectors.sizes
    target = generator.choice(len(vectors), size=draws, p=weight / weight.sum())
    noise = np.rint(channel.noise.sample(generator, (draws, vectors.n_levels)))
    released = np.maximum(vectors.counts[target] + noise.astype(np.int64), channel.zero)
    shares = find_shares(vectors, channel, released)
    best = shares.max(axis=1)
    found = []
    for certainty in certainties:
        sure = best >= certainty - TIE
        rightly = vectors.n_records * np.where(sure, best, 0.0)
        right, named = float(rightly.mean()), vectors.n_records * float(sure.mean())
        error = float(rightly.std(ddof=1)) / math.sqrt(draws)
        found.append(NamedPeople(certainty, TableBelief.name, right, right, named, named, error))
    return tuple(found)


def find_shares(vectors: LabelledCounts, channel: Channel, released: Integers) -> Floats:
    """P(label | released cell) of a person in each released cell: (cells, labels), from all vectors of the table."""
    if len(released) * len(vectors) * vectors.n_levels > MOST_WORK:
        raise InvalidInput(
            "the table has too many different cells for the belief 'table'",
            got=f"{len(vectors):,} vectors of {vectors.n_levels} labels, {len(released):,} released ones",
            fix="use the belief negbin",
        )
    distinct = [np.unique(column, return_inverse=True) for column in vectors.counts.T]
    shares = np.empty((len(released), vectors.n_levels))
    step = max(1, NUMBERS_AT_ONCE // len(vectors))
    for start in range(0, len(released), step):
        few = slice(start, start + step)
        logs = np.broadcast_to(np.log(vectors.cells), (len(released[few]), len(vectors))).copy()
        for (counts, place), shown in zip(distinct, released[few].T, strict=True):
            seen, back = np.unique(shown, return_inverse=True)
            with np.errstate(divide="ignore"):
                logs += np.log(channel.chance(counts, seen)).T[np.ix_(back, place)]
        if not np.isfinite(logs.max(axis=1)).all():
            raise InvalidInput(
                "the release is impossible under this belief: no cell of the table could have been released so",
                fix="give the mechanism that made the release, or use the belief negbin",
            )
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        numbers = weights @ vectors.counts
        shares[few] = numbers / numbers.sum(axis=1, keepdims=True)
    return shares
