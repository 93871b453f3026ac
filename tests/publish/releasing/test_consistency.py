"""Counts made consistent with published parents: the projection against brute force, and the release."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.publish.releasing import consistency, published_totals, release
from cellrisk.publish.releasing.consistency import project_whole, secure_keys
from tests.refusals import refused

pytest.importorskip("opendp")

GEOMETRIC = cr.Geometric(epsilon=0.5)
LEVELS = {"sex": ["f", "m"], "age": ["1", "2", "3"], "job": ["cook", "smith"]}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = [("f", "1", "cook"), ("f", "1", "smith"), ("m", "3", "cook"), ("m", "2", "smith")]
    return pd.DataFrame(rows * 5, columns=["sex", "age", "job"])


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(frame, ["sex", "age"], "job", levels=LEVELS)


@pytest.fixture(scope="module")
def parent(frame: pd.DataFrame) -> cr.Release:
    """Jobs by sex, released before."""
    levels = {name: LEVELS[name] for name in ("sex", "job")}
    return release(cr.tabulate(frame, ["sex"], "job", levels=levels), GEOMETRIC)


def by_sex(counts: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"sex": ["f", "m"], "count": counts})


def random_groups(seed: int) -> tuple[Any, Any, Any]:
    """Some 60 groups of 1 to 40 counts, in no order; a few totals are 0, one group is empty."""
    generator = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), generator.integers(1, 40, 60))
    generator.shuffle(groups)
    totals = generator.integers(0, 200, 61) * (generator.random(61) < 0.8)
    totals[60] = 0
    return generator.integers(-60, 90, len(groups)), groups, totals


def test_whole_numbers_are_the_nearest_of_all() -> None:
    """Against every way to share a total among up to four counts."""
    generator = np.random.default_rng(9)
    for _ in range(150):
        y = generator.integers(-6, 8, generator.integers(1, 5))
        total = int(generator.integers(0, 8))
        x = project_whole(y, np.zeros(len(y), np.int64), np.array([total]), generator.random)
        least = min(
            ((np.array(each) - y) ** 2).sum()
            for each in itertools.product(range(total + 1), repeat=len(y))
            if sum(each) == total
        )
        assert x.min() >= 0
        assert x.sum() == total
        assert ((x - y) ** 2).sum() == least


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("large_keys", [False, True])
def test_whole_numbers_are_the_nearest_in_many_groups_at_once(
    seed: int, large_keys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By either way of sorting: sums are exact, and no unit could be moved at a gain."""
    if large_keys:
        monkeypatch.setattr(consistency, "LARGEST_KEY", 1)
    y, groups, totals = random_groups(seed)
    x = project_whole(y, groups, totals, secure_keys)
    assert x.dtype == np.int64
    assert (x >= 0).all()
    assert (np.bincount(groups, x, minlength=61) == totals).all()
    for group in range(60):
        mine = groups == group
        if totals[group]:
            last_unit = 2 * (x - y)[mine][x[mine] > 0] - 1
            next_unit = 2 * (x - y)[mine] + 1
            assert last_unit.max() <= next_unit.min()


def test_counts_of_equal_cost_are_drawn_alike() -> None:
    """Counts (2, 2, 1) share 3: with t = 1 they have (1, 1, 0), and the last unit costs all three the same.

    9,000 draws: each gets it a third of the time, within 4.5 standard errors.
    """
    generator, draws = np.random.default_rng(3), 9000
    groups = np.repeat(np.arange(draws), 3)
    for keys in (generator.random, secure_keys):
        x = project_whole(np.tile([2, 2, 1], draws), groups, np.full(draws, 3), keys).reshape(draws, 3)
        found = Counter(map(tuple, x.tolist()))
        assert set(found) == {(2, 1, 0), (1, 2, 0), (1, 1, 1)}
        for times in found.values():
            assert abs(times - draws / 3) < 4.5 * (draws * 2 / 9) ** 0.5


def test_extreme_counts_do_not_overflow() -> None:
    groups, totals = np.array([0, 0, 1, 1]), np.array([10, 0])
    far = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 5, -5])
    assert project_whole(far, groups, totals, secure_keys).tolist() == [0, 10, 0, 0]


@pytest.mark.parametrize("form", ["release", "frame", "csv", "parquet"])
def test_children_add_up_to_their_parents(
    table: cr.FrequencyTable, parent: cr.Release, form: str, tmp_path: Path
) -> None:
    given: Any = {"release": parent, "frame": parent.to_frame()}.get(form)
    if given is None:
        given = parent.save(tmp_path / f"parents.{form}")
    released = release(table, GEOMETRIC, parents=given)
    counts = released.frame
    assert (counts["count"] >= 0).all()
    sums = counts.groupby(["sex", "job"], observed=False)["count"].sum()
    assert sums.tolist() == parent.frame["count"].tolist()
    assert (released.dense, released.domain_size, len(counts)) == (True, 12, 12)
    said = " ".join(released.statements)
    assert "Counts were made consistent with the parent counts published in" in said
    assert "by least squares under non-negativity. This uses no further records, but these counts show" in said
    assert "the loss of the parent release adds to this one" in said
    assert "released as zero" not in said
    if form in ("csv", "parquet"):
        path = released.save(tmp_path / "children.csv")
        described = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
        digest = json.loads(Path(f"{given}.json").read_text(encoding="utf-8"))["sha256"]
        assert described["parents"] == {"name": f"parents.{form}", "sha256": digest, "columns": ["sex", "job"]}
        assert f"parents.{form} (sha256 {digest})" in " ".join(described["statements"])


def test_little_noise_and_true_parents_give_the_true_counts(table: cr.FrequencyTable, frame: pd.DataFrame) -> None:
    sure = cr.Geometric(epsilon=60.0)
    true = release(table, sure).frame["count"].tolist()
    assert release(table, sure, parents=by_sex([10, 10])).frame["count"].tolist() == true
    everybody = pd.DataFrame({"n": [20]})
    assert release(table, sure, parents=everybody, parent_count="n").frame["count"].tolist() == true


def test_rows_that_a_sparse_parent_does_not_list_are_zero(frame: pd.DataFrame, tmp_path: Path) -> None:
    levels = {**LEVELS, "sex": ["f", "m", "x"]}
    table = cr.tabulate(frame, ["sex", "age"], "job", levels=levels)
    coarse = cr.tabulate(frame, ["sex"], "job", levels={name: levels[name] for name in ("sex", "job")})
    sparse = release(coarse, cr.Geometric(epsilon=60.0), dense=False)
    assert len(sparse.frame) == 4
    for given in (sparse, sparse.save(tmp_path / "sparse.csv")):
        counts = release(table, GEOMETRIC, parents=given).frame
        assert counts.groupby("sex", observed=False)["count"].sum().tolist() == [10, 10, 0]
    with refused("not-listed", "got 2"):
        release(table, GEOMETRIC, parents=sparse.to_frame())


def test_labels_are_matched_by_their_meaning(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Numbers as text, as whole numbers or with a point; missing values as such."""
    some = frame.assign(age=frame.age.where(frame.index > 2))
    levels = {name: LEVELS[name] for name in ("sex", "age", "job")}
    table = cr.tabulate(some, ["sex", "age"], "job", levels=levels)
    given = pd.DataFrame({"age": [1.0, 2.0, 3.0, None], "count": [4, 3, 2, 1]})
    given.to_parquet(tmp_path / "plain.parquet")
    for source in (given, tmp_path / "plain.parquet"):
        counts = release(table, GEOMETRIC, parents=source, may_be_missing="age").frame
        assert counts.groupby("age", observed=False)["count"].sum().tolist() == [4, 3, 2, 1]


def test_children_of_excluded_combinations_are_left_out(table: cr.FrequencyTable) -> None:
    rule = [{"sex": "f", "age": ["2", "3"]}]
    counts = release(table, GEOMETRIC, parents=by_sex([4, 5]), exclude=rule).frame
    assert counts.groupby("sex", observed=False)["count"].sum().tolist() == [4, 5]
    assert len(counts) == 8


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"clamp": False}, "parents"),
        ({"dense": False}, "parents"),
        ({"threshold": 2.5}, "parents"),
        ({"parent_count": "n"}, "no-column"),
    ],
)
def test_modes_that_do_not_go_with_parents_are_refused(
    table: cr.FrequencyTable, settings: dict[str, Any], code: str
) -> None:
    with refused(code):
        release(table, epsilon=1.0, parents=by_sex([4, 5]), **settings)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (by_sex([-1, 5]), "count-values", "negative parent counts; got 1 of 2 rows"),
        (by_sex([1.5, 2.0]), "count-values", "got 1 of 2 rows"),
        (by_sex([1.0, None]), "count-values", "missing counts; got 1 of 2"),
        (by_sex(["1", "many"]), "count-values", "got 1 of 2"),
        (by_sex([1, 2**40]), "count-values", "too large; got 1 of 2"),
        (pd.DataFrame({"sex": ["f", "secret"], "count": [1, 2]}), "other-labels", "got 1 of"),
        (pd.DataFrame({"sex": ["f"], "count": [1]}), "not-listed", ""),
        (pd.DataFrame({"sex": ["f", "m", "m"], "count": [1, 2, 3]}), "counted-twice", "got 1 of them"),
        (pd.DataFrame({"town": ["a"], "count": [1]}), "no-column", "got town; allowed: sex, age"),
        (pd.DataFrame([["f", "m", 3]], columns=["sex", "sex", "count"]), "labels-twice", ""),
        (pd.DataFrame({"sex": ["f", "m"]}), "no-column", "got 'count'"),
        ([1, 2], "type", "got list"),
        ("parents.txt", "ending", "got parents.txt"),
        ("nowhere.csv", "unreadable", "got nowhere.csv (No such file or directory)"),
    ],
)
def test_parents_that_make_no_sense_are_refused(table: cr.FrequencyTable, given: Any, code: str, words: str) -> None:
    with refused(code, words) as caught:
        release(table, GEOMETRIC, parents=given)
    assert "secret" not in str(caught.value)


def test_parents_that_do_not_fit_the_release_are_refused(
    table: cr.FrequencyTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused("no-column-left"):
        release(table, GEOMETRIC, parents=release(table, GEOMETRIC))
    impossible = [{"sex": "f", "age": ["2", "3"]}, {"sex": "f", "age": "1", "job": "smith"}]
    empty = cr.tabulate(
        pd.DataFrame({"sex": ["m"], "age": ["1"], "job": ["cook"]}), ["sex", "age"], "job", levels=LEVELS
    )
    everything = [*impossible, {"sex": "f", "job": "cook"}]
    with refused("excluded-records", "got 1 of 2"):
        release(empty, GEOMETRIC, parents=by_sex([4, 5]), exclude=everything)
    assert release(empty, GEOMETRIC, parents=by_sex([0, 5]), exclude=everything).frame["count"].sum() == 5
    for name, content in (("broken.parquet", b"no parquet"), ("broken.csv", b"sex,count\nf,1,2,3\n\xff\xfe")):
        (tmp_path / name).write_bytes(content)
        with refused("format", name):
            release(table, GEOMETRIC, parents=tmp_path / name)
    monkeypatch.setattr(published_totals, "MOST_GROUPS", 1)
    with refused("too-large", "got 2; allowed: up to 1"):
        release(table, GEOMETRIC, parents=by_sex([4, 5]))


def test_a_parent_file_that_was_changed_is_refused(
    table: cr.FrequencyTable, parent: cr.Release, tmp_path: Path
) -> None:
    path = parent.save(tmp_path / "parents.csv")
    path.write_text(path.read_text(encoding="utf-8").replace("cook,", "cook,1"), encoding="utf-8")
    with refused("changed"):
        release(table, GEOMETRIC, parents=path)


def test_refusals_come_before_any_noise(table: cr.FrequencyTable, monkeypatch: pytest.MonkeyPatch) -> None:
    from cellrisk.publish.releasing.measurement import Measurement

    def fail(*_: Any) -> Any:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(Measurement, "add_noise", fail)
    with refused("not-listed"):
        release(table, GEOMETRIC, parents=pd.DataFrame({"sex": ["f"], "count": [1]}))
