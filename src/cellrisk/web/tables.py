"""Tables in worker processes: counted, counted again if their groups are needed, and described for the page."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.counts.files import CHUNK, PACKED, refusals_of_the_system
from cellrisk.counts.preview import Preview, PreviewedColumn, preview_file
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.system.checks import read_bins
from cellrisk.system.formatting import number_of, percent
from cellrisk.web.fields import TableChoice
from cellrisk.web.jobs import Report

ALMOST_UNIQUE = 0.5
MOST_KEPT = 2
PEOPLE = {"person", "contributions", "per_group"}
"""What a table says of people who can have several rows."""
_kept: dict[tuple[Recipe, str], cr.FrequencyTable] = {}


@contextmanager
def known_as(path: str, name: str) -> Iterator[None]:
    """Let refusals inside name a file as the user does, not by its path on the server."""
    try:
        yield
    except CellriskError as refusal:
        words = refusal.marked.replace(path, name).replace(Path(path).name, name)
        raise InvalidInput(words, code=refusal.code) from None


@dataclass(frozen=True)
class Recipe:
    """A file, and what its columns mean."""

    path: str
    name: str
    """What the user calls the file."""
    command: str
    """The path for a command line."""
    stamp: tuple[int, int]
    choice: TableChoice = field(hash=False)

    def tabulate(self, sensitive: str, report: Report | None = None) -> cr.FrequencyTable:
        """Count the groups for one sensitive attribute; refuse a file that has changed since it was chosen."""
        stat = Path(self.path).stat()
        if (stat.st_size, stat.st_mtime_ns) != self.stamp:
            raise InvalidInput("the file has changed since it was loaded", fix="load it again", code="changed-file")
        columns, progress = self.choice.quasi_identifiers, None if report is None else partial(report, "counting")
        with known_as(self.path, self.name):
            return cr.tabulate(self.path, columns, sensitive, **self.arguments(sensitive), progress=progress)

    def bins(self, sensitive: str) -> dict[str, str]:
        """Return the bins, as they are written, of the columns in use."""
        used = {*self.choice.quasi_identifiers, sensitive}
        return {name: text for name, text in self.choice.bins.items() if name in used}

    def arguments(self, sensitive: str) -> dict[str, Any]:
        """Return the arguments of `tabulate` after the columns."""
        bins = {name: read_bins(text, f"each bin of column '{name}'") for name, text in self.bins(sensitive).items()}
        return {"bins": bins, **self.choice.model_dump(include={"count", "missing", *PEOPLE})}


def tabulate_with_keys(recipe: Recipe, sensitive: str, report: Report | None = None) -> cr.FrequencyTable:
    """Count a table whose groups can be read; a worker keeps the last ones, since the page asks again and again."""
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


def look(report: Report, path: str, name: str, most: int | None) -> Preview:
    """Read the columns of a file; refuse one that unpacks to more than so many bytes."""
    report("reading the columns", None)
    with known_as(path, name):
        if most is not None and Path(path).suffix == PACKED:
            with refusals_of_the_system(Path(path)), gzip.open(path) as stream:
                while part := stream.read(CHUNK):
                    most -= len(part)
                    if most < 0:
                        raise InvalidInput("the file is too large once it is unpacked", fix="use the command line")
        return preview_file(path, progress=partial(report, "reading the columns"))


def describe_columns(name: str, preview: Preview, suggested: dict[str, Any] | None) -> dict[str, Any]:
    """Return the columns of a source, each with a hint if there is one, and the roles that they are likely to have."""
    quasi, sensitive = preview.suggested
    roles = {"quasi_identifiers": quasi, "sensitive": sensitive, "bins": preview.bins, "counts": preview.counts}
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
        "suggested": suggested or roles,
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
    tables = {name: tabulate_with_keys(recipe, name, report) for name in recipe.choice.sensitive}
    report("reading the groups", None)
    return Counted(recipe, tables, describe_table(recipe, tables))


def describe_table(recipe: Recipe, tables: dict[str, cr.FrequencyTable]) -> dict[str, Any]:
    """Return a table in numbers, and what a specialist would say of it."""
    first = next(iter(tables.values()))
    summaries = {name: table.to_dict() for name, table in tables.items()}
    described = summaries[recipe.choice.sensitive[0]]
    records, cells, dropped = first.n_records, first.n_cells, described["dropped_records"]
    people, unit = number_of(records, "person" if first.revealed_name == "people" else "record"), first.unit
    attributes = {name: summary["sensitive"][name] for name, summary in summaries.items()}
    unique = attributes[recipe.choice.sensitive[0]]["unique"]
    sizes = list(described["cell_sizes"]["distribution"].items())

    def of_groups(number: int) -> str:
        return f"{percent(number / cells)} of groups"

    last = max((place for place, (_, number) in enumerate(sizes) if number), default=-1)
    return {
        "summary": described,
        "sensitive": list(recipe.choice.sensitive),
        "figures": [
            [first.revealed_name.title(), f"{records:,}", f"{dropped:,} dropped: no value" if dropped else ""],
            *([["Records left out", f"{first.beyond_records:,}", unit.describe()]] if unit.enforced else []),
            ["Groups", f"{cells:,}", "combinations of quasi-identifiers that occur"],
            *(
                [f"Groups with one value of {name}", f"{found['homogeneous']:,}", of_groups(found["homogeneous"])]
                for name, found in attributes.items()
            ),
            [f"Groups with one {'record' if unit.contributions > 1 else 'person'}", f"{unique:,}", of_groups(unique)],
        ],
        "sentence": (
            f"{recipe.name}: {people} in {number_of(cells, 'group')} by {', '.join(recipe.choice.quasi_identifiers)}; "
            f"sensitive {', '.join(recipe.choice.sensitive)}"
        ),
        "warnings": list(warn(tables)),
        "sizes": [[size, number, f"{number:,}"] for size, number in sizes[: last + 1]],
    }


def warn(tables: dict[str, cr.FrequencyTable]) -> Iterator[str]:
    """Yield what a specialist would point out before anything is published, beside the hints at columns."""
    first = next(iter(tables.values()))
    records, cells = first.n_records, first.n_cells
    if cells > records / 2:
        yield (
            f"{number_of(cells, 'group')} for {number_of(records, 'record')}: most people are alone in their group, or "
            "nearly so. Fewer or coarser quasi-identifiers would help more than noise."
        )
    if first.anonymous_records:
        yield f"{number_of(first.anonymous_records, 'record')} without a person: each counts as a person of its own."
    for name, table in tables.items():
        totals = table.attribute(name).levels.totals
        rare = int((totals == 1).sum())
        if rare:
            yield (
                f"{number_of(rare, 'value')} of '{name}' in one record only: an attacker who knows that the person is "
                "in the data may know the value. Merge rare values."
            )
        missing = dict(table.missing_records).get(name)
        if missing:
            rule = "left out" if table.missing == "drop" else "counted as a value of its own"
            yield f"No value of '{name}': {number_of(missing, 'record')}, {rule}."
