"""What was found along a sequence of releases: one row a release."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting.ceilings import describe_ceiling
from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences.cell_risks import KINDS, RisksSoFar
from cellrisk.repeat.sequences.steps import Step, find_ceiling
from cellrisk.risk.caused import Caused
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.measures import WEIGHTS
from cellrisk.system.choices import require_word
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
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
    """One release of a sequence, and the risks after it."""

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
    """The mechanism that has this cumulative loss; None if nothing was assessed."""
    uniform: float | None
    """The released attribute's own risk at this cumulative loss, each cell alike; None if none was released."""
    records: float | None
    """The risk of the attribute by records; None if no attribute was released."""
    overall: Overall
    caused_at_once: Caused | None
    """People revealed only because of their own record, of the attribute released, were it released once at this
    cumulative loss; None if none was released."""
    overall_caused: Overall
    """The share caused in each cell, kept and averaged as the overall risk is."""
    steps: tuple[Step, ...]
    """All releases so far."""

    @property
    def ceiling(self) -> Ceiling | None:
        """The ceiling of all releases so far, of two labels; None if it is not known."""
        return find_ceiling(self.steps)[0]

    @property
    def why_no_ceiling(self) -> str:
        return find_ceiling(self.steps)[1]

    @property
    def caused(self) -> Caused | None:
        """People revealed only because of their own record, of the attribute released, at this cumulative loss; None if
        none was released. Its cap holds for any attack on all releases so far: the people times the total variation of
        the composed losses, or if that is not known, times what their guarantee allows at most."""
        if self.caused_at_once is None:
            return None
        found = self.ceiling
        if found is not None:
            cap = found.advantage
        else:
            cap = min(math.tanh(0.5 * self.cumulative.epsilon) + self.cumulative.delta, 1.0)
        return replace(self.caused_at_once, cap=self.caused_at_once.records * cap)

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
            "caused": None if self.caused is None else self.caused.to_dict(),
            "overall_caused": {"max": self.overall_caused.max_records, "sum": self.overall_caused.sum_records},
            "ceiling": describe_ceiling(self.ceiling),
            **({"ceiling_unknown": self.why_no_ceiling} if self.ceiling is None else {}),
        }


@dataclass(frozen=True, repr=False)
class RiskSequence(Result):
    """The answer of `assess_sequence`. Prints as a sentence and a table; `plot` draws it."""

    picture = "draw_sequence"
    wording = "sequence"

    n_records: int
    measure: str
    form: str
    rows: tuple[Released, ...]
    labels: int = 2
    """How many labels the attribute has that was released last."""

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
    def ceiling(self) -> Ceiling | None:
        """The ceiling of all releases, of as many labels as the attribute released last has."""
        return find_ceiling(self.rows[-1].steps, self.labels)[0]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that were released, in the order of their first release."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows if row.attribute is not None))

    @property
    def statements(self) -> tuple[str, ...]:
        """What is exact, what is a bound, and what is neither."""
        return tuple(find_words("sequence").statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One row a risk: that of the attribute released, and the overall one of each kind and weighting. Then what was
        caused, likewise, as shares by records, and the ceiling of two labels."""
        found: list[tuple[Any, ...]] = []
        for row in self.rows:
            about = (row.number, row.attribute, row.cumulative.epsilon, row.cumulative.delta)
            if row.records is not None:
                found += [(*about, "attribute", "uniform", row.uniform), (*about, "attribute", "records", row.records)]
            found += [
                (*about, kind, weights, row.overall.value(kind, weights)) for kind in KINDS for weights in WEIGHTS
            ]
            if row.caused is not None:
                found.append((*about, "caused", "records", row.caused.share))
            found += [(*about, f"caused_{kind}", "records", row.overall_caused.value(kind)) for kind in KINDS]
            if row.ceiling is not None:
                found.append((*about, "ceiling", None, row.ceiling.even_two))
        columns = ["release", "attribute", "cumulative_epsilon", "cumulative_delta", "kind", "weights", "risk"]
        return [dict(zip(columns, row, strict=True)) for row in found]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "records": self.n_records,
            "measure": self.measure,
            "form": self.form,
            "releases": [row.to_dict() for row in self.rows],
            "ceiling": describe_ceiling(self.ceiling),
            "statements": list(self.statements),
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


def describe_composition(found: Composition) -> dict[str, Any]:
    """A cumulative loss as JSON-ready values."""
    named = {"epsilon": found.epsilon, "delta": found.delta, "dp_definition": found.dp_definition}
    return {**named, "method": found.chosen.method}
