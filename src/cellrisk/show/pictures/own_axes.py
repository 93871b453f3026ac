"""Panels drawn into axes of a reader's own figure, of which nothing else is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from cellrisk.errors import InvalidInput, visible
from cellrisk.show.pictures.style import GREY, SETTINGS, TINY, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CLOSE: dict[str, Any] = {"handlelength": 1.9, "handletextpad": 0.5, "columnspacing": 1.1}
MOST_OF_THE_WIDTH = 0.85
"""The widest key. It leaves a reserve, because a later layout may make the axes narrower."""


def check_axes(ax: Any, panels: int = 1, fix: str = "") -> None:
    """Refuses anything but plain axes, and a picture of several panels, before anything is drawn."""
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
    if panels > 1:
        raise InvalidInput("this picture does not fit into one ax", got=f"{panels} panels", allowed="1 panel", fix=fix)


@contextmanager
def dressed(axes: Axes) -> Iterator[None]:
    """Gives axes the lines of our pictures while they are drawn into.

    The words on their two sides, and what is behind them, stay as the reader's own settings have them.
    """
    from matplotlib.text import Text

    sides: tuple[Literal["x", "y"], ...] = ("x", "y")
    theirs = {axis: _read_ticks(f"{axis}tick") for axis in sides}
    with house_style():
        before = {text: text.get_text() for text in axes.findobj(Text)}
        _dress(axes)
        for axis, looks in theirs.items():
            axes.tick_params(axis=axis, which="major", **looks)
        yield
        for text in axes.findobj(Text):
            words = text.get_text()
            if words == before.get(text):
                continue
            text.set_text(visible(words))
            if "$" in words:  # that of a column's name, not of a formula
                text.set_parse_math(False)


def _dress(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.grid(False, which="both")
    width = SETTINGS["axes.linewidth"]
    for side, spine in axes.spines.items():
        spine.set(edgecolor=GREY, linewidth=width, visible=side in ("left", "bottom"))
    axes.tick_params(
        which="major",
        color=GREY,
        width=width,
        grid_color=SETTINGS["grid.color"],
        grid_linewidth=SETTINGS["grid.linewidth"],
    )
    axes.tick_params(
        which="minor", color=GREY, width=SETTINGS["xtick.minor.width"], length=SETTINGS["xtick.minor.size"]
    )


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


def add_key(axes: Axes, handles: Sequence[Any]) -> None:
    """A key at the top of the axes, where a figure of ours has one above its panels; the drawing makes room for it."""
    if not handles:
        return
    frame = axes.get_window_extent()
    for columns in range(len(handles), 0, -1):
        legend = axes.legend(handles=list(handles), loc="upper left", ncols=columns, fontsize=TINY, **CLOSE)
        legend.set_in_layout(False)
        extent = legend.get_window_extent()
        if extent.width <= MOST_OF_THE_WIDTH * frame.width:
            break
    low, high = axes.get_ylim()
    axes.set_ylim(low, low + (high - low) / (1.0 - min(0.5, extent.height / frame.height)))
