"""Commands, run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellrisk.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run a command; return its exit code, its output and its errors."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()
