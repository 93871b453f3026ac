"""Sheets of small panels: risk along epsilon, as the paper's figures show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON
from cellrisk.show.pictures.curves import FORM_DASHES, WEIGHT_COLOURS, WEIGHT_WORDS, join_levels
from cellrisk.show.pictures.labels import Label, place_labels
from cellrisk.show.pictures.style import (
    COLOURS,
    DASHES,
    GREY,
    INK,
    TEXT,
    TINY,
    epsilon_axis,
    finish,
    house_style,
    plain,
    risk_axis,
    sample,
    start_figure,
    wrap,
)
from cellrisk.system.text import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.paper.panels import Panel, Sheet
    from cellrisk.risk.curves import Line

RAMP = ("#93C4E5", "#2E86C1", "#0A3A5E")
"""The colours from the smallest delta to the largest: light to dark."""
WITHOUT_DELTA = INK
ROW = 1.85
"""Inches for a row of panels."""
COLUMNS = 3
ASPECTS: dict[str, Callable[[Line], Any]] = {
    "attack": lambda line: line.attack,
    "measure": lambda line: line.measure,
    "mechanism": lambda line: line.setting.name,
    "weights": lambda line: line.weights,
    "form": lambda line: line.form,
}
"""What lines of a panel may differ in, besides delta. Colours show delta, or else the first of these that differs."""


def shade(deltas: Sequence[float]) -> dict[float, str]:
    """A colour for each delta, the larger the darker; ink where there is none.

    >>> shade([0.1, 0.001, 0.0])
    {0.0: '#222222', 0.001: '#93c4e5', 0.1: '#0a3a5e'}
    """
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    ramp = LinearSegmentedColormap.from_list("deltas", RAMP)
    positive = sorted({delta for delta in deltas if delta > 0})
    places = np.linspace(0.0, 1.0, len(positive)) if len(positive) > 1 else [0.5]
    found = {0.0: WITHOUT_DELTA} if 0.0 in deltas else {}
    return found | {delta: to_hex(ramp(place)) for delta, place in zip(positive, places, strict=False)}


def draw_sheet(sheet: Sheet) -> Figure:
    """Risk along epsilon in small panels with the same axes: three in a row, lettered as in the paper.

    Colours run from light to dark with delta; dashes tell measures and forms apart. Thin lines mark the two ends:
    chance, and the raw table. Where a mechanism's guarantee ends, so do its lines, and the rest stays empty.
    The caption is for the page around the picture.
    """
    with house_style():
        panels = sheet.panels
        columns = 2 if len(panels) == 4 else min(COLUMNS, len(panels))
        rows = -(-len(panels) // columns)
        figure = start_figure(ROW * rows if columns > 1 else 1.5 * ROW)
        grid = figure.subplots(rows, columns, squeeze=False)
        styles = LineStyles(panels)
        for number, axes in enumerate(grid.ravel().tolist()):
            if number >= len(panels):
                axes.set_axis_off()
                continue
            _draw_panel(axes, panels[number], styles)
            _dress_panel(
                axes, panels[number], styles, left=number % columns == 0, bottom=number + columns >= len(panels)
            )
            axes.set_title(_fit(figure, _name_panel(sheet, panels[number]), 5.6 / columns))
        finish(figure, title=sheet.title, subtitle=styles.shared, key=styles.key(), note="", between=0.05)
        for axes, panel in zip(grid.ravel().tolist(), panels, strict=False):
            _label_ends(axes, panel)
        return figure


@dataclass(frozen=True, eq=False)
class LineStyles:
    """What colours and dashes mean, which is the same in each panel of a sheet."""

    panels: tuple[Panel, ...]

    @cached_property
    def lines(self) -> list[Line]:
        return [line for panel in self.panels for line in panel.lines]

    def _varies(self, part: Callable[[Line], Any]) -> bool:
        """Whether lines within one panel differ in this."""
        return any(len({part(line) for line in panel.lines} - {None}) > 1 for panel in self.panels)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the largest epsilon of every panel."""
        least = min(float(line.epsilon[0]) for line in self.lines)
        largest = max(float(line.epsilon[-1]) for line in self.lines)
        return min(least, LEAST_EPSILON), max(largest, LARGEST_EPSILON)

    @cached_property
    def by_delta(self) -> bool:
        return self._varies(lambda line: line.setting.delta or None)

    @cached_property
    def shared(self) -> str:
        """What all lines of the sheet have in common, in words."""
        words = []
        for name in ("attack", "measure", "form", "weights", "mechanism"):
            values = {ASPECTS[name](line) for line in self.lines}
            if len(values) == 1:
                words.append(_word(name, values.pop()) + {"measure": " risk", "mechanism": " noise"}.get(name, ""))
        return ", ".join(words)

    @cached_property
    def told(self) -> list[str]:
        """The other aspects in which the lines of a panel differ."""
        return [name for name, part in ASPECTS.items() if self._varies(part)]

    @cached_property
    def dashed(self) -> list[str]:
        """The aspects that dashes show."""
        return self.told if self.by_delta or len(self.told) == 1 else self.told[1:]

    @cached_property
    def colours(self) -> dict[Any, str]:
        if self.by_delta:
            return dict(shade([line.setting.delta for line in self.lines]))
        keys = list(dict.fromkeys(self._colour_key(line) for line in self.lines))
        if self.told and self.told[0] == "weights":
            return {key: WEIGHT_COLOURS[key] for key in keys}
        return {key: COLOURS[place % len(COLOURS)] for place, key in enumerate(keys)}

    @cached_property
    def dashes(self) -> dict[tuple[Any, ...], Any]:
        keys = list(dict.fromkeys(self._dash_key(line) for line in self.lines))
        if self.dashed == ["form"]:
            return {(form,): dashes for form, dashes in FORM_DASHES.items() if (form,) in keys}
        return {key: DASHES[place % len(DASHES)] for place, key in enumerate(keys)}

    def _colour_key(self, line: Line) -> Any:
        if self.by_delta:
            return line.setting.delta
        return ASPECTS[self.told[0]](line) if self.told else None

    def _dash_key(self, line: Line) -> tuple[Any, ...]:
        return tuple(ASPECTS[name](line) for name in self.dashed)

    def style(self, line: Line) -> tuple[str, Any]:
        """Colour and dashes of a line."""
        return self.colours[self._colour_key(line)], self.dashes[self._dash_key(line)]

    def key(self) -> list[Any]:
        """One key for the sheet: a sample a colour, then a sample a dash."""
        if self.by_delta:
            words = {delta: f"delta {delta:g}" if delta else "no delta" for delta in self.colours}
            samples = [sample(words[delta], colour, "-", 2.2) for delta, colour in self.colours.items()]
        elif len(self.told) == 1:
            shown = {self._colour_key(line): self.style(line) for line in self.lines}
            return [sample(_word(self.told[0], key), *style, 1.6) for key, style in shown.items()]
        else:
            samples = [
                sample(_word(self.told[0], key), colour, "-", 2.2)
                for key, colour in (self.colours.items() if self.told else ())
            ]
        if self.dashed:
            for parts, dashes in self.dashes.items():
                words_of_dash = ", ".join(_word(name, part) for name, part in zip(self.dashed, parts, strict=True))
                samples.append(sample(words_of_dash, GREY, dashes))
        return samples


def _word(aspect: str, value: Any) -> str:
    if aspect == "weights":
        return WEIGHT_WORDS[value]
    if aspect == "attack":
        return f"{value} attack"
    return str(value).replace("_", " ")


def _name_panel(sheet: Sheet, panel: Panel) -> str:
    """Letter and title; the reading or experiment too, where panels differ in it and no title says so."""
    words = panel.title
    experiments, readings = (
        {*each} for each in zip(*((one.experiment, one.reading) for one in sheet.panels), strict=True)
    )
    for several, own in ((experiments, panel.experiment), (readings, panel.reading)):
        if len(several) > 1 and own not in words:
            words += f", {own}"
    return f"({panel.letter}) {words}" if panel.letter else words


def _fit(figure: Figure, words: str, inches: float) -> str:
    """A title in lines that fit, broken at its last comma at best."""
    if "\n" not in (lines := wrap(figure, words, TEXT, inches, "bold")):
        return lines
    return wrap(figure, ",\n".join(words.rsplit(", ", 1)), TEXT, inches, "bold")


def _draw_panel(axes: Axes, panel: Panel, styles: LineStyles) -> None:
    for line in panel.lines:
        colour, dashes = styles.style(line)
        marker = "o" if len(line.epsilon) == 1 else ""
        (artist,) = axes.plot(line.epsilon, line.risk, color=colour, linestyle=dashes, linewidth=1.3, marker=marker)
        above = 2.0 + 0.1 * DASHES.index(dashes)  # dashes are seen on a solid line that is the same
        artist.set(markersize=3, zorder=above, label=f"{line.setting.describe()}, {line.name}")
    for level, start, end in _end_lines(panel):
        axes.axhline(level, start, end, color=GREY, linewidth=0.5, alpha=0.7, zorder=1.5, label="_")


def _levels(panel: Panel) -> tuple[list[float], list[float]]:
    """Chance and raw levels, each once; no raw level for a mechanism whose guarantee ends before."""
    chance = {round(line.limits.chance, 6): line.limits.chance for line in panel.lines}
    raw = {round(line.limits.raw, 6): line.limits.raw for line in panel.lines if np.isinf(line.setting.largest_epsilon)}
    return [chance[key] for key in sorted(chance)], [raw[key] for key in sorted(raw)]


def _end_lines(panel: Panel) -> Iterator[tuple[float, float, float]]:
    """The level of each end, and where its line begins and stops: right across the panel, or at one side."""
    chance, raw = _levels(panel)
    for level in chance:
        yield level, 0.0, 1.0 if len(chance) == 1 and raw else 0.3
    for level in raw:
        yield level, 0.0 if len(raw) == 1 else 0.75, 1.0


def _label_ends(axes: Axes, panel: Panel) -> None:
    """The two ends in numbers, each at its own side, once the layout is fixed."""
    chance, raw = _levels(panel)
    low, high = axes.get_xlim()
    labels = []
    for word, levels, prefer, apart, sides in (
        ("raw", raw, 1.0, 0.09, (0.5, 1.0)),
        ("chance", chance, 0.0, 0.15, (0.0, 0.3)),
    ):
        x = np.array([low * (high / low) ** side for side in sides])
        joined = join_levels(levels, apart)
        for least, most in joined:
            words = f"{word} {_span(least, most)}"
            y = np.full(2, most if word == "raw" and (least, most) == joined[-1] else least)
            labels.append(Label(words, x, y, GREY, prefer, size=TINY, must=True))
    drawn = [(line.epsilon, line.risk) for line in panel.lines]
    faint = [(np.array([low, high]), np.full(2, level)) for level in [*chance, *raw]]
    place_labels(axes, labels, drawn, (), faint)


def _span(least: float, most: float) -> str:
    """A share, or two that are told as one.

    >>> _span(0.25, 0.25), _span(0.404, 0.457)
    ('25.0%', '40.4\u201345.7%')
    """
    low, high = percent(least), percent(most)
    return high if low == high else f"{low.rstrip('%')}\u2013{high}"


def _dress_panel(axes: Axes, panel: Panel, styles: LineStyles, *, left: bool, bottom: bool) -> None:
    risk_axis(axes, 1.0, "risk" if left else "")
    epsilon_axis(axes, *styles.ends, "epsilon" if bottom else "")
    axes.minorticks_off()
    axes.tick_params(labelsize=TINY, labelbottom=bottom, labelleft=left)
    end = max(line.setting.largest_epsilon for line in panel.lines)
    if np.isfinite(end):
        axes.axvline(end, color=GREY, linewidth=0.5, alpha=0.7, zorder=1.5, label="_")
        words = f"no guarantee\nfrom epsilon\n{plain(end)} on"
        middle = float(np.sqrt(end * styles.ends[1]))
        axes.text(middle, 0.8, words, size=TINY, color=GREY, ha="center", va="center", linespacing=1.15)
