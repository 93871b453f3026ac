"""`Release.load`: what `save` wrote comes back, whatever the table; files that are not as they were written do not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from tests.refusals import refused

pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")

ROWS = [("f", "02", "x"), ("f", "1", "y"), ("m", None, "y"), ("m", "02", "y")]
LEVELS = {"sex": ["f", "m"], "town": ["02", "1", "nan"], "job": ["x", "y"]}


def make(**asked: Any) -> cr.Release:
    frame = pd.DataFrame(ROWS, columns=["sex", "town", "job"])
    table = cr.tabulate(frame, ["sex", "town"], "job", levels=LEVELS, outside="drop")
    return cr.release(table, **{"epsilon": 1.0, "may_be_missing": "town", **asked})


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"clamp": False},
        {"dense": False},
        {"mechanism": "discrete-gaussian", "delta": 1e-6, "threshold": 2.5},
        {"neighbours": "replace", "exclude": [{"sex": "m", "town": "1"}]},
        {"parents": pd.DataFrame({"sex": ["f", "m"], "count": [2, 2]})},
    ],
)
def test_what_was_saved_is_loaded(ending: str, asked: dict[str, Any], tmp_path: Path) -> None:
    made = make(**asked)
    path = made.save(tmp_path / f"released.{ending}")
    found = cr.Release.load(path)
    assert found.to_dict() == made.to_dict()
    assert [*found.frame.columns] == [*made.frame.columns]
    for column in made.frame.columns:
        assert found.frame[column].tolist() == made.frame[column].tolist()
    for name in ("mechanism", "measurement", "composed", "headline", "statements", "not_covered", "ceiling", "labels"):
        assert getattr(found, name) == getattr(made, name), name
    assert found.adjusted == ("parents" in asked)
    again = found.save(tmp_path / f"again.{ending}")
    assert again.read_bytes() == path.read_bytes() or ending == "parquet"
    assert cr.Release.load(again).to_dict() == made.to_dict()


def test_what_is_not_as_it_was_written_is_refused(tmp_path: Path) -> None:
    path = make().save(tmp_path / "released.csv")
    description = Path(f"{path}.json")
    sound = description.read_text(encoding="utf-8")

    def refusal() -> str | None:
        with pytest.raises(InvalidInput) as caught:
            cr.Release.load(path)
        return caught.value.code

    description.write_text(sound.replace('"count": "count"', '"count": "town"'), encoding="utf-8")
    assert refusal() == "description"
    description.write_text(sound.replace('"epsilon": 1.0', '"epsilon": 0.5', 1), encoding="utf-8")
    cr.Release.load(path)  # a weaker guarantee than that of the mechanism may be stated, a stronger one may not
    description.write_text('"epsilon": 0.5'.join(sound.rsplit('"epsilon": 1.0', 2)), encoding="utf-8")
    assert refusal() == "description"
    description.write_text(sound, encoding="utf-8")
    path.write_bytes(path.read_bytes().replace(b"f", b"m", 1))
    assert refusal() == "changed"
    description.unlink()
    assert refusal() == "no-description"
    if hasattr(os, "mkfifo"):
        os.mkfifo(description)
        assert refusal() == "no-description"
    path.unlink()
    os.mkdir(path)
    description.unlink(missing_ok=True)
    description.write_text(sound, encoding="utf-8")
    assert refusal() == "unreadable"
    with refused("ending"):
        cr.Release.load(tmp_path / "released.txt")
