"""Connections with time limits, of which the server never runs out.

Somebody who opens connections and sends nothing on them must not keep the owner out. So the head of a request has to
come within seconds, and a body must not stop coming. Where there are as many connections as there may be, the one that
has waited longest without a request is closed. Uvicorn's own time limit holds between requests only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_FOR_HEAD = 10.0
"""From the start of a connection, or the first byte of a further request, to the end of its head."""
SECONDS_OF_SILENCE = 30.0
"""Between two parts of a body that the server is ready to read."""
REST_READ, SECONDS_FOR_REST = 1_000_000, 2.0
"""Bytes and time that a request has left once it was answered before its end: a sender that is cut off at once would
not see the answer. What comes in them is thrown away."""
MOST_CONNECTIONS = 500
FEWEST_CONNECTIONS = 50
ACCEPTED_AT_ONCE = 200
"""Connections that wait to be accepted, which are then opened together, before any of them can make room."""
FILES_WANTED = 4096
FILES_BESIDE = ACCEPTED_AT_ONCE + 200
"""Files that the server needs beside the connections that it holds."""


class Connection(H11Protocol):
    """One connection, which is closed where it lets the server wait too long."""

    most = MOST_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = SlowlyClosedTransport(transport, self)  # type: ignore[assignment]
        self._rest: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.waiting_since = self.loop.time()
        self._wait(SECONDS_FOR_HEAD)
        if len(self.connections) > self.most:
            idle = [each for each in self.connections if isinstance(each, Connection) and each.is_idle]
            min(idle, key=lambda each: each.waiting_since, default=self).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._rest is not None:
            self._rest -= len(data)
            if self._rest < 0:
                self.give_up()
            return
        super().data_received(data)
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._wait(SECONDS_OF_SILENCE)
        elif state is not h11.IDLE:
            self._stop_waiting()
        elif self._timer is None:
            self._wait(SECONDS_FOR_HEAD)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.waiting_since = self.loop.time()
        if self.conn.their_state is not h11.SEND_BODY:  # what comes next has uvicorn's own time for idle connections
            self._stop_waiting()

    def reads_the_rest(self) -> bool:
        """Whether a request was answered before all of it has come; its rest is then read for a short time."""
        if self._rest is None and self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete:
            self._rest = REST_READ
            self.flow.resume_reading()
            self._wait(SECONDS_FOR_REST)
        return self._rest is not None

    @property
    def is_ending(self) -> bool:
        """Whether nothing more will be answered."""
        return self._rest is not None

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def give_up(self) -> None:
        """Closes the connection, whatever is still to be sent."""
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._time_out)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        if self.flow.read_paused:  # it is the server that does not listen
            self._wait(SECONDS_OF_SILENCE)
        else:
            self.give_up()


class SlowlyClosedTransport:
    """The transport of a connection. It stays open while the rest of a request comes that was answered already."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport, self._connection = transport, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._connection.is_ending or self._transport.is_closing()

    def close(self) -> None:
        if not self._connection.reads_the_rest():
            self._transport.close()


@contextmanager
def room_for_connections() -> Iterator[type[Connection]]:
    """The class of connections, with as many of them as this process may open files.

    For the length of the block the process may open more files than by default, where the system lets it.
    """
    with more_files() as files:
        room = max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, files - FILES_BESIDE))
        yield type("Connection", (Connection,), {"most": room})


@contextmanager
def more_files() -> Iterator[int]:
    """Raises the number of files that this process may open, within what the system allows; gives the number."""
    resource: Any
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        yield FILES_WANTED
        return
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if most == resource.RLIM_INFINITY else min(FILES_WANTED, most)
    if before == resource.RLIM_INFINITY or before >= wanted:
        yield FILES_WANTED if before == resource.RLIM_INFINITY else before
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    try:
        yield resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
