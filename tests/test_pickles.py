"""What a pickled result holds: numbers, and nothing of the source that made it."""

from __future__ import annotations

import copy
import pickle
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cellrisk as cr
from tests.commands import refusing

UNUSED = "Canary-of-no-use"
KEYS = ("Canary-North", "Canary-South")
MECHANISM = cr.Geometric(epsilon=1.0)


def make_records() -> dict[str, list[Any]]:
    draw = np.random.default_rng(7)
    return {
        "name": [f"{UNUSED}-{number}" for number in range(60)],
        "town": [KEYS[place] for place in draw.integers(0, 2, 60)],
        "age": [*draw.integers(20, 60, 59).tolist(), 99],
        "job": [("cook", "smith")[place] for place in draw.integers(0, 2, 59)] + ["cook"],
        "pay": [("low", "high")[place] for place in draw.integers(0, 2, 60)],
    }


def in_pandas() -> pd.DataFrame:
    frame = pd.DataFrame(make_records()).set_index(pd.Index([f"{UNUSED}-{row}" for row in range(60)], name=UNUSED))
    frame.attrs["origin"] = UNUSED
    return frame.assign(town=frame["town"].astype("category"))


def in_arrow() -> pa.Table:
    return pa.table(make_records()).replace_schema_metadata({"origin": UNUSED})


SOURCES: dict[str, Callable[[], Any]] = {
    "pandas": in_pandas,
    "polars": lambda: pl.DataFrame(make_records()),
    "a lazy polars frame": lambda: pl.DataFrame(make_records()).lazy(),
    "pyarrow": in_arrow,
}

RESULTS: dict[str, Callable[[cr.FrequencyTable], Any]] = {
    "table": lambda table: table,
    "summary": lambda table: table.summary(),
    "assessment": lambda table: cr.assess(table, MECHANISM, measures="local"),
    "curve": lambda table: cr.curve(table, "geometric", epsilon=[0.5, 1.0], measures="local"),
    "choice": lambda table: cr.choose(table, "geometric", max_risk=0.5),
    "utility": lambda table: cr.utility(table, MECHANISM, sensitive="job", releases=3),
    "audit": lambda table: cr.audit(table, in_pandas(), sensitive="job", bins={"age": 10}),
    "exposed cells": lambda table: cr.audit(table, in_pandas(), sensitive="job", bins={"age": 10}).exposed(),
    "simulation": lambda table: cr.simulate(table, MECHANISM, sensitive="job", releases=5, seed=1),
    "averaging": lambda table: cr.average(table, MECHANISM, releases=2, measures="local"),
    "explanation": lambda table: cr.explain(table, MECHANISM, sensitive="job"),
    "sequence": lambda table: cr.assess_sequence(table, [cr.Step(MECHANISM, "job"), cr.Step(MECHANISM, "pay")]),
    "report": lambda table: cr.report(table, epsilon=1.0),
    "public report": lambda table: cr.report(table, epsilon=1.0, public=True),
}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return tabulate(in_pandas())


def tabulate(source: Any) -> cr.FrequencyTable:
    return cr.tabulate(source, ["town", "age"], ["job", "pay"], bins={"age": 10})


def walk(thing: Any, seen: set[int]) -> Iterator[Any]:
    """Everything that can be reached from a thing through its attributes, its items and what its functions enclose."""
    if id(thing) in seen or isinstance(thing, type | types.ModuleType):
        return
    seen.add(id(thing))
    yield thing
    inside = [*vars(thing).values()] if hasattr(thing, "__dict__") else []
    if isinstance(thing, dict):
        inside += [*thing, *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inside += thing
    elif isinstance(thing, types.FunctionType):
        inside += [cell.cell_contents for cell in thing.__closure__ or ()]
    elif isinstance(thing, partial):
        inside += [thing.func, *thing.args, *thing.keywords.values()]
    for each in inside:
        yield from walk(each, seen)


def texts(thing: Any) -> Iterator[str]:
    """What can be read in everything that is reached."""
    for each in walk(thing, set()):
        if isinstance(each, str | bytes):
            yield str(each)
        elif isinstance(each, pa.Table):
            yield str(each.to_pydict())
            yield str(each.schema)
        elif type(each).__module__.partition(".")[0] in ("pandas", "polars"):
            yield str(each.to_dict() if hasattr(each, "to_dict") else each)


def check_pickled(result: Any) -> Any:
    """No record and no key is in the pickled result, which is given back."""
    str(result), repr(result)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(result, protocol)
        assert b"Canary" not in pickled
    again = pickle.loads(pickled)
    assert not [text for text in texts(again) if "Canary" in text]
    return again


def check_in_memory(result: Any) -> None:
    """No column that is not in use is in the result, or in a copy of it."""
    for each in (result, copy.deepcopy(result), copy.copy(result)):
        assert not [text for text in texts(each) if UNUSED in text]
        shown = [str(each), repr(each), str(each.to_dict()) if hasattr(each, "to_dict") else ""]
        assert not [text for text in shown if UNUSED in text]


@pytest.mark.parametrize("kind", RESULTS)
def test_a_pickled_result_holds_no_record_and_no_key(table: cr.FrequencyTable, kind: str) -> None:
    table.cells("job")  # so that the keys have been at hand
    result = RESULTS[kind](table)
    check_in_memory(result)
    again = check_pickled(result)
    if hasattr(result, "to_dict") and kind != "explanation":
        assert str(again.to_dict()) == str(result.to_dict())
        assert str(again) == str(result)
    if kind == "report":
        assert KEYS[0] in result.to_html()
        with refusing("no-document"):
            again.to_html()


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_nothing_of_any_kind_of_frame_is_pickled(make: Callable[[], Any]) -> None:
    found = tabulate(make())
    assert list(found.cells("job").profiles().rows()) == list(found.profiles("job").rows())
    check_in_memory(found)
    check_pickled(found)
    assert copy.deepcopy(found).cells("pay").n_cells == found.n_cells, "a copy in one process can read its source"


def test_the_walk_sees_what_a_function_encloses(table: cr.FrequencyTable) -> None:
    table.cells("job")  # so that the keys have been at hand
    frame = in_pandas()
    leaking = replace(table, read_cells=lambda place: frame)  # type: ignore[arg-type, return-value]
    assert any(UNUSED in text for text in texts(leaking))
    assert any(KEYS[0] in text for text in texts(table)), "the columns in use are held"


def test_what_needs_the_source_is_refused_in_one_line(table: cr.FrequencyTable) -> None:
    again = pickle.loads(pickle.dumps(table))
    assert list(again.profiles("job").rows()) == list(table.profiles("job").rows())
    risks = [cr.assess(each, MECHANISM, measures="local").value(sensitive="job") for each in (again, table)]
    assert risks[0] == pytest.approx(risks[1], rel=1e-12, abs=0)
    for ask in (
        lambda: again.cells("job"),
        lambda: cr.explain(again, MECHANISM, sensitive="job"),
        lambda: cr.release(again, MECHANISM, sensitive="job"),
        lambda: cr.audit(again, in_pandas(), sensitive="job"),
    ):
        with refusing("no-cells") as refusal:
            ask()
        assert "\n" not in str(refusal.value)
    audited = cr.audit(table, in_pandas(), sensitive="job", bins={"age": 10})
    with refusing("no-keys"):
        pickle.loads(pickle.dumps(audited)).exposed()


def test_an_explanation_keeps_its_numbers(table: cr.FrequencyTable) -> None:
    found = cr.explain(table, MECHANISM, sensitive="job")
    again = pickle.loads(pickle.dumps(found))
    assert again.headline == found.headline
    assert [cell.risk for cell in again.riskiest] == [cell.risk for cell in found.riskiest]
    assert {label for cell in again.riskiest for label in cell.key.values()} == {"(not kept)"}
