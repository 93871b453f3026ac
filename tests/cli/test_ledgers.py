"""The commands around repeated releases, run as a person would."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from tests import commands
from tests.commands import SECRET
from tests.near import same

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install 'cellrisk[ledger]'")
Run = Callable[..., tuple[int, str, str]]
LEDGER = "releases.db"
LEVELS = ("--levels", "sex=f|m", "--levels", "illness=flu|cold|other")
RELEASE = ("release", "people.csv", "--qid", "sex", "--sensitive", "illness", *LEVELS)


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    generator = np.random.default_rng(11)
    frame = pd.DataFrame(
        {
            "sex": generator.choice(["f", "m"], 200),
            "ward": generator.choice(["w1", "w2", "w3", SECRET], 200),
            "age": generator.integers(20, 90, 200),
            "illness": generator.choice(["flu", "cold", "other"], 200, p=[0.7, 0.2, 0.1]),
            "job": generator.choice(["cook", SECRET], 200, p=[0.9, 0.1]),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return partial(commands.run, capsys)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    return partial(commands.refuse, capsys)


@pytest.fixture
def answered(run: Run) -> Callable[..., Any]:
    def call(*arguments: str) -> Any:
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call


@pytest.fixture
def ledger(run: Run) -> str:
    """Two releases by Laplace noise, of job and of illness, and a limit."""
    assert run("ledger", "create", LEDGER)[0] == 0
    assert run("ledger", "limit", LEDGER, "--epsilon", "2")[0] == 0
    for attribute, quasi in (("job", "sex"), ("illness", "sex,ward")):
        arguments = ("--attribute", attribute, "--qid", quasi, "--mechanism", "laplace", "--epsilon", "0.5")
        assert run("ledger", "add", LEDGER, *arguments, "--purpose", "yearly")[0] == 0
    return LEDGER


def steps() -> list[cr.Step]:
    return [
        cr.Step(cr.Laplace(epsilon=0.5), "job", ["sex"]),
        cr.Step(cr.Laplace(epsilon=0.5), "illness", ["sex", "ward"]),
    ]


def test_what_was_added_is_listed_and_shown(ledger: str, run: Run, answered: Callable[..., Any]) -> None:
    entries = answered("ledger", "list", ledger)["entries"]
    assert [entry["kind"] for entry in entries] == ["cohort", "limit", "release", "release"]
    assert answered("ledger", "show", ledger, "4") == entries[3]
    assert entries[3]["quasi_identifiers"] == ["sex", "ward"]
    [cohort] = answered("ledger", "show", ledger)["cohorts"]
    assert (cohort["cohort"], cohort["spent"]["epsilon"], cohort["limit"]["epsilon"]) == ("everyone", 1.0, 2.0)
    [at_delta] = answered("ledger", "show", ledger, "--delta", "1e-6")["cohorts"]
    assert {each["method"] for each in at_delta["spent"]["methods"] if each["epsilon"] is not None} > {"pld", "rdp"}
    assert "illness by sex, ward" in run("ledger", "list", ledger)[1]
    assert "together cost epsilon 1" in run("ledger", "show", ledger)[1]


def test_losses_of_other_tools(run: Run, answered: Callable[..., Any]) -> None:
    for number, given in enumerate((("--epsilon", "1"), ("--epsilon", "1", "--delta", "1e-6"), ("--rho", "0.1"))):
        new = () if number else ("--new-ledger",)
        entry = answered("ledger", "add", LEDGER, "--attribute", f"a{number}", "--qid", "sex", *given, *new)
        assert entry["loss"]["dp_definition"] == ("pure", "approximate", "concentrated")[number]


def test_release_and_entry_are_written_together(run: Run, answered: Callable[..., Any]) -> None:
    recorded = ("--ledger", LEDGER, "--new-ledger", "--cohort", "2021")
    found = run(*RELEASE, "--epsilon", "0.5", "--output", "r.csv", *recorded)
    assert found[0] == 0
    assert "Recorded in releases.db as entry 2." in found[1]
    entry = answered("ledger", "show", LEDGER, "2")
    assert f" 2 {entry['digest']}\n" in found[1]
    assert answered("ledger", "checkpoint", LEDGER)["head"] in found[1]
    described = json.loads(Path("r.csv.json").read_text(encoding="utf-8"))
    assert entry["file"]["sha256"] == described["sha256"]
    assert described["ledger"]["digest"] == entry["digest"]
    assert (entry["cohort"], entry["attribute"], entry["loss"]["events"][0]["mechanism"]) == (
        "2021",
        "illness",
        "geometric",
    )
    assert answered("ledger", "verify", LEDGER)["ok"]
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv", "r.csv", "r.csv.json", LEDGER]


def test_past_the_limit_no_noise_is_drawn(
    ledger: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*_: Any, **__: Any) -> None:
        pytest.fail("noise was drawn")

    monkeypatch.setattr("cellrisk.publish.releasing.measurement.Measurement.add_noise", draw)
    line = refused(*RELEASE, "--epsilon", "1.5", "--output", "r.csv", "--ledger", ledger)
    assert "exceed the limit" in line
    assert "2.5" in line
    assert not Path("r.csv").exists()


def test_a_release_that_fails_leaves_no_entry(ledger: str, refused: Callable[..., str]) -> None:
    refused("release", "people.csv", "--qid", "ward", "--sensitive", "job", "--epsilon", "0.1", "--output", "r.csv",
            "--ledger", ledger)  # fmt: skip
    assert not Path("r.csv").exists()
    with cr.Ledger(ledger) as opened:
        assert len(opened.entries()) == 4
        assert opened.spent("everyone").epsilon == 1.0


def test_risk_along_the_ledger(ledger: str, people: pd.DataFrame, answered: Callable[..., Any], run: Run) -> None:
    table = cr.tabulate(people, ["sex", "ward"], ["job", "illness"])
    told = answered("ledger", "risk", ledger, "people.csv")
    told.pop("note")
    assert told.pop("policy") is None
    assert same(told, json.loads(json.dumps(cr.assess_sequence(table, steps()).to_dict())))
    assert run("ledger", "risk", ledger, "people.csv", "--plot", "risk.svg")[0] == 0
    assert Path("risk.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_plan_says_what_would_be(ledger: str, people: pd.DataFrame, answered: Callable[..., Any], run: Run) -> None:
    next_one = ("--attribute", "illness", "--qid", "age", "--bin", "age=20", "--mechanism", "laplace")
    told = answered("ledger", "risk", ledger, "people.csv", *next_one, "--epsilon", "0.5")
    table = cr.tabulate(people, ["sex", "ward", "age"], ["job", "illness"], bins={"age": 20})
    expected = cr.assess_sequence(table, [*steps(), cr.Step(cr.Laplace(epsilon=0.5), "illness", ["age"])])
    for name in ("cumulative", "overall", "overall_caused", "ceiling"):
        assert same(told["releases"][-1][name], expected.to_dict()["releases"][-1][name]), name
    assert told["releases"][-1]["cumulative"]["epsilon"] == 1.5
    for asked, starts in (
        (("risk", ledger, "people.csv", *next_one), "After 3 releases"),
        (("plan", ledger), "Before: "),
    ):
        code, out, err = run("ledger", *asked, "--epsilon", "1.5")
        assert code == 3
        assert out.startswith(starts)
        assert "exceed the limit" in err
    bare = answered("ledger", "plan", ledger, "--mechanism", "laplace", "--epsilon", "0.5")
    assert (bare["before"]["epsilon"], bare["after"]["epsilon"], bare["refused"]) == (1.0, 1.5, None)


def test_plan_of_the_first_release(answered: Callable[..., Any], run: Run) -> None:
    assert run("ledger", "create", LEDGER)[0] == 0
    bare = answered("ledger", "plan", LEDGER, "--epsilon", "0.5")
    assert (bare["before"]["releases"], bare["after"]["epsilon"], bare["refused"]) == (0, 0.5, None)


@pytest.mark.slow
def test_plan_keeps_a_limit_on_the_ceiling_without_records(ledger: str, answered: Callable[..., Any]) -> None:
    told = answered("ledger", "plan", ledger, "--mechanism", "laplace", "--max-ceiling", "0.8")
    assert told["binds"]
    assert "note" not in told
    for epsilon, kept in ((told["epsilon"], True), (1.01 * told["epsilon"], False)):
        noises = [cr.Laplace(epsilon=0.5), cr.Laplace(epsilon=0.5), cr.Laplace(epsilon=epsilon)]
        assert (compose_ceiling([cr.Loss.of(noise) for noise in noises]).even_two <= 0.8 + 1e-6) == kept


def test_average(people: pd.DataFrame, answered: Callable[..., Any]) -> None:
    told = answered("average", "people.csv", "--qid", "sex,ward", "--sensitive", "job", "--epsilon", "0.1",
                    "--releases", "10", "--measure", "local")  # fmt: skip
    table = cr.tabulate(people, ["sex", "ward"], "job")
    expected = cr.average(table, cr.Geometric(epsilon=0.1), releases=10, measures="local").to_dict()
    assert same(told["risks"], expected["risks"])
    assert same(told["decision"], expected["decision"])


def test_verify_tells_of_an_edit(ledger: str, run: Run) -> None:
    connection = sqlite3.connect(ledger)
    connection.execute("DROP TRIGGER entries_are_not_updated")
    connection.execute("UPDATE entries SET body = replace(body, 'yearly', 'hourly') WHERE number = 3")
    connection.commit()
    connection.close()
    code, out, err = run("ledger", "verify", ledger)
    assert code == 3
    assert "3      does not match its digest" in out
    assert err == "cellrisk: the ledger is not as it was written\n"


def test_settings_from_a_file(answered: Callable[..., Any]) -> None:
    Path("cellrisk.toml").write_text(
        'mechanism = "laplace"\nqid = ["sex"]\n[ledger]\ncohort = "2021"\n[ledger.add]\npurpose = "by file"\n',
        encoding="utf-8",
    )
    entry = answered("ledger", "add", LEDGER, "--attribute", "job", "--epsilon", "1", "--new-ledger")
    assert (entry["cohort"], entry["purpose"], entry["quasi_identifiers"]) == ("2021", "by file", ["sex"])


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("no cohort '2022'", ("add", LEDGER, "--attribute", "a", "--qid", "sex", "--epsilon", "1", "--cohort", "2022")),
        ("no cohort '2022'", ("list", LEDGER, "--cohort", "2022")),
        ("ledger add --new-cohort declares it", ("plan", LEDGER, "--epsilon", "0.5", "--cohort", "2022")),
        ("no column 'tax'", ("risk", LEDGER, "people.csv", "--attribute", "tax", "--mechanism", "laplace",
                             "--epsilon", "1")),
        ("also give its loss: --epsilon 0.5", ("risk", LEDGER, "people.csv", "--attribute", "illness")),
        ("has a delta, and the limit has none", ("add", LEDGER, "--qid", "sex", "--epsilon", "0.1", "--delta", "1e-6")),
        ("spent more than that limit", ("limit", LEDGER, "--epsilon", "0.9")),
        ("not a ledger", ("list", "people.csv")),
        ("no ledger", ("verify", "nothing.db")),
        ("Missing option '--epsilon'", ("limit", LEDGER)),
        ("epsilon", ("add", LEDGER, "--qid", "sex")),
        ("either --epsilon", ("plan", LEDGER)),
        ("No such option: --measure", ("plan", LEDGER, "--epsilon", "1", "--measure", "local")),
        ("either --epsilon", ("plan", LEDGER, "--epsilon", "1", "--max-ceiling", "0.8")),
        ("must be a number above 0.5 and below 1", ("plan", LEDGER, "--max-ceiling", "0.5")),
        ("must be a number above 0.5 and below 1", ("plan", LEDGER, "--max-ceiling", "1")),
        ("Missing argument", ("risk", LEDGER)),
        ("decides the form of an export", ("export", LEDGER, "--output", "x.txt")),
        ("Missing option '--output'", ("export", LEDGER)),
        ("no such entry", ("show", LEDGER, "99")),
        ("whole number", ("show", LEDGER, "four")),
        ("--rho cannot be combined", ("add", LEDGER, "--qid", "sex", "--mechanism", "laplace", "--epsilon", "1",
                                 "--rho", "1")),
        ("No such option: --attack", ("risk", LEDGER, "people.csv", "--attack", "plurality")),
    ],
)  # fmt: skip
def test_refusals(words: str, arguments: tuple[str, ...], ledger: str, refused: Callable[..., str]) -> None:
    with cr.Ledger(ledger) as opened:
        before = opened.head
    assert words in refused("ledger", *arguments)
    with cr.Ledger(ledger) as opened:
        assert opened.head == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "add", "new.db", "--attribute", "job", "--qid", "sex", "--epsilon", "1"),
        ("ledger", "limit", "new.db", "--epsilon", "1"),
        ("ledger", "list", "new.db"),
        ("ledger", "verify", "new.db"),
        ("ledger", "recover", "new.db", "."),
        (*RELEASE, "--epsilon", "1", "--output", "r.csv", "--ledger", "new.db"),
        ("serve", "--ledger", "new.db", "--no-browser"),
    ],
)
@pytest.mark.parametrize("empty", [False, True])
def test_a_ledger_that_is_missing_or_empty_is_refused(
    arguments: tuple[str, ...], empty: bool, refused: Callable[..., str]
) -> None:
    if empty:
        Path("new.db").touch()
    assert ("the file is empty" if empty else "there is no ledger") in refused(*arguments)
    assert sorted(os.listdir()) == ["new.db", "people.csv"] if empty else ["people.csv"]
    assert not empty or Path("new.db").stat().st_size == 0


def test_a_new_ledger_is_asked_for_once(run: Run, refused: Callable[..., str]) -> None:
    release = (*RELEASE, "--epsilon", "1", "--output", "r.csv", "--ledger", LEDGER, "--new-ledger")
    assert run("ledger", "create", LEDGER)[0] == 0
    for arguments in (
        ("ledger", "create", LEDGER),
        ("ledger", "limit", LEDGER, "--epsilon", "1", "--new-ledger"),
        release,
    ):
        assert "there is something already" in refused(*arguments)
    Path(LEDGER).unlink()
    assert run(*release)[0] == 0
    assert "--ledger" in refused(*RELEASE, "--epsilon", "1", "--output", "s.csv", "--new-ledger")


def test_a_recorded_release_prints_what_its_cohorts_have_left(run: Run) -> None:
    def spend(name: str, epsilon: str, *more: str) -> str:
        code, out, _ = run(*RELEASE, "--epsilon", epsilon, "--output", name, "--ledger", LEDGER, *more)
        assert code == 0
        return out

    out = spend("first.csv", "1", "--new-ledger")
    assert "Cohort 'everyone' has spent epsilon 1; no limit is set.\n" in out
    assert run("ledger", "limit", LEDGER, "--epsilon", "2.6")[0] == 0
    out = spend("second.csv", "0.5")
    assert "Cohort 'everyone' has spent epsilon 1.5; the limit is epsilon 2.6, so epsilon 1.1 is left.\n" in out
    out = spend("third.csv", "1.1", "--cohort", "patients", "--new-cohort", "--part-of", "everyone")
    assert "Cohort 'patients' has spent epsilon 2.6; no limit is set.\n" in out
    assert "Cohort 'everyone' has spent epsilon 2.6; the limit is epsilon 2.6, so nothing is left.\n" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("release", "people.csv", "--qid", "sex", "--sensitive", "illness", "--epsilon", "1", "--output", "r.csv"),
        (*RELEASE, "--epsilon", "1", "--output", "r.csv", "--cohort", "a\nb"),
        (*RELEASE, "--epsilon", "1", "--output", "r.csv", "--part-of", "nobody"),
        (*RELEASE, "--epsilon", "1", "--output", "r.csv", "--parents", "nothing.csv"),
        (*RELEASE, "--epsilon", "1", "--output", "nowhere/r.csv"),
    ],
)
def test_a_first_release_that_is_refused_leaves_nothing(
    arguments: tuple[str, ...], refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(*arguments, "--ledger", LEDGER, "--new-ledger")
    left = [path.name for path in tmp_path.rglob("*") if path.name not in ("people.csv", "state")]
    assert left == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "new.db", "--attribute", "job", "--qid", "sex", "--epsilon", "1", "--cohort", ""),
        ("add", "new.db", "--attribute", "job", "--qid", "job", "--epsilon", "1"),
        ("add", "new.db", "--qid", "sex", "--epsilon", "-1"),
        ("limit", "new.db", "--epsilon", "0"),
        ("limit", "new.db", "--epsilon", "1", "--method", "best"),
    ],
)
def test_what_is_refused_makes_no_ledger(arguments: tuple[str, ...], refused: Callable[..., str]) -> None:
    refused("ledger", *arguments, "--new-ledger")
    assert os.listdir() == ["people.csv"]
