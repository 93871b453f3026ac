"""The words of `Entry`: one entry of a ledger."""

from __future__ import annotations

from cellrisk.repeat.ledger.entry import BookedTable, Entry, show_on_one_line
from cellrisk.system.formatting import aligned


def headline(entry: Entry) -> str:
    """The entry in a sentence, on one line."""
    cohort = f"'{show_on_one_line(entry.cohort)}'"
    if entry.kind == "cohort":
        part = f", part of '{show_on_one_line(entry.part_of)}'" if entry.part_of else ""
        return f"Cohort {cohort}{part}."
    if entry.limit is not None:
        return f"Limit: {entry.limit.describe()}."
    by = ", ".join(map(show_on_one_line, entry.quasi_identifiers))
    what = f"{show_on_one_line(entry.attribute)} by {by}" if entry.attribute and by else entry.attribute or by
    if entry.tables:
        what = f"{len(entry.tables)} tables of {what}"
    loss = f" at {entry.loss.describe()}" if entry.loss is not None else ""
    return f"Release of {show_on_one_line(what)} about cohort {cohort}{loss}."


def describe(entry: Entry) -> str:
    """The entry as it is printed: its sentence, and a table of its fields."""
    rows = [["entry", str(entry.number)], ["time", entry.time], ["cohort", show_on_one_line(entry.cohort)]]
    if entry.loss is not None:
        mechanism = entry.loss.mechanism
        rows += [["loss", entry.loss.describe()], ["neighbours", entry.loss.neighbours]]
        rows += [["mechanism", mechanism.name if mechanism else "not known"]]
        rows += [["scale of the noise", f"{entry.scale:.6g}"]] if entry.scale is not None else []
    rows += [[f"table {number}", _describe_table(table)] for number, table in enumerate(entry.tables, start=1)]
    if entry.purpose:
        rows.append(["purpose", show_on_one_line(entry.purpose)])
    if entry.file is not None:
        rows += [["file", show_on_one_line(entry.file.path or entry.file.name)], ["SHA-256", entry.file.sha256]]
    if entry.clock_behind is not None:
        rows.append(["clock", f"{entry.clock_behind:g} s behind the entry before"])
    rows += [["written by", f"cellrisk {entry.version}"], ["previous", entry.previous], ["digest", entry.digest]]
    return f"{headline(entry)}\n\n{aligned(rows[0], rows[1:], left=2)}"


def _describe_table(table: BookedTable) -> str:
    called = f'"{show_on_one_line(table.name)}": ' if table.name else ""
    part = f"; {show_on_one_line(table.where)}" if table.where else ""
    return f"{called}{', '.join(map(show_on_one_line, table.quasi_identifiers))}{part}, at {table.loss.describe()}"
