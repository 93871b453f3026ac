"""What losses are made of: the noise on each count that one record changes, or else the guarantee alone."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.system.arrays import Floats


@dataclass(frozen=True, order=True)
class Piece:
    """One count released once, with what its neighbour in another table would be: the smallest thing that composes."""

    amount: float

    @property
    def rho(self) -> float:
        """The rho of rho-zCDP, a bound: the Renyi divergence of every order a is at most a rho."""
        return 0.5 * self.amount * self.amount

    @property
    def reach(self) -> float:
        """How large its privacy loss can be, or typically is where it has no bound."""
        return self.amount

    @property
    def spread(self) -> float:
        """About how much its privacy loss varies."""
        return min(self.amount, 1.0)

    def diverge(self, orders: Floats) -> Floats:
        """Renyi divergences of these orders, all above 1."""
        return self.rho * orders

    def distribute(self, step: float) -> Any:
        """Its privacy loss distribution on multiples of ``step``, on the safe side (pessimistic)."""
        raise NotImplementedError


class GaussianPiece(Piece):
    """Continuous Gaussian noise; the amount is mu, how far the record moves the count in standard deviations."""

    @property
    def spread(self) -> float:
        return self.amount

    def distribute(self, step: float) -> Any:
        return load_distributions().from_gaussian_mechanism(1.0 / self.amount, value_discretization_interval=step)


class PurePiece(Piece):
    """epsilon-DP and nothing else: the worst is randomised response, whose loss is epsilon or -epsilon (Kairouz, Oh,
    Viswanath 2015). Geometric noise on a count that changes by 1 is that worst: each outcome is e^epsilon times as
    likely in one of the two tables as in the other."""

    def diverge(self, orders: Floats) -> Floats:
        """log(cosh((a - 1/2) epsilon)/cosh(epsilon/2))/(a - 1), written so that small epsilons keep their digits."""
        epsilon = self.amount
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.sinh(orders * epsilon / 2.0) * np.sinh((orders - 1.0) * epsilon / 2.0) / np.cosh(epsilon / 2.0)
            small = np.log1p(2.0 * ratio)
        large = _log_cosh((orders - 0.5) * epsilon) - _log_cosh(np.asarray(epsilon / 2.0))
        return np.asarray(np.where(orders * epsilon < 1.0, small, large) / (orders - 1.0))

    def distribute(self, step: float) -> Any:
        return load_distributions().from_discrete_laplace_mechanism(
            self.amount, value_discretization_interval=step, use_connect_dots=True
        )


class LaplacePiece(PurePiece):
    """Continuous Laplace noise; the amount is 1/scale."""

    def diverge(self, orders: Floats) -> Floats:
        """Mironov 2017, Proposition 6."""
        epsilon = self.amount
        falling = np.expm1((1.0 - 2.0 * orders) * epsilon)
        exact = epsilon + np.log1p((orders - 1.0) * falling / (2.0 * orders - 1.0)) / (orders - 1.0)
        return np.asarray(np.minimum(np.maximum(exact, 0.0), super().diverge(orders)))

    def distribute(self, step: float) -> Any:
        return load_distributions().from_laplace_mechanism(1.0 / self.amount, value_discretization_interval=step)


class DiscreteGaussianPiece(Piece):
    """Integer Gaussian noise; the amount is 1/sigma. It is as concentrated as the continuous one (Canonne, Kamath,
    Steinke 2020, Theorem 4). Its distribution leaves out noise of probability below 1e-30."""

    def distribute(self, step: float) -> Any:
        return load_distributions().from_discrete_gaussian_mechanism(
            1.0 / self.amount, value_discretization_interval=step, use_connect_dots=True
        )


class ConcentratedPiece(Piece):
    """rho-zCDP and nothing else: it says no more of the distribution of the loss."""

    @property
    def rho(self) -> float:
        return self.amount


PIECES: dict[type[Noise], type[Piece]] = {
    LaplaceNoise: LaplacePiece,
    GeometricNoise: PurePiece,
    GaussianNoise: GaussianPiece,
    DiscreteGaussianNoise: DiscreteGaussianPiece,
}


def take_apart(losses: Sequence[Loss], counts: int | None = None) -> list[tuple[Piece, int]]:
    """The pieces of losses, and how often each occurs, in an order that does not depend on the losses'.

    A record that is added or removed changes one count by 1. A record that is replaced changes two by 1 each: it leaves
    one and joins another, and the two have independent noise. So a release is one piece or two, and there is no worse
    neighbour: all counts that change at all change by 1, and symmetric noise does not mind in which direction. Two
    pieces are less than one count that changes by 2. Gaussians make one: their mu^2 add up. Where the mechanism is not
    known, the piece is the worst for its epsilon; a delta is not in it. ``counts`` says how many counts change where it
    is not about the losses' own neighbours; a loss without a mechanism takes no notice of it.

    >>> from cellrisk.noise.mechanisms import mechanism
    >>> take_apart([Loss.of(mechanism("geometric", epsilon=0.5, neighbours="replace"))])
    [(PurePiece(amount=0.25), 2)]
    """
    found: Counter[Piece] = Counter()
    for loss in losses:
        found.update(_pieces_of(loss, counts))
    gaussians = [(piece, times) for piece, times in found.items() if isinstance(piece, GaussianPiece)]
    others = [(piece, times) for piece, times in found.items() if not isinstance(piece, GaussianPiece)]
    if gaussians:
        others.append((GaussianPiece(math.sqrt(math.fsum(times * piece.amount**2 for piece, times in gaussians))), 1))
    return sorted(others, key=lambda counted: (type(counted[0]).__name__, counted[0].amount))


def kind_of(loss: Loss) -> type[Piece] | None:
    """What the noise of a loss makes of a count, or None where there is the guarantee alone."""
    return None if loss.mechanism is None else PIECES.get(type(loss.mechanism.noise))


def load_distributions() -> Any:
    """Privacy loss distributions of dp-accounting, which takes seconds to load."""
    return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")


def _pieces_of(loss: Loss, counts: int | None) -> dict[Piece, int]:
    kind = kind_of(loss)
    if kind is not None and loss.mechanism is not None:
        return {kind(1.0 / loss.mechanism.scale): int(loss.mechanism.l1) if counts is None else counts}
    if loss.rho is not None:
        return {ConcentratedPiece(float(loss.rho)): 1}
    return {PurePiece(float(loss.epsilon or 0.0)): 1}


def _log_cosh(x: Floats) -> Floats:
    return np.asarray(np.abs(x) + np.log1p(np.exp(-2.0 * np.abs(x))) - math.log(2.0))
