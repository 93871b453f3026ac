"""`largest_epsilon`: how much the next release may spend, so that the worst case of all releases is within a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.decide.limits import SMALLEST_EPSILON
from cellrisk.decide.policies import Policies, Policy
from cellrisk.decide.search import find_admissible
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, describe_mechanism
from cellrisk.repeat.accounting.ceilings import describe_ceiling, find_ceiling
from cellrisk.repeat.accounting.composition import Composition, compose
from cellrisk.repeat.accounting.loss import Loss, require_alike, widest
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.sweep import LARGEST_EPSILON
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list, require_within
from cellrisk.system.choices import CompositionMethod, MechanismName, Neighbours
from cellrisk.system.results import Result


@dataclass(frozen=True, eq=False, repr=False)
class NextEpsilon(Result):
    """The answer of `largest_epsilon`."""

    wording = "several_releases"

    setting: Mechanism
    max_ceiling: float
    epsilon: float | None
    """The largest epsilon up to which every smaller one keeps the limit; None if none does."""
    searched: tuple[float, float]
    before: Ceiling
    """The worst case of the releases so far."""
    cumulative: Composition | None
    """The loss of all releases, the next one at ``epsilon``; None if there is none."""
    ceiling: Ceiling | None
    """The worst case then."""

    @property
    def binds(self) -> bool:
        """Return whether the limit ends the range, and not the search or a policy."""
        return self.epsilon != self.searched[1]

    def _numbers(self) -> list[dict[str, float | None]]:
        then = None if self.ceiling is None else self.ceiling.even_two
        return [{"epsilon": self.epsilon, "before": self.before.even_two, "ceiling": then}]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "mechanism": self.setting.name,
            "delta": self.setting.delta,
            "max_ceiling": self.max_ceiling,
            "epsilon": self.epsilon,
            "binds": self.binds,
            "searched": list(self.searched),
            "before": describe_ceiling(self.before),
            "ceiling": describe_ceiling(self.ceiling),
            "cumulative": None if self.cumulative is None else self.cumulative.to_dict(),
            "sentence": self.headline,
        }


def largest_epsilon(
    past: Sequence[Loss],
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    max_ceiling: float,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
    policy: Policy | Policies | None = None,
) -> NextEpsilon:
    """Find the largest epsilon for the next release that keeps the worst case of all releases within a limit.

    It uses no data. The worst case rises with epsilon, so every smaller epsilon keeps the limit too. The end is on the
    safe side, and one part in a million beyond it is not within the limit.

    Parameters
    ----------
    past
        What the releases so far have cost.
    mechanism, delta, neighbours, threshold
        The next release. Of a mechanism that is an object, the epsilon does not matter.
    max_ceiling
        How often an attacker who already knows every other record, and finds two values equally likely, may be
        right: above 0.5, below 1.
    method, total_delta
        How losses are added up, as in `compose`.
    policy
        One to obey beside those that are in force: their limits on the ceiling and on epsilon end the search.

    >>> found = largest_epsilon([], max_ceiling=0.75)  # geometric: e^eps/(1 + e^eps)
    >>> round(found.epsilon, 5)
    1.09861
    """
    losses = tuple(read_list("past", past, "losses"))
    require_alike(losses)
    require_within("max_ceiling", max_ceiling, above=0.5, below=1.0)
    given = describe_mechanism(mechanism, delta=delta, neighbours=neighbours, threshold=threshold)
    setting = given.with_epsilon(SMALLEST_EPSILON)
    if losses:
        setting = setting.with_unit(widest(losses))
    end = min(LARGEST_EPSILON, setting.largest_epsilon, Policies.in_force(policy).largest_epsilon(setting))
    searched = SMALLEST_EPSILON, max(SMALLEST_EPSILON, end)

    def after(*epsilons: float) -> Ceiling:
        """The ceiling of the releases so far and of next ones; refused if it is not known."""
        found, why_not = find_ceiling((*losses, *(Loss.of(setting.with_epsilon(epsilon)) for epsilon in epsilons)))
        if found is None:
            raise InvalidInput(f"these releases have no ceiling: {why_not}", code="no-ceiling")
        return found

    def excess(epsilons: Floats) -> Floats:
        return np.array([after(epsilon).even_two - max_ceiling for epsilon in epsilons.tolist()])

    intervals = find_admissible(excess, *searched, np.inf).intervals
    if not intervals or intervals[0][0] > searched[0]:
        return NextEpsilon(setting, max_ceiling, None, searched, after(), None, None)
    epsilon = intervals[0][1]
    cumulative = compose([*losses, Loss.of(setting.with_epsilon(epsilon))], method=method, delta=total_delta)
    return NextEpsilon(setting, max_ceiling, epsilon, searched, after(), cumulative, after(epsilon))
