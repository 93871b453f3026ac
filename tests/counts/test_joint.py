"""Counting once, held to a plain dictionary: bins, missing values, parts of the people, and every kind of source."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cellrisk.counts import joint as joint_module
from cellrisk.counts.filters import read_part
from cellrisk.counts.joint import Asked, JointCells, count_together
from cellrisk.errors import CellriskError, InvalidInput
from tests.counts.counter import refused


def make_people(rows: int = 400) -> list[dict[str, Any]]:
    draw = np.random.default_rng(11)
    return [
        {
            "age": None if draw.random() < 0.05 else int(draw.integers(0, 90)),
            "sex": None if draw.random() < 0.1 else ("f", "m")[draw.integers(0, 2)],
            "town": f"town {draw.integers(0, 6)}",
            "pay": None if draw.random() < 0.05 else float(draw.integers(0, 400)) / 10,
            "paid": bool(draw.integers(0, 2)),
            "job": ("cook", "smith", "tailor")[draw.integers(0, 3)],
        }
        for _ in range(rows)
    ]


PEOPLE = make_people()


def bin_of(value: float | None, width: float) -> int | None:
    """The number of the right-closed bin of a width that a value is in."""
    return None if value is None else int(np.ceil(round(value / width, 9))) - 1


TABLES = [
    Asked(("age", "sex"), {"age": 5}),
    Asked(("age", "town"), {"age": 20}, read_part({"sex": "f"})),
    Asked(("town", "pay"), {"pay": 2.5}, read_part({"age": {"from": 18, "below": 65}, "paid": True})),
    Asked(("pay",), {"pay": 2.5}, read_part({"town": {"not": ["town 1", "town 2"]}, "pay": {"above": 3.0, "to": 30}})),
    Asked(("sex",), {}, read_part({"pay": [1.5, 2, 20.5, 39.9], "town": ["town 0", "town 3"]})),
]
CELLS = [
    lambda p: (bin_of(p["age"], 5), p["sex"]),
    lambda p: (bin_of(p["age"], 20), p["town"]) if p["sex"] == "f" else None,
    lambda p: (
        (p["town"], bin_of(p["pay"], 2.5)) if p["age"] is not None and 18 <= p["age"] < 65 and p["paid"] else None
    ),
    lambda p: (
        (bin_of(p["pay"], 2.5),)
        if p["town"] not in ("town 1", "town 2") and p["pay"] is not None and 3 < p["pay"] <= 30
        else None
    ),
    lambda p: (p["sex"],) if p["pay"] in (1.5, 2, 20.5, 39.9) and p["town"] in ("town 0", "town 3") else None,
]


def vectors_of(people: list[dict[str, Any]], missing: str = "category") -> tuple[list[Counter[Any]], Counter[Any]]:
    """By hand: how often each vector of counts occurs in each table, and the rows of people with all their vectors."""
    levels = sorted({person["job"] for person in people})

    def cell(place: int, person: dict[str, Any]) -> Any:
        found = CELLS[place](person)
        return None if found is not None and missing == "drop" and None in found else found

    counted: list[Counter[Any]] = [Counter() for _ in CELLS]
    for person in people:
        for place, count in enumerate(counted):
            own = cell(place, person)
            if own is not None:
                count[own, person["job"]] += 1
    tables, joint = [], Counter[Any]()
    for count in counted:
        cells = {own for own, _ in count}
        tables.append(Counter(tuple(count[own, level] for level in levels) for own in cells))
    for person in people:
        mine = tuple(
            None if cell(place, person) is None else tuple(count[cell(place, person), level] for level in levels)
            for place, count in enumerate(counted)
        )
        if any(each is not None for each in mine):
            joint[mine, levels.index(person["job"])] += 1
    return tables, joint


def read(found: JointCells) -> tuple[list[Counter[Any]], Counter[Any]]:
    tables = [Counter(map(tuple, table.counts.tolist())) for table in found.tables]
    joint: Counter[Any] = Counter()
    for cells, level, count in zip(found.cell.T, found.level, found.count, strict=True):
        mine = tuple(
            None if cell < 0 else tuple(table.counts[cell].tolist())
            for cell, table in zip(cells, found.tables, strict=True)
        )
        joint[mine, int(level)] += int(count)
    return tables, joint


def frame_of(people: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(people)


@pytest.mark.parametrize("missing", ["category", "drop"])
def test_a_plain_dictionary_counts_the_same(missing: str) -> None:
    found = count_together(frame_of(PEOPLE), TABLES, "job", missing=missing)
    tables, joint = vectors_of(PEOPLE, missing)
    assert read(found) == (tables, joint)
    assert found.n_records == sum(joint.values())
    assert found.dropped == len(PEOPLE) - found.n_records


def test_cells_are_in_one_order_whatever_that_of_the_records() -> None:
    order = np.random.default_rng(2).permutation(len(PEOPLE))
    one = count_together(frame_of(PEOPLE), TABLES, "job")
    other = count_together(frame_of([PEOPLE[place] for place in order]), TABLES, "job")
    for mine, theirs in zip(one.tables, other.tables, strict=True):
        assert mine.counts.tolist() == theirs.counts.tolist()
        assert mine.codes.tolist() == theirs.codes.tolist()


def count_rows() -> tuple[pa.Table, dict[str, str]]:
    counted = Counter(tuple(person.items()) for person in PEOPLE)
    return pa.Table.from_pylist([{**dict(key), "n": number} for key, number in counted.items()]), {"count": "n"}


def test_a_table_of_counts_is_its_records() -> None:
    source, more = count_rows()
    assert read(count_together(source, TABLES, "job", **more)) == vectors_of(PEOPLE)


def test_more_tables_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the combinations of values, the labels, the tables and the limit; no combination is read before."""
    monkeypatch.setattr(joint_module, "BYTES_FOR_ROW", 10**7)
    with refused("too-many-cells") as refusal:
        count_together(frame_of(PEOPLE), TABLES[:2], "job", memory_limit="200MB")
    assert f" combinations of {10**7 + 4 * 6 + 4 * 2 * (2 + 3):,} bytes" in str(refusal.value)


def test_declared_levels_that_do_not_occur_and_values_that_were_not_declared() -> None:
    levels = ["cook", "smith", "tailor", "judge"]
    found = count_together(frame_of(PEOPLE), TABLES[:1], "job", levels={"job": levels})
    assert (found.levels, found.declared) == (tuple(levels), True)
    assert found.tables[0].counts[:, 3].sum() == 0
    with refused("outside-levels"):
        count_together(frame_of(PEOPLE), TABLES[:1], "job", levels={"job": ["cook", "smith"]})
    with refused("roles"):
        count_together(frame_of(PEOPLE), TABLES[:1], "job", levels={"town": ["a"]})


def test_missing_sensitive_values() -> None:
    people = [{**person, "job": None if place % 10 == 0 else person["job"]} for place, person in enumerate(PEOPLE)]
    found = count_together(frame_of(people), TABLES[:1], "job")
    assert found.levels[-1] == "(missing)"
    left = count_together(frame_of(people), TABLES[:1], "job", missing="drop")
    assert left.n_levels == 3
    kept = [person for person in people if person["job"] is not None and None not in CELLS[0](person)]
    assert (left.n_records, left.dropped) == (len(kept), len(people) - len(kept))
    with refused("missing-values"):
        count_together(frame_of(people), TABLES[:1], "job", missing="error")


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"sex": "x"}, "no record is in the part of the people: sex is x"),
        ({"age": {"from": 200}}, "no record is in the part"),
        ({"age": {"from": 50, "below": 50}}, "no record is in the part"),
        ({"job": "cook"}, "chosen by the sensitive attribute 'job' itself"),
        ({"colour": "red"}, "has no column 'colour'"),
        ({"paid": {"from": 1}}, "asks for numbers of 'paid', which holds none"),
        ({}, "must map columns"),
        ("sex = 'f'", "never a query"),
        ({"sex": {"like": "f"}}, "the word 'like'"),
        ({"sex": {}}, "an empty table"),
        ({"sex": []}, "0 values"),
        ({"sex": [{"a": 1}]}, "got a dict"),
        ({"age": {"from": "18"}}, "from that is not a number"),
        ({"age": {"from": True}}, "from that is not a number"),
        ({"age": float("nan")}, "no plain value"),
        ({"sex": "f\0"}, "cannot be read for column 'sex'"),
        ({1: "f"}, "must name columns"),
    ],
)
def test_parts_that_are_refused(where: Any, reason: str) -> None:
    with pytest.raises(CellriskError) as refusal:
        count_together(frame_of(PEOPLE), [Asked(("sex",), {}, read_part(where))], "job")
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({"a": 1}, {"a": 2}, True),
        ({"a": "f"}, {"a": "m"}, True),
        ({"a": "1"}, {"a": "01"}, False),
        ({"a": 1}, {"a": "2"}, False),
        ({"a": True}, {"a": "TRUE"}, False),
        ({"a": True}, {"a": False}, True),
        ({"a": "nan"}, {"a": "NaN"}, False),
        ({"a": 2**53}, {"a": 2**53 + 1}, False),
        ({"a": "<=50K"}, {"a": ">50K"}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"b": 2}, False),
        ({"a": [1, 2]}, {"a": [2, 3]}, False),
        ({"a": 1}, {"a": {"not": [1, 2]}}, True),
        ({"a": {"not": 1}}, {"a": [1, 2]}, False),
        ({"a": {"below": 5}}, {"a": {"from": 5}}, True),
        ({"a": {"to": 5}}, {"a": {"from": 5}}, False),
        ({"a": {"to": 5}}, {"a": {"above": 5}}, True),
        ({"a": {"to": 5}}, {"a": {"above": 4}}, False),
        ({"a": {"to": 5}}, {"a": {"to": 9}}, False),
        ({"a": {"from": 5}}, {"a": {"above": 5}}, False),
    ],
)
def test_parts_that_exclude_each_other(one: Any, other: Any, apart: bool) -> None:
    assert read_part(one).excludes(read_part(other)) is apart
    assert read_part(other).excludes(read_part(one)) is apart


def test_rows_that_look_like_a_table_of_counts() -> None:
    counts, _ = count_rows()
    with refused("count-table"):
        count_together(counts, [Asked(("age", "sex", "town", "pay", "paid"), {})], "job")


@pytest.mark.slow
def test_who_is_outside_is_left_out_of_the_tables_that_have_the_column() -> None:
    """Each table counts whom it would count by itself: declared labels, bins, missing values, another label."""
    ages = [*(str(5 * place) for place in range(12)), "old", "inf", None, "7"]
    rows = [
        {"age": age, "sex": ("f", "m", "x", None)[place % 4], "town": "abc"[place % 3], "job": "pqrp"[place // 3 % 4]}
        for place, age in enumerate(ages * 3)
    ]
    asked = [Asked(("age", "town"), {"age": 10}), Asked(("sex", "town"), {}), Asked(("town",), {})]
    levels = {"sex": ["f", "m"], "job": ["p", "q"], "town": ["a", "b", "c"]}
    for missing in ("category", "drop"):
        given = {"missing": missing, "outside": "drop"}
        found = count_together(frame_of(rows), asked, "job", levels=levels, **given)
        for table, own in zip(found.tables, asked, strict=True):
            alone = count_together(
                frame_of(rows),
                [own],
                "job",
                levels={name: each for name, each in levels.items() if name in ("job", *own.quasi_identifiers)},
                **given,
            )
            assert sorted(table.counts.tolist()) == sorted(alone.tables[0].counts.tolist())
        kept = [p for p in rows if p["job"] != "r"]
        number = {
            "age": sum(p["age"] not in ("old", "inf") and (p["age"] is not None or missing != "drop") for p in kept),
            "sex": sum(p["sex"] != "x" and (p["sex"] is not None or missing != "drop") for p in kept),
        }
        assert [table.n_records for table in found.tables] == [number["age"], number["sex"], len(kept)]
        assert found.outside == sum(p["job"] == "r" or p["age"] in ("old", "inf") or p["sex"] == "x" for p in rows)
    with pytest.raises(InvalidInput, match="the source has missing values"):
        count_together(frame_of(rows), asked, "job", levels=levels, outside="drop", missing="error")
    some = [p for p in rows if p["age"] is not None and p["sex"] is not None]
    whole = count_together(frame_of(some), asked, "job", levels=levels, outside="drop", missing="error")
    assert whole.tables[2].n_records == sum(p["job"] != "r" for p in some)
