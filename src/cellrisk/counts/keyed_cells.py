"""Cells with their keys, brought out of the engine for the curator and for measures of utility."""

from __future__ import annotations

from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells, Domain, group_cells
from cellrisk.counts.counting import find_places
from cellrisk.counts.levels import NUMBER, SeenValue
from cellrisk.counts.schema import Schema
from cellrisk.counts.sums import total
from cellrisk.counts.survey import Column, Survey
from cellrisk.counts.vectors import integers
from cellrisk.errors import InvalidInput
from cellrisk.system.arrays import Integers

MOST_COUNTS = 20_000_000
"""Positive counts that are brought into memory with their keys."""


def collect_cells(survey: Survey, schema: Schema, place: int) -> Cells:
    """The cells of a surveyed source, with the counts of the sensitive attribute at that place."""
    coded, levels = survey.coded, survey.levels[place]
    quasi = [f"q{number}" for number in range(len(schema.quasi_identifiers))]
    key = f"y{place}"
    pairs = coded.group_by([*quasi, key]).aggregate(c=total(coded))
    pairs = pairs.filter(pairs.c > 0)
    columns = [survey.columns[name] for name in quasi]
    values = {column.role: column.value(pairs) for column in columns}
    found = pairs.select(key, "c", **values).limit(MOST_COUNTS + 1).to_pyarrow()
    if len(found) > MOST_COUNTS:
        raise InvalidInput(
            "the table has too many cells to bring their keys into memory",
            got=f"more than {MOST_COUNTS:,} positive counts",
            fix="use fewer or coarser quasi-identifiers; assess, curve and choose need no keys",
        )
    domains, codes = [], []
    for column in columns:
        domain, code = encode(found[column.role], column)
        domains.append(domain)
        codes.append(code)
    return group_cells(
        schema.sensitive[place],
        levels.labels,
        tuple(domains),
        np.stack(codes, axis=1),
        find_places(found[key], levels),
        integers(found["c"]),
    )


def encode(values: Any, column: Column) -> tuple[Domain, Integers]:
    """A column of keys as its domain and the place of each value in it."""
    levels = column.sort([SeenValue(value, 1) for value in values.unique().to_pylist()]).levels
    named = levels.labels[: len(levels.labels) - levels.missing]
    ordered = column.binning is not None or all(NUMBER.fullmatch(label) for label in named)
    return Domain(column.name, levels.labels, ordered, levels.declared, levels.missing), find_places(values, levels)
