"""Cells with their keys: against counting by hand, for every kind of source, and regrouped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts import engine
from cellrisk.counts.cells import Cells, Domain, group_cells
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from tests.counts.counter import refused


def by_key(cells: Cells) -> dict[tuple[str, ...], dict[str, int]]:
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for cell, level, count in zip(cells.cell, cells.level, cells.count, strict=True):
        found.setdefault(tuple(cells.key(int(cell)).values()), {})[cells.levels[level]] = int(count)
    return found


def by_hand(records: list[dict[str, Any]], quasi: list[str], sensitive: str) -> dict[tuple[str, ...], dict[str, int]]:
    def text(value: Any) -> str:
        return "(missing)" if value is None else str(value)

    found: dict[tuple[str, ...], Counter[str]] = {}
    for record in records:
        found.setdefault(tuple(text(record[name]) for name in quasi), Counter())[text(record[sensitive])] += 1
    return {key: dict(counts) for key, counts in found.items()}


def test_cells_of_each_attribute(people: list[dict[str, Any]]) -> None:
    table = cr.tabulate(pd.DataFrame(people), ["age"], ["job", "ill"])
    for name in ("job", "ill"):
        assert by_key(table.cells(name)) == by_hand(people, ["age"], name)
    with refused("no-attribute"):
        table.cells()
    with refused("no-attribute"):
        table.cells("x")


def test_bins_are_ordered_and_edges_declare_the_domain(people: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(people)
    (age,) = cr.tabulate(frame, "age", "job", bins={"age": [0, 30, 40, 50]}).cells().domains
    assert age == Domain("age", ("up to 0", "(0, 30]", "(30, 40]", "(40, 50]", "above 50"), ordered=True, declared=True)
    (age,) = cr.tabulate(frame, "age", "job", bins={"age": 10}).cells().domains
    assert age == Domain("age", ("(30, 40]", "(40, 50]", "(60, 70]"), ordered=True)


def test_declared_quasi_identifiers(people: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(people)
    table = cr.tabulate(frame, ["sex", "city"], "job", levels={"city": ["Ulm", "Köln", "Bonn"], "sex": ["m", "f"]})
    sex, city = table.cells().domains
    assert (sex.labels, sex.declared) == (("m", "f"), True)
    assert city.labels == ("Ulm", "Köln", "Bonn", "(missing)")
    assert table.cells().domain_size == 2 * 4 * len(table.attribute().levels.labels)
    with refused("outside-levels") as refusal:
        cr.tabulate(frame, ["sex", "city"], "job", levels={"city": ["Ulm"]})
    assert "Köln" not in str(refusal.value)
    with refused("outside-levels"):
        cr.tabulate(frame.assign(n=2), "age", "job", levels={"age": [31, 45]}, count="n")


def test_counts_and_dropped_records(people: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(people).assign(n=range(12))
    cells = cr.tabulate(frame, ["sex", "city"], "job", count="n", missing="drop").cells()
    weighted = [record for number, record in enumerate(people) for _ in range(number)]
    kept = [record for record in weighted if None not in (record["city"], record["job"])]
    assert by_key(cells) == by_hand(kept, ["sex", "city"], "job")


def test_a_source_is_read_once(people: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    pd.DataFrame(people).to_csv(path, index=False)
    table = cr.tabulate(path, "sex", "job")
    path.unlink()
    assert int(table.cells().count.sum()) == len(people)


def test_too_many_cells_are_refused(people: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted, without their keys, and what needs keys is refused."""
    expected = cr.tabulate(pd.DataFrame(people), ["sex", "city", "age"], "job")
    monkeypatch.setattr(engine, "MOST_CELLS", 5)
    table = cr.tabulate(pd.DataFrame(people), ["sex", "city", "age"], "job")
    assert list(table.profiles().rows()) == list(expected.profiles().rows())
    with pytest.raises(InvalidInput, match="allowed: up to 5") as refusal:
        table.cells()
    assert refusal.value.code == "too-many-cells"


@pytest.mark.slow
def test_drop_is_tabulating_without(adult: cr.FrequencyTable) -> None:
    frame = cr.datasets.adult_as_published()
    bins = {"age": 5, "hours-per-week": 10}
    for name in adult.quasi_identifiers:
        rest = [other for other in adult.quasi_identifiers if other != name]
        without = cr.tabulate(frame, rest, "income", bins={key: bins[key] for key in bins if key in rest})
        assert list(adult.cells().drop(name).profiles().rows()) == list(without.profiles().rows())
        assert adult.cells().drop(name).n_cells == without.n_cells


def test_merge_is_tabulating_recoded(people: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(people)
    cells = cr.tabulate(frame, ["age", "city"], "job").cells()
    merged = cells.merge("city", {"south": ["Ulm"], "other": ["Köln", "(missing)"]})
    recoded = frame.assign(city=frame.city.map({"Ulm": "south", "Köln": "other"}).fillna("other"))
    assert list(merged.profiles().rows()) == list(cr.tabulate(recoded, ["age", "city"], "job").profiles().rows())
    assert merged.domains[1].labels == ("other", "south")
    assert not merged.domains[1].missing
    with refused("merge"):
        cells.merge("city", {"x": ["Paris"]})
    with refused("merge"):
        cells.merge("city", {"x": ["Ulm"], "z": ["Ulm"]})
    with refused("no-column"):
        cells.merge("job", {})


def test_rows_of_one_key_and_level_are_added_up() -> None:
    sex = Domain("sex", ("f", "m"))
    grouped = group_cells("y", ("a", "b"), (sex,), np.array([[1], [0], [1]]), np.array([0, 1, 0]), np.array([2, 3, 4]))
    assert by_key(grouped) == {("f",): {"b": 3}, ("m",): {"a": 6}}


@pytest.mark.parametrize("largest", [1, 2**52])
def test_equal_vectors_of_counts_become_one_however_large_they_are(largest: int) -> None:
    draw = np.random.default_rng(largest)
    counts = draw.integers(0, largest, (3, 3), endpoint=True)[draw.integers(0, 3, 50)]
    expected = sorted(Counter(tuple(row) for row in counts.tolist() if any(row)).items())
    found = LabelledCounts.from_cells(counts)
    assert list(zip(map(tuple, found.counts.tolist()), found.cells.tolist(), strict=True)) == expected
