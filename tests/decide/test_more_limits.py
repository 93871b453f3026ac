"""Limits on one person, on the posterior and on the error of a count: each against closed forms or enumeration."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from tests.tables import from_counts

MIXED = [[1, 0], [1, 0], [2, 0], [0, 1], [3, 1], [0, 2], [5, 0], [4, 3]]


def make_frame(cells: list[list[int]]) -> pd.DataFrame:
    rows = [{"q": q, "y": f"v{y}", "n": count} for q, cell in enumerate(cells) for y, count in enumerate(cell)]
    return pd.DataFrame([row for row in rows if row["n"]])


def largest_gain(cells: list[list[int]], epsilon: float) -> float:
    """The most that one record adds to homogeneity or to the largest count, by going through every release."""
    ratio, reach = math.exp(-epsilon), math.ceil(36 / epsilon)

    def law(count: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for noise in range(-reach, reach + 1):
            value = max(count + noise, 0)
            found[value] = found.get(value, 0.0) + (1 - ratio) / (1 + ratio) * ratio ** abs(noise)
        return found

    def named(cell: list[int], k: int) -> tuple[float, float]:
        alone = largest = 0.0
        for released in product(*(law(count).items() for count in cell)):
            values, weight = [value for value, _ in released], math.prod(part for _, part in released)
            alone += weight * (values[k] > 0 and sum(value > 0 for value in values) == 1)
            if values[k] > 0 and values[k] == max(values):
                largest += weight / values.count(values[k])
        return alone, largest

    gains = []
    for cell in cells:
        for k in (place for place, count in enumerate(cell) if count):
            less = [count - (place == k) for place, count in enumerate(cell)]
            gains += [one - other for one, other in zip(named(cell, k), named(less, k), strict=True)]
    return max(gains)


def test_the_most_exposed_person_is_within_the_limit() -> None:
    """With one person alone in each group, no prior makes an attack gain more than the largest count does."""
    cells = [[1, 0], [0, 1], [1, 0]]
    choice = cr.choose(from_counts(cells), max_person=0.2)
    assert choice.exact_epsilon is not None
    assert largest_gain(cells, choice.exact_epsilon) <= 0.2 + 1e-9
    rows = cr.assess(from_counts(cells), cr.Geometric(choice.exact_epsilon * (1 + 1e-6))).to_dict()["attackers"]
    assert max(row["most"] for row in rows if row["attack"] != "any") > 0.2 - 1e-9


def test_what_the_guarantee_alone_keeps_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The total variation distance is tanh(epsilon/2): up to 2 atanh(limit) the limit is kept on every table."""
    from cellrisk.risk.attackers.figures import AttackTable

    def refuse(table: AttackTable, name: str, union: Any = ()) -> float:
        raise AssertionError("no attack is needed")

    monkeypatch.setattr(AttackTable, "success", refuse)
    end = 2 * math.atanh(0.2)
    choice = cr.choose(from_counts(MIXED), max_person=0.2, largest_epsilon=end * (1 - 1e-9))
    assert choice.admissible == ((1e-3, end * (1 - 1e-9)),)
    with pytest.raises(AssertionError):
        cr.choose(from_counts(MIXED), max_person=0.2)


@pytest.mark.parametrize(("neighbours", "steps"), [("add-remove", 2.0), ("replace", 1.0)])
def test_the_posterior_has_a_closed_form(neighbours: Any, steps: float) -> None:
    choice = cr.choose(from_counts(MIXED), max_posterior="5:20", neighbours=neighbours)
    assert choice.exact_epsilon == pytest.approx(math.log(0.2 * 0.95 / (0.05 * 0.8)) / steps, rel=1e-7, abs=0)
    assert not choice.from_data
    assert choice.to_dict()["limits"]["max_posterior"] == "5:20"


def test_the_error_sets_a_smallest_epsilon() -> None:
    """P(|noise| > N) = 2 a^(N + 1)/(1 + a) of geometric noise, a = e^-epsilon."""
    for distance in (1, 2, 3, 5, 10):
        choice = cr.choose(from_counts(MIXED), max_error=distance, max_epsilon=3)
        ratio = math.exp(-choice.admissible[0][0])
        assert choice.epsilon == 3
        assert 2 * ratio ** (distance + 1) / (1 + ratio) == pytest.approx(0.05, rel=1e-6, abs=0)


def test_larger_epsilons_are_not_offered_if_noise_can_be_added_to_a_release() -> None:
    """From geometric noise with threshold 1/2 an attacker makes a release of any smaller epsilon."""
    cells: list[tuple[float, list[list[int]], bool]] = [
        (0.5, [[5, 0], [3, 0]], False),
        (2.5, [[3, 7], [1, 0], [0, 4], [0, 1]], True),
    ]
    for threshold, table, offered in cells:
        choice = cr.choose(from_counts(table), max_caused=0.01, threshold=threshold)
        assert choice.options[0].again
        assert ("Some larger epsilons also keep the limits" in str(choice)) == offered


def test_limits_that_exclude_each_other_name_both_epsilons() -> None:
    choice = cr.choose(from_counts(MIXED), max_error=3, max_ceiling=0.6)
    assert (choice.epsilon, choice.admissible) == (None, ())
    assert "the error asks for epsilon 0.83189 or more, the limit on the ceiling allows up to 0.40546" in choice.why
    conflict = choice.to_dict()["conflict"]
    assert (conflict["asks"], conflict["allows"]) == ("max_error", "max_ceiling")
    assert conflict["at_most"] == pytest.approx(math.log(1.5), rel=1e-6, abs=0)
    assert conflict["at_least"] > 0.8318


def test_if_no_limit_binds_epsilons_are_named_as_information() -> None:
    """The worst case is 60% at ln(3/2), and 75% at ln 3."""
    choice = cr.choose(from_counts(MIXED), max_caused=1.0, max_epsilon=200)
    assert choice.epsilon is None
    assert choice.to_dict()["information"] == [
        {"max_ceiling": 0.6, "epsilon": 0.4},
        {"max_ceiling": 0.75, "epsilon": 1.0},
        {"max_epsilon": 200.0, "epsilon": 200.0},
    ]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    make_frame(MIXED).to_csv("people.csv", index=False)
    people = ["people.csv", "--qid", "q", "--sensitive", "y", "--count", "n"]
    assert main(["choose", *people, "--max-posterior", "5:20", "--max-error", "9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact_epsilon"] == pytest.approx(0.7790723, rel=1e-6, abs=0)
    assert found["epsilon"] == 0.77
    assert main(["choose", *people, "--max-ceiling", "0.6", "--max-error", "3"]) == 3
    assert main(["assess", *people, "--epsilon", "1", "--max-person", "0.2"]) == 3
    assert main(["assess", *people, "--epsilon", "1", "--max-error", "2"]) == 3
    assert main(["assess", *people, "--epsilon", "1", "--max-error", "3", "--max-person", "0.5"]) == 0
    capsys.readouterr()
    wrong = ["--mechanism", "gaussian", "--delta", "1e-5", "--max-posterior", "5:20"]
    assert main(["choose", *people, *wrong]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "max-ceiling" in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_policy_has_them_also() -> None:
    policy = cr.Policy(max_person=0.1, max_posterior="5:20", max_error=2)
    breaches = policy.breaches(from_counts(MIXED), cr.Geometric(1.0))
    assert len(breaches) == 3
    assert policy.breaches(from_counts(MIXED), cr.Gaussian(epsilon=0.5, delta=1e-5))


def test_a_limit_on_the_error_is_named_where_it_excludes() -> None:
    why = cr.choose(from_counts(MIXED), max_risk=0.9, max_error=5).why
    assert "the limit on the error asks for epsilon 0.53" in why
    assert "the limit on the risk is broken" not in why
    why = cr.choose(from_counts(MIXED), max_ceiling=0.7, max_error=0, largest_epsilon=0.5).why
    assert "even at epsilon 0.5 the count is only within 6" in why
