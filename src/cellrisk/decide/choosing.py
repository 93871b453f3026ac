"""`choose`: which epsilon, and what the next smaller and larger ones would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.decide.analytic import find_epsilons
from cellrisk.decide.figure_limits import (
    EpsilonLimit,
    FigureLimit,
    find_reaches,
    say_largest,
)
from cellrisk.decide.option import Option, SearchedRange, find_worst
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy import Policy, RiskDefinition
from cellrisk.decide.requirement import Condition, Requirement, describe_conditions, find_excesses
from cellrisk.decide.search import SMALLEST_EPSILON, Admissible
from cellrisk.decide.tradeoff import TradeOff, TvdLimit, find_trade_off
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.ceilings import Labels, find_success
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief
from cellrisk.risk.figures import Attacker, DecisionFigures, find_figures, say_tables
from cellrisk.risk.measures import Survival
from cellrisk.risk.people import People, count_people
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, Limits, MeasuredRisk, read_settings
from cellrisk.system.arrays import Floats
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result
from cellrisk.system.sketches import draw_bars
from cellrisk.system.text import (
    CURATOR_NOTE,
    DIGITS,
    aligned,
    as_given,
    claim,
    make_sentence,
    number_of,
    percent,
    show_down,
    whole_people,
)
from cellrisk.system.words import Attack, Form, MeasureName, MechanismName, Neighbours, NoisyCells, Weights

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

CHOICE_NOTE = (
    "Choosing epsilon from the data is itself a disclosure: account for it, or choose on public data of the same kind."
)
WITHOUT_DATA = "The epsilon follows from limits on the guarantee alone: that choice discloses nothing about the data."
WITHIN = "within every limit"
FACTOR = 2.0
"""The alternatives are this much stricter and looser."""
ROLES = ("stricter", "recommended", "looser")
SHOWN = 121


@dataclass(frozen=True)
class Alternative:
    """What one epsilon would mean."""

    role: str
    """stricter, recommended or looser"""
    epsilon: float
    risk: float
    people: tuple[People, ...]
    """People exposed, for each sensitive attribute."""
    tvd: float | None
    verdict: str
    caused: tuple[float, ...] = ()
    """People given away because of their own record, for each sensitive attribute."""
    ceiling: float | None = None
    """The worst case of two equally likely values."""


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Result):
    """The answer of `choose`.

    ``epsilon`` is None where no epsilon keeps the limits, and where they bind none: ``why`` gives the reason.
    """

    picture = "draw_choice"

    table: FrequencyTable
    requirement: Requirement | None
    """The limits on the risk that was asked for; None where only figures to decide by are limited."""
    measured: MeasuredRisk
    options: tuple[Option, ...]
    """One for each mechanism and delta; the first is the answer."""
    trade_off: TradeOff | None
    conditions: tuple[Condition, ...]
    """Every requirement that was met: the one asked for first, then those of policies on other risks."""
    policies: Policies
    """The policies that were obeyed."""
    figure_limits: tuple[FigureLimit, ...] = ()
    """The limits on caused, certainty, the ceiling and epsilon, those of policies too."""
    attacker: Attacker = field(default_factory=Attacker)
    """Whose certainty is told."""

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What the epsilon chosen, half of it and twice it would mean; none where none was chosen."""
        if self.epsilon is None:
            return ()
        setting = self.options[0].setting
        return weigh(self.measured, setting, self.epsilon, self.conditions, self.trade_off, self.figure_limits)

    @cached_property
    def figures(self) -> tuple[DecisionFigures, ...]:
        """The figures to decide by at the epsilon chosen, for each sensitive attribute; none where none was chosen."""
        if self.epsilon is None:
            return ()
        mechanism, attack = self.options[0].setting.with_epsilon(self.epsilon), self.measured.attack
        found = tuple(
            find_figures(attribute, mechanism, people, attack, self.attacker)
            for attribute, people in zip(self.measured.attributes, self.alternatives[1].people, strict=True)
        )
        return tuple(each.as_chosen() for each in found) if self.from_data else found

    @cached_property
    def scan(self) -> tuple[Floats, Floats]:
        """Epsilons along the range searched, and the worst attribute's risk at each: what a picture shows."""
        epsilons = np.geomspace(*self.options[0].searched, SHOWN)
        return epsilons, self.measured.at(self.options[0].setting, epsilons).max(axis=0)

    def rounded(self, digits: int = DIGITS) -> Choice:
        """The same answer with an epsilon of so many digits, or the fewest more that the limits admit, if any do."""
        first = self.options[0]
        epsilon = first.round(digits)
        if epsilon is None:
            return self
        risk = find_worst(self.measured, first.setting, epsilon)
        return replace(self, options=(replace(first, epsilon=epsilon, risk=risk), *self.options[1:]))

    @property
    def epsilon(self) -> float | None:
        return self.options[0].epsilon

    @property
    def risk(self) -> float | None:
        return self.options[0].risk

    @property
    def admissible(self) -> tuple[tuple[float, float], ...]:
        return self.options[0].admissible

    @property
    def limits(self) -> Limits:
        return self.options[0].limits

    @property
    def why(self) -> str:
        return self.options[0].why

    @property
    def open_ended(self) -> bool:
        """Whether the limits hold up to the end of the range, so that nothing is recommended."""
        return self.options[0].open_ended

    @property
    def from_data(self) -> bool:
        """Whether the records may have had a say in the answer: in a limit, or in the delta, which may be theirs."""
        pure = all(option.setting.pure for option in self.options)
        return limits_use_data(self.conditions, self.figure_limits, self.trade_off) or not pure

    @property
    def choice_note(self) -> str:
        """What the choice itself discloses, in a sentence."""
        return CHOICE_NOTE if self.from_data else WITHOUT_DATA

    @property
    def wanted(self) -> str:
        """The limits in words."""
        return " and ".join(self._describe_limits(self.figure_limits))

    def _describe_limits(self, figure_limits: Sequence[FigureLimit]) -> list[str]:
        parts = [limit.describe() for limit in figure_limits]
        parts += [describe_conditions(self.conditions)] if self.conditions else []
        parts += [] if self.trade_off is None else [self.trade_off.limit.describe()]
        return parts

    @property
    def _kept(self) -> str:
        """The limits in words, after "keeps"."""
        limits: list[FigureLimit | Requirement] = [*self.figure_limits]
        limits += [each.requirement for each in self.conditions]
        if len(limits) == 1 and self.trade_off is None:
            return limits[0].aim()
        return f"every limit ({'; '.join(self._describe_limits(self.figure_limits))})"

    def name_largest(self, keeps: str) -> str:
        """What the epsilon is, in words; ``keeps`` is the limits with a verb."""
        wavy = [each.about for each in self.figure_limits if each.uses_data]
        others = bool(self.conditions) or self.trade_off is not None
        return say_largest(wavy, keeps, others, self.options[0].searched[0])

    @property
    def headline(self) -> str:
        """What a member of a board can repeat."""
        first = self.options[0]
        noise = _name_noise(first.setting)
        if first.open_ended:
            return f"With {noise}, nothing is recommended: {first.why}."
        if first.shown is None or first.risk is None:
            return f"For {self.wanted} with {noise}, {first.why}."
        largest = self.name_largest(f"keeps {self._kept}")
        if first.given:
            limits = [each for each in self.figure_limits if not isinstance(each, EpsilonLimit)]
            kept = "; ".join(self._describe_limits(limits))
            largest = f"the largest epsilon allowed{f', and it keeps the other limits: {kept}' if kept else ''}"
        said = f"With {noise}, {as_given(first.shown)} is {largest}."
        people = "; ".join(
            f"{attribute.name}: {found.describe()} of {number_of(self.table.n_records, 'person')} exposed"
            for attribute, found in zip(self.measured.attributes, self.alternatives[1].people, strict=True)
        )
        return f"{said} The {self.measured.name}, is then {percent(first.risk)}; {people}." if self.conditions else said

    def _numbers(self) -> list[dict[str, Any]]:
        """One row an admissible interval of each mechanism and delta; one without numbers where there is none."""
        rows = []
        for option in self.options:
            for low, high in option.admissible or ((None, None),):
                rows.append({"mechanism": option.setting.name, "delta": option.setting.delta, "low": low, "high": high})
        return rows

    def _sketch(self) -> str:
        """The risk at the epsilon chosen, and at one on each side."""
        rows = [
            (f"epsilon {show_down(each.epsilon)}: {each.verdict}", each.risk, percent(each.risk))
            for each in self.alternatives
        ]
        return draw_bars(rows) if rows else ""

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk choose --json`` prints."""
        first, *_ = options = [_option(option) for option in self.options]
        return {
            **first,
            "limits": self._limits(),
            "policy": self.policies.to_dict(),
            "question": self.measured.name,
            "chance": self.limits.chance,
            "raw": self.limits.raw,
            "decision": [each.to_dict() for each in self.figures],
            "alternatives": [
                {**vars(each), "people": [vars(people) for people in each.people]} for each in self.alternatives
            ],
            "options": options,
            "trade_off": None if self.trade_off is None else self.trade_off.to_dict(),
            "headline": self.headline,
        }

    def _limits(self) -> dict[str, Any]:
        """The limits by their names, with the certainty and the belief that they depend on."""
        given = {} if self.requirement is None else vars(self.requirement)
        found = {name: value for name, value in given.items() if value is not None}
        for limit in reversed(self.figure_limits):  # the first of a name is the one asked for
            found |= limit.to_dict()
        return found

    def _paragraphs(self) -> list[str]:
        parts = [] if self.epsilon is None and not self.options[1:] else [make_sentence(self.why)]
        for each, limits in zip(self.figures, self.measured.people.limits(self.options[0].setting), strict=False):
            shown = self.options[0].setting.with_epsilon(self.options[0].shown or 0.0)  # as in the headline
            parts.append(replace(each, mechanism=shown).sentence(limits.chance))
        if len(self.options) > 1:
            rows = [[option.setting.describe(), *_numbers(option)] for option in self.options]
            parts.append(aligned(["mechanism", "largest epsilon", "risk"], rows))
        if self.alternatives:
            rows = [
                [each.role, show_down(each.epsilon), percent(each.risk)]
                + [whole_people(people.mean) for people in each.people]
                + [*map(whole_people, each.caused)]
                + ["-" if each.ceiling is None else f"{each.ceiling:.4f}"]
                + ([] if each.tvd is None else [f"{each.tvd:.4f}"])
                + [each.verdict]
                for each in self.alternatives
            ]
            people = [f"people ({attribute.name})" for attribute in self.measured.attributes]
            caused = [f"caused ({attribute.name})" for attribute in self.measured.attributes]
            tvd = ["TVD"] if self.trade_off is not None else []
            parts.append(aligned(["", "epsilon", "risk", *people, *caused, "ceiling", *tvd, "verdict"], rows))
        if self.policies:
            parts.append(self.policies.describe())
        if self.epsilon is not None:
            parts += say_tables(self.options[0].setting.with_epsilon(self.epsilon), len(self.measured.attributes))
        return [*parts, f"{CURATOR_NOTE} {self.choice_note}"]


def limits_use_data(
    conditions: Sequence[Condition], figure_limits: Sequence[FigureLimit], tvd: TradeOff | TvdLimit | None
) -> bool:
    """Whether it tells something about the records that these limits are kept, or which epsilon keeps them."""
    return bool(conditions) or tvd is not None or any(limit.uses_data for limit in figure_limits)


@takes_priors
def choose(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName] = USUAL_MECHANISM,
    *,
    max_caused: float | None = None,
    max_certain: float | None = None,
    max_ceiling: float | None = None,
    max_epsilon: float | None = None,
    max_risk: float | None = None,
    max_people: float | None = None,
    margin: float | None = None,
    max_tvd: float | None = None,
    certainty: float = USUAL_CERTAINTY,
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF,
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
    cells: NoisyCells = "domain",
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Which is the largest epsilon that keeps the limits?

    Under ``max_caused``, ``max_certain``, ``max_ceiling`` and ``max_epsilon`` every smaller epsilon is allowed too: the
    answer is the largest epsilon up to which every smaller one, from 0.001 on, keeps the limit. Larger ones may keep it
    again: ``why`` says which. Under ``max_risk``, ``max_people`` and ``margin``, the paper's measure, a smaller epsilon
    can be inadmissible; the whole admissible set comes back, each edge on its safe side and within one part in a
    million. Where no epsilon from 0.001 on will do, those from 0.000001 on are searched. All limits must hold, for
    every sensitive attribute. Where they hold up to the end of the range, none of them says which epsilon to choose:
    ``epsilon`` is None, and ``why`` says what to do.

    What is proved: nothing that exceeds a limit on caused, or on a risk, by 1e-10 is overlooked; the ceiling rises with
    epsilon. Certainty jumps, and is scanned at 12 epsilons a decade or more: a rise above the limit and back between
    two of them can be overlooked.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        One name or several; of an object, the epsilon does not matter, and its delta, neighbours and threshold are
        taken. With several mechanisms or deltas each has its own answer; the first is the headline.
    max_caused
        The largest share of people who may be given away because of their own record, above 0.
    max_certain, certainty, belief
        The largest share of people whose value an attacker may name rightly with at least that certainty; what he
        believes beforehand is as in `assess`. With three labels or more the upper end of the figure counts.
    max_ceiling
        The worst case for one record, between two equally likely values: above 0.5, up to 1. Uses no data.
    max_epsilon
        The largest epsilon, whatever the figures.
    max_risk, max_people, margin
        The largest risk, the most people exposed on average, and the largest risk above chance.
    max_tvd, way, releases, seed, cells
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
        As in `assess`; caused is of this attack too.
    policy
        One to obey beside those that are in force (`Policies.in_force`): the tightest limit of each kind holds, and
        where nothing is asked for, theirs alone.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "education"], "income", bins={"age": 5})
    >>> round(choose(table, max_ceiling=0.75).epsilon, 4)  # ln 3
    1.0986
    >>> unbound = choose(table, max_risk=0.2)
    >>> unbound.epsilon is None, len(unbound.admissible)
    (True, 1)
    """
    require_table(table)
    policies = Policies.in_force(policy)
    risk = RiskDefinition(measure, form, weights, attack, priors)
    given = FigureLimit.read(
        max_caused=max_caused,
        max_certain=max_certain,
        max_ceiling=max_ceiling,
        max_epsilon=max_epsilon,
        certainty=certainty,
        belief=belief,
        attack=attack,
    )
    figure_limits = policies.join_figures(given)
    limits = {"max_risk": max_risk, "max_people": max_people, "margin": margin}
    conditions = policies.join(table, risk, needed=not figure_limits, **limits)
    delta = policies.choose_delta(mechanism, delta, table.n_records)
    settings = read_settings(mechanism, delta, neighbours, threshold, table.n_records)
    tvd_limit = None if max_tvd is None else TvdLimit(max_tvd, way, releases, seed, cells)
    return choose_within(
        table,
        conditions,
        settings,
        tvd_limit,
        policies,
        (least_epsilon, largest_epsilon),
        figure_limits,
        risk,
        Attacker.of(certainty, belief),
        progress=progress,
    )


def choose_within(
    table: FrequencyTable,
    conditions: tuple[Condition, ...],
    settings: Sequence[Mechanism],
    tvd_limit: TvdLimit | None = None,
    policies: Policies = Policies(),  # noqa: B008 (it cannot be changed)
    searched: tuple[float, float | None] = (LEAST_EPSILON, None),
    figure_limits: tuple[FigureLimit, ...] = (),
    risk: RiskDefinition = RiskDefinition(),  # noqa: B008 (it cannot be changed)
    attacker: Attacker = Attacker(),  # noqa: B008 (it cannot be changed)
    progress: Progress | None = None,
) -> Choice:
    """`choose` for limits and mechanisms that were read already, with the policies that the limits obey.

    ``risk`` is the one to be told where no condition is on a risk.
    """
    measured = conditions[0].measured if conditions else risk.of(table)
    n_levels = max(attribute.n_levels for attribute in measured.attributes)
    trade_off = None
    options = []
    for number, setting in enumerate(settings):
        low, high = _range(setting, *searched)
        if number == 0 and tvd_limit is not None:
            trade_off = find_trade_off(table, measured, setting, (low, high), tvd_limit, progress)
        for least in (low, SMALLEST_EPSILON):
            found = Admissible(((least, high),), 0.0, least)
            if conditions:
                found = find_epsilons(find_excesses(conditions, setting), setting, n_levels, least, high)
            reaches = find_reaches(figure_limits, measured.attributes, setting, (least, high))
            searching = SearchedRange(setting, measured, conditions, found, reaches, (least, high))
            option = searching.answer(trade_off if number == 0 else None)
            if low != LEAST_EPSILON or option.within_risk_limits or any(each.largest is None for each in reaches):
                break
        options.append(option)
        if progress is not None:
            progress((number + 1) / len(settings))
    return Choice(
        table,
        conditions[0].requirement if conditions else None,
        measured,
        tuple(options),
        trade_off,
        conditions,
        policies,
        figure_limits,
        attacker,
    )


def _range(setting: Mechanism, least: float, largest: float | None) -> tuple[float, float]:
    setting.with_epsilon(least)
    high = min(LARGEST_EPSILON, setting.largest_epsilon) if largest is None else setting.with_epsilon(largest).epsilon
    if not least < high:
        raise InvalidInput("the range of epsilons is empty", got=f"{least:g} to {high:g}", fix="widen it")
    return float(least), float(high)


def say_broken(limits: Sequence[str]) -> str:
    """The verdict on an epsilon that breaks the limits on these."""
    return f"breaks the limit on {' and '.join(limits)}" if limits else WITHIN


def weigh(
    measured: MeasuredRisk,
    setting: Mechanism,
    epsilon: float,
    conditions: Sequence[Condition] = (),
    trade_off: TradeOff | None = None,
    figure_limits: Sequence[FigureLimit] = (),
) -> tuple[Alternative, ...]:
    """What an epsilon, half of it and twice it would mean: risk, people, caused, ceiling, TVD, and limits broken.

    Twice the epsilon is cut to the largest for which the mechanism has a guarantee.
    """
    looser = min(epsilon * FACTOR, setting.largest_epsilon)
    excesses = find_excesses(conditions, setting) if conditions else None
    found = []
    for role, value in zip(ROLES, (epsilon / FACTOR, epsilon, looser), strict=True):
        mechanism = setting.with_epsilon(value)
        people = tuple(
            count_people(attribute.profiles, mechanism, measured.attack) for attribute in measured.attributes
        )
        tvd = None if trade_off is None else trade_off.at(value)
        broken = []
        if excesses is not None and excesses((mechanism.noise,)).max() > 0:
            broken.append("the risk")
        broken += [each.about for each in figure_limits if each.find(measured.attributes, mechanism) > each.most]
        if trade_off is not None and trade_off.breaks(value):
            broken.append("the TVD")
        verdict = say_broken(broken)
        survival = Survival((mechanism.noise,), mechanism.threshold)
        caused = [
            each.profiles.n_records * float(caused_shares(each.profiles, survival, attack=measured.attack)[0])
            for each in measured.attributes
        ]
        found.append(
            Alternative(
                role,
                value,
                find_worst(measured, setting, value),
                people,
                tvd,
                verdict if conditions or trade_off or figure_limits else "no limit was set",
                tuple(caused),
                find_success(mechanism.noise, Labels.even(2)),
            )
        )
    return tuple(found)


def _option(option: Option) -> dict[str, Any]:
    return {
        "epsilon": option.epsilon,
        "risk": option.risk,
        "admissible": [list(interval) for interval in option.admissible],
        "why": option.why,
        "mechanism": option.setting.name,
        "delta": option.setting.delta,
        "lowest": {"epsilon": option.lowest_epsilon, "risk": option.lowest_risk},
        "searched": list(option.searched),
    }


def _numbers(option: Option) -> list[str]:
    if option.shown is None or option.risk is None:
        return [option.without_epsilon, "-"]
    return [as_given(option.shown), percent(option.risk)]


def _name_noise(setting: Mechanism) -> str:
    """After "with"."""
    return f"{setting.name} noise" if setting.pure else f"{setting.name} noise (delta {claim(setting.delta)})"
