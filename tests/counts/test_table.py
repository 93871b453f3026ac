"""The frequency table, its levels and its summary."""

from __future__ import annotations

import datetime
import json
from dataclasses import FrozenInstanceError
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cellrisk.counts.counting import tabulate
from cellrisk.counts.table import FrequencyTable
from cellrisk.errors import InvalidInput, UnknownName

QUASI = ["age", "sex", "city"]


@pytest.fixture
def table(people: list[dict[str, Any]]) -> FrequencyTable:
    return tabulate(pd.DataFrame(people), QUASI, ["job", "ill"], levels={"ill": [1, 0]})


def test_names(table: FrequencyTable) -> None:
    assert (table.n_records, table.n_cells) == (12, 5)
    assert table.sensitive == ("job", "ill")
    assert table.quasi_identifiers == ("age", "sex", "city")
    assert table.profiles("job") is table.attribute("job").profiles
    assert "12 records in 5 groups of age, sex, city" in str(table)
    with pytest.raises(UnknownName, match="allowed: job, ill"):
        table.profiles("sex")
    with pytest.raises(InvalidInput, match="name one of them"):
        table.profiles()
    with pytest.raises(FrozenInstanceError):
        table.missing = "drop"  # type: ignore[misc]


def test_levels(table: FrequencyTable) -> None:
    job, ill = table.attribute("job"), table.attribute("ill")
    assert job.levels.labels == ("clerk", "cook", "smith", "(missing)")
    assert (job.declared, job.missing_level) == (False, True)
    assert ill.levels.labels == ("1", "0")
    assert (ill.declared, ill.missing_level) == (True, False)
    assert ill.levels.totals.tolist() == [6, 6]


def test_summary_in_numbers(table: FrequencyTable) -> None:
    document = table.summary().to_dict()
    assert json.loads(json.dumps(document)) == document
    assert (document["records"], document["cells"], document["dropped_records"]) == (12, 5, 0)
    assert document["sensitive"]["job"] == {
        "levels": 4,
        "homogeneous": 2,
        "heterogeneous": 3,
        "unique": 0,
        "profiles": 3,
        "exposed_records": 4,
        "exposed_share": 4 / 12,
        "level_labels": ["clerk", "cook", "smith", "(missing)"],
        "declared": False,
    }
    assert document["over_all_attributes"] == {
        "completely_homogeneous": 1,
        "partially_homogeneous": 3,
        "completely_heterogeneous": 1,
    }
    sizes = document["cell_sizes"]
    assert (sizes["min"], sizes["median"], sizes["mean"], sizes["max"]) == (2, 2.0, 2.4, 4)
    assert {bucket: cells for bucket, cells in sizes["distribution"].items() if cells} == {"2": 4, "3-4": 1}
    assert document["missing"] == "category"
    assumptions = " ".join(document["assumptions"])
    assert "levels of job are the 4 observed ones, not declared" in assumptions
    assert "levels of ill" not in assumptions
    assert "city (2 records)" in assumptions


def test_summary_as_text(table: FrequencyTable) -> None:
    lines = str(table.summary()).splitlines()
    assert lines[0] == (
        "12 records in 5 groups of 3 quasi-identifiers; without noise, the groups reveal 'job' of 4 of them (33.3%), "
        "'ill' of 6 of them (50.0%)."
    )
    text = "\n".join(lines)
    assert "Levels of job (observed, not declared): clerk, cook, smith, (missing)" in text
    assert "Levels of ill (declared): 1, 0" in text
    assert "partially homogeneous" in text
    rows = [line for line in lines if line.startswith(("sensitive", "job", "ill"))]
    assert len({len(row) for row in rows}) == 1


def test_median_between_two_sizes() -> None:
    frame = pd.DataFrame({"a": ["p", "r", "r", "r", "r"], "y": list("uvuvu")})
    sizes = tabulate(frame, "a", "y").summary().cell_sizes
    assert (sizes["median"], sizes["mean"]) == (2.5, 2.5)


@pytest.mark.parametrize(
    ("values", "declared", "expected"),
    [
        ([1, 0, 1], ["0", "1"], ("0", "1")),
        ([1.0, 0.0, None], ["0", "1"], ("0", "1", "(missing)")),
        ([1.0, 0.5, 1.0], ["0.50", "1.0"], ("0.50", "1.0")),
        (["1", "0", "1"], [0, 1, 2], ("0", "1", "2")),
        (["1.0", "0.0", "1.0"], [0.0, 1.0], ("0", "1")),
        ([True, False, True], [False, True], ("False", "True")),
        ([True, False, True], ["true", "false"], ("true", "false")),
        (["true", "false", "true"], [True, False], ("True", "False")),
        (["TRUE", "FALSE", "TRUE"], [True, False], ("True", "False")),
        ([Decimal("1.50"), Decimal("2.00"), None], ["2", "1.5"], ("2", "1.5", "(missing)")),
        ([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)], None, ("2020-01-01", "2020-01-02")),
        ([datetime.datetime(2020, 1, 2, 3), None], None, ("2020-01-02 03:00:00", "(missing)")),
        (["10", "9", "-1"], None, ("-1", "9", "10")),
        (["10", "9", "x"], None, ("10", "9", "x")),
        ([10, 9, 2**63 - 1], None, ("9", "10", str(2**63 - 1))),
        ([1e300, -1e-300, 0.1], None, ("-1E-300", "0.1", "1E+300")),
        ([float("inf"), 1.0, float("-inf")], None, ("-inf", "1", "inf")),
        ([np.int64(3), np.int64(4)], np.array([4, 3, 5]), ("4", "3", "5")),
    ],
)
def test_labels_and_declared_levels(values: list[Any], declared: Any, expected: tuple[str, ...]) -> None:
    source = pa.table({"a": ["p"] * len(values), "y": pa.array(values)})
    table = tabulate(source, "a", "y", levels=None if declared is None else {"y": declared})
    levels = table.attribute("y").levels
    assert levels.labels == expected
    assert int(levels.totals.sum()) == len(values)


def test_narrow_numbers_are_labelled_as_written() -> None:
    source = pa.table({"a": pa.array([0.1, -0.0, 0.0], pa.float32()), "y": pa.array([0.1, 2.5, -0.0], pa.float32())})
    table = tabulate(source, "a", "y")
    assert table.attribute("y").levels.labels == ("0", "0.1", "2.5")
    assert table.n_cells == 2


def test_moments_with_zones_and_times() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moments = [datetime.datetime(2020, 1, 1, 2, tzinfo=zone), datetime.datetime(2020, 1, 1, 3, tzinfo=zone)]
    source = pa.table({"a": [datetime.time(1), datetime.time(1)], "y": moments})
    assert dict(tabulate(source, "a", "y").profiles().rows()) == {(1, 1): 1}
    assert tabulate(source, "y", "a", levels={"a": ["01:00:00", "02:00:00"]}).n_cells == 2
