"""The answer for one mechanism and delta: which epsilons keep the limits, which is the largest, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cellrisk.decide.figure_limits import Reach
from cellrisk.decide.requirement import Condition, describe_conditions
from cellrisk.decide.search import SMALLEST_EPSILON, Admissible, Intervals, intersect
from cellrisk.decide.tradeoff import TradeOff
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.sweep import Limits, MeasuredRisk
from cellrisk.system.text import DIGITS, percent, round_down, show_down, show_spans, show_up

INSTEAD = (
    "limit the people given away because of their own record instead (max-caused), which leaves chance out and allows "
    "every smaller epsilon too"
)
BIND = (
    "to choose an epsilon, set a limit that binds, such as a ceiling of 0.75 or an epsilon of at most 1, or choose it "
    "by other standards"
)


@dataclass(frozen=True)
class Option:
    """The answer for one mechanism and delta."""

    setting: Mechanism
    epsilon: float | None
    """The largest admissible epsilon; None where none will do, and where no limit binds."""
    risk: float | None
    """The risk at that epsilon, of the sensitive attribute with the highest."""
    admissible: Intervals
    """Every admissible interval, ends included, each on its safe side."""
    within_risk_limits: Intervals
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
    def given(self) -> bool:
        """Whether the epsilon is a limit on epsilon itself."""
        return any(each.binds_itself and each.largest == self.epsilon for each in self.reaches)

    @property
    def shown(self) -> float | None:
        """The epsilon to be used and shown: rounded down inside the admissible set, unless it was given."""
        return self.round(DIGITS)

    def round(self, digits: int) -> float | None:
        """The epsilon rounded down to so many digits inside the admissible set, unless it was given."""
        if self.epsilon is None or self.given:
            return self.epsilon
        return round_down(self.epsilon, self.admissible[-1][0], digits)

    @property
    def without_epsilon(self) -> str:
        """Why there is no epsilon, in a few words: what ``why`` begins with."""
        return self.why.partition(":")[0]

    @property
    def open_ended(self) -> bool:
        """Whether the limits hold up to the end of the range, so that none of them says which epsilon to choose."""
        return bool(self.admissible) and self.epsilon is None


@dataclass(frozen=True, eq=False)
class SearchedRange:
    """What was found for one mechanism, from which the answer and its reasons follow."""

    setting: Mechanism
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
        kept = intersect(self.found.intervals, *(each.kept for each in self.reaches))
        kept = kept if trade_off is None else trade_off.restrict(kept)
        again = tuple((low, high) for low, high in kept if end is None or low > end)
        binds = end is not None and (end < self.searched[1] or any(each.binds_itself for each in self.reaches))
        epsilon = end if binds else None
        if end is None:
            none = f"no epsilon {show_spans([self.searched])} is admissible"
            why = f"{none}: {self.explain_none(within_limits, trade_off)}"
        elif epsilon is None:
            why = self.explain_open(within, within_limits, trade_off)
        else:
            why = self.explain_largest(within, within_limits)
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
            why=why + say_again(again, end),
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

    def explain_largest(self, within: Intervals, within_limits: Intervals) -> str:
        why = f"the limits allow epsilon {show_spans(within)}"
        binding = [each.limit.about for each in self.reaches if each.largest == within[-1][1]]
        if binding and len(self.reaches) + len(self.conditions) > 1:
            why += f", where the limit on {' and '.join(binding)} binds"
        return "; ".join([why, *self._explain_gaps(within_limits)])

    def explain_open(self, within: Intervals, within_limits: Intervals, trade_off: TradeOff | None) -> str:
        high = self.searched[1]
        ends = "the range searched" if math.isinf(self.setting.largest_epsilon) else "what the mechanism covers"
        kept = [each.limit.describe() for each in self.reaches]
        kept += [describe_conditions(self.conditions)] if self.conditions else []
        raw = f" (the raw table's own risk is {percent(self.limits.raw)})" if self.conditions else ""
        gaps = self._explain_gaps(within_limits)
        start = "the limits hold, but not everywhere: epsilon" if gaps else "no limit binds: even epsilon"
        told = [f"{start} {show_down(high)}, the end of {ends}, gives {' and '.join(kept)}{raw}", *gaps]
        if trade_off is not None and within[0][0] > self.searched[0]:
            told.append(f"the limit on the TVD asks for {trade_off.describe_least()}")
        return "; ".join([*told, BIND])

    def _explain_gaps(self, within_limits: Intervals) -> list[str]:
        """Where a limit on a risk is broken though larger epsilons keep it, and which limit allows smaller ones."""
        first = self.searched[0], within_limits[0][0]
        gaps = [(high, low) for (_, high), (low, _) in pairwise(within_limits)]
        gaps = [first, *gaps] if first[0] < first[1] else gaps
        if not gaps:
            return []
        return [f"{show_spans(gaps)} the limit on the risk is broken ({self._say_chance()})", INSTEAD]

    def _say_chance(self) -> str:
        """What the risk of the worst attribute tends to."""
        fixed = "" if self.setting.lower_end == "chance" else ", with delta fixed,"
        chance = max(each.chance for each in self.measured.limits(self.setting))
        return f"as epsilon falls to 0{fixed} the risk tends to {percent(chance)}"

    def explain_none(self, within_limits: Intervals, trade_off: TradeOff | None) -> str:
        if within_limits and trade_off is not None:
            return (
                f"the other limits allow epsilon up to {show_down(within_limits[-1][1])}, the limit on the TVD asks "
                f"for {trade_off.describe_least()}"
            )
        low = self.searched[0]
        for each in self.reaches:
            if each.largest is None:
                least = min(low, SMALLEST_EPSILON)
                figure = each.limit.find(self.measured.attributes, self.setting.with_epsilon(least))
                return f"already at epsilon {least:g}, {each.limit.say(figure)}"
            if each.largest < low:
                return f"every epsilon keeps the limit on {each.limit.about} only up to {show_down(each.largest)}"
        if self.found.intervals:
            reached = [(each.largest, each.limit.about) for each in self.reaches if each.largest is not None]
            largest, about = min(reached, key=lambda each: each[0])
            return (
                f"the limit on the risk asks for epsilon {show_up(self.found.intervals[0][0])} or more, the limit on "
                f"{about} allows up to {show_down(largest)}; {INSTEAD}"
            )
        return (
            f"epsilon {self.found.where:.4g} comes nearest, with a risk of {percent(self.lowest_risk)}; "
            f"{self._say_chance()}, and the raw table's is {percent(self.limits.raw)}; {INSTEAD}"
        )


def say_again(again: Intervals, end: float | None) -> str:
    """Which epsilons keep every limit without being admissible."""
    if not again:
        return ""
    larger = "larger epsilons" if end else "epsilons"
    return f"; {larger} {show_spans(again)} keep every limit, but some smaller ones do not"


def find_worst(measured: MeasuredRisk, setting: Mechanism, epsilon: float) -> float:
    return float(measured.at(setting, np.array([epsilon])).max())
