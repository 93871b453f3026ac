"""How far released marginals are from the true ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import COLOURS, INK, TINY, plain, write_beside
from cellrisk.system.formatting import number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.decide.usefulness import Utility

MOST_NUMBERED = 15
NOISED = {
    "domain": "noise on every cell of the domain, empty ones too",
    "observed": "noise on the observed cells alone",
}
CAPTION = (
    "TVD: total variation distance of released from true proportions, the share of records that would have to move. "
    "Box: middle half of marginals and releases; line: median; whiskers: 5% to 95%; diamond and number: mean."
)


@drawn
def draw_utility(utility: Utility, inside: bool) -> Picture:
    """Box plots of the total variation distance (TVD): a panel for each way of marginals, a box for each setting."""
    way, mechanisms = 2 if 2 in utility.ways else utility.ways[0], utility.mechanisms
    means = utility.mean_tvd(way).tolist()
    ends = [min(range(len(means)), key=lambda place: choose * mechanisms[place].epsilon) for choose in (1, -1)]
    shown = [
        f"{100 * means[place]:.2g}% at epsilon {plain(mechanisms[place].epsilon)}" for place in dict.fromkeys(ends)
    ]
    noise = ", ".join(dict.fromkeys(mechanism.describe() for mechanism in mechanisms))
    return Picture(
        [partial(_draw, utility=utility, way=each) for each in utility.ways],
        [2.4],
        columns=len(utility.ways),
        share="all",
        title=f"Records misplaced in {way}-way marginals: {', '.join(shown)}",
        subtitle=f"{noise}; {NOISED[utility.cells]}; {number_of(utility.releases, 'simulated release')}",
        caption=CAPTION,
        alone="ask utility for one way, for example ways=2",
    )


def _draw(axes: Axes, utility: Utility, way: int) -> None:
    """Boxes are placed by epsilon, and side by side if several mechanisms or deltas share one."""
    groups = list(dict.fromkeys(mechanism.with_epsilon(0.5) for mechanism in utility.mechanisms))
    epsilons = sorted({mechanism.epsilon for mechanism in utility.mechanisms})
    width = min(0.8 / len(groups), 0.6 if len(groups) == 1 else 0.28)
    for place, mechanism in enumerate(utility.mechanisms):
        number = groups.index(mechanism.with_epsilon(0.5))
        position = epsilons.index(mechanism.epsilon) + (number - (len(groups) - 1) / 2) * width
        spread = utility.spreads[place, way]
        drawn_box = axes.boxplot(
            utility.values(place, way),
            whis=(5, 95),
            positions=[position],
            widths=0.8 * width,
            showmeans=True,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": COLOURS[number % len(COLOURS)], "alpha": 0.5, "edgecolor": INK, "linewidth": 0.7},
            medianprops={"color": INK},
            meanprops={"marker": "D", "markersize": 3.2, "markerfacecolor": "white", "markeredgecolor": INK},
        )
        if len(groups) > 1:
            drawn_box["boxes"][0].set_label(mechanism.describe())
        if len(utility.mechanisms) <= MOST_NUMBERED and len(groups) == 1:
            words = f"{spread.mean:.2f}" if spread.mean >= 0.0995 else f"{spread.mean:#.2g}"
            write_beside(axes, words, (position, spread.high), (0, 2), ha="center", size=TINY)
    axes.set_xticks(range(len(epsilons)), [plain(epsilon) for epsilon in epsilons])
    spare = 0.55 if len(epsilons) > 2 else 1.2
    axes.set_xlim(-spare, len(epsilons) - 1 + spare)
    axes.set_ylim(0.0, 1.15 * max(spread.high for spread in utility.spreads.values()) or 0.01)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.set(ylabel=f"TVD of {way}-way marginals", xlabel="epsilon")
