"""A draft of cellrisk.toml for a file: roles, levels as they occur, and bins to fill in."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.columns import kind_of, plain_value
from cellrisk.counts.levels import observe
from cellrisk.counts.preview import FEW_LEVELS, QUASI_IDENTIFIER, SENSITIVE, Preview, PreviewedColumn
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import locate
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
BINS = """
[bin]
# Numbers with many values need bins. Write edges that do not come from the data, and delete the leading '# '.
"""


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
        named = {"qid": self.quasi_identifiers, "sensitive": self.sensitive}
        named |= {"declared": self.declared, "unfinished": self.unfinished}
        return {"file": self.path, **{role: list(names) for role, names in named.items()}}

    def _numbers(self) -> list[dict[str, Any]]:
        names = (*self.quasi_identifiers, *self.sensitive)
        return [{"column": name, "declared": name in self.declared} for name in names]

    def _paragraphs(self) -> tuple[str, ...]:
        return ()


def draft_settings(
    preview: Preview,
    path: str,
    source: str | os.PathLike[str],
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    table: str | None = None,
    encoding: str | None = None,
) -> tuple[str, SettingsDraft]:
    """Return the text of a settings file for a path, and what it declares.

    Roles that are not given are those that the preview suggests. Columns in no use are written as comments.
    """
    roles, (likely, about) = preview.roles, preview.suggested
    quasi = tuple(quasi_identifiers) or tuple(name for name in likely if name not in sensitive)
    about = tuple(sensitive) or tuple(name for name in about if name not in quasi)
    if not quasi or not about:
        raise InvalidInput(
            "no column looks like a quasi-identifier, or none looks sensitive",
            fix="name them: --qid age,sex --sensitive income",
            code="no-roles",
        )
    columns, used = {column.name: column for column in preview.columns}, [*quasi, *about]
    others = [name for name, role in roles.items() if role in (QUASI_IDENTIFIER, SENSITIVE) and name not in used]
    locate(used, list(columns), "the file")
    listed = [name for name in (*used, *others) if _has_levels(columns[name])]
    levels = _read_levels(source, listed, table, encoding) if listed else {}
    lines = [HEAD, f"qid = {_list(quasi)}", f"sensitive = {_list(about)}"]
    counts = [name for name in preview.counts if name not in used]
    lines += [f"count = {_quote(counts[0])}  # each row stands for that many people"] if counts else []
    lines += ["", "[levels]"]
    for name in levels:
        lines.append(f"{'' if name in used else '# '}{_quote(name)} = {_list(levels[name])}")
    unfinished = tuple(name for name in used if name not in levels)
    many = {name: columns[name].levels for name in (*used, *others) if name not in levels}
    shown = {name: "over 10,000" if number is None else f"{number:,}" for name, number in many.items()}
    numbers = [name for name in many if columns[name].kind == "number"]
    lines += [BINS] if numbers else []
    lines += [f"# {_quote(name)} = [0, 10, 100]  # {shown[name]} different numbers" for name in numbers]
    texts = [name for name in unfinished if name not in numbers]
    lines += [f"# {_quote(name)} has too many values to be listed ({shown[name]}): leave it out" for name in texts]
    declared = tuple(name for name in used if name in levels)
    return "\n".join(lines) + "\n", SettingsDraft(path, quasi, about, declared, unfinished)


def _read_levels(source: Any, names: Sequence[str], table: str | None, encoding: str | None) -> dict[str, list[str]]:
    """Return the labels of the values that occur in some columns of a file."""
    levels = {}
    with open_source(source, names, Resources.of(None), table=table, encoding=encoding) as records:
        for column, name in zip(records.types, names, strict=True):
            value = plain_value(column, records.types[column])
            rows = records.fetch(f"SELECT DISTINCT {value} AS v FROM {{rows}} WHERE v IS NOT NULL")
            levels[name] = observe([key for (key,) in rows], kind_of(records, column), None)[0]
    return levels


def _has_levels(column: PreviewedColumn) -> bool:
    """Return whether the values of a column can be listed; many numbers need bins."""
    most = FEW_LEVELS if column.kind == "number" else MOST_LISTED
    return column.kind != "other" and column.levels is not None and 0 < column.levels <= most


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_quote, values))}]"


def _quote(text: str) -> str:
    """Return a text as TOML writes it.

    >>> print(_quote('a "b"'))
    "a \\"b\\""
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
