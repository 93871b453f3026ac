"""`audit`: given the original table and any release of it, what did the release give away?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.publish.auditing.audit_result import Audit, ExposedCell
from cellrisk.publish.auditing.comparison import TableComparison, compare_tables
from cellrisk.publish.auditing.deciding import NAME_IT, MadeBy, decide_in_hand
from cellrisk.publish.auditing.figures import FIGURES, find_figures
from cellrisk.publish.auditing.reading import ReleasedCounts, leave_out_missing, read_release
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, Belief
from cellrisk.risk.figures import Attacker
from cellrisk.system.words import MechanismName, Neighbours

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.publish.releasing.release_result import Release

__all__ = ["FIGURES", "Audit", "ExposedCell", "audit"]


def audit(
    original: FrequencyTable,
    released: Any,
    *,
    sensitive: str | None = None,
    count: str | bool | None = None,
    bins: Mapping[str, Any] | None = None,
    table: str | None = None,
    engine: str | None = None,
    mechanism: Mechanism | MechanismName | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    perturbation: str | Perturbation | None = None,
    certainty: float | Sequence[float] | None = None,
    belief: str | Belief | None = None,
) -> Audit:
    """What did this release give away about the people in the original table?

    The release may be ours or another tool's: counts, whose signs and fractions are taken as they are, or records, such
    as synthetic ones. The homogeneity attack is read as realised, with the eight scenarios of Liu and Zhao; beside it
    stand plurality and proportional guesses, and the figures that synthpop, SDMetrics and ARX define, each by its own
    definition (`cellrisk.publish.auditing.figures`, docs/peers.md). All are exact for these two tables.

    In front stand the figures to decide by: the people behind a count of 1 that is shown alone, given away only because
    of their own record; and where the mechanism is known, the people whose value an attacker who does the mathematics
    names with at least a given certainty, given these very counts.

    Three women are cooks; of four men one is a cook and three are smiths; one other person is a smith. The release
    shows women as cooks alone and men as smiths alone: the values of 3 + 3 of 8 people are read off correctly, and one
    man is taken for a smith who is none.

    Parameters
    ----------
    original
        Made by `tabulate`; its quasi-identifiers and labels are those that the release is read with.
    released
        A source as `tabulate` takes it (files, frames, databases with ``table``), a frequency table, or the answer of
        `release`. Columns are found by name and others ignored. Values are matched by their text, and numbers by their
        value; keys that the original does not have are allowed, and noted.
    sensitive
        Which sensitive attribute; may be left out where the original has one.
    count
        The column of counts. False, or "none" where no column has that name, says that each row is a record; where
        nothing is said, the description beside a file that `release` saved names it, and other rows that look like a
        table of counts are refused.
    bins
        As for `tabulate`, where the release holds numbers and the original bins; labels of bins stay as they are.
    table, engine
        As for `tabulate`, of the release.
    mechanism
        What made the release, as an object, or as its name with ``epsilon`` beside it. May be left out for the answer
        of `release` and for its files as they were written, which say it themselves and are believed. Where it is not
        known, or the release holds records, what an attacker can be sure of is not known either.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    perturbation
        What made the table, in the place of a mechanism, as in `assess_perturbation`: counts that it never makes of the
        true ones are refused.
    certainty, belief
        Of the attacker who does the mathematics, as for `assess`.

    >>> import cellrisk as cr, pandas
    >>> people = pandas.DataFrame({"sex": [*"fffmmmmx"], "job": ["cook"] * 4 + ["smith"] * 4})
    >>> release = pandas.DataFrame(
    ...     [("f", "cook", 2), ("m", "smith", 4), ("x", "cook", 1), ("x", "smith", 1)], columns=["sex", "job", "n"]
    ... )
    >>> found = audit(cr.tabulate(people, "sex", "job"), release, count="n")
    >>> [found.value(name) for name in ("homogeneity_tight_records", "dis", "cap", "scenario_8")]
    [0.75, 0.875, 0.1875, 1.0]
    >>> found.value(of="original")
    0.5
    """
    require_table(original, "original")
    attribute = original.attribute(sensitive)
    beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
    loaded, changed = _load(released)
    made = MadeBy.of(loaded, changed).told(mechanism, beside, perturbation)
    asked = certainty is not None or belief is not None
    if made.mechanism is None and made.perturbation is None and asked:
        raise InvalidInput(
            "what an attacker can be sure of depends on the mechanism, which is not known",
            fix=NAME_IT,
        )
    attacker = Attacker.of(USUAL_CERTAINTY if certainty is None else certainty, belief or USUAL_BELIEF)
    if loaded is not None and count is None and not bins:
        released, bins = loaded, None
    elif count is None and isinstance(released, str | os.PathLike):
        from cellrisk.publish.releasing.loading import find_count_column

        count = find_count_column(released)
    read = read_release(
        released, original.quasi_identifiers, attribute.name, count=count, bins=bins, table=table, engine=engine
    )
    if read.is_microdata:
        if made.perturbation is not None:
            raise InvalidInput(
                "a perturbation makes counts, and the published table holds records",
                fix="name the column of counts (--released-count), or leave the perturbation out",
            )
        made = MadeBy(records=True, changed=made.changed)
    kept, left_out = leave_out_missing(read, original.missing)
    both = compare_tables(original.cells(attribute.name), kept, attribute.missing_level)
    shares = attribute.levels.shares
    return Audit(
        original=original,
        sensitive=attribute.name,
        comparison=both,
        released=find_figures(both),
        raw=find_figures(both.as_it_is()),
        guess_share=float(shares @ shares),
        decision=decide_in_hand(attribute, both, made, attacker),
        notes=tuple(_take_notes(kept, both, left_out, made)),
    )


def _load(released: Any) -> tuple[Release | None, bool]:
    """The answer of `release`, or its file as it was written; else None, and whether the file was changed since."""
    from cellrisk.publish.releasing.loading import read_description
    from cellrisk.publish.releasing.release_result import Release
    from cellrisk.publish.releasing.saving import FORMATS

    if isinstance(released, Release):
        return released, False
    if not isinstance(released, str | os.PathLike) or os.path.splitext(os.fspath(released))[1].lower() not in FORMATS:
        return None, False
    if read_description(released) is None:
        return None, False
    try:
        return Release.load(released), False
    except InvalidInput as refusal:
        if refusal.code not in ("changed", "description"):
            raise
        return None, refusal.code == "changed"


def _take_notes(released: ReleasedCounts, both: TableComparison, left_out: int, made: MadeBy) -> list[str]:
    """What was assumed about the release, and what is unusual about it."""
    notes = []
    if made.contradicted:
        notes.append("The release says itself how it was made: that is believed, and not the mechanism that was given.")
    if made.changed:
        notes.append(
            "The file is not the one that the description beside it was written for (another sha256): nothing that it "
            "says is believed."
        )
    count = released.count
    negative, fractional = int((count < 0).sum()), int((count != np.floor(count)).sum())
    if negative:
        notes.append(f"Negative counts, which unbiased noise makes, are read as zero: {negative:,} of {len(count):,}.")
    if fractional:
        notes.append(
            f"Fractional counts show their label wherever they are above zero: {fractional:,} of {len(count):,}."
        )
    shows, people = both.shown_sizes > 0, both.sizes > 0
    if not shows.any():
        notes.append("The release shows no positive count.")
    unknown, absent = int((shows & ~people).sum()), int((people & ~shows).sum())
    if unknown:
        notes.append(
            f"Cells that the release shows and nobody in the original is in: {unknown:,} of {int(shows.sum()):,}."
        )
    if absent:
        hidden = int(both.sizes[people & ~shows].sum())
        notes.append(f"Cells of the original that are not shown: {absent:,}, with {hidden:,} of its records.")
    if left_out:
        notes.append(f"Rows of the release with missing values are left out, as in the original: {left_out:,}.")
    if released.is_microdata and len(count) > 1 and (count == 1).all():
        notes.append(
            "Each row of the release is read as one record, and no two are alike; if it holds counts, name their "
            "column with count=."
        )
    return notes
