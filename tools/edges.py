"""Which numbers that are printed sit on the edge of a rounding: another processor may print them otherwise.

    .venv/bin/python tools/edges.py docs/deciding.md    runs pages; those of the documentation where none is named
    .venv/bin/python tools/edges.py --doctests          runs the doctests of cellrisk

Every number that is put into words with a format, or rounded, is also put so with one part in a thousand million more
and less, and told where that changes what is printed. Numbers with more than eight digits are let be: they are read by
programs, or compared by tests that allow for rounding.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import doctest
import importlib
import importlib.machinery
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "src"
RELATIVE = 1e-9
MOST_DIGITS = 8
plainly_round = round


class Edges:
    """What was found so far: the number, what is printed for it and its neighbours, and where."""

    def __init__(self) -> None:
        self.seen = 0
        self.found: dict[tuple[Any, ...], str] = {}

    def put(self, value: Any, form: str) -> str:
        """``format``, watched."""
        self._watch(value, lambda each: format(each, form))
        return format(value, form)

    def round(self, value: Any, digits: Any = None) -> Any:
        """``round``, watched where digits are asked for."""
        if digits is not None:
            self._watch(value, lambda each: repr(float(plainly_round(each, digits))))
        return plainly_round(value, digits)

    def _watch(self, value: Any, show: Any) -> None:
        if not isinstance(value, float) or value == 0 or not math.isfinite(value):
            return
        self.seen += 1
        shown = [show(value * (1 + change)) for change in (-RELATIVE, 0.0, RELATIVE)]
        digits = max(sum(map(str.isdigit, each.partition("e")[0].strip("-0."))) for each in shown)
        if len(set(shown)) > 1 and digits <= MOST_DIGITS:
            self.found.setdefault((float(value), *shown), _place())


def _place() -> str:
    found: list[str] = []
    frame = sys._getframe(3)
    while frame.f_back is not None and len(found) < 3:
        found.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(found)


class Watched(ast.NodeTransformer):
    """Formats in f-strings become calls."""

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        self.generic_visit(node)
        if node.format_spec is not None and node.conversion == -1:
            put = ast.Call(ast.Name("put_watched", ast.Load()), [node.value, node.format_spec], [])
            node = ast.FormattedValue(put, -1, None)
        return node


def watch(source: Any, mode: str) -> Any:
    return ast.fix_missing_locations(Watched().visit(ast.parse(source, mode=mode)))


def begin() -> Edges:
    """From here on, what is imported from cellrisk or run by doctest is watched."""
    edges = Edges()
    sys.pycache_prefix = tempfile.mkdtemp()  # what was compiled before is not watched
    sys.path[:0] = [str(SOURCE), str(REPOSITORY)]

    def compile_source(_: Any, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        watched = watch(data, "exec") if str(path).startswith(str(SOURCE)) else data
        return compile(watched, path, "exec", dont_inherit=True, optimize=_optimize)

    def compile_example(source: Any, name: str, mode: str, *rest: Any) -> Any:
        return compile(watch(source, mode), name, mode, *rest)

    importlib.machinery.SourceFileLoader.source_to_code = compile_source  # type: ignore[method-assign, assignment]
    vars(doctest)["compile"] = compile_example
    vars(builtins).update(put_watched=edges.put, round=edges.round)
    return edges


def run_pages(names: list[str]) -> Iterator[str]:
    pages: Any = importlib.import_module("tools.pages")
    for page in [Path(name) for name in names] or pages.all_pages():
        pages.run_page(page)
        yield page.name


def run_doctests() -> Iterator[str]:
    for path in sorted((SOURCE / "cellrisk").rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            with contextlib.redirect_stdout(sys.stderr):
                doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
            yield name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--doctests", action="store_true", help="the doctests of cellrisk instead of pages")
    given = parser.parse_args()
    edges, told = begin(), 0
    for name in run_doctests() if given.doctests else run_pages(given.pages):
        for (value, *shown), place in list(edges.found.items())[told:]:
            print(f"{name}: {value!r} is {shown[1]}, its neighbours {shown[0]} and {shown[2]}: {place}")
        told = len(edges.found)
    print(f"{edges.seen:,} numbers, {told} of them on an edge")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
