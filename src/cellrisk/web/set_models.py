"""Requests about a set of tables, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from cellrisk.system.words import MechanismName, MissingRule, Neighbours, OutsideRule
from cellrisk.web.answer_models import Model
from cellrisk.web.request_models import Delta, Epsilon, Name, Words

MOST_LETTERS = 64_000
"""Characters of a set file that is read: that of the twenty tables that a set may have is far shorter."""
Value = Annotated[str, StringConstraints(max_length=1000)] | bool | int | float
End = Literal["from", "above", "to", "below", "not"]
Part = dict[Name, Value | list[Value] | dict[End, Value | list[Value]]]
Threshold = Annotated[
    float | None, Field(default=None, gt=0, lt=1e12, description="Counts below it become 0: 0.5, 1.5, ...; null: 0.5.")
]
Noise = Literal["independent", "shared", "cell-key", "margins", "consistent"]


class SetTableChoice(Model):
    """One table of a set. What is null is as for all tables."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    quasi_identifiers: list[Name] = Field(min_length=1, max_length=100, examples=[["age", "sex"]])
    bins: dict[str, Words] = Field(default_factory=dict, max_length=100, examples=[{"age": "5"}])
    where: Part | None = Field(
        default=None,
        max_length=100,
        description="The people in it, as a set file describes them; null: everybody.",
        examples=[{"sex": "f", "age": {"from": 18, "below": 65}}],
    )
    mechanism: MechanismName | None = None
    epsilon: Epsilon | None = None
    delta: Delta
    threshold: Threshold


class SetChoice(Model):
    """Tables about the same people: what holds for all, and each of them."""

    sensitive: Name
    tables: list[SetTableChoice] = Field(min_length=1, max_length=20)
    mechanism: MechanismName = "geometric"
    epsilon: Epsilon | None = None
    delta: Delta
    threshold: Threshold
    neighbours: Neighbours = "add-remove"
    noise: Noise = Field(default="independent", description="How noise is drawn; only independent noise is assessed.")
    levels: dict[str, list[Value]] = Field(default_factory=dict, max_length=100, description="Declared labels.")
    missing: MissingRule = "category"
    outside: OutsideRule = Field(default="error", description="Records outside the declared labels.")
    count: Name | Literal[False] | None = Field(
        default=None, description="The column of counts, if rows are cells; false: each row is a person."
    )


class SetText(Model):
    """A set file."""

    text: str = Field(max_length=MOST_LETTERS)
    name: Name = "set.toml"
