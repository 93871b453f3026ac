"""What attacks reveal about people with several records: all records of a person are left out together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cellrisk.counts.contributions import Contributions
from cellrisk.counts.profiles import LabelledCounts
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attackers.figures import (
    SAME_GAIN,
    AttackFigures,
    AttackTable,
    Union,
    learning_factor,
    named_without_noise,
)
from cellrisk.risk.attacks.plurality import Plurality
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from cellrisk.risk.certainty.inferences import TIE, odds_against
from cellrisk.system.arrays import Floats, Integers, find_distinct

Booleans = NDArray[np.bool_]


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
    place: Integers = field(kw_only=True)
    """Which of the vectors the n and the n - v of each pair are: (2, pairs)."""
    _known_people: dict[Any, Floats] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(
        contributions: Contributions,
        channel: CountChannel,
        prior: NegativeBinomial | None,
        certainty: float,
        harmful: tuple[int, ...] = (),
        unions: tuple[Union, ...] = (),
    ) -> PersonTable:
        """Return the table of people who are in these groups."""
        if unions:
            raise InvalidInput(
                "values are assessed as one for people with one record each alone",
                option="unions",
                fix="merge the values in the data, or leave them apart",
                code="several-records",
            )
        both = np.concatenate([contributions.counts, contributions.counts - contributions.own])
        first, place = find_distinct(both.T, (both.max(axis=0, initial=0) + 1).tolist())
        rows = both[first]
        times = np.repeat(contributions.people, np.diff(contributions.offsets))
        people = np.tile(np.bincount(contributions.pair, times, len(contributions.counts)), 2)
        weights = np.bincount(place.reshape(-1), people, len(rows)).astype(np.int64)
        more: Any = {"harmful": harmful, "contributions": contributions, "place": place.reshape(2, -1)}
        return PersonTable(LabelledCounts(rows, weights), channel, prior, certainty, **more)

    @cached_property
    def people(self) -> Integers:
        """All people, as one number."""
        return np.array([self.contributions.n_people])

    @property
    def people_by_category(self) -> Integers:
        return np.asarray(self.contributions.with_category.sum(axis=0))

    @cached_property
    def shares(self) -> Floats:
        """The share of each category in all records."""
        return np.asarray(self.contributions.records / self.contributions.records.sum())

    def without_unused(self) -> PersonTable:
        kept = np.sort(np.argsort(-self.people_by_category, kind="stable")[: max(2, np.count_nonzero(self.shares))])
        place = {k: new for new, k in enumerate(kept.tolist())}
        prior = self.prior
        if prior is not None:
            shapes = tuple(prior.shapes[k] for k in kept)
            prior = replace(prior, shapes=shapes) if any(shapes) else None
        counts, own = self.contributions.counts[:, kept], self.contributions.own[:, kept]
        fewer = replace(self.contributions, counts=counts, own=own)
        return PersonTable.of(
            fewer, self.channel, prior, self.certainty, tuple(place[k] for k in self.harmful if k in place)
        )

    def named(self, name: str, *, learnt: bool = False) -> Floats:
        """Return how likely an attack reveals each kind of person, with their records and without: (2 ends, 2, kinds).

        With ``learnt``, how likely the informed attacker learns a category of theirs, of the harmful ones if any are.
        """
        key = name, learnt
        if key not in self._known_people:
            self._known_people[key] = self.contributions.in_some_group(self._pairs(name, learnt))
        return self._known_people[key]

    def _pairs(self, name: str, learnt: bool) -> Floats:
        """Return S and S' of each pair: (2 ends, 2, pairs)."""
        own = self.contributions.own > 0
        if learnt and self.harmful:
            own = own & np.isin(np.arange(own.shape[1]), self.harmful)
        if name == "homogeneity":
            return self._alone(own)
        rows, certainty = self.vectors.counts, self.certainty
        factors = (odds_against(certainty),) * len(self.shares)
        if learnt:
            factors = tuple(learning_factor(float(share), certainty) for share in self.shares)
        if self.noiseless:
            columns = [
                named_without_noise(name, rows, k, self.shares, factor, (k,)) for k, factor in enumerate(factors)
            ]
            ends = np.stack([np.stack(columns, axis=1)] * 2)
        elif name == "plurality":
            [probability] = Plurality().prob_named_as([rows], rows, rows.shape[1], self.channel)
            ends = np.stack([probability, probability])
        else:
            ends = self.attack(name, factors).succeed(self.vectors, self.channel, absent=True).revealed
        return np.asarray(np.minimum(np.einsum("espk,pk->esp", ends[:, self.place], own), 1.0))

    def _alone(self, own: Booleans) -> Floats:
        """Return S and S' of the homogeneity attack, which is exact."""
        rows = self.vectors.counts
        hidden = (rows == 0).astype(np.float64) if self.noiseless else self.channel.p_zero(rows)[..., 0]
        others = np.where(own, 1.0, hidden[self.place]).prod(axis=-1)
        shown = 1.0 - np.where(own, hidden[self.place], 1.0).prod(axis=-1)
        return np.stack([others * shown] * 2)

    def gain(self, name: str) -> Floats:
        """Return two ends of S - S' of each kind of person."""
        named = self.named(name)
        return np.stack([named[0, 0] - named[1, 1], named[1, 0] - named[0, 1]])

    def figures(self, name: str, union: Union = ()) -> AttackFigures:
        """Return the figures of one attack, of all people as one category."""
        people, informed = self.contributions.people, name == "informed"
        baseline = np.atleast_1d(people @ self.contributions.in_some_group(self._blind(name)))
        bare = replace(self, noiseless=True)
        no_noise = tuple(np.atleast_1d(part @ people) for part in (bare.named(name)[0, 0], bare.gain(name)[0]))
        found = AttackFigures(
            attack=name,
            people=self.people,
            revealed=baseline,
            own=np.zeros(1),
            baseline=baseline,
            error=0.0,
            own_error=0.0,
            most=0.0,
            most_people=0,
            most_counts=(),
            no_noise=(no_noise[0], no_noise[1]),
            learnt=np.zeros(1) if informed else None,
            learnt_own=np.zeros(1) if informed else None,
        )
        if self.drowned:
            return found
        revealed, gain = self.named(name)[:, 0] @ people, self.gain(name)
        middle = gain.mean(axis=0)
        most = float(middle.max(initial=0.0))
        learnt = self.named(name, learnt=True) @ people if informed else None
        return replace(
            found,
            revealed=np.atleast_1d(revealed.mean()),
            own=np.atleast_1d((gain @ people).mean()),
            error=0.5 * float(np.ptp(revealed)),
            own_error=0.5 * float(np.ptp(gain @ people)),
            hidden=float(np.minimum(middle, 0.0) @ people),
            most=most,
            most_people=int(people[middle >= most - SAME_GAIN].sum()),
            learnt=None if learnt is None else np.atleast_1d(learnt[:, 0].mean()),
            learnt_own=None if learnt is None else np.atleast_1d((learnt[:, 0] - learnt[:, 1]).mean()),
            learnt_error=0.0 if learnt is None else 0.5 * float(np.ptp(learnt[:, 0])),
        )

    def by_category(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield what an attack reveals of the people with a record of each category."""
        parts = {"revealed": self.named(name)[:, 0].mean(axis=0), "own": self.gain(name).mean(axis=0)}
        parts |= {"learnt": self.named(name, learnt=True)[:, 0].mean(axis=0)} if name == "informed" else {}
        for k, people in enumerate(self.people_by_category.tolist()):
            with_it = self.contributions.with_category[:, k]
            yield {"people": people, **{part: float(with_it @ numbers) for part, numbers in parts.items()}}

    def to_rows(self, sensitive: str, categories: Sequence[str], advantage: float) -> list[dict[str, Any]]:
        rows = super().to_rows(sensitive, categories, advantage)
        for row in rows[:-1]:
            if self.drowned:
                del row["by_category"]
            else:
                row["by_category"] = dict(zip(categories, self.by_category(row["attack"]), strict=True))
        return rows

    def people_above(self, gain: float) -> int:
        if self.drowned:
            return 0
        largest = np.maximum(self.gain("homogeneity")[0], self.gain("plurality")[0])
        return int(self.contributions.people[largest > gain].sum())

    def largest_own(self, enough: float = math.inf) -> float:
        """Return the largest share of the people with a record of a category who are revealed because of their own."""
        return self._largest_gain(lambda gain: self._largest_share(gain @ self.contributions.with_category), enough)

    def largest_gain(self, enough: float = math.inf) -> float:
        """Return the largest probability that one person's records add, of all four attacks."""
        return self._largest_gain(lambda gain: float(gain.max(initial=0.0)), enough)

    def _largest_gain(self, figure: Any, enough: float) -> float:
        largest = 0.0
        for name in () if self.drowned else self.names:
            largest = max(largest, figure(self.gain(name)[1]))
            if largest > enough:
                break
        return largest

    def largest_learnt(self) -> float:
        """Return the largest share of the people with a record of a category of whom the informed attacker learns one.

        Noise that has drowned the counts counts with 1 if a release may still make the odds of a value large enough.
        """
        if self.prior is None:
            return 0.0
        if self.drowned:
            return float(self._may_learn())
        learnt = self.named("informed", learnt=True)[1, 0]
        return self._largest_share(learnt @ self.contributions.with_category, (), self.harmful)

    def _blind(self, name: str) -> Floats:
        """Return S of each pair as epsilon goes to 0."""
        own = self.contributions.own > 0
        categories, have = own.shape[1], own.sum(axis=1)
        if name == "homogeneity":
            return np.asarray(0.5 ** (categories - have) * (1.0 - 0.5**have))
        if name == "plurality":
            return np.asarray(have * (1.0 - 0.5**categories) / categories)
        if name == "best-guess":
            commonest = self.shares >= self.shares.max() - TIE
            return np.asarray(own @ (commonest / commonest.sum()))
        return np.asarray((own & (self.shares >= self.certainty - TIE)).any(axis=1), np.float64)
