"""A released table, whoever made it: labels as `tabulate` writes them, and counts with their signs and fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellrisk.counts.columns import NO_BIN, NUMBER, Binning, bin_value, check_type, kind_of, label_key, plain_value
from cellrisk.counts.engine import Relation, Resources
from cellrisk.counts.schema import Schema
from cellrisk.errors import InvalidInput, argument
from cellrisk.publish.releasing.published_totals import LabelledColumn, read_counts
from cellrisk.publish.releasing.release_result import Release
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.formatting import number_of

MOST_ROWS = 20_000_000
"""Rows of a release that are brought into memory."""


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """A released table: one row for each combination of labels that it lists."""

    columns: tuple[LabelledColumn, ...]
    """The quasi-identifiers, then the sensitive attribute."""
    count: Floats
    listed: Integers
    """How many rows of the source have each combination."""
    is_microdata: bool
    """Whether each row of the source was a record, and the counts are numbers of rows."""


def read_release(
    released: Any,
    quasi_identifiers: tuple[str, ...],
    sensitive: str,
    *,
    count: str | bool | None = None,
    bins: Mapping[str, Any] | None = None,
    table: str | None = None,
    engine: str | None = None,
) -> ReleasedCounts:
    """The released table in any of its forms: the answer of `release`, or a source.

    >>> import pandas
    >>> frame = pandas.DataFrame({"sex": ["f", "m"], "job": ["cook", "smith"], "count": [2.0, -1.5]})
    >>> read_release(frame, ("sex",), "job", count="count").count.tolist()
    [2.0, -1.5]
    """
    from cellrisk.counts.sources import open_records

    if isinstance(released, Release):
        if count or bins:
            fix = f"leave {argument('count')} and {argument('bins')} out"
            raise InvalidInput("the released table has its counts and bins already", fix=fix, code="count")
        released, count = released.frame, str(released.frame.columns[-1])
    schema = Schema(quasi_identifiers, (sensitive,), bins, count=count)
    names = schema.quasi_identifiers + schema.sensitive
    opened: dict[str, Any] = {"table": table, "engine": engine, "count_option": "--released-count"}
    with open_records(released, schema, Resources.of(None), **opened) as records:
        chosen = {}
        for place, name in enumerate(names):
            check_type(name, records.types[f"c{place}"])
            chosen[f"c{place}"] = plain_value(f"c{place}", records.types[f"c{place}"])
        if isinstance(schema.count, str):
            chosen[f"c{len(names)}"] = f"c{len(names)}"
        kept = records.select(chosen)
        found = kept.connection.sql(f"SELECT * FROM {kept.name} LIMIT {MOST_ROWS + 1}").to_arrow_table()
        if len(found) > MOST_ROWS:
            what = "the released table has too many rows to bring into memory"
            raise InvalidInput(what, allowed=f"up to {MOST_ROWS:,}", code="too-many-rows")
        columns = [_read_column(records, place, name, found[f"c{place}"]) for place, name in enumerate(names)]
        binned = {name: _label_bins(records, names.index(name), name, bins) for name, bins in schema.bins.items()}
    counts = None
    if isinstance(schema.count, str):
        counts = read_counts(schema.count, found[f"c{len(names)}"].to_numpy())
    codes = np.stack([column.codes for column in columns], axis=1)
    first, number = find_distinct(codes.T, [max(len(column.labels), 1) for column in columns])
    times = found["n"].to_numpy() if records.rows == "n" else None
    listed = np.bincount(number, times, minlength=len(first)).astype(np.int64)
    twice = int(np.count_nonzero(listed > 1))
    if counts is not None and twice:
        what, got = "the released table counts some combinations more than once", f"{twice:,} of {len(listed):,}"
        fix = f"add their counts up, or leave {argument('count')} out if each row is a record"
        raise InvalidInput(what, got=got, allowed="one row a combination", fix=fix, code="counted-twice")
    shown = []
    for column in columns:
        bin_of = binned.get(column.name)
        labels = column.labels if bin_of is None else [bin_of[label] for label in column.labels]
        shown.append(_unify(column.name, labels, column.codes[first]))
    counted = listed.astype(np.float64) if counts is None else counts[first]
    return ReleasedCounts(tuple(shown), counted, listed, is_microdata=counts is None)


def leave_out_missing(released: ReleasedCounts, rule: str) -> tuple[ReleasedCounts, int]:
    """Apply the original's rule for missing values to a release, and say how many rows that leaves out."""
    absent = np.any([column.missing for column in released.columns], axis=0)
    rows = int(released.listed[absent].sum())
    if rule == "category" or not rows:
        return released, 0
    if rule == "error":
        what = "the released table has missing values, which the original was said not to have"
        fix = f"tabulate the original with {argument('missing', 'category')} or {argument('missing', 'drop')}"
        raise InvalidInput(what, got=number_of(rows, "row"), fix=fix, code="missing-values")
    columns = tuple(replace(column, codes=column.codes[~absent]) for column in released.columns)
    return replace(released, columns=columns, count=released.count[~absent], listed=released.listed[~absent]), rows


def _read_column(records: Relation, place: int, name: str, column: Any) -> LabelledColumn:
    """An Arrow column as labels, which are those that `tabulate` gives its values."""
    encoded, kind = column.combine_chunks().dictionary_encode(), kind_of(records, f"c{place}")
    labels: list[str | None] = [label_key(value, kind, None) for value in encoded.dictionary.to_pylist()]
    if encoded.indices.null_count:
        labels.append(None)
    codes = encoded.indices.fill_null(max(len(labels) - 1, 0))
    return _unify(name, labels, np.array(codes.to_numpy(zero_copy_only=False), np.int64))


def _unify(name: str, labels: Sequence[str | None], codes: Integers) -> LabelledColumn:
    """A column in which each label stands once."""
    different = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    places = np.array([different[label] for label in labels], np.int64)
    return LabelledColumn(name, tuple(different), places[codes] if len(places) else codes)


def _label_bins(records: Relation, place: int, name: str, binning: Binning) -> dict[str | None, str | None]:
    """The label of the bin of each value, by that of the value; a text that is not a number is taken for a bin's."""
    column, kind = f"c{place}", kind_of(records, f"c{place}")
    type_of_values = records.types[column]
    both = f"{plain_value(column, type_of_values)}, {bin_value(name, column, type_of_values, binning)}"
    labels: dict[str | None, str | None] = {None: None}
    for value, number in records.fetch(f"SELECT DISTINCT {both} FROM {{rows}}"):
        label = None if value is None else label_key(value, kind, None)
        if number == NO_BIN and (kind != "text" or NUMBER.fullmatch(value)):
            raise InvalidInput("a released number is too large for its bins", fix="use larger bins", code="bins")
        labels[label] = label if number == NO_BIN else None if number is None else binning.label(number)
    return labels
