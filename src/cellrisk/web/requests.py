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
NEED_NOISE = ("max_epsilon", "max_error", "margin")


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


class PerturbationChoice(Model):
    """A rule, or a table P(m -> r), a CSV file that was uploaded: one of the two."""

    rule: Words | None = None
    uploaded: Name | None = None
    suppress_below: int | None = Field(default=None, ge=1, le=100_000)


class Setting(Model):
    """What the page shows: a mechanism or a perturbation, the risk, the limits. A question uses what it needs."""

    sensitive: Name | None = None
    mechanism: MechanismName = "geometric"
    epsilon: Epsilon = 1.0
    delta: float | None = Field(default=None, ge=0, lt=1)
    neighbours: Neighbours = "add-remove"
    perturbation: PerturbationChoice | None = None
    """Instead of the mechanism."""
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
    kind: Literal["report", "release"] = "release"
    """Of a download; what follows is for the one or the other."""
    title: Words | None = None
    organisation: Words | None = None
    purpose: Words | None = None
    cohort: Words | None = None
    new_cohort: bool = False
    observed_levels: bool = False
    observed_cells_only: bool = False
    spreadsheet_safe: bool = False

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set; those on noise are not on a perturbation."""
        names = [name for name in LIMITS if self.perturbation is None or name not in NEED_NOISE]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def risk(self) -> dict[str, Any]:
        """The words of the risk."""
        return {"measure": self.measure, "form": self.form, "weights": self.weights}


class SetText(Model):
    """A set file. The records are those of the source that is loaded, not of the one that it names."""

    text: Annotated[str, StringConstraints(max_length=64_000)]
    name: Name = "set.toml"
