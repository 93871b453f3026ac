"""The tightest composition there is for any noise: privacy loss distributions, computed by dp-accounting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cellrisk.repeat.accounting.pieces import DiscreteGaussianPiece, GaussianPiece, Piece
from cellrisk.system.arrays import Floats

COARSE, FINE = 0.01, 0.0005
"""The step of the grid, as a share of the typical spread of a piece's loss; epsilon feels about its square."""
FEW_STEPS, MOST_STEPS = 50_000, 500_000
ROUNDING = 5e-16
"""By how much Fourier transforms may misplace delta, for each piece: four times what was seen beside exact sums."""
WIDEST_NOISE = 100_000.0
LARGEST_LOSS = 500.0
"""The largest loss of a piece: beyond it e^-loss underflows, and a distribution only says that all is told."""
WHOLE = 1e-12
"""More than rounding moves a delta that is added up from half a million probabilities."""
TRUNCATED = 1e-6
"""The share of delta that may be spent on leaving out tails. They are counted as certain harm, so the side is safe."""


def why_not(pieces: Sequence[tuple[Piece, int]], delta: float) -> str:
    """Why these pieces have no distribution that can be computed at this delta, or nothing where they have one."""
    least = 2.0 * ROUNDING * sum(times for _, times in pieces)
    if delta < least:
        return f"a delta below {least:.1g} is lost in the rounding errors of so many convolutions"
    if reveals_all(pieces):
        return f"a loss above {LARGEST_LOSS:g} leaves no distribution to look at"
    if any(isinstance(piece, DiscreteGaussianPiece) and piece.amount * WIDEST_NOISE < 1 for piece, _ in pieces):
        return f"a discrete Gaussian wider than {WIDEST_NOISE:g} has too many outcomes to list"
    return ""


def reveals_all(pieces: Sequence[tuple[Piece, int]]) -> bool:
    """Whether a piece tells the two worlds apart but for a chance that floating point cannot hold."""
    return any(piece.reach > LARGEST_LOSS for piece, _ in pieces)


def compose_distributions(pieces: Sequence[tuple[Piece, int]], delta: float) -> float:
    """The smallest epsilon at this delta that the composed distribution shows: an upper bound, close to the exact.

    delta(epsilon) = E[1 - exp(epsilon - L)]+ with L the sum of the pieces' privacy losses (Koskela, Jalko, Honkela
    2020). Each distribution is rounded to the grid so that delta is exact on the grid and above between its points
    (Doroshenko and others 2022, "connect the dots"). Equal pieces are composed at once.

    >>> from cellrisk.repeat.accounting.pieces import PurePiece
    >>> round(compose_distributions([(PurePiece(0.1), 100)], 1e-6), 4)  # basic composition: 10
    4.7746
    """
    with np.errstate(all="ignore"):
        whole = _convolve(pieces, TRUNCATED * delta / (2 * len(pieces)))
        found = whole.get_epsilon_for_delta(delta - ROUNDING * sum(times for _, times in pieces))
    return min(float(found), largest_loss(pieces))


def convolve(pieces: Sequence[tuple[Piece, int]]) -> Any:
    """The distribution of the pieces' losses together, from which `find_deltas` reads."""
    with np.errstate(all="ignore"):
        return _convolve(pieces, TRUNCATED * WHOLE / len(pieces))


def find_deltas(distribution: Any, pieces: Sequence[tuple[Piece, int]], epsilons: Floats) -> Floats:
    """The deltas at these epsilons, ascending and not below 0, that a composed distribution shows: upper bounds.

    >>> from cellrisk.repeat.accounting.pieces import PurePiece
    >>> twice = [(PurePiece(1.0), 2)]
    >>> find_deltas(convolve(twice), twice, np.array([0.0, 1.0, 2.0])).round(6)  # tanh(1/2) at 0
    array([0.462117, 0.337835, 0.      ])
    """
    given = float(epsilons[0]) if len(epsilons) == 1 else epsilons
    with np.errstate(all="ignore"):
        found = np.atleast_1d(distribution.get_delta_for_epsilon(given))
    safe = np.clip(found, 0.0, 1.0) + ROUNDING * sum(times for _, times in pieces) + WHOLE
    return np.asarray(np.where(epsilons >= largest_loss(pieces), 0.0, np.minimum(safe, 1.0)))


def largest_loss(pieces: Sequence[tuple[Piece, int]]) -> float:
    """What the privacy loss never exceeds; infinite where noise has Gaussian tails."""
    return math.inf if _unbounded(pieces) else math.fsum(times * piece.reach for piece, times in pieces)


def _convolve(pieces: Sequence[tuple[Piece, int]], cut: float) -> Any:
    """The distribution of all losses together; tails of about ``cut`` count as certain harm at every step."""
    step = choose_step(pieces)
    parts = [_repeat(piece.distribute(step), times, cut) for piece, times in pieces]
    while len(parts) > 1:
        odd = parts[len(parts) - len(parts) % 2 :]
        pairs = zip(parts[0::2], parts[1::2], strict=False)
        parts = [one.compose(other, tail_mass_truncation=cut) for one, other in pairs] + odd
    return parts[0]


def choose_step(pieces: Sequence[tuple[Piece, int]]) -> float:
    """The distance of the grid's points: fine beside the spread of one piece's loss, so that it is fine for all.

    Rounding adds at most step^2/4 to the variance of each piece's loss. The width of the whole grid is bounded by the
    largest loss, or by a tail of a sum with that many terms. Where it is narrow, FEW_STEPS allow a finer step; no more
    than MOST_STEPS are ever taken.
    """
    count = math.fsum(times for _, times in pieces)
    spread = math.sqrt(math.fsum(times * piece.spread**2 for piece, times in pieces) / count)
    squares = math.fsum(times * piece.reach**2 for piece, times in pieces)
    width = squares + 20.0 * math.sqrt(squares)
    if not _unbounded(pieces):
        width = min(width, 2.0 * math.fsum(times * piece.reach for piece, times in pieces))
    affordable = min(COARSE * spread, max(FINE * spread, width / FEW_STEPS))
    return max(affordable, width / MOST_STEPS, 1e-150)  # whose square is above 0


def _repeat(distribution: Any, times: int, cut: float) -> Any:
    return distribution if times == 1 else distribution.self_compose(times, tail_mass_truncation=cut)


def _unbounded(pieces: Sequence[tuple[Piece, int]]) -> bool:
    return any(isinstance(piece, (GaussianPiece, DiscreteGaussianPiece)) for piece, _ in pieces)
