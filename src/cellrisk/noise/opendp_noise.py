"""OpenDP's exactly sampled integer noise, at scales that OpenDP's own privacy map confirms."""

from __future__ import annotations

import importlib
from typing import Any

from cellrisk.errors import InvalidInput

ROUNDED = (1.0, *(1.0 + 2.0 ** (step - 52) for step in range(1, 13)))
"""The factors by which a scale may be rounded up, so that the loss is within the budget to the last digit."""


def load_opendp() -> Any:
    """OpenDP, which is large and optional."""
    try:
        opendp = importlib.import_module("opendp.prelude")
    except ImportError:
        raise InvalidInput("a release needs OpenDP", fix="pip install 'cellrisk[release]'") from None
    opendp.enable_features("contrib")
    return opendp


def make_laplace(opendp: Any, scale: float) -> Any:
    """Discrete Laplace noise on a vector of counts."""
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    return opendp.m.make_laplace(*space, scale=scale)


def make_gaussian(opendp: Any, scale: float) -> Any:
    """Discrete Gaussian noise on a vector of counts."""
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="f64")
    return opendp.m.make_gaussian(*space, scale=scale)


def calibrate_laplace(scale: float, l1: float, epsilon: float) -> tuple[float, float]:
    """Scale and loss: the scale rounded up until OpenDP's map gives a loss that is not above epsilon."""
    opendp = load_opendp()
    for rounded in (scale * factor for factor in ROUNDED):
        loss = make_laplace(opendp, rounded).map(int(l1))
        if loss <= epsilon:
            return rounded, loss
    raise _too_small("geometric", scale)


def calibrate_gaussian(scale: float, l2: float, rho: float, epsilon: float, delta: float) -> tuple[float, float]:
    """Scale and loss: the scale rounded up until, by OpenDP, the loss is within rho, and within epsilon at delta."""
    opendp = load_opendp()
    for rounded in (scale * factor for factor in ROUNDED):
        measurement = make_gaussian(opendp, rounded)
        loss = measurement.map(l2)
        profile = opendp.c.make_zCDP_to_approxDP(measurement).map(l2)
        if loss <= rho and profile.epsilon(delta) <= epsilon:
            return rounded, loss
    raise _too_small("discrete-gaussian", scale)


def _too_small(name: str, scale: float) -> InvalidInput:
    return InvalidInput(
        "the noise of the mechanism is too small for what it promises: OpenDP's privacy map gives more",
        got=f"{name} with scale {scale:g}",
    )
