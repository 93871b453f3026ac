"""From a privacy guarantee (epsilon, delta, neighbours) to the noise that provides it, where it does."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from scipy import special

from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import (
    USUAL_THRESHOLD,
    DiscreteGaussianNoise,
    GaussianNoise,
    GeometricNoise,
    InfiniteNoise,
    LaplaceNoise,
    Noise,
)
from cellrisk.noise.opendp_noise import calibrate_noise, make_noise
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.system.checks import is_number, require_number
from cellrisk.system.choices import MechanismName, Neighbours, list_words, require_word
from cellrisk.system.formatting import claim

NEIGHBOURS: tuple[Neighbours, ...] = list_words(Neighbours)
LARGEST_EPSILON = 1e100
LARGEST_CLASSICAL = math.nextafter(1.0, 0.0)
"""The classical Gaussian mechanism holds for epsilon below 1."""
LARGEST_THRESHOLD = 1e12
"""More than any count; half-integers far above it have no place among the floating-point numbers."""
USUAL_MECHANISM: MechanismName = "geometric"
"""What `release` makes where nothing else is said, and so what everything else speaks of."""
SAFE = 4e-12
"""More than rounding moves the logarithm of a delta, down to 1e-300."""


@dataclass(frozen=True)
class Mechanism(ABC):
    """A differentially private way to release counts: noise on each, rounding, and a threshold below which it is zero.

    Tables that differ by one record have counts at L1 and L2 distance 1 (``add-remove``), or 2 and sqrt 2
    (``replace``: one record changes its values). Tables that differ by one person have them at the distances of the
    ``unit``, or, if the records of a person are replaced, at twice its L1 and sqrt 2 times its L2.

    Parameters
    ----------
    epsilon
        The privacy loss.
    delta
        For the Gaussian mechanisms; the others take none.
    neighbours
        "add-remove" or "replace".
    threshold
        A half-integer: counts below it after noise are released as zero. 10.5 suppresses counts up to 10.
    unit
        What one neighbouring table has more or less: a record, or a person with several. A table gives it its own.
    """

    name: ClassVar[MechanismName]
    pure: ClassVar[bool] = False
    largest_epsilon: ClassVar[float] = math.inf
    """The largest epsilon with a guarantee."""

    epsilon: float
    _: KW_ONLY
    delta: float = 0.0
    neighbours: Neighbours = "add-remove"
    threshold: float = USUAL_THRESHOLD
    unit: Unit = field(default=Unit(), repr=False)

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "threshold"):
            require_number(name, getattr(self, name))
        self.check_epsilon(self.epsilon)
        if self.pure and self.delta != 0:
            what = f"{self.name} gives pure epsilon-DP and takes no delta"
            raise InvalidInput(what, got=f"delta {self.delta}", fix="leave delta out, or use gaussian-analytic")
        if not self.pure and not 0 < self.delta < 1:
            what = f"{self.name} needs a delta between 0 and 1, both excluded"
            raise InvalidInput(what, got=self.delta, fix="a common choice is 1 / number of records")
        require_word("neighbours", self.neighbours, NEIGHBOURS)
        if not (0.5 <= self.threshold < LARGEST_THRESHOLD and self.threshold % 1 == 0.5):
            what, allowed = "must be a positive half-integer", f"0.5, 1.5, ..., below {LARGEST_THRESHOLD:g}"
            raise InvalidInput(what, option="threshold", got=self.threshold, allowed=allowed)

    def check_epsilon(self, epsilon: float) -> None:
        """Refuses an epsilon that the mechanism does not take."""
        if not (is_number(epsilon) and epsilon > 0):
            allowed = "for example 0.1, 1 or 5"
            raise InvalidInput("must be a finite number above 0", option="epsilon", got=epsilon, allowed=allowed)
        if epsilon > LARGEST_EPSILON:
            raise InvalidInput("is too large", option="epsilon", got=epsilon, allowed=f"up to {LARGEST_EPSILON:g}")

    def with_epsilon(self, epsilon: float) -> Mechanism:
        """Return the same mechanism with another epsilon; refused if the mechanism does not take that epsilon."""
        return replace(self, epsilon=epsilon)

    def with_unit(self, unit: Unit) -> Mechanism:
        """Return the same guarantee for the unit of a table; refused if the mechanism has another one of its own."""
        if self.unit not in (unit, Unit()):
            what = "the mechanism is for another unit of privacy than the table"
            fix = "leave the unit of the mechanism out: the table has it"
            raise InvalidInput(what, got=str(self.unit), allowed=unit.describe(), fix=fix, code="other-unit")
        return self if unit == self.unit else replace(self, unit=unit)

    def describe(self) -> str:
        """Return the name, and delta if there is one: the mechanism whatever its epsilon."""
        return self.name if self.pure else f"{self.name}, delta {claim(self.delta)}"

    @property
    def l1(self) -> float:
        """How far one person can move the counts, in absolute differences."""
        return self.unit.l1 * (1.0 if self.neighbours == "add-remove" else 2.0)

    @property
    def l2(self) -> float:
        """How far one person can move the counts, in Euclidean distance."""
        return self.unit.l2 * (1.0 if self.neighbours == "add-remove" else math.sqrt(2.0))

    @cached_property
    def noise(self) -> Noise:
        """The noise that gives the guarantee."""
        return self.noise_at(self.epsilon)

    @property
    def channel(self) -> AdditiveChannel:
        """P(released value | true count)."""
        return AdditiveChannel((self.noise,), self.threshold)

    def channel_at(self, epsilons: Iterable[float]) -> AdditiveChannel:
        """Return the channel at each of several epsilons, all else as it is; refuses epsilons it does not take."""
        wanted = [float(epsilon) for epsilon in epsilons]
        for end in {min(wanted), max(wanted)} if wanted else ():  # what a mechanism takes has no gaps
            self.check_epsilon(end)
        return AdditiveChannel(tuple(map(self.noise_at, wanted)), self.threshold)

    @abstractmethod
    def noise_at(self, epsilon: float) -> Noise:
        """Return the noise that would give it at another epsilon, all else as it is."""

    @property
    def limit_noise(self) -> Noise:
        """The noise as epsilon falls to 0, all else fixed: what is read off under it is chance.

        It grows without bound where the guarantee then asks for that; a mechanism whose delta alone bounds what is
        learnt keeps a finite scale.

        >>> Laplace(epsilon=1.0).limit_noise
        InfiniteNoise(scale=inf)
        >>> round(AnalyticGaussian(epsilon=1.0, delta=0.01).limit_noise.scale, 6)
        39.893184
        """
        return InfiniteNoise()

    @property
    def by_chance(self) -> str:
        """What is said of a share that is left as epsilon falls to 0: blind, unless the noise keeps a finite scale."""
        return "blind" if math.isinf(self.limit_noise.scale) else "as epsilon falls to 0 with delta fixed"

    @property
    def lower_end(self) -> str:
        """What the risk as epsilon falls to 0 is called."""
        return "blind" if math.isinf(self.limit_noise.scale) else "its limit as epsilon falls to 0"

    @property
    def scale(self) -> float:
        """The noise's parameter: Laplace's b or a Gaussian's sigma, in counts."""
        return self.noise.scale

    @property
    def guarantee(self) -> str:
        """Epsilon, and delta where there is one, in words: neither is told smaller than it is."""
        return f"epsilon {claim(self.epsilon)}" + ("" if self.pure else f" and delta {claim(self.delta)}")

    @property
    def change(self) -> str:
        """How one record, or the records of a person, change between neighbouring tables, in words."""
        replaced = "replaced by another" if self.unit.contributions == 1 else "replaced by other records"
        return "added or removed" if self.neighbours == "add-remove" else replaced

    def calibrate(self) -> tuple[float, float]:
        """Return scale and loss of OpenDP's noise for a release, checked with OpenDP's own privacy map.

        The scale is the mechanism's, rounded up by at most one part in 10^12. Refused if there is no exact sampler:
        the last digits of floating-point noise reveal the count (Mironov 2012).
        """
        same = "geometric, which gives the same epsilon"
        what = f"{self.name} noise is continuous and cannot be released safely: its digits reveal the count"
        fix = f"use {same if self.pure else 'discrete-gaussian, which takes the same epsilon and delta'}"
        raise InvalidInput(what, allowed="geometric, discrete-gaussian", fix=fix)

    def to_opendp(self) -> Any:
        """OpenDP's measurement that `release` draws its noise from: on a list of counts, before the threshold.

        >>> Geometric(epsilon=0.5).to_opendp().map(1)  # one record moves one count by one
        0.5
        """
        scale, _ = self.calibrate()  # refuses where there is no such measurement
        return make_noise(scale, gaussian=not self.pure)

    def to_dict(self) -> dict[str, object]:
        """The setting as JSON-ready values; the threshold only where it is not the usual one."""
        named = {"name": self.name, "epsilon": self.epsilon, "delta": self.delta, "scale": self.scale}
        unusual = {} if self.threshold == USUAL_THRESHOLD else {"threshold": self.threshold}
        several = {} if self.unit == Unit() else {"unit": self.unit.to_dict()}
        return {**named, "neighbours": self.neighbours, **unusual, **several}


@dataclass(frozen=True)
class Laplace(Mechanism):
    """epsilon-DP with noise Lap(0, L1/epsilon).

    >>> Laplace(epsilon=0.5).scale
    2.0
    """

    name: ClassVar[MechanismName] = "laplace"
    pure: ClassVar[bool] = True

    def noise_at(self, epsilon: float) -> Noise:
        return LaplaceNoise(self.l1 / epsilon)


@dataclass(frozen=True)
class Geometric(Mechanism):
    """epsilon-DP with integer noise, P(j) proportional to exp(-|j| epsilon/L1) (Ghosh, Roughgarden, Sundararajan)."""

    name: ClassVar[MechanismName] = "geometric"
    pure: ClassVar[bool] = True

    def noise_at(self, epsilon: float) -> Noise:
        return GeometricNoise(self.l1 / epsilon)

    def calibrate(self) -> tuple[float, float]:
        return calibrate_noise(self.scale, int(self.l1), self.epsilon)


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """(epsilon, delta)-DP for epsilon < 1: sigma = L2 sqrt(2 ln(1.25/delta))/epsilon (paper, Eq. 3).

    >>> round(Gaussian(epsilon=0.5, delta=0.01).scale, 6)
    6.215023
    """

    name: ClassVar[MechanismName] = "gaussian"
    largest_epsilon: ClassVar[float] = LARGEST_CLASSICAL

    def check_epsilon(self, epsilon: float) -> None:
        super().check_epsilon(epsilon)
        if epsilon >= 1:
            fix = "use gaussian-analytic, which gives (epsilon, delta)-DP at any epsilon"
            raise InvalidInput("the classical gaussian mechanism holds for epsilon below 1 only", got=epsilon, fix=fix)

    def noise_at(self, epsilon: float) -> Noise:
        return GaussianNoise(self.l2 * math.sqrt(2.0 * math.log(1.25 / self.delta)) / epsilon)


@dataclass(frozen=True)
class ProbabilisticGaussian(Mechanism):
    """(epsilon, delta)-probabilistic DP: sigma = L2 (sqrt(z^2 + 2 epsilon) - z)/(2 epsilon), z = Phi^-1(delta/2).

    The paper's Eq. 4. With probability at least 1 - delta the privacy loss is at most epsilon; that implies
    (epsilon, delta)-DP.

    >>> round(ProbabilisticGaussian(epsilon=1.0, delta=0.01).scale, 6)
    2.757174
    """

    name: ClassVar[MechanismName] = "gaussian-pdp"

    def noise_at(self, epsilon: float) -> Noise:
        z = float(special.ndtri(self.delta / 2.0))
        return GaussianNoise(self.l2 * (math.sqrt(z * z + 2.0 * epsilon) - z) / (2.0 * epsilon))


@dataclass(frozen=True)
class AnalyticGaussian(Mechanism):
    """(epsilon, delta)-DP at any epsilon with the smallest sigma that gives it (Balle and Wang 2018, Theorem 8).

    The value is the safe side of the root: its delta, computed to a relative 4e-12, is below the one asked for by that
    much.
    """

    name: ClassVar[MechanismName] = "gaussian-analytic"

    def noise_at(self, epsilon: float) -> Noise:
        log_delta = math.log(self.delta)
        sigma = find_smallest(lambda sigma: gaussian_log_delta(sigma, epsilon) + SAFE - log_delta)
        return GaussianNoise(self.l2 * sigma)

    @property
    def limit_noise(self) -> Noise:
        """At epsilon 0, Phi(1/(2 sigma)) - Phi(-1/(2 sigma)) = erf(1/(2 sqrt 2 sigma)) = delta."""
        return GaussianNoise(self.l2 / (2.0 * math.sqrt(2.0) * float(special.erfinv(self.delta))))


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """rho-zCDP with integer Gaussian noise, and (epsilon, delta)-DP through it: sigma^2 = L2^2/(2 rho).

    rho is the largest whose conversion (Canonne, Kamath, Steinke 2020, Proposition 7) meets (epsilon, delta).
    """

    name: ClassVar[MechanismName] = "discrete-gaussian"

    @property
    def rho(self) -> float:
        """The zero-concentrated privacy loss."""
        return 0.5 * (self.l2 / self.scale) ** 2

    def noise_at(self, epsilon: float) -> Noise:
        log_delta = math.log(self.delta)
        try:
            sigma = find_smallest(lambda sigma: zcdp_log_delta(0.5 / sigma**2, epsilon) + SAFE - log_delta)
        except OverflowError:
            got = f"{epsilon:g} and {self.delta:g}"
            raise InvalidInput("epsilon and delta are too small for discrete-gaussian", got=got) from None
        return DiscreteGaussianNoise(self.l2 * sigma)

    def calibrate(self) -> tuple[float, float]:
        return calibrate_noise(self.scale, self.l2, self.rho, (self.epsilon, self.delta))

    @property
    def limit_noise(self) -> Noise:
        """The conversion from rho needs no epsilon above 0 to meet a delta; below 1e-100 the noise hides as much."""
        return replace(self, delta=max(self.delta, 1e-100)).noise_at(0.0)


MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (Laplace, Gaussian, ProbabilisticGaussian, AnalyticGaussian, Geometric, DiscreteGaussian)
}


class Described(NamedTuple):
    """A mechanism as it was given: None where epsilon or delta was left out."""

    name: MechanismName
    epsilon: float | None
    delta: Any
    neighbours: Neighbours
    threshold: float
    unit: Unit = Unit()

    def with_epsilon(self, epsilon: float) -> Mechanism:
        """Return that mechanism with an epsilon; without a delta it has delta 0."""
        delta = 0.0 if self.delta is None else self.delta
        settings: Any = {"neighbours": self.neighbours, "threshold": self.threshold, "unit": self.unit}
        return MECHANISMS[self.name](epsilon, delta=delta, **settings)


def describe_mechanism(
    given: Mechanism | MechanismName,
    *,
    epsilon: float | None = None,
    delta: Any = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
) -> Described:
    """Return what a mechanism, or its name and the numbers beside it, say; every function that takes one reads it here.

    An object has all of them itself, so nothing is allowed beside it: two epsilons could disagree.
    """
    if isinstance(given, Mechanism):
        beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
        extra = " and ".join(f"{word}=" for word, value in beside.items() if value is not None)
        if extra:
            what = f"a mechanism that is an object has its own epsilon and settings, and takes none beside it: {extra}"
            got = f"{type(given).__name__}(epsilon={given.epsilon:g}) with {extra}"
            raise InvalidInput(what, got=got, fix=f'leave {extra} out, or give the name: "{given.name}"')
        own_delta = None if given.pure else given.delta
        return Described(given.name, given.epsilon, own_delta, given.neighbours, given.threshold, given.unit)
    if isinstance(given, Perturbation):
        fix = "assess_perturbation takes one; explain, simulate, audit and report have perturbation"
        raise InvalidInput("a perturbation has no epsilon, and cannot take the place of a mechanism here", fix=fix)
    if not isinstance(given, str):
        allowed = 'for example Geometric(epsilon=1.0), or "geometric" with epsilon=1.0'
        raise InvalidInput("a mechanism is an object or a name", got=type(given).__name__, allowed=allowed)
    require_word("mechanism", given, tuple(MECHANISMS))
    usual = USUAL_THRESHOLD if threshold is None else threshold
    return Described(given, epsilon, delta, neighbours or "add-remove", usual)


def mechanism(
    name: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
) -> Mechanism:
    """Return a mechanism by its name, with its epsilon beside it; an object is returned as it is.

    Parameters
    ----------
    name
        One of the six names, or an object.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named, as `Mechanism` has them.

    >>> mechanism("laplace", epsilon=2.0).scale
    0.5
    """
    described = describe_mechanism(name, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    if isinstance(name, Mechanism):
        return name
    if described.epsilon is None:
        fix = f"give it beside the name, epsilon=1.0, or with it: {MECHANISMS[described.name].__name__}(epsilon=1.0)"
        raise InvalidInput(f"no epsilon was given for {described.name}", fix=fix)
    return described.with_epsilon(described.epsilon)


def read_method(
    given: Mechanism | MechanismName, perturbation: str | Perturbation | None, beside: Mapping[str, Any]
) -> Mechanism | Perturbation:
    """Return the mechanism with what stands beside it, or the perturbation; refuses both."""
    if perturbation is None:
        return mechanism(given, **beside)
    check_alone(given, beside)
    return read_perturbation(perturbation)


def check_alone(given: Mechanism | MechanismName | None, beside: Mapping[str, Any]) -> None:
    """Refuse a mechanism, and what belongs to one, beside a perturbation."""
    extra = [] if given in (None, USUAL_MECHANISM) else ["mechanism"]
    extra += [name for name, value in beside.items() if value is not None]
    if extra:
        what = "a perturbation takes the place of a mechanism, and has no epsilon"
        raise InvalidInput(what, got=f"perturbation with {', '.join(extra)}", fix=f"leave {', '.join(extra)} out")


def gaussian_log_delta(sigma: float, epsilon: float) -> float:
    """Return log of the smallest delta for which N(0, sigma^2) on a count of sensitivity 1 is (epsilon, delta)-DP.

    delta = Phi(a) - e^epsilon Phi(b), a = 1/(2 sigma) - epsilon sigma, b = a - 1/sigma (Balle and Wang 2018, Eq. 6), in
    logarithms, so nothing underflows. Rounded up by as much as the difference may have lost.
    """
    a = 0.5 / sigma - epsilon * sigma
    first, second = float(special.log_ndtr(a)), float(special.log_ndtr(a - 1.0 / sigma))
    ratio = min(epsilon + second - first, -1e-300)  # log of the second term over the first, below 0
    lost = 2.0**-52 * (1.0 + abs(first) + abs(second) + epsilon) * math.exp(ratio) / -math.expm1(ratio)
    return first + math.log(-math.expm1(ratio)) + min(lost, 1.0)


def zcdp_log_delta(rho: float, epsilon: float) -> float:
    """log of a delta at which rho-zCDP implies (epsilon, delta)-DP, the smallest over Renyi orders.

    delta = exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1), least over a > 1.
    """
    from scipy.optimize import brentq

    def slope(order: float) -> float:
        """Return the derivative of the log delta in the Renyi order; it rises from minus infinity."""
        return (2.0 * order - 1.0) * rho - epsilon + math.log1p(-1.0 / order)

    low, high = 1.0 + 1e-12, 2.0
    while slope(high) < 0:
        low, high = high, high * 2.0
    order = high if slope(low) >= 0 else brentq(slope, low, high)
    log_delta = (order - 1.0) * (order * rho - epsilon) + order * math.log1p(-1.0 / order) - math.log(order - 1.0)
    return min(log_delta, 0.0)


def find_smallest(excess: Callable[[float], float]) -> float:
    """The smallest positive number at which a falling function is not above 0: the safe side of its root."""
    from scipy.optimize import brentq

    low = high = 1.0
    while excess(high) > 0:
        low, high = high, high * 2.0
    while excess(low) <= 0:
        low, high = low / 2.0, low
    root = float(brentq(excess, low, high, xtol=1e-13 * low, rtol=1e-13))
    while excess(root) > 0:
        root *= 1.0 + 1e-13
    return root
