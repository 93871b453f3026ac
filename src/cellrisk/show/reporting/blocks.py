"""What a report is made of: sections of sentences, lists, tables and pictures, ready to be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from cellrisk.errors import InvalidInput

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Words:
    """Paragraphs."""

    kind: ClassVar[str] = "words"
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Bullets:
    """A list of sentences, with a heading where there is one."""

    kind: ClassVar[str] = "bullets"
    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True)
class Facts:
    """Names with what is to be said of each."""

    kind: ClassVar[str] = "facts"
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableBlock:
    """A table: a caption, a header, rows of text."""

    kind: ClassVar[str] = "grid"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: tuple[int, ...] = (0,)
    """The columns that hold words, and are flush left; the others hold numbers."""
    marked: int | None = None
    """The row that stands out."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows):
            raise InvalidInput("every row of a table needs a cell for each column")


def make_table(
    caption: str,
    things: Iterable[Thing],
    columns: Mapping[str, Callable[[Thing], str]],
    texts: tuple[int, ...] = (0,),
    marked: int | None = None,
) -> TableBlock:
    """A table with a row for each thing; a column has a name, and tells what its cell says of a thing."""
    rows = tuple(tuple(tell(thing) for tell in columns.values()) for thing in things)
    return TableBlock(caption, tuple(columns), rows, texts, marked)


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, and what it shows in words, for those who do not see it."""

    kind: ClassVar[str] = "picture"
    svg: str
    label: str


Block = Words | Bullets | Facts | TableBlock | Picture


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; the lead is what a reader can repeat."""

    name: str
    """Where a link finds it."""
    title: str
    lead: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The answer in a box."""

    kind: str
    """recommended, kept, broken, none or open"""
    title: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """The whole document."""

    title: str
    about: tuple[tuple[str, str], ...]
    """The lines below the title: for whom, of what."""
    banner: str
    """Who may see it."""
    decision: str
    verdict: Verdict
    sections: tuple[Section, ...]
    first: str = "Decision asked for"
    """The heading of the first section."""
    front: tuple[Block, ...] = ()
    """What stands below the verdict, on the first page."""
    sign_off: tuple[str, ...] = ()
    """What is left to fill in by hand, at the end of the first page."""
    logo: str = ""
    """A picture as a data: address."""
