"""One loss: what it is of, how it is written, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cellrisk.counts.unit import Unit
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import mechanism
from cellrisk.repeat.accounting.loss import Event, Loss
from tests.refusals import refused

from .cases import ONE_OF_EACH, concentrated


@pytest.mark.parametrize("loss", [*ONE_OF_EACH.values(), concentrated(0.1)], ids=[*ONE_OF_EACH, "concentrated"])
def test_it_is_written_and_read_again(loss: Loss) -> None:
    assert Loss.from_dict(json.loads(json.dumps(loss.to_dict()))) == loss


NOISE = {"kind": "laplace", "epsilon": 0.5, "scale": 2.0}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"kind": "local", "epsilon": 1.0}, "unknown kind of event; got 'local'"),
        ({"kind": "pure"}, "epsilon must be a number above 0; got NoneType"),
        ({"kind": "pure", "epsilon": "1"}, "epsilon must be a number above 0; got str"),
        ({"kind": "pure", "epsilon": True}, "epsilon must be a number above 0; got bool"),
        ({"kind": "pure", "epsilon": float("inf")}, "epsilon must be a number above 0; got inf"),
        ({"kind": "pure", "epsilon": 1.0, "delta": 0.1}, "pure DP has no delta"),
        ({"kind": "pure", "epsilon": 1.0, "scale": 1.0}, "a guarantee alone has no noise"),
        ({"kind": "approximate", "epsilon": 1.0}, "needs a delta between 0 and 1"),
        ({"kind": "approximate", "epsilon": 1.0, "delta": "0"}, "delta must be a number; got str"),
        ({"kind": "approximate", "epsilon": 1.0, "delta": 0.1, "rho": 1.0}, "only zCDP has a rho"),
        ({"kind": "zcdp"}, "rho must be a number above 0; got NoneType"),
        ({"kind": "zcdp", "rho": 1.0, "epsilon": 1.0}, "zCDP states a rho alone"),
        ({**NOISE, "scale": 0.0}, "scale must be a number above 0"),
        ({**NOISE, "number": 0}, "number"),
        ({**NOISE, "scale": 1.9}, "does not give the guarantee"),
        ({**NOISE, "number": 2}, "does not give the guarantee"),
        ({**NOISE, "sensitivity": 1.1}, "does not give the guarantee"),
        ({"kind": "gaussian", "epsilon": 1.0, "delta": 1e-5, "scale": 3.0}, "does not give the guarantee"),
        ({"kind": "discrete-gaussian", "epsilon": 1.0, "delta": 1e-5, "scale": 3.0}, "does not give the guarantee"),
        ({**NOISE, "mechanism": "staircase", "threshold": 0.5}, "unknown mechanism; got 'staircase'"),
        ({**NOISE, "colour": "red"}, "an event has no such field; got 'colour'"),
    ],
    ids=str,
)
def test_refusals(named: dict, message: str) -> None:
    with pytest.raises(CellriskError) as refused:
        Event.from_dict(named)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"epsilon": 0.05}, "other-loss"),
        ({"dp_definition": "approximate"}, "other-loss"),
        ({"delta": 1e-6}, "other-loss"),
        ({"events": []}, "no-events"),
        ({"events": [{**NOISE, "mechanism": "laplace", "threshold": 0.5}] * 2}, "other-loss"),
        ({"events": [{**NOISE, "scale": 3.0, "mechanism": "laplace", "threshold": 0.5}]}, "other-scale"),
    ],
    ids=str,
)
def test_a_loss_is_that_of_its_events(change: dict, code: str) -> None:
    named = Loss.of(mechanism("laplace", epsilon=0.5)).to_dict()
    assert Loss.from_dict(named).epsilon == 0.5
    with refused(code):
        Loss.from_dict({**named, **change})


def test_a_set_holds_the_events_of_its_tables() -> None:
    tables = [ONE_OF_EACH["geometric"], ONE_OF_EACH["discrete-gaussian"]]
    joined = Loss.join(tables)
    assert [event.kind for event in joined.events] == ["geometric", "discrete-gaussian"]
    assert joined.epsilon == 0.5
    assert joined.mechanism is None
    assert Loss.from_dict(json.loads(json.dumps(joined.to_dict()))) == joined


def test_tables_that_exclude_each_other_are_covered_by_the_larger() -> None:
    small, large = Loss.of(mechanism("geometric", epsilon=0.5)), Loss.of(mechanism("geometric", epsilon=1.0))
    assert Loss.cover([small, large]) == large
    assert Loss.cover([Loss.join([small, large]), Loss.join([large, small])]).events == (large.events + small.events)
    two, one = Loss.join([small, small]), Loss.of(mechanism("geometric", epsilon=0.9))
    assert Loss.cover([two, one]) == Loss.pure(1.0)  # 0.9 and 0.5 would be more than either
    assert Loss.cover([concentrated(0.1), concentrated(0.2)]) == concentrated(0.2)


UNLIKE: list[dict] = [{"neighbours": "replace"}, {"neighbours": "swap"}, {"unit": "household"}, {"unit": Unit(2)}]


@pytest.mark.parametrize("unlike", UNLIKE, ids=str)
def test_losses_that_are_not_alike(unlike: dict) -> None:
    with pytest.raises(CellriskError, match=r"neighbours|unit|records and of people"):
        Loss.join([ONE_OF_EACH["pure"], replace(ONE_OF_EACH["pure"], **unlike)])
