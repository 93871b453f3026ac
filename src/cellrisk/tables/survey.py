"""The survey: one pass over the source that finds every flaw, counts what is missing, and lists the levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.tables.coding import MOST_RECORDS, Flaw, code_columns
from cellrisk.tables.engine import held
from cellrisk.tables.levels import MOST_LEVELS, Levels, Seen, order_levels
from cellrisk.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Survey:
    """What one pass over a source has found."""

    coded: ir.Table
    """The records to count: quasi-identifiers q0, q1, ..., sensitive y0, y1, ..., and w where records have counts."""
    kinds: dict[str, str]
    """How the values of each column become labels."""
    levels: tuple[Levels, ...]
    records: int
    """How many records there are to count."""
    dropped: int
    missing: dict[str, int]
    """Records with a missing value, for each sensitive column that has any."""


def survey_source(table: ir.Table, schema: Schema) -> Survey:
    """Checks the records of a source and codes its columns for counting; refuses what would give a wrong number."""
    coding = code_columns(table, schema)
    coded = coding.table
    names = dict(zip([name for name in coded.columns if name[0] in "qy"], schema.columns, strict=False))
    keep = reduce(and_, [coded[name].notnull() for name in names]) if schema.missing == "drop" else None
    facts = {f"flaw{place}": coded.count(where=coded[f"flaw{place}"]) for place in range(len(coding.flaws))}
    # Counting finds the missing quasi-identifiers of its own; only a rule that acts on them must read them here.
    watched = names if schema.missing != "category" else [name for name in names if name.startswith("y")]
    facts |= {f"missing_{name}": count_records(coded, coded[name].isnull()) for name in watched}
    facts |= {"rows": coded.count(), "total": count_records(coded)}
    facts |= {"kept_rows": coded.count(where=keep), "kept": count_records(coded, keep)}
    keys = [name for name in names if name.startswith("y")]
    with held(coded.group_by(keys).aggregate(**facts)) as groups:
        totals = groups.aggregate(**{name: groups[name].sum() for name in facts}).to_pyarrow().to_pylist()[0]
        check_totals(totals, coding.flaws, schema)
        found = {names[name]: int(totals[f"missing_{name}"]) for name in watched}
        missing = {column: number for column, number in found.items() if number}
        check_missing(missing, schema)
        check_kept(totals)
        levels = tuple(
            find_levels(groups, key, name, coding.kinds[key], schema)
            for key, name in zip(keys, schema.sensitive, strict=True)
        )
    kept = coded if keep is None else coded.filter(keep)
    columns = {name: kept[name] for name in names}
    if "w" in coded.columns:
        columns["w"] = kept["w"].cast("int64")
    records = int(totals["kept"])
    return Survey(kept.select(**columns), coding.kinds, levels, records, int(totals["total"]) - records, missing)


def count_records(coded: ir.Table, where: ir.BooleanValue | None = None) -> Any:
    """How many records satisfy a condition; rows of a count table stand for as many as their count says."""
    return coded.count(where=where) if "w" not in coded.columns else coded["w"].sum(where=where).fill_null(0.0)


def check_totals(totals: dict[str, Any], flaws: Sequence[Flaw], schema: Schema) -> None:
    """Refuses a source without records, or with a flaw."""
    if not totals["rows"]:
        raise InvalidInput("the source has no records", got="0 rows", allowed="1 row or more below the column names")
    for place, flaw in enumerate(flaws):
        rows = int(totals[f"flaw{place}"])
        if rows:
            raise flaw.refuse(f"{rows:,} such row{'s' if rows > 1 else ''} of {int(totals['rows']):,}")
    if totals["total"] > MOST_RECORDS:
        raise InvalidInput(
            f"the counts in column '{schema.count}' add up to too many records",
            allowed=f"at most {MOST_RECORDS} in all",
        )
    if not totals["total"]:
        raise InvalidInput(
            f"every count in column '{schema.count}' is zero", got="0 records", allowed="1 record or more"
        )


def check_missing(missing: dict[str, int], schema: Schema) -> None:
    if schema.missing == "error" and missing:
        raise InvalidInput(
            "the source has missing values",
            got=", ".join(f"{number:,} records in '{name}'" for name, number in missing.items()),
            fix="use missing='category' to make them a category of their own, or missing='drop'",
        )


def check_kept(totals: dict[str, Any]) -> None:
    if not totals["kept"]:
        raise InvalidInput(
            "no record is left: each has a missing value in a column in use",
            got=f"{int(totals['total']):,} records dropped",
            fix="use missing='category'",
        )


def find_levels(groups: ir.Table, key: str, name: str, kind: str, schema: Schema) -> Levels:
    """The levels of one sensitive column; a level that a count table lists with zeros only is a level too."""
    kept = groups.filter(groups.kept_rows > 0)
    seen = find_values(kept.group_by(key).aggregate(records=kept.kept.sum()), key, name)
    return order_levels(name, seen, kind, schema.binning(name), schema.declared(name))


def find_values(grouped: ir.Table, key: str, name: str) -> list[Seen]:
    """The values of a column, of which there must not be too many, and their records."""
    found = grouped.limit(MOST_LEVELS + 2).to_pyarrow()
    if len(found) > MOST_LEVELS + 1:
        raise InvalidInput(
            f"column '{name}' has more than {MOST_LEVELS:,} levels",
            allowed=f"up to {MOST_LEVELS:,}",
            fix=f"cut it into bins with bins={{'{name}': ...}}, or check that it is the right column",
        )
    return [
        Seen(value, int(number))
        for value, number in zip(found[key].to_pylist(), found["records"].to_pylist(), strict=True)
    ]
