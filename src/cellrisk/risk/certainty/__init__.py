"""Certainty: how many people's value an attacker names who knows the mechanism and does the mathematics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.counts.counting import MOST_LABELS
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import Noise
from cellrisk.risk.certainty.beliefs import Belief, NegativeBinomial, check_belief, read_belief
from cellrisk.risk.certainty.channel import Channel, expected_counts
from cellrisk.risk.certainty.many_labels import name_many
from cellrisk.risk.certainty.named_people import NamedPeople
from cellrisk.risk.certainty.table_belief import name_by_table
from cellrisk.risk.certainty.two_labels import name_two, odds_against
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_array

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

USUAL_CERTAINTY = 0.95
USUAL_BELIEF = "negbin"
WIDEST, WIDEST_OF_MANY = 1 << 20, 1 << 18
"""Noise that reaches farther, with two labels or with more, has all but drowned the counts."""
HISTOGRAM_EDGES = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)

__all__ = [
    "HISTOGRAM_EDGES",
    "USUAL_BELIEF",
    "USUAL_CERTAINTY",
    "Belief",
    "NamedPeople",
    "NegativeBinomial",
    "certain_shares",
    "check_belief",
    "count_by_certainty",
    "find_certainty",
    "find_spread",
    "read_belief",
    "read_certainties",
    "why_unknown",
]


def read_certainties(given: float | Sequence[float]) -> tuple[float, ...]:
    """Certainties as a user gives them, each once, ascending.

    >>> read_certainties([0.95, 0.8])
    (0.8, 0.95)
    """
    values = np.unique(read_array("certainty", given))
    if not len(values) or not ((values > 0.5) & (values < 1)).all():
        raise InvalidInput(
            "certainty must be above 0.5 and below 1: only one value of a person can be named so",
            allowed="for example 0.95, or 0.8,0.9,0.95",
        )
    return tuple(values.tolist())


def why_unknown(attribute: Attribute) -> str | None:
    """Why no certainty can be told for this attribute; None where it can."""
    if attribute.n_levels > MOST_LABELS:
        return f"more than {MOST_LABELS} labels"
    return "too many different cells" if attribute.vectors is None else None


def find_certainty(
    attribute: Attribute, channel: AdditiveChannel, certainties: Sequence[float], belief: Belief
) -> tuple[NamedPeople, ...]:
    """How many people's value does an attacker name with at least each certainty, and how many of them rightly?

    He believes counts to be independent with known laws, computes w_k(r) = E[N_k | r], and gives label k the
    probability w_k(r_k) / sum_j w_j(r_j): exact for a person drawn at random whose cell is known. Then

        right(tau) = sum_i sum_k n_ik P(share_k >= tau),    named(tau) = sum_i n_i sum_k P(share_k >= tau).

    The belief is the attacker's; the figures are exact for the true table whatever he believes. Two labels are exact,
    more lie between two ends; the belief "table" with more than two labels is simulated, with its standard error.
    """
    vectors, noise = attribute.vectors, channel.noises[0]
    if vectors is None:
        raise InvalidInput(f"no certainty can be told for '{attribute.name}'", got=why_unknown(attribute) or "")
    if noise.is_infinite:
        return _without_knowledge(vectors, certainties, belief, 0.0)
    if noise.is_none and isinstance(belief, NegativeBinomial):
        _refuse_impossible(vectors, belief)
    seen = Channel(noise, channel.threshold)
    if _drowned(seen, vectors):
        return _without_knowledge(vectors, certainties, belief, _most_learnt(vectors, noise, belief))
    if not isinstance(belief, NegativeBinomial):
        return name_by_table(vectors, seen, certainties)
    low, high = _name_labels(vectors, seen, certainties, belief)
    own, everybody = vectors.cells[:, None] * vectors.counts, vectors.cells * vectors.sizes
    right = [np.einsum("vk,vkt->t", own, chance).tolist() for chance in (low, high)]
    named = [np.einsum("v,vkt->t", everybody, chance).tolist() for chance in (low, high)]
    return tuple(
        NamedPeople(certainty, belief.name, *ends) for certainty, *ends in zip(certainties, *right, *named, strict=True)
    )


def find_spread(
    attribute: Attribute, channel: AdditiveChannel, certainty: float, belief: Belief
) -> tuple[float, float] | None:
    """The standard deviations over releases of the people named rightly, and of the people named; None where they are
    not known. Cells are independent, and in each at most one label is named."""
    vectors, noise = attribute.vectors, channel.noises[0]
    if vectors is None or not isinstance(belief, NegativeBinomial) or noise.is_infinite:
        return None
    seen = Channel(noise, channel.threshold)
    if _drowned(seen, vectors):
        return None
    low, high = _name_labels(vectors, seen, (certainty,), belief)
    chance = 0.5 * (low + high)[:, :, 0]
    counts = vectors.counts.astype(np.float64)
    mean, square = (counts * chance).sum(axis=1), (counts**2 * chance).sum(axis=1)
    some = np.minimum(chance.sum(axis=1), 1.0)
    right = float(vectors.cells @ np.maximum(square - mean**2, 0.0))
    named = float(vectors.cells @ (vectors.sizes.astype(np.float64) ** 2 * some * (1.0 - some)))
    return math.sqrt(right), math.sqrt(named)


def _drowned(channel: Channel, vectors: LabelledCounts) -> bool:
    """Whether noise reaches so far that it has all but drowned the counts."""
    return channel.reach > (WIDEST if vectors.n_levels == 2 else WIDEST_OF_MANY)


def _name_labels(
    vectors: LabelledCounts, channel: Channel, certainties: Sequence[float], belief: NegativeBinomial
) -> tuple[Floats, Floats]:
    """How likely each label of each vector is named with each certainty: two ends, equal for two labels."""
    behind = [
        expected_counts(believed, channel, channel.values(column))
        for believed, column in zip(belief.by_label, vectors.counts.T, strict=True)
    ]
    if vectors.n_levels == 2:
        found = name_two(vectors, channel, behind, certainties)
        return found, found
    return name_many(vectors, channel, behind, certainties)


def _refuse_impossible(vectors: LabelledCounts, belief: NegativeBinomial) -> None:
    """Without noise, people are shown of a label that is believed to be nobody's: no share follows from that."""
    if (vectors.counts.any(axis=0) & (np.asarray(belief.shapes) == 0)).any():
        raise InvalidInput(
            "the release is impossible under this belief: it gives the shape 0 to a label that somebody has",
            fix="give that label a shape above 0, or use the belief negbin",
        )


def certain_shares(attribute: Attribute, channel: AdditiveChannel, certainty: float, belief: Belief) -> Floats:
    """Return the share of people inferred correctly with that certainty, by setting: the upper end where two differ."""
    settings = (channel[[place]] for place in range(len(channel)))
    found = [find_certainty(attribute, setting, (certainty,), belief)[0].right_high for setting in settings]
    return np.array(found) / attribute.profiles.n_records


def count_by_certainty(attribute: Attribute, channel: AdditiveChannel, belief: Belief) -> list[dict[str, float]]:
    """Return the people by how sure the attacker is: named between two certainties, and how many of them correctly."""
    rows = find_certainty(attribute, channel, HISTOGRAM_EDGES, belief)
    upper = (*HISTOGRAM_EDGES[1:], 1.0)
    named = [row.named for row in rows] + [0.0]
    right = [row.right for row in rows] + [0.0]
    return [
        {
            "from": edge,
            "to": end,
            "named": max(named[place] - named[place + 1], 0.0),
            "right": max(right[place] - right[place + 1], 0.0),
        }
        for place, (edge, end) in enumerate(zip(HISTOGRAM_EDGES, upper, strict=True))
    ]


def _without_knowledge(
    vectors: LabelledCounts, certainties: Sequence[float], belief: Belief, learnt: float
) -> tuple[NamedPeople, ...]:
    """Noise that has drowned the counts: a label that is common enough is named for everybody, or none is.

    ``learnt``: what the logarithm of a label's odds can still move by. Where that decides, the ends are none and all.
    """
    shares = np.asarray(belief.shapes) if isinstance(belief, NegativeBinomial) else vectors.cells @ vectors.counts
    shares = shares / shares.sum()
    commonest = int(np.argmax(shares))
    has, everybody = float(vectors.cells @ vectors.counts[:, commonest]), float(vectors.n_records)
    log_odds = math.log(shares[commonest]) - math.log(max(1.0 - float(shares[commonest]), 1e-300))
    found = []
    for certainty in certainties:
        needed = -math.log(odds_against(certainty))
        low, high = float(log_odds - learnt >= needed), float(log_odds + learnt >= needed)
        # Where it is not sure that the commonest is named for all, another might be for some.
        most = has if learnt == 0 or low else everybody
        found.append(NamedPeople(certainty, belief.name, low * has, high * most, low * everybody, high * everybody))
    return tuple(found)


def _most_learnt(vectors: LabelledCounts, noise: Noise, belief: Belief) -> float:
    """By how much very wide noise can move the logarithm of a label's odds, whatever is released.

    Two counts that differ by d have likelihoods whose ratio is at most e^(d / scale) under noise with exponential
    tails, and e^(10 d / scale) within ten deviations of Gaussian noise; no w_k moves by more. Of the belief, e^-30 is
    left out.
    """
    if isinstance(belief, NegativeBinomial):
        largest = max(believed.last_likely(30.0) for believed in belief.by_label)
    else:
        largest = float(vectors.counts.max())
    return 2.0 * noise.steepest * largest
