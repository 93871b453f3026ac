"""How far released marginals are from the true ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.style import COLOURS, INK, TINY, area_sample, describe_setting, plain, write_beside
from cellrisk.system.formatting import number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.decide.usefulness import Utility
    from cellrisk.noise.mechanisms import Mechanism

MOST_BESIDE = 5
"""With more boxes the panels are below each other."""
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
    ways, groups = utility.ways, _groups(utility.mechanisms)
    beside = len(utility.mechanisms) <= MOST_BESIDE
    top = 1.15 * max(spread.high for spread in utility.spreads.values()) or 0.01

    def draw(axes: Axes, way: int) -> None:
        _draw(axes, utility, way)
        axes.set_ylim(0.0, top)
        if inside:
            axes.set(ylabel=f"TVD of {way}-way marginals", xlabel="epsilon")
            return
        axes.set_title(f"{way}-way ({number_of(utility.count_marginals(way), 'marginal')})")
        axes.set_ylabel("TVD" if not beside or way == ways[0] else "")
        axes.set_xlabel("epsilon" if beside or way == ways[-1] else "")

    name = f"{next(iter(groups))}; " if len(groups) == 1 else ""
    return Picture(
        [partial(draw, way=way) for way in ways],
        [2.4] if beside or len(ways) == 1 else [1.6] * len(ways),
        columns=len(ways) if beside else 1,
        share="all",
        title=_title(utility),
        subtitle=f"{name}{NOISED[utility.cells]}; {number_of(utility.releases, 'simulated release')}",
        key=[area_sample(words, COLOURS[number % len(COLOURS)], 0.5) for number, words in enumerate(groups)]
        if len(groups) > 1
        else (),
        caption=CAPTION,
        alone="ask utility for one way, for example ways=2",
    )


def _groups(mechanisms: tuple[Mechanism, ...]) -> dict[str, list[int]]:
    """Places of the settings that differ in epsilon alone, by what they share in words."""
    found: dict[str, list[int]] = {}
    for place, mechanism in enumerate(mechanisms):
        words = describe_setting(mechanism)
        if len({each.neighbours for each in mechanisms}) > 1:
            words += f", {mechanism.neighbours}"
        if len({each.threshold for each in mechanisms}) > 1:
            words += f", threshold {mechanism.threshold:g}"
        found.setdefault(words, []).append(place)
    return found


def _draw(axes: Axes, utility: Utility, way: int) -> None:
    """Boxes are placed by epsilon, and side by side if several mechanisms or deltas share one."""
    groups = _groups(utility.mechanisms)
    epsilons = sorted({mechanism.epsilon for mechanism in utility.mechanisms})
    width = min(0.8 / len(groups), 0.6 if len(groups) == 1 else 0.28)
    thin = {"color": INK, "linewidth": 0.7}
    for number, place in [(number, place) for number, places in enumerate(groups.values()) for place in places]:
        position = epsilons.index(utility.mechanisms[place].epsilon) + (number - (len(groups) - 1) / 2) * width
        spread = utility.spreads[place, way]
        low, high = np.quantile(utility.values(place, way), (0.25, 0.75)).tolist()
        box = {"whislo": spread.low, "q1": low, "med": spread.median, "q3": high, "whishi": spread.high}
        axes.bxp(
            [{**box, "mean": spread.mean, "fliers": []}],
            positions=[position],
            widths=0.8 * width,
            showmeans=True,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": COLOURS[number % len(COLOURS)], "alpha": 0.5, "edgecolor": INK, "linewidth": 0.7},
            medianprops={"color": INK, "linewidth": 1.1},
            whiskerprops=thin,
            capprops=thin,
            meanprops={"marker": "D", "markersize": 3.2, "markerfacecolor": "white", "markeredgecolor": INK},
        )
        if len(utility.mechanisms) <= MOST_NUMBERED:
            words = f"{spread.mean:.2f}" if spread.mean >= 0.0995 else f"{spread.mean:#.2g}"
            write_beside(axes, words, (position, spread.high), (0, 2), ha="center", size=TINY)
    axes.set_xticks(range(len(epsilons)), [plain(epsilon) for epsilon in epsilons])
    spare = 0.55 if len(epsilons) > 2 else 1.2
    axes.set_xlim(-spare, len(epsilons) - 1 + spare)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")


def _title(utility: Utility) -> str:
    """The message: at the first and last epsilon, or for each mechanism at an epsilon near 1."""
    way = 2 if 2 in utility.ways else utility.ways[0]
    means = utility.mean_tvd(way).tolist()
    groups = _groups(utility.mechanisms)
    shares = [{utility.mechanisms[place].epsilon: means[place] for place in places} for places in groups.values()]
    if len(groups) == 1:
        (by_epsilon,) = shares
        low, high = min(by_epsilon), max(by_epsilon)
        parts = [f"{100 * by_epsilon[low]:.2g}% of records misplaced at epsilon {plain(low)}"]
        parts += [f"{100 * by_epsilon[high]:.2g}% at epsilon {plain(high)}"] if low != high else []
        return f"{way}-way marginals: {', '.join(parts)}"
    common = set(shares[0]).intersection(*shares)
    if not common or len(groups) > 3:
        return f"{way}-way marginals: {100 * min(means):.2g}% to {100 * max(means):.2g}% of records misplaced"
    epsilon = min(common, key=lambda each: abs(float(np.log(each))))
    parts = [f"{words} {100 * found[epsilon]:.2g}%" for words, found in zip(groups, shares, strict=True)]
    return f"Records misplaced in {way}-way marginals at epsilon {plain(epsilon)}: {'; '.join(parts)}"
