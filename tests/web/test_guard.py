"""Each safety point of the server, attacked for real."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis.strategies import DataObject, data, floats, just, lists, one_of, permutations

from cellrisk.errors import InvalidInput
from cellrisk.web import guard
from cellrisk.web.settings import Settings
from tests.examples import examples
from tests.web.conftest import Running, ask, start, stop

EVERY_HEADER = {
    "content-security-policy": guard.POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def raw(server: Running, request: bytes) -> bytes:
    """What the server says to bytes that no library would send."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def cookie(client: Any, server: Running) -> str:
    return f"cellrisk-{server.port}={client.cookies[f'cellrisk-{server.port}']}"


class TestEntry:
    def test_the_link_gives_a_strict_cookie_and_leads_home(self, server: Running) -> None:
        answer = ask("GET", server.link)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        name, *flags = answer.headers["set-cookie"].split("; ")
        assert name.startswith(f"cellrisk-{server.port}=")
        assert set(flags) == {"HttpOnly", "SameSite=Strict", "Path=/"}
        assert server.token not in name  # what is in the address is not what is in the cookie

    @pytest.mark.parametrize(
        "token",
        ["", "wrong", "{token}x", "{half}", "{token}&token={token}", "%00", "ü"],
        ids=["empty", "wrong", "longer", "shorter", "twice", "nul", "not-ascii"],
    )
    def test_another_token_is_refused(self, server: Running, token: str) -> None:
        given = token.format(token=server.token, half=server.token[:20])
        answer = ask("GET", f"{server.base}/?token={given}")
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers

    @pytest.mark.parametrize(
        "path", ["/", "/api/state", "/api/openapi.json", "/static/app.js", "/api/files", "/nothing", "/enter"]
    )
    def test_nothing_is_shown_without_the_cookie(self, server: Running, path: str) -> None:
        answer = ask("GET", server.base + path)
        assert answer.status_code == 401
        assert "open the link" in answer.text

    @pytest.mark.parametrize("value", ["", "wrong", "{right}x"])
    def test_another_cookie_is_refused(self, server: Running, client: Any, value: str) -> None:
        right = client.cookies[f"cellrisk-{server.port}"]
        header = {"cookie": f"cellrisk-{server.port}={value.format(right=right)}"}
        assert ask("GET", f"{server.base}/api/state", headers=header).status_code == 401

    def test_two_cookies_of_the_name_are_refused(self, server: Running, client: Any) -> None:
        header = {"cookie": f"{cookie(client, server)}; {cookie(client, server)}"}
        assert ask("GET", f"{server.base}/api/state", headers=header).status_code == 401

    def test_too_many_fields_are_refused(self, server: Running) -> None:
        many = "&".join(f"a{number}=1" for number in range(40))
        assert ask("GET", f"{server.link}&{many}").status_code == 401
        assert guard.read_fields(many.encode()) == {}

    def test_there_is_no_password_where_none_was_set(self, server: Running) -> None:
        answer = ask("POST", f"{server.base}/enter", data={"password": ""}, headers={"X-Cellrisk": "1"})
        assert answer.status_code == 401

    def test_somebody_who_is_sent_here_by_another_place_is_led_on_by_the_page(self, server: Running) -> None:
        """A strict cookie is not sent along a redirect that another place began."""
        answer = ask("GET", server.link, headers={"sec-fetch-site": "cross-site"})
        assert answer.status_code == 200
        assert 'content="0;url=/"' in answer.text
        assert answer.headers["set-cookie"].startswith(f"cellrisk-{server.port}=")
        assert server.token not in answer.text


class TestHost:
    @pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
    def test_own_names_are_answered(self, server: Running, client: Any, name: str) -> None:
        assert client.get("/api/state", headers={"host": f"{name}:{server.port}"}).status_code == 200

    @pytest.mark.parametrize(
        "name",
        ["attacker.example:{port}", "localhost", "localhost:1", "127.0.0.1.attacker.example:{port}", "0.0.0.0:{port}"],
    )
    def test_a_rebound_name_is_refused_with_the_cookie_and_with_the_token(
        self, server: Running, client: Any, name: str
    ) -> None:
        header = {"host": name.format(port=server.port)}
        assert client.get("/api/state", headers=header).status_code == 400
        assert ask("GET", server.link, headers=header).status_code == 400

    @pytest.mark.parametrize("hosts", [[], ["localhost:{port}", "localhost:{port}"]], ids=["none", "two"])
    def test_there_must_be_one_host(self, server: Running, client: Any, hosts: list[str]) -> None:
        lines = "".join(f"Host: {host.format(port=server.port)}\r\n" for host in hosts)
        version = "1.1" if hosts else "1.0"
        request = (
            f"GET /api/state HTTP/{version}\r\n{lines}Connection: close\r\nCookie: {cookie(client, server)}\r\n\r\n"
        )
        assert b" 400 " in raw(server, request.encode()).splitlines()[0]


class TestOrigin:
    def post(self, server: Running, client: Any, **headers: str) -> int:
        given = {"cookie": cookie(client, server), **{name.replace("_", "-"): value for name, value in headers.items()}}
        answer = ask("POST", f"{server.base}/api/sources", json={"example": "adult"}, headers=given)
        return int(answer.status_code)

    def test_the_own_origin_may_change_things(self, server: Running, client: Any) -> None:
        assert self.post(server, client, origin=server.base) == 200
        assert self.post(server, client, sec_fetch_site="same-origin") == 200
        assert self.post(server, client, x_cellrisk="1") == 200

    @pytest.mark.parametrize(
        "origin",
        [
            "http://attacker.example",
            "null",
            "http://localhost:1",
            "https://127.0.0.1:{port}",
            "http://127.0.0.1:{port}.a.b",
        ],
    )
    def test_another_origin_may_not(self, server: Running, client: Any, origin: str) -> None:
        given = origin.format(port=server.port)
        assert self.post(server, client, origin=given) == 403
        assert self.post(server, client, origin=given, x_cellrisk="1") == 403
        assert self.post(server, client, origin=given, sec_fetch_site="same-origin") == 403

    def test_a_request_that_does_not_say_where_it_comes_from_may_not(self, server: Running, client: Any) -> None:
        assert self.post(server, client) == 403
        assert self.post(server, client, x_cellrisk="0") == 403

    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_another_site_may_not_even_read(self, server: Running, client: Any, site: str) -> None:
        assert client.get("/api/state", headers={"sec-fetch-site": site}).status_code == 403
        assert client.get("/", headers={"sec-fetch-site": site}).status_code == 200  # a link to the page is no harm

    def test_deleting_needs_it_too(self, server: Running, client: Any) -> None:
        header = {"cookie": cookie(client, server), "origin": "http://attacker.example"}
        assert ask("DELETE", f"{server.base}/api/jobs/x", headers=header).status_code == 403


class TestAnswers:
    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/", 200),
            ("GET", "/api/state", 200),
            ("GET", "/static/app.js", 200),
            ("GET", "/nothing", 404),
            ("GET", "/api/nothing", 404),
            ("GET", "/api/jobs/unknown", 404),
            ("POST", "/api/sources", 422),
            ("HEAD", "/api/state", 405),
            ("OPTIONS", "/api/state", 405),
            ("TRACE", "/api/state", 405),
            ("PUT", "/api/state", 405),
            ("PATCH", "/", 405),
        ],
    )
    def test_every_answer_has_the_headers(self, client: Any, method: str, path: str, status: int) -> None:
        answer = client.request(method, path)
        assert answer.status_code == status
        for name, value in EVERY_HEADER.items():
            assert answer.headers.get_list(name) == [value]
        assert "server" not in answer.headers
        assert ("no-store" in answer.headers["cache-control"]) == (not path.startswith("/static"))
        if method == "TRACE":
            assert "cookie" not in answer.text

    @pytest.mark.parametrize("status", [400, 401, 403])
    def test_refusals_have_them_too(self, server: Running, status: int) -> None:
        header = {400: {"host": "attacker.example"}, 401: {}, 403: {"sec-fetch-site": "cross-site"}}[status]
        answer = ask("GET", f"{server.base}/api/state", headers=header)
        assert answer.status_code == status
        assert list(answer.json()) == ["error"]
        assert answer.headers.items() >= EVERY_HEADER.items()

    @pytest.mark.parametrize(
        "path",
        [
            "/static/../settings.py",
            "/static/%2e%2e/settings.py",
            "/static/..%2fsettings.py",
            "//static/app.js",
            "/static//app.js",
            "/static/index.html.j2",
            "/static/app.js%00",
            "/api/../api/state",
            "/api//state",
            "/api/downloads/..%2f..%2fetc%2fpasswd",
            "/api/downloads/%2e%2e",
        ],
    )
    def test_confusing_paths_lead_nowhere(self, server: Running, client: Any, path: str) -> None:
        host = f"Host: localhost:{server.port}\r\nConnection: close\r\n"
        answer = raw(server, f"GET {path} HTTP/1.1\r\n{host}Cookie: {cookie(client, server)}\r\n\r\n".encode())
        assert answer.split(b" ")[1] in (b"404", b"400")
        assert b"root:" not in answer
        assert b"import" not in answer

    def test_a_large_request_is_refused_while_it_is_read(self, server: Running, client: Any) -> None:
        body = b'{"example": "' + b"x" * (guard.LARGEST_BODY + 10) + b'"}'
        headers = {"content-type": "application/json"}
        assert client.post("/api/sources", content=body, headers=headers).status_code == 413
        assert client.post("/api/sources", content=iter([body]), headers=headers).status_code == 413  # chunked

    def test_a_bug_is_told_by_its_kind_alone(self) -> None:
        import anyio

        sent: list[Any] = []

        async def fail(scope: Any, receive: Any, send: Any) -> None:
            raise RuntimeError("zanzibar is in the data")

        async def keep(message: Any) -> None:
            sent.append(message)

        watched = guard.Guard(fail, Settings(port=8000))
        scope = {"type": "http", "method": "GET", "path": "/api/state", "query_string": b""}
        scope["headers"] = [(b"host", b"localhost:8000"), (b"cookie", f"cellrisk-8000={watched._session}".encode())]
        anyio.run(watched, scope, None, keep)
        assert sent[0]["status"] == 500
        assert json.loads(sent[1]["body"]) == {"error": "internal error (RuntimeError)"}


class TestEndsOfRequests:
    """Requests that do not say plainly where they end, or go on after they were answered."""

    @pytest.mark.parametrize(
        ("version", "lines"),
        [
            ("1.1", ["Content-Length: 4", "Transfer-Encoding: chunked"]),
            ("1.1", ["Transfer-Encoding: chunked", "Content-Length: 4"]),
            ("1.1", ["Content-Length: 0", "Transfer-Encoding: Chunked"]),
            ("1.0", ["Transfer-Encoding: chunked"]),
            ("1.1", ["Content-Length: 4", "Content-Length: 5"]),
            ("1.1", ["Content-Length: 4, 5"]),
            ("1.1", ["Content-Length: +4"]),
            ("1.1", ["Transfer-Encoding: gzip, chunked"]),
            ("1.1", ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"]),
            ("1.1", ["Transfer-Encoding: xchunked"]),
        ],
        ids=lambda given: given if isinstance(given, str) else "+".join(given).replace(" ", ""),
    )
    def test_a_request_that_tells_its_length_in_two_ways_ends_the_connection(
        self, server: Running, client: Any, version: str, lines: list[str]
    ) -> None:
        """What follows it is never taken for a second request."""
        head = f"Host: localhost:{server.port}\r\nX-Cellrisk: 1\r\nCookie: {cookie(client, server)}\r\n"
        told = "".join(f"{line}\r\n" for line in lines)
        first = f"POST /api/sources HTTP/{version}\r\n{head}{told}\r\n0\r\n\r\n"
        second = f"GET /api/state HTTP/1.1\r\n{head}\r\n"
        answer = raw(server, (first + second).encode())  # reads until the server closes
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"mechanisms" not in answer

    @pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
    @pytest.mark.parametrize("path", ["/api/uploads", "/api/sources", "/enter"])
    def test_reading_stops_with_the_answer(self, server: Running, client: Any, path: str, chunked: bool) -> None:
        """Far more is sent than is taken: the connection ends, and most of it was never read."""
        length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {10**12}"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost:{server.port}\r\nX-Cellrisk: 1\r\n{length}\r\n"
            f"Cookie: {cookie(client, server)}\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
        )
        body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        part, sent = b"1\n" * 50_000, 0
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(head.encode())
            try:
                for piece in [body, *[part] * 1000]:  # a hundred million bytes
                    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                    sent += len(piece)
            except (BrokenPipeError, ConnectionResetError):
                pass
        assert sent < 50_000_000

    def test_the_answer_is_heard_before_the_connection_ends(self, server: Running, client: Any) -> None:
        over = 200_000 + 20_000
        answer = client.post("/api/uploads", files={"file": ("a.csv", b"1\n" * over)})
        assert (answer.status_code, answer.headers["connection"]) == (413, "close")
        assert client.get("/api/state").status_code == 200


class TestRemote:
    @pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", ""])
    def test_another_address_is_refused_by_itself(self, host: str) -> None:
        with pytest.raises(InvalidInput, match="other machines could reach"):
            Settings(host=host)

    def test_and_without_a_password(self) -> None:
        with pytest.raises(InvalidInput, match="needs a password"):
            Settings(host="0.0.0.0", allow_remote=True)

    def test_and_with_a_short_one(self) -> None:
        with pytest.raises(InvalidInput, match="too short") as refusal:
            Settings(host="0.0.0.0", allow_remote=True, password="zebra")
        assert "zebra" not in str(refusal.value)

    @pytest.mark.parametrize(
        ("wrong", "match"),
        [
            ({"folder": Path("/nowhere/at/all")}, "folder to read from"),
            ({"port": 0}, "port must be"),
            ({"upload_limit": 0}, "limit of uploads"),
            ({"workers": 0}, "number of workers"),
            ({"token": "short"}, "token is too short"),
        ],
    )
    def test_other_settings_are_checked(self, wrong: dict[str, Any], match: str) -> None:
        with pytest.raises(InvalidInput, match=match):
            Settings(**wrong)

    def test_secrets_are_not_printed(self) -> None:
        made = Settings(password="correct horse")
        assert made.token not in repr(made)
        assert "correct horse" not in repr(made)


PASSWORD = "correct horse ü"


class TestPassword:
    @pytest.fixture
    def guarded(self, tmp_path: Path) -> Iterator[Running]:
        running = start(tmp_path, workers=1, host="0.0.0.0", allow_remote=True, password=PASSWORD)
        yield running
        stop(running)

    def visit(self, guarded: Running) -> dict[str, str]:
        """Somebody who has come by the link, and was asked for the password: their cookie."""
        asked = ask("GET", guarded.link)
        assert asked.status_code == 401
        assert 'type="password"' in asked.text
        assert guarded.token not in asked.text
        assert asked.headers.items() >= EVERY_HEADER.items()
        name, *flags = asked.headers["set-cookie"].split("; ")
        assert set(flags) == {"HttpOnly", "SameSite=Strict", "Path=/"}
        return {"cookie": name}

    def enter(self, guarded: Running, password: str, cookie: dict[str, str]) -> httpx.Response:
        return ask(
            "POST", f"{guarded.base}/enter", data={"password": password}, headers={"origin": guarded.base, **cookie}
        )

    def test_the_link_and_the_password_are_both_needed_and_guesses_become_slow(self, guarded: Running) -> None:
        visitor = self.visit(guarded)
        assert ask("GET", f"{guarded.base}/api/state", headers=visitor).status_code == 401
        for _ in range(3):
            assert self.enter(guarded, "wrong", visitor).status_code == 401
        for stranger in ({}, {"cookie": f"cellrisk-{guarded.port}-link=wrong"}):
            answers = {self.enter(guarded, word, stranger).text for word in ("wrong", PASSWORD) for _ in range(5)}
            assert answers == {f"cellrisk: {guard.COME_BY_LINK}\n"}  # neither judged nor counted
        let_in = self.enter(guarded, PASSWORD, visitor)
        assert (let_in.status_code, let_in.headers["location"]) == (303, "/")
        jar = {f"cellrisk-{guarded.port}": let_in.headers["set-cookie"].partition("=")[2].partition(";")[0]}
        with httpx.Client(base_url=guarded.base, cookies=jar, verify=False) as client:
            assert client.get("/api/state").status_code == 200
            other = f"192.0.2.1:{guarded.port}"  # under a wildcard any number may be called, but no other name
            assert client.get("/api/state", headers={"host": other}).status_code == 200
            assert client.get("/api/state", headers={"host": f"a.example:{guarded.port}"}).status_code == 400
        with ThreadPoolExecutor(20) as guesses:  # all at once
            found = [answer.status_code for answer in guesses.map(self.enter, *guessed(guarded, visitor, 40))]
        assert sorted(set(found)) == [401, 429]
        assert found.count(401) <= guard.FREE_TRIES + 3  # those that come after a wait of one, two and four seconds
        slow = self.enter(guarded, PASSWORD, visitor)
        assert slow.status_code == 429
        assert int(slow.headers["retry-after"]) >= 1

    def test_waits_double_up_to_a_minute_and_end_with_the_right_word(self) -> None:
        now = [0.0]
        tries = guard.Tries(lambda: now[0])
        moments = []
        for _ in range(3000):
            now[0] += tries.take()  # either it is judged at once, or after the wait that it is told
            moments.append(now[0])
        judged = list(dict.fromkeys(moments))
        assert judged[:9] == [0, 1, 3, 7, 15, 31, 63, 123, 183]
        assert {later - sooner for sooner, later in pairwise(judged[6:])} == {60}
        tries.forget()
        assert [tries.take() for _ in range(guard.FREE_TRIES)] == [0.0] * guard.FREE_TRIES
        assert tries.take() > 0

    @settings(max_examples=examples(60), deadline=None)
    @given(data())
    def test_however_guesses_come_few_are_judged(self, drawn: DataObject) -> None:
        """Guesses begin, send their password and are answered in any order, while time goes on: the number judged is
        at most the free ones and one for each wait that has passed."""
        import anyio

        now, judged = [0.0], []
        watched = guard.Guard(None, Settings(port=8000, password=PASSWORD), lambda: now[0])
        cookie = f"{watched.visitor}={watched._visit}"
        begin = [(b"host", b"localhost:8000"), (b"x-cellrisk", b"1"), (b"content-length", b"14")]
        # Most come at the same moment: were there long pauses between them, all of them would be allowed.
        moments = drawn.draw(lists(one_of(just(0.0), just(0.0), floats(0, 1)), min_size=20, max_size=40))
        with_token = [place % 4 != 3 for place in range(len(moments))]

        async def guess(knows: bool, opened: anyio.Event) -> None:
            async def receive() -> Any:
                await opened.wait()
                return {"type": "http.request", "body": b"password=wrong", "more_body": False}

            async def send(message: Any) -> None:
                if message["type"] == "http.response.body" and b"password is wrong" in message["body"]:
                    judged.append(knows)

            headers = [*begin, *([(b"cookie", cookie.encode())] if knows else [])]
            scope = {"type": "http", "method": "POST", "path": "/enter", "query_string": b"", "headers": headers}
            await watched(scope, receive, send)

        async def run() -> None:
            async with anyio.create_task_group() as tasks:
                doors = []
                for moment, knows in zip(moments, with_token, strict=True):
                    now[0] += moment
                    doors.append(anyio.Event())
                    tasks.start_soon(guess, knows, doors[-1])
                    await anyio.sleep(0)
                for door in drawn.draw(permutations(doors)):
                    door.set()

        anyio.run(run)
        assert judged
        assert all(judged)  # nobody without the link is judged
        passed, allowed, wait = sum(moments), guard.FREE_TRIES, 1.0
        while passed >= wait:
            passed, allowed, wait = passed - wait, allowed + 1, min(60.0, 2 * wait)
        assert len(judged) <= allowed


def guessed(guarded: Running, visitor: dict[str, str], number: int) -> Any:
    return [guarded] * number, [f"wrong{each}" for each in range(number)], [visitor] * number


class TestSecrecy:
    def test_nothing_of_the_data_is_said_on_the_terminal(self, server: Running, client: Any, table: str) -> None:
        """Also where something goes wrong: a broken file, a wrong column, a bug in a request."""
        broken = "sex,zanzibarcolumn\nf,1\nm,2,zanzibar3\n"
        source = client.post("/api/uploads", files={"file": ("zanzibar.csv", broken)}).json()["source"]
        client.get(f"/api/sources/{source}")
        client.post(f"{table}/riskiest", json={"sensitive": "zanzibar", "epsilon": 1.0})
        client.get("/api/jobs/zanzibar")
        torn = {"Content-Type": "multipart/form-data; boundary=x"}
        assert client.post("/api/uploads", content=b"--nzanzibar", headers=torn).status_code in (400, 422)
        said = server.said()
        assert "zanzibar" not in said
        assert "people.csv" not in said
        assert said == ""

    def test_refusals_name_no_place_of_the_server(self, client: Any, look: Callable[[str], Any]) -> None:
        answer = client.post("/api/uploads", files={"file": ("empty.csv", "")})
        error = look(answer.json()["source"])
        assert error.status_code == 422
        assert error.json() == {"error": "the file is empty; got empty.csv"}

    def test_ids_cannot_be_guessed(self, client: Any) -> None:
        ids = {client.post("/api/uploads", files={"file": ("a.csv", "x\n1\n")}).json()["source"] for _ in range(3)}
        assert len(ids) == 3
        assert all(len(each) >= 20 for each in ids)
