"""Counts that no machine can work off are refused at once, with that reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.cli.parsing import parse_whole
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import MOST_RELEASES, require_whole_number

TABLE = ("people.csv", "--qid", "sex", "--sensitive", "job")
HUGE = {
    "simulate": ("simulate", *TABLE, "--epsilon", "1", "--releases"),
    "assess": ("assess", *TABLE, "--epsilon", "1", "--measure", "local", "--releases"),
}


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["sex,job", *["f,cook"] * 9, *["m,smith"] * 8, *["m,cook"] * 3]
    (tmp_path / "people.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", HUGE)
def test_huge_counts_are_refused_for_what_they_are(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("1e12", "1000000000000", "9" * 40):
        assert main([*HUGE[case], given]) == 2
        said = capsys.readouterr().err
        assert "must be a whole number from" in said
        assert "got 1,000,000,000,000" in said or "got a number of more than 18 digits" in said


def test_so_they_are_in_python() -> None:
    with pytest.raises(InvalidInput, match=f"to {MOST_RELEASES:,}; got 1,000,000,000,000"):
        cr.simulate(cr.tabulate("people.csv", "sex", "job"), cr.Geometric(epsilon=1.0), releases=10**12)


def test_as_many_as_there_are_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *TABLE, "--epsilon", "1", "--top", "1e12", "--json"]) == 0
    assert capsys.readouterr().out.count('"key"') == 4  # two cells, by risk and by what is caused


def test_grids_and_edges(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curve", *TABLE, "--epsilon", "0.1:1:1e12"]) == 2
    assert "2 to 100,000 points" in capsys.readouterr().err
    edges = "/".join(map(str, range(5000)))
    assert main(["inspect", "people.csv", "--qid", "job", "--sensitive", "sex", "--bin", f"job={edges}"]) == 2
    assert len(capsys.readouterr().err) < 500


def test_whole_numbers_as_people_write_them() -> None:
    assert parse_whole("1e6") == 10**6
    assert parse_whole("1_000") == 1000
    for given in ("1.5", "1e400", "nan", "inf", "", "ten", "1e-3"):
        with pytest.raises(InvalidInput, match=r"must be a (whole )?number"):
            parse_whole(given)
    with pytest.raises(InvalidInput, match="from 1 to 5; got 6"):
        require_whole_number("ways", 6, 1, 5)
