"""The choice of an epsilon: the risk along epsilon, or the map of risk and usefulness, and what the limits admit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    DASHES,
    GREY,
    NOTE,
    SAFE,
    area_sample,
    epsilon_axis,
    finish,
    house_style,
    level_sample,
    mark_sample,
    plain,
    risk_axis,
    sample,
    start_figure,
    write_beside,
)
from cellrisk.system.arrays import Floats
from cellrisk.system.text import as_given, make_sentence, percent, show_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.decide.choosing import Choice
    from cellrisk.decide.tradeoff import TradeOff

LINE = COLOURS[0]
MARKS = (0.01, 0.1, 1.0, 10.0)
"""Epsilons that are marked along the map."""


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
        key = _draw_panel(choice, grid[0], grid[-1])
        if strips:
            _draw_strips(grid[1], choice)
        note = f"{NOTE} {choice.choice_note}"
        finish(figure, title=_title(choice), subtitle=_subtitle(choice), key=key, caption=choice.headline, note=note)
        return figure


def draw_choice_into(ax: Axes, choice: Choice) -> None:
    """Draws the first panel of that picture into the reader's own axes."""
    check_axes(ax)
    with dressed(ax):
        key = _draw_panel(choice, ax, ax)
        if choice.trade_off is None:
            ax.set_xlabel("epsilon")
        add_key(ax, key)


def _draw_panel(choice: Choice, axes: Axes, lowest: Axes) -> list[Any]:
    """Draws the panel, and returns the entries of its key. ``lowest`` are the axes that show epsilon."""
    if choice.trade_off is not None:
        return [*_draw_map(choice, choice.trade_off, axes), *_draw_levels(choice, axes)]
    epsilon, risk = choice.scan
    for low, high in choice.admissible:
        axes.axvspan(low, high, color=SAFE, alpha=0.13, linewidth=0)
    axes.plot(epsilon, risk, color=LINE, linewidth=1.4)
    _draw_inside(axes, choice, epsilon, epsilon, risk)
    key = [area_sample("admissible", SAFE, 0.3)] if choice.admissible else []
    key += _mark(axes, choice, [each.epsilon for each in choice.alternatives])
    first, limits = choice.options[0], choice.limits
    if first.epsilon is None and not first.open_ended:
        x, y = first.lowest_epsilon, first.lowest_risk
        axes.plot(x, y, "X", color=ALARM, markersize=7, zorder=5, clip_on=False, label="nearest")
        key.append(mark_sample(f"nearest: {percent(y)} at epsilon {plain(x)}", ALARM, "X"))
    across = [*first.searched, *(each.epsilon for each in choice.alternatives)]
    heights = [float(risk.max()), limits.raw, limits.chance, *(each.risk for each in choice.alternatives)]
    risk_axis(axes, max([*heights, *(level for level, _ in _levels(choice))]))
    epsilon_axis(lowest, min(across), max(across))
    axes.axhline(limits.chance, color=GREY, linewidth=0.9, linestyle=DASHES[2], zorder=1.5)
    chance = level_sample(f"{first.mechanism.lower_end} {percent(limits.chance)}", DASHES[2])
    return [*key, *_draw_levels(choice, axes), chance]


def _draw_levels(choice: Choice, axes: Axes) -> list[Any]:
    """The raw table's own risk, and the limits that are levels of the risk."""
    axes.axhline(choice.limits.raw, color=GREY, linewidth=0.9, zorder=1.5)
    key = []
    for level, words in _levels(choice):
        axes.axhline(level, color=ALARM, linewidth=1.0, linestyle=DASHES[1], zorder=1.6)
        key.append(sample(words, ALARM, DASHES[1], 1.0))
    return [*key, level_sample(f"raw table {percent(choice.limits.raw)}")]


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


def _draw_map(choice: Choice, trade_off: TradeOff, axes: Axes) -> list[Any]:
    """Risk and TVD along epsilon, with the alternatives among the points."""
    points = [each for each in choice.alternatives if each.tvd is not None]
    more = [each for each in points if trade_off.epsilon[0] < each.epsilon < trade_off.epsilon[-1]]
    epsilon = np.concatenate([trade_off.epsilon, [each.epsilon for each in more]])
    order = np.argsort(epsilon, kind="stable")
    epsilon = epsilon[order]
    tvd = np.concatenate([trade_off.tvd, [each.tvd or 0.0 for each in more]])[order]
    risk = np.concatenate([trade_off.risk, [each.risk for each in more]])[order]
    levels, most = [level for level, _ in _levels(choice)], trade_off.limit.max_tvd
    risk_axis(axes, max([float(risk.max()), choice.limits.raw, *levels, *(each.risk for each in points)]))
    widest = max([float(tvd.max()), most])
    axes.set_xlim(0.0, 1.06 * widest if widest > 0 else 0.01)
    axes.set_xlabel(f"mean TVD of {trade_off.limit.way}-way marginals (lower: more useful)")
    key = []
    if len(levels) == len(choice.kept_limits):  # else what keeps every limit is no rectangle
        axes.fill_between([0.0, most], 0.0, min([axes.get_ylim()[1], *levels]), color=SAFE, alpha=0.13, linewidth=0)
        key.append(area_sample("within both limits", SAFE, 0.3))
    axes.axvline(most, color=ALARM, linewidth=1.0, linestyle=DASHES[2], zorder=1.6)
    axes.plot(tvd, risk, color=LINE, linewidth=1.4)
    _draw_inside(axes, choice, epsilon, tvd, risk)
    for mark in MARKS:
        if epsilon[0] <= mark <= epsilon[-1]:
            at = tuple(float(np.interp(np.log(mark), np.log(epsilon), along)) for along in (tvd, risk))
            axes.plot(*at, "o", color=LINE, markersize=3.2, zorder=3)
            write_beside(axes, plain(mark), (at[0], at[1]), (2, 5), color=GREY)
    bold = [sample("bold: within every limit", LINE, "-", 3.0)] if choice.admissible and not key else []
    marked = [mark_sample("numbers: epsilon", LINE), sample(f"TVD limit {as_given(most)}", ALARM, DASHES[2], 1.0)]
    return [*key, *bold, *_mark(axes, choice, [each.tvd or 0.0 for each in points]), *marked]


def _mark(axes: Axes, choice: Choice, across: list[float]) -> list[Any]:
    """The recommended point filled, the stricter and the looser one open."""
    key = []
    for each, x in zip(choice.alternatives, across, strict=True):
        chosen = each.role == "recommended"
        look: dict[str, Any] = {"markerfacecolor": LINE if chosen else "white", "markersize": 8 if chosen else 5.5}
        axes.plot(x, each.risk, "o", color=LINE, zorder=5, clip_on=False, label=each.role, **look)
        key.append(mark_sample(f"{each.role} {show_down(each.epsilon)}: {percent(each.risk)}", LINE, filled=chosen))
    return sorted(key, key=lambda entry: not str(entry.get_label()).startswith("recommended"))


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
