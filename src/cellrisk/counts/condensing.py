"""Condensing: records that are alike become one row with their number, so that a source is read once.

What follows, from checks and levels to counts, then asks a table that is as small as there are combinations of values.
DuckDB only; where combinations are almost as many as records, nothing would be gained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.counts.engine import make_view, name_table

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
    columns = dict(coded.schema().items())
    records, counted = make_view(backend, backend.compile(coded), columns), "w" in columns
    names, source = ", ".join(columns), records.get_name()
    looked_at = f"SELECT hash({names}) AS key FROM {source} LIMIT {SAMPLE}"
    seen, different = backend.con.execute(f"SELECT count(*), count(DISTINCT key) FROM ({looked_at})").fetchall()[0]
    if seen >= SAMPLE and (counted or different >= MOST_DIFFERENT * SAMPLE):
        return Condensed(records, None, few=False)
    alike = f"SELECT {names}, count(*)::DOUBLE AS w FROM {source} GROUP BY {names}"
    table = f"condensed_{source}"
    backend.con.execute(f"SET perfect_ht_threshold = {KEY_BITS}")
    made = backend.con.execute(f"CREATE TEMP TABLE {table} AS {f'FROM {source}' if counted else alike}")
    rows = int(made.fetchall()[0][0])
    backend.con.execute("RESET perfect_ht_threshold")
    texts = [f"coalesce(sum(strlen({column}::VARCHAR)), 0)" for column, kind in columns.items() if kind.is_string()]
    few = rows <= MOST_ROWS
    if few and texts:
        few = backend.con.execute(f"SELECT {' + '.join(texts)} FROM {table}").fetchall()[0][0] <= MOST_LETTERS
    return Condensed(name_table(backend, table, {**columns, "w": "float64"}), rows, few)
