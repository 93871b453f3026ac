"""Frames in memory: pandas, polars and pyarrow, each brought to an Arrow table of the columns in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cellrisk.counts.schema import locate
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

MIXED = ("mixed", "mixed-integer")


def list_types(source: object) -> list[tuple[str, str]]:
    """The library and the name of each type that a source has, so that the library itself need not be loaded.

    >>> list_types(InvalidInput("no"))[0]
    ('cellrisk', 'InvalidInput')
    """
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(source).__mro__]


def find_frame_reader(source: object) -> Callable[[Any, Sequence[str]], pa.Table] | None:
    """The reader for this kind of frame, or None."""
    return next((READERS[kind] for kind in list_types(source) if kind in READERS), None)


def read_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    named = zip(columns, locate(columns, [str(name) for name in frame.columns], "the pandas frame"), strict=True)
    return assemble({name: convert(name, frame.iloc[:, place], pandas_array) for name, place in named})


def read_polars(frame: Any, columns: Sequence[str]) -> pa.Table:
    lazy = type(frame).__name__ == "LazyFrame"
    locate(columns, frame.collect_schema().names() if lazy else frame.columns, "the polars frame")
    chosen = frame.select(list(columns))
    if lazy:
        try:
            chosen = chosen.collect()
        except Exception as error:  # a lazy frame runs its owner's query, whose errors may quote the data
            raise InvalidInput(f"the polars LazyFrame cannot be collected ({type(error).__name__})") from None
    return assemble({name: convert(name, chosen.get_column(name), polars_array) for name in columns})


def read_arrow(table: Any, columns: Sequence[str]) -> pa.Table:
    named = zip(columns, locate(columns, table.schema.names, "the Arrow table"), strict=True)
    return assemble({name: convert(name, table.column(place), simplify) for name, place in named})


READERS: dict[tuple[str, str], Callable[[Any, Sequence[str]], Any]] = {
    ("pandas", "DataFrame"): read_pandas,
    ("polars", "DataFrame"): read_polars,
    ("polars", "LazyFrame"): read_polars,
    ("pyarrow", "Table"): read_arrow,
    ("pyarrow", "RecordBatch"): read_arrow,
}


def convert(name: str, column: Any, to_arrow: Callable[[Any], Any]) -> Any:
    """One column as Arrow; a refusal names the column and quotes none of its values."""
    try:
        return to_arrow(column)
    except Unusable as reason:
        raise InvalidInput(f"column '{name}' {reason}", fix=reason.fix) from None
    except Exception as error:  # the frame libraries quote values in errors of many classes
        raise InvalidInput(f"column '{name}' cannot be read ({type(error).__name__})", fix=TO_TEXT) from None


class Unusable(Exception):
    """Why a column cannot be counted exactly, and what helps."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.fix = fix


def mixed() -> Unusable:
    return Unusable("mixes values of several types", "convert it to one type, for instance to text")


def pandas_array(series: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = simplify(pandas_array(pd.Series(dtype.categories)))
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        return categories.take(codes)
    if isinstance(dtype, pd.IntervalDtype | pd.PeriodDtype) or (
        pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(series, skipna=True) in ("interval", "period")
    ):
        return pa.array([None if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)])
    if isinstance(dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    if pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(series, skipna=True) in MIXED:
        raise mixed()
    return simplify(pa.array(series, from_pandas=True))


def polars_array(series: Any) -> Any:
    if str(series.dtype) == "Object":
        raise mixed()
    return simplify(series.to_arrow())


def simplify(array: Any) -> Any:
    """Dictionaries become their values, extension types their storage, a column of nothing becomes text.

    What the engine would round is brought to a type that holds it exactly, or refused.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":  # the engine knows it
            return array
        array = array.cast(kind.storage_type)
        return array.cast(pa.bool_()) if kind.extension_name == "arrow.bool8" else simplify(array)
    if pa.types.is_dictionary(kind):
        return simplify(array.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return simplify(pc.run_end_decode(array))
    check_exact(kind)
    if pa.types.is_null(kind):
        return array.cast(pa.string())
    if pa.types.is_decimal(kind):
        return array.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_float16(kind):
        return array.cast(pa.float32())
    return array.cast(pa.duration("us")) if pa.types.is_duration(kind) else array


def check_exact(kind: pa.DataType) -> None:
    """Refuses an Arrow type whose values the engine would round."""
    import pyarrow as pa

    if pa.types.is_decimal(kind) and kind.precision > MOST_DIGITS:
        raise Unusable(f"holds decimals of {kind.precision} digits, and {MOST_DIGITS} are counted exactly", TO_TEXT)
    if pa.types.is_interval(kind):
        raise Unusable("holds calendar intervals", TO_TEXT)
    fine = pa.types.is_time64(kind) or (pa.types.is_timestamp(kind) and kind.tz is not None)
    if fine and kind.unit == "ns" and not _knows_nanoseconds():
        raise Unusable("holds nanoseconds, which DuckDB rounds before version 2", "convert it to microseconds")


def _knows_nanoseconds() -> bool:
    import duckdb

    return int(duckdb.__version__.partition(".")[0]) >= 2


TO_TEXT = "convert it to text"
MOST_DIGITS = 38


def assemble(arrays: dict[str, Any]) -> pa.Table:
    """The columns as c0, c1, ... in their order."""
    import pyarrow as pa

    return pa.table({f"c{place}": array for place, array in enumerate(arrays.values())})
