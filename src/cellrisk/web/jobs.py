"""Long work in worker processes: it can be watched and cancelled, and a worker that dies takes nothing else with it.

The pool is our own. The executors of the standard library cannot end one running job. Pebble can, but it reports no
progress, and its pool is broken for good once an idle worker is killed or a process cannot be started.
"""

from __future__ import annotations

import os
import pickle
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
from cellrisk.web.fields import name_field

Report = Callable[[str, "float | None"], None]
"""Called with what is being done, and the share of it that is done if that is known."""
Work = Callable[..., Any]
"""A function of a module: it takes a `Report` first, and what it returns can be pickled."""
MOST_KEPT = 200
ENDED_EARLY = "the work ended early; it may have needed more memory than there is"
NO_WORKER = "the machine has no room for another process now; try again later"


class Job:
    """One piece of work, from the queue to its result."""

    def __init__(self, work: Work, arguments: dict[str, Any], finish: Callable[[Any], Any], key: Any) -> None:
        self.id = secrets.token_urlsafe(16)
        self.work, self.arguments, self.finish, self.key = work, arguments, finish, key
        self.state, self.step = "waiting", "waiting for a free worker"
        self.progress: float | None = None
        self.result: Any = None
        self.error: str | None = None
        self.worker: Worker | None = None
        self.askers = 1
        """How many have asked for it and not cancelled it."""
        self.ended = threading.Event()
        self._lock = threading.Lock()

    def report(self, step: str, progress: float | None = None) -> bool:
        """Note how far the job has got; return False, and change nothing, if it has ended."""
        with self._lock:
            if self.ended.is_set():
                return False
            self.state, self.step, self.progress = "running", step, progress
            return True

    def end(self, state: str, result: Any = None, error: str | None = None) -> None:
        """End the job; the first end counts."""
        with self._lock:
            if self.ended.is_set():
                return
            self.result, self.error, self.step, self.state = result, error, state, state
            self.arguments, self.finish = {}, lambda value: value  # they may hold whole tables
            self.ended.set()

    def to_dict(self) -> dict[str, Any]:
        with self._lock:
            names = ("state", "progress", "step", "result", "error")
            return {"job": self.id, **{name: getattr(self, name) for name in names}}


class Jobs:
    """Jobs that wait, run and have ended. A running one has a worker for itself; cancelling it ends the worker."""

    def __init__(self, workers: int, folder: Path, warm_up: Callable[[], None]) -> None:
        self._folder, self._warm_up = folder, warm_up
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._turns = threading.Semaphore(workers)
        self._lock = threading.Lock()
        self._closed = False
        self._idle = [Worker(folder, warm_up) for _ in range(workers)]

    def submit(
        self, work: Work, arguments: dict[str, Any], finish: Callable[[Any], Any] = lambda value: value, key: Any = None
    ) -> Job:
        """Start work, or let it wait, unless there is a job with that key that has not failed."""
        with self._lock:
            for job in self._jobs.values() if key is not None else ():
                if job.key == key and job.state in ("waiting", "running", "done"):
                    self._jobs.move_to_end(job.id)
                    job.askers += 1
                    return job
            job = Job(work, arguments, finish, key)
            self._jobs[job.id] = job
            ended = [other.id for other in self._jobs.values() if other.ended.is_set()]
            for old in ended[: max(0, len(self._jobs) - MOST_KEPT)]:
                del self._jobs[old]
        threading.Thread(target=self._run, args=(job,), name="cellrisk-job", daemon=True).start()
        return job

    def find(self, job: str) -> Job | None:
        return self._jobs.get(job)

    def forget(self, key: Any) -> None:
        """Do work with that key again when it is asked for."""
        with self._lock:
            for job in self._jobs.values():
                job.key = None if job.key == key else job.key

    def cancel(self, job: Job) -> None:
        """End a job that has not ended, unless others have asked for it too; its worker is gone when this returns."""
        with self._lock:
            job.askers -= 1
            if job.askers > 0 and not self._closed:
                return
            job.end("cancelled")
            if job.worker is not None:
                job.worker.stop()

    def close(self) -> None:
        """End every job and worker."""
        with self._lock:
            self._closed = True
        for job in list(self._jobs.values()):
            self.cancel(job)
        for worker in self._idle:
            worker.stop()

    def _run(self, job: Job) -> None:
        with self._turns:
            with self._lock:
                if self._closed or not job.report("starting"):
                    return
                try:
                    for dead in (worker for worker in self._idle if not worker.alive):
                        dead.stop()  # removes what it left
                    idle = [worker for worker in self._idle if worker.alive]
                    worker = job.worker = idle[0] if idle else Worker(self._folder, self._warm_up)
                except OSError:  # no room for another process or its files; the next job tries again
                    job.end("failed", error=NO_WORKER)
                    return
                self._idle = idle[1:]
            self._listen(worker, job)
            with self._lock:
                job.worker = None
                if self._closed or not worker.alive:
                    worker.stop()
                else:
                    self._idle.append(worker)

    def _listen(self, worker: Worker, job: Job) -> None:
        """Send the job to the worker, and listen until it has ended."""
        try:
            worker.send((job.work, job.arguments))
            kind, *content = worker.receive()
            while kind == "progress":
                job.report(*content)
                kind, *content = worker.receive()
            if kind == "done":
                job.end("done", result=job.finish(content[0]))
            else:
                job.end("failed", error=content[0])
        except (EOFError, OSError, pickle.UnpicklingError):
            worker.stop()
            job.end("failed", error=ENDED_EARLY)
        except Exception as bug:  # its text might hold data
            worker.stop()
            job.end("failed", error=f"internal error ({type(bug).__name__})")


class Worker:
    """A process that does one job after the other. Its temporary files are in a folder that is removed with it."""

    def __init__(self, parent: Path, warm_up: Callable[[], None]) -> None:
        self._folder, self._stopping = parent / f"worker-{secrets.token_hex(4)}", threading.Lock()
        self._folder.mkdir(mode=0o700)
        self._process = start_isolated("cellrisk.web.jobs")
        self.send((str(self._folder), warm_up))

    def send(self, message: Any) -> None:
        send(self._process.stdin, pickle.dumps(message))  # its thread that listens is not to import anything

    def receive(self) -> Any:
        return pickle.load(cast("IO[bytes]", self._process.stdout))

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process, and remove what it left behind."""
        with self._stopping:
            with suppress(OSError), self._process:  # leaving the block closes its pipes
                self._process.kill()
            shutil.rmtree(self._folder, ignore_errors=True)


def main() -> None:
    """Run a worker: it prints nothing, and ends when the server does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    messages, answers = listen(), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tempfile.tempdir, warm_up = pickle.loads(messages.get())
    with suppress(Exception):
        warm_up()
    try:
        while True:
            work, arguments = pickle.loads(messages.get())
            _do(answers, work, arguments)
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
        answer = pickle.dumps(("failed", refusal.render(name_field)))
    except MemoryError:
        answer = pickle.dumps(("failed", "the work needs more memory than there is"))
    except Exception as bug:  # its text might hold data
        answer = pickle.dumps(("failed", f"internal error ({type(bug).__name__})"))
    with lock:
        answers.write(answer)
        answers.flush()
