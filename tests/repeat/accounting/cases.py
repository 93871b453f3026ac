"""Losses that the tests of accounting share."""

from __future__ import annotations

from cellrisk.noise.mechanisms import mechanism
from cellrisk.repeat.accounting.loss import Event, Loss


def loss_of(name: str, epsilon: float, delta: float | None = None, neighbours: str = "add-remove") -> Loss:
    """The loss of a release through a mechanism."""
    return Loss.of(mechanism(name, epsilon=epsilon, delta=delta, neighbours=neighbours))


def events_of(losses: list[Loss]) -> tuple[Event, ...]:
    """The events of all losses, as `compose` hands them to its methods."""
    return tuple(event for loss in losses for event in loss.events)


def pure(epsilon: float) -> Loss:
    """A guarantee without a known mechanism."""
    return Loss.pure(epsilon)


def approximate(epsilon: float, delta: float) -> Loss:
    return Loss.approximate(epsilon, delta)


def concentrated(rho: float) -> Loss:
    return Loss.zcdp(rho)


ONE_OF_EACH = {
    "laplace": loss_of("laplace", 0.1),
    "geometric": loss_of("geometric", 0.2),
    "gaussian": loss_of("gaussian", 0.5, 1e-6),
    "gaussian-pdp": loss_of("gaussian-pdp", 0.5, 1e-6),
    "gaussian-analytic": loss_of("gaussian-analytic", 2.0, 1e-6),
    "discrete-gaussian": loss_of("discrete-gaussian", 0.3, 1e-6),
    "pure": pure(0.3),
    "approximate": approximate(0.3, 1e-6),
}
