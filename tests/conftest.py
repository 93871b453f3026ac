"""Tables that many tests look at."""

from __future__ import annotations

import pytest

import cellrisk as cr

ADULT_QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]


@pytest.fixture(scope="session")
def adult() -> cr.FrequencyTable:
    """Adult as defined: 27,504 records in 5,009 cells."""
    return cr.tabulate(cr.datasets.adult_as_published(), ADULT_QIDS, "income", bins={"age": 5, "hours-per-week": 10})
