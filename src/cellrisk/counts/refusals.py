"""Refusals in place of what engines, drivers and readers say: their exceptions may quote the data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cellrisk.errors import CellriskError, InvalidInput

LONGEST_LINE = 2_000_000
"""Bytes of a line of text, or of a field over several lines, that DuckDB reads."""
LIBRARIES = ("duckdb", "_duckdb", "pyarrow")
OUT_OF_MEMORY = "the table does not fit into memory and the temporary folder"
CSV = "the CSV source cannot be read"
LINE = r"CSV Error on Line: (\d+).*"
Cause = tuple[str, str, str, str]
"""A pattern of an exception's kind and text, what is wrong, what to do, and a code. Only numbers are repeated."""
CORRECT, CHECK_QUOTES = "correct that line", "check its line ends and quotation marks"
CAUSES: tuple[Cause, ...] = (
    ("MemoryError|OutOfMemory|No space left", OUT_OF_MEMORY, "use fewer or coarser quasi-identifiers", "out-of-memory"),
    (
        "CSV Parser state machine",
        f"{CSV}: line endings are mixed, or a quotation mark misplaced",
        "write it again",
        "damaged",
    ),
    ("Parallel CSV Reader", f"{CSV}: a line is too long, or a quotation mark is never closed", CHECK_QUOTES, "damaged"),
    (rf"{LINE}Columns: (\d+) Found: (\d+)", CSV + ": line {0} has {2} fields, the header has {1}", CORRECT, "damaged"),
    (f"{LINE}Maximum line size", CSV + ": line {0} is longer than 2 MB", "leave that column out", "too-long"),
    (f"{LINE}nterminated quote", CSV + ": a quotation mark in line {0} is never closed", CORRECT, "damaged"),
    (f"{LINE}[uU]nicode", CSV + ": line {0} is not UTF-8 text", "save the file as UTF-8", "encoding"),
    (LINE, CSV + ": line {0}", "correct that line, or its quotation marks", "damaged"),
)


def find_cause(text: str, causes: Sequence[Cause]) -> InvalidInput | None:
    """Return the refusal of the first cause that a text names; None if it names none of them."""
    for pattern, what, fix, code in causes:
        match = re.search(pattern, text, re.DOTALL)
        if match:
            numbers = (f"{int(group):,}" for group in match.groups() if group)
            return InvalidInput(what.format(*numbers), fix=fix, code=code)
    return None


def redact(error: BaseException) -> InvalidInput:
    """Return what can be said of an exception of DuckDB without its text.

    >>> failure = ValueError("CSV Error on Line: 3 Original Line: a,b,c Expected Number of Columns: 2 Found: 3")
    >>> print(redact(failure))
    the CSV source cannot be read: line 3 has 3 fields, the header has 2; correct that line
    """
    kind = type(error).__name__
    return find_cause(f"{kind}: {error}", CAUSES) or InvalidInput(
        f"the engine could not read the source ({kind})", fix="check that the file is whole", code="unreadable"
    )


def comes_from(error: BaseException, libraries: Sequence[str]) -> bool:
    """Return whether a library defines the exception's class; compares names, so no library is loaded."""
    return any(kind.__module__.partition(".")[0] in libraries for kind in type(error).__mro__)


@contextmanager
def redacted() -> Iterator[None]:
    """Turn an engine's exception into one line without data."""
    try:
        yield
    except CellriskError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"the source or the temporary folder cannot be used: {reason}", code="unreadable") from None
    except Exception as error:
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # Ctrl-C, as DuckDB says it
            raise KeyboardInterrupt from None
        if not isinstance(error, MemoryError) and not comes_from(error, LIBRARIES):
            raise
        raise redact(error) from None
