"""`split_budget`: how a total loss is shared among the tables of a set, for error and for what they give away.

The error is the bound on the total variation distance of the tables, U = sum_t w_t C_t K E|e_t| / (2 n_t), with C_t
cells, K labels and the weights w_t of their use; it is convex in the shares. What is given away because of people's own
records is smooth and not convex, and falls towards corners where one table has everything and the others are noise: so
its least is looked for among shares whose error is within a part of the least error.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from cellrisk.counts.joint import JointCells, count_together
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.noise.mechanisms import USUAL_MECHANISM, DiscreteGaussian, Mechanism
from cellrisk.repeat.accounting.composition import find_epsilon
from cellrisk.repeat.together.least_squares import count_levels
from cellrisk.repeat.together.rules import Lookup, count_given_away, look_up
from cellrisk.repeat.together.sets import SetTable, find_together, read_tables
from cellrisk.repeat.together.split_result import Share, Split
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.checks import read_list, require_number, require_within
from cellrisk.system.progress import Progress
from cellrisk.system.text import number_of
from cellrisk.system.words import MechanismName, Neighbours, OutsideRule

__all__ = ["Split", "split_budget"]

MOST_BOUNDED = 4
"""Tables up to which the least is certified: boxes of more sides are too many."""
GAP = 0.02
"""How near the best shares that were found must be to what no shares are below, before the search ends."""
MOST_ROWS = 40_000_000
"""Rows of people that are looked at in boxes before the search ends with the gap that it has: some seconds."""
SCANNED = {1: 1, 2: 24, 3: 12, 4: 8}
"""Steps of the first look at all shares, along each side."""
LEAST_SHARE = 1e-3
"""No table gets less than this part of the total."""
SMALL = 1e-4
"""The step of a slope, as a part of a share."""

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

    Three answers side by side, with their errors and what they give away by elimination: even shares, those of the
    least error, and those that give away fewest people because of their own records while the error is at most
    ``1 + slack`` times the least. The second is certified by convexity, the third, up to four tables, by branch and
    bound: it says below which number no shares can come.

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
    """Shares of a total, with what they cost in error and what they give away."""

    joint: JointCells
    losses: tuple[TableShare, ...]
    total: float
    prices: Numbers
    """Of each table: what one E|e| in its counts adds to the error."""

    def error(self, shares: Sequence[float]) -> float:
        return math.fsum(self.error_of(table, share) for table, share in enumerate(shares))

    def error_of(self, table: int, share: float) -> float:
        return self.prices[table] * mean_size(self.losses[table].noise(share))

    def look_up(self, shares: Sequence[float]) -> list[Lookup]:
        noises = [loss.noise(share) for loss, share in zip(self.losses, shares, strict=True)]
        return look_up(self.joint, noises, [loss.mechanism.threshold for loss in self.losses])

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
    """The same where the tables are counted."""
    sizes = [math.prod(count_levels(joint, column) for column in each.columns) for each in joint.tables]
    prices = tuple(
        weight * cells * joint.n_levels / (2.0 * each.n_records)
        for weight, cells, each in zip(use, sizes, joint.tables, strict=True)
    )
    problem = SplitProblem(joint, losses, total, prices)
    even = (total / len(asked),) * len(asked)
    best, left = least_error(problem)
    most = (1.0 + slack) * problem.error(best)
    found = least_caused(problem, [even, best], most)

    def tell(name: str, shares: Numbers) -> Share:
        counted = count_given_away(joint, problem.look_up(shares))
        every = counted.collections[tuple(range(len(asked)))]
        largest = max(each.caused for each in counted.collections.values())
        sizes_of_errors = tuple(mean_size(loss.noise(share)) for loss, share in zip(losses, shares, strict=True))
        epsilons = tuple(loss.epsilon(share) for loss, share in zip(losses, shares, strict=True))
        return Share(name, shares, epsilons, sizes_of_errors, problem.error(shares), every.right, every.caused, largest)

    return Split(
        joint.sensitive,
        joint.n_records,
        asked,
        losses[0].unit,
        total,
        use,
        tuple(sizes),
        slack,
        tell("even", even),
        tell("least error", best),
        tell("least caused", found.shares),
        left,
        found.bound,
        found.boxes,
    )


def least_error(problem: SplitProblem) -> tuple[Numbers, float]:
    """The shares of the least error, and how far above the least they are at most.

    The error is convex, so that grad U(x) (x - y), largest over all shares y, bounds what is left (Frank and Wolfe).
    """
    tables = len(problem.losses)
    free = problem.total - tables * problem.least

    def shares(logs: Floats) -> Floats:
        weights = np.exp(logs - logs.max())
        return np.asarray(problem.least + free * weights / weights.sum())

    start = np.log([max(price, 1e-300) ** 0.5 for price in problem.prices])
    found = minimize(
        lambda logs: math.log(problem.error(shares(logs).tolist())), start - start.max(), method="BFGS", tol=1e-9
    )
    best = shares(found.x)
    slopes = np.array([_slope(partial(problem.error_of, table), float(best[table])) for table in range(tables)])
    left = max(float(slopes @ (best - problem.least) - free * slopes.min()), 0.0)
    return tuple(float(share) for share in best), left


def _slope(function: Callable[[float], float], at: float) -> float:
    step = SMALL * at
    return (function(at + step) - function(at - step)) / (2.0 * step)


@dataclass(frozen=True)
class LeastCaused:
    """The shares that give away fewest, of those that were found."""

    shares: Numbers
    bound: float | None
    """No shares within the error give away fewer; None where that is not known."""
    boxes: int


def least_caused(problem: SplitProblem, known: Sequence[Numbers], most: float) -> LeastCaused:
    """The shares with an error of at most ``most`` that give away fewest because of their own records.

    A first look at all shares, and the way down from the best of them; then boxes of shares are cut in two, those with
    the lowest bound first, until no box can hold shares that are more than `GAP` better.
    """
    people = _People.of(problem)

    def caused(shares: Sequence[float]) -> float:
        return people.caused(problem.look_up(shares))

    inside = [shares for shares in (*known, *_scan(problem)) if problem.error(shares) <= most * (1.0 + 1e-12)]
    best = min(inside, key=caused)
    best = _descend(problem, best, caused, most)
    lowest = caused(best)
    if len(problem.losses) > MOST_BOUNDED:
        return LeastCaused(best, None, 0)
    tables = range(len(problem.losses))
    first = _tighten(problem, [problem.least] * len(tables), [problem.total] * len(tables), most)
    heap = [] if first is None else [(people.bound(problem, *first), 0, first)]
    bound, boxes = lowest, 1
    while heap:
        low, _, (least, largest) = heap[0]
        bound = min(low, lowest)
        if lowest - bound <= GAP * lowest or boxes * people.rows > MOST_ROWS:
            break
        heapq.heappop(heap)
        widest = max(tables, key=lambda table: largest[table] / least[table])
        middle = math.sqrt(least[widest] * largest[widest])
        for half in (0, 1):
            lower, upper = list(least), list(largest)
            (upper if half == 0 else lower)[widest] = middle
            cut = _tighten(problem, lower, upper, most)
            if cut is None:
                continue
            boxes += 1
            inner = max(people.bound(problem, *cut), low)
            if inner >= lowest:
                continue
            heapq.heappush(heap, (inner, boxes, cut))
            point = _inside(problem, *cut)
            if problem.error(point) <= most:
                value = caused(point)
                if value < lowest:
                    best, lowest = point, value
    else:
        bound = lowest
    return LeastCaused(best, bound, boxes)


def _scan(problem: SplitProblem) -> list[Numbers]:
    """Shares all over, in even steps."""
    tables = len(problem.losses)
    steps = SCANNED.get(tables, 0)
    found: list[tuple[int, ...]] = [()]
    for _ in range(tables - 1):
        found = [(*some, step) for some in found for step in range(1, steps) if sum(some) + step < steps]
    return [tuple(problem.total * step / steps for step in (*some, steps - sum(some))) for some in found if steps]


def _descend(problem: SplitProblem, start: Numbers, caused: Callable[[Sequence[float]], float], most: float) -> Numbers:
    """Downhill from some shares, along the edge of the error that is allowed."""
    begin = caused(start)
    found = minimize(
        lambda shares: caused(shares) / max(begin, 1e-300),
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
    if problem.error(ended) <= most * (1.0 + 1e-6) and caused(ended) < begin:
        return ended
    return start


def _tighten(
    problem: SplitProblem, least: list[float], largest: list[float], most: float
) -> tuple[Numbers, Numbers] | None:
    """The box of shares less what cannot add up to the total or has too large an error; None where nothing is left."""
    tables = range(len(least))
    for _ in range(2):
        for table in tables:
            rest = [other for other in tables if other != table]
            least[table] = max(least[table], problem.total - sum(largest[other] for other in rest))
            largest[table] = min(largest[table], problem.total - sum(least[other] for other in rest))
            if least[table] > largest[table] * (1.0 + 1e-12):
                return None
            allowed = most * (1.0 + 1e-12) - sum(problem.error_of(other, largest[other]) for other in rest)
            if problem.error_of(table, largest[table]) > allowed:
                return None
            if problem.error_of(table, least[table]) > allowed:
                least[table] = _first_within(problem, table, least[table], largest[table], allowed)
    return tuple(least), tuple(largest)


def _first_within(problem: SplitProblem, table: int, low: float, high: float, allowed: float) -> float:
    """A share below which the error of a table is too large, near the largest such."""
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if problem.error_of(table, middle) > allowed else (low, middle)
    return low


def _inside(problem: SplitProblem, least: Numbers, largest: Numbers) -> Numbers:
    """Shares in a box that add up to the total."""
    room = [high - low for low, high in zip(least, largest, strict=True)]
    part = (problem.total - sum(least)) / max(sum(room), 1e-300)
    return tuple(low + min(max(part, 0.0), 1.0) * width for low, width in zip(least, room, strict=True))


@dataclass(frozen=True, eq=False)
class _People:
    """Where the counts of people's cells stand in the lists of each table, for each label that people have."""

    groups: tuple[tuple[int, Floats, tuple[Integers, ...]], ...]
    """Own label, numbers of people, and for each table (labels, rows)."""

    @property
    def rows(self) -> int:
        return sum(len(people) for _, people, _ in self.groups)

    @staticmethod
    def of(problem: SplitProblem) -> _People:
        joint = problem.joint
        lookups = problem.look_up((problem.total,) * len(problem.losses))
        found = []
        for label in range(joint.n_levels):
            rows = np.flatnonzero(joint.level == label)
            if len(rows):
                places = np.stack([lookup.at(own[rows]) for lookup, own in zip(lookups, joint.cell, strict=True)])
                flat, back = np.unique(places.reshape(-1, len(rows)), axis=1, return_inverse=True)
                people = np.bincount(back.ravel(), joint.count[rows], minlength=flat.shape[1])
                apart = flat.reshape(len(lookups), joint.n_levels, -1)
                found.append((label, np.asarray(people, np.float64), tuple(apart)))
        return _People(tuple(found))

    def caused(self, lookups: Sequence[Lookup]) -> float:
        """People given away by elimination because of their own records."""
        laws = [(each.survive, each.less, each.first, each.survive) for each in lookups]
        return self._caused(laws)

    def bound(self, problem: SplitProblem, least: Numbers, largest: Numbers) -> float:
        """What no shares in a box are below.

        Along a share, s(m) rises or falls and the probability of one noise rises and then falls, so that each is least,
        and s largest, at an end; all terms are products of such factors and of 1 - prod_t s_t.
        """
        laws = []
        for low, high in zip(problem.look_up(least), problem.look_up(largest), strict=True):
            laws.append(
                (
                    np.minimum(low.survive, high.survive),
                    np.minimum(low.less, high.less),
                    np.minimum(low.first, high.first),
                    np.maximum(low.survive, high.survive),
                )
            )
        return self._caused(laws)

    def _caused(self, laws: Sequence[tuple[Floats, Floats, Floats, Floats]]) -> float:
        """[sum_t prod_{u<t} s_u(n - 1) d_t(n) prod_{u>t} s_u(n)] prod_{j != k} (1 - prod_t s_t(n_j)), added up."""
        total = 0.0
        for label, people, places in self.groups:
            pivotal, less = np.zeros(len(people)), np.ones(len(people))
            for (survive, survive_less, first, _), place in zip(laws, places, strict=True):
                own = place[label]
                pivotal = pivotal * survive[own] + less * first[own]
                less = less * survive_less[own]
            chance = people * pivotal
            for other in range(len(places[0])):
                if other != label:
                    stays = np.ones(len(people))
                    for (_, _, _, most), place in zip(laws, places, strict=True):
                        stays = stays * most[place[other]]
                    chance = chance * (1.0 - stays)
            total += float(np.sum(chance))
        return total
