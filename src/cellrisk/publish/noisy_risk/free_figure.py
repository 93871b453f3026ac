"""What a release's own counts tell of its risk, for free: a function of what is published costs nothing more.

Geometric noise undoes itself: with a = e^(-1/scale), E[1(n + e <= 0)] = q(n), and phi(y) = a^(y-1) for y >= 1,
-a^(1-y) for y <= 0 has E[phi(n + e)] = n f(n - 1). So the sum over all cells of the domain of

    a^(v-1)                 where one count alone is positive, and is v,
    - sum_k a^(1-y_k)       where none is,

has the mean D, the people given away because of their own record. It needs the negative counts, so the release is one
that was not clamped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_THRESHOLD, Geometric
from cellrisk.publish.releasing.release_result import Release
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.checks import is_number
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, percent

USUAL_ERROR = 0.1
TWO_SIDED = 1.959964
"""Deviations that hold a normal variable with probability 0.95."""


@dataclass(frozen=True, repr=False)
class FreeFigure(Result):
    """The answer of `estimate_caused`. It is computed from published counts, and may be published with them."""

    value: float
    """The people given away because of their own record: without bias, and below 0 where noise has made it so."""
    error: float
    """Its standard error, rather too large: the root of the sum of squares, which is never below the variance."""
    epsilon: float
    """Of the release, which is all that was spent."""
    sensitive: str

    def __post_init__(self) -> None:
        if not self.error >= 0:
            raise InvalidInput("a standard error cannot be negative", got=self.error)

    @property
    def headline(self) -> str:
        low, high = max(self.value - TWO_SIDED * self.error, 0.0), max(self.value + TWO_SIDED * self.error, 0.0)
        return (
            f"By its own counts, the release of {self.sensitive} at epsilon {self.epsilon:g} gives away about "
            f"{max(self.value, 0.0):,.0f} people because of their own record (95% interval {low:,.0f} to {high:,.0f}); "
            "this is computed from published counts, and costs nothing more."
        )

    def to_dict(self) -> dict[str, Any]:
        named = {"figure": "caused", "value": self.value, "standard_error": self.error, "epsilon": self.epsilon}
        return {**named, "sensitive": self.sensitive, "sentence": self.headline}

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"figure": "caused", "value": self.value, "standard_error": self.error}]

    def _paragraphs(self) -> list[str]:
        return [aligned(["figure", "value", "standard error"], [["caused", f"{self.value:,.1f}", f"{self.error:.3g}"]])]


def estimate_caused(release: Release, *, largest_error: float = USUAL_ERROR) -> FreeFigure:
    """How many people does a release give away because of their own record, by its own counts alone?

    For a release of geometric noise with ``clamp=False`` that lists every count of the domain. Everything is a function
    of the published counts, so that there is no further loss; the price is an error that grows with the domain.

    Parameters
    ----------
    release
        The answer of `release`.
    largest_error
        The standard error may be this share of the figure; where it is larger, the figure is refused, and
        `publish_risk` gives one with less noise at an epsilon of its own.
    """
    if not (is_number(largest_error) and largest_error > 0):
        raise InvalidInput("largest_error must be a share above 0", got=largest_error, allowed="for example 0.1")
    if not isinstance(release, Release):
        raise InvalidInput("a figure for free comes from a release", got=type(release).__name__)
    mechanism = release.mechanism
    if not isinstance(mechanism, Geometric) or release.clamp or mechanism.threshold != USUAL_THRESHOLD:
        raise InvalidInput(
            "only counts with geometric noise that keep their sign tell of the risk without bias",
            got=f"{mechanism.name}, {'clamped' if release.clamp else 'not clamped'}",
            fix="release with geometric noise and clamp=False (--no-clamp), or use publish_risk",
        )
    if release.excluded or release.observed_cells_only:
        raise InvalidInput(
            "a figure for free needs every count of the domain",
            fix="release without exclude and observed_cells_only, or use publish_risk",
        )
    counts = release.frame.iloc[:, -1].to_numpy().reshape(-1, len(release.labels[release.sensitive]))
    each = estimate_cells(counts, math.exp(-1.0 / release.measurement.scale))
    value, error = math.fsum(each.tolist()), math.sqrt(math.fsum((each**2).tolist()))
    if error > largest_error * abs(value):
        raise InvalidInput(
            "the counts of the release tell too little of its risk",
            got=f"a standard error of {error:.3g} people for a figure of {value:.3g}",
            allowed=f"{percent(largest_error)} of it",
            fix="use publish_risk, which has less noise, at an epsilon of its own",
        )
    return FreeFigure(value, error, mechanism.epsilon, release.sensitive)


def estimate_cells(counts: Integers, ratio: float) -> Floats:
    """For each cell, a row of noisy counts, what has the mean D of that cell; ``ratio`` is a.

    >>> estimate_cells(np.array([[1, 0], [3, -2], [2, 1], [0, -1]]), ratio=0.5).tolist()
    [1.0, 0.25, 0.0, -0.75]
    """
    shown = counts > 0
    number = shown.sum(axis=1)
    lone = np.where(shown, counts, 0).sum(axis=1)
    hidden = -np.power(ratio, 1.0 - np.minimum(counts, 0)).sum(axis=1)
    return np.asarray(np.where(number == 1, np.power(ratio, np.maximum(lone, 1) - 1.0), np.where(number, 0.0, hidden)))
