"""Refusals in the words of the page: where the library names an option or an argument, the page names its own box."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cellrisk.errors import CellriskError, InvalidInput

ROWS = "“Each row is”"
IN_WORDS = (
    # what each row is
    (r"name it with --count (?:'[^']*'|\S+?) \(in Python count=\.\.\.\)", f"choose it under {ROWS}"),
    (r"(?:rename column 'none' and )?say --count none \(in Python count=False(?: will do)?\)", f"say so under {ROWS}"),
    (r"or name another with count=", f"or choose another under {ROWS}"),
    (r"rename it or say count=False in Python", f"say so under {ROWS}"),
    # columns, bins, labels
    (r"name what they are levels of, for instance .*$", "choose the column that they are levels of"),
    (r"cut it into bins with bins=\{[^}]*\}", "cut it into bins, in its box “Bins”"),
    (
        r"declare the labels with levels= \(--levels\), or bins by their edges",
        "write bins by their edges (0/18/65)",
    ),
    (
        r"accept with observed_levels= \(--observed-levels\), naming the columns, that",
        "tick “Labels as they occur in the data”, which accepts that",
    ),
    (r"declare (them|the other levels) with levels=(?: as well)?", r"declare \1 on the command line"),
    (r"save it as UTF-8, or name its encoding: .*$", "save it as UTF-8"),
    (
        r"name (?:one|it) (?:with|:) table= or --table|name one: --table SHEET",
        "save that table on its own",
    ),
    (r"name them in may_be_missing= \(--may-be-missing\), or ", ""),
    (r"leave such records out with outside='drop' \(--outside drop\)", "choose “drop the row” under “Missing values”"),
    # limits
    (r"--max-(\S+) is looser than the policy", lambda found: f"{box_of(found[1])} is looser than the policy"),
    (r"the policy fixes --(\S+)", lambda found: f"the policy fixes {box_of(found[1])}"),
    (r"for example max_caused=0\.01, or --max-caused 0\.01", "write one into a box under “Limits”"),
    (
        r"a ceiling of 0\.75 or an epsilon of at most 1",
        "75 under “Worst case for one record”, or 1 under “Epsilon”",
    ),
    (r"\(max-caused\)", "(“Because of their own record”)"),
    (r"noise the observed cells alone \(cells='observed', --cells observed\), or ", ""),
    # the ledger
    (r"new_cohort=True \(--new-cohort\) declares it", "the box “A new cohort” declares it"),
    (r"say new_cohort=True \(--new-cohort\) too", "tick “A new cohort” too"),
    (r"leave new_cohort \(--new-cohort\) out", "untick “A new cohort”"),
)
LABELS = {
    "caused": "“Because of their own record”",
    "certain": "“Named with certainty”",
    "ceiling": "“Worst case for one record”",
    "epsilon": "“Epsilon”",
    "risk": "“Exposed”",
    "people": "“People exposed on average”",
    "margin": "“Exposed above chance”",
    "measure": "“Measure of risk”",
    "form": "“What counts as revealed”",
    "weights": "“Averaged”",
    "delta": "“Delta”",
    "mechanism": "“Mechanism”",
    "neighbours": "“Neighbouring tables”",
    "qid": "“Quasi-identifier”",
    "sensitive": "“Sensitive”",
    "bin": "“Bins”",
    "count": ROWS,
    "missing": "“Missing values”",
}
PEOPLE = "“People in it”"
SET_IN_WORDS = (
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


def box_of(option: str) -> str:
    """What the page calls an option.

    >>> box_of("max-caused"), box_of("measure")
    ('“Because of their own record”', '“Measure of risk”')
    """
    name = option.removeprefix("max-")
    return LABELS.get(name, f"--{option}")


def name_box(name: str, value: str | None) -> str:
    """Write an argument as the web app does: the label of its field; what has no field by its option.

    >>> name_box("delta", None), name_box("missing", "drop"), name_box("person", "patient")
    ('“Delta”', '“Missing values”: drop', '--person patient on the command line')
    """
    box = LABELS.get(name.removeprefix("max_"))
    if box is None:
        option = f"--{name.replace('_', '-')}"
        return f"{option if value in (None, 'True') else f'{option} {value}'} on the command line"
    return box if value is None else f"{box}: {value}"


def name_boxes(line: str) -> str:
    """A refusal as the page says it.

    >>> name_boxes("the policy fixes --form; got exact; allowed: tight")
    'the policy fixes “What counts as revealed”; got exact; allowed: tight'
    """
    for pattern, words in IN_WORDS:
        line = re.sub(pattern, words, line)
    line = re.sub(r" \(in Python [^()]*\)", "", line)
    line = re.sub(r"\bmax_([a-z]+)\b", lambda found: box_of(found[1]), line)
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda found: box_of(found[1]), line)


def name_set_boxes(line: str) -> str:
    """A refusal as the page of sets says it.

    >>> name_set_boxes("no epsilon was given for table 2; give it for the table, or once for all of them")
    '“Epsilon” is empty; fill it in for table 2, or once for all tables'
    """
    for pattern, words in SET_IN_WORDS:
        line = re.sub(pattern, words, line)
    return name_boxes(line)


def hide_path(line: str, path: str, name: str) -> str:
    """The line, with the user's name of a file in place of its path on the server."""
    return line.replace(path, name).replace(Path(path).name, name)


@contextmanager
def known_as(path: str, name: str) -> Iterator[None]:
    """What is refused inside names the file as the user does."""
    try:
        yield
    except CellriskError as refusal:
        raise InvalidInput(hide_path(refusal.marked, path, name), code=refusal.code) from None


@contextmanager
def in_words_of_boxes() -> Iterator[None]:
    """What is refused inside is refused in the words of the page of sets."""
    try:
        yield
    except CellriskError as refusal:
        raise InvalidInput(name_set_boxes(refusal.render(name_box)), code=refusal.code) from None
