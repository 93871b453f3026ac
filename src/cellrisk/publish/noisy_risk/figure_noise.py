"""Noise on one whole number: OpenDP's exactly sampled discrete Laplace, with its loss by OpenDP's own map."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cellrisk.errors import InvalidInput
from cellrisk.noise.opendp_noise import calibrate_laplace, load_opendp, make_laplace
from cellrisk.system.checks import require_within

CONFIDENCE = 0.95
LEAST_EPSILON, LARGEST_EPSILON = 1e-9, 100.0


@dataclass(frozen=True)
class FigureNoise:
    """Discrete Laplace noise for a figure that one record moves by so many units."""

    scale: float
    """The scale of the noise, in units."""
    loss: float
    """The epsilon of one record's change, by OpenDP's map."""

    def add_to(self, units: int) -> int:
        """The figure with noise, from secure random bits."""
        return int(make_laplace(load_opendp(), self.scale)([units])[0])

    def reach(self, chance: float) -> int:
        """The noise is farther from 0 than this with at most that probability: P(|X| >= k) = 2 a^k/(1 + a).

        >>> FigureNoise(scale=1.0, loss=1.0).reach(0.05)  # 2 exp(-4)/(1 + exp(-1)) = 0.027
        3
        """
        ratio = math.exp(-1.0 / self.scale)
        return max(math.ceil(self.scale * math.log(2.0 / (chance * (1.0 + ratio))) * (1.0 + 1e-12)) - 1, 0)


def check_epsilon(name: str, epsilon: object) -> float:
    """Refuses what is no epsilon for a figure."""
    value = require_within(name, epsilon, above=0, most=LARGEST_EPSILON)
    if value < LEAST_EPSILON:
        raise InvalidInput(f"{name} is too small for a figure that says anything", got=value, allowed="1e-9 or more")
    return value


def calibrate_figure(units: int, epsilon: float) -> FigureNoise:
    """The noise under which a figure that one record moves by ``units`` costs at most epsilon.

    >>> calibrate_figure(4, 0.5)
    FigureNoise(scale=8.0, loss=0.5)
    """
    return FigureNoise(*calibrate_laplace(units / epsilon, units, epsilon))
