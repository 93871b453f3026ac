"""The documents on one table with noise: for a review board, and for the public.

The public sees no figure that was computed from the raw data, but for an epsilon that was chosen from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.decide.choosing import DIGITS, Alternative, Choice, choose_within, limits_use_data, weigh
from cellrisk.decide.limits import SMALLEST_EPSILON, Limit, RiskDefinition, find_largest_without_data
from cellrisk.decide.policies import Policies
from cellrisk.decide.usefulness import TradeOff, TvdLimit, find_trade_off, utility
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import find_precision
from cellrisk.risk.assessment import Assessment, TableRisks, assess
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.risk.curves import RiskCurve, curve
from cellrisk.risk.measures import FORMS
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON, MeasuredRisk
from cellrisk.show.reporting import metadata as facts
from cellrisk.show.reporting.document import read_decision
from cellrisk.show.wording.attackers import (
    accuracy,
    attack_rows,
    learnt,
    learnt_union,
    people_above,
    say_icons,
    shown_attacks,
)
from cellrisk.show.wording.ceiling import say_tables
from cellrisk.show.wording.choice import CHOICE_NOTE, WITHOUT_DATA, name_largest, say_least, say_tvd_limit
from cellrisk.show.wording.explanation import KEYS_NOTE
from cellrisk.show.wording.limits import CHECKED, describe_limits, name_risk, verdict
from cellrisk.system.formatting import claim, make_sentence, percent, round_down, whole_people
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.risk.perturbed import PerturbedAssessment

CHOSEN = (
    "Epsilon was chosen from the data, so the choice itself discloses something about them; the guarantee does "
    "not cover it. A choice that is covered is made by: cellrisk choose-private."
)
FRONT_WORDS = "Shares of people along epsilon: revealed because of their own record, and inferred."
SIZES_WORDS = "Histogram of the sizes of groups."
SIZES = (1, 5, 10, 50, 100, 1_000, 10_000, 100_000)
"""Counts whose relative error is shown."""


@dataclass(frozen=True, eq=False)
class Decision:
    """What a report on one table is about; and from ``kind`` on the answer: which epsilon is to be approved."""

    table: FrequencyTable
    setting: Mechanism
    """The mechanism, at any epsilon."""
    asked: float | None
    """The epsilon that is put to the board; None if the limits choose it."""
    risk: RiskDefinition
    limits: tuple[Limit, ...]
    """Those of policies too; empty if there is none."""
    attacker: Attacker
    tvd_limit: TvdLimit | None
    policies: Policies
    public: bool
    delta_from_data: bool
    """Whether delta was left to be set from the number of records."""
    simulated: Mapping[str, Any]
    """How usefulness is simulated: the number of releases, and the seed."""
    disclosures: tuple[str, ...]
    """What else was taken from the raw data, a sentence each, for the public."""
    kind: str = "open"
    """recommended, kept, broken, none, unbound or open"""
    epsilon: float | None = None
    """The one to be approved; None if none will do."""
    choice: Choice | None = None
    """None if there was no limit to choose by."""
    trade_off: TradeOff | None = None
    candidates: tuple[Alternative, ...] = ()
    """Stricter, asked for and looser, or those nearest to the limits; empty if no risk was computed."""
    shown: int = 1
    """The place, among the candidates, of the one that the rest of the report is about."""

    @cached_property
    def measured(self) -> MeasuredRisk:
        """The risk that is shown."""
        return self.risk.of(self.table.attributes) if self.choice is None else self.choice.measured

    @property
    def at(self) -> Alternative:
        """The candidate that the rest of the report is about."""
        return self.candidates[self.shown]

    @property
    def wanted(self) -> str:
        """The limits in words; empty if none was set."""
        tvd = [] if self.tvd_limit is None else [say_tvd_limit(self.tvd_limit)]
        return " and ".join([*describe_limits(self.limits), *tvd])

    @property
    def compared(self) -> str:
        """The limits, each with what is limited at the epsilon that is shown."""
        named = zip(describe_limits(self.limits), self.limits, strict=True)
        said = [f"{words} ({limit.say(self.at.limited[limit.name])})" for words, limit in named]
        if self.trade_off is not None:
            said.append(f"{say_tvd_limit(self.trade_off.limit)} (the TVD is {self.at.tvd:.3g})")
        return " and ".join(said)

    @property
    def limits_use_data(self) -> bool:
        """Return whether it tells something about the records that the limits are kept."""
        return limits_use_data(self.limits, self.tvd_limit)

    @property
    def chosen_from_data(self) -> bool:
        """Return whether the records had a say in which epsilon it is."""
        return self.asked is None and self.epsilon is not None and (self.limits_use_data or self.delta_from_data)

    @property
    def broken(self) -> tuple[str, ...] | None:
        """The names of the limits that the epsilon breaks; None if no limit was set."""
        if self.candidates:
            return self.at.broken
        mechanism = self.setting.with_epsilon(self.epsilon or 0.0)
        return tuple(limit.name for limit in self.limits if limit.value((), mechanism) > limit.maximum)

    @property
    def unprotected(self) -> str | None:
        """Return what a release would show of the data without noise; None if this is not known."""
        if not facts.read_domains(self.table):
            return None
        observed, gates = ", ".join(facts.list_observed(self.table)), (self.table.missing, self.table.outside)
        checked = self.limits_use_data and not self.chosen_from_data
        shown = {
            f"the values that occur of {observed}": bool(observed),
            "epsilon, which was chosen from the data": self.chosen_from_data,
            "whether the limits are kept, which was found from the data": checked,
            "delta, which was set from the number of records": self.delta_from_data,
            "that no record was refused, which was found from the data": "error" in gates,
        }
        parts = [text for text, applies in shown.items() if applies]
        return "; ".join(parts + [sentence.removesuffix(".") for sentence in self.disclosures]) or "none"

    @property
    def why_none(self) -> str | None:
        """Return why there is no epsilon to approve; None if there is one."""
        if self.epsilon is not None:
            return None
        if self.choice is not None:
            return self.choice.without_epsilon
        return "no limit binds" if self.kind == "unbound" else f"no epsilon from {SMALLEST_EPSILON:g} on is admissible"

    @property
    def largest(self) -> str:
        """Return what a recommended epsilon is, in words."""
        gives = f"gives {self.wanted}"
        largest = f"the largest epsilon that {gives}" if self.choice is None else name_largest(self.choice, gives)
        given = any(self.epsilon == limit.maximum for limit in self.limits)  # a limit on epsilon itself
        return largest if given else f"{largest}, rounded down"


def decide(asked: Decision, progress: Progress | None = None) -> Decision:
    """Find which epsilon is to be approved, and what stricter and looser ones would mean."""
    setting, limits, epsilon, tvd_limit = asked.setting, asked.limits, asked.asked, asked.tvd_limit
    if asked.public and not asked.limits_use_data:
        return _decide_without_data(asked)
    choice, trade_off = None, None
    if limits:
        words: dict[str, Any] = {"risk": asked.risk, "attacker": asked.attacker, "progress": progress}
        choice = choose_within(asked.table, limits, (setting,), tvd_limit, asked.policies, **words)
        trade_off = choice.trade_off
    elif tvd_limit is not None and epsilon is not None:
        ends = min(LEAST_EPSILON, epsilon / 2), max(min(LARGEST_EPSILON, setting.largest_epsilon), epsilon)
        trade_off = find_trade_off(asked.table, setting, ends, tvd_limit, progress)
    found = replace(asked, choice=choice, trade_off=trade_off)
    if epsilon is not None:
        stricter, this, looser = weigh(found.measured, setting, epsilon, limits, trade_off)
        kind, this = (
            "open" if this.broken is None else "broken" if this.broken else "kept",
            replace(this, role="asked for"),
        )
        return replace(found, kind=kind, epsilon=epsilon, candidates=(stricter, this, looser))
    if choice is None:
        raise InvalidInput("a report without an epsilon needs a limit", code="no-decision")
    if choice.epsilon is not None:
        kind, candidates, place = "recommended", choice.alternatives, 1
    else:
        kind, place = "unbound" if choice.open_ended else "none", 0
        nearest = [(role, weigh(found.measured, setting, at, limits, trade_off)) for role, at in _list_nearest(choice)]
        candidates = tuple(replace(this, role=role) for role, (_, this, _) in nearest)
    return replace(found, kind=kind, epsilon=choice.epsilon, candidates=candidates, shown=place)


def _decide_without_data(asked: Decision) -> Decision:
    """For the public, if no limit looks at the records: no record has a say, not even whether there is one."""
    if asked.asked is not None:
        given = replace(asked, epsilon=asked.asked)
        return replace(given, kind="broken" if given.broken else "kept") if asked.limits else given
    largest, binds = find_largest_without_data(asked.limits, asked.setting)
    if largest is None or not binds:
        return replace(asked, kind="none" if largest is None else "unbound")
    is_limit = any(largest == limit.maximum for limit in asked.limits)
    return replace(asked, kind="recommended", epsilon=largest if is_limit else round_down(largest, digits=DIGITS))


def _list_nearest(choice: Choice) -> list[tuple[str, float]]:
    """If no epsilon will do: what comes nearest, or what each of two limits in conflict would take alone.

    If no limit binds, the end of the range is shown, and not recommended.
    """
    if choice.open_ended:
        return [("the end of the range, not recommended", choice.admissible[-1][1])]
    if choice.within_limits:
        low, high = choice.within_limits[-1]
        shown = [("keeps the limit on the risk", round_down(high, low, DIGITS))]
    else:
        on_risk = any(limit.risk for limit in choice.kept_limits)
        nearest = "comes nearest" if on_risk else "is the smallest of the range"
        shown = [(nearest, choice.lowest_epsilon)]
    if choice.trade_off is not None and choice.trade_off.least_epsilon is not None:
        shown.append(("keeps the limit on the TVD", choice.trade_off.least_epsilon))
    return shown


def collect_board(
    decision: Decision, metadata: Mapping[str, Any], top: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Everything that the board sees, at the epsilon that is shown."""
    from cellrisk.show.pictures import draw_curve, draw_sizes, mark_asked

    table, risk, epsilon = decision.table, decision.risk, decision.at.epsilon
    mechanism = decision.setting.with_epsilon(epsilon)
    words: dict[str, Any] = {"measures": risk.measure, "weights": risk.weights, "priors": risk.priors}
    attacker, named = decision.attacker, facts.pick(decision.attacker, "belief harmful unions")
    assessment = assess(table, mechanism, forms=risk.form, **words, certainty=attacker.certainties, **named)
    assessment = replace(assessment, chosen=decision.chosen_from_data)
    forms = [form for form in FORMS if form in (risk.form, "exact", "tight")]
    epsilons = _list_epsilons(decision, 201, LEAST_EPSILON, LARGEST_EPSILON)
    risks = curve(table, mechanism, epsilon=epsilons, forms=forms, progress=progress, **words)

    def draw(line: RiskCurve, label: str) -> dict[str, str]:
        drawn = draw_curve(line, epsilon)
        mark_asked(drawn, epsilon)
        return facts.make_picture(drawn, label)

    front = None
    if any(assessment.attackers.values()):
        points = np.array(_list_epsilons(decision, 24, 0.05, 10.0))
        front = draw(RiskCurve(table, (), (decision.setting,), attacker, points), FRONT_WORDS)
    fitted = {each.name: risk.priors.fit(each, [risk.measure]) for each in table.attributes}
    lines = {line.sensitive: line for line in risks.lines if line.form == risk.form}
    return {
        **_collect_decision(decision, metadata, "Disclosure review of"),
        "table": facts.describe_table(table),
        "shown_epsilon": epsilon,
        "why": None if decision.choice is None else make_sentence(decision.choice.why),
        **describe_attackers(assessment),
        "several": say_tables(mechanism, len(assessment.figures)),
        "by_chance": mechanism.by_chance,
        "priors": [f"{name}: {line}" for name, law in fitted.items() for line in law.describe()],
        "exposures": [
            facts.pick(each, "sensitive people records")
            | {"limits": lines[each.sensitive].limits, "risk": lines[each.sensitive].at(epsilon)}
            for each in assessment.figures
        ],
        **_describe_candidates(decision),
        "usefulness": _describe_usefulness(decision, mechanism),
        "errors": _describe_errors(table, mechanism),
        "explanations": facts.explain_cells(table, risk, top, mechanism=mechanism),
        "pictures": {
            "front": front,
            "icons": draw_icons_of(assessment),
            "curve": {**draw(risks, f"Risk along epsilon. {risks.words}"), "words": risks.words.split("\n")},
            "sizes": facts.make_picture(draw_sizes(table), SIZES_WORDS),
        },
        "keys_note": KEYS_NOTE,
        "choice_note": CHOICE_NOTE,
    }


def _list_epsilons(decision: Decision, number: int, low: float, high: float) -> list[float]:
    """Epsilons of a picture; the one that is asked for is among them."""
    high = min(high, decision.setting.largest_epsilon)
    steps = [low * (high / low) ** (step / (number - 1)) for step in range(number - 1)]
    return sorted({*steps, high, decision.at.epsilon})


def describe_attackers(assessment: Assessment | PerturbedAssessment) -> dict[str, Any]:
    """Return what page one has: the figures in words, the error of a count, and the attacks on each attribute."""
    method, noisy, attackers = assessment.method, isinstance(assessment, Assessment), []
    setting = f"Epsilon {claim(method.epsilon)}" if isinstance(method, Mechanism) else "Published"
    own = ["Own record: people, share", "Own record, no noise", "Most for one person"]
    headings = ["Blind", setting, "No noise", *own]
    for figures in assessment.figures:
        attribute, tables = figures.attribute, assessment.attackers[figures.sensitive]
        rows, texts = [], [f"Attacks are not assessed: {figures.unknown}."]
        if tables:
            labels, texts = attribute.levels.labels, [people_above(tables[-1])]
            for row in attack_rows(tables[-1], shown_attacks(tables[-1]), figures.advantage):
                cells = [re.sub(r"  +(.+)", r" (\1)", cell) for cell in row]  # shares in brackets
                rows.append(cells if noisy else [*cells[:1], *cells[2:]])
            if tables[-1].prior:
                texts.append(learnt(tables[-1], attribute.name, labels))
                texts += [learnt_union(tables[-1], union, labels) for union in tables[-1].unions]
        shown = {"sensitive": figures.sensitive, "headings": headings if noisy else headings[1:]}
        attackers.append({**shown, "rows": rows, "texts": texts})
    texts = assessment.headline.split("\n")
    return {"headline": texts, "accuracy": accuracy(method), "attackers": attackers, "blind": noisy}


def draw_icons_of(assessment: TableRisks) -> dict[str, str] | None:
    """Return the picture of 100 people with and without their own record; None if attacks are not assessed."""
    from cellrisk.show.pictures import draw_icons

    sensitive, method = assessment.table.sensitive[0], assessment.method
    tables = assessment.attackers[sensitive]
    if not tables:
        return None
    setting = f"epsilon {claim(method.epsilon)}" if isinstance(method, Mechanism) else method.name
    return facts.make_picture(draw_icons(tables[-1], sensitive, setting), say_icons(tables[-1], sensitive, setting))


def _describe_candidates(decision: Decision) -> dict[str, Any]:
    """Return what each epsilon that was considered would mean; if none keeps the limits, what comes nearest.

    Candidates are compared by the people revealed, unless only other figures are limited.
    """
    limits, names = decision.limits, decision.table.sensitive
    shows_risk = any(limit.risk for limit in limits) or all(limit.name == "max_epsilon" for limit in limits)
    who = decision.table.revealed_name.capitalize()
    people = [f"{who} revealed{f', {name}' if len(names) > 1 else ''} (95% interval)" for name in names]
    others = [limit for limit in limits if limit.risk is None and limit.name != "max_epsilon"]
    candidates = []
    for at in decision.candidates:
        numbers = [f"{whole_people(each.mean)} ({each.low:,} to {each.high:,})" for each in at.people]
        limited = dict.fromkeys(limit.say(at.limited[limit.name]) for limit in others)
        candidates.append(
            {
                **facts.pick(at, "role epsilon tvd"),
                "scale": decision.setting.with_epsilon(at.epsilon).scale,
                "exposed": [percent(at.risk), *numbers] if shows_risk else [],
                "meaning": make_sentence("; ".join([*limited, _compare(decision, at)])),
                "marked": decision.epsilon is not None and at is decision.at,
            }
        )
    return {"candidates": candidates, "exposed_columns": ["Risk", *people] if shows_risk else []}


def _compare(decision: Decision, at: Alternative) -> str:
    """Return which limits an epsilon breaks; of another than the one to be approved, what it would change."""
    if decision.epsilon is None or at is decision.at:
        return at.verdict
    if at.epsilon == decision.epsilon:
        return "the guarantee of this mechanism ends here"
    less = at.epsilon > decision.epsilon
    if decision.kind != "recommended":
        changes = "less noise" if less else "more noise"
        return changes if decision.kind == "open" else f"{changes}; {at.verdict}"
    if at.broken:
        return f"rejected because it {at.verdict}"
    beyond = "some smaller epsilons break a limit" if less else "the limits are kept with less noise"
    return f"not chosen because {beyond}"


def _describe_usefulness(decision: Decision, mechanism: Mechanism) -> dict[str, Any]:
    """Return how far the marginals of simulated releases are from the true ones, or why that was not computed."""
    at, trade_off = decision.at, decision.trade_off
    try:
        found = utility(decision.table, mechanism, sensitive=decision.table.sensitive[0], **decision.simulated)
    except InvalidInput as refusal:
        return {"headline": f"Releases could not be simulated: {refusal}.", "marginals": []}
    headline = found.headline
    if trade_off is not None:
        differs = f"a {trade_off.limit.way}-way marginal of a release differs from the true one by"
        required = f"Required is {say_tvd_limit(trade_off.limit)}, which takes {say_least(trade_off)}."
        mean = f"a total variation distance (TVD) of {at.tvd:.3g} on average"
        headline = f"At epsilon {claim(at.epsilon)}, {differs} {mean}. {required}"
    marginals = [
        {"columns": way, "number": sum(len(names) == way for names in found.marginals), "tvd": found.mean_tvd(way)[0]}
        for way in found.ways
    ]
    return {**facts.pick(found, "releases seed"), "headline": headline, "marginals": marginals}


def _describe_errors(table: FrequencyTable, mechanism: Mechanism) -> list[dict[str, Any]]:
    """The error of a published count beside the count, by its size, and how many groups are as small."""
    precision, blocks = find_precision(mechanism), table.attributes[0].profiles.blocks
    largest = max(int(block.sizes.max()) for block in blocks)
    return [
        {
            "count": size,
            "within": precision.within,
            "relative": None if size <= precision.hidden else precision.within / size,
            "groups": sum(int(block.cells[block.sizes <= size].sum()) for block in blocks),
        }
        for size in SIZES
        if size <= max(largest, SIZES[0])
    ]


def collect_public(decision: Decision, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the public may see."""
    guarantee, use = None, None
    notes = [CHOSEN] if decision.chosen_from_data else [CHECKED] if decision.limits_use_data else []
    if decision.epsilon is not None:
        mechanism, chosen = decision.setting.with_epsilon(decision.epsilon), decision.chosen_from_data
        stated, highest = _find_guarantee(decision, mechanism)
        guarantee = {
            **facts.describe_guarantee(stated, mechanism),
            "tables": len(decision.table.sensitive),
            "covered": decision.unprotected == "none",
            "chosen": chosen,
            "worst_case": None if highest is None or chosen else highest.headline,
        }
        use = facts.describe_use(mechanism)
    return {
        **_collect_decision(decision, metadata, "Privacy statement for"),
        "epsilon_given": decision.asked is not None,
        "table": facts.describe_table_for_public(decision.table),
        "priors": [],
        "guarantee": guarantee,
        "use": use,
        "notes": [*notes, *decision.disclosures],
        "without_data": WITHOUT_DATA,
        "not_protected": decision.unprotected,
    }


def _collect_decision(decision: Decision, metadata: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return what both documents hold: the decision, the verdict, the noise and the limits.

    For the public the verdict has no figure from the data, but for the epsilon.
    """
    table, choice, setting, measured = decision.table, decision.choice, decision.setting, decision.measured
    described, scale = None, None
    if decision.epsilon is not None:
        mechanism = setting.with_epsilon(decision.epsilon)
        scale = facts.describe_scale(mechanism)
        guarantee, highest = _find_guarantee(decision, mechanism)
        highest = None if decision.chosen_from_data else highest
        described = facts.describe_label(metadata, [mechanism], guarantee, highest, decision.unprotected or "not known")
    noise = {**facts.pick(setting, "name pure delta"), "formula": facts.FORMULAS[setting.name], "scale": scale}
    asked = {
        "name": facts.name_table(table),
        "several": len(table.sensitive) > 1,
        "mechanism": setting.name,
        "delta": None if setting.pure else setting.delta,
        "epsilon": decision.epsilon,
        "why_none": decision.why_none,
        "limits": decision.wanted if decision.public else decision.compared,
        "breaks": verdict(decision.broken) if decision.kind == "broken" else "",
        "largest": decision.largest if decision.kind == "recommended" else "",
        "chosen": choice and choice.headline,
        "keeps": choice and choice.headline.partition(". ")[2],
        "why": choice and make_sentence(choice.why),
    }
    return {
        **metadata,
        "title": metadata["title"] or f"{title} {facts.name_table(table)}",
        **read_decision("table", decision.public, decision.kind, asked),
        "epsilon": decision.epsilon,
        "why_none": decision.why_none,
        "mechanism": noise,
        **facts.describe_unit(setting),
        "rounding": [facts.describe_threshold(setting.threshold)],
        "label": described,
        "releasable": setting.name in facts.RELEASABLE,
        "delta_from_data": decision.delta_from_data,
        "limits": decision.wanted,
        "measured": name_risk(decision.risk if choice is None else choice.definition),
        "several_records": table.unit.contributions > 1,
        "risk": {**facts.pick(decision.risk, "measure form weights"), "one_number": measured.measures[0].one_number},
        "tvd_limit": decision.trade_off and decision.trade_off.limit,
    }


def _find_guarantee(decision: Decision, mechanism: Mechanism) -> tuple[Any, Ceiling | None]:
    """The guarantee and the ceiling of the table, or of the tables of several sensitive attributes together."""
    tables = len(decision.table.sensitive)
    if tables == 1:
        return mechanism, ceiling(mechanism)
    from cellrisk.repeat.together.sets import find_cost, try_ceiling

    together = [mechanism] * tables, [tuple(range(tables))]
    return find_cost(*together), try_ceiling(*together, labels=2)[0]
