"""Connections on which nothing is said: they end, and never keep anybody out."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from cellrisk.web import connections
from tests.web.conftest import Running, start, stop

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of files are those of Unix")
MANY = 1_200
PATIENCE = {"SECONDS_FOR_HEAD": 1.0, "SECONDS_OF_SILENCE": 1.0}


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that waits for a second, and no more."""
    changed = {f"cellrisk.web.connections.{name}": value for name, value in PATIENCE.items()}
    running = start(tmp_path_factory.mktemp("impatient"), changed=changed, workers=1)
    yield running
    stop(running)


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may open as many files as the test needs."""
    import resource

    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < MANY + 200:
        pytest.skip("this process may not open enough files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before, MANY + 200), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@pytest.mark.usefixtures("many_files")
def test_connections_that_say_nothing_or_half_keep_nobody_out(tmp_path: Path) -> None:
    """More of them than the server may open files by default, none of which ends by itself."""
    running = start(tmp_path, files=1024, changed={"cellrisk.web.connections.SECONDS_FOR_HEAD": 3600.0})
    try:
        with ExitStack() as held:
            for number in range(MANY):
                connection = held.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=60))
                connection.sendall(b"GET / HTTP/1.1\r\nHost: local" if number % 2 else b"")
            with closing(running.client()) as client:
                assert client.get("/api/state").status_code == 200
                open_files = len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))
                assert open_files < connections.MOST_CONNECTIONS + connections.FILES_BESIDE
        assert running.said() == ""
    finally:
        stop(running)


def ends(connection: socket.socket) -> bool:
    """Whether the other side ends the connection, sooner or later."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def head(server: Running, client: Any, path: str, *lines: str) -> bytes:
    name = f"cellrisk-{server.port}"
    known = [f"Host: localhost:{server.port}", "X-Cellrisk: 1", f"Cookie: {name}={client.cookies[name]}"]
    return "\r\n".join([f"POST {path} HTTP/1.1", *known, *lines, "", ""]).encode()


UPLOAD = ("/api/uploads", "Content-Type: multipart/form-data; boundary=b")


@pytest.mark.parametrize(
    "saying",
    [
        lambda server, client: b"",
        lambda server, client: b"GET",
        lambda server, client: b"\r\n",
        lambda server, client: head(server, client, "/api/sources")[:-2],
        lambda server, client: head(server, client, "/api/sources", "Content-Length: 10") + b"{",
        lambda server, client: head(server, client, "/api/sources", "Transfer-Encoding: chunked") + b"1\r\n{\r\n",
        lambda server, client: head(server, client, *UPLOAD, "Content-Length: 100000") + b"--b\r\n",
    ],
    ids=[
        "nothing",
        "a-word",
        "a-line",
        "half-a-head",
        "half-a-body",
        "half-a-chunk",
        "half-an-upload",
    ],
)
def test_whoever_stops_in_the_middle_is_given_up(impatient: Running, saying: Callable[[Running, Any], bytes]) -> None:
    with closing(impatient.client()) as client, socket.create_connection(("127.0.0.1", impatient.port)) as connection:
        connection.settimeout(30)
        connection.sendall(saying(impatient, client))
        assert ends(connection)
        assert client.get("/api/state").status_code == 200
    assert not list(impatient.temporary.glob("cellrisk-web-*/uploads/*"))
    assert impatient.said() == ""


def test_a_head_that_comes_byte_by_byte_is_given_up(impatient: Running) -> None:
    """Each byte is in time, the whole is not: a server that only waits for silence would wait for ever."""
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=30) as connection:
        try:
            for _ in range(300):  # fifteen seconds at least, and the head goes on
                connection.sendall(b"G")
                time.sleep(0.05)
            given_up = False
        except (BrokenPipeError, ConnectionResetError):
            given_up = True
    assert given_up


def test_a_slow_upload_that_goes_on_is_taken(impatient: Running) -> None:
    """Longer than any single wait, but never silent for so long."""
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nx\n1\n\r\n--b--\r\n'
    with closing(impatient.client()) as client, socket.create_connection(("127.0.0.1", impatient.port)) as connection:
        connection.settimeout(30)
        connection.sendall(head(impatient, client, *UPLOAD, f"Content-Length: {len(body)}", "Connection: close"))
        for start in range(0, len(body), 10):
            connection.sendall(body[start : start + 10])
            time.sleep(0.2)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


class TestFiles:
    def test_more_files_may_be_opened_for_the_block(self) -> None:
        import resource

        before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
        try:
            with connections.more_files() as files:
                assert files == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
                assert files >= min(connections.FILES_WANTED, most if most > 0 else connections.FILES_WANTED)
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (256, most)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))

    @pytest.mark.parametrize(("files", "room"), [(64, 50), (600, 200), (4096, 500), (10**6, 500)])
    def test_there_are_no_more_connections_than_files(
        self, monkeypatch: pytest.MonkeyPatch, files: int, room: int
    ) -> None:
        from contextlib import nullcontext

        monkeypatch.setattr(connections, "more_files", lambda: nullcontext(files))
        with connections.room_for_connections() as kind:
            assert kind.most == room
