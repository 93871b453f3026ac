"""The loss after some releases, and the mechanism in whose noise the risk is assessed at that loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import LARGEST_CLASSICAL, MECHANISMS, Mechanism
from cellrisk.repeat.accounting.ceilings import find_ceiling as find_ceiling_of_losses
from cellrisk.repeat.accounting.composition import Composition, compose, find_epsilon, find_probabilistic_epsilon
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences.step import Step
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.checks import require_within
from cellrisk.system.choices import CompositionMethod, MechanismName, list_words, require_word
from cellrisk.system.formatting import claim

INSTEAD, PURE_INSTEAD = argument("assess_as", "gaussian-analytic"), argument("assess_as", "laplace")
SMALLEST_EPSILON = 1e-9
"""Gaussian noise that is wide for its delta composes to epsilon 0; the noise of this epsilon is a little narrower."""


@dataclass(frozen=True)
class Cumulative:
    """How losses are composed, and in which noise the risk at their composition is assessed.

    >>> from cellrisk import Laplace
    >>> steps = [Step(Laplace(epsilon=0.1), "job"), Step(Laplace(epsilon=0.2), "pay")]
    >>> Cumulative().compose(steps).epsilon, Cumulative().mechanism(steps)
    (0.3, Laplace(epsilon=0.3, delta=0.0, neighbours='add-remove', threshold=0.5))
    """

    method: CompositionMethod = "tightest"
    delta: float | None = None
    """The delta of the composition; None for the sum of the deltas so far."""
    assess_as: MechanismName | None = None
    """The name of a mechanism; None for that of the release itself."""

    def __post_init__(self) -> None:
        require_word("method", self.method, list_words(CompositionMethod))
        if self.delta is not None:
            require_within("total_delta", self.delta, least=0, below=1)
        if self.assess_as is not None:
            require_word("mechanism", self.assess_as, tuple(MECHANISMS))

    def compose(self, steps: Sequence[Step]) -> Composition:
        """The loss of all these releases together."""
        return _compose(tuple(step.loss for step in steps), self.method, self.delta)

    def mechanism(self, steps: Sequence[Step]) -> Mechanism:
        """The mechanism that the last of these releases is assessed in; refused if there is none.

        It has the cumulative loss. The classical gaussian and the discrete one are made with more noise than their
        epsilon needs, so a tighter composition would give them more noise than was added: they are assessed at the
        loss that they were made by, basic composition for the one and zCDP for the other.
        """
        step, many = steps[-1], len(steps)
        known = step.loss.mechanism
        kind = self.assess_as or (None if known is None else known.name)
        loss = f"the cumulative loss after {many} {'releases' if many != 1 else 'release'}"
        if kind is None:
            pure = self.delta is None and all(each.loss.dp_definition == "pure" for each in steps)
            raise InvalidInput(
                f"release {many} has no known mechanism, so its risk cannot be assessed",
                fix=f"name one for the total loss: {PURE_INSTEAD if pure else INSTEAD}",
                code="no-mechanism",
            )
        epsilon, delta = self._reckon(steps, kind, loss)
        if MECHANISMS[kind].pure and delta:
            pure = all(each.loss.dp_definition == "pure" for each in steps)
            own = f"leave {argument('total_delta')} out, or " if pure else ""
            first = f", with {argument('total_delta')}" if self.delta is None and not steps[0].loss.delta else ""
            raise InvalidInput(
                f"{loss} has a delta, and {kind} noise has none to assess it by",
                got=f"delta {delta:g}",
                fix=f"{own}assess it by another: {INSTEAD}{first}",
            )
        if not (MECHANISMS[kind].pure or delta):
            raise InvalidInput(
                f"{loss} has no delta, and {kind} noise needs one to assess it by",
                fix=f"give {argument('total_delta', 1e-6)}, or {PURE_INSTEAD}",
            )
        if kind == "gaussian" and epsilon > LARGEST_CLASSICAL:
            raise InvalidInput(
                f"{loss} is past the classical gaussian mechanism, which ends below epsilon 1",
                got=f"epsilon {claim(epsilon)}",
                fix=f"assess it by another: {INSTEAD}",
            )
        threshold = USUAL_THRESHOLD if known is None else known.threshold
        epsilon = max(epsilon, SMALLEST_EPSILON)
        return MECHANISMS[kind](epsilon, delta=delta, neighbours=step.loss.neighbours, threshold=threshold)

    def _reckon(self, steps: Sequence[Step], kind: str, loss: str) -> tuple[float, float]:
        """The epsilon and delta of the composition that a kind of noise is assessed at."""
        losses = tuple(step.loss for step in steps)
        try:
            found = _compose(losses, "basic" if kind == "gaussian" else self.method, self.delta)
        except InvalidInput as refusal:
            if kind != "gaussian":
                raise
            raise _refuse(loss, kind, refusal.message.partition(";")[0]) from refusal
        if kind == "discrete-gaussian":
            rhos = [loss.total_rho for loss in losses]
            if None in rhos:
                raise _refuse(loss, kind, "a loss with a delta and no known mechanism has no rho")
            total = math.fsum(rho for rho in rhos if rho is not None)
            return (find_epsilon(total, found.delta) if found.delta else found.epsilon), found.delta
        if kind != "gaussian-pdp" or not found.delta:
            return found.epsilon, found.delta
        events = [event for loss in losses for event in loss.events]
        exact = None if self.method == "basic" else find_probabilistic_epsilon(events, found.delta)
        if exact is not None:
            return exact, found.delta
        if not all(
            (event.epsilon and event.mechanism == "gaussian-pdp") or (event.epsilon and not event.delta)
            for event in events
        ):
            raise _refuse(loss, kind, "not all of its losses imply probabilistic DP")
        basic = _compose(losses, "basic", self.delta)
        return basic.epsilon, basic.delta


def _refuse(loss: str, kind: str, why: str) -> InvalidInput:
    return InvalidInput(f"{loss} cannot be assessed by {kind}: {why}", fix=f"assess it by another: {INSTEAD}")


def find_ceiling(steps: Sequence[Step], labels: int = 2) -> tuple[Ceiling | None, str]:
    """The ceiling of all these releases; or None, and why it is not known.

    Exact if all are of one attribute and their noise is known. A release of another attribute, or of the counts of
    cells alone, may show nothing of a person's value, and is counted as if it did: then it is an upper bound.
    """
    found, why_not = find_ceiling_of_losses(tuple(step.loss for step in steps), labels)
    attributes = {step.attribute for step in steps}
    alike = None not in attributes and len(attributes) == 1
    return None if found is None else replace(found, exact=found.exact and alike), why_not


@lru_cache(maxsize=512)
def _compose(losses: tuple[Loss, ...], method: CompositionMethod, delta: float | None) -> Composition:
    return compose(losses, method=method, delta=delta)
