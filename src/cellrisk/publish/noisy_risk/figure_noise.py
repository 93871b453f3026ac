"""Noise on one whole number: OpenDP's exactly sampled discrete Laplace, with its loss by OpenDP's own map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.opendp_noise import ROUNDINGS, load_opendp
from cellrisk.system.checks import require_within

CONFIDENCE = 0.95
LARGEST_EPSILON = 100.0


@dataclass(frozen=True)
class FigureNoise:
    """Discrete Laplace noise for a figure that one record moves by so many units."""

    scale: float
    """The scale of the noise, in units."""
    loss: float
    """The epsilon of one record's change, by OpenDP's map."""

    def add_to(self, units: int) -> int:
        """The figure with noise, from secure random bits."""
        return int(_build(load_opendp(), self.scale)(units))

    def reach(self, chance: float) -> int:
        """The noise is farther from 0 than this with at most that probability: P(|X| >= k) = 2 a^k/(1 + a).

        >>> FigureNoise(scale=1.0, loss=1.0).reach(0.05)  # 2 exp(-4)/(1 + exp(-1)) = 0.027
        3
        """
        ratio = math.exp(-1.0 / self.scale)
        return max(math.ceil(self.scale * math.log(2.0 / (chance * (1.0 + ratio))) * (1.0 + 1e-12)) - 1, 0)


def check_epsilon(name: str, epsilon: object) -> float:
    """Refuses what is no epsilon for a figure."""
    return require_within(name, epsilon, above=0, most=LARGEST_EPSILON)


def calibrate_figure(units: int, epsilon: float) -> FigureNoise:
    """The noise under which a figure that one record moves by ``units`` costs at most epsilon.

    >>> calibrate_figure(4, 0.5)
    FigureNoise(scale=8.0, loss=0.5)
    """
    opendp = load_opendp()
    for rounding in ROUNDINGS:
        scale = units / epsilon * (1.0 + rounding)
        loss = float(_build(opendp, scale).map(units))
        if loss <= epsilon:
            return FigureNoise(scale, loss)
    raise InvalidInput(
        "the noise is too small for what it promises: OpenDP's privacy map gives more", got=f"epsilon {epsilon:g}"
    )


def _build(opendp: Any, scale: float) -> Any:
    return opendp.m.make_laplace(opendp.atom_domain(T="i64"), opendp.absolute_distance(T="i64"), scale=scale)
