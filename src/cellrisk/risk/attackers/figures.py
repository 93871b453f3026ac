"""One table for every attack: who is revealed, who would be without their own record, and what noise alone gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.channel import AdditiveChannel, CountChannel
from cellrisk.risk.attackers.acceptance import (
    SAME_SCORE,
    Attack,
    LargestScore,
    LargestShare,
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

Union = tuple[int, ...]
"""Categories that are named as one value; empty for each category on its own."""


@dataclass(frozen=True, eq=False)
class AttackFigures:
    """What one attack names correctly in one release, in expected people.

    Arrays have one entry for each category; of a union of categories, one entry.
    """

    attack: str
    people: Integers
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
    hidden: float = 0.0
    """The part of ``own`` of people whose records make them less likely to be revealed: 0 or negative."""
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

    def to_dict(self, categories: Sequence[str]) -> dict[str, Any]:
        """Return one entry of ``attackers`` in JSON."""
        parts = {"people": self.people, "revealed": self.revealed, "own": self.own}
        parts |= {} if self.learnt is None else {"learnt": self.learnt}
        categories = categories[: len(self.people)]
        return {
            "attack": self.attack,
            "revealed": float(self.revealed.sum()),
            "without": float(self.without.sum()),
            "own": float(self.own.sum()),
            "baseline": float(self.baseline.sum()),
            **({} if self.learnt is None else {"learnt": float(self.learnt.sum())}),
            "by_category": {
                name: {part: numbers[k].item() for part, numbers in parts.items()} for k, name in enumerate(categories)
            },
            "most": self.most,
            "most_people": self.most_people,
            "no_noise": {"revealed": float(self.no_noise[0].sum()), "own": float(self.no_noise[1].sum())},
            "error": max(self.error, self.own_error, self.learnt_error),
            **({"hidden": self.hidden} if self.hidden else {}),
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
    harmful: tuple[int, ...] = ()
    """The categories of which ``learnt`` is counted; empty for all."""
    unions: tuple[Union, ...] = ()
    """Sets of categories that the informed attacker also names as one value: posterior means add up."""
    noiseless: bool = False
    """Whether the counts are published as they are; the channel then does not matter."""
    _known: dict[Any, Success] = field(default_factory=dict, init=False, repr=False)
    own_record: ClassVar[str] = "own record"
    """What is left out of a person, in words."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks of this table: best guess and informed need a prior."""
        return ATTACKS if self.prior is not None else ATTACKS[:2]

    @cached_property
    def people(self) -> Integers:
        """The people of each category."""
        return np.asarray(self.vectors.cells @ self.vectors.counts)

    @property
    def people_by_category(self) -> Integers:
        """The people of each category, if ``people`` are those of all."""
        return self.people

    @cached_property
    def shares(self) -> Floats:
        """The overall share of each category."""
        return np.asarray(self.people / self.people.sum())

    @property
    def drowned(self) -> bool:
        """Whether the noise is so wide that attacks get what they get with nothing but noise."""
        return not self.noiseless and (bool(self.channel.infinite[0]) or self.channel.radius > WIDEST_NOISE)

    @cached_property
    def without_noise(self) -> AttackTable:
        """These attacks on the counts published as they are."""
        return replace(self, noiseless=True)

    def without_unused(self) -> AttackTable:
        """The attacks of those who know which categories occur; two categories are kept at the least."""
        kept = np.sort(np.argsort(-self.people, kind="stable")[: max(2, np.count_nonzero(self.people))]).tolist()
        place = {k: new for new, k in enumerate(kept)}
        prior = self.prior
        if prior is not None:
            shapes = tuple(prior.shapes[k] for k in kept)
            prior = replace(prior, shapes=shapes) if any(shapes) else None
        unions = (tuple(place[k] for k in union if k in place) for union in self.unions)
        return replace(
            self,
            vectors=LabelledCounts.from_cells(self.vectors.counts[:, kept], self.vectors.cells),
            prior=prior,
            harmful=tuple(place[k] for k in self.harmful if k in place),
            unions=tuple(union for union in unions if 1 < len(union) < len(kept)),
        )

    @cached_property
    def _weights(self) -> Integers:
        return self.vectors.cells[:, None] * self.vectors.counts

    @cached_property
    def _means(self) -> tuple[Scores, ...]:
        """The posterior mean of each category's count behind each released value.

        Next to no noise the mean behind a released 0 vanishes in proportion to the shape, so an empty group has the
        overall shares; where it has underflown, a tiny number in that proportion stands for it.
        """
        values = possible_values(self.vectors.counts, self.channel)
        return tuple(
            Scores(self.channel, known, np.maximum(posterior_means(prior, self.channel, known), TINY * prior.shape))
            for known, prior in zip(values, self.prior.by_category if self.prior else (), strict=True)
        )

    def attack(self, name: str, factors: tuple[float, ...] | None = None, union: Union = ()) -> Attack:
        """Return best guess or the informed attacker, the latter with other ``factors`` of `LargestShare` if given."""
        if name == "best-guess":
            return LargestScore(name, self._means)
        factors = factors or (odds_against(self.certainty),) * len(self.shares)
        return LargestShare(name, self._means, factors, union) if union else informed_attack(self._means, factors)

    def success(self, name: str, union: Union = (), *, learnt: bool = False) -> Success:
        """Return how likely an attack names the category of each person, with and without that person's record.

        With ``learnt``, how likely the informed attacker learns it.
        """
        factors = (odds_against(self.certainty),) * len(self.shares) if name == "informed" else None
        if learnt:
            factors = tuple(learning_factor(float(share), self.certainty) for share in self._shares_named(union))
        key = name, union, factors
        if key not in self._known:
            if self.noiseless:
                success = self._published(name, factors, union)
            elif name in ("homogeneity", "plurality"):
                direct = homogeneity_success if name == "homogeneity" else largest_count_success
                success = direct(self.vectors, self.channel)
            else:
                success = self.attack(name, factors, union).succeed(self.vectors, self.channel)
            self._known[key] = success
        return self._known[key]

    def _shares_named(self, union: Union) -> Floats:
        """Return the overall share of the value by which each category is named."""
        shares = self.shares.copy()
        shares[list(union)] = self.shares[list(union)].sum()
        return shares

    def _published(self, name: str, factors: tuple[float, ...] | None, union: Union) -> Success:
        """Return the success if the counts are published as they are."""
        counts = self.vectors.counts
        revealed, gain = np.zeros((2, *counts.shape))
        for k in union or range(counts.shape[1]):
            have = np.flatnonzero(counts[:, k])
            less = counts[have]
            less[:, k] -= 1
            factor = 0.0 if factors is None else factors[k]
            revealed[have, k] = named_without_noise(name, counts[have], k, self.shares, factor, union or (k,))
            gain[have, k] = revealed[have, k] - named_without_noise(name, less, k, self.shares, factor, union or (k,))
        return Success.exact(counts, revealed, gain)

    def _add_up(self, success: Success, union: Union = ()) -> tuple[Floats, Floats]:
        """Return two ends of the people of each category, and because of their own record: (2, categories) each."""
        revealed, own = (np.einsum("vk,evk->ek", self._weights, ends) for ends in (success.revealed, success.gain))
        if not union:
            return revealed, own
        return revealed[:, list(union)].sum(axis=1)[:, None], own[:, list(union)].sum(axis=1)[:, None]

    def figures(self, name: str, union: Union = ()) -> AttackFigures:
        """Return the figures of one attack, of every category or of a union of them."""
        people = np.array([self.people[list(union)].sum()]) if union else self.people
        baseline = self._baseline(name, people)
        bare = self.without_noise
        no_noise = bare._add_up(bare.success(name, union), union)
        nobody = np.zeros(len(people))
        informed = name == "informed"
        found = AttackFigures(
            attack=name,
            people=people,
            revealed=baseline,
            own=nobody,
            baseline=baseline,
            error=0.0,
            own_error=0.0,
            most=0.0,
            most_people=0,
            most_counts=(),
            no_noise=(no_noise[0][0], no_noise[1][0]),
            learnt=nobody if informed else None,
            learnt_own=nobody if informed else None,
        )
        if self.drowned:
            return found
        success = self.success(name, union)
        revealed, own = self._add_up(success, union)
        gain = np.where(self._concerned(union), success.gain.mean(axis=0), -np.inf)
        most = float(gain.max())
        found = replace(
            found,
            revealed=revealed.mean(axis=0),
            own=own.mean(axis=0),
            error=0.5 * float(np.ptp(revealed, axis=0).sum()),
            own_error=0.5 * float(np.ptp(own, axis=0).sum()),
            most=most,
            most_people=int(self._weights[gain >= most - SAME_GAIN].sum()),
            most_counts=tuple(self.vectors.counts[int(np.argmax(gain) // gain.shape[1])].tolist()),
        )
        if not informed:
            return found
        learnt, learnt_own = self._add_up(self.success(name, union, learnt=True), union)
        if self.harmful and not union:
            harmless = np.setdiff1d(np.arange(len(people)), self.harmful)
            learnt[:, harmless] = learnt_own[:, harmless] = 0.0
        return replace(
            found,
            learnt=learnt.mean(axis=0),
            learnt_own=learnt_own.mean(axis=0),
            learnt_error=0.5 * float(np.ptp(learnt, axis=0).sum()),
        )

    def _concerned(self, union: Union) -> Any:
        """Return whether somebody has a category of the union, or any: (groups, categories)."""
        named = np.isin(np.arange(len(self.people)), union) if union else True
        return (self.vectors.counts > 0) & named

    def to_rows(self, sensitive: str, categories: Sequence[str], advantage: float) -> list[dict[str, Any]]:
        """Return the entries of ``attackers`` in JSON; ``advantage`` is what one record adds to any attack at most."""
        rows = []
        for name, union in [*((name, ()) for name in self.names), *(("informed", union) for union in self.unions)]:
            named = ["+".join(categories[k] for k in union)] if union else categories
            row = {"sensitive": sensitive, **self.figures(name, union).to_dict(named)}
            if name == "informed" and self.prior is not None:
                row |= {"certainty": self.certainty, "prior": self.prior.name}
                row |= {"union": [categories[k] for k in union]} if union else {}
                row |= {"harmful": [categories[k] for k in self.harmful]} if self.harmful and not union else {}
            rows.append(row)
        everybody = float(self.people.sum())
        return [*rows, {"sensitive": sensitive, "attack": "any", "own": advantage * everybody, "most": advantage}]

    def people_above(self, gain: float) -> int:
        """Return the people whose own record adds more than that to the homogeneity attack or to the largest count.

        Those two attacks need no prior.
        """
        if self.drowned:
            return 0
        largest = np.maximum(self.success("homogeneity").gain[0], self.success("plurality").gain[0])
        return int(self._weights[largest > gain].sum())

    def largest_own(self, enough: float = math.inf) -> float:
        """Return the largest share of a category whose people are revealed because of their own record.

        Of all four attacks, the upper end if it lies between two. Categories of fewer than five people count together.
        Once one attack is above ``enough``, the others are not computed.
        """
        return self._largest(
            lambda success, union: self._largest_share(self._add_up(success, union)[1][1], union), enough
        )

    def largest_gain(self, enough: float = math.inf) -> float:
        """Return the largest probability that one person's own record adds, of all four attacks, as above."""
        return self._largest(
            lambda success, union: float(success.gain[1][self._concerned(union)].max(initial=0.0)), enough
        )

    def _largest(self, figure: Callable[[Success, Union], float], enough: float) -> float:
        largest = 0.0
        for name, union in self._attacks() if not self.drowned else ():
            largest = max(largest, figure(self.success(name, union), union))
            if largest > enough:
                break
        return largest

    def _attacks(self) -> Iterator[tuple[str, Union]]:
        """Yield every attack, quick ones first."""
        yield "homogeneity", ()
        yield "plurality", ()
        if self.prior is not None:
            yield "best-guess", ()
            for union in ((), *self.unions):
                yield "informed", union

    def largest_learnt(self) -> float:
        """Return the largest share of a category that the informed attacker learns: of all, or of the harmful ones.

        Noise that has drowned the counts counts with 1 if a release may still make the odds of a value large enough.
        """
        if self.prior is None:
            return 0.0
        if self.drowned:
            return float(self._may_learn())
        largest = 0.0
        for union in ((), *self.unions):
            numbers = self._add_up(self.success("informed", union, learnt=True), union)[0][1]
            largest = max(largest, self._largest_share(numbers, union, () if union else self.harmful))
        return largest

    def _may_learn(self) -> bool:
        """Return whether noise that has drowned the counts may let the odds of a value suffice for it to be learnt.

        Two counts that differ by d have likelihoods whose ratio is at most e^(d c), c the steepest slope of the
        logarithm of the noise; of the prior, e^-30 is left out.
        """
        if self.prior is None or not isinstance(self.channel, AdditiveChannel):
            return False
        shapes = np.array(self.prior.shapes)
        farthest = max(prior.last_likely(30.0) for prior in self.prior.by_category)
        moved = 0.0 if self.channel.infinite[0] else 2.0 * self.channel.noise.steepest * farthest
        for union in ((), *self.unions):
            for k in union or range(len(shapes)):
                named = shapes[list(union or (k,))].sum()
                factor = learning_factor(float(self._shares_named(union)[k]), self.certainty)
                if math.exp(-min(moved, 700.0)) * (shapes.sum() - named) <= factor * named and self.shares[k]:
                    return True
        return False

    def _largest_share(self, numbers: Floats, union: Union = (), categories: Sequence[int] = ()) -> float:
        """Return the largest share of its people that a number of people of each category is.

        Categories of fewer than five people are taken together.
        """
        people = np.array([self.people[list(union)].sum()]) if union else self.people_by_category
        if categories:
            people, numbers = people[list(categories)], numbers[list(categories)]
        large = people >= LEAST_PEOPLE
        shares = (numbers[large] / people[large]).tolist()
        rest = int(people[~large].sum())
        return max([*shares, *([float(numbers[~large].sum()) / rest] if rest else [])], default=0.0)

    def _baseline(self, name: str, people: Integers) -> Floats:
        """Return the people of each category, or of a union, whom an attack names as epsilon goes to 0."""
        categories, shares = len(self.people), people / self.people.sum()
        if name == "homogeneity":
            return np.asarray(people * 0.5**categories)
        if name == "plurality":
            return np.asarray(people * (1.0 - 0.5**categories) / categories)
        if name == "best-guess":
            commonest = shares >= shares.max() - TIE
            return np.asarray(people * commonest / commonest.sum())
        return np.asarray(np.where(shares >= self.certainty - TIE, people, 0.0))


def learning_factor(share: float, certainty: float) -> float:
    """Return what the posterior means of the others may sum to, as a part of a value's own, for it to be learnt.

    Posterior odds of at least max(tau/(1 - tau), 3 pi/(1 - pi)), pi the overall share. What everybody has is never
    learnt: no sum is below a negative part.
    """
    sure = odds_against(certainty)
    if share >= 1.0 - TIE:
        return -1.0
    return min(sure, (1.0 - share) / (BEYOND_PREVALENCE * share)) if share else sure


def named_without_noise(name: str, counts: Integers, k: int, shares: Floats, factor: float, union: Union) -> Floats:
    """Return the probability that an attack names category k, or its union, if these counts are published: (groups,).

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
        named = values[:, list(union)].sum(axis=1)
        return np.asarray(values.sum(axis=1) - named <= factor * named * (1.0 + SAME_SCORE), np.float64)
    largest = values >= values.max(axis=1)[:, None]
    probability = np.where(largest[:, k], 1.0 / largest.sum(axis=1), 0.0)
    return np.asarray(np.where(empty, 0.0, probability) if name == "plurality" else probability)
