"""The commands that look at several tables together."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from cellrisk.cli.answers import answer, check_outputs, stop_above_limit
from cellrisk.cli.config import OutputOptions, policy_of
from cellrisk.cli.groups import GateOptions, Number, Numbers, Text, number, option, whole
from cellrisk.cli.program import PanelGroup
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_number, read_numbers

USUAL = "assess"
SetFile = Annotated[
    Path,
    typer.Argument(metavar="SET", help="TOML file that names the source, what all tables share, and each [[table]]."),
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
    gates: GateOptions,
    check: Annotated[bool, typer.Option("--check", help="Compare with simulated releases; print z-scores.")] = False,
    releases: Annotated[int, whole("Releases that --check simulates.")] = 1000,
    seed: Annotated[int, whole("Seed of the simulation.")] = 0,
    certainty: Annotated[
        Numbers,
        option("Also count the people whom an attacker names with this certainty: 0.8,0.95.", "NUMBERS", read_numbers),
    ] = None,
    plot: Annotated[Text, option("Picture of how exposure grows table by table: .svg, .png or .pdf.", "FILE")] = None,
    max_epsilon: Annotated[Number, number("Exit with code 3 if the set costs more.", "E")] = None,
    max_risk: Annotated[Number, number("Exit with code 3 if elimination names a larger share of people.", "R")] = None,
    max_people: Annotated[Number, number("Exit with code 3 if elimination names more people.", "M")] = None,
    tempering: Annotated[
        Text, option("With --certainty: weight of each further table, up to 1, or fit; default: 1 and fit.", "WEIGHT")
    ] = None,
) -> None:
    """What several tables about the same people give away, if they are released together.

    It prints what two ways of combining the tables reveal, each table alone, the table that adds most, how often
    anybody could be right at most, and what the set costs. Elimination, one of them, rules out every value
    that a table shows as zero. The word assess may be left out.
    """
    from cellrisk.decide.limits import read_limits
    from cellrisk.repeat.together import assess_together
    from cellrisk.repeat.together.judging import find_breaches, find_policy_breaches, list_certainties
    from cellrisk.repeat.together.set_file import read_set_file

    if check and releases < 2:
        raise InvalidInput("--releases must be 2 or more with --check", got=releases)
    check_outputs(plot)
    policies = policy_of(context)
    named = {} if certainty is None else {"certainty": certainty}
    given: dict[str, Any] = {"max_epsilon": max_epsilon, "max_risk": max_risk, "max_people": max_people}
    limits = read_limits(**asdict(gates), **given, **named)
    asked = read_set_file(set_file)
    certainties = sorted({*(certainty or ()), *list_certainties(policies, limits)})
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
    asked_for, by_policy = [*find_breaches(found, limits)], [*find_policy_breaches(found, policies)]
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
    total_rho: Annotated[Number, number("The same as rho of zCDP, for discrete-gaussian tables.", "RHO")] = None,
    use: Annotated[
        Numbers, option("How much each table is used, between commas.", "NUMBERS", read_numbers, "all alike")
    ] = None,
    slack: Annotated[
        float, number("How much more error than the least is allowed for giving away fewer people.")
    ] = 0.25,
) -> None:
    """How to share a total epsilon, or rho, among the tables of a set.

    It compares even shares, the shares with the least error, and those that give away the fewest people because of
    their own records, as far as a search finds them.
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
