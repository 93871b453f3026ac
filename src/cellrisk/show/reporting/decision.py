"""The decision that a report asks for: which epsilon, whether the limits hold, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cellrisk.decide.choosing import Alternative, Choice, choose, weigh
from cellrisk.decide.policies import Policies, Wish
from cellrisk.decide.requirement import Condition, describe_conditions
from cellrisk.decide.tradeoff import TradeOff, find_trade_off
from cellrisk.errors import InvalidInput
from cellrisk.risk.priors import Alpha, Priors
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, Question, Setting, read_settings
from cellrisk.system.progress import Progress
from cellrisk.system.text import round_down

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

WITHIN = "within every limit"
"""What `weigh` says of an epsilon that breaks none."""
KEEPS_RISK, KEEPS_TVD, NEAREST = "keeps the limit on the risk", "keeps the limit on the TVD", "comes nearest"
"""Where no epsilon will do, those that are shown instead."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What the caller of a report wants to know, as `choose` and `assess` take it."""

    table: FrequencyTable
    mechanism: str
    epsilon: float | None
    delta: float | None
    max_risk: float | None
    max_people: float | None
    margin: float | None
    max_tvd: float | None
    measure: str
    form: str
    weights: str
    neighbours: str
    threshold: float
    alpha: Alpha | Mapping[str, Alpha]
    sizes: str
    sizes_fit: str
    zero_truncation: bool
    cells: str
    releases: int
    seed: int
    policies: Policies
    """Those that hold beside what is asked for."""
    public: bool = False
    disclosures: tuple[str, ...] = ()
    """What else was taken from the raw data, a sentence each, for the public."""

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, str):
            raise InvalidInput("a report is of one mechanism", got=type(self.mechanism).__name__, fix="name one")
        if self.epsilon is None and not self.limited:
            raise InvalidInput(
                "a report needs a decision to ask for",
                allowed="an epsilon, or a limit to choose one by: max_risk, max_people or margin",
                fix="give --epsilon 1 or --max-risk 0.3",
            )
        if self.epsilon is not None:
            self.setting.at(self.epsilon)  # refuses what the mechanism does not take, before any work

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits asked for."""
        return {"max_risk": self.max_risk, "max_people": self.max_people, "margin": self.margin}

    @property
    def limited(self) -> bool:
        """Whether there is a limit on a risk, asked for or of a policy."""
        return bool(self.policies.on_risks) or any(limit is not None for limit in self.limits.values())

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The limits on risks, policies' too; none where there is none."""
        wish = Wish(self.measure, self.form, self.weights, priors=self.priors)
        return self.policies.join(self.table, wish, **self.limits) if self.limited else ()

    @cached_property
    def setting(self) -> Setting:
        records = self.table.n_records
        delta = self.policies.settle_delta(self.mechanism, self.delta, records)
        return read_settings(self.mechanism, delta, self.neighbours, self.threshold, records)[0]

    @property
    def delta_from_data(self) -> bool:
        """Whether delta was left to be set from the number of records."""
        return self.delta is None and not self.setting.pure

    @property
    def priors(self) -> Priors:
        return Priors(self.alpha, self.sizes, self.sizes_fit, self.zero_truncation)

    def choose(self, max_tvd: float | None, progress: Progress | None = None) -> Choice:
        """The answer of `choose` to all this, with or without the limit on the TVD."""
        return choose(
            self.table,
            self.mechanism,
            max_risk=self.max_risk,
            max_people=self.max_people,
            margin=self.margin,
            max_tvd=max_tvd,
            measure=self.measure,
            form=self.form,
            weights=self.weights,
            delta=self.delta,
            alpha=self.alpha,
            sizes=self.sizes,
            sizes_fit=self.sizes_fit,
            zero_truncation=self.zero_truncation,
            neighbours=self.neighbours,
            threshold=self.threshold,
            releases=self.releases,
            seed=self.seed,
            cells=self.cells,
            policy=self.policies,
            progress=progress,
        )

    def describe_limits(self) -> str:
        """The policy in words; empty where no limit was set."""
        parts = [describe_conditions(self.conditions)] if self.conditions else []
        if self.max_tvd is not None:
            parts.append(f"a TVD of at most {self.max_tvd:g}")
        return " and ".join(parts)


def name_policies(asked: Asked) -> str:
    """Which policies the decision had to keep, for the head of a report."""
    return ", ".join(each.describe() for each in asked.policies.obeyed) or "none in force"


@dataclass(frozen=True)
class Candidate:
    """An epsilon that was considered."""

    label: str
    at: Alternative


@dataclass(frozen=True, eq=False)
class Decision:
    """What is asked for, and what it was chosen from."""

    asked: Asked
    kind: str
    """recommended, kept, broken, none or open"""
    epsilon: float | None
    """The one to be approved; None where none will do."""
    question: Question
    choice: Choice | None
    """Where there were limits on the risk to choose by."""
    trade_off: TradeOff | None
    candidates: tuple[Candidate, ...]
    """Stricter, asked for, looser; where none will do, those that come nearest. None where no risk was looked at."""
    shown: int
    """Which of the candidates the rest of the report is about."""

    @property
    def setting(self) -> Setting:
        return self.asked.setting

    @property
    def shown_epsilon(self) -> float:
        return self.candidates[self.shown].at.epsilon if self.candidates else float(self.asked.epsilon or 0.0)

    @property
    def chosen_from_data(self) -> bool:
        return self.asked.epsilon is None


def decide(asked: Asked, progress: Progress | None = None) -> Decision:
    """Which epsilon is to be approved, and what would stricter and looser ones mean?"""
    conditions, setting = asked.conditions, asked.setting
    choice = None
    if conditions:
        choice = asked.choose(asked.max_tvd, progress)
        question, trade_off = choice.question, choice.trade_off
    else:
        question = Question.of(asked.table, asked.measure, asked.form, asked.weights, asked.priors)
        trade_off = _trade_off(asked, question, progress)
    if asked.public and asked.epsilon is not None and not conditions and trade_off is None:
        return Decision(asked, "open", asked.epsilon, question, None, None, (), 0)  # nothing depends on the records
    if asked.epsilon is not None:
        weighed = weigh(question, setting, asked.epsilon, conditions, trade_off)
        kind = "open" if not conditions and trade_off is None else _kind(weighed[1])
        return Decision(asked, kind, asked.epsilon, question, choice, trade_off, _label(weighed, "asked for"), 1)
    if choice is None or choice.epsilon is None:
        return _none(asked, question, choice, trade_off)
    epsilon = round_down(choice.epsilon)
    if epsilon < choice.admissible[-1][0]:
        epsilon = choice.epsilon
    weighed = weigh(question, setting, epsilon, conditions, trade_off)
    first = replace(choice.options[0], epsilon=epsilon, risk=weighed[1].risk)
    choice = replace(choice, options=(first,), alternatives=weighed)
    return Decision(asked, "recommended", epsilon, question, choice, trade_off, _label(weighed, "recommended"), 1)


def _trade_off(asked: Asked, question: Question, progress: Progress | None) -> TradeOff | None:
    if asked.max_tvd is None or asked.epsilon is None:
        return None
    usual = min(LARGEST_EPSILON, asked.setting.largest_epsilon)
    return find_trade_off(
        asked.table,
        question,
        asked.setting,
        (min(LEAST_EPSILON, asked.epsilon / 2), max(usual, asked.epsilon)),
        asked.max_tvd,
        releases=asked.releases,
        seed=asked.seed,
        cells=asked.cells,
        progress=progress,
    )


def _kind(at: Alternative) -> str:
    return "kept" if at.verdict == WITHIN else "broken"


def _label(weighed: tuple[Alternative, ...], middle: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(middle if at.role == "recommended" else at.role, at) for at in weighed)


def _none(asked: Asked, question: Question, choice: Choice | None, trade_off: TradeOff | None) -> Decision:
    """Where no epsilon will do: what comes nearest, or what each of two limits in conflict would take alone."""
    if choice is None:
        raise InvalidInput("a report without an epsilon needs a limit on the risk")

    def consider(label: str, epsilon: float) -> Candidate:
        return Candidate(label, weigh(question, asked.setting, epsilon, asked.conditions, trade_off)[1])

    found = []
    alone = asked.choose(None) if trade_off is not None else None
    if alone is not None and alone.epsilon is not None:
        found.append(consider(KEEPS_RISK, round_down(alone.epsilon)))
    else:
        found.append(consider(NEAREST, choice.options[0].lowest_epsilon))
    if trade_off is not None and trade_off.least_epsilon is not None:
        found.append(consider(KEEPS_TVD, trade_off.least_epsilon))
    return Decision(asked, "none", None, question, choice, trade_off, tuple(found), 0)
