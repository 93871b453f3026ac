"""From a source to a frequency table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from cellrisk.counts.counting import select_records
from cellrisk.counts.engine import Resources
from cellrisk.counts.filters import Part, read_part, take_part, with_part
from cellrisk.counts.schema import Schema, read_names
from cellrisk.counts.sources import open_records
from cellrisk.counts.table import FrequencyTable
from cellrisk.counts.unit import Unit
from cellrisk.system.checks import read_list, require_path, require_whole_number
from cellrisk.system.choices import EngineName, MissingRule, OutsideRule
from cellrisk.system.progress import Progress


def tabulate(
    source: Any,
    quasi_identifiers: str | Sequence[str],
    sensitive: str | Sequence[str],
    *,
    bins: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    count: str | bool | None = None,
    missing: MissingRule = "category",
    outside: OutsideRule = "error",
    table: str | None = None,
    engine: EngineName | None = None,
    memory_limit: str | int | None = None,
    encoding: str | None = None,
    wide: Sequence[str] = (),
    where: Mapping[str, Any] | Part | None = None,
    metadata: str | os.PathLike[str] | None = None,
    person: str | None = None,
    contributions: int | None = None,
    per_group: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FrequencyTable:
    """How many records share each combination of quasi-identifiers, and how their sensitive values are spread?

    The counts are exact. The result holds no records. It holds the cells with their keys (`cells`) up to 20 million
    combinations of values, and as memory allows; once pickled, it holds none.

    Parameters
    ----------
    source
        Path or glob of CSV or Parquet files, a pandas, polars or narwhals frame, a pyarrow table or dataset, any object
        that gives a stream of Arrow batches, a DuckDB relation, a Spark DataFrame; a file of Excel,
        SPSS, SAS or Stata, Feather, JSON lines, a zip with one table; or a DuckDB file or a database's address, with
        ``table``. Of a workbook with several sheets, ``table`` names one.
    quasi_identifiers, sensitive
        A column name, or a list of them.
    bins
        For a column of numbers, a width w, which gives (k*w, (k+1)*w], or a list of edges; right-closed. Edges declare
        their bins, and one on either side for what lies outside.
    levels
        For a column, all its levels in order; default the observed ones, sorted. They are the declared domain, and
        their labels are as declared, however the source spells them: True counts true and TRUE in.
    count
        The column of counts, if each row stands for that many records. False or "none" says that each row is a
        person; without it, a source with a column that is named like counts and not in use is refused.
    missing
        "category" (missing values are a category of their own), "drop" (records with one are left out, and the summary
        says how many), or "error".
    outside
        What becomes of records outside the declared labels: those with a value that is not among the declared levels of
        its column, or that cannot be put into a bin. "error" refuses the source; "drop" leaves them out, so that what
        is released depends on what was declared and not on such a record. Then a table may hold no record at all.
    table
        The table of a DuckDB file or of a database's address, or the sheet of a workbook.
    engine
        "duckdb" (embedded, the default for files and frames) or "spark".
    memory_limit
        What the embedded engine may hold, for example "4GB"; past it, it spills to a private folder. Default a share of
        the memory that is free.
    encoding
        That of text files which are not UTF-8, for example "latin-1"; UTF-16 is recognised by its mark.
    wide
        The columns of counts of a wide table, each of which is named like a level of the one sensitive attribute. The
        attribute has no column then, and ``sensitive`` gives it a name.
    where
        A part of the people: what columns hold, such as ``{"sex": "f", "age": {"from": 18, "below": 65}}``. Default
        everybody.
    metadata
        A file that declares levels and bounds of columns: CSVW or a Table Schema (.json), or SmartNoise's metadata
        (.yaml). What ``bins`` and ``levels`` say of a column goes before it; bounds turn a width into edges.
    person, contributions, per_group
        The column that identifies people, and how many records of one person are kept: so many in all, and so many in
        one count. Which ones is drawn for each person alone: by ``seed`` here, and by secure random bits in `release`.
        A record without a person is a person of its own here, and is left out in `release` and by the rule "drop" of
        ``missing``. Without ``person``, ``contributions`` states a bound that nobody checks. Default one record per
        person, which is assumed.
    seed
        Of that draw.
    progress
        Called now and then with the share of the running step that is done.

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": ["f", "f", "m", "m"], "job": ["a", "a", "a", "b"]})
    >>> table = tabulate(people, "sex", "job")
    >>> print(table)
    4 records in 2 groups of sex; sensitive: job (2 levels)
    >>> list(table.profiles().rows())
    [((2,), 1), ((1, 1), 1)]
    """
    quasi, named = read_names(quasi_identifiers, "quasi_identifiers"), read_names(sensitive, "sensitive")
    if metadata is not None:
        from cellrisk.counts.metadata import read_metadata

        require_path("metadata", metadata)
        bins, levels = read_metadata(metadata, source).declare((*quasi, *named), bins, levels)
    columns = tuple(read_list("wide", wide, "columns"))
    unit = Unit.read(person, contributions, per_group)
    schema = Schema(quasi, named, bins, levels, count, missing, outside, columns, person, unit)
    require_whole_number("seed", seed, 0)
    part = read_part(where)
    part.check(schema.sensitive)
    resources = Resources.of(memory_limit, progress)
    opened = {"table": table, "engine": engine, "encoding": encoding}
    with open_records(source, with_part(schema, part), resources, **opened) as records:
        return select_records(take_part(records, schema, part), schema, resources, seed)
