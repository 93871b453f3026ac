"""What a file that somebody else has sent holds once it is unpacked, before an engine unpacks it."""

from __future__ import annotations

from pathlib import Path

from cellrisk.counts.engine import plain_refusals
from cellrisk.counts.files import CHUNK, check_parquet, find_packing, is_parquet, open_bytes, refusals_of_the_system
from cellrisk.errors import InvalidInput


def check_unpacked(path: str, limit: int | None) -> None:
    """Refuses a file that holds more than a limit once it is unpacked. Gzip was measured as it came in; zstd is
    measured here, as far as the limit.

    A Parquet file says itself what its columns hold; a value counts for a byte at least, because repeated values take
    almost no place in such a file. One that says less than it holds meets the engine's own limit of memory.
    """
    if limit is None:
        return
    file = Path(path)
    unpacked = 0
    with plain_refusals(), refusals_of_the_system(file):
        if is_parquet(file):
            import pyarrow.parquet as pq

            check_parquet(file)
            said = pq.read_metadata(path)
            unpacked = sum(said.row_group(number).total_byte_size for number in range(said.num_row_groups))
            unpacked = max(unpacked, said.num_rows * said.num_columns)
        elif find_packing(file) == "zstd":
            with open_bytes(file) as stream:
                while unpacked <= limit and (part := stream.read(CHUNK)):
                    unpacked += len(part)
    if unpacked > limit:
        raise InvalidInput("the file is too large once it is unpacked", allowed=f"{limit:,} bytes, and as many values")
