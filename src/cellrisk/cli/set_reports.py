"""`report --set`: the report on a set of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from cellrisk.cli.answers import answer, say, stop_above_limit
from cellrisk.cli.config import TYPED, OutputOptions, policy_of
from cellrisk.cli.groups import AttackerOptions, LimitOptions
from cellrisk.cli.progress import progress_bar
from cellrisk.cli.releases import RecordOptions, refuse_beside_set
from cellrisk.errors import InvalidInput
from cellrisk.system.writing import keep_inputs

MOST_DIGESTS = 20
"""Files of the source whose digests a report prints."""
TABLE_WORDS = ("bins", "mechanism", "epsilon", "delta", "neighbours", "threshold")
"""What a set file says of the tables, and not of the records."""
FIGURES = ("max_caused", "max_certain", "max_ceiling", "max_epsilon")
RISKS = ("max_risk", "max_people", "margin")


@dataclass(frozen=True)
class SetReport:
    """What is asked of the report on a set."""

    set_file: str
    output: str
    registry: str | None
    public: bool
    split: bool
    use: Sequence[float] | None
    seed: int
    told: dict[str, Any]
    """Printed as it is, and the house's own template and logo."""


def report_set_file(
    context: typer.Context,
    asked: SetReport,
    limits: LimitOptions,
    attacker: AttackerOptions,
    record: RecordOptions,
    settings: OutputOptions,
) -> None:
    """Writes the report on a set; ends with exit code 3 where a policy is broken."""
    from cellrisk.cli.ledgers import EVERYONE, choose_cohort
    from cellrisk.counts.sources import list_files_of
    from cellrisk.decide.figure_limits import FigureLimit
    from cellrisk.repeat.together import assess_together
    from cellrisk.repeat.together.judging import find_policy_breaches, list_certainties
    from cellrisk.repeat.together.set_file import read_set_file
    from cellrisk.repeat.together.sets import read_tables
    from cellrisk.repeat.together.splitting import split_budget
    from cellrisk.show.reporting.set_report import report_set

    if asked.use is not None and not asked.split:
        raise InvalidInput("--use goes with --split", fix="add --split, or leave it out")
    if asked.split and asked.public:
        raise InvalidInput("--split is computed from the raw data, and not for the public", fix="leave it out")
    policies, given = policy_of(context), asdict(limits)
    certainties = attacker.certainty or ()
    figures = FigureLimit.read(
        **{name: given[name] for name in FIGURES}, **({"certainty": certainties} if certainties else {})
    )
    policies.check_figures(figures)
    required = {name: given[name] for name in RISKS if given[name] is not None}
    policies.check_tighter({"measure": "local", "form": "tight", "weights": "records"}, **required)
    words = read_set_file(asked.set_file)
    files = list_files_of(words["source"])
    keep_inputs("the records", *files)
    tables = read_tables(
        words["tables"], words["sensitive"], **{name: words[name] for name in TABLE_WORDS if name in words}
    )
    ledger = context.with_resource(record.opened())
    found = None
    if not asked.public or figures or required or policies:
        looked_at = sorted({*certainties, *list_certainties(policies, figures)})
        rule = {"outside": "drop"} if asked.public else {}
        found = assess_together(
            **{**rule, **words}, certainty=looked_at or None, seed=asked.seed, progress=progress_bar("counting")
        )
    split = split_budget(**words, use=asked.use, progress=progress_bar("splitting")) if asked.split else None
    read = [Path(asked.set_file), *files[:MOST_DIGESTS]]
    report = report_set(
        tables,
        words["sensitive"],
        found,
        figures=figures,
        required=required,
        split=split,
        public=asked.public,
        declared=_list_declared(words),
        ledger=ledger,
        cohort=EVERYONE if ledger is None else choose_cohort(ledger, record.cohort),
        inputs={} if asked.public else {file.name: file for file in read},
        policy=policies,
        source=None if "://" in words["source"] else Path(words["source"]).name,
        command=None if asked.public else context.meta.get(TYPED),
        **asked.told,
    )
    written = report.save(asked.output)
    if asked.registry is not None:
        report.save_record(asked.registry)
    if settings.as_json:
        answer(report, True, raw=not asked.public)
    else:
        obeyed = f"{policies.describe()}\n\n" if policies else ""
        say(f"{report.headline}\n\n{obeyed}Written to {written}.")
    broken = [] if found is None else [*find_policy_breaches(found, policies)]
    if broken:
        stop_above_limit("; ".join(broken))


def _list_declared(words: dict[str, Any]) -> set[str]:
    """Columns whose values a set file declares: by levels, or by the edges of bins."""
    bins = [words["bins"], *(table.get("bin", {}) for table in words["tables"])]
    return {*words["levels"], *(name for each in bins for name, given in each.items() if isinstance(given, list))}


def refuse_for_set(context: typer.Context, said_by_set: Sequence[Any], **given: Any) -> None:
    """Refuses what a report on a set does not take: options of groups that the set file tells in their place, those
    that were typed of which a set knows nothing, and those of ``given`` that are set wherever they come from."""
    from cellrisk.show.reporting.set_request import REFUSED, check_set

    refuse_beside_set(context, *said_by_set)
    names = [name for name in REFUSED if name in context.params]
    found = {name: getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE" for name in names}
    found |= {name: value is not None for name, value in given.items()}
    check_set({f"--{name.replace('_', '-')}": is_given for name, is_given in found.items()})
