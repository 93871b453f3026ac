"""`average`: the same table released several times, and an attacker who averages the noise away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.repeat.accounting.composition import compose, find_probabilistic_epsilon
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.averaging.averaging_result import Averaged, Averaging, Rule
from cellrisk.repeat.averaging.mean_noise import MeanNoise
from cellrisk.risk.attacks import choose_risks
from cellrisk.risk.measures import Local, average_risks
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors, takes_priors
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import require_within
from cellrisk.system.choices import CompositionMethod, Form, MeasureName, MechanismName, Neighbours, Weights

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["Averaged", "Averaging", "MeanNoise", "Rule", "average"]


@takes_priors
def average(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    releases: int,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    measures: MeasureName | Sequence[MeasureName] | None = None,
    forms: Form | Sequence[Form] | None = None,
    weights: Weights | Sequence[Weights] | None = None,
    priors: Priors = USUAL_PRIORS,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
) -> Averaging:
    """What does averaging reveal if the same table is released ``releases`` = T times with independent noise?

    The attacker takes the mean of the T noisy counts of each cell and level, and attacks it like one release: the
    homogeneity risk with q(m) = P(m + mean < threshold), exact. Beside it stands the paper's rule (section 4.3): the
    risk of one release by the same mechanism at the cumulative loss, by basic composition and by ``method`` (of
    `compose`) at a ``total_delta``. If the mechanism cannot be set at that loss, the answer says so. ``caused`` has the
    people whom the same attack reveals only because of their own record, exact; ``find_ceiling`` composes the losses.

    Gaussian noise, composed exactly: the rule has noise of scale sigma/sqrt(T), which is what averaging leaves, so the
    two agree. Laplace noise at T epsilon has a standard deviation of sqrt(2) b/T, where averaging leaves sqrt(2/T) b,
    and geometric noise is much the same: the rule takes less noise. So it is larger if risk rises with epsilon, as in
    homogeneous cells, and smaller if risk falls with epsilon, as it mostly does in cells with several labels: the rule
    does not bound the averaging attacker. Ten releases at epsilon 0.1 of a cell (3, 0) and of a cell (3, 2):

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    releases
        How many, T.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    measures, forms, weights
        One word or several; default all.
    priors
        How the priors of the measures that need any are found.
    method, total_delta
        How the paper's rule adds up the losses, as in `compose`, and at which delta; default the sum of theirs.

    >>> import cellrisk as cr, pandas as pd
    >>> levels = {"y": ["a", "b"]}
    >>> for counts in ([3, 0], [3, 2]):
    ...     cell = pd.DataFrame({"x": "cell", "y": ["a", "b"], "n": counts})
    ...     table = cr.tabulate(cell, "x", "y", levels=levels, count="n")
    ...     row = average(table, cr.Laplace(epsilon=0.1), releases=10, measures="local").row(form="exact")
    ...     print(counts, round(row.averaging, 4), round(row.rules[0], 4), row.larger())
    [3, 0] 0.3925 0.6681 rule
    [3, 2] 0.4405 0.1434 averaging
    """
    require_table(table)
    if isinstance(mechanism, Mechanism) and delta is not None:
        raise InvalidInput(
            "belongs to a mechanism that is given by name",
            option="delta",
            fix=f"{argument('total_delta')} is the delta of all releases together",
        )
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    asked = choose_risks("homogeneity", measures, forms, weights)
    mean = MeanNoise.of(mechanism.noise, releases)
    rules = _find_rules(mechanism, mean.releases, method, total_delta)
    set_up = [rule.mechanism.noise for rule in rules if rule.mechanism is not None]
    channel = AdditiveChannel((mechanism.noise, mean, *set_up), mechanism.threshold)
    pivots = channel.pivotal
    rows: list[Averaged] = []
    caused: list[Averaged] = []
    fitted: dict[str, Fitted] = {}
    for name in table.sensitive:
        attribute = table.attribute(name)
        fitted[name] = priors.fit(attribute, asked.measures)
        chosen = asked.make(fitted[name].measure)
        for measure, form, weight, values in average_risks(
            attribute.profiles, chosen, channel, asked.forms, asked.weights
        ):
            rows.append(Averaged(name, measure, form, weight, *_assign(values, rules)))
        shares = Local().average(attribute.profiles, pivots, ("tight",))["tight", "records"]
        caused.append(Averaged(name, "caused", None, "records", *_assign(shares, rules)))
    return Averaging(table, mechanism, mean.releases, rules, tuple(rows), fitted, tuple(caused))


def _assign(values: Floats, rules: Sequence[Rule]) -> tuple[float, float, tuple[float | None, ...]]:
    """Values under the noises that were asked about: of one release, of the mean, and of each rule that has noise."""
    one, averaging, *others = (float(value) for value in values)
    by_rule = iter(others)
    return one, averaging, tuple(None if rule.mechanism is None else next(by_rule) for rule in rules)


def _find_rules(mechanism: Mechanism, number: int, method: CompositionMethod, delta: float | None) -> tuple[Rule, ...]:
    """The rule by basic composition, and by another method where that says something else."""
    if delta is not None:
        require_within("total_delta", delta, least=0, below=1)
    basic = _find_rule(mechanism, number, "basic", None)
    other = basic if method == "basic" and delta is None else _find_rule(mechanism, number, method, delta)
    same = (basic.method, basic.epsilon, basic.delta) == (other.method, other.epsilon, other.delta)
    return (basic,) if same else (basic, other)


def _find_rule(mechanism: Mechanism, number: int, method: CompositionMethod, delta: float | None) -> Rule:
    try:
        composition = compose([Loss.of(mechanism)] * number, method=method, delta=delta)
    except InvalidInput as refusal:
        return Rule(method, None, delta or 0.0, None, str(refusal))
    named, epsilon, total = composition.chosen.method, composition.epsilon, composition.delta
    if mechanism.name == "gaussian-pdp" and named != "basic":
        epsilon = find_probabilistic_epsilon(composition.events, total) or epsilon
    try:
        cumulative = replace(mechanism, epsilon=epsilon, delta=0.0 if mechanism.pure else total)
    except InvalidInput as refusal:
        return Rule(named, epsilon, total, None, str(refusal))
    return Rule(named, epsilon, total, cumulative)
