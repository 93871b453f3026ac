"""The examples for pipelines are run: the commands, and the code around them with stand-ins for the schedulers.

Airflow, Dagster and dbt are not installed for this. What their parts would do is done here: tasks are called in their
order, and the test of dbt is rendered by Jinja and run by DuckDB.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import jinja2
import pytest
import yaml

import cellrisk as cr
from cellrisk.cli import main
from tests.near import near

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLES = REPOSITORY / "examples" / "pipelines"
PEOPLE = """sex,town,job
f,north,cook
f,north,cook
m,north,cook
m,north,smith
f,south,
f,south,
m,south,smith
m,south,
"""
SETTINGS = """qid = ["sex", "town"]
sensitive = "job"
epsilon = 1
levels = {{ sex = ["f", "m"], town = ["north", "south"], job = ["cook", "smith"] }}
release.may-be-missing = "job"
assess.max-risk = {limit}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    set_limit(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "src"))
    for name in ("gate", "airflow_dag", "dagster_check"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def set_limit(folder: Path, limit: float) -> None:
    (folder / "cellrisk.toml").write_text(SETTINGS.format(limit=limit), encoding="utf-8")


@pytest.mark.slow
def test_the_gate_tells_by_the_exit_code(folder: Path) -> None:
    run_gate = importlib.import_module("gate").run_gate
    assert run_gate("people.csv", "risk.json") is True
    assert json.loads((folder / "risk.json").read_text(encoding="utf-8"))["table"]["records"] == 8
    assert stat.S_IMODE((folder / "risk.json").stat().st_mode) == 0o600
    set_limit(folder, 0.001)
    assert run_gate("people.csv", "risk.json") is False
    assert json.loads((folder / "risk.json").read_text(encoding="utf-8"))["risks"]
    with pytest.raises(RuntimeError, match=r"^cellrisk: [^\n]*must be[^\n]*$"):
        run_gate("people.csv", "risk.json", "--epsilon", "-1")


class Task:
    """A stand-in for a task of Airflow: the function, and what comes after it."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.function, self.after = function, []  # type: tuple[Any, list[Task]]

    def __call__(self) -> Task:
        return self

    def __rshift__(self, other: Task) -> Task:
        self.after.append(other)
        return other


def load_airflow(monkeypatch: pytest.MonkeyPatch) -> tuple[Task, type[Exception]]:
    """The first task of the example, and the exception that Airflow does not try again after."""
    tasks: list[Task] = []

    def task(function: Callable[[], None] | None = None, **options: Any) -> Any:
        if function is None:
            return task
        tasks.append(Task(function))
        return tasks[-1]

    fail = type("AirflowFailException", (Exception,), {})
    exceptions, sdk = ModuleType("airflow.sdk.exceptions"), ModuleType("airflow.sdk")
    exceptions.AirflowFailException = fail  # type: ignore[attr-defined]
    sdk.task, sdk.dag = task, lambda **_: lambda function: function  # type: ignore[attr-defined]
    for module in (ModuleType("airflow"), sdk, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    importlib.import_module("airflow_dag")
    return tasks[0], fail


@pytest.mark.slow
def test_airflow_releases_what_is_within_the_limits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opendp")
    check, fail = load_airflow(monkeypatch)
    (release,) = check.after
    check.function()
    release.function()
    assert (folder / "released.csv").exists()
    set_limit(folder, 0.001)
    with pytest.raises(fail, match=r"above a limit; its curator finds the figures in risk\.json$"):
        check.function()


@pytest.mark.slow
def test_dagster_blocks_what_is_above_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    dagster = ModuleType("dagster")
    dagster.AssetCheckResult = dict  # type: ignore[attr-defined]
    dagster.asset_check = lambda **options: asked.update(options) or (lambda function: function)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dagster", dagster)
    check = importlib.import_module("dagster_check").people_are_within_the_limits
    assert asked == {"asset": "people", "blocking": True}
    assert check() == {"passed": True}
    set_limit(folder, 0.001)
    assert check() == {"passed": False}


def test_the_test_of_dbt_fails_where_the_raw_table_gives_away_more(folder: Path) -> None:
    """Women of the north (cooks) and of the south (missing) stand with one value: four of eight people."""
    schema = yaml.safe_load((EXAMPLES / "dbt" / "models" / "schema.yml").read_text(encoding="utf-8"))
    (model,) = schema["models"]
    ((name, given),) = model["data_tests"][0].items()
    text = (EXAMPLES / "dbt" / "tests" / "generic" / f"{name}.sql").read_text(encoding="utf-8")
    found = re.fullmatch(r"\{% test (\w+)\(model, ([\w, ]+)\) %\}(.*)\{% endtest %\}\s*", text, re.DOTALL)
    assert found is not None
    assert found[1] == name
    arguments = given["arguments"]
    assert set(found[2].split(", ")) == set(arguments)

    def rows(limit: float) -> list[tuple[float]]:
        query = jinja2.Template(found[3]).render(**{**arguments, "model": "'people.csv'", "max_share": limit})
        return [(float(share),) for (share,) in duckdb.sql(query).fetchall()]

    table = cr.tabulate("people.csv", arguments["quasi_identifiers"], arguments["sensitive"])
    raw = cr.assess(table, epsilon=50.0, measures="local").value()  # as good as no noise
    assert rows(arguments["max_share"]) == [(near(0.5),)]
    assert raw == pytest.approx(0.5, abs=1e-6)
    assert rows(0.5) == []


@pytest.mark.slow
def test_the_steps_of_the_action_run(folder: Path) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "pipelines.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml title=\"publish.yaml\"\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    (job,) = yaml.safe_load(found[1])["jobs"].values()
    assert job["runs-on"] == "self-hosted"
    assert not any("upload-artifact" in str(step) for step in job["steps"])
    commands = [step["run"] for step in job["steps"] if step.get("run", "").startswith("cellrisk ")]
    assert [command.split()[1] for command in commands] == ["assess", "release", "ledger"]
    pytest.importorskip("opendp")
    pytest.importorskip("sqlalchemy")
    assert main(["ledger", "create", "releases.db"]) == 0
    for command in commands:
        words = shlex.split(command.replace("$PURPOSE", "a test"))
        if ">" in words:
            words = words[: words.index(">")]
        done = subprocess.run(
            [sys.executable, "-m", "cellrisk", *words[1:]], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
    assert (folder / "table.parquet").exists()
