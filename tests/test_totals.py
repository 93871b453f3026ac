"""The interval of a total of independent numbers, against their exact convolution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cellrisk.risk import totals
from cellrisk.risk.totals import Interval, CellOutcomes, find_interval
from cellrisk.system.arrays import Integers
from tests.examples import examples
from tests.near import near

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


def check(cells: list[Cell], found: Interval, moved: float = 0.0) -> None:
    """At most 2.5% on each side; and with another person on either end left out there would be more."""
    values, chance = convolve(cells)
    assert chance[values < found.low].sum() <= TAIL + 1e-12
    assert chance[values > found.high].sum() <= TAIL + 1e-12
    slack = 2e-6 + 2e-3 * TAIL * (moved > 0)  # what is neglected, and added to both tails
    below, above = np.cumsum(chance), np.cumsum(chance[::-1])
    assert found.low >= values[np.searchsorted(below, TAIL - slack, "right")] - moved
    assert found.high <= values[::-1][np.searchsorted(above, TAIL - slack, "right")] + moved


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


@settings(max_examples=examples(150), deadline=None)
@given(cells=some_cells(largest=400, most=12))
def test_many_middling_cells(cells: list[Cell]) -> None:
    found = find_interval(as_laws(cells), TAIL)
    assert found.exact
    check(cells, found)


@settings(max_examples=examples(150), deadline=None)
@given(cells=some_cells(largest=10_000_000, most=6))
def test_a_few_cells_of_any_size(cells: list[Cell]) -> None:
    found = find_interval(as_laws(cells), TAIL)
    assert found.exact
    check(cells, found)


@settings(max_examples=examples(50), deadline=None)
@given(cells=some_cells(largest=60, most=5), repeated=st.integers(1, 6))
def test_frequencies_that_are_cut_off(cells: list[Cell], repeated: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "MOST_FREQUENCIES", 2)
        patch.setattr(totals, "SMOOTH_FREQUENCIES", 128)
        patch.setattr(totals, "MOST_ATOMS", 4)
        found = find_interval(as_laws(cells * repeated), TAIL)
    values, chance = convolve(cells * repeated)
    window = min(2.0 * totals.tail_radius(float(chance @ values**2), 60.0, totals.OUTSIDE), float(values[-1])) + 4.0
    deviation = 1.1 * totals.BAND / (2.0 * math.pi * 128) * window
    check(cells * repeated, found, moved=6.0 * deviation + 1.0)


def test_work_that_is_too_much_is_done_with_fewer_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    law = CellOutcomes(generator.integers(1, 300, (80, 1)), generator.random((80, 1)), np.ones(80, np.int64))
    exact = find_interval([law], TAIL)
    monkeypatch.setattr(totals, "MOST_WORK", 12_000)
    near = find_interval([law], TAIL)
    assert (exact.exact, near.exact) == (True, False)
    deviation = math.sqrt(float(law.cells @ law.variance))
    assert exact.low - 0.5 * deviation < near.low <= exact.low
    assert exact.high <= near.high < exact.high + 0.5 * deviation


def test_large_tables_take_a_moment() -> None:
    """Fifty thousand kinds of cells, and one cell of ten million: near the normal law where that is right."""
    generator = np.random.default_rng(5)
    values = np.unique(generator.integers(1, 2000, (60_000, 2)), axis=0)[:50_000]
    law = CellOutcomes(values, generator.random(values.shape) / 2, generator.integers(1, 9, len(values)))
    found = find_interval([law], TAIL)
    mean, deviation = float(law.cells @ law.mean), math.sqrt(float(law.cells @ law.variance))
    assert (found.low, found.high) == pytest.approx(
        (mean - 1.959964 * deviation, mean + 1.959964 * deviation), abs=0.01 * deviation
    )
    beside = find_interval([law, CellOutcomes(np.array([[10_000_000]]), np.array([[0.9]]), np.array([1]))], TAIL)
    quarter = mean - 0.6744898 * deviation  # a quarter of the tenth of releases without the large cell
    assert beside.low == pytest.approx(quarter, abs=0.01 * deviation)
    assert beside.high == pytest.approx(mean + 1e7 + 1.914506 * deviation, abs=0.01 * deviation)


def test_what_is_certain_is_added_up() -> None:
    """Cells that are as good as sure of a value, be it none, are not convolved."""
    law = CellOutcomes(
        np.array([[5, 2], [7, 1], [3, 1]]), np.array([[1 - 1e-12, 0], [1e-12, 0], [0.5, 0.2]]), np.array([9, 8, 4])
    )
    fixed, (rest,) = totals._take_certain([law])
    assert fixed == 45
    assert (rest.values.tolist(), rest.chance.tolist(), rest.cells.tolist()) == ([[3, 1]], [[0.5, 0.2]], [4])
    assert totals._take_certain([law, CellOutcomes(law.values[:1], law.chance[:1], law.cells[:1])])[0] == 90


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
        assert (find_interval(as_laws(low), TAIL).low, find_interval(as_laws(high), TAIL).high) == (15, 0)


def test_cells_that_outweigh_all_smaller_ones_are_taken_value_by_value() -> None:
    """Four of 10,000 beside a hundred of 3; but none of a hundred of 50, beside which one of 60 is nothing special."""
    small = CellOutcomes(np.array([[3]]), np.array([[0.5]]), np.array([100]))
    atoms, rest = totals._take_large([small, CellOutcomes(np.array([[10_000]]), np.array([[0.5]]), np.array([4]))])
    assert atoms.values.tolist() == [0, 10_000, 20_000, 30_000, 40_000]
    assert atoms.chance == pytest.approx([1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16], rel=1e-12, abs=0)
    assert [(law.values.tolist(), law.cells.tolist()) for law in rest] == [([[3]], [100]), ([], [])]
    laws = [CellOutcomes(np.array([[size]]), np.array([[0.5]]), np.array([cells])) for size, cells in ((50, 100), (60, 1))]
    atoms, rest = totals._take_large(laws)
    assert (atoms.values.tolist(), atoms.chance.tolist()) == ([0], [1.0])
    assert sum(int(law.cells.sum()) for law in rest) == 101


@pytest.mark.parametrize(
    "cells",
    [
        [([7, 3], [0.4, 0.3]), ([11], [0.5]), ([2], [0.6])] * 4,
        [([1], [0.5])],
        [([40], [0.5]), ([1], [0.3])],
        [([1000, 1], [0.001, 0.1])] * 900 + [([1], [0.5])] * 20,  # nearly all is below 10,000, far below the largest
    ],
)
def test_the_distribution_of_a_total(cells: list[Cell]) -> None:
    """At every end, but for what is left out on either side of the window."""
    bulk = totals._Bulk.of(as_laws(cells))
    assert bulk.exact
    if len(cells) > 100:
        rare = stats.binom(900, 0.001)
        ends = 1000 * np.arange(-1, 15) + 500  # so far from multiples of 1,000 that what is 1 does not matter
        below, above = rare.cdf(ends // 1000), rare.sf(ends // 1000)
    else:
        values, chance = convolve(cells)
        ends = np.arange(-3, values[-1] + 4)
        below = np.array([chance[values <= end].sum() for end in ends])
        above = np.array([chance[values >= end].sum() for end in ends])
    slack = 2.0 * totals.OUTSIDE + 1e-9
    assert bulk.at_most(ends) == pytest.approx(below, abs=slack)
    assert bulk.at_least(ends) == pytest.approx(above, abs=slack)


def test_what_is_most_uncertain_comes_first() -> None:
    """In turns the cells that are shown about half of the time, and those that move the total most."""
    shown = np.array([0.5, 0.999, 0.001, 0.4, 0.6, 0.98])
    laws = [
        CellOutcomes(np.array([[1], [500], [2]]), shown[:3, None], np.array([1, 1, 30])),
        CellOutcomes(np.array([[3, 1], [1, 2], [900, 5]]), np.stack([shown[3:], np.zeros(3)], axis=1), np.array([4, 20, 1])),
    ]
    ordered = totals._most_varied_first(laws)
    sizes = [law.values[:, 0].tolist() for law in ordered if len(law.cells)]
    assert sizes == [[1], [900], [3], [500], [1], [2]]
    assert ordered[0].cells.tolist() == [20]


def test_a_smoothed_total_does_not_run_over_the_ends_of_its_window() -> None:
    """Half of it is at either end; what a normal law adds beyond must not come in again at the other."""
    bulk = totals._Bulk._smoothly(as_laws([([50], [0.5])]), 0, 50, 128, math.inf)
    assert bulk is not None
    ends = np.arange(-20, 71)
    most, least = (np.minimum(1.0, 0.5 * (ends >= end) + 0.5 * (ends >= end + 50)) for end in (-6 * bulk.deviation, 0))
    assert (bulk.at_most(ends) <= most + 1e-3).all()
    assert (bulk.at_most(ends) >= least - 1e-9).all()
    assert (bulk.at_least(50 - ends) <= most + 1e-3).all()
    assert (bulk.at_least(50 - ends) >= least - 1e-9).all()


def test_bounds_of_a_smoothed_total_are_bounds() -> None:
    """At every end: not below the true probability, and not above that of an end six deviations further out."""
    cells: list[Cell] = [([7, 3], [0.4, 0.3]), ([11], [0.5]), ([2], [0.6])] * 4
    bulk = totals._Bulk._smoothly(as_laws(cells), 0, 84, 256, math.inf)
    assert bulk is not None
    values, chance = convolve(cells)
    ends = np.arange(-3, 90)
    below = np.array([chance[values <= end].sum() for end in ends])
    above = np.array([chance[values >= end].sum() for end in ends])
    assert (bulk.at_most(ends) >= below - 1e-9).all()
    assert (bulk.at_least(ends) >= above - 1e-9).all()
    assert 0 < bulk.deviation < 1  # so that six deviations are five whole numbers at most
    assert (bulk.at_most(ends)[:-6] <= below[6:] + 1e-2).all()
    assert (bulk.at_least(ends)[6:] <= above[:-6] + 1e-2).all()
    assert bulk.at_most(ends) == pytest.approx(below, abs=0.08)
    assert bulk.at_least(ends) == pytest.approx(above, abs=0.08)


def test_waves_are_exponentials() -> None:
    values, turn = np.array([1, 7, 104_087]), 2.0 * math.pi / 1_000_003
    for kept in (np.arange(3), np.arange(9_000), np.arange(0, 400_000, 7)):
        turns = values[:, None] * kept % 1_000_003  # whole numbers, so that nothing is rounded
        angle = 2.0 * math.pi * turns / 1_000_003
        found = totals._waves(values, turn, kept)
        assert np.abs(found - (np.cos(angle) + 1j * np.sin(angle))).max() < 1e-7 * turn * 104_087


def watch_work(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Of every array of cosines and sines that will be computed, for how many kinds of cells and frequencies it is."""
    seen: list[tuple[int, int]] = []

    def watched(values: Integers, turn: float, kept: Integers) -> np.ndarray:
        seen.append((len(values), len(kept)))
        return waves(values, turn, kept)

    waves = totals._waves
    monkeypatch.setattr(totals, "_waves", watched)
    return seen


def test_what_would_take_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some frequencies tell what all would take: attempts that are given up cost next to nothing."""
    seen = watch_work(monkeypatch)
    monkeypatch.setattr(totals, "MOST_WORK", 200_000)
    generator = np.random.default_rng(5)
    law = CellOutcomes(generator.integers(1, 40_000, (80, 1)), generator.random((80, 1)) / 50, np.ones(80, np.int64))
    assert not find_interval([law], TAIL).exact
    assert sum(map(math.prod, seen)) < 1.1 * totals.MOST_WORK
    seen.clear()
    monkeypatch.setattr(totals, "MOST_WORK", 2_000_000)  # kinds of cells that are taken together count one by one too
    many = CellOutcomes(generator.integers(1, 200, (3_000, 1)), np.full((3_000, 1), 1e-3), np.ones(3_000, np.int64))
    assert not find_interval([many], TAIL).exact
    assert sum(map(math.prod, seen)) < 1.1 * totals.MOST_WORK


@pytest.mark.parametrize("frequencies", [6_400, 6_401])
def test_one_frequency_in_64_tells_what_all_would_take(frequencies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transform that takes just as much work as it may is done; with less, it is not even begun."""
    seen = watch_work(monkeypatch)
    law = CellOutcomes(np.array([[1, 3], [2, 3]]), np.full((2, 2), 0.1), np.ones(2, np.int64))
    turn = math.pi / frequencies
    assert totals._transform([law], turn, frequencies, 4.0 * frequencies) is not None
    tried = -(-frequencies // 64)
    assert seen == 4 * [(1, tried)] + 4 * [(1, frequencies)]
    seen.clear()
    assert totals._transform([law], turn, frequencies, 4.0 * frequencies - 1.0) is None
    assert max(tried for _, tried in seen) < frequencies / 63


def test_no_more_work_is_done_than_was_allowed() -> None:
    """Frequencies at which nothing is left of the first kind of cells take no work at the second."""
    ordered = [CellOutcomes(np.array([[size]]), np.array([[0.5]]), np.array([cells])) for size, cells in ((1, 200), (5, 1))]
    turn, every = math.pi / 81.0, np.arange(79)
    first = np.cos(0.5 * turn * every) ** 200
    left = first > 2.0**-52  # rounding
    assert 20 < left.sum() < 70
    found = totals._multiply_out(ordered, turn, every, 79 + int(left.sum()), 0.0)
    assert found is not None
    kept, product = found
    assert kept.tolist() == np.flatnonzero(left).tolist()
    assert np.abs(product) == near((first * np.abs(np.cos(2.5 * turn * every)))[left])
    assert totals._multiply_out(ordered, turn, every, 78 + int(left.sum()), 0.0) is None


def test_few_frequencies_are_taken_whatever_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least 64 of them: as many are enough for a total below 126, which is exact; else ends move outwards."""
    monkeypatch.setattr(totals, "MOST_WORK", 0.0)
    seen = watch_work(monkeypatch)
    for largest, exact in ((125, True), (126, False)):
        assert totals._Bulk.of(as_laws([([largest], [0.3])])).exact is exact
        assert seen[-1] == (1, 64)


@pytest.mark.parametrize(("largest", "exact"), [(600_000, True), (1_100_000, False)])
def test_a_total_is_exact_up_to_half_a_million_frequencies(largest: int, exact: bool) -> None:
    bulk = totals._Bulk.of(as_laws([([largest], [0.3])]))
    assert bulk.exact is exact
    assert bulk.at_most(np.array([largest // 2])) == pytest.approx([0.7], rel=2e-3, abs=0)


def test_a_total_with_just_as_many_frequencies_as_may_be_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A total of 127 at most takes 128 values: from none to half of a full turn, there are 65 frequencies."""
    for most, exact in ((65, True), (64, False)):
        monkeypatch.setattr(totals, "MOST_FREQUENCIES", most)
        assert totals._Bulk.of(as_laws([([127], [0.3])])).exact is exact


def test_a_smoothed_total_is_smoothed_by_about_a_thousandth_of_its_deviation() -> None:
    """And is told at points a fifth of that apart."""
    law = CellOutcomes(np.array([[10_000]]), np.array([[0.5]]), np.array([10_000]))
    bulk = totals._Bulk.of([law])
    assert 0.6e-3 < bulk.deviation / (10_000 * 50) < 1.2e-3
    assert 0.19 < bulk.step / bulk.deviation < 0.22


def test_the_frequencies_of_a_large_table_are_as_many_as_thirty_million_cosines_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three hundred for a hundred thousand kinds of cells, where all matter at every frequency."""
    tried = []

    def multiply(laws: list[CellOutcomes], turn: float, kept: Integers, work: float, deviation: float) -> object:
        tried.append(len(kept))
        return (kept, np.ones(len(kept))) if len(kept) * 100_000 <= work else None

    monkeypatch.setattr(totals, "_multiply_out", multiply)
    law = CellOutcomes(np.arange(1, 100_001)[:, None], np.full((100_000, 1), 1e-6), np.ones(100_000, np.int64))
    assert not totals._Bulk.of([law]).exact
    assert tried[-2:] == [5, 300]
    assert max(tried[:-2]) < 10_000


@pytest.mark.parametrize(("frequencies", "pieces"), [(1 << 14, [4, 4, 2]), (21_000, [3, 3, 3, 1]), (70_000, [1] * 10)])
def test_arrays_of_waves_hold_a_megabyte(frequencies: int, pieces: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than 65,536 complex numbers, or one kind of cells."""
    seen = watch_work(monkeypatch)
    law = CellOutcomes(np.arange(1, 11)[:, None], np.full((10, 1), 0.1), np.ones(10, np.int64))
    totals._multiply_out([law], 1e-5, np.arange(frequencies), math.inf, 0.0)
    assert [kinds for kinds, _ in seen] == pieces


@pytest.mark.parametrize("best", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_the_best_of_several_bounds_is_taken(best: float) -> None:
    """Where a distribution grows like exp(a x), an end that moves by c deviations is bounded by exp(a c)/ndtr(c): that
    is least where a is the normal density at c over ndtr(c)."""
    slope = stats.norm.pdf(best) / stats.norm.cdf(best)
    below = np.exp(slope * (np.arange(0, 81) / 2.0 - 40.0))
    bulk = totals._Bulk(-20.0, 0.5, below, below[::-1], 1.0)
    bound = math.exp(slope * best) / stats.norm.cdf(best) * np.exp(slope * np.array([-23.0, -18.0]))
    assert bulk.at_most(np.array([-3, 2])) == near(bound)
    assert bulk.at_least(np.array([3, -2])) == near(bound)


@pytest.mark.parametrize("largest", range(1, 13))
def test_the_window_of_a_small_total_holds_both_its_ends(largest: int) -> None:
    bulk = totals._Bulk.of(as_laws([([largest], [0.3])]))
    ends = np.arange(-1, largest + 2)
    assert bulk.at_most(ends) == near(np.select([ends < 0, ends < largest], [0.0, 0.7], 1.0))
    assert bulk.at_least(ends) == near(np.select([ends <= 0, ends <= largest], [1.0, 0.3], 0.0))


def test_the_window_is_where_bennett_leaves_a_ten_millionth_outside() -> None:
    """One person further it leaves less than 1e-7, one person nearer more; and it is as far to both sides."""
    bulk = totals._Bulk.of(as_laws([([3], [0.4])] * 5_000))
    mean, ratio = 3 * 0.4 * 5_000, 0.24 * 5_000
    left = [
        math.exp(-ratio * ((1 + u) * math.log1p(u) - u))
        for u in ((mean - bulk.start + further) / (3 * ratio) for further in (1, -1))
    ]
    assert left[0] < 1e-7 < left[1]
    assert 2.0 * (mean - bulk.start) - 2.0 < len(bulk.below) < 2.1 * (mean - bulk.start)


@pytest.mark.parametrize("chance", [0.75, 0.25])
def test_ends_are_where_just_as_much_is_outside_as_may_be(chance: float) -> None:
    """A quarter of the total's probability is on one side of its other value, and a quarter is what may be there."""
    tail = 0.25 + 1.201e-6  # with what is set aside
    while tail - 1.201 * 1e-6 < 0.25:
        tail = np.nextafter(tail, 1.0)
    assert tail - 1.201 * 1e-6 == pytest.approx(0.25, rel=0, abs=0)
    end = 10 if chance == 0.75 else 0
    cell = CellOutcomes(np.array([[10]]), np.array([[chance]]), np.array([1]))
    assert find_interval([cell], tail) == Interval(end, end, exact=True)


def test_doubts_about_all_cells_of_a_kind_add_up() -> None:
    """A thousand cells of which each is another with a probability of 2e-9 are not certain; 400 of them are."""
    for cells, fixed in ((1_000, 0), (400, 2_000)):
        law = CellOutcomes(np.array([[5]]), np.array([[1.0 - 2e-9]]), np.array([cells]))
        found, (rest,) = totals._take_certain([law])
        assert (found, rest.cells.sum()) == (fixed, 0 if fixed else cells)


def test_cells_are_certain_where_all_doubts_are_just_as_large_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a thousandth, and three quarters; what comes next is more than the rest of it."""
    monkeypatch.setattr(totals, "NEGLECTED", 2.0**-10)
    doubts = np.array([[3.0], [1.0], [3.001]]) * 2.0**-12
    for chance, fixed in ((1.0 - doubts, 13), (doubts, 0)):
        found, (rest,) = totals._take_certain([CellOutcomes(np.array([[6], [7], [8]]), chance, np.ones(3, np.int64))])
        assert (found, rest.values.tolist()) == (fixed, [[8]])


def test_equal_values_of_a_cell_are_one() -> None:
    merged = totals._merge_values(CellOutcomes(np.array([[2, 2, 2]]), np.array([[0.1, 0.2, 0.3]]), np.array([9])))
    assert (merged.values.tolist(), merged.cells.tolist()) == ([[2]], [9])
    assert merged.chance == near(np.array([[0.6]]))


def test_no_more_than_1024_values_are_convolved_value_by_value() -> None:
    """Equal cells, so rare that each outweighs all others: with each there is one value more."""
    law = CellOutcomes(np.array([[7]]), np.array([[1e-4]]), np.array([1_100]))
    atoms, (rest,) = totals._take_large([law])
    assert atoms.values.tolist() == [7 * number for number in range(1_024)]
    assert atoms.chance[:4] == near(stats.binom(1_023, 1e-4).pmf(range(4)))
    assert rest.cells.tolist() == [77]


def test_a_cell_as_large_as_the_deviation_of_all_others_is_not_taken_value_by_value() -> None:
    """Sixteen cells of one person, shown or not, have a variance of 4, the square of 2; fifteen have less."""
    for cells, values in ((16, [0]), (15, [0, 2])):
        laws = as_laws([([2], [0.5])] + [([1], [0.5])] * cells)
        assert totals._take_large(laws)[0].values.tolist() == values


def test_256_kinds_of_cells_at_most_are_taken_one_by_one() -> None:
    """The 128 that are least certain and the 128 that are largest, in turns, and then all others at once."""
    size, shown = np.arange(1, 401), np.linspace(0.5, 0.001, 400)
    law = CellOutcomes((1_000 * size**2)[:, None], shown[:, None], np.ones(400, np.int64))
    *alone, others = totals._most_varied_first([law])
    assert len(alone) == 256
    assert [int(each.values[0, 0]) // 1_000 for each in alone[::2]] == [number**2 for number in range(1, 129)]
    assert len(others.cells) == 144


@pytest.mark.parametrize("chance", [0.0466, 0.056, 0.5])
@pytest.mark.parametrize("large", [0.0, 0.03, 0.97])
def test_many_equal_cells_are_binomial(chance: float, large: float) -> None:
    """Thirty cells of one person, so few of whom are shown that no frequency may be missed, beside a large cell."""
    found = find_interval(
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

    assert found.exact
    assert below(found.low) <= TAIL < below(found.low + 1)
    assert above(found.high) <= TAIL < above(found.high - 1)


def test_ends_of_a_wide_total_are_exact_and_move_little_where_it_is_smoothed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred cells of 10,000 people, shown or not: the ends are multiples of that, and the window is 667,000 wide.

    With 16,384 frequencies, the normal law has a deviation of 7.5/(2 pi 16,384) of that. Just before a multiple, twice
    that suffices: P(total < 400,000) is 1.76%, and 1.76%/ndtr(2) with what reaches over from there is below 2.5%.
    """
    law = CellOutcomes(np.array([[10_000]]), np.array([[0.5]]), np.array([100]))
    lowest, highest = 10_000 * stats.binom(100, 0.5).ppf(TAIL), 10_000 * stats.binom(100, 0.5).isf(TAIL)
    assert find_interval([law], TAIL) == Interval(int(lowest), int(highest), exact=True)
    monkeypatch.setattr(totals, "MOST_FREQUENCIES", 2)
    smoothed = find_interval([law], TAIL)
    moved = 2.0 * 7.5 / (2.0 * math.pi * 16_384) * 667_000
    assert not smoothed.exact
    assert lowest - moved <= smoothed.low < lowest
    assert highest < smoothed.high <= highest + moved


@pytest.mark.parametrize(("spread", "largest"), [(1.0, 1.0), (1e6, 3.0), (0.5, 1e4), (9.0, 0.2)])
def test_the_reach_is_where_bennett_leaves_what_is_asked_for(spread: float, largest: float) -> None:
    reach = totals.tail_radius(spread, largest, 1e-7)
    u = reach * largest / spread
    assert -spread / largest**2 * ((1 + u) * math.log1p(u) - u) == near(math.log(1e-7))
    assert totals.tail_radius(0.0, largest, 1e-7) == 0


@pytest.mark.parametrize("spread", [1e10, 1e12, 1e14, 1e16, 1e18])
def test_the_reach_of_very_many_cells_is_that_of_a_normal_law(spread: float) -> None:
    """Bennett's inequality is then that of a normal law, to one in ten thousand."""
    normal = math.sqrt(-2.0 * math.log(1e-7) * spread)
    assert normal * (1.0 - 1e-12) <= totals.tail_radius(spread, 1.0, 1e-7) < normal * (1.0 + 1e-4)
