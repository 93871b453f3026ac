"""All risks of a table at one epsilon, each between chance and the raw table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.show.pictures.curves import FORM_DASHES, WEIGHT_COLOURS, WEIGHT_WORDS, title_of_risks
from cellrisk.show.pictures.own_axes import add_key, check_axes, dressed
from cellrisk.show.pictures.style import GREY, INK, SMALL, brief, finish, house_style, percent_axis, start_figure
from cellrisk.system.text import claim, number_of, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cellrisk.risk.assessment import Assessment, Risk
    from cellrisk.risk.sweep import Limits

ROW = 0.165
"""Inches for a risk or the name of a measure."""
WEIGHT_MARKS = {"records": "o", "uniform": "s", None: "D"}
FORMS = tuple(FORM_DASHES)
"""The preferred form first."""
FOR_NUMBERS, FOR_NUMBERS_INSIDE = 0.16, 0.3
"""The share of a panel's width that is kept for the numbers on its right; axes that are not ours may be narrow."""
MOST_TOLD = 3
"""Attributes in the title and in the caption."""

Found = tuple["Risk", "Limits"]


@dataclass(frozen=True)
class PictureRow:
    """A line of words on the left: a risk, or the name of the measure of the risks below."""

    name: str
    risk: tuple[str, str, str | None] | None
    """Measure, form and weights of the risk; None where the row is the name of a measure."""


def draw_assessment(assessment: Assessment) -> Figure:
    """A row for each measure, form and weighting: the risk, and on both sides of it chance and the raw table.

    A panel a sensitive attribute, two beside each other. The risk is a filled mark whose colour and shape tell the
    weights, and a number.
    """
    with house_style():
        panels, rows = _panels(assessment), _rows(assessment)
        columns = min(2, len(panels))
        lines = -(-len(panels) // columns)
        figure = start_figure(lines * (ROW * (len(rows) + 1) + 0.5))
        grid = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
        for axes, (name, found) in zip(grid, panels.items(), strict=False):
            _draw(axes, rows, found)
            axes.set_xlabel("risk")
            axes.set_title(brief(name, 36) if len(panels) > 1 else "")
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        for axes in grid[::columns]:
            _name_rows(axes, rows)
        finish(
            figure,
            title=_title(assessment),
            subtitle=_subtitle(assessment),
            key=_key(assessment),
            caption=assessment.headline if len(panels) <= MOST_TOLD else "",
            most_caption_lines=3 * MOST_TOLD,
        )
        return figure


def draw_assessment_into(ax: Axes, assessment: Assessment) -> None:
    """The panel of the only sensitive attribute."""
    panels, rows = _panels(assessment), _rows(assessment)
    check_axes(ax, len(panels), "tabulate with one sensitive attribute")
    with dressed(ax):
        ((name, found),) = panels.items()
        _draw(ax, rows, found, FOR_NUMBERS_INSIDE)
        _name_rows(ax, rows)
        ax.set_xlabel(f"risk for {brief(name)}")
        add_key(ax, _key(assessment))


def _panels(assessment: Assessment) -> dict[str, list[Found]]:
    """The risks of each sensitive attribute, with what they lie between."""
    found: dict[str, list[Found]] = {}
    for risk, limits in zip(assessment.risks, assessment.limits, strict=True):
        found.setdefault(risk.sensitive, []).append((risk, limits))
    return found


def _rows(assessment: Assessment) -> list[PictureRow]:
    """The same for every attribute. A measure with one risk is one row; else its name stands above its risks."""
    first = [risk for risk in assessment.risks if risk.sensitive == assessment.risks[0].sensitive]
    forms, weights = ({getattr(risk, part) for risk in first} for part in ("form", "weights"))
    rows = []
    for measure in dict.fromkeys(risk.measure for risk in first):
        own = [risk for risk in first if risk.measure == measure]
        name = measure.replace("_", " ")
        several = len(forms) > 1 or len(weights - {None}) > 1
        if several:
            rows.append(PictureRow(name, None))
        for risk in sorted(own, key=lambda each: (_rank(each.weights), FORMS.index(each.form))):
            words = [risk.form] if len(forms) > 1 else []
            words += [WEIGHT_WORDS[risk.weights]] if len(weights) > 1 else []
            rows.append(PictureRow(", ".join(words) if several else name, (risk.measure, risk.form, risk.weights)))
    return rows


def _rank(weights: str | None) -> int:
    return list(WEIGHT_MARKS).index(weights)


def _draw(axes: Axes, rows: Sequence[PictureRow], found: Sequence[Found], spare: float = FOR_NUMBERS) -> None:
    by_words = {(risk.measure, risk.form, risk.weights): (risk.risk, limits) for risk, limits in found}
    for place, row in enumerate(rows):
        if row.risk is None:
            axes.axhline(place + 0.42, color="#EBEBEB", linewidth=0.6, zorder=0.5)
            continue
        risk, limits = by_words[row.risk]
        axes.plot([limits.chance, limits.raw], [place, place], color=GREY, linewidth=0.8, zorder=1.5, label="_")
        axes.plot(limits.chance, place, **CHANCE, label="chance")
        axes.plot(limits.raw, place, **RAW, label="raw")
        weights = row.risk[2]
        look: dict[str, Any] = {"color": WEIGHT_COLOURS[weights], "marker": WEIGHT_MARKS[weights]}
        axes.plot(risk, place, **look, markersize=5.0, zorder=4, clip_on=False, label="risk")
        across = axes.get_yaxis_transform()
        axes.text(1.0, place, percent(risk), transform=across, size=SMALL, color=INK, ha="right", va="center")
    largest = max(max(risk.risk, limits.chance, limits.raw) for risk, limits in found)
    axes.set_xlim(0.0, largest / (1.0 - spare) if largest > 0 else 0.01)
    percent_axis(axes.xaxis)
    axes.grid(axis="x")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _name_rows(axes: Axes, rows: Sequence[PictureRow]) -> None:
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row.risk is None else "normal")


CHANCE: dict[str, Any] = {
    "color": GREY,
    "marker": "o",
    "markerfacecolor": "white",
    "markersize": 4.0,
    "markeredgewidth": 0.9,
    "linestyle": "none",
    "zorder": 2.5,
    "clip_on": False,
}
RAW: dict[str, Any] = {**CHANCE, "marker": "|", "markersize": 7.0, "markeredgewidth": 1.4, "zorder": 2.0}


def _key(assessment: Assessment) -> list[Any]:
    from matplotlib.lines import Line2D

    shown = sorted({risk.weights for risk in assessment.risks}, key=_rank)
    key = []
    for weights in shown:
        look: dict[str, Any] = {"color": WEIGHT_COLOURS[weights], "marker": WEIGHT_MARKS[weights]}
        words = f"risk, {WEIGHT_WORDS[weights]}" if len(shown) > 1 else "risk"
        key.append(Line2D([], [], **look, markersize=5.0, linestyle="none", label=words))
    key.append(Line2D([], [], **CHANCE, label="chance"))
    key.append(Line2D([], [], **RAW, label="raw table"))
    return key


def _leading(assessment: Assessment) -> dict[str, Found]:
    """The risk of each attribute that is told first: local, tight and by records, or what comes nearest."""
    return {
        name: min(found, key=lambda each: (FORMS.index(each[0].form), _rank(each[0].weights)))
        for name, found in _panels(assessment).items()
    }


def _title(assessment: Assessment) -> str:
    told = [(name, risk.risk, limits) for name, (risk, limits) in _leading(assessment).items()]
    return title_of_risks(assessment.mechanism.epsilon, told, MOST_TOLD)


def _subtitle(assessment: Assessment) -> str:
    mechanism, table = assessment.mechanism, assessment.table
    told = next(iter(_leading(assessment).values()))[0]
    words = [f"{told.measure.replace('_', ' ')} risk", told.form, WEIGHT_WORDS[told.weights]]
    attack = "" if told.attack == "homogeneity" else f", {told.attack} attack"
    delta = "" if mechanism.pure else f", delta {claim(mechanism.delta)}"
    about = f"{mechanism.name}{delta}; {number_of(table.n_records, 'record')} in {number_of(table.n_cells, 'cell')}"
    alone = len(assessment.risks) == len(table.sensitive)
    start = ", ".join(words) + attack
    return f"{start}; {about}" if alone else f"{about}. In the title: {start}"
