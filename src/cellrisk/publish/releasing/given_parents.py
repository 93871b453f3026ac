"""Published parent counts as they are given: a file of a release, a data frame, or the answer of `release`."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import mechanism
from cellrisk.publish.matching import LabelledColumn
from cellrisk.publish.releasing.consistency import MOST_TOTAL
from cellrisk.publish.releasing.parents import Parents
from cellrisk.publish.releasing.release_result import COUNT, Release, check_format, say_observed
from cellrisk.publish.releasing.saving import name_counts, read_description
from cellrisk.system.arrays import Floats, Integers

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 1_000
"""Characters of a sentence that is taken from the description of the parents."""


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
        return replace(found, **_read_guarantee(given.to_dict()))
    if isinstance(given, pd.DataFrame):
        return _take_apart(given, count, True, "the data frame that was given")
    if not isinstance(given, (str, os.PathLike)):
        raise InvalidInput(
            "parents must be a published table", got=type(given).__name__, allowed="a path, a data frame or a Release"
        )
    path = check_format(given)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput("the parent table cannot be read", got=f"{path} ({error.strerror})") from None
    digest = hashlib.sha256(content).hexdigest()
    described = read_description(path) or {}
    named = name_counts(path, described)
    if named is not None and described.get("sha256") != digest:
        raise InvalidInput(
            "the parent table is not the one that its description names",
            got=f"{path.name} with another sha256",
            fix="restore the file as it was published",
        )
    complete = named is None or (described.get("dense", True) and not described.get("observed_cells_only", False))
    found = _take_apart(_decode(path, content), count or named, bool(complete), path.name, digest)
    known = _read_guarantee(described) if described.get("sha256") == digest else {}
    return replace(found, path=path.absolute(), **known)


def _read_guarantee(described: dict[str, Any]) -> dict[str, Any]:
    """The guarantee of a description, and its exceptions; nothing where it is not as `release` writes it."""
    try:
        loss, exceptions = described["guarantee"], described["not_covered"]
        made = mechanism("discrete-gaussian" if loss["delta"] else "geometric", **loss)
        said = (*say_observed(described["observed_levels"], described["observed_cells_only"]), *exceptions)
        fits = made.neighbours == loss["neighbours"] and made.epsilon >= described["mechanism"]["epsilon"]
        plain = all(each.isprintable() and len(each) <= LONGEST for each in said)
        return {"guarantee": made, "exceptions": said} if fits and plain and isinstance(exceptions, list) else {}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return {}


def _decode(path: Path, content: bytes) -> pd.DataFrame:
    import pandas as pd

    try:
        if path.suffix.lower() == ".csv":
            return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, encoding="utf-8")
        return pd.read_parquet(io.BytesIO(content))
    except (ValueError, OSError):  # pandas' and Arrow's own errors are of these kinds
        raise InvalidInput(f"the parent table is no {path.suffix.lower()} file", got=path.name) from None


def _take_apart(
    frame: pd.DataFrame, count: str | None, complete: bool, name: str, sha256: str | None = None
) -> Parents:
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
    return Parents(tuple(columns), _read_counts(frame.iloc[:, names.index(count)]), complete, name, sha256)


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
