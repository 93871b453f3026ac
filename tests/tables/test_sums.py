"""Several counts in one number: the same answer as counts one by one, and as pandas."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts import counting, packing, sums, vectors

QIDS = ["a", "b"]


def make_people(levels: int, n: int = 3000) -> pd.DataFrame:
    generator = np.random.default_rng(levels)
    return pd.DataFrame(
        {
            "a": generator.choice(["x", "y", None], n),
            "b": generator.integers(0, 40, n) * generator.integers(0, 2, n),
            "y": generator.choice([*(f"it's {level}" for level in range(levels)), None], n),
            "z": generator.choice([True, False], n),
        }
    )


def count_with_pandas(people: pd.DataFrame, sensitive: str) -> Counter[tuple[int, ...]]:
    """Profiles by another way: a group-by of cells and levels, each cell's counts sorted."""
    pairs = people.groupby([*QIDS, sensitive], dropna=False).size()
    cells = pairs.groupby(level=QIDS, dropna=False)
    return Counter(tuple(sorted(each, reverse=True)) for _, each in cells)


def watch_plans(monkeypatch: pytest.MonkeyPatch) -> list[sums.Sums]:
    """The plans that are made from now on."""
    made: list[sums.Sums] = []

    def plan(*arguments: Any) -> sums.Sums:
        made.append(sums.plan_sums(*arguments))
        return made[-1]

    monkeypatch.setattr(counting, "plan_sums", plan)
    return made


@pytest.mark.parametrize("few", [10_000, 0], ids=["read here", "read by the engine"])
@pytest.mark.parametrize("bits", [sums.BITS, 40], ids=["ten counts to a sum", "three counts to a sum"])
@pytest.mark.parametrize("levels", [1, 2, 3, 7, 14, 31])
def test_same_profiles_as_pandas(
    levels: int, bits: int, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = make_people(levels)
    people.to_parquet(tmp_path / "people.parquet")
    plain = cr.tabulate(tmp_path / "people.parquet", QIDS, ["y", "z"])
    folded = watch_plans(monkeypatch)
    monkeypatch.setattr(packing, "WORTHWHILE", 0)
    monkeypatch.setattr(sums, "BITS", bits)
    monkeypatch.setattr(vectors, "FEW", few)
    table = cr.tabulate(tmp_path / "people.parquet", QIDS, ["y", "z"])
    in_sums = [name for names in folded[0].folded.values() for name in names]
    several = bits // (3000).bit_length()
    assert len(in_sums) == sum(size for size in split(levels + 1, several) + split(2, several) if size >= sums.FEWEST)
    for name in ("y", "z"):
        found = table.profiles(name)
        assert {tuple(sorted(counts, reverse=True)): cells for counts, cells in found.rows()} == dict(
            count_with_pandas(people, name)
        )
        assert list(found.rows()) == list(plain.profiles(name).rows())
        assert table.attribute(name).levels.totals.tolist() == plain.attribute(name).levels.totals.tolist()
    assert table.homogeneity == plain.homogeneity


def split(levels: int, several: int) -> list[int]:
    return [min(several, levels - start) for start in range(0, levels, several)]


def test_a_count_that_fills_its_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2^12 - 1 records nearly all have one level, whose count needs all twelve bits; the others must not notice."""
    monkeypatch.setattr(packing, "WORTHWHILE", 0)
    folded = watch_plans(monkeypatch)
    people = pd.DataFrame({"a": ["x"] * 4095, "y": ["p", *["q"] * 4093, "r"]})
    people.to_parquet(tmp_path / "people.parquet")
    for few in (10_000, 0):
        monkeypatch.setattr(vectors, "FEW", few)
        table = cr.tabulate(tmp_path / "people.parquet", "a", "y")
        assert list(table.profiles().rows()) == [((4093, 1, 1), 1)]
        assert table.attribute().levels.totals.tolist() == [1, 4093, 1]
    assert [(len(each.folded), each.bits) for each in folded] == [(1, 12), (1, 12)]


def test_count_tables_and_large_tables_are_counted_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that would need more than a third of the digits leaves no room for three."""
    monkeypatch.setattr(packing, "WORTHWHILE", 0)
    folded = watch_plans(monkeypatch)
    people = pd.DataFrame({"a": ["x", "x", "y"], "y": ["p", "q", "r"], "n": [2**40, 1, 2**45]})
    people.to_parquet(tmp_path / "people.parquet")
    table = cr.tabulate(tmp_path / "people.parquet", "a", "y", count="n")
    assert sorted(tuple(sorted(counts)) for counts, _ in table.profiles().rows()) == [(1, 2**40), (2**45,)]
    monkeypatch.setattr(sums, "BITS", 5)  # three records need two bits
    assert cr.tabulate(tmp_path / "people.parquet", "a", "y", count=False).n_cells == 2
    assert [each.folded for each in folded] == [{}, {}]
