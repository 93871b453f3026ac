"""`average`: the same table released several times, and an attacker who averages the noise away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import special

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.repeat.accounting.ceilings import describe_ceiling, find_ceiling
from cellrisk.repeat.accounting.composition import compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences import find_mechanism
from cellrisk.risk.assessment import find_row
from cellrisk.risk.attacks import choose_risks
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.measures import Local, average_risks
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_kind, require_whole_number, require_within
from cellrisk.system.choices import (
    CompositionMethod,
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    Weights,
    list_words,
    require_word,
)
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["Averaged", "Averaging", "MeanNoise", "Rule", "average"]

MOST_RELEASES = 10_000
SAME = 1e-9
"""Risks within this relative distance are equal."""


@dataclass(frozen=True)
class Rule:
    """The paper's rule: one release by the same mechanism at the cumulative loss of all of them."""

    method: str
    """How the losses were composed."""
    epsilon: float | None
    delta: float
    mechanism: Mechanism | None
    """The mechanism at that loss, as `assess_sequence` finds it; None if the losses have no sum."""
    why: str = ""
    """The reason why there is no mechanism; empty if there is one."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {**vars(self), "mechanism": None if self.mechanism is None else self.mechanism.to_dict()}


@dataclass(frozen=True)
class Averaged:
    """One risk by one measure, form and weighting: after one release, after averaging all, and by the rule."""

    sensitive: str
    measure: str
    form: str | None
    weights: str | None
    one: float
    averaging: float
    rule: float | None

    @property
    def larger(self) -> str | None:
        """Return which is larger, "averaging" or the "rule", or "equal"; None if the rule has no answer.

        >>> Averaged("y", "local", "tight", "records", 0.1, 0.2, 0.3).larger
        'rule'
        """
        if self.rule is None:
            return None
        if abs(self.rule - self.averaging) <= SAME * max(self.rule, self.averaging):
            return "equal"
        return "rule" if self.rule > self.averaging else "averaging"


@dataclass(frozen=True, repr=False)
class Averaging(Result):
    """What an attacker gains by averaging repeated releases. Made by `average`; prints as sentences and a table."""

    wording = "several_releases"

    table: FrequencyTable
    mechanism: Mechanism
    releases: int
    rule: Rule
    rows: tuple[Averaged, ...]
    fitted: Mapping[str, Fitted]
    caused: tuple[Averaged, ...] = ()
    """For each sensitive attribute, the share of people revealed only because of their own record."""

    def find_ceiling(self, labels: int = 2) -> tuple[Ceiling | None, str]:
        """The ceiling of all the releases, for so many labels; or None, and why it is not known.

        From the losses composed, whatever an attacker makes of the releases: no average is better than its parts.

        Parameters
        ----------
        labels
            How many values the sensitive attribute has.
        """
        return find_ceiling((Loss.of(self.mechanism),) * self.releases, labels)

    @property
    def noise(self) -> MeanNoise:
        """Return what is left in a count after averaging."""
        return MeanNoise(self.mechanism.noise.scale, type(self.mechanism.noise), self.releases)

    def row(
        self, measure: str = "local", form: str = "tight", weights: str | None = "records", sensitive: str | None = None
    ) -> Averaged:
        """One row: the risk of one release, of the mean of all, and of the paper's rule.

        Parameters
        ----------
        measure, form, weights
            The words of the risk, as in `assess`; marginal shrinkage has no weights.
        sensitive
            Which sensitive attribute; may be left out if there is one.
        """
        return cast(Averaged, find_row(self.rows, self.table, "average", (measure, form, weights), sensitive))

    def value(
        self, measure: str = "local", form: str = "tight", weights: str | None = "records", sensitive: str | None = None
    ) -> float:
        """Return one risk of the attacker who averages.

        Parameters
        ----------
        measure, form, weights, sensitive
            As in `row`.
        """
        return self.row(measure, form, weights, sensitive).averaging

    @property
    def statements(self) -> tuple[str, ...]:
        """Return what is assumed."""
        return tuple(find_words(self.wording).statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: ``attacker`` is "one release", "averaging" or "rule", with the method of a rule."""
        rows: list[dict[str, Any]] = []
        for row in (*self.rows, *self.caused):
            key = {name: getattr(row, name) for name in ("sensitive", "measure", "form", "weights")}
            rows.append({**key, "attacker": "one release", "method": None, "risk": row.one})
            rows.append({**key, "attacker": "averaging", "method": None, "risk": row.averaging})
            rows.append({**key, "attacker": "rule", "method": self.rule.method, "risk": row.rule})
        most, _ = self.find_ceiling()
        if most is not None:
            words = dict.fromkeys(("sensitive", "measure", "form", "weights", "attacker", "method"))
            rows.append({**words, "measure": "ceiling", "attacker": "any", "risk": most.even_two})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The answer for machines: JSON-ready values."""
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "unit": self.table.unit.to_dict(),
            "mechanism": self.mechanism.to_dict(),
            "releases": self.releases,
            "deviation": self.noise.deviation,
            "rule": self.rule.to_dict(),
            "risks": [{**vars(row), "larger": row.larger} for row in self.rows],
            "decision": [
                {
                    "sensitive": row.sensitive,
                    "caused": {
                        name: None if share is None else {"people": share * self.table.n_records, "share": share}
                        for name, share in (("one", row.one), ("averaging", row.averaging), ("rule", row.rule))
                    },
                    "ceiling": describe_ceiling(
                        self.find_ceiling(max(self.table.attribute(row.sensitive).n_levels, 2))[0]
                    ),
                }
                for row in self.caused
            ],
            "fitted": {name: fit.to_dict() for name, fit in self.fitted.items()},
            "sentence": self.headline,
            "statements": list(self.statements),
        }


def average(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    releases: int,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    measures: MeasureName | Sequence[MeasureName] | None = None,
    forms: Form | Sequence[Form] | None = None,
    weights: Weights | Sequence[Weights] | None = None,
    priors: Priors = USUAL_PRIORS,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
) -> Averaging:
    """Assess what averaging reveals if the same table is released ``releases`` = T times with independent noise.

    The attacker takes the mean of the T noisy counts of each cell and level, and attacks it like one release: the
    homogeneity risk with q(m) = P(m + mean < threshold), exact. Beside it stands the paper's rule (section 4.3): the
    risk of one release by the same mechanism at the cumulative loss, by the ``method`` of `compose` at a
    ``total_delta``. If the mechanism cannot be set at that loss, the answer says so. ``caused`` has the
    people whom the same attack reveals only because of their own record, exact; ``find_ceiling`` composes the losses.

    Gaussian noise, composed exactly: the rule has noise of scale sigma/sqrt(T), which is what averaging leaves, so the
    two agree. Laplace noise at T epsilon has a standard deviation of sqrt(2) b/T, where averaging leaves sqrt(2/T) b,
    and geometric noise is much the same: the rule takes less noise. So it is larger if risk rises with epsilon, as in
    homogeneous cells, and smaller if risk falls with epsilon, as it mostly does in cells with several labels: the rule
    does not bound the averaging attacker. Ten releases at epsilon 0.1 of a cell (3, 0) and of a cell (3, 2):

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    releases
        How many, T.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    measures, forms, weights
        One word or several; default all.
    priors
        How the priors of the measures that need any are found.
    method, total_delta
        How the paper's rule adds up the losses, as in `compose`, and at which delta; default the sum of theirs.

    >>> import cellrisk as cr, pandas as pd
    >>> levels = {"y": ["a", "b"]}
    >>> for counts in ([3, 0], [3, 2]):
    ...     cell = pd.DataFrame({"x": "cell", "y": ["a", "b"], "n": counts})
    ...     table = cr.tabulate(cell, "x", "y", levels=levels, count="n")
    ...     row = average(table, cr.Laplace(epsilon=0.1), releases=10, measures="local").row(form="exact")
    ...     print(counts, round(row.averaging, 4), round(row.rule, 4), row.larger)
    [3, 0] 0.3925 0.6681 rule
    [3, 2] 0.4405 0.1434 averaging
    """
    require_table(table, single="attacks on averages")
    require_kind("priors", priors, Priors)
    if isinstance(mechanism, Mechanism) and delta is not None:
        raise InvalidInput(
            "belongs to a mechanism that is given by name",
            option="delta",
            fix=f"{argument('total_delta')} is the delta of all releases together",
        )
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    mechanism = mechanism.with_unit(table.unit)
    asked = choose_risks("homogeneity", measures, forms, weights)
    mean = MeanNoise(mechanism.noise.scale, type(mechanism.noise), releases)
    rule = _find_rule(mechanism, mean.releases, method, total_delta)
    set_up = [] if rule.mechanism is None else [rule.mechanism.noise]
    channel = AdditiveChannel((mechanism.noise, mean, *set_up), mechanism.threshold)
    rows: list[Averaged] = []
    caused: list[Averaged] = []
    fitted: dict[str, Fitted] = {}
    for name in table.sensitive:
        attribute = table.attribute(name)
        fitted[name] = priors.fit(attribute, asked.measures)
        chosen = asked.make(fitted[name].measure)
        for measure, form, weight, values in average_risks(
            attribute.profiles, chosen, channel, asked.forms, asked.weights
        ):
            rows.append(Averaged(name, measure, form, weight, *_pad(values)))
        shares = Local().average(attribute.profiles, channel, ("own",))["own", "records"]
        caused.append(Averaged(name, "caused", None, "records", *_pad(shares)))
    return Averaging(table, mechanism, mean.releases, rule, tuple(rows), fitted, tuple(caused))


def _pad(values: Floats) -> list[Any]:
    """The risks of one release, of the mean and of the rule, or None if that has no noise."""
    return [*values.tolist(), None][:3]


def _find_rule(mechanism: Mechanism, number: int, method: CompositionMethod, delta: float | None) -> Rule:
    """The mechanism at the cumulative loss."""
    require_word("method", method, list_words(CompositionMethod))
    if delta is not None:
        require_within("total_delta", delta, least=0, below=1)
    try:
        composition = compose([Loss.of(mechanism)] * number, method=method, delta=delta)
    except InvalidInput as refusal:
        return Rule(method, None, delta or 0.0, None, str(refusal))
    pure = mechanism.pure
    cumulative = mechanism.with_epsilon(composition.epsilon) if pure else find_mechanism(composition)
    return Rule(composition.chosen.method, composition.epsilon, composition.delta, cumulative)


@dataclass(frozen=True)
class MeanNoise(Noise):
    """The mean of ``releases`` = T independent noises of one kind, each of the same scale.

    The channel of the mean has q(m) = P(m + mean < threshold). The mean of whole-number noises can meet the threshold
    exactly, if T is even; a count that does is not below it. Gaussian: the mean is Gaussian with scale/sqrt(T). The
    others: sums of positive terms, with a relative error below 1e-9 (discrete Gaussian: 1e-15 absolute).

    >>> mean = MeanNoise(1.0, LaplaceNoise, releases=2)
    >>> round(float(mean.p_zero(1)), 12)  # P(mean < -1/2) = P(sum of two > 1) = e^-1 (2 + 1)/4
    0.275909580879
    """

    scale: float
    """The scale of each of the noises."""
    kind: type[Noise] = LaplaceNoise
    releases: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole_number("releases", self.releases, 1, MOST_RELEASES)

    @property
    def deviation(self) -> float:
        """The mean's standard deviation; for a discrete Gaussian an upper bound, close from a scale of 1 on."""
        return math.sqrt(self.kind(self.scale).variance / self.releases)

    def cdf(self, x: Any) -> Floats:
        """P(mean <= x) = P(mean >= -x), as the mean is symmetric."""
        return self._exceed(-np.asarray(x, dtype=np.float64), strictly=False)

    def p_zero(self, count: Any, threshold: float = 0.5) -> Floats:
        """q(m) = P(m + mean < threshold) = P(mean > m - threshold)."""
        return self._exceed(np.asarray(count, dtype=np.float64) - threshold, strictly=True)

    def p_positive(self, count: Any, threshold: float = 0.5) -> Floats:
        """P(m + mean >= threshold)."""
        return self._exceed(threshold - np.asarray(count, dtype=np.float64), strictly=False)

    def p_pivotal(self, count: Any, threshold: float = 0.5) -> Floats:
        """q(m - 1) - q(m), the difference of two tails on the side where both are small.

        >>> mean = MeanNoise(1.0, LaplaceNoise, releases=2)
        >>> round(float(mean.p_pivotal(1)), 12)  # 1 - 2 e^-1 (2 + 1)/4
        0.448180838243
        """
        count = np.asarray(count, dtype=np.float64)
        below = self.p_positive(count, threshold) - self.p_positive(count - 1.0, threshold)
        above = self.p_zero(count - 1.0, threshold) - self.p_zero(count, threshold)
        return np.asarray(np.where(count < threshold, below, above))

    def _exceed(self, x: Floats, strictly: bool) -> Floats:
        """P(mean > x), or P(mean >= x): a tail of the sum where x > 0, else 1 less that of the other side."""
        size = np.abs(x) * self.releases
        return np.asarray(np.where(x > 0, self._tail(size, strictly), 1.0 - self._tail(size, not strictly)))

    def _tail(self, size: Floats, strictly: bool) -> Floats:
        """P(sum > size), or P(sum >= size), size > 0."""
        if self.kind.is_whole:
            size = np.floor(size) + 1.0 if strictly else np.ceil(size)
        if self.kind is GaussianNoise:
            return GaussianNoise(self.scale * math.sqrt(self.releases)).cdf(-size)
        if self.kind is DiscreteGaussianNoise:
            return discrete_gaussian_sum_tail(size, self.releases, self.scale)
        distinct, place = np.unique(size, return_inverse=True)
        tail = geometric_sum_tail if self.kind is GeometricNoise else laplace_sum_tail
        return np.asarray(tail(distinct, self.releases, self.scale)[place].reshape(np.shape(size)))

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        one, total = self.kind(self.scale), np.zeros(shape)
        for _ in range(self.releases):
            total += one.sample(generator, shape)
        return total / self.releases


def laplace_sum_tail(x: Floats, number: int, scale: float = 1.0) -> Floats:
    """P(S > x), x > 0, for the sum S of ``number`` = T Laplace variables.

    S/scale is the difference of two Gamma(T) variables: the times at which two Poisson processes have made T steps.
    S > x says that the first makes fewer than T steps in x and in the time that the second takes. It makes Poisson(x)
    steps in the one, and K ~ NB(T, 1/2) in the other, so P(S > x) = sum_{k < T} P(K = k) P(Poisson(x) <= T - 1 - k).

    >>> round(float(laplace_sum_tail(np.array([2.0]), 2)[0]), 12)  # e^-x (2 + x)/4
    0.135335283237
    """
    k = np.arange(number)
    weights = _negative_binomial(number, 0.5)
    near = x / scale < _negligible_from(number)
    return np.array(
        [weights @ special.gammaincc(number - k, at / scale) if here else 0.0 for at, here in zip(x, near, strict=True)]
    )


def geometric_sum_tail(n: Floats, number: int, scale: float) -> Floats:
    """P(S >= n), n >= 1 whole, for the sum S of ``number`` = T two-sided geometric variables, a = exp(-1/scale).

    S is the difference of two NB(T, 1 - a) variables: failures before T successes in two rows of trials. As for
    Laplace variables, with binomials instead of the Poisson variable: P(S >= n) = P(B + K <= T - 1) with
    B ~ Binomial(n + T - 1, 1 - a) and K ~ NB(T, 1/(1 + a)).

    >>> a = math.exp(-1.0)
    >>> round(float(geometric_sum_tail(np.array([3.0]), 1, 1.0)[0]), 12) == round(a**3 / (1.0 + a), 12)
    True
    """
    k = np.arange(number)
    weights = _negative_binomial(number, 1.0 / (1.0 + math.exp(-1.0 / scale)))
    success = -math.expm1(-1.0 / scale)
    near = n / scale < _negligible_from(number)
    return np.array(
        [
            weights @ special.betaincc(number - k, at + k, success) if here else 0.0
            for at, here in zip(n, near, strict=True)
        ]
    )


def discrete_gaussian_sum_tail(n: Floats, number: int, scale: float) -> Floats:
    """P(S >= n), n >= 1 whole, for the sum S of ``number`` = T discrete Gaussians.

    Points of the lattice Z^T with sum n are n/T in each place plus a vector that adds up to 0, so P(S = n) is
    proportional to exp(-n^2/(2 T scale^2)) c(n mod T), c a sum over vectors of the second kind. By Poisson summation c
    is constant but for a relative deviation of at most theta^T - 1, theta = sum_k exp(-(pi scale k)^2). If that is
    below 1e-15, which takes a scale of about 2, S is a discrete Gaussian of scale * sqrt(T); else the T variables are
    convolved.

    >>> wide, narrow = (float(discrete_gaussian_sum_tail(np.array(12.0), 9, scale)) for scale in (2.2, 1.9))
    >>> round(wide, 6), round(narrow, 6)  # normal: 0.040714, 0.021819
    (0.040571, 0.021685)
    """
    if 2.0 * number * math.exp(-((math.pi * scale) ** 2)) <= 1e-15:
        return DiscreteGaussianNoise(scale * math.sqrt(number)).cdf(0.5 - n)
    tails = _convolve_gaussians(number, scale)
    return np.asarray(tails[np.minimum(n, len(tails) - 1).astype(np.int64)])


@lru_cache(maxsize=16)
def _convolve_gaussians(number: int, scale: float) -> Floats:
    """P(S >= n) at n = 0, 1, ..., and 0 at the end. Beyond 9 scales, of one or of the sum, less than 1e-17 is left."""
    radius = math.ceil(9.0 * scale * math.sqrt(number)) + 2
    one = np.exp(-0.5 * (np.arange(radius + 1) / scale) ** 2)
    around = np.concatenate([one, one[:0:-1]])
    total = np.fft.irfft(np.fft.rfft(around / around.sum()) ** number, len(around))[: radius + 1]
    return np.append(np.clip(np.cumsum(total[::-1])[::-1], 0.0, 1.0), 0.0)


@lru_cache(maxsize=64)
def _negative_binomial(number: int, success: float) -> Floats:
    """P(K = k), k < T: failures before ``number`` = T successes."""
    k = np.arange(number)
    ways = -special.betaln(number, k + 1.0) - np.log(number + k)
    return np.asarray(np.exp(ways + number * math.log(success) + special.xlogy(k, 1.0 - success)))


def _negligible_from(number: int) -> float:
    """Return where tails are below 1e-320: P(S > x) <= e^(-x/2) (4/3)^T, in scales (Chernoff)."""
    return 1500.0 + 0.58 * number
