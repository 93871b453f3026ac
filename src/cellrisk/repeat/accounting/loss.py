"""What one release costs the people it covers at most, apart from how such losses add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, NEIGHBOURS, Mechanism, ProbabilisticGaussian, mechanism
from cellrisk.system.checks import require_number, require_within
from cellrisk.system.text import claim
from cellrisk.system.words import Neighbours, require_word

FLAVOURS = ("pure", "probabilistic", "approximate", "concentrated")


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The privacy loss of one release, with the flavour of its guarantee.

    pure: epsilon-DP. probabilistic: the loss is at most epsilon but for probability delta, which implies approximate.
    approximate: (epsilon, delta)-DP. concentrated: rho-zCDP, which has no epsilon of its own. Where the mechanism is
    known, so is its noise, and releases can be composed more tightly than their epsilons alone allow.

    Parameters
    ----------
    flavour
        One of the four.
    epsilon, delta
        Of all flavours but concentrated; the delta of pure DP is 0.
    rho
        Of concentrated DP.
    neighbours
        "add-remove" or "replace".
    mechanism
        The mechanism, where it is known; `Loss.of` makes the loss of one.

    >>> Loss.of(mechanism("gaussian-pdp", epsilon=0.5, delta=1e-5)).flavour
    'probabilistic'
    """

    flavour: str
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    neighbours: Neighbours = "add-remove"
    mechanism: Mechanism | None = None

    def __post_init__(self) -> None:
        require_word("flavour of privacy", self.flavour, FLAVOURS)
        require_word("neighbours", self.neighbours, NEIGHBOURS)
        if self.flavour == "concentrated":
            require_within("rho", self.rho, above=0)
            if self.epsilon is not None or self.delta or self.mechanism is not None:
                raise InvalidInput("a concentrated loss is a rho alone", fix="leave epsilon, delta and mechanism out")
            return
        require_within("epsilon", self.epsilon, above=0)
        if self.rho is not None:
            raise InvalidInput(f"a loss of the {self.flavour} flavour has no rho", fix="leave it out")
        require_number("delta", self.delta)
        if self.flavour == "pure" and self.delta != 0:
            raise InvalidInput(
                "pure DP has no delta",
                got=f"delta {self.delta}",
                fix="say approximate or probabilistic, or leave delta out",
            )
        if self.flavour != "pure" and not 0 < self.delta < 1:
            raise InvalidInput(
                f"{self.flavour} DP needs a delta between 0 and 1, both excluded",
                got=self.delta,
                fix="give it, or say pure where there is none",
            )
        if self.mechanism is not None and not self._is_of(self.mechanism):
            raise InvalidInput(
                "a loss with a mechanism is that mechanism's loss", fix="make it with Loss.of(mechanism)"
            )

    @staticmethod
    def of(mechanism: Mechanism) -> Loss:
        """The loss of one release through a mechanism."""
        return Loss(
            flavour=_flavour_of(mechanism),
            epsilon=mechanism.epsilon,
            delta=mechanism.delta,
            neighbours=mechanism.neighbours,
            mechanism=mechanism,
        )

    def _is_of(self, mechanism: object) -> bool:
        if not isinstance(mechanism, Mechanism):
            return False
        stated = self.flavour, self.epsilon, self.delta, self.neighbours
        return stated == (_flavour_of(mechanism), mechanism.epsilon, mechanism.delta, mechanism.neighbours)

    def describe(self) -> str:
        """The loss in a few words.

        >>> Loss(flavour="approximate", epsilon=0.5, delta=1e-6).describe()
        '(0.5, 1e-06)-DP'
        """
        epsilon, rho = claim(self.epsilon or 0.0), claim(self.rho or 0.0)  # the flavour says which of them there is
        if self.flavour == "concentrated":
            return f"{rho}-zCDP"
        if self.flavour == "pure":
            return f"{epsilon}-DP"
        return f"({epsilon}, {claim(self.delta)})-{'pDP' if self.flavour == 'probabilistic' else 'DP'}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, from which `from_dict` makes the same loss again."""
        named: dict[str, Any] = {"flavour": self.flavour, "neighbours": self.neighbours}
        if self.flavour == "concentrated":
            named["rho"] = self.rho
        else:
            named |= {"epsilon": self.epsilon, "delta": self.delta}
        if self.mechanism is not None:
            named |= {"mechanism": self.mechanism.name, "threshold": self.mechanism.threshold}
        return named

    @staticmethod
    def from_dict(named: dict[str, Any]) -> Loss:
        """The loss that `to_dict` wrote.

        >>> loss = Loss.of(mechanism("laplace", epsilon=0.1))
        >>> Loss.from_dict(loss.to_dict()) == loss
        True
        """
        known = named.get("mechanism")
        if known is None:
            return Loss(**named)
        require_word("mechanism", known, tuple(MECHANISMS))
        delta = None if MECHANISMS[known].pure else named["delta"]
        neighbours, threshold = named["neighbours"], named["threshold"]
        return Loss.of(
            mechanism(known, epsilon=named["epsilon"], delta=delta, neighbours=neighbours, threshold=threshold)
        )


def _flavour_of(mechanism: Mechanism) -> str:
    if mechanism.pure:
        return "pure"
    return "probabilistic" if isinstance(mechanism, ProbabilisticGaussian) else "approximate"
