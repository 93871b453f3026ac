"""The commands on several tables about the same people: together assess, split, release and report."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

import cellrisk as cr
from cellrisk.cli import options, parsing
from cellrisk.cli.deciding import DocumentOptions
from cellrisk.cli.options import Number, Numbers, number, option
from cellrisk.cli.output import DrawnOptions, OutputOptions, ScreenOptions, stop_if_broken
from cellrisk.cli.program import Group, places
from cellrisk.cli.recording import RecordOptions
from cellrisk.cli.releases import ReleaseOptions
from cellrisk.system.atomic import keep_inputs

DESCRIBED = "TOML file that names the source, what all tables share, and each [[table]]."
SetFile = Annotated[Path, typer.Argument(metavar="SET", help=DESCRIBED)]
Certainty = Annotated[Numbers, option(options.CERTAINTY, "SHARES", parsing.parse_shares, "none")]
Use = Annotated[Numbers, option("How much each table is used.", "NUMBERS", parsing.parse_numbers, "all alike")]


class SetGroup(Group):
    """Several tables about the same people: cellrisk together SET, or a command below."""

    panels: ClassVar = {"Commands": places("sets", "assess split release report")}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["assess", *args]
        return super().parse_args(ctx, args)


def assess_command(
    set_file: SetFile,
    output: DrawnOptions,
    maxima: options.LimitOptions,
    seed: options.Seed = 0,
    certainty: Certainty = None,
) -> None:
    """What several tables about the same people reveal, if they are released together.

    Prints what two attacks on all tables reveal, each table alone, the table that adds most, the worst case for one
    record, and the privacy loss of the set. Elimination, one of the attacks, rules out every value that a table shows
    as zero; --max-risk and --max-people limit what it reveals. Ends with exit code 3 if a limit is broken.
    """
    from cellrisk.decide.limits import read_limits
    from cellrisk.repeat.together import KEPT, judge, list_certainties
    from cellrisk.repeat.together.sets import read_set_file

    policies = output.policies
    limits = read_limits(**asdict(maxima), **({} if certainty is None else {"certainty": certainty}))
    asked = read_set_file(set_file)
    certainties = sorted({*(certainty or ()), *list_certainties(policies, limits)})
    counting = options.progress_bar("counting")
    assessment = cr.assess_together(**asked, seed=seed, certainty=certainties or None, progress=counting)
    broken = [judged for judged in judge(assessment, limits, policies) if judged.state != KEPT]
    obeyed = policies if policies and not any(judged.policy for judged in broken) else None
    output.answer(assessment, policies=obeyed)
    stop_if_broken([judged.breach for judged in broken])


def split_command(
    set_file: SetFile,
    output: ScreenOptions,
    total_epsilon: Annotated[Number, number("Privacy loss of all tables.", default="that of the set file")] = None,
    use: Use = None,
    slack: Annotated[float, number("How much more error than the least is allowed to reveal fewer people.")] = 0.25,
) -> None:
    """How to share a total epsilon among the tables of a set.

    Compares even shares, the shares with the least error, and those that reveal the fewest people because of their own
    records, as far as a search finds them.
    """
    from cellrisk.repeat.together.sets import read_set_file

    shared = {"total_epsilon": total_epsilon, "use": use, "slack": slack}
    output.answer(cr.split_budget(**read_set_file(set_file), **shared, progress=options.progress_bar("counting")))


def release_command(
    set_file: SetFile,
    output: Annotated[str, option("A new folder for the released tables.", "FOLDER")],
    record: RecordOptions,
    settings: OutputOptions,
    how: ReleaseOptions,
    format: Annotated[str, option("parquet or csv.", "NAME")] = "parquet",
) -> None:
    """Release every table of a set with differential privacy, or none.

    Writes a folder with each table and its description. With --ledger, there is one entry for the set.
    """
    from cellrisk.publish.releasing.files import check_folder
    from cellrisk.repeat.together.releasing import plan_loss
    from cellrisk.repeat.together.sets import read_set_file

    asked = read_set_file(set_file)
    check_folder(output)
    ledger = settings.context.with_resource(record.opened())
    record.check(ledger, plan_loss(**asked))
    given = {**asked, **how.arguments(), "format": format}
    released = cr.release_together(**given, policy=settings.policies, progress=options.progress_bar("releasing"))
    recorded = record.save(ledger, released, output)
    written = f"Written to {output}, each table with its description, and the list of all in set.json.{recorded}"
    settings.answer(released, raw=False, after=written)


def report_command(
    set_file: SetFile,
    limits: options.LimitOptions,
    document: DocumentOptions,
    settings: OutputOptions,
    certainty: Certainty = None,
    seed: options.Seed = 0,
) -> None:
    """A report on all tables of a set, each alone and all together.

    Ends with exit code 3 if a limit or a policy is broken.
    """
    from cellrisk.counts.sources import list_files_of
    from cellrisk.repeat.together import KEPT, judge, list_certainties
    from cellrisk.repeat.together.sets import read_set_file
    from cellrisk.show.reporting.set_report import report_set

    policies = settings.policies
    judged = limits.within(policies, {}, **({"certainty": certainty} if certainty else {}))
    words = read_set_file(set_file)
    files = list_files_of(words["source"])
    keep_inputs("the records", *files)
    asked = document.arguments(settings, words["source"], [Path(set_file), *files])
    certainties = sorted({*(certainty or ()), *list_certainties(policies, judged)})
    how: Any = {"certainty": certainties or None, "seed": seed, "progress": options.progress_bar("counting")}
    assessment = cr.assess_together(**words, **how)
    every = [bins for row in assessment.tables for bins in row.table.bins.items()]
    edges = [name for name, value in every if isinstance(value, list | tuple)]
    report: Any = report_set(assessment, limits=judged, declared={*words["levels"], *edges}, **asked)
    document.write(report, settings)
    stop_if_broken([verdict.breach for verdict in judge(assessment, judged, policies) if verdict.state != KEPT])
