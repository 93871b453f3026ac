"""Tables stored in DuckDB and SQLite files, and DuckDB relations, with each value as it is.

Both engines may take different values for one: texts under a collation, time spans of one length, in SQLite a number
and its text. Columns are brought to types under which equal values are the same values, or refused.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from cellrisk.counts.columns import ALLOWED
from cellrisk.counts.engine import Relation, make_view, quote_name, quote_sql, read_parquet
from cellrisk.counts.files import find_files
from cellrisk.counts.levels import label_number
from cellrisk.counts.schema import locate, unknown_table
from cellrisk.counts.streams import write_batches
from cellrisk.errors import InvalidInput, argument

if TYPE_CHECKING:
    import pyarrow as pa

Opener: TypeAlias = "Callable[[Any, Path], Relation]"
"""Brings the columns in use into an engine, which comes with a private folder."""
SUFFIXES = (".duckdb", ".ddb")
SCHEMES = ("duckdb", "sqlite")
NAMES = {"duckdb": "DuckDB", "sqlite": "SQLite"}
AS_TEXT = (
    *("VARCHAR", "UUID", "ENUM", "BIT", "INTERVAL", "TIME WITH TIME ZONE"),
    *("HUGEINT", "UHUGEINT", "BIGNUM", '"NULL"'),
)
"""DuckDB's types whose values are compared by their text: to it, equal spans are one, and files round the others."""
AS_THEY_ARE = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIME", "TIME_NS", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"),
    *("TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"),
)
ROWS = 50_000
"""Rows of SQLite at a time."""
TRUTHS = ("BOOLEAN", "BOOL")
FRACTIONS = ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL")
EXACT = 2**53
"""Up to here a whole number is exact as a floating-point number too."""


def find_stored(source: object) -> tuple[str, Path] | None:
    """The engine and the path of a database in a file, by its name or its address; None for any other source.

    >>> find_stored("duckdb://census.db") == ("duckdb", Path("census.db")), find_stored("people.csv")
    (True, None)
    """
    if not isinstance(source, str | os.PathLike):
        return None
    if isinstance(source, str) and source.partition("://")[0] in SCHEMES:
        scheme, _, rest = source.partition("://")
        return scheme, Path(unquote(re.split("[?#]", rest)[0]))
    return ("duckdb", Path(source)) if Path(source).suffix.lower() in SUFFIXES else None


def plan_stored(
    engine: str, path: Path, columns: Sequence[str], table: str | None, by_declaration: bool = False
) -> Opener:
    """A table or view of a database in a file, which is opened for reading only."""
    (path,) = find_files(path)
    if table is None:
        raise InvalidInput(
            f"a {NAMES[engine]} file holds tables: which one?", got=path, fix=f"name it with {argument('table')}"
        )
    if engine == "duckdb":
        return lambda connection, _: read_duckdb(connection, path, columns, table)
    return lambda connection, folder: read_parquet(
        connection, [copy_sqlite(path, columns, table, folder, by_declaration)]
    )


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
        raise unknown_table(
            table, [each if owner == "main" else f"{owner}.{each}" for owner, each in tables], "the DuckDB file"
        )
    whole = f"source.{quote_name(schema or 'main')}.{quote_name(name)}"
    try:
        described = connection.execute(f"DESCRIBE {whole}").fetchall()
    except duckdb.PermissionException:
        raise InvalidInput(
            f"table '{table}' is a view that reads files outside the DuckDB file",
            fix="store it as a table, or read those files themselves",
        ) from None
    chosen = choose_columns(columns, [row[0] for row in described], [row[1] for row in described], f"table '{table}'")
    return make_view(connection, f"SELECT {chosen} FROM {whole}")


def plan_relation(relation: Any, columns: Sequence[str]) -> Opener:
    """A DuckDB relation lives in its owner's connection: its columns in use go through a file in the private folder."""
    chosen = choose_columns(columns, relation.columns, [str(kind) for kind in relation.types], "the DuckDB relation")

    def read(connection: Any, folder: Path) -> Relation:
        path = folder / "relation.parquet"
        relation.project(chosen).write_parquet(str(path))
        return read_parquet(connection, [path])

    return read


def choose_columns(columns: Sequence[str], names: Sequence[str], kinds: Sequence[str], where: str) -> str:
    """The columns in use as c0, c1, ..., in DuckDB's words."""
    places = locate(columns, names, where)
    return ", ".join(f"{plain_form(names[old], kinds[old])} AS c{new}" for new, old in enumerate(places))


def plain_form(name: str, kind: str) -> str:
    """How a column of that type is read, so that equal values are the same values.

    >>> plain_form("stay", "INTERVAL"), plain_form("age", "TINYINT")
    ('CAST("stay" AS VARCHAR) COLLATE C', '"age"')
    """
    bare = re.sub(r"\(.*", "", kind, flags=re.DOTALL).strip()
    if bare in AS_THEY_ARE and not kind.endswith("]"):
        return quote_name(name)
    if bare in AS_TEXT and not kind.endswith("]"):
        return f"CAST({quote_name(name)} AS VARCHAR) COLLATE C"
    shown = "list" if kind.endswith("]") else bare.lower()
    raise InvalidInput(f"column '{name}' holds {shown} values", allowed=ALLOWED)


def copy_sqlite(path: Path, columns: Sequence[str], table: str, folder: Path, by_declaration: bool = False) -> Path:
    """The columns in use of a table in a SQLite file, all from one moment, as a file in the folder."""
    with refusals_of_sqlite(), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        names = [name for (name,) in found]
        bare = table if table in names else table.removeprefix("main.")
        if bare not in names:
            raise unknown_table(table, names, "the SQLite file")
        declared = read_declared(connection, quote_name(bare)) if by_declaration else None
        return copy_rows(connection, quote_name(bare), columns, f"table '{table}'", folder, declared)


def copy_rows(
    connection: Any,
    rows: str,
    columns: Sequence[str],
    where: str,
    folder: Path,
    declared: Mapping[str, str] | None = None,
) -> Path:
    """The columns in use of a table, or of a query in brackets, by the types of the values that they hold.

    declared: the type of each column, where it is read by that: then no value decides how the others are read.
    """
    head = connection.execute(f"SELECT * FROM {rows} LIMIT 0").description
    places = locate(columns, [column[0] for column in head], where)
    chosen = ", ".join(f"{quote_name(head[old][0])} AS c{new}" for new, old in enumerate(places))
    if declared is not None:
        forms = [declared_form(quote_name(head[old][0]), declared.get(head[old][0], "")) for old in places]
        chosen = ", ".join(f"{form} AS c{new}" for new, (_, form) in enumerate(forms))
        return write_batches(
            read_rows(connection, f"(SELECT {chosen} FROM {rows})", [kind for kind, _ in forms]), folder
        )
    whole = f"(SELECT {chosen} FROM {rows})"
    truths = declared_truths(connection, rows)
    kinds = [
        value_type(connection, whole, f"c{new}", columns[new], head[old][0] in truths) for new, old in enumerate(places)
    ]
    return write_batches(read_rows(connection, whole, kinds), folder)


def declared_truths(connection: Any, rows: str) -> set[str]:
    """The columns of a table that are declared to hold truth values, which SQLite stores as 0 and 1."""
    if rows.startswith("("):
        return set()
    return {name for name, kind in read_declared(connection, rows).items() if kind.upper() in TRUTHS}


def read_declared(connection: Any, table: str) -> dict[str, str]:
    """The type that a table of SQLite declares for each column; a column of any type may hold any value."""
    return {name: kind for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall()}


def declared_form(name: str, declared: str) -> tuple[pa.DataType, str]:
    """The Arrow type of a column by what was declared for it, and how it is read: values of other types are missing.

    Where nothing is declared, or dates and times, which SQLite does not have, a value is its text.
    """
    import pyarrow as pa

    kind, exact = declared.upper(), f"BETWEEN {-EXACT} AND {EXACT}"
    if kind in TRUTHS:
        return pa.bool_(), f"CASE WHEN typeof({name}) = 'integer' AND {name} IN (0, 1) THEN {name} END"
    if "INT" in kind:
        return pa.int64(), f"CASE WHEN typeof({name}) = 'integer' THEN {name} END"
    if any(word in kind for word in FRACTIONS):
        whole = f"typeof({name}) = 'integer' AND {name} {exact}"
        return pa.float64(), f"CASE WHEN typeof({name}) = 'real' OR {whole} THEN CAST({name} AS REAL) END"
    return pa.string(), f"CASE WHEN typeof({name}) <> 'blob' THEN {name} END"


def value_type(connection: Any, rows: str, place: str, name: str, truth: bool) -> pa.DataType:
    """The Arrow type that holds every value of a column exactly; in SQLite each value has a type of its own."""
    import pyarrow as pa

    found = connection.execute(f"SELECT DISTINCT typeof({place}) FROM {rows}").fetchall()
    kinds = {kind for (kind,) in found} - {"null"}
    if kinds == {"integer"}:
        other = truth and connection.execute(f"SELECT 1 FROM {rows} WHERE {place} NOT IN (0, 1) LIMIT 1").fetchall()
        return pa.bool_() if truth and not other else pa.int64()
    if kinds == {"real", "integer"}:
        wide = f"typeof({place}) = 'integer' AND NOT {place} BETWEEN {-EXACT} AND {EXACT}"
        if connection.execute(f"SELECT 1 FROM {rows} WHERE {wide} LIMIT 1").fetchall():
            raise InvalidInput(
                f"column '{name}' mixes fractions with whole numbers beyond 2^53", fix="store it as one type"
            )
        return pa.float64()
    if kinds == {"real"}:
        return pa.float64()
    if kinds <= {"text"}:
        return pa.string()
    if kinds == {"blob"}:
        raise InvalidInput(f"column '{name}' holds blob values", allowed=ALLOWED)
    raise InvalidInput(f"column '{name}' mixes values of several types", fix="store it as one type, for instance text")


def read_rows(connection: Any, rows: str, kinds: Sequence[pa.DataType]) -> Iterator[pa.Table]:
    import pyarrow as pa

    schema = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)])
    yield schema.empty_table()
    cursor = connection.execute(f"SELECT * FROM {rows}")
    while some := cursor.fetchmany(ROWS):
        columns = zip(zip(*some, strict=True), kinds, strict=True)
        yield pa.table([pa.array(as_kind(values, kind), kind) for values, kind in columns], schema=schema)


def as_kind(values: Sequence[Any], kind: pa.DataType) -> Sequence[Any]:
    """Values of SQLite for a column of that type: truth values are stored as 0 and 1, and a number may stand for a
    text."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return [None if value is None else bool(value) for value in values]
    if pa.types.is_string(kind):
        return [value if value is None or isinstance(value, str) else label_number(repr(value)) for value in values]
    return values


@contextmanager
def refusals_of_sqlite() -> Iterator[None]:
    """What SQLite says, which may quote the data, in one line that does not."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "decode to UTF-8" in text:
            raise InvalidInput("the SQLite file holds text that is not UTF-8", fix="correct it first") from None
        if "not a database" in text:
            raise InvalidInput("the file is not a SQLite database, whatever its name says") from None
        raise InvalidInput(
            f"the SQLite file cannot be read ({type(error).__name__})", fix="check that it is whole and not locked"
        ) from None
