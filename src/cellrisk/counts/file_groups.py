"""The files of one source as every engine takes them: of one kind, checked one by one, in groups that read alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cellrisk.counts.files import (
    TextFile,
    check_parquet,
    describe_text,
    folder_columns,
    is_parquet,
    refusals_of_the_system,
)
from cellrisk.counts.schema import locate
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


class TextGroup(NamedTuple):
    """Text files with the same header, delimiter and compression."""

    files: list[TextFile]
    places: list[int]
    """Where the columns in use stand in the header."""


class ParquetFile(NamedTuple):
    """The columns of a Parquet file; those that only its folders name (``year=2020/``) come last, and are text."""

    names: list[str]
    kinds: list[pa.DataType]
    n_stored: int
    """How many of them the file itself holds."""
    places: list[int]
    """Where the columns in use stand among the names."""


def are_parquet(files: Iterable[Path]) -> bool:
    """Whether the files are Parquet, and not text; refuses a mixture."""
    kinds = {is_parquet(path) for path in files}
    if len(kinds) > 1:
        raise InvalidInput("the pattern matches both text and Parquet files", fix="read one kind at a time")
    return kinds == {True}


def group_text(files: Iterable[Path], columns: Sequence[str]) -> list[TextGroup]:
    """Text files, those that can be read together in one group."""
    groups: dict[tuple[object, ...], list[TextFile]] = {}
    for path in files:
        file = describe_text(path, columns)
        groups.setdefault((file.packing, file.delimiter, file.names), []).append(file)
    return [
        TextGroup(group, locate(columns, group[0].names, f"'{group[0].path.name}'", first_line=True))
        for group in groups.values()
    ]


def describe_parquet(path: Path, columns: Sequence[str]) -> ParquetFile:
    """What a Parquet file holds; refuses what is none, and a file without the columns in use."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_parquet(path)
    with refusals_of_the_system(path):
        schema = pq.read_schema(path)
    folders = folder_columns(path, schema.names, columns)
    names, kinds = [*schema.names, *folders], [*schema.types, *(pa.string() for _ in folders)]
    return ParquetFile(names, kinds, len(schema.names), locate(columns, names, f"'{path.name}'"))


def unify_types(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The types that hold the values of several schemas: the wider one where they differ."""
    import pyarrow as pa

    try:
        return pa.unify_schemas(list(schemas), promote_options="permissive")
    except pa.ArrowException:
        raise InvalidInput(
            "the Parquet files give the columns in use types that do not go together",
            fix="write them with the same types, or read them apart",
        ) from None
