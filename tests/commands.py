"""Commands, run in this process, and refusals by their codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cellrisk.cli import main
from cellrisk.errors import CellriskError


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run a command; return its exit code, its output and its errors."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


SECRET = "Zanzibar-7"
"""A value in the data of tests, which no message may show."""


def refuse(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Run a command that must end with code 2; return its one line on standard error."""
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), (arguments, err)
    assert err.startswith("cellrisk: ")
    assert SECRET not in err
    return err


def refusing(code: str) -> Any:
    """Expect a refusal with this code in the block."""
    return pytest.raises(CellriskError, check=lambda refusal: refusal.code == code)
