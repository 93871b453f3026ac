"""Publishes one table by ONS's cell-key-perturbation and prints its counts as JSON. Started by test_key_package.py.

python key_package_script.py SEED PTABLE.csv THRESHOLD. A PTABLE that does not exist stands for the package's own rule.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def run(seed: int, ptable_path: str, threshold: int) -> list[list[Any]]:
    import numpy as np
    import pandas as pd
    from cell_key_perturbation.create_perturbed_table import create_perturbed_table
    from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule

    generator = np.random.default_rng(seed)
    sizes = np.concatenate([np.repeat(np.arange(1, 16), 160), [749, 750, 751, 800, 1003]])
    data = pd.DataFrame({"cell": np.repeat(np.arange(len(sizes)), sizes), "kind": "a"})
    data["record_key"] = generator.integers(0, 256, len(data))
    table = pd.read_csv(ptable_path) if Path(ptable_path).exists() else generate_ptable_10_5_rule()
    found = create_perturbed_table(data, table, [], ["cell", "kind"], "record_key", threshold=threshold)
    return [
        [int(before), None if pd.isna(after) else int(after)]
        for before, after in zip(found["pre_sdc_count"], found["count"], strict=True)
    ]


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(run(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
