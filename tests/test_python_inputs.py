"""Whatever a public function is given in Python that it cannot take, it refuses in one line, and never stumbles."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr

WRONG: tuple[Any, ...] = (
    None,
    -1,
    True,
    float("nan"),
    10**400,
    "no such thing",
    "",
    b"x",
    (),
    [None],
    [1, 2],
    [[0.5]],
    {"a": 1},
    {"job": object()},
    object(),
)
"""What no function takes everywhere; some of it is right in some place, where it may be taken."""
LONGEST = 600
"""Letters of a refusal: it may list what is allowed, and not repeat a long value."""


@cache
def records() -> pd.DataFrame:
    return pd.DataFrame({"sex": ["f"] * 30 + ["m"] * 20, "town": ["a", "b"] * 25, "job": list("xxxyy") * 10})


@cache
def table() -> cr.FrequencyTable:
    levels = {"sex": ["f", "m"], "job": ["x", "y"]}
    return cr.tabulate(records(), "sex", "job", levels=levels, outside="drop")


@cache
def released() -> cr.Release:
    return cr.release(table(), epsilon=1.0, clamp=False)


def rounding() -> dict[str, Any]:
    return {"table": table(), "perturbation": "random-rounding:3"}


def a_set(**more: Any) -> dict[str, Any]:
    levels = {"sex": ["f", "m"], "town": ["a", "b"], "job": ["x", "y"]}
    tables = [{"qid": ["sex"]}, {"qid": ["sex", "town"]}]
    return {"source": records(), "tables": tables, "sensitive": "job", "levels": levels, **more}


CALLS: dict[str, Callable[[], dict[str, Any]]] = {
    "assess": lambda: {"table": table(), "epsilon": 1.0, "measures": "local"},
    "assess_perturbation": lambda: {**rounding(), "measures": "local", "compare": None},
    "assess_sequence": lambda: {"table": table(), "steps": [cr.Step(cr.Geometric(1.0), "job")]},
    "assess_together": lambda: a_set(epsilon=1.0),
    "audit": lambda: {"original": table(), "released": released()},
    "average": lambda: {"table": table(), "epsilon": 1.0, "releases": 2, "measures": "local"},
    "ceiling": lambda: {"epsilon": 1.0},
    "choose": lambda: {"table": table(), "max_ceiling": 0.7},
    "choose_privately": lambda: {"table": table(), "private": 1.0, "max_caused_people": 20, "grid": [0.1, 1.0]},
    "compose": lambda: {"losses": [cr.Loss.of(cr.Geometric(1.0))]},
    "curve": lambda: {"table": table(), "epsilon": [0.5, 1.0], "measures": "local"},
    "explain": lambda: {"table": table(), "epsilon": 1.0},
    "from_opendp": lambda: {"given": object()},
    "largest_epsilon": lambda: {"past": [], "max_ceiling": 0.75},
    "mechanism": lambda: {"name": "laplace", "epsilon": 1.0},
    "publish_risk": lambda: {"table": table(), "epsilon": 1.0, "risk_epsilon": 1.0},
    "read_perturbation": lambda: {"given": "random-rounding:3"},
    "release": lambda: {"table": table(), "epsilon": 1.0},
    "release_together": lambda: a_set(epsilon=1.0, outside="drop"),
    "report": lambda: {"table": table(), "epsilon": 1.0, "public": True},
    "simulate": lambda: {"table": table(), "epsilon": 1.0, "releases": 20},
    "split_budget": lambda: a_set(total_epsilon=1.0),
    "tabulate": lambda: {"source": records(), "quasi_identifiers": "sex", "sensitive": "job"},
    "utility": lambda: {"table": table(), "epsilon": 1.0, "releases": 5},
}
"""For each public function, a call that it answers (but `from_opendp`, which takes only what other programs made)."""


def test_every_public_function_is_here() -> None:
    functions = {name for name in cr.__all__ if inspect.isfunction(inspect.unwrap(getattr(cr, name)))}
    assert functions == CALLS.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "release_together" else []) for name in CALLS]
)
def test_what_cannot_be_taken_is_refused_in_one_line(name: str) -> None:
    function, right = getattr(cr, name), CALLS[name]()
    if name != "from_opendp":
        function(**right)
    stumbles = []
    # progress is called, and not read; arguments that are passed on are those of another function
    taken = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "progress" and parameter.kind is not parameter.VAR_KEYWORD
    ]
    for parameter in taken:
        for wrong in WRONG:
            try:
                function(**{**right, parameter: wrong})
            except cr.CellriskError as refusal:  # noqa: PERF203
                said = str(refusal)
                if "\n" in said or len(said) > LONGEST:
                    stumbles.append(f"{parameter}={type(wrong).__name__}: {len(said)} letters")
            except Exception as error:
                stumbles.append(f"{parameter}={type(wrong).__name__}: {type(error).__name__}: {error}"[:200])
    assert not stumbles, "\n" + "\n".join(stumbles)


def test_records_are_not_a_table() -> None:
    with pytest.raises(cr.InvalidInput, match=r"got DataFrame; make one with cellrisk\.tabulate"):
        cr.assess(records(), epsilon=1.0)  # type: ignore[arg-type]
