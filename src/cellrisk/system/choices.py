"""The closed lists of words that Python, the command line and the web app take: each is a type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, get_args

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.system.checks import read_list

MechanismName = Literal["laplace", "gaussian", "gaussian-pdp", "gaussian-analytic", "geometric", "discrete-gaussian"]
Neighbours = Literal["add-remove", "replace"]

MeasureName = Literal["local", "expected", "shrinkage", "marginal", "marginal_shrinkage"]
FigureName = Literal["caused", "certainty", "ceiling"]
"""The figures to decide by."""
Form = Literal["published", "exact", "tight"]
Weights = Literal["uniform", "records"]
Attack = Literal["homogeneity", "plurality", "proportional"]

AlphaEstimate = Literal["mle", "moments"]
SizesFamily = Literal["poisson", "negbin"]
SizesFit = Literal["mle", "moments", "bayes"]
BeliefName = Literal["negbin", "table"]

MissingRule = Literal["category", "drop", "error"]
OutsideRule = Literal["error", "drop"]
EngineName = Literal["duckdb", "spark"]

PrivacyUnit = Literal["person", "enforced"]
"""What a policy may require: that the most records of one person are stated, or that a column of people limits them."""

CompositionMethod = Literal["tightest", "basic", "rdp", "pld"]
OverallKind = Literal["max", "sum"]

Word = TypeVar("Word", bound=str)


def list_words(kind: Any) -> tuple[Any, ...]:
    """Return the words of a list, in its order.

    >>> list_words(Weights)
    ('uniform', 'records')
    """
    return get_args(kind)


def say_words(kind: Any) -> str:
    """Return the words of a list, in a sentence.

    >>> say_words(MissingRule)
    'category, drop or error'
    """
    *words, end = list_words(kind)
    return f"{', '.join(words)} or {end}"


def choose_words(what: str, chosen: Word | Sequence[Word] | None, known: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words that a user chose, in the order of the known ones; all of them for None.

    >>> choose_words("form", ["tight", "exact"], list_words(Form))
    ('exact', 'tight')
    """
    if chosen is None:
        return tuple(known)
    words = [chosen] if isinstance(chosen, str) else read_list(what, chosen, "words")
    for word in words:
        require_word(what, word, known)
    if not words:
        raise InvalidInput(f"no {what} was chosen", allowed=", ".join(known), code="word")
    return tuple(word for word in known if word in words)


def require_word(what: str, given: object, known: Sequence[str]) -> None:
    """Refuse what is not a word of the list."""
    if not isinstance(given, str) or given not in known:
        raise UnknownName(f"unknown {what}", got=repr(given)[:60], allowed=", ".join(known), code="word")
