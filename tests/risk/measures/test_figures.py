"""The figures of the paper's tables, to all printed digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from cellrisk.noise.mechanisms import Mechanism, mechanism
from cellrisk.risk.measures import Local, Measure
from cellrisk.risk.measures.dirichlet import Dirichlet
from cellrisk.risk.measures.given_total import Expected, Shrinkage

BANKRUPTCY_SUBSET = {(1,): 18, (2,): 20, (3,): 1, (4,): 9, (5,): 2, (7,): 1, (8,): 1, (9,): 1, (11,): 1} | {
    (1, 1): 3,
    (2, 1): 4,
    (2, 2): 11,
    (3, 2): 1,
    (4, 2): 2,
    (4, 4): 1,
    (10, 4): 1,
    (4, 2, 1): 1,
}
BANKRUPTCY = {(1,): 29, (2,): 50, (3,): 2, (4,): 15, (5,): 2, (7,): 1, (8,): 1, (9,): 1, (10,): 1, (11,): 1}

LAPLACE_TENTH = mechanism("laplace", epsilon=0.1)
LAPLACE_ONE = mechanism("laplace", epsilon=1.0)
CLASSICAL = mechanism("gaussian", epsilon=0.5, delta=0.01)
PROBABILISTIC = mechanism("gaussian-pdp", epsilon=1.0, delta=0.01)
GEOMETRIC = mechanism("geometric", epsilon=1.0)

TABLE = [
    (LAPLACE_TENTH, "published", (0.191652, 0.212287), (0.186378, 0.207321), (0.210859, 0.232291)),
    (LAPLACE_TENTH, "exact", (0.191065, 0.210245), (0.185849, 0.205315), (0.217561, 0.241115)),
    (LAPLACE_TENTH, "tight", (0.151623, 0.155967), (0.155265, 0.160884), (0.141592, 0.138411)),
    (LAPLACE_ONE, "published", (0.358505, 0.351947), (0.370516, 0.364783), (0.311430, 0.282025)),
    (LAPLACE_ONE, "exact", (0.334622, 0.306487), (0.356798, 0.334575), (0.283675, 0.222663)),
    (LAPLACE_ONE, "tight", (0.312364, 0.282627), (0.340517, 0.315776), (0.239799, 0.180516)),
    (CLASSICAL, "published", (0.202373, 0.225405), (0.198057, 0.221539), (0.216812, 0.236829)),
    (PROBABILISTIC, "exact", (0.234232, 0.239966), (0.237633, 0.246843), (0.231933, 0.221212)),
    (GEOMETRIC, "tight", (0.346178, 0.309410), (0.376913, 0.344831), (0.260076, 0.189842)),
]


def profiles_of(rows: dict[tuple[int, ...], int], n_levels: int) -> Profiles:
    cells = [[*counts, *[0] * (n_levels - len(counts))] for counts in rows]
    return Profiles.from_cells(cells, n_levels, list(rows.values()))


def average(measure: Measure, profiles: Profiles, setting: Mechanism, form: str) -> tuple[float, float]:
    found = measure.average(profiles, setting.channel, (form,))
    return float(found[form, "uniform"][0]), float(found[form, "records"][0])


def at(profiles: Profiles, measure: Measure, form: str, epsilon: float) -> tuple[float, float]:
    return average(measure, profiles, mechanism("laplace", epsilon=epsilon), form)


@pytest.mark.parametrize(("setting", "form", "local", "expected", "shrinkage"), TABLE)
def test_bankruptcy_subset(
    setting: Mechanism,
    form: str,
    local: tuple[float, float],
    expected: tuple[float, float],
    shrinkage: tuple[float, float],
) -> None:
    profiles = profiles_of(BANKRUPTCY_SUBSET, 3)
    prior = Dirichlet.given([1.0, 1.0, 1.0], 3)
    for measure, figures in ((Local(), local), (Expected(), expected), (Shrinkage(prior), shrinkage)):
        assert average(measure, profiles, setting, form) == pytest.approx(figures, abs=5.1e-7), measure.name


@pytest.mark.parametrize("form", ["published", "exact", "tight"])
def test_paper_asymptotes_at_large_epsilon(form: str) -> None:
    profiles = profiles_of(BANKRUPTCY_SUBSET, 3)
    assert at(profiles, Local(), form, 1e4) == pytest.approx((0.69, 0.57), abs=0.005)
    assert at(profiles, Expected(), form, 1e4) == pytest.approx((0.75, 0.63), abs=0.005)


def test_paper_asymptotes_at_small_epsilon() -> None:
    profiles = profiles_of(BANKRUPTCY_SUBSET, 3)
    assert at(profiles, Local(), "published", 1e-6) == pytest.approx((0.16, 0.18), abs=0.005)
    assert at(profiles, Expected(), "published", 1e-6) == pytest.approx((0.16, 0.17), abs=0.0055)


@pytest.mark.parametrize("measure", [Local(), Expected()], ids=["local", "expected"])
def test_all_homogeneous_with_two_levels_runs_from_a_quarter_to_one(measure: Measure) -> None:
    profiles = profiles_of(BANKRUPTCY, 2)
    for form in ("published", "exact", "tight"):
        assert at(profiles, measure, form, 1e-9) == pytest.approx((0.25, 0.25), abs=1e-8)
        assert at(profiles, measure, form, 1e4) == pytest.approx((1.0, 1.0), abs=1e-12)


def test_published_is_not_a_bound_with_three_labels_present() -> None:
    cell = profiles_of({(4, 2, 1): 1}, 3)
    published, exact = (at(cell, Local(), form, 0.001)[0] for form in ("published", "exact"))
    assert (round(published, 4), round(exact, 4)) == (0.2501, 0.3743)


def test_risk_is_not_monotone_in_epsilon() -> None:
    cell = profiles_of({(5, 1): 1}, 3)
    risks = [round(at(cell, Local(), "exact", epsilon)[0], 4) for epsilon in (0.001, 0.1, 8.0)]
    assert risks == [0.2501, 0.2576, 0.0091]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_theorem_1_as_the_supplement_derives_it(epsilon: float) -> None:
    """The paper's own expressions for Laplace noise, typed from Theorem 1 with the exponent K - 2."""
    n_levels = 3
    for counts in ((4,), (1,), (2, 1), (3, 2, 2)):
        n = sum(counts)
        empty = 1 - 0.5 * math.exp(-0.5 * epsilon)
        if len(counts) == 1:
            theirs = empty ** (n_levels - 1) * (1 - 0.5 * math.exp((0.5 - n) * epsilon))
        else:
            bracket = math.exp(-0.5 * epsilon) + math.exp((1.5 - n) * epsilon) - math.exp((1 - n) * epsilon)
            theirs = empty ** (n_levels - 2) * 0.5 * bracket
        assert at(profiles_of({counts: 1}, n_levels), Local(), "published", epsilon)[0] == pytest.approx(
            theirs, rel=1e-12, abs=0
        )


@pytest.mark.parametrize("epsilon", [0.05, 0.6, 1.7])
def test_expected_laplace_closed_forms(epsilon: float) -> None:
    """A sum over subsets of labels: a third way to the same number, good at small epsilon."""
    from itertools import combinations

    for counts in ((3, 1), (40, 7), (9, 5, 2), (300, 20, 4)):
        n, n_levels = sum(counts), len(counts)
        p = [count / n for count in counts]
        z, d = math.exp(-epsilon), math.exp(epsilon / 2) / 2
        c = 1 - 0.5 * math.exp(-epsilon / 2) - d
        exact = tight = 0.0
        for k in range(n_levels):
            others = [j for j in range(n_levels) if j != k]
            for size in range(n_levels):
                for chosen in combinations(others, size):
                    zp = z * sum(p[j] for j in chosen)
                    factor = c ** (n_levels - 1 - size) * d**size
                    exact += factor * ((p[k] + zp) ** n - zp**n - d * ((z * p[k] + zp) ** n - zp**n))
                    tight += factor * p[k] * ((p[k] + zp) ** (n - 1) - d * z * (z * p[k] + zp) ** (n - 1))
        cell = profiles_of({counts: 1}, n_levels)
        assert at(cell, Expected(), "exact", epsilon)[0] == pytest.approx(exact, rel=1e-9, abs=1e-12)
        assert at(cell, Expected(), "tight", epsilon)[0] == pytest.approx(tight, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.6, 3.0, 20.0])
@pytest.mark.parametrize("counts", [(3, 1), (40, 7), (300, 20, 4), (999_990, 10), (600_000, 300_000, 100_000)])
def test_expected_geometric_closed_forms(epsilon: float, counts: tuple[int, ...]) -> None:
    """K terms, no cancellation, any size: holds the convolutions and their windows to account at a million records."""
    n, n_levels = sum(counts), len(counts)
    p, a = np.array(counts) / n, math.exp(-epsilon)
    front = (1 + a) ** -(n_levels - 1)
    exact = front * sum((q + a * (1 - q)) ** n - a**n * (1 - q) ** n * a / (1 + a) - a**n / (1 + a) for q in p)
    tight = front * sum(q * ((q + a * (1 - q)) ** (n - 1) - a**n / (1 + a)) for q in p)
    cell = profiles_of({counts: 1}, n_levels)
    setting = mechanism("geometric", epsilon=epsilon)
    assert average(Expected(), cell, setting, "exact")[0] == pytest.approx(exact, rel=1e-9, abs=1e-16)
    assert average(Expected(), cell, setting, "tight")[0] == pytest.approx(tight, rel=1e-9, abs=1e-16)


def test_adult(adult: cr.FrequencyTable) -> None:
    profiles = adult.profiles()
    assert (profiles.n_cells, profiles.n_heterogeneous, profiles.n_profiles) == (5009, 965, 310)
    assert at(profiles, Local(), "published", 1.0) == pytest.approx((0.5038, 0.4398), abs=5.1e-5)
    assert at(profiles, Local(), "exact", 1.0) == pytest.approx((0.4820, 0.3055), abs=5.1e-5)
    assert at(profiles, Local(), "tight", 1.0) == pytest.approx((0.4677, 0.2961), abs=5.1e-5)
    assert at(profiles, Local(), "tight", 1e4)[1] == pytest.approx(0.404, abs=5e-4)
