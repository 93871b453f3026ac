"""A ledger of either kind books what a set of overlapping tables costs, whatever its conditions look like."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from tests.near import near
from tests.repeat.ledger.conftest import Where


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
