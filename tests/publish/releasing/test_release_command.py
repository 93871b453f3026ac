"""`cellrisk release`, run as a person would."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from tests.commands import run

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

SECRET = "Zanzibar-7"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [
        {"age": 20 + number % 30, "sex": "fm"[number % 2], "job": ["a", "b", SECRET][number % 5 % 3]}
        for number in range(90)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "people.csv"


DECLARED = [
    *("--qid", "age,sex", "--sensitive", "job", "--bin", "age=0/30/40/60", "--epsilon", "1"),
    *("--levels", "sex=f|m|x", "--levels", f"job=a|b|{SECRET}|none"),
]


@pytest.mark.parametrize("output", ["released.parquet", "released.csv"])
def test_release(people: Path, capsys: Capture, output: str) -> None:
    code, out, err = run(capsys, "release", people, *DECLARED, "--output", output)
    assert (code, err) == (0, "")
    assert out.startswith("All 60 counts of job by age, sex, with noise: differentially private with epsilon 1.")
    frame = pd.read_parquet(output) if output.endswith("parquet") else pd.read_csv(output)
    assert len(frame) == 5 * 3 * 4
    assert frame["count"].min() >= 0
    described = json.loads(Path(f"{output}.json").read_text(encoding="utf-8"))
    assert described["mechanism"]["name"] == "geometric"
    assert described["domain_size"] == 60
    assert "seed" not in json.dumps(described)


def test_options_reach_the_library(people: Path, capsys: Capture) -> None:
    extra = ["--mechanism", "discrete-gaussian", "--delta", "1e-4", "--exclude", "sex=x;job=a|b", "--no-clamp"]
    code, out, _ = run(capsys, "release", people, *DECLARED, *extra, "--output", "a.csv", "--json")
    assert code == 0
    described = json.loads(out)
    assert described["excluded"] == 5 * 1 * 2
    assert described["clamp"] is False
    assert described["mechanism"]["delta"] == 1e-4
    code, out, _ = run(
        capsys, "release", people, *DECLARED, "--output", "b.csv", "--sparse", "--threshold", "3.5", "--json"
    )
    assert code == 0
    assert json.loads(out)["dense"] is False


def test_observed_only_in_so_many_words(people: Path, capsys: Capture) -> None:
    plain = ["--qid", "age,sex", "--sensitive", "job", "--epsilon", "1", "--output", "a.csv"]
    code, _, err = run(capsys, "release", people, *plain)
    assert code == 2
    assert "age, sex, job" in err
    assert SECRET not in err
    assert os.listdir() == ["people.csv"]
    code, _, err = run(capsys, "release", people, *plain, "--observed-levels", "age,sex")
    assert code == 2
    assert "got job;" in err
    code, out, _ = run(capsys, "release", people, *plain, "--observed-levels", "age,sex", "--observed-levels", "job")
    assert code == 0
    assert "The labels of age, sex, job are those that occur" in " ".join(out.split())
    assert "does not cover which values exist" in " ".join(out.split())


def test_the_policy_is_asked_before_noise_is_drawn(people: Path, capsys: Capture) -> None:
    Path("cellrisk.toml").write_text("[policy]\nmax-risk = 0.0\n", encoding="utf-8")
    code, out, err = run(capsys, "release", people, *DECLARED, "--output", "a.csv")
    assert (code, out) == (3, "")
    assert "the policy asks for" in err
    assert not Path("a.csv").exists()


REFUSED = {
    "no output": ([], "Missing option '--output'"),
    "ending": (["--output", "a.xlsx"], "ending"),
    "rule": (["--output", "a.csv", "--exclude", "sex"], "--exclude cannot be read"),
    "rule with records": (["--output", "a.csv", "--exclude", "sex=f", "--outside", "error"], "record"),
    "rule for outside": (["--output", "a.csv", "--outside", "keep"], "is not one of 'error', 'drop'"),
    "the records": (["--output", "people.csv"], "the output would replace a file that this command reads"),
}


@pytest.mark.parametrize(("extra", "says"), REFUSED.values(), ids=REFUSED)
def test_refusals(people: Path, capsys: Capture, extra: list[str], says: str) -> None:
    before = people.read_bytes()
    code, out, err = run(capsys, "release", people, *DECLARED, *extra)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert says in err
    assert SECRET not in err
    assert os.listdir() == ["people.csv"]
    assert people.read_bytes() == before


def test_force(people: Path, capsys: Capture) -> None:
    for expected, extra in ((0, []), (2, []), (0, ["--force"])):
        assert run(capsys, "release", people, *DECLARED, "--output", "a.csv", *extra)[0] == expected
