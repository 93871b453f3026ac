"""The record for the registry of deployments: YAML that says what the report decides, for whichever unit of privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import cellrisk as cr
from cellrisk.cli import main
from tests.near import near

ROWS = pd.DataFrame({"who": [1, 1, 2, 3, 3, 4], "town": [*"aabbba"], "trade": [*"xyxyxx"]})
LEVELS = {"town": ["a", "b"], "trade": ["x", "y"]}
TITLE = 'A "title": {x}\n- # \u202e &amp; é'


def record_of(unit: dict[str, Any], **given: Any) -> dict[str, Any]:
    table = cr.tabulate(ROWS, "town", "trade", levels=LEVELS, **unit)
    found = yaml.safe_load(cr.report(table, **given).record)
    assert found["url_slug"] == "release"
    return dict(found["deployment"])


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(
    ("unit", "kind"),
    [({}, "Record"), ({"contributions": 2}, "Person"), ({"person": "who", "contributions": 2}, "Person")],
)
def test_a_record_states_unit_guarantee_and_noise(unit: dict[str, Any], kind: str, public: bool) -> None:
    found = record_of(unit, mechanism="geometric", epsilon=0.5, public=public)
    assert found["privacy_loss"]["privacy_unit"] == kind
    assert found["privacy_loss"]["privacy_unit_details"].startswith(f"One {kind.lower()}")
    assert ".." not in found["privacy_loss"]["privacy_unit_details"]
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": near(0.5)}
    assert found["dp_variant"]["variant_name"] == "Pure DP"
    assert f"b = {2 * (2 if unit else 1)}, in counts" in found["implementation"]["mechanisms"]
    assert found["basic"]["intended_use"] == "to fill"


def test_a_delta_is_a_number_for_every_reader_of_yaml() -> None:
    found = record_of({}, mechanism="discrete-gaussian", epsilon=1.0, delta=1e-7)
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": near(1.0), "delta": near(1e-7)}
    assert found["dp_variant"]["variant_name"] == "Approximate DP"


def test_a_title_stays_a_text() -> None:
    name = record_of({}, epsilon=1.0, title=TITLE)["basic"]["name"]
    assert name.startswith('A "title": {x}')
    assert name.endswith("&amp; é")


def test_a_public_record_is_that_of_neighbouring_tables() -> None:
    tables = [cr.tabulate(rows, "town", "trade", levels=LEVELS) for rows in (ROWS, ROWS[1:])]
    one, other = (cr.report(table, epsilon=1.0, public=True).record for table in tables)
    assert one == other


def test_a_perturbation_has_no_record(tmp_path: Path) -> None:
    made = cr.report(cr.tabulate(ROWS, "town", "trade", levels=LEVELS), perturbation="random-rounding:3")
    with pytest.raises(cr.InvalidInput) as refused:
        made.save_record(tmp_path / "record.yaml")
    assert refused.value.code == "no-record"
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("rows.csv", index=False)
    asked = ["report", "rows.csv", "--qid", "town", "--sensitive", "trade", "--output", "report.html"]
    assert main([*asked, "--epsilon", "1", "--registry", "record.yaml"]) == 0
    assert "The record for the registry is written to record.yaml." in capsys.readouterr().out
    assert yaml.safe_load(Path("record.yaml").read_text(encoding="utf-8"))["deployment"]["basic"]
    assert Path("record.yaml").stat().st_mode & 0o077 == 0
    for wrong in (
        ["--epsilon", "1", "--registry", "a.txt"],
        ["--perturbation", "random-rounding:3", "--registry", "a.yaml"],
    ):
        assert main([*asked, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not Path("a.yaml").exists()
