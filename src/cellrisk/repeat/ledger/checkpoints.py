"""Heads kept outside: a file in which the last entry of a ledger is noted after every write, away from the ledger.

An older copy of a ledger is whole in itself. Only something outside knows that there was more: a ledger that lacks the
entry that is noted is refused. Lines are only ever added, one a write, so that the file can be kept where nothing but
adding is allowed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger.chain import Head, Row
from cellrisk.system.locks import wait_for_lock
from cellrisk.system.writing import keep_inputs, write_through

VARIABLE = "CELLRISK_LEDGER_HEAD"
"""The variable that names the file."""
LINE = re.compile(r"([0-9a-f]{32}) ([0-9]{1,15}) ([0-9a-f]{64}|[0-9a-f]{32})")
LARGEST = 1 << 26


def write_line(head: Head) -> str:
    """The line that notes where a ledger ends: its id, the number of its last entry, and that entry's digest.

    >>> write_line(Head("7f" * 16, 1, "", 0, "7f" * 16))
    '7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f 0 7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f'
    """
    return f"{head.id} {head.number} {head.digest}"


class OpenLedger(Protocol):
    """What a noted head is compared with: a ledger that can be asked for its head and for an entry."""

    head: Head

    def row(self, number: int) -> Row | None: ...


def find_checkpoints(path: str | os.PathLike[str] | None) -> tuple[Checkpoint, ...]:
    """The files that are named, here and in the environment: to name one does not switch the other off."""
    named = (None if path is None else os.fspath(path), os.environ.get(VARIABLE))
    return tuple(Checkpoint.open(each) for each in named if each)


@dataclass(frozen=True)
class Checkpoint:
    """A file of such lines, of one ledger or of several."""

    path: Path

    @staticmethod
    def open(named: str) -> Checkpoint:
        """The file of that name; refuses what is no file, or holds something else."""
        if "\0" in named:
            raise InvalidInput("a path cannot hold NUL")
        found = Path(named).absolute()
        if found.is_dir() or (found.exists() and not found.is_file()):
            raise InvalidInput("the file for the ledger's head is no file", got=found, fix="give a file name")
        if not found.parent.is_dir():
            raise InvalidInput("the folder for the ledger's head does not exist", got=found.parent, fix="make it first")
        first = _read_first_line(found)
        if first and not LINE.fullmatch(first):
            raise InvalidInput("the file for the ledger's head holds something else", got=found, fix="name another")
        keep_inputs("the file that keeps the ledger's head", found)
        return Checkpoint(found)

    def last(self, identity: str) -> tuple[int, str] | None:
        """The last entry that is noted of a ledger, and its digest."""
        try:
            if not self.path.exists():
                return None
            with self.path.open("rb") as stream:
                content = stream.read(LARGEST + 1)
        except OSError as error:
            raise InvalidInput("the ledger's head cannot be read", got=f"{self.path} ({error.strerror})") from None
        if len(content) > LARGEST:
            raise InvalidInput("the file of the ledger's head is too large", got=self.path, fix="begin a new one")
        found = (LINE.fullmatch(line) for line in content.decode("ascii", "replace").split("\n"))
        noted = [(int(each[2]), each[3]) for each in found if each is not None and each[1] == identity]
        return max(noted, default=None, key=lambda each: each[0])

    def compare(self, session: OpenLedger) -> str:
        """What is wrong with a ledger by what is noted of it; empty where nothing is."""
        noted = self.last(session.head.id)
        if noted is None:
            return "nothing is noted of this ledger in the file that keeps its head: it may have been exchanged"
        number, digest = noted
        row = session.row(number) if number else None
        if digest != (session.head.id if number == 0 else row.digest if row is not None else None):
            return (
                f"the ledger lacks entry {number:,}, which is noted in the file that keeps its head: it was rewritten, "
                "or restored from an older copy"
            )
        return ""

    def check(self, session: OpenLedger, new: bool = False) -> None:
        """Refuses a ledger that lacks what is noted of it. One that has more, because its writer died, is accepted.

        new: whether nothing need be noted of it yet.
        """
        if new and self.last(session.head.id) is None:
            return
        fault = self.compare(session)
        if fault:
            raise InvalidInput(
                fault,
                got=self.path,
                fix="find the newest copy, or account for what is lost and note the head in another file",
            )

    def begin(self, session: OpenLedger) -> None:
        """Refuses a ledger as `check` does, unless the file is new, or notes other ledgers and nothing yet of this one.

        A file that is there and empty may have been emptied, so that nothing is begun in it.
        """
        self.check(session, new=not self.path.exists() or bool(self.path.stat().st_size))

    def note(self, head: Head) -> None:
        """Adds a line, unless a later entry is noted already."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                wait_for_lock(handle)
                noted = self.last(head.id)
                if noted is None or noted[0] < head.number:
                    torn = _is_torn(handle)
                    write_through(handle, f"{chr(10) if torn else ''}{write_line(head)}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise InvalidInput(
                f"entry {head.number} stands in the ledger, but could not be noted in the file that keeps its head",
                got=f"{self.path} ({error.strerror})",
                fix="see to the file: the next write notes it",
            ) from None

    def check_room(self) -> None:
        """Refuses a file that cannot be written to, before anything is written to the ledger."""
        there = self.path if self.path.exists() else self.path.parent
        if not os.access(there, os.W_OK):
            raise InvalidInput("the ledger's head cannot be noted there", got=self.path, fix="choose another file")


def _read_first_line(path: Path) -> str:
    try:
        if not path.exists():
            return ""
        with path.open("rb") as stream:
            return stream.read(200).partition(b"\n")[0].decode("ascii", "replace")
    except OSError as error:
        raise InvalidInput("the ledger's head cannot be read", got=f"{path} ({error.strerror})") from None


def _is_torn(handle: int) -> bool:
    """Whether the last line has no end, because its writer died or its disk was full."""
    if not os.fstat(handle).st_size:
        return False
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1) != b"\n"
