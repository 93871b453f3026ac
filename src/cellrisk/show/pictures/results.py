"""Pictures of other results: sizes of groups, releases one after another, sets of tables, and equal risk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import SIZE_CLASSES, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    ALARM,
    CALM,
    COLOURS,
    DASHES,
    GREY,
    PALE,
    TEXT,
    TINY,
    WEIGHT_COLOURS,
    WEIGHT_WORDS,
    brief,
    epsilon_axis,
    risk_axis,
    write_beside,
)
from cellrisk.show.wording.assessment import compare
from cellrisk.show.wording.attackers import own_of
from cellrisk.system.arrays import Integers
from cellrisk.system.formatting import claim, number_of, percent, say_people

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.counts.table import Attribute, FrequencyTable
    from cellrisk.repeat.sequences import RiskSequence
    from cellrisk.repeat.together import TogetherAssessment
    from cellrisk.risk.perturbed import EqualRisk, PerturbedAssessment

Bins = Sequence[tuple[int, int | None]]
"""First and last size of each bar; None where a bar has no end."""
MOST_NAMED = 8
AT_CUMULATIVE_LOSS = (
    "Each attribute is assessed at the cumulative loss of its release; what was revealed stays revealed."
)
ROW = 0.36
"""Inches for a table: a bar of the tables so far, and one of the table alone."""
PANELS = {"caused": "Because of their own records", "right": "Named correctly at all"}
BY_ELIMINATION = "By elimination. Dark: the table with all above it. Pale: the table by itself."


@drawn
def draw_sizes(table: FrequencyTable, inside: bool) -> Picture:
    """How many cells hold one person, two, three and so on, and in how many of them all share one value.

    A panel for each sensitive attribute; sizes are put together as in the text of `inspect`.
    """
    first, *more = table.attributes
    bins = [each for each in SIZE_CLASSES if each[0] <= int(first.profiles.sizes[0][-1])]
    unique, one = first.profiles.n_unique, "person" if table.unit.contributions == 1 else "record"
    people = number_of(table.n_records, one)
    return Picture(
        [partial(_draw_sizes, attribute=each, bins=bins, title=bool(more)) for each in table.attributes],
        [1.9 if more else 2.6] * (1 + len(more)),
        title=f"{unique:,} of {number_of(table.n_cells, 'group')} {'hold' if unique != 1 else 'holds'} one {one}",
        subtitle=f"{people} in {number_of(table.n_cells, 'group')}"
        if more
        else f"In {number_of(first.profiles.n_homogeneous, 'group')} all {table.revealed_name} share one value of "
        f"{first.name}: they hold {first.profiles.n_exposed:,} of {people} ({percent(first.exposed_share)})",
        alone="tabulate with one sensitive attribute",
    )


def _draw_sizes(axes: Axes, attribute: Attribute, bins: Bins, title: bool) -> None:
    """The bars of one attribute, with their numbers."""
    alike, mixed = (_count(attribute.profiles, bins, homogeneous) for homogeneous in (True, False))
    places = np.arange(len(bins))
    axes.bar(places, alike, color=ALARM, width=0.78, label="homogeneous: one value")
    axes.bar(places, mixed, bottom=alike, color=CALM, width=0.78, label="heterogeneous: several values")
    for place, total in zip(places.tolist(), (alike + mixed).tolist(), strict=True):
        if total:
            write_beside(axes, f"{total:,}", (place, total), (0, 2), ha="center", size=TINY)
    axes.set_xticks(places, [_name_size(low, high) for low, high in bins], size=TINY)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("groups")
    axes.set_xlabel("people in the group")
    axes.set_ylim(0, 1.13 * max(1, int((alike + mixed).max())))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="y", integer=True, nbins=5)
    axes.grid(axis="y")
    if title:
        axes.set_title(f"{brief(attribute.name)}: {percent(attribute.exposed_share)} of people in homogeneous groups")


def _count(profiles: Profiles, bins: Bins, homogeneous: bool) -> Integers:
    """Cells in each bar, of those whose people share one value or of the others."""
    total = np.zeros(len(bins), np.int64)
    starts = np.array([low for low, _ in bins])
    for block in profiles.blocks:
        if (block.counts.shape[1] == 1) == homogeneous:
            np.add.at(total, np.searchsorted(starts, block.sizes, side="right") - 1, block.cells)
    return total


def _name_size(low: int, high: int | None) -> str:
    short = [f"{number:,}" if number < 10_000 else f"{number:.0e}".replace("e+0", "e") for number in (low, high or 0)]
    if high is None:
        return f"{short[0]}\nor more"
    return short[0] if low == high else f"{short[0]}\u2013\n{short[1]}"


@drawn
def draw_sequence(sequence: RiskSequence, inside: bool) -> Picture:
    """The overall risk after each release, along the cumulative epsilon: of the riskiest attribute of each cell.

    Beside it the people revealed because of their own record, and the attribute of each release on its own.
    """
    last = sequence.rows[-1]
    delta = f", delta {claim(last.cumulative.delta)}" if last.cumulative.delta else ""
    riskiest = "the attribute most at risk in each group, " if len(sequence.attributes) > 1 else ""
    return Picture(
        [partial(_draw_sequence, sequence=sequence)],
        [2.6],
        title=f"After {number_of(len(sequence.rows), 'release')}, at a cumulative epsilon of "
        f"{claim(last.cumulative.epsilon)}{delta}, the overall risk is {percent(last.overall.max_records)}",
        subtitle=f"{sequence.measure.replace('_', ' ')} risk, {sequence.form}; "
        f"{number_of(sequence.n_records, 'record')} in {number_of(last.cells, 'group')}; in the title: {riskiest}by "
        "records",
        caption=AT_CUMULATIVE_LOSS,
    )


def _draw_sequence(axes: Axes, sequence: RiskSequence) -> None:
    rows = sequence.rows
    x = np.array([row.cumulative.epsilon for row in rows])
    largest = 0.0
    for weights, dashes in (("records", DASHES[0]), ("uniform", DASHES[1])):
        risks = np.array([row.overall.value("max", weights) for row in rows])
        look: dict[str, Any] = {"color": WEIGHT_COLOURS[weights], "linestyle": dashes}
        label = f"{WEIGHT_WORDS[weights]}, at last {percent(float(risks[-1]))}"
        axes.plot(x, risks, linewidth=1.6, marker="o", markersize=3.5, label=label, **look)
        largest = max(largest, float(risks.max()))
    if sequence.attributes:
        caused = np.array([row.overall_caused.value("max") for row in rows])
        axes.fill_between(x, 0.0, caused, color=ALARM, alpha=0.25, linewidth=0, zorder=2)
        label = f"because of their own record, at last {percent(float(caused[-1]))}"
        axes.plot(x, caused, color=ALARM, linewidth=1.6, label=label)
    alone = [(at, row.records, row.name) for at, row in zip(x.tolist(), rows, strict=True) if row.records is not None]
    for at, risk, name in alone:
        look = {"color": GREY, "markerfacecolor": "white", "linestyle": "none"}
        axes.plot(at, risk, marker="D", markersize=4.5, zorder=3.2, label="the attribute released", **look)
        if len(alone) <= MOST_NAMED:
            write_beside(axes, brief(name, 16), (at, risk), (0, -5), ha="center", va="top", size=TINY)
    several = len(sequence.attributes) > 1
    risk_axis(
        axes,
        max([largest, *(risk for _, risk, _ in alone)]),
        "overall risk (attribute most at risk)" if several else "overall risk",
    )
    axes.set_xlim(0.0, 1.04 * float(x.max()))
    axes.set_xlabel("cumulative epsilon")


@drawn
def draw_together(found: TogetherAssessment, inside: bool) -> Picture:
    """People revealed by the first table, by the first two, and so on; beside each what the table does by itself."""
    lead, many = found.rule(), len(found.tables)
    delta = f" at delta {claim(found.cost.delta)}" if found.cost.delta else ""
    return Picture(
        [partial(_draw_set, found=found, name=name, title="" if inside else title) for name, title in PANELS.items()],
        [ROW * many + 0.75],
        columns=2,
        one_scale=True,
        title=f"{'The table reveals' if many == 1 else f'Together the {many} tables reveal'} "
        f"{own_of(lead.caused, found.records)} because of their own records",
        subtitle=f"{brief(found.sensitive, 40)}; the set costs epsilon {claim(found.cost.epsilon)}{delta}",
        caption=BY_ELIMINATION,
    )


def _draw_set(axes: Axes, found: TogetherAssessment, name: str, title: str) -> None:
    places = range(len(found.tables))
    names = [f"{each.table.number}: {brief(each.table.name or each.table.describe(), 34)}" for each in found.tables]
    alone = [float(getattr(each.alone, name)) for each in found.tables]
    together = [found.collections.get(tuple(range(1, place + 2))) for place in places]
    so_far = {place: float(getattr(each, name)) for place, each in enumerate(together) if each is not None}
    largest = max([*alone, *so_far.values()], default=0.0)
    bars = axes.barh([place - 0.16 for place in so_far], list(so_far.values()), height=0.4, color=COLOURS[0])
    axes.bar_label(bars, [say_people(number) for number in so_far.values()], padding=3)
    axes.barh([place + 0.24 for place in places], alone, height=0.24, color=PALE)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.set_xlim(0.0, 1.2 * largest if largest > 1e-9 else 1.0)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("people")
    if title:
        axes.set_title(title)


@drawn
def draw_equal_risk(found: PerturbedAssessment, inside: bool) -> Picture:
    """People revealed because of their own record: the mechanism along epsilon, the perturbation as a level line."""
    every = [figures.equal for figures in found.figures if figures.equal is not None]
    if not every:
        raise InvalidInput("there is no comparison to draw", fix="assess with compare='geometric'")
    equal, name = every[0], found.perturbation.name
    subtitle = f"{name} lies {percent(equal.distance)} of the records away from the true table"
    if equal.mechanism_distance is not None:
        subtitle += f", {equal.mechanism} noise at epsilon {equal.epsilon:g} {percent(equal.mechanism_distance)}"
    return Picture(
        [partial(_draw_equal, equal=equal, name=name)] * (len(found.figures) if inside else 1),
        [2.8],
        title=compare(equal),
        subtitle=subtitle,
        alone="assess a table with one sensitive attribute",
    )


def _draw_equal(axes: Axes, equal: EqualRisk, name: str) -> None:
    epsilons, people = zip(*equal.scanned, strict=True)
    axes.plot(epsilons, people, color=CALM, label=f"{equal.mechanism}: people revealed because of their own record")
    axes.axhline(equal.figure, color=ALARM, linestyle=(0, (4, 2)), label=name)
    for low, high in equal.ranges:
        axes.axvspan(low, high, color=CALM, alpha=0.1, linewidth=0)
    if equal.epsilon is not None:
        at = (equal.epsilon, float(np.interp(equal.epsilon, epsilons, people)))
        axes.plot(*at, "o", color=ALARM, markersize=5)
        write_beside(axes, f"epsilon {equal.epsilon:g}", at, (-6, 6), ha="right", size=TEXT)
    axes.set_ylabel("people")
    axes.set_ylim(0, 1.12 * max(*people, equal.figure, 1.0))
    axes.yaxis.set_major_formatter("{x:,g}")
    epsilon_axis(axes, epsilons[0], epsilons[-1])
    axes.grid(axis="y")
