"""The command that looks at several tables together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cellrisk.cli.answers import answer, say
from cellrisk.cli.config import OutputOptions, policy_of
from cellrisk.cli.groups import grouped, whole
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput

NOT_JUDGED = "policies limit single tables, which assess judges; the set was not judged by"


@grouped
def together_command(
    context: typer.Context,
    set_file: Annotated[
        Path,
        typer.Argument(metavar="SET", help="TOML file with the source, what all tables share, and each [[table]]."),
    ],
    output: OutputOptions,
    check: Annotated[
        bool, typer.Option("--check", help="Simulate releases as a second opinion; print z-scores.")
    ] = False,
    releases: Annotated[int, whole("Releases that --check simulates.")] = 1000,
    seed: Annotated[int, whole("Seed of what is simulated.")] = 0,
) -> None:
    """What several tables about the same people give away, if they are released together.

    Three ways of putting them together, each table alone beside the set, the table that adds most, what nobody exceeds
    and what the set costs.
    """
    from cellrisk.repeat.together import assess_together
    from cellrisk.repeat.together.set_file import read_set_file

    if check and releases < 2:
        raise InvalidInput("--check needs 2 releases or more", got=releases)
    asked = read_set_file(set_file)
    simulated = releases if check else 0
    found = assess_together(**asked, check=simulated, seed=seed, progress=progress_bar("counting"))
    answer(found, output.as_json)
    policies = policy_of(context)
    if policies:
        say(f"cellrisk: {NOT_JUDGED} {policies.describe().partition(': ')[2]}", err=True)
