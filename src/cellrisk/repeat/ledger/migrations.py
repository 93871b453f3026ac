"""The tables of a ledger, step by step: a new ledger goes through all steps, an older one through those it lacks.

A step that has been published is never changed. None touches the entries.
"""

from __future__ import annotations

import sqlalchemy as sa

METADATA = sa.MetaData()
LEDGER = sa.Table(
    "ledger",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
ENTRIES = sa.Table(
    "entries",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)
PENDING = sa.Table(
    "pending",
    METADATA,
    sa.Column("token", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)
RELEASED_FILES = sa.Table(
    "released_files",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("salt", sa.Text, nullable=False),
)

# In SQLite an INSERT OR REPLACE deletes without asking the trigger on DELETE, so a number is given once only.
GUARDS = {
    "sqlite": (
        "CREATE TRIGGER entries_are_not_updated BEFORE UPDATE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END",
        "CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never deleted'); END",
        "CREATE TRIGGER entries_are_not_replaced BEFORE INSERT ON entries "
        "WHEN EXISTS (SELECT 1 FROM entries WHERE number = NEW.number) "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never replaced'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION refuse_to_change_entries() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'entries of a ledger are never changed'; END $$",
        "CREATE TRIGGER entries_are_not_changed BEFORE UPDATE OR DELETE ON entries "
        "FOR EACH ROW EXECUTE FUNCTION refuse_to_change_entries()",
        "CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_entries()",
    ),
}


def make_log(connection: sa.Connection) -> None:
    """The entries, what guards them, and the row that says which ledger this is and where it ends."""
    LEDGER.create(connection)
    ENTRIES.create(connection)
    for statement in GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


def make_reservations(connection: sa.Connection) -> None:
    """Releases that are being written: their loss is spent already, their entry may not stand yet."""
    PENDING.create(connection)


def make_places_of_files(connection: sa.Connection) -> None:
    """Where released files were written: kept beside the entries, which go to others, and bound to them by digests.

    From here on entries hold the digests of descriptions too, which earlier versions of cellrisk do not know.
    """
    RELEASED_FILES.create(connection)


MIGRATIONS = (make_log, make_reservations, make_places_of_files)
TABLES = {table.name: table for table in METADATA.tables.values()}
SINCE = {"ledger": 1, "entries": 1, "pending": 2, "released_files": 3}
"""The schema that brought each table."""
