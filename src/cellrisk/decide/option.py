"""The answer for one mechanism and delta: which epsilons keep the limits, which is the largest, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellrisk.decide.figure_limits import Reach
from cellrisk.decide.requirement import Condition, describe_conditions
from cellrisk.decide.search import Admissible
from cellrisk.decide.tradeoff import TradeOff
from cellrisk.risk.sweep import LEAST_EPSILON, Limits, MeasuredRisk, Setting
from cellrisk.system.text import percent, show_down, show_up

INSTEAD = (
    "limit the people given away because of their own record instead (max-caused), which leaves chance out and allows "
    "every smaller epsilon too"
)

Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Option:
    """The answer for one mechanism and delta."""

    setting: Setting
    epsilon: float | None
    """The largest admissible epsilon; None where none will do, and where no limit binds."""
    risk: float | None
    """The risk at that epsilon, of the sensitive attribute with the highest."""
    admissible: tuple[tuple[float, float], ...]
    """Every admissible interval, ends included, each on its safe side."""
    within_risk_limits: tuple[tuple[float, float], ...]
    """Every interval that is admissible whatever the limit on the TVD."""
    lowest_epsilon: float
    """The epsilon in the range that comes nearest to the limits, or stays farthest below them."""
    lowest_risk: float
    """The risk at that epsilon."""
    limits: Limits
    """Chance and raw risk of the attribute with the highest raw risk."""
    searched: tuple[float, float]
    why: str
    reaches: tuple[Reach, ...] = ()
    """How far each limit on a figure lets epsilon go."""

    @property
    def open_ended(self) -> bool:
        """Whether the limits hold up to the end of the range, so that none of them says which epsilon to choose."""
        return bool(self.admissible) and self.epsilon is None


@dataclass(frozen=True, eq=False)
class SearchedRange:
    """What was found for one mechanism, from which the answer and its reasons follow."""

    setting: Setting
    measured: MeasuredRisk
    conditions: tuple[Condition, ...]
    found: Admissible
    """Where the limits on risks are kept; the whole range where there are none."""
    reaches: tuple[Reach, ...]
    searched: tuple[float, float]

    def answer(self, trade_off: TradeOff | None) -> Option:
        within_limits = self.restrict(self.found.intervals)
        within = within_limits if trade_off is None else trade_off.restrict(within_limits)
        end = within[-1][1] if within else None
        binds = end is not None and (end < self.searched[1] or any(each.binds_itself for each in self.reaches))
        epsilon = end if binds else None
        if end is None:
            why = self.explain_none(within_limits, trade_off)
        elif epsilon is None:
            why = self.explain_open(within, trade_off)
        else:
            why = self.explain_largest(within, trade_off)
        return Option(
            setting=self.setting,
            epsilon=epsilon,
            risk=None if epsilon is None else find_worst(self.measured, self.setting, epsilon),
            admissible=within,
            within_risk_limits=within_limits,
            lowest_epsilon=self.found.where,
            lowest_risk=self.lowest_risk,
            limits=self.limits,
            searched=self.searched,
            why=why,
            reaches=self.reaches,
        )

    @cached_property
    def limits(self) -> Limits:
        """Chance and raw risk of the attribute with the highest raw risk."""
        return max(self.measured.limits(self.setting), key=lambda each: each.raw)

    @cached_property
    def lowest_risk(self) -> float:
        return find_worst(self.measured, self.setting, self.found.where)

    def restrict(self, intervals: Intervals) -> Intervals:
        """The part of each interval that the limits on figures allow."""
        reached = [each.largest for each in self.reaches]
        if any(largest is None for largest in reached):
            return ()
        largest = min([self.searched[1], *(each for each in reached if each is not None)])
        return tuple((low, min(high, largest)) for low, high in intervals if low <= largest)

    def explain_largest(self, within: Intervals, trade_off: TradeOff | None) -> str:
        spans = ", and ".join(f"from {show_up(low)} to {show_down(high)}" for low, high in within)
        why = f"the limits allow epsilon {spans}"
        binding = [each.limit.about for each in self.reaches if each.largest == within[-1][1]]
        if binding and len(self.reaches) + len(self.conditions) > 1:
            why += f", where the limit on {' and '.join(binding)} binds"
        return why + self._explain_lower_end(within, trade_off)

    def explain_open(self, within: Intervals, trade_off: TradeOff | None) -> str:
        high = self.searched[1]
        ends = "the range searched" if math.isinf(self.setting.largest_epsilon) else "what the mechanism covers"
        kept = [each.limit.describe() for each in self.reaches]
        kept += [describe_conditions(self.conditions)] if self.conditions else []
        raw = f" (the raw table's own risk is {percent(self.limits.raw)})" if self.conditions else ""
        tvd = ""
        if trade_off is not None and within[0][0] > self.searched[0]:
            tvd = f"; the limit on the TVD asks for {trade_off.describe_least()}"
        return (
            f"no limit binds, as even epsilon {show_down(high)}, the end of {ends}, gives {' and '.join(kept)}{raw}"
            f"{self._explain_lower_end(within, trade_off)}{tvd}; to choose an epsilon, set a limit that binds, such as "
            f"a ceiling of 0.75 or an epsilon of at most 1, or choose it by other standards"
        )

    def _explain_lower_end(self, within: Intervals, trade_off: TradeOff | None) -> str:
        """Why a smaller epsilon is inadmissible, and which limit would not call it so."""
        if within[0][0] <= self.searched[0] or trade_off is not None:
            return ""
        lower = self.setting.lower_end
        return (
            f"; below {show_up(within[0][0])}, noise itself shows one value alone too often, by accident ({lower} is "
            f"{percent(self.limits.chance)}); {INSTEAD}"
        )

    def explain_none(self, within_limits: Intervals, trade_off: TradeOff | None) -> str:
        if within_limits and trade_off is not None:
            return (
                f"the other limits allow epsilon up to {show_down(within_limits[-1][1])}, the limit on the TVD asks "
                f"for {trade_off.describe_least()}"
            )
        low, high = self.searched
        for each in self.reaches:
            if each.largest is None:
                least = min(low, LEAST_EPSILON)
                figure = each.limit.find(self.measured.attributes, self.setting.at(least))
                return f"already at epsilon {least:g}, {each.limit.say(figure)}"
            if each.largest < low:
                return f"the limit on {each.limit.about} is kept only up to epsilon {show_down(each.largest)}"
        if self.found.intervals:
            reached = [(each.largest, each.limit.about) for each in self.reaches if each.largest is not None]
            largest, about = min(reached, key=lambda each: each[0])
            return (
                f"the limit on the risk asks for epsilon {show_up(self.found.intervals[0][0])} or more, the limit on "
                f"{about} allows up to {show_down(largest)}; {INSTEAD}"
            )
        lower = self.setting.lower_end
        alone = "chance alone gives" if lower == "chance" else f"{lower} is"
        why = (
            f"between epsilon {low:g} and {high:g} it comes nearest at {self.found.where:.4g}, where the risk is "
            f"{percent(self.lowest_risk)}; {alone} {percent(self.limits.chance)}, the raw table "
            f"{percent(self.limits.raw)}"
        )
        limit = self.conditions[0].requirement.max_risk
        above = limit is not None and self.limits.chance > limit
        return f"{why}; chance alone is above the limit; {INSTEAD}" if above else why


def find_worst(measured: MeasuredRisk, setting: Setting, epsilon: float) -> float:
    return float(measured.at(setting, np.array([epsilon])).max())
