"""Which epsilon was chosen, among which: along epsilon, or on the map of risk and usefulness."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.show.pictures.labels import (
    Label,
    Path,
    Rectangle,
    label_right,
    label_right_inside,
    mark_box,
    place_labels,
    spread_right,
    write_beside,
)
from cellrisk.show.pictures.own_axes import check_axes, dressed
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    DASHES,
    GREY,
    INK,
    NOTE,
    SAFE,
    SMALL,
    TEXT,
    darker,
    epsilon_axis,
    finish,
    house_style,
    plain,
    risk_axis,
    start_figure,
)
from cellrisk.system.arrays import Floats
from cellrisk.system.text import as_given, make_sentence, percent, show_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.decide.choosing import Alternative, Choice
    from cellrisk.decide.tradeoff import TradeOff

LINE = COLOURS[0]
MARKS = (1.0, 0.1, 10.0, 0.01, 100.0, 3.0, 0.3, 30.0, 0.03, 0.001)
"""Epsilons that are marked along the map, the most wanted first."""


def draw_choice(choice: Choice) -> Figure:
    """The map of risk and usefulness where usefulness was asked for, else the risk along epsilon.

    Shaded is what the limits admit; the filled mark is the recommended epsilon, open ones are half and twice it.
    """
    with house_style():
        strips = len(choice.options) > 1 and choice.trade_off is None
        panel = 3.0 if choice.trade_off is None else 3.5
        figure = start_figure(panel + (0.45 + 0.2 * len(choice.options) if strips else 0.0))
        ratios = [3.0, 0.2 * len(choice.options)] if strips else [1.0]
        grid = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
        write = _draw_panel(choice, grid[0], grid[-1], inside=False)
        if strips:
            _draw_strips(grid[1], choice)
        note = f"{NOTE} {choice.choice_note}"
        finish(figure, title=_title(choice), subtitle=_subtitle(choice), caption=choice.headline, note=note)
        write()
        return figure


def draw_choice_into(ax: Axes, choice: Choice) -> None:
    """Draws the first panel of that picture into the reader's own axes."""
    check_axes(ax)
    with dressed(ax):
        _draw_panel(choice, ax, ax, inside=True)()


def _draw_panel(choice: Choice, axes: Axes, lowest: Axes, *, inside: bool) -> Callable[[], None]:
    """Draws the panel, and returns a function that writes the labels once the size of the axes is fixed.

    ``lowest`` are the axes that show epsilon. With ``inside``, every word is written within the axes.
    """
    if choice.trade_off is None:
        return _draw_line(choice, axes, lowest, inside)
    return _draw_map(choice, choice.trade_off, axes, inside)


def _draw_line(choice: Choice, axes: Axes, lowest: Axes, inside: bool) -> Callable[[], None]:
    epsilon, risk = choice.scan
    for low, high in choice.admissible:
        axes.axvspan(low, high, color=SAFE, alpha=0.13, linewidth=0)
    axes.plot(epsilon, risk, color=LINE, linewidth=1.4)
    _draw_inside(axes, choice, epsilon, epsilon, risk)
    levels = _levels(choice)
    right = [(choice.limits.raw, f"raw table {percent(choice.limits.raw)}", GREY)]
    right += [(level, words, darker(ALARM)) for level, words in levels]
    axes.axhline(choice.limits.raw, color=GREY, linewidth=0.6, zorder=1.5)
    axes.axhline(choice.limits.chance, color=GREY, linewidth=0.6, zorder=1.5)
    for level, _ in levels:
        axes.axhline(level, color=ALARM, linewidth=1.0, linestyle=DASHES[1], zorder=1.6)
    texts = [] if inside else label_right(axes, right)
    points = [(each.epsilon, each.risk) for each in choice.alternatives]
    first = choice.options[0]
    low, high = min([first.searched[0], *(x for x, _ in points)]), max([first.searched[1], *(x for x, _ in points)])
    heights = [float(risk.max()), choice.limits.raw, choice.limits.chance, *(y for _, y in points)]
    risk_axis(axes, max([*heights, *(level for level, _ in levels)]))
    epsilon_axis(lowest, low, high, *(["epsilon"] if inside else []))

    def write() -> None:
        spread_right(axes, texts)
        ends = np.array([low, high])
        flat = [choice.limits.raw, choice.limits.chance, *(level for level, _ in levels)]
        paths, faint = [(epsilon, risk)], [(ends, np.array([level, level])) for level in flat]
        chance, y = f"{first.mechanism.lower_end} {percent(choice.limits.chance)}", np.array([choice.limits.chance] * 2)
        labels = [Label(chance, ends, y, GREY, 0.0, must=True)]
        levels_inside = [*labels, *label_right_inside(axes, right)] if inside else []
        if first.open_ended:
            taken = place_labels(axes, levels_inside, paths, [], faint) or []
        elif first.epsilon is None:
            taken = _mark_nearest(axes, choice, paths, faint, levels_inside)
        else:
            across = [each.epsilon for each in choice.alternatives]
            taken = _mark(axes, choice.alternatives, across, paths, faint, levels_inside)
        if not inside:
            place_labels(axes, labels, paths, taken, faint)
        if choice.admissible:
            start, end = max(choice.admissible, key=lambda span: math.log(span[1] / span[0]))
            text = axes.text(math.sqrt(start * end), 0.015 * axes.get_ylim()[1], "admissible", color=darker(SAFE))
            text.set(size=SMALL, weight="bold", ha="center", va="bottom", clip_on=True)

    return write


def _draw_inside(axes: Axes, choice: Choice, epsilon: Floats, x: Floats, y: Floats) -> None:
    """Draws the admissible parts of a line in bold, up to the ends of each interval."""
    logs = np.log(epsilon)
    for low, high in choice.admissible:
        inner = (epsilon > low) & (epsilon < high)
        ends = np.log([low, high])
        across, up = np.interp(ends, logs, x), np.interp(ends, logs, y)
        inside = [across[0], *x[inner], across[1]], [up[0], *y[inner], up[1]]
        axes.plot(*inside, color=LINE, linewidth=3.0, label="admissible")


def _draw_strips(axes: Axes, choice: Choice) -> None:
    """The admissible epsilons of each mechanism and delta, below each other."""
    for place, option in enumerate(choice.options):
        for low, high in option.admissible:
            axes.barh(place, high - low, left=low, height=0.5, color=SAFE, alpha=0.55)
        end = option.searched[1] if option.epsilon is None else option.epsilon
        words = option.why.partition(":")[0] if option.open_ended else "none"
        words = words if option.shown is None else f"up to {as_given(option.shown)}"
        write_beside(axes, words, (end, place), (3, 0), va="center", annotation_clip=False)
    axes.set_yticks(range(len(choice.options)), [option.mechanism.describe() for option in choice.options])
    axes.set_ylim(len(choice.options) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_title("Admissible epsilons")


def _draw_map(choice: Choice, trade_off: TradeOff, axes: Axes, inside: bool) -> Callable[[], None]:
    epsilon, tvd, risk = _with_alternatives(choice, trade_off)
    levels = _levels(choice)
    right = [(level, words, darker(ALARM)) for level, words in levels]
    right.append((choice.limits.raw, f"raw table {percent(choice.limits.raw)}", GREY))
    points = [each for each in choice.alternatives if each.tvd is not None]
    heights = [float(risk.max()), choice.limits.raw, *(level for level, _ in levels), *(each.risk for each in points)]
    risk_axis(axes, max(heights), "risk (lower: safer)")
    widest = max([float(tvd.max()), trade_off.limit.max_tvd])
    axes.set_xlim(0.0, 1.06 * widest if widest > 0 else 0.01)
    axes.set_xlabel(f"mean TVD of {trade_off.limit.way}-way marginals (lower: more useful)")
    if shaded := len(levels) == len(choice.kept_limits):  # else what keeps every limit is no rectangle
        top = min([axes.get_ylim()[1], *(level for level, _ in levels)])
        axes.fill_between([0.0, trade_off.limit.max_tvd], 0.0, top, color=SAFE, alpha=0.13, linewidth=0)
    axes.axvline(trade_off.limit.max_tvd, color=ALARM, linewidth=1.0, linestyle=DASHES[1], zorder=1.6)
    for level, _ in levels:
        axes.axhline(level, color=ALARM, linewidth=1.0, linestyle=DASHES[1], zorder=1.6)
    axes.axhline(choice.limits.raw, color=GREY, linewidth=0.6, zorder=1.5)
    axes.plot(tvd, risk, color=LINE, linewidth=1.4)
    _draw_inside(axes, choice, epsilon, tvd, risk)
    if inside:  # above the axes stands the reader's own title
        axes.set_xlabel(f"mean TVD of {trade_off.limit.way}-way marginals (limit {as_given(trade_off.limit.max_tvd)})")
    else:
        words, at = f"TVD limit {as_given(trade_off.limit.max_tvd)}", (trade_off.limit.max_tvd, axes.get_ylim()[1])
        write_beside(axes, words, at, (0, 2), ha="center", va="bottom", color=darker(ALARM), annotation_clip=False)
    texts = [] if inside else label_right(axes, right)

    def write() -> None:
        spread_right(axes, texts)
        ends, height = np.array(axes.get_xlim()), np.array(axes.get_ylim())
        paths, faint = [(tvd, risk)], [(np.array([trade_off.limit.max_tvd] * 2), height)]
        faint += [(ends, np.array([level, level])) for level in [choice.limits.raw, *(level for level, _ in levels)]]
        words = "within both limits" if trade_off.limit.max_tvd > 0.22 * ends[1] else "within\nboth"
        words = words if shaded else "bold: within every limit"
        write_beside(axes, words, (0, 0), (4, 4), color=darker(SAFE), weight="bold")
        levels_inside = label_right_inside(axes, right) if inside else []
        taken = _mark(axes, points, [each.tvd or 0.0 for each in points], paths, faint, levels_inside)
        _mark_epsilons(axes, (epsilon, tvd, risk), [*paths, *faint], taken)

    return write


def _with_alternatives(choice: Choice, trade_off: TradeOff) -> tuple[Floats, Floats, Floats]:
    """Epsilon, TVD and risk along the map, with the alternatives among them, ascending in epsilon."""
    more = [each for each in choice.alternatives if trade_off.epsilon[0] < each.epsilon < trade_off.epsilon[-1]]
    epsilon = np.concatenate([trade_off.epsilon, [each.epsilon for each in more]])
    tvd = np.concatenate([trade_off.tvd, [each.tvd or 0.0 for each in more]])
    risk = np.concatenate([trade_off.risk, [each.risk for each in more]])
    order = np.argsort(epsilon, kind="stable")
    return epsilon[order], tvd[order], risk[order]


def _mark_epsilons(
    axes: Axes, along: tuple[Floats, Floats, Floats], paths: Sequence[Path], taken: Sequence[Rectangle]
) -> None:
    """Points with their epsilon along the map, as many as there is room for."""
    epsilon, tvd, risk = along
    logs, boxes, first = np.log(epsilon), list(taken), True
    for mark in MARKS:
        if not epsilon[0] * 0.999 <= mark <= epsilon[-1] * 1.001:
            continue
        x, y = float(np.interp(math.log(mark), logs, tvd)), float(np.interp(math.log(mark), logs, risk))
        words = f"epsilon {plain(mark)}" if first else plain(mark)
        here = np.array([x])
        now = place_labels(axes, [Label(words, here, np.array([y]), GREY, at=x)], paths, boxes)
        if now is None or len(now) == len(boxes):
            continue
        boxes, first = now, False
        axes.plot(x, y, "o", color=LINE, markersize=3.2, zorder=3)


def _mark(
    axes: Axes,
    points: Sequence[Alternative],
    across: Sequence[float],
    paths: Sequence[Path],
    faint: Sequence[Path],
    levels: Sequence[Label],
) -> list[Rectangle]:
    """The recommended point filled, the stricter and the looser one open, each with its words.

    Names of levels are placed after that of the recommended point: they matter more than those of the others.
    """
    labels, boxes = [], []
    order = sorted(zip(points, across, strict=True), key=lambda pair: pair[0].role != "recommended")
    for each, x in order:
        chosen = each.role == "recommended"
        (mark,) = axes.plot(
            x, each.risk, "o", color=LINE, markeredgewidth=1.3, zorder=5, clip_on=False, label=each.role
        )
        mark.set(markerfacecolor=LINE if chosen else "white", markersize=8 if chosen else 5.5)
        words = f"{each.role} {show_down(each.epsilon)}: {percent(each.risk)}"
        here, y = np.array([x]), np.array([each.risk])
        boxes.append(mark_box(axes, x, each.risk, 6.0 if chosen else 4.5))
        label = Label(words, here, y, INK, at=x, must=True, offset=6.5)
        bold = replace(label, colour=darker(LINE), offset=8.0, size=TEXT, weight="bold")
        labels.append(bold if chosen else label)
    return place_labels(axes, [*labels[:1], *levels, *labels[1:]], paths, boxes, faint) or []


def _mark_nearest(
    axes: Axes, choice: Choice, paths: Sequence[Path], faint: Sequence[Path], levels: Sequence[Label]
) -> list[Rectangle]:
    """Where no epsilon will do: the one that comes nearest."""
    option = choice.options[0]
    x, y = option.lowest_epsilon, option.lowest_risk
    axes.plot(x, y, "X", color=ALARM, markersize=7, zorder=5, clip_on=False, label="nearest")
    words, here = f"nearest: {percent(y)} at epsilon {plain(x)}", np.array([x])
    label = Label(words, here, np.array([y]), darker(ALARM), at=x, weight="bold", must=True, offset=8.0)
    return place_labels(axes, [label, *levels], paths, [mark_box(axes, x, y, 5.0)], faint) or []


def _levels(choice: Choice) -> list[tuple[float, str]]:
    """The limits that are levels of the risk shown, each in words."""
    levels: list[tuple[float, str]] = []
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
    name = choice.options[0].mechanism.describe()
    shown = choice.options[0].shown
    if shown is None or choice.risk is None:
        return f"{make_sentence(choice.options[0].without_epsilon, end='')} ({name})"
    recommended = next(each for each in choice.alternatives if each.role == "recommended")
    tvd = "" if recommended.tvd is None else f", TVD {recommended.tvd:.2g}"
    return f"Choose epsilon {as_given(shown)} ({name}): risk {percent(choice.risk)}{tvd}"


def _subtitle(choice: Choice) -> str:
    worst = ", the worst attribute at each epsilon" if len(choice.measured.attributes) > 1 else ""
    return f"Required: {choice.wanted}. Shown: {choice.measured.name}{worst}"
