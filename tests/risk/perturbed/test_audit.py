"""Audits of tables that a perturbation made: over all that may be published, their mean is what assess says."""

from __future__ import annotations

import json
from itertools import product
from math import prod
from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.risk.attackers.figures import ATTACKS
from tests.near import near
from tests.risk.perturbed.test_assess_perturbation import ODD, make_table

CELLS = [[1, 0], [2, 1], [0, 3]]


def every_publication(made: cr.Perturbation) -> list[tuple[pd.DataFrame, float]]:
    """Every table that may be published of the cells, and its probability."""
    places = [(cell, label, count) for cell, row in enumerate(CELLS) for label, count in enumerate(row)]
    rows = [list(zip(*(part.tolist() for part in made.row(count)), strict=True)) for _, _, count in places]
    return [
        (
            pd.DataFrame(
                [
                    {"q": f"cell {cell}", "y": f"level {label}", "n": value}
                    for (cell, label, _), (value, _) in zip(places, each, strict=True)
                ]
            ),
            prod(chance for _, chance in each),
        )
        for each in product(*rows)
    ]


@pytest.mark.parametrize("name", ["random-rounding:3", pytest.param("odd", marks=pytest.mark.slow)])
def test_means_over_all_publications_are_the_figures_of_assess(name: str) -> None:
    made = ODD if name == "odd" else cr.read_perturbation(name)
    table, how = make_table(CELLS), {"certainty": 0.8, "belief": "0.5,0.3/0.7"}
    expected = cr.assess_perturbation(table, made, measures="local", compare=None, **how)
    total = exposed = 0.0
    revealed = dict.fromkeys(ATTACKS, 0.0)
    for frame, chance in every_publication(made):
        found = cr.audit(table, frame, count="n", perturbation=made, **how)
        total += chance
        exposed += chance * found.n_exposed
        for row in found.attackers:
            revealed[row["attack"]] += chance * row["revealed"]
    assert total == near(1.0)
    assert exposed == near(expected.figures[0].people.mean)
    assert revealed == {attack: near(expected.attackers["y"][0].figures(attack).revealed) for attack in ATTACKS}


def test_what_an_audit_says() -> None:
    """Which count would have been published for one person fewer is not known, so nothing is said of own records."""
    table = make_table(CELLS)
    frame, _ = every_publication(cr.read_perturbation("random-rounding:3"))[-1]
    found = cr.audit(table, frame, count="n", perturbation="random-rounding:3")
    document = json.loads(json.dumps(found.to_dict()))
    assert document["decision"]["perturbation"]["name"] == "random-rounding:3"
    assert document["decision"]["mechanism"] is None
    assert [row["attack"] for row in document["attackers"]] == list(ATTACKS)
    assert not any("own" in row for row in document["attackers"])


@pytest.mark.parametrize(
    ("value", "wrong"),
    [(1, "6 of 6 counts"), (2.5, "6 of 6 counts"), (-3, "6 of 6 counts"), (3, "2 of 6 counts"), (0, "1 of 6 counts")],
)
def test_a_table_that_the_perturbation_cannot_have_made(value: float, wrong: str) -> None:
    """A 3 stays, a 0 too; the rest may become 0 or 3."""
    frame, _ = every_publication(cr.read_perturbation("random-rounding:3"))[0]
    with pytest.raises(InvalidInput, match=f"never makes of the true ones; got {wrong}"):
        cr.audit(make_table(CELLS), frame.assign(n=value), count="n", perturbation="random-rounding:3")


def test_other_refusals() -> None:
    table = make_table(CELLS)
    frame, _ = every_publication(cr.read_perturbation("random-rounding:3"))[0]
    with pytest.raises(InvalidInput, match="takes the place of a mechanism"):
        cr.audit(table, frame, count="n", perturbation="random-rounding:3", epsilon=1.0)
    with pytest.raises(InvalidInput, match="holds records"):
        cr.audit(table, frame[["q", "y"]], count=False, perturbation="random-rounding:3")
    nobody = pd.DataFrame({"q": ["elsewhere"], "y": ["level 0"], "n": [3]})
    with pytest.raises(InvalidInput, match="never makes of the true ones"):  # nobody is there
        cr.audit(table, pd.concat([frame, nobody]), count="n", perturbation="random-rounding:3")


def test_a_release_with_a_description_is_no_perturbation(tmp_path: Path) -> None:
    levels = {"q": ["a", "b"], "y": ["s", "t"]}
    records = pd.DataFrame({"q": list("aabb"), "y": list("sstt")})
    table = cr.tabulate(records, "q", "y", levels=levels, outside="drop")
    released = cr.release(table, epsilon=5.0)
    for given in (released, released.save(tmp_path / "out.csv")):
        with pytest.raises(InvalidInput, match="was made by a mechanism, and not by a perturbation"):
            cr.audit(table, given, perturbation="cell-key", **({} if given is released else {"count": "count"}))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counts.csv").write_text("q,y,n\na,s,3\na,t,1\nb,s,2\nc,t,12\n")
    Path("published.csv").write_text("q,y,count\na,s,3\na,t,0\nb,s,3\nc,t,12\n")
    asked = ["audit", "counts.csv", "published.csv", "--qid", "q", "--sensitive", "y", "--count", "n"]
    asked += ["--released-count", "count", "--perturbation", "random-rounding:3"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["people"]["exposed"] == 17
    assert found["attackers"][0]["revealed"] == 17
    assert main([*asked, "--epsilon", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--epsilon" in err
    Path("published.csv").write_text("q,y,count\na,s,4\na,t,0\nb,s,3\nc,t,12\n")
    assert main(asked) == 2
    assert "1 of 4 counts" in capsys.readouterr().err
