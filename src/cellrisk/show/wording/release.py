"""The words of `Release` and `TogetherRelease`: what was released, the guarantee, and what it does not cover.

They depend on what was declared and on the noise alone: whether there are records that a sentence is about or not, the
sentence is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cellrisk.counts.unit import Unit
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import find_precision
from cellrisk.publish.releasing.release_result import Release
from cellrisk.risk.ceilings import Ceiling
from cellrisk.show.wording.attackers import accuracy, fill
from cellrisk.system.formatting import aligned, claim, number_of
from cellrisk.system.spreadsheets import SAFE_WORDS

if TYPE_CHECKING:
    from cellrisk.repeat.together.releasing import TogetherRelease

EXCEPTIONS_SHOWN = 5
TO_FILL = "to fill"
"""What a label cannot know."""
TOTAL = f"{TO_FILL}: the losses of all releases about the same people, which a ledger adds up (cellrisk ledger show)"
STEPS = {
    "add-remove": "one record added or removed; it changes one count by 1 (L1 = 1, L2 = 1)",
    "replace": "one record with other values; it changes two counts by 1 each (L1 = 2, L2 = sqrt 2)",
}


def headline(release: Release | TogetherRelease) -> str:
    """Return what was released, and with which guarantee."""
    if not isinstance(release, Release):
        number = sum(len(each.frame) for each in release.releases)
        excepted = any(each.exceptions for each in release.releases)
        return (
            f"{len(release.releases)} tables of {release.sensitive} about the same people, {number:,} counts in all: "
            f"differentially private together, {release.loss.describe()}"
            f"{', with exceptions that their descriptions name' if excepted else ''}."
        )
    if release.description is not None:
        return str(release.description["sentence"])
    size, columns = f"{release.domain_size:,}", ", ".join(release.quasi_identifiers)
    listed = f"All {size}" if release.dense else f"{len(release.frame):,} positive ones of {size}"
    counts = f"{listed} counts of {release.sensitive} by {columns}, with noise"
    if release.composed is None:
        shown = "they add up to parent counts, and show them, whose guarantee is not known"
        return f"{counts} ({release.mechanism.guarantee}). No guarantee is known for them: {shown}."
    shown = "" if release.parents is None else ", that of the parent counts included"
    covers = ", with exceptions that its description names" if release.exceptions else ""
    return f"{counts}: differentially private with {release.composed.guarantee}{shown}{covers}."


def screen(release: Release | TogetherRelease) -> list[str]:
    """Return what is printed first: the error of a count, the worst case, and what the guarantee does not cover."""
    if not isinstance(release, Release):
        return _list_tables(release)
    parts = [headline(release)]
    if release.description is None and release.clamp and not release.adjusted:
        parts.append(accuracy(release.mechanism))
    if release.ceiling is not None:
        parts.append(fill(release.ceiling.headline))
    exceptions = release.exceptions
    if exceptions:
        parts.append("\n".join(exceptions[:EXCEPTIONS_SHOWN]))
    more = f" {len(exceptions) - EXCEPTIONS_SHOWN:,} more exceptions and" if exceptions[EXCEPTIONS_SHOWN:] else ""
    parts += say_formulas(release)
    parts += [release.policies.describe()] if release.policies else []
    following = f"What a reader has to know:{more} --all, or the description beside the file"
    return ["\n".join(parts), f"{following}   Check it: cellrisk audit ..."]


def _list_tables(released: TogetherRelease) -> list[str]:
    """Return each table with its noise, and what the guarantee of all does not cover."""
    rows = [
        [
            *(f"{table.number}: {table.name or table.describe()}", release.mechanism.name),
            *(claim(release.mechanism.epsilon), f"{release.measurement.scale:.6g}", f"{len(release.frame):,}"),
            released.name_of(table),
        ]
        for table, release in zip(released.tables, released.releases, strict=True)
    ]
    uncovered = dict.fromkeys(line for release in released.releases for line in release.not_covered)
    obeyed = dict.fromkeys(release.policies.describe() for release in released.releases if release.policies)
    head = ["table", "mechanism", "epsilon", "scale", "counts", "file"]
    said = "\n".join(map(fill, [*released.statements, *uncovered]))
    return [fill(headline(released)), aligned(head, rows), said, *obeyed]


def paragraphs(release: Release | TogetherRelease) -> list[str]:
    """Return the rest: the noise, and what a reader of the counts has to know; of several tables all is said."""
    if not isinstance(release, Release):
        return []
    rows = [
        ["mechanism", release.mechanism.name],
        ["neighbours", release.mechanism.neighbours],
        [f"loss by OpenDP ({release.measurement.unit})", claim(release.measurement.loss)],
        ["counts in the domain", f"{release.domain_size:,}"],
        ["counts listed", f"{len(release.frame):,}"],
    ]
    return [aligned(rows[0], rows[1:]), "\n".join(map(fill, release.statements))]


def statements(release: Release) -> list[str]:
    """What a reader of the counts has to know."""
    if release.description is not None:
        return list(release.description["statements"])
    mechanism, noise = release.mechanism, release.measurement
    holds = "The guarantee" if release.composed else f"The noise alone has {mechanism.guarantee}, which"
    said = [
        f"{holds} holds for {say_unit(mechanism)}",
        f"Each count got {noise.distribution} noise of scale {noise.scale:.6g}, sampled exactly from secure random "
        "bits.",
    ]
    said += [say_ceiling(release)] if release.ceiling else []
    said += say_observed(release.observed_levels)
    reasons = "with a missing value where none was declared, or in a combination that was declared impossible"
    said += say_left_out(release.missing, release.outside, reasons)
    said += not_covered(release)
    if release.parents is not None:
        digest = "" if release.parents.sha256 is None else f" (sha256 {release.parents.sha256})"
        said.append(
            f"Counts were made consistent with the parent counts published in {release.parents.name}{digest}, by least "
            "squares under non-negativity. This uses no further records, but these counts show the parent counts: the "
            "loss of the parent release adds to this one."
        )
    elif release.clamp:
        said.append(
            f"Counts below {mechanism.threshold:g} after noise are released as zero, so counts near it, and sums over "
            "many cells, are biased."
        )
    else:
        said.append("Counts are unbiased; some are negative because of the noise.")
    if not release.dense:
        said.append("Counts of the domain that are not listed are zero.")
    if release.excluded:
        said.append(f"{release.excluded:,} combinations were declared impossible and are no part of the domain.")
    return [*said, *say_formulas(release)]


def say_unit(mechanism: Mechanism) -> str:
    """Return for whom the guarantee holds, and which records were kept.

    >>> import cellrisk as cr
    >>> say_unit(cr.Geometric(1.0))[:61]
    'one record added or removed; it is weaker for a person with s'
    """
    unit, again = mechanism.unit, "another release from the same records adds its loss to this one"
    if unit.kind == "record":
        return f"one record {mechanism.change}; it is weaker for a person with several records, and {again}."
    whose = f"one person whose records are {mechanism.change}; {again}. {unit.describe()}"
    if not unit.enforced:
        return whose
    return (
        f"{whose} If a person has more, they are drawn by secure random bits, for each person alone. Records that name "
        "no person are left out."
    )


def say_ceiling(release: Release) -> str:
    """The worst case for one record, for which release it holds, and what is not in it."""
    if release.ceiling is None:
        return ""
    alone = "and the parent counts that it shows" if release.adjusted else "alone"
    beside = " What the guarantee does not cover is not in this figure." if release.exceptions else ""
    return f"{release.ceiling.headline} That is for this release {alone}.{beside}"


def not_covered(release: Release) -> list[str]:
    """What was taken from the raw data without noise, beside labels and cells that are the observed ones."""
    if release.description is not None:
        return list(release.description["not_covered"])
    said = [*say_gates("release", release.missing, release.outside), *release.disclosures]
    unit = release.mechanism.unit
    said += [f"The bound is asserted, not checked: {unit.describe()}"] * (unit.kind == "person" and not unit.enforced)
    if release.parents is None:
        return said
    name = release.parents.name
    if release.parents.guarantee is None:
        return [*said, f"The guarantee of the parent counts in {name} is not known, and these counts show them."]
    return [*said, *(f"In the parent counts of {name}: {sentence}" for sentence in release.parents.exceptions)]


def say_formulas(release: Release) -> list[str]:
    """What has to be said of columns that a spreadsheet would take for formulas, if there are any."""
    if not release.formula_columns:
        return []
    what = f"texts of {', '.join(release.formula_columns)} that a spreadsheet would take for formulas"
    if release.spreadsheet_safe:
        return [f"In a CSV file of these counts an apostrophe stands before {what}."]
    return [f"A CSV file of these counts holds {what}: {SAFE_WORDS}."]


def say_observed(levels: Sequence[str]) -> list[str]:
    """What the guarantee does not cover, if labels are those that occur."""
    labels = f"The labels of {', '.join(levels)} are those that occur in the records"
    return [f"{labels}: the guarantee does not cover which values exist."] * bool(levels)


def say_left_out(missing: str, outside: str, reasons: str) -> list[str]:
    """Which records are left out, by the rules for missing values and for records outside the declared labels."""
    dropped = "Records with a missing value in one of the columns are left out."
    strangers = "Records outside the declared labels are left out: with a value that is not among them,"
    return [dropped] * (missing == "drop") + [f"{strangers} {reasons}."] * (outside == "drop")


def say_gates(what: str, missing: str, outside: str) -> list[str]:
    """Which rules had to be kept by every record, so that they decided whether there is a release, or a figure."""
    gate = f"Whether there is a {what} was found from the data, which the guarantee does not cover"
    rules = (("records with a missing value", missing), ("records outside the declared labels", outside))
    return [f"{gate}: {records} were not allowed." for records, rule in rules if rule == "error"]


def name_unit(unit: Unit) -> str:
    """Return whose presence is hidden."""
    if unit.kind == "record":
        return "one record; a person with several records is protected for each record alone"
    return f"one person. {unit.describe()}"


def say_step(mechanism: Mechanism) -> str:
    """Return how neighbouring tables differ, and how far their counts are apart.

    >>> from cellrisk import Geometric
    >>> say_step(Geometric(1.0, unit=Unit(4, 1)))
    'the records of one person added or removed; they change counts by 4 in all at most (L1 = 4, L2 = 2)'
    """
    if mechanism.unit.kind == "record":
        return STEPS[mechanism.neighbours]
    step = "added or removed" if mechanism.neighbours == "add-remove" else "with other values"
    return (
        f"the records of one person {step}; they change counts by {mechanism.l1:g} in all at most "
        f"(L1 = {mechanism.l1:g}, L2 = {mechanism.l2:.6g})"
    )


def say_total(cost: str, others: int, last: tuple[int, str] | None) -> str:
    """Return what a release costs together with others that a ledger held when it was prepared.

    ``last``: number and digest of the last entry that the ledger held then; None if it was empty.

    >>> say_total("epsilon 1 (pure DP, by basic composition)", 0, None)
    'epsilon 1 (pure DP, by basic composition), of this release alone: the ledger was empty when it was prepared'
    """
    if last is None:
        return f"{cost}, of this release alone: the ledger was empty when it was prepared"
    known = f"when this one was prepared (its last entry then: {last[0]}, digest {last[1]})"
    if not others:
        return f"{cost}, of this release alone: the ledger held no other about the same people {known}"
    return (
        f"{cost}, together with the {number_of(others, 'release')} about the same people that the ledger held {known}"
    )


def label(
    mechanism: Mechanism,
    guarantee: Any,
    ceiling: Ceiling | None,
    not_covered: Sequence[str],
    library: str,
    *,
    total: str = TOTAL,
    clamp: bool = True,
    adjusted: bool = False,
) -> dict[str, str]:
    """Return the label of a release: the questions of NIST SP 800-226 and of the privacy label, a line for each.

    Nothing in it is computed from the records. ``guarantee`` has the epsilon and the delta that hold for what is
    published; None if they are not known. ``adjusted``: counts were made to add up to published totals after the noise.
    """
    unknown = "not known: the counts show parent counts, whose guarantee is not known"
    loss = {"epsilon": unknown, "definition": unknown, "delta": unknown}
    if guarantee is not None:
        place = "at most 1" if guarantee.epsilon <= 1 else "1 to 20" if guarantee.epsilon <= 20 else "above 20"
        definition = f"{'approximate' if guarantee.delta else 'pure'} differential privacy"
        loss = {"epsilon": f"{claim(guarantee.epsilon)} ({place})", "definition": definition}
        loss["delta"] = claim(guarantee.delta)
    precision = find_precision(mechanism)
    shown = "under 0.01" if precision.at_zero < 0.01 else f"{precision.at_zero:.2g}"
    below = f"noisy counts up to {precision.hidden:,}" if precision.hidden else "negative counts"
    bias = f"{below} become 0, and a true 0 is published as {shown} on average: sums over many small counts are off"
    if not clamp:
        bias = "none: negative counts are published as they are"
    elif adjusted:
        bias = "of the counts as they are published not stated: they add up to published totals"
    meaning = "no bound on what one person's data add is stated: see what is not covered"
    if ceiling is not None:
        meaning = ceiling.headline.partition(". ")[0].removesuffix(".") + "."
    return {
        **loss,
        "unit": name_unit(mechanism.unit),
        "neighbours": say_step(mechanism),
        "total": total,
        "not_covered": " ".join(not_covered) or "nothing that is known",
        "mechanism": f"{mechanism.name}, noise of scale {mechanism.scale:.6g} on each count; {library}",
        "accuracy": accuracy(mechanism) + (" Then counts are made to add up to published totals." if adjusted else ""),
        "bias": bias,
        "release_model": "central: noise is added to counts of the records, which are published once; no queries",
        "trusted": "the curator, who sees the records, and the programs that add the noise",
        "interpretation": meaning,
    }
