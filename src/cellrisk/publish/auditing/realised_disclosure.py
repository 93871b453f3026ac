"""How a release was made, and what the four attacks reveal in it: numbers of people, and not expected ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.distributions import first_value
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, check_alone
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.publish.auditing.figures import TableComparison
from cellrisk.publish.simulation.attacks import TOO_WIDE, begin_attacks
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.certainty import why_unknown
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

    @property
    def smallest(self) -> int:
        """The smallest count that is released: 1, but for a threshold."""
        return USUAL_FIRST if self.mechanism is None else first_value(self.mechanism.threshold)


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
            what = "the release says itself that it was made by a mechanism, and not by a perturbation"
            raise InvalidInput(what, fix=f"leave {argument('perturbation')} out", code="described")
        return MadeBy(perturbation=read_perturbation(perturbation))
    if mechanism is None and all(value is None for value in beside.values()):
        return found
    given = read_mechanism(USUAL_MECHANISM if mechanism is None else mechanism, **beside)
    return replace(found, contradicted=given != found.mechanism) if found.known else MadeBy(given)


def find_attacks(
    attribute: Attribute, both: TableComparison, made: MadeBy, attacker: Attacker
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the four attacks on a release, and why those who apply Bayes' rule are left out.

    Without a known mechanism, or in counts that were adjusted after the noise, only the two attacks that need none are
    read. The own record is left out under the noise that was drawn: over many releases, the means are those of
    `assess`. Of perturbed and of adjusted counts, what is because of the own record is not known.
    """
    if made.records or attribute.n_levels < 2:
        return [], None if attribute.n_levels < 2 else "the release holds records, and not counts with noise"
    method, unknown = made.mechanism or made.perturbation, why_unknown(attribute)
    if not made.known:
        unknown = f"the mechanism of the release is not known; {NAME_IT}"
    elif made.adjusted:
        unknown = "the counts were made to add up to others after the noise"
    elif (both.released != np.floor(both.released)).any():
        unknown = "the released counts are not whole numbers"
    clamped = unknown is not None or made.mechanism is None or _is_clamped(both, made)
    if made.perturbation is not None:
        made.perturbation.check_reach(int(both.original.max()))
        pairs, number = np.unique(np.stack([both.original, both.released]), axis=1, return_counts=True)
        wrong = 0
        for (count, value), times in zip(pairs.T.tolist(), number.tolist(), strict=True):
            values, probabilities = made.perturbation.row(int(count))
            wrong += 0 if (probabilities[values == value] > 0).any() else times
        if wrong:
            what = "the published table has counts that this perturbation never makes of the true ones"
            got, fix = f"{wrong:,} of {len(both.released):,} counts", "name the perturbation that made it"
            raise InvalidInput(what, got=got, fix=f"{fix}, or leave it out", code="impossible-counts")
    attacks = begin_attacks(attribute, attacker, 1, method.channel if method and unknown is None else None, clamped)
    original, published = both.spread()
    lessened = np.where(published - 1 >= made.smallest, published - 1, 0) if clamped else published - 1
    own_known = made.perturbation is None and not made.adjusted
    attacks.read(slice(0, 1), original, published, lessened if own_known else None)
    return attacks.to_rows(attribute.levels.labels), None if attacks.means is not None else unknown or TOO_WIDE


def _is_clamped(both: TableComparison, made: MadeBy) -> bool:
    """Whether counts below the smallest released one are 0; refuses a release that this mechanism cannot have made."""
    smallest = made.smallest
    below = both.released[(both.released != 0) & (both.released < smallest)]
    negative = bool((below < 0).any())
    if (below > 0).any() or (negative and smallest > USUAL_FIRST):
        what = "the release has counts below the smallest that this mechanism releases"
        got, fix = f"{len(below):,} of {len(both.released):,} below {smallest}", "give the threshold of the release"
        raise InvalidInput(what, got=got, fix=fix, code="below-threshold")
    return not negative if made.clamped is None else made.clamped
