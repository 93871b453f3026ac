"""What is asked of a source: which columns are quasi-identifiers, which are sensitive, and how to read them."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cellrisk.counts.columns import make_binning
from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput, UnknownName, argument, mark
from cellrisk.system.choices import MissingRule, OutsideRule, list_words

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
    bins: Any = None
    levels: Any = None
    count: str | bool | None = None
    """The column of counts; False says that each row is a person, None that nobody has said."""
    missing: str = "category"
    outside: str = "error"
    """What becomes of records with a value outside the declared labels."""
    wide: tuple[str, ...] = ()
    """The columns of a wide table: each is a level of the sensitive attribute, and holds the counts of its people."""
    person: str | None = None
    """The column that identifies people, each of whom may have several records."""
    unit: Unit = Unit()  # noqa: RUF009 (it cannot be changed)

    def __post_init__(self) -> None:
        quasi = read_names(self.quasi_identifiers, "quasi_identifiers")
        sensitive = read_names(self.sensitive, "sensitive")
        wide = read_names(self.wide, "wide") if self.wide else ()
        for option, rule, words in (("missing", self.missing, MissingRule), ("outside", self.outside, OutsideRule)):
            if rule not in list_words(words):
                what, allowed = "is an unknown rule", ", ".join(list_words(words))
                raise InvalidInput(what, option=option, got=repr(rule), allowed=allowed, code="rule")
        count = False if self.count == "none" else self.count  # "none" as False: each row is a person
        one: tuple[Any, ...] = (("count", None if count is False else count), ("person", self.person))
        for option, name in one:
            if name is not None and (not isinstance(name, str) or not name):
                kind = f"a {type(name).__name__}"
                raise InvalidInput("must be the name of one column", option=option, got=kind, code="names")
        if self.person is not None and not self.unit.enforced:
            what, fix = "does not say how many records of a person count", f"for example {argument('contributions', 3)}"
            raise InvalidInput(what, option="person", fix=fix, code="no-contributions")
        if self.person is not None and (count or wide):
            what = "needs records: a table of counts has no people"
            fix = f"give the records, or state their bound with {argument('contributions')} alone"
            raise InvalidInput(what, option="person", fix=fix, code="person-of-counts")
        used = [*quasi, *sensitive, *wide, *([str(count)] if count else []), *([self.person] if self.person else [])]
        twice = [name for name, times in Counter(used).items() if times > 1]
        if twice:
            what = "can have one role: quasi-identifier, sensitive, counts, level of a wide table, person"
            raise InvalidInput(f"{quote(twice)} {what}", fix="leave it out of the others", code="roles")
        levels = read_mapping(self.levels, "levels", "{'income': ['low', 'high']}")
        bins = read_mapping(self.bins, "bins", "{'age': 5} or {'age': [0, 18, 65]}")
        if wide:
            if len(wide) < 2 or len(sensitive) != 1 or count is not None or sensitive[0] in {**bins, **levels}:
                what = "must name two columns or more: the levels of one sensitive attribute, with its counts"
                got, about = f"{len(wide)} columns for {quote(sensitive)}", argument("sensitive", "illness")
                fix = f"name what they are levels of with {about}, without its counts, bins and levels"
                raise InvalidInput(what, option="wide", got=got, fix=fix, code="wide")
            levels[sensitive[0]], count = wide, ", ".join(wide)
        for what, given in (("bins", bins), ("levels", levels)):
            unknown = [name for name in given if name not in quasi + sensitive]
            if unknown:
                about = f"are given for column '{unknown[0]}', which is not a quasi-identifier or sensitive"
                raise InvalidInput(about, option=what, allowed=listed(quasi + sensitive), code="roles")
        for name, given in levels.items():
            what, kind = f"of column '{name}' must be a list", f"a {type(given).__name__}"
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise InvalidInput(what, option="levels", got=kind, code="levels")
            levels[name] = tuple(given)
            if self.outside == "drop" and any("\0" in str(level) for level in levels[name]):
                raise InvalidInput(f"of column '{name}' hold a NUL character", option="levels", code="levels")
        values = {"quasi_identifiers": quasi, "sensitive": sensitive, "wide": wide, "count": count, "levels": levels}
        values["bins"] = {name: make_binning(name, given) for name, given in bins.items()}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column in use: quasi-identifiers, then sensitive ones, then the count or the person."""
        last = (self.count if isinstance(self.count, str) else None, self.person)
        return self.quasi_identifiers + self.sensitive + tuple(name for name in last if name)

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns to read from the source."""
        return self.quasi_identifiers + self.wide if self.wide else self.columns


class AskedColumns(list[str]):
    """The columns asked of a source, or every column that it has; ``others`` are those that it has beside them."""

    def __init__(self, names: Iterable[str] = (), *, every: bool = False) -> None:
        super().__init__(names)
        self.every, self._noted = every, False
        self.others: tuple[str, ...] = ()

    def note(self, available: Sequence[str]) -> None:
        """Note what one part of the source has; a name that a part lacks, or repeats, is left out."""
        once = {name for name, times in Counter(available).items() if times == 1}
        if self.every:
            self.extend(available)
        before = self.others if self._noted else tuple(available)
        self.others, self._noted = tuple(name for name in before if name in once and name not in self), True


def read_names(given: Any, what: str) -> tuple[str, ...]:
    """Return one name or a list of names as a tuple without repeats."""
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        kind = type(given).__name__
        raise InvalidInput(f"{mark(what)} must be a column name or a list of them", got=f"a {kind}", code="names")
    names = tuple(names)
    if not names or not all(isinstance(name, str) and name for name in names):
        odd = next((f"a {type(name).__name__}" for name in names if not isinstance(name, str)), "an empty name")
        got = odd if names else "none"
        raise InvalidInput(f"{mark(what)} must hold one column name or more", got=got, code="names")
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InvalidInput(f"{mark(what)} names {quote(repeated)} more than once", code="names")
    return names


def read_mapping(given: Any, what: str, example: str) -> dict[str, Any]:
    """Return a mapping from column names; empty for None."""
    if given is not None and not isinstance(given, Mapping):
        kind = type(given).__name__
        fix = f"for instance {example}"
        raise InvalidInput(f"{mark(what)} must map column names", got=f"a {kind}", fix=fix, code="names")
    return dict(given or {})


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
    if repeated:  # if every column is asked for, the names may be the values of a record
        named = "the same" if isinstance(columns, AskedColumns) and columns.every else quote(repeated)
        what, fix = f"{where} has more than one column named {named}", "give each column a name of its own"
        raise InvalidInput(what, fix=fix, code="ambiguous-column")
    return [list(available).index(name) for name in columns]


def _unknown(name: str, columns: Sequence[str], available: Sequence[str], where: str, first_line: bool) -> UnknownName:
    hint, what = find_like(name, available), f"{where} has no column '{name}'"
    if not first_line and look_like_names(available):
        fix = None if hint is None else f"did you mean '{hint}'?"
        return UnknownName(what, allowed=listed(list(available)), fix=fix, code="no-column")
    if hint is not None:
        fix = f"column {list(available).index(hint) + 1} has a name much like it: check how it is spelt"
    elif first_line and not {fold(other) for other in columns} & {fold(other) for other in available}:
        fix = NO_HEADER
    else:
        fix = "check how the names of its columns are spelt"
    return UnknownName(what, got=f"{len(available):,} columns", fix=fix, code="no-column")


def fold(name: str) -> str:
    return name.strip().casefold()


def look_like_names(available: Sequence[str]) -> bool:
    """Whether these can hardly be the values of a record: all different, short, words rather than numbers or dates.

    >>> look_like_names(["age", "hours-per-week", "Year 2020"]), look_like_names(["age", "34"])
    (True, False)
    """
    return len(set(available)) == len(available) and all(NAME.fullmatch(other) for other in available)


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first thirty of them."""
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def quote(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def find_like(name: str, names: Sequence[str]) -> str | None:
    """The name that is most like another."""
    folded = [other for other in names if fold(other) == fold(name)]
    near = [] if len(names) > MOST_COMPARED else difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return next(iter(folded or near), None)


def unknown_table(table: str, names: Sequence[str], where: str) -> UnknownName:
    """A refusal that names the tables there are."""
    last = fold(table.rpartition(".")[2])
    inside = sorted(
        (name for name in names if fold(name.rpartition(".")[2]) == last), key=lambda name: ("." in name, name)
    )
    near = find_like(table, inside) or next(iter(inside), None) or find_like(table, names)
    fix = f"did you mean '{near}'?" if near else None if names else "it has no table that this account can see"
    allowed = listed(sorted(names)) if names else None
    return UnknownName(f"{where} has no table '{table}'", allowed=allowed, fix=fix, code="no-table")


PLAIN_COUNTS = frozenset({"n", "count", "counts", "cnt", "freq", "frequency", "frequencies", "nobs"})
"""Words that hardly anything but a column of counts has in its name."""
COUNT_WORDS = """
n count counts counted cnt freq frequency frequencies nobs obs observations total totals sum number num cases records
rows people persons patients population pop households individuals respondents inhabitants size anzahl haeufigkeit
häufigkeit effectif effectifs nombre numero número cantidad conteggio frequenza antal aantal liczba
"""
LIKELY = frozenset(COUNT_WORDS.split())
"""Words in the name of a column that is likely one of counts."""
UNITS = frozenset(["person", "patient", "case", "record", "row", "household", "individual", "respondent", "inhabitant"])
"""What is counted, one of it: part of the name of a column of counts together with a word that is plainly one."""
SMALL_WORDS = frozenset(["of", "the", "in", "a", "de", "des", "der", "di", "da", "van", "von"])


def words_of(name: str) -> frozenset[str]:
    """Return the words of a column's name.

    >>> sorted(words_of("Freq")), sorted(words_of("n_people")), sorted(words_of("COUNT(*)"))
    (['freq'], ['n', 'people'], ['count'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[^\W_]+", spaced.casefold()))


def is_named_like_counts(name: str) -> bool:
    """Return whether each word of a name is one of counts: other things (children, visits) are counted of one person.

    >>> [is_named_like_counts(name) for name in ("n_people", "number of patients", "Anzahl", "person_count")]
    [True, True, True, True]
    >>> [is_named_like_counts(name) for name in ("number_of_children", "education-num", "patient number", "size")]
    [False, False, False, False]
    """
    words = words_of(name) - SMALL_WORDS
    return bool(words - {"size"}) and (  # a size alone may be that of a shoe or of a household
        words <= LIKELY or (words <= LIKELY | UNITS and bool(words & PLAIN_COUNTS))
    )


def refuse_counts(others: Sequence[str], option: str | None = None) -> None:
    """Refuse a source with a column that is not in use and named like counts.

    option: what names the column of counts on the command line, if it is not the option of the argument ``count``.

    >>> refuse_counts(["age", "weight", "number_of_children"])
    """
    for named in filter(is_named_like_counts, others):
        say = f"{option} {{}} (in Python count)".format if option else partial(argument, "count")
        fix = f"name it with {say(named)}, or give {say('none')} if each row is a person"
        raise InvalidInput(f"column '{named}' is named like counts, and is not in use", fix=fix, code="count-table")
