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


@pytest.mark.parametrize(
    ("name", "belief"),
    [
        ("random-rounding:3", "0.5,0.3/0.7"),
        pytest.param("random-rounding:3", "table", marks=pytest.mark.full),
        pytest.param("odd", "0.5,0.3/0.7", marks=pytest.mark.full),
        pytest.param("odd", "table", marks=pytest.mark.full),
    ],
)
def test_means_over_all_publications_are_the_figures_of_assess(name: str, belief: str) -> None:
    made = ODD if name == "odd" else cr.read_perturbation(name)
    table = make_table(CELLS)
    expected = cr.assess_perturbation(
        table, made, measures="local", certainty=[0.6, 0.8], belief=belief, compare=None
    ).figures[0]
    total = caused = exposed = 0.0
    right, named = [0.0, 0.0], [0.0, 0.0]
    for frame, chance in every_publication(made):
        found = cr.audit(table, frame, count="n", perturbation=made, certainty=[0.6, 0.8], belief=belief)
        total += chance
        caused += chance * found.decision.caused
        exposed += chance * found.n_exposed
        for place, row in enumerate(found.decision.certainty):
            right[place] += chance * row.right
            named[place] += chance * row.named
    assert total == near(1.0)
    assert caused == near(expected.caused)
    assert exposed == near(expected.people.mean)
    assert right == near([row.right for row in expected.certainty])
    assert named == near([row.named for row in expected.certainty])


def test_what_an_audit_says() -> None:
    table = make_table(CELLS)
    frame, _ = every_publication(cr.read_perturbation("random-rounding:3"))[-1]
    found = cr.audit(table, frame, count="n", perturbation="random-rounding:3")
    assert "With each person's own record left out" in found.headline
    assert "is right at most 77.8% of the time" in found.details
    document = json.loads(json.dumps(found.to_dict()))["decision"]
    assert document["perturbation"]["name"] == "random-rounding:3"
    assert document["mechanism"] is None
    assert document["caused"]["people"] == near(found.n_exposed - document["caused"]["without"])


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
    # left out: a s 2 of 3 -> shown 2/3; b s 1 of 2 -> 1/3; c t 11 -> always; a t: s is shown
    assert found["decision"]["caused"]["without"] == near(3 * 2 / 3 + 2 * 1 / 3 + 12)
    assert main([*asked, "--epsilon", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--epsilon" in err
    Path("published.csv").write_text("q,y,count\na,s,4\na,t,0\nb,s,3\nc,t,12\n")
    assert main(asked) == 2
    assert "1 of 4 counts" in capsys.readouterr().err
