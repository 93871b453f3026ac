"""The picture of an assessment: every risk, with chance and the raw table beside it."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.axes import Axes

import cellrisk as cr
from cellrisk.show.pictures import draw_assessment
from cellrisk.show.pictures.style import WEIGHT_WORDS
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
    for axes, name in zip(figure.axes, ("job", "pay"), strict=True):
        assert axes.get_xlabel() == f"risk for {name}"
        chances, raws = (marks_of(axes, label) for label in ("blind", "no noise"))
        risks = {weights: marks_of(axes, f"risk, {words}") for weights, words in WEIGHT_WORDS.items()}
        numbers = {text.get_position()[1]: text.get_text() for text in axes.texts}
        of_name = [each for each in zip(assessment.risks, assessment.limits, strict=True) if each[0].sensitive == name]
        assert len(chances) == len(raws) == len(numbers) == len(of_name) == 27 == sum(map(len, risks.values()))
        rows = names_of(figure.axes[0])
        for risk, limits in of_name:
            row = f"{risk.measure.replace('_', ' ')}, {risk.form}"
            (place,) = (at for at in risks[risk.weights] if rows[int(at)] == row)
            assert risks[risk.weights][place] == risk.risk
            assert (chances[place], raws[place]) == (limits.chance, limits.raw)
            assert numbers[place] == percent(risk.risk)
            assert max(risk.risk, limits.chance, limits.raw) < axes.get_xlim()[1]


def test_rows_say_what_differs(two: cr.FrequencyTable) -> None:
    one = {"measures": ["local", "expected"], "forms": "exact", "weights": "uniform"}
    (axes,) = draw_assessment(cr.assess(two, MECHANISM, **one)).axes  # type: ignore[arg-type]
    assert names_of(axes) == ["local", "expected"]
    (axes,) = draw_assessment(cr.assess(two, MECHANISM, measures="local", weights="records")).axes
    assert names_of(axes) == ["local, tight", "local, exact", "local, published"]


def test_the_title_is_the_first_risk(two: cr.FrequencyTable) -> None:
    assessment = cr.assess(two, MECHANISM)
    words = words_of(draw_assessment(assessment))
    assert f"At epsilon 1 the local risk, tight, by records for job is {percent(assessment.value())} (blind" in words
    alone = cr.assess(two, MECHANISM, measures="expected", forms="exact", weights="uniform")
    words = words_of(draw_assessment(alone))
    assert f"is {percent(alone.risks[0].risk)} (blind {percent(alone.limits[0].chance)}" in words
    guessed = cr.assess(two, cr.AnalyticGaussian(epsilon=1.0, delta=1e-4), attack="plurality")
    words = words_of(draw_assessment(guessed))
    assert "plurality attack" in words
    assert "delta 0.0001" in words


@pytest.mark.slow
def test_three_attributes_leave_a_place_empty() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2], "a": list("xyxy"), "b": list("xxyy"), "c": list("xyyx")})
    table = cr.tabulate(frame, ["age"], ["a", "b", "c"])
    figure = draw_assessment(cr.assess(table, MECHANISM, measures="local", forms="tight"))
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
    assert names_of(figure.axes[2]) == ["local, tight"] * 2
