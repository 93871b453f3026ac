"""One table for every attack: who is revealed, who would be without their own record, and what noise alone gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from cellrisk.counts.profiles import LabelledCounts
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.attacks.acceptance import (
    SAME_SCORE,
    LargestScore,
    LargestShare,
    Scores,
    Success,
    homogeneity_success,
    informed_attack,
    possible_values,
)
from cellrisk.risk.attacks.guesses import Plurality
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from cellrisk.risk.certainty.inferences import TIE, most_moved, odds_against
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
    """What one attack names correctly in one release, in expected people."""

    attack: str
    people: int
    revealed: float
    """R: people whose category is named."""
    own: float
    """D: revealed, less those who would also be revealed with their own record left out."""
    baseline: float
    """B: people whose category is named if there is nothing but noise."""
    error: float
    """How far any of these numbers may be off: half the distance between two ends; 0 if all are exact."""
    own_error: float
    """Half the distance between the two ends of ``own``; 0 if it is exact."""
    most: float
    """m: the largest probability that one person's own record adds."""
    most_people: int
    """People to whom it adds that much."""
    hidden: float
    """The part of ``own`` of people whose records make them less likely to be revealed: 0 or negative."""
    no_noise: tuple[float, float]
    """``revealed`` and ``own`` for the table published without noise."""
    by_category: Mapping[str, Floats | Integers]
    """People, revealed, own and learnt for each category; of a union, of all its categories together."""
    learnt: float | None = None
    """Revealed, with at least three times the odds that the overall share gives: of the informed attacker."""
    learnt_own: float | None = None
    """Learnt, less those who would also be learnt with their own record left out."""

    @property
    def without(self) -> float:
        """L: people who would be revealed with their own record left out."""
        return self.revealed - self.own

    def to_dict(self, categories: Sequence[str]) -> dict[str, Any]:
        """Return one entry of ``attackers`` in JSON."""
        return {
            **{name: getattr(self, name) for name in ("attack", "revealed", "without", "own", "baseline")},
            **({} if self.learnt is None else {"learnt": self.learnt}),
            "by_category": {
                name: {part: numbers[k].item() for part, numbers in self.by_category.items()}
                for k, name in enumerate(categories)
            },
            "most": self.most,
            "most_people": self.most_people,
            "no_noise": {"revealed": self.no_noise[0], "own": self.no_noise[1]},
            "error": self.error,
            **({"hidden": self.hidden} if self.hidden < -SAME_GAIN * self.people else {}),
        }


@dataclass(frozen=True, eq=False)
class AttackTable:
    """The four attacks on the groups of one sensitive attribute, under the first setting of a channel.

    For a person of category k in a group with the counts n, S = P(the attack names k | n) and S' = P(the attack names
    k | n - e_k), the own record left out:

        revealed R = sum S,   without L = sum S',   own record D = R - L,   most exposed m = max (S - S').

    Homogeneity, largest count and best guess are exact; the informed attacker is exact for two categories and lies
    between two ends for more. Figures are computed when they are asked for. The people of one kind are those of one
    category in groups with the same counts: (groups, categories).
    """

    vectors: LabelledCounts
    channel: CountChannel | None
    """None if the counts are published as they are."""
    prior: NegativeBinomial | None
    """What the attackers who apply Bayes' rule believe; without it they are left out."""
    certainty: float
    harmful: tuple[int, ...] = ()
    """The categories of which ``learnt`` is counted; empty for all."""
    unions: tuple[Union, ...] = ()
    """Sets of categories that the informed attacker also names as one value: posterior means add up."""
    known: dict[CountChannel | None, dict[Any, Success]] = field(default_factory=dict, repr=False)
    """What was computed, by channel, and by certainty, attack, union and whether it is learnt."""
    own_record: ClassVar[str] = "own record"
    """What is left out of a person, in words."""

    def under(self, channel: CountChannel | None) -> AttackTable:
        """Return these attacks under another channel; what they reveal without noise is computed once for all."""
        return replace(self, channel=channel, known={None: self.known.setdefault(None, {})})

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks of this table: best guess and informed need a prior."""
        return ATTACKS if self.prior is not None else ATTACKS[:2]

    @property
    def n_people(self) -> int:
        return int(self.people.sum())

    @cached_property
    def people(self) -> Integers:
        """The people of each category; one with several records may be of several."""
        return np.asarray(self.vectors.cells @ self.vectors.counts)

    @cached_property
    def shares(self) -> Floats:
        """The overall share of each category."""
        return np.asarray(self.people / self.people.sum())

    @property
    def drowned(self) -> bool:
        """Whether the noise is so wide that attacks get what they get with nothing but noise."""
        channel = self.channel
        return channel is not None and (bool(channel.infinite[0]) or channel.radius > WIDEST_NOISE)

    def without_unused(self) -> AttackTable:
        """The attacks of those who know which categories occur; two categories are kept at the least."""
        kept = np.sort(np.argsort(-self.people, kind="stable")[: max(2, np.count_nonzero(self.people))]).tolist()
        renumbered = {k: new for new, k in enumerate(kept)}
        shapes = tuple(self.prior.shapes[k] for k in kept) if self.prior else ()
        unions = (tuple(renumbered[k] for k in union if k in renumbered) for union in self.unions)
        return self._of_categories(
            kept,
            channel=self.channel,
            prior=replace(self.prior, shapes=shapes) if self.prior and any(shapes) else None,
            certainty=self.certainty,
            harmful=tuple(renumbered[k] for k in self.harmful if k in renumbered),
            unions=tuple(union for union in unions if 1 < len(union) < len(kept)),
        )

    def _of_categories(self, kept: list[int], **attackers: Any) -> AttackTable:
        """Return the attacks on some of the categories."""
        return AttackTable(LabelledCounts.from_cells(self.vectors.counts[:, kept], self.vectors.cells), **attackers)

    def weights(self, union: Union = ()) -> Integers:
        """Return the people of each kind, of a union if one is given."""
        people = self.vectors.cells[:, None] * self.vectors.counts
        return np.where(np.isin(np.arange(self.vectors.n_levels), union), people, 0) if union else people

    def _by_category(self, values: Floats) -> Floats:
        """Return the sum of a number for each kind of person over the people of each category."""
        return np.asarray((self.weights() * values).sum(axis=0))

    @cached_property
    def _means(self) -> tuple[Scores, ...]:
        """The posterior mean of each category's count behind each released value.

        Next to no noise the mean behind a released 0 vanishes in proportion to the shape, so an empty group has the
        overall shares; where it has underflown, a tiny number in that proportion stands for it.
        """
        channel = cast(CountChannel, self.channel)
        values = possible_values(self.vectors.counts, channel)
        return tuple(
            Scores(channel, known, np.maximum(posterior_means(prior, channel, known), TINY * prior.shape))
            for known, prior in zip(values, self.prior.by_category if self.prior else (), strict=True)
        )

    def attack(self, name: str, factors: tuple[float, ...], union: Union = ()) -> LargestScore | LargestShare:
        """Return best guess, or the informed attacker with ``factors`` of `LargestShare`."""
        if name == "best-guess":
            return LargestScore(self._means)
        return LargestShare(self._means, factors, union) if union else informed_attack(self._means, factors)

    def factors(self, union: Union = (), *, learnt: bool = False) -> tuple[float, ...]:
        """Return, for each category, what the posterior means of the others may be, as a part of its own."""
        if not learnt:
            return (odds_against(self.certainty),) * len(self.shares)
        return tuple(learning_factor(float(share), self.certainty) for share in self._shares_named(union))

    def success(self, name: str, union: Union = (), *, learnt: bool = False) -> Success:
        """Return how likely an attack names the category of each person, with and without that person's record.

        With ``learnt``, how likely the informed attacker learns it, of the harmful categories if there are any.
        """
        known, key = self.known.setdefault(self.channel, {}), (self.certainty, name, union, learnt)
        if key not in known:
            known[key] = self._succeed(name, union, learnt)
        return known[key]

    def _succeed(self, name: str, union: Union, learnt: bool) -> Success:
        factors, counts = self.factors(union, learnt=learnt), self.vectors.counts
        if self.channel is None:
            success = self._published(name, factors, union)
        elif name == "homogeneity":
            success = homogeneity_success(self.vectors, self.channel)
        elif name == "plurality":
            both = [counts, np.maximum(counts - 1, 0)]
            named, without = Plurality().prob_named_as(both, counts, counts.shape[1], self.channel)
            success = Success.exact(counts, named, named - without)
        else:
            success = self.attack(name, factors, union).succeed(self.vectors, self.channel)
        if learnt and self.harmful and not union:
            counted = np.isin(np.arange(counts.shape[1]), self.harmful)
            return Success(success.revealed * counted, success.gain * counted)
        return success

    def _shares_named(self, union: Union) -> Floats:
        """Return the overall share of the value by which each category is named."""
        shares = self.shares.copy()
        shares[list(union)] = self.shares[list(union)].sum()
        return shares

    def _published(self, name: str, factors: tuple[float, ...], union: Union) -> Success:
        """Return the success if the counts are published as they are."""
        counts = self.vectors.counts
        revealed, gain = np.zeros((2, *counts.shape))
        for k in union or range(counts.shape[1]):
            have = np.flatnonzero(counts[:, k])
            less = counts[have]
            less[:, k] -= 1
            revealed[have, k], without = (
                named_without_noise(name, groups, k, self.shares, factors[k], union or (k,))
                for groups in (counts[have], less)
            )
            gain[have, k] = revealed[have, k] - without
        return Success.exact(counts, revealed, gain)

    def figures(self, name: str, union: Union = ()) -> AttackFigures:
        """Return the figures of one attack, of every category or of a union of them."""
        people = int(self.people[list(union)].sum()) if union else self.n_people
        weights, informed = self.weights(union), name == "informed"

        def add_up(ends: Floats) -> tuple[float, float]:
            """Return the middle of two ends of a number of people, and half the distance between them."""
            low, high = (float((weights * end).sum()) for end in ends)
            return 0.5 * (low + high), 0.5 * abs(high - low)

        def split(ends: Floats) -> Floats:
            middle = ends.mean(axis=0)
            return np.array([(weights * middle).sum()]) if union else self._by_category(middle)

        blind = np.broadcast_to(self._blind(name, union), weights.shape)
        bare, nothing = replace(self, channel=None).success(name, union), np.zeros((2, *weights.shape))
        if self.drowned:
            success, learnt = Success(np.stack([blind, blind]), nothing), Success(nothing, nothing)
        else:
            success = self.success(name, union)
            learnt = self.success(name, union, learnt=True) if informed else success
        (revealed, error), (own, own_error) = add_up(success.revealed), add_up(success.gain)
        gain = np.where(weights > 0, success.gain.mean(axis=0), -np.inf)
        most = max(float(gain.max()), 0.0)
        known, learnt_error = add_up(learnt.revealed)
        parts = {"revealed": split(success.revealed), "own": split(success.gain)}
        parts |= {"learnt": split(learnt.revealed)} if informed else {}
        return AttackFigures(
            attack=name,
            people=people,
            revealed=revealed,
            own=own,
            baseline=add_up(np.stack([blind, blind]))[0],
            error=max(error + own_error, learnt_error if informed else 0.0),
            own_error=own_error,
            most=most,
            most_people=int(weights[gain >= most - SAME_GAIN].sum()) if most else 0,
            hidden=float((weights * np.minimum(success.gain[1], 0.0)).sum()),
            no_noise=(add_up(bare.revealed)[0], add_up(bare.gain)[0]),
            by_category={"people": np.array([people]) if union else self.people, **parts},
            learnt=known if informed else None,
            learnt_own=add_up(learnt.gain)[0] if informed else None,
        )

    def to_rows(self, sensitive: str, categories: Sequence[str], advantage: float | None) -> list[dict[str, Any]]:
        """Return the entries of ``attackers`` in JSON; ``advantage`` is what one record adds to any attack at most."""
        rows = []
        for name, union in self._attacks():
            named = ["+".join(categories[k] for k in union)] if union else categories
            row = {"sensitive": sensitive, **self.figures(name, union).to_dict(named)}
            if name == "informed" and self.prior is not None:
                row |= {"certainty": self.certainty, "prior": self.prior.name}
                row |= {"union": [categories[k] for k in union]} if union else {}
                row |= {"harmful": [categories[k] for k in self.harmful]} if self.harmful and not union else {}
            rows.append(row)
        if advantage is None:
            return rows
        return [*rows, {"sensitive": sensitive, "attack": "any", "own": advantage * self.n_people, "most": advantage}]

    def people_above(self, gain: float) -> int:
        """Return the people whose own record adds more than that to the homogeneity attack or to the largest count.

        Those two attacks need no prior.
        """
        if self.drowned:
            return 0
        largest = np.maximum(self.success("homogeneity").gain[0], self.success("plurality").gain[0])
        return int(self.weights()[largest > gain].sum())

    def largest_own(self, enough: float = math.inf) -> float:
        """Return the largest share of a category whose people are revealed because of their own record.

        Of all four attacks, the upper end if it lies between two. Categories of fewer than five people count together.
        Once one attack is above ``enough``, the others are not computed.
        """
        return self._largest(self._largest_share, enough)

    def largest_gain(self, enough: float = math.inf) -> float:
        """Return the largest probability that one person's own record adds, of all four attacks, as above."""
        return self._largest(lambda gain, union: float(gain[self.weights(union) > 0].max(initial=0.0)), enough)

    def _largest(self, figure: Callable[[Floats, Union], float], enough: float) -> float:
        largest = 0.0
        for name, union in () if self.drowned else self._attacks():
            largest = max(largest, figure(self.success(name, union).gain[1], union))
            if largest > enough:
                break
        return largest

    def _attacks(self) -> Iterator[tuple[str, Union]]:
        """Yield every attack, quick ones first."""
        yield from ((name, ()) for name in self.names)
        yield from (("informed", union) for union in self.unions)

    def largest_learnt(self) -> float:
        """Return the largest share of a category that the informed attacker learns: of all, or of the harmful ones.

        Noise that has drowned the counts counts with 1 if a release may still make the odds of a value large enough.
        """
        if self.prior is None:
            return 0.0
        if self.drowned:
            return float(self._may_learn())
        return max(
            self._largest_share(self.success("informed", union, learnt=True).revealed[1], union, self.harmful)
            for union in ((), *self.unions)
        )

    def _may_learn(self) -> bool:
        """Return whether noise that has drowned the counts may let the odds of a value suffice for it to be learnt."""
        if self.prior is None or self.channel is None:
            return False
        shapes = np.array(self.prior.shapes)
        moved = most_moved(self.channel, max(prior.last_likely(30.0) for prior in self.prior.by_category))
        for union in ((), *self.unions):
            for k in union or range(len(shapes)):
                named = shapes[list(union or (k,))].sum()
                factor = self.factors(union, learnt=True)[k]
                if math.exp(-min(moved, 700.0)) * (shapes.sum() - named) <= factor * named and self.shares[k]:
                    return True
        return False

    def _largest_share(self, values: Floats, union: Union = (), categories: Sequence[int] = ()) -> float:
        """Return the largest share of its people that a number for each kind of person is in a category.

        Categories of fewer than five people are taken together.
        """
        if union:
            return float((self.weights(union) * values).sum()) / max(int(self.people[list(union)].sum()), 1)
        counted = list(categories) or slice(None)
        people, numbers = self.people[counted], self._by_category(values)[counted]
        few = people < LEAST_PEOPLE
        rest = [numbers[few].sum() / people[few].sum()] if people[few].any() else []
        return float(max([*(numbers[~few] / people[~few]), *rest], default=0.0))

    def _blind(self, name: str, union: Union) -> Floats:
        """Return S of each kind of person as epsilon goes to 0."""
        categories = len(self.shares)
        if name == "homogeneity":
            return np.full(categories, 0.5**categories)
        if name == "plurality":
            return np.full(categories, (1.0 - 0.5**categories) / categories)
        if name == "best-guess":
            commonest = self.shares >= self.shares.max() - TIE
            return np.asarray(commonest / commonest.sum())
        return np.asarray(self._shares_named(union) >= self.certainty - TIE, np.float64)


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
