"""Every number and claim of the paper's text beside ours. All of ours are computed; so are the verdicts."""

from __future__ import annotations

from cellrisk.paper.claims.comparing import Evidence
from cellrisk.paper.claims.curves import state_curves, state_ends
from cellrisk.paper.claims.formulas import state_formulas
from cellrisk.paper.claims.guesses import state_geometric, state_thresholding, state_utility
from cellrisk.paper.claims.tables import state_tables
from cellrisk.paper.panels import Statement

__all__ = ["Evidence", "state"]


def state(evidence: Evidence) -> tuple[Statement, ...]:
    """All statements that the evidence covers, in the order of the paper."""
    return (
        *state_formulas(evidence),
        *state_tables(evidence),
        *state_curves(evidence),
        *state_ends(evidence),
        *state_utility(evidence),
        *state_geometric(evidence),
        *state_thresholding(evidence),
    )
