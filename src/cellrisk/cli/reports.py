"""The command that writes a report, on one table or on a set of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, obey, say, stop_above_limit
from cellrisk.cli.config import TYPED, OutputOptions, list_typed, policy_of, refuse_typed
from cellrisk.cli.groups import (
    AttackerOptions,
    LimitOptions,
    MechanismOptions,
    Number,
    Numbers,
    OneRiskOptions,
    PerturbationText,
    SimulationOptions,
    Text,
    Texts,
    number,
    option,
)
from cellrisk.cli.perturbations import check_no_noise, read_perturbation_option
from cellrisk.cli.progress import progress_bar
from cellrisk.cli.recording import RecordOptions
from cellrisk.cli.releases import SAID_BY_SET, ReleasedTableOptions, publish_figure
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_numbers
from cellrisk.system.writing import keep_inputs

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies
    from cellrisk.show.reporting import Report

MOST_DIGESTS = 20
"""Files of the source whose digests a report prints."""
TABLE_WORDS = ("bins", "mechanism", "epsilon", "delta", "neighbours", "threshold")
"""What a set file says of the tables, and not of the records."""


@dataclass(frozen=True)
class ReportedLedgerOptions(RecordOptions):
    """The ledger whose budget a report shows."""

    ledger: Annotated[
        Text,
        option("Show what this ledger has spent; with --risk-epsilon, record the figure's loss in it.", "LEDGER"),
    ] = None


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
    from cellrisk.show.reporting import check_public_delta, check_record_path, check_report_path, report

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
        if use is not None and not split:
            raise InvalidInput("--use goes with --split", fix="add --split, or leave it out")
        if split and public:
            raise InvalidInput("--split is computed from the raw data, and not for the public", fix="leave it out")
        shares = {"use": use} if split else None
        found, broken = _report_set(context, set_file, limits, attacker, record, public, shares, simulation.seed, words)
        _write(found, output, registry, policies, settings, raw=not public)
        if broken:
            stop_above_limit("; ".join(broken))
        return
    if split or use is not None:
        raise InvalidInput("--split and --use go with --set", fix="name a set file: --set set.toml")
    if table.source is None:
        raise InvalidInput("no records were given", fix="name their file, or a set of tables: --set set.toml")
    question = risk.within(policies)
    limits.within(policies, question, **attacker.single(), attack=risk.attack)
    made = None
    if perturbation is not None:
        from cellrisk.show.reporting.perturbed import check_perturbed

        check_no_noise(mechanism, {"--attack": risk.attack != "homogeneity"}, compared=True)
        check_perturbed(
            {
                "public": public,
                "risk_epsilon": risk_epsilon is not None,
                "ledger": record.ledger is not None,
                "registry": registry is not None,
            }
        )
        made = read_perturbation_option(perturbation)
    if public:
        check_public_delta(mechanism.mechanism, mechanism.delta)
    _check_figure(risk_epsilon, public, mechanism, record, may_be_missing or observed_levels)
    opened = context.with_resource(record.shown() if risk_epsilon is None else record.opened())
    book = None if public else opened
    epsilon = None if mechanism.epsilon is None else mechanism.one().epsilon
    frequencies = table.tabulate(outside="drop" if public else "error")
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
        cohort=record.choose_cohort(book),
        command=None if public else context.meta.get(TYPED),
        inputs={} if public else {file.name: file for file in table.files[:MOST_DIGESTS]},
        policy=policies,
        published=published,
        perturbation=made,
        progress=progress_bar("reporting"),
        **asdict(limits),
        **attacker.single(),
        **question,
        priors=risk.priors,
        **simulation.arguments(),
    )
    _write(found, output, registry, policies, settings, recorded=recorded)
    if found.verdict == "unbound":
        return
    if made is not None:
        obey(policies, frequencies, made)
        return
    if found.mechanism is None:
        stop_above_limit("no epsilon is within the limits; the report says why")
    else:
        obey(policies, frequencies, found.mechanism)


def _write(
    report: Report,
    output: str,
    registry: str | None,
    policies: Policies,
    settings: OutputOptions,
    raw: bool = True,
    recorded: str = "",
) -> None:
    """Writes a report and its record for the registry, and says so."""
    written = report.save(output)
    if registry is not None:
        report.save_record(registry)
    if settings.as_json:
        answer(report, True, raw=raw)
        return
    obeyed = f"{policies.describe()}\n\n" if policies else ""
    say(f"{report.headline}\n\n{obeyed}Written to {written}.")
    if recorded:
        say(f"\n{recorded}")


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


def _rule_for_delta(mechanism: MechanismOptions, policies: Policies) -> list[str]:
    """Says where delta comes from, if a rule sets it."""
    rules = [str(each.policy.delta) for each in policies.obeyed if each.policy.delta is not None]
    if not rules or mechanism.delta is not None:
        return []
    return [f"delta, where the mechanism takes one, by the policy's rule {' and '.join(rules)}"]


def _report_set(
    context: typer.Context,
    set_file: str,
    limits: LimitOptions,
    attacker: AttackerOptions,
    record: RecordOptions,
    public: bool,
    shares: dict[str, Any] | None,
    seed: int,
    told: dict[str, Any],
) -> tuple[Report, list[str]]:
    """The report on a set, and what it breaks of the policies.

    ``shares``: how the tables are used, where other ways to share the total are asked for; ``told`` is printed as it
    is.
    """
    from cellrisk.counts.sources import list_files_of
    from cellrisk.repeat.together import assess_together
    from cellrisk.repeat.together.judging import find_policy_breaches, list_certainties
    from cellrisk.repeat.together.set_file import read_set_file
    from cellrisk.repeat.together.sets import read_tables
    from cellrisk.repeat.together.splitting import split_budget
    from cellrisk.show.reporting.set_report import report_set

    policies, certainties = policy_of(context), attacker.certainty or ()
    question = {"measure": "local", "form": "tight", "weights": "records"}
    figures = limits.within(policies, question, **({"certainty": certainties} if certainties else {}))
    words = read_set_file(set_file)
    files = list_files_of(words["source"])
    keep_inputs("the records", *files)
    tables = read_tables(
        words["tables"], words["sensitive"], **{name: words[name] for name in TABLE_WORDS if name in words}
    )
    ledger = context.with_resource(record.shown())
    found = None
    if not public or figures or policies:
        looked_at = sorted({*certainties, *list_certainties(policies, figures)})
        rule = {"outside": "drop"} if public else {}
        found = assess_together(
            **{**rule, **words}, certainty=looked_at or None, seed=seed, progress=progress_bar("counting")
        )
    read = [Path(set_file), *files[:MOST_DIGESTS]]
    report = report_set(
        tables,
        words["sensitive"],
        found,
        limits=figures,
        split=None if shares is None else split_budget(**words, **shares, progress=progress_bar("splitting")),
        public=public,
        declared=_list_declared(words),
        ledger=ledger,
        cohort=record.choose_cohort(ledger),
        inputs={} if public else {file.name: file for file in read},
        policy=policies,
        source=None if "://" in words["source"] else Path(words["source"]).name,
        command=None if public else context.meta.get(TYPED),
        **told,
    )
    return report, [] if found is None else [*find_policy_breaches(found, policies)]


def _list_declared(words: dict[str, Any]) -> set[str]:
    """Columns whose values a set file declares: by levels, or by the edges of bins."""
    bins = [words["bins"], *(table.get("bin", {}) for table in words["tables"])]
    return {*words["levels"], *(name for each in bins for name, given in each.items() if isinstance(given, list))}


def refuse_for_set(context: typer.Context, said_by_set: Sequence[Any], **given: Any) -> None:
    """Refuses what a report on a set does not take: options of groups that the set file tells in their place, those
    that were typed of which a set knows nothing, and those of ``given`` that are set wherever they come from."""
    from cellrisk.show.reporting.set_request import REFUSED, check_set

    refuse_typed(context, SAID_BY_SET, *said_by_set)
    found = dict.fromkeys(list_typed(context, REFUSED), True)
    found |= {f"--{name.replace('_', '-')}": True for name, value in given.items() if value is not None}
    check_set(found)
