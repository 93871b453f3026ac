"""Limits: the most that a metric of a table may be under a method of release, and which epsilons keep one.

To add a limit, write one function of a metric and a table, list it in ``METRICS``, and give it words in
cellrisk.show.wording.limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.decide.search import EDGE, STEP, Intervals, find_admissible, scan_upwards
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.noise.precision import SHARE, find_error, probability_within
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.attacks import choose_risks
from cellrisk.risk.ceilings import even_success, find_ceiling, odds_bound, total_variation
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, why_unknown
from cellrisk.risk.measures import NEED_PRIOR, NEED_SIZES
from cellrisk.risk.priors import Priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, NO_NOISE, MeasuredRisk
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import is_number
from cellrisk.system.choices import Attack, Form, MeasureName, Weights, list_words, require_word
from cellrisk.system.formatting import as_given
from cellrisk.system.progress import Progress
from cellrisk.system.results import find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

SMALLEST_EPSILON = 1e-6
"""A search looks down to this before it reports that no epsilon keeps a limit."""
PERTURBED_ATTACK = "the risk under a perturbation is that of the homogeneity attack alone"
NO_CHANCE = "a perturbation has no noise that could drown the counts, and so no chance level"
NO_EPSILON = "a perturbation states no epsilon"
NO_ERROR = "the error is that of noise, which a perturbation does not have"
NO_TABLE = "a limit on what attackers learn requires a prior that does not look at the table"
WITH_DELTA = "with a delta no posterior is bounded; limit the worst case instead (max-ceiling)"
MANY_COUNTS = 20_000
"""Counts of a table above which an epsilon takes so long that fewer are looked at."""
FEW_COUNTS, FEW_STEPS = 200, 48
STEPS = 26, 12
"""Epsilons in each power of ten at which attackers are assessed: of small tables, and of large ones; of few counts,
of which every one makes the figures jump, more."""
EDGES = EDGE, 1e-4
"""The relative widths to which the edge is then narrowed."""
COARSE = math.log(10.0) / 4
"""The step in log epsilon beyond the first epsilon that breaks a limit, in large tables."""
NEAR = 0.1
"""A search looks closer where a metric comes within this part of its limit."""

NOTHING_ADDED = AdditiveChannel((NO_NOISE,), USUAL_THRESHOLD)
Method = Mechanism | Perturbation


Values = Callable[[Sequence[Method | None]], Floats]
"""A metric of one table: its value under each of several methods that differ in epsilon alone; None is no noise."""


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
        choose_risks(self.attack, self.measure, self.form, self.weights)

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
        asked = choose_risks(self.attack, self.measure, self.form, self.weights)
        fitted = (self.priors.fit(attribute, [self.measure]) for attribute in attributes)
        measures = tuple(asked.make(each.measure)[0] for each in fitted)
        weights = "uniform" if measures[0].one_number else self.weights
        return MeasuredRisk(tuple(attributes), measures, self.form, weights, self.attack)


@dataclass(frozen=True)
class Limit:
    """The most that a metric may be, of any sensitive attribute. Its words are in cellrisk.show.wording.limits.

    The metric is a number for a table under a method of release; the fields after the maximum are what it depends on,
    None if it does not.

    >>> Limit("max_caused", 0.03).describe()
    'at most 3% of any category revealed because of their own record'
    """

    name: str
    """The argument that limits it: max_caused, say."""
    maximum: float
    attacker: Attacker | None = None
    """Who applies Bayes' rule, with one certainty."""
    suspected: float | None = None
    """How likely an attacker finds a value before the release."""
    risk: RiskDefinition | None = None

    @property
    def kind(self) -> MetricKind:
        return METRICS[self.name]

    @property
    def certainty(self) -> float | None:
        """How sure the informed attacker must be."""
        return None if self.attacker is None else self.attacker.certainties[-1]

    def metric(self, attributes: Sequence[Attribute], enough: float = math.inf) -> Values:
        """Return the metric of attributes, as a function of methods; a value above ``enough`` may be less than it."""
        return self.kind.function(self, attributes, enough)

    def value(self, attributes: Sequence[Attribute], method: Method) -> float:
        """Return the metric under one method."""
        return float(self.metric(attributes)([method])[0])

    def is_on_same(self, other: Limit) -> bool:
        """Return whether both limit the same metric."""
        return replace(self, maximum=other.maximum) == other

    def why_not(self, method: Method) -> str | None:
        """Return why it cannot be judged for this method; None if it can."""
        if isinstance(method, Mechanism):
            return WITH_DELTA if self.suspected is not None and not method.pure else None
        attack = "homogeneity" if self.risk is None else self.risk.attack
        return PERTURBED_ATTACK if attack != "homogeneity" else self.kind.not_perturbed

    def breach(self, attributes: Sequence[Attribute], method: Method) -> str | None:
        """Return what a method breaks, or why that cannot be judged; None if the limit is kept."""
        why = self.why_not(method)
        if why is not None:
            return f"{self.describe()}; {why}"
        value = self.value(attributes, method)
        return str(find_words("limits").say_breach(self, value)) if value > self.maximum else None

    def without_noise(self, attributes: Sequence[Attribute]) -> float | None:
        """Return the metric of the table published as it is; None if that says nothing."""
        if self.kind.no_noise is not None or self.kind.not_perturbed is not None:
            return self.kind.no_noise
        return float(self.metric(attributes)([None])[0])

    def describe(self) -> str:
        """Return the limit in words, after "asks for" or "gives"."""
        return str(find_words("limits").describe(self))

    def say(self, value: float) -> str:
        """Return what the metric is somewhere, as a clause."""
        return str(find_words("limits").say(self, value))

    def to_dict(self) -> dict[str, Any]:
        """Return the limit as it was given, with what it depends on."""
        return {self.name: self.given, **({} if self.attacker is None else self.attacker.to_dict())}

    @property
    def given(self) -> float | str:
        """The limit as it was given."""
        if self.suspected is None:
            return self.maximum
        return f"{as_given(self.suspected, 2)}:{as_given(self.maximum, 2)}"


Figure = Callable[[Limit, "Sequence[Attribute]", float], Values]


@dataclass(frozen=True)
class MetricKind:
    """How a metric is computed, and which numbers can be limits on it."""

    function: Figure
    allowed: str = "a share of people above 0, up to 1"
    """What a limit may be, for refusals."""
    above: float = 0.0
    most: float = 1.0
    or_zero: bool = False
    """A limit is above the first and at most the second, or 0 if that is allowed."""
    depends: tuple[str, ...] = ()
    """The fields of `Limit` that it depends on."""
    uses_data: bool = True
    """Whether it depends on the table. If not, that a limit on it is kept reveals nothing about the records."""
    every_smaller: bool = True
    """Whether it is limited through its maximum over smaller epsilons: more privacy is then never inadmissible."""
    not_perturbed: str | None = None
    """Why it cannot be judged for a perturbation; None if it can."""
    no_noise: float | None = None
    """What it is without noise, if that does not depend on the table."""


def _of_attacks(figure: Callable[[AttackTable, float], float], bounded: bool = True) -> Figure:
    """Return a metric of the table of attackers.

    If it is ``bounded``, the total variation distance v that one record makes bounds it; noise too wide to be summed
    then counts with v.
    """

    def function(limit: Limit, attributes: Sequence[Attribute], enough: float) -> Values:
        attacker = limit.attacker or Attacker()
        tables = [table for attribute in attributes for table in _unpublished(attacker, attribute)]

        def value(method: Method | None) -> float:
            largest = 0.0
            for table in tables:
                made = table.under(None if method is None else method.channel)
                if bounded and made.drowned and isinstance(method, Mechanism):
                    largest = max(largest, total_variation(method))
                else:
                    largest = max(largest, figure(made, enough))
                if largest > enough:
                    break
            return largest

        return lambda methods: np.array([value(method) for method in methods])

    return function


def _unpublished(attacker: Attacker, attribute: Attribute) -> list[AttackTable]:
    """Return the table of attackers of an attribute, without noise, and that of attackers who know what occurs.

    Those leave out the categories that nobody has, so declaring more categories never raises the epsilon.
    """
    unknown = why_unknown(attribute)
    if unknown is not None:
        fix = f"use {argument('max_ceiling')}"
        raise InvalidInput(f"attacks cannot be assessed: {unknown}", fix=fix, code="attacks-unknown")
    [table] = attacker.tables(attribute, None)
    if table.prior is None:
        raise InvalidInput(NO_TABLE, got="table", allowed="negbin, or shapes/theta", code="table-belief")
    return [table] if table.people.all() else [table, table.without_unused()]


def _without_data(value: Callable[[Limit, Any], float]) -> Figure:
    """Return a metric of a method alone, which is the same for every table."""
    return lambda limit, _, __: lambda methods: np.array([value(limit, method) for method in methods])


def _posterior(limit: Limit, method: Mechanism) -> float:
    """What an attacker who knows every other record comes to believe at most, of a value suspected with P.

    Posterior odds are at most e^(2 epsilon) times prior odds if a record is added or removed, and e^epsilon times if
    it is replaced: adding and removing are two steps from one value to another.
    """
    suspected, factor = limit.suspected or 0.5, odds_bound(method)
    return 1.0 if factor is None else 1.0 / (1.0 + (1.0 - suspected) / (suspected * factor))


def _ceiling(limit: Limit, method: Method) -> float:
    """The worst case of two equally likely values, for an attacker who knows every other record. It rises."""
    return find_ceiling(method)[0] if isinstance(method, Perturbation) else even_success(method)


def _risk(limit: Limit, attributes: Sequence[Attribute], enough: float) -> Values:
    """One of the paper's measures; how far it lies above its value as epsilon goes to 0; or the people revealed.

    A smaller epsilon can have a larger one, because chance is part of it.
    """
    measured, records = (limit.risk or RiskDefinition()).of(attributes), 1
    if limit.name == "max_people":
        if attributes[0].several:
            raise InvalidInput(
                "counts records, and people may have several here",
                option="max_people",
                fix=f"use {argument('max_caused')}",
                code="several-records",
            )
        measured, records = measured.people, attributes[0].profiles.n_records

    def values(methods: Sequence[Method | None]) -> Floats:
        channels = [NOTHING_ADDED if method is None else method.channel for method in methods]
        noises = tuple(noise for each in channels if isinstance(each, AdditiveChannel) for noise in each.noises)
        channel = channels[0]
        risk = measured.under(replace(channel, noises=noises) if isinstance(channel, AdditiveChannel) else channel)
        if limit.name == "margin":
            [setting] = [each.with_epsilon(LEAST_EPSILON) for each in methods[:1] if isinstance(each, Mechanism)]
            risk = risk - np.array([[limits.chance] for limits in measured.limits(setting)])
        return records * np.asarray(risk.max(axis=0))

    return values


ON_RISK: dict[str, Any] = {"or_zero": True, "depends": ("risk",), "every_smaller": False}
METRICS: dict[str, MetricKind] = {
    "max_caused": MetricKind(_of_attacks(lambda table, enough: table.largest_own(enough)), depends=("attacker",)),
    "max_certain": MetricKind(_of_attacks(lambda table, _: table.largest_learnt(), False), depends=("attacker",)),
    "max_person": MetricKind(
        _of_attacks(lambda table, enough: table.largest_gain(enough)),
        "a probability above 0, up to 1",
        depends=("attacker",),
    ),
    "max_ceiling": MetricKind(
        _without_data(_ceiling),
        "above 0.5 (one of two equally likely values is guessed half the time), up to 1",
        above=0.5,
        uses_data=False,
        no_noise=1.0,
    ),
    "max_posterior": MetricKind(
        _without_data(_posterior),
        "P:Q in percent, such as 5:20: from a suspicion of 5% to at most 20%",
        depends=("suspected",),
        not_perturbed=NO_EPSILON,
        uses_data=False,
        no_noise=1.0,
    ),
    "max_epsilon": MetricKind(
        _without_data(lambda _, method: float(method.epsilon)),
        "a number above 0, for example 1",
        most=math.inf,
        not_perturbed=NO_EPSILON,
        uses_data=False,
    ),
    "max_error": MetricKind(
        _without_data(lambda _, method: find_error(method)),
        "a whole number, 0 or more",
        most=1e15,
        or_zero=True,
        every_smaller=False,
        not_perturbed=NO_ERROR,
        uses_data=False,
        no_noise=0.0,
    ),
    "max_risk": MetricKind(_risk, "a share from 0 to 1", **ON_RISK),
    "margin": MetricKind(_risk, "a share from 0 to 1", not_perturbed=NO_CHANCE, **ON_RISK),
    "max_people": MetricKind(_risk, "a number of people, 0 or more", most=math.inf, **ON_RISK),
}
"""What can be limited, by the name of the argument, in the order in which limits are listed."""


def read_limits(
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: Any = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
    risk: RiskDefinition | None = None,
    **maxima: Any,
) -> tuple[Limit, ...]:
    """Return the limits that were given, checked.

    >>> [limit.name for limit in read_limits(max_epsilon=2, max_caused=0.03)]
    ['max_caused', 'max_epsilon']
    """
    given = {name: value for name, value in maxima.items() if value is not None}
    suspected, posterior = _read_posterior(given.get("max_posterior"))
    for name, value in given.items():
        kind, number = METRICS[name], posterior if name == "max_posterior" else value
        fits = is_number(number) and (kind.above < number <= kind.most or (kind.or_zero and number == 0))
        if not fits or (name == "max_error" and number != int(number)):
            raise InvalidInput(f"must be {kind.allowed}", option=name, got=value, code="limit-range")
        maxima[name] = number
    attacker = Attacker.of(certainty, belief, harmful, unions)
    if "max_certain" in given and len(attacker.certainties) > 1:
        raise InvalidInput(
            "a limit on people inferred with certainty takes one certainty",
            got=f"{len(attacker.certainties)} of them",
            allowed="for example 0.95",
            code="one-certainty",
        )
    one = replace(attacker, certainties=attacker.certainties[-1:])
    known: dict[str, Any] = {"attacker": one, "suspected": suspected}
    known["risk"] = (risk or RiskDefinition()).without_unused_priors
    return tuple(
        Limit(name, float(maxima[name]), **{part: known[part] for part in kind.depends})
        for name, kind in METRICS.items()
        if name in given
    )


def _read_posterior(given: Any) -> tuple[float, float]:
    """Return P and Q of a limit P:Q in percent; Q is NaN if it is none."""
    try:
        suspected, posterior = (float(part) / 100.0 for part in str(given).split(":"))
    except ValueError:
        return math.nan, math.nan
    return suspected, posterior if 0 < suspected < posterior < 1 else math.nan


def tightest(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """The strictest limit on each metric, in the order in which metrics were first limited.

    >>> both = read_limits(max_caused=0.03) + read_limits(max_caused=0.02, max_epsilon=2)
    >>> [limit.maximum for limit in tightest(both)]
    [0.02, 2.0]
    """
    joined: list[Limit] = []
    for limit in limits:
        same = next((place for place, known in enumerate(joined) if known.is_on_same(limit)), None)
        if same is None:
            joined.append(limit)
        else:
            joined[same] = min(joined[same], limit, key=lambda each: each.maximum)
    return tuple(joined)


@dataclass(frozen=True)
class LimitBound:
    """The epsilons that keep one limit."""

    limit: Limit
    intervals: Intervals
    """Every epsilon that keeps it, ascending, ends included, each end on its safe side."""
    allowed: Intervals
    """Those that it allows: if more privacy is never inadmissible, the first interval, if it begins low enough."""
    nearest: float
    """The epsilon at which the metric is least."""

    @property
    def largest(self) -> float | None:
        """The largest epsilon that the limit allows; None if there is none."""
        return self.allowed[-1][1] if self.allowed else None

    @property
    def binds_itself(self) -> bool:
        """Whether it is a limit on epsilon that is reached: it binds wherever the search ends."""
        return self.limit.name == "max_epsilon" and self.largest == self.limit.maximum


def find_kept(
    limit: Limit,
    attributes: Sequence[Attribute],
    mechanism: Mechanism,
    searched: tuple[float, float],
    progress: Progress | None = None,
) -> LimitBound:
    """Find the epsilons of a range that keep a limit.

    If more privacy is never inadmissible, epsilons from 0.001 on must keep the limit, wherever the range begins; if
    0.001 does not keep it, those from 0.000001 on are searched.
    """
    low, high = searched
    why, least = limit.why_not(mechanism), math.ceil(mechanism.threshold)
    if why is not None:
        got = f"delta {mechanism.delta:g}"
        raise InvalidInput(f"cannot be judged: {why}", option=limit.name, got=got, code="limit-with-delta")
    if limit.name == "max_error" and least > limit.maximum + 1:
        raise InvalidInput(
            f"cannot be kept by any epsilon, as counts below {least:,} are published as 0",
            option="max_error",
            got=f"{limit.maximum:g}",
            allowed=f"{least - 1:,} or more with this threshold",
            code="error-below-threshold",
        )
    values = limit.metric(attributes, limit.maximum)
    unit = attributes[0].profiles.n_records if limit.name == "max_people" else 1.0  # rounding errors are of shares

    def excess(epsilons: Floats) -> Floats:
        methods = [mechanism.with_epsilon(epsilon) for epsilon in epsilons.tolist()]
        if limit.name == "max_error":
            return np.array([SHARE - probability_within(method, int(limit.maximum)) for method in methods])
        return (values(methods) - limit.maximum) / unit

    def search(start: float, end: float) -> tuple[Intervals, float]:
        if limit.name == "max_epsilon":  # exactly, as the limit was given
            return (((start, min(end, limit.maximum)),) if start <= limit.maximum else ()), start
        if limit.attacker is not None:
            return _search_attacks(limit, excess, mechanism, start, end, count_numbers(attributes), progress)
        found = find_admissible(excess, start, end, STEP if limit.kind.uses_data else math.inf)
        return found.intervals, found.where

    if not limit.kind.every_smaller:
        intervals, nearest = search(low, high)
        return LimitBound(limit, intervals, intervals, nearest)
    low = min(low, LEAST_EPSILON)
    intervals, nearest = search(low, high)
    begins = bool(intervals) and intervals[0][0] == low
    if not begins and low > SMALLEST_EPSILON and excess(np.array([SMALLEST_EPSILON]))[0] <= 0:
        intervals, begins = (*search(SMALLEST_EPSILON, low)[0], *intervals), True
    return LimitBound(limit, intervals, intervals[:1] if begins else (), nearest)


def count_numbers(attributes: Sequence[Attribute]) -> int:
    """Return how many counts the largest of these tables has."""
    return max(len(attribute.vectors or ()) * attribute.n_levels for attribute in attributes)


def _search_attacks(
    limit: Limit,
    excess: Callable[[Floats], Floats],
    mechanism: Mechanism,
    low: float,
    high: float,
    counts: int,
    progress: Progress | None,
) -> tuple[Intervals, float]:
    """Find the epsilons that keep a limit on what attackers learn, and the one at which the metric is least.

    What one record adds to an attack is at most the total variation distance v that it makes, v <= 1 - e^-epsilon
    without a delta: up to the epsilon at which v reaches the limit nothing is computed.
    """
    safe = low
    if limit.name != "max_certain":
        bound = find_admissible(
            lambda epsilons: (
                np.array([total_variation(mechanism.with_epsilon(each)) for each in epsilons.tolist()]) - limit.maximum
            ),
            low,
            high,
            math.inf,
        )
        safe = bound.intervals[0][1] if bound.intervals else low
    if safe == high:
        return ((low, high),), low
    large = counts > MANY_COUNTS
    steps = FEW_STEPS if counts <= FEW_COUNTS else STEPS[large or limit.name == "max_certain"]
    step = math.log(10.0) / (4 if high <= LEAST_EPSILON else steps)
    found = scan_upwards(
        excess, safe, high, step, COARSE if large else step, NEAR * limit.maximum, EDGES[large], progress
    )
    return tuple((low if start == safe else start, end) for start, end in found.intervals), found.where


def find_largest_without_data(limits: Sequence[Limit], mechanism: Mechanism) -> tuple[float | None, bool]:
    """Return how far limits that use no data let epsilon go, on any table, and whether one of them ends it.

    The first is None if one of them is not kept at the smallest epsilon.
    """
    end = min(LARGEST_EPSILON, mechanism.largest_epsilon)
    every = [find_kept(limit, (), mechanism, (SMALLEST_EPSILON, end)) for limit in limits]
    reached = [kept.largest for kept in every if kept.largest is not None]
    if len(reached) < len(every):
        return None, True
    largest = min([end, *reached])
    return largest, largest < end or any(kept.binds_itself for kept in every)
