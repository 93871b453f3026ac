"""Words that several sections share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.limits import RiskDefinition
    from cellrisk.risk.sweep import MeasuredRisk

MEASURES = {
    "local": "of this very table, with the noise as the only chance",
    "expected": "with each cell's records drawn anew from its own proportions",
    "shrinkage": "with each cell's proportions drawn from a law fitted to all cells",
    "marginal": "with each cell's size drawn from a law fitted to all cells",
    "marginal_shrinkage": "with sizes and proportions of cells drawn from laws fitted to all cells",
}
FORMS = {
    "published": "the published closed form",
    "exact": "the chance that a cell shows one value alone, and one that occurs in it",
    "tight": "the chance that a person's cell shows that person's value, and no other",
}
WEIGHTS = {"uniform": "averaged over cells", "records": "averaged over people"}


def describe_risk(risk: RiskDefinition, measured: MeasuredRisk) -> str:
    """A risk in words: its name, what it is the chance of, and how it is averaged."""
    weights = "" if measured.measures[0].one_number else f", {WEIGHTS[risk.weights]}"
    return f"{measured.name}: {FORMS[risk.form]}, {MEASURES[risk.measure]}{weights}"


def join_names(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> join_names(["age"]), join_names(["age", "sex", "race"])
    ('age', 'age, sex and race')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def name_table(table: FrequencyTable) -> str:
    """What a table is of: trade by town and age."""
    return f"{join_names(table.sensitive)} by {join_names(table.quasi_identifiers)}"
