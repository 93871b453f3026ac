"""What attacks that always guess have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures import Local
from cellrisk.risk.measures.measure import RisksByForm
from cellrisk.system.arrays import Floats, Integers

ROUNDING = 1e-9
"""How far above 1 a probability may come out, as a sum of many rounded terms."""


class Guess(Local):
    """An attack that always names one category, or none: tight, the share of a cell's people whose value is named."""

    attack: ClassVar[str]
    direct: ClassVar[bool] = False

    @abstractmethod
    def prob_named_as(self, owns: Sequence[Integers], counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        """Return P(the attack names k) if category k has its count in each of ``owns`` and the others keep theirs.

        For each category given in each cell, under the first setting: (owns, cells, categories).
        """

    def prob_named(self, counts: Integers, n_levels: int, channel: CountChannel) -> Floats:
        """Return P(the attack names k) for each category given in each cell, under the first setting."""
        return np.asarray(self.prob_named_as([counts], counts, n_levels, channel)[0])

    def named_and_gain(self, counts: Integers, n_levels: int, channel: CountChannel) -> tuple[Floats, Floats]:
        """Return P(the attack names k), and how much of it the record of one person of category k adds."""
        named, without = self.prob_named_as([counts, np.maximum(counts - 1, 0)], counts, n_levels, channel)
        return named, named - without

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        self._check(forms)
        shares, settings = block.counts / block.sizes[:, None], range(len(channel))
        named = [(shares * self.prob_named(block.counts, n_levels, channel[[place]])).sum(axis=1) for place in settings]
        found = np.stack(named, axis=1)
        if found.size and float(found.max()) > 1.0 + ROUNDING:
            raise ArithmeticError("a probability came out above 1 by more than rounding explains")
        return {"tight": np.minimum(found, 1.0)}  # a sum of many terms, rounded up by less than ROUNDING

    def limit(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        """Return the risk under infinite noise: something is shown, and the guess is correct one time in K."""
        self._check(forms)
        return {"tight": np.full((len(block), len(channel)), blind_guess(n_levels))}

    def _check(self, forms: Sequence[str]) -> None:
        other = [form for form in forms if form != "tight"]
        if other:
            raise InvalidInput(f"the {self.attack} attack has one form", got=", ".join(other), allowed="tight")


def blind_guess(n_levels: int) -> float:
    """Return how often a guess is correct if noise has drowned the counts: (1 - 2^-K)/K."""
    return (1.0 - 0.5**n_levels) / n_levels


def find_rows(counts: Sequence[Integers]) -> tuple[Integers, list[Integers]]:
    """Return the distinct counts of several arrays, ascending from 0, and the place of each count among them."""
    distinct = np.unique(np.concatenate([np.zeros(1, np.int64), *(array.ravel() for array in counts)]))
    return distinct, [np.searchsorted(distinct, array) for array in counts]
