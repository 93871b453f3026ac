"""What a set of tables costs, and what one person's record in it adds at most to any attack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import DiscreteGaussian, Mechanism
from cellrisk.repeat.accounting.ceilings import bound_odds, compose_ceiling
from cellrisk.repeat.accounting.composition import Composition, compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.risk.ceilings import Ceiling, Labels, Likelihoods, rounded_likelihoods, succeed
from cellrisk.system.arrays import Floats
from cellrisk.system.text import claim

MOST_ATOMS = 200_000
SAME = 12
"""Digits to which two log ratios that were added up in different orders are one."""


@dataclass(frozen=True)
class Cost:
    """What a person spends who is in as many tables of the set as one can be in."""

    epsilon: float
    delta: float
    flavour: str
    operator: str
    apart: bool
    """Whether some tables exclude each other, so that no person spends all of them."""

    @property
    def headline(self) -> str:
        at_delta = f" at delta {claim(self.delta)}" if self.delta else ""
        apart = "; tables whose people exclude each other are not added up" if self.apart else ""
        how = f"{self.flavour} DP, {self.operator} composition{apart}"
        return f"The set costs epsilon {claim(self.epsilon)}{at_delta} ({how})."

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "sentence": self.headline}


def find_cost(mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]]) -> Cost:
    """The largest of what the collections of tables cost that one person can be in."""
    found: list[Composition] = [compose([Loss.of(mechanisms[table]) for table in some]) for some in together]
    largest = max(found, key=lambda each: (each.epsilon, each.delta))
    weakest = max(found, key=lambda each: ("pure", "probabilistic", "approximate").index(each.flavour))
    return Cost(
        largest.epsilon,
        max(each.delta for each in found),
        weakest.flavour,
        largest.chosen.operator,
        len(together) > 1,
    )


def book_loss(mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]]) -> Loss:
    """What a set costs a person at most, as one loss for a ledger.

    It is pure where all tables are, and else in zCDP, in which losses add up: rho of discrete Gaussian noise,
    epsilon^2/2 of pure DP (Bun and Steinke 2016).
    """
    neighbours = mechanisms[0].neighbours
    if all(each.pure for each in mechanisms):
        largest = max(math.fsum(mechanisms[table].epsilon for table in some) for some in together)
        return Loss(flavour="pure", epsilon=largest, neighbours=neighbours)
    rhos = [_find_rho(each) for each in mechanisms]
    most = max(math.fsum(rhos[table] for table in some) for some in together)
    return Loss(flavour="concentrated", rho=most, neighbours=neighbours)


def _find_rho(mechanism: Mechanism) -> float:
    if isinstance(mechanism, DiscreteGaussian):
        return mechanism.rho
    if mechanism.pure:
        return 0.5 * mechanism.epsilon**2
    raise InvalidInput(
        "a set is released with whole-number noise", got=mechanism.name, allowed="geometric, discrete-gaussian"
    )


def find_ceiling(mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]], labels: int) -> Ceiling:
    """How often does an attacker who knows all other records guess a value correctly from all tables, at most?

    The person is in one cell of each table, so the likelihood ratios of the tables multiply: two values each for
    geometric noise, four for rounded Laplace noise. Gaussian noise adds up to one table with 1/sigma^2 = sum
    1/sigma_t^2. Other mixtures go through privacy loss distributions. Of tables whose people exclude each other, the
    largest counts.
    """
    every = [_find_ceiling([mechanisms[table] for table in some], labels) for some in together]
    worst = max(every, key=lambda found: (found.even_two, found.even))
    return replace(worst, advantage=max(found.advantage for found in every), releases=len(mechanisms))


def _find_ceiling(mechanisms: Sequence[Mechanism], labels: int) -> Ceiling:
    known = compose_likelihoods(mechanisms)
    losses = [Loss.of(each) for each in mechanisms]
    if known is None:
        return compose_ceiling(losses, labels=labels)
    even = min(succeed(known, Labels.even(labels)), 1.0)
    even_two = even if labels == 2 else min(succeed(known, Labels.even(2)), 1.0)
    replaced = any(each.neighbours == "replace" for each in mechanisms)
    gained = float(np.maximum(known.with_person - known.without, 0.0).sum())
    return Ceiling(
        labels=labels,
        even_two=even_two,
        even=even,
        success=even,
        advantage=2.0 * even_two - 1.0 if replaced else min(gained, 1.0),
        odds=bound_odds(losses),
        releases=len(mechanisms),
        neighbours="replace" if replaced else "add-remove",
    )


def compose_likelihoods(mechanisms: Sequence[Mechanism]) -> Likelihoods | None:
    """The likelihood ratio of one person's counts in all tables; None where its values cannot be listed."""
    log_ratio, without, with_person = np.zeros(1), np.ones(1), np.ones(1)
    for each in mechanisms:
        one = rounded_likelihoods(each.noise)
        if one is None or len(log_ratio) * len(one.log_ratio) > MOST_ATOMS:
            return None
        log_ratio = np.add.outer(log_ratio, one.log_ratio).ravel()
        without = np.multiply.outer(without, one.without).ravel()
        with_person = np.multiply.outer(with_person, one.with_person).ravel()
        log_ratio, without, with_person = _merge(log_ratio, without, with_person)
    return Likelihoods(log_ratio, without, with_person)


def _merge(log_ratio: Floats, without: Floats, with_person: Floats) -> tuple[Floats, Floats, Floats]:
    """Equal ratios as one, ascending."""
    values, place = np.unique(np.round(log_ratio, SAME), return_inverse=True)
    first, second = (np.asarray(np.bincount(place, each), np.float64) for each in (without, with_person))
    return values, first, second


def try_ceiling(
    mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]], labels: int
) -> tuple[Ceiling | None, str | None]:
    """The ceiling, or why there is none."""
    try:
        return find_ceiling(mechanisms, together, labels), None
    except InvalidInput as refusal:
        return None, str(refusal)
