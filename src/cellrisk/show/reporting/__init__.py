"""`report`: a document that a disclosure review board can decide on in ten minutes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import MECHANISMS, USUAL_MECHANISM, Mechanism, describe_mechanism
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.show.reporting.document import Report, check_report_path, make_report, read_template, render
from cellrisk.system.checks import read_texts, require_kind
from cellrisk.system.choices import (
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    Weights,
)
from cellrisk.system.progress import Progress, share_of
from cellrisk.system.templates import to_plain

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.policies import Policies, Policy
    from cellrisk.noise.perturbations import Perturbation
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.repeat.together import TogetherAssessment
    from cellrisk.risk.certainty import CountPrior

PASSED_TO_SETS = ("ledger", "cohort", "inputs", "template", "policy", "progress")
REFUSED_FOR_SETS = (
    *("mechanism", "epsilon", "delta", "neighbours", "threshold", "max_tvd", "perturbation", "belief"),
    *("harmful", "unions", "measure", "form", "weights", "priors", "public", "disclosures"),
)
__all__ = ["Report", "check_report_path", "report"]


def report(
    table: FrequencyTable | TogetherAssessment,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    max_caused: float | None = None,
    max_certain: float | None = None,
    max_person: float | None = None,
    max_ceiling: float | None = None,
    max_posterior: str | None = None,
    max_epsilon: float | None = None,
    max_error: int | None = None,
    max_risk: float | None = None,
    max_people: float | None = None,
    margin: float | None = None,
    max_tvd: float | None = None,
    certainty: float = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
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
    releases: int = 20,
    seed: int = 0,
    audience: str | None = None,
    ledger: Ledger | None = None,
    cohort: str = "everyone",
    date: str | None = None,
    command: str | None = None,
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    template: str | os.PathLike[str] | None = None,
    policy: Policy | Policies | None = None,
    perturbation: str | Perturbation | None = None,
    progress: Progress | None = None,
) -> Report:
    """Return what a disclosure review board needs to decide whether this table may be published.

    With ``epsilon``, or a mechanism that is an object, that one is put to the board, and checked against the limits;
    without it, the limits choose it as `choose` does. Of a set of tables, the board approves all of them together.

    Parameters
    ----------
    table
        Made by `tabulate`; or a set of tables, as `assess_together` has assessed it, which brings its own noise.
    mechanism, epsilon, delta, neighbours, threshold
        A mechanism such as `Geometric`, or its name with its parameters.
    max_caused, max_certain, max_person, max_ceiling, max_posterior, max_epsilon, max_error
        The limits, as in `choose`, beside those of policies in force.
    max_risk, max_people, margin, max_tvd, policy
        Likewise, on the paper's measure and on the use of the table.
    certainty, belief, harmful, unions, measure, form, weights, priors
        Those of the informed attacker and of the risk, as in `assess`.
    public
        Make a statement for the public: no figure in it was computed from the raw data.
    title, organisation, source, preparation, audience, date, command
        Printed as they are: preparation a line each; the same inputs give the same bytes.
    disclosures
        For the public: sentences on what else was taken from the raw data.
    perturbation
        Instead of a mechanism and its epsilon, as in `assess_perturbation`; ``mechanism`` is then the name of the
        noise that it is compared with. There is no curve, no ledger and no statement for the public.
    top, releases, seed
        How many of the riskiest cells are shown, as in `explain`; the others as in `utility`.
    ledger, cohort
        Where releases about the same people are recorded: what was published and spent before, and after this one.
    inputs
        Files that were read, by what they are ("the data", "the policy"); their SHA-256 is printed.
    template
        A Jinja template of your own instead of the package's.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = report(table, max_ceiling=0.75, public=True)
    >>> found.verdict, found.html.splitlines()[0]
    ('recommended', '<!doctype html>')
    """
    given = dict(locals())
    from cellrisk.counts.table import FrequencyTable, require_table
    from cellrisk.decide.limits import METRICS, RiskDefinition, read_limits
    from cellrisk.decide.policies import Policies
    from cellrisk.decide.usefulness import TvdLimit
    from cellrisk.risk.attackers.attacker import Attacker
    from cellrisk.risk.sweep import read_settings
    from cellrisk.show.reporting.metadata import collect_metadata, describe_budget
    from cellrisk.show.reporting.table_report import Decision, collect_board, collect_public, decide

    limits = {name: given[name] for name in METRICS}
    printed = {name: given[name] for name in ("title", "organisation", "source", "audience")}
    for name, text in printed.items():
        require_kind(name, "" if text is None else text, str)
    printed |= {"preparation": preparation, "date": date, "command": command}
    require_kind("priors", priors, Priors)
    disclosures = read_texts("disclosures", disclosures, "sentences")
    if not isinstance(table, FrequencyTable):
        from cellrisk.repeat.together import TogetherAssessment
        from cellrisk.show.reporting.set_report import report_set

        if not isinstance(table, TogetherAssessment):
            require_table(table, single="reports")
        why = "its tables bring their own noise, it is judged by elimination, and it is for a board"
        for name in REFUSED_FOR_SETS:
            if given[name] != inspect.signature(report).parameters[name].default:
                what = f"a report on a set of tables takes no {name}: {why}"
                raise InvalidInput(what, fix="leave it out", code="not-taken")
        passed = {name: given[name] for name in PASSED_TO_SETS}
        return report_set(table, limits=read_limits(**limits, certainty=certainty), **passed, **printed)
    read_texts("preparation", preparation, "lines")
    policies, own_template = Policies.in_force(policy), read_template(template)
    risk = RiskDefinition(measure, form, weights, priors=priors)
    wanted: dict[str, Any] = {**limits, "certainty": certainty, "belief": belief, "risk": risk}
    if perturbation is not None:
        from cellrisk.noise.mechanisms import check_alone
        from cellrisk.noise.perturbations import read_perturbation
        from cellrisk.risk.perturbed import assess_perturbation
        from cellrisk.show.reporting.perturbed import REFUSED, collect_perturbed

        beside = {"epsilon": epsilon, "neighbours": neighbours, "threshold": threshold}
        check_alone(None if isinstance(mechanism, str) else mechanism, beside)
        for name, why in REFUSED.items():
            if given[name] is not None and given[name] is not False:
                what = f"a report on a perturbation takes no {name}: {why}"
                raise InvalidInput(what, fix="leave it out", code="not-taken")
        metadata = collect_metadata(printed, policies, inputs, None, False)
        made, joined = read_perturbation(perturbation), policies.join(read_limits(**wanted), risk)
        how: dict[str, Any] = {"compare": describe_mechanism(mechanism).name, "delta": delta}
        how |= {"certainty": certainty, "belief": belief, "priors": priors}
        broken = tuple(filter(None, (limit.breach(table.attributes, made) for limit in joined)))
        assessed = assess_perturbation(table, made, measures=measure, forms=form, weights=weights, **how)
        data = collect_perturbed(assessed, metadata, risk, joined, broken, top)
        named: Any = {"perturbation": made, "broken": broken, "policies": policies}
        return make_report("perturbation.html.j2", data, own_template, progress, assessed.headline, **named)
    noise = describe_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    if public and noise.delta is None and noise.name in MECHANISMS and not MECHANISMS[noise.name].pure:
        what = "a report for the public needs a delta: one that is set from the number of records would tell of it"
        raise InvalidInput(what, fix=f"give {argument('delta')}", code="public-delta")
    joined = policies.join(read_limits(**wanted, harmful=harmful, unions=unions), risk)
    if noise.epsilon is None and not joined:
        what, allowed = "a report needs a decision to ask for", "an epsilon, or a limit to choose one by, as in choose"
        fix = f"give {argument('epsilon', '1')} or {argument('max_caused', '0.01')}"
        raise InvalidInput(what, allowed=allowed, fix=fix, code="no-decision")
    chosen_delta = policies.choose_delta(noise.name, noise.delta, table.n_records)
    (setting,) = read_settings(noise.name, chosen_delta, noise.neighbours, noise.threshold, table)
    if noise.epsilon is not None:
        setting.with_epsilon(noise.epsilon)  # refuses what the mechanism does not take, before any work
    metadata = collect_metadata(printed, policies, inputs, ledger, public)
    simulated: dict[str, Any] = {"releases": releases, "seed": seed}
    asked = Decision(
        table=table,
        setting=setting,
        asked=noise.epsilon,
        risk=risk,
        limits=joined,
        attacker=Attacker.of(certainty, belief, harmful, unions),
        tvd_limit=None if max_tvd is None else TvdLimit(max_tvd, **simulated),
        policies=policies,
        public=public,
        delta_from_data=noise.delta is None and not setting.pure,
        simulated=simulated,
        disclosures=(*disclosures, *policies.disclosures),
    )
    decision = decide(asked, share_of(progress, 0.0, 0.8))
    if ledger is not None and not public and decision.epsilon is not None:
        from cellrisk.repeat.accounting.loss import Loss

        metadata |= describe_budget(ledger, cohort, Loss.of(setting.with_epsilon(decision.epsilon)))
    if public:
        name, data = "public.html.j2", collect_public(decision, metadata)
    else:
        name, data = "board.html.j2", collect_board(decision, metadata, top, share_of(progress, 0.8, 0.95))
    known: dict[str, Any] = {"setting": setting, "epsilon": decision.epsilon, "public": public, "policies": policies}
    known["record"] = render("record.yaml.j2", to_plain(data))
    return make_report(name, data, own_template, progress, **known)
