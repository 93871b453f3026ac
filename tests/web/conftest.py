"""A real server for the web tests: a process of its own, with a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import cellrisk as cr

SECONDS = 180
"""How long is waited for what takes a second on a machine with nothing else to do."""
SOURCE = Path(__file__).resolve().parents[2] / "src"
SCRIPT = """
import importlib, json, sys
from cellrisk.web import serve

if __name__ == "__main__":
    given = {"open_browser": False, **json.loads(sys.argv[1])}
    for name, value in given.pop("changed").items():
        module, _, attribute = name.rpartition(".")
        setattr(importlib.import_module(module), attribute, value)
    workers = given.pop("workers")
    if workers is not None:
        from cellrisk.web import workspace

        make = workspace.Jobs
        workspace.Jobs = lambda _, *rest: make(workers, *rest)
    serve(**given, announce=lambda link: print(link, flush=True))
"""
SETTING = {
    "sensitive": "job",
    "mechanism": "geometric",
    "epsilon": 1.0,
    "delta": None,
    "neighbours": "add-remove",
    "measure": "local",
    "form": "tight",
    "weights": "records",
    "max_risk": 0.3,
}
PEOPLE = "sex,age,job,note\n" + "".join(
    f"{'fm'[row % 2]},{20 + row % 37},{('cook', 'smith', 'clerk')[row % 3]},zanzibar{row}\n" for row in range(400)
)


@dataclass
class Running:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    link: str
    folder: Path
    log: Path
    temporary: Path

    @property
    def base(self) -> str:
        return self.link.partition("/?")[0]

    @property
    def token(self) -> str:
        return self.link.partition("token=")[2]

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    def client(self) -> Any:
        """Somebody who was let in."""
        client = httpx.Client(base_url=self.base, headers={"X-Cellrisk": "1"}, timeout=SECONDS, verify=False)
        assert client.get("/", params={"token": self.token}).status_code == 200
        return client

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")


def ask(method: str, url: str, **more: Any) -> Any:
    """What a stranger hears: no cookie, nothing remembered."""
    # nothing here is encrypted, so no certificates are loaded
    return httpx.request(method, url, verify=False, timeout=SECONDS, **more)


def start(
    place: Path,
    changed: dict[str, Any] | None = None,
    workers: int | None = None,
    environment: dict[str, str] | None = None,
    **settings: Any,
) -> Running:
    """Starts a server and waits for its link. ``changed`` are values of modules, by their full names; ``workers`` is
    how many workers there are: one takes some seconds to load."""
    folder, temporary, log = place / "folder", place / "temporary", place / "server.log"
    for each in (folder, temporary):
        each.mkdir(exist_ok=True)
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    script = place / "serve.py"
    script.write_text(SCRIPT, encoding="utf-8")
    given = {"folder": str(folder), "changed": changed or {}, "workers": workers, **settings}
    around = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(temporary), **(environment or {})}
    with log.open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            [sys.executable, str(script), json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=around,
            cwd=place,
        )
    assert process.stdout is not None
    link = process.stdout.readline().strip()
    assert re.fullmatch(r"http://[^/]+/\?token=[-\w]{32,}", link), log.read_text(encoding="utf-8")
    return Running(process, link, folder, log, temporary)


def stop(running: Running) -> int:
    if running.process.poll() is None:
        running.process.terminate()
    code = running.process.wait(timeout=SECONDS)
    if running.process.stdout is not None:
        running.process.stdout.close()
    return code


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(tmp_path_factory.mktemp("server"), upload_limit=200_000)
    yield running
    stop(running)


@pytest.fixture(scope="session")
def client(server: Running) -> Iterator[Any]:
    with closing(server.client()) as client:
        yield client


def wait_for(client: Any, answer: Any, state: str = "done") -> Any:
    """Waits for the job that an answer names, and gives its result, or the line that says why it failed."""
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found = client.get(f"/api/jobs/{job}").json()
        if found["state"] in ("done", "failed", "cancelled"):
            assert found["state"] == state, found
            return found["result"] if state == "done" else found["error"]
        time.sleep(0.02)
    raise AssertionError(f"the job did not end within {SECONDS} seconds")


def hear(client: Any, answer: Any, failed: bool = False) -> Any:
    """What the server answers at once, or once the job that it names instead has ended; or why it failed."""
    if answer.status_code == 202:
        return wait_for(client, answer, "failed" if failed else "done")
    assert answer.status_code == (422 if failed else 200), answer.text
    return answer.json()["error"] if failed else answer.json()


@pytest.fixture(scope="session")
def look(client: Any) -> Callable[[str], Any]:
    """The columns of a source."""
    return lambda source: hear(client, client.get(f"/api/sources/{source}"))


@pytest.fixture(scope="session")
def table(client: Any) -> str:
    """The address of a small table of the folder."""
    source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
    chosen = {"source": source, "quasi_identifiers": ["sex", "age"], "sensitive": ["job"], "bins": {"age": "5"}}
    return f"/api/tables/{hear(client, client.post('/api/tables', json=chosen))['table']}"


@pytest.fixture(scope="session")
def direct(server: Running) -> cr.FrequencyTable:
    """The same table, made without the server."""
    return cr.tabulate(server.folder / "people.csv", ["sex", "age"], "job", bins={"age": 5})


def upload(client: Any, text: str, name: str = "data.csv") -> Any:
    return client.post("/api/uploads", params={"name": name}, content=text.encode())


def load(client: Any, text: str, **chosen: Any) -> Any:
    """A table that was uploaded and counted, as the server describes it."""
    source = upload(client, text).json()["source"]
    return hear(client, client.post("/api/tables", json={"source": source, **chosen}))


CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--process-per-site",
)
"""Nothing is asked of the world outside; pages of one server share a process, so that scripts are compiled once."""


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright; only as long as a module needs it, since its loop would be in others' way."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=list(QUIET), timeout=1000 * SECONDS)
        yield browser
        browser.close()


SCREEN = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def window(browser: Any, server: Running) -> Iterator[Any]:
    """One window for all tests of a module. Its first page stays open: to open a page beside it takes a fifth of what
    a new window takes."""
    with closing(browser.new_context(viewport=SCREEN, reduced_motion="reduce")) as window:
        window.set_default_timeout(1000 * SECONDS)
        window.new_page().goto(server.link)
        yield window


@contextmanager
def welcome(browser: Any, server: Running, window: Any = None) -> Iterator[Callable[..., Any]]:
    """Opens the page on a screen, in a theme. Whatever the browser then complains of fails the test: errors in the
    script, messages in the console, breaches of the Content-Security-Policy. ``expected`` are complaints that are not.
    Without a window, or ``alone``, a page is in a window of its own, which knows nothing of the others.
    """
    complaints: list[str] = []
    forgiven: list[str] = []
    opened = []

    def open_page(
        width: int = SCREEN["width"],
        theme: str = "light",
        expected: str = "",
        at: str | None = None,
        alone: bool = False,
    ) -> Any:
        forgiven.extend(filter(None, [expected]))
        own = browser.new_context(viewport=SCREEN, reduced_motion="reduce") if window is None or alone else None
        page = (own or window).new_page()
        opened.append(own or page)
        page.set_default_timeout(1000 * SECONDS)
        page.set_viewport_size({**SCREEN, "width": width})
        page.emulate_media(color_scheme=theme)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.goto(at or server.link)
        page.locator("#mechanism option").first.wait_for(state="attached")
        return page

    yield open_page
    for each in opened:
        each.close()
    if window is not None:
        window.clear_permissions()
        window.pages[0].evaluate("() => localStorage.clear()")
        assert len(window.pages) == 1
    assert [each for each in complaints if not any(words in each for words in forgiven)] == []


@pytest.fixture
def visit(browser: Any, server: Running, window: Any) -> Iterator[Callable[..., Any]]:
    """A page for one test."""
    with welcome(browser, server, window) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def long_visit(browser: Any, server: Running) -> Iterator[Callable[..., Any]]:
    """A page for all tests of a module."""
    with welcome(browser, server) as open_page:
        yield open_page


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots and measurements are kept: the folder that CELLRISK_SCREENSHOTS names, or a temporary one."""
    folder = Path(os.environ.get("CELLRISK_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
