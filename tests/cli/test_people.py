"""Every command on people with several records, run as a person would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.commands import run
from tests.near import near

Capture = pytest.CaptureFixture[str]
TABLE = ("visits.csv", "--qid", "area", "--sensitive", "ill")
LEVELS = ("--levels", "area=n|s|e", "--levels", "ill=flu|cold|none")
PERSON = ("--person", "who", "--contributions", "3")
UNIT = {"kind": "person", "contributions": 3, "per_group": 3, "enforced": True}
SET = """
source = "visits.csv"
sensitive = "ill"
epsilon = 1.0
person = "who"
contributions = 3
levels = ["area=n|s|e", "sex=f|m", "ill=flu|cold|none"]
[[table]]
qid = ["area"]
[[table]]
qid = ["sex"]
where = {area = "n"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    generator = np.random.default_rng(3)
    who = np.sort(generator.integers(0, 100, 300))
    frame = pd.DataFrame({"who": [f"p{number}" for number in who], "stays": 1})
    frame["area"] = generator.choice([*"nse"], 300)
    frame["sex"] = generator.choice([*"fm"], 300)
    frame["ill"] = generator.choice(["flu", "cold", "none"], 300)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    frame.assign(who=range(300)).to_csv(tmp_path / "single.csv", index=False)
    (tmp_path / "set.toml").write_text(SET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def find_units(document: Any) -> list[Any]:
    """Return every ``unit`` of a JSON document."""
    if isinstance(document, list):
        return [unit for each in document for unit in find_units(each)]
    if not isinstance(document, dict):
        return []
    own = [document["unit"]] if isinstance(document.get("unit"), dict) else []
    return own + [unit for each in document.values() for unit in find_units(each)]


ANSWERED = {
    "inspect": (),
    "assess": ("--epsilon", "1"),
    "curve": ("--epsilon", "0.1,1"),
    "choose": ("--max-person", "0.05"),
    "release": ("--epsilon", "1", "--output", "made.csv"),
}


@pytest.mark.parametrize("command", ANSWERED)
def test_commands_name_the_unit(capsys: Capture, command: str) -> None:
    code, out, err = run(capsys, command, *TABLE, *LEVELS, *PERSON, *ANSWERED[command], "--json")
    assert (code, err) == (0, "")
    units = find_units(json.loads(out))
    assert units
    assert all(unit == UNIT for unit in units)


@pytest.mark.parametrize("command", [*ANSWERED, "utility"])
def test_an_asserted_bound_is_said_to_be_asserted(capsys: Capture, command: str) -> None:
    given = ANSWERED.get(command, ("--epsilon", "1", "--releases", "2"))
    if command == "choose":
        given = ("--max-posterior", "5:20")
    code, out, _ = run(
        capsys, command, *TABLE, *LEVELS, "--contributions", "4", *given, *(["--all"] * (command == "release"))
    )
    assert code == 0
    assert "asserted, not checked" in " ".join(out.split())
    assert "--max-caused" not in out  # it would be refused


@pytest.mark.parametrize("public", [(), ("--public",)])
def test_reports(capsys: Capture, folder: Path, public: tuple[str, ...]) -> None:
    asked = ("--epsilon", "1", "--max-ceiling", "0.9", "--output", "report.html", *public)
    assert run(capsys, "report", *TABLE, *LEVELS, *PERSON, *asked)[0] == 0
    text = (folder / "report.html").read_text()
    assert "One person. At most 3 records of a person are kept." in text
    assert "one person. At most 3 records" in text  # in the label
    assert public or "because of their own records" in text


REFUSED = {
    "assess with a perturbation": ("assess", "--perturbation", "cell-key"),
    "explain": ("explain", "--epsilon", "1"),
    "choose-private": ("choose-private", "--choice-epsilon", "0.1", "--max-caused-people", "5"),
    "report on a perturbation": ("report", "--perturbation", "cell-key", "--output", "report.html"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_known_for_people_is_refused_with_what_to_type(capsys: Capture, what: str) -> None:
    command, *asked = REFUSED[what]
    code, out, err = run(capsys, command, *TABLE, *LEVELS, *PERSON, *asked)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "known for people with one record each alone; got at most 3 records of a person are kept" in err
    assert "--contributions 1" in err


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no record": (("--person", "who", "--contributions", "0"), "--contributions"),
    "C alone": (("--per-group", "2"), "--contributions 3"),
    "a quasi-identifier": (("--person", "area", "--contributions", "2"), "can have one role"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_ends_with_one_line(capsys: Capture, what: str) -> None:
    given, words = BAD[what]
    code, out, err = run(capsys, "assess", *TABLE, *given, "--epsilon", "1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_inspect_shows_how_many_records_people_have(capsys: Capture) -> None:
    own = pd.read_csv("visits.csv").groupby("who").size()
    for given in ((), ("--contributions", "2")):
        code, out, _ = run(capsys, "inspect", *TABLE, "--person", "who", *given, "--json")
        rows = json.loads(out)["kept_records"]
        assert code == 0
        assert [row["people"] for row in rows] == [int((own == row["to"]).sum()) for row in rows]
        assert [row["kept"] for row in rows] == [near(own.clip(upper=row["to"]).sum() / 300) for row in rows]
    printed = run(capsys, "inspect", *TABLE, "--person", "who")[1]
    assert "records kept at this bound" in printed
    assert "A bound chosen from these data reveals a little about them." in printed
    printed = run(capsys, "inspect", *TABLE, "--person", "who", "--per-group", "1")[1]
    fewer = pd.read_csv("visits.csv").drop_duplicates(["who", "area", "ill"]).groupby("who").size()
    assert f"{(fewer == 1).sum()}" in printed


def test_a_policy_may_require_a_unit(capsys: Capture, folder: Path) -> None:
    asked = ("release", *TABLE, *LEVELS, "--epsilon", "1", "--output", "made.csv")
    figure = ("publish-risk", *TABLE, *LEVELS, "--epsilon", "1", "--risk-epsilon", "0.1")
    (folder / "cellrisk.toml").write_text('[policy]\nunit = "enforced"\n')
    for given in ((), ("--contributions", "3")):
        code, _, err = run(capsys, *asked, *given)
        assert code == 3
        assert "the policy requires that the records of each person are limited (person, contributions)" in err
    assert run(capsys, *figure)[0] == 2
    assert run(capsys, *figure, "--person", "who", "--contributions", "1")[0] == 0
    assert run(capsys, *asked, *PERSON)[0] == 0
    (folder / "cellrisk.toml").write_text('contributions = 3\n[policy]\nunit = "person"\n')
    assert run(capsys, *asked, "--force")[0] == 0
    (folder / "cellrisk.toml").write_text('[policy]\nunit = "household"\n')
    assert run(capsys, *asked, "--force")[0] == 2


def test_a_set_is_released_for_people_and_not_assessed(capsys: Capture, folder: Path) -> None:
    code, out, _ = run(capsys, "together", "release", "set.toml", "--output", "made", "--json")
    document = json.loads(out)
    assert code == 0
    assert all(unit == UNIT for unit in find_units(document))
    assert document["cost"]["epsilon"] == near(2.0)  # one person can be in both parts
    assert document["tables"][0]["mechanism"]["scale"] == near(3.0)
    for command in ("assess", "split", "report"):
        output = ("--output", "set.html") if command == "report" else ()
        code, _, err = run(capsys, "together", command, "set.toml", *output)
        assert (code, err.count("\n")) == (2, 1)
        assert "people with one record each alone; got at most 3 records" in err
    for given, words in {
        SET.replace("contributions = 3", "contributions = 1"): "people with more",
        f"{SET}contributions = 2": "unknown key in table 2 of the set",
        f"{SET}per-group = 1": "unknown key in table 2 of the set",
        SET.replace("contributions = 3", "contributions = 0"): "must be a whole number",
    }.items():
        (folder / "set.toml").write_text(given)
        code, _, err = run(capsys, "together", "set.toml")
        assert (code, err.count("\n")) == (2, 1)
        assert words in err


def test_a_set_of_people_with_one_record_each_is_assessed_as_before(capsys: Capture, folder: Path) -> None:
    single = SET.replace("visits", "single").replace("contributions = 3", "contributions = 1")
    found = []
    for text in (single, single.replace('person = "who"\ncontributions = 1\n', "")):
        (folder / "set.toml").write_text(text)
        code, out, _ = run(capsys, "together", "set.toml", "--json")
        assert code == 0
        document = json.loads(out)
        alone = [[table[name] for name in ("right", "caused", "sd", "raw")] for table in document["tables"]]
        found.append([document["rules"], document["ceiling"]["even_two"], alone])
    assert found[0] == found[1]


def test_an_audit_counts_records(capsys: Capture) -> None:
    assert run(capsys, "release", *TABLE, *LEVELS, *PERSON, "--epsilon", "1", "--output", "made.csv")[0] == 0
    code, _, err = run(capsys, "audit", TABLE[0], "made.csv", *TABLE[1:], *PERSON)
    assert (code, err.count("\n")) == (2, 1)
    assert "leave --person out, and state the bound with --contributions" in err
    code, out, _ = run(capsys, "audit", TABLE[0], "made.csv", *TABLE[1:], "--contributions", "3")
    assert code == 0
    assert "of 300 records" in out
    assert "of the records" in out
    assert "of 300 people" not in out


def test_a_ledger_is_about_people(capsys: Capture) -> None:
    released = ("release", *TABLE, *LEVELS, *PERSON, "--epsilon", "0.5", "--output", "made.csv")
    assert run(capsys, *released, "--ledger", "l.db", "--new-ledger", "--purpose", "x")[0] == 0
    added = ("ledger", "add", "l.db", "--attribute", "ill", "--qid", "area", "--epsilon", "0.5", "--purpose", "y")
    code, _, err = run(capsys, *added)
    assert (code, err.count("\n")) == (2, 1)
    assert "losses of records and of people cannot be composed" in err
    for more in ((), ("--mechanism", "geometric")):
        code, out, _ = run(capsys, *added, "--contributions", "4", *more, "--json")
        assert code == 0
        assert json.loads(out)["loss"]["unit"] == {**UNIT, "contributions": 4, "per_group": 4, "enforced": False}
    shown = run(capsys, "ledger", "show", "l.db")[1]
    assert "Tables are neighbours if the records of one person are added or removed." in shown
    assert "one count changes by 1" not in shown
    assert run(capsys, "ledger", "plan", "l.db", "--epsilon", "0.1")[0] == 0
    planned = run(capsys, "ledger", "plan", "l.db", "--max-ceiling", "0.95", "--json")[1]
    assert json.loads(planned)["epsilon"] > 0
    for more in ((), PERSON):
        code, _, err = run(capsys, "ledger", "risk", "l.db", "visits.csv", *more)
        assert (code, err.count("\n")) == (2, 1)
        assert "known for people with one record each alone" in err


MORE = {
    "one visit": "p-new,1,n,f,flu",
    "many visits": "\n".join(f"p-new,1,{area},{sex},flu" for area in "nse" for sex in "fm"),
    "visits outside": "p-new,1,x,f,flu\np-new,1,n,f,?\np-new,1,,f,flu",
    "visits of nobody": ",1,n,f,flu\n,1,s,f,flu",
    "a number as identifier": "7,1,n,f,flu",
}


@pytest.mark.parametrize("rows", ["whole", "none"])
@pytest.mark.parametrize("more", MORE)
def test_one_person_more_changes_nothing_that_is_printed_but_counts(
    capsys: Capture, folder: Path, more: str, rows: str
) -> None:
    lines = (folder / "visits.csv").read_text().splitlines()
    start = lines if rows == "whole" else lines[:1]
    asked = ("release", *TABLE, *LEVELS, *PERSON, "--epsilon", "1", "--output", "made.csv", "--force")
    seen = []
    for content in (start, [*start, MORE[more]]):
        (folder / "visits.csv").write_text("\n".join(content) + "\n")
        code, out, err = run(capsys, *asked, "--all")
        keys = pd.read_csv("made.csv").drop(columns="count").to_csv()
        seen.append((code, out, err, keys, sorted(json.loads((folder / "made.csv.json").read_text()))))
    assert seen[0] == seen[1]
    assert seen[0][0] == 0
