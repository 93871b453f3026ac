"""Risk along epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.figure_panels import CHANCE, RAW, draw_figure_panel, list_kinds, make_key, title_of_figures
from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import (
    COLOURS,
    DASHES,
    GREY,
    INK,
    TINY,
    area_sample,
    brief,
    epsilon_axis,
    finish,
    house_style,
    level_sample,
    risk_axis,
    sample,
    show_values,
    start_figure,
)
from cellrisk.system.text import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.curves import Line, RiskCurve
    from cellrisk.risk.figure_lines import FigureLines
    from cellrisk.risk.sweep import Limits

MOST_IN_A_PANEL = 6
FORM_DASHES = {"tight": DASHES[0], "exact": DASHES[1], "published": DASHES[2]}
"""The preferred form first."""
FORM_WORDS = {
    "tight": "tight: a person's own\nvalue is read off",
    "exact": "exact: a cell shows\none value alone",
    "published": "published: the paper's\nclosed form",
}
WEIGHT_COLOURS = {"records": COLOURS[0], "uniform": COLOURS[1], None: COLOURS[2]}
WEIGHT_WORDS = {"records": "by records", "uniform": "each cell alike", None: "whole table"}

Part = Callable[["Line"], Any]
Groups = dict[Any, dict[str, "Line"]]
"""Lines that share a colour, by their form."""


@dataclass(frozen=True)
class PanelLayout:
    """How lines are divided among panels and colours. Every sensitive attribute has panels of its own."""

    panel: Part
    """Lines with the same value of this share a panel."""
    colour: Part
    """Lines of a panel with the same value of this share a colour."""
    small: bool = True
    """Whether there are many small panels, up to three in a row."""


SPLITS = (
    PanelLayout(lambda line: (), lambda line: (line.measure, line.setting, line.weights), small=False),
    PanelLayout(lambda line: (line.measure,), lambda line: (line.setting, line.weights)),
    PanelLayout(lambda line: (line.setting.name, line.measure), lambda line: (line.setting.delta, line.weights)),
    PanelLayout(lambda line: (line.setting, line.measure), lambda line: (line.weights,)),
)
"""The first of these that puts no more than six lines into a panel is taken."""


def draw_curve(curve: RiskCurve, at: float = 1.0) -> Figure:
    """The risk along epsilon between its two ends: chance on the left, the raw table's own on the right.

    The title tells the risk at the epsilon that is nearest to ``at``.

    One panel a sensitive attribute; where that would hold more than six lines, one a measure too, and a mechanism or
    a setting. Line style is the form; colour is what else varies within a panel. The figures to decide by are above
    them, in a column for each mechanism and attribute.
    """
    with house_style():
        return CurveDrawing(curve, at=at).draw()


def draw_curve_into(ax: Axes, curve: RiskCurve) -> None:
    """Draws a curve that has one panel into the reader's own axes."""
    drawing = CurveDrawing(curve, inside=True)
    panels = sum(len(each) for each in drawing.panels.values()) + sum(len(list_kinds(each)) for each in curve.figures)
    check_axes(ax, panels, "ask for the curve of one sensitive attribute, one measure and one mechanism")
    with dressed(ax):
        if curve.figures:
            (lines,) = curve.figures
            (kind,) = list_kinds(lines)
            draw_figure_panel(ax, kind, lines, curve.figures, small=True, left=True, bottom=True)
            add_key(ax, make_key(curve.figures))
        else:
            drawing.draw_into(ax)


@dataclass(frozen=True, eq=False)
class CurveDrawing:
    """Draws the lines of one curve. A line has the same colour and style in every panel."""

    curve: RiskCurve
    inside: bool = False
    """Whether every word is written within the axes, as in a figure of the reader's own."""
    at: float = 1.0
    """The epsilon that the title is about, or the nearest to it."""

    @cached_property
    def split(self) -> PanelLayout:
        for split in SPLITS:
            lines = [(line.sensitive, *split.panel(line)) for line in self.curve.lines]
            if max((lines.count(key) for key in lines), default=0) <= MOST_IN_A_PANEL:
                return split
        return SPLITS[-1]

    @cached_property
    def panels(self) -> dict[str, list[list[Line]]]:
        """For each sensitive attribute, its panels: the lines of each."""
        found: dict[str, dict[Any, list[Line]]] = {}
        for line in self.curve.lines:
            found.setdefault(line.sensitive, {}).setdefault(self.split.panel(line), []).append(line)
        return {name: list(panels.values()) for name, panels in found.items()}

    @cached_property
    def colours(self) -> dict[Any, str]:
        keys = list(dict.fromkeys(self.split.colour(line) for line in self.curve.lines))
        if len({key[:-1] for key in keys}) == 1 and (self.split.small or len(keys) > 1):
            return {key: WEIGHT_COLOURS[key[-1]] for key in keys}
        return {key: COLOURS[place % len(COLOURS)] for place, key in enumerate(keys)}

    @cached_property
    def forms(self) -> list[str]:
        return [form for form in FORM_DASHES if any(line.form == form for line in self.curve.lines)]

    def varies(self, part: Part) -> bool:
        return len({part(line) for line in self.curve.lines}) > 1

    def draw(self) -> Figure:
        small, attributes = self.split.small, list(self.panels.values())
        groups = attributes if small else [[panels[0] for panels in attributes]]
        columns = min(3 if small else 2, max(1, *(len(panels) for panels in groups)))
        rows = [panels[start : start + columns] for panels in groups for start in range(0, len(panels), columns)]
        height = 3.0 if len(rows) == columns == 1 else 2.3 if len(rows) == 1 or not small else 1.75
        above = self._figure_rows()
        heights = [1.5 if kind == "ceiling" else 2.1 for kind, _ in above] + [height] * len(rows)
        across = max((len(row) for _, row in above), default=1)
        parts = math.lcm(columns if rows else 1, across)
        figure = start_figure(sum(heights))
        grid = figure.add_gridspec(len(heights), parts, height_ratios=heights)
        self._draw_figures(figure, grid, above, across)
        empty = []
        for number, row in enumerate(rows):
            for column in range(columns):
                wide = parts // columns
                axes = figure.add_subplot(grid[len(above) + number, column * wide : (column + 1) * wide])
                if column >= len(row):
                    axes.set_axis_off()
                    empty.append(axes)
                    continue
                self._draw(axes, row[column])
                below = number + 1 < len(rows) and column < len(rows[number + 1])
                self._dress(axes, row[column], left=column == 0, bottom=not below, wide=columns == 1)
        key = self._key(long=bool(empty))
        if empty and key:
            empty[-1].legend(handles=key, loc="upper left", fontsize=TINY, labelspacing=0.7).set_in_layout(False)
            key = []
        if self.curve.figures:
            key = [*make_key(self.curve.figures), *key]
        few = not small and len(self.curve.leading) <= MOST_IN_A_PANEL and len(self.curve.figures) <= 1
        caption = self.curve.words.split("\n")[0] if few else ""
        finish(figure, title=self._title(), subtitle=self._subtitle(), key=key, caption=caption)
        return figure

    def _figure_rows(self) -> list[tuple[str, list[FigureLines]]]:
        """Rows of panels for the figures to decide by: three columns at most, one kind a row."""
        figures = self.curve.figures
        return [
            (kind, list(figures[start : start + 3]))
            for start in range(0, len(figures), 3)
            for kind in list_kinds(figures[0])
        ]

    def _draw_figures(
        self, figure: Figure, grid: Any, rows: Sequence[tuple[str, list[FigureLines]]], across: int
    ) -> None:
        wide = grid.ncols // across
        for number, (kind, row) in enumerate(rows):
            for column, lines in enumerate(row):
                axes = figure.add_subplot(grid[number, column * wide : (column + 1) * wide])
                kinds = list_kinds(lines)
                last = kind == kinds[-1]
                sides = {"left": column == 0, "bottom": last}
                draw_figure_panel(axes, kind, lines, self.curve.figures, small=across > 1, **sides)
                parts = [brief(lines.sensitive, 18)] if self._several(lambda each: each.sensitive) else []
                parts += [lines.setting.describe()] if self._several(lambda each: each.setting) else []
                if kind == kinds[0]:
                    axes.set_title(", ".join(parts).replace(", delta", ",\ndelta"))

    def _several(self, part: Callable[[FigureLines], Any]) -> bool:
        return len({part(each) for each in self.curve.figures}) > 1

    def draw_into(self, axes: Axes) -> None:
        """The only panel there is, into axes that are there."""
        self._draw(axes, self.curve.lines)
        self._dress(axes, self.curve.lines, left=True, bottom=True, wide=False)
        axes.set_ylabel(f"risk for {brief(self.curve.lines[0].sensitive)}")
        add_key(axes, self._key(long=False))

    def _draw(self, axes: Axes, lines: Sequence[Line]) -> None:
        """The lines, bands and levels of one panel."""
        groups: Groups = {}
        for line in lines:
            groups.setdefault(self.split.colour(line), {})[line.form] = line
        for key, forms in groups.items():
            colour = self.colours[key]
            if "tight" in forms and "exact" in forms:
                tight, exact = forms["tight"], forms["exact"]
                axes.fill_between(tight.epsilon, tight.risk, exact.risk, color=colour, alpha=0.13, linewidth=0)
            for form, line in forms.items():
                dashes = FORM_DASHES[form]
                if len(self.forms) == 1:
                    dashes = DASHES[list(self.colours).index(key) % len(DASHES)]
                marker = "o" if len(line.epsilon) <= 12 else ""
                (artist,) = axes.plot(line.epsilon, line.risk, color=colour, linestyle=dashes, marker=marker)
                artist.set(
                    linewidth=1.1 if self.split.small else 1.6, markersize=3, label=line.name, clip_on=not marker
                )
        leading = {key: forms[min(forms, key=list(FORM_DASHES).index)] for key, forms in groups.items()}
        for level in {round(line.limits.raw, 6): line.limits.raw for line in lines}.values():
            axes.axhline(level, color=GREY, linewidth=0.7, linestyle=RAW, zorder=1.5)
        for level in {round(line.limits.chance, 6): line.limits.chance for line in leading.values()}.values():
            axes.axhline(level, color=GREY, linewidth=0.7, linestyle=CHANCE, zorder=1.5)
        if len(groups) == 1 and not self.split.small:
            ((key, line),) = leading.items()
            show_values(axes, line.epsilon, line.risk, self.colours[key])

    def _name(self, key: Any, among: Sequence[Any]) -> str:
        """What the lines of one colour have that those of the other colours in the panel have not, in words."""
        words = []
        for place, part in enumerate(key):
            if len({each[place] for each in among if each[place] is not None}) < 2:
                continue
            if place == len(key) - 1:
                words.append(WEIGHT_WORDS[part])
            elif isinstance(part, float):
                words.append(f"delta {part:g}" if part else "no delta")
            else:
                words.append(part.replace("_", " ") if isinstance(part, str) else part.describe().replace(", ", "\n"))
        return ", ".join(words)

    def _dress(self, axes: Axes, lines: Sequence[Line], *, left: bool, bottom: bool, wide: bool) -> None:
        """Axes and title of a panel; those of one attribute share their scale."""
        same = [line for line in self.curve.lines if line.sensitive == lines[0].sensitive]
        largest = max(max(float(line.risk.max()), line.limits.raw, line.limits.chance) for line in same)
        risk_axis(axes, largest, "risk" if left else "")
        words = "epsilon (smaller: more noise, more private)" if wide and not self.split.small else "epsilon"
        epsilon_axis(axes, *_ends(self.curve.lines), words if bottom else "")
        axes.tick_params(labelbottom=bottom, labelleft=left or not self.split.small)
        if self.split.small:
            axes.tick_params(labelsize=TINY)
            axes.minorticks_off()
        parts = (
            [brief(lines[0].sensitive, 18 if self.split.small else 36)]
            if self.varies(lambda line: line.sensitive)
            else []
        )
        if self.split.small:
            if len({self.split.panel(line)[0] for line in same}) > 1 and len(self.split.panel(lines[0])) > 1:
                settings = {line.setting for line in lines}
                parts.append(lines[0].setting.describe() if len(settings) == 1 else lines[0].setting.name)
            if self.varies(lambda line: line.measure):
                parts.append(lines[0].measure.replace("_", " "))
        if not self.inside:
            axes.set_title(", ".join(parts))

    def _key(self, long: bool) -> list[Any]:
        """The entries of the key: what colours and line styles mean, and the two ends of the risk."""
        if not self.curve.lines:
            return []
        handles = []
        if len(self.colours) > 1:
            dashes = DASHES if len(self.forms) == 1 else ("-",) * len(DASHES)
            for place, (key, colour) in enumerate(self.colours.items()):
                words = self._name(key, list(self.colours)).replace("\n", ", ")
                handles.append(sample(words, colour, dashes[place % len(dashes)], 1.8))
        if len(self.forms) > 1:
            handles += [sample(FORM_WORDS[form] if long else form, INK, FORM_DASHES[form]) for form in self.forms]
        if {"tight", "exact"} <= set(self.forms) and not long:
            handles.append(area_sample("between tight and exact", "#CFCFCF"))
        chances = sorted({line.limits.chance for line in self.curve.leading})
        raws = sorted({line.limits.raw for line in self.curve.leading})
        handles.append(level_sample(f"chance {_span(chances)}", CHANCE))
        return [*handles, level_sample(f"raw table {_span(raws)}", RAW)]

    def _title(self) -> str:
        """The message: the risk at an epsilon that every setting has, the nearest to the one that is asked for."""
        if self.curve.figures:
            return title_of_figures(self.curve)
        leading = self.curve.leading
        common = set(leading[0].epsilon.tolist()).intersection(*(line.epsilon.tolist() for line in leading))
        if not common:
            return "Risk along epsilon"
        epsilon = min(common, key=lambda each: abs(float(np.log(each / self.at))))
        short = len({line.setting.name for line in leading}) == len({line.setting for line in leading})
        told = []
        for line in leading:
            who = [line.sensitive] if len(leading) == 1 or self.varies(lambda line: line.sensitive) else []
            if len(leading) > 1 and self.varies(lambda line: line.setting):
                who.append(line.setting.name if short else line.setting.describe())
            told.append((", ".join(who), line.at(epsilon), line.limits))
        return title_of_risks(epsilon, told, most=4)

    def _subtitle(self) -> str:
        """What all lines have in common, and the table."""
        table = self.curve.table
        if not self.curve.lines:
            settings = {each.setting.describe() for each in self.curve.figures}
            noise = f"{settings.pop()} noise; " if len(settings) == 1 else ""
            return f"{noise}{number_of(table.n_records, 'person')} in {number_of(table.n_cells, 'cell')}"
        first = self.curve.lines[0]
        parts: list[tuple[Part, str]] = [
            (lambda line: line.measure, f"{first.measure.replace('_', ' ')} risk"),
            (lambda line: line.form, first.form),
            (lambda line: line.weights, WEIGHT_WORDS[first.weights]),
        ]
        mixed = any(self.varies(part) for part, _ in parts)
        parts.append((lambda line: line.setting, first.setting.describe()))
        words = [word for part, word in parts if not self.varies(part)]
        if self.varies(lambda line: line.measure):
            words.insert(0, "risk")
        about = f"{', '.join(words)}; {number_of(table.n_records, 'record')} in {number_of(table.n_cells, 'cell')}"
        mixed = mixed and not self.curve.figures
        return f"{about}. In the title: {self.curve.leading[0].name}" if mixed else about


def title_of_risks(epsilon: float, told: Sequence[tuple[str, float, Limits]], most: int) -> str:
    """The risk at an epsilon, of whom and between which ends; of several each, or from the least to the greatest."""
    if len(told) == 1:
        ((who, risk, ends),) = told
        return (
            f"At epsilon {claim(epsilon)} the risk for {who} is {percent(risk)} "
            f"(chance {percent(ends.chance)}, raw table {percent(ends.raw)})"
        )
    if len(told) > most:
        least, greatest = (percent(choose(risk for _, risk, _ in told)) for choose in (min, max))
        return f"At epsilon {claim(epsilon)} the risk lies between {least} and {greatest}"
    return f"Risk at epsilon {claim(epsilon)}: {'; '.join(f'{who} {percent(risk)}' for who, risk, _ in told)}"


def _ends(lines: Sequence[Line]) -> tuple[float, float]:
    return min(float(line.epsilon[0]) for line in lines), max(float(line.epsilon[-1]) for line in lines)


def _span(levels: Sequence[float]) -> str:
    """One level, or the lowest and the highest of several."""
    low, high = percent(levels[0]), percent(levels[-1])
    return low if low == high else f"{low} to {high}"
