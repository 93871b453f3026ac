"""The ceiling: what one person's record adds at most to any attack, and to one that knows every other record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.results import Result

MOST_LABELS = 10_000_000
WIDE = 10_000.0
"""Whole-number Gaussian noise of this scale is taken for the continuous one: a ceiling moves by less than 1e-11."""
REACH = 10.0
"""Standard deviations beyond which a Gaussian has less than 1e-22 left."""
STEP = 0.125
"""The step of the trapezoidal rule along a Gaussian, in deviations; its error falls like exp(-2 pi 1.5 / STEP)."""
LONG = 45.0
"""exp(-LONG) is lost beside 1."""
TIE = 1e-12
MOST_PAIRS = 100_000
"""Pairs of known counts that are compared for the ceiling."""


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
    advantage: float
    """How much likelier any attack can be right because the person's record is in the table, whatever counts as right:
    the total variation distance that one record makes, or a bound of it."""
    odds: float | None
    """By what factor the odds between two values can move at most; None where nothing bounds it."""
    mechanism: Mechanism | None = None
    """None where several releases are taken together."""
    releases: int = 1
    exact: bool = True
    """Whether some attacker reaches ``even``; otherwise it is an upper bound."""
    neighbours: Neighbours = "add-remove"
    """Whether a record is left out or replaced in ``advantage``."""
    chosen: bool = False
    """Whether epsilon was chosen from the data, which no guarantee covers: then nothing is stated in words."""
    unit: Unit = Unit()  # noqa: RUF009 (it cannot be changed)
    """Whether a record is left out or replaced, or a person with several."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; an odds factor past all numbers is None."""
        named: dict[str, Any] = {"even_two": self.even_two, "even": self.even, "labels": self.labels}
        finite = self.odds is not None and math.isfinite(self.odds)
        named |= {"advantage": self.advantage, "odds": self.odds if finite else None}
        named |= {"exact": self.exact, "releases": self.releases, "sentence": self.headline}
        named |= {} if self.unit == Unit() else {"unit": self.unit.to_dict()}
        return named | ({} if self.mechanism is None else {"mechanism": self.mechanism.to_dict()})

    def _numbers(self) -> list[dict[str, Any]]:
        known = {**vars(self), "prior": 1.0 / self.labels}
        return [{"figure": name, "value": known[name]} for name in ("even_two", "even", "prior", "advantage")]


def ceiling(
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    labels: int = 2,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
) -> Ceiling:
    """How often does an attacker who already knows every other record guess a person's value correctly, at most?

    Each released count less what the attacker knows is noise, with 1 added to that of the person's value: y_k =
    1(value = k) + e_k. All K values are equally likely beforehand: they name the one with the largest posterior, and
    are right with probability C = E[max_k R_k]/K, R_k = f(Y_k - 1)/f(Y_k), Y_k from f, the noise. No other rule is
    right more often; thresholds and rounding come after the noise. An attacker who learns from other people's records
    as well may be right more often: C bounds what the person's own record shows. For Laplace and Gaussian noise C is
    that of counts before rounding. Two even values:
    e^epsilon/(1 + e^epsilon) for geometric noise, 1 - e^-epsilon (1 + epsilon/2)/2 for Laplace, and for Gaussian
    Phi(1/(sqrt2 sigma)). Exact, by sums and quadrature, to about 1e-12. For people with several records it is what the
    guarantee alone bounds: an upper bound.

    Parameters
    ----------
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    labels
        How many values the sensitive attribute can have.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.

    >>> found = ceiling("laplace", epsilon=1.0)
    >>> round(found.even_two, 6)
    0.72409
    >>> print(found.headline)
    Having a person's record in this release, instead of leaving it out, raises anybody's chance of naming that person's
    value by at most 39.4 percentage points. Worst case for one record: an attacker who already knows every other
    record, and finds two values equally likely, is right at most 72.5% of the time (coin toss: 50%).
    """
    made = make_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    require_whole_number("labels", labels, least=2, most=MOST_LABELS)
    return Ceiling(
        labels=labels,
        even_two=even_success(made),
        even=even_success(made, labels),
        advantage=total_variation(made),
        odds=odds_bound(made),
        mechanism=made,
        exact=made.unit.contributions == 1,
        neighbours=made.neighbours,
        unit=made.unit,
    )


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
            return 2.0 * find_success(given.noise, 2) - 1.0
        given = given.noise
    return float(given.mass(np.zeros(1))[0])


def guarantee_success(epsilon: float, delta: float, labels: int) -> float:
    """How often can a guess among K even worlds be right, each two of which are (epsilon, delta)-indistinguishable?

    P_k(k named) <= e^epsilon P_j(k named) + delta for all j != k, added up: at most (e^epsilon + (K - 1) delta)/
    (e^epsilon + K - 1).
    """
    rest = math.exp(-min(epsilon, 700.0)) * (labels - 1)
    return min((1.0 + rest * delta) / (1.0 + rest), 1.0)


def even_success(mechanism: Mechanism, labels: int = 2) -> float:
    """Return the worst case of values that are equally likely: exact for one record, for a person an upper bound.

    If a person is left out in a neighbouring table, values are two steps apart, 2 epsilon and (1 + e^epsilon) delta.
    And value k, named with probability p_k without the person, is named with one of at most
    min(e^epsilon p_k + delta, 1 - e^-epsilon (1 - p_k - delta)), which is concave: the sum is largest at p_k = 1/K.
    """
    if mechanism.unit.contributions == 1:
        return find_success(mechanism.noise, labels)
    epsilon, delta = mechanism.epsilon, mechanism.delta
    if mechanism.neighbours == "replace":
        return guarantee_success(epsilon, delta, labels)
    factor = math.exp(min(epsilon, 700.0))
    removed = min(factor / labels + delta, 1.0 - (1.0 - 1.0 / labels - delta) / factor)
    return min(guarantee_success(2.0 * epsilon, (1.0 + factor) * delta, labels), removed)


def odds_bound(mechanism: Mechanism) -> float | None:
    """By what factor can a release move the odds between two values of a person? None where no number bounds it.

    e^(2 epsilon) where epsilon is that of an added or removed record, e^epsilon where it is that of a replaced one: two
    counts move. Only pure guarantees have one.
    """
    if not mechanism.pure:
        return None
    counted = mechanism.epsilon * (2.0 if mechanism.neighbours == "add-remove" else 1.0)
    return math.exp(counted) if counted < 709.0 else math.inf


def find_success(noise: Noise, labels: int) -> float:
    """C = E[max_k R_k]/K under this noise: the largest probability of a right guess among K even labels.

    >>> from cellrisk.noise.distributions import GaussianNoise
    >>> round(find_success(GaussianNoise(1.0), 2), 6)  # Phi(1/sqrt 2)
    0.76025
    """
    if noise.is_none or noise.is_infinite:
        return 1.0 if noise.is_none else 1.0 / labels
    if not noise.log_concave:
        raise InvalidInput("no ceiling is known for this noise", got=type(noise).__name__)
    exponential = noise.log_centre is not None
    if noise.is_whole and (exponential or noise.scale <= WIDE):
        success = succeed(step_likelihoods(noise) if exponential else _whole_likelihoods(noise), labels)
    elif exponential:
        success = _succeed_against_laplace(noise, labels)
    else:
        success = _succeed_against_gaussian(noise.scale, labels)
    return min(success, 1.0)  # above 1 by rounding alone


def succeed(likelihoods: Likelihoods, labels: int) -> float:
    """E[max_k R_k]/K for K independent R_k with these values: (1/K) sum_r r (F(r)^K - F(r-)^K).

    With q = P(r)/F(r) and P' the probability with the person, r P(r) = P'(r), a term is P'(r) F(r)^(K-1)
    (1 - (1 - q)^K)/q: all are positive and none overflows.
    """
    below = np.cumsum(likelihoods.without)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(below > 0, np.minimum(likelihoods.without / below, 1.0), 0.0)
        won = np.where(share > 0, -np.expm1(labels * np.log1p(-share)) / share, labels)
    return float(np.sum(likelihoods.with_person * won * below ** (labels - 1.0))) / labels


def step_likelihoods(noise: Noise) -> Likelihoods:
    """Return R under geometric noise Y, before any count is set to 0: log R is -1/scale at Y < 1, and 1/scale above."""
    fall, above = 1.0 / noise.scale, float(noise.cdf(-0.5))  # Y > 0 is as likely as Y < 0
    return Likelihoods(np.array([-fall, fall]), np.array([1.0 - above, above]), np.array([above, 1.0 - above]))


def _whole_likelihoods(noise: Noise) -> Likelihoods:
    """Return R of a released whole number Y at every value of Y that matters."""
    most = math.ceil(REACH * noise.scale) + 1
    log_mass = noise.log_mass(np.arange(-most - 1, most + 2, dtype=np.float64))
    mass = np.exp(log_mass)
    mass /= mass.sum()
    return Likelihoods(np.maximum.accumulate(log_mass[:-1] - log_mass[1:]), mass[1:], mass[:-1])


def _succeed_against_gaussian(sigma: float, labels: int) -> float:
    """E[Phi(Z + 1/sigma)^(K - 1)], Z standard normal, by the trapezoidal rule."""
    points = np.arange(-REACH, REACH + STEP, STEP)
    logs = (labels - 1.0) * special.log_ndtr(points + 1.0 / sigma) - 0.5 * points * points
    return float(np.sum(np.exp(logs))) * STEP / math.sqrt(2.0 * math.pi)


def _succeed_against_laplace(noise: Noise, labels: int) -> float:
    """(e^-epsilon + 2 times the integral of e^-v Q(e^(v - epsilon)) over v from 0 to epsilon)/K.

    Q(w) = (1 - (1 - w/2)^K)/w. It is the integral of 1 - G(x)^K over scores x = e^(epsilon - 2 v), and G the
    distribution function of R: 1 - sqrt(e^-epsilon/x)/2 from e^-epsilon to e^epsilon, and 1 from there. By Gauss points
    on panels, inside which the integrand is analytic.
    """
    epsilon = 1.0 / noise.scale
    edges = np.linspace(0.0, min(epsilon, LONG), 1 + max(1, math.ceil(4.0 * min(epsilon, LONG))))
    points, weights = np.polynomial.legendre.leggauss(10)
    v = edges[:-1, None] + 0.5 * edges[1] * (1.0 + points)
    w = np.exp(v - epsilon)
    with np.errstate(invalid="ignore"):
        q = np.where(w > 1e-200, -np.expm1(labels * np.log1p(-0.5 * w)) / w, 0.5 * labels)
    return float(math.exp(-epsilon) + edges[1] * np.sum(weights * np.exp(-v) * q)) / labels


def find_ceiling(perturbation: Perturbation) -> tuple[float, tuple[int, int]]:
    """Return how often such an attacker is right at the worst counts a, b of all others, and these counts.

    The release is that of (a + 1, b) or of (a, b + 1): C = 1/2 sum_{r, r'} max(P(a+1 -> r) P(b -> r'),
    P(a -> r) P(b+1 -> r')), pairs of values by which of the two ratios is the larger. Neighbouring rows that are alike
    but for a shift are compared once, in descending order of their total variation distance t: C is at most
    1 - (1 - t_a)(1 - t_b)/2. Exact, unless more than `MOST_PAIRS` would have to be compared: then a bound.
    """
    steps = sorted(_list_steps(perturbation), key=lambda step: -step[0])
    best, counts, pairs = 0.5, (0, 0), 0
    for number, (farthest, first, lacking, having) in enumerate(steps):
        for distance, second, without, present in steps[number:]:
            if 1.0 - 0.5 * (1.0 - farthest) * (1.0 - distance) <= best + TIE:
                break
            pairs += 1
            if pairs > MOST_PAIRS:  # no later pair has a larger bound than the first step with itself
                return 1.0 - 0.5 * (1.0 - farthest) ** 2, counts
            with np.errstate(divide="ignore"):
                above_from = np.searchsorted(present / without, having / lacking, side="right")
            below = np.append(0.0, np.cumsum(without))
            above = np.append(np.cumsum(present[::-1])[::-1], 0.0)
            right = 0.5 * float(having @ below[above_from] + lacking @ above[above_from])
            if right > best + TIE:
                best, counts = right, (min(first, second), max(first, second))
    return min(best, 1.0), counts


def find_advantage(perturbation: Perturbation) -> float:
    """Return by how much one record, added to any count, raises the probability of anything published at most."""
    return max(distance for distance, *_ in _list_steps(perturbation))


def _list_steps(perturbation: Perturbation) -> list[tuple[float, int, Floats, Floats]]:
    """Return the different steps from a count to the next: the total variation distance of their rows, the count, and
    the two rows, value by value, in the order of their ratio."""
    steps: dict[bytes, tuple[float, int, Floats, Floats]] = {}
    for count in range(perturbation.last + perturbation.period):
        rows = perturbation.row(count), perturbation.row(count + 1)
        every = np.union1d(rows[0][0], rows[1][0])
        pmf = np.zeros((2, len(every)))
        for row, (values, probabilities) in zip(pmf, rows, strict=True):
            row[np.searchsorted(every, values)] = probabilities
        without, having = pmf[:, pmf.any(axis=0)]
        with np.errstate(divide="ignore"):
            order = np.lexsort((having, having / without))
        without, having = without[order], having[order]
        distance = 0.5 * float(np.abs(having - without).sum())
        steps.setdefault(np.append(without, having).round(12).tobytes(), (distance, count, without, having))
    return list(steps.values())
