"""A hospital publishes diagnoses by ward, age and sex. What do small cells give away, and what would help?

    python examples/hospital.py [FOLDER]

The counts are made up, with a fixed seed: eight diagnoses, six wards, seven age groups. Wards are specialised, so many
small cells hold one diagnosis alone, and whoever knows a neighbour's ward knows the diagnosis.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import cellrisk as cr

WARDS = ["cardiology", "oncology", "psychiatry", "surgery", "medicine", "geriatrics"]
AGES = ["18-29", "30-39", "40-49", "50-59", "60-69", "70-79", "80+"]
SEXES = ["female", "male"]
DIAGNOSES = ["heart", "cancer", "depression", "addiction", "injury", "infection", "stroke", "dementia"]
LEVELS = {"ward": WARDS, "age": AGES, "sex": SEXES, "diagnosis": DIAGNOSES}
LIMIT = 0.01
TYPICAL = [[0], [1], [2, 3], [4, 5], [0, 5, 6], [6, 7]]  # of each ward, by the place of the diagnosis


def make_counts(seed: int = 8) -> pd.DataFrame:
    """A table of counts, as a hospital's system exports it: one row for each ward, age, sex and diagnosis seen."""
    draw = np.random.default_rng(seed)
    rows = []
    for place, ward in enumerate(WARDS):
        weights = np.full(8, 0.15)
        weights[TYPICAL[place]] = 4.0
        for age in AGES:
            for sex in SEXES:
                patients = draw.poisson(draw.gamma(0.9, 9.0))
                counts = draw.multinomial(patients, draw.dirichlet(weights))
                rows += [(ward, age, sex, DIAGNOSES[k], int(n)) for k, n in enumerate(counts) if n]
    return pd.DataFrame(rows, columns=["ward", "age", "sex", "diagnosis", "patients"])


def main(folder: Path) -> None:
    """From the counts to a release, and a look at what that release did give away."""
    source = folder / "patients.csv"
    make_counts().to_csv(source, index=False)

    # Counts instead of records: name the column. Eight levels are declared, though a cell may hold one alone.
    table = cr.tabulate(str(source), ["ward", "age", "sex"], "diagnosis", levels=LEVELS, count="patients")
    profiles = table.profiles()
    print(f"The table: {table}.")
    print(f"{profiles.n_homogeneous} groups hold one diagnosis alone, {profiles.n_unique} a single patient.")

    # A strict limit. With eight levels chance is low, 2^-8, so nearly all of the risk is knowledge.
    choice = cr.choose(table, "geometric", max_risk=LIMIT)
    print(f"\n{choice.headline}")
    if choice.epsilon is None:
        return
    mechanism = cr.Geometric(epsilon=math.floor(choice.epsilon * 100) / 100)

    # A cell of one patient is homogeneous by necessity, so its own shares say little. Shrinkage borrows from the other
    # cells: it asks what cells of that size do on average, and so does not take one small cell at its word.
    found = cr.assess(table, mechanism, measures=["local", "shrinkage"], forms="tight", weights="records")
    local, shrinkage = (found.value(measure=name) for name in ("local", "shrinkage"))
    print(f"\nAt epsilon {mechanism.epsilon:g}: local risk {local:.4f}, shrinkage {shrinkage:.4f}.")

    # Who is at risk, and what would help? Ages in three groups; the same mechanism, the same patients.
    broad = {"age": {"18-49": AGES[:3], "50-69": AGES[3:5], "70+": AGES[5:]}}
    explained = cr.explain(table, mechanism, top=5, merge=broad)
    merged = next(each for each in explained.coarser if each.how == "as given")
    print(f"\n{explained.headline}")
    print(f"Ages in {merged.labels} groups would leave {merged.cells} groups and a risk of {merged.risk:.4f}.")

    # It helps, so that is what the board takes: the coarser table allows a larger epsilon at the same limit.
    coarse = make_counts()
    coarse["age"] = coarse["age"].map({old: new for new, group in broad["age"].items() for old in group})
    coarse.to_csv(folder / "coarse.csv", index=False)
    levels = {**LEVELS, "age": list(broad["age"])}
    table = cr.tabulate(
        str(folder / "coarse.csv"), ["ward", "age", "sex"], "diagnosis", levels=levels, count="patients"
    )
    again = cr.choose(table, "geometric", max_risk=LIMIT)
    print(f"\nWith these ages: {again.headline}")
    if again.epsilon is None:
        return

    # The release: whole numbers with noise on every count of the declared domain, from secure random bits. No seed.
    final = cr.Geometric(epsilon=math.floor(again.epsilon * 100) / 100)
    released = cr.release(table, final)
    released.save(folder / "released.csv", force=True)
    print(f"\n{released.headline}")

    # Afterwards, what did this one draw give away? It moves around the expectation from one draw to the next.
    audit = cr.audit(table, str(folder / "released.csv"), count="count")
    expected = cr.assess(table, final, measures="local").figures[0].people
    print(f"\n{audit.headline}")
    print(f"Expected: {expected.mean:.1f} patients, from {expected.low} to {expected.high} in 95% of releases.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
