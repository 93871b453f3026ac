"""A statistics office publishes a census table. Which epsilon keeps its policy, and is the table still of use?

    python examples/statistics_office.py [FOLDER]

200,000 people are made up, with a fixed seed. Income and benefits are sensitive. The office's policy: on
average at most one person in ten may have such a value read off a published table.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import cellrisk as cr

PEOPLE = 200_000
LEVELS = {
    "region": [f"region {number:02d}" for number in range(1, 26)],
    "sex": ["female", "male"],
    "born": ["here", "abroad"],
    "education": ["primary", "lower secondary", "upper secondary", "tertiary"],
    "household": ["alone", "couple", "couple with children", "one parent", "other"],
    "income": ["lowest fifth", "second", "third", "fourth", "highest fifth"],
    "benefit": ["none", "housing", "disability", "unemployment"],
}
AGES = [0, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 110]


def make_people(seed: int = 1) -> pd.DataFrame:
    """A made-up census: income follows education and age, benefits are rare."""
    draw = np.random.default_rng(seed)
    age = np.minimum(draw.gamma(6.0, 7.0, PEOPLE).astype(int) + 1, 105)
    education = draw.choice(4, PEOPLE, p=[0.1, 0.25, 0.4, 0.25])
    education[age <= 15] = 0
    earns = 0.8 * education + 1.2 * np.exp(-(((age - 48) / 22.0) ** 2)) + draw.normal(0.0, 0.7, PEOPLE)
    income = np.where(age <= 15, 0, np.digitize(earns, np.quantile(earns[age > 15], [0.2, 0.4, 0.6, 0.8])))
    benefit = np.where(draw.random(PEOPLE) < np.where(age <= 15, 0.02, 0.1), draw.choice([1, 2, 3], PEOPLE), 0)
    codes = {
        "region": draw.choice(25, PEOPLE),
        "sex": draw.choice(2, PEOPLE),
        "born": draw.choice(2, PEOPLE, p=[0.88, 0.12]),
        "education": education,
        "household": draw.choice(5, PEOPLE, p=[0.25, 0.3, 0.3, 0.1, 0.05]),
        "income": income,
        "benefit": benefit,
    }
    return pd.DataFrame({"age": age, **{name: np.array(LEVELS[name])[code] for name, code in codes.items()}})


def main(folder: Path) -> None:
    """The whole way, from the records to the report."""
    people = folder / "people.parquet"
    make_people().to_parquet(people)

    # The domain is declared: levels by name, age by its edges. What exists must not depend on who was counted.
    table = cr.tabulate(
        str(people),
        quasi_identifiers=["region", "age", "sex", "born", "education", "household"],
        sensitive=["income", "benefit"],
        bins={"age": AGES},
        levels=LEVELS,
    )
    print(f"The table: {table}.")

    # What the raw table gives away. Without noise it must not leave the office.
    for name in table.sensitive:
        print(f"Without noise, {table.attribute(name).exposed_share:.1%} of people have their {name} exposed.")

    # The policy is the office's, not a command's. It must hold for every sensitive attribute, so the worst decides.
    policy = cr.Policy(max_risk=0.1)
    choice = cr.choose(table, "geometric", max_risk=policy.max_risk)
    print(f"\n{choice.headline}")
    if choice.epsilon is None:
        return

    # A board remembers 0.3 and not 0.31326. Rounding down is not safe by itself, since risk is not monotone: ask again.
    epsilon = math.floor(choice.epsilon * 10) / 10
    mechanism = cr.Geometric(epsilon=epsilon)
    breaches = policy.breaches(table, mechanism)
    print(f"\nAt epsilon {epsilon:g} the policy is {'broken: ' + '; '.join(breaches) if breaches else 'kept'}.")
    for looser in policy.breaches(table, cr.Geometric(epsilon=3 * epsilon)):
        print(f"At epsilon {3 * epsilon:.2g}: {looser}.")
    print(cr.assess(table, mechanism, measures="local").headline)

    # Is it still of use? Ten simulated releases of the whole declared domain, and their 1- and 2-way tables.
    useful = cr.utility(table, mechanism, ways=(1, 2), releases=10, sensitive="income")
    one, two = (float(useful.mean_tvd(way)[0]) for way in (1, 2))
    print(f"\nOf the records, {one:.2%} would have to move to put a 1-way table right, {two:.2%} a 2-way one.")

    # One file for the board: what is asked, what it costs, what else could be done, and where to sign.
    report = cr.report(
        table,
        "geometric",
        epsilon=epsilon,
        max_risk=policy.max_risk,
        title="Census table 7",
        organisation="Statistics office",
        source=people.name,
        releases=3,
    )
    report.save(folder / "report.html")
    print(f"The report for the board is report.html; its verdict: {report.verdict}.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
