"""`assess_together`: several tables about the same people, released together, and what they reveal as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells, count_together
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.repeat.together.after_consistency import find_refinement
from cellrisk.repeat.together.costs import Cost, find_cost, try_ceiling
from cellrisk.repeat.together.differences import find_differences
from cellrisk.repeat.together.informed_attacker import find_certain, why_not
from cellrisk.repeat.together.linkage_attacks import RULES, Figures, find_laws, link_tables
from cellrisk.repeat.together.sets import SetTable, find_together, read_tables, same_table_twice
from cellrisk.repeat.together.simulator import Spread, name_alone, simulate_rules
from cellrisk.repeat.together.together_result import RuleFigures, Structure, TableFigures, TogetherAssessment
from cellrisk.risk.certainty import read_certainties
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours, OutsideRule
from cellrisk.system.progress import Progress

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
    seed: int = 0,
    progress: Progress | None = None,
) -> TogetherAssessment:
    """What would several tables about the same people reveal, if they were released together?

    An attacker who knows in which cell of each table a person is keeps the one value that is zero in none of them
    (elimination, the headline), or takes a value that some table shows alone (any). For each rule: people named
    correctly and at all, those revealed only because of their own record, chance, and what the tables would reveal
    without noise. All means are exact for independent noise in every count. Standard deviations, intervals, least
    squares and the informed attacker come from simulated releases, with their errors.

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
    certainties = () if certainty is None else read_certainties(certainty)
    asked = read_tables(tables, sensitive, bins, mechanism, epsilon, delta, neighbours, threshold)
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
    if not certainties:
        return found
    unknown = why_not(joint, asked)
    certain = () if unknown else find_certain(joint, asked, certainties, seed)
    return replace(found, certain=certain, certain_unknown=unknown)


def assess_joint(joint: JointCells, asked: Sequence[SetTable], missing: str, seed: int) -> TogetherAssessment:
    """The same for tables that are counted."""
    relations = tuple(_relate(joint, asked))
    mechanisms, together = [table.mechanism for table in asked], find_together(asked)
    thresholds = [mechanism.threshold for mechanism in mechanisms]
    laws = find_laws(joint, [mechanism.noise for mechanism in mechanisms], thresholds)
    linked = link_tables(joint, laws)
    blind = link_tables(joint, find_laws(joint, [each.limit_noise for each in mechanisms], thresholds), ())
    drawn = simulate_rules(joint, mechanisms, seed=seed, rows=np.flatnonzero(linked.matters))
    means = {**linked.rules, **{name_alone(table): linked.collections[table,] for table in range(len(asked))}}
    spreads = {way: Spread.of(drawn[way], figures.right, joint.n_records) for way, figures in means.items()}
    cost = find_cost(mechanisms, together)
    ceiling, unknown = try_ceiling(mechanisms, together, joint.n_levels)
    rows = []
    for place, (table, cells) in enumerate(zip(asked, joint.tables, strict=True)):
        way, alone = name_alone(place), [(0,)]
        figures = _make_figures(
            "alone",
            means[way],
            replace(spreads[way], sd=linked.deviations[place], sd_error=None),
            blind.collections[place,].right,
            int(cells.counts[(cells.counts > 0).sum(axis=1) == 1].sum()),
            cells.n_records,
            find_cost([table.mechanism], alone),
        )
        without = linked.collections.get(tuple(other for other in range(len(asked)) if other != place))
        own_ceiling, _ = try_ceiling([table.mechanism], alone, joint.n_levels)
        rows.append(TableFigures(table, cells.n_records, cells.n_cells, figures, without, own_ceiling))
    refinement = find_refinement(joint, asked, means, seed)
    columns = [column for cells in joint.tables for column in cells.columns]
    shared = len(set(columns)) < len(columns)
    return TogetherAssessment(
        joint.sensitive,
        joint.n_levels,
        joint.n_records,
        joint.dropped,
        tuple(
            _make_figures(
                rule, means[rule], spreads[rule], blind.rules[rule].right, linked.raw[rule], joint.n_records, cost
            )
            for rule in RULES
        ),
        tuple(rows),
        {tuple(place + 1 for place in tables): figures for tables, figures in linked.collections.items()},
        ceiling,
        unknown,
        cost,
        find_differences(joint, asked),
        refinement,
        Structure(joint.declared, missing, joint.outside, relations, refinement is None and shared),
    )


def _make_figures(
    rule: str, figures: Figures, spread: Spread, chance: float, raw: int, records: int, cost: Cost
) -> RuleFigures:
    kept = -math.expm1(-cost.epsilon) * figures.right + math.exp(-cost.epsilon) * cost.delta * records
    bound = min(kept, figures.right)
    return RuleFigures(rule, **vars(figures), **vars(spread), bound=bound, chance=chance, raw=raw)


def _relate(joint: JointCells, asked: Sequence[SetTable]) -> Iterator[tuple[str, SetTable, SetTable]]:
    """How pairs of tables lie to each other where an attacker could do more than the rules; refuses a table twice."""
    for first, second in combinations(range(len(asked)), 2):
        columns, others = set(joint.tables[first].columns), set(joint.tables[second].columns)
        here, there = joint.cell[first] >= 0, joint.cell[second] >= 0
        if (here == there).all():
            if columns == others:
                raise same_table_twice(asked[first], asked[second])
            if columns < others or others < columns:
                inner, outer = (first, second) if columns < others else (second, first)
                yield "margin", asked[inner], asked[outer]
        elif (here & there).any():
            if (here & ~there).any() and (there & ~here).any():
                yield "overlap", asked[first], asked[second]
            elif columns != others:
                yield "nested", asked[first], asked[second]
