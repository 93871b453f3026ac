"""What commands refuse is told in the words of the command line: options with their dashes, no arguments of Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.cli.config import walk
from cellrisk.cli.program import PROGRAM
from cellrisk.counts.unit import Unit
from cellrisk.system.checks import require_whole_number
from tests.cli.test_program import COMMANDS
from tests.commands import refuse

TABLE = ("people.csv", "--qid", "sex", "--sensitive", "job", "--levels", "sex=f|m", "--levels", "job=cook|smith")
LEDGER = ("book.ledger", "people.csv", "--qid", "sex", "--attribute", "job")
PRIVATE = (*TABLE, "--choice-epsilon", "1", "--max-caused-people", "1")
ADD = ("ledger", "add", "book.ledger", "--epsilon", "1", "--attribute", "job")
VALID: dict[str, tuple[str, ...]] = {
    "inspect": TABLE,
    "assess": (*TABLE, "--epsilon", "1"),
    "curve": (*TABLE, "--epsilon", "1,2"),
    "choose": (*TABLE, "--max-risk", "0.9", "--max-tvd", "0.9"),
    "choose-private": PRIVATE,
    "utility": (*TABLE, "--epsilon", "1"),
    "explain": (*TABLE, "--epsilon", "1"),
    "report": (*TABLE, "--epsilon", "1", "--max-tvd", "0.9", "--output", "report.html"),
    "release": (*TABLE, "--epsilon", "1", "--output", "new.csv"),
    "publish-risk": (*TABLE, "--epsilon", "1", "--risk-epsilon", "1"),
    "simulate": (*TABLE, "--epsilon", "1"),
    "audit": ("people.csv", "people.csv", "--qid", "sex", "--sensitive", "job", "--epsilon", "1"),
    "average": (*TABLE, "--epsilon", "1", "--releases", "3"),
    "together assess": ("set.toml", "--certainty", "0.9"),
    "together release": ("set.toml", "--output", "new"),
    "together report": ("set.toml", "--output", "new.html"),
    "together split": ("set.toml", "--total-epsilon", "2"),
    "demo": (),
    "serve": (),
    "ledger add": ("book.ledger", "--mechanism", "laplace", "--epsilon", "1"),
    "ledger limit": ("book.ledger", "--epsilon", "1"),
    "ledger show": ("book.ledger",),
    "ledger risk": (*LEDGER, "--mechanism", "laplace", "--epsilon", "1"),
    "ledger plan": ("book.ledger", "--mechanism", "laplace", "--epsilon", "1"),
}
"""Arguments with which a command could do its work; the number that is wrong comes after them."""
OTHERWISE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ledger plan --max-ceiling", "ledger add --rho", "ledger plan --rho"), ("book.ledger",)),
    "ledger risk --rho": LEDGER,
}
"""The same for options that do not go with those."""
OF_RECORDS = ("--contributions", "--per-group")
"""What is read when records are; a ledger of this test has no release to look at them for."""
NUMBERS = ("NUMBER", "NUMBERS", "SHARE", "SHARES", "LOW:HIGH")
TOLD_BY_THE_MECHANISM = ("--delta",)
"""Which of several mechanisms wants a delta is the point of that refusal, so that it begins with the mechanism."""


EVERY = [
    (tuple(command.split()), option)
    for command, made in COMMANDS.items()
    for option in made.params
    if option.metavar in NUMBERS and not (command.startswith("ledger") and option.opts[0] in OF_RECORDS)
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,town,job\nf,a,cook\nf,b,smith\nm,a,cook\nm,b,cook\n", encoding="utf-8")
    Path("set.toml").write_text(
        'source = "people.csv"\nsensitive = "job"\nepsilon = 1\n[[table]]\nqid = "sex"\n[[table]]\nqid = "town"\n',
        encoding="utf-8",
    )
    assert main(["ledger", "create", "book.ledger"]) == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_number_out_of_range_is_told_by_its_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = {"sex": ["f", "m"], "job": ["cook", "smith"]}
    table = cr.tabulate("people.csv", "sex", "job", levels=levels, outside="drop")

    def tabulate(asked: Any, *_: object, seed: int = 0, **__: object) -> cr.FrequencyTable:  # the same table for all
        Unit.read(asked.person, asked.contributions, asked.per_group)
        require_whole_number("seed", seed, 0)
        return table

    monkeypatch.setattr("cellrisk.cli.options.TableOptions.tabulate", tabulate)
    assert len(EVERY) > 70
    for names, option in EVERY:
        name = option.opts[0]
        wrong = "-1:5" if option.metavar == "LOW:HIGH" else "-1"
        valid = OTHERWISE.get(" ".join((*names, name)), VALID.get(" ".join(names), ()))
        said = refuse(capsys, *names, *valid, name, wrong)
        told = name in said or (name in TOLD_BY_THE_MECHANISM and name.removeprefix("--") in said)
        assert told, (names, name, said)
        assert_of_the_command_line(said)


def assert_of_the_command_line(said: str) -> None:
    root = PROGRAM
    arguments = {option.name for command in walk(root) for option in command.params} | {"bins", "quasi_identifiers"}
    unquoted = re.sub(r"'[^']*'", "", said)
    assert not [word for word in re.findall(r"([a-z_]+)=", unquoted) if word in arguments], said
    assert not [word for word in re.findall(r"[a-z_]+", unquoted) if "_" in word and word in arguments], said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("choose", *TABLE, "--max-caused", "1.5"), "--max-caused must be a share of people above 0, up to 1; got 1.5"),
        (("choose", *TABLE), "allowed: --max-caused, --max-certain, --max-person, "),
        (("choose", *TABLE), "for example --max-caused 0.01\n"),
        (("assess", *TABLE, "--epsilon", "1", "--belief", "0.4/0.9"), "got 1 shape, 2 labels"),
        (("assess", *TABLE, "--epsilon", "1", "--table", "people"), "leave --table out\n"),
        (("assess", *TABLE[:5], "--epsilon", "1", "--levels", "job=cook"), "declare them with --levels as well, or"),
        (("assess", *TABLE[:5], "--epsilon", "1", "--levels", "job=cook"), "these records out with --outside drop"),
        (("inspect", "one.csv", "--qid", "sex", "--sensitive", "job"), "declare the other levels with --levels\n"),
        (("inspect", "gap.csv", "--qid", "sex", "--sensitive", "job", "--missing", "error"), "use --missing category"),
        (("inspect", "sums.csv", "--qid", "sex", "--sensitive", "job"), "with --count n, or give --count none if each"),
        (("release", *TABLE, "--epsilon", "1", "--output", "people.csv"), "people.csv"),
        (("release", *TABLE, "--epsilon", "1", "--output", "one.csv"), "or replace it with --force\n"),
        (("publish-risk", *TABLE, "--epsilon", "1"), "Missing option '--risk-epsilon'"),
        (("average", *TABLE, "--epsilon", "1", "--releases", "1e300"), "--releases must be a whole number from 1 to"),
        (("ledger", "risk", *LEDGER, "--total-delta", "7", "--epsilon", "1"), "--total-delta must be a number"),
        ((*ADD, "--cohort", "new", "--part-of", "all"), "also give --new-cohort"),
        ((*ADD, "--part-of", "all"), "--part-of needs a new cohort"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_no_python_is_needed_to_understand(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("one.csv").write_text("sex,job\nf,cook\nm,cook\n", encoding="utf-8")
    Path("gap.csv").write_text("sex,job\nf,cook\nm,\n", encoding="utf-8")
    rows = [f"{sex},{job},{7 + place}" for place, (sex, job) in enumerate((a, b) for a in "fm" for b in "xyz")]
    Path("sums.csv").write_text("\n".join(["sex,job,n", *rows]), encoding="utf-8")
    said = refuse(capsys, *arguments)
    assert told in said
    assert_of_the_command_line(said)
