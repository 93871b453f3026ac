"""How long a command goes on after SIGTERM, sent at random moments of its work on large tables.

    .venv/bin/python benchmarks/interrupt.py [--moments 5] [assess curve ...]

A signal raises KeyboardInterrupt once the step of Python that is running has ended, and cancels a query of DuckDB at
once. On a busy machine everything takes longer; the processor time spent after the signal is printed beside it.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from run import made_cells

LOOKED_AT = 12.0
"""Processor seconds of a command from its start, in which signals are sent."""
LARGE = ("large.csv", "--qid", "cell", "--sensitive", "label", "--count", "n")
MANY = ("many.csv", *LARGE[1:])
LEVELS = (
    "--levels",
    "label=" + "|".join(f"v{k}" for k in range(7)),
    "--levels",
    "cell=" + "|".join(map(str, range(334))),
)
PEOPLE = {"age": 95, "education": 16, "sex": 2, "race": 5, "region": 50, "income": 3}
"""How many values each column of a file of a million people has."""
DETAILED = ("people.parquet", "--qid", "age,education,sex,race,region", "--sensitive", "income")
EVERY_VALUE = tuple(
    word for name, values in PEOPLE.items() for word in ("--levels", f"{name}=" + "|".join(map(str, range(values))))
)
SET = """
source = "people.parquet"
sensitive = "income"
bin = ["age=5"]
epsilon = 1.0
[[table]]
qid = ["age", "education", "sex"]
[[table]]
qid = ["age", "region"]
[[table]]
qid = ["education", "race", "region"]
"""
COMMANDS: dict[str, tuple[str, ...]] = {
    "assess": ("assess", *LARGE, "--epsilon", "0.001", "--mechanism", "gaussian-analytic", "--delta", "7e-7"),
    "assess, 1,000 labels": ("assess", *MANY, "--epsilon", "3"),
    "curve": ("curve", *LARGE),
    "assess, threshold": ("assess", *MANY, "--epsilon", "1", "--threshold", "1000.5"),
    "choose": ("choose", *LARGE, "--max-risk", "0.1", "--measure", "shrinkage"),
    "choose, certain": ("choose", *LARGE, "--max-certain", "0.01"),
    "choose, useful": ("choose", *LARGE, "--max-caused", "0.01", "--max-tvd", "0.1"),
    "simulate": ("simulate", *LARGE, "--epsilon", "1"),
    "explain": ("explain", *LARGE, "--epsilon", "0.001"),
    "report": ("report", *LARGE, "--epsilon", "1", "--output", "report.html"),
    "audit": ("audit", "large.csv", "released.csv", *LARGE[1:]),
    "together": ("together", "assess", "set.toml"),
    "ledger risk": ("ledger", "risk", "ledger.db", *LARGE),
    "average": ("average", *LARGE, "--epsilon", "0.5", "--releases", "12"),
    "inspect": ("inspect", *DETAILED),
    "utility": ("utility", *DETAILED, "--epsilon", "0.1,1"),
    "release": ("release", *DETAILED, *EVERY_VALUE, "--epsilon", "1", "--output", "detailed.csv", "--force"),
    "release, ledger": (
        *("release", *DETAILED, *EVERY_VALUE, "--epsilon", "1", "--output", "detailed.csv", "--force"),
        *("--ledger", "ledger.db"),
    ),
    "publish-risk": ("publish-risk", *LARGE, *LEVELS, "--epsilon", "1", "--risk-epsilon", "0.05"),
    "publish-risk, detailed": ("publish-risk", *DETAILED, *EVERY_VALUE, "--epsilon", "1", "--risk-epsilon", "0.05"),
}


def call(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-c", "import sys; from cellrisk.cli import main; sys.exit(main())", *arguments]


def make_tables() -> None:
    for name, n_levels in (("large", 7), ("many", 1000)):
        cells = made_cells(334, n_levels, 1_400_000, 104_087)
        row, level = np.nonzero(cells)
        frame = pd.DataFrame({"cell": row, "label": [f"v{k}" for k in level], "n": cells[row, level]})
        frame.to_csv(f"{name}.csv", index=False)
    draw, rows = np.random.default_rng(0), 1_000_000
    pd.DataFrame({name: draw.integers(0, values, rows) for name, values in PEOPLE.items()}).to_parquet("people.parquet")
    Path("set.toml").write_text(SET, encoding="utf-8")
    release = ("release", *LARGE, *LEVELS, "--epsilon", "1", "--output", "released.csv")
    subprocess.run(call((*release, "--ledger", "ledger.db", "--new-ledger")), check=True, capture_output=True)


def processor_seconds(process: int) -> float:
    """User and system time of a process so far; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def time_whole(arguments: tuple[str, ...]) -> float:
    """Processor seconds of the command left alone, or as many as are looked at."""
    with subprocess.Popen(call(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        spent = 0.0
        while process.poll() is None and spent < LOOKED_AT:
            spent = max(spent, processor_seconds(process.pid))
            time.sleep(0.02)
        if process.returncode is None:
            process.kill()
        elif process.returncode != 0 and process.stderr is not None:
            raise SystemExit(f"{' '.join(arguments)[:200]}: {process.stderr.read().decode()}")
    return spent


def stop_at(arguments: tuple[str, ...], moment: float) -> tuple[int, float, float] | None:
    """Code, and seconds and processor seconds after SIGTERM, sent once that much processor time was used.

    None where the command had ended before.
    """
    with subprocess.Popen(call(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while processor_seconds(process.pid) < moment:
                if process.poll() is not None:
                    return None
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            sent, before, last = time.perf_counter(), processor_seconds(process.pid), 0.0
            while process.poll() is None:
                last = max(last, processor_seconds(process.pid))
                time.sleep(0.01)
            return process.returncode, time.perf_counter() - sent, max(last - before, 0.0)
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="*", default=list(COMMANDS), metavar="COMMAND")
    parser.add_argument("--moments", type=int, default=5, help="signals for each command")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_tables()
        for name in asked.commands:
            whole = time_whole(COMMANDS[name])
            moments = [whole * (place + draw.random()) / asked.moments for place in range(asked.moments)]
            found = [stop for moment in moments if (stop := stop_at(COMMANDS[name], moment)) is not None]
            if not found:
                print(f"{name:<24} had ended before any signal", flush=True)
                continue
            codes = sorted({code for code, _, _ in found})
            waits, spent = sorted(wait for _, wait, _ in found), max(spent for _, _, spent in found)
            print(
                f"{name:<24} {len(found)} of {asked.moments} signals in time; ended after {waits[-1]:.1f} s at most "
                f"(median {waits[len(waits) // 2]:.1f} s), {spent:.1f} s of processor time; codes {codes}",
                flush=True,
            )


if __name__ == "__main__":
    main()
