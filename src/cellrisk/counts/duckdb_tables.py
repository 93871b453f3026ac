"""Tables stored in DuckDB files, and DuckDB relations, with each value as it is.

DuckDB may take different values for one: texts under a collation, time spans of one length. Columns are brought to
types under which equal values are the same values, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cellrisk.counts.columns import ALLOWED, bare_type
from cellrisk.counts.engine import Relation, make_view, quote_name, quote_sql, read_parquet
from cellrisk.counts.schema import locate, unknown_table
from cellrisk.errors import InvalidInput

AS_TEXT = re.compile(r'VARCHAR|UUID|ENUM|BIT|INTERVAL|TIME WITH TIME ZONE|U?HUGEINT|BIGNUM|"NULL"')
"""Types whose values are compared by their text: to DuckDB, equal spans are one, and files round the others."""
AS_THEY_ARE = re.compile(r"BOOLEAN|U?(TINY|SMALL|BIG)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL|DATE|TIME(_NS)?|TIMESTAMP.*")


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
        raise InvalidInput(
            f"table '{table}' is a view that reads files outside the DuckDB file",
            fix="store it as a table, or read those files themselves",
            code="view-of-files",
        ) from None
    return make_view(connection, f"SELECT {chosen} FROM {whole}")


def read_relation(connection: Any, folder: Path, relation: Any, columns: Sequence[str]) -> Relation:
    """Return a DuckDB relation. It lives in its owner's connection, so its columns in use go through a file."""
    path = folder / "relation.parquet"
    relation.project(choose_columns(columns, relation, "the DuckDB relation")).write_parquet(str(path))
    return read_parquet(connection, [path])


def choose_columns(columns: Sequence[str], relation: Any, where: str) -> str:
    """Return SQL for the columns in use as c0, c1, ..., under which equal values are the same values."""
    chosen = []
    for new, old in enumerate(locate(columns, relation.columns, where)):
        kind, name = str(relation.types[old]), quote_name(relation.columns[old])
        bare = bare_type(kind)
        if AS_TEXT.fullmatch(bare):
            name = f"CAST({name} AS VARCHAR) COLLATE C"
        elif not AS_THEY_ARE.fullmatch(bare):
            shown = "list" if kind.endswith("]") else bare.lower()
            what = f"column '{relation.columns[old]}' holds {shown} values"
            raise InvalidInput(what, allowed=ALLOWED, code="column-type")
        chosen.append(f"{name} AS c{new}")
    return ", ".join(chosen)
