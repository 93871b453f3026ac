"""Shrinkage risk: labels drawn from proportions that themselves follow a Dirichlet law over cells (Definition 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.risk.measures.dirichlet import Dirichlet, all_same, labels_drawn
from cellrisk.risk.measures.label_counts import consecutive_pmf, count_pmf
from cellrisk.risk.measures.measure import Measure, RisksByForm, published_risk
from cellrisk.risk.measures.sequences import convolve, convolve_fast
from cellrisk.risk.measures.sizes import SizeDistribution
from cellrisk.risk.measures.survival import Survival, SurvivalTable
from cellrisk.risk.measures.transforms import MANY, risk_by_transform
from cellrisk.system.arrays import Floats, Integers

NUMBERS_IN_MEMORY = 1 << 24
"""The convolutions of many labels are kept; noises are taken few at a time where they would need more than this."""


COUNTS_IN_FULL = 1 << 18
"""Of cells larger than this the probabilities of those counts alone are computed that noise can reach."""
LONG = 512
"""Sequences of more counts are convolved by Fourier transform."""
HUGE = 1 << 22
"""In cells of more records than this, labels that vanish have few of the counts there are, unless noise is as wide."""

Convolve = Callable[[Floats, Floats, int], Floats]


@dataclass(frozen=True)
class Shrinkage(Measure):
    """What is the risk of a cell of n records whose proportions are drawn from a Dirichlet(alpha)?

    The counts are Dirichlet-multinomial: independent negative binomial counts (shapes alpha_k, one common success
    probability), given that their total is n. So the expected risk's convolutions serve again, with negative
    binomial weights, and one pass gives every n at once. At alpha. = 0 every cell is homogeneous, at alpha. =
    infinity the counts are multinomial with the pooled proportions.
    """

    prior: Dirichlet
    name: ClassVar[str] = "shrinkage"
    cut: ClassVar[bool] = True

    def reduce(self, profiles: Profiles) -> Profiles:
        return profiles.by_size()

    def rows_at_once(self, block: Block, survival: Survival) -> int:
        return len(block)

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        return labels_drawn(self.prior, block.sizes), np.ones(len(block))

    def risk(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> RisksByForm:
        return risk_by_size(self.prior, block.sizes, survival, forms)


@dataclass(frozen=True)
class MarginalShrinkage(Measure):
    """The shrinkage risk of a cell whose size is random too: one number for the table (Definition 10)."""

    prior: Dirichlet
    sizes: SizeDistribution
    name: ClassVar[str] = "marginal_shrinkage"
    cut: ClassVar[bool] = True
    one_number: ClassVar[bool] = True

    def reduce(self, profiles: Profiles) -> Profiles:
        """Nothing of the cells matters any more: one row stands for all."""
        one = np.ones((1, 1), np.int64)
        whole = Block(one, np.array([profiles.n_cells]), np.array([profiles.n_records]))
        return Profiles(profiles.n_levels, (whole,))

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        sizes, chance = self.sizes.likely(len(self.prior.mean))
        some = 1.0 if self.sizes.truncated else self.sizes.not_empty
        return np.full(len(block), chance @ labels_drawn(self.prior, sizes)), np.full(len(block), some)

    def risk(self, block: Block, n_levels: int, survival: Survival, forms: Sequence[str]) -> RisksByForm:
        sizes, chance = self.sizes.likely(n_levels)
        risks = risk_by_size(self.prior, sizes, survival, forms)
        return {form: np.repeat((chance @ risk)[None], len(block), axis=0) for form, risk in risks.items()}


def risk_by_size(prior: Dirichlet, sizes: Integers, survival: Survival, forms: Sequence[str]) -> RisksByForm:
    """Shrinkage risk of a cell of each size: (sizes, noises) for each form."""
    n_levels = len(prior.mean)
    risks: RisksByForm = {}
    if "published" in forms:
        risks["published"] = published_risk(all_same(prior, sizes), sizes, n_levels, survival)
    if "exact" in forms or "tight" in forms:
        exact, tight = _dirichlet_multinomial_risk(prior, sizes, survival)
        risks.update({form: risk for form, risk in (("exact", exact), ("tight", tight)) if form in forms})
    return risks


def _dirichlet_multinomial_risk(prior: Dirichlet, sizes: Integers, survival: Survival) -> tuple[Floats, Floats]:
    n_levels = len(prior.mean)
    if prior.concentration == 0:
        risk = survival.survive(sizes) * survival.vanish_empty ** (n_levels - 1)
        return risk, risk
    labels = Counter(share for share in prior.mean if share > 0)
    absent = survival.vanish_empty ** (n_levels - labels.total())
    exact = np.empty((len(sizes), len(survival)))
    tight = np.empty_like(exact)
    few = labels.total() <= MANY
    small = (sizes <= LONG) & few
    short = (survival.reaches <= LONG) & few
    for rows, noises in ((small, np.ones_like(short)), (~small, short)):
        if rows.any() and noises.any():
            risks = _term_by_term(prior.concentration, labels, sizes[rows], survival.some(np.flatnonzero(noises)))
            exact[np.ix_(rows, noises)], tight[np.ix_(rows, noises)] = risks
    shares, times = np.array(list(labels)), np.array(list(labels.values()))
    for noise in np.flatnonzero(~short).tolist():
        alone = survival.some([noise])
        huge = (sizes > HUGE) & few & (alone.reach * labels.total() <= HUGE)
        if huge.any():
            both = _term_by_term(prior.concentration, labels, sizes[huge], alone, convolve_fast)
            exact[huge, noise], tight[huge, noise] = both[0][:, 0], both[1][:, 0]
        rest = ~(small | huge)
        if rest.any():
            table = alone.up_to(int(sizes[rest].max()))
            both = risk_by_transform(shares, times, prior.concentration, sizes[rest], table)
            exact[rest, noise], tight[rest, noise] = both
    return exact * absent, tight * absent


def _term_by_term(
    concentration: float, labels: Counter[float], sizes: Integers, survival: Survival, join: Convolve = convolve
) -> tuple[Floats, Floats]:
    """Exact and tight risk over labels that are few and sequences that are short: (sizes, noises)."""
    exact = np.empty((len(sizes), len(survival)))
    tight = np.empty_like(exact)
    for rows in _groups(concentration, sizes):
        here = sizes[rows]
        largest = int(here.max())
        table = survival.up_to(largest)
        laws = {share: _Law(share, concentration, largest) for share in labels}
        total = count_pmf(here, 1.0, concentration, largest)
        step = max(1, NUMBERS_IN_MEMORY // (labels.total() * min(largest + 1, table.end + 1)))
        for start in range(0, len(survival), step):
            few = slice(start, start + step)
            one, records = _survivors(labels, laws, table[few], here, join)
            exact[rows, few] = one / total[:, None]
            tight[rows, few] = records / (total * here)[:, None]
    return exact, tight


class _Law:
    """How likely each count of one label is; of a very large cell only the counts that are asked for."""

    def __init__(self, share: float, concentration: float, largest: int) -> None:
        self._given = share, concentration, largest
        self._every = count_pmf(np.arange(largest + 1), *self._given) if largest < COUNTS_IN_FULL else None

    def at(self, counts: Integers) -> Floats:
        return np.asarray(count_pmf(counts, *self._given) if self._every is None else self._every[counts])

    def down_from(self, last: int, width: int) -> Floats:
        """At ``last`` and the counts below it, ``width`` in all."""
        first = last - width + 1
        if self._every is not None:
            return self._every[first : last + 1][::-1]
        share, concentration, largest = self._given
        return consecutive_pmf(np.array([first]), width, np.array([share]), concentration, largest)[0, ::-1]


def _survivors(
    labels: Counter[float], laws: dict[float, _Law], table: SurvivalTable, sizes: Integers, join: Convolve
) -> tuple[Floats, Floats]:
    """sum_k [a_k * prod_{j != k} b_j](n) and the same with m a_k(m), at each size n: (sizes, noises)."""
    limit = int(sizes.max())  # one record at least is the survivor's
    kept = min(limit, table.end + 1)
    vanish = {share: (table.vanish[:kept] * law.at(np.arange(kept))[:, None])[None] for share, law in laws.items()}
    one = np.zeros((len(sizes), table.vanish.shape[1]))
    records = np.zeros_like(one)
    for share, others in _leave_one_out(labels, vanish, limit, join):
        for total, found in zip((one, records), _at_sizes(others, laws[share], table, sizes), strict=True):
            total += labels[share] * found
    return one, records


def _at_sizes(others: Floats, law: _Law, table: SurvivalTable, sizes: Integers) -> tuple[Floats, Floats]:
    """The convolution of the other labels with s(m) P(m) and m s(m) P(m), m >= 1, at each size: (sizes, noises)."""
    limit = int(sizes.max()) + 1
    if limit <= 16 * len(sizes):
        counts = np.arange(limit)
        survive = table.survive_at(counts) * (law.at(counts) * (counts > 0))[:, None]
        one, records = (convolve(others, part[None], limit)[0, sizes] for part in (survive, survive * counts[:, None]))
        return np.asarray(one), np.asarray(records)
    one, records = np.empty((2, len(sizes), others.shape[2]))
    for row, size in enumerate(sizes):
        left = np.arange(size, max(0, size - others.shape[1]), -1)
        chance, rest = law.down_from(int(size), len(left)), others[0, : len(left)] * table.survive_at(left)
        one[row], records[row] = chance @ rest, (chance * left) @ rest
    return one, records


def _leave_one_out(
    labels: Counter[float], vanish: dict[float, Floats], limit: int, join: Convolve
) -> Iterator[tuple[float, Floats]]:
    """For each distinct label, the convolution of all labels but one of its kind."""
    ordered = sorted(labels.elements())
    unit = np.ones((1, 1, next(iter(vanish.values())).shape[2]))
    before = [unit]
    for share in ordered[:-1]:
        before.append(join(before[-1], vanish[share], limit))
    after = unit
    for place in range(len(ordered) - 1, -1, -1):
        share = ordered[place]
        if place == 0 or ordered[place - 1] != share:  # equal labels stand together; the first speaks for all
            yield share, join(before[place], after, limit)
        after = join(after, vanish[share], limit)


def _groups(concentration: float, sizes: Integers) -> Iterator[Integers]:
    """Rows of sizes that one choice of the common mean serves without underflow: largest sizes first."""
    left = np.argsort(-sizes, kind="stable")
    while len(left):
        fits = count_pmf(sizes[left], 1.0, concentration, int(sizes[left[0]])) > 1e-200
        yield left[fits]
        left = left[~fits]
