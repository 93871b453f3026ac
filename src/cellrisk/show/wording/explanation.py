"""The words of `Explanation`: who is at risk, and what would help."""

from __future__ import annotations

from collections.abc import Sequence

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.explanation import Explanation
from cellrisk.risk.explanation.remedies import AS_GIVEN, NEIGHBOURS, RAREST, Outcome
from cellrisk.risk.explanation.risky_cells import LevelRisk, RiskyCell
from cellrisk.show.wording.attackers import fill, own_of, own_people, own_share, share
from cellrisk.system.formatting import CURATOR_NOTE, aligned, make_sentence, number_of, percent

LEVELS_PRINTED, GROUPS_NAMED = 10, 3
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
    return f"{_say_caused(explanation)} {make_sentence(best[0], '')}, it would be {fewer}."


def screen(explanation: Explanation) -> list[str]:
    """Return what is printed first: what would help, sorted by the people revealed, and who bears the risk."""
    people, method = explanation.records, explanation.method
    size = f"{number_of(people, 'person')} in {number_of(explanation.now.cells, 'group')}"
    how = method.describe()
    if isinstance(method, Mechanism):
        suppressed = "" if method.threshold == 0.5 else f", counts below {method.threshold + 0.5:g} suppressed"
        how = f"{method.name} noise, scale {method.scale:.4g}{suppressed}"
    now, *changes = list_remedies(explanation)
    rows = [
        [
            *(what if len(what) <= LONGEST_CHANGE else f"{what[: LONGEST_CHANGE - 3]}...", f"{cells:,}"),
            *(own_people(own, people), own_share(own, people), share(largest), share(revealed)),
        ]
        for what, cells, own, revealed, largest in [now, *sorted(changes, key=lambda remedy: remedy[4])[:5]]
    ]
    top = ["", "", "", "because of", "largest share", "revealed by"]
    heads = ["what would help", "groups", "", "own record", "of a category", "homogeneity"]
    if explanation.now.largest_own is None:  # categories are not compared
        top, heads, *rows = ([*row[:4], row[5]] for row in (top, heads, *rows))
    most = "; ".join(f"{name}: {share(own / n)} of {n:,}" for name, own, n in _most_at_risk(explanation.by_level))
    risk = "" if now[2] < HARDLY else f"{fill(f'Most at risk because of their own record: {most}.')}\n"
    return [
        f"'{explanation.sensitive}': {size}; {how}\n{_say_caused(explanation)}",
        aligned(top, [heads, *rows]),
        f"{risk}Groups and values most at risk: --all   Choose: cellrisk choose ... --max-caused 0.01\n{CURATOR_NOTE}",
    ]


def _most_at_risk(levels: Sequence[LevelRisk]) -> list[tuple[str, float, int]]:
    """Return the values whose people are revealed most: name, people revealed because of their own record, people.

    Values of few people are not named; those of one quasi-identifier count together.
    """
    counted: dict[str, tuple[float, int]] = {}
    for level in levels:
        few = level.records < FEWEST_NAMED
        name = f"'{level.quasi_identifier}' {f'values of fewer than {FEWEST_NAMED} people' if few else level.label}"
        own, people = counted.get(name, (0.0, 0))
        counted[name] = own + (level.caused if level.own is None else level.own), people + level.records
    values = [(name, *numbers) for name, numbers in counted.items()]
    return sorted(values, key=lambda value: (-value[1] / value[2], -value[2]))[:GROUPS_NAMED]


def list_remedies(found: Explanation) -> list[tuple[str, int, float, float, float]]:
    """Return the table as it is, then after each change: in words, groups, people because of their record, revealed.

    The last number is what is limited: the largest share of a category revealed because of their own record.
    """
    rows: list[tuple[str, Outcome]] = [("as it is", found.now)]
    rows += [(f"without '{way.quasi_identifier}'", way) for way in found.without]
    for merged in found.coarser:
        what = "rarest values" if merged.how in RAREST else "neighbours" if merged.how in NEIGHBOURS else "values"
        how = f" {merged.how}" if merged.how == AS_GIVEN else ""
        left = f"({merged.labels:,} of {merged.labels_before:,} left)"
        rows.append((f"with {what} of '{merged.quasi_identifier}' merged{how} {left}", merged))
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


def _say_caused(found: Explanation) -> str:
    """Return how many people are revealed because of their own record."""
    at = f"At {found.method.guarantee}" if isinstance(found.method, Mechanism) else f"With {found.method.name}"
    own = found.now.caused if found.now.own is None else found.now.own
    people = own_of(abs(own), found.records)
    attack = "homogeneity" if found.now.own is None else "strongest"
    # A perturbation can hide people behind each other.
    own_record = "fewer than without their own record" if own < 0 else "because of their own record"
    return f"{at}, the {attack} attack reveals {people} {own_record}."


def paragraphs(found: Explanation) -> list[str]:
    """Return the rest: the groups and values most at risk."""
    levels = found.by_level
    shown = sorted(levels, key=lambda level: (-level.caused, level.records))[:LEVELS_PRINTED]
    heads = ["quasi-identifier", "value", "groups", "people", "own record", "share", "revealed", "no noise"]
    rows = [
        [level.quasi_identifier, level.label, f"{level.cells:,}", f"{level.records:,}", f"{level.caused:,.1f}"]
        + [percent(number) for number in (level.caused / level.records, level.risk, level.raw_share)]
        for level in shown
    ]
    values = f"Values with most people revealed because of their own record, {len(shown):,} of {len(levels):,}"
    risks, caused = found.riskiest, found.caused_cells
    parts = [
        _show_cells(f"Groups with the highest local risk, {found.form}, weights {found.weights}", risks, "risk"),
        f"{values}\n{aligned(heads, rows, left=2)}",
    ]
    parts += [_show_cells("Groups with most people revealed because of their own record", caused)] if caused else []
    return [*parts, KEYS_NOTE]


def _show_cells(title: str, cells: Sequence[RiskyCell], column: str = "own record") -> str:
    """Return groups with their keys, and in one column what they are listed for."""
    names = list(cells[0].key)
    rows = [
        [
            *(*cell.key.values(), f"{cell.records:,}", f"{cell.levels:,}"),
            *(percent(cell.risk) if column == "risk" else f"{cell.caused:.3f}", f"{cell.people:,.1f}"),
        ]
        for cell in cells
    ]
    return f"{title}\n{aligned([*names, 'people', 'categories', column, 'revealed'], rows, left=len(names))}"
