"""The five risks. A measure knows profiles and q(m), s(m), and nothing of engines, files, epsilon or people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.counts.profiles import Profiles
from cellrisk.risk.measures.dirichlet import Dirichlet, fit_dirichlet
from cellrisk.risk.measures.expected import Expected
from cellrisk.risk.measures.local import Local
from cellrisk.risk.measures.marginal import Marginal
from cellrisk.risk.measures.measure import FORMS, WEIGHTS, Measure
from cellrisk.risk.measures.shrinkage import MarginalShrinkage, Shrinkage
from cellrisk.risk.measures.sizes import SizeDistribution, fit_sizes
from cellrisk.risk.measures.survival import Survival
from cellrisk.system.arrays import Floats

MEASURES: dict[str, type[Measure]] = {
    kind.name: kind for kind in (Local, Expected, Shrinkage, Marginal, MarginalShrinkage)
}
NEED_PRIOR = ("shrinkage", "marginal_shrinkage")
NEED_SIZES = ("marginal", "marginal_shrinkage")

__all__ = [
    "FORMS",
    "MEASURES",
    "NEED_PRIOR",
    "NEED_SIZES",
    "WEIGHTS",
    "Dirichlet",
    "Expected",
    "Local",
    "Marginal",
    "MarginalShrinkage",
    "Measure",
    "Shrinkage",
    "SizeDistribution",
    "Survival",
    "average_risks",
    "fit_dirichlet",
    "fit_sizes",
]


def average_risks(
    profiles: Profiles,
    measures: Sequence[Measure],
    survival: Survival,
    forms: Sequence[str] = FORMS,
    weights: Sequence[str] = WEIGHTS,
) -> Iterator[tuple[str, str, str | None, Floats]]:
    """(measure, form, weights, one risk a noise) for each combination; weights is None for a one-number measure."""
    for measure in measures:
        averages = measure.average(profiles, survival, forms)
        for form in forms:
            if measure.one_number:
                yield measure.name, form, None, averages[form, "uniform"]
            else:
                for weight in weights:
                    yield measure.name, form, weight, averages[form, weight]
