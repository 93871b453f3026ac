"""A draft of cellrisk.toml for a file: roles, levels as they occur, and bins to fill in."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.columns import kinds_of, plain_value
from cellrisk.counts.levels import observe
from cellrisk.counts.preview import PreviewedColumn
from cellrisk.counts.resources import Resources
from cellrisk.counts.roles import COUNT, FEW_LEVELS, QUASI_IDENTIFIER, SENSITIVE, Columns
from cellrisk.counts.sources import open_source
from cellrisk.errors import InvalidInput
from cellrisk.system.formatting import number_of
from cellrisk.system.results import Result

MOST_LISTED = 1000
"""Levels of a column of text that are written down."""
HEAD = """\
# A draft: levels were read from the data and must be checked against a public list, such as a code book.
# Add values that can occur but do not, and delete values that the public list does not have.
# A release is covered by its guarantee only if its levels come from outside the data.
"""
BINS = (
    "# Numbers with many values need bins. Write edges that do not come from the data, and delete the leading '# '.\n"
)


@dataclass(frozen=True, repr=False)
class SettingsDraft(Result):
    """A settings file that was drafted from a file, by what it declares."""

    path: str
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    declared: tuple[str, ...]
    """The columns whose levels were written down."""
    unfinished: tuple[str, ...]
    """The columns in use that need bins or levels still."""

    @property
    def headline(self) -> str:
        """What was written, and what to do with it."""
        declared = number_of(len(self.declared), "column")
        rest = f" Write the bins or levels of {', '.join(self.unfinished)}." if self.unfinished else ""
        return (
            f"{self.path} declares the levels of {declared} as they occur in the data: check them against a public "
            f"list.{rest} Every command in this folder reads a file named cellrisk.toml; others with --config."
        )

    def to_dict(self) -> dict[str, Any]:
        """The draft as JSON-ready values, without its levels."""
        return {
            "file": self.path,
            "qid": list(self.quasi_identifiers),
            "sensitive": list(self.sensitive),
            "declared": list(self.declared),
            "unfinished": list(self.unfinished),
        }

    def _numbers(self) -> list[dict[str, Any]]:
        names = (*self.quasi_identifiers, *self.sensitive)
        return [{"column": name, "declared": name in self.declared} for name in names]

    def _paragraphs(self) -> tuple[str, ...]:
        return ()


def draft_settings(
    columns: Columns,
    source: str | os.PathLike[str],
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    table: str | None = None,
    encoding: str | None = None,
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return the text of a settings file, and the names of columns by kind: qid, sensitive, declared, unfinished.

    Roles that are not given are those that `columns` suggests. Columns in no use are written as comments.
    """
    roles, (likely, about) = columns.roles, columns.suggested
    quasi = tuple(quasi_identifiers) or tuple(name for name in likely if name not in sensitive)
    about = tuple(sensitive) or tuple(name for name in about if name not in quasi)
    if not quasi or not about:
        raise InvalidInput(
            "no column looks like a quasi-identifier, or none looks sensitive",
            fix="name them: --qid age,sex --sensitive income",
            code="no-roles",
        )
    previewed = {column.name: column for column in columns.preview.columns}
    used = [*quasi, *about]
    others = [name for name, role in roles.items() if role in (QUASI_IDENTIFIER, SENSITIVE) and name not in used]
    listed = [name for name in (*used, *others) if _has_levels(previewed[name])]
    levels = read_levels(source, listed, table, encoding)
    lines = [HEAD, f"qid = {_list(quasi)}", f"sensitive = {_list(about)}"]
    counts = [name for name, role in roles.items() if role == COUNT and name not in used]
    lines += [f"count = {_quote(counts[0])}  # each row stands for that many people"] if counts else []
    lines += ["", "[levels]"]
    for name in levels:
        lines.append(f"{'' if name in used else '# '}{_quote(name)} = {_list(levels[name])}")
    declared = tuple(name for name in used if name in levels)
    unfinished = tuple(name for name in used if name not in levels)
    numbers = [name for name in (*used, *others) if name not in levels and previewed[name].kind == "number"]
    if numbers:
        lines += ["", "[bin]", BINS]
        lines += [f"# {_quote(name)} = [0, 10, 100]  # {_count(previewed[name])} different numbers" for name in numbers]
    lines += [
        f"# {_quote(name)} has too many values to be listed ({_count(previewed[name])}): leave it out"
        for name in unfinished
        if name not in numbers
    ]
    facts = {"qid": quasi, "sensitive": about, "declared": declared, "unfinished": unfinished}
    return "\n".join(lines) + "\n", facts


def read_levels(
    source: str | os.PathLike[str], names: Sequence[str], table: str | None, encoding: str | None
) -> dict[str, tuple[str, ...]]:
    """Return the labels of the values that occur in some columns of a file."""
    if not names:
        return {}
    levels = {}
    with open_source(source, names, Resources.of(None), table=table, encoding=encoding) as records:
        kinds = kinds_of(records)
        for place, name in enumerate(names):
            value = plain_value(f"c{place}", records.types[f"c{place}"])
            rows = records.fetch(f"SELECT DISTINCT {value} AS v FROM {{rows}} WHERE v IS NOT NULL")
            levels[name] = tuple(observe([key for (key,) in rows], kinds[f"c{place}"], None)[0])
    return levels


def _has_levels(column: PreviewedColumn) -> bool:
    """Return whether the values of a column can be listed; many numbers need bins."""
    most = FEW_LEVELS if column.kind == "number" else MOST_LISTED
    return column.kind != "other" and column.levels is not None and 0 < column.levels <= most


def _count(column: PreviewedColumn) -> str:
    return "over 10,000" if column.levels is None else f"{column.levels:,}"


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_quote, values))}]"


def _quote(text: str) -> str:
    """Return a text as TOML writes it.

    >>> print(_quote('a "b"'))
    "a \\"b\\""
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
