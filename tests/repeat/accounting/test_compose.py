"""What `compose` chooses, says and refuses."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
from pathlib import Path

import pytest

from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.composition import METHODS, Composed, compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.show.wording.composition import say_ceiling
from tests.near import near_epsilon, same

from .cases import approximate, concentrated, loss_of, pure

GAUSSIAN = loss_of("gaussian-pdp", 0.5, 1e-6)


def test_names() -> None:
    assert METHODS == ("basic", "rdp", "pld")


@pytest.mark.parametrize("method", ["tightest", *METHODS])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_nothing_costs_nothing(method: str, delta: float | None) -> None:
    found = compose([], method=method, delta=delta)
    assert (found.epsilon, found.delta, found.dp_definition) == (0.0, 0.0, "pure")
    assert found.headline == "Nothing is released: epsilon 0."
    assert found.statements == ()
    assert all(each.epsilon == 0 for each in found.composed)


@pytest.mark.parametrize(
    ("losses", "delta", "dp_definition"),
    [
        ([pure(0.1)], None, "pure"),
        ([pure(0.1)], 0.0, "pure"),
        ([pure(0.1)], 1e-6, "approximate"),
        ([loss_of("laplace", 0.1), GAUSSIAN], 1e-7, "approximate"),
        ([GAUSSIAN], 1e-7, "approximate"),
        ([pure(0.1), approximate(0.1, 1e-6)], None, "approximate"),
        ([pure(0.1), concentrated(0.1)], 1e-6, "approximate"),
    ],
    ids=[
        *("pure", "delta 0", "pure at a delta", "a smaller delta"),
        *("a smaller delta of Gaussians", "both", "concentrated"),
    ],
)
def test_the_strongest_flavour_that_all_imply(losses: list[Loss], delta: float | None, dp_definition: str) -> None:
    found = compose(losses, delta=delta)
    assert found.dp_definition == dp_definition
    assert {each.dp_definition for each in found.composed} == {dp_definition}


def test_deltas_add_up_in_decimals() -> None:
    found = compose([approximate(0.1, 1e-7)] * 3)
    assert found.delta == 3e-7
    assert found.composed
    assert all(each.delta == 3e-7 for each in found.composed)


def test_a_pure_guarantee_holds_at_every_delta() -> None:
    found = compose([pure(0.1)] * 3, method="basic", delta=1e-6)
    assert found.chosen == Composed("basic", "approximate", 0.3, 1e-6)


def test_below_the_sum_of_deltas_noise_may_still_compose() -> None:
    found = compose([GAUSSIAN, loss_of("laplace", 0.1)], delta=1e-7)
    by_name = {each.method: each for each in found.composed}
    assert by_name["basic"].epsilon is None
    assert by_name["rdp"].epsilon is not None
    assert found.chosen.method == "pld"


@pytest.mark.parametrize("method", ["basic", "rdp", "pld"])
def test_an_operator_by_name(method: str) -> None:
    losses = [loss_of("laplace", 0.1)] * 20
    found = compose(losses, method=method, delta=1e-6)
    side_by_side = {each.method: each for each in compose(losses, delta=1e-6).composed}
    assert same(found.chosen, side_by_side[method])
    assert same(found.composed, compose(losses, delta=1e-6).composed)


def test_of_equals_the_first_is_chosen() -> None:
    one = compose([loss_of("gaussian-analytic", 0.5, 1e-6)])
    assert one.chosen.method == "basic"
    assert one.epsilon == 0.5
    assert compose([loss_of("gaussian-analytic", 0.5, 1e-6)] * 2).chosen.method == "pld"


def test_the_tightest_is_among_all() -> None:
    found = compose([loss_of("laplace", 0.1)] * 20, delta=1e-6)
    assert found.chosen in found.composed
    assert found.epsilon == min(each.epsilon for each in found.composed if each.epsilon is not None)


def test_what_is_slow_is_left_until_it_is_looked_at() -> None:
    script = """
import sys
from cellrisk.repeat.accounting.composition import compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.noise.mechanisms import mechanism
compose([Loss.of(mechanism("laplace", epsilon=0.1))] * 3).chosen
compose([Loss.of(mechanism("gaussian-pdp", epsilon=0.1, delta=1e-6))] * 3).chosen
compose([Loss.of(mechanism("gaussian-analytic", epsilon=0.1, delta=1e-6))] * 3).chosen
compose([Loss.of(mechanism("laplace", epsilon=0.1))] * 3, method="rdp", delta=1e-6).chosen
print("dp_accounting" in sys.modules)
compose([Loss.of(mechanism("laplace", epsilon=0.1))] * 3, delta=1e-6)
print("dp_accounting" in sys.modules)
"""
    source = Path(__file__).resolve().parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(source), "PATH": ""},
        timeout=300,
    )
    assert done.stdout.split() == ["False", "True"]
    assert done.stderr == ""


def test_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        str(compose([loss_of("laplace", 1e-3), loss_of("geometric", 100.0), GAUSSIAN] * 3))
    assert caplog.records == []


def test_statements_say_what_composes_how() -> None:
    mixed = compose([approximate(0.1, 1e-6)] * 2 + [pure(0.1)] * 3).statements
    assert mixed[0] == "3 pure and 2 approximate losses are composed as approximate DP: a pure loss has delta 0."
    assert "All methods are compared at delta 2e-06, the sum of the losses' deltas." in mixed
    through = compose([concentrated(0.1)], delta=1e-6).statements
    assert any(line.startswith("A rho-zCDP loss has no epsilon of its own") for line in through)
    assert "All methods are compared at delta 1e-06; the losses' own add up to 0." in through
    assert compose([pure(0.1)]).statements[0] == "1 pure loss is composed as pure DP."


def test_the_ceiling_in_a_sentence_or_why_there_is_none() -> None:
    wide = compose([loss_of("discrete-gaussian", 1e-5, 1e-6)] * 2)
    assert say_ceiling(wide).startswith("The ceiling is not known: ")
    known = compose([loss_of("geometric", 0.5)] * 2)
    assert known.ceiling is not None
    assert say_ceiling(known) == known.ceiling["sentence"]
    assert "values" in say_ceiling(known)


def test_statements_say_what_is_assumed() -> None:
    worst = compose([pure(0.1)] * 20, delta=1e-6).statements
    assert "20 losses without a known mechanism: taken at the worst that the guarantee allows." in worst
    assert any("set before the first release" in line for line in worst)
    beside = compose([pure(0.1)] * 20 + [concentrated(0.001)] * 3, delta=1e-6).statements
    assert "20 losses without a known mechanism: taken at the worst that the guarantee allows." in beside
    known = compose([loss_of("laplace", 0.1)] * 20, delta=1e-6).statements
    assert not any("known mechanism" in line for line in known)
    assert not any("set before the first release" in line for line in compose([pure(0.1)]).statements)
    replaced = compose([loss_of("laplace", 0.1, neighbours="replace")]).statements
    assert replaced[-1].endswith("two counts change by 1 each.")


def test_it_prints_as_a_sentence_and_a_table() -> None:
    printed = str(compose([loss_of("geometric", 0.1)] * 20, delta=1e-6)).splitlines()
    assert printed[0].startswith("20 releases together cost epsilon 1.78861")
    assert printed[0].endswith(" at delta 1e-06 (approximate DP, by pld composition).")
    assert [line.split()[0] for line in printed[3:6]] == list(METHODS)
    assert printed[3].split() == ["basic", "2"]
    assert printed[5].endswith("chosen")
    assert str(compose([pure(0.5)])).startswith("1 release costs epsilon 0.5 (pure DP, by basic composition).")


def test_frame_and_dict() -> None:
    found = compose([GAUSSIAN] * 4)
    frame = found.to_frame()
    assert list(frame.columns) == ["method", "dp_definition", "epsilon", "delta", "why", "chosen"]
    assert list(frame.method[frame.chosen]) == ["pld"]
    named = json.loads(json.dumps(found.to_dict()))
    assert named["epsilon"] == found.epsilon
    assert named["methods"][1]["epsilon"] > found.epsilon
    assert [Loss.from_dict(each) for each in named["losses"]] == list(found.losses)


@pytest.mark.parametrize(
    ("losses", "options", "kind", "message"),
    [
        ([pure(0.1)], {"method": "best"}, UnknownName, "unknown method; got 'best'; allowed: tightest, basic"),
        ([0.1], {}, InvalidInput, "only losses can be composed; got float"),
        ([pure(0.1)], {"delta": 1.0}, InvalidInput, "delta must be a number from 0 to below 1; got 1.0"),
        ([pure(0.1)], {"delta": float("nan")}, InvalidInput, "delta must be a number from 0 to below 1; got nan"),
        ([pure(0.1)], {"delta": True}, InvalidInput, "delta must be a number from 0 to below 1; got bool"),
        ([pure(0.1)], {"delta": "0.1"}, InvalidInput, "delta must be a number from 0 to below 1; got str"),
        (
            [pure(0.1), loss_of("laplace", 0.1, neighbours="replace")],
            {},
            InvalidInput,
            "a replaced record is one removed and one added; got 1 of 2 under neighbours='replace'",
        ),
        ([concentrated(0.1)], {}, InvalidInput, "concentrated losses compose to an epsilon at a delta"),
        ([concentrated(0.1)], {"delta": 0.0}, InvalidInput, "give a delta above 0"),
        ([approximate(0.1, 0.5)] * 2, {}, InvalidInput, "the deltas of the losses add up to 1 or more"),
        (
            [pure(0.1)],
            {"method": "pld"},
            InvalidInput,
            "pld composition has no answer for these losses: it gives approximate DP, not pure DP",
        ),
        (
            [approximate(0.1, 1e-6)] * 2,
            {"delta": 1e-6},
            InvalidInput,
            "no method has an answer for these losses at delta 1e-06 (basic: the deltas add up to 2e-06",
        ),
    ],
    ids=str,
)
def test_refusals(losses: list[Loss], options: dict, kind: type[CellriskError], message: str) -> None:
    with pytest.raises(kind) as refused:
        compose(losses, **options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_looking_at_operators_changes_nothing_else() -> None:
    looked, other = compose([pure(0.1)] * 2), compose([pure(0.1)] * 2)
    assert len(looked.composed) == len(METHODS)
    assert looked == other
    assert repr(looked) == repr(other)
    with pytest.raises(TypeError, match="positional arguments"):
        type(looked)(looked.losses, "pure", 0.0, "basic", {})


def test_a_delta_that_is_just_the_sum_suffices() -> None:
    found = compose([approximate(0.1, 1e-6)] * 2, delta=2e-6)
    assert (found.dp_definition, found.epsilon, found.chosen.method) == ("approximate", 0.2, "basic")


@pytest.mark.parametrize(
    ("losses", "delta", "said"),
    [
        ([pure(0.1)], None, []),
        ([approximate(0.1, 1e-6)], None, ["the sum of the losses' deltas"]),
        ([concentrated(0.1)], 1e-6, ["no epsilon of its own", "own add up to", "set before the first release"]),
    ],
    ids=["pure", "approximate", "concentrated"],
)
def test_nothing_is_said_that_does_not_apply(losses: list[Loss], delta: float | None, said: list[str]) -> None:
    every = (
        "no epsilon of its own",
        *(
            "the sum of the losses' deltas",
            "own add up to",
            "without a known mechanism",
            "set before the first release",
        ),
    )
    found = " ".join(compose(losses, delta=delta).statements)
    assert [each for each in every if each in found] == said


@pytest.mark.parametrize("epsilon", [740.0, 750.0, 800.0, 1e10, 1e100])
@pytest.mark.parametrize("name", ["geometric", "laplace"])
def test_losses_beyond_floating_point_tell_everything(name: str, epsilon: float) -> None:
    """e^-epsilon is 0 there, and nothing is left of a distribution."""
    losses = [loss_of(name, epsilon)] * 3
    for delta in (None, 1e-6):
        assert compose(losses, delta=delta).epsilon == near_epsilon(3 * epsilon)
    found = compose_ceiling(losses, labels=4)
    assert (found.even_two, found.even, found.advantage, found.odds) == (1.0, 1.0, 1.0, math.inf)
    assert compose_ceiling([pure(epsilon)] * 2).even_two == 1.0
    assert compose([pure(1e200)] * 2, delta=1e-6).epsilon == near_epsilon(2e200)


def test_a_rho_and_a_stated_delta_compose() -> None:
    """By Renyi divergences, at what the stated delta leaves: no more than both alone at halves of it."""
    both = compose([approximate(0.1, 1e-6), concentrated(0.01)], delta=1e-5)
    assert both.chosen.method == "rdp"
    assert both.epsilon <= 0.1 + compose([concentrated(0.01)], delta=9e-6).epsilon
    assert both.epsilon > compose([concentrated(0.01)], delta=1e-5).epsilon


def test_one_concentrated_loss_among_others_needs_a_delta() -> None:
    for losses in ([pure(0.1), concentrated(0.1)], [concentrated(0.1), pure(0.1)]):
        with pytest.raises(InvalidInput, match="have none of their own"):
            compose(losses)


@pytest.mark.parametrize("epsilon", [0.1, 1.0000004 / 3, 0.77777749, 1e-4 / 3])
@pytest.mark.parametrize("number", [1, 3, 7])
def test_no_sum_is_told_smaller_than_it_is(epsilon: float, number: int) -> None:
    found = compose([approximate(epsilon, 1.23456749e-6)] * number)
    words = found.headline.split()
    for name, true in (("epsilon", found.epsilon), ("delta", found.delta)):
        told = float(words[words.index(name) + 1])
        assert true * (1.0 - 1e-12) <= told <= true * (1.0 + 1e-5)
