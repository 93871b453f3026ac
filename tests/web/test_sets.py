"""Sets of tables over the API: the numbers of the library and of the command, set files that mean harm, refusals."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.filters import read_part
from cellrisk.decide.policies import Obeyed, Policies
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.repeat.together.set_file import read_set_file, refuse_belief
from cellrisk.repeat.together.sets import read_tables, refuse_shared_noise
from cellrisk.web.boxes import in_words_of_boxes, known_as, name_set_boxes
from cellrisk.web.commands import find_arguments, write_set_file
from cellrisk.web.request_models import MOST_LETTERS, SetChoice
from cellrisk.web.set_work import assess_set, read_set
from tests.near import near, same
from tests.web.conftest import Running, ask, hear, upload, wait_for

Finish = Callable[..., Any]
TABLES: list[dict[str, Any]] = [
    {"quasi_identifiers": ["sex", "age"], "bins": {"age": "10"}},
    {
        "name": "the older ones",
        "quasi_identifiers": ["age"],
        "bins": {"age": "0/30/40/60"},
        "where": {"age": {"from": 25}, "sex": ["f", "m"]},
        "mechanism": "laplace",
        "epsilon": 0.5,
    },
    {"quasi_identifiers": ["sex"], "threshold": 1.5},
]
CHOICE: dict[str, Any] = {"sensitive": "job", "epsilon": 1.0, "tables": TABLES}


def silent(*_: Any) -> None:
    """Progress that nobody follows."""


@pytest.fixture(scope="module")
def source(client: Any) -> str:
    return str(client.post("/api/sources", json={"path": "people.csv"}).json()["source"])


@pytest.fixture(scope="module")
def answer(client: Any, source: str) -> Any:
    return wait_for(client, client.post(f"/api/sources/{source}/set", json=CHOICE))


class TestNumbers:
    def test_they_are_those_of_the_library(self, server: Running, answer: Any) -> None:
        bins = {"age": 10}
        tables: list[dict[str, Any]] = [
            {"qid": ["sex", "age"], "bin": bins},
            {
                "name": "the older ones",
                "qid": "age",
                "bin": {"age": [0, 30, 40, 60]},
                "where": {"age": {"from": 25}, "sex": ["f", "m"]},
                "mechanism": "laplace",
                "epsilon": 0.5,
            },
            {"qid": "sex", "threshold": 1.5},
        ]
        found = cr.assess_together(server.folder / "people.csv", tables, "job", epsilon=1.0)
        assert (answer["sentence"], answer["records"], answer["labels"]) == (found.headline, 400, 3)
        for told, rule in zip(answer["rules"], found.rules, strict=True):
            assert told["says"]
            assert same({name: value for name, value in told.items() if name != "says"}, rule.to_dict())
        lead = found.rule()
        for told, each in zip(answer["tables"], found.tables, strict=True):
            assert same(told["alone"], each.alone.to_dict())
            assert each.ceiling is not None
            assert told["ceiling"] == near(each.ceiling.even_two)
            assert each.without is not None
            assert told["without"] == near(
                {
                    "right": each.without.right,
                    "caused": each.without.caused,
                    "adds_right": lead.right - each.without.right,
                    "adds_caused": lead.caused - each.without.caused,
                }
            )
        assert [each["title"] for each in answer["tables"]] == ["sex, age", "the older ones", "sex"]
        assert found.ceiling is not None
        assert (answer["ceiling"], answer["epsilon"]) == (near(found.ceiling.even_two), near(2.5))
        assert answer["growth"][0] == near({"tables": 1, **_people(found.tables[0].alone)})
        assert answer["growth"][-1] == near({"tables": 3, **_people(lead)})
        assert len(answer["growth"]) == 3

    def test_its_words_are_those_of_the_command(
        self,
        client: Any,
        source: str,
        answer: Any,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        told = client.post(f"/api/sources/{source}/set/commands", json=CHOICE).json()
        (tmp_path / "set.toml").write_text(told["set_file"], encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        assert main(told["shell"].split()[1:]) == 0
        printed = capsys.readouterr().out
        for words in ("sentence", "interval", "parts", "nobody", "cost"):
            assert answer[words], words
            assert answer[words] in printed
        for line in (*answer["differences"], *answer["statements"]):
            assert line in printed
        assert any("nested" in line for line in answer["statements"])
        assert main([*told["shell"].split()[1:], "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        ours = [{name: value for name, value in each.items() if name != "says"} for each in answer["rules"]]
        assert same(ours, said["rules"])
        for own, theirs in zip(answer["tables"], said["tables"], strict=True):
            assert {name: theirs[name] for name in ("right", "named", "caused", "chance", "raw")} == near(
                {name: own["alone"][name] for name in ("right", "named", "caused", "chance", "raw")}
            )
            assert theirs["ceiling"]["even_two"] == near(own["ceiling"])
        exec(compile(told["python"], "python", "exec"), {})
        assert capsys.readouterr().out == printed

    def test_a_difference_and_least_squares_are_told_as_they_are_printed(self, client: Any, source: str) -> None:
        columns = {"quasi_identifiers": ["sex", "age"], "bins": {"age": "10"}}
        few = {**CHOICE, "tables": [columns, {**columns, "where": {"age": {"not": [22, 23]}}}]}
        found = wait_for(client, client.post(f"/api/sources/{source}/set", json=few))
        told = r"Table 2 leaves out \d+ people of cells that it shares with table 1: to publish both .*"
        assert re.fullmatch(told, found["differences"][0])
        two = {**CHOICE, "tables": [columns, {"quasi_identifiers": ["sex"]}]}
        found = wait_for(client, client.post(f"/api/sources/{source}/set", json=two))
        assert found["least_squares"].startswith("Least squares over the margins that the tables have in common")

    def test_the_same_set_is_not_counted_twice(self, client: Any, source: str, answer: Any) -> None:
        again = client.post(f"/api/sources/{source}/set", json=CHOICE).json()["job"]
        assert client.get(f"/api/jobs/{again}").json()["result"]["sentence"] == answer["sentence"]

    def test_one_table_is_a_set_too(self, client: Any, source: str) -> None:
        found = wait_for(client, client.post(f"/api/sources/{source}/set", json={**CHOICE, "tables": TABLES[:1]}))
        assert found["tables"][0]["without"] is None
        assert (found["parts"], len(found["growth"])) == ("", 1)

    def test_more_tables_than_are_compared_with_each_other(self, client: Any, source: str) -> None:
        tables = [{"quasi_identifiers": ["age"], "bins": {"age": str(width)}} for width in range(3, 11)]
        found = wait_for(client, client.post(f"/api/sources/{source}/set", json={**CHOICE, "tables": tables}))
        assert [each["tables"] for each in found["growth"]] == [1, 7, 8]

    def test_counts_in_a_column(self, client: Any, finish: Finish) -> None:
        text = "sex,town,job,n\nf,a,x,3\nf,b,y,2\nm,a,y,4\nm,b,x,1\n"
        given = upload(client, text).json()["source"]
        tables = [{"quasi_identifiers": ["sex"]}, {"quasi_identifiers": ["town"]}]
        asked = {**CHOICE, "tables": tables, "count": "n"}
        assert finish(client.post(f"/api/sources/{given}/set", json=asked))["records"] == 10
        asked["count"] = False
        assert finish(client.post(f"/api/sources/{given}/set", json=asked))["records"] == 4


def _people(figures: Any) -> dict[str, float]:
    return {"right": figures.right, "caused": figures.caused}


class TestPolicy:
    CHOICE = SetChoice.model_validate(CHOICE)

    def judge(self, server: Running, policy: cr.Policy) -> dict[str, Any]:
        policies = Policies((Obeyed(policy),))
        return assess_set(silent, str(server.folder / "people.csv"), "people.csv", self.CHOICE, policies)

    def test_it_judges_the_set(self, server: Running) -> None:
        found = self.judge(server, cr.Policy(max_epsilon=1.0))
        assert found["policy"]
        assert found["above"][0].startswith("asked for was ")
        assert self.judge(server, cr.Policy(max_epsilon=9.0))["above"] == []


AWKWARD: dict[str, Any] = {
    "sensitive": 'job "of" all',
    "mechanism": "gaussian-analytic",
    "epsilon": 0.75,
    "delta": 1e-6,
    "threshold": 2.5,
    "neighbours": "replace",
    "levels": {'job "of" all': ["a|b", "c\\d", "e\x7f\tf", "😀", 3, 2.5, True]},
    "missing": "drop",
    "outside": "drop",
    "count": "n = number",
    "tables": [
        {"quasi_identifiers": ["a=b", "größe"], "bins": {"a=b": "0.1/0.25/3e20", "größe": "5"}},
        {
            "quasi_identifiers": ["größe", "c.d"],
            "bins": {"größe": "5"},
            "mechanism": "geometric",
            "where": {"c.d": {"not": ["x", 2], "from": -1.5}, "ü": [True, "y'\n"], "age": 3},
        },
        {"name": "näme", "quasi_identifiers": ["a=b"], "delta": 1e-7, "epsilon": 2.0},
    ],
}


class TestSetFile:
    @pytest.mark.parametrize("given", [CHOICE, AWKWARD], ids=["plain", "awkward"])
    def test_what_is_written_is_read_again(self, tmp_path: Path, given: dict[str, Any]) -> None:
        choice = SetChoice.model_validate(given)
        text = write_set_file(choice, "some/where.csv")
        (tmp_path / "set.toml").write_text(text, encoding="utf-8")
        read, asked = read_set_file(tmp_path / "set.toml"), find_arguments(choice)
        assert read.pop("source") == "some/where.csv"
        tables = [read_tables(each.pop("tables"), each.pop("sensitive"), **_of_tables(each)) for each in (read, asked)]
        assert tables[0] == tables[1]
        assert {name: value for name, value in read.items() if value} == asked
        again = SetChoice.model_validate(read_set(silent, text, "set.toml")["chosen"])
        assert find_arguments(again) == find_arguments(choice)

    def test_a_delta_is_not_given_to_a_table_that_takes_none(self) -> None:
        found = find_arguments(SetChoice.model_validate(AWKWARD))
        assert "delta" not in found
        assert [each.get("delta") for each in found["tables"]] == [1e-6, None, 1e-7]
        alike = {**AWKWARD, "tables": AWKWARD["tables"][:1]}
        assert find_arguments(SetChoice.model_validate(alike))["delta"] == 1e-6

    def test_it_is_read_for_the_boxes(self, client: Any) -> None:
        text = (
            'source = "adult.parquet"\nsensitive = "income"\nlevels = ["income=<=50K|>50K"]\nbin = ["age=5"]\n'
            'epsilon = 1\nengine = "duckdb"\ncount = "none"\n[[table]]\nqid = ["age", "sex"]\n[[table]]\nqid = "age"\n'
            "bin = {age = [0, 30.5]}\nepsilon = 0.5\nwhere = {born = {not = 1970-01-31}}\n"
        )
        found = hear(client, client.post("/api/sets/read", json={"text": text}))
        assert (found["source"], found["left_aside"]) == ("adult.parquet", ["engine"])
        chosen = found["chosen"]
        assert (chosen["sensitive"], chosen["epsilon"], chosen["count"]) == ("income", near(1), False)
        assert chosen["levels"] == {"income": ["<=50K", ">50K"]}
        assert [each["bins"] for each in chosen["tables"]] == [{"age": "5"}, {"age": "0/30.5"}]
        assert chosen["tables"][1]["where"] == {"born": {"not": "1970-01-31"}}

    def test_the_source_that_it_names_is_not_looked_for(self, server: Running, client: Any, monkeypatch: Any) -> None:
        """Neither by the page's reader, with a path that would be found, nor by its answer."""

        def forbid(*_: Any) -> None:
            raise AssertionError("a path of the file was followed")

        for name in ("exists", "stat", "glob", "open"):
            monkeypatch.setattr(Path, name, forbid)
        text = f'source = "{server.folder}/**"\nsensitive = "job"\nepsilon = 1\n[[table]]\nqid = ["sex"]\n'
        assert read_set(silent, text, "set.toml")["source"] == f"{server.folder}/**"


def _of_tables(read: dict[str, Any]) -> dict[str, Any]:
    """Takes out what tables are made of."""
    names = ("bins", "mechanism", "epsilon", "delta", "neighbours", "threshold")
    return {name: read.pop(name) for name in names if name in read}


HEAD = 'sensitive = "job"\nepsilon = 1\n'
ONE = '[[table]]\nqid = ["sex"]\n'
HARM = {
    "no TOML": ("\x00\x01", "the set file is not valid TOML"),
    "nothing": ("", "set.toml has no 'sensitive'"),
    "deep": ("a = " + 9000 * "[", "the set file is not valid TOML"),
    "a number of many digits": (HEAD + "delta = 0." + 60_000 * "1" + ONE, "the set file is not valid TOML"),
    "unknown key": (HEAD + 'password = "secret"\n' + ONE, "unknown key in set.toml; got 'password'"),
    "unknown key of a table": (HEAD + ONE + "run = 1\n", "unknown key in table 1 of set.toml; got 'run'"),
    "a number for a text": ("sensitive = 1\n" + ONE, "'sensitive' in set.toml must be a text"),
    "a text for a number": (HEAD + ONE + 'epsilon = "zanzibar"\n', "'epsilon' in table 1 of set.toml must be a number"),
    "an epsilon beyond all": (HEAD + ONE + "epsilon = 1e9\n", "'epsilon' in table 1 of set.toml"),
    "no number": (HEAD + ONE + "epsilon = nan\n", "table 1 of set.toml must be a number; got one that is not finite"),
    "a query": (HEAD + ONE + 'where = "1=1; drop table"\n', "“People in it” of table 1 must map columns"),
    "a word that is no condition": (HEAD + ONE + "where = {age = {like = 1}}\n", "“People in it” of table 1 cannot be"),
    "a list in a list": (HEAD + ONE + "where = {age = [[1]]}\n", "“People in it” of table 1 cannot be read"),
    "too many tables": (HEAD + 21 * ONE, "a set needs at least one table"),
    "a table that is none": (HEAD + "table = 3\n", "'table' in set.toml must be tables"),
    "bins that are none": (HEAD + ONE + 'bin = ["sex=zanzibar"]\n', "'bin' in table 1 of set.toml must hold numbers"),
    "missing values that are none": (HEAD + 'missing = "maybe"\n' + ONE, "'missing' in set.toml"),
    "cell keys": (HEAD + 'noise = "cell-key"\n' + ONE, "is not independent: cell keys"),
    "a belief": (HEAD + 'belief = "table"\n' + ONE, "leave it out of the file"),
    "another attribute": (HEAD + ONE + 'sensitive = "pay"\n', "count the set once for each attribute under “Sensitive"),
    "the same table twice": (HEAD + 2 * ONE, "remove one of them; what repeating it reveals"),
    "other neighbours": (
        HEAD + ONE + '[[table]]\nqid = ["age"]\nneighbours = "replace"\n',
        "choose it for all under “Neighbouring tables”",
    ),
}


@pytest.mark.parametrize("name", HARM)
def test_set_files_that_mean_harm_are_refused_in_one_line(client: Any, name: str) -> None:
    text, words = HARM[name]
    refused = client.post("/api/sets/read", json={"text": text})
    assert refused.status_code == 422, refused.text
    line = refused.json()["error"]
    assert words in line
    assert "\n" not in line
    assert "zanzibar" not in line.replace("'zanzibar'", "")
    assert not re.search(r"--[a-z]", line), line


def test_a_set_file_that_is_too_long(client: Any) -> None:
    refused = client.post("/api/sets/read", json={"text": "#" * (MOST_LETTERS + 1)})
    assert refused.status_code == 422
    assert client.post("/api/sets/read", json={"text": "#" * 2_000_000}).status_code == 413


class TestRefusals:
    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"noise": "cell-key"}, "“How noise is drawn” names noise that is not independent: cell keys"),
            ({"noise": "margins"}, "margins of one noisy table"),
            ({"tables": [TABLES[0], TABLES[0]]}, "remove one of them"),
            ({"epsilon": None}, "“Epsilon” is empty; fill it in for table 1"),
            ({"mechanism": "gaussian-analytic"}, "“Delta” of table 1: gaussian-analytic needs one"),
            ({"threshold": 1.0}, "“Threshold” of table 1 must be a positive half-integer"),
            ({"sensitive": "sex"}, "cannot be both a quasi-identifier of table 1 and sensitive"),
            ({"sensitive": "rank"}, "'people.csv' has no column 'rank'"),
            ({"levels": {"job": ["cook"]}}, "under “Declared labels”"),
            ({"levels": {"note": ["a"]}}, "“Declared labels” name column 'note', which no table has"),
            ({"tables": [{**TABLES[2], "where": {"sex": "x"}}]}, "correct “People in it”, or remove the table"),
            ({"tables": [{**TABLES[2], "where": {"job": "cook"}}]}, "“People in it” are chosen by the sensitive"),
            ({"tables": [{**TABLES[2], "where": {"age": {"from": "x"}}}]}, "“People in it” of table 1 cannot be read"),
            ({"tables": [{**TABLES[0], "bins": {"age": "wide"}}]}, "“Bins” of age in table 1 must be a number"),
        ],
    )
    def test_they_name_boxes(
        self, client: Any, source: str, finish: Finish, changed: dict[str, Any], words: str
    ) -> None:
        line = finish(client.post(f"/api/sources/{source}/set", json={**CHOICE, **changed}), "failed")
        assert words in line
        assert not re.search(r"--[a-z]|\w=|Python|'where'", line), line

    def test_every_refusal_of_a_set_as_the_library_words_it(self) -> None:
        """The words that are replaced are still those of the library."""
        twice = [{"qid": "a", "epsilon": 1.0}] * 2
        other = [{"qid": "a", "epsilon": 1.0}, {"qid": "b", "epsilon": 1.0, "neighbours": "replace"}]
        asked: dict[str, Callable[[], Any]] = {
            "not independent": lambda: refuse_shared_noise("shared", "table 1"),
            "same table": lambda: read_tables(twice, "s"),
            "different neighbours": lambda: read_tables(other, "s"),
            "attribute of its own": lambda: read_tables([{"qid": "a", "sensitive": "t"}], "s"),
            "no epsilon": lambda: read_tables([{"qid": "a"}], "s"),
            "'where'": lambda: read_part({"a": {"x": 1}}, "table 3"),
        }
        for words, each in asked.items():
            with pytest.raises(CellriskError, match=words) as refusal:
                each()
            assert name_set_boxes(str(refusal.value)) != str(refusal.value)
        belief = str(refuse_belief("table", "set.toml"))
        assert "--certainty" in belief
        assert "--certainty" not in name_set_boxes(belief)

    def test_more_tables_than_memory_holds(self) -> None:
        line = "x; allow more memory, use coarser bins, or assess fewer tables at once"
        assert name_set_boxes(line) == "x; cut columns into coarser “Bins”, or remove a table"
        assert "allow more memory, use coarser bins" in Path(cr.counts.joint.__file__).read_text("utf-8")

    def test_no_path_of_the_server_is_told(self) -> None:
        with pytest.raises(InvalidInput) as refusal, in_words_of_boxes(), known_as("/private/x1.csv", "people.csv"):
            raise InvalidInput("'/private/x1.csv' and 'x1.csv' have no column")
        assert str(refusal.value) == "'people.csv' and 'people.csv' have no column"

    def test_a_source_that_is_gone(self, client: Any) -> None:
        for what in ("set", "set/commands"):
            assert client.post(f"/api/sources/gone/{what}", json=CHOICE).status_code == 404


def test_cancelling_ends_the_work(client: Any, source: str) -> None:
    tables = [{"quasi_identifiers": ["age", "note"], "bins": {"age": str(width)}} for width in range(1, 7)]
    asked = {**CHOICE, "sensitive": "job", "tables": tables, "levels": {"job": ["cook", "smith", "clerk"]}}
    job = client.post(f"/api/sources/{source}/set", json=asked).json()["job"]
    ended = client.delete(f"/api/jobs/{job}").json()
    assert ended["state"] == "cancelled"
    time.sleep(0.1)
    assert client.get(f"/api/jobs/{job}").json() == ended


class TestGuard:
    PATHS = (("GET", "/sets"), ("GET", "/static/sets.js"), ("POST", "/api/sets/read"), ("POST", "/api/sources/x/set"))

    @pytest.mark.parametrize(("method", "path"), PATHS)
    def test_nobody_without_the_cookie(self, server: Running, method: str, path: str) -> None:
        answer = ask(method, server.base + path, headers={"X-Cellrisk": "1"})
        assert answer.status_code == 401
        assert "content-security-policy" in answer.headers

    @pytest.mark.parametrize("path", [path for method, path in PATHS if method == "POST"])
    @pytest.mark.parametrize(
        "headers", [{"x-cellrisk": "0"}, {"origin": "http://attacker.example"}, {"sec-fetch-site": "cross-site"}]
    )
    def test_nothing_that_another_site_sends(self, client: Any, path: str, headers: dict[str, str]) -> None:
        assert client.post(path, json=CHOICE, headers=headers).status_code == 403

    def test_the_page_has_the_headers_of_every_answer(self, client: Any) -> None:
        here, home = client.get("/sets"), client.get("/")
        assert here.status_code == 200
        for name in ("content-security-policy", "x-frame-options", "referrer-policy", "cache-control"):
            assert here.headers[name] == home.headers[name]
        assert client.get("/sets", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_a_set_file_that_takes_long_to_read_can_be_cancelled(client: Any) -> None:
    """Keys of ten thousands of parts take the reader minutes; the server stays free, and the reading ends."""
    answer = client.post("/api/sets/read", json={"text": "a." * 31_900 + "a = 1"})
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    assert client.get("/api/state").status_code == 200
    assert client.delete(f"/api/jobs/{job}").json()["state"] == "cancelled"
