"""Figures to decide by along a sequence: against the oracle, enumeration, `assess`, and limits on the next release."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences import Step, assess_sequence, largest_epsilon
from tests.near import near
from tests.repeat.sequences import oracle
from tests.repeat.sequences.people import make_people, make_steps, tabulate, tell

ONE = {
    "laplace": cr.Laplace(epsilon=0.7),
    "geometric, a threshold": cr.Geometric(epsilon=1.0, threshold=2.5),
    "replace": cr.Geometric(epsilon=1.0, neighbours="replace"),
    "gaussian": cr.AnalyticGaussian(epsilon=0.8, delta=1e-3),
}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return tabulate(make_people())


@pytest.mark.parametrize("mechanism", ONE.values(), ids=ONE.keys())
def test_one_release_is_what_assess_says(table: cr.FrequencyTable, mechanism: cr.Mechanism) -> None:
    found = assess_sequence(table, [Step(mechanism, "job")])
    [decision] = [each for each in cr.assess(table, mechanism).to_dict()["decision"] if each["sensitive"] == "job"]
    [row] = found.to_dict()["releases"]
    for name in ("people", "share", "sd", "low", "high", "bound", "cap"):
        assert row["caused"][name] == pytest.approx(decision["caused"][name], rel=1e-9, abs=0), name
    assert row["overall_caused"]["max"] == pytest.approx(decision["caused"]["share"], rel=1e-9, abs=0)
    assert row["ceiling"]["even_two"] == near(decision["ceiling"]["even_two"])
    assert found.ceiling is not None
    assert (found.ceiling.even, found.ceiling.labels) == (near(decision["ceiling"]["even"]), 3)
    assert found.ceiling.exact
    assert "are exact: there is one release" in found.details


@pytest.mark.parametrize(
    "told",
    ["0.5 job sex; 0.4 - town; 0.3 job sex town age", "0.2 job; 0.3 pay; 1.5 job", "0.01 job sex; 3 job; 20 job"],
)
def test_caused_is_kept_person_by_person(table: cr.FrequencyTable, told: str) -> None:
    releases = tell(told)
    expected = oracle.follow(make_people().to_dict("records"), releases, risk_of=oracle.cell_caused)
    found = assess_sequence(table, make_steps(releases), measure="shrinkage", form="exact")
    for row, each in zip(found.rows, expected, strict=True):
        assert row.overall_caused.max_records == pytest.approx(each["max_records"], rel=1e-10, abs=0)
        assert row.overall_caused.sum_records == pytest.approx(each["sum_records"], rel=1e-10, abs=0)
        if row.caused is None:
            assert each["records"] is None
        else:
            assert row.caused.share == pytest.approx(each["records"], rel=1e-10, abs=0)
            assert row.caused.people <= min(row.caused.bound, row.caused.cap)
    shares = [row.overall_caused.max_records for row in found.rows]
    assert shares == sorted(shares)


def enumerate_ceiling(epsilons: list[float]) -> float:
    """Two even labels through geometric noise: every count's likelihood ratio is e^epsilon or e^-epsilon."""
    counts = [epsilon for epsilon in epsilons for _ in range(2)]
    success = 0.0
    for signs in itertools.product((1, -1), repeat=len(counts)):
        one = math.prod(1 / (1 + math.exp(-sign * epsilon)) for sign, epsilon in zip(signs, counts, strict=True))
        other = math.prod(1 / (1 + math.exp(sign * epsilon)) for sign, epsilon in zip(signs, counts, strict=True))
        success += 0.5 * max(one, other)
    return success


def test_the_ceiling_along_the_releases_is_that_of_enumeration(table: cr.FrequencyTable) -> None:
    epsilons = [0.3, 0.5, 1.1]
    found = assess_sequence(table, [Step(cr.Geometric(epsilon), "pay") for epsilon in epsilons])
    for number, row in enumerate(found.rows, start=1):
        assert row.ceiling is not None
        expected = enumerate_ceiling(epsilons[:number])
        assert expected - 1e-12 <= row.ceiling.even_two <= expected + 2e-4
        assert row.ceiling.exact
    assert "some attacker reaches it" in found.details
    several = assess_sequence(table, [Step(cr.Geometric(0.3), name) for name in ("pay", "job")])
    assert several.rows[-1].ceiling is not None
    assert not several.rows[-1].ceiling.exact
    assert "composed: an upper bound" in several.details


def test_a_loss_whose_noise_is_not_known_has_a_bound_or_a_reason(table: cr.FrequencyTable) -> None:
    known = Step(cr.Geometric(0.5), "pay")
    pure = assess_sequence(table, [known, Step(Loss.pure(0.5), "pay")])
    assert pure.rows[-1].ceiling is not None
    assert not pure.rows[-1].ceiling.exact
    steps = [known, Step(Loss.zcdp(0.1), "pay")]
    found = assess_sequence(table, steps, total_delta=1e-6)
    document = json.loads(json.dumps(found.to_dict()))["releases"][-1]
    assert 0.5 < document["ceiling"]["even_two"] < 1
    assert not document["ceiling"]["exact"]
    assert document["caused"]["cap"] == near(60 * document["ceiling"]["advantage"])


def test_the_largest_epsilon_ends_where_the_ceiling_of_all_does() -> None:
    past = [Loss.of(cr.Geometric(0.1)), Loss.of(cr.Laplace(0.3))]
    limit = compose_ceiling([*past, Loss.of(cr.Geometric(0.6))]).even_two
    found = largest_epsilon(past, max_ceiling=limit)
    assert found.binds
    assert found.epsilon == pytest.approx(0.6, rel=1e-5, abs=0)
    assert found.ceiling is not None
    assert found.ceiling.even_two <= limit
    assert found.to_dict()["before"]["even_two"] == near(compose_ceiling(past).even_two)  # type: ignore[index,call-overload]
    assert "raw data" not in str(found)
    loose = largest_epsilon([], max_ceiling=0.999, policy=cr.Policy(max_epsilon=1.0))
    assert (loose.epsilon, loose.binds) == (1.0, False)
    assert "Every epsilon of geometric noise up to 1 keeps" in loose.headline
    never = largest_epsilon([Loss.of(cr.Geometric(5.0))], max_ceiling=0.6)
    assert (never.epsilon, never.ceiling) == (None, None)
    assert "No epsilon of geometric noise keeps" in never.headline


@pytest.mark.parametrize("limit", [0.5, 1.0, "high"])
def test_bad_limits_are_refused(limit: Any) -> None:
    with pytest.raises(InvalidInput, match=r"max_ceiling must be a number above 0\.5"):
        largest_epsilon([], max_ceiling=limit)
    past = [Loss.of(cr.DiscreteGaussian(epsilon=1e-5, delta=1e-6))] * 2
    with pytest.raises(InvalidInput, match="no ceiling"):
        largest_epsilon(past, max_ceiling=0.8)


def test_losses_are_composed_once_each(table: cr.FrequencyTable) -> None:
    losses = [Loss.of(cr.Geometric(epsilon=0.3)), Loss.of(cr.Laplace(epsilon=0.4))]
    steps = [Step(loss, "job") for loss in losses]
    found = assess_sequence(table, steps)
    assert found.ceiling is not None
    assert found.ceiling.even == near(compose_ceiling(losses, labels=3).even)
