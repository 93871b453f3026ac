"""Queries of OpenDP over Polars frames as `from_opendp` reads them, as JSON: run in an environment that has both.

PYTHONPATH=src python tests/opendp/frame_queries.py
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import opendp.prelude as dp
import polars as pl

from cellrisk.errors import InvalidInput
from cellrisk.noise.from_opendp import from_opendp

FRAME = pl.LazyFrame({"age": ["a", "b", "a", "c"] * 50, "sick": ["y", "n", "n", "n"] * 50, "pay": [1, 2, 3, 4] * 50})
KEYS = pl.LazyFrame({"age": ["a", "b", "c", "d"], "sick": ["y", "n", "y", "n"]})


def query(loss: Any, unit: Any = None, parts: int = 2) -> Any:
    context = dp.Context.compositor(
        data=FRAME, privacy_unit=unit or dp.unit_of(contributions=1), privacy_loss=loss, split_evenly_over=parts
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
    found = {
        "declared keys": read(counts(query(epsilon)).with_keys(KEYS)),
        "keys of the data": read(counts(query(dp.loss_of(epsilon=1.0, delta=1e-7)))),
        "keys of the data, looked at": read(counts(query(dp.loss_of(epsilon=1.0, delta=1e-7))), observed_keys=True),
        "concentrated": read(counts(query(rho)).with_keys(KEYS), delta=1e-6),
        "changes": read(counts(query(epsilon, dp.unit_of(changes=1))).with_keys(KEYS)),
        "three records": read(counts(query(epsilon, dp.unit_of(contributions=3))).with_keys(KEYS)),
        "two counts": read(
            query(epsilon).group_by("age").agg(dp.len(), pl.col("sick").dp.len()).with_keys(KEYS.select("age").unique())
        ),
    }
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
