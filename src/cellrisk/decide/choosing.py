"""`choose`: which epsilon, and what the next smaller and larger ones would cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.decide.limits import (
    METRICS,
    SMALLEST_EPSILON,
    Limit,
    LimitBound,
    RiskDefinition,
    find_kept,
    read_limits,
)
from cellrisk.decide.policies import Policies, Policy
from cellrisk.decide.search import Intervals, intersect
from cellrisk.decide.usefulness import TradeOff, TvdLimit, find_trade_off
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.precision import find_error
from cellrisk.risk.assessment import DecisionFigures
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.ceilings import even_success
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.risk.people import People, count_people
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, Limits, MeasuredRisk, read_settings
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_kind
from cellrisk.system.choices import Attack, Form, MeasureName, MechanismName, Neighbours, Weights
from cellrisk.system.formatting import round_down
from cellrisk.system.progress import Progress, share_of
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

ROLES = ("stricter", "recommended", "looser")
DIGITS = 2
"""Digits of an epsilon that is recommended."""
DEPENDS = ("certainty", "belief", "harmful", "unions")
"""What limits on attackers depend on, in JSON."""
WORST_CASES = (0.6, 0.75)
"""Worst cases for which epsilons are named, as information, if no limit binds."""


@dataclass(frozen=True)
class Alternative:
    """What one epsilon would mean."""

    role: str
    """stricter, recommended or looser"""
    epsilon: float
    limited: Mapping[str, float]
    """What is limited, by the name of its limit: the largest value of the metric."""
    within: int
    """A published count is within this of the true one in 95% of cases, whatever the true count."""
    risk: float
    people: tuple[People, ...]
    """People revealed, for each sensitive attribute."""
    tvd: float | None
    broken: tuple[str, ...] | None
    """The names of the limits that it breaks; None if no limit was set."""
    ceiling: float
    """The worst case of two equally likely values."""

    @property
    def verdict(self) -> str:
        """Which limits it breaks, in words."""
        return str(find_words("limits").verdict(self.broken))

    def to_dict(self) -> dict[str, Any]:
        fields = {name: value for name, value in vars(self).items() if name != "broken"}
        return {**fields, "people": [vars(people) for people in self.people], "verdict": self.verdict}


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Result):
    """The answer of `choose` for one mechanism and delta, with those for ``others`` beside it.

    ``epsilon`` is None if no epsilon keeps the limits, and if they bind none: ``why`` gives the reason.
    """

    wording = "choice"
    picture = "draw_choice"

    table: FrequencyTable
    mechanism: Mechanism
    """At any epsilon."""
    kept_limits: tuple[Limit, ...]
    """The limits asked for, made stricter by policies, then those of policies alone."""
    definition: RiskDefinition
    """The risk that is shown: the one that is limited first, or the one asked for."""
    kept: tuple[LimitBound, ...]
    """Which epsilons keep each limit."""
    trade_off: TradeOff | None
    searched: tuple[float, float]
    policies: Policies
    """The policies that were obeyed."""
    attacker: Attacker = field(default_factory=Attacker)
    """Whose certainty is shown."""
    others: tuple[Choice, ...] = ()
    """The answers for the other mechanisms and deltas."""

    @property
    def options(self) -> tuple[Choice, ...]:
        """This answer and those for other mechanisms and deltas."""
        return (self, *self.others)

    @cached_property
    def measured(self) -> MeasuredRisk:
        """The risk that is shown, of these sensitive attributes."""
        return self.definition.of(self.table.attributes)

    @cached_property
    def within_limits(self) -> Intervals:
        """Every interval that is admissible whatever the limit on the TVD."""
        return intersect((self.searched,), *(bound.allowed for bound in self.kept))

    @cached_property
    def admissible(self) -> Intervals:
        """Every admissible interval, ends included, each on its safe side."""
        return self.within_limits if self.trade_off is None else self.trade_off.restrict(self.within_limits)

    @property
    def again(self) -> Intervals:
        """Larger epsilons that keep every limit without being admissible, because some smaller ones do not."""
        kept = intersect((self.searched,), *(bound.intervals for bound in self.kept))
        kept = kept if self.trade_off is None else self.trade_off.restrict(kept)
        end = self.admissible[-1][1] if self.admissible else 0.0
        return tuple((low, high) for low, high in kept if low > end)

    @cached_property
    def exact_epsilon(self) -> float | None:
        """The largest admissible epsilon; None if there is none, and if no limit binds."""
        end = self.admissible[-1][1] if self.admissible else None
        binds = end is not None and (end < self.searched[1] or any(bound.binds_itself for bound in self.kept))
        return end if binds else None

    @cached_property
    def epsilon(self) -> float | None:
        """The epsilon that is recommended: rounded down to two digits inside the admissible set, unless it was given.

        With more digits if no number of two digits is admissible.
        """
        exact = self.exact_epsilon
        return exact if exact is None or self.given else round_down(exact, self.admissible[-1][0], DIGITS)

    @property
    def open_ended(self) -> bool:
        """Whether the limits hold up to the end of the range, so none of them says which epsilon to choose."""
        return bool(self.admissible) and self.exact_epsilon is None

    @property
    def given(self) -> bool:
        """Whether the epsilon is a limit on epsilon itself."""
        return any(bound.binds_itself and bound.largest == self.exact_epsilon for bound in self.kept)

    @cached_property
    def information(self) -> tuple[tuple[Limit, float], ...]:
        """If no limit binds: limits on the worst case and on epsilon with the epsilons that they allow."""
        if not self.open_ended:
            return ()
        cases = [limit for most in WORST_CASES for limit in read_limits(max_ceiling=most)]
        found = [(limit, find_kept(limit, (), self.mechanism, self.searched).largest) for limit in cases]
        allowed = [(limit, round_down(largest, digits=DIGITS)) for limit, largest in found if largest is not None]
        return (*allowed, *((limit, limit.maximum) for limit in self.kept_limits if limit.name == "max_epsilon"))

    @property
    def conflict(self) -> dict[str, Any] | None:
        """Two limits that exclude each other: which asks for at least an epsilon, and which allows at most another."""
        bounds = [(bound.limit.name, bound.allowed[0][0], bound.allowed[-1][1]) for bound in self.kept if bound.allowed]
        if self.admissible or len(bounds) < len(self.kept) or not bounds:
            return None
        if self.trade_off is not None and self.trade_off.least_epsilon is not None:
            bounds.append(("max_tvd", self.trade_off.least_epsilon, math.inf))
        asks, allows = max(bounds, key=lambda bound: bound[1]), min(bounds, key=lambda bound: bound[2])
        found = {"asks": asks[0], "at_least": asks[1], "allows": allows[0], "at_most": allows[2]}
        return found if asks[1] > allows[2] else None

    @cached_property
    def risk(self) -> float | None:
        """The risk at that epsilon, of the sensitive attribute with the highest."""
        return None if self.epsilon is None else self.risk_at(self.epsilon)

    def risk_at(self, epsilon: float) -> float:
        return float(self.measured.at(self.mechanism, np.array([epsilon])).max())

    @property
    def lowest_epsilon(self) -> float:
        """The epsilon that comes nearest to the limits on risks, or stays farthest below them."""
        on_risks = [bound for bound in self.kept if bound.limit.risk is not None]
        hardest = next((bound for bound in on_risks if not bound.intervals), on_risks[0] if on_risks else None)
        return self.searched[0] if hardest is None else hardest.nearest

    @cached_property
    def lowest_risk(self) -> float:
        """The risk at that epsilon."""
        return self.risk_at(self.lowest_epsilon)

    @cached_property
    def limits(self) -> Limits:
        """Chance and raw risk of the attribute with the highest raw risk."""
        return max(self.measured.limits(self.mechanism), key=lambda ends: ends.raw)

    @property
    def why(self) -> str:
        """Why it is this epsilon, or none."""
        return str(find_words("choice").why(self))

    @property
    def without_epsilon(self) -> str:
        """Why there is no epsilon, in a few words: what ``why`` begins with."""
        return self.why.partition(":")[0]

    def _row(self) -> dict[str, Any]:
        """The answer for this mechanism and delta in JSON."""
        return {
            "epsilon": self.epsilon,
            "exact_epsilon": self.exact_epsilon,
            "risk": self.risk,
            "admissible": [list(interval) for interval in self.admissible],
            "larger_that_keep": [list(interval) for interval in self.again],
            "conflict": self.conflict,
            "information": [{**limit.to_dict(), "epsilon": epsilon} for limit, epsilon in self.information],
            "why": self.why,
            "mechanism": self.mechanism.name,
            "delta": self.mechanism.delta,
            "lowest": {"epsilon": self.lowest_epsilon, "risk": self.lowest_risk},
            "searched": list(self.searched),
        }

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What the epsilon chosen, half of it and twice it would mean; none if none was chosen."""
        if self.epsilon is None:
            return ()
        return weigh(self.measured, self.mechanism, self.epsilon, self.kept_limits, self.trade_off)

    @cached_property
    def no_noise(self) -> Mapping[str, float | None]:
        """What is limited, by the name of its limit, for the table published as it is; None if it is not known."""
        attributes = self.measured.attributes
        return {limit.name: limit.without_noise(attributes) for limit in self.kept_limits if self.epsilon is not None}

    @cached_property
    def figures(self) -> tuple[DecisionFigures, ...]:
        """The figures to decide by at the epsilon chosen, for each sensitive attribute; none if none was chosen."""
        if self.epsilon is None:
            return ()
        mechanism, attack = self.mechanism.with_epsilon(self.epsilon), self.measured.attack
        return tuple(
            DecisionFigures(attribute, mechanism, self.attacker, attack, chosen=self.from_data)
            for attribute in self.measured.attributes
        )

    @cached_property
    def shown(self) -> Limit:
        """The limit whose metric a picture shows: the one that binds, or the first on a share; else one on the risk."""
        shares = [bound for bound in self.kept if bound.limit.kind.most == 1.0]
        binding = [bound for bound in shares if bound.largest == self.exact_epsilon]
        risk = Limit("max_risk", 1.0, risk=self.definition)
        return next((bound.limit for bound in (*binding, *shares)), risk)

    def shown_at(self, epsilons: Floats) -> Floats:
        """Return what a picture shows, of the worst attribute at each epsilon.

        Parameters
        ----------
        epsilons
            Some epsilons.
        """
        methods = [self.mechanism.with_epsilon(epsilon) for epsilon in epsilons.tolist()]
        return self.shown.metric(self.measured.attributes)(methods) if methods else epsilons

    @property
    def from_data(self) -> bool:
        """Whether the records may have had a say in the answer: in a limit, or in the delta, which may be theirs."""
        pure = all(option.mechanism.pure for option in self.options)
        return limits_use_data(self.kept_limits, self.trade_off) or not pure

    @property
    def choice_note(self) -> str:
        """What the choice itself discloses, in a sentence."""
        words = find_words("choice")
        return str(words.CHOICE_NOTE if self.from_data else words.WITHOUT_DATA)

    def _numbers(self) -> list[dict[str, Any]]:
        """One row for each admissible interval of each mechanism and delta; one without numbers if there is none."""
        return [
            {"mechanism": option.mechanism.name, "delta": option.mechanism.delta, "low": low, "high": high}
            for option in self.options
            for low, high in option.admissible or ((None, None),)
        ]

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk choose --json`` prints."""
        limits: dict[str, Any] = {}
        alternatives = [alternative.to_dict() for alternative in self.alternatives]
        for alternative in alternatives:
            alternative[self.table.revealed_name] = alternative.pop("people")  # or records
        for limit in reversed(self.kept_limits):  # the first of a name is the one asked for
            limits |= limit.to_dict()
        return {
            **self._row(),
            "unit": self.table.unit.to_dict(),
            "limits": {name: limits[name] for name in (*METRICS, *DEPENDS) if name in limits},
            "policy": self.policies.to_dict(),
            "question": find_words("limits").name_risk(self.definition),
            "chance": self.limits.chance,
            "raw": self.limits.raw,
            "decision": [each.to_dict() for each in self.figures],
            "alternatives": alternatives,
            "no_noise": self.no_noise,
            "options": [option._row() for option in self.options],
            "trade_off": None if self.trade_off is None else self.trade_off.to_dict(),
            "headline": self.headline,
        }


def limits_use_data(limits: Sequence[Limit], tvd: TradeOff | TvdLimit | None) -> bool:
    """Whether it reveals something about the records that these limits are kept, or which epsilon keeps them."""
    return tvd is not None or any(limit.kind.uses_data for limit in limits)


def choose(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName] = USUAL_MECHANISM,
    *,
    max_caused: float | None = None,
    max_certain: float | None = None,
    max_person: float | None = None,
    max_ceiling: float | None = None,
    max_posterior: str | None = None,
    max_epsilon: float | None = None,
    max_error: int | None = None,
    max_risk: float | None = None,
    max_people: float | None = None,
    margin: float | None = None,
    max_tvd: float | None = None,
    certainty: float = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
    measure: MeasureName = "local",
    form: Form = "tight",
    weights: Weights = "records",
    delta: float | Sequence[float] | None = None,
    least_epsilon: float = LEAST_EPSILON,
    largest_epsilon: float | None = None,
    priors: Priors = USUAL_PRIORS,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    attack: Attack = "homogeneity",
    way: int = 2,
    releases: int = 20,
    seed: int = 0,
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Return the largest epsilon that keeps the limits.

    All limits must hold, for every sensitive attribute. The epsilon is rounded down to two significant digits, or the
    fewest more that are admissible; ``exact_epsilon`` is not rounded. Under ``max_caused``, ``max_certain``,
    ``max_person``, ``max_ceiling``, ``max_posterior`` and ``max_epsilon`` the answer is the largest epsilon up to which
    every smaller one, from 0.001 on, keeps the limit: with geometric noise and threshold 0.5 an attacker can add noise
    and obtain a release of any smaller epsilon; with other noise it is a cautious convention. ``max_error`` sets a
    smallest epsilon. Under ``max_risk``, ``max_people`` and ``margin``, the paper's measure, a smaller epsilon can be
    inadmissible. If no epsilon from 0.001 on will do, those from 0.000001 on are searched. If the limits hold up to the
    end of the range, ``epsilon`` is None, and ``why`` says what to do.

    The paper's measures are scanned at 26 epsilons in each power of ten, and every bend between them is followed. What
    attackers learn jumps: it is scanned at as many epsilons (12 in tables of more than 20,000 counts), so a rise above
    the limit and back between two of them can be overlooked.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        One name or several; of an object, the epsilon does not matter, and its delta, neighbours and threshold are
        taken. With several mechanisms or deltas each has its own answer; the first is the headline.
    max_caused
        The largest share of the people of a category who may be revealed because of their own record: of the four
        attacks that `assess` prints, and of all categories. Categories of fewer than five people count together.
    max_certain, certainty, belief
        The largest share of the people of a category whose value the informed attacker may learn: with at least that
        certainty, and with at least three times the odds that the overall share gives. The attacker's prior is as in
        `assess`; "table" is refused. With three categories or more the upper end of the figure counts.
    harmful, unions
        Values to which ``max_certain`` is restricted, and sets of values that are also assessed as one, as in `assess`.
    max_person
        The most that one person's own record may add to the probability that one of these attacks names their value.
    max_ceiling
        The worst case for one record, between two equally likely values: above 0.5, up to 1. Uses no data.
    max_posterior
        "P:Q" in percent: an attacker who knows every other record and suspects a value with probability P comes to
        believe it with at most Q. Uses no data; requires a mechanism without a delta.
    max_epsilon
        The largest epsilon, whatever the figures.
    max_error
        A whole number N: a published count is within N of the true one in at least 95% of cases, whatever the true
        count. Uses no data.
    max_risk, max_people, margin
        The largest risk, the most people revealed on average, and the largest risk above chance.
    max_tvd, way, releases, seed
        The largest mean total variation distance of the ``way``-way marginals, which sets a smallest epsilon, and the
        simulated releases that it is estimated from, as in `utility`.
    measure, form, weights
        The words of the risk, as in `assess`.
    delta
        One or several, for the Gaussian mechanisms that are named; default about one over the number of records.
    least_epsilon, largest_epsilon
        The ends of the search.
    priors
        How the priors of the measures that need any are found.
    neighbours, threshold
        Those of a mechanism that is named.
    attack
        As in `assess`.
    policy
        One to obey beside those that are in force (`Policies.in_force`): the tightest limit of each kind holds, and
        if nothing is asked for, theirs alone.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "education"], "income", bins={"age": 5})
    >>> choice = choose(table, max_ceiling=0.75)
    >>> choice.epsilon, round(choice.exact_epsilon, 4)  # ln 3
    (1.0, 1.0986)
    >>> unbound = choose(table, max_risk=0.2)
    >>> unbound.epsilon is None, len(unbound.admissible)
    (True, 1)
    """
    maxima = {name: maximum for name, maximum in locals().items() if name in METRICS}
    require_table(table)
    require_kind("priors", priors, Priors)
    policies = Policies.in_force(policy)
    risk = RiskDefinition(measure, form, weights, attack, priors)
    attack_words = certainty, belief, harmful, unions
    attacker = Attacker.of(*attack_words)
    limits = policies.join(read_limits(*attack_words, risk, **maxima), risk)
    if not limits:
        raise InvalidInput(
            "no limit was given to choose by",
            allowed=", ".join(map(argument, METRICS)),
            fix=f"for example {argument('max_caused', 0.01)}",
            code="no-limit",
        )
    delta = policies.choose_delta(mechanism, delta, table.n_records)
    settings = read_settings(mechanism, delta, neighbours, threshold, table)
    tvd_limit = None if max_tvd is None else TvdLimit(max_tvd, way, releases, seed)
    searched = least_epsilon, largest_epsilon
    return choose_within(table, limits, settings, tvd_limit, policies, searched, risk, attacker, progress)


def choose_within(
    table: FrequencyTable,
    limits: tuple[Limit, ...],
    mechanisms: Sequence[Mechanism],
    tvd_limit: TvdLimit | None = None,
    policies: Policies = Policies(),  # noqa: B008 (it cannot be changed)
    searched: tuple[float, float | None] = (LEAST_EPSILON, None),
    risk: RiskDefinition = RiskDefinition(),  # noqa: B008 (it cannot be changed)
    attacker: Attacker = Attacker(),  # noqa: B008 (it cannot be changed)
    progress: Progress | None = None,
) -> Choice:
    """`choose` for limits and mechanisms that were read already, with the policies that the limits obey.

    ``risk`` is the one to be shown if no limit is on a risk.
    """
    attacker.check(table.attributes)
    definition = next((limit.risk for limit in limits if limit.risk is not None), risk)
    choices: list[Choice] = []
    for number, mechanism in enumerate(mechanisms):
        low, high = searched
        high = min(LARGEST_EPSILON, mechanism.largest_epsilon) if high is None else high
        mechanism.check_epsilon(low)
        mechanism.check_epsilon(high)
        if not low < high:
            got = f"{low:g} to {high:g}"
            raise InvalidInput("the range of epsilons is empty", got=got, fix="widen it", code="empty-range")
        trade_off = None
        if number == 0 and tvd_limit is not None:
            trade_off = find_trade_off(table, mechanism, (low, high), tvd_limit, progress)
        for least in (low, SMALLEST_EPSILON):
            shown = share_of(progress, number / len(mechanisms), (number + 1) / len(mechanisms))
            kept = tuple(
                find_kept(limit, table.attributes, mechanism, (float(least), float(high)), shown) for limit in limits
            )
            asked = (
                table,
                mechanism,
                limits,
                definition,
                kept,
                trade_off,
                (float(least), float(high)),
                policies,
                attacker,
            )
            choice = Choice(*asked)
            hopeless = any(each.limit.kind.every_smaller and not each.allowed for each in kept)
            if low != LEAST_EPSILON or choice.within_limits or hopeless:
                break
        choices.append(choice)
        if progress is not None:
            progress((number + 1) / len(mechanisms))
    return replace(choices[0], others=tuple(choices[1:]))


def weigh(
    measured: MeasuredRisk,
    mechanism: Mechanism,
    epsilon: float,
    limits: Sequence[Limit] = (),
    trade_off: TradeOff | None = None,
) -> tuple[Alternative, ...]:
    """What half an epsilon, the epsilon and twice it would mean, up to the largest with a guarantee."""
    epsilons = epsilon / 2.0, epsilon, min(epsilon * 2.0, mechanism.largest_epsilon)
    methods = [mechanism.with_epsilon(value) for value in epsilons]
    values = [limit.metric(measured.attributes)(methods) for limit in limits]
    alternatives = []
    for place, (role, method) in enumerate(zip(ROLES, methods, strict=True)):
        limited = {limit.name: float(value[place]) for limit, value in zip(limits, values, strict=True)}
        broken = [limit.name for limit, value in zip(limits, values, strict=True) if value[place] > limit.maximum]
        if trade_off is not None and not trade_off.restrict(((method.epsilon, method.epsilon),)):
            broken.append("the TVD")
        channel = method.channel
        alternatives.append(
            Alternative(
                role,
                method.epsilon,
                limited,
                find_error(method),
                float(measured.under(channel).max()),
                tuple(count_people(each.profiles, channel, measured.attack) for each in measured.attributes),
                None if trade_off is None else trade_off.at(method.epsilon),
                tuple(broken) if limits or trade_off else None,
                even_success(method),
            )
        )
    return tuple(alternatives)
