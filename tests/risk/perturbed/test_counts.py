"""What a perturbation does to counts, and who is at risk under one: against all that may be published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.perturbed.counts import CLASSES, classify_counts
from cellrisk.show.wording.assessment import say_counts
from tests.near import near
from tests.risk.perturbed.test_assess_perturbation import CASES, CELLS, ODD, alone, less, make_table, published


def class_of(count: int) -> int:
    return max(place for place, (least, _) in enumerate(CLASSES) if least <= count)


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_counts(name: str) -> None:
    made = CASES[name]
    found = list(classify_counts(make_table(CELLS).attributes[0].profiles, made))
    wanted = [[0.0] * 5 for _ in CLASSES]
    for count in (count for cell in CELLS for count in cell):
        row = wanted[class_of(count)]
        row[0] += 1
        for (value,), chance in published(made, [count]):
            row[1 if value == count else 2 if value == 0 else 3] += chance
            wanted[class_of(value)][4] += chance
    for each, numbers in zip(found, wanted, strict=True):
        assert [each.counts, each.unchanged, each.hidden, each.moved, each.after] == near(numbers)
    total = sum(each.counts for each in found)
    assert total == 3 * len(CELLS)
    assert sum(each.after for each in found) == near(total)


def test_counts_that_appear_where_nobody_is_are_told(tmp_path: Path) -> None:
    path = tmp_path / "noisy.csv"
    path.write_text("count,released,probability\n0,0,0.5\n0,1,0.5\n1,1,1\n2,2,1\n3,3,1\n4,4,1\n")
    made = cr.read_perturbation(str(path))
    classes = list(classify_counts(make_table([[2, 0], [1, 0], [4, 1]]).attributes[0].profiles, made))
    assert "It shows 1 count where nobody is" in say_counts("y", classes, made.name)


@pytest.mark.parametrize("name", CASES)
def test_explain_with_a_perturbation(name: str) -> None:
    made, table = CASES[name], make_table(CELLS)
    found = cr.explain(table, perturbation=made, top=len(CELLS))
    exposed = {
        place: sum(count * alone(made, cell, label) for label, count in enumerate(cell) if count)
        for place, cell in enumerate(CELLS)
    }
    caused = {
        place: sum(
            count * (alone(made, cell, label) - alone(made, less(cell, label), label))
            for label, count in enumerate(cell)
            if count
        )
        for place, cell in enumerate(CELLS)
    }
    assert found.now.people == near(sum(exposed.values()))
    assert found.now.caused == near(sum(caused.values()))
    for row in found.riskiest:
        assert row.people == near(exposed[int(row.key["q"].split()[1])])
    for each in found.caused_cells:
        assert each.caused == near(caused[int(each.key["q"].split()[1])])
    assert found.method is made
    assert not found.settings
    assert "epsilon" not in str(found)


def test_a_perturbation_takes_the_place_of_a_mechanism() -> None:
    table = make_table(CELLS)
    for beside in ({"epsilon": 1.0}, {"mechanism": cr.Laplace(1.0)}, {"threshold": 1.5}):
        with pytest.raises(InvalidInput, match="takes the place of a mechanism"):
            cr.explain(table, perturbation="cell-key", **beside)  # type: ignore[arg-type]
    short = Perturbation("short", ODD.rows[:2], 0)
    with pytest.raises(InvalidInput, match="ends before the largest count"):
        cr.explain(table, perturbation=short)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counts.csv").write_text("q,y,n\na,s,3\na,t,1\nb,s,2\nc,t,12\n")
    asked = ["counts.csv", "--qid", "q", "--sensitive", "y", "--count", "n", "--perturbation", "random-rounding:3"]
    assert main(["explain", *asked, "--json", "--plot", "explained.svg"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["perturbation"]["name"] == "random-rounding:3"
    assert "random-rounding:3" in Path("explained.svg").read_text()
    for more in (["--epsilon", "1"], ["--attack", "plurality"], ["--mechanism", "laplace"]):
        assert main(["explain", *asked, *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert more[0] in err
