"""The embedded engine: an in-memory DuckDB, what it may use of the machine, and the SQL that is sent to it."""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.system.progress import Progress, cancelled_by_signal, interrupts_delayed
from cellrisk.system.scratch import private_folder

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LEAST_MEMORY = 200 * 10**6
SHARE_OF_MACHINE = 0.7
SECONDS_BETWEEN_REPORTS = 0.25


@dataclass(frozen=True)
class Resources:
    """Limits for one tabulation."""

    memory: int
    """Bytes that DuckDB may hold; past that it spills to a private folder."""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.memory < LEAST_MEMORY:
            raise InvalidInput(
                "the memory limit is too small to count in",
                got=f"{self.memory / 10**6:.0f} MB",
                allowed=f"{LEAST_MEMORY // 10**6} MB or more",
                code="memory-limit",
            )

    @staticmethod
    def of(memory_limit: str | int | None, progress: Progress | None = None) -> Resources:
        """Limits as a user gives them; by default a share of the memory that is free.

        >>> Resources.of("4GB").memory
        4000000000
        """
        return Resources(free_memory() if memory_limit is None else read_bytes(memory_limit), progress)


def read_bytes(given: str | int) -> int:
    """Return a number of bytes, given as 4GB, 500 MB or 2GiB."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", str(given))
    if not match or match[2].upper() not in UNITS:
        raise InvalidInput(
            "the memory limit cannot be read",
            got=repr(given),
            allowed="for example 4GB, 500MB or 2GiB",
            code="memory-limit",
        )
    return int(float(match[1]) * UNITS[match[2].upper()])


def free_memory() -> int:
    """Return a share of the memory that is available: what the container allows, or what the machine has."""
    available = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file, pattern, unit in (
        ("/proc/meminfo", r"MemAvailable:\s+(\d+) kB", 1024),
        ("/sys/fs/cgroup/memory.max", r"(\d+)", 1),
    ):
        try:
            match = re.search(pattern, Path(file).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        if match:
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
    grouped: bool = False
    """Whether it has the column n, the number of rows of the source that a row stands for."""

    @property
    def rows(self) -> str:
        """SQL for the number of the source's rows that a row stands for."""
        return "n" if self.grouped else "1"

    def select(self, columns: Mapping[str, str], where: str | None = None) -> Relation:
        """Return other columns, given in SQL, of the rows that satisfy a condition."""
        chosen = [f"{sql} AS {name}" for name, sql in columns.items()] + (["n"] if self.grouped else [])
        condition = f" WHERE {where}" if where else ""
        made = make_view(self.connection, f"SELECT {', '.join(chosen)} FROM {self.name}{condition}")
        kept = {name: self.kinds[sql] for name, sql in columns.items() if sql in self.kinds}
        return replace(made, kinds=kept, grouped=self.grouped)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, in which {rows} stands for the relation."""
        return list(self.connection.execute(query.replace("{rows}", self.name)).fetchall())

    def read(self, most: int) -> Any:
        """Return up to so many rows as an Arrow table."""
        return self.connection.sql(f"SELECT * FROM {self.name} LIMIT {most}").to_arrow_table()


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


def make_view(connection: Any, query: str) -> Relation:
    """Return a query as a relation, which is computed each time it is used."""
    name = new_name("view")
    connection.execute(f"CREATE TEMP VIEW {name} AS {query}")
    return name_relation(connection, name)


def make_table(connection: Any, query: str, kinds: Mapping[str, str] | None = None) -> Relation:
    """Return a query as a relation, which is computed once."""
    name = new_name("table")
    connection.execute(f"CREATE TEMP TABLE {name} AS {query}")
    return name_relation(connection, name, kinds)


def name_relation(connection: Any, name: str, kinds: Mapping[str, str] | None = None) -> Relation:
    """Return a view or table by its name, with the types that DuckDB plans for it."""
    planned = connection.sql(f"FROM {name}")
    types = {column: str(kind) for column, kind in zip(planned.columns, planned.types, strict=True)}
    grouped = types.pop("n", None) is not None
    return Relation(connection, name, types, kinds or {}, grouped)


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
        return make_table(connection, f"FROM {name}", kinds)
    except Exception:
        if failures:
            raise failures[0] from None
        raise
    finally:
        connection.unregister(name)


def read_parquet(
    connection: Any, paths: Sequence[Path], chosen: str = "*", names: Sequence[str] = (), **settings: bool
) -> Relation:
    """Read columns of Parquet files. Their statistics leave NaN out, and DuckDB would conclude that there is none.

    ``chosen``: the columns in SQL. ``names``: names for the first columns of the files, whatever they are called there.
    """
    options = "".join(f", {name} = {value}" for name, value in {"can_have_nan": True, **settings}.items())
    renamed = f" AS files({', '.join(map(quote_name, names))})" if names else ""
    listed = ", ".join(map(quote_path, paths))
    return make_view(connection, f"SELECT {chosen} FROM read_parquet([{listed}]{options}){renamed}")


def stack(relations: Sequence[Relation]) -> Relation:
    """Return the rows of several relations with the same columns."""
    if len(relations) == 1:
        return relations[0]
    return make_view(relations[0].connection, " UNION ALL ".join(f"FROM {relation.name}" for relation in relations))


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
