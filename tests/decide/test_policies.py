"""Policies from every source hold together: nothing that is asked for loosens one, and every door says the same."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.decide.limits import RiskDefinition, read_limits
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy_files import OPEN_TO_OTHERS
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.web import Settings
from cellrisk.web.answers import Given, find_admissible
from cellrisk.web.fields import Setting, TableChoice, describe_server
from cellrisk.web.tables import Recipe
from tests.examples import examples

Capture = pytest.CaptureFixture[str]
MECHANISM = ["--mechanism", "geometric"]
EPSILONS = [0.3, 1.0, 4.0]


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    rows = [(number % 12, "ab"[number % 2], "stu"[number % 12 % 3 if number else 1]) for number in range(60)]
    people = pd.DataFrame(rows, columns=["q", "r", "y"])
    levels = {"q": list(range(12)), "r": ["a", "b"], "y": ["s", "t", "u"]}
    return cr.tabulate(people, ["q", "r"], "y", levels=levels)


@pytest.fixture
def folder(table: cr.FrequencyTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder two folders down, in which every command is about that table."""
    below = tmp_path / "house" / "desk"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    monkeypatch.delenv("CELLRISK_POLICY", raising=False)
    monkeypatch.setattr("cellrisk.cli.options.TableOptions.tabulate", lambda *_, **__: table)
    return below


def write(path: Path, policy: dict[str, Any] | None, settings: str = "") -> Path:
    lines = [] if policy is None else ["[policy]", *(f"{key} = {json.dumps(value)}" for key, value in policy.items())]
    path.write_text("\n".join([settings, *lines, ""]), encoding="utf-8")
    return path


def run(command: str, *arguments: Any) -> int:
    mechanism = [] if command == "inspect" else MECHANISM
    return main([command, "people.csv", "--qid", "q,r", "--sensitive", "y", *mechanism, *map(str, arguments)])


def clear(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


LIMITS = st.fixed_dictionaries(
    {"max-risk": st.sampled_from([0.05, 0.2, 0.3, 0.45, 0.6, 0.95])},
    optional={"max-people": st.sampled_from([5, 20, 50]), "measure": st.sampled_from(["local", "shrinkage"])},
)


def is_kept(table: cr.FrequencyTable, mechanism: Any, policies: list[dict[str, Any]]) -> bool:
    """By `assess` alone, which knows no policy."""
    found = cr.assess(table, mechanism, measures=["local", "shrinkage"])
    kept = True
    for policy in policies:
        risk = found.value(measure=policy.get("measure", "local"))
        people = found.value() * table.n_records
        assume(abs(risk - policy["max-risk"]) > 1e-9)
        kept &= risk <= policy["max-risk"] and people <= policy.get("max-people", 1e9)
    return bool(kept)


@settings(
    max_examples=examples(8),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    sources=st.dictionaries(st.sampled_from(["variable", "above", "here", "config"]), LIMITS, max_size=4),
    epsilon=st.sampled_from(EPSILONS),
    asked=st.sampled_from([None, 0.04, 0.97]),
    priors=st.sampled_from([[], ["--alpha", "9,1,1"], ["--alpha", "moments"]]),
)
def test_every_door_says_the_same(
    sources: dict[str, Any],
    epsilon: float,
    asked: float | None,
    priors: list[str],
    table: cr.FrequencyTable,
    folder: Path,
    capsys: Capture,
) -> None:
    """Random policies in four places: a mechanism is admissible where it keeps them all, whoever is asked."""
    paths = {
        "variable": folder.parent.parent / "office.toml",
        "above": folder.parent / "cellrisk.toml",
        "here": folder / "cellrisk.toml",
        "config": folder / "other.toml",
    }
    clear(*paths.values(), folder / "released.csv", folder / "released.csv.json", folder / "report.html")
    write(paths["config"], None)
    for name, policy in sources.items():
        write(paths[name], policy)
    digests = {hashlib.sha256(paths[name].read_bytes()).hexdigest()[:12] for name in sources}
    mechanism = cr.Geometric(epsilon=epsilon)
    kept = is_kept(table, mechanism, list(sources.values()))
    config = ["--config", paths["config"]]
    given_policy = [cr.Policy.of(sources["config"])] if "config" in sources else []
    with pytest.MonkeyPatch.context() as patch:
        if "variable" in sources:
            patch.setenv("CELLRISK_POLICY", str(paths["variable"]))
        else:
            patch.delenv("CELLRISK_POLICY", raising=False)

        code = 0 if kept else 3
        assert run("assess", "--epsilon", epsilon, *priors, *config, "--json") == code
        said = json.loads(capsys.readouterr().out)["policy"]
        assert {each["sha256"] for each in (said or {"obeyed": []})["obeyed"]} == digests
        assert (said is None) == (not sources)

        assert run("release", "--epsilon", epsilon, *config, "--output", "released.csv") == code
        assert Path("released.csv").exists() == kept
        if kept:
            described = json.loads(Path("released.csv.json").read_text(encoding="utf-8"))["policy"]
            assert (described is None) == (not sources)

        policies = Policies.in_force(*given_policy)
        assert (not policies.breaches(table, mechanism)) == kept
        if kept:
            assert cr.release(table, mechanism, policy=policies).to_dict()["mechanism"]["epsilon"] == epsilon
        else:
            with pytest.raises(InvalidInput, match="the policy forbids this release"):
                cr.release(table, mechanism, policy=policies)

        capsys.readouterr()
        if not sources and asked is None:
            return
        admits = kept and (asked is None or cr.assess(table, mechanism, measures="local").value() <= asked)
        span: dict[str, float] = {"least_epsilon": epsilon / 1.01, "largest_epsilon": epsilon}
        choice = cr.choose(table, "geometric", max_risk=asked, policy=policies, **span)
        assert holds(choice.admissible, epsilon) == admits


def ask_the_page(table: cr.FrequencyTable, started: Policies | None, **limits: float) -> dict[str, Any]:
    """What the page answers, on a server that started with these policies."""
    choice = TableChoice(source="x", quasi_identifiers=["q", "r"], sensitive=["y"])
    recipe = Recipe("people.csv", "people.csv", "people.csv", (0, 0), choice)
    given = Given(recipe, table, Policies.in_force(started))
    return find_admissible(lambda *_: None, given, Setting.model_validate(limits))


def test_the_page_and_reports_obey(table: cr.FrequencyTable, folder: Path) -> None:
    """A policy of a hundredth of a percent: no page and no report says that limits are kept at 40%."""
    write(folder.parent / "cellrisk.toml", {"max-risk": 0.0001})
    page = ask_the_page(table, None, max_risk=0.4)
    assert page["intervals"] == []
    assert "cellrisk.toml" in page["policy"]
    assert "cellrisk.toml" in str(describe_server(Settings(), Policies.in_force(None))["policy"])
    assert cr.report(table, "geometric", epsilon=0.3, max_risk=0.4, public=True).verdict == "broken"


def holds(intervals: Any, epsilon: float) -> bool:
    return any(low <= epsilon <= high for low, high in intervals)


LOOSER = {"max_risk": 0.4, "max_people": 9.0, "margin": 0.2, "max_caused": 0.3, "max_certain": 0.5, "max_ceiling": 0.9}
LOOSER["max_epsilon"] = 3.0


@pytest.mark.parametrize("name", LOOSER)
def test_the_tighter_of_two_policies_holds_in_any_order(name: str) -> None:
    looser, tighter = LOOSER[name], 0.9 * LOOSER[name]
    for limits in ((looser, tighter), (tighter, looser)):
        policies = Policies(tuple(cr.Policy(**{name: limit}) for limit in limits))  # type: ignore[arg-type]
        [limit] = policies.limits
        assert limit.maximum == tighter
        given = read_limits(**{name: looser})  # type: ignore[arg-type]
        assert [each.maximum for each in policies.join(given, RiskDefinition())] == [tighter]


def test_options_tighten_and_never_loosen(folder: Path, capsys: Capture) -> None:
    write(folder / "cellrisk.toml", {"max-risk": 0.3})
    write(folder / "other.toml", {"max-risk": 0.6})
    assert run("choose", "--config", "other.toml", "--json") == 0
    assert json.loads(capsys.readouterr().out)["limits"] == {"max_risk": 0.3}
    assert run("choose", "--max-risk", 0.2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["limits"] == {"max_risk": 0.2}
    for looser in (["--max-risk", 0.4], ["--max-risk", 0.4, "--config", "other.toml"]):
        assert run("choose", *looser) == 2
        assert "looser than the policy; got 0.4; allowed: up to 0.3" in capsys.readouterr().err
        assert run("report", "--epsilon", 1, "--output", "r.html", *looser) == 2


def test_a_plan_ends_where_a_policy_on_the_ceiling_or_on_epsilon_does(folder: Path, capsys: Capture) -> None:
    (folder / "cellrisk.toml").write_text("[policy]\nmax-ceiling = 0.75\nmax-epsilon = 2\n", encoding="utf-8")
    found = cr.largest_epsilon([], max_ceiling=0.9)
    assert found.epsilon == pytest.approx(math.log(3), rel=1e-6, abs=0)
    assert main(["ledger", "create", "l.db"]) == 0
    assert main(["ledger", "limit", "l.db", "--epsilon", "5"]) == 0
    plan = ["ledger", "plan", "l.db", "--mechanism", "geometric"]
    assert main([*plan, "--epsilon", "1"]) == 0
    assert main([*plan, "--epsilon", "1.2"]) == 3
    assert "a worst case of at most 75%" in capsys.readouterr().err


def test_commands_of_a_ledger_obey_and_name_a_policy(folder: Path, capsys: Capture) -> None:
    write(folder / "strict.toml", {"max-ceiling": 0.7})
    assert main(["ledger", "create", "l.db"]) == 0
    plan = ["ledger", "plan", "l.db", "--config", "strict.toml"]
    capsys.readouterr()
    assert main([*plan, "--max-ceiling", "0.9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["epsilon"] == pytest.approx(math.log(0.7 / 0.3), rel=1e-6, abs=0)
    assert main([*plan, "--max-ceiling", "0.6"]) == 0
    assert "Policy obeyed: strict.toml" in capsys.readouterr().out
    assert run("average", "--epsilon", 1, "--releases", 2, "--config", "strict.toml") == 0
    assert "Policy obeyed: strict.toml" in capsys.readouterr().out


def test_the_risk_judged_is_the_policys_own(table: cr.FrequencyTable, folder: Path, capsys: Capture) -> None:
    """With a prior that makes the risk small, the command's own figure falls; what the policy judges does not."""
    mechanism = cr.Geometric(epsilon=1.0)
    fitted = cr.assess(table, mechanism).value(measure="shrinkage")
    loose = cr.assess(table, mechanism, priors=cr.Priors([900.0, 900.0, 900.0])).value(measure="shrinkage")
    assert loose < fitted - 0.01
    between = (loose + fitted) / 2
    write(folder / "cellrisk.toml", {"max-risk": between, "measure": "shrinkage"})
    flat = ["--alpha", "900,900,900"]
    assert run("assess", "--epsilon", 1, *flat) == 3
    assert run("report", "--epsilon", 1, *flat, "--output", "report.html", "--releases", 2, "--public") == 3
    assert "Limits broken" in capsys.readouterr().out


def test_two_policies_on_two_risks_are_both_judged(table: cr.FrequencyTable, folder: Path, capsys: Capture) -> None:
    found = cr.assess(table, cr.Geometric(epsilon=1.0))
    write(
        folder.parent / "cellrisk.toml", {"max-risk": found.value(measure="shrinkage") - 0.01, "measure": "shrinkage"}
    )
    write(folder / "cellrisk.toml", {"max-risk": 1.0})
    assert run("assess", "--epsilon", 1) == 3
    assert "shrinkage" in capsys.readouterr().err
    assert run("choose", "--measure", "shrinkage", "--all") == 0
    assert "(local risk, tight, by records)" in capsys.readouterr().out
    assert run("choose", "--measure", "expected") == 2
    assert "the risk is fixed by the policy; got expected; allowed: local; shrinkage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        (" ", "names no file"),
        ("", "has no table [policy]"),
        ("[policy]\nmax-risk = 7\n", "must be a share"),
        ("[policy\n", "not valid TOML"),
        ("[policy]\nmax-risk = 0.1\nmeasure = 3\n", "unknown measure"),
        ("[policy]\nmax-risk = 0.1\ndelta = [1]\n", "delta cannot be read"),
    ],
)
def test_a_policy_that_is_named_is_never_ignored(
    content: str | None, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    if content is not None:
        (folder / "office.toml").write_text(content, encoding="utf-8")
    monkeypatch.setenv("CELLRISK_POLICY", " " if content == " " else "office.toml")
    for command in ("inspect", "assess", "choose"):
        assert run(command, *(["--epsilon", 1] if command == "assess" else [])) == 2
        assert says in capsys.readouterr().err
    with pytest.raises(CellriskError, match=re.escape(says)):
        Policies.in_force()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_a_policy_that_may_not_be_read_is_refused(folder: Path) -> None:
    write(folder / "cellrisk.toml", {"max-risk": 0.3}).chmod(0)
    assert run("assess", "--epsilon", 1) == 2


@pytest.mark.parametrize("kind", ["link to nothing", "link to itself", "folder", "link to a folder", "pipe"])
@pytest.mark.parametrize("above", [True, False])
def test_what_has_the_name_of_a_policy_and_cannot_be_read_is_refused(
    kind: str, above: bool, folder: Path, capsys: Capture
) -> None:
    if os.name != "posix" and kind != "folder":
        pytest.skip("links and pipes")
    path = (folder.parent if above else folder) / "cellrisk.toml"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        targets = {"link to nothing": folder / "none", "link to itself": path, "link to a folder": folder}
        path.symlink_to(targets[kind])
    assert run("assess", "--epsilon", 1) == 2
    told = capsys.readouterr().err
    assert "the settings file" in told
    assert len(told.splitlines()) == 1
    with pytest.raises(InvalidInput, match="the settings file"):
        Policies.in_force()


def test_a_number_of_thousands_of_digits_is_refused(folder: Path, capsys: Capture) -> None:
    (folder / "cellrisk.toml").write_text(f"[policy]\nmax-people = {'9' * 5000}\n", encoding="utf-8")
    assert run("assess", "--epsilon", 1) == 2
    assert len(capsys.readouterr().err) < 500


def test_settings_further_up_are_not_taken(folder: Path) -> None:
    """Only the policy is: a settings file of another folder is about other tables."""
    write(folder.parent / "cellrisk.toml", None, "epsilon = 1\nnonsense = 3")
    assert run("assess") == 2
    assert run("assess", "--epsilon", 1) == 0


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_policy_that_others_may_write_is_remarked_upon(folder: Path, capsys: Capture) -> None:
    path = write(folder / "cellrisk.toml", {"max-risk": 1.0})
    path.chmod(0o600)
    assert run("assess", "--epsilon", 1) == 0
    assert OPEN_TO_OTHERS not in capsys.readouterr().out
    path.chmod(0o666)
    assert run("assess", "--epsilon", 1) == 0
    assert OPEN_TO_OTHERS in capsys.readouterr().out


def test_every_output_names_the_policy_and_no_folder(folder: Path, capsys: Capture) -> None:
    path = write(folder.parent / "cellrisk.toml", {"max-risk": 1.0})
    named = f"cellrisk.toml (sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]})"
    path.chmod(0o600)
    for command, more in {
        "assess": ["--epsilon", 1, "--measure", "local"],
        "curve": ["--epsilon", 1, "--measure", "local"],
        "choose": [],
        "report": ["--epsilon", 1, "--output", "report.html", "--releases", 2, "--public"],
        "release": ["--epsilon", 1, "--output", "released.csv"],
    }.items():
        assert run(command, *more) == 0
        out = capsys.readouterr().out
        assert named in out
        assert str(folder.parent) not in out
    for file in ("report.html", "released.csv.json"):
        content = Path(file).read_text(encoding="utf-8")
        assert named.partition("sha256 ")[2].rstrip(")") in content
        assert str(folder.parent) not in content


def test_a_server_is_never_behind(table: cr.FrequencyTable, folder: Path) -> None:
    """What held when it started holds until it ends; what was tightened since holds at once."""
    path = write(folder / "cellrisk.toml", {"max-risk": 0.6})
    started = Policies.in_force()

    def largest() -> float:
        return ask_the_page(table, started, max_risk=1.0)["epsilon"] or 0.0

    first = largest()
    assert 0 < first < 100
    write(path, {"max-risk": 0.3})
    assert largest() < first
    path.unlink()
    assert largest() == pytest.approx(first, rel=1e-6, abs=0)


ASSESS, REPORT = "assess people.csv --epsilon 1", "report people.csv --epsilon 1 --output r.html"


@pytest.mark.parametrize(
    ("command", "content", "says"),
    [
        (
            ASSESS,
            'ledger = "releases.db"',
            "'ledger' in cellrisk.toml is named like a command; allowed: a table [ledger]",
        ),
        (REPORT, '[report]\ntitel = "x"', "unknown setting under [report] in cellrisk.toml; got titel"),
        (
            "ledger verify l.db",
            "[ledger.verify]\nepsilon = 1",
            "unknown setting under [ledger.verify] in cellrisk.toml; got epsilon",
        ),
        (ASSESS, "nonsense = 1", "unknown setting in cellrisk.toml; got nonsense"),
    ],
)
def test_settings_that_no_command_takes_are_refused_by_name(
    command: str, content: str, says: str, folder: Path, capsys: Capture
) -> None:
    (folder / "cellrisk.toml").write_text(content, encoding="utf-8")
    assert main(command.split()) == 2
    told = capsys.readouterr().err
    assert says in told
    assert len(told.splitlines()) == 1


def test_one_file_serves_several_commands(folder: Path) -> None:
    (folder / "cellrisk.toml").write_text(
        "qid = 'sex'\nsensitive = 'job'\nepsilon = 1\nmax-tvd = 0.9\nreleases = 2\nmeasure = 'local'\n"
        "[report]\noutput = 'r.html'\n",
        encoding="utf-8",
    )
    for command in ("inspect", "assess", "report"):
        assert main([command, "people.csv"]) == 0
    assert Path("r.html").exists()
