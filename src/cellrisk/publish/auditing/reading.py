"""A released table, whoever made it: labels as `tabulate` writes them, and counts with their signs and fractions."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timezone
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, argument
from cellrisk.publish.releasing.published_totals import LabelledColumn, read_counts
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.formatting import number_of

if TYPE_CHECKING:
    from cellrisk.counts.columns import Binning

MOST_ROWS = 20_000_000
"""Rows of a release that are brought into memory."""
TRAILING_ZEROS = re.compile(r"(\.\d*[1-9])0+(?!\d)")
"""Of a fraction of a second: Python writes six digits, engines as many as it takes."""


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
    from cellrisk.counts.columns import check_type, kind_of
    from cellrisk.counts.engine import Resources
    from cellrisk.counts.schema import Schema
    from cellrisk.counts.sources import open_records
    from cellrisk.publish.releasing.release_result import Release

    if isinstance(released, Release) and (count or bins):
        raise InvalidInput(
            "the released table has its counts and bins already",
            fix=f"leave {argument('count')} and {argument('bins')} out",
        )
    if isinstance(released, Release):
        released, count = released.frame, str(released.frame.columns[-1])
    schema = Schema(quasi_identifiers, (sensitive,), bins, count=count)
    names = schema.quasi_identifiers + schema.sensitive
    opened = {"table": table, "engine": engine, "count_option": "--released-count"}
    with open_records(released, schema, Resources.of(None), **opened) as records:
        for place, name in enumerate(names):
            check_type(name, records.types[f"c{place}"])
        kinds = [kind_of(records, f"c{place}") for place in range(len(names))]
        found = records.read(MOST_ROWS + 1)
    if len(found) > MOST_ROWS:
        raise InvalidInput("the released table has too many rows to bring into memory", allowed=f"up to {MOST_ROWS:,}")
    columns = [
        _read_column(name, found[f"c{place}"], kind)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    counts = None
    if isinstance(schema.count, str):
        counts = read_counts(schema.count, found[f"c{len(names)}"].to_numpy(), lambda _: ())
    codes = np.stack([column.codes for column in columns], axis=1)
    first, number = find_distinct(codes.T, [max(len(column.labels), 1) for column in columns])
    times = found["n"].to_numpy() if records.grouped else None
    listed = np.bincount(number, times, minlength=len(first)).astype(np.int64)
    twice = int(np.count_nonzero(listed > 1))
    if counts is not None and twice:
        raise InvalidInput(
            "the released table counts some combinations more than once",
            got=f"{twice:,} of {len(listed):,} combinations",
            allowed="one row a combination",
            fix=f"add their counts up, or leave {argument('count')} out if each row is a record",
        )
    if counts is not None:
        counts = counts[first]
    binned = []
    for column in columns:
        binning, labels = schema.bins.get(column.name), column.labels
        if binning is not None:
            labels = tuple(None if label is None else _label_bin(label, binning) for label in labels)
        binned.append(_unify(column.name, labels, column.codes[first]))
    counted = listed.astype(np.float64) if counts is None else counts
    return ReleasedCounts(tuple(binned), counted, listed, is_microdata=counts is None)


def leave_out_missing(released: ReleasedCounts, rule: str) -> tuple[ReleasedCounts, int]:
    """Apply the original's rule for missing values to a release, and say how many rows that leaves out."""
    absent = np.any([column.missing for column in released.columns], axis=0)
    rows = int(released.listed[absent].sum())
    if rule == "category" or not rows:
        return released, 0
    if rule == "error":
        raise InvalidInput(
            "the released table has missing values, which the original was said not to have",
            got=number_of(rows, "row"),
            fix=f"tabulate the original with {argument('missing', 'category')} or {argument('missing', 'drop')}",
        )
    columns = tuple(replace(column, codes=column.codes[~absent]) for column in released.columns)
    return replace(released, columns=columns, count=released.count[~absent], listed=released.listed[~absent]), rows


def _read_column(name: str, column: Any, kind: str) -> LabelledColumn:
    """An Arrow column as labels, which are those that `tabulate` gives its values."""
    encoded = column.combine_chunks().dictionary_encode()
    labels = [_label(value, kind) for value in encoded.dictionary.to_pylist()]
    if encoded.indices.null_count:
        labels.append(None)
    codes = encoded.indices.fill_null(max(len(labels) - 1, 0))
    return _unify(name, labels, np.array(codes.to_numpy(zero_copy_only=False), np.int64))


def _label(value: Any, kind: str) -> str | None:
    """One value as `tabulate` labels it; None for a missing one.

    >>> _label(2.0, "double"), _label(True, "boolean"), _label("2.0", "text"), _label(float("nan"), "double")
    ('2', 'True', '2.0', None)
    """
    from cellrisk.counts.levels import label_key

    if value is None or value != value:
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:  # labelled in UTC, as `tabulate` does
        value = f"{value.astimezone(timezone.utc).replace(tzinfo=None)}+00"
        return label_key(TRAILING_ZEROS.sub(r"\1", value), kind, None)
    text = str(value)
    if isinstance(value, datetime | time):
        text = TRAILING_ZEROS.sub(r"\1", text)
    return label_key(text, kind, None)


def _unify(name: str, labels: Sequence[str | None], codes: Integers) -> LabelledColumn:
    """A column in which each label stands once."""
    different = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    places = np.array([different[label] for label in labels], np.int64)
    return LabelledColumn(name, tuple(different), places[codes] if len(places) else codes)


def _label_bin(label: str, binning: Binning) -> str | None:
    """The label of the bin that holds a number. A label that is no number is taken for the label of a bin.

    >>> from cellrisk.counts.columns import EdgeBinning, WidthBinning
    >>> width, edges = WidthBinning(5), EdgeBinning((0, 65))
    >>> _label_bin("37", width), _label_bin("(35, 40]", width), _label_bin("70", edges)
    ('(35, 40]', '(35, 40]', 'above 65')
    """
    from cellrisk.counts.columns import EdgeBinning, WidthBinning

    try:
        number = float(label)
    except ValueError:
        return label
    if math.isnan(number):
        return None
    if abs(number) > binning.reach or math.isinf(number):
        raise InvalidInput("a released number is too large for its bins", fix="use larger bins")
    if isinstance(binning, EdgeBinning):
        return binning.label(bisect.bisect_left([float(edge) for edge in binning.edges], number) - 1)
    if isinstance(binning, WidthBinning):
        p, q = binning.fraction.numerator, binning.fraction.denominator
        place = math.ceil(number * q / p) - 1
        place += (number > (place + 1) * p / q) - (number <= place * p / q)
        return binning.label(place)
    raise InvalidInput("released numbers cannot be cut into bins of this kind", fix="release the labels of the bins")
