"""Breaks the code in small ways, one at a time, and says which of them no test notices.

    .venv/bin/python tools/mutants.py noise people      300 mutants of each of these rooms, drawn at random
    .venv/bin/python tools/mutants.py --number 0        all of them, in every room of ``ROOMS``
    .venv/bin/python tools/mutants.py noise --again     those that survived the last time, of the same code
    .venv/bin/python tools/mutants.py noise --judged    those that are said to make no difference: do they?

A mutant is the package with one change: a comparison, an operator, a number, a condition or a result is another one,
two arguments change places, a statement is left out. Texts, annotations, decorators and what is raised stay as they
are.

Tests are collected once for each room, in a copy of the sources. Each mutant is then a fork of that process, in which
the function's code is replaced; the tests that reach the line run there, the quickest first, until one fails. Commands
that tests start import the mutant from the copy. What is outside functions is imported anew in a process of its own.
A mutant with which a test takes many times its processor time is taken for endless, and counts as noticed. Tests longer
than ``LONGEST`` seconds are left out, and all tests of a mutant together take no more than ``--patience``: so the share
that is printed is a lower bound.

The survivors are in build/mutants/ROOM.json, with the change that nothing noticed. Those that were read and make no
difference are in tools/equivalent_mutants.json, each with the reason; they are drawn like all others, but not run, and
the share of the others is printed beside that of all.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import copy
import gc
import importlib
import json
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = "src/cellrisk"
COPIED = ("src", "tests", "tools", "docs", "examples", "README.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
JUDGED = "tools/equivalent_mutants.json"
"""Mutants that make no difference. A line is known by its text, so that it may move."""
LONGEST = 4.0
"""Seconds of processor time: a longer test helps little and costs much."""
EXAMPLES = 40
"""Of a test by hypothesis, at most."""
SETUPS = {"adult": 1.0}
"""What many tests share is set up once for all when they are watched, but once for each mutant later."""

ROOMS: dict[str, tuple[list[str], list[str]]] = {
    "noise": (
        ["noise"],
        [
            *("tests/test_noise.py", "tests/test_mechanisms.py", "tests/test_mechanism_given.py"),
            *("tests/test_precision.py", "tests/perturbations", "tests/opendp"),
        ],
    ),
    "measures": (["risk/measures"], ["tests/measures"]),
    "people": (["risk/people.py", "risk/totals.py"], ["tests/test_people.py", "tests/test_totals.py"]),
    "search": (
        [
            *("decide/search.py", "decide/analytic.py", "decide/requirement.py"),
            *("decide/figure_limits.py", "decide/option.py"),
        ],
        [
            *("tests/test_search.py", "tests/test_choice.py", "tests/test_choice_bends.py"),
            "tests/decision/test_choice_by_figures.py",
        ],
    ),
    "accounting": (["repeat/accounting"], ["tests/accounting", "tests/ceiling/test_releases.py"]),
    "ledger": (
        ["repeat/ledger"],
        [
            "tests/ledger",
            *(
                f"tests/together/test_releasing.py::test_{name}"  # a set is one entry
                for name in ("what_was_changed_afterwards_is_found", "only_a_release_of_that_set_can_be_saved")
            ),
        ],
    ),
}
"""The sources of a room, and the tests that must notice when they are wrong; doctests of the sources belong to them."""
LEFT_OUT = (
    "tests/ledger/test_soak.py",
    "tests/ledger/test_ledger_pairing.py::test_death_at_any_line",
    "tests/ledger/test_ledger_pairing.py::test_nobody_sees_an_entry_without_its_file",
    "tests/ledger/test_ledger_sharing.py::test_several_processes_at_once",
    "tests/ledger/test_ledger_export.py::test_the_fields_are_those_of_the_report_in_its_order",
    "tests/ledger/test_ledger_stopping.py::test_a_release_without_a_ledger",
    "tests/measures/test_simulation.py",
)
"""What begins with these takes long, or is about other rooms too, and is not even watched."""

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OPPOSITES = {
    one: other
    for pair in (("min", "max"), ("minimum", "maximum"), ("floor", "ceil"), ("any", "all"), ("argmin", "argmax"))
    for one, other in (pair, pair[::-1])
}
SYMMETRIC = {
    "clip",
    "min",
    "max",
    "minimum",
    "maximum",
    "hypot",
    "convolve",
    "fftconvolve",
    "logaddexp",
    "isclose",
    "isinstance",
    "array_equal",
    "multiply",
    "samestat",
    "suppress",
}
"""Two arguments of these may change places without any difference, or with an error that proves nothing."""


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    node: int
    """Which node of the file, in the order of ``ast.walk``."""
    choice: int
    """Which of the changes that can be made to that node."""
    function: tuple[str, int] | None
    """Name and first line of the outermost function that it is in, if any."""
    change: str
    text: str
    """The line, as it was."""
    which: int
    """Of several equal changes of equal lines, which one."""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is known by, in the same code and in code that has moved."""
        return self.path, self.text, self.change, self.which


def find_changes(node: ast.AST) -> Iterator[ast.AST | None]:
    """What may stand in the place of a node; None stands for the statement left out."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                changed = copy.deepcopy(node)
                changed.ops[place] = other()
                yield changed
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        changed_operation = copy.deepcopy(node)
        changed_operation.op = OPERATORS[type(node.op)]()
        texts = (ast.JoinedStr, ast.List, ast.Tuple)
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
        if not any(isinstance(s, texts) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides):
            yield changed_operation
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        changed_condition = copy.deepcopy(node)
        changed_condition.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed_condition
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)
            if node.value != 0:
                yield ast.Constant(node.value - 1)
        elif isinstance(node.value, float):
            yield ast.Constant(2 * node.value if node.value else 1.0)
    elif isinstance(node, ast.If | ast.While | ast.IfExp) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call
    ):
        changed_test = copy.deepcopy(node)
        changed_test.test = ast.UnaryOp(ast.Not(), changed_test.test)
        yield changed_test
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in OPPOSITES:
            changed_call = copy.deepcopy(node)
            if isinstance(changed_call.func, ast.Attribute):
                changed_call.func.attr = OPPOSITES[name]
            elif isinstance(changed_call.func, ast.Name):
                changed_call.func.id = OPPOSITES[name]
            yield changed_call
        plain = not any(isinstance(argument, ast.Starred) for argument in node.args[:2])
        if len(node.args) >= 2 and plain and name not in SYMMETRIC and ast.dump(node.args[0]) != ast.dump(node.args[1]):
            swapped = copy.deepcopy(node)
            swapped.args[:2] = swapped.args[1::-1]
            yield swapped
    elif isinstance(node, ast.Return):
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    if isinstance(node, ast.Raise | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Yield | ast.YieldFrom)
    ):
        yield None


class Swap(ast.NodeTransformer):
    """The tree with one node replaced."""

    def __init__(self, target: ast.AST, replacement: ast.AST) -> None:
        self.target, self.replacement = target, replacement

    def visit(self, node: ast.AST) -> Any:
        return self.replacement if node is self.target else self.generic_visit(node)


def find_mutable(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.FunctionDef | None]]:
    """Nodes that may change, each with the outermost function that it is in."""

    def visit(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[tuple[ast.AST, ast.FunctionDef | None]]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        yield node, function
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.FunctionDef):
            for default in (*node.args.defaults, *(value for value in node.args.kw_defaults if value is not None)):
                yield from visit(default, function)
            for statement in node.body:
                yield from visit(statement, function or node)
            return
        skipped: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            skipped = [node.annotation]
        if isinstance(node, ast.ClassDef):
            skipped = [*node.decorator_list]
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets):
            return
        for child in ast.iter_child_nodes(node):
            if child not in skipped:
                yield from visit(child, function)

    yield from visit(tree, None)


@cache
def read_source(path: str) -> str:
    """A file as it was when this began: it may be edited meanwhile."""
    return (REPOSITORY / path).read_text(encoding="utf-8")


def find_mutants(path: str) -> list[Mutant]:
    """Every mutant of a file."""
    tree = ast.parse(read_source(path))
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    lines = ["", *read_source(path).splitlines()]
    alike: Counter[tuple[str, str]] = Counter()
    found = []
    for node, function in find_mutable(tree):
        for choice, changed in enumerate(find_changes(node)):
            shown: ast.AST = node
            if isinstance(node, ast.If | ast.While):
                shown, changed = node.test, getattr(changed, "test", changed)
            before, after = ast.unparse(shown), "pass" if changed is None else ast.unparse(changed)
            first = None
            if function is not None:
                first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
            line, change = getattr(node, "lineno", 0), f"{before}  ->  {after}"
            text = lines[line].strip()
            found.append(
                Mutant(
                    path=path,
                    line=line,
                    node=numbers[id(node)],
                    choice=choice,
                    function=None if function is None or first is None else (function.name, first),
                    change=change,
                    text=text,
                    which=alike[text, change],
                )
            )
            alike[text, change] += 1
    return found


def find_uses(mutant: Mutant, paths: Iterable[str]) -> set[tuple[str, int]]:
    """Where code outside functions matters: where its names are used, in the function of a default, or in the file."""
    tree = ast.parse(read_source(mutant.path))
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.stmt) and each.lineno <= mutant.line <= (each.end_lineno or each.lineno)
    ]
    statement = around[-1]
    if isinstance(statement, ast.FunctionDef):
        return {(mutant.path, line) for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)}
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    names = {
        each.id for target in targets if target is not None for each in ast.walk(target) if isinstance(each, ast.Name)
    }
    return {
        (path, each.lineno)
        for path in paths
        for each in ast.walk(ast.parse(read_source(path)))
        if (isinstance(each, ast.Name) and each.id in names) or (isinstance(each, ast.Attribute) and each.attr in names)
        if isinstance(each.ctx, ast.Load)
    } or {(mutant.path, line) for line in range(1, len(read_source(mutant.path).splitlines()) + 1)}


@cache
def read_judged() -> dict[tuple[str, str, str, int], str]:
    """Why some mutants make no difference, by their keys."""
    groups = json.loads((REPOSITORY / JUDGED).read_text(encoding="utf-8"))
    return {
        (group["path"], each["text"], each["change"], each.get("which", 0)): group["why"]
        for group in groups
        for each in group["mutants"]
    }


def make_mutant(mutant: Mutant) -> ast.Module:
    """The file's tree with the change."""
    tree = ast.parse(read_source(mutant.path))
    node = list(ast.walk(tree))[mutant.node]
    replacement = list(find_changes(node))[mutant.choice] or ast.Pass()
    changed: ast.Module = Swap(node, ast.copy_location(replacement, node)).visit(tree)
    return ast.fix_missing_locations(changed)


Functions = dict[tuple[str, tuple[str, int]], list[types.FunctionType]]


def find_functions(files: set[str]) -> Functions:
    """The functions that are loaded from some files, by name and first line."""
    found: Functions = {}
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType) and each.__code__.co_filename in files:
            code = each.__code__
            found.setdefault((code.co_filename, (code.co_name, code.co_firstlineno)), []).append(each)
    return found


class Notes(ast.NodeTransformer):
    """Before every statement of a function, its lines are noted."""

    def __init__(self, file: str) -> None:
        self.file = file

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) and isinstance(statements, list):
                setattr(node, name, [part for each in statements for part in (*self.note(each), each)])
        return node

    def note(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        inner = getattr(statement, "body", None)
        last = max(inner[0].lineno - 1, statement.lineno) if inner else statement.end_lineno
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            lines = range(statement.lineno, (last or statement.lineno) + 1)
            source = f"__noted__.update({[(self.file, line) for line in lines]})"
            yield ast.copy_location(ast.parse(source).body[0], statement)


def note_lines(files: set[str], lines: set[tuple[str, int]]) -> None:
    """From now on, the lines of these files that run inside functions are put into a set."""
    builtins.__noted__ = lines  # type: ignore[attr-defined]
    trees = {file: Notes(file).visit(ast.parse(Path(file).read_text(encoding="utf-8"))) for file in files}
    for (file, function), loaded in find_functions(files).items():
        replace_code(loaded, function, ast.fix_missing_locations(trees[file]), file)


def replace_code(
    functions: list[types.FunctionType], wanted: tuple[str, int] | None, tree: ast.Module, file: str
) -> bool:
    """Puts the changed code into the functions that are loaded; False where that cannot be done."""

    def find(code: types.CodeType) -> Iterator[types.CodeType]:
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                if (constant.co_name, constant.co_firstlineno) == wanted:
                    yield constant
                else:
                    yield from find(constant)

    changed = next(find(compile(tree, file, "exec", dont_inherit=True)), None)
    if changed is None or not functions or any(f.__code__.co_freevars != changed.co_freevars for f in functions):
        return False
    for function in functions:
        function.__code__ = changed
    return True


@dataclass
class Seen:
    """What a test did when nothing was wrong."""

    seconds: float = 0.0
    """Of processor time."""
    lines: set[tuple[str, int]] = field(default_factory=set)
    starts_others: bool = False
    passed: bool = True


def needs_server(item: pytest.Item) -> bool:
    """Whether a test may ask for a database's server, by its own name or by that of a case."""
    return "database" in item.nodeid or "server" in getattr(item, "fixturenames", ())


@contextlib.contextmanager
def share_server(items: list[pytest.Item]) -> Iterator[None]:
    """Starts the server that some tests need, once for all mutants; where that cannot be done, they skip themselves."""
    with contextlib.ExitStack() as stack:
        if any(map(needs_server, items)):
            from tests.tables import postgres_server

            with contextlib.suppress(pytest.skip.Exception):
                found = stack.enter_context(postgres_server.running_server())
                os.environ[postgres_server.SHARED] = str(found.port)
        yield


def count_processor_time() -> float:
    """Seconds that this process and the others that it started and waited for have used."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def limit_examples(test: Any) -> None:
    """Fewer random examples: what is wrong shows in the first of them, as a rule."""
    import hypothesis

    function = getattr(test, "__func__", test)
    known = getattr(function, "_hypothesis_internal_use_settings", None)
    if known is not None and known.max_examples > EXAMPLES:
        function._hypothesis_internal_use_settings = hypothesis.settings(known, max_examples=EXAMPLES)


class Room:
    """A plugin of pytest that runs mutants instead of tests."""

    def __init__(self, name: str, folder: Path, mutants: list[Mutant], patience: float, doubting: bool) -> None:
        self.name, self.folder, self.mutants, self.patience = name, folder, mutants, patience
        self.doubting = doubting
        """Whether mutants run that are said to make no difference."""
        self.results: list[dict[str, Any]] = []
        self.killers: Counter[str] = Counter()
        self.functions: Functions = {}

    def pytest_sessionstart(self) -> None:
        """A failure needs no simplest example, and the same seed gives the same answer."""
        import hypothesis

        quick = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", phases=quick, database=None, derandomize=True)
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        with share_server(session.items):
            self.judge_all({item.nodeid: item for item in session.items})
        return True

    def judge_all(self, items: dict[str, pytest.Item]) -> None:
        for item in items.values():
            limit_examples(getattr(item, "obj", None))
        began = time.monotonic()
        seen = self.watch(list(items.values()))
        failed = [name for name, test in seen.items() if not test.passed]
        for name in failed:
            print(f"Not used, because it fails here without any mutant: {name}", flush=True)
        spent = sum(test.seconds for test in seen.values())
        print(
            f"{self.name}: {len(items)} tests took {spent:.0f} s of processor time "
            f"and {time.monotonic() - began:.0f} s in all; {len(self.mutants)} mutants",
            flush=True,
        )
        self.functions = find_functions({str(self.folder / mutant.path) for mutant in self.mutants})
        gc.freeze()  # forks then share what was there before
        for number, mutant in enumerate(self.mutants, 1):
            self.results.append(self.judge(mutant, items, seen))
            result = self.results[-1]
            if (result["outcome"] in ("survived", "not reached")) != self.doubting:
                by = f", by {result['by']}" if result.get("by") else ""
                print(f"{mutant.path}:{mutant.line}: {result['outcome']}: {mutant.change}{by}", flush=True)
            if number % 25 == 0:
                alive = sum(each["outcome"] in ("survived", "not reached") for each in self.results)
                print(
                    f"{self.name}: {number} of {len(self.mutants)}, {alive} alive, {time.monotonic() - began:.0f} s",
                    flush=True,
                )

    def watch(self, items: list[pytest.Item]) -> dict[str, Seen]:
        """Runs every test once, in a fork, so that nothing stays in a cache; which lines does it reach?"""
        files = {str(self.folder / mutant.path) for mutant in self.mutants}
        result = self.folder / "seen.pickle"
        for path in {mutant.path for mutant in self.mutants}:
            importlib.import_module(
                path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            )
        child = os.fork()
        if child == 0:
            seen: dict[str, Seen] = {}
            current = Seen()

            def notice(event: str, arguments: object) -> None:
                if event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec"):
                    current.starts_others = True

            class Watching:
                def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                    if report.failed or report.skipped:
                        current.passed = False

            quieten(items[0].config)
            items[0].config.pluginmanager.register(Watching())
            sys.addaudithook(notice)
            lines: set[tuple[str, int]] = set()
            note_lines(files, lines)
            caches = [each for each in gc.get_objects() if type(each).__name__ == "_lru_cache_wrapper"]
            caches = [each for each in caches if str(each.__module__).startswith("cellrisk")]
            for item, following in zip(items, [*items[1:], None], strict=True):
                current = Seen()
                for kept in caches:  # or only the first test that asks would reach what is kept
                    kept.cache_clear()
                spent = count_processor_time()
                lines.clear()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                current.lines = set(lines)
                current.seconds = count_processor_time() - spent
                seen[item.nodeid] = current
            result.write_bytes(pickle.dumps((seen, list(sys.modules))))
            os._exit(0)
        os.waitpid(child, 0)
        found: dict[str, Seen]
        found, modules = pickle.loads(result.read_bytes())
        for module in modules:  # what tests load late is loaded once, and not by every fork again
            if module not in sys.modules and not module.startswith(("_", "tests")):
                with contextlib.suppress(Exception):
                    importlib.import_module(module)
        for item in items:
            found[item.nodeid].seconds += sum(SETUPS.get(name, 0.0) for name in getattr(item, "fixturenames", ()))
        return found

    def judge(self, mutant: Mutant, items: dict[str, pytest.Item], seen: dict[str, Seen]) -> dict[str, Any]:
        """Runs the tests that reach a mutant."""
        if mutant.key in read_judged() and not self.doubting:
            return {**vars(mutant), "outcome": "no difference", "tests": 0}
        place = (str(self.folder / mutant.path), mutant.line)
        usable = {name: test for name, test in seen.items() if test.passed and test.seconds < LONGEST}
        places = {place}
        if mutant.function is None:
            places = {(str(self.folder / path), line) for path, line in find_uses(mutant, list_sources(self.name))}
        chosen = [name for name, test in usable.items() if places & test.lines]
        others = [name for name, test in usable.items() if test.starts_others and name not in chosen]
        chosen.sort(key=lambda name: usable[name].seconds / (1 + self.killers[name]))
        total = 0.0
        kept: list[str] = []
        for name in (*chosen, *others):
            total += usable[name].seconds
            if kept and total > self.patience:
                break
            kept.append(name)
        if not kept:
            return {**vars(mutant), "outcome": "not reached", "tests": 0}
        tree = make_mutant(mutant)
        target = self.folder / mutant.path
        target.write_text(ast.unparse(tree), encoding="utf-8")
        try:
            killer = self.run({items[name]: 1 + 3 * usable[name].seconds for name in kept}, mutant, tree)
        finally:
            target.write_text(read_source(mutant.path), encoding="utf-8")
        if killer in items:
            self.killers[killer] += 1
        return {**vars(mutant), "outcome": "killed" if killer else "survived", "by": killer, "tests": len(kept)}

    def run(self, limits: dict[pytest.Item, float], mutant: Mutant, tree: ast.Module) -> str:
        """The test that fails, or how else the mutant came to its end; nothing where it survives."""
        items = list(limits)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            os.close(reading)

            class Killing:
                def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                    if report.failed:
                        os.write(writing, report.nodeid.encode())
                        os._exit(1)

            file = str(self.folder / mutant.path)
            loaded = [] if mutant.function is None else self.functions.get((file, mutant.function), [])
            if not replace_code(loaded, mutant.function, tree, file):
                os.dup2(os.open(os.devnull, os.O_RDWR), 1)
                os.dup2(1, 2)
                names = [item.nodeid for item in items]
                base = str(self.folder / "base")
                command = [sys.executable, "-m", "pytest", "-x", "-q", *PLAIN, "--basetemp", base, *names]
                code = subprocess.run(command, cwd=self.folder, check=False).returncode
                if code:
                    os.write(writing, b"a process of its own")
                os._exit(code)
            quieten(items[0].config)
            items[0].config.pluginmanager.register(Killing())
            with contextlib.suppress(BaseException):
                for item, following in zip(items, [*items[1:], None], strict=True):
                    signal.setitimer(signal.ITIMER_PROF, limits[item])
                    signal.setitimer(signal.ITIMER_REAL, 60 + 10 * limits[item])
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                os._exit(0)
            os.write(writing, b"an exception")
            os._exit(1)
        os.close(writing)
        ends = time.monotonic() + 60 + 10 * sum(limits.values())
        status = 0
        while time.monotonic() < ends:
            finished, status = os.waitpid(child, os.WNOHANG)
            if finished:
                break
            time.sleep(0.005)
        else:
            status = signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read().decode()
        return said or ("endless" if status else "")


PLAIN = (
    *("-n0", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", "faulthandler_timeout=0"),
    *(f"--deselect={start}" for start in LEFT_OUT),
)
"""What hangs is ended here by processor time; the clock of a busy machine would end what does not."""


def quieten(config: pytest.Config) -> None:
    """A fork prints nothing of its own."""
    config.pluginmanager.unregister(name="terminalreporter")


def list_sources(room: str) -> Iterator[str]:
    for name in ROOMS[room][0]:
        path = REPOSITORY / PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield str(file.relative_to(REPOSITORY))


def draw(room: str, number: int, seed: int, which: str) -> list[Mutant]:
    """Some of the room's mutants, or all of them where there are fewer or none is asked for; or some known ones."""
    every = [mutant for path in list_sources(room) for mutant in find_mutants(path)]
    if which == "judged":
        return [each for each in every if each.key in read_judged()]
    if which == "again":
        last = json.loads((REPOSITORY / "build" / "mutants" / f"{room}.json").read_text(encoding="utf-8"))
        wanted = {tuple(each[key] for key in ("path", "text", "change", "which")) for each in last["survivors"]}
        return [each for each in every if each.key in wanted]
    print(f"{room}: {len(every)} mutants", flush=True)
    if not 0 < number < len(every):
        return every
    return random.Random(f"{seed} {room}").sample(every, number)


def run_room(room: str, mutants: list[Mutant], patience: float, doubting: bool) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        folder = Path(scratch).resolve()
        for name in COPIED:
            source = REPOSITORY / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder / "src")
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(folder / "src"))
        plugin = Room(room, folder, mutants, patience, doubting)
        tests = [*ROOMS[room][1], *(f"{PACKAGE}/{name}" for name in ROOMS[room][0])]
        code = pytest.main(["-q", "-q", *PLAIN, "--basetemp", str(folder / "base"), *tests], plugins=[plugin])
        os.chdir(REPOSITORY)
        if len(plugin.results) < len(mutants):
            raise SystemExit(f"The tests of {room} could not be collected: {code}")
        return plugin.results


def summarise(room: str, results: list[dict[str, Any]], which: str) -> None:
    outcomes = Counter(result["outcome"] for result in results)
    share = outcomes["killed"] / max(len(results), 1)
    among = outcomes["killed"] / max(len(results) - outcomes["no difference"], 1)
    print(
        f"{room}: {len(results)} mutants, {outcomes['killed']} killed ({share:.1%}), "
        f"{outcomes['no difference']} make no difference ({among:.1%} of the others killed), "
        f"{outcomes['survived']} survived, {outcomes['not reached']} not reached",
        flush=True,
    )
    folder = REPOSITORY / "build" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    alive = [result for result in results if result["outcome"] in ("survived", "not reached")]
    kept = {"room": room, "drawn": len(results), "outcomes": outcomes, "survivors": alive}
    name = f"{room}-{which}.json" if which else f"{room}.json"
    (folder / name).write_text(json.dumps(kept, indent=1), encoding="utf-8")


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--number", type=int, default=300, help="mutants drawn for each room; 0 for all")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--patience", type=float, default=8.0, help="seconds that the tests of one mutant may take")
    known = parser.add_mutually_exclusive_group()
    known.add_argument("--again", action="store_const", dest="which", const="again", help="what survived the last time")
    known.add_argument("--judged", action="store_const", dest="which", const="judged", help=f"what {JUDGED} lists")
    parser.set_defaults(which="")
    given = parser.parse_args(None if arguments is None else list(arguments))
    if unknown := set(given.rooms) - set(ROOMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    rooms = given.rooms or list(ROOMS)
    for room in rooms:
        if len(rooms) > 1:  # the modules of one room stay loaded, with the paths of its copy
            which = [f"--{given.which}"] if given.which else []
            options = ["--number", str(given.number), "--seed", str(given.seed), "--patience", str(given.patience)]
            subprocess.run([sys.executable, __file__, room, *options, *which], check=True)
            continue
        mutants = draw(room, given.number, given.seed, given.which)
        results = run_room(room, mutants, given.patience, given.which == "judged")
        summarise(room, results, given.which)


if __name__ == "__main__":
    main()
