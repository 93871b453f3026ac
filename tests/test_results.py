"""What every answer can do, held against every kind of answer."""

from __future__ import annotations

import html
import json
import pickle
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import cellrisk as cr
from cellrisk.counts.table import Summary
from cellrisk.errors import InvalidInput
from cellrisk.system.results import Result
from tests.commands import refusing

MECHANISM = cr.Geometric(epsilon=1.0)
JOB = "<b>job\u202e"
"""A name that would be markup on a page, and turn the writing round."""


def make_frame() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    columns: dict[str, Any] = {
        "town": [("north", "south", "west")[place] for place in draw.integers(0, 3, 80)],
        "age": draw.integers(20, 60, 80),
        JOB: [("cook", "smith")[place] for place in draw.integers(0, 2, 80)],
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return cr.tabulate(make_frame(), ["town", "age"], JOB, bins={"age": [30, 45]}, levels={JOB: ["cook", "smith"]})


def simulate(table: cr.FrequencyTable) -> cr.Simulation:
    return cr.simulate(table, MECHANISM, releases=5, seed=1)


def verify(folder: Path) -> Any:
    with cr.Ledger(folder / "ledger.db", create=True) as ledger:
        return ledger.verify()


def look(folder: Path) -> Any:
    from cellrisk.counts.preview import preview_file

    make_frame().to_csv(folder / "people.csv", index=False)
    return preview_file(folder / "people.csv", name="people.csv")


MADE: dict[str, Callable[[cr.FrequencyTable, Path], Result]] = {
    "columns": lambda _, folder: look(folder),
    "table": lambda table, _: table,
    "summary": lambda table, _: table.summary(),
    "assessment": lambda table, _: cr.assess(table, MECHANISM, measures="local"),
    "ceiling": lambda *_: cr.ceiling(MECHANISM, labels=4),
    "curve": lambda table, _: cr.curve(table, "geometric", epsilon=[0.5, 1.0], measures="local"),
    "choice": lambda table, _: cr.choose(table, "geometric", max_caused=0.01),
    "utility": lambda table, _: cr.utility(table, MECHANISM, releases=3),
    "audit": lambda table, _: cr.audit(table, make_frame(), bins={"age": [30, 45]}),
    "simulation": lambda table, _: simulate(table),
    "averaging": lambda table, _: cr.average(table, MECHANISM, releases=2, measures="local"),
    "explanation": lambda table, _: cr.explain(table, MECHANISM),
    "sequence": lambda table, _: cr.assess_sequence(table, [cr.Step(MECHANISM, JOB)]),
    "largest epsilon": lambda *_: cr.largest_epsilon([], max_ceiling=0.75),
    "composition": lambda table, _: cr.compose([cr.Loss.of(MECHANISM)] * 2),
    "verification": lambda table, folder: verify(folder),
    "release": lambda table, _: cr.release(table, MECHANISM, observed_levels=["town"]),
    "published risk": lambda table, _: cr.publish_risk(table, MECHANISM, risk_epsilon=1.0, observed_levels=["town"]),
    "private choice": lambda table, _: cr.choose_privately(
        table, private=5.0, max_caused_people=60, observed_levels=["town"]
    ),
    "perturbed simulation": lambda table, _: cr.simulate(table, perturbation="random-rounding:3", releases=5),
    "perturbed assessment": lambda table, _: cr.assess_perturbation(table, "random-rounding:3", measures="local"),
    "report": lambda table, _: cr.report(table, epsilon=1.0),
    "together": lambda *_: cr.assess_together(
        make_frame(), [{"qid": "town"}, {"qid": "age"}], JOB, bins={"age": [30, 45]}, epsilon=1.0
    ),
    "released set": lambda *_: cr.release_together(
        make_frame(), [{"qid": "town"}, {"qid": "age"}], JOB, bins={"age": [30, 45]}, epsilon=1.0, observed_levels=True
    ),
    "split": lambda *_: cr.split_budget(
        make_frame(), [{"qid": "town"}, {"qid": "age"}], JOB, bins={"age": [30, 45]}, total_epsilon=1.0
    ),
}

SEVERAL_PANELS = {"assessment": 2}
"""Kinds of answers whose picture, as they are made here, has panels that say as much as each other."""


def kinds_of_results() -> Iterator[type[Result]]:
    for each in pkgutil.walk_packages(cr.__path__, "cellrisk."):
        __import__(each.name)
    found = list(Result.__subclasses__())
    while found:
        kind = found.pop()
        found += kind.__subclasses__()
        if not kind.__subclasses__():
            yield kind


def test_every_kind_of_answer_is_looked_at(table: cr.FrequencyTable, tmp_path: Path) -> None:
    looked_at = {type(make(table, tmp_path)).__name__ for make in MADE.values()}
    assert {kind.__name__ for kind in kinds_of_results()} == looked_at


@pytest.fixture(scope="module", params=MADE)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def result(kind: str, table: cr.FrequencyTable, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return MADE[kind](table, tmp_path_factory.mktemp("results"))


class TestAnswers:
    def test_words(self, result: Result, kind: str) -> None:
        shown = repr(result)
        assert shown.splitlines() == [shown]
        assert len(shown) < 1500
        assert "\u202e" not in shown + str(result)
        assert shown.replace("\\u202e", "\u202e") == " ".join(result.headline.split())
        assert str(result)
        assert len(result.details) >= len(str(result))

    def test_numbers(self, result: Result) -> None:
        frame = result.to_frame()
        assert isinstance(frame, pd.DataFrame)
        assert all(isinstance(column, str) for column in frame.columns)
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))

    def test_in_a_notebook(self, result: Result, kind: str) -> None:
        shown = result._repr_html_()
        assert "<b>" not in shown
        assert "\u202e" not in shown
        outside = re.sub(r'srcdoc="[^"]*"', "", shown)
        assert not re.search(r"<script| id=| on\w+=|url\(", outside), (
            "outputs of one page do not meet, and nothing runs"
        )
        assert shown.count("<iframe") == shown.count('<iframe sandbox="" srcdoc="') == (kind == "report")
        if kind != "report":
            assert html.unescape(shown.removeprefix("<pre>").removesuffix("</pre>")) == str(result)

    def test_what_completes_after_a_dot(self, result: Result) -> None:
        names = dir(result)
        assert {"headline", "to_frame", "to_dict", "to_csv"} <= set(names)
        drawn = result.picture
        assert ("plot" in names) == bool(drawn)
        assert [name for name in names if name.startswith("_") and not name.endswith("__")] == []
        assert all(hasattr(result, name) for name in names)

    def test_it_cannot_be_changed(self, result: Result) -> None:
        name = next(iter(vars(result)))
        with pytest.raises(FrozenInstanceError):
            setattr(result, name, None)

    def test_picture(self, result: Result, tmp_path: Path) -> None:
        if not result.picture:
            with refusing("no-picture"):
                result.plot()
            return
        from matplotlib.figure import Figure

        assert isinstance(result.plot(), Figure)
        assert result.plot(tmp_path / "picture.svg") == tmp_path / "picture.svg"
        assert (tmp_path / "picture.svg").read_bytes().startswith(b"<?xml")

    def test_picture_in_a_figure_of_ones_own(self, result: Result, kind: str, tmp_path: Path) -> None:
        if not result.picture:
            return
        import matplotlib
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.5, 3.0))
        figure.suptitle("mine")
        other, ax = figure.subplots(1, 2)
        other.plot([1, 2], [3, 4], label="mine")
        other.legend()
        before, settings = describe(figure), dict(matplotlib.rcParams)
        where, empty = ax.get_position().bounds, len(ax.findobj())
        with refusing("options"):
            result.plot(tmp_path / "picture.svg", ax=ax)
        assert not (tmp_path / "picture.svg").exists()
        if kind in SEVERAL_PANELS:
            with pytest.raises(InvalidInput, match=rf"got {SEVERAL_PANELS[kind]} panels; allowed: 1 panel; \w+"):
                result.plot(ax=ax)
            assert len(ax.findobj()) == empty
        else:
            assert result.plot(ax=ax) is ax
            assert ax.has_data()
            assert ax.get_xlabel()
            assert not any(ax.get_title(loc) for loc in ("left", "center", "right"))
            assert "\u202e" not in "".join(text.get_text() for text in ax.findobj(Text))
        assert describe(figure) == before
        assert dict(matplotlib.rcParams) == settings
        assert ax.get_position().bounds == where


def describe(figure: Any) -> Any:
    """A figure but for what is in its last axes."""
    own = [(type(each), each.get_visible()) for each in figure.get_children()]
    of_other = [(type(each), getattr(each, "get_text", str)(), each.get_visible()) for each in figure.axes[0].findobj()]
    limits = figure.axes[0].get_xlim(), figure.axes[0].get_ylim(), figure.axes[0].get_position().bounds
    said = [text.get_text() for text in figure.texts]
    return own, of_other, limits, said, tuple(figure.get_size_inches()), figure.dpi, figure.get_layout_engine()


def test_a_report_shows_itself_where_nothing_runs(table: cr.FrequencyTable) -> None:
    report = cr.report(table, epsilon=1.0)
    shown = report._repr_html_()
    (document,) = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(document) == report.to_html()
    assert "A notebook keeps what it shows." in shown
    left = pickle.loads(pickle.dumps(report))._repr_html_()
    assert "<iframe" not in left
    assert left.startswith("<pre>")


def test_a_picture_takes_the_users_style(table: cr.FrequencyTable) -> None:
    import matplotlib as mpl
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure

    curve = cr.curve(table, "geometric", epsilon=[0.5, 1.0], measures="local", forms="tight", weights="records")
    mine = {"axes.facecolor": "#102030", "font.size": 21.0, "text.color": "white", "axes.labelcolor": "white"}
    with mpl.rc_context({**mine, "xtick.color": "yellow", "font.family": ["monospace"]}):
        figure = Figure()
        left, right = figure.subplots(1, 2)
        assert curve.plot(ax=left) is left
        figure.draw_without_rendering()
        assert left.get_facecolor() == right.get_facecolor() == to_rgba("#102030")
        for text in (left.xaxis.label, left.yaxis.label, *left.get_xticklabels(), *left.get_yticklabels()):
            assert (text.get_fontsize(), text.get_fontfamily()) == (21.0, ["monospace"]), text.get_text()
        assert to_rgba(left.xaxis.label.get_color()) == to_rgba("white")
        assert to_rgba(left.get_xticklabels()[0].get_color()) == to_rgba("yellow")
        assert mpl.rcParams["font.size"] == 21.0


def test_a_table_as_a_frame_is_the_table(table: cr.FrequencyTable) -> None:
    frame = table.to_frame()
    assert list(frame.columns) == ["town", "age", JOB, "count"]
    assert frame["count"].sum() == table.n_records
    assert len(frame.groupby(["town", "age"], observed=True)) == table.n_cells
    south = make_frame().query("town == 'south' and 30 < age <= 45")[JOB].value_counts()
    of_south = frame[(frame["town"] == "south") & (frame["age"].astype(str).str.contains("45"))]
    of_south = of_south[~of_south["age"].astype(str).str.contains("above|>")]
    assert dict(zip(of_south[JOB].astype(str), of_south["count"], strict=True)) == south.to_dict()


def test_a_column_of_counts_finds_a_free_name() -> None:
    frame = pd.DataFrame({"count": ["a", "b", "a"], "job": ["x", "y", "x"]})
    table = cr.tabulate(frame, "count", "job", count=False)
    assert list(table.to_frame().columns) == ["count", "job", "count_"]
    assert isinstance(table.summary(), Summary)
