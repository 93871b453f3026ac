"""What people have lost, with several records too, and what limits let through: against a count person by person."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism, mechanism
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.composition import compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import Ledger, Limit
from cellrisk.repeat.together.releasing import plan_loss
from tests.near import near
from tests.refusals import refused
from tests.repeat.ledger.conftest import LAPLACE, Where

GAUSSIAN = mechanism("gaussian-analytic", epsilon=0.5, delta=1e-6)


def add(ledger: Ledger, loss: Mechanism | Loss = LAPLACE, cohort: str = "everyone", **options: Any) -> None:
    ledger.add(attribute="y", quasi_identifiers=["age"], loss=loss, cohort=cohort, **options)


def test_a_release_past_the_limit_is_refused_and_not_written(where: Where) -> None:
    with where.open() as ledger:
        ledger.set_limit("everyone", epsilon=0.3)
        for _ in range(3):  # 0.1 + 0.1 + 0.1 is above 0.3 in binary
            add(ledger)
        for attempt in (lambda: add(ledger), lambda: ledger.check(LAPLACE)):
            with refused("limit", "got epsilon 0.4 in all; allowed: at most epsilon 0.3 for each person of 'everyone'"):
                attempt()
        assert len(ledger.entries(kind="release")) == 3
        assert ledger.state().limits.get("everyone") == Limit(cohort="everyone", epsilon=0.3)
        ledger.set_limit("everyone", epsilon=0.4)
        ledger.check(LAPLACE)
        add(ledger)
        assert ledger.spent("everyone").epsilon == 0.4
        assert [entry.kind for entry in ledger.entries()] == ["cohort", "limit", *["release"] * 3, "limit", "release"]


class People:
    """One person for each cohort who is in no cohort inside it, and what each has lost, by plain addition."""

    def __init__(self) -> None:
        self.covering: dict[str, set[str]] = {}
        self.lost: dict[str, Decimal] = {}
        self.limits: dict[str, Decimal] = {}

    def declare(self, name: str, part_of: str | None) -> None:
        self.covering[name] = {name} | (self.covering[part_of] if part_of else set())
        self.lost[name] = self.lost[part_of] if part_of else Decimal(0)

    def worst(self, cohort: str) -> Decimal:
        return max(self.lost[person] for person, covering in self.covering.items() if cohort in covering)

    def release(self, cohort: str, epsilon: Decimal) -> bool:
        after = {
            person: lost + (epsilon if cohort in self.covering[person] else 0) for person, lost in self.lost.items()
        }
        kept = all(
            after[person] <= limit
            for person, covering in self.covering.items()
            for name, limit in self.limits.items()
            if name in covering
        )
        if kept:
            self.lost = after
        return kept

    def limit(self, cohort: str, epsilon: Decimal) -> bool:
        kept = self.worst(cohort) <= epsilon
        if kept:
            self.limits[cohort] = epsilon
        return kept


@pytest.mark.parametrize("seed", range(3))
def test_limits_of_cohorts_inside_cohorts(tmp_path: Path, seed: int) -> None:
    draw, people, answers = random.Random(seed), People(), []
    with Ledger(tmp_path / "a.ledger", create=True) as ledger:
        for number in range(60):
            names = list(people.covering)
            epsilon = Decimal(draw.randint(1, 12)) / 10
            cohort = draw.choice(names) if names else ""
            kind = draw.choice(["declare", "limit", "limit", "release", "release", "release"]) if names else "declare"
            if kind == "declare" and len(names) < 8:
                part_of = draw.choice([None, *names])
                ledger.declare(f"c{number}", part_of=part_of)
                people.declare(f"c{number}", part_of)
                continue
            attempt: Callable[[], object]
            if kind == "limit":
                expected = people.limit(cohort, epsilon * 3)
                attempt = partial(ledger.set_limit, cohort, epsilon=float(epsilon * 3))
            else:
                expected = people.release(cohort, epsilon / 4)
                attempt = partial(add, ledger, Loss.pure(float(epsilon / 4)), cohort)
            answers.append(("limit" if kind == "limit" else "release", expected))
            if expected:
                attempt()
            else:
                with refused("limit"):
                    attempt()
        for name in people.covering:
            assert ledger.spent(name).epsilon == float(people.worst(name))
            assert sum(Decimal(str(loss.epsilon)) for loss in ledger.state().losses(name)) == people.lost[name]
    assert set(answers) == {(kind, answer) for kind in ("limit", "release") for answer in (True, False)}


def test_a_part_carries_the_releases_on_the_whole(in_file: Where) -> None:
    with in_file.open() as ledger:
        add(ledger, cohort="all")
        add(ledger, cohort="students", new_cohort=True, part_of="all")
        assert ledger.state().losses("students") == (Loss.of(LAPLACE),) * 2
        assert ledger.state().losses("all") == (Loss.of(LAPLACE),)
        assert ledger.spent("all").epsilon == ledger.spent("students").epsilon == 0.2
        with refused("limit", "cohort 'all'", "got epsilon 0.2"):
            ledger.set_limit("all", epsilon=0.1)
        ledger.set_limit("all", epsilon=0.25)
        with refused("limit"):
            add(ledger, cohort="new", new_cohort=True, part_of="students")
        assert list(ledger.state().declared) == ["all", "students"]


def test_a_limit_with_delta_is_kept_by_the_tightest_composition(in_file: Where) -> None:
    """Forty releases of 0.1: 4 by addition, far less at delta 1e-6."""
    total = compose([Loss.of(LAPLACE)] * 41, delta=1e-6).epsilon
    assert total < 4
    with in_file.open() as ledger:
        ledger.set_limit("everyone", epsilon=total * (1 - 1e-9), delta=1e-6)
        for _ in range(40):
            add(ledger)
        with refused("limit"):
            add(ledger)
        ledger.set_limit("everyone", epsilon=total, delta=1e-6)
        add(ledger)
        assert ledger.spent("everyone", delta=1e-6).epsilon == total
        assert ledger.spent("everyone", method="basic").epsilon == 4.1
        with refused("limit"):
            ledger.set_limit("everyone", epsilon=total, delta=1e-6, method="basic")


@pytest.mark.parametrize(
    ("limit", "loss", "reason"),
    [
        ({"epsilon": 5}, GAUSSIAN, "1 of 2 releases has a delta, and the limit has none"),
        ({"epsilon": 5}, Loss.zcdp(0.1), "1 of 2 releases has a delta, and the limit has none"),
        ({"epsilon": 5, "delta": 1e-9}, Loss.approximate(0.1, 1e-6), "no method"),
    ],
)
def test_a_loss_that_can_never_keep_the_limit_is_refused_with_its_reason(
    in_file: Where, limit: dict[str, Any], loss: Mechanism | Loss, reason: str
) -> None:
    with in_file.open() as ledger:
        add(ledger, LAPLACE)
        ledger.set_limit("everyone", **limit)
        for attempt in (lambda: add(ledger, loss), lambda: ledger.check(loss)):
            with pytest.raises(InvalidInput, match=f"limit of cohort 'everyone' cannot be kept: .*{reason}"):
                attempt()
        assert len(ledger.entries()) == 3


@pytest.mark.parametrize("limited", [True, False])
def test_a_person_has_losses_of_one_kind_of_neighbours(in_file: Where, limited: bool) -> None:
    """Else they have no sum, and what is spent could not be shown any more."""
    replaced = mechanism("laplace", epsilon=0.1, neighbours="replace")
    with in_file.open() as ledger:
        add(ledger, LAPLACE)
        if limited:
            ledger.set_limit("everyone", epsilon=5)
        for inside in ({}, {"cohort": "women", "new_cohort": True, "part_of": "everyone"}):
            with refused("mixed-neighbours"):
                add(ledger, replaced, **inside)
        add(ledger, replaced, cohort="others", new_cohort=True)


@pytest.mark.parametrize("losses", [[Loss.zcdp(0.1)], [Loss.approximate(0.5, 0.6)] * 2])
def test_losses_without_a_sum_are_listed(
    in_file: Where, losses: list[Loss], capsys: pytest.CaptureFixture[str]
) -> None:
    with in_file.open() as ledger:
        for loss in losses:
            add(ledger, loss)
        add(ledger, cohort="others", new_cohort=True)
    assert main(["ledger", "list", in_file.address]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in listed if line.startswith(("everyone", "others"))] == ["not", "0.1"]
    assert main(["ledger", "list", in_file.address, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cohorts"]) == 2


def test_the_people_who_have_lost_most_decide(in_file: Where, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a cohort inside another: in the list and in plans, as for limits."""
    first, second, third = (cr.Geometric(epsilon=epsilon) for epsilon in (0.25, 1.0, 0.5))
    with in_file.open() as ledger:
        add(ledger, first)
        add(ledger, second, "women", new_cohort=True, part_of="everyone")
    plan = ["ledger", "plan", in_file.address, "--cohort", "everyone", "--json"]

    def ask(*command: str) -> dict[str, Any]:
        assert main([*command]) == 0
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    spent, after = ([Loss.of(each) for each in losses] for losses in ((first, second), (first, second, third)))
    listed = ask("ledger", "list", in_file.address, "--json")["cohorts"]
    planned = ask(*plan, "--epsilon", "0.5", "--mechanism", "geometric")
    found = [*(cohort["ceiling"]["even_two"] for cohort in listed), planned["before"]["ceiling"]["even_two"]]
    assert found == [near(compose_ceiling(spent).even_two)] * 3
    assert planned["after"]["ceiling"]["even_two"] == near(compose_ceiling(after).even_two)
    assert planned["after"]["epsilon"] == near(1.75)
    largest = ask(*plan, "--max-ceiling", "0.9")["epsilon"]
    assert largest == near(ask(*plan[:4], "women", *plan[5:], "--max-ceiling", "0.9")["epsilon"])


def test_a_limit_that_what_is_spent_can_never_keep_is_refused(in_file: Where) -> None:
    with in_file.open() as ledger:
        add(ledger, GAUSSIAN)
        with refused("no-delta"):
            ledger.set_limit("everyone", epsilon=100)
        ledger.set_limit("everyone", epsilon=100, delta=1e-5)
        assert len(ledger.entries()) == 3


@pytest.mark.parametrize(
    ("options", "got"),
    [
        *(({"epsilon": epsilon}, "epsilon") for epsilon in (0, -1, float("nan"), float("inf"), True, "1")),
        *(({"epsilon": 1, "delta": delta}, "delta") for delta in (1, -0.1)),
        ({"epsilon": 1, "method": "simple"}, "method"),
    ],
)
def test_limits_that_make_no_sense(in_file: Where, options: dict[str, Any], got: str) -> None:
    with in_file.open() as ledger:
        with refused("word" if got == "method" else "range", got):
            ledger.set_limit("everyone", **options)
        assert ledger.entries() == ()


def test_an_unknown_cohort_is_refused_with_those_that_are_known(where: Where) -> None:
    with where.open() as ledger:
        add(ledger, cohort="employees")
        for attempt in (
            lambda: add(ledger, cohort="Employes"),
            lambda: ledger.set_limit("Employes", epsilon=1),
            lambda: ledger.check(LAPLACE, "Employes"),
            lambda: ledger.spent("Employes"),
            lambda: ledger.state().losses("Employes"),
            lambda: ledger.entries("Employes"),
            lambda: ledger.declare("students", part_of="Employes"),
        ):
            with refused("unknown-cohort", "allowed: employees; did you mean 'employees'?"):
                attempt()
        for name in ("employees", "EMPLOYEES", "employees"):
            with pytest.raises(InvalidInput, match="cohort 'employees' is known already"):
                add(ledger, cohort=name, new_cohort=True)
            with pytest.raises(InvalidInput, match="cohort 'employees' is known already"):
                ledger.declare(name)
        with pytest.raises(InvalidInput, match="part_of needs a new cohort"):
            add(ledger, part_of="employees")
        assert len(ledger.entries()) == 2


def test_many_cohorts_are_not_all_listed(in_file: Where) -> None:
    with in_file.open() as ledger:
        for number in range(25):
            ledger.declare(f"c{number:02}")
        with refused("unknown-cohort", "allowed: c00, ", "c19 and 5 more; new_cohort=True"):
            ledger.spent("nobody of them")


def test_nothing_is_spent_where_nothing_is_released(in_file: Where) -> None:
    with in_file.open() as ledger:
        with refused("unknown-cohort", "new_cohort"):
            ledger.spent("everyone")
        ledger.declare("everyone")
        assert ledger.spent("everyone").epsilon == 0
        assert ledger.state().losses("everyone") == ()
        assert ledger.state().limits.get("everyone") is None


def test_one_number_written_in_twenty_ways_spends_twenty_times(where: Where) -> None:
    tables = [{"qid": "sex", "where": {"region": "0" * zeros + "1"}, "epsilon": 1.0} for zeros in range(20)]
    loss = plan_loss(tables, "job")
    with where.open() as ledger:
        ledger.set_limit("everyone", epsilon=19.9)
        with refused("limit"):
            ledger.check(loss)
        ledger.set_limit("everyone", epsilon=20)
        ledger.check(loss)
        assert loss.epsilon == near(20.0)


@pytest.mark.parametrize(("second", "spent"), [('"01"', 2.0), ("2", 1.0)])
def test_conditions_that_choose_the_same_people_add_up(
    where: Where, second: str, spent: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people = pd.DataFrame({"region": [1, 2] * 6, "age": ["old", "young", "old"] * 4, "ill": ["no", "yes"] * 6})
    people.to_csv("people.csv", index=False)
    Path("set.toml").write_text(
        'source = "people.csv"\nsensitive = "ill"\nlevels = ["region=1|2", "age=old|young", "ill=no|yes"]\n'
        + "".join(f'[[table]]\nqid = ["age"]\nepsilon = 1.0\nwhere = {{region = {each}}}\n' for each in ("1", second)),
        encoding="utf-8",
    )
    assert main(["ledger", "create", where.address]) == 0
    assert main(["together", "release", "set.toml", "--output", "released", "--ledger", where.address]) == 0
    assert cr.Ledger(where.address).spent("everyone").epsilon == near(spent)


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
