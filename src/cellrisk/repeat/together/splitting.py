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
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.together.after_consistency import count_levels
from cellrisk.repeat.together.linkage_attacks import TableLaw, find_laws, link_tables
from cellrisk.repeat.together.sets import OF_TABLES, OF_UNIT, SetTable, find_together, read_tables
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list, require_within
from cellrisk.system.formatting import number_of
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
    """The epsilon that each table gets."""
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

    wording = "together"

    sensitive: str
    records: int
    tables: tuple[SetTable, ...]
    total: float
    """The epsilons of all tables added up."""
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
            for table, part, size in zip(self.tables, way.parts, way.mean_errors, strict=True)
            for name, value in (("part", part), ("mean_error", size))
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
            "total": {"epsilon": self.total},
            "slack": self.slack,
            "tables": [
                {**table.to_dict(), "mechanism": table.mechanism.name, "use": use, "cells": cells}
                for table, use, cells in zip(self.tables, self.use, self.cells, strict=True)
            ],
            "splits": [
                {**vars(way), "parts": list(way.parts), "mean_errors": list(way.mean_errors)} for way in self.ways
            ],
            "sentence": self.headline,
        }


def split_budget(
    source: Any,
    tables: Sequence[Mapping[str, Any]],
    sensitive: str,
    *,
    total_epsilon: float | None = None,
    use: Sequence[float] | None = None,
    slack: float = 0.25,
    **asked: Any,
) -> Split:
    """Share a total epsilon among the tables of a set.

    Three answers side by side, with their errors and what they reveal by elimination: even shares, those of the least
    error, and those found to reveal fewest people because of their own records while the error is at most ``1 + slack``
    times the least, or that of even shares if it is larger. The error is convex, so the second is the least there is;
    the third is the best of a scan (up to four tables) and a local search.

    Parameters
    ----------
    source, tables, sensitive, asked
        As for `assess_together`, with the arguments of the tables and of their records.
    total_epsilon
        What the tables may spend together, their epsilons added up. By default the sum of their own.
    use
        How much each table is used: weights of their errors. By default all alike.
    slack
        How far above the least error the shares may lie that reveal fewest.

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": list("ffmm"), "town": list("abab"), "job": list("xyyy")})
    >>> found = split_budget(people, [{"qid": "sex"}, {"qid": ["sex", "town"]}], "job", total_epsilon=2.0)
    >>> [round(part, 2) for part in found.least_error.parts]  # twice as many cells, and more of the total
    [0.82, 1.18]
    """
    require_within("slack", slack, least=0, most=10)
    of_tables = {name: asked.pop(name) for name in OF_TABLES if name in asked}
    unit = {name: asked[name] for name in OF_UNIT if name in asked}
    if total_epsilon is not None:  # shares take the place of the tables' own epsilons
        require_within("total_epsilon", total_epsilon, above=0, most=1e6)
        if of_tables.get("epsilon") is None and not isinstance(of_tables.get("mechanism"), Mechanism):
            of_tables["epsilon"] = 0.5
    read = read_tables(tables, sensitive, **of_tables, **unit)
    if len(read) < 2:
        raise InvalidInput("there is nothing to share among one table", fix="add a [[table]] to the set")
    if len(find_together(read)) > 1:
        raise InvalidInput(
            "the people of some tables exclude each other, so no person spends all of them",
            fix="split for the tables of one part of the people at a time",
        )
    mechanisms = [table.mechanism for table in read]
    total = math.fsum(made.epsilon for made in mechanisms) if total_epsilon is None else float(total_epsilon)
    for made in mechanisms:
        made.with_epsilon(total)  # refused if it cannot have all of it
    given = read_list("use", (1.0,) * len(read) if use is None else use, "weights")
    if len(given) != len(read):
        what, got = "must have one weight for each table", number_of(len(given), "weight")
        raise InvalidInput(what, option="use", got=got, allowed=f"{len(read)}")
    numbers = [require_within("a weight of use", weight, above=0, most=1e300) for weight in given]
    weights = tuple(number / math.fsum(numbers) for number in numbers)
    joint = count_together(source, [table.asked for table in read], sensitive, **asked)
    sizes = tuple(math.prod(count_levels(joint, column) for column in cells.columns) for cells in joint.tables)
    prices = tuple(
        weight * size * joint.n_levels / (2.0 * cells.n_records)
        for weight, size, cells in zip(weights, sizes, joint.tables, strict=True)
    )
    problem = SplitProblem(joint, mechanisms, total, prices)
    even = (total / len(read),) * len(read)
    start = np.sqrt(np.maximum(prices, 1e-300)).tolist()
    best = problem.descend(lambda shares: math.log(problem.error(shares)), start, 1e-13)
    most = max((1.0 + slack) * problem.error(best), problem.error(even))
    fewest = least_caused(problem, [even, best], most)
    ways = [problem.assess(*way) for way in (("even", even), ("least error", best), ("least caused", fewest))]
    return Split(joint.sensitive, joint.n_records, read, total, weights, sizes, slack, *ways)


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """Shares of a total epsilon, with what they cost in error and what they reveal."""

    joint: JointCells
    mechanisms: Sequence[Mechanism]
    total: float
    prices: Numbers
    """Of each table: what one E|e| in its counts adds to the error."""

    def noises(self, shares: Sequence[float]) -> list[Noise]:
        return [mechanism.noise_at(share) for mechanism, share in zip(self.mechanisms, shares, strict=True)]

    def error(self, shares: Sequence[float]) -> float:
        return math.fsum(price * noise.mean_size for price, noise in zip(self.prices, self.noises(shares), strict=True))

    def laws(self, shares: Sequence[float]) -> list[TableLaw]:
        return find_laws(self.joint, self.noises(shares), [mechanism.threshold for mechanism in self.mechanisms])

    def caused(self, shares: Sequence[float]) -> float:
        return link_tables(self.joint, self.laws(shares), ()).rules["elimination"].caused

    def assess(self, name: str, shares: Numbers) -> Share:
        linked = link_tables(self.joint, self.laws(shares))
        largest = max(figures.caused for figures in linked.collections.values())
        sizes, all_tables = tuple(noise.mean_size for noise in self.noises(shares)), linked.rules["elimination"]
        return Share(name, shares, sizes, self.error(shares), all_tables.right, all_tables.caused, largest)

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


def least_caused(problem: SplitProblem, known: Sequence[Numbers], most: float) -> Numbers:
    """The shares with an error of at most ``most`` that are found to reveal fewest because of their own records: the
    best of ``known`` and of a scan, and from there a local search along the edge of the error that is allowed."""
    allowed = [shares for shares in (*known, *problem.scan()) if problem.error(shares) <= most * (1.0 + 1e-12)]
    start = min(allowed, key=problem.caused)
    lowest = problem.caused(start)
    end = problem.descend(lambda shares: problem.caused(shares) / max(lowest, 1e-300), start, 1e-7, most)
    within = problem.error(end) <= most * (1.0 + 1e-6)
    return end if within and problem.caused(end) < lowest else start
