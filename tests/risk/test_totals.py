"""The interval of a total of independent numbers, against their exact convolution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cellrisk.risk import totals
from cellrisk.risk.totals import CellOutcomes, find_interval
from tests.examples import examples

TAIL = 0.025
Cell = tuple[list[int], list[float]]


def convolve(cells: list[Cell]) -> tuple[np.ndarray, np.ndarray]:
    """Every value of the total and its probability, cell after cell."""
    found = {0: 1.0}
    for values, chance in cells:
        steps = [*zip(values, chance, strict=True), (0, 1.0 - math.fsum(chance))]
        joined: dict[int, float] = {}
        for before, probability in found.items():
            for value, part in steps:
                joined[before + value] = joined.get(before + value, 0.0) + probability * part
        found = joined
    ascending = sorted(found)
    return np.array(ascending), np.array([found[value] for value in ascending])


def check(cells: list[Cell], found: tuple[int, int, bool]) -> None:
    """At most 2.5% on each side; and with another person on either end left out there would be more."""
    values, chance = convolve(cells)
    low, high = found[:2]
    assert chance[values < low].sum() <= TAIL + 1e-12
    assert chance[values > high].sum() <= TAIL + 1e-12
    slack = 2e-6  # what is neglected, and added to both tails
    below, above = np.cumsum(chance), np.cumsum(chance[::-1])
    assert low >= values[np.searchsorted(below, TAIL - slack, "right")]
    assert high <= values[::-1][np.searchsorted(above, TAIL - slack, "right")]


def as_laws(cells: list[Cell]) -> list[CellOutcomes]:
    """Cells with as many values as each other go together, equal ones once."""
    laws = []
    for width in {len(values) for values, _ in cells}:
        kinds: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
        for values, chance in cells:
            if len(values) == width:
                kind = tuple(values), tuple(chance)
                kinds[kind] = kinds.get(kind, 0) + 1
        laws.append(
            CellOutcomes(
                np.array([values for values, _ in kinds]),
                np.array([chance for _, chance in kinds]),
                np.array(list(kinds.values())),
            )
        )
    return laws


@st.composite
def some_cells(draw: st.DrawFn, largest: int, most: int) -> list[Cell]:
    cells = []
    for _ in range(draw(st.integers(1, most))):
        values = draw(st.lists(st.integers(1, draw(st.sampled_from([3, 40, largest]))), min_size=1, max_size=3))
        weights = draw(st.lists(st.sampled_from([0.0, 1e-12, 1e-4, 0.02, 0.3, 1.0]), min_size=4, max_size=4))
        weights = [weight + 1e-13 for weight in weights[: len(values) + 1]]
        cells.append((values, [weight / sum(weights) for weight in weights[1:]]))
    return cells


@settings(max_examples=examples(150))
@given(cells=some_cells(largest=400, most=12))
def test_many_middling_cells(cells: list[Cell]) -> None:
    found = find_interval(as_laws(cells), TAIL)
    assert found[2]
    check(cells, found)


@settings(max_examples=examples(50))
@given(cells=some_cells(largest=500_000, most=6))
def test_a_few_cells_of_any_size(cells: list[Cell]) -> None:
    found = find_interval(as_laws(cells), TAIL)
    assert found[2]
    check(cells, found)


@pytest.mark.slow
def test_large_tables() -> None:
    """Fifty thousand kinds of cells, and one cell of ten million: near the normal law where that is right."""
    generator = np.random.default_rng(5)
    values = np.unique(generator.integers(1, 2000, (60_000, 2)), axis=0)[:50_000]
    law = CellOutcomes(values, generator.random(values.shape) / 2, generator.integers(1, 9, len(values)))
    found = find_interval([law], TAIL)
    mean, deviation = float(law.cells @ law.mean), math.sqrt(float(law.cells @ law.variance))
    assert found[:2] == pytest.approx((mean - 1.959964 * deviation, mean + 1.959964 * deviation), abs=0.01 * deviation)
    beside = find_interval([law, CellOutcomes(np.array([[10_000_000]]), np.array([[0.9]]), np.array([1]))], TAIL)
    quarter = mean - 0.6744898 * deviation  # a quarter of the tenth of releases without the large cell
    assert beside[0] == pytest.approx(quarter, abs=0.01 * deviation)
    assert beside[1] == pytest.approx(mean + 1e7 + 1.914506 * deviation, abs=0.01 * deviation)


@pytest.mark.parametrize("spared", [0.0, 0.3, 0.7, 0.9, 0.99, 1.0, 1.1, 1.19, 1.21, 1.4, 3.0])
def test_what_is_neglected_counts_against_the_interval(spared: float) -> None:
    """A cell that is fixed at its likeliest value may add to what is outside, on either side: almost 1e-6. The interval
    holds with it, and is the narrowest where as much as 1.21e-6 is left."""
    outside, doubt = TAIL - spared * 1e-6, 0.999e-6
    low: list[Cell] = [([10], [1.0 - outside]), ([5], [1.0 - doubt])]
    high: list[Cell] = [([10], [outside]), ([5], [doubt])]
    for cells in (low, high):
        check(cells, find_interval(as_laws(cells), TAIL))
    if spared > 1.2:
        assert (find_interval(as_laws(low), TAIL)[0], find_interval(as_laws(high), TAIL)[1]) == (15, 0)


@pytest.mark.parametrize("chance", [0.0466, 0.056, 0.5])
@pytest.mark.parametrize("large", [0.0, 0.03, 0.97])
def test_many_equal_cells_are_binomial(chance: float, large: float) -> None:
    """Thirty cells of one person, so few of whom are shown that no frequency may be missed, beside a large cell."""
    low, high, exact = find_interval(
        [
            CellOutcomes(np.array([[1]]), np.array([[chance]]), np.array([30])),
            CellOutcomes(np.array([[10_000]]), np.array([[large]]), np.array([1])),
        ],
        TAIL,
    )
    law = stats.binom(30, chance)

    def below(end: int) -> float:
        return float((1.0 - large) * law.cdf(end - 1) + large * law.cdf(end - 1 - 10_000))

    def above(end: int) -> float:
        return float((1.0 - large) * law.sf(end) + large * law.sf(end - 10_000))

    assert exact
    assert below(low) <= TAIL < below(low + 1)
    assert above(high) <= TAIL < above(high - 1)


@pytest.mark.parametrize("n", [10, 1000, 10**6])
@pytest.mark.parametrize("probability", [1e-5, 0.03, 0.5])
def test_less_than_was_asked_for_is_beyond_the_radius(n: int, probability: float) -> None:
    """A binomial number is a total of independent ones, and scipy has its tail."""
    law = stats.binom(n, probability)
    radius = totals.tail_radius(float(law.var()), 1.0, 1e-7)
    assert law.sf(np.ceil(law.mean() + radius) - 1) <= 1e-7
    assert law.cdf(np.floor(law.mean() - radius)) <= 1e-7
