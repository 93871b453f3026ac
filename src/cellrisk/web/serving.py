"""Makes the server from its settings, starts it on a socket, and ends it so that no data is left behind."""

from __future__ import annotations

import html
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import CellriskError, InvalidInput, extra_needed
from cellrisk.system.progress import interrupted_by_signals
from cellrisk.system.scratch import private_folder
from cellrisk.web.guard import LEAD_ON
from cellrisk.web.settings import LOOPBACK, UPLOAD_LIMIT, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from cellrisk.decide.policies import Policies, Policy

SECONDS_TO_END = 1
MOST_CONNECTIONS = 500


def create_app(
    settings: Settings, on_start: Callable[[], None] = lambda: None, on_link: Callable[[], None] = lambda: None
) -> FastAPI:
    """Return the application: an API under /api, and the page that uses it. Its workspace is open while it runs.

    ``on_start`` is called when it is ready, ``on_link`` when somebody has come by the link.
    """
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException

    from cellrisk.web.fields import name_field
    from cellrisk.web.guard import Guard
    from cellrisk.web.routes import api, page
    from cellrisk.web.workspace import NotThere, open_workspace

    @asynccontextmanager
    async def hold_workspace(app: FastAPI) -> AsyncIterator[None]:
        with open_workspace(settings) as workspace:
            app.state.workspace = workspace
            on_start()
            yield

    app = FastAPI(openapi_url=None, redirect_slashes=False, lifespan=hold_workspace)
    app.add_middleware(Guard, settings=settings, on_link=on_link)
    app.include_router(api)
    app.include_router(page)

    @app.exception_handler(CellriskError)
    def refuse(_: Request, refusal: CellriskError) -> JSONResponse:
        status = 404 if isinstance(refusal, NotThere) else 422
        return JSONResponse({"error": refusal.render(name_field)}, status_code=status)

    @app.exception_handler(RequestValidationError)
    def refuse_request(_: Request, refusal: Any) -> JSONResponse:
        flaws = [f"{'.'.join(map(str, flaw['loc'][1:]))[:100]}: {flaw['msg'][:200]}" for flaw in refusal.errors()[:3]]
        return JSONResponse({"error": "; ".join(flaws).encode("utf-8", "replace").decode()}, status_code=422)

    @app.exception_handler(HTTPException)
    def refuse_plainly(_: Request, refusal: Any) -> JSONResponse:
        line = {"error": str(refusal.detail).lower()}
        return JSONResponse(line, status_code=refusal.status_code, headers=refusal.headers)

    return app


def serve(
    *,
    folder: str | os.PathLike[str] | None = None,
    port: int = 0,
    ledger: str | os.PathLike[str] | None = None,
    new_ledger: bool = False,
    upload_limit: int = UPLOAD_LIMIT,
    policy: Policy | Policies | None = None,
    open_browser: bool = True,
    announce: Callable[[str], None] = lambda link: None,
) -> None:
    """Run the web app on this machine until it is interrupted.

    ``announce`` is called once with the link that lets its reader in. Ctrl-C, SIGTERM and SIGHUP end it: workers are
    gone and uploads removed when this returns.
    """
    with extra_needed():
        import fastapi  # noqa: F401
        import uvicorn
    from cellrisk.decide.policies import Policies

    if ledger is None and new_ledger:
        raise InvalidInput("a new ledger needs a place", fix="name it: --ledger releases.db")
    settings = Settings(  # refuses before anything is opened
        folder=None if folder is None else Path(folder),
        ledger=None if ledger is None else os.fspath(ledger),
        upload_limit=upload_limit,
        policy=Policies.in_force(policy),
    )
    with ExitStack() as held:
        listening = held.enter_context(listen(port))
        if ledger is not None:
            from cellrisk.repeat.ledger import Ledger

            Ledger(ledger, create=new_ledger).close()
        settings = replace(settings, port=listening.getsockname()[1])
        link_page = held.enter_context(private_link_page(settings.link)) if open_browser else None

        def welcome() -> None:
            announce(settings.link)
            if link_page is not None:
                import webbrowser

                webbrowser.open(link_page.as_uri())

        def remove_link_page() -> None:
            if link_page is not None:
                link_page.unlink(missing_ok=True)

        app = create_app(settings, welcome, remove_link_page)
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # its messages may quote what was worked on
        silent: Any = {"log_config": None, "log_level": "critical", "access_log": False, "server_header": False}
        parts: Any = {"ws": "none", "http": "h11", "lifespan": "on", "proxy_headers": False}
        limits: Any = {"limit_concurrency": MOST_CONNECTIONS, "timeout_graceful_shutdown": SECONDS_TO_END}
        server = uvicorn.Server(uvicorn.Config(app, **silent, **parts, **limits))
        with interrupted_by_signals(), suppress(KeyboardInterrupt):  # uvicorn raises a signal again when it has ended
            if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP"):
                signal.signal(signal.SIGHUP, server.handle_exit)
            server.run(sockets=[listening])


@contextmanager
def private_link_page(link: str) -> Iterator[Path]:
    """Write a page that leads to the link into a private file, for the length of the block at most.

    A browser is started with this file: everybody on the machine could read a link on its command line.
    """
    with private_folder("link") as folder:
        link_page = folder / "cellrisk.html"
        handle = os.open(link_page, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(LEAD_ON.format(link=html.escape(link)))
        yield link_page


@contextmanager
def listen(port: int) -> Iterator[socket.socket]:
    """Open a socket that listens on this machine alone; port 0 takes a free one."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
            listening.listen()  # a request that comes before the server is ready waits
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "out of range"
            raise InvalidInput("cannot be listened on", option="port", got=f"{port} ({why})", code="port") from None
        yield listening
