"""One small family of errors: every message says what is wrong, what was given, what is allowed, and the fix."""

from __future__ import annotations

from cellrisk.text import visible


class CellriskError(Exception):
    """Any refusal by cellrisk. The message is one line and carries column names and counts, never data values.

    >>> print(InvalidInput("epsilon must be positive", got=-1, allowed="a number above 0", fix="try --epsilon 1"))
    epsilon must be positive; got -1; allowed: a number above 0; try --epsilon 1
    """

    def __init__(self, what: str, *, got: object = None, allowed: str | None = None, fix: str | None = None) -> None:
        parts = [what]
        if got is not None:
            parts.append(f"got {got}")
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
