"""The words of `Explanation`: who is at risk, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.risk.explanation.explaining import Explanation
from cellrisk.risk.explanation.remedies import AS_GIVEN, NEIGHBOURS, RAREST, Coarsening
from cellrisk.risk.explanation.risky_cells import CellSteps, LevelRisk, RiskyCell
from cellrisk.show.wording.attackers import own_people, own_share, share
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, percent

LEVELS_PRINTED, VALUES_PRINTED, REMEDIES_PRINTED, GROUPS_NAMED = 10, 6, 6, 3
HARDLY = 0.05
"""Fewer people than this are hardly anybody."""
FEWEST_NAMED = 5
"""People of a value that is named as one of those whose people are revealed most."""
KEYS_NOTE = "The values that describe groups and people are raw data: do not publish them."


def headline(explanation: Explanation) -> str:
    """Return who is revealed because of their own record, and what would lower their number most."""
    now, *changes = _remedies(explanation)
    best = min(changes, key=lambda remedy: remedy[4], default=None)
    if best is None or best[2] >= now[2]:
        return f"{_say_caused(explanation)} No change that was tried would lower that number."
    fewer = own_people(best[2], explanation.records)
    return f"{_say_caused(explanation)} {best[0][:1].upper()}{best[0][1:]}, it would be {fewer}."


def screen(explanation: Explanation) -> list[str]:
    """Return what is printed first: what would help, sorted by the people revealed, and who bears the risk."""
    size = f"{number_of(explanation.records, 'person')} in {number_of(explanation.cells, 'group')}"
    now, *changes = _remedies(explanation)
    by_category = explanation.attacks.largest_own is not None
    rows = [
        [what, f"{cells:,}", own_people(own, explanation.records), own_share(own, explanation.records)]
        + ([share(largest)] if by_category else [])
        + [share(revealed)]
        for what, cells, own, revealed, largest in [
            now,
            *sorted(changes, key=lambda remedy: remedy[4])[:REMEDIES_PRINTED],
        ]
    ]
    heads = ["groups", "own record", "", *(["of a category"] if by_category else []), "revealed"]
    most = "; ".join(
        f"{name}: {share(own / people)} of {people:,}" for name, own, people in _most_at_risk(explanation.by_level)
    )
    return [
        f"'{explanation.sensitive}': {size}; {_describe_method(explanation)}\n{_say_caused(explanation)}",
        aligned(["what would help", *heads], rows),
        *([f"Most at risk: {most}."] if explanation.caused >= HARDLY else []),
        f"Riskiest groups and values: --all   Choose: cellrisk choose ... --max-caused 0.01\n{CURATOR_NOTE}",
    ]


def _most_at_risk(levels: Sequence[LevelRisk]) -> list[tuple[str, float, int]]:
    """Return the values whose people are revealed most: name, people revealed because of their own record, people.

    Values of few people are not named; those of one quasi-identifier count together.
    """
    values = [
        (f"'{level.quasi_identifier}' {level.label}", _own(level), level.records)
        for level in levels
        if level.records >= FEWEST_NAMED
    ]
    for column in dict.fromkeys(level.quasi_identifier for level in levels):
        rare = [level for level in levels if level.quasi_identifier == column and level.records < FEWEST_NAMED]
        if rare:
            name = f"'{column}' values of fewer than {FEWEST_NAMED} people"
            values.append((name, sum(map(_own, rare)), sum(level.records for level in rare)))
    return sorted(values, key=lambda value: (-value[1] / value[2], -value[2]))[:GROUPS_NAMED]


def _remedies(found: Explanation) -> list[tuple[str, int, float, float, float]]:
    """Return the table as it is, then after each change: in words, groups, people because of their record, revealed.

    The last number is what is limited: the largest share of a category revealed because of their own record.
    """
    rows = [("as it is", found.cells, found.caused, found.people / found.records, found.attacks)]
    rows += [(f"without '{way.quasi_identifier}'", way.cells, way.caused, way.risk, way) for way in found.without]
    rows += [(_say_merged(way), way.cells, way.caused, way.risk, way) for way in found.coarser]
    for setting in found.settings:
        changed = f"epsilon {setting.epsilon:g}"
        if found.mechanism is not None and setting.epsilon == found.mechanism.epsilon:
            changed = f"counts below {setting.threshold + 0.5:g} suppressed"
        rows.append((f"with {changed}", found.cells, setting.caused, setting.people / found.records, setting))
    return [
        (what, cells, caused, risk, caused)
        if attacks.own is None or attacks.largest_own is None
        else (what, cells, attacks.own, risk, attacks.largest_own)
        for what, cells, caused, risk, attacks in rows
    ]


def _own(level: LevelRisk) -> float:
    return level.caused if level.own is None else level.own


def _say_merged(way: Coarsening) -> str:
    """Return what was merged, and how many values are left."""
    what = "rarest values" if way.how in RAREST else "neighbours" if way.how in NEIGHBOURS else "values"
    how = f" {way.how}" if way.how == AS_GIVEN else ""
    return f"with {what} of '{way.quasi_identifier}' merged{how} ({way.labels:,} of {way.labels_before:,} left)"


def _say_caused(found: Explanation) -> str:
    """Return how many people are revealed because of their own record."""
    at = "" if found.perturbation is None else f"With {found.perturbation.name}"
    at = at if found.mechanism is None else f"At {found.mechanism.guarantee}"
    own = found.caused if found.attacks.own is None else found.attacks.own
    number = own_people(abs(own), found.records)
    people = f"{number} of {number_of(found.records, 'person')} ({own_share(abs(own), found.records)})"
    attack = "homogeneity" if found.attacks.own is None else "strongest"
    if own < 0:  # a perturbation can hide people behind each other
        return f"{at}, the {attack} attack reveals {people} fewer than without their own record."
    return f"{at}, the {attack} attack reveals {people} because of their own record."


def paragraphs(explanation: Explanation) -> list[str]:
    """Return the rest: the riskiest groups and values, and who is revealed by the size of their group."""
    steps = [] if explanation.steps is None else [_show_steps(explanation.steps)]
    return [*steps, *_tables(explanation), KEYS_NOTE]


def _tables(found: Explanation) -> Iterator[str]:
    levels = found.by_level
    title = f"Riskiest groups: local risk, {found.form}, weights {found.weights}"
    yield _show_cells(title, found.riskiest, "risk", [percent(cell.risk) for cell in found.riskiest])
    shown = sorted(levels, key=lambda level: (-level.caused, level.records))[:LEVELS_PRINTED]
    yield _table(
        f"Values with most people revealed because of their own record, {len(shown):,} of {len(levels):,}",
        ["quasi-identifier", "value", "groups", "people", "own record", "share", "revealed", "no noise"],
        [
            [
                *(level.quasi_identifier, level.label, f"{level.cells:,}", f"{level.records:,}"),
                *(f"{level.caused:,.1f}", percent(level.caused / level.records)),
                *(percent(level.risk), percent(level.raw_share)),
            ]
            for level in shown
        ],
        left=2,
    )
    yield _table(
        "People revealed because of their own record, by the size of their group",
        ["people in the group", "groups", "people", "own record", "revealed"],
        [
            [size.size, f"{size.cells:,}", f"{size.records:,}", f"{size.caused:,.1f}", f"{size.people:,.1f}"]
            for size in found.caused_by_size
        ],
    )
    if found.caused_cells:
        title = "Groups with most people revealed because of their own record"
        yield _show_cells(
            title, found.caused_cells, "own record", [f"{cell.caused:.3f}" for cell in found.caused_cells]
        )


def _table(title: str, header: list[str], rows: Sequence[list[str]], left: int = 1) -> str:
    return f"{title}\n{aligned(header, rows, left=left)}"


def _show_cells(title: str, cells: Sequence[RiskyCell], column: str, amounts: Sequence[str]) -> str:
    """Return groups with their keys, and in one column what they are listed for."""
    names = list(cells[0].key)
    rows = [
        [*cell.key.values(), f"{cell.records:,}", f"{cell.levels:,}", amount, f"{cell.people:,.1f}"]
        for cell, amount in zip(cells, amounts, strict=True)
    ]
    return _table(title, [*names, "people", "categories", column, "revealed"], rows, left=len(names))


def _show_steps(steps: CellSteps) -> str:
    """Return one group: what each of its counts may be published as, and what follows."""
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
        f"The group with most people revealed because of their own record, step by step: {key}\n"
        "A value is shown alone if its own count does not vanish and all others do: the product of these probabilities"
    )
    header = ["value", "count", "published as", "vanishes", "shown alone", "people", "with one record less"]
    return _table(title, header, rows)


def _describe_method(explanation: Explanation) -> str:
    """Return how the table would be published."""
    mechanism = explanation.mechanism
    if mechanism is None:
        return "" if explanation.perturbation is None else explanation.perturbation.describe()
    suppressed = "" if mechanism.threshold == 0.5 else f", counts below {mechanism.threshold + 0.5:g} suppressed"
    return f"{mechanism.name} noise, scale {mechanism.scale:.4g}{suppressed}"
