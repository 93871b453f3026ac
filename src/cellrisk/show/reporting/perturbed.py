"""A report for a board on a table that is published with a perturbation: no epsilon, no ledger, no curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.table import FrequencyTable
from cellrisk.decide.limits import NO_CHANCE, NO_EPSILON, Limit, RiskDefinition, describe_limits, read_limits
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.explanation import Explanation, explain
from cellrisk.risk.perturbed import NOT_TOLD, PerturbedAssessment, PerturbedFigures, assess_perturbation
from cellrisk.risk.perturbed.counts import PerturbedCountsSummary, inspect_perturbation
from cellrisk.show.reporting import basis, contents, particulars
from cellrisk.show.reporting.blocks import Bullets, Facts, Page, Section, TableBlock, Verdict, Words, make_table
from cellrisk.show.reporting.checklist import checklist_section
from cellrisk.show.reporting.document import Letterhead, Report
from cellrisk.show.reporting.phrases import join_names, name_table
from cellrisk.system.text import CURATOR_NOTE, number_of, of_people, percent, whole_people

REFUSED = {
    "public": "a statement for the public says which guarantee holds, and a perturbation has none",
    "risk_epsilon": "how far one record moves the risk of a perturbed table is not bounded here",
    "ledger": "a ledger adds up privacy losses, and a perturbation states none",
    "registry": "the registry is one of differentially private deployments",
    "max_epsilon": NO_EPSILON,
    "margin": NO_CHANCE,
    "max_tvd": (
        "marginals are simulated with noise at an epsilon; how far a perturbation moves the table is told at equal risk"
    ),
}
"""What a report on a perturbation does not take, and why."""
ROWS_SHOWN = 13
"""Counts whose rows are printed."""
HOLD = "This table alone: overlapping tables can be compared with each other."


def check_perturbed(given: Mapping[str, bool]) -> None:
    """Refuses what a report on a perturbation cannot have; names are those of arguments or of options."""
    for name, is_given in given.items():
        if is_given:
            raise InvalidInput(f"a report on a perturbation takes no {name}: {REFUSED[name]}", fix="leave it out")


@dataclass(frozen=True, eq=False)
class PerturbationRequest(particulars.Particulars):
    """What the caller of a report wants to know, and what is to be printed as it is."""

    table: FrequencyTable
    perturbation: Perturbation
    kept_limits: tuple[Limit, ...]

    @property
    def limits(self) -> str:
        """The limits in words; empty where none was set."""
        return " and ".join(describe_limits(self.kept_limits))

    @property
    def table_name(self) -> str:
        return name_table(self.table)

    def find_breaches(self) -> tuple[str, ...]:
        """The limits that are not kept, and those that cannot be judged."""
        breaches = [limit.breach(self.table.attributes, self.perturbation) for limit in self.kept_limits]
        return tuple(breach for breach in breaches if breach is not None)


def report_perturbation(
    table: FrequencyTable,
    given: str | Perturbation,
    letterhead: Letterhead,
    risk: RiskDefinition,
    policies: Policies,
    *,
    compare: str,
    delta: float | None,
    limits: Mapping[str, Any],
    attacker: Mapping[str, Any],
    top: int,
    **told: Any,
) -> Report:
    """The report on a table that is published with a perturbation; ``told`` is printed as it is."""
    made = read_perturbation(given)
    request = PerturbationRequest(
        table=table,
        perturbation=made,
        kept_limits=policies.join(read_limits(**limits, **attacker, risk=risk), risk),
        policies=policies,
        **told,
    )
    assessed = assess_perturbation(
        table,
        made,
        measures=risk.measure,
        forms=risk.form,
        weights=risk.weights,
        priors=risk.priors,
        compare=compare,
        delta=delta,
        **attacker,
    )
    words: dict[str, Any] = {"form": risk.form, "weights": risk.weights, "top": top}
    named = table.sensitive if table.read_cells is not None else ()
    explanations = [explain(table, perturbation=made, sensitive=name, **words) for name in named]
    broken = request.find_breaches()
    return letterhead.make_report(
        perturbed_page(request, assessed, inspect_perturbation(table, made), explanations, broken),
        assessed.headline,
        setting=None,
        epsilon=None,
        public=False,
        policies=policies,
        perturbation=made,
        broken=broken,
    )


def perturbed_page(
    request: PerturbationRequest,
    found: PerturbedAssessment,
    counts: PerturbedCountsSummary,
    explanations: Sequence[Explanation],
    broken: Sequence[str],
) -> Page:
    """The document for the review board."""
    from cellrisk.show.pictures import draw_equal_risk

    table = request.table
    size = f"{number_of(table.n_records, 'record')} in {number_of(table.n_cells, 'cell')}"
    known = join_names(table.quasi_identifiers)
    first = found.figures[0]
    return Page(
        title=request.title or f"Disclosure review of {request.table_name}",
        about=(*request.about, ("Table", size)),
        banner=contents.FOR_THE_BOARD,
        decision=(
            f"Approve publication of the frequency table of {request.table_name} with the perturbation "
            f"{request.perturbation.name}."
        ),
        verdict=_verdict(request, broken),
        front=(
            Words(tuple(found.headline.split("\n"))),
            contents.three_figures(
                (_figures_row(each) for each in found.figures), "Worst case for one record, at most"
            ),
            contents.make_picture(draw_equal_risk(found), " ".join(each.sentence() for each in first.equal)),
            particulars.limit_facts(request.limits, request.policies),
            particulars.threat_facts(
                request,
                f"A person's {known}, that the person is in the table, and the table of probabilities, but no key.",
                HOLD,
                "One publication. Several can be averaged, unless each repeats the same perturbation, as cell keys do.",
                ledger=False,
            ),
        ),
        sections=(
            _risk_section(found),
            _counts_section(counts),
            _equal_section(found),
            contents.sizes_section(table),
            contents.people_at_risk_section(explanations, "local"),
            _basis_section(request),
            _method_section(request.perturbation),
            checklist_section(budget=False),
            particulars.provenance_section(request),
            Section("notes", "Notes for the curator", (), (Bullets((CURATOR_NOTE, NOT_TOLD)),)),
        ),
        sign_off=contents.SIGN_OFF,
    )


def _figures_row(figures: PerturbedFigures) -> Iterator[str]:
    """The ceiling is one over known counts, and caused may be negative."""
    a, b = figures.worst_counts
    yield figures.sensitive
    yield contents.say_number(figures.caused, figures.caused / figures.records)
    yield contents.say_number(figures.people.mean, figures.people.mean / figures.records)
    yield contents.say_sure(figures.certainty)
    yield f"{figures.worst_case} (coin toss: 50%), at worst if {a:,} and {b:,} others have them"


def _verdict(request: PerturbationRequest, broken: Sequence[str]) -> Verdict:
    name = request.perturbation.name
    if broken:
        return Verdict("broken", f"Limits broken: {name}", tuple(f"Required: {each}." for each in broken))
    if request.limits:
        return Verdict("kept", f"Limits kept: {name} is within every limit", (f"Required: {request.limits}.",))
    title = f"For the board to judge: no limit was set for {name}"
    return Verdict("open", title, ("Whether the figures below are acceptable is for the board to decide.",))


def _risk_section(found: PerturbedAssessment) -> Section:
    people = make_table(
        "Share of people whose value is read off the table correctly",
        found.figures,
        {
            "Sensitive attribute": lambda each: each.sensitive,
            "Before: raw table": lambda each: percent(each.raw_share),
            "After": lambda each: percent(each.people.mean / each.records),
            "People exposed on average": lambda each: of_people(each.people.mean, each.records),
            "95% interval": lambda each: f"{each.people.low:,} to {each.people.high:,}",
        },
    )
    rows = tuple(
        (row.sensitive, row.measure.replace("_", " "), row.form, row.weights or "-", percent(row.risk))
        for row in found.risks
    )
    header = ("Sensitive attribute", "Measure", "Form", "Weights", "Risk")
    risks = TableBlock("Risks by the homogeneity attack", header, rows, texts=(0, 1, 2, 3))
    return Section("risk", "Risk before and after", (), (people, risks))


def _counts_section(counts: PerturbedCountsSummary) -> Section:
    blocks = tuple(
        make_table(
            f"What becomes of counts of {each.sensitive}, on average",
            each.classes,
            {
                "Counts of": lambda row: row.size,
                "There are": lambda row: f"{row.counts:,}",
                "Unchanged": lambda row: f"{row.unchanged:,.1f}",
                "As 0, or not at all": lambda row: f"{row.hidden:,.1f}",
                "As another": lambda row: f"{row.moved:,.1f}",
                "Published": lambda row: f"{row.after:,.1f}",
            },
            texts=(),
        )
        for each in counts.attributes
    )
    lead = tuple(each.sentence(counts.perturbation.name) for each in counts.attributes)
    return Section("counts", "What becomes of the counts", lead, blocks)


def _equal_section(found: PerturbedAssessment) -> Section:
    every = [(figures.sensitive, each) for figures in found.figures for each in figures.equal]
    rows = tuple(
        (
            name,
            "because of their own record" if each.by == "caused" else "to an attacker who is sure",
            whole_people(each.figure),
            ", ".join(f"{low:g} to {high:g}" for low, high in each.ranges) or "none",
            percent(each.distance),
            "-" if each.mechanism_distance is None else percent(each.mechanism_distance),
        )
        for name, each in every
    )
    distances = ("Distance of the perturbation", "Distance of the noise at the largest")
    header = ("Sensitive attribute", "People given away", "Number", "Epsilons with no more risk", *distances)
    table = TableBlock("At equal risk", header, rows, texts=(0, 1, 3))
    how = (
        "How far a published table lies from the true one: half the expected sum of the differences of counts, over "
        "the cells that hold people, as a share of the records."
    )
    lead = tuple(each.sentence() for _, each in every)
    return Section("equal", "At equal risk: what differential privacy would cost", lead, (table, Words((how,))))


def _basis_section(request: PerturbationRequest) -> Section:
    table = request.table
    facts = (
        ("Guarantee", "None: a perturbation states no epsilon. The figures hold for this table."),
        ("Perturbation", "What each count is published as does not depend on any other count."),
        ("Missing values", basis.describe_missing(table, False)),
        ("Other values", basis.describe_outside(table, False)),
    )
    untold = [line for line in basis.NOT_COVERED if "noise" not in line and "privacy loss" not in line]
    untold.append("Several tables about the same people, which can undo a perturbation.")
    blocks = (
        Facts(facts),
        *basis.describe_domains(table, False),
        particulars.preparation_block(request.preparation),
        Bullets(tuple(untold), "Not covered by the figures"),
    )
    return Section("assumptions", "Assumptions", (basis.ATTACK,), blocks)


def _method_section(perturbation: Perturbation) -> Section:
    counts = range(min(perturbation.last + perturbation.period + 1, ROWS_SHOWN))
    rows = []
    for count in counts:
        row = zip(*(part.tolist() for part in perturbation.row(count)), strict=True)
        told = [f"{value:,} ({percent(chance)})" for value, chance in row]
        rows.append((f"{count:,}", ", ".join(told[:ROWS_SHOWN]) + (", ..." if len(told) > ROWS_SHOWN else "")))
    header = ("Count", "Published as, and how often")
    blocks = (
        TableBlock("What counts are published as", header, tuple(rows), texts=(1,)),
        basis.versions_table(),
    )
    return Section("mechanism", "Perturbation and versions", (f"{perturbation.describe()}.",), blocks)
