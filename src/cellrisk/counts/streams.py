"""Streams of Arrow batches: datasets, readers, and frames of any library that gives them.

A stream is read once, batch by batch, into a Parquet file in the engine's private folder: a source that can be read
only once, or that is larger than memory, is then counted like any other file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from cellrisk.counts.frames import assemble, convert, list_types, simplify
from cellrisk.counts.schema import locate
from cellrisk.errors import CellriskError, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

DATASETS = {("pyarrow", "Dataset"), ("pyarrow", "Scanner")}
ROWS, BYTES = 2**18, 2**26
"""What is written at a time: so many rows, or so many bytes."""
NAME = "stream.parquet"
_READ: WeakSet[Any] = WeakSet()
"""Streams that cannot be read again."""


def is_stream(source: object) -> bool:
    """Whether the source gives Arrow batches."""
    return hasattr(source, "__arrow_c_stream__") or is_dataset(source)


def is_dataset(source: object) -> bool:
    return not DATASETS.isdisjoint(list_types(source))


def unwrap(source: Any) -> Any:
    """The frame that a narwhals frame stands for; any other source as it is."""
    of_narwhals = type(source).__module__.partition(".")[0] == "narwhals"
    return source.to_native() if of_narwhals and hasattr(source, "to_native") else source


def plan_stream(source: Any, columns: Sequence[str], by_declaration: bool = False) -> Callable[[Path], Path]:
    """Checks the columns of a stream; the result writes those in use, as c0, c1, ..., to a file in a folder.

    by_declaration: whether a stream without records is taken for a table without records.
    """
    if hasattr(source, "scanner"):  # a dataset reads the columns in use alone
        locate(columns, source.schema.names, "the Arrow dataset")
    elif hasattr(source, "schema") and hasattr(source.schema, "names"):
        locate(columns, source.schema.names, "the Arrow stream")

    def batches() -> Iterator[pa.Table]:
        with refusals_of_the_owner():
            reader = open_reader(source, columns)
            places = locate(columns, reader.schema.names, "the Arrow stream")
            named = list(zip(columns, places, strict=True))
            some, once = False, type(source).__name__ == "RecordBatchReader"
            read_before = once and source in _READ
            if once:
                _READ.add(source)
            for batch in reader:
                if batch.num_rows:
                    some = True
                    yield assemble({name: convert(name, batch.column(place), simplify) for name, place in named})
            if read_before or not (some or by_declaration):
                raise InvalidInput(
                    "the Arrow stream has no records, or has been read before",
                    got="0 rows",
                    fix="make it again, or read it into a table first: a stream can be read only once",
                )

    return lambda folder: write_batches(batches(), folder, len(columns))


def open_reader(source: Any, columns: Sequence[str]) -> Any:
    import pyarrow as pa

    if hasattr(source, "scanner"):
        return source.scanner(columns=list(columns)).to_reader()
    if is_dataset(source):
        return source.to_reader()
    try:
        return pa.RecordBatchReader.from_stream(source)
    except pa.ArrowInvalid:
        raise InvalidInput(
            "the source is not of a kind that can be read", got="an Arrow stream without columns"
        ) from None


@contextmanager
def refusals_of_the_owner() -> Iterator[None]:
    """A stream runs its owner's code, whose errors may quote the data."""
    try:
        yield
    except (CellriskError, MemoryError):
        raise
    except Exception as error:
        raise InvalidInput(f"the Arrow stream cannot be read ({type(error).__name__})") from None


def write_batches(batches: Iterable[pa.Table], folder: Path, columns: int = 0) -> Path:
    """Batches of one type as one file, a good many rows at a time; without any, so many columns of text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, writer, waiting = folder / NAME, None, []
    try:
        for batch in batches:
            writer = writer or pq.ParquetWriter(path, batch.schema)
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= ROWS or sum(each.nbytes for each in waiting) >= BYTES:
                writer.write_table(pa.concat_tables(waiting), ROWS)
                waiting = []
        if writer is not None and waiting:
            writer.write_table(pa.concat_tables(waiting), ROWS)
        if writer is None and columns:
            pq.write_table(pa.table({f"c{place}": pa.array([], pa.string()) for place in range(columns)}), path)
    finally:
        if writer is not None:
            writer.close()
    return path
