"""What Spark says when it fails, in one line and without the data that it quotes."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from cellrisk.counts.engine import comes_from
from cellrisk.errors import CellriskError, InvalidInput

CANNOT_READ_TEXT = "the CSV source cannot be read"
CHECK_SPARK = "check that Spark runs and has enough memory, and try again"
SPARK = ("grpc", "py4j", "pyspark")


@contextmanager
def spark_refusals() -> Iterator[None]:
    """Turn Spark's exceptions, which may quote the data, into one line that does not."""
    try:
        yield
    except CellriskError:
        raise
    except Exception as error:
        if not comes_from_spark(error):
            raise
        raise explain_spark_failure(error) from None


def comes_from_spark(error: Exception) -> bool:
    """Whether an exception is of Spark's kinds, or any kind that was raised below Spark's code, as a RuntimeError is
    when a thread pool of Spark's client has gone together with the server."""
    return comes_from(error, SPARK) or any(
        str(frame.f_globals.get("__name__", "")).partition(".")[0] in SPARK
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def explain_spark_failure(error: Exception) -> InvalidInput:
    """What can be said of Spark's exception without its text: the first known cause that it or one before it names."""
    texts: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    text = "\n".join(texts)
    for pattern, message, fix in CAUSES:
        if re.search(pattern, text):
            return InvalidInput(message, fix=fix, code="spark")
    if not comes_from(error, SPARK):
        return InvalidInput(f"the connection to Spark failed ({type(error).__name__})", fix=CHECK_SPARK, code="spark")
    condition = re.match(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))  # further on it may be a value that Spark quotes
    why = condition[1] if condition else type(error).__name__
    return InvalidInput(f"Spark could not read the source ({why})", fix="check that the files are whole", code="spark")


CAUSES = (
    (
        r"No space left on device|OutOfMemoryError|Java heap space",
        "the table does not fit into Spark's memory and scratch folder",
        "use fewer or coarser quasi-identifiers, or give Spark more memory (SPARK_DRIVER_MEMORY) and disk",
    ),
    (
        r"FILE_NOT_EXIST|FileNotFoundException|PATH_NOT_FOUND",
        "there is no such file, or it vanished while it was read",
        "check the path, and try again when the files are complete",
    ),
    (
        r"CSV header does not conform|CSV header: ",
        f"{CANNOT_READ_TEXT}: its files have different headers",
        "read them one by one",
    ),
    (
        r"MALFORMED_CSV|MALFORMED_RECORD|TextParsingException",
        f"{CANNOT_READ_TEXT}: it has lines with more or fewer fields than the header, or quotation marks out of place",
        "correct those lines",
    ),
    (
        r"PARQUET_TYPE|PARQUET_COLUMN_DATA_TYPE|Illegal Parquet|SchemaColumnConvert|\(NANOS|CANNOT_MERGE_SCHEMAS",
        "the Parquet source has types that Spark does not read, such as nanoseconds, or that do not fit together",
        "write it with the same types and microseconds, or as text",
    ),
    (r"FOOTER|[pP]arquet", "the Parquet source cannot be read: a file is damaged", "copy or write it again"),
    (r"UNAUTHENTICATED", "Spark refused the token, or the lack of one", "check SPARK_REMOTE"),
    (
        r"SSL_ERROR",
        "Spark does not speak TLS, or its certificate is not trusted; an address with a token asks for TLS",
        "check SPARK_REMOTE, and how the server is set up",
    ),
    (
        r"UNAVAILABLE|INVALID_HANDLE|NO_ACTIVE_SESSION|Connection refused|shut down|unresponsive|Py4JNetworkError"
        r"|Answer from Java side is empty|cannot schedule new futures|generator raised StopIteration",
        "the connection to Spark was lost",
        CHECK_SPARK,
    ),
)
"""What a text of Spark holds, what that means, and what to do."""
