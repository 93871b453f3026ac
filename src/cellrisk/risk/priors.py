"""The two priors that some measures need, as a user asks for them and as they are fitted to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.risk.measures import (
    MEASURES,
    NEED_PRIOR,
    NEED_SIZES,
    Dirichlet,
    Measure,
    SizeDistribution,
    fit_dirichlet,
    fit_sizes,
)
from cellrisk.risk.measures.dirichlet import ESTIMATES
from cellrisk.risk.measures.sizes import FAMILIES, METHODS
from cellrisk.system.checks import is_number
from cellrisk.system.choices import AlphaEstimate, SizesFamily, SizesFit, require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

Alpha = AlphaEstimate | Sequence[float]


@dataclass(frozen=True)
class Fitted:
    """The priors behind the measures that need them; None where no chosen measure does."""

    prior: Dirichlet | None
    sizes: SizeDistribution | None

    def measure(self, name: str) -> Measure:
        """The measure of that name with the priors that it needs."""
        needed: dict[str, Any] = {"prior": self.prior} if name in NEED_PRIOR else {}
        needed |= {"sizes": self.sizes} if name in NEED_SIZES else {}
        if None in needed.values():
            raise InvalidInput(f"the {name} measure needs a prior", fix="fit one with fit_dirichlet or fit_sizes")
        return MEASURES[name](**needed)

    def describe(self) -> list[str]:
        return [law.describe() for law in (self.prior, self.sizes) if law is not None]

    def to_dict(self) -> dict[str, Any]:
        laws = (("alpha", self.prior), ("sizes", self.sizes))
        return {key: law.to_dict() for key, law in laws if law is not None}


@dataclass(frozen=True)
class Priors:
    """How the priors of the measures that need them are found; the options ``--alpha``, ``--sizes`` and their like.

    Parameters
    ----------
    alpha
        The Dirichlet prior of the shrinkage measures: "mle", "moments", or its values in the order of the levels. With
        several sensitive attributes, a mapping by name gives each its own.
    sizes
        The distribution of cell sizes that the marginal measures draw from: "poisson" or "negbin".
    sizes_fit
        How that is fitted to the sizes of the table's cells: "mle", "moments" or "bayes".
    zero_truncation
        Whether the fit knows that empty cells are not seen.

    >>> Priors(sizes="negbin"), Priors(alpha=[1, 1]).alpha
    (Priors(alpha='mle', sizes='negbin', sizes_fit='mle', zero_truncation=True), (1.0, 1.0))
    """

    alpha: Alpha | Mapping[str, Alpha] = "mle"
    sizes: SizesFamily = "poisson"
    sizes_fit: SizesFit = "mle"
    zero_truncation: bool = True

    def __post_init__(self) -> None:
        require_word("family of cell sizes", self.sizes, FAMILIES)
        require_word("way to fit cell sizes", self.sizes_fit, METHODS)
        given = self.alpha
        named = isinstance(given, Mapping) and given
        alpha = {name: _read_alpha(each) for name, each in named.items()} if named else _read_alpha(given)
        object.__setattr__(self, "alpha", alpha)

    def fit(self, attribute: Attribute, measures: Sequence[str]) -> Fitted:
        """What the named measures need to know of one sensitive attribute.

        Parameters
        ----------
        attribute
            The sensitive attribute of a table.
        measures
            Those that will be asked for.
        """
        needs_prior = any(measure in NEED_PRIOR for measure in measures)
        needs_sizes = any(measure in NEED_SIZES for measure in measures)
        return Fitted(
            self._fit_alpha(attribute) if needs_prior else None,
            fit_sizes(attribute.profiles, self.sizes, self.sizes_fit, self.zero_truncation) if needs_sizes else None,
        )

    def check(self, attribute: Attribute, measures: Sequence[str]) -> None:
        """Refuse values of alpha that do not fit the attribute, before anything is estimated.

        Parameters
        ----------
        attribute
            The sensitive attribute of a table.
        measures
            Those that will be asked for.
        """
        if not isinstance(self.alpha, str) and any(measure in NEED_PRIOR for measure in measures):
            alpha = self.alpha.get(attribute.name) if isinstance(self.alpha, Mapping) else self.alpha
            if not isinstance(alpha, str):
                self._fit_alpha(attribute)

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


def _read_alpha(given: Any) -> str | tuple[float, ...]:
    """A word, or numbers above 0; refuses a prior that no table could have."""
    if isinstance(given, str):
        require_word("way to estimate alpha", given, ESTIMATES)
        return given
    values = [value.item() if isinstance(value, np.number) else value for value in given] if np.iterable(given) else []
    if not values or not all(is_number(value) and value > 0 for value in values):
        numbers = values and all(isinstance(value, (int, float)) for value in values)
        raise InvalidInput(
            "must be a word, or a positive and finite number for each level",
            option="alpha",
            got=str(values)[:60] if numbers else type(given).__name__,
            allowed="mle, moments, or numbers above 0 in the order of the levels",
        )
    return tuple(float(value) for value in values)


USUAL_PRIORS = Priors()
