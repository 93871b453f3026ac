"""Both places of a ledger, each with a way in that knows nothing of ledgers."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cellrisk.noise.mechanisms import mechanism
from cellrisk.publish.releasing import Release
from cellrisk.repeat.ledger import Ledger
from cellrisk.repeat.ledger.backends import TRIGGERS
from tests.counts.postgres_server import Server, running_server
from tests.repeat.ledger.deaths import make_release

LAPLACE = mechanism("laplace", epsilon=0.1)


@dataclass(frozen=True)
class Where:
    """The place of a ledger, and plain SQL on it."""

    address: str
    execute: Callable[[str], list[tuple[Any, ...]]]
    file: Path | None = None

    def open(self, **options: Any) -> Ledger:
        """The ledger; one is made where there is none yet, unless the options say."""
        if "create" not in options:
            options["create"] = not self.is_there()
        return Ledger(self.address, **options)

    def is_there(self) -> bool:
        if self.file is not None:
            return self.file.exists()
        return self.execute("SELECT to_regclass('ledger')") != [(None,)]

    def disarm(self) -> None:
        """What somebody does first who wants to change entries."""
        names = ("updated", "deleted", "replaced") if self.file else ("changed", "emptied")
        for name in names:
            self.execute(f"DROP TRIGGER entries_are_not_{name}" + ("" if self.file else " ON entries"))

    def arm(self) -> None:
        """What somebody does last who wants to hide that."""
        for statement in TRIGGERS["sqlite" if self.file else "postgresql"]:
            if not statement.startswith("CREATE FUNCTION"):
                self.execute(statement)


def execute_in_file(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def execute_in_database(server: Server, schema: str, statement: str) -> list[tuple[Any, ...]]:
    with server.connect() as connection:
        connection.execute(f"SET search_path = {schema}")
        found = connection.execute(statement)
        return found.fetchall() if found.description else []


@pytest.fixture(scope="session")
def released() -> Release:
    return make_release()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An empty folder to release into."""
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.fixture
def in_file(tmp_path: Path) -> Where:
    path = tmp_path / "releases.ledger"
    return Where(str(path), partial(execute_in_file, path), path)


@pytest.fixture
def in_database(server: Server) -> Iterator[Where]:
    schema = f"ledger_{uuid.uuid4().hex}"
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    yield Where(server.address(rest=f"?options=-csearch_path%3D{schema}"), partial(execute_in_database, server, schema))
    with server.connect() as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(params=["file", "database"])
def where(request: pytest.FixtureRequest) -> Where:
    found: Where = request.getfixturevalue(f"in_{request.param}")
    return found


def fill(ledger: Ledger, releases: int = 3) -> None:
    """A limit and some releases: entry 1 is the cohort, entry 2 the limit."""
    ledger.set_limit("everyone", epsilon=10)
    for number in range(releases):
        ledger.add(attribute=f"y{number}", quasi_identifiers=["age", "sex"], loss=LAPLACE, purpose=f"report {number}")
