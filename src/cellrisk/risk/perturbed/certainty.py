"""What an attacker can be sure of who knows the rows of a perturbation: over all that may be published, or in hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.certainty import Belief, NamedPeople, NegativeBinomial, why_unknown
from cellrisk.risk.certainty.beliefs import CountBelief
from cellrisk.risk.certainty.named_people import name_where_sure
from cellrisk.system.arrays import Floats, Integers

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

MOST_OUTCOMES = 4_000_000
"""The most published vectors that are gone through for what an attacker can be sure of."""
MOST_COUNTS = 2_000_000
"""Counts that an attacker believes in, and that are gone through."""


def why_unsure(attribute: Attribute, perturbation: Perturbation, belief: Belief | None = None) -> str | None:
    """Why it cannot be told what an attacker could be sure of; None where it can."""
    vectors = attribute.vectors
    if vectors is None or why_unknown(attribute) is not None:
        return why_unknown(attribute)
    lengths = {count: len(perturbation.row(count)[0]) for count in np.unique(vectors.counts).tolist()}
    sizes = [math.prod(lengths[count] for count in vector) for vector in vectors.counts.tolist()]
    if sum(sizes) > MOST_OUTCOMES:
        return "too many labels to go through all that may be published"
    if isinstance(belief, NegativeBinomial) and perturbation.period:
        reach = max(believed.last_likely(50.0) for believed in belief.by_label)
        if max(reach, int(vectors.counts.max())) > MOST_COUNTS:
            return "counts are too large to go through all that the attacker believes in"
    return None


def find_perturbed_certainty(
    attribute: Attribute, perturbation: Perturbation, certainties: Sequence[float], belief: Belief
) -> tuple[NamedPeople, ...]:
    """How many people's value is named with each certainty, rightly or not, over everything that may be published.

    As `find_certainty`, with rows in place of noise: w_k(r) = sum n pi_k(n) P(n -> r) / sum pi_k(n) P(n -> r), which
    need not rise with r; the belief "table" has the joint law of the table's vectors in the place of pi. Exact.
    """
    vectors, unsure = attribute.vectors, why_unsure(attribute, perturbation, belief)
    if vectors is None or unsure is not None:
        raise InvalidInput(f"no certainty can be told for '{attribute.name}'", got=unsure or "")
    return name_where_sure(_outcomes(vectors, perturbation, belief), certainties, belief.name)


def _outcomes(vectors: LabelledCounts, perturbation: Perturbation, belief: Belief) -> Iterator[tuple[Floats, Floats]]:
    """All that may be published: the people expected behind each label of it, and what the attacker gives each."""
    if isinstance(belief, NegativeBinomial):
        behind = _expect_all(perturbation, belief, vectors)
        for vector, cells in zip(vectors.counts, vectors.cells.tolist(), strict=True):
            published, chance = _publish(perturbation, vector)
            yield cells * chance[:, None] * vector, share_behind(behind, published)
        return
    published, people = _add_up(vectors, perturbation)
    yield people, people / people.sum(axis=1, keepdims=True)


def _publish(perturbation: Perturbation, vector: Integers) -> tuple[Integers, Floats]:
    """Every vector that a cell may be published as, and its probability."""
    rows = [perturbation.row(int(count)) for count in vector]
    values = np.meshgrid(*(values for values, _ in rows), indexing="ij")
    chance: Floats = np.ones(1)
    for _, chances in rows:
        chance = np.outer(chance, chances).ravel()
    return np.stack([each.ravel() for each in values], axis=1), chance


def _add_up(vectors: LabelledCounts, perturbation: Perturbation) -> tuple[Integers, Floats]:
    """num_k(r) = sum_v c_v v_k prod_j P(v_j -> r_j) for every r that may be published, each r once."""
    parts = [_publish(perturbation, vector) for vector in vectors.counts]
    weights = [
        cells * chance[:, None] * vector
        for (_, chance), vector, cells in zip(parts, vectors.counts, vectors.cells.tolist(), strict=True)
    ]
    distinct, place = np.unique(np.concatenate([values for values, _ in parts]), axis=0, return_inverse=True)
    people = np.zeros((len(distinct), vectors.n_levels))
    np.add.at(people, place.reshape(-1), np.concatenate(weights))
    possible = people.sum(axis=1) > 0
    return distinct[possible], people[possible]


def share_behind(behind: Sequence[Mapping[int, float]], published: Integers) -> Floats:
    """What an attacker gives each label of each published vector: w_k(r_k) / sum_j w_j(r_j); 0 where nobody is."""
    expected = np.empty(published.shape)
    for label, (known, column) in enumerate(zip(behind, published.T, strict=True)):
        values, place = np.unique(column, return_inverse=True)
        expected[:, label] = np.array([known.get(value, 0.0) for value in values.tolist()])[place.reshape(-1)]
    total = expected.sum(axis=1, keepdims=True)
    return np.asarray(expected / np.where(total > 0, total, 1.0))


def name_published(
    attribute: Attribute,
    perturbation: Perturbation,
    certainties: Sequence[float],
    belief: Belief,
    original: Integers,
    published: Integers,
) -> tuple[NamedPeople, ...]:
    """People named for one publication in hand: (cells, labels) true counts, and what was published of them. Exact.

    Over many publications, the means of these figures are those of `find_perturbed_certainty`.
    """
    vectors, unsure = attribute.vectors, why_unsure(attribute, perturbation, belief)
    if vectors is None or unsure is not None:
        raise InvalidInput(f"no certainty can be told for '{attribute.name}'", got=unsure or "")
    distinct, place = np.unique(published, axis=0, return_inverse=True)
    if isinstance(belief, NegativeBinomial):
        shares = share_behind(_expect_all(perturbation, belief, vectors), distinct)
    else:
        shares = np.zeros(distinct.shape)
        known, people = _add_up(vectors, perturbation)
        at = {tuple(row): number for number, row in enumerate(known.tolist())}
        for number, row in enumerate(distinct.tolist()):
            if tuple(row) in at:
                shares[number] = people[at[tuple(row)]] / people[at[tuple(row)]].sum()
    return name_where_sure([(original, shares[place.reshape(-1)])], certainties, belief.name)


def _expect_all(
    perturbation: Perturbation, belief: NegativeBinomial, vectors: LabelledCounts
) -> list[dict[int, float]]:
    return [
        expect_behind(perturbation, believed, int(column.max()))
        for believed, column in zip(belief.by_label, vectors.counts.T, strict=True)
    ]


def expect_behind(perturbation: Perturbation, believed: CountBelief, largest: int) -> dict[int, float]:
    """How many people the attacker expects behind each published value."""
    if believed.shape == 0:
        return {}
    end = max(math.ceil(believed.last_likely(50.0)), largest)
    if not perturbation.period:
        end = min(end, perturbation.last)
    logs = believed.log_chance(np.arange(end + 1.0))
    prior = np.exp(logs - logs.max())
    top: dict[int, float] = {}
    bottom: dict[int, float] = {}
    for count, weight in enumerate(prior.tolist()):
        values, chances = perturbation.row(count)
        for value, chance in zip(values.tolist(), chances.tolist(), strict=True):
            top[value] = top.get(value, 0.0) + count * weight * chance
            bottom[value] = bottom.get(value, 0.0) + weight * chance
    return {value: top[value] / total if total > 0 else float(value) for value, total in bottom.items()}
