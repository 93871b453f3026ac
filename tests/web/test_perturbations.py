"""A perturbation in the place of a mechanism: the API gives the library's numbers, and refuses in words of boxes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.risk.measures import MEASURES
from cellrisk.web.perturbations import MOST_BYTES, GivenPerturbation
from tests.near import near, near_epsilon, same
from tests.web.conftest import Running, hear, upload

Finish = Callable[..., Any]
RULES = ["random-rounding:3", "cell-key", "suppress-below:10,round:5", "cell-key:5/2"]
KEPT = "count,released,probability\n0,0,1\n" + "".join(
    f"{count},{value},{chance}\n" for count in range(1, 40) for value, chance in ((0, 0.25), (count, 0.75))
)
ALWAYS = KEPT + "40,40,1\n"
"""A table P(m -> r) that hides every count below 40 in a quarter of cases."""


def send(client: Any, text: str | bytes, name: str = "keys.csv") -> str:
    return str(client.post("/api/uploads", files={"file": (name, text)}).json()["source"])


def without_origin(page: bytes) -> bytes:
    before, _, after = page.partition(b'<section id="provenance">')
    assert after
    return before + after.partition(b"</section>")[2]


class TestFigures:
    @pytest.mark.parametrize("rule", RULES)
    def test_a_rule_is_assessed_as_the_library_does(
        self, client: Any, table: str, direct: cr.FrequencyTable, rule: str
    ) -> None:
        found = hear(client, client.post(f"{table}/perturbed", json={"rule": rule}))
        expected = cr.assess_perturbation(direct, rule)
        (figures,) = expected.figures
        assert found["sentence"] == expected.headline
        assert same(found["decision"], json.loads(json.dumps(figures.to_dict())))
        assert [row["risk"] for row in found["risks"]] == near([row.risk for row in expected.risks])
        assert {row["measure"] for row in found["risks"]} == set(MEASURES)
        assert [each["by"] for each in found["equal"]] == [each.by for each in figures.equal]
        for told, equal in zip(found["equal"], figures.equal, strict=True):
            assert (told["epsilon"] is None) == (equal.epsilon is None)
            assert equal.epsilon is None or told["epsilon"] == near_epsilon(equal.epsilon)
            assert told["people"] == near([people for _, people in equal.scanned])
        assert (found["limited"], found["broken"]) == (False, [])

    def test_a_table_of_one_s_own(self, client: Any, table: str, direct: cr.FrequencyTable, tmp_path: Path) -> None:
        (tmp_path / "keys.csv").write_text(ALWAYS, encoding="utf-8")
        for below in (None, 12):
            asked = {"uploaded": send(client, ALWAYS), "suppress_below": below, "mechanism": "gaussian-analytic"}
            found = hear(client, client.post(f"{table}/perturbed", json={**asked, "delta": 1e-4}))
            given = f"{tmp_path / 'keys.csv'}" + ("" if below is None else f",suppress-below:{below}")
            expected = cr.assess_perturbation(direct, given, compare="gaussian-analytic", delta=1e-4)
            assert found["sentence"] == expected.headline
            assert found["name"] == expected.perturbation.name
            assert same(found["decision"], json.loads(json.dumps(expected.figures[0].to_dict())))

    def test_the_riskiest_cells_are_those_of_explain(self, client: Any, table: str, direct: cr.FrequencyTable) -> None:
        found = client.post(f"{table}/perturbed/riskiest", json={"rule": "random-rounding:3", "top": 5}).json()
        expected = cr.explain(direct, perturbation="random-rounding:3", top=5).riskiest
        assert same(found["rows"], [vars(cell) for cell in expected])

    def test_limits_are_judged(self, client: Any, table: str, direct: cr.FrequencyTable) -> None:
        figures = cr.assess_perturbation(direct, "random-rounding:3").figures[0]
        at = {
            "max_caused": figures.caused / figures.records,
            "max_ceiling": figures.ceiling,
            "max_risk": figures.people.mean / figures.records,
            "max_people": figures.people.mean,
        }
        for name, figure in at.items():
            for factor, kept in ((1.01, True), (0.99, False)):
                asked = {"rule": "random-rounding:3", name: factor * figure}
                found = hear(client, client.post(f"{table}/perturbed", json=asked))
                assert found["limited"]
                assert (found["broken"] == []) == kept, (name, found["broken"])
                assert "--" not in "".join(found["broken"])

    def test_why_there_is_no_more_is_said_by_the_server(self, client: Any) -> None:
        reasons = client.get("/api/state").json()["without_epsilon"]
        assert reasons["curve"] == "A perturbation has no epsilon to draw a curve along."
        assert reasons["ledger"] == "A ledger adds up privacy losses, and a perturbation states none."
        assert {"choose", "utility", "release", "max_epsilon", "margin"} <= set(reasons)
        assert not [words for words in reasons.values() if "--" in words]


def test_commands_and_report_give_the_numbers_of_the_page(
    client: Any,
    finish: Finish,
    table: str,
    server: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = {"uploaded": send(client, ALWAYS), "suppress_below": 12, "max_caused": 0.4, "max_people": 300.0}
    asked |= {"measure": "expected", "form": "exact"}
    found = hear(client, client.post(f"{table}/perturbed", json=asked))
    made = finish(client.post(f"{table}/perturbed/report", json=asked))
    page = client.get(made["url"]).content
    written = []
    for way in ("shell", "python"):
        folder = tmp_path / way
        folder.mkdir()
        monkeypatch.chdir(folder)
        (folder / "keys.csv").write_text(ALWAYS, encoding="utf-8")
        if way == "python":
            exec(compile(found["commands"]["python"], "commands", "exec"), {})
            assert found["sentence"] in capsys.readouterr().out
        else:
            for line in found["commands"]["shell"].splitlines():
                program, command, *arguments = shlex.split(line)
                assert program == "cellrisk"
                assert main([command, *arguments, "--json"]) == 0
                said = json.loads(capsys.readouterr().out)
                assert command != "assess" or said["headline"] == found["sentence"]
        assert (folder / "equal-risk.svg").is_file()
        written.append(without_origin((folder / "report.html").read_bytes()))
    assert written == [without_origin(page)] * 2


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "sum": ("count,released,probability\n0,0,1\n1,0,0.5\n1,1,0.4\n", "must add up to 1"),
    "negative": ("count,released,probability\n0,0,1\n1,0,-0.5\n1,1,1.5\n", "probabilities must be numbers from 0 to 1"),
    "missing": ("count,released,probability\n0,0,1\n2,2,1\n", "a count has no row"),
    "short": ("count,released,probability\n0,0,1\n1,1,1\n", "ends before the largest count"),
    "vanishing": (KEPT, "may still vanish"),
    "columns": ("a,b\n1,2\n", "the perturbation table has other columns"),
    "empty": ("", "the perturbation table is empty"),
    "bytes": (bytes(range(256)) * 4, "the perturbation table cannot be read as text"),
    "words": ("count,released,probability\n0,0,secret-value\n", "line 2"),
    "huge": (b"count,released,probability\n" + b"0,0,1\n" * 20_000, "each published value once"),
}


class TestRefusals:
    @pytest.mark.parametrize("name", REFUSED)
    def test_a_table_that_cannot_be_used(self, client: Any, finish: Finish, table: str, name: str) -> None:
        text, words = REFUSED[name]
        asked = {"uploaded": send(client, text)}
        answer = client.post(f"{table}/perturbed", json=asked)
        told = finish(answer, "failed") if answer.status_code == 202 else answer.json()["error"]
        assert answer.status_code in (202, 422)
        assert words in told
        assert "\n" not in told
        assert "--" not in told
        assert "secret" not in told
        assert asked["uploaded"] not in told
        assert client.post(f"{table}/perturbed/riskiest", json=asked).status_code == 422

    @pytest.mark.parametrize(
        "rule",
        ["/etc/passwd", "../people.csv", "people.csv", "random-rounding:0", "round:5,/etc/passwd", "", "ä" * 999],
    )
    def test_a_rule_is_never_a_file(self, client: Any, table: str, rule: str) -> None:
        for what in ("perturbed", "perturbed/riskiest", "perturbed/report"):
            answer = client.post(f"{table}/{what}", json={"rule": rule})
            if what == "perturbed/report" and answer.status_code == 202:
                assert rule == "random-rounding:0"
                continue
            assert answer.status_code == 422, answer.text
            assert "no such file" not in answer.json()["error"]

    def test_one_of_the_two(self, client: Any, table: str) -> None:
        for both in ({}, {"rule": "cell-key", "uploaded": send(client, ALWAYS)}):
            assert "one of the two" in client.post(f"{table}/perturbed", json=both).json()["error"]
        asked: dict[str, Any] = {"rule": "cell-key", "suppress_below": 10}
        assert "“Rule”" in client.post(f"{table}/perturbed", json=asked).json()["error"]

    def test_what_was_not_uploaded_or_is_gone(self, client: Any, table: str) -> None:
        source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
        for uploaded in ("nothing", source):
            answer = client.post(f"{table}/perturbed", json={"uploaded": uploaded})
            assert (answer.status_code, answer.json()["error"]) == (
                404,
                "the table P(m -> r) is no longer there; upload it again",
            )

    def test_a_file_that_is_too_large(self, tmp_path: Path) -> None:
        file = tmp_path / "keys.csv"
        with file.open("wb") as stream:
            stream.truncate(MOST_BYTES + 1)
        with pytest.raises(cr.InvalidInput, match="too large"):
            GivenPerturbation(None, str(file), "keys.csv").read()


def test_uploads_are_those_of_data(client: Any) -> None:
    assert upload(client, ALWAYS).status_code == 200
