"""Refusals of a set in the words of its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.web.boxes import name_boxes

PEOPLE = "“People in it”"
IN_WORDS = (
    # noise that tables share, and tables that cannot be added up
    (r"^the noise of table \d+ is not independent: ", "“How noise is drawn” names noise that is not independent: "),
    (
        r"leave one out, and ask what repeating it reveals: cellrisk average \.\.\. --releases 2",
        "remove one of them; what repeating it reveals is told by cellrisk average on the command line",
    ),
    (
        r"assess a set for each attribute, or several attributes along a ledger: cellrisk ledger risk",
        "leave it out of the file, and count the set once for each attribute under “Sensitive column”",
    ),
    (r"state all under the same: ", "leave it out of the tables, and choose it for all under “Neighbouring tables”: "),
    (r"leave it out, and ask for --certainty", "leave it out of the file"),
    # the mechanism of a table
    (
        r"no epsilon was given for (table \d+); give it for the table, or once for all of them",
        r"“Epsilon” is empty; fill it in for \1, or once for all tables",
    ),
    (r"the mechanism of (table \d+): (\S+) needs a delta", r"“Delta” of \1: \2 needs one"),
    (r"the mechanism of (table \d+): threshold must be", r"“Threshold” of \1 must be"),
    (r"the mechanism of (table \d+): (epsilon|\S+ .*epsilon)", r"“Epsilon” of \1: \2"),
    (r"the mechanism of (table \d+): ", r"“Mechanism” of \1: "),
    # the people of a table
    (r"'where' of (table \d+)", rf"{PEOPLE} of \1"),
    (r"correct 'where', or leave the table out", f"correct {PEOPLE}, or remove the table"),
    (r"^the part of the people asks", f"{PEOPLE} asks"),
    (r"^a part of the people is chosen", f"{PEOPLE} are chosen"),
    # columns
    (r"^levels are given for column", "“Declared labels” name column"),
    (
        r"leave (these records|such records|them) out with outside='drop'(?: \(--outside drop\))?",
        r"leave \1 out: say so under “Values that are not declared”",
    ),
    (r"declare (them|the other levels) with levels=(?: as well)?", r"declare \1 under “Declared labels”"),
    (r"^qid of (table \d+)", r"“Quasi-identifiers” of \1"),
    (
        r"allow more memory, use coarser bins, or assess fewer tables at once",
        "cut columns into coarser “Bins”, or remove a table",
    ),
)


def name_set_boxes(line: str) -> str:
    """A refusal as the page of sets says it.

    >>> name_set_boxes("no epsilon was given for table 2; give it for the table, or once for all of them")
    '“Epsilon” is empty; fill it in for table 2, or once for all tables'
    """
    for pattern, words in IN_WORDS:
        line = re.sub(pattern, words, line)
    return name_boxes(line)


@contextmanager
def in_words_of_boxes(path: str = "", name: str = "") -> Iterator[None]:
    """What is refused inside is refused in the words of the page, which knows the file by its name."""
    try:
        yield
    except CellriskError as refusal:
        line = str(refusal)
        if path:
            line = line.replace(path, name).replace(path.rpartition("/")[2], name)
        raise InvalidInput(name_set_boxes(line)) from None
