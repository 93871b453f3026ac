"""Six ways in which losses add up. Each answers with an epsilon at a given delta, or says why it has none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from cellrisk.noise.mechanisms import find_smallest, gaussian_log_delta, zcdp_log_delta
from cellrisk.repeat.accounting.distributions import compose_distributions, why_not
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.accounting.pieces import GaussianPiece, kind_of, load_distributions, take_apart
from cellrisk.system.arrays import Floats
from cellrisk.system.words import Operator, list_words

Answer = float | str
"""An epsilon, or one plain sentence why there is none."""
DIGITS = 100
SMALLEST_REST = 1e-90


def add_up(numbers: Sequence[float]) -> float:
    """The sum of numbers as they are written: three times 0.1 is 0.3, so that a limit of 0.3 is kept.

    >>> add_up([0.1, 0.1, 0.1]), 0.1 + 0.1 + 0.1
    (0.3, 0.30000000000000004)
    """
    with localcontext() as context:
        context.prec = DIGITS
        return float(sum((_decimal(number) for number in numbers), Decimal(0)))


def compose_basic(losses: Sequence[Loss], flavour: str, delta: float) -> Answer:
    """The epsilons add up, and so do the deltas; exact in decimals.

    Pure and approximate DP: Dwork and others 2006. Probabilistic DP: the losses add up where none is above its epsilon,
    and the probability that any is, is at most the sum of the deltas.

    >>> compose_basic([Loss(flavour="pure", epsilon=0.1)] * 3, "pure", 0.0)
    0.3
    """
    if _concentrated(losses):
        return "a concentrated loss has no epsilon that could be added"
    deltas = add_up([loss.delta for loss in losses])
    if delta < deltas:
        return f"the deltas add up to {deltas:g}, which is more than {delta:g}"
    return add_up([loss.epsilon or 0.0 for loss in losses])


def compose_advanced(losses: Sequence[Loss], flavour: str, delta: float) -> Answer:
    """A bound from epsilons and deltas alone: Kairouz, Oh, Viswanath 2015, Theorem 3.5.

    The least of sum e, A + sqrt(2 S ln(1/s)) and A + sqrt(2 S ln(exp(1) + sqrt(S)/s)), where S = sum e^2,
    A = sum e tanh(e/2), and the slack s is what the deltas leave: delta = 1 - (1 - s) prod(1 - delta_i).

    >>> round(compose_advanced([Loss(flavour="pure", epsilon=0.01)] * 1000, "approximate", 1e-6), 6)
    1.641491
    """
    unsuited = _require_approximate(flavour, delta)
    if unsuited:
        return unsuited
    if _concentrated(losses):
        return "a concentrated loss has no epsilon, which advanced composition needs"
    slack = find_rest(delta, [loss.delta for loss in losses])
    if not slack:
        return "the deltas of the losses leave no delta for the slack that it needs"
    epsilons = [float(loss.epsilon or 0.0) for loss in losses]
    squares = math.fsum(epsilon * epsilon for epsilon in epsilons)
    drift = math.fsum(epsilon * math.tanh(epsilon / 2.0) for epsilon in epsilons)
    tails = math.log(1.0 / slack), math.log(math.e + math.sqrt(squares) / slack)
    return min(add_up(epsilons), drift + math.sqrt(2.0 * squares * min(tails)))


def compose_concentrated(losses: Sequence[Loss], flavour: str, delta: float) -> Answer:
    """The rhos add up, and are then turned into an epsilon. A bound.

    rho is L2^2/(2 sigma^2) for Gaussian noise, continuous or discrete, and epsilon^2/2 for pure DP (Bun and Steinke
    2016, Proposition 1.4), for each count that changes: a replaced record changes two, with half of epsilon each.

    >>> round(compose_concentrated([Loss(flavour="pure", epsilon=0.1)] * 100, "approximate", 1e-6), 6)
    5.221534
    """
    unsuited = _require_approximate(flavour, delta) or _require_concentration(losses)
    if unsuited:
        return unsuited
    rho = math.fsum(times * piece.rho for piece, times in take_apart(losses))
    if not math.isfinite(rho):
        return "the losses are too large for their squares"
    return find_epsilon(rho, delta)


def find_epsilon(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP at a delta (Canonne, Kamath, Steinke 2020, Proposition 7), the safe side of the root."""
    log_delta = math.log(delta)
    if zcdp_log_delta(rho, 0.0) <= log_delta:
        return 0.0
    return find_smallest(lambda epsilon: zcdp_log_delta(rho, epsilon) - log_delta)


def compose_renyi(losses: Sequence[Loss], flavour: str, delta: float) -> Answer:
    """The Renyi divergences add up at every order; the best of 2,000 orders. A bound.

    epsilon = D(a) + ln(1 - 1/a) - ln(a delta)/(a - 1) (Canonne, Kamath, Steinke 2020, Proposition 12). The divergences
    are exact for Laplace, Gaussian and geometric noise; geometric noise has randomised response's, the worst for pure
    DP. Other noise and guarantees go through their zCDP.

    >>> round(compose_renyi([Loss(flavour="pure", epsilon=0.1)] * 100, "approximate", 1e-6), 4)
    5.0731
    """
    unsuited = _require_approximate(flavour, delta) or _require_concentration(losses)
    if unsuited:
        return unsuited
    orders = _orders()
    divergences = sum((times * piece.diverge(orders) for piece, times in take_apart(losses)), np.zeros_like(orders))
    epsilons = divergences + np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)
    return max(float(epsilons.min()), 0.0)


def compose_gaussians(losses: Sequence[Loss], flavour: str, delta: float) -> Answer:
    """Exact where all noise is continuous Gaussian: together they are one Gaussian, mu^2 = sum (L2/sigma)^2.

    Approximate DP: the epsilon with delta(epsilon) = delta (Balle and Wang 2018, Theorem 8), the safe side of the root.
    Probabilistic DP: mu^2/2 - mu z with z = Phi^-1(delta/2), the paper's Eq. 4 solved for epsilon.

    >>> from cellrisk.noise.mechanisms import mechanism
    >>> loss = Loss.of(mechanism("gaussian-analytic", epsilon=0.5, delta=1e-6))
    >>> round(compose_gaussians([loss] * 4, "approximate", 1e-6), 6)
    1.052522
    """
    if any(kind_of(loss) is not GaussianPiece for loss in losses):
        return "not every loss is known to come from continuous Gaussian noise"
    if delta <= 0:
        return "Gaussian noise needs a delta above 0"
    mu = math.sqrt(math.fsum(times * piece.amount**2 for piece, times in take_apart(losses)))
    if flavour == "probabilistic":
        from scipy.special import ndtri

        return 0.5 * mu * mu - mu * float(ndtri(delta / 2.0))
    if math.erf(mu / math.sqrt(8.0)) <= delta:
        return 0.0
    log_delta = math.log(delta)
    return find_smallest(lambda epsilon: gaussian_log_delta(1.0 / mu, epsilon) - log_delta)


def compose_pld(losses: Sequence[Loss], flavour: str, delta: float) -> Answer:
    """The distributions of the privacy losses convolve. An upper bound, within one part in 10^4 of the exact for deltas
    down to 1e-9, looser below.

    A loss without a known mechanism is taken at its worst: randomised response, and with its delta a certain disclosure
    (Kairouz, Oh, Viswanath 2015). Those disclosures are set apart, so the rest has to meet what their deltas leave.

    >>> round(compose_pld([Loss(flavour="approximate", epsilon=0.1, delta=1e-8)] * 100, "approximate", 1e-5), 4)
    4.3296
    """
    unsuited = _require_approximate(flavour, delta)
    if unsuited:
        return unsuited
    if _concentrated(losses):
        return "a concentrated loss says nothing of the distribution that it came from"
    rest = find_rest(delta, [loss.delta for loss in losses if kind_of(loss) is None])
    if not rest:
        return "the deltas of the losses without a known mechanism use up all of the delta"
    pieces = take_apart(losses)
    unsuited = why_not(pieces, rest)
    if unsuited:
        return unsuited
    try:
        load_distributions()
    except ImportError:
        return "dp-accounting is not installed (pip install 'cellrisk[ledger]')"
    return compose_distributions(pieces, rest)


def find_rest(delta: float, deltas: Sequence[float]) -> float:
    """What deltas leave of a total: s in delta = 1 - (1 - s) prod(1 - delta_i), rounded down; 0 where nothing is left.

    >>> find_rest(3e-6, [1e-6, 1e-6])
    1.000003000004999e-06
    """
    with localcontext() as context:
        context.prec = DIGITS
        kept = math.prod((1 - _decimal(each) for each in deltas), start=Decimal(1))
        rest = float(1 - (1 - _decimal(delta)) / kept) * (1.0 - 1e-15)
    return rest if rest > SMALLEST_REST else 0.0


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))


@cache
def _orders() -> Floats:
    return 1.0 + np.geomspace(1e-2, 1e8, 2000)


def _concentrated(losses: Sequence[Loss]) -> bool:
    return any(loss.flavour == "concentrated" for loss in losses)


def _require_approximate(flavour: str, delta: float) -> str:
    if flavour != "approximate":
        return f"it gives approximate DP, not {flavour} DP"
    return "" if delta > 0 else "it needs a delta above 0"


def _require_concentration(losses: Sequence[Loss]) -> str:
    lacking = [loss for loss in losses if loss.delta and kind_of(loss) is None]
    return "a loss with a delta and no known mechanism has no bounded Renyi divergence" if lacking else ""


COMPOSERS: dict[str, Callable[[Sequence[Loss], str, float], Answer]] = {
    "basic": compose_basic,
    "advanced": compose_advanced,
    "zcdp": compose_concentrated,
    "rdp": compose_renyi,
    "gaussian": compose_gaussians,
    "pld": compose_pld,
}
OPERATORS: tuple[Operator, ...] = list_words(Operator)[1:]
