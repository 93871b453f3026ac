"""The tables of a ledger, and the triggers that guard its entries."""

from __future__ import annotations

WHAT, VERSION = "cellrisk release ledger", 1
TABLES = {
    "ledger": "CREATE TABLE ledger (id TEXT NOT NULL PRIMARY KEY, what TEXT NOT NULL, schema_version INTEGER NOT NULL, "
    "created TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL)",
    "entries": "CREATE TABLE entries (number INTEGER NOT NULL PRIMARY KEY, previous TEXT NOT NULL, "
    "digest TEXT NOT NULL, body TEXT NOT NULL)",
    "released_files": "CREATE TABLE released_files (number INTEGER NOT NULL PRIMARY KEY, path TEXT NOT NULL, "
    "salt TEXT NOT NULL)",
}
"""Paths of released files are kept beside the entries, which are exported, and are bound to them by digests."""

# In SQLite an INSERT OR REPLACE deletes without the trigger on DELETE, so a third trigger refuses a number again.
TRIGGERS = {
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
