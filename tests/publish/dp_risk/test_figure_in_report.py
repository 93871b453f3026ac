"""The published figure in a report for the public: printed, paid for, and refused where it does not belong."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

LEVELS = {"sex": ["f", "m"], "job": ["cook", "smith"]}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    records = pd.DataFrame({"sex": list("ffmmf"), "job": ["cook", "smith", "cook", "cook", "cook"]})
    return cr.tabulate(records, "sex", "job", levels=LEVELS, outside="drop")


def test_the_report_shows_the_figure_and_what_it_costs(table: cr.FrequencyTable) -> None:
    published = cr.publish_risk(table, epsilon=1.0, risk_epsilon=0.05)
    found = cr.report(table, epsilon=1.0, public=True, published=published)
    assert "How risky the release is" in found.html
    assert "costs epsilon 0.05 of its own" in found.html
    assert "The one figure above has noise" in found.html
    without = cr.report(table, epsilon=1.0, public=True)
    assert "How risky the release is" not in without.html


def test_a_figure_of_another_release_is_refused(table: cr.FrequencyTable) -> None:
    published = cr.publish_risk(table, epsilon=1.0, risk_epsilon=0.05)
    for more in ({"epsilon": 2.0}, {"epsilon": 1.0, "threshold": 2.5}, {"epsilon": 1.0, "neighbours": "replace"}):
        given: Any = more
        with pytest.raises(InvalidInput, match="speaks of another release"):
            cr.report(table, public=True, published=published, **given)
    with pytest.raises(InvalidInput, match="a report for the public"):
        cr.report(table, epsilon=1.0, published=published)
