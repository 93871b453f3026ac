"""The attacker who knows how many groups of the table have which counts, and not which groups they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.certainty.count_priors import EmpiricalPrior
from cellrisk.risk.certainty.inferences import (
    TIE,
    ConfidentInferences,
    are_few,
    count_inferences,
    list_releases,
    to_shares,
)
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers

MOST_PAIRS = 20_000_000
"""Pairs of released values that are gone through one by one; more are simulated."""
DRAWS, FEWEST_DRAWS = 20_000, 2_000
MOST_WORK = 2_000_000_000
"""Multiplications."""
SEED = 95


def infer_from_table(
    vectors: LabelledCounts, channel: CountChannel, certainties: Sequence[float]
) -> tuple[ConfidentInferences, ...]:
    """Return the people inferred with each certainty. Exact for two categories or few releases; else simulated.

    The prior is the joint one: a group has vector u with a probability in proportion to the groups c_u that have it,
    and a person of category k is there in proportion to c_u u_k. So P(k | r) is num_k(r) / sum_j num_j(r),
    num_k(r) = sum_u c_u u_k prod_j P(r_j | u_j).
    """
    values = [channel.support(column) for column in vectors.counts.T]
    if vectors.n_levels == 2 and len(values[0]) * len(values[1]) <= MOST_PAIRS:
        return count_inferences(_every_pair(vectors, channel, values), certainties, EmpiricalPrior.name)
    if not are_few(vectors, channel):
        return _simulate(vectors, channel, certainties)
    released, people = (np.concatenate(part) for part in zip(*list_releases(vectors, channel), strict=True))
    distinct, place = np.unique(released, axis=0, return_inverse=True)
    numbers = np.zeros(distinct.shape)
    np.add.at(numbers, place.reshape(-1), people)
    return count_inferences([(numbers, to_shares(numbers))], certainties, EmpiricalPrior.name)


def _every_pair(
    vectors: LabelledCounts, channel: CountChannel, values: Sequence[Integers]
) -> Iterator[tuple[Floats, Floats]]:
    """Two categories: yield num_k at every pair of released values, by two products of matrices, and its share."""
    pmfs = []
    for column, shown in zip(vectors.counts.T, values, strict=True):
        distinct, place = np.unique(column, return_inverse=True)
        pmfs.append(channel.pmf(distinct[:, None], shown)[..., 0][place])
    step = max(1, 16 * NUMBERS_AT_ONCE // len(values[1]))
    for start in range(0, len(values[0]), step):
        part = pmfs[0][:, start : start + step]
        people = [((part * (vectors.cells * own)[:, None]).T @ pmfs[1]).ravel() for own in vectors.counts.T]
        numbers = np.stack(people, axis=1)
        yield numbers, to_shares(numbers)


def _simulate(
    vectors: LabelledCounts, channel: CountChannel, certainties: Sequence[float]
) -> tuple[ConfidentInferences, ...]:
    """Any number of categories: people and releases are drawn, and each group's share is computed from all vectors."""
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
    best = posterior_shares(vectors, channel, channel.draw(vectors.counts[target], generator)).max(axis=1)
    found = []
    for certainty in certainties:
        sure = best >= certainty - TIE
        correct = vectors.n_records * np.where(sure, best, 0.0)
        right, named = float(correct.mean()), vectors.n_records * float(sure.mean())
        error = float(correct.std(ddof=1)) / math.sqrt(draws)
        found.append(ConfidentInferences(certainty, EmpiricalPrior.name, right, right, named, named, error))
    return tuple(found)


def posterior_shares(vectors: LabelledCounts, channel: CountChannel, released: Integers) -> Floats:
    """Return P(category | released group) of a person in each released group: (groups, categories)."""
    distinct = [np.unique(column, return_inverse=True) for column in vectors.counts.T]
    shares = np.empty((len(released), vectors.n_levels))
    step = max(1, 16 * NUMBERS_AT_ONCE // len(vectors))
    for start in range(0, len(released), step):
        few = slice(start, start + step)
        logs = np.broadcast_to(np.log(vectors.cells), (len(released[few]), len(vectors))).copy()
        for (counts, place), shown in zip(distinct, released[few].T, strict=True):
            seen, back = np.unique(shown, return_inverse=True)
            logs += channel.log_pmf(counts[:, None], seen)[..., 0].T[np.ix_(back, place)]
        shares[few] = to_shares(np.exp(logs - logs.max(axis=1, keepdims=True)) @ vectors.counts)
    return shares
