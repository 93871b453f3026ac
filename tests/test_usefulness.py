"""`utility`: distances against a slow reading of the definition, errors against exact sums, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
import cellrisk.usefulness as package
from cellrisk.assessment import CURATOR_NOTE
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.mechanisms import Mechanism
from cellrisk.noise import Noise
from cellrisk.usefulness import Utility, marginals, simulation, utility
from tests.shared_data import needs_shared_data, read

MODES = ("domain", "observed")
DOMAINS = {"size": ["s", "m", "l"], "sex": ["f", "m"], "town": ["p", "q", "r", "t"], "job": ["a", "b", "c"]}
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


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return people(DOMAINS, 60)


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(frame, ["size", "sex", "town"], "job", levels=DOMAINS)


def slow_utility(
    frame: pd.DataFrame,
    domains: dict[str, list[str]],
    mechanism: Mechanism,
    ways: tuple[int, ...],
    releases: int,
    seed: int,
    cells: str,
) -> tuple[list[tuple[str, ...]], np.ndarray, np.ndarray, list[int]]:
    """The definition read aloud: records in dictionaries, one key after another; the sensitive column is the last."""
    names = list(domains)
    records = [tuple(row) for row in frame[names].itertuples(index=False)]
    true = Counter(records)
    *values, levels = domains.values()
    occupied = sorted({record[:-1] for record in records}, key=lambda key: [*map(list.index, values, key)])
    combinations_of_values = product(*values) if cells == "domain" else occupied
    keys = [(*key, level) for key in combinations_of_values for level in levels]
    chosen = [columns for way in ways for columns in combinations(names, way)]
    tvd, error, sizes = np.zeros((len(chosen), releases)), np.zeros((len(chosen), releases)), [0] * len(chosen)
    generator = np.random.default_rng(seed)
    for release in range(releases):
        noise = mechanism.noise.sample(generator, (len(keys),))
        released = {}
        for key, draw in zip(keys, noise, strict=True):
            noisy = true[key] + float(draw)
            released[key] = 0 if noisy < mechanism.threshold else math.floor(noisy + 0.5)
        for row, columns in enumerate(chosen):
            places = [names.index(column) for column in columns]
            before, after = add_up(true, places), add_up(released, places)
            before_total, after_total = sum(before.values()), sum(after.values())
            tvd[row, release] = 1.0
            if after_total:
                either = before.keys() | after.keys()
                tvd[row, release] = (
                    sum(abs(before[each] / before_total - after[each] / after_total) for each in either) / 2
                )
            measured = list(product(*(domains[column] for column in columns)))
            if cells == "observed":
                measured = [each for each in measured if before[each]]
            error[row, release] = sum(abs(before[each] - after[each]) for each in measured) / len(measured)
            sizes[row] = len(measured)
    return chosen, tvd, error.mean(axis=1), sizes


def add_up(counts: dict[Any, int], places: list[int]) -> Counter[tuple[str, ...]]:
    sums: Counter[tuple[str, ...]] = Counter()
    for key, count in counts.items():
        sums[tuple(key[place] for place in places)] += count
    return sums


def agree(found: Utility, frame: pd.DataFrame, domains: dict[str, list[str]]) -> None:
    for place, mechanism in enumerate(found.mechanisms):
        chosen, tvd, error, sizes = slow_utility(
            frame, domains, mechanism, found.ways, found.releases, found.seed, found.cells
        )
        assert list(found.marginals) == chosen
        assert found.sizes.tolist() == sizes
        np.testing.assert_allclose(found.tvd[place], tvd, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.absolute_error[place], error, rtol=1e-12, atol=0)
        assert 0.001 < tvd.mean() < 0.999


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


@needs_shared_data
@pytest.mark.parametrize("cells", MODES)
def test_bankruptcy_subset(cells: str) -> None:
    counts = read("FFcount.csv")
    names = list(counts.columns[:-1])
    frame = counts.loc[counts.index.repeat(counts["n"]), names]
    found = utility(
        cr.tabulate(counts, names[:-1], names[-1], count="n"), [cr.Laplace(epsilon=1.0)], releases=3, cells=cells
    )
    assert len(found.marginals) == 41
    assert found.domain_size == 3**6
    agree(found, frame, {name: ["A", "N", "P"] for name in names})


@needs_shared_data
def test_more_noise_leaves_less_and_more_attributes_lose_more() -> None:
    table = cr.tabulate(read("FFcount.csv"), ["IR", "MR", "OR", "CR", "CO"], "FF", count="n")
    found = utility(table, [cr.Laplace(epsilon=epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0)])
    by_way = np.array([found.mean_tvd(way) for way in (1, 2, 3)])
    assert (np.diff(by_way, axis=1) < 0).all()
    assert (np.diff(by_way, axis=0) > 0).all()


def test_many_quasi_identifiers() -> None:
    domains = {f"q{number:02}": ["x", "y", "z"] for number in range(20)} | {"job": ["a", "b", "c"]}
    frame = people(domains, 80)
    table = cr.tabulate(frame, list(domains)[:-1], "job", levels=domains)
    found = utility(table, cr.Laplace(epsilon=1.0), releases=1, cells="observed")
    assert len(found.marginals) == 21 + 210 + 1330
    agree(found, frame, domains)


@pytest.mark.parametrize("cells", MODES)
@pytest.mark.parametrize("releases_at_once", [1, 3])
def test_pieces_do_not_matter(
    table: cr.FrequencyTable, monkeypatch: pytest.MonkeyPatch, cells: str, releases_at_once: int
) -> None:
    whole = utility(table, cr.Laplace(epsilon=1.0), releases=7, cells=cells)
    monkeypatch.setattr(simulation, "COUNTS_AT_ONCE", releases_at_once * whole.n_counts)
    monkeypatch.setattr(simulation, "DRAWN_AT_ONCE", 7)
    monkeypatch.setattr(marginals, "LARGEST_KEY", 4)
    pieces = utility(table, cr.Laplace(epsilon=1.0), releases=7, cells=cells)
    np.testing.assert_allclose(pieces.tvd, whole.tvd, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(pieces.absolute_error, whole.absolute_error)


@pytest.mark.parametrize("cells", MODES)
def test_memory_does_not_grow_with_releases(monkeypatch: pytest.MonkeyPatch, cells: str) -> None:
    frame = people({"a": [f"{number:02}" for number in range(41)], "b": [*"0123456789"], "job": ["x", "y", "z"]}, 4000)
    table = cr.tabulate(frame, ["a", "b"], "job")
    monkeypatch.setattr(simulation, "COUNTS_AT_ONCE", 1 << 14)
    n_counts = utility(table, cr.Laplace(epsilon=1.0), releases=1, cells=cells).n_counts
    releases = 1_500_000 // n_counts
    tracemalloc.start()
    utility(table, cr.Laplace(epsilon=1.0), releases=releases, cells=cells)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1_500_000 / 3  # all releases together would take 8 bytes for each of so many counts


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

    @cached_property
    def noise(self) -> Noise:
        return Script(1.0, self.draws)


def test_by_hand() -> None:
    counts = pd.DataFrame({"sex": ["f", "f", "m"], "job": ["a", "b", "b"], "n": [6, 1, 3]})
    table = cr.tabulate(counts, "sex", "job", count="n")
    # f a, f b, m a, m b: 6 1 0 3 becomes 8 0 2 0; of 10, the same number as before
    found = utility(table, Scripted(epsilon=1.0, draws=(1.6, -0.9, 2.4, -2.6)), ways=(1, 2), releases=2)
    assert found.marginals == (("sex",), ("job",), ("sex", "job"))
    np.testing.assert_allclose(found.tvd[0], [[0.1, 0.1], [0.4, 0.4], [0.4, 0.4]], atol=1e-15)
    np.testing.assert_allclose(found.absolute_error[0], [1.0, 4.0, 2.0])
    np.testing.assert_array_equal(found.standard_error, 0.0)
    np.testing.assert_allclose(found.mean_tvd(1), [0.25])
    np.testing.assert_allclose(found.mean_tvd(), [0.3])
    seen = utility(table, Scripted(epsilon=1.0, draws=(1.6, -0.9, 2.4, -2.6)), ways=2, releases=1, cells="observed")
    assert seen.sizes.tolist() == [3]
    np.testing.assert_allclose(seen.tvd, 0.4)
    np.testing.assert_allclose(seen.absolute_error, (2 + 1 + 3) / 3)
    assert np.isnan(seen.standard_error).all()


@pytest.mark.parametrize("cells", MODES)
def test_nothing_left_is_as_far_as_can_be(table: cr.FrequencyTable, cells: str) -> None:
    n_counts = utility(table, cr.Laplace(epsilon=1.0), releases=1, cells=cells).n_counts
    found = utility(table, Scripted(epsilon=1.0, draws=(-1000.0,) * n_counts), releases=2, cells=cells)
    np.testing.assert_array_equal(found.tvd, 1.0)
    by_job = found.marginals.index(("job",))
    assert found.absolute_error[0, by_job] == pytest.approx(60 / (3 if cells == "domain" else 2))


def rounded(noise: Noise, reach: int = 400) -> np.ndarray:
    """Probabilities of the rounded noise, from -reach to reach."""
    return np.diff(noise.cdf(np.arange(-reach, reach + 2) - 0.5))


@pytest.mark.parametrize(
    "mechanism", [cr.Laplace(epsilon=0.4), cr.Geometric(epsilon=0.5), cr.DiscreteGaussian(epsilon=0.5, delta=0.01)]
)
def test_absolute_error_is_the_expected_one(mechanism: Mechanism) -> None:
    """Counts of 1000 keep their noise; counts of 0 keep its positive part; sums over two levels convolve."""
    counts = pd.DataFrame(product("tuvw", "ab", [1000]), columns=["town", "job", "n"])
    large = cr.tabulate(counts, "town", "job", count="n")
    found = utility(large, mechanism, ways=(1, 2), releases=3000)
    probability = rounded(mechanism.noise)
    distance = np.abs(np.arange(-400, 401))
    each, pair = float(probability @ distance), np.convolve(probability, probability)
    of_two = float(pair @ np.abs(np.arange(-800, 801)))
    within(found, ("town", "job"), each)
    within(found, ("town",), of_two)
    half_empty = cr.tabulate(
        counts.assign(n=[1000, 0] * 4), "town", "job", count="n", levels={"job": ["a", "b"], "town": list("tuvw")}
    )
    empty = float(probability[401:] @ distance[401:])
    within(utility(half_empty, mechanism, ways=2, releases=3000), ("town", "job"), (each + empty) / 2)
    within(utility(half_empty, mechanism, ways=2, releases=3000, cells="observed"), ("town", "job"), each)


def within(found: Utility, marginal: tuple[str, ...], expected: float) -> None:
    row = found.marginals.index(marginal)
    assert abs(found.absolute_error[0, row] - expected) < 4 * found.standard_error[0, row]
    assert 0 < found.standard_error[0, row] < 0.03 * expected


def test_standard_error_is_that_of_the_mean(table: cr.FrequencyTable) -> None:
    many = [utility(table, cr.Laplace(epsilon=1.0), ways=2, releases=50, seed=seed) for seed in range(40)]
    spread = np.std([each.absolute_error[0] for each in many], axis=0, ddof=1)
    told = np.mean([each.standard_error[0] for each in many], axis=0)
    np.testing.assert_allclose(spread, told, rtol=0.5)


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
        np.testing.assert_array_equal(alone.tvd[0], first.tvd[place])


def test_a_full_table_is_its_domain() -> None:
    counts = pd.DataFrame(product("uvw", "xy", "abc"), columns=["town", "sex", "job"]).assign(n=range(1, 19))
    table = cr.tabulate(counts, ["town", "sex"], "job", count="n")
    domain, observed = (utility(table, MECHANISMS, releases=20, cells=cells) for cells in MODES)
    np.testing.assert_allclose(domain.tvd, observed.tvd, rtol=0, atol=1e-14)
    np.testing.assert_allclose(domain.absolute_error, observed.absolute_error, rtol=1e-14)
    np.testing.assert_array_equal(domain.sizes, observed.sizes)


def test_order_of_the_records_does_not_matter(frame: pd.DataFrame, table: cr.FrequencyTable) -> None:
    turned = cr.tabulate(frame[::-1], ["size", "sex", "town"], "job", levels=DOMAINS)
    for cells in MODES:
        first, second = (utility(each, MECHANISMS, releases=2, cells=cells) for each in (table, turned))
        np.testing.assert_array_equal(first.tvd, second.tvd)


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


LAPLACE = cr.Laplace(epsilon=1.0)
REFUSALS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"ways": 5}, InvalidInput, "more attributes than the table; got way 5; allowed: 1 to 4"),
    ({"ways": 0}, InvalidInput, "ways must be a whole number from 1 on; got 0"),
    ({"ways": (1, 2.0)}, InvalidInput, "ways must be a whole number; got float"),
    ({"ways": True}, InvalidInput, "ways must be a whole number; got bool"),
    ({"ways": "12"}, InvalidInput, "ways must be a whole number; got str"),
    ({"ways": ()}, InvalidInput, "no ways were chosen"),
    ({"releases": 0}, InvalidInput, "releases must be a whole number from 1 on; got 0"),
    ({"releases": 1.5}, InvalidInput, "releases must be a whole number; got float"),
    ({"releases": 10**8}, InvalidInput, "too many distances to keep; got 14 marginals, 100,000,000 releases"),
    ({"seed": -1}, InvalidInput, "seed must be a whole number from 0 on; got -1"),
    ({"seed": None}, InvalidInput, "seed must be a whole number; got NoneType"),
    ({"cells": "all"}, UnknownName, "unknown cells; got 'all'; allowed: domain, observed"),
    ({"sensitive": "age"}, UnknownName, "no sensitive attribute 'age'"),
    ({"mechanism": []}, InvalidInput, "no mechanism was given"),
    ({"mechanism": [LAPLACE, 1.0]}, InvalidInput, "utility needs mechanisms; got float"),
    ({"mechanism": None}, InvalidInput, "utility needs mechanisms; got NoneType"),
]


@pytest.mark.parametrize(("given", "kind", "message"), REFUSALS, ids=[message[:40] for _, _, message in REFUSALS])
def test_refusals(table: cr.FrequencyTable, given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        utility(table, **{"mechanism": LAPLACE, "releases": 1, **given})
    assert message in str(caught.value)


def test_whole_numbers_of_numpy_will_do(table: cr.FrequencyTable) -> None:
    found = utility(table, LAPLACE, ways=[np.int64(2)], releases=np.int64(3), seed=np.int32(4))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.tvd, utility(table, LAPLACE, ways=2, releases=3, seed=4).tvd)
    json.dumps(found.to_dict())


def test_too_large_a_domain_is_refused_and_the_observed_cells_are_not() -> None:
    domains = {f"q{number:02}": [*"abcde"] for number in range(30)} | {"job": ["a", "b", "c"]}
    table = cr.tabulate(people(domains, 20), list(domains)[:-1], "job", levels=domains)
    with pytest.raises(InvalidInput) as caught:
        utility(table, LAPLACE, ways=1, releases=1)
    assert str(caught.value) == (
        "a release of the whole domain has too many counts to simulate; got more than 10^21; allowed: up to "
        "200,000,000; noise the observed cells alone (cells='observed', --cells observed), or use fewer or coarser "
        "quasi-identifiers"
    )
    found = utility(table, LAPLACE, ways=1, releases=1, cells="observed")
    assert found.domain_size == 3 * 5**30
    assert found.n_counts == 3 * table.n_cells
    with pytest.raises(InvalidInput, match=r"too many marginals; got \d+; allowed: up to 100,000"):
        utility(table, LAPLACE, ways=6, releases=1, cells="observed")


@pytest.mark.parametrize("cells", MODES)
def test_the_limit_on_counts(table: cr.FrequencyTable, monkeypatch: pytest.MonkeyPatch, cells: str) -> None:
    n_counts = utility(table, LAPLACE, releases=1, cells=cells).n_counts
    monkeypatch.setattr(package, "MOST_COUNTS", n_counts)
    utility(table, LAPLACE, releases=1, cells=cells)
    monkeypatch.setattr(package, "MOST_COUNTS", n_counts - 1)
    with pytest.raises(InvalidInput, match=rf"too many counts to simulate; got {n_counts}; .*fewer or coarser"):
        utility(table, LAPLACE, releases=1, cells=cells)


@pytest.fixture(scope="module")
def found(table: cr.FrequencyTable) -> Utility:
    return utility(table, MECHANISMS[:2], ways=(1, 2), releases=5)


def test_values(found: Utility) -> None:
    np.testing.assert_array_equal(found.values(1, 2), found.tvd[1, 4:].ravel())
    assert found.mean_tvd(2)[1] == pytest.approx(found.values(1, 2).mean())
    for place in (-1, 2):
        with pytest.raises(InvalidInput, match="no such mechanism"):
            found.values(place, 1)
    for way in (0, 3):
        with pytest.raises(InvalidInput, match="no marginals of that way"):
            found.mean_tvd(way)


def test_frame(found: Utility) -> None:
    frame = found.to_frame()
    assert list(frame.columns) == [
        *("mechanism", "epsilon", "delta", "cells", "way", "marginal", "release", "statistic", "value")
    ]
    assert len(frame) == 2 * 10 * (5 + 1)
    assert set(frame["cells"]) == {"domain"}
    for place, mechanism in enumerate(found.mechanisms):
        for row, columns in enumerate(found.marginals):
            mine = frame[(frame["mechanism"] == mechanism.name) & (frame["marginal"] == " x ".join(columns))]
            assert set(mine["epsilon"]) == {mechanism.epsilon}
            assert set(mine["way"]) == {len(columns)}
            tvd = mine[mine["statistic"] == "tvd"]
            assert tvd["release"].tolist() == [0, 1, 2, 3, 4]
            assert tvd["value"].tolist() == found.tvd[place, row].tolist()
            error = mine[mine["statistic"] == "absolute_error"]
            assert error["release"].isna().tolist() == [True]
            assert error["value"].tolist() == [found.absolute_error[place, row]]


def test_document(found: Utility) -> None:
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(document) == [
        *("sensitive", "cells", "releases", "seed", "domain_size", "settings", "marginals", "headline")
    ]
    assert (document["sensitive"], document["releases"], document["domain_size"]) == ("job", 5, 72)
    laplace, geometric = document["settings"]
    assert "threshold" not in laplace
    assert geometric["threshold"] == 2.5
    assert list(laplace) == ["name", "epsilon", "delta", "scale", "neighbours", "ways"]
    assert (laplace["name"], laplace["scale"]) == ("laplace", 2.0)
    second = laplace["ways"][1]
    values = sorted(found.tvd[0, 4:].ravel())  # thirty of them
    assert (second["way"], second["marginals"]) == (2, 6)
    assert second["mean"] == pytest.approx(sum(values) / 30)
    assert second["median"] == pytest.approx((values[14] + values[15]) / 2)
    assert second["low"] == pytest.approx(values[1] + 0.45 * (values[2] - values[1]))
    assert second["high"] == pytest.approx(values[27] + 0.55 * (values[28] - values[27]))
    last = document["marginals"][-1]
    assert (last["columns"], last["way"], last["cells"]) == (["town", "job"], 2, 12)
    assert last["tvd"] == pytest.approx([found.tvd[place, -1].mean() for place in (0, 1)])
    assert last["absolute_error"] == found.absolute_error[:, -1].tolist()
    json.dumps(utility(found.table, LAPLACE, releases=1).to_dict(), allow_nan=False)


def test_sentence(found: Utility) -> None:
    values = found.tvd[0, 4:].ravel()
    assert found.headline == (
        f"At epsilon 0.5, a 2-way marginal of a released table differs from the true one by a TVD of "
        f"{values.mean():.2g} on average ({np.quantile(values, 0.05):.2g} to {np.quantile(values, 0.95):.2g} in 90% of "
        f"releases and marginals): {100 * values.mean():.1f}% of the records would have to move."
    )
    noisy = utility(found.table, MECHANISMS[2:], ways=3, releases=2)
    assert noisy.headline.startswith("At epsilon 1 and delta 0.01, a 3-way marginal ")


def lines_of(text: str) -> Iterator[list[str]]:
    return (line.split() for line in text.splitlines())


def test_print(found: Utility, frame: pd.DataFrame) -> None:
    text = str(found)
    assert text.startswith(found.headline)
    assert text.endswith(CURATOR_NOTE)
    assert ["mechanism", "epsilon", "threshold", "way", "marginals", "mean", "median", "5%", "95%"] in lines_of(text)
    rows = [line for line in lines_of(text) if line[:1] in (["laplace"], ["geometric"])]
    assert [row[:5] for row in rows] == [
        ["laplace", "0.5", "0.5", "1", "4"],
        ["laplace", "0.5", "0.5", "2", "6"],
        ["geometric", "1", "2.5", "1", "4"],
        ["geometric", "1", "2.5", "2", "6"],
    ]
    assert rows[3][5] == f"{found.mean_tvd(2)[1]:.4f}"
    assert "24 combinations of the quasi-identifiers times 3 levels, 72 counts" in text
    assert "not declared" not in text
    guessed = cr.tabulate(frame, ["size", "sex", "town"], "job", levels={"sex": DOMAINS["sex"]})
    assert "The values of 3 of the 4 attributes were taken from the data, not declared" in str(
        utility(guessed, LAPLACE, releases=1)
    )


def test_print_says_what_observed_cells_mean(table: cr.FrequencyTable) -> None:
    text = str(utility(table, MECHANISMS[2], releases=2, cells="observed"))
    header = ["mechanism", "neighbours", "epsilon", "delta", "way", "marginals", "mean", "median", "5%", "95%"]
    assert header in lines_of(text)
    assert f"Noise on the {table.n_cells} non-empty cells times 3 levels alone" in text
    assert "the guarantee of differential privacy does not cover it" in text


def test_picture(found: Utility, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = SimpleNamespace(draw_utility=lambda drawn: ("figure", drawn), save=lambda *what: ("saved", *what))
    monkeypatch.setitem(sys.modules, "cellrisk.pictures", pictures)
    assert found.plot() == ("figure", found)
    assert found.plot("utility.svg") == ("saved", ("figure", found), "utility.svg")


@pytest.mark.parametrize(
    "change",
    [
        {"cells": "all"},
        {"mechanisms": ()},
        {"releases": 4},
        {"sizes": np.zeros(3, np.int64)},
        {"absolute_error": np.zeros((2, 9))},
        {"standard_error": np.zeros((1, 10))},
        {"tvd": np.full((2, 10, 5), 1.5)},
        {"tvd": np.full((2, 10, 5), np.nan)},
    ],
    ids=str,
)
def test_a_utility_is_checked_when_made(found: Utility, change: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, UnknownName)):
        dataclasses.replace(found, **change)
