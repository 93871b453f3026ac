"""The commands, put together."""

from __future__ import annotations

import typer

from cellrisk.cli.commands import assess_command, demo_command, inspect_command
from cellrisk.cli.decisions import choose_command, curve_command, explain_command, report_command, utility_command
from cellrisk.cli.ledgers import ledger_app
from cellrisk.cli.planning import average_command
from cellrisk.cli.releases import audit_command, publish_risk_command, release_command, simulate_command
from cellrisk.cli.reproducing import reproduce_command
from cellrisk.cli.serving import serve_command
from cellrisk.cli.sets import together_command

app = typer.Typer(
    name="cellrisk",
    help="At this epsilon, how much does the homogeneity attack still reveal about people's sensitive values?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("inspect")(inspect_command)
app.command("assess")(assess_command)
app.command("curve")(curve_command)
app.command("choose")(choose_command)
app.command("utility")(utility_command)
app.command("explain")(explain_command)
app.command("report")(report_command)
app.command("release")(release_command)
app.command("publish-risk")(publish_risk_command)
app.command("simulate")(simulate_command)
app.command("audit")(audit_command)
app.command("average")(average_command)
app.command("together")(together_command)
app.add_typer(ledger_app, name="ledger")
app.command("serve")(serve_command)
app.command("reproduce")(reproduce_command)
app.command("demo")(demo_command)


@app.callback(invoke_without_command=True)
def _about(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and stop.")
) -> None:
    if version:
        from cellrisk.system.version import __version__

        typer.echo(f"cellrisk {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
