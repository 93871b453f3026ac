"""Tables that many tests look at."""

from __future__ import annotations

import pytest

import cellrisk as cr

ADULT_QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]


@pytest.fixture(scope="session")
def adult() -> cr.FrequencyTable:
    """Adult as defined: 27,504 records in 5,009 cells."""
    return cr.tabulate(cr.datasets.adult_as_published(), ADULT_QIDS, "income", bins={"age": 5, "hours-per-week": 10})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that must share a process come first: they take longest, and the others fill the gaps beside them."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
