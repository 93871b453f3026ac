"""What attacks reveal about people with several records: all records of a person are left out together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cellrisk.counts.contributions import Contributions
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.risk.attackers.figures import AttackTable, Union, named_without_noise
from cellrisk.risk.attacks.acceptance import Success
from cellrisk.risk.attacks.guesses import Plurality
from cellrisk.system.arrays import Floats, Integers, find_distinct


@dataclass(frozen=True, eq=False)
class PersonTable(AttackTable):
    """The four attacks on people with several records, under the first setting of a channel.

    For a person with counts v in a group with counts n, and the categories V = {k: v_k > 0}: the homogeneity attack
    reveals the person if something is shown, and only categories of V,

        S = prod_{j not in V} q(n_j) (1 - prod_{k in V} q(n_k)),

    and any other attack if it names a category of V. S' is the same with n - v. A person in several groups is revealed
    if revealed in at least one: 1 - prod_g (1 - S_g). With one record each, these are the figures of `AttackTable`.
    A person belongs to every category of their records. ``vectors`` are the distinct counts n and n - v.
    """

    own_record: ClassVar[str] = "own records"
    contributions: Contributions = field(kw_only=True)
    vector: Integers = field(kw_only=True)
    """Which of the vectors the n and the n - v of each pair are: (2, pairs)."""

    @staticmethod
    def of(contributions: Contributions, **attackers: Any) -> PersonTable:
        """Return the table of people who are in these groups; the other arguments are those of `AttackTable`."""
        if attackers.get("unions"):
            what = "values are assessed as one for people with one record each alone"
            fix = "merge the values in the data, or leave them apart"
            raise InvalidInput(what, option="unions", fix=fix, code="several-records")
        both = np.concatenate([contributions.counts, contributions.counts - contributions.own])
        first, vector = find_distinct(both.T, (both.max(axis=0, initial=0) + 1).tolist())
        rows = both[first]
        times = np.repeat(contributions.people, np.diff(contributions.offsets))
        people = np.tile(np.bincount(contributions.pair, times, len(contributions.counts)), 2)
        vectors = LabelledCounts(rows, np.bincount(vector.reshape(-1), people, len(rows)).astype(np.int64))
        return PersonTable(vectors, **attackers, contributions=contributions, vector=vector.reshape(2, -1))

    @property
    def n_people(self) -> int:
        return self.contributions.n_people

    @cached_property
    def people(self) -> Integers:
        """The people with a record of each category."""
        return np.asarray(self.contributions.with_category.sum(axis=0))

    @cached_property
    def shares(self) -> Floats:
        """The share of each category in all records."""
        return np.asarray(self.contributions.records / self.contributions.records.sum())

    def _of_categories(self, kept: list[int], **attackers: Any) -> PersonTable:
        counts, own = self.contributions.counts[:, kept], self.contributions.own[:, kept]
        return PersonTable.of(replace(self.contributions, counts=counts, own=own), **attackers)

    def weights(self, union: Union = ()) -> Integers:
        return self.contributions.people

    def _by_category(self, values: Floats) -> Floats:
        return np.asarray(values @ self.contributions.with_category)

    def _succeed(self, name: str, union: Union, learnt: bool) -> Success:
        """Return S and S - S' of each kind of person: (2 ends, kinds) each."""
        named = self.contributions.in_some_group(self._pairs(name, learnt))
        return Success(named[:, 0], np.stack([named[0, 0] - named[1, 1], named[1, 0] - named[0, 1]]))

    def _pairs(self, name: str, learnt: bool) -> Floats:
        """Return S and S' of each pair: (2 ends, 2, pairs)."""
        own = self.contributions.own > 0
        if learnt and self.harmful:
            own = own & np.isin(np.arange(own.shape[1]), self.harmful)
        rows = self.vectors.counts
        if name == "homogeneity":
            hidden = (rows == 0).astype(np.float64) if self.channel is None else self.channel.p_zero(rows)[..., 0]
            others = np.where(own, 1.0, hidden[self.vector]).prod(axis=-1)
            shown = 1.0 - np.where(own, hidden[self.vector], 1.0).prod(axis=-1)
            return np.stack([others * shown] * 2)
        factors = self.factors(learnt=learnt)
        if self.channel is None:
            columns = [
                named_without_noise(name, rows, k, self.shares, factor, (k,)) for k, factor in enumerate(factors)
            ]
            ends = np.stack([np.stack(columns, axis=1)] * 2)
        elif name == "plurality":
            [probability] = Plurality().prob_named_as([rows], rows, rows.shape[1], self.channel)
            ends = np.stack([probability, probability])
        else:
            ends = self.attack(name, factors).succeed(self.vectors, self.channel, absent=True).revealed
        return np.asarray(np.minimum(np.einsum("espk,pk->esp", ends[:, self.vector], own), 1.0))

    def _blind(self, name: str, union: Union) -> Floats:
        own = self.contributions.own > 0
        categories, have = own.shape[1], own.sum(axis=1)
        if name == "homogeneity":
            pairs = 0.5 ** (categories - have) * (1.0 - 0.5**have)
        elif name == "informed":
            pairs = (own & (super()._blind(name, union) > 0)).any(axis=1)
        else:
            pairs = own @ super()._blind(name, union)
        return self.contributions.in_some_group(np.asarray(pairs, np.float64))
