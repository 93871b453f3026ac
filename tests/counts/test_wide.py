"""A wide table, with a column of counts for each level, is the same table as a long one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from tests.counts.counter import refused

LEVELS = ["flu", "diabetes", "depression"]


@pytest.fixture
def wide() -> pd.DataFrame:
    counts = np.random.default_rng(3).poisson(1.5, (12, 3))
    frame = pd.DataFrame(counts, columns=LEVELS)
    frame.insert(0, "age", np.arange(12) % 6 * 10 + 3)
    frame.insert(1, "sex", ["f", "m"] * 6)
    return frame


def equal(one: cr.FrequencyTable, other: cr.FrequencyTable) -> bool:
    found, expected = one.cells(), other.cells()
    same = [found.levels == expected.levels, found.domains == expected.domains, one.n_records == other.n_records]
    pairs = [(found.codes, expected.codes), (found.level, expected.level), (found.count, expected.count)]
    return all(same) and all(np.array_equal(left, right) for left, right in pairs)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "mixed types"])
def test_a_wide_table_is_a_long_one(wide: pd.DataFrame, tmp_path: Path, kind: str) -> None:
    long = wide.melt(["age", "sex"], var_name="illness", value_name="n")
    declared: Any = {"levels": {"illness": LEVELS}, "bins": {"age": 20}}
    expected = cr.tabulate(long, ["age", "sex"], "illness", count="n", **declared)
    source: Any = wide.astype({"flu": "float64"}) if kind == "mixed types" else wide
    if kind in ("csv", "parquet"):
        source = tmp_path / f"wide.{kind}"
        wide.to_csv(source, index=False) if kind == "csv" else wide.to_parquet(source)
    assert equal(cr.tabulate(source, ["age", "sex"], "illness", wide=LEVELS, bins={"age": 20}), expected)


def test_a_level_that_nobody_has_is_declared(wide: pd.DataFrame) -> None:
    table = cr.tabulate(wide.assign(flu=0), ["sex"], "illness", wide=LEVELS)
    assert table.cells().levels == tuple(LEVELS)
    assert table.attribute("illness").declared


def test_the_command(wide: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wide.csv"
    wide.to_csv(path, index=False)
    wanted = ["--qid", "sex", "--sensitive", "illness", "--wide", "flu,diabetes", "--wide", "depression"]
    assert main(["inspect", str(path), *wanted]) == 0
    assert f"{wide[LEVELS].to_numpy().sum()} records in 2 groups" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"wide": ["flu"]}, "wide"),
        ({"wide": ["flu", "sex"]}, "roles"),
        ({"wide": LEVELS, "sensitive": "flu"}, "roles"),
        ({"wide": LEVELS, "sensitive": ["a", "b"]}, "wide"),
        ({"wide": LEVELS, "count": "age"}, "wide"),
        ({"wide": LEVELS, "levels": {"illness": ["flu"]}}, "wide"),
        ({"wide": ["flu", "gout"]}, "no-column"),
        ({"wide": ["flu", "flu"]}, "names"),
    ],
    ids=str,
)
def test_refusals(wide: pd.DataFrame, given: dict[str, Any], code: str) -> None:
    with refused(code):
        cr.tabulate(wide, ["sex"], **{"sensitive": "illness", **given})


def test_suppressed_counts_are_refused_with_what_to_do(wide: pd.DataFrame) -> None:
    suppressed = wide.astype({"flu": object})
    suppressed.loc[3, "flu"] = "<5"
    with refused("unusable-values"):
        cr.tabulate(suppressed.astype({"flu": str}), ["sex"], "illness", wide=LEVELS)
