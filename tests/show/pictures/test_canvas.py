"""Pictures in axes of a reader's own figure: the same numbers, every word within the axes, nothing else touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.risk.measures import MEASURES
from cellrisk.system.results import Result
from tests.show.pictures.drawing import EPSILONS, holds

MECHANISM = cr.Geometric(epsilon=1.0)


@pytest.fixture
def ax() -> Axes:
    axes: Axes = Figure(figsize=(6.5, 3.0)).subplots(1, 2)[0]
    return axes


def shown(axes: Axes) -> str:
    """The words in the axes, those of the key among them."""
    return " ".join([*(text.get_text() for text in axes.texts), *legend_of(axes)])


def legend_of(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


ONE_PANEL: dict[str, Callable[[cr.FrequencyTable], Result]] = {
    "sizes": lambda table: table,
    "curve": lambda table: cr.curve(table, epsilon=EPSILONS, measures="local"),
    "choice": lambda table: cr.choose(table, max_risk=0.3),
    "sequence": lambda table: cr.assess_sequence(table, [cr.Step(MECHANISM, "job")] * 2),
}


def numbers_of(axes: Axes) -> list[list[list[float]]]:
    """What the lines and bars show, but for lines that point to words."""
    lines = [line for line in axes.lines if line.get_transform() == axes.transData or len(line.get_xdata()) == 1]
    bars = [[bar.get_height(), bar.get_width()] for container in axes.containers for bar in container]
    return [[np.ravel(line.get_xdata()).tolist(), np.ravel(line.get_ydata()).tolist()] for line in lines] + [bars]


@pytest.mark.parametrize("kind", ONE_PANEL)
def test_the_numbers_are_those_of_the_figure(kind: str, two: cr.FrequencyTable, ax: Axes) -> None:
    result = ONE_PANEL[kind](two)
    figure = result.plot()
    result.plot(ax=ax)
    ours = numbers_of(figure.axes[0])
    assert any(ours)
    assert numbers_of(ax) == ours


@pytest.mark.parametrize("kind", ONE_PANEL)
def test_every_word_stands_within_the_axes(kind: str, two: cr.FrequencyTable, ax: Axes) -> None:
    ONE_PANEL[kind](two).plot(ax=ax)
    frame = ax.get_window_extent()
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.x0 > frame.x0 - 12, text
        assert box.x1 < frame.x1 + 12, text


def test_several_panels_are_refused_with_their_number_and_a_way_out(several: cr.FrequencyTable, ax: Axes) -> None:
    curve = cr.curve(several, epsilon=EPSILONS, measures=list(MEASURES))
    with pytest.raises(InvalidInput, match=r"got 10 panels; .* one sensitive attribute, one measure"):
        curve.plot(ax=ax)
    with pytest.raises(InvalidInput, match=r"got 2 panels; .*tabulate with one sensitive attribute"):
        several.plot(ax=ax)
    with pytest.raises(InvalidInput, match=r"got 2 panels; .*into a figure of their own"):
        cr.assess(several, MECHANISM).plot(ax=ax)
    assert not ax.has_data()


def test_what_are_no_plain_axes_is_refused(two: cr.FrequencyTable) -> None:
    figure = Figure()
    with pytest.raises(InvalidInput, match=r"got ndarray; .*ax=axes\[0\]"):
        two.plot(ax=figure.subplots(1, 2))
    with pytest.raises(InvalidInput, match="got polar axes"):
        two.plot(ax=figure.add_subplot(projection="polar"))
    removed = figure.add_subplot()
    removed.remove()
    with pytest.raises(InvalidInput, match="removed from their figure"):
        two.plot(ax=removed)


def test_the_map_of_a_choice(three: cr.FrequencyTable, ax: Axes) -> None:
    cr.choose(three, max_risk=0.25, max_tvd=0.5, releases=2, largest_epsilon=3.0).plot(ax=ax)
    assert ax.get_xlabel() == "mean TVD of 2-way marginals (lower: more useful)"
    assert "TVD limit 0.5" in legend_of(ax)
    assert "no noise" in shown(ax)


def test_the_epsilon_that_comes_nearest_is_named_in_narrow_axes(two: cr.FrequencyTable) -> None:
    axes = Figure(figsize=(6.5, 2.8)).subplots(1, 2)[0]
    cr.choose(two, max_risk=0.01).plot(ax=axes)
    assert "nearest:" in shown(axes)


def test_lines_are_named_in_a_key(three: cr.FrequencyTable, ax: Axes) -> None:
    one_form = cr.curve(three, epsilon=EPSILONS, measures="local", forms="tight")
    one_form.plot(ax=ax)
    assert {"tight, by records", "tight, each group alike"} <= set(legend_of(ax))
    assert "no noise" in shown(ax)
    assert "blind" in shown(ax)
    other = ax.figure.axes[1]
    forms = cr.curve(three, epsilon=EPSILONS, measures="local")
    forms.plot(ax=other)
    assert {"tight, by records", "exact, each group alike", "published, by records"} <= set(legend_of(other))
    assert forms.lines
    assert all(holds(other.figure, line) for line in forms.lines)


@pytest.mark.parametrize("kind", ["sizes", "sequence", "curve"])
def test_a_key_hides_nothing(kind: str, two: cr.FrequencyTable, ax: Axes) -> None:
    ONE_PANEL[kind](two).plot(ax=ax)
    legend: Any = ax.get_legend()
    bottom = legend.get_window_extent().y0
    heights = [value for line in ax.lines for value in np.ravel(line.get_ydata())]
    heights += [bar.get_y() + bar.get_height() for container in ax.containers for bar in container]
    assert max(ax.transData.transform([(0.0, float(height)) for height in heights])[:, 1]) < bottom


def test_a_sequence_of_several_attributes_shows_the_bounded_risk(several: cr.FrequencyTable, ax: Axes) -> None:
    steps = [cr.Step(MECHANISM, "job"), cr.Step(MECHANISM, "pay")]
    found = cr.assess_sequence(several, steps)
    assert found.plot(ax=ax) is ax
    assert ax.get_ylabel() == "overall risk (attribute most at risk)"
    assert ax.get_xlabel() == "cumulative epsilon"
    (line,) = (line for line in ax.lines if line.get_label().startswith("by records"))
    assert line.get_ydata().tolist() == [row.overall.max_records for row in found.rows]


def test_words_of_the_reader_stay_as_they_are(ax: Axes) -> None:
    frame = pd.DataFrame({"$a$": list("xyxyxz"), "$b$": list("uvuvvv")})
    ax.set_title(r"$\epsilon = 1$")
    cr.curve(cr.tabulate(frame, ["$a$"], "$b$"), epsilon=EPSILONS, measures="local").plot(ax=ax)
    assert ax.get_title() == r"$\epsilon = 1$"
    assert ax.title.get_parse_math()
    assert ax.get_ylabel() == "risk for $b$"
    assert not ax.yaxis.label.get_parse_math()


def test_axes_of_a_part_of_a_figure(two: cr.FrequencyTable) -> None:
    part = Figure(figsize=(6.5, 3.0)).subfigures(1, 2)[0]
    axes = part.subplots()
    assert cr.choose(two, max_risk=0.3).plot(ax=axes) is axes
