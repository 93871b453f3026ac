"""The examples run, and what they say is so: their figures are computed here again, from the files that they wrote.

Nothing of cellrisk is used for that. Risks come from the definition, with the probabilities of the geometric noise.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.near import near

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = ("statistics_office", "hospital", "company", "visits")
AGES = [0, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 110]
CENSUS_COLUMNS = ["region", "age", "sex", "born", "education", "household"]
CENSUS_LEVELS = (("income", 5), ("benefit", 4))
WARD_COLUMNS = ["ward", "age", "sex"]
STAFF_COLUMNS = ["site", "grade", "sex", "tenure"]
SPAN = np.arange(-3000, 3001)  # of the noise; what lies outside is below 1e-100


@dataclass(frozen=True)
class Run:
    """What one example printed, and the folder that it wrote to."""

    text: str
    folder: Path

    def find(self, pattern: str) -> re.Match[str]:
        found = re.search(pattern, self.text)
        assert found is not None, f"{pattern}\n{self.text}"
        return found

    def number(self, pattern: str) -> float:
        return float(self.find(pattern)[1].replace(",", ""))


def run(name: str, folder: Path) -> Run:
    """Runs an example in a process of its own, in an empty folder; warnings are errors."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), str(folder)],
        check=False,
        cwd=elsewhere,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(elsewhere.iterdir())  # it writes into the folder that it was given, and nowhere else
    return Run(done.stdout, folder)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run("statistics_office", tmp_path_factory.mktemp("office"))


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run("hospital", tmp_path_factory.mktemp("hospital"))


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run("company", tmp_path_factory.mktemp("company"))


def count(frame: pd.DataFrame, by: list[str], sensitive: str, levels: int, weights: str | None = None) -> Any:
    """The counts of the cells that hold anybody, a column for each level; those that do not occur are zero."""
    values = frame[weights] if weights else pd.Series(1, frame.index)
    found = values.groupby([frame[name] for name in [*by, sensitive]], observed=True).sum().unstack(fill_value=0)
    padded = np.zeros((len(found), levels), dtype=np.int64)
    padded[:, : found.shape[1]] = found.to_numpy()
    return padded


def geometric(epsilon: float) -> Any:
    """The probabilities of the noise at `SPAN`."""
    ratio = np.exp(-epsilon)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(SPAN)


def vanish(noise: Any, largest: int, divisor: int = 1) -> Any:
    """The probability that each count from 0 to the largest is below a half, with the noise divided by a number."""
    return np.array([noise[(SPAN / divisor + m) < 0.5 - 1e-9].sum() for m in range(largest + 1)])


def expose(counts: Any, gone: Any) -> Any:
    """For each cell, the expected share of its people whose value stands alone: sum_k n_k/n s(n_k) prod_j q(n_j)."""
    q = gone[np.minimum(counts, len(gone) - 1)]
    total = np.zeros(len(counts))
    for k in range(counts.shape[1]):
        others = np.delete(q, k, axis=1).prod(axis=1)
        total += counts[:, k] / counts.sum(axis=1) * (1 - q[:, k]) * others
    return total


def share(counts: Any, epsilon: float) -> float:
    """The expected share of people whose value is read off."""
    risks = expose(counts, vanish(geometric(epsilon), min(int(counts.max()), 2000)))
    return float(counts.sum(axis=1) @ risks / counts.sum())


def test_every_example_is_run() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(NAMES)


@pytest.fixture(scope="module")
def census_people(office: Run) -> pd.DataFrame:
    people = pd.read_parquet(office.folder / "people.parquet")
    return people.assign(age=pd.cut(people["age"], AGES))


@pytest.fixture(scope="module")
def census(census_people: pd.DataFrame) -> dict[str, Any]:
    return {name: count(census_people, CENSUS_COLUMNS, name, levels) for name, levels in CENSUS_LEVELS}


@pytest.mark.slow
def test_the_table_and_what_it_exposes(office: Run, census: dict[str, Any]) -> None:
    cells = len(census["income"])
    assert office.number(r"200,000 records in ([\d,]+) groups") == cells
    for name, table in census.items():
        alone = (table > 0).sum(axis=1) == 1
        printed = office.number(rf"([\d.]+)% of people have their {name} exposed")
        assert printed == pytest.approx(100 * table[alone].sum() / table.sum(), abs=0.05001)


@pytest.mark.slow
def test_the_chosen_epsilon_is_the_largest_within_the_policy(office: Run, census: dict[str, Any]) -> None:
    """Rounded down to two significant digits."""
    chosen = office.number(r"Recommended: epsilon ([\d.]+) with geometric noise")
    assert max(share(table, chosen) for table in census.values()) <= 0.1
    assert max(share(table, chosen + 10 ** (np.floor(np.log10(chosen)) - 1)) for table in census.values()) > 0.1


@pytest.fixture(scope="module")
def patients(hospital: Run) -> Any:
    return count(pd.read_csv(hospital.folder / "patients.csv"), WARD_COLUMNS, "diagnosis", 8, "patients")


@pytest.fixture(scope="module")
def coarse(hospital: Run) -> Any:
    frame = pd.read_csv(hospital.folder / "patients.csv")
    broad = {"18": "a", "30": "a", "40": "a", "50": "b", "60": "b", "70": "c", "80": "c"}
    frame["age"] = frame["age"].str[:2].map(broad)
    return count(frame, WARD_COLUMNS, "diagnosis", 8, "patients")


@pytest.mark.slow
def test_the_cells_that_hold_one_diagnosis(hospital: Run, patients: Any) -> None:
    present, sizes = (patients > 0).sum(axis=1), patients.sum(axis=1)
    assert hospital.number(r"([\d,]+) groups hold one diagnosis alone") == (present == 1).sum()
    assert hospital.number(r"alone, ([\d,]+) a single patient") == (sizes == 1).sum()
    assert hospital.number(r"([\d,]+) records in") == patients.sum()


@pytest.mark.slow
def test_the_chosen_epsilons_are_the_largest_within_the_limit(hospital: Run, patients: Any, coarse: Any) -> None:
    before, after = (
        float(found) for found in re.findall(r"Recommended: epsilon ([\d.]+) with geometric noise", hospital.text)
    )
    for epsilon, table in ((before, patients), (after, coarse)):
        following = epsilon + 10 ** (np.floor(np.log10(epsilon)) - 1)  # epsilon has two significant digits
        assert share(table, epsilon) <= 0.01 < share(table, following)
    assert after > before


@pytest.mark.slow
def test_the_merge_lowers_the_risk(hospital: Run, patients: Any, coarse: Any) -> None:
    epsilon = hospital.number(r"At epsilon ([\d.]+): local risk")
    assert hospital.number(r"local risk ([\d.]+)") == pytest.approx(share(patients, epsilon), abs=5.01e-5)
    found = hospital.find(r"would leave (\d+) groups and a risk of ([\d.]+)\.\n")
    assert int(found[1]) == len(coarse)
    assert float(found[2]) == pytest.approx(share(coarse, epsilon), abs=5.01e-5)
    assert share(coarse, epsilon) < share(patients, epsilon)


@pytest.mark.slow
def test_the_audit_tells_what_the_release_shows(hospital: Run, coarse: Any) -> None:
    released = pd.read_csv(hospital.folder / "released.csv").set_index([*WARD_COLUMNS, "diagnosis"])["count"].unstack()
    frame = pd.read_csv(hospital.folder / "coarse.csv")
    true = frame.groupby([*WARD_COLUMNS, "diagnosis"])["patients"].sum().unstack(fill_value=0)
    shown = released.loc[true.index, true.columns] > 0
    alone = (released.loc[true.index] > 0).sum(axis=1) == 1
    exposed = int(true.where(shown, 0)[alone].sum().sum())
    assert hospital.number(r"reveals the 'diagnosis' of ([\d,]+) of") == exposed
    epsilon = hospital.number(r"private with epsilon ([\d.]+)[.,]")
    assert hospital.number(r"Expected: ([\d.]+) patients") == pytest.approx(
        coarse.sum() * share(coarse, epsilon), abs=0.0501
    )


@pytest.fixture(scope="module")
def staff(company: Run) -> Any:
    return count(pd.read_csv(company.folder / "staff.csv"), STAFF_COLUMNS, "intention", 3)


def test_three_years_are_spent_and_the_fourth_is_refused(company: Run) -> None:
    assert company.number(r"three years, ([\d.]+) of 1 is spent") == near(3 * 0.3)
    assert "limit" in company.find(r"2026 at epsilon 0.3: (.*)")[1]
    assert "This is not reached" not in company.text
    assert sorted(path.name for path in company.folder.glob("survey-*.csv")) == [
        f"survey-{year}.csv" for year in (2023, 2024, 2025)
    ]


def test_the_ledger_has_the_digests_of_the_files(company: Run) -> None:
    connection = sqlite3.connect(company.folder / "releases.db")
    try:
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        rows = [row for name in tables for row in connection.execute(f'select * from "{name}"')]
    finally:
        connection.close()
    kept = repr(rows)
    for year in (2023, 2024, 2025):
        released = company.folder / f"survey-{year}.csv"
        digest = hashlib.sha256(released.read_bytes()).hexdigest()
        assert digest in kept
        assert json.loads(Path(f"{released}.json").read_text(encoding="utf-8"))["sha256"] == digest


def test_the_risk_of_one_release(company: Run, staff: Any) -> None:
    assert company.number(r"One table exposes ([\d.]+)% of the staff") == pytest.approx(
        100 * share(staff, 0.3), abs=0.00501
    )
    assert company.number(r"and then none, would expose ([\d.]+)%") == pytest.approx(
        100 * share(staff, 1.0), abs=0.00501
    )


def test_the_plan_and_the_largest_epsilon(company: Run, staff: Any) -> None:
    """A cell keeps the largest of the risks that it had, each at the epsilons added up so far."""
    sizes, largest = staff.sum(axis=1), int(staff.max())

    def overall(*cumulative: float) -> float:
        risks = np.max([expose(staff, vanish(geometric(each), largest)) for each in cumulative], axis=0)
        return float(sizes @ risks / sizes.sum())

    found = company.find(r"the overall risk by records from ([\d.]+)% to ([\d.]+)%")
    assert float(found[1]) == pytest.approx(100 * overall(0.3, 0.6, 0.9), abs=0.0501)
    assert float(found[2]) == pytest.approx(100 * overall(0.3, 0.6, 0.9, 1.0), abs=0.0501)
    epsilon = company.number(r"Epsilon ([\d.]+) is the largest of geometric noise")
    limit = company.number(r"at ([\d.]+)% or below\.") / 100

    def worst_case(last: float) -> float:
        """Geometric noise has two likelihood ratios, e^epsilon and its inverse, with 1/(1 + a) and a/(1 + a)."""
        total = 0.0
        for signs in itertools.product((1, -1), repeat=8):
            scores = [0.0, 0.0]
            chance = 1.0
            for place, sign in enumerate(signs):
                a = math.exp(-(0.3, 0.3, 0.3, last)[place % 4])
                chance *= (1 if sign > 0 else a) / (1 + a)
                scores[place // 4] += sign * -math.log(a)
            total += chance * ((scores[0] + scores[1] > 0) + 0.5 * (scores[0] + scores[1] == 0))
        return total

    assert worst_case(epsilon) <= limit + 1e-9
    assert worst_case(1.01 * epsilon) > limit


def test_the_mean_of_three(company: Run, staff: Any) -> None:
    """The distribution of the sum of three noises, by convolution."""
    one, sizes = geometric(0.3), staff.sum(axis=1)
    three = np.convolve(np.convolve(one, one, "same"), one, "same")
    risks = expose(staff, vanish(three, int(staff.max()), divisor=3))
    found = company.find(r"exposes ([\d.]+)% of the staff, the mean of three ([\d.]+)%")
    assert float(found[1]) == pytest.approx(100 * share(staff, 0.3), abs=0.00501)
    assert float(found[2]) == pytest.approx(100 * float(sizes @ risks / sizes.sum()), abs=0.00501)
    assert company.number(r"added-up loss says ([\d.]+)%") == pytest.approx(100 * share(staff, 0.9), abs=0.00501)


def test_what_a_bound_on_visits_costs(tmp_path: Path) -> None:
    """Records that are dropped, and the mean of the noise's absolute value, of each bound."""
    made = run("visits", tmp_path)
    own = pd.read_csv(tmp_path / "visits.csv").groupby("patient").size()
    rows = [line.split() for line in made.text.splitlines()[3:]]
    assert [int(row[0]) for row in rows] == [*range(1, 11)]
    for bound, kept, dropped, noise in rows:
        left = int(own.clip(upper=int(bound)).sum())
        values = np.abs(SPAN) @ np.exp(-np.abs(SPAN) / int(bound)) / np.exp(-np.abs(SPAN) / int(bound)).sum()
        assert int(kept) == left
        assert float(dropped) == pytest.approx((own.sum() - left) / 360, rel=0, abs=0.05 + 1e-9)
        assert float(noise) == pytest.approx(values, rel=0, abs=0.05 + 1e-9)
    assert "<svg" in (tmp_path / "cost.svg").read_text()
