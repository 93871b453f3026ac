"""The `cellrisk` command. Bad input ends with exit code 2 and one line on standard error."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import typer

from cellrisk.cli.commands import assess_command, demo_command, inspect_command
from cellrisk.cli.decisions import choose_command, curve_command, explain_command, report_command, utility_command
from cellrisk.cli.ledgers import ledger_app
from cellrisk.cli.planning import average_command
from cellrisk.cli.releases import audit_command, release_command, simulate_command
from cellrisk.cli.reproducing import reproduce_command
from cellrisk.cli.serving import serve_command
from cellrisk.errors import CellriskError

BAD_INPUT = 2
INTERRUPTED = 130
INTERNAL = 1

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
app.command("simulate")(simulate_command)
app.command("audit")(audit_command)
app.command("average")(average_command)
app.add_typer(ledger_app, name="ledger")
app.command("serve")(serve_command)
app.command("reproduce")(reproduce_command)
app.command("demo")(demo_command)

_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


@app.callback(invoke_without_command=True)
def _about(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and stop.")
) -> None:
    if version:
        from cellrisk import __version__

        typer.echo(f"cellrisk {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    command = typer.main.get_command(app)
    signal.signal(signal.SIGTERM, _stop)
    try:
        code = command.main(
            args=None if arguments is None else list(arguments), prog_name="cellrisk", standalone_mode=False
        )
        sys.stdout.flush()
    except CellriskError as refusal:
        return _fail(str(refusal), BAD_INPUT)
    except _UsageError as misuse:
        text = " ".join(misuse.format_message().split()).rstrip(".")
        return _fail(f"{text}; see cellrisk --help", BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as bug:
        if os.environ.get("CELLRISK_TRACEBACK"):
            raise
        kind = type(bug).__name__  # its text might hold data
        return _fail(f"internal error ({kind}); please report it. CELLRISK_TRACEBACK=1 shows where", INTERNAL)
    return code if isinstance(code, int) else 0


def _stop(_number: int, _frame: object) -> None:
    """A polite kill ends like Ctrl-C: temporary files are removed on the way out."""
    raise KeyboardInterrupt


def _fail(message: str, code: int) -> int:
    print(f"cellrisk: {message}", file=sys.stderr)
    return code
