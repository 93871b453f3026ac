"""`plan`: what one more release would cost and give away, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.sequences.assessing import assess_sequence
from cellrisk.repeat.sequences.risks_so_far import KINDS
from cellrisk.repeat.sequences.sequence_result import (
    NOTHING,
    Overall,
    RiskSequence,
    describe_ceiling,
    describe_composition,
    say_loss,
)
from cellrisk.repeat.sequences.step import Step
from cellrisk.risk.ceilings import WORST_CASE, Ceiling, say_most
from cellrisk.risk.measures import WEIGHTS
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.system.checks import read_list
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned, change, percent, whole_people
from cellrisk.system.words import Form, MeasureName, MechanismName, Operator, takes_old_words

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
    def caused_before(self) -> Overall:
        """What was caused so far: shares of the people given away because of their own record; 0 before any release."""
        rows = self.sequence.rows
        return rows[-2].overall_caused if len(rows) > 1 else NOTHING

    @property
    def caused_after(self) -> Overall:
        return self.sequence.rows[-1].overall_caused

    @property
    def ceiling_before(self) -> Ceiling | None:
        """The ceiling of the releases so far; None where that is not known."""
        rows = self.sequence.rows
        return rows[-2].ceiling if len(rows) > 1 else compose_ceiling(())

    @property
    def ceiling_after(self) -> Ceiling | None:
        return self.sequence.rows[-1].ceiling

    @property
    def headline(self) -> str:
        """What a curator can repeat."""
        rows, before, after = self.sequence.rows, self.overall_before.max_records, self.overall_after.max_records
        last = rows[-1]
        spent = f"from {say_loss(rows[-2].cumulative)} to" if len(rows) > 1 else "to"
        return (
            f"Releasing {last.name} at {last.loss.describe()} would take the cumulative loss {spent} "
            f"{say_loss(last.cumulative)}, {self._decide()}and the overall risk by records "
            f"{change(percent(before), percent(after))}."
        )

    def _decide(self) -> str:
        """The figures to decide by, before and after."""
        people = self.sequence.n_records
        now, then = self.caused_before.max_records * people, self.caused_after.max_records * people
        changed = change(whole_people(now), whole_people(then))
        told = f"the people given away only because of their own record {changed}, "
        before, after = self.ceiling_before, self.ceiling_after
        if before is None or after is None:
            return told
        worst = change(f"{say_most(before.even_two)}%", f"{say_most(after.even_two)}%")
        return f"{told}the worst case for one record ({WORST_CASE}) {worst}, "

    @property
    def _both(self) -> dict[str, tuple[Composition | None, Overall, Overall, Ceiling | None]]:
        """Loss, overall risk, caused and ceiling, before the planned release and after it."""
        return {
            "before": (self.cumulative_before, self.overall_before, self.caused_before, self.ceiling_before),
            "after": (self.cumulative_after, self.overall_after, self.caused_after, self.ceiling_after),
        }

    def _numbers(self) -> pd.DataFrame:
        """One row a number: before and after, the loss, the overall risk of each kind and weighting, caused and the
        ceiling."""
        import pandas as pd

        found: list[tuple[Any, ...]] = []
        for when, (cumulative, overall, caused, ceiling) in self._both.items():
            epsilon, delta = (0.0, 0.0) if cumulative is None else (cumulative.epsilon, cumulative.delta)
            found += [(when, "epsilon", None, epsilon), (when, "delta", None, delta)]
            found += [(when, kind, weights, overall.value(kind, weights)) for kind in KINDS for weights in WEIGHTS]
            found += [(when, f"caused_{kind}", "records", caused.value(kind)) for kind in KINDS]
            if ceiling is not None:
                found.append((when, "ceiling", None, ceiling.even_two))
        return pd.DataFrame(found, columns=["when", "quantity", "weights", "value"])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        both = {
            when: {
                "cumulative": None if cumulative is None else describe_composition(cumulative),
                "overall": vars(overall),
                "caused": {"max": caused.max_records, "sum": caused.sum_records},
                "ceiling": describe_ceiling(ceiling),
            }
            for when, (cumulative, overall, caused, ceiling) in self._both.items()
        }
        return {**both, "sequence": self.sequence.to_dict(), "sentence": self.headline}

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
        rows.append(
            [
                "caused by people's own records",
                "records",
                *(f"{each.max_records:.4f}" for each in (self.caused_before, self.caused_after)),
            ]
        )
        if self.ceiling_before is not None and self.ceiling_after is not None:
            both = self.ceiling_before, self.ceiling_after
            rows.append(["worst case for one record", "-", *(f"{each.even_two:.4f}" for each in both)])
        return [
            aligned(["overall risk", "weights", "before", "after"], rows, left=2),
            "\n".join(self.sequence.statements),
            CURATOR_NOTE,
        ]


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
    """If this were released next, what would be the cumulative loss, the figures to decide by and the risk then?

    `assess_sequence` of the past releases and the planned one, and seen before and after it. Nothing is drawn or spent.

    Parameters
    ----------
    table
        With all quasi-identifiers and sensitive attributes of the sequence.
    past
        The releases so far, in their order.
    planned
        The release that is planned. Its name was ``next``, which still works.
    operator, delta, assess_as, measure, form, priors
        As for `assess_sequence`.

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
            [*read_list("past", past, "steps"), planned],
            operator=operator,
            delta=delta,
            assess_as=assess_as,
            measure=measure,
            form=form,
            priors=priors,
        )
    )
