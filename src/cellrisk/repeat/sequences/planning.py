"""`plan`: what one more release would cost and give away, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting import Composition
from cellrisk.repeat.sequences.assessing import assess_sequence
from cellrisk.repeat.sequences.risks_so_far import KINDS
from cellrisk.repeat.sequences.sequence_result import NOTHING, Overall, RiskSequence, describe_composition, say_loss
from cellrisk.repeat.sequences.step import Step
from cellrisk.risk.assessment import CURATOR_NOTE
from cellrisk.risk.measures import WEIGHTS
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.system.old_words import takes_old_words
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, percent
from cellrisk.system.words import Form, MeasureName, MechanismName, Operator

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

    from cellrisk.counts.table import FrequencyTable

WORDS = {"max": "largest of the attributes", "sum": "attributes added up"}


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """The answer of `plan`: the whole sequence, whose last release is the planned one, seen before and after it."""

    sequence: RiskSequence

    @property
    def cumulative_before(self) -> Composition | None:
        """The loss spent so far; None where the planned release is the first."""
        rows = self.sequence.rows
        return rows[-2].cumulative if len(rows) > 1 else None

    @property
    def cumulative_after(self) -> Composition:
        return self.sequence.rows[-1].cumulative

    @property
    def overall_before(self) -> Overall:
        """The overall risk so far; 0 where the planned release is the first."""
        rows = self.sequence.rows
        return rows[-2].overall if len(rows) > 1 else NOTHING

    @property
    def overall_after(self) -> Overall:
        return self.sequence.rows[-1].overall

    @property
    def headline(self) -> str:
        """What a curator can repeat."""
        rows, before, after = self.sequence.rows, self.overall_before.max_records, self.overall_after.max_records
        last = rows[-1]
        spent = f"from {say_loss(rows[-2].cumulative)} to" if len(rows) > 1 else "to"
        return (
            f"Releasing {last.name} at {last.loss.describe()} would take the cumulative loss {spent} "
            f"{say_loss(last.cumulative)}, and the overall risk by records from {percent(before)} to {percent(after)}."
        )

    def _numbers(self) -> pd.DataFrame:
        """One row a number: before and after, the loss and the overall risk of each kind and weighting."""
        import pandas as pd

        found: list[tuple[Any, ...]] = []
        for when, cumulative, overall in (
            ("before", self.cumulative_before, self.overall_before),
            ("after", self.cumulative_after, self.overall_after),
        ):
            epsilon, delta = (0.0, 0.0) if cumulative is None else (cumulative.epsilon, cumulative.delta)
            found += [(when, "epsilon", None, epsilon), (when, "delta", None, delta)]
            found += [(when, kind, weights, overall.value(kind, weights)) for kind in KINDS for weights in WEIGHTS]
        return pd.DataFrame(found, columns=["when", "quantity", "weights", "value"])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        before = self.cumulative_before
        return {
            "before": {
                "cumulative": None if before is None else describe_composition(before),
                "overall": vars(self.overall_before),
            },
            "after": {
                "cumulative": describe_composition(self.cumulative_after),
                "overall": vars(self.overall_after),
            },
            "sequence": self.sequence.to_dict(),
            "sentence": self.headline,
        }

    def plot(self, path: str | os.PathLike[str] | None = None, ax: Axes | None = None, by: str = "loss") -> Any:
        """The sequence with the planned release.

        Parameters
        ----------
        path, ax
            As for every result.
        by
            The horizontal axis: "loss" or "release".
        """
        return self.sequence.plot(path, ax, by)

    def _paragraphs(self) -> list[str]:
        rows = [
            [
                WORDS[kind],
                weights,
                *(f"{each.value(kind, weights):.4f}" for each in (self.overall_before, self.overall_after)),
            ]
            for kind in KINDS
            for weights in WEIGHTS
        ]
        return [aligned(["overall risk", "weights", "before", "after"], rows, left=2), CURATOR_NOTE]


@takes_priors
@takes_old_words("planned", lambda next: next, "next")
def plan(
    table: FrequencyTable,
    past: Sequence[Step],
    planned: Step,
    *,
    operator: Operator = "tightest",
    delta: float | None = None,
    assess_as: MechanismName | None = None,
    measure: MeasureName = "local",
    form: Form = "tight",
    priors: Priors = USUAL_PRIORS,
) -> Plan:
    """If this were released next, what would be the cumulative loss and the overall risk then?

    `assess_sequence` of the past releases and the next one, and seen before and after it. Nothing is drawn or spent.

    Parameters
    ----------
    table
        As in `assess_sequence`.
    past
        The releases so far.
    planned
        The release to add.
    operator, delta, assess_as, measure, form, priors
        As in `assess_sequence`.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], ["income", "race"], bins={"age": 5})
    >>> found = plan(table, [Step(cr.Laplace(epsilon=0.5), "income")], Step(cr.Laplace(epsilon=0.5), "race"))
    >>> round(found.overall_before.max_records, 4), round(found.overall_after.max_records, 4)
    (0.0351, 0.0353)
    """
    if not isinstance(planned, Step):
        raise InvalidInput("the next release is not a Step", got=type(planned).__name__, fix="write Step(mechanism)")
    return Plan(
        assess_sequence(
            table,
            [*past, planned],
            operator=operator,
            delta=delta,
            assess_as=assess_as,
            measure=measure,
            form=form,
            priors=priors,
        )
    )
