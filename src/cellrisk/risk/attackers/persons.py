"""What attacks reveal about people with several records: all records of a person are left out together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cellrisk.counts.contributions import Contributions
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attackers.figures import ATTACKS, WIDEST_NOISE, AttackTable, learning_factor
from cellrisk.risk.attacks.plurality import Plurality
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from cellrisk.risk.certainty.inferences import TIE
from cellrisk.system.arrays import Floats, Integers

Booleans = NDArray[np.bool_]

SAME_GAIN = 1e-9
"""People whose gains differ by no more than this are equally exposed."""


@dataclass(frozen=True, eq=False)
class PersonFigures:
    """What one attack reveals about people, in expected people; two ends, equal if exact."""

    attack: str
    revealed: Floats
    """People of whom some group is named with a category that they have in it: (2,)."""
    own: Floats
    """Revealed, less those revealed with all their records left out: (2,)."""
    hidden: float
    """The part of ``own`` of people whose records make them less likely to be revealed: 0 or negative."""
    baseline: float
    """People who are revealed if there is nothing but noise."""
    most: float
    """The largest probability that one person's records add."""
    most_people: int
    """People to whom they add that much."""
    learnt: Floats | None = None
    """Revealed, with at least three times the odds of the overall share: of the informed attacker (2,)."""


@dataclass(frozen=True, eq=False)
class PersonTable:
    """The four attacks on people with several records, under the first setting of a channel.

    For a person with counts v in a group with counts n, and the categories V = {k: v_k > 0}: the homogeneity attack
    reveals the person if something is shown, and only categories of V,

        S = prod_{j not in V} q(n_j) (1 - prod_{k in V} q(n_k)),

    and any other attack if it names a category of V. S' is the same with n - v. A person in several groups is revealed
    if revealed in at least one: 1 - prod_g (1 - S_g). With one record each, these are the figures of `AttackTable`.
    """

    contributions: Contributions
    channel: CountChannel
    prior: NegativeBinomial | None
    certainty: float

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks of this table: best guess and informed need a prior."""
        return ATTACKS if self.prior is not None else ATTACKS[:2]

    @property
    def drowned(self) -> bool:
        """Whether the noise is so wide that attacks get what they get with nothing but noise."""
        return bool(self.channel.infinite[0]) or self.channel.radius > WIDEST_NOISE

    @cached_property
    def _groups(self) -> tuple[Integers, Integers]:
        """The distinct counts n and n - v, and which of them each pair has: (2, pairs)."""
        with_and_without = np.concatenate(
            [self.contributions.counts, self.contributions.counts - self.contributions.own]
        )
        rows, place = np.unique(with_and_without, axis=0, return_inverse=True)
        return rows, place.reshape(2, -1)

    @cached_property
    def _attacks(self) -> AttackTable:
        rows, place = self._groups
        kinds = self.contributions
        people = np.bincount(kinds.pair, np.repeat(kinds.people, np.diff(kinds.offsets)), len(kinds.counts))
        weights = np.bincount(place.reshape(-1), np.tile(people, 2), len(rows)).astype(np.int64)
        return AttackTable(LabelledCounts(rows, weights), self.channel, self.prior, self.certainty)

    def success(self, name: str, factors: tuple[float, ...] | None = None) -> Floats:
        """Return S and S' of each pair, of the informed attacker also with other ``factors``: (2 ends, 2, pairs)."""
        own = self.contributions.own > 0
        if name == "homogeneity":
            return self._alone(own)
        rows, place = self._groups
        if name == "plurality":
            [named] = Plurality().prob_named_as([rows], rows, rows.shape[1], self.channel)
            ends = np.stack([named, named])
        else:
            ends = (
                self._attacks.attack(name, factors).succeed(self._attacks.vectors, self.channel, absent=True).revealed
            )
        return np.asarray(np.minimum(np.einsum("espk,pk->esp", ends[:, place], own), 1.0))

    def _alone(self, own: Booleans) -> Floats:
        """Return S and S' of the homogeneity attack, which is exact."""
        rows, place = self._groups
        hidden = self.channel.p_zero(rows)[..., 0][place]
        others = np.where(own, 1.0, hidden).prod(axis=-1)
        shown = 1.0 - np.where(own, hidden, 1.0).prod(axis=-1)
        return np.stack([others * shown] * 2)

    def figures(self, name: str) -> PersonFigures:
        """Return the figures of one attack."""
        contributions, people = self.contributions, self.contributions.people
        baseline = float(people @ contributions.in_some_group(self._blind(name)))
        if self.drowned:
            return PersonFigures(name, np.full(2, baseline), np.zeros(2), 0.0, baseline, 0.0, 0)
        named = contributions.in_some_group(self.success(name))
        revealed = named[:, 0]
        gain = np.stack([named[0, 0] - named[1, 1], named[1, 0] - named[0, 1]])
        middle = gain.mean(axis=0)
        most = float(middle.max(initial=0.0))
        learnt = None
        if name == "informed":
            records = contributions.records
            factors = tuple(learning_factor(share, self.certainty) for share in (records / records.sum()).tolist())
            learnt = contributions.in_some_group(self.success(name, factors))[:, 0] @ people
        return PersonFigures(
            attack=name,
            revealed=revealed @ people,
            own=gain @ people,
            hidden=float(np.minimum(middle, 0.0) @ people),
            baseline=baseline,
            most=most,
            most_people=int(people[middle >= most - SAME_GAIN].sum()),
            learnt=learnt,
        )

    def _blind(self, name: str) -> Floats:
        """Return S of each pair as epsilon goes to 0."""
        own = self.contributions.own > 0
        categories, have = own.shape[1], own.sum(axis=1)
        if name == "homogeneity":
            return np.asarray(0.5 ** (categories - have) * (1.0 - 0.5**have))
        if name == "plurality":
            return np.asarray(have * (1.0 - 0.5**categories) / categories)
        shares = self.contributions.records / self.contributions.records.sum()
        if name == "best-guess":
            commonest = shares >= shares.max() - TIE
            return np.asarray(own @ (commonest / commonest.sum()))
        return np.asarray((own & (shares >= self.certainty - TIE)).any(axis=1), np.float64)

    def largest_gain(self) -> float:
        """Return the largest probability that one person's records add, of all attacks."""
        return max((self.figures(name).most for name in self.names), default=0.0)
