"""The API gives the numbers of the library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.publish.simulation import SCENARIOS
from cellrisk.web import answer_models
from cellrisk.web.boxes import name_boxes
from tests.near import near, near_epsilon, same
from tests.web.conftest import SETTING, Running, hear, load, upload

Finish = Callable[..., Any]


class TestTables:
    def test_a_table_is_described(self, client: Any, table: str, direct: cr.FrequencyTable) -> None:
        found = client.get(table).json()
        assert (found["records"], found["cells"]) == (direct.n_records, direct.n_cells)
        attribute = found["sensitive"][0]
        summary = direct.summary().attributes[0]
        assert {name: getattr(summary, name) for name in attribute} == attribute
        sizes = found["sizes"]
        assert len(sizes["edges"]) == len(sizes["cells"]) + 1 == len(sizes["records"]) + 1
        assert (sum(sizes["cells"]), sum(sizes["records"])) == (direct.n_cells, direct.n_records)
        assert found["default_delta"] == 0.002

    def test_the_same_table_is_not_counted_twice(self, client: Any, finish: Finish, table: str) -> None:
        source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
        chosen = {"source": source, "quasi_identifiers": ["sex", "age"], "sensitive": ["job"], "bins": {"age": "5"}}
        assert finish(client.post("/api/tables", json=chosen)) == {"table": table.rpartition("/")[2]}

    @pytest.mark.parametrize(
        ("text", "chosen", "warning"),
        [
            ("q,s\n1,a\n2,b\n3,a\n4,b\n", {}, "almost unique"),
            ("q,s\n1,a\n1,b\n1,a\n", {}, "'q' has one value only"),
            ("q,s\n1,a\n1,a\n1,b\n2,a\n2,a\n3,a\n3,a\n3,a\n", {}, "1 level of 's' in one record only"),
            ("q,s\n1,a\n1,b\n1,a\n1,b\n1,a\n1,a\n2,b\n", {}, "1 value of 'q' in one record only"),
            ("q,s\n1,a\n2,b\n1,a\n3,a\n", {}, "3 cells for 4 records"),
            ("q,s\n1,a\n1,\n1,b\n1,a\n2,a\n2,b\n", {}, "No value of 's': 1 record, counted as a level"),
            ("q,s\n1,a\n1,\n1,b\n2,a\n2,b\n", {"missing": "drop"}, "1 record, left out"),
            ("q,s\n1,a\n1,a\n2,a\n2,a\n", {"levels": {"s": ["a", "b"]}}, "Only one level of 's' occurs"),
        ],
        ids=["unique", "one-value", "level-once", "value-once", "cells", "missing", "dropped", "one-level"],
    )
    def test_warnings_of_a_specialist(
        self, client: Any, finish: Finish, text: str, chosen: dict[str, Any], warning: str
    ) -> None:
        found = client.get(load(client, finish, text, quasi_identifiers=["q"], sensitive=["s"], **chosen)).json()
        assert any(warning in each for each in found["warnings"]), found["warnings"]

    @pytest.mark.parametrize(
        ("text", "chosen", "error"),
        [
            ("q,s\n1,a\n2,a\n", {}, "one level only"),
            ("q,s\n1,a\n2,b\n", {"quasi_identifiers": ["z"]}, "'data.csv' has no column 'z'"),
            ("q,s,t\n1,a,x\n2,b,\n3,b,y\n", {"sensitive": ["s", "t"], "missing": "drop"}, "change the numbers"),
        ],
        ids=["nothing-to-protect", "no-such-column", "dropped-for-another"],
    )
    def test_what_cannot_be_counted_is_refused(
        self, client: Any, finish: Finish, text: str, chosen: dict[str, Any], error: str
    ) -> None:
        source = upload(client, text).json()["source"]
        asked = {"source": source, "quasi_identifiers": ["q"], "sensitive": ["s"], **chosen}
        assert error in finish(client.post("/api/tables", json=asked), "failed")

    def test_bins_that_cannot_be_read_are_refused_at_once(self, client: Any) -> None:
        source = upload(client, "q,s\n1,a\n").json()["source"]
        asked = {"source": source, "quasi_identifiers": ["q"], "sensitive": ["s"], "bins": {"q": "wide"}}
        assert "each bin of column 'q' must be a number" in client.post("/api/tables", json=asked).json()["error"]


class TestRisk:
    @pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gaussian-analytic"])
    def test_positions_are_those_of_curve_and_assess(
        self, client: Any, finish: Finish, table: str, direct: cr.FrequencyTable, mechanism: str
    ) -> None:
        measures = ["local", "marginal_shrinkage"]
        asked = {"mechanism": mechanism, "measures": measures, "points": 11}
        found = finish(client.post(f"{table}/positions", json=asked))
        answer_models.Positions(**found)
        deltas = [None] if mechanism == "laplace" else [0.002, 0.0002, 2e-05]
        assert (found["deltas"], found["default_index"]) == (deltas, 0)
        epsilons = found["epsilons"]
        assert epsilons[0] == 0.001
        assert epsilons[-1] == (0.316 if mechanism == "gaussian" else 100.0)
        assert len(found["rows"]) == 4 * len(deltas)
        for number, delta in enumerate(deltas):
            figures = found["figures"][str(number)]
            for place in (0, len(epsilons) // 2, len(epsilons) - 1):
                assessed = cr.assess(direct, cr.mechanism(mechanism, epsilon=epsilons[place], delta=delta))
                decision = assessed.figures[0]
                assert figures["exposed"][place] == pytest.approx(assessed.exposures[0].share, rel=1e-9, abs=0)
                assert figures["caused"][place] == pytest.approx(decision.caused.share, rel=1e-9, abs=0)
                assert figures["ceiling"][place] == pytest.approx(
                    decision.ceiling.to_dict()["even_two"], rel=1e-9, abs=0
                )
                assert figures["sentences"][place].partition(" (")[0] == assessed.headline.partition(" (")[0]
                for measure in measures:
                    for weights in ("uniform", "records"):
                        row = found["rows"][f"{measure}/{weights}/{number}"]
                        for form in ("exact", "tight", "published"):
                            assert row[form][place] == pytest.approx(
                                assessed.value(measure, form, weights), rel=1e-9, abs=0
                            )

    def test_several_sensitive_attributes_are_told_apart(self, client: Any, finish: Finish, server: Running) -> None:
        source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
        chosen = {"source": source, "quasi_identifiers": ["age"], "sensitive": ["job", "sex"], "bins": {"age": "10"}}
        both = "/api/tables/" + finish(client.post("/api/tables", json=chosen))["table"]
        assert "several sensitive" in client.post(f"{both}/positions", json={}).json()["error"]
        alone = cr.tabulate(server.folder / "people.csv", ["age"], "sex", bins={"age": 10})
        found = hear(client, client.post(f"{both}/admissible", json={**SETTING, "sensitive": "sex", "max_risk": 0.1}))
        assert found["sentence"] == name_boxes(cr.choose(alone, max_risk=0.1).headline)
        riskiest = client.post(f"{both}/riskiest", json={**SETTING, "sensitive": "sex", "top": 3}).json()
        assert [row["risk"] for row in riskiest["rows"]] == near(
            [cell.risk for cell in cr.explain(alone, cr.Geometric(epsilon=1.0), top=3).riskiest]
        )
        made = finish(client.post(f"{both}/map", json={**SETTING, "sensitive": "sex", "releases": 2}))
        assert made["points"][0]["epsilon"] == 0.001

    @pytest.mark.parametrize("limit", [0.001, 0.05, 0.9])
    def test_admissible_is_that_of_choose(
        self, client: Any, table: str, direct: cr.FrequencyTable, limit: float
    ) -> None:
        found = hear(client, client.post(f"{table}/admissible", json={**SETTING, "max_risk": limit}))
        choice = cr.choose(direct, max_risk=limit)
        assert (found["epsilon"] is None) == (choice.epsilon is None)
        assert choice.epsilon is None or found["epsilon"] == near_epsilon(choice.epsilon)
        assert found["intervals"] == [near_epsilon(interval) for interval in choice.admissible]
        assert found["sentence"] == name_boxes(choice.headline)

    @pytest.mark.parametrize(
        "limits", [{"max_ceiling": 0.75, "max_epsilon": 2.0}, {"max_people": 25.0}, {"margin": 0.3}], ids="-".join
    )
    def test_other_limits_are_those_of_choose(
        self, client: Any, finish: Finish, tmp_path: Path, limits: dict[str, float]
    ) -> None:
        """Half of the cells show one value: there is an epsilon from which on too many people are exposed."""
        text = "q,s\n" + "".join(f"{row % 10},{'ab'[row % 4 == 1 and row % 10 < 5]}\n" for row in range(60))
        (tmp_path / "data.csv").write_text(text, encoding="utf-8")
        direct = cr.tabulate(tmp_path / "data.csv", "q", "s")
        table = load(client, finish, text, quasi_identifiers=["q"], sensitive=["s"])
        asked = {**SETTING, "sensitive": "s", "max_risk": None, **limits}
        found = hear(client, client.post(f"{table}/admissible", json=asked))
        choice = cr.choose(direct, **limits)  # type: ignore[arg-type]
        assert choice.epsilon is not None
        assert found["epsilon"] == near_epsilon(choice.epsilon)
        assert found["intervals"] == [near_epsilon(interval) for interval in choice.admissible]
        loose = {**asked, "kind": "release"}
        for epsilon, kept in ((0.99 * choice.epsilon, True), (1.01 * choice.epsilon, False)):
            told = client.post(f"{table}/consequences", json={**loose, "epsilon": epsilon}).json()
            assert (told["above"] == []) == kept, told

    def test_the_figures_at_one_epsilon_are_those_of_assess(
        self, client: Any, table: str, direct: cr.FrequencyTable
    ) -> None:
        found = hear(client, client.post(f"{table}/figures", json=SETTING))
        assessed = cr.assess(direct, cr.Geometric(epsilon=1.0))
        assert found["sentence"] == assessed.headline
        assert (found["people"]["low"], found["people"]["high"]) == (
            assessed.exposures[0].people.low,
            assessed.exposures[0].people.high,
        )
        assert same(found["decision"], assessed.figures[0].to_dict())

    def test_certainty_is_that_of_curve(
        self, client: Any, finish: Finish, table: str, direct: cr.FrequencyTable
    ) -> None:
        found = finish(client.post(f"{table}/certainty", json={"points": 4}))
        (lines,) = cr.curve(direct, epsilon=found["epsilons"], measures="certainty").figures
        assert found["sure"] == near((lines.certainty[0].right / direct.n_records).tolist())

    def test_the_riskiest_cells_are_those_of_explain(self, client: Any, table: str, direct: cr.FrequencyTable) -> None:
        found = client.post(f"{table}/riskiest", json={**SETTING, "top": 7}).json()
        expected = cr.explain(direct, cr.Geometric(epsilon=1.0), top=7).riskiest
        assert found["columns"] == ["sex", "age"]
        assert same(found["rows"], [vars(cell) for cell in expected])

    def test_the_map_is_that_of_choose(
        self, client: Any, finish: Finish, table: str, direct: cr.FrequencyTable
    ) -> None:
        asked = {**SETTING, "max_risk": 0.2, "max_tvd": 0.5, "releases": 3, "seed": 4}
        found = finish(client.post(f"{table}/map", json=asked))
        answer_models.RiskMap(**found)
        choice = cr.choose(direct, max_risk=0.2, max_tvd=0.5, releases=3, seed=4)
        assert choice.trade_off is not None
        assert same(found["points"], choice.trade_off.to_dict()["points"])
        assert found["sentence"] == name_boxes(choice.headline)
        if choice.epsilon is None:
            assert found["recommended"] is None
        else:
            assert found["recommended"]["epsilon"] == near_epsilon(choice.epsilon)

    def test_a_glimpse_shows_one_release_and_what_became_of_its_cells(
        self, client: Any, table: str, direct: cr.FrequencyTable
    ) -> None:
        asked = {**SETTING, "epsilon": 0.5, "cells": 16, "seed": 1}
        found = client.post(f"{table}/glimpse", json=asked).json()
        assert client.post(f"{table}/glimpse", json=asked).json() == found
        other = client.post(f"{table}/glimpse", json={**asked, "seed": 2}).json()
        assert [cell["key"] for cell in other["cells"]] == [cell["key"] for cell in found["cells"]]
        assert other != found
        cells = direct.cells()
        truth = {
            tuple(cells.key(place).values()): {
                cells.levels[cells.level[number]]: int(cells.count[number])
                for number in range(cells.offsets[place], cells.offsets[place + 1])
            }
            for place in range(cells.n_cells)
        }
        for cell in found["cells"]:
            before = dict(zip(found["levels"], cell["before"], strict=True))
            after = dict(zip(found["levels"], cell["after"], strict=True))
            assert {level: number for level, number in before.items() if number} == truth[tuple(cell["key"].values())]
            held, shown = ({level for level, number in side.items() if number} for side in (before, after))
            words = ("one label" if len(held) == 1 else "several labels", SCENARIOS[cell["scenario"]][1])
            assert SCENARIOS[cell["scenario"]] == words
            assert (len(shown) == 0) == (cell["scenario"] in (4, 6))
            assert (len(shown) > 1) == (cell["scenario"] in (3, 5))
            assert (len(shown) == 1 and shown <= held) == (cell["scenario"] in (1, 8))
        assert [each["scenario"] for each in found["legend"] if each["exposes"]] == [1, 8]

    def test_two_settings_are_compared(
        self, client: Any, finish: Finish, table: str, server: Running, direct: cr.FrequencyTable
    ) -> None:
        a = {"mechanism": "laplace", "epsilon": 1.0, "delta": None}
        b = {"mechanism": "gaussian-analytic", "epsilon": 2.0, "delta": 0.01, "quasi_identifiers": ["age"]}
        asked = {"a": a, "b": {**b, "bins": {"age": "10"}}, "sensitive": "job", "measure": "local", "form": "exact"}
        found = finish(client.post(f"{table}/compare", json=asked))
        answer_models.ComparisonAnswer(**found)
        coarse = cr.tabulate(server.folder / "people.csv", ["age"], "job", bins={"age": 10})
        for side, frequencies, mechanism in (
            ("a", direct, cr.Laplace(epsilon=1.0)),
            ("b", coarse, cr.AnalyticGaussian(epsilon=2.0, delta=0.01)),
        ):
            assessed = cr.assess(frequencies, mechanism)
            assert found[side]["at"]["risk"] == pytest.approx(assessed.value(form="exact"), rel=1e-9, abs=0)
            assert found[side]["at"]["people"] == pytest.approx(assessed.exposures[0].people.mean, rel=1e-9, abs=0)
        assert found["b"]["label"] == "gaussian-analytic, delta 0.01; without sex; age in bins 10"

    def test_a_mechanism_is_refused_where_it_has_no_guarantee(self, client: Any, table: str) -> None:
        answer = client.post(f"{table}/riskiest", json={**SETTING, "mechanism": "gaussian", "epsilon": 2.0})
        assert answer.status_code == 422
        assert "gaussian-analytic" in answer.json()["error"]

    @pytest.mark.parametrize("path", ["/api/tables/unknown", "/api/sources/unknown", "/api/downloads/unknown"])
    def test_what_is_not_there_is_said_to_be_loaded_again(self, client: Any, path: str) -> None:
        answer = client.get(path)
        assert answer.status_code == 404
        assert "again" in answer.json()["error"]
