"""Every option is heard: its command reads it, or refuses it in one line, or it is listed here with the reason."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from cellrisk.cli import build_command, main
from cellrisk.cli.ledgers import LedgerGroup
from cellrisk.cli.program import LoadedCommands, Program
from cellrisk.cli.sets import SetGroup

Words = tuple[str, ...]
FUNCTIONS: dict[str, Any] = {
    f"{start}{name}": function
    for start, group in (("", Program), ("ledger ", LedgerGroup), ("together ", SetGroup))
    for known in [LoadedCommands(group.panels)]
    for name in known
    if inspect.isfunction(function := known.find(name))
}
GROUPS = {
    name: [kind for kind in get_type_hints(function).values() if is_dataclass(kind)]
    for name, function in FUNCTIONS.items()
}
TABLE: Words = ("people.csv", "--qid", "sex,town", "--sensitive", "job")
DECLARED: Words = (*TABLE, "--levels", "sex=f|m", "--levels", "town=a|b", "--levels", "job=cook|smith")
ROUNDED: Words = (*TABLE, "--perturbation", "random-rounding:3")
ASKED: tuple[tuple[str, Words], ...] = (
    ("demo", ()),
    ("inspect", TABLE),
    ("inspect", ("people.csv",)),
    ("assess", (*TABLE, "--epsilon", "1")),
    ("assess", ROUNDED),
    ("assess", (*TABLE, "--perturbation", "random-rounding", "--epsilon", "1")),
    ("explain", (*TABLE, "--epsilon", "1")),
    ("explain", ROUNDED),
    ("curve", (*TABLE, "--epsilon", "1")),
    ("choose", (*TABLE, "--max-epsilon", "0.5")),
    ("choose", (*DECLARED, "--private", "9", "--max-caused-people", "9")),
    ("utility", (*TABLE, "--epsilon", "1", "--releases", "1")),
    ("report", (*TABLE, "--epsilon", "1", "--output", "new.html")),
    ("report", ("--set", "set.toml", "--output", "new.html")),
    ("simulate", (*TABLE, "--epsilon", "1", "--releases", "2")),
    ("simulate", (*ROUNDED, "--releases", "2")),
    ("simulate", (*DECLARED, "--epsilon", "1", "--releases", "2", "--parents", "towns.csv")),
    ("release", (*DECLARED, "--epsilon", "1", "--output", "new.csv")),
    ("release", ("--set", "set.toml", "--output", "new")),
    ("publish-risk", (*DECLARED, "--epsilon", "1", "--risk-epsilon", "1")),
    ("audit", ("people.csv", "towns.csv", "--qid", "town", "--sensitive", "job")),
    ("audit", ("people.csv", "towns.csv", "--qid", "town", "--sensitive", "job", "--epsilon", "1")),
    ("average", (*TABLE, "--epsilon", "1", "--releases", "2")),
    ("together assess", ("set.toml",)),
    ("together split", ("set.toml", "--total-epsilon", "2")),
    ("ledger create", ("new.db",)),
    ("ledger add", ("other.db", "--epsilon", "1", "--attribute", "job")),
    ("ledger add", ("other.db", "--epsilon", "1", "--attribute", "job", "--mechanism", "geometric")),
    ("ledger limit", ("book.db", "--epsilon", "9")),
    ("ledger list", ("book.db",)),
    ("ledger show", ("book.db",)),
    ("ledger verify", ("book.db",)),
    ("ledger checkpoint", ("book.db",)),
    ("ledger recover", ("book.db", ".")),
    ("ledger export", ("book.db", "--output", "new.jsonl")),
    ("ledger risk", ("book.db", "people.csv")),
    ("ledger plan", ("book.db", "--epsilon", "1")),
    ("ledger plan", ("book.db", "--max-ceiling", "0.9")),
    ("ledger plan", ("book.db", "people.csv", "--epsilon", "1", "--mechanism", "geometric", "--attribute", "job")),
    ("ledger plan", ("book.db", "people.csv", "--max-ceiling", "0.9", "--attribute", "job")),
)
"""Each command, in each of the ways that take other options."""
NOT_ASKED = {"serve"}
"""What waits for Ctrl-C."""
WITHOUT_A_LEDGER = {"wait"}
"""How long to wait for a ledger: its help says so, and a settings file may have it for all commands."""
OF_THE_RELEASE = {("ledger plan", "qid")}
"""What a planned release is of: without records, its loss does not depend on it."""
VALUES: dict[str, str] = {
    "alpha": "1,1",
    "attack": "plurality",
    "belief": "table",
    "bin": "age=10",
    "cells": "observed",
    "certainty": "0.8",
    "delta": "1e-6",
    "encoding": "latin-1",
    "engine": "duckdb",
    "flavour": "pure",
    "form": "exact",
    "levels": "job=cook|smith",
    "mechanism": "laplace",
    "missing": "drop",
    "neighbours": "replace",
    "outside": "drop",
    "releases": "3",
    "seed": "3",
    "sizes": "negbin",
    "sizes_fit": "moments",
    "threshold": "1.5",
    "weights": "uniform",
}
"""What is given to an option that a command has not read; any other gets the name of a column."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("options")
    rows = [f"{'fm'[at % 2]},{'ab'[at % 3 == 0]},{('cook', 'smith')[at % 5 == 0]},{20 + at}" for at in range(40)]
    (made / "people.csv").write_text("\n".join(["sex,town,job,age", *rows]), encoding="utf-8")
    levels = '[levels]\nsex = ["f", "m"]\ntown = ["a", "b"]\njob = ["cook", "smith"]\n'
    tables = '[[table]]\nqid = "sex"\n[[table]]\nqid = "town"\n'
    (made / "set.toml").write_text(f'source = "people.csv"\nsensitive = "job"\nepsilon = 1\n{levels}{tables}', "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        towns = ("people.csv", "--qid", "town", "--sensitive", "job", *DECLARED[7:])
        assert main(["release", *towns, "--epsilon", "9", "--output", "towns.csv"]) == 0
        noted = ("--attribute", "job", "--qid", "sex", "--mechanism", "geometric")
        for ledger in ("book.db", "other.db"):
            assert main(["ledger", "add", ledger, "--new-ledger", "--epsilon", "0.5", *noted]) == 0
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The options of groups that a command reads, each by the name of its field."""
    seen: set[str] = set()
    for kind in {kind for kinds in GROUPS.values() for kind in kinds}:
        names = {field.name for field in fields(kind)}

        def look(self: Any, name: str, names: set[str] = names) -> Any:
            if name in names:
                seen.add(name)
            return object.__getattribute__(self, name)

        monkeypatch.setattr(kind, "__getattribute__", look)
    return seen


@pytest.mark.parametrize(("command", "words"), ASKED, ids=[" ".join((name, *words)) for name, words in ASKED])
def test_no_option_of_a_group_is_passed_over(
    command: str,
    words: Words,
    folder: Path,
    read: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert main([*command.split(), *words]) == 0, capsys.readouterr().err
    options = {each.name: each.opts[0] for each in find_command(command).params if each.opts[0].startswith("--")}
    every = {field.name for kind in GROUPS[command] for field in fields(kind)} & set(options)
    passed_over = every - read - WITHOUT_A_LEDGER - {name for of, name in OF_THE_RELEASE if of == command} - {"config"}
    for name in sorted(passed_over):
        switch = name in ("zero_truncation", "new_ledger", "new_cohort")
        more = ["--no-zero-truncation"] if name == "zero_truncation" else [options[name]]
        capsys.readouterr()
        code = main([*command.split(), *words, *more, *([] if switch else [VALUES.get(name, "age")])])
        said = capsys.readouterr().err
        assert (code, said.count("\n")) == (2, 1), (name, said)
        assert options[name] in said


def find_command(name: str) -> Any:
    found = build_command()
    for word in name.split():
        found = found.commands[word]
    return found


def test_every_command_is_asked() -> None:
    assert {name for name, _ in ASKED} == set(FUNCTIONS) - NOT_ASKED


def test_a_command_uses_its_own_options() -> None:
    """Those that it has from no group are names in its body."""
    for command, function in FUNCTIONS.items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert set(inspect.signature(function).parameters) - {"config"} <= used, command


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("explain", *TABLE, "--epsilon", "1", "--alpha", "1,1"), "No such option: --alpha"),
        (("explain", *TABLE, "--epsilon", "1", "--measure", "expected"), "explain looks at the local risk only"),
        (("inspect", "people.csv", "--plot", "new.svg"), "without --qid and --sensitive, the columns are listed"),
        (("simulate", *ROUNDED, "--exclude", "sex=f"), "--parent-count, --exclude and --may-be-missing go with"),
        (("choose", *DECLARED, "--private", "9", "--max-caused-people", "9", "--plot", "new.svg"), "leave --plot out"),
        (("ledger", "add", "book.db", "--epsilon", "1", "--threshold", "1.5"), "--threshold goes with --mechanism"),
    ],
)
def test_what_would_be_passed_over_is_refused(
    arguments: Words, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(list(arguments)) == 2
    assert told in capsys.readouterr().err
    assert not Path("new.svg").exists()


def test_options_of_a_settings_file_are_for_those_who_take_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    Path("all.toml").write_text('alpha = "1,1"\nsizes = "negbin"\nmissing = "drop"\n', encoding="utf-8")
    for asked in (("explain", *TABLE, "--epsilon", "1"), ("inspect", "people.csv")):
        assert main([*asked, "--config", "all.toml"]) == 0, capsys.readouterr().err
