"""How every picture looks: colours, type and axes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import visible
from cellrisk.system.arrays import Floats
from cellrisk.system.formatting import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
"""Okabe and Ito's palette, which colour-blind people can tell apart; neighbours here differ in lightness too."""
INK, GREY, PALE = "#222222", "#666666", "#D4D4D4"
ALARM, CALM = "#D55E00", "#A9C7DB"
SAFE = "#009E73"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1, 1.3)))

WEIGHT_COLOURS = {"records": COLOURS[0], "uniform": COLOURS[1], None: COLOURS[2]}
WEIGHT_WORDS = {"records": "by records", "uniform": "each group alike", None: "whole table"}

WIDTH = 7.0
"""Inches: two columns of a journal."""
TITLE, TEXT, SMALL, TINY = 10.0, 8.0, 7.5, 7.0

SHOWN = (0.1, 1.0, 10.0)
"""Epsilons at which a line shows its value."""

SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so that pictures are the same everywhere
    "font.size": TEXT,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a column's name is a dollar sign
    "text.hinting": "none",  # so that words are as wide at every resolution
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": TEXT,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "grid.color": "#EBEBEB",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "legend.borderaxespad": 0.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "cellrisk",
    "pdf.fonttype": 42,
}

_ONE_AT_A_TIME = RLock()


@contextmanager
def house_style() -> Iterator[None]:
    """Applies our style in place of the reader's settings, in one thread at a time, and restores those afterwards."""
    import matplotlib

    with _ONE_AT_A_TIME, matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # shown as a box
        matplotlib.rcdefaults()
        settings: Any = matplotlib.rcParams
        settings.update(SETTINGS)
        yield


def risk_axis(axes: Axes, largest: float, label: str = "risk") -> None:
    """The vertical axis: percent, from 0 to a little above the largest risk."""
    axes.set_ylim(0.0, 1.12 * largest if largest > 0 else 0.01)
    axes.yaxis.set_major_formatter(lambda share, _: f"{round(100 * share, 6):g}%")
    axes.set_ylabel(label)
    axes.grid(axis="y")


def epsilon_axis(axes: Axes, low: float, high: float) -> None:
    """The horizontal axis: epsilon in its logarithm, ticks as plain numbers."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    if low == high:
        low, high = low / 10, high * 10
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    exponents = range(int(np.floor(np.log10(low) + 1e-9)), int(np.ceil(np.log10(high) - 1e-9)) + 1)
    ticks = [10.0**exponent for exponent in exponents if low * 0.999 <= 10.0**exponent <= high * 1.001]
    if len(ticks) < 3:
        steps = [factor * 10.0**exponent for exponent in exponents for factor in (1, 2, 5)]
        ticks = [tick for tick in steps if low * 0.999 <= tick <= high * 1.001] or [float(np.sqrt(low * high))]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(plain)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("epsilon (smaller: more noise, more private)")


def plain(value: float, place: float | None = None) -> str:
    """A number as people write it.

    >>> plain(0.001), plain(100.0), plain(1.23456)
    ('0.001', '100', '1.23')
    """
    return f"{value:.3g}" if 1e-4 <= value < 1e4 else f"{value:.0e}"


def brief(name: str, most: int = 30) -> str:
    """A name that leaves room for the picture.

    >>> brief("income"), brief("household income before tax", most=16)
    ('income', 'household incom\u2026')
    """
    name = visible(name, "")
    return name if len(name) <= most else f"{name[: most - 1]}\u2026"


def darker(colour: str) -> Any:
    """A colour dark enough for words on white."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = to_rgb(colour)
    lightness = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    factor = 1.0 if lightness < 0.42 else 0.42 / lightness
    return to_hex((red * factor, green * factor, blue * factor))


def write_beside(axes: Axes, words: str, at: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """Writes words so many points right of a place and above it."""
    axes.annotate(words, at, offset, textcoords="offset points", **{"size": SMALL, "color": INK, **look})


def show_values(axes: Axes, x: Floats, y: Floats, colour: Any) -> None:
    """Marks a line at the epsilons that people ask about, or its only point, with its heights above the marks."""
    close = [int(np.argmin(np.abs(np.log(x / epsilon)))) for epsilon in SHOWN]
    places = [place for place, epsilon in zip(close, SHOWN, strict=True) if abs(x[place] / epsilon - 1) < 0.01]
    for place in [0] if len(x) == 1 else [place for place in places if x[0] < x[place] < x[-1]]:
        at = float(x[place]), float(y[place])
        axes.plot(*at, "o", color=colour, markersize=4.2, zorder=4, markeredgecolor="white")
        falls = 0 < place < len(x) - 1 and y[place + 1] < y[place - 1]
        look: dict[str, Any] = {"va": "bottom", "weight": "bold", "color": darker(colour)}
        look["bbox"] = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        write_beside(
            axes, percent(float(y[place])), at, (2 if falls else -2, 2.5), ha="left" if falls else "right", **look
        )
