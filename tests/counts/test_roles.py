"""What columns are likely to be, and the command that is suggested: it must run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cellrisk.cli import main
from cellrisk.counts.preview import Preview, PreviewedColumn
from cellrisk.counts.roles import Columns, suggest_role


@pytest.mark.parametrize(
    ("name", "kind", "levels", "share", "role"),
    [
        ("age", "number", 73, 0.01, "quasi-identifier"),
        ("postcode", "text", 5000, 0.2, "none"),
        ("postcode", "number", None, 0.2, "quasi-identifier"),
        ("Diagnosis", "text", 30, 0.01, "sensitive"),
        ("householdIncome", "number", 9, 0.01, "sensitive"),
        ("income", "number", 9000, 0.3, "quasi-identifier"),
        ("patient_id", "number", None, 1.0, "identifier"),
        ("remark", "text", None, 0.99, "identifier"),
        ("n_people", "number", 40, 0.5, "counts"),
        ("country", "text", 1, 0.01, "none"),
        ("picture", "other", None, 0.0, "none"),
    ],
)
def test_roles(name: str, kind: str, levels: int | None, share: float, role: str) -> None:
    assert suggest_role(PreviewedColumn(name, kind, levels, 0, share)) == role


def test_what_is_to_be_explained_stands_last() -> None:
    columns = [PreviewedColumn(name, "text", 3, 0, 0.1) for name in ("sex", "region", "opinion")]
    found = Columns("people.csv", Preview(30, (*columns, PreviewedColumn("day", "date", 3, 0, 0.1))))
    assert found.roles == {"sex": "quasi-identifier", "region": "quasi-identifier", "opinion": "sensitive"} | {
        "day": "quasi-identifier"
    }
    assert found.command == "cellrisk inspect people.csv --qid sex,region,day --sensitive opinion"


def test_nothing_to_suggest() -> None:
    found = Columns("people.csv", Preview(30, (PreviewedColumn("sex", "text", 2, 0, 0.1),)))
    assert found.command is None
    assert "1 column in people.csv. Name the quasi-identifiers and the sensitive attribute" in found.headline


def test_the_next_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "people and counts.csv"
    rows = [f"{age},{'fm'[age % 2]},{'ab'[age % 3 == 0]},{age % 4 + 1}" for age in range(20, 60)]
    path.write_text("\n".join(["age,sex,diagnosis,patients", *rows]))
    assert main(["inspect", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 40
    assert [each["likely_role"] for each in found["columns"]] == [*["quasi-identifier"] * 2, "sensitive", "counts"]
    assert main(shlex.split(found["next"])[1:]) == 0
    assert "100 records in" in capsys.readouterr().out
    assert main(["inspect", str(path)]) == 0
    assert "If the suggested roles are right, go on with: cellrisk inspect" in capsys.readouterr().out
