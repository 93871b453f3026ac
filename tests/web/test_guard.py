"""Each safety point of the server, attacked for real."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from cellrisk.web.guard import HEADERS, LARGEST_BODY
from tests.web.conftest import Running, ask


def raw(server: Running, request: bytes) -> bytes:
    """What the server says to bytes that no library would send."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
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
        assert (answer.status_code, 'content="0;url=/"' in answer.text) == (200, True)
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

    @pytest.mark.parametrize("path", ["/", "/sets", "/api/state", "/static/app.js", "/nothing"])
    def test_nothing_is_shown_without_the_cookie(self, server: Running, path: str) -> None:
        answer = ask("GET", server.base + path)
        assert answer.status_code == 401
        assert "open the link" in answer.text

    @pytest.mark.parametrize("value", ["{name}=", "{name}=wrong", "{name}={right}x", "{name}={right}; {name}={right}"])
    def test_another_cookie_or_two_are_refused(self, server: Running, client: Any, value: str) -> None:
        name = f"cellrisk-{server.port}"
        header = {"cookie": value.format(name=name, right=client.cookies[name])}
        assert ask("GET", f"{server.base}/api/state", headers=header).status_code == 401

    def test_a_browser_that_another_site_has_sent_here_is_led_on_by_a_page(self, server: Running) -> None:
        """A strict cookie is not sent along a redirect that another site began."""
        answer = ask("GET", server.link, headers={"sec-fetch-site": "cross-site"})
        assert answer.status_code == 200
        assert 'content="0;url=/"' in answer.text
        assert answer.headers["set-cookie"].startswith(f"cellrisk-{server.port}=")
        assert server.token not in answer.text

    def test_it_listens_on_this_machine_alone(self, server: Running) -> None:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]]
        port = f":{server.port:04X}"
        listening = [local for _, local, _, state, *_ in lines if state == "0A" and local.endswith(port)]
        assert listening == [f"0100007F{port}"]


class TestHost:
    @pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "LOCALHOST"])
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
    def test_another_site_may_not_even_read(self, client: Any, site: str) -> None:
        assert client.get("/api/state", headers={"sec-fetch-site": site}).status_code == 403
        assert client.get("/", headers={"sec-fetch-site": site}).status_code == 200  # a link to the page is no harm

    @pytest.mark.parametrize(("method", "path"), [("DELETE", "/api/jobs/x"), ("POST", "/api/uploads?name=a.csv")])
    def test_deleting_and_uploading_need_it_too(self, server: Running, client: Any, method: str, path: str) -> None:
        header = {"cookie": cookie(client, server), "origin": "http://attacker.example"}
        assert ask(method, server.base + path, headers=header).status_code == 403


class TestAnswers:
    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/", 200),
            ("GET", "/api/state", 200),
            ("GET", "/static/app.js", 200),
            ("GET", "/nothing", 404),
            ("GET", "/api/jobs/unknown", 404),
            ("POST", "/api/sources", 422),
            ("TRACE", "/api/state", 405),
            ("PUT", "/api/state", 405),
        ],
    )
    def test_every_answer_has_the_headers(self, client: Any, method: str, path: str, status: int) -> None:
        answer = client.request(method, path)
        assert answer.status_code == status
        for name, value in HEADERS.items():
            assert answer.headers.get_list(name) == [value]
        assert "server" not in answer.headers
        assert ("no-store" in answer.headers["cache-control"]) == (not path.startswith("/static"))

    @pytest.mark.parametrize("status", [400, 401, 403])
    def test_refusals_have_them_too(self, server: Running, status: int) -> None:
        header = {400: {"host": "attacker.example"}, 401: {}, 403: {"sec-fetch-site": "cross-site"}}[status]
        answer = ask("GET", f"{server.base}/api/state", headers=header)
        assert answer.status_code == status
        assert list(answer.json()) == ["error"]
        assert answer.headers.items() >= HEADERS.items()

    @pytest.mark.parametrize(
        "path",
        [
            "/static/../settings.py",
            "/static/%2e%2e/settings.py",
            "/static/..%2fsettings.py",
            "/static//app.js",
            "/static/index.html.j2",
            "/static/app.js%00",
            "/api/../api/state",
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

    def test_a_large_request_is_refused_while_it_is_read(self, client: Any) -> None:
        body = b'{"example": "' + b"x" * (LARGEST_BODY + 10) + b'"}'
        headers = {"content-type": "application/json"}
        assert client.post("/api/sources", content=body, headers=headers).status_code == 413
        assert client.post("/api/sources", content=iter([body]), headers=headers).status_code == 413  # chunked
        assert client.get("/api/state").status_code == 200

    @pytest.mark.parametrize(
        "body", [b"{", b'{"example": 1}', b'{"example": "adult", "more": 1}', b'{"path": "a", "example": NaN}', b"[]"]
    )
    def test_a_request_of_another_shape_is_one_line_without_its_values(self, client: Any, body: bytes) -> None:
        answer = client.post("/api/sources", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422
        assert "\n" not in answer.json()["error"]
        assert "zanzibar" not in answer.text
