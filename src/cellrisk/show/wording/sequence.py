"""The words of `RiskSequence`: the risk along several releases about the same people."""

from __future__ import annotations

import math

from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.sequences import Released, RiskSequence
from cellrisk.show.wording.ceiling import WORST_CASE, say_most
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of, of_people, percent, whole_people


def say_loss(found: Composition) -> str:
    """A cumulative loss in words."""
    delta = f", delta {claim(found.delta)}" if found.delta else ""
    return f"epsilon {claim(found.epsilon)}{delta}"


def headline(found: RiskSequence) -> str:
    """What a curator can repeat."""
    last, names = found.rows[-1], found.attributes
    start = f"After {number_of(len(found.rows), 'release')} the cumulative loss is {say_loss(last.cumulative)}"
    if not names:
        return f"{start}; no sensitive attribute was released, so none is at risk."
    risk = last.overall
    by = f"{percent(risk.max_records)} by records, {percent(risk.max_uniform)} with each cell alike"
    if len(names) == 1:
        return f"{start}; {_say_figures(found)} The risk of {names[0]} is {by}."
    return (
        f"{start}; {_say_figures(found)} The overall risk, of each cell's riskiest of {len(names)} attributes, is {by}"
        f"; added up over the attributes, which is not a probability, it is {risk.sum_records:.4g} and "
        f"{risk.sum_uniform:.4g}."
    )


def _say_figures(found: RiskSequence) -> str:
    """The figures to decide by, in sentences."""
    last, names, people = found.rows[-1], found.attributes, found.n_records
    what = f"'{names[0]}'" if len(names) == 1 else f"one of {len(names)} attributes"
    said = (
        f"{of_people(last.overall_caused.max_records * people, people)} are revealed ({what}) because of their own "
        "record."
    )
    return said if last.ceiling is None else f"{said} {last.ceiling.of_two}"


def statements(found: RiskSequence) -> list[str]:
    """What is exact, what is a bound, and what is neither."""
    last = found.rows[-1]
    rule = (
        "Risk and caused are exact: there is one release."
        if len(found.rows) == 1
        else "Risk and caused follow a rule: each attribute as if it were released once at the cumulative loss, and "
        "what was revealed stays revealed. Of several releases that is neither exact nor a bound."
    )
    said = [rule] if found.attributes else []
    if last.caused is not None:
        said.append(
            "Whatever the attack, the people revealed who would not be without their own record are at most "
            f"{math.ceil(last.caused.cap):,} after all releases: a bound."
        )
    if last.ceiling is None:
        return [*said, f"The ceiling is not known: {last.why_no_ceiling}."]
    reached = ", and some attacker reaches it" if last.ceiling.exact else ": an upper bound"
    return [*said, f"The ceiling is that of all losses composed{reached}."]


def paragraphs(found: RiskSequence) -> list[str]:
    """What is printed below the headline."""
    body = [
        [
            *(f"{row.number}", row.name, row.loss.describe(), claim(row.cumulative.epsilon)),
            *(claim(row.cumulative.delta), row.cumulative.chosen.method, f"{row.cells:,}"),
            "-" if row.records is None else f"{row.records:.4f}",
            *(f"{value:.4f}" for value in vars(row.overall).values()),
        ]
        for row in found.rows
    ]
    header = ["", "release", "loss", "epsilon", "delta", "composed", "cells", "risk"]
    header += ["max, uniform", "max, records", "sum, uniform", "sum, records"]
    about = (
        f"{found.measure.replace('_', ' ')} risk, {found.form}, of {number_of(found.n_records, 'record')}, each "
        "attribute at the cumulative loss; risk: of the attribute released, by records; max and sum: overall"
    )
    return [
        _show_figures(found),
        f"{about}\n{aligned(header, body, left=3)}",
        "\n".join(found.statements),
        CURATOR_NOTE,
    ]


def _show_figures(found: RiskSequence) -> str:
    header = ["", "release", "caused", "95% of releases", "any attack", "caused so far", "worst case, %"]
    about = (
        f"people of {found.n_records:,} revealed only because of their own record (caused), the most that any attack "
        f"on all releases so far causes, and the worst case: how often {WORST_CASE}, is right at most"
    )
    return f"{about}\n{aligned(header, [_list_figures(row, found.n_records) for row in found.rows], left=2)}"


def _list_figures(row: Released, people: int) -> list[str]:
    caused = row.caused
    return [
        *(f"{row.number}", row.name),
        "-" if caused is None else whole_people(caused.people),
        "-" if caused is None or caused.low is None else f"{caused.low:,} to {caused.high:,}",
        "-" if caused is None else f"{math.ceil(caused.cap):,}",
        whole_people(row.overall_caused.max_records * people),
        "-" if row.ceiling is None else say_most(row.ceiling.even_two),
    ]
