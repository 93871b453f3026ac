"""What the documentation site needs beyond its pages: formulas, the command reference, and docstrings.

mkdocs.yml names this file as a hook, and as an extension of Griffe, which reads the docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from html import unescape
from typing import Any

import griffe
from latex2mathml.converter import convert

COMMANDS = "<!-- commands -->"
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL)
OUTPUT = re.compile(r'(<div class="language-text[^>]*><pre><span></span><code>)(.*?)(?=</code>)', flags=re.DOTALL)
ROW = re.compile(r"\S {2,}\S")


def on_page_markdown(markdown: str, **_rest: Any) -> str:
    """The page with the commands in the place that asks for them."""
    return markdown.replace(COMMANDS, describe_commands()) if COMMANDS in markdown else markdown


def on_page_content(html: str, page: Any, **_rest: Any) -> str:
    """The page with its formulas as MathML, which browsers show without a script, and the tables in outputs marked."""
    html = FORMULA.sub(lambda found: _formula(unescape(found[3]), found[2] == "[", page.file.src_uri), html)
    return OUTPUT.sub(lambda found: found[1] + _mark_rows(found[2]), html)


def _mark_rows(output: str) -> str:
    """Sentences of an output wrap, rows of a table, which have columns, must not."""
    rows = (f'<span class="row">{line}</span>' if ROW.search(line) else line for line in output.split("\n"))
    return "\n".join(rows)


def _formula(latex: str, display: bool, place: str) -> str:
    """One formula. What the converter does not know stays behind with its backslash, and is refused."""
    from mkdocs.exceptions import PluginError

    try:
        math = convert(latex.strip(), display="block" if display else "inline")
    except Exception as flaw:
        raise PluginError(f"{place}: the formula {latex!r} cannot be read: {flaw!r}") from flaw
    unknown = re.search(r"\\\w*", math)
    if unknown:
        raise PluginError(f"{place}: the formula {latex!r} has {unknown[0]}, which is not known")
    return f'<div class="formula">{math}</div>' if display else math


class Docstrings(griffe.Extension):
    """Turns docstrings, which are plain text, into Markdown."""

    def on_object(self, *, obj: griffe.Object, **_rest: Any) -> None:
        if obj.docstring is not None:
            named = obj.parameters if isinstance(obj, griffe.Class | griffe.Function) else ()
            obj.docstring.value = to_markdown(obj.docstring.value, {each.name for each in named})


def to_markdown(docstring: str, parameters: Collection[str] = ()) -> str:
    """Doctests in blocks of their own, parameters as a list, other signs as they are."""
    return "\n\n".join(_paragraph(each, parameters) for each in re.split(r"\n\s*\n", docstring))


def _paragraph(text: str, parameters: Collection[str]) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if text.startswith("    "):
        return text
    if text.startswith("Parameters\n---"):
        found = re.findall(r"^(\w.*)\n((?:    .*\n?)+)", text.split("\n", 2)[2], flags=re.MULTILINE)
        return "\n".join(_item(names, told) for names, told in found)
    name = "|".join(map(re.escape, sorted(parameters))) or "(?!)"
    parts = re.split(rf"(?:^|(?<=\.)\s)((?:{name})(?:, (?:{name}))*): ", text)
    if parts[0]:
        return "\n".join(map(_escape, text.splitlines()))
    return "\n".join(_item(names, told) for names, told in zip(parts[1::2], parts[2::2], strict=True))


def _item(names: str, told: str) -> str:
    """Parameters and what is told of them, as an item of a list."""
    return f"- {', '.join(f'`{each}`' for each in names.split(', '))}: {_escape(' '.join(told.split()))}"


def _escape(line: str) -> str:
    """Outside of code, what Markdown would take for emphasis or a tag."""
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<$])", r"\\\1", part) for part in parts)


def describe_commands() -> str:
    """Every command as Markdown: its help, its arguments, its options and their defaults."""

    from cellrisk.cli.program import PROGRAM

    return "\n".join(_describe_group(PROGRAM, ("cellrisk",)))


def _describe_group(group: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _describe_group(command, (*path, name))
        else:
            yield from _describe_command(command, (*path, name))


def _describe_command(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    from cellrisk.cli.program import find_examples, find_panels, name_argument

    given = [each for each in command.params if each.param_type_name == "argument"]
    panels = find_panels(command.params)
    yield f"## {' '.join(path)}\n"
    usage = " ".join([*path, *map(name_argument, given), *(["[OPTIONS]"] if panels else [])])
    yield f"```text\n{usage}\n```\n"
    yield f"{_paragraphs(command.help)}\n"
    yield f"```sh\n{find_examples(' '.join(path[1:]))}\n```\n"
    if given:
        yield "| argument | |\n|---|---|"
        yield from (f"| `{name_argument(each)}` | {_cell(each.help or '')} |" for each in given)
        yield ""
    for panel, options in panels.items():
        yield f"| {panel} | | default |\n|---|---|---|"
        yield from (
            f"| `{_names(each)}` | {_cell(each.help or '')}{' Needed.' if each.required else ''} | {_default(each)} |"
            for each in options
        )
        yield ""


def _paragraphs(text: str | None) -> str:
    blocks = (text or "").strip().split("\n\n")
    return "\n\n".join(" ".join(block.split()) for block in blocks)


def _names(option: Any) -> str:
    names = ", ".join(option.opts)
    if option.secondary_opts:
        return f"{names} / {', '.join(option.secondary_opts)}"
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def _default(option: Any) -> str:
    value = option.default
    if isinstance(option.show_default, str):
        return option.show_default
    if callable(value) or value is None or value == () or (option.is_flag and not option.secondary_opts):
        return ""
    if option.is_flag:
        return f"`{(option.opts if value else option.secondary_opts)[0]}`"
    return f"`{value}`"


def _cell(text: str) -> str:
    """Text for a cell of a table: no line breaks, and bars and angles that stand for themselves."""
    return (
        " ".join(text.split()).replace("&", "&amp;").replace("|", "&#124;").replace("<", "&lt;").replace("*", "&#42;")
    )
