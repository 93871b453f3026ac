"""Frames in memory: pandas, polars and pyarrow, each brought to an Arrow table of the columns in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.tables.schema import locate

if TYPE_CHECKING:
    import pyarrow as pa

MIXED = ("mixed", "mixed-integer")


def find_frame_reader(source: object) -> Callable[[Any, Sequence[str]], pa.Table] | None:
    """The reader for this kind of frame, or None; looks at the type's name, so that no frame library is loaded."""
    for kind in type(source).__mro__:
        reader = READERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if reader is not None:
            return reader
    return None


def read_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    places = locate(columns, [str(name) for name in frame.columns], "the pandas frame")
    return assemble({name: convert(name, frame.iloc[:, place], pandas_array) for name, place in pair(columns, places)})


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
    places = locate(columns, table.schema.names, "the Arrow table")
    return assemble({name: convert(name, table.column(place), simplify) for name, place in pair(columns, places)})


READERS: dict[tuple[str, str], Callable[[Any, Sequence[str]], Any]] = {
    ("pandas", "DataFrame"): read_pandas,
    ("polars", "DataFrame"): read_polars,
    ("polars", "LazyFrame"): read_polars,
    ("pyarrow", "Table"): read_arrow,
    ("pyarrow", "RecordBatch"): read_arrow,
}


def pair(columns: Sequence[str], places: Sequence[int]) -> list[tuple[str, int]]:
    return list(zip(columns, places, strict=True))


def convert(name: str, column: Any, to_arrow: Callable[[Any], Any]) -> Any:
    """One column as Arrow; a refusal names the column and quotes none of its values."""
    try:
        return to_arrow(column)
    except Mixed:
        raise InvalidInput(
            f"column '{name}' mixes values of several types", fix="convert it to one type, for instance to text"
        ) from None
    except Exception as error:  # the frame libraries quote values in errors of many classes
        raise InvalidInput(
            f"column '{name}' cannot be read ({type(error).__name__})", fix="convert it to text"
        ) from None


class Mixed(Exception):
    """A column of Python objects of several types."""


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
        raise Mixed
    return simplify(pa.array(series, from_pandas=True))


def polars_array(series: Any) -> Any:
    if str(series.dtype) == "Object":
        raise Mixed
    return simplify(series.to_arrow())


def simplify(array: Any) -> Any:
    """Dictionaries become their values, extension types their storage, and a column of nothing becomes text."""
    import pyarrow as pa

    if isinstance(array.type, pa.BaseExtensionType):
        array = array.cast(array.type.storage_type)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def assemble(arrays: dict[str, Any]) -> pa.Table:
    """The columns as c0, c1, ... in their order."""
    import pyarrow as pa

    return pa.table({f"c{place}": array for place, array in enumerate(arrays.values())})
