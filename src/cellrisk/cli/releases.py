"""The commands around a publication: release, publish-risk, choose-private and audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli import options, parsing
from cellrisk.cli.options import Number, Numbers, Text, Texts, number, option, share, whole, word
from cellrisk.cli.output import OutputOptions, ScreenOptions, say, stop_if_broken
from cellrisk.cli.recording import RecordOptions
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import split_names
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.formatting import aligned, as_given, percent

EVERY_COUNT = "List every count, or only the positive ones."
BY_SIZE = "dense up to a million counts"
CLAMPED = "Set negative counts to zero; --no-clamp keeps sums unbiased."


@dataclass(frozen=True)
class TotalsOptions:
    """A published coarser table, to which the counts must add up."""

    parents: Annotated[Text, option("A published coarser table that these counts must add up to.", "FILE")] = None
    parent_count: Annotated[Text, option("Column of counts in --parents, if not described.", "COLUMN")] = None


@dataclass(frozen=True)
class DeclaredOptions:
    """What is declared about columns, so the data need not tell it."""

    may_be_missing: Annotated[Texts, option("Columns that can hold missing values.", "COLUMNS")] = None
    observed_levels: Annotated[Texts, option("Columns with levels from the data, not covered.", "COLUMNS")] = None

    def arguments(self) -> dict[str, Any]:
        return {name: split_names(getattr(self, name)) for name in ("may_be_missing", "observed_levels")}


@dataclass(frozen=True)
class ReleaseOptions(DeclaredOptions):
    """What a release of one table or several holds."""

    exclude: options.Exclude = None
    clamp: Annotated[bool, typer.Option(help=CLAMPED)] = True
    dense: Annotated[bool | None, typer.Option("--dense/--sparse", help=EVERY_COUNT, show_default=BY_SIZE)] = None
    spreadsheet_safe: options.SpreadsheetSafe = False

    def arguments(self) -> dict[str, Any]:
        return {**asdict(self), **super().arguments(), "exclude": self.exclude or ()}


def release_command(
    output: Annotated[str, option("The released counts: .parquet or .csv.", "FILE")],
    table: options.TableOptions,
    mechanism: options.MechanismOptions,
    record: RecordOptions,
    settings: ScreenOptions,
    how: ReleaseOptions,
    totals: TotalsOptions,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Release the table with differential privacy.

    Writes the counts with noise from OpenDP, and a description beside them. With --ledger, files and entry are written
    together or not at all. `cellrisk together release` releases several tables.
    """
    from cellrisk.publish.releasing.files import check_free

    check_free(output, force)
    ledger = settings.context.with_resource(record.opened())
    frequencies = table.tabulate(outside="drop")
    noise = mechanism.one().with_unit(frequencies.unit)
    policies = settings.policies
    stop_if_broken(policies.breaches(frequencies, noise))
    record.check(ledger, noise)
    asked: Any = {**how.arguments(), **asdict(totals)}
    released = cr.release(frequencies, noise, **asked, policy=policies, progress=options.progress_bar("releasing"))
    recorded = record.save(ledger, released, output, force=force)
    written = f"Written to {Path(output)}, described in {Path(output)}.json.{recorded}"
    settings.answer(released, raw=False, after=written)
    warning = record.describe_parents(ledger, released.parents)
    if warning:
        say(warning, err=settings.as_json)


def publish_risk_command(
    risk_epsilon: Annotated[float, number("Privacy loss of the figure, beside that of the release.")],
    table: options.TableOptions,
    mechanism: options.MechanismOptions,
    record: RecordOptions,
    settings: OutputOptions,
    declared: DeclaredOptions,
) -> None:
    """How risky a release would be, as a figure that may be published.

    The figure has noise and a privacy loss of its own; with --ledger, the loss is recorded before anything is printed.
    """
    opened = settings.context.with_resource(record.opened())
    noise, policies = mechanism.one(), settings.policies
    stop_if_broken(policies.breaches_of_figure(noise, risk_epsilon))
    asked: Any = {"risk_epsilon": risk_epsilon, "policy": policies, **declared.arguments()}
    published, recorded = record.figure(opened, cr.publish_risk, table.tabulate(outside="drop"), noise, **asked)
    settings.answer(published, raw=False, after=recorded)


def choose_private_command(
    choice_epsilon: Annotated[float, number("Privacy loss of the choice itself.")],
    max_caused_people: Annotated[float, number("Most people revealed because of their own record.")],
    table: options.TableOptions,
    mechanism: options.NamedMechanismOptions,
    record: RecordOptions,
    settings: OutputOptions,
    declared: DeclaredOptions,
    grid: Annotated[Numbers, option("Epsilons to choose from.", "NUMBERS", parsing.parse_points, "0.01:10:50")] = None,
) -> None:
    """The largest epsilon within a limit, as a choice that may be published.

    An epsilon chosen from the data reveals a little about them. This choice has noise and a privacy loss of its own;
    with --ledger, the loss is recorded before anything is printed.
    """
    opened = settings.context.with_resource(record.opened())
    asked: Any = {"private": choice_epsilon, "max_caused_people": max_caused_people, "grid": grid}
    asked |= {**asdict(mechanism), **declared.arguments(), "policy": settings.policies}
    choice, recorded = record.figure(opened, cr.choose_privately, table.tabulate(outside="drop"), **asked)
    settings.answer(choice, raw=False, after=recorded)


def simulate_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    attacker: options.AttackerOptions,
    totals: TotalsOptions,
    output: ScreenOptions,
    releases: Annotated[int, whole("Releases that are simulated.")] = 1000,
    seed: options.Seed = 0,
    exclude: options.Exclude = None,
    may_be_missing: Annotated[Texts, option("With --parents: columns that can hold missing values.", "COLUMNS")] = None,
) -> None:
    """What attackers find in simulated releases."""
    how: Any = {**asdict(totals), "exclude": exclude or (), "may_be_missing": split_names(may_be_missing)}
    how |= {"releases": releases, "seed": seed, "progress": options.progress_bar("simulating"), **attacker.arguments()}
    made = noise.read_perturbation()
    how |= {"mechanism": noise.one()} if made is None else {"perturbation": made}
    output.answer(cr.simulate(table.tabulate(seed=seed), **how))


@dataclass(frozen=True)
class AuditedNoiseOptions(options.NoiseOptions):
    """How the released counts were made, if their description does not tell."""

    mechanism: Annotated[MechanismName | None, word("Mechanism, if not described", MechanismName)] = None  # type: ignore[assignment]
    neighbours: Annotated[Neighbours | None, word("Neighbouring tables differ in one record", Neighbours)] = None  # type: ignore[assignment]
    threshold: Annotated[Number, number("Noisy counts below this half-integer became 0.")] = None  # type: ignore[assignment]


def audit_command(
    table: options.TableOptions,
    released: Annotated[str, typer.Argument(metavar="RELEASED", help="The published file: counts or records.")],
    noise: AuditedNoiseOptions,
    attacker: options.AttackerOptions,
    output: ScreenOptions,
    released_count: Annotated[Text, option("Column of counts in RELEASED; none: a row is a record.", "COLUMN")] = None,
    released_table: Annotated[Text, option("Table, if RELEASED is a database.", "NAME")] = None,
    top: Annotated[int, whole("Groups that reveal most people to list.")] = 0,
    max_risk: Annotated[Number, share("Largest share of people revealed.")] = None,
    acro: Annotated[Text, option("Write a record for output checkers: outputs/results.json.", "FILE")] = None,
    exception: Annotated[Text, option("With --acro: why the release should be allowed all the same.", "TEXT")] = None,
) -> None:
    """What a release has revealed.

    Prints how many people are alone in their group, how many an informed attacker infers from these counts, what the
    homogeneity attack reveals, and the figures of other tools. Ends with exit code 3 if --max-risk is broken.
    """
    from cellrisk.publish.auditing.acro_export import check_record_place

    made = noise.read_perturbation()
    if noise.epsilon is None:
        unused = output.list_typed("mechanism", "delta", "neighbours", "threshold")
        options.refuse_beside("a mechanism requires --epsilon", unused)
    if max_risk is not None and not 0 <= max_risk <= 1:
        raise InvalidInput("must be a share of people", option="max_risk", got=max_risk, allowed="from 0 to 1")
    if acro is not None:
        check_record_place(acro)
    elif exception is not None:
        raise InvalidInput("--exception requires --acro", fix="name the record: --acro outputs/results.json")
    asked: Any = {} if noise.epsilon is None else asdict(noise)
    asked |= {**attacker.single(), "belief": attacker.belief, "perturbation": made}
    asked |= {"count": released_count, "bins": dict(table.bin or ()), "table": released_table}
    audit = cr.audit(table.tabulate(), released, **asked)
    rows = [
        [", ".join(f"{name} {label}" for name, label in cell.key.items()), cell.shown, f"{cell.exposed:,}"]
        for cell in (audit.exposed(top) if top else ())
    ]
    if acro is not None:
        audit.save_acro(acro, max_risk=max_risk, exception=exception or "", command=output.command)
    output.answer(audit)
    if rows and not output.as_json:
        say("\nThe groups that reveal most people; their keys are raw data")
        say(aligned(["group", "shows", "people"], rows, left=2))
    if max_risk is not None and audit.value() > max_risk:
        revealed = f"the release reveals the {audit.sensitive} of {percent(audit.value())} of the people"
        stop_if_broken([f"{revealed}, above the limit {as_given(max_risk, 2)}%"])
