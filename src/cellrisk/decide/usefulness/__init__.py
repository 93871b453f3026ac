"""`utility`: how much of a table's usefulness is left in what is published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from cellrisk.counts.table import require_table
from cellrisk.decide.usefulness.marginals import Layout, ObservedCells, WholeDomain
from cellrisk.decide.usefulness.simulation import simulate_marginals
from cellrisk.decide.usefulness.utility_result import CELLS, Utility
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.risk.sweep import list_mechanisms, read_epsilons
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_whole_number
from cellrisk.system.progress import Progress
from cellrisk.system.text import number_of
from cellrisk.system.words import MechanismName, Neighbours, NoisyCells, require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["CELLS", "Utility", "utility"]

MOST_COUNTS = 200_000_000
"""Counts in one release."""
USUAL_WAYS = (1, 2, 3)
MOST_MARGINALS = 100_000
MOST_DISTANCES = 50_000_000
"""Distances that the result holds: one for each mechanism, marginal and release."""

LAYOUTS: dict[str, type[Layout]] = {"domain": WholeDomain, "observed": ObservedCells}


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
    cells: NoisyCells = "domain",
    sensitive: str | None = None,
    progress: Progress | None = None,
) -> Utility:
    """How far are the marginal tables of a release from the true ones?

    Total variation distance, TVD = 1/2 sum |p - q| over the cells of a marginal, p their true and q their released
    proportions, for every marginal of ``ways`` attributes among the quasi-identifiers and the sensitive one (Liu and
    Zhao, section 5.3). An estimate from simulated releases; the expected absolute error of a marginal's counts beside
    it. A release with no count left has no proportions; its TVD counts as 1.

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
    cells
        Which counts get noise. "domain": every combination of the values of the quasi-identifiers, declared or
        observed, with every level, as a release that is differentially private must. "observed": the non-empty cells
        with every level, as the paper's authors did; which cells are there is then outside the guarantee.
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
        read_mechanism(each, epsilon=one, delta=delta, neighbours=neighbours, threshold=threshold)
        for each in list_mechanisms(mechanism)
        for one in epsilons
    )
    if not mechanisms:
        raise InvalidInput("no mechanism was given", fix="give one, for example Geometric(epsilon=1.0)")
    require_whole_number("releases", releases, 1, MOST_DISTANCES)
    require_whole_number("seed", seed, 0)
    require_word("cells", cells, CELLS)
    name = table.attribute(sensitive).name
    attributes = (*table.quasi_identifiers, name)
    chosen = _read_ways(ways, len(attributes))
    n_marginals = sum(math.comb(len(attributes), way) for way in chosen)
    if n_marginals > MOST_MARGINALS:
        raise InvalidInput("too many marginals", got=n_marginals, allowed=f"up to {MOST_MARGINALS:,}", fix="fewer ways")
    if n_marginals * len(mechanisms) * releases > MOST_DISTANCES:
        raise InvalidInput(
            "too many distances to keep",
            got=", ".join(
                number_of(count, noun)
                for count, noun in ((n_marginals, "marginal"), (releases, "release"), (len(mechanisms), "mechanism"))
            ),
            allowed=f"a product up to {MOST_DISTANCES:,}",
            fix="simulate fewer releases, or choose fewer ways",
        )
    keyed = table.cells(name)
    layout = LAYOUTS[cells](keyed, chosen)
    _check_size(layout.n_counts, cells)
    marginals = tuple(marginal for way in chosen for marginal in combinations(range(len(attributes)), way))
    found = simulate_marginals(layout, mechanisms, marginals, int(releases), int(seed), progress)
    return Utility(
        table=table,
        mechanisms=mechanisms,
        sensitive=name,
        cells=cells,
        marginals=tuple(tuple(attributes[place] for place in marginal) for marginal in marginals),
        **vars(found),
        releases=int(releases),
        seed=int(seed),
        domain_size=keyed.domain_size,
        observed=[*(domain.declared for domain in keyed.domains), table.attribute(name).declared].count(False),
    )


def _read_ways(given: int | Sequence[int] | None, n_attributes: int) -> tuple[int, ...]:
    if given is None:
        return USUAL_WAYS[:n_attributes]
    ways = list(given) if isinstance(given, Sequence) else [given]
    if not ways:
        raise InvalidInput("no ways were chosen", allowed=f"whole numbers from 1 to {n_attributes}")
    for way in ways:
        require_whole_number("ways", way, 1)
        if way > n_attributes:
            raise InvalidInput(
                "a marginal cannot have more attributes than the table",
                got=f"way {way:,}" if way < 10**18 else way,
                allowed=f"1 to {n_attributes}: the quasi-identifiers and the sensitive attribute",
            )
    return tuple(sorted({int(way) for way in ways}))


def _check_size(n_counts: int, cells: str) -> None:
    if n_counts > MOST_COUNTS:
        coarser = "use fewer or coarser quasi-identifiers"
        raise InvalidInput(
            "a release of the whole domain has too many counts to simulate"
            if cells == "domain"
            else "a release of the observed cells has too many counts to simulate",
            got=f"{n_counts:,}" if n_counts < 10**15 else f"more than 10^{len(str(n_counts)) - 1}",
            allowed=f"up to {MOST_COUNTS:,}",
            fix=f"noise the observed cells alone (cells='observed', --cells observed), or {coarser}"
            if cells == "domain"
            else coarser,
        )
