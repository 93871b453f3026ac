"""An output that is a link is refused by every command: it is neither followed nor replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.repeat.ledger import Ledger
from tests.commands import refusing

COLUMNS = ("people.csv", "--qid", "sex", "--sensitive", "job")
LEVELS = ("--levels", "sex=f|m", "--levels", "job=cook|smith")
AT = ("--mechanism", "geometric", "--epsilon", "1")
SET = """
sensitive = "job"
source = "people.csv"
epsilon = 1.0
levels = { sex = ["f", "m"], job = ["cook", "smith"] }
[[table]]
qid = "sex"
"""
LEDGER = ("--ledger", "l.db")
COMMANDS: dict[str, tuple[str, ...]] = {
    "assess": ("assess", *COLUMNS, *AT, "--plot", "out.svg"),
    "inspect": ("inspect", *COLUMNS, "--plot", "out.svg"),
    "curve to a picture": ("curve", *COLUMNS, "--epsilon", "0.1,1", "--plot", "out.svg"),
    "curve to numbers": ("curve", *COLUMNS, "--epsilon", "0.1,1", "--csv", "out.csv"),
    "choose": ("choose", *COLUMNS, "--max-risk", "0.5", "--plot", "out.svg"),
    "utility": ("utility", *COLUMNS, "--epsilon", "1", "--csv", "out.csv"),
    "report": ("report", *COLUMNS, *AT, "--output", "out.html"),
    "public": ("report", *COLUMNS, *LEVELS, *AT, "--public", "--output", "out.html"),
    "release": ("release", *COLUMNS, *LEVELS, *AT, "--output", "out.csv"),
    "release by force": ("release", *COLUMNS, *LEVELS, *AT, "--force", "--output", "out.csv"),
    "recorded": ("release", *COLUMNS, *LEVELS, *AT, *LEDGER, "--output", "out.csv"),
    "recorded by force": ("release", *COLUMNS, *LEVELS, *AT, "--force", *LEDGER, "--output", "out.csv"),
    "description": ("release", *COLUMNS, *LEVELS, *AT, "--force", "--output", "out.csv"),
    "recorded description": ("release", *COLUMNS, *LEVELS, *AT, "--force", *LEDGER, "--output", "out.csv"),
    "set": ("together", "release", "set.toml", "--output", "out"),
    "recorded set": ("together", "release", "set.toml", *LEDGER, "--output", "out"),
    "report on a set": ("together", "report", "set.toml", "--output", "out.html"),
    "together": ("together", "assess", "set.toml", "--plot", "out.svg"),
    "audit": ("audit", *COLUMNS[:1], "people.csv", *COLUMNS[1:], "--acro", "results.json"),
    "demo": ("demo", "--save", "out.parquet"),
    "export": ("ledger", "export", "l.db", "--output", "out.jsonl"),
    "ledger risk": ("ledger", "risk", "l.db", *COLUMNS[:1], *COLUMNS[1:], "--plot", "out.svg"),
}
EXISTS = "the output folder exists"
OTHER_WORDS = {"set": EXISTS, "recorded set": EXISTS}
TARGETS = ("victim.txt", "nowhere.txt", "folder")


@pytest.fixture(autouse=True)
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,job\n" + "f,cook\nf,smith\nm,cook\nm,cook\n" * 3)
    Path("set.toml").write_text(SET)
    Path("victim.txt").write_text("keep me")
    Path("folder").mkdir()
    with Ledger("l.db", create=True) as ledger:
        ledger.add(attribute="job", quasi_identifiers="sex", loss=cr.Geometric(epsilon=0.5), new_cohort=True)
    return tmp_path


def look(folder: Path) -> dict[str, object]:
    """All there is but the ledger."""
    found = (path for path in folder.rglob("*") if not path.name.startswith("l.db"))
    return {str(path): os.readlink(path) if path.is_symlink() else path.is_dir() or path.read_bytes() for path in found}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_link_is_refused(name: str, scene: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[name]
    link = Path(command[-1] + (".json" if "description" in name else ""))
    for target in TARGETS:
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        before = look(scene)
        assert main(list(command)) == 2
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1
        assert OTHER_WORDS.get(name, "the output path is a link") in said
        assert look(scene) == before
        with Ledger("l.db") as ledger:
            assert len(ledger.entries(kind="release")) == 1


@pytest.mark.parametrize("to", TARGETS)
def test_python_refuses_them_too(to: str, scene: Path) -> None:
    levels = {"sex": ["f", "m"], "job": ["cook", "smith"]}
    table = cr.tabulate("people.csv", ["sex"], "job", levels=levels)
    mechanism = cr.Geometric(epsilon=1.0)
    released = cr.release(table, mechanism)
    curve = cr.curve(table, "laplace", epsilon=[0.1, 1.0])
    Path("out.csv").symlink_to(to)
    before = look(scene)
    for write in (lambda: released.save("out.csv", force=True), lambda: curve.to_csv("out.csv")):
        with refusing("output"):
            write()
    with Ledger("l.db") as ledger, refusing("output"):
        ledger.save(released, "out.csv", force=True)
    assert look(scene) == before


def test_folders_on_the_way_may_be_links(scene: Path) -> None:
    Path("way").symlink_to("folder")
    command = [*COMMANDS["recorded"][:-1], "way/out.csv"]
    assert main(command) == 0
    assert sorted(os.listdir("folder")) == ["out.csv", "out.csv.json"]


def test_a_record_for_output_checkers_is_added_to_those_that_are_there() -> None:
    for number in range(2):
        assert main(list(COMMANDS["audit"])) == 0
        assert Path(f"cellrisk_{number}_0.csv").is_file()
