"""`split_budget`: how a total loss is shared among the tables of a set, for error and for what they reveal.

The error is the bound on the total variation distance of the tables, U = sum_t w_t C_t K E|e_t| / (2 n_t), with C_t
cells, K labels and the weights w_t of their use; it is convex in the shares. What is revealed because of people's own
records is smooth and not convex, and falls towards corners where one table has everything and the others are noise: so
it is minimised among shares whose error is within a part of the least error, by a scan and a local search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from cellrisk.counts.joint import JointCells, count_together
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import USUAL_MECHANISM, DiscreteGaussian, Mechanism
from cellrisk.repeat.accounting.composition import find_epsilon
from cellrisk.repeat.together.after_consistency import count_levels
from cellrisk.repeat.together.linkage_attacks import TableLaw, eliminate, find_laws, link_tables
from cellrisk.repeat.together.sets import SetTable, find_together, read_tables
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list, require_within
from cellrisk.system.choices import MechanismName, Neighbours, OutsideRule
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result

__all__ = ["Split", "split_budget"]

SCANNED = {1: 1, 2: 24, 3: 12, 4: 8}
"""Steps of the first look at all shares, along each side."""
LEAST_SHARE = 1e-3
"""No table gets less than this part of the total."""

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Share:
    """One way to share the total."""

    name: str
    parts: tuple[float, ...]
    """What each table gets of the total."""
    epsilons: tuple[float, ...]
    """The epsilon of each table: its part, or, of a rho, the epsilon at the table's own delta."""
    mean_errors: tuple[float, ...]
    """E|e| of the counts of each table."""
    error: float
    """The bound on the total variation distance of the tables, weighted by their use."""
    right: float
    """People whom elimination names correctly."""
    caused: float
    """Those of them whom it names only because of their own records."""
    largest: float
    """The same by the collection of some of the tables that reveals most."""


@dataclass(frozen=True, repr=False)
class Split(Result):
    """Ways to share a total loss among the tables of a set. Made by `split_budget`."""

    wording = "split"

    sensitive: str
    records: int
    tables: tuple[SetTable, ...]
    unit: str
    """Of the total: "epsilon" or "rho"."""
    total: float
    use: tuple[float, ...]
    """Weights of the tables' errors; they add up to 1."""
    cells: tuple[int, ...]
    """Combinations of the values of each table's columns that occur somewhere: those that are published."""
    slack: float
    even: Share
    least_error: Share
    least_caused: Share

    @property
    def ways(self) -> tuple[Share, Share, Share]:
        return self.even, self.least_error, self.least_caused

    def _numbers(self) -> list[dict[str, Any]]:
        return [
            {"way": way.name, "table": table.number, "figure": name, "value": value}
            for way in self.ways
            for table, part, epsilon, size in zip(self.tables, way.parts, way.epsilons, way.mean_errors, strict=True)
            for name, value in (("part", part), ("epsilon", epsilon), ("mean_error", size))
        ] + [
            {"way": way.name, "table": None, "figure": name, "value": float(getattr(way, name))}
            for way in self.ways
            for name in ("error", "right", "caused", "largest")
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict, for JSON."""
        return {
            "sensitive": self.sensitive,
            "records": self.records,
            "total": {self.unit: self.total},
            "slack": self.slack,
            "tables": [
                {**table.to_dict(), "mechanism": table.mechanism.name, "use": use, "cells": cells}
                for table, use, cells in zip(self.tables, self.use, self.cells, strict=True)
            ],
            "splits": [
                {**vars(way), **{name: list(getattr(way, name)) for name in ("parts", "epsilons", "mean_errors")}}
                for way in self.ways
            ],
            "sentence": self.headline,
        }


def split_budget(
    source: Any,
    tables: Sequence[Mapping[str, Any] | SetTable],
    sensitive: str,
    *,
    total_epsilon: float | None = None,
    total_rho: float | None = None,
    use: Sequence[float] | None = None,
    slack: float = 0.25,
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
    progress: Progress | None = None,
) -> Split:
    """How should a total loss be shared among the tables of a set?

    Three answers side by side, with their errors and what they reveal by elimination: even shares, those of the least
    error, and those found to reveal fewest people because of their own records while the error is at most ``1 + slack``
    times the least, or that of even shares if it is larger. The error is convex, so the second is the least there is;
    the third is the best of a scan (up to four tables) and a local search.

    Parameters
    ----------
    source, tables, sensitive
        As for `assess_together`. Their epsilons add up to the total if none is given, and are otherwise not used.
    total_epsilon
        What the tables may spend together, their epsilons added up. By default the sum of their own.
    total_rho
        The same in zero-concentrated privacy, for tables that are all discrete-gaussian.
    use
        How much each table is used: weights of their errors. By default all alike.
    slack
        How far above the least error the shares may lie that reveal fewest.
    bins, mechanism, epsilon, delta, neighbours, threshold
        As for `assess_together`.
    levels, count, missing, outside, table, engine, memory_limit, progress
        As for `assess_together`.

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": list("ffmm"), "town": list("abab"), "job": list("xyyy")})
    >>> found = split_budget(people, [{"qid": "sex"}, {"qid": ["sex", "town"]}], "job", total_epsilon=2.0)
    >>> [round(part, 2) for part in found.least_error.parts]  # twice as many cells, and more of the total
    [0.82, 1.18]
    """
    require_within("slack", slack, least=0, most=10)
    if total_epsilon is not None and total_rho is not None:
        raise InvalidInput("a total is an epsilon or a rho", got="both", fix="leave one out")
    total, unit = (total_epsilon, "epsilon") if total_rho is None else (total_rho, "rho")
    listed = read_list("tables", tables, "tables")
    if total is not None:
        require_within(f"total_{unit}", total, above=0, most=1e6)
        epsilon = epsilon if epsilon is not None or isinstance(mechanism, Mechanism) else 0.5
        listed = [_with_epsilon(given, epsilon) for given in listed]  # shares take the place of their own epsilons
    asked = read_tables(listed, sensitive, bins, mechanism, epsilon, delta, neighbours, threshold)
    if len(asked) < 2:
        raise InvalidInput("there is nothing to share among one table", fix="add a [[table]] to the set")
    if len(find_together(asked)) > 1:
        raise InvalidInput(
            "the people of some tables exclude each other, so no person spends all of them",
            fix="split for the tables of one part of the people at a time",
        )
    mechanisms = [set_table.mechanism for set_table in asked]
    whole = math.fsum(made.epsilon for made in mechanisms) if total is None else float(total)
    for made in mechanisms:
        _check_total(made, unit, whole)
    weights = _read_use(use, len(asked))
    joint = count_together(
        source,
        [set_table.asked for set_table in asked],
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
    sizes = tuple(math.prod(count_levels(joint, column) for column in cells.columns) for cells in joint.tables)
    prices = tuple(
        weight * size * joint.n_levels / (2.0 * cells.n_records)
        for weight, size, cells in zip(weights, sizes, joint.tables, strict=True)
    )
    problem = SplitProblem(joint, mechanisms, unit, whole, prices)
    even = (whole / len(asked),) * len(asked)
    best = least_error(problem)
    most = max((1.0 + slack) * problem.error(best), problem.error(even))
    fewest = least_caused(problem, [even, best], most)
    ways = [problem.assess(*way) for way in (("even", even), ("least error", best), ("least caused", fewest))]
    return Split(joint.sensitive, joint.n_records, asked, unit, whole, weights, sizes, slack, *ways)


def _with_epsilon(given: Any, epsilon: float | None) -> Any:
    """A table as it is given, with another epsilon."""
    if epsilon is None or not isinstance(given, Mapping) or isinstance(given.get("mechanism"), Mechanism):
        return given
    return {**given, "epsilon": epsilon}


def _check_total(mechanism: Mechanism, unit: str, total: float) -> None:
    """Refuse a total that a mechanism cannot have a share of."""
    if unit == "epsilon":
        mechanism.with_epsilon(total)
    elif not isinstance(mechanism, DiscreteGaussian):
        raise InvalidInput(
            "a rho is shared among tables of discrete-gaussian noise",
            got=mechanism.name,
            fix="share an epsilon, or use the mechanism discrete-gaussian",
        )


def _read_use(use: Sequence[float] | None, tables: int) -> Numbers:
    """The weights of use, adding up to 1."""
    weights = (1.0,) * tables if use is None else read_list("use", use, "weights")
    if len(weights) != tables:
        what, got = "must have one weight for each table", number_of(len(weights), "weight")
        raise InvalidInput(what, option="use", got=got, allowed=f"{tables}")
    numbers = [require_within("a weight of use", weight, above=0, most=1e300) for weight in weights]
    return tuple(number / math.fsum(numbers) for number in numbers)


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """Shares of a total, an epsilon or a rho, with what they cost in error and what they reveal."""

    joint: JointCells
    mechanisms: Sequence[Mechanism]
    unit: str
    total: float
    prices: Numbers
    """Of each table: what one E|e| in its counts adds to the error."""

    def noises(self, shares: Sequence[float]) -> list[Noise]:
        pairs = zip(self.mechanisms, shares, strict=True)
        if self.unit == "epsilon":
            return [mechanism.noise_at(share) for mechanism, share in pairs]
        return [type(mechanism.noise)(mechanism.l2 / math.sqrt(2.0 * share)) for mechanism, share in pairs]

    def error(self, shares: Sequence[float]) -> float:
        return math.fsum(price * noise.mean_size for price, noise in zip(self.prices, self.noises(shares), strict=True))

    def laws(self, shares: Sequence[float]) -> list[TableLaw]:
        return find_laws(self.joint, self.noises(shares), [mechanism.threshold for mechanism in self.mechanisms])

    def caused(self, shares: Sequence[float]) -> float:
        return eliminate(self.joint, self.laws(shares)).caused

    def assess(self, name: str, shares: Numbers) -> Share:
        linked = link_tables(self.joint, self.laws(shares))
        largest = max(figures.caused for figures in linked.collections.values())
        epsilons = shares  # of a rho, the epsilon at the table's own delta
        if self.unit == "rho":
            epsilons = tuple(map(find_epsilon, shares, (mechanism.delta for mechanism in self.mechanisms)))
        sizes, all_tables = tuple(noise.mean_size for noise in self.noises(shares)), linked.rules["elimination"]
        return Share(name, shares, epsilons, sizes, self.error(shares), all_tables.right, all_tables.caused, largest)

    def scan(self) -> Iterator[Numbers]:
        """Shares all over, in even steps; none for more than four tables."""
        tables = len(self.mechanisms)
        steps = SCANNED.get(tables, 0)
        for parts in product(range(1, steps), repeat=tables - 1):
            if sum(parts) < steps:
                yield tuple(self.total * part / steps for part in (*parts, steps - sum(parts)))

    def descend(
        self,
        objective: Callable[[Sequence[float]], float],
        start: Sequence[float],
        tolerance: float,
        most: float | None = None,
    ) -> Numbers:
        """A local minimum over shares of the total, with an error of at most ``most``."""
        from scipy.optimize import minimize

        least = LEAST_SHARE * self.total / len(start)

        def scale(shares: Any) -> Floats:
            shares = np.clip(shares, least, None)
            return np.asarray(shares * (self.total / shares.sum()))

        constraints: list[dict[str, Any]] = [{"type": "eq", "fun": lambda shares: np.sum(shares) / self.total - 1.0}]
        if most is not None:
            constraints.append({"type": "ineq", "fun": lambda shares: 1.0 - self.error(shares) / most})
        bounds, options = [(least, self.total)] * len(start), {"maxiter": 100, "ftol": tolerance}
        found = minimize(
            objective, scale(start), method="SLSQP", bounds=bounds, constraints=constraints, options=options
        )
        return tuple(scale(found.x).tolist())


def least_error(problem: SplitProblem) -> Numbers:
    """The shares of the least error, which is convex."""
    start = np.sqrt(np.maximum(problem.prices, 1e-300)).tolist()
    return problem.descend(lambda shares: math.log(problem.error(shares)), start, 1e-13)


def least_caused(problem: SplitProblem, known: Sequence[Numbers], most: float) -> Numbers:
    """The shares with an error of at most ``most`` that are found to reveal fewest because of their own records: the
    best of ``known`` and of a scan, and from there a local search along the edge of the error that is allowed."""
    allowed = [shares for shares in (*known, *problem.scan()) if problem.error(shares) <= most * (1.0 + 1e-12)]
    start = min(allowed, key=problem.caused)
    lowest = problem.caused(start)
    end = problem.descend(lambda shares: problem.caused(shares) / max(lowest, 1e-300), start, 1e-7, most)
    within = problem.error(end) <= most * (1.0 + 1e-6)
    return end if within and problem.caused(end) < lowest else start
