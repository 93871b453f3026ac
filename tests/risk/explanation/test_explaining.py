"""`explain`: who is at risk and what would help, against plain Python on the records and against other tables."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.counts.cells import Domain
from cellrisk.counts.columns import make_label
from cellrisk.risk.explanation import explain
from cellrisk.risk.explanation.remedies import propose_groups
from cellrisk.risk.measures import FORMS, WEIGHTS
from tests.near import near, same

MECHANISMS = [
    cr.Laplace(epsilon=1.0),
    cr.Laplace(epsilon=0.4, neighbours="replace", threshold=2.5),
    cr.Geometric(epsilon=2.0),
    cr.AnalyticGaussian(epsilon=1.5, delta=0.01),
    cr.DiscreteGaussian(epsilon=1.0, delta=0.001),
]
QIDS = ["age", "town", "sex"]
BINS = {"age": 10}


def make_people(n: int = 400, seed: int = 7) -> pd.DataFrame:
    """Records with an ordered, an unordered and a binary column, some values missing, and skewed sensitive columns."""
    draw = random.Random(seed)
    rows = []
    for _ in range(n):
        age = draw.choice([None, *range(18, 80)]) if draw.random() < 0.8 else 30
        town = draw.choices(["Ulm", "Bonn", "Kiel", "Trier", "Jena", "Lahr", None], [30, 20, 9, 5, 3, 2, 2])[0]
        sex = draw.choice("fm")
        job = draw.choices("abc", [6, 3, 1] if sex == "f" else [1, 1, 8])[0]
        rows.append({"age": age, "town": town, "sex": sex, "job": job, "smoker": draw.random() < 0.15})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return make_people()


@pytest.fixture(scope="module")
def table(people: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(people, QIDS, ["job", "smoker"], bins=BINS)


def label_age(age: float) -> str:
    """Right-closed decades, worked out without the package."""
    if math.isnan(age):
        return "(missing)"
    low = math.ceil(age / 10) * 10 - 10
    return f"({low}, {low + 10}]"


def read_cells(frame: pd.DataFrame, sensitive: str) -> dict[tuple[str, ...], Counter[Any]]:
    found: dict[tuple[str, ...], Counter[Any]] = defaultdict(Counter)
    for row in frame.to_dict("records"):
        town = row["town"] if isinstance(row["town"], str) else "(missing)"
        found[label_age(row["age"]), town, row["sex"]][row[sensitive]] += 1
    return found


def cell_risk(counts: Counter[Any], n_levels: int, mechanism: cr.Mechanism, form: str) -> float:
    """The definition: over all sets of labels that may survive, those with exactly one, and a label that is there."""
    noise, threshold = mechanism.noise, mechanism.threshold
    padded = [*counts.values(), *[0] * (n_levels - len(counts))]
    size, total = sum(padded), 0.0
    for survivors in itertools.product([False, True], repeat=n_levels):
        if sum(survivors) != 1:
            continue
        shown = padded[survivors.index(True)]
        chance = math.prod(
            float(noise.p_positive(count, threshold)) if alive else float(noise.p_zero(count, threshold))
            for count, alive in zip(padded, survivors, strict=True)
        )
        total += chance * ((shown > 0) if form == "exact" else shown / size)
    return total


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize(("sensitive", "n_levels"), [("job", 3), ("smoker", 2)])
@pytest.mark.parametrize("form", ["exact", "tight"])
def test_every_cell_is_as_defined(
    people: pd.DataFrame, table: cr.FrequencyTable, mechanism: cr.Mechanism, sensitive: str, n_levels: int, form: str
) -> None:
    cells = read_cells(people, sensitive)
    found = explain(table, mechanism, sensitive=sensitive, form=form, top=10_000)
    assert len(found.riskiest) == len(cells) == found.now.cells
    assert {tuple(cell.key.values()) for cell in found.riskiest} == set(cells)
    for cell in found.riskiest:
        assert list(cell.key) == QIDS
        counts = cells[tuple(cell.key.values())]
        assert (cell.records, cell.levels) == (sum(counts.values()), len(counts))
        assert cell.risk == pytest.approx(cell_risk(counts, n_levels, mechanism, form), rel=1e-12, abs=0)
        tight = cell_risk(counts, n_levels, mechanism, "tight")
        assert cell.people == pytest.approx(cell.records * tight, rel=1e-12, abs=0)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize(("sensitive", "n_levels"), [("job", 3), ("smoker", 2)])
def test_who_is_given_away_because_of_their_own_record(
    people: pd.DataFrame, table: cr.FrequencyTable, mechanism: cr.Mechanism, sensitive: str, n_levels: int
) -> None:
    """Read off with the record less read off without it, cell by cell and label by label."""

    def alone(counts: list[int], place: int) -> float:
        noise, threshold = mechanism.noise, mechanism.threshold
        rest = (noise.p_zero(count, threshold) for other, count in enumerate(counts) if other != place)
        return float(noise.p_positive(counts[place], threshold)) * math.prod(float(each) for each in rest)

    expected = {}
    for key, held in read_cells(people, sensitive).items():
        counts = [*held.values(), *[0] * (n_levels - len(held))]
        expected[key] = sum(
            count * (alone(counts, place) - alone([*counts[:place], count - 1, *counts[place + 1 :]], place))
            for place, count in enumerate(counts)
            if count
        )
    found = explain(table, mechanism, sensitive=sensitive, top=10_000)
    assert len(found.caused_cells) == len(expected)
    for cell in found.caused_cells:
        assert cell.caused == pytest.approx(expected[tuple(cell.key.values())], rel=1e-9, abs=1e-12)
        assert cell.caused <= cell.people
    numbers = [round(cell.caused, 9) for cell in found.caused_cells]
    assert numbers == sorted(numbers, reverse=True)
    total = sum(expected.values())
    assert found.now.caused == pytest.approx(total, rel=1e-9, abs=0)
    figures = cr.assess(table, mechanism, measures="local").figures
    assert found.now.caused == near(next(each.caused.people for each in figures if each.sensitive == sensitive))
    for name in QIDS:
        levels = [level for level in found.by_level if level.quasi_identifier == name]
        assert sum(level.caused for level in levels) == near(found.now.caused)
        towns = [level for level in levels if level.label == "Ulm"]
        assert [level.caused for level in towns] == [
            pytest.approx(sum(value for key, value in expected.items() if key[1] == "Ulm"), rel=1e-9, abs=0)
            for _ in towns
        ]


def test_what_would_help_those_people(people: pd.DataFrame, table: cr.FrequencyTable) -> None:
    """After each change, caused is what `assess` says of the changed table or mechanism."""

    def caused(table: cr.FrequencyTable, **other: float) -> float:
        return cr.assess(table, "geometric", **other, measures="local").figures[0].caused.people  # type: ignore[arg-type]

    found = explain(table, "geometric", epsilon=1.0, sensitive="job", merge={"town": {"south": ["Ulm", "Lahr"]}})
    for removal in found.without:
        left = [name for name in QIDS if name != removal.quasi_identifier]
        bins = {name: width for name, width in BINS.items() if name in left}
        assert removal.caused == near(caused(cr.tabulate(people, left, "job", bins=bins), epsilon=1.0))
    (given,) = (way for way in found.coarser if way.how == "as given")
    merged = people.assign(town=people["town"].replace({"Ulm": "south", "Lahr": "south"}))
    assert given.caused == near(caused(cr.tabulate(merged, QIDS, "job", bins=BINS), epsilon=1.0))
    assert [(each.epsilon, each.threshold) for each in found.settings] == [
        (0.5, 0.5),
        (0.25, 0.5),
        (1.0, 1.5),
        (1.0, 5.5),
        (1.0, 10.5),
    ]
    job = cr.tabulate(people, QIDS, "job", bins=BINS)
    for setting in found.settings:
        assert setting.caused == near(caused(job, epsilon=setting.epsilon, threshold=setting.threshold))
    suppressed = explain(table, "geometric", epsilon=1.0, threshold=5.5, sensitive="job")
    assert [each.threshold for each in suppressed.settings] == [5.5, 5.5, 10.5]
    assert (found.settings[3].caused, found.settings[3].people) == (
        near(suppressed.now.caused),
        near(suppressed.now.people),
    )


def test_order_of_the_riskiest(table: cr.FrequencyTable) -> None:
    full = explain(table, cr.Laplace(epsilon=1.0), sensitive="job", top=10_000)
    order = []
    for cell in full.riskiest:
        decade = math.inf if cell.key["age"] == "(missing)" else int(cell.key["age"][1:3])
        town = (cell.key["town"] == "(missing)", cell.key["town"])
        order.append((-cell.risk, -cell.records, decade, town, cell.key["sex"]))
    assert order == sorted(order)
    assert len({first[:2] for first in order}) < len(order)  # there are ties, so the keys are put to the test
    few = explain(table, cr.Laplace(epsilon=1.0), sensitive="job", top=7)
    assert same(few.riskiest, full.riskiest[:7])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("sensitive", ["job", "smoker"])
def test_people_add_up(table: cr.FrequencyTable, mechanism: cr.Mechanism, sensitive: str) -> None:
    share = cr.assess(table, mechanism, measures="local").value(sensitive=sensitive)
    found = explain(table, mechanism, sensitive=sensitive, form="published", weights="uniform", top=10_000)
    total = pytest.approx(share * table.n_records, rel=1e-12, abs=0)
    assert found.now.people == total
    assert math.fsum(cell.people for cell in found.riskiest) == total
    for name in QIDS:
        levels = [level for level in found.by_level if level.quasi_identifier == name]
        assert math.fsum(level.people for level in levels) == total
        assert sum(level.records for level in levels) == found.records == table.n_records
        assert sum(level.cells for level in levels) == found.now.cells == table.n_cells
        exposed = math.fsum(level.raw_share * level.records for level in levels)
        assert exposed / found.records == pytest.approx(found.raw_share, rel=1e-12, abs=0)
    assert found.raw_share == near(table.attribute(sensitive).exposed_share)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("form", ["exact", "tight"])
def test_levels_are_averages_of_their_cells(
    people: pd.DataFrame, table: cr.FrequencyTable, form: str, weights: str
) -> None:
    mechanism = cr.Geometric(epsilon=1.0)
    cells = read_cells(people, "job")
    found = explain(table, mechanism, sensitive="job", form=form, weights=weights)
    seen = {name: {key[place] for key in cells} for place, name in enumerate(QIDS)}
    assert Counter(level.quasi_identifier for level in found.by_level) == {name: len(seen[name]) for name in QIDS}
    for level in found.by_level:
        place = QIDS.index(level.quasi_identifier)
        mine = [counts for key, counts in cells.items() if key[place] == level.label]
        sizes = [sum(counts.values()) for counts in mine]
        weight = sizes if weights == "records" else [1] * len(mine)
        risks = [cell_risk(counts, 3, mechanism, form) for counts in mine]
        average = math.fsum(w * risk for w, risk in zip(weight, risks, strict=True)) / sum(weight)
        assert (level.cells, level.records) == (len(mine), sum(sizes))
        assert level.risk == pytest.approx(average, rel=1e-12, abs=0)
        homogeneous = sum(size for size, counts in zip(sizes, mine, strict=True) if len(counts) == 1)
        assert level.raw_share == pytest.approx(homogeneous / sum(sizes), rel=1e-12, abs=0)
    assert ("age", "(missing)") in {(level.quasi_identifier, level.label) for level in found.by_level}


@pytest.mark.parametrize(
    "mechanism", [MECHANISMS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in MECHANISMS[1:])]
)
def test_dropping_is_tabulating_without(
    people: pd.DataFrame, table: cr.FrequencyTable, mechanism: cr.Mechanism
) -> None:
    before = cr.assess(table, mechanism, measures="local")
    after = {}
    for dropped in QIDS:
        rest = [name for name in QIDS if name != dropped]
        bins = {name: width for name, width in BINS.items() if name in rest}
        after[dropped] = cr.assess(cr.tabulate(people, rest, ["job", "smoker"], bins=bins), mechanism, measures="local")
    for sensitive, form, weights in itertools.product(["job", "smoker"], FORMS, WEIGHTS):
        found = explain(table, mechanism, sensitive=sensitive, form=form, weights=weights)
        baseline = before.value("local", form, weights, sensitive)
        assert found.now.risk == pytest.approx(baseline, abs=1e-12)
        assert [removal.quasi_identifier for removal in found.without] == QIDS
        for removal in found.without:
            again = after[removal.quasi_identifier]
            risk = again.value("local", form, weights, sensitive)
            assert removal.cells == again.table.n_cells
            assert removal.risk == pytest.approx(risk, abs=1e-12)
            assert removal.change == pytest.approx(risk - baseline, abs=1e-12)


def test_most_raising() -> None:
    """Town alone tells the job, sex splits cells that are homogeneous anyway, the constant splits nothing."""
    rows = [(town, sex, "x", "cook" if town == "a" else "smith") for town in "ab" for sex in "fm" for _ in range(4)]
    frame = pd.DataFrame(rows, columns=["town", "sex", "constant", "job"])
    found = explain(cr.tabulate(frame, ["constant", "sex", "town"], "job"), cr.Laplace(epsilon=1.0))
    assert found.most_raising == "town"
    changes = {removal.quasi_identifier: removal.change for removal in found.without}
    assert changes["constant"] == 0.0
    assert changes["sex"] > 0  # larger homogeneous cells vanish less often
    assert changes["town"] < -0.1
    none = dataclasses.replace(found, without=found.without[:2])
    assert none.most_raising is None


def test_dropping_the_only_one_leaves_one_cell(people: pd.DataFrame) -> None:
    (only,) = explain(cr.tabulate(people.head(9), "town", "job"), MECHANISMS[0]).without
    risk = cell_risk(Counter(people.head(9)["job"]), 3, MECHANISMS[0], "tight")
    assert (only.cells, only.risk) == (1, pytest.approx(risk, rel=1e-12, abs=0))


def recoded(people: pd.DataFrame, name: str, codes: Mapping[str, str]) -> cr.FrequencyTable:
    """The same people with the labels of one column replaced, counted anew."""
    frame = people.assign(age=[label_age(age) for age in people["age"]], town=people["town"].fillna("(missing)"))
    frame[name] = [codes.get(label, label) for label in frame[name]]
    return cr.tabulate(frame, QIDS, ["job", "smoker"])


@pytest.mark.slow
def test_coarsening_is_tabulating_recoded_values(people: pd.DataFrame, table: cr.FrequencyTable) -> None:
    decades = [f"({low}, {low + 10}]" for low in range(10, 80, 10)]
    towns = [town for town, _ in Counter(people["town"].dropna()).most_common()]
    assert len(towns) == 6
    expected: list[tuple[str, str, int, int, dict[str, str]]] = [
        ("age", "neighbours in pairs", 5, 8, {label: f"pair {place // 2}" for place, label in enumerate(decades)}),
        ("age", "neighbours in fours", 3, 8, {label: f"four {place // 4}" for place, label in enumerate(decades)}),
        ("town", "rarest values, half left", 4, 7, dict.fromkeys(towns[2:], "elsewhere")),
        ("town", "rarest values, a quarter left", 3, 7, dict.fromkeys(towns[1:], "elsewhere")),
        ("town", "as given", 6, 7, {"Ulm": "Danube", "Lahr": "Danube"}),
        ("sex", "as given", 1, 2, {"f": "any", "m": "any"}),
    ]
    tables = [recoded(people, name, codes) for name, *_, codes in expected]
    merge = {"sex": {"any": ["f", "m"]}, "town": {"Danube": ["Ulm", "Lahr"]}}
    for mechanism, sensitive in itertools.product(MECHANISMS, ["job", "smoker"]):
        assessed = [cr.assess(again, mechanism, measures="local") for again in tables]
        for form, weights in itertools.product(FORMS, WEIGHTS):
            found = explain(table, mechanism, sensitive=sensitive, form=form, weights=weights, merge=merge)
            ways = [(way.quasi_identifier, way.how, way.labels, way.labels_before) for way in found.coarser]
            assert ways == [row[:4] for row in expected]
            for way, again in zip(found.coarser, assessed, strict=True):
                risk = again.value("local", form, weights, sensitive)
                assert way.cells == again.table.n_cells
                assert way.risk == pytest.approx(risk, abs=1e-12)
                assert way.change == pytest.approx(risk - found.now.risk, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "ordered", "missing", "groups"),
    [
        ("12", True, False, []),
        ("12?", True, True, []),
        ("123", True, False, [["12"]]),
        ("123?", True, True, [["12"]]),
        ("1234", True, False, [["12", "34"]]),
        ("12345", True, False, [["12", "34"], ["1234"]]),
        ("ab", False, False, []),
        ("ab?", False, True, []),
        ("abc", False, False, [["bc"]]),
        ("abcd", False, False, [["bcd"]]),
        ("abcde", False, False, [["cde"], ["bcde"]]),
        ("abcdefghi?", False, True, [["efghi"], ["cdefghi"]]),
    ],
)
def test_what_is_proposed(labels: str, ordered: bool, missing: bool, groups: list[list[str]]) -> None:
    domain = Domain("q", tuple(labels), ordered=ordered, missing=missing)
    records = np.arange(len(labels), 0, -1)  # the first are the commonest
    found = [["".join(members) for members in proposed.values()] for _, proposed in propose_groups(domain, records)]
    assert found == groups


def test_rarity_is_by_records_and_ties_keep_the_first() -> None:
    domain = Domain("q", tuple("abcde"))
    halves = [dict(groups) for _, groups in propose_groups(domain, np.array([1, 5, 1, 9, 5]))]
    assert halves == [{"(other)": ["a", "c", "e"]}, {"(other)": ["a", "b", "c", "e"]}]


def test_merged_values_do_not_swallow_a_value_of_that_name() -> None:
    frame = pd.DataFrame({"q": ["(other)"] * 9 + ["a"] * 8 + ["b", "c", "d", "e"], "y": ["u", "v", "v"] * 7})
    found = explain(cr.tabulate(frame, "q", "y"), cr.Laplace(epsilon=1.0))
    assert [(way.labels, way.cells) for way in found.coarser] == [(3, 3), (2, 2)]
    assert make_label("(other)", ["(other)", "((other))"]) == "(((other)))"
