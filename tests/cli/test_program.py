"""Help is true: its examples run, its defaults are those of the functions, and shells complete commands and words."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.cli import COMPLETION, main
from cellrisk.cli.program import EXAMPLES, PANELS, PROGRAM, find_examples
from cellrisk.publish.dp_risk.private_choice import USUAL_GRID
from cellrisk.repeat.averaging import average
from cellrisk.repeat.sequences import assess_sequence
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON

FIRST = ("demo", "ledger create", "release")
"""What writes the files that other examples read."""
NOT_RUN = ("serve", "ledger plan")
"""What waits for Ctrl-C, or ends with code 3 as it may; their words are read."""


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield from walk(each, (*path, name)) if hasattr(each, "commands") else [(" ".join((*path, name)), each)]


COMMANDS = dict(walk(PROGRAM))


def ask(*arguments: str) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = main(list(arguments))
    return code, out.getvalue()


def list_examples(command: str) -> list[list[str]]:
    """The words of each example of a command."""
    lines = find_examples(command).replace("\\\n", "").splitlines()
    return [shlex.split(line) for line in lines if not line.startswith("#")]


def test_examples_are_two_for_each_command() -> None:
    text = EXAMPLES.read_text(encoding="utf-8")
    assert len(text.split("\n\n")) == len(COMMANDS)
    assert max(map(len, text.splitlines())) <= 78
    for command in COMMANDS:
        assert len(list_examples(command)) == 2


def test_the_words_of_examples_are_read() -> None:
    for command, made in COMMANDS.items():
        for example in list_examples(command):
            made.make_context(command, example[1 + len(command.split()) :], resilient_parsing=True)
            known = {option for each in made.params for option in (*each.opts, *each.secondary_opts)}
            assert {word for word in example if word.startswith("--")} <= known


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the examples were run that write files."""
    made = tmp_path_factory.mktemp("examples")
    set_file = find_examples("together assess").partition("# A set.toml for these examples:\n")[2]
    (made / "set.toml").write_text(set_file.replace("#   ", ""), encoding="utf-8")
    with contextlib.chdir(made) if hasattr(contextlib, "chdir") else pytest.MonkeyPatch.context() as patch:
        if patch is not None:
            patch.chdir(made)
        for command in FIRST:
            for example in list_examples(command):
                assert ask(*example[1:])[0] == 0, example
    return made


SLOW = {"choose", "curve", "report"}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[pytest.mark.slow] if command in SLOW else [])
        for command in sorted({*COMMANDS} - {*NOT_RUN} - {*FIRST})
    ],
)
def test_examples_run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for example in list_examples(command):
        code, said = ask(*example[1:])
        assert code == 0, (example, said)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_everyday_options_and_examples(command: str) -> None:
    code, said = ask(*command.split(), "--help")
    assert code == 0
    sections = re.findall(r"^([A-Z][\w ]*):$", said, flags=re.MULTILINE)
    assert sections[-1] == "Examples"
    assert set(sections) <= {"Arguments", "Options", "Examples"}
    assert len(re.findall(r"^  --[a-z-]+", said.partition("Examples:")[0], flags=re.MULTILINE)) <= 14
    assert "cellrisk " + command in said.rpartition("Examples:")[2]
    assert max(map(len, said.splitlines())) <= 80
    code, every = ask(*command.split(), "--help-all")
    assert code == 0
    sections = re.findall(r"^([A-Z][\w ]*):$", every, flags=re.MULTILINE)
    assert [section for section in sections if section not in (*PANELS, "Arguments", "Examples")] == []
    options = [each for each in COMMANDS[command].params if each.opts[0].startswith("--") and each.name != "help"]
    assert all(re.search(rf"^  {each.opts[0]}\b", every, flags=re.MULTILINE) for each in options)


def tell_defaults(command: str) -> dict[str, str]:
    """The defaults that the help of a command prints."""
    told = ask(*command.split(), "--help-all")[1].partition("\nExamples:")[0]
    parts = re.split(r"\n  (--[\w-]+)", told)
    found: dict[str, str] = {}
    for option, text in zip(parts[1::2], parts[2::2], strict=True):
        default = re.search(r"\[default: (.*?)\]", " ".join(text.split()))
        if default is not None:
            found[option.removeprefix("--").removeprefix("no-").replace("-", "_")] = default[1]
    return found


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "assess": (cr.assess, cr.Priors, cr.tabulate, cr.Geometric),
    "curve": (cr.curve, cr.Priors, cr.tabulate, cr.Geometric),
    "choose": (cr.choose, cr.Priors, cr.tabulate, cr.Geometric),
    "utility": (cr.utility, cr.tabulate, cr.Geometric),
    "explain": (cr.explain, cr.Priors, cr.tabulate, cr.Geometric),
    "report": (cr.report, cr.Priors, cr.tabulate, cr.Geometric),
    "release": (cr.release, cr.tabulate, cr.Geometric),
    "simulate": (cr.simulate, cr.tabulate, cr.Geometric),
    "average": (average, cr.Priors, cr.tabulate, cr.Geometric),
    "ledger risk": (assess_sequence, cr.Priors, cr.tabulate),
}


@pytest.mark.parametrize("command", FUNCTIONS)
def test_defaults_are_those_of_the_functions(command: str) -> None:
    real: dict[str, Any] = {}
    for function in reversed(FUNCTIONS[command]):
        given = inspect.signature(function).parameters.values()
        real |= {each.name: each.default for each in given if each.default is not inspect.Parameter.empty}
    told = {name: default for name, default in tell_defaults(command).items() if name != "cohort"}
    real.pop("cohort", None)  # the ledger's only one
    assert len(told) >= 4
    compared = 0
    for name, default in told.items():
        if name not in real or real[name] is None or isinstance(real[name], bool):
            continue
        assert re.split("[,;]", default)[0] in (str(real[name]), f"{real[name]:g}" if real[name] == 0.5 else ""), name
        compared += 1
    assert compared >= 3
    silent = {
        name for name, value in real.items() if isinstance(value, str | int | float) and value not in (False, True, "")
    }
    options = {option.removeprefix("--").replace("-", "_") for each in COMMANDS[command].params for option in each.opts}
    assert (silent & options) - set(told) == set(), "a default that the help does not tell"


def test_defaults_that_are_told_in_words() -> None:
    ends = f"{LEAST_EPSILON:g}:{LARGEST_EPSILON:g}"
    assert (tell_defaults("curve")["epsilon"], tell_defaults("choose")["epsilon"]) == (f"{ends} in curve", ends)
    low, high, points = tell_defaults("choose-private")["grid"].split(":")
    assert np.geomspace(float(low), float(high), int(points)) == pytest.approx(USUAL_GRID, rel=0.006, abs=0)
    assert tell_defaults("assess")["measure"] == "all"
    assert tell_defaults("choose")["measure"] == "local"
    assert tell_defaults("audit")["belief"] == tell_defaults("assess")["belief"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("cellrisk asse", ["assess"]),
        ("cellrisk assess --max-c", ["--max-caused", "--max-certain", "--max-ceiling"]),
        ("cellrisk assess --mechanism geo", ["geometric"]),
        ("cellrisk curve --measure ce", ["certainty", "ceiling"]),
        ("cellrisk ledger ver", ["verify"]),
    ],
)
def test_shells_complete(line: str, offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPLETION, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    code, said = ask()
    assert (code, said.split()) == (0, offered)


def test_the_script_for_a_shell_asks_by_that_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPLETION, "source_bash")
    code, said = ask()
    assert code == 0
    assert f"{COMPLETION}=complete_bash" in said
    assert "complete -o default" in said, "where nothing is offered, names of files are"
