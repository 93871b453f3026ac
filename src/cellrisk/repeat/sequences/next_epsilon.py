"""`largest_epsilon`: how much the next release may spend, so that all releases together stay within limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.decide.limits import (
    SMALLEST_EPSILON,
    Limit,
    LimitBound,
    RiskDefinition,
    Values,
    find_kept,
    read_limits,
)
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy import Policy
from cellrisk.decide.search import Intervals, intersect
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, describe_mechanism
from cellrisk.repeat.accounting.ceilings import describe_ceiling
from cellrisk.repeat.accounting.composition import Composition
from cellrisk.repeat.sequences.group_risks import FIGURES, KINDS, Figure, RisksSoFar
from cellrisk.repeat.sequences.sequence import NOTHING, Overall, Released, RiskSequence, read_sequence
from cellrisk.repeat.sequences.steps import Cumulative, Step, find_ceiling
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.measures import WEIGHTS
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_list, require_kind, require_within
from cellrisk.system.choices import (
    CompositionMethod,
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    OverallKind,
    Weights,
    require_word,
)
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable


RANGES: dict[str, dict[str, float]] = {"max_ceiling": {"above": 0.5, "below": 1.0}}
"""A worst case of 0.5 is a coin toss."""


@dataclass(frozen=True, eq=False)
class NextLimit(Limit):
    """A limit on what there is after the next release, as a function of its mechanism."""

    values: Values | None = None

    def metric(self, attributes: Sequence[Attribute], enough: float = math.inf) -> Values:
        return self.values or super().metric(attributes, enough)


def _require_ceiling(steps: Sequence[Step]) -> float:
    """The ceiling after these releases; refused if it is not known."""
    found, why_not = find_ceiling(steps)
    if found is None:
        raise InvalidInput(f"these releases have no ceiling: {why_not}", fix=f"leave {argument('max_ceiling')} out")
    return found.even_two


@dataclass(frozen=True, eq=False, repr=False)
class NextEpsilon(Result):
    """The answer of `largest_epsilon`; ``epsilon`` is None if none will do, or if no limit binds: ``why`` gives the
    reason."""

    wording = "next_epsilon"

    setting: Mechanism
    attribute: str | None
    kept: tuple[LimitBound, ...]
    """Which epsilons keep each limit: on the risk, caused, and the ceiling."""
    kind: OverallKind
    weights: Weights
    searched: tuple[float, float]
    before: Overall | None
    """The overall risk of the past releases; None without a table."""
    values_before: tuple[float, ...]
    """What each limit limits, before this release."""
    cumulative: Composition | None = None
    """The loss of all releases, the next one at ``epsilon``; None if there is none."""
    ceiling: Ceiling | None = None
    """The ceiling then; None if it is not known."""
    sequence: RiskSequence | None = None
    """All releases, the next one at ``epsilon``; None if there is none, and without a table."""

    @property
    def maxima(self) -> dict[str, float]:
        """The limits by their names."""
        return {bound.limit.name: bound.limit.maximum for bound in self.kept}

    @cached_property
    def admissible(self) -> Intervals:
        """Every admissible interval, ends included, each on its safe side and within one part in a million."""
        return intersect((self.searched,), *(bound.allowed for bound in self.kept))

    @property
    def again(self) -> Intervals:
        """Larger epsilons that keep every limit without being admissible, because some smaller ones do not."""
        kept = intersect((self.searched,), *(bound.intervals for bound in self.kept))
        end = self.admissible[-1][1] if self.admissible else 0.0
        return tuple((low, high) for low, high in kept if low > end)

    @property
    def binding(self) -> tuple[str, ...]:
        """The limits that do not let epsilon be larger; none if no limit binds."""
        end = self.admissible[-1][1] if self.admissible else self.searched[1]
        return tuple(
            bound.limit.name.removeprefix("max_")
            for bound in self.kept
            if end < self.searched[1] and not any(low <= end < high for low, high in bound.allowed)
        )

    @property
    def epsilon(self) -> float | None:
        """The largest admissible epsilon; None if there is none, and if limits on other than the risk do not bind."""
        chosen = self.admissible and (self.binding or list(self.maxima) == ["max_risk"])
        return self.admissible[-1][1] if chosen else None

    def then(self, name: str) -> float | None:
        """The overall "risk" then, or the share of people "caused"; None without a table or an epsilon."""
        if self.sequence is None:
            return None
        last = self.sequence.rows[-1]
        return last.overall.value(self.kind, self.weights) if name == "risk" else last.overall_caused.value(self.kind)

    @cached_property
    def lowest(self) -> tuple[float, float] | None:
        """The epsilon with the smallest overall risk that the search found, and that risk; None without its limit."""
        for bound in self.kept:
            if bound.limit.name == "max_risk":
                return bound.nearest, bound.limit.value((), self.setting.with_epsilon(bound.nearest))
        return None

    @property
    def why(self) -> str:
        """Why it is this epsilon, or none."""
        return str(find_words("next_epsilon").why(self))

    def _numbers(self) -> list[dict[str, float | None]]:
        """One row an admissible interval; one without numbers if there is none."""
        return [{"low": low, "high": high} for low, high in self.admissible or ((None, None),)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        lowest = None if self.lowest is None else dict(zip(("epsilon", "risk"), self.lowest, strict=True))
        return {
            "mechanism": self.setting.name,
            "delta": self.setting.delta,
            "attribute": self.attribute,
            **{name: self.maxima.get(name) for name in ("max_risk", "max_caused", "max_ceiling")},
            "kind": self.kind,
            "weights": self.weights,
            "epsilon": self.epsilon,
            "risk": self.then("risk"),
            "caused": self.then("caused"),
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
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
    assess_as: MechanismName | None = None,
    measure: MeasureName = "local",
    form: Form = "tight",
    priors: Priors = USUAL_PRIORS,
    policy: Policy | Policies | None = None,
) -> NextEpsilon:
    """Which is the largest epsilon for the next release that keeps the limits, together with all before it?

    Risk is not monotone in epsilon, so the whole admissible set between 0.001 and 100 is returned; if it is empty, the
    search begins at 0.000001. Each end is admissible by `assess_sequence`, and one part in a million beyond it is not.
    Under ``max_caused`` and ``max_ceiling`` more privacy is never inadmissible: the answer is the largest epsilon up to
    which every smaller one keeps them. If they are given and no limit binds, nothing is recommended: ``epsilon`` is
    None. A limit looser than that of a policy in force on the same risk is refused.

    Parameters
    ----------
    table
        With all quasi-identifiers and sensitive attributes of the sequence. None if ``max_ceiling`` is the only limit,
        which uses no data.
    past
        The releases so far, in their order.
    mechanism, delta, neighbours, threshold, attribute, quasi_identifiers
        The next release. Of a mechanism that is an object, the epsilon does not matter, and its delta, neighbours and
        threshold are used.
    max_risk
        The overall risk at most, of the ``kind`` and ``weights``.
    max_caused
        The share of people at most who are revealed only because of their own record, of the ``kind``.
    max_ceiling
        How often an attacker who already knows every other record, and finds two values equally likely, may be
        right: above 0.5, below 1.
    kind, weights
        How the overall risk of a cell is made of those of its attributes, "max" or "sum", and averaged.
    total_delta
        The ``total_delta`` of `assess_sequence`.
    method, assess_as, measure, form, priors
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
        require_table(table, single="sequences of releases")
    require_kind("priors", priors, Priors)
    past = tuple(read_list("past", past, "steps"))
    for step in past:
        require_kind("each release of past", step, Step, "write Step(mechanism)")
    require_word("kind", kind, KINDS)
    require_word("weights", weights, WEIGHTS)
    given_limits = {"max_risk": max_risk, "max_caused": max_caused, "max_ceiling": max_ceiling}
    maxima = {
        name: require_within(name, maximum, **RANGES.get(name, {"above": 0.0}))
        for name, maximum in given_limits.items()
        if maximum is not None
    }
    if not maxima:
        raise InvalidInput("no limit was given", allowed=" or ".join(map(argument, given_limits)))
    if table is None and list(maxima) != ["max_ceiling"]:
        raise InvalidInput(
            f"{argument('max_risk')} and {argument('max_caused')} need a table",
            fix=f"give it, or {argument('max_ceiling')} alone",
        )
    policies = Policies.in_force(policy)
    if max_risk is not None and policies:
        risk = RiskDefinition(measure, form, weights, priors=priors)
        policies.check_tighter(read_limits(max_risk=min(max_risk, 1.0), risk=risk))
    given = describe_mechanism(mechanism, delta=delta, neighbours=neighbours, threshold=threshold)
    setting = given.with_epsilon(LEAST_EPSILON)

    def release(method: Any) -> tuple[Step, ...]:
        """The past releases and the next one."""
        return *past, Step(method, attribute, quasi_identifiers)

    end = min(LARGEST_EPSILON, setting.largest_epsilon, policies.largest_epsilon(setting))
    cumulative = Cumulative(method, total_delta, assess_as)
    values: dict[str, Values] = {
        "max_ceiling": lambda methods: np.array([_require_ceiling(release(method)) for method in methods])
    }
    rows: tuple[Released, ...] = ()
    assessor, so_far, before = None, None, None
    if table is not None:
        first = release(setting)
        assessor = read_sequence(table, first, measure, form, priors, cumulative)
        so_far, rows = assessor.assess(past)
        before = rows[-1].overall if rows else NOTHING
        advanced = assessor.advance(so_far, first)
        for figure, weighted in zip(FIGURES, (weights, "records"), strict=True):
            values[f"max_{figure}"] = _follow(cumulative, release, advanced, figure, kind, weighted)
        if advanced.anew:
            end = _end_of_noise(cumulative, first, end)
    limits = [NextLimit(name, maximum, values=values[name]) for name, maximum in maxima.items()]
    known = {
        "max_risk": 0.0 if so_far is None else so_far.average("risk", kind, weights),
        "max_caused": 0.0 if so_far is None else so_far.average("caused", kind, "records"),
        "max_ceiling": _require_ceiling(past) if max_ceiling is not None else 0.5,
    }
    for least in LEAST_EPSILON, SMALLEST_EPSILON:
        searched = least, max(least, end)
        kept = tuple(find_kept(limit, (), setting, searched) for limit in limits)
        if intersect((searched,), *(bound.allowed for bound in kept)):
            break
    values_before = tuple(known[name] for name in maxima)
    found = NextEpsilon(setting, attribute, kept, kind, weights, searched, before, values_before)
    if found.epsilon is None:
        return found
    steps = release(setting.with_epsilon(found.epsilon))
    sequence = None if assessor is None else assessor.result((*rows, assessor.describe_last(so_far, steps)[1]))
    return replace(found, cumulative=cumulative.compose(steps), ceiling=find_ceiling(steps)[0], sequence=sequence)


def _follow(
    cumulative: Cumulative,
    release: Callable[[Any], tuple[Step, ...]],
    before: RisksSoFar,
    figure: Figure,
    kind: str,
    weights: str,
) -> Values:
    """The overall risk after the next release, or the share caused, by `assess_sequence`'s rule."""

    def values(methods: Sequence[Any]) -> Floats:
        if not before.anew:  # no attribute is released and no cell is split: epsilon does not matter
            return np.full(len(methods), before.average(figure, kind, weights))
        channels = [cumulative.mechanism(release(method)).channel for method in methods]
        return np.array([before.after(channel, (figure,)).average(figure, kind, weights) for channel in channels])

    return values


def _end_of_noise(cumulative: Cumulative, first: Sequence[Step], end: float) -> float:
    """The largest epsilon of the next release at which the noise that is assessed exists: classical, a sum below 1."""
    assessed = cumulative.mechanism(first)
    if math.isinf(assessed.largest_epsilon):
        return end
    return min(end, (assessed.largest_epsilon - (assessed.epsilon - LEAST_EPSILON)) * (1 - 1e-12))
