"""The command that opens the web app."""

from __future__ import annotations

from typing import Annotated

import typer

from cellrisk.cli.config import Config, policies_of
from cellrisk.cli.options import Text, option, whole
from cellrisk.cli.recording import NewLedger
from cellrisk.system.checks import require_whole_number


def serve_command(
    context: typer.Context,
    folder: Annotated[Text, option("Let the web app load files in this folder.", "FOLDER")] = None,
    ledger: Annotated[Text, option("Ledger in which releases are recorded.", "LEDGER")] = None,
    new_ledger: NewLedger = False,
    port: Annotated[int, whole("The port; 0 takes a free one.")] = 0,
    upload_limit: Annotated[str, option("The largest upload, for example 500MB.", "SIZE")] = "2GB",
    browser: Annotated[bool, typer.Option(help="Open the web app in a browser.")] = True,
    config: Config = None,
) -> None:
    """Assess a table and choose epsilon in your browser.

    It listens on this machine alone. Anybody with the link that it prints can use the web app. Ctrl-C ends it and
    removes what was uploaded.
    """
    from cellrisk.counts.engine import read_bytes
    from cellrisk.web import serve

    require_whole_number("port", port, 0, 65_535)
    serve(
        folder=folder,
        port=port,
        ledger=ledger,
        new_ledger=new_ledger,
        upload_limit=read_bytes(upload_limit),
        policy=policies_of(context),
        open_browser=browser,
        announce=lambda link: typer.echo(f"cellrisk is at {link}\nCtrl-C ends it."),
    )
