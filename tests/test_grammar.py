"""Numbers with their nouns: every command on tables of one person, one group, or nobody at risk."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from cellrisk.cli import main

NOUNS = "people|persons|cells|groups|records|releases|tables|labels|levels|values|counts|epsilons|publications"
FAULTS = {
    "one of several": rf"(?<![\d.,:=-])1 ({NOUNS})\b(?! of)",
    "several of one": r"(?<![\d.,])(?:0|[2-9]|\d\d+) (?:person|cell|group|record)\b(?![ -]of|s)",
    "fewer than one of one": r"fewer than 1 of (?:1|one)\b",
    "fewer than one people": r"fewer than 1 (?:people|cells|records)",
    "of one people": r"\bof 1 (?:people|cells|records)\b",
    "no change": r"from (?:about )?(\S*\d[\d.,]*%?)(?: people| person)? to (?:about )?\1(?![\d.,]*\d)",
    "nobody stands": r"\b0 stand",
    "no share": r"(?<![\d.])-0(?:\.0+)?%",
}
TABLES = {
    "one person": ["A,f,u"],
    "one group": ["A,f,u", "A,f,u", "A,m,v"],
    "two people": ["A,f,u", "B,m,v"],
    "nobody at risk": ["A,f,u", "A,f,v", "B,m,u", "B,f,v"],
}
TABLE = "people.csv --qid town --sensitive job --levels town=A|B --levels job=u|v"
PRIVATE = f"{TABLE} --outside drop"
COMMANDS = (
    f"inspect {TABLE}",
    f"assess {TABLE} --epsilon 1",
    f"assess {TABLE} --epsilon 1 --attack plurality",
    f"assess {TABLE} --epsilon 1 --releases 20",
    f"assess {TABLE} --perturbation random-rounding:3",
    f"assess {TABLE} --perturbation suppress-below:2",
    f"explain {TABLE} --epsilon 1",
    f"explain {TABLE} --perturbation random-rounding:3",
    f"curve {TABLE} --epsilon 0.1,1",
    f"curve {TABLE} --epsilon 1 --measure caused,certainty,ceiling,local",
    f"choose {TABLE} --max-caused 0.1",
    f"choose {TABLE} --max-people 1",
    f"choose-private {PRIVATE} --choice-epsilon 90 --max-caused-people 1",
    f"utility {TABLE} --epsilon 1 --releases 20",
    f"simulate {TABLE} --epsilon 1 --releases 20",
    f"simulate {TABLE} --perturbation random-rounding:3 --releases 20",
    f"average {TABLE} --epsilon 1 --releases 1",
    f"average {TABLE} --epsilon 1 --releases 3",
    f"publish-risk {PRIVATE} --epsilon 1 --risk-epsilon 20",
    f"release {TABLE} --outside drop --epsilon 20 --output out.csv --ledger book.db --new-ledger",
    f"audit people.csv out.csv {TABLE.removeprefix('people.csv ')} --top 3",
    "ledger list book.db",
    "ledger show book.db",
    "ledger verify book.db",
    f"ledger risk book.db {TABLE}",
    f"ledger risk book.db {TABLE} --epsilon 0.5 --mechanism geometric",
    "together assess set.toml",
    "together split set.toml --total-epsilon 2",
    f"report {TABLE} --epsilon 1 --output report.html",
    f"report {TABLE} --max-caused 0.1 --output limits.html",
    f"report {TABLE} --perturbation random-rounding:3 --output perturbed.html",
    f"report {TABLE} --outside drop --public --epsilon 1 --output public.html",
    "together report set.toml --output set.html",
)
SET = """source = "people.csv"
sensitive = "job"
levels = ["job=u|v"]
epsilon = 1
[[table]]
qid = ["town"]
[[table]]
qid = ["sex"]
"""


def read(path: Path) -> str:
    text = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", text))


def find_faults(text: str) -> list[str]:
    return [
        f"{name}: {text[max(0, fault.start() - 60) : fault.end() + 40]!r}"
        for name, pattern in FAULTS.items()
        for fault in re.finditer(pattern, text)
    ]


@pytest.mark.parametrize("name", TABLES)
def test_every_command_speaks_of_one_and_of_none(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("\n".join(["town,sex,job", *TABLES[name]]) + "\n", encoding="utf-8")
    Path("set.toml").write_text(SET, encoding="utf-8")
    found = []
    for command in COMMANDS:
        code = main(command.split(" "))
        text = "".join(capsys.readouterr())
        assert code in (0, 3), (command, text)
        found += [f"{command}: {fault}" for fault in find_faults(text)]
    for page in sorted(tmp_path.glob("*.html")):
        found += [f"{page.name}: {fault}" for fault in find_faults(read(page))]
    assert found == []


def test_faults_are_found() -> None:
    faults = ("1 cells, with 1 people", "fewer than 1 of 1 people", "from 12.5% to 12.5%", "0 stand behind", "-0.0%")
    assert all(find_faults(f"There are {fault}.") for fault in faults)
    assert find_faults("1 cell with 1 person; 21 people, 0.1 people, from 1 to 12 people, 1 of 2 people") == []
