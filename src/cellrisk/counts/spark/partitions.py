"""Into how many parts Spark cuts what it shuffles: by the size of the data, and never more than it was set to.

A part is a task, and a task on a cluster takes its time however little it has to do. Spark joins small parts by itself,
but not those of what it keeps (`cache`), and counting keeps its intermediate results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

SETTINGS = (  # the second, where it is given, goes before the first
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum",
)
BYTES_IN_A_PART = 2**23
"""Bytes of a file for each part; files are mostly Parquet, which is several times larger in memory."""
RECORDS_IN_A_PART = 250_000
PARTS_OF_A_SURVEY = 8
"""How many parts a survey has where the source's size is not known: it shuffles levels, and those are few."""
UNITS = {unit: 2 ** (10 * place) for place, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
SIZE = re.compile(rf"Statistics\(sizeInBytes=([0-9.]+) ({'|'.join(UNITS)})\b")
UNKNOWN = 2**60
"""What Spark takes for the size of a source that does not tell its own: eight times as much, in fact."""


class Partitions:
    """The parts of one session, which `fit` changes and `restore` puts back."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.given = {key: session.conf.get(key, None) for key in SETTINGS}
        """None where Spark's own value holds."""
        used = {SETTINGS[0]: session.conf.get(SETTINGS[0]), SETTINGS[1]: self.given[SETTINGS[1]]}
        self.most = {key: int(value) for key, value in used.items() if value is not None and value.isdecimal()}
        self.least = 1

    def fit_bytes(self, size: int) -> None:
        """Sets as many parts as a source of that size needs, if it is read without a shuffle."""
        self._set(-(-size // BYTES_IN_A_PART))

    def fit_plan(self, view: str) -> None:
        """Sets as many parts as a view needs, by what Spark itself expects of it.

        What it shuffles in order to make its records is part of every query: then the largest of its steps counts, and
        there are no fewer parts later on, however few records come out.
        """
        plan = self.session.sql(f"EXPLAIN COST SELECT * FROM {view}").first()[0]
        logical, _, physical = plan.partition("== Physical Plan ==")
        shuffles = not physical or "Exchange" in physical
        sizes = read_sizes(logical)
        size = (max(sizes) if shuffles else sizes[0]) if sizes else UNKNOWN
        if shuffles:
            self.least = -(-size // BYTES_IN_A_PART)
        self._set(PARTS_OF_A_SURVEY if size >= UNKNOWN else -(-size // BYTES_IN_A_PART))

    def fit_records(self, records: int) -> None:
        """Sets as many parts as it takes to count so many records."""
        self._set(-(-records // RECORDS_IN_A_PART))

    def _set(self, number: int) -> None:
        for key, most in self.most.items():
            self.session.conf.set(key, str(min(most, max(number, self.least, 1))))

    def restore(self) -> None:
        for key in self.most:
            before = self.given[key]
            if before is None:
                self.session.conf.unset(key)
            else:
                self.session.conf.set(key, before)


@contextmanager
def partitions_of(session: Any) -> Iterator[Partitions]:
    """The parts of a session, which has its own again after the block."""
    partitions = Partitions(session)
    try:
        yield partitions
    finally:
        with suppress(Exception):  # a session that is lost has no settings to put back
            partitions.restore()


def read_sizes(plan: str) -> Sequence[int]:
    """The sizes of a plan's steps in bytes, the last step first.

    >>> read_sizes("Project [c0], Statistics(sizeInBytes=1.5 KiB)\\n+- Relation [c0], Statistics(sizeInBytes=8.0 EiB)")
    [1536, 9223372036854775808]
    """
    return [int(float(number) * UNITS[unit]) for number, unit in SIZE.findall(plan)]
