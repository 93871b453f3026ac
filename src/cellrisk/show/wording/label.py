"""The label of a release: the questions of NIST SP 800-226 and of the privacy label, each with its answer in a line.

Nothing in it is computed from the records. What a release cannot know is marked `TO_FILL`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cellrisk.counts.unit import Unit
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import find_precision
from cellrisk.risk.ceilings import Ceiling
from cellrisk.show.wording.attackers import accuracy
from cellrisk.system.formatting import claim

TO_FILL = "to fill"
TOTAL = f"{TO_FILL}: the losses of all releases about the same people, which a ledger adds up (cellrisk ledger show)"
STEPS = {
    "add-remove": "one record added or removed; it changes one count by 1 (L1 = 1, L2 = 1)",
    "replace": "one record with other values; it changes two counts by 1 each (L1 = 2, L2 = sqrt 2)",
}


def say_unit(unit: Unit) -> str:
    """Return whose presence is hidden."""
    if unit.kind == "record":
        return "one record; a person with several records is protected for each record alone"
    return f"one person. {unit.describe()}"


def say_step(mechanism: Mechanism) -> str:
    """Return how neighbouring tables differ, and how far their counts are apart.

    >>> from cellrisk import Geometric
    >>> say_step(Geometric(1.0, unit=Unit(4, 1)))
    'the records of one person added or removed; they change counts by 4 in all at most (L1 = 4, L2 = 2)'
    """
    unit = mechanism.unit
    if unit.kind == "record":
        return STEPS[mechanism.neighbours]
    step = "added or removed" if mechanism.neighbours == "add-remove" else "with other values"
    return (
        f"the records of one person {step}; they change counts by {mechanism.l1:g} in all at most "
        f"(L1 = {mechanism.l1:g}, L2 = {mechanism.l2:.6g})"
    )


class Guarantee(Protocol):
    """An epsilon and a delta: of a mechanism, or of several tables together."""

    @property
    def epsilon(self) -> float: ...

    @property
    def delta(self) -> float: ...


def epsilon_range(epsilon: float) -> str:
    """Return where an epsilon lies: at most 1, 1 to 20, above 20.

    >>> [epsilon_range(epsilon) for epsilon in (1.0, 3.0, 20.5)]
    ['at most 1', '1 to 20', 'above 20']
    """
    return "at most 1" if epsilon <= 1 else "1 to 20" if epsilon <= 20 else "above 20"


def bias(mechanism: Mechanism, clamp: bool, adjusted: bool) -> str:
    """Return by how much published counts are too high or too low on average."""
    if not clamp:
        return "none: negative counts are published as they are"
    if adjusted:
        return "of the counts as they are published not stated: they add up to published totals"
    precision = find_precision(mechanism)
    shown = "under 0.01" if precision.at_zero < 0.01 else f"{precision.at_zero:.2g}"
    below = f"noisy counts up to {precision.hidden:,}" if precision.hidden else "negative counts"
    return f"{below} become 0, and a true 0 is published as {shown} on average: sums over many small counts are off"


def label(
    mechanism: Mechanism,
    guarantee: Guarantee | None,
    ceiling: Ceiling | None,
    not_covered: Sequence[str],
    library: str,
    *,
    total: str = TOTAL,
    clamp: bool = True,
    adjusted: bool = False,
) -> dict[str, str]:
    """Return the label of a release of counts with the noise of a mechanism.

    ``guarantee`` has the epsilon and the delta that hold for what is published; None if they are not known.
    ``adjusted``: counts were made to add up to published totals after the noise.
    """
    unknown = "not known: the counts show parent counts, whose guarantee is not known"
    error = accuracy(mechanism) + (" Then counts are made to add up to published totals." if adjusted else "")
    pure = guarantee is not None and not guarantee.delta
    meaning = "no bound on what one person's data add is stated: see what is not covered"
    if ceiling is not None:
        meaning = ceiling.headline.partition(". ")[0].removesuffix(".") + "."
    return {
        "epsilon": unknown if guarantee is None else f"{claim(guarantee.epsilon)} ({epsilon_range(guarantee.epsilon)})",
        "definition": unknown if guarantee is None else f"{'pure' if pure else 'approximate'} differential privacy",
        "delta": unknown if guarantee is None else f"{claim(guarantee.delta)}",
        "unit": say_unit(mechanism.unit),
        "neighbours": say_step(mechanism),
        "total": total,
        "not_covered": " ".join(not_covered) or "nothing that is known",
        "mechanism": f"{mechanism.name}, noise of scale {mechanism.scale:.6g} on each count; {library}",
        "accuracy": error,
        "bias": bias(mechanism, clamp, adjusted),
        "release_model": "central: noise is added to counts of the records, which are published once; no queries",
        "trusted": "the curator, who sees the records, and the programs that add the noise",
        "interpretation": meaning,
    }
