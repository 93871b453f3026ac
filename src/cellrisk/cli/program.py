"""The commands, put together."""

from __future__ import annotations

from typing import ClassVar

import typer

from cellrisk.cli.loading import PanelGroup


class Program(PanelGroup):
    """The command `cellrisk` itself."""

    panels: ClassVar = {
        "Start": {"demo": "commands.demo_command", "serve": "serving.serve_command"},
        "Look at a table": {
            "inspect": "commands.inspect_command",
            "assess": "commands.assess_command",
            "explain": "decisions.explain_command",
        },
        "Decide": {
            "curve": "decisions.curve_command",
            "choose": "decisions.choose_command",
            "utility": "decisions.utility_command",
            "report": "decisions.report_command",
            "simulate": "releases.simulate_command",
        },
        "Publish": {
            "release": "releases.release_command",
            "publish-risk": "releases.publish_risk_command",
            "audit": "releases.audit_command",
        },
        "Several releases": {
            "average": "planning.average_command",
            "together": "sets.SetGroup",
            "ledger": "ledgers.LedgerGroup",
        },
        "The paper": {"reproduce": "reproducing.reproduce_command"},
    }


app = typer.Typer(
    name="cellrisk",
    cls=Program,
    help="What a frequency table that is published with differential privacy still gives away about people.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
