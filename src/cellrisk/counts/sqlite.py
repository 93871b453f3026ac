"""Tables stored in DuckDB and SQLite files, and DuckDB relations, with each value as it is.

Both engines may take different values for one: texts under a collation, time spans of one length, in SQLite a number
and its text. Columns are brought to types under which equal values are the same values, or refused.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from cellrisk.counts.columns import ALLOWED, bare_type
from cellrisk.counts.engine import Relation, load_stream, make_view, quote_name, quote_sql, read_parquet
from cellrisk.counts.files import find_files
from cellrisk.counts.levels import label_number
from cellrisk.counts.refusals import Cause, find_cause
from cellrisk.counts.schema import locate, unknown_table
from cellrisk.errors import InvalidInput, argument

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".duckdb", ".ddb")
NAMES = {"duckdb": "DuckDB", "sqlite": "SQLite"}
AS_TEXT = re.compile(r'VARCHAR|UUID|ENUM|BIT|INTERVAL|TIME WITH TIME ZONE|U?HUGEINT|BIGNUM|"NULL"')
"""DuckDB's types whose values are compared by their text: to it, equal spans are one, and files round the others."""
AS_THEY_ARE = re.compile(r"BOOLEAN|U?(TINY|SMALL|BIG)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL|DATE|TIME(_NS)?|TIMESTAMP.*")
ROWS = 50_000
"""Rows of SQLite at a time."""
EXACT = 2**53
"""Up to here a whole number is exact as a floating-point number too."""


def find_stored(source: object) -> tuple[str, Path] | None:
    """Return the engine and the path of a database in a file, by its name or its address; None for other sources.

    >>> find_stored("duckdb://census.db") == ("duckdb", Path("census.db")), find_stored("people.csv")
    (True, None)
    """
    if not isinstance(source, str | os.PathLike):
        return None
    if isinstance(source, str) and source.partition("://")[0] in NAMES:
        scheme, _, rest = source.partition("://")
        return scheme, Path(unquote(re.split("[?#]", rest)[0]))
    return ("duckdb", Path(source)) if Path(source).suffix.lower() in SUFFIXES else None


def read_stored(
    connection: Any, engine: str, path: Path, columns: Sequence[str], table: str | None, by_declaration: bool
) -> Relation:
    """Return a table or view of a database in a file, which is opened for reading only."""
    (path,) = find_files(path)
    if table is None:
        raise InvalidInput(
            f"a {NAMES[engine]} file holds tables: which one?",
            got=path,
            fix=f"name it with {argument('table')}",
            code="no-table",
        )
    if engine == "duckdb":
        return read_duckdb(connection, path, columns, table)
    return read_sqlite(connection, path, columns, table, by_declaration)


def read_duckdb(connection: Any, path: Path, columns: Sequence[str], table: str) -> Relation:
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
        described = connection.execute(f"DESCRIBE {whole}").fetchall()
    except duckdb.PermissionException:
        raise InvalidInput(
            f"table '{table}' is a view that reads files outside the DuckDB file",
            fix="store it as a table, or read those files themselves",
            code="view-of-files",
        ) from None
    chosen = choose_columns(columns, [row[0] for row in described], [row[1] for row in described], f"table '{table}'")
    return make_view(connection, f"SELECT {chosen} FROM {whole}")


def read_relation(connection: Any, folder: Path, relation: Any, columns: Sequence[str]) -> Relation:
    """Return a DuckDB relation. It lives in its owner's connection, so its columns in use go through a file."""
    chosen = choose_columns(columns, relation.columns, [str(kind) for kind in relation.types], "the DuckDB relation")
    path = folder / "relation.parquet"
    relation.project(chosen).write_parquet(str(path))
    return read_parquet(connection, [path])


def choose_columns(columns: Sequence[str], names: Sequence[str], kinds: Sequence[str], where: str) -> str:
    """Return SQL for the columns in use as c0, c1, ..."""
    places = locate(columns, names, where)
    return ", ".join(f"{plain_form(names[old], kinds[old])} AS c{new}" for new, old in enumerate(places))


def plain_form(name: str, kind: str) -> str:
    """Return SQL for a column of a type, under which equal values are the same values.

    >>> plain_form("stay", "INTERVAL"), plain_form("age", "TINYINT")
    ('CAST("stay" AS VARCHAR) COLLATE C', '"age"')
    """
    bare = bare_type(kind)
    if AS_TEXT.fullmatch(bare):
        return f"CAST({quote_name(name)} AS VARCHAR) COLLATE C"
    if AS_THEY_ARE.fullmatch(bare):
        return quote_name(name)
    shown = "list" if kind.endswith("]") else bare.lower()
    raise InvalidInput(f"column '{name}' holds {shown} values", allowed=ALLOWED, code="column-type")


def read_sqlite(connection: Any, path: Path, columns: Sequence[str], table: str, by_declaration: bool) -> Relation:
    """Return the columns in use of a table in a SQLite file, all from one moment, by the types declared for them.

    In SQLite each value has a type of its own. A value of another type than the declared one is refused, or missing if
    by_declaration: then no record decides how the others are read.
    """
    import pyarrow as pa

    with (
        refusals_of_sqlite(),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)) as database,
    ):
        database.execute("BEGIN")
        tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        names = [name for (name,) in tables]
        bare = table if table in names else table.removeprefix("main.")
        if bare not in names:
            raise unknown_table(table, names, "the SQLite file")
        rows = quote_name(bare)
        declared = {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({rows})").fetchall()}
        locate(columns, list(declared), f"table '{table}'")
        forms = [read_form(quote_name(name), declared[name]) for name in columns]
        if not by_declaration:
            for name, (kind, form) in zip(columns, forms, strict=True):
                check_types(database, rows, name, form, pa.types.is_string(kind))
        schema = pa.schema([(f"c{place}", kind) for place, (kind, _) in enumerate(forms)])
        cursor = database.execute(f"SELECT {', '.join(form for _, form in forms)} FROM {rows}")

        def batches() -> Iterator[pa.RecordBatch]:
            while part := cursor.fetchmany(ROWS):
                arrays = [
                    pa.array(as_kind(values, kind), kind)
                    for values, kind in zip(zip(*part, strict=True), schema.types, strict=True)
                ]
                yield pa.record_batch(arrays, schema=schema)

        return load_stream(connection, pa.RecordBatchReader.from_batches(schema, batches()))


def read_form(name: str, declared: str) -> tuple[pa.DataType, str]:
    """Return the Arrow type of a column by what was declared for it, and SQL in which values of other types are NULL.

    Where nothing is declared, or dates and times, which SQLite does not have, a value is its text.
    """
    import pyarrow as pa

    kind = declared.upper()
    if kind in ("BOOLEAN", "BOOL"):
        return pa.bool_(), f"CASE WHEN typeof({name}) = 'integer' AND {name} IN (0, 1) THEN {name} END"
    if "INT" in kind:
        return pa.int64(), f"CASE WHEN typeof({name}) = 'integer' THEN {name} END"
    if any(word in kind for word in ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL")):
        whole = f"typeof({name}) = 'integer' AND {name} BETWEEN {-EXACT} AND {EXACT}"
        return pa.float64(), f"CASE WHEN typeof({name}) = 'real' OR {whole} THEN CAST({name} AS REAL) END"
    return pa.string(), f"CASE WHEN typeof({name}) <> 'blob' THEN {name} END"


def check_types(database: Any, rows: str, name: str, form: str, text: bool) -> None:
    """Refuse a column with values of other types than the declared one, and one that mixes numbers with texts."""
    column = quote_name(name)
    other = database.execute(f"SELECT 1 FROM {rows} WHERE {column} IS NOT NULL AND {form} IS NULL LIMIT 1").fetchall()
    mixed = f"SELECT count(DISTINCT typeof({column}) = 'text') FROM {rows} WHERE {column} IS NOT NULL"
    if other or (text and database.execute(mixed).fetchall()[0][0] > 1):
        raise InvalidInput(
            f"column '{name}' holds values of several types, or of another type than the declared one",
            fix="store it as one type, for instance text",
            code="column-type",
        )


def as_kind(values: Sequence[Any], kind: pa.DataType) -> Sequence[Any]:
    """Return values of SQLite for a column of a type: truth values are stored as 0 and 1, a number may be a text."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return [None if value is None else bool(value) for value in values]
    if pa.types.is_string(kind):
        return [value if value is None or isinstance(value, str) else label_number(repr(value)) for value in values]
    return values


@contextmanager
def refusals_of_sqlite() -> Iterator[None]:
    """Replace what SQLite says, which may quote the data."""
    try:
        yield
    except sqlite3.Error as error:
        raise find_cause(str(error), CAUSES) or InvalidInput(
            f"the SQLite file cannot be read ({type(error).__name__})",
            fix="check that it is whole and not locked",
            code="damaged",
        ) from None


CAUSES: tuple[Cause, ...] = (
    ("decode to UTF-8", "the SQLite file holds text that is not UTF-8", "correct it", "encoding"),
    ("not a database", "the file is not a SQLite database, whatever its name says", "name a SQLite file", "damaged"),
)
