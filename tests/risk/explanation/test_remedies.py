"""What would help and who bears the risk, by the four attacks: against assessments of the changed tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import cellrisk as cr

ASKED: dict[str, Any] = {"certainty": 0.8, "harmful": ">50K"}


def strongest(table: cr.FrequencyTable, mechanism: cr.Mechanism) -> float:
    rows = cr.assess(table, mechanism, **ASKED).to_dict()["attackers"]
    return float(max(row["own"] for row in rows if row["attack"] != "any"))


def tabulate(qids: list[str]) -> cr.FrequencyTable:
    return cr.tabulate(cr.datasets.adult_as_published(), qids, "income", bins={"age": 10} if "age" in qids else None)


def test_what_would_help_is_what_assessments_of_the_changed_tables_give() -> None:
    names, mechanism = ["age", "race", "sex"], cr.Geometric(1.0)
    found = cr.explain(tabulate(names), mechanism, **ASKED)
    assert found.now.own == pytest.approx(strongest(tabulate(names), mechanism), rel=1e-9, abs=0)
    for way in found.without:
        changed = tabulate([name for name in names if name != way.quasi_identifier])
        assert way.own == pytest.approx(strongest(changed, mechanism), rel=1e-9, abs=0)
        caused, certain = cr.Policy(max_caused=1, max_certain=1, certainty=0.8).limits
        assert way.largest_own == pytest.approx(caused.value(changed.attributes, mechanism), rel=1e-9, abs=0)
        assert certain.value(changed.attributes, mechanism) >= (way.largest_learnt or 0.0)  # of all values
    for setting in found.settings:
        changed_mechanism = replace(mechanism, epsilon=setting.epsilon, threshold=setting.threshold)
        assert setting.own == pytest.approx(strongest(tabulate(names), changed_mechanism), rel=1e-9, abs=0)
    order = [way.largest_own for way in found.what_would_help]
    assert order == sorted(order, key=float)  # type: ignore[arg-type]
    assert len(order) == len(found.without) + len(found.coarser) + len(found.settings)


def test_who_bears_the_risk_adds_up() -> None:
    names, mechanism = ["age", "race", "sex"], cr.Geometric(1.0)
    found = cr.explain(tabulate(names), mechanism, **ASKED)
    rows = cr.assess(tabulate(names), mechanism, **ASKED).to_dict()["attackers"]
    informed = next(row for row in rows if row["attack"] == "informed")
    for name in names:
        levels = [level for level in found.by_level if level.quasi_identifier == name]
        assert sum(level.own or 0.0 for level in levels) == pytest.approx(found.now.own, rel=1e-9, abs=0)
        assert sum(level.learnt or 0.0 for level in levels) == pytest.approx(informed["learnt"], rel=1e-9, abs=1e-9)
        assert max(level.most or 0.0 for level in levels) == pytest.approx(
            max(row["most"] for row in rows if row["own"] == pytest.approx(found.now.own, rel=1e-12, abs=0)),
            rel=1e-9,
            abs=0,
        )
