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
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.figures import Attacker
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, MeasuredRisk
from cellrisk.show.reporting.document import read_decision
from cellrisk.show.reporting.metadata import list_observed, name_table, pick, read_domains
from cellrisk.show.reporting.noise import RELEASABLE, describe_noise
from cellrisk.show.wording.choice import name_largest, say_tvd_limit
from cellrisk.show.wording.label import TOTAL, Guarantee, label
from cellrisk.show.wording.limits import describe_limits, verdict
from cellrisk.system.choices import NoisyCells
from cellrisk.system.formatting import make_sentence, number_of, round_down
from cellrisk.system.progress import Progress
from cellrisk.system.version import __version__

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

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
    def unprotected(self) -> str | None:
        """What a release would show of the data without noise; None if this is not known."""
        request, table = self.request, self.request.table
        if not read_domains(table):
            return None
        observed = ", ".join(list_observed(table))
        shown = {
            f"the values that occur of {observed}": bool(observed),
            "which cells hold records": request.cells == "observed",
            "epsilon, which was chosen from the data": self.chosen_from_data,
            "whether the limits are kept, which was found from the data": (
                self.limits_use_data and not self.chosen_from_data
            ),
            "delta, which was set from the number of records": request.delta_from_data,
            "that no record was refused, which was found from the data": "error" in (table.missing, table.outside),
        }
        parts = [text for text, applies in shown.items() if applies]
        return "; ".join(parts + [sentence.removesuffix(".") for sentence in request.disclosures]) or "none"

    @property
    def why_none(self) -> str:
        """Why there is no epsilon to approve."""
        if self.choice is not None:
            return self.choice.without_epsilon
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
    """If no epsilon will do: what comes nearest, or what each of two limits in conflict would take alone.

    If no limit binds, the end of the range is shown, and not recommended.
    """
    if choice is None:
        raise InvalidInput("a report without an epsilon needs a limit on the risk")
    option, kind = choice, "none"
    if option.open_ended:
        kind, shown = "unbound", [(UNBOUND, option.admissible[-1][1])]
    elif option.within_limits:
        low, high = option.within_limits[-1]
        shown = [(KEEPS_RISK, round_down(high, low, DIGITS))]
    else:
        on_risk = any(limit.risk is not None for limit in request.limits)
        shown = [(NEAREST if on_risk else SMALLEST, option.lowest_epsilon)]
    if kind == "none" and trade_off is not None and trade_off.least_epsilon is not None:
        shown.append((KEEPS_TVD, trade_off.least_epsilon))
    candidates = [
        replace(weigh(measured, request.setting, epsilon, request.limits, trade_off)[1], role=role)
        for role, epsilon in shown
    ]
    return Decision(request, kind, None, measured, choice, trade_off, tuple(candidates), 0)


def collect_decision(decision: Decision, metadata: Mapping[str, Any], title: str) -> dict[str, Any]:
    """What both documents on one table with noise hold: the decision, the verdict, the noise and the limits."""
    request, epsilon = decision.request, decision.epsilon
    why_none = None if epsilon is not None else decision.why_none
    return {
        **metadata,
        "title": metadata["title"] or f"{title} {name_table(request.table)}",
        **_describe_decision(decision, why_none),
        "epsilon": epsilon,
        "why_none": why_none,
        "mechanism": describe_noise(decision.setting, epsilon),
        "label": _describe_label(decision, metadata),
        "releasable": decision.setting.name in RELEASABLE,
        "delta_from_data": request.delta_from_data,
        "noisy_cells": request.cells,
        "limits": request.describe_limits(),
        "measured": decision.measured.name,
        "risk": {**pick(request.risk, "measure form weights"), "one_number": decision.measured.measures[0].one_number},
        "tvd_limit": None if decision.trade_off is None else decision.trade_off.limit,
    }


def _describe_label(decision: Decision, metadata: Mapping[str, Any]) -> dict[str, str] | None:
    """The label of the release that is asked for, or was published; None without an epsilon."""
    if decision.epsilon is None:
        return None
    mechanism = decision.setting.with_epsilon(decision.epsilon)
    guarantee, highest = find_guarantee(decision, mechanism)
    if decision.chosen_from_data:
        highest = None
    total = " ".join(text for name, text in metadata["budget"] if name == "Budget") or TOTAL
    if decision.request.public:
        total = "not stated: this statement is on one release"
    releasable = decision.setting.name in RELEASABLE
    library = f"cellrisk {__version__} and OpenDP" if releasable else "added by another program than cellrisk release"
    return label(mechanism, guarantee, highest, [decision.unprotected or "not known"], library, total=total)


def find_guarantee(decision: Decision, mechanism: Mechanism) -> tuple[Guarantee, Ceiling | None]:
    """The guarantee and the ceiling of the table, or of the tables of several sensitive attributes together."""
    tables = len(decision.request.table.sensitive)
    if tables == 1:
        return mechanism, ceiling(mechanism)
    from cellrisk.repeat.together.costs import find_cost, try_ceiling

    together = [mechanism] * tables, [tuple(range(tables))]
    return find_cost(*together), try_ceiling(*together, labels=2)[0]


def _describe_decision(decision: Decision, why_none: str | None) -> dict[str, Any]:
    """What is asked and the answer; for the public without a figure from the data, but for the epsilon."""
    request, table, choice = decision.request, decision.request.table, decision.choice
    data: dict[str, Any] = {
        "name": name_table(table),
        "several": len(table.sensitive) > 1,
        "mechanism": decision.setting.name,
        "delta": None if decision.setting.pure else decision.setting.delta,
        "epsilon": decision.epsilon,
        "why_none": why_none,
        "limits": request.describe_limits(),
        "breaks": decision.verdict if decision.kind == "broken" else "",
        "largest": decision.largest if decision.kind == "recommended" else "",
        "chosen": "" if choice is None else choice.headline,
        "keeps": "" if choice is None else choice.headline.partition(". ")[2],
        "why": "" if choice is None else make_sentence(choice.why),
        "measured": decision.measured.name,
    }
    if decision.candidates and not request.public:
        at = decision.candidates[decision.shown]
        exposed = [
            f"{name}: {people.describe()} of {number_of(table.n_records, 'person')} revealed"
            for name, people in zip(table.sensitive, at.people, strict=True)
        ]
        data |= {"risk": at.risk, "exposed": "; ".join(exposed)}
    return read_decision("table", request.public, decision.kind, data)
