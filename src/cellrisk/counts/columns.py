"""Columns in SQL: values as they are grouped and compared, bins and counts by number, and where they cannot be used.

A value that cannot be used is a negative number of its own in place of a bin or a count, so that one pass tells which
flaws a column has.
"""

from __future__ import annotations

import re

from cellrisk.counts.binning import Binning
from cellrisk.counts.engine import Relation, quote_double
from cellrisk.errors import InvalidInput, argument

MOST_RECORDS = 2**53
"""Up to here every number of records is exact as a floating-point number too."""
INTEGER_BYTES = {"TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8, "UTINYINT": 1, "USMALLINT": 2, "UINTEGER": 4}
"""Types of whole numbers that a BIGINT holds."""
WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM", "DECIMAL")
TEMPORAL = ("DATE", "TIME", "TIMESTAMP", "INTERVAL")
TEXTS = ("VARCHAR", "UUID", "ENUM", "BIT", '"NULL"', "NULL")
ALLOWED = "text, numbers, truth values, dates and times"
LEAST_BIN = -(2**61)
"""Numbers below stand for flaws of a binned column."""
BIN_FLAWS = {
    LEAST_BIN - 1: "is to be binned but holds text that is not a number",
    LEAST_BIN - 2: "is to be binned but is infinite",
    LEAST_BIN - 3: "holds numbers too large for bins of that width",
}
COUNT_FLAWS = {
    -1: "has missing counts",
    -2: "holds text that is not a number",
    -3: "has negative counts",
    -4: f"has counts of {MOST_RECORDS} or more",
    -5: "has fractional counts",
}


def bare_type(kind: str) -> str:
    """A type of DuckDB without its precision, length or values.

    >>> bare_type("DECIMAL(18,3)"), bare_type("INTEGER[]"), bare_type("TIMESTAMP WITH TIME ZONE")
    ('DECIMAL', 'INTEGER[]', 'TIMESTAMP WITH TIME ZONE')
    """
    return kind if kind.endswith("]") else re.sub(r"\(.*", "", kind, flags=re.DOTALL).strip()


def is_numeric(kind: str) -> bool:
    """Whether a type is one of numbers; truth values are none."""
    return bare_type(kind) in (*INTEGER_BYTES, *WIDE, "FLOAT", "DOUBLE")


def is_text(kind: str) -> bool:
    return bare_type(kind) in TEXTS


def has_plain_values(kind: str) -> bool:
    """Whether values of a type can be told apart and written as a label."""
    bare = bare_type(kind)
    return is_numeric(kind) or is_text(kind) or bare == "BOOLEAN" or (bare.startswith(TEMPORAL) and "]" not in bare)


def check_type(name: str, kind: str) -> None:
    if not has_plain_values(kind):
        bare = bare_type(kind).lower()
        shown = "array" if bare.endswith("]") else "binary" if bare == "blob" else bare
        raise InvalidInput(f"column '{name}' holds {shown} values", allowed=ALLOWED, code="column-type")


def check_numbers(kind: str, what: str, fix: str) -> None:
    """Refuse a type that holds neither numbers nor text."""
    if not (is_numeric(kind) or is_text(kind)):
        raise InvalidInput(what, got=f"type {kind.lower()}", fix=fix, code="column-type")


def kind_of(relation: Relation, column: str) -> str:
    """How values of a column become labels: as text, as truth values, or as numbers of some kind."""
    return relation.kinds.get(column) or kind_of_type(relation.types[column])


def kind_of_type(kind: str) -> str:
    bare = bare_type(kind)
    if bare in INTEGER_BYTES:
        return "integer"
    named = {"BOOLEAN": "boolean", "DOUBLE": "double", "FLOAT": "single"}
    return named.get(bare, "number" if bare in WIDE else "text")


def plain_value(column: str, kind: str) -> str:
    """SQL for a value as a whole number or as text, under which equal values are the same value.

    NaN is missing, -0 is 0, and a time span is its text, as 30 days are no month.
    """
    bare = bare_type(kind)
    if bare in INTEGER_BYTES:
        return f"{column}::BIGINT"
    if bare == "BOOLEAN":
        return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
    if bare in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({column}) THEN NULL WHEN {column} = 0 THEN '0.0' ELSE {column}::VARCHAR END"
    return column if bare == "VARCHAR" else f"{column}::VARCHAR"


def as_number(column: str, kind: str) -> str:
    """SQL for a column as floating-point numbers, through text where the type is narrower: 1.1 stays 1.1."""
    bare = bare_type(kind)
    if bare in TEXTS:
        return f"TRY_CAST({column} AS DOUBLE)"
    return f"{column}::VARCHAR::DOUBLE" if bare == "FLOAT" else f"{column}::DOUBLE"


def bin_value(name: str, column: str, kind: str, binning: Binning) -> str:
    """SQL for the number of a value's bin, or of its flaw."""
    check_numbers(kind, f"column '{name}' is to be binned but is not numeric", f"leave '{name}' out of bins")
    number, bare = as_number(column, kind), bare_type(kind)
    text, infinite, far = BIN_FLAWS
    cases = [f"WHEN {column} IS NULL THEN NULL"]
    # Records are searched only for flaws that values of the type can have.
    if bare not in INTEGER_BYTES:
        cases += [f"WHEN {number} IS NULL THEN {text}", f"WHEN isnan({number}) THEN NULL"]
        cases += [f"WHEN isinf({number}) THEN {infinite}"]
    if bare not in INTEGER_BYTES or binning.reach < 2.0 ** (8 * INTEGER_BYTES[bare]):
        cases.append(f"WHEN abs({number}) > {quote_double(binning.reach)} THEN {far}")
    return f"CASE {' '.join(cases)} ELSE {binning.sql(number)} END"


def count_value(name: str, column: str, kind: str) -> str:
    """SQL for the count of a row, or the number of its flaw."""
    check_numbers(kind, f"the count column '{name}' holds no numbers", _fix_count(name))
    number = as_number(column, kind)
    return (
        f"CASE WHEN {column} IS NULL OR isnan({number}) THEN -1 WHEN {number} IS NULL THEN -2 "
        f"WHEN {number} < 0 THEN -3 WHEN {number} >= {quote_double(MOST_RECORDS)} THEN -4 "
        f"WHEN {number} <> floor({number}) THEN -5 ELSE ({number})::BIGINT END"
    )


def refuse_bins(name: str, flaw: int, rows: int, of: int) -> InvalidInput:
    fix = f"correct these records, or leave them out with {argument('outside', 'drop')}"
    fix = "use a larger width" if flaw == min(BIN_FLAWS) else fix
    return _refuse(f"column '{name}' {BIN_FLAWS[flaw]}", rows, of, None, fix)


def refuse_count(name: str, flaw: int, rows: int, of: int) -> InvalidInput:
    fix = _fix_count(name) + ("; if counts were suppressed, as c or <5, give those from before" if flaw == -2 else "")
    return _refuse(f"the count column '{name}' {COUNT_FLAWS[flaw]}", rows, of, "whole numbers from 0", fix)


def _fix_count(name: str) -> str:
    return f"correct column '{name}' or name another with {argument('count')}"


def _refuse(what: str, rows: int, of: int, allowed: str | None, fix: str) -> InvalidInput:
    got = f"{rows:,} such row{'s' if rows > 1 else ''} of {of:,}"
    return InvalidInput(what, got=got, allowed=allowed, fix=fix, code="unusable-values")
