"""The README tells the truth: its commands exist, its code runs, and its numbers come out."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMAND = "import sys; from cellrisk.cli import main; sys.exit(main())"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def shell_lines(program: str) -> list[list[str]]:
    """The arguments of every line in a shell block that runs that program."""
    lines = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    return [line[1:] for line in lines if line and line[0] == program]


def test_make_targets_exist() -> None:
    named = [target for targets in shell_lines("make") for target in targets]
    assert named == ["run", "test"]
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in named)


def test_commands_run() -> None:
    commands = shell_lines(".venv/bin/cellrisk")
    assert commands
    for arguments in commands:
        subprocess.run([sys.executable, "-c", COMMAND, *arguments], cwd=REPOSITORY, check=True, capture_output=True)


def test_python_runs_and_prints_what_it_says() -> None:
    examples = blocks("python")
    assert examples
    for example in examples:
        promised = re.findall(r"^print\(.*\)  # (.*)$", example, flags=re.MULTILINE)
        assert promised
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example, "README.md", "exec"), {})
        assert printed.getvalue().splitlines() == promised


def test_the_sentence_is_what_the_demo_says() -> None:
    quoted = " ".join(line.removeprefix("> ") for line in README.splitlines() if line.startswith("> "))
    demo = subprocess.run([sys.executable, "-c", COMMAND, "demo"], check=True, capture_output=True, text=True)
    assert quoted in " ".join(demo.stdout.split())
