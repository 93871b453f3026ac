"""The decision that a report asks for: which epsilon, whether the limits hold, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cellrisk.decide.choosing import DIGITS, Alternative, Choice, choose_within, limits_use_data, weigh
from cellrisk.decide.limits import (
    SMALLEST_EPSILON,
    Limit,
    RiskDefinition,
    find_largest_without_data,
)
from cellrisk.decide.policies import Policies
from cellrisk.decide.tradeoff import TradeOff, TvdLimit, find_trade_off
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.figures import Attacker
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, MeasuredRisk
from cellrisk.show.reporting.metadata import name_table, pick
from cellrisk.show.reporting.noise import RELEASABLE, describe_noise
from cellrisk.show.wording.choice import name_largest, say_tvd_limit
from cellrisk.show.wording.limits import describe_limits, verdict
from cellrisk.system.choices import NoisyCells
from cellrisk.system.formatting import claim, make_sentence, number_of, percent, round_down
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

NEEDED = "What would help: a looser limit (section 3), another mechanism, or a coarser table (section 7)."
KEEPS_RISK, KEEPS_TVD, NEAREST = "keeps the limit on the risk", "keeps the limit on the TVD", "comes nearest"
SMALLEST = "is the smallest of the range"
"""Where no epsilon will do, those that are shown instead."""
UNBOUND = "the end of the range, not recommended"
"""Where no limit binds, what is shown."""


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """What a report is to decide, and by what."""

    table: FrequencyTable
    setting: Mechanism
    epsilon: float | None
    """The one that is put to the board; None if the limits choose it."""
    risk: RiskDefinition
    limits: tuple[Limit, ...]
    """Those of policies too; empty if there is none."""
    attacker: Attacker
    tvd_limit: TvdLimit | None
    cells: NoisyCells
    """Which counts get noise: those of the whole "domain", or of the "observed" cells."""
    policies: Policies
    public: bool
    delta_from_data: bool
    """Whether delta was left to be set from the number of records."""
    releases: int
    seed: int
    disclosures: tuple[str, ...]
    """What else was taken from the raw data, a sentence each, for the public."""

    def describe_limits(self) -> str:
        """The limits in words; empty if none was set."""
        tvd = [] if self.tvd_limit is None else [say_tvd_limit(self.tvd_limit)]
        return " and ".join([*describe_limits(self.limits), *tvd])


@dataclass(frozen=True, eq=False)
class Decision:
    """The epsilon that the board is asked to approve, and the candidates that it was chosen from."""

    request: ReportRequest
    kind: str
    """recommended, kept, broken, none, unbound or open"""
    epsilon: float | None
    """The one to be approved; None where none will do."""
    measured: MeasuredRisk
    choice: Choice | None
    """None where there was no limit on a risk to choose by."""
    trade_off: TradeOff | None
    candidates: tuple[Alternative, ...]
    """Stricter, asked for and looser, or those nearest to the limits; empty where no risk was computed."""
    shown: int
    """The place, among the candidates, of the one that the rest of the report is about."""

    @property
    def setting(self) -> Mechanism:
        return self.request.setting

    @property
    def shown_epsilon(self) -> float:
        return self.candidates[self.shown].epsilon if self.candidates else float(self.epsilon or 0.0)

    @property
    def verdict(self) -> str:
        """Which limits the epsilon that is shown breaks, in words."""
        return verdict(self.broken)

    @property
    def broken(self) -> tuple[str, ...] | None:
        """The names of the limits that it breaks; None if no limit was set."""
        if self.candidates:
            return self.candidates[self.shown].broken
        mechanism = self.setting.with_epsilon(self.shown_epsilon)
        return tuple(limit.name for limit in self.request.limits if limit.value((), mechanism) > limit.maximum)

    @property
    def chosen_from_data(self) -> bool:
        """Whether the records had a say in which epsilon it is."""
        told = self.limits_use_data or self.request.delta_from_data
        return self.request.epsilon is None and self.epsilon is not None and told

    @property
    def limits_use_data(self) -> bool:
        """Whether it tells something about the records that the limits are kept."""
        return limits_use_data(self.request.limits, self.request.tvd_limit)

    @property
    def why_none(self) -> str:
        """Why there is no epsilon to approve."""
        if self.choice is not None:
            return self.choice.options[0].without_epsilon
        return "no limit binds" if self.kind == "unbound" else f"no epsilon from {SMALLEST_EPSILON:g} on is admissible"

    @property
    def largest(self) -> str:
        """What a recommended epsilon is, in words."""
        gives = f"gives {self.request.describe_limits()}"
        largest = f"the largest epsilon that {gives}" if self.choice is None else name_largest(self.choice, gives)
        given = any(self.epsilon == limit.maximum for limit in self.request.limits)  # a limit on epsilon itself
        return largest if given else f"{largest}, rounded down"


def decide(request: ReportRequest, progress: Progress | None = None) -> Decision:
    """Which epsilon is to be approved, and what would stricter and looser ones mean?"""
    limits, setting, asked_for = request.limits, request.setting, request.epsilon
    if request.public and not limits_use_data(limits, request.tvd_limit):
        return _decide_without_data(request)
    choice = None
    if limits:
        choice = choose_within(
            request.table,
            limits,
            (setting,),
            request.tvd_limit,
            request.policies,
            risk=request.risk,
            attacker=request.attacker,
            progress=progress,
        )
        measured, trade_off = choice.measured, choice.trade_off
    else:
        measured = request.risk.of(request.table.attributes)
        trade_off = _find_trade_off(request, measured, progress)
    limited = bool(limits or trade_off is not None)
    if asked_for is not None:
        stricter, asked, looser = weigh(measured, setting, asked_for, limits, trade_off)
        kind = "open" if not limited else "broken" if asked.broken else "kept"
        candidates = (stricter, replace(asked, role="asked for"), looser)
        return Decision(request, kind, asked_for, measured, choice, trade_off, candidates, 1)
    if choice is None or choice.epsilon is None:
        return _none(request, measured, choice, trade_off)
    return Decision(request, "recommended", choice.epsilon, measured, choice, trade_off, choice.alternatives, 1)


def _decide_without_data(request: ReportRequest) -> Decision:
    """For the public, where no limit looks at the records: no record has a say, not even whether there is one."""
    limits, setting, epsilon = request.limits, request.setting, request.epsilon
    kind = "open"
    if epsilon is None:
        largest, binds = find_largest_without_data(limits, setting)
        kind = "none" if largest is None else "recommended" if binds else "unbound"
        epsilon = largest if kind == "recommended" else None
        if epsilon is not None and all(epsilon != limit.maximum for limit in limits):
            epsilon = round_down(epsilon, digits=DIGITS)
    decision = Decision(request, kind, epsilon, request.risk.of(request.table.attributes), None, None, (), 0)
    if limits and request.epsilon is not None:
        return replace(decision, kind="broken" if decision.broken else "kept")
    return decision


def _find_trade_off(request: ReportRequest, measured: MeasuredRisk, progress: Progress | None) -> TradeOff | None:
    """Risk and usefulness along epsilon, where usefulness alone has a limit."""
    setting, epsilon = request.setting, request.epsilon
    if request.tvd_limit is None or epsilon is None:
        return None
    usual = min(LARGEST_EPSILON, setting.largest_epsilon)
    searched = (min(LEAST_EPSILON, epsilon / 2), max(usual, epsilon))
    return find_trade_off(request.table, measured, setting, searched, request.tvd_limit, progress)


def _none(
    request: ReportRequest, measured: MeasuredRisk, choice: Choice | None, trade_off: TradeOff | None
) -> Decision:
    """Where no epsilon will do: what comes nearest, or what each of two limits in conflict would take alone.

    Where no limit binds, the end of the range is shown, and not recommended.
    """
    if choice is None:
        raise InvalidInput("a report without an epsilon needs a limit on the risk")

    def consider(role: str, epsilon: float) -> Alternative:
        weighed = weigh(measured, request.setting, epsilon, request.limits, trade_off)
        return replace(weighed[1], role=role)

    option = choice.options[0]
    if option.open_ended:
        end = (consider(UNBOUND, option.admissible[-1][1]),)
        return Decision(request, "unbound", None, measured, choice, trade_off, end, 0)
    if option.within_limits:
        low, high = option.within_limits[-1]
        found = [consider(KEEPS_RISK, round_down(high, low))]
    else:
        found = [
            consider(
                NEAREST if any(limit.risk is not None for limit in request.limits) else SMALLEST,
                option.lowest_epsilon,
            )
        ]
    if trade_off is not None and trade_off.least_epsilon is not None:
        found.append(consider(KEEPS_TVD, trade_off.least_epsilon))
    return Decision(request, "none", None, measured, choice, trade_off, tuple(found), 0)


def collect_decision(decision: Decision, metadata: Mapping[str, Any], title: str) -> dict[str, Any]:
    """What both documents on one table with noise hold: the decision, the verdict, the noise and the limits."""
    request, epsilon = decision.request, decision.epsilon
    return {
        **metadata,
        "title": metadata["title"] or f"{title} {name_table(request.table)}",
        "decision": describe_decision(decision),
        "verdict": describe_verdict(decision),
        "epsilon": epsilon,
        "why_none": None if epsilon is not None else decision.why_none,
        "mechanism": describe_noise(decision.setting, epsilon),
        "releasable": decision.setting.name in RELEASABLE,
        "delta_from_data": request.delta_from_data,
        "noisy_cells": request.cells,
        "limits": request.describe_limits(),
        "measured": decision.measured.name,
        "risk": {**pick(request.risk, "measure form weights"), "one_number": decision.measured.measures[0].one_number},
        "tvd_limit": None if decision.trade_off is None else decision.trade_off.limit,
    }


def describe_decision(decision: Decision) -> str:
    """What the board is asked to decide, or what was published."""
    request, setting = decision.request, decision.setting
    name, several = name_table(request.table), len(request.table.sensitive) > 1
    delta = "" if setting.pure else f" delta {claim(setting.delta)}"
    and_delta = delta and f" and{delta}"
    if not request.public:
        if decision.epsilon is None:
            at = delta and f" at{delta}"
            return f"Decide how to go on with the frequency table of {name}: {decision.why_none}{at}."
        return (
            f"Approve publication of the frequency table of {name} with {setting.name} noise at epsilon "
            f"{decision.epsilon:.12g}{and_delta}."
        )
    published = f"The frequency {'tables' if several else 'table'} of {name}"
    if decision.epsilon is None:
        return f"{published} {'were' if several else 'was'} not published: {decision.why_none}."
    return (
        f"{published}, with {setting.name} noise on every count, {'each ' if several else ''}at epsilon "
        f"{decision.epsilon:.12g}{and_delta}."
    )


def describe_verdict(decision: Decision) -> dict[str, Any]:
    """The answer in a sentence or two; for the public without a figure from the data, but for the epsilon."""
    kind, limits, epsilon = decision.kind, decision.request.describe_limits(), f"{decision.epsilon or 0:.12g}"
    if decision.epsilon is None:
        title = f"{'Nothing is' if kind == 'unbound' else 'Not'} recommended: {decision.why_none}"
    elif kind == "broken":
        title = f"Limits broken: epsilon {epsilon} {decision.verdict}"
    else:
        title = {
            "recommended": f"Recommended: epsilon {epsilon}",
            "kept": f"Limits kept: epsilon {epsilon} is within every limit",
            "open": f"For the board to judge: no limit was set for epsilon {epsilon}",
        }[kind]
    if decision.request.public:
        if kind in ("open", "kept", "recommended"):
            each = " each" if len(decision.request.table.sensitive) > 1 else ""
            title = f"Published at epsilon {epsilon}{each}"
        texts = {"recommended": f"It is {decision.largest}.", "open": "No limit on a risk was set."}
        return {"kind": kind, "title": title, "texts": [texts.get(kind, f"Required was {limits}.")]}
    return {"kind": kind, "title": title, "texts": _explain_verdict(decision, limits)}


def _explain_verdict(decision: Decision, limits: str) -> list[str]:
    choice, kind = decision.choice, decision.kind
    why = [] if choice is None else [make_sentence(choice.why)]
    if choice is not None and kind in ("recommended", "none", "unbound"):
        return {"recommended": [choice.headline, *why], "none": [choice.headline, NEEDED], "unbound": why}[kind]
    table, at = decision.request.table, decision.candidates[decision.shown]
    exposed = "; ".join(
        f"{name}: {people.describe()} of {number_of(table.n_records, 'person')} exposed"
        for name, people in zip(table.sensitive, at.people, strict=True)
    )
    risk = f"The {decision.measured.name}, is {percent(at.risk)} there; {exposed}."
    if kind == "open":
        return [risk, "Whether that is acceptable is for the board to decide."]
    return [f"Required: {limits}.", risk, *why]
