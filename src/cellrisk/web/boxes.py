"""Refusals in the words of the page: where the library names an option or an argument, the page names its own box."""

from __future__ import annotations

import re

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
    (r"--max-ceiling 0\.75 or --max-epsilon 1", "75 under “Nobody tells two values apart”, or 1 under “Epsilon”"),
    (r"\(--max-caused\)", "(“Because of their own record”)"),
    (r"noise the observed cells alone \(cells='observed', --cells observed\), or ", ""),
    # the ledger
    (r"new_cohort=True \(--new-cohort\) declares it", "the box “A new cohort” declares it"),
    (r"say new_cohort=True \(--new-cohort\) too", "tick “A new cohort” too"),
    (r"leave new_cohort \(--new-cohort\) out", "untick “A new cohort”"),
)
LABELS = {
    "caused": "“Because of their own record”",
    "certain": "“Named with certainty”",
    "ceiling": "“Nobody tells two values apart”",
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


def box_of(option: str) -> str:
    """What the page calls an option.

    >>> box_of("max-caused"), box_of("measure")
    ('“Because of their own record”', '“Measure of risk”')
    """
    name = option.removeprefix("max-")
    return LABELS.get(name, f"--{option}")


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
