"""A measure of risk: a number for each profile, averaged over cells or over records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.system.arrays import NUMBERS_AT_ONCE, Floats, Integers
from cellrisk.system.choices import Form, Weights, list_words

FORMS: tuple[Form, ...] = list_words(Form)
WEIGHTS: tuple[Weights, ...] = list_words(Weights)

SETTINGS_AT_ONCE = 64
NEGLIGIBLE_RISK = 1e-16
"""A risk that is certain to be below this is given as 0."""

RisksByForm = dict[str, Floats]
"""A risk for each form: (profiles, settings)."""


class Measure(ABC):
    """A question about a cell, a function of its counts and of a `CountChannel`. Averages follow.

    ``published`` is the paper's closed form, a bound where cells are heterogeneous (and not even that with three or
    more categories present); ``exact`` is the probability that the released cell shows one category, and one that is
    there; ``tight`` counts only the records whose own category is shown.
    """

    name: ClassVar[str]
    one_number: ClassVar[bool] = False
    """True if the measure describes the table as a whole, so weights do not matter."""
    direct: ClassVar[bool] = False
    """True if the risk is as quick to compute as its bound."""

    @abstractmethod
    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        """Return the risk of one cell of each profile, for each setting: at least in the forms that are asked for."""

    @abstractmethod
    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        """Return how many categories the cell of each profile is expected to hold, and how likely it holds any."""

    def limit(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        """Return the risk under infinite noise, where each of the K categories is shown with probability 1/2.

        A category is then shown alone with probability 2^-K: exact = 2^-K E C, C the number of categories present, and
        tight = 2^-K P(C > 0), because the shares of the categories present sum to 1. published is its closed form. No
        sum runs over counts, whatever the size of a cell.
        """
        risks = {"own": np.zeros((len(block), len(channel)))}  # one record changes nothing
        risks |= self.risk(block, n_levels, channel, ("published",)) if "published" in forms else {}
        for form, total in zip(("exact", "tight"), self.labels_present(block), strict=True):
            if form in forms:
                risks[form] = np.repeat(np.ldexp(total, -n_levels)[:, None], len(channel), axis=1)
        return risks

    def reduce(self, profiles: Profiles) -> Profiles:
        """Merge the profiles that this measure cannot tell apart."""
        return profiles

    def pieces(self, profiles: Profiles, channel: CountChannel) -> Iterator[Block]:
        """Yield all profiles in their order, as many together as are worked on together."""
        for block in profiles.blocks:
            step = max(1, 4 * NUMBERS_AT_ONCE // (len(channel) * block.counts.shape[1]))
            for start in range(0, len(block), step):
                yield block[start : start + step]

    def risks(self, profiles: Profiles, channel: CountChannel, form: str) -> Floats:
        """Return the risk of every profile, one block after the other: (profiles, settings)."""
        n_levels, pieces = profiles.n_levels, self.pieces(profiles, channel)
        return np.concatenate([self.risk(piece, n_levels, channel, (form,))[form] for piece in pieces])

    def average(
        self, profiles: Profiles, channel: CountChannel, forms: Sequence[str] = FORMS
    ) -> dict[tuple[str, str], Floats]:
        """Return the average over cells (``uniform``) and over records (``records``) by form, one value a setting.

        exact and tight are at most K max(q)^(K-1): 0 stands for what is certain to be below 1e-16.
        """
        if not profiles.blocks:
            raise InvalidInput("a table without records has no risk", code="no-records")
        merged = self.reduce(profiles)
        totals: dict[tuple[str, str], Floats]
        totals = {(form, weights): np.zeros(len(channel)) for form in forms for weights in WEIGHTS}
        finite, infinite = np.flatnonzero(~channel.infinite), np.flatnonzero(channel.infinite)
        groups: list[Any] = [(infinite, self.limit, forms)]
        for start in range(0, len(finite), SETTINGS_AT_ONCE):
            settings = finite[start : start + SETTINGS_AT_ONCE]
            largest = merged.n_levels * channel[settings].largest_p_zero ** (merged.n_levels - 1)
            matters = (largest >= NEGLIGIBLE_RISK) | self.direct
            closed = tuple(form for form in forms if form == "published")
            groups += [(settings[matters], self.risk, forms), (settings[~matters], self.risk, closed)]
        for settings, find, asked in (group for group in groups if len(group[0]) and group[2]):
            part = channel[settings]
            for block in self.pieces(merged, part):
                risks = find(block, merged.n_levels, part, asked)
                for form in asked:
                    totals[form, "uniform"][settings] += block.cells @ risks[form]
                    totals[form, "records"][settings] += block.records @ risks[form]
        for form in forms:
            totals[form, "uniform"] /= profiles.n_cells
            totals[form, "records"] /= profiles.n_records
        return totals


def join_blocks(profiles: Profiles) -> Iterator[Block]:
    """Yield all profiles in their order; blocks with nearly as many categories as each other are joined, with counts
    of 0 for the categories that a cell lacks."""
    waiting: list[Block] = []
    for block in [*profiles.blocks, None]:
        if waiting and (block is None or block.counts.shape[1] > 1.5 * waiting[0].counts.shape[1] + 1):
            width = waiting[-1].counts.shape[1]
            counts = [np.pad(part.counts, ((0, 0), (0, width - part.counts.shape[1]))) for part in waiting]
            cells, records = ([getattr(part, name) for part in waiting] for name in ("cells", "records"))
            yield Block(*(np.concatenate(parts) for parts in (counts, cells, records)))
            waiting = []
        if block is not None:
            waiting.append(block)


def published_risk(all_same: Floats, sizes: Integers, n_levels: int, channel: CountChannel) -> Floats:
    """Return the paper's two-term form, for any noise: (cells, settings).

    S s(n) q(0)^(K-1) + 1(n >= 2) (1 - S) q(0)^(K-2) [s(n-1) q(1) + q(n-1) s(1)], S the probability that all n
    records share a category (Theorems 1 and 3 as the supplement derives them).
    """
    distinct, row = np.unique(sizes, return_inverse=True)
    first, second = published_terms(distinct, n_levels, channel)
    share = all_same[:, None]
    return share * first[row] + (1.0 - share) * second[row]


def published_terms(sizes: Integers, n_levels: int, channel: CountChannel) -> tuple[Floats, Floats]:
    """Return the two brackets of the published form at each size: a homogeneous cell's, and a heterogeneous one's."""
    same = channel.p_positive(sizes) * channel.q0 ** (n_levels - 1)
    one = np.array([1])
    others = np.maximum(sizes - 1, 0)
    mixed = channel.p_positive(others) * channel.p_zero(one) + channel.p_zero(others) * channel.p_positive(one)
    return same, mixed * channel.q0 ** (n_levels - 2) * (sizes >= 2)[:, None]
