"""The people whose value an attacker infers with some certainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.certainty.count_priors import EmpiricalPrior
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers
from cellrisk.system.formatting import whole_people

TIE = 1e-12
"""Shares that fall short of a certainty by no more than this have it: that is rounding."""
MOST_RELEASES = 4_000_000
"""Released vectors of counts that are gone through."""
MOST_PAIRS = 20_000_000
"""Pairs of released values that are gone through one by one; more are simulated."""
DRAWS, FEWEST_DRAWS = 20_000, 2_000
MOST_WORK = 2_000_000_000
"""Multiplications."""
SEED = 95


def odds_against(certainty: float) -> float:
    """Return (1 - tau)/tau: what all other categories may have for one of category k, if k has the share tau."""
    return (1.0 - (certainty - TIE)) / (certainty - TIE)


def most_moved(channel: CountChannel, largest: float) -> float:
    """Return how far noise that has drowned the counts moves the logarithm of a category's odds at most.

    Two counts that differ by d have likelihoods whose ratio is at most e^(d / scale) under noise with exponential
    tails, and e^(10 d / scale) within ten deviations of Gaussian noise; odds move by at most twice that. ``largest`` is
    the largest count that is thought possible: of a prior, e^-30 is left out.
    """
    return 0.0 if channel.infinite[0] else 2.0 * channel.steepest * largest


@dataclass(frozen=True)
class ConfidentInferences:
    """The people whose value the attacker infers with at least a given certainty: expected numbers over releases."""

    certainty: float
    belief: str
    """The name of the prior."""
    right_low: float
    """At least so many people's own value is inferred."""
    right_high: float
    """At most so many people's own value is inferred; equal to ``right_low`` where the figure is exact."""
    named_low: float
    """For at least so many people some value of their group is inferred, theirs or not."""
    named_high: float
    """For at most so many people some value of their group is inferred."""
    error: float | None = None
    """The standard error of ``right``, where it was simulated."""

    @property
    def right(self) -> float:
        return 0.5 * (self.right_low + self.right_high)

    @property
    def named(self) -> float:
        return 0.5 * (self.named_low + self.named_high)

    @property
    def precision(self) -> float | None:
        """The share of inferred values that are correct; None if there are none."""
        return self.right / self.named if self.named > 0 else None

    @property
    def overconfident(self) -> bool:
        """Whether the attacker is correct less often than the prior says: it does not fit this table."""
        return self.precision is not None and self.right_high < (self.certainty - 1e-6) * self.named_low

    @property
    def number(self) -> str:
        """The number of people inferred correctly, in words: both ends if they differ in the digits shown."""
        if round(self.right_low) == round(self.right_high):
            return whole_people(self.right_high)
        return f"{math.floor(self.right_low):,} to {math.ceil(self.right_high):,}"

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of ``certainty`` in JSON."""
        row: dict[str, Any] = {
            "certainty": self.certainty,
            "belief": self.belief,
            "right": self.right,
            "named": self.named,
            "precision": self.precision,
        }
        if self.right_high > self.right_low or self.named_high > self.named_low:
            row |= {"right_ends": [self.right_low, self.right_high], "named_ends": [self.named_low, self.named_high]}
        return row if self.error is None else {**row, "standard_error": self.error}


def to_shares(numbers: Floats) -> Floats:
    """Return each row divided by its sum; 0 if that is 0."""
    total = numbers.sum(axis=1, keepdims=True)
    return np.asarray(numbers / np.where(total > 0, total, 1.0))


def count_inferences(
    parts: Iterable[tuple[Floats | Integers, Floats]], certainties: Sequence[float], prior: str
) -> tuple[ConfidentInferences, ...]:
    """Return the people inferred by an attacker who gives each category of each group a known share. Exact.

    Each of the parts has the people of some groups by category, and the shares: both (groups, categories). A certainty
    is above one half, so one category of a group is inferred at most.
    """
    right, named = np.zeros((2, len(certainties)))
    for people, shares in parts:
        for column, certainty in enumerate(certainties):
            sure = shares >= certainty - TIE
            right[column] += people[sure].sum()
            named[column] += people[sure.any(axis=1)].sum()
    return tuple(
        ConfidentInferences(certainty, prior, correct, correct, claimed, claimed)
        for certainty, correct, claimed in zip(certainties, right.tolist(), named.tolist(), strict=True)
    )


def are_few(vectors: LabelledCounts, channel: CountChannel) -> bool:
    """Return whether all released vectors of all groups can be gone through: exact for any number of categories."""
    if vectors.n_levels > 32 or channel.smooth > 100.0:  # NumPy has no more axes; each count has 4,000 values
        return False
    distinct, which = np.unique(vectors.counts, return_inverse=True)
    sizes = np.array([float(len(channel.support(np.array([count])))) for count in distinct.tolist()])
    return bool(sizes[which.reshape(vectors.counts.shape)].prod(axis=1).sum() <= MOST_RELEASES)


def list_releases(vectors: LabelledCounts, channel: CountChannel) -> Iterator[tuple[Integers, Floats]]:
    """Yield, for each vector of counts, its released vectors and the people expected in each: (releases, categories).

    The people are cells times pmf times the counts of the vector.
    """
    for vector, cells in zip(vectors.counts, vectors.cells.tolist(), strict=True):
        laws = [channel.support(np.array([count])) for count in vector.tolist()]
        pmf: Floats = np.ones(1)
        for count, values in zip(vector.tolist(), laws, strict=True):
            pmf = np.outer(pmf, channel.pmf(np.full(len(values), count), values)[:, 0]).ravel()
        released = np.stack([part.ravel() for part in np.meshgrid(*laws, indexing="ij")], axis=1)
        yield released[pmf > 0], (cells * pmf[:, None] * vector)[pmf > 0]


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
    distinct, which = np.unique(released, axis=0, return_inverse=True)
    numbers = np.zeros(distinct.shape)
    np.add.at(numbers, which.reshape(-1), people)
    return count_inferences([(numbers, to_shares(numbers))], certainties, EmpiricalPrior.name)


def _every_pair(
    vectors: LabelledCounts, channel: CountChannel, values: Sequence[Integers]
) -> Iterator[tuple[Floats, Floats]]:
    """Two categories: yield num_k at every pair of released values, by two products of matrices, and its share."""
    pmfs = []
    for column, shown in zip(vectors.counts.T, values, strict=True):
        distinct, which = np.unique(column, return_inverse=True)
        pmfs.append(channel.pmf(distinct[:, None], shown)[..., 0][which])
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
        got, fix = f"{len(vectors):,} vectors of {vectors.n_levels} labels", "use the belief negbin"
        raise InvalidInput("the table has too many different cells for the belief 'table'", got=got, fix=fix)
    generator = np.random.default_rng(SEED)
    weight = vectors.cells * vectors.sizes
    target = generator.choice(len(vectors), size=draws, p=weight / weight.sum())
    released = channel.draw(vectors.counts[target], generator)
    distinct = [np.unique(column, return_inverse=True) for column in vectors.counts.T]
    best = np.empty(draws)  # the largest share of a category in each released group
    step = max(1, 16 * NUMBERS_AT_ONCE // len(vectors))
    for start in range(0, draws, step):
        few = slice(start, start + step)
        logs = np.broadcast_to(np.log(vectors.cells), (len(released[few]), len(vectors))).copy()
        for (counts, which), shown in zip(distinct, released[few].T, strict=True):
            seen, back = np.unique(shown, return_inverse=True)
            with np.errstate(divide="ignore"):
                logs += np.log(channel.pmf(counts[:, None], seen)[..., 0].T)[np.ix_(back, which)]
        best[few] = to_shares(np.exp(logs - logs.max(axis=1, keepdims=True)) @ vectors.counts).max(axis=1)
    inferences = []
    for certainty in certainties:
        sure = best >= certainty - TIE
        correct = vectors.n_records * np.where(sure, best, 0.0)
        right, named = float(correct.mean()), vectors.n_records * float(sure.mean())
        error = float(correct.std(ddof=1)) / math.sqrt(draws)
        inferences.append(ConfidentInferences(certainty, EmpiricalPrior.name, right, right, named, named, error))
    return tuple(inferences)
