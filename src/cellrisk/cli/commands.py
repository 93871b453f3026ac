"""The commands that look at a table: inspect, assess, demo."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated

import typer

from cellrisk.cli.answers import answer, check_outputs, obey, say, stop_above_limit
from cellrisk.cli.config import OutputOptions, policy_of, refuse_typed
from cellrisk.cli.groups import (
    AttackerOptions,
    GateOptions,
    MechanismOptions,
    Number,
    PerturbationText,
    RiskOptions,
    TableOptions,
    Text,
    number,
    option,
    whole,
)
from cellrisk.cli.perturbations import (
    assess_perturbation_command,
    check_no_noise,
    compare_family,
    is_family,
    read_perturbation_option,
)
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput
from cellrisk.system.results import Result
from cellrisk.system.text import as_given
from cellrisk.system.words import MeasureName, list_words
from cellrisk.system.writing import check_writable, give_up_input, write_whole

if TYPE_CHECKING:
    from cellrisk.publish.simulation import Comparison
    from cellrisk.risk.assessment import Assessment


LISTED = ("table", "encoding")
"""Options by which the columns of a file are listed; the others are about a table."""


def inspect_command(
    context: typer.Context,
    table: TableOptions,
    output: OutputOptions,
    perturbation: PerturbationText = None,
    plot: Annotated[Text, option("Histogram of cell sizes: .svg, .png or .pdf.", "FILE")] = None,
    write: Annotated[Text, option("Draft a settings file: roles, levels, bins to fill in.", "FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file that --write names.")] = False,
) -> None:
    """What the table gives away before any noise.

    It counts the cells, those in which everybody has the same value, and the people in these. Without --qid and
    --sensitive it lists the columns and suggests which are which. With --perturbation it shows what becomes of counts.
    """
    if write is not None:
        _write_settings(table, output, write, force)
        return
    if not table.qid and not table.sensitive and table.is_file and perturbation is None:
        from cellrisk.counts.preview import preview_file
        from cellrisk.counts.roles import Columns

        of_a_table = [each.name for each in fields(table) if each.name not in ("source", *LISTED)]
        refuse_typed(context, "without --qid and --sensitive, the columns are listed", *of_a_table, "plot")
        preview = preview_file(table.source, progress_bar("reading"), table.table, table.encoding)
        answer(Columns(table.typed, preview), output.as_json)
        return
    check_outputs(plot)
    made = None if perturbation is None else read_perturbation_option(perturbation)
    frequencies = table.tabulate()
    found: Result = frequencies.summary()
    if made is not None:
        from cellrisk.risk.perturbed.counts import inspect_perturbation

        found = inspect_perturbation(frequencies, made)
    if plot is not None:
        frequencies.plot(plot)
    answer(found, output.as_json)


def _write_settings(table: TableOptions, output: OutputOptions, path: str, force: bool) -> None:
    """Draft a settings file for a file of records."""
    from cellrisk.cli.parsing import split_names
    from cellrisk.counts.preview import preview_file
    from cellrisk.counts.roles import Columns
    from cellrisk.counts.settings_draft import SettingsDraft, draft_settings

    if not table.is_file:
        raise InvalidInput("a settings file is drafted for a file", got="a database", fix="export a sample of it")
    if force:
        give_up_input(path, "what --config names")
    elif os.path.lexists(path):
        raise InvalidInput("there is a file of that name", got=path, fix="replace it with --force", code="file-exists")
    check_writable(path)
    preview = preview_file(table.source, progress_bar("reading"), table.table, table.encoding)
    roles = (split_names(table.qid), split_names(table.sensitive))
    text, facts = draft_settings(Columns(table.typed, preview), table.source, *roles, table.table, table.encoding)
    write_whole(path, text)
    answer(
        SettingsDraft(path, facts["qid"], facts["sensitive"], facts["declared"], facts["unfinished"]), output.as_json
    )


def assess_command(
    context: typer.Context,
    table: TableOptions,
    mechanism: MechanismOptions,
    risk: RiskOptions,
    attacker: AttackerOptions,
    output: OutputOptions,
    gates: GateOptions,
    max_risk: Annotated[
        Number, number("Exit with code 3 if a larger share is exposed, or the risk by --measure is larger.", "R")
    ] = None,
    domain: Annotated[bool, typer.Option("--domain", help="Include the empty cells of the domain.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compare with simulated releases; print z-scores.")] = False,
    releases: Annotated[int, whole("Releases that --check simulates.")] = 1000,
    seed: Annotated[int, whole("Seed of --check.")] = 0,
    perturbation: PerturbationText = None,
    plot: Annotated[Text, option("Picture of the answer: .svg, .png or .pdf.", "FILE")] = None,
) -> None:
    """What a table would give away if it were published at this epsilon, or with a perturbation.

    It prints how many people are given away because of their own record, how many an attacker can be sure of, and how
    often anybody could be right at most; then every measure of the homogeneity attack, which looks for cells that show
    one value alone.
    """
    from cellrisk.decide.limits import RiskDefinition, read_limits
    from cellrisk.risk.assessment import assess

    policies = policy_of(context)
    if max_risk is not None and not 0 <= max_risk <= 1:
        raise InvalidInput("--max-risk must be a share of people", got=max_risk, allowed="from 0 to 1")
    check_outputs(plot)
    limits = read_limits(**asdict(gates), risk=RiskDefinition(attack=risk.attack), **attacker.arguments())
    others = {"--attack": risk.attack != "homogeneity", "--check": check, "--domain": domain}
    if perturbation is not None and mechanism.epsilon is not None and is_family(perturbation):
        refuse_typed(context, f"{perturbation} without its number asks for the number at equal risk alone", risk)
        given = {**asdict(gates), "max_risk": max_risk, "plot": plot}
        others |= {f"--{name.replace('_', '-')}": value is not None for name, value in given.items()}
        compare_family(perturbation, table, mechanism.one(), attacker, others, output.as_json, policies)
        return
    if perturbation is not None:
        check_no_noise(mechanism, others, compared=True)
        assess_perturbation_command(
            perturbation, table, mechanism, risk, attacker, limits, max_risk, plot, output.as_json, policies
        )
        return
    noise = mechanism.one()
    frequencies = table.tabulate()
    assessment = assess(frequencies, noise, domain=domain, **risk.many(), **attacker.arguments())
    checks = _check(assessment, risk, releases, seed) if check else {}
    if plot is not None:
        assessment.plot(plot)
    answer(assessment, output.as_json, checks, policies=policies)
    for limit in limits:
        breach = limit.breach(frequencies.attributes, noise)
        if breach is not None:
            stop_above_limit(f"asked for was {breach}")
    if max_risk is not None:
        _gate(assessment, max_risk, risk.narrowed)
    obey(policies, frequencies, noise)


def demo_command(
    output: OutputOptions,
    epsilon: Annotated[float, number("Privacy loss: smaller is more private.")] = 1,
    save: Annotated[Text, option("Also write the data to this Parquet file, to try other commands on.", "FILE")] = None,
) -> None:
    """Assess UCI Adult, which comes with the package."""
    from cellrisk.counts import datasets
    from cellrisk.counts.tabulation import tabulate
    from cellrisk.risk.assessment import assess

    if save is not None:
        write_whole(save, datasets.adult_path().read_bytes(), public=True)
    noise = MechanismOptions(epsilon=epsilon).one()
    qids = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
    table = tabulate(datasets.adult_as_published(), qids, "income", bins={"age": 5, "hours-per-week": 10})
    assessment = assess(table, noise)
    answer(assessment, output.as_json)
    if not output.as_json:
        say(
            "\nThe data: UCI Adult (CC BY 4.0), people born in the United States, no missing values; six\n"
            "quasi-identifiers, age in steps of 5 years and hours per week in steps of 10.\n"
            "On the whole file, or with your own in its place:\n\n"
            f"  cellrisk assess {save or datasets.adult_path()} \\\n"
            f"    --qid {','.join(qids)} \\\n"
            f"    --bin age=5 --bin hours-per-week=10 --sensitive income --epsilon {noise.epsilon:g}"
        )


def _check(assessment: Assessment, risk: RiskOptions, releases: int, seed: int) -> dict[str, Comparison]:
    """A simulation of each sensitive attribute, compared with what was assessed."""
    from cellrisk.publish.simulation import simulate

    assessed = {row.measure for row in assessment.risks}
    measures = [measure for measure in list_words(MeasureName) if measure in assessed]
    return {
        name: simulate(
            assessment.table,
            assessment.mechanism,
            measures=measures,
            releases=releases,
            seed=seed,
            sensitive=name,
            certainty=assessment.attacker.certainties,
            belief=assessment.attacker.belief,
            progress=progress_bar("simulating"),
            priors=risk.priors,
        ).compare(assessment)
        for name in assessment.table.sensitive
    }


def _gate(assessment: Assessment, limit: float, narrowed: bool) -> None:
    """Exit 3 where the risk is above the limit: the chosen rows, or the expected share of people exposed."""
    if narrowed:
        worst, what = max((row.risk, f"{row.measure} {row.form}") for row in assessment.risks)
    else:
        worst, what = max((each.share, f"expected share for {each.sensitive}") for each in assessment.exposures)
    if worst > limit:
        stop_above_limit(f"risk {worst:.6g} ({what}) is above the limit {as_given(limit)}")
