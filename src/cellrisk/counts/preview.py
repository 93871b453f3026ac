"""A first look at a file: its columns, what kind of values they hold, how many, and how many are missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

from cellrisk.counts.columns import has_plain_values, is_missing, is_numeric, is_text, plain_value
from cellrisk.counts.engine import Relation
from cellrisk.counts.files import find_files
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
READ = {
    "number": "TRY_CAST({0} AS DOUBLE) IS NOT NULL AND NOT isnan(TRY_CAST({0} AS DOUBLE))",
    "truth": "lower({0}::VARCHAR) IN ('true', 'false')",
    "date": "TRY_CAST({0} AS TIMESTAMP) IS NOT NULL",
}
"""The kinds that text may be read as, the likeliest first, and SQL for texts that read so."""
SAMPLE = 2000
"""Rows that tell which of these kinds all rows are tried for."""


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
    >>> preview = preview_file(datasets.adult_path())
    >>> preview.rows, [(column.name, column.kind, column.levels, column.missing) for column in preview.columns[:2]]
    (32561, [('age', 'number', 73, 0), ('workclass', 'text', 8, 1836)])
    """
    files = find_files(path)
    if len(files) != 1:
        raise InvalidInput("a preview is of one file", got=f"{len(files)} files", code="file-kind")
    names = AskedColumns(every=True)
    report = progress or (lambda share: None)
    report(0.0)
    with open_source(files[0], names, Resources.of(None, progress), table=table, encoding=encoding) as records:
        if len(names) > MOST_COLUMNS:
            raise InvalidInput(
                "the file has too many columns to preview",
                got=f"{len(names):,}",
                allowed=f"{MOST_COLUMNS:,}",
                code="too-many-columns",
            )
        columns = list(records.types)
        sample = f"(FROM {{rows}} LIMIT {SAMPLE})"
        texts = [column for column in columns if is_text(records.types[column])]
        looks = {
            f"{kind} {c}": f"bool_and({sql.format(c)}) FILTER ({c} IS NOT NULL)"
            for c in texts
            for kind, sql in READ.items()
        }
        likely = _ask(records, looks, sample)
        facts = {"rows": "count(*)"}
        for column in columns:
            facts |= _list_facts(column, records.types[column], likely)
        counts = _ask(records, facts)
        countable = [column for column in columns if counts.get(f"about {column}", CLEARLY_MORE) < CLEARLY_MORE]
        values = {f"levels {c}": f"count(DISTINCT {plain_value(c, records.types[c])})" for c in countable}
        counts |= _ask(records, values)
    report(1.0)
    return Preview(int(counts["rows"]), tuple(map(partial(_describe, counts), names, columns)))


def _ask(records: Relation, facts: dict[str, str], rows: str = "{rows}") -> dict[str, Any]:
    """Return facts about some rows, each given in SQL, which are found in one pass."""
    if not facts:
        return {}
    return dict(zip(facts, records.fetch(f"SELECT {', '.join(facts.values())} FROM {rows}")[0], strict=True))


def _list_facts(column: str, kind: str, likely: dict[str, Any]) -> dict[str, str]:
    """Return SQL for how many values are missing, about how many differ, and how many read as a number and so on."""
    missing = is_missing(column, kind)
    facts = {f"missing {column}": f"count(*) FILTER ({missing})"}
    if not has_plain_values(kind):
        return facts
    facts[f"about {column}"] = f"approx_count_distinct({plain_value(column, kind)})"
    if is_text(kind):
        kinds = {name: sql.format(column) for name, sql in READ.items() if likely[f"{name} {column}"] is not False}
    else:
        named = "truth" if kind == "BOOLEAN" else "number" if is_numeric(kind) else "date"
        kinds = {"text" if kind.startswith("INTERVAL") else named: f"NOT ({missing})"}
    return facts | {f"{name} {column}": f"count(*) FILTER ({sql})" for name, sql in kinds.items()}


def _describe(counts: dict[str, Any], name: str, column: str) -> PreviewedColumn:
    missing, about = int(counts[f"missing {column}"]), counts.get(f"about {column}")
    present = int(counts["rows"]) - missing
    if about is None:
        return PreviewedColumn(name, "other", None, missing, 0.0)
    kind = next((kind for kind in READ if present and counts.get(f"{kind} {column}") == present), "text")
    levels = counts.get(f"levels {column}")
    share = min(1.0, int(about if levels is None else levels) / present) if present else 0.0
    exact = None if levels is None or levels > COUNTED else int(levels)
    return PreviewedColumn(name, kind, exact, missing, share)
