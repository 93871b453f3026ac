"""`assess`: every risk of a table at one setting of a mechanism, with the sentence a curator can repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.measures import (
    FORMS,
    MEASURES,
    NEED_PRIOR,
    NEED_SIZES,
    WEIGHTS,
    CellSizes,
    Dirichlet,
    Local,
    Survival,
    average_risks,
    choose_words,
    fit_dirichlet,
    fit_sizes,
    make_measure,
)
from cellrisk.mechanisms import Mechanism
from cellrisk.text import aligned, percent

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.tables import Attribute, FrequencyTable

ATTACKS = ("homogeneity",)
CURATOR_NOTE = (
    "For the curator: these figures are computed from the raw data and are not themselves differentially private."
)

Alpha = str | Sequence[float]


@dataclass(frozen=True)
class Risk:
    """One number: the risk for a sensitive attribute under an attack, by one measure, form and weighting."""

    sensitive: str
    attack: str
    measure: str
    form: str
    weights: str | None
    risk: float


@dataclass(frozen=True)
class Exposure:
    """What a curator says of one sensitive attribute in one sentence."""

    sensitive: str
    records: int
    share: float
    """Expected share of people whose value is read off the release correctly: local, tight, by records. Exact."""
    raw_share: float
    """The same for the raw table: people in homogeneous cells."""
    guess_share: float
    """Guessing each person's value from the overall proportions: sum_k p_k^2."""
    best_guess_share: float
    """Always guessing the commonest value: max_k p_k."""

    def sentence(self, mechanism: Mechanism) -> str:
        delta = "" if mechanism.pure else f" and delta {mechanism.delta:g}"
        return (
            f"At epsilon {mechanism.epsilon:g}{delta}, about {round(self.share * self.records):,} of "
            f"{self.records:,} people ({percent(self.share)}) would have their {self.sensitive} read off the table "
            f"correctly; the raw table exposes {percent(self.raw_share)}, guessing from the overall proportions gets "
            f"{percent(self.guess_share)}."
        )


@dataclass(frozen=True)
class Fitted:
    """The priors behind the measures that need them; None where no chosen measure does."""

    prior: Dirichlet | None
    sizes: CellSizes | None


@dataclass(frozen=True)
class Assessment:
    """The answer of `assess`. Prints as a sentence and a table; `value` picks one number."""

    table: FrequencyTable
    mechanism: Mechanism
    risks: tuple[Risk, ...]
    exposures: tuple[Exposure, ...]
    fitted: Mapping[str, Fitted]

    def value(
        self,
        measure: str = "local",
        form: str = "tight",
        weights: str | None = "records",
        sensitive: str | None = None,
    ) -> float:
        """One risk. ``sensitive`` may be left out where the table has one attribute; ``weights`` does not matter for
        marginal shrinkage."""
        name = self.table.attribute(sensitive).name
        choose_words("measure", measure, tuple(MEASURES))
        choose_words("form", form, FORMS)
        if weights is not None:
            choose_words("weights", weights, WEIGHTS)
        weighting = None if MEASURES[measure].one_number else weights
        for row in self.risks:
            if (row.sensitive, row.measure, row.form, row.weights) == (name, measure, form, weighting):
                return row.risk
        raise UnknownName(
            "that risk was not assessed",
            got=f"measure {measure}, form {form}, weights {weights}",
            fix="add it to measures=, forms= and weights= of assess",
        )

    @property
    def headline(self) -> str:
        """What a curator can repeat: one sentence for each sensitive attribute."""
        return "\n".join(exposure.sentence(self.mechanism) for exposure in self.exposures)

    def to_frame(self) -> pd.DataFrame:
        """One row a risk."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.risks])

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk assess --json`` prints."""
        mechanism = self.mechanism
        settings: dict[str, Any] = {
            "name": mechanism.name,
            "epsilon": mechanism.epsilon,
            "delta": mechanism.delta,
            "scale": mechanism.scale,
            "neighbours": mechanism.neighbours,
        }
        if mechanism.threshold != 0.5:
            settings["threshold"] = mechanism.threshold
        sensitive = {name: _counts_of(self.table.attribute(name)) for name in self.table.sensitive}
        fitted = {
            name: {key: law.to_dict() for key, law in (("alpha", fit.prior), ("sizes", fit.sizes)) if law is not None}
            for name, fit in self.fitted.items()
        }
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells, "sensitive": sensitive},
            "mechanism": settings,
            "risks": [vars(row) for row in self.risks],
            "fitted": fitted,
            "baselines": {
                exposure.sensitive: {
                    "raw": exposure.raw_share,
                    "proportional_guess": exposure.guess_share,
                    "commonest_guess": exposure.best_guess_share,
                }
                for exposure in self.exposures
            },
            "headline": self.headline,
        }

    def __str__(self) -> str:
        parts = [self.headline, _describe_mechanism(self.mechanism)]
        for name in dict.fromkeys(row.sensitive for row in self.risks):
            counts = _counts_of(self.table.attribute(name))
            title = (
                f"{name}: {counts['levels']:,} levels; {self.table.n_cells:,} cells, {counts['homogeneous']:,} "
                f"homogeneous, {counts['heterogeneous']:,} heterogeneous, {counts['unique']:,} unique"
            )
            fits = [law.describe() for law in (self.fitted[name].prior, self.fitted[name].sizes) if law is not None]
            parts.append("\n".join([title, _risk_table(self.risks, name), *fits]))
        return "\n\n".join([*parts, CURATOR_NOTE])


def assess(
    table: FrequencyTable,
    mechanism: Mechanism,
    *,
    measures: str | Sequence[str] | None = None,
    forms: str | Sequence[str] | None = None,
    weights: str | Sequence[str] | None = None,
    alpha: Alpha | Mapping[str, Alpha] = "mle",
    sizes: str = "poisson",
    sizes_fit: str = "mle",
    zero_truncation: bool = True,
    attack: str = "homogeneity",
) -> Assessment:
    """How much does the homogeneity attack still reveal, if this table is published through this mechanism?

    ``measures``, ``forms`` and ``weights`` default to all. ``alpha`` is "mle", "moments" or the values themselves in
    the order of the levels; with several sensitive attributes a mapping by name gives each its own.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> round(cr.assess(table, cr.Laplace(epsilon=1.0), measures="local").value(form="exact"), 6)
    0.034845
    """
    if attack not in ATTACKS:
        raise UnknownName("unknown attack", got=repr(attack), allowed=", ".join(ATTACKS))
    measure_names = choose_words("measure", measures, tuple(MEASURES))
    chosen_forms = choose_words("form", forms, FORMS)
    chosen_weights = choose_words("weights", weights, WEIGHTS)
    survival = Survival((mechanism.noise,), mechanism.threshold)
    risks: list[Risk] = []
    exposures: list[Exposure] = []
    fitted: dict[str, Fitted] = {}
    for name in table.sensitive:
        attribute = table.attribute(name)
        needs_prior = any(measure in NEED_PRIOR for measure in measure_names)
        needs_sizes = any(measure in NEED_SIZES for measure in measure_names)
        fit = Fitted(
            _prior(attribute, alpha) if needs_prior else None,
            fit_sizes(attribute.profiles, sizes, sizes_fit, zero_truncation) if needs_sizes else None,
        )
        fitted[name] = fit
        chosen = [make_measure(measure, fit.prior, fit.sizes) for measure in measure_names]
        for measure, form, weight, values in average_risks(
            attribute.profiles, chosen, survival, chosen_forms, chosen_weights
        ):
            risks.append(Risk(name, attack, measure, form, weight, float(values[0])))
        exposures.append(_exposure(attribute, survival))
    return Assessment(table, mechanism, tuple(risks), tuple(exposures), fitted)


def _prior(attribute: Attribute, alpha: Alpha | Mapping[str, Alpha]) -> Dirichlet:
    if isinstance(alpha, Mapping):
        if attribute.name not in alpha:
            raise UnknownName("alpha is not given for a sensitive attribute", got=", ".join(alpha), fix=attribute.name)
        alpha = alpha[attribute.name]
    if isinstance(alpha, str):
        return fit_dirichlet(attribute.profiles, attribute.levels, alpha)
    return Dirichlet.given(alpha, attribute.profiles.n_levels)


def _exposure(attribute: Attribute, survival: Survival) -> Exposure:
    profiles, shares = attribute.profiles, attribute.levels.shares
    if profiles.n_records <= 0:
        raise InvalidInput("a table without records has no risk")
    return Exposure(
        sensitive=attribute.name,
        records=profiles.n_records,
        share=float(Local().average(profiles, survival, ("tight",))["tight", "records"][0]),
        raw_share=profiles.n_exposed / profiles.n_records,
        guess_share=float(shares @ shares),
        best_guess_share=float(shares.max()),
    )


def _counts_of(attribute: Attribute) -> dict[str, int]:
    profiles = attribute.profiles
    return {
        "levels": profiles.n_levels,
        "homogeneous": profiles.n_homogeneous,
        "heterogeneous": profiles.n_heterogeneous,
        "unique": profiles.n_unique,
        "profiles": profiles.n_profiles,
    }


def _describe_mechanism(mechanism: Mechanism) -> str:
    suppressed = "" if mechanism.threshold == 0.5 else f", counts below {mechanism.threshold:g} suppressed"
    delta = "" if mechanism.pure else f", delta {mechanism.delta:g}"
    return (
        f"{mechanism.name}, epsilon {mechanism.epsilon:g}{delta}, noise scale {mechanism.scale:.4g}, "
        f"neighbours {mechanism.neighbours}{suppressed}"
    )


def _risk_table(risks: Sequence[Risk], sensitive: str) -> str:
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for row in risks:
        if row.sensitive == sensitive:
            rows.setdefault((row.measure, row.weights or "-"), {})[row.form] = f"{row.risk:.4f}"
    forms = [form for form in FORMS if any(form in cells for cells in rows.values())]
    body = [[measure, weights, *(cells[form] for form in forms)] for (measure, weights), cells in rows.items()]
    return aligned(["measure", "weights", *forms], body, left=2)
