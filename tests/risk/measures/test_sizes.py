"""Cell-size distributions: mixtures against direct sums and mpmath, fits against optimisers written apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.risk.measures.pmf import poisson_log_pmf
from cellrisk.risk.measures.sizes import SizeDistribution, fit_sizes
from tests.near import near
from tests.risk.measures.cases import negative_binomial_sizes as negbin
from tests.risk.measures.cases import poisson_sizes as poisson
from tests.risk.measures.test_figures import BANKRUPTCY, BANKRUPTCY_SUBSET

METHODS = ("mle", "moments", "bayes")


def table(sizes: Sequence[int] | NDArray[np.int64], times: NDArray[np.int64] | None = None) -> Profiles:
    distinct, cells = np.unique(sizes, return_counts=True) if times is None else (np.asarray(sizes), times)
    return Profiles.from_lists(np.asarray(distinct, np.int64), np.arange(len(distinct) + 1), np.asarray(cells), 1)


LAWS = [
    *(poisson(rate, truncated) for rate in (1e-9, 0.3, 2.43, 40.0, 46.0, 1e4) for truncated in (True, False)),
    *(
        negbin(shape, mean, truncated)
        for shape in (1e-6, 1e-3, 0.4, 1.0, 12.0, 399.0, 401.0, 1e4, 1e8, math.inf)
        for mean in (0.5, 20.0, 1e4)
        for truncated in (True, False)
        if mean / shape < 1e5
    ),
    *(negbin(shape, mean) for shape, mean in ((1e3, 15.0), (1e4, 99.0), (1e5, 1500.0), (1e6, 1e4))),
    negbin(1e-8, 1.5e-7),
    negbin(3.0, 1e-6),
    negbin(1e6, 1e-6),
    poisson(0.0),
    negbin(math.inf, 0.0),
]
EVERY_LAW = pytest.mark.parametrize("law", LAWS, ids=repr)


def some_sizes(law: SizeDistribution) -> NDArray[np.int64]:
    """Sizes over the whole range of the law: all small ones, its quantiles, and on to its far tail."""
    last = law.last()
    spread = np.round(np.geomspace(1, max(2, last), 60)).astype(np.int64)
    middle = [law.last(tail) for tail in (0.99, 0.9, 0.5, 0.1, 0.01, 1e-6)]
    return np.unique(np.concatenate([np.arange(1, 25), spread, middle]))


# what every law keeps to


@EVERY_LAW
def test_the_mass_is_one_and_the_last_size_is_where_the_tail_ends(law: SizeDistribution) -> None:
    last = law.last()
    if last > 2_000_000:
        pytest.skip("too many sizes to add up")
    chance = law.pmf(np.arange(last + 1))
    assert chance.min() >= 0
    assert chance.sum() == pytest.approx(1, abs=2e-13)
    assert chance[0] == near(0 if law.truncated else 1 - law.not_empty)
    tail = law.last(1e-3)
    assert chance[tail + 1 :].sum() < 1e-3
    assert tail == 1 or chance[tail:].sum() >= 1e-3


def test_likely_sizes_are_all_that_are_not_unlikely() -> None:
    """Up to the last size that matters, by looking at each."""
    for law in (*LAWS, poisson(3_000.0), negbin(30.0, 800.0), negbin(0.2, 900.0)):
        if (last := law.last()) < 5_000:
            sizes, chance = law.likely
            every = np.arange(1, last + 1)
            weights = law.pmf(every)
            assert sizes.tolist() == every[weights > 1e-24].tolist(), law
            assert chance == pytest.approx(weights[weights > 1e-24], rel=1e-12, abs=0)


@EVERY_LAW
def test_the_mixture_of_poissons_gives_the_sizes_back(law: SizeDistribution) -> None:
    rates, weights = law.mixture
    assert weights.min() > 0
    sizes = some_sizes(law)
    mixed = np.array([weights @ np.exp(poisson_log_pmf(n, rates)) for n in sizes])
    np.testing.assert_allclose(mixed, law.pmf(sizes), rtol=0, atol=1e-13)


@EVERY_LAW
def test_the_mixture_integrates_smooth_functions(law: SizeDistribution) -> None:
    """1 - e^-l, l e^-l, and E (-1/2)^N - E 1(N = 0), an oscillating one, in closed form."""
    rates, weights = law.mixture
    factor = 1 / law.not_empty if law.truncated and law.not_empty else 1.0
    kept = 1.0 if law.truncated else law.not_empty
    assert float(weights @ -np.expm1(-rates)) == pytest.approx(kept, abs=1e-13)
    assert float(weights @ (rates * np.exp(-rates))) == pytest.approx(float(law.pmf(1)), abs=1e-13)
    if law.not_empty:
        shape = law.parameters.get("shape", math.inf)
        mean = law.parameters.get("mean", law.parameters.get("rate", 0.0))
        with mpmath.workdps(40):
            m = mpmath.mpf(mean)

            def transform(x: float) -> mpmath.mpf:
                """E e^(-x L)."""
                return mpmath.exp(-x * m) if math.isinf(shape) else (1 + x * m / shape) ** (-mpmath.mpf(shape))

            expected = float((transform(1.5) - transform(1)) * factor)
        assert float(weights @ (np.exp(-rates) * np.expm1(-0.5 * rates))) == pytest.approx(expected, abs=2e-13)


@EVERY_LAW
def test_the_size_biased_mixture_gives_the_sizes_less_one_record(law: SizeDistribution) -> None:
    rates, weights = law.size_biased_mixture
    assert rates.min() >= 0
    sizes = some_sizes(law)
    mixed = np.array([weights @ np.exp(poisson_log_pmf(n - 1, rates)) for n in sizes])
    np.testing.assert_allclose(mixed, law.pmf(sizes), rtol=0, atol=1e-13)
    assert weights.sum() == pytest.approx(1.0 if law.truncated else law.not_empty, abs=1e-13)


def test_boundaries_have_names() -> None:
    assert poisson(0.0).boundary == "rate zero"
    assert negbin(math.inf, 2.0).boundary == "shape infinite"
    assert negbin(1e-8, 1e-7).boundary == "shape zero"
    assert "log-series" in negbin(1e-8, 1e-7).describe()
    assert negbin(2.0, 1.0).boundary is None
    assert negbin(math.inf, 2.0).to_dict()["shape"] is None


@pytest.mark.parametrize("law", [poisson(2.5), negbin(0.7, 3.0), negbin(1e-6, 2e-6)], ids=repr)
def test_pmf_agrees_with_mpmath(law: SizeDistribution) -> None:
    for n in (1, 2, 17):
        with mpmath.workdps(40):
            if law.family == "negbin":
                r, m = mpmath.mpf(law.shape), mpmath.mpf(law.mean)
                empty = (r / (r + m)) ** r
                chance = mpmath.gamma(r + n) / mpmath.gamma(r) / mpmath.factorial(n) * empty * (m / (r + m)) ** n
            else:
                rate = mpmath.mpf(law.parameters["rate"])
                empty = mpmath.exp(-rate)
                chance = empty * rate**n / mpmath.factorial(n)
            expected = float(chance / (1 - empty))
        assert float(law.pmf(n)) == pytest.approx(expected, rel=1e-13, abs=0)


# refusals


def test_a_table_without_records_is_refused() -> None:
    with pytest.raises(InvalidInput, match="without records"):
        fit_sizes(Profiles(2, ()))


# fits


def draws(shape: float, mean: float, n: int, seed: int) -> NDArray[np.int64]:
    sizes = np.random.default_rng(seed).negative_binomial(shape, shape / (shape + mean), n)
    return np.asarray(sizes[sizes > 0])


SAMPLES = {
    "moderate": draws(1.5, 6.0, 4000, 1),
    "skewed": draws(0.3, 20.0, 4000, 2),
    "nearly Poisson": draws(20.0, 5.0, 4000, 3),
    "few": np.array([1, 1, 1, 2, 2, 9, 4]),
    "large": draws(3.0, 5000.0, 500, 4),
}


def log_likelihood(sizes: NDArray[np.int64], shape: float, mean: float, truncated: bool) -> float:
    """With scipy.stats."""
    chance = shape / (shape + mean)
    distinct, times = np.unique(sizes, return_counts=True)
    value = times @ stats.nbinom.logpmf(distinct, shape, chance)
    return float(value - len(sizes) * np.log(-np.expm1(shape * np.log(chance))) if truncated else value)


@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize("sizes", SAMPLES.values(), ids=SAMPLES.keys())
def test_negative_binomial_maximum(sizes: NDArray[np.int64], truncated: bool) -> None:
    """No perturbation is better, and a general optimiser finds the same."""
    law = fit_sizes(table(sizes), "negbin", "mle", truncated)
    assert law.family == "negbin"
    assert law.boundary is None
    best = log_likelihood(sizes, law.shape, law.mean, truncated)
    for step in (1e-2, 0.1, 1.0):
        for angle in np.linspace(0, 2 * np.pi, 12):
            shape, mean = law.shape * math.exp(step * math.sin(angle)), law.mean * math.exp(step * math.cos(angle))
            assert log_likelihood(sizes, shape, mean, truncated) < best
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 600}
    runs = [
        minimize(
            lambda x: -log_likelihood(sizes, math.exp(min(x[0], 20.0)), math.exp(min(x[1], 20.0)), truncated),
            [start, math.log(sizes.mean())],
            method="Nelder-Mead",
            options=options,
        )
        for start in (-1.0, 1.0, 3.0)
    ]
    brute = min(runs, key=lambda run: run.fun)
    np.testing.assert_allclose([law.shape, law.mean], np.exp(brute.x), rtol=2e-4)
    assert best >= -brute.fun - 1e-7


@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize("sizes", SAMPLES.values(), ids=SAMPLES.keys())
def test_negative_binomial_moments_are_met(sizes: NDArray[np.int64], truncated: bool) -> None:
    law = fit_sizes(table(sizes), "negbin", "moments", truncated)
    assert law.family == "negbin"
    if law.boundary == "shape zero":
        pytest.skip("no negative binomial has these two moments")
    first, second = law.mean, law.mean + law.mean**2 * (1 + 1 / law.shape)
    kept = law.not_empty if truncated else 1.0
    assert first / kept == pytest.approx(sizes.mean(), rel=1e-9, abs=0)
    assert second / kept == pytest.approx((sizes.astype(float) ** 2).mean(), rel=1e-9, abs=0)


def test_truth_is_recovered() -> None:
    """200,000 draws, about 180,000 of them seen; 5 standard errors: shape 3 %, mean 1 %."""
    sizes = draws(1.2, 6.0, 200_000, 5)
    for method in METHODS:
        law = fit_sizes(table(sizes), "negbin", method)
        assert law.family == "negbin"
        assert law.shape == pytest.approx(1.2, rel=0.04, abs=0)
        assert law.mean == pytest.approx(6.0, rel=0.02, abs=0)
    counts = np.random.default_rng(6).poisson(0.8, 100_000)
    for method in METHODS:
        law = fit_sizes(table(counts[counts > 0]), "poisson", method)
        assert law.parameters["rate"] == pytest.approx(0.8, abs=5 * 0.005)


@pytest.mark.parametrize("method", ["mle", "moments"])
def test_the_truncated_poisson_rate_solves_its_equation(method: str) -> None:
    for sizes in ([1, 1, 1, 2], [1, 3, 5], [40, 60], [1] * 10**5 + [2]):
        law = fit_sizes(table(sizes), "poisson", method)
        rate = law.parameters["rate"]
        assert rate / -math.expm1(-rate) == pytest.approx(np.mean(sizes), rel=1e-14, abs=0)
    best = fit_sizes(table([1, 3, 5])).parameters["rate"]
    near = [float(np.log(poisson(best * factor).pmf([1, 3, 5])).sum()) for factor in (0.99, 1, 1.01)]
    assert near[1] == max(near)


@pytest.mark.parametrize("sizes", [[1] * 10, [1], [1, 1, 1, 1, 1, 2, 2, 9], [3], [1] * 5000 + [2]], ids=len)
def test_the_poisson_posterior_mean_agrees_with_mpmath(sizes: list[int]) -> None:
    total, n = sum(sizes), len(sizes)
    assert fit_sizes(table(sizes), "poisson", "bayes", False).parameters["rate"] == near((total + 0.5) / n)
    actual = fit_sizes(table(sizes), "poisson", "bayes").parameters["rate"]
    with mpmath.workdps(30):
        scale = mpmath.mpf(actual)

        def moment(power: float) -> mpmath.mpf:
            def density(y: mpmath.mpf) -> mpmath.mpf:
                rate = scale * y * y  # takes the root out of the singularity at 0
                value = -n * (rate + mpmath.log(-mpmath.expm1(-rate) / rate)) if rate else mpmath.mpf(0)
                return 2 * y ** (2 * (total - n + power) + 1) * mpmath.exp(value)

            return mpmath.quad(density, [0, 0.5, 1, 1.5, 2, 4, 8, 16])

        expected = float(scale * moment(0.5) / moment(-0.5))
    assert actual == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize("truncated", [True, False])
def test_the_negative_binomial_posterior_mean_agrees_with_a_plain_grid(truncated: bool) -> None:
    sizes = SAMPLES["few"]
    law = fit_sizes(table(sizes), "negbin", "bayes", truncated)
    log_shape = np.linspace(math.log(1e-3), math.log(1e3), 401)
    log_mean = math.log(sizes.mean()) + np.linspace(-1, 1, 401) * math.log(1e3)
    shape, mean = np.exp(log_shape)[:, None], np.exp(log_mean)[None, :]
    chance = shape / (shape + mean)
    value = sum(stats.nbinom.logpmf(n, shape, chance) for n in sizes)
    if truncated:
        value = value - len(sizes) * np.log(-np.expm1(shape * np.log(chance)))
    weight = np.exp(value - value.max())
    for edge in (0, -1):  # the trapezoid rule
        weight[edge] /= 2
        weight[:, edge] /= 2
    weight /= weight.sum()
    assert law.parameters["shape"] == pytest.approx(float((weight * shape).sum()), rel=1e-3, abs=0)
    assert law.parameters["mean"] == pytest.approx(float((weight * mean).sum()), rel=1e-3, abs=0)
    assert "log shape uniform from 0.001 to 1000" in law.describe()


@pytest.mark.parametrize("method", ["mle", "moments"])
def test_cells_of_one_record_each(method: str) -> None:
    assert fit_sizes(table([1] * 7), "poisson", method) == poisson(0.0, True, method)
    law = fit_sizes(table([1] * 7), "negbin", method)
    assert law.boundary == "rate zero"
    np.testing.assert_array_equal(law.pmf([0, 1, 2]), [0, 1, 0])
    assert law.last() == 1
    assert fit_sizes(table([1] * 7), "poisson", method, truncated=False).parameters["rate"] == 1


@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize("method", ["mle", "moments"])
@pytest.mark.parametrize("sizes", [[2] * 9, [3, 4, 5, 4], [1, 2]], ids=str)
def test_sizes_that_vary_less_than_poisson_have_infinite_shape(sizes: list[int], method: str, truncated: bool) -> None:
    law = fit_sizes(table(sizes), "negbin", method, truncated)
    assert law.boundary == "shape infinite"
    poisson = fit_sizes(table(sizes), "poisson", method, truncated)
    assert law.parameters["mean"] == near(poisson.parameters["rate"])
    np.testing.assert_allclose(law.pmf(np.arange(20)), poisson.pmf(np.arange(20)), rtol=1e-14)


@pytest.mark.parametrize("method", ["mle", "moments"])
def test_log_series_sizes_have_shape_zero(method: str) -> None:
    """Heavier than log-series: the likelihood climbs as the shape falls, all the way."""
    sizes = np.array([1] * 500 + [2] * 40 + [50] * 40 + [300] * 20)
    law = fit_sizes(table(sizes), "negbin", method)
    assert law.boundary == "shape zero"
    assert law.parameters["shape"] == 1e-8
    assert float(law.pmf(np.arange(1, law.last() + 1)) @ np.arange(1, law.last() + 1)) == near(sizes.mean())
    scale = law.parameters["mean"] / 1e-8
    path = [log_likelihood(sizes, shape, shape * scale, True) for shape in (0.1, 0.01, 0.001, 1e-4)]
    assert path == sorted(path)


# the paper's figures


def test_the_papers_rates(adult: cr.FrequencyTable) -> None:
    vectors = adult.attribute().vectors
    assert vectors is not None
    adult_rows = np.repeat(vectors.counts, vectors.cells, axis=0).ravel()
    adult_rows = adult_rows[adult_rows > 0]
    assert len(adult_rows) == 5974
    for sizes, rate in ((adult_rows, 4.60), (list_sizes(BANKRUPTCY), 2.43), (list_sizes(BANKRUPTCY_SUBSET), 3.21)):
        assert fit_sizes(table(sizes), truncated=False).parameters["rate"] == pytest.approx(rate, abs=0.005)


def list_sizes(rows: dict[tuple[int, ...], int]) -> list[int]:
    return [sum(counts) for counts, times in rows.items() for _ in range(times)]
