"""The words of `RiskCurve`: what attacks reveal along epsilon, and the paper's measures with the ends they tend to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cellrisk.risk.certainty import why_unknown
from cellrisk.risk.curves import USUAL_EPSILONS, Line, RiskCurve
from cellrisk.show.wording.attackers import name_table, revealed_by_own_record, say_note, setting_table
from cellrisk.show.wording.ceiling import say_most
from cellrisk.system.formatting import aligned, join_names, number_of, percent, whole_people

NEXT = "Choose: cellrisk choose ... --max-caused 0.01   Picture: --plot curve.svg   The paper's measures: --all"
NEXT_BOUND = NEXT.replace("--max-caused 0.01", "--max-ceiling 0.75")
"""If attacks are not assessed, so that only the guarantee can be limited."""


def headline(curve: RiskCurve) -> str:
    """Return what attacks reveal at epsilon 1, or the figures and measures that were asked for by name."""
    if not curve.named:
        return "\n".join(sentence for _, sentence, _ in _attacks(curve, (1.0,)))
    return "\n".join(say_line(line, curve.table.n_records) for line in curve.leading)


def screen(curve: RiskCurve) -> list[str]:
    """Return what is printed first: what attacks reveal along epsilon; or everything, if measures were named."""
    if curve.named:
        return [headline(curve), *_measures(curve), say_note(curve.table)]
    parts = [
        part
        for title, sentence, table in _attacks(curve, USUAL_EPSILONS)
        for part in (f"{title}\n{sentence}", table)
        if part
    ]
    known = not any(why_unknown(attribute) for attribute in curve.table.attributes)
    return [*parts, f"{NEXT if known else NEXT_BOUND}\n{say_note(curve.table)}"]


def _attacks(curve: RiskCurve, usual: Sequence[float]) -> Iterator[tuple[str, str, str]]:
    """Yield a title, a sentence and the table of attackers for each setting and attribute."""
    for setting in curve.settings:
        for name in curve.table.sensitive:
            figures = curve.trace_attacks(name, setting, usual)
            title = f"{name_table(curve.table, name)}; {setting.describe()} noise"
            if len(figures) < 2:
                why = why_unknown(curve.table.attribute(name)) or "no epsilon fits"
                yield title, f"What attacks reveal is not computed: {why}.", ""
                continue
            epsilons = [each.mechanism.epsilon for each in figures if each.mechanism is not None]
            place = int(np.argmin(np.abs(np.log(epsilons))))
            nearest, guarantee = figures[place], f"At epsilon {epsilons[place]:.4g}"
            firsts = [[text] for text in (*(f"{epsilon:.4g}" for epsilon in epsilons), "no noise")]
            own = revealed_by_own_record(nearest.own, nearest.people, name, guarantee, nearest.table.own_record)
            yield title, own, setting_table(list(zip(firsts, figures, strict=True)))


def paragraphs(curve: RiskCurve) -> list[str]:
    """Return the paper's measures; nothing more if they were named, as the first screen has them."""
    return [] if curve.named else _measures(curve)


def _measures(curve: RiskCurve) -> list[str]:
    """Return a table of figures and measures for each setting, then the ends of the lines."""
    parts = []
    for setting in dict.fromkeys(line.setting for line in curve.lines):
        lines = [line for line in curve.lines if line.setting == setting]
        step = max(1, (len(lines[0].epsilon) - 1) // 10)  # eleven columns
        rows = [
            [line.sensitive, name_line(line), *(_show(line, level) for level in line.risk[::step].tolist())]
            for line in lines
        ]
        head = ["", "epsilon:", *(f"{epsilon:.3g}" for epsilon in lines[0].epsilon[::step])]
        parts.append("\n".join([setting.describe(), aligned(head, rows, left=2)]))
    named = dict.fromkeys(line.sensitive for line in curve.lines if line.measure == "certainty")
    priors = dict.fromkeys(curve.attacker.believe(curve.table.attribute(name)).describe() for name in named)
    return [*parts, words(curve), *(f"The attacker's prior: {prior}." for prior in priors)]


def name_line(line: Line) -> str:
    """Return what a line shows."""
    if line.measure == "caused":
        attack = "" if line.attack == "homogeneity" else f", {line.attack} attack"
        return f"revealed because of their own record{attack}"
    if line.measure == "certainty":
        return f"inferred, {100 * line.points[0].certainty:g}% sure"
    if line.measure == "ceiling":
        return "worst case"
    weights = {"uniform": "each group alike", "records": "by records", None: "whole table"}[line.weights]
    attack = "" if line.attack == "homogeneity" else f"{line.attack} attack, "
    return f"{attack}{line.measure.replace('_', ' ')}, {line.form}, {weights}"


def _show(line: Line, level: float) -> str:
    return f"{say_most(level)}%" if line.measure == "ceiling" else percent(level)


def say_line(line: Line, people: int) -> str:
    """Return a line at a small, a middle and a large epsilon, and the ends that it tends to."""
    counted, texts = line.measure in ("caused", "certainty"), []
    for epsilon in sorted({line.nearest(epsilon) for epsilon in (0.1, 1.0, 10.0)}):
        number, text = whole_people(line.at(epsilon) * people), _show(line, line.at(epsilon))
        texts.append(f"{f'{number} ({text})' if counted else text} at epsilon {epsilon:.3g}")
    low, high = (_show(line, level) for level in (line.limits.chance, line.limits.raw))
    of = f"of {number_of(people, 'person')}, " if counted else ""
    name = f"{line.sensitive}, {line.setting.describe()}"
    return f"{name}: {of}{name_line(line)}: {join_names(texts)}; {line.setting.lower_end} {low}, no noise {high}."


def words(curve: RiskCurve) -> str:
    """Return what the picture shows, in words: the ends of each line and its extremes."""
    return "\n".join(f"{line.sensitive}, {line.setting.describe()}: {_say_ends(line)}" for line in curve.leading)


def _say_ends(line: Line) -> str:
    scale = line.setting.limit_noise.scale
    fixed = "" if np.isinf(scale) else f" (delta stays as it is, so the noise has at most the scale {scale:.3g})"
    noun, start = ("figure", f"{name_line(line)}. ") if line.points else ("risk", "")
    start += (
        f"As epsilon falls to 0 the {noun} tends to {_show(line, line.limits.chance)}{fixed}. "
        f"As epsilon grows it tends to {_show(line, line.limits.raw)}, the {noun} without noise."
    )
    least, most = int(np.argmin(line.risk)), int(np.argmax(line.risk))
    low, high = (_show(line, float(line.risk[place])) for place in (least, most))
    if low == high:
        return f"{start} At every epsilon computed it is {high}."
    return (
        f"{start} Of the epsilons computed, {line.epsilon[least]:.3g} has the smallest {noun}, {low}, and "
        f"{line.epsilon[most]:.3g} the largest, {high}."
    )
