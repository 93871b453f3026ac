"""Condensing: records that are alike become one row with their number, so that a source is read once.

What follows, from checks and levels to counts, then asks a table that is as small as there are combinations of values.
DuckDB only; where combinations are almost as many as records, nothing would be gained.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis.expr.types as ir

SAMPLE = 10_000
"""Records that are looked at first."""
MOST_DIFFERENT = 0.95
"""The share of them that may differ from one another: with 100,000 equally likely combinations it is about that."""
MOST_ROWS, MOST_LETTERS = 100_000, 32_000_000
"""Rows, and bytes of text in them, that may be brought here to be counted."""
KEY_BITS = 18
"""Whole numbers whose range is known are counted by address up to so many bits, which takes two megabytes a thread."""


@dataclass(frozen=True)
class Condensed:
    """Coded records, or the combinations of values that occur among them, with their numbers of records w."""

    table: ir.Table
    rows: int | None
    """How many rows the table has, where that is known."""
    few: bool
    """Whether they may be brought here."""


def condense(coded: ir.Table) -> Condensed:
    """The same records in fewer rows, where they are few, or where the first of them say that many are alike.

    Rows with counts of their own stay as they are.
    """
    backend: Any = coded.get_backend()
    if backend.name != "duckdb":
        return Condensed(coded, None, few=False)
    con, name, columns = backend.con, f"coded_{uuid.uuid4().hex}", dict(coded.schema().items())
    con.execute(f"CREATE TEMP VIEW {name} AS {backend.compile(coded)}")
    names, counted = ", ".join(columns), "w" in columns
    texts = [f"coalesce(strlen({column}::VARCHAR), 0)" for column, kind in columns.items() if kind.is_string()]

    def group(source: str, table: str) -> tuple[Condensed, int]:
        """The rows of a source that differ, and how many it has."""
        alike = f"SELECT {names}, count(*)::DOUBLE AS w FROM {source} GROUP BY {names}"
        con.execute(f"CREATE TEMP TABLE {table} AS {f'FROM {source}' if counted else alike}")
        facts = f"count(*), {'count(*)' if counted else 'sum(w)'}, sum({' + '.join(texts) or 0})"
        found = con.execute(f"SELECT {facts} FROM {table}").fetchall()[0]
        rows, records, letters = (int(fact or 0) for fact in found)
        few = rows <= MOST_ROWS and letters <= MOST_LETTERS
        return Condensed(name_table(backend, table, {**columns, "w": "float64"}), rows, few), records

    first, seen = group(f"(FROM {name} LIMIT {SAMPLE})", f"first_{name}")
    if seen < SAMPLE:
        return first
    if counted or (first.rows or 0) >= MOST_DIFFERENT * SAMPLE:
        return Condensed(name_table(backend, name, columns), None, few=False)
    con.execute(f"SET perfect_ht_threshold = {KEY_BITS}")
    every, _ = group(name, f"all_{name}")
    con.execute("RESET perfect_ht_threshold")
    return every


def name_table(backend: Any, name: str, columns: Mapping[str, Any]) -> ir.Table:
    """A table of the engine with the columns that it is known to have, as asking for them takes milliseconds."""
    import ibis.expr.operations as ops
    from ibis.expr.schema import Schema

    table: ir.Table = ops.DatabaseTable(name, Schema(columns), backend, ops.Namespace()).to_expr()
    return table
