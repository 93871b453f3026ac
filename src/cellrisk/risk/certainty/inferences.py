"""The people whose value an attacker infers with some certainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.channel import CountChannel
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.formatting import whole_people

TIE = 1e-12
"""Shares that fall short of a certainty by no more than this have it: that is rounding."""
MOST_RELEASES = 4_000_000
"""Released vectors of counts that are gone through."""


def odds_against(certainty: float) -> float:
    """Return (1 - tau)/tau: what all other categories may have for one of category k, if k has the share tau."""
    return (1.0 - (certainty - TIE)) / (certainty - TIE)


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
        """The number of people inferred correctly, in words: both ends if they differ in the digits shown.

        >>> ConfidentInferences(0.95, "negbin", 12.2, 14.4, 15, 15).number
        '12 to 15'
        >>> ConfidentInferences(0.95, "negbin", 0.2, 0.3, 1, 1).number
        'fewer than 1'
        """
        if round(self.right_low) == round(self.right_high):
            return whole_people(self.right_high)
        return f"{math.floor(self.right_low):,} to {math.ceil(self.right_high):,}"

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of ``certainty`` in JSON."""
        found: dict[str, Any] = {
            "certainty": self.certainty,
            "belief": self.belief,
            "right": self.right,
            "named": self.named,
            "precision": self.precision,
        }
        if self.right_high > self.right_low or self.named_high > self.named_low:
            found |= {"right_ends": [self.right_low, self.right_high], "named_ends": [self.named_low, self.named_high]}
        return found if self.error is None else {**found, "standard_error": self.error}


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
        for place, certainty in enumerate(certainties):
            sure = shares >= certainty - TIE
            right[place] += people[sure].sum()
            named[place] += people[sure.any(axis=1)].sum()
    return tuple(
        ConfidentInferences(certainty, prior, correct, correct, claimed, claimed)
        for certainty, correct, claimed in zip(certainties, right.tolist(), named.tolist(), strict=True)
    )


def are_few(vectors: LabelledCounts, channel: CountChannel) -> bool:
    """Return whether all released vectors of all groups can be gone through: exact for any number of categories."""
    if vectors.n_levels > 32 or channel.smooth > 100.0:  # NumPy has no more axes; each count has 4,000 values
        return False
    distinct, place = np.unique(vectors.counts, return_inverse=True)
    sizes = np.array([float(len(channel.support(np.array([count])))) for count in distinct.tolist()])
    return bool(sizes[place.reshape(vectors.counts.shape)].prod(axis=1).sum() <= MOST_RELEASES)


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
