"""`utility`: what is refused, and how the result is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.decide.usefulness import Utility, utility
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.system.formatting import CURATOR_NOTE
from tests.decide.usefulness.definition import DOMAINS, MECHANISMS, people
from tests.near import near

LAPLACE = cr.Laplace(epsilon=1.0)
REFUSALS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"ways": 5}, InvalidInput, "more attributes than the table; got way 5; allowed: 1 to 4"),
    ({"ways": 0}, InvalidInput, "ways must be a whole number from 1 on; got 0"),
    ({"ways": (1, 2.0)}, InvalidInput, "ways must be a whole number; got float"),
    ({"ways": True}, InvalidInput, "ways must be a whole number; got bool"),
    ({"ways": "12"}, InvalidInput, "ways must be a whole number; got str"),
    ({"ways": ()}, InvalidInput, "no ways were chosen"),
    ({"releases": 0}, InvalidInput, "releases must be a whole number from 1 to 50,000,000; got 0"),
    ({"releases": 1.5}, InvalidInput, "releases must be a whole number; got float"),
    (
        {"releases": 10**7},
        InvalidInput,
        "too many distances to keep; got 14 marginals, 10,000,000 releases, 1 mechanism;",
    ),
    ({"seed": -1}, InvalidInput, "seed must be a whole number from 0 on; got -1"),
    ({"seed": None}, InvalidInput, "seed must be a whole number; got NoneType"),
    ({"cells": "all"}, UnknownName, "unknown cells; got 'all'; allowed: domain, observed"),
    ({"sensitive": "age"}, UnknownName, "no sensitive attribute 'age'"),
    ({"mechanism": []}, InvalidInput, "no mechanism was given"),
    ({"mechanism": [LAPLACE, 1.0]}, InvalidInput, "a list of mechanisms holds objects and names"),
    ({"mechanism": None}, InvalidInput, "a mechanism is an object or a name; got NoneType"),
    ({"epsilon": 1.0}, InvalidInput, "takes none beside it: epsilon="),
    ({"mechanism": "laplace"}, InvalidInput, "no epsilon was given for laplace"),
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
        "200,000,000; noise the observed cells alone with cells='observed', or use fewer or coarser "
        "quasi-identifiers"
    )
    found = utility(table, LAPLACE, ways=1, releases=1, cells="observed")
    assert found.domain_size == 3 * 5**30
    assert found.n_counts == 3 * table.n_cells
    with pytest.raises(InvalidInput, match=r"too many marginals; got \d+; allowed: up to 100,000"):
        utility(table, LAPLACE, ways=6, releases=1, cells="observed")


@pytest.fixture(scope="module")
def found(table: cr.FrequencyTable) -> Utility:
    return utility(table, MECHANISMS[:2], ways=(1, 2), releases=5)


def test_values(found: Utility) -> None:
    np.testing.assert_array_equal(found.values(1, 2), found.tvd[1, 4:].ravel())
    assert found.mean_tvd(2)[1] == near(found.values(1, 2).mean())
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
        *("sensitive", "unit", "cells", "releases", "seed", "domain_size", "settings", "marginals", "headline")
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
    assert (last["columns"], last["way"], last["cells"]) == (["town", "job"], 2, 12)
    assert last["tvd"] == near([found.tvd[place, -1].mean() for place in (0, 1)])
    assert last["absolute_error"] == found.absolute_error[:, -1].tolist()
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


def test_print_says_what_observed_cells_mean(table: cr.FrequencyTable) -> None:
    text = utility(table, MECHANISMS[2], releases=2, cells="observed").details
    header = ["mechanism", "neighbours", "epsilon", "delta", "way", "marginals", "mean", "median", "5%", "95%"]
    assert header in lines_of(text)
    assert f"Noise on the {table.n_cells} groups that hold people times 3 categories alone" in text
    assert "the guarantee of differential privacy does not cover it" in " ".join(text.split())


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
