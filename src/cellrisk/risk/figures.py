"""The three figures to decide by: caused by one's own record, certain to an attacker, and the ceiling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.caused import Caused, count_caused
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.certainty import (
    USUAL_BELIEF,
    USUAL_CERTAINTY,
    Belief,
    NamedPeople,
    find_certainty,
    read_belief,
    read_certainties,
    why_unknown,
)
from cellrisk.risk.certainty.named_people import say_named
from cellrisk.risk.people import People
from cellrisk.system.text import about_people, claim, number_of, of_people, percent

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

GIVEN_AWAY = {
    "homogeneity": "have their {sensitive} read off the table correctly",
    "plurality": "have their {sensitive} guessed by naming the largest count of their cell",
    "proportional": "have their {sensitive} guessed by a draw in proportion to the counts of their cell",
}
"""What an attack does to people, after "would" or "to"."""


@dataclass(frozen=True)
class Attacker:
    """An attacker who does the mathematics: which certainties count, and what he believes before the release."""

    certainties: tuple[float, ...] = (USUAL_CERTAINTY,)
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF
    """One belief, or one for each sensitive attribute by name."""

    @staticmethod
    def of(certainty: float | Sequence[float], belief: Any) -> Attacker:
        return Attacker(read_certainties(certainty), belief)

    def check(self, attribute: Attribute) -> None:
        """Refuse a belief that does not fit the attribute, before anything is estimated."""
        given = self.belief.get(attribute.name, USUAL_BELIEF) if isinstance(self.belief, Mapping) else self.belief
        if why_unknown(attribute) is None and not (isinstance(given, str) and given == USUAL_BELIEF):
            self.believe(attribute)

    def believe(self, attribute: Attribute) -> Belief:
        """What he believes of one sensitive attribute."""
        given = self.belief.get(attribute.name, USUAL_BELIEF) if isinstance(self.belief, Mapping) else self.belief
        return read_belief(given, attribute.levels, attribute.profiles.n_cells)


@dataclass(frozen=True)
class DecisionFigures:
    """What to decide by, of one sensitive attribute under one mechanism."""

    sensitive: str
    attack: str
    mechanism: Mechanism
    caused: Caused
    certainty: tuple[NamedPeople, ...]
    """Ascending; empty where it cannot be told."""
    unknown: str | None
    """Why it cannot be told."""
    belief: Belief | None
    ceiling: Ceiling

    def sentence(self, chance_share: float) -> str:
        """The three figures, each with what it means, for somebody who reads nothing else."""
        mechanism, caused = self.mechanism, self.caused
        spread = f"; {caused.spread}" if caused.spread else ""
        given_away = GIVEN_AWAY[self.attack].format(sensitive=self.sensitive)
        parts = [
            f"At {mechanism.guarantee}, {of_people(caused.people, caused.records, spread)} would {given_away} only "
            f"because their own record is in it; "
            f"{about_people(caused.exposed)} ({percent(caused.exposed / caused.records)}) would at all, and "
            f"{percent(chance_share)} {mechanism.by_chance}."
        ]
        if self.certainty:
            parts.append(say_named(self.sensitive, self.certainty[-1].people, self.certainty[-1].certainty))
        return " ".join([*parts, self.ceiling.of_two])

    def as_chosen(self) -> DecisionFigures:
        """The same for an epsilon that was chosen from the data: what one record adds at most is then not stated."""
        return replace(self, ceiling=replace(self.ceiling, chosen=True))

    def describe_certainty(self) -> str:
        """What the attacker names, in a sentence for each certainty."""
        if not self.certainty:
            return f"What an attacker could be sure of is not computed: {self.unknown}."
        lines = []
        for row in self.certainty:
            sure = f"{100 * row.certainty:g}%"
            if row.precision is None or row.named_high < 0.5:
                some = "No" if row.precision is None else "Hardly any"
                lines.append(f"{some} {self.sensitive} would be named with {sure} certainty or more.")
                continue
            error = "" if row.error is None else f" (standard error {row.error:.2g}, simulated)"
            bold = ", less often than he believes: overconfident" if row.overconfident else ""
            lines.append(
                f"With {sure} certainty or more: {row.people} named rightly{error}, of {round(row.named):,} "
                f"named; right {percent(row.precision)} of the time{bold}."
            )
        believed = "" if self.belief is None else f"The attacker's belief: {self.belief.describe()}."
        return "\n".join([*lines, believed])

    def describe_bounds(self) -> str:
        """What the guarantee alone says of the caused figure."""
        this, any_kind = math.ceil(self.caused.bound), math.ceil(self.caused.cap)
        if this >= any_kind:  # a guessing attack is often right, so that its own bound says less
            most = number_of(any_kind, "person")
            return f"By the guarantee alone, no attack gives away more than {most} because of their own records."
        return (
            f"By the guarantee alone, this attack gives away at most {number_of(this, 'person')} because "
            f"of their own records, and no attack of any kind more than {any_kind:,}."
        )

    def to_dict(self) -> dict[str, Any]:
        """One entry of ``decision`` in JSON."""
        found: dict[str, Any] = {
            "sensitive": self.sensitive,
            "caused": self.caused.to_dict(),
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": self.ceiling.to_dict(),
        }
        if self.unknown is not None:
            found["certainty_unknown"] = self.unknown
        if self.belief is not None:
            found["belief"] = self.belief.to_dict()
        return found


def say_tables(mechanism: Mechanism, tables: int) -> list[str]:
    """What to say where several sensitive attributes are so many tables about the same people."""
    if tables < 2:
        return []
    delta = "" if mechanism.pure else f" and delta {claim(tables * mechanism.delta)}"
    return [
        f"Each sensitive attribute is a table of its own about the same people: the {tables} tables cost epsilon "
        f"{claim(tables * mechanism.epsilon)}{delta} together. The worst case above is for one of them alone."
    ]


def find_figures(
    attribute: Attribute, mechanism: Mechanism, people: People, attack: str, attacker: Attacker
) -> DecisionFigures:
    """The three figures of one sensitive attribute; ``people`` are those whom the attack exposes."""
    unknown = why_unknown(attribute)
    belief = None if unknown else attacker.believe(attribute)
    certainty: tuple[NamedPeople, ...] = ()
    if belief is not None:
        certainty = find_certainty(attribute, mechanism.channel, attacker.certainties, belief)
    return DecisionFigures(
        attribute.name,
        attack,
        mechanism,
        count_caused(attribute.profiles, mechanism, people.mean, attack),
        certainty,
        unknown,
        belief,
        ceiling(mechanism, labels=attribute.n_levels),
    )
