"""The paper's rules for a sequence of releases, person by person, from the records; nothing here is the package's.

What was given away is kept with each person, not with a cell: their risk of an attribute is that of the cell they are
in, found by listing which labels survive, and they keep the largest they have had. Noise is Laplace's, and losses add.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

People = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Told:
    """One release: its epsilon, its attribute or None, and its quasi-identifiers."""

    epsilon: float
    attribute: str | None
    quasi_identifiers: tuple[str, ...]


def vanish(count: int, epsilon: float) -> float:
    x = (0.5 - count) * epsilon
    return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2


def cell_risk(counts: Mapping[Any, int], levels: Sequence[Any], epsilon: float, form: str) -> float:
    """The chance that one label alone survives and is there; tight: times its share of the records."""
    size, risk = sum(counts.values()), 0.0
    for survives in itertools.product((False, True), repeat=len(levels)):
        if sum(survives) != 1:
            continue
        shown = counts.get(levels[survives.index(True)], 0)
        if not shown:
            continue
        chance = 1.0
        for level, alive in zip(levels, survives, strict=True):
            gone = vanish(counts.get(level, 0), epsilon)
            chance *= 1 - gone if alive else gone
        risk += chance * (shown / size if form == "tight" else 1.0)
    return risk


def cell_caused(counts: Mapping[Any, int], levels: Sequence[Any], epsilon: float, form: str) -> float:
    """The share of the people in a cell whose value is revealed, less what it were, had each been left out alone."""
    size, caused = sum(counts.values()), 0.0
    for level, count in counts.items():
        others = math.prod(vanish(counts.get(other, 0), epsilon) for other in levels if other != level)
        with_everybody, one_less = 1 - vanish(count, epsilon), 1 - vanish(count - 1, epsilon)
        caused += count / size * (with_everybody - one_less) * others
    return caused


def follow(
    people: People, told: Sequence[Told], form: str = "tight", risk_of: Callable[..., float] = cell_risk
) -> list[dict[str, float | None]]:
    """After each release: the attribute's own risk and the overall one, each way."""
    levels = {name: sorted({person[name] for person in people}) for name in people[0]}
    held: list[dict[str, float]] = [{} for _ in people]
    used: set[str] = set()
    epsilon, rows = 0.0, []
    for each in told:
        epsilon += each.epsilon
        split = not set(each.quasi_identifiers) <= used
        used |= set(each.quasi_identifiers)
        cells: dict[tuple[Any, ...], list[int]] = {}
        for number, person in enumerate(people):
            cells.setdefault(tuple(person[name] for name in sorted(used)), []).append(number)
        now: dict[str, list[float]] = {}
        assessed = set(held[0]) if split else set()
        for name in assessed | ({each.attribute} if each.attribute else set()):
            now[name] = [math.nan] * len(people)
            for members in cells.values():
                counts = Counter(people[number][name] for number in members)
                for number in members:
                    now[name][number] = risk_of(counts, levels[name], epsilon, form)
                    held[number][name] = max(held[number].get(name, 0.0), now[name][number])
        firsts = [members[0] for members in cells.values()]
        row: dict[str, float | None] = {"epsilon": epsilon, "cells": len(cells), "uniform": None, "records": None}
        if each.attribute:
            own = now[each.attribute]
            row |= {"uniform": _mean([own[number] for number in firsts]), "records": _mean(own)}
        for kind, combine in (("max", max), ("sum", sum)):
            overall = [combine(mine.values()) if mine else 0.0 for mine in held]
            row |= {f"{kind}_uniform": _mean([overall[number] for number in firsts]), f"{kind}_records": _mean(overall)}
        rows.append(row)
    return rows


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)
