"""What a perturbation reveals beside the epsilons of a mechanism, and where the mechanism reveals no more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import ALARM, CALM, TEXT, epsilon_axis, write_beside
from cellrisk.show.wording.assessment import compare
from cellrisk.system.formatting import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.risk.perturbed import EqualRisk, PerturbedAssessment

DASHED = (0, (4, 2))


@drawn
def draw_equal_risk(found: PerturbedAssessment, inside: bool) -> Picture:
    """People revealed because of their own record: the mechanism along epsilon, the perturbation as a level line."""
    every = [figures.equal for figures in found.figures if figures.equal is not None]
    if not every:
        raise InvalidInput("there is no comparison to draw", fix="assess with compare='geometric'")
    equal, name = every[0], found.perturbation.name
    subtitle = f"{name} lies {percent(equal.distance)} of the records away from the true table"
    if equal.mechanism_distance is not None:
        subtitle += f", {equal.mechanism} noise at epsilon {equal.epsilon:g} {percent(equal.mechanism_distance)}"
    return Picture(
        [partial(_draw, equal=equal, name=name)] * (len(found.figures) if inside else 1),
        [2.8],
        title=compare(equal),
        subtitle=subtitle,
        alone="assess a table with one sensitive attribute",
    )


def _draw(axes: Axes, equal: EqualRisk, name: str) -> None:
    epsilons, people = zip(*equal.scanned, strict=True)
    axes.plot(epsilons, people, color=CALM, label=f"{equal.mechanism}: people revealed because of their own record")
    axes.axhline(equal.figure, color=ALARM, linestyle=DASHED, label=name)
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
