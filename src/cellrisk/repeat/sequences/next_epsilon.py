"""`largest_epsilon`: how much the next release may spend, so that the overall risk stays within a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cellrisk.decide.choosing import CHOICE_NOTE
from cellrisk.decide.policies import Policies, Policy
from cellrisk.decide.search import find_admissible
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, describe_mechanism
from cellrisk.repeat.sequences.assessing import SequenceAssessor, make_question
from cellrisk.repeat.sequences.cumulative import Cumulative
from cellrisk.repeat.sequences.risks_so_far import KINDS, Advance, RisksSoFar
from cellrisk.repeat.sequences.sequence_result import NOTHING, Overall, RiskSequence, say_loss
from cellrisk.repeat.sequences.step import Step
from cellrisk.risk.assessment import CURATOR_NOTE
from cellrisk.risk.measures import WEIGHTS
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, Setting
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import is_number
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, percent, show_down, show_up
from cellrisk.system.words import (
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    Operator,
    OverallKind,
    Weights,
    require_word,
)

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

EDGE = 4e-7
"""Relative width to which an end of the admissible set is narrowed; the admissible side is kept."""

Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, repr=False)
class NextEpsilon(Result):
    """The answer of `largest_epsilon`; ``epsilon`` is None where none will do, and ``why`` says the reason."""

    setting: Setting
    attribute: str | None
    max_risk: float
    kind: str
    weights: str
    epsilon: float | None
    """The largest admissible epsilon of the next release."""
    admissible: Intervals
    """Every admissible interval, both ends included, each on its safe side and within one part in a million."""
    before: Overall
    """The overall risk of the past releases."""
    lowest_risk: float
    """The smallest overall risk that the search found; it looks closely for it where nothing is admissible."""
    lowest_epsilon: float
    """The epsilon at which the risk is smallest."""
    searched: tuple[float, float]
    sequence: RiskSequence | None
    """All releases, the next one at ``epsilon``; None where there is none."""
    why: str

    @property
    def risk(self) -> float | None:
        """The overall risk then."""
        return None if self.sequence is None else self.sequence.overall(self.weights, self.kind)

    @property
    def headline(self) -> str:
        """What a curator can repeat."""
        what = f"{self.attribute or 'the counts of the cells'} through {self.setting.describe()}"
        limit = say_risk(self.kind, self.max_risk)
        keeps = f"keeps the overall risk ({self.kind}, {self.weights}) at {limit} or below"
        if self.epsilon is None or self.sequence is None:
            return f"No epsilon for {what} {keeps}: {self.why}."
        return (
            f"The largest epsilon for {what} that {keeps} is {show_down(self.epsilon)}. The cumulative loss is then "
            f"{say_loss(self.sequence.rows[-1].cumulative)}, and the risk {say_risk(self.kind, self.risk or 0.0)}; "
            f"{self.why}."
        )

    def _numbers(self) -> list[dict[str, float | None]]:
        """One row an admissible interval; one without numbers where there is none."""
        return [{"low": low, "high": high} for low, high in self.admissible or ((None, None),)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "mechanism": self.setting.name,
            "delta": self.setting.delta,
            "attribute": self.attribute,
            "max_risk": self.max_risk,
            "kind": self.kind,
            "weights": self.weights,
            "epsilon": self.epsilon,
            "risk": self.risk,
            "admissible": [list(interval) for interval in self.admissible],
            "before": vars(self.before),
            "lowest": {"epsilon": self.lowest_epsilon, "risk": self.lowest_risk},
            "searched": list(self.searched),
            "sequence": None if self.sequence is None else self.sequence.to_dict(),
            "why": self.why,
            "sentence": self.headline,
        }

    def _paragraphs(self) -> list[str]:
        parts = []
        if self.admissible:
            rows = [[show_up(low), show_down(high)] for low, high in self.admissible]
            parts.append(aligned(["admissible from", "to"], rows, left=0))
        return [*parts, f"{CURATOR_NOTE} {CHOICE_NOTE}"]


@takes_priors
def largest_epsilon(
    table: FrequencyTable,
    past: Sequence[Step],
    *,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    attribute: str | None,
    max_risk: float,
    kind: OverallKind = "max",
    weights: Weights = "records",
    delta: float | None = None,
    quasi_identifiers: str | Sequence[str] | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    operator: Operator = "tightest",
    total_delta: float | None = None,
    assess_as: MechanismName | None = None,
    measure: MeasureName = "local",
    form: Form = "tight",
    priors: Priors = USUAL_PRIORS,
    policy: Policy | Policies | None = None,
) -> NextEpsilon:
    """Which is the largest epsilon for the next release that keeps the overall risk at ``max_risk`` or below?

    Risk is not monotone in epsilon, so the whole admissible set between 0.001 and 100 comes back. It is looked for
    along the cumulative epsilon and taken back to the next release's own, which grows with it; each end is admissible
    by `assess_sequence` itself, and one part in a million beyond it is not. A limit looser than that of a policy in
    force on the same risk is refused.

    Parameters
    ----------
    table
        As in `assess_sequence`.
    past
        The releases so far.
    mechanism
        That of the next release; of an object, the epsilon does not matter, and its delta, neighbours and threshold are
        taken.
    attribute, quasi_identifiers
        What is released next, as in `Step`.
    max_risk
        The limit on the overall risk.
    kind, weights
        How the overall risk of a cell is made of those of its attributes, "max" or "sum", and averaged.
    delta, neighbours, threshold
        Those of a mechanism that is named.
    operator, assess_as, measure, form, priors
        As in `assess_sequence`.
    total_delta
        The ``delta`` of `assess_sequence`.
    policy
        One to obey beside those that are in force: a limit on the risk looser than theirs is refused, and their limits
        on the ceiling and on epsilon end the search.

    >>> import cellrisk as cr
    >>> adult = cr.datasets.adult_as_published()
    >>> table = cr.tabulate(adult, ["age", "education", "race"], ["income", "sex"], bins={"age": 5})
    >>> past = [Step(cr.Laplace(epsilon=0.1), "sex", "race")]
    >>> found = largest_epsilon(table, past, mechanism="laplace", attribute="income", max_risk=0.1)
    >>> [(round(low, 5), round(high, 5)) for low, high in found.admissible]
    [(0.04255, 4.13765)]
    """
    require_word("kind", kind, KINDS)
    require_word("weights", weights, WEIGHTS)
    if not (is_number(max_risk) and max_risk > 0):
        raise InvalidInput("max_risk must be a number above 0", got=max_risk, allowed="for example 0.1")
    words_of_risk: dict[str, str] = {"measure": measure, "form": form, "weights": weights}
    policies = Policies.in_force(policy)
    policies.check_tighter(words_of_risk, max_risk=max_risk)
    said = describe_mechanism(mechanism, delta=delta, neighbours=neighbours, threshold=threshold)
    setting = Setting(said.name, 0.0 if said.delta is None else said.delta, said.neighbours, said.threshold)
    question = make_question(table, measure, form, priors)
    first = Step(setting.at(LEAST_EPSILON), attribute, quasi_identifiers)
    assessor = SequenceAssessor.of(table, [*past, first], question, Cumulative(operator, total_delta, assess_as))
    so_far, rows = assessor.assess(tuple(past))
    before = rows[-1].overall if rows else NOTHING
    search = Search(
        assessor, tuple(past), first, setting, so_far, float(max_risk), kind, weights, policies.largest_epsilon(setting)
    )
    admissible, lowest, where = search.find()
    words = (say_risk(kind, before.value(kind, weights)), say_risk(kind, lowest))
    why = explain(admissible, search.searched, *words, where)
    epsilon = admissible[-1][1] if admissible else None
    sequence = None
    if epsilon is not None:
        sequence = assessor.result((*rows, assessor.take(so_far, search.steps(epsilon))[1]))
    fixed = setting, attribute, search.max_risk, kind, weights
    return NextEpsilon(*fixed, epsilon, admissible, before, lowest, where, search.searched, sequence, why)


@dataclass(frozen=True, eq=False)
class Search:
    """The overall risk after the next release as a function of its epsilon, and where it is within the limit."""

    assessor: SequenceAssessor
    past: tuple[Step, ...]
    first: Step
    """The next release at the smallest epsilon."""
    setting: Setting
    so_far: RisksSoFar | None
    """After the past releases."""
    max_risk: float
    kind: str
    weights: str
    largest: float = math.inf
    """What policies allow, whatever the data."""

    def steps(self, epsilon: float) -> tuple[Step, ...]:
        """The past releases and the next one at an epsilon."""
        return *self.past, Step(self.setting.at(epsilon), self.first.attribute, self.first.quasi_identifiers)

    def compose(self, epsilon: float) -> float:
        """The cumulative epsilon at which the risk is assessed. It grows with the epsilon of the next release."""
        return self.assessor.cumulative.assess(self.steps(epsilon))[1]

    def excess(self, epsilon: float) -> float:
        """How far the overall risk is above the limit at one epsilon of the next release, by `assess_sequence`."""
        row = self.assessor.take(self.so_far, self.steps(epsilon))[1]
        return row.overall.value(self.kind, self.weights) - self.max_risk

    @cached_property
    def advance(self) -> Advance:
        return self.assessor.advance(self.so_far, (*self.past, self.first))

    @cached_property
    def assessed(self) -> Setting:
        """What the risk is assessed in, but for the cumulative epsilon."""
        return self.assessor.cumulative.assess((*self.past, self.first))[0]

    @cached_property
    def searched(self) -> tuple[float, float]:
        """The range of the next epsilon: where its own mechanism and the one assessed in have a guarantee."""
        high = min(LARGEST_EPSILON, self.setting.largest_epsilon, self.largest)
        if self.advance.anew and self.assessed.largest_epsilon < math.inf:  # classical: epsilons add up to below 1
            spent = self.compose(LEAST_EPSILON) - LEAST_EPSILON
            high = max(LEAST_EPSILON, min(high, (self.assessed.largest_epsilon - spent) * (1 - 1e-12)))
        return LEAST_EPSILON, high

    def find(self) -> tuple[Intervals, float, float]:
        """The admissible epsilons, the lowest risk that was found, and its epsilon."""
        low, high = self.searched
        if not self.advance.anew:  # no attribute is released and no cell is split: epsilon does not matter
            excess = self.excess(low)
            return ((low, high),) if excess <= 0 else (), excess + self.max_risk, low
        found = find_admissible(self._excesses, self.compose(low), self.compose(high))
        ends = [
            (self._find_end(self._own(start), -1), self._find_end(self._own(end), 1)) for start, end in found.intervals
        ]
        kept = tuple((start, end) for start, end in ends if start is not None and end is not None)
        return kept, found.least + self.max_risk, self._own(found.where)

    def _own(self, cumulative: float) -> float:
        """The epsilon of the next release at which the cumulative one is this."""
        return invert(self.compose, cumulative, *self.searched)

    def _excesses(self, cumulative: Floats) -> Floats:
        """How far the overall risk is above the limit, at many cumulative epsilons at once."""
        survival = self.assessed.survival(cumulative)
        return self.advance.overall(survival, self.kind, self.weights) - self.max_risk

    def _find_end(self, epsilon: float, outward: int) -> float | None:
        """The last admissible epsilon near an end, on the way outward; None where there is none."""
        inner, outer = self.searched[::outward]
        step = EDGE / 16
        while self.excess(epsilon) > 0:
            if epsilon == inner:
                return None
            epsilon, step = self._move(epsilon, -outward * step), 2 * step
        step = EDGE
        while epsilon != outer:
            beyond = self._move(epsilon, outward * step)
            if self.excess(beyond) > 0:
                return self._narrow(epsilon, beyond)
            epsilon, step = beyond, 2 * step
        return outer

    def _narrow(self, epsilon: float, beyond: float) -> float:
        """The last admissible epsilon between one that is and one that is not."""
        while abs(beyond / epsilon - 1) > EDGE * 1.001:
            middle = math.sqrt(beyond * epsilon)
            epsilon, beyond = (epsilon, middle) if self.excess(middle) > 0 else (middle, beyond)
        return epsilon

    def _move(self, epsilon: float, share: float) -> float:
        return min(max(epsilon * (1 + share), self.searched[0]), self.searched[1])


def say_risk(kind: str, risk: float) -> str:
    """A share of people for the bounded kind; a plain number for the sum, which is no share."""
    return percent(risk) if kind == "max" else f"{risk:.4g}"


def explain(admissible: Intervals, searched: tuple[float, float], before: str, lowest: str, where: float) -> str:
    """Why the answer is what it is; risks come in words."""
    if admissible:
        spans = ", and ".join(f"from {show_up(low)} to {show_down(high)}" for low, high in admissible)
        end = " (the end of the range searched)" if admissible[-1][1] == searched[1] else ""
        return f"admissible is epsilon {spans}{end}; before this release the risk is {before}"
    return (
        f"before this release the risk is {before}, and between epsilon {searched[0]:g} and {searched[1]:.6g} it comes "
        f"lowest at {where:.4g}, to {lowest}"
    )


def invert(rising: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where does a rising function reach a target? The argument on the low side of it, to within 1e-8 of itself.

    >>> round(invert(lambda x: x * x, 2.0, 0.1, 10.0), 6)
    1.414214
    """
    from scipy.optimize import brentq

    if rising(high) <= target:
        return high
    if rising(low) >= target:
        return low
    root = math.exp(brentq(lambda log: rising(math.exp(log)) - target, math.log(low), math.log(high), xtol=1e-9))
    step = 1e-9
    while rising(root) > target:
        root, step = max(low, root * (1 - step)), 2 * step
    return root
