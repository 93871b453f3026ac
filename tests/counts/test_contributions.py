"""Which records of a person are kept, and how far a person moves the counts."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb

import numpy as np
import pytest

from cellrisk.counts.contributions import Draw, draw_securely, draw_seeded, keep_records
from cellrisk.counts.unit import Unit
from tests.near import near


@pytest.mark.parametrize(("most", "per_group"), [(1, 1), (3, 3), (3, 1), (4, 3), (5, 2)])
def test_the_sensitivities_are_those_of_the_worst_person(most: int, per_group: int) -> None:
    unit = Unit(most, per_group)
    people = [v for v in product(range(per_group + 1), repeat=most) if sum(v) <= most]
    assert unit.l1 == max(sum(v) for v in people)
    assert unit.l2 == near(max(np.linalg.norm(v) for v in people))


def make_entries(generator: np.random.Generator, people: int) -> tuple[np.ndarray, np.ndarray]:
    lengths = generator.integers(1, 6, people)
    return np.repeat(np.arange(people), lengths), generator.integers(1, 5, int(lengths.sum()))


DRAWS: dict[str, Draw] = {
    "secure": draw_securely,
    "seeded": draw_seeded(np.random.default_rng(5).integers(0, 2**63, 500).astype(np.uint64)),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("unit", [Unit(1), Unit(3), Unit(3, 1), Unit(6, 2), Unit(100)])
def test_as_many_as_the_bounds_allow(unit: Unit, draw: str) -> None:
    person, count = make_entries(np.random.default_rng(1), 200)
    kept = keep_records(person, count, unit, DRAWS[draw])
    cut = np.minimum(count, unit.most_in_one)
    assert (kept <= cut).all()
    assert (kept >= 0).all()
    totals = np.bincount(person, cut)
    assert np.bincount(person, kept).tolist() == np.minimum(totals, unit.contributions).tolist()


@pytest.mark.parametrize("seeded", [False, True])
def test_every_choice_of_records_is_as_likely(seeded: bool) -> None:
    """Of 2 + 1 + 1 records two are drawn: each of the six pairs, told apart by their values."""
    people = 20_000
    person, count = np.repeat(np.arange(people), 3), np.tile([2, 1, 1], people)
    draw = draw_seeded(np.arange(people, dtype=np.uint64) * np.uint64(12_345)) if seeded else draw_securely
    kept = keep_records(person, count, Unit(2), draw).reshape(people, 3)
    ways = {(2, 0, 0): 1, (1, 1, 0): 2, (1, 0, 1): 2, (0, 1, 1): 1}
    seen = Counter(map(tuple, kept.tolist()))
    assert set(seen) == set(ways)
    assert (
        sum(
            (seen[kind] - people * number / comb(4, 2)) ** 2 / (people * number / comb(4, 2))
            for kind, number in ways.items()
        )
        < 30
    )  # chi-square with three degrees of freedom: above this once in a million
