"""Every request to the API, validated: no unknown field, no text instead of a number, no infinity."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cellrisk.system.words import Form, MeasureName, MechanismName, MissingRule, Neighbours, Weights

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Words = Annotated[str, StringConstraints(max_length=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
Epsilon = Annotated[float, Field(gt=0, le=1e6)]
LIMITS = ("max_caused", "max_certain", "max_ceiling", "max_epsilon", "max_risk", "max_people", "margin")
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
    quasi_identifiers: list[Name] = Field(min_length=1, max_length=100, examples=[["age", "sex"]])
    sensitive: list[Name] = Field(min_length=1, max_length=20, examples=[["income"]])
    bins: dict[str, Words] = Field(default_factory=dict, examples=[{"age": "5", "hours": "0/35/45/100"}])
    missing: MissingRule = "category"
    count: Name | Literal[False] | None = Field(
        default=None,
        description="The column of counts, if rows are cells; false: each row is a person. With null, rows that look "
        "like a table of counts are refused.",
    )


class PerturbationChoice(Model):
    """A rule, or a table P(m -> r) that was uploaded: one of the two."""

    rule: Words | None = Field(default=None, examples=["cell-key", "random-rounding:3", "suppress-below:10,round:5"])
    uploaded: Name | None = Field(default=None, description="The source that /api/uploads gave: a CSV file.")
    suppress_below: int | None = Field(default=None, ge=1, le=100_000)


class Setting(Model):
    """What the page shows: a mechanism or a perturbation, the risk, the limits. A question uses what it needs."""

    sensitive: Name | None = Field(default=None, description="May be left out if there is one.")
    mechanism: MechanismName = "geometric"
    epsilon: Epsilon = 1.0
    delta: float | None = Field(default=None, ge=0, lt=1, description="Null: the usual one.")
    neighbours: Neighbours = "add-remove"
    perturbation: PerturbationChoice | None = Field(default=None, description="Instead of the mechanism.")
    measure: MeasureName = "local"
    form: Form = "tight"
    weights: Weights = "records"
    max_caused: Share | None = None
    max_certain: Share | None = None
    max_ceiling: Share | None = None
    max_epsilon: Epsilon | None = None
    max_risk: Share | None = None
    max_people: float | None = Field(default=None, ge=0, le=1e12)
    margin: Share | None = None
    max_tvd: Share | None = Field(default=None, description="map: the largest distortion.")
    top: int = Field(default=50, ge=1, le=200, description="riskiest: how many cells.")
    cells: int = Field(default=12, ge=1, le=24, description="glimpse: how many cells.")
    seed: int = Field(default=0, ge=0, le=2**31, description="glimpse: of the noise.")
    kind: Literal["report", "curve.csv", "curve.svg", "release"] = Field(default="release", description="downloads.")
    title: Words | None = Field(default=None, description="report.")
    organisation: Words | None = Field(default=None, description="report.")
    purpose: Words | None = Field(default=None, description="release: why, for the ledger.")
    cohort: Words | None = Field(default=None, description="release: whose data, for the ledger.")
    new_cohort: bool = Field(default=False, description="release: no other cohort covers any of these people.")
    observed_levels: bool = Field(default=False, description="release: labels as they occur in the data.")
    observed_cells_only: bool = Field(default=False, description="release: only cells that are not empty.")
    spreadsheet_safe: bool = Field(default=False, description="CSV: an apostrophe before what would be a formula.")

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set; a perturbation has no epsilon and no chance level that could be limited."""
        names = [name for name in LIMITS if self.perturbation is None or name not in ("max_epsilon", "margin")]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def risk(self) -> dict[str, Any]:
        """The words of the risk."""
        return {"measure": self.measure, "form": self.form, "weights": self.weights}


class SetText(Model):
    """A set file. The records are those of the source that is loaded, not of the one that it names."""

    text: Annotated[str, StringConstraints(max_length=64_000)]
    name: Name = "set.toml"
