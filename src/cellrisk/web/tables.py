"""Tables in worker processes: how one is counted, counted again if its keys are needed, and described for the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.counts.preview import Preview, PreviewedColumn, preview_file
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_bins
from cellrisk.system.formatting import number_of, percent
from cellrisk.web.boxes import known_as
from cellrisk.web.jobs import Report

ALMOST_UNIQUE = 0.5
FEW_CELLS = 200_000
"""Tables with up to so many cells are looked at cell by cell at once; of larger ones the page asks first."""
MOST_KEPT = 2
_kept: dict[tuple[Recipe, str], cr.FrequencyTable] = {}


@dataclass(frozen=True)
class Recipe:
    """A file, and what its columns mean: the arguments of `tabulate`."""

    path: str
    name: str
    """What the user calls the file."""
    command: str
    """The path for a command line."""
    stamp: tuple[int, int]
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    bins: tuple[tuple[str, str], ...] = ()
    """As they are written: a width, or edges between slashes."""
    missing: str = "category"
    count: str | bool | None = None

    def tabulate(self, sensitive: str, report: Report | None = None) -> cr.FrequencyTable:
        """Count the cells for one sensitive attribute; refuse a file that has changed since it was chosen."""
        stat = Path(self.path).stat()
        if (stat.st_size, stat.st_mtime_ns) != self.stamp:
            raise InvalidInput("the file has changed since it was loaded", fix="load it again", code="changed-file")
        progress = None if report is None else partial(report, "counting")
        with known_as(self.path, self.name):
            return cr.tabulate(
                self.path, self.quasi_identifiers, sensitive, **self.arguments(sensitive), progress=progress
            )

    def arguments(self, sensitive: str) -> dict[str, Any]:
        """Return the arguments of `tabulate` after the columns that are not the default."""
        used = {*self.quasi_identifiers, sensitive}
        given: dict[str, Any] = {
            "bins": {name: read_bins(text, f"each bin of column '{name}'") for name, text in self.bins if name in used},
            "count": self.count,
            "missing": None if self.missing == "category" else self.missing,
        }
        return {name: value for name, value in given.items() if value or value is False}

    def preparation(self, sensitive: str) -> list[str]:
        """Return what was done to the columns in use, as a report says it."""
        used = {*self.quasi_identifiers, sensitive}
        return [f"{name} in bins: {text}" for name, text in self.bins if name in used]


def tabulate_with_keys(recipe: Recipe, sensitive: str, report: Report | None = None) -> cr.FrequencyTable:
    """Count a table whose cells can be read; a worker keeps the last ones, since the page asks again and again."""
    key = recipe, sensitive
    if key not in _kept:
        while len(_kept) >= MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = recipe.tabulate(sensitive, report)
    return _kept[key]


@dataclass(frozen=True)
class Counted:
    """The result of counting: a table without keys for each sensitive attribute, and what the page shows."""

    recipe: Recipe
    tables: dict[str, cr.FrequencyTable]
    described: dict[str, Any]


def warm_up() -> None:
    """Load what the first job would wait for."""
    preview_file(cr.datasets.adult_path())


def look(report: Report, path: str, name: str) -> Preview:
    """Read the columns of a file."""
    report("reading the columns", None)
    with known_as(path, name):
        return preview_file(path, progress=partial(report, "reading the columns"))


def describe_columns(name: str, preview: Preview, suggested: dict[str, Any] | None) -> dict[str, Any]:
    """Return the columns of a source, each with a hint if there is one, and the roles that they are likely to have."""
    (quasi, sensitive), counts = preview.suggested, preview.counts
    found = {"quasi_identifiers": quasi, "sensitive": sensitive, "bins": preview.bins, "counts": counts}
    return {
        "title": f"{name}: {number_of(preview.rows, 'row')}, {number_of(len(preview.columns), 'column')}",
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "levels": "over 10,000" if column.levels is None else f"{column.levels:,}",
                "missing": f"{column.missing:,}",
                "hint": hint_at(column, preview.rows),
            }
            for column in preview.columns
        ],
        "suggested": suggested or found,
    }


def hint_at(column: PreviewedColumn, rows: int) -> str | None:
    """Return what a specialist would say of a column at first sight."""
    if column.kind == "other":
        return "holds values of a kind that no table can be made of"
    if rows and column.missing == rows:
        return "has no values"
    if column.levels == 1:
        return "has one value only: it tells nobody apart, and there is nothing in it to protect"
    if column.unique_share > ALMOST_UNIQUE and rows > 1:
        if column.kind == "number":
            return "almost every row has its own value: cut it into bins, or leave it out"
        return "almost every row has its own value: a name or a number of a person is not a quasi-identifier"
    return None


def count(report: Report, recipe: Recipe) -> Counted:
    """Count the table once for each sensitive attribute."""
    report("counting", None)
    tables = {name: tabulate_with_keys(recipe, name, report) for name in recipe.sensitive}
    report("reading the cells", None)
    return Counted(recipe, tables, describe_table(recipe, tables))


def describe_table(recipe: Recipe, tables: dict[str, cr.FrequencyTable]) -> dict[str, Any]:
    """Return a table in numbers, and what a specialist would say of it."""
    first = next(iter(tables.values()))
    summaries = {name: table.to_dict() for name, table in tables.items()}
    described = summaries[recipe.sensitive[0]]
    records, cells, dropped = first.n_records, first.n_cells, described["dropped_records"]
    people, groups = number_of(records, "person"), number_of(cells, "cell")
    attributes = {name: summary["sensitive"][name] for name, summary in summaries.items()}
    unique = attributes[recipe.sensitive[0]]["unique"]
    sizes = list(described["cell_sizes"]["distribution"].items())
    last = max((place for place, (_, number) in enumerate(sizes) if number), default=-1)
    return {
        "name": recipe.name,
        "summary": described,
        "sensitive": list(recipe.sensitive),
        "records": records,
        "few": cells <= FEW_CELLS,
        "cells": groups,
        "figures": [
            ["People", f"{records:,}", f"{dropped:,} dropped: a value is missing" if dropped else ""],
            ["Cells", f"{cells:,}", "combinations of quasi-identifiers that occur"],
            *(
                [f"Cells with one value of {name}", f"{found['homogeneous']:,}", _of_cells(found["homogeneous"], cells)]
                for name, found in attributes.items()
            ),
            ["Cells with one person", f"{unique:,}", _of_cells(unique, cells)],
        ],
        "sentence": (
            f"{recipe.name}: {people} in {groups} by {', '.join(recipe.quasi_identifiers)}; sensitive "
            f"{', '.join(recipe.sensitive)}"
        ),
        "warnings": list(warn(tables)),
        "sizes": [[size, number, f"{number:,}"] for size, number in sizes[: last + 1]],
    }


def _of_cells(number: int, cells: int) -> str:
    return f"{percent(number / cells)} of cells"


def warn(tables: dict[str, cr.FrequencyTable]) -> Iterator[str]:
    """Yield what a specialist would point out before anything is published, beside the hints at columns."""
    first = next(iter(tables.values()))
    records, cells = first.n_records, first.n_cells
    if cells > records / 2:
        yield (
            f"{number_of(cells, 'cell')} for {number_of(records, 'record')}: most people are alone in their cell, or "
            "nearly so. Fewer or coarser quasi-identifiers would help more than noise."
        )
    for name, table in tables.items():
        totals = table.attribute(name).levels.totals
        rare = int((totals == 1).sum())
        if rare:
            yield (
                f"{number_of(rare, 'level')} of '{name}' in one record only: an attacker who knows that the person is "
                "in the data may know the value. Merge rare levels."
            )
        missing = dict(table.missing_records).get(name)
        if missing:
            rule = "left out" if table.missing == "drop" else "counted as a level of its own"
            yield f"No value of '{name}': {number_of(missing, 'record')}, {rule}."
