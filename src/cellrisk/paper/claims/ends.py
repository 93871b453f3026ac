"""What the paper says of the two ends of its curves (section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cellrisk.paper.bundles import Bundle
from cellrisk.paper.claims.comparing import Evidence, compare, judge, same, span
from cellrisk.paper.panels import Statement
from cellrisk.paper.sheets import WEIGHTINGS

PLACE = "5.2, item 2"
SUBSET_PLACE = "5.2, item 3"
SUBSET_ENDS = (
    ("local", "uniform", "0.69", "0.16"),
    ("local", "records", "0.57", "0.18"),
    ("expected", "uniform", "0.75", "0.16"),
    ("expected", "records", "0.63", "0.17"),
)


def state_ends(evidence: Evidence) -> Iterator[Statement]:
    """Every asymptote of the text."""
    for bundle in evidence.homogeneous:
        defined = evidence.adult if bundle is evidence.rows else None
        yield _upper(bundle, defined)
        yield _lower(bundle, defined)
    if evidence.has_bankruptcy:
        for measure, weights, upper, lower in SUBSET_ENDS:
            limits = evidence.subset.one(measure=measure, weights=weights).limits
            what = f"Bankruptcy subset: {measure} risk, {WEIGHTINGS[weights]}"
            yield compare(SUBSET_PLACE, f"{what}, as epsilon grows", upper, limits.raw)
            yield compare(SUBSET_PLACE, f"{what}, as epsilon falls to 0", lower, limits.chance)
        yield _same_lower_end(evidence.subset)
        yield _two_levels(evidence.subset)


def _upper(bundle: Bundle, defined: Bundle | None) -> Statement:
    ends = [bundle.one(weights=weights).limits.raw for weights in WEIGHTINGS]
    others = [] if defined is None else [defined.one(weights=weights).limits.raw for weights in WEIGHTINGS]
    cells = ""
    if others:
        cells = f"; as defined {others[0]:.3f} each cell alike, {others[1]:.3f} by records"
    return judge(
        PLACE,
        f"{bundle.experiment.name}: the risk as epsilon grows",
        "1",
        f"{span(ends)}{cells}",
        holds=all(abs(end - 1.0) < 0.0005 for end in [*ends, *others]),
        partly=all(abs(end - 1.0) < 0.0005 for end in ends),
        why="It is 1 only if rows are taken for cells: the raw table does not give away people in heterogeneous cells.",
    )


def _lower(bundle: Bundle, defined: Bundle | None) -> Statement:
    ends = [bundle.one(weights=weights).limits.chance for weights in WEIGHTINGS]
    others = [] if defined is None else [defined.one(weights=weights).limits.chance for weights in WEIGHTINGS]
    cells = f"; as defined {span(others)}" if others else ""
    return judge(
        PLACE,
        f"{bundle.experiment.name}: the risk as epsilon falls to 0",
        "0.25",
        f"{span(ends)}{cells}",
        holds=all(same("0.25", end) for end in [*ends, *others]),
        partly=all(same("0.25", end) for end in ends),
        why="It holds for the rows; cells as defined have another lower end.",
        note="What is left there is chance: cells look homogeneous at random, and the value shown is as often wrong.",
    )


def _same_lower_end(subset: Bundle) -> Statement:
    local, expected = (subset.one(measure=each, weights="uniform").limits.chance for each in ("local", "expected"))
    return judge(
        SUBSET_PLACE,
        "Bankruptcy subset: the lower ends of local and expected risk, each cell alike, are the same",
        "the same",
        f"{local:.4f} and {expected:.4f}",
        holds=abs(local - expected) < 0.00005,
        partly=same("0.16", local) and same("0.16", expected),
        why="They are the same at two digits, not the same number.",
    )


def _two_levels(subset: Bundle) -> Statement:
    """sum_k p_k^n is what the curve tends to; the text writes p^n + (1 - p)^n, with p the largest share here."""
    profiles = subset.experiment.table.profiles()
    risks, printed, crowded = np.zeros(2), np.zeros(2), 0
    for block in profiles.blocks:
        shares = block.counts / block.sizes[:, None]
        largest = shares[:, 0]
        as_written = largest**block.sizes + (1.0 - largest) ** block.sizes
        right = (shares ** block.sizes[:, None]).sum(axis=1)
        crowded += int(block.cells.sum()) if block.counts.shape[1] > 2 else 0
        for place, weights in enumerate((block.cells / profiles.n_cells, block.records / profiles.n_records)):
            printed[place] += float(weights @ as_written)
            risks[place] += float(weights @ right)
    return judge(
        SUBSET_PLACE,
        "Bankruptcy subset: the expected risk tends to the average of p^n + (1 - p)^n",
        "as epsilon grows",
        f"that average is {printed[0]:.4f} / {printed[1]:.4f}, the limit {risks[0]:.4f} / {risks[1]:.4f}",
        holds=bool(np.abs(risks - printed).max() < 1e-9),
        partly=bool(np.abs(risks - printed).max() < 0.005),
        why=f"The formula is for K = 2, and K is 3: it must be the sum of p_k^n over all labels. {crowded} of "
        f"{profiles.n_cells} cells {'has' if crowded == 1 else 'have'} three labels, so that little changes here.",
    )
