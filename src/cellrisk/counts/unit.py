"""The unit of privacy: how many records of one person count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cellrisk.errors import InvalidInput, argument
from cellrisk.system.checks import require_whole_number
from cellrisk.system.formatting import number_of

MOST_RECORDS = 2**53
"""Up to here every number of records is exact as a floating-point number too."""


@dataclass(frozen=True)
class Unit:
    """What one neighbouring table has more or less: a record, or a person with several.

    >>> Unit(contributions=3, per_group=1, enforced=True).to_dict()
    {'kind': 'person', 'contributions': 3, 'per_group': 1, 'enforced': True}
    >>> Unit().to_dict()
    {'kind': 'record', 'contributions': 1, 'per_group': 1, 'enforced': False}
    """

    contributions: int = 1
    """M: a person has at most so many records."""
    per_group: int | None = None
    """C: at most so many of them in one count; M if it is None."""
    enforced: bool = False
    """Whether records beyond the bound are dropped; if not, the curator asserts it."""

    @staticmethod
    def read(person: object, contributions: int | None, per_group: int | None) -> Unit:
        """Return the unit that a user gives: with a column of people it is enforced, else the curator asserts it."""
        if contributions is not None:
            return Unit(contributions, per_group, enforced=person is not None)
        if per_group is not None:
            fix = f"for example {argument('contributions', 3)}"
            raise InvalidInput("needs the records of a person", option="per_group", fix=fix, code="no-contributions")
        return Unit()

    def __post_init__(self) -> None:
        contributions = require_whole_number("contributions", self.contributions, 1, MOST_RECORDS)
        object.__setattr__(self, "contributions", contributions)
        per_group = contributions if self.per_group is None else require_whole_number("per_group", self.per_group, 1)
        object.__setattr__(self, "per_group", per_group)
        if self.most_in_one > self.contributions:
            what, allowed = "cannot exceed the records of a person", f"from 1 to {self.contributions}"
            raise InvalidInput(what, option="per_group", got=self.per_group, allowed=allowed, code="per-group-range")

    @property
    def most_in_one(self) -> int:
        """C, the most records of a person in one count."""
        return int(self.per_group or self.contributions)

    @property
    def l1(self) -> float:
        """How far one person more or less moves the counts in all: M."""
        return float(self.contributions)

    @property
    def l2(self) -> float:
        """How far one person more or less moves the counts in Euclidean distance.

        The largest norm of a vector v with 0 <= v_j <= C and sum v <= M: as many entries C as fit, and the rest in one,

            sqrt(floor(M/C) C^2 + (M mod C)^2).

        >>> Unit(contributions=4).l2, Unit(contributions=4, per_group=1).l2, Unit(contributions=5, per_group=2).l2
        (4.0, 2.0, 3.0)
        """
        whole, rest = divmod(self.contributions, self.most_in_one)
        return math.sqrt(whole * self.most_in_one**2 + rest**2)

    def describe(self) -> str:
        """Return the unit in a sentence.

        >>> Unit(3, 1, enforced=True).describe()
        'At most 3 records of a person are kept, at most 1 of them in one count.'
        """
        if self.contributions == 1 and not self.enforced:
            return "One record per person is assumed."
        most = number_of(self.contributions, "record")
        in_one = f", at most {self.most_in_one:,} of them in one count" if self.most_in_one < self.contributions else ""
        if self.enforced:
            return f"At most {most} of a person {'is' if self.contributions == 1 else 'are'} kept{in_one}."
        return f"At most {most} per person{in_one}: asserted, not checked."

    def __str__(self) -> str:
        """Return it as a refusal repeats it."""
        sentence = self.describe().removesuffix(".")
        return f"{sentence[:1].lower()}{sentence[1:]}"

    @property
    def kind(self) -> str:
        """Whose presence is hidden: that of a "record" or of a "person"."""
        return "person" if self.enforced or self.contributions > 1 else "record"

    def to_dict(self) -> dict[str, Any]:
        """Return ``unit`` of the JSON."""
        bound = {"contributions": self.contributions, "per_group": self.most_in_one}
        return {"kind": self.kind, **bound, "enforced": self.enforced}

    @staticmethod
    def from_dict(named: Mapping[str, Any]) -> Unit:
        """Return the unit that `to_dict` wrote; refuse anything else.

        >>> Unit.from_dict(Unit(3, enforced=True).to_dict()) == Unit(3, 3, enforced=True)
        True
        """
        unit = Unit(named["contributions"], named["per_group"], named["enforced"])
        if unit.to_dict() != dict(named) or not isinstance(unit.enforced, bool):
            raise InvalidInput("this is not a unit of privacy", code="unit")
        return unit
