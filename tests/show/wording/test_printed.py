"""What commands print on one table: plain words, short sentences, and first screens that fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cellrisk.cli import main

Printed = Callable[..., str]
TABLE = ["people.csv", "--qid", "town,age", "--sensitive", "illness"]
LEVELS = ["--levels", "town=t0|t1|t2|t3|t4|t5", "--levels", "age=20|30|40|50", "--levels", "illness=none|flu|gout"]
ADD = "ledger add ledger.db --attribute illness --qid town,age --epsilon 0.5 --mechanism geometric"
SET = """
source = "people.csv"
sensitive = "illness"
epsilon = 0.7
levels = {illness = ["none", "flu", "gout"]}
[[table]]
qid = ["town"]
[[table]]
qid = ["age"]
"""
SCREENS = {
    "assess": ["assess", *TABLE, "--epsilon", "1"],
    "assess, threshold": ["assess", *TABLE, "--epsilon", "1", "--threshold", "4.5", "--mechanism", "laplace"],
    "curve": ["curve", *TABLE],
    "choose": ["choose", *TABLE, "--max-caused", "0.01"],
    "choose, two limits": ["choose", *TABLE, "--max-person", "0.2", "--max-ceiling", "0.75"],
    "choose, none": ["choose", *TABLE, "--max-risk", "0.001"],
    "choose, unbound": ["choose", *TABLE, "--max-risk", "1"],
    "explain": ["explain", *TABLE, "--epsilon", "1"],
    "audit": ["audit", "people.csv", "released.csv", *TABLE[1:]],
    "together": ["together", "set.toml"],
    "release": ["release", *TABLE, *LEVELS, "--epsilon", "1", "--output", "again.csv"],
    "ledger list": ["ledger", "list", "ledger.db"],
}
OTHERS = {
    "inspect": ["inspect", *TABLE],
    "utility": ["utility", *TABLE, "--epsilon", "1", "--releases", "3"],
    "simulate": ["simulate", *TABLE, "--epsilon", "1", "--releases", "20"],
    "average": ["average", *TABLE, "--epsilon", "1", "--releases", "3"],
    "curve of figures": ["curve", *TABLE, "--measure", "caused,certainty,ceiling", "--epsilon", "0.1,1,10"],
    "perturbation": ["assess", *TABLE, "--perturbation", "random-rounding:3"],
    "split": ["together", "split", "set.toml", "--total-epsilon", "2"],
    "publish-risk": ["publish-risk", *TABLE, *LEVELS, "--epsilon", "1", "--risk-epsilon", "0.5"],
    "ledger show": ["ledger", "show", "ledger.db"],
    "ledger verify": ["ledger", "verify", "ledger.db"],
    "ledger risk": ["ledger", "risk", "ledger.db", *TABLE],
}
BANNED = re.compile(
    r"\bgive[ns]? away|\bgives away|read off|\bwhoever\b|\bsomebody\b|\bis told\b|\bby chance\b|does the mathematics|"
    r"named rightly|\b0\.0%|would have their|nothing is recommended",
    re.IGNORECASE,
)
MOST_WORDS, MOST_LINES, MOST_COLUMNS = 30, 16, 115


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a table of 600 people, a release, a set of tables and a ledger."""
    place = tmp_path_factory.mktemp("printed")
    random = np.random.default_rng(3)
    size = 600
    frame = pd.DataFrame(
        {"town": random.choice([f"t{n}" for n in range(6)], size, p=[0.5, 0.2, 0.15, 0.1, 0.04, 0.01])}
    )
    frame["age"] = random.choice([20, 30, 40, 50], size, p=[0.6, 0.3, 0.08, 0.02])
    frame["illness"] = random.choice(["none", "flu", "gout"], size, p=[0.85, 0.1, 0.05])
    frame.to_csv(place / "people.csv", index=False)
    (place / "set.toml").write_text(SET, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for command in (
            ["release", *TABLE, *LEVELS, "--epsilon", "1", "--output", "released.csv"],
            ["ledger", "create", "ledger.db"],
            ["ledger", "limit", "ledger.db", "--epsilon", "10"],
            *([*ADD.split(), "--purpose", f"year {year}"] for year in range(9)),
        ):
            assert main(command) == 0
    return place


@pytest.fixture
def printed(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run a command there and return what it prints."""
    monkeypatch.chdir(folder)
    for file in folder.glob("again.csv*"):
        file.unlink()

    def run(*command: str) -> str:
        capsys.readouterr()
        main(list(command))
        return capsys.readouterr().out

    return run


def sentences(text: str) -> list[str]:
    """Return the sentences of a text: what is aligned in columns is none."""
    lines = [line for line in text.splitlines() if not re.search(r"\S {2,}\S", line)]
    blocks = re.sub(r"\n(?=[a-z(])", " ", "\n".join(lines)).splitlines()
    return [sentence for block in blocks for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z'(])", block)]


def check_words(text: str) -> None:
    """Refuse banned words, and sentences of more than thirty words."""
    assert not BANNED.search(text), BANNED.search(text)
    for sentence in sentences(text):
        assert len(sentence.split()) <= MOST_WORDS, sentence


@pytest.mark.parametrize("name", SCREENS)
def test_first_screens_are_short_and_plain(printed: Printed, name: str) -> None:
    text = printed(*SCREENS[name])
    lines = text.strip().splitlines()
    assert len(lines) <= MOST_LINES + ("\n\nWritten to" in text) * 2, text
    assert max(map(len, lines)) <= MOST_COLUMNS or name.startswith("choose, "), max(lines, key=len)
    check_words(text)
    if "choose" not in name:
        assert "cellrisk " in text or "--all" in text, "a result ends with the next command"


@pytest.mark.parametrize("name", OTHERS)
def test_other_commands_use_plain_words(printed: Printed, name: str) -> None:
    text = printed(*OTHERS[name])
    assert not BANNED.search(text), BANNED.search(text)


@pytest.mark.parametrize(
    "name",
    ["assess", "curve", pytest.param("choose", marks=pytest.mark.slow), "explain", "audit", "together", "release"],
)
def test_all_prints_more(printed: Printed, name: str) -> None:
    first = printed(*SCREENS[name])
    again = ["--output", "more.csv", "--force"] if name == "release" else []
    everything = printed(*SCREENS[name], "--all", *again)
    assert len(everything) > 1.2 * len(first)
    assert not BANNED.search(everything), BANNED.search(everything)


@pytest.mark.slow
def test_the_epsilon_on_the_screen_is_that_of_json(printed: Printed) -> None:
    found = re.search(r"^Recommended: epsilon (\S+) with", printed(*SCREENS["choose"]), re.MULTILINE)
    assert found is not None
    assert float(found[1]) == json.loads(printed(*SCREENS["choose"], "--json"))["epsilon"]
