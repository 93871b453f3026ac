"""Each safety point of the server, attacked for real."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cellrisk.errors import InvalidInput
from cellrisk.web import guard
from cellrisk.web.settings import Settings
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

    def test_there_is_no_password_where_none_was_set(self, server: Running) -> None:
        data = {"token": server.token, "password": ""}
        answer = ask("POST", f"{server.base}/enter", data=data, headers={"X-Cellrisk": "1"})
        assert answer.status_code == 401


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
            ("GET", "/static/plotly.min.js", 200),
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

        settings = Settings(port=8000)
        watched = guard.Guard(fail, settings)
        scope = {"type": "http", "method": "GET", "path": "/api/state", "query_string": b""}
        scope["headers"] = [(b"host", b"localhost:8000"), (b"cookie", f"cellrisk-8000={watched._session}".encode())]
        anyio.run(watched, scope, None, keep)
        assert sent[0]["status"] == 500
        assert sent[1]["body"] == b'{"error": "internal error (RuntimeError)"}'


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
            ({"workers": 0}, "one worker"),
            ({"token": "short"}, "token is too short"),
        ],
    )
    def test_other_settings_are_checked(self, wrong: dict[str, Any], match: str) -> None:
        with pytest.raises(InvalidInput, match=match):
            Settings(**wrong)

    def test_secrets_are_not_printed(self) -> None:
        settings = Settings(password="correct horse")
        assert settings.token not in repr(settings)
        assert "correct horse" not in repr(settings)


class TestPassword:
    @pytest.fixture
    def guarded(self, tmp_path: Path) -> Iterator[Running]:
        running = start(tmp_path, host="0.0.0.0", allow_remote=True, password="correct horse ü")
        yield running
        stop(running)

    def enter(self, guarded: Running, password: str, token: str | None = None) -> httpx.Response:
        data = {"token": guarded.token if token is None else token, "password": password}
        return ask("POST", f"{guarded.base}/enter", data=data, headers={"origin": guarded.base})

    def test_the_link_and_the_password_are_both_needed_and_guesses_become_slow(self, guarded: Running) -> None:
        asked = ask("GET", guarded.link)
        assert asked.status_code == 401
        assert 'type="password"' in asked.text
        assert "set-cookie" not in asked.headers
        assert asked.headers.items() >= EVERY_HEADER.items()
        assert self.enter(guarded, "correct horse ü", token="wrong").status_code == 401
        for _ in range(3):
            assert self.enter(guarded, "wrong").status_code == 401
        let_in = self.enter(guarded, "correct horse ü")
        assert (let_in.status_code, let_in.headers["location"]) == (303, "/")
        jar = {f"cellrisk-{guarded.port}": let_in.headers["set-cookie"].partition("=")[2].partition(";")[0]}
        with httpx.Client(base_url=guarded.base, cookies=jar, verify=False) as client:
            assert client.get("/api/state").status_code == 200
            other = f"192.0.2.1:{guarded.port}"  # under a wildcard any number may be called, but no other name
            assert client.get("/api/state", headers={"host": other}).status_code == 200
            assert client.get("/api/state", headers={"host": f"a.example:{guarded.port}"}).status_code == 400
        for _ in range(guard.FREE_TRIES):
            assert self.enter(guarded, "wrong").status_code == 401
        slow = self.enter(guarded, "correct horse ü")
        assert slow.status_code == 429
        assert int(slow.headers["retry-after"]) >= 1

    def test_waits_double_up_to_a_minute_and_end_with_the_right_word(self) -> None:
        now = [0.0]
        tries = guard.Tries(lambda: now[0])
        waits = []
        for _ in range(12):
            tries.note(False)
            waits.append(tries.wait)
            now[0] += tries.wait
        assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]
        tries.note(True)
        tries.note(False)
        assert tries.wait == 0


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
