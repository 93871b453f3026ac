"""The ceiling: what one person's record adds at most to any attack, and to one that knows every other record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import special

from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.results import Result

MOST_LABELS = 10_000_000
SUM_OF_PRIORS = 1e-9
"""How far priors may add up to something other than 1."""
WIDE = 10_000.0
"""Whole-number Gaussian noise of this scale is taken for the continuous one: a ceiling moves by less than 1e-11."""
MOST_VALUES = 20_000_000
REACH = 10.0
"""Standard deviations beyond which a Gaussian has less than 1e-22 left."""
STEP = 0.125
"""The step of the trapezoidal rule along a Gaussian, in deviations; its error falls like exp(-2 pi 1.5 / STEP)."""
LONG = 45.0
"""exp(-LONG) is lost beside 1."""
WIDEST_PANEL = 0.5
AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Likelihoods:
    """The values of R, how much likelier a released count is with the person in it than without, ascending.

    Every ceiling comes from this one distribution: R = f(Y - 1)/f(Y), f the probabilities of the noise.
    """

    log_ratio: Floats
    without: Floats
    """The probability of each value without the person: of Y = noise."""
    with_person: Floats
    """The likelihood with the person, of Y = 1 + noise. It is R times the other, also where that has underflown."""


@dataclass(frozen=True)
class Labels:
    """What is believed of a person's label before the release: distinct priors, descending, and how many have each."""

    priors: Floats
    times: Floats

    @staticmethod
    def of(priors: Sequence[float]) -> Labels:
        """Labels with these priors, those of prior 0 left out: they are never guessed."""
        distinct, times = np.unique(np.asarray(priors, dtype=np.float64), return_counts=True)
        possible = distinct > 0
        return Labels(distinct[possible][::-1].copy(), times[possible][::-1].astype(np.float64))

    @staticmethod
    def even(labels: int) -> Labels:
        return Labels(np.array([1.0 / labels]), np.array([float(labels)]))

    @property
    def likeliest(self) -> float:
        return float(self.priors[0])


@dataclass(frozen=True, repr=False)
class Ceiling(Result):
    """The answer of `ceiling`: what an attacker who already knows every other record guesses right at most.

    One who also learns from other people's records may be right more often; ``advantage`` bounds what the person's own
    record adds to any attack. It uses the mechanism and the number of labels, and no data: it may be published.
    """

    wording: ClassVar[str] = "ceiling"

    labels: int
    """How many values the sensitive attribute can have."""
    even_two: float
    """The largest probability of a right guess where two values are equally likely beforehand."""
    even: float
    """The largest probability of a right guess where all values are equally likely beforehand."""
    success: float
    """The largest probability of a right guess under the priors that were given; without any, ``even``."""
    advantage: float
    """How much likelier any attack can be right because the person's record is in the table, whatever counts as right:
    the total variation distance that one record makes, or a bound of it."""
    odds: float | None
    """By what factor the odds between two values can move at most; None where nothing bounds it."""
    priors: tuple[float, ...] | None = None
    mechanism: Mechanism | None = None
    """None where several releases are taken together."""
    releases: int = 1
    exact: bool = True
    """Whether some attacker reaches ``success``; otherwise it is an upper bound."""
    neighbours: Neighbours = "add-remove"
    """Whether a record is left out or replaced in ``advantage``."""
    chosen: bool = False
    """Whether epsilon was chosen from the data, which no guarantee covers: then nothing is stated in words."""
    unit: Unit = Unit()  # noqa: RUF009 (it cannot be changed)
    """Whether a record is left out or replaced, or a person with several."""

    def __post_init__(self) -> None:
        for name in ("even_two", "even", "success"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InvalidInput(f"a ceiling is a probability: {name}", got=value, allowed="0 to 1")

    @property
    def prior(self) -> float:
        """How often the best guess is right without the release."""
        return 1.0 / self.labels if self.priors is None else max(self.priors)

    @cached_property
    def rounded(self) -> float | None:
        """``success`` where the attacker sees the rounded counts alone, as they are released, before any is set to 0.

        The same where the noise is made of whole numbers; None where several releases are taken together.
        """
        if self.mechanism is None:
            return None
        if self.unit.contributions > 1:
            return self.success
        labels = Labels.even(self.labels) if self.priors is None else Labels.of(self.priors)
        return find_success(self.mechanism.noise, labels, rounded=True)

    @property
    def of_two(self) -> str:
        """What a board can repeat."""
        return self.headline

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; an odds factor past all numbers is None."""
        named: dict[str, Any] = {"even_two": self.even_two, "even": self.even, "labels": self.labels}
        if self.priors is not None:
            named |= {"priors": list(self.priors), "success": self.success}
        if self.mechanism is not None:
            named["rounded"] = self.rounded
        finite = self.odds is not None and math.isfinite(self.odds)
        named |= {"advantage": self.advantage, "odds": self.odds if finite else None}
        named |= {"exact": self.exact, "releases": self.releases, "sentence": self.headline}
        named |= {} if self.unit == Unit() else {"unit": self.unit.to_dict()}
        return named | ({} if self.mechanism is None else {"mechanism": self.mechanism.to_dict()})

    def _numbers(self) -> list[dict[str, Any]]:
        rows: list[tuple[str, float | None]] = [("even_two", self.even_two), ("even", self.even)]
        if self.priors is not None:
            rows.append(("success", self.success))
        rows += [("rounded", self.rounded), ("prior", self.prior), ("advantage", self.advantage)]
        return [{"figure": name, "value": value} for name, value in rows if value is not None]


def ceiling(
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    labels: int | None = None,
    priors: Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
) -> Ceiling:
    """How often does an attacker who already knows every other record guess a person's value correctly, at most?

    Each released count less what the attacker knows is noise, with 1 added to that of the person's value: y_k =
    1(value = k) + e_k. They name the value with the largest posterior, and are right with probability C =
    E[max_k pi_k R_k], R_k = f(Y_k - 1)/f(Y_k), Y_k from f, the noise. With the same priors no other rule is right more
    often; thresholds and rounding come after the noise. An attacker who starts at these priors and learns from other
    people's records as well may be right more often: C bounds what the person's own record shows. For Laplace and
    Gaussian noise C is that of counts before rounding, and ``rounded`` that of rounded ones. Two even values:
    e^epsilon/(1 + e^epsilon) for geometric noise, 1 - e^-epsilon (1 + epsilon/2)/2 for Laplace, and for Gaussian
    Phi(1/(sqrt2 sigma)). Exact, by sums and quadrature, to about 1e-12. For people with several records it is what the
    guarantee alone bounds: an upper bound.

    Parameters
    ----------
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    labels
        How many values the sensitive attribute can have; two, or as many as there are priors.
    priors
        How likely each value is beforehand for the person in question; without them, all are equally likely. A skewed
        prior can leave the best guess as it was although the odds move, so the even one is what to show.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.

    >>> found = ceiling("laplace", epsilon=1.0)
    >>> round(found.even_two, 6), round(found.rounded, 6)
    (0.72409, 0.710973)
    >>> print(found.headline)
    Having a person's record in this release, instead of leaving it out, raises anybody's chance of naming that person's
    value by at most 39.4 percentage points. Worst case for one record: an attacker who already knows every other
    record, and finds two values equally likely, is right at most 72.5% of the time (coin toss: 50%).
    """
    made = make_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    asked, believed = require_labels(labels, priors)
    if made.unit.contributions > 1:
        return _ceiling_of_guarantee(made, asked, believed)
    noise = made.noise
    even = find_success(noise, Labels.even(asked))
    return Ceiling(
        labels=asked,
        even_two=even if asked == 2 else find_success(noise, Labels.even(2)),
        even=even,
        success=even if believed is None else find_success(noise, Labels.of(believed)),
        advantage=total_variation(made),
        odds=odds_bound(made),
        priors=believed,
        mechanism=made,
        neighbours=made.neighbours,
    )


def require_labels(labels: int | None, priors: Sequence[float] | None) -> tuple[int, tuple[float, ...] | None]:
    """The number of labels, and their priors where any were given: probabilities that add up to 1."""
    count = None if labels is None else require_whole_number("labels", labels, least=2, most=MOST_LABELS)
    if priors is None:
        return count or 2, None
    try:
        shares = [float(share) for share in priors]
    except (TypeError, ValueError):
        raise InvalidInput("priors must be numbers, one for each label", allowed="for example 0.6, 0.3, 0.1") from None
    require_whole_number("the number of priors", len(shares), least=2, most=MOST_LABELS)
    if count is not None and count != len(shares):
        raise InvalidInput("there must be one prior for each label", got=f"{len(shares)} priors for {count} labels")
    if not all(math.isfinite(share) and share >= 0 for share in shares):
        raise InvalidInput("every prior must be a probability", got=min(shares), allowed="0 to 1")
    total = math.fsum(shares)
    if abs(total - 1.0) > SUM_OF_PRIORS:
        raise InvalidInput("priors must add up to 1", got=f"{total:.12g}", fix="divide each by their sum")
    return len(shares), tuple(shares)


def total_variation(given: Mechanism | Noise) -> float:
    """How much likelier can any attack be right because one person's record is in the table? A bound for every attack.

    The total variation between the releases with and without the record: f(0), the probability that rounded noise is
    0, as one count moves by 1 (Laplace 1 - e^(-epsilon/2), geometric tanh(epsilon/2)). Under replace the record is in
    another cell instead, so two counts move: 2 C - 1, C the ceiling of two even labels. For people with several records
    it is what the guarantee alone bounds, (e^epsilon - 1 + 2 delta)/(e^epsilon + 1).

    >>> round(total_variation(make_mechanism("geometric", epsilon=1.0)), 6)
    0.462117
    """
    if isinstance(given, Mechanism):
        if given.unit.contributions > 1:
            return guarantee_success(given.epsilon, given.delta, 2) * 2.0 - 1.0
        if given.neighbours == "replace":
            return 2.0 * find_success(given.noise, Labels.even(2)) - 1.0
        given = given.noise
    return float(given.mass(np.zeros(1))[0])


def guarantee_success(epsilon: float, delta: float, labels: int) -> float:
    """How often can a guess among K even worlds be right, each two of which are (epsilon, delta)-indistinguishable?

    P_k(k named) <= e^epsilon P_j(k named) + delta for all j != k, added up: at most (e^epsilon + (K - 1) delta)/
    (e^epsilon + K - 1).

    >>> round(guarantee_success(1.0, 0.0, 2), 6)
    0.731059
    """
    rest = math.exp(-min(epsilon, 700.0)) * (labels - 1)
    return min((1.0 + rest * delta) / (1.0 + rest), 1.0)


def even_success(mechanism: Mechanism, labels: int = 2) -> float:
    """Return the worst case of values that are equally likely: exact for one record, for a person an upper bound.

    If a person is left out in a neighbouring table, another value is two steps away: 2 epsilon, (1 + e^epsilon) delta.
    """
    if mechanism.unit.contributions == 1:
        return find_success(mechanism.noise, Labels.even(labels))
    epsilon, delta = mechanism.epsilon, mechanism.delta
    if mechanism.neighbours == "replace":
        return guarantee_success(epsilon, delta, labels)
    removed = math.exp(min(epsilon, 700.0)) / labels + delta
    return min(guarantee_success(2.0 * epsilon, (1.0 + math.exp(min(epsilon, 700.0))) * delta, labels), removed)


def _ceiling_of_guarantee(made: Mechanism, labels: int, priors: tuple[float, ...] | None) -> Ceiling:
    """Return the ceiling for a person with several records."""
    even = even_success(made, labels)
    success = even if priors is None else min(1.0, math.exp(min(made.epsilon, 700.0)) * max(priors) + made.delta)
    odds = odds_bound(made)
    if priors is not None and odds is not None:
        success = min(success, max(1.0 / (1.0 + (1.0 - prior) / (prior * odds)) for prior in priors if prior > 0))
    return Ceiling(
        labels=labels,
        even_two=even_success(made),
        even=even,
        success=success,
        advantage=total_variation(made),
        odds=odds,
        priors=priors,
        mechanism=made,
        exact=False,
        neighbours=made.neighbours,
        unit=made.unit,
    )


def odds_bound(mechanism: Mechanism) -> float | None:
    """By what factor can a release move the odds between two values of a person? None where no number bounds it.

    e^(2 epsilon) where epsilon is that of an added or removed record, e^epsilon where it is that of a replaced one: two
    counts move. Only pure guarantees have one.

    >>> round(odds_bound(make_mechanism("geometric", epsilon=1.0)), 6)
    7.389056
    """
    if not mechanism.pure:
        return None
    counted = mechanism.epsilon * (2.0 if mechanism.neighbours == "add-remove" else 1.0)
    return math.exp(counted) if counted < 709.0 else math.inf


def find_success(noise: Noise, labels: Labels, *, rounded: bool = False) -> float:
    """C = E[max_k pi_k R_k] under this noise: the largest probability of a right guess.

    >>> from cellrisk.noise.distributions import GaussianNoise
    >>> round(find_success(GaussianNoise(1.0), Labels.even(2)), 6)  # Phi(1/sqrt 2)
    0.76025
    """
    if noise.is_none:
        return 1.0
    if noise.is_infinite:
        return labels.likeliest
    if not noise.log_concave:
        raise InvalidInput("no ceiling is known for this noise", got=type(noise).__name__)
    steps = step_likelihoods(noise)
    if steps is not None:
        success = succeed(steps, labels) if rounded or noise.is_whole else _succeed_against_laplace(noise, labels)
    elif not (rounded or noise.is_whole) or 2.0 * REACH * noise.scale > min(
        MOST_VALUES / len(labels.priors), 2.0 * REACH * WIDE
    ):
        success = _succeed_against_gaussian(noise.scale, labels)
    else:
        success = succeed(_whole_likelihoods(noise), labels)
    return min(success, 1.0)  # above 1 by rounding alone


def succeed(likelihoods: Likelihoods, labels: Labels) -> float:
    """E[max_k pi_k R_k] for independent R_k with these values: a sum over values of the maximum.

    Take all pairs of a prior and a value by their score pi R. The maximum of a number m of labels with one prior has
    that score or less with probability F^m, and of all labels with the product H of these. So it is at the pair with
    probability H (1 - (1 - q)^m), q = P(R)/F; times pi R, that is pi P'(R) (H/F) (1 - (1 - q)^m)/q, where P' is the
    probability with the person. All terms are positive and none overflows.
    """
    known = (likelihoods.without > 0) | (likelihoods.with_person > 0)
    log_ratio, without, with_person = (
        values[known] for values in (likelihoods.log_ratio, likelihoods.without, likelihoods.with_person)
    )
    near = np.log(labels.priors) + log_ratio[-1] >= math.log(labels.likeliest) + log_ratio[0]  # others never win
    priors, times = labels.priors[near], labels.times[near]
    below = np.cumsum(without)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.minimum(np.where(below > 0, without / below, 0.0), 1.0)
        stay = np.log1p(-share)  # minus infinity at the lowest value: no label has less
        log_below = np.log(below)
    first = int(np.argmax(below > 0))
    scores = np.log(priors)[:, None] + log_ratio
    order = np.argsort(scores, axis=None, kind="stable")
    steps = (times[:, None] * stay).ravel()[order]
    log_product = np.zeros(len(steps))
    log_product[:-1] = np.cumsum(steps[:0:-1])[::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        won = np.where(share > 0, -np.expm1(times[:, None] * stay) / share, times[:, None])
        terms = (priors[:, None] * with_person * won).ravel()[order]
        log_share = log_product - np.broadcast_to(log_below, scores.shape).ravel()[order]
    possible = np.broadcast_to(np.arange(len(log_ratio)) >= first, scores.shape).ravel()[order]
    return float(np.sum(terms[possible] * np.exp(log_share[possible])))


def step_likelihoods(noise: Noise) -> Likelihoods | None:
    """Return R of a released whole number Y, before any is set to 0, for rounded noise with exponential tails.

    R is the same for all Y < 0, and for all Y > 1: with h = log f(0)/f(1), log R is -1/scale, -h, h, 1/scale at Y < 0,
    0, 1, > 1. None for other noise.
    """
    if noise.log_centre is None:
        return None
    fall = 1.0 / noise.scale
    middle, zero = fall + noise.log_centre, float(noise.mass(np.zeros(1))[0])
    below, above = noise.cdf(np.array([-0.5, -1.5])).tolist()
    if middle == fall:
        return Likelihoods(np.array([-fall, fall]), np.array([1.0 - below, below]), np.array([below, 1.0 - below]))
    without = np.array([below, zero, zero * math.exp(-middle), above])
    return Likelihoods(np.array([-fall, -middle, middle, fall]), without, without[::-1].copy())


def _whole_likelihoods(noise: Noise) -> Likelihoods:
    """Return R of a released whole number Y at every value of Y that matters."""
    most = math.ceil(REACH * noise.scale) + 1
    log_mass = noise.log_mass(np.arange(-most - 1, most + 2, dtype=np.float64))
    mass = np.exp(log_mass)
    mass /= mass.sum()
    return Likelihoods(np.maximum.accumulate(log_mass[:-1] - log_mass[1:]), mass[1:], mass[:-1])


def _succeed_against_gaussian(sigma: float, labels: Labels) -> float:
    """sum_k pi_k E[prod_{j != k} Phi(Z + 1/sigma + sigma ln(pi_k/pi_j))], Z standard normal, by the trapezoidal rule.

    All labels share the points, in the coordinate sigma ln(score/pi_1) - 1/(2 sigma), so the product is taken once. The
    points end where the likeliest label's own score cannot be lower, or where no label's can.
    """
    shift = sigma * np.log(labels.priors / labels.likeliest)
    low = max(-1.0 / sigma, float(shift[-1])) - REACH
    points = np.arange(low, REACH + STEP, STEP)
    total = 0.0
    for part in np.array_split(points, 1 + len(points) * len(shift) // AT_ONCE):
        away = part[:, None] - shift
        log_below = special.log_ndtr(away + 1.0 / sigma)
        others = (log_below @ labels.times)[:, None] - log_below
        density = np.exp(others - 0.5 * away * away)
        total += float(np.sum(density @ (labels.times * labels.priors)))
    return total * STEP / math.sqrt(2.0 * math.pi)


def _succeed_against_laplace(noise: Noise, labels: Labels) -> float:
    """pi_1 e^-epsilon + 2 pi_1 times the integral of e^-v Q(e^(v - epsilon)) over v from 0 to epsilon.

    Q(w) = (1 - prod_k (1 - r_k w/2))/w with r_k = sqrt(pi_k/pi_1), over the labels with e^-v < r_k: the others' score
    is below even at its largest. It is the integral of 1 - prod_k G(x/pi_k) over scores x = pi_1 e^(epsilon - 2 v), and
    G the distribution function of R: 1 - sqrt(e^-epsilon/x)/2 from e^-epsilon to e^epsilon, and 1 from there. Gauss
    points on panels inside which no label enters, where the integrand is analytic.
    """
    epsilon = 1.0 / noise.scale
    ratio = np.sqrt(labels.priors / labels.likeliest)
    entry = -np.log(ratio)
    end = min(epsilon, LONG)
    edges = np.unique(np.concatenate([[0.0, end], entry[entry < end], np.arange(0.0, end, WIDEST_PANEL)]))
    points, weights = np.polynomial.legendre.leggauss(10)
    half = 0.5 * np.diff(edges)
    place = (edges[:-1, None] + half[:, None] * (1.0 + points)).ravel()
    weight = (half[:, None] * weights).ravel() * np.exp(-place)
    entered = np.searchsorted(entry, np.repeat(edges[:-1], len(points)), side="right")
    total = 0.0
    for part in np.array_split(np.arange(len(place)), 1 + len(place) * len(ratio) // AT_ONCE):
        total += float(weight[part] @ _lose(np.exp(place[part] - epsilon), entered[part], ratio, labels.times))
    return labels.likeliest * (math.exp(-epsilon) + 2.0 * total)


def _lose(w: Floats, entered: Any, ratio: Floats, times: Floats) -> Floats:
    """(1 - prod_k (1 - r_k w/2))/w over the first labels, that have entered; its limit where w is next to nothing."""
    most = int(entered.max())
    inside = np.arange(most) < entered[:, None]
    logs = np.where(inside, np.log1p(-0.5 * ratio[:most] * w[:, None]), 0.0) @ times[:most]
    limit = np.where(inside, 0.5 * ratio[:most], 0.0) @ times[:most]
    small = w < 1e-200
    return np.asarray(np.where(small, limit, -np.expm1(logs) / np.where(small, 1.0, w)))
