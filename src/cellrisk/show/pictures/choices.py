"""The choice of an epsilon: what is limited along epsilon, or beside usefulness, and what the limits admit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.decide.limits import MANY_COUNTS, count_numbers
from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    DASHES,
    GREY,
    SAFE,
    epsilon_axis,
    plain,
    risk_axis,
    write_beside,
)
from cellrisk.show.wording.choice import list_limits
from cellrisk.show.wording.limits import name_metric
from cellrisk.system.arrays import Floats
from cellrisk.system.formatting import CURATOR_NOTE, as_given, make_sentence, percent, show_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.decide.choosing import Choice
    from cellrisk.decide.usefulness import TradeOff

LINE = COLOURS[0]
POINTS, POINTS_OF_ATTACKS = 121, (61, 16)
"""Epsilons along which the metric is drawn; if it is of attackers, those of small tables, and of large ones."""
MARKS = (0.01, 0.1, 1.0, 10.0)
"""Epsilons that are marked along the map."""


@drawn
def draw_choice(choice: Choice, inside: bool) -> Picture:
    """The map of what is limited and of usefulness if usefulness was asked for, else what is limited along epsilon.

    Shaded is what the limits admit; the filled mark is the recommended epsilon, open ones are half and twice it.
    """
    trade_off, shown, name = choice.trade_off, choice.shown, choice.mechanism.describe()
    worst = ", the worst attribute at each epsilon" if len(choice.measured.attributes) > 1 else ""
    title = f"{make_sentence(choice.without_epsilon, end='')} ({name})"
    if choice.epsilon is not None:
        kept = shown.describe() if shown in choice.kept_limits else "every limit"
        tvd = "" if trade_off is None else f", TVD {trade_off.at(choice.epsilon):.2g}"
        title = f"Epsilon {as_given(choice.epsilon)} ({name}) keeps {kept}{tvd}"
    draw: Any = _draw_along if trade_off is None else partial(_draw_map, trade_off=trade_off)
    return Picture(
        [partial(draw, choice=choice)],
        [3.0 if trade_off is None else 3.5],
        title=title,
        subtitle=f"Required: {' and '.join(list_limits(choice))}. Shown: {name_metric(shown)}{worst}",
        caption="" if inside else choice.headline,
        note=f"{CURATOR_NOTE} {choice.choice_note}",
    )


def _draw_along(axes: Axes, choice: Choice) -> None:
    """Draw what is limited along epsilon."""
    shown, attributes, points = choice.shown, choice.measured.attributes, POINTS
    if shown.attacker is not None:
        points = POINTS_OF_ATTACKS[count_numbers(attributes) > MANY_COUNTS]
    marked = [alternative.epsilon for alternative in choice.alternatives]
    epsilon = np.unique([*np.geomspace(*choice.searched, points), *marked])
    for low, high in choice.admissible:
        axes.axvspan(low, high, color=SAFE, alpha=0.13, linewidth=0, label="admissible")
    chance = choice.limits.chance if shown.name == "max_risk" else 0.0
    _draw_line(axes, choice, epsilon, epsilon, np.array(marked), chance)
    nearest = next((bound.nearest for bound in choice.kept if bound.limit == shown), None)
    if not choice.admissible and nearest is not None:
        height = float(choice.shown_at(np.array([nearest]))[0])
        look: dict[str, Any] = {"marker": "X", "color": ALARM, "markersize": 7, "linestyle": "none", "zorder": 5}
        words = f"nearest: {percent(height)} at epsilon {plain(nearest)}"
        axes.plot(nearest, height, clip_on=False, label=words, **look)
    if shown.name == "max_risk":
        words = f"{choice.mechanism.lower_end} {percent(chance)}"
        axes.axhline(chance, color=GREY, linewidth=0.9, linestyle=DASHES[2], zorder=1.5, label=words)
    epsilon_axis(axes, float(epsilon[0]), float(epsilon[-1]))


def _draw_map(axes: Axes, choice: Choice, trade_off: TradeOff) -> None:
    """Draw what is limited beside the TVD, with the alternatives among the points."""
    low, high = float(trade_off.epsilon[0]), float(trade_off.epsilon[-1])
    marked = np.array([alternative.epsilon for alternative in choice.alternatives])
    epsilon = np.unique([*trade_off.epsilon, *marked[(marked > low) & (marked < high)]])
    tvd, most = trade_off.at(epsilon), trade_off.limit.max_tvd
    values = _draw_line(axes, choice, epsilon, tvd, trade_off.at(marked))
    axes.set_xlim(0.0, 1.06 * max([float(tvd.max()), most]) or 0.01)
    axes.set_xlabel(f"mean TVD of {trade_off.limit.way}-way marginals (lower: more useful)")
    if choice.kept_limits == (choice.shown,):  # else what keeps every limit is not a rectangle
        look: dict[str, Any] = {"color": SAFE, "alpha": 0.13, "linewidth": 0, "label": "within both limits"}
        axes.fill_between([0.0, most], 0.0, min(axes.get_ylim()[1], choice.shown.maximum), **look)
    words = f"TVD limit {as_given(most)}"
    axes.axvline(most, color=ALARM, linewidth=1.0, linestyle=DASHES[2], zorder=1.6, label=words)
    free = np.inf
    for mark in MARKS:
        x, y = (float(np.interp(np.log(mark), np.log(epsilon), along)) for along in (tvd, values))
        if low <= mark <= high and free - x > 0.03 * axes.get_xlim()[1]:
            axes.plot(x, y, "o", color=LINE, markersize=3.2, zorder=3, label="numbers: epsilon")
            write_beside(axes, plain(mark), (x, y), (2, 5), color=GREY)
            free = x


def _draw_line(axes: Axes, choice: Choice, epsilon: Floats, x: Floats, marked: Floats, chance: float = 0.0) -> Floats:
    """Draw what is limited, in bold where it is admissible, with its levels and the alternatives; return its values.

    ``x`` and ``marked`` are how far right the epsilons and the alternatives are drawn.
    """
    shown, values = choice.shown, choice.shown_at(epsilon)
    levels = [shown.maximum] if shown in choice.kept_limits else []
    raw = shown.without_noise(choice.measured.attributes)
    axes.plot(x, values, color=LINE, linewidth=1.4)
    for low, high in choice.admissible:
        inner = (epsilon > low) & (epsilon < high)
        ends = [np.interp(np.log([low, high]), np.log(epsilon), along) for along in (x, values)]
        inside = [[first, *along[inner], last] for (first, last), along in zip(ends, (x, values), strict=True)]
        axes.plot(*inside, color=LINE, linewidth=3.0, label="bold: within every limit")
    heights = choice.shown_at(np.array([alternative.epsilon for alternative in choice.alternatives]))
    for alternative, across, height in zip(choice.alternatives, marked.tolist(), heights.tolist(), strict=True):
        chosen = alternative.role == "recommended"
        look: dict[str, Any] = {"markerfacecolor": LINE if chosen else "white", "markersize": 8 if chosen else 5.5}
        words = f"{alternative.role} {show_down(alternative.epsilon)}: {percent(height)}"
        axes.plot(across, height, "o", color=LINE, zorder=5, clip_on=False, label=words, **look)
    label = "risk" if shown.risk is not None and shown.name == "max_risk" else "share"
    risk_axis(axes, max([*values, *heights, chance, raw or 0.0, *levels]), label)
    if raw is not None:
        axes.axhline(raw, color=GREY, linewidth=0.9, zorder=1.5, label=f"no noise {percent(raw)}")
    for level in levels:
        words = f"limit {as_given(level, 2)}%"
        axes.axhline(level, color=ALARM, linewidth=1.0, linestyle=DASHES[1], zorder=1.6, label=words)
    return values
