"""`assess_sequence`, the risk along a sequence of releases to the same people, and `plan`, one more release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.repeat.accounting.ceilings import compose_ceiling, describe_ceiling
from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.sequences.cell_risks import KINDS, CellRisk, RisksSoFar, SharedCells
from cellrisk.repeat.sequences.sequence_result import (
    NOTHING,
    Overall,
    Released,
    RiskSequence,
    describe_composition,
)
from cellrisk.repeat.sequences.steps import Cumulative, Step, check_steps
from cellrisk.risk.caused import Caused, count_caused
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.measures import WEIGHTS, Local
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list, require_kind
from cellrisk.system.choices import CompositionMethod, Form, MeasureName, MechanismName
from cellrisk.system.results import Result

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes

    from cellrisk.counts.table import FrequencyTable


SoFar = tuple[RisksSoFar, RisksSoFar]
"""What some releases have revealed in every cell: its risks, and the share of its people caused."""


@dataclass(frozen=True, eq=False)
class SequenceAssessor:
    """Assesses releases one after the other: their losses composed, and what each leaves in every cell."""

    cell_risk: CellRisk
    cumulative: Cumulative
    attributes: tuple[str, ...]
    """The attributes that some release releases."""
    _grids: dict[tuple[str, ...], SharedCells] = field(default_factory=dict, init=False, repr=False)
    _profiles: dict[tuple[str, ...], Profiles] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(steps: Sequence[Step], cell_risk: CellRisk, cumulative: Cumulative) -> SequenceAssessor:
        check_steps(cell_risk.table, steps)
        released = [step.attribute for step in steps if step.attribute is not None]
        return SequenceAssessor(cell_risk, cumulative, tuple(dict.fromkeys(released)))

    @property
    def table(self) -> FrequencyTable:
        return self.cell_risk.table

    @cached_property
    def finest(self) -> SharedCells:
        """The cells of all quasi-identifiers."""
        return SharedCells.of([self.table.cells(name) for name in self.attributes or self.table.sensitive[:1]])

    def grid(self, steps: Sequence[Step]) -> SharedCells:
        """The cells after these releases: of all their quasi-identifiers together."""
        used = {name for step in steps for name in step.quasi_identifiers or self.table.quasi_identifiers}
        names = tuple(name for name in self.table.quasi_identifiers if name in used)
        if names not in self._grids:
            self._grids[names] = self.finest.coarsen(names)
        return self._grids[names]

    @cached_property
    def caused_risk(self) -> CellRisk:
        """The tight local risk of every cell, which under the pivotal channel is what was caused in it."""
        return replace(self.cell_risk, measure="local", form="tight", pivotal=True)

    def advance(self, before: SoFar | None, steps: Sequence[Step]) -> SoFar:
        """What was revealed before the last of these releases, in the cells as they are after it."""
        grid = self.grid(steps)
        risks, caused = before or (RisksSoFar(self.cell_risk, grid), RisksSoFar(self.caused_risk, grid))
        return risks.before(grid, steps[-1].attribute), caused.before(grid, steps[-1].attribute)

    def describe_last(self, so_far: SoFar | None, steps: Sequence[Step]) -> tuple[SoFar, Released]:
        """The cells after the last of these releases, and its row."""
        step = steps[-1]
        risks, caused = self.advance(so_far, steps)
        mechanism, now = None, dict[str, Floats]()
        if risks.anew:
            mechanism = self.cumulative.mechanism(steps)
            risks, now = risks.after(mechanism.channel)
            caused, _ = caused.after(mechanism.channel)
        uniform, records, at_once = None, None, None
        if step.attribute is not None and mechanism is not None:
            grid = risks.grid
            risk, sizes = now[step.attribute][grid.places[step.attribute]], grid.cells[step.attribute].sizes
            uniform, records = float(np.mean(risk)), float(sizes @ risk / sizes.sum())
            at_once = self._count_caused(grid, step.attribute, mechanism)
        row = Released(
            number=len(steps),
            attribute=step.attribute,
            quasi_identifiers=step.quasi_identifiers or self.table.quasi_identifiers,
            loss=step.loss,
            cumulative=self.cumulative.compose(steps),
            cells=risks.grid.n_cells,
            assessed=tuple(now),
            mechanism=mechanism,
            uniform=uniform,
            records=records,
            overall=Overall.of(risks),
            caused_at_once=at_once,
            overall_caused=Overall.of(caused),
            steps=tuple(steps),
        )
        return (risks, caused), row

    def _count_caused(self, grid: SharedCells, name: str, mechanism: Mechanism) -> Caused:
        """People revealed because of their own record, of the attribute released, at the cumulative loss."""
        key = (*grid.names, name)
        if key not in self._profiles:
            self._profiles[key] = grid.cells[name].profiles()
        profiles = self._profiles[key]
        share = Local().average(profiles, mechanism.channel, ("tight",))["tight", "records"][0]
        return count_caused(profiles, mechanism, profiles.n_records * float(share))

    def assess(self, steps: Sequence[Step]) -> tuple[SoFar | None, tuple[Released, ...]]:
        """The cells after all these releases, and a row for each."""
        so_far, rows = None, []
        for number in range(1, len(steps) + 1):
            so_far, row = self.describe_last(so_far, steps[:number])
            rows.append(row)
        return so_far, tuple(rows)

    def result(self, rows: tuple[Released, ...]) -> RiskSequence:
        last = next((row.attribute for row in reversed(rows) if row.attribute is not None), None)
        labels = 2 if last is None else max(self.table.attribute(last).n_levels, 2)
        return RiskSequence(self.table.n_records, self.cell_risk.measure, self.cell_risk.form, rows, labels)


def assess_sequence(
    table: FrequencyTable,
    steps: Sequence[Step],
    *,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
    assess_as: MechanismName | None = None,
    measure: MeasureName = "local",
    form: Form = "tight",
    priors: Priors = USUAL_PRIORS,
) -> RiskSequence:
    """How does the risk grow, release by release, when sensitive attributes of the same people are released in turn?

    The table has all quasi-identifiers and sensitive attributes of the sequence. After each release:

    - The cumulative loss composes all losses so far, by the ``method`` of `compose`, at ``total_delta`` (None: the sum
      of the deltas so far).
    - The attribute released is assessed at that loss (paper, section 4.3: eps_0 o eps_1 o ... o eps_j), in noise of
      the release's own kind, or of the kind ``assess_as``. That is the paper's rule, and neither exact nor a bound:
      the loss is an upper bound, but risk is not monotone in epsilon.
    - The cells are those of all quasi-identifiers so far, for a release on fewer of them too. Where new ones split
      the cells, every attribute released so far is assessed again, at the new loss and in the same noise.
    - What was revealed stays revealed: in each cell, an attribute keeps the larger of its old risk and its new
      one, and a child starts from its parent's risks. The overall risk of a cell is the largest over the attributes
      (max, bounded by 1) or their sum (unbounded; an attribute released again adds what is beyond its old risk).

    Beside the risk stand figures to decide by. ``caused``: people revealed only because of their own record, by the
    same rule, local and tight whatever the measure; ``overall_caused`` is kept like the overall risk. Of one release
    both are exact; of several they are neither exact nor a bound, but ``cap`` is a bound on what any attack on all
    releases causes. ``ceiling``: the worst case for one record in all of them, from their losses composed
    (`compose_ceiling`); exact where all are of one attribute and their noise is known, else an upper bound.

    Averaged by records, the overall risk never falls, of either kind. Averaged with each cell alike it never falls
    while the cells stay the same; splitting a cell of low risk into many can lower it.

    New people (vertical growth) are a table of their own with their own releases: disjoint cohorts are assessed apart,
    and what they spend together is the most that one of them spends. Where only some people get new releases, their
    table is assessed with the releases of all followed by their own.

    Parameters
    ----------
    table
        Made by `tabulate` of all quasi-identifiers and sensitive attributes of the sequence.
    steps
        The releases in their order.
    method, total_delta
        How losses are added up, as in `compose`.
    assess_as
        The mechanism that the sum is assessed by; default that of each release.
    measure, form
        The words of the risk, as in `assess`.
    priors
        How the priors of the measures that need any are found.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], ["income", "race"], bins={"age": 5})
    >>> found = assess_sequence(table, [Step(cr.Laplace(epsilon=0.5), name) for name in ("income", "race")])
    >>> [(row.cumulative.epsilon, round(row.overall.max_records, 4)) for row in found.rows]
    [(0.5, 0.0351), (1.0, 0.0353)]
    """
    require_table(table, single="sequences of releases")
    require_kind("priors", priors, Priors)
    steps = read_list("steps", steps, "steps")
    if not steps:
        raise InvalidInput("a sequence needs one release at least", fix="for example [Step(Laplace(epsilon=0.5))]")
    cell_risk = CellRisk(table, measure, form, priors)
    assessor = SequenceAssessor.of(steps, cell_risk, Cumulative(method, total_delta, assess_as))
    return assessor.result(assessor.assess(steps)[1])


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

    def _numbers(self) -> list[dict[str, Any]]:
        """One quantity a row, before the planned release and after it."""
        found: list[tuple[str, str, str | None, float]] = []
        for when, (cumulative, overall, caused, ceiling) in self._both.items():
            epsilon, delta = (0.0, 0.0) if cumulative is None else (cumulative.epsilon, cumulative.delta)
            found += [(when, "epsilon", None, epsilon), (when, "delta", None, delta)]
            found += [(when, kind, weights, overall.value(kind, weights)) for kind in KINDS for weights in WEIGHTS]
            found += [(when, f"caused_{kind}", "records", caused.value(kind)) for kind in KINDS]
            if ceiling is not None:
                found.append((when, "ceiling", None, ceiling.even_two))
        return [dict(zip(("when", "quantity", "weights", "value"), row, strict=True)) for row in found]

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
