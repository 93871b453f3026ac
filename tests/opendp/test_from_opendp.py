"""Objects of OpenDP as mechanisms and back: OpenDP's own privacy map and its own noise are the second opinion."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from tests.auditing.test_peers import peers
from tests.near import near

REPOSITORY = Path(__file__).resolve().parents[2]
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


def query(**unit: int) -> Any:
    context = dp.Context.compositor(
        data=TEXTS,
        privacy_unit=dp.unit_of(**(unit or {"contributions": 1})),
        privacy_loss=dp.loss_of(epsilon=0.25),
        split_evenly_over=1,
    )
    return context.query()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [0.013, 0.7, 5.0])
def test_there_and_back(epsilon: float, neighbours: Any) -> None:
    for made in (
        cr.Geometric(epsilon=epsilon, neighbours=neighbours),
        cr.DiscreteGaussian(epsilon=epsilon, delta=1e-6, neighbours=neighbours),
    ):
        found = cr.from_opendp(made.to_opendp(), neighbours=neighbours, delta=None if made.pure else 1e-6)
        assert type(found) is type(made)
        assert found.epsilon == near(made.epsilon)
        assert found.scale == near(made.scale)
        assert (found.delta, found.neighbours, found.threshold) == (made.delta, neighbours, 0.5)


def test_the_measurement_is_the_one_that_release_uses() -> None:
    from cellrisk.publish.releasing.measurement import calibrate

    for made in (cr.Geometric(epsilon=0.3, neighbours="replace"), cr.DiscreteGaussian(epsilon=0.3, delta=1e-5)):
        measurement, used = made.to_opendp(), calibrate(made)
        assert measurement.__opendp_dict__["__kwargs__"]["scale"] == near(used.scale)
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
    found = cr.from_opendp(on_counts(dp.m.make_laplace, 4.0, "f64"), neighbours="replace")
    assert isinstance(found, cr.Laplace)
    assert found.epsilon == near(0.5)
    gaussian = cr.from_opendp(on_counts(dp.m.make_gaussian, 4.0, "f64"), neighbours="add-remove", delta=1e-6)
    assert isinstance(gaussian, cr.AnalyticGaussian)
    assert gaussian.scale == near(4.0)


def test_epsilon_of_gaussian_noise_by_opendps_conversion() -> None:
    measurement = count_labels(distance=dp.L2Distance["f64"]) >> dp.m.then_gaussian(scale=3.0)
    profile = dp.c.make_zCDP_to_approxDP(measurement).map(1)
    found = cr.from_opendp(measurement, delta=1e-7)
    assert isinstance(found, cr.DiscreteGaussian)
    assert found.neighbours == "add-remove"
    assert found.epsilon == pytest.approx(profile.epsilon(1e-7), rel=1e-6)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta=1e-7)
    assert cr.from_opendp(fixed).epsilon == near(found.epsilon)
    assert cr.from_opendp(fixed, delta=1e-7).delta == 1e-7


def test_measurements_on_records_say_how_neighbours_differ() -> None:
    added = cr.from_opendp(count_labels() >> dp.m.then_laplace(scale=4.0))
    assert (added.name, added.neighbours) == ("geometric", "add-remove")
    assert added.epsilon == near(0.25)
    total = dp.t.make_count(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance(), TO="i64")
    assert cr.from_opendp(total >> dp.m.then_laplace(scale=4.0)).epsilon == near(0.25)


def test_queries() -> None:
    found = cr.from_opendp(query().count_by_categories(LABELS, null_category=False).laplace())
    assert (found.name, found.neighbours) == ("geometric", "add-remove")
    assert found.epsilon == near(0.25)


def test_a_threshold() -> None:
    counted = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance(), TV="i64")
    measurement = counted >> dp.m.then_laplace_threshold(scale=2.0, threshold=40)
    with pytest.raises(InvalidInput, match="keys of the data"):
        cr.from_opendp(measurement)
    found = cr.from_opendp(measurement, observed_keys=True)
    assert found.threshold == 39.5  # 40 itself is kept
    assert found.epsilon == near(0.5)


def test_one_line_to_every_figure() -> None:
    table = cr.tabulate(cr.datasets.adult(), ["age", "sex"], "income", bins={"age": 20})
    measurement = count_labels() >> dp.m.then_laplace(scale=1.0)
    found = cr.assess(table, cr.from_opendp(measurement), measures="local")
    expected = cr.assess(table, "geometric", epsilon=1.0, measures="local")
    assert found.value("local", "tight") == near(expected.value("local", "tight"))
    assert cr.ceiling(cr.from_opendp(measurement)).success == near(cr.ceiling(cr.Geometric(epsilon=1.0)).success)


REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "no object of OpenDP": ("no query or measurement of OpenDP", lambda: (object(), {})),
    "a text": ("no query or measurement of OpenDP", lambda: ("geometric", {})),
    "a domain": ("no count query", lambda: (dp.atom_domain(T="i64"), {})),
    "neighbours are not known": ("does not say how far", lambda: (on_counts(dp.m.make_laplace, 2.0), {})),
    "no such neighbours": ("neighbours", lambda: (on_counts(dp.m.make_laplace, 2.0), {"neighbours": "near"})),
    "two stories of neighbours": (
        "itself says",
        lambda: (count_labels() >> dp.m.then_laplace(scale=2.0), {"neighbours": "replace"}),
    ),
    "a delta for Laplace noise": (
        "takes no delta",
        lambda: (on_counts(dp.m.make_laplace, 2.0), {"neighbours": "replace", "delta": 1e-6}),
    ),
    "no delta for Gaussian noise": (
        "stated at a delta",
        lambda: (on_counts(dp.m.make_gaussian, 2.0), {"neighbours": "replace"}),
    ),
    "an impossible delta": (
        "delta must be",
        lambda: (on_counts(dp.m.make_gaussian, 2.0), {"neighbours": "replace", "delta": 1.5}),
    ),
    "a delta that needs no epsilon": (
        "at any epsilon",
        lambda: (on_counts(dp.m.make_gaussian, 1000.0), {"neighbours": "add-remove", "delta": 0.5}),
    ),
    "another delta": (
        "fixes another delta",
        lambda: (
            dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(on_counts(dp.m.make_gaussian, 2.0)), delta=1e-7),
            {"neighbours": "replace", "delta": 1e-6},
        ),
    ),
    "bounds": (
        "within bounds",
        lambda: (on_counts(dp.m.make_geometric, 2.0, bounds=(0, 100)), {"neighbours": "replace"}),
    ),
    "a grid": (
        "grid",
        lambda: (
            dp.m.make_laplace(
                dp.vector_domain(dp.atom_domain(T="f64", nan=False), size=3), dp.l1_distance(T="f64"), scale=2.0, k=-10
            ),
            {"neighbours": "replace"},
        ),
    ),
    "something afterwards": (
        "afterwards",
        lambda: (
            on_counts(dp.m.make_laplace, 2.0) >> dp.new_function(lambda found: found, TO="Vec<i64>"),
            {"neighbours": "replace"},
        ),
    ),
    "a sum": (
        "counts no records",
        lambda: (
            dp.t.make_sum(dp.vector_domain(dp.atom_domain(bounds=(0, 9))), dp.symmetric_distance())
            >> dp.m.then_laplace(scale=2.0),
            {},
        ),
    ),
    "other noise": (
        "no Laplace or Gaussian noise",
        lambda: (dp.m.make_randomized_response_bool(0.75), {}),
    ),
    "two records of a person": (
        "people who have several records",
        lambda: (query(contributions=2).count_by_categories(LABELS, null_category=False).laplace(), {}),
    ),
    "an unfinished query": ("is it finished", lambda: (query().count_by_categories(LABELS, null_category=False), {})),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_known_is_refused(case: str) -> None:
    dp.enable_features("honest-but-curious")
    words, make = REFUSED[case]
    given, how = make()
    with pytest.raises(CellriskError, match=words):
        cr.from_opendp(given, **how)


def test_a_record_that_moves_more_counts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the map: the loss of one record must be that of one count moved by one."""
    monkeypatch.setattr("cellrisk.noise.from_opendp.METRICS", {"SymmetricDistance": "replace"})
    with pytest.raises(InvalidInput, match="does not move one count by one"):
        cr.from_opendp(count_labels() >> dp.m.then_laplace(scale=2.0))


def test_queries_over_frames() -> None:
    """In the environment that has the Polars that OpenDP asks for."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(
        [str(peers()), str(Path(__file__).with_name("frame_queries.py"))],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "No module named 'opendp'" in done.stderr:
        pytest.skip("OpenDP is not among the peers; run: make clean peers")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    declared = found["declared keys"]
    assert (declared["kind"], declared["neighbours"], declared["threshold"]) == ("Geometric", "add-remove", 0.5)
    assert declared["scale"] == near(2.0)
    assert found["keys of the data, looked at"]["threshold"] == 33.5
    assert found["keys of the data, looked at"]["scale"] == near(2.0)
    assert found["concentrated"]["kind"] == "DiscreteGaussian"
    assert found["concentrated"]["scale"] == near(math.sqrt(2.0))
    assert found["changes"]["neighbours"] == "replace"
    assert found["changes"]["scale"] == near(4.0)
    refused = {name: words["refused"] for name, words in found.items() if "refused" in words}
    assert set(refused) == {
        "keys of the data",
        "three records",
        "two counts",
    }
    assert "3 records" in refused["three records"]
    assert "Frame Length, Length" in refused["two counts"]
