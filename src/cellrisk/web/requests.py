"""Every request to the API, validated: no unknown field, no text instead of a number, no infinity."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cellrisk.system.words import Form, MeasureName, MechanismName, MissingRule, Neighbours, Weights

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Words = Annotated[str, StringConstraints(max_length=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
Epsilon = Annotated[float, Field(gt=0, le=1e6)]
Columns = Annotated[list[Name], Field(min_length=1, max_length=100)]
Seed = Annotated[int, Field(ge=0, le=2**31)]
LIMITS = ("max_caused", "max_certain", "max_ceiling", "max_epsilon", "max_risk", "max_people", "margin")
"""The limits that the page offers, by the names that `choose` gives them."""
LONGEST_SET = 64_000
"""Characters of a set file."""


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SourceChoice(Model):
    """A file of the folder, as /api/files lists it, or the example: one of the two."""

    path: Name | None = None
    example: Literal["adult"] | None = None


class TableChoice(Model):
    """What the columns of a source mean."""

    source: Name
    quasi_identifiers: Columns = Field(examples=[["age", "sex"]])
    sensitive: Annotated[list[Name], Field(min_length=1, max_length=20)] = Field(examples=[["income"]])
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
    suppress_below: Annotated[int, Field(ge=1, le=100_000)] | None = None


class Setting(Model):
    """The mechanism or perturbation, the risk and the limits that the page shows. A question uses what it needs."""

    sensitive: Name | None = Field(default=None, description="May be left out if there is one.")
    mechanism: MechanismName = "geometric"
    epsilon: Epsilon = 1.0
    delta: Annotated[float, Field(ge=0, lt=1)] | None = Field(default=None, description="Null: the usual one.")
    neighbours: Neighbours = "add-remove"
    measure: MeasureName = "local"
    form: Form = "tight"
    weights: Weights = "records"
    max_caused: Share | None = None
    max_certain: Share | None = None
    max_ceiling: Share | None = None
    max_epsilon: Epsilon | None = None
    max_risk: Share | None = None
    max_people: Annotated[float, Field(ge=0, le=1e12)] | None = None
    margin: Share | None = None
    perturbation: PerturbationChoice | None = Field(default=None, description="Instead of the mechanism.")

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set."""
        given = {name: getattr(self, name) for name in LIMITS}
        return {name: most for name, most in given.items() if most is not None}

    @property
    def risk(self) -> dict[str, Any]:
        """The words of the risk."""
        return {"measure": self.measure, "form": self.form, "weights": self.weights}


class MapSetting(Setting):
    max_tvd: Share | None = Field(default=None, description="Null: the map without a limit on distortion.")


class RiskiestSetting(Setting):
    top: Annotated[int, Field(ge=1, le=200)] = 50


class GlimpseSetting(Setting):
    seed: Seed = 0
    cells: Annotated[int, Field(ge=1, le=24)] = 12


class Side(Model):
    """The setting that another one is compared with."""

    mechanism: MechanismName = "geometric"
    epsilon: Epsilon = 1.0
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    quasi_identifiers: Columns
    bins: dict[str, Words] = Field(default_factory=dict)


class CompareSetting(Setting):
    other: Side


class DownloadSetting(Setting):
    kind: Literal["report", "curve.csv", "curve.svg", "release"] = "release"
    title: Words | None = None
    organisation: Words | None = None
    purpose: Words | None = Field(default=None, description="release: why, for the ledger.")
    cohort: Words | None = Field(default=None, description="release: whose data, for the ledger.")
    new_cohort: bool = Field(default=False, description="release: no other cohort covers any of these people.")
    observed_levels: bool = Field(default=False, description="release: labels as they occur in the data.")
    observed_cells_only: bool = False
    spreadsheet_safe: bool = Field(default=False, description="CSV: an apostrophe before what would be a formula.")


class SetText(Model):
    """A set file. The records are those of the source that is loaded, not of the one that it names."""

    text: Annotated[str, StringConstraints(max_length=LONGEST_SET)]
    name: Name = "set.toml"
