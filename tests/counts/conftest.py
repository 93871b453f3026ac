"""A second opinion on every count: plain Python, one record at a time."""

from __future__ import annotations

import gc
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from cellrisk.counts.spark import own_session
from tests.counts.spark_cluster import CHEAP, CHEAP_JAVA, FAST, need_spark


@dataclass(frozen=True)
class Counted:
    """What the tests compare: profiles, level totals and sums of products by label, kinds of cells."""

    profiles: dict[tuple[int, ...], int]
    totals: dict[str | None, int]
    products: dict[str | None, float]
    histogram: dict[tuple[str | None, int], int]


def count_by_hand(records: Sequence[dict[str, Any]], quasi: Sequence[str], sensitive: str, weight: str = "") -> Counted:
    cells: dict[tuple[Any, ...], Counter[Any]] = defaultdict(Counter)
    for record in records:
        times = int(record[weight]) if weight else 1
        if times:
            key = tuple((type(record[name]).__name__, record[name]) for name in quasi)
            cells[key][record[sensitive]] += times
    profiles: Counter[tuple[int, ...]] = Counter()
    totals: Counter[str | None] = Counter()
    products: Counter[str | None] = Counter()
    histogram: Counter[tuple[str | None, int]] = Counter()
    for counts in cells.values():
        profiles[tuple(sorted(counts.values(), reverse=True))] += 1
        for value, times in counts.items():
            label = None if value is None else str(value)
            totals[label] += times
            products[label] += times * sum(counts.values())
            histogram[label, times] += 1
    return Counted(dict(profiles), dict(totals), dict(products), dict(histogram))


def counted(table: Any, name: str | None = None) -> Counted:
    """The same shape from a FrequencyTable."""
    attribute = table.attribute(name if name is not None else table.sensitive[0])
    levels = attribute.levels
    labels: list[str | None] = list(levels.labels)
    if attribute.missing_level:
        labels[-1] = None
    totals = dict(zip(labels, levels.totals.tolist(), strict=True))
    products = dict(zip(labels, levels.size_products.tolist(), strict=True))
    histogram = {
        (labels[level], count): cells
        for level, count, cells in zip(levels.level.tolist(), levels.count.tolist(), levels.cells.tolist(), strict=True)
    }
    return Counted(
        dict(attribute.profiles.rows()),
        {label: total for label, total in totals.items() if total},
        {label: product for label, product in products.items() if product},
        histogram,
    )


@pytest.fixture(scope="session")
def by_hand() -> Callable[..., Counted]:
    return count_by_hand


@pytest.fixture(scope="session")
def as_counted() -> Callable[..., Counted]:
    return counted


PEOPLE: list[dict[str, Any]] = [
    {"age": age, "sex": sex, "city": city, "job": job, "ill": ill}
    for age, sex, city, job, ill in [
        (31, "f", "Ulm", "cook", 0),
        (31, "f", "Ulm", "cook", 1),
        (31, "m", "Ulm", "smith", 0),
        (31, "m", "Ulm", "smith", 0),
        (45, "f", None, "cook", 1),
        (45, "f", None, "clerk", 1),
        (45, "f", "Köln", None, 0),
        (45, "f", "Köln", "clerk", 0),
        (62, "m", "Köln", "clerk", 0),
        (62, "m", "Köln", "smith", 1),
        (62, "m", "Köln", "cook", 1),
        (62, "m", "Köln", "cook", 1),
    ]
]


@pytest.fixture
def people() -> list[dict[str, Any]]:
    return [dict(record) for record in PEOPLE]


class SharedSpark:
    """The one Spark on this machine that all tests of a process share, started when it is first asked for."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._session: Any = None

    def open(self) -> Any:
        if self._session is None:
            need_spark()
            with pytest.MonkeyPatch.context() as patch:
                options = [word for name, value in CHEAP.items() for word in ("--conf", f"{name}={value}")]
                patch.setenv("PYSPARK_SUBMIT_ARGS", " ".join([*options, "pyspark-shell"]))
                patch.setenv("JAVA_TOOL_OPTIONS", CHEAP_JAVA)
                self._session = self._stack.enter_context(own_session("local[1]"))
            for name, value in FAST.items():
                self._session.conf.set(name, value)
            self._session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
        return self._session

    def close(self) -> None:
        if self._session is None:
            return
        self._session = None
        self._stack.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # Spark leaves the closing of sockets to Python
            gc.collect()


shared_spark = SharedSpark()
ON_SPARK = ("tests/counts/test_spark.py",)


@pytest.fixture
def session() -> Any:
    """A Spark session, or a skip that says what is missing."""
    return shared_spark.open()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Spark ends with the last test in a row that may use it: others mind its sockets, and would take it for theirs."""
    if nextitem is None or not nextitem.nodeid.startswith(ON_SPARK):
        shared_spark.close()
