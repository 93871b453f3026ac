"""Coding: the columns of a source as an engine can group, compare and add them, and where they cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from cellrisk.counts.binning import Binning
from cellrisk.counts.schema import NO_COUNT, NONE_IS_A_COLUMN, Schema
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_RECORDS = 2**53
"""Up to here every number of records is exact as a floating-point number too."""
SUPPRESSED = "where counts were suppressed, as c or <5, give those from before"
LEAVE_OUT = "correct these records, or leave them out with outside='drop'"


@dataclass(frozen=True)
class Flaw:
    """Where a record cannot be used, and what to say of it."""

    where: ir.BooleanValue
    refuse: Callable[[str], InvalidInput]
    outside: bool = False
    """Whether it is a value outside the column's domain, which a rule may leave out; else the source is not sound."""


@dataclass(frozen=True)
class Coding:
    """A source with its columns coded."""

    table: ir.Table
    """Quasi-identifiers q0, q1, ..., sensitive y0, y1, ..., counts w where there are any, and flaw0, flaw1, ..."""
    kinds: dict[str, str]
    """How the values of each column become labels, by its role: q0, q1, ..., y0, y1, ..."""
    flaws: tuple[Flaw, ...]


def code_columns(table: ir.Table, schema: Schema) -> Coding:
    """The columns c0, c1, ... of a source in their roles."""
    flaws: list[Flaw] = []
    coded: dict[str, ir.Value] = {}
    kinds: dict[str, str] = {}
    roles = [(name, f"q{place}") for place, name in enumerate(schema.quasi_identifiers)]
    roles += [(name, f"y{place}") for place, name in enumerate(schema.sensitive)]
    for place, (name, role) in enumerate(roles):
        column, binning = table[f"c{place}"], schema.binning(name)
        check_type(name, column)
        kinds[role] = kind_of(column)
        if binning is not None:
            coded[role] = code_bins(name, column, binning, flaws)
        else:
            coded[role] = code_group(column) if role.startswith("q") else code_level(column)
    if isinstance(schema.count, str):
        coded["w"] = code_count(schema.count, table[f"c{len(roles)}"], flaws)
    coded |= {f"flaw{place}": flaw.where.fill_null(False) for place, flaw in enumerate(flaws)}
    return Coding(table.select(**coded), kinds, tuple(flaws))


def kind_of(column: ir.Value) -> str:
    """How values of this column become labels."""
    kind = column.type()
    if kind.is_integer():
        return "number" if is_too_wide(kind) else "integer"
    if kind.is_boolean():
        return "boolean"
    if kind.is_floating():
        return "double" if kind.nbytes == 8 else "single"
    if kind.is_timestamp() and kind.timezone is not None:
        return "instant"
    return "number" if kind.is_decimal() else "text"


def is_too_wide(kind: Any) -> bool:
    """Whether a type of whole numbers holds some that cannot stand in a query on every engine."""
    return bool(kind.is_unsigned_integer() and kind.nbytes == 8)


def check_type(name: str, column: ir.Value) -> None:
    kind = column.type()
    if not has_plain_values(kind):
        raise InvalidInput(
            f"column '{name}' holds {type(kind).__name__.lower()} values",
            allowed="text, numbers, truth values, dates and times",
        )


def has_plain_values(kind: Any) -> bool:
    """Whether values of a type can be told apart and written as a label."""
    return not (kind.is_nested() or kind.is_binary() or kind.is_json() or kind.is_geospatial())


def is_missing(column: ir.Value) -> ir.BooleanValue:
    """Where a column has no value; NaN is none."""
    return column.isnull() | column.isnan() if column.type().is_floating() else column.isnull()


def code_group(column: ir.Value) -> ir.Value:
    """A quasi-identifier to group by: NaN is missing, -0 is 0, and a time span is its text, as 30 days are no month."""
    import ibis

    kind = column.type()
    if kind.is_interval():
        return column.cast("string")
    if not kind.is_floating():
        return column
    return ibis.cases((column.isnan(), ibis.null(kind)), (column == 0, ibis.literal(0.0, kind)), else_=column)


def code_level(column: ir.Value) -> ir.Value:
    """A sensitive value as text or as a whole number, so that it can be compared exactly on every engine."""
    import ibis

    kind = column.type()
    if kind.is_boolean():
        return ibis.cases((column, "True"), (~column, "False"))
    if kind.is_string() or (kind.is_integer() and not is_too_wide(kind)):
        return column
    return code_group(column).cast("string")


def as_number(column: ir.Value) -> ir.FloatingValue:
    """A column as floating-point numbers, through text where the type is narrower: 1.1 stays 1.1."""
    kind = column.type()
    if kind.is_string():
        return column.try_cast("float64")
    if kind.is_floating() and str(kind.copy(nullable=True)) in ("float32", "float16"):
        return column.cast("string").cast("float64")
    return column.cast("float64")


def code_bins(name: str, column: ir.Value, binning: Binning, flaws: list[Flaw]) -> ir.Value:
    """The bin number of each value, and the flaws that a binned column can have."""
    import ibis

    kind = column.type()
    if not (kind.is_numeric() or kind.is_string()) or kind.is_boolean():
        raise InvalidInput(
            f"column '{name}' is to be binned but is not numeric", got=f"type {kind}", fix=f"leave '{name}' out of bins"
        )
    number = as_number(column)
    unusable: list[ir.BooleanValue] = []

    def flaw(where: ir.BooleanValue, what: str, fix: str = LEAVE_OUT) -> None:
        unusable.append(where)
        flaws.append(Flaw(where, lambda got: InvalidInput(f"column '{name}' {what}", got=got, fix=fix), outside=True))

    # Records are searched only for flaws that values of the type can have.
    far, too_far = number.abs() > binning.reach, "holds numbers too large for bins of that width"
    if kind.is_integer():
        if binning.reach < 2.0 ** (8 * kind.nbytes):
            flaw(far, too_far, "use a larger width")
    else:
        nan = number.isnan().fill_null(False)
        if kind.is_string():
            flaw(column.notnull() & number.isnull(), "is to be binned but holds text that is not a number")
        flaw(number.isinf().fill_null(False), "is to be binned but is infinite")
        flaw(far & ~nan, too_far, "use a larger width")
        unusable.append(nan)
    if unusable:
        number = ibis.cases((reduce(or_, unusable), ibis.null("float64")), else_=number)
    return binning.expression(number)


def code_count(name: str, column: ir.Value, flaws: list[Flaw]) -> ir.FloatingValue:
    """The counts as floating-point numbers, which hold every allowed one exactly, and the flaws that they can have."""
    import ibis

    kind = column.type()
    fix = f"correct column '{name}' or name another with count="
    if name == NO_COUNT:
        fix = NONE_IS_A_COLUMN
    allowed = "whole numbers from 0"
    if kind.is_boolean() or not (kind.is_numeric() or kind.is_string()):
        raise InvalidInput(f"the count column '{name}' holds no numbers", got=f"type {kind}", allowed=allowed, fix=fix)

    number = as_number(column)
    nan = number.isnan().fill_null(False)

    def flaw(where: ir.BooleanValue, what: str, fix: str = fix) -> None:
        flaws.append(
            Flaw(
                where, lambda got: InvalidInput(f"the count column '{name}' {what}", got=got, allowed=allowed, fix=fix)
            )
        )

    flaw(column.isnull() | nan, "has missing counts")
    flaw(column.notnull() & number.isnull(), "holds text that is not a number", f"{fix}; {SUPPRESSED}")
    flaw((number < 0) & ~nan, "has negative counts")
    large = (number >= float(MOST_RECORDS)) & ~nan
    flaw(large, f"has counts of {MOST_RECORDS} or more")
    bounded = ibis.cases((nan | large | (number < 0), ibis.null("float64")), else_=number)
    flaw(bounded != bounded.floor().cast("float64"), "has fractional counts")
    return bounded
