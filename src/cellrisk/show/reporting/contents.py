"""What a report shows the board: what `assess`, `curve`, `choose`, `weigh` and `explain` computed, in sections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cellrisk.decide.choosing import CHOICE_NOTE
from cellrisk.decide.limits import RiskDefinition
from cellrisk.decide.usefulness import Utility, utility
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.assessment import Assessment, Exposure, assess
from cellrisk.risk.curves import Line, RiskCurve, curve
from cellrisk.risk.explanation import Explanation, explain
from cellrisk.risk.explanation.explaining import KEYS_NOTE
from cellrisk.risk.measures import FORMS
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON
from cellrisk.show.reporting.basis import basis_section, mechanism_section
from cellrisk.show.reporting.blocks import Block, Bullets, Page, Picture, Section, TableBlock, Words, make_table
from cellrisk.show.reporting.checklist import checklist_section
from cellrisk.show.reporting.decision import Decision
from cellrisk.show.reporting.particulars import limit_facts, provenance_section, threat_facts
from cellrisk.show.reporting.phrases import join_names
from cellrisk.show.reporting.records import list_fields
from cellrisk.show.reporting.registry import registry_section
from cellrisk.show.reporting.verdict import alternatives_section, board_verdict, describe_decision
from cellrisk.system.progress import Progress
from cellrisk.system.text import CURATOR_NOTE, claim, make_sentence, number_of, of_people, percent

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.risk.figures import DecisionFigures

SIGN_OFF = ("Prepared by", "Reviewed by", "Decision", "Conditions", "Date", "Signature")
FOR_THE_BOARD = (
    "For the curator and the review board only: figures and values in this document come from the raw data. "
    "Do not publish it."
)
PUBLIC_NOTE = "Publish the version for the public in place of this one: --public, or public=True."
FRONT_POINTS, CURVE_POINTS = 36, 201
"""Epsilons of the picture on the first page, and of the curve."""
HOW_TO_READ = (
    "Before: what the raw table gives away. After: the average over releases; 95% of releases expose a number of "
    "people within the interval. By chance: what is still read off correctly where noise has drowned the counts. By "
    "guessing: a value drawn for everybody from the overall proportions, without any table; only a yardstick, as "
    "the guesser does not know for whom it is right. Right when it names a value: the attacker's confidence, the share "
    "of people in cells that show one value alone who have it."
)
CAUSED, AT_ALL = "Given away because of their own record", "Given away at all"
CEILING = "One record adds to any attack, at most"
FROM_OTHERS = (
    "The last column bounds what a person's own record adds, not how often an attacker is right: an attacker also "
    "infers values from other people's records, and that remains if the person's record is left out."
)
AT_RISK = "Who is at risk, and what would help"
LEVELS_SHOWN = 10
MOST_COLUMNS = 7


@dataclass(frozen=True, eq=False)
class Findings:
    """What was computed for the decision, all at the epsilon that is shown."""

    decision: Decision
    assessment: Assessment
    curve: RiskCurve
    """The risk that was asked for, and its exact and tight forms, along epsilon."""
    explanations: tuple[Explanation, ...]
    """Empty where the table has no source to read its cells from."""
    figures: RiskCurve
    """Exposed, caused and sure along epsilon."""
    usefulness: Utility | str
    """How far marginals are from the true ones, or why that was not computed."""


def find(decision: Decision, top: int, progress: Progress | None = None) -> Findings:
    """Computes what the sections show."""
    table, risk = decision.request.table, decision.request.risk
    mechanism, priors = decision.setting.with_epsilon(decision.shown_epsilon), risk.priors
    assessment = assess(table, mechanism, measures=risk.measure, forms=risk.form, weights=risk.weights, priors=priors)
    if decision.chosen_from_data:
        assessment = replace(assessment, chosen=True)
    forms = [form for form in FORMS if form in (risk.form, "exact", "tight")]
    found = curve(
        table,
        mechanism,
        epsilon=_points(decision, CURVE_POINTS),
        measures=risk.measure,
        forms=forms,
        weights=risk.weights,
        progress=progress,
        priors=priors,
    )
    explanations = tuple(
        explain(table, mechanism, sensitive=name, form=risk.form, weights=risk.weights, top=top)
        for name in table.sensitive
        if table.read_cells is not None
    )
    attacker = decision.request.attacker
    figures = curve(
        table,
        mechanism,
        measures=("caused", "certainty"),
        certainty=attacker.certainties,
        belief=attacker.belief,
        epsilon=_points(decision, FRONT_POINTS),
    )
    return Findings(decision, assessment, found, explanations, figures, _find_usefulness(decision, mechanism))


def _points(decision: Decision, number: int) -> list[float]:
    """Epsilons of a picture; the one that is asked for is among them."""
    setting, asked = decision.setting, decision.shown_epsilon
    high = min(LARGEST_EPSILON, setting.largest_epsilon)
    steps = [LEAST_EPSILON * (high / LEAST_EPSILON) ** (step / (number - 1)) for step in range(number - 1)]
    return sorted({*steps, high, asked})


def _find_usefulness(decision: Decision, mechanism: Mechanism) -> Utility | str:
    """How far the marginals of simulated releases are from the true ones, at the epsilon that is shown."""
    request = decision.request
    if request.table.read_cells is None:
        return "The table has no source to read its cells from, so that no release can be simulated."
    try:
        return utility(
            request.table,
            mechanism,
            releases=request.releases,
            seed=request.seed,
            cells=request.cells,
            sensitive=request.table.sensitive[0],
        )
    except InvalidInput as refusal:
        return f"Releases could not be simulated: {refusal}."


def board_page(findings: Findings) -> Page:
    """The document for the review board: everything."""
    from cellrisk.show.pictures import draw_asked

    decision, request, first = findings.decision, findings.decision.request, findings.figures.figures[0]
    known = join_names(request.table.quasi_identifiers)
    size = f"{number_of(request.table.n_records, 'record')} in {number_of(request.table.n_cells, 'cell')}"
    return Page(
        title=request.heading,
        about=(*request.about, ("Table", size)),
        banner=FOR_THE_BOARD,
        decision=describe_decision(decision),
        verdict=board_verdict(decision),
        front=(
            Words(tuple(findings.assessment.headline.split("\n"))),
            three_figures(_figures_row(each) for each in findings.assessment.figures),
            Words((FROM_OTHERS, *findings.assessment.of_several)),
            make_picture(draw_asked(first, decision.shown_epsilon), first.sentence),
            limit_facts(request.describe_limits(), request.policies),
            threat_facts(
                request,
                f"A person's {known}, that the person is in the table, and how the noise was made.",
                "This table alone, unless something was published before.",
                "One release of this table. What repeating it reveals is told by: cellrisk average.",
            ),
        ),
        sections=(
            risk_section(findings),
            alternatives_section(decision),
            curve_section(findings),
            utility_section(findings),
            sizes_section(request.table),
            people_at_risk_section(findings.explanations, request.risk.measure),
            basis_section(request),
            mechanism_section(decision),
            checklist_section(),
            provenance_section(request),
            Section("notes", "Notes for the curator", (), (Bullets((CURATOR_NOTE, CHOICE_NOTE, PUBLIC_NOTE)),)),
            registry_section(list_fields(decision)),
        ),
        sign_off=SIGN_OFF,
    )


def risk_section(findings: Findings) -> Section:
    """Section 2: before, after, by chance."""
    decision, exposures = findings.decision, findings.assessment.exposures
    at = f"epsilon {claim(decision.shown_epsilon)}"
    chances = {
        lines.sensitive: lines.caused.exposed_limits.chance for lines in findings.figures.figures if lines.caused
    }
    table = make_table(
        "Share of people whose value is read off the table correctly",
        exposures,
        {
            "Sensitive attribute": lambda each: each.sensitive,
            "Before: raw table": lambda each: percent(each.raw_share),
            f"After: {at}": lambda each: percent(each.share),
            "People exposed on average": lambda each: of_people(each.people.mean, each.records),
            "95% interval": lambda each: f"{each.people.low:,} to {each.people.high:,}",
            make_sentence(findings.assessment.mechanism.by_chance, end=""): lambda each: percent(
                chances[each.sensitive]
            ),
            "By guessing": lambda each: percent(each.guess_share),
            "Right when it names a value": _say_confidence,
        },
    )
    asked_for = () if decision.request.risk.words == RiskDefinition().words else (_asked_grid(findings),)
    lead = [each.sentence(findings.assessment.mechanism) for each in exposures]
    if decision.kind == "none":
        lead.insert(
            0, f"{make_sentence(decision.why_none)} What follows is at {at}, which {decision.candidates[0].role}."
        )
    if decision.kind == "unbound":
        lead.insert(0, f"No epsilon is recommended. What follows is at {at}, the end of the range.")
    blocks = (table, *asked_for, Words((HOW_TO_READ,)))
    return Section("risk", "Risk before, after and by chance", tuple(lead), blocks)


def _say_confidence(exposure: Exposure) -> str:
    """How often the attack is right where it names a value; a dash where no cell would show one value alone."""
    precision = exposure.confidence.people_precision
    return percent(precision) if math.isfinite(precision) else "-"


def _asked_grid(findings: Findings) -> TableBlock:
    """The risk that the limits are on, where it is another than the share of people exposed."""
    decision = findings.decision
    risk = decision.request.risk
    return make_table(
        f"The {decision.described_risk}",
        [line for line in findings.curve.lines if line.form == risk.form],
        {
            "Sensitive attribute": lambda line: line.sensitive,
            "Before: raw table": lambda line: percent(line.limits.raw),
            f"After: epsilon {decision.shown_epsilon:.12g}": lambda line: percent(line.at(decision.shown_epsilon)),
            make_sentence(decision.setting.by_chance, end=""): lambda line: percent(line.limits.chance),
        },
    )


def curve_section(findings: Findings) -> Section:
    """Section 4: the risk along epsilon."""
    from cellrisk.show.pictures import draw_curve, mark_asked

    found = findings.curve
    figure = draw_curve(found, findings.decision.shown_epsilon)
    mark_asked(figure, findings.decision.shown_epsilon)
    told = " ".join(" ".join(text.get_text() for text in figure.texts).split())
    blocks: list[Block] = [make_picture(figure, f"Risk along epsilon. {found.words}")]
    words = tuple(line for line in found.words.split("\n") if line not in told)
    if words:
        blocks.append(Words(words))
    lead = tuple(_say_along(line, findings.decision.shown_epsilon) for line in found.leading)
    return Section("curve", "Risk along epsilon", lead, tuple(blocks))


def _say_along(line: Line, asked: float) -> str:
    """The risk at the epsilon that is asked for, and ten times below and above it."""
    shown = sorted({line.nearest(epsilon) for epsilon in (asked / 10, asked, 10 * asked)})
    risks = ", ".join(f"{percent(line.at(epsilon))} at epsilon {claim(epsilon)}" for epsilon in shown)
    return (
        f"{line.sensitive}, {line.setting.describe()} ({line.name}): {risks}; {line.setting.lower_end} is "
        f"{percent(line.limits.chance)}, the raw table {percent(line.limits.raw)}."
    )


def utility_section(findings: Findings) -> Section:
    """Section 5: what noise leaves of the table's use, and risk and usefulness side by side where that has a limit."""
    decision = findings.decision
    title, trade_off = "Usefulness of what is published", decision.trade_off
    at_epsilon = _usefulness_blocks(findings.usefulness)
    if trade_off is None:
        lead = findings.usefulness if isinstance(findings.usefulness, str) else findings.usefulness.headline
        return Section("utility", title, (lead,), at_epsilon)
    at, limit = decision.candidates[decision.shown], trade_off.limit
    lead = (
        f"At epsilon {claim(at.epsilon)}, a {limit.way}-way marginal of a release differs from the true one by a "
        f"total variation distance (TVD) of {at.tvd:.3g} on average. Required is {limit.describe()}, which takes "
        f"epsilon {trade_off.describe_least()}."
    )
    shown: Block
    if decision.choice is not None and decision.request.epsilon is None:
        from cellrisk.show.pictures import draw_choice

        shown = make_picture(draw_choice(decision.choice), f"Risk and TVD along epsilon. {lead}")
    else:
        points = zip(trade_off.epsilon.tolist(), trade_off.risk.tolist(), trade_off.tvd.tolist(), strict=True)
        rows = tuple((f"{epsilon:.3g}", percent(risk), f"{tvd:.3g}") for epsilon, risk, tvd in points)
        shown = TableBlock("Risk and TVD along epsilon", ("Epsilon", "Risk", "TVD"), rows, texts=())
    noised = "every count of the domain" if limit.cells == "domain" else "the counts of cells that hold records"
    how = f"An estimate from {limit.releases:,} simulated releases with noise on {noised}; seed {limit.seed}."
    return Section("utility", title, (lead,), (shown, Words((how,)), *at_epsilon))


def _usefulness_blocks(found: Utility | str) -> tuple[Block, ...]:
    if isinstance(found, str):
        return ()
    (mechanism,) = found.mechanisms
    table = make_table(
        f"At epsilon {claim(mechanism.epsilon)}: total variation distance (TVD) of marginals from the true ones",
        found.ways,
        {
            "Columns of a marginal": str,
            "Marginals": lambda way: f"{sum(len(names) == way for names in found.marginals):,}",
            "Mean TVD": lambda way: f"{found.mean_tvd(way)[0]:.3g}",
        },
        texts=(),
    )
    how = f"An estimate from {found.releases:,} simulated releases; seed {found.seed}."
    return table, Words((how,))


def sizes_section(table: FrequencyTable) -> Section:
    """Section 6: how many records the cells hold."""
    from cellrisk.show.pictures import draw_sizes

    summary = table.summary()
    sizes = summary.cell_sizes
    lead = (
        f"Cells with a single record: {summary.attributes[0].unique:,} of {summary.cells:,}. The median cell holds "
        f"{sizes.median:,.6g}, the largest {sizes.largest:,}."
    )
    told = "; ".join(
        f"one value of {each.name} alone in {number_of(each.homogeneous, 'cell')}, with "
        f"{number_of(each.exposed_records, 'person')}"
        for each in summary.attributes
    )
    picture = make_picture(draw_sizes(table), f"Histogram of the sizes of cells. {lead}")
    return Section("sizes", "Sizes of the cells", (lead,), (picture, Words((f"The raw table shows {told}.",))))


def make_picture(figure: Any, words: str) -> Picture:
    """A figure of matplotlib as a block, with what it shows in words."""
    from cellrisk.show.pictures import to_svg

    return Picture(to_svg(figure), " ".join(words.split()))


def three_figures(rows: Iterable[Iterable[str]], last: str = CEILING) -> TableBlock:
    """The three figures for each sensitive attribute, with what each is the answer to."""
    header = ("Sensitive attribute", CAUSED, AT_ALL, "An attacker is sure of, and right", last)
    return TableBlock("Three figures to decide by", header, tuple(tuple(row) for row in rows), texts=(0, 1, 2, 3, 4))


def _figures_row(figures: DecisionFigures) -> Iterator[str]:
    caused = figures.caused
    yield figures.sensitive
    interval = f"; {caused.low:,} to {caused.high:,}" if caused.low is not None else ""
    yield say_number(caused.people, caused.share, interval)
    yield say_number(caused.exposed, caused.exposed / caused.records)
    yield say_sure(figures.certainty)
    yield "not stated: epsilon was chosen from the data" if figures.ceiling.chosen else figures.ceiling.points


def say_number(people: float, share: float, interval: str = "") -> str:
    """A number of people with its share of all, and an interval where there is one.

    >>> say_number(0.2, 0.005), say_number(-4.1, -0.02)
    ('fewer than 1 person (0.5%)', '-4 people (-2.0%)')
    """
    return f"{number_of(people, 'person')} ({'-' if share < 0 else ''}{percent(abs(share))}{interval})"


def say_sure(certainty: Sequence[Any]) -> str:
    """The people of whom an attacker is sure, by the highest certainty that was asked for."""
    if not certainty:
        return "not computed"
    return f"{certainty[-1].people}, with {100 * certainty[-1].certainty:g}% certainty"


def people_at_risk_section(explanations: Sequence[Explanation], measure: str) -> Section:
    """Section 7: the riskiest cells and values, and what would lower the risk."""
    if not explanations:
        text = "The table has no source to read its cells from, so they cannot be shown."
        return Section("at-risk", AT_RISK, (text,))
    many = len(explanations) > 1
    lead = tuple(f"{found.sensitive}: {found.headline}" if many else found.headline for found in explanations)
    blocks: list[Block] = []
    if measure != "local":
        blocks.append(Words(("All figures of this section are of the local risk.",)))
    for found in explanations:
        blocks += _list_at_risk(found, f" ({found.sensitive})" if many else "")
    return Section("at-risk", AT_RISK, lead, (*blocks, Words((KEYS_NOTE,))))


def _list_at_risk(found: Explanation, of: str) -> Iterator[TableBlock]:
    yield _riskiest_cells(found, of)
    yield _riskiest_values(found, of)
    now = f"{of}; the risk is {percent(found.baseline)} as it is"
    then: dict[str, Callable[[Any], str]] = {
        "Cells": lambda each: f"{each.cells:,}",
        "Risk": lambda each: percent(each.risk),
        "Change, in points": lambda each: describe_points(each.change),
    }
    dropped = {"Dropped": lambda each: each.quasi_identifier}
    yield make_table(f"Without a quasi-identifier{now}", found.without, {**dropped, **then})
    if found.coarser:
        merged: dict[str, Callable[[Any], str]] = {
            "Coarser": lambda each: each.quasi_identifier,
            "What is merged": lambda each: each.how,
            "Values left": lambda each: f"{each.labels:,} of {each.labels_before:,}",
        }
        yield make_table(f"With a coarser quasi-identifier{now}", found.coarser, {**merged, **then}, texts=(0, 1))


def _riskiest_cells(found: Explanation, of: str) -> TableBlock:
    """A column for each quasi-identifier, or one for all where a page is too narrow for that."""
    names = tuple(found.riskiest[0].key)
    apart = len(names) <= MOST_COLUMNS
    rows = tuple(
        (
            *(cell.key.values() if apart else ["; ".join(f"{name}: {value}" for name, value in cell.key.items())]),
            f"{cell.records:,}",
            percent(cell.risk),
            f"{cell.people:,.1f}",
        )
        for cell in found.riskiest
    )
    words = names if apart else ("Cell",)
    header = (*words, "Records", "Risk", "People exposed")
    return TableBlock(f"The riskiest cells{of}", header, rows, texts=tuple(range(len(words))))


def _riskiest_values(found: Explanation, of: str) -> TableBlock:
    levels = sorted(found.by_level, key=lambda level: (-level.risk, -level.people))[:LEVELS_SHOWN]
    return make_table(
        f"The riskiest values{of}, {len(levels):,} of {len(found.by_level):,}",
        levels,
        {
            "Quasi-identifier": lambda level: level.quasi_identifier,
            "Value": lambda level: level.label,
            "Records": lambda level: f"{level.records:,}",
            "Risk": lambda level: percent(level.risk),
            "People exposed": lambda level: f"{level.people:,.1f}",
            "Raw table": lambda level: percent(level.raw_share),
        },
        texts=(0, 1),
    )


def describe_points(change: float) -> str:
    """A change of a share in percentage points, with its sign.

    >>> describe_points(-0.0412), describe_points(0.00001)
    ('-4.1', '0.0')
    """
    text = f"{100 * change:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text
