"""The ceiling of several releases: what one person's record in them adds at most to any attack on all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import GaussianNoise, GeometricNoise
from cellrisk.repeat.accounting.distributions import RENYI_ORDERS, WHOLE, Parts
from cellrisk.repeat.accounting.loss import NOISE, Event, Loss
from cellrisk.risk.ceilings import (
    LONG,
    MOST_LABELS,
    Ceiling,
    Likelihoods,
    ceiling,
    find_success,
    step_likelihoods,
    succeed,
)
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list, require_whole_number

POINTS = 10_000
"""Points of a curve that are looked at."""
RENYI_POINTS = 400
MOST_ATOMS = 200_000
"""Likelihood ratios that are listed at most; beyond them, privacy loss distributions are used."""
SAME = 12
"""Digits to which two log ratios that were added up in different orders are one."""


@dataclass(frozen=True)
class DeltaCurve:
    """delta(epsilon) of releases between two worlds, an upper bound everywhere.

    From privacy loss distributions; where a guarantee is a rho alone, from Renyi divergences. The two worlds may change
    places: noise is symmetric, and a guarantee holds both ways.
    """

    parts: Parts

    @staticmethod
    def of(parts: Parts) -> DeltaCurve:
        """Refuse parts of which no curve can be computed."""
        why = "" if parts.reveals_all or parts.concentrated else parts.why_not(1.0)
        if why:
            raise InvalidInput(f"these losses have no ceiling that can be computed: {why}", code="no-ceiling")
        return DeltaCurve(parts)

    @cached_property
    def disclosed(self) -> float:
        """The probability that a guarantee alone, at its worst, tells everything: 1 - prod(1 - delta)."""
        deltas = self.parts.deltas
        return 1.0 if 1.0 in deltas else -math.expm1(math.fsum(math.log1p(-delta) for delta in deltas))

    def at(self, epsilons: Floats) -> Floats:
        """delta at epsilons from 0 on, ascending: 1 - (1 - disclosed)(1 - delta of the rest)."""
        if self.parts.concentrated:
            rest = self._convert(epsilons)
        else:
            rest = self.parts.find_deltas(self._distribution, epsilons)
        return np.asarray(rest + self.disclosed * (1.0 - rest))

    def _convert(self, epsilons: Floats) -> Floats:
        """The least over orders a of exp((a - 1)(D(a) - epsilon)) (1 - 1/a)^a/(a - 1) (Canonne, Kamath, Steinke 2020,
        Proposition 12), and at epsilon 0 Pinsker's sqrt(KL/2) too, from the lowest order: D rises with a."""
        orders = RENYI_ORDERS[::10]
        divergences = self.parts.diverge(orders)
        constant = orders * np.log1p(-1.0 / orders) - np.log(orders - 1.0)
        logs = ((orders - 1.0) * (divergences - epsilons[:, None]) + constant).min(axis=1)
        pinsker = math.sqrt(0.5 * float(divergences[0]))
        return np.asarray(np.minimum(np.exp(np.minimum(logs, 0.0)), pinsker))

    @cached_property
    def _distribution(self) -> Any:
        return self.parts.convolve()

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """Epsilons as far as they matter, and their deltas."""
        if self.parts.concentrated:
            squares, points = 2.0 * float(self.parts.diverge(np.array([2.0]))[0]), RENYI_POINTS
        else:
            squares = math.fsum(times * one.amount**2 for one, times in self.parts.moved)
            points = POINTS
        end = min(self.parts.largest_loss, LONG, squares + 10.0 * math.sqrt(squares))
        epsilons = np.linspace(0.0, end, points + 1)
        return epsilons, self.at(epsilons)

    @cached_property
    def at_zero(self) -> float:
        """The total variation between the worlds: no attack does better in one than in the other by more."""
        return 1.0 if self.parts.reveals_all else float(self.at(np.zeros(1))[0])

    def likelihoods(self) -> Likelihoods:
        """Two worlds that can be told apart at least as well as the true ones, with a limited number of ratios.

        delta is convex in z = e^epsilon, so it lies below the lines between its values. Lines that bend at z_i belong
        to worlds whose likelihood ratio is z_i with the probability q_i in one, by which the slope changes there, and
        z_i q_i in the other; and as worlds may change places, the other way round at 1/z_i. What the true worlds show
        is what these show, blurred by chance (Blackwell 1951), so nothing that follows from them is too low.
        """
        epsilons, delta = _bend(*self._points)
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
    z, delta = np.exp(epsilons), delta.copy()
    delta[0] = min(float(delta[0]), float(np.min((z[1:] - 1.0 + 2.0 * delta[1:]) / (z[1:] + 1.0))))
    kept: list[int] = []
    for point in range(len(z)):
        while len(kept) > 1:
            before, last = kept[-2:]
            rise = (delta[last] - delta[before]) * (z[point] - z[last])
            if rise < (delta[point] - delta[last]) * (z[last] - z[before]):
                break
            kept.pop()  # on or above the line between the two others
        kept.append(point)
    return epsilons[kept], delta[kept]


def bound_success(likelihoods: Likelihoods, labels: int, *, swapped: bool) -> float:
    """The largest (1/K) sum of g(x_k) over x that add up to 1: a bound of how often a guess of K labels is right.

    g(x) is the most that an event can have in one world that has probability x in the other. Without the person's
    record, the event that label k is named has some probability x_k, and with it and label k at most g(x_k). Where the
    worlds are two labels instead (``swapped``), one label is the other world, and its own term is x. g is concave: its
    steepest pieces are taken first.
    """
    times = labels - 1.0 if swapped else float(labels)
    slopes, widths, gains = likelihoods.log_ratio, times * likelihoods.without, times * likelihoods.with_person
    if swapped:
        slopes, widths, gains = np.append(slopes, 0.0), np.append(widths, 1.0), np.append(gains, 1.0)
    order = np.argsort(-slopes, kind="stable")
    widths, gains = widths[order], gains[order]
    room = 1.0 - (np.cumsum(widths) - widths)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        taken = np.where(widths > 0, np.clip(room / widths, 0.0, 1.0), 1.0)
    return min(float(np.sum(taken * gains)) / labels, 1.0)


def compose_ceiling(losses: Sequence[Loss], *, labels: int = 2) -> Ceiling:
    """How often does an attacker who knows all other records guess a value correctly from several releases, at most?

    Another value moves two counts of each table by 1. Geometric noise: the likelihood ratios of one count, listed
    through all tables, R with E[max_k R_k]/K; Gaussian noise: all tables are one with 1/sigma^2 = sum 1/sigma_t^2;
    both exact. Other noise goes through privacy loss distributions: two labels (1 + delta(0))/2,
    delta the curve of one label against the other; more labels from R again; rounded to the safe side, by less than
    1e-4. Noise is taken as its event states it: Laplace noise before rounding, which bounds rounded counts; no release
    of cellrisk has it. A guarantee alone is taken at its worst, and the answer is the smaller of two bounds, from the
    curve of two labels and from that of a record that is left out; a rho alone bounds those curves by its Renyi
    divergences. ``advantage`` is delta(0) of the latter curve, and of the former if a loss is that of a replaced
    record.

    Parameters
    ----------
    losses
        Those of the releases. A set of tables and the same tables one by one have the same events, and one ceiling.
    labels
        As in `ceiling`.

    >>> from cellrisk.noise.mechanisms import mechanism
    >>> found = compose_ceiling([Loss.of(mechanism("geometric", epsilon=0.5))] * 2, labels=3)
    >>> round(found.even_two, 5), round(found.even, 5)
    (0.68002, 0.53274)
    """
    losses = tuple(read_list("losses", losses, "losses"))
    require_whole_number("labels", labels, least=2, most=MOST_LABELS)
    if not all(isinstance(loss, Loss) for loss in losses):
        raise InvalidInput("only losses have a ceiling together", fix="make each with Loss.of", code="no-loss")
    if not losses:
        return Ceiling(labels, 0.5, 1.0 / labels, 0.0, 1.0, releases=0)
    if len(losses) == 1 and losses[0].mechanism is not None:
        return ceiling(losses[0].mechanism, labels=labels)
    replaced, removed = any(loss.neighbours == "replace" for loss in losses), find_removed(losses)
    exact = all(event.kind in NOISE for loss in losses for event in loss.events)
    if removed is not None and removed.gaussian is not None:
        noise = GaussianNoise(1.0 / removed.gaussian)
        guess_right: Callable[[int], float] = partial(find_success, noise)
        advantage = math.erf(0.5 / (math.sqrt(2.0) * noise.scale))
    elif (listed := _list_likelihoods(losses)) is not None:
        guess_right = partial(succeed, listed)
        advantage = float(np.maximum(listed.with_person - listed.without, 0.0).sum())
    else:
        swapped = DeltaCurve.of(find_swapped(losses))
        left_out = None if removed is None else DeltaCurve.of(removed)
        guess_right = partial(bound_guesses, swapped, left_out, exact)
        advantage = left_out.at_zero if left_out is not None else 1.0
    even_two, even = (min(guess_right(number), 1.0) for number in (2, labels))
    # The odds factors of pure losses multiply; others bound none.
    epsilons = [(loss.epsilon or 0.0) * (1.0 if loss.neighbours == "replace" else 2.0) for loss in losses]
    with np.errstate(over="ignore"):
        odds = float(np.exp(math.fsum(epsilons)))
    return Ceiling(
        labels=labels,
        even_two=even_two,
        even=even,
        advantage=2.0 * even_two - 1.0 if replaced else min(advantage, 1.0),
        odds=odds if all(loss.dp_definition == "pure" for loss in losses) else None,
        releases=len(losses),
        exact=exact,
        neighbours="replace" if replaced else "add-remove",
        unit=losses[0].unit,
    )


@lru_cache(maxsize=512)
def find_ceiling(losses: tuple[Loss, ...], labels: int = 2) -> tuple[Ceiling | None, str]:
    """The ceiling of several releases, computed once; or None, and why it is not known."""
    try:
        return compose_ceiling(losses, labels=labels), ""
    except InvalidInput as refusal:
        return None, str(refusal)


def describe_ceiling(found: Ceiling | None) -> dict[str, Any] | None:
    """A ceiling of some releases as JSON-ready values."""
    if found is None:
        return None
    named = {"even_two": found.even_two, "even": found.even, "labels": found.labels}
    return {**named, "advantage": found.advantage, "exact": found.exact, "sentence": found.headline}


def bound_guesses(swapped: DeltaCurve, removed: DeltaCurve | None, known: bool, labels: int) -> float:
    """The largest probability of a right guess: exact, but for rounding up, if the noise is known; else a bound.

    From the curves between two labels, and between a record and none, if there is one.
    """
    if swapped.parts.reveals_all:
        return 1.0
    bounds = [1.0]
    if labels == 2:
        bounds.append(0.5 * (1.0 + swapped.at_zero))
    elif known and removed is not None:
        bounds.append(succeed(removed.likelihoods(), labels) + WHOLE)
    if not known:
        bounds.append(bound_success(swapped.likelihoods(), labels, swapped=True) + WHOLE)
        if removed is not None:
            bounds.append(bound_success(removed.likelihoods(), labels, swapped=False) + WHOLE)
    return max(min(bounds), 1.0 / labels)


def find_removed(losses: Sequence[Loss]) -> Parts | None:
    """What moves where a record is left out; None where a guarantee about a replaced one says nothing of that."""
    replaced = [event for loss in losses if loss.neighbours == "replace" for event in loss.events]
    if any(event.kind not in NOISE for event in replaced):
        return None
    others = [event for loss in losses if loss.neighbours != "replace" for event in loss.events]
    return Parts.of(others) + Parts.of(replaced, 0.5)


def find_swapped(losses: Sequence[Loss]) -> Parts:
    """What moves where another label takes the place of one: twice the counts that a record left out moves.

    A guarantee about a record left out holds twice: 2 epsilon, (1 + e^epsilon) delta; 4 rho.
    """
    replaced = [event for loss in losses if loss.neighbours == "replace" for event in loss.events]
    others = [_twice(event) for loss in losses if loss.neighbours != "replace" for event in loss.events]
    return Parts.of(replaced) + Parts.of(others, 2.0)


def _twice(event: Event) -> Event:
    epsilon = float(event.epsilon or 0.0)
    if event.kind == "zcdp":
        return replace(event, rho=4.0 * float(event.rho or 0.0))
    if event.kind == "pure":
        return replace(event, epsilon=2.0 * epsilon)
    if event.kind == "approximate":
        log_delta = math.log(event.delta) + float(np.logaddexp(0.0, epsilon))
        return replace(event, epsilon=2.0 * epsilon, delta=math.exp(min(log_delta, -1e-15)))
    return event


def _list_likelihoods(losses: Sequence[Loss]) -> Likelihoods | None:
    """The likelihood ratio of one person's counts in all tables; None where its values cannot be listed."""
    log_ratio, without, with_person = np.zeros(1), np.ones(1), np.ones(1)
    for event, neighbours in ((event, loss.neighbours) for loss in losses for event in loss.events):
        moved = 1 if neighbours == "add-remove" else 2
        if event.kind != "geometric" or event.sensitivity != 1 or event.number != moved:
            return None
        one = step_likelihoods(GeometricNoise(float(event.scale or 0.0)))
        if len(log_ratio) * len(one.log_ratio) > MOST_ATOMS:
            return None
        log_ratio = np.add.outer(log_ratio, one.log_ratio).ravel()
        without = np.multiply.outer(without, one.without).ravel()
        with_person = np.multiply.outer(with_person, one.with_person).ravel()
        log_ratio, index = np.unique(np.round(log_ratio, SAME), return_inverse=True)
        without, with_person = (np.asarray(np.bincount(index, each), np.float64) for each in (without, with_person))
    return Likelihoods(log_ratio, without, with_person)
