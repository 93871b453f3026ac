"""The command that looks at several tables together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cellrisk.cli.answers import answer
from cellrisk.cli.config import OutputOptions
from cellrisk.cli.groups import grouped
from cellrisk.cli.progress import progress_bar


@grouped
def together_command(
    set_file: Annotated[
        Path,
        typer.Argument(metavar="SET", help="TOML file with the source, what all tables share, and each [[table]]."),
    ],
    output: OutputOptions,
) -> None:
    """What several tables about the same people give away, if they are released together.

    Three ways of putting them together, each table alone beside the set, the table that adds most, what nobody exceeds
    and what the set costs.
    """
    from cellrisk.repeat.together import assess_together
    from cellrisk.repeat.together.set_file import read_set_file

    answer(assess_together(**read_set_file(set_file), progress=progress_bar("counting")), output.as_json)
