"""The commands that help to decide: curve, choose, utility, explain."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, check_outputs, tell_formulas
from cellrisk.cli.config import OutputOptions, policy_of, refuse_typed
from cellrisk.cli.groups import (
    AttackerOptions,
    HomogeneityAlone,
    LimitOptions,
    MechanismOptions,
    Numbers,
    OneRiskOptions,
    Parsed,
    PerturbationText,
    Plot,
    RiskOptions,
    RiskWords,
    SeveralMechanismOptions,
    SimulationOptions,
    SpreadsheetSafe,
    TableOptions,
    Text,
    Texts,
    UtilitySimulationOptions,
    option,
    whole,
)
from cellrisk.cli.perturbations import check_no_noise, read_perturbation_option
from cellrisk.cli.private_choice import PrivateOptions
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput
from cellrisk.system.words import FigureName, MeasureName, list_words, say_words

Csv = Annotated[Text, option("The numbers as a CSV file.", "FILE")]


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

    check_outputs(plot, csv)
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
        refuse_typed(context, "a private choice is by people caused alone", risk, attacker, simulation, "way", "plot")
        private.answer(context, table, mechanism.arguments(), limits, output)
        return
    policies = policy_of(context)
    question = risk.within(policies)
    limits.within(policies, question, **attacker.single(), attack=risk.attack)
    check_outputs(plot)
    choice = choose(
        table.tabulate(),
        attack=risk.attack,
        way=way,
        policy=policies,
        progress=progress_bar("searching"),
        **mechanism.arguments(),
        **asdict(limits),
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

    check_outputs(plot, csv)
    noises = mechanism.all()
    frequencies = table.tabulate()
    found = utility(frequencies, noises, ways=ways, progress=progress_bar("simulating"), **simulation.arguments())
    _write(found, plot, csv, spreadsheet_safe)
    answer(found, output.as_json)


@dataclass(frozen=True)
class ExplainedRiskOptions(RiskWords):
    """Which form of the local risk."""

    measure: Annotated[Texts, option("Leave it out: it is the local risk.", "NAME", default="local")] = None
    attack: HomogeneityAlone = "homogeneity"


def explain_command(
    table: TableOptions,
    mechanism: MechanismOptions,
    risk: ExplainedRiskOptions,
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

    check_outputs(plot)
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
    found = explain(table.tabulate(), top=top, merge=merges, **how, **question)
    if plot is not None:
        found.plot(plot)
    answer(found, output.as_json)


def _write(found: Any, plot: str | None, csv: str | None, spreadsheet_safe: bool) -> None:
    if csv is not None:
        tell_formulas(found.to_csv(csv, spreadsheet_safe=spreadsheet_safe))
    if plot is not None:
        found.plot(plot)
