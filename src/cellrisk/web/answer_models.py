"""Every answer of the API, as the OpenAPI document describes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cellrisk.risk.explanation.risky_cells import RiskyCell

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]


class Model(BaseModel):
    """Takes no unknown fields, no text in place of numbers, and no infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Refusal(Model):
    error: str = Field(description="One line: what is wrong, what is allowed, the fix.", examples=["no such table"])


class Named(Model):
    name: str
    title: str = Field(description="What people call it.")
    paper: str | None = Field(default=None, description="What the paper calls it.")


class NamedMechanism(Named):
    delta: bool = Field(description="Whether it takes a delta.")
    release: bool = Field(description="Whether a release can be made with it.")
    largest_epsilon: float | None = Field(description="Where its guarantee ends; null where it does not.")


class Locks(Model):
    """What the policies in force fix."""

    words: dict[str, str] = Field(description="Measure, form and weights; none where no risk is limited.")
    limits: dict[str, float] = Field(description="The tightest limits, by name, such as max_caused.")


class State(Model):
    version: str
    without_epsilon: dict[str, str] = Field(
        description="Why a part of the page has nothing to show for a perturbation, by its command or limit."
    )
    folder: bool = Field(description="Whether files of a folder can be loaded.")
    ledger: bool = Field(description="Whether releases are written into a ledger.")
    policy: str | None = Field(description="Which policies are in force, by file name and digest; null without one.")
    locks: Locks | None
    upload_limit: int = Field(description="Bytes that one upload may have.")
    mechanisms: list[NamedMechanism]
    measures: list[Named]
    forms: list[Named]
    weights: list[Named]
    neighbours: list[Named]
    missing: list[str] = Field(description="The rules for missing values.")


class FolderFile(Model):
    path: str = Field(description="Relative to the folder, with forward slashes.", examples=["2024/people.csv"])
    bytes: int


class FolderFiles(Model):
    files: list[FolderFile] = Field(description="Sorted, at most 1000.")


class Source(Model):
    source: str = Field(description="Its id.")
    name: str
    bytes: int


class Column(Model):
    name: str
    kind: Literal["text", "number", "truth", "date", "other"]
    levels: int | None = Field(description="Distinct values, exact; null where there are more than 10,001.")
    missing: int
    unique_share: float = Field(description="Distinct values over rows; an estimate where levels is null.")
    hint: str | None = Field(description="What a specialist would say of the column.")


class Suggestion(Model):
    quasi_identifiers: list[str]
    sensitive: list[str]
    bins: dict[str, str]
    counts: list[str] = Field(default_factory=list, description="Columns that look like counts of people.")


SourceKind = Literal["file", "example", "upload"]


class SourcePreview(Model):
    source: str
    name: str
    rows: int
    kind: SourceKind
    columns: list[Column]
    suggested: Suggestion


class JobTicket(Model):
    job: str = Field(description="Ask /api/jobs/{id} how far it has got.")


class Attribute(Model):
    model_config = ConfigDict(from_attributes=True)

    name: str
    levels: int
    homogeneous: int
    heterogeneous: int
    unique: int
    profiles: int
    exposed_share: float = Field(description="The share of records whose value the raw table gives away.")


class Sizes(Model):
    edges: list[int] = Field(description="The smallest cell size of each bar, and one beyond the largest.")
    cells: list[int]
    records: list[int]


class Table(Model):
    table: str
    name: str
    source: str
    kind: SourceKind
    missing: str
    count: str | bool | None
    records: int
    cells: int
    keyed: bool = Field(description="Whether cells can be shown at once; else they are read first, by `cells`.")
    dropped: int = Field(description="Records left out because a value is missing.")
    sensitive: list[Attribute]
    quasi_identifiers: list[str]
    bins: dict[str, str]
    warnings: list[str]
    assumptions: list[str]
    sizes: Sizes
    default_delta: float


class Row(Model):
    exact: list[float]
    tight: list[float]
    published: list[float]
    chance: float = Field(description="Of the tight form, as epsilon goes to 0.")
    raw: float = Field(description="Of the tight form, without noise.")


class FigureRow(Model):
    exposed: list[float] = Field(description="The share of people whose value is read off correctly.")
    caused: list[float] = Field(description="The share of people given away because of their own record.")
    chance: float = Field(description="Exposed, as epsilon goes to 0.")
    raw: float = Field(description="Exposed, without noise.")
    ceiling: list[float] = Field(description="The worst case for one record, of two equally likely values.")
    sentences: list[str]


class Positions(Model):
    """The result of a job: every position of the slider."""

    epsilons: list[float]
    deltas: list[float | None] = Field(description="Null alone where the mechanism takes none.")
    default_index: int = Field(description="Which of the deltas is the usual one.")
    rows: dict[str, Row] = Field(description='By "measure/weights/delta index".')
    figures: dict[str, FigureRow] = Field(description="By delta index.")


class CertaintyLine(Model):
    """The result of a job: what an attacker can be sure of along epsilon."""

    certainty: float
    unknown: str | None = Field(description="Why it cannot be told; null where it can.")
    epsilons: list[float]
    sure: list[float] = Field(description="The share of people named rightly, at each epsilon.")


class ExposedPeople(Model):
    mean: float
    low: int
    high: int
    exact: bool = Field(description="Whether the interval is exact; else it is the normal one.")


class Figures(Model):
    """The figures to decide by at one epsilon."""

    epsilon: float
    sentence: str
    certainty: str = Field(description="What an attacker can be sure of, in words.")
    people: ExposedPeople
    decision: dict[str, Any] = Field(description="An entry of `decision` of cellrisk assess --json.")


class AdmissibleAnswer(Model):
    epsilon: float | None = Field(description="The largest admissible one; null where none will do or no limit binds.")
    risk: float | None
    intervals: list[list[float]] = Field(description="Every admissible interval, ends included.")
    why: str
    sentence: str
    policy: str = Field(description="Which policies were obeyed, or that there was none.")


class Consequences(Model):
    """What has to be known before a release is made."""

    above: list[str] = Field(description="Limits that it breaks; none where all are kept.")
    uncovered: list[str] = Field(description="What its guarantee does not cover.")
    budget: list[str] = Field(description="What is spent before and after it.")
    forbidden: bool = Field(description="Whether a policy or a ledger's limit refuses it.")


class MapPoint(Model):
    epsilon: float
    risk: float
    tvd: float


class MapChoice(Model):
    epsilon: float
    risk: float
    tvd: float | None
    people: float
    verdict: str


class RiskMap(Model):
    """The result of a job: risk and utility along epsilon."""

    points: list[MapPoint]
    recommended: MapChoice | None
    stricter: MapChoice | None
    looser: MapChoice | None
    sentence: str


class Riskiest(Model):
    columns: list[str]
    rows: list[RiskyCell]


class GlimpseCell(Model):
    key: dict[str, str]
    before: list[int]
    after: list[int]
    scenario: int = Field(ge=1, le=8)
    scenario_text: str


class ScenarioText(Model):
    scenario: int
    text: str
    exposes: bool


class Glimpse(Model):
    levels: list[str]
    cells: list[GlimpseCell]
    legend: list[ScenarioText]


class At(Model):
    epsilon: float
    risk: float
    people: float


class Compared(Model):
    label: str
    cells: int
    epsilons: list[float]
    risk: list[float]
    at: At


class ComparisonAnswer(Model):
    """The result of a job."""

    a: Compared
    b: Compared
    sentence: str


class Commands(Model):
    shell: str
    python: str


class PerturbedRisk(Model):
    measure: str
    form: str
    weights: str | None = Field(description="Null where the measure is not an average over cells.")
    risk: float


class EqualRiskAnswer(Model):
    """The epsilons at which noise gives away no more people than a perturbation."""

    by: Literal["caused", "certainty"]
    mechanism: str
    figure: float = Field(description="People given away by the perturbation.")
    epsilon: float | None = Field(description="The largest of them; null if there is none.")
    ranges: list[list[float]] = Field(description="All of them, ascending.")
    distance: float = Field(description="How far the perturbation moves the table, as a share of the records.")
    mechanism_distance: float | None = Field(description="How far the noise does, at that epsilon.")
    sentence: str
    epsilons: list[float] = Field(description="Those that were looked at.")
    people: list[float] = Field(description="People given away by the noise at each of them.")


class PerturbedAnswer(Model):
    """What a perturbation gives away, as cellrisk assess --perturbation tells it. It can be the result of a job."""

    name: str
    described: str
    sentence: str
    not_told: str = Field(description="What is not known of a table without an epsilon.")
    decision: dict[str, Any] = Field(description="An entry of `decision` of cellrisk assess --perturbation --json.")
    risks: list[PerturbedRisk]
    equal: list[EqualRiskAnswer] = Field(description="By caused, and by certainty where that is known.")
    limited: bool = Field(description="Whether a limit was set, by the request or by a policy.")
    broken: list[str] = Field(description="Limits that are not kept, or cannot be judged.")
    policy: str
    commands: Commands


class Download(Model):
    """The result of a job."""

    url: str
    name: str
    bytes: int
    sentence: str
    remark: str | None = Field(description="What has to be said of the file; null where there is nothing.")


class TableMade(Model):
    """The result of a job."""

    table: str


class SourceRead(Model):
    """The result of a job."""

    source: str


class CellsRead(Model):
    """The result of a job."""

    cells: int


class RulePeople(Model):
    """What one rule of attack gives away, in people: all tables of a set together, or one by itself."""

    rule: str
    right: float = Field(description="Named rightly, on average over releases.")
    named: float = Field(description="Named at all; by any, values that are named.")
    sd: float = Field(description="The standard deviation of the first number over releases.")
    sd_error: float | None = Field(description="Its standard error where it was simulated; null where it is exact.")
    low: int | None
    high: int | None = Field(description="The number lies between them in 95% of releases; null where not known.")
    caused: float = Field(description="Among those named rightly, only because their own records are in the tables.")
    bound: float = Field(description="What the guarantee alone promises of that.")
    chance: float = Field(description="Named rightly if the noise were as large as it can be.")
    raw: int = Field(description="Named rightly without noise.")
    precision: float | None = Field(description="How often what is named is right; null where nothing is named.")


class SetRule(RulePeople):
    says: str = Field(description="What the rule takes for a person's value.")


class SetWithout(Model):
    """A set without one of its tables, by elimination."""

    right: float
    caused: float
    adds_right: float = Field(description="The set less that; below 0 where the table hinders.")
    adds_caused: float


class SetTable(Model):
    """One table of a set, by itself and as a part of the set."""

    number: int
    title: str = Field(description="Its name, or its columns and people where it has none.")
    described: str = Field(description="Its columns, and its people where not everybody is in it.")
    mechanism: str
    epsilon: float
    delta: float
    threshold: float
    records: int
    cells: int
    alone: RulePeople
    ceiling: float | None = Field(description="The worst case of two equally likely values; null: not known.")
    without: SetWithout | None = Field(description="The set without it; null where it is the only one.")


class SetGrowth(Model):
    """The first tables of a set, by elimination."""

    tables: int
    right: float
    caused: float


class SetAnswer(Model):
    """The result of a job: what tables about the same people give away together."""

    sentence: str
    sensitive: str
    records: int = Field(description="People who are in one of the tables at least.")
    labels: int
    rules: list[SetRule] = Field(description="Elimination first.")
    interval: str = Field(description="In words; empty where it is not known.")
    tables: list[SetTable]
    parts: str = Field(description="Which table adds most, and what less of it would do, in words.")
    ceiling: float | None = Field(description="Of all tables together; null where it is not known.")
    nobody: str = Field(description="The ceiling in words, or why there is none.")
    epsilon: float = Field(description="What the set costs.")
    delta: float
    cost: str = Field(description="The same in words.")
    growth: list[SetGrowth] = Field(description="The first table, the first two and so on, as far as that is known.")
    differences: list[str] = Field(description="Tables that differ by a few people, in words.")
    least_squares: str | None = Field(description="What common margins make more precise; null where there are none.")
    statements: list[str] = Field(description="What the figures take for granted, and what they leave out.")
    policy: str | None = Field(description="Which policies judged the set; null without one.")
    above: list[str] = Field(description="Their limits that the set breaks.")


class SetRead(Model):
    """What a set file holds, for the boxes of the page. It can be the result of a job."""

    chosen: dict[str, Any] = Field(description="As /api/sources/{source}/set takes it.")
    source: str | None = Field(description="The source that the file names. It is not opened.")
    left_aside: list[str] = Field(description="Keys that the page has no use for.")


class SetCommands(Model):
    set_file: str = Field(description="The set as TOML.")
    shell: str
    python: str


Result = (
    TableMade
    | SourceRead
    | CellsRead
    | Positions
    | CertaintyLine
    | Figures
    | AdmissibleAnswer
    | RiskMap
    | ComparisonAnswer
    | PerturbedAnswer
    | SetAnswer
    | SetRead
    | Download
)


class Job(Model):
    job: str
    state: JobState
    progress: float | None = Field(description="From 0 to 1, null where it is not known.")
    step: str = Field(description="What is being done, in words.")
    result: Result | None = Field(description="What the work has found; null until it is done.")
    error: str | None


class LedgerEntry(Model):
    """One release."""

    number: int
    when: str = Field(description="UTC, to the microsecond.")
    cohort: str
    purpose: str
    sensitive: str | None
    quasi_identifiers: list[str]
    mechanism: str | None = Field(description="Null where only its loss is known.")
    epsilon: float | None = Field(description="Null where the loss is a rho alone.")
    delta: float
    rho: float | None = Field(description="Of zero-concentrated privacy; null where the loss has an epsilon.")
    file: str | None
    digest: str
    sentence: str


class Cohort(Model):
    """The loss of a person of a cohort so far, added up in the way of its limit where there is one."""

    name: str
    epsilon: float | None = Field(description="Null where the losses cannot be added up.")
    delta: float
    limit: float | None = Field(description="On epsilon; null where there is none.")


class LedgerAnswer(Model):
    entries: list[LedgerEntry] = Field(description="The releases; none where the ledger is not as it was written.")
    cohorts: list[Cohort]
    verified: bool = Field(description="Whether the ledger is as it was written.")
    sentence: str
