"""One small reproduction for all tests: Adult, and 250 invented records in the place of Bankruptcy."""

from __future__ import annotations

import os
import random

import pytest

from reproduction.bankruptcy import Rows, read_bankruptcy
from reproduction.experiments import Results, compute

POINTS, RELEASES = 6, 2


@pytest.fixture(scope="session")
def rows() -> Rows:
    """250 records in the columns of Bankruptcy; the class follows from the others, financial flexibility does not."""
    generator = random.Random(7)
    records = []
    for _ in range(250):
        others = [generator.choice("PAN") for _ in range(3)]
        flexibility = generator.choice("PAN")
        kind = "B" if (others[0], flexibility) < ("N", "P") else "NB"
        records.append((others[0], others[1], flexibility, others[2], others[0], others[1], kind))
    return records


@pytest.fixture(scope="session")
def text(rows: Rows) -> str:
    """The form of UCI's file."""
    return "".join(",".join(row) + "\n" for row in rows)


@pytest.fixture(scope="session")
def results(rows: Rows) -> Results:
    return compute(rows, "a test", POINTS, RELEASES, 0)


@pytest.fixture(scope="session")
def real() -> Results:
    """The results from the records of Bankruptcy, which are not shipped."""
    path = os.environ.get("CELLRISK_BANKRUPTCY")
    if path is None:
        pytest.skip("CELLRISK_BANKRUPTCY names no file with UCI's records of Bankruptcy")
    return compute(read_bankruptcy(path), "Bankruptcy", 11, 20, 0)
