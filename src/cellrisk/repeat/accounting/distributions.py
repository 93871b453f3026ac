"""How events are computed with: Renyi divergences, and privacy loss distributions by dp-accounting."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.repeat.accounting.loss import Event
from cellrisk.system.arrays import Floats

COARSE, FINE = 0.01, 0.0005
"""The step of the grid, as a share of the typical spread of one loss; epsilon feels about its square."""
FEW_STEPS, MOST_STEPS = 50_000, 500_000
ROUNDING = 5e-16
"""By how much Fourier transforms may misplace delta, for each event: four times what was seen beside exact sums."""
WIDEST_NOISE = 100_000.0
LARGEST_LOSS = 500.0
"""The largest loss of one count: beyond it e^-loss underflows, and a distribution only says that all is told."""
WHOLE = 1e-12
"""More than rounding moves a delta that is added up from half a million probabilities."""
RENYI_ORDERS = 1.0 + np.geomspace(1e-2, 1e8, 2000)
TRUNCATED = 1e-6
"""The share of delta that may be spent on leaving out tails. They are counted as certain harm, so the side is safe."""


@dataclass(frozen=True, order=True)
class Moved:
    """One count that moves, with its noise: the smallest thing that composes.

    kind: ``pure`` is randomised response, the worst of epsilon-DP (Kairouz, Oh, Viswanath 2015), and geometric noise on
    a count that moves by 1; ``zcdp`` has nothing but its rho.
    """

    kind: str
    amount: float
    """By how much the count moves, in scales of its noise; the epsilon of a guarantee, the rho of zCDP."""
    sensitivity: float = 1.0

    def diverge(self, orders: Floats) -> Floats:
        """Renyi divergences of these orders, all above 1.

        Gaussian noise, continuous or discrete: a amount^2/2 (Canonne, Kamath, Steinke 2020, Theorem 4). Randomised
        response: log(cosh((a - 1/2) e)/cosh(e/2))/(a - 1), so written that small epsilons keep their digits. Laplace:
        Mironov 2017, Proposition 6.
        """
        e = self.amount
        if self.kind in ("gaussian", "discrete-gaussian"):
            return 0.5 * e * e * orders
        if self.kind == "zcdp":
            return e * orders
        with np.errstate(over="ignore", invalid="ignore"):
            small = np.log1p(2.0 * np.sinh(orders * e / 2.0) * np.sinh((orders - 1.0) * e / 2.0) / np.cosh(e / 2.0))
        large = _log_cosh((orders - 0.5) * e) - _log_cosh(np.asarray(e / 2.0))
        worst = np.where(orders * e < 1.0, small, large) / (orders - 1.0)
        if self.kind != "laplace":
            return np.asarray(worst)
        inside = np.log1p((orders - 1.0) * np.expm1((1.0 - 2.0 * orders) * e) / (2.0 * orders - 1.0))
        return np.asarray(np.minimum(np.maximum(e + inside / (orders - 1.0), 0.0), worst))

    def distribute(self, step: float) -> Any:
        """Its privacy loss distribution on multiples of ``step``, on the safe side (pessimistic)."""
        made, on = load_distributions(), {"value_discretization_interval": step}
        if self.kind == "gaussian":
            return made.from_gaussian_mechanism(1.0 / self.amount, **on)
        if self.kind == "laplace":
            return made.from_laplace_mechanism(1.0 / self.amount, **on)
        if self.kind == "pure":
            return made.from_discrete_laplace_mechanism(self.amount, use_connect_dots=True, **on)
        discrete = self.kind == "discrete-gaussian"
        make = made.from_discrete_gaussian_mechanism if discrete else made.from_discrete_laplace_mechanism
        scale, moved = self.sensitivity / self.amount, int(self.sensitivity)
        return make(scale if discrete else 1.0 / scale, sensitivity=moved, use_connect_dots=True, **on)


@dataclass(frozen=True)
class Parts:
    """The counts that move in some events, each kind once with how often, and the guarantees that fail with a delta.

    Gaussian noise adds up to one count: mu^2 = sum (sensitivity/sigma)^2.
    """

    moved: tuple[tuple[Moved, int], ...]
    deltas: tuple[float, ...] = ()
    """Of guarantees alone: with such a probability, at worst, everything is told."""

    @staticmethod
    def of(events: Iterable[Event], factor: float = 1.0) -> Parts:
        """The parts of events, in an order that does not depend on theirs; ``factor`` times as many counts move.

        >>> Parts.of([Event(kind="geometric", epsilon=0.5, scale=4.0, number=2)]).moved
        ((Moved(kind='pure', amount=0.25, sensitivity=1.0), 2),)
        """
        counted: Counter[Moved] = Counter()
        deltas = []
        for event in events:
            if event.kind in ("pure", "approximate", "zcdp"):
                kind = "zcdp" if event.kind == "zcdp" else "pure"
                counted[Moved(kind, float(event.rho or event.epsilon or 0.0))] += 1
                deltas += [event.delta] if event.delta else []
            else:
                whole = event.sensitivity == int(event.sensitivity)
                unit = event.kind in ("laplace", "gaussian") or event.sensitivity == 1.0 or not whole
                kind = "pure" if event.kind == "geometric" and unit else event.kind
                counted[Moved(kind, event.ratio, 1.0 if unit else event.sensitivity)] += math.ceil(
                    event.number * factor
                )
        return Parts._merge(counted, deltas)

    def __add__(self, other: Parts) -> Parts:
        """The parts of both."""
        return Parts._merge(Counter(dict(self.moved)) + Counter(dict(other.moved)), [*self.deltas, *other.deltas])

    @staticmethod
    def _merge(counted: Counter[Moved], deltas: Iterable[float]) -> Parts:
        squares = math.fsum(times * one.amount**2 for one, times in counted.items() if one.kind == "gaussian")
        others = [(one, times) for one, times in counted.items() if one.kind != "gaussian"]
        if any(one.kind == "gaussian" for one in counted):
            others.append((Moved("gaussian", max(math.sqrt(squares), 1e-150)), 1))
        return Parts(tuple(sorted(others)), tuple(sorted(deltas)))

    @property
    def gaussian(self) -> float | None:
        """mu, where all noise is continuous Gaussian."""
        alone = [one.amount for one, _ in self.moved if one.kind == "gaussian"]
        return alone[0] if len(self.moved) == len(alone) == 1 and not self.deltas else None

    @property
    def concentrated(self) -> bool:
        """Whether a part says nothing of the distribution that it came from."""
        return any(one.kind == "zcdp" for one, _ in self.moved)

    @property
    def reveals_all(self) -> bool:
        """Whether a count tells the two worlds apart but for a chance that floating point cannot hold."""
        return any(one.amount > LARGEST_LOSS for one, _ in self.moved if one.kind != "zcdp")

    @property
    def largest_loss(self) -> float:
        """What the privacy loss never exceeds; infinite where noise has Gaussian tails."""
        bounded = all(one.kind in ("pure", "laplace", "geometric") for one, _ in self.moved)
        return math.fsum(times * one.amount for one, times in self.moved) if bounded else math.inf

    @property
    def rounding(self) -> float:
        return ROUNDING * sum(times for _, times in self.moved)

    def diverge(self, orders: Floats) -> Floats:
        """The Renyi divergences of all of them, which add up at every order."""
        return sum((times * one.diverge(orders) for one, times in self.moved), np.zeros_like(orders))

    def why_not(self, delta: float) -> str:
        """Why these have no distribution that can be computed at this delta; empty where they have one."""
        if self.concentrated:
            return "a concentrated loss says nothing of the distribution that it came from"
        if delta < 2.0 * self.rounding:
            return f"a delta below {2.0 * self.rounding:.1g} is lost in the rounding errors of so many convolutions"
        if self.reveals_all:
            return f"a loss above {LARGEST_LOSS:g} leaves no distribution to look at"
        if any(one.kind == "discrete-gaussian" and one.amount * WIDEST_NOISE < 1 for one, _ in self.moved):
            return f"a discrete Gaussian wider than {WIDEST_NOISE:g} has too many outcomes to list"
        try:
            load_distributions()
        except ImportError:
            return "dp-accounting is not installed (pip install 'cellrisk[ledger]')"
        return ""

    def find_epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta that the composed distribution shows: an upper bound, close to the exact.

        delta(epsilon) = E[1 - exp(epsilon - L)]+ with L the sum of the privacy losses (Koskela, Jalko, Honkela 2020).
        Each distribution is rounded to the grid so that delta is exact on the grid and above between its points
        (Doroshenko and others 2022, "connect the dots"). Equal ones are composed at once.

        >>> round(Parts(((Moved("pure", 0.1), 100),)).find_epsilon(1e-6), 4)  # basic composition: 10
        4.7746
        """
        with np.errstate(all="ignore"):
            whole = self.convolve(0.5 * delta)
            found = whole.get_epsilon_for_delta(delta - self.rounding)
        return min(float(found), self.largest_loss)

    def find_deltas(self, distribution: Any, epsilons: Floats) -> Floats:
        """The deltas at these epsilons, ascending and not below 0, that a composed distribution shows: upper bounds.

        >>> twice = Parts(((Moved("pure", 1.0), 2),))
        >>> twice.find_deltas(twice.convolve(), np.array([0.0, 1.0, 2.0])).round(6)  # tanh(1/2) at 0
        array([0.462117, 0.337835, 0.      ])
        """
        given = float(epsilons[0]) if len(epsilons) == 1 else epsilons
        with np.errstate(all="ignore"):
            found = np.atleast_1d(distribution.get_delta_for_epsilon(given))
        safe = np.clip(found, 0.0, 1.0) + self.rounding + WHOLE
        return np.asarray(np.where(epsilons >= self.largest_loss, 0.0, np.minimum(safe, 1.0)))

    def convolve(self, delta: float = WHOLE) -> Any:
        """The distribution of all losses together, from which `find_deltas` reads; a small share of ``delta`` is spent
        on tails, which count as certain harm at every step."""
        step, parts, cut = self._choose_step(), [], TRUNCATED * delta / len(self.moved)
        with np.errstate(all="ignore"):
            for one, times in self.moved:
                alone = one.distribute(step)
                parts.append(alone if times == 1 else alone.self_compose(times, tail_mass_truncation=cut))
            while len(parts) > 1:
                odd = parts[len(parts) - len(parts) % 2 :]
                pairs = zip(parts[0::2], parts[1::2], strict=False)
                parts = [first.compose(second, tail_mass_truncation=cut) for first, second in pairs] + odd
        return parts[0]

    def _choose_step(self) -> float:
        """The distance of the grid's points: fine beside the spread of one loss, so that it is fine for all.

        Rounding adds at most step^2/4 to the variance of each loss. The width of the whole grid is bounded by the
        largest loss, or by a tail of a sum with that many terms. Where it is narrow, FEW_STEPS allow a finer step; no
        more than MOST_STEPS are ever taken.
        """
        count = math.fsum(times for _, times in self.moved)
        spreads = [(one.amount if one.kind == "gaussian" else min(one.amount, 1.0), times) for one, times in self.moved]
        spread = math.sqrt(math.fsum(times * each**2 for each, times in spreads) / count)
        squares = math.fsum(times * one.amount**2 for one, times in self.moved)
        width = min(squares + 20.0 * math.sqrt(squares), 2.0 * self.largest_loss)
        affordable = min(COARSE * spread, max(FINE * spread, width / FEW_STEPS))
        return max(affordable, width / MOST_STEPS, 1e-150)  # whose square is above 0


def load_distributions() -> Any:
    """Privacy loss distributions of dp-accounting, which takes seconds to load."""
    return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")


def _log_cosh(x: Floats) -> Floats:
    return np.asarray(np.abs(x) + np.log1p(np.exp(-2.0 * np.abs(x))) - math.log(2.0))
