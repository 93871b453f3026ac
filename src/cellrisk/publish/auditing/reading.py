"""A released table, whoever made it: labels as `tabulate` writes them, and counts with their signs and fractions."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.schema import NO_COUNT, NONE_IS_A_COLUMN
from cellrisk.errors import InvalidInput
from cellrisk.publish.matching import LabelledColumn
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.text import number_of

if TYPE_CHECKING:
    from cellrisk.counts.binning import Binning
    from cellrisk.counts.schema import Schema
    from cellrisk.counts.table import FrequencyTable

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

    def __post_init__(self) -> None:
        lengths = {len(column.codes) for column in self.columns} | {len(self.count), len(self.listed)}
        if len(lengths) != 1:
            raise InvalidInput("the columns of a release must have the same length")
        if not np.isfinite(self.count).all():
            raise InvalidInput("released counts must be finite numbers")


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
    """The released table in any of its forms: a frequency table, the answer of `release`, or a source.

    >>> import pandas
    >>> frame = pandas.DataFrame({"sex": ["f", "m"], "job": ["cook", "smith"], "count": [2.0, -1.5]})
    >>> read_release(frame, ("sex",), "job", count="count").count.tolist()
    [2.0, -1.5]
    """
    from cellrisk.counts.schema import Schema
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.publish.releasing.release_result import Release

    if isinstance(released, FrequencyTable):
        _check_plain(count, bins, "a frequency table")
        return _read_cells(released, quasi_identifiers, sensitive)
    if isinstance(released, Release):
        _check_plain(count, bins, "the answer of release")
        released, count = released.to_frame(), str(released.to_frame().columns[-1])
    schema = Schema(quasi_identifiers, (sensitive,), bins, count=count)
    return _read_source(released, schema, table, engine)


def leave_out_missing(released: ReleasedCounts, rule: str) -> tuple[ReleasedCounts, int]:
    """Applies the original's rule for missing values to a release, and says how many rows that leaves out."""
    absent = np.any([column.missing for column in released.columns], axis=0)
    rows = int(released.listed[absent].sum())
    if rule == "category" or not rows:
        return released, 0
    if rule == "error":
        raise InvalidInput(
            "the released table has missing values, which the original was said not to have",
            got=number_of(rows, "row"),
            fix="tabulate the original with missing='category' or missing='drop'",
        )
    columns = tuple(replace(column, codes=column.codes[~absent]) for column in released.columns)
    return replace(released, columns=columns, count=released.count[~absent], listed=released.listed[~absent]), rows


def _check_plain(count: str | bool | None, bins: Mapping[str, Any] | None, what: str) -> None:
    if count or bins:
        raise InvalidInput(f"{what} has its counts and bins already", fix="leave count= and bins= out")


def _read_cells(table: FrequencyTable, quasi_identifiers: tuple[str, ...], name: str) -> ReleasedCounts:
    cells = table.cells(name)
    places = [cells.place(name) for name in quasi_identifiers]
    if len(places) != len(cells.names):
        raise InvalidInput(
            "the released table has other quasi-identifiers",
            got=", ".join(cells.names),
            allowed=", ".join(quasi_identifiers),
        )
    columns = [
        LabelledColumn(name, _name_missing(cells.domains[place].labels, cells.domains[place].missing), codes)
        for name, place, codes in zip(quasi_identifiers, places, cells.codes[cells.cell].T[places], strict=True)
    ]
    ones = np.ones(len(cells.count), np.int64)
    sensitive = LabelledColumn(name, _name_missing(cells.levels, table.attribute(name).missing_level), cells.level)
    return ReleasedCounts((*columns, sensitive), cells.count.astype(np.float64), ones, is_microdata=False)


def _name_missing(labels: tuple[str, ...], missing: bool) -> tuple[str | None, ...]:
    return (*labels[:-1], None) if missing else labels


def _read_source(source: Any, schema: Schema, table: str | None, engine: str | None) -> ReleasedCounts:
    from cellrisk.counts.columns import check_type, kinds_of
    from cellrisk.counts.count_tables import refuse_counts
    from cellrisk.counts.resources import Resources
    from cellrisk.counts.sources import open_records

    names = schema.quasi_identifiers + schema.sensitive
    with open_records(source, schema, Resources.of(None), table=table, engine=engine) as (records, schema, others):
        for place, name in enumerate(names):
            check_type(name, records.types[f"c{place}"])
        kinds = [kinds_of(records)[f"c{place}"] for place in range(len(names))]
        found = records.read(MOST_ROWS + 1)
    if len(found) > MOST_ROWS:
        raise InvalidInput("the released table has too many rows to bring into memory", allowed=f"up to {MOST_ROWS:,}")
    columns = [
        _read_column(name, found[f"c{place}"], kind)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    counts = _read_counts(schema.count, found[f"c{len(names)}"]) if isinstance(schema.count, str) else None
    codes = np.stack([column.codes for column in columns], axis=1)
    first, number = find_distinct(codes.T, [max(len(column.labels), 1) for column in columns])
    times = found["n"].to_numpy() if records.grouped else None
    listed = np.bincount(number, times, minlength=len(first)).astype(np.int64)
    if counts is not None:
        _check_once(listed)
        counts = counts[first]
    elif schema.count is None:
        once = len(listed) > 1 and bool((listed == 1).all())
        refuse_counts(source, names, others, once, table=table, engine=engine, option="--released-count", noisy=True)
    listed_once = (replace(column, codes=column.codes[first]) for column in columns)
    binned = tuple(_bin_column(column, schema.binning(column.name)) for column in listed_once)
    counted = listed.astype(np.float64) if counts is None else counts
    return ReleasedCounts(binned, counted, listed, is_microdata=counts is None)


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
    text = str(value)
    if isinstance(value, datetime | time):
        text = TRAILING_ZEROS.sub(r"\1", text)
    return label_key(text, kind, None)


def _unify(name: str, labels: Sequence[str | None], codes: Integers) -> LabelledColumn:
    """A column in which each label stands once."""
    different = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    places = np.array([different[label] for label in labels], np.int64)
    return LabelledColumn(name, tuple(different), places[codes] if len(places) else codes)


def _bin_column(column: LabelledColumn, binning: Binning | None) -> LabelledColumn:
    """A column with its numbers as labels of their bins, where it is to be binned."""
    if binning is None:
        return column
    labels = [None if label is None else _label_bin(label, binning) for label in column.labels]
    return _unify(column.name, labels, column.codes)


def _read_counts(name: str, column: Any) -> Floats:
    """Counts as they are released: any finite numbers."""
    import pandas as pd

    help_none = NONE_IS_A_COLUMN if name == NO_COUNT else None
    given = pd.Series(column.to_numpy())
    if pd.api.types.is_bool_dtype(given.infer_objects()) or pd.api.types.is_datetime64_any_dtype(given):
        raise InvalidInput(
            f"the count column '{name}' of the released table holds no numbers",
            got=f"type {column.type}",
            fix=help_none,
        )
    missing = given.isna().to_numpy()
    number = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = ~missing & ~np.isfinite(number)
    for flaw, what, fix in (
        (missing, "has missing counts", help_none or "leave suppressed counts out, or release them as 0"),
        (wrong, "holds counts that are no finite numbers", help_none),
    ):
        if flaw.any():
            found = f"the count column '{name}' of the released table {what}"
            raise InvalidInput(found, got=number_of(int(flaw.sum()), "such row"), fix=fix)
    return np.asarray(number)


def _check_once(listed: Integers) -> None:
    """Refuses a table of counts that lists a combination twice."""
    twice = int(np.count_nonzero(listed > 1))
    if twice:
        raise InvalidInput(
            "the released table counts some combinations more than once",
            got=f"{twice:,} of {len(listed):,} combinations",
            allowed="one row a combination",
            fix="add their counts up, or leave count= out if each row is a record",
        )


def _label_bin(label: str, binning: Binning) -> str | None:
    """The label of the bin that holds a number. A label that is no number is taken for the label of a bin.

    >>> from cellrisk.counts.binning import EdgeBinning, WidthBinning
    >>> width, edges = WidthBinning(5), EdgeBinning((0, 65))
    >>> _label_bin("37", width), _label_bin("(35, 40]", width), _label_bin("70", edges)
    ('(35, 40]', '(35, 40]', 'above 65')
    """
    from cellrisk.counts.binning import EdgeBinning, WidthBinning

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
