"""The words of `RiskCurve`: what attacks reveal along epsilon, and the paper's measures with the ends they tend to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.curves import Line, RiskCurve
from cellrisk.risk.figure_lines import FigureLines
from cellrisk.show.wording.assessment import name_table
from cellrisk.show.wording.attackers import revealed_by_own_record, setting_table
from cellrisk.show.wording.ceiling import say_most
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, join_names, number_of, percent, whole_people

NAMED = (0.1, 1.0, 10.0)
"""Epsilons that sentences give numbers for, or the nearest to them."""
USUAL = (0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0)
"""Epsilons of the table of attackers, if none were asked for."""
MOST_COLUMNS = 11
"""Epsilons of a printed table of measures."""
NEXT = "Choose: cellrisk choose ... --max-caused 0.01   Picture: --plot curve.svg   The paper's measures: --all"


def headline(curve: RiskCurve) -> str:
    """Return what attacks reveal at epsilon 1, or the figures and measures that were asked for by name."""
    if not curve.named:
        return "\n".join(sentence for _, sentence, _ in _attacks(curve, (1.0,)))
    sentences = [sentence(lines) for lines in curve.figures]
    for line in curve.leading:
        shown = sorted({line.nearest(epsilon) for epsilon in NAMED})
        risks = ", ".join(f"{percent(line.at(epsilon))} at epsilon {epsilon:.3g}" for epsilon in shown)
        ends = f"{line.setting.lower_end} is {percent(line.limits.chance)}, no noise {percent(line.limits.raw)}"
        epsilon, people = curve.people[line.setting, line.sensitive]
        sentences.append(
            f"{_name(line)} ({line.name}): {risks}; {ends}. At epsilon {epsilon:.3g}, {people.describe()} of "
            f"{number_of(curve.table.n_records, 'person')} revealed."
        )
    return "\n".join(sentences)


def screen(curve: RiskCurve) -> list[str]:
    """Return what is printed first: what attacks reveal along epsilon; or everything, if measures were named."""
    if curve.named:
        return [headline(curve), *_measures(curve), CURATOR_NOTE]
    parts = [part for title, sentence, table in _attacks(curve, USUAL) for part in (f"{title}\n{sentence}", table)]
    return [*parts, f"{NEXT}\n{CURATOR_NOTE}"]


def _attacks(curve: RiskCurve, usual: Sequence[float]) -> Iterator[tuple[str, str, str]]:
    """Yield a title, a sentence and the table of attackers for each setting and attribute."""
    for setting in curve.settings:
        for name in curve.table.sensitive:
            figures = curve.trace_attacks(name, setting, usual)
            at = [each for each in figures if each.mechanism is not None]
            title = f"{name_table(curve.table, name)}; {setting.describe()} noise"
            if not at:
                yield title, "What attacks reveal is not computed: more than 100 categories, or no epsilon fits.", ""
                continue
            nearest = min(at, key=lambda each: abs(np.log(_epsilon(each.mechanism))))
            guarantee = f"epsilon {claim(_epsilon(nearest.mechanism))}"
            rows = [
                (["no noise" if each.mechanism is None else claim(each.mechanism.epsilon)], each) for each in figures
            ]
            yield title, revealed_by_own_record(nearest.own, nearest.people, name, guarantee), setting_table(rows)


def _epsilon(mechanism: Mechanism | None) -> float:
    return 1.0 if mechanism is None else mechanism.epsilon


def paragraphs(curve: RiskCurve) -> list[str]:
    """Return the paper's measures; nothing more if they were named, as the first screen has them."""
    return [] if curve.named else _measures(curve)


def _measures(curve: RiskCurve) -> list[str]:
    """Return a table of figures and measures for each setting, then the ends of the lines."""
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
    priors = dict.fromkeys(lines.belief.describe() for lines in curve.figures if lines.belief is not None)
    return [*parts, words(curve), *(f"The attacker's prior: {prior}." for prior in priors)]


def words(curve: RiskCurve) -> str:
    """Return what the picture shows, in words: one paragraph for each setting and attribute."""
    lines = (f"{_name(line)}: {_say_ends(line)}" for line in curve.leading)
    return "\n".join([*map(_say_figure_ends, curve.figures), *lines])


def sentence(lines: FigureLines) -> str:
    """Return the figures at a small, a middle and a large epsilon."""
    places = sorted({lines.place(epsilon) for epsilon in NAMED})

    def along(values: Sequence[str]) -> str:
        pairs = zip(values, places, strict=True)
        return join_names([f"{value} at epsilon {lines.epsilon[place]:.3g}" for value, place in pairs])

    parts = []
    if lines.caused is not None:
        points = [lines.caused.points[place] for place in places]
        own = along([f"{whole_people(point.people)} ({percent(point.share)})" for point in points])
        parts.append(f"Of {number_of(lines.records, 'person')}, revealed because of their own record: {own}.")
    if lines.certainty:
        line = lines.certainty[-1]
        inferred = along([line.points[place].number for place in places])
        parts.append(f"Inferred by an informed attacker who is {100 * line.certainty:g}% sure: {inferred}.")
    if lines.ceiling is not None:
        worst = along([f"{say_most(float(lines.ceiling.even_two[place]))}%" for place in places])
        parts.append(f"Worst case for one record (coin toss: 50%): {worst}.")
    return f"{_name(lines)}: {' '.join(parts)}"


def _name(line: Line | FigureLines) -> str:
    return f"{line.sensitive}, {line.setting.describe()}"


def _say_ends(line: Line) -> str:
    """Return the two ends of the line and its extremes, for a reader who sees no picture."""
    scale = line.setting.limit_noise.scale
    fixed = "" if np.isinf(scale) else f" (delta stays as it is, so the noise has at most the scale {scale:.3g})"
    start = (
        f"As epsilon falls to 0 the risk tends to {percent(line.limits.chance)}{fixed}. "
        f"As epsilon grows it tends to {percent(line.limits.raw)}, the risk without noise."
    )
    least, most = int(np.argmin(line.risk)), int(np.argmax(line.risk))
    if percent(line.risk[least]) == percent(line.risk[most]):
        return f"{start} At every epsilon computed it is {percent(line.risk[most])}."
    return (
        f"{start} Of the epsilons computed, {line.epsilon[least]:.3g} has the smallest risk, "
        f"{percent(line.risk[least])}, and {line.epsilon[most]:.3g} the largest, {percent(line.risk[most])}."
    )


def _say_figure_ends(lines: FigureLines) -> str:
    """Return the ends of each figure, for a reader who sees no picture."""
    parts: list[tuple[str, str, str]] = []
    if lines.caused is not None:
        ends = percent(lines.caused.limits.chance), percent(lines.caused.limits.raw)
        parts.append(("revealed because of their own record", *ends))
    for line in lines.certainty:
        low, high = (percent(end.right / lines.records) for end in (line.chance, line.raw))
        parts.append((f"inferred with {100 * line.certainty:g}% certainty", low, high))
    if lines.ceiling is not None:
        low, high = (f"{say_most(level)}%" for level in (lines.ceiling.limits.chance, lines.ceiling.limits.raw))
        parts.append(("worst case for one record", low, high))
    shown = "; ".join(f"{what} {low} to {high}" for what, low, high in parts)
    return f"{_name(lines)}: From epsilon near 0 to no noise: {shown}."


def _rows(lines: FigureLines) -> Iterator[tuple[str, list[str]]]:
    """Yield rows of the table that is printed: what is counted, and a text for each epsilon."""
    if lines.caused is not None:
        yield "because of their own record", [f"{point.people:,.1f}" for point in lines.caused.points]
        yield "revealed", [f"{point.exposed:,.1f}" for point in lines.caused.points]
    for line in lines.certainty:
        yield f"inferred, {100 * line.certainty:g}% sure", [point.number for point in line.points]
    if lines.ceiling is not None:
        yield "worst case, %", [say_most(level) for level in lines.ceiling.even_two.tolist()]
