"""Pictures: they hold the numbers of the result, warn of nothing, and are the same bytes every time."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.curves import Line
from cellrisk.errors import InvalidInput
from cellrisk.pictures import (
    ENDINGS,
    check_picture_path,
    draw_choice,
    draw_curve,
    draw_explanation,
    draw_sizes,
    draw_utility,
    labels,
    save,
    sizes,
    style,
    to_png,
    to_svg,
)

SOURCE = Path(__file__).resolve().parents[1] / "src"
EPSILONS = [0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0]
MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


def make_table(levels: int, sensitive: str | list[str] = "job", seed: int = 5) -> cr.FrequencyTable:
    """A made table of four quasi-identifiers, with cells of many sizes."""
    random = np.random.default_rng(seed)
    many = 400
    frame = pd.DataFrame(
        {
            "age": np.minimum(random.geometric(0.2, many), 12),
            "town": random.choice(list("abcd"), many, p=[0.6, 0.2, 0.15, 0.05]),
            "sex": random.choice(["f", "m"], many),
            "job": random.integers(0, levels, many).astype(str),
            "pay": random.choice(["low", "high"], many, p=[0.8, 0.2]),
        }
    )
    return cr.tabulate(frame, ["age", "town", "sex"], sensitive)


@pytest.fixture(scope="module")
def two() -> cr.FrequencyTable:
    return make_table(2)


@pytest.fixture(scope="module")
def three() -> cr.FrequencyTable:
    return make_table(3)


@pytest.fixture(scope="module")
def several() -> cr.FrequencyTable:
    return make_table(3, ["job", "pay"])


@pytest.fixture(scope="module")
def found(three: cr.FrequencyTable) -> cr.RiskCurve:
    return cr.curve(three, epsilon=EPSILONS, measures="local", weights="records")


@pytest.fixture(scope="module")
def figure(found: cr.RiskCurve) -> Figure:
    return draw_curve(found)


def drawn_lines(figure: Figure) -> list[tuple[Any, Any]]:
    return [(line.get_xdata(), line.get_ydata()) for axes in figure.axes for line in axes.lines]


def holds(figure: Figure, line: Line) -> bool:
    """Whether a drawn line has exactly the numbers of a line of the result."""
    return any(np.array_equal(x, line.epsilon) and np.array_equal(y, line.risk) for x, y in drawn_lines(figure))


def levels_of(figure: Figure) -> list[float]:
    """The heights of horizontal reference lines."""
    pairs = [
        np.asarray(y, float) for x, y in drawn_lines(figure) if len(y) == 2 and set(np.ravel(x)) <= {0, 0.3, 0.8, 1}
    ]
    return [float(y[0]) for y in pairs if y[0] == y[1]]


def words_of(figure: Figure) -> str:
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    return " ".join(" ".join(text.get_text() for text in texts).split())


# Curves


def test_curve_holds_the_numbers_on_a_logarithmic_axis(found: cr.RiskCurve, figure: Figure) -> None:
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert axes.get_ylim()[0] == 0
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.001", "0.01", "0.1", "1", "10", "100"]
    assert all(tick.get_text().endswith("%") for tick in axes.get_yticklabels())
    assert all(holds(figure, line) for line in found.lines)


def test_curve_shows_its_two_ends(found: cr.RiskCurve, figure: Figure) -> None:
    leading = found.leading[0]
    for value in (leading.limits.raw, leading.limits.chance):
        assert any(value == pytest.approx(level, abs=1e-12) for level in levels_of(figure))
    words = words_of(figure)
    assert f"raw table {100 * leading.limits.raw:.1f}%" in words
    assert f"chance {100 * leading.limits.chance:.1f}%" in words


def test_band_lies_between_tight_and_exact(found: cr.RiskCurve, figure: Figure) -> None:
    tight, exact = (next(line for line in found.lines if line.form == form) for form in ("tight", "exact"))
    (band,) = figure.axes[0].collections
    (path,) = band.get_paths()
    for epsilon, low, high in zip(tight.epsilon, tight.risk, exact.risk, strict=True):
        at = path.vertices[np.isclose(path.vertices[:, 0], epsilon, rtol=1e-12), 1]
        assert at.min() == pytest.approx(low)
        assert at.max() == pytest.approx(high)


def test_curve_says_in_words_what_it_shows(found: cr.RiskCurve, figure: Figure) -> None:
    words = words_of(figure)
    assert found.words.split("\n")[0].split(". ")[0] in words
    assert "Computed from raw data: for the curator." in words
    assert f"{100 * found.leading[0].at(1.0):.1f}%" in words


@pytest.mark.parametrize("levels", [2, 3])
def test_default_curve_has_a_panel_for_each_measure(levels: int) -> None:
    curve = cr.curve(make_table(levels), epsilon=EPSILONS)
    figure = draw_curve(curve)
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(curve.lines) == 27
    assert [axes.get_title(loc="left") for axes in panels] == [
        "local",
        "expected",
        "shrinkage",
        "marginal",
        "marginal shrinkage",
    ]
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert all(holds(figure, line) for line in curve.lines)


def test_several_attributes_have_panels_of_their_own(several: cr.FrequencyTable) -> None:
    few = draw_curve(cr.curve(several, epsilon=EPSILONS, measures="local", forms="tight", weights="records"))
    assert [axes.get_title(loc="left") for axes in few.axes] == ["job", "pay"]
    all_of_them = draw_curve(cr.curve(several, epsilon=EPSILONS))
    assert sum(axes.axison for axes in all_of_them.axes) == 10


@pytest.mark.parametrize(
    ("mechanisms", "deltas", "panels"),
    [
        (["laplace", "gaussian-analytic"], [1e-5], 1),
        (["laplace", "gaussian", "gaussian-analytic"], [1e-3, 1e-5], 1),
        (["laplace", "gaussian", "gaussian-analytic"], [1e-3, 1e-4, 1e-5], 3),
    ],
)
def test_several_mechanisms_and_deltas(
    two: cr.FrequencyTable, mechanisms: list[str], deltas: list[float], panels: int
) -> None:
    only = {"measures": "local", "forms": "tight", "weights": "records"}
    curve = cr.curve(two, mechanisms, delta=deltas, epsilon=EPSILONS, **only)
    figure = draw_curve(curve)
    assert len(figure.axes) == panels
    assert all(holds(figure, line) for line in curve.lines)


def test_every_setting_has_its_panels_where_lines_are_many(two: cr.FrequencyTable) -> None:
    curve = cr.curve(two, ["laplace", "geometric"], epsilon=[0.1, 1.0], measures=["local", "marginal"])
    figure = draw_curve(curve)
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.axison]
    assert titles == ["laplace, local", "laplace, marginal", "geometric, local", "geometric, marginal"]


def test_one_epsilon_is_a_point(two: cr.FrequencyTable) -> None:
    curve = cr.curve(two, epsilon=0.7, measures="local", forms="tight", weights="records")
    figure = draw_curve(curve)
    assert holds(figure, curve.lines[0])
    low, high = figure.axes[0].get_xlim()
    assert low < 0.7 < high
    assert "At epsilon 0.7 the risk for job is" in words_of(figure)


def test_settings_without_a_common_epsilon_have_a_plain_title(two: cr.FrequencyTable) -> None:
    only = {"measures": "local", "forms": "tight", "weights": "records"}
    one = cr.curve(two, epsilon=0.1, **only)
    other = cr.curve(two, "geometric", epsilon=1.0, **only)
    both = dataclasses.replace(one, lines=(*one.lines, *other.lines))
    assert "Risk along epsilon" in words_of(draw_curve(both))


def test_no_risk_at_all_can_be_drawn() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2] * 200, "job": ["a", "b"] * 400})
    table = cr.tabulate(frame, ["age"], "job")
    draw_curve(cr.curve(table, epsilon=[50.0, 100.0], measures="local"))
    draw_explanation(cr.explain(table, cr.Laplace(epsilon=50.0)))


def test_names_of_columns_cannot_break_a_picture() -> None:
    frame = pd.DataFrame({"a$b^{$" * 12: [1, 1, 2, 3], "$\\frac{": [1, 2, 3, 4], "給与": list("xyxx")})
    table = cr.tabulate(frame, ["a$b^{$" * 12, "$\\frac{"], "給与")
    for figure in (
        draw_curve(cr.curve(table, epsilon=[1.0, 2.0], measures="local")),
        draw_sizes(table),
        draw_explanation(cr.explain(table, cr.Laplace(epsilon=1.0))),
        draw_choice(cr.choose(table, max_risk=0.9)),
    ):
        assert to_png(figure, 50).startswith(MAGIC[".png"])


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
    assert f"{table.attributes[0].profiles.n_unique:,} of {table.n_cells:,} cells hold one person" in words_of(figure)


def test_sizes_of_adult(adult: cr.FrequencyTable) -> None:
    (axes,) = draw_sizes(adult).axes
    assert len(axes.containers[0]) == 15
    assert sum(bar.get_height() for container in axes.containers for bar in container) == 5009


@pytest.mark.parametrize("largest", [1, 7, 20, 21, 50, 51, 3_000, 10**9])
def test_sizes_are_put_together_without_gaps(largest: int) -> None:
    bins = sizes._choose_bins(largest)
    assert len(bins) <= sizes.MOST_BARS
    assert bins[0][0] == 1
    assert bins[-1][0] <= largest <= bins[-1][1]
    assert all(following[0] == before[1] + 1 for before, following in itertools.pairwise(bins))


# Usefulness


@pytest.mark.parametrize("cells", ["domain", "observed"])
def test_utility_has_a_panel_for_each_way(three: cr.FrequencyTable, cells: str) -> None:
    mechanisms = [cr.Laplace(epsilon=epsilon) for epsilon in (5.0, 0.5, 1.0)]
    utility = cr.utility(three, mechanisms, releases=5, cells=cells)
    figure = draw_utility(utility)
    assert [axes.get_title(loc="left").split()[0] for axes in figure.axes] == ["1-way", "2-way", "3-way"]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["0.5", "1", "5"]
    assert figure.axes[0].get_ylim()[0] == 0
    words = words_of(figure)
    assert "5 simulated releases" in words
    assert ("every cell of the domain" if cells == "domain" else "observed cells alone") in words
    for axes, way in zip(figure.axes, utility.ways, strict=True):
        means = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
        assert sorted(means) == pytest.approx(sorted(utility.mean_tvd(way)))
        for place in range(3):
            low, high = np.quantile(utility.values(place, way), (0.05, 0.95))
            caps = [line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1]
            assert any(cap == pytest.approx(low) for cap in caps)
            assert any(cap == pytest.approx(high) for cap in caps)


@pytest.mark.parametrize("many", [1, 4])
def test_utility_of_several_mechanisms(two: cr.FrequencyTable, many: int) -> None:
    mechanisms: list[cr.Mechanism] = [cr.Laplace(epsilon=float(epsilon)) for epsilon in range(1, many + 1)]
    mechanisms += [cr.AnalyticGaussian(epsilon=float(epsilon), delta=1e-4) for epsilon in range(1, many + 1)]
    figure = draw_utility(cr.utility(two, mechanisms, releases=2, ways=(1, 2)))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["laplace", "gaussian-analytic, delta 0.0001"]
    apart = draw_utility(cr.utility(two, [cr.Laplace(epsilon=1.0), cr.Geometric(epsilon=2.0)], releases=2, ways=2))
    assert "of records misplaced" in words_of(apart)


# Choices


@pytest.mark.parametrize("limit", [{"max_risk": 0.3}, {"margin": 0.1}, {"max_people": 100.0}])
def test_choice_marks_what_it_recommends(two: cr.FrequencyTable, limit: dict[str, float]) -> None:
    choice = cr.choose(two, **limit)
    figure = draw_choice(choice)
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    marks = {line.get_label(): (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    for each in choice.alternatives:
        assert marks[each.role] == (each.epsilon, each.risk)
    assert any(np.array_equal(y, choice.scan_risk) for _, y in drawn_lines(figure))
    levels = levels_of(figure)
    assert choice.limits.raw in levels
    assert choice.limits.chance in levels
    if "max_risk" in limit:
        assert 0.3 in levels
    assert len(levels) == 3
    assert "Choosing epsilon from the data is itself a disclosure" in words_of(figure)


def test_choice_shades_each_admissible_interval(two: cr.FrequencyTable) -> None:
    choice = cr.choose(two, max_risk=0.3)
    (axes,) = draw_choice(choice).axes
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
    assert spans == [pytest.approx(interval) for interval in choice.admissible]
    inside = [line for line in axes.lines if line.get_label() == "admissible"]
    assert [(line.get_xdata()[0], line.get_xdata()[-1]) for line in inside] == [
        pytest.approx(interval) for interval in choice.admissible
    ]


def test_choice_where_nothing_will_do(two: cr.FrequencyTable) -> None:
    choice = cr.choose(two, max_risk=0.01)
    figure = draw_choice(choice)
    assert choice.epsilon is None
    assert "No epsilon meets the limits" in words_of(figure)
    (mark,) = (line for line in figure.axes[0].lines if line.get_label() == "nearest")
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (
        choice.options[0].lowest_epsilon,
        choice.options[0].lowest_risk,
    )


def test_choice_among_mechanisms_shows_each(several: cr.FrequencyTable) -> None:
    choice = cr.choose(several, ["laplace", "gaussian", "gaussian-analytic"], delta=1e-4, max_risk=0.35)
    strips = draw_choice(choice).axes[1]
    assert [tick.get_text() for tick in strips.get_yticklabels()] == [
        each.setting.describe() for each in choice.options
    ]


@pytest.mark.parametrize(("max_tvd", "found"), [(0.5, True), (0.0, False)])
def test_map_of_risk_and_usefulness(three: cr.FrequencyTable, max_tvd: float, found: bool) -> None:
    choice = cr.choose(three, max_risk=0.25, max_tvd=max_tvd, releases=2, largest_epsilon=3.0)
    figure = draw_choice(choice)
    (axes,) = figure.axes
    trade_off = choice.trade_off
    assert trade_off is not None
    assert (choice.epsilon is not None) == found
    lines = drawn_lines(figure)
    assert any(set(trade_off.tvd) <= set(x) and set(trade_off.risk) <= set(y) for x, y in lines)
    assert 0.25 in levels_of(figure)
    marks = {line.get_label(): (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    for each in choice.alternatives:
        assert marks[each.role] == (each.tvd, each.risk)
    (box,) = (collection.get_paths()[0].get_extents() for collection in axes.collections)
    assert (box.x0, box.y0) == (0, 0)
    assert (box.x1, box.y1) == pytest.approx((max_tvd, 0.25))


def test_recommended_epsilon_is_never_rounded_up() -> None:
    from cellrisk.pictures.choices import round_down

    for epsilon in np.geomspace(1e-3, 1e2, 500):
        assert float(round_down(float(epsilon))) <= epsilon * (1 + 1e-9)
        assert float(round_down(float(epsilon))) == pytest.approx(epsilon, rel=0.01)


# Explanations


def test_explanation_sorts_what_would_help(three: cr.FrequencyTable) -> None:
    explanation = cr.explain(three, cr.Laplace(epsilon=1.0))
    figure = draw_explanation(explanation)
    bars, dots = figure.axes
    widths = [bar.get_width() for bar in bars.containers[0]]
    assert widths == [explanation.baseline, *sorted(each.risk for each in explanation.without)]
    (risks,) = (line.get_xdata() for line in dots.lines if line.get_marker() == "o")
    assert list(risks) == sorted(each.risk for each in explanation.coarser)
    assert bars.get_xlim()[0] == 0


def test_explanation_shows_no_value_of_a_cell() -> None:
    frame = pd.DataFrame(
        {"town": ["Qxville", "Qxham", "Qxby", "Qxby"], "job": ["Zzcook", "Zzsmith", "Zzcook", "Zzsmith"]}
    )
    explanation = cr.explain(cr.tabulate(frame, ["town"], "job"), cr.Laplace(epsilon=1.0))
    figure = draw_explanation(explanation)
    ticks = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
    shown = words_of(figure) + " ".join(ticks) + to_svg(figure)
    assert "Qx" not in shown
    assert "Zz" not in shown


def test_explanation_without_coarser_values_has_one_panel() -> None:
    frame = pd.DataFrame({"sex": list("fmfm"), "job": list("abab")})
    figure = draw_explanation(cr.explain(cr.tabulate(frame, ["sex"], "job"), cr.Laplace(epsilon=1.0)))
    assert len(figure.axes) == 1


# Saving


@pytest.mark.parametrize("ending", [*ENDINGS, ".PNG"])
def test_saved_files_are_what_they_say_and_the_same_each_time(found: cr.RiskCurve, ending: str, tmp_path: Path) -> None:
    first = save(draw_curve(found), tmp_path / f"first{ending}")
    again = draw_curve(found)
    second = save(again, tmp_path / f"second{ending}")
    third = save(again, tmp_path / f"third{ending}")
    content = first.read_bytes()
    assert content.startswith(MAGIC[ending.lower()])
    assert content == second.read_bytes() == third.read_bytes()
    assert not re.search(rb"20\d\d-\d\d-\d\d|CreationDate|Software", content)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in (first, second, third))


def test_bytes_are_the_same_in_another_process(tmp_path: Path) -> None:
    script = (
        "import sys, hashlib, cellrisk as cr, pandas as pd\n"
        "from cellrisk.pictures import draw_sizes, save\n"
        "table = cr.tabulate(pd.DataFrame({'age': [1, 1, 2], 'job': list('aba')}), ['age'], 'job')\n"
        "for ending in ('svg', 'png', 'pdf'):\n"
        "    path = save(draw_sizes(table), f'{sys.argv[1]}.{ending}')\n"
        "    print(hashlib.sha256(path.read_bytes()).hexdigest())\n"
    )
    answers = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-W", "error", "-c", script, str(tmp_path / seed)]
        answers.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(answers) == 1


def test_reader_settings_change_nothing_and_stay(found: cr.RiskCurve) -> None:
    import matplotlib

    plain = to_svg(draw_curve(found))
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.hashsalt": None}):
        assert to_svg(draw_curve(found)) == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_threads_do_not_disturb_each_other(found: cr.RiskCurve, two: cr.FrequencyTable) -> None:
    expected = to_svg(draw_curve(found)), to_svg(draw_sizes(two))
    answers: dict[int, str] = {}

    def work(place: int) -> None:
        answers[place] = to_svg(draw_sizes(two)) if place % 2 else to_svg(draw_curve(found))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[place] for place in range(4)] == [expected[place % 2] for place in range(4)]


def test_svg_for_a_page_is_one_element_with_its_own_names(figure: Figure, two: cr.FrequencyTable) -> None:
    texts = [to_svg(figure), to_svg(draw_sizes(two))]
    assert texts[0] == to_svg(figure)
    names = []
    for text in texts:
        assert text.startswith("<svg")
        element = ElementTree.fromstring(text)
        assert element.tag.endswith("svg")
        names.append({each.attrib["id"] for each in element.iter() if "id" in each.attrib})
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
        assert used
        assert used <= names[-1]
        assert "<text" not in text
    assert names[0].isdisjoint(names[1])


def test_png_has_the_dots_asked_for(figure: Figure) -> None:
    content = to_png(figure, dpi=100)
    width = int.from_bytes(content[16:20], "big")
    assert width == 700
    for dpi in (0, -5, float("nan"), True, "large"):
        with pytest.raises(InvalidInput, match="dots per inch"):
            to_png(figure, dpi)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["risk.jpg", "risk", "risk.svgz", ".png", "risk.svg.exe"])
def test_unknown_ending_is_refused(figure: Figure, name: str, tmp_path: Path) -> None:
    for refuse in (lambda: save(figure, tmp_path / name), lambda: check_picture_path(tmp_path / name)):
        with pytest.raises(InvalidInput, match=r"picture format.*\.svg, \.png, \.pdf"):
            refuse()
    assert list(tmp_path.iterdir()) == []


def test_place_that_cannot_be_written_is_refused(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        save(figure, tmp_path / "nowhere" / "risk.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InvalidInput, match="folder"):
        check_picture_path(tmp_path / "folder.svg")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInput, match="cannot be written"):
        check_picture_path(tmp_path / "risk.svg")


def test_failed_writing_leaves_what_was_there(figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "risk.svg"
    path.write_text("before")

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InvalidInput, match="cannot be written"):
        save(figure, path)
    assert [each.name for each in tmp_path.iterdir()] == ["risk.svg"]
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    "result",
    [
        lambda table: cr.curve(table, epsilon=[0.1, 1.0], measures="local"),
        lambda table: cr.choose(table, max_risk=0.3),
        lambda table: cr.explain(table, cr.Laplace(epsilon=1.0)),
        lambda table: cr.utility(table, cr.Laplace(epsilon=1.0), releases=2, ways=1),
    ],
    ids=["curve", "choice", "explanation", "utility"],
)
def test_results_draw_themselves(result: Any, two: cr.FrequencyTable, tmp_path: Path) -> None:
    found = result(two)
    assert isinstance(found.plot(), Figure)
    assert found.plot(tmp_path / "picture.png").read_bytes().startswith(MAGIC[".png"])


# Parts


def test_labels_keep_apart_and_near() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        wanted, heights = np.sort(random.uniform(0, 100, 8)), random.uniform(5, 20, 8)
        placed = labels.spread(wanted, heights)
        gaps = np.diff(placed) - (heights[1:] + heights[:-1]) / 2
        assert (gaps > -1e-6).all()
    assert labels.spread(np.array([0.0, 30.0]), np.array([10.0, 10.0])).tolist() == [0.0, 30.0]


def test_words_are_wrapped_and_shortened_to_whole_sentences(figure: Figure) -> None:
    with style.house_style():
        text = "One sentence that is long enough. " * 12
        lines = style.shorten(figure, text.strip(), 8.0, 3.0, 3).split("\n")
        assert len(lines) == 3
        assert lines[-1].endswith("enough.")
        assert len(style.wrap(figure, "word " * 40, 8.0, 2.0).split("\n")) > 3


def test_importing_cellrisk_and_its_pictures_does_not_load_matplotlib() -> None:
    script = "import sys, cellrisk, cellrisk.pictures, cellrisk.cli; print('matplotlib' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
