"""Cells with their keys, brought out of the engine for the curator and for measures of utility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.cells import Cells, Domain, group_cells
from cellrisk.errors import InvalidInput
from cellrisk.profiles import Integers
from cellrisk.tables.coding import code_level
from cellrisk.tables.counting import CHANGED, integers
from cellrisk.tables.levels import NUMBER, Levels, Seen, order_values
from cellrisk.tables.schema import Schema
from cellrisk.tables.sums import total
from cellrisk.tables.survey import Survey, find_values

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_COUNTS = 20_000_000
"""Positive counts that are brought into memory with their keys."""


def collect_cells(survey: Survey, schema: Schema, place: int) -> Cells:
    """The cells of a surveyed source, with the counts of the sensitive attribute at that place."""
    coded, levels = survey.coded, survey.levels[place]
    quasi = [f"q{number}" for number in range(len(schema.quasi_identifiers))]
    key = f"y{place}"
    pairs = coded.group_by([*quasi, key]).aggregate(c=total(coded))
    pairs = pairs.filter(pairs.c > 0)
    values = {
        name: pairs[name] if schema.binning(column) else code_level(pairs[name])
        for name, column in zip(quasi, schema.quasi_identifiers, strict=True)
    }
    found = pairs.select(key, "c", **values).limit(MOST_COUNTS + 1).to_pyarrow()
    if len(found) > MOST_COUNTS:
        raise InvalidInput(
            "the table has too many cells to bring their keys into memory",
            got=f"more than {MOST_COUNTS:,} positive counts",
            fix="use fewer or coarser quasi-identifiers; assess, curve and choose need no keys",
        )
    domains, codes = [], []
    for name, column in zip(quasi, schema.quasi_identifiers, strict=True):
        domain, code = encode(found[name], survey.kinds[name], column, schema)
        domains.append(domain)
        codes.append(code)
    return group_cells(
        schema.sensitive[place],
        levels.labels,
        tuple(domains),
        np.stack(codes, axis=1),
        translate(found[key], levels),
        integers(found["c"]),
    )


def encode(column: Any, kind: str, name: str, schema: Schema) -> tuple[Domain, Integers]:
    """A column of keys as its domain and the place of each value in it."""
    binning, given = schema.binning(name), schema.declared(name)
    distinct = column.unique().to_pylist()
    seen = [Seen(value, 1) for value in distinct]
    if binning is not None and given is None:
        seen += [Seen(index, 0) for index in binning.declared if index not in distinct]
    values = order_values(name, seen, kind, binning, given)
    named = values.labels[: len(values.labels) - values.missing]
    ordered = binning is not None or all(NUMBER.fullmatch(label) for label in named)
    declared = given is not None or (binning is not None and len(binning.declared) > 0)
    return Domain(name, values.labels, ordered, declared, values.missing), translate(column, values)


def translate(column: Any, levels: Levels) -> Integers:
    """The place of each value among the levels."""
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    missing = encoded.indices.null_count > 0
    if not levels.places.keys() >= {*values, *([None] if missing else [])}:
        raise InvalidInput(CHANGED, fix="try again")
    places = np.array([*(levels.places[value] for value in values), levels.places.get(None, -1)], np.int64)
    return np.asarray(places[integers(encoded.indices.fill_null(len(values)))])


def check_domains(survey: Survey, schema: Schema) -> None:
    """Refuses quasi-identifiers that hold values outside their declared levels."""
    coded: ir.Table = survey.coded
    for place, column in enumerate(schema.quasi_identifiers):
        given = schema.declared(column)
        if given is not None:
            name, binning = f"q{place}", schema.binning(column)
            value = coded[name] if binning else code_level(coded[name])
            records = coded.select(value=value, n=coded["w"] if "w" in coded.columns else 1)
            grouped = records.group_by("value").aggregate(records=records.n.sum())
            order_values(column, find_values(grouped, "value", column), survey.kinds[name], binning, given)
