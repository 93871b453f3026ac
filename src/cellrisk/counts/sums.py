"""Sums: the counts of a cell's levels, one by one, or several in the digits of one large number.

A conditional count for each level is what every engine understands. DuckDB also adds numbers of 38 digits, and one such
sum is cheaper than three counts: a record adds 2^(b k) for its level k, where 2^b is more than all records, so that no
count runs into the next. Exact either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts import packing
from cellrisk.counts.engine import make_view

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from cellrisk.system.arrays import Integers

BITS = 126
"""2^126 is less than 10^38."""
FEWEST = 3
"""Counts that are folded into one sum at least; with fewer, counting each by itself is cheaper."""
WIDE = "decimal(38, 0)"


@dataclass(frozen=True)
class Sums:
    """What to add up in each cell, and how the counts are read from it."""

    aggregates: Mapping[str, Any]
    folded: Mapping[str, Sequence[str]]
    """The sums that hold several counts, each with the names of its counts from the lowest digits on."""
    bits: int
    """How wide a count is in such a sum."""

    def read(self, vectors: ir.Table) -> ir.Table:
        """The table with a column for each count."""
        if not self.folded:
            return vectors
        backend: Any = vectors.get_backend()
        counts = [
            f"((coalesce({name}, 0)::HUGEINT >> {self.bits * place}) & {2**self.bits - 1})::BIGINT AS {count}"
            for name, folded in self.folded.items()
            for place, count in enumerate(folded)
        ]
        query = f"SELECT * EXCLUDE ({', '.join(self.folded)}), {', '.join(counts)} FROM {vectors.get_name()}"
        return make_view(backend, query)

    def unfold(self, few: pa.Table) -> dict[str, Integers]:
        """The counts that a few rows hold in their sums, as Python's own whole numbers give them."""
        found = {}
        for name, folded in self.folded.items():
            numbers = [int(number or 0) for number in few[name].to_pylist()]
            for place, count in enumerate(folded):
                digits = [number >> self.bits * place & 2**self.bits - 1 for number in numbers]
                found[count] = np.array(digits, np.int64)
        return found


def plan_sums(
    coded: ir.Table, columns: Sequence[Sequence[str]], conditions: Mapping[str, ir.BooleanValue], records: int
) -> Sums:
    """The counts of the records that satisfy each condition; those in one list of ``columns`` exclude one another."""
    width = max(records.bit_length(), 1)
    several = BITS // width
    backend: Any = coded.get_backend()
    if backend.name != "duckdb" or "w" in coded.columns or several < FEWEST or records < packing.WORTHWHILE:
        return Sums({name: total(coded, condition) for name, condition in conditions.items()}, {}, width)
    aggregates: dict[str, Any] = {}
    folded: dict[str, Sequence[str]] = {}
    for names in columns:
        for start in range(0, len(names), several):
            some = names[start : start + several]
            if len(some) < FEWEST:
                aggregates |= {name: total(coded, conditions[name]) for name in some}
                continue
            folded[f"s{len(folded)}"] = some
            aggregates[f"s{len(folded) - 1}"] = add_digits([conditions[name] for name in some], width)
    return Sums(aggregates, folded, width)


def add_digits(conditions: Sequence[ir.BooleanValue], width: int) -> Any:
    """The sum over a cell's records of 2^(width k), k being the first condition that holds."""
    from decimal import Decimal

    import ibis

    branches = [
        (condition, ibis.literal(Decimal(2 ** (width * place)), type=WIDE))
        for place, condition in enumerate(conditions)
    ]
    return ibis.cases(*branches, else_=ibis.null(WIDE)).sum()


def total(coded: ir.Table, where: ir.BooleanValue | None = None) -> Any:
    """Records that satisfy a condition."""
    if "w" not in coded.columns:
        return coded.count(where=where)
    return coded["w"].sum(where=where).fill_null(0).cast("int64")
