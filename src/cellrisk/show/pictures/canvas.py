"""How a picture is put together: panels and the words around them, in a figure of ours or in axes of the reader's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from cellrisk.errors import InvalidInput, visible
from cellrisk.show.pictures.style import GREY, NOTE, SETTINGS, TINY, WIDTH, finish, house_style, start_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_OF_THE_WIDTH = 0.85
"""The widest key in the reader's axes. It leaves a reserve, because a later layout may make them narrower."""

Panel = Callable[["Axes"], None]


@dataclass(frozen=True)
class Picture:
    """Panels, row by row, and the words around them."""

    panels: Sequence[Panel | None]
    """None leaves a place empty."""
    heights: Sequence[float]
    """Inches of each row; ``total`` instead, if the rows have these proportions."""
    title: str
    subtitle: str = ""
    key: Sequence[Any] = ()
    caption: str = ""
    caption_lines: int = 4
    note: str = NOTE
    columns: int | Sequence[int] = 1
    """Panels beside each other, in all rows or in each."""
    share: Literal["x", "y", "all", "none"] = "none"
    total: float | None = None
    width: float = WIDTH
    alone: str | None = None
    """How to ask for one panel; None if the first stands for all in the reader's axes."""

    def draw(self) -> Figure:
        """Draw every panel in a figure of ours."""
        figure = start_figure(sum(self.heights) if self.total is None else self.total, self.width)
        if isinstance(self.columns, int):
            places: Any = figure.subplots(
                len(self.heights),
                self.columns,
                sharex=self.share in ("x", "all"),
                sharey=self.share in ("y", "all"),
                squeeze=False,
                height_ratios=self.heights,
            ).ravel()
        else:
            parts = math.lcm(*self.columns)
            grid = figure.add_gridspec(len(self.heights), parts, height_ratios=self.heights)
            places = [
                figure.add_subplot(grid[row, place * parts // many : (place + 1) * parts // many])
                for row, many in enumerate(self.columns)
                for place in range(many)
            ]
        for axes, panel in zip_longest(places, self.panels):
            axes.set_axis_off() if panel is None else panel(axes)
        words: dict[str, Any] = {"title": self.title, "subtitle": self.subtitle, "key": self.key, "note": self.note}
        finish(figure, **words, caption=self.caption, most_caption_lines=self.caption_lines)
        return figure


def drawn(build: Callable[..., Picture]) -> Callable[..., Any]:
    """Make a function that draws a result from one that builds its picture.

    The function returns a figure. Given ``ax``, it draws the panel alone into these axes; ``build`` gets ``inside``.
    """

    @wraps(build)
    def draw(result: Any, *more: Any, ax: Axes | None = None, **how: Any) -> Any:
        if ax is None:
            with house_style():
                return build(result, *more, inside=False, **how).draw()
        _check_axes(ax)
        theirs = {side: _read_ticks(f"{side}tick") for side in ("x", "y")}
        with _words_as_they_are(ax), house_style():
            picture = build(result, *more, inside=True, **how)
            many = sum(panel is not None for panel in picture.panels)
            if picture.alone is not None and many > 1:
                what = "this picture does not fit into one ax"
                raise InvalidInput(what, got=f"{many} panels", allowed="1 panel", fix=picture.alone)
            _prepare(ax, theirs)
            first = picture.panels[0]
            if first is not None:
                first(ax)
            _add_key(ax, picture.key)
        return ax

    return draw


def _check_axes(ax: Any) -> None:
    """Refuse anything but plain axes before anything is drawn."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise InvalidInput(
            "ax must be one Axes of matplotlib",
            got=type(ax).__name__,
            fix="after figure, axes = plt.subplots(1, 2) give ax=axes[0]",
        )
    if ax.name != "rectilinear" or ax.figure is None:
        got = "axes that were removed from their figure" if ax.figure is None else f"{ax.name} axes"
        raise InvalidInput("ax must be plain axes of a figure, one across and one up", got=got)


@contextmanager
def _words_as_they_are(axes: Axes) -> Iterator[None]:
    """Show every character of the words that are added, and take no dollar sign of a column's name for a formula."""
    from matplotlib.text import Text

    before = {text: text.get_text() for text in axes.findobj(Text)}
    yield
    for text in axes.findobj(Text):
        words = text.get_text()
        if words != before.get(text):
            text.set_text(visible(words))
            if "$" in words:
                text.set_parse_math(False)


def _prepare(axes: Axes, theirs: dict[Any, dict[str, Any]]) -> None:
    """Give axes the lines of our pictures; numbers at the ticks stay as the reader's own settings have them."""
    axes.set_axisbelow(True)
    axes.grid(False, which="both")
    width = SETTINGS["axes.linewidth"]
    for side, spine in axes.spines.items():
        spine.set(edgecolor=GREY, linewidth=width, visible=side in ("left", "bottom"))
    lines = {"grid_color": SETTINGS["grid.color"], "grid_linewidth": SETTINGS["grid.linewidth"]}
    axes.tick_params(which="major", color=GREY, width=width, **lines)
    minor = {"width": SETTINGS["xtick.minor.width"], "length": SETTINGS["xtick.minor.size"]}
    axes.tick_params(which="minor", color=GREY, **minor)
    for side, looks in theirs.items():
        axes.tick_params(axis=side, which="major", **looks)


def _read_ticks(name: str) -> dict[str, Any]:
    """How the reader's settings write the numbers of an axis."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    settings: Any = matplotlib.rcParams
    colour = settings[f"{name}.labelcolor"]
    return {
        "labelsize": FontProperties(size=settings[f"{name}.labelsize"]).get_size_in_points(),
        "labelcolor": settings[f"{name}.color"] if colour == "inherit" else colour,
        "labelfontfamily": settings["font.family"][0],
    }


def _add_key(axes: Axes, handles: Sequence[Any]) -> None:
    """A key at the top of the axes, for which room is made."""
    if not handles:
        return
    frame = axes.get_window_extent()
    close: dict[str, Any] = {"handlelength": 1.9, "handletextpad": 0.5, "columnspacing": 1.1, "fontsize": TINY}
    for columns in range(len(handles), 0, -1):
        legend = axes.legend(handles=list(handles), loc="upper left", ncols=columns, **close)
        legend.set_in_layout(False)
        extent = legend.get_window_extent()
        if extent.width <= MOST_OF_THE_WIDTH * frame.width:
            break
    low, high = axes.get_ylim()
    axes.set_ylim(low, low + (high - low) / (1.0 - min(0.5, extent.height / frame.height)))
