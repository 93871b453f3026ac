"""The command: what it writes, what it fetches, and what it refuses in one line."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from reproduction import __main__ as command
from reproduction.__main__ import main
from reproduction.bankruptcy import Rows
from reproduction.experiments import Results

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture
def computed(results: Results, monkeypatch: Patch) -> None:
    """Nothing is computed again."""
    small = Results(results.rows, results.adult)
    monkeypatch.setattr(command, "compute", lambda rows, *_, **__: small if rows is None else results)


@pytest.fixture
def undrawn(monkeypatch: Patch) -> None:
    monkeypatch.setattr(command, "draw_all", lambda *_: iter([("figure-2-cell-sizes", "Figure 2: cell sizes")]))


@pytest.mark.slow
@pytest.mark.usefixtures("computed")
def test_everything_is_written(rows: Rows, tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setattr(command, "fetch_bankruptcy", lambda: rows)
    assert main(["--output", str(tmp_path / "new" / "out")]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Fetching Qualitative Bankruptcy from UCI (https://")
    folder = tmp_path / "new" / "out"
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert out.startswith(found["sentence"])
    names = [name for name, _ in found["pictures"]]
    assert len(names) == 10
    others = {"index.html", "results.json", "statements.csv"}
    assert {path.name for path in folder.iterdir()} == others | {
        f"{n}.{e}" for n in names for e in ("svg", "png", "csv")
    }
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert all((folder / name).is_file() for name in re.findall(r'(?:src|href)="([^"]+)"', page))
    assert "<script" not in page
    with (folder / "statements.csv").open(encoding="utf-8", newline="") as stream:
        assert list(csv.DictReader(stream)) == found["statements"]
    with (folder / "figure-3-adult-as-published.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 2 * (7 + 4 * (3 + 7))  # one mechanism without, two with four deltas
    assert [each["cells"] for each in found["experiments"]][:2] == [5974, 5009]


@pytest.mark.usefixtures("computed", "undrawn")
def test_offline_touches_no_network(tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setattr(command, "fetch_bankruptcy", lambda: pytest.fail("the network was touched"))
    assert main(["--offline", "--output", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "Bankruptcy and its subset are missing: nothing was fetched. Give the data with --bankruptcy FILE" in out
    assert "Of 39 numbers" in out
    assert main(["--offline", "--output", str(tmp_path / "out")]) == 0  # an earlier reproduction is replaced


def test_wrong_settings_are_refused_in_one_line(tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "records.txt"
    other.write_text("P,P,P,P,P,P,B\n", encoding="utf-8")
    place = ("--output", str(tmp_path / "out"))
    for given, message in (
        (("--bankruptcy", str(other), *place), "not the 250 records"),
        (("--offline", "--points", "1", *place), "--points is too small"),
        (("--offline", "--releases", "0", *place), "--releases is too small"),
        (("--offline", "--seed", "-1", *place), "--seed is too small"),
        (("--offline", "--output", str(tmp_path)), "the output folder holds something else"),
    ):
        assert main(given) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), err.startswith("reproduction: ")) == ("", 1, True)
        assert message in err
    assert not (tmp_path / "out").exists()
