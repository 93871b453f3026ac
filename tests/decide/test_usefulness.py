"""`utility`: distances against a slow reading of the definition, errors against exact sums, and how it is shown."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.decide.usefulness import Utility, utility
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.system.formatting import CURATOR_NOTE
from tests.near import near

DOMAINS = {"size": ["s", "m", "l"], "sex": ["f", "m"], "town": ["p", "q", "r", "t"], "job": ["a", "b", "c"]}
LAPLACE = cr.Laplace(epsilon=1.0)
MECHANISMS = (
    cr.Laplace(epsilon=0.5),
    cr.Geometric(epsilon=1.0, threshold=2.5),
    cr.AnalyticGaussian(epsilon=1.0, delta=0.01, neighbours="replace"),
    cr.DiscreteGaussian(epsilon=2.0, delta=0.01, threshold=1.5),
)


def people(domains: dict[str, list[str]], records: int, seed: int = 5) -> pd.DataFrame:
    """Records of few cells; the last value of each column does not occur."""
    generator = np.random.default_rng(seed)
    columns = {}
    for name, values in domains.items():
        weight = np.arange(len(values) - 1, 0, -1.0) ** 2
        columns[name] = generator.choice(values[:-1], records, p=weight / weight.sum())
    return pd.DataFrame(columns)


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return people(DOMAINS, 60)


@pytest.fixture(scope="session")
def table(frame: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(frame, ["size", "sex", "town"], "job", levels=DOMAINS)


def slow_utility(
    frame: pd.DataFrame, domains: dict[str, list[str]], mechanism: Mechanism, found: Utility
) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """The definition read aloud: records in dictionaries, one key after another; the sensitive column is the last."""
    names = list(domains)
    true = Counter(tuple(row) for row in frame[names].itertuples(index=False))
    keys = list(product(*domains.values()))
    chosen = [columns for way in found.ways for columns in combinations(names, way)]
    tvd = np.ones((len(chosen), found.releases))
    generator = np.random.default_rng(found.seed)
    for release in range(found.releases):
        noise = mechanism.noise.sample(generator, (len(keys),))
        released = {}
        for key, draw in zip(keys, noise, strict=True):
            noisy = true[key] + float(draw)
            released[key] = 0 if noisy < mechanism.threshold else math.floor(noisy + 0.5)
        for row, columns in enumerate(chosen):
            places = [names.index(column) for column in columns]
            before, after = add_up(true, places), add_up(released, places)
            before_total, after_total = sum(before.values()), sum(after.values())
            if after_total:
                tvd[row, release] = (
                    sum(abs(before[each] / before_total - after[each] / after_total) for each in before | after) / 2
                )
    return chosen, tvd


def add_up(counts: dict[Any, int], places: list[int]) -> Counter[tuple[str, ...]]:
    sums: Counter[tuple[str, ...]] = Counter()
    for key, count in counts.items():
        sums[tuple(key[place] for place in places)] += count
    return sums


def agree(found: Utility, frame: pd.DataFrame, domains: dict[str, list[str]]) -> None:
    for place, mechanism in enumerate(found.mechanisms):
        chosen, tvd = slow_utility(frame, domains, mechanism, found)
        assert list(found.marginals) == chosen
        np.testing.assert_allclose(found.tvd[place], tvd, rtol=0, atol=1e-12)
        assert 0.001 < tvd.mean() < 0.999


def test_equals_the_definition(table: cr.FrequencyTable, frame: pd.DataFrame) -> None:
    found = utility(table, MECHANISMS, releases=7, seed=3)
    assert found.tvd.shape == (4, 4 + 6 + 4, 7)
    agree(found, frame, DOMAINS)


@pytest.mark.parametrize("ways", [1, (2,), (4,), (1, 3), (1, 4), (4, 2, 2, 1, 3)], ids=str)
def test_any_ways(table: cr.FrequencyTable, frame: pd.DataFrame, ways: Any) -> None:
    found = utility(table, LAPLACE, ways=ways, releases=2)
    assert found.ways == tuple(sorted({*ways} if isinstance(ways, tuple) else {ways}))
    agree(found, frame, DOMAINS)


def test_more_noise_leaves_less_and_more_attributes_lose_more(table: cr.FrequencyTable) -> None:
    found = utility(table, [cr.Laplace(epsilon=epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0)])
    by_way = np.array([found.mean_tvd(way) for way in (1, 2, 3)])
    assert (np.diff(by_way, axis=1) < 0).all()
    assert (np.diff(by_way, axis=0) > 0).all()


def test_no_noise_to_speak_of_loses_nothing(table: cr.FrequencyTable) -> None:
    found = utility(table, [cr.Laplace(epsilon=1e6), cr.Geometric(epsilon=500.0)], releases=3)
    assert not found.tvd.any()


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
    np.testing.assert_allclose(found.mean_tvd(1), [0.25])
    np.testing.assert_allclose(found.mean_tvd(), [0.3])


def test_nothing_left_is_as_far_as_can_be(table: cr.FrequencyTable) -> None:
    found = utility(table, Scripted(epsilon=1.0, draws=(-1000.0,) * 72), releases=2)
    np.testing.assert_array_equal(found.tvd, 1.0)


def test_seeds(table: cr.FrequencyTable) -> None:
    first = utility(table, MECHANISMS, releases=9, seed=1)
    np.testing.assert_array_equal(first.tvd, utility(table, MECHANISMS, releases=9, seed=1).tvd)
    assert ((first.tvd >= 0) & (first.tvd <= 1)).all()
    assert not np.array_equal(first.tvd, utility(table, MECHANISMS, releases=9, seed=2).tvd)
    for place, mechanism in enumerate(MECHANISMS):
        assert utility(table, mechanism, releases=9, seed=1).tvd[0] == near(first.tvd[place])


def test_one_of_several_sensitive_attributes(frame: pd.DataFrame) -> None:
    both = cr.tabulate(frame, ["size", "sex"], ["town", "job"], levels=DOMAINS)
    found = utility(both, cr.Laplace(epsilon=1.0), releases=2, sensitive="town")
    assert found.sensitive == "town"
    agree(found, frame, {name: DOMAINS[name] for name in ("size", "sex", "town")})
    with pytest.raises(InvalidInput, check=lambda refusal: refusal.code == "no-attribute"):
        utility(both, cr.Laplace(epsilon=1.0))


def test_progress(table: cr.FrequencyTable) -> None:
    shares: list[float] = []
    utility(table, MECHANISMS, releases=3, progress=shares.append)
    assert shares == sorted(set(shares))
    assert 10 < len(shares) <= 100
    assert shares[-1] == 1.0


@pytest.mark.parametrize("mechanism", [cr.Laplace(epsilon=1e-300), cr.Geometric(epsilon=1e-300)])
def test_noise_near_the_largest_number(table: cr.FrequencyTable, mechanism: Mechanism) -> None:
    """Warnings are errors here. A count is off by about 1e300."""
    found = utility(table, mechanism, ways=1, releases=50, seed=2)
    assert ((found.tvd >= 0) & (found.tvd <= 1)).all()
    assert (found.tvd.mean(axis=2) > 0.1).any()


def test_by_default_marginals_have_up_to_three_attributes_or_as_many_as_the_table() -> None:
    frame = pd.DataFrame({"sex": list("ffm"), "age": [1, 2, 1], "home": [0, 1, 1], "income": ["low", "high", "low"]})
    for n_names, ways in ((1, (1, 2)), (2, (1, 2, 3)), (3, (1, 2, 3))):
        table = cr.tabulate(frame, ["sex", "age", "home"][:n_names], "income")
        assert utility(table, cr.Geometric(1.0), releases=1).ways == ways


REFUSALS: dict[str, list[dict[str, Any]]] = {
    "ways": [{"ways": 5}, {"ways": ()}],
    "range": [{"ways": 0}, {"releases": 0}, {"seed": -1}],
    "type": [{"ways": (1, 2.0)}, {"ways": True}, {"ways": "12"}, {"releases": 1.5}, {"seed": None}],
    "too-large": [{"releases": 10**7}],
    "no-mechanism": [{"mechanism": []}],
    "no-attribute": [{"sensitive": "age"}],
}


@pytest.mark.parametrize(("code", "given"), [(code, each) for code, every in REFUSALS.items() for each in every])
def test_refusals(table: cr.FrequencyTable, code: str, given: dict[str, Any]) -> None:
    with pytest.raises(CellriskError, check=lambda refusal: refusal.code == code):
        utility(table, **{"mechanism": LAPLACE, "releases": 1, **given})


def test_whole_numbers_of_numpy_will_do(table: cr.FrequencyTable) -> None:
    found = utility(table, LAPLACE, ways=[np.int64(2)], releases=np.int64(3), seed=np.int32(4))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.tvd, utility(table, LAPLACE, ways=2, releases=3, seed=4).tvd)
    json.dumps(found.to_dict())


def test_too_large_a_domain_is_refused() -> None:
    domains = {f"q{number:02}": [*"abcde"] for number in range(30)} | {"job": ["a", "b", "c"]}
    table = cr.tabulate(people(domains, 20), list(domains)[:-1], "job", levels=domains)
    with pytest.raises(InvalidInput, match="more than 10\\^21", check=lambda refusal: refusal.code == "too-large"):
        utility(table, LAPLACE, ways=1, releases=1)
    with pytest.raises(InvalidInput, match=r"got \d+; allowed: up to 100,000"):
        utility(table, LAPLACE, ways=6, releases=1)


@pytest.fixture(scope="module")
def found(table: cr.FrequencyTable) -> Utility:
    return utility(table, MECHANISMS[:2], ways=(1, 2), releases=5)


def test_means(found: Utility) -> None:
    assert found.mean_tvd(2)[1] == near(found.tvd[1, 4:].mean())
    for way in (0, 3):
        with pytest.raises(InvalidInput, check=lambda refusal: refusal.code == "ways"):
            found.mean_tvd(way)


def test_frame(found: Utility) -> None:
    frame = found.to_frame()
    assert list(frame.columns) == ["mechanism", "epsilon", "delta", "way", "marginal", "release", "tvd"]
    assert len(frame) == 2 * 10 * 5
    for place, mechanism in enumerate(found.mechanisms):
        for row, columns in enumerate(found.marginals):
            mine = frame[(frame["mechanism"] == mechanism.name) & (frame["marginal"] == " x ".join(columns))]
            assert set(mine["epsilon"]) == {mechanism.epsilon}
            assert set(mine["way"]) == {len(columns)}
            assert mine["release"].tolist() == [0, 1, 2, 3, 4]
            assert mine["tvd"].tolist() == found.tvd[place, row].tolist()


def test_document(found: Utility) -> None:
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(document) == [
        *("sensitive", "unit", "releases", "seed", "domain_size", "settings", "marginals", "headline")
    ]
    assert (document["sensitive"], document["releases"], document["domain_size"]) == ("job", 5, 72)
    laplace, geometric = document["settings"]
    assert "threshold" not in laplace
    assert geometric["threshold"] == 2.5
    assert list(laplace) == ["name", "epsilon", "delta", "scale", "neighbours", "ways", "errors_of_counts"]
    assert (laplace["name"], laplace["scale"]) == ("laplace", 2.0)
    second = laplace["ways"][1]
    values = sorted(found.tvd[0, 4:].ravel())  # thirty of them
    assert (second["way"], second["marginals"]) == (2, 6)
    assert second["mean"] == near(sum(values) / 30)
    assert second["median"] == near((values[14] + values[15]) / 2)
    assert second["low"] == near(values[1] + 0.45 * (values[2] - values[1]))
    assert second["high"] == near(values[27] + 0.55 * (values[28] - values[27]))
    last = document["marginals"][-1]
    assert (last["columns"], last["way"]) == (["town", "job"], 2)
    assert last["tvd"] == near([found.tvd[place, -1].mean() for place in (0, 1)])
    json.dumps(utility(found.table, LAPLACE, releases=1).to_dict(), allow_nan=False)


def test_sentence(found: Utility) -> None:
    values = found.tvd[0, 4:].ravel()
    assert found.headline == (
        f"At epsilon 0.5, a 2-way marginal differs from the true one by a TVD of {values.mean():.2g} on average: the "
        "share of records to move."
    )
    noisy = utility(found.table, MECHANISMS[2:], ways=3, releases=2)
    assert noisy.headline.startswith("At epsilon 1 and delta 0.01, a 3-way marginal ")


def lines_of(text: str) -> Iterator[list[str]]:
    return (line.split() for line in text.splitlines())


def test_print(found: Utility, frame: pd.DataFrame) -> None:
    text = found.details
    assert found.headline in " ".join(text.split())
    assert str(found).splitlines()[-1].startswith(CURATOR_NOTE)
    assert ["mechanism", "epsilon", "threshold", "way", "marginals", "mean", "median", "5%", "95%"] in lines_of(text)
    rows = [line for line in lines_of(text) if line[:1] in (["laplace"], ["geometric"]) and len(line) > 4]
    assert [row[:5] for row in rows] == [
        ["laplace", "0.5", "0.5", "1", "4"],
        ["laplace", "0.5", "0.5", "2", "6"],
        ["geometric", "1", "2.5", "1", "4"],
        ["geometric", "1", "2.5", "2", "6"],
    ]
    assert rows[3][5] == f"{found.mean_tvd(2)[1]:.4f}"
    assert "72 counts of 24 combinations of the quasi-identifiers, also" in " ".join(text.split())
    assert "not declared" not in text
    guessed = cr.tabulate(frame, ["size", "sex", "town"], "job", levels={"sex": DOMAINS["sex"]})
    text = utility(guessed, LAPLACE, releases=1).details
    assert "The values of 3 of the 4 attributes were taken from the data, not declared" in text


@pytest.mark.parametrize("place", [0, 1])
def test_errors_of_counts_by_their_size(found: Utility, frame: pd.DataFrame, place: int) -> None:
    """Against sums over every value of the noise, count by count."""
    groups = frame.groupby(["size", "sex", "town"])["job"]
    counts = [(int(n), len(jobs)) for _, jobs in groups for n in jobs.value_counts() if n]
    mechanism = found.mechanisms[place]
    values = np.arange(-200, 201)
    mass = np.diff(mechanism.noise.cdf(np.concatenate([[values[0] - 0.5], values + 0.5])))
    moves = {n: np.where(n + values >= mechanism.threshold, values, -n) for n in range(1, 61)}
    rows = found.errors_of_counts(place)
    assert sum(row.number for row in rows if row.low) == len(counts)
    for row in rows:
        of_class = [n for n, size in counts if (row.low <= n <= (row.high or n) if row.low else size <= 9)]
        assert row.number == len(of_class)
        assert row.relative == near(np.mean([mass @ np.abs(moves[n]) / n for n in of_class]))
        assert row.bias == pytest.approx(np.mean([mass @ moves[n] for n in of_class]), rel=1e-9, abs=1e-9)
