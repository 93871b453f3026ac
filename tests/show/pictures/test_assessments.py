"""The picture of an assessment: every risk, with chance and the raw table beside it."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.axes import Axes

import cellrisk as cr
from cellrisk.show.pictures import draw_assessment
from cellrisk.system.formatting import percent
from tests.show.pictures.drawing import words_of

MECHANISM = cr.Geometric(epsilon=1.0)


def marks_of(axes: Axes, label: str) -> dict[float, float]:
    """Across, by row."""
    return {line.get_ydata()[0]: line.get_xdata()[0] for line in axes.lines if line.get_label() == label}


def names_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_every_risk_has_a_row_with_its_ends_and_its_number(several: cr.FrequencyTable) -> None:
    assessment = cr.assess(several, MECHANISM)
    figure = draw_assessment(assessment)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["job", "pay"]
    rows = names_of(figure.axes[0])
    words = {"records": "by records", "uniform": "each cell alike", None: "whole table"}
    for axes, name in zip(figure.axes, ("job", "pay"), strict=True):
        risks, chances, raws = (marks_of(axes, label) for label in ("risk", "chance", "raw"))
        numbers = {text.get_position()[1]: text.get_text() for text in axes.texts}
        of_name = [each for each in zip(assessment.risks, assessment.limits, strict=True) if each[0].sensitive == name]
        assert len(risks) == len(chances) == len(raws) == len(numbers) == len(of_name) == 27
        for risk, limits in of_name:
            start = rows.index(risk.measure.replace("_", " "))
            place = rows.index(f"{risk.form}, {words[risk.weights]}", start)
            assert (risks[place], chances[place], raws[place]) == (risk.risk, limits.chance, limits.raw)
            assert numbers[place] == percent(risk.risk)
            assert max(risk.risk, limits.chance, limits.raw) < axes.get_xlim()[1]


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({"measures": "local", "forms": "tight", "weights": "records"}, ["local"]),
        ({"measures": ["local", "expected"], "forms": "exact", "weights": "uniform"}, ["local", "expected"]),
        ({"measures": "local", "weights": "records"}, ["local", "tight", "exact", "published"]),
        ({"measures": "local", "forms": "tight"}, ["local", "by records", "each cell alike"]),
        (
            {"measures": ["local", "marginal_shrinkage"], "forms": "tight", "weights": "records"},
            ["local", "marginal shrinkage"],
        ),
        ({"attack": "plurality"}, ["local", "by records", "each cell alike"]),
    ],
)
def test_rows_say_what_differs(two: cr.FrequencyTable, asked: dict[str, str], rows: list[str]) -> None:
    (axes,) = draw_assessment(cr.assess(two, MECHANISM, **asked)).axes  # type: ignore[arg-type]
    assert names_of(axes) == rows


def test_the_title_is_the_risk_that_is_told_first(two: cr.FrequencyTable) -> None:
    assessment = cr.assess(two, MECHANISM)
    words = words_of(draw_assessment(assessment))
    assert f"At epsilon 1 the risk for job is {percent(assessment.value())} (blind" in words
    assert "In the title: local risk, tight, by records" in words
    assert " ".join(assessment.headline.split()) in words
    alone = cr.assess(two, MECHANISM, measures="expected", forms="exact", weights="uniform")
    words = words_of(draw_assessment(alone))
    assert f"is {percent(alone.risks[0].risk)} (blind {percent(alone.limits[0].chance)}" in words
    assert "expected risk, exact, each cell alike; geometric" in words


def test_the_title_of_several_attributes(several: cr.FrequencyTable) -> None:
    assessment = cr.assess(several, MECHANISM, measures="local")
    job, pay = (percent(assessment.value(sensitive=name)) for name in ("job", "pay"))
    words = words_of(draw_assessment(assessment))
    assert f"Risk at epsilon 1: job {job}; pay {pay}" in words
    guessed = cr.assess(several, cr.AnalyticGaussian(epsilon=1.0, delta=1e-4), attack="plurality")
    words = words_of(draw_assessment(guessed))
    assert "plurality attack" in words
    assert "delta 0.0001" in words


def test_three_attributes_leave_a_place_empty() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2], "a": list("xyxy"), "b": list("xxyy"), "c": list("xyyx")})
    table = cr.tabulate(frame, ["age"], ["a", "b", "c"])
    figure = draw_assessment(cr.assess(table, MECHANISM, measures="local", forms="tight"))
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
    assert names_of(figure.axes[2])[1:] == ["by records", "each cell alike"]
