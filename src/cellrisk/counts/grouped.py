"""What databases and clusters give: rows that are grouped and counted there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

MOST_CELLS = 20_000_000
"""Combinations of the values of all columns in use that are brought into memory with their keys."""


class GroupedRows(NamedTuple):
    """One row for each combination of raw values: the columns c0, c1, ... and n, how often it occurs."""

    batches: Any
    """An Arrow stream: a reader of batches, or anything with ``__arrow_c_stream__``."""
    kinds: Mapping[str, str] = {}
    """How the text of a column becomes labels, if it was no text in the source: "number" or "instant"."""


def note_failures(batches: Iterable[Any], failures: list[BaseException]) -> Iterator[Any]:
    """The same batches. Whoever reads a stream of Arrow hides why it failed, so the reason is noted."""
    try:
        yield from batches
    except GeneratorExit:
        raise
    except BaseException as error:
        failures.append(error)
        raise
