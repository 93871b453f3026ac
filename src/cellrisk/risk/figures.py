"""The three figures to decide by: caused by one's own record, certain to an attacker, and the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.attackers.values import NamedValues
from cellrisk.risk.caused import Caused, count_caused
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.certainty import (
    USUAL_BELIEF,
    USUAL_CERTAINTY,
    ConfidentInferences,
    CountPrior,
    find_certainty,
    read_belief,
    read_certainties,
    why_unknown,
)
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from cellrisk.risk.people import People

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute


@dataclass(frozen=True)
class Attacker:
    """The informed attacker: which certainties count, and the prior."""

    certainties: tuple[float, ...] = (USUAL_CERTAINTY,)
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF
    """One belief, or one for each sensitive attribute by name."""
    values: NamedValues = field(default_factory=NamedValues)
    """Which values are harmful, and which sets of them are also assessed as one."""

    @staticmethod
    def of(certainty: float | Sequence[float], belief: Any, values: NamedValues | None = None) -> Attacker:
        return Attacker(read_certainties(certainty), belief, values or NamedValues())

    def to_dict(self) -> dict[str, Any]:
        """What a limit on what it learns depends on, in JSON."""
        found: dict[str, Any] = {"certainty": self.certainties[-1], "belief": self.belief}
        named = {"harmful": list(self.values.harmful), "unions": list(self.values.unions)}
        return {**found, **{name: values for name, values in named.items() if values}}

    def _given(self, attribute: Attribute) -> str | CountPrior:
        return self.belief.get(attribute.name, USUAL_BELIEF) if isinstance(self.belief, Mapping) else self.belief

    def check(self, attribute: Attribute) -> None:
        """Refuse a belief that does not fit the attribute, before anything is estimated."""
        given = self._given(attribute)
        if why_unknown(attribute) is None and not (isinstance(given, str) and given == USUAL_BELIEF):
            self.believe(attribute)

    def believe(self, attribute: Attribute) -> CountPrior:
        """Return the prior for one sensitive attribute."""
        return read_belief(self._given(attribute), attribute.levels, attribute.profiles.n_cells)

    def infer(self, attribute: Attribute, channel: CountChannel) -> tuple[ConfidentInferences, ...]:
        """Return the people inferred with each certainty; empty if the categories of the groups are not kept."""
        if why_unknown(attribute) is not None:
            return ()
        return find_certainty(attribute, channel, self.certainties, self.believe(attribute))

    def tables(self, attribute: Attribute, channel: CountChannel) -> tuple[AttackTable, ...]:
        """Return the table of attacks for each certainty; none if the categories of the groups are not kept."""
        if attribute.vectors is None:
            return ()
        believed, labels = self.believe(attribute), attribute.levels.labels
        prior = believed if isinstance(believed, NegativeBinomial) else None
        named = self.values.find_harmful(labels), self.values.find_unions(labels) if prior else ()
        return tuple(
            AttackTable(attribute.vectors, channel, prior, certainty, *named) for certainty in self.certainties
        )


@dataclass(frozen=True)
class DecisionFigures:
    """What to decide by, of one sensitive attribute under one mechanism."""

    sensitive: str
    attack: str
    mechanism: Mechanism
    caused: Caused
    certainty: tuple[ConfidentInferences, ...]
    """Ascending; empty if it cannot be computed."""
    unknown: str | None
    """Why it cannot be computed."""
    belief: CountPrior | None
    ceiling: Ceiling

    def as_chosen(self) -> DecisionFigures:
        """The same for an epsilon that was chosen from the data: what one record adds at most is then not stated."""
        return replace(self, ceiling=replace(self.ceiling, chosen=True))

    def to_dict(self) -> dict[str, Any]:
        """Return one entry of ``decision`` in JSON."""
        return {
            "sensitive": self.sensitive,
            "caused": self.caused.to_dict(),
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": self.ceiling.to_dict(),
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
            **({} if self.belief is None else {"belief": self.belief.to_dict()}),
        }


def find_figures(
    attribute: Attribute, mechanism: Mechanism, people: People, attack: str, attacker: Attacker
) -> DecisionFigures:
    """Return the three figures of one sensitive attribute; ``people`` are those whom the attack reveals."""
    unknown = why_unknown(attribute)
    return DecisionFigures(
        attribute.name,
        attack,
        mechanism,
        count_caused(attribute.profiles, mechanism, people.mean, attack),
        attacker.infer(attribute, mechanism.channel),
        unknown,
        None if unknown else attacker.believe(attribute),
        ceiling(mechanism, labels=attribute.n_levels),
    )
