"""Losses that the tests of this room share."""

from __future__ import annotations

from cellrisk.noise.mechanisms import mechanism
from cellrisk.repeat.accounting.loss import Loss


def loss_of(name: str, epsilon: float, delta: float | None = None, neighbours: str = "add-remove") -> Loss:
    """The loss of a release through a mechanism."""
    return Loss.of(mechanism(name, epsilon=epsilon, delta=delta, neighbours=neighbours))


def pure(epsilon: float) -> Loss:
    """A guarantee without a known mechanism."""
    return Loss(flavour="pure", epsilon=epsilon)


def approximate(epsilon: float, delta: float) -> Loss:
    return Loss(flavour="approximate", epsilon=epsilon, delta=delta)


def probabilistic(epsilon: float, delta: float) -> Loss:
    return Loss(flavour="probabilistic", epsilon=epsilon, delta=delta)


def concentrated(rho: float) -> Loss:
    return Loss(flavour="concentrated", rho=rho)


ONE_OF_EACH = {
    "laplace": loss_of("laplace", 0.1),
    "geometric": loss_of("geometric", 0.2),
    "gaussian": loss_of("gaussian", 0.5, 1e-6),
    "gaussian-pdp": loss_of("gaussian-pdp", 0.5, 1e-6),
    "gaussian-analytic": loss_of("gaussian-analytic", 2.0, 1e-6),
    "discrete-gaussian": loss_of("discrete-gaussian", 0.3, 1e-6),
    "pure": pure(0.3),
    "approximate": approximate(0.3, 1e-6),
    "probabilistic": probabilistic(0.3, 1e-6),
}
