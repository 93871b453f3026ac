"""Every request to the API, validated: no unknown field, no text instead of a number, no infinity."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cellrisk.system.choices import Form, MeasureName, MechanismName, MissingRule, Neighbours, Weights

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Words = Annotated[str, StringConstraints(max_length=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
Epsilon = Annotated[float, Field(gt=0, le=1e6)]
LIMITS = (
    *("max_caused", "max_certain", "max_person", "max_ceiling", "max_epsilon", "max_error", "max_risk"),
    *("max_people", "margin"),
)
"""The limits that the page offers, by the names that `choose` gives them."""


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SourceChoice(Model):
    """A file of the folder, as /api/files lists it, or the example: one of the two."""

    path: Name | None = None
    example: Literal["adult"] | None = None


class TableChoice(Model):
    """What the columns of a source mean."""

    source: Name
    quasi_identifiers: list[Name] = Field(min_length=1, max_length=100)
    sensitive: list[Name] = Field(min_length=1, max_length=20)
    bins: dict[str, Words] = Field(default_factory=dict)
    missing: MissingRule = "category"
    count: Name | Literal[False] | None = None
    """The column of counts, if rows are cells; false: each row is a person. With null, rows that look like a table of
    counts are refused."""


class Setting(Model):
    """What the page shows: a mechanism, the risk, the limits. A question uses what it needs."""

    sensitive: Name | None = None
    mechanism: MechanismName = "geometric"
    epsilon: Epsilon = 1.0
    delta: float | None = Field(default=None, ge=0, lt=1)
    neighbours: Neighbours = "add-remove"
    measure: MeasureName = "local"
    form: Form = "tight"
    weights: Weights = "records"
    max_caused: Share | None = None
    max_certain: Share | None = None
    max_person: Share | None = None
    max_ceiling: Share | None = None
    max_epsilon: Epsilon | None = None
    max_error: int | None = Field(default=None, ge=0, le=10**15)
    max_risk: Share | None = None
    max_people: float | None = Field(default=None, ge=0, le=1e12)
    margin: Share | None = None
    max_tvd: Share | None = None
    """Of the map."""
    top: int = Field(default=50, ge=1, le=200)
    """Of the riskiest cells."""
    title: Words | None = None
    """Of a report; what follows is for a report or a release."""
    organisation: Words | None = None
    purpose: Words | None = None
    cohort: Words | None = None
    new_cohort: bool = False
    observed_levels: bool = False
    observed_cells_only: bool = False
    spreadsheet_safe: bool = False

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set."""
        return {name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None}

    @property
    def risk(self) -> dict[str, Any]:
        """The words of the risk."""
        return {"measure": self.measure, "form": self.form, "weights": self.weights}


class SetText(Model):
    """A set file. The records are those of the source that is loaded, not of the one that it names."""

    text: Annotated[str, StringConstraints(max_length=64_000)]
    name: Name = "set.toml"
