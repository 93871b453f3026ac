"""The page of a reproduction: the sentence, the statements, the figures, and how to run it again."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from cellrisk.reproduction.panels import AGREES, DIFFERS, ON_CONDITION, Boxes, Sheet
from cellrisk.text import number_of

if TYPE_CHECKING:
    from cellrisk.reproduction.result import Reproduction

TITLE = "Disclosure risk from homogeneity attack: the paper, reproduced"
PAPER = (
    "F. Liu and X. Zhao, Disclosure Risk from Homogeneity Attack in Differentially Privately Sanitized Frequency "
    "Distribution"
)
PICTURES_OF_SIZES = "figure-2-cell-sizes"
MARKS = {AGREES: "agrees", ON_CONDITION: "condition", DIFFERS: "differs"}


@dataclass(frozen=True)
class Illustration:
    """One picture on the page: its files have this name."""

    name: str
    title: str
    caption: str
    words: str
    """What it shows, for those who do not see it."""


def render_page(found: Reproduction) -> str:
    """The page as HTML, without scripts; the pictures and the numbers are files beside it."""
    from markupsafe import Markup

    from cellrisk.reporting.document import make_environment
    from cellrisk.version import __version__

    template = resources.files(__package__).joinpath("page.html.j2").read_text("utf-8")
    style = resources.files("cellrisk.reporting").joinpath("style.css").read_text("utf-8")
    return (
        make_environment()
        .from_string(template)
        .render(
            title=TITLE,
            paper=PAPER,
            found=found,
            marks=MARKS,
            style=Markup(style),
            sections=_sections(found),
            command=_command(found),
            version=__version__,
        )
    )


def _sections(found: Reproduction) -> list[tuple[str, str, list[Illustration]]]:
    """Name, title and pictures of each section of figures."""
    sheets = [_describe_sheet(sheet) for sheet in found.sheets if not sheet.beyond]
    boxes = [_describe_boxes(each) for each in found.boxes]
    thresholding = [each for each in sheets if each.name.startswith("supplement")]
    curves = [each for each in sheets if each not in thresholding]
    beyond = [_describe_sheet(sheet) for sheet in found.sheets if sheet.beyond]
    parts = [
        ("sizes", "Cell sizes (the paper's figure 2)", [_describe_sizes(found)]),
        ("curves", "Risk along epsilon (figure 3)", curves),
        ("distances", "What noise leaves of the marginals (figure 4)", boxes),
        ("guesses", "Attackers who guess (supplement)", thresholding),
        ("beyond", "Beyond the paper", beyond),
    ]
    return [part for part in parts if part[2]]


def _describe_sizes(found: Reproduction) -> Illustration:
    parts = []
    for each in found.experiments:
        sizes, cells = each.table.profiles().sizes
        parts.append(
            f"{each.label}: {number_of(each.table.n_cells, 'cell')} of {sizes[0]} to {sizes[-1]:,} records, "
            f"{cells[sizes == 1].sum():,} of a single one"
        )
    caption = "How many cells have each number of records. Adult as published counts rows, as defined it counts cells."
    return Illustration(PICTURES_OF_SIZES, "Figure 2: histograms of cell sizes", caption, f"{'; '.join(parts)}.")


def _describe_sheet(sheet: Sheet) -> Illustration:
    parts = []
    for panel in sheet.panels:
        letter = f"({panel.letter}) " if panel.letter else ""
        low = [line.limits.chance for line in panel.lines]
        high = [line.limits.raw for line in panel.lines]
        lines = number_of(len(panel.lines), "line")
        parts.append(f"{letter}{panel.title}: {lines} between {min(low):.2f} and {max(high):.2f}")
    return Illustration(sheet.name, sheet.title, sheet.caption, f"{sheet.title}. {'; '.join(parts)}.")


def _describe_boxes(boxes: Boxes) -> Illustration:
    parts = []
    for way in boxes.ways:
        means = [f"{boxes.mean(way, 'laplace', 0.0, epsilon):.3f}" for epsilon in (0.1, 1.0, 10.0)]
        parts.append(f"{way}-way {', '.join(means)}")
    words = f"{boxes.title}. Mean distances under Laplace noise at epsilon 0.1, 1 and 10: {'; '.join(parts)}."
    caption = f"{boxes.caption} {number_of(boxes.releases, 'simulated release')}, seed {boxes.seed}."
    return Illustration(boxes.name, boxes.title, caption, words)


def _command(found: Reproduction) -> str:
    data = "--offline" if found.missing else "--bankruptcy FILE"
    return f"cellrisk reproduce {data} --points {found.points} --releases {found.releases} --seed {found.seed}"
