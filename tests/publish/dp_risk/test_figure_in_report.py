"""The published figure in a report for the public: printed, paid for, and refused where it does not belong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from tests.near import near

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

LEVELS = {"sex": ["f", "m"], "job": ["cook", "smith"]}


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    records = pd.DataFrame({"sex": list("ffmmf"), "job": ["cook", "smith", "cook", "cook", "cook"]})
    return cr.tabulate(records, "sex", "job", levels=LEVELS, outside="drop")


def test_the_report_shows_the_figure_and_what_it_costs(table: cr.FrequencyTable) -> None:
    published = cr.publish_risk(table, epsilon=1.0, risk_epsilon=0.05)
    found = cr.report(table, epsilon=1.0, public=True, published=published)
    assert "How risky the release is" in found.html
    assert "costs epsilon 0.05 of its own" in found.html
    assert "The one figure above has noise" in found.html
    without = cr.report(table, epsilon=1.0, public=True)
    assert "How risky the release is" not in without.html


def test_a_figure_of_another_release_is_refused(table: cr.FrequencyTable) -> None:
    published = cr.publish_risk(table, epsilon=1.0, risk_epsilon=0.05)
    for more in ({"epsilon": 2.0}, {"epsilon": 1.0, "threshold": 2.5}, {"epsilon": 1.0, "neighbours": "replace"}):
        given: Any = more
        with pytest.raises(InvalidInput, match="speaks of another release"):
            cr.report(table, public=True, published=published, **given)
    with pytest.raises(InvalidInput, match="a report for the public"):
        cr.report(table, epsilon=1.0, published=published)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"sex": list("ffmmf"), "job": ["cook", "smith", "cook", "cook", "cook"]}).to_csv("p.csv", index=False)
    declared = [part for name, each in LEVELS.items() for part in ("--levels", f"{name}={'|'.join(each)}")]
    asked = ["report", "p.csv", "--qid", "sex", "--sensitive", "job", *declared, "--output", "report.html"]
    paid = ["--public", "--risk-epsilon", "0.05", "--ledger", "l.db"]
    assert main([*asked, "--epsilon", "1", *paid, "--new-ledger"]) == 0
    assert "Recorded in l.db as entry 2." in capsys.readouterr().out
    assert "costs epsilon 0.05 of its own" in Path("report.html").read_text()
    with cr.Ledger("l.db") as ledger:
        assert ledger.spent("everyone").epsilon == near(0.05)
        ledger.set_limit("everyone", epsilon=0.06)
    Path("report.html").unlink()
    for given, told in (
        (["--epsilon", "1", *paid], "exceed the limit"),
        (["--epsilon", "1", "--risk-epsilon", "0.05"], "requires a statement for the public"),
        (["--max-risk", "0.9", "--public", "--risk-epsilon", "0.05"], "not chosen from the data"),
        (["--epsilon", "1", "--public", "--ledger", "l.db"], "only with --public --risk-epsilon"),
    ):
        assert main([*asked, *given]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert told in err
        assert not Path("report.html").exists()
    with cr.Ledger("l.db") as ledger:
        assert ledger.spent("everyone").epsilon == near(0.05)
