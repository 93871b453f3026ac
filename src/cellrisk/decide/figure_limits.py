"""Limits on the figures to decide by: caused, certainty, the ceiling, and epsilon itself.

More privacy is never inadmissible under them: what is found is the largest epsilon up to which every smaller one keeps
the limit. That matters, because caused and certainty are not monotone in epsilon.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.decide.analytic import find_epsilons
from cellrisk.decide.requirement import PERTURBED_ATTACK, check_limits
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.ceilings import WORST_CASE, Labels, find_success
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief, certain_shares, read_certainties
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import Survival
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, Setting
from cellrisk.system.arrays import Floats

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

EDGE = 1e-7
"""Relative width to which an edge is halved; the end that keeps the limit is returned."""
SCANNED, SCANNED_CLOSELY = 12, 48
"""Epsilons in each power of ten at which certainty is looked at: many tables allow for more, within the same time."""
FEW_COUNTS = 100
"""A table with this many different counts at most is scanned closely."""
NO_EPSILON = "a perturbation states no epsilon"
NEAR_THE_LIMIT, MOST_NEAR = 0.9, 16
"""Between neighbours above this share of the limit, certainty is looked at again, at most so often."""


@dataclass(frozen=True)
class FigureLimit(ABC):
    """The most that a figure may be, for every sensitive attribute."""

    name: ClassVar[str]
    """The name of its argument: max_caused, say."""
    about: ClassVar[str]
    """What is limited, after "the limit on"."""
    uses_data: ClassVar[bool] = True
    asked: ClassVar[str]
    """The limit in words, after "asks for" or "gives"."""
    kept: ClassVar[str]
    """The limit in words, after "keeps"."""
    found: ClassVar[str]
    """What the figure is somewhere, as a clause."""

    most: float

    @staticmethod
    def read(
        *,
        max_caused: float | None = None,
        max_certain: float | None = None,
        max_ceiling: float | None = None,
        max_epsilon: float | None = None,
        certainty: float | Sequence[float] = USUAL_CERTAINTY,
        belief: Any = USUAL_BELIEF,
        attack: str = "homogeneity",
    ) -> tuple[FigureLimit, ...]:
        """The limits that were given, checked.

        >>> [limit.describe() for limit in FigureLimit.read(max_caused=0.03, max_epsilon=2)]
        ['at most 3% of people given away because of their own record', 'an epsilon of at most 2']
        """
        given = {
            "max_caused": max_caused,
            "max_certain": max_certain,
            "max_ceiling": max_ceiling,
            "max_epsilon": max_epsilon,
        }
        check_limits(given)
        certainties = read_certainties(certainty)
        found: list[FigureLimit] = []
        if max_caused is not None:
            found.append(CausedLimit(float(max_caused), attack))
        if max_certain is not None:
            if len(certainties) > 1:
                raise InvalidInput(
                    "a limit on people named with certainty takes one certainty",
                    got=f"{len(certainties)} of them",
                    allowed="for example 0.95",
                )
            found.append(CertainLimit(float(max_certain), certainties[0], belief))
        if max_ceiling is not None:
            found.append(CeilingLimit(float(max_ceiling)))
        if max_epsilon is not None:
            found.append(EpsilonLimit(float(max_epsilon)))
        return tuple(found)

    def describe(self) -> str:
        """The limit in words, after "asks for" or "gives"."""
        return self._fill(self.asked, self.most)

    def aim(self) -> str:
        """The limit in words, after "keeps"."""
        return self._fill(self.kept, self.most)

    def say(self, figure: float) -> str:
        """What the figure is somewhere, as a clause."""
        return self._fill(self.found, figure)

    def _fill(self, words: str, figure: float) -> str:
        """Words with a figure in them: ``{}`` is its percentage to four digits, so that 0.75% is not shown as 0.8%."""
        return words.format(f"{100 * figure:.4g}", figure=figure, limit=self)

    @abstractmethod
    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        """The figure under one mechanism or perturbation, of the attribute with the largest."""

    def why_not(self, perturbation: Perturbation) -> str | None:
        """Why this limit cannot be judged for a perturbation; None where it can."""
        return None

    @abstractmethod
    def find_largest(self, attributes: Sequence[Attribute], setting: Setting, low: float, high: float) -> float | None:
        """The largest epsilon from ``low`` to ``high`` at which this limit is kept, and at every smaller one.

        None where the smallest does not keep it.
        """

    def breach(self, attributes: Sequence[Attribute], method: Mechanism | Perturbation) -> str | None:
        """What a mechanism or a perturbation breaks, or why that cannot be judged; None where the limit is kept."""
        why = self.why_not(method) if isinstance(method, Perturbation) else None
        if why is not None:
            return f"{self.describe()}; {why}"
        figure = self.find(attributes, method)
        return f"{self.describe()}; {self.say(figure)}" if figure > self.most else None

    def explain_breach(self, figure: float) -> str:
        """What a policy asks for, and what the figure is."""
        return f"the policy asks for {self.describe()}; {self.say(figure)}"

    def is_like(self, other: FigureLimit) -> bool:
        """Whether both limit the same figure, so that the smaller of them is the stricter."""
        return self == replace(other, most=self.most) if type(self) is type(other) else False

    def to_dict(self) -> dict[str, Any]:
        """The limit as it was given, with what it depends on."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "most"}
        return {self.name: self.most, **{key: value for key, value in own.items() if key in ("certainty", "belief")}}


@dataclass(frozen=True)
class CausedLimit(FigureLimit):
    """A limit on the expected share of people who are given away because of their own record."""

    name: ClassVar[str] = "max_caused"
    about: ClassVar[str] = "caused"
    asked: ClassVar[str] = "at most {}% of people given away because of their own record"
    kept: ClassVar[str] = "the share of people given away because of their own record at or below {}%"
    found: ClassVar[str] = "{}% of people are given away because of their own record"

    attack: str = "homogeneity"

    def why_not(self, perturbation: Perturbation) -> str | None:
        return None if self.attack == "homogeneity" else PERTURBED_ATTACK

    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        survival = Survival((mechanism.noise,), mechanism.threshold)
        return float(self._shares(attributes, survival).max())

    def find_largest(self, attributes: Sequence[Attribute], setting: Setting, low: float, high: float) -> float | None:
        """As for a risk, the interpolant's error is bounded: beyond the limit by 1e-10 or more is never overlooked."""

        def excesses(noises: tuple[Noise, ...]) -> Floats:
            return self._shares(attributes, Survival(noises, setting.threshold)) - self.most

        n_levels = max(attribute.n_levels for attribute in attributes)
        found = find_epsilons(excesses, setting, n_levels, low, high)
        return found.intervals[0][1] if found.intervals and found.intervals[0][0] == low else None

    def _shares(self, attributes: Sequence[Attribute], survival: Survival) -> Floats:
        return np.stack([caused_shares(each.profiles, survival, attack=self.attack) for each in attributes])


@dataclass(frozen=True)
class CertainLimit(FigureLimit):
    """A limit on the expected share of people whose value an attacker names rightly and with a given certainty."""

    name: ClassVar[str] = "max_certain"
    about: ClassVar[str] = "certainty"
    asked: ClassVar[str] = "at most {}% of people named rightly with {limit.sure} certainty"
    kept: ClassVar[str] = "the share of people named rightly with {limit.sure} certainty at or below {}%"
    found: ClassVar[str] = "{}% of people can be named rightly with {limit.sure} certainty"

    certainty: float = USUAL_CERTAINTY
    belief: Any = USUAL_BELIEF
    """What the attacker believes, as in `Attacker`."""

    @property
    def sure(self) -> str:
        return f"{100 * self.certainty:g}%"

    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        if isinstance(mechanism, Perturbation):
            from cellrisk.risk.perturbed.certainty import find_perturbed_certainty

            return max(
                find_perturbed_certainty(each, mechanism, (self.certainty,), self._believe(each))[0].right
                / each.profiles.n_records
                for each in attributes
            )
        return max(self._share(each, self._believe(each), mechanism.noise, mechanism.threshold) for each in attributes)

    def find_largest(self, attributes: Sequence[Attribute], setting: Setting, low: float, high: float) -> float | None:
        """Scanned, and not proved: certainty jumps where a released count becomes enough for it.

        A rise above the limit and back between neighbours of the scan can be overlooked. With three labels or more it
        is the upper end of the figure that keeps the limit.
        """
        largest: float | None = high
        for attribute in attributes:
            if largest is not None:
                largest = self._find_largest(attribute, setting, low, largest)
        return largest

    def _find_largest(self, attribute: Attribute, setting: Setting, low: float, high: float) -> float | None:
        belief = self._believe(attribute)

        def share(epsilon: float) -> float:
            return self._share(attribute, belief, setting.at(epsilon).noise, setting.threshold)

        counts = len(attribute.vectors or ()) * attribute.n_levels
        per_decade = SCANNED_CLOSELY if counts <= FEW_COUNTS else SCANNED
        found: dict[float, float] = {}
        for epsilon in np.geomspace(low, high, math.ceil(per_decade * math.log10(high / low)) + 1).tolist():
            found[epsilon] = share(epsilon)
            if found[epsilon] > self.most:
                break
        for start, end in self._near(found):
            found |= {epsilon: share(epsilon) for epsilon in np.geomspace(start, end, 5)[1:-1].tolist()}
        before = None
        for epsilon in sorted(found):
            if found[epsilon] > self.most:
                return None if before is None else _halve(lambda at: share(at) <= self.most, before, epsilon)
            before = epsilon
        return high

    def _near(self, found: Mapping[float, float]) -> list[tuple[float, float]]:
        """Neighbours that keep the limit, of which one comes near to it: the nearest of them."""
        places = sorted(place for place, value in found.items() if value <= self.most)
        pairs = [(max(found[low], found[high]), (low, high)) for low, high in pairwise(places)]
        return [pair for value, pair in sorted(pairs, reverse=True)[:MOST_NEAR] if value > NEAR_THE_LIMIT * self.most]

    def _believe(self, attribute: Attribute) -> Belief:
        return Attacker((self.certainty,), self.belief).believe(attribute)

    def _share(self, attribute: Attribute, belief: Belief, noise: Noise, threshold: float) -> float:
        return float(certain_shares(attribute, (noise,), threshold, self.certainty, belief)[0])


@dataclass(frozen=True)
class CeilingLimit(FigureLimit):
    """A limit on the worst case of two equally likely values, for an attacker who knows every other record."""

    name: ClassVar[str] = "max_ceiling"
    about: ClassVar[str] = "the ceiling"
    uses_data: ClassVar[bool] = False
    asked: ClassVar[str] = f"a worst case of at most {{}}% ({WORST_CASE})"
    kept: ClassVar[str] = f"the worst case ({WORST_CASE}) at or below {{}}%"
    found: ClassVar[str] = "the worst case is {}%"

    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        if isinstance(mechanism, Perturbation):
            from cellrisk.risk.perturbed.figures import find_ceiling

            return find_ceiling(mechanism)[0]
        return find_success(mechanism.noise, Labels.even(2))

    def find_largest(self, attributes: Sequence[Attribute], setting: Setting, low: float, high: float) -> float | None:
        """The ceiling rises with epsilon, so that halving finds its edge. No data are used."""

        def keeps(epsilon: float) -> bool:
            return find_success(setting.at(epsilon).noise, Labels.even(2)) <= self.most

        if keeps(high):
            return high
        return _halve(keeps, low, high) if keeps(low) else None


@dataclass(frozen=True)
class EpsilonLimit(FigureLimit):
    """A limit on epsilon itself."""

    name: ClassVar[str] = "max_epsilon"
    about: ClassVar[str] = "epsilon"
    uses_data: ClassVar[bool] = False
    asked: ClassVar[str] = "an epsilon of at most {figure:g}"
    kept: ClassVar[str] = "epsilon at or below {figure:g}"
    found: ClassVar[str] = "epsilon is {figure:g}"

    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        if isinstance(mechanism, Perturbation):
            raise InvalidInput(f"a limit on epsilon cannot be judged: {NO_EPSILON}")
        return mechanism.epsilon

    def why_not(self, perturbation: Perturbation) -> str | None:
        return NO_EPSILON

    def find_largest(self, attributes: Sequence[Attribute], setting: Setting, low: float, high: float) -> float | None:
        return min(float(self.most), high) if self.most >= low else None


@dataclass(frozen=True)
class Reach:
    """How far one limit lets epsilon go."""

    limit: FigureLimit
    largest: float | None = field(default=None)
    """The largest epsilon up to which it is kept; None where it is not kept at the smallest."""

    @property
    def binds_itself(self) -> bool:
        """Whether it is a limit on epsilon that is reached: it binds wherever the search ends."""
        return isinstance(self.limit, EpsilonLimit) and self.largest == self.limit.most


def join_figure_limits(limits: Sequence[FigureLimit]) -> tuple[FigureLimit, ...]:
    """The strictest limit on each figure, in the order in which figures were first limited.

    >>> both = FigureLimit.read(max_caused=0.03) + FigureLimit.read(max_caused=0.02, max_epsilon=2)
    >>> [limit.most for limit in join_figure_limits(both)]
    [0.02, 2.0]
    """
    joined: list[FigureLimit] = []
    for each in limits:
        for place, known in enumerate(joined):
            if known.is_like(each):
                joined[place] = min(known, each, key=lambda limit: limit.most)
                break
        else:
            joined.append(each)
    return tuple(joined)


def find_reaches(
    limits: Sequence[FigureLimit], attributes: Sequence[Attribute], setting: Setting, searched: tuple[float, float]
) -> tuple[Reach, ...]:
    """How far each limit lets epsilon go in a range.

    Epsilons from 0.001 on are looked at, wherever the range begins: all of them must keep the limit.
    """
    low, high = min(searched[0], LEAST_EPSILON), searched[1]
    return tuple(Reach(limit, limit.find_largest(attributes, setting, low, high)) for limit in limits)


@dataclass(frozen=True)
class ReachWithoutData:
    """How far limits on the guarantee alone let epsilon go, on any table."""

    largest: float | None
    """None where one of them is not kept at the smallest epsilon."""
    binds: bool
    """Whether one of them ends it, and not the end of what is searched."""

    @classmethod
    def of(cls, limits: Sequence[FigureLimit], setting: Setting) -> ReachWithoutData:
        end = min(LARGEST_EPSILON, setting.largest_epsilon)
        reaches = find_reaches(limits, (), setting, (LEAST_EPSILON, end))
        reached = [each.largest for each in reaches if each.largest is not None]
        if len(reached) < len(reaches):
            return cls(None, True)
        largest = min([end, *reached])
        return cls(largest, largest < end or any(each.binds_itself for each in reaches))


def _halve(keeps: Callable[[float], bool], low: float, high: float) -> float:
    """The last epsilon that keeps a limit, between one that does and one that does not."""
    while high / low > 1.0 + EDGE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
