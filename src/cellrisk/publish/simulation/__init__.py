"""`simulate`: whole releases drawn as the mechanism draws them, a second opinion on every closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.publish.scenarios import SCENARIOS, Scenario
from cellrisk.publish.simulation.attacks import FigureAttackers, FigureEstimate
from cellrisk.publish.simulation.comparison import Comparison, SimulatedDifference
from cellrisk.publish.simulation.releases import CountLaw, NoisyCounts, Post, Releases
from cellrisk.publish.simulation.simulation_result import Estimate, Exposed, Simulation, summarise_scenarios
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief, why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import MEASURES
from cellrisk.risk.priors import USUAL_PRIORS, Priors, takes_priors
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.progress import Progress, StepCounter
from cellrisk.system.words import MeasureName, MechanismName, Neighbours, choose_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

__all__ = [
    "SCENARIOS",
    "Comparison",
    "Estimate",
    "Exposed",
    "FigureEstimate",
    "Scenario",
    "SimulatedDifference",
    "Simulation",
    "simulate",
]


@takes_priors
def simulate(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    measures: MeasureName | Sequence[MeasureName] = ("local",),
    releases: int = 1000,
    seed: int = 0,
    sensitive: str | None = None,
    post: Post | None = None,
    priors: Priors = USUAL_PRIORS,
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF,
    progress: Progress | None = None,
) -> Simulation:
    """What do attackers find in simulated releases of this table?

    Noise on each count of the non-empty cells times the levels, rounded, zero below the threshold; then the attackers
    of `cellrisk.publish.simulation.attacks` read the release. Every number is an estimate, the mean over the releases,
    with its standard error. No formula of a risk is used, so this is a check on all of them, and the only answer where
    ``post`` changes the release.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    measures
        "local" keeps the table's counts; it is always among them, for people and scenarios come from it. The others
        ("expected", "shrinkage", "marginal", "marginal_shrinkage") draw the counts anew for each release, as they are
        defined, and are told by the homogeneity attack alone.
    releases, seed
        How many, from 2 on, and where the draws begin: each measure has its own stream, so its results do not depend on
        which others are chosen. Chunks have a fixed size, so results do not depend on memory or processors.
    sensitive
        Which sensitive attribute; may be left out where the table has one.
    post
        What is done to a release before it is published, such as a consistency step. It is called with an array of
        shape (some releases, cells, levels), whole numbers as floats, cells in the order of ``table.cells(sensitive)``
        and levels in theirs, and returns non-negative numbers in the same shape.
    priors
        As in `assess`.
    certainty, belief
        Those of the attacker who does the mathematics, as in `assess`. Where nothing is done to the releases, two more
        attackers read them: one leaves out each record in turn under the same noise (caused), and one names whatever
        he is sure of (right, named).
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = simulate(table, cr.Laplace(epsilon=1.0), releases=200)
    >>> estimate = found.value(form="exact")
    >>> round(estimate.mean, 4), round(estimate.standard_error, 4)  # assess: 0.034845
    (0.0324, 0.0016)
    """
    require_table(table)
    names = choose_words("measure", measures, tuple(MEASURES))
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    require_whole_number("releases", releases, 2, MOST_RELEASES)
    require_whole_number("seed", seed, 0)
    if post is not None and not callable(post):
        raise InvalidInput("post must be a function", got=type(post).__name__, allowed="from releases to releases")
    attribute = table.attribute(sensitive)
    names = tuple(dict.fromkeys(("local", *names)))
    fitted = priors.fit(attribute, names)
    cells = table.cells(attribute.name)
    size = None if post is None else cells.n_cells * len(cells.levels)  # post looks at all cells
    drawn = Releases(cells, NoisyCounts(mechanism, post, size), int(releases))
    attackers = _find_attackers(attribute, mechanism, int(releases), Attacker.of(certainty, belief))
    report = StepCounter(progress, drawn.steps * len(names))
    outcomes = {
        name: drawn.attack(
            CountLaw(name, fitted.prior, fitted.sizes),
            _stream(int(seed), name),
            report,
            attackers if name == "local" and post is None else None,
        )
        for name in names
    }
    estimates = [
        Estimate.of(name, attack, form, None if MEASURES[name].one_number else weights, values)
        for name in names
        for (attack, form, weights), values in outcomes[name].shares.items()
        if weights == "uniform" or not MEASURES[name].one_number
    ]
    return Simulation(
        table=table,
        mechanism=mechanism,
        sensitive=attribute.name,
        releases=int(releases),
        seed=int(seed),
        post_processed=post is not None,
        estimates=tuple(estimates),
        exposed=outcomes["local"].exposed,
        scenarios=summarise_scenarios(outcomes["local"].scenarios, attribute.profiles.n_cells),
        fitted=fitted,
        figures=() if post is not None else attackers.estimates(),
        unknown=None if post is not None else attackers.unknown,
        belief=attackers.belief,
    )


def _find_attackers(attribute: Attribute, mechanism: Mechanism, releases: int, attacker: Attacker) -> FigureAttackers:
    unknown = why_unknown(attribute)
    belief = None if unknown else attacker.believe(attribute)
    return FigureAttackers(mechanism, releases, attacker.certainties, belief, attribute.vectors, unknown)


def _stream(seed: int, measure: str) -> np.random.Generator:
    """A stream of random numbers for one measure, independent of the streams of the others."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(tuple(MEASURES).index(measure),)))
