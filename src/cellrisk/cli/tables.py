"""The commands on one table: inspect, assess, explain, curve, choose, utility, simulate, report; demo and serve."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli import options, parsing
from cellrisk.cli.config import A_FILE_READ, POLICIES, Config
from cellrisk.cli.options import Numbers, Parsed, Text, number, option, whole
from cellrisk.cli.output import DrawnOptions, OutputOptions, PictureOptions, ScreenOptions, say, stop_if_broken
from cellrisk.counts.unit import MOST_RECORDS, Unit
from cellrisk.errors import InvalidInput
from cellrisk.system.atomic import check_ending, give_up_input, write_whole
from cellrisk.system.checks import require_whole_number, split_names
from cellrisk.system.formatting import CURATOR_NOTE

if TYPE_CHECKING:
    from cellrisk.decide.limits import Limit

MOST_DIGESTS = 20
"""Files of the source whose digests a report prints."""
PUBLIC = "A statement for the public: nothing computed from the raw data."
Ways = Annotated[Numbers, option("Columns of the marginals.", "NUMBERS", parsing.parse_whole_numbers, "1,2,3")]


def inspect_command(
    table: options.TableOptions,
    output: PictureOptions,
    write: Annotated[Text, option("Draft a settings file: roles, levels, bins to fill in.", "FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file that --write names.")] = False,
) -> None:
    """What the table reveals without noise.

    Counts the groups, those in which everybody has the same value, and the people in these. With --person it shows how
    many records people have. Without --qid and --sensitive it lists the columns and suggests their roles.
    """
    if write is not None or (not (table.qid or table.sensitive) and table.is_file):
        of_a_table = {*asdict(table), "plot"} - {"source", "table", "encoding", "qid", "sensitive"}
        options.refuse_beside("these options require --qid and --sensitive", output.list_typed(*sorted(of_a_table)))
        _list_columns(table, output, write, force)
        return
    if table.person is None or table.contributions is not None:
        frequencies = table.tabulate()
    else:  # every record is kept, and none is said to be a person
        frequencies = replace(replace(table, contributions=MOST_RECORDS).tabulate(), unit=Unit())
    output.answer(frequencies.summary(), drawn=frequencies)


def _list_columns(table: options.TableOptions, output: OutputOptions, write: str | None, force: bool) -> None:
    """List the columns of a file, or draft a settings file for it."""
    from cellrisk.counts.preview import draft_settings, preview_file

    if not table.is_file:
        raise InvalidInput("a settings file is drafted for a file", got="a database", fix="export a sample of it")
    if write is not None:
        if force:
            give_up_input(write, A_FILE_READ)
        elif os.path.lexists(write):
            raise InvalidInput("the file exists", got=write, fix="replace it with --force", code="file-exists")
        check_ending(write, (".toml",), "settings file", "cellrisk.toml")
    name = "-" if Path(table.source).stem == options.STANDARD_INPUT else table.source
    preview = preview_file(table.source, options.progress_bar("reading"), table.table, table.encoding, name)
    if write is None:
        output.answer(preview)
        return
    roles = split_names(table.qid), split_names(table.sensitive)
    text, advice, document = draft_settings(preview, write, table.source, *roles, table.table, table.encoding)
    write_whole(write, text)
    output.say({**document, "note": CURATOR_NOTE}, f"{advice}\n\n{CURATOR_NOTE}")


def assess_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    risk: options.SeveralRiskOptions,
    attacker: options.AttackerOptions,
    output: DrawnOptions,
    gates: options.LimitOptions,
    releases: Annotated[int, whole("How often the table is published, each time with new noise.")] = 1,
    seed: Annotated[int, whole("Seed by which records of people who have too many are drawn.")] = 0,
) -> None:
    """What a table would reveal if it were published at this epsilon, or with a perturbation.

    Prints how many people are revealed because of their own record, how many an informed attacker infers, and the
    worst case for one record; then every measure of the homogeneity attack. Ends with exit code 3 if a limit is broken.
    """
    asked, limits = risk.many(), _read_gates(gates, risk, attacker)
    needed = output.as_json or POLICIES in output.context.meta
    policies = output.policies if needed else None  # loading them takes long
    if releases != 1:
        options.refuse_beside("limits are kept or broken by one release", [limit.name for limit in limits])
        asked["releases"] = releases
    if noise.perturbation is not None:
        beside = {"attack": risk.attack != "homogeneity", "releases": releases != 1}
        beside |= {"harmful": bool(attacker.harmful), "also_as": bool(attacker.unions)}
        unused = [name for name, is_given in beside.items() if is_given]
        options.refuse_beside("a perturbation is assessed by the homogeneity attack alone", unused)
    used: Any = noise.read_perturbation("mechanism", "delta") or noise.one()
    frequencies = table.tabulate(seed=seed)
    if noise.perturbation is None:
        assessment: Any = cr.assess(frequencies, used, **asked, **attacker.arguments())
    else:
        del asked["attack"]
        compared: Any = {"compare": noise.mechanism, "delta": noise.delta}
        assessment = cr.assess_perturbation(frequencies, used, **compared, **asked, **attacker.arguments())
    everything = risk.attack != "homogeneity" or any((risk.measure, risk.form, risk.weights))
    output.answer(assessment, policies=policies, everything=everything)
    breaches = [limit.breach(frequencies.attributes, used) for limit in limits]
    broken = [f"asked for was {breach}" for breach in breaches if breach is not None]
    stop_if_broken([*broken, *(policies.breaches(frequencies, used) if policies else [])])


def _read_gates(
    gates: options.LimitOptions, risk: options.SeveralRiskOptions, attacker: options.AttackerOptions
) -> list[Limit]:
    """Return the limits that were given; one on the risk holds for each risk that is named."""
    maxima = asdict(gates)
    if not any(maximum is not None for maximum in maxima.values()):
        return []
    from cellrisk.decide.limits import RiskDefinition, read_limits

    named, usual = risk.many(), {"measures": "local", "forms": "tight", "weights": "records"}
    risks = [
        RiskDefinition(*words, attack=risk.attack, priors=risk.priors)  # type: ignore[misc]
        for words in product(*(named[name] or [word] for name, word in usual.items()))
    ]
    limits = [limit for one in risks for limit in read_limits(**maxima, **attacker.arguments(), risk=one)]
    return list(dict.fromkeys(limits))


def explain_command(
    table: options.TableOptions,
    noise: options.NoiseOptions,
    attacker: options.AttackerOptions,
    output: ScreenOptions,
    form: options.OneForm = None,
    weights: options.OneWeights = None,
    top: Annotated[int, whole("Groups to list.")] = 20,
    merge: Annotated[Parsed, option("Merge values: education:school=9th|10th.", "MERGE", parsing.parse_merge)] = None,
) -> None:
    """Who is at risk, and what would help.

    Lists the groups most at risk, and the local risk if a quasi-identifier were left out or made coarser.
    """
    merges: dict[str, dict[str, list[str]]] = {}
    for column, new, old in merge or ():
        merges.setdefault(column, {})[new] = old
    how: dict[str, Any] = {name: value for name, value in {"form": form, "weights": weights}.items() if value}
    made = noise.read_perturbation()
    how |= {"mechanism": noise.one()} if made is None else {"perturbation": made}
    output.answer(cr.explain(table.tabulate(), top=top, merge=merges, **attacker.single(), **how))


def demo_command(
    output: OutputOptions,
    epsilon: Annotated[float, number("Privacy loss: smaller is more private.")] = 1,
    save: Annotated[Text, option("Write the data to this Parquet file, to try other commands.", "FILE")] = None,
) -> None:
    """Assess UCI Adult, which comes with the package."""
    if save is not None:
        write_whole(save, cr.datasets.adult_path().read_bytes(), public=True)
    noise = options.MechanismOptions(epsilon=epsilon).one()
    qids = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
    table = cr.tabulate(cr.datasets.adult_as_published(), qids, "income", bins={"age": 5, "hours-per-week": 10})
    output.answer(cr.assess(table, noise))
    if not output.as_json:
        say(
            "\nThe data: UCI Adult (CC BY 4.0), people born in the United States, no missing values; six\n"
            "quasi-identifiers, age in steps of 5 years and hours per week in steps of 10.\n"
            "For the whole file, or for your own:\n\n"
            f"  cellrisk assess {save or cr.datasets.adult_path()} \\\n"
            f"    --qid {','.join(qids)} \\\n"
            f"    --bin age=5 --bin hours-per-week=10 --sensitive income --epsilon {noise.epsilon:g}"
        )


def serve_command(
    context: typer.Context,
    folder: Annotated[Text, option("Let the web app load files in this folder.", "FOLDER")] = None,
    ledger: Annotated[Text, option("Ledger in which releases are recorded.", "LEDGER")] = None,
    new_ledger: options.NewLedger = False,
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
        policy=context.meta.get(POLICIES),
        open_browser=browser,
        announce=lambda link: typer.echo(f"cellrisk is at {link}\nCtrl-C ends it."),
    )
