"""What a perturbation gives away beside the epsilons of a mechanism, and where the mechanism gives away no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import (
    ALARM,
    CALM,
    TEXT,
    epsilon_axis,
    finish,
    house_style,
    sample,
    start_figure,
    write_beside,
)
from cellrisk.system.text import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.perturbed import EqualRisk, PerturbedAssessment


def draw_equal_risk(found: PerturbedAssessment) -> Figure:
    """People given away because of their own record: the mechanism along epsilon, the perturbation as a level line."""
    equal = _first(found)
    with house_style():
        figure = start_figure(2.8)
        axes = figure.subplots(1, 1)
        _draw(axes, equal)
        finish(figure, title=equal.comparison, subtitle=_subtitle(found, equal), key=_key(found, equal))
        return figure


def draw_equal_risk_into(ax: Axes, found: PerturbedAssessment) -> None:
    """The panel alone."""
    check_axes(ax, len(found.figures), "assess a table with one sensitive attribute")
    equal = _first(found)
    with dressed(ax):
        _draw(ax, equal)
        add_key(ax, _key(found, equal))


def _first(found: PerturbedAssessment) -> EqualRisk:
    every = [each for figures in found.figures for each in figures.equal]
    if not every:
        raise InvalidInput("there is no comparison to draw", fix="assess with compare='geometric'")
    return every[0]


def _draw(axes: Axes, equal: EqualRisk) -> None:
    epsilons, people = zip(*equal.scanned, strict=True)
    axes.plot(epsilons, people, color=CALM)
    axes.axhline(equal.figure, color=ALARM, linestyle=(0, (4, 2)))
    for low, high in equal.ranges:
        axes.axvspan(low, high, color=CALM, alpha=0.1, linewidth=0)
    if equal.epsilon is not None:
        at = (equal.epsilon, float(np.interp(equal.epsilon, epsilons, people)))
        axes.plot(*at, "o", color=ALARM, markersize=5)
        write_beside(axes, f"epsilon {equal.epsilon:g}", at, (-6, 6), ha="right", size=TEXT)
    axes.set_ylabel("people")
    axes.set_ylim(0, 1.12 * max(*people, equal.figure, 1.0))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    epsilon_axis(axes, epsilons[0], epsilons[-1])
    axes.grid(axis="y")


def _subtitle(found: PerturbedAssessment, equal: EqualRisk) -> str:
    moved = f"{found.perturbation.name} lies {percent(equal.distance)} of the records away from the true table"
    if equal.mechanism_distance is None:
        return moved
    return f"{moved}, {equal.mechanism} noise at epsilon {equal.epsilon:g} {percent(equal.mechanism_distance)}"


def _key(found: PerturbedAssessment, equal: EqualRisk) -> list[Any]:
    return [
        sample(f"{equal.mechanism}: people given away because of their own record", CALM, "-"),
        sample(found.perturbation.name, ALARM, (0, (4, 2))),
    ]
