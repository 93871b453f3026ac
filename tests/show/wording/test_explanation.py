"""What `explain` says: the headline, the text, the frame, the JSON document, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError
from cellrisk.risk.explanation import Explanation, explain
from cellrisk.system.formatting import CURATOR_NOTE
from tests.near import near
from tests.risk.explanation.test_explaining import BINS, MECHANISMS, QIDS, make_people


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return make_people()


@pytest.fixture(scope="module")
def table(people: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(people, QIDS, ["job", "smoker"], bins=BINS)


def test_headline(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.AnalyticGaussian(epsilon=1.5, delta=0.01), sensitive="job", top=1)
    own = found.now.own
    assert own is not None
    start = (
        f"At epsilon 1.5 and delta 0.01, the strongest attack reveals {own:,.0f} of 400 people ({own / 4:.1f}%) "
        "because of their own record. "
    )
    assert found.headline.startswith(start)
    best = min([*found.without, *found.coarser, *found.settings], key=lambda change: change.largest_own)
    assert found.headline.endswith(f", it would be {'under 1' if best.own < 0.5 else f'{best.own:,.0f}'}.")
    none = dataclasses.replace(found, coarser=(), settings=(), without=())
    assert none.headline == f"{start}No change that was tried would lower that number."


def test_screen(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.Laplace(epsilon=1.0, threshold=1.5), sensitive="job", top=5)
    title, helps, after = str(found).split("\n\n")
    assert title.startswith("'job': 400 people in ")
    assert "counts below 2 suppressed" in title
    rows = [line.split("  ") for line in helps.splitlines()[3:]]
    assert helps.splitlines()[2].startswith("as it is")
    limited = [float([cell for cell in row if cell][4].strip().removesuffix("%").replace("under ", "")) for row in rows]
    assert limited == sorted(limited)
    assert all(level.records >= 5 for level in found.by_level)
    worst = max(found.by_level, key=lambda level: (level.own / level.records, level.records))
    assert after.startswith(f"Most at risk because of their own record: '{worst.quasi_identifier}' {worst.label}: ")
    assert CURATOR_NOTE in after
    assert [part.splitlines()[0] for part in found.details.split("\n\n")[3:]] == [
        "Groups with the highest local risk, tight, weights records",
        f"Values with most people revealed because of their own record, 10 of {len(found.by_level)}",
        "Groups with most people revealed because of their own record",
        "The values that describe groups and people are raw data: do not publish them.",
    ]


def test_people_with_a_rare_value_are_not_left_out() -> None:
    rows = [(f"s{i}", "ill") for i in range(100)] + [(f"h{i % 330}", "well") for i in range(9_900)]
    table = cr.tabulate(pd.DataFrame(rows, columns=["group", "health"]), ["group"], "health")
    risk = str(explain(table, cr.Geometric(1.0), top=1)).split("\n\n")[2]
    assert risk.startswith(
        "Most at risk because of their own record: 'group' values of fewer than 5 people: 40.0% of 100; 'group' h"
    )


def test_frame_is_tidy(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.Laplace(epsilon=1.0), sensitive="job", top=4)
    frame = found.to_frame()
    assert list(frame.columns) == ["part", "row", "quasi_identifier", "label", "statistic", "value"]
    assert frame["value"].dtype == float
    assert not frame["value"].isna().any()
    assert not frame.duplicated(["part", "row", "statistic"]).any()
    wide = frame.pivot(index=["part", "row"], columns="statistic", values="value")
    assert wide.loc[("table", 1), "risk"] == found.now.risk
    assert wide.loc["riskiest"]["people"].tolist() == near([cell.people for cell in found.riskiest])
    assert wide.loc["by_level"]["raw_share"].tolist() == near([level.raw_share for level in found.by_level])
    assert wide.loc["without"]["change"].tolist() == near([removal.change for removal in found.without])
    assert wide.loc["coarser"]["labels"].tolist() == [way.labels for way in found.coarser]
    first = frame[frame["part"] == "riskiest"].iloc[0]
    assert first["label"] == "; ".join(f"{name}={label}" for name, label in found.riskiest[0].key.items())
    ways = frame[(frame["part"] == "coarser") & (frame["statistic"] == "risk")]
    assert ways["label"].tolist() == [way.how for way in found.coarser]
    assert ways["quasi_identifier"].tolist() == [way.quasi_identifier for way in found.coarser]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_json_document(table: cr.FrequencyTable, mechanism: cr.Mechanism) -> None:
    found = explain(table, mechanism, sensitive="smoker", top=np.int64(3))  # type: ignore[arg-type]
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["sensitive"] == "smoker"
    assert document["mechanism"]["name"] == mechanism.name
    assert document["mechanism"].get("threshold", 0.5) == mechanism.threshold
    assert document["table"]["records"] == 400
    assert document["table"]["risk"] == near(found.now.risk)
    assert [cell["key"] for cell in document["riskiest"]] == [cell.key for cell in found.riskiest]
    assert len(document["riskiest"]) == 3
    assert document["by_level"][0] == dataclasses.asdict(found.by_level[0])
    assert document["without"][-1] == dataclasses.asdict(found.without[-1])
    assert document["coarser"][-1] == dataclasses.asdict(found.coarser[-1])
    assert document["table"]["caused"] == found.now.caused
    assert document["caused_cells"][0] == dataclasses.asdict(found.caused_cells[0])
    assert document["settings"][-1] == dataclasses.asdict(found.settings[-1])
    assert (document["most_raising"], document["headline"]) == (found.most_raising, found.headline)


BAD: dict[str, list[dict[str, Any]]] = {
    "word": [{"form": "loose"}, {"form": None}, {"weights": "people"}, {"weights": ["records"]}],
    "range": [{"top": 0}],
    "type": [{"top": 2.0}, {"top": True}, {"top": "ten"}],
    "merge": [
        *({"merge": bad} for bad in (["town"], "town", {"town": ["Ulm", "Bonn"]}, {"town": {"south": "Ulm"}})),
        *({"merge": {"town": bad}} for bad in ({3: ["Ulm", "Bonn"]}, {"south": ["Ulm", "Rome"]})),
        {"merge": {"town": {"south": ["Ulm"], "east": ["Ulm"]}}},
    ],
    "no-column": [{"merge": {"city": {"south": ["Ulm"]}}}],
    "no-attribute": [{"sensitive": "income"}, {"sensitive": None}],
}


@pytest.mark.parametrize(("code", "settings"), [(code, each) for code, every in BAD.items() for each in every])
def test_refusals(table: cr.FrequencyTable, code: str, settings: dict[str, Any]) -> None:
    with pytest.raises(CellriskError, check=lambda refusal: refusal.code == code) as refusal:
        explain(table, cr.Laplace(epsilon=1.0), **{"sensitive": "job", **settings})
    assert not any(value in str(refusal.value) for value in ("Ulm", "Bonn", "Rome"))


def test_an_explanation_is_frozen(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.Laplace(epsilon=1.0), sensitive="job")
    assert isinstance(found, Explanation)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.now.risk = 0.0  # type: ignore[misc]
