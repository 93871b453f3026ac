"""Published parent counts as they are given: a file of a release, a data frame, or the answer of `release`."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.publish.matching import LabelledColumn
from cellrisk.publish.releasing.consistency import MOST_TOTAL
from cellrisk.publish.releasing.loading import decode, find_count_column, read_content
from cellrisk.publish.releasing.parents import Parents
from cellrisk.publish.releasing.release_result import COUNT, Release, say_observed
from cellrisk.publish.releasing.saving import check_format
from cellrisk.system.arrays import Floats, Integers

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = ("no-description", "description")
"""Refusals of a release after which its counts are taken, and nothing is known of their guarantee."""


def read_parents(given: Any, count: str | None = None) -> Parents:
    """Published parent counts: the path of a release (.csv or .parquet), a data frame, or the answer of `release`.

    The column of counts is the one that the file's description names, or ``count``, or one that is called "count".

    >>> import pandas
    >>> parents = read_parents(pandas.DataFrame({"sex": ["f", "m"], "count": [3, 5]}))
    >>> parents.counts.tolist(), [column.name for column in parents.columns]
    ([3, 5], ['sex'])
    """
    import pandas as pd

    if isinstance(given, Release):
        complete = given.dense and not given.observed_cells_only
        found = _take_apart(given.frame, str(given.frame.columns[-1]), complete, "the release that was given")
        exceptions = (*say_observed(given.observed_levels, given.observed_cells_only), *given.not_covered)
        return replace(found, guarantee=given.composed, exceptions=exceptions if given.composed else ())
    if isinstance(given, pd.DataFrame):
        return _take_apart(given, count, True, "the data frame that was given")
    if not isinstance(given, (str, os.PathLike)):
        raise InvalidInput(
            "parents must be a published table", got=type(given).__name__, allowed="a path, a data frame or a Release"
        )
    path = check_format(given)
    try:
        loaded = Release.load(path)
    except InvalidInput as refusal:
        if refusal.code not in UNKNOWN:
            raise
        frame, column = decode(path, read_content(path)), count or find_count_column(path)
        found = _take_apart(frame, column, True, path.name)
    else:
        found = replace(read_parents(loaded), name=path.name)
    return replace(found, path=path.absolute(), sha256=hashlib.sha256(read_content(path)).hexdigest())


def _take_apart(frame: pd.DataFrame, count: str | None, complete: bool, name: str) -> Parents:
    import pandas as pd

    count = COUNT if count is None else count
    names = [str(column) for column in frame.columns]
    if count not in names:
        raise UnknownName(
            "the parent table has no such column of counts",
            got=repr(count),
            allowed=", ".join(names),
            fix="name it with parent_count=",
        )
    if len(set(names)) != len(names):
        raise InvalidInput("the columns of the parent table must differ", got=", ".join(names))
    columns = []
    for place, column in enumerate(names):
        if column != count:
            codes, values = pd.factorize(frame.iloc[:, place], use_na_sentinel=False)
            labels = tuple(None if pd.isna(value) else str(value) for value in values)
            columns.append(LabelledColumn(column, labels, codes.astype(np.int64)))
    return Parents(tuple(columns), _read_counts(frame.iloc[:, names.index(count)]), complete, name)


def _read_counts(given: pd.Series) -> Integers:
    """Counts as whole numbers from 0 on."""
    import pandas as pd

    number: Floats = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    with np.errstate(invalid="ignore"):
        flaws = (
            (~np.isfinite(number), "holds parent counts that are missing or no numbers", None),
            (number < 0, "holds negative parent counts", "use a parent release with clamp, which has none"),
            (number != np.rint(number), "holds parent counts that are no whole numbers", "round them first"),
            (number > MOST_TOTAL, "holds parent counts that are too large", None),
        )
    for wrong, what, fix in flaws:
        rows = int(np.count_nonzero(wrong))
        if rows:
            raise InvalidInput(f"the count column '{given.name}' {what}", got=f"{rows:,} of {len(number):,}", fix=fix)
    return number.astype(np.int64)
