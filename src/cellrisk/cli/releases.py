"""The commands around a publication: release, and audit of what was released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, obey
from cellrisk.cli.config import policy_of
from cellrisk.cli.groups import MechanismOptions, OutputOptions, TableOptions, Text, Texts, grouped, option
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput
from cellrisk.text import aligned


@dataclass(frozen=True)
class ReleaseMechanismOptions(MechanismOptions):
    """How the noise of a release is made: by whole numbers."""

    mechanism: Annotated[str, option("geometric or discrete-gaussian.", "NAME")] = "geometric"


@grouped
def release_command(
    context: typer.Context,
    table: TableOptions,
    mechanism: ReleaseMechanismOptions,
    settings: OutputOptions,
    output: Annotated[Text, option("The released counts: .parquet or .csv.", "FILE")] = None,
    exclude: Annotated[Texts, option("Impossible: 'sex=m;pregnant=yes'; labels between |.", "RULE")] = None,
    may_be_missing: Annotated[Texts, option("Column that can hold missing values.", "COLUMN")] = None,
    observed_levels: Annotated[
        bool, typer.Option("--observed-levels", help="Labels as they occur; the guarantee does not cover which.")
    ] = False,
    observed_cells_only: Annotated[
        bool, typer.Option("--observed-cells-only", help="Noise on non-empty cells only; it does not cover which.")
    ] = False,
    clamp: Annotated[bool, typer.Option(help="Negative counts become zero; --no-clamp keeps sums unbiased.")] = True,
    dense: Annotated[
        bool | None, typer.Option("--dense/--sparse", help="List every count, or positive ones alone.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Publish the table with differential privacy.

    Counts with noise from OpenDP, and a description beside them.
    """
    from cellrisk.priors import Priors
    from cellrisk.releasing import check_output, release

    if output is None:
        raise InvalidInput("no output file was given", fix="name it: --output released.parquet")
    check_output(output, force)
    setting = mechanism.one()
    rules = parsing.parse_rules(exclude)
    frequencies = table.tabulate()
    obey(policy_of(context), frequencies, setting, Priors())
    released = release(
        frequencies,
        setting,
        exclude=rules,
        may_be_missing=parsing.split_names(may_be_missing),
        observed_levels=observed_levels,
        observed_cells_only=observed_cells_only,
        clamp=clamp,
        dense=dense,
        progress=progress_bar("releasing"),
    )
    written = released.save(output, force=force)
    answer(released, settings.as_json, raw=False)
    if not settings.as_json:
        typer.echo(f"\nWritten to {written}, described in {written}.json.")


@grouped
def audit_command(
    table: TableOptions,
    released: Annotated[str, typer.Argument(metavar="RELEASED", help="What was published: counts, or records.")],
    output: OutputOptions,
    released_count: Annotated[
        Text, option("Column of counts in RELEASED; without it each row is a record.", "COLUMN")
    ] = None,
    released_table: Annotated[Text, option("Table, where RELEASED is a database.", "NAME")] = None,
    top: Annotated[str, option("How many of the exposed cells to list, for the curator.", "NUMBER")] = "0",
) -> None:
    """What did a release give away?

    The attack as realised, and what other tools would say.
    """
    from cellrisk.auditing import audit
    from cellrisk.releasing import find_count_column

    listed = parsing.parse_whole("--top", top)
    found = audit(
        table.tabulate(),
        released,
        count=released_count or find_count_column(released),
        bins=parsing.parse_bins(table.bin),
        table=released_table,
    )
    answer(found, output.as_json)
    if listed and not output.as_json:
        rows = [
            [", ".join(f"{name} {label}" for name, label in cell.key.items()), cell.shown, f"{cell.exposed:,}"]
            for cell in found.exposed(listed)
        ]
        typer.echo("\nThe cells that give away most people; their keys are raw data")
        typer.echo(aligned(["cell", "shows", "people"], rows, left=2))
