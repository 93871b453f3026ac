"""What was found along a sequence of releases: one row a release."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting import Composition, Loss
from cellrisk.repeat.sequences.risks_so_far import KINDS, RisksSoFar
from cellrisk.risk.assessment import CURATOR_NOTE
from cellrisk.risk.measures import WEIGHTS
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, percent
from cellrisk.system.words import require_word

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

VIEWS = ("loss", "release")
"""What a picture shows the risk along."""


@dataclass(frozen=True)
class Overall:
    """The overall risk after some releases: each cell's, averaged over cells or over records."""

    max_uniform: float
    max_records: float
    sum_uniform: float
    sum_records: float

    @staticmethod
    def of(so_far: RisksSoFar) -> Overall:
        return Overall(*(so_far.average(kind, weights) for kind in KINDS for weights in WEIGHTS))

    def value(self, kind: str = "max", weights: str = "records") -> float:
        require_word("kind", kind, KINDS)
        require_word("weights", weights, WEIGHTS)
        return float(getattr(self, f"{kind}_{weights}"))


NOTHING = Overall(0.0, 0.0, 0.0, 0.0)
"""Before any attribute is released."""


@dataclass(frozen=True)
class Released:
    """One release of a sequence, and how things stand after it."""

    number: int
    attribute: str | None
    quasi_identifiers: tuple[str, ...]
    """The quasi-identifiers of this release; the cells are those of all releases so far."""
    loss: Loss
    cumulative: Composition
    cells: int
    assessed: tuple[str, ...]
    """The attributes whose risk was assessed at this cumulative loss."""
    mechanism: Mechanism | None
    """The mechanism that has this cumulative loss; None where nothing was assessed."""
    uniform: float | None
    """The released attribute's own risk at this cumulative loss, each cell alike; None where none was released."""
    records: float | None
    """The same risk by records; None where no attribute was released."""
    overall: Overall

    @property
    def name(self) -> str:
        return self.attribute or "cells"

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "attribute": self.attribute,
            "quasi_identifiers": list(self.quasi_identifiers),
            "loss": self.loss.to_dict(),
            "cumulative": describe_composition(self.cumulative),
            "cells": self.cells,
            "assessed": list(self.assessed),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            "risk": None if self.records is None else {"uniform": self.uniform, "records": self.records},
            "overall": vars(self.overall),
        }


@dataclass(frozen=True, repr=False)
class RiskSequence(Result):
    """The answer of `assess_sequence`. Prints as a sentence and a table; `plot` draws it."""

    picture = "draw_sequence"

    n_records: int
    measure: str
    form: str
    rows: tuple[Released, ...]

    def __post_init__(self) -> None:
        if not self.rows:
            raise InvalidInput("a sequence needs one release at least")

    def overall(self, weights: str = "records", kind: str = "max", after: int | None = None) -> float:
        """The overall risk after a release.

        Parameters
        ----------
        weights
            As in `assess`.
        kind
            "max" is bounded by 1, "sum" adds the attributes up.
        after
            The number of a release; default the last.
        """
        if after is not None and (isinstance(after, bool) or not 1 <= after <= len(self.rows)):
            raise InvalidInput("there is no release of that number", got=after, allowed=f"1 to {len(self.rows)}")
        return self.rows[-1 if after is None else after - 1].overall.value(kind, weights)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that were released, in the order of their first release."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows if row.attribute is not None))

    @property
    def headline(self) -> str:
        """What a curator can repeat."""
        last, many = self.rows[-1], len(self.rows)
        start = (
            f"After {many} {'releases' if many != 1 else 'release'} the cumulative loss is {say_loss(last.cumulative)}"
        )
        if not self.attributes:
            return f"{start}; no sensitive attribute was released, so that none is at risk."
        risk, found = last.overall, len(self.attributes)
        if found == 1:
            return (
                f"{start}; the risk of {self.attributes[0]} is {percent(risk.max_records)} by records, "
                f"{percent(risk.max_uniform)} with each cell alike."
            )
        return (
            f"{start}; the overall risk, of each cell's riskiest of {found} attributes, is {percent(risk.max_records)} "
            f"by records, {percent(risk.max_uniform)} with each cell alike; added up over the attributes, which is no "
            f"probability, it is {risk.sum_records:.4g} and {risk.sum_uniform:.4g}."
        )

    def _numbers(self) -> pd.DataFrame:
        """One row a risk: that of the attribute released, and the overall one of each kind and weighting."""
        import pandas as pd

        found = []
        for row in self.rows:
            about = (row.number, row.attribute, row.cumulative.epsilon, row.cumulative.delta)
            if row.records is not None:
                found += [(*about, "attribute", "uniform", row.uniform), (*about, "attribute", "records", row.records)]
            found += [
                (*about, kind, weights, row.overall.value(kind, weights)) for kind in KINDS for weights in WEIGHTS
            ]
        columns = ["release", "attribute", "cumulative_epsilon", "cumulative_delta", "kind", "weights", "risk"]
        return pd.DataFrame(found, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "records": self.n_records,
            "measure": self.measure,
            "form": self.form,
            "releases": [row.to_dict() for row in self.rows],
            "sentence": self.headline,
        }

    def plot(self, path: str | os.PathLike[str] | None = None, ax: Axes | None = None, by: str = "loss") -> Any:
        """The risk along the cumulative loss, or release by release.

        Parameters
        ----------
        path, ax
            As for every result.
        by
            The horizontal axis: "loss" or "release".
        """
        return self._draw(path, ax, by=by)

    def _paragraphs(self) -> list[str]:
        body = [
            [
                *(f"{row.number}", row.name, row.loss.describe(), f"{row.cumulative.epsilon:.6g}"),
                *(f"{row.cumulative.delta:.3g}", row.cumulative.chosen.operator, f"{row.cells:,}"),
                "-" if row.records is None else f"{row.records:.4f}",
                *(f"{value:.4f}" for value in vars(row.overall).values()),
            ]
            for row in self.rows
        ]
        header = ["", "release", "loss", "epsilon", "delta", "composed", "cells", "risk"]
        header += ["max, uniform", "max, records", "sum, uniform", "sum, records"]
        about = (
            f"{self.measure.replace('_', ' ')} risk, {self.form}, of {self.n_records:,} records, each attribute at the "
            "cumulative loss; risk: of the attribute released, by records; max and sum: overall"
        )
        return [f"{about}\n{aligned(header, body, left=3)}", CURATOR_NOTE]


def say_loss(found: Composition) -> str:
    """A cumulative loss in words."""
    delta = f", delta {found.delta:g}" if found.delta else ""
    return f"epsilon {found.epsilon:.6g}{delta}"


def describe_composition(found: Composition) -> dict[str, Any]:
    """A cumulative loss as JSON-ready values."""
    named = {"epsilon": found.epsilon, "delta": found.delta, "flavour": found.flavour}
    return {**named, "operator": found.chosen.operator}
