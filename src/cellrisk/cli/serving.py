"""The command that opens the web app."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cellrisk.cli.config import CONFIG, policy_of
from cellrisk.cli.groups import Text, option, whole
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import require_whole_number

PASSWORD = "CELLRISK_PASSWORD"


def serve_command(
    context: typer.Context,
    folder: Annotated[
        Text, option("Let the page load files in this folder; files can always be uploaded.", "FOLDER")
    ] = None,
    ledger: Annotated[Text, option("Ledger in which releases are recorded.", "LEDGER")] = None,
    new_ledger: Annotated[bool, typer.Option("--new-ledger", help="Make this ledger; refused if it exists.")] = False,
    host: Annotated[str, option("The address to listen on.", "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, whole("The port; 0 takes a free one.")] = 0,
    upload_limit: Annotated[str, option("The largest upload, for example 500MB.", "SIZE")] = "2GB",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in, with a password; nothing is encrypted.")
    ] = False,
    password_file: Annotated[
        Text, option(f"File with the password on its first line; without it, {PASSWORD} is read.", "FILE")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    config: Annotated[Path | None, CONFIG] = None,
) -> None:
    """Look at the risk and choose epsilon on a page in your browser.

    Whoever has the link that it prints can use the page. Ctrl-C ends it and removes what was uploaded.
    """
    from cellrisk.counts.resources import read_bytes
    from cellrisk.web import serve

    require_whole_number("--port", port, 0, 65_535)
    serve(
        folder=folder,
        host=host,
        port=port,
        ledger=ledger,
        new_ledger=new_ledger,
        upload_limit=read_bytes(upload_limit),
        allow_remote=allow_remote,
        password=read_password(password_file),
        policy=policy_of(context),
        open_browser=browser,
        announce=announce,
    )


def announce(link: str) -> None:
    typer.echo(f"cellrisk is at {link}\nCtrl-C ends it.")


def read_password(file: str | None) -> str | None:
    """The password of a file's first line, or of the environment, from which it is taken away: processes that are
    started have no use for it. It is never given on the command line."""
    kept = os.environ.pop(PASSWORD, None)
    if file is None:
        return kept or None
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInput("the password file cannot be read", got=f"{file} ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InvalidInput("the password file is not text", got=file) from None
    if not lines or not lines[0].strip():
        raise InvalidInput("the password file is empty", got=file)
    return lines[0].strip()
