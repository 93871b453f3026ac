"""How many people: mean, deviation and interval against enumeration of every outcome, and against simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import InfiniteNoise, NoNoise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.ceilings import total_variation
from cellrisk.risk.people import caused_shares, count_caused, count_people
from tests.examples import examples
from tests.near import near
from tests.risk.attacks import oracle
from tests.risk.certainty import oracle as releases

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


# Because of their own record

TWO = [[1, 0], [2, 0], [0, 3], [1, 1], [4, 2], [7, 1]]
THREE = [[1, 0, 0], [0, 2, 0], [1, 1, 1], [3, 0, 2], [2, 6, 1]]
KINDS = {
    "laplace": lambda **other: cr.Laplace(1.0, **other),
    "laplace wide": lambda **other: cr.Laplace(0.3, **other),
    "geometric": lambda **other: cr.Geometric(0.8, **other),
    "gaussian": lambda **other: cr.AnalyticGaussian(1.0, delta=0.01, **other),
    "discrete gaussian": lambda **other: cr.DiscreteGaussian(1.0, delta=0.01, **other),
}


def expose(profiles: Profiles, mechanism: Mechanism, attack: str = "homogeneity") -> float:
    return count_people(profiles, mechanism.channel, attack).mean


@pytest.mark.parametrize("threshold", [0.5, 1.5, pytest.param(5.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", KINDS)
def test_is_what_every_noise_gives(kind: str, neighbours: str, threshold: float) -> None:
    mechanism = KINDS[kind](neighbours=neighbours, threshold=threshold)
    for cells in (TWO, THREE) if kind != "laplace wide" else (TWO,):
        profiles = Profiles.from_cells(cells, n_levels=len(cells[0]))
        found = count_caused(profiles, mechanism, expose(profiles, mechanism))
        total = releases.total_law(cells, mechanism.noise, threshold)
        mean = sum(number * chance for number, chance in total.items())
        variance = sum((number - mean) ** 2 * chance for number, chance in total.items())
        assert found.people == near(mean)
        assert found.deviation == near(math.sqrt(variance))
        assert found.low is not None
        assert found.high is not None
        assert sum(chance for number, chance in total.items() if number < found.low) <= 0.025
        assert sum(chance for number, chance in total.items() if number > found.high) <= 0.025
        # No narrower interval would do.
        assert sum(chance for number, chance in total.items() if number <= found.low) > 0.02499
        assert sum(chance for number, chance in total.items() if number >= found.high) > 0.02499
        shares = caused_shares(profiles, AdditiveChannel((mechanism.noise,), threshold))
        assert shares[0] * profiles.n_records == near(mean)


@pytest.mark.parametrize("threshold", [0.5, *(pytest.param(each, marks=pytest.mark.slow) for each in (1.5, 5.5))])
@pytest.mark.parametrize("attack", ["plurality", "proportional"])
@pytest.mark.parametrize("kind", ["laplace", "geometric", "gaussian", "discrete gaussian"])
def test_attacks_that_guess(kind: str, attack: str, threshold: float) -> None:
    mechanism = KINDS[kind](threshold=threshold)
    for cells in (TWO, [[1, 0, 0], [1, 1, 1], [2, 3, 1], [2, 2, 0]]):
        profiles = Profiles.from_cells(cells, n_levels=len(cells[0]))
        found = count_caused(profiles, mechanism, expose(profiles, mechanism, attack), attack)
        expected = sum(releases.caused_by_guess(counts, mechanism.noise, threshold, attack) for counts in cells)
        assert found.people == pytest.approx(expected, rel=1e-8, abs=0)
        assert found.deviation is None
        assert found.people <= found.bound * (1 + 1e-12)
        assert found.people <= found.cap * (1 + 1e-12)


def test_records_left_out_one_by_one() -> None:
    """A random table is released 4,000 times; each time every record is left out in turn under the same noise."""
    generator = np.random.default_rng(7)
    cells = generator.negative_binomial(0.4, 0.15, (60, 4))
    cells = cells[cells.any(axis=1)]
    mechanism = cr.Laplace(0.7, threshold=1.5)
    totals = []
    for _ in range(4000):
        noisy = cells + np.rint(generator.laplace(0.0, 1 / 0.7, cells.shape)).astype(int)
        shown = noisy >= 2
        lone = shown & (shown.sum(axis=1, keepdims=True) == 1)
        without = noisy - 1 >= 2
        totals.append(int(cells[lone & ~without].sum()))
    profiles = Profiles.from_cells(cells, n_levels=4)
    found = count_caused(profiles, mechanism, expose(profiles, mechanism))
    assert found.deviation is not None
    z = (np.mean(totals) - found.people) / (found.deviation / math.sqrt(len(totals)))
    assert abs(z) < 5
    assert np.std(totals) == pytest.approx(found.deviation, rel=0.06, abs=0)  # 1/sqrt(8000) is one standard error: five


@settings(max_examples=examples(60))
@given(
    cells=st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3).filter(any), min_size=1, max_size=8),
    epsilon=st.floats(0.02, 20),
    kind=st.sampled_from(["laplace", "geometric", "gaussian-analytic", "discrete-gaussian", "gaussian-pdp"]),
    neighbours=st.sampled_from(["add-remove", "replace"]),
    threshold=st.sampled_from([0.5, 1.5, 2.5, 10.5]),
    attack=st.sampled_from(["homogeneity", "homogeneity", "plurality"]),
)
def test_never_above_what_the_guarantee_promises(
    cells: list[list[int]], epsilon: float, kind: str, neighbours: str, threshold: float, attack: str
) -> None:
    delta = None if kind in ("laplace", "geometric") else 1e-4
    mechanism = cr.mechanism(kind, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    profiles = Profiles.from_cells(cells, n_levels=3)
    exposed = expose(profiles, mechanism, attack)
    found = count_caused(profiles, mechanism, exposed, attack)
    promised = -math.expm1(-epsilon) * exposed + math.exp(-epsilon) * mechanism.delta * profiles.n_records
    slack = 1e-9 * (1 + profiles.n_records)
    assert found.bound == near(min(promised, exposed))
    assert 0 <= found.people <= found.bound + slack
    assert found.people <= found.cap + slack
    assert found.cap == near(total_variation(mechanism) * profiles.n_records)
    lone = float(np.exp(0) * releases.law(mechanism.noise)[1].max())
    share = found.cap / profiles.n_records
    if neighbours == "add-remove":
        assert share == pytest.approx(lone, rel=1e-8, abs=0)
    else:  # two counts move: more than one of them, less than two that are apart
        assert lone * (1 - 1e-8) <= share <= (1 - (1 - lone) ** 2) * (1 + 1e-8)


@pytest.mark.parametrize("threshold", [0.5, 1.5, 5.5])
@pytest.mark.parametrize("kind", ["laplace", "geometric"])
def test_limits_at_both_ends(kind: str, threshold: float) -> None:
    cells = [[1, 0, 0], [2, 0, 0], [2, 1, 0], [6, 5, 3], [0, 6, 0], [6, 6, 0], [1, 1, 0], [0, 0, 9]]
    profiles = Profiles.from_cells(cells, n_levels=3)
    smallest = int(threshold + 0.5)
    pivotal = sum(
        smallest
        for counts in cells
        for k, count in enumerate(counts)
        if count == smallest and all(other < smallest for j, other in enumerate(counts) if j != k)
    )
    loud, silent = (cr.mechanism(kind, epsilon=epsilon, threshold=threshold) for epsilon in (1e-7, 600.0))
    assert count_caused(profiles, loud, expose(profiles, loud)).people < 1e-5
    assert count_caused(profiles, silent, expose(profiles, silent)).people == near(pivotal)
    ends = caused_shares(
        profiles, AdditiveChannel((InfiniteNoise(), silent.noise, InfiniteNoise(), NoNoise()), threshold)
    )
    assert ends.tolist() == near([0, pivotal / profiles.n_records, 0, pivotal / profiles.n_records])


def test_two_alike_are_not_monotone() -> None:
    profiles = Profiles.from_cells([[2, 0]], n_levels=2)
    for epsilon in (0.1, math.log(3), 4.0):
        a = math.exp(-epsilon)
        mechanism = cr.Geometric(epsilon)
        found = count_caused(profiles, mechanism, expose(profiles, mechanism))
        assert found.people == near(2 * a * (1 - a) / (1 + a) ** 2)
    assert count_caused(profiles, cr.Geometric(math.log(3)), 1.0).people == near(0.25)


def test_a_unique_person_meets_the_bound() -> None:
    profiles = Profiles.from_cells([[1, 0, 0, 0]], n_levels=4)
    mechanism = cr.Geometric(0.7)
    found = count_caused(profiles, mechanism, expose(profiles, mechanism))
    assert found.people == near(found.bound)


def test_large_cells_and_many_labels() -> None:
    profiles = Profiles.from_cells([[1_000_000, 1, 0], [0, 1_000_000, 0], [1, 0, 0]], n_levels=3)
    for epsilon in (1e-5, 1.0):
        mechanism = cr.Laplace(epsilon)
        found = count_caused(profiles, mechanism, expose(profiles, mechanism))
        assert math.isfinite(found.people)
        assert 0 < found.people <= found.bound
    wide = Profiles.from_cells([[3, 1, *[0] * 998], [1] * 1000], n_levels=1000)
    found = count_caused(wide, cr.Geometric(6.0), expose(wide, cr.Geometric(6.0)))
    q = [float(cr.Geometric(6.0).noise.p_zero(count)) for count in range(4)]
    first = [math.tanh(3.0) * math.exp(-6.0 * abs(count - 1)) for count in range(4)]
    expected = (3 * first[3] * q[1] + first[1] * q[3]) * q[0] ** 998 + 1000 * first[1] * q[1] ** 999
    assert found.people == near(expected)


class TestAdult:
    """decision.md's figures, to the digits printed there."""

    @pytest.mark.parametrize(
        ("epsilon", "expected"),
        [
            (0.001, 6.55397),
            (0.01, 48.5775),
            (0.1, 226.758),
            (1, 997.481),
            (2, 1571.98),
            (3, 1964.77),
            (5, 2383.37),
            (10, 2622.12),
            (100, 2644),
        ],
    )
    def test_laplace(self, adult: cr.FrequencyTable, epsilon: float, expected: float) -> None:
        found = caused_shares(adult.profiles(), cr.Laplace(epsilon).channel)[0] * adult.n_records
        assert found == pytest.approx(expected, rel=6e-6, abs=0)

    @pytest.mark.parametrize(("epsilon", "expected"), [(0.1, 228.631), (1, 1148.04), (3, 2343.62)])
    def test_geometric(self, adult: cr.FrequencyTable, epsilon: float, expected: float) -> None:
        found = caused_shares(adult.profiles(), cr.Geometric(epsilon).channel)[0] * adult.n_records
        assert found == pytest.approx(expected, rel=6e-6, abs=0)

    @pytest.mark.parametrize(("threshold", "expected"), [(1.5, 1214.52), (5.5, 678.898), (10.5, 366.132)])
    def test_thresholds(self, adult: cr.FrequencyTable, threshold: float, expected: float) -> None:
        found = (
            caused_shares(adult.profiles(), AdditiveChannel((cr.Laplace(1.0).noise,), threshold))[0] * adult.n_records
        )
        assert found == pytest.approx(expected, rel=6e-6, abs=0)

    def test_spread_replace_and_plurality(self, adult: cr.FrequencyTable) -> None:
        profiles, laplace = adult.profiles(), cr.Laplace(1.0)
        found = count_caused(profiles, laplace, expose(profiles, laplace))
        assert (found.deviation, found.exposed) == (pytest.approx(32.4588, abs=6e-5), pytest.approx(8142.95, abs=6e-3))
        assert found.share == near(found.people / 27504)
        replace = cr.Laplace(1.0, neighbours="replace")
        assert count_caused(profiles, replace, 1e9).people == pytest.approx(624.896, abs=6e-4)
        assert count_caused(profiles, laplace, 1e9, "plurality").people == pytest.approx(1764.31, abs=6e-3)
