"""The server: made from settings, started on a socket, and ended so that nothing of the data is left behind."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.web.settings import UPLOAD_LIMIT, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from cellrisk.choice import Policy

NEEDED = "the web app needs packages that are not installed"
FIX = "install them with pip install 'cellrisk[web]'"
SECONDS_TO_END = 2
ABOUT = (
    "Every request needs the cookie that the link printed at start gives. A request that changes anything also needs "
    "the Origin of the page, or the header `X-Cellrisk: 1`. What takes long is a job: the answer names it, and "
    "`/api/jobs/{job}` tells how far it has got and its result. A refusal is one line."
)


def create_app(settings: Settings) -> FastAPI:
    """The application: an API under /api, and the page that uses it. Its desk is open from start to shutdown."""
    try:
        from fastapi import FastAPI, Request
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import JSONResponse
        from starlette.exceptions import HTTPException

        from cellrisk import __version__
        from cellrisk.web import routes
        from cellrisk.web.desk import NotThere, open_desk
        from cellrisk.web.guard import Guard
        from cellrisk.web.jobs import Busy
    except ImportError:
        raise InvalidInput(NEEDED, fix=FIX) from None

    @asynccontextmanager
    async def keep_desk(app: FastAPI) -> AsyncIterator[None]:
        with open_desk(settings) as desk:
            app.state.desk = desk
            yield

    app = FastAPI(
        title="cellrisk",
        version=__version__,
        summary="How much a frequency table still reveals about people when it is published with differential privacy",
        description=ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=keep_desk,
    )
    app.add_middleware(Guard, settings=settings)
    app.include_router(routes.api)
    app.include_router(routes.page)

    @app.exception_handler(CellriskError)
    def refuse(_: Request, refusal: Exception) -> JSONResponse:
        status = 404 if isinstance(refusal, NotThere) else 429 if isinstance(refusal, Busy) else 422
        return JSONResponse({"error": str(refusal)}, status_code=status)

    @app.exception_handler(RequestValidationError)
    def refuse_request(_: Request, refusal: Exception) -> JSONResponse:
        return JSONResponse({"error": describe_flaws(refusal)}, status_code=422)

    @app.exception_handler(HTTPException)
    def refuse_plainly(_: Request, refusal: Exception) -> JSONResponse:
        status = getattr(refusal, "status_code", 400)
        return JSONResponse(
            {"error": str(getattr(refusal, "detail", "")).lower()},
            status_code=status,
            headers=getattr(refusal, "headers", None),
        )

    return app


def describe_flaws(refusal: Any) -> str:
    """What is wrong with a request, in one line: where and why, never the value."""
    flaws = []
    for flaw in refusal.errors()[:3]:
        place = ".".join(str(part) for part in flaw["loc"] if part != "body")
        flaws.append(f"{place[:100] or 'the request'}: {flaw['msg'][:200]}")
    return "; ".join(flaws).encode("utf-8", "replace").decode()


def serve(
    *,
    folder: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    ledger: str | os.PathLike[str] | None = None,
    upload_limit: int = UPLOAD_LIMIT,
    allow_remote: bool = False,
    password: str | None = None,
    token: str | None = None,
    policy: Policy | None = None,
    open_browser: bool = True,
    announce: Callable[[str], None] = lambda link: None,
) -> None:
    """Runs the web app until it is interrupted.

    ``announce`` is called once with the link that lets its reader in. Ctrl-C, SIGTERM and SIGHUP end it: workers are
    gone and uploads removed when this returns.
    """
    from pathlib import Path

    try:
        import uvicorn
    except ImportError:
        raise InvalidInput(NEEDED, fix=FIX) from None

    given: dict[str, Any] = {} if token is None else {"token": token}
    given |= {
        "folder": None if folder is None else Path(folder),
        "ledger": None if ledger is None else os.fspath(ledger),
    }
    given |= {"upload_limit": upload_limit, "allow_remote": allow_remote, "password": password, "policy": policy}
    Settings(host=host, **given)  # refuses before anything is opened
    if ledger is not None:
        from cellrisk.ledger import Ledger

        Ledger(ledger).close()
    with listen(host, port) as listening:
        settings = Settings(host=host, port=listening.getsockname()[1], **given)
        app = create_app(settings)
        for library in ("asyncio", "python_multipart"):
            logging.getLogger(library).setLevel(logging.CRITICAL)  # their messages may quote what was worked on
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
        server = uvicorn.Server(config)
        server.capture_signals = _leave_signals_alone  # type: ignore[method-assign]

        def welcome() -> None:
            announce(settings.link)
            if open_browser:
                import webbrowser

                webbrowser.open(settings.link)

        with until_told(server):
            watcher = threading.Thread(target=_when_started, args=(server, welcome), daemon=True)
            watcher.start()
            server.run(sockets=[listening])


def _when_started(server: Any, act: Callable[[], None]) -> None:
    pause = threading.Event()
    while not server.started and not server.should_exit:
        pause.wait(0.02)
    if server.started:
        act()


@contextmanager
def _leave_signals_alone() -> Iterator[None]:
    yield


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; port 0 takes a free one."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError, OverflowError):
        raise InvalidInput("the address to listen on is not known", got=host) from None
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
        except OSError as error:
            raise InvalidInput("the address cannot be listened on", got=f"{host}:{port} ({error.strerror})") from None
        yield listening


@contextmanager
def until_told(server: Any) -> Iterator[None]:
    """Signals end the server in good order; a second one ends it at once. Only the main thread can listen to them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    wanted = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, stop) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
