"""The table that cellrisk ships to try things on: UCI Adult (Becker and Kohavi 1996, CC BY 4.0; see data/README.md)."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def adult_path() -> Path:
    """Where the Parquet file of Adult is, for the command line and for other tools.

    >>> adult_path().name
    'adult.parquet'
    """
    return Path(str(resources.files("cellrisk") / "data" / "adult.parquet"))


def adult() -> pa.Table:
    """Every row of Adult's training set: 11 columns, NULL where a value is missing.

    >>> table = adult()
    >>> table.num_rows, table["occupation"].null_count
    (32561, 1843)
    """
    import pyarrow.parquet as pq

    return pq.read_table(adult_path())


def adult_as_published() -> pa.Table:
    """Adult as the paper prepares it: rows with every value known (30,162), then those from the United States.

    Its quasi-identifiers are age, relationship, education, race, sex and hours-per-week, with age in bins of 5 and
    hours in bins of 10; income is sensitive.

    >>> adult_as_published().num_rows
    27504
    """
    import pyarrow.compute as pc

    complete = adult().drop_null()
    return complete.filter(pc.equal(complete["native-country"], "United-States"))
