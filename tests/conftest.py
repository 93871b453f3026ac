"""Tables that many tests look at, and the order in which files of tests are run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

import cellrisk as cr

hypothesis.settings.register_profile("cellrisk", deadline=None)
hypothesis.settings.load_profile("cellrisk")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Tests run in one process a processor; threads of numpy's own would be in each other's way."""

LONGEST_FIRST = (
    *("tests/web/", "tests/counts/test_spark", "tests/docs/", "tests/test_r_package.py", "tests/test_package.py"),
    *("tests/repeat/ledger/", "tests/counts/", "tests/publish/releasing/", "tests/noise/test_from_opendp.py"),
    *("tests/risk/measures/", "tests/reproduction/", "tests/system/", "tests/show/", "tests/repeat/", "tests/cli/"),
)
"""Files that begin with these start first, in this order, so that no process is left alone with a long one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((n for n, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)), 99))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are processors: tests also wait, for browsers, servers and signals."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_user() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CELLRISK_LEDGER_HEAD", "CELLRISK_POLICY"):
            patch.delenv(name, raising=False)
        yield


ADULT_QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]


@pytest.fixture(scope="session")
def adult() -> cr.FrequencyTable:
    """Adult as defined: 27,504 records in 5,009 cells."""
    return cr.tabulate(cr.datasets.adult_as_published(), ADULT_QIDS, "income", bins={"age": 5, "hours-per-week": 10})
