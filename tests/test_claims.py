"""No door tells an epsilon or a delta smaller than it is: whatever is promised is rounded up."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.repeat.sequences import RiskSequence
from tests.show.pictures.drawing import words_of

EPSILON, DELTA = 1.2000004, 1.0000004e-6
"""To six digits these would be 1.2 and 1e-06, which is less than is given."""
PEOPLE = pd.DataFrame({"sex": [*"ffmmmxx"], "job": [*"abaabab"]})
GAUSSIAN = cr.AnalyticGaussian(epsilon=EPSILON, delta=DELTA)


def table() -> cr.FrequencyTable:
    return cr.tabulate(PEOPLE, "sex", "job", levels={"sex": ["f", "m", "x"], "job": ["a", "b"]})


def sequence() -> RiskSequence:
    return cr.assess_sequence(table(), [cr.Step(GAUSSIAN, "job")])


def together() -> cr.TogetherAssessment:
    return cr.assess_together(PEOPLE, [{"qid": "sex", "mechanism": GAUSSIAN}], "job", levels={"job": ["a", "b"]})


DOORS: dict[str, Callable[[], str]] = {
    "assess": lambda: str(cr.assess(table(), GAUSSIAN)),
    "assess, drawn": lambda: words_of(cr.assess(table(), GAUSSIAN).plot()),
    "explain": lambda: str(cr.explain(table(), GAUSSIAN)),
    "simulate": lambda: str(cr.simulate(table(), GAUSSIAN, releases=5)),
    "utility": lambda: str(cr.utility(table(), GAUSSIAN, releases=2)),
    "average": lambda: str(cr.average(table(), GAUSSIAN, releases=2)),
    "compose": lambda: str(cr.compose([cr.Loss.of(GAUSSIAN)], delta=DELTA)),
    "a sequence": lambda: str(sequence()),
    "a sequence, drawn": lambda: words_of(sequence().plot()),
    "together": lambda: str(together()),
    "together, drawn": lambda: words_of(together().plot()),
    "report": lambda: cr.report(table(), GAUSSIAN, max_risk=0.9).to_html(),
    "report, for the public": lambda: cr.report(table(), GAUSSIAN, public=True).to_html(),
    "report of a set": lambda: cr.report(together()).to_html(),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_door_promises_less_than_is_given(door: str) -> None:
    said = DOORS[door]()
    assert "1.00001e-06" in said
    assert not re.search(r"(?<![\d.])1e-06", said)
    assert re.search(r"(?<![\d.])(1\.20001|1\.2000004)(?!\d)", said)
    assert not re.search(r"epsilon\W{0,12}1\.2(?!\d)", said, re.IGNORECASE)
