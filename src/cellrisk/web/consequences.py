"""What has to be known before a release is made, in sentences: the limits it breaks, what its guarantee leaves out, and
what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from cellrisk.decide.figure_limits import FigureLimit
from cellrisk.decide.policies import Policies, RiskDefinition
from cellrisk.decide.requirement import Condition, Requirement
from cellrisk.errors import CellriskError
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.sweep import Setting
from cellrisk.system.text import percent
from cellrisk.web import answer_models
from cellrisk.web.answers import read_mechanism
from cellrisk.web.boxes import name_boxes
from cellrisk.web.recipes import narrow, say_delta
from cellrisk.web.request_models import DownloadRequest
from cellrisk.web.settings import Settings
from cellrisk.web.workspace import LoadedTable

NOBODY_ADDS_UP = "No ledger is open: nobody will add this up for you."


def tell_consequences(loaded: LoadedTable, asked: DownloadRequest, settings: Settings) -> answer_models.Consequences:
    """What the page says before it asks for the last yes."""
    mechanism = read_mechanism(loaded, asked)
    policies = Policies.in_force(settings.policy)
    breaches = policies.breaches(loaded.table, mechanism, loaded.table.attribute(asked.sensitive).name)
    above = [*_break_own_limits(loaded, asked, mechanism), *breaches]
    uncovered = list(_leave_uncovered(asked))
    uncovered += say_delta(asked.mechanism, asked.delta, loaded.table.n_records) + policies.disclosures
    budget, refused = _tell_budget(asked, mechanism, settings)
    return answer_models.Consequences(
        above=[_as_sentence(each) for each in dict.fromkeys(above)],
        uncovered=uncovered,
        budget=[_as_sentence(each) for each in budget],
        forbidden=bool(breaches) or refused,
    )


def _break_own_limits(loaded: LoadedTable, asked: DownloadRequest, mechanism: Mechanism) -> Iterator[str]:
    """The limits of the page that this epsilon does not keep."""
    table = narrow(loaded.table, asked.sensitive)
    limits = FigureLimit.read(
        max_caused=asked.max_caused,
        max_certain=asked.max_certain,
        max_ceiling=asked.max_ceiling,
        max_epsilon=asked.max_epsilon,
    )
    for limit in limits:
        figure = limit.find(table.attributes, mechanism)
        if figure > limit.most:
            yield f"the limit is {limit.describe()}, and {limit.say(figure)}"
    setting = Setting(mechanism.name, mechanism.delta, mechanism.neighbours, mechanism.threshold)
    for name in ("max_risk", "max_people", "margin"):
        most = getattr(asked, name)
        if most is None:
            continue
        required = Requirement(**{name: most})
        measured = RiskDefinition(asked.measure, asked.form, asked.weights).of(table)
        excess = float(Condition(required, measured).excesses(setting)((mechanism.noise,)).max())
        if excess > 0:
            is_people = name == "max_people"
            found = f"{most + excess * table.n_records:,.1f}" if is_people else percent(most + excess)
            yield f"the limit is {required.describe()}, and it is {found}"


def _leave_uncovered(asked: DownloadRequest) -> Iterator[str]:
    if asked.observed_levels:
        yield "Labels are those that occur in the data: the guarantee does not cover which values exist."
    if asked.observed_cells_only:
        yield "Only cells that are not empty are released: the guarantee does not cover which cells exist."


def _tell_budget(asked: DownloadRequest, mechanism: Mechanism, settings: Settings) -> tuple[list[str], bool]:
    """What the people have spent before and after, and whether a limit of the ledger refuses this release."""
    if settings.ledger is None:
        return [NOBODY_ADDS_UP], False
    from cellrisk.repeat.accounting import Loss
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.show.reporting.budget import describe_budget

    cohort = asked.cohort or ""
    with Ledger(settings.ledger) as ledger:
        try:
            ledger.check(mechanism, cohort, new_cohort=asked.new_cohort, part_of=asked.part_of)
        except CellriskError as refusal:
            return [f"The ledger refuses this: {refusal}"], True
        if all(each.name != cohort for each in ledger.cohorts()):
            return [f"Cohort {cohort}: nothing spent before, {mechanism_cost(mechanism)} after"], False
        told = describe_budget(ledger, cohort, Loss.of(mechanism))
        return [f"Cohort {cohort}: {told['earlier']}", told["budget"][0][1]], False


def mechanism_cost(mechanism: Mechanism) -> str:
    """What a release costs, in words."""
    return f"epsilon {mechanism.epsilon:g}" + ("" if mechanism.pure else f", delta {mechanism.delta:g}")


def _as_sentence(words: str) -> str:
    return name_boxes(words[:1].upper() + words[1:].rstrip(".") + ".")
