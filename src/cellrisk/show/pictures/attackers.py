"""What attacks reveal: along epsilon, and of 100 people with and without their own record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import (
    ALARM,
    COLOURS,
    PALE,
    brief,
    darker,
    epsilon_axis,
    risk_axis,
    show_values,
    write_beside,
)
from cellrisk.show.wording.attackers import ICONS, count_icons, own_share, say_size, share
from cellrisk.system.formatting import claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.risk.assessment import Assessment
    from cellrisk.risk.attackers.attacker import SettingFigures
    from cellrisk.risk.attackers.figures import AttackTable
    from cellrisk.risk.curves import RiskCurve

POINTS = tuple(float(epsilon) for epsilon in np.geomspace(0.05, 10.0, 47))
"""Epsilons along which attacks are drawn, if none were asked for: 1 is nearly among them."""
STUB = 0.17
"""How far to the right of the lines, as a part of their width, they are drawn without noise."""
ROW = 10


def draw_attacks(curve: RiskCurve, at: float, inside: bool) -> Picture:
    """Return two lines for each setting and attribute: because of their own record, and inferred; then no noise.

    The title has the numbers at the epsilon nearest to ``at``.
    """
    found = [
        (name, setting, curve.trace_attacks(name, setting, POINTS))
        for setting in curve.settings
        for name in curve.table.sensitive
    ]
    found = [each for each in found if len(each[2]) > 1]
    if not found:
        raise InvalidInput("there is no picture: what attacks reveal is not computed", code="no-picture")
    several = len(found) > 1
    name, setting, figures = found[0]
    nearest = min(figures[:-1], key=lambda each: abs(np.log((each.mechanism.epsilon if each.mechanism else at) / at)))
    epsilon = nearest.mechanism.epsilon if nearest.mechanism else 1.0
    own = f"{own_share(nearest.own, nearest.people)} are revealed because of their {nearest.table.own_record}"
    infer = f"{share(nearest.inferred / nearest.people)} are inferred, and " if nearest.inferred is not None else ""
    short = float(f"{epsilon:.2g}")
    at_epsilon = f"epsilon {claim(short if short >= epsilon else epsilon)}"
    title = f"At {at_epsilon}, {infer}{own}"
    titles = [f"{brief(name, 18)}, {setting.describe()}" if several else "" for name, setting, _ in found]
    size = say_size(curve.table, name)
    columns = min(2, len(found))
    return Picture(
        [
            partial(_draw_attacks, figures=figures, title=text)
            for (_, _, figures), text in zip(found, titles, strict=True)
        ],
        [2.9] * -(-len(found) // columns),
        columns=columns,
        title=f"What attacks reveal at {at_epsilon} and along epsilon" if several else title,
        subtitle=size if several else f"'{brief(name)}' of {size}; {setting.describe()} noise",
        alone="ask for the curve of one sensitive attribute and one mechanism",
    )


def _draw_attacks(axes: Axes, figures: Sequence[SettingFigures], title: str) -> None:
    """Draw the two lines of one setting, and where they end without noise."""
    noisy, bare, people = figures[:-1], figures[-1], figures[-1].people
    x = np.array([each.mechanism.epsilon for each in noisy if each.mechanism is not None])
    own = f"revealed because of their {bare.table.own_record}, at least"
    lines = [(np.array([each.own for each in noisy]), bare.own, ALARM, own)]
    if bare.inferred is not None:
        words = f"inferred by an attacker who is {100 * bare.table.certainty:g}% sure"
        lines.append((np.array([each.inferred or 0.0 for each in noisy]), bare.inferred, COLOURS[0], words))
    largest = max(max(float(line.max()), end) for line, end, *_ in lines) / people
    risk_axis(axes, largest, "share of people")
    end = float(x[-1] * (x[-1] / x[0]) ** STUB) if len(x) > 1 else 10.0 * float(x[0])
    epsilon_axis(axes, float(x[0]), float(x[-1]))
    for line, without_noise, colour, words in lines:
        look: dict[str, Any] = {"marker": "o" if len(x) < 4 else "", "markersize": 3, "gid": f"line-{colour[1:]}"}
        axes.plot(x, line / people, color=colour, linewidth=1.8, label=words, **look)
        axes.plot([x[-1], end], [line[-1] / people, without_noise / people], color=colour, linewidth=1.0, linestyle=":")
        axes.plot(end, without_noise / people, "D", color=colour, markersize=5, clip_on=False)
        if not title:
            show_values(axes, x, line / people, darker(colour))
        look = {"ha": "center", "weight": "bold", "color": darker(colour)}
        write_beside(axes, share(without_noise / people), (end, without_noise / people), (0, 6), **look)
    axes.set_xlim(float(x[0]) / 1.05, float(end * (end / x[0]) ** (STUB / 2)))
    axes.annotate("no noise", (end, 0.0), (0, -5), ("data", "axes fraction"), "offset points", ha="center", va="top")
    axes.set_title(title)


def draw_assessment(assessment: Assessment, ax: Axes | None = None) -> Any:
    """Draw 100 people of the first sensitive attribute, with and without their own record."""
    [sensitive, *_] = assessment.table.sensitive
    tables = assessment.attackers[sensitive]
    if not tables:
        raise InvalidInput("there is no picture: what attacks reveal is not computed", code="no-picture")
    return draw_icons(tables[-1], sensitive, assessment.mechanism.guarantee, ax=ax)


@drawn
def draw_icons(table: AttackTable, sensitive: str, setting: str, inside: bool) -> Picture:
    """Draw 100 people, left with their own record left out and right with it, under the attack that reveals most.

    Coloured are those whose value the attack names correctly; in a second colour, those named because of their record.
    """
    attack, anyway, own, words = count_icons(table)
    return Picture(
        [
            partial(_draw_people, counts=(anyway, 0), words="0", title="Own record left out"),
            partial(_draw_people, counts=(anyway, own), words=words, title="Own record in the table"),
        ],
        [2.4],
        columns=2,
        width=5.4,
        title=f"Of 100 people, {words} {'is' if words == '1' else 'are'} revealed because of their own record",
        subtitle=f"'{brief(sensitive)}' named correctly at {setting}; {attack}",
        alone="draw the icons into a figure of their own",
    )


def _draw_people(axes: Axes, counts: tuple[int, int], words: str, title: str) -> None:
    """Draw 100 dots, row by row: revealed anyway, because of their own record, and not revealed."""
    anyway, own = counts
    kinds = [(0, anyway, COLOURS[0], f"from other people's records: {anyway}")]
    kinds += [(anyway, anyway + own, ALARM, f"because of their own record: {words}")] if words != "0" else []
    for start, end, colour, label in [*kinds, (anyway + own, ICONS, PALE, "")]:
        place = np.arange(start, end)
        axes.scatter(place % ROW, -(place // ROW), s=62, color=colour, linewidths=0, label=label)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, loc="center")
