"""The table of attackers, against every release of small groups written out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import cellrisk as cr
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.risk.attackers.figures import ATTACKS, AttackTable
from cellrisk.risk.certainty.count_priors import NegativeBinomial

CERTAINTY = 0.8
KEYS = (
    (np.array([0]), np.ones(1)),
    (np.arange(3), np.array([0.25, 0.5, 0.25])),
    (np.arange(5), np.array([0.05, 0.2, 0.5, 0.2, 0.05])),
)
METHODS: dict[str, Any] = {
    "geometric": cr.Geometric(1.5),
    "geometric, replace": cr.Geometric(2.0, neighbours="replace"),
    "laplace": cr.Laplace(1.5),
    "gaussian": cr.AnalyticGaussian(2.0, delta=0.1),
    "discrete gaussian": cr.DiscreteGaussian(2.0, delta=0.1),
    "threshold 5/2": cr.Geometric(1.5, threshold=2.5),
    "threshold 21/2": cr.Geometric(1.5, threshold=10.5),
    "rounding": cr.read_perturbation("random-rounding:3"),
    "cell key": cr.Perturbation("cell key", KEYS, 1),
}
TABLES = {
    2: ([[1, 0], [0, 1], [2, 0], [3, 1], [0, 4], [12, 1]], NegativeBinomial((0.4, 0.15), 0.85)),
    3: ([[1, 0, 0], [2, 1, 0], [0, 0, 2], [1, 1, 1], [6, 0, 1]], NegativeBinomial((0.5, 0.3, 0.1), 0.8)),
}


@cache
def enumerate_success(
    method: Any, counts: tuple[int, ...], prior: NegativeBinomial, certainty: float
) -> dict[str, np.ndarray]:
    """Return P(the attack names k | counts) for each attack and category, from every release written out."""
    values = np.arange(60)
    possible = np.arange(400)
    released = np.isin(values, method.channel.support(possible))
    law = np.where(released, method.channel.pmf(possible[:, None], values)[..., 0], 0.0)  # (true count, released value)
    means = []
    for shape in prior.shapes:
        log_prior = gammaln(shape + possible) - gammaln(shape) - gammaln(possible + 1) + possible * np.log(prior.theta)
        weights = np.exp(log_prior)[:, None] * law
        with np.errstate(invalid="ignore"):
            means.append((possible @ weights) / weights.sum(axis=0))
    named = {attack: np.zeros(len(counts)) for attack in ATTACKS}
    likely = [np.flatnonzero(law[count] > 1e-9) for count in counts]
    for release in product(*(kept.tolist() for kept in likely)):
        chance = np.prod([law[count, value] for count, value in zip(counts, release, strict=True)])
        shown = [k for k, value in enumerate(release) if value]
        w = np.array([means[k][value] for k, value in enumerate(release)])
        if len(shown) == 1:
            named["homogeneity"][shown[0]] += chance
        if shown:
            winners = np.flatnonzero(np.array(release) == max(release))
            named["plurality"][winners] += chance / len(winners)
        winners = np.flatnonzero(w >= w.max() * (1 - 1e-12))
        named["best-guess"][winners] += chance / len(winners)
        named["informed"][w >= (certainty - 1e-12) * w.sum()] += chance
    return named


@pytest.mark.parametrize("categories", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_every_release(method: str, categories: int) -> None:
    counts, prior = TABLES[categories]
    table = AttackTable(LabelledCounts.from_cells(counts), METHODS[method].channel, prior, CERTAINTY)
    for name in ATTACKS:
        found = table.success(name)
        for row, group in enumerate(table.vectors.counts.tolist()):
            for k in np.flatnonzero(group).tolist():
                less = tuple(count - (j == k) for j, count in enumerate(group))
                has = enumerate_success(METHODS[method], tuple(group), prior, CERTAINTY)[name][k]
                lacks = enumerate_success(METHODS[method], less, prior, CERTAINTY)[name][k]
                for ends, value in ((found.revealed, has), (found.gain, has - lacks)):
                    assert ends[0, row, k] - 1e-6 <= value <= ends[1, row, k] + 1e-6
                    if name != "informed" or categories == 2:
                        assert ends[0, row, k] == pytest.approx(value, rel=0, abs=1e-6)


@pytest.fixture(scope="module")
def adult() -> Any:
    qids = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
    return cr.tabulate(
        cr.datasets.adult_as_published(), qids, "income", bins={"age": 5, "hours-per-week": 10}
    ).attribute("income")


PUBLISHED = NegativeBinomial((0.200884, 0.068516), 0.905560)
INFORMED = [
    (cr.Geometric(0.1), 0.95, (3384.624, 0.0), 89.659, 0.028478, (31, 0)),
    (cr.Geometric(1.0), 0.8, (14412.330, 1598.341), 1575.715, 0.368247, (1, 0)),
    (cr.Geometric(1.0), 0.95, (10805.256, 367.474), 1046.723, 0.341747, (2, 0)),
    (cr.Geometric(3.0), 0.95, (12027.447, 827.061), 2505.625, 0.862221, (1, 0)),
    (cr.Laplace(1.0), 0.95, (10818.334, 318.110), 1017.241, 0.279122, (2, 0)),
    (cr.Laplace(3.0), 0.95, (12026.150, 479.725), 1943.843, 0.690198, (1, 0)),
]


@pytest.mark.parametrize(("mechanism", "certainty", "revealed", "own", "most", "counts"), INFORMED)
def test_the_informed_attacker_on_adult(
    adult: Any,
    mechanism: cr.Mechanism,
    certainty: float,
    revealed: tuple[float, float],
    own: float,
    most: float,
    counts: tuple[int, int],
) -> None:
    table = AttackTable(adult.vectors, mechanism.channel, PUBLISHED, certainty)
    found, gain = table.figures("informed"), table.success("informed").gain.mean(axis=0)
    assert found.by_category["revealed"] == pytest.approx(revealed, rel=0, abs=2e-3)
    assert found.own == pytest.approx(own, rel=0, abs=2e-3)
    assert found.most == pytest.approx(most, rel=0, abs=2e-6)
    assert tuple(adult.vectors.counts[int(gain.max(axis=1).argmax())].tolist()) == counts


def test_every_attack_on_adult(adult: Any) -> None:
    table = AttackTable(adult.vectors, cr.Geometric(1.0).channel, PUBLISHED, 0.95)
    figures = {name: table.figures(name) for name in ATTACKS}
    assert {name: round(row.own) for name, row in figures.items()} == {
        "homogeneity": 1148,
        "plurality": 1904,
        "best-guess": 975,
        "informed": 1047,
    }
    assert figures["homogeneity"].most_people == adult.profiles.n_unique == 2644
    assert figures["informed"].most_people == 996
    assert [table.people_above(gain) for gain in (0.1, 0.2, 0.3)] == [5795, 5006, 2644]
    assert figures["informed"].no_noise == (12894.0, 2663.0)
    assert figures["homogeneity"].no_noise == (11112.0, 2644.0)
    assert [row.baseline for row in figures.values()] == [6876.0, 10314.0, 20509.0, 0.0]


def random_table(generator: np.random.Generator) -> tuple[LabelledCounts, NegativeBinomial]:
    categories = int(generator.integers(2, 5))
    sizes = 1 + generator.negative_binomial(0.6, 0.1, 40)
    shares = generator.dirichlet(np.full(categories, 0.7), 40)
    cells = [generator.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)]
    return LabelledCounts.from_cells(cells), NegativeBinomial(tuple(generator.uniform(0.05, 1.5, categories)), 0.85)


@pytest.mark.parametrize("seed", range(8))
def test_what_the_own_record_adds_is_bounded_by_the_guarantee(seed: int) -> None:
    generator = np.random.default_rng(seed)
    vectors, prior = random_table(generator)
    epsilon, delta = float(generator.uniform(0.05, 4.0)), float(generator.choice([1e-6, 0.01, 0.2]))
    threshold = float(generator.choice([0.5, 2.5, 10.5]))
    for mechanism in (
        cr.Geometric(epsilon, threshold=threshold),
        cr.Laplace(epsilon, threshold=threshold),
        cr.DiscreteGaussian(epsilon, delta=delta, threshold=threshold),
    ):
        table = AttackTable(vectors, mechanism.channel, prior, 0.9)
        advantage = cr.ceiling(mechanism, labels=2).advantage
        rest = np.exp(-epsilon) * mechanism.delta * table.people
        for name in ATTACKS:
            found = table.figures(name)
            slack = 1e-9 * table.people.sum() + found.own_error + found.error
            revealed, own = found.by_category["revealed"], found.by_category["own"]
            assert (own >= -slack).all()
            assert (own <= (1 - np.exp(-epsilon)) * revealed + rest + slack).all()
            assert found.most <= advantage + 1e-9 + slack


@pytest.mark.parametrize("unused", [1, 8, 48])
def test_categories_that_nobody_has_change_nothing_that_the_informed_attacker_learns(adult: Any, unused: int) -> None:
    """A prior fitted to the table gives the shape 0 to categories that nobody has."""
    counts = np.pad(adult.vectors.counts, ((0, 0), (0, unused)))
    prior = NegativeBinomial((*PUBLISHED.shapes, *[0.0] * unused), PUBLISHED.theta)
    wide = AttackTable(LabelledCounts.from_cells(counts, adult.vectors.cells), cr.Geometric(1.0).channel, prior, 0.95)
    found = wide.figures("informed")
    assert found.own == pytest.approx(1046.723, rel=0, abs=0.01 + found.own_error)
    assert found.learnt == pytest.approx(11172.73, rel=0, abs=0.01 + found.error)


def test_a_disease_that_is_spread_evenly_is_not_learnt() -> None:
    """Of 10,000 people 1% are ill, spread evenly: all are named healthy, and nobody learns that."""
    generator = np.random.default_rng(3)
    healthy = generator.binomial(100, 0.99, 100)
    vectors = LabelledCounts.from_cells(np.column_stack([healthy, 100 - healthy]))
    prior = NegativeBinomial((99.0, 1.0), 0.5)
    found = AttackTable(vectors, cr.Geometric(1.0).channel, prior, 0.95).figures("informed")
    revealed, learnt = found.by_category["revealed"], found.by_category["learnt"]
    assert revealed[0] > 0.95 * healthy.sum()
    assert learnt[1] < 1e-9
    assert learnt[0] < revealed[0]


def test_a_union_of_categories() -> None:
    """Two categories as one value: against draws of releases."""
    generator = np.random.default_rng(11)
    group, prior, factor = np.array([3, 4, 1, 0]), NegativeBinomial((0.5, 0.4, 0.2, 0.1), 0.85), 0.25
    channel = cr.Geometric(1.0).channel
    table = AttackTable(LabelledCounts.from_cells([group]), channel, prior, 0.8)
    found = table.success("informed", (0, 1))
    draws = 200_000
    for k in (0, 1):
        for less, ends in ((0, found.revealed), (1, found.revealed - found.gain)):
            counts = np.tile(group - less * (np.arange(4) == k), (draws, 1))
            released = channel.draw(counts, generator)
            rows = zip(table._means, np.minimum(released, 40).T, strict=True)
            means = np.stack([known.score[np.searchsorted(known.values, shown)] for known, shown in rows], axis=1)
            share = float((means[:, 2:].sum(axis=1) <= factor * means[:, :2].sum(axis=1)).mean())
            error = (
                5.0 * np.sqrt(share * (1.0 - share) / draws)
                + np.ptp(found.revealed[:, 0, k])
                + np.ptp(found.gain[:, 0, k])
            )
            assert ends[:, 0, k].mean() == pytest.approx(share, rel=0, abs=error)


def test_people_who_are_not_at_risk_do_not_hide_those_who_are() -> None:
    """A hundred ill people, each alone in a group, among 9,900 healthy people in large groups."""
    ill, healthy = np.tile([0, 1], (100, 1)), np.tile([99, 0], (100, 1))
    vectors = LabelledCounts.from_cells(np.concatenate([ill, healthy]))
    more = LabelledCounts.from_cells(np.concatenate([ill, healthy, healthy]))
    prior = NegativeBinomial((0.5, 0.1), 0.95)
    for mechanism in (cr.Geometric(0.5), cr.Geometric(30.0)):
        table, larger = (AttackTable(found, mechanism.channel, prior, 0.95) for found in (vectors, more))
        assert table.largest_own() == pytest.approx(larger.largest_own(), rel=1e-9, abs=0)
    assert table.largest_own() > 0.99
    assert table.largest_gain() > 0.99
    assert max(table.figures(name).own for name in ATTACKS) / 10_000 < 0.011


def test_categories_of_few_people_count_together() -> None:
    vectors = LabelledCounts.from_cells([[10, 0, 0], [10, 1, 0], [9, 0, 3]])
    table = AttackTable(vectors, cr.Geometric(30.0).channel, NegativeBinomial((1.0, 0.1, 0.1), 0.9), 0.95)
    assert table.people.tolist() == [29, 1, 3]
    shares = table.figures("homogeneity").by_category["own"] / table.people
    alone = max(shares[0], (shares[1] + 3 * shares[2]) / 4)
    assert replace(table, prior=None).largest_own() >= alone
    learnt = table.figures("informed").by_category["learnt"]
    assert table.largest_learnt() == pytest.approx(max(learnt[0] / 29, learnt[1:].sum() / 4), rel=1e-6, abs=0)
    assert replace(table, harmful=(0,), known={}).largest_learnt() == pytest.approx(learnt[0] / 29, rel=1e-6, abs=0)


@pytest.mark.parametrize("categories", [2, 3])
def test_next_to_no_noise_is_the_limit(categories: int) -> None:
    """A person who is left out of a group of one leaves an empty group, which has the overall shares."""
    groups = [[1, 0, 0], [1, 1, 0], [0, 0, 3], [9, 1, 0], [40, 1, 0]]
    vectors = LabelledCounts.from_cells([group[:categories] for group in groups])
    prior = NegativeBinomial(tuple((vectors.cells @ vectors.counts / vectors.n_records).tolist()), 0.9)
    table = AttackTable(vectors, cr.Geometric(500.0).channel, prior, 0.95)
    for name in ATTACKS:
        found = table.figures(name)
        for figure, limit, error in zip(
            (found.revealed, found.own), found.no_noise, (found.error, found.own_error), strict=True
        ):
            assert figure == pytest.approx(limit, rel=0, abs=1e-6 + error)
        assert categories > 2 or found.own_error == 0.0


def test_what_everybody_has_is_not_learnt() -> None:
    vectors = LabelledCounts.from_cells([[1, 0], [4, 0]])
    found = AttackTable(vectors, cr.Geometric(1.0).channel, NegativeBinomial((0.5, 0.0), 0.8), 0.95).figures("informed")
    assert found.learnt is not None
    assert found.revealed == pytest.approx(5.0, rel=1e-9, abs=0)
    assert found.learnt == 0.0
