"""Every number and claim of the paper's text beside ours. All of ours are computed; so are the verdicts."""

from __future__ import annotations

from cellrisk.reproduction.claims.comparing import Evidence
from cellrisk.reproduction.claims.curves import state_curves
from cellrisk.reproduction.claims.ends import state_ends
from cellrisk.reproduction.claims.formulas import state_formulas
from cellrisk.reproduction.claims.guesses import state_geometric, state_thresholding, state_utility
from cellrisk.reproduction.claims.tables import state_tables
from cellrisk.reproduction.panels import Statement

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
