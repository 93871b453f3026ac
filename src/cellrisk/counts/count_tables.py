"""Rows that look like a table of counts, though no column of counts was named: then a row is a cell, not a person.

The names of the columns that are not in use decide, and never the values: then one record more or less decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cellrisk.errors import InvalidInput, argument

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


def refuse_counts(others: Sequence[str], option: str = "") -> None:
    """Refuse a source with a column that is not in use and named like counts.

    option: what names the column of counts on the command line, if it is not the option of the argument ``count``.

    >>> refuse_counts(["age", "weight", "number_of_children"])
    """
    named = next((name for name in others if is_named_like_counts(name)), None)
    if named is not None:
        ways = [
            f"{option} {given} (in Python count)" if option else argument("count", given) for given in (named, "none")
        ]
        raise InvalidInput(
            f"column '{named}' is named like counts, and is not in use",
            fix=f"name it with {ways[0]}, or give {ways[1]} if each row is a person",
            code="count-table",
        )
