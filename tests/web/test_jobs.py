"""Workers: jobs are watched, cancelled and refused, and the server stays free meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.web import jobs as module
from cellrisk.web.jobs import Busy, Job, Jobs


def tell(report: Any, value: Any) -> Any:
    report("telling", 0.5)
    return {"value": value, "process": os.getpid()}


def sleep(report: Any, folder: str, leave: bool = False) -> None:
    import tempfile

    handle, _ = tempfile.mkstemp(dir=None)
    os.close(handle)
    report("sleeping", None)
    (Path(folder) / "begun").write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(60)


def ignore_ends(report: Any, folder: str) -> None:
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep(report, folder)


def refuse(report: Any) -> None:
    raise InvalidInput("that will not do")


def fail(report: Any) -> None:
    raise RuntimeError("zanzibar is in the data")


def die(report: Any) -> None:
    os._exit(1)


def return_what_cannot_be_sent(report: Any) -> Any:
    return lambda: None


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers import nothing from the working folder, and the work of these tests is in the repository."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path_factory.mktemp("elsewhere"))
        yield


@pytest.fixture(scope="module")
def pool(elsewhere: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    pool = Jobs(1, tmp_path_factory.mktemp("pool"))
    yield pool
    pool.close()


def end(job: Job) -> Job:
    assert job.ended.wait(60)
    return job


def begun(folder: Path) -> int:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        text = (folder / "begun").read_text(encoding="utf-8") if (folder / "begun").exists() else ""
        if text:
            return int(text)
        time.sleep(0.02)
    raise AssertionError("the job did not begin")


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_job_is_done_in_another_process(pool: Jobs) -> None:
    job = end(pool.submit(tell, {"value": 3}))
    assert (job.state, job.progress, job.error) == ("done", 1.0, None)
    assert job.result is not None
    assert job.result["value"] == 3
    assert job.result["process"] != os.getpid()


def test_the_worker_is_kept_warm(pool: Jobs) -> None:
    first, second = (end(pool.submit(tell, {"value": value})).result for value in (1, 2))
    assert first is not None
    assert second is not None
    assert first["process"] == second["process"]


def test_a_result_passes_through_what_keeps_it(pool: Jobs) -> None:
    assert end(pool.submit(tell, {"value": 1}, lambda result: {"kept": result["value"]})).result == {"kept": 1}


def test_work_that_is_done_is_not_done_again(pool: Jobs) -> None:
    first = end(pool.submit(tell, {"value": 1}, key="same"))
    assert pool.submit(tell, {"value": 1}, key="same") is first
    assert pool.submit(tell, {"value": 1}, key="other") is not first
    pool.forget("same")
    assert pool.submit(tell, {"value": 1}, key="same") is not first


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (refuse, "that will not do"),
        (fail, "internal error (RuntimeError)"),
        (die, "the work ended early; it may have needed more memory than there is, or more than 12 hours"),
        (return_what_cannot_be_sent, "internal error ("),
    ],
    ids=["refusal", "bug", "death", "unsendable"],
)
def test_a_failure_is_one_line_and_the_next_job_is_done(pool: Jobs, work: Callable[..., Any], error: str) -> None:
    job = end(pool.submit(work, {}))
    assert job.state == "failed"
    assert job.error is not None
    assert job.error.startswith(error)
    assert "zanzibar" not in job.error
    assert end(pool.submit(tell, {"value": 1})).state == "done"


def test_a_bug_in_what_keeps_the_result_is_a_failure(pool: Jobs) -> None:
    def keep(result: Any) -> Any:
        raise KeyError("zanzibar")

    assert end(pool.submit(tell, {"value": 1}, keep)).error == "internal error (KeyError)"
    assert end(pool.submit(tell, {"value": 1})).state == "done"


@pytest.mark.parametrize("work", [sleep, ignore_ends], ids=["listens", "does-not-listen"])
def test_cancelling_ends_the_worker_and_what_it_left(pool: Jobs, tmp_path: Path, work: Callable[..., Any]) -> None:
    job = pool.submit(work, {"folder": str(tmp_path)})
    process = begun(tmp_path)
    assert job.state == "running"
    own = pool._threads[0]._folder
    assert len(list(own.iterdir())) == 1  # the worker's temporary files are in its own folder
    pool.cancel(job)
    assert not is_running(process)
    assert (job.state, job.result) == ("cancelled", None)
    assert end(pool.submit(tell, {"value": 1})).state == "done"
    assert list(own.iterdir()) == []


def test_a_waiting_job_can_be_cancelled_and_never_begins(pool: Jobs, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    running = pool.submit(sleep, {"folder": str(tmp_path)})
    waiting = pool.submit(sleep, {"folder": str(tmp_path / "second")})
    begun(tmp_path)
    assert waiting.state == "waiting"
    pool.cancel(waiting)
    pool.cancel(running)
    assert end(pool.submit(tell, {"value": 1})).state == "done"
    assert waiting.state == "cancelled"
    assert not (tmp_path / "second" / "begun").exists()


def test_cancelling_what_has_ended_changes_nothing(pool: Jobs) -> None:
    job = end(pool.submit(tell, {"value": 1}))
    pool.cancel(job)
    assert job.state == "done"


def test_the_queue_has_an_end(pool: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    running = pool.submit(sleep, {"folder": str(tmp_path)})
    begun(tmp_path)
    waiting = [pool.submit(tell, {"value": 1}) for _ in range(2)]
    with pytest.raises(Busy, match="too much work is waiting"):
        pool.submit(tell, {"value": 1})
    pool.cancel(running)
    for job in waiting:
        end(job)


@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_the_last_jobs_are_kept_and_no_others(pool: Jobs, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 0)
    end(pool.submit(tell, {"value": 0}))  # those of other tests are gone
    monkeypatch.setattr(module, "MOST_KEPT", most)
    made = [end(pool.submit(tell, {"value": value})) for value in range(10)]
    assert [job for job in made if pool.find(job.id) is not None] == made[-most:]
    assert len(pool._jobs) == most


class Slow(threading.Event):
    """An event that others are heard before it is looked at: what could come in between does."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def is_set(self) -> bool:
        found = super().is_set()
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return found


@pytest.mark.parametrize("change", [Job.begin, lambda job: job.tell("sleeping", 0.5)], ids=["begins", "goes-on"])
def test_a_job_that_is_cancelled_while_it_changes_stays_cancelled(change: Callable[[Job], Any]) -> None:
    """The cancelling thread may come at any moment of a change: it waits for its end, and has the last word."""
    job = Job(tell, {}, lambda value: value, None)
    cancelling = threading.Thread(target=job.end, args=("cancelled", "cancelled"))

    def cancel() -> None:
        cancelling.start()
        cancelling.join(0.2)  # without a lock it would end here

    job.ended = Slow(cancel)
    change(job)
    cancelling.join(10)
    assert (job.state, job.step, job.progress) in [
        ("cancelled", "cancelled", None),
        ("cancelled", "cancelled", 0.5),
    ]
    change(job)
    assert (job.state, job.step) == ("cancelled", "cancelled")


def test_jobs_that_are_cancelled_at_any_moment_end_as_cancelled_or_done(pool: Jobs) -> None:
    """Cancelling races with the beginning and the end of jobs; none is left running, and the next one is done."""
    for pause in range(12):
        job = pool.submit(tell, {"value": 1})
        time.sleep(pause * 0.0005)
        pool.cancel(job)
        assert job.ended.is_set()
        assert job.to_dict()["state"] in ("cancelled", "done")
    assert end(pool.submit(tell, {"value": 1})).state == "done"
    assert {job.state for job in pool._jobs.values()} <= {"cancelled", "done", "failed"}


def test_where_no_process_can_be_started_the_job_fails_and_the_next_is_tried(
    pool: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(module, "Worker", refuse)
        assert end(pool.submit(die, {})).state == "failed"
        assert end(pool.submit(tell, {"value": 1})).error == module.NO_WORKER
    assert end(pool.submit(tell, {"value": 1})).state == "done"


SERVER = """
import sys, time
from pathlib import Path
sys.path.append(sys.argv[2])
from cellrisk.web.jobs import Jobs
from tests.web.test_jobs import sleep

Jobs(1, Path(sys.argv[1])).submit(sleep, {"folder": sys.argv[1]})
time.sleep(600)
"""


def test_a_worker_in_the_middle_of_its_work_ends_with_a_server_that_was_killed(tmp_path: Path) -> None:
    """The work itself would go on for a minute."""
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path), str(Path(__file__).parents[2])])
    try:
        worker = begun(tmp_path)
    finally:
        server.kill()
        server.wait(timeout=20)
    until = time.monotonic() + 30
    while is_running(worker) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(worker)


def test_closing_ends_everything(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    folder.mkdir()
    pool = Jobs(2, folder)
    job = pool.submit(sleep, {"folder": str(tmp_path)})
    waiting = [pool.submit(sleep, {"folder": str(tmp_path)}) for _ in range(2)]
    process = begun(tmp_path)
    pool.close()
    assert not is_running(process)
    assert {each.state for each in (job, *waiting)} == {"cancelled"}
    with pytest.raises(Busy):
        pool.submit(tell, {"value": 1})
