"""The commands on one table: inspect, assess, explain, curve, choose, utility, simulate, report; demo and serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli import options, parsing
from cellrisk.cli.config import (
    A_FILE_READ,
    Config,
    CurveOptions,
    DrawnOptions,
    NumbersOptions,
    OutputOptions,
    PictureOptions,
    ScreenOptions,
    policies_of,
)
from cellrisk.cli.options import (
    Numbers,
    Parsed,
    Text,
    Texts,
    number,
    option,
    refuse_beside,
    several_words,
    switch,
    whole,
)
from cellrisk.cli.output import progress_bar, say, stop_if_broken
from cellrisk.cli.recording import NewLedger, ShownLedgerOptions
from cellrisk.counts.unit import MOST_RECORDS, Unit
from cellrisk.errors import InvalidInput
from cellrisk.system.atomic import check_ending, give_up_input, write_whole
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import FigureName, MeasureName

if TYPE_CHECKING:
    from cellrisk.decide.limits import Limit

MOST_DIGESTS = 20
"""Files of the source whose digests a report prints."""
PUBLIC = "A statement for the public: nothing computed from the raw data."
Ways = Annotated[Numbers, option("Columns of the marginals.", "NUMBERS", parsing.parse_whole_numbers, "1,2,3")]


def inspect_command(
    table: options.TableOptions,
    output: PictureOptions,
    write: Annotated[Text, option("Draft a settings file: roles, levels, bins to fill in.", "FILE")] = None,
    force: Annotated[bool, switch("--force", "Replace the file that --write names.")] = False,
) -> None:
    """What the table reveals without noise.

    Counts the groups, those in which everybody has the same value, and the people in these. With --person it shows how
    many records people have. Without --qid and --sensitive it lists the columns and suggests their roles.
    """
    if write is not None or (not (table.qid or table.sensitive) and table.is_file):
        of_a_table = {*asdict(table), "plot"} - {"source", "table", "encoding", "qid", "sensitive"}
        refuse_beside("these options require --qid and --sensitive", output.list_typed(*sorted(of_a_table)))
        _list_columns(table, output, write, force)
        return
    if table.person is None or table.contributions is not None:
        frequencies = table.tabulate()
    else:  # every record is kept, and none is said to be a person
        frequencies = replace(replace(table, contributions=MOST_RECORDS).tabulate(), unit=Unit())
    output.answer(frequencies.summary(), drawn=frequencies)


def _list_columns(table: options.TableOptions, output: OutputOptions, write: str | None, force: bool) -> None:
    """List the columns of a file, or draft a settings file for it."""
    from cellrisk.counts.preview import draft_settings, preview_file

    if not table.is_file:
        raise InvalidInput("a settings file is drafted for a file", got="a database", fix="export a sample of it")
    if write is not None:
        if force:
            give_up_input(write, A_FILE_READ)
        elif os.path.lexists(write):
            raise InvalidInput("the file exists", got=write, fix="replace it with --force", code="file-exists")
        check_ending(write, (".toml",), "settings file", "cellrisk.toml")
    name = "-" if Path(table.source).stem == options.STANDARD_INPUT else table.source
    preview = preview_file(table.source, progress_bar("reading"), table.table, table.encoding, name)
    if write is None:
        output.answer(preview)
        return
    roles = parsing.split_names(table.qid), parsing.split_names(table.sensitive)
    text, draft = draft_settings(preview, write, table.source, *roles, table.table, table.encoding)
    write_whole(write, text)
    output.answer(draft)


def assess_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    risk: options.SeveralRiskOptions,
    attacker: options.AttackerOptions,
    output: DrawnOptions,
    gates: options.LimitOptions,
    domain: Annotated[bool, switch("--domain", "Include the empty groups of the domain.")] = False,
    releases: Annotated[int, whole("How often the table is published, each time with new noise.")] = 1,
    seed: Annotated[int, whole("Seed by which records of people who have too many are drawn.")] = 0,
) -> None:
    """What a table would reveal if it were published at this epsilon, or with a perturbation.

    Prints how many people are revealed because of their own record, how many an informed attacker infers, and the
    worst case for one record; then every measure of the homogeneity attack. Ends with exit code 3 if a limit is broken.
    """
    policies, asked, limits = output.policies, risk.many(), _read_gates(gates, risk, attacker)
    if releases != 1:
        refuse_beside("limits are kept or broken by one release", [limit.name for limit in limits])
        asked["releases"] = releases
    if noise.perturbation is not None:
        beside = {"attack": risk.attack != "homogeneity", "domain": domain, "releases": releases != 1}
        beside |= {"harmful": bool(attacker.harmful), "also_as": bool(attacker.unions)}
        unused = [name for name, is_given in beside.items() if is_given]
        refuse_beside("a perturbation is assessed by the homogeneity attack alone", unused)
    used: Any = noise.read_perturbation("mechanism", "delta") or noise.one()
    frequencies = table.tabulate(seed=seed)
    if noise.perturbation is None:
        found: Any = cr.assess(frequencies, used, domain=domain, **asked, **attacker.arguments())
    else:
        del asked["attack"]
        compared: Any = {"compare": noise.mechanism, "delta": noise.delta}
        found = cr.assess_perturbation(frequencies, used, **compared, **asked, **attacker.arguments())
    everything = domain or risk.attack != "homogeneity" or any((risk.measure, risk.form, risk.weights))
    output.answer(found, policies=policies, everything=everything)
    breaches = [limit.breach(frequencies.attributes, used) for limit in limits]
    broken = [f"asked for was {breach}" for breach in breaches if breach is not None]
    stop_if_broken([*broken, *policies.breaches(frequencies, used)])


def _read_gates(
    gates: options.LimitOptions, risk: options.SeveralRiskOptions, attacker: options.AttackerOptions
) -> list[Limit]:
    """Return the limits that were given; one on the risk holds for each risk that is named."""
    maxima = asdict(gates)
    if not any(maximum is not None for maximum in maxima.values()):
        return []
    from cellrisk.decide.limits import RiskDefinition, read_limits

    named, usual = risk.many(), {"measures": "local", "forms": "tight", "weights": "records"}
    risks = [
        RiskDefinition(*words, attack=risk.attack, priors=risk.priors)  # type: ignore[misc]
        for words in product(*(named[name] or [word] for name, word in usual.items()))
    ]
    limits = [limit for one in risks for limit in read_limits(**maxima, **attacker.arguments(), risk=one)]
    return list(dict.fromkeys(limits))


def explain_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    attacker: options.AttackerOptions,
    output: ScreenOptions,
    form: options.OneForm = None,
    weights: options.OneWeights = None,
    top: Annotated[int, whole("Groups to list.")] = 20,
    merge: Annotated[Parsed, option("Merge values: education:school=9th|10th.", "MERGE", parsing.parse_merge)] = None,
) -> None:
    """Who is at risk, and what would help.

    Lists the groups most at risk, and the local risk if a quasi-identifier were left out or made coarser.
    """
    merges: dict[str, dict[str, list[str]]] = {}
    for column, new, old in merge or ():
        merges.setdefault(column, {})[new] = old
    how: dict[str, Any] = {name: value for name, value in {"form": form, "weights": weights}.items() if value}
    made = noise.read_perturbation()
    how |= {"mechanism": noise.one()} if made is None else {"perturbation": made}
    output.answer(cr.explain(table.tabulate(), top=top, merge=merges, **attacker.single(), **how))


@dataclass(frozen=True)
class CurveRiskOptions(options.SeveralRiskOptions):
    """Which risks, or figures to decide by."""

    measure: Annotated[Texts, several_words("Figures or measures", FigureName, MeasureName, default="all five")] = None


def curve_command(
    table: options.TableOptions,
    mechanism: options.SeveralMechanismOptions,
    risk: CurveRiskOptions,
    attacker: options.AttackerOptions,
    output: CurveOptions,
) -> None:
    """The risk along epsilon, as numbers and as a picture.

    --measure caused,certainty,ceiling shows the figures to decide by.
    """
    asked = {**mechanism.arguments(), **risk.many(), **attacker.arguments()}
    found = cr.curve(table.tabulate(), **asked, progress=progress_bar("computing"))
    output.answer(found, policies=output.policies)


def choose_command(
    table: options.TableOptions,
    mechanism: options.SearchedMechanismOptions,
    risk: options.OneRiskOptions,
    limits: options.LimitOptions,
    attacker: options.AttackerOptions,
    error: options.ErrorOptions,
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
    choice = cr.choose(table.tabulate(), progress=progress_bar("searching"), **asked)
    output.answer(choice)
    stop_if_broken([] if choice.admissible else ["no epsilon keeps every limit"])


def utility_command(
    table: options.TableOptions,
    mechanism: options.SeveralMechanismOptions,
    output: NumbersOptions,
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
    output.answer(cr.utility(table.tabulate(seed=seed), noises, **how, progress=progress_bar("simulating")))


def simulate_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    attacker: options.AttackerOptions,
    totals: options.TotalsOptions,
    output: ScreenOptions,
    releases: Annotated[int, whole("Releases that are simulated.")] = 1000,
    seed: options.Seed = 0,
    exclude: options.Exclude = None,
    may_be_missing: Annotated[Texts, option("With --parents: columns that can hold missing values.", "COLUMNS")] = None,
) -> None:
    """What attackers find in simulated releases."""
    how: Any = {**asdict(totals), "exclude": exclude or (), "may_be_missing": parsing.split_names(may_be_missing)}
    how |= {"releases": releases, "seed": seed, "progress": progress_bar("simulating"), **attacker.arguments()}
    made = noise.read_perturbation()
    how |= {"mechanism": noise.one()} if made is None else {"perturbation": made}
    output.answer(cr.simulate(table.tabulate(seed=seed), **how))


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(ShownLedgerOptions):
    """What a report shows of a ledger, what it prints as it is given, and where it is written."""

    output: Annotated[str, option("The report: .html or .pdf.", "FILE")]
    title: Annotated[Text, option("Title of the report.", "TEXT")] = None
    organisation: Annotated[Text, option("Who publishes the table.", "TEXT")] = None
    audience: Annotated[Text, option("Who gets the table, for the threat model.", "TEXT")] = None
    date: Annotated[Text, option("Date to print.", "DATE", default="none")] = None
    template: Annotated[Text, option("Your own Jinja template.", "FILE")] = None
    public: Annotated[bool, typer.Option(help=PUBLIC)] = False

    def __post_init__(self) -> None:
        """Refuse paths that cannot be written."""
        from cellrisk.show.reporting import check_report_path

        check_report_path(self.output)
        if self.public and self.ledger is not None:
            raise InvalidInput("--ledger is not for a statement for the public", fix="leave it out")

    def arguments(self, settings: OutputOptions, source: str, files: Sequence[Path]) -> dict[str, Any]:
        """Return what a report prints beside results; of a statement for the public, nothing about the files."""
        ledger, printed = settings.context.with_resource(self.opened()), asdict(self)
        return {
            **{name: printed[name] for name in ("title", "organisation", "audience", "date", "template", "public")},
            "source": None if "://" in source else Path(source).name,
            "ledger": ledger,
            "cohort": "everyone" if ledger is None else ledger.state().choose_cohort(self.cohort),
            "command": None if self.public else settings.command,
            "inputs": {} if self.public else {file.name: file for file in files[:MOST_DIGESTS]},
            "policy": settings.policies,
        }

    def write(self, report: cr.Report, settings: OutputOptions, raw: bool = True) -> None:
        """Write the report, and print where."""
        written = report.save(self.output)
        if settings.as_json:
            settings.answer(report, raw=raw)
            return
        obeyed = f"{settings.policies.describe()}\n\n" if settings.policies else ""
        say(f"{report.headline}\n\n{obeyed}Written to {written}.")


@dataclass(frozen=True, kw_only=True)
class TableDocumentOptions(DocumentOptions):
    """What a report on one table takes beside what every report takes."""

    registry: Annotated[Text, option("Write a record for the registry of deployments.", "FILE.yaml")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.registry is not None:
            from cellrisk.show.reporting.document import check_record_path

            check_record_path(self.registry)

    def write(self, report: cr.Report, settings: OutputOptions, raw: bool = True) -> None:
        record = None if self.registry is None else report.save_record(self.registry)
        super().write(report, settings, raw)
        if record is not None and not settings.as_json:
            say(f"The record for the registry is written to {record}.")


def report_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    risk: options.OneRiskOptions,
    limits: options.LimitOptions,
    attacker: options.AttackerOptions,
    error: options.ErrorOptions,
    document: TableDocumentOptions,
    settings: OutputOptions,
) -> None:
    """A report for a disclosure review board, or with --public a statement for everybody.

    With --ledger it shows what the ledger has spent. Ends with exit code 3 if a limit or a policy is broken, or no
    epsilon keeps the limits.
    """
    from cellrisk.counts.sources import list_files_of

    policies = settings.policies
    question = risk.within(policies)
    limits.within(policies, question, **attacker.single(), attack=risk.attack)
    made = noise.read_perturbation("mechanism", "delta")
    if made is not None:
        beside = ["attack"] if risk.attack != "homogeneity" else []
        refuse_beside("a perturbation is assessed by the homogeneity attack alone", beside)
        if document.registry is not None:
            refuse_beside("the registry is one of differentially private deployments", ["registry"])
    asked: Any = document.arguments(settings, table.source, list_files_of(table.source))
    asked |= {} if made is not None else {"neighbours": noise.neighbours, "threshold": noise.threshold}
    frequencies = table.tabulate(outside="drop" if document.public else "error")
    bins = {name: given if isinstance(given, list) else [given] for name, given in table.bins.items()}
    prepared = [f"{name} in bins: {'/'.join(f'{edge:.15g}' for edge in edges)}" for name, edges in bins.items()]
    rules = [str(policy.delta) for policy in policies.obeyed if policy.delta is not None]
    if rules and noise.delta is None:
        prepared.append(f"delta, if the mechanism takes one, by the policy's rule {' and '.join(rules)}")
    found = cr.report(
        frequencies,
        noise.mechanism,
        epsilon=noise.epsilon,
        delta=noise.delta,
        **asked,
        preparation=prepared,
        perturbation=made,
        progress=progress_bar("reporting"),
        **asdict(limits),
        **attacker.single(),
        **question,
        priors=risk.priors,
        **asdict(error),
    )
    document.write(found, settings)
    if found.verdict == "unbound":
        return
    used = made or found.mechanism
    broken = [] if used is None else policies.breaches(frequencies, used)
    if used is None:
        broken = ["no epsilon is within the limits; the report says why"]
    elif found.verdict == "broken" and not broken:
        broken = ["a limit is broken; the report says which"]
    stop_if_broken(broken)


def demo_command(
    output: OutputOptions,
    epsilon: Annotated[float, number("Privacy loss: smaller is more private.")] = 1,
    save: Annotated[Text, option("Write the data to this Parquet file, to try other commands.", "FILE")] = None,
) -> None:
    """Assess UCI Adult, which comes with the package."""
    if save is not None:
        write_whole(save, cr.datasets.adult_path().read_bytes(), public=True)
    noise = options.MechanismOptions(epsilon=epsilon).one()
    qids = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
    table = cr.tabulate(cr.datasets.adult_as_published(), qids, "income", bins={"age": 5, "hours-per-week": 10})
    output.answer(cr.assess(table, noise))
    if not output.as_json:
        say(
            "\nThe data: UCI Adult (CC BY 4.0), people born in the United States, no missing values; six\n"
            "quasi-identifiers, age in steps of 5 years and hours per week in steps of 10.\n"
            "For the whole file, or for your own:\n\n"
            f"  cellrisk assess {save or cr.datasets.adult_path()} \\\n"
            f"    --qid {','.join(qids)} \\\n"
            f"    --bin age=5 --bin hours-per-week=10 --sensitive income --epsilon {noise.epsilon:g}"
        )


def serve_command(
    context: typer.Context,
    folder: Annotated[Text, option("Let the web app load files in this folder.", "FOLDER")] = None,
    ledger: Annotated[Text, option("Ledger in which releases are recorded.", "LEDGER")] = None,
    new_ledger: NewLedger = False,
    port: Annotated[int, whole("The port; 0 takes a free one.")] = 0,
    upload_limit: Annotated[str, option("The largest upload, for example 500MB.", "SIZE")] = "2GB",
    browser: Annotated[bool, typer.Option(help="Open the web app in a browser.")] = True,
    config: Config = None,
) -> None:
    """Assess a table and choose epsilon in your browser.

    It listens on this machine alone. Anybody with the link that it prints can use the web app. Ctrl-C ends it and
    removes what was uploaded.
    """
    from cellrisk.counts.engine import read_bytes
    from cellrisk.web import serve

    require_whole_number("port", port, 0, 65_535)
    serve(
        folder=folder,
        port=port,
        ledger=ledger,
        new_ledger=new_ledger,
        upload_limit=read_bytes(upload_limit),
        policy=policies_of(context),
        open_browser=browser,
        announce=lambda link: typer.echo(f"cellrisk is at {link}\nCtrl-C ends it."),
    )
