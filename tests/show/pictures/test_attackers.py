"""Pictures of what attacks reveal: they hold the numbers of the result, and their words do not overlap."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.risk.curves import FIGURES
from cellrisk.show.pictures import draw_curve, draw_icons, to_svg
from cellrisk.show.wording.attackers import say_icons
from tests.near import near
from tests.show.pictures.drawing import EPSILONS, drawn_lines, holds, words_of
from tests.show.pictures.test_readme_picture import check_room

GRID = np.geomspace(0.01, 100, 41)


def is_drawn(figure: Figure, x: object, y: object) -> bool:
    return any((list(xs), list(ys)) == (near(list(x)), near(list(y))) for xs, ys in drawn_lines(figure))  # type: ignore[call-overload]


def test_the_default_curve_draws_what_attacks_reveal(two: cr.FrequencyTable) -> None:
    curve = cr.curve(two, epsilon=EPSILONS)
    figure = draw_curve(curve)
    rows = curve.trace_attacks("job", curve.settings[0], EPSILONS)
    own = [row.own / row.people for row in rows]
    inferred = [(row.inferred or 0.0) / row.people for row in rows]
    for values in (own, inferred):
        assert is_drawn(figure, EPSILONS, values[:-1])
        assert any(list(y) == near([values[-1]]) for _, y in drawn_lines(figure))
    words = words_of(figure)
    assert "no noise" in words
    assert f"{100 * own[EPSILONS.index(1.0)]:.1f}% are revealed because of their own record" in words
    check_room(figure)


def test_a_panel_for_each_attribute_and_mechanism(several: cr.FrequencyTable, two: cr.FrequencyTable) -> None:
    assert sum(axes.axison for axes in draw_curve(cr.curve(several, epsilon=EPSILONS)).axes) == 2
    figure = draw_curve(cr.curve(two, ["laplace", "geometric", "gaussian-analytic"], epsilon=EPSILONS))
    assert sum(axes.axison for axes in figure.axes) == 3
    check_room(figure)


@pytest.mark.parametrize(("epsilon", "own", "anyway"), [(0.001, 0, 0), (1.0, 7, 73), (100.0, 12, 73)])
def test_icons_count_people_with_and_without_their_record(
    adult: cr.FrequencyTable, epsilon: float, own: int, anyway: int
) -> None:
    table = cr.assess(adult, epsilon=epsilon).attackers["income"][-1]
    figure = draw_icons(table, "income", f"epsilon {epsilon:g}")
    counts = [
        [to_hex(dots.get_facecolors()[0]) for dots in axes.collections for _ in dots.get_offsets()]
        for axes in figure.axes
    ]
    assert [len(colours) for colours in counts] == [100, 100]
    assert [colours.count("#d55e00") for colours in counts] == [0, own]
    assert counts[0].count("#0072b2") == counts[1].count("#0072b2")
    if anyway:
        assert counts[0].count("#0072b2") == anyway
    assert f"{own or 'fewer than 1'} are revealed because of their own record" in words_of(figure)
    assert to_svg(cr.assess(adult, epsilon=epsilon).plot()) == to_svg(figure)
    described = say_icons(table, "income", f"epsilon {epsilon:g}")
    assert f"correctly for {counts[0].count('#0072b2')}. " in described
    assert described.endswith(f"it does so for {own or 'fewer than 1'} more.")
    check_room(figure)


def test_named_figures_hold_the_numbers(three: cr.FrequencyTable) -> None:
    curve = cr.curve(three, epsilon=GRID, measures=FIGURES, certainty=[0.7, 0.9])
    figure = draw_curve(curve)
    assert len(curve.lines) == 4
    assert all(holds(figure, line) for line in curve.lines)


def test_figures_beside_the_papers_measures(two: cr.FrequencyTable) -> None:
    curve = cr.curve(two, epsilon=EPSILONS, measures=["caused", "local", "expected"])
    figure = draw_curve(curve)
    assert len([axes for axes in figure.axes if axes.axison]) == 3
    assert all(holds(figure, line) for line in curve.lines)
    axes = Figure(figsize=(5, 3)).subplots()
    assert cr.curve(two, epsilon=GRID, measures="caused").plot(ax=axes) is axes
    with pytest.raises(InvalidInput, match="3 panels"):
        curve.plot(ax=axes)
