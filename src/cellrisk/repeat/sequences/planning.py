"""`plan`: what one more release would cost and reveal, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput, argument
from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.sequences.assessing import assess_sequence
from cellrisk.repeat.sequences.cell_risks import KINDS
from cellrisk.repeat.sequences.sequence_result import (
    NOTHING,
    Overall,
    Released,
    RiskSequence,
    describe_ceiling,
    describe_composition,
)
from cellrisk.repeat.sequences.step import Step
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.measures import WEIGHTS
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.system.checks import read_list
from cellrisk.system.choices import CompositionMethod, Form, MeasureName, MechanismName
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

    from cellrisk.counts.table import FrequencyTable


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """The answer of `plan`: the whole sequence, whose last release is the planned one, seen before and after it."""

    wording = "plan"

    sequence: RiskSequence

    @property
    def before(self) -> Released | None:
        """The last release so far; None if the planned release is the first."""
        return self.sequence.rows[-2] if len(self.sequence.rows) > 1 else None

    @property
    def after(self) -> Released:
        """The planned release."""
        return self.sequence.rows[-1]

    @property
    def overall(self) -> tuple[Overall, Overall]:
        """The overall risk before and after the planned release."""
        return (NOTHING if self.before is None else self.before.overall), self.after.overall

    @property
    def caused(self) -> tuple[Overall, Overall]:
        """The shares of people revealed because of their own record, before and after."""
        return (NOTHING if self.before is None else self.before.overall_caused), self.after.overall_caused

    @property
    def ceilings(self) -> tuple[Ceiling | None, Ceiling | None]:
        """The ceiling before and after; None if it is not known."""
        return (compose_ceiling(()) if self.before is None else self.before.ceiling), self.after.ceiling

    @property
    def _both(self) -> dict[str, tuple[Composition | None, Overall, Overall, Ceiling | None]]:
        """Loss, overall risk, caused and ceiling, before the planned release and after it."""
        losses = None if self.before is None else self.before.cumulative, self.after.cumulative
        rows = zip(losses, self.overall, self.caused, self.ceilings, strict=True)
        return dict(zip(("before", "after"), rows, strict=True))

    def _numbers(self) -> pd.DataFrame:
        """One quantity a row, before the planned release and after it."""
        import pandas as pd

        found: list[tuple[str, str, str | None, float]] = []
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


@takes_priors
def plan(
    table: FrequencyTable,
    past: Sequence[Step],
    planned: Step,
    *,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
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
        The release that is planned.
    method, total_delta, assess_as, measure, form, priors
        As for `assess_sequence`.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], ["income", "race"], bins={"age": 5})
    >>> found = plan(table, [Step(cr.Laplace(epsilon=0.5), "income")], Step(cr.Laplace(epsilon=0.5), "race"))
    >>> [round(overall.max_records, 4) for overall in found.overall]
    [0.0351, 0.0353]
    """
    if not isinstance(planned, Step):
        raise InvalidInput("the next release is not a Step", got=type(planned).__name__, fix="write Step(mechanism)")
    if planned.attribute is not None and planned.loss.mechanism is None and assess_as is None:
        raise InvalidInput(
            "the mechanism of the planned release is missing, so its risk cannot be assessed",
            fix=f"give {argument('mechanism', 'geometric')}",
            code="no-mechanism",
        )
    return Plan(
        assess_sequence(
            table,
            [*read_list("past", past, "steps"), planned],
            method=method,
            total_delta=total_delta,
            assess_as=assess_as,
            measure=measure,
            form=form,
            priors=priors,
        )
    )
