"""People with several records: every release of small groups written out, and one record each as a special case."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.counts.contributions import Contributions
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.risk.attackers.figures import ATTACKS, AttackTable
from cellrisk.risk.attackers.persons import PersonTable
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from tests.near import near
from tests.risk.attackers.test_figures import CERTAINTY, METHODS, enumerate_success

PRIORS = {2: NegativeBinomial((0.4, 0.15), 0.85), 3: NegativeBinomial((0.5, 0.3, 0.1), 0.8)}
RECORDS = {
    # person, group, category
    2: [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0), (2, 1, 1), (3, 1, 1), (3, 1, 1), (3, 0, 0), (4, 2, 1)],
    3: [(0, 0, 0), (0, 0, 2), (1, 0, 1), (2, 1, 0), (2, 1, 0), (3, 1, 2), (3, 2, 1), (3, 0, 0)],
}


def kinds_of(records: list[tuple[int, int, int]], categories: int) -> Contributions:
    return Contributions.from_records(*np.array(records).T, categories)


def make_people(kinds: Contributions, channel: Any, prior: NegativeBinomial | None) -> PersonTable:
    return PersonTable.of(kinds, channel=channel, prior=prior, certainty=CERTAINTY)


def named_in_some_group(method: Any, records: list[tuple[int, int, int]], person: int, attack: str, k: int) -> float:
    """Return how likely an attack reveals a person whose categories are known, from every release written out."""
    has = {(group, category) for who, group, category in records if who == person}

    def reveal(kept: list[tuple[int, int, int]]) -> float:
        missed = 1.0
        for group in {group for group, _ in has}:
            own = {category for place, category in has if place == group}
            counts = [sum(place == group and category == j for _, place, category in kept) for j in range(k)]
            missed *= 1.0 - success_of(method, tuple(counts), attack, own)
        return 1.0 - missed

    return reveal(records) - reveal([row for row in records if row[0] != person])


def success_of(method: Any, counts: tuple[int, ...], attack: str, own: set[int]) -> float:
    if attack != "homogeneity":
        named = enumerate_success(method, counts, PRIORS[len(counts)], CERTAINTY)[attack]
        return float(sum(named[category] for category in own))
    values = np.arange(60)
    law = method.channel.pmf(np.array(counts)[:, None], values)[..., 0] * np.isin(
        values, method.channel.support(np.arange(400))
    )
    total = 0.0
    for release in product(*(np.flatnonzero(row > 1e-9).tolist() for row in law)):
        shown = {category for category, value in enumerate(release) if value}
        if shown and shown <= own:
            total += float(np.prod([law[category, value] for category, value in enumerate(release)]))
    return total


@pytest.mark.parametrize("categories", RECORDS)
@pytest.mark.parametrize("method", ["geometric", "laplace", "threshold 5/2", "rounding"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_every_release(attack: str, method: str, categories: int) -> None:
    records = RECORDS[categories]
    table = make_people(kinds_of(records, categories), METHODS[method].channel, PRIORS[categories])
    people = sorted({who for who, _, _ in records})
    gains = [named_in_some_group(METHODS[method], records, who, attack, categories) for who in people]
    found = table.figures(attack)
    own = found.own
    assert own == pytest.approx(sum(gains), rel=0, abs=found.own_error + 1e-5)
    assert found.hidden == pytest.approx(sum(gain for gain in gains if gain < 0), rel=0, abs=1e-2)
    if attack != "informed" or categories == 2:
        assert own == pytest.approx(sum(gains), rel=0, abs=1e-5)
        assert found.most == pytest.approx(max(*gains, 0.0), rel=0, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_one_record_each_is_the_table_of_attackers(method: str) -> None:
    counts = [[1, 0, 0], [2, 1, 0], [0, 0, 2], [1, 1, 1], [6, 0, 1]]
    records = [(group, k) for group, cell in enumerate(counts) for k, count in enumerate(cell) for _ in range(count)]
    kinds = kinds_of([(who, *record) for who, record in enumerate(records)], 3)
    channel = METHODS[method].channel
    people = make_people(kinds, channel, PRIORS[3])
    alone = AttackTable(LabelledCounts.from_cells(counts), channel, PRIORS[3], CERTAINTY)
    for name in ATTACKS:
        one, other = people.figures(name), alone.figures(name)
        assert one.baseline == near(other.baseline)
        slack = 2 * (other.error + other.own_error + one.error + one.own_error) + 1e-9
        assert one.revealed == pytest.approx(other.revealed, rel=0, abs=slack)
        assert one.own == pytest.approx(other.own, rel=0, abs=slack)
        assert one.no_noise == near(other.no_noise)
        if name != "informed":
            assert (one.most, one.most_people) == (near(other.most), other.most_people)


def test_without_noise_people_alone_in_their_group_are_revealed_by_their_own_records() -> None:
    """Also a person alone with two different values, whose group shows both."""
    records = [(0, 0, 0), (0, 0, 1), (1, 1, 0), (2, 1, 0), (3, 2, 1), (3, 3, 0), (4, 3, 1)]
    table = make_people(kinds_of(records, 2), cr.Geometric(60.0).channel, None)
    assert table.figures("homogeneity").own == near(2.0)
    assert table.figures("homogeneity").no_noise[1] == near(2.0)


def test_the_guarantee_bounds_every_attack() -> None:
    """One person with M records moves counts by M: noise of epsilon/M for one record, tanh(epsilon/2) at most."""
    generator = np.random.default_rng(3)
    for _ in range(20):
        most, epsilon = int(generator.integers(1, 4)), float(generator.uniform(0.2, 3.0))
        records = [
            (who, int(generator.integers(4)), int(generator.integers(3)))
            for who in range(12)
            for _ in range(int(generator.integers(1, most + 1)))
        ]
        table = make_people(kinds_of(records, 3), cr.Geometric(epsilon / most).channel, PRIORS[3])
        assert table.largest_gain() <= np.tanh(epsilon / 2) + 1e-9
        assert all(table.figures(name).hidden <= 0.0 for name in ATTACKS)
