"""Set files, what is refused, the command, what a set costs and what nobody exceeds."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import mechanism
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.together.sets import find_cost, find_together, read_tables, try_ceiling
from cellrisk.risk.ceilings import Ceiling
from tests.near import near, same

HEAD = """
source = "people.csv"
sensitive = "job"
epsilon = 1.0
"""
TABLES = """
[[table]]
qid = ["sex", "age"]
[[table]]
name = "by town"
qid = ["town"]
epsilon = 0.5
mechanism = "laplace"
where = {age = {from = 30}, sex = ["f", "m"]}
"""


def the_ceiling(*asked: Any) -> Ceiling:
    found, _ = try_ceiling(*asked)
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [("fm"[i % 2], 20 + 7 * i % 50, "abc"[i % 3], "xyz"[i * i % 5 % 3]) for i in range(60)]
    pd.DataFrame(rows, columns=["sex", "age", "town", "job"]).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, text: str, *options: str) -> int:
    (folder / "set.toml").write_text(text, encoding="utf-8")
    return main(["together", "set.toml", *options])


def test_the_command_says_what_python_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, f'{HEAD}bin = ["age=10"]\n{TABLES}', "--json") == 0
    told = json.loads(capsys.readouterr().out)
    tables = [
        {"qid": ["sex", "age"]},
        {
            "name": "by town",
            "quasi_identifiers": "town",
            "mechanism": "laplace",
            "epsilon": 0.5,
            "where": {"age": {"from": 30}, "sex": ["f", "m"]},
        },
    ]
    found = cr.assess_together(folder / "people.csv", tables, "job", bins={"age": 10}, epsilon=1.0)
    assert same(told["rules"], json.loads(json.dumps(found.to_dict()["rules"])))
    assert [row["rule"] for row in told["rules"]] == ["elimination", "any"]
    for row in [*told["rules"], *told["tables"]]:
        assert {"right", "named", "precision", "sd", "caused", "chance", "raw"} <= set(row)
    assert set(told["ceiling"]) >= {"even_two", "even", "labels"}
    alone = [cr.ceiling(name, epsilon=epsilon).even_two for name, epsilon in (("geometric", 1.0), ("laplace", 0.5))]
    assert [row["ceiling"]["even_two"] for row in told["tables"]] == near(alone)
    assert told["cost"]["epsilon"] == near(1.5)
    assert told["tables"][1]["where"] == "age from 30, sex is f or m"
    assert told["tables"][1]["name"] == "by town"


def test_bins_and_levels_as_tables_and_a_source_beside_the_file(folder: Path) -> None:
    inner = folder / "sets"
    inner.mkdir()
    (folder / "people.csv").rename(inner / "people.csv")
    text = f'{HEAD}bin = {{age = [0, 30, 60]}}\nlevels = ["job=x|y|z"]\n{TABLES}'
    (inner / "set.toml").write_text(text, encoding="utf-8")
    assert main(["together", "sets/set.toml"]) == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_part_by_numbers_of_a_column_that_holds_texts_too(tmp_path: Path, ending: str) -> None:
    """A text that is no number is between no numbers, whatever else the column is used for."""
    people = pd.DataFrame({"sex": list("fmfm") * 5, "code": ["A1", "7", "3", None] * 5, "job": list("xyyx") * 5})
    file = tmp_path / f"people.{ending}"
    people.to_csv(file, index=False) if ending == "csv" else people.to_parquet(file)
    found = cr.assess_together(file, [{"qid": "sex", "where": {"code": {"from": 1}}}], "job", epsilon=1.0)
    assert found.records == 10


WRONG = {
    "unknown key": (HEAD + 'colour = "red"\n' + TABLES, "unknown key in set.toml; got 'colour'"),
    "unknown key of a table": (HEAD + TABLES + "weight = 3\n", "unknown key in table 2 of the set; got 'weight'"),
    "no tables": (HEAD, "set.toml has no 'table'"),
    "no source": ('sensitive = "job"\n' + TABLES, "set.toml has no 'source'"),
    "one table that is no list": (HEAD + '[table]\nqid = ["sex"]\n', "write [[table]]"),
    "no columns": (HEAD + "[[table]]\nepsilon = 1\n", "table 1 of the set names no quasi-identifiers"),
    "no epsilon": (
        'source = "people.csv"\nsensitive = "job"\n[[table]]\nqid = ["sex"]\n',
        "no epsilon was given for table 1",
    ),
    "epsilon below 0": (HEAD + '[[table]]\nqid = ["sex"]\nepsilon = -1\n', "epsilon must be a finite number above 0"),
    "a huge epsilon": (HEAD + f'[[table]]\nqid = ["sex"]\nepsilon = 1{"0" * 400}\n', "the mechanism of table 1"),
    "unknown mechanism": (HEAD + '[[table]]\nqid = ["sex"]\nmechanism = "magic"\n', "unknown mechanism"),
    "bins of no column": (HEAD + 'bin = ["height=5"]\n' + TABLES, "bins are given for column 'height', which no table"),
    "bins of another table": (HEAD + TABLES + 'bin = ["age=5"]\n', "which table 2 of the set does not have"),
    "bins that are no numbers": (HEAD + 'bin = ["age=x"]\n' + TABLES, "'bin' in set.toml must be a number"),
    "bins without a column": (HEAD + 'bin = ["5"]\n' + TABLES, "'bin' in set.toml cannot be read"),
    "levels that are a number": (HEAD + "levels = {job = 5}\n" + TABLES, "must be a list"),
    "a query": (HEAD + '[[table]]\nqid = ["sex"]\nwhere = "1=1; DROP TABLE x"\n', "never a query"),
    "nobody": (HEAD + '[[table]]\nqid = ["sex"]\nwhere = {age = 999}\n', "no record is in the part of the people"),
    "the same table twice": (
        HEAD + '[[table]]\nqid = ["sex", "age"]\n[[table]]\nqid = ["age", "sex"]\nepsilon = 2.0\n',
        "the same table, released twice: an attacker averages the noise away; leave one out, and ask what repeating it "
        "reveals: cellrisk average",
    ),
    "other neighbours": (
        HEAD + '[[table]]\nqid = ["sex"]\n[[table]]\nqid = ["town"]\nneighbours = "replace"\n',
        "unknown key in table 2 of the set; got 'neighbours'",
    ),
    "another attribute": (HEAD + TABLES + 'sensitive = "age"\n', "unknown key in table 2 of the set; got 'sensitive'"),
    "the sensitive attribute as a column": (HEAD + '[[table]]\nqid = ["job"]\n', "cannot be both"),
    "shared noise": (HEAD + 'noise = "shared"\n' + TABLES, "the noise of set.toml is not independent"),
    "too many tables": (HEAD + '[[table]]\nqid = ["sex"]\n' * 21, "got 21 tables; allowed: 1 to 20"),
    "no TOML": ("source = ", "the set file is not valid TOML"),
    "deep TOML": ("a = " + "[" * 100_000, "the set file is not valid TOML"),
    "a huge file": ("# " + "x" * 2_000_000, "the set file is no plain file of a reasonable size"),
    "a source that is not there": (HEAD.replace("people", "nobody") + TABLES, "nobody.csv"),
    "a name that is a number": (
        HEAD + '[[table]]\nname = 5\nqid = ["sex"]\n',
        "the name of table 1 of the set must be",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    text, reason = WRONG[case]
    assert run(folder, text, "--json") == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert reason in told.err
    assert len(told.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([], "at least one table"),
        ("sex", "tables must be a list; got a str"),
        ({"qid": "sex"}, "tables must be a list; got a dict"),
        ([3], "table 1 of the set must be a mapping"),
    ],
)
def test_tables_that_are_no_list_of_tables(tables: Any, said: str) -> None:
    with pytest.raises(CellriskError, match=said):
        cr.assess_together(pd.DataFrame({"sex": ["f", "m"], "job": ["x", "y"]}), tables, "job", epsilon=1.0)


def enumerate_ceiling(ratios: list[list[tuple[float, float]]]) -> float:
    """Two even labels, by hand: half the sum over what both counts show of the likelier label's probability.

    ``ratios``: for each table, the probability of each kind of released count without the person, and with him.
    """
    total = 0.0
    for kinds in product(*(product(range(len(each)), repeat=2) for each in ratios)):
        first = math.prod(each[one][1] * each[two][0] for each, (one, two) in zip(ratios, kinds, strict=True))
        second = math.prod(each[one][0] * each[two][1] for each, (one, two) in zip(ratios, kinds, strict=True))
        total += 0.5 * max(first, second)
    return total


def geometric_kinds(epsilon: float) -> list[tuple[float, float]]:
    """A count is 1 or more, or 0 and less: all that matters of it."""
    a = math.exp(-epsilon)
    high = 1 / (1 + a)
    return [(high, 1 - high), (1 - high, high)]


def laplace_kinds(epsilon: float, reach: int = 12) -> list[tuple[float, float]]:
    """Every rounded value, as far as it matters."""

    def below(x: float) -> float:
        return 0.5 * math.exp(x * epsilon) if x < 0 else 1 - 0.5 * math.exp(-x * epsilon)

    inner = [(below(y + 0.5) - below(y - 0.5), below(y - 0.5) - below(y - 1.5)) for y in range(-reach, reach + 1)]
    lowest, highest = -reach - 0.5, reach + 0.5
    return [(below(lowest), below(lowest - 1)), *inner, (1 - below(highest), 1 - below(highest - 1))]


def test_ceilings_by_hand() -> None:
    one, two = mechanism("geometric", epsilon=0.7), mechanism("geometric", epsilon=1.3)
    found = the_ceiling([one, one, two], [(0, 1, 2)], 2)
    kinds = [geometric_kinds(0.7), geometric_kinds(0.7), geometric_kinds(1.3)]
    assert found.even_two == near(enumerate_ceiling(kinds))
    advantage = sum(
        max(math.prod(pair[1] for pair in pairs) - math.prod(pair[0] for pair in pairs), 0.0)
        for pairs in product(*kinds)
    )
    assert found.advantage == near(advantage)
    assert found.odds == near(math.exp(2 * (0.7 + 0.7 + 1.3)))


def test_laplace_tables_have_one_ceiling_before_rounding() -> None:
    """That of the same tables one by one, and of an attacker in simulated tables; above that of rounded counts."""
    pytest.importorskip("dp_accounting")
    laplace = mechanism("laplace", epsilon=1.0)
    assert the_ceiling([laplace], [(0,)], 2).even_two == pytest.approx(0.724090, abs=5e-7)
    found = the_ceiling([laplace] * 3, [(0, 1, 2)], 2)
    assert found.even_two == near(compose_ceiling([Loss.of(laplace)] * 3).even_two)
    noise = np.random.default_rng(3).laplace(size=(2, 3, 1_000_000))  # of the person's own count, and of the other
    score = (abs(noise[0] + 1) - abs(noise[0]) + abs(noise[1] - 1) - abs(noise[1])).sum(axis=0)
    right = float(np.mean(score > 0) + 0.5 * np.mean(score == 0))
    assert found.even_two == pytest.approx(right, abs=2e-3)
    assert enumerate_ceiling([laplace_kinds(1.0, reach=1)] * 3) == pytest.approx(0.844644, abs=5e-7)
    assert found.even_two > 0.844644


def test_people_who_exclude_each_other_cost_the_larger() -> None:
    tables = read_tables(
        [
            {"qid": "age", "where": {"sex": "f"}, "epsilon": 0.5},
            {"qid": "age", "where": {"sex": "m"}, "epsilon": 2.0},
            {"qid": "town", "epsilon": 1.0},
        ],
        "job",
    )
    together = find_together(tables)
    assert together == ((0, 2), (1, 2))
    mechanisms = [table.mechanism for table in tables]
    assert find_cost(mechanisms, together).epsilon == near(3.0)
    expected = enumerate_ceiling([geometric_kinds(2.0), geometric_kinds(1.0)])
    assert the_ceiling(mechanisms, together, 2).even_two == near(expected)


def test_three_parts_of_which_two_exclude_each_other() -> None:
    parts = [{"age": {"below": 20}}, {"age": {"from": 20, "below": 40}}, {"age": {"from": 30}}, None]
    tables = [{"qid": "sex", "epsilon": 1.0, **({"where": part} if part else {})} for part in parts]
    assert find_together(read_tables(tables, "job")) == ((0, 3), (1, 2, 3))


def test_structure_is_told(folder: Path) -> None:
    def say(*tables: dict[str, Any]) -> str:
        return " ".join(cr.assess_together(folder / "people.csv", tables, "job", epsilon=1.0).statements)

    assert "Table 2 is a margin of table 1" in say({"qid": ["sex", "town"]}, {"qid": "town"})
    young, old = {"age": {"below": 50}}, {"age": {"from": 30}}
    assert "overlap" in say({"qid": "sex", "where": young}, {"qid": "town", "where": old})
    assert "nested" in say({"qid": "sex", "where": young}, {"qid": "town"})
    apart = say({"qid": "sex", "where": young}, {"qid": "town", "where": {"age": {"from": 50}}})
    assert "nested" not in apart
    assert "overlap" not in apart
    partly = {"qid": ["town", "age"], "where": young}
    assert "share columns" in say({"qid": ["sex", "town"]}, partly)
    assert "share columns" not in say({"qid": ["sex", "town"]}, {"qid": ["town", "age"]})
