"""A published figure: its noise, its interval, its price, and that nothing else of the records is in it."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from cellrisk.errors import CellriskError
from cellrisk.noise.opendp_noise import load_opendp
from cellrisk.publish.dp_risk import publish_risk
from cellrisk.publish.dp_risk.sensitivity import count_units, find_sensitivity, sum_cells
from cellrisk.publish.releasing import domain
from cellrisk.publish.releasing.measurement import Measurement, calibrate_sum
from tests.commands import run
from tests.near import near, same
from tests.publish.releasing.neighbours import Case, Record, arguments
from tests.refusals import refused

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

Capture = pytest.CaptureFixture[str]
LEVELS = {"sex": ["f", "m"], "job": ["cook", "smith", "other"]}


def make_table(**more: Any) -> cr.FrequencyTable:
    records = pd.DataFrame({"sex": list("ffmmf"), "job": ["cook", "smith", "cook", "cook", "other"]})
    return cr.tabulate(records, "sex", "job", **{"levels": LEVELS, "outside": "drop", **more})


def draws(noise: Measurement, units: int, number: int) -> Any:
    """Many figures at once, by the same measurement on a vector."""
    opendp = load_opendp()
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    return np.array(opendp.m.make_laplace(*space, scale=noise.scale)([units] * number))


def test_the_figure_is_what_is_assessed_with_little_noise() -> None:
    table = make_table()
    found = publish_risk(table, epsilon=1.0, risk_epsilon=100.0)
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(cr.assess(table, epsilon=1.0).figures[0].caused.people, abs=0.1)
    assert found.scale == pytest.approx(found.sensitivity.value / 100.0, rel=1e-6, abs=0)
    assert found.noise.loss <= 100.0


def test_no_more_than_what_was_asked_for_is_lost_by_the_map_of_opendp() -> None:
    opendp = load_opendp()
    for mechanism in (cr.Laplace(1.0), cr.Geometric(0.3), cr.DiscreteGaussian(1.0, delta=1e-5)):
        units = count_units(find_sensitivity(mechanism, 3))
        for epsilon in (0.01, 0.1, 1 / 3, 2.0):
            noise = calibrate_sum(units, epsilon)
            built = opendp.m.make_laplace(
                opendp.atom_domain(T="i64"), opendp.absolute_distance(T="i64"), scale=noise.scale
            )
            assert built.map(units) <= epsilon
            assert noise.scale == pytest.approx(units / epsilon, rel=1e-11, abs=0)


def lost(noise: Measurement, one: int, other: int, number: int = 20_000) -> float:
    """The epsilon that two neighbouring tables show at least, with next to no doubt: halves of the line as events."""
    first, second = draws(noise, one, number), draws(noise, other, number)
    worst = 0.0
    for cut in np.quantile(np.concatenate([first, second]), [0.05, 0.2, 0.5, 0.8, 0.95]):
        for a, b in ((first <= cut, second <= cut), (first > cut, second > cut)):
            p, q = a.mean(), b.mean()
            for high, low in ((p, q), (q, p)):
                slack = 5.0 * math.sqrt(0.25 / number)
                if high - slack > 0:
                    worst = max(worst, math.log((high - slack) / (low + slack)))
    return worst


@pytest.mark.parametrize("mechanism", [cr.Laplace(1.0), cr.Geometric(2.0, threshold=2.5)])
def test_neighbouring_tables_differ_by_no_more_than_epsilon(mechanism: cr.Mechanism) -> None:
    """The pair that is moved farthest; a sensitivity of a quarter is caught."""
    first = int(mechanism.threshold + 0.5)
    usual = [[first - 1, 0], [4, 4]] if first > 1 else [[4, 4]]
    one, other = (
        sum_cells(Profiles.from_cells(cells, n_levels=2), mechanism) for cells in (usual, [[first, 0], [4, 4]])
    )
    units = count_units(find_sensitivity(mechanism, 2))
    assert lost(calibrate_sum(units, 1.0), one, other) <= 1.0
    assert lost(calibrate_sum(units // 4, 1.0), one, other) > 1.0


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    noise = calibrate_sum(1000, 0.5)
    far = np.abs(draws(noise, 0, 20_000))
    outside = float((far > noise.radius(0.05)).mean())
    assert abs(outside - 0.05) < 0.007
    ratio = math.exp(-1 / noise.scale)
    for chance in (0.05, 0.01, 1e-9):
        k = noise.radius(chance)
        assert 2 * ratio ** (k + 1) / (1 + ratio) <= chance < 2 * ratio ** (k - 1) / (1 + ratio)


def read_interval(text: str) -> tuple[float, float]:
    low, high = re.findall(r"95% interval ([\d.,]+) to ([\d.,]+)[);]", text)[0]
    return float(low.replace(",", "")), float(high.replace(",", ""))


def test_a_printed_interval_holds_the_truth_as_often_as_it_says() -> None:
    """At a large epsilon the interval is shorter than a digit that is printed."""
    cells = np.array([[3, 0, 1], [1, 0, 0], [2, 0, 0], [0, 1, 0]])
    rows = [(f"g{place}", f"v{label}") for (place, label), n in np.ndenumerate(cells) for _ in range(n)]
    frame = pd.DataFrame(rows, columns=["q", "y"])
    levels = {"q": [f"g{place}" for place in range(4)], "y": ["v0", "v1", "v2"]}
    table = cr.tabulate(frame, "q", "y", levels=levels, outside="drop")
    a = math.exp(-1.0)
    gone, lone = a**cells / (1 + a), (1 - a) / (1 + a) * a ** np.abs(cells - 1)
    truth = sum((cells[:, k] * lone[:, k] * np.delete(gone, k, axis=1).prod(axis=1)).sum() for k in range(3))
    held = 0
    for _ in range(200):
        low, high = read_interval(publish_risk(table, epsilon=1.0, risk_epsilon=20.0).headline)
        held += low <= truth <= high
    assert held > 200 * 0.95 - 5 * math.sqrt(200 * 0.95 * 0.05)


def test_a_draw_below_zero_is_told_as_what_it_is() -> None:
    drawn = publish_risk(make_table(), epsilon=1.0, risk_epsilon=0.1)
    below = dataclasses.replace(drawn, value=-21.5, low=0.0, high=0.0)
    assert "values of 0 people because of their own record (noise made it -21.5, with its whole 95% " in below.headline
    assert "0 to 0" not in str(below)
    assert "interval below 0: it says only that few are). This figure has noise" in below.headline
    small = dataclasses.replace(drawn, value=0.011, low=0.0, high=0.024)
    assert "values of fewer than 1 person because of their own record (95% interval 0 to 0.03). " in small.headline


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"risk_epsilon": 0}, "range"),
        ({"risk_epsilon": "much"}, "range"),
        ({"risk_epsilon": 1e9}, "range"),
        ({"risk_epsilon": 5e-324}, "range"),
        ({"risk_epsilon": 0.1, "ledger": "ledger.db"}, "type"),
        ({"risk_epsilon": 0.1, "purpose": "why"}, "no-ledger"),
        ({"risk_epsilon": 0.1, "may_be_missing": "age"}, "no-column"),
    ],
)
def test_bad_requests_are_refused(given: dict[str, Any], code: str) -> None:
    with refused(code):
        publish_risk(make_table(), epsilon=1.0, **given)


def test_labels_must_be_declared() -> None:
    with refused("observed-labels"):
        publish_risk(make_table(levels={"sex": ["f", "m"]}), epsilon=1.0, risk_epsilon=0.1, observed_levels=True)
    undeclared = make_table(levels={"job": LEVELS["job"]})
    with refused("observed-labels"):
        publish_risk(undeclared, epsilon=1.0, risk_epsilon=0.1)
    found = publish_risk(undeclared, epsilon=1.0, risk_epsilon=0.1, observed_levels="sex")
    assert "The labels of sex are those that occur" in found.notes[0]


# What a reader sees of neighbouring inputs

CASES = {
    "text": Case(("text", "text"), may_be_missing=("q0",)),
    "counts": Case(("numbers", "truth"), counted=True),
    "sensitive bins": Case(("flags", "edges"), may_be_missing=("y",)),
    "replaced, dropped": Case(
        ("typed edges", "typed"),
        missing="drop",
        mechanism=cr.Geometric(epsilon=0.5, neighbours="replace", threshold=3.5),
    ),
}


def look(case: Case, records: list[Record]) -> Any:
    """All that is published of the figure but its noise."""
    names = case.names
    table = cr.tabulate(
        case.frame(records),
        names[:-1],
        "y",
        **case.declared,
        missing=case.missing,
        outside="drop",
        count="n" if case.counted else None,
    )
    try:
        found = publish_risk(table, case.mechanism, risk_epsilon=0.5, may_be_missing=case.may_be_missing)
    except CellriskError as refusal:
        return str(refusal)
    described = found.to_dict()
    del described["sentence"], described["value"], described["interval"]
    return described


@pytest.mark.parametrize(
    "name",
    [
        "replaced, dropped",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("text", "counts", "sensitive bins")),
    ],
)
def test_neighbours_look_alike(name: str) -> None:
    case = CASES[name]
    usual = look(case, case.usual())
    assert isinstance(usual, dict)
    for records in (*case.crowds()[:2], case.neighbours()[len(name) % 4]):
        assert look(case, records) == usual


def test_a_level_that_occurs_is_seen_when_it_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["counts"]
    monkeypatch.setattr(domain, "_read_axis", lambda axis, _: axis)
    assert look(case, case.usual()) != look(case, [*case.usual(), ("1", None)])


# The ledger


def test_the_loss_is_recorded_before_noise_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cr.Ledger(tmp_path / "ledger", create=True) as ledger:
        ledger.set_limit("everyone", epsilon=0.3)
        found = publish_risk(make_table(), epsilon=1.0, risk_epsilon=0.1, ledger=ledger)
        entry = ledger.entries(kind="release")[-1]
        assert entry.loss is not None
        assert (entry.loss.epsilon, entry.loss.dp_definition, entry.attribute) == (0.1, "pure", "job")
        assert "because of their own record" in entry.purpose
        assert found.epsilon == near(0.1)

        def refuse(*_: Any) -> Any:
            raise ArithmeticError

        with monkeypatch.context() as patch:
            patch.setattr(Measurement, "add_noise", refuse)
            with pytest.raises(ArithmeticError):
                publish_risk(make_table(), epsilon=1.0, risk_epsilon=0.1, ledger=ledger, purpose="a second one")
        assert ledger.spent("everyone").epsilon == near(0.2)
        drawn: list[Any] = []
        monkeypatch.setattr(Measurement, "add_noise", lambda _, units: drawn.append(units) or units)
        with refused("limit"):
            publish_risk(make_table(), epsilon=1.0, risk_epsilon=0.2, ledger=ledger)
        assert not drawn
        assert ledger.spent("everyone").epsilon == near(0.2)


def test_the_command(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = CASES["text"]
    case.frame(case.usual()).to_csv("people.csv", index=False)
    asked = ["publish-risk", "people.csv", *arguments(case)]
    code, out, _ = run(capsys, *asked, "--risk-epsilon", "0.5", "--json")
    assert code == 0
    assert same(json.loads(out)["sensitivity"]["value"], find_sensitivity(case.mechanism, 3).value)
    code, out, err = run(capsys, *asked)
    assert (code, out) == (2, "")
    assert "--risk-epsilon" in err
    code, out, err = run(capsys, *asked, "--risk-epsilon", "0.5", "--ledger", "ledger.db")
    assert (code, out) == (2, "")
    code, out, _ = run(capsys, *asked, "--risk-epsilon", "0.5", "--ledger", "ledger.db", "--new-ledger")
    assert code == 0
    assert "Recorded in ledger.db as entry 2." in out
    run(capsys, "ledger", "limit", "ledger.db", "--epsilon", "0.6")
    code, out, err = run(capsys, *asked, "--risk-epsilon", "0.5", "--ledger", "ledger.db", "--json")
    assert (code, out) == (2, "")
    assert "exceed the limit" in err
    with cr.Ledger("ledger.db") as ledger:
        assert len(ledger.entries(kind="release")) == 1
    code, out, err = run(capsys, *asked, "--risk-epsilon", "1e-10", "--ledger", "l", "--new-ledger")
    assert (code, out, Path("l").exists()) == (2, "", False)
