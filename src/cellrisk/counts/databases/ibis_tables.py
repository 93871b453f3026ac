"""Ibis tables: those of DuckDB through their own connection, others as a stream of Arrow batches."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from cellrisk.counts.schema import locate
from cellrisk.errors import InvalidInput, argument


def read_expression(source: Any, columns: Sequence[str]) -> Any:
    """The columns in use of an Ibis table, as a relation of DuckDB or a stream that the embedded engine reads.

    Ibis 12 asks DuckDB 2 for results by names that are gone, so DuckDB is asked with the SQL that Ibis writes.
    """
    if source._find_backends()[1]:
        raise InvalidInput("the Ibis table is not bound to any data", fix="take the table from a connection")
    locate(columns, source.columns, "the Ibis table")
    backend, used = source.get_backend(), source.select(*columns)
    if backend.name == "sqlite":  # its columns hold values of any type, of which Ibis refuses some
        raise InvalidInput(
            "an Ibis table of an SQLite file cannot be read safely",
            fix=f"give the file itself, as sqlite:///FILE, and its table with {argument('table')}",
            code="ibis-sqlite",
        )
    if backend.name != "duckdb":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ibis and pandas among themselves
            return used.to_pyarrow_batches()
    backend._run_pre_execute_hooks(used)  # brings tables in memory to DuckDB
    return backend.con.sql(backend.compile(used))
