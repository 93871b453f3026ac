"""What a perturbation gives away: every figure against all that may be published, gone through one by one."""

from __future__ import annotations

import json
import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.ceilings import find_ceiling
from cellrisk.risk.certainty import NegativeBinomial, find_certainty, read_belief
from cellrisk.risk.certainty.count_priors import CategoryPrior, EmpiricalPrior
from cellrisk.risk.certainty.posterior import posterior_means
from cellrisk.risk.measures import Local
from cellrisk.risk.measures.dirichlet import Dirichlet
from cellrisk.risk.measures.given_total import Expected, MarginalShrinkage, Shrinkage
from cellrisk.risk.measures.marginal import Marginal
from cellrisk.risk.people import caused_shares
from cellrisk.risk.perturbed import assess_perturbation, find_distance
from tests.near import near
from tests.risk.measures.cases import poisson_sizes

ODD = Perturbation(
    "odd",
    (
        (np.array([0]), np.array([1.0])),
        (np.array([0, 1, 3]), np.array([0.2, 0.5, 0.3])),
        (np.array([0, 2, 4]), np.array([0.6, 0.1, 0.3])),  # vanishes more often than a 1
        *((np.array([0, count]), np.array([0.1, 0.9])) for count in range(3, 13)),
        (np.array([12, 14]), np.array([0.5, 0.5])),
    ),
    1,
)
CASES = {"rounding": read_perturbation("random-rounding:3"), "odd": ODD, "10-5": read_perturbation("cell-key")}
CELLS = [[1, 0, 0], [2, 0, 0], [2, 1, 0], [3, 2, 1], [4, 1, 0], [12, 0, 1], [10, 9, 9], [2, 2, 2]]


def published(perturbation: Perturbation, counts: Any) -> list[tuple[tuple[int, ...], float]]:
    """Every vector that a cell may be published as."""
    rows = [list(zip(*(part.tolist() for part in perturbation.row(int(count))), strict=True)) for count in counts]
    return [(tuple(value for value, _ in each), math.prod(chance for _, chance in each)) for each in product(*rows)]


def alone(perturbation: Perturbation, counts: Any, label: int) -> float:
    """P(this label is shown, and no other)."""
    return sum(
        chance
        for values, chance in published(perturbation, counts)
        if values[label] > 0 and not any(value for place, value in enumerate(values) if place != label)
    )


def less(counts: Any, label: int) -> list[int]:
    return [count - (place == label) for place, count in enumerate(counts)]


@pytest.mark.parametrize("name", CASES)
def test_caused_is_what_one_record_changes(name: str) -> None:
    made = CASES[name]
    wanted = sum(
        count * (alone(made, cell, label) - alone(made, less(cell, label), label))
        for cell in CELLS
        for label, count in enumerate(cell)
        if count
    )
    assert sum_caused(Profiles.from_cells(CELLS, n_levels=3), made) == near(wanted)


def test_the_sign_of_caused_is_kept() -> None:
    """A count of 2 vanishes more often than a 1: the second person hides the first."""
    assert sum_caused(Profiles.from_cells([[2, 0]], n_levels=2), ODD) == near(2 * (0.2 - 0.6))


def local(made: Perturbation, cell: Any) -> tuple[float, float]:
    """Exact and tight."""
    each = [alone(made, cell, label) if count else 0.0 for label, count in enumerate(cell)]
    return sum(each), sum(count * one for count, one in zip(cell, each, strict=True)) / max(sum(cell), 1)


def compositions(total: int, labels: int) -> list[tuple[int, ...]]:
    return [each for each in product(range(total + 1), repeat=labels) if sum(each) == total]


@pytest.mark.parametrize("name", CASES)
def test_measures_are_sums_over_all_that_may_be_published(name: str) -> None:
    made = CASES[name]
    channel = made.channel
    alpha = (0.7, 1.1, 0.4)
    prior = Dirichlet.given(alpha, n_levels=3)
    for cell in ([2, 1, 0], [3, 0, 0], [1, 2, 2]):
        profiles = Profiles.from_cells([cell], n_levels=3)
        n = sum(cell)
        found = {
            measure.__class__.__name__: measure.average(profiles, channel, ("exact", "tight"))
            for measure in (Local(), Expected(), Shrinkage(prior))
        }
        wanted = {"Local": np.array(local(made, cell)), "Expected": np.zeros(2), "Shrinkage": np.zeros(2)}
        for each in compositions(n, 3):
            risks = np.array(local(made, each))
            wanted["Expected"] += float(stats.multinomial.pmf(each, n, np.array(cell) / n)) * risks
            wanted["Shrinkage"] += float(stats.dirichlet_multinomial.pmf(each, alpha, n)) * risks
        for measure, values in wanted.items():
            got = [float(found[measure][form, "uniform"][0]) for form in ("exact", "tight")]
            assert got == near(values.tolist())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("alpha", [None, (0.7, 1.1)], ids=["marginal", "marginal-shrinkage"])
def test_marginal_measures_sum_over_sizes(name: str, alpha: tuple[float, float] | None) -> None:
    """All sizes of a cell, all cells of each size, and all that each may be published as."""
    made, rate, forms = CASES[name], 1.3, ("exact", "tight")
    sizes = poisson_sizes(rate, truncated=True, source="given")
    measure = Marginal(sizes) if alpha is None else MarginalShrinkage(Dirichlet.given(alpha, n_levels=2), sizes)
    profiles = Profiles.from_cells([[2, 1]], n_levels=2)
    found = measure.average(profiles, made.channel, forms)
    wanted = np.zeros(2)
    for n in range(1, 22):
        size = stats.poisson.pmf(n, rate) / -math.expm1(-rate)
        for k in range(n + 1):
            drawn = stats.binom.pmf(k, n, 2 / 3) if alpha is None else stats.betabinom.pmf(k, n, *alpha)
            wanted += size * drawn * np.array(local(made, (k, n - k)))
    got = [float(found[form, "uniform"][0]) for form in forms]
    # Sums over sizes stop where less than 1e-15 is left.
    assert got == pytest.approx(wanted.tolist(), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", CASES)
def test_the_ceiling_is_the_worst_over_known_counts(name: str) -> None:
    made = CASES[name]
    worst = 0.0
    for a, b in product(range(16), repeat=2):
        one, other = (dict(published(made, cell)) for cell in ((a + 1, b), (a, b + 1)))
        worst = max(worst, sum(max(one.get(key, 0.0), other.get(key, 0.0)) for key in {*one, *other}) / 2)
    found, counts = find_ceiling(made)
    assert found == near(worst)
    one, other = (dict(published(made, (counts[0] + x, counts[1] + 1 - x))) for x in (1, 0))
    assert sum(max(one.get(key, 0.0), other.get(key, 0.0)) for key in {*one, *other}) / 2 == near(found)


def sum_caused(profiles: Profiles, made: Perturbation) -> float:
    """The expected number of people revealed because of their own record."""
    return profiles.n_records * float(caused_shares(profiles, made.channel)[0])


def make_table(cells: Any) -> cr.FrequencyTable:
    rows = [
        {"q": f"cell {place}", "y": f"level {label}", "n": count}
        for place, cell in enumerate(cells)
        for label, count in enumerate(cell)
        if count
    ]
    return cr.tabulate(pd.DataFrame(rows), "q", "y", count="n")


@pytest.mark.parametrize("name", CASES)
def test_certainty_is_the_attackers_share_over_all_that_may_be_published(name: str) -> None:
    made, table = CASES[name], make_table(CELLS)
    attribute = table.attribute()
    believed = read_belief("0.5,0.3,0.2/0.7", attribute.levels, attribute.profiles.n_cells)
    assert isinstance(believed, NegativeBinomial)
    certainties = (0.6, 0.8, 0.95)
    found = find_certainty(attribute, made.channel, certainties, believed)
    last = 200
    behind = []
    for shape in believed.shapes:
        law = stats.nbinom.pmf(np.arange(last + 1), shape, 1 - believed.theta)
        table_of: dict[int, list[float]] = {}
        for count, weight in enumerate(law.tolist()):
            for (value,), chance in published(made, [count]):
                sums = table_of.setdefault(value, [0.0, 0.0])
                sums[0] += count * weight * chance
                sums[1] += weight * chance
        behind.append({value: top / bottom for value, (top, bottom) in table_of.items() if bottom > 0})
    for row, tau in zip(found, certainties, strict=True):
        right = named = 0.0
        for cell in CELLS:
            for values, chance in published(made, cell):
                parts = [each.get(value, 0.0) for each, value in zip(behind, values, strict=True)]
                for label, part in enumerate(parts):
                    if part >= (tau - 1e-12) * sum(parts):
                        right += chance * cell[label]
                        named += chance * sum(cell)
        assert (row.right, row.named) == (near(right), near(named))


@pytest.mark.parametrize("name", CASES)
def test_the_belief_table_is_the_share_of_people_behind_what_is_published(name: str) -> None:
    """P(label k | r) = sum over cells of n_k P(n -> r), over the same for all labels: every r gone through."""
    made, cells = CASES[name], [*CELLS, [1, 0, 0], [0, 1, 0], [0, 2, 1]]
    certainties = (0.6, 0.8, 0.95)
    found = find_certainty(make_table(cells).attribute(), made.channel, certainties, EmpiricalPrior())
    behind: dict[tuple[int, ...], list[float]] = {}
    for cell in cells:
        for values, chance in published(made, cell):
            people = behind.setdefault(values, [0.0] * 3)
            for label, count in enumerate(cell):
                people[label] += count * chance
    for row, tau in zip(found, certainties, strict=True):
        named = [(part, sum(people)) for people in behind.values() for part in people if sum(people) > 0]
        sure = [(part, total) for part, total in named if part >= (tau - 1e-12) * total]
        assert (row.right, row.named) == (near(sum(p for p, _ in sure)), near(sum(t for _, t in sure)))
        assert row.right >= (tau - 1e-9) * row.named  # calibrated on this table


def test_the_ceiling_of_many_different_rows_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    exact, _ = find_ceiling(ODD)
    monkeypatch.setattr("cellrisk.risk.ceilings.MOST_PAIRS", 1)
    assert exact <= find_ceiling(ODD)[0] <= 1.0


def test_a_label_that_nobody_is_believed_to_have() -> None:
    assert posterior_means(CategoryPrior(0.0, 0.5), ODD.channel, np.array([0, 1])).tolist() == [0.0, 0.0]
    zero, four = posterior_means(CategoryPrior(0.5, 0.3), read_perturbation("round:4").channel, np.array([0, 4]))
    assert four > zero


@pytest.fixture(scope="module")
def adult() -> cr.FrequencyTable:
    qids = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
    return cr.tabulate(cr.datasets.adult_as_published(), qids, "income", bins={"age": 5, "hours-per-week": 10})


def test_known_figures(adult: cr.FrequencyTable) -> None:
    rounded = assess_perturbation(adult, "random-rounding:3", measures="local")
    assert rounded.figures[0].caused == pytest.approx(1729.89, abs=0.005)
    assert rounded.figures[0].worst_case[0] == pytest.approx(0.777778, abs=5e-7)
    suppressed = assess_perturbation(adult, "suppress-below:10,round:5", measures="local", compare=None)
    assert suppressed.figures[0].caused == near(400.0)
    equal = rounded.figures[0].equal
    assert equal is not None
    assert equal.epsilon is not None
    profiles = adult.profiles("income")
    for epsilon, above in ((equal.epsilon, False), (equal.epsilon * 1.0001, True)):
        people = cr.assess(adult, epsilon=epsilon, measures="local").figures[0].caused.people
        assert (people > equal.figure) == above
    assert equal.mechanism_distance == near(find_distance(profiles, cr.Geometric(equal.epsilon).channel))
    assert "reveals no more people at epsilon 0.001 to 1.7" in rounded.details
    assert "epsilon 1.7" in rounded.details


@pytest.mark.parametrize("name", CASES)
def test_the_simulation_agrees(name: str) -> None:
    table = make_table(CELLS * 20)
    found = cr.simulate(table, perturbation=CASES[name], releases=300, seed=2)
    (figures,) = assess_perturbation(table, CASES[name], measures="local", compare=None).figures
    homogeneity = found.attackers[0]
    expected = {
        "revealed": figures.people.mean,
        "own": sum_caused(Profiles.from_cells(CELLS * 20, n_levels=3), CASES[name]),
    }
    for figure, people in expected.items():
        assert abs(homogeneity[figure] - people) <= 4.5 * homogeneity[f"{figure}_error"] + 1e-9
    assert found.people.mean == near(homogeneity["revealed"])
    with pytest.raises(InvalidInput, match="not made to add up"):
        cr.simulate(table, perturbation=CASES[name], parents="totals.csv")


def test_a_table_that_ends_before_the_largest_count(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("count,released,probability\n0,0,1\n1,1,1\n2,2,1\n")
    found = assess_perturbation(make_table([[2, 0], [1, 1]]), str(path), compare=None)
    assert found.figures[0].worst_case[0] == near(1.0)
    path.write_text("count,released,probability\n0,0,1\n1,1,1\n2,0,0.5\n2,2,0.5\n")
    with pytest.raises(InvalidInput, match="may still vanish"):
        assess_perturbation(make_table([[2, 0], [1, 1]]), str(path))


def test_other_answers() -> None:
    table = make_table([[2, 0], [1, 1], [5, 0], [0, 3]])
    nobody = assess_perturbation(make_table([[2, 0], [1, 1], [0, 1]]), "suppress-below:100", measures="local")
    assert nobody.figures[0].equal is not None
    assert nobody.figures[0].equal.epsilon is None
    assert "Geometric noise reveals more people at every epsilon searched" in nobody.details
    assert json.loads(json.dumps(nobody.to_dict()))["decision"][0]["caused"]["people"] == near(0.0)
    assert (
        assess_perturbation(table, "cell-key", belief="table", compare=None).figures[0].certainty[0].belief == "table"
    )
    with pytest.raises(UnknownName, match="unknown mechanism"):
        assess_perturbation(table, "random-rounding:3", compare="noise")
    raw = assess_perturbation(table, "suppress-below:1", measures="local")  # nothing is changed
    assert raw.figures[0].people.mean == near(10.0)
    hidden = assess_perturbation(make_table([[2, 0]] * 5 + [[1, 2]]), ODD, measures="local", compare=None)
    assert re.search(r"Homogeneity attack.* -4  -28\.3%", str(hidden))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"q": list("aabbccd"), "y": list("mnmnmmn")}).to_csv("people.csv", index=False)
    asked = ["assess", "people.csv", "--qid", "q", "--sensitive", "y", "--perturbation"]
    assert main([*asked, "random-rounding:3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decision"][0]["ceiling"]["even_two"] == near(7 / 9)
    measures = {row["measure"] for row in found["risks"]}
    assert measures == {"local", "expected", "shrinkage", "marginal", "marginal_shrinkage"}
    for more, told in (
        (("random-rounding:3", "--epsilon", "1"), "has no epsilon"),
        (("random-rounding:3", "--attack", "plurality"), "--attack"),
        (("nothing.csv",), "no such file"),
    ):
        assert main([*asked, *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert told in err
    assert main([*asked, "random-rounding:3", "--plot", "equal.svg"]) == 0
    assert main([*asked[:-1], "--epsilon", "1", "--measure", "local", "--plot", "risks.png"]) == 0
    assert Path("equal.svg").read_bytes().startswith(b"<?xml")
    assert Path("risks.png").exists()
    capsys.readouterr()
    assert main([*asked, "random-rounding:3", "--plot", "equal.txt"]) == 2
    assert ".svg" in capsys.readouterr().err
    asked[0] = "simulate"
    assert main([*asked, "random-rounding:3", "--releases", "50", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["attackers"]) == 4
    assert main([*asked, "random-rounding:3", "--epsilon", "1"]) == 2
    assert "no epsilon" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ask", "more"),
    [
        (cr.assess, {}),
        (cr.average, {"releases": 2}),
        (cr.choose, {"max_caused": 0.1}),
        (cr.curve, {}),
        (cr.utility, {}),
    ],
)
def test_python_says_why_a_perturbation_is_no_mechanism(ask: Any, more: dict[str, Any]) -> None:
    table = cr.tabulate(pd.DataFrame({"sex": list("ffmm"), "job": list("abab")}), "sex", "job", count=False)
    rounded = cr.read_perturbation("random-rounding:3")
    with pytest.raises(cr.InvalidInput, match="a perturbation has no epsilon"):
        ask(table, rounded, **more)
