"""The ceiling of several releases: what one person's record in them adds at most to any attack on all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import GaussianNoise
from cellrisk.repeat.accounting.distributions import WHOLE, convolve, find_deltas, largest_loss, reveals_all, why_not
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.accounting.pieces import GaussianPiece, Piece, kind_of, load_distributions, take_apart
from cellrisk.risk.ceilings import (
    LONG,
    Ceiling,
    Labels,
    Likelihoods,
    ceiling,
    find_success,
    require_labels,
    succeed,
    total_variation,
)
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list

POINTS, FEWEST = 10_000, 200
"""Points of a curve that are looked at, and how many are kept at least."""
NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class DeltaCurve:
    """delta(epsilon) of releases between two worlds, from privacy loss distributions; an upper bound everywhere.

    The two worlds may change places: noise is symmetric, and a guarantee holds both ways.
    """

    pieces: tuple[tuple[Piece, int], ...]
    disclosed: float = 0.0
    """The probability that a guarantee without a known mechanism, at its worst, tells everything."""

    def at(self, epsilons: Floats) -> Floats:
        """delta at epsilons from 0 on, ascending: 1 - (1 - disclosed)(1 - delta of the rest)."""
        rest = find_deltas(self._distribution, self.pieces, epsilons)
        return np.asarray(rest + self.disclosed * (1.0 - rest))

    @cached_property
    def _distribution(self) -> Any:
        return convolve(self.pieces)

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """Epsilons as far as they matter, and their deltas."""
        squares = math.fsum(times * piece.reach**2 for piece, times in self.pieces)
        end = min(largest_loss(self.pieces), LONG, squares + 10.0 * math.sqrt(squares))
        epsilons = np.linspace(0.0, end, POINTS + 1)
        return epsilons, self.at(epsilons)

    @cached_property
    def at_zero(self) -> float:
        """The total variation between the worlds: no attack does better in one than in the other by more."""
        return float(self.at(np.zeros(1))[0])

    def guess_right(self, prior: float) -> float:
        """How often a guess between the worlds is right where one has this prior; exact where delta is.

        (1 - pi) + pi delta(ln((1 - pi)/pi)), pi the smaller of the two priors.
        """
        pi = min(prior, 1.0 - prior)
        if pi <= 0:
            return 1.0
        delta = float(self.at(np.array([math.log1p(-pi) - math.log(pi)]))[0])
        return (1.0 - pi) + pi * delta

    def likelihoods(self, distinct: int) -> Likelihoods:
        """Two worlds that can be told apart at least as well as the true ones, with a limited number of ratios.

        delta is convex in z = e^epsilon, so it lies below the lines between its values. Lines that bend at z_i belong
        to worlds whose likelihood ratio is z_i with the probability q_i in one, by which the slope changes there, and
        z_i q_i in the other; and as worlds may change places, the other way round at 1/z_i. What the true worlds show
        is what these show, blurred by chance (Blackwell 1951), so nothing that follows from them is too low. The more
        distinct priors there are, the fewer points are taken.
        """
        sparse = max(POINTS * 2 * distinct // NUMBERS_AT_ONCE, 1)
        epsilons, delta = (each[:: min(sparse, POINTS // FEWEST)] for each in self._points)
        epsilons, delta = _bend(epsilons, delta)
        slopes = np.append(np.diff(delta) / np.diff(np.exp(epsilons)), 0.0)
        rare = np.diff(slopes)  # of z_1, z_2, ... in the world where they are rare
        often, told = rare * np.exp(epsilons[1:]), float(delta[-1])
        even = max(1.0 - told - float(np.sum(rare)) - float(np.sum(often)), 0.0)
        logs = np.concatenate([[-np.inf], -epsilons[:0:-1], [0.0], epsilons[1:], [np.inf]])
        rising = np.concatenate([[0.0], rare[::-1], [even], often, [told]])
        return Likelihoods(logs, rising[::-1].copy(), rising)


def _bend(epsilons: Floats, delta: Floats) -> tuple[Floats, Floats]:
    """The lower convex hull of a curve from epsilon 0 on, in z = e^epsilon; it bends at 0 too, where it meets its own
    mirror image: delta(0) <= (z - 1 + 2 delta(z))/(z + 1) at every z."""
    z = np.exp(epsilons)
    delta = delta.copy()
    delta[0] = min(float(delta[0]), float(np.min((z[1:] - 1.0 + 2.0 * delta[1:]) / (z[1:] + 1.0))))
    kept: list[int] = []
    for place in range(len(z)):
        while len(kept) > 1 and _is_above(z, delta, kept[-2], kept[-1], place):
            kept.pop()
        kept.append(place)
    return epsilons[kept], delta[kept]


def _is_above(z: Floats, delta: Floats, before: int, here: int, after: int) -> bool:
    """Whether a point of the curve is on or above the line between two others."""
    return bool(
        (delta[here] - delta[before]) * (z[after] - z[here]) >= (delta[after] - delta[here]) * (z[here] - z[before])
    )


def bound_success(likelihoods: Likelihoods, labels: Labels, *, swapped: bool) -> float:
    """The largest sum of pi_k g(x_k) over x that add up to 1: an upper bound of how often a guess of K labels is right.

    g(x) is the most that an event can have in one world that has probability x in the other. Without the person's
    record, the event that label k is named has some probability x_k, and with it and label k at most g(x_k). Where the
    worlds are two labels instead (``swapped``), the likeliest label is the other world, and its own term is pi x. g is
    concave: its steepest pieces are taken first.
    """
    times = labels.times.copy()
    slopes = np.log(labels.priors)[:, None] + likelihoods.log_ratio
    if swapped:
        times[0] -= 1.0
    widths = (times[:, None] * likelihoods.without).ravel()
    gains = ((times * labels.priors)[:, None] * likelihoods.with_person).ravel()
    if swapped:
        slopes = np.append(slopes, math.log(labels.likeliest))
        widths, gains = np.append(widths, 1.0), np.append(gains, labels.likeliest)
    order = np.argsort(-slopes, axis=None, kind="stable")
    widths, gains = widths[order], gains[order]
    room = 1.0 - (np.cumsum(widths) - widths)
    with np.errstate(invalid="ignore", divide="ignore"):
        taken = np.where(widths > 0, np.clip(room / widths, 0.0, 1.0), 1.0)
    return min(float(np.sum(taken * gains)), 1.0)


def compose_ceiling(
    losses: Sequence[Loss], *, labels: int | None = None, priors: Sequence[float] | None = None
) -> Ceiling:
    """How often does an attacker who knows all other records guess a value correctly from several releases, at most?

    Another value moves two counts of each release by 1. Two labels: (1 - pi) + pi delta(ln((1 - pi)/pi)), delta the
    curve of one label against the other, each release twice. More labels: E[max_k pi_k R_k], R the likelihood ratio of
    one count through all releases. Both are exact but for the rounding of privacy loss distributions, which is to the
    safe side and below 1e-4; for Gaussian noise, or one release, nothing is rounded. Where a loss has no known
    mechanism, its guarantee is taken at its worst, and the answer is the smaller of two bounds, from the curve of two
    labels and from that of a record that is left out. ``advantage`` is delta(0) of the latter, and of the former if a
    loss is that of a replaced record.

    A concentrated loss is refused: it does not say what its noise was.

    >>> from cellrisk.noise.mechanisms import mechanism
    >>> found = compose_ceiling([Loss.of(mechanism("geometric", epsilon=0.5))] * 2, labels=3)
    >>> round(found.even_two, 5), round(found.even, 5)
    (0.68002, 0.53274)
    """
    losses = tuple(read_list("losses", losses, "losses"))
    count, believed = require_labels(labels, priors)
    _require_known_losses(losses)
    if not losses:
        prior = 1.0 / count if believed is None else max(believed)
        return Ceiling(count, 0.5, 1.0 / count, prior, 0.0, 1.0, priors=believed, releases=0)
    if len(losses) == 1 and losses[0].mechanism is not None:
        return ceiling(losses[0].mechanism, labels=count, priors=believed)
    ask = _ask_gaussian(losses) if all(kind_of(loss) is GaussianPiece for loss in losses) else _ask_curves(losses)
    even = ask.guess_right(Labels.even(count))
    return Ceiling(
        labels=count,
        even_two=ask.guess_right(Labels.even(2)),
        even=even,
        success=even if believed is None else ask.guess_right(Labels.of(believed)),
        advantage=ask.advantage,
        odds=bound_odds(losses),
        priors=believed,
        releases=len(losses),
        exact=ask.exact,
        neighbours="replace" if ask.replaced else "add-remove",
    )


@lru_cache(maxsize=512)
def find_ceiling(losses: tuple[Loss, ...], labels: int = 2) -> tuple[Ceiling | None, str]:
    """The ceiling of several releases, computed once; or None, and why it is not known.

    >>> find_ceiling((Loss(flavour="concentrated", rho=0.1),))[0] is None
    True
    """
    try:
        return compose_ceiling(losses, labels=labels), ""
    except InvalidInput as refusal:
        return None, str(refusal)


@dataclass(frozen=True)
class _GaussianReleases:
    """Releases with Gaussian noise alone: together one release, whose precision is the sum of theirs."""

    noise: GaussianNoise
    replaced: bool
    exact: bool = True

    def guess_right(self, labels: Labels) -> float:
        return find_success(self.noise, labels)

    @property
    def advantage(self) -> float:
        return 2.0 * self.guess_right(Labels.even(2)) - 1.0 if self.replaced else total_variation(self.noise)


@dataclass(frozen=True)
class _CurvesOfReleases:
    """Releases by the curves of their privacy loss: between two labels, and between a record and none."""

    swapped: DeltaCurve
    removed: DeltaCurve | None
    """None where a guarantee says nothing of a record that is left out, because it is about a replaced one."""
    replaced: bool
    exact: bool
    """Whether the noise of all releases is known."""

    def guess_right(self, labels: Labels) -> float:
        if reveals_all(self.swapped.pieces):
            return 1.0
        bounds = []
        distinct = len(labels.priors)
        if labels.times.sum() == 2:
            bounds.append(self.swapped.guess_right(labels.likeliest))
        elif self.exact and self.removed is not None:
            bounds.append(succeed(self.removed.likelihoods(distinct), labels) + WHOLE)
        if not self.exact:
            bounds.append(bound_success(self.swapped.likelihoods(distinct), labels, swapped=True) + WHOLE)
            if self.removed is not None:
                bounds.append(bound_success(self.removed.likelihoods(distinct), labels, swapped=False) + WHOLE)
        return max(min(*bounds, 1.0), labels.likeliest)

    @property
    def advantage(self) -> float:
        if reveals_all(self.swapped.pieces):
            return 1.0
        return (self.swapped if self.replaced or self.removed is None else self.removed).at_zero


def _ask_gaussian(losses: Sequence[Loss]) -> _GaussianReleases:
    [(piece, _)] = take_apart(losses, counts=1)
    return _GaussianReleases(GaussianNoise(1.0 / max(piece.amount, 1e-150)), _any_replaced(losses))


def _ask_curves(losses: Sequence[Loss]) -> _CurvesOfReleases:
    unknown = [loss for loss in losses if kind_of(loss) is None]
    swapped = DeltaCurve(
        tuple(take_apart([_swap(loss) for loss in losses], counts=2)), _disclose(unknown, swapped=True)
    )
    says_nothing = any(loss.neighbours == "replace" for loss in unknown)
    removed = None if says_nothing else DeltaCurve(tuple(take_apart(losses, counts=1)), _disclose(unknown))
    for curve in (swapped, removed):
        why = "" if curve is None or reveals_all(curve.pieces) else why_not(curve.pieces, 1.0)
        if why:
            raise InvalidInput(f"these losses have no ceiling that can be computed: {why}")
    try:
        load_distributions()
    except ImportError:
        raise InvalidInput(
            "the ceiling of several releases needs dp-accounting", fix="pip install 'cellrisk[ledger]'"
        ) from None
    return _CurvesOfReleases(swapped, removed, _any_replaced(losses), exact=not unknown)


def _swap(loss: Loss) -> Loss:
    """The loss where another label takes the place of one: for a guarantee alone, a record removed and one added."""
    if kind_of(loss) is not None or loss.neighbours == "replace":
        return loss
    return Loss(flavour="pure", epsilon=2.0 * float(loss.epsilon or 0.0), neighbours="replace")


def _disclose(unknown: Sequence[Loss], *, swapped: bool = False) -> float:
    """The probability that one of these guarantees fails: 1 - prod(1 - delta).

    Where (epsilon, delta) is that of an added or removed record, it is (2 epsilon, (1 + e^epsilon) delta) of a swap.
    """
    deltas = []
    for loss in unknown:
        if swapped and loss.neighbours == "add-remove" and loss.delta > 0:
            log_delta = math.log(loss.delta) + float(np.logaddexp(0.0, loss.epsilon or 0.0))
            deltas.append(math.exp(min(log_delta, 0.0)))
        else:
            deltas.append(loss.delta)
    return 1.0 if 1.0 in deltas else -math.expm1(math.fsum(math.log1p(-delta) for delta in deltas))


def bound_odds(losses: Sequence[Loss]) -> float | None:
    """The odds factors of pure losses multiply; others bound none."""
    if any(loss.flavour != "pure" for loss in losses):
        return None
    counted = math.fsum(
        (2.0 if loss.neighbours == "add-remove" else 1.0) * float(loss.epsilon or 0.0) for loss in losses
    )
    with np.errstate(over="ignore"):
        return float(np.exp(counted))


def _any_replaced(losses: Sequence[Loss]) -> bool:
    return any(loss.neighbours == "replace" for loss in losses)


def _require_known_losses(losses: Sequence[Loss]) -> None:
    for loss in losses:
        if not isinstance(loss, Loss):
            raise InvalidInput(
                "only losses have a ceiling together", got=type(loss).__name__, fix="make each with Loss"
            )
    concentrated = sum(loss.flavour == "concentrated" for loss in losses)
    if concentrated:
        raise InvalidInput(
            "a concentrated loss says nothing of the distribution that it came from, so it has no ceiling",
            got=f"{concentrated} of {len(losses)}",
            fix="give the mechanism: Loss.of(mechanism)",
        )
