"""The admissible set of a function that is not monotone, against a scan that is a thousand times finer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cellrisk.decide.search import find_admissible, scan_upwards
from cellrisk.system.arrays import Floats
from tests.examples import examples
from tests.near import near

LOW, HIGH = 1e-3, 1e2


def bumps(parts: list[tuple[float, float, float]], level: float) -> object:
    """A smooth function of log epsilon: bumps of given height, place and width, less a level."""

    def function(epsilon: Floats) -> Floats:
        log = np.log(epsilon)
        total = sum(height * np.exp(-(((log - place) / width) ** 2)) for height, place, width in parts)
        return np.asarray(total - level + np.zeros_like(log))

    return function


@pytest.mark.slow
@settings(max_examples=examples(60), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    parts=st.lists(st.tuples(st.floats(-1, 1), st.floats(-6.5, 4.5), st.floats(0.6, 3)), min_size=1, max_size=4),
    level=st.floats(-1, 1),
)
def test_against_a_fine_scan(parts: list[tuple[float, float, float]], level: float) -> None:
    function = bumps(parts, level)
    found = find_admissible(function, LOW, HIGH)  # type: ignore[arg-type]
    fine = np.geomspace(LOW, HIGH, 20_001)
    value = function(fine)  # type: ignore[operator]
    inside = np.zeros(len(fine), bool)
    for low, high in found.intervals:
        assert low <= high
        inside |= (fine >= low) & (fine <= high)
        for edge, outward in ((low, -1), (high, 1)):
            assert function(np.array([edge]))[0] <= 0  # type: ignore[operator]
            beyond = edge * (1 + outward * 1e-6)
            if LOW < beyond < HIGH and LOW < edge < HIGH:
                assert function(np.array([beyond]))[0] > -1e-5  # type: ignore[operator]
    clear = np.abs(value) > 1e-4
    assert np.array_equal(inside[clear], (value <= 0)[clear])
    if not found.intervals:
        assert found.least <= value.min() + 1e-6


@pytest.mark.parametrize("level", [0.99, 0.9999, 0.999999])
def test_narrow_dips_and_peaks_are_seen(level: float) -> None:
    for place in np.linspace(-0.1, 0.1, 9):
        peak = find_admissible(bumps([(1.0, place, 0.6)], level), LOW, HIGH)  # type: ignore[arg-type]
        assert len(peak.intervals) == 2
        dip = find_admissible(bumps([(-1.0, place, 0.6)], -level), LOW, HIGH)  # type: ignore[arg-type]
        assert len(dip.intervals) == 1
        half_width = 0.6 * np.sqrt(-np.log(level))
        low, high = dip.intervals[0]
        assert np.log([low, high]) == pytest.approx([place - half_width, place + half_width], abs=1e-6)


@pytest.mark.slow
def test_all_and_nothing() -> None:
    assert find_admissible(lambda epsilon: epsilon * 0 - 1.0, LOW, HIGH).intervals == ((LOW, HIGH),)
    nothing = find_admissible(lambda epsilon: epsilon, LOW, HIGH)
    assert (nothing.intervals, nothing.least, nothing.where) == ((), LOW, LOW)
    assert find_admissible(lambda epsilon: epsilon * 0.0, LOW, HIGH).intervals == ((LOW, HIGH),)


@pytest.mark.parametrize("edge", [0.00103, 0.0037, 0.9, 77.0, 97.0])  # also in the first and the last step
@pytest.mark.parametrize("rising", [True, False])
def test_an_edge_is_found_from_its_safe_side(edge: float, rising: bool) -> None:
    """Within 1e-7 of where the function is zero, and never beyond, however steep it is there."""
    for power in (1, 3):
        for steepness in (1e-3, 1.0, 1e6):
            found = find_admissible(
                lambda epsilon, power=power, steepness=steepness: (
                    (steepness if rising else -steepness) * np.log(epsilon / edge) ** power
                ),
                LOW,
                HIGH,
            )
            (low, high), end = found.intervals[0], int(rising)
            assert len(found.intervals) == 1
            assert (low, high)[1 - end] == (LOW, HIGH)[1 - end]
            inward = np.log(edge / high) if rising else np.log(low / edge)
            assert 0 <= inward < (1.001e-8 if power == 1 and steepness >= 1 else 1.1e-7 if power == 1 else 1e-3)


@pytest.mark.parametrize("high", [HIGH, 97.3, 0.0123, 7.7])
def test_what_is_the_limit_at_an_end_alone_is_admissible(high: float) -> None:
    assert find_admissible(lambda epsilon: epsilon - LOW, LOW, high).intervals == ((LOW, LOW),)
    assert find_admissible(lambda epsilon: high - epsilon, LOW, high).intervals == ((high, high),)


@pytest.mark.parametrize("end", [0, 1])
def test_what_is_the_limit_over_a_stretch_is_admissible(end: int) -> None:
    """No end is on the wrong side."""

    def step(epsilon: np.ndarray) -> np.ndarray:
        return np.where((epsilon > 1.0) if end else (epsilon < 1.0), 1.0, 0.0)

    [interval] = find_admissible(step, LOW, HIGH).intervals
    assert interval[1 - end] == (LOW, HIGH)[1 - end]
    assert all(step(np.array([edge]))[0] <= 0 for edge in interval)


def test_where_nothing_will_do_the_least_is_found() -> None:
    for place in (-6.5, -0.123, 2.34):
        nothing = find_admissible(lambda epsilon, place=place: 0.1 + (np.log(epsilon) - place) ** 2, LOW, HIGH)
        assert nothing.intervals == ()
        assert nothing.least == near(0.1)
        assert np.log(nothing.where) == pytest.approx(place, abs=1e-5)


STEP = np.log(HIGH / LOW) / 128
MIDDLE = np.log(LOW) + 64 * STEP
"""The point in the middle of the scan."""


def test_a_bend_between_two_points_that_are_alike_is_followed() -> None:
    """A dip between two neighbours at which the function is the same, to the last digit."""
    low, high = np.exp(-63.5 * STEP), np.exp(64.5 * STEP)

    def dip(epsilon: Floats) -> Floats:
        from_middle = np.abs(np.log(epsilon)) / STEP
        return 0.1 + np.maximum(from_middle - 0.75, 0.0) - np.maximum(0.4 - from_middle, 0.0)

    (interval,) = find_admissible(dip, low, high).intervals
    assert np.log(interval) / STEP == pytest.approx([-0.3, 0.3], abs=1e-5)


@pytest.mark.parametrize("part", [0.1, 0.4])
@pytest.mark.parametrize("end", [LOW, HIGH])
def test_a_bend_in_the_first_or_the_last_step_is_followed(part: float, end: float) -> None:
    """It goes below zero between the end and its neighbour only."""
    place = np.log(end) + (part if end == LOW else -part) * STEP
    (interval,) = find_admissible(lambda epsilon: (np.log(epsilon) - place) ** 2 - 1e-8, LOW, HIGH).intervals
    assert np.log(interval) - place == pytest.approx([-1e-4, 1e-4], abs=1e-7)


@pytest.mark.parametrize("end", [LOW, HIGH])
def test_what_rises_from_the_limit_at_an_end_is_seen(end: float) -> None:
    """It is the limit at the end of the range itself, above it in the step beside, and below it beyond."""
    back = 0.6 * STEP

    def rise(epsilon: Floats) -> Floats:
        inward = np.abs(np.log(epsilon / end))
        return inward * (back - inward)

    first, second = sorted(find_admissible(rise, LOW, HIGH).intervals, reverse=end == HIGH)
    assert first == (end, end)
    assert np.abs(np.log(np.array(second) / end)).min() == pytest.approx(back, abs=1e-7)


@pytest.mark.parametrize("level", [-10.0, 0.0, 1.0])
@pytest.mark.parametrize("offset", [-0.4, 0.0, 0.3])
def test_the_least_is_found_between_the_points_of_the_scan(level: float, offset: float) -> None:
    lowest = MIDDLE + offset * STEP
    found = find_admissible(lambda epsilon: (np.log(epsilon) - lowest) ** 2 + level, LOW, HIGH)
    assert np.log(found.where) == pytest.approx(lowest, abs=1e-5)
    assert found.least == near(level)


# How an edge is narrowed


def test_an_edge_is_moved_inwards_until_it_is_clear_of_rounding() -> None:
    """A slope of 1.5e-6 is below zero by 1.5e-14 after a hundred-millionth of epsilon, and needs no second step."""
    for slope, inward in ((1.5e-6, 1e-8), (0.6e-6, 3e-8)):
        for sign in (1.0, -1.0):
            ((low, high),) = find_admissible(lambda epsilon: slope * sign * np.log(epsilon / 0.9), LOW, HIGH).intervals  # noqa: B023
            assert abs(np.log((high if sign > 0 else low) / 0.9)) == pytest.approx(inward, rel=0.01, abs=0)


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_a_jump_between_two_points_near_the_limit_is_seen(quarter: int) -> None:
    """Neighbours of which one comes near to zero are divided in four."""
    start, end = np.geomspace(LOW, HIGH, 129)[[80, 81]]
    risen = start * (end / start) ** (quarter / 4)

    def jump(epsilon: Floats) -> Floats:
        return np.where(np.abs(epsilon / risen - 1) < 1e-3, 0.1, np.where(epsilon < end * 1.001, -0.01, 0.2))

    step = float(np.log(HIGH / LOW) / 128)
    assert scan_upwards(jump, LOW, HIGH, step, 1.0, near=0.05).intervals[0][1] < risen


@pytest.mark.parametrize("top", [0.3, 0.5, 0.77])
def test_a_peak_between_two_points_is_followed_to_its_top(top: float) -> None:
    """A smooth peak that is above zero for a hundredth of a step, between points that are not."""
    step = float(np.log(HIGH / LOW) / 128)
    at = LOW * np.exp(step * (60 + top))
    width = 0.005 * step

    def peak(epsilon: Floats) -> Floats:
        return np.asarray(width**2 - np.log(epsilon / at) ** 2)

    kept = scan_upwards(peak, LOW, HIGH, step, 1.0, near=1.0)
    assert kept.intervals[0][1] == pytest.approx(at * np.exp(-width), rel=1e-6, abs=0)
