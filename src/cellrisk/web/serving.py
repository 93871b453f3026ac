"""Makes the server from its settings, starts it on a socket, and ends it so that no data is left behind."""

from __future__ import annotations

import html
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.system.scratch import private_folder
from cellrisk.system.stopping import left_alone
from cellrisk.web.settings import UPLOAD_LIMIT, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from cellrisk.decide.policies import Policies
    from cellrisk.decide.policy import Policy

NEEDED = "the web app needs packages that are not installed"
FIX = "install them with pip install 'cellrisk[web]'"
SECONDS_TO_END = 2
LINK_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>cellrisk</title>'
    '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={link}">'
    '<p><a href="{link}">Go on to cellrisk</a></p></html>\n'
)
ABOUT = (
    "Every request needs the cookie that the link printed at start gives. A request that changes anything also needs "
    "the Origin of the page, or the header `X-Cellrisk: 1`. What takes long is a job: the answer names it, and "
    "`/api/jobs/{job}` tells how far it has got and its result. A refusal is one line."
)


def create_app(settings: Settings, on_link: Callable[[], None] = lambda: None) -> FastAPI:
    """The application: an API under /api, and the page that uses it. Its workspace is open from start to shutdown.

    ``on_link`` is called when somebody has come by the link.
    """
    try:
        from fastapi import FastAPI, Request
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import JSONResponse
        from starlette.exceptions import HTTPException

        from cellrisk.system.version import __version__
        from cellrisk.web.boxes import name_box, name_boxes
        from cellrisk.web.guard import Guard
        from cellrisk.web.jobs import Busy
        from cellrisk.web.routes import api, page
        from cellrisk.web.workspace import NotRead, NotThere, open_workspace
    except ImportError:
        raise InvalidInput(NEEDED, fix=FIX) from None

    @asynccontextmanager
    async def hold_workspace(app: FastAPI) -> AsyncIterator[None]:
        with open_workspace(settings) as workspace:
            app.state.workspace = workspace
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
        lifespan=hold_workspace,
    )
    app.add_middleware(Guard, settings=settings, on_link=on_link)
    app.include_router(api)
    app.include_router(page)

    @app.exception_handler(CellriskError)
    def refuse(_: Request, refusal: CellriskError) -> JSONResponse:
        statuses = {NotThere: 404, NotRead: 409, Busy: 429}
        status = next((status for kind, status in statuses.items() if isinstance(refusal, kind)), 422)
        return JSONResponse({"error": name_boxes(refusal.render(name_box))}, status_code=status)

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
    new_ledger: bool = False,
    upload_limit: int = UPLOAD_LIMIT,
    allow_remote: bool = False,
    password: str | None = None,
    token: str | None = None,
    policy: Policy | Policies | None = None,
    open_browser: bool = True,
    announce: Callable[[str], None] = lambda link: None,
) -> None:
    """Runs the web app until it is interrupted.

    ``announce`` is called once with the link that lets its reader in. Ctrl-C, SIGTERM and SIGHUP end it: workers are
    gone and uploads removed when this returns.
    """
    try:
        import uvicorn

        from cellrisk.web.connections import ACCEPTED_AT_ONCE, room_for_connections
    except ImportError:
        raise InvalidInput(NEEDED, fix=FIX) from None

    from cellrisk.decide.policies import Policies

    given: dict[str, Any] = {} if token is None else {"token": token}
    asked = Settings(  # refuses before anything is opened
        folder=None if folder is None else Path(folder),
        host=host,
        ledger=None if ledger is None else os.fspath(ledger),
        upload_limit=upload_limit,
        allow_remote=allow_remote,
        password=password,
        policy=Policies.in_force(policy),
        **given,
    )
    if ledger is None and new_ledger:
        raise InvalidInput("a new ledger needs a place", fix="name it: --ledger releases.db")
    with ExitStack() as held:
        listening = held.enter_context(listen(host, port))
        if ledger is not None:
            from cellrisk.repeat.ledger import Ledger

            Ledger(ledger, create=new_ledger).close()
        settings = replace(asked, port=listening.getsockname()[1])
        link_page = held.enter_context(private_link_page(settings.link)) if open_browser else None
        app = create_app(settings, lambda: link_page.unlink(missing_ok=True) if link_page is not None else None)
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
            http=held.enter_context(room_for_connections()),
            backlog=ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
        server = uvicorn.Server(config)
        server.capture_signals = _leave_signals_alone  # type: ignore[method-assign]

        def welcome() -> None:
            announce(settings.link)
            if link_page is not None:
                import webbrowser

                webbrowser.open(link_page.as_uri())

        with until_told(server):
            watcher = threading.Thread(target=_when_started, args=(server, welcome), daemon=True)
            watcher.start()
            server.run(sockets=[listening])


@contextmanager
def private_link_page(link: str) -> Iterator[Path]:
    """A page in a private file that leads to the link, for the length of the block at most.

    A browser is started with this file: everybody on the machine could read a link on its command line.
    """
    with private_folder("link") as folder:
        link_page = folder / "cellrisk.html"
        with os.fdopen(
            os.open(link_page, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8"
        ) as stream:
            stream.write(LINK_PAGE.format(link=html.escape(link)))
        yield link_page


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
        with left_alone():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
