"""`utility`: distances against a slow reading of the definition, and errors against exact sums."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.decide.usefulness import utility
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from tests.decide.usefulness.definition import DOMAINS, MECHANISMS, MODES, agree, people
from tests.near import near


@pytest.mark.parametrize("cells", MODES)
def test_equals_the_definition(table: cr.FrequencyTable, frame: pd.DataFrame, cells: str) -> None:
    found = utility(table, MECHANISMS, releases=7, seed=3, cells=cells)
    assert found.tvd.shape == (4, 4 + 6 + 4, 7)
    agree(found, frame, DOMAINS)


@pytest.mark.parametrize("cells", MODES)
@pytest.mark.parametrize("ways", [1, (2,), (4,), (1, 3), (1, 4), (4, 2, 2, 1, 3)], ids=str)
def test_any_ways(table: cr.FrequencyTable, frame: pd.DataFrame, cells: str, ways: Any) -> None:
    found = utility(table, cr.Laplace(epsilon=1.0), ways=ways, releases=2, cells=cells)
    assert found.ways == tuple(sorted({*ways} if isinstance(ways, tuple) else {ways}))
    agree(found, frame, DOMAINS)


def test_more_noise_leaves_less_and_more_attributes_lose_more(table: cr.FrequencyTable) -> None:
    found = utility(table, [cr.Laplace(epsilon=epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0)])
    by_way = np.array([found.mean_tvd(way) for way in (1, 2, 3)])
    assert (np.diff(by_way, axis=1) < 0).all()
    assert (np.diff(by_way, axis=0) > 0).all()


@pytest.mark.slow
def test_many_quasi_identifiers() -> None:
    domains = {f"q{number:02}": ["x", "y", "z"] for number in range(20)} | {"job": ["a", "b", "c"]}
    frame = people(domains, 80)
    table = cr.tabulate(frame, list(domains)[:-1], "job", levels=domains)
    found = utility(table, cr.Laplace(epsilon=1.0), releases=1, cells="observed")
    assert len(found.marginals) == 21 + 210 + 1330
    agree(found, frame, domains)


@pytest.mark.parametrize("cells", MODES)
def test_no_noise_to_speak_of_loses_nothing(table: cr.FrequencyTable, cells: str) -> None:
    found = utility(table, [cr.Laplace(epsilon=1e6), cr.Geometric(epsilon=500.0)], releases=3, cells=cells)
    assert not found.tvd.any()
    assert not found.absolute_error.any()


@dataclasses.dataclass(frozen=True)
class Script(Noise):
    """The same numbers each time."""

    draws: tuple[float, ...] = ()

    def cdf(self, x: Any) -> np.ndarray:
        return np.zeros_like(x)

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.array(self.draws).reshape(shape)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scripted(Mechanism):
    name: ClassVar[str] = "scripted"
    pure: ClassVar[bool] = True
    draws: tuple[float, ...]

    def noise_at(self, epsilon: float) -> Noise:
        return Script(1.0, self.draws)


def test_by_hand() -> None:
    counts = pd.DataFrame({"sex": ["f", "f", "m"], "job": ["a", "b", "b"], "n": [6, 1, 3]})
    table = cr.tabulate(counts, "sex", "job", count="n")
    # f a, f b, m a, m b: 6 1 0 3 becomes 8 0 2 0; of 10, the same number as before
    found = utility(table, Scripted(epsilon=1.0, draws=(1.6, -0.9, 2.4, -2.6)), ways=(1, 2), releases=2)
    assert found.marginals == (("sex",), ("job",), ("sex", "job"))
    np.testing.assert_allclose(found.tvd[0], [[0.1, 0.1], [0.4, 0.4], [0.4, 0.4]], atol=1e-15)
    np.testing.assert_allclose(found.absolute_error[0], [1.0, 4.0, 2.0])
    np.testing.assert_allclose(found.mean_tvd(1), [0.25])
    np.testing.assert_allclose(found.mean_tvd(), [0.3])
    seen = utility(table, Scripted(epsilon=1.0, draws=(1.6, -0.9, 2.4, -2.6)), ways=2, releases=1, cells="observed")
    assert seen.sizes.tolist() == [3]
    np.testing.assert_allclose(seen.tvd, 0.4)
    np.testing.assert_allclose(seen.absolute_error, (2 + 1 + 3) / 3)


@pytest.mark.parametrize("cells", MODES)
def test_nothing_left_is_as_far_as_can_be(table: cr.FrequencyTable, cells: str) -> None:
    n_counts = utility(table, cr.Laplace(epsilon=1.0), releases=1, cells=cells).n_counts
    found = utility(table, Scripted(epsilon=1.0, draws=(-1000.0,) * n_counts), releases=2, cells=cells)
    np.testing.assert_array_equal(found.tvd, 1.0)
    by_job = found.marginals.index(("job",))
    assert found.absolute_error[0, by_job] == near(60 / (3 if cells == "domain" else 2))


@pytest.mark.parametrize("cells", MODES)
def test_seeds(table: cr.FrequencyTable, cells: str) -> None:
    first = utility(table, MECHANISMS, releases=9, seed=1, cells=cells)
    again = utility(table, MECHANISMS, releases=9, seed=1, cells=cells)
    np.testing.assert_array_equal(first.tvd, again.tvd)
    np.testing.assert_array_equal(first.absolute_error, again.absolute_error)
    assert ((first.tvd >= 0) & (first.tvd <= 1)).all()
    assert not np.array_equal(first.tvd, utility(table, MECHANISMS, releases=9, seed=2, cells=cells).tvd)
    for place, mechanism in enumerate(MECHANISMS):
        alone = utility(table, mechanism, releases=9, seed=1, cells=cells)
        assert alone.tvd[0] == near(first.tvd[place])


def test_one_of_several_sensitive_attributes(frame: pd.DataFrame) -> None:
    both = cr.tabulate(frame, ["size", "sex"], ["town", "job"], levels=DOMAINS)
    found = utility(both, cr.Laplace(epsilon=1.0), releases=2, sensitive="town")
    assert found.sensitive == "town"
    agree(found, frame, {name: DOMAINS[name] for name in ("size", "sex", "town")})
    with pytest.raises(InvalidInput, match="several sensitive attributes"):
        utility(both, cr.Laplace(epsilon=1.0))


def test_progress(table: cr.FrequencyTable) -> None:
    shares: list[float] = []
    utility(table, MECHANISMS, releases=3, progress=shares.append)
    assert shares == sorted(set(shares))
    assert 10 < len(shares) <= 100
    assert shares[-1] == 1.0


@pytest.mark.parametrize("mechanism", [cr.Laplace(epsilon=1e-300), cr.Geometric(epsilon=1e-300)])
def test_noise_near_the_largest_number(table: cr.FrequencyTable, mechanism: Mechanism) -> None:
    """Warnings are errors here. A count is off by about 1e300, and not by nothing."""
    found = utility(table, mechanism, ways=1, releases=50, seed=2)
    scale = mechanism.noise.scale
    assert ((found.tvd >= 0) & (found.tvd <= 1)).all()
    assert (found.tvd.mean(axis=2) > 0.1).any()
    assert ((found.absolute_error > 0.1 * scale) & (found.absolute_error < 100 * scale)).all()


def test_by_default_marginals_have_up_to_three_attributes_or_as_many_as_the_table() -> None:
    frame = pd.DataFrame({"sex": list("ffm"), "age": [1, 2, 1], "home": [0, 1, 1], "income": ["low", "high", "low"]})
    for n_names, ways in ((1, (1, 2)), (2, (1, 2, 3)), (3, (1, 2, 3))):
        table = cr.tabulate(frame, ["sex", "age", "home"][:n_names], "income")
        assert utility(table, cr.Geometric(1.0), releases=1).ways == ways
