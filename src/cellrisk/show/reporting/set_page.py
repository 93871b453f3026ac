"""What a board sees of a set of tables: the figures of the whole beside each table, and what each table adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cellrisk.noise.precision import find_precision
from cellrisk.repeat.together.split_result import Split
from cellrisk.repeat.together.together_result import (
    SAYS,
    RuleFigures,
    TableFigures,
    TogetherAssessment,
    TogetherCheck,
    say_people,
)
from cellrisk.risk.ceilings import Ceiling
from cellrisk.show.reporting import basis, contents
from cellrisk.show.reporting.blocks import Block, Bullets, Facts, Page, Section, TableBlock, Verdict, Words, make_table
from cellrisk.show.reporting.checklist import SET_PLACES, checklist_section
from cellrisk.show.reporting.contents import AT_ALL, CAUSED, CEILING, FOR_THE_BOARD, PUBLIC_NOTE, SIGN_OFF, make_picture
from cellrisk.show.reporting.particulars import limit_facts, preparation_block, provenance_section, threat_facts
from cellrisk.show.reporting.phrases import join_names
from cellrisk.show.reporting.registry import NOT_APPLICABLE, Field, fill_fields, registry_section, remark_on
from cellrisk.show.reporting.set_request import KEPT, NOT_JUDGED, SetRequest, name_set_table
from cellrisk.system.text import CURATOR_NOTE, claim, make_sentence, number_of, percent

MOST_ON_FRONT = 7
"""Tables that the first page shows one by one, and draws; of more, those that give away most by themselves."""
HOLD = "All tables of the set and no others, unless something was published before."
ATTACK = (
    "Two attacks that put the tables together are considered. Elimination decides: look up a person's cell in every "
    "table, strike out each value that vanishes in one of them, and where one value is left, take it to be the "
    "person's."
)
HOW_TO_READ = (
    "Numbers of people are exact averages over releases. Named rightly: people whose value the attack names, and "
    "rightly so. By chance: the same if noise drowned the counts. Without noise: the same in the raw tables."
)
NUMBERS: dict[str, Callable[[RuleFigures], str]] = {
    "Named rightly": lambda figures: say_people(figures.right),
    "Named at all": lambda figures: say_people(figures.named),
    "Standard deviation": lambda figures: figures.deviation,
    "Because of their own record": lambda figures: say_people(figures.caused),
    "By chance": lambda figures: say_people(figures.chance),
    "Without noise": lambda figures: f"{figures.raw:,}",
}
"""What is told of people whom an attack names, by the name of the column."""
UNDISTURBED = "Several releases about the same people, each of which spends privacy loss of its own."
OTHERS = "Tables about the same people that were published before, or by others."


def set_page(request: SetRequest, found: TogetherAssessment) -> Page:
    """The document for the review board."""
    people = number_of(found.records, "person", "people")
    broken = request.find_breaches()
    return Page(
        title=request.title or f"Disclosure review of {request.set_name}",
        about=(*request.about, ("Set", f"{number_of(len(request.tables), 'table')}, {people}")),
        banner=FOR_THE_BOARD,
        decision=describe_set(request, "Approve publication of"),
        verdict=_verdict(request, broken),
        front=(
            Words((found.headline,)),
            _figures_table(request, found),
            Words((contents.FROM_OTHERS,)),
            *([_growth(found)] if 1 < len(found.tables) <= MOST_ON_FRONT else []),
            _limits_block(request),
            threat_facts(
                request,
                f"A person's {request.columns}, that the person is in the tables, and how the noise was made.",
                HOLD,
                "One release of each table, all at once. What repeating one reveals is told by: cellrisk average.",
                "the tables",
            ),
        ),
        sections=(
            _tables_section(found),
            _adds_section(found),
            _rules_section(found),
            *_certain_sections(found),
            _structure_section(found),
            Section("use", "Usefulness of what is published", (), (precision_table(request),)),
            *_split_sections(request.split),
            *_check_sections(found.check),
            _basis_section(request),
            mechanisms_section(request),
            checklist_section(SET_PLACES),
            provenance_section(request),
            Section("notes", "Notes for the curator", (), (Bullets((CURATOR_NOTE, PUBLIC_NOTE)),)),
            registry_section(list_set_fields(request)),
        ),
        sign_off=SIGN_OFF,
    )


def describe_set(request: SetRequest, verb: str) -> str:
    """What is asked: which tables, with which noise, at which epsilon in all."""
    mechanisms = {table.mechanism.name for table in request.tables}
    noise = f"{next(iter(mechanisms))} noise" if len(mechanisms) == 1 else "noise of their own"
    if len(request.tables) == 1:
        return f"{verb} {request.set_name}, with {noise}, at {request.epsilon}."
    return f"{verb} {request.set_name} about the same people, each with {noise}, at {request.epsilon} in all."


def _verdict(request: SetRequest, broken: tuple[str, ...]) -> Verdict:
    if broken:
        judged = request.judge()
        lost = [each for each in judged if each.state != KEPT]
        count = "the limit" if len(judged) == 1 else f"{len(lost)} of {len(judged)} limits"
        unknown = "; of these, some cannot be judged" if any(each.state == NOT_JUDGED for each in lost) else ""
        texts = (f"Not kept{unknown}: {'; '.join(dict.fromkeys(each.limit for each in lost))}.",)
        return Verdict("broken", f"Limits broken: the set does not keep {count}", texts)
    if request.limited:
        required = request.describe_limits()
        texts = (f"Required: {required}.",) if required else ("The policy sets no limit that a set could break.",)
        return Verdict("kept", "Limits kept: the set is within every limit", texts)
    title = "For the board to judge: no limit was set for the set"
    return Verdict("open", title, ("Whether the figures below are acceptable is for the board to decide.",))


def _figures_table(request: SetRequest, found: TogetherAssessment) -> TableBlock:
    """The three figures of the whole set, and of each table alone."""
    every = "The table" if len(found.tables) == 1 else f"All {len(found.tables)} tables together"
    whole = _figures(found.rule(), found.records)
    rows = [(every, claim(request.cost.epsilon), *whole, say_ceiling(request.ceiling))]
    shown = found.tables if len(found.tables) > 1 else ()
    mixed = len({table.mechanism.name for table in request.tables}) > 1
    if len(shown) > MOST_ON_FRONT:
        largest = sorted(shown, key=lambda each: -each.alone.caused)[: MOST_ON_FRONT - 1]
        shown = tuple(each for each in found.tables if each in largest)
    for each in shown:
        mechanism = each.table.mechanism
        figures = _figures(each.alone, each.records)
        noise = f"{claim(mechanism.epsilon)}{f', {mechanism.name}' if mixed else ''}"
        rows.append((name_set_table(each.table), noise, *figures, say_ceiling(each.ceiling)))
    left = len(found.tables) - len(shown) if len(found.tables) > 1 else 0
    more = f"; {number_of(left, 'more table')} in section 2" if left else ""
    return TableBlock(
        f"Three figures to decide by, in people: the set, and each table by itself{more}",
        ("Tables", "Epsilon", CAUSED, AT_ALL, CEILING),
        tuple(rows),
        marked=0,
    )


def _figures(figures: RuleFigures, records: int) -> list[str]:
    return [f"{say_people(number)} ({percent(number / records)})" for number in (figures.caused, figures.right)]


def say_ceiling(found: Ceiling | None) -> str:
    """What one record adds to any attack, as a table has it."""
    return "not known" if found is None else found.points


def _growth(found: TogetherAssessment) -> Block:
    """How what is given away grows as tables are added."""
    from cellrisk.show.pictures import draw_together

    return make_picture(draw_together(found), f"How what is given away grows as tables are added. {found.headline}")


def _limits_block(request: SetRequest) -> Block:
    judged = request.judge()
    if not judged:
        return limit_facts("", request.policies)
    rows = tuple((make_sentence(each.limit, ""), each.by, each.figure, each.state) for each in judged)
    return TableBlock("Limits", ("Limit", "Set by", "The set", "Kept?"), rows, texts=(0, 1, 2, 3))


def _tables_section(found: TogetherAssessment) -> Section:
    """Each table by itself."""
    rows = []
    for each in found.tables:
        numbers = [tell(each.alone) for tell in NUMBERS.values()]
        rows.append((name_set_table(each.table), f"{each.records:,}", f"{each.cells:,}", *numbers))
    table = TableBlock("Each table by itself, in people", ("Table", "People", "Cells", *NUMBERS), tuple(rows))
    growth = (_growth(found),) if len(found.tables) > MOST_ON_FRONT else ()
    return Section("tables", "The tables by themselves", (), (table, *growth, Words((HOW_TO_READ,))))


def _adds_section(found: TogetherAssessment) -> Section:
    """What each table adds, and what leaving it out, or a column of it, would do."""
    title = "What each table adds, and what would help"
    if len(found.tables) == 1:
        return Section("adds", title, ("The set is one table; the report on that table tells what would help.",))
    most = found.adds_most
    rows = tuple(tuple(_adds_row(found, place)) for place in range(len(found.tables)))
    header = (
        "Table",
        "With all above it: because of their own record",
        "at all",
        "It adds: because of their own record",
        "at all",
        "The set without it: because of their own record",
        "at all",
    )
    place = None if most is None else most.table.number - 1
    blocks: list[Block] = [
        TableBlock("People given away as tables are added, by elimination", header, rows, marked=place)
    ]
    lead = [] if most is None else list(_say_most(found, most))
    if found.coarser:
        coarser = tuple((each.column, say_people(each.caused), say_people(each.right)) for each in found.coarser)
        caption = f"The set if {found.coarser[0].table.title} were published without one of its columns, in people"
        blocks.append(TableBlock(caption, ("Left out", "Because of their own record", "At all"), coarser))
    lead += _say_largest(found)
    return Section("adds", title, tuple(lead), tuple(blocks))


def _adds_row(found: TogetherAssessment, place: int) -> Iterator[str]:
    """One table: the set up to it, what it adds to those above it, and the set without it."""
    each = found.tables[place]
    so_far = found.collections.get(tuple(range(1, place + 2)))
    before = found.collections.get(tuple(range(1, place + 1)))
    yield name_set_table(each.table)
    for name in ("caused", "right"):
        yield "-" if so_far is None else say_people(getattr(so_far, name))
    for name in ("caused", "right"):
        if so_far is None or (place and before is None):
            yield "-"
        else:
            yield _say_change(getattr(so_far, name) - (getattr(before, name) if before is not None else 0.0))
    for name in ("caused", "right"):
        yield "-" if each.without is None else say_people(getattr(each.without, name))


def _say_change(change: float) -> str:
    return f"{'-' if change < 0 else '+'}{say_people(abs(change))}" if change else "0"


def _say_most(found: TogetherAssessment, most: TableFigures) -> Iterator[str]:
    lead, rest = found.rule(), most.without
    if rest is not None and rest.caused < lead.caused:
        yield (
            f"{make_sentence(most.table.title, '')} adds most: without it, the people given away because of their own "
            f"records would fall from {say_people(lead.caused)} to {say_people(rest.caused)}."
        )
    else:
        yield "No table adds people given away because of their own records whom the others do not give away anyhow."


def _say_largest(found: TogetherAssessment) -> Iterator[str]:
    """Where some of the tables give away more than all of them."""
    largest = found.largest
    if len(largest) < len(found.tables):
        named = join_names([f"{number}" for number in largest])
        yield (
            f"{'Table' if len(largest) == 1 else 'Tables'} {named} alone would give away more because of their own "
            f"records than all tables: {say_people(found.collections[largest].caused)} people. The noise of the others "
            "hinders the attacker, who may leave them aside; a limit is judged by this number."
        )


def _rules_section(found: TogetherAssessment) -> Section:
    """Two ways to put the tables together."""
    table = make_table(
        "All tables together, in people",
        found.rules,
        {
            "Rule": lambda each: make_sentence(each.rule, ""),
            **NUMBERS,
            "Precision": lambda each: "-" if each.precision is None else percent(each.precision),
            "95% of releases": lambda each: f"{each.low:,} to {each.high:,}",
            "Own record at most": lambda each: say_people(each.bound),
        },
    )
    meant = [f"{make_sentence(each.rule, '')}: {SAYS[each.rule]}." for each in found.rules]
    meant.append("95% of releases: the number named rightly lies between these in so many (simulated).")
    meant.append("Own record at most: the guarantee alone allows no more to be given away because of their own record.")
    blocks = (table, Bullets(tuple(meant)), Words((HOW_TO_READ,)))
    return Section("rules", "Two ways to put the tables together", (), blocks)


def _certain_sections(found: TogetherAssessment) -> Iterator[Section]:
    """An attacker who does the mathematics on all tables, where he was asked for."""
    title = "An attacker who does the mathematics"
    if found.certain_unknown is not None:
        yield Section("certain", title, (f"This attacker's figures are not computed: {found.certain_unknown}.",))
    if not found.certain:
        return
    table = make_table(
        "People whose value the attacker is sure of",
        found.certain,
        {
            "Certain to": lambda each: f"{100 * each.certainty:g}%",
            "Tempering": lambda each: f"{each.tempering:.3g}{' (fitted)' if each.fitted else ''}",
            "Named rightly": lambda each: say_people(each.right),
            "Named at all": lambda each: say_people(each.named),
            "Precision": lambda each: "-" if each.precision is None else percent(each.precision),
            "How it was found": lambda each: each.how,
        },
        texts=(0, 1, 5),
    )
    how = (
        "Tempering 1 takes the tables for independent given a person's value, and is overconfident where they are not. "
        "A fitted one is that of an attacker who is helped by the true values."
    )
    yield Section("certain", title, (), (table, Words((how,))))


def _structure_section(found: TogetherAssessment) -> Section:
    """People whom a difference of tables shows, and what common margins take from the noise."""
    blocks: list[Block] = []
    if found.differences:
        header = ("Tables", "People left out", "Larger table", "Difference", "Own record, in the difference", "Either")
        rows = tuple(
            (
                f"{each.outer.number} without {each.inner.number}",
                f"{each.people:,}",
                *(say_people(number) for number in (each.in_outer, each.in_difference, each.caused, each.either)),
            )
            for each in found.differences
        )
        blocks.append(TableBlock("People given away of those who are in the larger table alone", header, rows))
        lead = tuple(each.headline for each in found.differences)
    else:
        lead = ("No two tables have the same columns and differ by people who are left out of one of them.",)
    refined = found.refinement
    if refined is not None:
        blocks.append(Words((refined.headline,)))
        if refined.rules:
            compared = tuple(
                (
                    make_sentence(rule, ""),
                    *(say_people(number) for number in (found.rule(rule).right, figures.right)),
                    *(say_people(number) for number in (found.rule(rule).caused, figures.caused)),
                )
                for rule, figures in refined.rules.items()
            )
            names = ("Rule", "Named rightly", "with least squares", "Own record", "with least squares")
            blocks.append(TableBlock("What an attacker gains who makes the tables agree, in people", names, compared))
    blocks.append(Bullets(found.statements, "What the figures assume, and what they leave out"))
    return Section("differences", "Differences of tables, and common margins", lead, tuple(blocks))


def precision_table(request: SetRequest) -> TableBlock:
    """How far counts of each table are from the true ones; the noise alone says so."""
    rows = []
    for table in request.tables:
        found = find_precision(table.mechanism)
        sizes = (f"{found.sd:.3g}", f"{found.within:,}", f"{found.at_zero:.3g}")
        rows.append((name_set_table(table), claim(table.mechanism.epsilon), *sizes))
    header = ("Table", "Epsilon", "Standard deviation", "95% are within", "A true zero becomes, on average")
    return TableBlock("Error of a published count, from the noise alone", header, tuple(rows))


def _split_sections(split: Split | None) -> Iterator[Section]:
    """Other ways to share what the set costs, where they were asked for."""
    if split is None:
        return
    numbers = [f"{table.number}" for table in split.tables]
    rows = tuple(
        (
            make_sentence(way.name, ""),
            *(f"{part:.3g}" for part in way.parts),
            f"{way.error:.4g}",
            *(say_people(number) for number in (way.caused, way.right)),
        )
        for way in split.ways
    )
    header = ("Shares", *(f"Table {number}" for number in numbers), "Error", "Because of their own record", "At all")
    how = (
        "Error: the bound on the total variation distance of each table from the true one, weighted by use. "
        f"Least caused: the best shares found whose error is at most {percent(split.slack)} above the least, or that "
        "of even shares. "
        "Shares that were chosen on the data say something about them; even shares do not."
    )
    table = TableBlock(f"Three ways to share {split.unit} {split.total:g}", header, rows)
    yield Section("split", "Other ways to share the total", (split.headline,), (table, Words((how,))))


def _check_sections(check: TogetherCheck | None) -> Iterator[Section]:
    if check is not None:
        table = make_table(
            "Computed and simulated",
            check.rows,
            {
                "In people": lambda each: f"{make_sentence(each.rule, '')}, {each.figure}",
                "Computed": lambda each: f"{each.assessed:,.2f}",
                "Simulated": lambda each: f"{each.simulated:,.2f}",
                "Difference in standard errors": lambda each: f"{each.z:+.2f}",
            },
        )
        lead = f"{number_of(check.releases, 'release')} of all tables were simulated, and the rules applied to them."
        yield Section("check", "A second opinion", (lead,), (table,))


def _basis_section(request: SetRequest) -> Section:
    untold = [line for line in basis.NOT_COVERED if line != UNDISTURBED]
    blocks: tuple[Block, ...] = (
        Facts(tuple(basis_facts(request))),
        preparation_block(request.steps),
        Bullets((*untold, OTHERS), "Not covered by the figures"),
    )
    return Section("assumptions", "Assumptions", (ATTACK,), blocks)


def basis_facts(request: SetRequest) -> Iterator[tuple[str, str]]:
    """What the guarantee of a set takes for granted."""
    yield "Privacy unit", basis.PRIVACY_UNIT
    yield "Neighbours", basis.NEIGHBOURS[request.tables[0].mechanism.neighbours]
    yield "Noise", "The noise on each count of each table is independent of that on every other."
    apart = " Tables whose people exclude each other are not added up." if request.cost.apart else ""
    how = f"{make_sentence(request.cost.operator, '')} composition"
    yield "Several tables", f"{how}: a person is in several tables, and their losses are taken together.{apart}"
    for threshold in dict.fromkeys(table.mechanism.threshold for table in request.tables):
        yield "Rounding and suppression", basis.describe_threshold(threshold)
    yield "Values of the columns", _describe_domains(request)


def _describe_domains(request: SetRequest) -> str:
    if request.declared is None:
        return "Values that were read from the data, and not declared, are not covered by the guarantee."
    observed = list_observed(request)
    if not observed:
        return "The values that each column can take were declared beforehand."
    return (
        f"The values that these columns can take were not declared: {join_names(observed)}. That they occur is not "
        "covered by the guarantee."
    )


def list_observed(request: SetRequest) -> list[str]:
    """The columns whose values were not declared; all of them if that is not known."""
    every = dict.fromkeys((request.sensitive, *(name for table in request.tables for name in table.quasi_identifiers)))
    return [name for name in every if name not in (request.declared or ())]


def mechanisms_section(request: SetRequest) -> Section:
    """The noise of each table, its formula and scale, and the versions of what computed the figures."""
    names = list(dict.fromkeys(table.mechanism.name for table in request.tables))
    releasable = all(name in basis.RELEASABLE for name in names)
    blocks: tuple[Block, ...] = (
        make_table(
            "Noise of each table; scales are in counts",
            request.tables,
            {
                "Table": lambda table: f"{table.number}",
                "Mechanism": lambda table: table.mechanism.name,
                "Epsilon": lambda table: f"{table.mechanism.epsilon:.12g}",
                "Delta": lambda table: "-" if table.mechanism.pure else claim(table.mechanism.delta),
                "Scale": lambda table: basis.describe_scale(table.mechanism).removesuffix(", in counts"),
            },
            texts=(0, 1, 4),
        ),
        Facts(
            (
                *((f"Formula of {name}", basis.FORMULAS[name]) for name in names),
                ("Cost of the set", request.cost.headline),
                ("Can it be released?", basis.RELEASED if releasable else basis.NOT_RELEASED),
            )
        ),
        basis.versions_table(),
    )
    return Section("mechanism", "Mechanisms and versions", (), blocks)


def list_set_fields(request: SetRequest, public: bool = False) -> tuple[Field, ...]:
    """Every field of the registry's template, as far as a report on a set knows it."""
    cost, tables, found = request.cost, request.tables, request.found
    mechanisms = dict.fromkeys(table.mechanism.name for table in tables)
    thresholds = dict.fromkeys(basis.describe_threshold(table.mechanism.threshold) for table in tables)
    told = "; ".join(f"table {name_set_table(each)}: {basis.describe_scale(each.mechanism)}" for each in tables)
    limits = request.describe_limits()
    steps = [f"Preparation: {'; '.join(request.steps)}"] if request.steps else []
    steps += ["Risks were assessed on the raw data before the release"] if found is not None else []
    known: dict[str, str | None] = {
        "basic.name": request.title or f"{request.set_name} about the same people",
        "basic.data_curators.data_curator_name": request.organisation or None,
        "basic.description": "; ".join(f"Table {name_set_table(each)}" for each in tables),
        "dp_variant.variant_name": "Approximate DP" if cost.delta else "Pure DP",
        "dp_variant.data_domain": f"Records with {request.columns}, {request.sensitive}",
        "privacy_loss.privacy_unit_details": basis.NEIGHBOURS[tables[0].mechanism.neighbours],
        "privacy_loss.number_of_privacy_units": None if public or found is None else f"{found.records:,}",
        "privacy_loss.privacy_parameters.epsilon": f"{cost.epsilon:.12g}",
        "privacy_loss.privacy_parameters.delta": claim(cost.delta) if cost.delta else NOT_APPLICABLE,
        "privacy_loss.privacy_parameters.rho": NOT_APPLICABLE,
        "privacy_loss.privacy_parameters_details": (
            f"Given beforehand; checked for {limits}" if limits else "Given beforehand"
        ),
        "implementation.preprocessing_and_hyperparameter_tuning": ". ".join(steps) or None,
        "implementation.mechanisms": f"{'; '.join(basis.FORMULAS[name] for name in mechanisms)}. Scales: {told}",
        "implementation.composition": cost.headline,
        "implementation.post_processing": " ".join(thresholds),
    }
    remarks = {
        **remark_on(public),
        "dp_variant.unprotected_quantities": "such as labels and cells that were only observed",
        "implementation.additional_information": "where the tables are published",
    }
    return fill_fields(known, remarks)
