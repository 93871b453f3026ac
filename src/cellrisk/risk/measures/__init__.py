"""The five risks of the paper. A measure knows counts and a `CountChannel`, and nothing of files, epsilon or people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import CountChannel
from cellrisk.risk.measures.local import Local
from cellrisk.risk.measures.measure import FORMS, WEIGHTS, Measure
from cellrisk.system.arrays import Floats
from cellrisk.system.choices import MeasureName, list_words

MEASURES: tuple[MeasureName, ...] = list_words(MeasureName)
NEED_PRIOR = ("shrinkage", "marginal_shrinkage")
NEED_SIZES = ("marginal", "marginal_shrinkage")
OF_THE_TABLE = "marginal_shrinkage"
"""The measure that has one number for the table, so weights do not matter."""

__all__ = ["FORMS", "MEASURES", "NEED_PRIOR", "NEED_SIZES", "OF_THE_TABLE", "WEIGHTS", "Local", "Measure"]


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
