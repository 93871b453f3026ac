"""The Dirichlet prior: its probabilities against mpmath, its fits against formulas and optimisers written apart."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaln

import cellrisk as cr
from cellrisk.counts.profiles import LevelCounts, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.risk.measures.dirichlet import Dirichlet, all_same, fit_dirichlet
from cellrisk.risk.measures.pmf import log_excess, sums_of_inverses
from tests.near import near

Cells = NDArray[np.int64]


def fit(cells: Cells, method: str = "mle") -> Dirichlet:
    labels = [f"level {k}" for k in range(cells.shape[1])]
    return fit_dirichlet(Profiles.from_cells(cells, len(labels)), LevelCounts.from_cells(cells, labels), method)


def draw(alpha: NDArray[np.float64], sizes: NDArray[np.int64], seed: int) -> Cells:
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(alpha, len(sizes))
    return np.array([generator.multinomial(n, p) for n, p in zip(sizes, shares, strict=True)])


def log_likelihood(cells: Cells, alpha: NDArray[np.float64]) -> float:
    """One cell at a time, as it is written in maths.md; no histogram."""
    n, total = cells.sum(axis=1), alpha.sum()
    by_cell = gammaln(total) - gammaln(total + n) + (gammaln(alpha + cells) - gammaln(alpha)).sum(axis=1)
    return float(by_cell.sum())


def mp_all_same(alpha: list[float], n: int) -> float:
    with mpmath.workdps(60):
        a = [mpmath.mpf(value) for value in alpha]
        total = mpmath.fsum(a)
        terms = [
            mpmath.exp(
                mpmath.loggamma(total) + mpmath.loggamma(k + n) - mpmath.loggamma(total + n) - mpmath.loggamma(k)
            )
            for k in a
        ]
        return float(mpmath.fsum(terms))


# the probability that all records share a label


@pytest.mark.parametrize("concentration", [2e-9, 1e-3, 0.5, 3.0, 250.0, 1e5, 1e9])
@pytest.mark.parametrize(
    "mean", [(0.5, 0.5), (0.75, 0.125, 0.125), (1 - 2**-20, 2**-20), (1 - 2**-40, 2**-40)], ids=str
)
def test_all_same_agrees_with_mpmath(mean: tuple[float, ...], concentration: float) -> None:
    sizes = [1, 2, 3, 7, 50, 999, 12345, 10**6, 10**7]
    actual = all_same(Dirichlet(mean, concentration, "mle"), sizes)
    for n, value in zip(sizes, actual, strict=True):
        expected = mp_all_same([share * concentration for share in mean], n)
        if expected > 1e-290:
            assert value == pytest.approx(expected, rel=1e-12, abs=0), n


@pytest.mark.parametrize("mean", [(0.5, 0.5), (0.75, 0.25), (1 - 2**-30, 2**-30)], ids=str)
def test_all_same_at_the_limits(mean: tuple[float, ...]) -> None:
    sizes = np.array([1, 2, 10, 1000, 10**7])
    np.testing.assert_array_equal(all_same(Dirichlet(mean, 0.0, "mle"), sizes), 1.0)
    expected = [float(mpmath.fsum(mpmath.mpf(share) ** int(n) for share in mean)) for n in sizes]
    np.testing.assert_allclose(all_same(Dirichlet(mean, math.inf, "mle"), sizes), expected, rtol=1e-12)
    small = sizes[:3]
    np.testing.assert_allclose(all_same(Dirichlet(mean, 1e-13, "mle"), small), 1.0, rtol=1e-11)
    np.testing.assert_allclose(all_same(Dirichlet(mean, 1e13, "mle"), small), expected[:3], rtol=1e-11)


# the value


def test_given() -> None:
    prior = Dirichlet.given([1, 2, 3], 3)
    assert prior.concentration == 6
    assert prior.alpha == pytest.approx((1, 2, 3), rel=1e-15, abs=0)
    assert prior.boundary is None
    assert prior.source == "given"
    assert json.loads(json.dumps(prior.to_dict())) == {
        "name": "dirichlet",
        "source": "given",
        "alpha": near([1, 2, 3]),
        "mean": near([1 / 6, 1 / 3, 1 / 2]),
        "concentration": 6.0,
        "boundary": None,
    }


def test_given_refuses_another_number_of_values() -> None:
    with pytest.raises(InvalidInput, match="one value for each level"):
        Dirichlet.given([1, 1], 3)


# maximum likelihood

TABLES = {
    "two levels": draw(np.array([0.8, 0.3]), np.random.default_rng(1).integers(1, 20, 300), 2),
    "three levels": draw(np.array([2.0, 5.0, 0.7]), np.random.default_rng(3).integers(1, 60, 200), 4),
    "concentrated": draw(np.array([60.0, 140.0]), np.random.default_rng(5).integers(50, 900, 150), 6),
    "nearly homogeneous": draw(np.array([0.004, 0.006, 0.01]), np.full(400, 8), 7),
    "one large cell": np.array([[9000, 1200], [3, 1], [0, 2], [5, 5], [1, 0]]),
    "a rare level": draw(np.array([5.0, 5.0, 0.02]), np.full(200, 12), 8),
    "by hand": np.array([[4, 0], [0, 3], [1, 2], [5, 1]]),
}


@pytest.mark.parametrize("cells", TABLES.values(), ids=TABLES.keys())
def test_the_gradient_vanishes(cells: Cells) -> None:
    """By mpmath, cell by cell: relative to one of the two sums whose difference it is."""
    with mpmath.workdps(40):
        alpha = [mpmath.mpf(value) for value in fit(cells).alpha]
        total = mpmath.fsum(alpha)
        sizes, times = np.unique(cells.sum(axis=1), return_counts=True)
        common = mpmath.fsum(
            int(c) * (mpmath.digamma(total + int(n)) - mpmath.digamma(total)) for n, c in zip(sizes, times, strict=True)
        )
        for k, a in enumerate(alpha):
            counts, times = np.unique(cells[:, k], return_counts=True)
            own = mpmath.fsum(
                int(c) * (mpmath.digamma(a + int(n)) - mpmath.digamma(a)) for n, c in zip(counts, times, strict=True)
            )
            assert abs(own / common - 1) < 1e-11


@pytest.mark.parametrize("cells", TABLES.values(), ids=TABLES.keys())
def test_a_general_optimiser_finds_the_same(cells: Cells) -> None:
    starts = [np.zeros(cells.shape[1]), np.full(cells.shape[1], 3.0), np.full(cells.shape[1], -3.0)]
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 20000, "maxfev": 20000}
    runs = [
        minimize(lambda x: -log_likelihood(cells, np.exp(x)), start, method="Nelder-Mead", options=options)
        for start in starts
    ]
    best = min(runs, key=lambda run: run.fun)
    np.testing.assert_allclose(fit(cells).alpha, np.exp(best.x), rtol=1e-4)
    assert log_likelihood(cells, np.array(fit(cells).alpha)) >= -best.fun - 1e-8


def test_the_truth_is_recovered() -> None:
    """20,000 cells of 30 records: log alpha within 5 standard errors, which the curvature puts near 0.012."""
    alpha = np.array([0.5, 1.5, 4.0])
    cells = draw(alpha, np.full(20_000, 30), 11)
    for method in ("mle", "moments"):
        np.testing.assert_allclose(np.log(fit(cells, method).alpha), np.log(alpha), atol=0.06)


def test_levels_without_records_get_mean_zero() -> None:
    cells = TABLES["two levels"]
    padded = np.insert(cells, 1, 0, axis=1)
    prior, plain = fit(padded), fit(cells)
    assert prior.mean[1] == 0
    assert prior.alpha[1] == 0
    np.testing.assert_allclose([prior.alpha[0], prior.alpha[2]], plain.alpha, rtol=1e-12)
    sizes = [1, 2, 9]
    np.testing.assert_allclose(all_same(prior, sizes), all_same(plain, sizes), rtol=1e-12)


@pytest.mark.parametrize("method", ["mle", "moments"])
def test_homogeneous_cells_of_one_size_have_concentration_zero(method: str) -> None:
    prior = fit(np.array([[3, 0], [0, 3], [3, 0], [0, 3]]), method)
    assert prior.boundary == "zero"
    assert prior.mean == (0.5, 0.5)
    np.testing.assert_array_equal(all_same(prior, [1, 9]), 1.0)


@pytest.mark.parametrize("method", ["mle", "moments"])
def test_cells_with_equal_proportions_have_infinite_concentration(method: str) -> None:
    prior = fit(np.array([[4, 2], [2, 1], [8, 4], [4, 2]]), method)
    assert prior.boundary == "infinite"
    assert prior.mean == near((2 / 3, 1 / 3))


def test_slight_extra_variation_gives_a_large_concentration_and_none_gives_infinity() -> None:
    """Multinomial cells: the score at infinity decides, computed here cell by cell."""
    seen = set()
    for seed in range(12):
        cells = np.random.default_rng(seed).multinomial(40, [0.2, 0.3, 0.5], 100)
        shares = cells.sum(axis=0) / cells.sum()
        n = cells.sum(axis=1)
        score = ((cells * (cells - 1) / (2 * shares)).sum(axis=1) - n * (n - 1) / 2).sum()
        prior = fit(cells)
        assert (prior.boundary == "infinite") == (score <= 0)
        if prior.boundary is None:
            pooled = float((cells.sum(axis=0) * np.log(shares)).sum())
            assert prior.concentration > 100
            assert log_likelihood(cells, np.array(prior.alpha)) > pooled
        seen.add(prior.boundary)
    assert seen == {None, "infinite"}


def test_a_peak_beside_infinity_is_found_and_compared() -> None:
    """One cell settles the pooled shares: the score at infinity is negative, and yet a finite alpha is better."""
    cells = TABLES["one large cell"]
    shares, n = cells.sum(axis=0) / cells.sum(), cells.sum(axis=1)
    assert ((cells * (cells - 1) / (2 * shares)).sum(axis=1) - n * (n - 1) / 2).sum() < 0
    prior = fit(cells)
    assert prior.boundary is None
    assert log_likelihood(cells, np.array(prior.alpha)) > float((cells.sum(axis=0) * np.log(shares)).sum())


@pytest.mark.parametrize("cells", [[[2, 0], [2, 4]], [[0, 2], [2, 0], [2, 2]], [[1, 0], [1, 0], [1, 3]]], ids=str)
def test_tables_that_vary_just_as_chance_has_it_have_infinite_concentration(cells: list[list[int]]) -> None:
    """The score at infinity is 0 to the last digit, and the likelihood flat for ever: rounding makes no peak."""
    table = np.array(cells)
    shares, n = table.sum(axis=0) / table.sum(), table.sum(axis=1)
    assert ((table * (table - 1) / (2 * shares)).sum() - (n * (n - 1) / 2).sum()) == pytest.approx(0.0, abs=1e-12)
    assert fit(table).boundary == "infinite"
    pooled = float((table.sum(axis=0) * np.log(shares)).sum())
    for concentration in np.geomspace(0.1, 1e3, 20):
        for share in np.linspace(0.05, 0.95, 19):
            assert log_likelihood(table, concentration * np.array([share, 1 - share])) < pooled + 1e-9


# moments


@pytest.mark.parametrize("cells", TABLES.values(), ids=TABLES.keys())
def test_moments_agree_with_the_formula_cell_by_cell(cells: Cells) -> None:
    n = cells.sum(axis=1)
    shares = cells.sum(axis=0) / n.sum()
    v = (shares * (1 - shares)).sum()
    r = ((cells - n[:, None] * shares) ** 2).sum()
    above, below = v * (n**2).sum() - r, r - v * n.sum()
    prior = fit(cells, "moments")
    if above <= 0 or below <= 0:
        assert prior.boundary is not None
    else:
        assert prior.concentration == pytest.approx(above / below, rel=1e-9, abs=0)
    assert prior.mean == pytest.approx(tuple(shares), rel=1e-14, abs=0)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="without records"):
        fit(np.zeros((2, 2), np.int64))


# large and real tables


def test_adult(adult: cr.FrequencyTable) -> None:
    vectors = adult.attribute().vectors
    assert vectors is not None
    cells = np.repeat(vectors.counts, vectors.cells, axis=0)
    assert cells.shape == (5009, 2)
    prior = fit(cells)
    assert prior.alpha == pytest.approx((1.3522536, 0.3365560), abs=1e-6)  # Nelder and Mead, cell by cell: the same
    best = log_likelihood(cells, np.array(prior.alpha))
    for factor in ((1.01, 1), (0.99, 1), (1, 1.01), (1, 0.99)):
        assert log_likelihood(cells, np.array(prior.alpha) * factor) < best


# the pieces


@pytest.mark.parametrize("a", [1e-9, 0.3, 11.0, 11.9, 12.0, 500.0, 1e6, 1e13])
@pytest.mark.parametrize("m", [1, 2, 40, 10**6])
def test_sums_of_inverses_and_log_excess_agree_with_mpmath(a: float, m: int) -> None:
    rise, fall = sums_of_inverses(np.array([a]), np.array([float(m)]))
    excess = log_excess(np.array([a]), np.array([float(m)]))
    with mpmath.workdps(60):
        x = mpmath.mpf(a)
        digits = 1e-13 if a < 12 else 2e-15  # below, two values of scipy's digamma are subtracted
        assert float(rise[0]) == pytest.approx(float(mpmath.digamma(x + m) - mpmath.digamma(x)), rel=digits, abs=0)
        assert float(fall[0]) == pytest.approx(float(mpmath.psi(1, x) - mpmath.psi(1, x + m)), rel=1e-13, abs=1e-15 / a)
        expected = float(mpmath.loggamma(x + m) - mpmath.loggamma(x) - m * mpmath.log(x))
    assert float(excess[0]) == pytest.approx(expected, rel=1e-13, abs=1e-15 * m + 1e-14)
