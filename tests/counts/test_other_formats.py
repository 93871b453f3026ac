"""Files of other programs are read as they say they are to be read, or refused in one line that quotes nothing."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts import other_formats
from cellrisk.errors import CellriskError
from cellrisk.system import isolated
from tests.counts.counter import refused
from tests.examples import EVERY_EXAMPLE

pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'files' is not installed")
pytest.importorskip("python_calamine", reason="the extra 'files' is not installed")

SECRET = "Xanthippe"
PEOPLE = pd.DataFrame(
    {
        "sex": [1.0, 2.0, 1.0, np.nan, 9.0, 2.0],
        "age": [30.0, 41.5, 25.0, 60.0, 99.0, 41.5],
        "job": ["smith", "nurse", "", "smith", SECRET, "nurse"],
        "born": [date(1990, 1, 31), date(1984, 2, 1), None, date(1966, 5, 5), date(1990, 1, 31), date(1984, 2, 1)],
    }
)
LABELS = {"sex": {1: "male", 2: "female", 9: "refused"}}


def write_sav(path: Path) -> None:
    pyreadstat.write_sav(
        PEOPLE,
        str(path),
        variable_value_labels={**LABELS, "age": {99: "99 and older"}},
        missing_ranges={"sex": [9]},
        variable_measure={"sex": "nominal", "age": "scale"},
    )


def write_lines(path: Path) -> None:
    records = PEOPLE.astype(object).where(PEOPLE.notna(), None).to_dict("records")
    path.write_text("".join(json.dumps(record, default=str) + "\n" for record in records), encoding="utf-8")


def write_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("__MACOSX/._people.csv", b"\0")
        packed.writestr("folder/people.csv", PEOPLE.to_csv(index=False))


WRITERS: dict[str, Callable[[Path], Any]] = {
    "people.sav": write_sav,
    "people.dta": lambda path: pyreadstat.write_dta(PEOPLE, str(path), variable_value_labels=LABELS),
    "people.xpt": lambda path: pyreadstat.write_xport(PEOPLE, str(path)),
    "people.xlsx": lambda path: PEOPLE.to_excel(path, index=False),
    "people.jsonl": write_lines,
    "people.zip": write_zip,
    "people.feather": lambda path: pyarrow.feather.write_feather(
        pa.Table.from_pandas(PEOPLE.replace({"job": {"": None}})), path
    ),
    "wide.csv": lambda path: PEOPLE.to_csv(path, index=False, encoding="utf-16"),
}
SEXES = {
    "people.sav": ("female", "male", "(missing)"),  # the user has defined 9 as missing
    "people.dta": ("female", "male", "refused", "(missing)"),
    "people.zip": ("1.0", "2.0", "9.0", "(missing)"),
    "wide.csv": ("1.0", "2.0", "9.0", "(missing)"),
}


@pytest.fixture(scope="module", params=WRITERS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / request.param
    WRITERS[request.param](path)
    return path


def test_each_kind_is_counted_as_a_frame_would_be(file: Path) -> None:
    cells = cr.tabulate(file, ["sex", "age"], "job", bins={"age": [0, 40, 60]}, count=False).cells()
    assert cells.domains[0].labels == SEXES.get(file.name, ("1", "2", "9", "(missing)"))
    assert {*cells.levels} == {"smith", "nurse", SECRET, "(missing)"}
    found = {
        (*(domain.labels[code] for domain, code in zip(cells.domains, key, strict=True)), cells.levels[level]): number
        for key, level, number in zip(cells.codes[cells.cell].tolist(), cells.level, cells.count, strict=True)
    }
    spelt = [{1.0: "male", 2.0: "female"}, {1.0: "1", 2.0: "2"}, {1.0: "1.0", 2.0: "2.0"}]
    male, female = next((each[1.0], each[2.0]) for each in spelt if each[1.0] in cells.domains[0].labels)
    assert found[female, "(40, 60]", "nurse"] == 2
    assert found[male, "(0, 40]", "smith"] == found[male, "(0, 40]", "(missing)"] == 1
    assert found["(missing)", "(40, 60]", "smith"] == 1
    assert sum(found.values()) == 6


def test_dates_are_dates(file: Path) -> None:
    labels = cr.tabulate(file, "born", "job", count=False).cells().domains[0].labels
    assert labels == ("1966-05-05", "1984-02-01", "1990-01-31", "(missing)")


def test_a_damaged_file_is_one_line(file: Path, tmp_path: Path) -> None:
    whole, draw = file.read_bytes(), random.Random(5)
    damaged = [whole[: round(len(whole) * share)] for share in (0.01, 0.3, 0.6, 0.95)]
    damaged += [whole[:place] + draw.randbytes(40) + whole[place + 40 :] for place in draw.sample(range(len(whole)), 4)]
    if (
        file.suffix in (*other_formats.STATISTICAL, *other_formats.SPREADSHEETS) and not EVERY_EXAMPLE
    ):  # each starts a process
        damaged = damaged[1::5]
    said = []
    for number, content in enumerate(damaged):
        path = tmp_path / f"{number}{file.name}"
        path.write_bytes(content)
        try:
            cr.tabulate(path, ["sex", "age"], "job", bins={"age": 30}, count=False)
        except CellriskError as refusal:
            said.append(str(refusal))
    assert said
    assert not any(SECRET in each for each in said)


@pytest.mark.slow
def test_a_value_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    """One text among numbers, or one fraction among whole numbers, leaves the labels of the others as they were."""
    for odd in ("text", 2.5, True):
        frame = pd.DataFrame({"home": [1, 2, 10, odd], "job": ["a", "b", "a", "b"]}, dtype=object)
        for rows in (3, 4):
            frame[:rows].to_excel(tmp_path / "people.xlsx", index=False)
            lines = [json.dumps(record) for record in frame[:rows].to_dict("records")]
            (tmp_path / "people.jsonl").write_text("\n".join(lines))
            for name in ("people.xlsx", "people.jsonl"):
                labels = cr.tabulate(tmp_path / name, "home", "job", count=False).cells().domains[0].labels
                assert {"1", "2", "10"} <= {*labels}


@pytest.mark.slow
def test_labels_of_several_values_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "people.sav"
    frame = pd.DataFrame({"home": [1.0, 2.0, 3.0, 4.0], "job": ["a", "b", "a", "b"]})
    pyreadstat.write_sav(frame, str(path), variable_value_labels={"home": {1: "town", 2: "town", 3: "farm"}})
    labels = cr.tabulate(path, "home", "job", count=False).cells().domains[0].labels
    assert {*labels} == {"town (1)", "town (2)", "farm", "4"}


DAMAGE = {14: 0, 36: 121, 156: 160, 202: 77, 204: 36, 222: 4, 301: 0, 441: 115, 480: 32, 620: 64, 668: 114}
"""Bytes of a file of SPSS that end the process in which pyreadstat 1.3 reads it."""


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_that_ends_its_reader_is_refused(
    killed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.sav"
    write_sav(path)
    content = bytearray(path.read_bytes())
    for place, byte in DAMAGE.items():
        content[place - 1] = byte
    if killed:  # whatever the library makes of that file
        monkeypatch.setattr(isolated, "START", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    else:
        path.write_bytes(content)
    assert main(["inspect", str(path), "--qid", "sex", "--sensitive", "job", "--count", "none"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cellrisk: the file cannot be read, or is damaged; got ")
    assert err.count("\n") == 1


class TestSheets:
    @pytest.fixture
    def workbook(self, tmp_path: Path) -> Path:
        path = tmp_path / "people.xlsx"
        with pd.ExcelWriter(path) as writer:
            PEOPLE.to_excel(writer, sheet_name="2025", index=False)
            PEOPLE[:3].to_excel(writer, sheet_name="2026", index=False)
        return path

    def test_a_sheet_is_named(self, workbook: Path) -> None:
        assert cr.tabulate(workbook, "age", "job", table="2026", count=False).n_records == 3

    def test_which_one_is_asked(self, workbook: Path) -> None:
        for sheet in (None, "2024"):
            with refused("no-table") as refusal:
                cr.tabulate(workbook, "age", "job", table=sheet, count=False)
            assert "2025, 2026" in str(refusal.value)


class TestZips:
    def write(self, path: Path, **members: bytes) -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in members.items():
                packed.writestr(name.replace("_", "."), content)
        return path

    def test_one_table_is_expected(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "two.zip", a_csv=b"age,job\n1,a\n", b_csv=b"age,job\n1,a\n")
        with refused("zip"):
            cr.tabulate(path, "age", "job")
        with refused("zip"):
            cr.tabulate(self.write(tmp_path / "odd.zip", a_exe=b"MZ"), "age", "job")

    def test_a_bomb_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = self.write(tmp_path / "bomb.zip", a_csv=b"age,job\n" + b"1,a\n" * 100_000)
        usage = type("Usage", (), {"free": 500_000})
        monkeypatch.setattr("cellrisk.counts.files.shutil.disk_usage", lambda folder: usage)
        packed = tmp_path / "bomb.csv.gz"
        packed.write_bytes(gzip.compress(b"age,job\n" + b"1,a\n" * 100_000))
        for bomb in (path, packed):
            with refused("too-large"):
                cr.tabulate(bomb, "age", "job")


class TestEncodings:
    TEXT = "age,job\n1,Müller\n2,Bäcker\n1,Müller\n"

    def test_latin_1_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "people.csv"
        path.write_bytes(self.TEXT.encode("latin-1"))
        with refused("encoding"):
            cr.tabulate(path, "age", "job")
        table = cr.tabulate(path, "age", "job", encoding="latin-1")
        assert {*table.cells().levels} == {"Müller", "Bäcker"}, "and again when its cells are asked for"

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
    def test_a_mark_is_recognised(self, tmp_path: Path, encoding: str) -> None:
        path = tmp_path / "people.tsv"
        path.write_bytes(self.TEXT.replace(",", "\t").encode(encoding))
        assert {*cr.tabulate(path, "age", "job").cells().levels} == {"Müller", "Bäcker"}

    @pytest.mark.parametrize("encoding", ["no-such", "base64", "", "hex", "a\0b"])
    def test_unknown_encodings(self, tmp_path: Path, encoding: str) -> None:
        path = tmp_path / "people.csv"
        path.write_text(self.TEXT, encoding="utf-8")
        with refused("encoding"):
            cr.tabulate(path, "age", "job", encoding=encoding)

    def test_text_that_is_not_in_the_encoding(self, tmp_path: Path) -> None:
        path = tmp_path / "people.csv"
        path.write_bytes(self.TEXT.encode("latin-1"))
        with refused("encoding") as refusal:
            cr.tabulate(path, "age", "job", encoding="shift_jis")
        assert "ller" not in str(refusal.value)

    def test_what_is_no_text(self, tmp_path: Path) -> None:
        PEOPLE.to_parquet(tmp_path / "people.parquet")
        with refused("encoding"):
            cr.tabulate(tmp_path / "people.parquet", "age", "job", encoding="latin-1")
        with refused("encoding"):
            cr.tabulate(PEOPLE, "age", "job", encoding="latin-1")


class TestJsonLines:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            (f'{{"age": 1, "job": "a"}}\n{{"age": "{SECRET}\n', "damaged"),
            (f'{{"age": 1, "job": 2}}\n["{SECRET}"]\n', "damaged"),
            (f'{{"age": 1, "job": ["{SECRET}"]}}\n', "nested"),
            ('{"age": 1, "job": ' + "[" * 100_000, "damaged"),
            ('{"age": 1}\n', "no-column"),
        ],
        ids=["cut", "list", "nested", "deep", "lacking"],
    )
    def test_refusals(self, tmp_path: Path, text: str, code: str) -> None:
        path = tmp_path / "people.jsonl"
        path.write_text(text)
        with refused(code) as refusal:
            cr.tabulate(path, "age", "job")
        assert SECRET not in str(refusal.value)


class TestStandardInput:
    def run(self, monkeypatch: pytest.MonkeyPatch, content: bytes) -> int:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return main(["inspect", "-", "--qid", "sex", "--sensitive", "job", "--count", "none"])

    def test_a_pipe_is_read(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        parquet = io.BytesIO()
        PEOPLE.to_parquet(parquet)
        for content in (PEOPLE.to_csv(index=False).encode(), parquet.getvalue()):
            assert self.run(monkeypatch, content) == 0
            assert "6 records" in capsys.readouterr().out

    def test_nothing_is_left_and_bad_bytes_are_one_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        for content in (b"", b"\0\1\2", SECRET.encode()):
            assert self.run(monkeypatch, content) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert SECRET not in said
        assert list(tmp_path.iterdir()) == []


def test_one_at_a_time(tmp_path: Path) -> None:
    for name in ("a.sav", "b.sav"):
        write_sav(tmp_path / name)
    with refused("file-kind"):
        cr.tabulate(tmp_path / "*.sav", "sex", "job")
