"""The API: its answers are those of the library, and a refusal is one line in the words of the page."""

from __future__ import annotations

import csv
import io
import re
import shlex
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.show.wording.attackers import accuracy
from cellrisk.system.formatting import percent
from tests.near import near, near_epsilon, same
from tests.web.conftest import SETTING, Running, hear, load, upload


def question(client: Any, table: str, what: str, **asked: Any) -> Any:
    return hear(client, client.post(f"{table}/{what}", json={**SETTING, "max_risk": None, **asked}))


class TestTables:
    def test_a_table_is_described(self, client: Any, table: str, direct: cr.FrequencyTable) -> None:
        found = client.get(table).json()
        assert same(found["summary"], direct.to_dict())
        assert found["figures"][:2] == [
            ["People", "400", ""],
            ["Groups", f"{direct.n_cells}", "combinations of quasi-identifiers that occur"],
        ]

    def test_the_same_table_is_not_counted_twice(self, client: Any, table: str) -> None:
        source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
        chosen = {"source": source, "quasi_identifiers": ["sex", "age"], "sensitive": ["job"], "bins": {"age": "5"}}
        answer = hear(client, client.post("/api/tables", json=chosen))
        assert f"/api/tables/{answer['table']}" == table

    @pytest.mark.parametrize(
        ("text", "chosen", "warning"),
        [
            ("q,s\n1,a\n2,b\n3,a\n4,b\n", {}, "4 groups for 4 records"),
            ("q,s\n1,a\n1,a\n1,b\n2,a\n2,a\n3,a\n3,a\n3,a\n", {}, "1 value of 's' in one record only"),
            ("q,s\n1,a\n2,b\n1,a\n3,a\n", {}, "3 groups for 4 records"),
            ("q,s\n1,a\n1,\n1,b\n1,a\n2,a\n2,b\n", {}, "No value of 's': 1 record, counted as a value"),
            ("q,s\n1,a\n1,\n1,b\n2,a\n2,b\n", {"missing": "drop"}, "1 record, left out"),
        ],
        ids=["unique", "level-once", "cells", "missing", "dropped"],
    )
    def test_warnings_of_a_specialist(self, client: Any, text: str, chosen: dict[str, Any], warning: str) -> None:
        found = load(client, text, quasi_identifiers=["q"], sensitive=["s"], **chosen)
        assert any(warning in each for each in found["warnings"]), found["warnings"]

    @pytest.mark.parametrize(
        ("text", "chosen", "error"),
        [
            ("q,s\n1,a\n2,a\n", {}, "one level only"),
            ("q,s\n1,a\n2,b\n", {"quasi_identifiers": ["z"]}, "'data.csv' has no column 'z'"),
            ("q,s\n1,a\n2,b\n", {"bins": {"q": "wide"}}, "each bin of column 'q' must be a number"),
        ],
        ids=["nothing-to-protect", "no-such-column", "bins"],
    )
    def test_what_cannot_be_counted_is_refused(
        self, client: Any, text: str, chosen: dict[str, Any], error: str
    ) -> None:
        source = upload(client, text).json()["source"]
        asked = {"source": source, "quasi_identifiers": ["q"], "sensitive": ["s"], **chosen}
        assert error in hear(client, client.post("/api/tables", json=asked), failed=True)

    def test_a_file_that_has_changed_is_not_mixed_with_what_was_counted(self, server: Running, client: Any) -> None:
        path = server.folder / "changing.csv"
        path.write_text("q,s\n1,a\n1,b\n2,a\n2,b\n", encoding="utf-8")
        source = client.post("/api/sources", json={"path": "changing.csv"}).json()["source"]
        chosen = {"source": source, "quasi_identifiers": ["q"], "sensitive": ["s"]}
        table = hear(client, client.post("/api/tables", json=chosen))["table"]
        path.write_text("q,s\n1,a\n1,a\n1,a\n2,b\n2,b\n", encoding="utf-8")
        again = hear(client, client.post("/api/tables", json=chosen))
        assert (again["summary"]["records"], client.get(f"/api/tables/{table}").json()["summary"]["records"]) == (5, 4)
        path.unlink()


class TestQuestions:
    @pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gaussian-analytic"])
    def test_positions_are_those_of_assess(
        self, client: Any, table: str, direct: cr.FrequencyTable, mechanism: str
    ) -> None:
        found = question(client, table, "positions", mechanism=mechanism, measure="shrinkage")
        deltas = [None] if mechanism == "laplace" else [0.002, 0.0002, 2e-05]
        assert found["deltas"] == deltas
        epsilons = found["epsilons"]
        assert (epsilons[0], epsilons[-1]) == (0.001, 0.909 if mechanism == "gaussian" else 100.0)
        for delta, lines in zip(deltas, found["by_delta"], strict=True):
            for place in (0, len(epsilons) // 2, len(epsilons) - 1):
                assessed = cr.assess(direct, cr.mechanism(mechanism, epsilon=epsilons[place], delta=delta))
                [decision] = assessed.to_dict()["decision"]
                assert lines["sentences"][place] == accuracy(assessed.mechanism)
                assert lines["ceiling"]["values"][place] == near(decision["ceiling"]["even_two"])
                for weights in ("uniform", "records"):
                    for form in ("exact", "tight", "published"):
                        risk = assessed.value("shrinkage", form, weights)
                        assert lines[weights][form]["values"][place] == near(risk)
                        assert lines[weights][form]["texts"][place] == percent(risk)

    def test_several_sensitive_attributes_are_told_apart(self, client: Any, server: Running) -> None:
        source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
        chosen = {"source": source, "quasi_identifiers": ["age"], "sensitive": ["job", "sex"], "bins": {"age": "10"}}
        both = "/api/tables/" + hear(client, client.post("/api/tables", json=chosen))["table"]
        alone = cr.tabulate(server.folder / "people.csv", ["age"], "sex", bins={"age": 10})
        for what in ("figures", "admissible"):
            result = question(client, both, what, sensitive="sex", max_risk=0.1)["result"]
            same_of_library = {
                "figures": cr.assess(alone, epsilon=1.0, measures="local"),
                "admissible": cr.choose(alone, max_risk=0.1),
            }
            assert same(result, same_of_library[what].to_dict())
        answer = client.post(f"{both}/figures", json={**SETTING, "sensitive": "age"})
        assert answer.status_code == 404

    @pytest.mark.parametrize(
        "limits",
        [{"max_risk": 0.05}, {"max_ceiling": 0.75, "max_epsilon": 2.0}, {"max_people": 25.0}, {"margin": 0.3}],
        ids="-".join,
    )
    def test_admissible_and_consequences_are_those_of_choose(
        self, client: Any, tmp_path: Path, limits: dict[str, Any]
    ) -> None:
        """Half of the cells show one value: there is an epsilon from which on too many people are exposed."""
        text = "q,s\n" + "".join(f"{row % 10},{'ab'[row % 4 == 1 and row % 10 < 5]}\n" for row in range(60))
        (tmp_path / "data.csv").write_text(text, encoding="utf-8")
        choice = cr.choose(cr.tabulate(tmp_path / "data.csv", "q", "s"), **limits)
        table = "/api/tables/" + load(client, text, quasi_identifiers=["q"], sensitive=["s"])["table"]
        found = question(client, table, "admissible", sensitive="s", **limits)
        assert found["intervals"] == [near_epsilon(interval) for interval in choice.admissible]
        assert (found["epsilon"] is None) == (choice.epsilon is None)
        if choice.epsilon is not None:
            assert found["epsilon"] == near_epsilon(choice.epsilon)
            for epsilon, broken in ((choice.epsilon, False), (1.01 * choice.exact_epsilon, True)):
                told = question(client, table, "consequences", sensitive="s", **limits, epsilon=epsilon)
                assert told["broken"] == broken, told

    def test_the_figures_at_one_epsilon_are_those_of_assess(
        self, client: Any, table: str, direct: cr.FrequencyTable
    ) -> None:
        found = question(client, table, "figures", harmful="cook, clerk")
        assessed = cr.assess(direct, cr.Geometric(epsilon=1.0), measures="local", harmful=["cook", "clerk"])
        assert found["sentence"] == assessed.headline.partition(" Having")[0]
        assert same(found["result"], assessed.to_dict())
        printed = str(assessed)
        assert len(found["attacks"]) >= 4
        assert all(cell in printed for row in found["attacks"] for cell in row)
        assert all(note in printed for note in found["notes"])

    def test_attacks_along_epsilon_are_those_of_assess(
        self, client: Any, table: str, direct: cr.FrequencyTable
    ) -> None:
        found = question(client, table, "attacks")
        epsilons = question(client, table, "positions")["epsilons"]
        for place in (0, 60, 120):
            rows = cr.assess(direct, cr.Geometric(epsilons[place])).to_dict()["attackers"]
            named = [row for row in rows if row["attack"] != "any"]
            informed = next(row["revealed"] for row in named if row["attack"] == "informed")
            assert found["own"]["values"][place] == near(max(row["own"] for row in named) / direct.n_records)
            assert found["most"]["values"][place] == near(max(row["most"] for row in named))
            assert found["sure"]["values"][place] == near(informed / direct.n_records)

    def test_the_riskiest_cells_are_those_of_explain(self, client: Any, table: str, direct: cr.FrequencyTable) -> None:
        found = question(client, table, "riskiest", top=7)
        expected = cr.explain(direct, cr.Geometric(epsilon=1.0), top=7).to_dict()["riskiest"]
        assert found["words"] == ["sex", "age"]
        assert [row[:5] for row in found["rows"]] == [
            [*cell["key"].values(), f"{cell['records']:,}", f"{cell['levels']:,}", percent(cell["risk"])]
            for cell in expected
        ]

    @pytest.mark.parametrize("limit", [{"max_risk": 0.2}, {"max_person": 0.2}], ids=lambda limit: next(iter(limit)))
    def test_the_map_is_that_of_choose(
        self, client: Any, table: str, direct: cr.FrequencyTable, limit: dict[str, float]
    ) -> None:
        answer = question(client, table, "map", **limit, max_tvd=0.5)
        choice = cr.choose(direct, **limit, max_tvd=0.5)
        assert choice.trade_off is not None
        points = [{name: point[name] for name in ("epsilon", "tvd")} for point in answer["points"]]
        assert same(points, choice.trade_off.to_dict()["points"])
        assert [point["value"] for point in answer["points"]] == near(choice.shown_at(choice.trade_off.epsilon))
        assert answer["limit"] == 0.2
        assert answer["sentence"] == choice.headline

    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            ({"mechanism": "gaussian", "epsilon": 2.0}, "gaussian-analytic"),
            ({"epsilon": 0.0}, "epsilon: Input should be greater than 0"),
            ({"form": "zanzibar"}, "form: Input should be"),
            ({"more": 1}, "more: Extra inputs"),
        ],
        ids=["no-guarantee", "zero", "unknown-word", "unknown-field"],
    )
    def test_a_refusal_is_one_line(self, client: Any, table: str, asked: dict[str, Any], words: str) -> None:
        error = hear(client, client.post(f"{table}/figures", json={**SETTING, **asked}), failed=True)
        assert words in error
        assert "\n" not in error

    @pytest.mark.parametrize("path", ["/api/tables/unknown", "/api/sources/unknown", "/api/downloads/unknown"])
    def test_what_is_not_there_is_said_to_be_loaded_again(self, client: Any, path: str) -> None:
        answer = client.get(path)
        assert answer.status_code == 404
        assert "again" in answer.json()["error"]


@pytest.mark.parametrize(
    "limit",
    [{"max_posterior": "5:20"}, {"max_person": 0.1}, {"max_error": 2}, {"max_certain": 0.02, "harmful": "cook"}],
)
def test_limits_are_those_of_choose(client: Any, table: str, direct: cr.FrequencyTable, limit: dict[str, Any]) -> None:
    found, choice = question(client, table, "admissible", **limit), cr.choose(direct, **limit).to_dict()
    assert (found["epsilon"], found["intervals"]) == (choice["epsilon"], choice["admissible"])
    shell = question(client, table, "commands", **limit)["shell"]
    assert all(f"--{name.replace('_', '-')} {value}" in shell for name, value in limit.items())
    wrong = hear(client, client.post(f"{table}/admissible", json={**SETTING, "max_posterior": "5 to 20"}), failed=True)
    assert wrong.startswith("“A suspicion of P% may become” must be")


class TestPeopleWithSeveralRows:
    """One person can have several rows: a column names the person, or the number is taken on trust."""

    VISITS = "who,ward,ill\n" + "".join(
        f"p{row % 17},{'ab'[row % 2]},{('cold', 'flu')[row % 5 == 0]}\n" for row in range(60)
    )

    @pytest.mark.parametrize("person", ["who", None], ids=["enforced", "asserted"])
    def test_the_figures_are_those_of_the_library(self, client: Any, tmp_path: Path, person: str | None) -> None:
        people: dict[str, Any] = {"person": person, "contributions": 2}
        made = load(client, self.VISITS, quasi_identifiers=["ward"], sensitive=["ill"], **people)
        file = tmp_path / "visits.csv"
        file.write_text(self.VISITS, encoding="utf-8")
        table = cr.tabulate(file, "ward", "ill", **people)
        assert same(made["summary"], table.to_dict())
        assert made["figures"][0][:2] == ["Records", f"{table.n_records}"]
        address = f"/api/tables/{made['table']}"
        found = question(client, address, "figures", sensitive="ill")
        expected = cr.assess(table, cr.Geometric(epsilon=1.0), measures="local").to_dict()
        assert expected["mechanism"]["scale"] == near(2.0)
        assert same(found["result"], expected)
        limited = question(client, address, "admissible", sensitive="ill", max_ceiling=0.75)
        assert limited["epsilon"] == cr.choose(table, max_ceiling=0.75).epsilon

    def test_a_person_is_not_a_role_and_not_a_count(self, client: Any) -> None:
        source = upload(client, self.VISITS).json()["source"]
        asked = {
            "source": source,
            "quasi_identifiers": ["who"],
            "sensitive": ["ill"],
            "person": "who",
            "contributions": 2,
        }
        assert "who" in hear(client, client.post("/api/tables", json=asked), failed=True)
        asked |= {"quasi_identifiers": ["ward"], "contributions": None}
        assert "“Most records of one person”" in hear(client, client.post("/api/tables", json=asked), failed=True)


class TestFiles:
    def fetch(self, client: Any, table: str, **asked: Any) -> Any:
        found = question(client, table, "release", **asked)
        return found, client.get(found["url"])

    def test_a_release_has_its_description_beside_it(self, client: Any, table: str) -> None:
        pytest.importorskip("opendp", reason="the extra 'release' is not installed")
        _, answer = self.fetch(client, table, observed_levels=True)
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            counts, description = archive.namelist()
            rows = list(csv.DictReader(io.StringIO(archive.read(counts).decode())))
            assert description == f"{counts}.json"
        assert np.array([int(row["count"]) for row in rows]).sum() > 0

    def test_commands_give_the_same_numbers(self, client: Any, table: str, capsys: pytest.CaptureFixture[str]) -> None:
        first, *_ = question(client, table, "commands", max_caused=0.01)["shell"].splitlines()
        shown = question(client, table, "figures")["sentence"]
        assert main(shlex.split(first)[1:]) == 0
        [number, percent] = re.findall(r"at least ([\d,]+) of 400 people \(([\d.]+%)\)", shown)[0]
        assert f" {number} {percent} " in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("label", ["<script>alert(1)</script>", "=1+1", '"><img src=x>'])
def test_labels_stay_text_in_reports(client: Any, label: str) -> None:
    quoted = label.replace('"', '""')
    text = "q,s\n" + "".join(f'"{quoted}",{"ab"[row % 2]}\nplain,{"ab"[row % 3 == 0]}\n' for row in range(10))
    table = "/api/tables/" + load(client, text, quasi_identifiers=["q"], sensitive=["s"])["table"]
    found = question(client, table, "report", sensitive="s", title=label)
    page = client.get(found["url"]).text
    assert "<script>alert" not in page
    assert "<img src=x>" not in page
