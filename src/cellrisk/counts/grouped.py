"""What databases and clusters give: rows that are grouped and counted there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class GroupedRows(NamedTuple):
    """One row for each combination of raw values: the columns c0, c1, ... and n, how often it occurs."""

    batches: Any
    """An Arrow stream: a reader of batches, or anything with ``__arrow_c_stream__``."""
    kinds: Mapping[str, str] = {}
    """How the text of a column becomes labels, if it was no text in the source: "number" or "instant"."""
