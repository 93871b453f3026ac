"""The embedded engine: an in-memory DuckDB, and the SQL that is sent to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cellrisk.counts.resources import Resources, reported
from cellrisk.system.interrupt import cancelled_by_signal, interrupts_delayed
from cellrisk.system.scratch import private_folder


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
