"""From a source to a frequency table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.tables.coding import MOST_RECORDS
from cellrisk.tables.counting import count_cells
from cellrisk.tables.schema import Schema, read_names
from cellrisk.tables.sources import open_source
from cellrisk.tables.survey import survey_source
from cellrisk.tables.table import Attribute, FrequencyTable


def tabulate(
    source: Any,
    quasi_identifiers: str | Sequence[str],
    sensitive: str | Sequence[str],
    *,
    bins: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    count: str | None = None,
    missing: str = "category",
) -> FrequencyTable:
    """How many records share each combination of quasi-identifiers, and how their sensitive values are spread?

    source: path or glob of CSV or Parquet files, a pandas or polars frame, or a pyarrow table.
    quasi_identifiers, sensitive: a column name, or a list of them.
    bins: for a column of numbers, a width w, which gives (k*w, (k+1)*w], or a list of edges; right-closed.
    levels: for a sensitive column, all its levels in order; default the observed ones, sorted.
    count: the column of counts, where each row stands for that many records.
    missing: "category" (missing values are a category of their own), "drop" (records with one are left out, and the
    summary says how many), or "error".

    The counts are exact. Everything is computed at once; the result holds neither records nor cell keys.

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": ["f", "f", "m", "m"], "job": ["a", "a", "a", "b"]})
    >>> table = tabulate(people, "sex", "job")
    >>> print(table)
    4 records in 2 cells of sex; sensitive: job (2 levels)
    >>> list(table.profiles().rows())
    [((2,), 1), ((1, 1), 1)]
    """
    schema = Schema(
        read_names(quasi_identifiers, "quasi_identifiers"),
        read_names(sensitive, "sensitive"),
        bins,
        levels,
        count,
        missing,
    )
    with open_source(source, schema.columns) as table:
        survey = survey_source(table, schema)
        tally = count_cells(survey.coded, survey.levels)
    attributes = tuple(
        Attribute(name, counts, profiles, each.declared, each.missing)
        for name, counts, profiles, each in zip(
            schema.sensitive, tally.levels, tally.profiles, survey.levels, strict=True
        )
    )
    result = FrequencyTable(
        schema.quasi_identifiers, attributes, tally.homogeneity, schema.missing, survey.missing, survey.dropped
    )
    if result.n_records > MOST_RECORDS:
        raise InvalidInput("the counts add up to too many records", allowed=f"at most {MOST_RECORDS} in all")
    return result
