"""`assess`: every risk of a table at one setting of a mechanism, with the sentence a curator can repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import UnknownName
from cellrisk.measures import FORMS, MEASURES, WEIGHTS, Survival, average_risks, choose_words
from cellrisk.mechanisms import Mechanism
from cellrisk.people import People, count_people
from cellrisk.priors import Alpha, Fitted, Priors
from cellrisk.text import aligned, percent

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.tables import Attribute, FrequencyTable

ATTACKS = ("homogeneity",)
CURATOR_NOTE = (
    "For the curator: these figures are computed from the raw data and are not themselves differentially private."
)


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
    people: People
    """How many people's values are read off the release correctly."""
    raw_share: float
    """The share of people whose values the raw table reveals: those in homogeneous cells."""
    guess_share: float
    """Guessing each person's value from the overall proportions: sum_k p_k^2."""
    best_guess_share: float
    """Always guessing the commonest value: max_k p_k."""

    @property
    def share(self) -> float:
        """Expected share of people whose value is read off the release correctly: local, tight, by records. Exact."""
        return self.people.mean / self.records

    def sentence(self, mechanism: Mechanism) -> str:
        delta = "" if mechanism.pure else f" and delta {mechanism.delta:g}"
        return (
            f"At epsilon {mechanism.epsilon:g}{delta}, about {round(self.people.mean):,} of {self.records:,} people "
            f"({percent(self.share)}; {self.people.spread}) would have their {self.sensitive} read off the table "
            f"correctly; the raw table exposes {percent(self.raw_share)}, guessing from the overall proportions gets "
            f"{percent(self.guess_share)}."
        )


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
        sensitive = {name: _counts_of(self.table.attribute(name)) for name in self.table.sensitive}
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells, "sensitive": sensitive},
            "mechanism": self.mechanism.to_dict(),
            "risks": [vars(row) for row in self.risks],
            "fitted": {name: fit.to_dict() for name, fit in self.fitted.items()},
            "people": {exposure.sensitive: vars(exposure.people) for exposure in self.exposures},
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
            parts.append("\n".join([title, _risk_table(self.risks, name), *self.fitted[name].describe()]))
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
    check_attack(attack)
    measure_names = choose_words("measure", measures, tuple(MEASURES))
    chosen_forms = choose_words("form", forms, FORMS)
    chosen_weights = choose_words("weights", weights, WEIGHTS)
    survival = Survival((mechanism.noise,), mechanism.threshold)
    priors = Priors(alpha, sizes, sizes_fit, zero_truncation)
    risks: list[Risk] = []
    fitted: dict[str, Fitted] = {}
    for name in table.sensitive:
        attribute = table.attribute(name)
        fitted[name] = priors.fit(attribute, measure_names)
        chosen = [fitted[name].measure(measure) for measure in measure_names]
        for measure, form, weight, values in average_risks(
            attribute.profiles, chosen, survival, chosen_forms, chosen_weights
        ):
            risks.append(Risk(name, attack, measure, form, weight, float(values[0])))
    exposures = tuple(find_exposure(table.attribute(name), mechanism) for name in table.sensitive)
    return Assessment(table, mechanism, tuple(risks), exposures, fitted)


def check_attack(attack: str) -> None:
    """Refuses an attack that is not known."""
    if attack not in ATTACKS:
        raise UnknownName("unknown attack", got=repr(attack), allowed=", ".join(ATTACKS))


def find_exposure(attribute: Attribute, mechanism: Mechanism) -> Exposure:
    """The headline's numbers for one sensitive attribute."""
    profiles, shares = attribute.profiles, attribute.levels.shares
    return Exposure(
        sensitive=attribute.name,
        records=profiles.n_records,
        people=count_people(profiles, mechanism),
        raw_share=attribute.exposed_share,
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
