"""The words of `Composition`, `RiskSequence`, `NextEpsilon` and `Averaging`: several releases about the same people."""

from __future__ import annotations

import math
from collections import Counter
from functools import singledispatch

from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.averaging import Averaged, Averaging
from cellrisk.repeat.sequences import NextEpsilon, RiskSequence
from cellrisk.risk.measures import MEASURES
from cellrisk.show.wording.attackers import fill, name_table, own_of, own_people, own_share
from cellrisk.show.wording.ceiling import say_most
from cellrisk.system.formatting import (
    CURATOR_NOTE,
    aligned,
    as_given,
    claim,
    join_names,
    number_of,
    percent,
    round_down,
    whole_people,
)
from cellrisk.system.results import Result

METHODS = {
    "basic": "Basic composition adds up epsilons and deltas.",
    "rdp": "Composition by Renyi DP adds up the Renyi divergences of all losses.",
    "pld": "The distributions of the privacy losses are convolved and rounded to the safe side.",
}
EXACT = "Gaussian noises compose exactly, to one Gaussian."
NEIGHBOURING = {
    "add-remove": "Tables are neighbours if one record is added or removed: one count changes by 1.",
    "replace": "Tables are neighbours if one record is replaced: two counts change by 1 each.",
}
SET_BEFORE = (
    "Computed for epsilons and deltas set before the first release.",
    "If later ones were set by what earlier releases showed, use the method basic and a limit set before.",
    "No method covers an epsilon that was chosen from the raw data.",
)
RULE = (
    "Risks and people revealed follow a rule: each attribute as if it were released once at the cumulative loss.",
    "Its noise is that of the release, or of a geometric or Gaussian mechanism if that cannot have this loss.",
    "What was revealed stays revealed. Of several releases that is neither exact nor a bound.",
)
AVERAGED = (
    "The rule takes one release by the same mechanism at the loss of all releases together.",
    "Averaging is computed from the mean of the noises itself.",
    "The attacker is assumed to see the counts before they are rounded and before small ones are set to zero.",
    "Releases with thresholds show less.",
)
COUNTED = "people revealed because of their own record"
NEXT_SEQUENCE = "The paper's risks, and what is assumed: --all   One more: cellrisk ledger risk ... --epsilon 0.5"
NEXT_AVERAGING = "Every measure, and what is assumed: --all   A ledger adds up losses: cellrisk ledger create ..."


@singledispatch
def headline(found: Result) -> str:
    """Return what a curator can repeat."""
    raise TypeError(f"no words for {type(found).__name__}")


@headline.register
def _(found: Composition) -> str:
    if not found.losses:
        return "Nothing is released: epsilon 0."
    cost = "costs" if len(found.losses) == 1 else "together cost"
    how = f"({found.dp_definition} DP, by {found.chosen.method} composition)"
    at_delta = f" at delta {claim(found.delta)}" if found.delta else ""
    return f"{number_of(len(found.losses), 'release')} {cost} epsilon {claim(found.epsilon)}{at_delta} {how}."


@headline.register
def _(found: RiskSequence) -> str:
    last, worst = found.rows[-1], found.rows[-1].ceiling
    start = f"After {number_of(len(found.rows), 'release')} the cumulative loss is {say_loss(last.cumulative)}."
    bound = [] if worst is None else [worst.headline]
    if not found.attributes:
        return " ".join([start, "No sensitive attribute was released, so none is at risk.", *bound])
    people = found.n_records
    own = last.overall_caused.max_records * people
    names = found.attributes
    whose = f"'{names[0]}'" if len(names) == 1 else f"the attribute most at risk (one of {len(names)})"
    revealed = f"The homogeneity attack reveals {whose} of {own_of(own, people)} because of their own record."
    return " ".join([start, revealed, *bound])


@headline.register
def _(found: NextEpsilon) -> str:
    limit = f"keeps the worst case for one record at {as_given(found.max_ceiling, 2)}% or below"
    before = f"Before this release it is {say_most(found.before.even_two)}%."
    noise = f"{found.setting.name} noise"
    if found.epsilon is None or found.cumulative is None or found.ceiling is None:
        return f"No epsilon of {noise} {limit}. {before}"
    if not found.binds:
        return f"Every epsilon of {noise} up to {found.searched[1]:g} {limit}. {before}"
    shown = as_given(round_down(found.epsilon, found.searched[0]))
    delta = "" if found.setting.pure else f" with delta {claim(found.setting.delta)}"
    return (
        f"Epsilon {shown} is the largest of {noise}{delta} that {limit}. {before} With it, the cumulative loss is "
        f"{say_loss(found.cumulative)}, and the worst case is {say_most(found.ceiling.even_two)}%."
    )


@headline.register
def _(found: Averaging) -> str:
    people, sentences = found.table.n_records, []
    worst, _ = found.find_ceiling()
    for row in found.caused:
        averaging, one = (whole_people(share * people) for share in (row.averaging, row.one))
        sentences.append(
            f"An attacker who averages {number_of(found.releases, 'release')} reveals the '{row.sensitive}' of "
            f"{averaging} of {number_of(people, 'person')} because of their own record; one release, of {one}."
        )
    if not found.caused:
        names = dict.fromkeys(row.sensitive for row in found.rows)
        sentences += [_say_risk(found, _lead(found, name)) for name in names]
    return " ".join([*sentences, *([] if worst is None else [worst.headline])])


@singledispatch
def screen(found: Result) -> list[str] | None:
    """Return what is printed first; None for everything."""
    return None


@screen.register
def _(found: RiskSequence) -> list[str]:
    header = ["", "release", "loss", "epsilon", "delta", "revealed", "so far", "any attack", "worst case"]
    people, rows = found.n_records, []
    for row in found.rows:
        caused, own = row.caused, own_people(row.overall_caused.max_records * people, people)
        revealed = ["-" if caused is None else own_people(caused.people, people), own]
        rows.append(
            [
                *(f"{row.number}", row.name, row.loss.describe(), claim(row.cumulative.epsilon)),
                *(claim(row.cumulative.delta) if row.cumulative.delta else "", *revealed),
                "-" if caused is None else f"{math.ceil(caused.cap):,}",
                "-" if row.ceiling is None else f"{say_most(row.ceiling.even_two)}%",
            ]
        )
    about = f"{COUNTED}, and the largest that any attack on all releases so far reveals:"
    note = f"{NEXT_SEQUENCE}\n{CURATOR_NOTE}"
    return [fill(found.headline), f"{about.capitalize()}\n{aligned(header, rows, left=3)}", note]


@screen.register
def _(found: Averaging) -> list[str]:
    parts, people = [], found.table.n_records
    one, left = math.sqrt(found.mechanism.noise.variance), found.noise.deviation
    noise = (
        f"At {found.mechanism.guarantee}, noise has standard deviation {one:.4g}; "
        f"averaging {number_of(found.releases, 'release')} leaves {left:.4g}."
    )
    header = ["homogeneity attack", "one release", f"averaging {found.releases:,}", f"rule, {found.rule.method}"]
    for name in dict.fromkeys(row.sensitive for row in (*found.caused, *found.rows)):
        rows = []
        for row in (row for row in found.caused if row.sensitive == name):
            shares = [share and share * people for share in (row.one, row.averaging, row.rule)]
            rows.append(
                [COUNTED]
                + ["-" if own is None else f"{own_people(own, people)} {own_share(own, people):>6}" for own in shares]
            )
        if any(row.sensitive == name for row in found.rows):
            lead = _lead(found, name)
            words = f"revealed ({lead.measure.replace('_', ' ')}, {lead.form}{_weights(lead)})"
            risks = (lead.one, lead.averaging, lead.rule)
            rows.append([words, *("-" if risk is None else percent(risk) for risk in risks)])
        parts += [f"{name_table(found.table, name)}\n{noise}", aligned(header, rows)]
    worst, why_not = found.find_ceiling()
    bound = f"The worst case is not known: {why_not}." if worst is None else worst.headline
    return [*parts, fill(bound), f"{NEXT_AVERAGING}\n{CURATOR_NOTE}"]


@singledispatch
def statements(found: Result) -> list[str]:
    """Return what was computed, how, and what is assumed."""
    return []


@statements.register
def _(found: Composition) -> list[str]:
    if not found.losses:
        return []
    counts = Counter(loss.dp_definition for loss in found.losses)
    method, definition = found.chosen.method, found.dp_definition
    kinds = [f"{counts[kind]:,} {kind}" for kind in ("pure", "approximate", "concentrated") if counts[kind]]
    losses = "loss is" if counts.total() == 1 else "losses are"
    zero = ": a pure loss has delta 0" if counts["pure"] and definition != "pure" else ""
    said = [f"{join_names(kinds)} {losses} composed as {definition} DP{zero}."]
    if counts["concentrated"]:
        said.append("A rho-zCDP loss has no epsilon of its own: it implies approximate DP at every delta above 0.")
    if definition != "pure":
        own = found.own_delta
        other = ", the sum of the losses' deltas" if found.delta == own else f"; the losses' own add up to {claim(own)}"
        said.append(f"All methods are compared at delta {claim(found.delta)}{other}.")
    said.append(EXACT if found.exact else METHODS[method])
    unknown = sum(event.kind in ("pure", "approximate") for event in found.events)
    if method != "basic" and unknown:
        lost = number_of(unknown, "loss")
        said.append(f"{lost} without a known mechanism: taken at the worst that the guarantee allows.")
    said += SET_BEFORE if method != "basic" else []
    neighbours, unit = found.losses[0].neighbours, max(found.losses, key=lambda loss: loss.unit.contributions).unit
    if unit.kind == "record":
        return [*said, NEIGHBOURING[neighbours]]
    changed = "added or removed" if neighbours == "add-remove" else "replaced"
    return [*said, f"Tables are neighbours if the records of one person are {changed}. {unit.describe()}"]


@statements.register
def _(found: RiskSequence) -> list[str]:
    last = found.rows[-1]
    rule = RULE if len(found.rows) > 1 else ("Risks and people revealed are exact: there is one release.",)
    said = list(rule) if found.attributes else []
    if last.caused is not None:
        most = number_of(math.ceil(last.caused.cap), "person")
        said.append(f"Any attack on all releases reveals at most {most} because of their own record: a bound.")
    if last.ceiling is None:
        return [*said, f"The worst case is not known: {last.why_no_ceiling}."]
    reached = ", and some attacker reaches it" if last.ceiling.exact else ": an upper bound"
    return [*said, f"The worst case is that of all losses composed{reached}."]


@statements.register
def _(found: Averaging) -> list[str]:
    worst, _ = found.find_ceiling()
    said = [
        *AVERAGED,
        *([] if worst is None else ["The worst case is that of all releases, whatever is made of them."]),
    ]
    if found.noise.kind.is_whole and found.releases % 2 == 0:
        said.append("A mean that meets the threshold exactly is not below it, so that count is shown.")
    if found.mechanism.pure and found.rule.delta:
        said.append(f"{found.mechanism.name} takes no delta: the rule is evaluated at its epsilon alone.")
    return said


@singledispatch
def paragraphs(found: Result) -> list[str]:
    """Return the rest: every method, or every measure, and what is assumed."""
    return []


@paragraphs.register
def _(found: Composition) -> list[str]:
    rows = []
    for each in found.composed:
        epsilon = "-" if each.epsilon is None else claim(each.epsilon)
        rows.append([each.method, epsilon, "chosen" if each == found.chosen else each.why])
    return [aligned(["method", "epsilon", ""], rows, left=3), "\n".join(found.statements)]


@paragraphs.register
def _(found: RiskSequence) -> list[str]:
    body = [
        [f"{row.number}", row.name, row.cumulative.chosen.method, f"{row.cells:,}"]
        + ["-" if row.records is None else f"{row.records:.4f}"]
        + [f"{value:.4f}" for value in vars(row.overall).values()]
        for row in found.rows
    ]
    header = ["", "release", "composed", "groups", "risk"]
    header += ["max, uniform", "max, records", "sum, uniform", "sum, records"]
    about = (
        f"{found.measure.replace('_', ' ').capitalize()} risk, {found.form}, of "
        f"{number_of(found.n_records, 'record')}, each attribute at the cumulative loss.\n"
        "risk: of the attribute released, by records. max: of each group's attribute most at risk.\n"
        "sum: of all attributes added up, which is not a probability."
    )
    return [f"{about}\n{aligned(header, body, left=3)}", "\n".join(found.statements)]


@paragraphs.register
def _(found: Averaging) -> list[str]:
    header = ["measure", "form", "weights", "one release", "averaging", f"rule, {found.rule.method}", "larger"]
    parts = []
    for name in dict.fromkeys(row.sensitive for row in found.rows):
        body = []
        for row in (row for row in found.rows if row.sensitive == name):
            line = [row.measure, row.form or "-", row.weights or "-", f"{row.one:.4f}", f"{row.averaging:.4f}"]
            body.append([*line, "-" if row.rule is None else f"{row.rule:.4f}", row.larger or "-"])
        lead = fill(f"{_say_risk(found, _lead(found, name))} {_compare(found, _lead(found, name))}")
        parts.append("\n".join([lead, aligned(header, body, left=3), *found.fitted[name].describe()]))
    return [*parts, "\n".join(found.statements)]


def say_loss(found: Composition) -> str:
    """Return a cumulative loss in words."""
    delta = f", delta {claim(found.delta)}" if found.delta else ""
    return f"epsilon {claim(found.epsilon)}{delta}"


def _lead(found: Averaging, name: str) -> Averaged:
    """Return the row that stands for an attribute: tight and by records if it was asked for."""
    order = {"tight": 0, "exact": 1, "published": 2}
    rows = [row for row in found.rows if row.sensitive == name]
    measures: list[str] = [*MEASURES]
    return min(rows, key=lambda row: (measures.index(row.measure), order[str(row.form)], row.weights == "uniform"))


def _weights(row: Averaged) -> str:
    return {"uniform": ", each group alike", "records": ", by records", None: ""}[row.weights]


def _say_risk(found: Averaging, row: Averaged) -> str:
    return (
        f"The risk of '{row.sensitive}' from averaging {number_of(found.releases, 'release')} is "
        f"{percent(row.averaging)} ({row.measure.replace('_', ' ')}, {row.form}{_weights(row)}); "
        f"from one release it is {percent(row.one)}."
    )


def _compare(found: Averaging, row: Averaged) -> str:
    """Return whether the rule is larger, and the noise of both."""
    rule, risk, larger = found.rule, row.rule, row.larger
    named = f"the cumulative loss by {rule.method} composition"
    if rule.mechanism is None or risk is None:
        return f"The rule of {named} has no answer: {rule.why}."
    loss = f"epsilon {claim(rule.epsilon or 0.0)}" + (f" and delta {claim(rule.delta)}" if rule.delta else "")
    word = {"equal": "which is the same", "rule": "which is larger", "averaging": "which is smaller"}[str(larger)]
    theirs, ours = math.sqrt(rule.mechanism.noise.variance), found.noise.deviation
    return (
        f"The rule of {named}, {loss}, gives {percent(risk)}, {word}. "
        f"It assumes noise of standard deviation {theirs:.4g}; averaging leaves {ours:.4g}."
    )
