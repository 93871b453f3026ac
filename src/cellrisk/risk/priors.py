"""The two priors that some measures need, as a user asks for them and as they are fitted to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import UnknownName
from cellrisk.risk.measures import (
    NEED_PRIOR,
    NEED_SIZES,
    CellSizes,
    Dirichlet,
    Measure,
    fit_dirichlet,
    fit_sizes,
    make_measure,
)

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

Alpha = str | Sequence[float]


@dataclass(frozen=True)
class Fitted:
    """The priors behind the measures that need them; None where no chosen measure does."""

    prior: Dirichlet | None
    sizes: CellSizes | None

    def measure(self, name: str) -> Measure:
        """The measure of that name with its priors."""
        return make_measure(name, self.prior, self.sizes)

    def describe(self) -> list[str]:
        return [law.describe() for law in (self.prior, self.sizes) if law is not None]

    def to_dict(self) -> dict[str, Any]:
        laws = (("alpha", self.prior), ("sizes", self.sizes))
        return {key: law.to_dict() for key, law in laws if law is not None}


@dataclass(frozen=True)
class Priors:
    """How the priors are found: the words and values of ``--alpha``, ``--sizes``, ``--sizes-fit``."""

    alpha: Alpha | Mapping[str, Alpha] = "mle"
    """"mle", "moments" or the values in the order of the levels; a mapping gives each sensitive attribute its own."""
    sizes: str = "poisson"
    sizes_fit: str = "mle"
    zero_truncation: bool = True

    def fit(self, attribute: Attribute, measures: Sequence[str]) -> Fitted:
        """What the named measures need to know of one sensitive attribute."""
        needs_prior = any(measure in NEED_PRIOR for measure in measures)
        needs_sizes = any(measure in NEED_SIZES for measure in measures)
        return Fitted(
            self._fit_alpha(attribute) if needs_prior else None,
            fit_sizes(attribute.profiles, self.sizes, self.sizes_fit, self.zero_truncation) if needs_sizes else None,
        )

    def _fit_alpha(self, attribute: Attribute) -> Dirichlet:
        alpha = self.alpha
        if isinstance(alpha, Mapping):
            if attribute.name not in alpha:
                raise UnknownName(
                    "alpha is not given for a sensitive attribute", got=", ".join(alpha), fix=attribute.name
                )
            alpha = alpha[attribute.name]
        if isinstance(alpha, str):
            return fit_dirichlet(attribute.profiles, attribute.levels, alpha)
        return Dirichlet.given(alpha, attribute.profiles.n_levels)
