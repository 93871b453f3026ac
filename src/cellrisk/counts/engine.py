"""The embedded engine: an in-memory DuckDB behind Ibis that keeps to itself and leaves nothing behind."""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.resources import Resources, reported
from cellrisk.errors import InvalidInput
from cellrisk.system.scratch import private_folder

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends.duckdb import Backend

LONGEST_LINE = 32_000_000
"""Bytes of a line of text, or of a field over several lines, that the engine reads."""


@contextmanager
def embedded_engine(resources: Resources) -> Iterator[tuple[Backend, Path]]:
    """A DuckDB and its private folder, into which it spills. It reads no network, and both are gone after the block."""
    import ibis

    with warnings.catch_warnings(), private_folder() as folder:
        # Ibis 12 calls a method that DuckDB 2 has renamed; nothing here or a user can do about it.
        warnings.filterwarnings("ignore", message="fetch_arrow_table", category=DeprecationWarning)
        connection = ibis.duckdb.connect(
            temp_directory=str(folder / "spill"),
            memory_limit=f"{resources.memory}B",
            preserve_insertion_order=False,
            autoinstall_known_extensions=False,
            autoload_known_extensions=False,
        )
        try:
            with reported(connection.con, resources.progress):
                yield connection, folder
        finally:
            connection.disconnect()


def make_view(connection: Backend, query: str, columns: Mapping[str, Any] | None = None) -> ir.Table:
    """A query of DuckDB's as a table, computed each time it is asked. ``columns``: as `name_table` takes them."""
    name = f"view_{uuid.uuid4().hex}"
    connection.con.execute(f"CREATE TEMP VIEW {name} AS {query}")
    return name_table(connection, name, columns)


def name_table(connection: Backend, name: str, columns: Mapping[str, Any] | None = None) -> ir.Table:
    """A table of the engine, with the columns and types that it is known to have; without them, DuckDB is asked.

    It tells them when it plans a query. Ibis has it describe the table, which takes five times as long.
    """
    import ibis.expr.operations as ops
    from ibis.expr.schema import Schema

    if columns is None:
        planned, read_type = connection.con.sql(f"FROM {name}"), connection.compiler.type_mapper.from_string
        columns = {column: read_type(str(kind)) for column, kind in zip(planned.columns, planned.types, strict=True)}
    table: ir.Table = ops.DatabaseTable(name, Schema(columns), connection, ops.Namespace()).to_expr()
    return table


def read_parquet(
    connection: Backend, paths: Sequence[Path], chosen: str = "*", names: Sequence[str] = (), **settings: bool
) -> ir.Table:
    """Columns of Parquet files. Their statistics leave NaN out, and DuckDB would conclude that there is none.

    ``chosen``: the columns in SQL. ``names``: names for the first columns of the files, whatever they are called there.
    """
    listed = ", ".join(quote_sql(literal_path(path)) for path in paths)
    options = "".join(f", {name} = {value}" for name, value in {"can_have_nan": True, **settings}.items())
    renamed = f" AS files({', '.join(map(quote_name, names))})" if names else ""
    return make_view(connection, f"SELECT {chosen} FROM read_parquet([{listed}]{options}){renamed}")


def literal_path(path: Path) -> str:
    """The path with the engine's own wildcards switched off.

    >>> literal_path(Path("a[1]*.csv"))
    'a[[]1][*].csv'
    """
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def quote_sql(text: str) -> str:
    """A text as an SQL literal.

    >>> quote_sql("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A name as an SQL identifier.

    >>> print(quote_name("hours per week"))
    "hours per week"
    """
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def plain_refusals() -> Iterator[None]:
    """Turns an engine's exception, which may quote the data, into one line that does not."""
    try:
        yield
    except MemoryError:
        raise InvalidInput(OUT_OF_MEMORY, fix=LESS_MEMORY) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"the source or the temporary folder cannot be used: {reason}") from None
    except Exception as error:
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # Ctrl-C, as DuckDB says it
            raise KeyboardInterrupt from None
        if not is_of_an_engine(error):
            raise
        raise explain_failure(error) from None


def is_of_an_engine(error: Exception) -> bool:
    """Whether the exception's class comes from an engine; looks at names, so that no engine is loaded."""
    return any(kind.__module__.partition(".")[0] in ENGINES for kind in type(error).__mro__)


ENGINES = ("duckdb", "_duckdb", "ibis", "pyarrow", "sqlglot")
OUT_OF_MEMORY = "the table does not fit into memory and the temporary folder"
LESS_MEMORY = "use fewer or coarser quasi-identifiers, or free memory and disk"


def explain_failure(error: Exception) -> InvalidInput:
    """What can be said of an engine's exception without its text, which may hold data: its kind and a line number.

    >>> failure = ValueError("CSV Error on Line: 3 Original Line: a,b,c Expected Number of Columns: 2 Found: 3")
    >>> print(explain_failure(failure))
    the CSV source cannot be read: line 3 has 3 fields, the header has 2; correct that line
    """
    text, kind = str(error), type(error).__name__
    if "OutOfMemory" in kind or "No space left" in text:
        return InvalidInput(OUT_OF_MEMORY, fix=LESS_MEMORY)
    if "CSV Parser state machine" in text:
        return InvalidInput(
            "the CSV source cannot be read: its line endings are mixed, or a quotation mark is out of place",
            fix="write it again with one kind of line ending",
        )
    if "Parallel CSV Reader" in text:
        return InvalidInput(
            "the CSV source cannot be read: a line of it is too long, or a quotation mark is never closed",
            fix="check its line ends and quotation marks",
        )
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line:
        place = f"the CSV source cannot be read: line {int(line[1]):,}"
        fields = re.findall(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
        if fields:
            expected, found = fields[-1]
            return InvalidInput(f"{place} has {found} fields, the header has {expected}", fix="correct that line")
        if "Maximum line size" in text:
            return InvalidInput(
                f"{place} is longer than {LONGEST_LINE // 10**6} MB", fix="leave that column out, or convert to Parquet"
            )
        if "nterminated quote" in text:
            return InvalidInput(f"{place} opens a quotation mark that is never closed", fix="correct that line")
        if "unicode" in text.lower():
            return InvalidInput(f"{place} is not UTF-8 text", fix="save the file as UTF-8")
        return InvalidInput(place, fix="correct that line, or its quotation marks")
    return InvalidInput(f"the engine could not read the source ({kind})", fix="check that the file is whole")
