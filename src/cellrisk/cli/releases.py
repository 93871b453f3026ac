"""The commands around a publication: release, what simulated ones show, and audit of what was released."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, obey, say, stop_above_limit
from cellrisk.cli.config import TYPED, OutputOptions, policy_of, refuse_typed
from cellrisk.cli.groups import (
    AttackerOptions,
    MayBeMissing,
    MechanismOptions,
    Number,
    ObservedLevels,
    ParentCount,
    Parsed,
    PerturbationText,
    SpreadsheetSafe,
    TableOptions,
    Text,
    Texts,
    number,
    option,
    whole,
    word,
)
from cellrisk.cli.perturbations import check_no_noise, read_perturbation_option
from cellrisk.cli.progress import progress_bar
from cellrisk.cli.recording import RecordOptions
from cellrisk.errors import InvalidInput
from cellrisk.system.text import aligned, as_given, percent
from cellrisk.system.words import MechanismName, Neighbours

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.noise.mechanisms import Mechanism
    from cellrisk.publish.noisy_risk import PublishedRisk
    from cellrisk.repeat.ledger import Ledger


SAID_BY_SET = "with --set, the set file says what is released"


@dataclass(frozen=True)
class ReleaseMechanismOptions(MechanismOptions):
    """How the noise of a release is made: by whole numbers."""

    mechanism: Annotated[
        MechanismName, option("How the noise is made: geometric or discrete-gaussian.", "NAME", str)
    ] = "geometric"


@dataclass(frozen=True)
class AuditedMechanismOptions(MechanismOptions):
    """How the noise of a release was made, where its description does not say so."""

    mechanism: Annotated[MechanismName | None, word("How the noise was made, if not described", MechanismName)] = None  # type: ignore[assignment]
    neighbours: Annotated[Neighbours | None, word("Neighbouring tables differ in one record", Neighbours)] = None  # type: ignore[assignment]
    threshold: Annotated[Number, number("Noisy counts below this half-integer became 0.")] = None  # type: ignore[assignment]

    def arguments(self) -> dict[str, Any]:
        """Arguments of `audit`; none without an epsilon, as a mechanism may be named for other commands in a file."""
        return {} if self.epsilon is None else asdict(self)


@dataclass(frozen=True)
class AuditingOptions(AttackerOptions):
    """An attacker who does the mathematics."""

    belief: Annotated[
        Text,
        option(
            "What the attacker expects: negbin, table, or shapes/theta: 0.4,0.15/0.9.",
            "BELIEF",
            default="negbin",
        ),
    ] = None  # type: ignore[assignment]


@dataclass(frozen=True)
class ReleasedTableOptions(TableOptions):
    """Where the records are, where no set file says so."""

    source: Annotated[
        Text, typer.Argument(metavar="[FILE]", help="The records, as for assess; leave it out with --set.")
    ] = None  # type: ignore[assignment]


def release_command(
    context: typer.Context,
    table: ReleasedTableOptions,
    mechanism: ReleaseMechanismOptions,
    record: RecordOptions,
    settings: OutputOptions,
    output: Annotated[Text, option("The released counts: .parquet or .csv; with --set a new folder.", "FILE")] = None,
    set_file: Annotated[
        Text, typer.Option("--set", metavar="SET", help="Release every table of a set file, or none.")
    ] = None,
    format: Annotated[Text, option("With --set: parquet (default) or csv.", "NAME")] = None,
    exclude: Annotated[
        Parsed, option("Combination that cannot occur: 'sex=m;pregnant=yes|maybe'.", "RULE", parsing.parse_rule)
    ] = None,
    may_be_missing: MayBeMissing = None,
    observed_levels: ObservedLevels = None,
    observed_cells_only: Annotated[
        bool,
        typer.Option(
            "--observed-cells-only", help="Noise on non-empty cells only; the guarantee does not cover which."
        ),
    ] = False,
    clamp: Annotated[bool, typer.Option(help="Negative counts become zero; --no-clamp keeps sums unbiased.")] = True,
    dense: Annotated[
        bool | None,
        typer.Option(
            "--dense/--sparse",
            help="List every count, or only the positive ones.",
            show_default="dense up to a million counts",
        ),
    ] = None,
    parents: Annotated[Text, option("A coarser release that these counts must add up to.", "FILE")] = None,
    parent_count: ParentCount = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """Release the table with differential privacy.

    It writes the counts with noise from OpenDP, and a description beside them. With --ledger, files and entry are
    written together or not at all. With --set SET it releases all tables of a set file, with one entry.
    """
    from cellrisk.publish.releasing import check_output, release

    if set_file is not None:
        refuse_typed(context, SAID_BY_SET, table, mechanism)
        if observed_cells_only or parents is not None or parent_count is not None or force:
            raise InvalidInput(
                "--observed-cells-only, --parents, --parent-count and --force are for one table, and no set of them",
                fix="leave them out",
            )
        how = {
            "exclude": exclude or (),
            "may_be_missing": parsing.split_names(may_be_missing),
            "observed_levels": parsing.split_names(observed_levels),
            "clamp": clamp,
            "dense": dense,
            "spreadsheet_safe": spreadsheet_safe,
            "format": format or "parquet",
        }
        _release_set(context, set_file, output, record, settings, how)
        return
    if table.source is None:
        raise InvalidInput("no records were given", fix="name their file, or a set of tables: --set set.toml")
    if format is not None:
        raise InvalidInput("--format goes with --set", fix="the ending of --output says the format of one table")
    if output is None:
        raise InvalidInput("no output file was given", fix="name it: --output released.parquet")
    check_output(output, force)
    ledger = context.with_resource(record.opened())
    noise = mechanism.one()
    frequencies = table.tabulate(outside="drop")
    policies = policy_of(context)
    obey(policies, frequencies, noise)
    record.check(ledger, noise)
    released = release(
        frequencies,
        noise,
        exclude=exclude or (),
        may_be_missing=parsing.split_names(may_be_missing),
        observed_levels=parsing.split_names(observed_levels),
        observed_cells_only=observed_cells_only,
        clamp=clamp,
        dense=dense,
        parents=parents,
        parent_count=parent_count,
        policy=policies,
        spreadsheet_safe=spreadsheet_safe,
        progress=progress_bar("releasing"),
    )
    recorded = record.save(ledger, released, output, force=force)
    answer(released, settings.as_json, raw=False)
    if not settings.as_json:
        say(f"\nWritten to {Path(output)}, described in {Path(output)}.json.{recorded}")
    unbooked = record.tell_parents(ledger, released.parents)
    if unbooked:
        say(unbooked, err=settings.as_json)


def _release_set(
    context: typer.Context,
    set_file: str,
    output: str | None,
    record: RecordOptions,
    settings: OutputOptions,
    how: dict[str, Any],
) -> None:
    """Every table of a set, with one entry in the ledger: all or none."""
    from cellrisk.publish.releasing.saving import check_folder
    from cellrisk.repeat.together.releasing import plan_entry, release_together
    from cellrisk.repeat.together.set_file import read_set_file

    if output is None:
        raise InvalidInput("no output folder was given", fix="name a new one: --output released")
    asked = read_set_file(set_file)
    check_folder(output)
    ledger = context.with_resource(record.opened())
    record.check(ledger, plan_entry(**asked)["loss"])
    released = release_together(**asked, **how, policy=policy_of(context), progress=progress_bar("releasing"))
    recorded = record.save(ledger, released, output)
    answer(released, settings.as_json, raw=False)
    if not settings.as_json:
        say(f"\nWritten to {output}, each table with its description, and the list of all in set.json.{recorded}")


def publish_figure(
    record: RecordOptions, opened: Ledger | None, table: FrequencyTable, noise: Mechanism, **asked: Any
) -> tuple[PublishedRisk, str]:
    """A figure that may be published, its loss recorded before; and where that stands."""
    from cellrisk.publish.noisy_risk import publish_risk

    with record.opened_or_new(opened) as ledger:
        found = publish_risk(table, noise, ledger=ledger, **asked, **record.arguments_of_figure(ledger))
        return found, "" if ledger is None else record.tell(ledger.id, ledger.head)


def publish_risk_command(
    context: typer.Context,
    table: TableOptions,
    mechanism: MechanismOptions,
    record: RecordOptions,
    settings: OutputOptions,
    risk_epsilon: Annotated[Number, number("Epsilon of the figure, on top of that of the release.")] = None,
    figure: Annotated[str, option("caused (people) or local (exact risk, summed over cells).", "NAME")] = "caused",
    may_be_missing: MayBeMissing = None,
    observed_levels: ObservedLevels = None,
) -> None:
    """How risky a release would be, as a figure that may be published.

    The figure has noise and an epsilon of its own; with --ledger, this is recorded before anything is shown.
    """
    if risk_epsilon is None:
        raise InvalidInput("no epsilon was given for the figure", fix="choose one: --risk-epsilon 0.05")
    opened = context.with_resource(record.opened())
    noise, policies = mechanism.one(), policy_of(context)
    breaches = policies.breaches_of_figure(noise, risk_epsilon)
    if breaches:
        stop_above_limit("; ".join(breaches))
    frequencies = table.tabulate(outside="drop")
    found, recorded = publish_figure(
        record,
        opened,
        frequencies,
        noise,
        policy=policies,
        risk_epsilon=risk_epsilon,
        figure=figure,
        may_be_missing=parsing.split_names(may_be_missing),
        observed_levels=parsing.split_names(observed_levels),
    )
    answer(found, settings.as_json, raw=False)
    if recorded and not settings.as_json:
        say(f"\n{recorded}")


def simulate_command(
    context: typer.Context,
    table: TableOptions,
    mechanism: MechanismOptions,
    attacker: AttackerOptions,
    output: OutputOptions,
    releases: Annotated[int, whole("How many releases are simulated.")] = 1000,
    seed: Annotated[int, whole("Seed of the simulation.")] = 0,
    parents: Annotated[Text, option("A coarser release that the counts must add up to.", "FILE")] = None,
    parent_count: ParentCount = None,
    exclude: Annotated[
        Parsed, option("With --parents: combination that cannot occur.", "RULE", parsing.parse_rule)
    ] = None,
    may_be_missing: Annotated[Texts, option("With --parents: column that can hold missing values.", "COLUMN")] = None,
    perturbation: PerturbationText = None,
) -> None:
    """What attackers find in simulated releases.

    With --parents, the simulated counts add up to a coarser release that is already published.
    """
    if perturbation is not None or parents is not None:
        refuse_typed(context, "an attacker who does the mathematics is simulated for noise without --parents", attacker)
    if parents is None and (parent_count or exclude or may_be_missing):
        raise InvalidInput("--parent-count, --exclude and --may-be-missing go with --parents", fix="name its file")
    if perturbation is not None:
        from cellrisk.publish.simulation.perturbed import simulate_perturbation

        check_no_noise(mechanism, {"--parents": parents is not None})
        answer(simulate_perturbation(table.tabulate(), perturbation, releases=releases, seed=seed), output.as_json)
        return
    noise = mechanism.one()
    drawn: dict[str, Any] = {"releases": releases, "seed": seed, "progress": progress_bar("simulating")}
    if parents is None:
        from cellrisk.publish.simulation import simulate

        answer(simulate(table.tabulate(), noise, **drawn, **attacker.arguments()), output.as_json)
        return
    from cellrisk.publish.simulation.constrained import simulate_constrained

    found = simulate_constrained(
        table.tabulate(),
        noise,
        parents,
        parent_count=parent_count,
        exclude=exclude or (),
        may_be_missing=parsing.split_names(may_be_missing),
        **drawn,
    )
    answer(found, output.as_json)


def audit_command(
    context: typer.Context,
    table: TableOptions,
    released: Annotated[
        str, typer.Argument(metavar="RELEASED", help="The file that was published: counts or records.")
    ],
    mechanism: AuditedMechanismOptions,
    attacker: AuditingOptions,
    output: OutputOptions,
    released_count: Annotated[
        Text, option("Column of counts in RELEASED; none: each row is a record.", "COLUMN")
    ] = None,
    released_table: Annotated[Text, option("Table, where RELEASED is a database.", "NAME")] = None,
    top: Annotated[int, whole("How many of the cells that give people away to list.")] = 0,
    perturbation: PerturbationText = None,
    max_risk: Annotated[Number, number("Exit with code 3 if a larger share of people is given away.", "R")] = None,
    acro: Annotated[Text, option("Write a record for output checkers here: outputs/results.json.", "FILE")] = None,
    exception: Annotated[Text, option("With --acro: why the release should be allowed all the same.", "TEXT")] = None,
) -> None:
    """What did a release give away?

    It prints how many people are shown alone in their cell, how many an attacker who weighs these counts can be sure
    of, what the homogeneity attack gets right, and what other tools would say.
    """
    from cellrisk.publish.auditing import audit
    from cellrisk.publish.auditing.checking_record import check_record_place

    if mechanism.epsilon is None:
        refuse_typed(context, "how the noise was made is told by its epsilon too", mechanism)
    made = None
    if perturbation is not None:
        named = {f"--{name}": value is not None for name, value in vars(mechanism).items()}
        check_no_noise(MechanismOptions(), named)
        made = read_perturbation_option(perturbation)
    if max_risk is not None and not 0 <= max_risk <= 1:
        raise InvalidInput("--max-risk must be a share of people", got=max_risk, allowed="from 0 to 1")
    if acro is not None:
        check_record_place(acro)
    elif exception is not None:
        raise InvalidInput(
            "--exception is written into a record for output checkers", fix="name it: --acro outputs/results.json"
        )
    found = audit(
        table.tabulate(),
        released,
        count=released_count,
        bins=table.bins,
        table=released_table,
        perturbation=made,
        **mechanism.arguments(),
        **attacker.arguments(),
    )
    if acro is not None:
        command = str(context.meta.get(TYPED, "cellrisk audit"))
        found.save_acro(acro, max_risk=max_risk, exception=exception or "", command=command)
    answer(found, output.as_json)
    if top and not output.as_json:
        rows = [
            [", ".join(f"{name} {label}" for name, label in cell.key.items()), cell.shown, f"{cell.exposed:,}"]
            for cell in found.exposed(top)
        ]
        say("\nThe cells that give away most people; their keys are raw data")
        say(aligned(["cell", "shows", "people"], rows, left=2))
    if max_risk is not None and found.value() > max_risk:
        stop_above_limit(
            f"the release gives away the {found.sensitive} of {percent(found.value())} of the people, above the limit "
            f"{as_given(max_risk, 2)}%"
        )
