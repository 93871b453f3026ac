"""Sources: whatever holds the records, as a relation of DuckDB with the columns in use, c0, c1, ... in their order.

DuckDB itself reads files and frames. A database or a Spark cluster groups its rows by the columns in use and sends one
row for each combination that occurs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellrisk.counts.columns import bare_type, check_type, is_numeric, is_text
from cellrisk.counts.engine import (
    Relation,
    Resources,
    define,
    embedded_engine,
    load_stream,
    quote_name,
    quote_path,
    quote_sql,
    read_parquet,
    stack,
)
from cellrisk.counts.files import (
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
from cellrisk.counts.frames import check_exact, convert, has_type, is_frame, read_frame
from cellrisk.counts.refusals import LONGEST_LINE, redacted
from cellrisk.counts.schema import AskedColumns, Schema, locate, refuse_counts, unknown_table
from cellrisk.errors import InvalidInput, argument
from cellrisk.system.atomic import keep_inputs
from cellrisk.system.choices import EngineName, list_words, require_word

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
        if engine == "spark" or has_type(source, "pyspark", "DataFrame"):
            from cellrisk.counts.spark import open_spark

            with open_spark(connection, source, columns, resources.most_cells, may_stay) as rows:
                if rows.size > resources.most_cells:
                    yield rows
                    return
                relation = load_stream(connection, rows.stream())
            yield relation
        elif find_stored(source) is not None or is_address(source):
            yield reader.read_database(source)
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
    names = {f"c{place}": f"c{place}" for place in range(n_quasi)}
    counts = [f"c{n_quasi + place}" for place in range(len(schema.wide))]
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

    def read_database(self, source: Any) -> Relation:
        """Return a table or view of a database, which is a file or answers at an address."""
        stored = find_stored(source)
        if stored is None:
            from cellrisk.counts.database import read_server

            return read_server(self.connection, source, self.table, self.columns)
        engine, (path,) = stored[0], find_files(stored[1])
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
        if is_frame(source):
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
            from cellrisk.counts.other_formats import read_other, unpack

            check_file(files[0], may_be_empty=self.by_declaration and suffix in LINES)
            if suffix == ".zip":
                return self.read_files([unpack(files[0], self.folder)])
            return read_other(self.connection, files[0], self.columns, self.table, self.by_declaration, self.folder)
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
            fields = ", ".join(f"'f{place}': 'VARCHAR'" for place in range(len(names)))
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
        few = kinds <= FIRST_ROWS // 4
        query = f"SELECT *, count(*) AS n FROM {rows} GROUP BY ALL" if few else f"FROM {rows}"
        return define(self.connection, "TABLE", query)

    def read_parquet(self, files: Sequence[Path]) -> Relation:
        """Read Parquet files; if they give a column different types of numbers or times, DuckDB uses the wider one."""
        groups: dict[tuple[str, tuple[str, ...], bool, str], list[Path]] = {}
        for path in files:
            groups.setdefault(plan_parquet(path, self.columns), []).append(path)
        relations = []
        for (chosen, names, folders, _), paths in groups.items():
            hive = {"hive_types_autocast": False} if folders else {}
            relations.append(read_parquet(self.connection, paths, chosen, names, hive_partitioning=folders, **hive))
        for place, name in enumerate(self.columns):
            if len({is_text(relation.types[f"c{place}"]) for relation in relations}) > 1:
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
    stored = tuple(f"/{place}" for place in range(len(schema.names)))  # no folder has a slash
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
