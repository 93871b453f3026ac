"""How far simulated releases of the Bankruptcy subset are from the true marginals: the boxes of the paper."""

from __future__ import annotations

import math

import numpy as np

from cellrisk.decide.usefulness import utility
from cellrisk.noise.mechanisms import Mechanism, mechanism
from cellrisk.paper.experiments import Experiment
from cellrisk.paper.panels import Box, Boxes
from cellrisk.system.progress import Progress
from cellrisk.system.words import MechanismName, NoisyCells

WAYS = (1, 2, 3)
EPSILONS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
CLASSICAL_EPSILONS = (1e-3, 1e-2, 1e-1, math.nextafter(1.0, 0.0))
"""The authors use 1 itself, where the classical Gaussian mechanism has no guarantee."""
TITLES = {
    "observed": "Figure 4: distance of released from true marginals, Bankruptcy subset, as published",
    "domain": "Figure 4, as a differentially private release needs it: noise on the whole domain",
}
CAPTIONS = {
    "observed": (
        "Mean total variation distance over the releases, a box over the marginals. As the authors did, only the "
        "non-empty cells get noise, with every level; which cells are empty is then outside the guarantee. The last "
        "box of the classical Gaussian mechanism is just below epsilon 1: at 1, which the authors use, it has no "
        "guarantee."
    ),
    "domain": (
        "The same with noise on every combination of values, empty ones too, so that the guarantee covers which cells "
        "are empty."
    ),
}
NAMES = {"observed": "figure-4-distances-as-published", "domain": "figure-4-distances-whole-domain"}


def paper_settings(deltas: tuple[float, ...]) -> list[Mechanism]:
    """The settings of the paper's figure 4, by mechanism, delta, epsilon.

    >>> len(paper_settings((0.001, 0.01, 0.1)))
    36
    """
    settings = [mechanism("laplace", epsilon=epsilon) for epsilon in EPSILONS]
    names: dict[MechanismName, tuple[float, ...]] = {"gaussian": CLASSICAL_EPSILONS, "gaussian-pdp": EPSILONS}
    for name, epsilons in names.items():
        settings += [mechanism(name, epsilon=epsilon, delta=delta) for delta in deltas for epsilon in epsilons]
    return settings


def simulate_boxes(
    experiment: Experiment, cells: NoisyCells, releases: int, seed: int, progress: Progress | None = None
) -> Boxes:
    """The mean TVD over simulated releases for each marginal: an estimate."""
    settings = paper_settings(experiment.deltas)
    found = utility(experiment.table, settings, ways=WAYS, releases=releases, seed=seed, cells=cells, progress=progress)
    means = found.tvd.mean(axis=2)
    ways = np.array([len(columns) for columns in found.marginals])
    return Boxes(
        name=NAMES[cells],
        title=TITLES[cells],
        caption=CAPTIONS[cells],
        cells=cells,
        releases=releases,
        seed=seed,
        ways={
            way: tuple(
                Box(each.name, each.delta, each.epsilon, tuple(float(mean) for mean in row[ways == way]))
                for each, row in zip(settings, means, strict=True)
            )
            for way in WAYS
        },
    )
