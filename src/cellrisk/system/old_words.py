"""Arguments of public functions that had other names before: the old words keep working."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from cellrisk.errors import InvalidInput

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_old_words(new: str, make: Callable[..., Any], *old: str) -> Callable[[Function], Function]:
    """Makes a function take old keywords too: ``make`` turns those that are given into the argument ``new``.

    >>> @takes_old_words("size", lambda width: 2 * width, "width")
    ... def double(size):
    ...     return size
    >>> double(size=4), double(width=2)
    (4, 4)
    """

    def change(function: Function) -> Function:
        @wraps(function)
        def call(*arguments: Any, **given: Any) -> Any:
            words = {name: given.pop(name) for name in old if name in given}
            if new in given and isinstance(make, type) and not isinstance(given[new], make):
                raise InvalidInput(f"{new} must be made by {make.__name__}", got=type(given[new]).__name__)
            if words and new in given:
                raise InvalidInput(f"{new} and {', '.join(words)} say the same", fix=f"give {new}= alone")
            return function(*arguments, **given, **({new: make(**words)} if words else {}))

        return call  # type: ignore[return-value]

    return change
