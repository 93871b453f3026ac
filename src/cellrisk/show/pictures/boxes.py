"""How far released marginals are from the true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import COLOURS, INK, TINY, finish, house_style, plain, start_figure, write_beside
from cellrisk.system.text import claim, number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.decide.usefulness import Utility
    from cellrisk.noise.mechanisms import Mechanism

MOST_BESIDE = 5
"""With more boxes the panels stand below each other."""
MOST_NUMBERED = 15
NOISED = {
    "domain": "noise on every cell of the domain, empty ones too",
    "observed": "noise on the observed cells alone",
}
CAPTION = (
    "TVD: total variation distance of released from true proportions, the share of records that would have to move. "
    "Box: middle half of marginals and releases; line: median; whiskers: 5% to 95%; diamond and number: mean."
)


def draw_utility(utility: Utility) -> Figure:
    """Box plots of the total variation distance (TVD): a panel for each way of marginals, a box for each setting.

    Boxes hold the middle half of marginals and releases, whiskers the middle nine tenths; a diamond marks the mean.
    """
    with house_style():
        ways, mechanisms = utility.ways, utility.mechanisms
        beside = len(mechanisms) <= MOST_BESIDE
        figure = start_figure(2.4 if beside or len(ways) == 1 else 1.6 * len(ways))
        shape = (1, len(ways)) if beside else (len(ways), 1)
        grid = figure.subplots(*shape, sharey=True, sharex=True, squeeze=False).ravel()
        for axes, way in zip(grid, ways, strict=True):
            _draw(axes, utility, way)
            marginals = number_of(sum(len(columns) == way for columns in utility.marginals), "marginal")
            axes.set_title(f"{way}-way ({marginals})")
            axes.set_ylabel("TVD" if not beside or axes is grid[0] else "")
            axes.set_xlabel("epsilon" if beside or axes is grid[-1] else "")
        grid[0].set_ylim(0.0, _top(utility))
        finish(figure, title=_title(utility), subtitle=_subtitle(utility), key=_key(mechanisms), caption=CAPTION)
        return figure


def draw_utility_into(ax: Axes, utility: Utility) -> None:
    """The panel of the only way of marginals."""
    check_axes(ax, len(utility.ways), "ask utility for one way, for example ways=2")
    with dressed(ax):
        _draw(ax, utility, utility.ways[0])
        ax.set_ylabel(f"TVD of {utility.ways[0]}-way marginals")
        ax.set_xlabel("epsilon")
        ax.set_ylim(0.0, _top(utility))
        add_key(ax, _key(utility.mechanisms))


def _top(utility: Utility) -> float:
    """Where the axis ends: above all whiskers."""
    places = range(len(utility.mechanisms))
    largest = max(float(np.quantile(utility.values(place, way), 0.95)) for place in places for way in utility.ways)
    return 1.15 * largest if largest > 0 else 0.01


def _groups(mechanisms: tuple[Mechanism, ...]) -> dict[str, list[int]]:
    """Places of the settings that differ in epsilon alone, by what they share in words."""
    found: dict[str, list[int]] = {}
    for place, mechanism in enumerate(mechanisms):
        words = mechanism.name if mechanism.pure else f"{mechanism.name}, delta {claim(mechanism.delta)}"
        if len({each.neighbours for each in mechanisms}) > 1:
            words += f", {mechanism.neighbours}"
        if len({each.threshold for each in mechanisms}) > 1:
            words += f", threshold {mechanism.threshold:g}"
        found.setdefault(words, []).append(place)
    return found


def _draw(axes: Axes, utility: Utility, way: int) -> None:
    """Boxes stand by epsilon, and side by side where several mechanisms or deltas share one."""
    groups = _groups(utility.mechanisms)
    epsilons = sorted({mechanism.epsilon for mechanism in utility.mechanisms})
    width = min(0.8 / len(groups), 0.6 if len(groups) == 1 else 0.28)
    means = utility.mean_tvd(way)
    for number, places in enumerate(groups.values()):
        for place in places:
            position = epsilons.index(utility.mechanisms[place].epsilon) + (number - (len(groups) - 1) / 2) * width
            levels = np.quantile(utility.values(place, way), (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
            box = dict(zip(("whislo", "q1", "med", "q3", "whishi"), levels, strict=True), mean=float(means[place]))
            draw_box(axes, box, position, 0.8 * width, COLOURS[number % len(COLOURS)])
            if len(utility.mechanisms) <= MOST_NUMBERED:
                mean = means[place]
                told = f"{mean:.2f}" if mean >= 0.0995 else f"{mean:#.2g}"
                write_beside(axes, told, (position, levels[-1]), (0, 2), ha="center", size=TINY)
    axes.set_xticks(range(len(epsilons)), [plain(epsilon) for epsilon in epsilons])
    spare = 0.55 if len(epsilons) > 2 else 1.2
    axes.set_xlim(-spare, len(epsilons) - 1 + spare)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")


def draw_box(axes: Axes, box: dict[str, float], position: float, width: float, colour: str) -> None:
    """One box, from its five levels and its mean, as matplotlib names them."""
    thin = {"color": INK, "linewidth": 0.7}
    axes.bxp(
        [{**box, "fliers": []}],
        positions=[position],
        widths=width,
        showmeans=True,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.5, "edgecolor": INK, "linewidth": 0.7},
        medianprops={"color": INK, "linewidth": 1.1},
        whiskerprops=thin,
        capprops=thin,
        meanprops={"marker": "D", "markersize": 3.2, "markerfacecolor": "white", "markeredgecolor": INK},
    )


def _key(mechanisms: tuple[Mechanism, ...]) -> list[Any]:
    from matplotlib.patches import Patch

    groups = _groups(mechanisms)
    if len(groups) == 1:
        return []
    return [
        Patch(facecolor=COLOURS[number % len(COLOURS)], alpha=0.5, label=words) for number, words in enumerate(groups)
    ]


def _title(utility: Utility) -> str:
    """The message: at the first and last epsilon, or for each mechanism at an epsilon near 1."""
    way = 2 if 2 in utility.ways else utility.ways[0]
    shares = [f"{100 * mean:.2g}%" for mean in utility.mean_tvd(way)]
    groups, epsilons = _groups(utility.mechanisms), [mechanism.epsilon for mechanism in utility.mechanisms]
    if len(groups) == 1:
        low, high = (choose(range(len(epsilons)), key=lambda place: epsilons[place]) for choose in (min, max))
        told = [f"{shares[low]} of records misplaced at epsilon {plain(epsilons[low])}"]
        told += [f"{shares[high]} at epsilon {plain(epsilons[high])}"] if low != high else []
        return f"{way}-way marginals: {', '.join(told)}"
    common = set(epsilons).intersection(*({epsilons[place] for place in places} for places in groups.values()))
    if not common or len(groups) > 3:
        means = utility.mean_tvd(way)
        return f"{way}-way marginals: {100 * means.min():.2g}% to {100 * means.max():.2g}% of records misplaced"
    epsilon = min(common, key=lambda each: abs(float(np.log(each))))
    found = [
        f"{words} {shares[next(place for place in places if epsilons[place] == epsilon)]}"
        for words, places in groups.items()
    ]
    return f"Records misplaced in {way}-way marginals at epsilon {plain(epsilon)}: {'; '.join(found)}"


def _subtitle(utility: Utility) -> str:
    groups = _groups(utility.mechanisms)
    name = f"{next(iter(groups))}; " if len(groups) == 1 else ""
    return f"{name}{NOISED[utility.cells]}; {number_of(utility.releases, 'simulated release')}"
