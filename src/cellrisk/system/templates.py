"""Templates filled with plain data: our own in this process, those of others in an isolated one with limits."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput, visible
from cellrisk.system import formatting
from cellrisk.system.isolated import answer_once, ask_isolated, limit_memory

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SECONDS, BYTES = 60, 2**30
"""Time and memory for a template of others."""
FILTERS = {
    "number": lambda number, digits=",": format(number, digits),
    "percent": formatting.percent,
    "claim": formatting.claim,
    "people": formatting.whole_people,
    "few_people": formatting.say_people,
    "number_of": formatting.number_of,
    "of_people": formatting.of_people,
    "sentence": formatting.make_sentence,
    "names": formatting.join_names,
    "yaml": formatting.write_yaml,
}
"""How templates write numbers and names; each is a function of `cellrisk.system.formatting`, but for ``number``."""


def make_environment(files: Mapping[str, str]) -> Environment:
    """Settings of Jinja for documents: every text is escaped, and its invisible characters are made visible.

    A template reaches the data that it is given, the ``files`` by their names, the filters, ``as_is`` and ``range``:
    functions, because methods of a class that is handed in, such as ``Markup.format``, leave the sandbox.
    """
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range

    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(lambda name: (files[name], name, None) if name in files else None),
        autoescape=lambda name: name is None or ".html" in name,
        finalize=lambda value: visible(value) if type(value) is str else value,  # and not what is markup already
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals = {"range": safe_range, "as_is": as_is}
    environment.filters.update(FILTERS)
    return environment


def as_is(markup: str) -> Markup:
    """A text that is markup already."""
    from markupsafe import Markup

    return Markup(str(markup))


def to_plain(value: Any) -> Any:
    """Data for a template: texts, numbers, lists and dicts; of an object, its fields and properties by their names."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: to_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    if is_dataclass(value):
        kind = type(value)
        properties = [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
        names = [*(field.name for field in fields(value)), *properties]
        return {name: to_plain(getattr(value, name)) for name in names if not name.startswith("_")}
    if hasattr(value, "tolist"):  # of numpy
        return value.tolist()
    raise InvalidInput("a document takes texts, numbers, true and false", got=type(value).__name__, code="not-shown")


def fill_apart(template: str, files: Mapping[str, str], data: Mapping[str, Any]) -> str:
    """Fill in a template of others in a process without environment variables and with limits on time and memory."""
    try:
        filled = ask_isolated(__name__, {"template": template, "files": files, "data": data}, SECONDS)
    except TimeoutError:
        filled = {"error": f"it takes more than {SECONDS} seconds"}
    except ChildProcessError:
        filled = {"error": f"its process ended early; it may use {BYTES:,} bytes of memory"}
    if "error" in filled:
        raise InvalidInput(
            f"the template cannot be filled in ({filled['error']})",
            allowed="Jinja with the keys and filters that the page on templates of reports lists",
            fix='start from {% extends "board.html.j2" %}, or from another template of the package',
            code="template",
        )
    return str(filled["document"])


def main() -> None:
    """Answer `fill_apart`, in the other process."""
    answer_once(fill_in)


def fill_in(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the document, or the kind of the error and its line in the template."""
    os.environ.clear()
    limit_memory(BYTES)
    try:
        document = make_environment(asked["files"]).from_string(asked["template"]).render(asked["data"])
        document.encode("utf-8")  # refuses what no file could hold
        return {"document": document}
    except Exception as error:
        steps = traceback.walk_tb(error.__traceback__)
        lines = [getattr(error, "lineno", 0)]
        lines += [line for frame, line in steps if frame.f_code.co_filename == "<template>"]
        return {"error": type(error).__name__ + (f" in line {lines[-1]}" if lines[-1] else "")}
