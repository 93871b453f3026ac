"""How fits look for their answer: where peaks are scanned for, roots bracketed and posteriors integrated, and when
they stop."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from cellrisk.counts.profiles import LevelCounts, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.risk.measures import Dirichlet, dirichlet, pmf, size_fits
from cellrisk.risk.measures.dirichlet import _Likelihood, all_same, fit_dirichlet, labels_drawn
from cellrisk.risk.measures.mixtures import legendre_rule
from cellrisk.risk.measures.pmf import poisson_pmf
from cellrisk.risk.measures.rising import falling_root
from cellrisk.risk.measures.size_fits import Histogram
from cellrisk.risk.measures.sizes import NegativeBinomialSizes, PoissonSizes
from cellrisk.system.arrays import Floats
from tests.near import near


def likelihood(size: list[float], totals: list[float]) -> _Likelihood:
    """Of cells of these sizes, each of one label alone: as many labels as cells."""
    level = np.arange(len(totals))
    return _Likelihood(
        *(np.array(size), np.ones(len(size)), level, np.array(totals), np.ones(len(totals)), np.array(totals))
    )


# roots


@pytest.mark.parametrize(("start", "root", "direction"), [(0.0, 9.0, 1.0), (0.0, -9.0, -1.0), (20.0, 8.0, -1.0)])
def test_a_bracket_begins_seven_tenths_wide_and_grows_by_three_fifths(
    start: float, root: float, direction: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    bracket: list[Any] = []

    def slope(x: float) -> float:
        asked.append(x)
        return root - x

    def note(function: Any, near: float, far: float, xtol: float, rtol: float) -> float:
        bracket.extend([near, far, xtol, rtol])
        return root

    monkeypatch.setattr(scipy.optimize, "brentq", note)
    assert falling_root(slope, start) == root
    ends = [start]
    while direction * (root - ends[-1]) > 0:
        ends.append(ends[-1] + direction * 0.7 * 1.6 ** (len(ends) - 1))
    assert asked == near(ends)
    assert bracket[:2] == near(ends[-2:])
    assert bracket[2:] == [1e-14, 1e-14]


@pytest.mark.parametrize(("start", "first"), [(-8.0, -3.0), (8.0, 5.0), (2.0, 2.0)])
def test_a_root_is_looked_for_between_the_ends_alone(start: float, first: float) -> None:
    asked: list[float] = []

    def slope(x: float) -> float:
        asked.append(x)
        return 1.0 if x < 4.9 else -1.0

    assert falling_root(slope, start, -3.0, 5.0) == pytest.approx(4.9, abs=1e-9)
    assert asked[0] == first
    assert -3.0 <= min(asked) <= max(asked) <= 5.0


def test_a_slope_of_nothing_is_a_root_wherever_it_is_met() -> None:
    """At the start, inside and at an end; and no root is asked for past it."""
    for root in (0.0, 0.7, -0.7, 1.5, -1.5):
        asked: list[float] = []

        def slope(x: float, root: float = root, asked: list[float] = asked) -> float:
            asked.append(x)
            return root - x

        assert falling_root(slope, 0.0, -1.5, 1.5) == root
        assert len(asked) == [0.0, 0.7, 1.5].index(abs(root)) + 1


# concentrations


@pytest.mark.parametrize(
    ("changes", "peaks"),
    [
        ([-6.3, -3.6, 0.4, 1.5, 2.7, 5.5, 9.5], [-6.3, 0.4, 2.7, 9.5]),
        ([-3.5], [-3.5]),
        ([5.5], [5.5]),
        ([12.9], [12.9]),
        ([13.1], []),
        ([-4.0], [-4.0]),
        ([2.0], [2.0]),
        ([2.0, 3.5, 5.0], [2.0, 5.0]),
        ([6.0], [6.0]),
    ],
    ids=str,
)
def test_peaks_are_scanned_for_from_a_ten_thousandth_to_a_million(
    changes: list[float], peaks: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slope changes its sign at these powers of ten, falling first; past 10^13 a peak counts as infinite."""
    asked: list[tuple[float, float]] = []

    def at_concentration(
        self: _Likelihood, concentration: float, alpha: Floats, accuracy: float = 1e-8
    ) -> tuple[Floats, float]:
        asked.append((concentration, accuracy))
        place = round(math.log10(concentration), 12)
        return np.array([concentration]), -math.prod(place - change for change in changes)

    monkeypatch.setattr(_Likelihood, "at_concentration", at_concentration)
    found = likelihood([3.0, 2.0], [3.0, 2.0]).maxima()
    assert [math.log10(alpha[0]) for alpha in found] == pytest.approx(peaks, abs=1e-9)
    concentrations, accuracies = zip(*asked, strict=True)
    assert concentrations[:11] == near(tuple(10.0**power for power in range(-4, 7)))
    assert accuracies == near((1e-3,) * 11 + (1e-8,) * (len(asked) - 11))
    if len(changes) == 1:
        place = math.ceil(changes[0])
        assert concentrations[11] == near(10.0 ** min(max(place - 1, -4), 6))
        assert max(concentrations[11:]) <= (1e13 if place > 6 else 10.0**place) * (1 + 1e-9)


def test_peaks_are_those_in_the_logarithm_of_the_concentration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slope in log a. is a. times that in a.: 3 at a. = 50 makes 150."""
    slopes: list[float] = []

    def note(slope: Any, start: float, **ends: float) -> float:
        slopes.append(slope(math.log(50.0)))
        return start

    monkeypatch.setattr(_Likelihood, "at_concentration", lambda self, *given: (np.ones(2), 3.0))
    monkeypatch.setattr(dirichlet, "falling_root", note)
    likelihood([3.0, 2.0], [3.0, 2.0]).maxima()
    assert slopes == near([150.0])


@pytest.mark.parametrize(("above", "kept"), [(1.5e-14, True), (0.5e-14, False), (-0.5e-14, False), (-1.5e-14, True)])
def test_a_slope_that_is_no_more_than_rounding_is_none(
    above: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One label and one size: 1/2 + 1/3 + 1/4, and a slope of the label's own that is next to it."""
    fall = 13 / 12
    monkeypatch.setattr(_Likelihood, "slopes", lambda self, alpha: (np.array([fall * (1 + above)]), np.ones(1)))
    alpha, slope = likelihood([3.0], [3.0]).at_concentration(2.0, np.ones(1))
    assert alpha.tolist() == near([2.0])
    assert slope == (pytest.approx(fall * above, rel=0.1, abs=0) if kept else 0.0)


def test_alpha_falls_to_a_tenth_at_most_and_in_a_hundred_steps_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slopes that change places with each step never meet."""
    asked: list[Floats] = []

    def slopes(self: _Likelihood, alpha: Floats) -> tuple[Floats, Floats]:
        asked.append(alpha)
        return np.array([1.0, 4.0])[:: 1 if len(asked) % 2 else -1], np.array([1.0, 1.0])

    monkeypatch.setattr(_Likelihood, "slopes", slopes)
    likelihood([3.0, 2.0], [3.0, 2.0]).at_concentration(1.0, np.array([1.0, 3.0]))
    assert len(asked) == 100
    assert asked[0].tolist() == [0.25, 0.75]
    assert min(float((after / before).min()) for before, after in pairwise(asked)) == near(0.1)


@pytest.mark.parametrize("accuracy", [1e-3, 1e-8])
def test_steps_end_where_they_are_as_small_as_is_asked(accuracy: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last alpha for which slopes are asked is a step before that handed back."""
    asked: list[Floats] = []
    slopes = _Likelihood.slopes

    def note(self: _Likelihood, alpha: Floats) -> tuple[Floats, Floats]:
        asked.append(alpha)
        return slopes(self, alpha)

    monkeypatch.setattr(_Likelihood, "slopes", note)
    given = likelihood([30.0, 2.0, 400.0], [30.0, 2.0, 400.0])
    alpha, _ = given.at_concentration(1.7, np.array([1.0, 1.0, 1.0]), accuracy)
    steps = [np.abs(after / before - 1).max() for before, after in zip(asked, [*asked[1:], alpha], strict=True)]
    assert steps[-1] <= accuracy * (1 + 1e-9)
    assert min(steps[:-1]) > accuracy
    assert float(alpha.sum()) == near(1.7)


@pytest.mark.parametrize(("concentration", "gain"), [(4e11, 5e-12), (4.8e11, 2 / 4.8e11), (7e11, 0.0)])
def test_a_gain_of_a_million_millionth_for_each_record_is_rounding(concentration: float, gain: float) -> None:
    """Two cells of two records of one label each: 2 log((1 + 2/a) / (1 + 1/a)) over proportions that are the same."""
    found = likelihood([2.0, 2.0], [2.0, 2.0]).gain_over_infinity(np.full(2, concentration / 2))
    assert found == pytest.approx(gain, rel=1e-2, abs=0)


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_peaks_the_best_is_taken(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [[4, 0], [0, 3], [1, 2], [5, 1]]
    peaks = [np.array([0.7, 0.5]), np.array([20.0, 14.0])]
    monkeypatch.setattr(_Likelihood, "maxima", lambda self: peaks[::order])
    prior = fit_dirichlet(Profiles.from_cells(cells, 2), LevelCounts.from_cells(cells, ["a", "b"]))
    assert prior.alpha == near((0.7, 0.5))


def test_a_level_of_one_record_has_a_share() -> None:
    """And one without records has none, wherever it stands."""
    cells = [[4, 0, 0, 0], [0, 3, 0, 1], [1, 2, 0, 0], [5, 1, 0, 0]]
    prior = fit_dirichlet(Profiles.from_cells(cells, 4), LevelCounts.from_cells(cells, list("abcd")))
    assert prior.boundary is None
    assert prior.mean[2] == 0
    assert 0 < prior.mean[3] < min(prior.mean[:2])


@pytest.mark.parametrize("scale", [1, 10**4])
def test_moments_are_exact_however_many_records(scale: int) -> None:
    """By fractions, with numbers of more than 64 bits."""
    cells = np.array([[4, 0, 1], [0, 3, 2], [1, 2, 0], [5, 1, 7]]) * scale
    prior = fit_dirichlet(Profiles.from_cells(cells, 3), LevelCounts.from_cells(cells, list("abc")), "moments")
    sizes, n = [sum(row) for row in cells.tolist()], int(cells.sum())
    shares = [Fraction(sum(column), n) for column in cells.T.tolist()]
    v = sum(share * (1 - share) for share in shares)
    r = sum(
        (count - size * share) ** 2
        for row, size in zip(cells.tolist(), sizes, strict=True)
        for count, share in zip(row, shares, strict=True)
    )
    expected = (v * sum(size * size for size in sizes) - r) / (r - v * n)
    assert prior.concentration == near(float(expected))


# priors


def test_shares_may_miss_one_by_a_billionth() -> None:
    assert Dirichlet((0.5, 0.5 + 0.9e-9), 1.0, "given").mean[0] == 0.5
    assert Dirichlet((0.5, 0.5 - 0.9e-9), 1.0, "given").mean[0] == 0.5
    for share in (0.5 + 1.1e-9, 0.5 - 1.1e-9):
        with pytest.raises(InvalidInput, match=f"the mean of a Dirichlet prior must sum to 1; got {0.5 + share:.12g}"):
            Dirichlet((0.5, share), 1.0, "given")


def test_one_label_alone_is_no_division_by_zero() -> None:
    sizes = np.array([1, 2, 900])
    with np.errstate(all="raise"):
        for mean in ((1.0,), (0.0, 1.0)):
            for concentration in (0.0, 3.0, math.inf):
                prior = Dirichlet(mean, concentration, "given")
                assert labels_drawn(prior, sizes).tolist() == [1.0, 1.0, 1.0]
                assert all_same(prior, sizes) == near(np.ones(3))


def test_no_sizes_have_no_probabilities() -> None:
    for concentration in (0.0, 3.0, math.inf):
        prior = Dirichlet((0.5, 0.5), concentration, "given")
        assert all_same(prior, np.zeros((0, 2), np.int64)).shape == (0, 2)
        assert labels_drawn(prior, np.zeros(0, np.int64)).shape == (0,)


def test_a_table_of_labels_is_taken_a_size_at_a_time_where_labels_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirichlet, "_CHUNK", 3)
    share = np.full(4, 0.25)
    rows = [few.tolist() for few, _ in dirichlet._one_label(2.0, share, 1 - share, np.array([2, 4, 6]))]
    assert rows == [[0], [1], [2]]


# counts


@pytest.mark.parametrize("v", [-0.9, -0.5, 0.3, 0.9])
def test_the_deviance_near_its_reference_is_a_series_of_thirteen_terms(
    v: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1/3, 1/5, ..., 1/27: seen one by one where the series is not meant to be used."""
    monkeypatch.setattr(pmf, "_NEAR", 2.0)
    x, r = 1000.0 * (1.0 + v), 1000.0 * (1.0 - v)
    terms = math.fsum(v ** (2 * j) / (2 * j + 1) for j in range(1, 14))
    assert float(pmf.deviance(np.asarray(x), x - r, r)) == near((x - r) * v + 2 * x * v * terms)


# sizes


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_a_mean_of_nothing_is_a_limit_and_a_mean_of_one_is_none(mean: float) -> None:
    law = NegativeBinomialSizes(2.0, mean, truncated=True, source="given")
    assert law.boundary == (None if mean else "rate zero")
    for rates, weights in (law.mixture(), law.size_biased_mixture()):
        assert (len(rates) > 1) == (len(weights) > 1) == (mean > 0)
    rates, weights = law.size_biased_mixture()
    assert [float(weights @ poisson_pmf(n, rates)) for n in range(6)] == near(law.pmf(np.arange(1, 7)).tolist())


def test_the_last_size_is_the_first_with_less_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tail of 2^-n: what equals the tail that is asked for is not below it. Sizes are doubled, then halved."""
    law = PoissonSizes(2.0, truncated=False, source="given")
    asked: list[int] = []

    def tail(self: PoissonSizes, n: int) -> float:
        asked.append(n)
        return 0.5**n

    monkeypatch.setattr(PoissonSizes, "tail", tail)
    assert [law.last(0.5**n) for n in range(1, 20)] == list(range(2, 21))
    assert [law.last(0.6 * 0.5**n) for n in range(20)] == list(range(1, 21))
    asked.clear()
    assert law.last(0.5**10) == 11
    assert asked == [1, 2, 4, 8, 16, 12, 10, 11]


def test_sizes_at_the_edge_of_what_is_likely_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """1e-24 itself is unlikely, on either side of the peak."""
    law = PoissonSizes(5.0, truncated=True, source="given")
    chance = np.array([0.0, 1e-30, 1e-24, 2e-24, 0.5, 0.4, 0.1, 1e-24, 2e-24, 1e-24])
    monkeypatch.setattr(PoissonSizes, "pmf", lambda self, n: chance[n])
    monkeypatch.setattr(PoissonSizes, "last", lambda self: 9)
    assert law._first_likely() == 3
    monkeypatch.setattr(PoissonSizes, "_first_likely", lambda self: 1)
    sizes, weights = law.likely()
    assert sizes.tolist() == [3, 4, 5, 6, 8]
    assert weights.tolist() == near([2e-24, 0.5, 0.4, 0.1, 2e-24])


def test_a_thousand_labels_are_meant_where_no_number_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then one size stands for 0.6 sqrt(last/1000): for 6,000 where the last is 10^11."""
    law = PoissonSizes(9e10, truncated=True, source="given")
    monkeypatch.setattr(PoissonSizes, "last", lambda self: 10**11)
    monkeypatch.setattr(PoissonSizes, "_first_likely", lambda self: 10**11 - 120_000)
    monkeypatch.setattr(PoissonSizes, "pmf", lambda self, n: np.ones(len(n)))
    assert np.diff(law.likely()[0]).tolist() == [6000] * 20


@pytest.mark.parametrize("bend", [-1.0, 1.0])
def test_a_posterior_is_integrated_over_forty_five_logarithms_on_either_side(bend: float) -> None:
    """A normal law, and one three times as wide on the other side: no side ends before, or half as far again."""
    for mode, width in ((0.0, 1.0), (-3.0, 7e-3), (40.0, 19.0), (0.1, 0.4)):

        def log_density(x: Floats, mode: float = mode, width: float = width) -> Floats:
            z = (x - mode) / width
            return np.asarray(7.0 - np.where(z * bend > 0, z / 3, z) ** 2 / 2)

        points, weights = size_fits._posterior(log_density, mode, -math.inf, math.inf)
        assert len(points) == len(weights) == 128
        assert float(weights.sum()) == pytest.approx(2 * width * math.sqrt(2 * math.pi), rel=1e-9, abs=0)
        reach = math.sqrt(90.0) * width
        for side in (-1.0, 1.0):
            farthest = float((side * (points - mode)).max()) / (3.0 if side == bend else 1.0)
            assert 0.999 * reach < farthest < 1.5 * reach


def test_both_sides_of_a_posterior_end_alike() -> None:
    """Steps begin at 1e-5 and grow by half: the 35th is the first past 9.49 standard deviations."""
    points, _ = size_fits._posterior(lambda x: -(x**2) / 2, 0.0, -math.inf, math.inf)
    nodes, _ = legendre_rule(64)
    half = 1e-5 * 1.5**34 / 2
    assert points == near(np.concatenate([-half * (1 + nodes), half * (1 + nodes)]))


@pytest.mark.parametrize(("low", "high"), [(-2.0, 0.5), (0.0, 1.0), (-1.0, 0.0), (-40.0, 40.0)])
def test_a_posterior_is_integrated_between_its_ends_alone(low: float, high: float) -> None:
    points, weights = size_fits._posterior(lambda x: -(x**2) / 2, 0.0, low, high)
    assert low <= points.min() <= points.max() <= high
    expected = math.sqrt(math.pi / 2) * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    assert float(weights.sum()) == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize("size", [[1.0], [1.0, 2.0, 9.0], [7.0, 20.0]], ids=str)
@pytest.mark.parametrize("edges", [(-7.0, 9.0), (-3.0, -2.0), (7.0, 8.0)], ids=str)
def test_the_mean_of_each_shape_is_integrated_from_its_peak(
    size: list[float], edges: tuple[float, float], truncated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peak between the edges, or the edge next to it; and the integral is a plain sum over small steps."""
    given: list[Any] = []
    posterior = size_fits._posterior

    def note(*arguments: Any) -> Any:
        given.extend(arguments)
        return posterior(*arguments)

    monkeypatch.setattr(size_fits, "_posterior", note)
    sizes = Histogram(np.array(size), np.full(len(size), 2.0))
    integral, mean = size_fits._integrate_mean(sizes, truncated, 1.7, edges)
    log_density, mode, low, high = given
    assert (low, high) == edges
    around = np.clip(mode + np.array([-1e-3, 0.0, 1e-3]), low, high)
    assert log_density(around).argmax() in np.flatnonzero(around == mode)
    middles = low + (high - low) * (np.arange(20_000) + 0.5) / 20_000
    terms = log_density(middles)
    density = np.exp(terms - terms.max())
    expected = float(terms.max()) + math.log(density.sum() * (high - low) / 20_000)
    assert integral == pytest.approx(expected, abs=1e-5)
    assert mean == pytest.approx(float(density @ np.exp(middles) / density.sum()), rel=1e-5, abs=0)
    law = NegativeBinomialSizes(1.7, math.exp(1.1), truncated, "given")
    theirs = sum(2.0 * math.log(float(law.pmf(int(n))) * math.factorial(int(n))) for n in size)
    assert float(log_density(np.array([1.1]))[0]) == near(theirs)


def test_nodes_that_are_kept_cannot_be_changed() -> None:
    for law in (
        PoissonSizes(3.0, truncated=True, source="given"),
        NegativeBinomialSizes(2.0, 3.0, truncated=True, source="given"),
    ):
        for values in (*law.size_biased_mixture(), *(law.mixture() if law.name == "negbin" else ())):
            assert not values.flags.writeable


@pytest.mark.parametrize("shape", [1e-8, 0.3, 1.0, 7.0, 1e6, math.inf])
@pytest.mark.parametrize("mean", [1.0 + 1e-9, 1.2, 2.0, 3.5, 900.0])
def test_the_scale_is_looked_for_between_its_bounds(shape: float, mean: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convexity and Bernoulli's inequality, and a thousandth on either side."""
    given: list[float] = []
    brentq = scipy.optimize.brentq

    def note(function: Any, low: float, high: float, xtol: float, rtol: float) -> Any:
        given.extend([low, high, xtol, rtol])
        return brentq(function, low, high, xtol=xtol, rtol=rtol)

    monkeypatch.setattr(scipy.optimize, "brentq", note)
    scale = size_fits._scale(shape, mean)
    more = mean - 1
    if math.isinf(shape):
        bounds = [more, min(2 * more, mean)]
        assert scale / -math.expm1(-scale) == pytest.approx(mean, rel=1e-13, abs=0)
    else:
        bounds = sorted([2 * more / (shape + 1), more / shape])
    assert given[:2] == near([math.log(bounds[0]) - 1e-3, math.log(bounds[1]) + 1e-3])
    assert given[2:] == [1e-15, 1e-15]
    assert bounds[0] * (1 - 1e-6) <= scale <= bounds[1] * (1 + 1e-6)


@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize(("above", "poisson"), [(0.5e-13, True), (-1.0, True), (1.5e-13, False), (1e-9, False)])
def test_what_rounding_adds_to_pairs_is_no_variation(above: float, poisson: bool, truncated: bool) -> None:
    sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    rate = size_fits.poisson_mean(sizes, truncated)
    vars(sizes)["pairs"] = rate * sizes.mean * (1 + above)
    assert size_fits._not_overdispersed(sizes, truncated) == ((math.inf, rate) if poisson else None)


@pytest.mark.parametrize("fit", [size_fits.negative_binomial_mle, size_fits.negative_binomial_moments])
@pytest.mark.parametrize(("answer", "shape"), [(-math.inf, 1e-8), (math.log(2e-8), 2e-8), (0.0, 1.0), (math.inf, None)])
def test_shapes_are_looked_for_up_to_ten_billion(
    fit: Any, answer: float, shape: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 1, between the two shapes that stand for 0 and for infinity; the mean goes with the shape."""
    given: list[Any] = []

    def note(slope: Any, *where: float) -> float:
        given.extend(where)
        return answer

    monkeypatch.setattr(size_fits, "falling_root", note)
    sizes = Histogram(np.array([1.0, 2.0, 9.0]), np.array([5.0, 2.0, 1.0]))
    found, mean = fit(sizes, True)
    assert given == near([0.0, math.log(1e-8), math.log(1e10)])
    assert found == (math.inf if shape is None else near(shape))
    law = NegativeBinomialSizes(found, mean, truncated=True, source="given")
    assert mean / law.not_empty == pytest.approx(2.25, rel=1e-9, abs=0)
