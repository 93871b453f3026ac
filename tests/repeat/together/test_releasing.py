"""Sets that are released: every table with its description, one entry in a ledger, all or none; what neighbours see."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.ledger import Ledger
from cellrisk.repeat.ledger.staging import Draft
from cellrisk.repeat.together import releasing
from cellrisk.repeat.together.releasing import TogetherRelease
from tests.near import near
from tests.refusals import refused

ROWS = [("fm"[i % 2], "abc"[i % 3], 20 + 7 * i % 50, "xy"[i * i % 5 % 2]) for i in range(40)]
COLUMNS = ["sex", "town", "age", "job"]
LEVELS = {"sex": ["f", "m"], "town": ["a", "b", "c"], "job": ["x", "y"]}
WHOLE = ["set.json", "table-1.csv", "table-1.csv.json", "table-2.csv", "table-2.csv.json"]
OTHER_DIGITS = str.maketrans("0123456789", "1234567890")
"""Whatever the noise made of the counts, each is another one then."""
TABLES: list[dict[str, Any]] = [
    {"qid": "sex"},
    {"name": "older", "qid": ["town", "age"], "where": {"age": {"from": 30}}, "epsilon": 0.5},
]
SET = """
source = "people.csv"
sensitive = "job"
epsilon = 1.0
bin = ["age=0/25/45"]
levels = ["job=x|y", "sex=f|m", "town=a|b|c"]
[[table]]
qid = ["sex"]
[[table]]
name = "older"
qid = ["town", "age"]
where = {age = {from = 30}}
epsilon = 0.5
"""


def make(rows: Any = ROWS, tables: Any = TABLES, **asked: Any) -> TogetherRelease:
    texts = [[None if value is None else str(value) for value in row] for row in rows]  # as a CSV file has them
    frame = pd.DataFrame(texts, columns=COLUMNS, dtype=object)
    used = {
        name
        for table in tables
        for name in ("job", *([table["qid"]] if isinstance(table["qid"], str) else table["qid"]))
    }
    bins = {"age": [0, 25, 45]} if "age" in used else {}
    levels = {name: labels for name, labels in LEVELS.items() if name in used}
    told = {"bins": bins, "levels": levels, "epsilon": 1.0, "format": "csv", **asked}
    return cr.release_together(frame, tables, "job", **told)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pd.DataFrame(ROWS, columns=COLUMNS).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "set.toml").write_text(SET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_noise_to_speak_of_each_table_counts_its_people() -> None:
    found = make(tables=[{**table, "epsilon": 45.0} for table in TABLES])
    first, second = (release.frame for release in found.releases)
    assert {(row.sex, row.job): row.count_ for row in first.rename(columns={"count": "count_"}).itertuples()} == {
        (sex, job): Counter((row[0], row[3]) for row in ROWS)[sex, job] for sex in "fm" for job in "xy"
    }
    older = Counter((town, "above 45" if age > 45 else "(25, 45]", job) for _, town, age, job in ROWS if age >= 30)
    told = {(row.town, row.age, row.job): row[-1] for row in second.itertuples() if row[-1]}
    assert told == dict(older)


def test_what_is_assessed_is_what_is_released() -> None:
    """Records outside the declared labels are in the same tables of both: with next to no noise, the same counts."""
    rows = [*ROWS, ("other", "a", 50, "x"), ("f", "a", 50, "unheard"), ("m", "nowhere", 58, "y")]
    tables = [{**table, "epsilon": 45.0} for table in TABLES]
    released = [each.frame["count"].sum() for each in make(rows, tables).releases]
    assessed = cr.assess_together(
        pd.DataFrame(rows, columns=COLUMNS), tables, "job", bins={"age": [0, 25, 45]}, levels=LEVELS, outside="drop"
    )
    assert [each.records for each in assessed.tables] == released
    assert released[0] == len(ROWS) + 1  # who is nowhere has a sex


def test_the_folder_holds_every_table_with_its_description(tmp_path: Path) -> None:
    found = make()
    found.save(tmp_path / "released")
    assert sorted(os.listdir(tmp_path / "released")) == WHOLE
    assert os.listdir(tmp_path) == ["released"]
    told = json.loads((tmp_path / "released" / "table-2.csv.json").read_text(encoding="utf-8"))
    assert told["set"] == {"tables": 2, "number": 2, "name": "older", "where": "age from 30"}
    assert told["mechanism"]["epsilon"] == near(0.5)
    with pytest.raises(InvalidInput, match="exists"):
        found.save(tmp_path / "released")
    (tmp_path / "taken").write_text("something", encoding="utf-8")
    with pytest.raises(InvalidInput, match="exists"):
        found.save(tmp_path / "taken")
    with pytest.raises(InvalidInput, match="does not exist"):
        found.save(tmp_path / "nowhere" / "released")
    assert (tmp_path / "released" / "table-1.csv").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def test_what_one_set_costs() -> None:
    assert make().loss.describe() == "1.5-DP"
    women, men = ({"qid": "town", "where": {"sex": sex}} for sex in "fm")
    assert make(tables=[women, men, {"qid": "age"}]).loss.epsilon == near(2.0)
    mixed = make(tables=[{"qid": "sex"}, {"qid": "town", "mechanism": "discrete-gaussian", "delta": 1e-6}])
    rho = cr.DiscreteGaussian(epsilon=1.0, delta=1e-6).rho
    assert mixed.loss.total_rho == near(0.5 + rho)
    assert [event.kind for event in mixed.loss.events] == ["geometric", "discrete-gaussian"]


def test_the_command_with_a_ledger_that_knows_the_set_as_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "create", "ledger.db"]) == 0
    arguments = ["together", "release", "set.toml", "--ledger", "ledger.db", "--format", "csv"]
    assert main([*arguments, "--output", "released", "--purpose", "yearly"]) == 0
    assert "Recorded in ledger.db as entry 2." in capsys.readouterr().out
    assert sorted(os.listdir("released")) == WHOLE
    with Ledger("ledger.db") as ledger:
        (entry,) = ledger.entries(kind="release")
        assert (entry.attribute, entry.quasi_identifiers) == ("job", ("sex", "town", "age"))
        assert (
            entry.headline == "Release of a set of tables of job by sex, town, age about cohort 'everyone' at 1.5-DP."
        )
        assert ledger.spent("everyone").epsilon == near(1.5)
        assert ledger.verify().ok
        named = {"id": ledger.id, "entry": entry.number, "digest": entry.digest}
    for number in (1, 2):
        described = json.loads(Path(f"released/table-{number}.csv.json").read_text(encoding="utf-8"))
        assert described["ledger"] == named
    assert main(["ledger", "export", "ledger.db", "--output", "released/table-1.csv"]) == 2
    assert "would replace" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["table-2.csv", "table-1.csv.json", "set.json"])
@pytest.mark.parametrize("how", ["changed", "deleted"])
def test_what_was_changed_afterwards_is_found(folder: Path, place: str, how: str) -> None:
    released = make()
    with Ledger("ledger.db", create=True) as ledger:
        ledger.save(released, "released")
        assert ledger.verify().ok
        file = Path("released") / place
        if how == "deleted":
            file.unlink()
        else:
            file.write_text(file.read_text(encoding="utf-8").translate(OTHER_DIGITS), encoding="utf-8")
        found = ledger.verify()
        assert not found.ok or (place, how) == ("set.json", "deleted")
        assert [text for _, text in (*found.problems, *found.remarks) if place in text or "list" in text]


def test_a_limit_refuses_all_of_it_and_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ledger("ledger.db", create=True) as ledger:
        ledger.set_limit("everyone", epsilon=1.2)  # above each table alone, below both
    before = sorted(os.listdir())
    assert main(["together", "release", "set.toml", "--ledger", "ledger.db", "--output", "released"]) == 2
    assert "would exceed the limit" in capsys.readouterr().err
    assert sorted(os.listdir()) == before
    with Ledger("ledger.db") as ledger:
        assert ledger.entries(kind="release") == ()


def test_a_failure_in_the_middle_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second table cannot be made, or the last file cannot be written: neither files nor entry."""
    with Ledger("ledger.db", create=True):
        pass
    before = sorted(os.listdir())
    real, made = releasing.release, []

    def fail(*given: Any, **more: Any) -> Any:
        made.append(given)
        if len(made) == 2:
            raise InvalidInput("no more noise")
        return real(*given, **more)

    monkeypatch.setattr(releasing, "release", fail)
    assert main(["together", "release", "set.toml", "--ledger", "ledger.db", "--output", "released"]) == 2
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    released = make()
    monkeypatch.setattr(Draft, "seal", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with Ledger("ledger.db") as ledger:
        with refused("output"):
            ledger.save(released, "released")
        assert ledger.entries(kind="release") == ()
    assert sorted(os.listdir()) == before


def see(rows: Any, **asked: Any) -> Any:
    """What a reader sees of a released set: everything but the noise."""
    try:
        found = make(rows, **asked)
    except CellriskError as refusal:
        return str(refusal)
    contents, descriptions = found.files(Path("set.json"))
    listed, described = json.loads(contents["set.json"]), [json.loads(each) for each in descriptions.values()]
    for each in (*listed["tables"], *described):
        del each["sha256"]
        each.pop("description", None)
    frames = [release.frame[release.frame.columns[:-1]].astype(str).to_numpy().tolist() for release in found.releases]
    return listed, described, frames, re.sub(" {2,}", "  ", str(found))


STRANGERS = [
    ("f", "a", 1e300, "x"),
    ("f", "a", None, "x"),
    ("unseen", "a", 40, "y"),
    (None, None, None, None),
    ("m", "c", "thirty", "unseen"),
    ("m", "c", "30.0", "y"),
    (7, 8.5, True, "x"),
]
PARTS: dict[str, Any] = {
    "by a number": {"age": {"from": 30}},
    "by a value": {"sex": "f"},
    "by none of some values": {"sex": {"not": ["f", "never"]}},
    "by a number of a text": {"town": {"below": 3}},
    "by a whole number": {"age": [27, 34]},
}


NEIGHBOURS = {
    "one less": ROWS[1:],
    **{f"stranger {number}": [stranger, *ROWS] for number, stranger in enumerate(STRANGERS, 1)},
    "every stranger": [*STRANGERS, *ROWS],
    "nobody": [],
}


def tables_of(part: str) -> list[dict[str, Any]]:
    return [{"qid": "sex"}, {"qid": ["town", "age"], "where": PARTS[part]}]


@cache
def see_usual(part: str) -> Any:
    return see(ROWS, tables=tables_of(part))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("rows", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_neighbours_look_alike(rows: list[Any], part: str) -> None:
    """One record more, less or changed, however strange, is seen in the noise alone; nobody at all, too."""
    assert isinstance(see_usual(part), tuple)
    assert see(rows, tables=tables_of(part)) == see_usual(part)


def test_one_record_moves_one_count_of_each_table_by_one() -> None:
    """At this epsilon there is no noise to speak of."""
    tables = [{**table, "epsilon": 45.0} for table in TABLES]
    before, after = make(tables=tables), make([*ROWS, ("f", "a", 33, "x")], tables=tables)
    for one, other in zip(before.releases, after.releases, strict=True):
        assert abs(one.frame["count"] - other.frame["count"]).sum() == 1
    outside = make([*ROWS, ("f", "a", 29, "x")], tables=tables)  # in no part that begins at 30
    assert (outside.releases[1].frame["count"] == before.releases[1].frame["count"]).all()


WRONG: dict[str, tuple[list[str], str]] = {
    "an epsilon beside it": (["--epsilon", "1"], "No such option: --epsilon"),
    "force": (["--force"], "No such option: --force"),
    "no such format": (["--format", "xlsx"], "unknown format"),
    "a column that is in no table": (["--may-be-missing", "height"], "which no table has"),
    "a rule for no table": (["--exclude", "sex=f;town=a"], "no table has all columns"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    more, reason = WRONG[case]
    before = sorted(os.listdir())
    assert main(["together", "release", *more, "set.toml", "--output", "released"]) == 2
    told = capsys.readouterr()
    assert reason in told.err
    assert (len(told.err.splitlines()), told.out) == (1, "")
    assert sorted(os.listdir()) == before


def test_a_policy_forbids_before_any_noise(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cellrisk.toml").write_text("[policy]\nmax-epsilon = 1.2\n", encoding="utf-8")  # above each, below both
    assert main(["together", "release", "set.toml", "--output", "released"]) == 3
    assert "all tables together, the policy asks for an epsilon of at most 1.2" in capsys.readouterr().err
    Path("cellrisk.toml").write_text("[policy]\nmax-caused = 0.00001\n", encoding="utf-8")
    assert main(["together", "release", "set.toml", "--output", "released"]) == 3
    assert "the policy forbids this release" in capsys.readouterr().err
    assert not Path("released").exists()


def test_a_folder_is_never_replaced(folder: Path) -> None:
    with Ledger("ledger.db", create=True) as ledger, pytest.raises(InvalidInput, match="never replaced"):
        ledger.save(make(), "released", force=True)
    assert not Path("released").exists()
