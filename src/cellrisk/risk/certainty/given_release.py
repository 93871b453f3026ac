"""The people whose value the attacker infers from one known release; nothing is averaged over releases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel, CountChannel
from cellrisk.risk.certainty import WIDEST
from cellrisk.risk.certainty.count_priors import CategoryPrior, CountPrior, NegativeBinomial
from cellrisk.risk.certainty.empirical import posterior_shares
from cellrisk.risk.certainty.inferences import ConfidentInferences, count_inferences
from cellrisk.risk.certainty.posterior import means_under_noise, posterior_means
from cellrisk.system.arrays import Floats, Integers


def infer_given_release(
    original: Integers,
    released: Integers,
    channel: CountChannel,
    certainties: Sequence[float],
    prior: CountPrior,
    vectors: LabelledCounts | None = None,
    *,
    clamped: bool = True,
) -> tuple[ConfidentInferences, ...]:
    """Return the people inferred with at least each certainty, given these released counts.

    The shares w_k(r_k) / sum_j w_j(r_j) of `find_certainty` at the counts that were released: numbers of people, exact,
    whose means over releases are the figures of `find_certainty`.

    Parameters
    ----------
    original, released
        (groups, categories): the true counts, and what was released of them; 0 where nothing is shown.
    channel
        The law of the release.
    certainties
        Ascending, each above 0.5.
    prior
        The attacker's.
    vectors
        The counts of the table, which the prior "table" needs.
    clamped
        Whether counts below the threshold were released as 0; else they are as the noise made them.

    >>> from cellrisk import Geometric
    >>> counts, seen = np.array([[3, 0], [1, 2]]), np.array([[4, 0], [0, 1]])
    >>> prior = NegativeBinomial((0.3, 0.2), 0.8)
    >>> [found] = infer_given_release(counts, seen, Geometric(epsilon=1.0).channel, [0.9], prior)
    >>> found.right, found.named
    (3.0, 3.0)
    """
    if channel.radius > WIDEST:
        raise InvalidInput(
            "what an attacker infers from this release is not computed",
            got="noise so wide that it has all but drowned the counts",
        )
    if isinstance(prior, NegativeBinomial):
        columns = zip(prior.by_category, released.T, strict=True)
        means = np.stack([_posterior_means(category, shown, channel, clamped) for category, shown in columns], axis=1)
        total = means.sum(axis=1, keepdims=True)
        return count_inferences([(original, means / np.where(total > 0, total, 1.0))], certainties, prior.name)
    if vectors is None:
        raise InvalidInput("the belief 'table' needs the counts of the table")
    distinct, place = np.unique(released, axis=0, return_inverse=True)
    shift = 0 if clamped else 1 - min(int(released.min()), 0)
    shares = posterior_shares(vectors, channel, distinct, shift)[place.reshape(-1)]
    return count_inferences([(original, shares)], certainties, prior.name)


def _posterior_means(prior: CategoryPrior, released: Integers, channel: CountChannel, clamped: bool) -> Floats:
    """Return the posterior mean of one category's count in each group."""
    values, place = np.unique(released, return_inverse=True)
    if prior.shape == 0 and values[-1] > 0 and channel.never_shows_zero:
        raise InvalidInput(
            "the release is impossible under this belief: it gives the shape 0 to a label that is shown",
            fix="give that label a shape above 0, or use the belief negbin",
        )
    if clamped or prior.shape == 0 or not isinstance(channel, AdditiveChannel) or channel.noise.is_none:
        return posterior_means(prior, channel, values)[place.reshape(-1)]
    return means_under_noise(prior, channel.noise, values)[place.reshape(-1)]
