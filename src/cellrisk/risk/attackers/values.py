"""The values that are harmful, and the sets of values that are also assessed as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_list, read_texts

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute


@dataclass(frozen=True)
class NamedValues:
    """Values of sensitive attributes that somebody named; an attribute that has none of them is assessed as usual.

    >>> named = NamedValues.read("ill", ["ill+dead", ("well", "ill")])
    >>> named.find_harmful(["dead", "ill", "well"]), named.find_unions(["dead", "ill", "well"])
    ((1,), ((0, 1), (1, 2)))
    """

    harmful: tuple[str, ...] = ()
    """Values of which it counts whether they are learnt; empty for all."""
    unions: tuple[str | tuple[str, ...], ...] = ()
    """Sets of values that are also assessed as one: a tuple of values, or a text with + between them."""

    @staticmethod
    def read(
        harmful: str | Sequence[str] | None = None, unions: str | Sequence[str | Sequence[str]] | None = None
    ) -> NamedValues:
        """Read values as a user gives them: one, or a list."""
        listed = [harmful] if isinstance(harmful, str) else harmful or ()
        sets = [unions] if isinstance(unions, str) else read_list("unions", unions or (), "values")
        read = (text if isinstance(text, str) else read_texts("unions", text, "values") for text in sets)
        return NamedValues(read_texts("harmful", listed, "values"), tuple(read))

    def find_harmful(self, labels: Sequence[str]) -> tuple[int, ...]:
        """Return the places of the harmful values among these."""
        return tuple(place for place, label in enumerate(labels) if label in self.harmful)

    def find_unions(self, labels: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Return the places of the values of each union that is of these."""
        return tuple(places for union in self.unions if (places := _find_union(labels, union)))

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse a value that no attribute has, and a union that is not several values of one, or is all of them."""
        known = [attribute.levels.labels for attribute in attributes]
        for name in self.harmful:
            if not any(name in labels for labels in known):
                raise InvalidInput("must be values of a sensitive attribute", option="harmful", got=name, **UNKNOWN)
        for union in self.unions:
            if not any(_find_union(labels, union) for labels in known):
                raise InvalidInput(
                    "must be two or more values of a sensitive attribute, and not all of them",
                    option="unions",
                    got=union if isinstance(union, str) else "+".join(union),
                    **UNKNOWN,
                )


UNKNOWN = {"fix": "write the values as they are in the data", "code": "unknown-value"}


def _find_union(labels: Sequence[str], union: str | tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of the values of a union; none if these labels do not have them, or have no others.

    A label may have a + in it.
    """
    values = _split(labels, union) if isinstance(union, str) else list(union)
    places = sorted({labels.index(value) for value in values if value in labels})
    return tuple(places) if values and set(values) <= {*labels} and 1 < len(places) < len(labels) else ()


def _split(labels: Sequence[str], text: str) -> list[str]:
    """Split a text into labels with + between them; empty if it is not made of them.

    >>> _split(["c", "c++", "java"], "c+++java")
    ['c++', 'java']
    """
    if text in labels:
        return [text]
    for label in labels:
        rest = _split(labels, text[len(label) + 1 :]) if text.startswith(f"{label}+") else []
        if rest:
            return [label, *rest]
    return []
