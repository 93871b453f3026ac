"""The five risks of the paper. A measure knows counts and a `CountChannel`, and nothing of files, epsilon or people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures.dirichlet import Dirichlet, fit_dirichlet
from cellrisk.risk.measures.given_total import Expected, MarginalShrinkage, Shrinkage
from cellrisk.risk.measures.local import Local
from cellrisk.risk.measures.marginal import Marginal
from cellrisk.risk.measures.measure import FORMS, WEIGHTS, Measure
from cellrisk.risk.measures.sizes import SizeDistribution, fit_sizes
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
    "average_risks",
    "fit_dirichlet",
    "fit_sizes",
]


def average_risks(
    profiles: Profiles,
    measures: Sequence[Measure],
    channel: CountChannel,
    forms: Sequence[str] = FORMS,
    weights: Sequence[str] = WEIGHTS,
) -> Iterator[tuple[str, str, str | None, Floats]]:
    """Yield (measure, form, weights, one risk a setting); weights is None for a measure of the whole table."""
    for measure in measures:
        averages = measure.average(profiles, channel, forms)
        for form in forms:
            for weight in (None,) if measure.one_number else weights:
                yield measure.name, form, weight, averages[form, weight or "uniform"]
