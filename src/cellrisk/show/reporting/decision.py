"""The decision that a report asks for: which epsilon, whether the limits hold, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cellrisk.decide.choosing import WITHIN, Alternative, Choice, choose_within, limits_use_data, say_broken, weigh
from cellrisk.decide.limits import (
    SMALLEST_EPSILON,
    Limit,
    RiskDefinition,
    RiskMetric,
    describe_limits,
    find_largest_without_data,
)
from cellrisk.decide.tradeoff import TradeOff, TvdLimit, find_trade_off
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.figures import Attacker
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, MeasuredRisk
from cellrisk.show.reporting.particulars import Particulars
from cellrisk.show.reporting.phrases import describe_risk, name_table
from cellrisk.system.progress import Progress
from cellrisk.system.text import round_down
from cellrisk.system.words import NoisyCells

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.publish.noisy_risk import PublishedRisk

KEEPS_RISK, KEEPS_TVD, NEAREST = "keeps the limit on the risk", "keeps the limit on the TVD", "comes nearest"
SMALLEST = "is the smallest of the range"
"""Where no epsilon will do, those that are shown instead."""
PUBLIC_DIGITS = 2
"""Digits of an epsilon that was chosen from the data and is told to the public: neighbouring tables mostly share it."""
UNBOUND = "the end of the range, not recommended"
"""Where no limit binds, what is shown."""


@dataclass(frozen=True, eq=False)
class ReportRequest(Particulars):
    """What the caller of a report wants to know, and what is to be printed as it is."""

    table: FrequencyTable
    setting: Mechanism
    epsilon: float | None
    """The one that is put to the board; None where the limits choose it."""
    risk: RiskDefinition
    limits: tuple[Limit, ...]
    """Those of policies too; empty where there is none."""
    attacker: Attacker
    tvd_limit: TvdLimit | None
    cells: NoisyCells
    """Which counts get noise: those of the whole "domain", or of the "observed" cells."""
    public: bool
    delta_from_data: bool
    """Whether delta was left to be set from the number of records."""
    disclosures: tuple[str, ...] = ()
    """What else was taken from the raw data, a sentence each, for the public."""
    published: PublishedRisk | None = None
    """A figure with noise of its own, for the public."""
    releases: int = 20
    seed: int = 0

    @property
    def heading(self) -> str:
        return self.title or f"Disclosure review of {self.table_name}"

    @property
    def table_name(self) -> str:
        return name_table(self.table)

    def describe_limits(self) -> str:
        """The limits in words; empty where none was set."""
        tvd = [] if self.tvd_limit is None else [self.tvd_limit.describe()]
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
        if self.candidates:
            return self.candidates[self.shown].verdict
        mechanism = self.setting.with_epsilon(self.shown_epsilon)
        return say_broken([each.about for each in self.request.limits if each.breach((), mechanism) is not None])

    @property
    def described_risk(self) -> str:
        """The risk that was asked for, in words."""
        return describe_risk(self.request.risk, self.measured)

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
        largest = f"the largest epsilon that {gives}" if self.choice is None else self.choice.name_largest(gives)
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
        kind = "open" if not limited else "kept" if asked.verdict == WITHIN else "broken"
        candidates = (stricter, replace(asked, role="asked for"), looser)
        return Decision(request, kind, asked_for, measured, choice, trade_off, candidates, 1)
    if choice is None or choice.epsilon is None:
        return _none(request, measured, choice, trade_off)
    choice = choice.rounded(PUBLIC_DIGITS) if request.public else choice.rounded()
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
            epsilon = round_down(epsilon)
    decision = Decision(request, kind, epsilon, request.risk.of(request.table.attributes), None, None, (), 0)
    if limits and request.epsilon is not None:
        return replace(decision, kind="kept" if decision.verdict == WITHIN else "broken")
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
                NEAREST if any(isinstance(limit.metric, RiskMetric) for limit in request.limits) else SMALLEST,
                option.lowest_epsilon,
            )
        ]
    if trade_off is not None and trade_off.least_epsilon is not None:
        found.append(consider(KEEPS_TVD, trade_off.least_epsilon))
    return Decision(request, "none", None, measured, choice, trade_off, tuple(found), 0)
