"""From tables to what the page shows. Nothing is computed here that another room has a name for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from cellrisk.counts.cells import Cells
from cellrisk.counts.preview import Preview, PreviewedColumn
from cellrisk.counts.profiles import SIZE_CLASSES
from cellrisk.counts.roles import COUNT, Columns
from cellrisk.counts.schema import MISSING_RULES
from cellrisk.counts.table import describe_attribute, list_assumptions
from cellrisk.decide.limits import METRICS, NO_CHANCE, NO_EPSILON, RiskDefinition, read_limits
from cellrisk.decide.policies import Policies
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import LARGEST_CLASSICAL, MECHANISMS, NEIGHBOURS, Mechanism
from cellrisk.noise.methods import WITHOUT_PERTURBATION
from cellrisk.publish.simulation import SCENARIOS, Scenario
from cellrisk.publish.simulation.releases import glimpse
from cellrisk.risk.explanation.risky_cells import CellRisks
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS
from cellrisk.risk.sweep import usual_delta
from cellrisk.system.text import claim, make_sentence, number_of
from cellrisk.web import answer_models, request_models
from cellrisk.web.boxes import name_boxes
from cellrisk.web.jobs import Job
from cellrisk.web.recipes import make_mechanism, narrow, say_delta
from cellrisk.web.request_models import DownloadRequest
from cellrisk.web.settings import Settings
from cellrisk.web.sources import Origin
from cellrisk.web.workspace import LoadedTable

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
    "marginal": "Marginal: cell sizes drawn anew",
    "marginal_shrinkage": "Marginal shrinkage: the table as a whole",
    "published": "As the paper prints it",
    "exact": "Any value revealed",
    "tight": "Own value revealed",
    "uniform": "Each cell alike",
    "records": "By people",
    "add-remove": "One person more or less",
    "replace": "One person changed",
}
PAPER = {
    "tight": "“tight” in the paper: the released cell shows one value, and it is that of the person",
    "exact": "“exact” in the paper: the released cell shows one value, and somebody in the cell has it",
    "published": "“as published”: the formula as the paper prints it",
    "local": "“local” in the paper: the average over the cells of this very table",
    "expected": "“expected” in the paper: the average over tables whose cells have the same sizes",
    "shrinkage": "“shrinkage” in the paper: shares of the values drawn towards the overall ones",
    "marginal": "“marginal” in the paper: sizes of the cells drawn anew",
    "marginal_shrinkage": "“marginal shrinkage” in the paper: sizes and shares drawn anew",
}
"""What the paper calls it, for a tooltip."""
RELEASABLE = ("geometric", "discrete-gaussian")
ALMOST_UNIQUE = 0.5
NOBODY_ADDS_UP = "No ledger is open: this loss is not recorded anywhere."


def describe_server(settings: Settings) -> answer_models.State:
    """What the server was started with, and the words that it knows."""
    from cellrisk.system.version import __version__

    policies = Policies.in_force(settings.policy)
    return answer_models.State(
        version=__version__,
        without_epsilon=list_reasons(),
        folder=settings.folder is not None,
        ledger=settings.ledger is not None,
        policy=policies.describe() if policies else None,
        locks=describe_locks(policies) if policies else None,
        upload_limit=settings.upload_limit,
        mechanisms=[
            answer_models.NamedMechanism(
                name=name,
                title=TITLES[name],
                delta=not kind.pure,
                release=name in RELEASABLE,
                largest_epsilon=LARGEST_CLASSICAL if name == "gaussian" else None,
            )
            for name, kind in MECHANISMS.items()
        ],
        measures=_titled(MEASURES),
        forms=_titled(FORMS),
        weights=_titled(WEIGHTS),
        neighbours=_titled(NEIGHBOURS),
        missing=list(MISSING_RULES),
    )


def list_reasons() -> dict[str, str]:
    """Why a part of the page has nothing to show for a perturbation: the reasons of the commands, as sentences."""
    reasons = {name: told[0] for name, told in WITHOUT_PERTURBATION.items()}
    reasons |= {"max_epsilon": NO_EPSILON, "margin": NO_CHANCE}
    return {name: make_sentence(told) for name, told in reasons.items()}


def _titled(names: Iterable[str]) -> list[answer_models.Named]:
    return [answer_models.Named(name=name, title=TITLES[name], paper=PAPER.get(name)) for name in names]


def describe_locks(policies: Policies) -> answer_models.Locks:
    """What the policies fix: the words of the risk that the first of them limits, and the tightest limits."""
    words = dict(policies.on_risks[0][0].words) if policies.on_risks else {}
    others = [limit for risk, limit in policies.on_risks if risk.words != words]
    limits: dict[str, float] = {}
    for limit in policies.limits:
        if limit not in others:
            limits[limit.name] = min(limit.maximum, limits.get(limit.name, limit.maximum))
    return answer_models.Locks(words=words, limits=limits)


def describe_source(origin: Origin) -> answer_models.Source:
    return answer_models.Source(source=origin.id, name=origin.name, bytes=origin.bytes)


def suggest_roles(origin: Origin, preview: Preview) -> answer_models.Suggestion:
    """What the columns are likely to be, by their names and levels; of the example this is known."""
    if origin.suggested is not None:
        return origin.suggested
    columns = Columns(origin.name, preview)
    quasi_identifiers, sensitive = columns.suggested
    return answer_models.Suggestion(
        quasi_identifiers=list(quasi_identifiers),
        sensitive=list(sensitive),
        bins=dict(columns.bins),
        counts=[name for name, role in columns.roles.items() if role == COUNT],
    )


def describe_preview(origin: Origin, preview: Preview) -> answer_models.SourcePreview:
    """The columns of a source, each with a hint where a specialist would give one."""
    return answer_models.SourcePreview(
        source=origin.id,
        name=origin.name,
        rows=preview.rows,
        columns=[answer_models.Column(**vars(each), hint=hint_at(each, preview.rows)) for each in preview.columns],
        suggested=suggest_roles(origin, preview),
        kind=origin.kind,
    )


def hint_at(column: PreviewedColumn, rows: int) -> str | None:
    """What a specialist would say of a column at first sight."""
    if column.kind == "other":
        return "holds values of a kind that no table can be made of"
    if rows and column.missing == rows:
        return "has no values"
    if column.levels == 1:
        return "has one value only: it tells nobody apart, and there is nothing in it to protect"
    if column.unique_share > ALMOST_UNIQUE and rows > 1:
        if column.kind == "number":
            return "almost every row has its own value: cut it into bins, or leave it out"
        return "almost every row has its own value: a name or a number of a person is no quasi-identifier"
    return None


def describe_table(loaded: LoadedTable, preview: Preview | None) -> answer_models.Table:
    """A table in numbers, and what a specialist would say of it."""
    found = loaded.tabulated.table
    return answer_models.Table(
        table=loaded.id,
        name=loaded.recipe.name,
        source=loaded.origin.id,
        kind=loaded.origin.kind,
        missing=loaded.recipe.missing,
        count=loaded.recipe.count,
        records=found.n_records,
        cells=found.n_cells,
        keyed=loaded.keyed,
        dropped=found.dropped_records,
        sensitive=[answer_models.Attribute.model_validate(describe_attribute(each)) for each in found.attributes],
        quasi_identifiers=list(found.quasi_identifiers),
        bins=dict(loaded.recipe.bins),
        warnings=[*warn(loaded), *([] if loaded.keyed or preview is None else warn_unread(loaded, preview))],
        assumptions=list(list_assumptions(found)),
        sizes=describe_sizes(loaded),
        default_delta=usual_delta(found.n_records),
    )


def describe_sizes(loaded: LoadedTable) -> answer_models.Sizes:
    """Cells and records by cell size; bars end with the largest cell."""
    size, cells = loaded.tabulated.table.attributes[0].profiles.sizes
    largest = int(size[-1])
    edges = [low for low, _ in SIZE_CLASSES if low <= largest] + [largest + 1]
    bars = [(size >= low) & (size < high) for low, high in pairwise(edges)]
    return answer_models.Sizes(
        edges=edges,
        cells=[int(cells[bar].sum()) for bar in bars],
        records=[int((size * cells)[bar].sum()) for bar in bars],
    )


def warn(loaded: LoadedTable) -> Iterator[str]:
    """What a specialist would point out before anything is published."""
    table, records = loaded.tabulated.table, loaded.tabulated.table.n_records
    for name, values in loaded.tabulated.values.items():
        if values == 1:
            yield f"'{name}' has one value only: it tells nobody apart. Leave it out."
        elif values > ALMOST_UNIQUE * records:
            yield (
                f"'{name}' has {number_of(values, 'value')} in {number_of(records, 'record')}: it is almost unique, so "
                "that nearly everybody has a cell of their own. Leave it out, or cut it into bins."
            )
        elif loaded.tabulated.once[name]:
            yield (
                f"{number_of(loaded.tabulated.once[name], 'value')} of '{name}' in one record only: coarser values "
                "would hide these people among others."
            )
    if table.n_cells > records / 2:
        yield (
            f"{number_of(table.n_cells, 'cell')} for {number_of(records, 'record')}: most people are alone in their "
            "cell, or nearly so. Fewer or coarser quasi-identifiers would help more than noise."
        )
    missing = dict(table.missing_records)
    for attribute in table.attributes:
        totals = attribute.levels.totals
        if int((totals > 0).sum()) == 1:
            yield f"Only one level of '{attribute.name}' occurs: every cell is homogeneous."
        if int((totals == 1).sum()):
            yield (
                f"{number_of(int((totals == 1).sum()), 'level')} of '{attribute.name}' in one record only: whoever "
                "knows that person is in the data may know the value. Merge rare levels."
            )
        if missing.get(attribute.name):
            rule = "left out" if table.missing == "drop" else "counted as a level of its own"
            yield f"No value of '{attribute.name}': {number_of(missing[attribute.name], 'record')}, {rule}."


def warn_unread(loaded: LoadedTable, preview: Preview) -> Iterator[str]:
    """The same of the quasi-identifiers of a large table, as far as its columns tell before its cells are read."""
    plain = set(loaded.recipe.quasi_identifiers) - {name for name, _ in loaded.recipe.bins}
    for column in preview.columns:
        if column.name in plain and column.levels == 1:
            yield f"'{column.name}' has one value only: it tells nobody apart. Leave it out."
        elif column.name in plain and column.unique_share > ALMOST_UNIQUE:
            yield (
                f"'{column.name}' is almost unique, so that nearly everybody has a cell of their own. Leave it out, or "
                "cut it into bins."
            )


def describe_job(job: Job) -> answer_models.Job:
    """How far a job has got; why it failed is said in the words of the page."""
    said = job.to_dict()
    return answer_models.Job(**{**said, "error": None if said["error"] is None else name_boxes(said["error"])})


def read_mechanism(loaded: LoadedTable, asked: request_models.EpsilonRequest) -> Mechanism:
    """The mechanism that a request about a table describes."""
    return make_mechanism(asked.mechanism, asked.epsilon, asked.delta, asked.neighbours, loaded.table.n_records)


def find_riskiest(loaded: LoadedTable, cells: Cells, asked: request_models.RiskiestRequest) -> answer_models.Riskiest:
    """The riskiest cells, as `explain` lists them."""
    risks = CellRisks.at(read_mechanism(loaded, asked), cells, "tight")
    return answer_models.Riskiest(columns=list(cells.names), rows=list(risks.riskiest(asked.top)))


def draw_glimpse(loaded: LoadedTable, cells: Cells, asked: request_models.GlimpseRequest) -> answer_models.Glimpse:
    """A few cells before and after one simulated release."""
    found = glimpse(cells, read_mechanism(loaded, asked), asked.cells, asked.seed)
    return answer_models.Glimpse(
        levels=list(cells.levels),
        cells=[answer_models.GlimpseCell(**each, scenario_text=_tell(each["scenario"])) for each in found],
        legend=[
            answer_models.ScenarioText(scenario=number, text=_tell(number), exposes=Scenario(number, 0.0, 0.0).exposes)
            for number in SCENARIOS
        ],
    )


def _tell(number: int) -> str:
    held, shows = SCENARIOS[number]
    return f"holds {held}, shows {shows}"


def describe_ledger(place: str) -> answer_models.LedgerAnswer:
    """The releases of a ledger in their order, what each cohort has lost, and whether all is as it was written."""
    from cellrisk.repeat.ledger import Ledger

    with Ledger(place) as ledger:
        verification = ledger.verify()
        whole = verification.ok
        return answer_models.LedgerAnswer(
            entries=[_describe_entry(entry) for entry in ledger.entries(kind="release")] if whole else [],
            cohorts=[_describe_cohort(ledger, cohort.name) for cohort in ledger.cohorts()] if whole else [],
            verified=whole,
            sentence=verification.headline,
        )


def _describe_entry(entry: Any) -> answer_models.LedgerEntry:
    mechanism = entry.loss.mechanism
    return answer_models.LedgerEntry(
        number=entry.number,
        when=entry.time,
        cohort=entry.cohort,
        purpose=entry.purpose,
        sensitive=entry.attribute,
        quasi_identifiers=list(entry.quasi_identifiers),
        mechanism=None if mechanism is None else mechanism.name,
        epsilon=entry.loss.epsilon,
        delta=entry.loss.delta,
        rho=entry.loss.rho,
        file=None if entry.file is None else entry.file.name,
        digest=entry.digest,
        sentence=entry.headline,
    )


def _describe_cohort(ledger: Any, name: str) -> answer_models.Cohort:
    """What a cohort has lost, counted as its limit counts where it has one."""
    limit = ledger.limit(name)
    asked = () if limit is None else (limit.operator, limit.delta)
    try:
        spent = ledger.spent(name, *asked)
        epsilon, delta = spent.epsilon, spent.delta
    except CellriskError:  # losses that cannot be added up that way
        epsilon, delta = None, 0.0
    return answer_models.Cohort(name=name, epsilon=epsilon, delta=delta, limit=None if limit is None else limit.epsilon)


def tell_consequences(loaded: LoadedTable, asked: DownloadRequest, settings: Settings) -> answer_models.Consequences:
    """What the page says before it asks for the last yes."""
    mechanism = read_mechanism(loaded, asked)
    policies = Policies.in_force(settings.policy)
    breaches = policies.breaches(loaded.table, mechanism, loaded.table.attribute(asked.sensitive).name)
    above = [*_break_own_limits(loaded, asked, mechanism), *breaches]
    uncovered = list(_leave_uncovered(asked))
    uncovered += say_delta(asked.mechanism, asked.delta, loaded.table.n_records) + policies.disclosures
    budget, refused = _tell_budget(asked, mechanism, settings)
    return answer_models.Consequences(
        above=[_as_sentence(each) for each in dict.fromkeys(above)],
        uncovered=uncovered,
        budget=[_as_sentence(each) for each in budget],
        forbidden=bool(breaches) or refused,
    )


def _break_own_limits(loaded: LoadedTable, asked: DownloadRequest, mechanism: Mechanism) -> Iterator[str]:
    """The limits of the page that this epsilon does not keep."""
    table = narrow(loaded.table, asked.sensitive)
    risk = RiskDefinition(asked.measure, asked.form, asked.weights)
    for limit in read_limits(**{name: getattr(asked, name) for name in METRICS}, risk=risk):
        value = limit.value(table.attributes, mechanism)
        if value > limit.maximum:
            yield f"the limit is {limit.describe()}, and {limit.say(value)}"


def _leave_uncovered(asked: DownloadRequest) -> Iterator[str]:
    if asked.observed_levels:
        yield "Labels are those that occur in the data: the guarantee does not cover which values exist."
    if asked.observed_cells_only:
        yield "Only cells that are not empty are released: the guarantee does not cover which cells exist."


def _tell_budget(asked: DownloadRequest, mechanism: Mechanism, settings: Settings) -> tuple[list[str], bool]:
    """What the people have spent before and after, and whether a limit of the ledger refuses this release."""
    if settings.ledger is None:
        return [NOBODY_ADDS_UP], False
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.show.reporting.particulars import describe_budget

    cohort = asked.cohort or ""
    with Ledger(settings.ledger) as ledger:
        try:
            ledger.check(mechanism, cohort, new_cohort=asked.new_cohort, part_of=asked.part_of)
        except CellriskError as refusal:
            return [f"The ledger refuses this: {refusal}"], True
        if all(each.name != cohort for each in ledger.cohorts()):
            return [f"Cohort {cohort}: nothing spent before, {mechanism_cost(mechanism)} after"], False
        told = describe_budget(ledger, cohort, Loss.of(mechanism))
        return [f"Cohort {cohort}: {told['earlier']}", told["budget"][0][1]], False


def mechanism_cost(mechanism: Mechanism) -> str:
    """What a release costs, in words."""
    return f"epsilon {claim(mechanism.epsilon)}" + ("" if mechanism.pure else f", delta {claim(mechanism.delta)}")


def _as_sentence(words: str) -> str:
    return name_boxes(make_sentence(words.rstrip(".")))
