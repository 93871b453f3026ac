"""`utility`: how much of a table's usefulness noise leaves, and the smallest epsilon that leaves enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.precision import find_count_errors
from cellrisk.risk.sweep import list_mechanisms, read_epsilons
from cellrisk.system.arrays import Floats, Integers, number_keys
from cellrisk.system.checks import require_whole_number, require_within
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.formatting import number_of
from cellrisk.system.progress import Progress, StepCounter
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.counts.table import FrequencyTable

COUNT_CLASSES: tuple[tuple[int, int | None], ...] = ((1, 4), (5, 19), (20, 99), (100, None))
"""Sizes of counts whose errors are listed apart."""
SMALLEST_GROUPS = 9
"""People in the largest of the smallest groups."""
MOST_COUNTS = 200_000_000
"""Counts in one release."""
USUAL_WAYS = (1, 2, 3)
MOST_MARGINALS = 100_000
MOST_DISTANCES = 50_000_000
"""Distances that the result holds: one for each mechanism, marginal and release."""
COUNTS_AT_ONCE = 1 << 22
"""Counts of several releases that are in memory together, 32 MB; one release at least, however large."""
DRAWN_AT_ONCE = 1 << 20
"""Draws are made in pieces of this many counts: part of the order that a seed stands for, so never to be changed."""
TVD_POINTS = 15
"""Epsilons at which the TVD is simulated before the smallest epsilon is narrowed."""
NARROWED = 1.005
"""The smallest epsilon is narrowed to this factor: the TVD itself is an estimate from simulated releases."""

Attributes = tuple[int, ...]
"""Places of a marginal's attributes, ascending: the quasi-identifiers in order, then the sensitive attribute."""


@dataclass(frozen=True)
class ErrorOfCounts:
    """How far the positive counts of one class of sizes are published from the true ones, on average."""

    low: int
    high: int | None
    """The last size; None if the class has no end."""
    number: int
    """How many such counts there are."""
    relative: float
    """The mean of E|published - true| / true."""
    bias: float
    """The mean of E published - true."""


@dataclass(frozen=True, eq=False, repr=False)
class Utility(Result):
    """Distances of released marginal tables from the true ones, for each mechanism, marginal and simulated release.

    Made by `utility`. Prints as a sentence and a table.
    """

    wording = "utility"

    table: FrequencyTable
    mechanisms: tuple[Mechanism, ...]
    sensitive: str
    marginals: tuple[tuple[str, ...], ...]
    """The columns of each marginal, by way and then in the order of the columns, the sensitive one last."""
    tvd: Floats
    """(mechanisms, marginals, releases): total variation distance from the true marginal."""
    releases: int
    seed: int
    domain_size: int
    """Counts that got noise in each release: those of the whole domain."""
    observed: int
    """Attributes whose values were taken from the data, not declared."""

    @property
    def ways(self) -> tuple[int, ...]:
        """How many attributes the marginals have, ascending."""
        return tuple(dict.fromkeys(len(columns) for columns in self.marginals))

    def errors_of_counts(self, place: int) -> tuple[ErrorOfCounts, ...]:
        """Return the errors of the positive counts of the table by their size, then of those in the smallest groups.

        Exact, from the noise alone; ``place`` is that of the mechanism.
        """
        blocks = self.table.profiles(self.sensitive).blocks
        counts = np.concatenate([block.counts.ravel() for block in blocks])
        groups = np.concatenate([np.repeat(block.cells, block.counts.shape[1]) for block in blocks])
        sizes = np.concatenate([np.repeat(block.sizes, block.counts.shape[1]) for block in blocks])
        distinct, where = np.unique(counts, return_inverse=True)
        absolute, bias = find_count_errors(self.mechanisms[place], distinct)
        chosen = [(low, high, (counts >= low) & (counts <= (high or np.inf))) for low, high in COUNT_CLASSES]
        chosen.append((0, SMALLEST_GROUPS, sizes <= SMALLEST_GROUPS))
        return tuple(
            ErrorOfCounts(
                *(low, high, int(groups[rows].sum())),
                relative=float(np.average((absolute / distinct)[where[rows]], weights=groups[rows])),
                bias=float(np.average(bias[where[rows]], weights=groups[rows])),
            )
            for low, high, rows in chosen
            if rows.any()
        )

    def mean_tvd(self, way: int | None = None) -> Floats:
        """The mean distance, one a mechanism: over the releases and the marginals of one way, or all marginals alike.

        With no way given each marginal counts once, so the ways with the most marginals weigh most.
        """
        if way is not None and way not in self.ways:
            raise InvalidInput("no marginals of that way were simulated", got=way, allowed=f"{self.ways}", code="ways")
        rows = [way is None or len(columns) == way for columns in self.marginals]
        return np.asarray(self.tvd[:, rows].mean(axis=(1, 2)))

    @cached_property
    def spreads(self) -> tuple[list[dict[str, Any]], ...]:
        """How distances vary over marginals and releases: for each mechanism, a row for each way.

        ``low`` and ``high`` are the 5% and the 95% quantile.
        """
        return tuple([self._spread(tvd, way) for way in self.ways] for tvd in self.tvd)

    def _spread(self, tvd: Floats, way: int) -> dict[str, Any]:
        values = tvd[[len(columns) == way for columns in self.marginals]]
        low, median, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
        spread = {"mean": float(values.mean()), "median": median, "low": low, "high": high}
        return {"way": way, "marginals": len(values), **spread}

    def _numbers(self) -> pd.DataFrame:
        """One row a distance: of a mechanism, a marginal and a release."""
        import pandas as pd

        mechanism, marginal, release = (axis.ravel() for axis in np.indices(self.tvd.shape))
        names = ("name", "epsilon", "delta")
        settings = pd.DataFrame([[getattr(each, name) for name in names] for each in self.mechanisms], columns=names)
        frame = settings.rename(columns={"name": "mechanism"}).take(mechanism).reset_index(drop=True)
        frame["way"] = np.array([len(columns) for columns in self.marginals])[marginal]
        frame["marginal"] = np.array([" x ".join(columns) for columns in self.marginals], object)[marginal]
        frame["release"] = release
        frame["tvd"] = self.tvd.ravel()
        return frame

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk utility --json`` prints."""
        mean_tvd = self.tvd.mean(axis=2)
        return {
            "sensitive": self.sensitive,
            "unit": self.table.unit.to_dict(),
            "releases": self.releases,
            "seed": self.seed,
            "domain_size": self.domain_size,
            "settings": [
                {
                    **mechanism.to_dict(),
                    "ways": self.spreads[place],
                    "errors_of_counts": [vars(row) for row in self.errors_of_counts(place)],
                }
                for place, mechanism in enumerate(self.mechanisms)
            ],
            "marginals": [
                {"columns": list(columns), "way": len(columns), "tvd": mean_tvd[:, row].tolist()}
                for row, columns in enumerate(self.marginals)
            ],
            "headline": self.headline,
        }


def utility(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName] = USUAL_MECHANISM,
    *,
    epsilon: float | Sequence[float] | Floats | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    ways: int | Sequence[int] | None = None,
    releases: int = 100,
    seed: int = 0,
    sensitive: str | None = None,
    progress: Progress | None = None,
) -> Utility:
    """How far are the marginal tables of a release from the true ones?

    Total variation distance, TVD = 1/2 sum |p - q| over the cells of a marginal, p their true and q their released
    proportions, for every marginal of ``ways`` attributes among the quasi-identifiers and the sensitive one (Liu and
    Zhao, section 5.3). An estimate from simulated releases of the whole domain: every combination of the values of the
    quasi-identifiers, declared or observed, with every level. A release with no count left has no proportions; its TVD
    counts as 1.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it; or a list of either.
    epsilon
        One or several, of a mechanism that is named.
    delta, neighbours, threshold
        Those of a mechanism that is named.
    ways
        How many attributes the marginals have, one number or several; by default 1, 2 and 3, as far as the table has so
        many attributes.
    releases, seed
        How many releases are simulated, and where the draws begin: ``numpy.random.default_rng(seed)``, afresh for each
        mechanism, so that its results depend on no other in the list. Noise is drawn release by release; in each, cells
        are in the order of their keys, and levels in theirs.
    sensitive
        Which sensitive attribute; may be left out where the table has one.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 10})
    >>> found = utility(table, "geometric", epsilon=[0.1, 1.0], releases=50)
    >>> found.mean_tvd(way=2).round(4).tolist()
    [0.0035, 0.0003]
    """
    require_table(table)
    epsilons = [None] if epsilon is None else read_epsilons(epsilon).tolist()
    mechanisms = tuple(
        read_mechanism(each, epsilon=one, delta=delta, neighbours=neighbours, threshold=threshold).with_unit(table.unit)
        for each in list_mechanisms(mechanism)
        for one in epsilons
    )
    if not mechanisms:
        raise InvalidInput(
            "no mechanism was given", fix="give one, for example Geometric(epsilon=1.0)", code="no-mechanism"
        )
    require_whole_number("releases", releases, 1, MOST_DISTANCES)
    require_whole_number("seed", seed, 0)
    name = table.attribute(sensitive).name
    attributes = (*table.quasi_identifiers, name)
    chosen = _read_ways(ways, len(attributes))
    n_marginals = sum(math.comb(len(attributes), way) for way in chosen)
    if n_marginals > MOST_MARGINALS:
        allowed = f"up to {MOST_MARGINALS:,}"
        raise InvalidInput("too many marginals", got=n_marginals, allowed=allowed, fix="fewer ways", code="too-large")
    if n_marginals * len(mechanisms) * releases > MOST_DISTANCES:
        asked = (n_marginals, "marginal"), (releases, "release"), (len(mechanisms), "mechanism")
        raise InvalidInput(
            "too many distances to keep",
            got=", ".join(number_of(count, noun) for count, noun in asked),
            allowed=f"a product up to {MOST_DISTANCES:,}",
            fix="simulate fewer releases, or choose fewer ways",
            code="too-large",
        )
    cells = table.cells(name)
    n_counts = cells.domain_size
    if n_counts > MOST_COUNTS:
        raise InvalidInput(
            "a release of the whole domain has too many counts to simulate",
            got=f"{n_counts:,}" if n_counts < 10**15 else f"more than 10^{len(str(n_counts)) - 1}",
            allowed=f"up to {MOST_COUNTS:,}",
            fix="use fewer or coarser quasi-identifiers",
            code="too-large",
        )
    marginals = tuple(marginal for way in chosen for marginal in combinations(range(len(attributes)), way))
    return Utility(
        table=table,
        mechanisms=mechanisms,
        sensitive=name,
        marginals=tuple(tuple(attributes[place] for place in marginal) for marginal in marginals),
        tvd=_simulate(cells, mechanisms, marginals, int(releases), int(seed), progress),
        releases=int(releases),
        seed=int(seed),
        domain_size=n_counts,
        observed=[*(domain.declared for domain in cells.domains), table.attribute(name).declared].count(False),
    )


def _read_ways(given: int | Sequence[int] | None, n_attributes: int) -> tuple[int, ...]:
    if given is None:
        return USUAL_WAYS[:n_attributes]
    ways = list(given) if isinstance(given, Sequence) else [given]
    if not ways:
        raise InvalidInput("no ways were chosen", allowed=f"whole numbers from 1 to {n_attributes}", code="ways")
    for way in ways:
        require_whole_number("ways", way, 1)
        if way > n_attributes:
            raise InvalidInput(
                "a marginal cannot have more attributes than the table",
                got=f"way {way:,}" if way < 10**18 else way,
                allowed=f"1 to {n_attributes}: the quasi-identifiers and the sensitive attribute",
                code="ways",
            )
    return tuple(sorted({int(way) for way in ways}))


def _simulate(
    cells: Cells,
    mechanisms: Sequence[Mechanism],
    marginals: Sequence[Attributes],
    releases: int,
    seed: int,
    progress: Progress | None,
) -> Floats:
    """Return how far the marginals of simulated releases are from the true ones. No release is kept.

    Counts are whole numbers below 2^53 kept as floats, so sums of them are exact in any order.
    """
    shape, n_counts = (*(len(domain) for domain in cells.domains), len(cells.levels)), cells.domain_size
    places = number_keys((*cells.codes[cells.cell].T, cells.level), shape)

    def add_up(counts: Floats) -> list[Floats]:
        """Each marginal from one that has a single attribute more, so the largest attributes are summed out first."""

        @cache
        def margin(attributes: Attributes) -> Floats:
            others = [axis for axis in range(len(shape)) if axis not in attributes]
            if not others:
                return counts.reshape(-1, *shape)
            more = min(others, key=lambda axis: shape[axis])
            above = tuple(sorted((*attributes, more)))
            return np.asarray(margin(above).sum(axis=above.index(more) + 1))

        return [margin(attributes).reshape(len(counts), -1) for attributes in marginals]

    counts = np.zeros((1, n_counts))
    counts[0, places] = cells.count
    true = [sums[0] for sums in add_up(counts)]
    tvd = np.zeros((len(mechanisms), len(marginals), releases))
    report, step = StepCounter(progress, tvd.size), max(1, COUNTS_AT_ONCE // n_counts)
    for place, mechanism in enumerate(mechanisms):
        generator = np.random.default_rng(seed)
        for start in range(0, releases, step):
            part = slice(start, min(start + step, releases))
            released = np.empty((part.stop - part.start, n_counts))
            for release in released:
                _draw(release, places, cells.count, mechanism, generator)
            for row, sums in enumerate(add_up(released)):
                tvd[place, row, part] = find_distances(true[row], sums)
                report.add(len(released))
    return tvd


def _draw(
    release: Floats, places: Integers, count: Integers, mechanism: Mechanism, generator: np.random.Generator
) -> None:
    """Fill one release: each count plus noise, rounded, and zero if that sum is below the threshold."""
    for start in range(0, len(release), DRAWN_AT_ONCE):
        stop = min(start + DRAWN_AT_ONCE, len(release))
        counts = mechanism.noise.sample(generator, (stop - start,))
        first, last = np.searchsorted(places, (start, stop))
        counts[places[first:last] - start] += count[first:last]
        vanished = counts < mechanism.threshold
        np.rint(counts, out=counts)
        counts[vanished] = 0.0
        release[start:stop] = counts


def find_distances(true: Floats, released: Floats) -> Floats:
    """Total variation distance of each release's marginal (releases, cells) from the true one; 1 if nothing is left.

    1/2 sum |p - q| = sum max(p - q, 0), because p and q both add up to 1.

    >>> find_distances(np.array([6.0, 2.0, 0.0]), np.array([[6.0, 2, 0], [3.0, 2, 5], [0.0, 0, 0]])).tolist()
    [0.0, 0.5, 1.0]
    """
    totals = released.sum(axis=1)
    shares = released / np.where(totals == 0, 1.0, totals)[:, None]
    found = np.maximum(true / true.sum() - shares, 0.0).sum(axis=1)
    return np.where(totals == 0, 1.0, np.minimum(found, 1.0))  # rounding alone could exceed 1


@dataclass(frozen=True)
class TvdLimit:
    """A limit on the mean total variation distance of marginals, and how that distance is simulated."""

    max_tvd: float
    way: int = 2
    """How many attributes each marginal has."""
    releases: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        require_whole_number("way", self.way, 1)
        require_within("max_tvd", self.max_tvd, least=0, most=1)


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The mean TVD along epsilon, and the smallest epsilon with a TVD within the limit."""

    limit: TvdLimit
    epsilon: Floats
    tvd: Floats
    least_epsilon: float | None
    """The smallest epsilon, on its safe side; None where the TVD is above the limit at every epsilon of the range."""

    def restrict(self, intervals: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        """The part of each interval in which the TVD is within its limit too."""
        if self.least_epsilon is None:
            return ()
        least = self.least_epsilon
        return tuple((max(low, least), high) for low, high in intervals if high >= least)

    def at(self, epsilon: float | Floats) -> Any:
        """The TVD at an epsilon, or at several, between the points that were simulated."""
        return np.interp(np.log(epsilon), np.log(self.epsilon), self.tvd)

    def to_dict(self) -> dict[str, Any]:
        points = zip(self.epsilon.tolist(), self.tvd.tolist(), strict=True)
        return {
            "way": self.limit.way,
            "releases": self.limit.releases,
            "seed": self.limit.seed,
            "max_tvd": self.limit.max_tvd,
            "least_epsilon": self.least_epsilon,
            "points": [{"epsilon": epsilon, "tvd": tvd} for epsilon, tvd in points],
        }


def find_trade_off(
    table: FrequencyTable,
    mechanism: Mechanism,
    searched: tuple[float, float],
    limit: TvdLimit,
    progress: Progress | None = None,
) -> TradeOff:
    """Simulate releases along epsilon, with the same draws at each, so the TVD falls as epsilon grows."""

    def simulate(epsilon: float) -> float:
        """The mean TVD at an epsilon, of the sensitive attribute that fares worst."""
        how: dict[str, Any] = {"ways": limit.way, "releases": limit.releases, "seed": limit.seed}
        noise = mechanism.with_epsilon(epsilon)
        return max(float(utility(table, noise, sensitive=name, **how).mean_tvd()[0]) for name in table.sensitive)

    points = np.geomspace(*searched, TVD_POINTS)
    points[0], points[-1] = searched
    known: dict[float, float] = {}
    for place, epsilon in enumerate(points.tolist()):
        known[epsilon] = simulate(epsilon)
        if progress is not None:
            progress((place + 1) / (TVD_POINTS + 8))
    above = max((epsilon for epsilon, tvd in known.items() if tvd > limit.max_tvd), default=0.0)
    least = min((epsilon for epsilon in known if epsilon > above), default=None)
    while least is not None and above and least / above > NARROWED:
        middle = math.sqrt(above * least)
        known[middle] = simulate(middle)
        above, least = (middle, least) if known[middle] > limit.max_tvd else (above, middle)
    epsilons = np.array(sorted(known))
    tvds = np.array([known[epsilon] for epsilon in epsilons.tolist()])
    return TradeOff(limit, epsilons, tvds, least)
