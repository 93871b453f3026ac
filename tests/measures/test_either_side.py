"""On either side of where one way of computing gives way to another, and at the ends of what is summed.

Each piece is held to a plain sum or a closed form of its own; the measures as a whole are held to theirs elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from cellrisk.counts.profiles import LevelCounts, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel, CountChannel
from cellrisk.noise.distributions import GeometricNoise, LaplaceNoise
from cellrisk.risk.measures import Dirichlet, marginal, shrinkage, sizes, transforms
from cellrisk.risk.measures.dirichlet import all_same, fit_dirichlet, labels_drawn
from cellrisk.risk.measures.label_counts import BESIDES, consecutive_pmf, count_pmf, window
from cellrisk.risk.measures.mixtures import poisson_size_biased
from cellrisk.risk.measures.pmf import _STIRLING, deviance, first_count, last_count, poisson_pmf, stirling_error
from cellrisk.risk.measures.rising import _digamma_tail, _trigamma_tail
from cellrisk.risk.measures.sizes import NegativeBinomialSizes, PoissonSizes
from cellrisk.system.arrays import Floats, Integers
from tests.measures.watched import Watched
from tests.near import near

# probabilities


def test_counts_that_matter_are_rounded_outwards() -> None:
    """Nine and a half standard deviations on either side, and twenty counts more above."""
    means = [0.0, 0.3, 90.25, 91.0, 101.0, 400.0, 1e6 + 0.5]
    assert first_count(means).tolist() == [0, 0, 0, 0, 5, 210, 990_500]
    assert last_count(means).tolist() == [20, 26, 201, 202, 217, 610, 1_009_521]


def test_series_have_bernoullis_coefficients() -> None:
    """Term by term: B_2j / (2j (2j-1)) for log-factorials, B_2j / 2j for digamma, B_2j for trigamma."""
    theirs = [float(mp.bernoulli(2 * j) / (2 * j * (2 * j - 1))) for j in range(1, 8)]
    assert list(_STIRLING) == pytest.approx(theirs, rel=1e-15, abs=0)
    assert float(stirling_error(10.0)) == pytest.approx(
        math.fsum(theirs[j] / 10.0 ** (2 * j + 1) for j in range(7)), rel=1e-15, abs=0
    )
    for x in (1.0, 1.7, 12.0):
        at = mp.mpf(x)
        digamma = mp.fsum(-mp.bernoulli(2 * j) / (2 * j * at ** (2 * j)) for j in range(1, 7))
        trigamma = mp.fsum(mp.bernoulli(2 * j) / at ** (2 * j + 1) for j in range(1, 7))
        assert float(_digamma_tail(np.array([x]))[0]) == pytest.approx(float(-digamma), rel=1e-14, abs=0)
        assert float(_trigamma_tail(np.array([x]))[0]) == pytest.approx(float(trigamma), rel=1e-14, abs=0)


@pytest.mark.parametrize("v", [-0.999, -0.26, -0.2499, -0.1, -1e-6, 0.0, 1e-9, 0.03, 0.2499, 0.25, 0.2501, 0.6, 0.99])
def test_the_deviance_is_right_near_its_reference_and_far_from_it(v: float) -> None:
    """v = (x - r)/(x + r); the series gives way to logarithms at 1/4."""
    x, r = 1000.0 * (1.0 + v), 1000.0 * (1.0 - v)
    with mp.workdps(40):
        theirs = float(mp.mpf(x) * mp.log(mp.mpf(x) / mp.mpf(r)) + mp.mpf(r) - mp.mpf(x))
    assert float(deviance(np.asarray(x), x - r, r)) == pytest.approx(
        theirs, rel=4e-15 if abs(v) < 0.25 else 1e-13, abs=0
    )


@pytest.mark.parametrize("concentration", [0.5, 40.0, math.inf])
def test_windows_end_where_chernoffs_bound_does(concentration: float) -> None:
    """At most two counts past the point where the bound is exp(-50), and never before it."""
    shares = np.linspace(0.01, 0.99, 41)
    first, last = window(shares, concentration, 500)
    for share, low, high in zip(shares.tolist(), first.tolist(), last.tolist(), strict=True):
        mean, shape = 500 * share, share * concentration

        def exponent(m: float, mean: float = mean, shape: float = shape) -> float:
            own = m * math.log(m / mean) if m > 0 else 0.0
            return own - (m - mean if math.isinf(shape) else (shape + m) * math.log((shape + m) / (shape + mean)))

        assert exponent(high) >= BESIDES
        assert exponent(max(mean, high - 1.5)) < BESIDES
        if low > 0:
            assert exponent(low) >= BESIDES
        assert exponent(low + 1.5) < BESIDES


@pytest.mark.parametrize("width", [1, 63, 64, 65, 128, 129])
@pytest.mark.parametrize("concentration", [0.7, 30.0, math.inf])
def test_consecutive_probabilities_are_those_one_by_one(width: int, concentration: float) -> None:
    shares, first = np.array([0.05, 0.4]), np.array([0, 31])
    found = consecutive_pmf(first, width, shares, concentration, 90)
    assert found.shape == (2, width)
    for row in range(2):
        theirs = count_pmf(first[row] + np.arange(width), shares[row], concentration, 90)
        assert np.allclose(found[row], theirs, rtol=2e-13, atol=0)


# priors


def test_a_prior_lists_six_values_at_most() -> None:
    assert Dirichlet.given([1.0] * 6, 6).describe() == "Dirichlet prior, given: alpha = (1, 1, 1, 1, 1, 1)"
    assert Dirichlet.given([1.0] * 7, 7).describe().endswith("alpha = (1, 1, 1, 1, 1, 1, ... 7 in all)")


@pytest.mark.parametrize("mean", [(1.0 - 1e-12, 1e-12), (1e-12, 1.0 - 1e-12), (4e-13, 1.0 - 1e-12, 6e-13)])
def test_a_share_next_to_one_keeps_the_digits_of_the_rest(mean: tuple[float, ...]) -> None:
    """A thousand billion records share a label with probability e^-1; by 1 - share, that would have four digits."""
    found = all_same(Dirichlet(mean, math.inf, "given"), [10**12])
    assert found[0] == pytest.approx(math.exp(-1.0), rel=1e-12, abs=0)


def test_labels_drawn_by_the_definition() -> None:
    """One less than the chance of none, for each label; one label, or none that mix, is one label."""
    mean = (0.5, 0.25, 0.25, 0.0)
    drawn = np.array([1, 2, 7, 300])
    infinite = labels_drawn(Dirichlet(mean, math.inf, "given"), drawn)
    assert infinite == near([math.fsum(1 - (1 - share) ** int(n) for share in mean) for n in drawn])
    finite = labels_drawn(Dirichlet(mean, 3.0, "given"), drawn)
    none = [[math.prod((3 * (1 - share) + j) / (3 + j) for j in range(int(n))) for share in mean] for n in drawn]
    assert finite == near([math.fsum(1 - chance for chance in row) for row in none])
    for prior in (Dirichlet(mean, 0.0, "given"), Dirichlet((1.0, 0.0), 3.0, "given")):
        assert labels_drawn(prior, drawn).tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("same", "mixed"), [(10**6, 1), (10**4, 1), (1000, 3), (700, 300), (50_500, 49_500), (1_000_500, 999_500)]
)
def test_pairs_of_records_have_a_prior_in_closed_form(same: int, mixed: int) -> None:
    """Cells of two records and two labels alike: they differ with probability a/(2 (a + 1)); far below and above 1."""
    cells, times = [[2, 0], [0, 2], [1, 1]], np.array([same, same, 2 * mixed])
    profiles = Profiles.from_cells(cells, 2, times)
    prior = fit_dirichlet(profiles, LevelCounts.from_cells(cells, ["a", "b"], times))
    different = mp.mpf(mixed) / (same + mixed)
    assert prior.concentration == pytest.approx(float(2 * different / (1 - 2 * different)), rel=1e-7, abs=0)
    assert prior.mean == near((0.5, 0.5))


# sizes


def test_means_of_sizes_are_refused_in_full() -> None:
    """A mean of 0 is a limit of truncated sizes, and of no others."""
    for make, what in (
        (lambda mean, truncated: PoissonSizes(mean, truncated, "given"), "the rate of Poisson cell sizes"),
        (
            lambda mean, truncated: NegativeBinomialSizes(2.0, mean, truncated, "given"),
            "the mean of negative binomial cell sizes",
        ),
    ):
        assert make(0.0, True).boundary == "rate zero"
        for mean, truncated, allowed in ((-1.0, True, "from 0"), (0.0, False, "above 0"), (math.inf, True, "from 0")):
            with pytest.raises(InvalidInput) as refused:
                make(mean, truncated)
            assert f"{what} must be finite and positive" in str(refused.value)
            assert f"numbers {allowed}" in str(refused.value)


@pytest.mark.parametrize(
    ("width", "labels", "step"), [(99_999, 4, 1), (100_000, 4, 1341), (100_000, 10**9, 1), (500, 1, 1)]
)
def test_some_sizes_stand_for_others_where_they_are_a_hundred_thousand(
    width: int, labels: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 0.6 sqrt(last/labels)-th: with a last size of twenty million and four labels, every 1,341st."""
    law = PoissonSizes(19_950_000.0, truncated=True, source="given")
    monkeypatch.setattr(PoissonSizes, "last", lambda self: 20_000_000)
    monkeypatch.setattr(PoissonSizes, "_first_likely", lambda self: 20_000_000 - width)
    monkeypatch.setattr(PoissonSizes, "pmf", lambda self, n: np.ones(len(n)))
    found, chance = law.likely(labels)
    assert found.tolist() == list(range(20_000_000 - width, 20_000_001, step))
    assert set(chance.tolist()) == {float(step)}


def test_as_many_sizes_as_are_allowed_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    law = NegativeBinomialSizes(2.0, 9.0, truncated=True, source="given")
    found, _ = law.likely()
    assert found[0] == 1
    monkeypatch.setattr(sizes, "MOST_SIZES", law.last())
    assert law.likely()[0].tolist() == found.tolist()
    monkeypatch.setattr(sizes, "MOST_SIZES", law.last() - 1)
    with pytest.raises(InvalidInput, match="these are too many"):
        law.likely()


@pytest.mark.parametrize("mean", [30.0, 800.0, 5_000.0])
@pytest.mark.parametrize("shape", [65.0, 63.0, 2.0, 1.01 / 30])
def test_nearly_poisson_sizes_keep_their_digits_however_many_records(mean: float, shape: float) -> None:
    """A scale of mean/shape on either side of 1/64, and shapes on either side of the mean squared: shape times mean."""
    law = NegativeBinomialSizes(shape * mean * (30.0 if shape < 1 else 1.0), mean, truncated=True, source="given")
    counts = np.arange(max(0, int(mean - 12 * math.sqrt(mean))), int(mean + 12 * math.sqrt(mean)))
    rates, weights = law.size_biased_mixture()
    mixed = weights @ poisson_pmf(counts, rates[:, None])
    assert np.abs(mixed - law.pmf(counts + 1)).max() < 2e-14
    assert float(weights.sum()) == pytest.approx(1.0, rel=1e-13, abs=0)


def test_poisson_sizes_less_one_record_take_32_rates() -> None:
    for rate in (0.1, 40.0, 1e6):
        rates, weights = poisson_size_biased(rate)
        assert (len(rates), len(weights)) == (32, 32)
        assert (np.diff(rates) > 0).all()
        assert max(0.0, rate - 45.0) < rates.min() < rates.max() < rate
        assert float(weights.sum()) == pytest.approx(-math.expm1(-rate), rel=1e-13, abs=0)


# marginal risk


@pytest.mark.parametrize(
    ("largest", "panels"), [(0.5, 16), (35.9, 16), (36.0, 16), (36.1, 32), (100.0, 32), (100.1, 48), (196.0, 48)]
)
def test_panels_reach_the_largest_mean_and_few_means_are_summed(
    largest: float, panels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen panels more for every four deviations; up to twice as many means as points are summed one by one."""
    summed = Watched(monkeypatch, marginal, "_summed_means")
    channel = AdditiveChannel((LaplaceNoise(2.0), GeometricNoise(30.0)))
    edges = marginal._edges(panels)
    assert edges[:10].tolist() == near([0, 2, 4, 6, 8, 10, 12, 14, 16, 18.0625])
    assert edges[-1] >= largest
    points = 16 * panels
    for aside in (0, 1):
        for number, work in ((2 * points, [2 * points]), (2 * points + 1, [points]), (2 * points + 7, [])):
            summed.calls.clear()
            means = np.linspace(1e-3, largest, number)
            found = marginal._poisson_means(means, channel, aside)
            assert [each.size for each, *_ in summed.calls] == work
            for ours, theirs in zip(found, summed.function(means[[0, 1, 5, -1]], channel, aside), strict=True):
                assert np.allclose(ours[[0, 1, 5, -1]], theirs, rtol=1e-12, atol=1e-15)


def test_interpolated_means_are_the_same_in_steps_of_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = AdditiveChannel((LaplaceNoise(2.0), GeometricNoise(30.0)))
    means = np.linspace(0.0, 30.0, 600).reshape(30, 20)
    whole = marginal._poisson_means(means, channel, 1)
    for at_once in (16, 16 * 7, 16 * 599):
        monkeypatch.setattr(marginal, "NUMBERS_AT_ONCE", at_once)
        for ours, theirs in zip(marginal._poisson_means(means, channel, 1), whole, strict=True):
            assert ours.shape == (30, 20, 2)
            assert np.allclose(ours, theirs, rtol=1e-13, atol=0)


@pytest.mark.parametrize("aside", [0, 1])
def test_means_are_the_plain_sums_over_counts(aside: int) -> None:
    """E q(N), and E s(N) where N > 0 or, with a record aside, E s(N + 1): from mpmath's exponentials."""
    noises = (LaplaceNoise(2.0), GeometricNoise(0.5))
    means = np.array([[0.0, 1e-6, 0.4], [7.0, 60.0, 300.0]])
    q, s = marginal._summed_means(means, AdditiveChannel(noises), aside)
    for place in np.ndindex(2, 3):
        counts = np.arange(520)
        law = np.array(
            [float(mp.exp(-means[place]) * mp.mpf(means[place]) ** int(m) / mp.factorial(int(m))) for m in counts]
        )
        for column, noise in enumerate(noises):
            shown = noise.p_positive(counts + aside) * (counts + aside > 0)
            assert q[place][column] == pytest.approx(float(law @ noise.p_zero(counts)), rel=1e-11, abs=1e-18)
            assert s[place][column] == pytest.approx(float(law @ shown), rel=1e-11, abs=1e-18)


# shrinkage risk


def test_each_size_and_noise_is_computed_in_the_way_that_suits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 512 counts term by term; past them by transform, or, of over four million, where noise reaches few."""
    asked: list[tuple[str, list[int], list[float]]] = []

    def terms(concentration: float, labels: Any, sizes: Integers, channel: CountChannel, join: Any = None) -> Any:
        asked.append(("huge" if join else "terms", sizes.tolist(), [noise.scale for noise in channel.noises]))
        return (np.zeros((len(sizes), len(channel))),) * 2

    def transform(shares: Floats, times: Integers, concentration: float, sizes: Integers, table: Any) -> Any:
        asked.append(("transform", sizes.tolist(), []))
        return (np.zeros(len(sizes)),) * 2

    monkeypatch.setattr(shrinkage, "_term_by_term", terms)
    monkeypatch.setattr(shrinkage, "risk_by_transform", transform)
    million = 1 << 20
    many = np.array([512, 513, 4 * million, 4 * million + 1])
    reaches = {scale: AdditiveChannel((LaplaceNoise(scale),)).reach for scale in (12.0, 13.0)}
    scale = next(s for s in np.linspace(12.0, 13.0, 1000) if AdditiveChannel((LaplaceNoise(s),)).reach >= 512)
    assert reaches[12.0] < 512 < reaches[13.0]
    for labels, noise, expected in (
        (32, LaplaceNoise(12.0), [("terms", [512], [12.0]), ("terms", many[1:].tolist(), [12.0])]),
        (32, LaplaceNoise(scale), [("terms", [512], [scale]), ("terms", many[1:].tolist(), [scale])]),
        (
            32,
            LaplaceNoise(13.0),
            [("terms", [512], [13.0]), ("huge", [4 * million + 1], [13.0]), ("transform", [513, 4 * million], [])],
        ),
        (33, LaplaceNoise(12.0), [("transform", many.tolist(), [])]),
        (32, LaplaceNoise(5000.0), [("terms", [512], [5000.0]), ("transform", many[1:].tolist(), [])]),
    ):
        asked.clear()
        prior = Dirichlet(tuple([1 / labels] * labels), 5.0, "given")
        shrinkage._dirichlet_multinomial_risk(prior, many, AdditiveChannel((noise,)))
        assert asked == expected
    assert AdditiveChannel((LaplaceNoise(scale),)).reach == 512


@pytest.mark.parametrize(("less", "way"), [(0, "terms"), (1, "transform")])
def test_huge_cells_are_transformed_where_noise_reaches_as_many_counts(
    less: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All labels together may reach as many counts as a huge cell has records, and no more."""
    asked: list[str] = []

    def note(name: str, found: Any) -> Any:
        asked.append(name)
        return (found, found)

    monkeypatch.setattr(shrinkage, "_term_by_term", lambda *given: note("terms", np.zeros((1, 1))))
    monkeypatch.setattr(shrinkage, "risk_by_transform", lambda *given: note("transform", np.zeros(1)))
    channel = AdditiveChannel((LaplaceNoise(13.0),))
    monkeypatch.setattr(shrinkage, "HUGE", 4 * channel.reach - less)
    prior = Dirichlet((0.25,) * 4, 5.0, "given")
    shrinkage._dirichlet_multinomial_risk(prior, np.array([4 * channel.reach + 1]), channel)
    assert asked == [way]


def test_a_table_has_one_marginal_shrinkage_risk_however_many_rows_it_is_given() -> None:
    prior, law = Dirichlet((0.5, 0.25, 0.25), 3.0, "given"), PoissonSizes(4.0, truncated=False, source="given")
    asked, channel = shrinkage.MarginalShrinkage(prior, law), AdditiveChannel((LaplaceNoise(1.0), LaplaceNoise(2.0)))
    (block,) = Profiles.from_cells([[1, 2, 3], [2, 2, 4], [5, 1, 1]], 3).blocks
    likely, chance = law.likely(3)
    for form, risk in shrinkage.risk_by_size(prior, likely, channel, ("exact", "tight")).items():
        found = asked.risk(block, 3, channel, (form,))[form]
        assert found == near(np.tile(chance @ risk, (3, 1)))
    expected, some = asked.labels_present(block)
    assert expected == near([float(chance @ labels_drawn(prior, likely))] * 3)
    assert some == near([-math.expm1(-4.0)] * 3)


@pytest.mark.parametrize("concentration", [3.0, math.inf])
def test_one_common_mean_serves_sizes_that_do_not_underflow(concentration: float) -> None:
    """Largest first: all those whose total is likelier than 1e-200 at the mean of the largest."""
    sizes = np.array([40, 3_000, 2_500, 1, 2_999, 900, 300])
    groups = [sizes[rows].tolist() for rows in shrinkage._groups(concentration, sizes)]
    left = sorted(sizes.tolist(), reverse=True)
    for group in groups:
        fits = [n for n in left if float(count_pmf(n, 1.0, concentration, left[0])) > 1e-200]
        assert group == fits
        left = [n for n in left if n not in fits]
    assert not left
    assert len(groups) == (1 if concentration == 3.0 else 3)


# transforms


def test_polynomials_through_points_are_right_at_the_points_too() -> None:
    points = transforms._points(1.0, 3.0)
    assert len(points) == 28
    assert (points[0], points[-1]) == (1.0, 3.0)
    assert np.diff(points).min() > 0
    assert points == near(2.0 - np.cos(np.pi * np.arange(28) / 27))
    weights = transforms._lagrange(points, np.array([points[3], 2.5, points[0], points[-1]]))
    for row, place in ((0, 3), (2, 0), (3, 27)):
        assert weights[row].tolist() == [float(k == place) for k in range(28)]
    for power in (0, 1, 5, 27):
        assert float(weights[1] @ points**power) == pytest.approx(2.5**power, rel=1e-12, abs=0)
    assert transforms._lagrange(points, points).tolist() == np.eye(28).tolist()


@pytest.mark.parametrize("width", [1, 63, 64, 65, 200])
def test_logarithms_of_moments_are_plain_sums(width: int) -> None:
    terms, steepness = np.random.default_rng(width).random((3, width)), np.array([-2.0, -0.01, 0.3, 1.5])
    theirs = np.log(terms @ np.exp(np.outer(np.arange(width), steepness)))
    assert transforms._log_moments(terms, steepness) == near(theirs)


SHARES = np.array([0.1, 0.25, 0.65])
NOISE = GeometricNoise(6.0)


def plain(size: int, concentration: float, noise: Any = NOISE) -> tuple[transforms._Kinds, list[Floats], list[Floats]]:
    """The labels, and for each b_j over q(0) and a_j from count 0 on, straight from their definitions."""
    table = AdditiveChannel((noise,)).up_to(8 * size)
    made = transforms._Kinds.of(SHARES, concentration, size, 8 * size, table)
    b, a = [], []
    for share, first, last in zip(SHARES, made.first, made.last, strict=True):
        counts = np.arange(last + 1)
        law = count_pmf(counts, share, concentration, size) * (counts >= first)
        b.append(law * noise.p_zero(counts) / float(noise.p_zero(0)) * (counts <= table.end))
        a.append(law * noise.p_positive(np.minimum(counts, table.end)) * (counts > 0))
    return made, b, a


@pytest.mark.parametrize("concentration", [4.0, math.inf])
@pytest.mark.parametrize("size", [20, 300])
def test_what_is_known_of_each_label(size: int, concentration: float) -> None:
    """Its probability to vanish, its moments from the first count on, and how much its probabilities jump in all."""
    made, b, _ = plain(size, concentration)
    steepness = np.concatenate([np.exp2(np.arange(-18.0, 5.0)), -np.exp2(np.arange(-18.0, 5.0))])
    for row, terms in enumerate(b):
        mass = terms.sum()
        assert made.masses[row] == pytest.approx(mass, rel=1e-11, abs=0)
        assert made.jumps[row] == pytest.approx(
            np.abs(np.diff(terms, prepend=0.0, append=0.0)).sum() / mass, rel=1e-9, abs=0
        )
        span = len(terms) - 1 - made.first[row]
        for c, found in zip(steepness, made.moments[row], strict=True):
            if abs(c) * (span + 64) < 700:  # no exponential overflows
                log = math.log(math.fsum(terms[made.first[row] :] / mass * np.exp(c * np.arange(span + 1))))
                assert found == pytest.approx(log, rel=1e-8, abs=1e-12)
            assert c < 0 or found >= 0
            assert c > 0 or found <= 0
    assert made.alive.tolist() == [True, True, True]


TIMES = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 3.0, 1.0], [1.0, 0.0, 0.0]])


def joined(parts: list[Floats]) -> Floats:
    total = np.ones(1)
    for part in parts:
        total = np.convolve(total, part)
    return total


def labels_of(times: Floats) -> list[int]:
    return [kind for kind in range(3) for _ in range(int(times[kind]))]


@pytest.mark.parametrize("concentration", [4.0, math.inf])
@pytest.mark.parametrize("size", [20, 300])
def test_transforms_of_cells_are_the_convolutions_written_out(size: int, concentration: float) -> None:
    """One survives and the others vanish, at every total of the window; within the error that is stated."""
    made, b, a = plain(size, concentration)
    cells = transforms._Cells.of(made, TIMES)
    low, high = cells.windows()
    for row, times in enumerate(TIMES):
        labels = labels_of(times)
        weight = math.prod(b[j].sum() for j in labels)
        assert cells.log_weight[row] == near(math.log(weight))
        assert cells.offsets[row] == sum(made.first[j] for j in labels)
        one, records = np.zeros((2, sum(len(b[j]) for j in labels)))
        for place, k in enumerate(labels):
            others = joined([b[j] for j in labels[:place] + labels[place + 1 :]])
            for total, shown in ((one, a[k]), (records, a[k] * np.arange(len(a[k])))):
                part = np.convolve(others, shown)
                total[: len(part)] += part
        assert cells.log_most[row] >= math.log(one.max())
        offset = int(cells.offsets[row])
        outside = one[: offset + low[row]].sum() + one[offset + high[row] + 1 :].sum()
        assert outside <= 1e-16 * max(1.0, one.sum())
        single = cells[np.array([row])]
        at = offset + np.unique(np.linspace(low[row], min(high[row], len(one) - 1 - offset), 9).astype(np.int64))
        log_total = np.full(len(at), math.log(0.01))
        (found, tight), error = single.survivors_at(at, log_total)
        bound = 10.0 * error + 1e-15
        assert (np.abs(found - 100.0 * one[at]) <= bound).all()
        assert (np.abs(tight - 100.0 * records[at]) <= bound * at.max()).all()
        assert (error > 0).all()
        assert (error <= 1e-10).all()
        beyond = np.array([offset + int(high[row]) + 1])
        assert single.survivors_at(np.append(at, beyond), np.append(log_total, 0.0))[0][:, -1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("concentration", [4.0, math.inf])
@pytest.mark.parametrize("size", [20, 300])
def test_windows_of_cells_are_chernoffs(size: int, concentration: float) -> None:
    """With exponentials a factor of two apart, for a probability of exp(-41.5), and the widest label on either side."""
    made, b, _ = plain(size, concentration)
    cells = transforms._Cells.of(made, TIMES)
    for times, low, high in zip(TIMES, *cells.windows(), strict=True):
        labels = labels_of(times)
        widths = [int(made.last[j] - made.first[j]) for j in labels]
        ends: list[tuple[float, float]] = []
        for c in np.exp2(np.arange(-18.0, 5.0)):
            up = down = 0.0
            for j in labels:
                law = b[j][made.first[j] :] / b[j].sum()
                counts = np.arange(len(law))
                # the largest exponent is taken out, so that nothing overflows
                with np.errstate(divide="ignore"):
                    logs = np.log(law)
                up += float(np.logaddexp.reduce(logs + c * counts))
                down += float(np.logaddexp.reduce(logs - c * counts))
            ends.append(((up + 41.5) / c, (-down - 41.5) / c))
        above, below = min(end for end, _ in ends), max(end for _, end in ends)
        assert abs(int(high) - (math.ceil(min(above, sum(widths))) + max(widths))) <= 1
        assert abs(int(low) - max(0, math.floor(below) - max(widths))) <= 1


@pytest.mark.parametrize("concentration", [4.0, math.inf])
def test_the_stated_error_is_that_of_what_is_added_up(concentration: float) -> None:
    """1e-15 times the mean over all frequencies of sum_k |A_k| prod |B_j|, j but k, over P(n)."""
    made, b, a = plain(60, concentration)
    cells = transforms._Cells.of(made, TIMES[[1]])
    for length in (1024, 1023):
        waves_b, waves_a = (np.array([np.fft.fft(part, length) for part in parts]) for parts in (b, a))
        sums = sum(np.abs(waves_a[k]) * np.abs(np.prod(np.delete(waves_b, k, axis=0), axis=0)) for k in range(3))
        _, error = cells.survivors(np.array([60]), np.array([math.log(0.25)]), length)
        assert error[0] == pytest.approx(1e-15 * float(np.mean(sums)) / 0.25, rel=1e-6, abs=0)


def test_lengths_fold_nothing_onto_the_totals_asked_for() -> None:
    """As long as the farther of: from the window's start to the largest, from the smallest to its end."""
    made, _, _ = plain(300, math.inf)
    cells = transforms._Cells.of(made, TIMES[[1]])
    (low,), (high,) = cells.windows()
    offset = int(cells.offsets[0])
    for smallest, largest in ((300, 300), (250, 320), (offset, offset + int(high)), (290, 100_000)):
        theirs = max(largest - offset - int(low), int(high) - (smallest - offset), 0) + 1
        assert cells.lengths(np.array([smallest]), np.array([largest])).tolist() == [theirs]


def test_a_label_that_never_vanishes_is_the_only_one_shown() -> None:
    """One such label is the one that survives; with two of them there is nothing left."""
    table = AdditiveChannel((GeometricNoise(0.5),)).up_to(4_000)
    made = transforms._Kinds.of(np.array([0.001, 0.999]), math.inf, 2_000, 4_000, table)
    assert made.alive.tolist() == [True, False]
    assert made.masses[1] == 0.0
    cells = transforms._Cells.of(made, np.array([[3.0, 0.0], [3.0, 1.0], [3.0, 2.0]]))
    assert cells.shown.tolist() == [[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert cells.log_weight == near(3.0 * math.log(made.masses[0]))


@pytest.mark.parametrize("concentration", [3.0, 900.0, math.inf])
def test_a_common_mean_serves_the_sizes_whose_totals_are_within_a_factor_of_a_thousand(
    concentration: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the largest on: the mean is the smallest size that serves the largest. What is not right to 1e-12 is
    computed once more at its own size: here, one record under a prior of three, beside seven hundred.
    """
    asked: list[tuple[int, list[int]]] = []

    def note(cells: Any, sizes: Integers, log_total: Floats) -> tuple[Floats, Floats]:
        asked.append((cells.kinds.size, sizes.tolist()))
        return survivors(cells, sizes, log_total)

    survivors = transforms._Cells.survivors_at
    monkeypatch.setattr(transforms._Cells, "survivors_at", note)
    shares, times = np.array([0.1, 0.15, 0.6]), np.array([1, 2, 1])
    sizes = np.array([2, 700, 690, 30, 640, 600, 520, 31, 300, 1])
    table = AdditiveChannel((GeometricNoise(300.0),)).up_to(700)
    exact, tight = transforms.risk_by_transform(shares, times, concentration, sizes, table)
    expected, left = [], sorted(sizes.tolist(), reverse=True)

    def chance(n: int, mean: int) -> float:
        return float(count_pmf(n, 1.0, concentration, mean))

    while left:
        mean = min(n for n in left if chance(left[0], n) > chance(n, n) / 1000)
        near_it = [n for n in left if chance(n, mean) > max(chance(other, mean) for other in left) / 1000]
        expected.append((mean, near_it))
        left = [n for n in left if n not in near_it]
    assert asked == expected + ([(1, [1])] if concentration == 3.0 else [])
    alone = [
        transforms.risk_by_transform(shares, times, concentration, sizes[[row]], table) for row in range(len(sizes))
    ]
    assert exact == near([float(found[0]) for found, _ in alone])
    assert tight == near([float(found[0]) for _, found in alone])
