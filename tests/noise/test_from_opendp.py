"""Objects of OpenDP as mechanisms and back: OpenDP's own privacy map and its own noise are the second opinion."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts.unit import Unit
from cellrisk.errors import CellriskError, InvalidInput
from tests.near import near
from tests.publish.auditing.test_peers import peers

REPOSITORY = Path(__file__).resolve().parents[2]
OFFLINE = ("dns error", "network", "Failed to fetch", "error sending request")
TEXTS = ["a", "b", "a", "c"]
LABELS = ["a", "b"]


@pytest.fixture(autouse=True)
def _features() -> None:
    dp.enable_features("contrib")


def on_counts(make: Callable[..., Any], scale: float, kind: str = "i64", **more: Any) -> Any:
    atoms = dp.atom_domain(T=kind, nan=False) if kind == "f64" else dp.atom_domain(T=kind)
    metric = dp.l2_distance(T="f64") if make is dp.m.make_gaussian else dp.l1_distance(T=kind)
    return make(dp.vector_domain(atoms), metric, scale=scale, **more)


def count_labels(metric: Any = None, distance: Any = None) -> Any:
    space = dp.vector_domain(dp.atom_domain(T=str)), metric or dp.symmetric_distance()
    more = {} if distance is None else {"MO": distance}
    return dp.t.make_count_by_categories(*space, LABELS, null_category=False, TOA="i64", **more)


def query(epsilon: float = 0.25, data: list[str] = TEXTS) -> Any:
    context = dp.Context.compositor(
        data=data,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
    )
    return context.query()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", [Unit(), Unit(3), Unit(5, 2)])
@pytest.mark.parametrize("epsilon", [0.013, 5.0])
def test_there_and_back(epsilon: float, unit: Unit, neighbours: Any) -> None:
    for made in (
        cr.Geometric(epsilon=epsilon, neighbours=neighbours, unit=unit),
        cr.DiscreteGaussian(epsilon=epsilon, delta=1e-6, neighbours=neighbours, unit=unit),
    ):
        how: dict[str, Any] = {"scale": made.scale, "neighbours": neighbours, "delta": None if made.pure else 1e-6}
        how |= {"contributions": unit.contributions, "per_group": unit.per_group}
        found = cr.from_opendp(made.to_opendp(), **how)
        assert type(found) is type(made)
        assert found.epsilon == near(made.epsilon)
        assert found.scale == near(made.scale)
        assert (found.delta, found.neighbours, found.threshold) == (made.delta, neighbours, 0.5)


@pytest.mark.parametrize("contributions", [2, 3])
def test_a_query_for_people_with_several_records(contributions: int) -> None:
    unit, loss = dp.unit_of(contributions=contributions), dp.loss_of(epsilon=0.6)
    context = dp.Context.compositor(data=TEXTS, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1)
    counts = context.query().count_by_categories(LABELS, null_category=False).laplace()
    assert cr.from_opendp(counts, contributions=contributions).epsilon == near(0.6)
    assert cr.from_opendp(counts).epsilon == near(0.6 / contributions)


def test_the_measurement_is_the_one_that_release_uses() -> None:
    from cellrisk.publish.releasing.measurement import calibrate

    for made in (cr.Geometric(epsilon=0.3, neighbours="replace"), cr.DiscreteGaussian(epsilon=0.3, delta=1e-5)):
        measurement, used = made.to_opendp(), calibrate(made)
        loss = measurement.map(2 if made.neighbours == "replace" else 1)
        assert loss == near(used.loss)
        assert loss <= (made.epsilon if isinstance(made, cr.Geometric) else made.rho)
        assert len(measurement([0, 5, 10**6])) == 3


@pytest.mark.parametrize("name", ["laplace", "gaussian", "gaussian-pdp", "gaussian-analytic"])
def test_continuous_noise_has_no_measurement(name: Any) -> None:
    made = cr.mechanism(name, epsilon=0.5, delta=None if name == "laplace" else 1e-6)
    with pytest.raises(InvalidInput, match="its digits reveal the count"):
        made.to_opendp()


def test_noise_on_floats_is_continuous() -> None:
    found = cr.from_opendp(on_counts(dp.m.make_laplace, 4.0, "f64"), scale=4.0, neighbours="replace")
    assert isinstance(found, cr.Laplace)
    assert found.epsilon == near(0.5)
    how: dict[str, Any] = {"scale": 4.0, "neighbours": "add-remove", "delta": 1e-6}
    gaussian = cr.from_opendp(on_counts(dp.m.make_gaussian, 4.0, "f64"), **how)
    assert isinstance(gaussian, cr.AnalyticGaussian)
    assert gaussian.scale == near(4.0)


def test_records_that_are_not_whole_numbers_are_counted_in_whole_numbers() -> None:
    records = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.symmetric_distance()
    measurement = dp.t.make_count(*records) >> dp.m.then_laplace(scale=2.0)
    assert cr.from_opendp(measurement, scale=2.0) == cr.Geometric(epsilon=0.5)


def test_epsilon_of_gaussian_noise_by_opendps_conversion() -> None:
    measurement = count_labels(distance=dp.L2Distance["f64"]) >> dp.m.then_gaussian(scale=3.0)
    profile = dp.c.make_zCDP_to_approxDP(measurement).map(1)
    found = cr.from_opendp(measurement, scale=3.0, delta=1e-7)
    assert isinstance(found, cr.DiscreteGaussian)
    assert found.neighbours == "add-remove"
    assert found.epsilon == pytest.approx(profile.epsilon(1e-7), rel=1e-6, abs=0)


def test_measurements_on_records_state_how_neighbours_differ() -> None:
    added = cr.from_opendp(count_labels() >> dp.m.then_laplace(scale=4.0), scale=4.0)
    assert (added.name, added.neighbours) == ("geometric", "add-remove")
    assert added.epsilon == near(0.25)
    records = dp.vector_domain(dp.atom_domain(T="i32"), size=4), dp.change_one_distance()
    counted = dp.t.make_metric_unbounded(*records) >> dp.t.then_count_by_categories([1, 2], null_category=False)
    found = cr.from_opendp(counted >> dp.m.then_laplace(scale=4.0), scale=4.0)
    assert found == cr.Geometric(epsilon=0.5, neighbours="replace")


def test_queries() -> None:
    found = cr.from_opendp(query().count_by_categories(LABELS, null_category=False).laplace())
    assert (found.name, found.neighbours) == ("geometric", "add-remove")
    assert found.epsilon == near(0.25)


def test_one_line_to_every_figure_of_a_release() -> None:
    """A table that OpenDP released: what it would give away, what nobody exceeds, and what it did give away."""
    people = [("f", "north", "cook")] * 9 + [("f", "south", "cook")] * 4 + [("m", "south", "smith")] * 7
    cells = [(sex, town, job) for sex in "fm" for town in ("north", "south") for job in ("cook", "smith")]
    labels = ["/".join(cell) for cell in cells]
    counted = query(2.0, ["/".join(person) for person in people]).count_by_categories(labels, null_category=False)
    asked = counted.laplace()
    table = cr.tabulate(pd.DataFrame(people, columns=["sex", "town", "job"]), ["sex", "town"], "job", count=False)
    released = pd.DataFrame(cells, columns=["sex", "town", "job"]).assign(n=asked.release())
    mechanism = cr.from_opendp(asked)
    assert cr.assess(table, mechanism, measures="local").mechanism.epsilon == near(2.0)
    assert cr.ceiling(mechanism).even == near(math.exp(2) / (1 + math.exp(2)))
    audited = cr.audit(table, released, count="n", mechanism=mechanism)
    assert "What an attacker can be sure of is not computed" not in str(audited)  # the mechanism is known
    positive = released[released["n"] > 0]
    alone = positive[~positive.duplicated(["sex", "town"], keep=False)]
    shown = {tuple(row) for row in alone[["sex", "town", "job"]].itertuples(index=False)}
    assert audited.value("disco") == near(sum(person in shown for person in people) / len(people))


COUNTS: dict[str, Any] = {"scale": 2.0, "neighbours": "replace"}
REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "no object of OpenDP": ("not-opendp", lambda: (object(), {})),
    "a text": ("not-opendp", lambda: ("geometric", {})),
    "a domain": ("not-opendp", lambda: (dp.atom_domain(T="i64"), {})),
    "the scale is not known": ("opendp-scale", lambda: (on_counts(dp.m.make_laplace, 2.0), {"neighbours": "replace"})),
    "another scale": ("opendp-loss", lambda: (on_counts(dp.m.make_laplace, 2.5), COUNTS)),
    "neighbours are not known": ("opendp-neighbours", lambda: (on_counts(dp.m.make_laplace, 2.0), {"scale": 2.0})),
    "two stories of neighbours": (
        "opendp-neighbours",
        lambda: (count_labels() >> dp.m.then_laplace(scale=2.0), COUNTS),
    ),
    "a delta for Laplace noise": ("delta", lambda: (on_counts(dp.m.make_laplace, 2.0), {**COUNTS, "delta": 1e-6})),
    "no delta for Gaussian noise": ("delta", lambda: (on_counts(dp.m.make_gaussian, 2.0), COUNTS)),
    "a delta that needs no epsilon": (
        "delta",
        lambda: (on_counts(dp.m.make_gaussian, 1e3), {"scale": 1e3, "neighbours": "add-remove", "delta": 0.5}),
    ),
    "a loss that was converted": (
        "opendp-measure",
        lambda: (dp.c.make_zCDP_to_approxDP(on_counts(dp.m.make_gaussian, 2.0)), {**COUNTS, "delta": 1e-6}),
    ),
    "a threshold": (
        "opendp-measure",
        lambda: (
            dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance(), TV="i64")
            >> dp.m.then_laplace_threshold(scale=2.0, threshold=40),
            {"scale": 2.0},
        ),
    ),
    "a sum": (
        "opendp-loss",
        lambda: (
            dp.t.make_sum(dp.vector_domain(dp.atom_domain(bounds=(0, 9))), dp.symmetric_distance())
            >> dp.m.then_laplace(scale=2.0),
            {"scale": 2.0},
        ),
    ),
    "other noise": ("opendp-metric", lambda: (dp.m.make_randomized_response_bool(0.75), COUNTS)),
    "an unfinished query": (
        "opendp-unfinished",
        lambda: (query().count_by_categories(LABELS, null_category=False), {}),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_known_is_refused(case: str) -> None:
    code, make = REFUSED[case]
    given, how = make()
    with pytest.raises(CellriskError) as refused:
        cr.from_opendp(given, **how)
    assert refused.value.code == code


def test_words_and_numbers_are_checked() -> None:
    for how, told in (
        ({"neighbours": "near"}, "unknown neighbours"),
        ({"scale": -1.0}, "scale must be"),
    ):
        with pytest.raises(CellriskError, match=told):
            cr.from_opendp(on_counts(dp.m.make_laplace, 2.0), **{**COUNTS, **how})
    with pytest.raises(CellriskError, match="delta must be"):
        cr.from_opendp(on_counts(dp.m.make_gaussian, 2.0), **COUNTS, delta=1.5)


def read_frame_queries(*python: str, few: bool = False) -> dict[str, dict[str, Any]]:
    """What `frame_queries.py` finds in another environment, which has the Polars that its OpenDP asks for."""
    done = subprocess.run(
        [*python, str(Path(__file__).with_name("frame_queries.py")), *(["--few"] if few else [])],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "UV_PYTHON_DOWNLOADS": "never"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "No module named 'opendp'" in done.stderr:
        pytest.skip("OpenDP is not among the peers; run: make clean peers")
    if any(sign in done.stderr for sign in OFFLINE):
        pytest.skip("packages cannot be fetched here")
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def check_few(found: dict[str, dict[str, Any]]) -> None:
    declared = found["declared keys"]
    assert (declared["kind"], declared["neighbours"], declared["threshold"]) == ("Geometric", "add-remove", 0.5)
    assert declared["scale"] == near(2.0)
    assert found["keys of the data, looked at"]["threshold"] == 33.5
    assert found["keys of the data, looked at"]["scale"] == near(2.0)
    assert found["concentrated"]["kind"] == "DiscreteGaussian"
    assert found["concentrated"]["scale"] == near(math.sqrt(2.0))
    assert "if not every combination of the keys is declared" in found["keys not stated"]["refused"]


@pytest.mark.slow
def test_queries_over_frames() -> None:
    found = read_frame_queries(str(peers()))
    check_few(found)
    assert found["changes"]["neighbours"] == "replace"
    assert found["changes"]["scale"] == near(4.0)
    assert found["three records"]["epsilon"] == near(0.5 / 3)  # of one record
    refused = {name: words["refused"] for name, words in found.items() if "refused" in words}
    assert set(refused) == {"keys of the data", "keys not stated", "public counts", "two counts"}
    assert "Frame Length, Length" in refused["two counts"]
    assert "above a threshold" in refused["keys of the data"]
    assert "adds no integer" in refused["public counts"]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.14.2", "0.15.1"])
def test_queries_over_frames_in_older_versions(version: str) -> None:
    """The newest is among the peers; older ones get an environment that uv keeps for the next time."""
    pytest.importorskip("uv", reason="make setup installs what makes environments")
    needed = [f"opendp[polars]=={version}", "scipy"]
    uv = [sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--isolated", "--python", sys.executable]
    python = [*uv, *(word for each in needed for word in ("--with", each)), "python"]
    check_few(read_frame_queries(*python, few=True))
