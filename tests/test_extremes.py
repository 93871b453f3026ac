"""Numbers at the ends of floating point and files made to hurt are answered, or refused in one line."""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.noise.mechanisms import MECHANISMS
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.loss import Loss

Capture = pytest.CaptureFixture[str]
BASE = ("people.csv", "--qid", "sex", "--sensitive", "job")
LEVELS = ("--levels", "sex=f|m", "--levels", "job=cook|smith")
MANY_DIGITS = ("9" * 400, "1" + "0" * 5000)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,job\n" + "f,cook\nf,smith\nm,cook\n" * 4)
    return tmp_path


def check(capsys: Capture, *command: str) -> int:
    """The exit code of a command, which is an answer or a refusal of one line."""
    code = main(list(command))
    said = capsys.readouterr().err
    assert code in (0, 2, 3), (command, said)
    assert len(said.splitlines()) == (code != 0), (command, said)
    return code


ENDS = [("1", "1e-300"), ("1e-300", "1e-300"), ("1e-300", "0.9"), ("1e300", "1e-6"), ("100", "0.9")]


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_epsilon_and_delta(name: str, capsys: Capture) -> None:
    codes = []
    for epsilon, delta in ENDS:
        more = () if MECHANISMS[name].pure else ("--delta", delta)
        codes.append(check(capsys, "assess", *BASE, "--mechanism", name, "--epsilon", epsilon, *more))
    for epsilon in ("0.1,1", "1e-300,1"):
        more = () if MECHANISMS[name].pure else ("--delta", "1e-300")
        codes.append(check(capsys, "curve", *BASE, "--mechanism", name, "--epsilon", epsilon, *more))
    for threshold in ("1e15", "1e300", "1e-300"):
        check(capsys, "assess", *BASE, "--mechanism", name, "--epsilon", "1", "--threshold", threshold, *more)
    assert 0 in codes


@pytest.mark.parametrize("name", MECHANISMS)
def test_tiny_losses_compose(name: str) -> None:
    pytest.importorskip("dp_accounting", reason="the extra 'ledger' is not installed")
    more = {} if MECHANISMS[name].pure else {"delta": 1e-6}
    with suppress(cr.CellriskError):
        found = compose_ceiling([Loss.of(MECHANISMS[name](1e-300, **more))] * 3)
        assert 0.5 <= found.even_two < 0.501


def test_the_limit_of_a_tiny_delta_hides_everything() -> None:
    noise = cr.DiscreteGaussian(epsilon=1.0, delta=1e-300).limit_noise
    assert float(noise.cdf(0)) == pytest.approx(0.5, abs=1e-12)
    assert cr.DiscreteGaussian(epsilon=1.0, delta=1e-300).scale == pytest.approx(math.sqrt(2 * 690), rel=0.01, abs=0)


@pytest.mark.parametrize("digits", MANY_DIGITS)
def test_whole_numbers_of_many_digits_in_files(digits: str, capsys: Capture) -> None:
    start = 'source = "people.csv"\nsensitive = "job"\n'
    tops = [
        f"epsilon = {digits}",
        f"epsilon = 1.0\ndelta = {digits}",
        f"epsilon = 1.0\nlevels = {{ sex = [{digits}] }}",
    ]
    tops += [f"epsilon = 1.0\nbin = {{ sex = [{digits}] }}", f"epsilon = 1.0\nthreshold = {digits}"]
    tables = [f"where = {{ sex = {digits} }}", f"where = {{ sex = {{ from = {digits} }} }}", f"epsilon = {digits}"]
    texts = [f'{top}\n[[table]]\nqid = ["sex"]\n' for top in tops]
    texts += [f'epsilon = 1.0\n[[table]]\nqid = ["sex"]\n{table}\n' for table in tables]
    for place, text in enumerate(texts):
        Path("set.toml").write_text(start + text)
        check(capsys, "together", "assess", "set.toml")
        if "where" in text:
            check(capsys, "together", "release", "set.toml", "--output", f"released-{place}")
    for text in ("epsilon = {}", "delta = {}", "[policy]\nmax-risk = {}", "[policy]\nmax-epsilon = {}", "missing = {}"):
        Path("settings.toml").write_text(text.format(digits))
        check(capsys, "assess", *BASE, "--config", "settings.toml")
    Path("meta.json").write_text(f'{{"columns": [{{"name": "sex", "minimum": {digits}, "maximum": {digits}}}]}}')
    check(capsys, "assess", *BASE, "--epsilon", "1", "--metadata", "meta.json")


HOSTILE: tuple[Any, ...] = ("@", "x", None, [], {}, -1, 0, 1e308, float("nan"), float("inf"), True, "1" * 400)


def test_a_hostile_release_with_the_right_digest(capsys: Capture) -> None:
    """Every value of the description is replaced by every kind of value, and the file by other bytes."""
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    table = cr.tabulate(
        "people.csv", "sex", "job", levels={"sex": ["f", "m"], "job": ["cook", "smith"]}, outside="drop"
    )
    cr.release(table, cr.Geometric(epsilon=1.0), clamp=False).save("r.csv")
    good, content = json.loads(Path("r.csv.json").read_text()), Path("r.csv").read_bytes()
    found = [{**good, key: value} for key in good if key not in ("file", "sha256") for value in HOSTILE[:3]]
    for part in ("mechanism", "noise", "labels"):
        found += [{**good, part: {**good[part], key: value}} for key in good[part] for value in HOSTILE]
    path = "r.csv"

    def report(described: dict[str, Any]) -> None:
        Path(f"{path}.json").write_text(json.dumps(described).replace('"@"', MANY_DIGITS[0]))
        with suppress(cr.CellriskError):
            cr.Release.load(path)
            cr.audit(table, path)

    for described in found:
        report(described)
    for other in (
        b"",
        b"\xff\xfe",
        b"sex\n\n",
        b"sex,job,count\nf,cook,x\n",
        b"a,b\n1\n1,2,3\n",
        content * 9,
        b"n\n" + b"9" * 400,
    ):
        for path in ("r.csv", "r.parquet"):
            Path(path).write_bytes(other)
            report({**good, "file": path, "sha256": hashlib.sha256(other).hexdigest()})
    path = "r.csv"
    Path(path).write_bytes(content)
    report({**good, "mechanism": {**good["mechanism"], "epsilon": "@"}})
    with pytest.raises(cr.CellriskError) as refusal:
        cr.Release.load(path)
    assert refusal.value.code == "description"
