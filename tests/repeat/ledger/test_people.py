"""Ledgers about people with several records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.unit import Unit
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from tests.refusals import refused

LEVELS = {"area": ["n", "s"], "ill": ["no", "yes"]}
FRAME = pd.DataFrame({"who": ["a", "a", "b", "c"], "area": ["n", "n", "s", "s"], "ill": ["no", "yes", "no", "no"]})


def tabulate(**options: Any) -> cr.FrequencyTable:
    return cr.tabulate(FRAME, "area", "ill", levels=LEVELS, outside="drop", **options)


@pytest.fixture
def ledger(tmp_path: Path) -> cr.Ledger:
    return cr.Ledger(tmp_path / "ledger.db", create=True)


def test_an_entry_books_the_guarantee_for_a_person(ledger: cr.Ledger, tmp_path: Path) -> None:
    made = cr.release(tabulate(person="who", contributions=3), "geometric", epsilon=0.5)
    ledger.save(made, tmp_path / "made.csv")
    gaussian = cr.DiscreteGaussian(0.5, delta=1e-6)
    ledger.save(cr.release(tabulate(person="who", contributions=2), gaussian), tmp_path / "more.csv")
    first, second = (entry for entry in ledger.entries() if entry.kind == "release")
    assert first.loss is not None
    assert second.loss is not None
    assert (first.loss.epsilon, first.loss.events[0].kind) == (0.5, "pure")
    assert second.loss.total_rho == pytest.approx(
        cr.DiscreteGaussian(0.5, delta=1e-6, unit=Unit(2)).rho, rel=1e-9, abs=0
    )
    assert first.to_dict()["loss"]["unit"] == {"kind": "person", "contributions": 3, "per_group": 3, "enforced": True}
    assert "one person. At most 3 records of a person are kept." in str(first)
    assert ledger.spent("everyone", delta=1e-6).epsilon <= 1.0 + 1e-9
    assert not ledger.verify().problems


@pytest.mark.parametrize("first", [{}, {"person": "who", "contributions": 2}], ids=["records", "people"])
def test_a_cohort_has_one_unit(ledger: cr.Ledger, tmp_path: Path, first: dict[str, Any]) -> None:
    second = {} if first else {"person": "who", "contributions": 2}
    ledger.save(cr.release(tabulate(**first), "geometric", epsilon=0.5), tmp_path / "made.csv")
    with refused("mixed-units"):
        ledger.save(cr.release(tabulate(**second), "geometric", epsilon=0.5), tmp_path / "more.csv")
    assert not (tmp_path / "more.csv").exists()
    with refused("mixed-units"):
        ledger.save(
            cr.release(tabulate(**second), "geometric", epsilon=0.5),
            tmp_path / "more.csv",
            cohort="women",
            new_cohort=True,
            part_of="everyone",
        )


def test_a_limit_holds_for_people(ledger: cr.Ledger, tmp_path: Path) -> None:
    made = cr.release(tabulate(person="who", contributions=3), "geometric", epsilon=0.5)
    ledger.save(made, tmp_path / "made.csv")
    ledger.set_limit("everyone", epsilon=0.8)
    with refused("limit"):
        ledger.save(made, tmp_path / "again.csv")


def test_the_guarantee_of_people_composes_as_one_that_is_only_stated() -> None:
    unit = Unit(3, enforced=True)
    losses = [cr.Loss.of(cr.Geometric(0.5, unit=unit))] * 2
    found, stated = (compose_ceiling(each, labels=2) for each in (losses, [cr.Loss.pure(0.5)] * 2))
    assert found.even_two == stated.even_two
    assert "person's records in these releases" in found.headline
    assert cr.Loss.join([cr.Loss.of(cr.Geometric(0.5, unit=Unit(2))), losses[0]]).unit == unit
    assert cr.Loss.from_dict(losses[0].to_dict()) == losses[0]


@pytest.mark.parametrize("mechanism", ["geometric", "discrete-gaussian"])
def test_the_command_releases_again_for_the_same_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mechanism: str
) -> None:
    """With a limit: the loss that is looked up beforehand is that of a person."""
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    place = str(tmp_path / "ledger.db")
    with cr.Ledger(place, create=True) as ledger:
        ledger.set_limit("everyone", epsilon=3.0, delta=1e-5)
    declared = ["--levels", "area=n|s", "--levels", "ill=no|yes", "--person", "who", "--contributions", "2"]
    made = ["--mechanism", mechanism, "--epsilon", "1", *(["--delta", "1e-6"] if mechanism != "geometric" else [])]
    asked = ["release", str(tmp_path / "people.csv"), "--qid", "area", "--sensitive", "ill", *declared, *made]
    for number in range(2):
        done = main([*asked, "--output", str(tmp_path / f"{number}.csv"), "--ledger", place])
        assert (done, capsys.readouterr().err) == (0, "")
    assert main(["ledger", "list", place]) == 0
    assert main(["ledger", "plan", place, "--epsilon", "0.5"]) == 0
