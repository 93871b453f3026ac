"""Numbers on the command line: as people write them, and as many as no machine can work off."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellrisk.cli.parsing import parse_whole
from cellrisk.errors import InvalidInput
from tests.commands import refuse, run

Capture = pytest.CaptureFixture[str]
TABLE = ("people.csv", "--qid", "sex", "--sensitive", "job")


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["sex,job", *["f,cook"] * 9, *["m,smith"] * 8, *["m,cook"] * 3]
    (tmp_path / "people.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ["simulate", "assess"])
@pytest.mark.parametrize("given", ["1e12", "1000000000000", "9" * 40])
def test_huge_counts_are_refused_for_what_they_are(command: str, given: str, capsys: Capture) -> None:
    said = refuse(capsys, command, *TABLE, "--epsilon", "1", "--releases", given)
    assert "must be a whole number from" in said
    assert "got 1,000,000,000,000" in said or "got a number of more than 18 digits" in said


def test_as_many_as_there_are_is_no_fault(capsys: Capture) -> None:
    code, out, _ = run(capsys, "explain", *TABLE, "--epsilon", "1", "--top", "1e12", "--json")
    assert (code, out.count('"key"')) == (0, 4)  # two cells, by risk and by what is caused


def test_a_message_shows_no_list_of_thousands(capsys: Capture) -> None:
    edges = "/".join(map(str, range(5000)))
    columns = ("--qid", "job", "--sensitive", "sex")
    assert len(refuse(capsys, "inspect", "people.csv", *columns, "--bin", f"job={edges}")) < 500


def test_whole_numbers_as_people_write_them() -> None:
    assert (parse_whole("1e6"), parse_whole("1_000")) == (10**6, 1000)
    for given in ("1.5", "1e400", "nan", "inf", "", "ten", "1e-3"):
        with pytest.raises(InvalidInput, match=r"must be a (whole )?number"):
            parse_whole(given)
