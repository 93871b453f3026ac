"""OpenDP's exactly sampled integer noise, at scales that OpenDP's own privacy map confirms."""

from __future__ import annotations

import importlib
from typing import Any

from cellrisk.errors import InvalidInput

ROUNDED = (1.0, *(1.0 + 2.0 ** (step - 52) for step in range(1, 13)))
"""The factors by which a scale may be rounded up, so that the loss is within the budget to the last digit."""


def load_opendp() -> Any:
    """Return OpenDP, which is large and optional."""
    try:
        opendp = importlib.import_module("opendp.prelude")
    except ImportError:
        raise InvalidInput("a release needs OpenDP", fix="pip install 'cellrisk[release]'") from None
    opendp.enable_features("contrib")
    return opendp


def make_noise(scale: float, *, gaussian: bool) -> Any:
    """Return OpenDP's measurement that adds discrete Laplace or Gaussian noise to a vector of counts."""
    opendp = load_opendp()
    distance = opendp.l2_distance(T="f64") if gaussian else opendp.l1_distance(T="i64")
    make = opendp.m.make_gaussian if gaussian else opendp.m.make_laplace
    return make(opendp.vector_domain(opendp.atom_domain(T="i64")), distance, scale=scale)


def calibrate_noise(
    scale: float, distance: float, most: float, guarantee: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Return the scale, rounded up until OpenDP's map at this distance gives a loss that is not above ``most``, and it.

    The loss of discrete Laplace noise is an epsilon; with a guarantee (epsilon, delta) noise is discrete Gaussian, its
    loss a rho, and by OpenDP's conversion it meets the guarantee too.
    """
    opendp, gaussian = load_opendp(), guarantee is not None
    for rounded in (scale * factor for factor in ROUNDED):
        measurement = make_noise(rounded, gaussian=gaussian)
        loss = measurement.map(distance)
        if loss <= most and (
            guarantee is None
            or opendp.c.make_zCDP_to_approxDP(measurement).map(distance).epsilon(guarantee[1]) <= guarantee[0]
        ):
            return rounded, loss
    what = "the noise of the mechanism is too small for what it promises: OpenDP's privacy map gives more"
    raise InvalidInput(what, got=f"{'discrete-gaussian' if gaussian else 'geometric'} with scale {scale:g}")
