"""The commands that help to decide: curve, choose, utility, explain, report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, obey, say, stop_above_limit, tell_formulas
from cellrisk.cli.config import TYPED, OutputOptions, policy_of
from cellrisk.cli.groups import (
    AttackerOptions,
    LimitOptions,
    MechanismOptions,
    Number,
    Numbers,
    OneRiskOptions,
    Parsed,
    PerturbationText,
    RiskOptions,
    SeveralMechanismOptions,
    SimulationOptions,
    SpreadsheetSafe,
    TableOptions,
    Text,
    Texts,
    UtilitySimulationOptions,
    number,
    option,
    whole,
)
from cellrisk.cli.perturbations import check_no_noise, read_perturbation_option
from cellrisk.cli.private_choice import PrivateOptions
from cellrisk.cli.progress import progress_bar
from cellrisk.cli.releases import RecordOptions, ReleasedTableOptions, publish_figure
from cellrisk.cli.set_reports import MOST_DIGESTS, SetReport, refuse_for_set, report_set_file
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_numbers
from cellrisk.system.words import FigureName, MeasureName, list_words, say_words

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies

Plot = Annotated[Text, option("Picture: .svg, .png or .pdf.", "FILE")]
Csv = Annotated[Text, option("The numbers as a CSV file.", "FILE")]


@dataclass(frozen=True)
class ReportedLedgerOptions(RecordOptions):
    """The ledger whose budget a report shows."""

    ledger: Annotated[
        Text,
        option("Show what this ledger has spent; with --risk-epsilon, record the figure's loss in it.", "LEDGER"),
    ] = None


@dataclass(frozen=True)
class CurveRiskOptions(RiskOptions):
    """Which risks and which figures to decide by."""

    measure: Annotated[
        Texts,
        option(
            f"Figures to decide by: {say_words(FigureName)}; or measures: {say_words(MeasureName)}.",
            "NAME",
            default="all five measures",
            offered=[*list_words(FigureName), *list_words(MeasureName)],
        ),
    ] = None


@dataclass(frozen=True)
class CurveMechanismOptions(SeveralMechanismOptions):
    """How the noise is made, and at which epsilons the curve has points."""

    epsilon: Annotated[
        Numbers,
        option(
            "Privacy loss: numbers between commas, or low:high:points.",
            "NUMBERS",
            parsing.parse_points,
            "0.001:100:201",
        ),
    ] = None


def curve_command(
    context: typer.Context,
    table: TableOptions,
    mechanism: CurveMechanismOptions,
    risk: CurveRiskOptions,
    attacker: AttackerOptions,
    output: OutputOptions,
    plot: Plot = None,
    csv: Csv = None,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """The risk along epsilon, as numbers and as a picture.

    --measure caused,certainty,ceiling shows the figures to decide by. --mechanism and --delta take several, between
    commas.
    """
    from cellrisk.risk.curves import curve

    _check_outputs(plot, csv)
    asked = {**mechanism.arguments(), **risk.many(), **attacker.arguments()}
    found = curve(table.tabulate(), **asked, progress=progress_bar("computing"))
    _write(found, plot, csv, spreadsheet_safe)
    answer(found, output.as_json, policies=policy_of(context))


@dataclass(frozen=True)
class SearchedMechanismOptions(SeveralMechanismOptions):
    """How the noise is made, and between which epsilons the largest is looked for."""

    epsilon: Annotated[
        Numbers, option("Range of epsilons to search.", "LOW:HIGH", parsing.parse_range, "0.001:100")
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Arguments of `choose`."""
        found = super().arguments()
        low, high = found.pop("epsilon") or (None, None)
        return {**found, **({} if low is None else {"least_epsilon": low, "largest_epsilon": high})}


def choose_command(
    context: typer.Context,
    table: TableOptions,
    mechanism: SearchedMechanismOptions,
    risk: OneRiskOptions,
    limits: LimitOptions,
    attacker: AttackerOptions,
    simulation: SimulationOptions,
    private: PrivateOptions,
    output: OutputOptions,
    way: Annotated[int, whole("How many columns the marginals of --max-tvd have: 1, 2 or 3.")] = 2,
    plot: Plot = None,
) -> None:
    """The largest epsilon within a limit.

    If several limits are given, all must hold. Within --max-caused, --max-certain, --max-ceiling and --max-epsilon a
    smaller epsilon is always allowed too; within the others, which limit the paper's measure, it may not be. Where no
    limit binds, nothing is recommended.
    """
    from cellrisk.decide.choosing import choose

    if private.asked:
        private.answer(context, table, mechanism.arguments(), limits, output)
        return
    policies = policy_of(context)
    question = _question(risk, policies)
    given = _limits(limits, attacker, risk.attack, policies, question)
    _check_outputs(plot)
    choice = choose(
        table.tabulate(),
        attack=risk.attack,
        way=way,
        policy=policies,
        progress=progress_bar("searching"),
        **mechanism.arguments(),
        **given,
        **attacker.single(),
        **question,
        priors=risk.priors,
        **simulation.arguments(),
    )
    if plot is not None:
        choice.plot(plot)
    answer(choice, output.as_json)


def utility_command(
    table: TableOptions,
    mechanism: SeveralMechanismOptions,
    simulation: UtilitySimulationOptions,
    output: OutputOptions,
    ways: Annotated[
        Numbers,
        option(
            "How many columns the marginals have, between commas.",
            "NUMBERS",
            parsing.parse_whole_numbers,
            "1,2,3, up to the columns there are",
        ),
    ] = None,
    plot: Plot = None,
    csv: Csv = None,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """How useful the table stays under noise.

    It simulates releases, and prints how far their marginals are from the true ones.
    """
    from cellrisk.decide.usefulness import utility

    _check_outputs(plot, csv)
    noises = mechanism.all()
    frequencies = table.tabulate(keys=True)
    found = utility(frequencies, noises, ways=ways, progress=progress_bar("simulating"), **simulation.arguments())
    _write(found, plot, csv, spreadsheet_safe)
    answer(found, output.as_json)


def explain_command(
    table: TableOptions,
    mechanism: MechanismOptions,
    risk: OneRiskOptions,
    output: OutputOptions,
    top: Annotated[int, whole("How many of the riskiest cells to list.")] = 20,
    merge: Annotated[
        Parsed, option("Try merging values: education:school=9th|10th.", "MERGE", parsing.parse_merge)
    ] = None,
    perturbation: PerturbationText = None,
    plot: Plot = None,
) -> None:
    """Who is at risk, and what would help.

    It lists the riskiest cells, and the local risk if a quasi-identifier were left out or made coarser. With
    --perturbation it also goes through one cell step by step.
    """
    from cellrisk.risk.explanation import explain

    _check_outputs(plot)
    question = risk.single()
    if question.pop("measure", "local") != "local":
        raise InvalidInput("explain looks at the local risk only", fix="leave --measure out")
    if risk.attack != "homogeneity":
        raise InvalidInput("explain looks at the homogeneity attack only", got=f"--attack {risk.attack}")
    merges: dict[str, dict[str, list[str]]] = {}
    for column, new, old in merge or ():
        merges.setdefault(column, {})[new] = old
    how: dict[str, Any] = {}
    if perturbation is not None:
        check_no_noise(mechanism, {"--attack": risk.attack != "homogeneity"})
        how["perturbation"] = read_perturbation_option(perturbation)
    else:
        how["mechanism"] = mechanism.one()
    found = explain(table.tabulate(keys=True), top=top, merge=merges, **how, **question)
    if plot is not None:
        found.plot(plot)
    answer(found, output.as_json)


def report_command(
    context: typer.Context,
    table: ReleasedTableOptions,
    mechanism: MechanismOptions,
    risk: OneRiskOptions,
    limits: LimitOptions,
    attacker: AttackerOptions,
    simulation: SimulationOptions,
    record: ReportedLedgerOptions,
    settings: OutputOptions,
    output: Annotated[Text, option("The report: .html or .pdf.", "FILE")] = None,
    public: Annotated[bool, typer.Option(help="Leave out everything that was computed from the raw data.")] = False,
    title: Annotated[Text, option("Title of the report.", "TEXT")] = None,
    organisation: Annotated[Text, option("Who publishes the table.", "TEXT")] = None,
    risk_epsilon: Annotated[
        Number, number("With --public: also print a figure of the risk, with noise at this epsilon.")
    ] = None,
    released: Annotated[
        Text, option("With --public: the release that was made; print what its counts tell of the risk.", "FILE")
    ] = None,
    free_error: Annotated[
        Number, number("With --released: largest standard error, as a share of the figure; default 0.1.")
    ] = None,
    may_be_missing: Annotated[
        Texts, option("With --risk-epsilon: column that can hold missing values.", "COLUMN")
    ] = None,
    observed_levels: Annotated[
        Texts, option("With --risk-epsilon: column whose levels are taken from the data.", "COLUMN")
    ] = None,
    audience: Annotated[Text, option("Who gets the table, for the threat model.", "TEXT")] = None,
    date: Annotated[Text, option("Date to print; without it there is none.", "DATE")] = None,
    registry: Annotated[Text, option("Also write a record for the registry of deployments.", "FILE.yaml")] = None,
    template: Annotated[Text, option("Your own Jinja template.", "FILE")] = None,
    logo: Annotated[Text, option("PNG or JPEG for the head of the report.", "FILE")] = None,
    perturbation: PerturbationText = None,
    set_file: Annotated[
        Text, typer.Option("--set", metavar="SET", help="Report on all tables of a set file, released together.")
    ] = None,
    split: Annotated[
        bool, typer.Option("--split", help="With --set: also compare ways to share the budget among the tables.")
    ] = False,
    use: Annotated[
        Numbers, option("With --split: how much each table is used, between commas.", "NUMBERS", read_numbers)
    ] = None,
) -> None:
    """A report for a disclosure review board, or with --public a statement for everybody.

    With --set SET it is about all tables of a set file, each alone and all together.
    """
    from cellrisk.cli.ledgers import EVERYONE, choose_cohort
    from cellrisk.show.reporting import check_public_delta, check_record_path, check_report_path, report
    from cellrisk.show.reporting.perturbed import check_perturbed

    policies = policy_of(context)
    if output is None:
        raise InvalidInput("no output file was given", fix="name it: --output report.html")
    check_report_path(output)
    if registry is not None:
        check_record_path(registry)
    words: dict[str, Any] = {"title": title, "organisation": organisation, "audience": audience, "date": date}
    words |= {"template": template, "logo": logo}
    if set_file is not None:
        if public and record.ledger is not None:
            raise InvalidInput("--ledger is not for a statement for the public on a set", fix="leave it out")
        refuse_for_set(context, (table, mechanism), perturbation=perturbation, max_tvd=limits.max_tvd)
        asked = SetReport(set_file, output, registry, public, split, use, simulation.seed, words)
        report_set_file(context, asked, limits, attacker, record, settings)
        return
    if split or use is not None:
        raise InvalidInput("--split and --use go with --set", fix="name a set file: --set set.toml")
    if table.source is None:
        raise InvalidInput("no records were given", fix="name their file, or a set of tables: --set set.toml")
    question = _question(risk, policies)
    given = _limits(limits, attacker, risk.attack, policies, question)
    made = None
    if perturbation is not None:
        check_no_noise(mechanism, {"--attack": risk.attack != "homogeneity"}, compared=True)
        check_perturbed(
            {
                "public": public,
                "risk_epsilon": risk_epsilon is not None,
                "ledger": record.ledger is not None,
                "registry": registry is not None,
                "released": released is not None,
            }
        )
        made = read_perturbation_option(perturbation)
    if public:
        check_public_delta(mechanism.mechanism, mechanism.delta)
    _check_figure(risk_epsilon, public, mechanism, record, may_be_missing or observed_levels)
    free = _read_free_figure(released, free_error, public)
    opened = context.with_resource(record.opened())
    book = None if public else opened
    epsilon = None if mechanism.epsilon is None else mechanism.one().epsilon
    frequencies = table.tabulate(outside="drop" if public else "error", keys=True)
    published, recorded = None, ""
    if risk_epsilon is not None:
        published, recorded = publish_figure(
            record,
            opened,
            frequencies,
            mechanism.one(),
            policy=policies,
            risk_epsilon=risk_epsilon,
            may_be_missing=parsing.split_names(may_be_missing),
            observed_levels=parsing.split_names(observed_levels),
        )
    delta = mechanism.delta
    if made is None:
        delta = policies.choose_delta(mechanism.mechanism, mechanism.delta, frequencies.n_records)
    found = report(
        frequencies,
        mechanism.mechanism,
        epsilon=epsilon,
        delta=delta,
        neighbours=None if made is not None else mechanism.neighbours,
        threshold=None if made is not None else mechanism.threshold,
        public=public,
        **words,
        source=None if "://" in table.source else Path(table.source).name,
        preparation=[*table.preparation, *_rule_for_delta(mechanism, policies)],
        ledger=book,
        cohort=EVERYONE if book is None else choose_cohort(book, record.cohort),
        command=None if public else context.meta.get(TYPED),
        inputs={} if public else {file.name: file for file in table.files[:MOST_DIGESTS]},
        policy=policies,
        published=published,
        free=free,
        perturbation=made,
        progress=progress_bar("reporting"),
        **given,
        **attacker.single(),
        **question,
        priors=risk.priors,
        **simulation.arguments(),
    )
    written = found.save(output)
    if registry is not None:
        found.save_record(registry)
    if settings.as_json:
        answer(found, True)
    else:
        obeyed = f"{policies.describe()}\n\n" if policies else ""
        say(f"{found.headline}\n\n{obeyed}Written to {written}.")
        if recorded:
            say(f"\n{recorded}")
    if found.verdict == "unbound":
        return
    if made is not None:
        obey(policies, frequencies, made)
        return
    if found.mechanism is None:
        stop_above_limit("no epsilon is within the limits; the report says why")
    else:
        obey(policies, frequencies, found.mechanism)


def _read_free_figure(released: str | None, free_error: float | None, public: bool) -> Any:
    """What the counts of a release tell of its risk for free; None where no release was named."""
    from cellrisk.publish.noisy_risk.free_figure import estimate_caused

    if released is None:
        if free_error is not None:
            raise InvalidInput("--free-error goes with --released", fix="name the file of the release, or leave it out")
        return None
    if not public:
        raise InvalidInput("--released goes with a report for the public", fix="add --public")
    return estimate_caused(released, **({} if free_error is None else {"largest_error": free_error}))


def _check_figure(
    risk_epsilon: float | None, public: bool, mechanism: MechanismOptions, record: RecordOptions, more: Any
) -> None:
    """Refuses what goes with a published figure where there is none, and a figure that cannot be published."""
    if risk_epsilon is None:
        if more:
            raise InvalidInput(
                "--may-be-missing and --observed-levels of a report go with --risk-epsilon",
                fix="add --public --risk-epsilon 0.05, or leave them out",
            )
        if public and record.ledger is not None:
            raise InvalidInput(
                "--ledger of a report for the public goes with --risk-epsilon",
                fix="add --risk-epsilon 0.05, or leave it out",
            )
        return
    if not public:
        raise InvalidInput("--risk-epsilon goes with a report for the public", fix="add --public")
    if mechanism.epsilon is None:
        raise InvalidInput(
            "--risk-epsilon needs an epsilon of the release that is not chosen from the data", fix="add --epsilon 1"
        )


def _check_outputs(plot: str | None, csv: str | None = None) -> None:
    """Refuses a path that cannot be written before the work begins."""
    from cellrisk.system.writing import check_writable

    if plot is not None:
        from cellrisk.show.pictures import check_picture_path

        check_picture_path(plot)
    if csv is not None:
        check_writable(csv)


def _write(found: Any, plot: str | None, csv: str | None, spreadsheet_safe: bool) -> None:
    if csv is not None:
        tell_formulas(found.to_csv(csv, spreadsheet_safe=spreadsheet_safe))
    if plot is not None:
        found.plot(plot)


def _limits(
    limits: LimitOptions, attacker: AttackerOptions, attack: str, policies: Policies, question: dict[str, Any]
) -> dict[str, Any]:
    """The limits given; one that is looser than a policy's on the same risk or figure is refused."""
    from cellrisk.decide.figure_limits import FigureLimit

    given = asdict(limits)
    figures = {name: given[name] for name in ("max_caused", "max_certain", "max_ceiling", "max_epsilon")}
    policies.check_figures(FigureLimit.read(**figures, **attacker.single(), attack=attack))
    policies.check_tighter(question, **given)
    return given


def _question(risk: RiskOptions, policies: Policies) -> dict[str, Any]:
    """The risk asked for; a policy says which, and nothing else may be asked for."""
    asked = risk.single()
    return policies.fix_words(asked) if policies else asked


def _rule_for_delta(mechanism: MechanismOptions, policies: Policies) -> list[str]:
    """Says where delta comes from, if a rule sets it."""
    rules = [str(each.policy.delta) for each in policies.obeyed if each.policy.delta is not None]
    if not rules or mechanism.delta is not None:
        return []
    return [f"delta, where the mechanism takes one, by the policy's rule {' and '.join(rules)}"]
