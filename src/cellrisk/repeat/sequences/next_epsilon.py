"""`largest_epsilon`: how much the next release may spend, so that what all releases reveal stays within limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import require_table
from cellrisk.decide.choosing import CHOICE_NOTE
from cellrisk.decide.limits import SMALLEST_EPSILON, RiskDefinition, read_limits, say_again, say_largest
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy import Policy
from cellrisk.decide.search import Intervals, find_admissible, intersect
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, describe_mechanism
from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.sequences.assessing import SequenceAssessor, SoFar
from cellrisk.repeat.sequences.cumulative import Cumulative, find_ceiling
from cellrisk.repeat.sequences.risks_so_far import KINDS, Advance, CellRisk
from cellrisk.repeat.sequences.sequence_result import NOTHING, Overall, RiskSequence, describe_ceiling, say_loss
from cellrisk.repeat.sequences.step import Step
from cellrisk.risk.ceilings import WORST_CASE, Ceiling, say_most
from cellrisk.risk.measures import WEIGHTS
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import is_number, read_list, require_kind
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, aligned, as_given, percent, round_down, show_down, show_spans, show_up
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


@dataclass(frozen=True)
class NextLimits:
    """What the next release has to keep, together with all before it."""

    risk: float | None = None
    """The overall risk at most."""
    caused: float | None = None
    """The share of people given away because of their own record at most."""
    ceiling: float | None = None
    """The worst case of two equally likely values, at most."""
    kind: OverallKind = "max"
    weights: Weights = "records"

    def __post_init__(self) -> None:
        require_word("kind", self.kind, KINDS)
        require_word("weights", self.weights, WEIGHTS)
        if self.risk is None and self.caused is None and self.ceiling is None:
            raise InvalidInput("no limit was given", allowed="max_risk, max_caused or max_ceiling")
        for name in ("risk", "caused"):
            limit = getattr(self, name)
            if limit is not None and not (is_number(limit) and limit > 0):
                raise InvalidInput(f"max_{name} must be a number above 0", got=limit, allowed="for example 0.1")
        if self.ceiling is not None and not (is_number(self.ceiling) and 0.5 < self.ceiling < 1):
            raise InvalidInput(
                "max_ceiling must be a number above 0.5, which is chance, and below 1",
                got=self.ceiling,
                allowed="for example 0.75",
            )

    def describe(self) -> str:
        """What is kept, in words."""
        said = []
        if self.risk is not None:
            said.append(f"the overall risk ({self.kind}, {self.weights}) at {self._show(self.risk)} or below")
        if self.caused is not None:
            shown = self._show(self.caused)
            said.append(f"people given away because of their own record ({self.kind}) at {shown} or below")
        if self.ceiling is not None:
            said.append(f"the worst case for one record ({WORST_CASE}) at {as_given(self.ceiling, 2)}% or below")
        return " and ".join(said)

    def _show(self, limit: float) -> str:
        """A limit as it was given: a share of people for the bounded kind, a number for the sum."""
        return f"{as_given(limit, 2)}%" if self.kind == "max" else as_given(limit)


@dataclass(frozen=True, repr=False)
class NextEpsilon(Result):
    """The answer of `largest_epsilon`; ``epsilon`` is None where none will do, or where no limit binds, and ``why``
    says the reason."""

    setting: Mechanism
    attribute: str | None
    limits: NextLimits
    epsilon: float | None
    """The largest admissible epsilon of the next release."""
    admissible: Intervals
    """Every admissible interval, both ends included, each on its safe side and within one part in a million."""
    binding: tuple[str, ...]
    """The limits that do not let epsilon be larger; none where no limit binds."""
    before: Overall | None
    """The overall risk of the past releases; None where there is no table."""
    lowest_risk: float | None
    """The smallest overall risk that the search found; it looks closely for it where nothing is admissible. None where
    the risk has no limit."""
    lowest_epsilon: float | None
    """The epsilon at which the risk is smallest."""
    searched: tuple[float, float]
    cumulative: Composition | None
    """The loss of all releases, the next one at ``epsilon``; None where there is none."""
    ceiling: Ceiling | None
    """The ceiling then; None where it is not known."""
    sequence: RiskSequence | None
    """All releases, the next one at ``epsilon``; None where there is none, and where there is no table."""
    why: str

    @property
    def max_risk(self) -> float | None:
        return self.limits.risk

    @property
    def kind(self) -> str:
        return self.limits.kind

    @property
    def weights(self) -> str:
        return self.limits.weights

    @property
    def risk(self) -> float | None:
        """The overall risk then."""
        return None if self.sequence is None else self.sequence.overall(self.weights, self.kind)

    @property
    def caused(self) -> float | None:
        """The share of people given away because of their own record then."""
        return None if self.sequence is None else self.sequence.rows[-1].overall_caused.value(self.kind)

    @property
    def headline(self) -> str:
        """What a curator can repeat."""
        what = f"{self.attribute or 'the counts of the cells'} through {self.setting.describe()}"
        keeps = f"keeps {self.limits.describe()}"
        if self.epsilon is None or self.cumulative is None:
            start = "No limit binds" if self.admissible == (self.searched,) else "The limits hold, but not everywhere,"
            none = f"No epsilon {show_spans([self.searched])} is admissible that {keeps}"
            return f"{start if self.admissible else none} for {what}: {self.why}."
        then = [f"The cumulative loss is then {say_loss(self.cumulative)}"]
        if self.risk is not None:
            then.append(f"the risk {say_risk(self.kind, self.risk)}")
        if self.caused is not None and self.limits.caused is not None:
            then.append(f"caused {say_risk(self.kind, self.caused)}")
        if self.ceiling is not None and self.limits.ceiling is not None:
            then.append(f"the worst case {say_most(self.ceiling.even_two)}%")
        listed = f"{', '.join(then[:-1])}, and {then[-1]}" if len(then) > 1 else then[0]
        wavy = ["caused"] if self.limits.caused is not None else []
        largest = say_largest(wavy, keeps, self.limits.risk is not None, self.searched[0])
        shown = as_given(round_down(self.epsilon, self.admissible[-1][0]))
        return f"For {what}, {shown} is {largest}. {listed}; {self.why}."

    def _numbers(self) -> list[dict[str, float | None]]:
        """One row an admissible interval; one without numbers where there is none."""
        return [{"low": low, "high": high} for low, high in self.admissible or ((None, None),)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        lowest = None if self.lowest_risk is None else {"epsilon": self.lowest_epsilon, "risk": self.lowest_risk}
        return {
            "mechanism": self.setting.name,
            "delta": self.setting.delta,
            "attribute": self.attribute,
            "max_risk": self.limits.risk,
            "max_caused": self.limits.caused,
            "max_ceiling": self.limits.ceiling,
            "kind": self.kind,
            "weights": self.weights,
            "epsilon": self.epsilon,
            "risk": self.risk,
            "caused": self.caused,
            "ceiling": describe_ceiling(self.ceiling),
            "admissible": [list(interval) for interval in self.admissible],
            "binding": list(self.binding),
            "before": None if self.before is None else vars(self.before),
            "lowest": lowest,
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
        return parts if self.before is None else [*parts, f"{CURATOR_NOTE} {CHOICE_NOTE}"]


@takes_priors
def largest_epsilon(
    table: FrequencyTable | None,
    past: Sequence[Step],
    *,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    attribute: str | None,
    max_risk: float | None = None,
    max_caused: float | None = None,
    max_ceiling: float | None = None,
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
    """Which is the largest epsilon for the next release that keeps the limits, together with all before it?

    Risk is not monotone in epsilon, so the whole admissible set between 0.001 and 100 comes back; if it is empty, what
    lies above 0.000001 is searched. It is looked for
    along the cumulative epsilon and taken back to the next release's own, which grows with it; each end is admissible
    by `assess_sequence` itself, and one part in a million beyond it is not. Under ``max_caused`` and ``max_ceiling``
    more privacy is never inadmissible: the answer is the largest epsilon up to which every smaller one keeps them.
    Where they are given and no limit binds, nothing is recommended: ``epsilon`` is None, and ``why`` says so. A limit
    looser than that of a policy in force on the same risk is refused.

    Parameters
    ----------
    table
        With all quasi-identifiers and sensitive attributes of the sequence. None where ``max_ceiling`` is the only
        limit, which uses no data.
    past
        The releases so far, in their order.
    mechanism, delta, neighbours, threshold, attribute, quasi_identifiers
        The next release. Of a mechanism that is an object, the epsilon does not matter, and its delta, neighbours and
        threshold are taken.
    max_risk
        The overall risk at most, of the ``kind`` and ``weights``.
    max_caused
        The share of people at most who are given away only because of their own record, of the ``kind``.
    max_ceiling
        How often an attacker who already knows every other record, and finds two values equally likely, may be
        right: above 0.5, below 1.
    kind, weights
        How the overall risk of a cell is made of those of its attributes, "max" or "sum", and averaged.
    total_delta
        The ``delta`` of `assess_sequence`.
    operator, assess_as, measure, form, priors
        As for `assess_sequence`.
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
    >>> found = largest_epsilon(None, [], attribute="income", max_ceiling=0.75)  # geometric: e^eps/(1 + e^eps)
    >>> round(found.epsilon, 5)
    1.09861
    """
    if table is not None:
        require_table(table)
    past = tuple(read_list("past", past, "steps"))
    for step in past:
        require_kind("each release of past", step, Step, "write Step(mechanism)")
    limits = NextLimits(max_risk, max_caused, max_ceiling, kind, weights)
    policies = Policies.in_force(policy)
    if max_risk is not None:
        risk = RiskDefinition(measure, form, weights, priors=priors)
        policies.check_tighter(read_limits(max_risk=min(max_risk, 1.0), risk=risk) if policies else ())
    said = describe_mechanism(mechanism, delta=delta, neighbours=neighbours, threshold=threshold)
    setting = said.with_epsilon(LEAST_EPSILON)
    next_release = NextRelease(past, setting, attribute, quasi_identifiers)
    largest = min(LARGEST_EPSILON, setting.largest_epsilon, policies.largest_epsilon(setting))
    cumulative = Cumulative(operator, total_delta, assess_as)
    before, sequence = None, None
    if table is None:
        if max_risk is not None or max_caused is not None:
            raise InvalidInput("max_risk and max_caused need a table", fix="give it, or max_ceiling alone")
        for least in LEAST_EPSILON, SMALLEST_EPSILON:
            searched = least, largest
            allowed = {"ceiling": next_release.find_within_ceiling(float(max_ceiling or 0.0), searched)}
            found = decide(limits, searched, allowed, [next_release.ceiling_before])
            if found.admissible:
                break
    else:
        cell_risk = CellRisk(table, measure, form, priors)
        assessor = SequenceAssessor.of(next_release.at(LEAST_EPSILON), cell_risk, cumulative)
        so_far, rows = assessor.assess(next_release.past)
        for least in LEAST_EPSILON, SMALLEST_EPSILON:
            search = Search(assessor, next_release, so_far, limits, largest, least)
            searched, found = search.searched, search.find()
            if found.admissible:
                break
        before = rows[-1].overall if rows else NOTHING
        if found.epsilon is not None:
            sequence = assessor.result((*rows, assessor.describe_last(so_far, next_release.at(found.epsilon))[1]))
    steps = None if found.epsilon is None else next_release.at(found.epsilon)
    return NextEpsilon(
        setting=setting,
        attribute=attribute,
        limits=limits,
        before=before,
        searched=searched,
        cumulative=None if steps is None else cumulative.compose(steps),
        ceiling=None if steps is None else _find_ceiling(steps)[0],
        sequence=sequence,
        **vars(found),
    )


@dataclass(frozen=True)
class Decided:
    """What the limits allow together."""

    epsilon: float | None
    admissible: Intervals
    binding: tuple[str, ...]
    why: str
    lowest_risk: float | None = None
    lowest_epsilon: float | None = None


def decide(
    limits: NextLimits,
    searched: tuple[float, float],
    allowed: Mapping[str, Intervals],
    before: Sequence[str],
    lowest: str = "",
    kept: Intervals = (),
) -> Decided:
    """The epsilons that all limits allow, the largest of them, which limits do not let it be larger, and why.

    ``before``: how things stand before the release, in words; ``lowest``: where the risk comes lowest; ``kept``: every
    epsilon that keeps the limit on caused, allowed or not.
    """
    together = intersect((searched,), *allowed.values())
    end = together[-1][1] if together else 0.0
    every = intersect((searched,), *(kept if name == "caused" else spans for name, spans in allowed.items()))
    again = say_again(tuple(span for span in every if span[0] > end), end)
    stands = f"before this release {', '.join(before)}{again}"
    if not together:
        alone = [name for name, intervals in allowed.items() if not intervals]
        if not alone:
            spans = "; ".join(f"{name} allows epsilon {show_spans(intervals)}" for name, intervals in allowed.items())
            return Decided(None, (), (), f"the limits exclude each other: {spans}{again}")
        reasons = dict.fromkeys(alone, f"epsilon {searched[0]:g} is too much already")
        if "risk" in reasons:
            reasons["risk"] = lowest
        told = [f"{reason} ({name})" if len(allowed) > 1 else reason for name, reason in reasons.items()]
        return Decided(None, (), (), f"{', and '.join(told)}; {stands}")
    epsilon = end
    binding = tuple(
        name
        for name, intervals in allowed.items()
        if epsilon < searched[1] and not any(low <= epsilon < high for low, high in intervals)
    )
    if not binding and list(allowed) != ["risk"]:
        why = (
            f"every epsilon {show_spans(together)}, the end of the range searched, keeps {limits.describe()}; nothing "
            f"is recommended: choose by what the release is for, or set a tighter limit; {stands}"
        )
        return Decided(None, together, (), why)
    ends = " (the end of the range searched)" if not binding else ""
    binds = f", where {' and '.join(binding)} binds" if binding and len(allowed) > 1 else ""
    why = f"the limits allow epsilon {show_spans(together)}{ends}{binds}; {stands}"
    return Decided(epsilon, together, binding, why)


@dataclass(frozen=True)
class NextRelease:
    """The next release, whatever its epsilon, and those before it."""

    past: tuple[Step, ...]
    setting: Mechanism
    attribute: str | None
    quasi_identifiers: str | Sequence[str] | None

    def at(self, epsilon: float) -> tuple[Step, ...]:
        """The past releases and the next one at an epsilon."""
        return *self.past, Step(self.setting.with_epsilon(epsilon), self.attribute, self.quasi_identifiers)

    @property
    def ceiling_before(self) -> str:
        """The ceiling of the past releases, in words."""
        return f"the worst case is {say_most(_require_ceiling(self.past))}%"

    def find_within_ceiling(self, limit: float, searched: tuple[float, float]) -> Intervals:
        """The epsilons that keep the ceiling, which rises with epsilon, within a limit: all up to one, or none."""

        def rising(epsilon: float) -> float:
            return _require_ceiling(self.at(epsilon))

        low, high = searched
        return () if rising(low) > limit else ((low, invert(rising, limit, low, high)),)


def _find_ceiling(steps: Sequence[Step]) -> tuple[Ceiling | None, str]:
    return find_ceiling([step.loss for step in steps], [step.attribute for step in steps])


def _require_ceiling(steps: Sequence[Step]) -> float:
    """The worst case of two values after these releases; refuses where that is not known."""
    found, why_not = _find_ceiling(steps)
    if found is None:
        raise InvalidInput(f"these releases have no ceiling: {why_not}", fix="leave max_ceiling out")
    return found.even_two


@dataclass(frozen=True, eq=False)
class Search:
    """The epsilons of the next release that keep the limits."""

    assessor: SequenceAssessor
    next_release: NextRelease
    so_far: SoFar | None
    """After the past releases."""
    limits: NextLimits
    largest: float
    """What the mechanism and policies allow, whatever the data."""
    least: float = LEAST_EPSILON

    def compose(self, epsilon: float) -> float:
        """The cumulative epsilon at which the risk is assessed. It grows with the epsilon of the next release."""
        return self.assessor.cumulative.assess(self.next_release.at(epsilon))[1]

    @cached_property
    def searched(self) -> tuple[float, float]:
        """The range of the next epsilon: where its own mechanism and the one assessed in have a guarantee."""
        high = self.largest
        if self.risk.advance.anew and self.risk.assessed.largest_epsilon < math.inf:  # classical: sum below 1
            spent = self.compose(self.least) - self.least
            high = max(self.least, min(high, (self.risk.assessed.largest_epsilon - spent) * (1 - 1e-12)))
        return self.least, high

    @cached_property
    def risk(self) -> ShareSearch:
        return ShareSearch(self, float(self.limits.risk or 0.0), self.limits.weights, caused=False)

    @cached_property
    def caused(self) -> ShareSearch:
        return ShareSearch(self, float(self.limits.caused or 0.0), "records", caused=True)

    def find(self) -> Decided:
        """What the limits allow together, and why."""
        kind, allowed, before = self.limits.kind, dict[str, Intervals](), list[str]()
        lowest, where, words = None, None, ""
        kept: Intervals = ()
        if self.limits.risk is not None:
            allowed["risk"], lowest, where = self.risk.find()
            before.append(f"the risk is {say_risk(kind, self.risk.before)}")
            words = (
                f"between epsilon {self.searched[0]:g} and {self.searched[1]:.6g} it comes lowest at {where:.4g}, to "
                f"{say_risk(kind, lowest)}"
            )
        if self.limits.caused is not None:
            kept = self.caused.find()[0]
            allowed["caused"] = kept[:1] if kept and kept[0][0] == self.searched[0] else ()
            before.append(f"caused is {say_risk(kind, self.caused.before)}")
        if self.limits.ceiling is not None:
            allowed["ceiling"] = self.next_release.find_within_ceiling(self.limits.ceiling, self.searched)
            before.append(self.next_release.ceiling_before)
        decided = decide(self.limits, self.searched, allowed, before, words, kept)
        return replace(decided, lowest_risk=lowest, lowest_epsilon=where)


@dataclass(frozen=True, eq=False)
class ShareSearch:
    """One share after the next release as a function of its epsilon, overall risk or caused, and where it keeps its
    limit."""

    search: Search
    limit: float
    weights: str
    caused: bool

    @cached_property
    def advance(self) -> Advance:
        """What the next release does to the cells."""
        return self.search.assessor.advance(self.search.so_far, self.search.next_release.at(LEAST_EPSILON), self.caused)

    @property
    def before(self) -> float:
        """After the past releases."""
        so_far = self.search.so_far
        return 0.0 if so_far is None else self._average(so_far)

    def _average(self, so_far: SoFar) -> float:
        return (so_far.caused if self.caused else so_far.risks).average(self.search.limits.kind, self.weights)

    def excess(self, epsilon: float) -> float:
        """How far the share is above the limit at one epsilon of the next release, by `assess_sequence`."""
        after, _, _ = self.search.assessor.assess_last(self.search.so_far, self.search.next_release.at(epsilon))
        return self._average(after) - self.limit

    @cached_property
    def assessed(self) -> Mechanism:
        """What the risk is assessed in, but for the cumulative epsilon."""
        return self.search.assessor.cumulative.assess(self.search.next_release.at(LEAST_EPSILON))[0]

    def find(self) -> tuple[Intervals, float, float]:
        """The admissible epsilons, the lowest share that was found, and its epsilon."""
        low, high = self.search.searched
        if not self.advance.anew:  # no attribute is released and no cell is split: epsilon does not matter
            excess = self.excess(low)
            return ((low, high),) if excess <= 0 else (), excess + self.limit, low
        found = find_admissible(self._excesses, self.search.compose(low), self.search.compose(high))
        ends = [
            (self._find_end(self._own(start), -1), self._find_end(self._own(end), 1)) for start, end in found.intervals
        ]
        kept = tuple((start, end) for start, end in ends if start is not None and end is not None)
        return kept, found.least + self.limit, self._own(found.where)

    def _own(self, cumulative: float) -> float:
        """The epsilon of the next release at which the cumulative one is this."""
        return invert(self.search.compose, cumulative, *self.search.searched)

    def _excesses(self, cumulative: Floats) -> Floats:
        """How far the share is above the limit, at many cumulative epsilons at once."""
        channel: CountChannel = self.assessed.channel_at(cumulative)
        if self.caused:
            channel = channel.pivotal
        return self.advance.overall(channel, self.search.limits.kind, self.weights) - self.limit

    def _find_end(self, epsilon: float, outward: int) -> float | None:
        """The last admissible epsilon near an end, on the way outward; None where there is none."""
        inner, outer = self.search.searched[::outward]
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
        return min(max(epsilon * (1 + share), self.search.searched[0]), self.search.searched[1])


def say_risk(kind: str, risk: float) -> str:
    """A share of people for the bounded kind; a plain number for the sum, which is no share."""
    return percent(risk) if kind == "max" else f"{risk:.4g}"


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
