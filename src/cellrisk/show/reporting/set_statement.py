"""What the public is told of a set of tables: what was published, under which guarantee, and how to use it.

No figure in it was computed from the raw data: it follows from the tables that were asked for and from their noise.
"""

from __future__ import annotations

from cellrisk.decide.policy import CHECKED
from cellrisk.show.reporting.blocks import Block, Facts, Page, Section, TableBlock, Verdict, Words
from cellrisk.show.reporting.particulars import preparation_block
from cellrisk.show.reporting.public import (
    FOR_THE_PUBLIC,
    guarantee_section,
    policy_section,
    use_facts,
    withheld_section,
)
from cellrisk.show.reporting.set_page import (
    ATTACK,
    basis_facts,
    describe_set,
    list_observed,
    mechanisms_section,
    precision_table,
)
from cellrisk.show.reporting.set_request import SetRequest, name_set_table
from cellrisk.system.text import claim

WITHHELD = (
    "Figures computed from the raw data are withheld, because they are not differentially private: the numbers of "
    "people and of cells, whom the tables give away together and each by itself, and what each table adds."
)


def set_statement(request: SetRequest) -> Page:
    """The document for the public."""
    broken = bool(request.find_breaches())
    limits = request.describe_limits()
    done = describe_set(request, "Published:" if not broken else "Not published, because a limit is not kept:")
    if broken:
        verdict = Verdict("broken", "Not published: a limit is not kept", (f"Required was {limits}.",))
    else:
        kind = "kept" if request.limited else "open"
        texts = (f"Required was {limits}.",) if limits else ("No limit on a risk was set.",)
        verdict = Verdict(kind, f"Published at {request.epsilon} in all", texts)
    neighbours, prepared = request.tables[0].mechanism.neighbours, preparation_block(request.steps)
    covered = not (request.limited or request.disclosures or list_observed(request))
    notes = [*([CHECKED] if request.limited else []), *request.disclosures]
    return Page(
        title=request.title or f"Privacy statement for {request.set_name}",
        about=request.about,
        banner=FOR_THE_PUBLIC,
        first="What was published",
        decision=done,
        verdict=verdict,
        front=(_list_tables(request),),
        sections=(
            guarantee_section(
                "Together the tables keep", request.cost, "them", neighbours, request.ceiling, covered=covered
            ),
            _use_section(request),
            policy_section(ATTACK, limits or "none"),
            withheld_section(WITHHELD, notes, "The epsilons were given beforehand."),
            Section("assumptions", "Assumptions", (), (Facts(tuple(basis_facts(request))), prepared)),
            mechanisms_section(request),
        ),
    )


def _list_tables(request: SetRequest) -> TableBlock:
    rows = []
    for table in request.tables:
        mechanism = table.mechanism
        delta = "" if mechanism.pure else f", delta {claim(mechanism.delta)}"
        rows.append((name_set_table(table), mechanism.name, f"{mechanism.epsilon:.12g}{delta}"))
    return TableBlock(f"The tables of {request.sensitive}", ("Table", "Noise", "Epsilon"), tuple(rows), texts=(0, 1, 2))


def _use_section(request: SetRequest) -> Section:
    """How far counts and sums are from the true ones; an example for the table with the most noise."""
    noisiest = max((table.mechanism for table in request.tables), key=lambda each: each.scale)
    several = "" if len(request.tables) == 1 else "in the table with the most noise, "
    facts = Facts(tuple(use_facts(noisiest, several)))
    margins = (
        "The tables have independent noise, so that their common totals differ. Of two tables that both tell a total, "
        "take the one with less noise, and the one that adds up fewer counts."
    )
    blocks: tuple[Block, ...] = (precision_table(request), facts, *((Words((margins,)),) if several else ()))
    return Section("use", "How to use the counts", (), blocks)
