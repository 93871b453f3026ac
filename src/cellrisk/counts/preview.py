"""A first look at a file: its columns, what kind of values they hold, how many, and how many are missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.counts.coding import code_group, has_plain_values, is_missing
from cellrisk.counts.embedded import open_embedded
from cellrisk.counts.encodings import EncodedPath, find_encoding, recode
from cellrisk.counts.engine import plain_refusals
from cellrisk.counts.files import (
    PACKED,
    check_file,
    describe_parquet,
    describe_text,
    find_files,
    is_foreign,
    is_parquet,
)
from cellrisk.counts.foreign import list_columns, unpack
from cellrisk.counts.resources import Resources
from cellrisk.errors import InvalidInput
from cellrisk.system.progress import Progress
from cellrisk.system.scratch import private_folder

if TYPE_CHECKING:
    import ibis.expr.types as ir

KINDS = ("text", "number", "truth", "date", "other")
MOST_COLUMNS = 2000
COUNTED = 10_001
"""Up to here the number of distinct values is exact; beyond it none is given."""
CLEARLY_MORE = 2 * COUNTED
"""An estimate above this is no number of values that could be counted: estimates are off by a few percent."""
READ = ("number", "truth", "date")
"""The kinds that text may be read as, the likeliest first."""
SAMPLE = 2000
TRUTHS = ("true", "false")


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
    with plain_refusals(), open_embedded(source, names, table, Resources.of(None, progress)) as records:
        places = range(len(names))
        sample = records.limit(SAMPLE)
        looks = _ask(sample, {name: value for place in places for name, value in _readings(sample, place).items()})
        facts = {name: value for place in places for name, value in _facts(records, place, looks).items()}
        found = _ask(records, {"rows": records.count(), **facts})
        few = [place for place in places if found.get(f"about{place}", CLEARLY_MORE) < CLEARLY_MORE]
        found |= _ask(records, {f"levels{place}": code_group(records[f"c{place}"]).nunique() for place in few})
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
    with plain_refusals():
        file = describe_parquet(path, [])
    return file.names[: file.n_stored]


def _ask(table: ir.Table, facts: dict[str, Any]) -> dict[str, Any]:
    """Numbers of a table, found in one pass."""
    found: dict[str, Any] = table.aggregate(**facts).to_pyarrow().to_pylist()[0] if facts else {}
    return found


def _facts(table: ir.Table, place: int, looks: dict[str, Any]) -> dict[str, Any]:
    """What is asked of one column in the first pass. Text is read only as what a sample of it looks like."""
    column = table[f"c{place}"]
    kind = column.type()
    facts: dict[str, Any] = {f"missing{place}": table.count(where=is_missing(column))}
    if not has_plain_values(kind):
        return facts
    facts[f"about{place}"] = code_group(column).approx_nunique()
    if not kind.is_string():
        return {**facts, f"{_kind_of(kind)}{place}": table.count(where=~is_missing(column))}
    readings = _readings(table, place)
    likely = [f"{each}{place}" for each in READ if looks[f"{each}{place}"] == looks[f"present{place}"]]
    return {**facts, **{name: readings[name] for name in likely}}


def _readings(table: ir.Table, place: int) -> dict[str, Any]:
    """How much of a column of text reads as a number, a truth value or a date, and how much of it there is."""
    column = table[f"c{place}"]
    if not column.type().is_string():
        return {}
    number = column.try_cast("float64")
    return {
        f"present{place}": column.count(),
        f"number{place}": table.count(where=number.notnull() & ~number.isnan()),
        f"truth{place}": table.count(where=column.lower().isin(TRUTHS)),
        f"date{place}": table.count(where=column.try_cast("timestamp").notnull()),
    }


def _kind_of(kind: Any) -> str:
    if kind.is_boolean():
        return "truth"
    if kind.is_numeric():
        return "number"
    return "date" if kind.is_temporal() else "text"


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
