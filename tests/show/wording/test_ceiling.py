"""What is promised in words: no false sentence on any surface, and every number in one recomputed by plain sums.

The oracle adds up probabilities of released values with and without a record. It shares no code with cellrisk.
"""

from __future__ import annotations

import html
import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.together.sets import try_ceiling
from cellrisk.risk.ceilings import Ceiling

FALSE = (
    r"nobody,? whatever",
    r"whatever (he|they|anybody) knows?",
    r"knew every(body|thing about everybody) else",
    r"everything about everybody",
    r"nobody (is|was|would be|could be|can be|guesses) (\w+ )?right",
    r"nobody (is )?able to tell",
    r"(nobody|anybody|anyone) (at all )?(who has seen all \w+ )?(can |could |may |would )?tells? (two|which)",
    r"by nobody more",
    r"what nobody exceeds|nobody exceeds",
    r"times in (a )?(100|hundred)",
    r"almost as likely",
    r"alone names more",
    r"basic composition alone",
    r"never more than \(1 - e\^-epsilon\)",
)
GAIN = re.compile(
    r"Having a person's record in (this release|these releases), instead of (leaving it out|anybody else's record), "
    r"raises anybody's chance of naming that person's value by at most (\d+(?:\.\d)?) percentage points\."
)
WORST = re.compile(
    r"Worst case for one record: an attacker who already knows every other record, and finds two values equally "
    r"likely, is right at most (\d+(?:\.\d)?)% of the time \(coin toss: 50%\)\."
)
FACTOR = re.compile(
    r"differential privacy with epsilon ([\d.e+-]+?)(?: and delta ([\d.e-]+))?: whatever is read in (?:it|them) is at "
    r"most ([\d.,e+]+) times as likely as if one record (were left out|held other values)"
    r"(?:, plus a probability of ([\d.e-]+))?, and the other way round\."
)
PEOPLE = pd.DataFrame(
    {"sex": [*"ffmmmxxffm"], "age": [*"yyooyooyyo"], "job": [*"abaababaab"]},
)
LEVELS = {"sex": [*"fmx"], "age": [*"yo"], "job": [*"ab"]}


def the_ceiling(*asked: Any) -> Ceiling:
    found, _ = try_ceiling(*asked)
    assert found is not None
    return found


# The oracle ---------------------------------------------------------------------------------------------------------


def noise_of(mechanism: cr.Mechanism) -> Callable[[int], float]:
    """P(the rounded noise is j), from the definition of the noise."""
    scale = mechanism.scale
    if mechanism.name == "geometric":
        a = math.exp(-1 / scale)
        return lambda j: (1 - a) / (1 + a) * a ** abs(j)
    if mechanism.name == "laplace":
        return lambda j: 1 - math.exp(-0.5 / scale) if j == 0 else math.sinh(0.5 / scale) * math.exp(-abs(j) / scale)
    if mechanism.name == "discrete-gaussian":
        total = math.fsum(math.exp(-(j**2) / (2 * scale**2)) for j in range(-400, 401))
        return lambda j: math.exp(-(j**2) / (2 * scale**2)) / total
    edges = lambda x: 0.5 * math.erfc(x / (math.sqrt(2) * scale))  # noqa: E731
    return lambda j: edges(abs(j) - 0.5) - edges(abs(j) + 0.5)


Worlds = tuple[np.ndarray, np.ndarray]
"""The probabilities of every outcome in two worlds."""


def count(mechanism: cr.Mechanism) -> Worlds:
    """One count without and with a record in it."""
    noise, far = noise_of(mechanism), 6 + math.ceil((9 if "gaussian" in mechanism.name else 26) * mechanism.scale)
    values = range(-far, far + 2)
    return merge(np.array([noise(j) for j in values]), np.array([noise(j - 1) for j in values]))


def guarantee(epsilon: float, delta: float) -> Worlds:
    """The worst that (epsilon, delta) allows: with delta it tells the world, otherwise it leans by e^epsilon."""
    more = (1 - delta) / (1 + math.exp(-epsilon))
    less = 1 - delta - more
    return np.array([delta, more, less, 0.0]), np.array([0.0, less, more, delta])


def both(first: Worlds, second: Worlds) -> Worlds:
    """Two independent observations."""
    return merge(*(np.multiply.outer(a, b).ravel() for a, b in zip(first, second, strict=True)))


def merge(here: np.ndarray, there: np.ndarray) -> Worlds:
    """Outcomes whose probabilities have the same ratio, added up: nothing else tells the worlds apart."""
    seen = (here > 0) | (there > 0)
    share = np.round(here[seen] / (here[seen] + there[seen]), 13)
    _, place = np.unique(share, return_inverse=True)
    return np.bincount(place, here[seen]), np.bincount(place, there[seen])


def observe(parts: list[Worlds]) -> Worlds:
    found = parts[0]
    for part in parts[1:]:
        found = both(found, part)
    return found


def distance(parts: list[Worlds]) -> float:
    """The total variation distance between the worlds."""
    here, there = observe(parts)
    return 0.5 * math.fsum(np.abs(here - there))


def exact_gain(mechanisms: list[cr.Mechanism]) -> float:
    """How much likelier any attack is right: one count moves, or two where the record is replaced."""
    moved = 2 if any(each.neighbours == "replace" for each in mechanisms) else 1
    return distance([count(each) for each in mechanisms for _ in range(moved)])


def exact_worst(mechanisms: list[cr.Mechanism]) -> float:
    """(1 + distance)/2, as another value moves two counts of every release."""
    return 0.5 + 0.5 * distance([count(each) for each in mechanisms for _ in range(2)])


def require_rounded_up(said: str, exact: float, slack: float = 0.0) -> None:
    """One decimal, not below the truth in hundredths, and not further above it than rounding and slack."""
    assert 100 * exact - 1e-7 <= float(said) < 100 * exact + 0.1 + slack


def require_true(text: str, mechanisms: list[cr.Mechanism], *, slack: float = 0.0, some: bool = True) -> None:
    """Every sentence about the ceiling in a text is that of these releases."""
    said = " ".join(text.split())
    gains, worst = GAIN.findall(said), WORST.findall(said)
    assert len(gains) == said.count("raises anybody's chance")
    assert len(worst) == said.count("coin toss: 50%") <= len(gains)
    assert bool(gains) is some
    replaced = any(each.neighbours == "replace" for each in mechanisms)
    for where, instead, points in gains:
        assert where == ("this release" if len(mechanisms) == 1 else "these releases")
        assert instead == ("anybody else's record" if replaced else "leaving it out")
        require_rounded_up(points, exact_gain(mechanisms), slack)
    for share in worst:
        require_rounded_up(share, exact_worst(mechanisms), slack)


def require_factor(text: str, mechanism: cr.Mechanism | None = None) -> None:
    """The promise of a statement: its factor is e^epsilon, not below it, and the released counts keep the promise."""
    (said,) = FACTOR.findall(" ".join(text.split()))
    epsilon, delta, factor, changed, more = said
    times = float(factor.replace(",", ""))
    assert delta == more
    assert math.exp(float(epsilon)) <= times <= 1.01 * math.exp(float(epsilon))
    if mechanism is not None:
        assert (changed == "held other values") is (mechanism.neighbours == "replace")
        here, there = observe([count(mechanism)] * (2 if mechanism.neighbours == "replace" else 1))
        for one, other in ((here, there), (there, here)):
            assert math.fsum(np.maximum(one - times * other, 0.0)) <= float(more or 0.0) + 1e-12


# Every surface ------------------------------------------------------------------------------------------------------


def table() -> cr.FrequencyTable:
    return cr.tabulate(PEOPLE, ["sex", "age"], "job", levels=LEVELS)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    import cellrisk.show.pictures as pictures

    for name in ("draw_curve", "draw_choice", "draw_sizes", "draw_together", "draw_equal_risk"):
        monkeypatch.setattr(pictures, name, lambda *_: SimpleNamespace(texts=[], axes=[]))
    monkeypatch.setattr(pictures, "to_svg", lambda _: "<svg></svg>")


def strip(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def everything(found: cr.Result) -> str:
    return f"{found}\n{json.dumps(found.to_dict(), ensure_ascii=False)}"


def tables_of(mechanism: cr.Mechanism) -> list[dict[str, object]]:
    return [{"qid": name, "mechanism": mechanism} for name in ("sex", "age")]


def released(mechanism: cr.Mechanism) -> str:
    return everything(cr.release(table(), mechanism))


SURFACES: dict[str, tuple[int, Callable[[cr.Mechanism], str]]] = {
    "ceiling": (1, lambda made: everything(cr.ceiling(made, labels=3))),
    "assess": (1, lambda made: everything(cr.assess(table(), made))),
    "release": (1, released),
    "average": (3, lambda made: everything(cr.average(table(), made, releases=3, measures="local"))),
    "sequence": (2, lambda made: str(cr.assess_sequence(table(), [cr.Step(made, "job")] * 2))),
    "together": (2, lambda made: cr.assess_together(PEOPLE, tables_of(made), "job", levels=LEVELS).details),
    "report": (1, lambda made: strip(cr.report(table(), made).to_html())),
    "report, public": (1, lambda made: strip(cr.report(table(), made, public=True).to_html())),
}
"""Texts with the sentences, each with the number of releases that it is about."""
MECHANISMS = [
    cr.Geometric(1.0),
    cr.Geometric(0.37, neighbours="replace"),
    cr.DiscreteGaussian(1.3, delta=1e-4),
    cr.DiscreteGaussian(2.1, delta=1e-3, neighbours="replace"),
]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: f"{each.name}-{each.neighbours}")
@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_is_true(surface: str, mechanism: cr.Mechanism) -> None:
    releases, write = SURFACES[surface]
    if surface in ("average", "report") and mechanism.name != "geometric":
        mechanism = cr.Geometric(2.3, neighbours=mechanism.neighbours)  # those take long with discrete Gaussian noise
    text = write(mechanism)
    assert not [words for words in FALSE if re.search(words, " ".join(text.split()), re.I)]
    require_true(text, [mechanism] * releases, slack=0.01 if releases > 1 else 0.0)
    if "public" in surface:
        require_factor(text, mechanism if releases == 1 else None)


def test_the_curve_states_the_bounds_at_each_epsilon() -> None:
    curve = cr.curve(table(), measures=["caused", "certainty", "ceiling"], epsilon=[0.1, 1, 10])
    text = " ".join(str(curve).split())
    (worst,) = re.findall(r"worst case: (.*? at epsilon 10);", text)
    pairs = re.findall(r"([\d.]+)% at epsilon ([\d.]+)", worst)
    assert [epsilon for _, epsilon in pairs] == ["0.1", "1", "10"]
    for number, epsilon in pairs:
        require_rounded_up(number, exact_worst([cr.Geometric(float(epsilon))]))
    rows = [line.split() for line in str(cr.curve(table())).splitlines()]
    gains = [(row[-1].removesuffix("%"), row[0]) for row in rows if row and row[0] in ("0.1", "0.5", "1", "3")]
    assert len(gains) == 4
    for number, epsilon in gains:
        require_rounded_up(number, exact_gain([cr.Geometric(float(epsilon))]))


# Random mechanisms, neighbours, compositions and sets ---------------------------------------------------------------


def draw_mechanism(draw: random.Random, neighbours: str | None = None) -> cr.Mechanism:
    words = {"neighbours": neighbours or draw.choice(["add-remove", "replace"])}
    epsilon = math.exp(draw.uniform(math.log(0.5), math.log(4.0)))
    if draw.random() < 0.5:
        return cr.Geometric(epsilon, **words)
    return cr.DiscreteGaussian(epsilon, delta=10 ** draw.uniform(-4, -2), **words)


def draw_several(draw: random.Random, most: int, neighbours: str | None = None) -> list[cr.Mechanism]:
    """One mechanism of any kind, which may occur twice, and geometric ones: few ratios, so that sums stay short."""
    first = draw_mechanism(draw, neighbours)
    made = [first, *([first] if draw.random() < 0.3 else [])]
    while len(made) < most:
        made.append(
            cr.Geometric(draw.uniform(0.2, 2.0), neighbours=neighbours or draw.choice(["add-remove", "replace"]))
        )
    return made


@pytest.mark.parametrize("seed", range(12))
def test_one_release(seed: int) -> None:
    draw = random.Random(seed)
    require_true(cr.ceiling(made := draw_mechanism(draw), labels=draw.randint(2, 9)).headline, [made])


@pytest.mark.parametrize("seed", range(6))
def test_several_releases(seed: int) -> None:
    draw = random.Random(100 + seed)
    made = draw_several(draw, draw.randint(2, 4))
    require_true(compose_ceiling([Loss.of(each) for each in made]).headline, made, slack=0.01)


@pytest.mark.parametrize("name", ["laplace", "gaussian-analytic"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_noise_that_is_rounded_afterwards_is_bounded(name: str, neighbours: str) -> None:
    """The bound is that before rounding: not below the rounded counts, and not far above them."""
    made = cr.mechanism(name, epsilon=0.6, delta=None if name == "laplace" else 1e-3, neighbours=neighbours)
    found = compose_ceiling([Loss.of(made)])
    ((_, _, points),) = GAIN.findall(found.headline)
    (share,) = WORST.findall(found.headline)
    require_rounded_up(points, exact_gain([made]), slack=2.0)
    require_rounded_up(share, exact_worst([made]), slack=2.0)


@pytest.mark.parametrize("seed", range(6))
def test_guarantees_alone(seed: int) -> None:
    """Of one: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1). Of several: their worst, added up over all outcomes."""
    draw = random.Random(200 + seed)
    words = {"neighbours": draw.choice(["add-remove", "replace"])}
    given = [(draw.uniform(0.2, 2.0), 10 ** draw.uniform(-4, -1)) for _ in range(1 + seed % 3)]
    found = compose_ceiling([Loss.approximate(epsilon, delta, **words) for epsilon, delta in given])
    exact = distance([guarantee(*each) for each in given])
    if len(given) == 1:
        ((epsilon, delta),) = given
        assert exact == pytest.approx((math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1), abs=1e-12)
    ((where, instead, points),) = GAIN.findall(found.headline)
    assert where == ("this release" if len(given) == 1 else "these releases")
    assert instead == ("leaving it out" if words["neighbours"] == "add-remove" else "anybody else's record")
    assert found.advantage >= exact - 1e-12
    require_rounded_up(points, exact, slack=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_sets_whose_tables_may_exclude_each_other(seed: int) -> None:
    """A person is in one collection of tables: the largest gain of a collection counts, and so does the worst case."""
    draw = random.Random(300 + seed)
    made = draw_several(draw, 3, "add-remove")
    together = [(0, 1, 2)] if seed % 2 else [(0, 1), (1, 2), (0,)]
    ((where, _, points),) = GAIN.findall(headline := the_ceiling(made, together, 2).headline)
    (share,) = WORST.findall(headline)
    assert where == "these releases"
    collections = [[made[number] for number in some] for some in together]
    require_rounded_up(points, max(map(exact_gain, collections)), slack=0.01)
    require_rounded_up(share, max(map(exact_worst, collections)), slack=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_the_public_statement_promises_what_the_counts_keep(seed: int) -> None:
    made = draw_mechanism(random.Random(400 + seed))
    text = strip(cr.report(table(), made, public=True).to_html())
    require_factor(text, made)
    require_true(text, [made])
    assert "That holds against every attack, with any knowledge, for ever" in text


EXCEPT = "for ever, except for what is named below as not covered by the guarantee;"
BESIDE = "(coin toss: 50%). What the guarantee does not cover is not in this figure."


def test_the_public_statement_excepts_what_the_guarantee_does_not_cover() -> None:
    """Values that were not declared, and whether records were refused: data that are published without noise."""
    declared = cr.tabulate(PEOPLE, ["sex", "age"], "job", levels=LEVELS, outside="drop")
    refused, observed = table(), cr.tabulate(PEOPLE, ["sex", "age"], "job", levels={"job": [*"ab"]}, outside="drop")
    for given, covered in ((declared, True), (refused, False), (observed, False)):
        text = " ".join(strip(cr.report(given, cr.Geometric(1.0), public=True).to_html()).split())
        assert (EXCEPT in text, BESIDE in text) == (not covered, not covered)
        assert text.count("for ever;") == covered
        assert ("Not covered by the guarantee none" in re.sub(r"\W+", " ", text)) is covered


@pytest.mark.parametrize("seed", range(2))
def test_the_tables_of_several_attributes_are_taken_together(seed: int) -> None:
    """They are about the same people: an attacker sees all of them, and their losses add up."""
    made = draw_mechanism(random.Random(450 + seed))
    both_ways = {"age": [*"yo"], "sex": [*"fmx"], "job": [*"ab"]}
    several = cr.tabulate(PEOPLE, "age", ["sex", "job"], levels=both_ways, outside="drop")
    text = " ".join(strip(cr.report(several, made, public=True).to_html()).split())
    require_true(text, [made, made], slack=0.01)
    ((epsilon, delta, factor, _, _),) = FACTOR.findall(text)
    assert made.epsilon < float(epsilon) <= 2 * made.epsilon + 1e-9
    here, there = observe([count(made)] * (4 if made.neighbours == "replace" else 2))
    for one, other in ((here, there), (there, here)):
        assert math.fsum(np.maximum(one - float(factor.replace(",", "")) * other, 0.0)) <= float(delta or 0.0) + 1e-12
    assert "Together the tables keep" in text
    for result in (cr.assess(several, made), cr.choose(several, made.name, max_epsilon=1.0, delta=made.delta or None)):
        cost = 2 * (made.epsilon if isinstance(result, cr.Assessment) else 1.0)
        assert f"together cost epsilon {cost:.3g}"[:-1] in result.details
    assert "What any attack can do at most is stated for one of them alone." in cr.report(several, made).to_html()


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 5.0, 12.0, 100.0, 1000.0])
def test_the_factor_at_any_epsilon(epsilon: float) -> None:
    text = " ".join(strip(cr.report(table(), cr.Geometric(epsilon), public=True).to_html()).split())
    ((_, _, factor, _, _),) = FACTOR.findall(text)
    mantissa, _, power = factor.replace(",", "").partition("e+")
    above = math.log(float(mantissa)) + int(power or 0) * math.log(10) - epsilon
    assert 0 <= above < math.log(1.01)


def test_an_attacker_who_also_learns_from_others_is_right_more_often_than_the_worst_case() -> None:
    """Why the old sentence was false. All 20 others of a group are ill, or all are well, and the person is as they are;
    the attacker finds both equally likely. The count of the others tells which, far more often than 73.2%."""
    other = cr.Geometric(1.0)
    noise, far = noise_of(other), 60
    ill = np.array([noise(j - 20) for j in range(-far, far)])
    well = np.array([noise(j) for j in range(-far, far)])
    right = 0.5 * math.fsum(np.maximum(ill, well))
    (share,) = WORST.findall(cr.ceiling(other).headline)
    assert 100 * right > float(share) + 20


# An epsilon that was chosen from the data ---------------------------------------------------------------------------


def people(draw: random.Random) -> pd.DataFrame:
    rows = [(draw.choice("fmx"), draw.choice("yo"), draw.choice("aaab")) for _ in range(24)]
    return pd.DataFrame(rows, columns=["sex", "age", "job"])


def state(frame: pd.DataFrame) -> tuple[str, cr.Choice]:
    made = cr.tabulate(frame, ["sex", "age"], "job", levels=LEVELS)
    page = cr.report(made, max_caused=0.02, public=True).to_html()
    return " ".join(strip(page).split()), cr.choose(made, max_caused=0.02)


@pytest.mark.slow
def test_a_statement_with_a_chosen_epsilon_claims_no_more_than_holds() -> None:
    """No ceiling, nothing for ever; two digits inside what is admissible; most neighbours give the same text."""
    draw, same, total = random.Random(1), 0, 0
    for _ in range(2):
        frame = people(draw)
        text, choice = state(frame)
        require_true(text, [], some=False)
        require_factor(text)
        for words in (", for ever", "any knowledge"):
            assert words not in text
        for words in ("chosen from the data, which it does not cover", "cellrisk choose-private"):
            assert words in text
        (epsilon,) = set(re.findall(r"[Pp]ublished at epsilon ([\d.]+)", text))
        assert len(epsilon.replace(".", "").strip("0")) <= 2
        assert choice.epsilon is not None
        assert choice.epsilon / 1.1 < float(epsilon) <= choice.epsilon
        assert any(low <= float(epsilon) <= high for low, high in choice.admissible)
        assert f"{choice.epsilon:.4f}" not in text
        for place in range(5):
            total += 1
            same += state(frame.drop(index=frame.index[4 * place]))[0] == text
    assert same > total / 2


@pytest.mark.usefixtures("no_pictures")
def test_no_ceiling_is_stated_for_an_epsilon_that_was_chosen_from_the_data() -> None:
    choice = cr.choose(table(), max_caused=0.05)
    for text in (everything(choice), strip(cr.report(table(), max_caused=0.05).to_html())):
        require_true(text, [], some=False)
        assert "because epsilon was chosen from the data" in " ".join(text.split())
    by_ceiling = cr.choose(table(), max_ceiling=0.7)
    require_true(by_ceiling.details, [cr.Geometric(float(by_ceiling.epsilon or 0))])


def test_the_ledger_states_what_one_record_in_all_releases_adds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = str(tmp_path / "releases.db")
    assert main(["ledger", "create", ledger]) == 0
    given = ["--mechanism", "geometric", "--epsilon", "0.5"]
    assert main(["ledger", "add", ledger, *given, "--attribute", "job", "--qid", "sex", "--purpose", "a test"]) == 0
    capsys.readouterr()
    assert main(["ledger", "plan", ledger, *given]) == 0
    before, _, after = capsys.readouterr().out.partition("After:")
    require_true(before, [cr.Geometric(0.5)], some=False)
    require_true(after, [cr.Geometric(0.5)] * 2, slack=0.01)
