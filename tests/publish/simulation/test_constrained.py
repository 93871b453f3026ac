"""`simulate` with parents: against enumeration over the noise's lattice, its two ends, and what it refuses."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.publish.simulation import simulate
from tests.publish.simulation import cases
from tests.refusals import refused

CELLS = [[3, 0, 0], [2, 1, 0], [0, 1, 0], [5, 4, 1], [0, 6, 0], [0, 0, 0], [1, 1, 0]]


make = partial(cases.make, declared=True)


def totals(cells: Sequence[Sequence[int]]) -> pd.DataFrame:
    """The true size of each cell, as if it were published."""
    return pd.DataFrame({"cell": [f"{place:04}" for place in range(len(cells))], "count": [sum(c) for c in cells]})


def nearest(noisy: Sequence[int], total: int) -> list[tuple[int, ...]]:
    """Every way to share the total that is nearest to the noisy counts: by trying all."""
    ways = [way for way in itertools.product(range(total + 1), repeat=len(noisy)) if sum(way) == total]
    far = [sum((x - y) ** 2 for x, y in zip(way, noisy, strict=True)) for way in ways]
    return [way for way, distance in zip(ways, far, strict=True) if distance == min(far)]


def enumerate_risk(cell: Sequence[int], epsilon: float, reach: int, total: int | None) -> dict[str, float]:
    """Exact and tight local risk of one cell: every pair of noises, and every nearest way, with its probability.

    total: what the released counts add up to; None: they are clamped and not constrained.
    """
    a = math.exp(-epsilon)
    chance = {j: (1 - a) / (1 + a) * a ** abs(j) for j in range(-reach, reach + 1)}
    found = {"exact": 0.0, "tight": 0.0}
    for noises in itertools.product(chance, repeat=len(cell)):
        noisy = [count + noise for count, noise in zip(cell, noises, strict=True)]
        ways = [tuple(max(y, 0) for y in noisy)] if total is None else nearest(noisy, total)
        for way in ways:
            shown = [place for place, x in enumerate(way) if x > 0]
            if len(shown) == 1 and cell[shown[0]] > 0:
                p = math.prod(chance[noise] for noise in noises) / len(ways)
                found["exact"] += p
                found["tight"] += p * cell[shown[0]] / sum(cell)
    return found


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("cell", [(3, 0), (2, 1), (4, 2)], ids=str)
def test_agrees_with_enumeration(cell: tuple[int, ...], epsilon: float) -> None:
    """20,000 releases, within 4.5 standard errors; the enumeration leaves out less than 1e-5."""
    found = simulate(make([cell]), cr.Geometric(epsilon=epsilon), parents=totals([cell]), releases=20_000, seed=4)
    exact = enumerate_risk(cell, epsilon, math.ceil(13 / epsilon), sum(cell))
    for form, risk in exact.items():
        estimate = found.value(form=form)
        assert 0 < estimate.standard_error < 0.004
        assert abs(estimate.mean - risk) < 4.5 * estimate.standard_error + 1e-5
    assert found.post_processed
    assert found.attackers == ()


def test_three_levels_and_a_parent_that_is_off_agree_with_enumeration() -> None:
    """A published parent is itself noisy: here 3 for 2 people."""
    cell, published = (1, 1, 0), totals([[3]])
    found = simulate(make([cell]), cr.Geometric(epsilon=1.5), parents=published, releases=20_000)
    for form, risk in enumerate_risk(cell, 1.5, 8, 3).items():
        estimate = found.value(form=form)
        assert abs(estimate.mean - risk) < 4.5 * estimate.standard_error + 1e-4


@pytest.mark.parametrize(
    ("cell", "epsilon", "direction"),
    [((3, 0), 0.5, "up"), ((3, 0), 1.0, "up"), ((4, 3), 1.0, "down"), ((2, 1), 0.3, "up")],
    ids=str,
)
def test_parents_raise_the_risk_or_lower_it(cell: tuple[int, ...], epsilon: float, direction: str) -> None:
    """Less noise is left: up for a homogeneous cell, down for one with two labels; up for it too where chance rules."""
    found = simulate(make([cell]), cr.Geometric(epsilon=epsilon), parents=totals([cell]), releases=20_000)
    free = cr.assess(make([cell]), cr.Geometric(epsilon=epsilon), measures="local").value(form="exact")
    assert math.isclose(free, enumerate_risk(cell, epsilon, math.ceil(13 / epsilon), None)["exact"], abs_tol=1e-4)
    estimate = found.value(form="exact")
    difference = (estimate.mean - free) * (1 if direction == "up" else -1)
    assert difference > 0.01 + 4.5 * estimate.standard_error


@pytest.mark.parametrize(
    "mechanism", [cr.Geometric(epsilon=50.0), cr.Laplace(epsilon=50.0)], ids=lambda each: each.name
)
@pytest.mark.parametrize("published", [totals(CELLS), pd.DataFrame({"count": [25]})], ids=["cells", "total"])
def test_little_noise_gives_the_raw_risk(mechanism: cr.Mechanism, published: pd.DataFrame) -> None:
    table = make(CELLS)
    found = simulate(table, mechanism, parents=published, releases=50)
    assessed = cr.assess(table, mechanism, measures="local", forms=("exact", "tight"))
    for row, ends in zip(assessed.risks, assessed.limits, strict=True):
        estimate = found.value(form=row.form, weights=row.weights)
        assert math.isclose(estimate.mean, ends.raw, abs_tol=1e-12)
        assert estimate.standard_error == 0


@pytest.mark.slow
def test_simulated_releases_are_those_of_release() -> None:
    """The homogeneity attack on 400 releases from OpenDP, with excluded counts, and on 4,000 simulated ones."""
    pytest.importorskip("opendp")
    cells, rule = [[3, 0, 0], [2, 1, 0], [0, 0, 0], [0, 4, 0]], [{"cell": "0000", "y": "c"}]
    table, mechanism, published = (
        make(cells),
        cr.Geometric(epsilon=0.7),
        pd.DataFrame({"y": list("abc"), "count": [5, 5, 1]}),
    )
    found = simulate(table, mechanism, parents=published, exclude=rule, releases=4000, seed=2).value(
        form="exact", weights="uniform"
    )
    truth, risks = np.array(cells)[[0, 1, 3]], []
    for _ in range(400):
        frame = cr.release(table, mechanism, parents=published, exclude=rule).frame
        counts = np.zeros((4, 3), np.int64)
        counts[frame.cell.cat.codes, frame.y.cat.codes] = frame["count"]
        shown = counts[[0, 1, 3]] > 0
        risks.append(((shown.sum(axis=1) == 1) & (shown & (truth > 0)).any(axis=1)).mean())
    error = math.hypot(found.standard_error, np.std(risks, ddof=1) / 20.0)
    assert abs(np.mean(risks) - found.mean) < 4.5 * error


def test_the_answer_is_a_simulation() -> None:
    shares: list[float] = []
    found = simulate(
        make(CELLS),
        cr.DiscreteGaussian(epsilon=1.0, delta=0.01),
        parents=totals(CELLS),
        releases=60,
        progress=shares.append,
    )
    assert isinstance(found, cr.Simulation)
    assert shares[-1] == 1
    assert "simulated post-processed releases with noise of" in found.headline
    assert {row.name["attack"] for row in found.estimates} == {"homogeneity", "plurality", "proportional"}
    assert json.loads(json.dumps(found.to_dict()))["post_processed"] is True
    nothing_shown = {each.name["number"]: each.mean for each in found.scenarios}
    assert nothing_shown[4] == nothing_shown[6] == 0  # every cell has a positive parent


def test_a_level_for_missing_values_is_part_of_the_domain() -> None:
    levels = [*"abc", "(missing)"]
    published = pd.DataFrame({"y": levels, "count": [10, 8, 3, 5]})
    found = simulate(make(CELLS), cr.Geometric(epsilon=1.0), parents=published, may_be_missing="y", releases=50)
    assert 0 < found.value().mean < 1
    with refused("other-labels"):
        simulate(make(CELLS), cr.Geometric(epsilon=1.0), parents=published, releases=50)


def test_bad_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table, geometric, published = make(CELLS), cr.Geometric(epsilon=1.0), totals(CELLS)
    with pytest.raises(InvalidInput, match="no epsilon was given for geometric"):
        simulate(table, "geometric", parents=published)
    with refused("parents"):
        simulate(table, cr.Geometric(epsilon=1.0, threshold=1.5), parents=published)
    with refused("no-column"):
        simulate(table, geometric, parents=published, parent_count="n")
    monkeypatch.setattr("cellrisk.publish.simulation.drawing.MOST_COUNTS", 20)
    with refused("too-large", "got 21 counts"):
        simulate(table, geometric, parents=published)
