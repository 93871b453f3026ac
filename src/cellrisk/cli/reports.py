"""The command that writes a report on one table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli import options
from cellrisk.cli.config import TYPED, OutputOptions, policies_of
from cellrisk.cli.options import Number, Text, number, option, refuse_beside
from cellrisk.cli.output import progress_bar, say, stop_if_broken
from cellrisk.cli.recording import RecordOptions
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies
MOST_DIGESTS = 20
"""Files of the source whose digests a report prints."""
Public = Annotated[bool, typer.Option(help="A statement for the public: nothing computed from the raw data.")]


@dataclass(frozen=True)
class DocumentOptions:
    """What is printed as it is given, and where."""

    output: Annotated[str, option("The report: .html or .pdf.", "FILE")]
    title: Annotated[Text, option("Title of the report.", "TEXT")] = None
    organisation: Annotated[Text, option("Who publishes the table.", "TEXT")] = None
    audience: Annotated[Text, option("Who gets the table, for the threat model.", "TEXT")] = None
    date: Annotated[Text, option("Date to print.", "DATE", default="none")] = None
    template: Annotated[Text, option("Your own Jinja template.", "FILE")] = None
    logo: Annotated[Text, option("PNG or JPEG for the head of the report.", "FILE")] = None
    registry: Annotated[Text, option("Write a record for the registry of deployments.", "FILE.yaml")] = None

    def __post_init__(self) -> None:
        """Refuse paths that cannot be written."""
        from cellrisk.show.reporting import check_record_path, check_report_path

        check_report_path(self.output)
        if self.registry is not None:
            check_record_path(self.registry)

    def arguments(self) -> dict[str, Any]:
        """Return what is printed as it is given."""
        return {name: value for name, value in asdict(self).items() if name not in ("output", "registry")}

    def write(
        self, report: cr.Report, policies: Policies, settings: OutputOptions, raw: bool = True, recorded: str = ""
    ) -> None:
        """Write the report and its record for the registry, and print where."""
        written = report.save(self.output)
        if self.registry is not None:
            report.save_record(self.registry)
        if settings.as_json:
            settings.answer(report, raw=raw)
            return
        obeyed = f"{policies.describe()}\n\n" if policies else ""
        say(f"{report.headline}\n\n{obeyed}Written to {written}.")
        if recorded:
            say(f"\n{recorded}")


def report_command(
    context: typer.Context,
    table: options.TableOptions,
    noise: options.NoiseOptions,
    risk: options.OneRiskOptions,
    limits: options.LimitOptions,
    attacker: options.HarmOptions,
    error: options.ErrorOptions,
    record: RecordOptions,
    document: DocumentOptions,
    declared: options.DeclaredOptions,
    settings: OutputOptions,
    public: Public = False,
    risk_epsilon: Annotated[Number, number("With --public: print a noisy figure of the risk at this epsilon.")] = None,
) -> None:
    """A report for a disclosure review board, or with --public a statement for everybody.

    With --ledger it shows what the ledger has spent; with --risk-epsilon, the loss of the figure is recorded in it.
    Ends with exit code 3 if a limit or a policy is broken, or no epsilon keeps the limits.
    """
    from cellrisk.counts.sources import list_files_of
    from cellrisk.show.reporting import check_public_delta

    policies = policies_of(context)
    question = risk.within(policies)
    limits.within(policies, question, **attacker.single(), attack=risk.attack)
    made = noise.read_perturbation("mechanism", "delta")
    if made is not None:
        from cellrisk.show.reporting.perturbed import check_perturbed

        beside = ["attack"] if risk.attack != "homogeneity" else []
        refuse_beside("a perturbation is assessed by the homogeneity attack alone", beside)
        given = {"risk_epsilon": risk_epsilon, "ledger": record.ledger, "registry": document.registry}
        check_perturbed({"public": public, **{name: value is not None for name, value in given.items()}})
    if public:
        check_public_delta(noise.mechanism, noise.delta)
    _check_figure(risk_epsilon, public, noise, record, any(asdict(declared).values()))
    opened = context.with_resource(record.opened())
    shown = None if public else opened
    epsilon = None if noise.epsilon is None else noise.one().epsilon
    frequencies = table.tabulate(outside="drop" if public else "error")
    published, recorded = None, ""
    if risk_epsilon is not None:
        asked: Any = {"risk_epsilon": risk_epsilon, "policy": policies, **declared.arguments()}
        published, recorded = record.figure(opened, cr.publish_risk, frequencies, noise.one(), **asked)
    delta = noise.delta
    if made is None:
        delta = policies.choose_delta(noise.mechanism, noise.delta, frequencies.n_records)
    bins = {name: given if isinstance(given, list) else [given] for name, given in table.bins.items()}
    prepared = [f"{name} in bins: {'/'.join(f'{edge:.15g}' for edge in edges)}" for name, edges in bins.items()]
    rules = [str(policy.delta) for policy in policies.obeyed if policy.delta is not None]
    if rules and noise.delta is None:
        prepared.append(f"delta, if the mechanism takes one, by the policy's rule {' and '.join(rules)}")
    found = cr.report(
        frequencies,
        noise.mechanism,
        epsilon=epsilon,
        delta=delta,
        neighbours=None if made is not None else noise.neighbours,
        threshold=None if made is not None else noise.threshold,
        public=public,
        **document.arguments(),
        source=None if "://" in table.source else Path(table.source).name,
        preparation=prepared,
        ledger=shown,
        cohort="everyone" if shown is None else shown.choose_cohort(record.cohort),
        command=None if public else context.meta.get(TYPED),
        inputs={} if public else {file.name: file for file in list_files_of(table.source)[:MOST_DIGESTS]},
        policy=policies,
        published=published,
        perturbation=made,
        progress=progress_bar("reporting"),
        **asdict(limits),
        **attacker.single(),
        **question,
        priors=risk.priors,
        **error.arguments(),
    )
    document.write(found, policies, settings, recorded=recorded)
    if found.verdict == "unbound":
        return
    used = made or found.mechanism
    broken = [] if used is None else policies.breaches(frequencies, used)
    if used is None:
        broken = ["no epsilon is within the limits; the report says why"]
    elif found.verdict == "broken" and not broken:
        broken = ["a limit is broken; the report says which"]
    stop_if_broken(broken)


def _check_figure(
    risk_epsilon: float | None, public: bool, noise: options.NoiseOptions, record: RecordOptions, columns: Any
) -> None:
    """Refuse options of a published figure without it, and a figure that cannot be published."""
    written = record.purpose or record.new_ledger or record.new_cohort or record.part_of
    if risk_epsilon is None and (columns or written or (public and record.ledger is not None)):
        raise InvalidInput(
            "a report writes nothing into a ledger, and takes --may-be-missing and --observed-levels, only with "
            "--public --risk-epsilon",
            fix="add --public --risk-epsilon 0.05, or leave them out",
        )
    if risk_epsilon is not None and not public:
        raise InvalidInput("--risk-epsilon requires a statement for the public", fix="add --public")
    if risk_epsilon is not None and noise.epsilon is None:
        raise InvalidInput("--risk-epsilon requires an epsilon that is not chosen from the data", fix="add --epsilon 1")
