"""Child interpreters that import nothing from the working folder or from beside the data.

Python started with ``-c``, as `multiprocessing` starts it, looks for every module in the working folder first: a
``json.py`` beside the data would run. A child starts with ``-I`` instead and is given the import path that it may use.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import main; main()"


def safe_path(*unsafe: Path) -> list[str]:
    """Return the absolute entries of `sys.path` without the working folder and those given; cellrisk's own is last."""
    entries = [entry for entry in map(str, sys.path) if os.path.isabs(entry) and os.path.exists(entry)]
    safe = [entry for entry in entries if not any(os.path.samefile(entry, folder) for folder in (Path(), *unsafe))]
    return [*safe, str(Path(__file__).resolve().parents[2])]


def start_isolated(module: str, *unsafe: Path) -> Popen[bytes]:
    """Start ``main`` of a module in a child, which imports nothing from the working folder and the folders given."""
    flags = ["-I", f"-Xutf8={sys.flags.utf8_mode}", "-c", START.format(module), json.dumps(safe_path(*unsafe))]
    return Popen([sys.executable, *flags], stdin=PIPE, stdout=PIPE, stderr=DEVNULL)


def send(stream: Any, message: Any) -> None:
    """Write a message that `pickle.load` reads at the other end."""
    pickle.dump(message, stream)
    stream.flush()


def listen() -> SimpleQueue[Any]:
    """Return the messages of the parent as they come; a thread ends this process when the parent has ended."""
    messages: SimpleQueue[Any] = SimpleQueue()

    def read() -> None:
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                messages.put(pickle.load(sys.stdin.buffer))
        os._exit(1)

    threading.Thread(target=read, name="cellrisk-parent", daemon=True).start()
    return messages


def ask_isolated(module: str, message: Mapping[str, Any], seconds: int, *unsafe: Path) -> Any:
    """Return what a child answers to a message of plain data by `answer_once`.

    TimeoutError if it takes longer; ChildProcessError if it ends without an answer, for instance for want of memory.
    """
    reply = b""
    with suppress(BrokenPipeError), start_isolated(module, *unsafe) as process:
        try:
            send(process.stdin, (json.dumps(message), seconds))
            reply = process.stdout.read() if process.stdout else b""
        except BaseException:
            process.kill()
            raise
    if reply.startswith(b"Timeout"):
        raise TimeoutError
    if process.returncode != 0:
        raise ChildProcessError
    return json.loads(reply)


def answer_once(answer: Callable[[dict[str, Any]], Any]) -> None:
    """Answer the parent's message, and end this process."""
    try:
        message, seconds = listen().get()
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.stdout)
        sys.stdout.write(json.dumps(answer(json.loads(message))))
        sys.stdout.flush()
        os._exit(0)
    finally:
        os._exit(1)


def limit_memory(most: int) -> None:
    """Allow this process so many bytes on top of what is loaded; no copy of its memory goes to a disk."""
    with suppress(ImportError, AttributeError, OSError, ValueError):  # not every system has limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        loaded = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (loaded + most,) * 2)
