"""Child interpreters that import nothing from the working folder or from beside the data.

Python started with ``-c``, as `multiprocessing` starts it, looks for every module in the working folder first: a
``json.py`` beside the data would run. A child starts with ``-I`` instead and is given the import path that it may use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import main; main()"


def safe_path(*folders: Path) -> list[str]:
    """Return the absolute entries of `sys.path` except the working folder and those given; cellrisk's own stays."""
    unsafe = (Path(os.curdir), *folders)
    entries = [
        entry
        for entry in sys.path
        if isinstance(entry, str) and os.path.isabs(entry) and not any(_is_same(entry, folder) for folder in unsafe)
    ]
    home = str(Path(__file__).resolve().parents[2])
    return [*entries, *({home} - set(entries))]


def _is_same(entry: str, folder: Path) -> bool:
    with suppress(OSError):
        return os.path.samefile(entry, folder)
    return False


def start_isolated(module: str, *folders: Path) -> subprocess.Popen[bytes]:
    """Start ``main`` of a module in a child, which imports nothing from the working folder and the folders given."""
    command = [sys.executable, "-I", f"-Xutf8={sys.flags.utf8_mode}", "-c", START.format(module)]
    return subprocess.Popen(
        [*command, json.dumps(safe_path(*folders))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def send(stream: Any, message: bytes) -> None:
    """Write a message that `receive` reads at the other end."""
    stream.write(len(message).to_bytes(8, "big"))
    stream.write(message)
    stream.flush()


def receive(stream: Any) -> bytes:
    """Return the next message; EOFError if the other process has ended before it was complete."""
    length = stream.read(8)
    message: bytes = stream.read(int.from_bytes(length, "big"))
    if len(length) < 8 or len(message) < int.from_bytes(length, "big"):
        raise EOFError
    return message


def listen() -> SimpleQueue[bytes]:
    """Return the messages of the parent as they come; a thread ends this process when the parent has ended."""
    messages: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        with suppress(EOFError, OSError):
            while True:
                messages.put(receive(sys.stdin.buffer))
        os._exit(1)

    threading.Thread(target=read, name="cellrisk-parent", daemon=True).start()
    return messages
