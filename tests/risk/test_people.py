"""How many people: mean, deviation and interval against enumeration of every outcome, and against simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.risk.people import count_people
from tests.risk.attacks import oracle

MECHANISMS = {
    "laplace": cr.Laplace(epsilon=0.7),
    "laplace, threshold": cr.Laplace(epsilon=1.0, threshold=2.5),
    "geometric": cr.Geometric(epsilon=1.5),
    "gaussian": cr.AnalyticGaussian(epsilon=1.0, delta=0.01),
    "little noise": cr.Laplace(epsilon=12.0),
    "much noise": cr.Laplace(epsilon=0.01),
}
TABLES = {
    "two cells": [[3, 0], [2, 1]],
    "three levels": [[4, 2, 1], [0, 5, 0], [1, 1, 0], [1, 1, 0]],
    "one cell": [[7, 3]],
    "a large cell": [[40, 0], [1, 0], [0, 1], [2, 2]],
    "all alike": [[1, 0]] * 6,
}


def enumerate_people(cells: list[list[int]], mechanism: cr.Mechanism) -> dict[int, float]:
    """The distribution of the number exposed, by all outcomes of every cell: which labels survive."""
    total: Counter[int] = Counter({0: 1.0})
    for counts in cells:
        cell: Counter[int] = Counter()
        survive = [float(mechanism.noise.p_positive(count, mechanism.threshold)) for count in counts]
        for shown in itertools.product([False, True], repeat=len(counts)):
            chance = math.prod(s if there else 1.0 - s for s, there in zip(survive, shown, strict=True))
            alone = [count for count, there in zip(counts, shown, strict=True) if there]
            cell[alone[0] if len(alone) == 1 else 0] += chance
        total = Counter(
            {
                number: sum(total[before] * cell[number - before] for before in total if number - before in cell)
                for number in {first + second for first in total for second in cell}
            }
        )
    return dict(total)


@pytest.mark.parametrize("cells", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_against_enumeration(cells: list[list[int]], mechanism: cr.Mechanism) -> None:
    distribution = enumerate_people(cells, mechanism)
    mean = sum(number * chance for number, chance in distribution.items())
    variance = sum((number - mean) ** 2 * chance for number, chance in distribution.items())
    found = count_people(Profiles.from_cells(cells, n_levels=len(cells[0])), mechanism.channel)
    assert found.mean == pytest.approx(mean, rel=1e-12, abs=1e-14)  # the enumeration loses digits in 1 - s
    assert found.deviation == pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-9)
    assert found.exact
    below = 0.0
    quantiles = {}
    for number in sorted(distribution):
        below += distribution[number]
        for tail in (0.025, 0.975):
            if below >= tail:
                quantiles.setdefault(tail, number)
    assert (found.low, found.high) == (quantiles[0.025], quantiles[0.975])


def test_mean_is_records_times_the_tight_risk(adult: cr.FrequencyTable) -> None:
    for mechanism in MECHANISMS.values():
        found = count_people(adult.profiles(), mechanism.channel)
        risk = cr.assess(adult, mechanism, measures="local", forms="tight").value()
        assert found.mean == pytest.approx(adult.n_records * risk, rel=1e-12, abs=0)


@pytest.mark.slow
def test_simulated_releases_of_adult(adult: cr.FrequencyTable) -> None:
    mechanism, releases = cr.Laplace(epsilon=1.0), 1500
    cells = adult.cells()
    counts = np.zeros((cells.n_cells, 2))
    counts[cells.cell, cells.level] = cells.count
    generator = np.random.default_rng(11)
    exposed = np.empty(releases)
    for release in range(releases):
        shown = counts + mechanism.noise.sample(generator, counts.shape) > 0.5
        exposed[release] = counts[shown.sum(axis=1) == 1][shown[shown.sum(axis=1) == 1]].sum()
    found = count_people(adult.profiles(), mechanism.channel)
    assert abs(exposed.mean() - found.mean) < 4 * found.deviation / math.sqrt(releases)
    assert exposed.std() == pytest.approx(found.deviation, rel=4 / math.sqrt(2 * releases), abs=0)
    inside = np.mean((exposed >= found.low) & (exposed <= found.high))
    assert abs(inside - 0.95) < 4 * math.sqrt(0.95 * 0.05 / releases)


def name_labels(counts: list[int], mechanism: cr.Mechanism, attack: str) -> list[float]:
    """How often an attacker who guesses names each label, by every released vector of the cell."""
    laws = [oracle.released(count, mechanism.noise, mechanism.threshold) for count in counts]
    shown = np.meshgrid(*(values for values, _ in laws), indexing="ij")
    chance = math.prod(np.meshgrid(*(chances for _, chances in laws), indexing="ij"))
    worth = [(values == np.maximum.reduce(shown)) & (values > 0) for values in shown]
    each = worth if attack == "plurality" else shown
    total = np.sum(each, axis=0)
    return [float((chance * np.divide(part, total, out=np.zeros(total.shape), where=total > 0)).sum()) for part in each]


def name_people(cells: list[list[int]], mechanism: cr.Mechanism, attack: str) -> dict[int, float]:
    """The distribution of the number named by an attacker who guesses."""
    total = {0: 1.0}
    for counts in cells:
        named = name_labels(counts, mechanism, attack)
        joined: Counter[int] = Counter()
        for before, chance in total.items():
            for count, part in [*zip(counts, named, strict=True), (0, 1.0 - math.fsum(named))]:
                joined[before + count] += chance * part
        total = dict(joined)
    return total


GUESSED: dict[str, tuple[list[list[int]], cr.Mechanism]] = {
    "one cell": ([[800, 200]], cr.Laplace(epsilon=10.0)),
    "a large cell beside small ones": ([[90, 4], [2, 1], [0, 3], [1, 1]], cr.Geometric(epsilon=1.0)),
    "three labels": ([[4, 2, 1], [0, 5, 0], [3, 3, 0]], cr.Laplace(epsilon=2.0)),
    "suppressed": ([[4, 2], [6, 1], [9, 0]], cr.Laplace(epsilon=1.0, threshold=2.5)),
}


@pytest.mark.parametrize("attack", ["plurality", "proportional"])
@pytest.mark.parametrize(("cells", "mechanism"), GUESSED.values(), ids=GUESSED)
def test_guesses_against_enumeration(cells: list[list[int]], mechanism: cr.Mechanism, attack: str) -> None:
    distribution = name_people(cells, mechanism, attack)
    mean = sum(number * chance for number, chance in distribution.items())
    variance = sum((number - mean) ** 2 * chance for number, chance in distribution.items())
    found = count_people(Profiles.from_cells(cells, n_levels=len(cells[0])), mechanism.channel, attack)
    assert found.mean == pytest.approx(mean, rel=1e-9, abs=0)
    assert found.deviation == pytest.approx(math.sqrt(variance), rel=1e-7, abs=1e-7)
    below = sum(chance for number, chance in distribution.items() if number < found.low)
    above = sum(chance for number, chance in distribution.items() if number > found.high)
    assert max(below, above) <= 0.025
    assert below + distribution[found.low] > 0.025 - 2e-6
    assert above + distribution[found.high] > 0.025 - 2e-6


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="without records"):
        count_people(Profiles(2, ()), cr.Laplace(epsilon=1.0).channel)
