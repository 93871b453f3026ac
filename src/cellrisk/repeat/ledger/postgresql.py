"""A ledger in a PostgreSQL database: its tables are in the first schema of the search path."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger.backends import Backend
from cellrisk.repeat.ledger.entry import show_on_one_line
from cellrisk.repeat.ledger.schema import TABLES, TRIGGERS

CREATION = 0x63726C6765727370
"""The advisory lock under which tables are made."""
TRIGGER_KINDS = {"entries_are_not_changed": 1 + 2 + 8 + 16, "entries_are_not_emptied": 2 + 32}
"""As PostgreSQL encodes them: 1 for each row, 2 before, 8 delete, 16 update, 32 truncate."""
REFUSALS = (
    ("42501", "this account may not use the ledger in that way", "ask for the right to read or write its tables"),
    ("53", "the server is out of memory or connections", "try again"),
    ("42", "this is not a ledger: it has tables of the same names", ""),
    ("3F", "the schema for the ledger's tables does not exist", "make it first"),
    ("40", "the server ended the transaction because of another", "try again"),
)


class PostgresDatabase(Backend):
    """A PostgreSQL database. A writer locks the row of the table ``ledger``."""

    name = "postgresql"
    other = "choose another database, or another schema with ?options=-csearch_path%3Dname"

    def __init__(self, address: str, wait: float) -> None:
        from cellrisk.counts.database import read_address

        super().__init__(wait)
        self._name = read_address(address)
        if self._name.engine != "postgres":
            raise InvalidInput(
                "a ledger is a file or a PostgreSQL database",
                got=f"an address of {self._name.engine}",
                allowed="a path, or postgresql://user:password@host/database",
            )
        if importlib.util.find_spec("psycopg") is None:
            raise InvalidInput(
                "a ledger in PostgreSQL needs a driver that is not installed", fix="pip install 'cellrisk[postgres]'"
            )
        self._address = f"postgresql://{address.partition('://')[2]}"

    def __str__(self) -> str:
        return str(self._name)

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        asked = statement.replace("?", "%s") if values else statement
        found = connection.execute(asked, tuple(values) or None)
        return list(found) if found.description else []

    def find(self) -> None:
        with self.opened(reading=True) as connection:
            if not self._has_table(connection, "ledger"):
                raise self.refuse("missing")
            if self._has_table(connection, "entries"):
                allowed = "has_table_privilege('entries', 'INSERT') AND NOT pg_is_in_recovery()"
                usual = "current_setting('default_transaction_read_only') = 'off'"
                self.writable = bool(self.execute(connection, f"SELECT {allowed} AND {usual}")[0][0])

    def _has_table(self, connection: Any, name: str) -> bool:
        return bool(self.execute(connection, f"SELECT to_regclass('{name}') IS NOT NULL")[0][0])

    def create(self, make: Callable[[Any], None]) -> None:
        with self.plain_refusals(), closing(self._dial()) as connection:
            self._limit_wait(connection)
            connection.execute(f"SELECT pg_advisory_xact_lock({CREATION})")
            if any(self._has_table(connection, name) for name in TABLES):
                raise self.refuse("exists")
            make(connection)
            connection.commit()

    def remove(self) -> None:
        with self.plain_refusals(), closing(self._dial()) as connection:
            for name in reversed(TABLES):
                connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute("DROP FUNCTION IF EXISTS refuse_to_change_entries()")
            connection.commit()

    def connect(self, reading: bool) -> Any:
        connection = self._dial()
        try:
            if reading:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            else:
                self._limit_wait(connection)
                connection.execute("SELECT id FROM ledger FOR UPDATE")
        except BaseException:
            connection.close()
            raise
        return connection

    def _dial(self) -> Any:
        import psycopg

        from cellrisk.counts.database import explain_connection, forget

        try:
            return psycopg.connect(
                self._address,
                connect_timeout=max(2, round(self.wait)),
                client_encoding="utf8",
                fallback_application_name="cellrisk",
            )
        except psycopg.Error as error:
            explained = explain_connection(error, self._name)
            forget(error)
        raise explained

    def _limit_wait(self, connection: Any) -> None:
        connection.execute(f"SET LOCAL lock_timeout = {max(1, round(1000 * self.wait))}")

    def find_flaws(self, connection: Any) -> list[str]:
        listed = ", ".join(f"to_regclass('{name}')" for name in TABLES)
        kinds = self.execute(
            connection,
            "SELECT c.relname, c.relkind::text, c.relrowsecurity, "
            "EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid) FROM pg_class c "
            f"WHERE c.oid IN (SELECT unnest(ARRAY[{listed}]::oid[]))",
        )
        if any(kind != "r" for _, kind, _, _ in kinds):
            raise self.refuse("no-ledger")
        flaws = [f"the table {name} has rules or hides rows" for name, _, secured, ruled in kinds if secured or ruled]
        triggers = self.execute(
            connection,
            "SELECT c.relname, t.tgname, t.tgenabled::text, t.tgtype::int, t.tgqual IS NULL, p.prosrc "
            "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
            f"WHERE NOT t.tgisinternal AND t.tgrelid IN (SELECT unnest(ARRAY[{listed}]::oid[]))",
        )
        refusal = TRIGGERS["postgresql"][0].split("$$")[1]
        found = {(table, name): rest for table, name, *rest in triggers}
        for name, kind in TRIGGER_KINDS.items():
            rest = found.pop(("entries", name), None)
            if rest is None or rest[0] not in ("O", "A") or rest[1:] != [kind, True, refusal]:
                flaws.append(f"the trigger {name}, which guards the entries, was {'changed' if rest else 'removed'}")
        return flaws + [f"a foreign trigger is in the ledger: {show_on_one_line(str(name))[:60]}" for _, name in found]

    def explain(self, error: BaseException) -> InvalidInput:
        state, kind = str(getattr(error, "sqlstate", None) or ""), type(error).__name__
        if state in (known := {"25006": "read-only", "53100": "full", "55P03": "locked"}):
            return self.refuse(known[state])
        for start, what, fix in REFUSALS:
            if state.startswith(start):
                return InvalidInput(what, got=self, fix=fix or self.other)
        if not state or state.startswith(("08", "57")):
            return InvalidInput(
                "the connection to the ledger was lost",
                got=f"{self} ({kind})",
                fix="ledger list shows what was written",
                code="lost-connection",
            )
        return InvalidInput(f"the ledger cannot be used ({kind}, {state})", got=self)
