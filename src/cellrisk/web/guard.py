"""The guard: every request passes it first, and every answer gets its headers.

It checks the Host against DNS rebinding, Origin and Sec-Fetch-Site against forged requests, and a token, then a cookie,
against other users of the machine.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from cellrisk.web.settings import LOOPBACK

if TYPE_CHECKING:
    from cellrisk.web.settings import Settings

LEAD_ON = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>cellrisk</title><link rel="icon" href="data:,">'
    '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={link}">'
    '<main><p><a href="{link}">Go on to cellrisk</a></p></main></html>\n'
)
"""A page that leads to an address."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
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
UPLOADS = "/api/uploads"
OPEN_LINK = "open the link that the server printed when it started"


class TooLarge(HTTPException):
    """A request has more bytes than it may have."""

    def __init__(self, why: str = "the request is too large") -> None:
        super().__init__(413, why)


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Any, settings: Settings, on_link: Callable[[], None] = lambda: None) -> None:
        """``on_link`` is called when somebody has come by the link."""
        self._app, self._token, self._on_link = app, settings.token, on_link
        self._cookie = f"cellrisk-{settings.port}"  # browsers share cookies between the ports of a host
        self._session = secrets.token_urlsafe(32)
        names = (LOOPBACK, "localhost")
        self._hosts = {f"{name}:{settings.port}" for name in names} | set(names if settings.port == 80 else ())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
                message = {**message, "headers": headers.raw}
            await send(message)

        async def answer(response: Response) -> None:
            if not begun:  # else it is too late for another answer, and the connection ends short
                await response(scope, receive, send_guarded)

        try:
            response = self._check(scope)
            if response is not None:
                await answer(response)
            else:
                body = receive if scope["path"] == UPLOADS else limited(receive, LARGEST_BODY)
                await self._app(scope, body, send_guarded)
        except TooLarge as refusal:
            await answer(refuse(scope, 413, refusal.detail))
        except Exception as bug:  # its text might hold data
            await answer(refuse(scope, 500, f"internal error ({type(bug).__name__})"))

    def _check(self, scope: Scope) -> Response | None:
        """Return a refusal, or the answer to the link; None if the request may pass."""
        hosts = values(scope, "host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return refuse(scope, 400, "this server does not answer under that name")
        site, origins = values(scope, "sec-fetch-site"), values(scope, "origin")
        home = scope["path"] == "/" and scope["method"] in READING
        foreign = site and site[0] not in ("same-origin", "none") and not home
        if scope["method"] not in READING:
            if not origins and site != ["same-origin"] and values(scope, "x-cellrisk") != ["1"]:
                return refuse(scope, 403, "the request does not say where it comes from; send the header X-Cellrisk: 1")
            foreign = foreign or (origins and origins != [f"http://{hosts[0]}"])
        if foreign:
            return refuse(scope, 403, "the request comes from another site")
        if home and b"token=" in scope["query_string"]:
            return self._answer_link(scope)
        return None if self._has_cookie(scope) else refuse(scope, 401, OPEN_LINK)

    def _answer_link(self, scope: Scope) -> Response:
        """Return the cookie and a page that leads on.

        A browser that another site has sent here would not bring a strict cookie along a redirect.
        """
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if len(tokens) != 1 or not same(tokens[0], self._token):
            return refuse(scope, 401, OPEN_LINK)
        self._on_link()
        cookie = {"set-cookie": f"{self._cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"}
        return HTMLResponse(LEAD_ON.format(link="/"), headers=cookie)

    def _has_cookie(self, scope: Scope) -> bool:
        """Return whether there is exactly one cookie of our name, and it is right."""
        parts = [part.strip().partition("=") for header in values(scope, "cookie") for part in header.split(";")]
        given = [value for name, _, value in parts if name == self._cookie]
        return len(given) == 1 and same(given[0], self._session)


def refuse(scope: Scope, status: int, line: str) -> Response:
    """Return a refusal of one line: JSON under /api, text elsewhere."""
    if scope["path"].startswith("/api"):
        return JSONResponse({"error": line}, status_code=status)
    return PlainTextResponse(f"cellrisk: {line}\n", status_code=status)


def limited(receive: Receive, most: int) -> Receive:
    """Return the same request, which ends in an exception once it is too large, whatever its stated length."""
    seen = 0

    async def read() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise TooLarge
        return message

    return read


def values(scope: Scope, name: str) -> list[str]:
    """Return every value of a header."""
    return Headers(scope=scope).getlist(name)


def same(given: str, secret: str) -> bool:
    """Compare two texts in a time that does not depend on how far they agree."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode("utf-8", "replace"))
