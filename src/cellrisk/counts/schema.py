"""What is asked of a source: which columns are quasi-identifiers, which are sensitive, and how to read them."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.binning import Binning, make_binning
from cellrisk.errors import InvalidInput, UnknownName, argument
from cellrisk.system.words import MissingRule, OutsideRule, list_words

NO_COUNT = "none"
"""The word that, given for the column of counts, says that each row is a person, unless a column has that name."""
NONE_IS_A_COLUMN = (
    "correct the column of that very name; or, if each row is a person, rename it or say count=False in Python"
)
MISSING_RULES: tuple[MissingRule, ...] = list_words(MissingRule)
OUTSIDE_RULES: tuple[OutsideRule, ...] = list_words(OutsideRule)
MOST_LISTED = 30
MOST_COMPARED = 2000
"""Names among which one like another is looked for."""
NAME = re.compile(r"(?!.*\d{5})[^\W\d][\w .()%/-]{0,39}")
NO_HEADER = "its first line names none of the columns asked for: check that it is a header, and how the names are spelt"


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
    count: str | bool | None = None
    """The column of counts; False says that each row is a person, None that nobody has said."""
    missing: str = "category"
    outside: str = "error"
    """What becomes of records with a value outside the declared labels."""
    wide: tuple[str, ...] = ()
    """The columns of a wide table: each is a level of the sensitive attribute, and holds the counts of its people."""

    def __post_init__(self) -> None:
        quasi = read_names(self.quasi_identifiers, "quasi_identifiers")
        sensitive = read_names(self.sensitive, "sensitive")
        both = [name for name in sensitive if name in quasi]
        if both:
            raise InvalidInput(
                f"{quote(both)} cannot be both a quasi-identifier and sensitive", fix="leave it out of one of the two"
            )
        if self.count is not None and self.count is not False:
            if isinstance(self.count, bool):
                raise InvalidInput("count must be the name of a column", got="True", fix="name the column of counts")
            read_names(self.count, "count")
            if not isinstance(self.count, str):
                raise InvalidInput("count must be the name of one column", got=f"a {type(self.count).__name__}")
            if self.count == NO_COUNT and NO_COUNT in quasi + sensitive:  # such a column is in use: no counts are meant
                object.__setattr__(self, "count", False)
            elif self.count in quasi + sensitive:
                raise InvalidInput(f"the count column '{self.count}' cannot also be a quasi-identifier or sensitive")
        if self.missing not in MISSING_RULES:
            raise InvalidInput("unknown rule for missing values", got=repr(self.missing), allowed=listed(MISSING_RULES))
        if self.outside not in OUTSIDE_RULES:
            raise InvalidInput(
                "unknown rule for records outside the declared labels",
                got=repr(self.outside),
                allowed=listed(OUTSIDE_RULES),
            )
        object.__setattr__(self, "quasi_identifiers", quasi)
        object.__setattr__(self, "sensitive", sensitive)
        if self.wide:
            self._read_wide()
        object.__setattr__(self, "bins", self._read_bins(quasi + sensitive))
        object.__setattr__(self, "levels", self._read_levels(quasi + sensitive))

    def _read_wide(self) -> None:
        """Checks the columns of a wide table, which declare the levels and hold the counts."""
        wide = read_names(self.wide, "wide")
        if len(wide) < 2:
            raise InvalidInput(
                "a wide table has a column for each level", got="1 column", allowed="two columns or more"
            )
        if len(self.sensitive) != 1 or self.sensitive[0] in wide:
            raise InvalidInput(
                "the columns of a wide table are the levels of one sensitive attribute, which has a name of its own",
                got=quote(self.sensitive),
                fix=f"name what they are levels of, for instance {argument('sensitive', 'illness')}",
            )
        both = [name for name in wide if name in self.quasi_identifiers]
        if both:
            raise InvalidInput(
                f"{quote(both)} cannot be both a quasi-identifier and a level", fix="leave it out of one"
            )
        if self.count is not None:
            raise InvalidInput("a wide table has its counts in the columns of its levels", fix="leave the count out")
        if self.sensitive[0] in (self.bins or {}) or self.sensitive[0] in (self.levels or {}):
            raise InvalidInput("the columns of a wide table are its levels", fix="leave out its bins and levels")
        object.__setattr__(self, "wide", wide)
        object.__setattr__(self, "count", ", ".join(wide))
        object.__setattr__(self, "levels", {**(self.levels or {}), self.sensitive[0]: wide})

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
            declared[name] = tuple(given)
            if self.outside == "drop" and any("\0" in str(level) for level in declared[name]):
                raise InvalidInput(f"levels for column '{name}' hold a NUL character", fix="leave it out")
        return declared

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column in use: quasi-identifiers, then sensitive ones, then the count."""
        return self.quasi_identifiers + self.sensitive + ((self.count,) if isinstance(self.count, str) else ())

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns to read from the source."""
        return self.quasi_identifiers + self.wide if self.wide else self.columns

    def binning(self, column: str) -> Binning | None:
        """The binning of a column, or None."""
        return (self.bins or {}).get(column)

    def declared(self, column: str) -> tuple[Any, ...] | None:
        """The declared levels of a column, or None."""
        return (self.levels or {}).get(column)


class AskedColumns(tuple[str, ...]):
    """The columns asked of a source; once it is opened, ``others`` are the names that it has beside them."""

    others: tuple[str, ...] | None = None

    def note(self, available: Sequence[str]) -> None:
        """Notes what one part of the source has; a name that a part lacks, or repeats, is left out."""
        once = {name for name, times in Counter(available).items() if times == 1}
        before = available if self.others is None else self.others
        self.others = tuple(name for name in before if name in once and name not in self)


def read_names(given: Any, what: str) -> tuple[str, ...]:
    """One name or a list of names as a tuple without repeats."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InvalidInput(f"{what} must be a column name or a list of column names", got=f"a {type(given).__name__}")
    names = tuple(given)
    if not names:
        raise InvalidInput(f"{what} names no column", allowed="one column name or more")
    for name in names:
        if not isinstance(name, str) or not name:
            kind = "an empty name" if name == "" else f"a {type(name).__name__}"
            raise InvalidInput(f"{what} must hold column names", got=kind)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InvalidInput(f"{what} names {quote(repeated)} more than once", fix="name each column once")
    return names


def read_mapping(given: Any, what: str, example: str) -> dict[str, Any]:
    """A mapping from column names, or nothing."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"{what} must map column names", got=f"a {type(given).__name__}", fix=f"for instance {example}"
        )
    return dict(given)


def locate(columns: Sequence[str], available: Sequence[str], where: str, first_line: bool = False) -> list[int]:
    """The position of each column among the available ones; refuses unknown and ambiguous names.

    A refusal repeats the names that were asked for. The others may be a record, where a file has no header, so those
    of a ``first_line`` are never named, and those of a schema only where all of them look like names.

    >>> locate(["sex"], ["age", "sex"], "the table")
    [1]
    """
    if isinstance(columns, AskedColumns):
        columns.note(available)
    times = Counter(available)
    for name in columns:
        if name not in times:
            raise _unknown(name, columns, available, where, first_line)
    repeated = [name for name in columns if times[name] > 1]
    if repeated:
        raise InvalidInput(
            f"{where} has more than one column named {quote(repeated)}", fix="give each column a name of its own"
        )
    return [list(available).index(name) for name in columns]


def _unknown(name: str, columns: Sequence[str], available: Sequence[str], where: str, first_line: bool) -> UnknownName:
    folded = [other for other in available if other.strip().casefold() == name.strip().casefold()]
    near = [] if len(available) > MOST_COMPARED else difflib.get_close_matches(name, available, n=1, cutoff=0.6)
    hint = next(iter(folded or near), None)
    if not first_line and look_like_names(available):
        fix = None if hint is None else f"did you mean '{hint}'?"
        return UnknownName(f"{where} has no column '{name}'", allowed=listed(list(available)), fix=fix)
    if hint is not None:
        fix = f"column {list(available).index(hint) + 1} has a name much like it: check how it is spelt"
    elif first_line and not {fold(each) for each in columns} & {fold(each) for each in available}:
        fix = NO_HEADER
    else:
        fix = "check how the names of its columns are spelt"
    return UnknownName(f"{where} has no column '{name}'", got=f"{len(available):,} columns", fix=fix)


def fold(name: str) -> str:
    return name.strip().casefold()


def look_like_names(available: Sequence[str]) -> bool:
    """Whether these can hardly be the values of a record: all different, short, words rather than numbers or dates.

    >>> look_like_names(["age", "hours-per-week", "Year 2020"]), look_like_names(["age", "34"])
    (True, False)
    """
    return len(set(available)) == len(available) and all(NAME.fullmatch(each) for each in available)


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first thirty of them."""
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def quote(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def unknown_table(table: str, names: Sequence[str], where: str) -> UnknownName:
    """A refusal that names the tables there are."""
    folded = [name for name in names if name.casefold() == table.casefold()]
    last = table.rpartition(".")[2]
    inside = [name for name in names if name.rpartition(".")[2].casefold() == last.casefold()]
    inside.sort(key=lambda name: (name != last, name))
    near = (folded or inside or difflib.get_close_matches(table, list(names), n=1, cutoff=0.6))[:1]
    return UnknownName(
        f"{where} has no table '{table}'",
        allowed=listed(sorted(names)) if names else None,
        fix=f"did you mean '{near[0]}'?" if near else None if names else "it has no table that this account can see",
    )
