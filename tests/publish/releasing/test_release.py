"""`release`: its domain, what it says, what it refuses, what it costs, and how it is saved."""

from __future__ import annotations

import importlib
import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts.cells import Domain
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.publish.releasing import Release, release
from cellrisk.publish.releasing.domain import read_rules
from cellrisk.publish.releasing.measurement import Measurement
from tests.near import near
from tests.refusals import refused

pytest.importorskip("opendp")

LEVELS = {"sex": ["secret-f", "secret-m"], "age": ["secret-1", "secret-2", "secret-3"], "job": ["secret-a", "secret-b"]}
GEOMETRIC = cr.Geometric(epsilon=1.0)
SURE = cr.Geometric(epsilon=60.0)
"""No noise to speak of: any of six counts changes with probability 1e-25."""


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = [
        ("secret-f", "secret-1", "secret-a"),
        ("secret-f", "secret-1", "secret-b"),
        ("secret-m", "secret-3", "secret-a"),
    ]
    return pd.DataFrame(rows * 4, columns=["sex", "age", "job"])


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(frame, ["sex", "age"], "job", levels=LEVELS)


def rows_of(released: Release) -> dict[tuple[str, ...], int]:
    return {tuple(row[:-1]): row[-1] for row in released.to_frame().itertuples(index=False, name=None)}


@pytest.mark.parametrize("dense", [True, False])
def test_every_combination_has_its_count(table: cr.FrequencyTable, frame: pd.DataFrame, dense: bool) -> None:
    true = dict.fromkeys(product(*LEVELS.values()), 0) | frame.value_counts(["sex", "age", "job"]).to_dict()
    released = release(table, SURE, dense=dense)
    assert rows_of(released) == (true if dense else {key: count for key, count in true.items() if count})
    assert (released.domain_size, released.excluded, released.dense) == (12, 0, dense)


@pytest.mark.parametrize("dense", [True, False])
def test_a_threshold_suppresses(table: cr.FrequencyTable, dense: bool) -> None:
    counts = release(table, cr.Geometric(epsilon=60.0, threshold=4.5), dense=dense).frame["count"]
    assert counts.tolist() == [0] * 12 * dense


def test_excluded_combinations_get_no_count(table: cr.FrequencyTable) -> None:
    rules = [{"sex": "secret-m", "age": ["secret-1", "secret-2"]}, {"age": ["secret-2"], "job": "secret-b"}]
    wide = cr.Geometric(epsilon=0.001)
    for dense in (True, False):
        released = release(table, wide, exclude=rules, dense=dense)
        assert (released.domain_size, released.excluded) == (7, 5)
        for sex, age, job in rows_of(released):
            assert not (sex == "secret-m" and age != "secret-3")
            assert not (age == "secret-2" and job == "secret-b")
    assert "5 combinations were declared impossible" in released.details
    assert len(release(table, wide, exclude=rules).frame) == 7


def test_excluded_combinations_are_counted_as_they_are() -> None:
    generator = np.random.default_rng(4)
    axes = [Domain(name, tuple(map(str, range(width)))) for name, width in (("a", 4), ("b", 3), ("c", 5))]
    codes = [column.ravel() for column in np.indices((4, 3, 5))]
    for _ in range(40):
        rules = [
            {
                axis.name: list(generator.choice(axis.labels, generator.integers(1, len(axis) + 1), replace=False))
                for axis in axes
                if generator.random() < 0.6
            }
            or {"a": "0"}
            for _ in range(generator.integers(0, 6))
        ]
        found = read_rules(rules, axes)
        assert found.size == found.cover(codes).sum()


def test_observed_levels_are_released_when_asked_for(frame: pd.DataFrame) -> None:
    table = cr.tabulate(frame, ["sex", "age"], "job", levels={"sex": LEVELS["sex"]})
    with refused("observed-labels"):
        release(table, GEOMETRIC)
    released = release(table, GEOMETRIC, observed_levels=True)
    assert released.observed_levels == ("age", "job")
    assert "The labels of age, job are those that occur" in str(released)
    assert "does not cover which values exist" in json.dumps(released.to_dict())
    assert "with exceptions that its description names" in released.headline


def test_missing_values_are_part_of_the_domain_only_when_declared(frame: pd.DataFrame) -> None:
    gaps = frame.assign(age=frame.age.where(frame.age != "secret-3"))
    table = cr.tabulate(gaps, ["sex", "age"], "job", levels=LEVELS)
    with refused("missing-values", "got 4 records"):
        release(table, GEOMETRIC)
    released = release(table, SURE, may_be_missing=["age", "job"])
    assert released.domain_size == 2 * 4 * 3
    assert rows_of(released)["secret-m", "(missing)", "secret-a"] == 4
    assert rows_of(released)["secret-m", "(missing)", "(missing)"] == 0
    assert released.observed_levels == ()
    whole = cr.tabulate(frame, ["sex", "age"], "job", levels=LEVELS)
    assert release(whole, SURE, may_be_missing="age").domain_size == 2 * 4 * 2  # whether any is missing or not


def test_a_column_named_count_keeps_its_name(frame: pd.DataFrame) -> None:
    levels = {"sex": LEVELS["sex"], "count": LEVELS["age"], "job": LEVELS["job"]}
    table = cr.tabulate(frame.rename(columns={"age": "count"}), ["sex", "count"], "job", levels=levels)
    released = release(table, GEOMETRIC)
    assert list(released.frame.columns) == ["sex", "count", "job", "count_"]
    assert released.to_dict()["count"] == "count_"


def test_the_printout_says_what_was_done(table: cr.FrequencyTable) -> None:
    text = release(table, cr.DiscreteGaussian(epsilon=1.0, delta=1e-6, threshold=1.5)).details
    assert text.startswith(
        "All 12 counts of job by sex, age, with noise: differentially private with epsilon 1 and delta"
    )
    assert "Counts below 1.5 after noise are released as zero" in text
    assert "biased" in text
    assert "not listed" not in text
    unbiased = release(table, GEOMETRIC, clamp=False).details
    assert "Counts are unbiased; some are negative" in unbiased
    assert "Counts of the domain that are not listed are zero." in release(table, GEOMETRIC, dense=False).details


def test_the_description_is_complete_and_has_no_seed(table: cr.FrequencyTable) -> None:
    described = release(table, GEOMETRIC).to_dict()
    assert json.loads(json.dumps(described)) == described
    assert described["noise"] == {
        "distribution": "discrete Laplace",
        "scale": 1.0,
        "privacy_loss": {"epsilon": 1.0},
        "delta_of_approximation": 0.0,
    }
    assert described["mechanism"]["threshold"] == 0.5
    assert described["domain_size"] == described["released"] == 12
    assert {"cellrisk", "opendp", "clamp", "statements"} <= described.keys()
    assert "seed" not in json.dumps(described)
    assert "records" not in described


LABELS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "usual": (
        {"mechanism": GEOMETRIC},
        {
            "epsilon": "1 (at most 1)",
            "delta": "0",
            "definition": "pure differential privacy",
            "interpretation": "46.3 percentage points.",
            "accuracy": "within 3 of the true one in 97 of 100 cases",
            "bias": "a true 0 is published as 0.43 on average",
            "neighbours": "L1 = 1, L2 = 1",
            "total": "to fill: ",
        },
    ),
    "replace": (
        {"mechanism": cr.Geometric(epsilon=2.0, neighbours="replace"), "clamp": False},
        {"epsilon": "2 (1 to 20)", "neighbours": "L1 = 2, L2 = sqrt 2", "bias": "none: negative counts are published"},
    ),
    "delta": (
        {"mechanism": cr.DiscreteGaussian(epsilon=21.0, delta=1e-6), "disclosures": ["One value was looked at."]},
        {
            "epsilon": "21 (above 20)",
            "delta": "1e-06",
            "definition": "approximate",
            "not_covered": "One value was looked at.",
        },
    ),
    "parents": (
        {"mechanism": GEOMETRIC, "parents": pd.DataFrame({"count": [12]})},
        {"epsilon": "not known", "interpretation": "no bound", "accuracy": "add up to published totals"},
    ),
}


@pytest.mark.parametrize("name", LABELS)
def test_the_label_answers_every_question(table: cr.FrequencyTable, name: str) -> None:
    asked, answers = LABELS[name]
    described = release(table, **asked).to_dict()
    label, precision = described["label"], cr.Geometric(epsilon=1.0)
    for question, answer in answers.items():
        assert answer in label[question]
    assert all(isinstance(answer, str) and answer for answer in label.values())
    assert len(label) == 13
    if asked["mechanism"] == precision:
        accuracy = {"within": 3, "probability": near(0.95), "sd": near(1.3569624860015779)}
        becomes = None if "parents" in asked else near(0.42545906411966067)
        assert described["accuracy"] == {**accuracy, "zero_becomes": becomes}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"sensitive": "age"}, "no-attribute"),
        ({"threshold": 1.5, "clamp": False}, "clamp"),
        ({"clamp": False, "dense": False}, "clamp"),
        ({"may_be_missing": ["town"]}, "no-column"),
        ({"parent_count": "n"}, "no-parents"),
        ({"exclude": {"sex": "secret-f"}}, "type"),
        ({"exclude": [{}]}, "type"),
        ({"exclude": [{"town": "x"}]}, "no-column"),
        ({"exclude": [{"age": ["secret-1", "secret-9"]}]}, "no-label"),
        ({"exclude": [{"age": []}]}, "no-label"),
        ({"exclude": [{"age": "secret-1", "sex": "secret-f"}]}, "excluded-records"),
    ],
)
def test_what_would_mislead_is_refused(table: cr.FrequencyTable, options: dict[str, Any], code: str) -> None:
    with refused(code) as caught:
        release(table, epsilon=1.0, **options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "mechanism", [cr.Laplace(1.0), cr.Gaussian(0.5, delta=0.01), cr.AnalyticGaussian(0.5, delta=0.01)]
)
def test_continuous_noise_is_refused(table: cr.FrequencyTable, mechanism: cr.Mechanism) -> None:
    with pytest.raises(InvalidInput, match="cannot be released safely"):
        release(table, mechanism)


def test_nothing_left_to_release_is_refused(frame: pd.DataFrame) -> None:
    everything = [{"sex": LEVELS["sex"]}]
    with refused("missing-rule"):
        release(cr.tabulate(frame, ["sex"], "job", missing="drop"), GEOMETRIC, may_be_missing="sex")
    with refused("all-excluded"):
        release(cr.tabulate(frame, [*LEVELS][:2], "job", levels=LEVELS, outside="drop"), GEOMETRIC, exclude=everything)


def test_opendp_is_asked_for_where_it_is_missing(table: cr.FrequencyTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(InvalidInput, match=r"a release needs OpenDP; pip install 'cellrisk\[release\]'"):
        release(table, GEOMETRIC)


def wide_table(records: int, n_columns: int = 4) -> cr.FrequencyTable:
    """A domain of 10 * 100^n_columns counts, with so many records in cells of their own, all but a few."""
    generator = np.random.default_rng(1)
    levels = {f"q{place}": [str(value) for value in range(100)] for place in range(n_columns)}
    levels |= {"p": list("abcde"), "y": ["no", "yes"]}
    frame = pd.DataFrame({name: generator.choice(labels, records) for name, labels in levels.items()})
    return cr.tabulate(frame.assign(n=15), [*levels][:-1], "y", levels=levels, count="n")


@pytest.mark.slow
def test_a_domain_of_a_billion() -> None:
    """A billion draws would take hours."""
    table = wide_table(100_000)
    table.cells()
    released = release(table, cr.Geometric(epsilon=1.0, threshold=20.5))
    assert (released.domain_size, released.dense) == (10**9, False)
    assert 100 < len(released.frame) < 1_000  # P(noise >= 6) = 0.0018 of 10^5


def test_a_release_that_would_be_too_large_is_refused() -> None:
    table = wide_table(1_000)
    with refused("too-large", "got about 2.7e+08 rows of 1,000,000,000", "threshold 2.5 or above") as caught:
        release(table, GEOMETRIC)
    with refused("too-large", "got 1,000,000,000 counts"):
        release(table, GEOMETRIC, dense=True)
    with refused("too-large"):
        release(table, GEOMETRIC, clamp=False)
    with refused("too-large"):
        release(wide_table(1_000, n_columns=9), GEOMETRIC)
    assert isinstance(caught.value, CellriskError)


def test_a_path_that_is_taken_is_refused(table: cr.FrequencyTable, tmp_path: Path) -> None:
    released, path = release(table, GEOMETRIC), tmp_path / "released.csv"
    released.save(path)
    path.unlink()
    with refused("taken", "released.csv.json"):
        released.save(path)
    released.save(path, force=True)
    with refused("taken"):
        released.save(path)
    with refused("ending"):
        released.save(tmp_path / "released.xlsx")
    with refused("output"):
        released.save(tmp_path / "nowhere" / "released.csv")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("failing", range(3))
@pytest.mark.parametrize(
    "before", [(), ("released.csv",), ("released.csv.json",), ("released.csv", "released.csv.json")]
)
def test_a_failure_leaves_what_was_there(
    table: cr.FrequencyTable, tmp_path: Path, before: tuple[str, ...], failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the two moves fails in turn."""
    for name in before:
        (tmp_path / name).write_text("old")
    was, move, moves = contents(tmp_path), os.replace, []

    def fail(source: Any, target: Any) -> None:
        moves.append(target)
        if len(moves) == failing + 1:
            raise OSError(28, "No space left on device")
        move(source, target)

    released = release(table, GEOMETRIC)
    monkeypatch.setattr(os, "replace", fail)
    if failing < 2:
        with refused("not-writable"):
            released.save(tmp_path / "released.csv", force=True)
        assert contents(tmp_path) == was
    else:
        released.save(tmp_path / "released.csv", force=True)
        assert sorted(contents(tmp_path)) == ["released.csv", "released.csv.json"]


def test_an_interruption_between_the_moves_leaves_nothing(
    table: cr.FrequencyTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = os.replace

    def interrupt(source: Any, target: Any) -> None:
        if Path(target).name == "released.csv":
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        release(table, GEOMETRIC).save(tmp_path / "released.csv")
    assert contents(tmp_path) == {}


def test_the_ceiling_is_that_of_the_mechanism_and_the_declared_labels(frame: pd.DataFrame) -> None:
    declared = {**LEVELS, "job": ["secret-a", "secret-b", "secret-c"]}
    released = release(cr.tabulate(frame, ["sex", "age"], "job", levels=declared, outside="drop"), GEOMETRIC)
    expected = cr.ceiling(GEOMETRIC, labels=3)
    told = released.to_dict()["ceiling"]
    assert (told["even_two"], told["even"], told["labels"]) == (near(expected.even_two), near(expected.even), 3)
    assert "is right at most 73.2% of the time (coin toss: 50%)" in told["sentence"]
    assert any(told["sentence"] in said and "not in this figure" not in said for said in released.statements)


def test_observed_labels_do_not_move_the_ceiling(frame: pd.DataFrame) -> None:
    told = []
    for more in (frame, pd.concat([frame, frame.assign(job="secret-c")])):
        table = cr.tabulate(more, ["sex", "age"], "job", levels={name: LEVELS[name] for name in ("sex", "age")})
        released = release(table, GEOMETRIC, observed_levels=["job"])
        told.append(released.to_dict()["ceiling"])
        assert "does not cover is not in this figure" in told[-1]["sentence"]
        assert told[-1]["sentence"] in released.statements
    assert told[0] == told[1]
    assert (told[0]["even"], told[0]["labels"]) == (None, None)


def test_nothing_is_drawn_where_the_disclosures_are_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    table = cr.tabulate(pd.DataFrame({"q": ["a"], "y": ["b"]}), "q", "y", levels={"q": ["a"], "y": ["b", "c"]})
    monkeypatch.setattr(Measurement, "add_noise", lambda *_: pytest.fail("noise was drawn"))
    for given in ("a sentence", [1]):
        with refused("type"):
            release(table, cr.Geometric(epsilon=1.0), disclosures=given)
