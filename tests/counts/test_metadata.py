"""Levels and bounds from a file beside the data; what the file does not say is as without it."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.counts.metadata import LARGEST_FILE, Metadata, read_metadata
from cellrisk.errors import InvalidInput
from tests.counts.counter import refused

COLUMNS = {"age": [20, 25, 31, 44], "sex": ["f", "m", "f", "f"], "ill": ["flu", "none", "flu", "flu"]}
CSVW: dict[str, Any] = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "people.csv",
    "tableSchema": {
        "columns": [
            {"name": "age", "datatype": {"base": "integer", "minimum": "18", "maximum": "44"}},
            {"titles": ["sex"], "datatype": {"base": "string", "format": "^(?:f|m|x)$"}},
            {"name": "ill", "datatype": {"base": "string", "format": "flu|gout|none"}},
            {"name": "name", "datatype": {"base": "string", "format": "[A-Z].*"}},
        ]
    },
}
SCHEMA: dict[str, Any] = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 44}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m", "x"]}},
        {"name": "ill", "type": "string", "categories": [{"value": "flu"}, "gout", "none"]},
    ]
}
PACKAGE = {"resources": [{"path": "data/people.csv", "schema": SCHEMA}]}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = zip(*COLUMNS.values(), strict=True)
    path.write_text("\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def write(folder: Path, found: Any) -> Path:
    path = folder / "people.json"
    path.write_text(json.dumps(found))
    return path


@pytest.mark.parametrize(
    "found",
    [CSVW, {"tables": [CSVW]}, SCHEMA, {"schema": SCHEMA}, PACKAGE],
    ids=["csvw", "tables", "fields", "schema", "package"],
)
def test_levels_and_bounds(people: Path, tmp_path: Path, found: Any) -> None:
    table = cr.tabulate(
        people, ["age", "sex"], "ill", bins={"age": 10}, count=False, metadata=write(tmp_path, found), outside="drop"
    )
    assert table.attribute("ill").levels.labels == ("flu", "gout", "none")
    said = cr.tabulate(
        people,
        ["age", "sex"],
        "ill",
        bins={"age": [10, 20, 30, 40, 50]},
        levels={"sex": ["f", "m", "x"], "ill": ["flu", "gout", "none"]},
        count=False,
        outside="drop",
    )
    assert table.cells().domains == said.cells().domains
    assert table.cells().domain_size == said.cells().domain_size == 6 * 3 * 3
    assert list(table.profiles().rows()) == list(said.profiles().rows())


def test_what_is_said_goes_first(people: Path, tmp_path: Path) -> None:
    table = cr.tabulate(
        people, "sex", "ill", levels={"ill": ["none", "flu"]}, count=False, metadata=write(tmp_path, CSVW)
    )
    assert table.attribute("ill").levels.labels == ("none", "flu")


def test_bounds_of_whole_numbers_are_levels_where_they_are_few(tmp_path: Path) -> None:
    def bounded(low: float, high: float) -> Any:
        limits = {"minimum": low, "maximum": high}
        return {"fields": [{"name": "code", "type": "integer", "constraints": limits}]}

    assert read_metadata(write(tmp_path, bounded(1, 3))).levels == {"code": (1, 2, 3)}
    assert read_metadata(write(tmp_path, bounded(0, 999))).levels == {"code": tuple(range(1000))}
    assert read_metadata(write(tmp_path, bounded(0, 1000))).levels == {}


@pytest.mark.parametrize(("low", "high", "width"), [(0, 10, 5), (1, 10, 5), (0.1, 0.3, 0.1), (-7, -7, 2), (3, 3.5, 1)])
def test_bins_cover_the_bounds(low: float, high: float, width: float) -> None:
    bins, _ = Metadata(bounds={"x": (low, high)}).declare(["x"], {"x": width}, None)
    edges = bins["x"]
    assert edges[0] < low <= edges[1]
    assert edges[-2] < high <= edges[-1]


REFUSED: dict[str, bytes] = {
    "no JSON": b"{",
    "deep JSON": b"[" * 200_000,
    "a list": b"[]",
    "nothing": b"{}",
    "no levels": b'{"fields": [{"name": "a"}]}',
    "too large": b" " * (LARGEST_FILE + 1),
    "bounds the wrong way round": b'{"fields": [{"name": "a", "constraints": {"minimum": 2, "maximum": 1}}]}',
    "twice": b'{"fields": [{"name": "a", "categories": ["x"]}, {"name": "a", "categories": ["y"]}]}',
    "levels of another kind": b'{"fields": [{"name": "a", "constraints": {"enum": [["x"]]}}]}',
    "several tables": b'{"tables": [{"url": "a"}, {"url": "b"}]}',
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    path.write_bytes(REFUSED[case])
    with refused("metadata"):
        read_metadata(path)


def test_too_many_bins(tmp_path: Path) -> None:
    with refused("metadata"):
        Metadata(bounds={"x": (0, 1e9)}).declare(["x"], {"x": 1}, None)


def test_a_missing_file(tmp_path: Path) -> None:
    with refused("unreadable"):
        read_metadata(tmp_path / "none.json")


def test_hostile_files_are_read_or_refused(tmp_path: Path) -> None:
    """Whatever a file holds in the places that are looked at: an answer, or one of our refusals."""
    answered = 0
    odd = [None, True, -1, 10**400, 1.5, "", "x", [], {}, ["a"], {"base": []}, [[]], {"minimum": "1e999"}]
    for seed in range(400):
        draw = random.Random(seed)
        found: Any = json.loads(json.dumps(draw.choice([CSVW, SCHEMA, PACKAGE])))
        place = found
        while isinstance(place, dict | list) and place:
            key = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
            if draw.random() < 0.3 or not isinstance(place[key], dict | list):
                place[key] = draw.choice(odd)
                break
            place = place[key]
        path = write(tmp_path, found)
        with contextlib.suppress(InvalidInput):
            read_metadata(path).declare(["age", "sex"], {"age": 5}, None)
            answered += 1
    assert 40 < answered < 360  # many of both
