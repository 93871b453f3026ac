"""All risks of a table at one epsilon, each between chance and the raw table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cellrisk.show.pictures.canvas import Picture, drawn
from cellrisk.show.pictures.curves import FORM_DASHES, title_of_risks
from cellrisk.show.pictures.style import (
    GREY,
    INK,
    SMALL,
    WEIGHT_COLOURS,
    WEIGHT_WORDS,
    brief,
    describe_setting,
    mark_sample,
    percent_axis,
)
from cellrisk.system.formatting import number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cellrisk.risk.assessment import Assessment, Risk
    from cellrisk.risk.sweep import Limits

ROW = 0.165
"""Inches for a risk or the name of a measure."""
WEIGHT_MARKS = {"records": "o", "uniform": "s", None: "D"}
FORMS = tuple(FORM_DASHES)
"""The preferred form first."""
FOR_NUMBERS, FOR_NUMBERS_INSIDE = 0.16, 0.3
"""The share of a panel's width that is kept for the numbers on its right; the reader's axes may be narrow."""
MOST_NAMED = 3
"""Attributes in the title and in the caption."""
CHANCE: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "markersize": 4.0, "markeredgewidth": 0.9}
RAW: dict[str, Any] = {"marker": "|", "markersize": 7.0, "markeredgewidth": 1.4}

Rows = list[tuple[str, "Risk | None"]]
"""The words on the left: a risk of the first attribute, or the name of the measure of the risks below."""


@drawn
def draw_assessment(assessment: Assessment, inside: bool) -> Picture:
    """A row for each measure, form and weighting: the risk, and on both sides of it chance and the raw table.

    A panel for each sensitive attribute, two beside each other. The colour and shape of a mark show the weights.
    """
    table, risks = assessment.table, assessment.risks
    panels: dict[str, dict[tuple[str, str, str | None], tuple[Risk, Limits]]] = {}
    for risk, limits in zip(risks, assessment.limits, strict=True):
        panels.setdefault(risk.sensitive, {})[risk.measure, risk.form, risk.weights] = risk, limits
    rows = _rows([risk for risk in risks if risk.sensitive == risks[0].sensitive])
    leading = {name: min(found.values(), key=lambda each: _rank(each[0])) for name, found in panels.items()}
    columns = min(2, len(panels))

    def draw(axes: Axes, name: str, left: bool) -> None:
        _draw(axes, rows, panels[name], FOR_NUMBERS_INSIDE if inside else FOR_NUMBERS)
        if left:
            axes.set_yticks(range(len(rows)), [words for words, _ in rows])
            for label, (_, risk) in zip(axes.get_yticklabels(), rows, strict=True):
                label.set_fontweight("bold" if risk is None else "normal")
        axes.set_xlabel(f"risk for {brief(name)}" if inside else "risk")
        if not inside:
            axes.set_title(brief(name, 36) if len(panels) > 1 else "")

    weights = sorted({risk.weights for risk in risks}, key=list(WEIGHT_MARKS).index)
    names = {each: f"risk, {WEIGHT_WORDS[each]}" if len(weights) > 1 else "risk" for each in weights}
    first, _ = next(iter(leading.values()))
    attack = "" if first.attack == "homogeneity" else f", {first.attack} attack"
    shown = f"{first.measure.replace('_', ' ')} risk, {first.form}, {WEIGHT_WORDS[first.weights]}{attack}"
    cells = f"{number_of(table.n_records, 'record')} in {number_of(table.n_cells, 'cell')}"
    about = f"{describe_setting(assessment.mechanism)}; {cells}"
    found = [(name, risk.risk, limits) for name, (risk, limits) in leading.items()]
    return Picture(
        [partial(draw, name=name, left=place % columns == 0) for place, name in enumerate(panels)],
        [ROW * (len(rows) + 1) + 0.5] * -(-len(panels) // columns),
        columns=columns,
        share="y",
        title=title_of_risks(assessment.mechanism.epsilon, found, MOST_NAMED),
        subtitle=f"{shown}; {about}" if len(risks) == len(table.sensitive) else f"{about}. In the title: {shown}",
        key=[mark_sample(names[each], WEIGHT_COLOURS[each], WEIGHT_MARKS[each], size=5) for each in weights]
        + [mark_sample("chance", GREY, filled=False, size=4), mark_sample("raw table", GREY, "|", size=7)],
        caption=assessment.headline if len(panels) <= MOST_NAMED and not inside else "",
        caption_lines=3 * MOST_NAMED,
        alone="tabulate with one sensitive attribute",
    )


def _rank(risk: Risk) -> tuple[int, int]:
    return FORMS.index(risk.form), list(WEIGHT_MARKS).index(risk.weights)


def _rows(risks: list[Risk]) -> Rows:
    """The same for every attribute. A measure with one risk is one row; otherwise its name is above its risks."""
    forms, weights = ({getattr(risk, part) for risk in risks} for part in ("form", "weights"))
    several = len(forms) > 1 or len(weights - {None}) > 1
    rows: Rows = []
    for measure in dict.fromkeys(risk.measure for risk in risks):
        name = measure.replace("_", " ")
        rows += [(name, None)] if several else []
        same = [risk for risk in risks if risk.measure == measure]
        for risk in sorted(same, key=lambda each: _rank(each)[::-1]):
            words = [risk.form] if len(forms) > 1 else []
            words += [WEIGHT_WORDS[risk.weights]] if len(weights) > 1 else []
            rows.append((", ".join(words) if several else name, risk))
    return rows


def _draw(axes: Axes, rows: Rows, found: dict[tuple[str, str, str | None], tuple[Risk, Limits]], spare: float) -> None:
    grey: dict[str, Any] = {"color": GREY, "linestyle": "none", "clip_on": False}
    for place, (_, row) in enumerate(rows):
        if row is None:
            axes.axhline(place + 0.42, color="#EBEBEB", linewidth=0.6, zorder=0.5)
            continue
        risk, limits = found[row.measure, row.form, row.weights]
        axes.plot([limits.chance, limits.raw], [place, place], color=GREY, linewidth=0.8, zorder=1.5, label="_")
        axes.plot(limits.chance, place, **grey, **CHANCE, zorder=2.5, label="chance")
        axes.plot(limits.raw, place, **grey, **RAW, zorder=2.0, label="raw")
        look: dict[str, Any] = {"color": WEIGHT_COLOURS[row.weights], "marker": WEIGHT_MARKS[row.weights]}
        axes.plot(risk.risk, place, **look, markersize=5.0, zorder=4, clip_on=False, label="risk")
        across = axes.get_yaxis_transform()
        axes.text(1.0, place, percent(risk.risk), transform=across, size=SMALL, color=INK, ha="right", va="center")
    largest = max(max(risk.risk, limits.chance, limits.raw) for risk, limits in found.values())
    axes.set_xlim(0.0, largest / (1.0 - spare) if largest > 0 else 0.01)
    percent_axis(axes.xaxis)
    axes.grid(axis="x")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
