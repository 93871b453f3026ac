"""What is wrong with a perturbation is said before anything is shown: exit 2, one line, no value of the data."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.noise.perturbations import read_perturbation
from tests.near import near

Capture = pytest.CaptureFixture[str]
HEAD = "count,released,probability\n"
GOOD = f"{HEAD}0,0,1\n1,0,0.5\n1,2,0.5\n2,2,1\n3,3,1\n"
ASKED = ["people.csv", "--qid", "q", "--sensitive", "y", "--levels", "q=a|b|c", "--levels", "y=m|n"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"q": list("aaabbc"), "y": list("mmmmnn")}).to_csv("people.csv", index=False)
    Path("published.csv").write_text("q,y,n\na,m,3\n")
    return tmp_path


BAD = {
    "rows that do not sum to 1": (GOOD.replace("1,2,0.5", "1,2,0.4"), "must add up to 1"),
    "missing entries": (GOOD.replace("1,2,0.5", "1,2,"), "line 4"),
    "the end before the largest count": (GOOD.replace("3,3,1\n", ""), "ends before the largest count"),
    "UTF-16": (GOOD.encode("utf-16"), "cannot be read as text"),
    "bytes that are no text": (bytes(range(256)), "cannot be read as text"),
    "NUL": (GOOD.replace("1,0", "1\x00,0"), "perturbation table"),
}
"""The others are in tests/noise/test_perturbations.py."""
COMMANDS = {
    "assess": ["assess", *ASKED],
    "explain": ["explain", *ASKED],
    "simulate": ["simulate", *ASKED],
    "audit": ["audit", "people.csv", "published.csv", *ASKED[1:], "--released-count", "n"],
    "report": ["report", *ASKED, "--output", "report.html"],
}


def refuse(capsys: Capture, words: list[str], told: str) -> None:
    capsys.readouterr()
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert told in err
    assert not Path("report.html").exists()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_refused(capsys: Capture, name: str) -> None:
    content, told = BAD[name]
    Path("keys.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    refuse(capsys, [*COMMANDS["assess"], "--perturbation", "keys.csv"], told)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_before_it_shows_anything(capsys: Capture, command: str) -> None:
    for name in ("rows that do not sum to 1", "the end before the largest count"):
        content, told = BAD[name]
        Path("keys.csv").write_text(str(content))
        refuse(capsys, [*COMMANDS[command], "--perturbation", "keys.csv"], told)


def test_huge_counts_of_the_table(folder: Path) -> None:
    Path("counts.csv").write_text("q,y,n\na,m,1000000000\na,n,1\nb,n,2\n")
    table = cr.tabulate("counts.csv", "q", "y", count="n")
    found = cr.assess_perturbation(table, "random-rounding:3", measures="local", compare=None)
    assert found.figures[0].certainty[-1].right == near(1e9 + 2 * 2 / 3)  # b is shown as 3 with probability 2/3
    assert found.figures[0].people.mean == near(1e9 * 2 / 3 + 2 * 2 / 3)


def test_a_rule_is_no_file_by_accident() -> None:
    Path("random-rounding:3").write_text(json.dumps({}))
    assert read_perturbation("random-rounding:3").last == 2
