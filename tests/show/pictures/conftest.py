"""Tables, a curve and its figure, made once for all tests."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.show.pictures import draw_curve
from tests.show.pictures.drawing import EPSILONS, make_table


@pytest.fixture(scope="session")
def two() -> cr.FrequencyTable:
    return make_table(2)


@pytest.fixture(scope="session")
def three() -> cr.FrequencyTable:
    return make_table(3)


@pytest.fixture(scope="session")
def several() -> cr.FrequencyTable:
    return make_table(3, ["job", "pay"])


@pytest.fixture(scope="session")
def found(three: cr.FrequencyTable) -> cr.RiskCurve:
    return cr.curve(three, epsilon=EPSILONS, measures="local", weights="records")


@pytest.fixture(scope="session")
def figure(found: cr.RiskCurve) -> Figure:
    return draw_curve(found)
