"""Sets of tables worked out by hand: plain dictionaries, and every pattern of what the noise leaves. Nothing is shared
with the code that is tested."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

Person = dict[str, Any]
Key = Callable[[Person], Any]
"""The cell of a person in a table; None where he is not in it."""


def geometric(epsilon: float, threshold: float = 0.5) -> Callable[[int], float]:
    """P(n + e > threshold), e two-sided geometric: as a sum over its values."""
    a = math.exp(-epsilon)

    def survive(count: int) -> float:
        reach = math.ceil(80 / epsilon)
        return sum((1 - a) / (1 + a) * a ** abs(e) for e in range(-reach, reach) if count + e > threshold)

    return survive


def laplace(epsilon: float, threshold: float = 0.5) -> Callable[[int], float]:
    """P(n + e > threshold), e Laplace of scale 1/epsilon."""

    def survive(count: int) -> float:
        far = (threshold - count) * epsilon
        return 0.5 * math.exp(-far) if far > 0 else 1 - 0.5 * math.exp(far)

    return survive


def count_cells(people: Sequence[Person], keys: Sequence[Key], label: str) -> list[Counter[tuple[Any, Any]]]:
    """The counts of every table by cell and label."""
    return [Counter((key(person), person[label]) for person in people if key(person) is not None) for key in keys]


def name_labels(shown: Sequence[set[str]], labels: Sequence[str], rule: str) -> set[str]:
    """What a rule names, where each of a person's cells shows some labels."""
    alone = [next(iter(each)) for each in shown if len(each) == 1]
    if rule == "elimination":
        left = set(labels)
        for each in shown:
            left &= each
        return left if len(left) == 1 else set()
    if rule == "any":
        return set(alone)
    return set(alone) if len(set(alone)) == 1 else set()


def enumerate_set(
    people: Sequence[Person],
    keys: Sequence[Key],
    label: str,
    labels: Sequence[str],
    survive: Sequence[Callable[[int], float]],
    rule: str,
) -> dict[str, float]:
    """right, named and the standard deviation of the first, from every pattern of counts that survive or vanish."""
    counts = count_cells(people, keys, label)
    cells = [(table, cell) for table, found in enumerate(counts) for cell in sorted({key for key, _ in found}, key=str)]
    places = [(table, cell, each) for table, cell in cells for each in labels]
    chance = [survive[table](counts[table][cell, each]) for table, cell, each in places]
    right = named = square = 0.0
    for pattern in product((False, True), repeat=len(places)):
        weight = math.prod(p if stays else 1 - p for p, stays in zip(chance, pattern, strict=True))
        shown: dict[tuple[int, Any], set[str]] = {(table, cell): set() for table, cell in cells}
        for (table, cell, each), stays in zip(places, pattern, strict=True):
            if stays:
                shown[table, cell].add(each)
        hits = told = 0
        for person in people:
            mine = [shown[table, key(person)] for table, key in enumerate(keys) if key(person) is not None]
            names = name_labels(mine, labels, rule) if mine else set()
            hits += person[label] in names
            told += len(names)
        right, named, square = right + weight * hits, named + weight * told, square + weight * hits * hits
    return {"right": right, "named": named, "sd": math.sqrt(max(square - right * right, 0.0))}


def enumerate_person(
    person: Person,
    counts: Sequence[Counter[tuple[Any, Any]]],
    keys: Sequence[Key],
    label: str,
    labels: Sequence[str],
    survive: Sequence[Callable[[int], float]],
    rule: str,
) -> float:
    """How likely a rule names one person's label, from the patterns of his own cells."""
    tables = [table for table, key in enumerate(keys) if key(person) is not None]
    chance = [survive[table](counts[table][keys[table](person), each]) for table in tables for each in labels]
    total = 0.0
    for pattern in product((False, True), repeat=len(chance)):
        weight = math.prod(p if stays else 1 - p for p, stays in zip(chance, pattern, strict=True))
        shown = [
            {each for each, stays in zip(labels, pattern[start : start + len(labels)], strict=True) if stays}
            for start in range(0, len(pattern), len(labels))
        ]
        total += weight * (bool(shown) and person[label] in name_labels(shown, labels, rule))
    return total


def enumerate_caused(
    people: Sequence[Person],
    keys: Sequence[Key],
    label: str,
    labels: Sequence[str],
    survive: Sequence[Callable[[int], float]],
    rule: str,
) -> float:
    """Each person with his record and without it, the difference added up."""
    counts = count_cells(people, keys, label)
    total = 0.0
    for place, person in enumerate(people):
        others = [*people[:place], *people[place + 1 :]]
        without = count_cells(others, keys, label)
        asked = (keys, label, labels, survive, rule)
        total += enumerate_person(person, counts, *asked) - enumerate_person(person, without, *asked)
    return total
