"""`choose` overlooks no bend: against dense scans of random tables, and the bound on interpolation against the risk."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.counts.levels import MOST_LEVELS
from cellrisk.decide import analytic
from cellrisk.decide.requirement import Condition, Requirement
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism, make_noises
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.risk.measures import Local, Survival
from cellrisk.risk.sweep import MeasuredRisk
from cellrisk.system.arrays import Floats
from tests.examples import examples
from tests.near import near

LOW, HIGH = 1e-3, 1e2
Intervals = tuple[tuple[float, float], ...]


@pytest.mark.parametrize("name", ["laplace", "geometric"])
def test_narrow_windows_between_two_limits(name: str) -> None:
    """A cubic of the logarithm of epsilon, and its mirror image: between them a little is left at each of three roots,
    none of it at a bend, and two of the three beside the best."""
    setting, roots, width = make_mechanism(name, epsilon=1e-3, delta=0.0), np.log([0.02, 0.3, 7.0]), 1e-4
    cubic = np.polynomial.Polynomial.fromroots(roots)

    def excesses(noises: Any) -> Any:
        value = cubic(-np.log([noise.scale for noise in noises]))
        return np.stack([value, -value - width])

    found = analytic.find_epsilons(excesses, setting, 2, LOW, HIGH)
    expected = sorted(float(root.real) for limit in (0.0, width) for root in (cubic + limit).roots())
    assert np.log([end for interval in found.intervals for end in interval]) == pytest.approx(expected, abs=1e-6)
    for interval in found.intervals:
        assert excesses(make_noises(setting, interval)).max() <= 0


@pytest.mark.parametrize("middle", [LOW * 1.01, LOW * 1.1, 0.3, HIGH / 1.1, HIGH / 1.01])
@pytest.mark.parametrize("name", ["laplace", "geometric"])
def test_a_dip_anywhere_in_the_range_is_found_and_measured(name: str, middle: float) -> None:
    """A parabola of the logarithm of epsilon, the ends of the range among its places: where it goes below zero by next
    to nothing, and, lifted, where it is least."""
    setting = make_mechanism(name, epsilon=1e-3, delta=0.0)

    def parabola(noises: Any, lifted: float) -> Any:
        return (np.log([noise.scale for noise in noises]) + math.log(middle))[None] ** 2 + lifted

    found = analytic.find_epsilons(lambda noises: parabola(noises, -1e-6), setting, 2, LOW, HIGH)
    assert np.log(found.intervals) == pytest.approx(
        np.array([[math.log(middle) - 1e-3, math.log(middle) + 1e-3]]), abs=1e-7
    )
    assert found.least == pytest.approx(-1e-6, abs=1e-9)
    missed = analytic.find_epsilons(lambda noises: parabola(noises, 0.25), setting, 2, LOW, HIGH)
    assert (missed.intervals, missed.least) == ((), near(0.25))
    assert missed.where == pytest.approx(middle, rel=1e-5, abs=0)


def make_table(cells: list[list[int]]) -> cr.FrequencyTable:
    levels = [f"level {number}" for number in range(len(cells[0]))]
    rows = [
        {"q": place, "y": level, "n": count}
        for place, row in enumerate(cells)
        for level, count in zip(levels, row, strict=True)
    ]
    return cr.tabulate(pd.DataFrame(rows), "q", "y", count="n", levels={"y": levels})


def check(
    measured: MeasuredRisk,
    setting: Mechanism,
    admissible: Intervals,
    limit: float,
    searched: tuple[float, float],
    points: int,
) -> None:
    """Every point of a dense scan is where the answer says, unless it is nearer to the limit than the resolution."""
    dense = np.geomspace(*searched, points)
    risk = measured.at(setting, dense).max(axis=0)
    inside = np.zeros(points, bool)
    for low, high in admissible:
        inside |= (dense >= low) & (dense <= high)
        assert (measured.at(setting, np.array([low, high])) <= limit + 1e-15).all()
    clear = np.abs(risk - limit) > 2e-8  # an edge is narrowed to 1e-8 in log epsilon
    assert np.array_equal(inside[clear], (risk <= limit)[clear])


def check_choice(choice: cr.Choice, limit: float, points: int) -> None:
    option = choice.options[0]
    check(choice.measured, option.setting, choice.admissible, limit, option.searched, points)


@pytest.mark.parametrize(
    ("cells", "limit", "least"),
    [
        ([[9, 2, 0]] * 20 + [[40, 0, 0]] * 7, 0.18050612032950997, 1.312049476899677),
        ([[5, 1, 0]], 0.25859720179272955, 0.1598704766451259),
    ],
    ids=["a dip in the first step", "a peak in the first step"],
)
def test_a_bend_at_the_end_of_the_range(cells: list[list[int]], limit: float, least: float) -> None:
    asked: dict[str, Any] = {"form": "exact", "weights": "uniform", "least_epsilon": least}
    choice = cr.choose(make_table(cells), "laplace", max_risk=limit, **asked)
    assert choice.admissible
    check_choice(choice, limit, 4001)


counts = st.one_of(st.just(0), st.integers(1, 4), st.integers(1, 60))


@settings(max_examples=examples(20), deadline=None)
@given(
    cells=st.lists(st.lists(counts, min_size=3, max_size=3).filter(any), min_size=1, max_size=6),
    mechanism=st.sampled_from(["laplace", "laplace", "geometric", "gaussian-analytic", "gaussian-pdp"]),
    form=st.sampled_from(["published", "exact", "tight"]),
    near_a_bend=st.integers(0, 3),
    beyond=st.sampled_from([-1e-3, -1e-6, 1e-6, 1e-3]),
    data=st.data(),
)
def test_random_tables(
    cells: list[list[int]], mechanism: str, form: str, near_a_bend: int, beyond: float, data: st.DataObject
) -> None:
    """Limits just above and below the bends of the curve, in ranges that begin or end beside one."""
    delta = None if MECHANISMS[mechanism].pure else 0.01
    attribute: Any = SimpleNamespace(profiles=cr.Profiles.from_cells(cells, 3))
    measured = MeasuredRisk((attribute,), (Local(),), form, "uniform")
    setting = make_mechanism(mechanism, epsilon=1e-3, delta=delta or 0.0)
    grid = np.geomspace(LOW, HIGH, 200 if delta is None else 60)
    risk = measured.at(setting, grid)[0]
    slope = np.diff(risk)
    bends = np.flatnonzero(slope[1:] * slope[:-1] < 0) + 1
    place = int(bends[near_a_bend % len(bends)]) if len(bends) else data.draw(st.integers(5, 55))
    limit = float(np.clip(risk[place] + beyond, 0.0, 1.0))
    least = float(grid[max(place - data.draw(st.integers(1, 20)), 0)])
    excesses = Condition(Requirement(max_risk=limit), measured).excesses(setting)
    found = analytic.find_epsilons(excesses, setting, 3, least, HIGH)
    check(measured, setting, found.intervals, limit, (least, HIGH), 1001 if delta is None else 101)
    if not found.intervals:
        assert found.least <= risk[place] - limit + 1e-9


@pytest.mark.parametrize("attack", ["plurality", "proportional"])
def test_guesses(attack: str) -> None:
    table = make_table([[5, 3, 0], [2, 2, 1], [0, 9, 0]])
    (line,) = cr.curve(table, attack=attack, weights="records", epsilon=np.geomspace(0.05, 20, 20)).lines
    limit = float(np.median(line.risk))
    choice = cr.choose(table, attack=attack, max_risk=limit, least_epsilon=0.05, largest_epsilon=20.0)
    check_choice(choice, limit, 60)


def test_several_limits_at_once() -> None:
    """A limit that is kept from an epsilon on, and one that is kept up to another: what is between them."""
    table = make_table([[6, 5, 0]] * 3 + [[1, 0, 0]] * 4)
    choice = cr.choose(table, max_risk=0.3, max_people=7.5, form="exact", weights="uniform")
    people = cr.choose(table, max_people=7.5, form="exact", weights="uniform")
    risk = cr.choose(table, max_risk=0.3, form="exact", weights="uniform")
    both = [
        (max(one[0], other[0]), min(one[1], other[1]))
        for one in people.admissible
        for other in risk.admissible
        if max(one[0], other[0]) <= min(one[1], other[1])
    ]
    assert len(both) == len(choice.admissible)
    for found, expected in zip(choice.admissible, both, strict=True):
        assert found == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise])
@pytest.mark.parametrize("n_levels", [2, 5])
def test_interpolation_is_as_good_as_its_bound(kind: type[Noise], n_levels: int) -> None:
    cells = [[7, 2, *[0] * (n_levels - 2)], [40, *[0] * (n_levels - 1)], [1, *[1] * (n_levels - 1)]]
    profiles = cr.Profiles.from_cells(cells, n_levels)
    pieces = analytic._cut(math.log(0.01), math.log(1000.0), kind, n_levels)
    generator = np.random.default_rng(3)
    for piece in pieces:
        spot = generator.uniform(-1.0, 1.0, 50)
        logs = np.concatenate([piece.places, piece.middle + piece.half * spot])
        noises = tuple(kind(math.exp(each)) for each in logs)
        risk = Local().average(profiles, Survival(noises), ("exact",))["exact", "uniform"]
        series = piece.interpolate(risk[None, : piece.points])[:, 0]
        found = np.polynomial.chebyshev.chebval(spot, series)
        assert np.abs(found - risk[piece.points :]).max() < analytic.RESOLUTION


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise])
def test_sizes_of_complex_probabilities(kind: type[Noise]) -> None:
    """The total size of what noise becomes when its scale is turned, summed over whole numbers, against its bound."""
    for height in (0.1, 0.4, 0.7):
        for scale in (0.3, 1.0, 2.0, 7.0):
            turned = scale * np.exp(1j * height)
            j = np.arange(-800, 801)
            if kind in (LaplaceNoise, GeometricNoise):
                weight = np.exp(-np.abs(j) / turned)
            else:
                weight = np.exp(-0.5 * (j / turned) ** 2)
            if kind in (LaplaceNoise, GaussianNoise):  # a density, on a fine grid
                fine = np.linspace(-60 * scale, 60 * scale, 40_001)
                weight = np.exp(-np.abs(fine) / turned if kind is LaplaceNoise else -0.5 * (fine / turned) ** 2)
            size = float(np.abs(weight).sum() / abs(weight.sum()))
            assert math.log(size) <= analytic.log_size(kind, height) + 1e-4


@pytest.mark.parametrize("height", [0.001, 0.01, 0.05, 0.3, 0.6, 0.75])
def test_sizes_are_no_larger_than_they_must_be(height: float) -> None:
    """Equal to the integrals of densities; for whole numbers, the largest sum over scales."""
    assert analytic.log_size(LaplaceNoise, height) == near(-math.log(math.cos(height)))
    assert analytic.log_size(GaussianNoise, height) == near(-0.5 * math.log(math.cos(2 * height)))
    assert analytic.log_size(GeometricNoise, height) == near(2 * analytic.log_size(LaplaceNoise, height))
    j = np.arange(-300, 301)[:, None]
    weight = np.exp(-0.5 * (j / (np.geomspace(0.06, 18.0, 3000) * np.exp(1j * height))) ** 2)
    largest = float(np.log(np.abs(weight).sum(axis=0) / np.abs(weight.sum(axis=0))).max())
    assert largest * (1 - 1e-9) <= analytic.log_size(DiscreteGaussianNoise, height) <= largest * (1 + 1e-4)


def test_angles_beyond_which_there_is_no_bound() -> None:
    for kind, most in (
        (LaplaceNoise, 0.5),
        (GeometricNoise, 0.5),
        (GaussianNoise, 0.25),
        (DiscreteGaussianNoise, 0.25),
    ):
        assert math.isfinite(analytic.log_size(kind, 0.999 * most * math.pi))
        assert analytic.log_size(kind, 1.001 * most * math.pi) == math.inf
        assert analytic.log_size(kind, most * math.pi) == math.inf


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise, GeometricNoise, DiscreteGaussianNoise])
@pytest.mark.parametrize(
    ("length", "labels"), [(0.01, 3), (3.0, 3), (11.5, 3), (40.0, 3), (11.5, 1_000), (11.5, MOST_LEVELS), (0.01, 9_999)]
)
def test_enough_points_and_not_many_more(kind: type[Noise], length: float, labels: int) -> None:
    """The bound of the module's text is met at some angle by the answer, and at none by half of the points."""

    def error(number: int, points: int) -> float:
        heights = [*np.geomspace(0.001, 0.04, 12).tolist(), *np.linspace(0.05, 1.4, 28).tolist()]
        half = 0.5 * length / number
        found = []
        for height in heights:
            ratio = height / half + math.hypot(height / half, 1.0)
            size = labels * analytic.log_size(kind, height)
            found.append(math.log(4.0 / (ratio - 1.0)) + size + (1 - points) * math.log(ratio))
        return min(found)

    number, points = analytic.count_points(length, kind, labels)
    assert error(number, points) <= math.log(analytic.RESOLUTION)
    assert points <= analytic.MOST_POINTS
    assert points <= 4 or error(number, points // 2) > math.log(analytic.RESOLUTION)


CLOSED: dict[type[Noise], Callable[[Floats], Floats]] = {
    LaplaceNoise: lambda height: -np.log(np.cos(height)),
    GeometricNoise: lambda height: -2.0 * np.log(np.cos(height)),
    GaussianNoise: lambda height: -0.5 * np.log(np.cos(2.0 * height)),
}
"""The logarithm of C(u) in the module's text, where that has a closed form."""


@pytest.mark.parametrize("kind", list(CLOSED))
@pytest.mark.parametrize("length", [0.01, 3.0, 11.5, 40.0])
@pytest.mark.parametrize(("labels", "more"), [(2, 1.025), (10, 1.0), (100, 1.022), (1_000, 1.023), (MOST_LEVELS, 1.06)])
def test_no_fewer_points_would_do(kind: type[Noise], length: float, labels: int, more: float) -> None:
    """Against every number of stretches with up to 48 points each, and hundreds of angles."""
    height = np.geomspace(1e-3, (0.25 if kind is GaussianNoise else 0.5) * math.pi * 0.999, 400)
    around = 1.0 if labels < 1_000 else length * labels**0.5 / 8
    number = np.arange(max(1, int(0.5 * around)), int(around) + 60)[:, None]
    steep = height / (0.5 * length / number)
    ratio = steep + np.sqrt(steep**2 + 1.0)
    points = np.ceil(1.0 + (np.log(4.0 / 1e-10 / (ratio - 1.0)) + labels * CLOSED[kind](height)) / np.log(ratio))
    fewest = float(np.min((number * points)[points <= 48]))
    stretches, in_each = analytic.count_points(length, kind, labels)
    assert in_each <= 48
    assert fewest <= stretches * in_each <= more * fewest


def test_a_range_that_is_next_to_nothing_needs_two_points() -> None:
    for length in (0.0, 1e-300, 1e-12):
        assert analytic.count_points(length, LaplaceNoise, 2) == (1, 2)


@pytest.mark.parametrize(
    ("name", "delta"), [("laplace", 0.0), ("gaussian-analytic", 0.01), ("discrete-gaussian", 0.01)]
)
def test_the_epsilon_of_a_scale(name: str, delta: float) -> None:
    setting = make_mechanism(name, epsilon=1e-3, delta=delta)
    scales = analytic._Scales.of(setting, 0.01, 10.0)
    epsilons = np.geomspace(0.01, 10.0, 11)
    logs = np.array([math.log(setting.with_epsilon(float(each)).scale) for each in epsilons])
    assert scales.logs[[0, -1]] == near(logs[[0, -1]])
    assert scales.invert(logs) == pytest.approx(epsilons, rel=1e-6, abs=0)
    beyond = np.array([scales.logs[0] + 1.0, scales.logs[-1] - 1.0])
    assert scales.invert(beyond) == pytest.approx([0.01, 10.0], rel=1e-9, abs=0)


@pytest.mark.parametrize(("miss", "seen"), [(0.0, True), (0.008, True), (0.012, False)])
def test_what_misses_zero_by_little_is_looked_at(miss: float, seen: bool) -> None:
    """x^2 + miss^2 on a stretch from -1 to 1, whose roots are that far from real; and what is level so nearly."""
    piece = analytic._Piece(0.0, 1.0, 6)
    x = piece.places
    _, zeros = piece.find_special(piece.interpolate((x**2 + miss**2)[None, :]))
    assert zeros == pytest.approx([0.0, 0.0] if seen else [], abs=1e-6)
    levels, _ = piece.find_special(piece.interpolate((x**3 / 3 + miss**2 * x)[None, :]))
    assert np.sort(levels) == pytest.approx([-1.0, 0.0, 0.0, 1.0] if seen else [-1.0, 1.0], abs=1e-6)


def test_where_interpolants_are_level_and_zero() -> None:
    """A cosine, and one that is nowhere zero, from -1 to 5; what lies outside, or is complex, is left out."""
    piece = analytic._Piece(2.0, 3.0, 40)
    x = piece.places
    for size in (1.0, 1e-6):
        values = size * np.stack([np.cos(x), np.cosh(x - 2.0)])
        levels, zeros = piece.find_special(piece.interpolate(values))
        assert np.sort(levels) == pytest.approx([-1.0, 0.0, 2.0, math.pi, 5.0], abs=1e-9)
        assert np.sort(zeros) == pytest.approx([0.5 * math.pi, 1.5 * math.pi], abs=1e-9)
    levels, zeros = piece.find_special(piece.interpolate(np.full((1, 40), 0.7)))
    assert (min(levels), max(levels), len(zeros)) == (-1.0, 5.0, 0)


def test_where_the_largest_of_two_is_least() -> None:
    piece = analytic._Piece(2.0, 3.0, 40)
    x = piece.places
    (where,) = piece.find_least(piece.interpolate(np.stack([np.cos(x), 0.25 * x - 1.0])))
    dense = np.linspace(-1.0, 5.0, 600_001)
    largest = np.maximum(np.cos(dense), 0.25 * dense - 1.0)
    assert where == pytest.approx(float(dense[np.argmin(largest)]), abs=0.02)
    for sign, end in ((1.0, -1.0), (-1.0, 5.0)):  # a slope is least at an end, and nowhere beyond it
        assert piece.find_least(piece.interpolate(sign * x[None, :])) == near([end])
