"""The words of `Assessment` and `PerturbedAssessment`: what to decide by, then every measure of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cellrisk.counts.table import Attribute
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.assessment import Assessment, AttributeFigures, DecisionFigures, Risk, TableRisks
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.measures import FORMS
from cellrisk.show.wording import attackers
from cellrisk.show.wording.attackers import fill, name_table
from cellrisk.show.wording.ceiling import say_most, say_tables, say_worst_case
from cellrisk.system.formatting import aligned, claim, number_of, of_people, percent

if TYPE_CHECKING:
    from cellrisk.risk.perturbed import EqualRisk, PerturbedAssessment, PerturbedFigures

    Figures = DecisionFigures | PerturbedFigures

MOST_LINES = 16
"""Lines of a first screen on one sensitive attribute."""
NEXT = "Choose: cellrisk choose ... --max-caused 0.01   Who, and what helps: cellrisk explain ...   All measures: --all"
"""The next useful commands."""
NEXT_PEOPLE = "Choose: cellrisk choose ... --max-caused 0.01   All measures: --all"
NEXT_BOUND = "Choose: cellrisk choose ... --max-ceiling 0.75   All measures: --all"
"""If people may have several records; and if it is not known which, so that only the guarantee can be limited."""
NEXT_PERTURBED = "Who, and what helps: cellrisk explain ...   At equal risk, and all measures: --all"
SEVERAL = "Several categories together may be certain where none of them is alone."
NOT_TOLD = (
    "It has no epsilon, so there is no curve, no entry in a ledger and no bound by a guarantee. One publication is "
    "assessed. An attacker can average several publications unless each repeats the same perturbation, and can compare "
    "overlapping tables."
)


def headline(assessment: Assessment | PerturbedAssessment) -> str:
    """Return what a curator can repeat: people revealed because of their own record, and the worst case."""
    return "\n".join(_say_attribute(assessment, found) for found in assessment.figures)


def _say_attribute(assessment: TableRisks, found: Figures) -> str:
    """Return how many people are revealed because of their own record, and the worst case."""
    tables, setting = assessment.attackers[found.sensitive], name_method(found.method)
    if tables:
        own = attackers.strongest(tables[-1], found.sensitive, setting)
    elif found.attribute.several:
        own = f"{setting}, attacks are not assessed: {found.unknown}."
    else:
        caused = found.caused if isinstance(found.caused, float) else found.caused.people
        own = attackers.revealed_by_own_record(caused, found.records, found.sensitive, setting)
    if isinstance(found, DecisionFigures):
        return f"{own} {found.ceiling.headline}"
    return f"{own} {say_ceiling(*found.worst_case)}"


def screen(assessment: Assessment | PerturbedAssessment) -> list[str]:
    """Return what is printed first: the error of a count, the table of attackers, what the informed attacker learns."""
    parts, method = [], assessment.method
    noisy = isinstance(method, Mechanism)
    error = attackers.accuracy(method)
    setting = f"epsilon {claim(method.epsilon)}" if isinstance(method, Mechanism) else "published"
    figures: Sequence[Figures] = assessment.figures
    for found in figures:
        attribute = found.attribute
        parts.append(f"{name_table(assessment.table, attribute.name)}\n{error}")
        tables = assessment.attackers[attribute.name]
        if tables:
            parts += list_attacks(attribute, tables[-1], setting, found.advantage)
        else:
            more = "" if attribute.several else f"\nOther attacks are not assessed: {found.unknown}."
            parts.append(f"{fill(_say_attribute(assessment, found))}{more}")
    several = say_tables(assessment.mechanism, len(figures)) if isinstance(assessment, Assessment) else []
    known = all(assessment.attackers[found.attribute.name] for found in figures)
    following = NEXT if noisy else NEXT_PERTURBED
    if noisy and assessment.table.unit.contributions > 1:
        following = NEXT_PEOPLE if known else NEXT_BOUND
    screen = [*parts, *several, f"{following}\n{attackers.say_note(assessment.table)}"]
    if len(figures) == 1 and len("\n\n".join(screen).splitlines()) > MOST_LINES:
        screen[-2:] = ["\n".join(screen[-2:])]
    return screen


def list_attacks(attribute: Attribute, table: AttackTable, setting: str, advantage: float | None) -> list[str]:
    """Return the table of attacks on one attribute, and sentences on who gains, who is hidden and what is learnt."""
    shown = attackers.shown_attacks(table)
    sentences = [attackers.people_above(table)]
    if table.prior is not None:
        sentences.append(attackers.learnt(table, attribute.name, attribute.levels.labels))
        sentences += [attackers.learnt_union(table, union, attribute.levels.labels) for union in table.unions]
        sentences += [SEVERAL] if attribute.n_levels > 2 and not table.unions else []
    for name in shown:
        hidden = -table.figures(name).hidden
        attack = attackers.ATTACK_NAMES[name].format(sure=100 * table.certainty)
        people = attackers.own_people(hidden, table.n_people)
        subtracted = f"{attack}: those whom their own records hide, {people}, are subtracted."
        sentences += [subtracted] if hidden >= 0.5 else []
    return [attackers.attack_table(table, shown, advantage, setting), "\n".join(map(fill, sentences))]


def paragraphs(assessment: Assessment | PerturbedAssessment) -> list[str]:
    """Return everything else: what noise alone gives, certainties, equal risk, and every measure of the paper."""
    parts, figures = [_describe_method(assessment.method)], assessment.figures
    if not isinstance(assessment, Assessment):
        parts += [fill(say_ceiling(*each.worst_case)) for each in assessment.figures[:1]]
        parts += [fill(say_equal(each.equal)) for each in assessment.figures if each.equal is not None]
    parts += [_describe_certainty(each) for each in figures if not each.attribute.several]
    for found in figures:
        profiles = found.attribute.profiles
        title = (
            f"{found.sensitive}: {number_of(profiles.n_levels, 'category', 'categories')}; "
            f"{number_of(profiles.n_cells, 'group')}, {profiles.n_homogeneous:,} homogeneous, "
            f"{profiles.n_heterogeneous:,} heterogeneous, {profiles.n_unique:,} unique"
        )
        alone = f" {_say_noise_alone(found)}" if isinstance(found, DecisionFigures) else ""
        fitted = assessment.fitted[found.sensitive].describe()
        revealed = fill(f"{say_exposure(found)}{alone}")
        parts.append("\n".join([title, _risk_table(assessment, found.sensitive), *fitted, revealed]))
    return parts


def _describe_method(method: Mechanism | Perturbation) -> str:
    if not isinstance(method, Mechanism):
        return fill(f"{method.describe()}. {NOT_TOLD}")
    suppressed = "" if method.threshold == 0.5 else f", counts below {method.threshold:g} suppressed"
    delta = "" if method.pure else f", delta {claim(method.delta)}"
    noise = f"noise scale {method.scale:.4g}, neighbours {method.neighbours}"
    return f"{method.name}, epsilon {claim(method.epsilon)}{delta}, {noise}{suppressed}"


def _describe_certainty(figures: AttributeFigures) -> str:
    """Return a row for each certainty: who is inferred, and how often that is correct; then the prior."""
    if not figures.certainty or figures.belief is None:
        return f"What an attacker could be sure of is not computed: {figures.unknown}."
    rows = [
        [
            *(f"{100 * row.certainty:g}%", row.number, f"{round(row.named):,}"),
            "-" if row.precision is None or row.named_high < 0.5 else percent(row.precision),
        ]
        for row in figures.certainty
    ]
    heads = [f"'{figures.sensitive}' inferred, at least sure", "correctly", "in all", "share correct"]
    warnings = []
    for row in figures.certainty:
        sure = f"{100 * row.certainty:g}%"
        if row.error is not None:
            warnings.append(f"People inferred with {sure} certainty are simulated (standard error {row.error:.2g}).")
        if row.overconfident:
            warnings.append(f"At {sure}, the attacker is correct less often than the prior implies: overconfident.")
    return "\n".join([aligned(heads, rows), *warnings, f"The attacker's prior: {figures.belief.describe()}."])


def say_exposure(exposure: AttributeFigures) -> str:
    """Return how many people one attack reveals, for any reason, as published and without noise."""
    people = exposure.people
    spread = f"; {people.low:,} to {people.high:,} in 95% of releases"
    kind = "record" if exposure.attribute.several else "person"
    whose = of_people(people.mean, exposure.records, spread, kind)
    return (
        f"{name_method(exposure.method)}, the {exposure.attack} attack reveals the '{exposure.sensitive}' of {whose}. "
        f"Without noise it reveals {percent(exposure.raw_share)}."
    )


def _say_noise_alone(exposure: DecisionFigures) -> str:
    share = percent(exposure.limits.chance)
    if math.isinf(exposure.method.limit_noise.scale):
        return f"Noise alone reveals {share}."
    return f"As epsilon falls to 0, with delta as it is, {share} are still revealed."


def name_method(method: Mechanism | Perturbation) -> str:
    """Return how a table would be published, as the begin of a sentence: "At epsilon 1"."""
    return f"At {method.guarantee}" if isinstance(method, Mechanism) else f"With {method.name}"


def _risk_table(assessment: Assessment | PerturbedAssessment, sensitive: str) -> str:
    """A row for each measure and weighting: its forms, then what the last of them is by chance and without noise."""
    rows: dict[tuple[str, str], dict[str, tuple[Risk, list[str]]]] = {}
    ends: Sequence[list[str]] = [[]] * len(assessment.risks)
    if isinstance(assessment, Assessment):
        ends = [[f"{limits.chance:.4f}", f"{limits.raw:.4f}"] for limits in assessment.limits]
    for row, limits in zip(assessment.risks, ends, strict=True):
        if row.sensitive == sensitive:
            rows.setdefault((row.measure, row.weights or "-"), {})[row.form] = row, limits
    forms = [form for form in FORMS if any(form in cells for cells in rows.values())]
    body = [
        [measure, weights, *(f"{cells[form][0].risk:.4f}" for form in forms), *cells[forms[-1]][1]]
        for (measure, weights), cells in rows.items()
    ]
    last = forms[-1]
    noisy = [f"{last}: {assessment.mechanism.by_chance}", "without noise"] if isinstance(assessment, Assessment) else []
    return aligned(["measure", "weights", *forms, *noisy], body, left=2)


def say_ceiling(limit: float, counts: tuple[int, int]) -> str:
    """Return the worst case of a perturbation in a sentence, with the counts at which it is reached.

    >>> say_ceiling(7 / 9, (0, 2)).partition("is right ")[2]
    'at most 77.8% of the time (coin toss: 50%). At worst, 0 and 2 others have these values.'
    """
    known = " and ".join(f"{count:,}" for count in counts)
    return f"{say_worst_case(f'{say_most(limit)}% of the time')} At worst, {known} others have these values."


def compare(equal: EqualRisk) -> str:
    """Return at which epsilons the mechanism reveals no more people."""
    noise = f"{equal.mechanism.capitalize()} noise reveals"
    if not equal.ranges:
        return f"{noise} more people at every epsilon searched"
    ends = (f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in equal.ranges)
    return f"{noise} no more people at epsilon {', '.join(ends)}"


def say_equal(equal: EqualRisk) -> str:
    """Return what an office gains or loses by moving to differential privacy."""
    searched = f"{len(equal.scanned)} epsilons from {equal.scanned[0][0]:g} to {equal.scanned[-1][0]:g} were searched"
    compared = (
        f"The perturbation reveals {number_of(equal.figure, 'person')} because of their own record, by the "
        f"homogeneity attack. It moves counts by "
        f"{percent(equal.distance)} of the records. {compare(equal)}; {searched}."
    )
    if equal.epsilon is None or equal.mechanism_distance is None:
        return compared
    return f"{compared} At epsilon {equal.epsilon:g}, noise moves counts by {percent(equal.mechanism_distance)}."
