"""Packing: quasi-identifiers as few whole numbers, so that counting spills less where memory is short.

Each column's distinct values get numbers, and the numbers of all columns together one number: exact, unlike a hash.
DuckDB only; other engines have their own ways with memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.tables.levels import Levels
from cellrisk.tables.resources import Resources

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_VALUES = 1 << 24
"""A column with more distinct values than this is left as it is."""
LARGEST_KEY = 2**62
BYTES_FOR_TEXT, BYTES_FOR_NUMBER, BYTES_FOR_ROW = 48, 8, 32


@dataclass(frozen=True)
class Packed:
    """The records with fewer, narrower quasi-identifiers, and what packing has hidden."""

    coded: ir.Table
    missing: tuple[int, ...] | None
    """Records in which each quasi-identifier is missing; None where nothing was packed."""


def pack(coded: ir.Table, records: int, levels: Sequence[Levels], resources: Resources) -> Packed:
    """The same records, packed if their cells would not fit into memory."""
    backend: Any = coded.get_backend()
    if backend.name != "duckdb":
        return Packed(coded, None)
    quasi = [name for name in coded.columns if name.startswith("q")]
    widths = [BYTES_FOR_TEXT if coded[name].type().is_string() else BYTES_FOR_NUMBER for name in quasi]
    per_cell = BYTES_FOR_ROW + sum(widths) + BYTES_FOR_NUMBER * sum(len(each.places) for each in levels)
    if records * per_cell < resources.memory:
        return Packed(coded, None)
    connection = backend.con
    name = f"records_{uuid.uuid4().hex}"
    connection.execute(f"CREATE TEMP VIEW {name} AS {backend.compile(coded)}")
    threads = int(connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
    cells = int(
        connection.execute(f"SELECT approx_count_distinct(hash({', '.join(quasi)})) FROM {name}").fetchall()[0][0]
    )
    if cells * per_cell * threads < resources.memory:  # an estimate decides how to count, never what
        return Packed(coded, None)
    return _pack(backend, name, coded, quasi)


def _pack(backend: Any, name: str, coded: ir.Table, quasi: list[str]) -> Packed:
    connection = backend.con
    records = "sum(w)" if "w" in coded.columns else "count(*)"
    facts = ", ".join(
        f"coalesce({records} FILTER ({column} IS NULL), 0), approx_count_distinct({column})" for column in quasi
    )
    found = connection.execute(f"SELECT {facts} FROM {name}").fetchall()[0]
    keys: list[str] = []
    key, size = "", 1
    for place, column in enumerate(quasi):
        if found[2 * place + 1] > MOST_VALUES:
            keys.append(column)
            continue
        kind = f"values_{uuid.uuid4().hex}"
        connection.execute(
            f"CREATE TYPE {kind} AS ENUM (SELECT DISTINCT CAST({column} AS VARCHAR) AS v FROM {name} "
            f"WHERE {column} IS NOT NULL ORDER BY v)"
        )
        many = int(connection.execute(f"SELECT len(enum_range(NULL::{kind}))").fetchall()[0][0]) + 1
        code = f"coalesce(enum_code(CAST(CAST({column} AS VARCHAR) AS {kind}))::BIGINT + 1, 0)"
        if size * many >= LARGEST_KEY:
            keys.append(key)
            key, size = "", 1
        key = f"({key}) * {many} + {code}" if key else code
        size *= many
    if key:
        keys.append(key)
    others = [column for column in coded.columns if column not in quasi]
    chosen = [f"{expression} AS q{place}" for place, expression in enumerate(keys)] + others
    connection.execute(f"CREATE TEMP VIEW packed_{name} AS SELECT {', '.join(chosen)} FROM {name}")
    missing = tuple(int(found[2 * place]) for place in range(len(quasi)))
    return Packed(backend.table(f"packed_{name}"), missing)
