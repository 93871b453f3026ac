"""The fields of the page: what each may hold, what it offers, and how a refusal names it.

Every request to the API is validated here: no unknown field, no text instead of a number, no infinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cellrisk.noise.mechanisms import MECHANISMS, NEIGHBOURS
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS
from cellrisk.system.checks import split_names
from cellrisk.system.choices import Form, MeasureName, MechanismName, MissingRule, Neighbours, Weights, list_words

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies
    from cellrisk.web.settings import Settings

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Words = Annotated[str, StringConstraints(max_length=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
Epsilon = Annotated[float, Field(gt=0, le=1e6)]
Records = Annotated[int, Field(ge=1, le=1_000_000)]
LIMITS = (
    *("max_caused", "max_certain", "max_person", "max_ceiling", "max_posterior", "max_epsilon", "max_error"),
    *("max_risk", "max_people", "margin"),
)
"""The limits that the page offers, by the names that `choose` gives them."""
LABELS = {
    "max_caused": "“Because of their own record”",
    "max_certain": "“Learnt by an informed attacker”",
    "max_person": "“Most for one person”",
    "max_error": "“Error of a count”",
    "max_ceiling": "“Worst case for one record”",
    "max_posterior": "“A suspicion of P% may become”",
    "max_epsilon": "“Epsilon, at most”",
    "max_risk": "“Revealed”",
    "max_people": "“People revealed on average”",
    "max_tvd": "“Largest distortion”",
    "margin": "“Revealed above blind”",
    "harmful": "“Harmful values”",
    "measure": "“Measure of risk”",
    "form": "“What counts as revealed”",
    "weights": "“Averaged”",
    "epsilon": "“Epsilon”",
    "delta": "“Delta”",
    "mechanism": "“Mechanism”",
    "neighbours": "“Neighbouring tables”",
    "quasi_identifiers": "“Quasi-identifier”",
    "qid": "“Quasi-identifier”",
    "sensitive": "“Sensitive”",
    "bins": "“Bins”",
    "count": "“Each row is”",
    "missing": "“Missing values”",
    "person": "“Column of people”",
    "contributions": "“Most records of one person”",
    "per_group": "“Most of them in one count”",
    "purpose": "“Purpose”",
    "cohort": "“Cohort”",
    "new_cohort": "“A new cohort”",
    "observed_levels": "“Labels as they occur in the data”",
    "spreadsheet_safe": "“Put an apostrophe”",
}
TITLES = {
    "laplace": "Laplace",
    "gaussian": "Gaussian, classical",
    "gaussian-pdp": "Gaussian, probabilistic DP",
    "gaussian-analytic": "Gaussian, analytic",
    "geometric": "Geometric (whole numbers)",
    "discrete-gaussian": "Discrete Gaussian (whole numbers)",
    "local": "Local: this very table",
    "expected": "Expected: tables like this one",
    "shrinkage": "Shrinkage: shares drawn to the overall ones",
    "marginal": "Marginal: sizes of groups drawn anew",
    "marginal_shrinkage": "Marginal shrinkage: the table as a whole",
    "published": "As the paper prints it",
    "exact": "Any value revealed",
    "tight": "Own value revealed",
    "uniform": "Each group alike",
    "records": "By people",
    "add-remove": "One person more or less",
    "replace": "One person changed",
    "category": "are a value of their own",
    "drop": "drop the row",
    "error": "refuse the file",
}
CHOICES: dict[str, Any] = {
    "mechanism": MECHANISMS,
    "measure": MEASURES,
    "form": FORMS,
    "weights": WEIGHTS,
    "neighbours": NEIGHBOURS,
    "missing": list_words(MissingRule),
}
RELEASABLE = ("geometric", "discrete-gaussian")


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
    """As they are written: a width, or edges between slashes."""
    missing: MissingRule = "category"
    count: Name | Literal[False] | None = None
    """The column of counts, if rows are groups; false: each row is a record. With null, rows that look like a table of
    counts are refused."""
    person: Name | None = None
    """The column that identifies people, if one can have several rows."""
    contributions: Records | None = None
    per_group: Records | None = None


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
    max_posterior: Annotated[str, StringConstraints(max_length=100)] | None = None
    max_epsilon: Epsilon | None = None
    max_error: int | None = Field(default=None, ge=0, le=10**15)
    max_risk: Share | None = None
    max_people: float | None = Field(default=None, ge=0, le=1e12)
    margin: Share | None = None
    harmful: Words | None = None
    """Values that must not be learnt, comma-separated; null: all."""
    max_tvd: Share | None = None
    """Of the map."""
    top: int = Field(default=50, ge=1, le=200)
    """Of the riskiest groups."""
    title: Words | None = None
    """Of a report; what follows is for a report or a release."""
    organisation: Words | None = None
    purpose: Words | None = None
    cohort: Words | None = None
    new_cohort: bool = False
    observed_levels: bool = False
    spreadsheet_safe: bool = False

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set."""
        return {name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None}

    @property
    def attacker(self) -> dict[str, Any]:
        """The values that must not be learnt, if some are named."""
        names = split_names([self.harmful or ""])
        return {"harmful": names} if names else {}

    @property
    def risk(self) -> dict[str, Any]:
        """The words of the risk."""
        return {"measure": self.measure, "form": self.form, "weights": self.weights}


class SetText(Model):
    """A set file. The records are those of the source that is loaded, not of the one that it names."""

    text: Annotated[str, StringConstraints(max_length=64_000)]
    name: Name = "set.toml"


def name_field(name: str, value: str | None) -> str:
    """Write an argument as the web app does: the label of its field; what has no field by its option.

    >>> name_field("delta", None), name_field("missing", "drop"), name_field("wide", "ill")
    ('“Delta”', '“Missing values”: drop', '--wide ill on the command line')
    """
    label = LABELS.get(name)
    if label is None:
        option = f"--{name.replace('_', '-')}"
        return f"{option if value in (None, 'True') else f'{option} {value}'} on the command line"
    return label if value in (None, "True") else f"{label}: {value}"


def describe_server(settings: Settings, policies: Policies) -> dict[str, Any]:
    """Return what the server was started with, and the choices that each field of the page offers."""
    return {
        "folder": settings.folder is not None,
        "ledger": settings.ledger is not None,
        "policy": policies.describe() if policies else None,
        "locks": find_locks(policies),
        "upload_limit": settings.upload_limit,
        "upload_limit_text": write_size(settings.upload_limit),
        "choices": {field: [[name, TITLES[name]] for name in names] for field, names in CHOICES.items()},
        "releasable": list(RELEASABLE),
    }


def find_locks(policies: Policies) -> dict[str, Any]:
    """Return what the policies fix: the words of the risk that the first of them limits, and the tightest limits."""
    words: dict[str, str] = {}
    limits: dict[str, float] = {}
    for obeyed in (policies.to_dict() or {"obeyed": []})["obeyed"]:
        risk = {name: obeyed["risk"][name] for name in ("measure", "form", "weights")}
        on_risk = {"max_risk", "max_people", "margin"} & set(obeyed["limits"])
        words = words or (risk if on_risk else {})
        for name, most in obeyed["limits"].items():
            if name != "max_posterior" and (name not in on_risk or risk == words):
                limits[name] = min(most, limits.get(name, most))
    return {"words": words, "limits": limits}


def write_size(number: float) -> str:
    """Write a number of bytes.

    >>> write_size(2_000_000_000), write_size(1_234)
    ('2 GB', '1.23 kB')
    """
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.3g} GB"
