"""What one release discloses: who is shown alone because of their own record, and what an attacker can be sure of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.distributions import first_value
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, check_alone
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.publish.auditing.comparison import TableComparison
from cellrisk.risk.attackers.realised import PosteriorMeans, RealisedAttacks
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.certainty import (
    ConfidentInferences,
    CountPrior,
    NegativeBinomial,
    infer_given_release,
    why_unknown,
)
from cellrisk.risk.certainty.posterior import posterior_means
from cellrisk.risk.figures import Attacker
from cellrisk.risk.perturbed.ceiling import find_ceiling
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.choices import MechanismName

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
    """The perturbation, if there is one instead of a mechanism."""
    clamped: bool | None = None
    """Whether counts below the threshold were set to 0; None if that is to be seen from the counts."""
    adjusted: bool = False
    """Whether counts were made to add up to others after the noise."""
    records: bool = False
    """Whether it holds records, and not counts."""
    contradicted: bool = False
    """Whether another mechanism was given than the one that the release itself names."""

    @property
    def known(self) -> bool:
        return self.mechanism is not None or self.perturbation is not None


def read_method(
    released: Release | None,
    mechanism: Mechanism | MechanismName | None,
    beside: dict[str, Any],
    perturbation: str | Perturbation | None,
) -> MadeBy:
    """How a release was made: as it says itself, or by the mechanism given, as an object or as its name with its
    epsilon ``beside`` it, or by a perturbation. A release that says itself how it was made is believed."""
    found = MadeBy()
    if released is not None:
        found = MadeBy(released.mechanism, clamped=released.clamp, adjusted=released.adjusted)
    if perturbation is not None:
        check_alone(mechanism, beside)
        if found.known:
            raise InvalidInput(
                "the release says itself that it was made by a mechanism, and not by a perturbation",
                fix=f"leave {argument('perturbation')} out",
            )
        return MadeBy(perturbation=read_perturbation(perturbation))
    if mechanism is None and all(value is None for value in beside.values()):
        return found
    given = read_mechanism(USUAL_MECHANISM if mechanism is None else mechanism, **beside)
    return replace(found, contradicted=given != found.mechanism) if found.known else MadeBy(given)


@dataclass(frozen=True)
class RealisedDisclosure:
    """The figures to decide by, of one release: numbers of people, and not expected ones."""

    sensitive: str
    records: int
    caused: float
    """People revealed because of their own record. With noise, those shown alone as the smallest count that is
    released. With a perturbation, the people exposed less the expected number ``without``; over many publications, its
    mean is the caused figure of `assess_perturbation`."""
    cells: int
    """Cells in which somebody is."""
    smallest: int
    """The smallest count that is released: 1, but for a threshold."""
    made: MadeBy
    certainty: tuple[ConfidentInferences, ...]
    """Ascending; empty if it is not known."""
    unknown: str | None
    """Why it is not known what an attacker can be sure of."""
    belief: CountPrior | None
    ceiling: Ceiling | None = None
    """None if the mechanism is not known, or if the counts show parents that they add up to."""
    without: float | None = None
    """Under a perturbation, the expected number of people exposed, had each person's record been left out in turn and
    that count been published anew."""
    worst: tuple[float, tuple[int, int]] | None = None
    """Of a perturbation, its worst case and the counts at which it is reached."""
    attackers: tuple[dict[str, Any], ...] = ()
    """The four attacks on these counts: people revealed, and under noise because of their own record; without a known
    mechanism, the two that need none."""

    def to_dict(self) -> dict[str, Any]:
        """What stands under ``decision`` in JSON."""
        share = {"share": self.caused / self.records}
        if self.worst is not None:
            caused = {"people": self.caused, **share, "without": self.without}
            limit: Any = {"even_two": self.worst[0], "worst_counts": list(self.worst[1])}
        else:
            caused = {"people": int(self.caused), **share, "cells": self.cells, "shown_as": self.smallest}
            limit = self.ceiling and self.ceiling.to_dict()
        known = {
            "perturbation": self.made.perturbation and self.made.perturbation.to_dict(),
            "certainty_unknown": self.unknown,
            "belief": self.belief and self.belief.to_dict(),
        }
        return {
            "sensitive": self.sensitive,
            "caused": caused,
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": limit,
            "mechanism": self.made.mechanism and self.made.mechanism.to_dict(),
            **{name: value for name, value in known.items() if value is not None},
        }


def find_realised(attribute: Attribute, both: TableComparison, made: MadeBy, attacker: Attacker) -> RealisedDisclosure:
    """Who is shown alone because of their own record, and what can an attacker be sure of who has these counts?

    Under noise that is added to each count, a person is revealed because of their own record if the cell shows their
    label alone, and as the smallest value T that is released: over many releases their mean is the caused figure of
    `assess`. The certainty is that of `infer_given_release`.
    """
    mechanism, perturbation = made.mechanism, made.perturbation
    smallest = USUAL_FIRST if mechanism is None else first_value(mechanism.threshold)
    alone = (both.n_shown == 1) & (both.shown_sizes == smallest)
    caused, without, worst = float(both.named[alone].sum()), None, None
    if perturbation is not None:
        perturbation.check_reach(int(both.original.max()))
        _check_possible(both, perturbation)
        without = _sum_without(*_spread(both, attribute.n_levels), perturbation)
        caused, worst = both.n_exposed - without, find_ceiling(perturbation)
    unknown, method = _why_unknown(attribute, both, made), mechanism or perturbation
    belief: CountPrior | None = None
    certainty: tuple[ConfidentInferences, ...] = ()
    clamped = unknown is not None or mechanism is None or _is_clamped(both, made, smallest)
    if unknown is None and method is not None:
        belief = attacker.believe(attribute)
        certainty = infer_given_release(
            *_spread(both, attribute.n_levels),
            method.channel,
            attacker.certainties,
            belief,
            attribute.vectors,
            clamped=clamped,
        )
    stated = mechanism is not None and not made.adjusted
    means = _means_behind(method, belief, clamped) if unknown is None and method is not None else None
    return RealisedDisclosure(
        sensitive=attribute.name,
        records=int(both.n_records),
        caused=caused,
        cells=int((alone & (both.named > 0)).sum()),
        smallest=smallest,
        made=made,
        certainty=certainty,
        unknown=unknown,
        belief=belief,
        ceiling=ceiling(mechanism, labels=max(attribute.n_levels, 2)) if mechanism and stated else None,
        without=without,
        worst=worst,
        attackers=_attack(attribute, both, made, attacker, means, smallest if clamped else None),
    )


def _attack(
    attribute: Attribute,
    both: TableComparison,
    made: MadeBy,
    attacker: Attacker,
    means: PosteriorMeans | None,
    smallest: int | None,
) -> tuple[dict[str, Any], ...]:
    """Return the four attacks on a release, at the attacker's largest certainty.

    ``smallest``: the smallest value that is released; None if small counts were left as the noise made them.
    """
    if made.records or attribute.n_levels < 2:
        return ()
    original, published = (counts.T[:, None, :].astype(np.float64) for counts in _spread(both, attribute.n_levels))
    lessened = published - 1
    if smallest is not None:
        lessened = np.where(lessened >= smallest, lessened, 0)
    labels, values = attribute.levels.labels, attacker.values
    attacks = RealisedAttacks(
        1,
        original.sum(axis=(1, 2)).astype(np.int64),
        attacker.certainties[-1],
        means,
        values.find_harmful(labels),
        values.find_unions(labels),
    )
    own_known = made.perturbation is None and not made.adjusted
    attacks.read(slice(0, 1), original, published, lessened if own_known else None)
    return tuple(attacks.to_rows(labels))


def _means_behind(method: Mechanism | Perturbation, belief: CountPrior | None, clamped: bool) -> PosteriorMeans | None:
    """Return the posterior mean of a count behind each released value; None for a prior that looks at the table."""
    if not isinstance(belief, NegativeBinomial):
        return None
    channel, priors = method.channel, belief.by_category

    def means(category: int, shown: Integers) -> Floats:
        values, place = np.unique(shown, return_inverse=True)
        found = posterior_means(priors[category], channel, values, clamped=clamped)
        return np.asarray(found[place.reshape(shown.shape)])

    return means


def _sum_without(original: Integers, published: Integers, perturbation: Perturbation) -> float:
    """People expected to be revealed had each record been left out in turn and that count been published anew.

    Given what the other labels of the cell were published as, that is if all these vanished and the count without the
    record survives: sum_k n_k 1(r_j = 0 for all j != k) s(n_k - 1).
    """
    shown = published > 0
    others = shown.sum(axis=1, keepdims=True) - shown == 0
    survive = perturbation.channel.p_positive(np.maximum(original - 1, 0))[..., 0]
    return float((original * others * survive).sum())


def _check_possible(both: TableComparison, perturbation: Perturbation) -> None:
    """Refuses a table with counts that the perturbation never publishes for what they were."""
    pairs, number = np.unique(np.stack([both.original, both.released]), axis=1, return_counts=True)
    wrong = 0
    for (count, value), times in zip(pairs.T.tolist(), number.tolist(), strict=True):
        values, probabilities = perturbation.row(int(count))
        if not (probabilities[values == value] > 0).any():
            wrong += times
    if wrong:
        raise InvalidInput(
            "the published table has counts that this perturbation never makes of the true ones",
            got=f"{wrong:,} of {len(both.released):,} counts",
            fix="name the perturbation that made it, or leave it out",
        )


def _why_unknown(attribute: Attribute, both: TableComparison, made: MadeBy) -> str | None:
    """Why it is not known what an attacker can be sure of; None if it is."""
    if made.records:
        return "the release holds records, and not counts with noise"
    if not made.known:
        return f"the mechanism of the release is not known; {NAME_IT}"
    if made.adjusted:
        return "the counts were made to add up to others after the noise"
    if (both.released != np.floor(both.released)).any():
        return "the released counts are not whole numbers"
    return why_unknown(attribute)


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
