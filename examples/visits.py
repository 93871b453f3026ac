"""A hospital publishes visits, of which one patient can have many: how many of them should count?

    python examples/visits.py [FOLDER]

Writes made-up visits (visits.csv, with a fixed seed) and a picture of what a bound on the visits of one patient costs
(cost.svg): a small bound drops records, a large one needs more noise.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cellrisk as cr

AREAS = ["north", "east", "south", "west", "centre", "hills"]
SEXES = ["female", "male"]
DIAGNOSES = ["heart", "lungs", "injury", "skin", "other"]
LEVELS = {"area": AREAS, "sex": SEXES, "diagnosis": DIAGNOSES}
EDGES = [0, 18, 40, 65, 110]
BOUNDS = range(1, 11)
EPSILON = 1.0


def make_visits(patients: int = 3000, seed: int = 5) -> pd.DataFrame:
    """Return one row for each visit: most patients come once or twice, a few come often, and mostly for one reason."""
    draw = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "patient": [f"P{number:04}" for number in range(patients)],
            "area": draw.choice(AREAS, patients, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05]),
            "age": draw.integers(1, 100, patients),
            "sex": draw.choice(SEXES, patients),
            "usual": draw.choice(DIAGNOSES, patients, p=[0.15, 0.2, 0.25, 0.1, 0.3]),
        }
    )
    visits = people.loc[np.repeat(np.arange(patients), 1 + draw.negative_binomial(0.7, 0.3, patients))]
    another = draw.random(len(visits)) < 0.3
    diagnosis = np.where(another, draw.choice(DIAGNOSES, len(visits)), visits["usual"])
    return visits.drop(columns="usual").assign(diagnosis=diagnosis).sample(frac=1, random_state=seed)


def tabulate(visits: pd.DataFrame, bound: int) -> cr.FrequencyTable:
    columns, bins = ["area", "age", "sex"], {"age": EDGES}
    return cr.tabulate(
        visits, columns, "diagnosis", bins=bins, levels=LEVELS, person="patient", contributions=bound, outside="drop"
    )


def find_costs(visits: pd.DataFrame) -> pd.DataFrame:
    """Return, for each bound, how far a count is off on average: because records are dropped, and because of noise."""
    rows = []
    for bound in BOUNDS:
        table = tabulate(visits, bound)
        counts = len(AREAS) * (len(EDGES) + 1) * len(SEXES) * len(DIAGNOSES)
        ratio = np.exp(-EPSILON / bound)  # of the probabilities of geometric noise
        noise = 2 * ratio / (1 - ratio**2)
        rows.append((bound, table.n_records, (len(visits) - table.n_records) / counts, noise))
    return pd.DataFrame(rows, columns=["bound", "kept", "dropped", "noise"])


def draw_costs(costs: pd.DataFrame, path: Path) -> None:
    """Draw the two errors of a count along the bound, one above the other."""
    plt.rcParams["svg.hashsalt"] = "visits"
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    axes.bar(costs["bound"], costs["noise"], color="#3b6ea8", label="noise added")
    axes.bar(costs["bound"], costs["dropped"], bottom=costs["noise"], color="#d9a441", label="records dropped")
    axes.set_xticks(costs["bound"])
    axes.set_xlabel("most visits of one patient that are kept")
    axes.set_ylabel("error of a count, on average")
    axes.set_title(f"What a bound costs at epsilon {EPSILON:g}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper center")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(folder: Path) -> None:
    """Write the visits and the picture, and print the costs."""
    visits = make_visits()
    visits.to_csv(folder / "visits.csv", index=False)
    costs = find_costs(visits)
    draw_costs(costs, folder / "cost.svg")
    print(f"{len(visits):,} visits of {visits['patient'].nunique():,} patients\n")
    print(costs.round({"dropped": 1, "noise": 1}).to_string(index=False))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
