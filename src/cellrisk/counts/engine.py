"""The embedded engine: an in-memory DuckDB, what it may use of the machine, and the SQL that is sent to it."""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.system.progress import Progress, cancelled_by_signal, interrupts_delayed
from cellrisk.system.scratch import private_folder

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LEAST_MEMORY = 200 * 10**6
SHARE_OF_MACHINE = 0.7
MOST_CELLS = 20_000_000
"""Combinations of the values of all columns in use that are brought into memory with their keys."""
BYTES_FOR_ROW = 64
"""What such a combination takes while it is counted."""
SECONDS_BETWEEN_REPORTS = 0.25


class Resources(NamedTuple):
    """Limits for one tabulation."""

    memory: int
    """Bytes that DuckDB may hold; past that it spills to a private folder."""
    progress: Progress | None = None

    @property
    def most_cells(self) -> int:
        """Combinations of values that are brought into memory with their keys."""
        return min(MOST_CELLS, self.memory // BYTES_FOR_ROW)

    @staticmethod
    def of(memory_limit: str | int | None, progress: Progress | None = None) -> Resources:
        """Return limits as a user gives them; by default a share of the memory that is free.

        >>> Resources.of("4GB").memory
        4000000000
        """
        memory = free_memory() if memory_limit is None else read_bytes(memory_limit)
        if memory < LEAST_MEMORY:
            got, allowed = f"{memory / 10**6:.0f} MB", f"{LEAST_MEMORY // 10**6} MB or more"
            what = "the memory limit is too small to count in"
            raise InvalidInput(what, got=got, allowed=allowed, code="memory-limit")
        return Resources(memory, progress)


def read_bytes(given: str | int) -> int:
    """Return a number of bytes, given as 4GB, 500 MB or 2GiB."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", str(given))
    if not match or match[2].upper() not in UNITS:
        what, allowed = "the memory limit cannot be read", "for example 4GB, 500MB or 2GiB"
        raise InvalidInput(what, got=repr(given), allowed=allowed, code="memory-limit")
    return int(float(match[1]) * UNITS[match[2].upper()])


def free_memory() -> int:
    """Return a share of the memory that is available: what the container allows, or what the machine has."""
    available = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    files = (("/proc/meminfo", r"MemAvailable:\s+(\d+) kB", 1024), ("/sys/fs/cgroup/memory.max", r"(\d+)", 1))
    for file, pattern, unit in files:
        with suppress(OSError, ValueError):
            if match := re.search(pattern, Path(file).read_text(encoding="ascii")):
                available.append(int(match[1]) * unit)
    return max(LEAST_MEMORY, int(SHARE_OF_MACHINE * min(available)))


@contextmanager
def reported(connection: Any, progress: Progress | None) -> Iterator[None]:
    """Report from a thread how far the running query of a DuckDB connection is.

    DuckDB knows this only if its own progress bar is switched on, which is never printed. In a notebook without
    ipywidgets it cannot be switched, and nothing is reported.
    """
    import duckdb

    try:
        connection.execute("SET enable_progress_bar_print = false")
        connection.execute(f"SET enable_progress_bar = {progress is not None}")
    except duckdb.InvalidInputException:
        progress = None
    if progress is None:
        yield
        return
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(SECONDS_BETWEEN_REPORTS):
            percent = connection.query_progress()
            if percent >= 0:
                progress(percent / 100)

    watcher = threading.Thread(target=watch, name="cellrisk-progress")
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()


@dataclass(frozen=True)
class Relation:
    """Rows in DuckDB: a view or table with the columns c0, c1, ..., and n if a row stands for several of the source."""

    connection: Any
    name: str
    types: Mapping[str, str]
    """DuckDB's types of c0, c1, ..."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """How values of a column become labels, if its type does not tell: a number too long for any type comes as text."""
    rows: str = "1"
    """SQL for the number of the source's rows that a row stands for: n, if it has that column."""

    def select(self, columns: Mapping[str, str], where: str | None = None) -> Relation:
        """Return other columns, given in SQL, of the rows that satisfy a condition."""
        chosen = [f"{sql} AS {name}" for name, sql in columns.items()] + ["n"] * (self.rows == "n")
        kept = {name: self.kinds[sql] for name, sql in columns.items() if sql in self.kinds}
        query = f"SELECT {', '.join(chosen)} FROM {self.name} WHERE {where or 'true'}"
        return define(self.connection, "VIEW", query, kept)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, in which {rows} stands for the relation."""
        return list(self.connection.execute(query.replace("{rows}", self.name)).fetchall())


@contextmanager
def embedded_engine(resources: Resources) -> Iterator[tuple[Any, Path]]:
    """Open a DuckDB that loads nothing from a network, and a private folder, into which it spills, for the block."""
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
            connection.execute("SET TimeZone = 'UTC'; SET disabled_optimizers = 'join_order'")
            with cancelled_by_signal(connection.interrupt), reported(connection, resources.progress):
                yield connection, folder
        finally:
            connection.close()


def new_name(start: str) -> str:
    """Return a name for a view or table that nothing else has."""
    return f"{start}_{uuid.uuid4().hex}"


def define(connection: Any, kind: str, query: str, kinds: Mapping[str, str] | None = None) -> Relation:
    """Return a query as a relation: a VIEW is computed each time it is used, a TABLE once."""
    name = new_name(kind)
    connection.execute(f"CREATE TEMP {kind} {name} AS {query}")
    return name_relation(connection, name, kinds)


def name_relation(connection: Any, name: str, kinds: Mapping[str, str] | None = None) -> Relation:
    """Return a view or table by its name, with the types that DuckDB plans for it."""
    planned = connection.sql(f"FROM {name}")
    types = {column: str(kind) for column, kind in zip(planned.columns, planned.types, strict=True)}
    rows = "1" if types.pop("n", None) is None else "n"
    return Relation(connection, name, types, kinds or {}, rows)


def assemble(arrays: Iterable[Any]) -> Any:
    """Return an Arrow table of the columns c0, c1, ... in their order."""
    import pyarrow as pa

    return pa.table({f"c{index}": array for index, array in enumerate(arrays)})


def load_stream(connection: Any, stream: Any, kinds: Mapping[str, str] | None = None) -> Relation:
    """Return an Arrow table, or a stream, which is read once into a temporary table, as a relation.

    DuckDB hides why a stream failed, so the first failure is noted and raised again.
    """
    import pyarrow as pa

    name, failures = new_name("stream"), []
    if not isinstance(stream, pa.RecordBatchReader):
        connection.register(name, stream)
        return name_relation(connection, name, kinds)

    def batches() -> Iterator[Any]:
        try:
            yield from stream
        except GeneratorExit:
            raise
        except BaseException as error:
            failures.append(error)
            raise

    connection.register(name, pa.RecordBatchReader.from_batches(stream.schema, batches()))
    try:
        return define(connection, "TABLE", f"FROM {name}", kinds)
    except Exception:
        if failures:
            raise failures[0] from None
        raise
    finally:
        connection.unregister(name)


def read_parquet(
    connection: Any, paths: Sequence[Path], chosen: str = "*", names: Sequence[str] = (), folders: bool = False
) -> Relation:
    """Read columns of Parquet files. Their statistics leave NaN out, and DuckDB would conclude that there is none.

    chosen: the columns in SQL. names: names for the first columns of the files, whatever they are called there.
    folders: whether folders name columns.
    """
    options = ", hive_partitioning = true, hive_types_autocast = false" if folders else ", hive_partitioning = false"
    renamed = f" AS files({', '.join(map(quote_name, names))})" if names else ""
    listed = ", ".join(map(quote_path, paths))
    query = f"SELECT {chosen} FROM read_parquet([{listed}], can_have_nan = true{options}){renamed}"
    return define(connection, "VIEW", query)


def stack(relations: Sequence[Relation]) -> Relation:
    """Return the rows of several relations with the same columns."""
    if len(relations) == 1:
        return relations[0]
    query = " UNION ALL ".join(f"FROM {relation.name}" for relation in relations)
    return define(relations[0].connection, "VIEW", query, relations[0].kinds)


def quote_path(path: Path) -> str:
    """Return a path as an SQL literal, with DuckDB's wildcards switched off.

    >>> quote_path(Path("a[1]*.csv"))
    "'a[[]1][*].csv'"
    """
    return quote_sql("".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path)))


def quote_sql(text: str) -> str:
    """Return a text as an SQL literal; a NUL character, which ends SQL, is spelt.

    >>> quote_sql("it's"), quote_sql("a\\0b")
    ("'it''s'", "('a' || chr(0) || 'b')")
    """
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def quote_name(name: str) -> str:
    """Return a name as an SQL identifier.

    >>> print(quote_name("hours per week"))
    "hours per week"
    """
    return '"' + name.replace('"', '""') + '"'


def quote_double(number: float) -> str:
    """Return a floating-point number as an SQL literal that is exactly it."""
    return f"'{float(number)!r}'::DOUBLE"


LONGEST_LINE = 2_000_000
"""Bytes of a line of text, or of a field over several lines, that DuckDB reads."""
LIBRARIES = ("duckdb", "_duckdb", "pyarrow")
OUT_OF_MEMORY = "the table does not fit into memory and the temporary folder"
CSV = "the CSV source cannot be read"
LINE = r"CSV Error on Line: (\d+).*"
Cause = tuple[str, str, str, str]
"""A pattern of an exception's kind and text, what is wrong, what to do, and a code. Only numbers are repeated."""
CORRECT, CHECK_QUOTES = "correct that line", "check its line ends and quotation marks"
CAUSES: tuple[Cause, ...] = (
    ("MemoryError|OutOfMemory|No space left", OUT_OF_MEMORY, "use fewer or coarser quasi-identifiers", "out-of-memory"),
    (
        "CSV Parser state machine",
        f"{CSV}: line endings are mixed, or a quotation mark misplaced",
        "write it again",
        "damaged",
    ),
    ("Parallel CSV Reader", f"{CSV}: a line is too long, or a quotation mark is never closed", CHECK_QUOTES, "damaged"),
    (rf"{LINE}Columns: (\d+) Found: (\d+)", CSV + ": line {0} has {2} fields, the header has {1}", CORRECT, "damaged"),
    (f"{LINE}Maximum line size", CSV + ": line {0} is longer than 2 MB", "leave that column out", "too-long"),
    (f"{LINE}nterminated quote", CSV + ": a quotation mark in line {0} is never closed", CORRECT, "damaged"),
    (f"{LINE}[uU]nicode", CSV + ": line {0} is not UTF-8 text", "save the file as UTF-8", "encoding"),
    (LINE, CSV + ": line {0}", "correct that line, or its quotation marks", "damaged"),
)


def find_cause(text: str, causes: Sequence[Cause]) -> InvalidInput | None:
    """Return the refusal of the first cause that a text names; None if it names none of them."""
    for pattern, what, fix, code in causes:
        match = re.search(pattern, text, re.DOTALL)
        if match:
            numbers = (f"{int(group):,}" for group in match.groups() if group)
            return InvalidInput(what.format(*numbers), fix=fix, code=code)
    return None


def redact(error: BaseException) -> InvalidInput:
    """Return what can be said of an exception of DuckDB without its text.

    >>> failure = ValueError("CSV Error on Line: 3 Original Line: a,b,c Expected Number of Columns: 2 Found: 3")
    >>> print(redact(failure))
    the CSV source cannot be read: line 3 has 3 fields, the header has 2; correct that line
    """
    kind = type(error).__name__
    return find_cause(f"{kind}: {error}", CAUSES) or InvalidInput(
        f"the engine could not read the source ({kind})", fix="check that the file is whole", code="unreadable"
    )


def has_type(value: object, libraries: Sequence[str], *names: str) -> bool:
    """Return whether a value is of a class that a library defines, by its name; no library is loaded for that."""
    kinds = [kind for kind in type(value).__mro__ if kind.__module__.partition(".")[0] in libraries]
    return any(kind.__name__ in names for kind in kinds) if names else bool(kinds)


@contextmanager
def redacted() -> Iterator[None]:
    """Turn an engine's exception into one line without data."""
    try:
        yield
    except CellriskError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"the source or the temporary folder cannot be used: {reason}", code="unreadable") from None
    except Exception as error:
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # Ctrl-C, as DuckDB says it
            raise KeyboardInterrupt from None
        if not isinstance(error, MemoryError) and not has_type(error, LIBRARIES):
            raise
        raise redact(error) from None
