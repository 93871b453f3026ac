"""One small family of errors: every message says what is wrong, what was given, what is allowed, and the fix."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Refusal = TypeVar("Refusal", bound="CellriskError")
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


Naming = Callable[[str, "str | None"], str]
"""How a surface writes an argument: from its name in Python, and the value to give it (None: the name alone)."""
ARGUMENT = re.compile("\x1f([a-z_]+)(?:\x1e([^\x1e\x1f]*))?\x1f")


def argument(name: str, value: object = None) -> str:
    """Mark an argument in a message, with the value to give it if there is one, so that each surface can write it.

    >>> str(InvalidInput("values are outside the levels", fix=f"leave them out with {argument('outside', 'drop')}"))
    "values are outside the levels; leave them out with outside='drop'"
    """
    return f"\x1f{name}\x1f" if value is None else f"\x1f{name}\x1e{value}\x1f"


def mark(name: str) -> str:
    """Mark a name if it is that of an argument; words stay as they are.

    >>> mark("the purpose"), mark("epsilon") == argument("epsilon")
    ('the purpose', True)
    """
    return argument(name) if re.fullmatch("[a-z_]+", name) else name


PYTHON_VALUE = re.compile(r"True|False|None|-?\d[\d.e+-]*|[\[{(].*")
"""Values that Python writes without quotation marks."""


def name_in_python(name: str, value: str | None) -> str:
    """Write an argument as in Python.

    >>> name_in_python("releases", None), name_in_python("releases", "2"), name_in_python("missing", "drop")
    ('releases', 'releases=2', "missing='drop'")
    """
    if value is None:
        return name
    return f"{name}={value}" if PYTHON_VALUE.fullmatch(value) else f"{name}={value!r}"


class CellriskError(Exception):
    """Any refusal by cellrisk. The message is one line and carries column names and counts, never data values.

    ``option`` is the argument at fault, by its name in Python; the message then begins with it, as Python, the command
    line (``--epsilon``) or the web app writes it. Other arguments are marked by ``argument``. ``code`` names the kind
    of refusal; it stays when the words change.

    >>> refusal = InvalidInput("must be positive", option="epsilon", got=-1, allowed="a number above 0", code="range")
    >>> print(refusal)
    epsilon must be positive; got -1; allowed: a number above 0
    >>> refusal.render(lambda name, value: f"--{name}")
    '--epsilon must be positive; got -1; allowed: a number above 0'
    """

    def __init__(
        self,
        what: str,
        *,
        got: object = None,
        allowed: str | None = None,
        fix: str | None = None,
        option: str | None = None,
        code: str | None = None,
    ) -> None:
        parts = [what if option is None else f"{argument(option)} {what}"]
        if got is not None:
            parts.append(f"got {shorten(got)}")
        if allowed:
            parts.append(f"allowed: {allowed}")
        if fix:
            parts.append(fix)
        self.marked = "; ".join(parts)
        self.option = option
        self.code = code
        super().__init__(self.marked)

    def render(self, naming: Naming) -> str:
        """Return the message in one line, with arguments as ``naming`` writes them."""
        words = ARGUMENT.sub(lambda found: naming(found[1], found[2]), self.marked)
        return visible(" ".join(words.split()), "")

    def within(self: Refusal, where: str) -> Refusal:
        """Return the same refusal with what it is about in front: ``table 2: epsilon must be positive``."""
        return type(self)(f"{where}: {self.marked}", code=self.code)

    @property
    def message(self) -> str:
        return self.render(name_in_python)

    def __str__(self) -> str:  # KeyError would print the repr
        return self.message


class InvalidInput(CellriskError, ValueError):
    """A value, file or combination that cannot give a right answer."""


class UnknownName(CellriskError, KeyError):
    """A column, level, measure, mechanism or other name that does not exist."""


EXTRAS = {
    "files": ("pyreadstat", "python_calamine"),
    "ledger": ("dp_accounting",),
    "pdf": ("weasyprint",),
    "postgres": ("psycopg", "sqlalchemy"),
    "release": ("opendp",),
    "spark": ("pyspark",),
    "web": ("fastapi", "starlette", "uvicorn"),
}
"""The modules that each extra of the package brings."""


def explain_missing(error: BaseException) -> InvalidInput | None:
    """Return the refusal of an import that failed because an extra is not installed; None for every other error.

    >>> print(explain_missing(ModuleNotFoundError(name="sqlalchemy.orm")))
    this needs the package sqlalchemy, which is not installed; run: pip install 'cellrisk[postgres]'
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    missing = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if missing in modules:
            return InvalidInput(
                f"this needs the package {missing.replace('_', '-')}, which is not installed",
                fix=f"run: pip install 'cellrisk[{extra}]'",
                code="missing-package",
            )
    return None


@contextmanager
def extra_needed() -> Iterator[None]:
    """Refuse an import in the block that fails because an extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise explain_missing(error) or error from None
