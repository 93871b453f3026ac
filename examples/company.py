"""A company publishes the same staff survey every year. How long can it go on, and at which epsilon next?

    python examples/company.py [EMPTY FOLDER]

The staff and their answers are made up, with a fixed seed. Few people change their mind from year to year, so each
year's table speaks of the same people again: losses add up, and whoever keeps old tables can average the noise away.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import cellrisk as cr

LEVELS = {
    "site": ["north", "south", "harbour", "airport"],
    "grade": ["assistant", "officer", "senior", "manager", "director"],
    "sex": ["female", "male"],
    "tenure": ["0-2", "3-5", "6-10", "11+"],
    "intention": ["to stay", "to leave", "undecided"],
}
QUASI_IDENTIFIERS = ["site", "grade", "sex", "tenure"]
YEARLY = 0.3
TOTAL = 1.0
LARGEST_WORST_CASE = 0.85


def make_staff(seed: int = 4) -> pd.DataFrame:
    """Answers of 1,200 people; in most small groups they agree."""
    draw = np.random.default_rng(seed)
    shares = {"site": [0.5, 0.3, 0.15, 0.05], "grade": [0.35, 0.3, 0.2, 0.12, 0.03], "tenure": [0.4, 0.3, 0.2, 0.1]}
    staff = pd.DataFrame(
        {name: draw.choice(LEVELS[name], 1200, p=shares.get(name)) for name in QUASI_IDENTIFIERS},
    )
    answers = pd.Series(index=staff.index, dtype=object)
    for members in staff.groupby(QUASI_IDENTIFIERS).groups.values():
        answers[members] = draw.choice(LEVELS["intention"], len(members), p=draw.dirichlet([0.25, 0.1, 0.05]))
    return staff.assign(intention=answers)


def main(folder: Path) -> None:
    """Three years, the plan for the fourth, and what somebody who kept the old tables knows."""
    staff = folder / "staff.csv"
    make_staff().to_csv(staff, index=False)
    table = cr.tabulate(str(staff), QUASI_IDENTIFIERS, "intention", levels=LEVELS)
    yearly = cr.Geometric(epsilon=YEARLY)
    print(f"The survey: {table}.")
    print(cr.assess(table, yearly, measures="local").headline)

    # The works council agreed to a limit on what anybody may lose in all. The ledger holds it.
    with cr.Ledger(folder / "releases.db", create=True) as ledger:
        ledger.set_limit("everyone", epsilon=TOTAL)
        for year in (2023, 2024, 2025):
            ledger.check(yearly)
            released = cr.release(table, yearly)
            ledger.save(released, folder / f"survey-{year}.csv", purpose=f"staff survey {year}")
        spent = ledger.spent("everyone")
        print(f"\nAfter three years, {spent.epsilon:g} of {TOTAL:g} is spent.")

        # The fourth year at the same epsilon would exceed the limit. It is refused before any noise is drawn.
        try:
            ledger.check(yearly)
            print("This is not reached.")
        except cr.CellriskError as refusal:
            print(f"2026 at epsilon {YEARLY:g}: {refusal}.")
        print(f"The record is {'whole' if ledger.verify().ok else 'damaged'}.")

        # The past, as the ledger has it: each release with its loss.
        past = [
            cr.Step(entry.loss, entry.attribute, entry.quasi_identifiers) for entry in ledger.entries(kind="release")
        ]

    # What would a fourth release reveal with what is left? Each release is judged at the loss of all so far.
    left = cr.Geometric(epsilon=round(TOTAL - spent.epsilon, 6))
    planned = cr.assess_sequence(table, [*past, cr.Step(left, "intention")]).rows
    before, after = (row.overall.max_records for row in planned[-2:])
    print(f"\nWhat is left, spent once more, takes the overall risk by records from {before:.1%} to {after:.1%}.")

    # The reverse question: the largest epsilon that keeps the worst case for one record within what the council
    # accepts. The limit of the ledger holds as well, and here it is the stricter one.
    following = cr.largest_epsilon([step.loss for step in past], "geometric", max_ceiling=LARGEST_WORST_CASE)
    print(following.headline)

    # Beside the rule, an attacker at work: somebody keeps the three tables and takes the mean of each count. What they
    # gain in cells where all agree they lose in mixed ones, which now look mixed more often. The rule says more.
    kept = cr.average(table, yearly, releases=3, measures="local", forms="tight", weights="records").row()
    print(f"\nOne table exposes {kept.one:.2%} of the staff, the mean of three {kept.averaging:.2%}.")
    print(f"The rule of the added-up loss says {kept.rule:.2%}.")

    # A table that has hardly changed need not be published every year. Once, with all that may be spent:
    once = cr.assess(table, cr.Geometric(epsilon=TOTAL), measures="local").value()
    print(f"One release at epsilon {TOTAL:g}, and then none, would expose {once:.2%}.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
