"""Conventions of source and tests, read from their syntax. pyproject.toml says which package may import which."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cellrisk as cr
from cellrisk.system.results import Result

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "src" / "cellrisk"


def waiting_for_ever(tests: Path) -> Iterator[str]:
    """Processes that are run to their end without a deadline; one that hangs then ends with its test, much later."""
    for path in sorted(tests.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "subprocess." in text else ()
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            words = {keyword.arg for keyword in call.keywords}
            if ast.unparse(call.func) in RUNNING and not words & {"timeout", None}:
                yield f"{path.relative_to(tests)}:{call.lineno}"


RUNNING = ("subprocess.run", "subprocess.check_output", "subprocess.check_call")


def test_every_process_has_a_deadline() -> None:
    assert list(waiting_for_ever(REPOSITORY / "tests")) == []


def comparing_loosely(tests: Path) -> Iterator[str]:
    """Comparisons of numbers that leave it to a library how far from each other they may be, whatever their size."""
    for path in sorted(tests.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "approx(" in text or "close(" in text else ()
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            stated = TOLERANCES.get(ast.unparse(call.func), set())
            if not stated <= {keyword.arg for keyword in call.keywords}:
                yield f"{path.relative_to(tests)}:{call.lineno}"


TOLERANCES = {
    "approx": {"abs"},
    "pytest.approx": {"abs"},
    "np.allclose": {"atol", "rtol"},
    "np.isclose": {"atol", "rtol"},
}
"""What must be said: by default, numbers within 1e-12 of each other are equal to pytest, and within 1e-8 to numpy."""


def test_every_comparison_says_its_tolerance() -> None:
    """`abs=0` where digits are meant, `near(…)` where the same number is computed in two ways."""
    assert list(comparing_loosely(REPOSITORY / "tests")) == []


def refusing_for_any_reason(tests: Path) -> Iterator[str]:
    """Where any error of a wide kind will do: neither its words nor the error itself are looked at."""
    for path in sorted(tests.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "pytest.raises" in text else ()
        for item in (each for node in nodes if isinstance(node, ast.With) for each in node.items):
            call = item.context_expr
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "pytest.raises" or item.optional_vars:
                continue
            kinds = {node.id for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Name)}
            if kinds & WIDE_ERRORS and not {keyword.arg for keyword in call.keywords} & {"match", "check"}:
                yield f"{path.relative_to(tests)}:{call.lineno}"


WIDE_ERRORS = {"Exception", "BaseException", "ValueError", "TypeError", "RuntimeError", "OSError"} | {
    "CellriskError",
    "InvalidInput",
    "UnknownName",
}


def test_every_refusal_is_known_by_its_words() -> None:
    assert list(refusing_for_any_reason(REPOSITORY / "tests")) == []


@pytest.mark.slow
def test_a_test_that_hangs_fails(tmp_path: Path) -> None:
    """As the settings here say, only sooner: it ends with an error, and what it was doing is told."""
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / "test_a.py").write_text("import time\ndef test_endless():\n    time.sleep(600)\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-o", "faulthandler_timeout=1", "test_a.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "in test_endless" in done.stderr


GIVEN = ("Ledger", "Loss", "Mechanism", "Policy", "Priors", "Step")
"""The classes that users make objects of by themselves; the six mechanisms are told of in their base."""


def list_public(names: list[str]) -> Iterator[tuple[str, Callable[..., object]]]:
    """Every public function, and every method of a public class, but for what is told in the base of all results."""
    for name in names:
        found = getattr(cr, name)
        if inspect.isfunction(found) or name in GIVEN:
            yield name, found
        if inspect.isclass(found):
            for inner, member in vars(found).items():
                method = getattr(member, "__func__", member)
                if not inner.startswith("_") and inspect.isfunction(method) and not hasattr(Result, inner):
                    yield f"{name}.{inner}", method


def find_untold(function: Callable[..., object]) -> list[str]:
    """The parameters that no section tells of, of a function that has several."""
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    section = re.search(r"^Parameters\n-{10}\n((?:.+\n?)+)", inspect.getdoc(function) or "", flags=re.MULTILINE)
    lines = re.findall(r"^(\w+(?:, \w+)*)\n    \S", section[1] if section else "", flags=re.MULTILINE)
    told = {name for line in lines for name in line.split(", ")}
    return [name for name in parameters if name not in told] if len(parameters) > 1 else []


def test_every_parameter_is_told() -> None:
    untold = {name: find_untold(function) for name, function in list_public(cr.__all__)}
    assert {name: lost for name, lost in untold.items() if lost} == {}
