"""What is asked of a source: which columns are quasi-identifiers, which are sensitive, and how to read them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.tables.binning import Binning, make_binning

MISSING_RULES = ("category", "drop", "error")
MOST_LISTED = 30


@dataclass(frozen=True)
class Schema:
    """The roles of the columns. Everything that can be refused without looking at the data is refused here.

    >>> Schema(("age", "sex"), ("income",), bins={"age": 5}).columns
    ('age', 'sex', 'income')
    """

    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    bins: Mapping[str, Any] | None = None
    levels: Mapping[str, Any] | None = None
    count: str | None = None
    missing: str = "category"

    def __post_init__(self) -> None:
        quasi = read_names(self.quasi_identifiers, "quasi_identifiers")
        sensitive = read_names(self.sensitive, "sensitive")
        both = [name for name in sensitive if name in quasi]
        if both:
            raise InvalidInput(
                f"{quote(both)} cannot be both a quasi-identifier and sensitive", fix="leave it out of one of the two"
            )
        if self.count is not None:
            read_names(self.count, "count")
            if not isinstance(self.count, str):
                raise InvalidInput("count must be the name of one column", got=f"a {type(self.count).__name__}")
            if self.count in quasi + sensitive:
                raise InvalidInput(f"the count column '{self.count}' cannot also be a quasi-identifier or sensitive")
        if self.missing not in MISSING_RULES:
            raise InvalidInput("unknown rule for missing values", got=repr(self.missing), allowed=listed(MISSING_RULES))
        object.__setattr__(self, "quasi_identifiers", quasi)
        object.__setattr__(self, "sensitive", sensitive)
        object.__setattr__(self, "bins", self._read_bins(quasi + sensitive))
        object.__setattr__(self, "levels", self._read_levels(quasi + sensitive))

    def _read_bins(self, used: tuple[str, ...]) -> dict[str, Binning]:
        bins = read_mapping(self.bins, "bins", "{'age': 5} or {'age': [0, 18, 65]}")
        for name in bins:
            if name not in used:
                raise InvalidInput(
                    f"bins are given for column '{name}', which is not a quasi-identifier or sensitive",
                    allowed=listed(used),
                )
        return {name: make_binning(name, given) for name, given in bins.items()}

    def _read_levels(self, used: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
        declared = read_mapping(self.levels, "levels", "{'income': ['low', 'high']}")
        for name, given in declared.items():
            if name not in used:
                raise InvalidInput(
                    f"levels are given for column '{name}', which is not a quasi-identifier or sensitive",
                    allowed=listed(used),
                )
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise InvalidInput(f"levels for column '{name}' must be a list", got=f"a {type(given).__name__}")
        return {name: tuple(given) for name, given in declared.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column in use: quasi-identifiers, then sensitive ones, then the count."""
        return self.quasi_identifiers + self.sensitive + ((self.count,) if self.count is not None else ())

    def binning(self, column: str) -> Binning | None:
        """The binning of a column, or None."""
        return (self.bins or {}).get(column)

    def declared(self, column: str) -> tuple[Any, ...] | None:
        """The declared levels of a column, or None."""
        return (self.levels or {}).get(column)


def read_names(given: Any, argument: str) -> tuple[str, ...]:
    """One name or a list of names as a tuple without repeats."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InvalidInput(
            f"{argument} must be a column name or a list of column names", got=f"a {type(given).__name__}"
        )
    names = tuple(given)
    if not names:
        raise InvalidInput(f"{argument} names no column", allowed="one column name or more")
    for name in names:
        if not isinstance(name, str) or not name:
            kind = "an empty name" if name == "" else f"a {type(name).__name__}"
            raise InvalidInput(f"{argument} must hold column names", got=kind)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InvalidInput(f"{argument} names {quote(repeated)} more than once", fix="name each column once")
    return names


def read_mapping(given: Any, argument: str, example: str) -> dict[str, Any]:
    """A mapping from column names, or nothing."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"{argument} must map column names", got=f"a {type(given).__name__}", fix=f"for instance {example}"
        )
    return dict(given)


def locate(columns: Sequence[str], available: Sequence[str], where: str, fix: str | None = None) -> list[int]:
    """The position of each column among the available ones; refuses unknown and ambiguous names.

    >>> locate(["sex"], ["age", "sex"], "the table")
    [1]
    """
    times = Counter(available)
    for name in columns:
        if name not in times:
            if fix is not None:
                raise UnknownName(f"{where} has no column '{name}'", fix=fix)
            near = difflib.get_close_matches(name, list(times), n=1, cutoff=0.6)
            folded = [other for other in times if other.strip().casefold() == name.strip().casefold()]
            hint = (folded or near)[:1]
            raise UnknownName(
                f"{where} has no column '{name}'",
                allowed=listed(list(times)),
                fix=f"did you mean '{hint[0]}'?" if hint else None,
            )
    repeated = [name for name in columns if times[name] > 1]
    if repeated:
        raise InvalidInput(
            f"{where} has more than one column named {quote(repeated)}", fix="give each column a name of its own"
        )
    return [list(available).index(name) for name in columns]


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first thirty of them."""
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def quote(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
