"""The words of `Assessment`: what to decide by, then every measure of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.assessment import Assessment, PlannedCaused, Risk
from cellrisk.risk.figures import DecisionFigures
from cellrisk.risk.measures import FORMS
from cellrisk.risk.sweep import Limits
from cellrisk.show.wording import attackers, figures
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of, of_people, percent

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

PLANNED = {
    "shrinkage": "cells of these sizes, whose values are drawn anew from the prior",
    "marginal_shrinkage": "cells whose sizes and values are drawn anew from both laws",
}
"""What each measure for planned tables takes as given."""
LONGEST_TITLE = 60
"""Characters of the names of quasi-identifiers in a title; longer lists are counted."""
NEXT = "Choose: cellrisk choose ... --max-caused 0.01   Who, and what helps: cellrisk explain ...   All measures: --all"
"""The next useful commands."""


def headline(assessment: Assessment) -> str:
    """What a curator can repeat: people revealed because of their own record, and the most for any attack."""
    setting = assessment.mechanism.guarantee
    lines = []
    for found in assessment.figures:
        tables = assessment.attackers[found.sensitive]
        if tables:
            sentence = attackers.strongest(tables[-1], found.sensitive, setting)
        else:
            caused = found.caused
            sentence = attackers.revealed_by_own_record(caused.people, caused.records, found.sensitive, setting)
        lines.append(f"{sentence} {found.ceiling.of_two}")
    return "\n".join(lines)


def screen(assessment: Assessment) -> list[str]:
    """What is printed first: the error of a count, the table of attackers, what the informed attacker learns."""
    mechanism = assessment.mechanism
    parts = []
    for attribute, found in zip(assessment.table.attributes, assessment.figures, strict=True):
        tables = assessment.attackers[found.sensitive]
        parts.append(f"{_title(assessment, attribute)}\n{attackers.accuracy(mechanism)}")
        if not tables:
            parts.append(f"{headline(assessment)}\nOther attacks are not assessed: {found.unknown}.")
            continue
        table = tables[-1]
        advantage = None if assessment.chosen else found.ceiling.advantage
        parts.append(attackers.attack_table(table, attackers.shown_attacks(table), advantage, _setting(mechanism)))
        sentences = [attackers.people_above(table)]
        if table.prior is not None:
            sentences.append(attackers.learnt(table, found.sensitive, attribute.levels.labels))
            if attribute.n_levels > 2:
                sentences.append("Several categories together may be certain where none of them is alone.")
        parts.append("\n".join(sentences))
    return [*parts, *of_several(assessment), f"{NEXT}\n{CURATOR_NOTE} One record per person is assumed."]


def _title(assessment: Assessment, attribute: Attribute) -> str:
    table = assessment.table
    size = f"{number_of(table.n_records, 'person')} in {number_of(table.n_cells, 'group')}"
    names = ", ".join(table.quasi_identifiers)
    if len(names) > LONGEST_TITLE:
        names = number_of(len(table.quasi_identifiers), "quasi-identifier")
    return f"{attribute.name} by {names}: {size}"


def _setting(mechanism: Mechanism) -> str:
    return f"epsilon {claim(mechanism.epsilon)}"


def paragraphs(assessment: Assessment) -> list[str]:
    """Everything else: certainties, bounds, and every measure of the paper."""
    mechanism = assessment.mechanism
    parts = [_describe_mechanism(mechanism)]
    for found in assessment.figures:
        title = "" if len(assessment.figures) == 1 else f"{found.sensitive}: "
        parts.append(f"{title}{figures.describe_certainty(found)}\n{figures.describe_bounds(found)}")
    parts += [say_planned(planned) for planned in assessment.planned]
    parts.append("\n".join(say_exposure(exposure, mechanism) for exposure in assessment.figures))
    for exposure in assessment.figures:
        profiles = assessment.table.profiles(exposure.sensitive)
        title = (
            f"{exposure.sensitive}: {number_of(profiles.n_levels, 'level')}; "
            f"{number_of(assessment.table.n_cells, 'cell')}, {profiles.n_homogeneous:,} homogeneous, "
            f"{profiles.n_heterogeneous:,} heterogeneous, {profiles.n_unique:,} unique"
        )
        table = _risk_table(assessment.risks, assessment.limits, exposure.sensitive, mechanism.by_chance)
        fitted = assessment.fitted[exposure.sensitive].describe()
        parts.append("\n".join([title, table, *fitted, _describe_confidence(exposure, mechanism)]))
    return [*parts, *of_several(assessment), CURATOR_NOTE]


def of_several(assessment: Assessment) -> list[str]:
    """What the tables of several sensitive attributes cost together; empty for one."""
    return figures.say_tables(assessment.mechanism, len(assessment.figures))


def say_exposure(exposure: DecisionFigures, mechanism: Mechanism) -> str:
    """How many people are revealed, beside no noise and a guess, in one sentence."""
    attacked = figures.ATTACKED[exposure.attack].format(sensitive=exposure.sensitive)
    return (
        f"At {mechanism.guarantee}, {of_people(exposure.people.mean, exposure.records, f'; {exposure.people.spread}')} "
        f"would {attacked}; the raw table exposes {percent(exposure.raw_share)}, guessing from the overall proportions "
        f"gets {percent(exposure.guess_share)}."
    )


def say_planned(planned: PlannedCaused) -> str:
    share = percent(planned.share)
    return (
        f"In a table that is yet to be made, with {PLANNED[planned.measure]} ({planned.measure}), "
        f"{'about ' if share[0].isdigit() else ''}{share} of the people would have their {planned.sensitive} given "
        "away only because of their own record."
    )


def _describe_confidence(exposure: DecisionFigures, mechanism: Mechanism) -> str:
    found = exposure.confidence
    if not math.isfinite(found.people_precision):
        return "No released cell would look homogeneous."
    precision, chance = percent(found.people_precision), percent(1.0 / exposure.attribute.n_levels)
    with_empty = ""
    if found.looks_with_empty > found.looks:
        with_empty = (
            f" Of all released cells that look homogeneous, empty ones too, {percent(found.precision_with_empty)} show "
            f"a value that is there; without the empty ones {percent(found.precision)}."
        )
    share = percent(exposure.limits.chance)
    alone = (
        f"Noise alone gives away {share}."
        if math.isinf(mechanism.limit_noise.scale)
        else f"As epsilon falls to 0, with delta as it is, {share} would still be given away."
    )
    return (
        f"Of the people in released cells that look homogeneous, {precision} have the value shown; by chance it would "
        f"be {chance}. {alone}{with_empty}"
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
