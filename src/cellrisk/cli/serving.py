"""The command that opens the web app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cellrisk.cli.config import CONFIG, policy_of
from cellrisk.cli.groups import Text, option, whole
from cellrisk.system.checks import require_whole_number


def serve_command(
    context: typer.Context,
    folder: Annotated[
        Text, option("Let the page load files in this folder; files can always be uploaded.", "FOLDER")
    ] = None,
    ledger: Annotated[Text, option("Ledger in which releases are recorded.", "LEDGER")] = None,
    new_ledger: Annotated[bool, typer.Option("--new-ledger", help="Make this ledger; refused if it exists.")] = False,
    port: Annotated[int, whole("The port; 0 takes a free one.")] = 0,
    upload_limit: Annotated[str, option("The largest upload, for example 500MB.", "SIZE")] = "2GB",
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    config: Annotated[Path | None, CONFIG] = None,
) -> None:
    """Look at the risk and choose epsilon on a page in your browser.

    It listens on this machine alone. Anybody who has the link that it prints can use the page. Ctrl-C ends it and
    removes what was uploaded.
    """
    from cellrisk.counts.resources import read_bytes
    from cellrisk.web import serve

    require_whole_number("--port", port, 0, 65_535)
    serve(
        folder=folder,
        port=port,
        ledger=ledger,
        new_ledger=new_ledger,
        upload_limit=read_bytes(upload_limit),
        policy=policy_of(context),
        open_browser=browser,
        announce=announce,
    )


def announce(link: str) -> None:
    typer.echo(f"cellrisk is at {link}\nCtrl-C ends it.")
