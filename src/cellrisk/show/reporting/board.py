"""The data of the documents on one table with noise: for a review board, and for the public.

The public sees no figure that was computed from the raw data, but for an epsilon that was chosen from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cellrisk.decide.choosing import Alternative
from cellrisk.decide.limits import RiskDefinition
from cellrisk.decide.usefulness import utility
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.assessment import Assessment, assess
from cellrisk.risk.curves import RiskCurve, curve
from cellrisk.risk.figures import DecisionFigures
from cellrisk.risk.measures import FORMS
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON
from cellrisk.show.reporting.decision import Decision, collect_decision, find_guarantee
from cellrisk.show.reporting.metadata import (
    describe_table,
    describe_table_for_public,
    draw_table_sizes,
    explain_cells,
    make_picture,
    pick,
)
from cellrisk.show.reporting.noise import describe_guarantee, describe_use
from cellrisk.show.wording.assessment import of_several, say_exposure
from cellrisk.show.wording.attackers import (
    accuracy,
    attack_rows,
    learnt,
    people_above,
    say_icons,
    shown_attacks,
)
from cellrisk.show.wording.choice import CHOICE_NOTE, WITHOUT_DATA, say_least, say_tvd_limit
from cellrisk.show.wording.curve import say_line
from cellrisk.show.wording.explanation import KEYS_NOTE
from cellrisk.show.wording.limits import CHECKED
from cellrisk.system.formatting import claim, make_sentence, percent, whole_people
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.publish.dp_risk import PublishedRisk

CHOSEN = (
    "Epsilon was chosen from the data, so the choice itself discloses something about them; the guarantee does "
    "not cover it. A choice that is covered is made by: cellrisk choose-private."
)
FRONT_POINTS, CURVE_POINTS = 36, 201
"""Epsilons of the picture on the first page, and of the curve."""


def collect_board(
    decision: Decision, metadata: Mapping[str, Any], top: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Everything that the board sees, at the epsilon that is shown."""
    from cellrisk.show.pictures import draw_asked

    request, table, risk = decision.request, decision.request.table, decision.request.risk
    mechanism = decision.setting.with_epsilon(decision.shown_epsilon)
    words: dict[str, Any] = {"measures": risk.measure, "weights": risk.weights, "priors": risk.priors}
    assessment = assess(table, mechanism, forms=risk.form, **words)
    if decision.chosen_from_data:
        assessment = replace(assessment, chosen=True)
    forms = [form for form in FORMS if form in (risk.form, "exact", "tight")]
    risks = curve(
        table, mechanism, epsilon=_list_epsilons(decision, CURVE_POINTS), forms=forms, progress=progress, **words
    )
    figures = curve(
        table,
        mechanism,
        measures=("caused", "certainty"),
        certainty=request.attacker.certainties,
        belief=request.attacker.belief,
        epsilon=_list_epsilons(decision, FRONT_POINTS),
    )
    first = [line for line in figures.lines if line.sensitive == table.sensitive[0]]
    return {
        **collect_decision(decision, metadata, "Disclosure review of"),
        "table": describe_table(table),
        "shown_epsilon": decision.shown_epsilon,
        "why": None if decision.choice is None else make_sentence(decision.choice.why),
        "headline": assessment.headline.split("\n"),
        "accuracy": accuracy(mechanism),
        "attackers": [_describe_attackers(assessment, figures) for figures in assessment.figures],
        "several": of_several(assessment),
        "by_chance": mechanism.by_chance,
        "priors": _list_priors(decision),
        "exposures": _describe_exposures(assessment),
        "asked_risk": _describe_asked(decision, risks),
        **_describe_candidates(decision),
        **_describe_curve(decision, risks),
        "tvd": _describe_tvd(decision),
        "usefulness": _describe_usefulness(decision, mechanism),
        "explanations": explain_cells(table, risk, top, mechanism=mechanism),
        "pictures": {
            "front": make_picture(
                draw_asked(first, decision.shown_epsilon), " ".join(say_line(line, table.n_records) for line in first)
            ),
            "icons": _draw_icons(assessment, table.sensitive[0]),
            "curve": _draw_curve(decision, risks),
            "sizes": draw_table_sizes(table),
        },
        "keys_note": KEYS_NOTE,
        "choice_note": CHOICE_NOTE,
    }


def _list_epsilons(decision: Decision, number: int) -> list[float]:
    """Epsilons of a picture; the one that is asked for is among them."""
    high = min(LARGEST_EPSILON, decision.setting.largest_epsilon)
    steps = [LEAST_EPSILON * (high / LEAST_EPSILON) ** (step / (number - 1)) for step in range(number - 1)]
    return sorted({*steps, high, decision.shown_epsilon})


def _describe_attackers(assessment: Assessment, figures: DecisionFigures) -> dict[str, Any]:
    """What four attackers learn of one sensitive attribute, a row each, and the bound for any attack."""
    tables = assessment.attackers[figures.sensitive]
    described: dict[str, Any] = {"sensitive": figures.sensitive, "rows": [], "texts": []}
    if not tables:
        return described | {"texts": [f"Attacks are not assessed: {figures.unknown}."]}
    labels = assessment.table.attribute(figures.sensitive).levels.labels
    advantage = None if figures.ceiling.chosen else figures.ceiling.advantage
    described["rows"] = attack_rows(tables[-1], shown_attacks(tables[-1]), advantage)
    known = [learnt(tables[-1], figures.sensitive, labels)] if tables[-1].prior is not None else []
    return described | {"texts": [people_above(tables[-1]), *known]}


def _draw_icons(assessment: Assessment, sensitive: str) -> dict[str, str] | None:
    """Return the picture of 100 people with and without their own record; None if attacks are not assessed."""
    from cellrisk.show.pictures import draw_icons

    tables, setting = assessment.attackers[sensitive], f"epsilon {claim(assessment.mechanism.epsilon)}"
    if not tables:
        return None
    return make_picture(draw_icons(tables[-1], sensitive, setting), say_icons(tables[-1], sensitive, setting))


def _describe_exposures(assessment: Assessment) -> list[dict[str, Any]]:
    """The people revealed before and after noise, with blind noise, and by guessing."""
    return [
        {
            **pick(each, "sensitive raw_share share people records guess_share"),
            "sentence": say_exposure(each, assessment.mechanism),
            "chance": each.limits.chance,
            "precision": precision if math.isfinite(precision := each.confidence.people_precision) else None,
        }
        for each in assessment.figures
    ]


def _describe_asked(decision: Decision, risks: RiskCurve) -> list[dict[str, Any]]:
    """The risk that the limits are on, if it is another than the share of people revealed."""
    risk, shown = decision.request.risk, decision.shown_epsilon
    lines = [] if risk.words == RiskDefinition().words else [line for line in risks.lines if line.form == risk.form]
    return [{"sensitive": line.sensitive, "limits": line.limits, "risk": line.at(shown)} for line in lines]


def _list_priors(decision: Decision) -> list[str]:
    """The laws behind a measure that needs some, one line for each attribute."""
    risk = decision.request.risk
    fitted = {each.name: risk.priors.fit(each, [risk.measure]) for each in decision.request.table.attributes}
    return [f"{name}: {line}" for name, law in fitted.items() for line in law.describe()]


def _describe_candidates(decision: Decision) -> dict[str, Any]:
    """What each epsilon that was considered would mean; if none keeps the limits, what comes nearest.

    Candidates are compared by the people revealed, unless only other figures are limited.
    """
    limits, names = decision.request.limits, decision.request.table.sensitive
    by_risk = any(limit.risk is not None for limit in limits)
    shows_risk = by_risk or all(limit.name == "max_epsilon" for limit in limits)
    people = [f"People revealed{f', {name}' if len(names) > 1 else ''} (95% interval)" for name in names]

    def exposed(at: Alternative) -> list[str]:
        numbers = [f"{whole_people(each.mean)} ({each.low:,} to {each.high:,})" for each in at.people]
        return [percent(at.risk), *numbers] if shows_risk else []

    candidates = [
        {
            **pick(at, "role epsilon tvd"),
            "scale": decision.setting.with_epsilon(at.epsilon).scale,
            "exposed": exposed(at),
            "meaning": make_sentence("; ".join([*_list_limited(decision, at), _compare(decision, at)])),
            "marked": decision.epsilon is not None and at is decision.candidates[decision.shown],
        }
        for at in decision.candidates
    ]
    return {"candidates": candidates, "exposed_columns": ["Risk", *people] if shows_risk else []}


def _list_limited(decision: Decision, at: Alternative) -> list[str]:
    """The figures that are limited, as they are at an epsilon, each once."""
    attributes, mechanism = decision.measured.attributes, decision.setting.with_epsilon(at.epsilon)
    limits = [limit for limit in decision.request.limits if limit.risk is None and limit.name != "max_epsilon"]
    return list(dict.fromkeys(limit.say(limit.value(attributes, mechanism)) for limit in limits))


def _compare(decision: Decision, at: Alternative) -> str:
    """Which limits an epsilon breaks; of another than the one to be approved, what it would change."""
    base = decision.candidates[decision.shown]
    if decision.epsilon is None or at is base:
        return at.verdict
    if at.epsilon == base.epsilon:
        return "the guarantee of this mechanism ends here"
    less = at.epsilon > base.epsilon
    if decision.kind != "recommended":
        changes = "less noise" if less else "more noise"
        return changes if decision.kind == "open" else f"{changes}; {at.verdict}"
    if at.broken:
        return f"rejected because it {at.verdict}"
    beyond = "some smaller epsilons break a limit" if less else "the limits are kept with less noise"
    return f"not chosen because {beyond}"


def _describe_curve(decision: Decision, risks: RiskCurve) -> dict[str, Any]:
    """The risk at the epsilon that is shown, and ten times below and above it."""
    shown = decision.shown_epsilon
    along = [
        {
            **pick(line, "sensitive name limits"),
            "noise": line.setting.describe(),
            "lower_end": line.setting.lower_end,
            "risks": [
                {"epsilon": epsilon, "risk": line.at(epsilon)}
                for epsilon in sorted({line.nearest(epsilon) for epsilon in (shown / 10, shown, 10 * shown)})
            ],
        }
        for line in risks.leading
    ]
    return {"along": along}


def _draw_curve(decision: Decision, risks: RiskCurve) -> dict[str, Any]:
    """The curve, and the sentences on it that the picture does not hold."""
    from cellrisk.show.pictures import draw_curve, mark_asked

    figure = draw_curve(risks, decision.shown_epsilon)
    mark_asked(figure, decision.shown_epsilon)
    drawn = " ".join(" ".join(text.get_text() for text in figure.texts).split())
    words = [line for line in risks.words.split("\n") if line not in drawn]
    return {**make_picture(figure, f"Risk along epsilon. {risks.words}"), "words": words}


def _describe_tvd(decision: Decision) -> dict[str, Any] | None:
    """How useful a release is, if usefulness has a limit."""
    trade_off = decision.trade_off
    if trade_off is None:
        return None
    at, limit = decision.candidates[decision.shown], trade_off.limit
    headline = (
        f"At epsilon {claim(at.epsilon)}, a {limit.way}-way marginal of a release differs from the true one by a "
        f"total variation distance (TVD) of {at.tvd:.3g} on average. Required is {say_tvd_limit(limit)}, which takes "
        f"epsilon {say_least(trade_off)}."
    )
    return {**pick(limit, "releases cells seed"), "headline": headline}


def _describe_usefulness(decision: Decision, mechanism: Mechanism) -> dict[str, Any]:
    """How far the marginals of simulated releases are from the true ones, or why that was not computed."""
    request = decision.request
    if request.table.read_cells is None:
        headline = "The table has no source to read its cells from, so that no release can be simulated."
        return {"headline": headline, "marginals": []}
    simulated: dict[str, Any] = {"releases": request.releases, "seed": request.seed, "cells": request.cells}
    try:
        found = utility(request.table, mechanism, sensitive=request.table.sensitive[0], **simulated)
    except InvalidInput as refusal:
        return {"headline": f"Releases could not be simulated: {refusal}.", "marginals": []}
    marginals = [
        {"columns": way, "number": sum(len(names) == way for names in found.marginals), "tvd": found.mean_tvd(way)[0]}
        for way in found.ways
    ]
    return {**pick(found, "headline releases seed"), "marginals": marginals}


def collect_public(
    decision: Decision, metadata: Mapping[str, Any], published: PublishedRisk | None = None
) -> dict[str, Any]:
    """Everything that the public may see; ``published`` is a figure with noise of its own."""
    request = decision.request
    mechanism = None if decision.epsilon is None else decision.setting.with_epsilon(decision.epsilon)
    notes = [CHOSEN] if decision.chosen_from_data else [CHECKED] if decision.limits_use_data else []
    return {
        **collect_decision(decision, metadata, "Privacy statement for"),
        "epsilon_given": request.epsilon is not None,
        "table": describe_table_for_public(request.table),
        "priors": [],
        "guarantee": None if mechanism is None else _describe_guarantee(decision, mechanism),
        "use": None if mechanism is None else describe_use(mechanism),
        "published": published and pick(published, "headline statements"),
        "notes": [*notes, *request.disclosures],
        "without_data": WITHOUT_DATA,
        "not_protected": decision.unprotected,
    }


def _describe_guarantee(decision: Decision, mechanism: Mechanism) -> dict[str, Any]:
    """The guarantee of the table, or of the tables of several sensitive attributes together."""
    tables = len(decision.request.table.sensitive)
    qualified: dict[str, Any] = {
        "covered": decision.unprotected == "none",
        "chosen": decision.chosen_from_data,
    }
    guarantee, highest = find_guarantee(decision, mechanism)
    return describe_guarantee(guarantee, tables, mechanism.neighbours, highest, **qualified)
