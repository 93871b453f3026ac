"""Released tables of all kinds: where they come from, how their values are matched, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.publish.auditing import audit
from cellrisk.publish.releasing.published_totals import LabelledColumn
from tests.near import near, same
from tests.refusals import refused

PEOPLE = pd.DataFrame(
    {
        "rooms": [1.0, 1.0, 2.5, 2.5, 2.5, 4.0],
        "owner": [True, True, False, False, False, True],
        "age": [21, 24, 37, 38, 39, 71],
        "job": ["secret-a", "secret-a", "secret-a", "secret-b", "secret-b", "secret-b"],
    }
)
QIDS = ["rooms", "owner", "age"]
BINS = {"age": 5}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return cr.tabulate(PEOPLE, QIDS, "job", bins=BINS)


def labelled(frame: pd.DataFrame = PEOPLE) -> pd.DataFrame:
    """The same people with the labels of the bins."""
    lower = -(-frame.age // 5) * 5 - 5
    return frame.assign(age=[f"({low}, {low + 5}]" for low in lower])


def test_files_and_frames_are_read_alike(table: cr.FrequencyTable, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    release = labelled().iloc[:5]
    release.to_csv(tmp_path / "release.csv", index=False)
    release.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    release.to_parquet(tmp_path / "release.parquet", index=False)
    sources = [
        tmp_path / "release.csv",
        str(tmp_path / "semicolons.csv"),
        tmp_path / "release.parquet",
        pl.DataFrame(release.to_dict("list")),
        pa.Table.from_pandas(release),
        release.assign(job=release.job.astype("category"), rooms=release.rooms.astype(str)),
    ]
    expected = audit(table, release)
    assert expected.value() == 2 / 6
    assert expected.value("scenario_4") == 1
    for source in sources:
        assert audit(table, source).released == pytest.approx(dict(expected.released), rel=1e-12, abs=0, nan_ok=True)


@pytest.mark.parametrize(
    "column", [{"rooms": ["1", "1.00", "2.50"]}, {"owner": ["TRUE", "true", "False"]}], ids=["numbers", "truth values"]
)
def test_values_that_could_mean_two_things_are_not_matched(
    table: cr.FrequencyTable, column: dict[str, list[str]]
) -> None:
    """The first two spell the same, so neither is taken for the original's unless it is written alike."""
    found = audit(table, labelled().iloc[[0, 1, 2]].assign(**column))
    assert any("the original does not have" in note for note in found.notes)


def test_numbers_are_binned_where_bins_are_given(table: cr.FrequencyTable) -> None:
    raw, named = audit(table, PEOPLE, bins=BINS), audit(table, labelled(), bins=BINS)
    assert same(raw.released, raw.raw)
    assert same(named.released, raw.raw)
    edges = {"age": [20, 35, 60]}
    by_edges = cr.tabulate(PEOPLE, QIDS, "job", bins=edges)
    found = audit(by_edges, PEOPLE, bins=edges)
    assert found.released == found.raw
    with refused("other-values"):
        audit(table, PEOPLE)


INSTANTS = pd.to_datetime(["2020-07-01 01:30:00.5", "2020-07-01 01:30:00", "2021-01-01"], format="ISO8601")


@pytest.mark.parametrize(
    "values",
    [
        INSTANTS,
        INSTANTS.tz_localize("Europe/Paris"),
        INSTANTS.date,
        INSTANTS.time,
        [Decimal("1.50"), Decimal("-0.0"), None],
        pd.array([2**60 + 1, 3, None], "Int64"),
        pd.array([True, None, False], "boolean"),
        np.array([0.1, 2, np.inf], np.float32),
        [1e-20, np.nan, -0.0],
        ["2.0", "", None],
    ],
    ids=["moments", "zones", "dates", "times", "decimals", "integers", "truth values", "single", "double", "text"],
)
def test_labels_are_those_of_tabulate(values: Any, tmp_path: Path) -> None:
    people = pd.DataFrame({"key": values, "job": ["a", "b", "a"]})
    table = cr.tabulate(people, "key", "job")
    expected = audit(table, people).raw
    assert same(audit(table, people).released, expected)
    people.to_parquet(tmp_path / "release.parquet", index=False)
    assert same(audit(table, tmp_path / "release.parquet").released, expected)


@pytest.mark.parametrize("width", [5, 0.1, 2.5])
def test_bins_are_those_of_tabulate(width: float) -> None:
    rng = np.random.default_rng(0)
    ages = np.round(np.concatenate([rng.uniform(-3, 3, 200), np.arange(-20, 21) / 10]), 2)
    frame = pd.DataFrame({"age": ages, "job": rng.choice(["a", "b"], len(ages))})
    table = cr.tabulate(frame, "age", "job", bins={"age": width})
    assert same((found := audit(table, frame, bins={"age": width})).released, found.raw)


def test_counts_of_binned_numbers_add_up(table: cr.FrequencyTable) -> None:
    counts = PEOPLE.assign(n=1.5).iloc[2:5].drop_duplicates()
    found = audit(table, counts, count="n", bins=BINS)
    assert found.value("k") == 4.5


def test_new_keys_are_allowed_and_noted(table: cr.FrequencyTable) -> None:
    found = audit(table, pd.concat([labelled(), labelled().iloc[:2].assign(rooms=9.0)]))
    assert "Groups that the release shows and the original does not have: 1 of 4." in found.notes
    assert found.value() == near(found.value(of="original"))


def test_missing_values_follow_the_original() -> None:
    people = pd.DataFrame({"town": ["x", "x", None, "y"], "job": ["a", "b", "a", None]})
    as_category = cr.tabulate(people, "town", "job")
    for released in (people, people.fillna("(missing)")):
        found = audit(as_category, released)
        assert same(found.released, found.raw)
    dropped = cr.tabulate(people, "town", "job", missing="drop")
    found = audit(dropped, people)
    assert same(found.released, found.raw)
    assert "Rows of the release with missing values are left out, as in the original: 2." in found.notes
    strict = cr.tabulate(people.dropna(), "town", "job", missing="error")
    with refused("missing-values"):
        audit(strict, people)
    known = cr.tabulate(people.dropna(), "town", "job")
    with refused("other-levels"):
        audit(known, people)
    found = audit(known, people[people.job.notna()])
    assert any("the original does not have" in note for note in found.notes)


def counts(**changes: Any) -> pd.DataFrame:
    return labelled().drop_duplicates().assign(n=2.0).assign(**changes)


REFUSALS: dict[str, tuple[pd.DataFrame, dict[str, Any], str, str]] = {
    "column": (counts().drop(columns="owner"), {"count": "n"}, "no-column", "'owner'"),
    "sensitive": (counts().drop(columns="job"), {}, "no-column", "'job'"),
    "count": (counts().drop(columns="n"), {"count": "n"}, "no-column", "'n'"),
    "missing": (counts(n=[1.0, None, 2.0, 3.0]), {"count": "n"}, "count-values", "got 1 of 4 rows"),
    "infinite": (counts(n=[1.0, 2.0, np.inf, -np.inf]), {"count": "n"}, "count-values", "got 2 of 4 rows"),
    "text": (counts(n=["1", "2", "3", "secret-n"]), {"count": "n"}, "count-values", "got 1 of 4 rows"),
    "truth": (counts(n=True), {"count": "n"}, "count-values", "no numbers"),
    "repeated": (pd.concat([counts(), counts().iloc[:2]]), {"count": "n"}, "counted-twice", "got 2 of 4"),
    "level": (counts(job=["secret-a", "secret-a", "secret-c", "secret-d"]), {"count": "n"}, "other-levels", "got 2 of"),
    "values": (counts(rooms=7), {"count": "n"}, "other-values", "'rooms'"),
    "bins": (counts(), {"count": "n", "bins": {"height": 5}}, "roles", "'height'"),
    "reach": (counts(age=1e300), {"count": "n", "bins": {"age": 5}}, "bins", ""),
    "reach of a text": (counts(age="1e300"), {"count": "n", "bins": {"age": 5}}, "bins", ""),
    "roles": (counts(), {"count": "job"}, "roles", "'job'"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_columns_and_counts_but_no_value(table: cr.FrequencyTable, name: str) -> None:
    released, given, code, words = REFUSALS[name]
    with refused(code, words) as caught:
        audit(table, released, **given)
    assert "secret" not in str(caught.value)


def test_released_counts_are_checked() -> None:
    with refused("labels-twice"):
        LabelledColumn("sex", ("f", "f"), np.zeros(1, np.int64))
