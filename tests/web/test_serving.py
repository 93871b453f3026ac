"""How the server starts and ends: nothing of the data is left behind, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.web import Settings, serve
from cellrisk.web import workspace as module
from cellrisk.web.jobs import Job
from cellrisk.web.recipes import Recipe
from cellrisk.web.work import Tabulated, Written
from cellrisk.web.workspace import LoadedTable, NotRead, NotThere, open_workspace
from tests.web.conftest import PEOPLE, SETTING, Running, start, stop, upload, wait_for

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


def busy(client: Any) -> list[str]:
    """Two jobs that take long, both begun."""
    source = client.post("/api/sources", json={"example": "adult"}).json()["source"]
    chosen = {"source": source, "quasi_identifiers": ["age", "education", "race"], "sensitive": ["income"]}
    table = "/api/tables/" + wait_for(client, client.post("/api/tables", json=chosen))["table"]
    asked = {**SETTING, "sensitive": "income", "releases": 200}
    jobs = [client.post(f"{table}/map", json={**asked, "seed": seed}).json()["job"] for seed in (1, 2)]
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if all(client.get(f"/api/jobs/{job}").json()["state"] == "running" for job in jobs):
            return jobs
        time.sleep(0.05)
    raise AssertionError("the jobs did not begin")


@contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    """They stand still for the length of the block."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_uploads_and_workers_are_gone_after_a_signal(started: Running, number: signal.Signals) -> None:
    with closing(started.client()) as client:
        assert upload(client, PEOPLE).status_code == 200
        if number == signal.SIGTERM:
            busy(client)
    assert any(path.suffix == ".csv" for path in left(started))
    workers = children(started.process.pid)
    assert len(workers) >= 2
    started.process.send_signal(number)
    assert started.process.wait(timeout=20) == 0
    assert left(started) == []
    until = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert started.said() == ""


def test_workers_end_with_a_server_that_was_killed(started: Running) -> None:
    workers = children(started.process.pid)
    assert workers
    started.process.kill()
    started.process.wait(timeout=20)
    until = time.monotonic() + 120  # one that is still loading hears of it when it has loaded
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_other_pages_are_answered_while_every_worker_is_busy_and_jobs_can_be_cancelled(
    server: Running, client: Any, table: str
) -> None:
    jobs = busy(client)

    def look(_: int) -> list[int]:
        with closing(server.client()) as page:
            asked = [page.get("/"), page.get("/api/state"), page.get(table)]
            asked.append(page.post(f"{table}/admissible", json=SETTING))
            asked.append(page.post(f"{table}/riskiest", json=SETTING))
            return [answer.status_code for answer in asked]

    with stopped(children(server.process.pid)):  # so that they are busy for as long as it takes
        assert [client.get(f"/api/jobs/{job}").json()["state"] for job in jobs] == ["running"] * 2
        with ThreadPoolExecutor(10) as pages:
            # Which epsilons keep the limits is a worker's question, and waits for one.
            assert list(pages.map(look, range(10))) == [[200, 200, 200, 202, 200]] * 10
        assert [client.get(f"/api/jobs/{job}").json()["state"] for job in jobs] == ["running"] * 2
    assert [client.delete(f"/api/jobs/{job}").json()["state"] for job in jobs] == ["cancelled"] * 2
    assert client.delete("/api/jobs/unknown").status_code == 404


class TestRefusals:
    def test_a_taken_port(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidInput, match="cannot be listened"):
            serve(port=taken.getsockname()[1], open_browser=False)

    def test_an_unknown_address(self) -> None:
        with pytest.raises(InvalidInput, match="not known"):
            serve(host="127.0.0.1", port=-1, open_browser=False)

    @pytest.mark.parametrize(
        ("more", "said"),
        [({}, "other machines could reach"), ({"allow_remote": True}, "needs a password")],
        ids=["not-allowed", "no-password"],
    )
    def test_an_address_that_others_can_reach(self, more: dict[str, Any], said: str) -> None:
        with pytest.raises(InvalidInput, match=said):
            serve(host="0.0.0.0", open_browser=False, **more)

    def test_something_that_is_no_ledger(self, tmp_path: Path) -> None:
        pytest.importorskip("sqlalchemy")
        (tmp_path / "notes.txt").write_text("no ledger", encoding="utf-8")
        with pytest.raises(InvalidInput, match="is no ledger"):
            serve(ledger=tmp_path / "notes.txt", open_browser=False)


class TestMissingPackages:
    @pytest.mark.parametrize("package", ["uvicorn", "fastapi"])
    def test_it_says_what_to_install(self, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InvalidInput, match=r"pip install 'cellrisk\[web\]'"):
            serve(open_browser=False)


class TestWorkspace:
    def test_it_is_cleared_where_the_block_ends_in_an_error(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        during = []

        def fail() -> None:
            with open_workspace(Settings(workers=1)):
                during.extend(tmp_path.iterdir())
                raise RuntimeError("in the block")

        with pytest.raises(RuntimeError, match="in the block"):
            fail()
        assert len(during) == 1
        assert list(tmp_path.iterdir()) == []

    def test_the_oldest_previews_tables_and_downloads_make_room(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)  # a worker imports this module, and nothing from the working folder
        monkeypatch.setattr(module, "MOST_PREVIEWS", 1)
        monkeypatch.setattr(module, "MOST_TABLES", 2)
        monkeypatch.setattr(module, "MOST_DOWNLOADS", 1)
        (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
        with open_workspace(Settings(folder=tmp_path, workers=1)) as workspace:
            origin = workspace.sources.open_file("people.csv")
            path = str(origin.find())
            recipes = [Recipe(path, "people.csv", (name,), ("job",)) for name in ("sex", "age", "note")]

            def count(recipe: Recipe) -> str:
                job = workspace.tabulate(origin, recipe)
                assert job.ended.wait(60)
                assert job.result is not None
                return str(job.result["table"])

            first, *others = [count(recipe) for recipe in recipes]
            assert [workspace.table(each).table.n_records for each in others] == [400, 400]
            with pytest.raises(NotThere, match="load it again"):
                workspace.table(first)
            again = count(recipes[0])
            assert again != first
            assert workspace.table(again).table.n_records == 400

            example = workspace.sources.open_example()
            for each in (origin, example, origin):  # the first was dropped, and is made again
                looking = workspace.look(each)
                assert isinstance(looking, Job)
                assert looking.ended.wait(60)
                assert workspace.preview(each) is not None
            assert workspace.preview(example) is None

            written = [workspace.write(write_something, {}) for _ in range(2)]
            assert all(job.ended.wait(60) for job in written)
            (gone, kept) = [str(job.result["url"]).rpartition("/")[2] for job in written if job.result]
            assert workspace.download(kept).read_text(encoding="utf-8") == "something"
            with pytest.raises(NotThere, match="make it again"):
                workspace.download(gone)

    @pytest.mark.parametrize("others", ["table", "attribute"])
    def test_cells_of_one_large_table_then_of_another_then_of_the_first(self, tmp_path: Path, others: str) -> None:
        """Those of one are held at a time; what was read before is read again, as often as it is asked for."""
        path = tmp_path / "people.csv"
        path.write_text(PEOPLE, encoding="utf-8")
        table = cr.tabulate(path, ["sex", "age"], ["job", "note"])
        with open_workspace(Settings(folder=tmp_path, workers=1)) as workspace:
            origin = workspace.sources.open_file("people.csv")
            recipe = Recipe(str(path), "people.csv", ("sex", "age"), ("job", "note"))
            large = [LoadedTable(recipe, origin, Tabulated(table, {}, {}), name) for name in "AB"]
            asked = [(large[0], "job"), (large[1], "job") if others == "table" else (large[0], "note")]
            for kept, name in [*asked, *asked, asked[1]]:
                job = workspace.read_cells(kept, name)
                assert job.ended.wait(60)
                assert job.result == {"cells": workspace.cells(kept, name).n_cells}
            with pytest.raises(NotRead, match="have to be read first"):
                workspace.cells(*asked[0])


def write_something(report: Any, folder: str) -> Written:
    path = Path(folder) / "something.txt"
    path.write_text("something", encoding="utf-8")
    return Written(os.fspath(path), "done")
