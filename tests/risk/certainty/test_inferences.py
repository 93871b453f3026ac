"""Certainty: against enumeration of every release with the posterior as defined, limits, calibration, and refusals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import cellrisk as cr
from cellrisk.counts.profiles import LabelledCounts, LevelCounts
from cellrisk.counts.table import Attribute
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import (
    DiscreteGaussianNoise,
    GaussianNoise,
    GeometricNoise,
    InfiniteNoise,
    LaplaceNoise,
    Noise,
    NoNoise,
)
from cellrisk.risk.attacks import acceptance
from cellrisk.risk.certainty import (
    ConfidentInferences,
    NegativeBinomial,
    find_certainty,
    inferences,
    read_belief,
    read_certainties,
)
from cellrisk.risk.certainty.count_priors import CategoryPrior, EmpiricalPrior
from cellrisk.risk.certainty.posterior import posterior_means
from tests.near import near
from tests.risk.certainty import oracle

CERTAINTIES = (0.6, 0.8, 0.9, 0.95, 0.99)
NOISES = {
    "laplace": LaplaceNoise(1.0),
    "geometric": GeometricNoise(1.3),
    "gaussian": GaussianNoise(1.5),
    "discrete gaussian": DiscreteGaussianNoise(1.2),
    "no noise": NoNoise(),
}


def make_attribute(cells: Any, times: Sequence[int] | None = None) -> Attribute:
    vectors = LabelledCounts.from_cells(cells, times)
    labels = [f"label {place}" for place in range(vectors.n_levels)]
    levels = LevelCounts.from_cells(vectors.counts, labels, vectors.cells)
    return Attribute("a", levels, vectors.profiles(), False, False, vectors)


def expect(
    cells: Sequence[Sequence[int]], noise: Noise, threshold: float, belief: NegativeBinomial, certainty: float
) -> tuple[float, float]:
    """Right and named, by enumeration."""
    last = max(max(counts) for counts in cells) + len(oracle.law(noise)[0]) // 2
    behind = [
        oracle.posterior_table(shape, belief.theta, noise, threshold, last, last + 400) for shape in belief.shapes
    ]
    right = named = 0.0
    for counts in cells:
        chance = oracle.name_by_shares(counts, noise, threshold, behind, certainty)
        right += float(np.dot(counts, chance))
        named += sum(counts) * float(chance.sum())
    return right, named


@pytest.mark.parametrize("threshold", [0.5, 1.5, 4.5])
@pytest.mark.parametrize("kind", NOISES)
def test_two_labels_are_exact(kind: str, threshold: float) -> None:
    cells = [[1, 0], [0, 1], [3, 0], [2, 1], [5, 4], [9, 1], [0, 12]]
    belief = NegativeBinomial((0.3, 0.7), 0.8)
    found = find_certainty(make_attribute(cells), AdditiveChannel((NOISES[kind],), threshold), CERTAINTIES, belief)
    assert [one.certainty for one in found] == list(CERTAINTIES)
    for one in found:
        right, named = expect(cells, NOISES[kind], threshold, belief, one.certainty)
        assert (one.right_low, one.named_low) == (near(right), near(named))
        assert (one.right_high, one.named_high) == (one.right_low, one.named_low)


@pytest.mark.parametrize("threshold", [0.5, 1.5, 4.5])
@pytest.mark.parametrize("kind", NOISES)
def test_three_labels_lie_between_two_ends(kind: str, threshold: float) -> None:
    cells = [[1, 0, 0], [0, 3, 0], [2, 1, 0], [5, 4, 1], [9, 0, 1]]
    belief = NegativeBinomial((0.3, 0.7, 0.2), 0.8)
    people = sum(map(sum, cells))
    found = find_certainty(make_attribute(cells), AdditiveChannel((NOISES[kind],), threshold), CERTAINTIES, belief)
    assert [one.certainty for one in found] == list(CERTAINTIES)
    for one in found:
        right, named = expect(cells, NOISES[kind], threshold, belief, one.certainty)
        assert one.right_low - 1e-9 <= right <= one.right_high + 1e-9
        assert one.named_low - 1e-9 <= named <= one.named_high + 1e-9
        if kind != "no noise":  # there all is atoms, which may lie on the very bound
            assert one.named_high - one.named_low < 1e-6 * people


@pytest.mark.parametrize("threshold", [0.5, 2.5])
@pytest.mark.parametrize("kind", ["laplace", "geometric", "gaussian", "discrete gaussian"])
def test_belief_in_the_table(kind: str, threshold: float, monkeypatch: pytest.MonkeyPatch) -> None:
    two, times = [[1, 0], [0, 2], [3, 1], [6, 0], [4, 4]], [5, 3, 2, 4, 1]
    found = find_certainty(
        make_attribute(two, times), AdditiveChannel((NOISES[kind],), threshold), CERTAINTIES, EmpiricalPrior()
    )
    assert [one.certainty for one in found] == list(CERTAINTIES)
    for one in found:
        right, named = oracle.name_by_table(two, times, NOISES[kind], threshold, one.certainty)
        assert (one.right, one.named) == (near(right), near(named))
        assert one.error is None
        assert one.precision is None or one.precision >= one.certainty - 1e-9  # calibrated by construction
    three, channel = [[1, 0, 0], [0, 2, 0], [2, 0, 1], [5, 0, 0]], AdditiveChannel((NOISES[kind],), threshold)
    exact = find_certainty(make_attribute(three, times[:4]), channel, (0.7, 0.9), EmpiricalPrior())
    monkeypatch.setattr(inferences, "MOST_RELEASES", 0)  # too many to go through: simulated
    found = find_certainty(make_attribute(three, times[:4]), channel, (0.7, 0.9), EmpiricalPrior())
    for one, other in zip(found, exact, strict=True):
        right, named = oracle.name_by_table(three, times[:4], NOISES[kind], threshold, one.certainty)
        assert (other.right, other.named, other.error) == (near(right), near(named), None)
        assert one.error is not None
        assert abs(one.right - right) <= 4 * one.error + 1e-9
        assert abs(one.named - named) <= 6 * one.error + 1e-9


@pytest.mark.parametrize(
    ("shape", "theta", "noise", "threshold", "values", "last"),
    [
        (0.2, 0.9, LaplaceNoise(1.0), 0.5, [0, 1, 5, 60], 700),
        (0.2, 0.9, LaplaceNoise(30.0), 0.5, [0, 50, 900], 3000),  # theta below b
        (0.2, 0.999, GeometricNoise(2.0), 0.5, [0, 1, 900], 3000),  # above
        (0.2, 0.5, GeometricNoise(10.0), 2.5, [0, 3, 150], 2000),
        (1e-6, 0.9, GaussianNoise(50.0), 0.5, [0, 1, 250, 320, 450], 1500),  # interpolated
        (1e-3, 0.99, GaussianNoise(40.0), 0.5, [0, 100, 150, 300], 2000),
        pytest.param(0.3, 0.995, GaussianNoise(250.0), 0.5, [0, 1, 700, 1900], 6000, marks=pytest.mark.slow),
        (0.2, 0.9, DiscreteGaussianNoise(40.0), 0.5, [0, 100, 300], 2000),
        (100.0, 0.99, LaplaceNoise(10.0), 0.5, [0, 5, 100, 390], 6000),  # far more are believed than are shown
        (100.0, 0.99, LaplaceNoise(1.0), 0.5, [0, 5, 39], 2000),
        (1e4, 0.01, LaplaceNoise(10.0), 0.5, [0, 5, 100, 300], 1000),  # as good as Poisson
        (1e4, 0.01, GaussianNoise(3.0), 0.5, [0, 5, 100, 300], 1000),
        (1e5, 0.01, LaplaceNoise(5.0), 0.5, [0, 1000, 2500], 3500),
        (1e5, 0.01, LaplaceNoise(100.0), 0.5, [0, 1000, 25000], 3000),
        (1e4, 0.05, GaussianNoise(100.0), 0.5, [0, 500, 4000], 5000),
        (1e4, 0.05, DiscreteGaussianNoise(1.0), 0.5, [0, 3, 500], 1500),
        (0.13, 0.994, LaplaceNoise(0.01), 0.5, [0, 1, 25], 200),  # the middle weighs as good as nothing beside 1
        (0.13, 0.994, LaplaceNoise(0.025), 0.5, [0, 1, 25], 200),
        (0.13, 0.994, GeometricNoise(0.01), 0.5, [0, 1, 25], 200),
    ],
)
def test_people_expected_behind_a_value(
    shape: float, theta: float, noise: Noise, threshold: float, values: list[int], last: int
) -> None:
    first = math.ceil(threshold)
    shown = np.concatenate([[0], np.arange(first, max(*values, first) + 1)])
    found = posterior_means(CategoryPrior(shape, theta), AdditiveChannel((noise,), threshold), shown)
    for value in values:
        expected = float(oracle.expected_behind(value, shape, theta, noise, threshold, last))
        assert found[max(value - first + 1, 0)] == pytest.approx(expected, rel=1e-10, abs=1e-30)


@pytest.mark.parametrize("noise", [LaplaceNoise(2.0), GaussianNoise(30.0), GeometricNoise(50.0)])
def test_cells_of_any_size(noise: Noise) -> None:
    """Only the values within the noise's reach of a count are gone through."""
    belief = NegativeBinomial((0.2, 0.1), 0.999)
    for size in (10**6, 10**9, 10**12):
        one = find_certainty(make_attribute([[size, 3], [2, size]]), AdditiveChannel((noise,), 0.5), (0.9,), belief)[0]
        assert one.right == pytest.approx(2 * size, rel=1e-9, abs=0)


@pytest.mark.parametrize("n_levels", [2, 3])
def test_nine_in_ten_means_that(n_levels: int) -> None:
    """On a table that is drawn from the belief, as many of the named are right as the attacker believes."""
    generator = np.random.default_rng(5)
    shapes, theta = np.array([0.5, 0.3, 0.2])[:n_levels], 0.8
    cells = generator.negative_binomial(shapes, 1 - theta, (40_000, n_levels))
    attribute = make_attribute(cells[cells.any(axis=1)])
    channel, belief = AdditiveChannel((LaplaceNoise(1.0),), 0.5), NegativeBinomial(tuple(shapes), theta)
    edges = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    rows = find_certainty(attribute, channel, edges, belief)
    for edge, end, row, after in zip(edges, (*edges[1:], 1.0), rows, (*rows[1:], None), strict=True):
        named, right = row.named - (after.named if after else 0.0), row.right - (after.right if after else 0.0)
        # People of a cell are right or wrong together: an error of sqrt(p (1 - p) (size) / people), size at most 20.
        error = math.sqrt(edge * (1 - edge) * 20 / named)
        assert edge - 4 * error <= right / named <= end + 4 * error


@pytest.mark.parametrize("n_levels", [2, 3])
def test_limits(n_levels: int) -> None:
    cells = [counts[:n_levels] for counts in ([8, 0, 1], [9, 1, 0], [7, 0, 0], [5, 1, 0])]
    attribute = make_attribute(cells)
    belief = read_belief("negbin", attribute.levels, 4)
    has, everybody = sum(counts[0] for counts in cells), sum(map(sum, cells))
    share = has / everybody
    for noise in (InfiniteNoise(), LaplaceNoise(2e4)):
        below, above = find_certainty(attribute, AdditiveChannel((noise,), 0.5), (share - 0.01, share + 0.01), belief)
        assert (below.right, below.named) == (pytest.approx(has, abs=0.1), pytest.approx(everybody, abs=0.1))
        assert (above.right, above.named) == (pytest.approx(0, abs=0.1), pytest.approx(0, abs=0.1))
    raw = find_certainty(attribute, AdditiveChannel((NoNoise(),), 0.5), (0.85, 0.95), belief)
    assert [one.right for one in raw] == near([has - 5, 15 if n_levels == 2 else 7])


def test_a_label_that_nobody_has() -> None:
    attribute = make_attribute([[3, 1, 0], [2, 0, 0], [0, 4, 0]])
    belief = read_belief("negbin", attribute.levels, 3)
    assert isinstance(belief, NegativeBinomial)
    assert belief.shapes[2] == 0
    two = make_attribute([[3, 1], [2, 0], [0, 4]])
    found = find_certainty(attribute, AdditiveChannel((LaplaceNoise(1.0),), 0.5), (0.8,), belief)[0]
    other = find_certainty(
        two, AdditiveChannel((LaplaceNoise(1.0),), 0.5), (0.8,), NegativeBinomial(belief.shapes[:2], belief.theta)
    )[0]
    assert found.right_low - 1e-9 <= other.right <= found.right_high + 1e-9
    assert found.right_high - found.right_low < 0.02 * 10


@pytest.mark.parametrize(
    ("n_levels", "n_cells", "noise"),
    [
        (7, 60, LaplaceNoise(1.0)),
        (7, 40, GaussianNoise(12.0)),
        pytest.param(20, 40, GeometricNoise(2.0), marks=pytest.mark.slow),
        pytest.param(100, 25, GeometricNoise(0.5), marks=pytest.mark.slow),
        pytest.param(100, 12, LaplaceNoise(3.0), marks=pytest.mark.slow),
    ],
)
def test_many_labels(n_levels: int, n_cells: int, noise: Noise) -> None:
    """The ends hold what simulated attacks find, but for five standard errors of the simulation."""
    generator = np.random.default_rng(n_levels)
    shapes = np.round(generator.choice([0.05, 0.4, 1.0, 3.0], n_levels) * 2.0 / n_levels, 3)
    theta, releases, certainties = 0.9, 200, (0.6, 0.8, 0.9)
    cells = np.stack([generator.negative_binomial(shapes, 1 - theta) for _ in range(n_cells)])
    cells[0] = [120, 16, *np.zeros(n_levels - 2, int)]
    cells = cells[cells.any(axis=1)]
    belief = NegativeBinomial(tuple(shapes.tolist()), theta)
    found = find_certainty(make_attribute(cells), AdditiveChannel((noise,), 0.5), certainties, belief)
    last = int(cells.max()) + math.ceil(12 * noise.scale) + 5
    behind = [oracle.posterior_table(shape, theta, noise, 0.5, last, last + 350) for shape in shapes.tolist()]
    right, named = np.zeros((2, len(certainties), releases))
    for number in range(releases):
        released = np.clip(cells + np.rint(noise.sample(generator, cells.shape)).astype(int), 0, last)
        weights = np.stack([table[column] for table, column in zip(behind, released.T, strict=True)], axis=1)
        shares = weights / weights.sum(axis=1, keepdims=True)
        for place, certainty in enumerate(certainties):
            sure = shares >= certainty
            right[place, number] = cells[sure].sum()
            named[place, number] = cells.sum(axis=1)[sure.any(axis=1)].sum()
    assert right[0].mean() > 10
    for one, drawn_right, drawn_named in zip(found, right, named, strict=True):
        for drawn, low, high in (
            (drawn_right, one.right_low, one.right_high),
            (drawn_named, one.named_low, one.named_high),
        ):
            # People of a cell are named together: a variance is at most the mean times the largest cell.
            variance = max(drawn.var(ddof=1), min(high * cells.sum(axis=1).max(), 1.0))
            error = 5 * math.sqrt(variance / releases)
            assert low - error <= drawn.mean() <= high + error
            assert high - low < 0.02 * cells.sum()


@pytest.mark.parametrize("noise", [LaplaceNoise(1.0), GaussianNoise(1.5)])
@pytest.mark.parametrize(("steps", "gap"), [((1024, 4096, 16384), 0.01), ((64,), 0.5), ((), 3.0)])
def test_ends_hold_the_truth_on_any_grid(
    noise: Noise, steps: tuple[int, ...], gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three labels by transforms, beside enumeration: ends that meet, that nearly do, and bounds alone."""
    monkeypatch.setattr(inferences, "MOST_RELEASES", 0)
    monkeypatch.setattr(acceptance, "STEPS", steps)
    cells = [[4, 0, 1], [0, 2, 0], [7, 7, 1], [1, 0, 0], [12, 1, 3], [0, 0, 9]]
    belief = NegativeBinomial((0.5, 0.3, 0.2), 0.8)
    gaps = []
    for one in find_certainty(make_attribute(cells), AdditiveChannel((noise,), 0.5), CERTAINTIES, belief):
        right, named = expect(cells, noise, 0.5, belief, one.certainty)
        assert one.right_low - 1e-9 <= right <= one.right_high + 1e-9
        assert one.named_low - 1e-9 <= named <= one.named_high + 1e-9
        gaps.append(one.named_high - one.named_low)
    people = sum(map(sum, cells))
    assert max(gaps) < gap * people
    assert steps or max(gaps) > 0.01 * people


class TestAdult:
    """decision.md's figures, to the digits printed there."""

    @pytest.mark.parametrize(
        ("epsilon", "right", "named"),
        [
            (0.1, [12097.3, 7190.39, 3384.23, 30.4042], [14019.2, 7828.58, 3528.67, 30.8699]),
            (1, [15910.2, 13671.8, 11136.4, 6488.63], [17176.6, 14374.9, 11510.6, 6584.24]),
            (3, [16787.9, 14223.1, 12505.9, 8577.08], [17668.2, 14590.7, 12696.7, 8626.92]),
            (10, [16994.7, 14318.7, 12862.8, 11176.3], [17645.4, 14491.0, 12921.0, 11179.5]),
            (None, [17018, 14345, 12894, 11212], [17667, 14515, 12950, 11213]),
        ],
    )
    def test_figures(
        self, adult: cr.FrequencyTable, epsilon: float | None, right: list[float], named: list[float]
    ) -> None:
        attribute = adult.attribute()
        belief = read_belief("negbin", attribute.levels, adult.n_cells)
        assert isinstance(belief, NegativeBinomial)
        assert (*belief.shapes, belief.theta) == pytest.approx((0.200884, 0.068516, 0.905560), abs=6e-7)
        noise = NoNoise() if epsilon is None else cr.Laplace(epsilon).noise
        found = find_certainty(attribute, AdditiveChannel((noise,), 0.5), (0.8, 0.9, 0.95, 0.99), belief)
        assert [one.right for one in found] == pytest.approx(right, rel=6e-6, abs=0)
        assert [one.named for one in found] == pytest.approx(named, rel=6e-6, abs=0)

    def test_much_noise_and_the_table(self, adult: cr.FrequencyTable) -> None:
        attribute = adult.attribute()
        belief = read_belief("negbin", attribute.levels, adult.n_cells)
        assert find_certainty(attribute, cr.Laplace(0.01).channel, (0.8,), belief)[0].named == near(0)
        found = find_certainty(attribute, cr.Laplace(1.0).channel, (0.8, 0.9, 0.95, 0.99), EmpiricalPrior())
        assert [one.right for one in found] == pytest.approx([15692.5, 12056.3, 8524.29, 2688.14], rel=6e-6, abs=0)


@pytest.mark.parametrize(
    "given", [0.5, 0.2, 1.0, 1.5, 0, -1, math.nan, math.inf, "sure", [], [0.9, 0.5], None, [[0.9], []]]
)
def test_certainties_that_are_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="certainty"):
        read_certainties(given)


def test_words_and_json() -> None:
    one = ConfidentInferences(0.95, "negbin", 10.0, 14.0, 16.0, 18.0)
    assert one.number == "10 to 14"
    assert one.precision == near(12 / 17)
    assert one.overconfident
    assert not ConfidentInferences(0.95, "table", 19.0, 19.0, 20.0, 20.0).overconfident
    assert one.to_dict()["right_ends"] == [10.0, 14.0]
    assert ConfidentInferences(0.95, "negbin", 0.0, 0.0, 0.0, 0.0).precision is None


@pytest.mark.parametrize("noise", [GeometricNoise(30.0), LaplaceNoise(30.0)])
@pytest.mark.parametrize(
    ("shape", "theta"), [(0.3, 0.99999), (1.0, 0.999), (3.0, 0.9999), (1e-300, math.exp(-1 / 30 + 0.0069))]
)
def test_sums_that_start_far_from_0_are_those_over_all_counts(shape: float, theta: float, noise: Noise) -> None:
    """Of large values the attacker's expectation leaves out counts far below; nobody at all may still matter."""
    values = np.arange(99_900, 100_101)
    found = posterior_means(CategoryPrior(shape, theta), AdditiveChannel((noise,)), values)
    counts = np.arange(105_001.0)
    law = special.gammaln(shape + counts) - special.gammaln(counts + 1.0) + counts * math.log(theta)
    for place in (0, 17, 200):
        away = values[place] - counts
        with np.errstate(divide="ignore"):
            logs = law + np.where(
                np.abs(away) < 40, np.log(noise.mass(away)), -np.abs(away) / noise.scale + edge(noise)
            )
        weights = np.exp(logs - logs.max())
        expected = float(weights @ counts / weights.sum())
        assert found[place] - values[place] == pytest.approx(expected - values[place], rel=1e-7, abs=1e-6)


def edge(noise: Noise) -> float:
    """log c of noise whose far probabilities are c e^(-|j|/scale)."""
    return float(np.log(noise.mass(np.array([40.0])))[0]) + 40.0 / noise.scale


@pytest.mark.parametrize("scale", [3.0, 16.5, 40.0, 300.0, 1e5])
def test_the_mass_of_gaussian_noise_is_its_density_over_a_unit(scale: float) -> None:
    """By quadrature with thirty digits, beside the mass at 0: constants may differ, and do not matter to a mean."""

    def log_mass(distance: int) -> Any:
        with mp.workdps(30):
            density = lambda u: mp.exp(-(((distance + u) / mp.mpf(scale)) ** 2) / 2)  # noqa: E731
            return mp.log(mp.quad(density, [-0.5, 0, 0.5]))

    distances = np.array([round(part * scale) for part in (0.0, 0.4, 1.0, 3.0, -7.0, 10.0)])
    found = GaussianNoise(scale).log_mass(distances.astype(np.float64))
    theirs = [float(log_mass(distance) - log_mass(0)) for distance in distances.tolist()]
    assert (found - found[0]).tolist() == pytest.approx(theirs, rel=1e-12, abs=1e-12)
