"""CSV files in spreadsheets: texts that would be formulas are told, or written safe; numbers stay as they are."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis.strategies import characters, floats, integers, lists, none, one_of, sampled_from, text, tuples

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.show.wording.release import say_formulas
from cellrisk.system import spreadsheets
from cellrisk.system.spreadsheets import make_safe, starts_formula, tell_formulas, write_rows

STARTS = sampled_from(spreadsheets.STARTS)
WORDS = text(characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=5)
TEXTS = one_of(WORDS, tuples(STARTS, WORDS).map("".join), tuples(WORDS, STARTS, WORDS).map("".join))
CELLS = one_of(none(), integers(-9, 9), floats(allow_nan=False, allow_infinity=False), TEXTS)
EVIL = '=HYPERLINK("http://x")'


def read(written: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(written, newline="")))


@given(lists(TEXTS, min_size=2, max_size=2), lists(lists(CELLS, min_size=2, max_size=2), max_size=5))
def test_no_cell_of_a_safe_file_is_a_formula_and_none_is_lost(names: list[str], rows: list[list[Any]]) -> None:
    safe = read(write_rows(names, rows, spreadsheet_safe=True))
    plain = read(write_rows(names, rows))
    assert not any(starts_formula(cell) for row in safe for cell in row)
    assert [[make_safe(cell) for cell in row] for row in plain] == safe
    for given_row, row in zip([names, *rows], plain, strict=True):
        assert all(float(cell) == wanted for cell, wanted in zip(row, given_row, strict=True) if is_number(wanted))


def is_number(value: object) -> bool:
    return isinstance(value, int | float)


def test_what_a_spreadsheet_computes_and_numbers_that_it_leaves() -> None:
    computed = ["-5 to 0", "+49 30 1", "--5", "-5-5", "=5", "@a", "\t=1", "\r=1", "-x", "\uff1d1"]
    numbers = ["-5", "+5", "-5.25", "-.5", "+1e-9", "-0"]
    assert [text for text in computed + numbers if starts_formula(text)] == computed


def test_a_file_says_how_many(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(write_rows(["=a", "b"], [["-1", "-x"], [None, "c"]]), encoding="utf-8")
    assert str(tell_formulas(path)).startswith("2 cells of a.csv start a formula in a spreadsheet: ")
    path.write_text(write_rows(["=a", "b"], [["-1", "-x"]], spreadsheet_safe=True), encoding="utf-8")
    assert tell_formulas(path) is None


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people.csv"
    rows = [["f" if place % 2 else "m", "cook" if place % 3 else EVIL] for place in range(60)]
    path.write_text(write_rows(["sex", "@job"], rows), encoding="utf-8")
    return path


COLUMNS = ["--qid", "sex", "--sensitive", "@job"]


@pytest.mark.parametrize(
    "command",
    [["curve", "--epsilon", "0.5,1"], ["utility", "--epsilon", "1", "--ways", "1", "--releases", "2"]],
    ids=["curve", "utility"],
)
def test_curves_and_utilities(people: Path, tmp_path: Path, capsys: Any, command: list[str]) -> None:
    output = tmp_path / "out.csv"
    asked = [command[0], str(people), *COLUMNS, *command[1:], "--csv", str(output)]
    assert main(asked) == 0
    assert "start a formula in a spreadsheet" in capsys.readouterr().err
    assert main([*asked, "--spreadsheet-safe"]) == 0
    assert "formula" not in capsys.readouterr().err
    assert tell_formulas(output) is None
    assert "'@job" in output.read_text(encoding="utf-8")


class TestReleases:
    LEVELS = ("--levels", "sex=f|m", "--levels", f"@job=cook|{EVIL}", "--epsilon", "1")

    def release(self, people: Path, output: Path, *more: str) -> dict[str, Any]:
        pytest.importorskip("opendp", reason="the extra 'release' is not installed")
        given = ["release", str(people), *COLUMNS, *self.LEVELS, "--output", str(output), *more]
        assert main(given) == 0
        described: dict[str, Any] = json.loads(Path(f"{output}.json").read_text(encoding="utf-8"))
        return described

    def test_it_is_said_or_written_safe(self, people: Path, tmp_path: Path, capsys: Any) -> None:
        plain, safe = tmp_path / "plain.csv", tmp_path / "safe.csv"
        said = self.release(people, plain)
        assert "spreadsheet_safe" not in said
        assert any(
            "a spreadsheet would take for formulas: write it with --spreadsheet-safe" in s for s in said["statements"]
        )
        assert "--spreadsheet-safe" in capsys.readouterr().out
        assert tell_formulas(plain) is not None
        said = self.release(people, safe, "--spreadsheet-safe")
        assert said["spreadsheet_safe"] == ["@job"]
        assert any("an apostrophe stands before" in statement for statement in said["statements"])
        assert said["labels"]["@job"] == ["cook", EVIL]  # the description names them as they were declared
        assert tell_formulas(safe) is None
        frame = pd.read_csv(safe)
        assert set(frame["'@job"]) == {"cook", f"'{EVIL}"}
        assert str(frame["count"].dtype) == "int64"

    def test_what_was_changed_is_not_read_back_in_error(self, people: Path, tmp_path: Path, capsys: Any) -> None:
        safe = tmp_path / "safe.csv"
        self.release(people, safe, "--spreadsheet-safe")
        assert main(["audit", str(people), str(safe), *COLUMNS]) == 2
        assert "was written for spreadsheets" in capsys.readouterr().err

    def test_the_remark_is_about_labels_and_not_about_rows(self, tmp_path: Path) -> None:
        """A label that was declared is spoken of whether any record has it or not."""
        pytest.importorskip("opendp", reason="the extra 'release' is not installed")
        said = set()
        for jobs in (["cook", "cook"], ["cook", EVIL]):
            levels = {"sex": ["f", "m"], "job": ["cook", EVIL]}
            table = cr.tabulate(pd.DataFrame({"sex": ["f", "m"], "job": jobs}), ["sex"], "job", levels=levels)
            said.add(tuple(say_formulas(cr.release(table, cr.Geometric(epsilon=1.0), dense=False))))
        assert len(said) == 1
        assert () not in said
