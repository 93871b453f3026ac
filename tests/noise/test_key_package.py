"""Our rows beside what ONS's cell-key-perturbation publishes, run in the environment of the peers."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cellrisk.noise.perturbations import Perturbation, read_perturbation

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("key_package_script.py")
ABSENT = "cell-key-perturbation is not installed; run: rm -rf .venv-peers && make peers"


def publish(table: Path, threshold: int) -> list[tuple[int, int]]:
    """Counts, and what the package publishes of them; 0 for what it leaves out."""
    given = os.environ.get("CELLRISK_PEERS")
    python = Path(given) if given else REPOSITORY / ".venv-peers" / "bin" / "python"
    if not python.exists():
        pytest.skip(ABSENT)
    run = subprocess.run(
        [python, SCRIPT, "5", table, str(threshold)],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "No module named 'cell_key_perturbation'" in run.stderr:
        pytest.skip(ABSENT)
    assert run.returncode == 0, run.stderr
    return [(before, after or 0) for before, after in json.loads(run.stdout.splitlines()[-1])]


def possible(made: Perturbation, count: int) -> dict[int, float]:
    values, chances = made.row(count)
    return dict(zip(values.tolist(), chances.tolist(), strict=True))


def test_the_rule_of_the_package_is_ours_count_by_count(tmp_path: Path) -> None:
    rule = read_perturbation("cell-key")
    found = publish(tmp_path / "none.csv", 10)
    assert len(found) > 2000
    assert all(list(possible(rule, before)) == [after] for before, after in found)


@pytest.mark.slow
def test_a_table_of_keys_is_published_as_often_as_its_rows_say(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    path = tmp_path / "keys.csv"
    added = generator.integers(-2, 3, (750, 256))
    lines = [
        f"{count},{key},{max(int(added[count - 1, key]), -count)}" for count in range(1, 751) for key in range(256)
    ]
    path.write_text("pcv,ckey,pvalue\n" + "\n".join(lines) + "\n")
    for threshold, name in ((0, str(path)), (4, f"{path},suppress-below:4")):
        made = read_perturbation(name)
        seen: dict[int, Counter[int]] = {}
        for before, after in publish(path, threshold):
            seen.setdefault(before, Counter())[after] += 1
        for before, after in seen.items():
            row, number = possible(made, before), sum(after.values())
            assert set(after) <= set(row)
            for value, chance in row.items():
                assert abs(after[value] - number * chance) <= 5 * math.sqrt(number * chance) + 1
