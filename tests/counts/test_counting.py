"""Counts against plain Python: dense and sparse, weighted or not, with everything that a column can hold."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellrisk.counts import counting, engine
from cellrisk.counts.counting import tabulate
from tests.examples import examples

QUASI = ["a", "b"]


@pytest.fixture(params=["with keys", "vectors", "lists"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With keys, or without: by vectors of counts, or by lists of them."""
    if request.param != "with keys":
        monkeypatch.setattr(engine, "MOST_CELLS", 0)
        monkeypatch.setattr(counting, "MOST_IN_PART", 3)
    if request.param == "lists":
        monkeypatch.setattr(counting, "MOST_LABELS", 0)
    return str(request.param)


def columns(kind: str) -> st.SearchStrategy[Any]:
    return {
        "text": st.sampled_from(
            ["", " ", "x", "X", "é", "e\u0301", "\0", "a\0b", "it's", 'q"', "\\", "NULL", "(missing)", "1"]
        ),
        "integers": st.integers(-3, 3),
        "large": st.sampled_from([2**63 - 1, -(2**63), 2**62, 0]),
        "truth": st.booleans(),
        "dates": st.sampled_from([datetime.date(2020, 1, 1), datetime.date(1900, 2, 28), datetime.date(2020, 1, 2)]),
        "any text": st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    }[kind]


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    kinds = [draw(st.sampled_from(["text", "integers", "large", "truth", "dates", "any text"])) for _ in range(4)]
    row = st.tuples(*(st.none() | columns(kind) for kind in kinds), st.integers(0, 3))
    rows = draw(st.lists(row, min_size=2, max_size=25))
    return [dict(zip(["a", "b", "y", "z", "n"], values, strict=True)) for values in rows]


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=tables(), weighted=st.booleans())
def test_any_table(records: list[dict[str, Any]], weighted: bool, form: str, by_hand: Any, as_counted: Any) -> None:
    used = [record for record in records if record["n"] or not weighted]
    for name in ("y", "z"):
        values = {record[name] for record in used}
        if len(values) < 2:
            return
    table = tabulate(pa.Table.from_pylist(records), QUASI, ["y", "z"], count="n" if weighted else False)
    for name in ("y", "z"):
        assert as_counted(table, name) == by_hand(records, QUASI, name, "n" if weighted else "")
    cells: dict[Any, Any] = {}
    for record in used:
        first, second = cells.setdefault((record["a"], record["b"]), (set(), set()))
        first.add(record["y"])
        second.add(record["z"])
    single = [(len(first) == 1) + (len(second) == 1) for first, second in cells.values()]
    kinds = table.homogeneity
    assert (kinds.complete, kinds.partial, kinds.none) == (single.count(2), single.count(1), single.count(0))


def test_a_missing_value_is_neither_a_text_nor_an_absent_level(form: str) -> None:
    frame = pd.DataFrame({"a": ["x"] * 4, "y": ["(missing)", "", None, None]})
    levels = tabulate(frame, "a", "y").attribute("y").levels
    assert levels.labels == ("", "(missing)", "((missing))")
    assert levels.totals.tolist() == [1, 1, 2]
    declared = tabulate(frame[2:], "a", "y", levels={"y": ["p", "q"]}).attribute("y")
    assert declared.levels.labels == ("p", "q", "(missing)")
    assert declared.levels.totals.tolist() == [0, 0, 2]
    assert (declared.missing_level, declared.declared) == (True, True)


def test_count_table_equals_its_records(form: str, by_hand: Any, as_counted: Any) -> None:
    rng = np.random.default_rng(5)
    rows = [
        {"a": f"a{i % 4}", "b": int(rng.integers(3)), "y": "uvw"[i % 3], "n": int(rng.integers(4))} for i in range(40)
    ]
    expanded = [row for row in rows for _ in range(row["n"])]
    short = tabulate(pd.DataFrame(rows), QUASI, "y", count="n")
    long = tabulate(pd.DataFrame(expanded), QUASI, "y", count=False)
    assert as_counted(short) == as_counted(long) == by_hand(expanded, QUASI, "y")
    assert short.n_records == len(expanded)


def test_zero_counts_list_levels_but_no_cells(form: str) -> None:
    frame = pd.DataFrame({"a": ["p", "p", "r"], "y": ["u", "v", "u"], "n": [3, 0, 0]})
    table = tabulate(frame, "a", "y", count="n")
    assert (table.n_cells, table.n_records) == (1, 3)
    assert table.attribute("y").levels.labels == ("u", "v")
    assert table.homogeneity.complete == 1


def test_thirty_quasi_identifiers(by_hand: Any, as_counted: Any) -> None:
    rng = np.random.default_rng(2)
    names = [f"q{place}" for place in range(30)]
    frame = pd.DataFrame(rng.integers(0, 2, (200, 30)), columns=names).assign(y=rng.choice(["u", "v", "w"], 200))
    frame = pd.concat([frame, frame[:50]])
    assert as_counted(tabulate(frame, names, "y")) == by_hand(frame.to_dict("records"), names, "y")


def test_both_forms_agree_on_the_largest_counts(form: str) -> None:
    frame = pd.DataFrame({"a": ["p", "p", "r"], "y": ["u", "v", "u"], "n": [2**52, 2**51, 1]})
    table = tabulate(frame, "a", "y", count="n")
    assert table.n_records == 2**52 + 2**51 + 1
    assert table.attribute("y").levels.size_products.tolist() == [
        float(2**52 * (2**52 + 2**51) + 1),
        float(2**51 * (2**52 + 2**51)),
    ]


@pytest.mark.parametrize("kinds", [3, 20_000])
def test_text_with_few_and_many_kinds_of_rows(kinds: int, tmp_path: Path) -> None:
    """Beside a plain counter; the last rows hold a cell and a level that no others have."""
    draw = random.Random(3)
    rows = [(str(draw.randrange(kinds)), draw.choice("mn"), draw.choice("xy")) for _ in range(24_995)]
    rows += [("d", "n", "z")] * 5
    (tmp_path / "a.csv").write_text("\n".join(["q,r,y", *map(",".join, rows)]), encoding="utf-8")
    table = tabulate(tmp_path / "a.csv", ["q", "r"], "y")
    cells: dict[tuple[str, str], Counter[str]] = {}
    for q, r, y in rows:
        cells.setdefault((q, r), Counter())[y] += 1
    assert (table.n_records, table.n_cells) == (len(rows), len(cells))
    expected = Counter(tuple(sorted(count.values(), reverse=True)) for count in cells.values())
    assert dict(table.profiles("y").rows()) == dict(expected)


def test_a_row_of_no_record_may_hold_anything() -> None:
    frame = pd.DataFrame({"a": ["1", "7", "?"], "y": ["u", "v", "?"], "n": [2, 1, 0]})
    table = tabulate(frame, "a", "y", count="n", bins={"a": 5}, levels={"y": ["u", "v"]})
    assert (table.n_records, table.cells().domains[0].labels) == (3, ("(0, 5]", "(5, 10]"))
