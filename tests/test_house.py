"""The rules of the house, held by reading the source: who may know whom, and what has no place.

Each rule is a function from a source tree to what breaks it. Beside the real tree, each is shown a small tree with one
violation, so that a rule that sees nothing is seen.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import cellrisk as cr
from cellrisk.system.results import Result
from tests.conftest import APART, EVERY, FULL, LONG, SHOWN, THINNED, WITH

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "src"

ENGINES = {"ibis", "duckdb", "pandas", "pyarrow", "polars", "pyspark", "sqlalchemy"}
NUMERICS = {"numpy", "scipy"}
FILES = {
    *("csv", "fileinput", "glob", "gzip", "http", "importlib", "io", "json", "os", "pathlib", "pickle", "shelve"),
    *("shutil", "socket", "sqlite3", "subprocess", "tempfile", "tomli", "tomllib", "urllib", "zipfile"),
}
ROOMS = (
    *("errors", "system", "counts", "noise", "risk", "decide", "publish", "repeat", "show", "web", "cli"),
    *("__init__", "__main__"),
)
"""From the floor up: a room may know those named before it, and itself."""
PUBLIC = {
    "assess",
    "assess_perturbation",
    "audit",
    "average",
    "ceiling",
    "choose",
    "choose_privately",
    "compose",
    "curve",
    "explain",
    "mechanism",
    "publish_risk",
    "release",
    "release_together",
    "report",
    "simulate",
    "simulate_perturbation",
    "split_budget",
    "tabulate",
    "utility",
}

# Where nothing is computed, where formulas are, where their answers are, and the functions that give a whole answer.
SHOWING = ("show", "web", "cli")
FORMULAS = ("noise.distributions", "noise.channel", "risk.attacks", "risk.measures", "risk.people", "risk.totals")
STEPS = {"attempt", "average", "cdf", "pmf", "risk", "sample", "p_positive", "p_zero"}
"""The methods that formulas are made of; each is defined among them."""
ANSWERS = (
    *("decide", "publish", "repeat.accounting", "repeat.averaging", "repeat.sequences", "repeat.together", "risk"),
)
QUESTIONS = {
    *PUBLIC,
    *("assess_sequence", "choose_within", "compose_ceiling", "count_people", "find_exposure", "find_trade_off"),
    "find_setting_figures",
    *("assess_together", "plan_loss", "read_set_file", "read_set_text", "read_tables"),
    *("find_breaches", "find_policy_breaches", "list_certainties", "find_figure", "say_people"),
    *("find_cost", "find_together", "try_ceiling"),  # of the tables that are asked for: no record has a part in them
    *("largest_epsilon", "limits_use_data", "say_broken", "simulate_constrained", "weigh"),
    *(
        "check_output",
        "check_record_place",
        "describe_limits",
        "find_largest_without_data",
        "is_of_sets",
        "name_limit",
        "read_limits",
        "say_again",
        "say_largest",
        "say_tables",
        "find_count_column",
        "read_settings",
        "usual_delta",
    ),
    *("find_policy_files", "read_settings_file", "read_policy_file", "sidecar_of", "check_folder"),  # files, not risks
}

# What each part of the core may know of the rest; everything else may know the core.
FLOOR = {"errors", "system.arrays", "system.choices"}
KNOWS: dict[str, set[str]] = {
    "errors": set(),
    "counts.profiles": FLOOR,
    "counts.cells": FLOOR | {"counts.profiles"},
    "noise.distributions": FLOOR,
    "noise.channel": FLOOR | {"noise.distributions"},
    "noise.mechanisms": FLOOR
    | {
        "counts.unit",
        "noise.channel",
        "noise.distributions",
        "noise.opendp_noise",
        "noise.perturbations",
        "system.checks",
        "system.formatting",
    },
    "risk.measures": FLOOR | {"counts.profiles", "noise.channel"},
    "risk.attacks": FLOOR | {"counts.profiles", "noise.channel", "risk.measures"},
}


@dataclass(frozen=True)
class Module:
    """One file of the package, and what it imports: anywhere, also inside functions and under TYPE_CHECKING."""

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"), filename=str(self.path))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Everything in its tree."""
        return tuple(ast.walk(self.tree))

    @property
    def inside(self) -> str:
        """The name below the package: ``risk.measures`` for cellrisk.risk.measures, empty for the package itself."""
        return self.name.partition(".")[2]

    @property
    def room(self) -> str:
        """The first name below the package: ``risk`` for cellrisk.risk.measures."""
        return self.inside.partition(".")[0] or "__init__"

    def is_part_of(self, *places: str) -> bool:
        """Whether it is one of these places, or inside one."""
        return any(is_inside(self.inside, place) for place in places)

    @cached_property
    def imports(self) -> frozenset[str]:
        """Full dotted names: ``from cellrisk.errors import InvalidInput`` is cellrisk.errors.InvalidInput."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                start = self._package(node.level) if node.level else ""
                base = ".".join(part for part in (start, node.module) if part)
                found.update(f"{base}.{alias.name}" for alias in node.names)
        return frozenset(found)

    def _package(self, level: int) -> str:
        parts = self.name.split(".")
        dropped = level - 1 if self.path.name == "__init__.py" else level
        return ".".join(parts[: len(parts) - dropped])

    @property
    def libraries(self) -> set[str]:
        """The top names of everything imported from elsewhere than cellrisk."""
        return {name.partition(".")[0] for name in self.imports} - {"cellrisk"}


@cache
def modules(source: Path) -> tuple[Module, ...]:
    found = []
    for path in sorted((source / "cellrisk").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found.append(Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return tuple(found)


def is_inside(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def imported_from_cellrisk(module: Module) -> Iterator[str]:
    """Each import from the package, by its name below it: cellrisk.errors.InvalidInput is errors.InvalidInput."""
    for name in sorted(module.imports):
        package, _, rest = name.partition(".")
        if package == "cellrisk":
            yield rest


def part_of(source: Path, *places: str) -> Iterator[Module]:
    return (module for module in modules(source) if module.is_part_of(*places))


def every_room_has_its_place(source: Path) -> Iterator[str]:
    for room in sorted({module.room for module in modules(source)} - set(ROOMS)):
        yield f"cellrisk.{room} is no room"


def imports_go_one_way(source: Path) -> Iterator[str]:
    """Eager, late and for types alike. A bare name, as in ``from cellrisk import tabulate``, is the package's own; the
    web app and the command line may use the public interface, ``import cellrisk as cr``."""
    for module in modules(source):
        for name in imported_from_cellrisk(module):
            if not name and module.room in ("web", "cli"):
                continue
            room = name.partition(".")[0]
            room = room if room in ROOMS else "__init__"
            if module.room in ROOMS and ROOMS.index(room) > ROOMS.index(module.room):
                yield f"{module.name} imports cellrisk.{name}"


def no_two_files_import_each_other(source: Path) -> Iterator[str]:
    """Not one the other, and not round three corners."""
    known = {module.name: module for module in modules(source)}
    edges: dict[str, set[str]] = {}
    for name, module in known.items():
        targets = set()
        for imported in module.imports:
            while imported and imported not in known:
                imported = imported.rpartition(".")[0]
            targets.add(imported)
        edges[name] = targets - {name, ""}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        yield " -> ".join(error.args[1])


def the_core_knows_only_what_it_needs(source: Path) -> Iterator[str]:
    """An unlisted name is refused too: through ``from cellrisk import tabulate`` a measure could reach every room."""
    for place, known in KNOWS.items():
        for module in part_of(source, place):
            for name in imported_from_cellrisk(module):
                if not any(is_inside(name, each) for each in {*known, place}):
                    yield f"{module.name} imports cellrisk.{name}; {place} may know {sorted(known)}"


def the_core_computes_with_numpy_and_scipy_alone(source: Path) -> Iterator[str]:
    for module in part_of(source, *KNOWS):
        foreign = module.libraries - set(sys.stdlib_module_names) - NUMERICS
        yield from (f"{module.name} imports {library}" for library in sorted(foreign))


def the_core_reads_and_writes_no_file(source: Path) -> Iterator[str]:
    for module in part_of(source, *KNOWS):
        yield from (f"{module.name} imports {library}" for library in sorted(module.libraries & FILES))
        yield from (f"{module.name}:{line} calls open" for line in calls(module, "open"))


def only_counts_know_an_engine(source: Path) -> Iterator[str]:
    for module in modules(source):
        if module.room != "counts":
            known = module.libraries & {"ibis", "duckdb", "pyarrow"}
            yield from (f"{module.name} imports {library}" for library in sorted(known))


def only_the_ledger_and_counts_know_sqlalchemy(source: Path) -> Iterator[str]:
    for module in modules(source):
        if not module.is_part_of("counts", "repeat.ledger") and "sqlalchemy" in module.libraries:
            yield f"{module.name} imports sqlalchemy"


def only_the_command_line_knows_typer(source: Path) -> Iterator[str]:
    for module in modules(source):
        if module.room != "cli":
            yield from (f"{module.name} imports {library}" for library in sorted(module.libraries & {"typer", "click"}))


def only_the_command_line_prints(source: Path) -> Iterator[str]:
    for module in modules(source):
        if module.room != "cli":
            yield from (f"{module.name}:{line} prints" for line in calls(module, "print"))


def what_is_shown_is_asked_for_and_not_computed(source: Path) -> Iterator[str]:
    """Pages, reports and commands ask whole questions and hold no formula; pictures show what they are handed."""
    for module in part_of(source, *SHOWING):
        yield from (f"{module.name} imports {library}" for library in sorted(module.libraries & {"scipy"}))
        asked = set() if module.is_part_of("show.pictures") else QUESTIONS
        for imported in imported_from_cellrisk(module):
            name = imported.rpartition(".")[2]
            formula = any(is_inside(imported, place) for place in FORMULAS)
            answer = any(is_inside(imported, place) for place in ANSWERS) or imported in {*PUBLIC, ""}
            computes = name.islower() or formula or not name  # functions, what formulas are made of, cellrisk itself
            computes = computes and not name.startswith("say_")  # puts a number into words
            public = not imported and module.room in ("web", "cli")  # they ask through the public interface
            if (formula or answer) and computes and not name.isupper() and name not in asked and not public:
                yield f"{module.name} imports cellrisk.{imported}"
        for node in module.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STEPS:
                yield f"{module.name}:{node.lineno} calls .{node.func.attr}()"


def no_module_hides_a_function(source: Path) -> Iterator[str]:
    """A module that is named like something public would take its place as soon as it is imported."""
    for module in modules(source):
        if module.name.count(".") == 1 and module.room in PUBLIC:
            yield f"{module.name} is named like cellrisk's own {module.room}"


def nothing_is_validated_by_assert(source: Path) -> Iterator[str]:
    for module in modules(source):
        lines = (node.lineno for node in module.nodes if isinstance(node, ast.Assert))
        yield from (f"{module.name}:{line} asserts" for line in lines)


def no_module_is_a_drawer(source: Path) -> Iterator[str]:
    for module in modules(source):
        last = module.name.rpartition(".")[2].strip("_")
        if last in {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"}:
            yield f"{module.name} says nothing of what is in it"


def names_say_what_things_are(source: Path) -> Iterator[str]:
    for module in modules(source):
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Base"):
                yield f"{module.name}:{node.lineno} class {node.name}"
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("get_"):
                yield f"{module.name}:{node.lineno} def {node.name}"


def noise_is_not_told_apart_by_its_class(source: Path) -> Iterator[str]:
    """Outside noise/, what differs between noises is a method of theirs."""
    for module in modules(source):
        for node in module.nodes:
            tells = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
            if module.room != "noise" and tells and "Noise" in ast.unparse(node):
                yield f"{module.name}:{node.lineno} {ast.unparse(node)}"


def calls(module: Module, function: str) -> Iterator[int]:
    """The lines on which a function is called by that bare name."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            yield node.lineno


Rule = Callable[[Path], Iterator[str]]

VIOLATIONS: list[tuple[Rule, str, str]] = [
    (every_room_has_its_place, "tables.py", ""),
    (imports_go_one_way, "counts/tabulation.py", "from cellrisk.noise.mechanisms import Laplace"),
    (imports_go_one_way, "risk/assessment.py", "def f():\n    from cellrisk.show.pictures import draw_curve"),
    (imports_go_one_way, "repeat/sequences.py", "if TYPE_CHECKING:\n    from cellrisk.show import reporting"),
    (imports_go_one_way, "decide/choosing.py", "from cellrisk import tabulate"),
    (imports_go_one_way, "decide/choosing.py", "import cellrisk"),
    (imports_go_one_way, "system/formatting.py", "from ..counts.profiles import Profiles"),
    (imports_go_one_way, "web/routes.py", "from cellrisk.cli import main"),
    (
        no_two_files_import_each_other,
        "counts/profiles.py",
        "def f():\n    from cellrisk.counts.tabulation import tabulate",
    ),
    (no_two_files_import_each_other, "risk/measures/local.py", "from cellrisk.risk.measures import Local"),
    (the_core_knows_only_what_it_needs, "errors.py", "from cellrisk.system.formatting import aligned"),
    (the_core_knows_only_what_it_needs, "noise/distributions.py", "from cellrisk.noise.mechanisms import Laplace"),
    (the_core_knows_only_what_it_needs, "noise/distributions.py", "from cellrisk import tabulate"),
    (the_core_knows_only_what_it_needs, "noise/distributions.py", "from cellrisk.counts.profiles import Profiles"),
    (the_core_knows_only_what_it_needs, "noise/distributions.py", "def f():\n    import cellrisk.risk.measures.local"),
    (the_core_knows_only_what_it_needs, "noise/mechanisms.py", "from cellrisk.counts.tabulation import tabulate"),
    (the_core_knows_only_what_it_needs, "noise/mechanisms.py", "from ..risk.measures.local import Local"),
    (the_core_knows_only_what_it_needs, "counts/profiles.py", "from cellrisk.counts.schema import Schema"),
    (the_core_knows_only_what_it_needs, "risk/measures/local.py", "from ...counts.schema import Schema"),
    (the_core_knows_only_what_it_needs, "risk/measures/__init__.py", "from cellrisk.cli import main"),
    (the_core_knows_only_what_it_needs, "risk/measures/local.py", "import cellrisk as cr"),
    (the_core_knows_only_what_it_needs, "risk/measures/local.py", "from ... import tabulate"),
    (the_core_computes_with_numpy_and_scipy_alone, "risk/measures/local.py", "def f():\n    import polars as pl"),
    (the_core_computes_with_numpy_and_scipy_alone, "counts/profiles.py", "import pandas"),
    (the_core_reads_and_writes_no_file, "risk/measures/local.py", "from pathlib import Path"),
    (the_core_reads_and_writes_no_file, "noise/distributions.py", "text = open('counts.csv')"),
    (only_counts_know_an_engine, "risk/assessment.py", "def f():\n    import ibis.expr.types as ir"),
    (only_counts_know_an_engine, "__init__.py", "from pyarrow import Table"),
    (only_the_ledger_and_counts_know_sqlalchemy, "repeat/accounting/loss.py", "def f():\n    import sqlalchemy as sa"),
    (only_the_command_line_knows_typer, "risk/assessment.py", "import typer"),
    (only_the_command_line_prints, "counts/tabulation.py", "print('done')"),
    (
        what_is_shown_is_asked_for_and_not_computed,
        "show/pictures/curves.py",
        "from cellrisk.risk.measures import Local",
    ),
    (what_is_shown_is_asked_for_and_not_computed, "show/pictures/curves.py", "from cellrisk.risk.curves import curve"),
    (
        what_is_shown_is_asked_for_and_not_computed,
        "show/pictures/curves.py",
        "def f():\n    from cellrisk import curve",
    ),
    (what_is_shown_is_asked_for_and_not_computed, "show/pictures/curves.py", "import cellrisk as cr"),
    (
        what_is_shown_is_asked_for_and_not_computed,
        "show/reporting/contents.py",
        "from cellrisk.noise.distributions import LaplaceNoise",
    ),
    (what_is_shown_is_asked_for_and_not_computed, "show/reporting/contents.py", "def f(m, p): return m.average(p)"),
    (
        what_is_shown_is_asked_for_and_not_computed,
        "show/reporting/basis.py",
        "from cellrisk.risk.assessment import find_row",
    ),
    (
        what_is_shown_is_asked_for_and_not_computed,
        "web/answers.py",
        "from cellrisk.risk.measures import FORMS, Local",
    ),
    (what_is_shown_is_asked_for_and_not_computed, "web/work.py", "def f(m): return m.noise.sample(1, 2)"),
    (what_is_shown_is_asked_for_and_not_computed, "cli/commands.py", "from scipy.special import betaln"),
    (no_module_hides_a_function, "curve.py", ""),
    (no_module_hides_a_function, "report/__init__.py", ""),
    (nothing_is_validated_by_assert, "noise/distributions.py", "def f(x):\n    assert x > 0"),
    (no_module_is_a_drawer, "counts/utils.py", ""),
    (no_module_is_a_drawer, "helpers/__init__.py", ""),
    (noise_is_not_told_apart_by_its_class, "risk/totals.py", "wide = isinstance(noise, LaplaceNoise)"),
    (names_say_what_things_are, "noise/distributions.py", "class BaseNoise: ..."),
    (names_say_what_things_are, "noise/distributions.py", "def get_noise(): ..."),
]
RULES = list(dict.fromkeys(rule for rule, _, _ in VIOLATIONS))

ALLOWED = {
    "__init__.py": "from cellrisk.errors import CellriskError",
    "errors.py": "class CellriskError(Exception): ...",
    "system/arrays.py": "import numpy as np",
    "system/formatting.py": "from cellrisk.errors import CellriskError",
    "counts/profiles.py": "from cellrisk.errors import CellriskError\nfrom cellrisk.system.arrays import Floats",
    "counts/tabulation.py": "import ibis, duckdb, pyarrow\nfrom cellrisk.counts.profiles import Profiles",
    "noise/distributions.py": "import scipy.special\nfrom cellrisk.system.arrays import Floats",
    "noise/mechanisms.py": "import math\nfrom cellrisk.noise.distributions import Noise",
    "risk/measures/__init__.py": "from .local import Local",
    "risk/measures/local.py": "from cellrisk.counts.profiles import Profiles\nfrom ...noise import channel",
    "risk/assessment.py": "from cellrisk.risk.measures import Local",
    "repeat/ledger/store.py": "import sqlalchemy as sa\nfrom cellrisk.errors import CellriskError",
    "show/reporting/contents.py": (
        "from cellrisk.risk.measures import FORMS\nfrom cellrisk.risk.assessment import Assessment, assess"
    ),
    "show/pictures/curves.py": "import numpy as np\nfrom cellrisk.risk.curves import RiskCurve",
    "cli.py": "import typer\nfrom cellrisk.counts import tabulation\nprint(open('cellrisk.toml'))",
}


def write(source: Path, name: str, text: str) -> None:
    path = source / "cellrisk" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_there_is_a_house_to_look_at() -> None:
    assert {module.room for module in modules(SOURCE)} == set(ROOMS)


def test_formulas_are_where_the_rules_look_for_them() -> None:
    nodes = [node for module in part_of(SOURCE, *FORMULAS) for node in module.nodes]
    assert {node.name for node in nodes if isinstance(node, ast.FunctionDef)} >= STEPS
    names = {module.inside for module in modules(SOURCE)}
    assert names >= {*SHOWING, *FORMULAS, *ANSWERS, *KNOWS}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds(rule: Rule) -> None:
    assert list(rule(SOURCE)) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_lets_a_tidy_house_be(rule: Rule, tmp_path: Path) -> None:
    for name, text in ALLOWED.items():
        write(tmp_path / "src", name, text)
    assert list(rule(tmp_path / "src")) == []


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    VIOLATIONS,
    ids=[f"{rule.__name__}-{number}" for number, (rule, _, _) in enumerate(VIOLATIONS)],
)
def test_rule_sees_a_violation(rule: Rule, name: str, text: str, tmp_path: Path) -> None:
    for allowed_name, allowed_text in ALLOWED.items():
        write(tmp_path / "src", allowed_name, allowed_text)
    write(tmp_path / "src", name, text)
    assert len(list(rule(tmp_path / "src"))) == 1


@dataclass(frozen=True)
class Function:
    """A function of the tests: whether it can fail by itself, and the names that it mentions."""

    name: str
    line: int
    fails: bool
    mentions: frozenset[str]

    @classmethod
    def of(cls, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        if any(isinstance(node, ast.Assert) for node in ast.walk(function)):  # as almost all do
            return cls(function.name, function.lineno, True, frozenset())
        fails, mentions = False, set()
        for node in ast.walk(function):
            name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None) or ""
            checked = isinstance(node, ast.keyword) and (node.arg, ast.unparse(node.value)) == ("check", "True")
            named = name in {"raises", "warns", "fail", "expect"} or name.startswith("assert_")
            fails = fails or named or checked
            if not isinstance(node, ast.Attribute):
                mentions.add(name)
        return cls(function.name, function.lineno, fails, frozenset(mentions))

    def judges(self, helpers: set[str]) -> bool:
        """Whether it, or one that helps it, can fail by what it finds."""
        return self.fails or not helpers.isdisjoint(self.mentions)


def judging_nothing(tests: Path) -> Iterator[str]:
    """The tests that assert nothing: neither themselves nor through a helper of their file, a conftest or an import."""
    functions: dict[Path, list[Function]] = {}
    taken: dict[Path, set[str]] = {}
    for path in tests.rglob("*.py"):
        top = ast.parse(path.read_text(encoding="utf-8")).body
        nodes = [*top, *(node for each in top if isinstance(each, ast.ClassDef) for node in each.body)]
        functions[path] = [
            Function.of(node) for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        imported = [
            node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests")
        ]
        taken[path] = {alias.name for node in imported for alias in node.names}
    beside = {
        path: [path, *(other for other in functions if other.stem == "conftest" and other.parent in path.parents)]
        for path in functions
    }
    helping: dict[Path, set[str]] = {path: set() for path in functions}

    def known(path: Path) -> set[str]:
        return set().union(*(helping[other] for other in beside[path])) | (taken[path] & set().union(*helping.values()))

    grown = True
    while grown:
        grown = False
        for path, defined in functions.items():
            helpers = known(path)
            more = {each.name for each in defined if not each.name.startswith("test_") and each.judges(helpers)}
            grown = grown or not more <= helping[path]
            helping[path] |= more
    for path, defined in functions.items():
        helpers = known(path)
        silent = (each for each in defined if each.name.startswith("test_") and not each.judges(helpers))
        yield from (f"{path.relative_to(tests)}:{each.line} {each.name}" for each in silent)


def test_every_test_judges() -> None:
    assert list(judging_nothing(REPOSITORY / "tests")) == []


def test_a_test_that_judges_nothing_is_seen(tmp_path: Path) -> None:
    helper = "def check(x):\n    assert x\n"
    (tmp_path / "conftest.py").write_text(helper, encoding="utf-8")
    (tmp_path / "test_a.py").write_text(
        "def test_one():\n    check(1)\ndef test_two():\n    run(2)\ndef run(x):\n    return x\n", encoding="utf-8"
    )
    assert list(judging_nothing(tmp_path)) == ["test_a.py:3 test_two"]


def waiting_for_ever(tests: Path) -> Iterator[str]:
    """Processes that are run to their end without a deadline; one that hangs then ends with its test, much later."""
    for path in sorted(tests.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "subprocess." in text else ()
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            words = {keyword.arg for keyword in call.keywords}
            if ast.unparse(call.func) in RUNNING and not words & {"timeout", None}:
                yield f"{path.relative_to(tests)}:{call.lineno}"


RUNNING = ("subprocess.run", "subprocess.check_output", "subprocess.check_call")


def test_every_process_has_a_deadline() -> None:
    assert list(waiting_for_ever(REPOSITORY / "tests")) == []


def test_a_process_without_a_deadline_is_seen(tmp_path: Path) -> None:
    lines = ["import subprocess", "subprocess.run(['a'], timeout=3)", "subprocess.run(['a'], check=True)"]
    (tmp_path / "test_a.py").write_text("\n".join(lines), encoding="utf-8")
    assert list(waiting_for_ever(tmp_path)) == ["test_a.py:3"]


def comparing_loosely(tests: Path) -> Iterator[str]:
    """Comparisons of numbers that leave it to a library how far from each other they may be, whatever their size."""
    for path in sorted(tests.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "approx(" in text or "close(" in text else ()
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            stated = TOLERANCES.get(ast.unparse(call.func), set())
            if not stated <= {keyword.arg for keyword in call.keywords}:
                yield f"{path.relative_to(tests)}:{call.lineno}"


TOLERANCES = {
    "approx": {"abs"},
    "pytest.approx": {"abs"},
    "np.allclose": {"atol", "rtol"},
    "np.isclose": {"atol", "rtol"},
}
"""What must be said: by default, numbers within 1e-12 of each other are equal to pytest, and within 1e-8 to numpy."""


def test_every_comparison_says_its_tolerance() -> None:
    """`abs=0` where digits are meant, `near(…)` where the same number is computed in two ways."""
    assert list(comparing_loosely(REPOSITORY / "tests")) == []


def test_a_comparison_without_its_tolerance_is_seen(tmp_path: Path) -> None:
    lines = [
        "assert one == pytest.approx(2, rel=1e-9)",
        "assert one == pytest.approx(2, rel=1e-9, abs=0)",
        "assert one == pytest.approx(2)",
        "assert np.allclose(one, 2, rtol=1e-9)",
        "assert np.allclose(one, 2, rtol=1e-9, atol=0)",
    ]
    (tmp_path / "test_a.py").write_text("\n".join(lines), encoding="utf-8")
    assert sorted(comparing_loosely(tmp_path)) == ["test_a.py:1", "test_a.py:3", "test_a.py:4"]


def refusing_for_any_reason(tests: Path) -> Iterator[str]:
    """Where any error of a wide kind will do: neither its words nor the error itself are looked at."""
    for path in sorted(tests.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "pytest.raises" in text else ()
        for item in (each for node in nodes if isinstance(node, ast.With) for each in node.items):
            call = item.context_expr
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "pytest.raises" or item.optional_vars:
                continue
            kinds = {node.id for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Name)}
            if kinds & WIDE_ERRORS and not {keyword.arg for keyword in call.keywords} & {"match", "check"}:
                yield f"{path.relative_to(tests)}:{call.lineno}"


WIDE_ERRORS = {"Exception", "BaseException", "ValueError", "TypeError", "RuntimeError", "OSError"} | {
    "CellriskError",
    "InvalidInput",
    "UnknownName",
}


def test_every_refusal_is_known_by_its_words() -> None:
    assert list(refusing_for_any_reason(REPOSITORY / "tests")) == []


def test_a_refusal_for_any_reason_is_seen(tmp_path: Path) -> None:
    lines = [
        "with pytest.raises(InvalidInput):\n    ask()",
        "with pytest.raises(InvalidInput, match='no table'):\n    ask()",
        "with pytest.raises((KeyError, InvalidInput)) as refused:\n    ask()",
        "with pytest.raises(KeyError):\n    ask()",
        "with open() as file, pytest.raises((KeyError, OSError)):\n    ask()",
    ]
    (tmp_path / "test_a.py").write_text("\n".join(lines), encoding="utf-8")
    assert list(refusing_for_any_reason(tmp_path)) == ["test_a.py:1", "test_a.py:9"]


def test_a_test_that_hangs_fails(tmp_path: Path) -> None:
    """As the settings here say, only sooner: it ends with an error, and what it was doing is told."""
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / "test_a.py").write_text("import time\ndef test_endless():\n    time.sleep(600)\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-o", "faulthandler_timeout=1", "test_a.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "in test_endless" in done.stderr


def test_importing_cellrisk_loads_nothing_heavy() -> None:
    heavy = sorted(ENGINES | NUMERICS | {"typer", "rich", "matplotlib", "sqlglot"})
    script = f"import sys, cellrisk; print(*[name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert loaded.stdout.split() == []


def test_changelog_has_an_entry_for_this_version() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith(f"## [{project['version']}]") for line in changelog)


@pytest.mark.parametrize("name", [*FULL, *THINNED])
def test_what_is_left_out_of_make_test_is_there(name: str) -> None:
    """A name that no test begins with any more would leave nothing out, in silence."""
    file, _, test = name.partition("::")
    *classes, function = test.partition("[")[0].split("::")
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    assert all(f"class {each}:" in text for each in classes)
    assert f"def {function}" in text or f"class {function}:" in text


def test_pages_that_make_test_runs_are_there() -> None:
    assert [name for name in SHOWN if not (REPOSITORY / name.partition("[")[2].rstrip("]")).is_file()] == []


def test_what_starts_first_is_there() -> None:
    files = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "tests").rglob("test_*.py")]
    starts = (*LONG, *APART, *EVERY, *WITH, *WITH.values())
    assert [start for start in starts if not any(file.startswith(start.partition("::")[0]) for file in files)] == []
    for file, _, test in (start.partition("::") for start in starts if "::" in start):
        assert f"def {test}" in (REPOSITORY / file).read_text(encoding="utf-8")


GIVEN = ("Ledger", "Loss", "Mechanism", "Policy", "Priors", "Step")
"""The classes that users make objects of by themselves; the six mechanisms are told of in their base."""


def list_public(names: list[str]) -> Iterator[tuple[str, Callable[..., object]]]:
    """Every public function, and every method of a public class, but for what is told in the base of all results."""
    for name in names:
        found = getattr(cr, name)
        if inspect.isfunction(found) or name in GIVEN:
            yield name, found
        if inspect.isclass(found):
            for inner, member in vars(found).items():
                method = getattr(member, "__func__", member)
                if not inner.startswith("_") and inspect.isfunction(method) and not hasattr(Result, inner):
                    yield f"{name}.{inner}", method


def find_untold(function: Callable[..., object]) -> list[str]:
    """The parameters that no section tells of, of a function that has several."""
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    section = re.search(r"^Parameters\n-{10}\n((?:.+\n?)+)", inspect.getdoc(function) or "", flags=re.MULTILINE)
    lines = re.findall(r"^(\w+(?:, \w+)*)\n    \S", section[1] if section else "", flags=re.MULTILINE)
    told = {name for line in lines for name in line.split(", ")}
    return [name for name in parameters if name not in told] if len(parameters) > 1 else []


def test_every_parameter_is_told() -> None:
    untold = {name: find_untold(function) for name, function in list_public(cr.__all__)}
    assert {name: lost for name, lost in untold.items() if lost} == {}


def test_a_parameter_that_is_not_told_is_seen() -> None:
    def told(one: int, other: int, third: int) -> None:
        """Does nothing.

        Parameters
        ----------
        one, other
            Two.
        """

    assert find_untold(told) == ["third"]
    assert {"assess", "release", "Ledger.add", "FrequencyTable.profiles"} <= {
        name for name, _ in list_public(cr.__all__)
    }
