"""The words of `RiskCurve`: the risk and the figures to decide by along epsilon, and the two ends that they tend to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cellrisk.risk.ceilings import say_bounds, say_most
from cellrisk.risk.certainty.inferences import say_named
from cellrisk.risk.curves import Line, RiskCurve
from cellrisk.risk.figure_lines import FigureLines
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, percent, whole_people

TOLD = (0.1, 1.0, 10.0)
"""Epsilons that sentences give numbers for, or the nearest to them."""
MOST_COLUMNS = 11
"""Epsilons of a printed table."""


def headline(curve: RiskCurve) -> str:
    """The figures to decide by, if asked for, then a sentence for the leading line of each setting and attribute."""
    sentences = [sentence(lines) for lines in curve.figures]
    for line in curve.leading:
        shown = sorted({line.nearest(epsilon) for epsilon in TOLD})
        risks = ", ".join(f"{percent(line.at(epsilon))} at epsilon {epsilon:.3g}" for epsilon in shown)
        epsilon, people = curve.people[line.setting, line.sensitive]
        sentences.append(
            f"{_name(line)} ({line.name}): {risks}; {line.setting.lower_end} is {percent(line.limits.chance)}, the raw "
            f"table {percent(line.limits.raw)}. At epsilon {epsilon:.3g}, {people.describe()} of "
            f"{number_of(curve.table.n_records, 'person')} exposed."
        )
    return "\n".join(sentences)


def paragraphs(curve: RiskCurve) -> list[str]:
    """What is printed below the headline: a table for each setting, then the ends of the lines."""
    parts = []
    settings = [lines.setting for lines in curve.figures] + [line.setting for line in curve.lines]
    for setting in dict.fromkeys(settings):
        figures = [lines for lines in curve.figures if lines.setting == setting]
        lines = [line for line in curve.lines if line.setting == setting]
        epsilons = figures[0].epsilon if figures else lines[0].epsilon
        step = max(1, (len(epsilons) - 1) // (MOST_COLUMNS - 1))
        shown = [f"{epsilon:.3g}" for epsilon in epsilons[::step]]
        tables = []
        if figures:
            rows = [[each.sensitive, what, *values[::step]] for each in figures for what, values in _rows(each)]
            tables.append(aligned(["", "epsilon:", *shown], rows, left=2))
        if lines:
            rows = [
                [line.sensitive, line.measure, line.form, line.weights or "-"]
                + [f"{risk:.4f}" for risk in line.risk[::step]]
                for line in lines
            ]
            tables.append(aligned(["", "epsilon:", "", "", *shown], rows, left=4))
        parts.append("\n".join([setting.describe(), *tables]))
    beliefs = dict.fromkeys(lines.belief.describe() for lines in curve.figures if lines.belief is not None)
    return [*parts, words(curve), *(f"The attacker's belief: {belief}." for belief in beliefs), CURATOR_NOTE]


def words(curve: RiskCurve) -> str:
    """What the picture shows, in words: one paragraph for each setting and attribute."""
    lines = (f"{_name(line)}: {_say_ends(line)}" for line in curve.leading)
    return "\n".join([*map(_say_figure_ends, curve.figures), *lines])


def sentence(lines: FigureLines) -> str:
    """The figures at a small, a middle and a large epsilon."""
    places = sorted({lines.place(epsilon) for epsilon in TOLD})

    def along(values: Sequence[str]) -> str:
        return _list([f"{value} at epsilon {lines.epsilon[at]:.3g}" for value, at in zip(values, places, strict=True)])

    parts = []
    if lines.caused is not None:
        points = [lines.caused.points[place] for place in places]
        because = along([f"{whole_people(point.people)} ({percent(point.share)})" for point in points])
        exposed = _list([whole_people(point.exposed) for point in points])
        noise = "chance alone" if math.isinf(lines.setting.limit_noise.scale) else "the noise that delta leaves"
        parts.append(
            f"Of {number_of(lines.records, 'person')}, {because} would be given away only because of their own "
            f"record; {exposed} would be at all, and {percent(lines.caused.exposed_limits.chance)} by {noise}."
        )
    if lines.certainty:
        line = lines.certainty[-1]
        parts.append(say_named(lines.sensitive, along([line.points[place].number for place in places]), line.certainty))
    if lines.ceiling is not None:
        gains = [f"{say_most(float(lines.ceiling.advantage[place]))} percentage points" for place in places]
        often = [f"{say_most(float(lines.ceiling.even_two[place]))}%" for place in places]
        worst = along([f"{often[0]} of the time", *often[1:]])
        parts.append(say_bounds(along(gains), worst, lines.setting.neighbours))
    return f"{_name(lines)}: {' '.join(parts)}"


def _name(line: Line | FigureLines) -> str:
    return f"{line.sensitive}, {line.setting.describe()}"


def _say_ends(line: Line) -> str:
    """The two ends of the line and its extremes, for a reader who sees no picture."""
    scale = line.setting.limit_noise.scale
    why = (
        "that is chance, what noise alone gives away"
        if math.isinf(scale)
        else f"with delta as it is, the noise grows to a scale of {scale:.3g} and no further"
    )
    start = (
        f"As epsilon falls to 0 the risk tends to {percent(line.limits.chance)}: {why}. "
        f"As epsilon grows it tends to {percent(line.limits.raw)}, the raw table's own risk."
    )
    least, most = int(np.argmin(line.risk)), int(np.argmax(line.risk))
    if percent(line.risk[least]) == percent(line.risk[most]):
        return f"{start} At every epsilon computed it is {percent(line.risk[most])}."
    return (
        f"{start} Of the epsilons computed, {line.epsilon[least]:.3g} has the smallest risk, "
        f"{percent(line.risk[least])}, and {line.epsilon[most]:.3g} the largest, {percent(line.risk[most])}."
    )


def _say_figure_ends(lines: FigureLines) -> str:
    """The ends of each figure, for a reader who sees no picture."""
    parts = []
    if lines.caused is not None:
        limits, exposed = lines.caused.limits, lines.caused.exposed_limits
        parts.append(
            f"As epsilon falls to 0, the people given away only because of their own record tend to "
            f"{percent(limits.chance)}, and {percent(exposed.chance)} are exposed. Without noise they are "
            f"{percent(limits.raw)}, of {percent(exposed.raw)} exposed."
        )
    if lines.certainty:
        ends = [
            f"{percent(line.chance.right / lines.records)} and {percent(line.raw.right / lines.records)} "
            f"({100 * line.certainty:g}%)"
            for line in lines.certainty
        ]
        parts.append(
            f"People named rightly with a certainty, as epsilon falls to 0 and without noise: {', '.join(ends)}."
        )
    if lines.ceiling is not None:
        low, high = (say_most(level) for level in (lines.ceiling.limits.chance, lines.ceiling.limits.raw))
        parts.append(f"The worst case goes from {low}% to {high}%; it uses no data.")
    return f"{_name(lines)}: {' '.join(parts)}"


def _rows(lines: FigureLines) -> Iterator[tuple[str, list[str]]]:
    """Rows of the table that is printed: what is counted, and a text for each epsilon."""
    if lines.caused is not None:
        yield "caused, people", [f"{point.people:,.1f}" for point in lines.caused.points]
        yield "exposed, people", [f"{point.exposed:,.1f}" for point in lines.caused.points]
    for line in lines.certainty:
        yield f"{100 * line.certainty:g}% sure and right, people", [point.number for point in line.points]
    if lines.ceiling is not None:
        yield "worst case, %", [say_most(level) for level in lines.ceiling.even_two.tolist()]


def _list(values: Sequence[str]) -> str:
    """Several values in words.

    >>> _list(["1", "2", "3"]), _list(["1"])
    ('1, 2 and 3', '1')
    """
    return " and ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)
