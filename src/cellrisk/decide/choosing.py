"""`choose`: which epsilon, and what the next smaller and larger ones would cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.decide.analytic import find_epsilons
from cellrisk.decide.policies import Policies, Policy, RiskDefinition
from cellrisk.decide.requirement import Condition, Requirement, describe_conditions, find_excesses
from cellrisk.decide.search import Admissible
from cellrisk.decide.tradeoff import TradeOff, TvdLimit, find_trade_off
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.risk.assessment import CURATOR_NOTE
from cellrisk.risk.people import People, count_people
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, Limits, Question, Setting, read_settings
from cellrisk.system.arrays import Floats
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, percent, show_down, show_up
from cellrisk.system.words import Attack, Form, MeasureName, MechanismName, Neighbours, NoisyCells, Weights

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

CHOICE_NOTE = (
    "Choosing epsilon from the data is itself a disclosure: account for it, or choose on public data of the same kind."
)
FACTOR = 2.0
"""The alternatives are this much stricter and looser."""
ROLES = ("stricter", "recommended", "looser")
SHOWN = 121


@dataclass(frozen=True)
class Option:
    """The answer for one mechanism and delta."""

    setting: Setting
    epsilon: float | None
    """The largest admissible epsilon, None where none will do."""
    risk: float | None
    """The risk at that epsilon, of the sensitive attribute with the highest."""
    admissible: tuple[tuple[float, float], ...]
    """Every admissible interval, ends included, each on its safe side."""
    within_risk_limits: tuple[tuple[float, float], ...]
    """The same, whatever the limit on the TVD."""
    lowest_epsilon: float
    """The epsilon in the range that comes nearest to the limits, or stays farthest below them."""
    lowest_risk: float
    """The risk at that epsilon."""
    limits: Limits
    """Chance and raw risk of the attribute with the highest raw risk."""
    searched: tuple[float, float]
    why: str


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


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Result):
    """The answer of `choose`. ``epsilon`` is None where no epsilon keeps the limits; ``why`` gives the reason."""

    picture = "draw_choice"

    table: FrequencyTable
    requirement: Requirement
    question: Question
    options: tuple[Option, ...]
    """One for each mechanism and delta; the first is the answer."""
    alternatives: tuple[Alternative, ...]
    trade_off: TradeOff | None
    conditions: tuple[Condition, ...]
    """Every requirement that was met: the one asked for first, then those of policies on other risks."""
    policies: Policies
    """The policies that were obeyed."""

    @cached_property
    def scan(self) -> tuple[Floats, Floats]:
        """Epsilons along the range searched, and the worst attribute's risk at each: what a picture shows."""
        epsilons = np.geomspace(*self.options[0].searched, SHOWN)
        return epsilons, self.question.ask(self.options[0].setting, epsilons).max(axis=0)

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
    def headline(self) -> str:
        """What a curator can repeat."""
        first = self.options[0]
        wanted = describe_conditions(self.conditions)
        if self.trade_off is not None:
            wanted += f" and a TVD of at most {self.trade_off.limit.max_tvd:g}"
        if first.epsilon is None or first.risk is None:
            return f"No epsilon of {first.setting.describe()} gives {wanted}: {first.why}."
        people = "; ".join(
            f"{attribute.name}: {found.describe()} of {self.table.n_records:,} people exposed"
            for attribute, found in zip(self.question.attributes, self.alternatives[1].people, strict=True)
        )
        return (
            f"Choose epsilon {show_down(first.epsilon)}, the largest of {first.setting.describe()} with {wanted}. "
            f"The {self.question.name}, is then {percent(first.risk)}; {people}."
        )

    def _numbers(self) -> list[dict[str, Any]]:
        """One row an admissible interval of each mechanism and delta; one without numbers where there is none."""
        rows = []
        for option in self.options:
            for low, high in option.admissible or ((None, None),):
                rows.append({"mechanism": option.setting.name, "delta": option.setting.delta, "low": low, "high": high})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk choose --json`` prints."""
        first, *_ = options = [_option(option) for option in self.options]
        return {
            **first,
            "limits": {key: value for key, value in vars(self.requirement).items() if value is not None},
            "policy": self.policies.to_dict(),
            "question": self.question.name,
            "chance": self.limits.chance,
            "raw": self.limits.raw,
            "alternatives": [
                {**vars(each), "people": [vars(people) for people in each.people]} for each in self.alternatives
            ],
            "options": options,
            "trade_off": None if self.trade_off is None else self.trade_off.to_dict(),
            "headline": self.headline,
        }

    def _paragraphs(self) -> list[str]:
        parts = [self.why[:1].upper() + self.why[1:] + "."]
        if len(self.options) > 1:
            rows = [
                [option.setting.describe(), *(["none", "-"] if option.epsilon is None else _numbers(option))]
                for option in self.options
            ]
            parts.append(aligned(["mechanism", "largest epsilon", "risk"], rows))
        if self.alternatives:
            rows = [
                [each.role, show_down(each.epsilon), percent(each.risk)]
                + [f"{people.mean:,.0f}" for people in each.people]
                + ([] if each.tvd is None else [f"{each.tvd:.4f}"])
                + [each.verdict]
                for each in self.alternatives
            ]
            people = [f"people ({attribute.name})" for attribute in self.question.attributes]
            tvd = ["TVD"] if self.trade_off is not None else []
            parts.append(aligned(["", "epsilon", "risk", *people, *tvd, "verdict"], rows))
        if self.policies:
            parts.append(self.policies.describe())
        return [*parts, f"{CURATOR_NOTE} {CHOICE_NOTE}"]


@takes_priors
def choose(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName] = USUAL_MECHANISM,
    *,
    max_risk: float | None = None,
    max_people: float | None = None,
    margin: float | None = None,
    max_tvd: float | None = None,
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
    """Which is the largest epsilon that keeps the risk, the people exposed, or the excess over chance within a limit?

    Risk is not monotone in epsilon, so the whole admissible set between ``least_epsilon`` and ``largest_epsilon`` comes
    back, each edge on its safe side and within one part in a million. With several mechanisms or deltas each has its
    own answer; the first is the headline. With ``max_tvd`` the mean total variation distance of the ``way``-way
    marginals of simulated releases must stay within it too, which sets a smallest epsilon.

    A policy that is in force (`Policies.in_force`) is obeyed whatever is asked for, and so is ``policy``: the tightest
    limit of each kind holds, and where nothing is asked for, theirs alone.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        One name or several; of an object, the epsilon does not matter, and its delta, neighbours and threshold are
        taken.
    max_risk, max_people, margin
        The largest risk, the most people exposed on average, and the largest risk above chance.
    max_tvd, way, releases, seed, cells
        The largest mean total variation distance of the ``way``-way marginals, and the simulated releases that it is
        estimated from, as in `utility`.
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
        One to obey beside those that are in force.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "education"], "income", bins={"age": 5})
    >>> choice = choose(table, max_risk=0.2)
    >>> round(choice.epsilon, 4), len(choice.admissible)
    (100.0, 1)
    """
    policies = Policies.in_force(policy)
    risk = RiskDefinition(measure, form, weights, attack, priors)
    conditions = policies.join(table, risk, max_risk=max_risk, max_people=max_people, margin=margin)
    delta = policies.choose_delta(mechanism, delta, table.n_records)
    settings = read_settings(mechanism, delta, neighbours, threshold, table.n_records)
    tvd_limit = None if max_tvd is None else TvdLimit(max_tvd, way, releases, seed, cells)
    return choose_within(
        table, conditions, settings, tvd_limit, policies, (least_epsilon, largest_epsilon), progress=progress
    )


def choose_within(
    table: FrequencyTable,
    conditions: tuple[Condition, ...],
    settings: Sequence[Setting],
    tvd_limit: TvdLimit | None = None,
    policies: Policies = Policies(),  # noqa: B008 (it cannot be changed)
    searched: tuple[float, float | None] = (LEAST_EPSILON, None),
    progress: Progress | None = None,
) -> Choice:
    """`choose` for conditions and mechanisms that were read already, with the policies that the conditions obey."""
    question = conditions[0].question
    n_levels = max(attribute.n_levels for attribute in question.attributes)
    trade_off = None
    options = []
    for number, setting in enumerate(settings):
        low, high = _range(setting, *searched)
        found = find_epsilons(find_excesses(conditions, setting), setting, n_levels, low, high)
        if number == 0 and tvd_limit is not None:
            trade_off = find_trade_off(table, question, setting, (low, high), tvd_limit, progress)
        options.append(_answer(setting, question, found, (low, high), trade_off if number == 0 else None))
        if progress is not None:
            progress((number + 1) / len(settings))
    first = options[0]
    alternatives = () if first.epsilon is None else weigh(question, settings[0], first.epsilon, conditions, trade_off)
    return Choice(
        table, conditions[0].requirement, question, tuple(options), alternatives, trade_off, conditions, policies
    )


def _range(setting: Setting, least: float, largest: float | None) -> tuple[float, float]:
    setting.at(least)
    high = min(LARGEST_EPSILON, setting.largest_epsilon) if largest is None else setting.at(largest).epsilon
    if not least < high:
        raise InvalidInput("the range of epsilons is empty", got=f"{least:g} to {high:g}", fix="widen it")
    return float(least), float(high)


def _answer(
    setting: Setting,
    question: Question,
    found: Admissible,
    searched: tuple[float, float],
    trade_off: TradeOff | None,
) -> Option:
    within = found.intervals if trade_off is None else trade_off.restrict(found.intervals)
    epsilon = within[-1][1] if within else None
    lowest = _worst(question, setting, found.where)
    limits, lower = max(question.limits(setting), key=lambda each: each.raw), setting.lower_end
    if epsilon is not None:
        spans = ", and ".join(f"from {show_up(low)} to {show_down(high)}" for low, high in within)
        why = f"admissible is epsilon {spans}"
        if epsilon == searched[1]:
            why += " (the end of the range searched)"
        if math.isinf(setting.largest_epsilon) and epsilon == searched[1]:
            why += (
                f"; the raw table's own risk is {percent(limits.raw)}, so that this attack alone sets no largest "
                "epsilon: choose by other standards"
            )
        if within[0][0] > searched[0] and trade_off is None:
            why += f"; below that, noise itself shows one value alone too often ({lower} is {percent(limits.chance)})"
    elif found.intervals and trade_off is not None:
        why = (
            f"the limits on risk allow epsilon up to {show_down(found.intervals[-1][1])}, the limit on the TVD asks "
            f"for {trade_off.describe_least()}"
        )
    else:
        why = (
            f"between epsilon {searched[0]:g} and {searched[1]:g} it comes nearest at {found.where:.4g}, where the "
            f"risk is {percent(lowest)}"
        )
        alone = "chance alone gives" if lower == "chance" else f"{lower} is"
        why += f"; {alone} {percent(limits.chance)}, the raw table {percent(limits.raw)}"
    return Option(
        setting=setting,
        epsilon=epsilon,
        risk=None if epsilon is None else _worst(question, setting, epsilon),
        admissible=within,
        within_risk_limits=found.intervals,
        lowest_epsilon=found.where,
        lowest_risk=lowest,
        limits=limits,
        searched=searched,
        why=why,
    )


def weigh(
    question: Question,
    setting: Setting,
    epsilon: float,
    conditions: Sequence[Condition] = (),
    trade_off: TradeOff | None = None,
) -> tuple[Alternative, ...]:
    """What an epsilon, half of it and twice it would mean: the risk, the people exposed, the TVD, the limits broken.

    Twice the epsilon is cut to the largest for which the mechanism has a guarantee.
    """
    looser = min(epsilon * FACTOR, setting.largest_epsilon)
    excesses = find_excesses(conditions, setting) if conditions else None
    found = []
    for role, value in zip(ROLES, (epsilon / FACTOR, epsilon, looser), strict=True):
        mechanism = setting.at(value)
        people = tuple(
            count_people(attribute.profiles, mechanism, question.attack) for attribute in question.attributes
        )
        tvd = None if trade_off is None else trade_off.at(value)
        broken = []
        if excesses is not None and excesses((mechanism.noise,)).max() > 0:
            broken.append("risk")
        if trade_off is not None and trade_off.breaks(value):
            broken.append("TVD")
        verdict = f"breaks the limit on the {' and the '.join(broken)}" if broken else "within every limit"
        risk = _worst(question, setting, value)
        found.append(
            Alternative(role, value, risk, people, tvd, verdict if conditions or trade_off else "no limit was set")
        )
    return tuple(found)


def _worst(question: Question, setting: Setting, epsilon: float) -> float:
    return float(question.ask(setting, np.array([epsilon])).max())


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
    return [show_down(option.epsilon or 0.0), percent(option.risk or 0.0)]
