"""The command that computes the paper again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cellrisk.cli.answers import answer, say
from cellrisk.cli.config import OutputOptions
from cellrisk.cli.groups import Text, option, whole
from cellrisk.cli.progress import progress_bar


def reproduce_command(
    settings: OutputOptions,
    output: Annotated[str, option("Folder to make, with a page, pictures and numbers.", "FOLDER")] = "reproduction",
    bankruptcy: Annotated[
        Text, option("UCI's Qualitative Bankruptcy as text, zip or CSV; then nothing is fetched.", "FILE")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Fetch nothing; without --bankruptcy, reproduce Adult alone.")
    ] = False,
    points: Annotated[int, whole("Epsilons on each curve, from 0.001 to 100.")] = 501,
    releases: Annotated[int, whole("Simulated releases behind the box plots.")] = 100,
    seed: Annotated[int, whole("Seed of the simulation.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier reproduction.")] = False,
) -> None:
    """Every figure and number of the paper, from data.

    Adult comes with the package; Bankruptcy is fetched from UCI if no file is given. It takes a minute or two.
    """
    from cellrisk.paper import reproduce
    from cellrisk.paper.reproduction import check_folder

    check_folder(output, force)
    found = reproduce(
        bankruptcy,
        fetch=bankruptcy is None and not offline,
        points=points,
        releases=releases,
        seed=seed,
        announce=_announce,
        progress=progress_bar("computing"),
    )
    found.save(output, force=force, progress=progress_bar("drawing"))
    answer(found, settings.as_json, raw=False)
    if not settings.as_json:
        say(f"\nWritten to {Path(output) / 'index.html'}.")


def _announce(sentence: str) -> None:
    say(sentence, err=True)
