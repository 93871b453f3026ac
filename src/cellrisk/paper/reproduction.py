"""The answer of `reproduce`: a sentence and the statements; its page; and its folder, moved into place in one go."""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.paper.experiments import Experiment
from cellrisk.paper.panels import AGREES, DIFFERS, ON_CONDITION, Boxes, Sheet, Statement
from cellrisk.system.progress import Progress, StepCounter
from cellrisk.system.results import Result
from cellrisk.system.spreadsheets import write_frame, write_rows
from cellrisk.system.stopping import unfinished
from cellrisk.system.text import aligned, number_of
from cellrisk.system.version import __version__
from cellrisk.system.writing import PRIVATE_FOLDER, choose_mode, refuse_inputs, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cellrisk.counts.table import FrequencyTable


TITLE = "Disclosure risk from homogeneity attack: the paper, reproduced"
PAPER = (
    "F. Liu and X. Zhao, Disclosure Risk from Homogeneity Attack in Differentially Privately Sanitized Frequency "
    "Distribution"
)
PICTURES_OF_SIZES = "figure-2-cell-sizes"
MARKS = {AGREES: "agrees", ON_CONDITION: "condition", DIFFERS: "differs"}
PAGE, STATEMENTS = "index.html", "statements.csv"
DIGITS = "%.10g"
"""Digits of the numbers in CSV files."""
DOTS = 200
"""Dots per inch of the PNGs."""


@dataclass(frozen=True, eq=False, repr=False)
class Reproduction(Result):
    """The paper, computed again. Prints as a sentence and the statements that do not plainly agree."""

    experiments: tuple[Experiment, ...]
    sheets: tuple[Sheet, ...]
    boxes: tuple[Boxes, ...]
    statements: tuple[Statement, ...]
    missing: tuple[str, ...]
    """What could not be reproduced, and why; empty where nothing is missing."""
    points: int
    releases: int
    seed: int
    seconds: float
    """How long the computation took, pictures not counted."""

    def __post_init__(self) -> None:
        if not (self.experiments and self.sheets and self.statements):
            raise InvalidInput("a reproduction needs an experiment, a sheet and a statement")
        names = [each.name for each in self.pictures]
        if len(set(names)) < len(names):
            raise InvalidInput("two pictures of a reproduction have the same name")

    @cached_property
    def verdicts(self) -> Mapping[str, int]:
        """How many statements have each verdict."""
        return Counter(statement.verdict for statement in self.statements)

    @property
    def pictures(self) -> tuple[Sheet | Boxes, ...]:
        """What is drawn besides the cell sizes; each has a name and a frame."""
        return (*self.sheets, *self.boxes)

    @property
    def tables(self) -> dict[str, FrequencyTable]:
        """The tables by their labels, for the histograms of cell sizes."""
        return {each.label: each.table for each in self.experiments}

    @property
    def headline(self) -> str:
        """What a reader can repeat."""
        counts = [self.verdicts[verdict] for verdict in (AGREES, ON_CONDITION, DIFFERS)]
        told = (
            f"Of {number_of(len(self.statements), 'number or claim', 'numbers and claims')} of the paper, {counts[0]} "
            f"agree with ours, {counts[1]} agree in part or on a condition that the paper does not state, and "
            f"{counts[2]} do not agree."
        )
        return f"{told} Not everything could be reproduced." if self.missing else told

    def _numbers(self) -> list[dict[str, Any]]:
        """One row a statement."""
        return [vars(statement) for statement in self.statements]

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk reproduce --json`` prints."""
        return {
            "sentence": self.headline,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in (AGREES, ON_CONDITION, DIFFERS)},
            "statements": [vars(statement) for statement in self.statements],
            "experiments": [each.to_dict() for each in self.experiments],
            "pictures": [each.name for each in self.pictures],
            "missing": list(self.missing),
            "points": self.points,
            "releases": self.releases,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
        }

    def save(self, path: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None) -> Path:
        """Writes the folder with the page, the pictures and the numbers; where anything fails, what was there stays.

        Parameters
        ----------
        path
            The folder to make.
        force
            Replaces a folder that an earlier reproduction made.
        progress
            Called now and then with the share that is done.
        """
        from cellrisk.show.pictures import save, to_png

        target = check_folder(path, force)
        with _staged(target, force) as place:
            report = StepCounter(progress, len(self.pictures) + 1)
            for name, figure in _draw_figures(self):
                save(figure, place / f"{name}.svg")
                write_whole(place / f"{name}.png", to_png(figure, DOTS))
                report.add(1)
            for each in self.pictures:
                write_whole(place / f"{each.name}.csv", write_frame(each.to_frame(), float_format=DIGITS))
            write_whole(place / STATEMENTS, write_frame(self.to_frame(), float_format=DIGITS))
            write_whole(place / f"{PICTURES_OF_SIZES}.csv", _list_sizes(self))
            write_whole(place / PAGE, render_page(self))
        return target

    def _paragraphs(self) -> list[str]:
        rows = [[each.claim, each.paper, each.ours] for each in self.statements if each.verdict == DIFFERS]
        table = [f"Does not agree\n{aligned(['claim', 'paper', 'ours'], rows, left=3)}"] if rows else []
        return [*self.missing, *table]


def check_folder(path: str | os.PathLike[str], force: bool = False) -> Path:
    """Refuses a place where no folder can be made, before any long work begins.

    With ``force`` an earlier reproduction is replaced, and nothing else: a folder that holds other files is left alone.
    """
    target = Path(os.path.abspath(path))
    given = os.fspath(path)
    if not target.parent.is_dir():
        raise InvalidInput("the folder of the output path does not exist", got=target.parent, fix="make it first")
    if not os.access(target.parent, os.W_OK):
        raise InvalidInput("the output path cannot be written to", got=given, fix="choose another place")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InvalidInput("the output path is no folder", got=given, fix="choose another name")
    if target.exists():
        if not force:
            raise InvalidInput(
                "the output folder exists", got=given, fix="choose another name, or replace it with --force"
            )
        for each in target.iterdir():
            refuse_inputs(each)
        others = sum(not _is_ours(each) for each in target.iterdir())
        if others:
            raise InvalidInput(
                "the output folder holds something else than a reproduction",
                got=f"{others:,} other files or folders in {given}",
                fix="choose another name",
            )
    return target


def _is_ours(path: Path) -> bool:
    """Whether a reproduction could have written a file of this name."""
    pictured = path.name.startswith(("figure-", "supplement-", "beyond-")) and path.suffix in (".svg", ".png", ".csv")
    return path.is_file() and (path.name in (PAGE, STATEMENTS) or pictured)


def _draw_figures(found: Reproduction) -> Iterator[tuple[str, Figure]]:
    from cellrisk.paper.box_pictures import draw_boxes, draw_cell_sizes, draw_sheet

    yield PICTURES_OF_SIZES, draw_cell_sizes(found.tables)
    for sheet in found.sheets:
        yield sheet.name, draw_sheet(sheet)
    for boxes in found.boxes:
        yield boxes.name, draw_boxes(boxes)


def _list_sizes(found: Reproduction) -> str:
    rows: list[tuple[str, str, int, int]] = []
    for each in found.experiments:
        sizes, cells = each.table.profiles().sizes
        rows += [(each.name, each.reading, size, many) for size, many in zip(sizes, cells, strict=True)]
    return write_rows(("experiment", "reading", "size", "cells"), rows)


@contextmanager
def _staged(target: Path, force: bool) -> Iterator[Path]:
    """A hidden folder beside the target, which takes its place at the end; an older one is kept until then."""
    token = secrets.token_hex(8)
    place, older = (target.with_name(f".{target.name}.{token}.{kind}") for kind in ("new", "old"))
    try:
        place.mkdir(mode=PRIVATE_FOLDER)
        place.chmod(choose_mode(target, PRIVATE_FOLDER))
        with unfinished(place):
            yield place
            check_folder(target, force)
            _move(place, target, older)
    except OSError as error:
        raise InvalidInput("the output path cannot be written to", got=f"{target} ({error.strerror})") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _move(place: Path, target: Path, older: Path) -> None:
    """Puts the new folder in the place of the older one, if there is any, or leaves that where it is."""
    if not target.exists():
        os.rename(place, target)
        return
    os.rename(target, older)
    try:
        os.rename(place, target)
    except BaseException:
        os.rename(older, target)
        raise
    shutil.rmtree(older, ignore_errors=True)


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

    from cellrisk.system.templates import make_environment

    template = resources.files(__package__).joinpath("page.html.j2").read_text("utf-8")
    style = resources.files("cellrisk.show.reporting").joinpath("style.css").read_text("utf-8")
    data = "--offline" if found.missing else "--bankruptcy FILE"
    page = make_environment().from_string(template)
    return page.render(
        title=TITLE,
        paper=PAPER,
        found=found,
        marks=MARKS,
        style=Markup(style),
        sections=_sections(found),
        command=f"cellrisk reproduce {data} --points {found.points} --releases {found.releases} --seed {found.seed}",
        version=__version__,
    )


def _sections(found: Reproduction) -> list[tuple[str, str, list[Illustration]]]:
    """Name, title and pictures of each section of figures."""

    def sheets(start: str) -> list[Illustration]:
        return [_describe_sheet(sheet) for sheet in found.sheets if sheet.name.startswith(start)]

    parts = [
        ("sizes", "Cell sizes (the paper's figure 2)", [_describe_sizes(found)]),
        ("curves", "Risk along epsilon (figure 3)", sheets("figure")),
        ("distances", "What noise leaves of the marginals (figure 4)", [_describe_boxes(each) for each in found.boxes]),
        ("guesses", "Attackers who guess (supplement)", sheets("supplement")),
        ("beyond", "Beyond the paper", sheets("beyond")),
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
