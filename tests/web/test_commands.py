"""What a page gives to take away: commands, files and releases, with the numbers that it showed."""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.web import answer_models
from cellrisk.web.answers import describe_ledger
from cellrisk.web.boxes import name_boxes
from tests.near import near_epsilon
from tests.web.conftest import PEOPLE, SETTING, Running, hear, load, start, stop, wait_for

Finish = Callable[..., Any]


def without_origin(page: bytes) -> bytes:
    """A report without the section on how it was made: the command tells more of that than the page."""
    before, _, after = page.partition(b'<section id="provenance">')
    assert after
    return before + after.partition(b"</section>")[2]


class TestCommands:
    @pytest.fixture(scope="class")
    @classmethod
    def awkward(cls, client: Any, finish: Finish, server: Running) -> tuple[str, Path]:
        """A table whose names need quoting, and the file."""
        file = server.folder / "it's, (awkward).csv"
        names = ["sex, at birth", "it's $age", ' "job"']
        frame = pd.DataFrame(
            {names[0]: list("fm") * 60, names[1]: [row % 23 for row in range(120)], names[2]: list("abc") * 40}
        )
        frame.to_csv(file, index=False)
        source = client.post("/api/sources", json={"path": file.name}).json()["source"]
        chosen = {
            "source": source,
            "quasi_identifiers": names[:2],
            "sensitive": names[2:],
            "bins": {names[1]: "0/5/25"},
        }
        return "/api/tables/" + finish(client.post("/api/tables", json={**chosen, "missing": "drop"}))["table"], file

    def test_shell_and_python_give_the_numbers_of_the_page(
        self,
        client: Any,
        finish: Finish,
        awkward: tuple[str, Path],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        table, mechanism = awkward[0], "gaussian-analytic"
        asked = {**SETTING, "sensitive": None, "mechanism": mechanism, "neighbours": "replace", "measure": "expected"}
        asked |= {"epsilon": 1.21, "max_risk": 0.35, "form": "exact", "weights": "uniform"}
        commands = client.post(f"{table}/commands", json=asked).json()
        positions = finish(
            client.post(
                f"{table}/positions",
                json={"mechanism": mechanism, "neighbours": "replace", "measures": ["expected"]},
            )
        )
        place = positions["epsilons"].index(1.21)
        admissible = hear(client, client.post(f"{table}/admissible", json=asked))
        figures = hear(client, client.post(f"{table}/figures", json=asked))
        files = {
            kind: client.get(finish(client.post(f"{table}/downloads", json={"kind": kind, **asked}))["url"]).content
            for kind in ("report", "curve.csv", "curve.svg")
        }

        shell = tmp_path / "shell"
        shell.mkdir()
        monkeypatch.chdir(shell)
        said = {}
        for line in commands["shell"].splitlines():
            program, command, *arguments = shlex.split(line)
            assert program == "cellrisk"
            assert main([command, *arguments, "--json"]) == 0
            said[command] = json.loads(capsys.readouterr().out)
        assert said["assess"]["headline"] == figures["sentence"]
        risks = {(row["measure"], row["form"], row["weights"]): row["risk"] for row in said["assess"]["risks"]}
        row = positions["rows"]["expected/uniform/0"]
        assert row["exact"][place] == pytest.approx(risks["expected", "exact", "uniform"], rel=1e-9, abs=0)
        assert said["choose"]["admissible"] == [near_epsilon(each) for each in admissible["intervals"]]
        assert name_boxes(said["choose"]["headline"]) == admissible["sentence"]

        python = tmp_path / "python"
        python.mkdir()
        monkeypatch.chdir(python)
        exec(compile(commands["python"], "commands", "exec"), {})
        printed = capsys.readouterr().out
        assert figures["sentence"] in printed
        assert admissible["sentence"] in name_boxes(printed)
        for folder in (shell, python):
            assert (folder / "curve.csv").read_bytes() == files["curve.csv"]
            assert (folder / "curve.svg").read_bytes() == files["curve.svg"]
            assert without_origin((folder / "report.html").read_bytes()) == without_origin(files["report"])

    def test_a_mechanism_without_delta_gets_none(self, client: Any, table: str) -> None:
        commands = client.post(f"{table}/commands", json={**SETTING, "delta": 0.1, "max_risk": None}).json()
        assert "delta" not in commands["shell"] + commands["python"]
        assert "choose" not in commands["shell"] + commands["python"]

    def test_a_name_that_no_option_can_hold_is_said(self, client: Any, finish: Finish) -> None:
        table = load(
            client, finish, "a=b,s\n1,x\n2,y\n2,x\n", quasi_identifiers=["a=b"], sensitive=["s"], bins={"a=b": "1"}
        )
        commands = client.post(f"{table}/commands", json={**SETTING, "sensitive": "s"}).json()
        assert commands["shell"].startswith("# A column")
        assert "data.csv" in commands["python"]


class TestReleases:
    def test_a_release_is_an_archive_of_counts_and_their_description(
        self, client: Any, finish: Finish, table: str, tmp_path: Path
    ) -> None:
        asked = {"kind": "release", **SETTING, "mechanism": "geometric", "observed_levels": True}
        made = finish(client.post(f"{table}/downloads", json=asked))
        answer_models.Download(**made)
        archive = tmp_path / made["name"]
        archive.write_bytes(client.get(made["url"]).content)
        assert archive.stat().st_size == made["bytes"]
        with zipfile.ZipFile(archive) as packed:
            assert packed.namelist() == ["people-release.csv", "people-release.csv.json"]
            counts = pd.read_csv(packed.open("people-release.csv"))
            described = json.loads(packed.read("people-release.csv.json"))
        assert list(counts.columns) == ["sex", "age", "job", "count"]
        assert described["mechanism"]["name"] == "geometric"
        assert made["sentence"] == described["sentence"]

    def test_the_policy_holds_here_too(self, adult: cr.FrequencyTable, tmp_path: Path) -> None:
        from cellrisk.web.recipes import Recipe
        from cellrisk.web.work import write_release

        policy = cr.Policy.of({"max-risk": 0.01})
        recipe = Recipe("a.csv", "a.csv", adult.quasi_identifiers, adult.sensitive)
        with pytest.raises(InvalidInput, match="the policy forbids this release"):
            write_release(
                lambda *_: None,
                table=adult,
                recipe=recipe,
                folder=str(tmp_path),
                mechanism=cr.Geometric(epsilon=1.0),
                sensitive="income",
                ending="csv",
                policy=policy,
            )
        assert list(tmp_path.iterdir()) == []

    def test_labels_that_are_only_observed_must_be_accepted(self, client: Any, finish: Finish, table: str) -> None:
        asked = {"kind": "release", **SETTING, "mechanism": "geometric"}
        assert "only those that occur" in finish(client.post(f"{table}/downloads", json=asked), "failed")


class TestLedger:
    def test_there_is_none_by_itself(self, client: Any) -> None:
        answer = client.get("/api/ledger")
        assert answer.status_code == 404
        assert "--ledger" in answer.json()["error"]

    def test_releases_are_written_into_it(self, tmp_path: Path) -> None:
        pytest.importorskip("sqlalchemy")
        from cellrisk.repeat.ledger import Ledger

        place = tmp_path / "releases.ledger"
        with Ledger(place, create=True) as ledger:
            ledger.set_limit("everyone", epsilon=1.5)
        running = start(tmp_path, ledger=str(place), workers=1)
        try:
            with closing(running.client()) as client:
                finish = partial(wait_for, client)
                chosen = {"quasi_identifiers": ["sex", "age"], "sensitive": ["job"], "bins": {"age": "5"}}
                table = load(client, finish, PEOPLE, **chosen)
                asked = {"kind": "release", **SETTING, "mechanism": "geometric", "observed_levels": True}
                refused = client.post(f"{table}/downloads", json=asked)
                assert refused.status_code == 422
                assert "why this is released" in refused.json()["error"]
                named = {**asked, "purpose": "a test", "cohort": "everyone"}
                made = finish(client.post(f"{table}/downloads", json=named))
                with zipfile.ZipFile(BytesIO(client.get(made["url"]).content)) as packed:
                    counts, description = packed.namelist()
                    described = json.loads(packed.read(description))
                    assert (tmp_path / "releases" / counts).read_bytes() == packed.read(counts)
                over = finish(client.post(f"{table}/downloads", json=named), "failed")
                assert "limit of cohort 'everyone'" in over
                found = client.get("/api/ledger").json()
        finally:
            stop(running)
        assert (found["verified"], len(found["entries"])) == (True, 1)
        (entry,) = found["entries"]
        assert (entry["cohort"], entry["purpose"], entry["mechanism"]) == ("everyone", "a test", "geometric")
        assert entry["digest"] == described["ledger"]["digest"]
        with Ledger(place) as ledger:
            checked = ledger.verify()
            assert (checked.ok, checked.remarks) == (True, ())  # the file is where its entry says
        assert found["cohorts"] == [{"name": "everyone", "epsilon": 1.0, "delta": 0.0, "limit": 1.5}]

    def test_one_that_was_changed_is_not_believed(self, tmp_path: Path) -> None:
        pytest.importorskip("sqlalchemy")
        import sqlite3

        from cellrisk.repeat.ledger import Ledger

        place = tmp_path / "releases.ledger"
        with Ledger(place, create=True) as ledger:
            ledger.add(attribute="job", quasi_identifiers="sex", loss=cr.Laplace(epsilon=1.0))
        assert describe_ledger(str(place)).verified
        with closing(sqlite3.connect(place)) as connection, connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            (entries,) = [name for name in tables if "entr" in name]
            for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {trigger}")
            connection.execute(f"UPDATE {entries} SET body = replace(body, '1.0', '0.1')")
        found = describe_ledger(str(place))
        assert (found.verified, found.entries) == (False, [])
        assert "NOT as it was written" in found.sentence

    def test_losses_of_every_flavour_are_described(self, tmp_path: Path) -> None:
        pytest.importorskip("sqlalchemy")
        from cellrisk.repeat.ledger import Ledger

        losses = [
            cr.Laplace(epsilon=1.0),
            Loss.approximate(0.5, 1e-6),
            Loss.zcdp(0.25),
        ]
        place = tmp_path / "releases.ledger"
        with Ledger(place, create=True) as ledger:
            for number, loss in enumerate(losses):
                fields = {"cohort": f"c{number}", "new_cohort": number > 0} if number else {}
                ledger.add(attribute="job", quasi_identifiers="sex", loss=loss, **fields)
        answer = describe_ledger(str(place))
        told = [(entry.epsilon, entry.delta, entry.rho) for entry in answer.entries]
        assert told == [(1.0, 0.0, None), (0.5, 1e-6, None), (None, 0.0, 0.25)]
        assert [cohort.epsilon is None for cohort in answer.cohorts] == [False, False, True]
