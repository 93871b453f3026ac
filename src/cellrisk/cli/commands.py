"""The commands: each reads its options, calls the library, and prints what comes back."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import typer

from cellrisk.cli import options
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    from cellrisk.assessment import Assessment
    from cellrisk.mechanisms import Mechanism
    from cellrisk.tables import FrequencyTable

ABOVE_LIMIT = 3


def inspect_command(
    source: options.Source,
    qid: options.Qid = None,
    sensitive: options.Sensitive = None,
    count: options.Count = None,
    bin: options.Bin = None,
    levels: options.Levels = None,
    missing: options.Missing = "category",
    engine: options.Engine = None,
    table: options.Table = None,
    memory_limit: options.MemoryLimit = None,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """What the table looks like to an attacker before any noise: cells, homogeneous ones, people exposed."""
    summary = _tabulate(source, qid, sensitive, count, bin, levels, missing, engine, table, memory_limit).summary()
    _print(summary.to_dict() if as_json else str(summary))


def assess_command(
    source: options.Source,
    qid: options.Qid = None,
    sensitive: options.Sensitive = None,
    mechanism: options.MechanismName = "laplace",
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    neighbours: options.Neighbours = "add-remove",
    threshold: options.Threshold = "0.5",
    count: options.Count = None,
    bin: options.Bin = None,
    levels: options.Levels = None,
    missing: options.Missing = "category",
    measure: options.MeasureNames = None,
    form: options.FormNames = None,
    weights: options.WeightNames = None,
    alpha: options.AlphaValues = None,
    sizes: options.SizesName = "poisson",
    sizes_fit: options.SizesFit = "mle",
    zero_truncation: options.ZeroTruncation = True,
    attack: options.Attack = "homogeneity",
    max_risk: options.MaxRisk = None,
    engine: options.Engine = None,
    table: options.Table = None,
    memory_limit: options.MemoryLimit = None,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """How much would the homogeneity attack reveal, if the table were published at this epsilon?"""
    from cellrisk.assessment import assess

    limit = None if max_risk is None else _limit(max_risk)
    setting = _mechanism(mechanism, epsilon, delta, neighbours, threshold)
    frequencies = _tabulate(source, qid, sensitive, count, bin, levels, missing, engine, table, memory_limit)
    assessment = assess(
        frequencies,
        setting,
        measures=options.split_names(measure) or None,
        forms=options.split_names(form) or None,
        weights=options.split_names(weights) or None,
        alpha=options.parse_alpha(alpha),
        sizes=sizes,
        sizes_fit=sizes_fit,
        zero_truncation=zero_truncation,
        attack=attack,
    )
    _print(assessment.to_dict() if as_json else str(assessment))
    if limit is not None:
        _gate(assessment, limit, narrowed=bool(measure or form or weights))


def demo_command(
    epsilon: options.Epsilon = "1",
    as_json: options.Json = False,
) -> None:
    """Assess UCI Adult, which comes with the package, as the paper prepared it."""
    from cellrisk import datasets
    from cellrisk.assessment import assess
    from cellrisk.tables import tabulate

    setting = _mechanism("laplace", epsilon, None, "add-remove", "0.5")
    qids = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
    bins = {"age": 5, "hours-per-week": 10}
    table = tabulate(datasets.adult_as_published(), qids, "income", bins=bins)
    assessment = assess(table, setting)
    if as_json:
        _print(assessment.to_dict())
        return
    _print(
        f"{assessment}\n\n"
        "The data: UCI Adult (CC BY 4.0), people born in the United States, no missing values; six\n"
        "quasi-identifiers, age in steps of 5 years and hours per week in steps of 10.\n"
        "On the whole file, or with your own in its place:\n\n"
        f"  cellrisk assess {datasets.adult_path()} \\\n"
        f"    --qid {','.join(qids)} \\\n"
        f"    --bin age=5 --bin hours-per-week=10 --sensitive income --epsilon {setting.epsilon:g}"
    )


def _tabulate(
    source: str,
    qid: list[str] | None,
    sensitive: list[str] | None,
    count: str | None,
    bins: list[str] | None,
    levels: list[str] | None,
    missing: str,
    engine: str | None,
    table: str | None,
    memory_limit: str | None,
) -> FrequencyTable:
    from cellrisk.tables import tabulate

    if not qid:
        raise InvalidInput("no quasi-identifiers were given", fix="name them: --qid age --qid sex, or --qid age,sex")
    if not sensitive:
        raise InvalidInput("no sensitive attribute was given", fix="name it: --sensitive income")
    return tabulate(
        source,
        options.split_names(qid),
        options.split_names(sensitive),
        bins=options.parse_bins(bins),
        levels=options.parse_levels(levels),
        count=count,
        missing=missing,
        table=table,
        engine=engine,
        memory_limit=memory_limit,
        progress=progress_bar(),
    )


def _mechanism(name: str, epsilon: str | None, delta: str | None, neighbours: str, threshold: str) -> Mechanism:
    from cellrisk.mechanisms import mechanism

    if epsilon is None:
        raise InvalidInput("no epsilon was given", fix="choose one: --epsilon 1")
    return mechanism(
        name,
        epsilon=options.parse_number("--epsilon", epsilon, "a number above 0"),
        delta=None if delta is None else options.parse_number("--delta", delta, "a number between 0 and 1"),
        neighbours=neighbours,
        threshold=options.parse_number("--threshold", threshold, "0.5, 1.5, ..."),
    )


def _limit(text: str) -> float:
    limit = options.parse_number("--max-risk", text, "from 0 to 1")
    if not 0 <= limit <= 1:
        raise InvalidInput("--max-risk must be a share of people", got=text, allowed="from 0 to 1")
    return limit


def _gate(assessment: Assessment, limit: float, narrowed: bool) -> None:
    """Exit 3 where the risk is above the limit: the chosen rows, or the expected share of people exposed."""
    if narrowed:
        worst, what = max((row.risk, f"{row.measure} {row.form}") for row in assessment.risks)
    else:
        worst, what = max((each.share, f"expected share for {each.sensitive}") for each in assessment.exposures)
    if worst > limit:
        print(f"cellrisk: risk {worst:.6g} ({what}) is above the limit {limit:g}", file=sys.stderr)
        raise typer.Exit(ABOVE_LIMIT)


def _print(output: str | dict[str, Any]) -> None:
    typer.echo(output if isinstance(output, str) else json.dumps(output, allow_nan=False, ensure_ascii=False))
