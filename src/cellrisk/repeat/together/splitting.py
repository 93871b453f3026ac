"""`split_budget`: how a total loss is shared among the tables of a set, for error and for what they give away.

The error is the bound on the total variation distance of the tables, U = sum_t w_t C_t K E|e_t| / (2 n_t), with C_t
cells, K labels and the weights w_t of their use; it is convex in the shares. What is given away because of people's own
records is smooth and not convex, and falls towards corners where one table has everything and the others are noise: so
it is minimised among shares whose error is within a part of the least error, by a scan and a local search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from cellrisk.counts.joint import JointCells, count_together
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.noise.mechanisms import USUAL_MECHANISM, DiscreteGaussian, Mechanism
from cellrisk.repeat.accounting.composition import find_epsilon
from cellrisk.repeat.together.after_consistency import count_levels
from cellrisk.repeat.together.linkage_attacks import TableLaw, eliminate, find_laws, link_tables
from cellrisk.repeat.together.sets import SetTable, find_together, read_tables
from cellrisk.repeat.together.split_result import Share, Split
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list, require_number, require_within
from cellrisk.system.progress import Progress
from cellrisk.system.text import number_of
from cellrisk.system.words import MechanismName, Neighbours, OutsideRule

__all__ = ["Split", "split_budget"]

SCANNED = {1: 1, 2: 24, 3: 12, 4: 8}
"""Steps of the first look at all shares, along each side."""
LEAST_SHARE = 1e-3
"""No table gets less than this part of the total."""

Numbers = tuple[float, ...]


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
        As for `assess_together`. Epsilons of the tables say the total where none is given, and are otherwise not used.
    total_epsilon
        What the tables may spend together, their epsilons added up. By default what they say themselves.
    total_rho
        The same in zero-concentrated privacy, for tables that are all discrete-gaussian.
    use
        How much each table is used: weights of their errors. By default all alike.
    slack
        How far above the least error the shares may lie that give away fewest.
    bins, mechanism, epsilon, delta, neighbours, threshold, levels, count, missing, outside
        As for `assess_together`.
    table, engine, memory_limit, progress
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
    total = total_epsilon if total_rho is None else total_rho
    if total is not None:
        require_within("total_epsilon" if total_rho is None else "total_rho", total, above=0, most=1e6)
    stand_in = epsilon if epsilon is not None else None if isinstance(mechanism, Mechanism) else 0.5
    listed = read_list("tables", tables, "tables")
    given = [_with_epsilon(each, stand_in if total is not None else None) for each in listed]
    asked = read_tables(
        given,
        sensitive,
        bins=bins,
        mechanism=mechanism,
        epsilon=stand_in if total is not None else epsilon,
        delta=delta,
        neighbours=neighbours,
        threshold=threshold,
    )
    if len(asked) < 2:
        raise InvalidInput("there is nothing to share among one table", fix="add a [[table]] to the set")
    if len(find_together(asked)) > 1:
        raise InvalidInput(
            "the people of some tables exclude each other, so that no person spends all of them",
            fix="split for the tables of one part of the people at a time",
        )
    unit = "epsilon" if total_rho is None else "rho"
    whole = math.fsum(each.mechanism.epsilon for each in asked) if total is None else float(total)
    losses = tuple(TableShare(each.mechanism, unit) for each in asked)
    for each in losses:
        each.check(whole)
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
    return split_joint(joint, asked, losses, whole, _read_use(use, len(asked)), slack)


def _with_epsilon(given: Any, epsilon: float | None) -> Any:
    """A table as it is given, with an epsilon to stand in where a total is given instead."""
    if epsilon is None or not isinstance(given, Mapping) or isinstance(given.get("mechanism"), Mechanism):
        return given
    return {**given, "epsilon": epsilon}


def _read_use(use: Sequence[float] | None, tables: int) -> Numbers:
    """The weights of use, adding up to 1."""
    if use is None:
        return (1.0 / tables,) * tables
    if isinstance(use, str) or not isinstance(use, Sequence):
        raise InvalidInput("use must be a list of weights", got=f"a {type(use).__name__}")
    if len(use) != tables:
        raise InvalidInput(
            "use must have one weight for each table", got=number_of(len(use), "weight"), allowed=f"{tables}"
        )
    for each in use:
        require_number("a weight of use", each)
        if not (math.isfinite(each) and each > 0):
            raise InvalidInput("weights of use must be above 0", got=each, fix="leave a table out that is of no use")
    return tuple(float(each) / math.fsum(use) for each in use)


@dataclass(frozen=True)
class TableShare:
    """What a share of the total is for one table: its epsilon, or its rho."""

    mechanism: Mechanism
    unit: str

    def check(self, total: float) -> None:
        """Refuses a total that the mechanism cannot be given a share of."""
        if self.unit == "epsilon":
            replace(self.mechanism, epsilon=total)
        elif not isinstance(self.mechanism, DiscreteGaussian):
            raise InvalidInput(
                "a rho is shared among tables of discrete-gaussian noise",
                got=self.mechanism.name,
                fix="share an epsilon, or take the mechanism discrete-gaussian",
            )

    def noise(self, share: float) -> Noise:
        if self.unit == "rho":
            return type(self.mechanism.noise)(self.mechanism.l2 / math.sqrt(2.0 * share))
        return self.mechanism.noise_at(share)

    def epsilon(self, share: float) -> float:
        """The epsilon of the table's description: at its own delta, where the share is a rho."""
        return share if self.unit == "epsilon" else find_epsilon(share, self.mechanism.delta)


def mean_size(noise: Noise) -> float:
    """E|e|: the mean absolute error of a count before it is rounded or set to 0.

    >>> round(mean_size(GeometricNoise(1.0)), 6), mean_size(LaplaceNoise(2.0))  # 1 / sinh(1)
    (0.850918, 2.0)
    """
    if isinstance(noise, GeometricNoise):
        return 1.0 / math.sinh(1.0 / noise.scale) if noise.scale > 2e-3 else 0.0
    if isinstance(noise, LaplaceNoise):
        return noise.scale
    if isinstance(noise, GaussianNoise) or noise.scale > 100:
        return noise.scale * math.sqrt(2.0 / math.pi)
    values = np.arange(1.0, 40.0 * noise.scale + 40.0)
    return 2.0 * float(np.sum(noise.cdf(0.5 - values)))  # P(e <= -j) over j >= 1, twice


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """Shares of a total, with what they cost in error and what they reveal."""

    joint: JointCells
    losses: tuple[TableShare, ...]
    total: float
    prices: Numbers
    """Of each table: what one E|e| in its counts adds to the error."""

    def error(self, shares: Sequence[float]) -> float:
        parts = zip(self.prices, self.losses, shares, strict=True)
        return math.fsum(price * mean_size(loss.noise(share)) for price, loss, share in parts)

    def laws(self, shares: Sequence[float]) -> list[TableLaw]:
        noises = [loss.noise(share) for loss, share in zip(self.losses, shares, strict=True)]
        return find_laws(self.joint, noises, [loss.mechanism.threshold for loss in self.losses])

    def caused(self, shares: Sequence[float]) -> float:
        return eliminate(self.joint, self.laws(shares)).caused

    @property
    def least(self) -> float:
        return LEAST_SHARE * self.total / len(self.losses)


def split_joint(
    joint: JointCells,
    asked: tuple[SetTable, ...],
    losses: tuple[TableShare, ...],
    total: float,
    use: Numbers,
    slack: float,
) -> Split:
    """The same for tables that are counted."""
    sizes = [math.prod(count_levels(joint, column) for column in table.columns) for table in joint.tables]
    prices = tuple(
        weight * cells * joint.n_levels / (2.0 * table.n_records)
        for weight, cells, table in zip(use, sizes, joint.tables, strict=True)
    )
    problem = SplitProblem(joint, losses, total, prices)
    even = (total / len(asked),) * len(asked)
    best = least_error(problem)
    most = max((1.0 + slack) * problem.error(best), problem.error(even))

    def assess(name: str, shares: Numbers) -> Share:
        linked = link_tables(joint, problem.laws(shares))
        largest = max(figures.caused for figures in linked.collections.values())
        mean_errors = tuple(mean_size(loss.noise(share)) for loss, share in zip(losses, shares, strict=True))
        epsilons = tuple(loss.epsilon(share) for loss, share in zip(losses, shares, strict=True))
        every = linked.rules["elimination"]
        return Share(name, shares, epsilons, mean_errors, problem.error(shares), every.right, every.caused, largest)

    return Split(
        joint.sensitive,
        joint.n_records,
        asked,
        losses[0].unit,
        total,
        use,
        tuple(sizes),
        slack,
        assess("even", even),
        assess("least error", best),
        assess("least caused", least_caused(problem, [even, best], most)),
    )


def least_error(problem: SplitProblem) -> Numbers:
    """The shares of the least error, which is convex."""
    free = problem.total - len(problem.losses) * problem.least

    def shares(logs: Floats) -> Floats:
        weights = np.exp(logs - logs.max())
        return np.asarray(problem.least + free * weights / weights.sum())

    start = np.log([max(price, 1e-300) ** 0.5 for price in problem.prices])
    found = minimize(
        lambda logs: math.log(problem.error(shares(logs).tolist())), start - start.max(), method="BFGS", tol=1e-9
    )
    return tuple(float(share) for share in shares(found.x))


def least_caused(problem: SplitProblem, known: Sequence[Numbers], most: float) -> Numbers:
    """The shares with an error of at most ``most`` that are found to reveal fewest because of their own records: the
    best of ``known`` and of a scan, and from there a local search along the edge of the error that is allowed."""
    allowed = [shares for shares in (*known, *_scan(problem)) if problem.error(shares) <= most * (1.0 + 1e-12)]
    start = min(allowed, key=problem.caused)
    lowest = problem.caused(start)
    found = minimize(
        lambda shares: problem.caused(shares) / max(lowest, 1e-300),
        np.array(start),
        method="SLSQP",
        bounds=[(problem.least, problem.total)] * len(start),
        constraints=[
            {"type": "eq", "fun": lambda shares: (float(np.sum(shares)) - problem.total) / problem.total},
            {"type": "ineq", "fun": lambda shares: 1.0 - problem.error(shares) / most},
        ],
        options={"maxiter": 60, "ftol": 1e-7},
    )
    scaled = np.clip(found.x, problem.least, None)
    ended = tuple(float(share) for share in scaled * (problem.total / scaled.sum()))
    within = problem.error(ended) <= most * (1.0 + 1e-6)
    return ended if within and problem.caused(ended) < lowest else start


def _scan(problem: SplitProblem) -> list[Numbers]:
    """Shares all over, in even steps."""
    tables = len(problem.losses)
    steps = SCANNED.get(tables, 0)
    found: list[tuple[int, ...]] = [()]
    for _ in range(tables - 1):
        found = [(*some, step) for some in found for step in range(1, steps) if sum(some) + step < steps]
    return [tuple(problem.total * step / steps for step in (*some, steps - sum(some))) for some in found if steps]
