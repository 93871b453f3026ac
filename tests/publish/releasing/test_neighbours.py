"""What is published is a function of what was declared, and noise: no record decides on a row, a word or a refusal.

Random schemas go through `release`, the command and the public report with inputs that differ in one record. All that a
reader sees but the noise must be the same. Then faults are put back one by one, and this check must see each.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cellrisk as cr
import cellrisk.publish.releasing as package
from cellrisk.cli import main
from cellrisk.counts import counting
from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import release
from cellrisk.show.wording import release as wording
from tests.publish.releasing.neighbours import KINDS, Case, Record, draw_case, look, look_at_command
from tests.refusals import refused

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

Capture = pytest.CaptureFixture[str]
RULE = {"q0": ["(0, 18]"], "y": ["a"]}
TOTALS = pd.DataFrame({"q0": ["up to 0", "(0, 18]", "(18, 65]", "above 65"], "count": [3, 9, 5, 0]})
CASES = {
    "text": Case(("text", "text"), may_be_missing=("q0",)),
    "truth by numbers": Case(("truth", "numbers"), options={"dense": False}),
    "numbers by truth, counts": Case(("numbers", "truth"), counted=True),
    "sensitive bins": Case(("flags", "edges"), may_be_missing=("y",), options={"clamp": False}),
    "excluded": Case(("edges", "text"), exclude=(RULE,)),
    "excluded and sparse": Case(("edges", "text"), exclude=(RULE,), options={"dense": False}),
    "parents": Case(("edges", "text"), options={"parents": TOTALS}),
    "observed beside declared": Case(("observed", "typed"), counted=True, options={"dense": True}),
    "replaced, dropped": Case(
        ("typed edges", "typed"),
        missing="drop",
        mechanism=cr.Geometric(epsilon=0.5, neighbours="replace", threshold=3.5),
    ),
    **{f"drawn {seed}": draw_case(seed) for seed in (1, 4, 9)},
}


def differ(case: Case, inputs: list[list[Record]], **how: Any) -> list[int]:
    """Which of the inputs a reader can tell from the usual one, which is released."""
    usual = look(case, case.usual(), **how)
    assert isinstance(usual, dict), usual
    return [place for place, records in enumerate(inputs) if look(case, records, **how) != usual]


EMPTY = ("text", "numbers by truth, counts", "excluded and sparse", "parents")
"""The cases that are asked about nobody, too."""


@pytest.mark.parametrize("name", CASES)
def test_neighbours_look_alike(name: str) -> None:
    case = CASES[name]
    generator = np.random.default_rng(len(name))
    near = case.neighbours()
    inputs = [*case.crowds()[: None if name in EMPTY else 1], near[int(generator.integers(len(near)))]]
    assert differ(case, inputs, ending=[".csv", ".parquet"][len(name) % 2]) == []


ALONE = {"text": ("unseen", " a", None), "edges": ("0", "nan", "thirty", "1e400", None), "typed": (7, None)}


@pytest.mark.parametrize("kind", ALONE)
def test_a_stranger_alone(kind: str) -> None:
    case = Case((kind, "text"))
    inputs = [
        [[*case.usual(), (value, "a")], [(value, "a"), *case.usual()[1:]]][turn % 2]
        for turn, value in enumerate(ALONE[kind])
    ]
    assert differ(case, inputs) == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("observed")])
def test_strangers_change_no_count_but_by_one_each(kind: str) -> None:
    """At this epsilon there is no noise to speak of: the counts are those of the records inside."""
    case = Case((kind, "text"), may_be_missing=("q0",), mechanism=cr.Geometric(epsilon=45.0))
    usual, strangers = 20 * case.usual(), case.strangers()

    def count(records: list[Record]) -> Any:
        names = case.names
        table = cr.tabulate(case.frame(records), names[:-1], names[-1], **case.declared, outside="drop")
        return release(table, case.mechanism, may_be_missing=case.may_be_missing).frame["count"]

    before = count(usual)
    assert before.sum() == len(usual)
    assert abs(count([*strangers, *usual]) - before).sum() <= len(strangers)


COMMANDS = {
    "plain": (Case(("edges", "text")), ()),
    "sparse": (Case(("text", "edges"), may_be_missing=("q0",), options={"dense": False}), ()),
    "drawn": (draw_case(12, ("text", "edges")), ("--json",)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_looks_alike(name: str, tmp_path: Path, capsys: Capture) -> None:
    case, more = COMMANDS[name]
    inputs = [case.usual(), *case.crowds()[:2], case.neighbours()[4]]
    seen = [
        look_at_command(case, records, tmp_path / str(place), capsys, *more) for place, records in enumerate(inputs)
    ]
    assert seen[0][0] == 0, seen[0]
    assert [each == seen[0] for each in seen] == [True] * len(seen)


def _unprotected(page: str) -> str:
    after = page.partition("<dt>Not covered by the guarantee</dt>")[2]
    return after.partition("<dd>")[2].partition("</dd>")[0].strip()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--epsilon", "1", "--max-risk", "0.9"], "whether the limits are kept"),
        (["--max-risk", "0.9"], "whether the limits are kept"),
        (["--max-risk", "0.9", "--max-ceiling", "0.75"], "epsilon, which was chosen from the data"),
        (["--max-risk", "0.9", "--max-epsilon", "0.75"], "epsilon, which was chosen from the data"),
        (["--max-caused", "0.01"], "epsilon, which was chosen from the data"),
        (["--max-ceiling", "0.75"], "none"),
        (["--max-epsilon", "0.5"], "none"),
        (["--max-ceiling", "0.75", "--max-epsilon", "0.5"], "none"),
        (["--epsilon", "1", "--max-ceiling", "0.75"], "none"),
        (["--epsilon", "1", "--outside", "error"], "that no record was refused"),
    ],
)
def test_the_public_report_lists_what_is_not_protected(
    given: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = Case(("edges", "text"))
    case.frame(case.usual()).to_csv("people.csv", index=False)
    declared = ["--qid", "q0", "--sensitive", "y", "--bin", "q0=0/18/65", "--levels", "y=a|b|never"]
    main(["report", "people.csv", *declared, *given, "--public", "--output", "report.html"])
    page = Path("report.html").read_text(encoding="utf-8")
    assert told in _unprotected(page)
    assert ("so the choice reveals nothing" in page) == (told == "none" and "--epsilon" not in given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--max-ceiling", "0.7"], "Published at epsilon 0.84"),  # ln(0.7 / 0.3), rounded down
        (["--max-epsilon", "0.5"], "Published at epsilon 0.5"),
        (["--max-ceiling", "0.7", "--max-epsilon", "0.5"], "Published at epsilon 0.5"),
        (["--max-ceiling", "0.5000001"], "is admissible"),
        (["--max-ceiling", "1"], "no limit binds"),
        (["--max-epsilon", "100"], "Published at epsilon 100"),
        (["--epsilon", "1"], "Published at epsilon 1"),
        (["--epsilon", "1", "--max-ceiling", "0.8"], "Published at epsilon 1"),
        (["--epsilon", "1", "--max-ceiling", "0.7"], "Limits broken: epsilon 1 breaks the limit on the ceiling"),
    ],
)
def test_limits_on_the_guarantee_alone_let_no_record_show(
    given: list[str], said: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What says that the choice discloses nothing is the same page, byte for byte, for neighbouring tables."""
    case, seen = Case(("edges", "text")), []
    records = case.usual()
    for place, neighbour in enumerate((records, records[1:], [*records, records[0]], [], case.crowds()[0])):
        folder = tmp_path / str(place)
        folder.mkdir()
        monkeypatch.chdir(folder)
        case.frame(neighbour).to_csv("people.csv", index=False)
        declared = ["--qid", "q0", "--sensitive", "y", "--bin", "q0=0/18/65", "--levels", "y=a|b|never"]
        code = main(["report", "people.csv", *declared, *given, "--public", "--output", "report.html"])
        seen.append((code, capsys.readouterr(), Path("report.html").read_text(encoding="utf-8")))
    assert [each == seen[0] for each in seen] == [True] * 5
    assert said in seen[0][2]


def test_a_refusal_that_depends_on_the_records_is_said() -> None:
    case = Case(("edges", "text"))
    found = look(case, case.usual(), outside="error")
    told = [
        "Whether there is a release was found from the data, which the guarantee does not cover: records outside the "
        "declared labels were not allowed."
    ]
    assert found["described"]["not_covered"] == told
    assert "with exceptions that its description names" in found["described"]["sentence"]
    assert look(case, case.usual()[1:], outside="error") == found
    assert "not among its declared levels" in look(case, [*case.usual(), ("5", "unseen")], outside="error")
    assert "is to be binned but holds text" in look(case, [*case.usual(), ("five", "a")], outside="error")
    assert "which are not among their labels; got 1 record" in look(case, [*case.usual(), ("5", None)], outside="error")
    assert "that do occur" in look(replace(case, exclude=(RULE,)), case.usual(), outside="error")
    missing = look(replace(case, missing="error"), case.usual())
    assert [
        "records with a missing value were not allowed" in each for each in missing["described"]["not_covered"]
    ] == [True]


def test_the_policy_is_among_what_the_guarantee_does_not_cover(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = Case(("edges", "text"))
    Path("cellrisk.toml").write_text('[policy]\nmax-risk = 0.99\ndelta = "1/n"\n', encoding="utf-8")
    case.frame(case.usual()).to_csv("people.csv", index=False)
    declared = ["--qid", "q0", "--sensitive", "y", "--bin", "q0=0/18/65", "--levels", "y=a|b|never"]
    assert main(["release", "people.csv", *declared, "--epsilon", "1", "--output", "out.csv"]) == 0
    out = capsys.readouterr().out
    (told,) = json.loads(Path("out.csv.json").read_text(encoding="utf-8"))["not_covered"]
    assert told == (
        "Whether the limits are kept was found from the data, which the guarantee does not cover: the policy asks for "
        "a risk of at most 99% and a delta of at most 1/n, n being the number of records."
    )
    assert told in out


def test_labels_are_those_declared_however_they_are_spelt() -> None:
    rows = [("true", "1"), ("TRUE", "1.0"), ("True", "2"), ("False", "2.0"), ("false", "2"), ("true", "1.0")]
    frame = pd.DataFrame(rows, columns=["q", "y"])
    declared = {"q": [True, False], "y": [1.0, 2.0]}
    for source, count in ((frame, None), (frame.assign(n=3), "n")):
        table = cr.tabulate(source, "q", "y", levels=declared, count=count)
        cells = table.cells()
        assert [cells.domains[0].labels, cells.levels] == [("True", "False"), ("1", "2")]
        found = dict(zip(zip(cells.codes[cells.cell, 0], cells.level, strict=True), cells.count, strict=True))
        assert found == {key: n * (3 if count else 1) for key, n in {(0, 0): 3, (0, 1): 1, (1, 1): 2}.items()}
        assert table.attribute().levels.totals.tolist() == [3 * (3 if count else 1)] * 2
        assert sorted(table.profiles().rows()) == sorted(cells.profiles().rows())
    for wrong in ([True, "true"], [1.0, "1.0"], ["a", "a"]):
        with refused("levels"):
            cr.tabulate(frame, "q", "y", levels={"q": wrong})


DECLARED = {"bins": {"q": [0, 10]}, "number": ["007", "7"], "fraction": ["1", "1.0"], "truth": ["true", "True"]}


@pytest.mark.parametrize(("declared", "value"), [("bins", 7), ("number", 7), ("fraction", 1.0), ("truth", True)])
@pytest.mark.parametrize("kind", ["frame", "parquet", "relation"])
def test_a_column_without_any_value_is_released_as_with_one(
    kind: str, declared: str, value: Any, tmp_path: Path
) -> None:
    """Where all values are missing, Arrow's type is null; one record then decides on the type, and on nothing else."""

    def see_release(values: list[Any]) -> Any:
        held = pa.table({"q": pa.array(values), "y": ["m", "n"] * 3})
        pq.write_table(held, tmp_path / "people.parquet")
        source = {"frame": held.to_pandas, "parquet": lambda: tmp_path / "people.parquet"}
        opened = source[kind]() if kind in source else duckdb.from_arrow(held)
        given = DECLARED[declared]
        how: Any = {"bins": given} if isinstance(given, dict) else {"levels": {"q": given}}
        how["levels"] = {**how.get("levels", {}), "y": ["m", "n"]}
        table = cr.tabulate(opened, "q", "y", **how, outside="drop")
        found = release(table, cr.Geometric(epsilon=1.0), may_be_missing="q")
        return found.labels, len(found.frame)

    assert see_release([None] * 6) == see_release([None] * 5 + [value])


DECLARED_IN_SQLITE: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "BOOLEAN": ((1, 0), {"levels": {"q": ["true", "false"]}}),
    "INTEGER": ((1, 2), {"levels": {"q": ["1", "007", "2"]}}),
    "NUMERIC": ((1, 2.5), {"levels": {"q": ["1.0", "2.5"]}}),
    "DATE": (("2020-01-01", "2021-01-01"), {"levels": {"q": ["2020-01-01", "2021-01-01"]}}),
    "": ((1, 20.5), {"bins": {"q": [0, 10, 30]}}),
}
STRANGE: tuple[Any, ...] = (2, "x", 1.5, b"z")
"""Values that SQLite takes in a column of any type."""


@pytest.mark.parametrize("declared", DECLARED_IN_SQLITE)
def test_one_value_does_not_decide_how_others_are_read(declared: str, tmp_path: Path) -> None:
    """At this epsilon there is no noise to speak of: one record more changes one count, by one."""
    usual, how = DECLARED_IN_SQLITE[declared]
    records = [(value, level) for value in usual for level in "ab"] * 3

    def count(name: str, rows: list[tuple[Any, str]]) -> pd.DataFrame:
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"CREATE TABLE t (q {declared}, y TEXT)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        levels = {**how.get("levels", {}), "y": ["a", "b"]}
        table = cr.tabulate(
            f"sqlite://{path}",
            table="t",
            quasi_identifiers="q",
            sensitive="y",
            bins=how.get("bins"),
            levels=levels,
            outside="drop",
        )
        return release(table, cr.Geometric(epsilon=45.0)).frame

    before = count("usual.db", records)
    assert before["count"].sum() == len(records)
    for place, value in enumerate(STRANGE):
        after = count(f"{place}.db", [*records, (value, "a")])
        assert after[["q", "y"]].equals(before[["q", "y"]])
        assert abs(after["count"] - before["count"]).sum() <= 1


def test_levels_that_a_column_cannot_tell_apart_are_refused_for_the_curator() -> None:
    for values, given in (([7, 8], ["007", "7"]), ([True, False], ["true", "True"]), ([1.5, 1.0], ["1", "1.0"])):
        frame = pd.DataFrame({"q": values, "y": ["m", "n"]})
        for columns in (("q", "y"), ("y", "q")):
            with refused("levels"):
                cr.tabulate(frame, *columns, levels={"q": given})
    cells = cr.tabulate(
        pd.DataFrame({"q": [7, 8], "y": ["m", "n"]}), "y", "q", levels={"q": ["007", "7"]}, outside="drop"
    )
    assert cells.attribute().levels.totals.tolist() == [0, 1]  # the level that is written as the value is


def test_a_table_without_records_is_released_and_not_assessed() -> None:
    frame = pd.DataFrame({"q": ["elsewhere"], "y": ["n"]})
    table = cr.tabulate(frame, "q", "y", levels={"q": ["a", "b"], "y": ["m", "n"]}, outside="drop")
    assert (table.n_records, table.outside_records, table.dropped_records) == (0, 1, 0)
    assert len(release(table, cr.Geometric(epsilon=1.0)).frame) == 4
    with refused("no-records"):
        cr.assess(table, cr.Laplace(epsilon=1.0), measures=["local"])


def test_a_column_may_hold_any_number_of_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_LEVELS", 3)
    case = Case(("text", "typed"))
    crowd = [("a", 1)] * 4 + [("b", 2)] * 4 + [(f"other {number}", 10 + number) for number in range(9)]
    assert look(case, crowd) == look(case, crowd[:-1]) == look(case, case.usual())


@pytest.mark.parametrize(("unused", "refused"), [("pupils", False), ("count", True)])
def test_the_name_alone_of_an_unused_column_is_looked_at(unused: str, refused: bool) -> None:
    rows = [("a", "a", 3), ("a", "b", 7), ("b", "a", 12), ("b", "b", 9)]
    seen = []
    for records in (rows, [*rows, rows[0]], [*rows, ("b", "b", 1)]):
        frame = pd.DataFrame(records, columns=["q", "y", unused])
        try:
            table = cr.tabulate(frame, "q", "y", levels={"q": ["a", "b"], "y": ["a", "b"]}, outside="drop")
            seen.append(str(release(table, cr.Geometric(epsilon=1.0))))
        except InvalidInput as refusal:
            seen.append(str(refusal))
    assert seen == seen[:1] * 3
    assert ("is named like counts, and is not in use" in seen[0]) is refused


def test_the_size_of_a_sparse_release_is_judged_by_its_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MOST_ROWS", 10)
    case = Case(("text", "text"), options={"dense": False}, mechanism=cr.Geometric(epsilon=1.0, threshold=0.5))
    assert differ(case, [[], case.usual()[1:], case.crowds()[0]]) == []


SEEN: list[int] = []


def test_a_number_in_the_statement_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = cr.tabulate

    def remember(*given: Any, **more: Any) -> Any:
        table = real(*given, **more)
        SEEN[:] = [1] * table.outside_records
        return table

    monkeypatch.setattr(cr, "tabulate", remember, raising=False)
    monkeypatch.setattr(wording, "say_left_out", lambda *_: [f"{len(SEEN)} records were left out."])
    case = Case(("text", "text"))
    assert differ(case, [[*case.usual(), ("unseen", "a")]]) == [0]
