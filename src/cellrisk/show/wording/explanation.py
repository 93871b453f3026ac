"""The words of `Explanation`: who is at risk, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.explanation import Explanation
from cellrisk.risk.explanation.remedies import AS_GIVEN, NEIGHBOURS, RAREST, Change, Outcome
from cellrisk.risk.explanation.risky_cells import LevelRisk, RiskyCell
from cellrisk.show.wording.attackers import fill, own_of, own_people, own_share, share
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, percent

LEVELS_PRINTED, REMEDIES_PRINTED, GROUPS_NAMED = 10, 5, 3
LONGEST_CHANGE = 58
"""Characters of a change on the first screen."""
HARDLY = 0.05
"""Fewer people than this are hardly anybody."""
FEWEST_NAMED = 5
"""People of a value that is named as one of those whose people are revealed most."""
KEYS_NOTE = "The values that describe groups and people are raw data: do not publish them."


def headline(explanation: Explanation) -> str:
    """Return who is revealed because of their own record, and what would lower their number most."""
    now, *changes = list_remedies(explanation)
    best = min(changes, key=lambda remedy: remedy[4], default=None)
    if best is None or best[2] >= now[2]:
        return f"{_say_caused(explanation)} No change that was tried would lower that number."
    fewer = own_people(best[2], explanation.records)
    return f"{_say_caused(explanation)} {best[0][:1].upper()}{best[0][1:]}, it would be {fewer}."


def screen(explanation: Explanation) -> list[str]:
    """Return what is printed first: what would help, sorted by the people revealed, and who bears the risk."""
    size = f"{number_of(explanation.records, 'person')} in {number_of(explanation.now.cells, 'group')}"
    now, *changes = list_remedies(explanation)
    by_category = explanation.now.largest_own is not None
    rows = [
        [_cut(what), f"{cells:,}", own_people(own, explanation.records), own_share(own, explanation.records)]
        + ([share(largest)] if by_category else [])
        + [share(revealed)]
        for what, cells, own, revealed, largest in [
            now,
            *sorted(changes, key=lambda remedy: remedy[4])[:REMEDIES_PRINTED],
        ]
    ]
    top = ["", "", "", "because of", *(["largest share"] if by_category else []), "revealed by"]
    heads = [
        "what would help",
        "groups",
        "",
        "own record",
        *(["of a category"] if by_category else []),
        "homogeneity",
    ]
    most = "; ".join(
        f"{name}: {share(own / people)} of {people:,}" for name, own, people in _most_at_risk(explanation.by_level)
    )
    hardly = now[2] < HARDLY
    risk = "" if hardly else f"{fill(f'Most at risk because of their own record: {most}.')}\n"
    return [
        f"'{explanation.sensitive}': {size}; {_describe_method(explanation)}\n{_say_caused(explanation)}",
        aligned(top, [heads, *rows]),
        f"{risk}Groups and values most at risk: --all   Choose: cellrisk choose ... --max-caused 0.01\n{CURATOR_NOTE}",
    ]


def _cut(change: str) -> str:
    return change if len(change) <= LONGEST_CHANGE else f"{change[: LONGEST_CHANGE - 3]}..."


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


def list_remedies(found: Explanation) -> list[tuple[str, int, float, float, float]]:
    """Return the table as it is, then after each change: in words, groups, people because of their record, revealed.

    The last number is what is limited: the largest share of a category revealed because of their own record.
    """
    rows: list[tuple[str, Outcome]] = [("as it is", found.now)]
    rows += [(f"without '{way.quasi_identifier}'", way) for way in found.without]
    rows += [(_say_merged(way), way) for way in found.coarser]
    for way in found.settings:
        changed = f"epsilon {way.epsilon:g}"
        if isinstance(found.method, Mechanism) and way.epsilon == found.method.epsilon:
            changed = f"counts below {(way.threshold or 0.0) + 0.5:g} suppressed"
        rows.append((f"with {changed}", way))
    return [
        (
            what,
            way.cells,
            way.caused if way.own is None else way.own,
            way.people / found.records,
            way.caused if way.largest_own is None else way.largest_own,
        )
        for what, way in rows
    ]


def _own(level: LevelRisk) -> float:
    return level.caused if level.own is None else level.own


def _say_merged(way: Change) -> str:
    """Return what was merged, and how many values are left."""
    what = "rarest values" if way.how in RAREST else "neighbours" if way.how in NEIGHBOURS else "values"
    how = f" {way.how}" if way.how == AS_GIVEN else ""
    return f"with {what} of '{way.quasi_identifier}' merged{how} ({way.labels:,} of {way.labels_before:,} left)"


def _say_caused(found: Explanation) -> str:
    """Return how many people are revealed because of their own record."""
    at = f"At {found.method.guarantee}" if isinstance(found.method, Mechanism) else f"With {found.method.name}"
    own = found.now.caused if found.now.own is None else found.now.own
    people = own_of(abs(own), found.records)
    attack = "homogeneity" if found.now.own is None else "strongest"
    if own < 0:  # a perturbation can hide people behind each other
        return f"{at}, the {attack} attack reveals {people} fewer than without their own record."
    return f"{at}, the {attack} attack reveals {people} because of their own record."


def paragraphs(explanation: Explanation) -> list[str]:
    """Return the rest: the groups and values most at risk."""
    return [*_tables(explanation), KEYS_NOTE]


def _tables(found: Explanation) -> Iterator[str]:
    levels = found.by_level
    title = f"Groups with the highest local risk, {found.form}, weights {found.weights}"
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


def _describe_method(explanation: Explanation) -> str:
    """Return how the table would be published."""
    method = explanation.method
    if not isinstance(method, Mechanism):
        return method.describe()
    suppressed = "" if method.threshold == 0.5 else f", counts below {method.threshold + 0.5:g} suppressed"
    return f"{method.name} noise, scale {method.scale:.4g}{suppressed}"
