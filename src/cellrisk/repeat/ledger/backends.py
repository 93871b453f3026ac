"""The database of a ledger, a SQLite file or a PostgreSQL database: how each is found, locked and explained.

An exception of a driver, which may quote a password or what is stored, is replaced by one without its text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cellrisk.errors import CellriskError, InvalidInput

DAMAGES = (MemoryError, UnicodeDecodeError)
"""What Python raises for a SQLite file with impossible sizes, or with a message that is not text."""
MAKE = "cellrisk ledger create, or Ledger(location, create=True)"


class Backend(ABC):
    """The database of a ledger, which may not exist yet."""

    name: str
    other: str
    """What to do about a location with something else."""
    writable: bool = True

    def __init__(self, wait: float) -> None:
        self.wait = wait

    @abstractmethod
    def find(self) -> None:
        """Refuse a location without a ledger, without changing anything."""

    @abstractmethod
    def create(self, make: Callable[[Any], None]) -> None:
        """Make a ledger, whole or not at all; refuse a location that is taken."""

    @abstractmethod
    def remove(self) -> None:
        """Remove a ledger without entries."""

    @abstractmethod
    def connect(self, reading: bool) -> Any:
        """A new connection in a transaction: one for reading sees one moment and can change nothing, one for writing
        excludes other writers."""

    @abstractmethod
    def find_flaws(self, connection: Any) -> list[str]:
        """What differs from the tables and triggers of a ledger; refuse tables that are something else."""

    @abstractmethod
    def explain(self, error: BaseException) -> InvalidInput:
        """A driver's error without its words."""

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement, in which ? stands for each value."""
        return list(connection.execute(statement, tuple(values)))

    def commit(self, connection: Any) -> None:
        """Make permanent what was written."""
        connection.commit()

    def find_faults(self, connection: Any) -> list[str]:
        """What the database itself finds wrong with its file."""
        return []

    @property
    def folders(self) -> list[Path]:
        """Where releases are often written: beside the ledger, and where the web app keeps them."""
        return []

    def is_same(self, path: Path) -> bool:
        """Whether a path leads to the ledger itself."""
        return False

    @contextmanager
    def opened(self, reading: bool) -> Iterator[Any]:
        """A connection for one transaction; what is not committed is undone."""
        with self.plain_refusals(), closing(self.connect(reading)) as connection:
            yield connection

    @contextmanager
    def plain_refusals(self) -> Iterator[None]:
        """Turn errors of the driver into one line."""
        try:
            yield
        except CellriskError as refusal:
            _forget(refusal.__context__)
            raise
        except Exception as error:
            driver = type(error).__module__.partition(".")[0] in ("sqlite3", "psycopg")
            if not driver and not isinstance(error, DAMAGES):
                raise
            explained = self.explain(error)
            _forget(error)
            raise explained from None

    def refuse(self, kind: str) -> InvalidInput:
        """The refusals of both backends."""
        what, fix = {
            "read-only": ("the ledger can be read only", "ask for the right to write to it"),
            "full": ("the disk of the ledger is full: nothing was written", "free some space"),
            "locked": (f"the ledger is still locked by another process after {self.wait:g} seconds", "try again later"),
            "no-ledger": ("this is not a ledger", self.other),
            "missing": ("there is no ledger", f"check its name, or make one: {MAKE}"),
            "exists": ("there is something already where the ledger was to be made", f"use it, or {self.other}"),
            "damaged": ("the ledger is damaged", "restore it from a copy; ledger verify shows more"),
        }[kind]
        return InvalidInput(what, got=self, fix=fix, code=kind)


def _forget(error: BaseException | None) -> None:
    """Empty a driver's exception."""
    if error is not None:
        from cellrisk.counts.database import forget

        forget(error)
