"""One small family of errors: every message says what is wrong, what was given, what is allowed, and the fix."""

from __future__ import annotations

import unicodedata

KEPT = "\n\t"
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Kinds of characters that cannot be seen: controls, directions and widths of nothing, halves of pairs, line ends."""


def visible(text: str, kept: str = KEPT) -> str:
    """A text for people to read, in which nothing is hidden: controls, changes of direction, characters without width
    and halves of surrogate pairs are written as JSON escapes them. Names and values may hold any of them.

    >>> print(visible("job\u202egnp.exe\x1b[2J"))
    job\\u202egnp.exe\\u001b[2J
    """
    if text.isascii() and text.isprintable():
        return text
    hidden = {each for each in text if unicodedata.category(each) in UNSEEN} - set(kept)
    return "".join(_escape(each) if each in hidden else each for each in text)


def _escape(character: str) -> str:
    pairs = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[place]:02x}{pairs[place + 1]:02x}" for place in range(0, len(pairs), 2))


def shorten(value: object) -> object:
    """A value as it is told to whoever gave it: not the digits of a number that has very many."""
    return "a number of more than 18 digits" if isinstance(value, int) and abs(value) >= 10**18 else value


class CellriskError(Exception):
    """Any refusal by cellrisk. The message is one line and carries column names and counts, never data values.

    >>> print(InvalidInput("epsilon must be positive", got=-1, allowed="a number above 0", fix="try --epsilon 1"))
    epsilon must be positive; got -1; allowed: a number above 0; try --epsilon 1
    """

    def __init__(self, what: str, *, got: object = None, allowed: str | None = None, fix: str | None = None) -> None:
        parts = [what]
        if got is not None:
            parts.append(f"got {shorten(got)}")
        if allowed:
            parts.append(f"allowed: {allowed}")
        if fix:
            parts.append(fix)
        self.message = visible(" ".join("; ".join(parts).split()), "")
        super().__init__(self.message)

    def __str__(self) -> str:  # KeyError would print the repr
        return self.message


class InvalidInput(CellriskError, ValueError):
    """A value, file or combination that cannot give a right answer."""


class UnknownName(CellriskError, KeyError):
    """A column, level, measure, mechanism or other name that does not exist."""
