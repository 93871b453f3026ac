"""Long work in worker processes: it can be watched and cancelled, and the server stays free for other pages.

The pool is our own. The executors of the standard library cannot end one running job. Pebble can, but it tells no
progress, and its pool is broken for good once an idle worker is killed, or once a process cannot be started: a server
that runs for days meets both where memory is short.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import queue
import secrets
import shutil
import signal
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from cellrisk.errors import CellriskError
from cellrisk.system.isolated import listen, send, start_isolated

TellProgress = Callable[[str, "float | None"], None]
"""Called with what is being done, and the share of it that is done where that is known."""
Work = Callable[..., Any]
"""A function of a module: it takes a `TellProgress` first, and what it returns can be pickled."""
MOST_WAITING = 50
MOST_KEPT = 200
LONGEST_JOB = 12 * 3600
"""Seconds after which a job is ended."""
ENDED_EARLY = "the work ended early; it may have needed more memory than there is, or more than 12 hours"
NO_WORKER = "the machine has no room for another process now; try again later"


class Busy(CellriskError):
    """More work is asked for than can wait."""


class Job:
    """One piece of work, from the queue to its result."""

    def __init__(
        self, work: Work, arguments: dict[str, Any], finish: Callable[[Any], dict[str, Any]], key: Any
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.work, self.arguments, self.finish, self.key = work, arguments, finish, key
        self.state = "waiting"
        self.progress: float | None = None
        self.step = "waiting for a free worker"
        self.result: dict[str, Any] | None = None
        self.error: str | None = None
        self.ended = threading.Event()
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Marks the job as running; not one that has ended, whose state stays."""
        with self._lock:
            if self.ended.is_set():
                return False
            self.state, self.step = "running", "starting"
            return True

    def tell(self, step: str, progress: float | None) -> None:
        """Notes how far the job has got, unless it has ended."""
        with self._lock:
            if not self.ended.is_set():
                self.step, self.progress = step, progress

    def end(self, state: str, step: str, result: dict[str, Any] | None = None, error: str | None = None) -> None:
        """Ends the job; the first end counts."""
        with self._lock:
            if self.ended.is_set():
                return
            self.result, self.error, self.step, self.state = result, error, step, state
            self.progress = 1.0 if state == "done" else self.progress
            self.arguments, self.finish = {}, _keep_nothing  # they may hold whole tables
            self.ended.set()

    def to_dict(self) -> dict[str, Any]:
        with self._lock:
            return {
                "job": self.id,
                "state": self.state,
                "progress": self.progress,
                "step": self.step,
                "result": self.result if self.state == "done" else None,
                "error": self.error,
            }


def _keep_nothing(_: Any) -> dict[str, Any]:
    return {}


class Jobs:
    """A queue of jobs, and workers that wait for them. Cancelling a job ends its worker, and another is started."""

    def __init__(self, workers: int, folder: Path, warm_up: Callable[[], None] | None = None) -> None:
        self._queue: queue.Queue[Job | None] = queue.Queue()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self._threads = [WorkerThread(self._queue, folder / f"worker{number}", warm_up) for number in range(workers)]

    def submit(
        self,
        work: Work,
        arguments: dict[str, Any],
        finish: Callable[[Any], dict[str, Any]] = lambda value: value,
        key: Any = None,
    ) -> Job:
        """Puts work into the queue. Work with the key of a job that is done is not done again."""
        with self._lock:
            if key is not None:
                for job in self._jobs.values():
                    if job.key == key and job.state == "done":
                        self._jobs.move_to_end(job.id)
                        return job
            if self._closed or sum(job.state == "waiting" for job in self._jobs.values()) >= MOST_WAITING:
                raise Busy("too much work is waiting already", allowed=f"{MOST_WAITING} jobs", fix="try later")
            job = Job(work, arguments, finish, key)
            self._jobs[job.id] = job
            ended = [each.id for each in self._jobs.values() if each.ended.is_set()]
            for old in ended[: max(0, len(self._jobs) - MOST_KEPT)]:
                del self._jobs[old]
        self._queue.put(job)
        return job

    def find(self, job: str) -> Job | None:
        return self._jobs.get(job)

    def find_key(self, key: Any) -> Job | None:
        """The job with that key that waits or runs."""
        with self._lock:
            return next((job for job in self._jobs.values() if job.key == key and not job.ended.is_set()), None)

    def cancel(self, job: Job) -> None:
        """Ends a job that has not ended; its worker is gone when this returns."""
        with self._lock:
            job.end("cancelled", "cancelled")
        for thread in self._threads:
            thread.stop_work_on(job)

    def forget(self, key: Any) -> None:
        """Work with that key is done again when it is asked for."""
        with self._lock:
            for job in self._jobs.values():
                if job.key == key:
                    job.key = None

    def close(self) -> None:
        """Ends every job and worker."""
        with self._lock:
            self._closed = True
            for job in self._jobs.values():
                job.end("cancelled", "the server is stopping")
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.close()


class WorkerThread:
    """A thread of the server that feeds one worker, and replaces it when it is gone."""

    def __init__(self, waiting: queue.Queue[Job | None], folder: Path, warm_up: Callable[[], None] | None) -> None:
        self._waiting, self._folder, self._warm_up = waiting, folder, warm_up
        self._current: Job | None = None
        self._lock = threading.Lock()
        self._closing = False
        self._worker = Worker(folder, warm_up)
        self._thread = threading.Thread(target=self._run, name="cellrisk-thread", daemon=True)
        self._thread.start()

    def stop_work_on(self, job: Job) -> None:
        """Ends the worker if it is at that job; it is gone when this returns."""
        with self._lock:
            if self._current is job:
                self._worker.stop()

    def close(self) -> None:
        with self._lock:
            self._closing = True
            self._worker.stop()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while True:
            job = self._waiting.get()
            if job is None:
                return
            with self._lock:
                if self._closing:
                    return
                if not self._has_worker():
                    job.end("failed", "failed", error=NO_WORKER)
                if not job.begin():
                    continue
                self._current, worker = job, self._worker
            self._run_job(worker, job)
            with self._lock:
                self._current = None
                if not self._closing:
                    self._has_worker()

    def _has_worker(self) -> bool:
        """Whether there is a living worker; one that is gone is replaced, as far as the machine allows."""
        if not self._worker.alive:
            self._worker.stop()
            try:
                self._worker = Worker(self._folder, self._warm_up)
            except OSError:  # no room for another process or its files; the next job tries again
                return False
        return True

    def _run_job(self, worker: Worker, job: Job) -> None:
        """Sends the job to the worker and listens until it has ended."""
        try:
            worker.send((job.work, job.arguments))
            kind, *said = worker.receive()
            while kind == "progress":
                job.tell(*said)
                kind, *said = worker.receive()
        except (EOFError, OSError, pickle.UnpicklingError):
            worker.stop()
            job.end("failed", "failed", error=ENDED_EARLY)
            return
        except Exception as bug:  # its text might hold data
            worker.stop()
            job.end("failed", "failed", error=f"internal error ({type(bug).__name__})")
            return
        if kind == "done" and not job.ended.is_set():
            try:
                job.end("done", "done", result=job.finish(said[0]))
            except Exception as bug:
                line = str(bug) if isinstance(bug, CellriskError) else f"internal error ({type(bug).__name__})"
                job.end("failed", "failed", error=line)
        else:
            job.end("failed", "failed", error=said[0])


class Worker:
    """A process that does one job after the other. Its temporary files are in a folder that goes with it."""

    def __init__(self, folder: Path, warm_up: Callable[[], None] | None) -> None:
        self._folder, self._stopping = folder, threading.Lock()
        folder.mkdir(mode=0o700, exist_ok=True)
        self._process = start_isolated("cellrisk.web.jobs")
        self.send((str(folder), warm_up))

    def send(self, message: Any) -> None:
        send(self._process.stdin, pickle.dumps(message))  # its thread that listens is not to import anything

    def receive(self) -> Any:
        return pickle.load(cast("IO[bytes]", self._process.stdout))

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the process, and removes what it left behind."""
        with self._stopping:
            with suppress(OSError), self._process:  # leaving the block closes its pipes
                self._process.kill()
            shutil.rmtree(self._folder, ignore_errors=True)


def main() -> None:
    """The life of a worker: it prints nothing, and ends when the server does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    messages, answers = listen(), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tempfile.tempdir, warm_up = pickle.loads(messages.get())
    if warm_up is not None:
        with suppress(Exception):
            warm_up()
    try:
        while True:
            work, arguments = pickle.loads(messages.get())
            faulthandler.dump_traceback_later(LONGEST_JOB, exit=True)
            _do(answers, work, arguments)
            faulthandler.cancel_dump_traceback_later()
    finally:
        os._exit(1)


def _do(answers: IO[bytes], work: Work, arguments: dict[str, Any]) -> None:
    lock = threading.Lock()  # engines report from a thread of theirs

    def report(step: str, share: float | None = None) -> None:
        with lock:
            send(answers, ("progress", step, None if share is None else min(1.0, max(0.0, float(share)))))

    try:
        answer = pickle.dumps(("done", work(report, **arguments)))
    except CellriskError as refusal:
        answer = pickle.dumps(("failed", str(refusal)))
    except MemoryError:
        answer = pickle.dumps(("failed", "the work needs more memory than there is"))
    except Exception as bug:  # its text might hold data
        answer = pickle.dumps(("failed", f"internal error ({type(bug).__name__})"))
    with lock:
        answers.write(answer)
        answers.flush()
