"""Risk along epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.show.pictures.attackers import draw_attacks
from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    COLOURS,
    DASHES,
    GREY,
    TINY,
    WEIGHT_COLOURS,
    WEIGHT_WORDS,
    brief,
    epsilon_axis,
    house_style,
    risk_axis,
    show_values,
    write_beside,
)
from cellrisk.show.wording.attackers import say_size
from cellrisk.show.wording.ceiling import say_most
from cellrisk.show.wording.curve import name_line
from cellrisk.system.formatting import claim, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.curves import Line, RiskCurve

MOST_IN_A_PANEL = 6
FORM_DASHES = {None: DASHES[0], "tight": DASHES[0], "exact": DASHES[1], "published": DASHES[2]}
BLIND, BARE = (0, (4, 2)), (0, (1, 1.5))
"""How the levels of blind noise and of no noise are dashed."""
MARK = (0, (3, 2))
ONE_PANEL = "ask for the curve of one sensitive attribute, one measure and one mechanism"


@drawn
def draw_curve(curve: RiskCurve, at: float = 1.0, *, inside: bool) -> Picture:
    """What attacks reveal along epsilon; or the measures and figures that were named, between their two ends.

    Of these the title has the first at the epsilon nearest to ``at``. One panel for each sensitive attribute; if it
    would hold more than six lines, one for each measure and mechanism. Line style is the form, colour the rest.
    """
    if not curve.named:
        return draw_attacks(curve, at, inside)
    panels: dict[str, list[Line]] = {}
    many = max(sum(line.sensitive == name for line in curve.lines) for name in curve.table.sensitive) > MOST_IN_A_PANEL
    for line in curve.lines:
        words = [line.sensitive, *([line.measure.replace("_", " "), line.setting.describe()] if many else [])]
        panels.setdefault(", ".join(words), []).append(line)
    columns = min(3 if len(panels) > 4 else 2, len(panels))
    rows = -(-len(panels) // columns)
    return Picture(
        [
            partial(_draw, lines=lines, curve=curve, title="" if inside or len(panels) == 1 else title)
            for title, lines in panels.items()
        ],
        [3.0 if rows == columns == 1 else 2.1] * rows,
        columns=columns,
        title=_title(curve, at),
        subtitle=say_size(curve.table, curve.table.sensitive[0]),
        caption=curve.words.split("\n")[0] if len(panels) == 1 else "",
        alone=ONE_PANEL,
    )


def _draw(axes: Axes, lines: Sequence[Line], curve: RiskCurve, title: str) -> None:
    """Draw the lines of one panel, and the two ends of the first of them."""
    alike = len({(line.measure, line.setting) for line in lines}) == 1
    kinds = list(dict.fromkeys((line.measure, line.setting, line.weights, line.points[:1]) for line in lines))
    for line in lines:
        kind = kinds.index((line.measure, line.setting, line.weights, line.points[:1]))
        colour = WEIGHT_COLOURS[line.weights] if alike and not line.points else COLOURS[kind % len(COLOURS)]
        words = [name_line(line), *([line.setting.describe()] if len(curve.settings) > 1 and not title else [])]
        if alike and not line.points:
            words = [line.form or "", WEIGHT_WORDS[line.weights]]
        marker = "o" if len(line.epsilon) == 1 else ""
        look = {"color": colour, "linestyle": FORM_DASHES[line.form], "linewidth": 1.5, "marker": marker}
        axes.plot(line.epsilon, line.risk, label=", ".join(words), markersize=4, **look)
        if line.form in (None, "tight") or len(lines) == 1:
            show_values(axes, line.epsilon, line.risk, colour)
    ends = min(lines, key=lambda line: (line.form != "tight", line.weights != "records")).limits
    for level, dashes, name in ((ends.chance, BLIND, "blind"), (ends.raw, BARE, "no noise")):
        label = name if title else f"{name} {percent(level)}"
        axes.axhline(level, color=GREY, linewidth=0.9, linestyle=dashes, zorder=1.5, label=label)
    largest = max(max(float(line.risk.max()), line.limits.raw, line.limits.chance) for line in lines)
    risk_axis(axes, largest, f"{'risk' if not lines[0].points else 'share of people'} for {brief(lines[0].sensitive)}")
    low, high = (choose(float(line.epsilon[end]) for line in curve.lines) for choose, end in ((min, 0), (max, -1)))
    epsilon_axis(axes, low, high)
    if title:
        axes.tick_params(labelsize=TINY)
        axes.set_xlabel("epsilon")
        axes.set_title(brief(title, 60))


def _title(curve: RiskCurve, at: float) -> str:
    """Return the message: the first line at an epsilon that every setting has, the nearest to the one asked for."""
    leading = curve.leading
    common = set(leading[0].epsilon.tolist()).intersection(*(line.epsilon.tolist() for line in leading))
    if not common or (len(leading) > 1 and not leading[0].points):
        return "Risk along epsilon"
    epsilon = min(common, key=lambda each: abs(float(np.log(each / at))))
    line, show = leading[0], percent
    if line.measure == "ceiling":
        return f"At epsilon {claim(epsilon)} the worst case is {say_most(line.at(epsilon))}%"
    ends = f"blind {show(line.limits.chance)}, no noise {show(line.limits.raw)}"
    return f"At epsilon {claim(epsilon)}, {line.sensitive}, {name_line(line)}: {show(line.at(epsilon))} ({ends})"


def mark_asked(figure: Figure, epsilon: float) -> None:
    """Mark the epsilon that is asked for in every panel of a picture along epsilon."""
    with house_style():
        for axes in figure.axes:
            axes.axvline(epsilon, color=GREY, linewidth=0.7, linestyle=MARK, zorder=1.5)
            words, at = f"asked for: {claim(epsilon)}", (epsilon, 1.0)
            write_beside(axes, words, at, (3, -3), xycoords=("data", "axes fraction"), va="top")
