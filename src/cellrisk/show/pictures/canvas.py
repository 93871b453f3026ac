"""How a picture is put together: panels and the words around them, in a figure of ours or in axes of the reader's."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput, visible
from cellrisk.show.pictures.style import GREY, INK, SMALL, TEXT, TINY, TITLE, WIDTH, house_style
from cellrisk.system.formatting import CURATOR_NOTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARGIN = 0.1
"""Inches around the words."""
CHARACTER, BOLD = 0.52, 1.15
"""The width of a character in units of the font's size, on average, and how much wider bold ones are."""
LEADING = 1.32
"""Line height, in units of the font's size."""

Panel = Callable[["Axes"], None]


@dataclass(frozen=True)
class Picture:
    """Panels, row by row, and the words around them. What has a label in a panel is in the key."""

    panels: Sequence[Panel]
    heights: Sequence[float]
    """Inches of each row."""
    title: str
    subtitle: str = ""
    caption: str = ""
    note: str = CURATOR_NOTE
    columns: int = 1
    """Panels beside each other."""
    one_scale: bool = False
    """Whether the panels of a row have one vertical axis."""
    width: float = WIDTH
    alone: str | None = None
    """How to ask for one panel; None if the first stands for all in the reader's axes."""

    def draw(self) -> Figure:
        """Draw every panel in a figure of ours."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(self.width, sum(self.heights)))
        FigureCanvasAgg(figure)
        places = figure.subplots(
            len(self.heights),
            self.columns,
            sharey=self.one_scale,
            squeeze=False,
            height_ratios=self.heights,
        )
        for axes, panel in zip_longest(places.ravel(), self.panels):
            axes.set_axis_off() if panel is None else panel(axes)
        self._finish(figure)
        return figure

    def _finish(self, figure: Figure) -> None:
        """Write title, subtitle, key, caption and note around the panels, then lay the panels out, once and for good.

        The figure keeps no layout engine: with one, each saving would draw the figure twice.
        """
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        _show_as_written(figure, {})
        width, panels = figure.get_size_inches()
        room = width - 2 * MARGIN
        above = [(wrap(self.title, BOLD * TITLE, room), TITLE, INK, "bold")]
        above += [(wrap(self.subtitle, TEXT, room), TEXT, GREY, "normal")] if self.subtitle else []
        below = [(wrap(self.caption, SMALL, room), SMALL, INK, "normal")] if self.caption else []
        below += [(wrap(self.note, TINY, room), TINY, GREY, "normal")] if self.note else []
        legend = _add_key(figure, figure.axes, room * figure.dpi, columnspacing=1.6)
        key = 0.0 if legend is None else legend.get_window_extent().height / figure.dpi + 0.04
        top, bottom = (sum(_height(text, size) + 0.05 for text, size, *_ in texts) for texts in (above, below))
        height = panels + 2 * MARGIN + top + key + MARGIN + bottom
        figure.set_size_inches(width, height)
        place = _write(figure, above, height - MARGIN)
        if legend is not None:
            legend.set_bbox_to_anchor((MARGIN / width, place / height), transform=figure.transFigure)
        _write(figure, below, bottom)
        inside = (MARGIN / width, (bottom + MARGIN) / height, 1 - 2 * MARGIN / width, panels / height)
        ConstrainedLayoutEngine(rect=inside, w_pad=0.03, h_pad=0.03, wspace=0.02).execute(figure)
        for axes in figure.axes:  # the solver's last digits vary, and names in an SVG are made from all digits
            axes.set_position(tuple(round(edge, 9) for edge in axes.get_position().bounds))


def drawn(build: Callable[..., Picture]) -> Callable[..., Any]:
    """Make a function that draws a result from one that builds its picture.

    The function returns a figure. Given ``ax``, it draws the panel alone into these axes; ``build`` gets ``inside``.
    """

    @wraps(build)
    def draw(result: Any, *more: Any, ax: Axes | None = None, **how: Any) -> Any:
        from matplotlib.text import Text

        if ax is None:
            with house_style():
                return build(result, *more, inside=False, **how).draw()
        _check_axes(ax)
        before = {text: text.get_text() for text in ax.findobj(Text)}
        with house_style():
            picture = build(result, *more, inside=True, **how)
            if picture.alone is not None and len(picture.panels) > 1:
                what = "this picture does not fit into one ax"
                raise InvalidInput(what, got=f"{len(picture.panels)} panels", allowed="1 panel", fix=picture.alone)
            picture.panels[0](ax)
            frame = ax.get_window_extent()
            legend = _add_key(ax, [ax], 0.85 * frame.width, handlelength=1.9, fontsize=TINY)
            if legend is not None:  # room for it above what is drawn
                taken = min(0.5, legend.get_window_extent().height / frame.height)
                low, high = ax.get_ylim()
                ax.set_ylim(low, low + (high - low) / (1.0 - taken))
            _show_as_written(ax, before)
        return ax

    return draw


def _check_axes(ax: Any) -> None:
    """Refuse anything but plain axes before anything is drawn."""
    from matplotlib.axes import Axes

    fix = "after figure, axes = plt.subplots(1, 2) give ax=axes[0]"
    if not isinstance(ax, Axes) or ax.name != "rectilinear" or ax.figure is None:
        got = f"{ax.name} axes" if isinstance(ax, Axes) else type(ax).__name__
        got = "axes that were removed from their figure" if getattr(ax, "figure", ax) is None else got
        raise InvalidInput("ax must be one plain Axes of a figure", got=got, fix=fix, code="axes")


def _show_as_written(drawing: Any, before: dict[Any, str]) -> None:
    """Show every character of the words that are new, and take no dollar sign of a column's name for a formula."""
    from matplotlib.text import Text

    for text in drawing.findobj(Text):
        words = text.get_text()
        if words != before.get(text):
            text.set_text(visible(words))
            text.set_parse_math(False)


def _add_key(place: Any, every: Sequence[Axes], room: float, **look: Any) -> Any:
    """Add a key to what has a label, with as many columns as fit into so many pixels; None if nothing has one."""
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(visible(label), handle)
    legend: Any = None
    for columns in range(len(handles), 0, -1):
        if legend is not None:
            legend.remove()
        legend = place.legend(list(handles.values()), list(handles), loc="upper left", ncols=columns, **look)
        legend.set_in_layout(False)
        if legend.get_window_extent().width <= room:
            break
    return legend


def _write(figure: Figure, texts: Sequence[tuple[str, float, str, str]], place: float) -> float:
    """Write texts below each other (words, size, colour, weight), from so many inches down; return where they end."""
    width, height = figure.get_size_inches()
    for text, size, colour, weight in texts:
        look: dict[str, Any] = {"size": size, "color": colour, "weight": weight}
        figure.text(MARGIN / width, place / height, text, va="top", linespacing=1.15, **look)
        place -= _height(text, size) + 0.05
    return place


def _height(text: str, size: float) -> float:
    return (text.count("\n") + 1) * size * LEADING / 72


def wrap(text: str, size: float, inches: float) -> str:
    """Break a text into lines that fit a width. Line breaks that it has are kept."""
    width = int(inches * 72 / (CHARACTER * size))
    return "\n".join(textwrap.fill(paragraph, width) for paragraph in visible(text).split("\n"))
