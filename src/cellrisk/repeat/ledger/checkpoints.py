"""Checkpoint files: the last entry of a ledger, noted after every write, away from the ledger.

An older copy of a ledger is consistent in itself. Only a checkpoint outside shows that there was more: a ledger that
lacks the noted entry is refused. Lines are only appended, one a write, so the file can be on append-only storage.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput
from cellrisk.repeat.ledger.entry import Head
from cellrisk.system.atomic import keep_inputs, wait_for_lock, write_through

if TYPE_CHECKING:
    from cellrisk.repeat.ledger.backends import Session

VARIABLE = "CELLRISK_LEDGER_HEAD"
"""The environment variable with the file's name."""
LINE = re.compile(r"([0-9a-f]{32}) ([0-9]{1,15}) ([0-9a-f]{64}|[0-9a-f]{32})")
LARGEST = 1 << 26


def write_line(head: Head) -> str:
    """The line of a checkpoint: the ledger's id, the number of its last entry, and that entry's digest.

    >>> write_line(Head("7f" * 16, "", 0, "7f" * 16))
    '7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f 0 7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f'
    """
    return f"{head.id} {head.number} {head.digest}"


@dataclass(frozen=True)
class Checkpoint:
    """A file of such lines, of one ledger or of several."""

    path: Path

    @staticmethod
    def open(named: str) -> Checkpoint:
        """The file of that name; refuse what is not a file, or holds something else."""
        if "\0" in named:
            raise InvalidInput("a path cannot hold NUL")
        path = Path(named).absolute()
        if path.is_dir() or (path.exists() and not path.is_file()):
            raise InvalidInput("the path of the checkpoint is not a file", got=path, fix="give a file name")
        if not path.parent.is_dir():
            raise InvalidInput("the folder of the checkpoint does not exist", got=path.parent, fix="make it first")
        file = Checkpoint(path)
        first = file.read(200).partition("\n")[0]
        if first and not LINE.fullmatch(first):
            raise InvalidInput("the file for the checkpoint holds something else", got=path, fix="name another")
        keep_inputs("the ledger's checkpoint", path)
        return file

    def read(self, size: int) -> str:
        """The first characters of the file; none if it does not exist."""
        try:
            with self.path.open("rb") as stream:
                return stream.read(size).decode("ascii", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise InvalidInput("the checkpoint cannot be read", got=f"{self.path} ({error.strerror})") from None

    def last(self, identity: str) -> tuple[int, str] | None:
        """The last entry that is noted of a ledger, and its digest."""
        content = self.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise InvalidInput("the file of the checkpoint is too large", got=self.path, fix="begin a new one")
        lines = (LINE.fullmatch(line) for line in content.split("\n"))
        return max(((int(line[2]), line[3]) for line in lines if line and line[1] == identity), default=None)

    def compare(self, session: Session) -> str:
        """What is wrong with a ledger according to the checkpoint; empty if nothing is."""
        noted = self.last(session.head.id)
        if noted is None:
            return "the checkpoint file has nothing about this ledger: the ledger may have been exchanged"
        number, digest = noted
        row = session.find("number", number) if number else None
        if digest != (session.head.id if number == 0 else None if row is None else row.digest):
            return (
                f"the ledger lacks entry {number:,} of the checkpoint: it was rewritten, or restored from an older copy"
            )
        return ""

    def check(self, session: Session, new: bool = False) -> None:
        """Refuse a ledger that lacks the noted entry. One that has more, because its writer died, is accepted.

        new: whether nothing need be noted of it yet.
        """
        fault = "" if new and self.last(session.head.id) is None else self.compare(session)
        if fault:
            raise InvalidInput(
                fault,
                got=self.path,
                fix="find the newest copy, or account for what is lost and use a new checkpoint file",
                code="checkpoint",
            )

    def is_without(self, identity: str) -> bool:
        """Whether the file is new, or notes other ledgers and nothing of this one. In a file that exists and is empty
        nothing is begun: it may have been emptied."""
        return self.last(identity) is None and (not self.path.exists() or bool(self.path.stat().st_size))

    def note(self, head: Head) -> None:
        """Append a line, unless a later entry is noted already."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                wait_for_lock(handle)
                noted = self.last(head.id)
                if noted is None or noted[0] < head.number:
                    # A writer that died, or a full disk, can have left a line without its end.
                    torn = os.fstat(handle).st_size and os.lseek(handle, -1, os.SEEK_END) >= 0
                    torn = torn and os.read(handle, 1) != b"\n"
                    write_through(handle, f"{chr(10) if torn else ''}{write_line(head)}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise InvalidInput(
                f"entry {head.number} is in the ledger, but could not be noted in the checkpoint file",
                got=f"{self.path} ({error.strerror})",
                fix="repair the file: the next write notes the entry",
            ) from None

    def check_writable(self) -> None:
        """Refuse a file that cannot be written to, before anything is written to the ledger."""
        if not os.access(self.path if self.path.exists() else self.path.parent, os.W_OK):
            raise InvalidInput("the checkpoint cannot be written there", got=self.path, fix="choose another file")
