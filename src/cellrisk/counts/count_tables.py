"""Rows that look like a table of counts, though nobody named a column of counts: then a row is a cell, not a person.

Counting knows already whether each combination of the columns in use occurs once. Only where it does, or where a column
in nobody's use is named like counts, is the source opened once more to look at the columns that are not in use.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.columns import MOST_RECORDS, as_number, has_plain_values, is_missing, is_numeric, is_text
from cellrisk.counts.engine import Relation, quote_double
from cellrisk.counts.resources import Resources
from cellrisk.counts.schema import NO_COUNT
from cellrisk.counts.sources import open_source
from cellrisk.errors import CellriskError, InvalidInput

PLAIN_COUNTS = frozenset({"n", "count", "counts", "cnt", "freq", "frequency", "frequencies", "nobs", "n obs"})
"""Names, folded and with blanks for other signs, that hardly anything but a column of counts has."""
COUNT_WORDS = """
n count counts counted cnt freq frequency frequencies nobs obs observations total totals sum number num cases records
rows people persons patients population pop households individuals respondents inhabitants size anzahl haeufigkeit
häufigkeit effectif effectifs nombre numero número cantidad conteggio frequenza antal aantal liczba
"""
OTHER_WORDS = """
id ids key index idx uid uuid nr no code year month day week hour hours minute date time age ages zip zipcode plz
postcode postal phone lat lon latitude longitude rank order position score grade weight height income salary wage price
amount
"""
LIKELY, UNLIKELY = frozenset(COUNT_WORDS.split()), frozenset(OTHER_WORDS.split())
"""Words in the name of a column that is likely one of counts, or likely something else."""
UNITS = frozenset(["person", "patient", "case", "record", "row", "household", "individual", "respondent", "inhabitant"])
"""What is counted, one of it: the name of a column of counts where it goes with a word that is plainly one."""
SMALL_WORDS = frozenset(["of", "the", "in", "a", "de", "des", "der", "di", "da", "van", "von"])
YEARS = (1850, 2100)
MOST_COLUMNS = 500
"""Columns that are looked at: those named like counts, and the last ones, where counts stand by custom."""
SAMPLE = 10_000
"""Rows that are looked at where a name alone gives rise to doubt."""


@dataclass(frozen=True)
class Numbers:
    """What the values of a column are like, none of them told."""

    name: str
    rows: int
    present: int
    numbers: int
    whole: int
    distinct: int
    low: float | None
    high: float | None

    def could_be_counts(self, noisy: bool) -> bool:
        """Whether the values can be counts: whole numbers from 0, of a release any numbers; a column of ones says
        nothing that rows do not say."""
        if not self.numbers or self.numbers < self.present or self.low is None or self.high is None:
            return False
        if max(abs(self.low), abs(self.high)) >= MOST_RECORDS or self.low == self.high == 1:
            return False
        return noisy or (self.whole == self.numbers and self.low >= 0 and self.high > 0)

    def look_like_counts(self, noisy: bool) -> bool:
        """Whether this is likely a column of counts, by its name and, where that says nothing, by its values.

        >>> at_school = Numbers("pupils", 4, 4, 4, 4, 3, 0.0, 31.0)
        >>> numbered = Numbers("pupil", 4, 4, 4, 4, 4, 1.0, 4.0)
        >>> at_school.look_like_counts(noisy=False), numbered.look_like_counts(noisy=False)
        (True, False)
        """
        if not self.could_be_counts(noisy):
            return False
        words = words_of(self.name)
        if words & LIKELY:
            return True
        if words & UNLIKELY or self.present < self.rows or self.low is None or self.high is None:
            return False
        numbered = self.distinct == self.rows and self.high - self.low == self.rows - 1
        identifier = numbered and (self.rows > 3 or self.low in (0, 1))
        years = YEARS[0] <= self.low and self.high <= YEARS[1]
        flag = self.low == 0 and self.high == 1 and self.whole == self.numbers
        return not (identifier or years or flag)


def words_of(name: str) -> frozenset[str]:
    """The words of a column's name.

    >>> sorted(words_of("Freq")), sorted(words_of("n_people")), sorted(words_of("COUNT(*)"))
    (['freq'], ['n', 'people'], ['count'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[^\W_]+", spaced.casefold()))


def is_plainly_counts(name: str) -> bool:
    """Whether hardly anything but a column of counts has that name."""
    return " ".join(re.findall(r"[^\W_]+", name.casefold())) in PLAIN_COUNTS


def is_named_like_counts(name: str) -> bool:
    """Whether each word of a name is one of counts: what else is counted (children, visits) may be so of one person.

    >>> [is_named_like_counts(name) for name in ("n_people", "number of patients", "Anzahl", "person_count")]
    [True, True, True, True]
    >>> [is_named_like_counts(name) for name in ("number_of_children", "education-num", "patient number", "size")]
    [False, False, False, False]
    """
    words = words_of(name) - SMALL_WORDS
    return bool(words - {"size"}) and (  # a size alone may be that of a shoe or of a household
        words <= LIKELY or (words <= LIKELY | UNITS and bool(words & PLAIN_COUNTS))
    )


def refuse_counts(
    source: Any,
    used: Sequence[str],
    others: Sequence[str],
    once: bool,
    *,
    table: str | None = None,
    engine: str | None = None,
    option: str = "--count",
    noisy: bool = False,
) -> None:
    """Refuses a source whose rows look like cells with their counts.

    ``once``: whether each combination of the columns in use occurs once. Where it does not, a part of a count table's
    columns may be in use: then a column that is plainly named like counts is taken for one if its rows differ in what
    else they hold. Where it does, such a name is enough, whatever the values are: suppressed counts are no numbers, and
    noisy ones may be negative. ``noisy``: whether counts may be negative or fractional, as in a release.
    """
    named = [name for name in others if is_plainly_counts(name)]
    likely = [name for name in others if words_of(name) & LIKELY]
    chosen = dict.fromkeys([*likely[:MOST_COLUMNS], *others[-MOST_COLUMNS:]]) if once else dict.fromkeys(named)
    if not chosen:
        return
    if once and named:
        found = named
    else:
        opened = {"table": table, "engine": engine}
        numbers = describe_numbers(source, list(chosen), opened)
        found = [each.name for each in numbers if each.look_like_counts(noisy)]
        if not once:
            found = [name for name in found if rows_differ(source, used, others, name, opened)]
    if not found:
        return
    counts = min(found, key=lambda name: (name not in likely, -others.index(name)))
    among = "the columns in use" if once else "the other columns"
    named_well = re.fullmatch(r"[^\W\d][\w .()*-]*", counts)  # else it may be a value: a file without a header
    what = f"column '{counts}'" if named_well else "a column without a proper name"
    name = f"name it with {option} {shlex.quote(counts)} (in Python count=...)" if named_well else "name it"
    raise InvalidInput(
        f"{what} looks like counts, and each combination of {among} occurs once: these rows look like a table of "
        "counts",
        fix=f"{name}, or {say_none(option, others)} if each row is a person",
    )


def refuse_count_names(others: Sequence[str]) -> None:
    """Refuses a source with a column that is not in use and plainly named like counts, whatever it holds.

    This is the rule where a table must be a function of what was declared: of rows, one person could decide.

    >>> refuse_count_names(["age", "weight", "number_of_children"])
    """
    named = next((name for name in others if is_named_like_counts(name)), None)
    if named is not None:
        raise InvalidInput(
            f"column '{named}' is named like counts, and is not in use",
            fix=f"name it with --count {shlex.quote(named)} (in Python count=...), or {say_none('--count', others)} "
            "if each row is a person",
        )


def say_none(option: str, others: Sequence[str]) -> str:
    """How to say that there are no counts.

    >>> say_none("--count", ["age"])
    'say --count none (in Python count=False)'
    """
    if NO_COUNT in others:
        return f"rename column '{NO_COUNT}' and say {option} {NO_COUNT} (in Python count=False will do)"
    return f"say {option} {NO_COUNT} (in Python count=False)"


def describe_numbers(source: Any, names: Sequence[str], opened: dict[str, Any]) -> list[Numbers]:
    """The columns of a source that hold numbers; those that cannot be read are passed over."""
    try:
        with open_source(source, names, Resources.of(None), **opened) as records:
            return _describe(records, names)
    except CellriskError:
        half = len(names) // 2
        if not half:
            return []
        return [*describe_numbers(source, names[:half], opened), *describe_numbers(source, names[half:], opened)]


def _describe(records: Relation, names: Sequence[str]) -> list[Numbers]:
    facts, places = [f"sum({records.rows})::BIGINT"], []
    for place in range(len(names)):
        column, kind = f"c{place}", records.types[f"c{place}"]
        if not (is_numeric(kind) or is_text(kind)):
            continue
        number = as_number(column, kind)
        is_number = f"({number} IS NOT NULL AND NOT isnan({number}))"
        whole = f"({is_number} AND abs({number}) < {quote_double(MOST_RECORDS)} AND {number} = floor({number}))"
        conditions = (f"NOT ({is_missing(column, kind)})", is_number, whole)
        facts += [f"coalesce(sum({records.rows}) FILTER ({condition}), 0)::BIGINT" for condition in conditions]
        facts += [f"{what}{number}) FILTER ({is_number})" for what in ("count(DISTINCT ", "min(", "max(")]
        places.append(place)
    if not places:
        return []
    rows, *found = records.fetch(f"SELECT {', '.join(facts)} FROM {{rows}}")[0]
    return [Numbers(names[place], rows, *found[6 * i : 6 * i + 6]) for i, place in enumerate(places)]


def rows_differ(source: Any, used: Sequence[str], others: Sequence[str], counts: str, opened: dict[str, Any]) -> bool:
    """Whether the rows of a sample differ in what they hold beside their counts, and beside what numbers the rows."""
    names = [*used, *[name for name in others if name != counts][-MOST_COLUMNS:]]
    try:
        with open_source(source, names, Resources.of(None), **opened) as records:
            plain = [name for name, kind in records.types.items() if has_plain_values(kind)]
            sample = records.read(SAMPLE)
    except CellriskError:
        return False
    if records.grouped and any(number > 1 for number in sample["n"].to_pylist()):
        return False
    kept = [name for name in plain if int(name[1:]) < len(used) or len(sample[name].unique()) < len(sample)]
    return len(sample) > 1 and sample.group_by(kept).aggregate([]).num_rows == len(sample)
