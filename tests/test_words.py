"""The lists of words are written down once, and are the words of what is built."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.noise.mechanisms import MECHANISMS
from cellrisk.repeat.accounting.composition import COMPOSERS
from cellrisk.risk.attacks import GUESSES
from cellrisk.risk.measures import MEASURES
from cellrisk.system import words

SOURCE = Path(words.__file__).parents[1]
LISTS = {name: words.list_words(kind) for name, kind in vars(words).items() if words.list_words(kind)}


@pytest.mark.parametrize(
    ("kind", "built"),
    [
        (words.MechanismName, MECHANISMS),
        (words.MeasureName, MEASURES),
        (words.Attack, ("homogeneity", *GUESSES)),
        (words.Operator, ("tightest", *COMPOSERS)),
    ],
)
def test_the_words_are_those_of_what_is_built(kind: Any, built: Any) -> None:
    assert words.list_words(kind) == tuple(built)


def find_second_lists(source: Path) -> list[str]:
    """Literal types outside the one place whose words are those of a list there."""
    found = []
    for path in sorted(source.rglob("*.py")):
        if path.name == "words.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                texts = {part.value for part in parts if isinstance(part, ast.Constant)}
                found += [f"{path.name}: {name}" for name, known in LISTS.items() if texts == set(known)]
    return found


def test_no_list_is_written_down_twice(tmp_path: Path) -> None:
    assert {"MechanismName", "Neighbours", "Form", "MissingRule"} <= set(LISTS)
    assert find_second_lists(SOURCE) == []
    (tmp_path / "again.py").write_text('Rule = Literal["replace", "add-remove"]\n', encoding="utf-8")
    assert find_second_lists(tmp_path) == ["again.py: Neighbours"]


METAPHORS = ("Desk", "Kept", "Standing", "Follower", "Grid", "CellSizes", "Risks", "Question", "Test")
"""Names of classes that said nothing of what they were, or several things."""
SHARED = ("Limit",)
"""A limit on a metric of one release, and a ledger's limit on the total loss."""
OUT_OF_USE = ("questions.py", "models.py", "keys.py", "result.py", "desk.py", "standing.py")
"""Names of files that told nothing of their subject."""


def find_second_meanings(source: Path) -> list[str]:
    """Classes that share a name, and those with a name that is out of use.

    The page is left out: its models have the names of what they show.
    """
    places: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        if "web" not in path.relative_to(source).parts:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(path.name)
    return [
        f"{name}: {', '.join(files)}"
        for name, files in places.items()
        if (len(files) > 1 and name not in SHARED) or name in METAPHORS
    ]


def test_no_class_has_the_name_of_another(tmp_path: Path) -> None:
    assert find_second_meanings(SOURCE) == []
    (tmp_path / "one.py").write_text("class Row: ...\nclass Grid: ...\n", encoding="utf-8")
    (tmp_path / "two.py").write_text("class Row: ...\n", encoding="utf-8")
    assert find_second_meanings(tmp_path) == ["Row: one.py, two.py", "Grid: one.py"]


def test_files_are_named_after_their_subject() -> None:
    assert [path.name for path in SOURCE.rglob("*.py") if path.name in OUT_OF_USE] == []


def test_one_is_singular() -> None:
    """Of a table of one record, nothing says 1 records or 1 cells."""
    table = cr.tabulate(
        pd.DataFrame({"town": ["north"], "job": ["cook"]}), ["town"], "job", levels={"job": ["cook", "smith"]}
    )
    said = [str(table), str(table.summary()), str(cr.assess(table, epsilon=1.0, measures="local"))]
    said.append(str(cr.explain(table, epsilon=1.0)))
    assert table.headline.startswith("1 record in 1 cell of town; sensitive: job (2 levels)")
    several = re.compile(r"(?<![\d.,])1 (?:records|cells|levels|quasi-\w+s)\b")
    assert [found for text in said for found in several.findall(text)] == []
