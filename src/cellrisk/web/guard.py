"""The guard at the door: every request passes it, and every answer leaves with its headers.

Host against DNS rebinding, Origin against forged requests, a token and then a cookie against everybody else.
"""

from __future__ import annotations

import hmac
import html
import ipaddress
import json
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

from cellrisk.web.settings import WILDCARDS, Settings, bracketed

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
READING = ("GET", "HEAD", "OPTIONS", "TRACE")
LARGEST_BODY = 1_000_000
"""Bytes of any request but an upload."""
FREE_TRIES, LONGEST_WAIT = 5, 60.0
UPLOADS = "/api/uploads"
ENTER = "/enter"


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Any, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.app, self.settings = app, settings
        self.cookie = f"cellrisk-{settings.port}"  # browsers share cookies between the ports of a host
        self._session = secrets.token_urlsafe(32)
        self._hosts = own_hosts(settings)
        self._tries = Tries(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = Answer(scope, send)
        try:
            refusal = self._refuse(scope)
            if refusal is not None:
                await answer.say(*refusal)
            elif scope["path"] == "/" and scope["method"] == "GET" and b"token=" in scope["query_string"]:
                await self._let_in_by_link(scope, answer)
            elif scope["path"] == ENTER and scope["method"] == "POST":
                await self._let_in_by_password(receive, answer)
            elif not self._knows(scope):
                await answer.say(401, "open the link that the server printed when it started")
            elif scope["path"] == UPLOADS:
                await self.app(scope, receive, answer.send)
            else:
                await self.app(scope, limited(receive, LARGEST_BODY), answer.send)
        except TooLarge:
            await answer.say(413, "the request is too large")
        except Exception as bug:  # its text might hold data
            await answer.say(500, f"internal error ({type(bug).__name__})")

    def _refuse(self, scope: Scope) -> tuple[int, str] | None:
        """What is wrong with where the request comes from, if anything is."""
        hosts = values(scope, b"host")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return 400, "this server does not answer under that name"
        site = values(scope, b"sec-fetch-site")
        home = scope["path"] == "/" and scope["method"] in READING
        if site and site[0] not in ("same-origin", "none") and not home:
            return 403, "the request comes from another site"
        if scope["method"] not in READING:
            origins = values(scope, b"origin")
            if origins and origins != [f"http://{hosts[0]}"]:
                return 403, "the request comes from another site"
            vouched = site == ["same-origin"] or values(scope, b"x-cellrisk") == ["1"]
            if not origins and not vouched:
                return 403, "the request does not say where it comes from; send the header X-Cellrisk: 1"
        return None

    def _is_own(self, given: str) -> bool:
        if given.lower() in self._hosts:
            return True
        if self.settings.host not in WILDCARDS:
            return False
        # Under a wildcard any number of this machine may be called: a rebound name is never a number.
        name, colon, port = given.rpartition(":")
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return bool(colon) and port == str(self.settings.port)

    def _knows(self, scope: Scope) -> bool:
        found = [
            value
            for header in values(scope, b"cookie")
            for name, _, value in (part.strip().partition("=") for part in header.split(";"))
            if name == self.cookie
        ]
        return len(found) == 1 and same(found[0], self._session)

    async def _let_in_by_link(self, scope: Scope, answer: Answer) -> None:
        tokens = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20).get("token", [])
        if len(tokens) != 1 or not same(tokens[0], self.settings.token):
            await answer.say(401, "open the link that the server printed when it started")
        elif self.settings.password is not None and not self._knows(scope):
            await answer.page(401, password_page(tokens[0]))
        else:
            await self._welcome(answer)

    async def _let_in_by_password(self, receive: Receive, answer: Answer) -> None:
        wait = self._tries.wait
        if wait > 0:
            await answer.say(429, "too many wrong passwords; wait", {"retry-after": str(max(1, round(wait)))})
            return
        fields = parse_qs((await read_all(limited(receive, 10_000))).decode("latin-1"), max_num_fields=20)
        token, password = (fields.get(name, [""])[0] for name in ("token", "password"))
        right = same(token, self.settings.token) & same(password, self.settings.password or secrets.token_urlsafe())
        self._tries.note(right)
        if right:
            await self._welcome(answer)
        else:
            await answer.say(401, "that password is wrong; go back and try again")

    async def _welcome(self, answer: Answer) -> None:
        cookie = f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"
        await answer.say(303, "come in", {"location": "/", "set-cookie": cookie})


class Tries:
    """Wrong passwords: a few are free, then each doubles the wait.

    >>> now = [0.0]
    >>> tries = Tries(lambda: now[0])
    >>> for _ in range(6):
    ...     tries.note(False)
    >>> tries.wait
    2.0
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._wrong, self._until = clock, 0, 0.0

    @property
    def wait(self) -> float:
        return max(0.0, self._until - self._clock())

    def note(self, right: bool) -> None:
        self._wrong = 0 if right else self._wrong + 1
        if self._wrong >= FREE_TRIES:
            self._until = self._clock() + min(LONGEST_WAIT, 2.0 ** (self._wrong - FREE_TRIES))


class Answer:
    """Sends answers, each with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send, self._begun = scope, send, False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            own = [(name, value) for name, value in message["headers"] if name.lower().decode() not in HEADERS]
            fixed = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            cache = (
                [] if any(name.lower() == b"cache-control" for name, _ in own) else [(b"cache-control", b"no-store")]
            )
            message = {**message, "headers": [*own, *fixed, *cache]}
        await self._send(message)

    async def say(self, status: int, line: str, headers: dict[str, str] | None = None) -> None:
        """One line: JSON under /api, text elsewhere."""
        if self._begun:  # too late for another answer; the connection ends short
            return
        api = self._scope["path"].startswith("/api")
        text = json.dumps({"error": line}) if api else f"cellrisk: {line}\n"
        await self._write(status, text, "application/json" if api else "text/plain; charset=utf-8", headers)

    async def page(self, status: int, text: str) -> None:
        await self._write(status, text, "text/html; charset=utf-8", None)

    async def _write(self, status: int, text: str, kind: str, headers: dict[str, str] | None) -> None:
        body = text.encode()
        every = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
        pairs = [(name.encode(), value.encode()) for name, value in every.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": b"" if self._scope["method"] == "HEAD" else body})


class TooLarge(HTTPException):
    """A request has more bytes than it may have."""

    def __init__(self) -> None:
        super().__init__(413, "the request is too large")


def limited(receive: Receive, most: int) -> Receive:
    """The same request, which ends in an exception once it is too large, whatever it says of its own length."""
    seen = 0

    async def read() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise TooLarge
        return message

    return read


async def read_all(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    return b"".join(parts)


def values(scope: Scope, name: bytes) -> list[str]:
    """Every value of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def same(given: str, secret: str) -> bool:
    """Whether two texts are the same, in a time that does not tell how far they agree."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode("utf-8", "replace"))


def own_hosts(settings: Settings) -> frozenset[str]:
    """The names under which this server may be called, with its port."""
    names = ["localhost", "127.0.0.1", "[::1]"]
    if settings.host not in WILDCARDS:
        names.append(bracketed(settings.host).lower())
    else:
        names.append(socket.gethostname().lower())
    return frozenset([f"{name}:{settings.port}" for name in names] + (names if settings.port == 80 else []))


def password_page(token: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>cellrisk</title>'
        '<meta name="viewport" content="width=device-width"><main><h1>cellrisk</h1>'
        f'<form method="post" action="{ENTER}"><input type="hidden" name="token" value="{html.escape(token)}">'
        '<p><label>Password <input type="password" name="password" autofocus autocomplete="current-password"></label> '
        "<button>Enter</button></p></form></main></html>\n"
    )
