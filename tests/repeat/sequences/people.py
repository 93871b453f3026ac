"""Small tables for the tests of sequences, and their releases told twice: to the package and to the oracle."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pandas as pd

import cellrisk as cr
from cellrisk.repeat.sequences import Step
from tests.repeat.sequences.oracle import Told

QIDS = ("age", "town", "sex")
SENSITIVE = ("job", "pay", "ill")


def make_people(many: int = 60, seed: int = 3) -> pd.DataFrame:
    """Records of three quasi-identifiers and three skewed sensitive attributes of 3, 2 and 2 levels."""
    draw = random.Random(seed)
    rows = []
    for _ in range(many):
        town, sex = draw.choice("uvw"), draw.choice("fm")
        job = draw.choices("abc", [6, 3, 1] if sex == "f" else [1, 1, 8])[0]
        pay = draw.choices(["high", "low"], [1, 4] if town == "u" else [3, 1])[0]
        rows.append(
            {
                "age": draw.choice(["old", "young"]),
                "town": town,
                "sex": sex,
                "job": job,
                "pay": pay,
                "ill": draw.choices(["no", "yes"], [9, 1])[0],
            }
        )
    return pd.DataFrame(rows)


def tabulate(people: pd.DataFrame, quasi: Sequence[str] = QIDS) -> cr.FrequencyTable:
    return cr.tabulate(people, list(quasi), list(SENSITIVE))


def make_steps(told: Sequence[Told]) -> list[Step]:
    return [Step(cr.Laplace(epsilon=each.epsilon), each.attribute, each.quasi_identifiers) for each in told]


def tell(text: str) -> list[Told]:
    """Releases as "0.5 job age town; 0.2 - sex": epsilon, attribute or -, quasi-identifiers (none named: all)."""
    found = []
    for part in text.split(";"):
        epsilon, attribute, *quasi = part.split()
        found.append(Told(float(epsilon), None if attribute == "-" else attribute, tuple(quasi) or QIDS))
    return found
