"""Certainty: how many people's values an informed attacker infers, who holds a prior and applies Bayes' rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from cellrisk.counts.counting import MOST_LABELS
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import UNCHANGED, CountChannel
from cellrisk.risk.attacks.acceptance import Scores, informed_attack, possible_values
from cellrisk.risk.certainty.count_priors import CountPrior, NegativeBinomial, check_belief, read_belief
from cellrisk.risk.certainty.inferences import (
    ConfidentInferences,
    are_few,
    count_inferences,
    infer_from_table,
    list_releases,
    most_moved,
    odds_against,
    to_shares,
)
from cellrisk.risk.certainty.posterior import posterior_means
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_array

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

USUAL_CERTAINTY = 0.95
USUAL_BELIEF = "negbin"
WIDEST, WIDEST_OF_MANY = 1 << 20, 1 << 18
"""Noise that reaches farther, in counts, with two categories or with more, has all but drowned the counts."""

__all__ = ["ConfidentInferences", "CountPrior", "NegativeBinomial", "check_belief", "read_belief"]


def read_certainties(given: float | Sequence[float]) -> tuple[float, ...]:
    """Return certainties as a user gives them, each once, ascending."""
    values = np.unique(read_array("certainty", given))
    if not len(values) or not ((values > 0.5) & (values < 1)).all():
        what = "must be above 0.5 and below 1: only one value of a person can be named so"
        raise InvalidInput(what, option="certainty", allowed="for example 0.95, or 0.8,0.9,0.95")
    return tuple(values.tolist())


def why_unknown(attribute: Attribute) -> str | None:
    """Return why no certainty is known for this attribute; None if it is."""
    if attribute.n_levels > MOST_LABELS:
        return f"more than {MOST_LABELS} labels"
    if attribute.several and attribute.people is None:
        return "it is not known which records are of one person: name the column of people"
    return "too many different cells" if attribute.vectors is None else None


def find_certainty(
    attribute: Attribute, channel: CountChannel, certainties: Sequence[float], prior: CountPrior
) -> tuple[ConfidentInferences, ...]:
    """Return how many people's values an attacker infers with at least each certainty, and how many of them correctly.

    The attacker's counts are independent with known laws: with w_k(r) = E[N_k | r], category k has the probability
    w_k(r_k) / sum_j w_j(r_j), exact for a person drawn at random whose group is known. Then

        right(tau) = sum_i sum_k n_ik P(share_k >= tau),    named(tau) = sum_i n_i sum_k P(share_k >= tau).

    The prior is the attacker's; the figures are exact for the true table whatever the prior. Two categories are exact,
    more lie between two ends, unless the releases are few enough to go through; the prior "table" is then simulated,
    with its standard error.
    """
    vectors = attribute.vectors
    if vectors is None:
        raise InvalidInput(f"no certainty can be computed for '{attribute.name}'", got=why_unknown(attribute) or "")
    shapes = np.asarray(prior.shapes) if isinstance(prior, NegativeBinomial) else np.ones(vectors.n_levels)
    impossible = ((vectors.counts > 0).any(axis=0) & (shapes == 0)).any()
    if impossible and float(channel.p_positive(np.zeros(1))[0, 0]) < UNCHANGED:  # a count of 0 is never shown
        what = "the release is impossible under this belief: it gives the shape 0 to a label that somebody has"
        raise InvalidInput(what, fix="give that label a shape above 0, or use the belief negbin")
    if channel.infinite[0] or channel.radius > (WIDEST if vectors.n_levels == 2 else WIDEST_OF_MANY):
        return _infer_by_shares(vectors, channel, certainties, prior)
    if not isinstance(prior, NegativeBinomial):
        return infer_from_table(vectors, channel, certainties)
    if vectors.n_levels > 2 and are_few(vectors, channel):
        return count_inferences(_every_release(vectors, channel, prior), certainties, prior.name)
    scores = tuple(
        Scores(channel, values, posterior_means(category, channel, values))
        for category, values in zip(prior.by_category, possible_values(vectors.counts, channel), strict=True)
    )
    attacks = [informed_attack(scores, (odds_against(tau),) * vectors.n_levels) for tau in certainties]
    inferred = np.stack([attack.succeed(vectors, channel, absent=True).revealed for attack in attacks], axis=-1)
    right = np.einsum("v,vk,evkt->te", vectors.cells, vectors.counts, inferred).tolist()
    named = np.einsum("v,evkt->te", vectors.cells * vectors.sizes, inferred).tolist()
    return tuple(
        ConfidentInferences(certainty, prior.name, *correct, *claimed)
        for certainty, correct, claimed in zip(certainties, right, named, strict=True)
    )


def _every_release(
    vectors: LabelledCounts, channel: CountChannel, prior: NegativeBinomial
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the people expected in each release, and the posterior shares there: (releases, categories)."""
    values = channel.support(vectors.counts)
    means = np.stack([posterior_means(category, channel, values) for category in prior.by_category])
    for released, people in list_releases(vectors, channel):
        yield people, to_shares(means[np.arange(vectors.n_levels), np.searchsorted(values, released)])


def _infer_by_shares(
    vectors: LabelledCounts, channel: CountChannel, certainties: Sequence[float], prior: CountPrior
) -> tuple[ConfidentInferences, ...]:
    """Return the inferences under noise that has drowned the counts: a common category is inferred for everybody.

    If it matters how far the odds may move, the ends are none and all.
    """
    shares, most = vectors.cells @ vectors.counts, float(vectors.counts.max())
    if isinstance(prior, NegativeBinomial):
        shares, most = np.asarray(prior.shapes), max(category.last_likely(30.0) for category in prior.by_category)
    moved = most_moved(channel, most)
    commonest = int(np.argmax(shares))
    log_odds = float(special.logit(shares[commonest] / shares.sum()))
    have, everybody = float(vectors.cells @ vectors.counts[:, commonest]), float(vectors.n_records)
    inferences = []
    for certainty in certainties:
        needed = -math.log(odds_against(certainty))
        low, high = float(log_odds - moved >= needed), float(log_odds + moved >= needed)
        # If it is not sure that the commonest is inferred for all, another might be for some.
        right = (low * have, high * (have if moved == 0 or low else everybody))
        inferences.append(ConfidentInferences(certainty, prior.name, *right, low * everybody, high * everybody))
    return tuple(inferences)
