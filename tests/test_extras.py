"""An extra that is not installed is one line that says what to type, at every door that needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cellrisk.errors import EXTRAS, explain_missing

REPOSITORY = Path(__file__).resolve().parents[1]
WITHOUT = """
import contextlib, importlib.util, io, json, sys

absent = set(sys.argv[1].split(","))
found = importlib.util.find_spec

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] in absent else found(name, *rest)

from cellrisk.cli import main

answers = []
for arguments in json.loads(sys.argv[2]):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main(arguments)
    answers.append([code, errors.getvalue()])
try:
    import cellrisk
    loss = cellrisk.Loss.of(cellrisk.Laplace(1.0))
    answers.append([0, repr(cellrisk.compose([loss] * 2, method="pld", delta=1e-6))])
except cellrisk.InvalidInput as refusal:
    answers.append([2, str(refusal)])
print(json.dumps(answers))
"""
"""A program that runs commands in a process where some packages cannot be imported, as if they were not installed."""


def run_without(packages: list[str], commands: list[list[str]]) -> list[tuple[int, str]]:
    """The exit code and the errors of each command, and last of a composition in Python, where packages are missing."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(packages), json.dumps(commands)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [(code, errors) for code, errors in json.loads(done.stdout)]


def test_each_missing_extra_is_one_line_and_the_rest_works(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("sex,income\nf,low\nf,high\nm,low\n")
    names = f"{table} --qid sex --sensitive income --epsilon 1"
    expected = {
        f"ledger create {tmp_path}/ledger.db": "",
        f"ledger list {tmp_path}/ledger.db": "",
        f"release {names} --output {tmp_path}/released.csv": "release",
        f"report {names} --output {tmp_path}/report.pdf": "pdf",
        f"assess {names} --engine spark": "spark",
        "assess postgresql://localhost/people --table people --qid sex --sensitive income --epsilon 1": "postgres",
        "serve --no-browser": "web",
        f"assess {names}": "",
        f"curve {names}": "",
        f"utility {names}": "",
    }
    modules = [module for each in EXTRAS.values() for module in each]
    *answers, (code, python) = run_without(modules, [command.split() for command in expected])
    for (command, extra), (code, errors) in zip(expected.items(), answers, strict=True):
        assert code == (2 if extra else 0), (command, errors)
        assert errors.count("\n") == (1 if extra else 0), (command, errors)
        assert not extra or f"pip install 'cellrisk[{extra}]'" in errors, (command, errors)
    assert "pip install 'cellrisk[ledger]'" in python
    assert sorted(tmp_path.iterdir()) == [tmp_path / "ledger.db", table], "nothing else is left behind"


def test_other_missing_modules_are_errors_of_ours() -> None:
    assert explain_missing(ModuleNotFoundError(name="cellrisk.nowhere")) is None
    assert explain_missing(ImportError(name="sqlalchemy")) is None, "it is there, and broken"


def test_extras_are_those_of_the_package() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {"all", "dev", "docs"}
    assert declared["all"] == [f"cellrisk[{','.join(sorted(EXTRAS))}]"]
