"""What a curator requires of a release: at most so much risk, so many people, so little above chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from cellrisk.decide.search import Excesses
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.measures import Survival
from cellrisk.risk.sweep import MeasuredRisk
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import is_number
from cellrisk.system.text import as_given, percent

PERTURBED_ATTACK = "a perturbation is judged by the homogeneity attack alone"
NO_CHANCE = "a perturbation has no noise that could drown the counts, and so no chance level"

WORDS = {
    "max_risk": ("a risk of at most {}%", "the risk at or below {}%"),
    "margin": ("a risk at most {}% above chance", "the risk at most {}% above chance"),
    "max_people": ("at most {} {people} exposed on average", "the number of people exposed on average at or below {}"),
}
"""Each limit in words, after "asks for" and after "keeps"."""
RANGES: dict[str, tuple[str, str, Callable[[float], bool]]] = {
    "people": ("a number of people", "0 or more", lambda value: value >= 0),
    "epsilon": ("a number above 0", "for example 1", lambda value: value > 0),
    "ceiling": (
        "above 0.5, as one of two equally likely values is guessed half the time",
        "above 0.5, up to 1",
        lambda value: 0.5 < value <= 1,
    ),
    "caused": ("a share of people", "above 0, up to 1", lambda value: 0 < value <= 1),
    "certain": ("a share of people", "above 0, up to 1", lambda value: 0 < value <= 1),
    "": ("a share", "from 0 to 1", lambda value: 0 <= value <= 1),
}
"""What a limit must be, by how its name ends: in words, the values allowed, and whether one is."""


@dataclass(frozen=True)
class Requirement:
    """One limit or several, which must all hold for every sensitive attribute."""

    max_risk: float | None = None
    """The limit on the chosen risk, from 0 to 1."""
    max_people: float | None = None
    """The limit on the expected number of people exposed, which is records times local, tight, by records."""
    margin: float | None = None
    """The limit on how far the chosen risk lies above its chance level, from 0 to 1."""

    def __post_init__(self) -> None:
        if self.max_risk is None and self.max_people is None and self.margin is None:
            raise InvalidInput(
                "no limit was given to choose by",
                allowed="max_caused, max_certain, max_ceiling, max_epsilon, max_risk, max_people or margin",
                fix="for example max_caused=0.01, or --max-caused 0.01",
            )
        check_limits(vars(self))

    def tighter(self, other: Requirement) -> Requirement:
        """The smaller of the two limits of each kind.

        >>> Requirement(max_risk=0.3, margin=0.1).tighter(Requirement(max_risk=0.2)).describe()
        'a risk of at most 20% and a risk at most 10% above chance'
        """
        pairs = {field.name: (getattr(self, field.name), getattr(other, field.name)) for field in fields(self)}
        return Requirement(
            **{name: min((each for each in pair if each is not None), default=None) for name, pair in pairs.items()}
        )

    def describe(self) -> str:
        """The limits in words.

        >>> Requirement(max_risk=0.3, max_people=5000).describe()
        'a risk of at most 30% and at most 5,000 people exposed on average'
        """
        return self._say(0)

    def aim(self) -> str:
        """The limits in words, after "keeps".

        >>> Requirement(max_risk=0.3, max_people=5000).aim()
        'the risk at or below 30% and the number of people exposed on average at or below 5,000'
        """
        return self._say(1)

    def _say(self, grammar: int) -> str:
        given = {name: value for name, value in vars(self).items() if value is not None}
        shown = {name: as_given(value, 0 if name == "max_people" else 2) for name, value in given.items()}
        people = "person" if self.max_people == 1 else "people"
        said = (words[grammar].format(shown[name], people=people) for name, words in WORDS.items() if name in shown)
        return " and ".join(said)


@dataclass(frozen=True, eq=False)
class Condition:
    """A requirement on one risk of a table."""

    requirement: Requirement
    measured: MeasuredRisk

    def excesses(self, setting: Mechanism) -> Excesses:
        """How far each attribute's risk is above each limit, under many noises of one mechanism at once."""
        required, measured = self.requirement, self.measured
        records = measured.attributes[0].profiles.n_records
        if required.margin is not None:
            chance = np.array([limits.chance for limits in measured.limits(setting)])[:, None]

        def find(noises: tuple[Noise, ...]) -> Floats:
            survival = Survival(noises, setting.threshold)
            found = []
            if required.max_risk is not None or required.margin is not None:
                risk = measured.under(survival)
                found += [risk - required.max_risk] if required.max_risk is not None else []
                found += [risk - chance - required.margin] if required.margin is not None else []
            if required.max_people is not None:
                found.append(measured.people.under(survival) - required.max_people / records)
            return np.concatenate(found)

        return find

    def breaches(self, method: Mechanism | Perturbation) -> list[str]:
        """What a mechanism or a perturbation breaks of the requirement, and what cannot be judged for the latter."""
        required, measured = self.requirement, self.measured
        survival = Survival((method.noise,), method.threshold)
        if isinstance(method, Mechanism):
            broken = self.excesses(method)((method.noise,)).max() > 0
            told = f"{required.describe()} ({measured.name}); it is {percent(float(measured.under(survival).max()))}"
            return [told] if broken else []
        if measured.attack != "homogeneity":
            return [f"{required.describe()}; {PERTURBED_ATTACK}"]
        risk, share = (float(each.under(survival).max()) for each in (measured, measured.people))
        people = share * measured.attributes[0].profiles.n_records
        found = []
        if required.max_risk is not None and risk > required.max_risk:
            limit = Requirement(max_risk=required.max_risk).describe()
            found.append(f"{limit} ({measured.name}); it is {percent(risk)}")
        if required.max_people is not None and people > required.max_people:
            found.append(f"{Requirement(max_people=required.max_people).describe()}; it is {people:,.1f}")
        if required.margin is not None:
            found.append(f"{Requirement(margin=required.margin).describe()}; {NO_CHANCE}")
        return found


def find_excesses(conditions: Sequence[Condition], setting: Mechanism) -> Excesses:
    """How far the risks are above the limits of every condition, under many noises at once: (limits, noises)."""
    found = [each.excesses(setting) for each in conditions]
    return lambda noises: np.concatenate([excesses(noises) for excesses in found])


def describe_conditions(conditions: Sequence[Condition]) -> str:
    """The limits in words. A limit on another risk than the first is followed by the name of that risk."""
    first, *others = conditions
    parts = [first.requirement.describe()]
    parts += [f"{each.requirement.describe()} ({each.measured.name})" for each in others]
    return ", and ".join(parts)


def check_limits(limits: Mapping[str, object]) -> None:
    """Refuses values that cannot be limits. Messages spell the names as the caller does: max_risk or max-risk."""
    for name, value in limits.items():
        what, allowed, fits = next(known for end, known in RANGES.items() if name.endswith(end))
        if value is not None and not (is_number(value) and fits(value)):
            raise InvalidInput(f"{name} must be {what}", got=value, allowed=allowed)
