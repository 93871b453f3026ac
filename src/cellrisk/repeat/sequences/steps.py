"""The releases of a sequence, and the mechanism in whose noise the risk is assessed at their loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput, UnknownName, argument
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.repeat.accounting.composition import Composition, compose, find_epsilon, find_probabilistic_epsilon
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.system.checks import read_list, read_texts
from cellrisk.system.choices import MechanismName
from cellrisk.system.formatting import claim, number_of

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

INSTEAD, PURE_INSTEAD = argument("assess_as", "gaussian-analytic"), argument("assess_as", "laplace")
AT_DELTA = argument("total_delta", 1e-06)
SMALLEST_EPSILON = 1e-9
"""Gaussian noise that is wide for its delta composes to epsilon 0; the noise of this epsilon is a little narrower."""


@dataclass(frozen=True)
class Step:
    """A release to the same people as the others of its sequence.

    Parameters
    ----------
    given
        The mechanism, or what is known of its loss.
    attribute
        The sensitive attribute that is released; None if only the counts of the groups are, FD(X).
    quasi_identifiers
        Those of this release; None for all that the table has.

    >>> from cellrisk import Geometric
    >>> Step(Geometric(0.5), "job").describe()
    'job at 0.5-DP'
    """

    given: InitVar[Mechanism | Loss]
    attribute: str | None = None
    quasi_identifiers: str | Sequence[str] | None = None
    loss: Loss = field(init=False)

    def __post_init__(self, given: Mechanism | Loss) -> None:
        if not isinstance(given, (Mechanism, Loss)):
            got, fix = type(given).__name__, "for example Geometric(0.5)"
            raise InvalidInput("a step needs a mechanism or a loss", got=got, fix=fix)
        if self.attribute is not None and not isinstance(self.attribute, str):
            raise InvalidInput("the attribute of a step must be a name", got=type(self.attribute).__name__)
        names = self.quasi_identifiers
        if names is not None:
            names = (names,) if isinstance(names, str) else read_texts("quasi_identifiers", names, "names")
            if not names or len(set(names)) != len(names):
                raise InvalidInput(
                    "the quasi-identifiers of a step must be named once each, and one at least",
                    got=f"{len(names)} names",
                    fix="None stands for all that the table has",
                )
        object.__setattr__(self, "quasi_identifiers", names)
        object.__setattr__(self, "loss", Loss.of(given) if isinstance(given, Mechanism) else given)

    def describe(self) -> str:
        """The release in a few words."""
        return f"{self.attribute or 'counts of the cells'} at {self.loss.describe()}"


def read_steps(table: FrequencyTable, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, if there is one and the table has every column that they name."""
    listed = tuple(read_list("steps", steps, "steps"))
    if not listed:
        raise InvalidInput("a sequence needs one release at least", fix="for example [Step(Laplace(epsilon=0.5))]")
    for number, step in enumerate(listed, start=1):
        if not isinstance(step, Step):
            raise InvalidInput(f"release {number} is not a Step", got=type(step).__name__, fix="write Step(mechanism)")
        if step.attribute is not None:
            table.attribute(step.attribute)
        for name in step.quasi_identifiers or ():
            if name not in table.quasi_identifiers:
                allowed = ", ".join(table.quasi_identifiers)
                raise UnknownName(f"the table has no quasi-identifier '{name}'", allowed=allowed)
    return listed


def find_mechanism(composition: Composition, assess_as: MechanismName | None, given_delta: bool) -> Mechanism:
    """The mechanism that the last of some releases is assessed in, at their composition; refused if there is none.

    Of the release's own kind, or of the kind ``assess_as``. The classical gaussian and the discrete one are made with
    more noise than their epsilon needs, so a tighter composition would give them more noise than was added: they are
    assessed at the loss that they were made by, basic composition for the one and zCDP for the other.
    """
    last, many = composition.losses[-1], len(composition.losses)
    known = last.mechanism
    kind = assess_as or (None if known is None else known.name)
    if kind is None:
        pure = not given_delta and all(loss.dp_definition == "pure" for loss in composition.losses)
        raise InvalidInput(
            f"release {many} has no known mechanism, so its risk cannot be assessed",
            fix=f"name one for the total loss: {PURE_INSTEAD if pure else INSTEAD}",
            code="no-mechanism",
        )
    threshold, delta, got = USUAL_THRESHOLD if known is None else known.threshold, composition.delta, None
    try:
        epsilon = max(_reckon(composition, kind), SMALLEST_EPSILON)
        got = f"epsilon {claim(epsilon)}, delta {delta:g}"
        return MECHANISMS[kind](epsilon, delta=delta, neighbours=last.neighbours, threshold=threshold)
    except InvalidInput as refusal:
        instead = f"{INSTEAD}, at {AT_DELTA}" if got is None or delta else f"{PURE_INSTEAD}, or at {AT_DELTA}"
        what = f"the cumulative loss after {number_of(many, 'release')} cannot be assessed by {kind}"
        reason, fix = refusal.message.partition(";")[0], f"assess it by another: {instead}"
        raise InvalidInput(f"{what}: {reason}", got=got, fix=fix, code="not-assessed") from None


def _reckon(found: Composition, kind: str) -> float:
    """The epsilon of a composition that a kind of noise is assessed at."""
    if kind == "gaussian":
        return compose(found.losses, method="basic", delta=found.delta).epsilon
    if kind == "discrete-gaussian":
        rhos = [loss.total_rho for loss in found.losses]
        if None in rhos:
            raise InvalidInput("a loss with a delta and no known mechanism has no rho")
        total = math.fsum(rho for rho in rhos if rho is not None)
        return find_epsilon(total, found.delta) if found.delta else found.epsilon
    if kind != "gaussian-pdp" or not found.delta:
        return found.epsilon
    exact = None if found.method == "basic" else find_probabilistic_epsilon(found.events, found.delta)
    if exact is not None:
        return exact
    if not all(event.epsilon and (event.mechanism == "gaussian-pdp" or not event.delta) for event in found.events):
        raise InvalidInput("not all of its losses imply probabilistic DP")
    return compose(found.losses, method="basic", delta=found.delta).epsilon
