"""A first look at a file: its columns, what kind of values they hold, how many, and how many are missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.columns import has_plain_values, is_missing, is_numeric, is_text, plain_value
from cellrisk.counts.engine import Relation
from cellrisk.counts.files import EncodedPath, find_files
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import AskedColumns
from cellrisk.counts.sources import open_source
from cellrisk.errors import InvalidInput
from cellrisk.system.progress import Progress

MOST_COLUMNS = 2000
COUNTED = 10_001
"""Up to here the number of distinct values is exact; beyond it none is given."""
CLEARLY_MORE = 2 * COUNTED
"""An estimate above this is clearly above COUNTED: estimates are off by a few percent."""
READ = ("number", "truth", "date")
"""The kinds that text may be read as, the likeliest first."""
SAMPLE = 2000


@dataclass(frozen=True)
class PreviewedColumn:
    """One column of a file."""

    name: str
    kind: str
    """text, number, truth, date; "other" if no table can be made of it."""
    levels: int | None
    """Distinct values, exact, missing ones left out; None if there are more than 10,001."""
    missing: int
    unique_share: float
    """Distinct values over rows with a value; an estimate if ``levels`` is None."""


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
    """Describe the columns of a file, of which some may be quasi-identifiers.

    Counts are exact. Text of a CSV file is a number if every value that is not missing reads as one, and likewise
    for truth values and dates.

    >>> from cellrisk import datasets
    >>> found = preview_file(datasets.adult_path())
    >>> found.rows, [(each.name, each.kind, each.levels, each.missing) for each in found.columns[:2]]
    (32561, [('age', 'number', 73, 0), ('workclass', 'text', 8, 1836)])
    """
    files = find_files(path)
    if len(files) != 1:
        raise InvalidInput("a preview is of one file", got=f"{len(files)} files", code="file-kind")
    names = AskedColumns(every=True)
    report = progress or (lambda share: None)
    report(0.0)
    source = files[0] if encoding is None else EncodedPath(str(files[0]), encoding)
    with open_source(source, names, Resources.of(None, progress), table=table) as records:
        if len(names) > MOST_COLUMNS:
            raise InvalidInput(
                "the file has too many columns to preview",
                got=f"{len(names):,}",
                allowed=f"{MOST_COLUMNS:,}",
                code="too-many-columns",
            )
        places = range(len(names))
        sample = f"(FROM {records.name} LIMIT {SAMPLE})"
        looks = _ask(records, sample, {key: sql for place in places for key, sql in _readings(records, place).items()})
        facts = {key: sql for place in places for key, sql in _facts(records, place, looks).items()}
        found = _ask(records, records.name, {"rows": "count(*)", **facts})
        few = [place for place in places if found.get(f"about{place}", CLEARLY_MORE) < CLEARLY_MORE]
        levels = {f"levels{place}": f"count(DISTINCT {_value(records, place)})" for place in few}
        found |= _ask(records, records.name, levels)
    report(1.0)
    return Preview(int(found["rows"]), tuple(_describe(name, place, found) for place, name in enumerate(names)))


def _ask(records: Relation, rows: str, facts: dict[str, str]) -> dict[str, Any]:
    """Return numbers about some rows, each given in SQL, found in one pass."""
    if not facts:
        return {}
    return dict(zip(facts, records.fetch(f"SELECT {', '.join(facts.values())} FROM {rows}")[0], strict=True))


def _value(records: Relation, place: int) -> str:
    return plain_value(f"c{place}", records.types[f"c{place}"])


def _facts(records: Relation, place: int, looks: dict[str, Any]) -> dict[str, str]:
    """Return what is asked of one column in the first pass. Text is read only as what a sample of it looks like."""
    column, kind = f"c{place}", records.types[f"c{place}"]
    missing = is_missing(column, kind)
    facts = {f"missing{place}": f"count(*) FILTER ({missing})"}
    if not has_plain_values(kind):
        return facts
    facts[f"about{place}"] = f"approx_count_distinct({_value(records, place)})"
    if not is_text(kind):
        named = "truth" if kind == "BOOLEAN" else "number" if is_numeric(kind) else "date"
        named = "text" if kind.startswith("INTERVAL") else named
        return {**facts, f"{named}{place}": f"count(*) FILTER (NOT ({missing}))"}
    readings = _readings(records, place)
    likely = [f"{each}{place}" for each in READ if looks[f"{each}{place}"] == looks[f"present{place}"]]
    return {**facts, **{name: readings[name] for name in likely}}


def _readings(records: Relation, place: int) -> dict[str, str]:
    """Return SQL for how much of a column of text reads as a number, a truth value or a date, and how much there is."""
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
