"""The words of `Assessment`: what to decide by, then every measure of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.assessment import Assessment, Risk
from cellrisk.risk.figures import DecisionFigures
from cellrisk.risk.measures import FORMS
from cellrisk.risk.sweep import Limits
from cellrisk.show.wording import attackers, figures
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of, of_people, percent

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

LONGEST_TITLE = 60
"""Characters of the names of quasi-identifiers in a title; longer lists are counted."""
NEXT = "Choose: cellrisk choose ... --max-caused 0.01   Who, and what helps: cellrisk explain ...   All measures: --all"
"""The next useful commands."""


def headline(assessment: Assessment) -> str:
    """Return what a curator can repeat: people revealed because of their own record, and the most for any attack."""
    setting = assessment.mechanism.guarantee
    lines = []
    for found in assessment.figures:
        tables = assessment.attackers[found.sensitive]
        if tables:
            sentence = attackers.strongest(tables[-1], found.sensitive, setting)
        elif found.attribute.several:
            sentence = f"At {setting}, attacks are not assessed: {found.unknown}."
        else:
            caused = found.caused
            sentence = attackers.revealed_by_own_record(caused.people, caused.records, found.sensitive, setting)
        lines.append(f"{sentence} {found.ceiling.of_two}")
    return "\n".join(lines)


def screen(assessment: Assessment) -> list[str]:
    """Return what is printed first: the error of a count, the table of attackers, what the informed attacker learns."""
    parts = []
    for attribute, found in zip(assessment.table.attributes, assessment.figures, strict=True):
        parts += screen_of(assessment, attribute, found)
    return [*parts, *of_several(assessment), f"{NEXT}\n{CURATOR_NOTE} {assessment.table.describe_unit()}"]


def screen_of(assessment: Assessment, attribute: Attribute, found: DecisionFigures) -> list[str]:
    """Return the first screen of one sensitive attribute."""
    mechanism, tables = assessment.mechanism, assessment.attackers[attribute.name]
    title = f"{name_table(assessment.table, attribute.name)}\n{attackers.accuracy(mechanism)}"
    if not tables:
        if attribute.several:
            return [title, f"{found.ceiling.of_two}\nAttacks are not assessed: {found.unknown}."]
        caused = found.caused
        own = attackers.revealed_by_own_record(caused.people, caused.records, attribute.name, mechanism.guarantee)
        return [title, f"{own}\n{found.ceiling.of_two}\nOther attacks are not assessed: {found.unknown}."]
    table = tables[-1]
    advantage = None if assessment.chosen else found.ceiling.advantage
    setting = f"epsilon {claim(mechanism.epsilon)}"
    sentences = [attackers.people_above(table)]
    if table.prior is not None:
        sentences.append(attackers.learnt(table, attribute.name, attribute.levels.labels))
        sentences += [attackers.learnt_union(table, union, attribute.levels.labels) for union in table.unions]
        if attribute.n_levels > 2 and not table.unions:
            sentences.append("Several categories together may be certain where none of them is alone.")
    shown = attackers.shown_attacks(table)
    sentences += attackers.hidden_by_own_records(table, shown)
    return [title, attackers.attack_table(table, shown, advantage, setting), "\n".join(sentences)]


def name_table(table: FrequencyTable, sensitive: str) -> str:
    """Return a table in a line: its columns, people and groups."""
    names = ", ".join(table.quasi_identifiers)
    if len(names) > LONGEST_TITLE:
        names = number_of(len(table.quasi_identifiers), "quasi-identifier")
    kinds, records = table.attribute(sensitive).people, number_of(table.n_records, "record")
    people = f"{number_of(kinds.n_people, 'person')} with {records}" if kinds else records
    people = people if table.unit.contributions > 1 else number_of(table.n_records, "person")
    size = f"{people} in {number_of(table.n_cells, 'group')}"
    return f"'{sensitive}' by {names}: {size}"


def paragraphs(assessment: Assessment) -> list[str]:
    """Return everything else: certainties, bounds, and every measure of the paper."""
    mechanism = assessment.mechanism
    parts = [_describe_mechanism(mechanism)]
    for found in () if assessment.table.unit.contributions > 1 else assessment.figures:
        title = "" if len(assessment.figures) == 1 else f"{found.sensitive}: "
        parts.append(f"{title}{figures.describe_certainty(found)}\n{figures.describe_bounds(found)}")
    parts.append("\n".join(say_exposure(exposure, mechanism) for exposure in assessment.figures))
    for exposure in assessment.figures:
        profiles = assessment.table.profiles(exposure.sensitive)
        title = (
            f"{exposure.sensitive}: {number_of(profiles.n_levels, 'category', 'categories')}; "
            f"{number_of(assessment.table.n_cells, 'group')}, {profiles.n_homogeneous:,} homogeneous, "
            f"{profiles.n_heterogeneous:,} heterogeneous, {profiles.n_unique:,} unique"
        )
        table = _risk_table(assessment.risks, assessment.limits, exposure.sensitive, mechanism.by_chance)
        fitted = assessment.fitted[exposure.sensitive].describe()
        parts.append("\n".join([title, table, *fitted, _describe_confidence(exposure, mechanism)]))
    return parts


def of_several(assessment: Assessment) -> list[str]:
    """Return what the tables of several sensitive attributes cost together; nothing for one."""
    return figures.say_tables(assessment.mechanism, len(assessment.figures))


def say_exposure(exposure: DecisionFigures, mechanism: Mechanism) -> str:
    """Return how many people one attack reveals, for any reason, with noise and without."""
    spread = f"; {exposure.people.low:,} to {exposure.people.high:,} in 95% of releases"
    people = of_people(exposure.people.mean, exposure.records, spread)
    if exposure.attribute.several:
        people = f"{exposure.people.mean:,.0f} of {number_of(exposure.records, 'record')}{spread}"
    return (
        f"At {mechanism.guarantee}, the {exposure.attack} attack reveals the '{exposure.sensitive}' of {people}. "
        f"Without noise it reveals {percent(exposure.raw_share)}."
    )


def _describe_confidence(exposure: DecisionFigures, mechanism: Mechanism) -> str:
    found = exposure.confidence
    if not math.isfinite(found.people_precision):
        return "No released group would look homogeneous."
    who = "records" if exposure.attribute.several else "people"
    precision, blind = percent(found.people_precision), percent(1.0 / exposure.attribute.n_levels)
    with_empty = ""
    if found.looks_with_empty > found.looks:
        with_empty = (
            f" Of all released groups that look homogeneous, empty ones also, {percent(found.precision_with_empty)} "
            f"show a value that is there; without the empty ones {percent(found.precision)}."
        )
    share = percent(exposure.limits.chance)
    alone = (
        f"Noise alone reveals {share}."
        if math.isinf(mechanism.limit_noise.scale)
        else f"As epsilon falls to 0, with delta as it is, {share} are still revealed."
    )
    return (
        f"Of the {who} in released groups that look homogeneous, {precision} have the value shown; of a value drawn "
        f"at random it would be {blind}. {alone}{with_empty}"
    )


def _describe_mechanism(mechanism: Mechanism) -> str:
    suppressed = "" if mechanism.threshold == 0.5 else f", counts below {mechanism.threshold:g} suppressed"
    delta = "" if mechanism.pure else f", delta {claim(mechanism.delta)}"
    return (
        f"{mechanism.name}, epsilon {claim(mechanism.epsilon)}{delta}, noise scale {mechanism.scale:.4g}, "
        f"neighbours {mechanism.neighbours}{suppressed}"
    )


def _risk_table(risks: Sequence[Risk], limits: Sequence[Limits], sensitive: str, by_chance: str) -> str:
    """A row for each measure and weighting: its forms, then what the last of them is by chance and without noise."""
    rows: dict[tuple[str, str], dict[str, tuple[Risk, Limits]]] = {}
    for row, ends in zip(risks, limits, strict=True):
        if row.sensitive == sensitive:
            rows.setdefault((row.measure, row.weights or "-"), {})[row.form] = row, ends
    forms = [form for form in FORMS if any(form in cells for cells in rows.values())]
    body = [
        [measure, weights, *(f"{cells[form][0].risk:.4f}" for form in forms)]
        + [f"{number:.4f}" for number in (cells[forms[-1]][1].chance, cells[forms[-1]][1].raw)]
        for (measure, weights), cells in rows.items()
    ]
    header = ["measure", "weights", *forms, f"{forms[-1]}: {by_chance}", "without noise"]
    return aligned(header, body, left=2)
