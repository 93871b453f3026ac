"""The commands that help to decide: curve, choose, utility and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli import options, parsing
from cellrisk.cli.options import Number, Numbers, Text, Texts, option, share, whole
from cellrisk.cli.output import DrawnOptions, OutputOptions, ScreenOptions, say, stop_if_broken
from cellrisk.cli.recording import ShownLedgerOptions
from cellrisk.errors import InvalidInput
from cellrisk.system import choices
from cellrisk.system.atomic import check_writable
from cellrisk.system.checks import split_names

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies
    from cellrisk.show.reporting import Report

MEASURED = (choices.FigureName, choices.MeasureName)
MOST_DIGESTS = 20
"""Files of the source whose digests a report prints."""
PUBLIC = "A statement for the public: nothing computed from the raw data."
Ways = Annotated[Numbers, option("Columns of the marginals.", "NUMBERS", parsing.parse_whole_numbers, "1,2,3")]
POINTS = "Privacy losses: 0.1,1,10, or low:high:points."
SEARCHED = "Privacy losses to search in."


@dataclass(frozen=True)
class SeveralMechanismOptions(options.NamedMechanismOptions):
    """Several mechanisms, at several epsilons and deltas."""

    mechanism: Annotated[Any, options.several_words("Mechanisms", choices.MechanismName)] = "geometric"
    delta: Annotated[Numbers, option("Deltas of the Gaussian mechanisms.", "NUMBERS", parsing.parse_numbers)] = None
    epsilon: Annotated[Numbers, option(POINTS, "NUMBERS", parsing.parse_points, "0.001:100 in curve")] = None

    def arguments(self) -> dict[str, Any]:
        """Arguments for what takes several mechanisms by their names."""
        return {**asdict(self), "mechanism": split_names([self.mechanism])}


@dataclass(frozen=True)
class SearchedMechanismOptions(SeveralMechanismOptions):
    """Several mechanisms, at epsilons of a range."""

    epsilon: Annotated[Numbers, option(SEARCHED, "LOW:HIGH", parsing.parse_range, "0.001:100")] = None

    def arguments(self) -> dict[str, Any]:
        ends = {} if self.epsilon is None else {"least_epsilon": self.epsilon[0], "largest_epsilon": self.epsilon[1]}
        return {name: value for name, value in super().arguments().items() if name != "epsilon"} | ends


@dataclass(frozen=True)
class OneRiskOptions(options.PriorOptions):
    """Which risk, and the priors of its measure."""

    measure: options.OneMeasure = None
    form: options.OneForm = None
    weights: options.OneWeights = None
    attack: options.AttackName = "homogeneity"

    def within(self, policies: Policies) -> dict[str, Any]:
        """The words of the risk that are named; a policy sets them, and others are refused."""
        named = {name: getattr(self, name) for name in ("measure", "form", "weights")}
        given = {name: value for name, value in named.items() if value is not None}
        return policies.fix_words(given) if policies else given


@dataclass(frozen=True)
class ErrorOptions:
    """The largest error of marginals, and how releases are simulated to find it."""

    max_tvd: Annotated[Number, share("Largest error of marginals: a total variation distance.")] = None
    releases: Annotated[int, whole("Releases that are simulated.")] = 20
    seed: options.Seed = 0


@dataclass(frozen=True)
class CurveRiskOptions(options.SeveralRiskOptions):
    """Which risks, or figures to decide by."""

    measure: Annotated[Texts, options.several_words("Figures or measures", *MEASURED, default="all five")] = None


@dataclass(frozen=True)
class NumbersOptions:
    """Where the numbers are written."""

    csv: Annotated[Text, option("Write the numbers as a CSV file.", "FILE")] = None
    spreadsheet_safe: options.SpreadsheetSafe = False

    def __post_init__(self) -> None:
        """Refuse a path that cannot be written before the work begins."""
        if self.csv is not None:
            check_writable(self.csv)

    def write(self, result: Any) -> None:
        if self.csv is not None:
            from cellrisk.system.spreadsheets import tell_formulas

            warning = tell_formulas(result.to_csv(self.csv, spreadsheet_safe=self.spreadsheet_safe))
            if warning is not None:
                say(f"cellrisk: {warning}", err=True)


def curve_command(
    table: options.TableOptions,
    mechanism: SeveralMechanismOptions,
    risk: CurveRiskOptions,
    attacker: options.AttackerOptions,
    output: DrawnOptions,
    numbers: NumbersOptions,
) -> None:
    """The risk along epsilon, as numbers and as a picture.

    --measure caused,certainty,ceiling shows the figures to decide by.
    """
    asked = {**mechanism.arguments(), **risk.many(), **attacker.arguments()}
    curve = cr.curve(table.tabulate(), **asked, progress=options.progress_bar("computing"))
    numbers.write(curve)
    output.answer(curve, policies=output.policies)


def choose_command(
    table: options.TableOptions,
    mechanism: SearchedMechanismOptions,
    risk: OneRiskOptions,
    limits: options.LimitOptions,
    attacker: options.AttackerOptions,
    error: ErrorOptions,
    output: DrawnOptions,
    way: Annotated[int, whole("Columns of the marginals of --max-tvd: 1, 2 or 3.")] = 2,
) -> None:
    """The largest epsilon within limits.

    All limits must hold. Within --max-caused, --max-certain, --max-person, --max-ceiling, --max-posterior and
    --max-epsilon a smaller epsilon is always allowed; --max-error asks for a larger one; within the others, which limit
    the paper's measure, a smaller one may not be allowed. If no limit binds, no epsilon is recommended. Ends with exit
    code 3 if no epsilon keeps the limits.
    """
    policies = output.policies
    question = risk.within(policies)
    limits.within(policies, question, **attacker.single(), attack=risk.attack)
    asked = {**mechanism.arguments(), **asdict(limits), **attacker.single(), **question, **asdict(error)}
    asked |= {"attack": risk.attack, "priors": risk.priors, "way": way, "policy": policies}
    choice = cr.choose(table.tabulate(), progress=options.progress_bar("searching"), **asked)
    output.answer(choice)
    stop_if_broken([] if choice.admissible else ["no epsilon keeps every limit"])


def utility_command(
    table: options.TableOptions,
    mechanism: SeveralMechanismOptions,
    output: ScreenOptions,
    numbers: NumbersOptions,
    ways: Ways = None,
    releases: Annotated[int, whole("Releases that are simulated.")] = 100,
    seed: options.Seed = 0,
) -> None:
    """How accurate the table stays with noise.

    Prints the error of counts by their size, which is exact, and how far marginals of simulated releases are from the
    true ones.
    """
    given = mechanism.arguments()
    if mechanism.epsilon is None:
        raise InvalidInput("no epsilon was given", fix="choose some: --epsilon 0.1,1,10")
    settings = product(given["mechanism"], given["delta"] or [None], mechanism.epsilon)
    end: Any = {"neighbours": mechanism.neighbours, "threshold": mechanism.threshold}
    noises = [cr.mechanism(name, epsilon=epsilon, delta=delta, **end) for name, delta, epsilon in settings]
    how: Any = {"ways": ways, "releases": releases, "seed": seed}
    measured = cr.utility(table.tabulate(seed=seed), noises, **how, progress=options.progress_bar("simulating"))
    numbers.write(measured)
    output.answer(measured)


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(ShownLedgerOptions):
    """What a report shows of a ledger, what it prints as it is given, and where it is written."""

    output: Annotated[str, option("The report: .html or .pdf.", "FILE")]
    title: Annotated[Text, option("Title of the report.", "TEXT")] = None
    organisation: Annotated[Text, option("Who publishes the table.", "TEXT")] = None
    audience: Annotated[Text, option("Who gets the table, for the threat model.", "TEXT")] = None
    date: Annotated[Text, option("Date to print.", "DATE", default="none")] = None
    template: Annotated[Text, option("Your own Jinja template.", "FILE")] = None

    def __post_init__(self) -> None:
        """Refuse paths that cannot be written."""
        from cellrisk.show.reporting import check_report_path

        check_report_path(self.output)

    def arguments(self, settings: OutputOptions, source: str, files: Sequence[Path]) -> dict[str, Any]:
        """Return what a report prints beside results."""
        ledger, printed = settings.context.with_resource(self.opened()), asdict(self)
        return {
            **{name: printed[name] for name in ("title", "organisation", "audience", "date", "template")},
            "source": None if "://" in source else Path(source).name,
            "ledger": ledger,
            "cohort": "everyone" if ledger is None else ledger.state().choose_cohort(self.cohort),
            "command": settings.command,
            "inputs": {file.name: file for file in files[:MOST_DIGESTS]},
            "policy": settings.policies,
        }

    def write(self, report: Report, settings: OutputOptions, raw: bool = True) -> None:
        """Write the report, and print where."""
        written = report.save(self.output)
        if settings.as_json:
            settings.answer(report, raw=raw)
            return
        obeyed = f"{settings.policies.describe()}\n\n" if settings.policies else ""
        say(f"{report.headline}\n\n{obeyed}Written to {written}.")


def report_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    risk: OneRiskOptions,
    limits: options.LimitOptions,
    attacker: options.AttackerOptions,
    error: ErrorOptions,
    document: DocumentOptions,
    settings: OutputOptions,
    public: Annotated[bool, typer.Option(help=PUBLIC)] = False,
    registry: Annotated[Text, option("Write a record for the registry of deployments.", "FILE.yaml")] = None,
) -> None:
    """A report for a disclosure review board, or with --public a statement for everybody.

    With --ledger it shows what the ledger has spent. Ends with exit code 3 if a limit or a policy is broken, or no
    epsilon keeps the limits.
    """
    from cellrisk.counts.sources import list_files_of
    from cellrisk.show.reporting.document import check_record_path

    if registry is not None:
        check_record_path(registry)
    if public and document.ledger is not None:
        raise InvalidInput("--ledger is not for a statement for the public", fix="leave it out")
    policies = settings.policies
    question = risk.within(policies)
    limits.within(policies, question, **attacker.single(), attack=risk.attack)
    made = noise.read_perturbation("mechanism", "delta")
    if made is not None:
        beside = ["attack"] if risk.attack != "homogeneity" else []
        options.refuse_beside("a perturbation is assessed by the homogeneity attack alone", beside)
        if registry is not None:
            options.refuse_beside("the registry is one of differentially private deployments", ["registry"])
    asked: Any = document.arguments(settings, table.source, list_files_of(table.source))
    asked |= {"public": True, "command": None, "inputs": {}} if public else {}
    asked |= {} if made is not None else {"neighbours": noise.neighbours, "threshold": noise.threshold}
    frequencies = table.tabulate(outside="drop" if public else "error")
    bins = {name: given if isinstance(given, list) else [given] for name, given in table.bin or ()}
    prepared = [f"{name} in bins: {'/'.join(f'{edge:.15g}' for edge in edges)}" for name, edges in bins.items()]
    rules = [str(policy.delta) for policy in policies.obeyed if policy.delta is not None]
    if rules and noise.delta is None:
        prepared.append(f"delta, if the mechanism takes one, by the policy's rule {' and '.join(rules)}")
    asked |= {**asdict(limits), **attacker.single(), **question, **asdict(error), "priors": risk.priors}
    asked |= {"epsilon": noise.epsilon, "delta": noise.delta, "preparation": prepared, "perturbation": made}
    report = cr.report(frequencies, noise.mechanism, **asked, progress=options.progress_bar("reporting"))
    record = None if registry is None else report.save_record(registry)
    document.write(report, settings)
    if record is not None and not settings.as_json:
        say(f"The record for the registry is written to {record}.")
    if report.verdict == "unbound":
        return
    used = made or report.mechanism
    broken = [] if used is None else policies.breaches(frequencies, used)
    if used is None:
        broken = ["no epsilon is within the limits; the report says why"]
    elif report.verdict == "broken" and not broken:
        broken = ["a limit is broken; the report says which"]
    stop_if_broken(broken)
