"""One table for every attack: who is revealed, who would be without their own record, and what noise alone gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attackers.acceptance import (
    Attack,
    LargestScore,
    Scores,
    Success,
    homogeneity_success,
    informed_attack,
    largest_count_success,
    possible_values,
)
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from cellrisk.risk.certainty.inferences import TIE, odds_against
from cellrisk.risk.certainty.posterior import posterior_means
from cellrisk.system.arrays import Floats, Integers

ATTACKS = ("homogeneity", "plurality", "best-guess", "informed")
BEYOND_PREVALENCE = 3.0
"""A value is learnt if its odds are at least this many times those of its overall share: a convention."""
WIDEST_NOISE = 100_000
"""Released values on each side of a count up to which they are summed; wider noise has all but drowned the counts."""
LEAST_PEOPLE = 5
"""Categories of fewer people are taken together where shares of categories are compared."""
TINY = 1e-200
"""Stands for a posterior mean that is too small for a number."""
SAME_GAIN = 1e-9
"""People whose gains differ by no more than this are equally exposed."""
NOTABLE_GAINS = (0.1, 0.2, 0.3)
"""Gains, as probabilities, for which the people above them are counted."""


@dataclass(frozen=True, eq=False)
class AttackFigures:
    """What one attack names correctly in one release, in expected people. Arrays have one entry for each category."""

    attack: str
    revealed: Floats
    """R: people whose category is named."""
    own: Floats
    """D: revealed, less those who would also be revealed with their own record left out."""
    baseline: Floats
    """B: people whose category is named if there is nothing but noise."""
    error: float
    """Half the distance between the two ends of ``revealed``; 0 if it is exact."""
    own_error: float
    """Half the distance between the two ends of ``own``; 0 if it is exact."""
    most: float
    """m: the largest probability that one person's own record adds."""
    most_people: int
    """People to whom it adds that much."""
    most_counts: tuple[int, ...]
    """The counts of a group in which they are."""
    no_noise: tuple[Floats, Floats]
    """``revealed`` and ``own`` for the table published without noise."""
    learnt: Floats | None = None
    """Revealed, with at least three times the odds that the overall share gives: of the informed attacker."""
    learnt_own: Floats | None = None
    """Learnt, less those who would also be learnt with their own record left out."""
    learnt_error: float = 0.0
    """Half the distance between the two ends of ``learnt``; 0 if it is exact."""

    @property
    def without(self) -> Floats:
        """L: people who would be revealed with their own record left out."""
        return self.revealed - self.own

    def to_dict(self, categories: Sequence[str], people: Integers) -> dict[str, Any]:
        """Return one entry of ``attackers`` in JSON."""
        by_category = {
            name: {
                "people": int(people[k]),
                "revealed": float(self.revealed[k]),
                "own": float(self.own[k]),
                **({} if self.learnt is None else {"learnt": float(self.learnt[k])}),
            }
            for k, name in enumerate(categories)
        }
        return {
            "attack": self.attack,
            "revealed": float(self.revealed.sum()),
            "without": float(self.without.sum()),
            "own": float(self.own.sum()),
            "baseline": float(self.baseline.sum()),
            **({} if self.learnt is None else {"learnt": float(self.learnt.sum())}),
            "by_category": by_category,
            "most": self.most,
            "most_people": self.most_people,
            "no_noise": {"revealed": float(self.no_noise[0].sum()), "own": float(self.no_noise[1].sum())},
            "error": self.error,
        }


@dataclass(frozen=True, eq=False)
class AttackTable:
    """The four attacks on the groups of one sensitive attribute, under the first setting of a channel.

    For a person of category k in a group with the counts n, S = P(the attack names k | n) and S' = P(the attack names
    k | n - e_k), the own record left out:

        revealed R = sum S,   without L = sum S',   own record D = R - L,   most exposed m = max (S - S').

    Homogeneity, largest count and best guess are exact; the informed attacker is exact for two categories and lies
    between two ends for more. Figures are computed when they are asked for.
    """

    vectors: LabelledCounts
    channel: CountChannel
    prior: NegativeBinomial | None
    """What the attackers who apply Bayes' rule believe; without it they are left out."""
    certainty: float

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks of this table: best guess and informed need a prior."""
        return ATTACKS if self.prior is not None else ATTACKS[:2]

    @cached_property
    def people(self) -> Integers:
        """The people of each category."""
        return np.asarray(self.vectors.cells @ self.vectors.counts)

    @cached_property
    def shares(self) -> Floats:
        """The overall share of each category."""
        return np.asarray(self.people / self.people.sum())

    @property
    def drowned(self) -> bool:
        """Whether the noise is so wide that attacks get what they get with nothing but noise."""
        return bool(self.channel.infinite[0]) or self.channel.radius > WIDEST_NOISE

    @cached_property
    def _weights(self) -> Integers:
        return self.vectors.cells[:, None] * self.vectors.counts

    @cached_property
    def _values(self) -> list[Integers]:
        return possible_values(self.vectors.counts, self.channel)

    @cached_property
    def _means(self) -> tuple[Scores, ...]:
        """The posterior mean of each category's count behind each released value.

        Next to no noise the mean behind a released 0 vanishes in proportion to the shape, so an empty group has the
        overall shares; where it has underflown, a tiny number in that proportion stands for it.
        """
        return tuple(
            Scores(self.channel, values, np.maximum(posterior_means(prior, self.channel, values), TINY * prior.shape))
            for values, prior in zip(self._values, self.prior.by_category if self.prior else (), strict=True)
        )

    def attack(self, name: str, factors: tuple[float, ...] | None = None) -> Attack:
        """Return best guess or the informed attacker, the latter with other ``factors`` of `LargestShare` if given."""
        if name == "best-guess":
            return LargestScore(name, self._means)
        return informed_attack(self._means, factors or (odds_against(self.certainty),) * len(self.shares))

    @cached_property
    def success(self) -> dict[str, Success]:
        """How likely each attack names the category of each person, with and without their record."""
        direct = {"homogeneity": homogeneity_success, "plurality": largest_count_success}
        return {
            name: (direct[name] if name in direct else self.attack(name).succeed)(self.vectors, self.channel)
            for name in self.names
        }

    @cached_property
    def learning_factors(self) -> tuple[float, ...]:
        """What the posterior means of the others may sum to, as a part of a category's own, for it to be learnt.

        Posterior odds of at least max(tau/(1 - tau), 3 pi/(1 - pi)), pi the overall share. What everybody has is never
        learnt: no sum is below a negative part.
        """
        sure, part = odds_against(self.certainty), BEYOND_PREVALENCE
        return tuple(
            -1.0 if share == 1.0 else min(sure, (1.0 - share) / (part * share)) if share else sure
            for share in self.shares.tolist()
        )

    @cached_property
    def learnt(self) -> Success:
        """How likely the category of each person is learnt, with and without their record; with a prior only."""
        factors = self.learning_factors
        if factors == (odds_against(self.certainty),) * len(factors):
            return self.success["informed"]
        return self.attack("informed", factors).succeed(self.vectors, self.channel)

    def _add_up(self, found: Success) -> tuple[Floats, Floats]:
        """Return two ends of the people of each category, and because of their own record: (2, categories) each."""
        revealed, own = (np.einsum("vk,evk->ek", self._weights, ends) for ends in (found.revealed, found.gain))
        return revealed, own

    def figures(self, name: str) -> AttackFigures:
        """Return the figures of one attack."""
        baseline, bare = self._baseline(name), self._no_noise(name)
        if self.drowned:
            nobody = np.zeros(len(self.people))
            none_learnt = (nobody, nobody) if name == "informed" else (None, None)
            return AttackFigures(name, baseline, nobody, baseline, 0.0, 0.0, 0.0, 0, (), bare, *none_learnt)
        found = self.success[name]
        revealed, own = self._add_up(found)
        gain = np.where(self.vectors.counts > 0, found.gain.mean(axis=0), -np.inf)
        most = float(gain.max())
        group = int(np.argmax(gain) // gain.shape[1])
        figures = AttackFigures(
            attack=name,
            revealed=revealed.mean(axis=0),
            own=own.mean(axis=0),
            baseline=baseline,
            error=0.5 * float(np.ptp(revealed, axis=0).sum()),
            own_error=0.5 * float(np.ptp(own, axis=0).sum()),
            most=most,
            most_people=int(self._weights[gain >= most - SAME_GAIN].sum()),
            most_counts=tuple(self.vectors.counts[group].tolist()),
            no_noise=bare,
        )
        if name != "informed":
            return figures
        learnt, learnt_own = self._add_up(self.learnt)
        return replace(
            figures,
            learnt=learnt.mean(axis=0),
            learnt_own=learnt_own.mean(axis=0),
            learnt_error=0.5 * float(np.ptp(learnt, axis=0).sum()),
        )

    def to_rows(self, sensitive: str, categories: Sequence[str], advantage: float) -> list[dict[str, Any]]:
        """Return the entries of ``attackers`` in JSON; ``advantage`` is what one record adds to any attack at most."""
        rows = []
        for name in self.names:
            row = {"sensitive": sensitive, **self.figures(name).to_dict(categories, self.people)}
            if name == "informed" and self.prior is not None:
                row |= {"certainty": self.certainty, "prior": self.prior.name}
            rows.append(row)
        everybody = float(self.people.sum())
        return [*rows, {"sensitive": sensitive, "attack": "any", "own": advantage * everybody, "most": advantage}]

    def people_above(self, gain: float) -> int:
        """Return the people whose own record adds more than that to the homogeneity attack or to the largest count.

        Those two attacks need no prior.
        """
        if self.drowned:
            return 0
        largest = np.maximum(self.success["homogeneity"].gain[0], self.success["plurality"].gain[0])
        return int(self._weights[largest > gain].sum())

    @cached_property
    def largest_own(self) -> float:
        """The largest share of a category whose people are revealed because of their own record: of all four attacks.

        The upper end, if it lies between two. Categories of fewer than five people count together.
        """
        if self.drowned:
            return 0.0
        return max(self._largest_share(self._add_up(found)[1][1]) for found in self.success.values())

    def largest_learnt(self, harmful: Sequence[int] | None = None) -> float:
        """Return the largest share of a category that the informed attacker learns, of all or of some categories."""
        if self.drowned or self.prior is None:
            return 0.0
        return self._largest_share(self._add_up(self.learnt)[0][1], harmful)

    @cached_property
    def largest_gain(self) -> float:
        """The largest probability that one person's own record adds, of all four attacks."""
        if self.drowned:
            return 0.0
        return max(float(found.gain[1][self.vectors.counts > 0].max()) for found in self.success.values())

    def _largest_share(self, numbers: Floats, categories: Sequence[int] | None = None) -> float:
        """Return the largest share of its people that a number of people of each category is."""
        chosen = np.arange(len(self.people)) if categories is None else np.asarray(categories)
        people, numbers = self.people[chosen], numbers[chosen]
        large = people >= LEAST_PEOPLE
        shares = (numbers[large] / people[large]).tolist()
        few = int(people[~large].sum())
        return max([*shares, *([float(numbers[~large].sum()) / few] if few else [])], default=0.0)

    def _baseline(self, name: str) -> Floats:
        """Return the people of each category whom an attack names as epsilon goes to 0."""
        categories = len(self.people)
        if name == "homogeneity":
            return np.asarray(self.people * 0.5**categories)
        if name == "plurality":
            return np.asarray(self.people * (1.0 - 0.5**categories) / categories)
        if name == "best-guess":
            commonest = self.shares >= self.shares.max() - TIE
            return np.asarray(self.people * commonest / commonest.sum())
        return np.asarray(np.where(self.shares >= self.certainty - TIE, self.people, 0.0))

    def _no_noise(self, name: str) -> tuple[Floats, Floats]:
        """Return the people revealed, and because of their own record, if the counts are published without noise."""
        counts, weights = self.vectors.counts, self._weights
        revealed, own = np.zeros((2, len(self.people)))
        for k in range(len(self.people)):
            have = np.flatnonzero(counts[:, k])
            group = counts[have]
            less = group.copy()
            less[:, k] -= 1
            named, without = (
                _named_without_noise(name, shown, k, self.shares, self.certainty) for shown in (group, less)
            )
            revealed[k], own[k] = weights[have, k] @ named, weights[have, k] @ (named - without)
        return revealed, own


def _named_without_noise(name: str, counts: Integers, k: int, shares: Floats, certainty: float) -> Floats:
    """Return the probability that an attack names category k if these counts are published: (groups,).

    An empty group has the overall shares, the limit of little noise.
    """
    shown = counts > 0
    if name == "homogeneity":
        return np.asarray(shown[:, k] & (shown.sum(axis=1) == 1), np.float64)
    empty = shown.sum(axis=1) == 0
    values = counts.astype(np.float64)
    if name != "plurality":
        values[empty] = shares
    if name == "informed":
        return np.asarray(values[:, k] >= (certainty - TIE) * values.sum(axis=1), np.float64)
    largest = values >= values.max(axis=1)[:, None]
    named = np.where(largest[:, k], 1.0 / largest.sum(axis=1), 0.0)
    return np.asarray(np.where(empty, 0.0, named) if name == "plurality" else named)
