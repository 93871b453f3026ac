"""`simulate_perturbation`: whole publications drawn row by row, a second opinion on what a perturbation gives away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.publish.simulation.attacks import delete_one, mean_and_error
from cellrisk.publish.simulation.releases import CountLaw, Releases
from cellrisk.risk.measures import Local
from cellrisk.risk.people import count_people
from cellrisk.risk.perturbed.equal_risk import find_distance
from cellrisk.risk.perturbed.figures import sum_caused
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.progress import StepCounter
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
    drawn = Releases(table.cells(attribute.name), PerturbedCounts(made), number)
    reader = Differences(np.zeros(number), np.zeros(number))
    outcomes = drawn.attack(CountLaw("local", None, None), generator, StepCounter(None, drawn.steps), reader)
    shown = outcomes.shares["homogeneity", "exact", "uniform"] * profiles.n_cells
    numbers = (outcomes.exposed.astype(np.float64), reader.caused, shown, reader.moved / (2.0 * profiles.n_records))
    figures = tuple(
        SimulatedFigure(name, *mean_and_error(values), float(true))
        for name, values, true in zip(FIGURES, numbers, exact, strict=True)
    )
    return PerturbedSimulation(made, attribute.name, number, int(seed), figures)


@dataclass(frozen=True, eq=False)
class PerturbedCounts:
    """Publications of which each count is drawn from its row, with one random number for each."""

    made: Perturbation
    size: None = None

    def publish(
        self, counts: Floats, releases: int, generator: np.random.Generator, lessen: bool
    ) -> tuple[Floats, Floats]:
        uniform = generator.random((len(counts), releases, counts.shape[2]))
        every = np.broadcast_to(counts, uniform.shape)
        return self._choose(every, uniform), self._choose(np.maximum(every - 1.0, 0.0), uniform)

    def _choose(self, counts: Floats, uniform: Floats) -> Floats:
        """Each count as the value at which its row's sums pass its random number."""
        published = np.zeros_like(uniform)
        for count in np.unique(counts).tolist():
            values, chances = self.made.row(int(count))
            chosen = counts == count
            places = np.searchsorted(np.cumsum(chances), uniform[chosen], side="right")
            published[chosen] = values[np.minimum(places, len(values) - 1)]
        return published


@dataclass(frozen=True, eq=False)
class Differences:
    """People given away by their own record, and the sum of all differences of counts, in each publication."""

    caused: Floats
    moved: Floats

    def read(self, some: slice, counts: Floats, released: Floats, lessened: Floats) -> None:
        self.caused[some] += delete_one(released, lessened, counts)
        self.moved[some] += np.abs(released - counts).sum(axis=(0, 2))
