"""Runs the commands and the code of documentation pages, and puts what they print into the pages.

    .venv/bin/python tools/pages.py docs/deciding.md    rewrites the page with the true outputs
    .venv/bin/python tools/pages.py --check             says which pages are stale; all of them where none is named

What a page may hold:

- ``sh``: commands, in order, in a folder of the page's own that holds ``adult.parquet``. ``cellrisk`` and scripts of
  examples run; make, pip and the like do not. A backslash continues a line, ``> file`` keeps the output, and a comment
  ``# exit 3`` at the end of a command expects that code. Otherwise the code is 0, and nothing is on standard error.
  Commands that run for very long (``LONG``) are parsed, and not run.
- ``python``: code, in order, in one namespace of the page. ``pycon``: doctests in that namespace.
- ``text`` directly after ``sh`` or ``python``: exactly what it printed; a line ``...`` stands for any number of lines.
- ``toml``, ``csv``, ``json``, ``yaml`` and ``sql`` with ``title="name"``: a file of that name in the folder.

``console``, and ``text`` elsewhere, are only shown. Other kinds of blocks are refused.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import doctest
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "src"
DATA = SOURCE / "cellrisk" / "data" / "adult.parquet"
CELLRISK = ("cellrisk", ".venv/bin/cellrisk")
LONG = ("serve",)
OTHERS = ("apt", "cd", "export", "git", "make", "pip", "python", ".venv/bin/pip", ".venv/bin/python")
READERS: dict[str, Callable[[str], object]] = {"toml": tomllib.loads, "json": json.loads}
FILES = ("csv", "sql", "yaml", *READERS)
SHOWN = ("console", "text")
SURROUNDINGS = {
    "COLUMNS": "100",
    "LINES": "40",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "MPLBACKEND": "agg",
    "CELLRISK_TRACEBACK": "1",
}
REST = "..."

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)(?P<rest>[^`]*)$")
TITLE = re.compile(r'title="([^"]*)"')
EXIT = re.compile(r"#\s*exit\s+(\d+)\s*$")
HEAD = re.compile(r"(?m)^.*\b[0-9a-f]{32} \d+ [0-9a-f]{64}$")
"""The head of a ledger, which differs in every run."""


class PageError(Exception):
    """A page that does not run, with the place."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its body is the lines from ``first`` to before ``end``, counted from 0."""

    language: str
    title: str | None
    indent: str
    first: int
    end: int
    body: str


def read_blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order, without their indentation."""
    lines = text.splitlines()
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        at += 1
        if opening is None:
            continue
        indent, fence, first = opening["indent"], opening["fence"], at
        while at < len(lines) and lines[at].strip() != fence:
            at += 1
        if at == len(lines):
            raise PageError(f"line {first}: the block does not end")
        title = TITLE.search(opening["rest"])
        body = "".join(line.removeprefix(indent) + "\n" for line in lines[first:at])
        blocks.append(Block(opening["language"], title and title[1], indent, first, at, body))
        at += 1
    return blocks


@dataclass
class Page:
    """One page while it runs: its folder and its namespace."""

    name: str
    folder: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    left_out: bool = False
    """Whether the last block of commands had one that is not run, so that its output is not known."""

    def run(self, block: Block) -> str | None:
        """What the block printed; None where it is not one that prints."""
        if block.language == "sh":
            return self.run_commands(block)
        if block.language == "python":
            return self.run_python(block)
        if block.language in FILES:
            self.write_file(block)
        elif block.language not in SHOWN:
            allowed = ", ".join(("sh", "python", "pycon", *FILES, *SHOWN))
            raise PageError(f"{self.name}:{block.first}: unknown kind {block.language!r}; allowed: {allowed}")
        return None

    def run_commands(self, block: Block) -> str:
        self.left_out = False
        return "".join(self.run_command(command, f"{self.name}:{line}") for line, command in _commands(block))

    def run_command(self, line: str, place: str) -> str:
        expected = EXIT.search(line)
        words, target = _split(line, place)
        if words[0] == "python" and words[1].startswith("examples/"):
            given = [sys.executable, str(REPOSITORY / words[1]), *words[2:]]
            return subprocess.run(given, cwd=self.folder, check=True, capture_output=True, text=True).stdout
        if words[0] in OTHERS:
            self.left_out = True
            return ""
        if words[0] not in CELLRISK:
            raise PageError(f"{place}: {words[0]} is neither cellrisk nor one of {', '.join(OTHERS)}")
        if len(words) > 1 and words[1] in LONG:
            _parse(words[1:], place)
            self.left_out = True
            return ""
        try:
            code, printed, complaints = _run(words[1:])
        except Exception as failure:
            raise PageError(f"{place}: {line}\n{''.join(traceback.format_exception(failure))}") from failure
        wanted = int(expected[1]) if expected else 0
        if code != wanted or (complaints and not expected):
            raise PageError(f"{place}: {line}\n  exit code {code}, expected {wanted}\n{printed[-500:]}{complaints}")
        if target:
            (self.folder / target).write_text(printed, encoding="utf-8")
            printed = ""
        return printed + complaints

    def run_python(self, block: Block) -> str:
        code = "\n" * block.first + block.body  # so that a traceback names the page's own lines
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                exec(compile(code, self.name, "exec"), self.namespace)
        except Exception as failure:
            raise PageError(f"{self.name}: python\n{''.join(traceback.format_exception(failure))}") from failure
        return output.getvalue()

    def run_doctests(self, block: Block) -> str:
        """The block's body with true outputs."""
        test = doctest.DocTestParser().get_doctest(block.body, {}, self.name, self.name, block.first)
        test.globs = self.namespace
        runner = _Doctests(checker=doctest.OutputChecker(), verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, clear_globs=False, out=lambda _text: None)
        lines = block.body.splitlines(keepends=True)
        for example, got in reversed(runner.found):
            start = example.lineno + example.source.count("\n")
            if got is None:
                raise PageError(f"{self.name}:{block.first + start}: {example.source}{runner.failure}")
            true = [f"{line or '<BLANKLINE>'}\n" for line in got.splitlines()]
            lines[start : start + example.want.count("\n")] = true
        return "".join(lines)

    def write_file(self, block: Block) -> None:
        try:
            READERS.get(block.language, str)(block.body)
        except ValueError as flaw:
            raise PageError(f"{self.name}:{block.first}: {flaw}") from flaw
        if block.title is None:
            return
        target = self.folder / block.title
        if self.folder not in target.resolve().parents:
            raise PageError(f"{self.name}:{block.first}: {block.title} is outside of the folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.body, encoding="utf-8")


class _Doctests(doctest.DocTestRunner):
    """Keeps the examples that failed, with what they printed; None where one raised."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.found: list[tuple[doctest.Example, str | None]] = []
        self.failure = ""

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        raised = got.startswith("Traceback (most recent call last):")
        shown = f"Traceback (most recent call last):\n    ...\n{got.splitlines()[-1]}\n" if raised else got
        self.found.append((example, shown))

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        self.failure = "".join(traceback.format_exception(*exc_info))
        self.found.append((example, None))


def _commands(block: Block) -> Iterator[tuple[int, str]]:
    """The commands with the number of the line where each begins."""
    begun, start = "", 0
    for number, line in enumerate(block.body.splitlines(), start=block.first + 1):
        if not begun:
            start = number
        if line.endswith("\\"):
            begun += line[:-1] + " "
            continue
        command = (begun + line).strip()
        begun = ""
        if command and not command.startswith("#"):
            yield start, command


def _split(line: str, place: str) -> tuple[list[str], str | None]:
    """The words of a command, and the file that keeps its output. What a shell would take for more is refused."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError as flaw:
        raise PageError(f"{place}: {line}: {flaw}") from flaw
    target = None
    if len(words) > 2 and words[-2] == ">":
        target = words[-1]
        words = words[:-2]
    strange = [word for word in words if word and set(word) <= set("();<>|&") and words[0] in CELLRISK]
    if strange:
        raise PageError(f"{place}: a shell would not take {strange[0]} for a part of the command; quote it")
    return words, target


def _run(arguments: list[str]) -> tuple[int, str, str]:
    """The exit code of a command, and what it wrote to standard output and to standard error."""
    from cellrisk.cli import main

    output, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaints):
        code = main(arguments)
    return code, output.getvalue(), complaints.getvalue()


def _parse(arguments: list[str], place: str) -> None:
    """Refuses arguments that the command would not take."""

    from cellrisk.cli.program import PROGRAM

    group: Any = PROGRAM
    try:
        context = group.make_context("cellrisk", list(arguments))
        name, command, rest = group.resolve_command(context, list(arguments))
        command.make_context(name, rest, parent=context)
    except Exception as misuse:
        raise PageError(f"{place}: {misuse}") from misuse


def agree(shown: str, printed: str) -> bool:
    """Whether a text shows what was printed; a line ``...`` stands for any number of lines."""
    lines = shown.splitlines(keepends=True)
    pattern = "".join("(?:.*\n)*" if line.strip() == REST else re.escape(line) for line in lines)
    return re.fullmatch(pattern, printed) is not None


def _in_place(printed: str) -> str:
    return printed if printed.endswith("\n") or not printed else printed + "\n"


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """The page's own working folder, with the shipped table in it, and the same surroundings everywhere."""
    before, variables = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shutil.copyfile(DATA, folder / DATA.name)
        try:
            for variable in [each for each in os.environ if each.startswith("CELLRISK_")]:
                del os.environ[variable]
            os.environ.update(SURROUNDINGS)
            os.chdir(folder)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                yield folder
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(variables)


def run_page(path: Path) -> str:
    """The page's text with the true outputs, the same where nothing is stale; a PageError where one does not run."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    try:
        blocks = read_blocks(text)
    except PageError as flaw:
        raise PageError(f"{path.name}: {flaw}") from flaw
    changes: list[tuple[Block, str]] = []
    with _folder() as folder:
        if path.name == "README.md":  # it is read in the repository
            (folder / "src").symlink_to(SOURCE)
        page = Page(path.name, folder)
        for number, block in enumerate(blocks, start=1):
            follower = blocks[number] if number < len(blocks) else None
            if block.language == "pycon":
                body = page.run_doctests(block)
                if body != block.body:
                    changes.append((block, body))
                continue
            printed = page.run(block)
            if printed is None or follower is None or follower.language != "text":
                continue
            if any(line.strip() for line in lines[block.end + 1 : follower.first - 1]):
                continue
            if block.language == "sh" and page.left_out:
                raise PageError(f"{path.name}:{follower.first}: the output of a command that is not run")
            if str(folder) in printed:
                raise PageError(f"{path.name}:{follower.first}: shows the folder's path, which changes from run to run")
            if not agree(follower.body, _in_place(printed)):
                changes.append((follower, HEAD.sub(REST, _in_place(printed))))
    for block, body in reversed(changes):
        lines[block.first : block.end] = [block.indent + line if line else "" for line in body.splitlines()]
    return "".join(line + "\n" for line in lines) if changes else text


def all_pages() -> list[Path]:
    """README.md and every page below docs/, in order."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def main() -> int:
    """Rewrite pages, or check them; returns the exit code."""
    parser = argparse.ArgumentParser(description="Run the blocks of documentation pages; fill in their outputs.")
    parser.add_argument("pages", nargs="*", type=Path, help="default: README.md and all of docs/")
    parser.add_argument("--check", action="store_true", help="change nothing; say what is stale, with exit code 1")
    options = parser.parse_args()
    faults = 0
    for path in [page.resolve() for page in options.pages] or all_pages():
        before = path.read_text(encoding="utf-8")
        try:
            after = run_page(path)
        except PageError as flaw:
            print(flaw, file=sys.stderr)
            faults += 1
            continue
        if after == before:
            continue
        if options.check:
            faults += 1
            names = (f"{path.name} as it is", f"{path.name} as it runs")
            print("\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), *names, n=1, lineterm="")))
        else:
            path.write_text(after, encoding="utf-8")
            print(f"{path.name}: rewritten")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
