"""`assess_sequence`: the risk along a sequence of releases to the same people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.repeat.sequences.cumulative import Cumulative
from cellrisk.repeat.sequences.risks_so_far import Advance, CellQuestion, RisksSoFar
from cellrisk.repeat.sequences.sequence_result import Overall, Released, RiskSequence
from cellrisk.repeat.sequences.shared_cells import SharedCells
from cellrisk.repeat.sequences.step import Step, check_steps
from cellrisk.risk.measures import FORMS, MEASURES, Survival
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.system.words import Form, MeasureName, MechanismName, Operator, require_word

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable


@dataclass(frozen=True, eq=False)
class SequenceAssessor:
    """Follows releases one after the other: their losses composed, and how every cell stands after each."""

    table: FrequencyTable
    question: CellQuestion
    cumulative: Cumulative
    attributes: tuple[str, ...]
    """The attributes that some release releases."""
    _grids: dict[tuple[str, ...], SharedCells] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(
        table: FrequencyTable, steps: Sequence[Step], question: CellQuestion, cumulative: Cumulative
    ) -> SequenceAssessor:
        check_steps(table, steps)
        released = [step.attribute for step in steps if step.attribute is not None]
        return SequenceAssessor(table, question, cumulative, tuple(dict.fromkeys(released)))

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

    def advance(self, before: RisksSoFar | None, steps: Sequence[Step]) -> Advance:
        """What the last of these releases does to the cells."""
        return Advance.of(self.question, before, self.grid(steps), steps[-1].attribute)

    def take(self, before: RisksSoFar | None, steps: Sequence[Step]) -> tuple[RisksSoFar, Released]:
        """How the cells stand after the last of these releases."""
        step, advance, found = steps[-1], self.advance(before, steps), self.cumulative.compose(steps)
        after, mechanism, uniform, records = advance.before, None, None, None
        if advance.anew:
            mechanism = self.cumulative.mechanism(steps)
            after, now = advance.take(Survival((mechanism.noise,), mechanism.threshold))
            if step.attribute is not None:
                own, sizes = after.grid.places[step.attribute], after.grid.cells[step.attribute].sizes
                risk = now[step.attribute][own]
                uniform, records = float(np.mean(risk)), float(sizes @ risk / sizes.sum())
        row = Released(
            len(steps),
            step.attribute,
            step.quasi_identifiers or self.table.quasi_identifiers,
            step.loss,
            found,
            after.grid.n_cells,
            advance.anew,
            mechanism,
            uniform,
            records,
            Overall.of(after),
        )
        return after, row

    def assess(self, steps: Sequence[Step]) -> tuple[RisksSoFar | None, tuple[Released, ...]]:
        """How the cells stand after all these releases, and a row for each."""
        so_far, rows = None, []
        for number in range(1, len(steps) + 1):
            so_far, row = self.take(so_far, steps[:number])
            rows.append(row)
        return so_far, tuple(rows)

    def result(self, rows: tuple[Released, ...]) -> RiskSequence:
        return RiskSequence(self.table.n_records, self.question.measure, self.question.form, rows)


def make_question(table: FrequencyTable, measure: str, form: str, priors: Priors) -> CellQuestion:
    """The risk of those names, checked."""
    require_word("measure", measure, tuple(MEASURES))
    require_word("form", form, FORMS)
    return CellQuestion(table, measure, form, priors)


@takes_priors
def assess_sequence(
    table: FrequencyTable,
    steps: Sequence[Step],
    *,
    operator: Operator = "tightest",
    delta: float | None = None,
    assess_as: MechanismName | None = None,
    measure: MeasureName = "local",
    form: Form = "tight",
    priors: Priors = USUAL_PRIORS,
) -> RiskSequence:
    """How does the risk grow, release by release, when sensitive attributes of the same people are released in turn?

    The table has all quasi-identifiers and sensitive attributes of the sequence. After each release:

    - The cumulative loss composes all losses so far, by the ``operator`` of `compose`, at ``delta`` (None: the sum of
      the deltas so far).
    - The attribute released is assessed at that loss (paper, section 4.3: eps_0 o eps_1 o ... o eps_j), in noise of
      the release's own kind, or of the kind ``assess_as``. That is the paper's rule, and neither exact nor a bound:
      the loss is an upper bound, but risk is not monotone in epsilon.
    - The cells are those of all quasi-identifiers so far, for a release on fewer of them too. Where new ones split
      the cells, every attribute released so far is assessed again, at the new loss and in the same noise.
    - What was given away stays given away: in each cell, an attribute keeps the larger of its old risk and its new
      one, and a child starts from its parent's risks. The overall risk of a cell is the largest over the attributes
      (max, bounded by 1) or their sum (unbounded; an attribute released again adds what is beyond its old risk).

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
    operator, delta
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
    if not steps:
        raise InvalidInput("a sequence needs one release at least", fix="for example [Step(Laplace(epsilon=0.5))]")
    question = make_question(table, measure, form, priors)
    assessor = SequenceAssessor.of(table, steps, question, Cumulative(operator, delta, assess_as))
    return assessor.result(assessor.assess(steps)[1])
