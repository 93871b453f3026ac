"""Moments that two processes, or a process and a server, share: each is brought about, not waited for."""

from __future__ import annotations

import fcntl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import Release
from cellrisk.publish.releasing.saving import Pair
from cellrisk.repeat.ledger import book, journals
from cellrisk.repeat.ledger.journals import Journal, list_journals
from cellrisk.repeat.ledger.store import Session
from tests.ledger.conftest import Where
from tests.ledger.deaths import FIELDS
from tests.ledger.soak import look
from tests.tables.postgres_server import Server


def test_a_row_that_cannot_be_removed_does_not_deny_what_is_written(
    where: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File and entry stand, and then the disk is full: the release is a success, and the next who writes tidies."""

    def fail(_: Session, token: str) -> None:
        raise InvalidInput("the disk of the ledger is full: nothing was written")

    with where.open() as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(Session, "remove_pending", fail)
            with ledger.reserve(**FIELDS) as reservation:
                entry = reservation.save(released, output / "released.csv")
            assert [state for (state,) in where.execute("SELECT state FROM pending")] == ["decided"]
        assert ledger.verify().ok
        assert ledger.settle() == ledger.pendings() == ()
        assert ledger.entries(kind="release") == (entry,)
    look(where.address, None, output)


def test_a_journal_that_is_swept_before_it_is_locked_is_made_anew(
    where: Where, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making its file and locking it, a process looks dead to one who writes to the ledger just then."""
    real, swept = journals.hold, []

    def hold_late(path: Path, *, make: bool = False) -> Journal | None:
        """The owner is overtaken, once."""
        if swept:
            return real(path, make=make)
        swept.append(path)
        path.touch(0o600)
        other = real(path)
        assert other is not None
        assert real(path) is None
        other.remove()
        return None

    with where.open() as ledger, where.open() as other:
        monkeypatch.setattr(journals, "hold", hold_late)
        with ledger.reserve(**FIELDS) as reservation:
            assert swept[0].exists()
            other.settle()
            assert swept[0].exists()
            reservation.save(released, output / "released.csv")
        assert not swept[0].exists()
    look(where.address, None, output)


def test_a_journal_that_somebody_keeps_is_refused(in_file: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_file.open(wait=0.0) as ledger:
        monkeypatch.setattr(journals, "hold", lambda path, make: None)
        with pytest.raises(InvalidInput, match="held by somebody else"), ledger.reserve(**FIELDS):
            pass
        assert ledger.pendings() == ()


def test_a_reservation_that_is_made_while_another_sweeps_goes_with_its_journal(
    in_file: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who writes has listed a journal alone; then the reservation is made, and its process dies: both are ended."""
    with in_file.open() as ledger, in_file.open() as other:
        ledger.declare("everyone")
        with ledger.reserve(**FIELDS) as reservation:
            [row] = ledger.pendings()
            in_file.execute("DELETE FROM pending")

            def list_early(identity: str) -> dict[str, Path]:
                found = list_journals(identity)
                with ledger._store.write() as session:
                    session.reserve(row)
                reservation._journal.close()  # as if its process had died
                return found

            monkeypatch.setattr(book, "list_journals", list_early)
            assert other.settle() == ()
            assert not reservation._journal.path.exists()


class Death(BaseException):
    """The process ends here, whatever it had in mind."""


def test_a_decision_that_the_server_commits_after_its_client_died(
    in_database: Where, server: Server, released: Release, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client sends COMMIT and dies; who writes to it before the server is done must wait for what it decides.

    The client is a thread that stops before the commit. It dies for others when its journal is unlocked.
    """
    decided, die, real = threading.Event(), threading.Event(), Session.change

    def change_slowly(session: Session, pending: Any) -> None:
        real(session, pending)
        if pending.state == "decided":
            decided.set()
            assert die.wait(60)

    def save() -> None:
        with pytest.raises(Death):
            reservation.save(released, output / "released.csv")

    def publish(pair: Pair, undo: object = None) -> None:
        if threading.current_thread() is client:
            raise Death
        publish_really(pair)

    publish_really = Pair.publish
    monkeypatch.setattr(Session, "change", change_slowly)
    monkeypatch.setattr(Pair, "publish", publish)
    with in_database.open() as ledger:
        reserving = ledger.reserve(**FIELDS)
        reservation = reserving.__enter__()
        client = threading.Thread(target=save)
        client.start()
        assert decided.wait(60)
        fcntl.flock(reservation._journal._handle, fcntl.LOCK_UN)
        with ThreadPoolExecutor(1) as pool:
            opening = pool.submit(lambda: in_database.open().settle())
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'cellrisk'"
            with server.connect() as connection:
                while not opening.done() and connection.execute(waiting).fetchone() is None:
                    pass
            die.set()
            client.join()
            opening.result()
        look(in_database.address, None, output)
        assert len(ledger.entries(kind="release")) == 1
    reservation._done = True
    reserving.__exit__(None, None, None)
