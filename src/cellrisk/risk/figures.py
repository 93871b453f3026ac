"""The figures to decide by: revealed because of one's own record, inferred by an attacker, and the worst case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.attackers.persons import PersonTable
from cellrisk.risk.attackers.values import NamedValues
from cellrisk.risk.attacks import Confidence, find_confidence, people_risk
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
from cellrisk.risk.people import People, count_people
from cellrisk.risk.sweep import Limits, find_limits

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

    def tables(self, attribute: Attribute, channel: CountChannel) -> tuple[AttackTable, ...]:
        """Return the table of attacks for each certainty; none if the categories of the groups are not kept."""
        if attribute.vectors is None or (attribute.several and attribute.people is None):
            return ()
        believed, labels = self.believe(attribute), attribute.levels.labels
        prior = believed if isinstance(believed, NegativeBinomial) else None
        named = self.values.find_harmful(labels), self.values.find_unions(labels) if prior else ()
        if attribute.people is not None:
            of_people = attribute.people
            return tuple(PersonTable.of(of_people, channel, prior, certainty, *named) for certainty in self.certainties)
        return tuple(
            AttackTable(attribute.vectors, channel, prior, certainty, *named) for certainty in self.certainties
        )


@dataclass(frozen=True, eq=False)
class AttributeFigures:
    """The figures of one sensitive attribute under noise or a perturbation, computed when they are asked for."""

    attribute: Attribute
    method: Mechanism | Perturbation
    attacker: Attacker = field(default_factory=Attacker)
    attack: str = "homogeneity"

    @property
    def sensitive(self) -> str:
        return self.attribute.name

    @property
    def records(self) -> int:
        return self.attribute.profiles.n_records

    @property
    def unknown(self) -> str | None:
        """Why no certainty can be computed; None if it can."""
        return why_unknown(self.attribute)

    @cached_property
    def belief(self) -> CountPrior | None:
        """The informed attacker's prior; None if no certainty can be computed."""
        return None if self.unknown else self.attacker.believe(self.attribute)

    @cached_property
    def certainty(self) -> tuple[ConfidentInferences, ...]:
        """The people whose value is inferred with each certainty, ascending; empty if it cannot be computed."""
        if self.belief is None:
            return ()
        return find_certainty(self.attribute, self.method.channel, self.attacker.certainties, self.belief)

    @cached_property
    def people(self) -> People:
        """How many people's values the attack reveals."""
        return count_people(self.attribute.profiles, self.method.channel, self.attack)

    @property
    def share(self) -> float:
        """Expected share of people whose value the attack reveals: local, tight, by records. Exact."""
        return self.people.mean / self.records

    @property
    def raw_share(self) -> float:
        """The share of people whose value the table shows without noise: those in homogeneous groups."""
        return self.attribute.exposed_share


@dataclass(frozen=True, eq=False)
class DecisionFigures(AttributeFigures):
    """What to decide by, of one sensitive attribute under one mechanism."""

    empty: int = 0
    """The empty groups of the domain, which count into the confidence."""
    chosen: bool = False
    """Whether epsilon was chosen from the data: what one record adds at most is then not stated."""

    @property
    def mechanism(self) -> Mechanism:
        return cast(Mechanism, self.method)

    @cached_property
    def caused(self) -> Caused:
        """The people revealed because of their own record."""
        return count_caused(self.attribute.profiles, self.mechanism, self.people.mean, self.attack)

    @cached_property
    def ceiling(self) -> Ceiling:
        """What one record adds at most."""
        return replace(ceiling(self.mechanism, labels=self.attribute.n_levels), chosen=self.chosen)

    @property
    def advantage(self) -> float | None:
        """What one record adds to any attack at most; None if epsilon was chosen from the data."""
        return None if self.chosen else self.ceiling.advantage

    @cached_property
    def confidence(self) -> Confidence:
        """How often a released group that looks homogeneous shows a true value."""
        return find_confidence(self.attribute.profiles, self.method.channel, self.empty)[0]

    @cached_property
    def limits(self) -> Limits:
        """What ``share`` is as epsilon falls to 0, and without noise."""
        measure = people_risk(self.attack)
        return find_limits(self.attribute.profiles, measure, ("tight",), self.mechanism)["tight", "records"]

    @property
    def raw_share(self) -> float:
        return super().raw_share if self.attack == "homogeneity" else self.limits.raw

    @property
    def guess_share(self) -> float:
        """Guessing each person's value from the overall proportions: sum_k p_k^2."""
        return float(self.attribute.levels.shares @ self.attribute.levels.shares)

    @property
    def baselines(self) -> dict[str, float]:
        """The shares of people revealed without noise, with nothing but noise, and by guessing."""
        commonest = float(self.attribute.levels.shares.max())
        guesses = {"proportional_guess": self.guess_share, "commonest_guess": commonest}
        return {"raw": self.raw_share, "chance": self.limits.chance, **guesses}

    def to_dict(self) -> dict[str, Any]:
        """Return one entry of ``decision`` in JSON: the figures of one record only if nobody has several."""
        of_records = {"caused": self.caused.to_dict(), "certainty": [row.to_dict() for row in self.certainty]}
        return {
            "sensitive": self.sensitive,
            **({} if self.attribute.several else of_records),
            "ceiling": self.ceiling.to_dict(),
            **({} if self.unknown is None else {"certainty_unknown": self.unknown}),
            **({} if self.belief is None else {"belief": self.belief.to_dict()}),
        }
