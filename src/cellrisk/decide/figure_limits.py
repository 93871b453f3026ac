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
from cellrisk.decide.search import SMALLEST_EPSILON, Intervals, intersect
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.ceilings import WORST_CASE, Labels, find_success
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief, certain_shares, read_certainties
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import Survival
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON
from cellrisk.system.arrays import Floats
from cellrisk.system.text import as_given

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

EDGE = 1e-7
"""Relative width to which an edge is halved; the end that keeps the limit is returned."""
SCANNED, SCANNED_CLOSELY, SCANNED_BELOW = 12, 48, 4
"""Epsilons in each power of ten at which certainty is looked at: many tables allow for more, within the same time;
below 0.001 each of them takes long."""
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
    """Whether the figure depends on the table. One that does not rises with epsilon; one that does need not."""
    places: ClassVar[int] = 2
    """How many places the point of the figure is moved to be shown: two, for a percentage."""
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
        return self.asked.format(as_given(self.most, self.places), limit=self)

    def aim(self) -> str:
        """The limit in words, after "keeps"."""
        return self.kept.format(as_given(self.most, self.places), limit=self)

    def say(self, figure: float) -> str:
        """What the figure is somewhere, as a clause: to four digits, or as many as tell it from the limit."""
        rounded = (float(f"{figure:.{digits}g}") for digits in range(4, 18))
        shown = next((value for value in rounded if (value > self.most) == (figure > self.most)), figure)
        return self.found.format(as_given(shown, self.places), limit=self)

    @abstractmethod
    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        """The figure under one mechanism or perturbation, of the attribute with the largest."""

    def why_not(self, perturbation: Perturbation) -> str | None:
        """Why this limit cannot be judged for a perturbation; None where it can."""
        return None

    @abstractmethod
    def find_kept(self, attributes: Sequence[Attribute], setting: Mechanism, low: float, high: float) -> Intervals:
        """Every epsilon from ``low`` to ``high`` that keeps this limit, as ascending intervals, ends included."""

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

    def find_kept(self, attributes: Sequence[Attribute], setting: Mechanism, low: float, high: float) -> Intervals:
        """As for a risk, the interpolant's error is bounded: beyond the limit by 1e-10 or more is never overlooked."""

        def excesses(noises: tuple[Noise, ...]) -> Floats:
            return self._shares(attributes, Survival(noises, setting.threshold)) - self.most

        n_levels = max(attribute.n_levels for attribute in attributes)
        return find_epsilons(excesses, setting, n_levels, low, high).intervals

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
        return f"{as_given(self.certainty, 2)}%"

    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        if isinstance(mechanism, Perturbation):
            from cellrisk.risk.perturbed.certainty import find_perturbed_certainty

            return max(
                find_perturbed_certainty(each, mechanism, (self.certainty,), self._believe(each))[0].right
                / each.profiles.n_records
                for each in attributes
            )
        return max(self._share(each, self._believe(each), mechanism.noise, mechanism.threshold) for each in attributes)

    def find_kept(self, attributes: Sequence[Attribute], setting: Mechanism, low: float, high: float) -> Intervals:
        """Scanned, and not proved: certainty jumps where a released count becomes enough for it.

        A rise above the limit and back between neighbours of the scan can be overlooked. With three labels or more it
        is the upper end of the figure that keeps the limit.
        """
        return intersect(*(self._find_kept(attribute, setting, low, high) for attribute in attributes))

    def _find_kept(self, attribute: Attribute, setting: Mechanism, low: float, high: float) -> Intervals:
        belief = self._believe(attribute)

        def share(epsilon: float) -> float:
            return self._share(attribute, belief, setting.with_epsilon(epsilon).noise, setting.threshold)

        counts = len(attribute.vectors or ()) * attribute.n_levels
        per_decade = SCANNED_CLOSELY if counts <= FEW_COUNTS else SCANNED
        per_decade = per_decade if high > LEAST_EPSILON else SCANNED_BELOW
        scanned = np.geomspace(low, high, math.ceil(per_decade * math.log10(high / low)) + 1)
        found = {epsilon: share(epsilon) for epsilon in scanned.tolist()}
        for start, end in self._near(found):
            found |= {epsilon: share(epsilon) for epsilon in np.geomspace(start, end, 5)[1:-1].tolist()}
        edges = [epsilon for epsilon in (low, high) if found[epsilon] <= self.most]
        for pair in pairwise(sorted(found)):
            inner, outer = sorted(pair, key=lambda epsilon: found[epsilon] > self.most)
            if found[inner] <= self.most < found[outer]:
                edges.append(_halve(lambda at: share(at) <= self.most, inner, outer))
        return tuple(zip(sorted(edges)[::2], sorted(edges)[1::2], strict=True))

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

    def find_kept(self, attributes: Sequence[Attribute], setting: Mechanism, low: float, high: float) -> Intervals:
        """The ceiling rises with epsilon, so that halving finds its edge. No data are used."""

        def keeps(epsilon: float) -> bool:
            return find_success(setting.with_epsilon(epsilon).noise, Labels.even(2)) <= self.most

        if keeps(high):
            return ((low, high),)
        return ((low, _halve(keeps, low, high)),) if keeps(low) else ()


@dataclass(frozen=True)
class EpsilonLimit(FigureLimit):
    """A limit on epsilon itself."""

    name: ClassVar[str] = "max_epsilon"
    about: ClassVar[str] = "epsilon"
    uses_data: ClassVar[bool] = False
    places: ClassVar[int] = 0
    asked: ClassVar[str] = "an epsilon of at most {}"
    kept: ClassVar[str] = "epsilon at or below {}"
    found: ClassVar[str] = "epsilon is {}"

    def find(self, attributes: Sequence[Attribute], mechanism: Mechanism | Perturbation) -> float:
        if isinstance(mechanism, Perturbation):
            raise InvalidInput(f"a limit on epsilon cannot be judged: {NO_EPSILON}")
        return mechanism.epsilon

    def why_not(self, perturbation: Perturbation) -> str | None:
        return NO_EPSILON

    def find_kept(self, attributes: Sequence[Attribute], setting: Mechanism, low: float, high: float) -> Intervals:
        return intersect(((low, high),), ((0.0, float(self.most)),))


@dataclass(frozen=True)
class Reach:
    """How far one limit lets epsilon go."""

    limit: FigureLimit
    largest: float | None = field(default=None)
    """The largest epsilon up to which every smaller one keeps it; None where the smallest does not keep it."""
    kept: Intervals = ()
    """Every epsilon that keeps it, those beyond ``largest`` too."""

    @property
    def binds_itself(self) -> bool:
        """Whether it is a limit on epsilon that is reached: it binds wherever the search ends."""
        return isinstance(self.limit, EpsilonLimit) and self.largest == self.limit.most


def say_largest(wavy: Sequence[str], keeps: str, others: bool, least: float = LEAST_EPSILON) -> str:
    """Return what the epsilon is that was found: of limits on these figures, every smaller one keeps those too."""
    every = f"up to which every smaller one, from {min(least, LEAST_EPSILON):g} on,"
    if wavy and not others:
        return f"the largest epsilon {every} {keeps}"
    also = f", and {every} keeps the limit on {' and '.join(wavy)}" if wavy else ""
    return f"the largest epsilon that {keeps}{also}"


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
    limits: Sequence[FigureLimit], attributes: Sequence[Attribute], setting: Mechanism, searched: tuple[float, float]
) -> tuple[Reach, ...]:
    """How far each limit lets epsilon go in a range.

    Epsilons from 0.001 on are looked at, wherever the range begins: all of them must keep the limit. Where 0.001 does
    not keep it, those from 0.000001 on are.
    """
    low, high = min(searched[0], LEAST_EPSILON), searched[1]
    found = []
    for limit in limits:
        kept = limit.find_kept(attributes, setting, low, high)
        begins = bool(kept) and kept[0][0] == low
        deeper = not begins and low > SMALLEST_EPSILON
        if deeper and limit.find(attributes, setting.with_epsilon(SMALLEST_EPSILON)) <= limit.most:
            kept, begins = (*limit.find_kept(attributes, setting, SMALLEST_EPSILON, low), *kept), True
        found.append(Reach(limit, kept[0][1] if begins else None, kept))
    return tuple(found)


@dataclass(frozen=True)
class ReachWithoutData:
    """How far limits on the guarantee alone let epsilon go, on any table."""

    largest: float | None
    """None where one of them is not kept at the smallest epsilon."""
    binds: bool
    """Whether one of them ends it, and not the end of what is searched."""

    @classmethod
    def of(cls, limits: Sequence[FigureLimit], setting: Mechanism) -> ReachWithoutData:
        end = min(LARGEST_EPSILON, setting.largest_epsilon)
        reaches = find_reaches(limits, (), setting, (SMALLEST_EPSILON, end))
        reached = [each.largest for each in reaches if each.largest is not None]
        if len(reached) < len(reaches):
            return cls(None, True)
        largest = min([end, *reached])
        return cls(largest, largest < end or any(each.binds_itself for each in reaches))


def _halve(keeps: Callable[[float], bool], inner: float, outer: float) -> float:
    """The last epsilon that keeps a limit, between one that does and one that does not."""
    while abs(math.log(outer / inner)) > EDGE:
        middle = math.sqrt(inner * outer)
        inner, outer = (middle, outer) if keeps(middle) else (inner, middle)
    return inner
