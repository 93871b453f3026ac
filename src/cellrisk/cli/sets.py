"""The commands that look at several tables together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from cellrisk.cli.answers import answer, stop_above_limit
from cellrisk.cli.config import OutputOptions, policy_of
from cellrisk.cli.groups import Number, Numbers, Text, number, option, whole
from cellrisk.cli.loading import PanelGroup
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_number, read_numbers, shorten

USUAL = "assess"
SetFile = Annotated[
    Path, typer.Argument(metavar="SET", help="TOML file with the source, what all tables share, and each [[table]].")
]


class SetGroup(PanelGroup):
    """The command `cellrisk together`; a set file in the place of a command's name is assessed."""

    about = "Several tables about the same people, released together: cellrisk together SET, or a command below."
    panels: ClassVar = {"Commands": {USUAL: "sets.together_command", "split": "sets.split_command"}}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [USUAL, *args]
        return super().parse_args(ctx, args)


def together_command(
    context: typer.Context,
    set_file: SetFile,
    output: OutputOptions,
    check: Annotated[
        bool, typer.Option("--check", help="Simulate releases as a second opinion; print z-scores.")
    ] = False,
    releases: Annotated[int, whole("Releases that --check simulates.")] = 1000,
    seed: Annotated[int, whole("Seed of what is simulated.")] = 0,
    certainty: Annotated[
        Numbers,
        option("Also an attacker who does the mathematics and is so sure, such as 0.8,0.95.", "NUMBERS", read_numbers),
    ] = None,
    plot: Annotated[Text, option("Picture of how it grows table by table: .svg, .png or .pdf.", "FILE")] = None,
    max_caused: Annotated[
        Number, number("Exit with code 3 where more people are given away because of their own record.", "R")
    ] = None,
    max_certain: Annotated[Number, number("Exit with code 3 where more are named with --certainty.", "R")] = None,
    max_ceiling: Annotated[Number, number("Exit with code 3 where the ceiling of two values is above R.", "R")] = None,
    max_epsilon: Annotated[Number, number("Exit with code 3 where the set costs more.", "E")] = None,
    max_risk: Annotated[Number, number("Exit with code 3 where elimination names more, as a share.", "R")] = None,
    max_people: Annotated[Number, number("Exit with code 3 where elimination names more people.", "M")] = None,
    tempering: Annotated[
        Text, option("With --certainty: what he makes of each further table, up to 1, or fit; default both.", "WEIGHT")
    ] = None,
) -> None:
    """What several tables about the same people give away, if they are released together.

    Three ways of putting them together, each table alone beside the set, the table that adds most, what nobody exceeds
    and what the set costs. The word assess may be left out.
    """
    from cellrisk.decide.figure_limits import FigureLimit
    from cellrisk.decide.requirement import Requirement
    from cellrisk.repeat.together import assess_together
    from cellrisk.repeat.together.judging import find_breaches, find_policy_breaches, list_certainties
    from cellrisk.repeat.together.set_file import read_set_file

    if check and releases < 2:
        raise InvalidInput("--releases must be 2 or more with --check", got=shorten(releases))
    if plot is not None:
        from cellrisk.show.pictures import check_picture_path

        check_picture_path(plot)
    policies = policy_of(context)
    figures = FigureLimit.read(
        max_caused=max_caused,
        max_certain=max_certain,
        max_ceiling=max_ceiling,
        max_epsilon=max_epsilon,
        **({} if certainty is None else {"certainty": certainty}),
    )
    given = {"max_risk": max_risk, "max_people": max_people}
    required = Requirement(**given) if any(each is not None for each in given.values()) else None
    asked = read_set_file(set_file)
    certainties = sorted({*(certainty or ()), *list_certainties(policies, figures)})
    simulated = releases if check else 0
    if tempering is not None and not certainties:
        raise InvalidInput("--tempering goes with --certainty", fix="add --certainty 0.95")
    found = assess_together(
        **asked,
        check=simulated,
        seed=seed,
        certainty=certainties or None,
        tempering=tempering if tempering in (None, "fit") else read_number(tempering, name="--tempering"),
        progress=progress_bar("counting"),
    )
    if plot is not None:
        found.plot(plot)
    asked_for, by_policy = [*find_breaches(found, figures, required)], [*find_policy_breaches(found, policies)]
    answer(found, output.as_json, policies=policies if policies and not by_policy else None)
    breaches = [*asked_for, *by_policy]
    if breaches:
        stop_above_limit("; ".join(breaches))


def split_command(
    set_file: SetFile,
    output: OutputOptions,
    total_epsilon: Annotated[
        Number, option("What the tables may spend together.", "E", read_number, "what the set file says")
    ] = None,
    total_rho: Annotated[Number, number("The same in zCDP, for discrete-gaussian tables.", "RHO")] = None,
    use: Annotated[
        Numbers, option("How much each table is used, between commas.", "NUMBERS", read_numbers, "all alike")
    ] = None,
    slack: Annotated[float, number("How far above the least error the shares may lie that give away fewest.")] = 0.25,
) -> None:
    """How to share a total epsilon, or rho, among the tables of a set.

    Even shares, those of the least error, and those that give away fewest people because of their own records, with
    their errors, and below which number no shares can come.
    """
    from cellrisk.repeat.together.set_file import read_set_file
    from cellrisk.repeat.together.splitting import split_budget

    found = split_budget(
        **read_set_file(set_file),
        total_epsilon=total_epsilon,
        total_rho=total_rho,
        use=use,
        slack=slack,
        progress=progress_bar("counting"),
    )
    answer(found, output.as_json)
