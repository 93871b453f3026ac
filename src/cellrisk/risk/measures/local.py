"""Local risk: this very table, the randomness of the noise alone (Definition 6); P(exactly one category is shown)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.noise.channel import CountChannel, at_each
from cellrisk.risk.measures.measure import Measure, RisksByForm, published_risk
from cellrisk.system.arrays import Floats


def exactly_one(q: Sequence[Floats] | Floats, s: Sequence[Floats] | Floats) -> Floats:
    """Return sum_k s_k prod_{j != k} q_j: the probability that one category is shown and all others are not.

    >>> float(exactly_one(np.array([0.5, 0.2]), np.array([0.5, 0.8])))
    0.5
    """
    return np.asarray(join_categories(np.asarray(q), np.asarray(s))[1])


def join_categories(none: Any, one: Any) -> tuple[Any, Any]:
    """Return prod_k q_k and sum_k s_k prod_{j != k} q_j over the first axis of q and s.

    Two halves at a time are joined by "none is shown" and "one is shown", so every term is positive and nothing
    cancels.
    """
    while len(none) > 1:
        half = len(none) // 2
        first, second, rest = slice(0, half), slice(half, 2 * half), slice(2 * half, None)
        joined = one[first] * none[second] + none[first] * one[second]
        both = none[first] * none[second]
        if len(none) % 2:
            joined, both = np.concatenate([joined, one[rest]]), np.concatenate([both, none[rest]])
        none, one = both, joined
    return none[0], one[0]


def each_alone(q: Sequence[Floats] | Floats, s: Sequence[Floats] | Floats, axis: int = 0) -> Floats:
    """Return s_k prod_{j != k} q_j for each category k, an axis: this one is shown and all others are not.

    Products from both sides, so nothing is divided.

    >>> each_alone(np.array([0.5, 0.25]), np.array([0.5, 0.75])).tolist()
    [0.125, 0.375]
    """
    zero, alone = np.moveaxis(np.asarray(q), axis, 0), np.moveaxis(np.array(s), axis, 0)
    alone[1:] *= np.cumprod(zero[:-1], axis=0)
    alone[:-1] *= np.cumprod(zero[:0:-1], axis=0)[::-1]
    return np.moveaxis(alone, 0, axis)


@dataclass(frozen=True)
class Local(Measure):
    """How likely does the released cell reveal its category? No assumption about where the counts came from.

    exact: sum over categories k present of s(n_k) prod_{j != k} q(n_j), with q(0) for each absent category.
    tight: each term times n_k/n (the paper's Eq. 7), the share of the cell's records whose category is shown.
    Averaged over records, tight is the expected share of people whose value an attacker reads off correctly.
    own: tight with p_pivotal in place of s: the share of people revealed because of their own record.
    """

    name: ClassVar[str] = "local"
    direct: ClassVar[bool] = True

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        return np.count_nonzero(block.counts, axis=1).astype(np.float64), np.ones(len(block))

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        risks: RisksByForm = {}
        if "published" in forms:
            homogeneous = np.full(len(block), 1.0 if block.counts.shape[1] == 1 else 0.0)
            risks["published"] = published_risk(homogeneous, block.sizes, n_levels, channel)
        rest = [form for form in forms if form != "published"]
        if rest:
            q, s = at_each(channel.p_zero, block.counts.T), at_each(channel.p_positive, block.counts.T)
            absent = channel.q0 ** (n_levels - block.counts.shape[1])
            terms = {"exact": s, "tight": s * (share := (block.counts.T / block.sizes)[..., None])}
            if "own" in rest:
                terms["own"] = at_each(channel.p_pivotal, block.counts.T) * share
            risks |= {form: exactly_one(q, terms[form]) * absent for form in rest}
        return risks
