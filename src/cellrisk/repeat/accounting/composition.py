"""`compose`: what several releases cost together, by basic composition, Renyi DP and privacy loss distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import find_smallest, gaussian_log_delta, zcdp_log_delta
from cellrisk.repeat.accounting.distributions import RENYI_ORDERS, Parts
from cellrisk.repeat.accounting.loss import DIGITS, Event, Loss, add_up, require_alike
from cellrisk.system.checks import read_list, require_within
from cellrisk.system.choices import CompositionMethod, list_words, require_word
from cellrisk.system.results import Result, find_words

METHODS: tuple[CompositionMethod, ...] = list_words(CompositionMethod)[1:]
TIE = 1e-9
"""Epsilons within this relative distance are the same: one method's root of another's own formula differs by less."""
SMALLEST_REST = 1e-90
NO_REST, NO_DELTA = "the deltas of the guarantees use up all of the delta", "it needs a delta above 0"
Answer = float | str
"""An epsilon, or one plain sentence why there is none."""


def compose_basic(events: Sequence[Event], delta: float) -> Answer:
    """The epsilons add up, and so do the deltas (Dwork and others 2006); exact in decimals.

    >>> compose_basic(Loss.pure(0.1).events * 3, 0.0)
    0.3
    """
    epsilons = [event.epsilon for event in events if event.epsilon is not None]
    if len(epsilons) < len(events):
        return "a concentrated loss has no epsilon that could be added"
    deltas = add_up([event.delta for event in events])
    if delta < deltas:
        return f"the deltas add up to {deltas:g}, which is more than {delta:g}"
    return add_up(epsilons)


def compose_renyi(events: Sequence[Event], delta: float) -> Answer:
    """The Renyi divergences add up at every order; at the best order. A bound.

    epsilon = D(a) + ln(1 - 1/a) - ln(a delta)/(a - 1) (Canonne, Kamath, Steinke 2020, Proposition 12). The divergences
    are exact for Laplace, Gaussian and geometric noise; geometric noise has randomised response's, the worst for pure
    DP. A guarantee with a delta is randomised response but for that probability, which is set apart (Kairouz, Oh,
    Viswanath 2015), so the rest has to meet what such deltas leave.

    >>> round(compose_renyi(Loss.pure(0.1).events * 100, 1e-6), 4)
    5.0731
    """
    parts = Parts.of(events)
    rest = find_rest(delta, parts.deltas)
    if not rest:
        return NO_REST if delta else NO_DELTA
    orders = RENYI_ORDERS
    for _ in range(2):  # all orders, then those around the best
        with np.errstate(over="ignore", invalid="ignore"):
            needed = parts.diverge(orders) + np.log1p(-1.0 / orders)
            epsilons = needed - (math.log(rest) + np.log(orders)) / (orders - 1.0)
        least = float(np.nanmin(epsilons))
        if not math.isfinite(least):
            return "the losses are too large for their squares"
        best = int(np.nanargmin(epsilons))
        around = orders[max(best - 1, 0)] - 1.0, orders[min(best + 1, len(orders) - 1)] - 1.0
        orders = 1.0 + np.geomspace(*around, 400)
    return max(least, 0.0)


def compose_pld(events: Sequence[Event], delta: float) -> Answer:
    """The distributions of the privacy losses convolve. An upper bound, within one part in 10^4 of the exact for deltas
    down to 1e-9, looser below; exact where all noise is Gaussian, which together is one Gaussian with mu^2 =
    sum (L2/sigma)^2: the epsilon with delta(epsilon) = delta (Balle and Wang 2018, Theorem 8).

    A guarantee alone is taken at its worst: randomised response, and with its delta a certain disclosure (Kairouz, Oh,
    Viswanath 2015). Those disclosures are set apart, so the rest has to meet what their deltas leave.

    >>> round(compose_pld(Loss.approximate(0.1, 1e-8).events * 100, 1e-5), 4)
    4.3296
    """
    parts = Parts.of(events)
    rest = find_rest(delta, parts.deltas)
    if not rest:
        return NO_REST if delta else NO_DELTA
    if parts.gaussian is not None:
        mu, log_delta = parts.gaussian, math.log(delta)
        if math.erf(mu / math.sqrt(8.0)) <= delta:
            return 0.0
        return find_smallest(lambda epsilon: gaussian_log_delta(1.0 / mu, epsilon) - log_delta)
    return parts.why_not(rest) or parts.find_epsilon(rest)


COMPOSERS: dict[str, Callable[[Sequence[Event], float], Answer]] = {
    "basic": compose_basic,
    "rdp": compose_renyi,
    "pld": compose_pld,
}


def find_epsilon(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP at a delta (Canonne, Kamath, Steinke 2020, Proposition 7), the safe side of the root."""
    log_delta = math.log(delta)
    if zcdp_log_delta(rho, 0.0) <= log_delta:
        return 0.0
    return find_smallest(lambda epsilon: zcdp_log_delta(rho, epsilon) - log_delta)


def find_rest(delta: float, deltas: Sequence[float]) -> float:
    """What deltas leave of a total: s in delta = 1 - (1 - s) prod(1 - delta_i), rounded down; 0 where nothing is left.

    >>> find_rest(3e-6, [1e-6, 1e-6])
    1.000003000004999e-06
    """
    if not deltas:
        return delta
    with localcontext() as context:
        context.prec = DIGITS
        kept = math.prod((1 - Decimal(repr(float(spent))) for spent in deltas), start=Decimal(1))
        rest = float(1 - (1 - Decimal(repr(float(delta)))) / kept) * (1.0 - 1e-15)
    return rest if rest > SMALLEST_REST else 0.0


@dataclass(frozen=True)
class Composed:
    """What one method says: the releases together are (epsilon, delta)-DP, or why it has no answer."""

    method: str
    dp_definition: str
    epsilon: float | None
    delta: float
    why: str = ""
    """Empty if the method is valid; else one sentence, and epsilon is None."""


@lru_cache(maxsize=512)
def _ask(losses: tuple[Loss, ...], method: str, dp_definition: str, delta: float) -> Composed:
    """What one method says of losses, computed once."""
    if not losses:
        answer: Answer = 0.0
    elif dp_definition == "pure" and method != "basic":
        answer = "it gives approximate DP, not pure DP"
    else:
        answer = COMPOSERS[method]([event for loss in losses for event in loss.events], delta)
    epsilon, why = (None, answer) if isinstance(answer, str) else (answer, "")
    return Composed(method, dp_definition, epsilon, delta, why)


@dataclass(frozen=True, repr=False)
class Composition(Result):
    """The answer of `compose`."""

    wording = "several_releases"

    losses: tuple[Loss, ...]
    dp_definition: str
    """"pure" or "approximate" DP."""
    delta: float
    method: str
    """The one asked for."""
    chosen: Composed
    """What the method asked for says, or the one with the smallest epsilon; of equals, the first."""

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events of all losses."""
        return tuple(event for loss in self.losses for event in loss.events)

    @cached_property
    def composed(self) -> tuple[Composed, ...]:
        """Every method at the same delta, in the order of METHODS."""
        return tuple(_ask(self.losses, method, self.dp_definition, self.delta) for method in METHODS)

    @property
    def epsilon(self) -> float:
        """The epsilon of the chosen method."""
        return self.chosen.epsilon or 0.0

    @property
    def own_delta(self) -> float:
        """The sum of the losses' deltas."""
        return add_up([loss.delta for loss in self.losses])

    @property
    def exact(self) -> bool:
        """Whether the chosen epsilon is exact: Gaussian noises are one Gaussian together."""
        return self.chosen.method == "pld" and all(event.kind == "gaussian" for event in self.events)

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """What was composed, how, and what is assumed."""
        return tuple(find_words(self.wording).statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One row a method."""
        return [{**vars(found), "chosen": found == self.chosen} for found in self.composed]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "releases": len(self.losses),
            "dp_definition": self.dp_definition,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.chosen.method,
            "sentence": self.headline,
            "statements": list(self.statements),
            "methods": [vars(found) for found in self.composed],
            "losses": [loss.to_dict() for loss in self.losses],
        }


def compose(
    losses: Sequence[Loss], *, method: CompositionMethod = "tightest", delta: float | None = None
) -> Composition:
    """What do several releases about the same people cost together?

    Three methods, all at the same total delta: basic from the epsilons and deltas alone; rdp and pld from the noise
    where it is known. All are upper bounds; the tightest valid one is chosen unless one is named. The answer is pure
    DP where all losses are and no delta is given, else approximate DP.

    Parameters
    ----------
    losses
        What each release costs: `Loss`.
    method
        "tightest", "basic", "rdp" or "pld".
    delta
        The total delta; default the sum of the losses' deltas.

    >>> from cellrisk.noise.mechanisms import mechanism
    >>> spent = [Loss.of(mechanism("laplace", epsilon=0.1))] * 30
    >>> compose(spent).epsilon, round(compose(spent, delta=1e-6).epsilon, 4)
    (3.0, 2.2978)
    """
    require_word("method", method, list_words(CompositionMethod))
    losses = tuple(read_list("losses", losses, "losses"))
    require_alike(losses)
    if delta is not None:
        require_within("delta", delta, least=0, below=1)
    if losses and not delta and any(loss.dp_definition == "concentrated" for loss in losses):
        raise InvalidInput(
            "concentrated losses compose to an epsilon at a delta, and have none of their own",
            got=delta,
            fix="give a delta above 0, such as 1 / number of records",
            code="no-delta",
        )
    total = 0.0 if not losses else add_up([loss.delta for loss in losses]) if delta is None else float(delta)
    if total >= 1:
        raise InvalidInput(
            "the deltas of the losses add up to 1 or more, where nothing is promised",
            got=f"{total:g}",
            fix="give a smaller delta; where the mechanisms are known, losses compose at any delta",
            code="delta-sum",
        )
    pure = not total and all(loss.dp_definition == "pure" for loss in losses)
    dp_definition = "pure" if pure else "approximate"
    candidates = METHODS if method == "tightest" and not pure else ("basic",) if method == "tightest" else (method,)
    answers = [_ask(losses, candidate, dp_definition, total) for candidate in candidates]
    least = min((found.epsilon for found in answers if found.epsilon is not None), default=None)
    if least is None:
        reasons = "; ".join(f"{found.method}: {found.why}" for found in answers)
        what = f"no method has an answer for these losses at delta {total:g} ({reasons})"
        fix = "give a larger delta, or the mechanisms of those that have none"
        if method != "tightest":
            what = f"{method} composition has no answer for these losses: {answers[0].why}"
            fix = f"leave {argument('method')} out for the tightest that has one"
        raise InvalidInput(what, fix=fix, code="no-answer")
    chosen = next(found for found in answers if found.epsilon is not None and found.epsilon <= least * (1.0 + TIE))
    return Composition(losses, dp_definition, total, method, chosen)
