"""The decision and the verdict in words, and the epsilon that is asked for beside a stricter and a looser one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cellrisk.decide.choosing import WITHIN, Alternative
from cellrisk.decide.limits import EpsilonMetric, RiskMetric
from cellrisk.show.reporting.blocks import Section, TableBlock, Verdict, Words
from cellrisk.show.reporting.decision import Decision
from cellrisk.system.text import claim, make_sentence, number_of, percent, whole_people

NEEDED = "What would help: a looser limit (section 3), another mechanism, or a coarser table (section 7)."


def describe_decision(decision: Decision) -> str:
    """What the board is asked to decide."""
    setting, table = decision.setting, decision.request.table_name
    if decision.epsilon is None:
        at = "" if setting.pure else f" at delta {claim(setting.delta)}"
        return f"Decide how to go on with the frequency table of {table}: {decision.why_none}{at}."
    delta = "" if setting.pure else f" and delta {claim(setting.delta)}"
    return (
        f"Approve publication of the frequency table of {table} with {setting.name} noise at epsilon "
        f"{decision.epsilon:.12g}{delta}."
    )


def board_verdict(decision: Decision) -> Verdict:
    """The answer in a sentence or two, with its figures."""
    at, choice = decision.candidates[decision.shown], decision.choice
    risk = f"The {decision.measured.name}, is {percent(at.risk)} there; {_say_people(decision, at)}."
    required = f"Required: {decision.request.describe_limits()}."
    texts: tuple[str, ...] = (required, risk)
    if decision.kind == "recommended" and choice is not None:
        texts = (choice.headline, make_sentence(choice.why))
    elif decision.kind == "none" and choice is not None:
        texts = (choice.headline, NEEDED)
    elif decision.kind == "unbound" and choice is not None:
        texts = (make_sentence(choice.why),)
    elif decision.kind == "open":
        texts = (risk, "Whether that is acceptable is for the board to decide.")
    elif decision.kind in ("kept", "broken") and choice is not None:
        texts = (*texts, make_sentence(choice.why))
    return Verdict(decision.kind, _title(decision), texts)


def public_verdict(decision: Decision) -> Verdict:
    """The answer without a figure from the data, but for the epsilon."""
    limits = decision.request.describe_limits()
    texts = {
        "recommended": f"It is {decision.largest}.",
        "open": "No limit on a risk was set.",
    }
    title = _title(decision)
    if decision.kind in ("open", "kept", "recommended"):
        each = " each" if len(decision.request.table.sensitive) > 1 else ""
        title = f"Published at epsilon {decision.epsilon:.12g}{each}"
    return Verdict(decision.kind, title, (texts.get(decision.kind, f"Required was {limits}."),))


def _title(decision: Decision) -> str:
    if decision.epsilon is None:
        return f"{'Nothing is' if decision.kind == 'unbound' else 'Not'} recommended: {decision.why_none}"
    epsilon = f"{decision.epsilon:.12g}"
    return {
        "recommended": f"Recommended: epsilon {epsilon}",
        "kept": f"Limits kept: epsilon {epsilon} is within every limit",
        "broken": f"Limits broken: epsilon {epsilon} {decision.verdict}",
        "open": f"For the board to judge: no limit was set for epsilon {epsilon}",
    }[decision.kind]


def _say_people(decision: Decision, at: Alternative) -> str:
    names, records = decision.request.table.sensitive, decision.request.table.n_records
    return "; ".join(
        f"{name}: {people.describe()} of {number_of(records, 'person')} exposed"
        for name, people in zip(names, at.people, strict=True)
    )


def alternatives_section(decision: Decision) -> Section:
    """Section 3: what each epsilon that was considered would mean; where none will do, what comes nearest."""
    names = decision.request.table.sensitive
    none, with_tvd, many = decision.epsilon is None, decision.trade_off is not None, len(names) > 1
    people = [f"People exposed{f', {name}' if many else ''} (95% interval)" for name in names]
    exposed = ["Risk", *people] if _shows_risk(decision) else []
    header = ("Which", "Epsilon", "Noise scale", *exposed, *(["TVD"] if with_tvd else []), "What it means")
    grid = TableBlock(
        _name_candidates(decision, "Three epsilons side by side"),
        header,
        tuple(tuple(_candidate_row(decision, place)) for place in range(len(decision.candidates))),
        texts=(0, len(header) - 1),
        marked=None if none else decision.shown,
    )
    notes = [f"Risk: the {decision.described_risk}."] if exposed else []
    if many:
        notes.append("Each figure is that of the sensitive attribute with the highest one.")
    if with_tvd:
        notes.append("TVD: the share of records that would have to move for a released marginal to equal the true one.")
    title = _name_candidates(
        decision, "The epsilon and two alternatives", "No epsilon is recommended: what comes nearest"
    )
    return Section("alternatives", title, (_lead_in(decision),), (grid, Words((" ".join(notes),))))


def _name_candidates(decision: Decision, usual: str, nearest: str = "What comes nearest") -> str:
    return {"none": nearest, "unbound": "The end of the range, which is not recommended"}.get(decision.kind, usual)


def _candidate_row(decision: Decision, place: int) -> Iterator[str]:
    at = decision.candidates[place]
    yield make_sentence(at.role, end="")
    yield claim(at.epsilon)
    yield f"{decision.setting.with_epsilon(at.epsilon).scale:.4g}"
    if _shows_risk(decision):
        yield percent(at.risk)
        yield from (f"{whole_people(people.mean)} ({people.low:,} to {people.high:,})" for people in at.people)
    if at.tvd is not None:
        yield f"{at.tvd:.3g}"
    apart = decision.epsilon is not None and place != decision.shown
    told = [*_say_limited(decision, at), _compare_candidates(decision, place) if apart else at.verdict]
    yield make_sentence("; ".join(told))


def _shows_risk(decision: Decision) -> bool:
    """Whether candidates are compared by the people exposed: not if only figures to decide by are limited."""
    limits = decision.request.limits
    return any(isinstance(limit.metric, RiskMetric) for limit in limits) or all(
        limit.name == "max_epsilon" for limit in limits
    )


def _say_limited(decision: Decision, at: Alternative) -> Iterable[str]:
    """The figures that are limited, as they are at an epsilon, each once."""
    attributes, mechanism = decision.measured.attributes, decision.setting.with_epsilon(at.epsilon)
    limits = [limit for limit in decision.request.limits if not isinstance(limit.metric, (RiskMetric, EpsilonMetric))]
    return dict.fromkeys(limit.say(limit.value(attributes, mechanism)) for limit in limits)


def _lead_in(decision: Decision) -> str:
    choice = decision.choice
    if choice is not None:
        return make_sentence(choice.why)
    return "No limit on the risk was set to choose by; half and twice the epsilon show what a change would do."


def _compare_candidates(decision: Decision, place: int) -> str:
    """What another epsilon would change, and why it was not chosen."""
    at, base = decision.candidates[place], decision.candidates[decision.shown]
    if at.epsilon == base.epsilon:
        return "the guarantee of this mechanism ends here"
    less = at.epsilon > base.epsilon
    if decision.kind != "recommended":
        changes = "less noise" if less else "more noise"
        return changes if decision.kind == "open" else f"{changes}; {at.verdict}"
    if at.verdict != WITHIN:
        return f"rejected because it {at.verdict}"
    beyond = "some smaller epsilons break a limit" if less else "the limits are kept with less noise"
    return f"not chosen because {beyond}"
