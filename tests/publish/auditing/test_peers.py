"""The figures of other tools beside the tools themselves, run in an environment of their own.

SDMetrics' CategoricalCAP and CategoricalZeroCAP, and pyCANON's k-anonymity and distinct l-diversity, are the same
numbers. pyCANON's entropy l is ours cut to a whole number. synthpop and ARX are no Python: the example below is worked
by their formulas, by hand. docs/peers.md says where definitions differ, with the numbers of this example.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.publish.auditing import Audit, audit
from tests.near import near

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("peers_script.py")
ABSENT = "the peers are not installed; run: make peers"

COLUMNS = ["sex", "town", "job"]
ORIGINAL = pd.DataFrame(
    [
        *(("f", "north", "cook"),) * 3,
        *(("m", "north", "cook"),) * 1,
        *(("m", "north", "smith"),) * 3,
        *(("f", "south", "smith"),) * 1,
        *(("m", "south", "cook"),) * 2,
        *(("m", "south", "smith"),) * 2,
    ],
    columns=COLUMNS,
)
RELEASED = pd.DataFrame(
    [
        *(("f", "north", "cook"),) * 2,
        *(("m", "north", "smith"),) * 4,
        *(("m", "south", "cook"),) * 3,
        *(("m", "south", "smith"),) * 1,
        *(("f", "west", "cook"),) * 2,
    ],
    columns=COLUMNS,
)
KEYS = ["sex", "town"]


def peers() -> Path:
    """The Python that has the peers, or a skip that says how to get it."""
    given = os.environ.get("CELLRISK_PEERS")
    python = Path(given) if given else REPOSITORY / ".venv-peers" / "bin" / "python"
    if not python.exists():
        pytest.skip(ABSENT)
    return python


def run_peers(original: pd.DataFrame, released: pd.DataFrame, folder: Path) -> dict[str, float]:
    python = peers()
    for name, frame in (("original.csv", original), ("released.csv", released)):
        frame.to_csv(folder / name, index=False)
    run = subprocess.run(
        [python, SCRIPT, folder / "original.csv", folder / "released.csv", "job", ",".join(KEYS)],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout))


def compare(found: Audit, theirs: dict[str, float]) -> None:
    assert found.value("cap") == pytest.approx(theirs["cap"], abs=1e-12)
    assert found.value("zero_cap") == pytest.approx(theirs["zero_cap"], abs=1e-12)
    levels = found.original.attribute().n_levels
    assert theirs["protection"] == near(min(found.value("cap") / (1 - 1 / levels), 1))
    for of in ("original", "released"):
        assert found.value("k", of) == theirs[f"k_{of}"]
        assert found.value("distinct_l", of) == theirs[f"distinct_l_{of}"]
        # cut to a whole number, and by rounding one too low where the true one is whole
        assert theirs[f"entropy_l_{of}"] in {
            math.floor(found.value("entropy_l", of) - error) for error in (1e-9, -1e-9)
        }


def draw(rng: np.random.Generator, records: int, towns: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], records),
            "town": rng.choice([f"t{town}" for town in range(towns)], records),
            "job": rng.choice(["cook", "smith", "weaver"], records, p=[0.6, 0.3, 0.1]),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "towns"), [(0, 40), (1, 3)])
def test_the_peers_give_the_same_numbers(seed: int, towns: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    original, released = draw(rng, 300, towns), draw(rng, 200, towns + 5)
    found = audit(cr.tabulate(original, KEYS, "job"), released)
    compare(found, run_peers(original, released, tmp_path))
    if towns == 3:
        assert found.value("entropy_l", "original") % 1 > 0.01, "so that cutting it can be seen"


@pytest.mark.slow
def test_entropy_l_is_not_cut_to_a_whole_number(tmp_path: Path) -> None:
    people = ORIGINAL.iloc[3:7]  # one cell of 1 and 3
    even = people.iloc[:2]  # and one of 1 and 1
    found = audit(cr.tabulate(people, KEYS, "job"), even)
    assert found.value("entropy_l", "original") == near(4 / 27**0.25)
    assert f"{found.value('entropy_l', 'original'):.4f}" == "1.7548"
    assert found.value("entropy_l") == near(2.0)
    theirs = run_peers(people, even, tmp_path)
    assert (theirs["entropy_l_original"], theirs["entropy_l_released"]) == (1.0, 1.0)


@pytest.mark.slow
def test_the_example_by_the_peers(tmp_path: Path) -> None:
    theirs = run_peers(ORIGINAL, RELEASED, tmp_path)
    compare(audit(cr.tabulate(ORIGINAL, KEYS, "job"), RELEASED), theirs)
    assert theirs == near(
        {
            "cap": 3 / 11,
            "zero_cap": 4 / 12,
            "protection": 6 / 11,
            "k_original": 1,
            "distinct_l_original": 1,
            "entropy_l_original": 1,
        }
        | {"k_released": 2, "distinct_l_released": 1, "entropy_l_released": 1}
    )


def test_the_example_by_hand() -> None:
    """Cells (cook, smith) original -> released: f north (3, 0) -> (2, 0); m north (1, 3) -> (0, 4); f south (0, 1) ->
    nothing; m south (2, 2) -> (3, 1); f west nobody -> (2, 0)."""
    found = audit(cr.tabulate(ORIGINAL, KEYS, "job"), RELEASED)
    expected = {
        "disco": 6 / 12,  # three women cooks and three men smiths of the north
        "dis": 7 / 12,  # and the man who is a cook
        "tcap": 6 / 7,
        "repu": 0.0,
        "cap": 1 - (3 + 3 + 2 * 0.75 + 2 * 0.25) / 11,
        "zero_cap": 1 - 8 / 12,
        "plurality": (3 + 3 + 2) / 12,
        "prosecutor": 1 / 2,
        "marketer": 4 / 12,
    }
    assert {name: found.value(name) for name in expected} == near(expected)
    assert found.value("prosecutor", "original") == 1.0
    assert found.value("marketer", "original") == 4 / 12
    assert [number for number in range(1, 9) if found.value(f"scenario_{number}")] == [1, 4, 5, 8]
