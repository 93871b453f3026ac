"""Templates filled with plain data: our own in this process, those of others in an isolated one with limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput, visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SECONDS, BYTES = 60, 2**30
"""Time and memory for a template of others."""
START = "import json, sys; sys.path += json.loads(sys.argv.pop()); from cellrisk.system.templates import main; main()"


def make_environment() -> Environment:
    """Settings of Jinja for documents: every text is escaped, and its invisible characters are made visible.

    A template reaches the data that it is given, ``as_is`` and ``range``: functions, because methods of a class that is
    handed in, such as ``Markup.format``, leave the sandbox.
    """
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range

    environment = ImmutableSandboxedEnvironment(
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,  # and not what is markup already
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals = {"range": safe_range, "as_is": as_is}
    return environment


def as_is(text: str) -> Markup:
    """A text that is markup already."""
    from markupsafe import Markup

    return Markup(str(text))


def fill_apart(template: str, *, page: object, style: str) -> str:
    """Fill in a template of others in a process without environment variables and with limits on time and memory."""
    asked = {"template": template, "page": page, "style": style}
    folders = [folder for folder in sys.path if os.path.isabs(folder)]  # after those of Python itself
    needed = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        child = subprocess.run(
            [sys.executable, "-I", "-c", START, json.dumps(folders)],
            input=json.dumps(asked, default=_list_attributes),
            capture_output=True, check=False, encoding="ascii", env=needed, timeout=SECONDS,
        )  # fmt: skip
        answer = json.loads(child.stdout)
    except subprocess.TimeoutExpired:
        answer = {"error": f"it takes more than {SECONDS} seconds"}
    except (ValueError, OSError):
        answer = {"error": f"its process ended early; it may use {BYTES:,} bytes of memory"}
    if "error" in answer:
        raise InvalidInput(
            f"the template cannot be filled in ({answer['error']})",
            allowed="Jinja with page, style, as_is and range",
            fix="start from page.html.j2 of the package",
        )
    return str(answer["document"])


def main() -> None:
    """Answer `fill_apart`, in the other process."""
    asked = json.load(sys.stdin, object_hook=lambda fields: SimpleNamespace(**fields))
    with suppress(ImportError, ValueError, OSError):  # not every system has limits
        import resource

        for limit, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, BYTES)):
            resource.setrlimit(limit, (most, most))
    try:
        document = make_environment().from_string(asked.template).render(page=asked.page, style=as_is(asked.style))
        document.encode("utf-8")  # refuses what no file could hold
        answer = {"document": document}
    except Exception as error:
        steps = traceback.walk_tb(error.__traceback__)
        lines = [getattr(error, "lineno", 0)]
        lines += [line for frame, line in steps if frame.f_code.co_filename == "<template>"]
        answer = {"error": type(error).__name__ + (f" in line {lines[-1]}" if lines[-1] else "")}
    sys.stdout.write(json.dumps(answer))


def _list_attributes(thing: object) -> dict[str, object]:
    return {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
