"""Runs the peers on two files of records and prints their numbers as JSON. Started by test_peers.py with their Python.

python peers_script.py ORIGINAL.csv RELEASED.csv SENSITIVE QID,QID
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any


def run(original_path: str, released_path: str, sensitive: str, quasi_identifiers: list[str]) -> dict[str, Any]:
    import pandas as pd
    from pycanon import anonymity
    from sdmetrics.single_table import CategoricalCAP, CategoricalZeroCAP, DisclosureProtection

    original, released = (pd.read_csv(path, dtype=str) for path in (original_path, released_path))
    fields = {"key_fields": quasi_identifiers, "sensitive_fields": [sensitive]}
    return {
        "cap": float(CategoricalCAP.compute(original, released, **fields)),
        "zero_cap": float(CategoricalZeroCAP.compute(original, released, **fields)),
        "protection": float(
            DisclosureProtection.compute(
                original, released, known_column_names=quasi_identifiers, sensitive_column_names=[sensitive]
            )
        ),
        **{
            f"{name}_{of}": float(value)
            for of, frame in (("original", original), ("released", released))
            for name, value in (
                ("k", anonymity.k_anonymity(frame, quasi_identifiers)),
                ("distinct_l", anonymity.l_diversity(frame, quasi_identifiers, [sensitive])),
                ("entropy_l", anonymity.entropy_l_diversity(frame, quasi_identifiers, [sensitive])),
            )
        },
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # SDMetrics calls its CAP metrics deprecated
    sys.stdout.write(json.dumps(run(*sys.argv[1:4], sys.argv[4].split(","))))
