"""`audit`: every figure against plain dictionaries, the attackers against those of the simulation, and its answers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.publish.auditing import FIGURES, Audit, audit
from cellrisk.system.formatting import CURATOR_NOTE
from tests.near import near, same
from tests.publish.auditing import oracle
from tests.refusals import refused

KEYS = ["sex", "town"]


def draw_people(rng: np.random.Generator, records: int, towns: int = 6, levels: int = 3) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], records),
            "town": rng.choice([f"t{town}" for town in range(towns)], records),
            "job": rng.choice([f"j{level}" for level in range(levels)], records, p=_skewed(levels)),
        }
    )


def _skewed(levels: int) -> np.ndarray:
    weight = 0.5 ** np.arange(levels)
    return weight / weight.sum()


def count(frame: pd.DataFrame) -> oracle.Counts:
    amounts = frame["n"] if "n" in frame else [1] * len(frame)
    found: oracle.Counts = {}
    for sex, town, job, amount in zip(frame.sex, frame.town, frame.job, amounts, strict=True):
        found[(sex, town), job] = found.get(((sex, town), job), 0) + amount
    return found


def tabulated(people: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(people, KEYS, "job", levels={"job": ["j0", "j1", "j2"]})


def noisy(people: pd.DataFrame, rng: np.random.Generator, *, whole: bool, signed: bool) -> pd.DataFrame:
    """Counts with noise on every combination, and on a town that nobody lives in."""
    frame = pd.MultiIndex.from_product(
        [["f", "m"], [*(f"t{town}" for town in range(6)), "nowhere"], ["j0", "j1", "j2"]], names=[*KEYS, "job"]
    ).to_frame(index=False)
    true = count(people)
    cells = zip(frame.sex, frame.town, frame.job, strict=True)
    amounts = np.array([true.get(((sex, town), job), 0) for sex, town, job in cells]) + rng.laplace(size=len(frame))
    amounts = np.rint(amounts) if whole else amounts
    frame["n"] = amounts if signed else np.maximum(amounts, 0)
    return frame


def agree(found: Audit, original: pd.DataFrame, released: pd.DataFrame) -> None:
    for of, other in (("released", released), ("original", original)):
        expected = oracle.figures(count(original), count(other))
        assert expected.keys() == FIGURES.keys()
        for name, number in expected.items():
            assert found.value(name, of) == pytest.approx(number, rel=1e-12, abs=1e-12, nan_ok=True), (name, of)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("records", [12, 60])
def test_synthetic_records_give_what_dictionaries_give(seed: int, records: int) -> None:
    rng = np.random.default_rng(seed)
    people, synthetic = draw_people(rng, records), draw_people(rng, records // 2, towns=8)
    agree(audit(tabulated(people), synthetic), people, synthetic)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("signed", [True, False])
def test_counts_with_noise_give_what_dictionaries_give(seed: int, whole: bool, signed: bool) -> None:
    rng = np.random.default_rng(seed)
    people = draw_people(rng, 40)
    released = noisy(people, rng, whole=whole, signed=signed)
    agree(audit(tabulated(people), released, count="n"), people, released)


def test_the_original_released_as_it_is() -> None:
    people = draw_people(np.random.default_rng(9), 60)
    table = tabulated(people)
    for release in (people, people.sample(frac=1, random_state=1)):
        found = audit(table, release)
        assert same(
            {name: found.value(name) for name in FIGURES}, {name: found.value(name, "original") for name in FIGURES}
        )
        assert found.value() == near(table.attribute().exposed_share)
        assert found.value("marketer") == near(table.n_cells / table.n_records)
        assert found.notes == ()


def test_identities_between_the_figures() -> None:
    rng = np.random.default_rng(3)
    people = draw_people(rng, 15)
    released = noisy(people, rng, whole=True, signed=True)
    found = audit(tabulated(people), released, count="n")
    assert found.value("disco") == near(found.value())
    assert found.value() > 0
    assert found.value("tcap") == near(found.value("disco") / found.value("dis"))
    assert found.value("zero_cap") == near(1 - found.value("proportional"))
    assert sum(found.value(f"scenario_{number}") for number in range(1, 9)) == found.original.n_cells
    assert found.value("entropy_l") <= found.value("distinct_l")


def test_nothing_is_given_away_where_nothing_is_shown() -> None:
    people = draw_people(np.random.default_rng(1), 20)
    released = noisy(people, np.random.default_rng(1), whole=True, signed=False).assign(n=0)
    for release in (released, released[:0]):
        found = audit(tabulated(people), release, count="n")
        assert found.value() == found.value("plurality") == found.value("dis") == 0
        assert found.value("zero_cap") == 1
        assert all(math.isnan(found.value(name)) for name in ("tcap", "cap", "k", "entropy_l"))
        assert "The release shows no positive count." in found.notes
        assert found.to_dict()["figures"]["released"]["tcap"] is None
        assert found.exposed() == ()
        assert any("(TCAP)" in line and line.split()[-2] == "-" for line in str(found).splitlines())


def test_notes_say_what_is_unusual() -> None:
    rng = np.random.default_rng(2)
    people = draw_people(rng, 40)
    found = audit(tabulated(people), noisy(people, rng, whole=False, signed=True), count="n")
    for words in ("Negative counts", "Fractional counts", "the original does not have"):
        assert any(words in note for note in found.notes)
    assert "name their column" in audit(tabulated(people), people.drop_duplicates()).notes[-1]


def test_the_sentence_and_the_table() -> None:
    people = pd.DataFrame({"sex": [*"fffmmmmx"], "job": ["cook"] * 4 + ["smith"] * 4})
    rows = [("f", "cook", 2), ("m", "smith", 4), ("x", "cook", 1), ("x", "smith", 1)]
    found = audit(cr.tabulate(people, "sex", "job"), pd.DataFrame(rows, columns=["sex", "job", "n"]), count="n")
    assert found.headline == (
        "The release reveals the 'job' of 6 of 8 people (75.0%): their group shows their value alone. "
        "None of them are shown alone as a count of 1. "
        "What an informed attacker infers is not computed: the mechanism of the release is not known; name the "
        "mechanism and its epsilon."
    )
    lines = str(found).splitlines()
    assert " ".join(lines[1:5]) == found.headline
    assert lines[-1] == CURATOR_NOTE
    assert [line.split()[-2:] for line in lines if "TCAP" in line] == [["85.7%", "100%"]]
    assert {line.split()[0] for line in found.details.splitlines() if line} >= set(FIGURES)
    exposed = found.exposed(top=1)
    assert [(cell.key, cell.shown, cell.records, cell.exposed, cell.released) for cell in exposed] == [
        ({"sex": "f"}, "cook", 3, 3, 2.0)
    ]
    assert [cell.exposed for cell in found.exposed()] == [3, 3]


def test_our_own_release_needs_no_count() -> None:
    pytest.importorskip("opendp")
    from cellrisk.publish.releasing import release

    levels = {"sex": ["f", "m"], "town": [f"t{town}" for town in range(6)], "job": ["j0", "j1", "j2"]}
    people = draw_people(np.random.default_rng(7), 50)
    table = cr.tabulate(people, KEYS, "job", levels=levels)
    released = release(table, cr.Geometric(epsilon=1.0))
    found = audit(table, released)
    agree(
        found, people, released.to_frame().rename(columns={"count": "n"}).astype({"sex": str, "town": str, "job": str})
    )
    exact = release(table, cr.Geometric(epsilon=60.0), dense=False)
    assert audit(table, exact).value() == near(table.attribute().exposed_share)


def test_wrong_names_are_refused() -> None:
    people = draw_people(np.random.default_rng(8), 20)
    found = audit(tabulated(people), people)
    with refused("word"):
        found.value("risk")
    with refused("word"):
        found.value("disco", of="synthetic")
    with refused("range"):
        found.exposed(top=0)
