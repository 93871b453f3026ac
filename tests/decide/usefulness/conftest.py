"""Few people, and the table of them."""

from __future__ import annotations

import pandas as pd
import pytest

import cellrisk as cr
from tests.decide.usefulness.definition import DOMAINS, people


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return people(DOMAINS, 60)


@pytest.fixture(scope="session")
def table(frame: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(frame, ["size", "sex", "town"], "job", levels=DOMAINS)
