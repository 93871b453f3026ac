"""What the attacker names in one release that is in hand: the released counts are known, and nothing is averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.certainty import WIDEST
from cellrisk.risk.certainty.beliefs import Belief, CountBelief, NegativeBinomial
from cellrisk.risk.certainty.channel import FAR, Channel, expected_counts, weighted_mean
from cellrisk.risk.certainty.named_people import NamedPeople, name_where_sure
from cellrisk.risk.certainty.table_belief import find_shares
from cellrisk.system.arrays import Floats, Integers

DROWNED = "its noise is so wide that it has all but drowned the counts"


def name_in_hand(
    original: Integers,
    released: Integers,
    mechanism: Mechanism,
    certainties: Sequence[float],
    belief: Belief,
    vectors: LabelledCounts | None = None,
    *,
    clamped: bool = True,
) -> tuple[NamedPeople, ...]:
    """How many people's value does the attacker name with at least each certainty, given these released counts?

    The shares w_k(r_k) / sum_j w_j(r_j) of `find_certainty` at the counts that were released: numbers of people, exact,
    whose means over releases are the figures of `find_certainty`.

    Parameters
    ----------
    original, released
        (cells, labels): the true counts, and what was released of them; 0 where nothing is shown.
    mechanism
        The one that made the release.
    certainties
        Ascending, each above 0.5.
    belief
        What he believes before he sees the release.
    vectors
        The counts of the table, which the belief "table" knows.
    clamped
        Whether counts below the threshold were released as 0; else they are as the noise made them.

    >>> from cellrisk import Geometric
    >>> counts, seen = np.array([[3, 0], [1, 2]]), np.array([[4, 0], [0, 1]])
    >>> belief = NegativeBinomial((0.3, 0.2), 0.8)
    >>> [found] = name_in_hand(counts, seen, Geometric(epsilon=1.0), [0.9], belief)
    >>> found.right, found.named
    (3.0, 3.0)
    """
    channel = Channel(mechanism.noise, mechanism.threshold)
    if channel.reach > WIDEST:
        raise InvalidInput("nothing can be told of this release", got=DROWNED)
    if clamped:
        released = np.maximum(released, channel.zero)
    else:
        channel.zero = int(released.min()) - 1  # no value stands for all below it
    if isinstance(belief, NegativeBinomial):
        shares = _share(belief, channel, released, clamped)
    else:
        if vectors is None:
            raise InvalidInput("the belief 'table' needs the counts of the table")
        distinct, place = np.unique(released, axis=0, return_inverse=True)
        shares = find_shares(vectors, channel, distinct)[place.reshape(-1)]
    return name_where_sure([(original, shares)], certainties, belief.name)


def _share(belief: NegativeBinomial, channel: Channel, released: Integers, clamped: bool) -> Floats:
    """What the attacker believes of a person in each cell: (cells, labels). Nothing where nobody is believed to be."""
    behind = np.empty(released.shape)
    seen = channel if clamped else Channel(channel.noise, 0.5)
    for label, believed in enumerate(belief.by_label):
        values, place = np.unique(released[:, label], return_inverse=True)
        if believed.shape == 0 and channel.noise.is_none and values[-1] > channel.zero:
            raise InvalidInput(
                "the release is impossible under this belief: it gives the shape 0 to a label that is shown",
                fix="give that label a shape above 0, or use the belief negbin",
            )
        low, high = values[values <= seen.zero], values[values > seen.zero]
        zero, *rest = expected_counts(believed, seen, np.concatenate([[seen.zero], high])).tolist()
        below = [zero if clamped else _behind_negative(believed, channel.noise, value) for value in low.tolist()]
        behind[:, label] = np.array(below + rest)[place.reshape(-1)]
    total = behind.sum(axis=1, keepdims=True)
    return np.asarray(behind / np.where(total > 0, total, 1.0))


def _behind_negative(believed: CountBelief, noise: Noise, value: int) -> float:
    """E[N | a released value that was not clamped], up to 0: sum n p(n) f(v - n) / sum p(n) f(v - n)."""
    if believed.shape == 0 or noise.is_none:
        return 0.0
    last = min(believed.last_likely(FAR), value + 750.0 * noise.scale + 10.0)
    counts = np.arange(max(math.ceil(last), 1) + 1.0)
    with np.errstate(divide="ignore"):
        logs = believed.log_chance(counts) + np.log(noise.mass(value - counts))
    if not np.isfinite(logs).any():
        raise InvalidInput(
            "a released count is impossible under this mechanism",
            fix="give the mechanism that made the release",
        )
    return float(weighted_mean(logs, counts))
