"""The commands that look along a sequence of releases: the ledger's risk and plan, and average."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, check_outputs, say_either, stop_above_limit
from cellrisk.cli.config import OutputOptions, policy_of, refuse_typed
from cellrisk.cli.groups import (
    HomogeneityAlone,
    MechanismOptions,
    Number,
    OneRiskOptions,
    Plot,
    RiskOptions,
    TableOptions,
    Text,
    Texts,
    Whole,
    number,
    option,
    whole,
    word,
)
from cellrisk.cli.help_panels import LEDGER
from cellrisk.cli.ledgers import LossOptions, Operator
from cellrisk.cli.recording import CohortOption, LedgerOptions
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.system.checks import read_number, require_within
from cellrisk.system.words import OverallKind

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.policies import Policies
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.repeat.sequences import Step

By = Annotated[str, option("Axis of the picture: loss or release.", "NAME")]
TotalDelta = Annotated[
    Number, option("The delta of all releases together.", "NUMBER", read_number, "the sum of theirs")
]
Attribute = Annotated[
    Text, option("The sensitive attribute to release next; leave it out for counts of cells alone.", "COLUMN")
]


@dataclass(frozen=True)
class CoveredOptions(TableOptions):
    """Where the records of the cohort are; the columns of earlier releases are taken from the ledger."""

    source: Annotated[
        Text,
        typer.Argument(metavar="[FILE]", help="The cohort's records."),
    ] = None  # type: ignore[assignment]

    def cover(self, steps: list[Step], attribute: str | None) -> FrequencyTable:
        """The table with the columns of all releases, and those that were named here."""
        quasi = [name for step in steps for name in step.quasi_identifiers or ()] + parsing.split_names(self.qid)
        released = [step.attribute for step in steps] + [attribute]
        sensitive = [name for name in released if name is not None] + parsing.split_names(self.sensitive)
        return self.tabulate(qid=list(dict.fromkeys(quasi)), sensitive=list(dict.fromkeys(sensitive)))


@dataclass(frozen=True)
class PlannedOptions(CoveredOptions):
    """Where the records of the cohort are, if they are to be looked at."""

    source: Annotated[
        Text,
        typer.Argument(metavar="[FILE]", help="The cohort's records; without them, only losses are added up."),
    ] = None


@dataclass(frozen=True)
class SequenceOptions:
    """How losses are added up, and what is assessed at their sum."""

    panel: ClassVar[str] = LEDGER
    operator: Operator = "tightest"
    total_delta: TotalDelta = None
    assess_as: Annotated[
        Text, option("Mechanism that stands for the total loss, if the release's own cannot.", "NAME")
    ] = None

    def arguments(self, risk: OneRiskOptions) -> dict[str, Any]:
        if risk.attack != "homogeneity":
            raise InvalidInput("sequences are assessed by the homogeneity attack", got=f"--attack {risk.attack}")
        if risk.weights:
            raise InvalidInput("both weights are given along a sequence", got="--weights", fix="leave it out")
        if self.total_delta is not None:
            require_within("--total-delta", self.total_delta, least=0, below=1)
        named = {"operator": self.operator, "delta": self.total_delta, "assess_as": self.assess_as}
        return {**named, **risk.single(), "priors": risk.priors}


@dataclass(frozen=True)
class SequenceRiskOptions(OneRiskOptions):
    """Which risk of a sequence."""

    weights: Annotated[Texts, option("Leave it out: both are printed.", "NAME", default="both")] = None
    attack: HomogeneityAlone = "homogeneity"


@dataclass(frozen=True)
class AveragedRiskOptions(RiskOptions):
    """Which risks of several releases of one table."""

    attack: HomogeneityAlone = "homogeneity"


def risk_command(
    context: typer.Context,
    ledger: LedgerOptions,
    table: CoveredOptions,
    sequence: SequenceOptions,
    risk: SequenceRiskOptions,
    output: OutputOptions,
    cohort: CohortOption = None,
    plot: Plot = None,
    by: By = "loss",
) -> None:
    """The risk after each release so far, and the figures to decide by.

    It prints the risk of each attribute at the total loss by then, the overall risk of the cells, the people given away
    because of their own record, and how often anybody who has seen all these releases could be right at most.
    """
    from cellrisk.repeat.sequences import assess_sequence

    if table.source is None:
        raise InvalidInput("no records were given", fix="name their file after the ledger")
    check_outputs(plot)
    options = sequence.arguments(risk)
    with ledger.open() as opened:
        steps = list_steps(opened, opened.choose_cohort(cohort))
    if not steps:
        raise InvalidInput("the ledger has no releases on this cohort yet", fix="ledger plan looks ahead")
    found = assess_sequence(table.cover(steps, None), steps, **options)
    if plot is not None:
        found.plot(plot, by=by)
    answer(found, output.as_json, policies=policy_of(context))


def plan_command(
    context: typer.Context,
    ledger: LedgerOptions,
    table: PlannedOptions,
    loss: LossOptions,
    sequence: SequenceOptions,
    risk: SequenceRiskOptions,
    output: OutputOptions,
    attribute: Attribute = None,
    cohort: CohortOption = None,
    max_risk: Annotated[Number, number("Find the largest epsilon with an overall risk of at most R.", "R")] = None,
    max_caused: Annotated[
        Number, number("The same for the share of people given away because of their own record.", "R")
    ] = None,
    max_ceiling: Annotated[
        Number, number("The same for the worst case of two equally likely values; needs no records.", "R")
    ] = None,
    overall: Annotated[OverallKind, word("How the risks of a cell's attributes are put together", OverallKind)] = "max",
) -> None:
    """What would one more release cost and reveal?

    With --epsilon it prints the total loss, the figures to decide by and the overall risk after that release. With
    --max-caused, --max-ceiling or --max-risk it finds the largest epsilon within them; where no limit binds, none.
    """
    options, policies = sequence.arguments(risk), policy_of(context)
    if table.source is None:
        of_records = [each.name for each in fields(table) if each.name not in ("source", "qid")]
        refuse_typed(context, "without the cohort's records, losses alone are added up", *of_records, risk)
    limits: dict[str, Any] = {"max_risk": max_risk, "max_caused": max_caused, "max_ceiling": max_ceiling}
    limited = any(limit is not None for limit in limits.values())
    if limited == loss.given:
        raise InvalidInput(
            "say what to plan", allowed="either --epsilon 0.5, or limits: --max-caused 0.01, --max-ceiling 0.75"
        )
    with ledger.open() as opened:
        name = opened.choose_cohort(cohort)
        steps = list_steps(opened, name)
        if limited:
            if max_risk is not None:
                from cellrisk.decide.limits import RiskDefinition, read_limits

                words = {name: options[name] for name in ("measure", "form", "weights") if name in options}
                policies.check_tighter(read_limits(max_risk=min(max_risk, 1.0), risk=RiskDefinition(**words)))
            found = find_largest(table, steps, loss, attribute, limits, overall, options, policies)
            answer(found, output.as_json, raw=table.source is not None, policies=policies)
            return
        planned = loss.loss()
        refusal = refuse(opened, planned, name)
        if loss.mechanism is not None:
            refusal = "; ".join([*([refusal] if refusal else []), *policies.breaches_without_data(loss.one())])
        losses = [*opened.losses(name), planned]
    if table.source is None:
        answer_losses(losses, sequence, options["delta"], refusal, output.as_json)
    else:
        from cellrisk.repeat.sequences import Step, plan

        quasi = parsing.split_names(table.qid) or None
        found = plan(table.cover(steps, attribute), steps, Step(planned, attribute, quasi), **options)
        answer(found, output.as_json, policies=policies)
    if refusal:
        stop_above_limit(refusal)


def average_command(
    context: typer.Context,
    table: TableOptions,
    mechanism: MechanismOptions,
    risk: AveragedRiskOptions,
    output: OutputOptions,
    releases: Annotated[Whole, whole("How many times the table is released.")] = None,
    operator: Operator = "tightest",
    total_delta: TotalDelta = None,
) -> None:
    """The same table released several times.

    It compares the risk from an attacker who averages the releases with that of one release at their total loss.
    """
    from cellrisk.repeat.averaging import average

    if releases is None:
        raise InvalidInput("the number of releases was not given", fix="say it: --releases 12")
    asked = risk.many()
    if asked.pop("attack") != "homogeneity":
        raise InvalidInput("averaging is assessed by the homogeneity attack", got=f"--attack {risk.attack}")
    found = average(
        table.tabulate(),
        mechanism.one(),
        releases=releases,
        operator=operator,
        total_delta=total_delta,
        **asked,
    )
    answer(found, output.as_json, policies=policy_of(context))


def list_steps(ledger: Ledger, cohort: str) -> list[Step]:
    """The releases that cover the people of a cohort: on it, and on those that contain it, in their order."""
    from cellrisk.repeat.sequences import Step

    part_of = {each.name: each.part_of for each in ledger.cohorts()}
    covering: set[str] = set()
    at: str | None = cohort
    while at is not None:
        covering.add(at)
        at = part_of.get(at)
    return [
        Step(entry.loss, entry.attribute, entry.quasi_identifiers or None)
        for entry in ledger.entries(kind="release")
        if entry.cohort in covering and entry.loss is not None
    ]


def find_largest(
    table: CoveredOptions,
    steps: list[Step],
    loss: LossOptions,
    attribute: str | None,
    limits: dict[str, Any],
    overall: OverallKind,
    options: dict[str, Any],
    policies: Policies,
) -> Any:
    """The largest epsilon of the next release that keeps the limits."""
    from cellrisk.noise.mechanisms import USUAL_MECHANISM
    from cellrisk.repeat.sequences import largest_epsilon

    if table.source is None:
        needs = [f"--{name.replace('_', '-')}" for name in ("max_risk", "max_caused") if limits[name] is not None]
        if needs:
            raise InvalidInput(f"{needs[0]} needs the cohort's records", fix="name their file after the ledger")
    return largest_epsilon(
        None if table.source is None else table.cover(steps, attribute),
        steps,
        mechanism=loss.mechanism or USUAL_MECHANISM,
        attribute=attribute,
        delta=loss.delta,
        kind=overall,
        quasi_identifiers=parsing.split_names(table.qid) or None,
        neighbours=loss.neighbours,
        threshold=loss.threshold,
        total_delta=options.pop("delta"),
        policy=policies,
        **limits,
        **options,
    )


def refuse(ledger: Ledger, loss: Any, cohort: str) -> str:
    """Why the ledger would refuse the release; empty where it would not."""
    try:
        ledger.check(loss, cohort)
    except CellriskError as refusal:
        return str(refusal)
    return ""


def answer_losses(
    losses: list[Any], sequence: SequenceOptions, delta: float | None, refusal: str, as_json: bool
) -> None:
    """What releases cost before and after the planned one, where there are no records to assess."""
    from cellrisk.repeat.accounting.composition import compose

    before = compose(losses[:-1], operator=sequence.operator, delta=delta)
    after = compose(losses, operator=sequence.operator, delta=delta)
    document = {
        "before": {**before.to_dict(), "ceiling": before.ceiling},
        "after": {**after.to_dict(), "ceiling": after.ceiling},
        "refused": refusal or None,
    }
    told = f"Before: {before.headline} {before.ceiling_sentence}\nAfter: {after}\n\n{after.ceiling_sentence}"
    say_either(document, told, as_json)
