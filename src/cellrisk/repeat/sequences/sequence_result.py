"""What was found along a sequence of releases: one row a release."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.sequences.cumulative import find_ceiling
from cellrisk.repeat.sequences.risks_so_far import KINDS, RisksSoFar
from cellrisk.risk.caused import Caused
from cellrisk.risk.ceilings import WORST_CASE, Ceiling, say_most
from cellrisk.risk.measures import WEIGHTS
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned, claim, number_of, of_people, percent, whole_people
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
    """The risk of the attribute by records; None where no attribute was released."""
    overall: Overall
    caused_at_once: Caused | None
    """People given away only because of their own record, of the attribute released, were it released once at this
    cumulative loss; None where none was released."""
    overall_caused: Overall
    """The share caused in each cell, kept and averaged as the overall risk is."""
    losses: tuple[Loss, ...]
    """The losses of all releases so far."""
    attributes: tuple[str | None, ...]
    """The attributes of all releases so far."""

    @property
    def ceiling(self) -> Ceiling | None:
        """The ceiling of all releases so far, of two labels; None where it is not known."""
        return find_ceiling(self.losses, self.attributes)[0]

    @property
    def why_no_ceiling(self) -> str:
        return find_ceiling(self.losses, self.attributes)[1]

    @property
    def caused(self) -> Caused | None:
        """People given away only because of their own record, of the attribute released, at this cumulative loss; None
        where none was released. Its cap holds for any attack on all releases so far: the people times the total
        variation of the composed losses, or where that is not known, times what their guarantee allows at most."""
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

    n_records: int
    measure: str
    form: str
    rows: tuple[Released, ...]
    labels: int = 2
    """How many labels the attribute has that was released last."""

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
    def ceiling(self) -> Ceiling | None:
        """The ceiling of all releases, of as many labels as the attribute released last has."""
        if self.labels == 2:
            return self.rows[-1].ceiling
        return find_ceiling(self.rows[-1].losses, self.rows[-1].attributes, self.labels)[0]

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
                f"{start}; {self._decide()} The risk of {self.attributes[0]} is {percent(risk.max_records)} by "
                f"records, {percent(risk.max_uniform)} with each cell alike."
            )
        return (
            f"{start}; {self._decide()} The overall risk, of each cell's riskiest of {found} attributes, is "
            f"{percent(risk.max_records)} by records, {percent(risk.max_uniform)} with each cell alike; added up over "
            f"the attributes, which is no probability, it is {risk.sum_records:.4g} and {risk.sum_uniform:.4g}."
        )

    def _decide(self) -> str:
        """The figures to decide by, in sentences."""
        last, found = self.rows[-1], self.attributes
        what = f"their {found[0]}" if len(found) == 1 else f"one of {len(found)} attributes"
        share = last.overall_caused.max_records
        told = (
            f"{of_people(share * self.n_records, self.n_records)} would have {what} read off correctly only because "
            f"their own record is in the table{'s' * (len(self.rows) > 1)}."
        )
        return told if last.ceiling is None else f"{told} {last.ceiling.of_two}"

    @property
    def statements(self) -> tuple[str, ...]:
        """What is exact, what is a bound, and what is neither."""
        last, many = self.rows[-1], len(self.rows)
        rule = (
            "Risk and caused are exact: there is one release."
            if many == 1
            else "Risk and caused follow a rule: each attribute as if it were released once at the cumulative loss, "
            "and what was given away stays given away. Of several releases that is neither exact nor a bound."
        )
        said = [rule] if self.attributes else []
        if last.caused is not None:
            said.append(
                "Whatever the attack, the people given away who would not be without their own record are at most "
                f"{math.ceil(last.caused.cap):,} after all releases: a bound."
            )
        if last.ceiling is None:
            said.append(f"The ceiling is not known: {last.why_no_ceiling}.")
        elif last.ceiling.exact:
            said.append("The ceiling is that of all losses composed, and some attacker reaches it.")
        else:
            said.append("The ceiling is that of all losses composed: an upper bound.")
        return tuple(said)

    def _numbers(self) -> pd.DataFrame:
        """One row a risk: that of the attribute released, and the overall one of each kind and weighting. Then what was
        caused, likewise, as shares by records, and the ceiling of two labels."""
        import pandas as pd

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
        return pd.DataFrame(found, columns=columns)

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

    def _paragraphs(self) -> list[str]:
        body = [
            [
                *(f"{row.number}", row.name, row.loss.describe(), claim(row.cumulative.epsilon)),
                *(claim(row.cumulative.delta), row.cumulative.chosen.operator, f"{row.cells:,}"),
                "-" if row.records is None else f"{row.records:.4f}",
                *(f"{value:.4f}" for value in vars(row.overall).values()),
            ]
            for row in self.rows
        ]
        header = ["", "release", "loss", "epsilon", "delta", "composed", "cells", "risk"]
        header += ["max, uniform", "max, records", "sum, uniform", "sum, records"]
        about = (
            f"{self.measure.replace('_', ' ')} risk, {self.form}, of {number_of(self.n_records, 'record')}, each "
            "attribute at the cumulative loss; risk: of the attribute released, by records; max and sum: overall"
        )
        return [
            self._table_to_decide_by(),
            f"{about}\n{aligned(header, body, left=3)}",
            "\n".join(self.statements),
            CURATOR_NOTE,
        ]

    def _table_to_decide_by(self) -> str:
        body = []
        for row in self.rows:
            caused = row.caused
            body.append(
                [
                    *(f"{row.number}", row.name),
                    "-" if caused is None else whole_people(caused.people),
                    "-" if caused is None or caused.low is None else f"{caused.low:,} to {caused.high:,}",
                    "-" if caused is None else f"{math.ceil(caused.cap):,}",
                    whole_people(row.overall_caused.max_records * self.n_records),
                    "-" if row.ceiling is None else say_most(row.ceiling.even_two),
                ]
            )
        header = ["", "release", "caused", "95% of releases", "any attack", "caused so far", "worst case, %"]
        about = (
            f"people of {self.n_records:,} given away only because of their own record (caused), the most that any "
            f"attack on all releases so far causes, and the worst case: how often {WORST_CASE}, is right at most"
        )
        return f"{about}\n{aligned(header, body, left=2)}"


def describe_ceiling(found: Ceiling | None) -> dict[str, Any] | None:
    """A ceiling of some releases as JSON-ready values."""
    if found is None:
        return None
    named = {"even_two": found.even_two, "even": found.even, "labels": found.labels}
    return {**named, "advantage": found.advantage, "exact": found.exact, "sentence": found.of_two}


def say_loss(found: Composition) -> str:
    """A cumulative loss in words."""
    delta = f", delta {claim(found.delta)}" if found.delta else ""
    return f"epsilon {claim(found.epsilon)}{delta}"


def describe_composition(found: Composition) -> dict[str, Any]:
    """A cumulative loss as JSON-ready values."""
    named = {"epsilon": found.epsilon, "delta": found.delta, "flavour": found.flavour}
    return {**named, "operator": found.chosen.operator}
