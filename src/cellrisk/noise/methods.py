"""How a table is published: by a mechanism, which has an epsilon, or by a perturbation, which has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.system.words import MechanismName

WITHOUT_PERTURBATION: dict[str, tuple[str, ...]] = {
    "curve": ("a perturbation has no epsilon to draw a curve along", "assess --perturbation tells its risk"),
    "choose": (
        "a perturbation has no epsilon to choose",
        "assess --perturbation finds the epsilons at which noise gives away no more people",
    ),
    "utility": (
        "usefulness is simulated with noise at an epsilon, and a perturbation has none",
        "how far it moves the table is told by assess --perturbation, at equal risk",
    ),
    "release": (
        "a release here has noise under a guarantee, and a perturbation has none: such a table is made elsewhere, by "
        "those who hold the keys",
        "audit --perturbation reads it",
    ),
    "publish-risk": (
        "how far one record moves the risk of a perturbed table is not bounded here, so that no noise is known to make "
        "the figure publishable",
    ),
    "average": (
        "the mean of repeated perturbations is not computed",
        "publish it once: without keys that repeat the perturbation of a cell, averaging removes it",
    ),
    "together": ("what overlapping tables reveal is computed for the noise of mechanisms alone",),
    "ledger": ("a ledger adds up privacy losses, and a perturbation states none",),
    "serve": ("serve starts the page, which asks for everything itself",),
    "demo": ("demo shows noise at one epsilon", "assess --perturbation takes a table of your own"),
}
"""Why a command takes no perturbation, and what does in its place: commands say both, the page the first."""


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
