"""`simulate`: whole releases drawn as the mechanism draws them, which checks every closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.publish.scenarios import SCENARIOS, Scenario
from cellrisk.publish.simulation.attacks import CellAttacks, InformedAttacker, mean_and_error
from cellrisk.publish.simulation.drawing import draw_releases, noisy_release
from cellrisk.publish.simulation.simulation_result import Comparison, Estimate, Simulation
from cellrisk.risk.attackers.realised import RealisedAttacks
from cellrisk.risk.attackers.values import NamedValues
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior, NegativeBinomial, why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.publish.releasing.domain import Rule

__all__ = ["SCENARIOS", "Comparison", "Scenario", "Simulation", "simulate"]


def simulate(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    releases: int = 1000,
    seed: int = 0,
    sensitive: str | None = None,
    parents: Any = None,
    parent_count: str | None = None,
    exclude: Sequence[Rule] = (),
    may_be_missing: str | Sequence[str] = (),
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """What do attackers find in simulated releases of this table?

    Noise on each count of the non-empty cells times the levels, rounded, zero below the threshold; then the attackers
    of `cellrisk.publish.simulation.attacks` read the release. Every number is an estimate, the mean over the releases,
    with its standard error. No formula of a risk is used, so this is a check on the local risk, on every attack and on
    the figures to decide by, and the only answer if ``parents`` change the release.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    releases, seed
        How many, from 2 on, and where the draws begin. Results do not depend on memory or processors.
    sensitive
        Which sensitive attribute; may be left out if the table has one.
    parents, parent_count, exclude, may_be_missing
        As in `release`: simulates counts made consistent with published totals. The totals are taken as they are
        published, so only the noise of this release varies.
    certainty, belief, harmful, unions
        Those of the informed attacker, as in `assess`. Without parents, the four attacks of `assess` read the releases
        (``attackers``, at the largest certainty), and each record is left out in turn under the same noise.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = simulate(table, cr.Laplace(epsilon=1.0), releases=200)
    >>> estimate = found.value(form="exact")
    >>> round(estimate.mean, 4), round(estimate.standard_error, 4)  # assess: 0.034845
    (0.0324, 0.0016)

    Published totals can raise the risk and lower it. They carry information on the noise: of two labels under their own
    total, half the difference of the noises is left, so the risk moves towards that without noise, up if a cell is
    homogeneous and down if it is not. And no cell shows nothing any more, which raises the risk at small epsilon. A
    cell (3, 0) under its own total, and by itself:

    >>> import pandas as pd
    >>> cell = pd.DataFrame({"x": "cell", "y": ["a", "b"], "n": [3, 0]})
    >>> table = cr.tabulate(cell, "x", "y", levels={"y": ["a", "b"]}, count="n")
    >>> total = pd.DataFrame({"x": ["cell"], "count": [3]})
    >>> found = simulate(table, epsilon=0.1, parents=total, releases=4000).value()
    >>> round(found.mean, 2), round(found.standard_error, 3), round(cr.assess(table, epsilon=0.1).value(), 2)
    (0.53, 0.008, 0.32)
    """
    require_table(table)
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    number, first = require_whole_number("releases", releases, 2, MOST_RELEASES), require_whole_number("seed", seed, 0)
    attribute, informed, realised = table.attribute(sensitive), None, None
    attacker = Attacker.of(certainty, belief, NamedValues.read(harmful, unions))
    attacker.values.check(table.attributes)
    if parents is not None:
        from cellrisk.publish.simulation.constrained import constrained_release

        declared = {"exclude": exclude, "may_be_missing": may_be_missing}
        cells, law, size = constrained_release(table, mechanism, attribute.name, parents, parent_count, **declared)
        drawn = draw_releases(cells, law, number, np.random.default_rng(first), progress, size)
    else:
        if parent_count is not None or exclude or may_be_missing:
            raise InvalidInput(
                "parent_count, exclude and may_be_missing are those of a release with parents", fix="name the parents"
            )
        cells, generator = (
            table.cells(attribute.name),
            np.random.default_rng(np.random.SeedSequence(first, spawn_key=(0,))),
        )
        drawn = draw_releases(cells, noisy_release(mechanism), number, generator, progress)
        unknown = why_unknown(attribute)
        prior = None if unknown else attacker.believe(attribute)
        informed = InformedAttacker(
            mechanism.channel, number, attacker.certainties, prior, attribute.vectors, unknown=unknown
        )
        labels = attribute.levels.labels
        realised = RealisedAttacks(
            number,
            np.bincount(cells.level, cells.count, len(labels)).astype(np.int64),
            attacker.certainties[-1],
            informed.posterior_means if informed.unknown is None and isinstance(prior, NegativeBinomial) else None,
            attacker.values.find_harmful(labels),
            attacker.values.find_unions(labels),
        )
    attacks = CellAttacks(number)
    for chunk in drawn:
        attacks.read(chunk)
        if informed is not None and realised is not None:
            informed.read(chunk)
            realised.read(chunk.releases, chunk.counts, chunk.released, chunk.lessened)
    total = {"uniform": cells.n_cells, "records": int(cells.sizes.sum())}
    estimates = [
        Estimate.of({"measure": "local", "attack": attack, "form": form, "weights": weights}, values / total[weights])
        for (attack, form, weights), values in attacks.sums.items()
    ]
    figures = []
    if informed is not None:
        figures.append(Estimate.of({"figure": "caused", "certainty": None}, attacks.caused))
        for sure, right, named in zip(informed.certainties, informed.right, informed.named, strict=True):
            if informed.unknown is None:
                figures.append(Estimate.of({"figure": "right", "certainty": sure}, right))
                figures.append(Estimate.of({"figure": "named", "certainty": sure}, named))
    return Simulation(
        table=table,
        mechanism=mechanism,
        sensitive=attribute.name,
        releases=number,
        seed=first,
        post_processed=informed is None,
        estimates=tuple(estimates),
        exposed=attacks.exposed,
        scenarios=tuple(
            Scenario(scenario, *mean_and_error(row / cells.n_cells))
            for scenario, row in enumerate(attacks.scenarios, start=1)
        ),
        figures=tuple(figures),
        attackers=() if realised is None else tuple(realised.to_rows(attribute.levels.labels)),
        unknown=None if informed is None else informed.unknown,
    )
