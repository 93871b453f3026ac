"""Frames and streams: whatever gives Arrow batches, and pandas frames, as Arrow with the columns in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from cellrisk.counts.schema import locate
from cellrisk.errors import CellriskError, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

TO_TEXT = "convert it to text"
MOST_DIGITS = 38
"""Digits of a decimal number that DuckDB holds."""
READ: WeakSet[Any] = WeakSet()
"""Streams that cannot be read again."""


def has_type(source: object, library: str, *names: str) -> bool:
    """Return whether a source is of one of a library's types; compares names, so the library is not loaded.

    >>> has_type(InvalidInput("no"), "cellrisk", "Relation", "InvalidInput")
    True
    """
    return any(kind.__module__.partition(".")[0] == library and kind.__name__ in names for kind in type(source).__mro__)


def is_frame(source: object) -> bool:
    """Return whether the source is a frame, a dataset or a stream of Arrow batches."""
    return (
        hasattr(source, "__arrow_c_stream__")
        or has_type(source, "polars", "LazyFrame")
        or has_type(source, "pandas", "DataFrame")
        or has_type(source, "pyarrow", "Dataset", "Scanner")
    )


def read_frame(source: Any, columns: Sequence[str], by_declaration: bool = False) -> Any:
    """Return the columns in use as c0, c1, ...: a table, or a stream that is read once.

    by_declaration: whether a stream without records is a table without records; else it is refused.
    """
    with refusals_of_the_owner():
        if has_type(source, "polars", "LazyFrame", "DataFrame"):
            locate(columns, source.collect_schema().names(), "the polars frame")
            source = source.lazy().select(list(columns)).collect().to_arrow()
        if has_type(source, "pandas", "DataFrame"):
            places = locate(columns, [str(name) for name in source.columns], "the pandas frame")
            series = [source.iloc[:, place] for place in places]
            return assemble(convert(name, values, pandas_array) for name, values in zip(columns, series, strict=True))
        if has_type(source, "pyarrow", "Table", "RecordBatch"):
            return take(source, columns, locate(columns, source.schema.names, "the Arrow table"))
        return open_stream(source, columns, by_declaration)


def open_stream(source: Any, columns: Sequence[str], by_declaration: bool) -> Any:
    """Return a stream of the columns in use. It reads the source batch by batch, which may be larger than memory."""
    import pyarrow as pa

    once = isinstance(source, pa.RecordBatchReader)
    read_before = once and source in READ
    if once:
        READ.add(source)
    elif hasattr(source, "scanner"):  # a dataset reads the columns in use alone
        locate(columns, source.schema.names, "the Arrow dataset")
        source = source.scanner(columns=list(columns))
    reader = source.to_reader() if hasattr(source, "to_reader") else pa.RecordBatchReader.from_stream(source)
    places = locate(columns, reader.schema.names, "the Arrow stream")
    filled = (take(batch, columns, places) for batch in reader if batch.num_rows)
    first = next(filled, None)
    if read_before or (first is None and not by_declaration):
        raise InvalidInput(
            "the Arrow stream has no records, or has been read before",
            got="0 rows",
            fix="make it again, or read it into a table first: a stream can be read only once",
            code="empty-stream",
        )
    if first is None:
        return assemble(pa.array([], pa.string()) for _ in columns)

    def batches() -> Iterator[pa.RecordBatch]:
        with refusals_of_the_owner():
            for table in chain([first], filled):
                yield from table.to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())


@contextmanager
def refusals_of_the_owner() -> Iterator[None]:
    """Replace errors of the code that makes a frame or stream, which may quote the data."""
    try:
        yield
    except (CellriskError, MemoryError):
        raise
    except Exception as error:
        raise InvalidInput(f"the frame or stream cannot be read ({type(error).__name__})", code="frame") from None


def take(rows: Any, columns: Sequence[str], places: Sequence[int]) -> pa.Table:
    """Return the columns of an Arrow table or batch at some places."""
    return assemble(convert(name, rows.column(place), simplify) for name, place in zip(columns, places, strict=True))


def assemble(arrays: Iterable[Any]) -> pa.Table:
    """Return the columns as c0, c1, ... in their order."""
    import pyarrow as pa

    return pa.table({f"c{place}": array for place, array in enumerate(arrays)})


def convert(name: str, column: Any, to_arrow: Callable[[Any], Any]) -> Any:
    """Return one column as Arrow; a refusal names the column and quotes none of its values."""
    try:
        return to_arrow(column)
    except InvalidInput as reason:
        raise InvalidInput(f"column '{name}' {reason.marked}", code="column-type") from None
    except Exception as error:  # the frame libraries quote values in errors of many classes
        raise InvalidInput(
            f"column '{name}' cannot be read, or mixes values of several types ({type(error).__name__})",
            fix=TO_TEXT,
            code="column-type",
        ) from None


def pandas_array(series: Any) -> Any:
    """Return a column of pandas as Arrow. Intervals and periods are texts."""
    import pandas as pd
    import pyarrow as pa

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        return pandas_array(pd.Series(dtype.categories)).take(codes)
    named = pd.api.types.infer_dtype(series, skipna=True) if pd.api.types.is_object_dtype(dtype) else ""
    if isinstance(dtype, pd.IntervalDtype | pd.PeriodDtype) or named in ("interval", "period"):
        series = series.map(str, na_action="ignore").astype(object)
    if named.startswith("mixed") and named != "mixed-integer-float":
        raise TypeError("several types")
    return simplify(
        pa.array(series.sparse.to_dense() if isinstance(dtype, pd.SparseDtype) else series, from_pandas=True)
    )


def simplify(array: Any) -> Any:
    """Return an Arrow array in a type that DuckDB holds exactly, or refuse it.

    Dictionaries become their values, extension types their storage, and a column of nothing becomes text.
    """
    import pyarrow as pa

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":  # DuckDB knows it
            return array
        return simplify(array.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return simplify(array.cast(kind.value_type))
    check_exact(kind)
    if pa.types.is_null(kind):
        return array.cast(pa.string())
    return array.cast(pa.decimal128(kind.precision, kind.scale)) if pa.types.is_decimal(kind) else array


def check_exact(kind: pa.DataType) -> None:
    """Refuse an Arrow type whose values DuckDB would round."""
    import duckdb
    import pyarrow as pa

    reason, fix = "", TO_TEXT
    if pa.types.is_decimal(kind) and kind.precision > MOST_DIGITS:
        reason = f"holds decimals of {kind.precision} digits, and {MOST_DIGITS} are counted exactly"
    if pa.types.is_interval(kind) or pa.types.is_duration(kind):
        reason = "holds time spans"
    fine = pa.types.is_time64(kind) or (pa.types.is_timestamp(kind) and kind.tz is not None)
    if fine and kind.unit == "ns" and duckdb.__version__.startswith("1."):
        reason, fix = "holds nanoseconds, which DuckDB rounds before version 2", "convert it to microseconds"
    if reason:
        raise InvalidInput(reason, fix=fix, code="column-type")
