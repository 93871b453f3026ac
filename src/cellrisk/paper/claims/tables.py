"""What the paper says of its data: records, cells, sizes and the rates fitted to them (sections 5 and 5.1)."""

from __future__ import annotations

from collections.abc import Iterator

from cellrisk.counts.profiles import Profiles
from cellrisk.counts.table import FrequencyTable
from cellrisk.paper.bundles import Bundle
from cellrisk.paper.claims.comparing import Evidence, compare, judge, same
from cellrisk.paper.panels import Statement

ATTACK = "2.2 Homogeneity attack"
EXAMPLE = ((2, 2, 0), (1, 2, 1), (0, 0, 4))
"""Table 1: people with cancer, heart disease and diabetes in its three groups of race and age."""
SETTING = "5.1 Experiment setting"
ROWS_FOR_CELLS = "The paper counts rows, a cell with one income each, and takes them for cells."


def state_tables(evidence: Evidence) -> Iterator[Statement]:
    """Every number about the data that the evidence covers."""
    yield from _example()
    yield from _adult(evidence)
    if evidence.has_bankruptcy:
        yield from _bankruptcy(evidence.bankruptcy.experiment.table)
        yield from _subset(evidence.subset.experiment.table)
    yield from _rates(evidence)


def _example() -> Iterator[Statement]:
    """Table 1, the dataset that the paper explains the attack on; its other table and figure 1 hold no numbers."""
    profiles = Profiles.from_cells(EXAMPLE, n_levels=3)
    yield compare(ATTACK, "Table 1: records of the example", "12", profiles.n_records)
    yield compare(ATTACK, "Table 1: groups that share their quasi-identifiers", "3", profiles.n_cells)
    yield compare(
        ATTACK, "Table 1: people whose medical condition is read off (records 9 to 12)", "4", profiles.n_exposed
    )


def _adult(evidence: Evidence) -> Iterator[Statement]:
    rows, table = evidence.rows.experiment.table, evidence.adult.experiment.table
    profiles = table.profiles()
    yield compare(SETTING, "Adult: individuals", "27,504", table.n_records)
    yield compare(
        SETTING,
        "Adult: non-empty cells of the six quasi-identifiers",
        "5,974",
        table.n_cells,
        shown=f"{table.n_cells:,} cells, {rows.n_cells:,} rows",
        otherwise=ROWS_FOR_CELLS,
    )
    yield judge(
        SETTING,
        "Adult: each cell is homogeneous on income",
        "all",
        f"{profiles.n_homogeneous:,} homogeneous, {profiles.n_heterogeneous:,} heterogeneous",
        holds=profiles.n_heterogeneous == 0,
        why=f"{ROWS_FOR_CELLS} People of both incomes share {profiles.n_heterogeneous:,} of the cells.",
    )
    (of_rows, many_rows), (of_cells, many_cells) = rows.profiles().sizes, profiles.sizes
    yield judge(
        "Figure 2, caption",
        "Adult: cell sizes",
        "1 to 240",
        f"rows {of_rows[0]} to {of_rows[-1]}, cells {of_cells[0]} to {of_cells[-1]}",
        holds=(of_cells[0], of_cells[-1]) == (1, 240),
        partly=(of_rows[0], of_rows[-1]) == (1, 240),
        why=f"It holds for the rows. {ROWS_FOR_CELLS}",
    )
    large_rows, large_cells = many_rows[of_rows > 120].sum(), many_cells[of_cells > 120].sum()
    yield judge(
        "Figure 2, caption",
        "Adult: cells with more than 120 records",
        "6",
        f"{large_rows} rows, {large_cells} cells",
        holds=bool(large_cells == 6),
        partly=bool(large_rows == 6),
        why=f"It holds for the rows. {ROWS_FOR_CELLS}",
    )
    yield compare("5 Experiments", "Adult: one over the number of records", "3.6e-05", 1.0 / table.n_records)


def _bankruptcy(table: FrequencyTable) -> Iterator[Statement]:
    profiles, levels = table.profiles(), [len(domain) for domain in table.cells().domains]
    yield compare(SETTING, "Bankruptcy: observations", "250", table.n_records)
    yield judge(
        SETTING,
        "Bankruptcy: levels of each of the six quasi-identifiers",
        "3",
        ", ".join(str(many) for many in sorted(set(levels))),
        holds=set(levels) == {3},
    )
    yield compare(SETTING, "Bankruptcy: non-empty cells", "103", table.n_cells)
    yield compare(SETTING, "Bankruptcy: homogeneous cells", "103", profiles.n_homogeneous)
    yield compare("5 Experiments", "Bankruptcy: one over the number of records", "4e-03", 1.0 / table.n_records)


def _subset(table: FrequencyTable) -> Iterator[Statement]:
    profiles = table.profiles()
    yield compare(SETTING, "Bankruptcy subset: levels of the sensitive attribute (K)", "3", profiles.n_levels)
    yield compare(SETTING, "Bankruptcy subset: non-empty cells", "78", table.n_cells)
    yield compare(SETTING, "Bankruptcy subset: homogeneous cells", "54", profiles.n_homogeneous)
    yield compare(SETTING, "Bankruptcy subset: heterogeneous cells", "24", profiles.n_heterogeneous)
    yield compare("5.2, item 3", "Bankruptcy subset: people in homogeneous cells, of 250", "142", profiles.n_exposed)


def _rates(evidence: Evidence) -> Iterator[Statement]:
    """The paper's footnote: n ~ Poisson(beta) by maximum likelihood, not truncated at zero."""
    (rows, truncated), (cells, _) = (each.experiment.rates for each in (evidence.rows, evidence.adult))
    place, claim = f"{SETTING}, footnote", "Poisson rate of the cell sizes by maximum likelihood"
    yield judge(
        place,
        f"Adult: {claim}",
        "4.6",
        f"rows {rows:.2f}, cells {cells:.2f}",
        holds=same("4.6", cells),
        partly=same("4.6", rows),
        why=f"It holds for the rows; empty cells are never seen, and with that in mind (zero-truncated) their rate is "
        f"{truncated:.2f}.",
    )
    if evidence.has_bankruptcy:
        yield _rate(evidence.bankruptcy, place, claim, "2.43")
        yield _rate(evidence.subset, place, claim, "3.21")


def _rate(bundle: Bundle, place: str, claim: str, paper: str) -> Statement:
    plain, truncated = bundle.experiment.rates
    note = f"Plain fit; empty cells are never seen, and with that in mind (zero-truncated) it is {truncated:.2f}."
    return compare(place, f"{bundle.experiment.name}: {claim}", paper, plain, note=note)
