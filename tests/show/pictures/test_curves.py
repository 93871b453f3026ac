"""Pictures of curves: they hold the numbers of the result, and warn of nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.risk.measures import MEASURES
from cellrisk.show.pictures import draw_choice, draw_curve, draw_sizes, save
from cellrisk.system.formatting import CURATOR_NOTE
from tests.show.pictures.drawing import EPSILONS, MAGIC, holds, levels_of, make_table, words_of


def test_curve_holds_the_numbers_on_a_logarithmic_axis(found: cr.RiskCurve, figure: Figure) -> None:
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert axes.get_ylim()[0] == 0
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.001", "0.01", "0.1", "1", "10", "100"]
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels
    assert all(label.endswith("%") for label in labels)
    assert found.lines
    assert all(holds(figure, line) for line in found.lines)


def test_curve_shows_its_two_ends(found: cr.RiskCurve, figure: Figure) -> None:
    leading = found.leading[0]
    for value in (leading.limits.raw, leading.limits.chance):
        assert any(value == pytest.approx(level, abs=1e-12) for level in levels_of(figure))
    words = words_of(figure)
    assert f"no noise {100 * leading.limits.raw:.1f}%" in words
    assert f"blind {100 * leading.limits.chance:.1f}%" in words


def test_curve_says_in_words_what_it_shows(found: cr.RiskCurve, figure: Figure) -> None:
    words = words_of(figure)
    assert found.words.split("\n")[0].split(". ")[0] in words
    assert CURATOR_NOTE in words
    assert f"{100 * found.leading[0].at(1.0):.1f}%" in words


@pytest.mark.parametrize("levels", [2, 3])
def test_every_measure_has_a_panel_for_each_measure(levels: int) -> None:
    curve = cr.curve(make_table(levels), epsilon=EPSILONS, measures=list(MEASURES))
    figure = draw_curve(curve)
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(curve.lines) == 27
    assert [axes.get_title(loc="left") for axes in panels] == [
        f"job, {name}, geometric" for name in ("local", "expected", "shrinkage", "marginal", "marginal shrinkage")
    ]
    assert curve.lines
    assert all(holds(figure, line) for line in curve.lines)


@pytest.mark.parametrize(
    ("mechanisms", "deltas", "panels"),
    [
        (["laplace", "gaussian-analytic"], [1e-5], 1),
        (["laplace", "gaussian", "gaussian-analytic"], [1e-3, 1e-5], 1),
        (["laplace", "gaussian", "gaussian-analytic"], [1e-3, 1e-4, 1e-5], 7),
    ],
)
def test_several_mechanisms_and_deltas(
    two: cr.FrequencyTable, mechanisms: list[str], deltas: list[float], panels: int
) -> None:
    only = {"measures": "local", "forms": "tight", "weights": "records"}
    curve = cr.curve(two, mechanisms, delta=deltas, epsilon=EPSILONS, **only)
    figure = draw_curve(curve)
    assert sum(axes.axison for axes in figure.axes) == panels
    assert curve.lines
    assert all(holds(figure, line) for line in curve.lines)


def test_one_epsilon_is_a_point(two: cr.FrequencyTable) -> None:
    curve = cr.curve(two, epsilon=0.7, measures="local", forms="tight", weights="records")
    figure = draw_curve(curve)
    assert holds(figure, curve.lines[0])
    low, high = figure.axes[0].get_xlim()
    assert low < 0.7 < high
    assert "At epsilon 0.7, job, local, tight, by records: " in words_of(figure)


def test_settings_without_a_common_epsilon_have_a_plain_title(two: cr.FrequencyTable) -> None:
    only = {"measures": "local", "forms": "tight", "weights": "records"}
    one = cr.curve(two, "laplace", epsilon=0.1, **only)
    other = cr.curve(two, "geometric", epsilon=1.0, **only)
    both = dataclasses.replace(one, lines=(*one.lines, *other.lines))
    assert "Risk along epsilon" in words_of(draw_curve(both))


def test_no_risk_at_all_can_be_drawn(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2] * 200, "job": ["a", "b"] * 400})
    table = cr.tabulate(frame, ["age"], "job")
    curve = draw_curve(cr.curve(table, epsilon=[50.0, 100.0], measures="local"))
    low, high = curve.axes[0].get_ylim()
    assert low <= 0.0 < high  # an axis of its own height, though every risk on it is nought
    assert "nan" not in words_of(curve)
    assert save(curve, tmp_path / "curve.png").read_bytes().startswith(MAGIC[".png"])


@pytest.mark.slow
def test_names_of_columns_cannot_break_a_picture(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a$b^{$" * 12: [1, 1, 2, 3], "$\\frac{": [1, 2, 3, 4], "給与": list("xyxx")})
    table = cr.tabulate(frame, ["a$b^{$" * 12, "$\\frac{"], "給与")
    for figure in (
        draw_curve(cr.curve(table, epsilon=[1.0, 2.0], measures="local")),
        draw_sizes(table),
        draw_choice(cr.choose(table, max_risk=0.9)),
    ):
        assert save(figure, tmp_path / "a.png").read_bytes().startswith(MAGIC[".png"])
