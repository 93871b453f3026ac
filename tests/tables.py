"""Tables made of their counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import cellrisk as cr


def from_counts(counts: Any, unused: int = 0) -> cr.FrequencyTable:
    """The table of ``y`` by ``q`` with a row of counts for each group; labels are v0, v1 and so on, some unused."""
    counts = np.asarray(counts)
    labels = [f"v{number}" for number in range(counts.shape[1] + unused)]
    groups, columns = np.nonzero(counts)
    rows = {"q": groups, "y": [labels[column] for column in columns], "n": counts[groups, columns]}
    return cr.tabulate(pd.DataFrame(rows), "q", "y", levels={"y": labels}, count="n")
