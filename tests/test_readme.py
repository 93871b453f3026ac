"""The README and the pages beside it tell the truth: commands exist, code runs, and numbers come out."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cellrisk.choice import Policy
from cellrisk.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMAND = "import sys; from cellrisk.cli import main; sys.exit(main())"


PAGES = {page.name: page.read_text(encoding="utf-8") for page in (REPOSITORY / "docs").glob("*.md")} | {
    "README": README
}


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def shell_lines(program: str, text: str = README) -> list[list[str]]:
    """The arguments of every line in a shell block that runs that program."""
    script = "\n".join(blocks("sh", text))
    for name, value in re.findall(r'^(\w+)="(.*)"$', script, flags=re.MULTILINE):
        script = script.replace(f"${name} ", f"{value} ")
    lines = [shlex.split(line, comments=True) for line in script.splitlines()]
    return [line[1:] for line in lines if line and line[0] == program]


def test_make_targets_exist() -> None:
    named = [target for targets in shell_lines("make") for target in targets]
    assert named == ["run", "test"]
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in named)


@pytest.mark.parametrize("text", PAGES.values(), ids=PAGES)
def test_commands_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src").symlink_to(REPOSITORY / "src")
    monkeypatch.chdir(tmp_path)
    for arguments in shell_lines(".venv/bin/cellrisk", text):
        code = main(arguments)
        assert (code, capsys.readouterr().err) == (0, ""), arguments


def test_there_are_commands_to_run() -> None:
    assert len(shell_lines(".venv/bin/cellrisk")) >= 4
    assert len(shell_lines(".venv/bin/cellrisk", PAGES["deciding.md"])) >= 7


@pytest.mark.parametrize("text", PAGES.values(), ids=PAGES)
def test_links_lead_somewhere(text: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (REPOSITORY / target).exists() or (REPOSITORY / "docs" / target).exists(), target


def test_settings_files_are_read() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    (policy,) = [tomllib.loads(block)["policy"] for block in blocks("toml", PAGES["deciding.md"])]
    assert Policy.of(policy).max_risk == 0.3


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
