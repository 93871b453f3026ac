"""Objects of OpenDP as mechanisms and back: OpenDP's own privacy map and its own noise are the second opinion."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import opendp.prelude as dp
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.from_opendp import _check_keys_are_declared
from tests.auditing.test_peers import peers
from tests.near import near

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
    assert found.epsilon == pytest.approx(profile.epsilon(1e-7), rel=1e-6, abs=0)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta=1e-7)
    assert cr.from_opendp(fixed).epsilon == near(found.epsilon)
    assert cr.from_opendp(fixed, delta=1e-7).delta == 1e-7


def test_measurements_on_records_say_how_neighbours_differ() -> None:
    added = cr.from_opendp(count_labels() >> dp.m.then_laplace(scale=4.0))
    assert (added.name, added.neighbours) == ("geometric", "add-remove")
    assert added.epsilon == near(0.25)
    total = dp.t.make_count(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance(), TO="i64")
    assert cr.from_opendp(total >> dp.m.then_laplace(scale=4.0)).epsilon == near(0.25)


def test_the_last_step_before_the_noise_must_count() -> None:
    numbers = (
        dp.vector_domain(dp.atom_domain(T=str)),
        dp.symmetric_distance(),
    ) >> dp.t.then_cast_default(TOA=int)
    assert cr.from_opendp(numbers >> dp.t.then_count() >> dp.m.then_laplace(2.0)) == cr.Geometric(epsilon=0.5)
    summed = numbers >> dp.t.then_clamp((0, 1)) >> dp.t.then_sum() >> dp.m.then_laplace(2.0)
    with pytest.raises(InvalidInput, match="counts no records before it adds noise"):
        cr.from_opendp(summed)


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


def test_one_line_to_every_figure_of_a_release() -> None:
    """A table that OpenDP released: what it would give away, what nobody exceeds, and what it did give away."""
    people = [("f", "north", "cook")] * 9 + [("f", "south", "cook")] * 4 + [("m", "south", "smith")] * 7
    cells = [(sex, town, job) for sex in "fm" for town in ("north", "south") for job in ("cook", "smith")]
    context = dp.Context.compositor(
        data=["/".join(person) for person in people],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=2.0),
        split_evenly_over=1,
    )
    labels = ["/".join(cell) for cell in cells]
    query = context.query().count_by_categories(labels, null_category=False).laplace()
    table = cr.tabulate(pd.DataFrame(people, columns=["sex", "town", "job"]), ["sex", "town"], "job", count=False)
    released = pd.DataFrame(cells, columns=["sex", "town", "job"]).assign(n=query.release())
    assert cr.assess(table, cr.from_opendp(query), measures="local").mechanism.epsilon == near(2.0)
    assert cr.ceiling(cr.from_opendp(query)).success == near(math.exp(2) / (1 + math.exp(2)))
    audited = cr.audit(table, released, count="n", mechanism=cr.from_opendp(query))
    assert "What an attacker can be sure of is not computed" not in str(audited)  # the mechanism is known
    positive = released[released["n"] > 0]
    alone = positive[~positive.duplicated(["sex", "town"], keep=False)]
    shown = {tuple(row) for row in alone[["sex", "town", "job"]].itertuples(index=False)}
    assert audited.value("disco") == near(sum(person in shown for person in people) / len(people))


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


def contingency_table(*counts: list[float], thresholds: tuple[str, ...] = (), listed: bool = True) -> Any:
    """A table as OpenDP leaves it, without the model that private-pgm fits: measured marginals are all that is read."""
    from opendp.extras.mbi import ContingencyTable

    made = object.__new__(ContingencyTable)
    measured = [SimpleNamespace(noisy_measurement=found, clique=("age", "sick"), stddev=3.0) for found in counts]
    marginals: Any = {("age", "sick"): measured if listed else measured[0]}
    made.marginals = SimpleNamespace(by_clique=marginals) if listed else marginals  # since 0.16; before
    made.thresholds = dict.fromkeys(thresholds, 34)
    return made


@pytest.mark.parametrize("listed", [True, False], ids=["0.16", "before"])
def test_a_marginal_of_a_contingency_table(listed: bool) -> None:
    table = contingency_table([4.0, 0.0, -2.0, 9.0], listed=listed)
    laplace = cr.from_opendp(table, marginal=["sick", "age"], mechanism="geometric", neighbours="add-remove")
    assert isinstance(laplace, cr.Geometric)
    assert laplace.scale == near(3.0 / math.sqrt(2.0))  # OpenDP states the deviation of the continuous law
    assert laplace.epsilon == near(math.sqrt(2.0) / 3.0)
    how: dict[str, Any] = {"mechanism": "discrete-gaussian", "delta": 1e-6, "neighbours": "add-remove"}
    gaussian = cr.from_opendp(table, marginal=("age", "sick"), **how)
    assert isinstance(gaussian, cr.DiscreteGaussian)
    assert gaussian.scale == near(3.0)


MARGINAL: dict[str, Any] = {"marginal": ["age", "sick"], "mechanism": "geometric", "neighbours": "add-remove"}


@pytest.mark.parametrize(
    ("words", "table", "how"),
    [
        ("none of them is a count plus noise", {}, {"marginal": None}),
        ("which noise its marginals have", {}, {"mechanism": None}),
        ("unknown mechanism", {}, {"mechanism": "laplace"}),
        ("does not say how far", {}, {"neighbours": None}),
        ("was not measured; got age; allowed: age, sick", {}, {"marginal": ["age"]}),
        ("measured several times", {"counts": [[4.5, 0.0]]}, {}),
        ("measured several times", {"counts": [[4.0, 0.0], [5.0, 1.0]]}, {}),
        ("found in the data", {"thresholds": ("age",)}, {}),
    ],
)
def test_contingency_tables_that_do_not_say_enough(words: str, table: dict[str, Any], how: dict[str, Any]) -> None:
    made = contingency_table(*table.get("counts", [[4.0, 0.0]]), thresholds=table.get("thresholds", ()))
    with pytest.raises(CellriskError, match=words):
        cr.from_opendp(made, **{**MARGINAL, **how})
    with pytest.raises(InvalidInput, match="for a contingency table alone"):
        cr.from_opendp(on_counts(dp.m.make_laplace, 2.0), **MARGINAL)


def test_a_record_that_moves_more_counts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the map: the loss of one record must be that of one count moved by one."""
    monkeypatch.setattr("cellrisk.noise.from_opendp.METRICS", {"SymmetricDistance": "replace"})
    with pytest.raises(InvalidInput, match="does not move one count by one"):
        cr.from_opendp(count_labels() >> dp.m.then_laplace(scale=2.0))


def plans(case: str) -> Any:
    """A plan of Polars as a query holds it; the noise makes no difference to its shape."""
    pl = pytest.importorskip("polars")
    frame = pl.LazyFrame({"age": ["a"], "sick": ["y"], "pay": [1]})
    keys = pl.LazyFrame({"age": ["a", "b"], "sick": ["y", "y"]})
    counted = frame.group_by("age", "sick").agg(pl.len().alias(" BY [x]"))
    return {
        "every key": lambda: keys.join(counted, how="left", on=["age", "sick"], nulls_equal=True),
        "every key, the other way round": lambda: counted.join(keys, how="right", on=["age", "sick"]),
        "bins": lambda: keys.join(
            frame.with_columns((pl.col("pay") // 10).cast(pl.String).alias("sick"))
            .group_by(["age", "sick"])
            .agg(pl.len()),
            how="left",
            on=["age", "sick"],
        ),
        "no key at all": lambda: frame.select(pl.len()),
        "keys of the data": lambda: counted,
        "keys of one column": lambda: keys.select("sick").unique().join(counted, how="left", on=["sick"]),
        "keys that are in the data": lambda: counted.join(keys, how="inner", on=["age", "sick"]),
        "rows of the data": lambda: counted.join(keys, how="left", on=["age", "sick"]),
        "something afterwards": lambda: keys.join(counted, how="left", on=["age", "sick"]).filter(pl.col("age") == "a"),
    }[case]()


@pytest.mark.parametrize(
    ("case", "declared"),
    [
        ("every key", True),
        ("every key, the other way round", True),
        ("bins", True),
        ("no key at all", True),
        ("keys of the data", False),
        ("keys of one column", False),
        ("keys that are in the data", False),
        ("rows of the data", False),
        ("something afterwards", False),
    ],
)
def test_keys_are_declared_or_not(case: str, declared: bool) -> None:
    """Of a query without a threshold: OpenDP itself takes keys of one column for all of them."""
    query = SimpleNamespace(polars_plan=plans(case))
    if declared:
        _check_keys_are_declared(query)
    else:
        with pytest.raises(InvalidInput, match="keys of the data as they are"):
            _check_keys_are_declared(query)


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
    assert "keys of the data as they are" in found["keys of one column"]["refused"]


def test_queries_over_frames() -> None:
    found = read_frame_queries(str(peers()))
    check_few(found)
    assert found["public keys, declared all the same"] == found["declared keys"]
    assert found["changes"]["neighbours"] == "replace"
    assert found["changes"]["scale"] == near(4.0)
    tables = {name: found.pop(name) for name in [*found] if name.startswith("contingency")}
    if tables:  # private-pgm is installed; one marginal has the whole budget
        assert tables["contingency table, epsilon"]["kind"] == "Geometric"
        assert tables["contingency table, epsilon"]["scale"] == pytest.approx(1.0, rel=1e-6, abs=0)
        assert tables["contingency table, rho"]["kind"] == "DiscreteGaussian"
        assert tables["contingency table, rho"]["scale"] == pytest.approx(1.0, rel=1e-6, abs=0)
        assert sum("refused" in words for words in tables.values()) == len(tables) - 2
    refused = {name: words["refused"] for name, words in found.items() if "refused" in words}
    assert set(refused) == {
        *("keys of the data", "keys of one column", "public counts", "public keys", "three records", "two counts")
    }
    assert "3 records" in refused["three records"]
    assert "Frame Length, Length" in refused["two counts"]
    assert "keys of the data as they are" in refused["public keys"]
    assert "adds no noise" in refused["public counts"]


@pytest.mark.parametrize("version", ["0.14.2", "0.15.1"])
def test_queries_over_frames_in_older_versions(version: str) -> None:
    """The newest is among the peers; older ones get an environment that uv keeps for the next time."""
    pytest.importorskip("uv", reason="make setup installs what makes environments")
    needed = [f"opendp[polars]=={version}", "scipy"]
    uv = [sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--isolated", "--python", sys.executable]
    python = [*uv, *(word for each in needed for word in ("--with", each)), "python"]
    check_few(read_frame_queries(*python, few=True))
