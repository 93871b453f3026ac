"""The people whose value an attacker infers with some certainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cellrisk.system.formatting import whole_people

TIE = 1e-12
"""Shares that fall short of a certainty by no more than this have it: that is rounding."""


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
    def people(self) -> str:
        """The people inferred correctly, in words: both ends if they differ in the digits shown.

        >>> ConfidentInferences(0.95, "negbin", 1.2, 1.4, 2, 2).people
        '1 person'
        >>> ConfidentInferences(0.95, "negbin", 12.2, 14.4, 15, 15).people
        '12 to 15 people'
        >>> ConfidentInferences(0.95, "negbin", 0.2, 0.3, 1, 1).people
        'fewer than 1 person'
        """
        return f"{self.number} {'person' if self.number in ('1', 'fewer than 1') else 'people'}"

    @property
    def number(self) -> str:
        """The number of people inferred correctly, in words."""
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
        return found
