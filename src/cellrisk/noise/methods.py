"""How a table is published: by a mechanism, which has an epsilon, or by a perturbation, which has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.system.choices import MechanismName


def read_method(
    mechanism: Mechanism | MechanismName, perturbation: str | Perturbation | None, beside: Mapping[str, Any]
) -> Mechanism | Perturbation:
    """The mechanism with what stands beside it, or the perturbation in its place; refuses both.

    >>> read_method("geometric", "random-rounding:3", {"epsilon": None}).name
    'random-rounding:3'
    """
    if perturbation is None:
        return read_mechanism(mechanism, **beside)
    check_alone(mechanism, beside)
    return read_perturbation(perturbation)


def check_alone(mechanism: Mechanism | MechanismName | None, beside: Mapping[str, Any]) -> None:
    """Refuses a mechanism, and what belongs to one, beside a perturbation."""
    given = [] if mechanism in (None, USUAL_MECHANISM) else ["mechanism"]
    given += [name for name, value in beside.items() if value is not None]
    if given:
        raise InvalidInput(
            "a perturbation takes the place of a mechanism, and has no epsilon",
            got=f"perturbation with {', '.join(given)}",
            fix=f"leave {', '.join(given)} out",
        )
