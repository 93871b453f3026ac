"""`assess_together`: several tables about the same people, released together, and what they reveal as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells, count_together
from cellrisk.decide.limits import Limit
from cellrisk.decide.policies import Policies
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.repeat.together.after_consistency import Refinement, find_refinement
from cellrisk.repeat.together.differences import Difference, find_differences
from cellrisk.repeat.together.informed_attacker import Certain, find_certain, why_not
from cellrisk.repeat.together.linkage_attacks import RULES, Figures, Simulator, find_laws, find_spread, link_tables
from cellrisk.repeat.together.sets import (
    Cost,
    SetTable,
    find_cost,
    find_together,
    read_tables,
    same_table_twice,
    try_ceiling,
)
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.certainty import read_certainties
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours, OutsideRule, require_word
from cellrisk.system.formatting import as_given, claim, join_names
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result, find_words

ASKED = "applicant"
KEPT, BROKEN, NOT_JUDGED = "kept", "broken", "cannot be judged"
OF_PEOPLE = {
    "max_caused": "at most {}% of people revealed because of their own records",
    "max_certain": "at most {}% of people inferred correctly and {}% sure",
}
"""Limits on shares of all people of a set, in words; of one table they are on each category."""


@dataclass(frozen=True)
class RuleFigures:
    """What one rule of attack reveals, in people: all tables together, or one table by itself."""

    rule: str
    right: float
    """People whose value it names correctly, on average over releases. Exact."""
    named: float
    """People for whom it names a value; by "any", values that it names."""
    sd: float
    """The standard deviation of the first number over releases."""
    sd_error: float | None
    """The standard error of the deviation, which is simulated; None for one table alone, where it is exact."""
    low: int
    high: int
    """The number lies between them in 95% of releases; from simulated releases."""
    caused: float
    """People among those named correctly who would not be, had their record been left out of all tables. Exact."""
    bound: float
    """What the guarantee alone promises of that."""
    chance: float
    """People it would name correctly if the noise were as large as it can be."""
    raw: int
    """People it would name correctly without noise."""

    @property
    def precision(self) -> float | None:
        """Return how often what it names is right; None where it names nothing."""
        return self.right / self.named if self.named > 0 else None

    @property
    def deviation(self) -> str:
        """The deviation as it is printed."""
        error = self.sd_error
        return f"{self.sd:,.1f}" if error is None else f"{self.sd:,.1f} (+- {error:,.{0 if error >= 10 else 1}f})"

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "precision": self.precision}


@dataclass(frozen=True)
class TableFigures:
    """One table of the set: what it reveals by itself, and what the set reveals without it."""

    table: SetTable
    records: int
    cells: int
    alone: RuleFigures
    without: Figures | None
    """The set without this table, by elimination; None where it is the only one."""
    ceiling: Ceiling | None = None
    """The ceiling of this table alone; None where it cannot be told."""

    def to_dict(self) -> dict[str, Any]:
        own = {name: value for name, value in self.alone.to_dict().items() if name != "rule"}
        rest = None if self.without is None else {"right": self.without.right, "caused": self.without.caused}
        ceiling = None if self.ceiling is None else self.ceiling.to_dict()
        figures = {"records": self.records, "cells": self.cells, **own, "ceiling": ceiling, "set_without_it": rest}
        return {**self.table.to_dict(), **figures}


@dataclass(frozen=True, repr=False)
class TogetherAssessment(Result):
    """What several tables about the same people reveal together. Made by `assess_together`."""

    wording, picture = "together", "draw_together"

    sensitive: str
    labels: int
    records: int
    """People who are in one of the tables at least."""
    dropped: int
    rules: tuple[RuleFigures, ...]
    tables: tuple[TableFigures, ...]
    collections: Mapping[tuple[int, ...], Figures]
    """Elimination by sub-collections of the tables, by their numbers from 1: all of them, up to six tables."""
    ceiling: Ceiling | None
    ceiling_unknown: str | None
    cost: Cost
    differences: tuple[Difference, ...]
    """Pairs of tables of the same columns, of which one leaves some people out."""
    refinement: Refinement | None
    """Least squares over common margins; None where the tables have none, or are not all of the same people."""
    declared: bool
    """Whether the labels of the sensitive attribute were declared."""
    missing: str
    outside: int
    """Records that were left out of a table because a value of theirs is not among the declared labels."""
    relations: tuple[tuple[str, SetTable, SetTable], ...]
    """Pairs of tables, of which the first is a margin of the second, or whose people are nested, or overlap."""
    common: bool
    """Whether tables share columns, so least squares would make them more precise, and that is not assessed."""
    certain: tuple[Certain, ...] = ()
    """People whose value the informed attacker infers, if that was asked for."""
    certain_unknown: str | None = None
    """Why the informed attacker is not computed, though asked for."""

    def rule(self, name: str = "elimination") -> RuleFigures:
        """The figures of one rule.

        Parameters
        ----------
        name
            "elimination" or "any".
        """
        require_word("rule", name, RULES)
        return self.rules[RULES.index(name)]

    @property
    def largest(self) -> tuple[int, ...]:
        """The tables, by their numbers, by which elimination reveals most people because of their own records. A
        very noisy table hinders elimination, and an attacker would leave it aside."""
        return max(self.collections, key=lambda some: (self.collections[some].caused, len(some)))

    @property
    def adds_most(self) -> TableFigures | None:
        """The table without which the set would reveal fewest because of their own records; None for one table."""
        some = [each for each in self.tables if each.without is not None]
        return min(some, key=lambda each: each.without.caused if each.without else 0.0, default=None)

    @property
    def statements(self) -> tuple[str, ...]:
        """Return what the figures assume, and what they leave out."""
        return tuple(find_words("together").statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One number a row: ``tables`` is "all", or the number of a table by itself."""
        names = ("right", "named", "sd", "caused", "bound", "chance", "raw")
        rows = [("all", each) for each in self.rules] + [(str(each.table.number), each.alone) for each in self.tables]
        return [
            {"tables": tables, "rule": each.rule, "figure": name, "people": float(getattr(each, name))}
            for tables, each in rows
            for name in names
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict, for JSON."""
        most = self.adds_most
        return {
            "sensitive": self.sensitive,
            "records": self.records,
            "left_out": self.dropped,
            "labels": self.labels,
            "rules": [each.to_dict() for each in self.rules],
            "tables": [each.to_dict() for each in self.tables],
            "adds_most": None if most is None else most.table.number,
            "largest": {"tables": list(self.largest), "caused": self.collections[self.largest].caused},
            "collections": [
                {"tables": list(some), "right": found.right, "named": found.named, "caused": found.caused}
                for some, found in self.collections.items()
            ],
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            **({} if self.ceiling_unknown is None else {"ceiling_unknown": self.ceiling_unknown}),
            "cost": self.cost.to_dict(),
            "differences": [each.to_dict() for each in self.differences],
            "least_squares": None if self.refinement is None else self.refinement.to_dict(),
            "sentence": self.headline,
            "statements": list(self.statements),
            **({"certainty": [each.to_dict() for each in self.certain]} if self.certain else {}),
            **({} if self.certain_unknown is None else {"certainty_unknown": self.certain_unknown}),
        }


def assess_together(
    source: Any,
    tables: Sequence[Mapping[str, Any]],
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
    person: str | None = None,
    contributions: int | None = None,
    per_group: int | None = None,
    certainty: float | Sequence[float] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> TogetherAssessment:
    """Assess what several tables about the same people reveal, if they are released together.

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
    levels, count, missing, outside, table, engine, memory_limit, person, contributions, per_group, progress
        As for `tabulate`. A set in which people have several records can be released, and is not assessed.
        With ``missing="drop"`` a record is left out of those tables whose columns it has no value for; with
        ``outside="drop"``, of those for whose columns its value is not declared.
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
    unit: Any = {"person": person, "contributions": contributions, "per_group": per_group}
    asked = read_tables(tables, sensitive, bins, mechanism, epsilon, delta, neighbours, threshold, **unit)
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
        **unit,
        progress=progress,
    )
    mechanisms, together = [each.mechanism for each in asked], find_together(asked)
    thresholds = [mechanism.threshold for mechanism in mechanisms]
    linked = link_tables(joint, find_laws(joint, [mechanism.noise for mechanism in mechanisms], thresholds))
    blind = link_tables(joint, find_laws(joint, [each.limit_noise for each in mechanisms], thresholds), ())
    simulator = Simulator(joint, mechanisms, np.flatnonzero(linked.matters))
    read = [simulator.read(shown) for shown in simulator.show(simulator.count_draws(), seed)]
    drawn = np.concatenate(read)[:, :, 0].T
    means = [*(linked.rules[rule] for rule in RULES), *(linked.collections[place,] for place in range(len(asked)))]
    spreads = [find_spread(*each, joint.n_records) for each in zip(drawn, (mean.right for mean in means), strict=True)]
    cost = find_cost(mechanisms, together)
    ceiling, unknown = try_ceiling(mechanisms, together, joint.n_levels)
    rows = []
    for place, (member, cells) in enumerate(zip(asked, joint.tables, strict=True)):
        figures = _make_figures(
            "alone",
            linked.collections[place,],
            {**spreads[len(RULES) + place], "sd": linked.deviations[place], "sd_error": None},
            blind.collections[place,].right,
            int(cells.counts[(cells.counts > 0).sum(axis=1) == 1].sum()),
            cells.n_records,
            find_cost([member.mechanism], [(0,)]),
        )
        without = linked.collections.get(tuple(other for other in range(len(asked)) if other != place))
        own_ceiling, _ = try_ceiling([member.mechanism], [(0,)], joint.n_levels)
        rows.append(TableFigures(member, cells.n_records, cells.n_cells, figures, without, own_ceiling))
    refinement = find_refinement(joint, asked, means, seed)
    certain_unknown = why_not(joint, asked) if certainties else None
    columns = [column for cells in joint.tables for column in cells.columns]
    return TogetherAssessment(
        joint.sensitive,
        joint.n_levels,
        joint.n_records,
        joint.dropped,
        tuple(
            _make_figures(
                rule, linked.rules[rule], spread, blind.rules[rule].right, linked.raw[rule], joint.n_records, cost
            )
            for rule, spread in zip(RULES, spreads, strict=False)
        ),
        tuple(rows),
        {tuple(place + 1 for place in tables): figures for tables, figures in linked.collections.items()},
        ceiling,
        unknown,
        cost,
        find_differences(joint, asked),
        refinement,
        joint.declared,
        missing,
        joint.outside,
        tuple(_relate(joint, asked)),
        refinement is None and len(set(columns)) < len(columns),
        find_certain(joint, asked, certainties, seed) if certainties and certain_unknown is None else (),
        certain_unknown,
    )


def _make_figures(
    rule: str, figures: Figures, spread: Mapping[str, Any], chance: float, raw: int, records: int, cost: Cost
) -> RuleFigures:
    kept = -math.expm1(-cost.epsilon) * figures.right + math.exp(-cost.epsilon) * cost.delta * records
    return RuleFigures(rule, **vars(figures), **spread, bound=min(kept, figures.right), chance=chance, raw=raw)


def _relate(joint: JointCells, asked: Sequence[SetTable]) -> Iterator[tuple[str, SetTable, SetTable]]:
    """Yield how two tables lie to each other if an attacker could do more than the rules; refuse a table twice."""
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


@dataclass(frozen=True)
class Judged:
    """A limit in words, who set it, what the set has of it, and whether the set keeps it."""

    limit: str
    by: str
    figure: str
    state: str
    policy: str = ""
    """The policy that sets it, with the digest of its file; empty if it was asked for."""

    @property
    def breach(self) -> str:
        """Return what a command says of a limit that is not kept."""
        return f"asked for was {self.limit}; {self.figure}{f'; by {self.policy}' if self.policy else ''}"


def judge(found: TogetherAssessment, limits: Sequence[Limit], policies: Policies) -> list[Judged]:
    """Judge a set by limits that are asked for and by those of policies.

    Of people revealed because of their own records, the collection of tables counts that reveals most; of epsilon,
    what the set costs; of the ceiling, that of the set; of certainty, the tempering that names most. The risk is the
    share of people whom elimination names correctly, all tables together.
    """
    judged = [_judge(found, limit) for limit in limits]
    for policy in policies.obeyed:
        name = "a policy given in Python" if policy.file is None else policy.file.name
        by, of_policy = ", ".join(filter(None, (name, policy.origin))), list[Judged]()
        for limit in policy.limits:
            risk = limit.risk
            if risk is None or (risk.measure, risk.attack) == ("local", "homogeneity"):
                of_policy.append(replace(_judge(found, limit), by=by))
            else:
                why = f"it {NOT_JUDGED}: a set of tables has no {policy.measure} risk"
                of_policy.append(Judged(limit.describe(), by, why, NOT_JUDGED))
        most = policy.largest_delta(found.records)
        if most is not None:
            state = BROKEN if found.cost.delta > most else KEPT
            of_policy.append(Judged(f"a delta of at most {most:g}", by, f"delta is {claim(found.cost.delta)}", state))
        judged += [replace(each, policy=policy.describe()) for each in of_policy]
    return judged


def _judge(found: TogetherAssessment, limit: Limit) -> Judged:
    figure = _find_figure(found, limit)
    asked, has = limit.describe(), "" if figure is None else limit.say(figure)
    if limit.name in OF_PEOPLE:
        asked = OF_PEOPLE[limit.name].format(as_given(limit.maximum, 2), as_given(limit.certainty or 0.0, 2))
        has = f"{100 * (figure or 0.0):.4g}% of people are"
    elif limit.risk is not None:
        asked += " (people whom elimination names correctly)"
    if figure is None:
        unknown = {"max_ceiling": found.ceiling_unknown, "max_certain": found.certain_unknown}.get(limit.name)
        return Judged(asked, ASKED, f"of this set it is not known{f': {unknown}' if unknown else ''}", NOT_JUDGED)
    tables = ""
    if limit.name == "max_caused" and len(found.largest) < len(found.tables):
        tables = f" (by tables {join_names([f'{number}' for number in found.largest])} alone)"
    return Judged(asked, ASKED, f"{has}{tables}", BROKEN if figure > limit.maximum else KEPT)


def _find_figure(found: TogetherAssessment, limit: Limit) -> float | None:
    """Return the figure of a set that a limit is about; None if it is not known."""
    name, lead = limit.name, found.rule()
    if name == "max_caused":
        return found.collections[found.largest].caused / found.records
    if name == "max_ceiling":
        return None if found.ceiling is None else found.ceiling.even_two
    if name == "max_epsilon":
        return found.cost.epsilon
    if name == "max_certain":
        named = [each.right for each in found.certain if each.certainty == limit.certainty]
        return max(named) / found.records if named else None
    if name in ("max_person", "max_posterior", "max_error"):
        return None
    if name == "max_people":
        return lead.right
    return (lead.right - (lead.chance if name == "margin" else 0.0)) / found.records


def list_certainties(policies: Policies, limits: Sequence[Limit]) -> tuple[float, ...]:
    """Return the certainties that must be assessed to judge."""
    found = {limit.certainty for limit in (*limits, *policies.limits) if limit.name == "max_certain"}
    return tuple(sorted(certainty for certainty in found if certainty is not None))
