"""What a report tells the public: a statement of what was published, under which guarantee, and how to use it.

No figure in it was computed from the raw data, but for an epsilon that was chosen from them, which it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

from cellrisk.decide.choosing import WITHOUT_DATA
from cellrisk.decide.policy import CHECKED
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import Precision, find_precision
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.show.reporting.basis import basis_section, mechanism_section
from cellrisk.show.reporting.blocks import Block, Bullets, Facts, Page, Section, Words
from cellrisk.show.reporting.decision import Decision
from cellrisk.show.reporting.records import list_unprotected
from cellrisk.show.reporting.verdict import public_verdict
from cellrisk.system.text import claim, make_sentence

if TYPE_CHECKING:
    from cellrisk.repeat.together.costs import Cost

FOR_THE_PUBLIC = "For the public: figures computed from the raw data are withheld."
WITHHELD = (
    "Figures computed from the raw data are withheld, because they are not differentially private: the numbers of "
    "records and cells, the risks before and after noise, the people exposed, the sizes of cells, and every value that "
    "describes a cell."
)
EXCEPT_FIGURE = "The one figure above has noise and an epsilon of its own, and may be published."
CHOSEN = (
    "Epsilon was chosen from the data, so the choice itself discloses something about them; the guarantee does "
    "not cover it. A choice that is covered is made by: cellrisk choose --private."
)
GIVEN = "Epsilon was given beforehand."
PROMISE = (
    "{} differential privacy with {}: whatever is read in {} is at most {} times as likely as if one record {}{}, and "
    "the other way round. {}; it does not say that nothing can be learnt about people in general, which is what a "
    "table is for."
)
FOR_EVER = "That holds against every attack, with any knowledge, for ever"
EXCEPT = ", except for what is named below as not covered by the guarantee"
NOT_IN_FIGURE = " What the guarantee does not cover is not in this figure."
FOR_A_GIVEN_EPSILON = "That holds for a given epsilon; this one was chosen from the data, which it does not cover"
ATTACK = "homogeneity: a cell that shows one value alone gives it away for everybody in it"
EXAMPLE_COUNT, EXAMPLE_SUM = 40, 25


def public_page(decision: Decision) -> Page:
    """The document for the public."""
    request = decision.request
    mechanism = None if decision.epsilon is None else decision.setting.with_epsilon(decision.epsilon)
    used: tuple[Section, ...] = ()
    if mechanism is not None:
        used = (_guarantee_section(decision, mechanism), _use_section(mechanism))
    limit = request.describe_limits() or "none"
    return Page(
        title=request.title or f"Privacy statement for {request.table_name}",
        about=request.about,
        banner=FOR_THE_PUBLIC,
        first="What was published",
        decision=_describe(decision),
        verdict=public_verdict(decision),
        sections=(
            *used,
            policy_section(ATTACK, limit, ("Risk that was measured", decision.described_risk)),
            *_figure_sections(decision),
            _withheld_section(decision),
            basis_section(request),
            mechanism_section(decision),
        ),
    )


def _describe(decision: Decision) -> str:
    setting, table, several = decision.setting, decision.request.table_name, len(decision.request.table.sensitive) > 1
    named = f"The frequency {'tables' if several else 'table'} of {table}"
    if decision.epsilon is None:
        return f"{named} {'were' if several else 'was'} not published: {decision.why_none}."
    delta = "" if setting.pure else f" and delta {claim(setting.delta)}"
    return (
        f"{named}, with {setting.name} noise on every count, {'each ' if several else ''}at epsilon "
        f"{decision.epsilon:.12g}{delta}."
    )


def _guarantee_section(decision: Decision, mechanism: Mechanism) -> Section:
    """The guarantee of the table, or of the tables of several sensitive attributes together."""
    tables = len(decision.request.table.sensitive)
    covered, chosen, neighbours = list_unprotected(decision) == "none", decision.chosen_from_data, mechanism.neighbours
    if tables == 1:
        highest: Ceiling | None = ceiling(mechanism)
        return guarantee_section(
            "The table keeps", mechanism, "it", neighbours, highest, chosen=chosen, covered=covered
        )
    from cellrisk.repeat.together.costs import find_cost, try_ceiling

    every = [mechanism] * tables, [tuple(range(tables))]
    cost, (highest, _) = find_cost(*every), try_ceiling(*every, labels=2)
    keep = "Together the tables keep"
    return guarantee_section(keep, cost, "them", neighbours, highest, chosen=chosen, covered=covered)


def guarantee_section(
    keeps: str,
    loss: Mechanism | Cost,
    them: str,
    neighbours: str,
    highest: Ceiling | None,
    *,
    chosen: bool = False,
    covered: bool = True,
) -> Section:
    """What the guarantee promises to a person, in words, and the ceiling, which takes no record to compute.

    ``keeps`` is the beginning of the sentence, such as "The table keeps", and ``them`` what is read in. P(S) <=
    e^epsilon P'(S) + delta for every set S of outcomes, and the other way round. There is no ceiling if epsilon was
    ``chosen`` from the data; both are qualified if not everything that is published is ``covered``.
    """
    delta = "" if not loss.delta else f" and delta {claim(loss.delta)}"
    more = "" if not loss.delta else f", plus a probability of {claim(loss.delta)}"
    changed = "were left out" if neighbours == "add-remove" else "held other values"
    factor = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(loss.epsilon).exp())
    times = f"{factor:,f}" if factor < 10**9 else f"{factor:e}"
    holds = FOR_A_GIVEN_EPSILON if chosen else FOR_EVER if covered else f"{FOR_EVER}{EXCEPT}"
    said = PROMISE.format(keeps, f"epsilon {loss.epsilon:.12g}{delta}", them, times, changed, more, holds)
    beside = "" if covered else NOT_IN_FIGURE
    lead = () if highest is None or chosen else (f"{highest.of_two}{beside}",)
    return Section("guarantee", "What the guarantee means", lead, (Words((said,)),))


def _use_section(mechanism: Mechanism) -> Section:
    """How far counts and sums are from the true ones, with an example."""
    found = find_precision(mechanism)
    lead = (
        f"A published count is within {found.within:,} of the true one in at least 95 of 100 cases, unless it was so "
        "small that it became zero."
    )
    error = ("Error of a count", f"Standard deviation {found.sd:.3g}, the same for small and large counts.")
    return Section("use", "How to use the counts", (lead,), (Facts((error, *use_facts(mechanism))),))


def use_facts(mechanism: Mechanism, of: str = "") -> Iterator[tuple[str, str]]:
    """What somebody has to know who adds counts up, or reads small ones; ``of`` says whose counts the numbers are."""
    found = find_precision(mechanism)
    of_sum = 2.0 * found.of_sum(EXAMPLE_SUM)
    low, high = max(EXAMPLE_COUNT - found.within, 0), EXAMPLE_COUNT + found.within
    yield (
        "Error of a sum",
        f"Noises are independent: {of}the standard deviation of a sum of m counts is {found.sd:.3g} times the root of "
        "m. Add up as few counts as possible: a total that is published itself is better than a sum.",
    )
    small = _describe_small(found)
    yield "Small counts", make_sentence(f"{of}{small[0].lower()}{small[1:]}", "") if of else small
    yield (
        "For example",
        f"{make_sentence(f'{of}a published count', '')} of {EXAMPLE_COUNT} stands for a true one from {low:,} to "
        f"{high:,}. A sum of {EXAMPLE_SUM} such counts is off by more than {of_sum:,.0f} in about one case of 20.",
    )


def _describe_small(found: Precision) -> str:
    zero = f"a true count of 0 is published as {_say_mean(found.at_zero)}"
    if not found.hidden:
        return (
            f"Counts that noise has made negative are published as zero. On average {zero}, so sums over many small "
            "counts come out too high."
        )
    return (
        f"Noisy counts below {found.hidden + 1:,} are published as zero. On average {zero}, and one of "
        f"{found.hidden:,} as {_say_mean(found.at_hidden)}. Such differences add up in sums over many small counts."
    )


def _say_mean(count: float) -> str:
    return "under 0.001" if count < 0.001 else f"{count:.2g}" if count < 9.95 else f"{count:,.0f}"


def policy_section(attack: str, limit: str, *measured: tuple[str, str]) -> Section:
    """Which attack was considered, what was measured of it, and which limit had to be met."""
    facts = Facts((("Attack considered", attack), *measured, ("Limit that had to be met", limit)))
    return Section("policy", "What was measured and required", (), (facts,))


def _figure_sections(decision: Decision) -> tuple[Section, ...]:
    """How risky the release is, if a figure with noise of its own was asked for."""
    published = decision.request.published
    if published is None:
        return ()
    return (Section("figure", "How risky the release is", (published.headline,), (Bullets(published.statements),)),)


def _withheld_section(decision: Decision) -> Section:
    notes = []
    if decision.chosen_from_data:
        notes.append(CHOSEN)
    elif decision.limits_use_data:
        notes.append(CHECKED)
    notes += decision.request.disclosures
    unprotected = list_unprotected(decision)
    withheld = WITHHELD if decision.request.published is None else f"{WITHHELD} {EXCEPT_FIGURE}"
    more = () if unprotected is None else (Facts((("Not covered by the guarantee", unprotected),)),)
    otherwise = GIVEN if decision.request.epsilon is not None else WITHOUT_DATA
    return withheld_section(withheld, notes, otherwise, *more)


def withheld_section(withheld: str, notes: Sequence[str], otherwise: str, *more: Block) -> Section:
    """What is not told; then notes on what was taken from the data, or what is said where there is none."""
    told: Block = Bullets(tuple(notes)) if notes else Words((otherwise,))
    return Section("withheld", "What is withheld, and what the choice discloses", (withheld,), (told, *more))
