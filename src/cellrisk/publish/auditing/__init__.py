"""`audit`: given the original table and any release of it, what did the release reveal?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.publish.auditing.audit_result import Audit, ExposedCell
from cellrisk.publish.auditing.comparison import TableComparison, compare_tables
from cellrisk.publish.auditing.figures import FIGURES, find_figures
from cellrisk.publish.auditing.reading import ReleasedCounts, leave_out_missing, read_release
from cellrisk.publish.auditing.realised_disclosure import NAME_IT, MadeBy, find_attacks, read_method
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.ceilings import ceiling
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.formatting import number_of

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
    certainty: float | None = None,
    belief: str | CountPrior | None = None,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
) -> Audit:
    """What did this release disclose about the people in the original table?

    The release may be ours or another tool's: counts, whose signs and fractions are taken as they are, or records, such
    as synthetic ones. The attacks of `assess` come first, as realised: the people they name correctly, and those named
    because of their own record; best guess and informed attacker if the mechanism is known. Then the eight scenarios of
    Liu and Zhao, and the figures that synthpop, SDMetrics and ARX define, each by its own definition
    (`cellrisk.publish.auditing.figures`, docs/peers.md). All are exact for these two tables.

    Three women are cooks; of four men one is a cook and three are smiths; one other person is a smith. The release
    shows women as cooks alone and men as smiths alone: the values of 3 + 3 of 8 people are revealed correctly, and one
    man is taken for a smith who is a cook.

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
    certainty, belief, harmful, unions
        Those of the informed attacker, as for `assess`.

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
    if original.beyond_records:
        raise InvalidInput(
            "which records of a person a release has kept is not known, so those of an audit may be others",
            got=f"{number_of(original.beyond_records, 'record')} beyond the bound",
            fix=f"leave {argument('person')} out, and state the bound with {argument('contributions')}: an audit then "
            "counts records",
            code="several-records",
        )
    attribute = original.attribute(sensitive)
    beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
    loaded, changed = _load(released)
    made = read_method(loaded, mechanism, beside, perturbation)
    if not made.known and (certainty is not None or belief is not None):
        raise InvalidInput(
            "what an attacker can be sure of depends on the mechanism, which is not known",
            fix=NAME_IT,
        )
    attacker = Attacker.of(USUAL_CERTAINTY if certainty is None else certainty, belief or USUAL_BELIEF, harmful, unions)
    attacker.check([attribute])
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
        made = MadeBy(records=True)
    kept, left_out = leave_out_missing(read, original.missing)
    both = compare_tables(original.cells(attribute.name), kept, attribute.missing_level)
    attackers, unknown = find_attacks(attribute, both, made, attacker)
    stated, shares = None if made.adjusted else made.mechanism, attribute.levels.shares
    return Audit(
        original=original,
        sensitive=attribute.name,
        comparison=both,
        released=find_figures(both),
        raw=find_figures(both.as_it_is()),
        guess_share=float(shares @ shares),
        made=made,
        attackers=tuple({"sensitive": attribute.name, **row} for row in attackers),
        unknown=unknown,
        ceiling=None if stated is None else ceiling(stated, labels=max(attribute.n_levels, 2)),
        facts={"changed": changed, "left_out": left_out, **_find_facts(kept, both, made)},
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


def _find_facts(released: ReleasedCounts, both: TableComparison, made: MadeBy) -> dict[str, int]:
    """Return what is unusual about a release: numbers of counts, of cells and of people."""
    count, shows, people = released.count, both.shown_sizes > 0, both.sizes > 0
    alone = (both.n_shown == 1) & (both.shown_sizes == made.smallest)
    return {
        "alone": int(both.named[alone].sum()),
        "contradicted": made.contradicted,
        "counts": len(count),
        "negative": int((count < 0).sum()),
        "fractional": int((count != np.floor(count)).sum()),
        "shown": int(shows.sum()),
        "nothing": not shows.any(),
        "unknown": int((shows & ~people).sum()),
        "absent": int((people & ~shows).sum()),
        "hidden": int(both.sizes[people & ~shows].sum()),
        "all_different": released.is_microdata and len(count) > 1 and bool((count == 1).all()),
    }
