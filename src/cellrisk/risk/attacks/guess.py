"""What attackers who guess have in common: they name one label of a cell, or none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cellrisk.counts.profiles import Block
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures import Local, Measure
from cellrisk.risk.measures.measure import RisksByForm
from cellrisk.system.arrays import Floats

ROUNDING = 1e-9
"""How far above 1 a probability may come out, a sum of many rounded terms, before it is taken for a mistake."""


class Guess(Measure):
    """How often is a person's value guessed? The share of a cell's people whose own value is named: tight, alone."""

    name: ClassVar[str] = "local"
    attack: ClassVar[str]

    @abstractmethod
    def expect(self, block: Block, n_levels: int, channel: CountChannel, worth: Floats) -> Floats:
        """sum_k worth_k P(the attacker names k) for one cell of each profile: (profiles, noises).

        ``worth`` is (profiles, labels present); naming a label that is absent is worth nothing.
        """

    @abstractmethod
    def name_each(self, block: Block, n_levels: int, channel: CountChannel) -> Floats:
        """P(the attacker names k) for each label present in one cell of each profile, under the first noise."""

    def risk(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        self._check(forms)
        named = self.expect(block, n_levels, channel, block.counts / block.sizes[:, None])
        if named.size and float(named.max()) > 1.0 + ROUNDING:
            raise ArithmeticError("a probability came out above 1 by more than rounding explains")
        return {"tight": np.minimum(named, 1.0)}  # a sum of many terms, rounded up by less than ROUNDING

    def labels_present(self, block: Block) -> tuple[Floats, Floats]:
        return Local().labels_present(block)

    def limit(self, block: Block, n_levels: int, channel: CountChannel, forms: Sequence[str]) -> RisksByForm:
        """The risk as noise grows without bound: something shows, and the guess is right one time in K."""
        self._check(forms)
        return {"tight": np.full((len(block), len(channel)), guess_by_chance(n_levels))}

    def _check(self, forms: Sequence[str]) -> None:
        other = [form for form in forms if form != "tight"]
        if other:
            raise InvalidInput(f"the {self.attack} attack has one form", got=", ".join(other), allowed="tight")


def guess_by_chance(n_levels: int) -> float:
    """How often a guess is right where noise has drowned the counts: (1 - 2^-K)/K."""
    return (1.0 - 0.5**n_levels) / n_levels
