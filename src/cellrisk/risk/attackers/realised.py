"""The four attacks on releases in hand: whom they name, and whom they would name without each person's own record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.risk.attackers.figures import ATTACKS, Union, learning_factor
from cellrisk.risk.attacks.acceptance import SAME_SCORE
from cellrisk.risk.certainty.inferences import odds_against
from cellrisk.system.arrays import Floats, Integers

PosteriorMeans = Callable[[int, Integers], Floats]
"""Of a category, the posterior mean of the count behind each released value; of the same shape as the values."""
Key = tuple[str, Union]
"""An attack, or "learnt", and the union that is named as one value; empty for each category on its own."""


@dataclass(eq=False)
class RealisedAttacks:
    """Whom the attacks reveal in each release, and because of their own record.

    The own record is left out with the same noise on the count. No formula of the expected figures is used.
    """

    releases: int
    people: Integers
    """The people of each category."""
    certainty: float
    means: PosteriorMeans | None = None
    """None leaves out the attackers who apply Bayes' rule."""
    harmful: tuple[int, ...] = ()
    unions: tuple[Union, ...] = ()
    revealed: dict[Key, Floats] = field(init=False)
    """Of each attack: (categories, releases)."""
    own: dict[Key, Floats] = field(init=False)

    def __post_init__(self) -> None:
        self.revealed, self.own = (defaultdict(lambda: np.zeros((len(self.people), self.releases))) for _ in range(2))

    def read(self, releases: slice, counts: Floats, released: Floats, lessened: Floats | None) -> None:
        """Add some groups of some releases: true counts, released ones, and those with one record less of each count.

        All are arrays of categories, releases and groups.
        """
        known: dict[str, tuple[Floats, Floats | None]] = {"shown": (released, lessened)}
        if self.means is not None:
            try:
                less = None if lessened is None else _behind(self.means, lessened)
                known["means"] = _behind(self.means, released), less
            except InvalidInput:  # more counts are possible than are summed
                self.means = None
        for attack, union in self._attacks():
            having, lacking = known["shown" if attack in ATTACKS[:2] else "means"]
            for k in union or range(len(self.people)):
                rest = slice(None) if counts.shape[1] > 1 else np.flatnonzero(counts[k, 0])
                people, scores = counts[k][..., rest], having[..., rest]
                members = list(union or (k,))
                with_it = self._named(attack, k, members, scores)
                self.revealed[attack, union][k, releases] += (people * with_it).sum(axis=-1)
                if lacking is None:
                    continue
                scores = scores.copy()
                scores[k] = lacking[k][..., rest]
                without = self._named(attack, k, members, scores)
                self.own[attack, union][k, releases] += (people * (with_it - without)).sum(axis=-1)

    def _attacks(self) -> Sequence[Key]:
        attacks: list[Key] = [(name, ()) for name in ATTACKS[:2]]
        if self.means is not None:
            attacks.append(("best-guess", ()))
            attacks += [(name, union) for union in ((), *self.unions) for name in ("informed", "learnt")]
        return attacks

    def _named(self, attack: str, k: int, members: list[int], scores: Floats) -> Floats:
        """Return how likely the attack names a category, or the union that it is in, by the scores of all."""
        if attack == "homogeneity":
            shown = scores > 0
            return np.asarray(shown[k] & (shown.sum(axis=0) == 1), np.float64)
        if attack in ("plurality", "best-guess"):
            largest = scores.max(axis=0)
            tied = scores >= largest - np.abs(largest) * SAME_SCORE  # largest is negative if every count is
            return np.asarray(tied[k] * (largest > 0) / tied.sum(axis=0))
        share = float(self.people[members].sum() / self.people.sum())
        factor = learning_factor(share, self.certainty) if attack == "learnt" else odds_against(self.certainty)
        named = scores[members].sum(axis=0)
        return np.asarray((scores.sum(axis=0) - named <= factor * named * (1.0 + SAME_SCORE)) & (named > 0), np.float64)

    def to_rows(self, categories: Sequence[str]) -> list[dict[str, Any]]:
        """Return one entry of ``attackers`` in JSON for each attack: means over the releases, with standard errors."""
        rows = []
        for attack, union in self._attacks():
            if attack == "learnt":
                continue
            row: dict[str, Any] = {"attack": attack}
            parts = {"revealed": self.revealed[attack, union]}
            if (attack, union) in self.own:
                parts |= {"without": parts["revealed"] - self.own[attack, union], "own": self.own[attack, union]}
            if attack == "informed":
                row["certainty"] = self.certainty
                row |= {"union": [categories[k] for k in union]} if union else {}
                row |= {"harmful": [categories[k] for k in self.harmful]} if self.harmful and not union else {}
                learnt = self.revealed["learnt", union]
                counted = np.isin(np.arange(len(learnt)), self.harmful) if self.harmful and not union else 1.0
                parts["learnt"] = learnt * np.reshape(counted, (-1, 1))
            for name, numbers in parts.items():
                total = numbers.sum(axis=0)
                row[name] = float(total.mean())
                if self.releases > 1:
                    row[f"{name}_error"] = float(total.std(ddof=1) / np.sqrt(self.releases))
            row["by_category"] = {
                categories[k]: {
                    "people": int(self.people[k]),
                    **{name: float(numbers[k].mean()) for name, numbers in parts.items()},
                }
                for k in union or range(len(categories))
            }
            rows.append(row)
        return rows


def _behind(means: PosteriorMeans, released: Floats) -> Floats:
    return np.stack([means(k, shown.astype(np.int64)) for k, shown in enumerate(released)])
