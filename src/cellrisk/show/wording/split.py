"""The words of `Split`: three ways to share a total among the tables of a set."""

from __future__ import annotations

from cellrisk.repeat.together.splitting import Split
from cellrisk.system.formatting import CURATOR_NOTE, aligned, percent, say_people


def headline(split: Split) -> str:
    """What a member of a board can repeat."""
    even, least, fewest = split.ways
    shared = (
        f"Of epsilon {split.total:g} in all, even shares reveal the {split.sensitive} of "
        f"{say_people(even.caused)} people because of their own records"
    )
    if even.caused - fewest.caused <= 0.005 * even.caused:
        return f"{shared}, and no shares were found that reveal noticeably fewer within the error allowed."
    return (
        f"{shared}; the shares that reveal fewest, {_list(fewest.parts)}, reveal {say_people(fewest.caused)}, with an "
        f"error {percent(fewest.error / least.error - 1.0)} above the least."
    )


def paragraphs(split: Split) -> list[str]:
    """What is printed below the headline."""
    names = [table.name or f"table {table.number}" for table in split.tables]
    rows = [
        [way.name, *(f"{part:.3g}" for part in way.parts), f"{way.error:.4g}"]
        + [say_people(people) for people in (way.right, way.caused, way.largest)]
        for way in split.ways
    ]
    head = [f"shares of epsilon {split.total:g}", *names, "error", "right", "caused", "by some tables"]
    meant = (
        "error: the bound on the total variation distance of each table from the true one, weighted by use.\n"
        "least caused: the best shares found whose error is at most "
        f"{percent(split.slack)} above the least, or that of even shares.\n"
        "right and caused are of elimination by all tables; by some tables: the most that some of them do."
    )
    return [aligned(head, rows), _errors_table(split), meant, CURATOR_NOTE]


def _errors_table(split: Split) -> str:
    head = ["mean error of a count", "use", "cells", *(way.name for way in split.ways)]
    rows = [
        [f"{table.number}: {table.name or table.describe()}", f"{use:.3g}", f"{cells:,}"]
        + [f"{way.mean_errors[place]:.3g}" for way in split.ways]
        for place, (table, use, cells) in enumerate(zip(split.tables, split.use, split.cells, strict=True))
    ]
    return aligned(head, rows)


def _list(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)
