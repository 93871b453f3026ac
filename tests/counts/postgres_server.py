"""A PostgreSQL server on the loopback device, from the machine's own packages, that is gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

PASSWORD = "s3kret/+%#@:?ü"
ENCODED = quote(PASSWORD, safe="")
SHARED = "CELLRISK_POSTGRES_PORT"
"""The variable that names the port of a server that was started here for several processes."""


@dataclass(frozen=True)
class Server:
    port: int

    def address(self, user: str = "owner", password: str = ENCODED, database: str = "census", rest: str = "") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}{rest}"

    def connect(self, database: str = "census") -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="owner", password=PASSWORD, dbname=database, autocommit=True
        )


def find_programs() -> Path | None:
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def find_account() -> dict[str, Any]:
    """PostgreSQL does not run as root: then some other account of the machine runs it."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL does not run as root, and there is no account postgres or nobody")


@contextmanager
def running_server() -> Iterator[Server]:
    """A server with passwords and awkward records, or a skip that says what is missing."""
    if SHARED in os.environ:
        yield Server(int(os.environ[SHARED]))
        return
    pytest.importorskip("psycopg", reason="the driver is not installed: pip install 'cellrisk[postgres]'")
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed; Debian package: postgresql")
    account = find_account()
    folder = Path(tempfile.mkdtemp(prefix="cellrisk-postgres-"))
    try:
        secret = folder / "secret"
        secret.write_text(PASSWORD, encoding="utf-8")
        for path in (folder, secret):
            if account:
                os.chown(path, account["user"], account["group"])
        run = partial(
            subprocess.run,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=folder,
            timeout=300,
            **account,
        )
        data = folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        chosen = ["-U", "owner", "--pwfile", secret, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8"]
        run([programs / "initdb", "-D", data, "--no-sync", *chosen])
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        run([programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"])
        try:
            found = Server(port)
            with found.connect("postgres") as connection:
                connection.execute("CREATE DATABASE census")
            with found.connect() as connection:
                fill(connection)
            yield found
        finally:
            run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


PLACES = [
    "Köln", "köln", "KÖLN", "", None, "日本 🏯", "it's", 'say "x"', "back\\slash", "100%", " pad ", "%(x)s", "a\nb",
]  # fmt: skip
TYPES = {
    "place": (pa.string(), "text"),
    "Age": (pa.int32(), "integer"),
    "height": (pa.float64(), "double precision"),
    "size": (pa.float32(), "real"),
    "flag": (pa.bool_(), "boolean"),
    "born": (pa.date32(), "date"),
    "pay": (pa.decimal128(10, 2), "numeric"),
    "seen": (pa.timestamp("us", "UTC"), "timestamptz"),
    "code": (pa.string(), "char(6)"),
    "text of number": (pa.string(), "varchar(20)"),
    "job": (pa.string(), "text"),
    "many": (pa.string(), "text"),
    "rank": (pa.int16(), "smallint"),
    "weight": (pa.int64(), "bigint"),
}
NAN = float("nan")
HEIGHTS = [1.5, 0.0, -0.0, NAN, None, 1e300, -2.25, 0.1, 1e-7]


def make_records() -> list[dict[str, Any]]:
    records = [
        {
            "place": PLACES[i % len(PLACES)] if i % 3 else "Ulm",
            "Age": None if i % 17 == 0 else 20 + i * 7 % 60,
            "height": HEIGHTS[i % len(HEIGHTS)],
            "size": [0.1, 1.1, None, 2.5, NAN][i % 5],
            "flag": [True, False, None][i % 3],
            "born": [date(1999, 12, 31), None, date(2024, 2, 29), date(1, 1, 1)][i % 4],
            "pay": [Decimal("1.00"), Decimal("1.50"), None, Decimal("-0.10"), Decimal("12345678.90")][i % 5],
            "seen": [datetime(2024, 3, 31, 1, 30, tzinfo=timezone.utc), None][i % 2],
            "code": ["a", "ab", "", None, "ab c"][i % 5],
            "text of number": ["1", " 2.5 ", None, "1_0", "1e1", "-.5", "+7.", "NaN"][i % 8],
            "job": ["cook", "Cook", "clerk", None, "", "smith's", "back\\slash"][i * i % 7],
            "many": None if i % 50 == 7 else f"d{i * 7 % 43}",
            "rank": i * 3 % 5,
            "weight": i % 4,
        }
        for i in range(400)
    ]
    # A cell whose sensitive values are all missing, and one that a count table lists with zeros only.
    empty = {"place": "silent", "Age": 1, "job": None, "many": None, "rank": None, "weight": 2}
    return [*records, dict.fromkeys(TYPES) | empty, dict.fromkeys(TYPES) | empty | {"place": "zero", "weight": 0}]


RECORDS = make_records()
SOURCE = pa.Table.from_pylist(RECORDS, schema=pa.schema([(name, kind) for name, (kind, _) in TYPES.items()]))


def fill(connection: Any) -> None:
    columns = ", ".join(f'"{name}" {kind}' for name, (_, kind) in TYPES.items())
    connection.execute(f"CREATE TABLE people ({columns})")
    with connection.cursor() as cursor:
        rows = [tuple(record.values()) for record in RECORDS]
        cursor.executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * len(TYPES))})", rows)
    connection.execute('CREATE SCHEMA "Other.place"; CREATE TABLE "Other.place"."People" AS SELECT * FROM people')
    connection.execute("CREATE VIEW seen_people AS SELECT * FROM people; CREATE TABLE hidden (place text, job text)")
    connection.execute("CREATE MATERIALIZED VIEW kept_people AS SELECT * FROM people")
    connection.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; GRANT SELECT ON people TO reader")
    connection.execute("REVOKE TEMP ON DATABASE census FROM PUBLIC; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'merry'); CREATE DOMAIN whole AS integer")
    connection.execute(
        "CREATE TABLE kinds AS SELECT i % 3 AS q, (CASE WHEN i % 2 = 0 THEN 'sad' ELSE 'merry' END)::mood AS mood, "
        "(i % 4)::whole AS whole, md5((i % 2)::text)::uuid AS uuid, ('10.0.0.' || i % 2)::inet AS net, "
        "(i % 2 || ' days')::interval AS span, '12:30'::time AS time, "
        "(CASE i % 4 WHEN 0 THEN '1.0' WHEN 1 THEN '1.00' WHEN 2 THEN '1e-3' ELSE 'NaN' END)::numeric AS free, "
        "'{1}'::int[] AS list, '{}'::jsonb AS document, 'x'::bytea AS bytes FROM generate_series(1, 40) AS i"
    )
