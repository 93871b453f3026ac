"""The R package in r/: what Python does for it is tested everywhere, and the package itself where R is found."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from tests.near import near

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "r"
NEEDED = ("jsonlite", "knitr", "reticulate", "rmarkdown", "testthat")
INSTALL = "on Debian: make r, or apt install r-base-core " + " ".join(f"r-cran-{name}" for name in NEEDED)

PEOPLE = b'"sex","age","job"\n"f",31,"cook"\n"f",,"cook"\n,52,"smith"\n"",52,"smith"\n"m",40,"a, ""b"""\n'
KINDS = {"sex": "text", "age": "whole", "job": "text"}


def helper() -> Any:
    found = importlib.util.spec_from_file_location("cellrisk_r", PACKAGE / "inst" / "python" / "cellrisk_r.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_no_thread_holds_memory_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is to free it would wait for Python, which R holds, and R for the thread: it would never end."""
    from pyarrow import csv

    content, seen = bytearray(PEOPLE), []

    def read(source: Any, **how: Any) -> Any:
        content.append(ord("\n"))  # refused where anything still looks at these bytes
        seen.append(source)
        return real(source, **how)

    real = csv.read_csv
    monkeypatch.setattr(csv, "read_csv", read)
    table = helper()._read_frame(content, KINDS)
    assert (len(seen), table.num_rows) == (1, 5)


def ask(question: str, table: dict[str, Any], arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    request = {"question": question, "data": {"kinds": KINDS}, "table": table, "arguments": arguments, **more}
    return dict(json.loads(helper().answer(json.dumps(request), PEOPLE)))


TABLE = {"quasi_identifiers": ["sex", "age"], "sensitive": ["job"], "bins": {"age": 10}}


def test_an_answer_for_r_is_that_of_python() -> None:
    frame = pd.DataFrame(
        {"sex": ["f", "f", None, "", "m"], "age": pd.array([31, None, 52, 52, 40], dtype="Int64")}
    ).assign(job=["cook", "cook", "smith", "smith", 'a, "b"'])
    asked = {"epsilon": 1, "measures": "local"}
    expected = cr.assess(cr.tabulate(frame, ["sex", "age"], "job", bins={"age": 10}), **asked)
    found = ask("assess", TABLE, asked)
    assert found["headline"] == expected.headline
    assert found["frame"]["risk"] == near(expected.to_frame()["risk"].tolist())
    assert json.loads(found["json"])["table"]["cells"] == 5  # missing and empty are not the same


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"epsilon": -1}, "invalid_input", "epsilon must be a finite number above 0"),
        ({"epsilon": 1, "policy": "x"}, "invalid_input", "there is no such argument; got policy"),
        ({"epsilon": 1, "measures": "globe"}, "unknown_name", "globe"),
        ({"epsilon": 1, "priors": {"shape": 1}}, "invalid_input", "priors has other names"),
    ],
)
def test_a_refusal_is_an_answer_of_one_line(arguments: dict[str, Any], kind: str, said: str) -> None:
    error = ask("assess", TABLE, arguments)["error"]
    assert error["kind"] == kind
    assert said in error["message"]
    assert "\n" not in error["message"]


def test_a_fault_says_its_kind_and_nothing_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CELLRISK_TRACEBACK", raising=False)
    monkeypatch.setattr(cr, "tabulate", lambda *_, **__: {}["smith"])
    error = ask("assess", TABLE, {"epsilon": 1})["error"]
    assert error == {"kind": "fault", "message": helper().FAULT.format("KeyError")}


def test_the_two_packages_have_one_version() -> None:
    described = (PACKAGE / "DESCRIPTION").read_text(encoding="utf-8")
    found = re.search(r"^Version: (.*)$", described, re.MULTILINE)
    assert found is not None
    assert found[1] == cr.__version__


def run_r(arguments: list[str | Path], surroundings: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments, env=surroundings, cwd=folder, capture_output=True, text=True, timeout=800, check=False
    )


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which R finds this Python and this cellrisk, and a folder of its own for what is temporary."""
    if shutil.which("R") is None:
        pytest.skip(f"the R package is not checked: there is no R ({INSTALL})")
    home = tmp_path_factory.mktemp("r")
    (home / "temporary").mkdir()
    (home / "profile.R").write_text("options(repos = character(), width = 80)\n", encoding="utf-8")
    surroundings = {
        **os.environ,
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "R_PROFILE_USER": str(home / "profile.R"),
        "TMPDIR": str(home / "temporary"),
        "LC_ALL": "C.UTF-8",
    }
    missing = f'cat(Filter(function(name) !requireNamespace(name, quietly = TRUE), c{NEEDED!r}), sep = ", ")'
    run = run_r(["Rscript", "-e", missing], surroundings, home)
    if run.returncode or run.stdout:
        pytest.skip(f"the R package is not checked: R has no {run.stdout or 'working Rscript'} ({INSTALL})")
    started = "cat(reticulate::py_available(initialize = TRUE))"
    run = run_r(["Rscript", "-e", started], surroundings, home)
    if run.stdout != "TRUE":
        pytest.skip("the R package is not checked: reticulate cannot load this Python, which has no shared library")
    return surroundings


PAGE = REPOSITORY / "docs" / "how-to" / "r.md"


def read_console(text: str) -> list[str]:
    """The lines of the page's blocks that show a session of R."""
    blocks = re.findall(r"^```console\n(> .*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line.rstrip() for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def checked(surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of `R CMD check`, with the package as it installs it, and what it printed."""
    folder = tmp_path_factory.mktemp("check")
    built = run_r(["R", "CMD", "build", PACKAGE], surroundings, folder)
    assert built.returncode == 0, built.stdout + built.stderr
    (archive,) = folder.glob("cellrisk_*.tar.gz")
    said = run_r(["R", "CMD", "check", "--no-manual", "--ignore-vignettes", archive], surroundings, folder)
    return folder / "cellrisk.Rcheck", said.stdout


@pytest.mark.slow
def test_r_cmd_check_is_clean(surroundings: dict[str, str], checked: tuple[Path, str]) -> None:
    """Code, documentation, examples and tests; building it runs the vignette."""
    folder, said = checked
    tested = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("tests/testthat.Rout*"))
    assert said.rstrip().endswith("Status: OK"), said + tested
    assert "[ FAIL 0 | WARN 0 | SKIP 0 |" in tested, tested
    vignette = (folder / "cellrisk" / "doc" / "cellrisk.html").read_text(encoding="utf-8")
    assert "where the Python package is not found" not in vignette
    assert "Recommended: epsilon" in vignette
    left = [path for path in Path(surroundings["TMPDIR"]).rglob("*") if path.is_file()]
    assert not left, "R and Python leave no file behind"


@pytest.mark.slow
def test_the_page_shows_what_r_prints(surroundings: dict[str, str], checked: tuple[Path, str], tmp_path: Path) -> None:
    """CELLRISK_WRITE_PAGE=1 puts what R prints into the page."""
    page = PAGE.read_text(encoding="utf-8")
    shown = read_console(page)
    commands = tmp_path / "commands.R"
    commands.write_text("".join(f"{line[2:]}\n" for line in shown if line[:2] in ("> ", "+ ")), encoding="utf-8")
    run = run_r(
        ["R", "--quiet", "--no-save", "--no-restore", "-f", commands],
        {**surroundings, "R_LIBS": str(checked[0])},
        tmp_path,
    )
    assert run.returncode == 0, run.stderr
    printed = [line.rstrip() for line in run.stdout.splitlines() if line.rstrip() != ">"]
    if os.environ.get("CELLRISK_WRITE_PAGE"):
        for block in re.findall(r"^```console\n(> .*?)^```", page, re.MULTILINE | re.DOTALL):
            first = block.splitlines()[0]
            start = printed.index(first)
            later = [line for line in shown[shown.index(first) + block.count("\n") :] if line.startswith("> ")]
            end = printed.index(later[0], start) if later else len(printed)
            page = page.replace(block, "\n".join(printed[start:end]) + "\n")
        PAGE.write_text(page, encoding="utf-8")
        return
    assert [line for line in printed if line] == [line for line in shown if line]
