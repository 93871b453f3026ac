"""What a report rests on: assumptions, the mechanism with its formula, the versions, and what is not covered."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from cellrisk.counts.table import list_assumptions
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.show.reporting.blocks import Block, Bullets, Facts, Section, TableBlock, Words
from cellrisk.show.reporting.decision import Decision, ReportRequest
from cellrisk.show.reporting.particulars import preparation_block
from cellrisk.system.text import claim
from cellrisk.system.version import __version__

if TYPE_CHECKING:
    from cellrisk.counts.cells import Domain
    from cellrisk.counts.table import FrequencyTable

FORMULAS = {
    "laplace": "Laplace noise of scale b = L1 / epsilon",
    "geometric": "two-sided geometric noise on whole numbers, P(j) proportional to exp(-|j| epsilon / L1)",
    "gaussian": "Gaussian noise, sigma = L2 sqrt(2 ln(1.25 / delta)) / epsilon, for epsilon below 1",
    "gaussian-pdp": (
        "Gaussian noise, sigma = L2 (sqrt(z^2 + 2 epsilon) - z) / (2 epsilon), z the delta/2 quantile of the standard "
        "normal distribution (probabilistic differential privacy)"
    ),
    "gaussian-analytic": "Gaussian noise of the smallest sigma that gives the guarantee (Balle and Wang 2018)",
    "discrete-gaussian": (
        "discrete Gaussian noise on whole numbers, sigma = L2 / sqrt(2 rho), with the largest rho that gives the "
        "guarantee (Canonne, Kamath and Steinke 2020)"
    ),
}
PRIVACY_UNIT = "One record. A person with several records is protected for each record alone."
NEIGHBOURS = {
    "add-remove": (
        "Two tables are neighbours if one holds one record that the other does not: one person can change one count "
        "by one (L1 = 1, L2 = 1)."
    ),
    "replace": (
        "Two tables are neighbours if one record has different values: one person can change two counts by one each "
        "(L1 = 2, L2 = sqrt 2)."
    ),
}
NOISY_CELLS = {
    "domain": "Every count of the domain, empty ones too, as a differentially private release needs.",
    "observed": (
        "Those of the cells that hold records, with every value of the sensitive attribute. Which cells hold "
        "records is then published as it is: the guarantee does not cover it."
    ),
}
MISSING = {
    "category": (
        "Missing values count as a value of their own. In a release they do so only in the columns that were said to "
        "have some; in other declared columns they are outside the declared labels."
    ),
    "drop": "Records with a missing value in a column in use are left out.",
    "error": "Missing values were not allowed.",
}
OUTSIDE = {
    "error": "Records outside the declared labels were not allowed: the data was checked for them.",
    "drop": "Records outside the declared labels are left out.",
}
ATTACK = (
    "One attack is considered, the homogeneity attack: look up a person's cell in what is published, and where it "
    "shows one value alone, take that to be the person's value."
)
NOT_COVERED = (
    "Guesses from cells that show several values in unequal numbers.",
    "Attackers who know more about a person than the quasi-identifiers.",
    "Several releases about the same people, each of which spends privacy loss of its own.",
    "Whether a person is in the data at all.",
    "People who are not in the data, about whom a table may teach something all the same.",
    "Mistakes in the program that adds the noise, such as those of floating-point numbers.",
)
RELEASABLE = ("geometric", "discrete-gaussian")
RELEASED = "Yes: cellrisk release makes this noise, exactly sampled."
NOT_RELEASED = (
    "Not by cellrisk release, which makes noise on whole numbers alone: geometric or discrete-gaussian. Noise of "
    "floating-point numbers can give a count away in its last digits."
)
LIBRARIES = ("numpy", "scipy", "duckdb")


def basis_section(request: ReportRequest) -> Section:
    """Section 8: what the figures take for granted; for the public without a figure from the data."""
    table, setting, public = request.table, request.setting, request.public
    facts = (
        ("Privacy unit", PRIVACY_UNIT),
        ("Neighbours", NEIGHBOURS[setting.neighbours]),
        ("Noise", "The noise on each count is independent of that on every other."),
        ("Rounding and suppression", describe_threshold(setting.threshold)),
        ("Counts that get noise", NOISY_CELLS[request.cells]),
        ("Missing values", describe_missing(table, public)),
        ("Other values", describe_outside(table, public)),
        *_describe_composition(table),
    )
    blocks = (
        Facts(facts),
        *describe_domains(table, public),
        preparation_block(request.preparation),
        Bullets(NOT_COVERED, "Not covered by the figures"),
    )
    return Section("assumptions", "Assumptions", (ATTACK,), blocks)


def describe_threshold(threshold: float) -> str:
    """What becomes of a noisy count.

    >>> describe_threshold(10.5)
    'Noisy counts are rounded to whole numbers; those up to 10 are published as zero.'
    """
    below = "those below zero" if threshold == 0.5 else f"those up to {threshold - 0.5:g}"
    return f"Noisy counts are rounded to whole numbers; {below} are published as zero."


def mechanism_section(decision: Decision) -> Section:
    """Section 9: the mechanism, its formula and scale, and the versions of what computed the figures."""
    setting = decision.setting
    pairs = [
        ("Mechanism", setting.name),
        ("Formula", FORMULAS[setting.name]),
        ("Guarantee", f"{'epsilon' if setting.pure else '(epsilon, delta)'}-differential privacy"),
        ("Epsilon", f"none: {decision.why_none}" if decision.epsilon is None else f"{decision.epsilon:.12g}"),
    ]
    if not setting.pure:
        rule = ", one over the number of records, rounded down to one digit"
        pairs.append(("Delta", f"{claim(setting.delta)}{rule if decision.request.delta_from_data else ''}"))
    pairs.append(("Can it be released?", RELEASED if setting.name in RELEASABLE else NOT_RELEASED))
    pairs.append(("Neighbours", setting.neighbours))
    pairs.append(("Threshold", f"{setting.threshold:g}"))
    if decision.epsilon is not None:
        pairs.append(("Noise scale", describe_scale(setting.with_epsilon(decision.epsilon))))
    pairs.append(("Risk that was measured", f"{decision.measured.name}, under the homogeneity attack"))
    if decision.trade_off is not None:
        tvd = decision.trade_off.limit
        simulated = f"mean TVD of {tvd.way}-way marginals, {tvd.releases:,} simulated releases, seed {tvd.seed}"
        pairs.append(("Usefulness that was measured", simulated))
    blocks: list[Block] = [Facts(tuple(pairs))]
    if not decision.request.public:
        blocks += _describe_priors(decision)
    blocks.append(versions_table())
    return Section("mechanism", "Mechanism and versions", (), tuple(blocks))


def describe_scale(mechanism: Mechanism) -> str:
    """How large the noise is, in counts."""
    kind = "b" if mechanism.name in ("laplace", "geometric") else "sigma"
    return f"{kind} = {mechanism.scale:.6g}, in counts"


def versions_table() -> TableBlock:
    """What computed the figures: this package, what it computes with, and the language."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    rows = (("cellrisk", __version__), *((name, metadata.version(name)) for name in LIBRARIES), ("Python", python))
    return TableBlock("Versions", ("Software", "Version"), rows, texts=(0, 1))


def _describe_composition(table: FrequencyTable) -> Iterator[tuple[str, str]]:
    """What several sensitive attributes cost together."""
    many = len(table.sensitive)
    if many > 1:
        yield (
            "Several sensitive attributes",
            f"Each of the {many} is counted in a table of its own, with noise of its own at this epsilon. To publish "
            f"all of them spends up to {many} times the epsilon and delta of one.",
        )


def describe_missing(table: FrequencyTable, public: bool) -> str:
    """What became of missing values."""
    if public:
        return MISSING[table.missing]
    found = ", ".join(f"{name}: {records:,}" for name, records in table.missing_records)
    counted = f"Records with a missing value: {found}." if found else "No column in use has a missing value."
    dropped = f" Records left out: {table.dropped_records:,}." if table.missing == "drop" else ""
    return f"{MISSING[table.missing]} {counted}{dropped}"


def describe_outside(table: FrequencyTable, public: bool) -> str:
    """What became of values outside the declared labels."""
    left_out = "" if public or table.outside != "drop" else f" Records left out: {table.outside_records:,}."
    return f"{OUTSIDE[table.outside]}{left_out}"


def read_domains(table: FrequencyTable) -> tuple[Domain, ...]:
    """The domains of the quasi-identifiers; none where the table has no source to read them from."""
    return () if table.read_cells is None else table.cells(table.sensitive[0]).domains


def describe_domains(table: FrequencyTable, public: bool) -> Iterator[Block]:
    """Which values were declared, and which were taken from the data."""
    known = {domain.name: domain for domain in read_domains(table)}
    if public:
        declared = {name: domain.declared for name, domain in known.items()}
        declared |= {attribute.name: attribute.declared for attribute in table.attributes}
        observed = [name for name, is_declared in declared.items() if not is_declared]
        text = "The values that each column can take were declared beforehand."
        if observed:
            text = (
                f"The values that these columns can take were read from the data, not declared: {', '.join(observed)}. "
                "That they occur is not covered by the guarantee."
            )
        yield Words((text,))
        return
    origin = {True: "declared", False: "observed in the data"}
    rows = [
        (name, "quasi-identifier", f"{len(known[name]):,}", origin[known[name].declared])
        if name in known
        else (name, "quasi-identifier", "not known", "not known")
        for name in table.quasi_identifiers
    ]
    rows += [(each.name, "sensitive", f"{each.n_levels:,}", origin[each.declared]) for each in table.attributes]
    yield TableBlock("The domain", ("Column", "Role", "Values", "Where they come from"), tuple(rows), texts=(0, 1, 3))
    if any(not domain.declared for domain in known.values()):
        yield Words(
            (
                "Values observed in the data are published by naming them: that they occur is not covered by the "
                "guarantee. Declare them where that matters.",
            )
        )
    found = tuple(list_assumptions(table))
    if found:
        yield Bullets(found)


def _describe_priors(decision: Decision) -> Iterator[Block]:
    """The laws behind a measure that needs some, one line for each attribute."""
    risk = decision.request.risk
    lines = []
    for attribute in decision.request.table.attributes:
        fitted = risk.priors.fit(attribute, [risk.measure])
        lines += [f"{attribute.name}: {line}" for line in fitted.describe()]
    if lines:
        yield Bullets(tuple(lines), "Priors of the measure")
