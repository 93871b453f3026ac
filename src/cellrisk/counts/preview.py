"""A first look at a file: its columns, what kind of values they hold, how many, and how many are missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellrisk.counts.columns import has_plain_values, is_missing, is_numeric, is_text, plain_value
from cellrisk.counts.embedded import open_embedded
from cellrisk.counts.encodings import EncodedPath, find_encoding, recode
from cellrisk.counts.engine import Relation, redacted
from cellrisk.counts.files import (
    PACKED,
    check_file,
    describe_parquet,
    describe_text,
    find_files,
    is_foreign,
    is_parquet,
)
from cellrisk.counts.other_formats import list_columns, unpack
from cellrisk.counts.resources import Resources
from cellrisk.errors import InvalidInput
from cellrisk.system.progress import Progress
from cellrisk.system.scratch import private_folder

KINDS = ("text", "number", "truth", "date", "other")
MOST_COLUMNS = 2000
COUNTED = 10_001
"""Up to here the number of distinct values is exact; beyond it none is given."""
CLEARLY_MORE = 2 * COUNTED
"""An estimate above this is no number of values that could be counted: estimates are off by a few percent."""
READ = ("number", "truth", "date")
"""The kinds that text may be read as, the likeliest first."""
SAMPLE = 2000


@dataclass(frozen=True)
class PreviewedColumn:
    """One column of a file."""

    name: str
    kind: str
    """text, number, truth, date; "other" where no table can be made of it."""
    levels: int | None
    """Distinct values, exact, missing ones left out; None where there are more than 10,001."""
    missing: int
    unique_share: float
    """Distinct values over rows with a value; an estimate where ``levels`` is None."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS or not 0 <= self.unique_share <= 1:
            raise InvalidInput("a column needs a kind and a share of distinct values", allowed=", ".join(KINDS))


@dataclass(frozen=True)
class Preview:
    """A file before anything is counted. It holds no value of any column."""

    rows: int
    columns: tuple[PreviewedColumn, ...]


def preview_file(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    table: str | None = None,
    encoding: str | None = None,
) -> Preview:
    """What columns does a file have, and which of them could be quasi-identifiers?

    Counts are exact. Text of a CSV file is a number where every value that is not missing reads as one, and likewise
    for truth values and dates.

    >>> from cellrisk import datasets
    >>> found = preview_file(datasets.adult_path())
    >>> found.rows, [(each.name, each.kind, each.levels, each.missing) for each in found.columns[:2]]
    (32561, [('age', 'number', 73, 0), ('workclass', 'text', 8, 1836)])
    """
    files = find_files(path)
    if len(files) != 1:
        raise InvalidInput("a preview is of one file", got=f"{len(files)} files")
    names = _read_names(files[0], table, encoding)
    if len(names) > MOST_COLUMNS:
        raise InvalidInput(
            "the file has too many columns to look at", got=f"{len(names):,}", allowed=f"{MOST_COLUMNS:,}"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInput("the file has columns of the same name", got=f"{len(repeated)} names", fix="rename them")
    tell = progress or (lambda share: None)
    tell(0.0)
    source = files[0] if encoding is None else EncodedPath(str(files[0]), encoding)
    with redacted(), open_embedded(source, names, table, Resources.of(None, progress)) as records:
        places = range(len(names))
        sample = f"(FROM {records.name} LIMIT {SAMPLE})"
        looks = _ask(records, sample, {key: sql for place in places for key, sql in _readings(records, place).items()})
        facts = {key: sql for place in places for key, sql in _facts(records, place, looks).items()}
        found = _ask(records, records.name, {"rows": "count(*)", **facts})
        few = [place for place in places if found.get(f"about{place}", CLEARLY_MORE) < CLEARLY_MORE]
        levels = {f"levels{place}": f"count(DISTINCT {_value(records, place)})" for place in few}
        found |= _ask(records, records.name, levels)
    tell(1.0)
    return Preview(int(found["rows"]), tuple(_describe(name, place, found) for place, name in enumerate(names)))


def _read_names(path: Path, table: str | None = None, encoding: str | None = None) -> list[str]:
    encoding = encoding or find_encoding(path)
    if path.suffix.lower() in PACKED or encoding is not None:
        with private_folder() as folder:
            copy = folder / "recoded.csv"
            return _read_names(unpack(path, folder) if encoding is None else recode(path, encoding, copy))
    if is_foreign(path):
        check_file(path)
        return list_columns(path, table)
    if not is_parquet(path):
        return list(describe_text(path, []).names)
    with redacted():
        file = describe_parquet(path, [])
    return file.names[: file.n_stored]


def _ask(records: Relation, rows: str, facts: dict[str, str]) -> dict[str, Any]:
    """Numbers of some rows, each given in SQL, found in one pass."""
    if not facts:
        return {}
    return dict(zip(facts, records.fetch(f"SELECT {', '.join(facts.values())} FROM {rows}")[0], strict=True))


def _value(records: Relation, place: int) -> str:
    return plain_value(f"c{place}", records.types[f"c{place}"])


def _facts(records: Relation, place: int, looks: dict[str, Any]) -> dict[str, str]:
    """What is asked of one column in the first pass. Text is read only as what a sample of it looks like."""
    column, kind = f"c{place}", records.types[f"c{place}"]
    missing = is_missing(column, kind)
    facts = {f"missing{place}": f"count(*) FILTER ({missing})"}
    if not has_plain_values(kind):
        return facts
    facts[f"about{place}"] = f"approx_count_distinct({_value(records, place)})"
    if not is_text(kind):
        return {**facts, f"{_kind_of(kind)}{place}": f"count(*) FILTER (NOT ({missing}))"}
    readings = _readings(records, place)
    likely = [f"{each}{place}" for each in READ if looks[f"{each}{place}"] == looks[f"present{place}"]]
    return {**facts, **{name: readings[name] for name in likely}}


def _readings(records: Relation, place: int) -> dict[str, str]:
    """How much of a column of text reads as a number, a truth value or a date, and how much of it there is."""
    column = f"c{place}"
    if not is_text(records.types[column]):
        return {}
    number = f"TRY_CAST({column} AS DOUBLE)"
    return {
        f"present{place}": f"count({column})",
        f"number{place}": f"count(*) FILTER ({number} IS NOT NULL AND NOT isnan({number}))",
        f"truth{place}": f"count(*) FILTER (lower({column}::VARCHAR) IN ('true', 'false'))",
        f"date{place}": f"count(TRY_CAST({column} AS TIMESTAMP))",
    }


def _kind_of(kind: str) -> str:
    if kind == "BOOLEAN":
        return "truth"
    return "number" if is_numeric(kind) else "date" if not kind.startswith("INTERVAL") else "text"


def _describe(name: str, place: int, found: dict[str, Any]) -> PreviewedColumn:
    missing, about = int(found[f"missing{place}"]), found.get(f"about{place}")
    present = int(found["rows"]) - missing
    if about is None:
        return PreviewedColumn(name, "other", None, missing, 0.0)
    kind = next((kind for kind in READ if present and found.get(f"{kind}{place}") == present), "text")
    levels = found.get(f"levels{place}")
    share = min(1.0, int(about if levels is None else levels) / present) if present else 0.0
    exact = None if levels is None or levels > COUNTED else int(levels)
    return PreviewedColumn(name, kind, exact, missing, share)
