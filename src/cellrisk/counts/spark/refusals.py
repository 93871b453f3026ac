"""Refusals in place of what Spark says, which quotes records."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from cellrisk.counts.refusals import CSV, Cause, comes_from, find_cause
from cellrisk.errors import CellriskError, InvalidInput

CHECK_SPARK = "check SPARK_REMOTE, that Spark runs and that it has enough memory, and try again"
SPARK = ("grpc", "py4j", "pyspark")


@contextmanager
def spark_refusals() -> Iterator[None]:
    """Turn Spark's exceptions into one line without data."""
    try:
        yield
    except CellriskError:
        raise
    except Exception as error:
        if not comes_from_spark(error):
            raise
        raise explain_spark_failure(error) from None


def comes_from_spark(error: Exception) -> bool:
    """Return whether an exception is of Spark's kinds, or of any kind but raised below Spark's code: a thread pool of
    its client that has gone together with the server raises RuntimeError."""
    return comes_from(error, SPARK) or any(
        str(frame.f_globals.get("__name__", "")).partition(".")[0] in SPARK
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def explain_spark_failure(error: Exception) -> InvalidInput:
    """Return what can be said of Spark's exception: the first known cause that it or one before it names."""
    texts: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    known = find_cause("\n".join(texts), CAUSES)
    if known is not None:
        return known
    if not comes_from(error, SPARK):
        return InvalidInput(f"the connection to Spark failed ({type(error).__name__})", fix=CHECK_SPARK, code="spark")
    condition = re.match(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))  # further on it may be a value that Spark quotes
    why = condition[1] if condition else type(error).__name__
    return InvalidInput(f"Spark could not read the source ({why})", fix="check that the files are whole", code="spark")


CAUSES: tuple[Cause, ...] = (
    (
        "No space left on device|OutOfMemoryError|Java heap space",
        "the table does not fit into Spark's memory and scratch folder",
        "use fewer or coarser quasi-identifiers, or give Spark more memory (SPARK_DRIVER_MEMORY) and disk",
        "out-of-memory",
    ),
    (
        "FILE_NOT_EXIST|FileNotFoundException|PATH_NOT_FOUND",
        "there is no such file, or it vanished while it was read",
        "check the path, and try again when the files are complete",
        "no-file",
    ),
    (
        "CSV header does not conform|CSV header: ",
        f"{CSV}: its files have different headers",
        "read them one by one",
        "no-header",
    ),
    (
        "MALFORMED_CSV|MALFORMED_RECORD|TextParsingException",
        f"{CSV}: it has lines with more or fewer fields than the header, or quotation marks out of place",
        "correct those lines",
        "damaged",
    ),
    (
        r"PARQUET_TYPE|PARQUET_COLUMN_DATA_TYPE|Illegal Parquet|SchemaColumnConvert|\(NANOS|CANNOT_MERGE_SCHEMAS",
        "the Parquet source has types that Spark does not read, such as nanoseconds, or that do not fit together",
        "write it with the same types and microseconds, or as text",
        "column-type",
    ),
    ("FOOTER|[pP]arquet", "the Parquet source cannot be read: a file is damaged", "write it again", "damaged"),
    ("UNAUTHENTICATED", "Spark refused the token, or the lack of one", "check SPARK_REMOTE", "no-connection"),
    (
        "SSL_ERROR",
        "Spark does not speak TLS, or its certificate is not trusted; an address with a token asks for TLS",
        "check SPARK_REMOTE, and how the server is set up",
        "no-connection",
    ),
    (
        "UNAVAILABLE|INVALID_HANDLE|NO_ACTIVE_SESSION|Connection refused|shut down|unresponsive|Py4JNetworkError"
        "|Answer from Java side is empty|cannot schedule new futures|generator raised StopIteration",
        "the connection to Spark was lost",
        CHECK_SPARK,
        "connection-lost",
    ),
)
