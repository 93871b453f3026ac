"""Sources: whatever holds the records, as a relation of DuckDB with the columns in use, c0, c1, ... in their order.

DuckDB itself reads files and frames. A database or a Spark cluster groups its rows by the columns in use and sends one
row for each combination that occurs.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from cellrisk.counts.columns import bare_type, check_type, is_numeric, is_text
from cellrisk.counts.engine import (
    LONGEST_LINE,
    Relation,
    Resources,
    assemble,
    define,
    embedded_engine,
    has_type,
    load_stream,
    quote_name,
    quote_path,
    quote_sql,
    read_parquet,
    redacted,
    stack,
)
from cellrisk.counts.files import (
    FEATHER,
    LINES,
    OTHER_FORMATS,
    SPREADSHEETS,
    are_parquet,
    check_file,
    copy_plain,
    describe_text,
    find_files,
    find_stored,
    is_address,
    refusals_of_the_system,
)
from cellrisk.counts.files import is_text as is_text_file
from cellrisk.counts.schema import AskedColumns, Schema, locate, refuse_counts, unknown_table
from cellrisk.errors import CellriskError, InvalidInput, argument
from cellrisk.system.atomic import keep_inputs
from cellrisk.system.choices import EngineName, list_words, require_word

if TYPE_CHECKING:
    import pyarrow as pa


KINDS_OF_SOURCES = (
    "a path or glob of CSV or Parquet files, a DuckDB file or relation, a pandas, polars or narwhals frame, a pyarrow "
    "table or dataset, any stream of Arrow batches"
)
FIRST_ROWS = 20_000
"""Rows of a text that show whether there are few kinds of them."""
COMPARED_AS_TEXT = ("UUID", "ENUM", "BIT", "TIME WITH TIME ZONE", "HUGEINT", "UHUGEINT", "BIGNUM", '"NULL"', "VARCHAR")
"""Types whose values are compared by their text: files round some of them, and a collation makes texts equal."""


@contextmanager
def open_source(
    source: Any,
    columns: Sequence[str],
    resources: Resources,
    *,
    table: str | None = None,
    engine: str | None = None,
    encoding: str | None = None,
    by_declaration: bool = False,
    may_stay: bool = False,
) -> Iterator[Any]:
    """Open the columns in use as a relation for the length of the block.

    may_stay: whether the caller counts on the cluster what has too many combinations of values in Spark.
    encoding: that of text files that are not UTF-8. by_declaration: if each value has a type of its own, as in SQLite,
    a column has the type that was declared for it, whatever it holds: no record may decide how the others are read.
    """
    if engine is not None:
        require_word("engine", engine, list_words(EngineName))
    if type(source).__module__.startswith("narwhals"):
        source = source.to_native()
    keep_inputs("the records", *list_files_of(source))
    with redacted(), embedded_engine(resources) as (connection, folder):
        reader = Reader(connection, folder, columns, table, encoding, by_declaration)
        if engine == "spark" or has_type(source, ("pyspark",), "DataFrame"):
            from cellrisk.counts.spark import open_spark

            with open_spark(connection, source, columns, resources.most_cells, may_stay) as rows:
                if rows.size > resources.most_cells:
                    yield rows
                    return
                relation = load_stream(connection, rows.stream())
            yield relation
        elif stored := find_stored(source):
            yield reader.read_stored(*stored)
        elif is_address(source):
            from cellrisk.counts.database import read_server

            yield read_server(connection, source, table, columns)
        elif isinstance(source, str | os.PathLike):
            yield reader.read_files(find_files(source))
        else:
            yield reader.read_object(source)


@contextmanager
def open_records(
    source: Any,
    schema: Schema,
    resources: Resources,
    *,
    table: str | None = None,
    engine: str | None = None,
    encoding: str | None = None,
    count_option: str | None = None,
    may_stay: bool = False,
) -> Iterator[Any]:
    """Open the columns of a schema; refuse a source with a column named like counts of which the schema says nothing.

    count_option: what names that column on the command line, if it is not the option of ``count``.
    """
    asked, strict = AskedColumns(schema.stored), schema.outside != "drop"
    options: Any = {"table": table, "engine": engine, "encoding": encoding, "may_stay": may_stay}
    with open_source(source, asked, resources, by_declaration=not strict, **options) as records:
        if schema.count is None:
            refuse_counts(asked.others, count_option)
        yield lengthen(records, schema) if schema.wide else records


def lengthen(records: Relation, schema: Schema) -> Relation:
    """Return a wide table with one row for each cell and level."""
    n_quasi = len(schema.quasi_identifiers)
    names = {f"c{index}": f"c{index}" for index in range(n_quasi)}
    counts = [f"c{n_quasi + index}" for index in range(len(schema.wide))]
    types = {records.types[count] for count in counts}
    if len(types) > 1:
        kind = "DOUBLE" if all(map(is_numeric, types)) else "VARCHAR"
        counts = [f"{count}::{kind}" for count in counts]
    parts = [
        records.select({**names, f"c{n_quasi}": quote_sql(level), f"c{n_quasi + 1}": count})
        for level, count in zip(schema.wide, counts, strict=True)
    ]
    return stack(parts)


def list_files_of(source: object) -> list[Path]:
    """Return the files that a source is read from, as far as its name tells: a path, those of a glob, a database's.

    >>> [path.name for path in list_files_of("sqlite://people.db")]
    ['people.db']
    """
    if not isinstance(source, str | os.PathLike):
        return []
    given = os.fspath(source)
    if is_address(given):
        path = str((find_stored(given) or ("", ""))[1])
        return [Path(file) for file in sorted({path, path.lstrip("/")}) if file]
    try:
        return list(find_files(given))
    except InvalidInput:
        return []


@dataclass(frozen=True)
class Reader:
    """Brings the columns in use of one source into DuckDB."""

    connection: Any
    folder: Path
    """A private one, for copies."""
    columns: Sequence[str]
    table: str | None
    encoding: str | None
    by_declaration: bool

    def read_stored(self, engine: str, name: Path) -> Relation:
        """Return a table or view of a database in a file."""
        (path,) = find_files(name)
        if self.table is None:
            what, fix = "a file of a database holds tables: which one?", f"name it with {argument('table')}"
            raise InvalidInput(what, got=path, fix=fix, code="no-table")
        if engine == "duckdb":
            return read_duckdb(self.connection, path, self.columns, self.table)
        from cellrisk.counts.database import read_sqlite

        return read_sqlite(self.connection, path, self.table, self.columns, self.by_declaration)

    def read_object(self, source: Any) -> Relation:
        """Return a relation of DuckDB, a frame, a dataset or a stream."""
        named = f"{type(source).__module__}.{type(source).__qualname__}".removeprefix("builtins.")
        self.refuse_table(named)
        if self.encoding is not None:
            raise InvalidInput("only text files have an encoding to name", got=named, code="encoding")
        if type(source).__name__ == "DuckDBPyRelation":
            path = self.folder / "relation.parquet"  # it lives in its owner's connection
            source.project(choose_columns(self.columns, source, "the DuckDB relation")).write_parquet(str(path))
            return read_parquet(self.connection, [path])
        frames = has_type(source, ("polars", "pandas", "pyarrow"), "LazyFrame", "DataFrame", "Dataset", "Scanner")
        if frames or hasattr(source, "__arrow_c_stream__"):
            return load_stream(self.connection, read_frame(source, self.columns, self.by_declaration))
        what = "the source is not of a kind that can be read"
        raise InvalidInput(what, got=named, allowed=KINDS_OF_SOURCES, code="source")

    def refuse_table(self, got: str) -> None:
        """Refuse the name of a table that the source does not have."""
        if self.table is not None:
            what = "names a table of a database, or a sheet of a workbook, and this source is neither"
            fix = f"give a database by its address, such as sqlite://people.db, or leave {argument('table')} out"
            raise InvalidInput(what, option="table", got=got, fix=fix, code="no-tables")

    def read_files(self, files: Sequence[Path]) -> Relation:
        """Read files of one kind, checked one by one, as one table."""
        suffix, others = files[0].suffix.lower(), [path for path in files if path.suffix.lower() in OTHER_FORMATS]
        if suffix not in SPREADSHEETS:
            self.refuse_table("a file")
        if others and len(files) > 1:
            got = f"{len(files)} files, {others[0]} too"
            raise InvalidInput("files of this kind are read one at a time", got=got, code="file-kind")
        if self.encoding is not None and not all(map(is_text_file, files)):
            raise InvalidInput("only text has an encoding to name", got=files[0], fix="leave it out", code="encoding")
        if others:
            from cellrisk.counts.other_formats import ask_worker, read_lines, refusals_of_the_reader, unpack

            check_file(files[0], may_be_empty=self.by_declaration and suffix in LINES)
            if suffix == ".zip":
                return self.read_files([unpack(files[0], self.folder)])
            if suffix in FEATHER:
                with refusals_of_the_reader(files[0]):
                    dataset = importlib.import_module("pyarrow.dataset").dataset(str(files[0]), format="feather")
                    return load_stream(self.connection, open_stream(dataset, self.columns, self.by_declaration))
            if suffix in LINES:
                return read_lines(self.connection, files[0], self.columns, self.by_declaration)
            return read_parquet(self.connection, [ask_worker(files[0], self.table, self.columns, self.folder)])
        return self.read_parquet(files) if are_parquet(files) else self.read_text(files)

    def read_text(self, files: Sequence[Path]) -> Relation:
        """Read delimited text, every field as text, nothing guessed by DuckDB.

        It is parsed once, into a table. Its rows are grouped on the way if there are few kinds of them.
        """
        groups: dict[tuple[str, str], list[str]] = {}
        for path in files:
            plain = copy_plain(path, self.encoding, self.folder)
            delimiter, names = describe_text(path, plain, self.columns)
            places = locate(self.columns, names, f"'{path.name}'", first_line=True)
            chosen = ", ".join(f"f{old} AS c{new}" for new, old in enumerate(places))
            fields = ", ".join(f"'f{index}': 'VARCHAR'" for index in range(len(names)))
            layout = f"columns={{{fields}}}, delim={quote_sql(delimiter)}"
            groups.setdefault((chosen, layout), []).append(quote_path(plain))
        parsed = [
            f"SELECT {chosen} FROM read_csv([{', '.join(paths)}], {layout}, auto_detect=false, header=true, "
            f"quote='\"', escape='\"', compression='none', max_line_size={LONGEST_LINE})"
            for (chosen, layout), paths in groups.items()
        ]
        rows = f"({' UNION ALL '.join(parsed)})"
        count = f"SELECT count(*) FROM (SELECT DISTINCT * FROM (FROM {rows} LIMIT {FIRST_ROWS}))"
        (kinds,), *_ = self.connection.execute(count).fetchall()
        grouped = f"SELECT *, count(*) AS n FROM {rows} GROUP BY ALL"
        return define(self.connection, "TABLE", grouped if kinds <= FIRST_ROWS // 4 else f"FROM {rows}")

    def read_parquet(self, files: Sequence[Path]) -> Relation:
        """Read Parquet files; if they give a column different types of numbers or times, DuckDB uses the wider one."""
        groups: dict[tuple[str, tuple[str, ...], bool, str], list[Path]] = {}
        for path in files:
            groups.setdefault(plan_parquet(path, self.columns), []).append(path)
        relations = [
            read_parquet(self.connection, paths, chosen, names, folders)
            for (chosen, names, folders, _), paths in groups.items()
        ]
        for index, name in enumerate(self.columns):
            if len({is_text(relation.types[f"c{index}"]) for relation in relations}) > 1:
                what = f"the Parquet files give column '{name}' types that do not fit together"
                raise InvalidInput(what, fix="write them with the same types", code="column-type")
        return stack(relations)


def plan_parquet(path: Path, columns: Sequence[str]) -> tuple[str, tuple[str, ...], bool, str]:
    """Return SQL for the columns in use of a Parquet file, names for all columns that it holds, whether folders
    (``year=2020/``) name some, and the types. The columns are read by place: names may repeat but for their case."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with refusals_of_the_system(path):
        try:
            schema = pq.read_schema(path)
        except pa.ArrowInvalid:
            what = "the file is not Parquet, or is cut short or encrypted"
            raise InvalidInput(what, got=path, fix="write it again", code="damaged") from None
    folders = [folder.partition("=")[0] for folder in path.parts[:-1] if "=" in folder[1:]]
    stored = tuple(f"/{index}" for index in range(len(schema.names)))  # no folder has a slash
    chosen, places = [], locate(columns, [*schema.names, *folders], f"'{path.name}'")
    for new, (name, old) in enumerate(zip(columns, places, strict=True)):
        value = quote_name([*stored, *folders][old])
        if old < len(stored):
            convert(name, schema.types[old], check_exact)
        chosen.append(f"{value} AS c{new}")
    return ", ".join(chosen), stored, max(places, default=0) >= len(stored), str(schema.types)


def read_duckdb(connection: Any, path: Path, columns: Sequence[str], table: str) -> Relation:
    """Return a table or view of a DuckDB file, which is opened for reading only."""
    import duckdb

    schema, name = table.rpartition(".")[::2]
    connection.execute(f"ATTACH {quote_sql(str(path))} AS source (READ_ONLY)")
    connection.execute("USE source")  # so that its views find their tables
    connection.execute("SET enable_external_access = false")  # and nothing else: a view may name any file
    tables = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal"
    ).fetchall()
    if ((schema or "main"), name) not in tables:
        names = [view if owner == "main" else f"{owner}.{view}" for owner, view in tables]
        raise unknown_table(table, names, "the DuckDB file")
    whole = f"source.{quote_name(schema or 'main')}.{quote_name(name)}"
    try:
        chosen = choose_columns(columns, connection.sql(f"FROM {whole}"), f"table '{table}'")
    except duckdb.PermissionException:
        what, fix = f"table '{table}' is a view that reads files outside the DuckDB file", "store it as a table"
        raise InvalidInput(what, fix=fix, code="view-of-files") from None
    return define(connection, "VIEW", f"SELECT {chosen} FROM {whole}")


def choose_columns(columns: Sequence[str], relation: Any, where: str) -> str:
    """Return SQL for the columns in use as c0, c1, ..., under which equal values are the same values."""
    chosen = []
    for new, old in enumerate(locate(columns, relation.columns, where)):
        kind, name = str(relation.types[old]), quote_name(relation.columns[old])
        check_type(relation.columns[old], kind)
        if bare_type(kind) in COMPARED_AS_TEXT:
            name = f"CAST({name} AS VARCHAR) COLLATE C"
        chosen.append(f"{name} AS c{new}")
    return ", ".join(chosen)


TO_TEXT = "convert it to text"
MOST_DIGITS = 38
"""Digits of a decimal number that DuckDB holds."""
READ: WeakSet[Any] = WeakSet()
"""Streams that cannot be read again."""


def read_frame(source: Any, columns: Sequence[str], by_declaration: bool = False) -> Any:
    """Return the columns in use as c0, c1, ...: a table, or a stream that is read once.

    by_declaration: whether a stream without records is a table without records; else it is refused.
    """
    with refusals_of_the_owner():
        if has_type(source, ("polars",), "LazyFrame", "DataFrame"):
            locate(columns, source.collect_schema().names(), "the polars frame")
            source = source.lazy().select(list(columns)).collect().to_arrow()
        if has_type(source, ("pandas",), "DataFrame"):
            places = locate(columns, [str(name) for name in source.columns], "the pandas frame")
            series = [source.iloc[:, index] for index in places]
            return assemble(convert(name, values, pandas_array) for name, values in zip(columns, series, strict=True))
        if has_type(source, ("pyarrow",), "Table", "RecordBatch"):
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
    return assemble(convert(name, rows.column(index), simplify) for name, index in zip(columns, places, strict=True))


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
