"""The embedded engine: an in-memory DuckDB, the SQL that is sent to it, and what may be told of its errors."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cellrisk.counts.resources import Resources, reported
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.system.interrupt import cancelled_by_signal, interrupts_delayed
from cellrisk.system.scratch import private_folder

LONGEST_LINE = 32_000_000
"""Bytes of a line of text, or of a field over several lines, that the engine reads."""


@dataclass(frozen=True)
class Relation:
    """Rows in DuckDB: a view or table with the columns c0, c1, ..., and n if a row stands for several of the source."""

    connection: Any
    name: str
    types: Mapping[str, str]
    """DuckDB's types of c0, c1, ..."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """How values of a column become labels, if its type does not tell: a number too long for any type comes as text."""
    grouped: bool = False
    """Whether it has the column n, the number of rows of the source that a row stands for."""

    @property
    def rows(self) -> str:
        """SQL for the number of the source's rows that a row stands for."""
        return "n" if self.grouped else "1"

    def select(self, columns: Mapping[str, str], where: str | None = None) -> Relation:
        """The relation with other columns, given in SQL, and with the rows that satisfy a condition alone."""
        chosen = [f"{sql} AS {name}" for name, sql in columns.items()] + (["n"] if self.grouped else [])
        condition = f" WHERE {where}" if where else ""
        made = make_view(self.connection, f"SELECT {', '.join(chosen)} FROM {self.name}{condition}")
        kept = {name: self.kinds[sql] for name, sql in columns.items() if sql in self.kinds}
        return replace(made, kinds=kept, grouped=self.grouped)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, in which {rows} stands for the relation."""
        return list(self.connection.execute(query.replace("{rows}", self.name)).fetchall())

    def read(self, most: int) -> Any:
        """Up to so many rows as an Arrow table."""
        return self.connection.sql(f"SELECT * FROM {self.name} LIMIT {most}").to_arrow_table()


@contextmanager
def embedded_engine(resources: Resources) -> Iterator[tuple[Any, Path]]:
    """A DuckDB and its private folder, into which it spills. It reads no network, and both are gone after the block."""
    with interrupts_delayed():
        import duckdb

    with private_folder() as folder:
        settings: dict[str, Any] = {
            "temp_directory": str(folder / "spill"),
            "memory_limit": f"{resources.memory}B",
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        connection = duckdb.connect(config=settings)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            with cancelled_by_signal(connection.interrupt), reported(connection, resources.progress):
                yield connection, folder
        finally:
            connection.close()


def new_name(start: str) -> str:
    """A name for a view or table that nothing has."""
    return f"{start}_{uuid.uuid4().hex}"


def make_view(connection: Any, query: str) -> Relation:
    """A query as a relation, computed each time it is asked."""
    name = new_name("view")
    connection.execute(f"CREATE TEMP VIEW {name} AS {query}")
    return name_relation(connection, name)


def name_relation(connection: Any, name: str, kinds: Mapping[str, str] | None = None) -> Relation:
    """A view or table by its name, with the types that DuckDB plans for it."""
    planned = connection.sql(f"FROM {name}")
    types = {column: str(kind) for column, kind in zip(planned.columns, planned.types, strict=True)}
    grouped = types.pop("n", None) is not None
    return Relation(connection, name, types, kinds or {}, grouped)


def load_stream(connection: Any, stream: Any, kinds: Mapping[str, str] | None = None) -> Relation:
    """An Arrow table, or a stream that is read once into a temporary table. DuckDB hides why a stream failed, so the
    first failure is noted and raised again."""
    import pyarrow as pa

    name = new_name("loaded")
    if not isinstance(stream, pa.RecordBatchReader):
        connection.register(name, stream)
        return name_relation(connection, name, kinds)
    failures: list[BaseException] = []

    def batches() -> Iterator[Any]:
        try:
            yield from stream
        except GeneratorExit:
            raise
        except BaseException as error:
            failures.append(error)
            raise

    connection.register(f"{name}_stream", pa.RecordBatchReader.from_batches(stream.schema, batches()))
    try:
        connection.execute(f"CREATE TEMP TABLE {name} AS FROM {name}_stream")
        connection.unregister(f"{name}_stream")
    except Exception:
        if failures:
            raise failures[0] from None
        raise
    return name_relation(connection, name, kinds)


def read_parquet(
    connection: Any, paths: Sequence[Path], chosen: str = "*", names: Sequence[str] = (), **settings: bool
) -> Relation:
    """Columns of Parquet files. Their statistics leave NaN out, and DuckDB would conclude that there is none.

    ``chosen``: the columns in SQL. ``names``: names for the first columns of the files, whatever they are called there.
    """
    listed = ", ".join(quote_sql(literal_path(path)) for path in paths)
    options = "".join(f", {name} = {value}" for name, value in {"can_have_nan": True, **settings}.items())
    renamed = f" AS files({', '.join(map(quote_name, names))})" if names else ""
    return make_view(connection, f"SELECT {chosen} FROM read_parquet([{listed}]{options}){renamed}")


def stack(relations: Sequence[Relation]) -> Relation:
    """The rows of several relations with the same columns."""
    if len(relations) == 1:
        return relations[0]
    return make_view(relations[0].connection, " UNION ALL ".join(f"FROM {each.name}" for each in relations))


def literal_path(path: Path) -> str:
    """The path with the engine's own wildcards switched off.

    >>> literal_path(Path("a[1]*.csv"))
    'a[[]1][*].csv'
    """
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def quote_sql(text: str) -> str:
    """A text as an SQL literal; a NUL character, which ends SQL, is spelt.

    >>> quote_sql("it's"), quote_sql("a\\0b")
    ("'it''s'", "('a' || chr(0) || 'b')")
    """
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def quote_name(name: str) -> str:
    """A name as an SQL identifier.

    >>> print(quote_name("hours per week"))
    "hours per week"
    """
    return '"' + name.replace('"', '""') + '"'


def quote_double(number: float) -> str:
    """A floating-point number as an SQL literal that is exactly it."""
    return f"'{float(number)!r}'::DOUBLE"


@contextmanager
def redacted() -> Iterator[None]:
    """Turns an engine's exception, which may quote the data, into one line that does not."""
    try:
        yield
    except CellriskError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"the source or the temporary folder cannot be used: {reason}") from None
    except Exception as error:
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # Ctrl-C, as DuckDB says it
            raise KeyboardInterrupt from None
        if not isinstance(error, MemoryError) and not comes_from(error, ENGINES):
            raise
        raise redact(error) from None


def comes_from(error: Exception, libraries: Sequence[str]) -> bool:
    """Return whether a library defines the exception's class; compares names, so no library is loaded."""
    return any(kind.__module__.partition(".")[0] in libraries for kind in type(error).__mro__)


ENGINES = ("duckdb", "_duckdb", "ibis", "pyarrow", "sqlglot")
OUT_OF_MEMORY = "the table does not fit into memory and the temporary folder"
LESS_MEMORY = "use fewer or coarser quasi-identifiers, or free memory and disk"


def redact(error: BaseException) -> InvalidInput:
    """What can be said of an engine's exception without its text, which may hold data: its kind and a line number.

    >>> failure = ValueError("CSV Error on Line: 3 Original Line: a,b,c Expected Number of Columns: 2 Found: 3")
    >>> print(redact(failure))
    the CSV source cannot be read: line 3 has 3 fields, the header has 2; correct that line
    """
    text, kind = str(error), type(error).__name__
    if isinstance(error, MemoryError) or "OutOfMemory" in kind or "No space left" in text:
        return InvalidInput(OUT_OF_MEMORY, fix=LESS_MEMORY, code="out-of-memory")
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
        return _redact_line(f"the CSV source cannot be read: line {int(line[1]):,}", text)
    return InvalidInput(f"the engine could not read the source ({kind})", fix="check that the file is whole")


def _redact_line(line: str, text: str) -> InvalidInput:
    fields = re.findall(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if fields:
        expected, found = fields[-1]
        return InvalidInput(f"{line} has {found} fields, the header has {expected}", fix="correct that line")
    if "Maximum line size" in text:
        return InvalidInput(
            f"{line} is longer than {LONGEST_LINE // 10**6} MB", fix="leave that column out, or convert to Parquet"
        )
    if "nterminated quote" in text:
        return InvalidInput(f"{line} opens a quotation mark that is never closed", fix="correct that line")
    if "unicode" in text.lower():
        return InvalidInput(f"{line} is not UTF-8 text", fix="save the file as UTF-8")
    return InvalidInput(line, fix="correct that line, or its quotation marks")
