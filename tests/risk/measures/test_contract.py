"""Every measure, in every form, under every noise, against enumeration."""

from __future__ import annotations

import pytest

from cellrisk.risk.measures import FORMS
from tests.risk.measures import cases


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise", cases.NOISES)
@pytest.mark.parametrize("measure", ["local", "expected", "shrinkage"])
def test_agrees_with_enumeration(measure: str, noise: str, form: str) -> None:
    law, threshold, vanish = cases.NOISES[noise]
    for cell in cases.CELLS:
        ours = cases.ours(measure, cell, law, threshold, form)
        theirs = cases.theirs(measure, cell, vanish, form)
        assert abs(ours - theirs) <= 1e-12 * theirs, cell


@pytest.mark.parametrize(
    "form", ["tight", *(pytest.param(form, marks=pytest.mark.slow) for form in ("published", "exact"))]
)
@pytest.mark.parametrize("noise", cases.NOISES)
def test_random_sizes_agree_with_enumeration(noise: str, form: str) -> None:
    """The enumeration stops at a size past which there is less than 1e-9 of probability."""
    law, threshold, vanish = cases.NOISES[noise]
    for measure in cases.MEASURES:
        if "/" in measure:
            for cell in [(3, 1), (2, 1, 1)]:
                ours = cases.ours(measure, cell, law, threshold, form)
                theirs = cases.theirs(measure, cell, vanish, form)
                assert abs(ours - theirs) <= 2e-9, (measure, cell)


@pytest.mark.parametrize("measure", cases.MEASURES)
@pytest.mark.parametrize("noise", cases.NOISES)
def test_range_and_order(measure: str, noise: str) -> None:
    """Risks are probabilities, and tight never exceeds exact."""
    law, threshold, _ = cases.NOISES[noise]
    for cell in cases.CELLS:
        exact = cases.ours(measure, cell, law, threshold, "exact")
        tight = cases.ours(measure, cell, law, threshold, "tight")
        published = cases.ours(measure, cell, law, threshold, "published")
        assert 0 < tight <= exact * (1 + 1e-12) < 1
        assert 0 < published < 1
