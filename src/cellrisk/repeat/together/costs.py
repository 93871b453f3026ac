"""What a set of tables costs, and what one person's record in it adds at most to any attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting.ceilings import find_ceiling
from cellrisk.repeat.accounting.composition import compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.formatting import claim


@dataclass(frozen=True)
class Cost:
    """What a person spends who is in as many tables of the set as one can be in."""

    epsilon: float
    delta: float
    dp_definition: str
    method: str
    apart: bool
    """Whether some tables exclude each other, so that no person spends all of them."""

    @property
    def headline(self) -> str:
        at_delta = f" at delta {claim(self.delta)}" if self.delta else ""
        apart = "; tables whose people exclude each other are not added up" if self.apart else ""
        how = f"{self.dp_definition} DP, {self.method} composition{apart}"
        return f"The set costs epsilon {claim(self.epsilon)}{at_delta} ({how})."

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "sentence": self.headline}


def find_cost(mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]]) -> Cost:
    """The largest of what the collections of tables cost that one person can be in."""
    costs = [compose([Loss.of(mechanisms[table]) for table in tables]) for tables in together]
    largest = max(costs, key=lambda cost: (cost.epsilon, cost.delta))
    weakest = max(costs, key=lambda cost: ("pure", "approximate").index(cost.dp_definition))
    delta = max(cost.delta for cost in costs)
    return Cost(largest.epsilon, delta, weakest.dp_definition, largest.chosen.method, len(together) > 1)


def book_loss(mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]]) -> Loss:
    """What a set costs a person at most, for a ledger: the events of the tables that one person can be in."""
    unfit = [mechanism.name for mechanism in mechanisms if mechanism.name not in ("geometric", "discrete-gaussian")]
    if any(not mechanism.pure for mechanism in mechanisms) and unfit:
        raise InvalidInput(
            "a set is released with whole-number noise", got=unfit[0], allowed="geometric, discrete-gaussian"
        )
    return Loss.cover([Loss.join([Loss.of(mechanisms[table]) for table in tables]) for tables in together])


def try_ceiling(
    mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]], labels: int
) -> tuple[Ceiling | None, str | None]:
    """How often does an attacker who knows all other records guess a value correctly from all tables, at most?

    Of tables whose people exclude each other, the largest counts. Or None, and why it is not known.
    """
    found = []
    for tables in together:
        ceiling, why_not = find_ceiling(tuple(Loss.of(mechanisms[table]) for table in tables), labels)
        if ceiling is None:
            return None, why_not
        found.append(ceiling)
    worst = max(found, key=lambda ceiling: (ceiling.even_two, ceiling.even))
    return replace(worst, advantage=max(each.advantage for each in found), releases=len(mechanisms)), None
