"""How the server starts and ends, and its workers: cancelled, killed, refused; nothing of the data is left behind."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.web import serve
from tests.web.conftest import PEOPLE, SECONDS, SETTING, Running, hear, start, stop, upload

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Running]:
    running = start(tmp_path)
    yield running
    stop(running)


def left(running: Running) -> list[Path]:
    return list(running.temporary.rglob("*"))


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            found += [int(entry.name)] if parent == process else []
    return found


def wait_until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    assert condition()


def state(client: Any, job: str) -> Any:
    return client.get(f"/api/jobs/{job}").json()


def make_busy(running: Running, client: Any) -> tuple[str, str]:
    """The address of a table, and a job about it whose worker stands still."""
    source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
    chosen = {"source": source, "quasi_identifiers": ["sex", "age"], "sensitive": ["job"]}
    table = "/api/tables/" + hear(client, client.post("/api/tables", json=chosen))["table"]
    for worker in children(running.process.pid):
        os.kill(worker, signal.SIGSTOP)
    job = client.post(f"{table}/map", json=SETTING).json()["job"]
    wait_until(lambda: state(client, job)["state"] == "running")
    return table, job


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(tmp_path_factory.mktemp("workers"), workers=1)
    yield running
    stop(running)


class TestWorkers:
    """One server with one worker, which every test but the last leaves with one."""

    def test_a_dead_worker_fails_its_job_and_nothing_else(self, running: Running) -> None:
        with closing(running.client()) as client:
            table, job = make_busy(running, client)
            [worker] = children(running.process.pid)
            os.kill(worker, signal.SIGKILL)
            wait_until(lambda: state(client, job)["state"] == "failed")
            assert state(client, job)["error"].startswith("the work ended early")
            assert client.get("/api/state").status_code == 200
            other = hear(client, client.post(f"{table}/figures", json={**SETTING, "epsilon": 3.0}))  # by another worker
            assert other["epsilon"] == 3.0

    def test_an_idle_worker_that_died_is_replaced(self, running: Running) -> None:
        with closing(running.client()) as client:
            [worker] = children(running.process.pid)
            os.kill(worker, signal.SIGKILL)
            source = upload(client, PEOPLE).json()["source"]
            assert hear(client, client.get(f"/api/sources/{source}"))["title"].startswith("data.csv")
            assert len(list(running.temporary.glob("cellrisk-web-*/worker-*"))) == 1  # it left nothing

    def test_cancelling_ends_the_worker_and_what_it_left(self, running: Running) -> None:
        with closing(running.client()) as client:
            table, job = make_busy(running, client)
            waiting = client.post(f"{table}/figures", json=SETTING).json()["job"]
            [worker] = children(running.process.pid)
            folders = list(running.temporary.glob("cellrisk-web-*/worker-*"))
            assert client.get("/").status_code == client.get(table).status_code == 200  # the server stays free
            assert state(client, waiting)["state"] == "waiting"
            assert client.delete(f"/api/jobs/{waiting}").json()["state"] == "cancelled"
            assert client.delete(f"/api/jobs/{job}").json()["state"] == "cancelled"
            wait_until(lambda: not Path(f"/proc/{worker}").exists())
            wait_until(lambda: not any(folder.exists() for folder in folders))
            assert client.delete("/api/jobs/unknown").status_code == 404
            assert hear(client, client.post(f"{table}/figures", json={**SETTING, "epsilon": 2.0}))["epsilon"] == 2.0

    def test_a_job_that_two_pages_have_asked_for_is_not_ended_by_one(self, running: Running) -> None:
        with closing(running.client()) as client:
            table, job = make_busy(running, client)
            assert client.post(f"{table}/map", json=SETTING).json()["job"] == job
            assert client.delete(f"/api/jobs/{job}").json()["state"] == "running"
            assert client.delete(f"/api/jobs/{job}").json()["state"] == "cancelled"


class TestEnd:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
    def test_uploads_and_workers_are_gone_after_a_signal(self, started: Running, number: signal.Signals) -> None:
        with closing(started.client()) as client:
            assert upload(client, PEOPLE).status_code == 200
            if number == signal.SIGTERM:
                make_busy(started, client)
        assert any(path.suffix == ".csv" for path in left(started))
        workers = children(started.process.pid)
        assert len(workers) >= 2
        started.process.send_signal(number)
        assert started.process.wait(timeout=SECONDS) == 0
        assert left(started) == []
        wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
        assert started.said() == ""

    def test_workers_end_with_a_server_that_was_killed(self, started: Running) -> None:
        workers = children(started.process.pid)
        assert workers
        started.process.kill()
        started.process.wait(timeout=SECONDS)  # a worker that is still loading hears of it when it has loaded
        wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


class TestRefusals:
    def test_a_taken_port(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidInput) as refusal:
            serve(port=taken.getsockname()[1], open_browser=False)
        assert refusal.value.code == "port"

    def test_a_folder_that_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput) as refusal:
            serve(folder=tmp_path / "gone", open_browser=False)
        assert refusal.value.code == "no-folder"

    def test_something_that_is_no_ledger(self, tmp_path: Path) -> None:
        pytest.importorskip("sqlalchemy")
        (tmp_path / "notes.txt").write_text("no ledger", encoding="utf-8")
        with pytest.raises(InvalidInput, match="ledger"):
            serve(ledger=tmp_path / "notes.txt", open_browser=False)

    @pytest.mark.parametrize("package", ["uvicorn", "fastapi"])
    def test_missing_packages_are_named(self, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InvalidInput, match=r"pip install 'cellrisk\[web\]'"):
            serve(open_browser=False)
