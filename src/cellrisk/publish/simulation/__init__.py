"""`simulate`: whole releases drawn as the mechanism or the perturbation draws them, which checks every closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, read_method
from cellrisk.noise.perturbations import Perturbation
from cellrisk.publish.simulation.attacks import EXPOSING, SCENARIOS, CellAttacks, means_behind
from cellrisk.publish.simulation.drawing import constrained_release, draw_releases, noisy_release, perturbed_release
from cellrisk.publish.simulation.simulation_result import Estimate, Exposed, Simulation
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attackers.realised import RealisedAttacks
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior, why_unknown
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.progress import Progress

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.publish.releasing.domain import Rule

__all__ = ["Simulation", "simulate"]

NOT_SIMULATED = "the prior looks at the table, or the counts or the noise are too large"


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
    perturbation: str | Perturbation | None = None,
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

    Noise on each count of the non-empty cells times the levels, rounded, zero below the threshold; or each count drawn
    from its row of a perturbation. Then the attackers read the release. Every number is an estimate, the mean over the
    releases, with its standard error. No formula of a risk is used, so this is a check on the local risk and on every
    attack, and the only answer if ``parents`` change the release.

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
    perturbation
        Instead of a mechanism, as in `assess_perturbation`.
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
    require_table(table, single="simulated attacks")
    number, first = require_whole_number("releases", releases, 2, MOST_RELEASES), require_whole_number("seed", seed, 0)
    attribute, attacker = table.attribute(sensitive), Attacker.of(certainty, belief, harmful, unions)
    attacker.check(table.attributes)
    beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
    method = read_method(mechanism, perturbation, beside)
    size, generator = None, np.random.default_rng(np.random.SeedSequence(first, spawn_key=(0,)))
    if parents is not None:
        if isinstance(method, Perturbation):
            raise InvalidInput(
                "perturbed counts are not made to add up", fix="leave the parents or the perturbation out"
            )
        declared = {"exclude": exclude, "may_be_missing": may_be_missing}
        cells, law, size = constrained_release(table, method, attribute.name, parents, parent_count, **declared)
        generator = np.random.default_rng(first)
    else:
        if parent_count is not None or exclude or may_be_missing:
            raise InvalidInput(
                "parent_count, exclude and may_be_missing are those of a release with parents", fix="name the parents"
            )
        cells = table.cells(attribute.name)
        if isinstance(method, Perturbation):
            method.check_reach(int(cells.count.max()))
        law = perturbed_release(method) if isinstance(method, Perturbation) else noisy_release(method)
    attacks, realised, unknown = CellAttacks(number), None, None
    if parents is None:
        labels, unknown = attribute.levels.labels, why_unknown(attribute)
        realised = RealisedAttacks(
            number,
            np.bincount(cells.level, cells.count, len(labels)).astype(np.int64),
            attacker.certainties[-1],
            None if unknown else means_behind(method.channel, attacker.believe(attribute)),
            attacker.find_harmful(labels),
            attacker.find_unions(labels),
        )
    for chunk in draw_releases(cells, law, number, generator, progress, size):
        attacks.read(chunk)
        if realised is not None:
            realised.read(chunk.releases, chunk.counts, chunk.released, chunk.lessened)
    if realised is not None and realised.means is None:
        unknown = unknown or NOT_SIMULATED
    total = {"uniform": cells.n_cells, "records": int(cells.sizes.sum())}
    return Simulation(
        table=table,
        mechanism=method if isinstance(method, Mechanism) else None,
        perturbation=method if isinstance(method, Perturbation) else None,
        sensitive=attribute.name,
        releases=number,
        seed=first,
        post_processed=realised is None,
        estimates=tuple(
            Estimate.of({"measure": "local", "attack": attack, "form": form, "weights": weights}, sums / total[weights])
            for (attack, form, weights), sums in attacks.sums.items()
        ),
        people=Exposed.of(np.rint(attacks.sums["homogeneity", "tight", "records"])),
        scenarios=tuple(
            Estimate.of(
                {"number": place, "original": held, "released": shown, "exposes": place in EXPOSING},
                row / cells.n_cells,
            )
            for (place, (held, shown)), row in zip(SCENARIOS.items(), attacks.scenarios, strict=True)
        ),
        attackers=() if realised is None else tuple(realised.to_rows(attribute.levels.labels)),
        unknown=unknown,
    )
