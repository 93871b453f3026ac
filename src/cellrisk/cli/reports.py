"""The command that writes a report on one table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli import options
from cellrisk.cli.config import TYPED, OutputOptions, policies_of
from cellrisk.cli.options import Text, option, refuse_beside
from cellrisk.cli.output import progress_bar, say, stop_if_broken
from cellrisk.cli.recording import ShownLedgerOptions
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

    def __post_init__(self) -> None:
        """Refuse paths that cannot be written."""
        from cellrisk.show.reporting import check_report_path

        check_report_path(self.output)

    def arguments(self) -> dict[str, Any]:
        """Return what is printed as it is given."""
        return {name: value for name, value in asdict(self).items() if name != "output"}

    def write(self, report: cr.Report, policies: Policies, settings: OutputOptions, raw: bool = True) -> None:
        """Write the report, and print where."""
        written = report.save(self.output)
        if settings.as_json:
            settings.answer(report, raw=raw)
            return
        obeyed = f"{policies.describe()}\n\n" if policies else ""
        say(f"{report.headline}\n\n{obeyed}Written to {written}.")


def report_command(
    context: typer.Context,
    table: options.TableOptions,
    noise: options.NoiseOptions,
    risk: options.OneRiskOptions,
    limits: options.LimitOptions,
    attacker: options.AttackerOptions,
    error: options.ErrorOptions,
    shown: ShownLedgerOptions,
    document: DocumentOptions,
    settings: OutputOptions,
    public: Public = False,
) -> None:
    """A report for a disclosure review board, or with --public a statement for everybody.

    With --ledger it shows what the ledger has spent. Ends with exit code 3 if a limit or a policy is broken, or no
    epsilon keeps the limits.
    """
    from cellrisk.counts.sources import list_files_of

    policies = policies_of(context)
    question = risk.within(policies)
    limits.within(policies, question, **attacker.single(), attack=risk.attack)
    made = noise.read_perturbation("mechanism", "delta")
    if made is not None:
        beside = ["attack"] if risk.attack != "homogeneity" else []
        refuse_beside("a perturbation is assessed by the homogeneity attack alone", beside)
    if public and shown.ledger is not None:
        raise InvalidInput("--ledger is not for a statement for the public", fix="leave it out")
    ledger = context.with_resource(shown.opened())
    asked: Any = {} if made is not None else {"neighbours": noise.neighbours, "threshold": noise.threshold}
    frequencies = table.tabulate(outside="drop" if public else "error")
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
        public=public,
        **document.arguments(),
        source=None if "://" in table.source else Path(table.source).name,
        preparation=prepared,
        ledger=ledger,
        cohort="everyone" if ledger is None else ledger.state().choose_cohort(shown.cohort),
        command=None if public else context.meta.get(TYPED),
        inputs={} if public else {file.name: file for file in list_files_of(table.source)[:MOST_DIGESTS]},
        policy=policies,
        perturbation=made,
        progress=progress_bar("reporting"),
        **asdict(limits),
        **attacker.single(),
        **question,
        priors=risk.priors,
        **asdict(error),
    )
    document.write(found, policies, settings)
    if found.verdict == "unbound":
        return
    used = made or found.mechanism
    broken = [] if used is None else policies.breaches(frequencies, used)
    if used is None:
        broken = ["no epsilon is within the limits; the report says why"]
    elif found.verdict == "broken" and not broken:
        broken = ["a limit is broken; the report says which"]
    stop_if_broken(broken)
