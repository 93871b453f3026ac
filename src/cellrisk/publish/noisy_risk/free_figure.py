"""What a release's own counts tell of its risk, for free: a function of what is published costs nothing more.

Geometric noise undoes itself: with a = e^(-1/scale), E[1(n + e <= 0)] = q(n), and phi(y) = a^(y-1) for y >= 1,
-a^(1-y) for y <= 0 has E[phi(n + e)] = n f(n - 1). So the sum over all cells of the domain of

    a^(v-1)                 where one count alone is positive, and is v,
    - sum_k a^(1-y_k)       where none is,

has the mean D, the people given away because of their own record. It needs the negative counts, so the release is one
that was not clamped.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.publish.releasing.release_result import Release
from cellrisk.publish.releasing.saving import read_description
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.checks import is_number, require_within
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, claim, interval, number_of, percent, round_up

if TYPE_CHECKING:
    import pandas as pd

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
    """The epsilon of the release, which is all that was spent."""
    sensitive: str
    largest_error: float = USUAL_ERROR
    """The share of the figure that its standard error was allowed to be."""

    def __post_init__(self) -> None:
        if not self.error >= 0:
            raise InvalidInput("a standard error cannot be negative", got=self.error)

    @property
    def headline(self) -> str:
        low, high = max(self.value - TWO_SIDED * self.error, 0.0), max(self.value + TWO_SIDED * self.error, 0.0)
        return (
            f"By its own counts, the release of {self.sensitive} at epsilon {claim(self.epsilon)} gives away "
            f"{number_of(max(self.value, 0.0), 'person')} because of their own record (95% interval "
            f"{interval(low, high) if high else 'below 0'}); this is computed from published counts, and costs nothing "
            "more."
        )

    @property
    def statement(self) -> str:
        """How good the figure is."""
        share = f", {percent(self.error / abs(self.value))} of the figure" if self.value else ""
        return (
            f"Its standard error is at most {round_up(self.error, 3):,g} people{share}; above "
            f"{percent(self.largest_error)} of the figure it would not be told."
        )

    def to_dict(self) -> dict[str, Any]:
        named = {"figure": "caused", "value": self.value, "standard_error": self.error, "epsilon": self.epsilon}
        more = {"largest_error": self.largest_error, "sensitive": self.sensitive}
        return {**named, **more, "sentence": self.headline}

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"figure": "caused", "value": self.value, "standard_error": self.error}]

    def _paragraphs(self) -> list[str]:
        rows = [["caused", f"{self.value:,.1f}", f"{self.error:.3g}"]]
        return [aligned(["figure", "value", "standard error"], rows), self.statement]


def estimate_caused(release: Release | str | os.PathLike[str], *, largest_error: float = USUAL_ERROR) -> FreeFigure:
    """How many people does a release give away because of their own record, by its own counts alone?

    For a release of geometric noise with ``clamp=False`` that lists every count of the domain. Everything is a function
    of the published counts, so that there is no further loss; the price is an error that grows with the domain.

    Parameters
    ----------
    release
        The answer of `release`, or a file that it was saved to, with the description beside it.
    largest_error
        The standard error may be this share of the figure; where it is larger, the figure is refused, and
        `publish_risk` gives one with less noise at an epsilon of its own.
    """
    largest_error = require_within("the largest standard error", largest_error, above=0)
    found = _read_release(release)
    if found.mechanism != "geometric" or found.clamp or found.threshold != USUAL_THRESHOLD:
        raise InvalidInput(
            "only counts with geometric noise that keep their sign tell of the risk without bias",
            got=f"{found.mechanism}, {'clamped' if found.clamp else 'not clamped'}",
            fix="release with geometric noise and clamp=False (--no-clamp), or use publish_risk",
        )
    if not found.whole:
        raise InvalidInput(
            "a figure for free needs every count of the domain",
            fix="release without exclude and observed_cells_only, or use publish_risk",
        )
    with np.errstate(over="ignore"):
        each = estimate_cells(found.counts, math.exp(-1.0 / found.scale))
        value, error = float(each.sum()), math.sqrt(float((each**2).sum()))
    if not 0 < error <= largest_error * abs(value):  # no cell tells anything if it is 0
        raise InvalidInput(
            "the counts of the release tell too little of its risk",
            got=f"a standard error of {error:.3g} people for a figure of {value:.3g}",
            allowed=f"{percent(largest_error)} of it",
            fix="use publish_risk, which has less noise, at an epsilon of its own",
        )
    return FreeFigure(value, error, found.epsilon, found.sensitive, largest_error)


class ReleasedTable(NamedTuple):
    """What is known of a release: how it was made, and its counts, one row a cell."""

    mechanism: str
    epsilon: float
    threshold: float
    scale: float
    clamp: bool
    whole: bool
    """Whether every count of the domain is among them."""
    sensitive: str
    counts: Integers


def _read_release(release: Any) -> ReleasedTable:
    """A release as its description tells of it: the answer of `release`, or a file that it was saved to."""
    if not isinstance(release, Release | str | os.PathLike):
        raise InvalidInput("a figure for free comes from a release", got=type(release).__name__)
    name = "a release" if isinstance(release, Release) else Path(release).name
    try:
        if isinstance(release, Release):
            described, counts = release.to_dict(), release.frame.iloc[:, -1]
        else:
            described, counts = _read_file(Path(release))
        made, sensitive = described["mechanism"], described["sensitive"]
        whole = bool(described["dense"]) and not (described["excluded"] or described["observed_cells_only"])
        levels = len(described["labels"][sensitive])
        epsilon, threshold, scale = made["epsilon"], made["threshold"], described["noise"]["scale"]
        if not all(is_number(number) and number > 0 for number in (epsilon, threshold, scale)):
            raise ValueError
        return ReleasedTable(
            str(made["name"]),
            float(epsilon),
            float(threshold),
            float(scale),
            bool(described["clamp"]),
            whole,
            str(sensitive),
            counts.to_numpy(np.int64).reshape(-1, levels) if whole else np.zeros((0, levels), np.int64),
        )
    except CellriskError:
        raise
    except Exception:  # a file and a description made to hurt, with the right digest
        raise InvalidInput("the release or its description cannot be understood", got=name) from None


def _read_file(path: Path) -> tuple[dict[str, Any], pd.Series]:
    """The description and the counts of a release in its file, if it is the one that the description is for."""
    import pandas as pd

    described = read_description(path)
    try:
        content = path.read_bytes()
    except OSError:
        raise InvalidInput("the release cannot be read", got=path.name) from None
    if described is None or hashlib.sha256(content).hexdigest() != described.get("sha256"):
        raise InvalidInput(
            "a figure for free comes from a release as it was saved, with its description beside it",
            got=path.name,
            fix="name the file that release wrote, unchanged, with its .json",
        )
    stream = io.BytesIO(content)
    frame = pd.read_parquet(stream) if path.suffix.lower() == ".parquet" else pd.read_csv(stream)
    return described, frame.iloc[:, -1]


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
