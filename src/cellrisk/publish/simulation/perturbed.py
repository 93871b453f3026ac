"""`simulate_perturbation`: whole publications drawn row by row, a second opinion on what a perturbation gives away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.publish.simulation.attacks import mean_and_error
from cellrisk.risk.measures import Local
from cellrisk.risk.people import count_people
from cellrisk.risk.perturbed.equal_risk import find_distance
from cellrisk.risk.perturbed.figures import sum_caused
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned, number_of, say_error

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

FIGURES = ("people exposed", "people given away by their own record", "cells showing a true value alone", "distance")


@dataclass(frozen=True)
class SimulatedFigure:
    """One figure over the draws, beside the exact one."""

    figure: str
    mean: float
    standard_error: float
    exact: float

    @property
    def z(self) -> float | None:
        """By how many standard errors it differs; None where it does not vary."""
        return (self.mean - self.exact) / self.standard_error if self.standard_error > 0 else None


@dataclass(frozen=True, repr=False)
class PerturbedSimulation(Result):
    """The answer of `simulate_perturbation`."""

    perturbation: Perturbation
    sensitive: str
    publications: int
    seed: int
    figures: tuple[SimulatedFigure, ...]

    def __post_init__(self) -> None:
        if tuple(each.figure for each in self.figures) != FIGURES:
            raise InvalidInput("a simulation of a perturbation has one row for each figure")

    @property
    def headline(self) -> str:
        exposed = self.figures[0]
        return (
            f"In {number_of(self.publications, 'simulated publication')} with {self.perturbation.name}, "
            f"{number_of(exposed.mean, 'person')} had their {self.sensitive} read off correctly on average (standard "
            f"error: {say_error(exposed.standard_error)}); computed exactly, {exposed.exact:,.1f}."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "perturbation": self.perturbation.to_dict(),
            "sensitive": self.sensitive,
            "publications": self.publications,
            "seed": self.seed,
            "figures": self._numbers(),
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [{**vars(each), "z": each.z} for each in self.figures]

    def _paragraphs(self) -> list[str]:
        rows = [
            [
                each.figure,
                f"{each.mean:,.4f}",
                say_error(each.standard_error),
                f"{each.exact:,.4f}",
                "-" if each.z is None else f"{each.z:+.1f}",
            ]
            for each in self.figures
        ]
        return [aligned(["figure", "simulated", "standard error", "exact", "z"], rows), CURATOR_NOTE]


def simulate_perturbation(
    table: FrequencyTable,
    perturbation: str | Perturbation,
    *,
    releases: int = 1000,
    seed: int = 0,
    sensitive: str | None = None,
) -> PerturbedSimulation:
    """What does the homogeneity attack find in simulated publications of this table?

    Every count is drawn from its row, on its own; nothing of the formulas is used for the draws. The people given away
    by their own record are those exposed less those who would be in a table with one record of theirs left out, each
    drawn with the same random number.

    Parameters
    ----------
    table
        Made by `tabulate`.
    perturbation
        As in `assess_perturbation`.
    releases, seed
        How many publications, from 2 on, and where the draws begin.
    sensitive
        May be left out where the table has one sensitive attribute.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = simulate_perturbation(table, "suppress-below:10,round:5", releases=3)
    >>> found.figures[0].mean == found.figures[0].exact
    True
    """
    require_table(table)
    made = read_perturbation(perturbation)
    number = require_whole_number("releases", releases, 2, MOST_RELEASES)
    generator = np.random.default_rng(require_whole_number("seed", seed, 0))
    attribute = table.attribute(sensitive)
    profiles = attribute.profiles
    made.check_reach(max(int(block.counts.max()) for block in profiles.blocks))
    channel = made.channel
    local = float(Local().average(profiles, channel, ("exact",))["exact", "uniform"][0])
    people = count_people(profiles, made.channel)
    exact = (people.mean, sum_caused(profiles, made), local * profiles.n_cells, find_distance(profiles, made))
    drawn = np.array([_draw(profiles.blocks, profiles.n_levels, made, generator) for _ in range(number)])
    drawn[:, 3] /= 2.0 * profiles.n_records
    figures = tuple(
        SimulatedFigure(name, *mean_and_error(values), float(true))
        for name, values, true in zip(FIGURES, drawn.T, exact, strict=True)
    )
    return PerturbedSimulation(made, attribute.name, number, int(seed), figures)


def _draw(
    blocks: tuple[Block, ...], n_levels: int, made: Perturbation, generator: np.random.Generator
) -> tuple[float, float, float, float]:
    """One publication: exposed, caused, cells that show a true value alone, and the sum of differences."""
    exposed = caused = shows = moved = 0.0
    for block in blocks:
        counts = np.repeat(block.counts, block.cells, axis=0)
        padded = np.zeros((len(counts), n_levels), np.int64)
        padded[:, : counts.shape[1]] = counts
        uniform = generator.random(padded.shape)
        published = _publish(padded, uniform, made)
        alone = (published > 0) & ((published > 0).sum(axis=1, keepdims=True) == 1)
        others = ((published > 0).sum(axis=1, keepdims=True) - (published > 0)) == 0
        less = _publish(np.maximum(padded - 1, 0), uniform, made)
        exposed += float((padded * alone).sum())
        caused += float((padded * (alone.astype(np.float64) - ((less > 0) & others))).sum())
        shows += float((alone & (padded > 0)).sum())
        moved += float(np.abs(published - padded).sum())
    return exposed, caused, shows, moved


def _publish(counts: Any, uniform: Floats, made: Perturbation) -> Any:
    """Each count as the value at which its row's sums pass its random number."""
    published = np.zeros_like(counts)
    for count in np.unique(counts).tolist():
        values, chances = made.row(count)
        chosen = counts == count
        places = np.searchsorted(np.cumsum(chances), uniform[chosen], side="right")
        published[chosen] = values[np.minimum(places, len(values) - 1)]
    return published
