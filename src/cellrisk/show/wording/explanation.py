"""The words of `Explanation`: who is at risk, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.risk.explanation.explaining import Explanation
from cellrisk.risk.explanation.remedies import AS_GIVEN, NEIGHBOURS, RAREST, Coarsening, OtherSetting
from cellrisk.risk.explanation.risky_cells import CellSteps, LevelRisk, RiskyCell
from cellrisk.system.formatting import CURATOR_NOTE, about_people, aligned, make_sentence, number_of, of_people, percent

LEVELS_PRINTED, VALUES_PRINTED = 10, 6
HARDLY = 0.05
"""Fewer people than this are hardly anybody."""
KEYS_NOTE = "The values that describe cells and people are raw data: do not publish them."


def headline(explanation: Explanation) -> str:
    """Whom the riskiest cells hold, who is revealed because of their own record, and what would lower the risk most."""
    return f"{_say_who(explanation)} {_say_caused(explanation)} {_say_what_helps(explanation)}"


def paragraphs(explanation: Explanation) -> list[str]:
    """What is printed below the headline."""
    about = (
        f"{explanation.sensitive}: {number_of(explanation.records, 'record')} in "
        f"{number_of(explanation.cells, 'cell')}; {_describe_method(explanation)}\n"
        f"local risk, {explanation.form}, weights {explanation.weights}: {percent(explanation.baseline)}; people "
        f"exposed on average: {explanation.people:,.1f}, of them only because of their own record: "
        f"{explanation.caused:,.1f}; exposed by the raw table: {percent(explanation.raw_share)}"
    )
    steps = [] if explanation.steps is None else [_show_steps(explanation.steps)]
    return [about, *steps, *_tables(explanation), f"{CURATOR_NOTE}\n{KEYS_NOTE}"]


def _tables(found: Explanation) -> Iterator[str]:
    levels = found.by_level
    yield _show_cells("Riskiest cells", found.riskiest, "risk", [percent(cell.risk) for cell in found.riskiest])
    shown = sorted(levels, key=lambda level: (-level.risk, -level.people))[:LEVELS_PRINTED]
    yield _table(
        f"Riskiest values, {len(shown):,} of {len(levels):,}",
        ["quasi-identifier", "value", "cells", "records", "risk", "people exposed", "raw"],
        [[*_start(level), percent(level.risk), f"{level.people:,.1f}", percent(level.raw_share)] for level in shown],
        left=2,
    )
    yield _table(
        "Without a quasi-identifier",
        ["without", "cells", "risk", "change (points)", "caused"],
        [
            [way.quasi_identifier, f"{way.cells:,}", percent(way.risk), points(way.change), f"{way.caused:,.1f}"]
            for way in found.without
        ],
    )
    if found.coarser:
        yield _table(
            "With coarser quasi-identifiers",
            ["quasi-identifier", "merged", "values", "cells", "risk", "change (points)", "caused"],
            [
                [
                    way.quasi_identifier,
                    way.how,
                    f"{way.labels:,} of {way.labels_before:,}",
                    f"{way.cells:,}",
                    percent(way.risk),
                    points(way.change),
                    f"{way.caused:,.1f}",
                ]
                for way in found.coarser
            ],
            left=2,
        )
    yield _table(
        "Who is exposed only because of their own record (caused), by the size of their cell",
        ["records in the cell", "cells", "records", "caused", "people exposed"],
        [
            [each.size, f"{each.cells:,}", f"{each.records:,}", f"{each.caused:,.1f}", f"{each.people:,.1f}"]
            for each in found.caused_by_size
        ],
    )
    shown = sorted(levels, key=lambda level: (-level.caused, level.records))[:LEVELS_PRINTED]
    yield _table(
        f"Values with most people exposed only because of their own record, {len(shown):,} of {len(levels):,}",
        ["quasi-identifier", "value", "records", "caused", "share"],
        [
            [
                level.quasi_identifier,
                level.label,
                f"{level.records:,}",
                f"{level.caused:,.1f}",
                percent(level.caused / level.records),
            ]
            for level in shown
        ],
        left=2,
    )
    if found.caused_cells:
        title = "Cells with most people exposed only because of their own record"
        yield _show_cells(title, found.caused_cells, "caused", [f"{cell.caused:.3f}" for cell in found.caused_cells])
    if found.mechanism is not None:
        now = OtherSetting(found.mechanism.epsilon, found.mechanism.threshold, found.caused, found.people)
        yield _table(
            "With another setting",
            ["epsilon", "threshold", "caused", "people exposed"],
            [
                [f"{each.epsilon:g}", f"{each.threshold:g}", f"{each.caused:,.1f}", f"{each.people:,.1f}"]
                for each in (now, *found.settings)
            ],
            left=0,
        )


def points(change: float) -> str:
    """A change of a share in percentage points, with its sign.

    >>> points(-0.0412), points(0.00001)
    ('-4.1', '0.0')
    """
    text = f"{100 * change:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _table(title: str, header: list[str], rows: Sequence[list[str]], left: int = 1) -> str:
    return f"{title}\n{aligned(header, rows, left=left)}"


def _start(level: LevelRisk) -> list[str]:
    return [level.quasi_identifier, level.label, f"{level.cells:,}", f"{level.records:,}"]


def _show_cells(title: str, cells: Sequence[RiskyCell], column: str, amounts: Sequence[str]) -> str:
    """Cells with their keys, and in one column what they are listed for."""
    names = list(cells[0].key)
    rows = [
        [*cell.key.values(), f"{cell.records:,}", f"{cell.levels:,}", amount, f"{cell.people:,.1f}"]
        for cell, amount in zip(cells, amounts, strict=True)
    ]
    return _table(title, [*names, "records", "levels", column, "people exposed"], rows, left=len(names))


def _show_steps(steps: CellSteps) -> str:
    """One cell: what each of its counts may be published as, and what follows."""
    rows = [
        [
            step.label,
            f"{step.count:,}",
            ", ".join(f"{value:,}: {percent(chance)}" for value, chance in step.published[:VALUES_PRINTED])
            + (", ..." if len(step.published) > VALUES_PRINTED else ""),
            percent(step.vanishes),
            percent(step.alone),
            f"{step.people:,.2f}",
            percent(step.alone_without),
        ]
        for step in steps.labels
    ]
    key = "; ".join(f"{name}={label}" for name, label in steps.key.items())
    title = (
        f"One cell step by step, that with most people given away because of their own record: {key}\n"
        "A value is shown alone where its own count does not vanish, and all others do: the product of these chances"
    )
    header = ["value", "count", "published as", "vanishes", "shown alone", "people", "with one record less"]
    return _table(title, header, rows)


def _describe_method(explanation: Explanation) -> str:
    """How the table would be published."""
    mechanism = explanation.mechanism
    if mechanism is None:
        return "" if explanation.perturbation is None else explanation.perturbation.describe()
    suppressed = "" if mechanism.threshold == 0.5 else f", counts below {mechanism.threshold:g} suppressed"
    return f"{mechanism.name}, noise scale {mechanism.scale:.4g}{suppressed}"


def _say_who(found: Explanation) -> str:
    perturbed = "" if found.perturbation is None else f"With {found.perturbation.name}"
    at = perturbed if found.mechanism is None else f"At {found.mechanism.guarantee}"
    held, exposed = sum(cell.records for cell in found.riskiest), sum(cell.people for cell in found.riskiest)
    many = len(found.riskiest)
    which = f"the {many:,} riskiest cells hold" if many > 1 else "the riskiest cell holds"
    return (
        f"{at}, {which} {number_of(held, 'person')}; "
        f"{exposed:,.{0 if exposed >= 10 else 1}f} of them would be exposed on average."
    )


def _say_caused(found: Explanation) -> str:
    """How many are revealed because of their own record, and how many there would be after two changes."""
    people = make_sentence(of_people(abs(found.caused), found.records), "")
    if found.caused <= -HARDLY:  # a perturbation that hides people behind each other
        return f"{people} more would be exposed without their own record."
    start = f"{people} would be exposed only because of their own record"
    now = None if found.mechanism is None else found.mechanism.epsilon
    halved = [setting for setting in found.settings if now is not None and setting.epsilon < now][:1]
    after = [f"{about_people(setting.caused)} at half the epsilon" for setting in halved]
    merged = min(found.coarser, key=lambda coarsening: coarsening.caused, default=None)
    if merged is not None and merged.caused < found.caused:
        after.append(f"{about_people(merged.caused)} after {_say_merged(merged, named=True)}")
    return f"{start}; it would be {', and '.join(after)}." if after else f"{start}."


def _say_what_helps(found: Explanation) -> str:
    best = found.best_removal
    if best is None:
        return f"Dropping any one quasi-identifier would not lower the risk of {percent(found.baseline)}."
    name = best.quasi_identifier
    change = f"Dropping '{name}' would lower the risk most, from {percent(found.baseline)} to {percent(best.risk)}"
    ways = [coarsening for coarsening in found.coarser if coarsening.quasi_identifier == name]
    ways.sort(key=lambda coarsening: coarsening.how != AS_GIVEN)
    return f"{change}; {_say_merged(ways[0])} would give {percent(ways[0].risk)}." if ways else f"{change}."


def _say_merged(way: Coarsening, named: bool = False) -> str:
    """What was merged, with the name of the quasi-identifier or, after it, without."""
    start, of = ("the", f" of '{way.quasi_identifier}'") if named else ("its", "")
    if way.how in RAREST:
        return f"merging {start} rarest values{of} to {way.labels:,} of {way.labels_before:,}"
    what = "neighbours" if way.how in NEIGHBOURS else "values"
    return f"merging {'' if named else 'its '}{what}{of} {way.how.removeprefix('neighbours ')}"
