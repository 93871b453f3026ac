"""The section on the epsilon that is asked for, beside a stricter and a looser one."""

from __future__ import annotations

from collections.abc import Iterator

from cellrisk.show.reporting.blocks import Section, TableBlock, Words
from cellrisk.show.reporting.decision import WITHIN, Decision
from cellrisk.show.reporting.phrases import make_sentence
from cellrisk.show.reporting.verdict import explain_allowed
from cellrisk.system.text import percent


def alternatives_section(decision: Decision) -> Section:
    """Section 3: what each epsilon that was considered would mean; where none will do, what comes nearest."""
    names = decision.request.table.sensitive
    none, with_tvd, many = decision.epsilon is None, decision.trade_off is not None, len(names) > 1
    people = [f"People exposed{f', {name}' if many else ''} (95% interval)" for name in names]
    header = ("Which", "Epsilon", "Noise scale", "Risk", *people, *(["TVD"] if with_tvd else []), "What it means")
    grid = TableBlock(
        _name_candidates(decision, "Three epsilons side by side"),
        header,
        tuple(tuple(_row(decision, place)) for place in range(len(decision.candidates))),
        texts=(0, len(header) - 1),
        marked=None if none else decision.shown,
    )
    notes = [f"Risk: the {decision.described_risk}."]
    if many:
        notes.append("It is that of the sensitive attribute with the highest.")
    if with_tvd:
        notes.append("TVD: the share of records that would have to move for a released marginal to equal the true one.")
    title = _name_candidates(decision, "The epsilon and two alternatives", "No epsilon will do: what comes nearest")
    return Section("alternatives", title, (_lead(decision),), (grid, Words((" ".join(notes),))))


def _name_candidates(decision: Decision, usual: str, nearest: str = "What comes nearest") -> str:
    return {"none": nearest, "unbound": "The end of the range, which is not recommended"}.get(decision.kind, usual)


def _row(decision: Decision, place: int) -> Iterator[str]:
    candidate = decision.candidates[place]
    at = candidate.at
    yield make_sentence(candidate.label, end="")
    yield f"{at.epsilon:.5g}"
    yield f"{decision.setting.at(at.epsilon).scale:.4g}"
    yield percent(at.risk)
    for people in at.people:
        yield f"{people.mean:,.0f} ({people.low:,} to {people.high:,})"
    if at.tvd is not None:
        yield f"{at.tvd:.3g}"
    apart = decision.epsilon is not None and place != decision.shown
    yield make_sentence(_compare(decision, place) if apart else at.verdict)


def _lead(decision: Decision) -> str:
    choice = decision.choice
    if decision.kind == "none":
        return "Each row keeps some of the limits, or comes nearest to them; none keeps all."
    if decision.kind == "unbound" and choice is not None:
        return make_sentence(choice.why)
    if choice is not None:
        return make_sentence(f"by the limits, {explain_allowed(choice)}")
    return "No limit on the risk was set to choose by; half and twice the epsilon show what a change would do."


def _compare(decision: Decision, place: int) -> str:
    """What another epsilon would change, and why it was not chosen."""
    candidate, base = decision.candidates[place], decision.candidates[decision.shown]
    if candidate.at.epsilon == base.at.epsilon:
        return "the guarantee of this mechanism ends here"
    less, within = candidate.at.epsilon > base.at.epsilon, candidate.at.verdict == WITHIN
    people = _say_people(decision, place)
    if decision.kind != "recommended":
        changes = f"{people}, with {'less' if less else 'more'} noise"
        return changes if decision.kind == "open" else f"{changes}; {candidate.at.verdict}"
    if not within:
        return f"{people}; rejected because it {candidate.at.verdict}"
    beyond = "it lies beyond what the limits admit" if less else "the limits are kept with less noise"
    return f"{people}; not chosen because {beyond}"


def _say_people(decision: Decision, place: int) -> str:
    """How many people more or fewer, for each sensitive attribute."""
    names = decision.request.table.sensitive
    there, here = (decision.candidates[each].at.people for each in (place, decision.shown))
    told = []
    for name, other, own in zip(names, there, here, strict=True):
        change = round(other.mean) - round(own.mean)
        number = f"{abs(change):,} {'more' if change > 0 else 'fewer'}" if change else "as many"
        told.append(f"{number} people exposed" + (f" ({name})" if len(names) > 1 else ""))
    return ", ".join(told)
