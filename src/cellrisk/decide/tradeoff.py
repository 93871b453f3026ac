"""The risk-utility map: risk and usefulness along epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.sweep import MeasuredRisk
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_whole_number, require_within
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

POINTS = 15
NARROWED = 1.005
"""The smallest epsilon is narrowed to this factor: the TVD itself is an estimate from simulated releases."""


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
    """Risk and mean TVD along epsilon, and the smallest epsilon with a TVD within the limit."""

    limit: TvdLimit
    epsilon: Floats
    risk: Floats
    tvd: Floats
    least_epsilon: float | None
    """The smallest epsilon, on its safe side; None where the TVD is above the limit at every epsilon of the range."""

    def restrict(self, intervals: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        """The part of each interval in which the TVD is within its limit too."""
        if self.least_epsilon is None:
            return ()
        least = self.least_epsilon
        return tuple((max(low, least), high) for low, high in intervals if high >= least)

    def at(self, epsilon: float) -> float:
        """The TVD at an epsilon, between the points that were simulated."""
        return float(np.interp(math.log(epsilon), np.log(self.epsilon), self.tvd))

    def breaks(self, epsilon: float) -> bool:
        """Whether the TVD is above its limit there."""
        return self.least_epsilon is None or epsilon < self.least_epsilon

    def to_dict(self) -> dict[str, Any]:
        points = zip(self.epsilon.tolist(), self.risk.tolist(), self.tvd.tolist(), strict=True)
        return {
            "way": self.limit.way,
            "releases": self.limit.releases,
            "seed": self.limit.seed,
            "max_tvd": self.limit.max_tvd,
            "least_epsilon": self.least_epsilon,
            "points": [{"epsilon": epsilon, "risk": risk, "tvd": tvd} for epsilon, risk, tvd in points],
        }


def find_trade_off(
    table: FrequencyTable,
    measured: MeasuredRisk,
    mechanism: Mechanism,
    searched: tuple[float, float],
    limit: TvdLimit,
    progress: Progress | None = None,
) -> TradeOff:
    """Simulates releases along epsilon, with the same draws at each, so that the TVD falls as epsilon grows."""
    from cellrisk.decide.usefulness import utility

    how: dict[str, Any] = {"releases": limit.releases, "seed": limit.seed}

    def simulate(epsilon: float) -> float:
        """The mean TVD at an epsilon, of the sensitive attribute that fares worst."""
        found = [
            utility(table, mechanism.with_epsilon(epsilon), ways=limit.way, sensitive=name, **how)
            for name in table.sensitive
        ]
        return max(float(each.mean_tvd(limit.way)[0]) for each in found)

    points = np.geomspace(*searched, POINTS)
    points[0], points[-1] = searched
    known: dict[float, float] = {}
    for place, epsilon in enumerate(points.tolist()):
        known[epsilon] = simulate(epsilon)
        if progress is not None:
            progress((place + 1) / (POINTS + 8))
    above = max((epsilon for epsilon, tvd in known.items() if tvd > limit.max_tvd), default=0.0)
    least = min((epsilon for epsilon in known if epsilon > above), default=None)
    while least is not None and above and least / above > NARROWED:
        middle = math.sqrt(above * least)
        known[middle] = simulate(middle)
        above, least = (middle, least) if known[middle] > limit.max_tvd else (above, middle)
    epsilons = np.array(sorted(known))
    tvds = np.array([known[epsilon] for epsilon in epsilons.tolist()])
    return TradeOff(limit, epsilons, measured.at(mechanism, epsilons).max(axis=0), tvds, least)
