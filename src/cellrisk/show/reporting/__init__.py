"""`report`: a document that a disclosure review board can decide on in ten minutes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, USUAL_MECHANISM, Described, Mechanism, describe_mechanism
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.show.reporting.document import Letterhead, Report, check_record_path, check_report_path
from cellrisk.system.checks import read_texts, require_kind
from cellrisk.system.progress import Progress, share_of
from cellrisk.system.words import (
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    NoisyCells,
    Weights,
    list_words,
    require_word,
)

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.policies import Policies
    from cellrisk.decide.policy import Policy
    from cellrisk.noise.perturbations import Perturbation
    from cellrisk.publish.noisy_risk import PublishedRisk
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.repeat.together import TogetherAssessment
    from cellrisk.repeat.together.splitting import Split
    from cellrisk.risk.certainty import Belief

__all__ = ["Report", "check_public_delta", "check_record_path", "check_report_path", "report"]


@takes_priors
def report(
    table: FrequencyTable | TogetherAssessment,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    max_caused: float | None = None,
    max_certain: float | None = None,
    max_ceiling: float | None = None,
    max_epsilon: float | None = None,
    max_risk: float | None = None,
    max_people: float | None = None,
    margin: float | None = None,
    max_tvd: float | None = None,
    certainty: float = USUAL_CERTAINTY,
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF,
    measure: MeasureName = "local",
    form: Form = "tight",
    weights: Weights = "records",
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    priors: Priors = USUAL_PRIORS,
    public: bool = False,
    title: str | None = None,
    organisation: str | None = None,
    source: str | None = None,
    preparation: Sequence[str] = (),
    disclosures: Sequence[str] = (),
    top: int = 15,
    cells: NoisyCells = "domain",
    releases: int = 20,
    seed: int = 0,
    audience: str | None = None,
    ledger: Ledger | None = None,
    cohort: str = "everyone",
    date: str | None = None,
    command: str | None = None,
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    template: str | os.PathLike[str] | None = None,
    logo: str | os.PathLike[str] | None = None,
    policy: Policy | Policies | None = None,
    published: PublishedRisk | None = None,
    perturbation: str | Perturbation | None = None,
    split: Split | None = None,
    progress: Progress | None = None,
) -> Report:
    """What does a disclosure review board need to see to decide whether this table may be published?

    With ``epsilon``, or a mechanism that is an object and brings its own, that one is put to the board, and checked
    where limits are given too; without it, the limits choose it as `choose` does.

    Of a set of tables that are to be released together, the board approves all of them: what each costs, what the set
    gives away beside each table alone, and whether the set keeps the limits.

    Parameters
    ----------
    table
        Made by `tabulate`; or a set of tables, as `assess_together` has assessed it, which brings its own noise.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    epsilon
        The loss that is put to the board; without it, the limits choose it.
    delta, neighbours, threshold
        Those of a mechanism that is named.
    max_caused, max_certain, max_ceiling, max_epsilon, max_risk, max_people, margin, max_tvd
        The limits, as in `choose`; where none of them binds, the report says so and recommends nothing.
    certainty, belief
        Of the attacker whom ``max_certain`` is about, as in `assess`.
    measure, form, weights
        The words of the risk, as in `assess`.
    priors
        How the priors of the measures that need any are found.
    public
        Leaves out every figure that was computed from the raw data, and takes no delta from the number of records.
    title, organisation
        What the document is called, and who publishes the table.
    source, preparation
        The name of the data, and what was done to them beforehand, a line each; printed as they are.
    disclosures
        Sentences on what else was taken from the raw data, for the public.
    published
        The answer of `publish_risk` for the same release: the one figure that a report for the public may show.
    perturbation
        In the place of a mechanism and its epsilon, as in `assess_perturbation`; ``mechanism`` is then the name of the
        noise that it is compared with at equal risk. There is no curve, no ledger and no statement for the public.
    split
        The answer of `split_budget` for the same set: other ways to share what it costs.
    top
        How many of the riskiest cells are shown, as in `explain`.
    cells, releases, seed
        As in `utility`, which tells the usefulness at the epsilon that is put to the board.
    audience
        Who gets the table, in free words.
    ledger, cohort
        Where releases about the same people are recorded: the report says what was published before, and what is spent
        before and after this one.
    date, command
        When and how the report was made, printed as they are; the same inputs then give the same bytes.
    inputs
        Files that were read, by what they are ("the data", "the policy"); their SHA-256 is printed.
    template, logo
        A Jinja template of your own in the place of the package's ``page.html.j2``, and a PNG or JPEG for the head.
    policy
        One to obey beside those that are in force; the report says which were obeyed.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = report(table, max_ceiling=0.75, public=True)
    >>> found.verdict, found.html.splitlines()[0]
    ('recommended', '<!doctype html>')
    """
    from cellrisk.counts.table import FrequencyTable, require_table
    from cellrisk.decide.limits import RiskDefinition, read_limits
    from cellrisk.decide.policies import Policies
    from cellrisk.decide.tradeoff import TvdLimit
    from cellrisk.risk.figures import Attacker
    from cellrisk.risk.sweep import read_settings
    from cellrisk.show.reporting.contents import board_page, find
    from cellrisk.show.reporting.decision import ReportRequest, decide
    from cellrisk.show.reporting.particulars import describe_budget, list_digests
    from cellrisk.show.reporting.public import public_page
    from cellrisk.show.reporting.records import list_fields
    from cellrisk.show.reporting.registry import write_record

    limits: dict[str, Any] = {"max_caused": max_caused, "max_certain": max_certain, "max_ceiling": max_ceiling}
    limits |= {"max_epsilon": max_epsilon, "max_risk": max_risk, "max_people": max_people, "margin": margin}
    told: dict[str, Any] = {"title": title, "organisation": organisation, "source": source, "audience": audience}
    told |= {"preparation": preparation, "date": date, "command": command}
    for name, text in (("title", title), ("organisation", organisation), ("source", source), ("audience", audience)):
        if text is not None:
            require_kind(name, text, str)
    disclosures = read_texts("disclosures", disclosures, "sentences")
    require_word("cells", cells, list_words(NoisyCells))
    if not isinstance(table, FrequencyTable):
        from cellrisk.repeat.together.together_result import TogetherAssessment
        from cellrisk.show.reporting.set_report import report_set
        from cellrisk.show.reporting.set_request import check_set

        if not isinstance(table, TogetherAssessment):
            require_table(table)
        given = {
            "mechanism": mechanism != USUAL_MECHANISM,
            "epsilon": epsilon is not None,
            "delta": delta is not None,
            "neighbours": neighbours is not None,
            "threshold": threshold is not None,
            "measure": measure != "local",
            "form": form != "tight",
            "weights": weights != "records",
            "priors": priors != USUAL_PRIORS,
            "belief": belief != USUAL_BELIEF,
            "max_tvd": max_tvd is not None,
            "perturbation": perturbation is not None,
            "risk_epsilon": published is not None,
        }
        check_set(given)
        return report_set(
            [each.table for each in table.tables],
            table.sensitive,
            table,
            limits=read_limits(**limits, certainty=certainty),
            split=split,
            public=public,
            disclosures=disclosures,
            ledger=ledger,
            cohort=cohort,
            inputs=inputs,
            template=template,
            logo=logo,
            policy=policy,
            progress=progress,
            **told,
        )
    if split is not None:
        raise InvalidInput("a split is of a set of tables", fix="leave split out, or report the set")
    read_texts("preparation", preparation, "lines")
    policies, letterhead = Policies.in_force(policy), Letterhead.read(template, logo)
    risk = RiskDefinition(measure, form, weights, priors=priors)
    if perturbation is not None:
        from cellrisk.noise.methods import check_alone
        from cellrisk.show.reporting.perturbed import check_perturbed, report_perturbation

        beside = {"epsilon": epsilon, "neighbours": neighbours, "threshold": threshold}
        check_alone(None if isinstance(mechanism, str) else mechanism, beside)
        refused: dict[str, Any] = {"public": public, "risk_epsilon": published, "ledger": ledger}
        refused |= {"max_epsilon": max_epsilon, "margin": margin, "max_tvd": max_tvd}
        check_perturbed({name: given is not None and given is not False for name, given in refused.items()})
        found = report_perturbation(
            table,
            perturbation,
            letterhead,
            risk,
            policies,
            compare=str(mechanism),
            delta=delta,
            limits=limits,
            attacker={"certainty": certainty, "belief": belief},
            top=top,
            digests=tuple(list_digests(inputs or {}, policies, None)),
            **told,
        )
        if progress is not None:
            progress(1.0)
        return found
    said = describe_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    if public:
        check_public_delta(said.name, said.delta)
    if published is not None:
        check_published(published, public, said)
    joined = policies.join(read_limits(**limits, certainty=certainty, belief=belief, risk=risk), risk)
    if said.epsilon is None and not joined:
        raise InvalidInput(
            "a report needs a decision to ask for",
            allowed="an epsilon, or a limit to choose one by, as in choose",
            fix="give --epsilon 1 or --max-caused 0.01",
        )
    chosen_delta = policies.choose_delta(said.name, said.delta, table.n_records)
    (setting,) = read_settings(said.name, chosen_delta, said.neighbours, said.threshold, table.n_records)
    if said.epsilon is not None:
        setting.with_epsilon(said.epsilon)  # refuses what the mechanism does not take, before any work
    request = ReportRequest(
        table=table,
        setting=setting,
        epsilon=said.epsilon,
        risk=risk,
        limits=joined,
        attacker=Attacker.of(certainty, belief),
        tvd_limit=None if max_tvd is None else TvdLimit(max_tvd, releases=releases, seed=seed, cells=cells),
        cells=cells,
        policies=policies,
        public=public,
        delta_from_data=said.delta is None and not setting.pure,
        disclosures=(*disclosures, *policies.disclosures),
        published=published,
        releases=releases,
        seed=seed,
        **told,
        digests=() if public else tuple(list_digests(inputs or {}, policies, ledger)),
    )
    decision = decide(request, share_of(progress, 0.0, 0.8))
    if ledger is not None and not public and decision.epsilon is not None:
        from cellrisk.repeat.accounting.loss import Loss

        spent = describe_budget(ledger, cohort, Loss.of(setting.with_epsilon(decision.epsilon)))
        decision = replace(decision, request=replace(request, **spent))
    page = public_page(decision) if public else board_page(find(decision, top, share_of(progress, 0.8, 0.95)))
    document = letterhead.make_report(
        page,
        record=write_record(list_fields(decision), "release"),
        setting=setting,
        epsilon=decision.epsilon,
        public=public,
        policies=policies,
    )
    if progress is not None:
        progress(1.0)
    return document


def check_published(published: PublishedRisk, public: bool, said: Described) -> None:
    """Refuses a published figure where it does not belong: in a report for the board, or beside another release."""
    from cellrisk.publish.noisy_risk import PublishedRisk

    require_kind("published", published, PublishedRisk, "make one with publish_risk")
    if not public:
        raise InvalidInput("a published figure goes with a report for the public", fix="add public=True (--public)")
    made = published.mechanism
    delta = None if made.pure else made.delta
    if (made.name, made.epsilon, delta, made.neighbours, made.threshold) != tuple(said):
        raise InvalidInput(
            "the published figure speaks of another release than the report",
            got=f"{made.name} at epsilon {made.epsilon:g}",
            fix="give both the same mechanism and epsilon",
        )


def check_public_delta(mechanism: str, delta: object) -> None:
    """Refuses a report for the public whose delta would be set from the number of records."""
    if delta is None and mechanism in MECHANISMS and not MECHANISMS[mechanism].pure:
        raise InvalidInput(
            "a report for the public needs a delta: one that is set from the number of records would tell of it",
            fix="give delta= (--delta)",
        )
