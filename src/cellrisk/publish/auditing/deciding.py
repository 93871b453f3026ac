"""The figures to decide by, of a release in hand: who stands alone as 1, and what an attacker can be sure of."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.counting import MOST_LABELS
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.publish.auditing.comparison import TableComparison
from cellrisk.risk.attacks.released import first_value
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.certainty import Belief, NamedPeople
from cellrisk.risk.figures import Attacker
from cellrisk.system.arrays import Integers
from cellrisk.system.text import percent
from cellrisk.system.words import MechanismName

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

USUAL_FIRST = 1
NAME_IT = "name it with mechanism= and epsilon= (--mechanism, --epsilon)"


@dataclass(frozen=True)
class MadeBy:
    """How a release was made, as far as that is known."""

    mechanism: Mechanism | None = None
    clamped: bool | None = None
    """Whether counts below the threshold were set to 0; None where that is to be seen from the counts."""
    adjusted: bool = False
    """Whether counts were made to add up to others after the noise."""
    records: bool = False
    """Whether it holds records, and not counts."""
    contradicted: bool = False
    """Whether another mechanism was given than the one that the release itself names."""

    @staticmethod
    def of(released: Any) -> MadeBy:
        """What the answer of `release`, or the description beside its file, says."""
        from cellrisk.publish.releasing.release_result import Release
        from cellrisk.publish.releasing.saving import read_description

        if isinstance(released, Release):
            return MadeBy(released.mechanism, released.clamp, released.parents is not None)
        described = read_description(released) if isinstance(released, str | os.PathLike) else None
        if described is None:
            return MadeBy()
        try:
            words = ("epsilon", "delta", "neighbours", "threshold")
            said = {name: described["mechanism"][name] for name in words if name in described["mechanism"]}
            pure = not said.get("delta")
            named = read_mechanism(described["mechanism"]["name"], **({**said, "delta": None} if pure else said))
            return MadeBy(named, bool(described["clamp"]), "parents" in described)
        except (KeyError, TypeError, ValueError):
            return MadeBy()

    def told(self, mechanism: Mechanism | MechanismName | None, beside: dict[str, Any]) -> MadeBy:
        """The same by the mechanism that was given, as an object or as its name with its epsilon beside it.

        A release that says itself how it was made is believed.
        """
        if mechanism is None and all(value is None for value in beside.values()):
            return self
        given = read_mechanism(USUAL_MECHANISM if mechanism is None else mechanism, **beside)
        if self.mechanism is None:
            return MadeBy(given, self.clamped, self.adjusted)
        return replace(self, contradicted=given != self.mechanism)


@dataclass(frozen=True)
class FiguresInHand:
    """What to decide by, of one release: numbers of people, and not expected ones."""

    sensitive: str
    records: int
    lone: int
    """People whose value their cell shows alone, as the smallest count that is released."""
    lone_cells: int
    smallest: int
    """The smallest count that is released: 1, but for a threshold."""
    mechanism: Mechanism | None
    """None where it is not known."""
    certainty: tuple[NamedPeople, ...]
    """Ascending; empty where it cannot be told."""
    unknown: str | None
    """Why it cannot be told."""
    belief: Belief | None
    ceiling: Ceiling | None
    """None where the mechanism is not known."""

    @property
    def sentence(self) -> str:
        """The figures, each with what it means."""
        told = f"Of those given away, {self.lone:,} stand behind a count of {self.smallest} that is shown alone"
        if self.mechanism is None:
            return f"{told}."
        parts = [f"{told}: without their own record each would have been safe from that."]
        if self.certainty:
            surest = self.certainty[-1]
            parts.append(
                f"Given these counts, somebody who knows the method and does the mathematics names the "
                f"{self.sensitive} of {surest.people} people rightly and with at least {100 * surest.certainty:g}% "
                "certainty."
            )
        return " ".join(parts)

    def describe_certainty(self) -> str:
        """What the attacker names, in a sentence for each certainty."""
        if not self.certainty:
            return f"What an attacker can be sure of is not computed: {self.unknown}."
        lines = []
        for row in self.certainty:
            sure = f"{100 * row.certainty:g}%"
            if row.precision is None:
                lines.append(f"No {self.sensitive} is named with {sure} certainty or more.")
                continue
            lines.append(
                f"With {sure} certainty or more: {row.people} people named rightly, of {round(row.named):,} named; "
                f"right {percent(row.precision)} of the time."
            )
        believed = "" if self.belief is None else f"The attacker's belief: {self.belief.describe()}."
        return "\n".join([*lines, believed, *([] if self.ceiling is None else [self.ceiling.of_two])])

    def to_dict(self) -> dict[str, Any]:
        """What stands under ``decision`` in JSON."""
        found: dict[str, Any] = {
            "sensitive": self.sensitive,
            "caused": {
                "people": self.lone,
                "share": self.lone / self.records,
                "cells": self.lone_cells,
                "shown_as": self.smallest,
            },
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
        }
        if self.unknown is not None:
            found["certainty_unknown"] = self.unknown
        if self.belief is not None:
            found["belief"] = self.belief.to_dict()
        return found


def decide_in_hand(attribute: Attribute, both: TableComparison, made: MadeBy, attacker: Attacker) -> FiguresInHand:
    """Who stands alone as 1, and what can an attacker be sure of who has these counts?

    Under noise that is added to each count, a person is given away because of their own record if the cell shows their
    label alone, and as the smallest value T that is released: over many releases their mean is the caused figure of
    `assess`. The certainty is that of `cellrisk.risk.certainty.in_hand`.
    """
    smallest = USUAL_FIRST if made.mechanism is None else first_value(made.mechanism.threshold)
    alone = (both.n_shown == 1) & (both.shown_sizes == smallest)
    unknown = _why_unknown(attribute, both, made)
    belief: Belief | None = None
    certainty: tuple[NamedPeople, ...] = ()
    if unknown is None and made.mechanism is not None:
        from cellrisk.risk.certainty.in_hand import name_in_hand

        belief = attacker.believe(attribute)
        original, released = _spread(both, attribute.n_levels)
        clamped = _is_clamped(both, made, smallest)
        certainty = name_in_hand(
            original, released, made.mechanism, attacker.certainties, belief, attribute.vectors, clamped=clamped
        )
    return FiguresInHand(
        attribute.name,
        int(both.n_records),
        int(both.named[alone].sum()),
        int((alone & (both.named > 0)).sum()),
        smallest,
        made.mechanism,
        certainty,
        unknown,
        belief,
        None if made.mechanism is None else ceiling(made.mechanism, labels=max(attribute.n_levels, 2)),
    )


def _why_unknown(attribute: Attribute, both: TableComparison, made: MadeBy) -> str | None:
    """Why it cannot be told what an attacker can be sure of; None where it can."""
    if made.records:
        return "the release holds records, and not counts with noise"
    if made.mechanism is None:
        return f"the mechanism of the release is not known; {NAME_IT}"
    if made.adjusted:
        return "the counts were made to add up to others after the noise"
    if (both.released != np.floor(both.released)).any():
        return "the released counts are not whole numbers"
    if attribute.n_levels > MOST_LABELS:
        return f"more than {MOST_LABELS} labels"
    return None


def _is_clamped(both: TableComparison, made: MadeBy, smallest: int) -> bool:
    """Whether counts below the smallest released one are 0; refuses a release that this mechanism cannot have made."""
    below = both.released[(both.released != 0) & (both.released < smallest)]
    negative = bool((below < 0).any())
    if (below > 0).any() or (negative and smallest > USUAL_FIRST):
        raise InvalidInput(
            "the release has counts below the smallest that this mechanism releases",
            got=f"{len(below):,} of {len(both.released):,} below {smallest}",
            fix="give the threshold that the release was made with",
        )
    return not negative if made.clamped is None else made.clamped


def _spread(both: TableComparison, labels: int) -> tuple[Integers, Integers]:
    """The true and the released counts of every cell that holds anybody: (cells, labels). What is not listed is 0."""
    held = np.flatnonzero(both.sizes > 0)
    row = np.full(len(both.codes), -1)
    row[held] = np.arange(len(held))
    kept = row[both.cell] >= 0
    place = row[both.cell[kept]] * labels + both.level[kept]
    found = []
    for counts in (both.original, both.released):
        spread = np.zeros(len(held) * labels, np.int64)
        spread[place] = counts[kept].astype(np.int64)
        found.append(spread.reshape(len(held), labels))
    return found[0], found[1]
