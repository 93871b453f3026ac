"""What `explain` says: the headline, the text, the frame, the JSON document, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.risk.explanation import Explanation, explain
from cellrisk.system.formatting import CURATOR_NOTE, percent
from tests.near import near
from tests.risk.explanation.test_explaining import BINS, MECHANISMS, QIDS, make_people


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return make_people()


@pytest.fixture(scope="module")
def table(people: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(people, QIDS, ["job", "smoker"], bins=BINS)


def test_headlines(people: pd.DataFrame, table: cr.FrequencyTable) -> None:
    noisy = explain(table, cr.AnalyticGaussian(epsilon=1.5, delta=0.01), sensitive="job", top=1)
    assert noisy.headline.startswith("At epsilon 1.5 and delta 0.01, the riskiest cell holds ")
    by_town = cr.tabulate(people.head(40), "town", "job")
    found = explain(by_town, cr.Laplace(epsilon=1.0), merge={"town": {"south": ["Ulm", "Bonn"]}})
    assert found.most_raising == "town"
    dropping = f"lower the risk most, from {percent(found.baseline)} to {percent(found.without[0].risk)}"
    half, _, given = found.coarser
    assert found.headline.endswith(f"{dropping}; merging its values as given would give {percent(given.risk)}.")
    automatic = dataclasses.replace(found, coarser=(half,))
    rarest = f"merging its rarest values to {half.labels} of {half.labels_before} would give {percent(half.risk)}."
    assert automatic.headline.endswith(f"{dropping}; {rarest}")
    bare = dataclasses.replace(found, coarser=())
    assert bare.headline.endswith(f"{dropping}.")
    assert "With coarser" not in str(bare)


def test_headline_of_caused(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.Laplace(epsilon=1.0), sensitive="job")
    best = min(found.coarser, key=lambda way: way.caused)
    half = found.settings[0]
    assert (
        f"About {found.caused:,.0f} of 400 people ({100 * found.caused / 400:.1f}%) would be exposed only because of "
        f"their own record; it would be about {half.caused:,.0f} at half the epsilon, and about {best.caused:,.0f} "
        "after merging "
    ) in found.headline
    for name, words in (
        ("age", "merging neighbours of 'age' in "),
        ("town", "merging the rarest values of 'town' to "),
    ):
        ways = tuple(way for way in found.coarser if way.quasi_identifier == name)
        assert words in dataclasses.replace(found, coarser=ways).headline
    none = dataclasses.replace(found, coarser=(), settings=(), caused=0.0)
    assert "About 0 of 400 people (0.0%) would be exposed only because of their own record." in none.headline


def test_text(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.Laplace(epsilon=1.0, threshold=1.5), sensitive="job", top=5)
    parts = str(found).split("\n\n")
    assert parts[0] == found.headline
    assert "counts below 1.5 suppressed" in parts[1]
    assert [part.splitlines()[0] for part in parts[2:6]] == [
        "Riskiest cells",
        f"Riskiest values, 10 of {len(found.by_level)}",
        "Without a quasi-identifier",
        "With coarser quasi-identifiers",
    ]
    assert [len(part.splitlines()) for part in parts[2:6]] == [5 + 2, 10 + 2, 3 + 2, len(found.coarser) + 2]
    worst = max(found.by_level, key=lambda level: level.risk)
    assert parts[3].splitlines()[2].split()[0] == worst.quasi_identifier
    assert worst.label in parts[3].splitlines()[2]
    assert [part.splitlines()[0] for part in parts[6:10]] == [
        "Who is exposed only because of their own record (caused), by the size of their cell",
        f"Values with most people exposed only because of their own record, 10 of {len(found.by_level)}",
        "Cells with most people exposed only because of their own record",
        "With another setting",
    ]
    assert f"{found.caused:,.1f}" in parts[1]
    notes = parts[10].splitlines()
    assert notes[0] == CURATOR_NOTE
    assert "do not publish" in notes[1]


def test_frame_is_tidy(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.Laplace(epsilon=1.0), sensitive="job", top=4)
    frame = found.to_frame()
    assert list(frame.columns) == ["part", "row", "quasi_identifier", "label", "statistic", "value"]
    assert frame["value"].dtype == float
    assert not frame["value"].isna().any()
    assert not frame.duplicated(["part", "row", "statistic"]).any()
    wide = frame.pivot(index=["part", "row"], columns="statistic", values="value")
    assert wide.loc[("table", 1), "risk"] == found.baseline
    assert wide.loc["cell"]["people"].tolist() == near([cell.people for cell in found.riskiest])
    assert wide.loc["level"]["raw_share"].tolist() == near([level.raw_share for level in found.by_level])
    assert wide.loc["without"]["change"].tolist() == near([removal.change for removal in found.without])
    assert wide.loc["coarser"]["labels"].tolist() == [way.labels for way in found.coarser]
    first = frame[frame["part"] == "cell"].iloc[0]
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
    assert document["table"]["risk"] == near(found.baseline)
    assert [cell["key"] for cell in document["riskiest"]] == [cell.key for cell in found.riskiest]
    assert len(document["riskiest"]) == 3
    assert document["by_level"][0] == dataclasses.asdict(found.by_level[0])
    assert document["without"][-1] == dataclasses.asdict(found.without[-1])
    assert document["coarser"][-1] == dataclasses.asdict(found.coarser[-1])
    assert document["table"]["caused"] == found.caused
    assert document["caused_cells"][0] == dataclasses.asdict(found.caused_cells[0])
    assert document["caused_by_size"][0] == dataclasses.asdict(found.caused_by_size[0])
    assert document["settings"][-1] == dataclasses.asdict(found.settings[-1])
    assert (document["most_raising"], document["headline"]) == (found.most_raising, found.headline)


@pytest.mark.parametrize(
    ("settings", "kind", "says"),
    [
        ({"form": "loose"}, UnknownName, "unknown form"),
        ({"form": None}, UnknownName, "unknown form"),
        ({"weights": "people"}, UnknownName, "unknown weights"),
        ({"weights": ["records"]}, UnknownName, "unknown weights"),
        ({"top": 0}, InvalidInput, "top must be"),
        ({"top": 2.0}, InvalidInput, "top must be"),
        ({"top": True}, InvalidInput, "top must be"),
        ({"top": "ten"}, InvalidInput, "top must be"),
        ({"merge": ["town"]}, InvalidInput, "merge must say"),
        ({"merge": "town"}, InvalidInput, "merge must say"),
        ({"merge": {"town": ["Ulm", "Bonn"]}}, InvalidInput, "merge must say"),
        ({"merge": {"town": {"south": "Ulm"}}}, InvalidInput, "merge must say"),
        ({"merge": {"town": {3: ["Ulm", "Bonn"]}}}, InvalidInput, "merge must say"),
        ({"merge": {"city": {"south": ["Ulm"]}}}, UnknownName, "no quasi-identifier 'city'"),
        ({"merge": {"town": {"south": ["Ulm", "Rome"]}}}, UnknownName, "no such value"),
        ({"merge": {"town": {"south": ["Ulm"], "east": ["Ulm"]}}}, InvalidInput, "merged twice"),
        ({"sensitive": "income"}, UnknownName, "no sensitive attribute"),
        ({"sensitive": None}, InvalidInput, "several sensitive attributes"),
    ],
)
def test_refusals(table: cr.FrequencyTable, settings: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as refusal:
        explain(table, cr.Laplace(epsilon=1.0), **{"sensitive": "job", **settings})
    assert not any(value in str(refusal.value) for value in ("Ulm", "Bonn", "Rome"))


def test_an_explanation_is_frozen(table: cr.FrequencyTable) -> None:
    found = explain(table, cr.Laplace(epsilon=1.0), sensitive="job")
    assert isinstance(found, Explanation)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.baseline = 0.0  # type: ignore[misc]
