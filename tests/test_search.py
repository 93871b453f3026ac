"""The admissible set of a function that is not monotone, against a scan that is a thousand times finer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cellrisk.decide.search import find_admissible
from cellrisk.system.arrays import Floats
from tests.examples import examples

LOW, HIGH = 1e-3, 1e2


def bumps(parts: list[tuple[float, float, float]], level: float) -> object:
    """A smooth function of log epsilon: bumps of given height, place and width, less a level."""

    def function(epsilon: Floats) -> Floats:
        log = np.log(epsilon)
        total = sum(height * np.exp(-(((log - place) / width) ** 2)) for height, place, width in parts)
        return np.asarray(total - level + np.zeros_like(log))

    return function


@settings(max_examples=examples(60), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
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
            assert 0 <= inward < (1e-7 if power == 1 else 1e-3)


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
        assert nothing.least == pytest.approx(0.1, abs=1e-5)
        assert np.log(nothing.where) == pytest.approx(place, abs=1e-2)
