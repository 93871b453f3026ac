"""The figures of the paper and its supplement: pictures, with their numbers as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import cellrisk as cr
from reproduction.experiments import MECHANISMS, WAYS, WEIGHTINGS, Experiment, Line, Results, describe

NAMES = {"laplace": "Laplace", "gaussian": "Gaussian", "gaussian-pdp": "Gaussian, pDP"}
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1, 1, 1)))
BOXES: dict[str, Any] = {"widths": 0.2, "whis": (0, 100), "patch_artist": True, "medianprops": {"color": "black"}}
LAST_BAR = 16  # cells of this size and larger share the last bar of a histogram
Panel: TypeAlias = tuple[Experiment, str, str, dict[str, Line]]
"""The experiment, the paper's letter, the title, and the lines by their names in the legend."""
FIGURE_3 = (
    ("adult-as-published", 0, "abcdef", "local"),
    ("adult-as-defined-local", 1, "abcdef", "local"),
    ("adult-as-defined-expected", 1, "abcdef", "expected"),
    ("bankruptcy", 2, "ghijkl", "local"),
    ("subset-local", 3, "mnopqr", "local"),
    ("subset-expected", 3, "stuvwx", "expected"),
)
"""The name of the files, the place of the experiment, the letters of the paper's panels, and the measure."""


def draw_all(results: Results, folder: Path) -> Iterator[tuple[str, str]]:
    """Draw every picture that the results allow into the folder, and yield the name and title of each."""
    yield draw_sizes(folder, results.experiments)
    for name, place, letters, measure in FIGURE_3:
        for experiment in results.experiments[place : place + 1]:
            title = f"Figure 3 ({letters[0]})-({letters[-1]}): {experiment.label}, {measure} risk"
            yield draw_panels(folder, f"figure-3-{name}", title, list(paper_panels(experiment, letters, measure)))
    for cells, distances in zip(("observed", "domain"), results.distances, strict=False):
        yield draw_boxes(folder, cells, distances)
    panels = [panel for experiment in results.experiments[:2] for panel in guess_panels(experiment)]
    yield draw_panels(folder, "supplement-thresholding", "Supplement: attackers who guess, on Adult", panels)


def paper_panels(experiment: Experiment, letters: str, measure: str) -> Iterator[Panel]:
    """Yield the panels of a table: three mechanisms, each cell alike and then by records; a line for each delta."""
    kinds = [(weights, mechanism) for weights in WEIGHTINGS for mechanism in MECHANISMS]
    for letter, (weights, mechanism) in zip(letters, kinds, strict=True):
        lines = experiment.find(mechanism=mechanism, weights=weights, measure=measure)
        named = {f"delta {line.setting.delta:g}" if line.setting.delta else "no delta": line for line in lines}
        yield experiment, letter, f"({letter}) {NAMES[mechanism]}, {WEIGHTINGS[weights]}", named


def guess_panels(experiment: Experiment) -> Iterator[Panel]:
    """Yield the share of people whose own value is named, under Laplace noise, with a line for each attack."""
    for place, weighting in enumerate(WEIGHTINGS.values()):
        attacks = ("homogeneity", "plurality", "proportional")
        lines = {attack: experiment.weighted(attack=attack, form="tight")[place] for attack in attacks}
        yield experiment, "", f"{experiment.reading}, {weighting}", lines


def draw_panels(folder: Path, name: str, title: str, panels: Sequence[Panel]) -> tuple[str, str]:
    """Draw risk along epsilon. Dotted lines mark the two ends; the classical Gaussian mechanism stops below 1."""
    figure, rows, shown = Figure(figsize=(9, 5.7), layout="constrained"), [], {}
    grid = figure.subplots(2, len(panels) // 2, sharex=True, sharey=True)
    labels = list(dict.fromkeys(label for *_, lines in panels for label in lines))
    for axes, (experiment, letter, heading, lines) in zip(grid.flat, panels, strict=True):
        for label, line in lines.items():
            style = {"color": f"C{labels.index(label)}", "linestyle": DASHES[labels.index(label)]}
            (shown[label],) = axes.plot(line.epsilon, line.risk, **style)
            ends = {"chance": line.limits.chance, "raw": line.limits.raw}
            axes.hlines(list(ends.values()), 1e-3, 1e2, color="0.6", linewidth=0.6, linestyle=":")
            about = {"letter": letter, "experiment": experiment.name, "reading": experiment.reading, "panel": heading}
            about |= {**describe(line), **ends}
            points = zip(line.epsilon, line.risk, strict=True)
            rows += [{**about, "epsilon": epsilon, "risk": risk} for epsilon, risk in points]
        axes.set_title(heading, fontsize="medium")
        axes.set(xscale="log", xlim=(1e-3, 1e2), xticks=(1e-3, 1e-1, 1e1), ylim=(0, 1.03))
        axes.minorticks_off()
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=5)
    return save(folder, name, title, figure, "epsilon", ["risk"] * 2, rows)


def draw_sizes(folder: Path, experiments: Sequence[Experiment]) -> tuple[str, str]:
    """Draw how many cells have each number of records."""
    figure, rows = Figure(figsize=(9, 5.7), layout="constrained"), []
    grid = figure.subplots(len(experiments) // 2, 2, squeeze=False)
    for axes, experiment in zip(grid.flat, experiments, strict=True):
        heights = np.zeros((2, LAST_BAR))
        for counts, cells in experiment.table.profiles().rows():
            heights[int(len(counts) > 1), min(sum(counts), LAST_BAR) - 1] += cells
        sizes = np.arange(1, LAST_BAR + 1)
        axes.bar(sizes, heights[0], label="one sensitive value")
        axes.bar(sizes, heights[1], bottom=heights[0], label="several")
        axes.set_xticks(sizes, [*map(str, sizes[:-1]), f"{LAST_BAR}+"], fontsize="small")
        axes.set_ylim(0, 1.05 * heights.sum(axis=0).max())
        axes.set_title(f"{experiment.label}: {experiment.table.n_cells:,} cells", fontsize="medium")
        about = {"experiment": experiment.name, "reading": experiment.reading}
        rows += [
            {**about, "size": n, "cells": many} for n, many in zip(*experiment.table.profiles().sizes, strict=True)
        ]
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    labels = ["cells"] * len(grid)
    return save(folder, "figure-2-cell-sizes", "Figure 2: cell sizes", figure, "people in the cell", labels, rows)


def draw_boxes(folder: Path, cells: str, distances: cr.Utility) -> tuple[str, str]:
    """Draw the total variation distance (TVD): a box over the marginals, each with its mean over the releases."""
    means, ways = distances.tvd.mean(axis=2), np.array([len(columns) for columns in distances.marginals])
    figure, rows = Figure(figsize=(9, 7), layout="constrained"), []
    grid = figure.subplots(len(WAYS), len(MECHANISMS), sharex="col", sharey="row")
    for name, column in zip(MECHANISMS, grid.T, strict=True):
        chosen = [(each, row) for each, row in zip(distances.mechanisms, means, strict=True) if each.name == name]
        epsilons, deltas = (list(dict.fromkeys(getattr(each, of) for each, _ in chosen)) for of in ("epsilon", "delta"))
        for way, axes in zip(WAYS, column, strict=True):
            for place, delta in enumerate(deltas):
                boxes = {each.epsilon: row[ways == way] for each, row in chosen if each.delta == delta}
                positions = np.arange(len(epsilons)) + 0.25 * (place - (len(deltas) - 1) / 2)
                style = {"boxprops": {"facecolor": f"C{place}" if delta else "0.7"}, **BOXES}
                axes.boxplot(list(boxes.values()), positions=positions, label=f"delta {delta:g}", **style)
                about = {"cells": cells, "way": way, "mechanism": name, "delta": delta}
                for epsilon, box in boxes.items():
                    rows += [{**about, "epsilon": epsilon, "marginal": n, "tvd": tvd} for n, tvd in enumerate(box)]
            axes.set_xticks(range(len(epsilons)), ["<1" if 0.9 < each < 1 else f"{each:g}" for each in epsilons])
        column[0].set_title(NAMES[name], fontsize="medium")
    figure.legend(*grid[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    end = "as published" if cells == "observed" else "whole domain"
    title = f"Figure 4: distance of released from true marginals, Bankruptcy subset, {end}"
    labels = [f"TVD, {way}-way marginals" for way in WAYS]
    return save(folder, f"figure-4-distances-{end.replace(' ', '-')}", title, figure, "epsilon", labels, rows)


def save(
    folder: Path, name: str, title: str, figure: Figure, across: str, up: list[str], rows: Sequence[dict[str, Any]]
) -> tuple[str, str]:
    """Label the outer axes, and write the picture as SVG and PNG, the same bytes each time, and its numbers as CSV."""
    columns = len(figure.axes) // len(up)
    for axes, label in zip(figure.axes[::columns], up, strict=True):
        axes.set_ylabel(label)
    for axes in figure.axes[-columns:]:
        axes.set_xlabel(across)
    figure.suptitle(title)
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.png", dpi=150)
    write_csv(folder / f"{name}.csv", rows)
    return name, title


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        for row in rows:
            table.writerow({key: f"{value:.10g}" if isinstance(value, float) else value for key, value in row.items()})
