"""`reproduce`: every figure and number of the paper, from data, beside what the paper prints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import pairwise

from cellrisk.errors import InvalidInput
from cellrisk.paper.reproduction import Reproduction
from cellrisk.system.checks import MOST_RELEASES, require_whole_number
from cellrisk.system.progress import Progress, share_of

__all__ = ["Reproduction", "reproduce"]

NOT_GIVEN = "Bankruptcy and its subset are missing: {why}. Give the data with --bankruptcy FILE; {where}."
STAGES = (40, 50, 2, 4, 2, 2)
"""How much work each stage is: Adult in its two readings, Bankruptcy, its subset, and the two simulations."""


def reproduce(
    bankruptcy: str | os.PathLike[str] | None = None,
    *,
    fetch: bool = False,
    points: int = 501,
    releases: int = 100,
    seed: int = 0,
    announce: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Which figures and numbers of the paper come out again, and which do not?

    Curves are exact values of the closed forms; distances are estimates from simulated releases.

    Parameters
    ----------
    bankruptcy
        A file with UCI's Qualitative Bankruptcy, in any form; without it, and without ``fetch``, Adult alone is
        reproduced.
    fetch
        Take it from UCI, and go on without it where that fails. Either way the records are checked by their digest.
    points
        Epsilons on each curve, from 10^-3 to 10^2.
    releases, seed
        Of the simulations behind the box plots.
    announce
        Called with a sentence before the network is touched.
    progress
        Called now and then with the share that is done.

    >>> found = reproduce(points=2, releases=1)
    >>> len(found.sheets), found.experiments[0].table.n_cells, len(found.missing)
    (7, 5974, 1)
    """
    require_whole_number("points", points, 2, 100_000)
    require_whole_number("releases", releases, 1, MOST_RELEASES)
    require_whole_number("seed", seed, 0)
    from cellrisk.paper.bankruptcy import URL, WHERE, Records, fetch_bankruptcy, read_bankruptcy
    from cellrisk.paper.bundles import compute
    from cellrisk.paper.claims import Evidence, state
    from cellrisk.paper.distances import simulate_boxes
    from cellrisk.paper.experiments import SUBSET, adult_experiments, bankruptcy_experiments
    from cellrisk.paper.panels import CELLS
    from cellrisk.paper.sheets import make_sheets

    begun = time.monotonic()
    records: Records | None = None
    why = "they were not given, and the network was not asked"
    if bankruptcy is not None:
        records = read_bankruptcy(bankruptcy)
    elif fetch:
        if announce is not None:
            announce(f"Fetching Qualitative Bankruptcy from UCI ({URL}).")
        try:
            records = fetch_bankruptcy()
        except InvalidInput as refusal:
            why = str(refusal)
    made = (*adult_experiments(), *(() if records is None else bankruptcy_experiments(records)))
    experiments = {each.label: each for each in made}
    stages = STAGES if SUBSET in experiments else STAGES[: len(experiments)]
    starts = [sum(stages[:place]) / sum(stages) for place in range(len(stages) + 1)]
    parts = [share_of(progress, start, end) for start, end in pairwise(starts)]
    bundles = {
        label: compute(experiment, points, part)
        for (label, experiment), part in zip(experiments.items(), parts, strict=False)
    }
    boxes = tuple(
        simulate_boxes(experiments[SUBSET], cells, releases, seed, part)
        for cells, part in zip(CELLS, parts[len(bundles) :], strict=False)
    )
    return Reproduction(
        experiments=tuple(experiments.values()),
        sheets=make_sheets(bundles),
        boxes=boxes,
        statements=state(Evidence(bundles, boxes)),
        missing=() if records is not None else (NOT_GIVEN.format(why=why, where=WHERE),),
        points=points,
        releases=releases,
        seed=seed,
        seconds=time.monotonic() - begun,
    )
