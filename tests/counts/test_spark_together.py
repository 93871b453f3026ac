"""Several tables counted on Spark, with what a plain dictionary counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cellrisk.counts.joint import count_together
from tests.counts.conditions import check_exclusive, draw_columns, draw_parts
from tests.counts.test_joint import PEOPLE, TABLES, frame_of, read, vectors_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves the closing of sockets to Python
]


def test_spark_counts_a_set_as_by_hand(session: Any, tmp_path: Path) -> None:
    pq.write_table(frame_of(PEOPLE), tmp_path / "people.parquet")
    frame = session.read.parquet(str(tmp_path / "people.parquet"))
    for missing in ("category", "drop"):
        assert read(count_together(frame, TABLES, "job", missing=missing)) == vectors_of(PEOPLE, missing)


def test_no_record_is_in_two_parts_that_exclude_each_other(session: Any, tmp_path: Path) -> None:
    names = ["text", "small", "decimal"]
    pq.write_table(draw_columns(5).select(names), tmp_path / "people.parquet")
    frame = session.read.parquet(str(tmp_path / "people.parquet"))
    excluded, shared = check_exclusive(frame, names, draw_parts(6, 16))
    assert min(excluded, shared) > 15
