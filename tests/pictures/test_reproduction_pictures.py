"""The paper's figures and the README's picture: their numbers, their axes, their words, and room between the words."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import runpy
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.paper.box_pictures import draw_boxes, draw_cell_sizes, draw_sheet
from cellrisk.paper.panels import Box, Boxes, Panel, Sheet
from cellrisk.paper.sheet_pictures import shade
from cellrisk.risk.curves import Line
from cellrisk.show.pictures import save
from tests.near import near

REPOSITORY = Path(__file__).resolve().parents[2]
EPSILONS = np.geomspace(1e-3, 1e2, 21)
DELTAS = [0.001, 0.01, 0.1]
WEIGHTS = {"uniform": "each cell alike", "records": "by records"}
NAMES = {"laplace": "Laplace", "gaussian": "Gaussian, classical", "gaussian-pdp": "Gaussian, probabilistic"}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    random = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "age": np.minimum(random.geometric(0.2, 300), 12),
            "town": random.choice(list("abcd"), 300, p=[0.6, 0.2, 0.15, 0.05]),
            "job": random.choice(list("xyz"), 300, p=[0.7, 0.2, 0.1]),
        }
    )
    return cr.tabulate(frame, ["age", "town"], "job")


@pytest.fixture(scope="module")
def lines(table: cr.FrequencyTable) -> tuple[Line, ...]:
    paper = cr.curve(table, list(NAMES), epsilon=EPSILONS, delta=DELTAS, measures="local", forms="published")
    exact = cr.curve(table, "laplace", epsilon=EPSILONS, measures="local", forms="exact")
    tight = cr.curve(table, "laplace", epsilon=EPSILONS, forms="tight")
    geometric = cr.curve(table, "geometric", epsilon=EPSILONS, measures="local", forms="tight")
    guesses = cr.curve(table, "laplace", epsilon=EPSILONS, attack="plurality")
    return tuple(line for curve in (paper, exact, tight, geometric, guesses) for line in curve.lines)


def pick(lines: tuple[Line, ...], **words: Any) -> tuple[Line, ...]:
    def fits(line: Line) -> bool:
        own = {**vars(line), "mechanism": line.setting.name, "delta": line.setting.delta}
        return all(own[name] in (word if isinstance(word, list) else [word]) for name, word in words.items())

    return tuple(line for line in lines if fits(line))


def make_panel(title: str, lines: tuple[Line, ...], letter: str = "", reading: str = "as published") -> Panel:
    return Panel(letter, "Adult", reading, title, lines)


@pytest.fixture(scope="module")
def paper(lines: tuple[Line, ...]) -> Sheet:
    """Six panels as in the paper: three mechanisms, two weightings, a line for each delta."""
    kinds = [(name, weights) for weights in WEIGHTS for name in NAMES]
    panels = tuple(
        make_panel(
            f"{NAMES[name]}, {WEIGHTS[weights]}",
            pick(lines, mechanism=name, weights=weights, form="published", measure="local", attack="homogeneity"),
            letter,
        )
        for letter, (name, weights) in zip("abcdef", kinds, strict=True)
    )
    return Sheet("figure", "Figure 3 (a)-(f): a made table", "Six panels. Each has the same axes.", panels)


@pytest.fixture(scope="module")
def sheets(lines: tuple[Line, ...]) -> dict[str, Sheet]:
    """Sheets of the kinds beyond the paper."""
    laplace = pick(lines, mechanism="laplace", weights=["records", None])
    forms = make_panel("local", pick(laplace, measure="local", attack="homogeneity"))
    tight = pick(laplace, form="tight")
    measures = make_panel("tight", pick(tight, attack="homogeneity"))
    attacks = make_panel("by records", pick(tight, measure="local"))
    noises = make_panel("local", pick(lines, measure="local", form="tight", weights="records", attack="homogeneity"))
    both = make_panel("local", pick(lines, measure="local", mechanism="laplace", attack="homogeneity"))
    deltas = make_panel("by delta", pick(lines, mechanism="gaussian-pdp", weights=["uniform", "records"]))
    again = make_panel("local", forms.lines, reading="as defined")
    return {
        "forms": Sheet("forms", "Forms", "", (forms, again)),
        "measures": Sheet("measures", "Measures", "", (measures,)),
        "attacks": Sheet("attacks", "Attacks", "", (attacks,) * 4),
        "noises": Sheet("noises", "Noises", "", (noises,) * 2),
        "both": Sheet("both", "Forms and weights", "", (both,)),
        "deltas": Sheet("deltas", "Deltas and weights", "", (deltas,) * 5),
    }


@pytest.fixture(scope="module")
def figure(paper: Sheet) -> Figure:
    return draw_sheet(paper)


@pytest.fixture(scope="module")
def boxes() -> Boxes:
    random = np.random.default_rng(4)
    whole, classical = [10.0**power for power in range(-3, 3)], [1e-3, 1e-2, 0.1, math.nextafter(1.0, 0.0)]
    settings = [("laplace", 0.0, epsilon) for epsilon in whole]
    for name, epsilons in (("gaussian", classical), ("gaussian-pdp", whole)):
        settings += [(name, delta, epsilon) for delta in DELTAS for epsilon in epsilons]
    ways = {
        way: tuple(
            Box(*setting, tuple(random.uniform(0.5, 1.0, many) * 0.1 * way / (1 + setting[2]))) for setting in settings
        )
        for way, many in ((1, 6), (2, 15), (3, 20))
    }
    return Boxes("boxes", "Distances of a made table", "Made numbers.", "observed", 10, 1, ways)


@pytest.fixture(scope="module")
def box_figure(boxes: Boxes) -> Figure:
    return draw_boxes(boxes)


def panels_of(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.axison]


def curves_of(axes: Any) -> list[Any]:
    """The lines of a panel without those that mark an end."""
    return [line for line in axes.lines if not line.get_label().startswith("_")]


def texts_of(figure: Figure) -> Iterator[Any]:
    """Every text that is seen."""
    yield from figure.texts
    for legend in figure.legends:
        yield from legend.get_texts()
    for axes in panels_of(figure):
        yield from (axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts)
        shown = [(axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())]
        for axis, (low, high) in shown:
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            yield from (tick.label1 for tick in ticks if tick.label1.get_visible())


def words_of(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text() for text in texts_of(figure)).split())


def check_room(figure: Figure) -> None:
    """No text overlaps another or leaves the figure."""
    figure.draw_without_rendering()
    edges = figure.bbox
    found = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure) if text.get_text()]
    for words, box in found:
        inside = box.x0 >= edges.x0 and box.x1 <= edges.x1 and box.y0 >= edges.y0 and box.y1 <= edges.y1
        assert inside, words
    for (words, box), (others, other) in itertools.combinations(found, 2):
        across = min(box.x1, other.x1) - max(box.x0, other.x0)
        up = min(box.y1, other.y1) - max(box.y0, other.y0)
        assert across <= 0.5 or up <= 0.5, (words, others)


# Sheets


def test_panels_hold_the_lines_of_the_sheet(paper: Sheet, figure: Figure) -> None:
    assert len(figure.axes) == 6
    for axes, panel in zip(figure.axes, paper.panels, strict=True):
        drawn = curves_of(axes)
        assert len(drawn) == len(panel.lines)
        for artist, line in zip(drawn, panel.lines, strict=True):
            assert np.array_equal(artist.get_xdata(), line.epsilon)
            assert np.array_equal(artist.get_ydata(), line.risk)


def test_panels_are_lettered_and_named(paper: Sheet, figure: Figure) -> None:
    titles = [" ".join(axes.get_title(loc="left").split()) for axes in figure.axes]
    assert titles == [f"({panel.letter}) {panel.title}" for panel in paper.panels]
    words = words_of(figure)
    assert paper.title in words
    assert "homogeneity attack, local risk, published" in words
    assert paper.caption not in words  # the page around the picture has it


def test_classical_panels_have_the_axes_of_the_others(paper: Sheet, figure: Figure) -> None:
    assert {axes.get_xlim() for axes in figure.axes} == {(1e-3, 1e2)}
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert figure.axes[0].get_ylim()[0] == 0
    assert {axes.get_xscale() for axes in figure.axes} == {"log"}
    classical = [axes for axes, panel in zip(figure.axes, paper.panels, strict=True) if "classical" in panel.title]
    assert len(classical) == 2
    for axes in classical:
        assert max(float(line.get_xdata().max()) for line in curves_of(axes)) < 1
        assert any("no guarantee" in text.get_text() for text in axes.texts)


def test_axes_stay_whole_where_every_panel_ends_before(lines: tuple[Line, ...]) -> None:
    panel = make_panel("classical", pick(lines, mechanism="gaussian", weights="records"))
    (axes,) = draw_sheet(Sheet("one", "One", "", (panel,))).axes
    assert axes.get_xlim() == (1e-3, 1e2)


def test_both_ends_are_marked_in_numbers(paper: Sheet, figure: Figure) -> None:
    for axes, panel in zip(figure.axes, paper.panels, strict=True):
        limits = panel.lines[0].limits
        marks = [float(line.get_ydata()[0]) for line in axes.lines if line.get_label().startswith("_")]
        words = [text.get_text() for text in axes.texts]
        assert limits.chance in marks
        assert f"chance {100 * limits.chance:.1f}%" in words
        endless = "classical" not in panel.title
        assert (limits.raw in marks) == endless
        assert (f"raw {100 * limits.raw:.1f}%" in words) == endless


def test_one_key_tells_the_deltas(figure: Figure) -> None:
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["no delta", "delta 0.001", "delta 0.01", "delta 0.1"]
    assert all(axes.get_legend() is None for axes in figure.axes)
    told = [line.get_color() for line in legend.get_lines()]
    assert [line.get_color() for line in curves_of(figure.axes[2])] == told[1:]
    assert curves_of(figure.axes[0])[0].get_color() == told[0]


def test_larger_deltas_are_darker() -> None:
    from matplotlib.colors import to_rgb

    colours = shade([0.1, 0.0, 0.001, 0.01, 3e-5])
    assert list(colours) == [0.0, 3e-5, 0.001, 0.01, 0.1]
    lightness = [sum(to_rgb(colour)) for delta, colour in colours.items() if delta]
    assert lightness == sorted(lightness, reverse=True)
    assert len(shade([0.1])) == 1


KEYS = {
    "forms": ["published", "exact", "tight"],
    "measures": ["local", "expected", "shrinkage", "marginal", "marginal shrinkage"],
    "attacks": ["homogeneity attack", "plurality attack"],
    "noises": ["laplace", "geometric"],
    "both": ["each cell alike", "by records", "tight", "exact", "published"],
    "deltas": ["delta 0.001", "delta 0.01", "delta 0.1", "each cell alike", "by records"],
}


@pytest.mark.parametrize("name", KEYS)
def test_other_sheets_tell_their_lines_apart(sheets: dict[str, Sheet], name: str) -> None:
    figure = draw_sheet(sheets[name])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == KEYS[name]
    assert len(panels_of(figure)) == len(sheets[name].panels)
    for axes, panel in zip(panels_of(figure), sheets[name].panels, strict=True):
        styles = [(line.get_color(), str(line._dash_pattern), line.get_linestyle()) for line in curves_of(axes)]
        assert len(set(styles)) == len(panel.lines)
    check_room(figure)


def test_readings_are_told_where_no_title_does(sheets: dict[str, Sheet]) -> None:
    titles = [axes.get_title(loc="left") for axes in draw_sheet(sheets["forms"]).axes]
    assert titles == ["local, as published", "local, as defined"]


def test_one_epsilon_is_a_point(table: cr.FrequencyTable) -> None:
    curve = cr.curve(table, epsilon=0.7, measures="local", forms="tight", weights="records")
    (axes,) = draw_sheet(Sheet("one", "One", "", (make_panel("point", curve.lines),))).axes
    assert curves_of(axes)[0].get_marker() == "o"


def test_words_of_a_sheet_have_room(figure: Figure) -> None:
    check_room(figure)


def test_room_is_looked_at(figure: Figure) -> None:
    crowded = Figure()
    for _ in range(2):
        crowded.text(0.5, 0.5, "the same place")
    with pytest.raises(AssertionError, match="the same place"):
        check_room(crowded)
    outside = Figure()
    outside.text(0.99, 0.5, "too far right")
    with pytest.raises(AssertionError, match="too far right"):
        check_room(outside)


# Cell sizes


def test_cell_sizes_count_every_cell_once(table: cr.FrequencyTable, adult: cr.FrequencyTable) -> None:
    tables = {"Adult": adult, "made": table, "made again": table}
    figure = draw_cell_sizes(tables)
    assert len(figure.axes) == 3
    for axes, (name, each) in zip(figure.axes, tables.items(), strict=True):
        alike, mixed = (sum(bar.get_height() for bar in container) for container in axes.containers)
        profiles = each.profiles()
        assert (alike, mixed) == (profiles.n_homogeneous, profiles.n_heterogeneous)
        assert axes.get_title(loc="left").startswith(f"{name}: {each.n_cells:,} cells, {profiles.n_homogeneous:,}")
    check_room(figure)


def test_cell_sizes_say_where_all_are_homogeneous() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2], "job": list("aab")})
    figure = draw_cell_sizes({"small": cr.tabulate(frame, ["age"], "job")})
    assert figure.axes[0].get_title(loc="left") == "small: 2 cells, all homogeneous"
    with pytest.raises(InvalidInput, match="no table to draw"):
        draw_cell_sizes({})


# Boxes


def test_boxes_hold_the_distances(boxes: Boxes, box_figure: Figure) -> None:
    grid = np.array(box_figure.axes).reshape(3, 3)
    for row, way in zip(grid, (1, 2, 3), strict=True):
        assert len({axes.get_ylim() for axes in row}) == 1
        assert row[0].get_ylabel().startswith(f"TVD, {way}-way")
        for axes, name in zip(row, NAMES, strict=True):
            found = [box for box in boxes.ways[way] if box.mechanism == name]
            assert len(axes.patches) == len(found)
            means = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
            assert means == near([box.mean for box in found])
            for patch, box in zip(axes.patches, found, strict=True):
                heights = patch.get_path().vertices[:, 1]
                assert (heights.min(), heights.max()) == near(tuple(np.quantile(box.distances, (0.25, 0.75))))
            caps = {float(line.get_ydata()[0]) for line in axes.lines if len(set(line.get_ydata())) == 1}
            assert {max(box.distances) for box in found} | {min(box.distances) for box in found} <= caps


def test_boxes_are_named(boxes: Boxes, box_figure: Figure) -> None:
    figure = box_figure
    grid = np.array(figure.axes).reshape(3, 3)
    assert [axes.get_title(loc="left").split(",")[0] for axes in grid[0, :1]] == ["\u03b5-DP"]
    labels = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in grid[2]]
    assert labels[0] == labels[2] == ["0.001", "0.01", "0.1", "1", "10", "100"]
    assert labels[1] == ["0.001", "0.01", "0.1", "<1"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["no delta", "delta 0.001", "delta 0.01", "delta 0.1"]
    words = words_of(figure)
    assert boxes.title in words
    assert "noise on the observed cells alone; 10 simulated releases" in words
    assert "whiskers: least and greatest" in words
    check_room(figure)


# Files


def test_pictures_are_the_same_bytes_each_time(
    sheets: dict[str, Sheet], boxes: Boxes, table: cr.FrequencyTable, tmp_path: Path
) -> None:
    few = dataclasses.replace(boxes, ways={way: boxes.ways[way][::6] for way in (1, 2)})
    for draw in (
        lambda: draw_sheet(sheets["measures"]),
        lambda: draw_boxes(few),
        lambda: draw_cell_sizes({"made": table}),
    ):
        first, second = (save(draw(), tmp_path / f"{place}.svg").read_bytes() for place in (1, 2))
        assert first == second
        assert not re.search(rb"20\d\d-\d\d-\d\d", first)


# The README's picture


SPACE = "{http://www.w3.org/2000/svg}"


def read_lines(text: str) -> tuple[str, str, dict[str, Any]]:
    """Title, description, and the points of each line in a picture."""
    root = ElementTree.fromstring(text)
    lines = {}
    for name in ("exposed", "caused", "sure"):
        (group,) = [each for each in root.iter(f"{SPACE}g") if each.get("id", "").endswith(f"-{name}")]
        (path,) = group.iter(f"{SPACE}path")
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
        lines[name] = np.array(numbers).reshape(-1, 2)
    words = [root.findtext(f"{SPACE}{name}") for name in ("title", "desc")]
    return str(words[0]), str(words[1]), lines


def test_picture_of_the_readme_is_the_one_that_is_computed() -> None:
    tool = runpy.run_path(str(REPOSITORY / "tools" / "make_picture.py"))
    curve = tool["compute_curve"]()
    drawn, kept = tool["make_svg"](curve), (REPOSITORY / "docs" / "pictures" / "risk.svg").read_text(encoding="utf-8")
    assert drawn == tool["make_svg"](curve)
    (title, words, lines), (kept_title, kept_words, kept_lines) = read_lines(drawn), read_lines(kept)
    assert (title, words) == (kept_title, kept_words)
    for name, points in lines.items():
        assert points == pytest.approx(kept_lines[name], abs=0.5)  # points of print; fonts may move the axes a little
    figure = tool["draw"](curve)
    check_room(figure)
    # What the README says beside it is what is drawn.
    (found,) = curve.figures
    shares = {name: share[found.place(1.0)] for name, share in tool["read_shares"](found).items()}
    assert shares == pytest.approx({"exposed": 0.307, "caused": 0.042, "sure": 0.406}, abs=5e-4)
    beside = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    for share in shares.values():
        assert f"{100 * share:.1f}%" in words_of(figure)
        assert f"{100 * share:.1f}%" in beside
