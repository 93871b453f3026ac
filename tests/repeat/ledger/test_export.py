"""Exports: the chain can be checked from JSON lines alone."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import mechanism
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.ledger import Ledger
from tests.repeat.ledger.conftest import LAPLACE
from tests.repeat.ledger.deaths import make_release

PURPOSE = 'for "them": it\'s\n- a # list, {really}; 100% 🏯 \u2028 yes\ttab'


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    folder = tmp_path_factory.mktemp("export")
    (folder / "released.csv").write_text("n\n1\n")
    with Ledger(folder / "releases.ledger", create=True) as ledger:
        ledger.set_limit("everyone", epsilon=7.25, delta=1e-5)
        ledger.add(
            attribute="income",
            quasi_identifiers=["age", "sex, or so"],
            loss=LAPLACE,
            purpose=PURPOSE,
            file=folder / "released.csv",
        )
        ledger.add(attribute=None, quasi_identifiers=["age"], loss=Loss.zcdp(1 / 3))
        ledger.add(attribute="job", quasi_identifiers=[], loss=mechanism("discrete-gaussian", epsilon=1.5, delta=1e-7))
        ledger.add(attribute="ill", quasi_identifiers=[], loss=mechanism("gaussian-pdp", epsilon=0.1, delta=1e-7))
        return ledger


def test_json_lines_can_be_verified_without_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    text, previous = ledger.export(tmp_path / "a.jsonl").read_text(encoding="utf-8"), None
    for line, entry in zip(text.split("\n")[:-1], ledger.entries(), strict=True):
        told = json.loads(line)
        number, before, digest = (told.pop(name) for name in ("number", "previous", "digest"))
        body = json.dumps(told, sort_keys=True, separators=(",", ":"))
        assert digest == hashlib.sha256(f"{number}\n{before}\n{body}".encode()).hexdigest() == entry.digest
        assert previous in (None, before)
        previous = digest


def test_exports_are_written_whole(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.jsonl"
    target.write_text("old")
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", lambda source, end: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(CellriskError, match="No space left"):
            ledger.export(target)
    assert (os.listdir(tmp_path), target.read_text()) == (["a.jsonl"], "old")
    assert ledger.export(target) == target
    assert "income" in target.read_text(encoding="utf-8")


def test_exports_of_another_form_are_refused(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(CellriskError, match=r"decides the form of an export; got a.xlsx; allowed: .jsonl"):
        ledger.export(tmp_path / "a.xlsx")
    assert os.listdir(tmp_path) == []


def test_an_export_replaces_nothing_that_was_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, output = tmp_path / "l.db", tmp_path / "released.csv"
    with Ledger(place, create=True) as ledger:
        ledger.save(make_release(), output)
        ledger.declare("others")
    (tmp_path / "link.csv").symlink_to(output)
    (tmp_path / "hard.csv").hardlink_to(output)
    kept = output.read_bytes()
    for name in ("released.csv", "link.csv", "hard.csv", "released.csv.json"):
        for cohort in ([], ["--cohort", "others"]):
            command = ["ledger", "export", str(place), "--output", str(tmp_path / name), *cohort]
            assert main(command) == 2, name
            assert "would replace" in capsys.readouterr().err
    assert output.read_bytes() == kept
    assert main(["ledger", "export", str(place), "--output", str(tmp_path / "entries.jsonl")]) == 0
