"""`simulate_perturbation`: whole publications drawn row by row, a second opinion on the figures of a perturbation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.publish.simulation.attacks import CellAttacks
from cellrisk.publish.simulation.drawing import draw_releases, perturbed_release
from cellrisk.publish.simulation.simulation_result import Difference
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.measures import Local
from cellrisk.risk.people import count_people
from cellrisk.risk.perturbed.equal_risk import find_distance
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.results import Result

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable


@dataclass(frozen=True, repr=False)
class PerturbedSimulation(Result):
    """The answer of `simulate_perturbation`."""

    wording: ClassVar[str] = "perturbed_simulation"

    perturbation: Perturbation
    sensitive: str
    publications: int
    seed: int
    figures: tuple[Difference, ...]
    """People exposed, people revealed because of their own record, cells that show a true value alone, and the
    distance: computed exactly, and simulated."""

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
        return [
            {
                **row.name,
                "mean": row.simulated,
                "standard_error": row.standard_error,
                "exact": row.assessed,
                "z": 0.0 - row.z if row.standard_error > 0 else None,
            }
            for row in self.figures
        ]


def simulate_perturbation(
    table: FrequencyTable,
    perturbation: str | Perturbation,
    *,
    releases: int = 1000,
    seed: int = 0,
    sensitive: str | None = None,
) -> PerturbedSimulation:
    """What does the homogeneity attack find in simulated publications of this table?

    Every count is drawn from its row, on its own; nothing of the formulas is used for the draws. The people revealed
    because of their own record are those exposed less those who would be in a table with one record of theirs left out,
    each drawn with the same random number.

    Parameters
    ----------
    table
        Made by `tabulate`.
    perturbation
        As in `assess_perturbation`.
    releases, seed
        How many publications, from 2 on, and where the draws begin.
    sensitive
        May be left out if the table has one sensitive attribute.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = simulate_perturbation(table, "suppress-below:10,round:5", releases=3)
    >>> found.figures[0].simulated == found.figures[0].assessed
    True
    """
    require_table(table)
    made = read_perturbation(perturbation)
    number = require_whole_number("releases", releases, 2, MOST_RELEASES)
    generator = np.random.default_rng(require_whole_number("seed", seed, 0))
    attribute = table.attribute(sensitive)
    profiles = attribute.profiles
    made.check_reach(max(int(block.counts.max()) for block in profiles.blocks))
    attacks = CellAttacks(number)
    for chunk in draw_releases(table.cells(attribute.name), perturbed_release(made), number, generator):
        attacks.read(chunk)
    local = float(Local().average(profiles, made.channel, ("exact",))["exact", "uniform"][0])
    caused = float(caused_shares(profiles, made.channel)[0])
    exposed, distances = attacks.exposed.astype(np.float64), attacks.moved / (2.0 * profiles.n_records)
    shown = attacks.sums["homogeneity", "exact", "uniform"]
    figures = (
        Difference.of("people exposed", count_people(profiles, made.channel).mean, exposed),
        Difference.of("people revealed because of their own record", caused * profiles.n_records, attacks.caused),
        Difference.of("cells showing a true value alone", local * profiles.n_cells, shown),
        Difference.of("distance", find_distance(profiles, made.channel), distances),
    )
    return PerturbedSimulation(made, attribute.name, number, int(seed), figures)
