"""The record of an audit for output checkers: what it says, what it keeps to itself, and that ACRO loads it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from tests.near import near
from tests.publish.auditing.test_peers import COLUMNS, KEYS, ORIGINAL
from tests.refusals import refused

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("acro_script.py")
ABSENT = "acro is not installed; run: rm -rf .venv-peers && make peers"

OTHER = ORIGINAL.assign(town="south", job="tailor")
"""Other people, of whom the same release is audited."""
RELEASED = pd.DataFrame(
    [("f", "north", "cook", 2), ("m", "north", "smith", 1), ("m", "south", "cook", 3), ("m", "south", "smith", 1)],
    columns=[*COLUMNS, "n"],
)


def audit(original: pd.DataFrame = ORIGINAL, **more: Any) -> cr.Audit:
    levels = {"job": ["cook", "smith", "tailor"]}
    return cr.audit(cr.tabulate(original, KEYS, "job", levels=levels), RELEASED, count="n", **more)


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results.json").read_text(encoding="utf-8")))


def test_the_record_by_hand(tmp_path: Path) -> None:
    """Women of the north are shown as cooks alone, three of them; men of the north as one smith, three of them."""
    audit().save_acro(tmp_path / "results.json", exception="They agreed.", comments=["Seen by the board."])
    assert (tmp_path / "cellrisk_0_0.csv").read_text(encoding="utf-8").splitlines() == [
        '"sex, town",cook,smith',
        '"sex f, town north",2,0',
        '"sex m, town north",0,1',
        '"sex m, town south",3,1',
    ]
    (record,) = read(tmp_path)["results"].values()
    assert record["status"] == "review"
    assert "6 of 12 people (50.0%) have their job revealed, no limit was set; shown-alone: 2 cells" in record["summary"]
    assert record["properties"]["given_away"] == 6
    assert record["properties"]["share_given_away"] == near(0.5)
    assert record["exception"] == "They agreed."
    assert "must not leave with the table" in record["comments"][0]
    assert record["comments"][-1] == "Seen by the board."
    (file,) = record["files"]
    assert file["sdc"]["cells"] == {"shown-alone": [[0, 0], [1, 1]], "shown-alone-as-1": [[1, 1]]}
    assert file["sdc"]["summary"] == {"shown-alone": 2, "shown-alone-as-1": 1}
    assert record["outcome"]["smith"] == {
        "sex f, town north": "ok",
        "sex m, town north": "shown-alone; shown-alone-as-1; ",
        "sex m, town south": "ok",
    }


@pytest.mark.parametrize(("limit", "status"), [(None, "review"), (0.5, "pass"), (0.49, "fail"), (0.0, "fail")])
def test_the_status_is_that_of_the_limit(limit: float | None, status: str, tmp_path: Path) -> None:
    audit().save_acro(tmp_path / "results.json", max_risk=limit)
    assert read(tmp_path)["results"]["cellrisk_0"]["status"] == status


def test_table_and_flags_tell_nothing_of_the_original(tmp_path: Path) -> None:
    """The same release of other people, with a label and keys that the release does not show, has the same ones."""
    kept = []
    for name, original in (("one", ORIGINAL), ("other", OTHER)):
        audit(original).save_acro(tmp_path / name / "results.json")
        (record,) = read(tmp_path / name)["results"].values()
        kept.append(((tmp_path / name / "cellrisk_0_0.csv").read_bytes(), record["files"], record["outcome"]))
        words = json.dumps([record["files"], record["outcome"], record["summary"], record["comments"]])
        assert "tailor" not in words
        assert "f, town south" not in words
    assert kept[0] == kept[1]


def test_files_are_for_their_owner_and_have_checksums(tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    audit().save_acro(folder / "results.json")
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert names == [
        *("cellrisk_0_0.csv", "checksums/cellrisk_0_0.csv.txt", "checksums/results.json.txt", "results.json"),
    ]
    for name in ("cellrisk_0_0.csv", "results.json"):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert (folder / "checksums" / f"{name}.txt").read_text(encoding="utf-8") == digest
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_a_record_is_added_to_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    there = {"version": "0.4.8", "results": {"output_0": {"uid": "output_0", "status": "pass"}}, "session": 1}
    path.write_text(json.dumps(there), encoding="utf-8")
    audit().save_acro(path)
    audit().save_acro(path)
    found = read(tmp_path)
    assert list(found["results"]) == ["output_0", "cellrisk_0", "cellrisk_1"]
    assert {name: found[name] for name in ("version", "session")} == {"version": "0.4.8", "session": 1}
    assert found["results"]["output_0"] == there["results"]["output_0"]  # type: ignore[index]


@pytest.mark.parametrize("content", ["", "[]", "[" * 200_000, '{"version": 1, "results": {}}', '{"version": "1.0.2"}'])
def test_another_results_file_is_left_alone(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content, encoding="utf-8")
    with refused("not-acro"):
        audit().save_acro(path)
    assert path.read_text(encoding="utf-8") == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="pipes are those of POSIX")
def test_a_pipe_in_the_place_of_the_results_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    os.mkfifo(path)
    with refused("not-acro"):
        audit().save_acro(path)
    assert list(tmp_path.iterdir()) == [path]


def test_other_names_and_limits_are_refused(tmp_path: Path) -> None:
    with refused("file-name"):
        audit().save_acro(tmp_path / "record.json")
    with refused("range"):
        audit().save_acro(tmp_path / "results.json", max_risk=2)
    assert not list(tmp_path.iterdir())


def test_what_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cellrisk.publish.auditing import acro_export

    usual = acro_export.write_whole

    def fail(path: Path, content: str) -> Path:
        if path.name == "results.json":
            raise OSError("no space")
        return usual(path, content)

    monkeypatch.setattr(acro_export, "write_whole", fail)
    with pytest.raises(OSError, match="no space"):
        audit().save_acro(tmp_path / "results.json")
    assert [path.name for path in tmp_path.rglob("*")] == ["checksums"]


def run_command(folder: Path, *more: str) -> int:
    ORIGINAL.to_csv(folder / "people.csv", index=False)
    RELEASED.to_csv(folder / "released.csv", index=False)
    files = [str(folder / "people.csv"), str(folder / "released.csv")]
    return main(["audit", *files, "--qid", "sex,town", "--sensitive", "job", "--released-count", "n", *more])


def test_the_command_writes_it_and_stops_above_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "outputs" / "results.json"
    assert run_command(tmp_path, "--acro", str(place), "--max-risk", "0.4", "--exception", "They agreed.") == 3
    said = capsys.readouterr()
    assert said.err == "cellrisk: the release reveals the job of 50.0% of the people, above the limit 40%\n"
    record = read(place.parent)["results"]["cellrisk_0"]
    assert (record["status"], record["exception"]) == ("fail", "They agreed.")
    assert record["command"].startswith("cellrisk audit people.csv released.csv --qid sex,town")
    assert str(tmp_path) not in json.dumps(record)
    assert run_command(tmp_path, "--max-risk", "0.5") == 0


def test_a_refused_audit_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "new" / "outputs" / "results.json"
    assert run_command(tmp_path, "--acro", str(place), "--epsilon", "1", "--belief", "none") == 2
    assert "belief" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "released.csv"]
    assert run_command(tmp_path, "--acro", str(place)) == 0
    assert place.exists()


@pytest.mark.slow
def test_acro_loads_it(tmp_path: Path) -> None:
    given = os.environ.get("CELLRISK_PEERS")
    python = Path(given) if given else REPOSITORY / ".venv-peers" / "bin" / "python"
    if not python.exists():
        pytest.skip(ABSENT)
    audit(mechanism="geometric", epsilon=1.0).save_acro(tmp_path / "results.json", max_risk=0.1, exception="Agreed.")
    run = subprocess.run(
        [python, SCRIPT, tmp_path],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "No module named 'acro'" in run.stderr:
        pytest.skip(ABSENT)
    assert run.returncode == 0, run.stderr
    (found,) = json.loads(run.stdout).values()
    (record,) = read(tmp_path)["results"].values()
    assert (found["status"], found["type"], found["exception"]) == ("fail", "table", "Agreed.")
    for name in ("summary", "command", "comments", "properties", "outcome"):
        assert found[name] == record[name]
    # The flags are positions in the table that ACRO loads, whose first column names the rows.
    for row, column in found["sdc"]["cells"]["shown-alone"]:
        counts = found["table"]["data"][row][1:]
        assert counts[column] > 0
        assert sum(count > 0 for count in counts) == 1
    assert found["properties"]["mechanism"]["epsilon"] == near(1.0)
