"""The figures to decide by: revealed because of one's own record, inferred by an attacker, and the worst case."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attacks import Confidence, find_confidence, people_risk
from cellrisk.risk.caused import Caused, count_caused
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.certainty import ConfidentInferences, CountPrior, find_certainty, why_unknown
from cellrisk.risk.people import People, count_people
from cellrisk.risk.sweep import Limits, find_limits

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute


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
