"""The words of `NextEpsilon`: which epsilon the next release may have, and why."""

from __future__ import annotations

from cellrisk.decide.limits import Limit
from cellrisk.repeat.sequences.next_epsilon import NextEpsilon
from cellrisk.show.wording.ceiling import WORST_CASE, say_most
from cellrisk.show.wording.choice import CHOICE_NOTE
from cellrisk.show.wording.limits import say_again, say_largest
from cellrisk.show.wording.sequence import say_loss
from cellrisk.system.formatting import (
    CURATOR_NOTE,
    aligned,
    as_given,
    percent,
    round_down,
    show_down,
    show_spans,
    show_up,
)

NAMES = {"max_risk": "the risk", "max_caused": "caused", "max_ceiling": "the worst case"}


def headline(found: NextEpsilon) -> str:
    """What a curator can repeat."""
    what = f"{found.attribute or 'the counts of the cells'} through {found.setting.describe()}"
    keeps = f"keeps {_describe(found)}"
    if found.epsilon is None or found.cumulative is None:
        start = "No limit binds" if found.admissible == (found.searched,) else "The limits hold, but not everywhere,"
        none = f"No epsilon {show_spans([found.searched])} is admissible that {keeps}"
        return f"{start if found.admissible else none} for {what}: {found.why}."
    then = [f"The cumulative loss is then {say_loss(found.cumulative)}"]
    risk, caused = found.then("risk"), found.then("caused")
    if risk is not None:
        then.append(f"the risk {_say(found, 'max_risk', risk)}")
    if caused is not None and "max_caused" in found.maxima:
        then.append(f"caused {_say(found, 'max_caused', caused)}")
    if found.ceiling is not None and "max_ceiling" in found.maxima:
        then.append(f"the worst case {_say(found, 'max_ceiling', found.ceiling.even_two)}")
    listed = f"{', '.join(then[:-1])}, and {then[-1]}" if len(then) > 1 else then[0]
    wavy = ["caused"] if "max_caused" in found.maxima else []
    largest = say_largest(wavy, keeps, "max_risk" in found.maxima, found.searched[0])
    shown = as_given(round_down(found.epsilon, found.admissible[-1][0]))
    return f"For {what}, {shown} is {largest}. {listed}; {found.why}."


def why(found: NextEpsilon) -> str:
    """Why it is this epsilon, or none."""
    again = say_again(found.again, found.admissible[-1][1] if found.admissible else None)
    names = [bound.limit.name for bound in found.kept]
    before = [
        f"{NAMES[name]} is {_say(found, name, value)}" for name, value in zip(names, found.values_before, strict=True)
    ]
    stands = f"before this release {', '.join(before)}{again}"
    if not found.admissible:
        return _explain_none(found, stands, again)
    spans = show_spans(found.admissible)
    if found.epsilon is None:
        return (
            f"every epsilon {spans}, the end of the range searched, keeps {_describe(found)}; nothing is recommended: "
            f"choose by what the release is for, or set a tighter limit; {stands}"
        )
    ends = "" if found.binding else " (the end of the range searched)"
    binds = f", where {' and '.join(found.binding)} binds" if found.binding and len(names) > 1 else ""
    return f"the limits allow epsilon {spans}{ends}{binds}; {stands}"


def paragraphs(found: NextEpsilon) -> list[str]:
    """What is printed below the headline."""
    rows = [[show_up(low), show_down(high)] for low, high in found.admissible]
    parts = [aligned(["admissible from", "to"], rows, left=0)] if rows else []
    return parts if found.before is None else [*parts, f"{CURATOR_NOTE} {CHOICE_NOTE}"]


def _explain_none(found: NextEpsilon, stands: str, again: str) -> str:
    alone = [bound.limit for bound in found.kept if not bound.allowed]
    if not alone:
        spans = (
            f"{bound.limit.name.removeprefix('max_')} allows epsilon {show_spans(bound.allowed)}"
            for bound in found.kept
        )
        return f"the limits exclude each other: {'; '.join(spans)}{again}"
    reasons = []
    for limit in alone:
        reason = f"epsilon {found.searched[0]:g} is too much already"
        if limit.name == "max_risk" and found.lowest is not None:
            low, high = found.searched
            reason = (
                f"between epsilon {low:g} and {high:.6g} it comes lowest at {found.lowest[0]:.4g}, to "
                f"{_say(found, limit.name, found.lowest[1])}"
            )
        reasons.append(f"{reason} ({limit.name.removeprefix('max_')})" if len(found.kept) > 1 else reason)
    return f"{', and '.join(reasons)}; {stands}"


def _describe(found: NextEpsilon) -> str:
    """The limits in words, after "keeps"."""
    return " and ".join(_aim(found, bound.limit) for bound in found.kept)


def _aim(found: NextEpsilon, limit: Limit) -> str:
    """One limit as it was given: a share of people for the bounded kind, a number for the sum."""
    if limit.name == "max_ceiling":
        return f"the worst case for one record ({WORST_CASE}) at {as_given(limit.maximum, 2)}% or below"
    shown = f"{as_given(limit.maximum, 2)}%" if found.kind == "max" else as_given(limit.maximum)
    if limit.name == "max_risk":
        return f"the overall risk ({found.kind}, {found.weights}) at {shown} or below"
    return f"people revealed because of their own record ({found.kind}) at {shown} or below"


def _say(found: NextEpsilon, name: str, value: float) -> str:
    if name == "max_ceiling":
        return f"{say_most(value)}%"
    return percent(value) if found.kind == "max" else f"{value:.4g}"
