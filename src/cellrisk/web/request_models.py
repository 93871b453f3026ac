"""Every request to the API, as the OpenAPI document describes it: about a table, and about a set of tables."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from cellrisk.system.words import (
    Form,
    MeasureName,
    MechanismName,
    MissingRule,
    Neighbours,
    NoisyCells,
    OutsideRule,
    Weights,
)
from cellrisk.web.answer_models import Model

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Words = Annotated[str, StringConstraints(max_length=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
Epsilon = Annotated[float, Field(gt=0, le=1e6, description="Privacy loss.", examples=[1.0])]
People = Annotated[float, Field(ge=0, le=1e12, description="People exposed on average, at most.")]
Delta = Annotated[
    float | None,
    Field(default=None, ge=0, lt=1, description="For mechanisms that take one; null: about one over the records."),
]


LIMITS = ("max_caused", "max_certain", "max_ceiling", "max_epsilon", "max_risk", "max_people", "margin")
"""The limits that the page offers, by the names that `choose` gives them."""
MOST_LETTERS = 64_000
"""Characters of a set file that is read: that of the twenty tables that a set may have is far shorter."""
Value = Annotated[str, StringConstraints(max_length=1000)] | bool | int | float
End = Literal["from", "above", "to", "below", "not"]
Part = dict[Name, Value | list[Value] | dict[End, Value | list[Value]]]
Threshold = Annotated[
    float | None, Field(default=None, gt=0, lt=1e12, description="Counts below it become 0: 0.5, 1.5, ...; null: 0.5.")
]
Noise = Literal["independent", "shared", "cell-key", "margins", "consistent"]


class SourceChoice(Model):
    """A file of the folder, or the example that comes with the package: one of the two."""

    path: Name | None = Field(default=None, description="As /api/files lists it.")
    example: Literal["adult"] | None = None


class TableChoice(Model):
    """What the columns of a source mean."""

    source: Name
    quasi_identifiers: list[Name] = Field(min_length=1, max_length=100, examples=[["age", "sex"]])
    sensitive: list[Name] = Field(min_length=1, max_length=20, examples=[["income"]])
    bins: dict[str, Words] = Field(default_factory=dict, examples=[{"age": "5", "hours": "0/35/45/100"}])
    levels: dict[str, list[Words]] = Field(default_factory=dict, description="Declared levels, by column.")
    missing: MissingRule = "category"
    outside: OutsideRule = Field(default="error", description="Records outside the declared labels.")
    count: Name | Literal[False] | None = Field(
        default=None,
        description="The column of counts, if rows are cells; false says that each row is a person. Where nothing is "
        "said, rows that look like a table of counts are refused.",
    )


class CellsRequest(Model):
    sensitive: Name | None = Field(default=None, description="May be left out where there is one.")


class RiskRequest(CellsRequest):
    """What requests about noise and about a perturbation have in common."""

    mechanism: MechanismName = "geometric"
    delta: Delta
    measure: MeasureName = "local"
    form: Form = "tight"
    weights: Weights = "records"
    max_risk: Share | None = None
    max_caused: Share | None = None
    max_certain: Share | None = None
    max_ceiling: Share | None = None
    max_people: People | None = None


class MechanismRequest(RiskRequest):
    """The mechanism, the risk and the limit that the page shows. Each request uses the part that it needs."""

    epsilon: Epsilon | None = None
    neighbours: Neighbours = "add-remove"
    max_epsilon: Epsilon | None = None
    margin: Share | None = None


class EpsilonRequest(MechanismRequest):
    epsilon: Epsilon


class LineRequest(CellsRequest):
    """A mechanism whose figures are wanted along epsilon."""

    mechanism: MechanismName = "geometric"
    neighbours: Neighbours = "add-remove"


class PositionsRequest(LineRequest):
    deltas: list[Annotated[float, Field(gt=0, lt=1)]] | None = Field(
        default=None, min_length=1, max_length=5, description="Null: about one over the records, and two smaller ones."
    )
    measures: list[MeasureName] = Field(default=["local"], min_length=1, max_length=5)
    points: int = Field(default=121, ge=2, le=501)


class CertaintyRequest(LineRequest):
    delta: Delta
    points: int = Field(default=41, ge=2, le=501)


class MapRequest(MechanismRequest):
    max_tvd: Share | None = Field(default=None, description="Null: no limit, the map alone.")
    cells: NoisyCells = "domain"
    releases: int = Field(default=20, ge=1, le=200)
    seed: int = Field(default=0, ge=0, le=2**31)


class RiskiestRequest(EpsilonRequest):
    top: int = Field(default=50, ge=1, le=200)


class GlimpseRequest(EpsilonRequest):
    seed: int = Field(default=0, ge=0, le=2**31)
    cells: int = Field(default=12, ge=1, le=24)


class Side(Model):
    mechanism: MechanismName = "geometric"
    delta: Delta
    epsilon: Epsilon
    quasi_identifiers: list[Name] | None = Field(default=None, min_length=1, max_length=100)
    bins: dict[str, Words] | None = None


class CompareRequest(Model):
    a: Side
    b: Side
    sensitive: Name | None = None
    neighbours: Neighbours = "add-remove"
    measure: MeasureName = "local"
    form: Form = "tight"
    weights: Weights = "records"


class PerturbedRequest(RiskRequest):
    """A perturbation in the place of a mechanism: a rule, or a table P(m -> r) that was uploaded; one of the two."""

    rule: Words | None = Field(default=None, examples=["cell-key", "random-rounding:3", "suppress-below:10,round:5"])
    uploaded: Name | None = Field(default=None, description="The source that /api/uploads gave: a CSV file.")
    suppress_below: int | None = Field(
        default=None, ge=1, le=100_000, description="With an uploaded table: what is left out after it."
    )
    mechanism: MechanismName = Field(default="geometric", description="Whose epsilon at equal risk is looked for.")


class PerturbedCellsRequest(PerturbedRequest):
    top: int = Field(default=50, ge=1, le=200)


class PerturbedReportRequest(PerturbedRequest):
    title: Words | None = None
    organisation: Words | None = None


class DownloadRequest(EpsilonRequest):
    kind: Literal["report", "curve.csv", "curve.svg", "release"]
    public: bool = Field(default=False, description="report: leave out what was computed from the raw data.")
    title: Words | None = None
    organisation: Words | None = None
    purpose: Words | None = Field(default=None, description="release: why, for the ledger.")
    cohort: Words | None = Field(default=None, description="release: whose data, for the ledger.")
    new_cohort: bool = Field(default=False, description="release: no other cohort covers any of these people.")
    part_of: Words | None = Field(default=None, description="release: except for the cohort that contains them.")
    observed_levels: bool | list[Name] = Field(
        default=False, description="release: columns with labels as they occur, or true for all that are not declared."
    )
    observed_cells_only: bool = False
    clamp: bool = True
    may_be_missing: list[Name] = Field(default_factory=list, max_length=100)
    spreadsheet_safe: bool = Field(default=False, description="CSV: an apostrophe before what would be a formula.")
    ending: Literal["csv", "parquet"] = Field(default="csv", description="release: the format of the counts.")


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
