"""What is computed: curves against formulas written out here, the paper's numbers, and the verdicts."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.paper import Reproduction, bankruptcy, reproduce
from cellrisk.paper.panels import AGREES, DIFFERS, ON_CONDITION, Panel, Sheet, Statement
from cellrisk.risk.curves import Line
from tests.shared_data import needs_shared_data

LETTERS = "abcdefghijklmnopqrstuvwx"


def sheet_of(found: Reproduction, name: str) -> Sheet:
    return next(sheet for sheet in found.sheets if sheet.name == name)


def line_of(found: Reproduction, name: str, **words: Any) -> Line:
    """The one line of a sheet with these words; mechanism and delta are those of its setting."""
    lines = []
    for panel in sheet_of(found, name).panels:
        for line in panel.lines:
            own = {**vars(line), "mechanism": line.setting.name, "delta": line.setting.delta, "reading": panel.reading}
            if all(own[key] == value for key, value in words.items()):
                lines.append(line)
    assert lines
    return lines[0]


def verdict_of(found: Reproduction, start: str) -> Statement:
    (statement,) = (each for each in found.statements if each.claim.startswith(start))
    return statement


@pytest.fixture(scope="module")
def row_sizes() -> Any:
    """Sizes of Adult's rows, counted by pandas."""
    import pandas as pd

    people = cr.datasets.adult_as_published().to_pandas()
    people["age"] = pd.cut(people["age"], range(15, 95, 5))
    people["hours-per-week"] = pd.cut(people["hours-per-week"], range(0, 101, 10))
    columns = ["age", "relationship", "education", "race", "sex", "hours-per-week", "income"]
    return people.groupby(columns, observed=True).size().to_numpy()


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("weights", ["uniform", "records"])
def test_adult_as_published_meets_corollary_2(
    found: Reproduction, row_sizes: Any, epsilon: float, weights: str
) -> None:
    """(1 - e^(-eps/2)/2) sum_i w_i (1 - e^((0.5 - n_i) eps)/2), K = 2."""
    survive = 1 - np.exp((0.5 - row_sizes) * epsilon) / 2
    average = np.average(survive, weights=None if weights == "uniform" else row_sizes)
    line = line_of(found, "figure-3-adult-as-published", mechanism="laplace", weights=weights)
    assert line.at(epsilon) == pytest.approx((1 - math.exp(-epsilon / 2) / 2) * average, rel=1e-12, abs=0)


def test_adult_as_published_at_one(found: Reproduction) -> None:
    lines = [
        line_of(found, "figure-3-adult-as-published", mechanism="laplace", weights=w) for w in ("uniform", "records")
    ]
    assert [round(line.at(1.0), 4) for line in lines] == [0.5653, 0.6643]


@pytest.mark.parametrize("delta", [0.00003, 0.1])
@pytest.mark.parametrize("mechanism", ["gaussian", "gaussian-pdp"])
def test_adult_as_published_meets_corollary_4(
    found: Reproduction, row_sizes: Any, mechanism: str, delta: float
) -> None:
    """(1 + erf(0.5/(sigma sqrt 2)))/4 sum_i w_i (1 + erf((n_i - 0.5)/(sigma sqrt 2))), K = 2."""
    from scipy.special import erf
    from scipy.stats import norm

    epsilon = 0.1
    z = norm.ppf(delta / 2)
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    if mechanism == "gaussian-pdp":
        sigma = (math.sqrt(z * z + 2 * epsilon) - z) / (2 * epsilon)
    root = sigma * math.sqrt(2)
    expected = (1 + erf(0.5 / root)) / 4 * np.mean(1 + erf((row_sizes - 0.5) / root))
    line = line_of(found, "figure-3-adult-as-published", mechanism=mechanism, delta=delta, weights="uniform")
    assert line.at(epsilon) == pytest.approx(float(expected), rel=1e-10, abs=0)


def test_adult_as_defined_at_one(found: Reproduction) -> None:
    name = "beyond-adult-as-defined-forms"
    risks = {
        form: [round(line_of(found, name, form=form, weights=w).at(1.0), 4) for w in ("uniform", "records")]
        for form in ("published", "exact", "tight")
    }
    assert risks == {"published": [0.5038, 0.4398], "exact": [0.4820, 0.3055], "tight": [0.4677, 0.2961]}
    assert line_of(found, name, form="tight", weights="records").limits.raw == pytest.approx(0.404, abs=0.0005)


def test_plurality_on_rows_is_a_comparison_of_two_counts(found: Reproduction, row_sizes: Any) -> None:
    """With one label present, the guess is right where its count beats the other's; ties are split. Enumerated."""
    epsilon, reach = 1.0, np.arange(0, 60)

    def released(count: int) -> Any:
        cdf = np.array(
            [
                1 - 0.5 * math.exp(-abs(x) * epsilon) if x >= 0 else 0.5 * math.exp(x * epsilon)
                for x in reach + 0.5 - count
            ]
        )
        return np.diff(cdf, prepend=0.0)

    other = released(0)
    below = np.cumsum(other) - other / 2
    right = {n: float((released(n) * below)[1:].sum()) if n < 30 else 1.0 for n in set(row_sizes.tolist())}
    expected = np.mean([right[n] for n in row_sizes.tolist()])
    line = line_of(found, "supplement-thresholding", attack="plurality", weights="uniform", reading="as published")
    assert line.at(epsilon) == pytest.approx(expected, abs=1e-9)


def test_every_panel_of_the_paper_is_there(found: Reproduction) -> None:
    drawn = [panel for sheet in found.sheets for panel in sheet.panels if panel.letter]
    assert {panel.letter for panel in drawn} == set(LETTERS)
    assert [panel.letter for panel in drawn].count("a") == 3  # as published; as defined, local and expected
    deltas = {"laplace": 1, "gaussian": 3, "gaussian-pdp": 3}
    for panel in drawn:
        (name,) = {line.setting.name for line in panel.lines}
        assert len(panel.lines) == deltas[name] + (panel.experiment == "Adult" and name != "laplace")
        assert all(line.form == "published" for line in panel.lines)
        assert max(line.epsilon[-1] for line in panel.lines) == (0.1 if name == "gaussian" else 100.0)


def test_beyond_the_paper(found: Reproduction) -> None:
    beyond = {sheet.name: sheet for sheet in found.sheets if sheet.name.startswith("beyond")}
    assert len(beyond) == 9
    for sheet in beyond.values():
        lines = [line for panel in sheet.panels for line in panel.lines]
        if sheet.name.endswith("measures"):
            assert len({line.measure for line in lines}) == 5
        if sheet.name.endswith("forms"):
            assert {line.form for line in lines} == {"published", "exact", "tight"}
        if sheet.name.endswith("geometric"):
            assert {line.setting.name for line in lines} == {"laplace", "geometric"}
        assert {line.weights for line in lines} >= {"uniform", "records"}


def test_boxes_hold_every_marginal(found: Reproduction) -> None:
    assert [boxes.cells for boxes in found.boxes] == ["observed", "domain"]
    for boxes in found.boxes:
        for way, marginals in ((1, 6), (2, 15), (3, 20)):
            assert len(boxes.ways[way]) == 6 + 3 * 4 + 3 * 6
            assert {len(box.distances) for box in boxes.ways[way]} == {marginals}
        assert boxes.mean(1, "laplace", 0.0, 100.0) < 0.001 < boxes.mean(1, "laplace", 0.0, 0.001)
        classical = [box.epsilon for box in boxes.ways[1] if box.mechanism == "gaussian"]
        assert max(classical) == math.nextafter(1.0, 0.0)
    observed, domain = found.boxes
    assert domain.mean(3, "laplace", 0.0, 0.1) > observed.mean(3, "laplace", 0.0, 0.1)


def test_frames_are_tidy(found: Reproduction) -> None:
    frame = sheet_of(found, "figure-3-adult-as-published").to_frame()
    assert set(frame["letter"]) == set("abcdef")
    points = {"laplace": 7, "gaussian": 3, "gaussian-pdp": 7}
    assert len(frame) == 2 * (points["laplace"] + 4 * (points["gaussian"] + points["gaussian-pdp"]))
    assert len(found.boxes[0].to_frame()) == 36 * 41
    assert list(found.to_frame().columns) == ["place", "claim", "paper", "ours", "verdict", "why"]


def test_answer_says_how_much_agrees(found: Reproduction) -> None:
    verdicts = [each.verdict for each in found.statements]
    assert found.headline.startswith(f"Of {len(verdicts)} numbers and claims of the paper, {verdicts.count(AGREES)} ")
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["verdicts"] == {each: verdicts.count(each) for each in (AGREES, ON_CONDITION, DIFFERS)}
    assert len(document["statements"]) == len(verdicts)
    assert str(found).startswith(found.headline)


ADULT_VERDICTS = {
    "Adult: individuals": AGREES,
    "Adult: non-empty cells": DIFFERS,
    "Adult: each cell is homogeneous": DIFFERS,
    "Adult: cell sizes": ON_CONDITION,
    "Adult: cells with more than 120": ON_CONDITION,
    "Adult: Poisson rate": ON_CONDITION,
    "Adult: the risk as epsilon grows": ON_CONDITION,
    "Adult: one over": AGREES,
    "The closed form is above": ON_CONDITION,
    "The term of heterogeneous cells decreases": AGREES,
    "1 - exp((0.5 - n) epsilon)/2 for cells of 4": ON_CONDITION,
    "1 - exp((0.5 - n) epsilon)/2 for cells of 3": ON_CONDITION,
    "1 - exp((0.5 - n) epsilon)/2 for cells of 2": ON_CONDITION,
    "Thresholding: the upper": ON_CONDITION,
    "Thresholding: the lower": AGREES,
    "The classical Gaussian": ON_CONDITION,
    "The geometric mechanism": ON_CONDITION,
}


@pytest.mark.parametrize("claim", ADULT_VERDICTS)
def test_verdict_on_adult_and_the_formulas(found: Reproduction, claim: str) -> None:
    assert verdict_of(found, claim).verdict == ADULT_VERDICTS[claim]


def test_other_data_do_not_agree(found: Reproduction) -> None:
    """The invented records are 250 too, and nothing else of them is as in the paper."""
    assert verdict_of(found, "Bankruptcy: observations").verdict == AGREES
    for claim in (
        "Bankruptcy: non-empty cells",
        "Bankruptcy: Poisson rate",
        "Bankruptcy subset: local risk, by records, as epsilon grows",
    ):
        statement = verdict_of(found, claim)
        assert (statement.verdict, statement.why) == (DIFFERS, "The numbers differ at the paper's number of digits.")


SUBSET_ENDS = {
    ("local", "each cell alike"): ("0.69", "0.16"),
    ("local", "by records"): ("0.57", "0.18"),
    ("expected", "each cell alike"): ("0.75", "0.16"),
    ("expected", "by records"): ("0.63", "0.17"),
}


@needs_shared_data
def test_numbers_of_the_paper_that_agree(real: Reproduction) -> None:
    for (measure, words), (upper, lower) in SUBSET_ENDS.items():
        start = f"Bankruptcy subset: {measure} risk, {words}, as epsilon"
        for end, paper in (("grows", upper), ("falls", lower)):
            statement = verdict_of(real, f"{start} {end}")
            assert (statement.paper, statement.verdict) == (paper, AGREES)
    for claim in (
        "Bankruptcy: observations",
        "Bankruptcy: non-empty cells",
        "Bankruptcy: homogeneous cells",
        "Bankruptcy: Poisson rate",
        "Bankruptcy: the risk as epsilon grows",
        "Bankruptcy: the risk as epsilon falls",
        "Bankruptcy subset: non-empty cells",
        "Bankruptcy subset: homogeneous cells",
        "Bankruptcy subset: heterogeneous cells",
        "Bankruptcy subset: people",
        "Bankruptcy subset: Poisson rate",
        "Adult, Bankruptcy: the risk is 1 from epsilon 10",
        "TVD drops notably from epsilon 0.1",
        "TVD drops notably from epsilon 1 to",
    ):
        assert verdict_of(real, claim).verdict == AGREES, claim
    assert not real.missing


def test_progress_never_falls(found: Reproduction, shares: list[float]) -> None:
    assert found.boxes
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1.0


@needs_shared_data
def test_claims_of_the_paper_that_do_not_hold_as_they_stand(real: Reproduction) -> None:
    assert verdict_of(real, "Below epsilon 1").verdict == DIFFERS
    for claim in (
        "Where all cells are homogeneous the shrinkage",
        "Where all cells are homogeneous the marginal risk",
        "Where all cells are homogeneous the marginal shrinkage",
        "Bankruptcy subset: the expected risk tends",
        "The maximum is reached",
        "Simulated (empirical)",
        "Local and expected risk",
    ):
        assert verdict_of(real, claim).verdict == ON_CONDITION, claim


SECTION_10 = {
    ("figure-3-subset-local", "published", "laplace", 0.1): (0.191652, 0.212287),
    ("figure-3-subset-local", "published", "laplace", 1.0): (0.358505, 0.351947),
    ("figure-3-subset-expected", "published", "laplace", 0.1): (0.186378, 0.207321),
    ("figure-3-subset-expected", "published", "laplace", 1.0): (0.370516, 0.364783),
    ("beyond-bankruptcy-subset-forms", "exact", "laplace", 1.0): (0.334622, 0.306487),
    ("beyond-bankruptcy-subset-forms", "tight", "laplace", 1.0): (0.312364, 0.282627),
    ("beyond-bankruptcy-subset-geometric", "tight", "geometric", 1.0): (0.346178, 0.309410),
}


@needs_shared_data
@pytest.mark.parametrize("case", SECTION_10, ids=lambda case: " ".join(str(part) for part in case))
def test_subset_meets_figures_by_enumeration(real: Reproduction, case: tuple[str, str, str, float]) -> None:
    sheet, form, mechanism, epsilon = case
    for weights, expected in zip(("uniform", "records"), SECTION_10[case], strict=True):
        line = line_of(real, sheet, form=form, mechanism=mechanism, weights=weights)
        assert line.at(epsilon) == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("counted")
def test_without_bankruptcy_the_rest_is_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that fails leaves Adult, and says what is missing and how to give it."""

    def fail() -> None:
        raise InvalidInput("UCI cannot be reached", got="URLError")

    told: list[str] = []
    shares: list[float] = []
    monkeypatch.setattr(bankruptcy, "fetch_bankruptcy", fail)
    found = reproduce(fetch=True, points=2, releases=1, announce=told.append, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert told == [f"Fetching Qualitative Bankruptcy from UCI ({bankruptcy.URL})."]
    (missing,) = found.missing
    assert "UCI cannot be reached; got URLError" in missing
    assert "--bankruptcy FILE" in missing
    assert missing in str(found)
    assert "Not everything" in found.headline
    assert {each.name for each in found.experiments} == {"Adult"}
    assert not found.boxes
    assert not [each for each in found.statements if each.claim.startswith("Bankruptcy")]
    assert verdict_of(found, "Adult: individuals").verdict == AGREES


@pytest.mark.parametrize("wrong", [{"points": 1}, {"releases": 0}, {"seed": -1}], ids=str)
def test_settings_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        reproduce(**wrong)  # type: ignore[arg-type]


def test_panel_needs_lines_and_a_reading(found: Reproduction) -> None:
    lines = found.sheets[0].panels[0].lines
    with pytest.raises(InvalidInput, match="a panel needs a line"):
        Panel("a", "Adult", "as published", "Laplace", ())
    with pytest.raises(cr.CellriskError, match="unknown reading"):
        Panel("a", "Adult", "as drawn", "Laplace", lines)
    with pytest.raises(InvalidInput, match="a sheet needs a panel"):
        Sheet("empty", "Empty", "", ())
