"""The folder: whole or absent, a page that needs nothing else, and the command that makes it."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import cellrisk.paper.box_pictures as drawing
from cellrisk.cli import main
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.paper import Reproduction, reproduction
from cellrisk.paper.bundles import Bundle
from cellrisk.paper.experiments import Experiment
from cellrisk.paper.panels import AGREES, DIFFERS, Box, Boxes, Statement
from tests.reproduction.conftest import as_text

Capture = pytest.CaptureFixture[str]
Draw = Callable[..., Any]


class Page(HTMLParser):
    """Tags with their attributes, ids and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that take no time."""

    def draw(*_: object) -> Any:
        from matplotlib.figure import Figure

        return Figure(figsize=(1, 1))

    for name in ("draw_sheet", "draw_boxes", "draw_cell_sizes"):
        monkeypatch.setattr(drawing, name, draw)


@pytest.mark.usefixtures("quick")
def test_page_finds_all_its_files(found: Reproduction, tmp_path: Path) -> None:
    place = found.save(tmp_path / "out")
    page = Page((place / "index.html").read_text(encoding="utf-8"))
    assert not page.named("script")
    assert not [key for _, attributes in page.tags for key in attributes if key.startswith("on")]
    assert page.named("html") == [{"lang": "en"}]
    images = page.named("img")
    assert len(images) == len(found.pictures) + 1
    assert all(len(image["alt"]) > 40 and (place / image["src"]).is_file() for image in images)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for link in (each["href"] for each in page.named("a")):
        assert link[1:] in ids if link.startswith("#") else (place / link).is_file()
    files = {each.name for each in place.iterdir()}
    assert files == {"index.html", "statements.csv"} | {
        f"{name}.{ending}"
        for name in ("figure-2-cell-sizes", *(each.name for each in found.pictures))
        for ending in ("svg", "png", "csv")
    }
    text = " ".join(page.words)
    assert found.headline in text
    assert found.experiments[-1].digest in text
    assert "--points 6 --releases 2 --seed 0" in text
    assert len(page.named("tr")) == 2 + len(found.statements) + len(found.experiments)
    rows = read_csv(place / "statements.csv")
    assert [row["claim"] for row in rows] == [each.claim for each in found.statements]
    sizes = read_csv(place / "figure-2-cell-sizes.csv")
    defined = [row for row in sizes if row["reading"] == "as defined"]
    assert sum(int(row["cells"]) for row in defined) == 5009


def test_pictures_are_drawn(found: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real ones, one of each kind, with a part of the boxes."""
    monkeypatch.setattr(reproduction, "DOTS", 50)
    boxes = found.boxes[0]
    few = replace(found, sheets=found.sheets[-1:], boxes=(replace(boxes, ways={1: boxes.ways[1][:8]}),))
    place = few.save(tmp_path / "out")
    for name in ("figure-2-cell-sizes", *(each.name for each in few.pictures)):
        assert (place / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (place / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.usefixtures("quick")
def test_what_is_missing_is_on_the_page(found: Reproduction, tmp_path: Path) -> None:
    lacking = replace(found, sheets=found.sheets[:1], boxes=(), missing=("Bankruptcy is missing: no network.",))
    text = (lacking.save(tmp_path / "out") / "index.html").read_text(encoding="utf-8")
    assert "Bankruptcy is missing: no network." in text
    assert "cellrisk reproduce --offline" in text
    assert 'id="distances"' not in text


def test_same_numbers_give_the_same_page(found: Reproduction) -> None:
    from cellrisk.paper.reproduction import render_page

    assert render_page(found) == render_page(replace(found, seconds=found.seconds + 1))


def fail(*_: object) -> None:
    raise RuntimeError("no ink")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("step", ["draw_cell_sizes", "draw_boxes"])
def test_nothing_is_left_where_a_step_fails(
    step: str, found: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, step, fail)
    with pytest.raises(RuntimeError, match="no ink"):
        found.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_older_folder_is_kept_until_the_new_one_is_whole(
    found: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(found, sheets=found.sheets[:1], boxes=())
    place = few.save(tmp_path / "out")
    assert {stat.S_IMODE(each.stat().st_mode) for each in place.iterdir()} == {0o600}
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    (place / "statements.csv").write_text("older", encoding="utf-8")
    with pytest.raises(InvalidInput, match="the output folder exists"):
        few.save(place)
    with monkeypatch.context() as patch:
        patch.setattr(reproduction, "render_page", fail)
        with pytest.raises(RuntimeError, match="no ink"):
            few.save(place, force=True)
    assert (place / "statements.csv").read_text(encoding="utf-8") == "older"
    with monkeypatch.context() as patch:
        rename = reproduction.os.rename
        patch.setattr(
            reproduction.os, "rename", lambda old, new: fail() if str(old).endswith(".new") else rename(old, new)
        )
        with pytest.raises(RuntimeError, match="no ink"):
            few.save(place, force=True)
    assert (place / "statements.csv").read_text(encoding="utf-8") == "older"
    few.save(place, force=True)
    assert (place / "statements.csv").read_text(encoding="utf-8") != "older"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_place_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "other").mkdir()
    for name in ("index.html", "statements.csv", "thesis.tex"):
        (tmp_path / "other" / name).write_text("x", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="does not exist"):
        reproduction.check_folder(tmp_path / "none" / "out")
    with pytest.raises(InvalidInput, match="is no folder"):
        reproduction.check_folder(tmp_path / "file", force=True)
    with pytest.raises(InvalidInput, match=r"something else .* got 1 other files"):
        reproduction.check_folder(tmp_path / "other", force=True)
    with pytest.raises(InvalidInput, match="exists"):
        reproduction.check_folder(tmp_path / "empty")
    assert reproduction.check_folder(tmp_path / "empty", force=True) == tmp_path / "empty"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("the network was touched")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("urllib.request.urlopen", refuse)


@pytest.mark.usefixtures("quick", "no_network", "counted")
def test_command_offline(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "out"
    code = main(["reproduce", "--offline", "--output", str(place), "--points", "2", "--releases", "1", "--json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert "Not everything could be reproduced" in document["sentence"]
    assert document["missing"]
    assert (place / "index.html").is_file()
    code = main(["reproduce", "--offline", "--output", str(place)])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "the output folder exists" in err


@pytest.mark.usefixtures("quick", "no_network", "recognised", "counted")
def test_command_with_a_file(found: Reproduction, rows: list[tuple[str, ...]], capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "records.txt"
    path.write_text(as_text(rows), encoding="utf-8")
    place = tmp_path / "out"
    code = main(["reproduce", "--bankruptcy", str(path), "--output", str(place), "--points", "6", "--releases", "2"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert out.startswith(found.headline)
    assert out.endswith(f"\nWritten to {place / 'index.html'}.\n")
    assert (place / "statements.csv").is_file()


def test_command_refuses_other_data_before_the_work(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "records.txt"
    path.write_text("P,P,P,P,P,P,B\n", encoding="utf-8")
    code = main(["reproduce", "--bankruptcy", str(path), "--output", str(tmp_path / "out")])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("cellrisk: these are not the 250 records of Qualitative Bankruptcy; got 1 records")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("given", "fetch"), [((), True), (("--offline",), False), (("--bankruptcy", "records.txt"), False)], ids=str
)
def test_command_fetches_only_where_it_may(
    given: tuple[str, ...],
    fetch: bool,
    found: Reproduction,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And says so on standard error before it does."""
    asked: list[bool] = []

    def pretend(_path: str | None, *, fetch: bool, announce: Callable[[str], None], **_: object) -> Reproduction:
        asked.append(fetch)
        announce("Fetching.")
        return replace(found, sheets=found.sheets[:1], boxes=())

    monkeypatch.setattr("cellrisk.paper.reproduce", pretend)
    assert main(["reproduce", "--output", str(tmp_path / "out"), *given]) == 0
    out, err = capsys.readouterr()
    assert asked == [fetch]
    assert err == "Fetching.\n"
    assert "Fetching" not in out


WRONG: dict[str, tuple[Callable[[Reproduction], object], str]] = {
    "statement without a reason": (lambda _: Statement("5", "x", "1", "2", DIFFERS, ""), "needs a reason"),
    "unknown verdict": (lambda _: Statement("5", "x", "1", "2", "perhaps", "y"), "unknown verdict"),
    "empty box": (lambda _: Box("laplace", 0.0, 1.0, ()), "between 0 and 1"),
    "distance above 1": (lambda _: Box("laplace", 0.0, 1.0, (1.5,)), "between 0 and 1"),
    "boxes of nothing": (lambda _: Boxes("a", "b", "c", "observed", 1, 0, {}), "a box for each way"),
    "unknown cells": (lambda _: Boxes("a", "b", "c", "some", 1, 0, {}), "unknown cells"),
    "experiment read otherwise": (lambda found: replace(found.experiments[0], reading="as drawn"), "unknown reading"),
    "experiment without deltas": (lambda found: replace(found.experiments[0], deltas=()), "needs deltas"),
    "nothing reproduced": (lambda found: replace(found, statements=()), "needs an experiment"),
    "two of a name": (lambda found: replace(found, sheets=found.sheets[:1] * 2), "the same name"),
    "line that was not computed": (lambda found: Bundle(found.experiments[0], ()).one(), "no line was computed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_validator(case: str, found: Reproduction) -> None:
    make, message = WRONG[case]
    with pytest.raises((InvalidInput, UnknownName), match=message):
        make(found)


def test_statement_that_agrees_needs_no_reason() -> None:
    assert Statement("5", "x", "1", "1", AGREES, "").why == ""


def test_experiment_is_named_by_its_reading(found: Reproduction) -> None:
    labels: list[Experiment] = list(found.experiments)
    assert [each.stem for each in labels] == [
        "adult-as-published",
        "adult-as-defined",
        "bankruptcy",
        "bankruptcy-subset",
    ]
