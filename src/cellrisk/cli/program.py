"""The commands, put together."""

from __future__ import annotations

from collections.abc import Callable

import typer

from cellrisk.cli.commands import assess_command, demo_command, inspect_command
from cellrisk.cli.decisions import choose_command, curve_command, explain_command, report_command, utility_command
from cellrisk.cli.help_panels import PanelCommand, PanelGroup
from cellrisk.cli.ledgers import ledger_app
from cellrisk.cli.planning import average_command
from cellrisk.cli.releases import audit_command, publish_risk_command, release_command, simulate_command
from cellrisk.cli.reproducing import reproduce_command
from cellrisk.cli.serving import serve_command
from cellrisk.cli.sets import together_app

COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Start": {"demo": demo_command, "serve": serve_command},
    "Look at a table": {"inspect": inspect_command, "assess": assess_command, "explain": explain_command},
    "Decide": {
        "curve": curve_command,
        "choose": choose_command,
        "utility": utility_command,
        "report": report_command,
        "simulate": simulate_command,
    },
    "Publish": {"release": release_command, "publish-risk": publish_risk_command, "audit": audit_command},
    "Several releases": {"average": average_command},
    "The paper": {"reproduce": reproduce_command},
}
"""The commands, by the panels of the help."""

app = typer.Typer(
    name="cellrisk",
    cls=PanelGroup,
    help="At this epsilon, how much does the homogeneity attack still reveal about people's sensitive values?",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        app.command(name, cls=PanelCommand, rich_help_panel=panel)(command)
app.add_typer(together_app, name="together", rich_help_panel="Several releases")
app.add_typer(ledger_app, name="ledger", rich_help_panel="Several releases")


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
