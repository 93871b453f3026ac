"""Whoever stops a command after it has written for good is told what stands; before that, nothing stands."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellrisk.cli import main
from cellrisk.publish.releasing import files
from cellrisk.repeat.ledger import Ledger
from cellrisk.repeat.ledger.backends import Session
from cellrisk.repeat.ledger.staging import Draft

if os.name != "posix":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

ADD = ("ledger", "add", "l.db", "--attribute", "job", "--qid", "sex", "--epsilon", "0.1")
LEVELS = ("--levels", "sex=f|m", "--levels", "job=a|b")
RELEASE = ("release", "in.csv", "--qid", "sex", "--sensitive", "job", *LEVELS, "--epsilon", "1", "--output", "o.csv")
RECORDED = (*RELEASE, "--ledger", "l.db")
STANDS = "entry 2 of the ledger is written"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("sex,job\nf,a\nm,b\n")
    Ledger("l.db", create=True).close()
    return tmp_path


def stop(
    patch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool, when: Callable[[], bool] = lambda: True
) -> None:
    """A signal comes right before or after a function, at its first call of which it is true."""
    real, sent = getattr(owner, name), []

    def call(*given: Any, **named: Any) -> Any:
        if not after and not sent and when():
            sent.append(os.kill(os.getpid(), signal.SIGTERM))
        answer = real(*given, **named)
        if after and not sent and when():
            sent.append(os.kill(os.getpid(), signal.SIGTERM))
        return answer

    patch.setattr(owner, name, call)


@pytest.mark.parametrize(
    ("owner", "name", "after", "stands"),
    [
        (Session, "commit", False, False),
        (Session, "commit", True, True),
        (Draft, "seal", True, False),
        (Draft, "stage", True, False),
        (Draft, "publish", False, True),
        (Draft, "publish", True, True),
        (Draft, "close", True, True),
    ],
)
def test_a_recorded_release(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    owner: Any,
    name: str,
    after: bool,
    stands: bool,
) -> None:
    with monkeypatch.context() as patch:
        stop(patch, owner, name, after=after)
        assert main(RECORDED) == 130
    told = capsys.readouterr().err
    assert ("is written" in told, "its file is in its place" in told) == (stands, stands)
    with Ledger("l.db") as ledger:
        assert ledger.verify().ok
        assert len(ledger.entries()) == (2 if stands else 0)
    files = ["o.csv", "o.csv.json"] if stands else []
    assert sorted(os.listdir()) == ["in.csv", "l.db", *files]


def test_an_entry_that_is_added(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for after, told in ((False, "interrupted\n"), (True, f"interrupted; {STANDS}\n")):
        with monkeypatch.context() as patch:
            stop(patch, Session, "commit", after=after)
            assert main(ADD) == 130
        assert capsys.readouterr().err == f"cellrisk: {told}"
        with Ledger("l.db") as ledger:
            assert len(ledger.entries()) == (2 if after else 0)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_release_without_a_ledger(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], after: bool
) -> None:
    assert main(RELEASE) == 0
    before = Path("o.csv.json").stat().st_ino  # the same noise may be drawn twice, a file in place is another file
    capsys.readouterr()
    for name in ("make_last", "publish"):
        with monkeypatch.context() as patch:
            stop(patch, files, name, after=after)
            assert main([*RELEASE[:-3], "0.5", *RELEASE[-2:], "--force"]) == 130
        told = capsys.readouterr().err
        assert ("the release is in its place" in told) == (Path("o.csv.json").stat().st_ino != before)
        assert name == "publish" or "the release is in its place" in told
        assert sorted(os.listdir()) == ["in.csv", "l.db", "o.csv", "o.csv.json"]
        before = Path("o.csv.json").stat().st_ino
