"""Queries of OpenDP over Polars frames as `from_opendp` reads them, as JSON: run in an environment that has both.

PYTHONPATH=src python tests/noise/frame_queries.py [--few]

OpenDP searches the scale of each query, which takes seconds; `--few` stops after four.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

import opendp.prelude as dp
import polars as pl

from cellrisk.errors import InvalidInput
from cellrisk.noise.from_opendp import from_opendp

FRAME = pl.LazyFrame({"age": ["a", "b", "a", "c"] * 50, "sick": ["y", "n", "n", "n"] * 50, "pay": [1, 2, 3, 4] * 50})
KEYS = pl.LazyFrame({"age": ["a", "b", "c", "d"], "sick": ["y", "n", "y", "n"]})


def query(loss: Any, unit: Any = None, parts: int = 2, margins: Any = ()) -> Any:
    context = dp.Context.compositor(
        data=FRAME,
        privacy_unit=unit or dp.unit_of(contributions=1),
        privacy_loss=loss,
        split_evenly_over=parts,
        margins=[*margins],
    )
    return context.query()


def counts(asked: Any) -> Any:
    return asked.group_by("age", "sick").agg(dp.len())


def read(asked: Any, **how: Any) -> dict[str, Any]:
    try:
        found = from_opendp(asked, **how)
    except InvalidInput as error:
        return {"refused": str(error)}
    return {"kind": type(found).__name__, "threshold": found.threshold, **found.to_dict()}


def main() -> None:
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    epsilon, rho = dp.loss_of(epsilon=1.0), dp.loss_of(rho=0.5)
    small = dp.loss_of(epsilon=1.0, delta=1e-7)
    public = [dp.polars.Margin(by=["age", "sick"], invariant="keys")]
    known = [dp.polars.Margin(by=["age", "sick"], invariant="lengths")]
    cases: dict[str, Callable[[], dict[str, Any]]] = {
        "declared keys": lambda: read(counts(query(epsilon)).with_keys(KEYS), keys="declared"),
        "keys of the data, looked at": lambda: read(counts(query(small)), keys="observed"),
        "keys not stated": lambda: read(counts(query(epsilon, margins=public)).with_keys(KEYS)),
        "concentrated": lambda: read(counts(query(rho)).with_keys(KEYS), delta=1e-6, keys="declared"),
        "public counts": lambda: read(counts(query(epsilon, margins=known)).with_keys(KEYS), keys="declared"),
        "keys of the data": lambda: read(counts(query(small)), keys="declared"),
        "changes": lambda: read(counts(query(epsilon, dp.unit_of(changes=1))).with_keys(KEYS), keys="declared"),
        "three records": lambda: read(
            counts(query(epsilon, dp.unit_of(contributions=3))).with_keys(KEYS), keys="declared"
        ),
        "two counts": lambda: read(
            query(epsilon).group_by("age").agg(dp.len(), pl.col("sick").dp.len()).with_keys(KEYS.select("age").unique())
        ),
    }
    few = "--few" in sys.argv
    found = {name: ask() for name, ask in islice(cases.items(), 4 if few else None)}
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
