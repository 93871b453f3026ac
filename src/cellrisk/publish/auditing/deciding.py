"""The figures to decide by, of a release in hand: who stands alone as 1, and what an attacker can be sure of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.counting import MOST_LABELS
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.distributions import first_value
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.methods import check_alone
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.publish.auditing.comparison import TableComparison
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.certainty import Belief, NamedPeople, why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.risk.perturbed.certainty import name_published, why_unsure
from cellrisk.risk.perturbed.figures import find_ceiling, say_ceiling
from cellrisk.system.arrays import Integers
from cellrisk.system.text import number_of, percent, whole_people
from cellrisk.system.words import MechanismName

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute
    from cellrisk.publish.releasing.release_result import Release

USUAL_FIRST = 1
NAME_IT = "name the mechanism and its epsilon"


@dataclass(frozen=True)
class MadeBy:
    """How a release was made, as far as that is known."""

    mechanism: Mechanism | None = None
    perturbation: Perturbation | None = None
    """The perturbation, where one stands in the place of a mechanism."""
    clamped: bool | None = None
    """Whether counts below the threshold were set to 0; None where that is to be seen from the counts."""
    adjusted: bool = False
    """Whether counts were made to add up to others after the noise."""
    records: bool = False
    """Whether it holds records, and not counts."""
    contradicted: bool = False
    """Whether another mechanism was given than the one that the release itself names."""
    changed: bool = False
    """Whether the file is another than the one that the description beside it was written for."""

    @staticmethod
    def of(released: Release | None, changed: bool) -> MadeBy:
        """What a release says of itself; nothing is known if there is none."""
        if released is None:
            return MadeBy(changed=changed)
        return MadeBy(released.mechanism, clamped=released.clamp, adjusted=released.adjusted)

    def told(
        self,
        mechanism: Mechanism | MechanismName | None,
        beside: dict[str, Any],
        perturbation: str | Perturbation | None = None,
    ) -> MadeBy:
        """How the release was made: by the mechanism given, as an object or as its name with its epsilon beside it.

        A release that says itself how it was made is believed; a perturbation beside one is refused.
        """
        if perturbation is not None:
            check_alone(mechanism, beside)
            if self.mechanism is not None:
                raise InvalidInput(
                    "the release says itself that it was made by a mechanism, and not by a perturbation",
                    fix=f"leave {argument('perturbation')} out",
                )
            return replace(self, perturbation=read_perturbation(perturbation))
        if mechanism is None and all(value is None for value in beside.values()):
            return self
        given = read_mechanism(USUAL_MECHANISM if mechanism is None else mechanism, **beside)
        if self.mechanism is None:
            return replace(self, mechanism=given)
        return replace(self, contradicted=given != self.mechanism)


@dataclass(frozen=True)
class FiguresInHand:
    """What to decide by, of one release: numbers of people, and not expected ones."""

    sensitive: str
    records: int
    lone: int
    """People whose value their cell shows alone, as the smallest count that is released."""
    lone_cells: int
    smallest: int
    """The smallest count that is released: 1, but for a threshold."""
    mechanism: Mechanism | None
    """None where it is not known."""
    certainty: tuple[NamedPeople, ...]
    """Ascending; empty where it cannot be told."""
    unknown: str | None
    """Why it cannot be told."""
    belief: Belief | None
    ceiling: Ceiling | None
    """None where the mechanism is not known, or where the counts show parents that they add up to."""
    perturbed: PerturbedInHand | None = None
    """What stands in the place of people who stand alone as 1, for a perturbation."""

    @property
    def caused(self) -> float:
        """People given away because of their own record."""
        return float(self.lone) if self.perturbed is None else self.perturbed.caused

    @property
    def sentence(self) -> str:
        """The figures, each with what it means."""
        if self.perturbed is not None:
            return " ".join([self.perturbed.sentence(self.sensitive), *self._say_sure()])
        number = "None" if not self.lone else f"{self.lone:,}"
        behind = f"{'stands' if self.lone == 1 else 'stand'} behind a count of {self.smallest} that is shown alone"
        told = f"{number} of those given away {behind}"
        if self.mechanism is None or not self.lone:
            return " ".join([f"{told}.", *self._say_sure()])
        return " ".join([f"{told}: without their own record each would have been safe from that.", *self._say_sure()])

    def _say_sure(self) -> list[str]:
        """What the attacker is sure of, at the highest certainty; nothing where that is not known."""
        if not self.certainty:
            return []
        surest = self.certainty[-1]
        return [
            f"Given these counts, somebody who knows the method and does the mathematics names the {self.sensitive} "
            f"of {surest.people} rightly and with at least {100 * surest.certainty:g}% certainty."
        ]

    def describe_certainty(self) -> str:
        """What the attacker names, in a sentence for each certainty."""
        if not self.certainty:
            return f"What an attacker can be sure of is not computed: {self.unknown}."
        lines = []
        for row in self.certainty:
            sure = f"{100 * row.certainty:g}%"
            if row.precision is None:
                lines.append(f"No {self.sensitive} is named with {sure} certainty or more.")
                continue
            lines.append(
                f"With {sure} certainty or more: {row.people} named rightly, of {round(row.named):,} named; "
                f"right {percent(row.precision)} of the time."
            )
        believed = "" if self.belief is None else f"The attacker's belief: {self.belief.describe()}."
        limit = [] if self.ceiling is None else [self.ceiling.of_two]
        if self.perturbed is not None:
            limit = [say_ceiling(self.perturbed.ceiling, self.perturbed.worst_counts)]
        return "\n".join([*lines, believed, *limit])

    def to_dict(self) -> dict[str, Any]:
        """What stands under ``decision`` in JSON."""
        found: dict[str, Any] = {
            "sensitive": self.sensitive,
            "caused": {
                "people": self.lone,
                "share": self.lone / self.records,
                "cells": self.lone_cells,
                "shown_as": self.smallest,
            },
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
        }
        if self.perturbed is not None:
            found |= self.perturbed.to_dict(self.records)
        if self.unknown is not None:
            found["certainty_unknown"] = self.unknown
        if self.belief is not None:
            found["belief"] = self.belief.to_dict()
        return found


@dataclass(frozen=True)
class PerturbedInHand:
    """What one published table gives away because of people's own records, under a perturbation."""

    perturbation: Perturbation
    exposed: int
    """People whose value their cell shows alone."""
    without: float
    """The expected number, had each person's record been left out in turn and that count been published anew."""
    ceiling: float
    worst_counts: tuple[int, int]

    @property
    def caused(self) -> float:
        """The difference. Over many publications, its mean is the caused figure of `assess_perturbation`."""
        return self.exposed - self.without

    def sentence(self, sensitive: str) -> str:
        difference = f"{whole_people(abs(self.caused))} {'fewer' if self.caused >= 0 else 'more'}"
        return (
            f"Had each person's own record been left out in turn, and their count been published anew with "
            f"{self.perturbation.name}, {number_of(self.without, 'person')} would have their {sensitive} given away: "
            f"{difference}, which is what their own records cause."
        )

    def to_dict(self, records: int) -> dict[str, Any]:
        return {
            "caused": {"people": self.caused, "share": self.caused / records, "without": self.without},
            "ceiling": {"even_two": self.ceiling, "worst_counts": list(self.worst_counts)},
            "perturbation": self.perturbation.to_dict(),
        }


def decide_perturbed(
    attribute: Attribute, both: TableComparison, perturbation: Perturbation, attacker: Attacker
) -> FiguresInHand:
    """What a table gave away that a perturbation made: every count of it by the probabilities of its row.

    Given what the other labels of the cell were published as, a person is given away with one record less where all
    these vanished and the count without that record survives: sum_k n_k 1(r_j = 0 for all j != k) s(n_k - 1).
    """
    perturbation.check_reach(int(both.original.max()))
    _check_possible(both, perturbation)
    original, published = _spread(both, attribute.n_levels)
    shown = published > 0
    others = shown.sum(axis=1, keepdims=True) - shown == 0
    survive = perturbation.channel.p_positive(np.maximum(original - 1, 0))[..., 0]
    exposed = int((original * (shown & others)).sum())
    without = float((original * others * survive).sum())
    belief, unknown = None, why_unknown(attribute)
    if unknown is None:
        belief = attacker.believe(attribute)
        unknown = why_unsure(attribute, perturbation, belief)
    certainty: tuple[NamedPeople, ...] = ()
    if belief is not None and unknown is None:
        certainty = name_published(attribute, perturbation, attacker.certainties, belief, original, published)
    lone = (both.n_shown == 1) & (both.named > 0)
    limit = find_ceiling(perturbation)
    return FiguresInHand(
        attribute.name,
        int(both.n_records),
        exposed,
        int(lone.sum()),
        USUAL_FIRST,
        None,
        certainty,
        unknown,
        belief,
        None,
        PerturbedInHand(perturbation, exposed, without, *limit),
    )


def _check_possible(both: TableComparison, perturbation: Perturbation) -> None:
    """Refuses a table with counts that the perturbation never publishes for what they were."""
    pairs, number = np.unique(np.stack([both.original, both.released]), axis=1, return_counts=True)
    wrong = 0
    for (count, value), times in zip(pairs.T.tolist(), number.tolist(), strict=True):
        values, chances = perturbation.row(int(count))
        if not (chances[values == value] > 0).any():
            wrong += times
    if wrong:
        raise InvalidInput(
            "the published table has counts that this perturbation never makes of the true ones",
            got=f"{wrong:,} of {len(both.released):,} counts",
            fix="name the perturbation that made it, or leave it out",
        )


def decide_in_hand(attribute: Attribute, both: TableComparison, made: MadeBy, attacker: Attacker) -> FiguresInHand:
    """Who stands alone as 1, and what can an attacker be sure of who has these counts?

    Under noise that is added to each count, a person is given away because of their own record if the cell shows their
    label alone, and as the smallest value T that is released: over many releases their mean is the caused figure of
    `assess`. The certainty is that of `cellrisk.risk.certainty.in_hand`.
    """
    if made.perturbation is not None:
        return decide_perturbed(attribute, both, made.perturbation, attacker)
    smallest = USUAL_FIRST if made.mechanism is None else first_value(made.mechanism.threshold)
    alone = (both.n_shown == 1) & (both.shown_sizes == smallest)
    unknown = _why_unknown(attribute, both, made)
    belief: Belief | None = None
    certainty: tuple[NamedPeople, ...] = ()
    if unknown is None and made.mechanism is not None:
        from cellrisk.risk.certainty.in_hand import name_in_hand

        belief = attacker.believe(attribute)
        original, released = _spread(both, attribute.n_levels)
        clamped = _is_clamped(both, made, smallest)
        certainty = name_in_hand(
            original, released, made.mechanism, attacker.certainties, belief, attribute.vectors, clamped=clamped
        )
    return FiguresInHand(
        attribute.name,
        int(both.n_records),
        int(both.named[alone].sum()),
        int((alone & (both.named > 0)).sum()),
        smallest,
        made.mechanism,
        certainty,
        unknown,
        belief,
        None if made.mechanism is None or made.adjusted else ceiling(made.mechanism, labels=max(attribute.n_levels, 2)),
    )


def _why_unknown(attribute: Attribute, both: TableComparison, made: MadeBy) -> str | None:
    """Why it cannot be told what an attacker can be sure of; None where it can."""
    if made.records:
        return "the release holds records, and not counts with noise"
    if made.mechanism is None:
        return f"the mechanism of the release is not known; {NAME_IT}"
    if made.adjusted:
        return "the counts were made to add up to others after the noise"
    if (both.released != np.floor(both.released)).any():
        return "the released counts are not whole numbers"
    if attribute.n_levels > MOST_LABELS:
        return f"more than {MOST_LABELS} labels"
    return None


def _is_clamped(both: TableComparison, made: MadeBy, smallest: int) -> bool:
    """Whether counts below the smallest released one are 0; refuses a release that this mechanism cannot have made."""
    below = both.released[(both.released != 0) & (both.released < smallest)]
    negative = bool((below < 0).any())
    if (below > 0).any() or (negative and smallest > USUAL_FIRST):
        raise InvalidInput(
            "the release has counts below the smallest that this mechanism releases",
            got=f"{len(below):,} of {len(both.released):,} below {smallest}",
            fix="give the threshold that the release was made with",
        )
    return not negative if made.clamped is None else made.clamped


def _spread(both: TableComparison, labels: int) -> tuple[Integers, Integers]:
    """The true and the released counts of every cell that holds anybody: (cells, labels). What is not listed is 0."""
    held = both.sizes > 0
    row, kept = np.cumsum(held) - 1, held[both.cell]
    spread = np.zeros((2, int(held.sum()), labels), np.int64)
    spread[:, row[both.cell[kept]], both.level[kept]] = both.original[kept], both.released[kept]
    return spread[0], spread[1]
