"""The choice of an epsilon: what is limited along epsilon, or beside usefulness, and what the limits admit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.canvas import Panel, Picture, drawn
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

    from cellrisk.decide.choosing import Alternative, Choice
    from cellrisk.decide.tradeoff import TradeOff

LINE = COLOURS[0]
MARKS = (0.01, 0.1, 1.0, 10.0)
"""Epsilons that are marked along the map."""

Levels = list[tuple[float, str]]


@drawn
def draw_choice(choice: Choice, inside: bool) -> Picture:
    """The map of what is limited and of usefulness if usefulness was asked for, else what is limited along epsilon.

    Shaded is what the limits admit; the filled mark is the recommended epsilon, open ones are half and twice it.
    """
    trade_off, levels = choice.trade_off, _levels(choice)
    panel: Panel = partial(_draw_limited, choice=choice, levels=levels)
    if trade_off is not None:
        panel = partial(_draw_map, choice=choice, trade_off=trade_off, levels=levels)
    worst = ", the worst attribute at each epsilon" if len(choice.measured.attributes) > 1 else ""
    return Picture(
        [panel],
        [3.0 if trade_off is None else 3.5],
        title=_title(choice),
        subtitle=f"Required: {' and '.join(list_limits(choice))}. Shown: {_name_shown(choice)}{worst}",
        caption="" if inside else choice.headline,
        note=f"{CURATOR_NOTE} {choice.choice_note}",
    )


def _draw_limited(axes: Axes, choice: Choice, levels: Levels) -> None:
    """What is limited along epsilon: the metric of a limit, or the risk."""
    epsilon, values = choice.scan
    for low, high in choice.admissible:
        axes.axvspan(low, high, color=SAFE, alpha=0.13, linewidth=0, label="admissible")
    axes.plot(epsilon, values, color=LINE, linewidth=1.4)
    _draw_inside(axes, choice, epsilon, epsilon, values)
    _mark(axes, choice, [alternative.epsilon for alternative in choice.alternatives])
    if not choice.admissible:
        nearest = choice.lowest_epsilon
        if choice.shown_limit is not None:
            nearest = next(bound.nearest for bound in choice.kept if bound.limit == choice.shown_limit)
        at = nearest, float(choice.shown_at(np.array([nearest]))[0])
        words = f"nearest: {percent(at[1])} at epsilon {plain(nearest)}"
        look: dict[str, Any] = {"color": ALARM, "markersize": 7, "linestyle": "none"}
        axes.plot(*at, marker="X", zorder=5, clip_on=False, label=words, **look)
    across = [*choice.searched, *(alternative.epsilon for alternative in choice.alternatives)]
    heights = [float(values.max()), choice.shown_without_noise or 0.0, *(level for level, _ in levels)]
    if choice.shown_limit is None:
        chance = choice.limits.chance
        heights.append(chance)
        words = f"{choice.mechanism.lower_end} {percent(chance)}"
        axes.axhline(chance, color=GREY, linewidth=0.9, linestyle=DASHES[2], zorder=1.5, label=words)
    _limited_axis(axes, choice, heights)
    epsilon_axis(axes, min(across), max(across))
    _draw_levels(axes, choice, levels)


def _limited_axis(axes: Axes, choice: Choice, heights: Sequence[float]) -> None:
    """Give the upright axis room for some heights and the alternatives, and the name of what is shown."""
    risk_axis(axes, max([*heights, *(_shown_of(choice, alternative) for alternative in choice.alternatives)]))
    if choice.shown_limit is not None:
        axes.set_ylabel("share")


def _draw_map(axes: Axes, choice: Choice, trade_off: TradeOff, levels: Levels) -> None:
    """What is limited and TVD along epsilon, with the alternatives among the points."""
    low, high = float(trade_off.epsilon[0]), float(trade_off.epsilon[-1])
    more = [alternative for alternative in choice.alternatives if low < alternative.epsilon < high]
    epsilon = np.concatenate([trade_off.epsilon, [alternative.epsilon for alternative in more]])
    order = np.argsort(epsilon, kind="stable")
    epsilon = epsilon[order]
    tvd = np.concatenate([trade_off.tvd, [alternative.tvd or 0.0 for alternative in more]])[order]
    values = choice.shown_at(epsilon)
    heights, most = [level for level, _ in levels], trade_off.limit.max_tvd
    _limited_axis(axes, choice, [float(values.max()), choice.shown_without_noise or 0.0, *heights])
    axes.set_xlim(0.0, 1.06 * max([float(tvd.max()), most]) or 0.01)
    axes.set_xlabel(f"mean TVD of {trade_off.limit.way}-way marginals (lower: more useful)")
    if len(levels) == len(choice.kept_limits):  # else what keeps every limit is not a rectangle
        look: dict[str, Any] = {"color": SAFE, "alpha": 0.13, "linewidth": 0, "label": "within both limits"}
        axes.fill_between([0.0, most], 0.0, min([axes.get_ylim()[1], *heights]), **look)
    words = f"TVD limit {as_given(most)}"
    axes.axvline(most, color=ALARM, linewidth=1.0, linestyle=DASHES[2], zorder=1.6, label=words)
    axes.plot(tvd, values, color=LINE, linewidth=1.4)
    _draw_inside(axes, choice, epsilon, tvd, values)
    for mark in MARKS:
        if low <= mark <= high:
            x, y = (float(np.interp(np.log(mark), np.log(epsilon), along)) for along in (tvd, values))
            axes.plot(x, y, "o", color=LINE, markersize=3.2, zorder=3, label="numbers: epsilon")
            write_beside(axes, plain(mark), (x, y), (2, 5), color=GREY)
    _mark(axes, choice, [alternative.tvd or 0.0 for alternative in choice.alternatives])
    _draw_levels(axes, choice, levels)


def _draw_levels(axes: Axes, choice: Choice, levels: Levels) -> None:
    """What is shown without noise, and the limits that are levels of it."""
    raw = choice.shown_without_noise
    if raw is not None:
        axes.axhline(raw, color=GREY, linewidth=0.9, zorder=1.5, label=f"no noise {percent(raw)}")
    for level, words in levels:
        axes.axhline(level, color=ALARM, linewidth=1.0, linestyle=DASHES[1], zorder=1.6, label=words)


def _draw_inside(axes: Axes, choice: Choice, epsilon: Floats, x: Floats, y: Floats) -> None:
    """Draw the admissible parts of a line in bold, up to the ends of each interval."""
    logs = np.log(epsilon)
    for low, high in choice.admissible:
        inner = (epsilon > low) & (epsilon < high)
        ends = np.log([low, high])
        across, up = np.interp(ends, logs, x), np.interp(ends, logs, y)
        inside = [across[0], *x[inner], across[1]], [up[0], *y[inner], up[1]]
        axes.plot(*inside, color=LINE, linewidth=3.0, label="bold: within every limit")


def _mark(axes: Axes, choice: Choice, across: list[float]) -> None:
    """The recommended point filled, the stricter and the looser one open."""
    for alternative, x in zip(choice.alternatives, across, strict=True):
        chosen, height = alternative.role == "recommended", _shown_of(choice, alternative)
        look: dict[str, Any] = {"markerfacecolor": LINE if chosen else "white", "markersize": 8 if chosen else 5.5}
        words = f"{alternative.role} {show_down(alternative.epsilon)}: {percent(height)}"
        axes.plot(x, height, "o", color=LINE, zorder=5, clip_on=False, label=words, **look)


def _shown_of(choice: Choice, alternative: Alternative) -> float:
    return alternative.risk if choice.shown_limit is None else alternative.limited[choice.shown_limit.name]


def _name_shown(choice: Choice) -> str:
    return choice.measured.name if choice.shown_limit is None else name_metric(choice.shown_limit)


def _levels(choice: Choice) -> Levels:
    """The limits that are levels of what is shown, each in words."""
    if choice.shown_limit is not None:
        most = choice.shown_limit.maximum
        return [(most, f"limit {as_given(most, 2)}%")]
    levels: Levels = []
    measured = choice.measured
    counted = (measured.measures[0].name, measured.form, measured.weights) == ("local", "tight", "records")
    for limit in choice.on_first_risk:
        most = limit.maximum
        if limit.name == "max_risk":
            levels.append((most, f"limit {as_given(most, 2)}%"))
        elif limit.name == "margin" and len(measured.attributes) == 1:
            levels.append((choice.limits.chance + most, f"limit {percent(choice.limits.chance + most)}"))
        elif limit.name == "max_people" and counted:
            levels.append((most / choice.table.n_records, f"limit {as_given(most)} people"))
    return [(level, words) for level, words in levels if level <= 1.0]


def _title(choice: Choice) -> str:
    name = choice.mechanism.describe()
    if choice.epsilon is None or choice.risk is None:
        return f"{make_sentence(choice.without_epsilon, end='')} ({name})"
    tvd = choice.alternatives[1].tvd
    end = "" if tvd is None else f", TVD {tvd:.2g}"
    if choice.shown_limit is not None:
        return f"Epsilon {as_given(choice.epsilon)} ({name}) keeps {choice.shown_limit.describe()}{end}"
    return f"Choose epsilon {as_given(choice.epsilon)} ({name}): risk {percent(choice.risk)}{end}"
