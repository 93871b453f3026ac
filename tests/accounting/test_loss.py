"""One loss: what it is of, how it is written, what it refuses."""

from __future__ import annotations

import json

import pytest

from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.noise.mechanisms import MECHANISMS, mechanism
from cellrisk.repeat.accounting.loss import Loss

from .cases import ONE_OF_EACH, concentrated

FLAVOUR_OF = {"laplace": "pure", "geometric": "pure", "gaussian-pdp": "probabilistic"}


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_a_mechanism_has_its_flavour(name: str) -> None:
    assert ONE_OF_EACH[name].flavour == FLAVOUR_OF.get(name, "approximate")


@pytest.mark.parametrize("loss", [*ONE_OF_EACH.values(), concentrated(0.1)], ids=[*ONE_OF_EACH, "concentrated"])
def test_it_is_written_and_read_again(loss: Loss) -> None:
    assert Loss.from_dict(json.loads(json.dumps(loss.to_dict()))) == loss


def test_it_describes_itself() -> None:
    assert [ONE_OF_EACH[name].describe() for name in ("pure", "probabilistic", "approximate")] == [
        "0.3-DP",
        "(0.3, 1e-06)-pDP",
        "(0.3, 1e-06)-DP",
    ]
    assert concentrated(0.25).describe() == "0.25-zCDP"


LAPLACE = mechanism("laplace", epsilon=0.1)


@pytest.mark.parametrize(
    ("named", "kind", "message"),
    [
        ({"flavour": "local", "epsilon": 1.0}, UnknownName, "unknown flavour of privacy; got 'local'"),
        ({"flavour": "pure", "epsilon": 1.0, "neighbours": "swap"}, UnknownName, "unknown neighbours; got 'swap'"),
        ({"flavour": "pure"}, InvalidInput, "epsilon must be a number above 0; got NoneType"),
        ({"flavour": "pure", "epsilon": "1"}, InvalidInput, "epsilon must be a number above 0; got str"),
        ({"flavour": "pure", "epsilon": True}, InvalidInput, "epsilon must be a number above 0; got bool"),
        ({"flavour": "pure", "epsilon": 0.0}, InvalidInput, "epsilon must be a number above 0; got 0.0"),
        (
            {"flavour": "pure", "epsilon": float("inf")},
            InvalidInput,
            "epsilon must be a number above 0; got inf",
        ),
        ({"flavour": "pure", "epsilon": 1.0, "delta": 0.1}, InvalidInput, "pure DP has no delta"),
        ({"flavour": "approximate", "epsilon": 1.0}, InvalidInput, "approximate DP needs a delta between 0 and 1"),
        ({"flavour": "probabilistic", "epsilon": 1.0, "delta": 1.0}, InvalidInput, "needs a delta between 0 and 1"),
        ({"flavour": "approximate", "epsilon": 1.0, "delta": "0"}, InvalidInput, "delta must be a number; got str"),
        ({"flavour": "approximate", "epsilon": 1.0, "delta": 0.1, "rho": 1.0}, InvalidInput, "flavour has no rho"),
        ({"flavour": "concentrated"}, InvalidInput, "rho must be a number above 0; got NoneType"),
        ({"flavour": "concentrated", "rho": -1.0}, InvalidInput, "rho must be a number above 0"),
        ({"flavour": "concentrated", "rho": 1.0, "epsilon": 1.0}, InvalidInput, "a concentrated loss is a rho alone"),
        ({"flavour": "concentrated", "rho": 1.0, "mechanism": LAPLACE}, InvalidInput, "is a rho alone"),
        ({"flavour": "pure", "epsilon": 0.2, "mechanism": LAPLACE}, InvalidInput, "make it with Loss.of(mechanism)"),
        ({"flavour": "pure", "epsilon": 0.1, "mechanism": "laplace"}, InvalidInput, "make it with Loss.of(mechanism)"),
    ],
    ids=[
        *("flavour", "neighbours", "no epsilon", "text", "bool", "zero", "infinite", "pure with delta", "no delta"),
        *("delta 1", "delta text", "rho of approximate", "no rho", "negative rho", "rho with epsilon"),
        *("rho with mechanism", "another mechanism's", "a name for a mechanism"),
    ],
)
def test_refusals(named: dict, kind: type[CellriskError], message: str) -> None:
    with pytest.raises(kind) as refused:
        Loss(**named)
    assert message in str(refused.value)


def test_an_unknown_mechanism_is_not_read() -> None:
    named = {"flavour": "pure", "neighbours": "add-remove", "epsilon": 1.0, "delta": 0.0, "mechanism": "staircase"}
    with pytest.raises(UnknownName, match="unknown mechanism; got 'staircase'"):
        Loss.from_dict(named)
