"""The words of `Choice`: which epsilon, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from cellrisk.decide.choosing import Choice
from cellrisk.decide.limits import SMALLEST_EPSILON, Limit
from cellrisk.decide.search import Intervals
from cellrisk.decide.usefulness import TradeOff, TvdLimit
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.risk.attackers.attacker import SettingFigures
from cellrisk.show.wording.attackers import WIDTH, accuracy, fill, name_setting, name_table, say_note, setting_table
from cellrisk.show.wording.ceiling import say_tables
from cellrisk.show.wording.limits import ABOUT, describe, describe_limits, say, say_again, show_value
from cellrisk.system.formatting import (
    aligned,
    as_given,
    make_sentence,
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
CHOICE_NOTE = "An epsilon chosen from these data reveals a little about them. Choose it on public or earlier data."
WITHOUT_DATA = "The epsilon follows from limits on the guarantee alone, so the choice reveals nothing about the data."
WITHOUT_EPSILON = "What each epsilon reveals: cellrisk curve ...   Who, and what helps: cellrisk explain ..."
BIND = (
    "to choose an epsilon, set a limit that binds, such as a ceiling of 0.75 or an epsilon of at most 1, or choose it "
    "by other standards"
)


def headline(choice: Choice) -> str:
    """Return what a member of a board can repeat."""
    return " ".join(_answer(choice))


def _answer(choice: Choice) -> list[str]:
    noise = name_setting(choice.mechanism.with_epsilon(choice.epsilon or choice.searched[0])).partition(", epsilon")[0]
    noise = f"{noise[0].lower()}{noise[1:]}"
    if choice.epsilon is None:
        reason, _, more = choice.why.partition(": ")
        names = list_limits(choice)
        start = f"No epsilon keeps {names[0] if len(names) == 1 else 'every limit'} with {noise}."
        if choice.open_ended:
            start = f"No recommendation for {noise}: {reason}."
        return [start, *(make_sentence(clause) for clause in more.split("; "))]
    rounded = "" if choice.epsilon == choice.exact_epsilon else ", rounded down"
    answer = f"Recommended: epsilon {as_given(choice.epsilon)} with {noise}, the largest allowed{rounded}."
    limits = [limit for limit in choice.kept_limits if not choice.given or limit.name != "max_epsilon"]
    keeps = f"keeps {list_limits(choice, limits)[0] if len(limits) == 1 and not choice.trade_off else 'every limit'}"
    if not limits:
        return [answer]
    smaller = f"Every epsilon from {choice.searched[0]:g} up to it"
    return [answer, f"{smaller if _keeps_every_smaller(choice, limits) else 'It'} {keeps}."]


def screen(choice: Choice) -> list[str]:
    """Return what is printed first: the epsilon, the error of a count, and stricter and looser ones beside it."""
    title = "\n".join(name_table(choice.table, attribute.name) for attribute in choice.measured.attributes)
    if choice.epsilon is None:
        last = [*_obeyed(choice), choice.choice_note, WITHOUT_EPSILON, say_note(choice.table)]
        return [f"{title}\n{fill(' '.join(_answer(choice)))}", "\n".join(last)]
    mechanism = choice.mechanism.with_epsilon(choice.epsilon)
    names = [attribute.name for attribute in choice.measured.attributes]
    tables = [f"'{name}'\n" * (len(names) > 1) + table for name in names if (table := _compare(choice, name))]
    command = f"Next: cellrisk release ... --epsilon {as_given(choice.epsilon)}   Why, and other settings: --all"
    again = []
    if choice.again and not (mechanism.name == "geometric" and mechanism.threshold == USUAL_THRESHOLD):
        again = [f"Some larger epsilons also keep the limits: {show_spans(choice.again[:1])}."]
    sentences = fill(" ".join([*_answer(choice), accuracy(mechanism)]))
    last = [*again, *_obeyed(choice), choice.choice_note, command, say_note(choice.table)]
    return [f"{title}\n{sentences}", *tables, "\n".join(last)]


def _obeyed(choice: Choice) -> list[str]:
    """Return which policies were obeyed, if there are any."""
    return [choice.policies.describe()] if choice.policies else []


def _compare(choice: Choice, sensitive: str) -> str | None:
    """Return a table of the stricter, the recommended and the looser epsilon, and of no noise, by what is limited."""
    attribute, template = choice.table.attribute(sensitive), choice.mechanism
    mechanisms = [template.with_epsilon(each.epsilon) for each in choice.alternatives]
    settings = choice.compare(sensitive)
    if not settings:
        return None
    limits = [limit for limit in choice.kept_limits if limit.name not in ("max_epsilon", "max_error")]
    values = [limit.metric((attribute,))(mechanisms) for limit in limits]
    tvd = [] if choice.trade_off is None else ["TVD"]
    rows: list[tuple[Sequence[str], SettingFigures]] = []
    for number, (each, figures) in enumerate(zip(choice.alternatives, settings, strict=False)):
        limited = [show_value(limit, float(value[number])) for limit, value in zip(limits, values, strict=True)]
        shown = choice.epsilon if each.role == "recommended" else each.epsilon
        rows.append(([each.role, show_down(shown or 0.0), *limited, *(f"{each.tvd:.2g}" for _ in tvd)], figures))
    bare = [(limit, limit.without_noise((attribute,))) for limit in limits]
    limited = ["" if value is None else show_value(limit, value) for limit, value in bare]
    rows.append((["no noise", "-", *limited, *("0" for _ in tvd)], settings[-1]))
    names = [f"{ABOUT[limit.name].removeprefix('the ')}\n(limit {_show_maximum(limit)})" for limit in limits]
    header, columns = ["", "epsilon", *names, *tvd], 4 - choice.from_data
    tables = (setting_table(rows, header, columns - fewer) for fewer in range(columns + 1))
    return next((text for text in tables if max(map(len, text.splitlines())) <= WIDTH), None)


def _show_maximum(limit: Limit) -> str:
    return f"{as_given(limit.maximum, 2)}%" if show_value(limit, 1.0).endswith("%") else as_given(limit.maximum)


def paragraphs(choice: Choice) -> list[str]:
    """Return the rest: why it is this epsilon, other mechanisms, and the verdict on each epsilon."""
    attributes = choice.measured.attributes
    parts = [] if choice.epsilon is None and not choice.options[1:] else [make_sentence(choice.why)]
    if len(limits := list_limits(choice)) > 1:
        parts.insert(0, "\n".join(["Limits:", *limits]))
    if len(choice.options) > 1:
        rows = [[option.mechanism.describe(), *_show_numbers(option)] for option in choice.options]
        parts.append(aligned(["mechanism", "largest epsilon", "risk"], rows))
    if choice.alternatives:
        rows = [
            [each.role, show_down(each.epsilon), percent(each.risk)]
            + [whole_people(people.mean) for people in each.people]
            + ["-" if each.ceiling is None else f"{each.ceiling:.4f}", each.verdict]
            for each in choice.alternatives
        ]
        counted = "records revealed" if choice.table.unit.contributions > 1 else "revealed"
        people = [f"{counted} ('{attribute.name}')" for attribute in attributes]
        parts.append(aligned(["", "epsilon", "risk", *people, "worst case", "verdict"], rows))
    parts += dict.fromkeys(fill(figures.ceiling.headline) for figures in choice.figures)
    if choice.epsilon is not None:
        parts += say_tables(choice.mechanism.with_epsilon(choice.epsilon), len(attributes))
    return parts


def list_limits(choice: Choice, limits: Sequence[Limit] | None = None) -> list[str]:
    """Return the limits in words, or some of them, and that on the TVD."""
    tvd = [] if choice.trade_off is None else [say_tvd_limit(choice.trade_off.limit)]
    words = describe_limits(choice.kept_limits if limits is None else limits)
    if choice.table.unit.contributions > 1:
        words = [text.replace("own record", "own records") for text in words]
    return words + tvd


def say_tvd_limit(limit: TvdLimit) -> str:
    """Return the limit on the TVD, after "keeps"."""
    return f"a TVD of at most {as_given(limit.max_tvd)}"


def say_least(trade_off: TradeOff) -> str:
    """Return the smallest epsilon whose TVD is within its limit, after "epsilon"."""
    if trade_off.least_epsilon is None:
        return f"more than {trade_off.epsilon[-1]:g} (its TVD is still {trade_off.tvd[-1]:.3g})"
    return f"at least {show_up(trade_off.least_epsilon)}"


def name_largest(choice: Choice, keeps: str) -> str:
    """Return what the epsilon is; ``keeps`` is the limits with a verb."""
    if _keeps_every_smaller(choice, choice.kept_limits):
        return f"the largest epsilon up to which every smaller one, from {choice.searched[0]:g} on, {keeps}"
    return f"the largest epsilon that {keeps}"


def _keeps_every_smaller(choice: Choice, limits: Sequence[Limit]) -> bool:
    return choice.trade_off is None and all(limit.kind.every_smaller for limit in limits)


def _show_numbers(option: Choice) -> list[str]:
    if option.epsilon is None or option.risk is None:
        return [option.without_epsilon, "-"]
    return [as_given(option.epsilon), percent(option.risk)]


def why(option: Choice) -> str:
    """Why it is this epsilon, or none, and which larger ones keep the limits without being admissible."""
    end = option.admissible[-1][1] if option.admissible else None
    if end is None:
        reason = f"no epsilon {show_spans([option.searched])} is admissible: {_explain_none(option)}"
    else:
        reason = _explain_open(option) if option.epsilon is None else _explain_largest(option)
    return reason + say_again(option.again, end)


def _explain_largest(option: Choice) -> str:
    reason = f"the limits allow epsilon {show_spans(option.admissible)}"
    end = option.admissible[-1][1]
    binding = [ABOUT[each.limit.name] for each in option.kept if each.limit.kind.every_smaller and each.largest == end]
    if binding and len(option.kept) > 1:
        reason += f", where the limit on {' and '.join(binding)} binds"
    return "; ".join([reason, *_explain_gaps(option)])


def _explain_open(option: Choice) -> str:
    high = option.searched[1]
    ends = "the range searched" if math.isinf(option.mechanism.largest_epsilon) else "what the mechanism covers"
    raw = f" (the risk without noise is {percent(option.limits.raw)})" if _on_risks(option) else ""
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


def _on_risks(option: Choice) -> list[Intervals]:
    """Where each limit on a risk is kept."""
    return [each.intervals for each in option.kept if each.limit.risk is not None]


def _explain_gaps(option: Choice) -> list[str]:
    """Where a limit on a risk is broken though larger epsilons keep it, and which limit allows smaller ones."""
    low, first = option.searched[0], option.within_limits[0][0]
    gaps = [(end, start) for (_, end), (start, _) in pairwise(option.within_limits)]
    gaps = [(low, first), *gaps] if low < first else gaps
    if not gaps:
        return []
    if not _on_risks(option):
        return [f"the limit on the error asks for epsilon {show_up(first)} or more"]
    return [f"{show_spans(gaps)} the limit on the risk is broken ({_say_chance(option)})", INSTEAD]


def _say_chance(option: Choice) -> str:
    """What the risk of the worst attribute tends to."""
    fixed = "" if option.mechanism.lower_end == "blind" else ", with delta fixed,"
    chance = max(each.chance for each in option.measured.limits(option.mechanism))
    return f"as epsilon falls to 0{fixed} the risk tends to {percent(chance)}"


def _explain_none(option: Choice) -> str:
    """Which limits exclude each other, and the epsilons that each asks for; or which limit no epsilon keeps."""
    low, conflict = option.searched[0], option.conflict
    instead = f"; {INSTEAD}" if _on_risks(option) else ""
    if conflict is not None:
        asks, allows = (ABOUT.get(name, "the TVD") for name in (conflict["asks"], conflict["allows"]))
        return (
            f"the limit on {asks} asks for epsilon {show_up(conflict['at_least'])} or more, the limit on {allows} "
            f"allows up to {show_down(conflict['at_most'])}{instead}"
        )
    if option.within_limits and option.trade_off is not None:
        return (
            f"the other limits allow epsilon up to {show_down(option.within_limits[-1][1])}, the limit on the TVD asks "
            f"for {say_least(option.trade_off)}"
        )
    for kept in option.kept:
        if kept.limit.kind.every_smaller and kept.largest is None:
            least = min(low, SMALLEST_EPSILON)
            value = kept.limit.value(option.measured.attributes, option.mechanism.with_epsilon(least))
            return f"already at epsilon {least:g}, {say(kept.limit, value)}"
        if kept.limit.kind.every_smaller and kept.largest is not None and kept.largest < low:
            return f"every epsilon keeps the limit on {ABOUT[kept.limit.name]} only up to {show_down(kept.largest)}"
    if all(_on_risks(option)) and len(option.kept) > 1:
        spans = [f"{describe(kept.limit)} epsilon {show_spans(kept.allowed)}" for kept in option.kept]
        return f"the limits exclude each other: {'; '.join(spans)}{instead}"
    return (
        f"epsilon {option.lowest_epsilon:.4g} comes nearest, with a risk of {percent(option.lowest_risk)}; "
        f"{_say_chance(option)}, and the raw table's is {percent(option.limits.raw)}; {INSTEAD}"
    )
