"""The words of `Choice`: which epsilon, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from cellrisk.decide.choosing import Choice
from cellrisk.decide.limits import SMALLEST_EPSILON, Limit
from cellrisk.decide.search import Intervals, intersect
from cellrisk.decide.usefulness import TradeOff, TvdLimit
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.precision import find_error
from cellrisk.risk.attackers.attacker import find_setting_figures
from cellrisk.show.wording.attackers import WIDTH, accuracy, fill, name_setting, name_table, say_note, setting_table
from cellrisk.show.wording.ceiling import say_tables
from cellrisk.show.wording.limits import ABOUT, describe, describe_limits, say, show_maximum, show_value
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
    "limit the people revealed because of their own record instead (max-caused), which leaves out what noise alone "
    "reveals, and allows every smaller epsilon"
)
CHOICE_NOTE = "An epsilon chosen from these data reveals a little about them. Choose it on public or earlier data."
WITHOUT_DATA = "The epsilon follows from limits on the guarantee alone, so the choice reveals nothing about the data."
WITHOUT_EPSILON = "What each epsilon reveals: cellrisk curve ...   Who, and what helps: cellrisk explain ..."
BIND = "to choose an epsilon, set a limit that binds, such as a ceiling of 0.75 or an epsilon of at most 1"


def headline(choice: Choice) -> str:
    """Return what a member of a board can repeat."""
    return " ".join(_answer(choice))


def _answer(choice: Choice) -> list[str]:
    noise = name_setting(choice.mechanism.with_epsilon(choice.epsilon or choice.searched[0])).partition(", epsilon")[0]
    noise = f"{noise[0].lower()}{noise[1:]}"
    limits = [limit for limit in choice.kept_limits if not choice.given or limit.name != "max_epsilon"]
    names = list_limits(choice, limits)
    keeps = f"keeps {names[0] if len(names) == 1 else 'every limit'}"
    if choice.epsilon is None:
        reason, _, more = choice.why.partition(": ")
        start = (
            f"No recommendation for {noise}: {reason}." if choice.open_ended else f"No epsilon {keeps} with {noise}."
        )
        return [start, *(make_sentence(clause) for clause in more.split("; "))]
    rounded = "" if choice.epsilon == choice.exact_epsilon else ", rounded down"
    answer = f"Recommended: epsilon {as_given(choice.epsilon)} with {noise}, the largest allowed{rounded}."
    smaller = f"Every epsilon from {choice.searched[0]:g} up to it"
    return [answer, f"{smaller if _keeps_every_smaller(choice, limits) else 'It'} {keeps}."] if limits else [answer]


def screen(choice: Choice) -> list[str]:
    """Return what is printed first: the epsilon, the error of a count, and stricter and looser ones beside it."""
    names, sentences, last = choice.table.sensitive, _answer(choice), [say_note(choice.table)]
    tables, following = [], WITHOUT_EPSILON
    if choice.epsilon is not None:
        mechanism = choice.mechanism.with_epsilon(choice.epsilon)
        sentences.append(accuracy(mechanism))
        tables = [f"'{name}'\n" * (len(names) > 1) + table for name in names if (table := _compare(choice, name))]
        following = f"Next: cellrisk release ... --epsilon {as_given(choice.epsilon)}   Why, and other settings: --all"
    last = [choice.choice_note, following, *last]
    last = [choice.policies.describe(), *last] if choice.policies else last
    usual = choice.mechanism.name == "geometric" and choice.mechanism.threshold == USUAL_THRESHOLD
    if choice.epsilon is not None and choice.again and not usual:
        last.insert(0, f"Some larger epsilons also keep the limits: {show_spans(choice.again[:1])}.")
    title = "\n".join(name_table(choice.table, name) for name in names)
    return [f"{title}\n{fill(' '.join(sentences))}", *tables, "\n".join(last)]


def _compare(choice: Choice, sensitive: str) -> str | None:
    """Return a table of the stricter, the recommended and the looser epsilon, and of no noise, by what is limited."""
    attribute, template = choice.table.attribute(sensitive), choice.mechanism
    mechanisms = [template.with_epsilon(each.epsilon) for each in choice.alternatives]
    settings = find_setting_figures(attribute, choice.attacker, mechanisms)
    if not settings:
        return None
    limits = [limit for limit in choice.kept_limits if limit.name not in ("max_epsilon", "max_error")]
    values = [[*limit.metric((attribute,))(mechanisms), limit.without_noise((attribute,))] for limit in limits]
    tvd = [] if choice.trade_off is None else ["TVD"]
    firsts = [(each.role, show_down(each.epsilon), f"{each.tvd or 0.0:.2g}") for each in choice.alternatives]
    rows = []
    for place, (first, figures) in enumerate(zip([*firsts, ("no noise", "-", "0")], settings, strict=True)):
        cells = [
            "" if value[place] is None else show_value(limit, value[place])
            for limit, value in zip(limits, values, strict=True)
        ]
        rows.append(([*first[:2], *cells, *first[2 : 2 + len(tvd)]], figures))
    names = [f"{ABOUT[limit.name].removeprefix('the ')}\n(limit {show_maximum(limit)})" for limit in limits]
    header, columns = ["", "epsilon", *names, *tvd], 4 - choice.from_data
    tables = (setting_table(rows, header, columns - fewer) for fewer in range(columns + 1))
    return next((text for text in tables if max(map(len, text.splitlines())) <= WIDTH), None)


def paragraphs(choice: Choice) -> list[str]:
    """Return the rest: why it is this epsilon, other mechanisms, and the verdict on each epsilon."""
    attributes = choice.measured.attributes
    parts = [] if choice.epsilon is None and not choice.options[1:] else [make_sentence(choice.why)]
    if len(limits := list_limits(choice)) > 1:
        parts.insert(0, "\n".join(["Limits:", *limits]))
    if len(choice.options) > 1:
        rows = [
            [option.mechanism.describe(), option.without_epsilon, "-"]
            if option.epsilon is None or option.risk is None
            else [option.mechanism.describe(), as_given(option.epsilon), percent(option.risk)]
            for option in choice.options
        ]
        parts.append(aligned(["mechanism", "largest epsilon", "risk"], rows))
    if choice.alternatives:
        rows = [
            [each.role, show_down(each.epsilon), percent(each.risk)]
            + [whole_people(people.mean) for people in each.people]
            + [f"{each.ceiling:.4f}", each.verdict]
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
    """Return the smallest epsilon whose TVD is within its limit, after "asks for"."""
    if trade_off.least_epsilon is None:
        return f"an epsilon above {trade_off.epsilon[-1]:g} (its TVD is still {trade_off.tvd[-1]:.3g})"
    return f"an epsilon of at least {show_up(trade_off.least_epsilon)}"


def name_largest(choice: Choice, keeps: str) -> str:
    """Return what the epsilon is; ``keeps`` is the limits with a verb."""
    if _keeps_every_smaller(choice, choice.kept_limits):
        return f"the largest epsilon up to which every smaller one, from {choice.searched[0]:g} on, {keeps}"
    return f"the largest epsilon that {keeps}"


def _keeps_every_smaller(choice: Choice, limits: Sequence[Limit]) -> bool:
    return choice.trade_off is None and all(limit.kind.every_smaller for limit in limits)


def why(option: Choice) -> str:
    """Why it is this epsilon, or none, and which larger ones keep the limits without being admissible."""
    low, high = option.searched
    if not option.admissible:
        reason = f"no epsilon {show_spans([option.searched])} is admissible: {_explain_none(option, low, high)}"
    else:
        reason = (_explain_open if option.epsilon is None else _explain_largest)(option, high)
    if not option.again:
        return reason
    larger = "larger epsilons" if option.admissible else "epsilons"
    return f"{reason}; {larger} {show_spans(option.again)} keep every limit, but some smaller ones do not"


def _explain_largest(option: Choice, high: float) -> str:
    end = option.admissible[-1][1]
    binding = [ABOUT[each.limit.name] for each in option.kept if each.limit.kind.every_smaller and each.largest == end]
    binds = f", where the limit on {' and '.join(binding)} binds" if binding and len(option.kept) > 1 else ""
    return "; ".join([f"the limits allow epsilon {show_spans(option.admissible)}{binds}", *_explain_gaps(option)])


def _explain_open(option: Choice, high: float) -> str:
    ends = "the range searched" if math.isinf(option.mechanism.largest_epsilon) else "what the mechanism covers"
    raw = f" (the risk without noise is {percent(option.limits.raw)})" if _on_risks(option) else ""
    gaps = _explain_gaps(option)
    start = "the limits hold, but not everywhere: epsilon" if INSTEAD in gaps else "no limit binds: even epsilon"
    kept = f"gives {describe(option.kept_limits[0])}" if len(option.kept_limits) == 1 else "keeps every limit"
    reasons = [f"{start} {show_down(high)}, the end of {ends}, {kept}{raw}", *gaps]
    if option.trade_off is not None and option.admissible[0][0] > option.searched[0]:
        reasons.append(f"the limit on the TVD asks for {say_least(option.trade_off)}")
    cases = [f"{describe(limit)} allows epsilon {as_given(epsilon)}" for limit, epsilon in option.information]
    return "; ".join([*reasons, BIND, *([f"for information, {', '.join(cases)}"] if cases else [])])


def _on_risks(option: Choice) -> list[Intervals]:
    """Where each limit on a risk is kept."""
    return [each.intervals for each in option.kept if each.limit.risk is not None]


def _explain_gaps(option: Choice) -> list[str]:
    """Where a limit on a risk is broken though larger epsilons keep it, and from where the error is small enough."""
    low, clauses = option.searched[0], []
    kept = intersect(((low, option.within_limits[-1][1]),), *_on_risks(option))
    gaps = [(end, start) for (_, end), (start, _) in pairwise(((low, low), *kept)) if end < start]
    if gaps:
        clauses = [f"{show_spans(gaps)} the limit on the risk is broken ({_say_chance(option)})", INSTEAD]
    least = [each.allowed[0][0] for each in option.kept if each.limit.name == "max_error" and each.allowed[0][0] > low]
    return [*clauses, *(f"the limit on the error asks for epsilon {show_up(epsilon)} or more" for epsilon in least)]


def _say_chance(option: Choice) -> str:
    """What the risk of the worst attribute tends to."""
    fixed = "" if option.mechanism.lower_end == "blind" else ", with delta fixed,"
    chance = max(each.chance for each in option.measured.limits(option.mechanism))
    return f"as epsilon falls to 0{fixed} the risk tends to {percent(chance)}"


def _explain_none(option: Choice, low: float, high: float) -> str:
    """Which limits exclude each other, and the epsilons that each asks for; or which limit no epsilon keeps."""
    conflict, instead = option.conflict, f"; {INSTEAD}" if _on_risks(option) else ""
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
        if kept.limit.name == "max_error" and not kept.allowed:
            within = find_error(option.mechanism.with_epsilon(high))
            return f"even at epsilon {show_down(high)} the count is only within {within:,} in 95% of cases"
        if kept.limit.kind.every_smaller and kept.largest is None:
            least = min(low, SMALLEST_EPSILON)
            value = kept.limit.value(option.measured.attributes, option.mechanism.with_epsilon(least))
            return f"already at epsilon {least:g}, {say(kept.limit, value)}"
        if kept.limit.kind.every_smaller and kept.largest is not None and kept.largest < low:
            return f"every epsilon keeps the limit on {ABOUT[kept.limit.name]} only up to {show_down(kept.largest)}"
    if all(kept.allowed for kept in option.kept):
        spans = [f"{describe(kept.limit)} epsilon {show_spans(kept.allowed)}" for kept in option.kept]
        return f"the limits exclude each other: {'; '.join(spans)}{instead}"
    return (
        f"epsilon {option.lowest_epsilon:.4g} comes nearest, with a risk of {percent(option.lowest_risk)}; "
        f"{_say_chance(option)}, and without noise it is {percent(option.limits.raw)}; {INSTEAD}"
    )
