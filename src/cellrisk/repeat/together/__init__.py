"""`assess_together`: several tables about the same people, released in one go, and what they give away as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells, TableCells, count_together
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.repeat.together.after_consistency import Refinement, find_refinement
from cellrisk.repeat.together.costs import Cost, find_cost, try_ceiling
from cellrisk.repeat.together.differences import find_differences
from cellrisk.repeat.together.informed_attacker import find_certain, read_tempering, why_not
from cellrisk.repeat.together.linkage_attacks import (
    RULES,
    Figures,
    TableLaw,
    eliminate,
    find_laws,
    link_tables,
    product_of_others,
)
from cellrisk.repeat.together.sets import SetTable, find_together, read_tables, same_table_twice
from cellrisk.repeat.together.simulator import Spread, find_spreads, name_alone, simulate_rules
from cellrisk.repeat.together.together_result import (
    Checked,
    Coarser,
    RuleFigures,
    TableFigures,
    TogetherAssessment,
    TogetherCheck,
)
from cellrisk.risk.certainty import read_certainties
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.progress import Progress
from cellrisk.system.text import make_sentence, number_of
from cellrisk.system.words import MechanismName, Neighbours, OutsideRule

__all__ = ["RuleFigures", "SetTable", "TableFigures", "TogetherAssessment", "assess_together"]


def assess_together(
    source: Any,
    tables: Sequence[Mapping[str, Any] | SetTable],
    sensitive: str,
    *,
    bins: Mapping[str, Any] | Sequence[str] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    count: str | bool | None = None,
    missing: str = "category",
    outside: OutsideRule = "error",
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    table: str | None = None,
    engine: str | None = None,
    memory_limit: str | int | None = None,
    certainty: float | Sequence[float] | None = None,
    tempering: float | str | None = None,
    check: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> TogetherAssessment:
    """What would several tables about the same people give away, if they were released together?

    An attacker who knows in which cell of each table a person is keeps the one value that vanishes in none of them
    (elimination, the headline), or takes a value that some table shows alone (any). For each rule: people named rightly
    and at all, those given away only because of their own record, chance, and what the tables would give away without
    noise. All means are exact for independent noise in every count. Standard deviations, intervals, least squares and
    the informed attacker come from simulated releases, with their errors.

    Parameters
    ----------
    source
        Whatever `tabulate` takes. It is read once.
    tables
        A mapping for each table: "qid" (its quasi-identifiers), and, where they are not those of all tables, "bin",
        "mechanism", "epsilon", "delta", "threshold"; "where" for a part of the people, such as ``{"sex": "f", "age":
        {"from": 18}}``; "name" to call it by.
    sensitive
        The sensitive attribute: one, and the same in all tables.
    bins, mechanism, epsilon, delta, neighbours, threshold
        What holds for every table that does not say otherwise. ``neighbours`` is the same for all.
    levels, count, missing, outside, table, engine, memory_limit, progress
        As for `tabulate`. With ``missing="drop"`` a record is left out of those tables whose columns it has no value
        for; with ``outside="drop"``, of those for whose columns its value is not declared.
    certainty
        How sure the informed attacker must be, above 0.5 and below 1: one number or several. Left out by default.
    tempering
        The weight that they give to each further table: 1 takes the tables for independent given a person's value,
        "fit" is fitted to the true values. By default both are shown.
    check
        Releases of the whole set that are simulated to check the exact means; none by default.
    seed
        Of what is simulated.

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": list("ffmm"), "town": list("abab"), "job": list("xyyy")})
    >>> found = assess_together(people, [{"qid": "sex"}, {"qid": "town"}], "job", epsilon=1.0)
    >>> lead = found.rule("elimination")
    >>> round(lead.right, 4), round(lead.caused, 4), lead.raw
    (2.0604, 1.2151, 3)
    """
    seed = require_whole_number("seed", seed, least=0)
    check = require_whole_number("check", check, least=0, most=MOST_RELEASES)
    certainties = () if certainty is None else read_certainties(certainty)
    temperings = read_tempering(tempering)
    asked = read_tables(
        tables,
        sensitive,
        bins=bins,
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        threshold=threshold,
    )
    joint = count_together(
        source,
        [each.asked for each in asked],
        sensitive,
        levels=levels,
        count=count,
        missing=missing,
        outside=outside,
        table=table,
        engine=engine,
        memory_limit=memory_limit,
        progress=progress,
    )
    found = assess_joint(joint, asked, missing, seed)
    if certainties:
        unknown = why_not(joint, asked)
        certain = () if unknown else find_certain(joint, asked, certainties, temperings, seed)
        found = replace(found, certain=certain, certain_unknown=unknown)
    return replace(found, check=_check(joint, found, check, seed)) if check else found


def assess_joint(joint: JointCells, asked: Sequence[SetTable], missing: str, seed: int) -> TogetherAssessment:
    """The same for tables that are counted."""
    _refuse_same_people(joint, asked)
    mechanisms = [table.mechanism for table in asked]
    thresholds = [mechanism.threshold for mechanism in mechanisms]
    laws = find_laws(joint, [mechanism.noise for mechanism in mechanisms], thresholds)
    together = find_together(asked)
    cost = find_cost(mechanisms, together)
    ceiling, unknown = try_ceiling(mechanisms, together, joint.n_levels)
    linked = link_tables(joint, laws)
    collections = linked.collections
    every = tuple(range(len(asked)))
    limits = find_laws(joint, [mechanism.limit_noise for mechanism in mechanisms], thresholds)
    blind = link_tables(joint, limits, list({*((table,) for table in every), every}))
    means = {**linked.rules, **{name_alone(table): collections[table,] for table in every}}
    spreads = find_spreads(joint, mechanisms, means, seed)
    rules = tuple(
        _make_figures(
            rule, means[rule], spreads[rule], blind.rules[rule].right, linked.raw[rule], joint.n_records, cost
        )
        for rule in RULES
    )
    refinement = find_refinement(joint, asked, means, seed)
    rows = []
    for place, (table, cells, law) in enumerate(zip(asked, joint.tables, laws, strict=True)):
        rest = tuple(other for other in every if other != place)
        spread, chance = spreads[name_alone(place)], blind.collections[place,].right
        rows.append(
            TableFigures(
                table,
                cells.n_records,
                cells.n_cells,
                _assess_alone(table, cells, law, collections[place,], spread, chance),
                collections.get(rest),
                try_ceiling([table.mechanism], [(0,)], joint.n_levels)[0],
            )
        )
    found = TogetherAssessment(
        joint.sensitive,
        joint.n_levels,
        joint.n_records,
        joint.dropped,
        rules,
        tuple(rows),
        {tuple(place + 1 for place in tables): figures for tables, figures in collections.items()},
        ceiling,
        unknown,
        cost,
        find_differences(joint, asked),
        refinement,
        tuple(_state(joint, asked, missing, refinement)),
    )
    most = found.adds_most
    return found if most is None else replace(found, coarser=_make_coarser(joint, laws, most.table))


def _make_coarser(joint: JointCells, laws: Sequence[TableLaw], table: SetTable) -> tuple[Coarser, ...]:
    """What the set would give away if one table were published without one of its columns, each in turn."""
    place, mechanism = table.number - 1, table.mechanism
    cells = joint.tables[place]
    found = []
    for column, name in enumerate(table.quasi_identifiers if len(cells.columns) > 1 else ()):
        codes, merged = np.unique(np.delete(cells.codes, column, axis=1), axis=0, return_inverse=True)
        counts = np.zeros((len(codes), cells.counts.shape[1]), np.int64)
        np.add.at(counts, merged.ravel(), cells.counts)
        # People keep their cells, which hold the people of all cells that are one without the column.
        wider = TableLaw.of(replace(cells, counts=counts[merged.ravel()]), mechanism.noise, mechanism.threshold)
        figures = eliminate(joint, [*laws[:place], wider, *laws[place + 1 :]])
        found.append(Coarser(table, name, figures.right, figures.caused))
    return tuple(sorted(found, key=lambda each: each.caused))


def _check(joint: JointCells, found: TogetherAssessment, releases: int, seed: int) -> TogetherCheck:
    """Simulated releases beside the exact means; their noise differs from that of the deviations."""
    drawn = simulate_rules(joint, [row.table.mechanism for row in found.tables], releases, seed + 1, named=True)
    rows = []
    for rule in found.rules:
        for place, (figure, assessed) in enumerate((("right", rule.right), ("named", rule.named))):
            numbers = drawn[rule.rule][:, place]
            error = float(np.std(numbers)) / math.sqrt(releases)
            rows.append(Checked(rule.rule, figure, assessed, float(numbers.mean()), error))
    return TogetherCheck(releases, tuple(rows))


def _make_figures(
    rule: str, figures: Figures, spread: Spread, chance: float, raw: int, records: int, cost: Cost
) -> RuleFigures:
    kept = -math.expm1(-cost.epsilon) * figures.right + math.exp(-cost.epsilon) * cost.delta * records
    return RuleFigures(
        rule,
        figures.right,
        figures.named,
        spread.deviation,
        spread.error,
        spread.low,
        spread.high,
        figures.caused,
        min(kept, figures.right),
        chance,
        raw,
    )


def _assess_alone(
    table: SetTable, cells: TableCells, law: TableLaw, figures: Figures, spread: Spread, chance: float
) -> RuleFigures:
    """One table alone: its cells are independent, so variances add up and the deviation is exact."""
    places = law.places[:-1].T
    alone = law.p_positive.take(places) * product_of_others(law.p_zero.take(places))
    counts = cells.counts.T.astype(np.float64)
    variance = (counts**2 * alone).sum(axis=0) - (counts * alone).sum(axis=0) ** 2
    exact = replace(spread, deviation=math.sqrt(max(float(variance.sum()), 0.0)), error=None)
    raw = int(cells.counts[(cells.counts > 0).sum(axis=1) == 1].sum())
    cost = find_cost([table.mechanism], [(0,)])
    return _make_figures("alone", figures, exact, chance, raw, cells.n_records, cost)


def _refuse_same_people(joint: JointCells, asked: Sequence[SetTable]) -> None:
    """Refuse two tables of the same columns and, as it turns out, of the same people."""
    for first, second in combinations(range(len(asked)), 2):
        same_columns = set(joint.tables[first].columns) == set(joint.tables[second].columns)
        if same_columns and ((joint.cell[first] >= 0) == (joint.cell[second] >= 0)).all():
            raise same_table_twice(asked[first], asked[second])


def _state(joint: JointCells, asked: Sequence[SetTable], missing: str, refinement: Refinement | None) -> Iterator[str]:
    """What the figures assume, and what they leave out."""
    yield (
        "Noise is independent in every count of every table. The attacker knows the cells of a person in all tables, "
        "and uses nothing else."
    )
    yield "Means are exact. The deviations of the rules (with their standard errors) and the intervals are simulated."
    if not joint.declared:
        yield (
            f"The levels of {joint.sensitive} are the {joint.n_levels:,} observed ones, not declared: a level that "
            "exists but does not occur is not counted."
        )
    if missing == "drop":
        yield (
            "Records were left out of the tables for whose columns a value is missing; in no table at all are "
            f"{number_of(joint.dropped, 'record')}."
        )
    elif joint.dropped:
        yield f"{number_of(joint.dropped, 'record')} are in no table."
    if joint.outside:
        yield (
            f"{number_of(joint.outside, 'record')} with a value that is not among the declared labels of its column "
            f"{'was' if joint.outside == 1 else 'were'} left out of the tables that have the column."
        )
    yield from _state_structure(joint, asked, refinement is not None)


def _state_structure(joint: JointCells, asked: Sequence[SetTable], refined: bool) -> Iterator[str]:
    """How the tables lie to each other where an attacker could do more than the rules."""
    for first, second in combinations(range(len(asked)), 2):
        columns, others = set(joint.tables[first].columns), set(joint.tables[second].columns)
        here, there = joint.cell[first] >= 0, joint.cell[second] >= 0
        names = f"{asked[first].title} and {asked[second].title}"
        if (here == there).all():
            if columns < others or others < columns:
                inner, outer = (first, second) if columns < others else (second, first)
                yield f"{make_sentence(asked[inner].title, '')} is a margin of {asked[outer].title}."
        elif (here & there).any():
            if not (here & ~there).any() or not (there & ~here).any():
                if columns != others:
                    yield (
                        f"The people of {names} are nested: what their difference shows on common columns is left out."
                    )
            else:
                yield f"The people of {names} overlap: what their differences show is left out."
    shared = {column for each in joint.tables for column in each.columns}
    if not refined and any(sum(column in each.columns for each in joint.tables) > 1 for column in shared):
        yield (
            "Tables that share columns have margins in common, and least squares would make them more precise; these "
            "figures leave that out."
        )
