"""Limits: the most that a metric of a table may be under a method of release, and which epsilons keep one.

To add a limit, write one subclass of `Metric` and list it in ``METRICS``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.decide.search import STEP, Intervals, find_admissible
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.ceilings import WORST_CASE, Labels, find_success
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, certain_shares, read_certainties
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import NEED_PRIOR, NEED_SIZES
from cellrisk.risk.priors import Priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, MeasuredRisk
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import is_number
from cellrisk.system.text import as_given, show_spans
from cellrisk.system.words import Attack, Form, MeasureName, Weights, list_words, require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

SMALLEST_EPSILON = 1e-6
"""A search looks down to this before it says that no epsilon keeps a limit."""
PERTURBED_ATTACK = "a perturbation is judged by the homogeneity attack alone"
NO_CHANCE = "a perturbation has no noise that could drown the counts, and so no chance level"
NO_EPSILON = "a perturbation states no epsilon"
SHARE = ("a share of people", "above 0, up to 1")

Method = Mechanism | Perturbation
Values = Callable[[Sequence[Method]], Floats]
"""A metric of one table: its value under each of several methods that differ in epsilon alone."""


@dataclass(frozen=True)
class RiskDefinition:
    """Which risk is meant: its measure, form, weights and attack, and how its priors are found."""

    measure: MeasureName = "local"
    form: Form = "tight"
    weights: Weights = "records"
    attack: Attack = "homogeneity"
    priors: Priors = field(default_factory=Priors)

    def __post_init__(self) -> None:
        for what, known in (("measure", MeasureName), ("form", Form), ("weights", Weights), ("attack", Attack)):
            require_word(what, getattr(self, what), list_words(known))

    @property
    def words(self) -> dict[str, str]:
        return {"measure": self.measure, "form": self.form, "weights": self.weights}

    @property
    def without_unused_priors(self) -> RiskDefinition:
        """The same risk without the priors that its measure does not need, so that equal risks compare equal."""
        needed = self.measure in NEED_PRIOR or self.measure in NEED_SIZES
        return self if needed else replace(self, priors=Priors())

    def of(self, attributes: Sequence[Attribute]) -> MeasuredRisk:
        """This risk of these sensitive attributes."""
        return MeasuredRisk.of(attributes, self.measure, self.form, self.weights, self.priors, self.attack)


@dataclass(frozen=True)
class Metric(ABC):
    """A figure of a table under a mechanism or a perturbation: of its sensitive attributes, the largest."""

    name: ClassVar[str]
    """The argument that limits it: max_caused, say."""
    about: ClassVar[str]
    """What is limited, after "the limit on"."""
    uses_data: ClassVar[bool] = True
    """Whether it depends on the table. If not, that a limit on it is kept tells nothing about the records."""
    every_smaller: ClassVar[bool] = True
    """Whether it is limited through its maximum over smaller epsilons: more privacy is then never inadmissible."""
    places: ClassVar[int] = 2
    """How many places the point of the metric is moved to be shown: two, for a percentage."""
    range: ClassVar[tuple[str, str]] = SHARE
    """What a limit on it must be, and the values allowed, in words."""
    asked: ClassVar[str]
    """The limit in words, after "asks for" or "gives"."""
    aimed: ClassVar[str]
    """The limit in words, after "keeps"."""
    stated: ClassVar[str]
    """What the metric is somewhere, as a clause."""
    jumps: ClassVar[float] = 0.0
    """Of a metric that jumps, the share of its limit within which a search looks closer; 0 if it is smooth."""

    @classmethod
    def read(cls, certainty: Any, belief: Any, risk: RiskDefinition) -> Metric:
        """The metric with what it depends on."""
        return cls()

    @staticmethod
    def admits(maximum: float) -> bool:
        """Whether a number can be a limit on it."""
        return 0 < maximum <= 1

    @abstractmethod
    def on(self, attributes: Sequence[Attribute]) -> Values:
        """The metric of these sensitive attributes, as a function of methods of release."""

    def why_not(self, perturbation: Perturbation) -> str | None:
        """Why it cannot be judged for a perturbation; None if it can."""
        return None

    def step(self, attributes: Sequence[Attribute], high: float) -> float:
        """The widest step of a search up to ``high``, in log epsilon; infinity if the metric only rises or falls."""
        return STEP

    def unit(self, attributes: Sequence[Attribute]) -> float:
        """What the metric is divided by to be compared with rounding errors of shares."""
        return 1.0

    def depends_on(self) -> dict[str, Any]:
        """What the metric depends on, for JSON."""
        return {}


@dataclass(frozen=True)
class CausedMetric(Metric):
    """The expected share of people who are given away because of their own record."""

    name: ClassVar[str] = "max_caused"
    about: ClassVar[str] = "caused"
    asked: ClassVar[str] = "at most {}% of people given away because of their own record"
    aimed: ClassVar[str] = "the share of people given away because of their own record at or below {}%"
    stated: ClassVar[str] = "{}% of people are given away because of their own record"

    attack: str = "homogeneity"

    @classmethod
    def read(cls, certainty: Any, belief: Any, risk: RiskDefinition) -> Metric:
        return cls(risk.attack)

    def on(self, attributes: Sequence[Attribute]) -> Values:
        def values(methods: Sequence[Method]) -> Floats:
            channel = _survive(methods)
            shares = [caused_shares(each.profiles, channel, attack=self.attack) for each in attributes]
            return np.asarray(np.max(shares, axis=0))

        return values

    def why_not(self, perturbation: Perturbation) -> str | None:
        return None if self.attack == "homogeneity" else PERTURBED_ATTACK


@dataclass(frozen=True)
class CertainMetric(Metric):
    """The expected share of people whose value an attacker names correctly and with a given certainty.

    It jumps where a released count becomes enough for that certainty. With three categories or more, the upper end.
    """

    name: ClassVar[str] = "max_certain"
    about: ClassVar[str] = "certainty"
    asked: ClassVar[str] = "at most {}% of people named rightly with {metric.sure} certainty"
    aimed: ClassVar[str] = "the share of people named rightly with {metric.sure} certainty at or below {}%"
    stated: ClassVar[str] = "{}% of people can be named rightly with {metric.sure} certainty"
    jumps: ClassVar[float] = 0.1

    certainty: float = USUAL_CERTAINTY
    belief: Any = USUAL_BELIEF
    """What the attacker believes, as in `Attacker`."""

    @classmethod
    def read(cls, certainty: Any, belief: Any, risk: RiskDefinition) -> Metric:
        certainties = read_certainties(certainty)
        if len(certainties) > 1:
            raise InvalidInput(
                "a limit on people named with certainty takes one certainty",
                got=f"{len(certainties)} of them",
                allowed="for example 0.95",
                code="one-certainty",
            )
        return cls(certainties[0], belief)

    @property
    def sure(self) -> str:
        return f"{as_given(self.certainty, 2)}%"

    def on(self, attributes: Sequence[Attribute]) -> Values:
        attacker = Attacker((self.certainty,), self.belief)
        beliefs = [attacker.believe(each) for each in attributes]

        def value(method: Method) -> float:
            if isinstance(method, Perturbation):
                from cellrisk.risk.perturbed.certainty import find_perturbed_certainty

                return max(
                    find_perturbed_certainty(each, method, (self.certainty,), belief)[0].right / each.profiles.n_records
                    for each, belief in zip(attributes, beliefs, strict=True)
                )
            return max(
                float(certain_shares(each, method.channel, self.certainty, belief)[0])
                for each, belief in zip(attributes, beliefs, strict=True)
            )

        return lambda methods: np.array([value(method) for method in methods])

    def step(self, attributes: Sequence[Attribute], high: float) -> float:
        """12 epsilons in each power of ten; 48 of small tables; 4 below 0.001, where each takes long."""
        counts = max(len(each.vectors or ()) * each.n_levels for each in attributes)
        return math.log(10.0) / (4 if high <= LEAST_EPSILON else 48 if counts <= 100 else 12)

    def depends_on(self) -> dict[str, Any]:
        return {"certainty": self.certainty, "belief": self.belief}


@dataclass(frozen=True)
class CeilingMetric(Metric):
    """The worst case of two equally likely values, for an attacker who knows every other record. It rises."""

    name: ClassVar[str] = "max_ceiling"
    about: ClassVar[str] = "the ceiling"
    uses_data: ClassVar[bool] = False
    range: ClassVar[tuple[str, str]] = (
        "above 0.5, as one of two equally likely values is guessed half the time",
        "above 0.5, up to 1",
    )
    asked: ClassVar[str] = f"a worst case of at most {{}}% ({WORST_CASE})"
    aimed: ClassVar[str] = f"the worst case ({WORST_CASE}) at or below {{}}%"
    stated: ClassVar[str] = "the worst case is {}%"

    @staticmethod
    def admits(maximum: float) -> bool:
        return 0.5 < maximum <= 1

    def on(self, attributes: Sequence[Attribute]) -> Values:
        def value(method: Method) -> float:
            if isinstance(method, Perturbation):
                from cellrisk.risk.perturbed.figures import find_ceiling

                return find_ceiling(method)[0]
            return find_success(method.noise, Labels.even(2))

        return lambda methods: np.array([value(method) for method in methods])

    def step(self, attributes: Sequence[Attribute], high: float) -> float:
        return math.inf


@dataclass(frozen=True)
class EpsilonMetric(Metric):
    """Epsilon itself."""

    name: ClassVar[str] = "max_epsilon"
    about: ClassVar[str] = "epsilon"
    uses_data: ClassVar[bool] = False
    places: ClassVar[int] = 0
    range: ClassVar[tuple[str, str]] = ("a number above 0", "for example 1")
    asked: ClassVar[str] = "an epsilon of at most {}"
    aimed: ClassVar[str] = "epsilon at or below {}"
    stated: ClassVar[str] = "epsilon is {}"

    @staticmethod
    def admits(maximum: float) -> bool:
        return maximum > 0

    def on(self, attributes: Sequence[Attribute]) -> Values:
        def values(methods: Sequence[Method]) -> Floats:
            return np.array([method.epsilon for method in methods if isinstance(method, Mechanism)])

        return values

    def why_not(self, perturbation: Perturbation) -> str | None:
        return NO_EPSILON

    def step(self, attributes: Sequence[Attribute], high: float) -> float:
        return math.inf


@dataclass(frozen=True)
class RiskMetric(Metric):
    """One of the paper's measures: a smaller epsilon can have a larger one, because chance is part of it."""

    name: ClassVar[str] = "max_risk"
    about: ClassVar[str] = "the risk"
    every_smaller: ClassVar[bool] = False
    range: ClassVar[tuple[str, str]] = ("a share", "from 0 to 1")
    asked: ClassVar[str] = "a risk of at most {}%"
    aimed: ClassVar[str] = "the risk at or below {}%"
    stated: ClassVar[str] = "it is {}%"

    risk: RiskDefinition = field(default_factory=RiskDefinition)

    @classmethod
    def read(cls, certainty: Any, belief: Any, risk: RiskDefinition) -> Metric:
        return cls(risk.without_unused_priors)

    @staticmethod
    def admits(maximum: float) -> bool:
        return 0 <= maximum <= 1

    def on(self, attributes: Sequence[Attribute]) -> Values:
        measured = self.risk.of(attributes)
        return lambda methods: np.asarray(measured.under(_survive(methods)).max(axis=0))

    def why_not(self, perturbation: Perturbation) -> str | None:
        return None if self.risk.attack == "homogeneity" else PERTURBED_ATTACK


@dataclass(frozen=True)
class MarginMetric(RiskMetric):
    """How far one of the paper's measures lies above its chance level."""

    name: ClassVar[str] = "margin"
    asked: ClassVar[str] = "a risk at most {}% above chance"
    aimed: ClassVar[str] = "the risk at most {}% above chance"
    stated: ClassVar[str] = "it is {}% above"

    def on(self, attributes: Sequence[Attribute]) -> Values:
        measured = self.risk.of(attributes)

        def values(methods: Sequence[Method]) -> Floats:
            ends = [
                measured.limits(each.with_epsilon(LEAST_EPSILON)) for each in methods[:1] if isinstance(each, Mechanism)
            ]
            chance = np.array([limits.chance for limits in ends[0]])[:, None]
            return np.asarray((measured.under(_survive(methods)) - chance).max(axis=0))

        return values

    def why_not(self, perturbation: Perturbation) -> str | None:
        return super().why_not(perturbation) or NO_CHANCE


@dataclass(frozen=True)
class PeopleMetric(RiskMetric):
    """The expected number of people exposed."""

    name: ClassVar[str] = "max_people"
    places: ClassVar[int] = 0
    range: ClassVar[tuple[str, str]] = ("a number of people", "0 or more")
    asked: ClassVar[str] = "at most {} {people} exposed on average"
    aimed: ClassVar[str] = "the number of people exposed on average at or below {}"
    stated: ClassVar[str] = "it is {}"

    @staticmethod
    def admits(maximum: float) -> bool:
        return maximum >= 0

    def on(self, attributes: Sequence[Attribute]) -> Values:
        measured = self.risk.of(attributes).people
        return lambda methods: self.unit(attributes) * np.asarray(measured.under(_survive(methods)).max(axis=0))

    def unit(self, attributes: Sequence[Attribute]) -> float:
        return float(attributes[0].profiles.n_records)


METRICS: dict[str, type[Metric]] = {
    metric.name: metric
    for metric in (CausedMetric, CertainMetric, CeilingMetric, EpsilonMetric, RiskMetric, MarginMetric, PeopleMetric)
}
"""What can be limited, by the name of the argument, in the order in which limits are told."""


def _survive(methods: Sequence[Method]) -> CountChannel:
    return methods[0].channel.beside([method.channel for method in methods[1:]])


@dataclass(frozen=True)
class Limit:
    """The most that a metric may be, for every sensitive attribute.

    >>> Limit(CausedMetric(), 0.03).describe(), Limit(EpsilonMetric(), 2.0).aim()
    ('at most 3% of people given away because of their own record', 'epsilon at or below 2')
    """

    metric: Metric
    maximum: float

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def about(self) -> str:
        return self.metric.about

    @property
    def uses_data(self) -> bool:
        return self.metric.uses_data

    def value(self, attributes: Sequence[Attribute], method: Method) -> float:
        """The metric under one method."""
        return float(self.metric.on(attributes)([method])[0])

    def breach(self, attributes: Sequence[Attribute], method: Method) -> str | None:
        """What a mechanism or a perturbation breaks, or why that cannot be judged; None if the limit is kept."""
        why = self.metric.why_not(method) if isinstance(method, Perturbation) else None
        if why is not None:
            return f"{self.describe()}; {why}"
        value = self.value(attributes, method)
        return self.say_breach(value) if value > self.maximum else None

    def say_breach(self, value: float) -> str:
        """The limit, and the value that breaks it, in words."""
        risk = f" ({_name_risk(self.metric)})" if isinstance(self.metric, RiskMetric) else ""
        return f"{self.describe()}{risk}; {self.say(value)}"

    def describe(self) -> str:
        """The limit in words, after "asks for" or "gives"."""
        return self._fill(self.metric.asked, self.maximum)

    def aim(self) -> str:
        """The limit in words, after "keeps"."""
        return self._fill(self.metric.aimed, self.maximum)

    def say(self, value: float) -> str:
        """What the metric is somewhere, as a clause: to four digits, or as many as tell it from the limit."""
        rounded = (float(f"{value:.{digits}g}") for digits in range(4, 18))
        shown = next((each for each in rounded if (each > self.maximum) == (value > self.maximum)), value)
        return self._fill(self.metric.stated, shown)

    def _fill(self, words: str, number: float) -> str:
        people = "person" if self.maximum == 1 else "people"
        return words.format(as_given(number, self.metric.places), metric=self.metric, people=people)

    def to_dict(self) -> dict[str, Any]:
        """The limit as it was given, with what it depends on."""
        return {self.name: self.maximum, **self.metric.depends_on()}


def read_limits(
    *,
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: Any = USUAL_BELIEF,
    risk: RiskDefinition | None = None,
    **maxima: float | None,
) -> tuple[Limit, ...]:
    """The limits that were given, checked.

    >>> [limit.describe() for limit in read_limits(max_epsilon=2, max_caused=0.03)]
    ['at most 3% of people given away because of their own record', 'an epsilon of at most 2']
    """
    check_limits(maxima)
    read_certainties(certainty)
    given = {name: kind for name, kind in METRICS.items() if maxima.get(name) is not None}
    risk = risk or RiskDefinition()
    return tuple(Limit(kind.read(certainty, belief, risk), float(maxima[name] or 0.0)) for name, kind in given.items())


def check_limits(maxima: dict[str, Any]) -> None:
    """Refuses values that cannot be limits."""
    for name, value in maxima.items():
        kind = METRICS[name]
        if value is not None and not (is_number(value) and kind.admits(value)):
            what, allowed = kind.range
            raise InvalidInput(f"must be {what}", option=name, got=value, allowed=allowed, code="limit-range")


def tightest(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """The strictest limit on each metric, in the order in which metrics were first limited.

    >>> both = read_limits(max_caused=0.03) + read_limits(max_caused=0.02, max_epsilon=2)
    >>> [limit.maximum for limit in tightest(both)]
    [0.02, 2.0]
    """
    joined: list[Limit] = []
    for limit in limits:
        same = next((place for place, known in enumerate(joined) if known.metric == limit.metric), None)
        if same is None:
            joined.append(limit)
        else:
            joined[same] = min(joined[same], limit, key=lambda each: each.maximum)
    return tuple(joined)


def describe_limits(limits: Sequence[Limit]) -> list[str]:
    """The limits in words; one on another risk than the first is followed by the name of that risk."""
    risks = [limit.metric.risk for limit in limits if isinstance(limit.metric, RiskMetric)]
    return [
        f"{limit.describe()} ({_name_risk(limit.metric)})"
        if isinstance(limit.metric, RiskMetric) and limit.metric.risk != risks[0]
        else limit.describe()
        for limit in limits
    ]


def _name_risk(metric: RiskMetric) -> str:
    risk = metric.risk
    weights = {"uniform": ", each cell alike", "records": ", by records"}[risk.weights]
    attack = "" if risk.attack == "homogeneity" else f"{risk.attack} attack, "
    weighting = "" if risk.measure == "marginal_shrinkage" else weights
    return f"{attack}{risk.measure.replace('_', ' ')} risk, {risk.form}{weighting}"


@dataclass(frozen=True)
class LimitBound:
    """The epsilons that keep one limit."""

    limit: Limit
    intervals: Intervals
    """Every epsilon that keeps it, ascending, ends included, each end on its safe side."""
    allowed: Intervals
    """Those that it allows: where more privacy is never inadmissible, the first interval, if it begins low enough."""
    nearest: float
    """The epsilon at which the metric is least."""

    @property
    def largest(self) -> float | None:
        """The largest epsilon that the limit allows; None if there is none."""
        return self.allowed[-1][1] if self.allowed else None

    @property
    def binds_itself(self) -> bool:
        """Whether it is a limit on epsilon that is reached: it binds wherever the search ends."""
        return isinstance(self.limit.metric, EpsilonMetric) and self.largest == self.limit.maximum


def find_kept(
    limit: Limit, attributes: Sequence[Attribute], mechanism: Mechanism, searched: tuple[float, float]
) -> LimitBound:
    """Find the epsilons of a range that keep a limit.

    Where more privacy is never inadmissible, epsilons from 0.001 on must keep the limit, wherever the range begins; if
    0.001 does not keep it, those from 0.000001 on are searched.
    """
    metric, unit = limit.metric, limit.metric.unit(attributes)
    values = metric.on(attributes)

    def excess(epsilons: Floats) -> Floats:
        methods = [mechanism.with_epsilon(epsilon) for epsilon in epsilons.tolist()]
        return (values(methods) - limit.maximum) / unit if methods else np.zeros(0)

    def search(start: float, end: float) -> tuple[Intervals, float]:
        if isinstance(metric, EpsilonMetric):  # exactly, as the limit was given
            return (((start, min(end, limit.maximum)),) if start <= limit.maximum else ()), start
        near = metric.jumps * limit.maximum
        found = find_admissible(excess, start, end, metric.step(attributes, end), near)
        return found.intervals, found.where

    low, high = searched
    if not metric.every_smaller:
        intervals, nearest = search(low, high)
        return LimitBound(limit, intervals, intervals, nearest)
    low = min(low, LEAST_EPSILON)
    intervals, nearest = search(low, high)
    begins = bool(intervals) and intervals[0][0] == low
    if not begins and low > SMALLEST_EPSILON and excess(np.array([SMALLEST_EPSILON]))[0] <= 0:
        intervals, begins = (*search(SMALLEST_EPSILON, low)[0], *intervals), True
    return LimitBound(limit, intervals, intervals[:1] if begins else (), nearest)


def find_largest_without_data(limits: Sequence[Limit], mechanism: Mechanism) -> tuple[float | None, bool]:
    """How far limits on the guarantee alone let epsilon go, on any table, and whether one of them ends it.

    The first is None if one of them is not kept at the smallest epsilon.
    """
    end = min(LARGEST_EPSILON, mechanism.largest_epsilon)
    every = [find_kept(limit, (), mechanism, (SMALLEST_EPSILON, end)) for limit in limits]
    reached = [kept.largest for kept in every if kept.largest is not None]
    if len(reached) < len(every):
        return None, True
    largest = min([end, *reached])
    return largest, largest < end or any(kept.binds_itself for kept in every)


def say_largest(wavy: Sequence[str], keeps: str, others: bool, least: float = LEAST_EPSILON) -> str:
    """Return what the epsilon is that was found: of limits on these metrics, every smaller one keeps those too."""
    every = f"up to which every smaller one, from {min(least, LEAST_EPSILON):g} on,"
    if wavy and not others:
        return f"the largest epsilon {every} {keeps}"
    also = f", and {every} keeps the limit on {' and '.join(wavy)}" if wavy else ""
    return f"the largest epsilon that {keeps}{also}"


def say_again(again: Intervals, end: float | None) -> str:
    """Which epsilons keep every limit without being admissible."""
    if not again:
        return ""
    larger = "larger epsilons" if end else "epsilons"
    return f"; {larger} {show_spans(again)} keep every limit, but some smaller ones do not"
