"""One release of a sequence: what it costs, what it releases, and in which cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput, UnknownName, argument
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.system.checks import read_texts
from cellrisk.system.choices import Neighbours

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable


@dataclass(frozen=True, init=False)
class Step:
    """A release to the same people as the others of its sequence.

    Parameters
    ----------
    loss
        The mechanism, as an object or as its name with ``epsilon`` beside it; or what is known of its loss.
    attribute
        The sensitive attribute that is released; None if only the counts of the cells are, FD(X).
    quasi_identifiers
        Those of this release; None for all that the table has.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.

    >>> Step("geometric", "job", epsilon=0.5).describe()
    'job at 0.5-DP'
    """

    loss: Loss
    attribute: str | None
    quasi_identifiers: tuple[str, ...] | None

    def __init__(
        self,
        loss: Mechanism | Loss | str,
        attribute: str | None = None,
        quasi_identifiers: str | Sequence[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: Neighbours | None = None,
        threshold: float | None = None,
    ) -> None:
        if not isinstance(loss, (Mechanism, Loss, str)):
            raise InvalidInput(
                "a step needs a mechanism or a loss", got=type(loss).__name__, fix="for example Geometric"
            )
        beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
        if not isinstance(loss, Loss):
            loss = Loss.of(read_mechanism(loss, **beside))  # type: ignore[arg-type]
        elif any(value is not None for value in beside.values()):
            raise InvalidInput(
                "a loss says itself what is spent",
                fix=f"leave {argument('epsilon')} and the other arguments of a mechanism out",
            )
        if attribute is not None and not isinstance(attribute, str):
            raise InvalidInput("the attribute of a step must be a name", got=type(attribute).__name__)
        if isinstance(quasi_identifiers, str):
            quasi_identifiers = (quasi_identifiers,)
        names = None if quasi_identifiers is None else read_texts("quasi_identifiers", quasi_identifiers, "names")
        if names is not None and (not names or len(set(names)) != len(names)):
            raise InvalidInput(
                "the quasi-identifiers of a step must be named once each, and one at least",
                got=f"{len(names)} names",
                fix="None stands for all that the table has",
            )
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "quasi_identifiers", names)

    def describe(self) -> str:
        """The release in a few words."""
        return f"{self.attribute or 'counts of the cells'} at {self.loss.describe()}"


def check_steps(table: FrequencyTable, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, if the table has every column that they name."""
    for number, step in enumerate(steps, start=1):
        if not isinstance(step, Step):
            raise InvalidInput(f"release {number} is not a Step", got=type(step).__name__, fix="write Step(mechanism)")
        if step.attribute is not None:
            table.attribute(step.attribute)
        for name in step.quasi_identifiers or ():
            if name not in table.quasi_identifiers:
                allowed = ", ".join(table.quasi_identifiers)
                raise UnknownName(f"the table has no quasi-identifier '{name}'", allowed=allowed)
    return tuple(steps)
