"""How what a set of tables gives away grows as its tables are added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellrisk.show.pictures.own_axes import check_axes, dressed
from cellrisk.show.pictures.style import (
    COLOURS,
    INK,
    PALE,
    bar_axis,
    brief,
    finish,
    house_style,
    start_figure,
    write_beside,
)
from cellrisk.system.text import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.repeat.together import TogetherAssessment

ROW = 0.36
"""Inches for a table: a bar of the tables so far, and one of the table alone."""
PANELS: tuple[tuple[str, str], ...] = (
    ("caused", "Because of their own records"),
    ("right", "Named rightly at all"),
)
CAPTION = "By elimination. Dark: the table with all above it. Pale: the table by itself."


def draw_together(found: TogetherAssessment) -> Figure:
    """People given away by the first table, by the first two, and so on; beside each what the table does by itself."""
    with house_style():
        figure = start_figure(ROW * len(found.tables) + 0.75)
        grid = figure.subplots(1, 2, sharey=True)
        for axes, (name, title) in zip(grid, PANELS, strict=True):
            _draw(axes, found, name)
            axes.set_title(title)
        finish(figure, title=_title(found), subtitle=_subtitle(found), caption=CAPTION)
        return figure


def draw_together_into(ax: Axes, found: TogetherAssessment) -> None:
    """The first panel: people given away because of their own records."""
    check_axes(ax)
    with dressed(ax):
        _draw(ax, found, "caused")


def _draw(axes: Axes, found: TogetherAssessment, name: str) -> None:
    places = range(len(found.tables))
    names = [f"{each.table.number}: {brief(each.table.name or each.table.describe(), 34)}" for each in found.tables]
    alone = [float(getattr(each.alone, name)) for each in found.tables]
    together = [found.collections.get(tuple(range(1, place + 2))) for place in places]
    so_far: list[float | None] = [None if each is None else float(getattr(each, name)) for each in together]
    largest = max([*alone, *(each for each in so_far if each is not None)], default=0.0)
    for place, number in enumerate(so_far):
        if number is not None:
            axes.barh(place - 0.16, number, height=0.4, color=COLOURS[0])
            _write(axes, number, place - 0.16, largest)
    axes.barh([place + 0.24 for place in places], alone, height=0.24, color=PALE)
    bar_axis(axes, names)
    axes.set_xlim(0.0, 1.2 * largest if largest > 0 else 1.0)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("people")


def _write(axes: Axes, number: float, place: float, largest: float) -> None:
    told = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
    offset, side, colour = (-3, "right", "white") if number > 0.3 * largest else (3, "left", INK)
    write_beside(axes, told, (number, place), (offset, 0), ha=side, va="center", color=colour)


def _title(found: TogetherAssessment) -> str:
    lead = found.rule()
    few = len(found.tables) == 1
    return (
        f"{'The table gives' if few else f'Together the {len(found.tables)} tables give'} away {lead.caused:,.3g} of "
        f"{number_of(found.records, 'person')} because of their own records"
    )


def _subtitle(found: TogetherAssessment) -> str:
    delta = f" at delta {claim(found.cost.delta)}" if found.cost.delta else ""
    share = percent(found.rule().caused / found.records)
    return (
        f"{brief(found.sensitive, 40)}; {share} of the people; the set costs epsilon {claim(found.cost.epsilon)}{delta}"
    )
