"""Pictures of sizes and choices: they hold the numbers of the result."""

from __future__ import annotations

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.counts.profiles import SIZE_CLASSES, name_sizes
from cellrisk.show.pictures import draw_choice, draw_sizes
from tests.near import near
from tests.show.pictures.drawing import drawn_lines, levels_of, words_of

# Sizes


@pytest.mark.parametrize("name", ["two", "three", "several"])
def test_sizes_count_every_cell_once(name: str, request: pytest.FixtureRequest) -> None:
    table: cr.FrequencyTable = request.getfixturevalue(name)
    figure = draw_sizes(table)
    for axes, attribute in zip(figure.axes, table.attributes, strict=True):
        alike, mixed = ([bar.get_height() for bar in container] for container in axes.containers)
        assert sum(alike) == attribute.profiles.n_homogeneous
        assert sum(mixed) == attribute.profiles.n_heterogeneous
        assert alike[0] + mixed[0] == attribute.profiles.n_unique
    assert f"{table.attributes[0].profiles.n_unique:,} of {table.n_cells:,} groups hold one person" in words_of(figure)


def test_the_picture_of_sizes_has_the_classes_of_the_text(adult: cr.FrequencyTable) -> None:
    (axes,) = draw_sizes(adult).axes
    alike, mixed = ([bar.get_height() for bar in container] for container in axes.containers)
    sizes, cells = adult.attributes[0].profiles.sizes
    for (low, high), one, other in zip(SIZE_CLASSES, alike, mixed, strict=False):
        assert one + other == cells[(sizes >= low) & (sizes <= (high or np.inf))].sum()
    names = [label.get_text().replace("\u2013\n", "-").replace("\nor more", "+") for label in axes.get_xticklabels()]
    assert names == [name_sizes(*each).replace("1000", "1,000") for each in SIZE_CLASSES[: len(names)]]


# Choices


LIMITS = {"max_risk": 0.3, "margin": 0.1, "max_ceiling": 0.7, "max_posterior": "20:60", "max_certain": 0.004}
LIMITS |= {"max_caused": 0.1, "max_person": 0.1}


@pytest.mark.parametrize("name", LIMITS)
def test_choice_draws_what_is_limited(two: cr.FrequencyTable, name: str) -> None:
    choice = cr.choose(two, largest_epsilon=8.0, **{name: LIMITS[name]})
    [limit] = choice.kept_limits
    figure = draw_choice(choice)
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    marks = {line.get_label().split()[0]: (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    for each in choice.alternatives:
        assert marks[each.role] == (each.epsilon, near(each.limited[name]))
    epsilons, values = max(drawn_lines(figure), key=lambda line: len(line[0]))
    some = np.linspace(0, len(epsilons) - 1, 7).astype(int)
    direct = [limit.value(two.attributes, choice.mechanism.with_epsilon(float(epsilons[at]))) for at in some]
    assert values[some] == near(direct)
    levels = levels_of(figure)
    assert limit.maximum in levels
    assert (choice.limits.chance in levels) == (name == "max_risk")
    assert len(levels) == 1 + (name == "max_risk") + (name != "margin")
    if limit.kind.uses_data:
        assert "An epsilon chosen from these data reveals a little about them" in words_of(figure)


def test_choice_shows_the_risk_if_no_share_is_limited(two: cr.FrequencyTable) -> None:
    choice = cr.choose(two, max_people=100.0)
    figure = draw_choice(choice)
    assert levels_of(figure) == [near(choice.limits.raw), near(choice.limits.chance)]
    marks = {line.get_label().split()[0]: line.get_ydata()[0] for line in figure.axes[0].lines}
    assert [marks[each.role] for each in choice.alternatives] == near([each.risk for each in choice.alternatives])


def test_choice_shades_each_admissible_interval(two: cr.FrequencyTable) -> None:
    choice = cr.choose(two, max_risk=0.3)
    (axes,) = draw_choice(choice).axes
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
    assert spans == [near(interval) for interval in choice.admissible]
    inside = [line for line in axes.lines if line.get_label().startswith("bold")]
    assert [(line.get_xdata()[0], line.get_xdata()[-1]) for line in inside] == [
        near(interval) for interval in choice.admissible
    ]


def test_choice_where_nothing_will_do(two: cr.FrequencyTable) -> None:
    choice = cr.choose(two, max_risk=0.01)
    figure = draw_choice(choice)
    assert choice.epsilon is None
    assert "is admissible" in words_of(figure)
    (mark,) = (line for line in figure.axes[0].lines if line.get_label().startswith("nearest"))
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (choice.lowest_epsilon, near(choice.lowest_risk))


@pytest.mark.parametrize(("max_tvd", "found"), [(0.5, True), (0.0, False)])
def test_map_of_risk_and_usefulness(three: cr.FrequencyTable, max_tvd: float, found: bool) -> None:
    choice = cr.choose(three, max_risk=0.25, max_tvd=max_tvd, releases=2, largest_epsilon=3.0, max_epsilon=3.0)
    figure = draw_choice(choice)
    (axes,) = figure.axes
    trade_off = choice.trade_off
    assert trade_off is not None
    assert (choice.epsilon is not None) == found
    tvd, risk = max(drawn_lines(figure), key=lambda line: len(line[0]))
    assert risk[np.isin(tvd, trade_off.tvd)] == near(choice.shown_at(trade_off.epsilon))
    assert 0.25 in levels_of(figure)
    marks = {line.get_label().split()[0]: (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    for each in choice.alternatives:
        assert marks[each.role] == near((each.tvd, each.risk))
    assert not axes.collections  # a limit on epsilon is no level of the risk: no rectangle keeps every limit
    without = cr.choose(three, max_risk=0.25, max_tvd=max_tvd, releases=2, largest_epsilon=3.0)
    (box,) = (collection.get_paths()[0].get_extents() for collection in draw_choice(without).axes[0].collections)
    assert (box.x0, box.y0) == (0, 0)
    assert (box.x1, box.y1) == near((max_tvd, 0.25))
