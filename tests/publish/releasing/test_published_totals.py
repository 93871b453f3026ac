"""The guarantee of a release that adds up to parent counts: it is that of both, as the counts show the parents."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.decide.policies import PolicyBreach
from cellrisk.publish.releasing import Release, read_totals, release
from cellrisk.publish.releasing.consistency import project_whole
from tests.near import near
from tests.refusals import refused

pytest.importorskip("opendp")

LEVELS = {"sex": ["f", "m"], "town": ["a", "b"], "ill": ["yes", "no"]}
ROWS = [("f", "a", "yes"), ("f", "b", "no"), ("m", "a", "no"), ("m", "b", "no"), ("m", "b", "yes")]


@cache
def tabulate(*qid: str, more: str = "", sensitive: str = "ill", outside: str = "drop") -> cr.FrequencyTable:
    """The people by these columns, with one more whose value is given."""
    levels = {name: LEVELS[name] for name in (*qid, sensitive)}
    frame = pd.DataFrame([*ROWS, *([("f", "a", more)] if more else [])], columns=list(LEVELS))
    return cr.tabulate(frame, list(qid), sensitive, levels=levels, outside=outside)  # type: ignore[arg-type]


def make(parents: Any, epsilon: float = 0.1, **more: Any) -> Release:
    return release(tabulate("sex", "town"), epsilon=epsilon, parents=parents, **more)


def make_parents(epsilon: float = 5.0, **more: Any) -> Release:
    return release(tabulate("sex"), epsilon=epsilon, **more)


def all_words(released: Release) -> str:
    return f"{released} {json.dumps(released.to_dict())}"


# The loss of the file, listed.


def noise_of(epsilon: float, reach: int) -> dict[int, float]:
    """The two-sided geometric law, cut off far out."""
    a = math.exp(-epsilon)
    return {j: (1 - a) / (1 + a) * a ** abs(j) for j in range(-reach, reach + 1)}


def list_files(counts: tuple[int, ...], parents: float, children: float) -> dict[tuple[int, ...], float]:
    """How likely each file of one group of children is: noise on their total, and on each, then the projection.

    Ties are broken by the order of the children, so the law is that of the numbers alone.
    """
    law: dict[tuple[int, ...], float] = {}
    sums = {max(sum(counts) + j, 0): 0.0 for j in noise_of(parents, 12)}
    for j, p in noise_of(parents, 12).items():
        sums[max(sum(counts) + j, 0)] += p
    outcomes: list[tuple[list[int], float]] = [([], 1.0)]
    for count in counts:
        outcomes = [
            ([*noisy, count + j], chance * p) for noisy, chance in outcomes for j, p in noise_of(children, 12).items()
        ]
    noisy = np.array([each for each, _ in outcomes])
    chances = np.array([chance for _, chance in outcomes])
    groups = np.repeat(np.arange(len(noisy)), len(counts))
    for total, share in sums.items():
        totals = np.full(len(noisy), total)
        order = np.tile(np.arange(len(counts)) / len(counts), len(noisy))
        files = project_whole(noisy.ravel(), groups, totals, lambda n, order=order: order[:n]).reshape(noisy.shape)
        for file, chance in zip(map(tuple, files.tolist()), chances, strict=True):
            law[file] = law.get(file, 0.0) + share * chance
    return law


@pytest.mark.parametrize("seed", range(3))
def test_no_more_is_lost_than_is_stated_and_more_than_the_own_epsilon(seed: int) -> None:
    """Every file of a tiny table, with a record and without it: the largest log ratio is at most the stated epsilon
    and above the own one. The best guess between two equally likely values is right no more often than is stated."""
    generator = random.Random(seed)
    parents, children = generator.uniform(1.5, 2.5), generator.uniform(0.4, 0.7)
    counts = (generator.randint(0, 2), generator.randint(0, 2))
    more, other = (counts[0] + 1, counts[1]), (counts[0], counts[1] + 1)
    laws = [list_files(each, parents, children) for each in (counts, more, other)]
    released = make(make_parents(parents), children)
    stated, highest = released.composed, released.ceiling
    assert stated is not None
    assert highest is not None
    assert stated.epsilon == near(parents + children)
    likely = [file for file in laws[0] if sum(file) <= 8]  # the noise that is cut off has no part in these
    loss = max(abs(math.log(laws[0][file] / laws[1][file])) for file in likely)
    assert children * 1.5 < loss <= stated.epsilon + 1e-6
    files = {*laws[1], *laws[2]}
    assert sum(max(laws[1].get(file, 0.0), laws[2].get(file, 0.0)) for file in files) / 2 <= highest.even_two + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_nobody_tells_two_values_apart_more_often_than_is_stated(seed: int) -> None:
    """The sensitive column is in the parents: a swap moves two parents and two children. The best guess is listed."""
    generator = random.Random(10 + seed)
    parents, children = generator.uniform(0.3, 3.0), generator.uniform(0.1, 2.0)
    released = make(make_parents(parents), children)
    assert released.ceiling is not None
    factors = [(e, 1 / (1 + math.exp(-e))) for e in (parents, parents, children, children)]
    worlds = [(1.0, 1.0)]
    for _, high in factors:  # each count says "one more" with probability e/(1 + e) if it is so
        worlds = [(p * a, q * b) for p, q in worlds for a, b in ((high, 1 - high), (1 - high, high))]
    best = sum(max(p, q) for p, q in worlds) / 2
    assert released.ceiling.even_two >= best - 1e-12
    assert released.ceiling.even_two > cr.ceiling("geometric", epsilon=children).even_two + 1e-6
    assert released.ceiling.even_two <= 1 / (1 + math.exp(-2 * (parents + children)))


def test_the_value_is_read_no_more_often_than_stated_and_more_often_than_the_children_say() -> None:
    """The reproduction: parents at epsilon 5, children at 0.1; somebody who knows all others adds the children up."""
    draws, right = 40, 0.0
    for draw in range(draws):
        value = ["yes", "no"][draw % 2]
        coarse = release(tabulate("sex", more=value), epsilon=5.0)
        frame = release(tabulate("sex", "town", more=value), epsilon=0.1, parents=coarse).frame
        shown = frame[frame.sex == "f"].groupby("ill", observed=True)["count"].sum()
        right += (shown["yes"] - 1 > shown["no"] - 1) == (value == "yes") if shown["yes"] != shown["no"] else 0.5
    stated = make(make_parents()).ceiling
    assert stated is not None
    assert right > 0.8 * draws  # so "at most 53 in 100" was false
    assert stated.even_two > 0.99


# What is said.


@pytest.mark.parametrize("form", ["release", "csv", "parquet"])
def test_everything_that_is_said_is_of_both(form: str, tmp_path: Path) -> None:
    coarse = make_parents()
    given: Any = coarse if form == "release" else coarse.save(tmp_path / f"parents.{form}")
    released = make(given)
    assert "differentially private with epsilon 5.1, that of the parent counts included." in released.headline
    described = released.to_dict()
    assert described["guarantee"] == {"epsilon": near(5.1), "delta": 0.0, "neighbours": "add-remove"}
    assert described["ceiling"]["even_two"] == near(cr.ceiling("geometric", epsilon=5.1).even_two)
    assert described["mechanism"]["epsilon"] == near(0.1)  # that of the noise
    assert "and the parent counts that it shows." in all_words(released)
    assert "53" not in (released.ceiling.headline if released.ceiling else "")
    assert described["not_covered"] == []


def test_parents_of_parents_count_too(tmp_path: Path) -> None:
    everybody = release(tabulate("sex", sensitive="town"), epsilon=2.0)
    total = pd.DataFrame({"sex": ["f", "m"], "count": everybody.frame.groupby("sex", observed=True)["count"].sum()})
    first = release(tabulate("sex"), epsilon=1.0, parents=read_total(everybody, tmp_path))
    second = make(first.save(tmp_path / "first.csv"))
    assert second.composed is not None
    assert second.composed.epsilon == near(3.1)
    third = make(release(tabulate("sex"), epsilon=1.0, parents=total).save(tmp_path / "unknown.csv"))
    assert (third.composed, third.ceiling) == (None, None)


def read_total(everybody: Release, folder: Path) -> Path:
    """People by sex, as if released so: the file, and the description of the release that it was made from."""
    path = folder / "people.csv"
    everybody.save(path)
    by_sex = everybody.frame.groupby("sex", observed=True)["count"].sum().reset_index()
    by_sex.to_csv(path, index=False)
    of_file = {"quasi_identifiers": [], "sensitive": "sex", "released": 2, "domain_size": 2}
    change(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), **of_file)
    return path


def test_what_the_parents_leave_uncovered_is_inherited() -> None:
    coarse = release(
        cr.tabulate(pd.DataFrame(ROWS, columns=list(LEVELS)), "sex", "ill", levels={"ill": ["yes", "no"]}),
        epsilon=1.0,
        observed_levels=["sex"],
        disclosures=["The year was chosen on the data."],
    )
    released = make(coarse)
    said = " ".join(released.not_covered)
    assert "In the parent counts of the release that was given: The labels of sex are those that occur" in said
    assert "The year was chosen on the data." in said
    assert "In the parent counts of the release that was given: Whether there is a release was found" in said
    assert "with exceptions that its description names" in released.headline


def change(path: Path, **fields: Any) -> None:
    sidecar = Path(f"{path}.json")
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text(encoding="utf-8")), **fields}), encoding="utf-8")


def set_loss(name: str, value: Any) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        loss = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))["guarantee"]
        change(path, guarantee={**loss, name: value})

    return edit


UNKNOWN: dict[str, Callable[[Path], object]] = {
    "no description": lambda path: Path(f"{path}.json").unlink(),
    "no guarantee": lambda path: change(path, guarantee=None),
    "a list": lambda path: change(path, guarantee=[5.0]),
    "a text": lambda path: change(path, guarantee="epsilon 5"),
    "another key": set_loss("name", "laplace"),
    "no neighbours": set_loss("neighbours", None),
    "other neighbours": set_loss("neighbours", "none"),
    "exceptions as a text": lambda path: change(path, not_covered="nothing"),
    "exceptions that hide": lambda path: change(path, not_covered=["\x1b[2Jnothing"]),
    "long exceptions": lambda path: change(path, not_covered=["x" * 5_000]),
    "exceptions as numbers": lambda path: change(path, not_covered=[1]),
    "no levels": lambda path: change(path, observed_levels=None),
    "no mechanism": lambda path: change(path, mechanism=None),
    "a smaller epsilon than its own noise": set_loss("epsilon", 0.5),
    **{
        f"{name} {value!r}": set_loss(name, value)
        for name in ("epsilon", "delta")
        for value in (-1.0, "1", float("nan"), float("inf"), None, [], {}, True, 10**400)
        if (name, value) != ("delta", None)
    },
}


def test_a_guarantee_that_is_not_as_it_was_written_is_not_believed(tmp_path: Path) -> None:
    path = make_parents().save(tmp_path / "parents.csv")
    sound = Path(f"{path}.json").read_text(encoding="utf-8")
    assert read_totals(path).guarantee == cr.Geometric(epsilon=5.0)
    for what, edit in UNKNOWN.items():
        Path(f"{path}.json").write_text(sound, encoding="utf-8")
        edit(path)
        known = read_totals(path, "count")
        assert (what, known.guarantee, known.exceptions) == (what, None, ())


def test_parents_without_a_known_guarantee_leave_none(tmp_path: Path) -> None:
    exact = pd.DataFrame(ROWS, columns=list(LEVELS)).groupby(["sex", "ill"]).size().reset_index(name="count")
    exact = exact.set_index(["sex", "ill"]).reindex(
        pd.MultiIndex.from_product([LEVELS["sex"], LEVELS["ill"]], names=["sex", "ill"]), fill_value=0
    )
    exact.reset_index().to_csv(tmp_path / "exact.csv", index=False)
    for given in (exact.reset_index(), tmp_path / "exact.csv", pd.DataFrame({"count": [5]})):
        released = make(given)
        described = released.to_dict()
        assert (described["guarantee"], described["ceiling"]) == (None, None)
        assert "No guarantee is known for them" in released.headline
        assert "whose guarantee is not known" in released.headline
        [uncovered] = described["not_covered"]
        assert "is not known, and these counts show them" in uncovered
        words = all_words(released)
        for false in ("differentially private", "The guarantee holds", "equally likely", "times in 100"):
            assert false not in words, false


def test_neighbours_must_be_the_same_and_deltas_add_up() -> None:
    with refused("mixed-neighbours"):
        make(make_parents(neighbours="replace"))
    both = make(make_parents(neighbours="replace"), neighbours="replace")
    assert both.to_dict()["guarantee"] == {"epsilon": near(5.1), "delta": 0.0, "neighbours": "replace"}
    gaussian = make_parents(1.0, mechanism="discrete-gaussian", delta=1e-6)
    mixed = make(gaussian)
    assert "with epsilon 1.1 and delta 1e-06, that of the parent counts included" in mixed.headline
    assert mixed.ceiling is None  # none is computed for noise of two kinds
    twice = make(gaussian, mechanism="discrete-gaussian", delta=2e-6)
    assert twice.to_dict()["guarantee"] == {"epsilon": near(1.1), "delta": near(3e-6), "neighbours": "add-remove"}


def test_policies_judge_both_together() -> None:
    allowed = cr.Policy(max_epsilon=1.0)
    make(make_parents(0.8), policy=allowed)
    for given in (make_parents(0.95), make_parents().to_frame()):
        with pytest.raises(PolicyBreach, match="with the parent counts, the policy asks for an epsilon of at most 1"):
            make(given, policy=allowed)
    with pytest.raises(PolicyBreach, match="with the parent counts"):
        make(make_parents(5.0), policy=cr.Policy(max_ceiling=0.6))


def test_an_audit_states_no_ceiling_of_the_noise_alone() -> None:
    for parents, stated in ((None, True), (make_parents(), False)):
        found = cr.audit(tabulate("sex", "town"), make(parents))
        assert ("equally likely" in found.details) is stated


# With a ledger.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pd.DataFrame(ROWS, columns=list(LEVELS)).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(qid: str, output: str, *more: str) -> int:
    levels = [word for name, labels in LEVELS.items() for word in ("--levels", f"{name}={'|'.join(labels)}")]
    skipped = [] if "town" in qid else ["--levels", "town=a|b"]
    chosen = [word for i in range(0, len(levels), 2) if levels[i : i + 2] != skipped for word in levels[i : i + 2]]
    asked = ["release", "people.csv", "--qid", qid, "--sensitive", "ill", *chosen, "--epsilon", "0.5"]
    return main([*asked, "--output", output, *more])


def test_the_output_says_whether_the_ledger_has_the_parents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "set.toml").write_text(
        'source = "people.csv"\nsensitive = "ill"\nepsilon = 0.5\nlevels = ["sex=f|m", "town=a|b", "ill=yes|no"]\n'
        '[[table]]\nqid = ["sex"]\n[[table]]\nqid = ["town"]\n'
    )
    missing = "have no entry for '{}' in this ledger: it lacks their loss."
    booked = ["--ledger", "l.db", "--cohort", "everyone"]
    assert main(["ledger", "create", "l.db"]) == 0
    assert run("sex", "booked.csv", *booked) == 0
    assert run("sex", "loose.csv") == 0
    assert main(["together", "release", "set.toml", "--output", "several", "--format", "csv", *booked]) == 0
    capsys.readouterr()
    for number, (parents, known) in enumerate(
        [("booked.csv", True), ("loose.csv", False), ("several/table-1.csv", True), ("several/table-2.csv", True)]
    ):
        assert run("sex,town", f"{number}.csv", "--parents", parents, *booked) == 0
        told = capsys.readouterr().out
        assert (missing.format("everyone") in told) is not known, parents
        assert "differentially private with epsilon 1, that of the parent counts included" in told
    assert run("sex,town", "json.csv", "--parents", "loose.csv", "--json", *booked) == 0
    told = capsys.readouterr()
    assert missing.format("everyone") in told.err
    json.loads(told.out)
    assert (
        run("sex,town", "other.csv", "--parents", "booked.csv", "--ledger", "l.db", "--cohort", "x", "--new-cohort")
        == 0
    )
    assert missing.format("x") in capsys.readouterr().out
    assert run("sex,town", "inside.csv", "--parents", "booked.csv", "--ledger", "l.db", "--cohort", "part",
               "--new-cohort", "--part-of", "everyone") == 0  # fmt: skip
    assert "are not an entry" not in capsys.readouterr().out
    (folder / "cellrisk.toml").write_text("[policy]\nmax-epsilon = 0.6\n")
    assert run("sex,town", "strict.csv", "--parents", "loose.csv") == 3
    assert "with the parent counts, the policy asks for an epsilon of at most 0.6" in capsys.readouterr().err
    with cr.Ledger("l.db") as ledger:
        assert ledger.spent("everyone").epsilon == near(0.5 + 1.0 + 0.5 * 5 + 0.5)  # each release its own loss, once
