"""The two priors that some measures need, as a user asks for them and as they are fitted to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.risk.measures import NEED_PRIOR, NEED_SIZES, Local, Measure
from cellrisk.system.checks import is_number
from cellrisk.system.choices import AlphaEstimate, SizesFamily, SizesFit, list_words, require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute
    from cellrisk.risk.measures.dirichlet import Dirichlet
    from cellrisk.risk.measures.sizes import SizeDistribution

Alpha = AlphaEstimate | Sequence[float]


@dataclass(frozen=True)
class Fitted:
    """The priors of the measures that need them; None if no chosen measure does."""

    prior: Dirichlet | None
    sizes: SizeDistribution | None

    def measure(self, name: str) -> Measure:
        """Return the measure of that name with the priors that it needs."""
        if name == "local":
            return Local()
        from cellrisk.risk.measures.given_total import Expected, MarginalShrinkage, Shrinkage
        from cellrisk.risk.measures.marginal import Marginal

        kinds: dict[str, Any] = {"expected": Expected, "shrinkage": Shrinkage, "marginal": Marginal}
        needed: dict[str, Any] = {"prior": self.prior} if name in NEED_PRIOR else {}
        needed |= {"sizes": self.sizes} if name in NEED_SIZES else {}
        return cast(Measure, kinds.get(name, MarginalShrinkage)(**needed))

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
        require_word("family of cell sizes", self.sizes, list_words(SizesFamily))
        require_word("way to fit cell sizes", self.sizes_fit, list_words(SizesFit))
        named = self.alpha if isinstance(self.alpha, Mapping) else {}
        alpha: Any = {name: _read_alpha(values) for name, values in named.items()} or _read_alpha(self.alpha)
        object.__setattr__(self, "alpha", alpha)

    def fit(self, attribute: Attribute, measures: Sequence[str]) -> Fitted:
        """Return the priors that measures need.

        Parameters
        ----------
        attribute, measures
            The sensitive attribute of a table, and the measures that will be asked for.
        """
        prior = None if set(NEED_PRIOR).isdisjoint(measures) else self._fit_alpha(attribute)
        if set(NEED_SIZES).isdisjoint(measures):
            return Fitted(prior, None)
        from cellrisk.risk.measures.sizes import fit_sizes

        return Fitted(prior, fit_sizes(attribute.profiles, self.sizes, self.sizes_fit, self.zero_truncation))

    def check(self, attribute: Attribute, measures: Sequence[str]) -> None:
        """Refuse values of alpha that do not fit the attribute, before anything is estimated.

        Parameters
        ----------
        attribute, measures
            As in `fit`.
        """
        if not set(NEED_PRIOR).isdisjoint(measures) and not isinstance(self.alpha, str):
            self._fit_alpha(attribute)

    def _fit_alpha(self, attribute: Attribute) -> Dirichlet:
        from cellrisk.risk.measures.dirichlet import Dirichlet, fit_dirichlet

        alpha: Any = self.alpha
        if isinstance(alpha, Mapping):
            if attribute.name not in alpha:
                what = "alpha is not given for a sensitive attribute"
                raise UnknownName(what, got=", ".join(alpha), fix=attribute.name)
            alpha = alpha[attribute.name]
        if isinstance(alpha, str):
            return fit_dirichlet(attribute.profiles, attribute.levels, alpha)
        return Dirichlet.given(alpha, attribute.profiles.n_levels)


def _read_alpha(given: Any) -> str | tuple[float, ...]:
    """Return a word, or numbers above 0; refuse a prior that no table could have."""
    if isinstance(given, str):
        require_word("way to estimate alpha", given, list_words(AlphaEstimate))
        return given
    values = [value.item() if isinstance(value, np.number) else value for value in given] if np.iterable(given) else []
    if not values or not all(is_number(value) and value > 0 for value in values):
        numbers = values and all(isinstance(value, (int, float)) for value in values)
        what = "must be a word, or a positive and finite number for each level"
        got = str(values)[:60] if numbers else type(given).__name__
        allowed = "mle, moments, or numbers above 0 in the order of the levels"
        raise InvalidInput(what, option="alpha", got=got, allowed=allowed)
    return tuple(float(value) for value in values)


USUAL_PRIORS = Priors()
