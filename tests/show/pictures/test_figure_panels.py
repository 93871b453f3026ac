"""Pictures of the figures to decide by: they hold the numbers of the result, and their words do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.risk.figure_lines import FIGURES
from cellrisk.show.pictures import draw_curve, to_png
from tests.near import near
from tests.show.pictures.drawing import EPSILONS, MAGIC, drawn_lines, holds, levels_of, words_of
from tests.show.pictures.test_readme_picture import check_room

GRID = np.geomspace(0.01, 100, 41)


def is_drawn(figure: Any, x: Any, y: Any) -> bool:
    return any((list(xs), list(ys)) == (near(list(x)), near(list(y))) for xs, ys in drawn_lines(figure))


@pytest.mark.parametrize("levels", ["two", "three"])
def test_three_panels_hold_the_numbers(levels: str, request: pytest.FixtureRequest) -> None:
    curve = cr.curve(request.getfixturevalue(levels), epsilon=GRID, measures=FIGURES, certainty=[0.7, 0.9])
    figure = draw_curve(curve)
    (lines,) = curve.figures
    assert lines.caused is not None
    assert lines.ceiling is not None
    assert len(figure.axes) == 3
    assert all(axes.get_xlim() == near((0.01, 100)) for axes in figure.axes)
    for share in (lines.caused.share, lines.caused.exposed_share, lines.ceiling.even_two, lines.ceiling.even):
        assert is_drawn(figure, GRID, share)
    for line in lines.certainty:
        assert is_drawn(figure, GRID, line.right / lines.records)
    for level in (lines.caused.exposed_limits.chance, lines.caused.exposed_limits.raw):
        assert any(level == near(each) for each in levels_of(figure))
    # The areas: the rest of the exposed begins where the caused end.
    rest, own = (each.get_paths()[0].vertices for each in figure.axes[0].collections)
    middle = len(GRID) // 2
    at = rest[np.isclose(rest[:, 0], GRID[middle], rtol=1e-12, atol=0), 1]
    assert (at.min(), at.max()) == near((lines.caused.share[middle], lines.caused.exposed_share[middle]))
    at = own[np.isclose(own[:, 0], GRID[middle], rtol=1e-12, atol=0), 1]
    assert (at.min(), at.max()) == near((0.0, lines.caused.share[middle]))
    words = words_of(figure)
    for said in (
        "exposed anyway",
        "70% sure (raw",
        "90% sure (raw",
        f"raw table {100 * lines.caused.exposed_limits.raw:.1f}%",
    ):
        assert said in words
    assert ("all 3 equally likely" in words) == (levels == "three")
    check_room(figure)


def test_caused_is_named_where_it_is_large(adult: cr.FrequencyTable) -> None:
    figure = draw_curve(cr.curve(adult, epsilon=GRID, measures="caused"))
    words = words_of(figure)
    assert "At epsilon 1, 4.2% are given away because of their own record, of 30.7% exposed" in words
    for said in ("because of their own record", "exposed anyway", "chance 25.0%", "raw table 40.4%", "4.2%", "30.7%"):
        assert said in words
    assert figure.axes[0].get_legend() is None
    check_room(figure)


@pytest.mark.parametrize(
    ("table", "mechanisms", "panels"),
    [("several", ["geometric"], 6), ("two", ["laplace", "geometric", "gaussian-analytic"], 9), ("two", None, 12)],
)
def test_a_column_for_each_mechanism_and_attribute(
    table: str, mechanisms: list[str] | None, panels: int, request: pytest.FixtureRequest
) -> None:
    chosen = mechanisms or ["laplace", "geometric", "gaussian-analytic", "discrete-gaussian"]
    curve = cr.curve(request.getfixturevalue(table), chosen, epsilon=EPSILONS, measures=FIGURES)
    figure = draw_curve(curve)
    assert sum(axes.axison for axes in figure.axes) == panels
    (key,) = figure.legends
    assert [text.get_text() for text in key.get_texts()][:5] == [
        "because of their own record",
        "exposed anyway",
        "chance",
        "raw table",
        "95% sure and right",
    ]
    check_room(figure)


def test_beside_the_papers_measures(two: cr.FrequencyTable) -> None:
    curve = cr.curve(two, epsilon=EPSILONS, measures=["caused", "local", "expected"])
    figure = draw_curve(curve)
    assert len([axes for axes in figure.axes if axes.axison]) == 3
    assert all(holds(figure, line) for line in curve.lines)
    check_room(figure)


@pytest.mark.parametrize("measure", FIGURES)
def test_one_epsilon_and_axes_of_ones_own(two: cr.FrequencyTable, measure: str) -> None:
    from matplotlib.figure import Figure

    words = words_of(draw_curve(cr.curve(two, epsilon=1.0, measures=measure)))
    assert "At epsilon 1" in words
    curve = cr.curve(two, epsilon=GRID, measures=measure)
    axes = Figure(figsize=(5, 3)).subplots()
    assert curve.plot(ax=axes) is axes
    assert axes.lines
    both = cr.curve(two, epsilon=GRID, measures=["caused", "ceiling"])
    with pytest.raises(InvalidInput, match="2 panels"):
        both.plot(ax=axes)


def test_no_risk_at_all_can_be_drawn() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2] * 200, "job": ["a", "b"] * 400})
    table = cr.tabulate(frame, ["age"], "job")
    figure = draw_curve(cr.curve(table, epsilon=[50.0, 100.0], measures=FIGURES))
    assert "nan" not in words_of(figure)
    assert to_png(figure, 50).startswith(MAGIC[".png"])
