"""The guard: every request passes it first, and every answer gets its headers.

It checks the Host against DNS rebinding, the Origin against forged requests, and a token, then a cookie, against
everybody else.
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import secrets
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from cellrisk.web.settings import WILDCARDS, Settings, bracketed

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
SMALL_REST = 64 * 1024
"""Bytes of a request that are still read, and thrown away, where it was answered before its end."""
FREE_TRIES, LONGEST_WAIT, MOST_DOUBLINGS = 5, 60.0, 10
UPLOADS = "/api/uploads"
ENTER = "/enter"
COME_BY_LINK = "open the link that the server printed when it started"
HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>cellrisk</title>'
    '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
)
PASSWORD_PAGE = (
    f'{HEAD}<main><h1>cellrisk</h1><form method="post" action="{ENTER}">'
    '<p><label>Password <input type="password" name="password" autofocus autocomplete="current-password"></label> '
    "<button>Enter</button></p></form></main></html>\n"
)
LEAD_ON = (
    f'{HEAD}<meta http-equiv="refresh" content="0;url=/"><main><p><a href="/">Go on to cellrisk</a></p></main></html>\n'
)


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: Any,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        on_link: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_link`` is called when somebody has come by the link."""
        self.app, self.settings, self._on_link = app, settings, on_link
        self.cookie = f"cellrisk-{settings.port}"  # browsers share cookies between the ports of a host
        self.visitor = f"{self.cookie}-link"  # of those who have the link, where a password is asked for too
        self._session, self._visit = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._hosts = own_hosts(settings)
        self._tries = Tries(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        incoming = Incoming(scope, receive)
        answer = Answer(scope, send, incoming)
        try:
            refusal = self._refuse(scope)
            if refusal is not None:
                await answer.say(*refusal)
            elif scope["path"] == "/" and scope["method"] == "GET" and b"token=" in scope["query_string"]:
                await self._let_in_by_link(scope, answer)
            elif scope["path"] == ENTER and scope["method"] == "POST":
                await self._let_in_by_password(scope, incoming, answer)
            elif not self._knows(scope):
                await answer.say(401, COME_BY_LINK)
            elif scope["path"] == UPLOADS:
                await self.app(scope, incoming, answer.send)
            else:
                await self.app(scope, limited(incoming, LARGEST_BODY), answer.send)
        except TooLarge as refusal:
            await answer.say(413, refusal.detail)
        except Exception as bug:  # its text might hold data
            await answer.say(500, f"internal error ({type(bug).__name__})")

    def _refuse(self, scope: Scope) -> tuple[int, str] | None:
        """What is wrong with where the request comes from, or with how its end is told, if anything is."""
        encoded = values(scope, "transfer-encoding")
        if encoded and (values(scope, "content-length") or scope.get("http_version") == "1.0"):
            return 400, "the request tells its length in two ways"  # others on its way may believe the other one
        hosts = values(scope, "host")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return 400, "this server does not answer under that name"
        site = values(scope, "sec-fetch-site")
        home = scope["path"] == "/" and scope["method"] in READING
        if site and site[0] not in ("same-origin", "none") and not home:
            return 403, "the request comes from another site"
        if scope["method"] not in READING:
            origins = values(scope, "origin")
            if origins and origins != [f"http://{hosts[0]}"]:
                return 403, "the request comes from another site"
            vouched = site == ["same-origin"] or values(scope, "x-cellrisk") == ["1"]
            if not origins and not vouched:
                return 403, "the request does not say where it comes from; send the header X-Cellrisk: 1"
        return None

    def _is_own(self, given: str) -> bool:
        """Whether a Host header names this server. Starlette's TrustedHostMiddleware would not look at the port, nor at
        a second Host header, and knows no numbers under a wildcard.
        """
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
        return self._has_cookie(scope, self.cookie, self._session)

    def _has_cookie(self, scope: Scope, wanted: str, secret: str) -> bool:
        """Whether there is one cookie of that name, and it is right. Of several, Starlette would take the last."""
        found = [
            value
            for header in values(scope, "cookie")
            for name, _, value in (part.strip().partition("=") for part in header.split(";"))
            if name == wanted
        ]
        return len(found) == 1 and same(found[0], secret)

    async def _let_in_by_link(self, scope: Scope, answer: Answer) -> None:
        tokens = read_fields(scope["query_string"]).get("token", [])
        if len(tokens) != 1 or not same(tokens[0], self.settings.token):
            await answer.say(401, COME_BY_LINK)
            return
        self._on_link()
        if self.settings.password is not None and not self._knows(scope):
            await answer.page(401, PASSWORD_PAGE, {"set-cookie": self._bake(self.visitor, self._visit)})
        else:
            await self._welcome(scope, answer)

    async def _let_in_by_password(self, scope: Scope, incoming: Incoming, answer: Answer) -> None:
        """Judges a password of somebody who has come by the link. Nothing is read or counted of anybody else, so that
        strangers learn nothing, and lock nobody out; a try counts before its password is read.
        """
        if self.settings.password is None or not self._has_cookie(scope, self.visitor, self._visit):
            await answer.say(401, COME_BY_LINK)
            return
        wait = self._tries.take()
        if wait > 0:
            await answer.say(429, "too many wrong passwords; wait", {"retry-after": str(max(1, round(wait)))})
            return
        fields = read_fields(await Request(scope, limited(incoming, 10_000)).body())
        if same(fields.get("password", [""])[0], self.settings.password):
            self._tries.forget()
            await self._welcome(scope, answer)
        else:
            await answer.say(401, "that password is wrong; go back and try again")

    async def _welcome(self, scope: Scope, answer: Answer) -> None:
        """Gives the cookie and leads to the page. A browser that another place has sent here would not bring a strict
        cookie along a redirect: there the page itself leads on.
        """
        cookie = {"set-cookie": self._bake(self.cookie, self._session)}
        if values(scope, "sec-fetch-site") in ([], ["none"], ["same-origin"]):
            await answer.say(303, "come in", {"location": "/", **cookie})
        else:
            await answer.page(200, LEAD_ON, cookie)

    def _bake(self, name: str, value: str) -> str:
        return f"{name}={value}; HttpOnly; SameSite=Strict; Path=/"


class Tries:
    """Tries of a password: a few are free, then each doubles the wait. A try counts as wrong when it is taken, before
    it is judged, so that many at once are no more than one after the other.

    >>> now = [0.0]
    >>> tries = Tries(lambda: now[0])
    >>> [tries.take() for _ in range(6)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._taken, self._until = clock, 0, 0.0

    def take(self) -> float:
        """Takes a try: 0, and it may be judged; else the seconds to wait, and it may not."""
        wait = self._until - self._clock()
        if wait > 0:
            return wait
        self._taken += 1
        if self._taken >= FREE_TRIES:
            doublings = min(self._taken - FREE_TRIES, MOST_DOUBLINGS)
            self._until = self._clock() + min(LONGEST_WAIT, 2.0**doublings)
        return 0.0

    def forget(self) -> None:
        """Forgets the wrong ones, because a right one has come."""
        self._taken, self._until = 0, 0.0


class Incoming:
    """The body of a request, read as it comes: an ASGI ``receive`` that knows how much is still to come."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        lengths = values(scope, "content-length")
        endless = bool(values(scope, "transfer-encoding")) or any(not length.isdecimal() for length in lengths)
        self.left = math.inf if endless else sum(map(int, lengths))

    async def __call__(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        self.left = self.left - len(message.get("body", b"")) if message.get("more_body") else 0
        return message


class Answer:
    """Sends answers, each with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send, incoming: Incoming) -> None:
        self._scope, self._send, self._incoming, self._begun = scope, send, incoming, False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            headers = MutableHeaders(raw=list(message["headers"]))
            headers.update(HEADERS)
            headers.setdefault("cache-control", "no-store")
            if self._incoming.left > SMALL_REST:  # the rest is not read: the connection ends with the answer
                headers["connection"] = "close"
            message = {**message, "headers": headers.raw}
        await self._send(message)

    async def say(self, status: int, line: str, headers: dict[str, str] | None = None) -> None:
        """One line: JSON under /api, text elsewhere."""
        if self._begun:  # too late for another answer; the connection ends short
            return
        api = self._scope["path"].startswith("/api")
        answer = JSONResponse({"error": line}) if api else PlainTextResponse(f"cellrisk: {line}\n")
        await self._write(answer, status, headers)

    async def page(self, status: int, text: str, headers: dict[str, str]) -> None:
        await self._write(HTMLResponse(text), status, headers)

    async def _write(self, answer: Response, status: int, headers: dict[str, str] | None) -> None:
        answer.status_code = status
        answer.headers.update(headers or {})
        await answer(self._scope, self._incoming, self.send)


class TooLarge(HTTPException):
    """A request has more bytes than it may have."""

    def __init__(self, why: str = "the request is too large") -> None:
        super().__init__(413, why)


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


def read_fields(encoded: bytes) -> dict[str, list[str]]:
    """The fields of a query or of a form; none where there are more than anybody fills in here.

    Starlette's form would read multipart bodies too, and keep their files.
    """
    try:
        return parse_qs(encoded.decode("latin-1"), max_num_fields=20)
    except ValueError:
        return {}


def values(scope: Scope, name: str) -> list[str]:
    """Every value of a header."""
    return Headers(scope=scope).getlist(name)


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
