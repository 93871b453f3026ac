"""Refusals as the command line spells them: options with their dashes in the place of Python's arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cellrisk.errors import Naming, name_in_python

OTHER_NAMES = {"quasi_identifiers": "qid", "bins": "bin", "measures": "measure", "forms": "form"}
"""Arguments in Python whose options have another name."""
PYTHON_ALONE = re.compile(r" \(in Python [^)]*\)")
GIVEN = re.compile(
    r"(?<!\w\()(?<![\w'\"-])([a-z_]+)="
    r"(?:(True|False)\b|(['\"])([^'\"]*)\3|(\d[\d.e-]*\d|\d)|\{[^}]*\})?(?![\w|])"
)
"""An argument with what it is given, if anything: missing='drop', force=True, levels=."""
NAMED = re.compile(r"(?<![\w'\"-])[a-z]+(?:_[a-z]+)+(?![\w'\"])")
TWICE = re.compile(r"(--[a-z-]+(?: [^\s;,()]+)?)(?: \(\1\)|,? or \1|, \1)(?![\w-])")
"""What is left where a message names both ways: force=True (--force)."""


def spell(message: str, root: Any) -> str:
    """What the library says, in the words of the command line.

    Names in quotation marks are those of columns and stay.

    >>> from types import SimpleNamespace as Of
    >>> made = Of(name="force", opts=["--force"], secondary_opts=[]), Of(name="max_risk", opts=["--max-risk"])
    >>> root = Of(name="release", params=made)
    >>> spell("max_risk must be a share; replace it with force=True (--force)", root)
    '--max-risk must be a share; replace it with --force'
    """
    options = {name: option for command in walk(root) for name, option in _list_options(command)}
    commands = {(command.name or "").replace("-", "_"): command.name for command in walk(root)}
    for python, name in OTHER_NAMES.items():
        if name in options:
            options[python] = options[name]

    def give(found: re.Match[str]) -> str:
        name, truth, _, text, number = found.groups()
        if name not in options:
            return found[0]
        on, off = options[name]
        return off if truth == "False" else " ".join(filter(None, (on, text, number)))

    def name_it(found: re.Match[str]) -> str:
        return options[found[0]][0] if found[0] in options else commands.get(found[0], found[0])

    found = GIVEN.sub(give, PYTHON_ALONE.sub("", message))
    found = TWICE.sub(r"\1", NAMED.sub(name_it, found))
    first, must, rest = found.partition(" must ")
    return f"{options[first][0]}{must}{rest}" if must and first in options else found


def name_options(root: Any) -> Naming:
    """Return how the command line writes an argument; what has no option keeps its name in Python.

    >>> from types import SimpleNamespace as Of
    >>> naming = name_options(Of(name="release", params=(Of(name="force", opts=["--force"], secondary_opts=[]),)))
    >>> naming("force", "True"), naming("force", None), naming("seed", "1")
    ('--force', '--force', 'seed=1')
    """
    options = {name: option for command in walk(root) for name, option in _list_options(command)}

    def name_option(name: str, value: str | None) -> str:
        known = options.get(OTHER_NAMES.get(name, name))
        if known is None:
            return name_in_python(name, value)
        if value in ("True", None):
            return known[0]
        return known[1] if value == "False" else f"{known[0]} {value}"

    return name_option


def walk(command: Any) -> Iterator[Any]:
    """A command and all below it."""
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from walk(inner)


def _list_options(command: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """Arguments of a command: how each is switched on or given, and how it is switched off or left out."""
    for parameter in command.params:
        on = next((option for option in parameter.opts if option.startswith("--")), None)
        if on is not None:
            yield parameter.name, (on, next(iter(getattr(parameter, "secondary_opts", ())), f"no {on}"))
