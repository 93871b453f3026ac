"""`choose` overlooks no bend: against dense scans of random tables, in ranges that begin or end beside a bend."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from cellrisk.decide.search import find_admissible
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.risk.measures import Local
from cellrisk.risk.sweep import MeasuredRisk
from tests.examples import examples
from tests.tables import from_counts

LOW, HIGH = 1e-3, 1e2
Intervals = tuple[tuple[float, float], ...]


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
    check(choice.measured, option.mechanism, choice.admissible, limit, option.searched, points)


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
    choice = cr.choose(from_counts(cells), "laplace", max_risk=limit, **asked)
    assert choice.admissible
    check_choice(choice, limit, 4001)


counts = st.one_of(st.just(0), st.integers(1, 4), st.integers(1, 60))


@settings(max_examples=examples(20))
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
    attribute: Any = SimpleNamespace(profiles=Profiles.from_cells(cells, 3))
    measured = MeasuredRisk((attribute,), (Local(),), form, "uniform")
    setting = make_mechanism(mechanism, epsilon=1e-3, delta=delta or 0.0)
    grid = np.geomspace(LOW, HIGH, 200 if delta is None else 60)
    risk = measured.at(setting, grid)[0]
    slope = np.diff(risk)
    bends = np.flatnonzero(slope[1:] * slope[:-1] < 0) + 1
    place = int(bends[near_a_bend % len(bends)]) if len(bends) else data.draw(st.integers(5, 55))
    limit = float(np.clip(risk[place] + beyond, 0.0, 1.0))
    least = float(grid[max(place - data.draw(st.integers(1, 20)), 0)])
    found = find_admissible(lambda epsilons: measured.at(setting, epsilons)[0] - limit, least, HIGH)
    check(measured, setting, found.intervals, limit, (least, HIGH), 1001 if delta is None else 101)
    if not found.intervals:
        assert found.least <= risk[place] - limit + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["plurality", "proportional"])
def test_guesses(attack: str) -> None:
    table = from_counts([[5, 3, 0], [2, 2, 1], [0, 9, 0]])
    (line,) = cr.curve(table, attack=attack, weights="records", epsilon=np.geomspace(0.05, 20, 20)).lines
    limit = float(np.median(line.risk))
    choice = cr.choose(table, attack=attack, max_risk=limit, least_epsilon=0.05, largest_epsilon=20.0)
    check_choice(choice, limit, 60)


def test_several_limits_at_once() -> None:
    """A limit that is kept from an epsilon on, and one that is kept up to another: what is between them."""
    table = from_counts([[6, 5, 0]] * 3 + [[1, 0, 0]] * 4)
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
