"""The folder of a reproduction: made beside its place and moved there in one go."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput
from cellrisk.progress import Progress, Report
from cellrisk.reproduction.page import PICTURES_OF_SIZES, render_page
from cellrisk.spreadsheets import write_frame, write_rows
from cellrisk.stopping import unfinished
from cellrisk.writing import PRIVATE_FOLDER, choose_mode, refuse_inputs, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cellrisk.reproduction.result import Reproduction

PAGE, STATEMENTS = "index.html", "statements.csv"
DIGITS = "%.10g"
"""Of the numbers in CSV files."""
DOTS = 200
"""Dots per inch of the PNGs."""


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


def write_folder(
    found: Reproduction, path: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> Path:
    """Writes pictures, numbers and the page; where anything fails, what was there before is still there."""
    target = check_folder(path, force)
    with _staged(target, force) as place:
        report = Report(progress, len(found.pictures) + 1)
        for name, figure in _figures(found):
            _save(figure, place, name)
            report.add(1)
        for each in found.pictures:
            write_whole(place / f"{each.name}.csv", write_frame(each.to_frame(), float_format=DIGITS))
        write_whole(place / STATEMENTS, write_frame(found.to_frame(), float_format=DIGITS))
        write_whole(place / f"{PICTURES_OF_SIZES}.csv", _sizes(found))
        write_whole(place / PAGE, render_page(found))
    return target


def _figures(found: Reproduction) -> Iterator[tuple[str, Figure]]:
    from cellrisk.pictures.reproduction import draw_boxes, draw_cell_sizes, draw_sheet

    yield PICTURES_OF_SIZES, draw_cell_sizes(found.tables)
    for sheet in found.sheets:
        yield sheet.name, draw_sheet(sheet)
    for boxes in found.boxes:
        yield boxes.name, draw_boxes(boxes)


def _save(figure: Figure, place: Path, name: str) -> None:
    from cellrisk.pictures import save, to_png

    save(figure, place / f"{name}.svg")
    write_whole(place / f"{name}.png", to_png(figure, DOTS))


def _sizes(found: Reproduction) -> str:
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
