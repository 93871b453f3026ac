"""The words of `Choice`: which epsilon, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cellrisk.decide.choosing import Choice, Option
from cellrisk.decide.limits import SMALLEST_EPSILON, Limit
from cellrisk.decide.search import Intervals
from cellrisk.decide.tradeoff import TradeOff, TvdLimit
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.show.wording.figures import say_tables, sentence
from cellrisk.show.wording.limits import ABOUT, aim, describe, describe_limits, say, say_again, say_largest
from cellrisk.system.formatting import (
    CURATOR_NOTE,
    aligned,
    as_given,
    claim,
    make_sentence,
    number_of,
    percent,
    show_down,
    show_spans,
    show_up,
    whole_people,
)

INSTEAD = (
    "limit the people revealed because of their own record instead (max-caused), which leaves chance out and allows "
    "every smaller epsilon too"
)
CHOICE_NOTE = (
    "Choosing epsilon from the data is itself a disclosure: account for it, or choose on public data of the same kind."
)
WITHOUT_DATA = "The epsilon follows from limits on the guarantee alone: that choice discloses nothing about the data."
BIND = (
    "to choose an epsilon, set a limit that binds, such as a ceiling of 0.75 or an epsilon of at most 1, or choose it "
    "by other standards"
)


def headline(choice: Choice) -> str:
    """What a member of a board can repeat."""
    first = choice.options[0]
    noise = _name_noise(first.mechanism)
    if first.open_ended:
        return f"With {noise}, nothing is recommended: {first.why}."
    if first.epsilon is None or first.risk is None:
        return f"For {choice.wanted} with {noise}, {first.why}."
    largest = name_largest(choice, f"keeps {_aim(choice)}")
    if first.given:
        kept = "; ".join(list_limits(choice, [each for each in choice.kept_limits if each.name != "max_epsilon"]))
        largest = f"the largest epsilon allowed{f', and it keeps the other limits: {kept}' if kept else ''}"
    answer = f"With {noise}, {as_given(first.epsilon)} is {largest}."
    if not choice.on_first_risk:
        return answer
    people = "; ".join(
        f"{attribute.name}: {exposed.describe()} of {number_of(choice.table.n_records, 'person')} exposed"
        for attribute, exposed in zip(choice.measured.attributes, choice.alternatives[1].people, strict=True)
    )
    return f"{answer} The {choice.measured.name}, is then {percent(first.risk)}; {people}."


def paragraphs(choice: Choice) -> list[str]:
    """What is printed below the headline."""
    first, attributes = choice.options[0], choice.measured.attributes
    parts = [] if choice.epsilon is None and not choice.options[1:] else [make_sentence(choice.why)]
    for figures, limits in zip(choice.figures, choice.measured.people.limits(first.mechanism), strict=False):
        shown = first.mechanism.with_epsilon(first.epsilon or 0.0)  # as in the headline
        parts.append(sentence(replace(figures, mechanism=shown), limits.chance))
    if len(choice.options) > 1:
        rows = [[option.mechanism.describe(), *_show_numbers(option)] for option in choice.options]
        parts.append(aligned(["mechanism", "largest epsilon", "risk"], rows))
    if choice.alternatives:
        rows = [
            [each.role, show_down(each.epsilon), percent(each.risk)]
            + [whole_people(people.mean) for people in each.people]
            + [*map(whole_people, each.caused)]
            + ["-" if each.ceiling is None else f"{each.ceiling:.4f}"]
            + ([] if each.tvd is None else [f"{each.tvd:.4f}"])
            + [each.verdict]
            for each in choice.alternatives
        ]
        people = [f"people ({attribute.name})" for attribute in attributes]
        caused = [f"caused ({attribute.name})" for attribute in attributes]
        tvd = ["TVD"] if choice.trade_off is not None else []
        parts.append(aligned(["", "epsilon", "risk", *people, *caused, "ceiling", *tvd, "verdict"], rows))
    if choice.policies:
        parts.append(choice.policies.describe())
    if choice.epsilon is not None:
        parts += say_tables(first.mechanism.with_epsilon(choice.epsilon), len(attributes))
    return [*parts, f"{CURATOR_NOTE} {choice.choice_note}"]


def list_limits(choice: Choice, limits: Sequence[Limit] | None = None) -> list[str]:
    """The limits in words, or some of them, and that on the TVD."""
    tvd = [] if choice.trade_off is None else [say_tvd_limit(choice.trade_off.limit)]
    return describe_limits(choice.kept_limits if limits is None else limits) + tvd


def say_tvd_limit(limit: TvdLimit) -> str:
    return f"a TVD of at most {as_given(limit.max_tvd)}"


def say_least(trade_off: TradeOff) -> str:
    """The smallest epsilon whose TVD is within its limit, after "epsilon"."""
    if trade_off.least_epsilon is None:
        return f"more than {trade_off.epsilon[-1]:g} (its TVD is still {trade_off.tvd[-1]:.3g})"
    return f"at least {show_up(trade_off.least_epsilon)}"


def name_largest(choice: Choice, keeps: str) -> str:
    """What the epsilon is; ``keeps`` is the limits with a verb."""
    wavy = [ABOUT[each.name] for each in choice.kept_limits if each.uses_data and each.metric.kind.every_smaller]
    others = bool(choice.on_first_risk) or choice.trade_off is not None
    return say_largest(wavy, keeps, others, choice.options[0].searched[0])


def _aim(choice: Choice) -> str:
    """The limits in words, after "keeps"."""
    limits = choice.kept_limits
    if choice.trade_off is None and (len(limits) == 1 or limits == choice.on_first_risk):
        return " and ".join(map(aim, limits))
    return f"every limit ({'; '.join(list_limits(choice))})"


def _show_numbers(option: Option) -> list[str]:
    if option.epsilon is None or option.risk is None:
        return [option.without_epsilon, "-"]
    return [as_given(option.epsilon), percent(option.risk)]


def _name_noise(mechanism: Mechanism) -> str:
    """After "with"."""
    return f"{mechanism.name} noise" if mechanism.pure else f"{mechanism.name} noise (delta {claim(mechanism.delta)})"


def why(option: Option) -> str:
    """Why it is this epsilon, or none, and which larger ones keep the limits without being admissible."""
    end = option.admissible[-1][1] if option.admissible else None
    if end is None:
        reason = f"no epsilon {show_spans([option.searched])} is admissible: {_explain_none(option)}"
    else:
        reason = _explain_open(option) if option.epsilon is None else _explain_largest(option)
    return reason + say_again(option.again, end)


def _explain_largest(option: Option) -> str:
    reason = f"the limits allow epsilon {show_spans(option.admissible)}"
    end = option.admissible[-1][1]
    binding = [
        ABOUT[each.limit.name] for each in option.kept if each.limit.metric.kind.every_smaller and each.largest == end
    ]
    if binding and len(option.kept) > 1:
        reason += f", where the limit on {' and '.join(binding)} binds"
    return "; ".join([reason, *_explain_gaps(option)])


def _explain_open(option: Option) -> str:
    high = option.searched[1]
    ends = "the range searched" if math.isinf(option.mechanism.largest_epsilon) else "what the mechanism covers"
    raw = f" (the raw table's own risk is {percent(option.limits.raw)})" if _on_risks(option) else ""
    gaps = _explain_gaps(option)
    start = (
        "the limits hold, but not everywhere: epsilon" if gaps and _on_risks(option) else "no limit binds: even epsilon"
    )
    kept = " and ".join(describe_limits([each.limit for each in option.kept]))
    reasons = [f"{start} {show_down(high)}, the end of {ends}, gives {kept}{raw}", *gaps]
    if option.trade_off is not None and option.admissible[0][0] > option.searched[0]:
        reasons.append(f"the limit on the TVD asks for {say_least(option.trade_off)}")
    cases = [f"{describe(limit)} allows epsilon {as_given(epsilon)}" for limit, epsilon in option.information]
    return "; ".join([*reasons, BIND, *([f"for information, {', '.join(cases)}"] if cases else [])])


def _on_risks(option: Option) -> list[Intervals]:
    """Where each limit on a risk is kept."""
    return [each.intervals for each in option.kept if each.limit.risk is not None]


def _explain_gaps(option: Option) -> list[str]:
    """Where a limit on a risk is broken though larger epsilons keep it, and which limit allows smaller ones."""
    low, first = option.searched[0], option.within_limits[0][0]
    gaps = [(end, start) for (_, end), (start, _) in pairwise(option.within_limits)]
    gaps = [(low, first), *gaps] if low < first else gaps
    if not gaps:
        return []
    if not _on_risks(option):
        return [f"the limit on the error asks for at least {show_up(first)}"]
    return [f"{show_spans(gaps)} the limit on the risk is broken ({_say_chance(option)})", INSTEAD]


def _say_chance(option: Option) -> str:
    """What the risk of the worst attribute tends to."""
    fixed = "" if option.mechanism.lower_end == "chance" else ", with delta fixed,"
    chance = max(each.chance for each in option.measured.limits(option.mechanism))
    return f"as epsilon falls to 0{fixed} the risk tends to {percent(chance)}"


def _explain_none(option: Option) -> str:
    """Which limits exclude each other, and the epsilons that each asks for; or which limit no epsilon keeps."""
    low, conflict = option.searched[0], option.conflict
    instead = f"; {INSTEAD}" if _on_risks(option) else ""
    if conflict is not None:
        asks, allows = (ABOUT.get(name, "the TVD") for name in (conflict.asks, conflict.allows))
        return (
            f"the limit on {asks} asks for epsilon {show_up(conflict.at_least)} or more, the limit on {allows} allows "
            f"up to {show_down(conflict.at_most)}{instead}"
        )
    if option.within_limits and option.trade_off is not None:
        return (
            f"the other limits allow epsilon up to {show_down(option.within_limits[-1][1])}, the limit on the TVD asks "
            f"for {say_least(option.trade_off)}"
        )
    for bound in option.kept:
        if bound.limit.metric.kind.every_smaller and bound.largest is None:
            least = min(low, SMALLEST_EPSILON)
            value = bound.limit.value(option.measured.attributes, option.mechanism.with_epsilon(least))
            return f"already at epsilon {least:g}, {say(bound.limit, value)}"
        if bound.limit.metric.kind.every_smaller and bound.largest is not None and bound.largest < low:
            return f"every epsilon keeps the limit on {ABOUT[bound.limit.name]} only up to {show_down(bound.largest)}"
    if all(_on_risks(option)) and len(option.kept) > 1:
        spans = [f"{describe(bound.limit)} epsilon {show_spans(bound.allowed)}" for bound in option.kept]
        return f"the limits exclude each other: {'; '.join(spans)}{instead}"
    return (
        f"epsilon {option.lowest_epsilon:.4g} comes nearest, with a risk of {percent(option.lowest_risk)}; "
        f"{_say_chance(option)}, and the raw table's is {percent(option.limits.raw)}; {INSTEAD}"
    )
