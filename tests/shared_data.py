"""The authors' count tables, where they are; tests that need them are skipped, with the reason, where they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"

needs_shared_data = pytest.mark.skipif(
    not (FOLDER / "FFcount.csv").is_file(), reason="the authors' count tables (../shared/data) are not here"
)


def read(name: str) -> Any:
    """A count table as a frame; the files repeat the last column's name, which becomes n."""
    import pandas as pd

    frame = pd.read_csv(FOLDER / name, header=None, skiprows=1, skipinitialspace=True)
    header = (FOLDER / name).read_text().splitlines()[0].split(",")
    frame.columns = [*header[:-1], "n"]
    return frame
