"""The commands that help to decide, run as a person would."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from tests.commands import SECRET, refuse, run
from tests.near import near_epsilon, same

Capture = pytest.CaptureFixture[str]
BASIC = ("--qid", "age,ward", "--sensitive", "illness", "--bin", "age=10")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    generator = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": generator.integers(20, 70, 300),
            "ward": generator.choice(["w1", "w2", SECRET], 300),
            "illness": generator.choice(["flu", "cold", SECRET], 300, p=[0.7, 0.2, 0.1]),
        }
    )
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    monkeypatch.chdir(tmp_path)
    return path


def document(capsys: Capture, *arguments: str | Path) -> dict[str, object]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    found: dict[str, object] = json.loads(out)
    assert "not protected" in str(found.pop("note"))
    return found


def table(path: Path) -> cr.FrequencyTable:
    return cr.tabulate(path, ["age", "ward"], "illness", bins={"age": 10})


def test_curve(capsys: Capture, people: Path) -> None:
    code, out, err = run(
        capsys, "curve", people, *BASIC, "--epsilon", "0.001:100:51", "--plot", "curve.svg", "--csv", "curve.csv"
    )
    assert (code, err) == (0, "")
    assert out.startswith("'illness' by ")
    assert "no noise" in out
    written = pd.read_csv("curve.csv")
    expected = cr.curve(table(people), epsilon=np.geomspace(1e-3, 100, 51)).to_frame()
    assert np.allclose(written.risk, expected.risk, rtol=1e-12, atol=0)
    assert Path("curve.svg").read_bytes().startswith(b"<?xml")
    found = document(
        capsys, "curve", people, *BASIC, "--mechanism", "laplace,gaussian-analytic", "--delta", "1e-3,1e-5",
        "--epsilon", "0.1,1", "--measure", "local", "--form", "tight",
    )  # fmt: skip
    rows = found["risks"]
    assert isinstance(rows, list)
    assert {(row["mechanism"], row["delta"]) for row in rows} == {
        ("laplace", 0.0),
        ("gaussian-analytic", 1e-3),
        ("gaussian-analytic", 1e-5),
    }


def test_inspect_draws_cell_sizes(capsys: Capture, people: Path) -> None:
    code, out, _ = run(capsys, "inspect", people, *BASIC, "--plot", "sizes.png")
    assert code == 0
    assert out.count("not protected") == 1
    assert document(capsys, "inspect", people, *BASIC)["records"] == 300
    assert Path("sizes.png").read_bytes().startswith(b"\x89PNG")


def test_choose(capsys: Capture, people: Path) -> None:
    found = document(
        capsys, "choose", people, *BASIC, "--max-risk", "0.1", "--max-epsilon", "3", "--plot", "choice.pdf"
    )
    choice = cr.choose(table(people), max_risk=0.1, max_epsilon=3)
    assert found["epsilon"] == near_epsilon(choice.epsilon)
    assert found["risk"] == near_epsilon(choice.risk)
    assert found["admissible"] == [near_epsilon(each) for each in choice.admissible]
    assert found["why"] == choice.why
    assert Path("choice.pdf").read_bytes().startswith(b"%PDF")
    code, out, err = run(capsys, "choose", people, *BASIC, "--max-risk", "0", "--json")
    assert (code, err) == (3, "cellrisk: no epsilon keeps every limit\n")
    assert [json.loads(out)[name] for name in ("epsilon", "admissible")] == [None, []]
    narrow = document(capsys, "choose", people, *BASIC, "--max-people", "250", "--epsilon", "0.1:2")
    assert narrow["searched"] == [0.1, 2.0]
    asked = ("--max-risk", "0.2", "--max-tvd", "0.3", "--releases", "5", "--plot", "map.svg")
    code, out, _ = run(capsys, "choose", people, *BASIC, *asked)
    assert code == 0
    assert "TVD" in out
    assert Path("map.svg").exists()


def test_utility(capsys: Capture, people: Path) -> None:
    found = document(
        capsys, "utility", people, *BASIC, "--epsilon", "0.1,1", "--ways", "1,2", "--releases", "7", "--seed", "3",
        "--csv", "tvd.csv",
    )  # fmt: skip
    expected = cr.utility(
        table(people),
        [cr.Geometric(epsilon=0.1), cr.Geometric(epsilon=1.0)],
        ways=(1, 2),
        releases=7,
        seed=3,
    )
    assert same(found, json.loads(json.dumps(expected.to_dict())))
    assert len(pd.read_csv("tvd.csv")) == len(expected.to_frame())


def test_explain(capsys: Capture, people: Path) -> None:
    asked = ("--epsilon", "1", "--top", "4", "--merge", "ward:w=w1|w2")
    found = document(capsys, "explain", people, *BASIC, *asked)
    expected = cr.explain(table(people), cr.Geometric(epsilon=1.0), top=4, merge={"ward": {"w": ["w1", "w2"]}})
    assert same(found, json.loads(json.dumps(expected.to_dict())))


def test_report(capsys: Capture, people: Path) -> None:
    code, out, err = run(
        capsys, "report", people, *BASIC, "--max-risk", "0.1", "--output", "report.html", "--title", "Wards 2020"
    )
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("Written to report.html.")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Wards 2020" in page
    assert "people.csv" in page
    assert str(people.parent) not in page
    assert "age in bins" in page
    assert run(capsys, "report", people, *BASIC, "--epsilon", "1", "--public", "--output", "public.html")[0] == 0
    assert SECRET not in Path("public.html").read_text(encoding="utf-8")
    code, _, err = run(capsys, "report", people, *BASIC, "--max-risk", "0", "--output", "none.html")
    assert code == 3
    assert "no epsilon" in err
    assert Path("none.html").exists()


REFUSED = {
    "unknown picture": (("curve", "--plot", "curve.bmp"), "svg"),
    "no such folder": (("curve", "--plot", "nowhere/curve.svg"), "does not exist"),
    "csv is a folder": (("curve", "--csv", "."), "is a folder"),
    "grid of four": (("curve", "--epsilon", "1:2:3:4"), "is not a range"),
    "huge grid": (("curve", "--epsilon", "1:2:9999999"), "is not a range"),
    "delta for laplace": (("curve", "--delta", "0.1"), "takes no delta"),
    "no limit": (("choose",), "no limit was given"),
    "two measures": (("choose", "--max-risk", "0.1", "--measure", "local,expected"), "is not one of"),
    "no range": (
        ("choose", "--max-risk", "0.1", "--epsilon", "1"),
        "--epsilon is not a range; got '1'; allowed: low:high",
    ),
    "no epsilon": (("utility",), "no epsilon"),
    "ways": (("utility", "--epsilon", "1", "--ways", "9"), "more attributes than"),
    "merge unreadable": (("explain", "--epsilon", "1", "--merge", "ward"), "--merge cannot be read"),
    "report nowhere": (("report", "--epsilon", "1"), "Missing option '--output'"),
    "report ending": (("report", "--epsilon", "1", "--output", "report.docx"), "html"),
    "report without a decision": (("report", "--output", "report.html"), "epsilon"),
}


@pytest.mark.parametrize(("arguments", "says"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_one_line_and_code_2(capsys: Capture, people: Path, arguments: tuple[str, ...], says: str) -> None:
    command, *rest = arguments
    before = set(os.listdir())
    assert says in refuse(capsys, command, people, *BASIC, *rest)
    assert set(os.listdir()) == before


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="the superuser can write anywhere")
def test_unwritable_folder(capsys: Capture, people: Path) -> None:
    closed = people.parent / "closed"
    closed.mkdir(mode=0o500)
    code, _, err = run(capsys, "curve", people, *BASIC, "--csv", closed / "curve.csv")
    assert code == 2
    assert "cannot be written" in err


def test_simulate_releases_that_add_up_to_published_totals(capsys: Capture, people: Path) -> None:
    pytest.importorskip("opendp", reason="the extra 'release' is not installed")
    levels = {"ward": ["w1", "w2", SECRET], "illness": ["flu", "cold", SECRET]}
    given = [f"--levels={name}={'|'.join(values)}" for name, values in levels.items()]
    code, _, err = run(capsys, "release", people, "--qid", "ward", "--sensitive", "illness", *given, "--epsilon", "1",
                       "--output", "wards.csv")  # fmt: skip
    assert (code, err) == (0, "")
    finer = ["--qid", "ward,age", "--sensitive", "illness", "--bin", "age=0/40/80", *given]
    asked = ["--epsilon", "0.5", "--releases", "50", "--parents", "wards.csv"]
    found = document(capsys, "simulate", people, *finer, *asked)
    counted = cr.tabulate(people, ["ward", "age"], "illness", bins={"age": [0, 40, 80]}, levels=levels)
    expected = cr.simulate(counted, epsilon=0.5, releases=50, parents="wards.csv").to_dict()
    assert same(found, json.loads(json.dumps(expected)))
    code, _, err = run(capsys, "simulate", people, *finer, "--epsilon", "1", "--parent-count", "count")
    assert (code, "--parents" in err or "parents" in err) == (2, True)
