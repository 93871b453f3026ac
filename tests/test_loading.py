"""What a command loads: its own options, and of the packages what its question needs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cellrisk.cli.config import walk
from cellrisk.cli.program import PROGRAM

REPOSITORY = Path(__file__).resolve().parent.parent

HEAVY = {
    *("duckdb", "fastapi", "ibis", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "pyspark", "rich", "scipy"),
    *("sqlalchemy", "sqlglot"),
}


def list_loaded(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*(name for name in sys.modules if name.startswith('cellrisk.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def test_one_command_does_not_load_the_others() -> None:
    loaded = list_loaded("from cellrisk.cli.program import PROGRAM\nPROGRAM.commands['inspect']")
    assert "cellrisk.cli.tables" in loaded
    others = ("releases", "sets", "ledgers", "serving")
    assert loaded & {f"cellrisk.cli.{name}" for name in others} == set()
    assert {name for name in loaded if name.startswith(("cellrisk.risk", "cellrisk.web", "cellrisk.show"))} == set()


def test_help_loads_no_numbers() -> None:
    """Help takes a quarter of a second of processor time at most, and half of that is Python itself."""
    code = "import sys\nfrom cellrisk.cli import main\nmain(['--help'])\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert HEAVY & set(done.stderr.split()) == set()


def test_a_command_of_its_own_asks_for_one_thread_before_numbers_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """More threads add up small matrices no faster, and wait at full speed; who asks for more has them."""
    code = (
        "import os, sys\nfrom cellrisk.cli import main\nassert 'numpy' not in sys.modules\n"
        "sys.argv = ['cellrisk', '--version']\nmain()\nprint(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    for asked, expected in ((None, "1"), ("2", "2")):
        if asked is None:
            monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", asked)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        assert done.stdout.split()[-1] == expected


def test_a_release_loads_no_audit_no_simulation_and_no_set() -> None:
    loaded = list_loaded("import cellrisk.publish.releasing, cellrisk.repeat.ledger.staging")
    assert "cellrisk.publish.releasing.measurement" in loaded
    needless = ("cellrisk.publish.auditing", "cellrisk.publish.simulation", "cellrisk.repeat.together", "cellrisk.show")
    assert {name for name in loaded if name.startswith(needless)} == set()


def test_every_command_speaks_of_the_same_noise() -> None:
    """None is where a mechanism may be left out: the release in hand says it, or a loss of another tool has none."""
    found = {
        command.name: parameter.default
        for command in walk(PROGRAM)
        for parameter in command.params
        if parameter.name == "mechanism"
    }
    assert {name for name, default in found.items() if default is None} == {"audit", "add", "plan", "risk"}
    assert {default for default in found.values() if default is not None} == {"geometric"}
    assert {"assess", "choose", "report", "release", "simulate", "average"} <= set(found)


def test_the_packages_listed_for_newcomers_are_there() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^      (\w+)/? ", text, re.MULTILINE)
    source = REPOSITORY / "src" / "cellrisk"
    modules = {path.stem for path in source.glob("*.py")} - {"__main__"}
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    assert sorted(listed) == sorted(modules | packages)
