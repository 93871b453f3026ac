"""What breaks the code in small ways, and the list of those breaks that make no difference."""

from __future__ import annotations

import ast
import json
from collections import Counter

import pytest
from tools import mutants


def test_every_judgement_is_about_code_that_is_there() -> None:
    judged = mutants.read_judged()
    there = {each.key for path in {path for path, *_ in judged} for each in mutants.find_mutants(path)}
    assert [key for key in judged if key not in there] == [], "take these out of tools/equivalent_mutants.json"


def test_every_judgement_is_of_a_room_and_stands_there_once_with_its_reason() -> None:
    groups = json.loads((mutants.REPOSITORY / mutants.JUDGED).read_text(encoding="utf-8"))
    sources = {path for room in mutants.ROOMS for path in mutants.list_sources(room)}
    assert {group["path"] for group in groups} <= sources
    assert [group["path"] for group in groups if not (group["why"].endswith(".") and group["mutants"])] == []
    keys = Counter(
        (group["path"], each["text"], each["change"], each.get("which", 0))
        for group in groups
        for each in group["mutants"]
    )
    assert [key for key, number in keys.items() if number > 1] == []


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("a < b", ["a <= b", "a >= b"]),
        ("a + b", ["a - b"]),
        ("f(a, b)", ["f(b, a)"]),
        ("max(a, b)", ["min(a, b)"]),
        ("suppress(a, b)", []),
        ("'a' + b", []),
        ("a if f(b) else c", ["a if not f(b) else c"]),
        ("True", ["False"]),
        ("2", ["3", "1"]),
        ("0", ["1"]),
    ],
)
def test_changes_of_an_expression(source: str, changes: list[str]) -> None:
    found = mutants.find_changes(ast.parse(source, mode="eval").body)
    assert [ast.unparse(each) for each in found if each is not None] == changes
