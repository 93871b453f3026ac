"""Keys by their largest noise and variance, and the perturbation of a family at equal risk with a mechanism."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.perturbations import read_perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import find_certainty, read_belief
from cellrisk.risk.perturbed.equal_risk import find_distance
from cellrisk.risk.perturbed.families import Family, find_mildest
from cellrisk.system.arrays import Floats
from tests.near import near
from tests.risk.perturbed.test_assess_perturbation import make_table, sum_caused

CELLS = [[1, 0]] * 6 + [[2, 0]] * 5 + [[0, 3]] * 4 + [[4, 1], [9, 2], [12, 0], [0, 7], [6, 0]]


@pytest.mark.parametrize(
    ("most", "variance"), [(1, 0.5), (1, 0.001), (2, 0.02), (2, 1.05), (5, 2.0), (5, 4.75), (20, 3.0)]
)
def test_keys_have_the_mean_the_variance_and_the_largest_entropy(most: int, variance: float) -> None:
    """Of all laws with these two moments, only that of the largest entropy has a logarithm that is a parabola."""
    made = read_perturbation(f"cell-key:{most}/{variance}")
    assert made.row(0)[0].tolist() == [0]
    for count in (1, 2, most, most + 1, 1000):
        values, chances = made.row(count)
        added = values - count
        assert (added.min(), added.max()) == (-min(count, most), most)
        assert chances.sum() == near(1.0)
        assert chances @ added == pytest.approx(0.0, abs=1e-10)
        assert chances @ added**2 == pytest.approx(variance, rel=1e-9, abs=0)
        bends = np.diff(np.log(chances[chances > 1e-250]), 2)
        assert bends == pytest.approx(bends[0] if len(bends) else 0.0, abs=1e-6 * max(1.0, abs(bends).max(initial=0)))


@pytest.mark.parametrize("most", [1, 2, 5, 30, 100])
def test_every_variance_that_is_allowed_has_keys(most: int) -> None:
    """From next to nothing up to the most: none is refused, and each is met, however long it is written."""
    for share in (*np.geomspace(1e-300, 1e-12, 7), *np.geomspace(1e-10, 0.9, 40), 0.94, 0.95):
        made = read_perturbation(f"cell-key:{most}/{most * share:.40e}")
        assert (made.last, made.period) == (most, 1)
        for count in {1, most // 2 + 1, most}:
            values, chances = made.row(count)
            assert chances @ (values - count) == pytest.approx(0.0, abs=1e-11 * most * share)
            assert chances @ (values - count) ** 2 == pytest.approx(most * share, rel=1e-11, abs=0)


@pytest.mark.parametrize(
    "given",
    [
        *("cell-key:", "cell-key:5", "cell-key:5/", "cell-key:5/x", "cell-key:0/1", "cell-key:5/0", "cell-key:5/-1"),
        *("cell-key:5/5", "cell-key:5/nan", "cell-key:5/inf", "cell-key:101/2", "cell-key:99999999999999999999/2"),
        *("cell-key:5/2/3", "cell-key:\u00b2/1"),
    ],
)
def test_keys_that_make_no_sense(given: str) -> None:
    with pytest.raises(InvalidInput, match=r"^the (largest|variance of what) .*key adds must be"):
        read_perturbation(given)


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return make_table(CELLS)


@pytest.mark.parametrize(
    "family",
    [
        "suppress-below,round:5",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("random-rounding", "round", "suppress-below")),
    ],
)
def test_the_first_number_that_gives_away_no_more(table: cr.FrequencyTable, family: str) -> None:
    mechanism, attribute = cr.Geometric(1.5), table.attribute()
    found = cr.find_equal_perturbation(table, family, mechanism, certainty=0.8)
    first, _, rest = family.partition(",")
    belief = read_belief("negbin", attribute.levels, attribute.profiles.n_cells)
    assessed = cr.assess(table, mechanism, measures="local", certainty=0.8).figures[0]
    wanted = {"caused": assessed.caused.people, "certainty": assessed.certainty[0].right}
    assert [each.by for each in found.numbers] == list(wanted)
    for each in found.numbers:
        assert each.figure == near(wanted[each.by])
        assert each.mechanism_distance == near(find_distance(attribute.profiles, mechanism.channel))
        for number in range(2, 101):
            rule = f"{first}:{number}" + (f",{rest}" if rest else "")
            made = read_perturbation(rule)
            if each.by == "caused":
                people = sum_caused(attribute.profiles, made)
            else:
                people = find_certainty(attribute, made.channel, (0.8,), belief)[0].right
            if people <= each.figure:
                assert each.perturbation == rule
                assert each.people == near(people)
                assert each.distance == near(find_distance(attribute.profiles, made.channel))
                break
        else:
            assert each.perturbation is None
            assert "reveals as few" in found.headline


def test_the_variance_of_keys() -> None:
    """Just below the variance that is found, more people are given away."""
    profiles = cr.Profiles.from_cells([[1, 0]] * 8 + [[9, 2], [12, 0], [0, 15]], n_levels=2)
    family = Family.of("cell-key:4")
    assert family is not None

    def count(channel: CountChannel) -> Floats:
        return profiles.n_records * caused_shares(profiles, channel)

    rule, people = find_mildest(family, 5.0, count)
    assert rule is not None
    assert people is not None
    assert people <= 5.0
    assert sum_caused(profiles, read_perturbation(rule)) == near(people)
    variance = float(rule.partition("/")[2])
    assert 0.01 < variance < 3.8
    assert sum_caused(profiles, read_perturbation(f"cell-key:4/{variance * 0.999}")) > 5.0
    assert find_mildest(family, -1.0, count) == (None, None)


def test_other_families_are_refused(table: cr.FrequencyTable) -> None:
    for family in ("noise", "random-rounding:3", "cell-key", "cell-key:0", "suppress-below,keys.csv", "", 3):
        with pytest.raises(InvalidInput, match="unknown family"):
            cr.find_equal_perturbation(table, family, epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no epsilon"):
        cr.find_equal_perturbation(table, "round")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counts.csv").write_text("q,y,n\na,s,3\na,t,1\nb,s,2\nc,t,12\nd,s,1\n")
    asked = ["assess", "counts.csv", "--qid", "q", "--sensitive", "y", "--count", "n", "--perturbation"]
    assert main([*asked, "suppress-below", "--epsilon", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["family"] == "suppress-below"
    assert [each["by"] for each in found["equal_risk"]] == ["caused", "certainty"]
    assert main([*asked, "round", "--epsilon", "1", "--mechanism", "laplace"]) == 0
    assert "Laplace noise at epsilon 1 reveals" in capsys.readouterr().out
    for more, told in (
        (["round"], "or an epsilon, to find the number at equal risk"),
        (["round", "--epsilon", "1", "--max-caused", "0.1"], "leave --max-caused out"),
        (["round:3", "--epsilon", "1"], "has no epsilon"),
    ):
        assert main([*asked, *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert told in err
